/* read_bits.c - words and numbers from YAML: their parts, and the fields in
 * them; see docs/hwspec.md, "Containers".
 */
#include "hwspec/format/read_bits.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 256, MAX_BITS = 64 };

/* ---- types ---- */

/* "u8", "s24": a letter and a number of bits. */
static bool parse_type(const char *text, char *sign, uint32_t *bits) {
    size_t digits = strspn(text + (*text != 0), "0123456789");
    if ((*text != 'u' && *text != 's') || !digits || digits > 2 ||
        text[1 + digits])
        return false;
    *sign = *text;
    *bits = (uint32_t)strtoul(text + 1, NULL, 10);
    return *bits >= 1 && *bits <= MAX_BITS;
}

static ExprRange range_of_type(char sign, uint32_t bits) {
    uint32_t digits = sign == 's' ? bits - 1 : bits > 63 ? 63 : bits;
    int64_t most = digits == 63 ? INT64_MAX : (INT64_C(1) << digits) - 1;
    return (ExprRange){sign == 's' ? -most - 1 : 0, most};
}

static bool parse_range(const char *text, ExprRange *out) {
    char *end;
    long long lo = strtoll(text, &end, 0);
    if (end == text)
        return false;
    out->lo = out->hi = lo;
    if (!*end)
        return true;
    if (strncmp(end, "..", 2))
        return false;
    const char *from = end + 2;
    out->hi = strtoll(from, &end, 0);
    return end != from && !*end && out->hi >= lo;
}

static bool read_list(Arena *arena, Diag *diag, const YamlNode *list,
                      ExprDomain *out) {
    int64_t *value = ARENA_ARRAY(arena, int64_t, list->n + 1);
    bool ok = list->n > 0 && list->n <= 64;
    if (!ok)
        diag_error(diag, list->loc, "a list of values has 1 to 64");
    for (uint32_t i = 0; i < list->n && ok; i++) {
        ok = yaml_i64(diag, list->item[i], &value[i]);
        if (ok && i && value[i] <= value[i - 1]) {
            diag_error(diag, list->item[i]->loc, "values must rise");
            ok = false;
        }
    }
    if (ok)
        *out = (ExprDomain){.range = {value[0], value[list->n - 1]},
                            .n = list->n,
                            .list = value};
    return ok;
}

/* ---- fields ---- */

bool format_read_domain(Arena *arena, Diag *diag, YamlNode *node,
                        ExprName *name) {
    char sign;
    uint32_t bits;
    const char *text;
    node->used = true;
    if (node->kind == YAML_LIST)
        return read_list(arena, diag, node, &name->domain);
    if (!yaml_str(diag, node, &text))
        return false;
    name->is_flag = !strcmp(text, "flag");
    name->is_real = !strcmp(text, "f32");
    if (name->is_flag)
        name->domain.range = (ExprRange){0, 1};
    else if (name->is_real)
        name->domain.range = (ExprRange){0, UINT32_MAX};
    else if (parse_type(text, &sign, &bits))
        name->domain.range = range_of_type(sign, bits);
    else if (!parse_range(text, &name->domain.range)) {
        diag_error(diag, node->loc,
                   "`%s` is no type: u8, s24, flag, f32, 0..9 or [1, 3]", text);
        return false;
    }
    return true;
}

/* ---- fields ---- */

static const FormatTable *find_table(const ItemReader *r, const char *name) {
    for (uint32_t i = 0; i < r->format->n_tables; i++)
        if (!strcmp(r->format->table[i].name, name))
            return &r->format->table[i];
    return NULL;
}

/* EXPR, TABLE, or {LABEL: EXPR}. */
static bool read_value(ItemReader *r, YamlNode *node, Field *field) {
    node->used = true;
    if (node->kind == YAML_MAP && node->n == 1) {
        field->label = node->key[0];
        node = yaml_get(node, field->label);
    }
    const char *text;
    if (!yaml_str(r->diag, node, &text))
        return false;
    field->loc = node->loc;
    field->table = find_table(r, text);
    if (field->table)
        return true;
    field->value = format_read_expr(r, node);
    return field->value != NULL;
}

typedef VEC(Field) Fields;

/* "w5.15..31", "w0.3", "addr": a part, and bits of it. */
static bool parse_bits(ItemReader *r, const Item *item, const char *key,
                       Loc loc, Field *field) {
    size_t len = strcspn(key, ".");
    uint32_t part = 0;
    while (part < item->n_parts && (strlen(item->part[part].name) != len ||
                                    strncmp(item->part[part].name, key, len)))
        part++;
    if (part == item->n_parts) {
        diag_error(r->diag, loc, "the word has no part %.*s", (int)len, key);
        return false;
    }
    uint32_t width = item->part[part].width, lo = 0, hi = width - 1;
    char *end = (char *)(uintptr_t)(key + len);
    if (*end == '.') {
        lo = hi = (uint32_t)strtoul(key + len + 1, &end, 10);
        if (!strncmp(end, "..", 2))
            hi = (uint32_t)strtoul(end + 2, &end, 10);
    }
    if (*end || end[-1] == '.' || hi < lo || hi >= width) {
        diag_error(r->diag, loc,
                   "`%s`: bits are PART.FIRST..LAST, within 0..%u", key,
                   width - 1);
        return false;
    }
    field->part = part;
    field->lo = lo;
    field->width = hi - lo + 1;
    return true;
}

static void add_field(ItemReader *r, Item *item, const Field *field, Loc loc,
                      Fields *out) {
    uint64_t bits = low_bits(field->width) << field->lo;
    for (uint32_t i = 0; i < out->n; i++) {
        const Field *other = &out->at[i];
        if (other->part == field->part &&
            (low_bits(other->width) << other->lo) & bits)
            diag_error(r->diag, loc, "%s overlaps %s", field->label,
                       other->label);
    }
    item->part[field->part].named |= bits;
    vec_push(r->arena, out, *field);
}

static void read_bits(ItemReader *r, YamlNode *map, Item *item) {
    Fields fields = {0};
    if (!map || !yaml_is(r->diag, map, YAML_MAP))
        return;
    for (uint32_t i = 0; i < map->n; i++) {
        Field field = {.late = NOT_LATE, .label = map->key[i]};
        YamlNode *node = yaml_get(map, map->key[i]);
        if (parse_bits(r, item, map->key[i], map->key_loc[i], &field) &&
            read_value(r, node, &field))
            add_field(r, item, &field, map->key_loc[i], &fields);
        else
            node->used = true;
    }
    item->n_fields = fields.n;
    item->field = fields.at;
}

/* ---- words ---- */

/* "12 x 64", or "64": how many parts of how many bits. */
static bool read_size(ItemReader *r, YamlNode *node, Item *item) {
    const char *text;
    if (!yaml_str(r->diag, node, &text))
        return false;
    char *end;
    unsigned long n = 1, width = strtoul(text, &end, 10);
    if (!strncmp(end, " x ", 3)) {
        n = width;
        width = strtoul(end + 3, &end, 10);
    }
    if (*end || n < 1 || n > MAX_PARTS || width < 1 || width > MAX_BITS) {
        diag_error(r->diag, node->loc,
                   "`%s` is no size of a word: 12 x 64, up to %d parts of up "
                   "to %d bits",
                   text, MAX_PARTS, MAX_BITS);
        return false;
    }
    item->n_parts = (uint32_t)n;
    item->part = ARENA_ARRAY(r->arena, Part, n);
    for (uint32_t i = 0; i < n; i++)
        item->part[i] = (Part){.name = arena_printf(r->arena, "w%u", i),
                               .width = (uint32_t)width};
    return true;
}

static bool read_named_parts(ItemReader *r, YamlNode *map, Item *item) {
    if (!yaml_is(r->diag, map, YAML_MAP) || !map->n || map->n > MAX_PARTS)
        return false;
    item->n_parts = map->n;
    item->part = ARENA_ARRAY(r->arena, Part, map->n);
    for (uint32_t i = 0; i < map->n; i++) {
        YamlNode *node = yaml_get(map, map->key[i]);
        item->part[i].name = map->key[i];
        if (!yaml_u32(r->diag, node, &item->part[i].width))
            return false;
        if (!item->part[i].width || item->part[i].width > MAX_BITS) {
            diag_error(r->diag, node->loc, "a part has 1 to %d bits", MAX_BITS);
            return false;
        }
    }
    return true;
}

/* A word's parts, its own or those of all words. */
static bool read_parts(ItemReader *r, YamlNode *word, YamlNode *words,
                       Item *item) {
    YamlNode *const from[] = {word, words};
    for (int i = 0; i < 2; i++) {
        YamlNode *parts = yaml_get(from[i], "parts");
        YamlNode *size = yaml_get(from[i], "size");
        if (parts)
            return read_named_parts(r, parts, item);
        if (size)
            return read_size(r, size, item);
    }
    diag_error(r->diag, word->loc, "this word has no size: 2 x 64");
    return false;
}

/* The word's number among those that stay in force. */
static uint32_t state_number(ItemReader *r, const YamlNode *word) {
    HwFormat *format = r->format;
    uint32_t i = 0;
    while (i < format->n_states && format->state[i] != word)
        i++;
    if (i == format->n_states) {
        vec_push(r->arena, &r->states, word);
        format->state = r->states.at;
        format->n_states = r->states.n;
    }
    return i;
}

Item format_read_word(ItemReader *r, YamlNode *word, YamlNode *words) {
    Item item = {.kind = ITEM_BITS, .loc = word->loc, .state = EXPR_NONE};
    bool stays = false;
    if (!yaml_is(r->diag, word, YAML_MAP))
        return item;
    yaml_bool(r->diag, yaml_get(word, "state"), &stays);
    if (stays)
        item.state = state_number(r, word);
    YamlNode *bits = yaml_need(r->diag, word, "bits");
    if (read_parts(r, word, words, &item))
        read_bits(r, bits, &item);
    else if (bits)
        bits->used = true;
    return item;
}

/* ---- numbers ---- */

struct NumberType {
    const char *name;
    uint32_t width;
    bool is_signed;
};

static const NumberType number_types[] = {
    {"u8", 8, false},   {"u16", 16, false}, {"u32", 32, false},
    {"u64", 64, false}, {"s8", 8, true},    {"s16", 16, true},
    {"s32", 32, true},  {"s64", 64, true},  {"f32", 32, false},
};
enum { N_NUMBER_TYPES = sizeof number_types / sizeof *number_types };

const NumberType *format_number_type(const YamlNode *map) {
    for (int i = 0; i < N_NUMBER_TYPES; i++)
        if (yaml_child(map, number_types[i].name, strlen(number_types[i].name)))
            return &number_types[i];
    return NULL;
}

Item format_read_numbers(ItemReader *r, YamlNode *map, const NumberType *type) {
    Item item = {.kind = ITEM_BITS, .loc = map->loc, .state = EXPR_NONE};
    YamlNode *node = yaml_get(map, type->name);
    uint32_t n = node->kind == YAML_LIST ? node->n : 1;
    node->used = true;
    if (n < 1 || n > MAX_PARTS) {
        diag_error(r->diag, node->loc, "1 to %d numbers", MAX_PARTS);
        return item;
    }
    item.part = ARENA_ARRAY(r->arena, Part, n);
    item.field = ARENA_ARRAY(r->arena, Field, n);
    item.n_parts = n;
    for (uint32_t i = 0; i < n; i++) {
        Field field = {.part = i,
                       .late = NOT_LATE,
                       .width = type->width,
                       .is_signed = type->is_signed};
        YamlNode *value = node->kind == YAML_LIST ? node->item[i] : node;
        item.part[i] = (Part){.width = type->width};
        if (read_value(r, value, &field)) {
            item.part[i].named = low_bits(type->width);
            item.field[item.n_fields++] = field;
        }
    }
    return item;
}

Item format_read_own_word(ItemReader *r, YamlNode *map, YamlNode *size) {
    Item item = {.kind = ITEM_BITS, .loc = map->loc, .state = EXPR_NONE};
    YamlNode *bits = yaml_need(r->diag, map, "bits");
    if (read_size(r, size, &item))
        read_bits(r, bits, &item);
    return item;
}
