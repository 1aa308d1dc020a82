/* read_items.c - items from YAML: numbers, words, sections, records, padding,
 * and what holds other items; see docs/hwspec.md, "Containers".
 *
 * Words, sections and records are written once and used in several rows, each
 * time with the row's own meanings, so each use is read anew.
 */
#include "hwspec/format/format.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_DEPTH = 16,
    MAX_PARTS = 256,
    MAX_ITEMS = 4096,
    MAX_INDICES = 8,
    MAX_BITS = 64
};

const Expr *format_read_expr(ItemReader *r, YamlNode *node) {
    const char *text;
    if (!node || !yaml_str(r->diag, node, &text))
        return NULL;
    Loc loc = node->loc;
    loc.col += node->quoted ? 1 : 0;
    return expr_parse(r->format->names, r->diag, text, loc, &r->place);
}

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

static Item read_word(ItemReader *r, YamlNode *word, YamlNode *words) {
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

typedef struct NumberType {
    const char *name;
    uint32_t width;
    bool is_signed;
} NumberType;

static const NumberType number_types[] = {
    {"u8", 8, false},   {"u16", 16, false}, {"u32", 32, false},
    {"u64", 64, false}, {"s8", 8, true},    {"s16", 16, true},
    {"s32", 32, true},  {"s64", 64, true},  {"f32", 32, false},
};
enum { N_NUMBER_TYPES = sizeof number_types / sizeof *number_types };

static const NumberType *number_type(const YamlNode *map) {
    for (int i = 0; i < N_NUMBER_TYPES; i++)
        if (yaml_child(map, number_types[i].name, strlen(number_types[i].name)))
            return &number_types[i];
    return NULL;
}

static Item read_numbers(ItemReader *r, YamlNode *map, const NumberType *type) {
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

/* ---- padding ---- */

static Item read_fill(ItemReader *r, YamlNode *map, const char *key) {
    Item item = {.kind = ITEM_FILL,
                 .loc = map->loc,
                 .to_multiple = !strcmp(key, "align"),
                 .gap = EXPR_NONE};
    item.count = format_read_expr(r, yaml_get(map, key));
    YamlNode *gap = yaml_get(map, "gap");
    const char *name;
    if (!gap || !yaml_str(r->diag, gap, &name))
        return item;
    item.gap = expr_find(r->format->names, name);
    const ExprName *at =
        item.gap == EXPR_NONE ? NULL : &r->format->names->list.at[item.gap];
    if (!at || at->kind != EXPR_MEANING || !item.to_multiple)
        diag_error(r->diag, gap->loc,
                   "`gap` names a meaning, behind `align`: the bytes that "
                   "there are");
    return item;
}

/* ---- what is used by name ---- */

static YamlNode *shared(ItemReader *r, const char *kind, const char *name) {
    YamlNode *map = yaml_get(r->root, kind);
    if (!map || map->kind != YAML_MAP)
        return NULL;
    YamlNode *node = yaml_child(map, name, strlen(name));
    if (node)
        node->used = true;
    return node;
}

static bool is_broken(const ItemReader *r, const YamlNode *node) {
    for (uint32_t i = 0; i < r->broken.n; i++)
        if (r->broken.at[i] == node)
            return true;
    return false;
}

static void read_list_of_items(ItemReader *r, YamlNode *node, uint32_t *n,
                               Item **out);

/* A section's or record's items. */
static Item read_group(ItemReader *r, YamlNode *node, const char *name) {
    Item item = {.kind = ITEM_NAMED,
                 .loc = node->loc,
                 .name = name,
                 .at = EXPR_NONE,
                 .size = EXPR_NONE};
    if (is_broken(r, node) || r->depth == MAX_DEPTH) {
        if (r->depth == MAX_DEPTH)
            diag_error(r->diag, node->loc, "items nested too deep");
        return item;
    }
    uint32_t errors = diag_errors(r->diag);
    r->depth++;
    read_list_of_items(r, node, &item.n, &item.item);
    r->depth--;
    if (diag_errors(r->diag) > errors)
        vec_push(r->arena, &r->broken, node);
    return item;
}

static Item read_section(ItemReader *r, YamlNode *node, const char *name) {
    Item item = read_group(r, node, name);
    const ExprNames *names = r->format->names;
    item.at = expr_find(names, arena_printf(r->arena, "at(%s)", name));
    item.size = expr_find(names, arena_printf(r->arena, "size(%s)", name));
    return item;
}

/* "range(in)", "range(input[i])": the record with the operand's name in front
 * of what starts with a dot. */
static bool read_record(ItemReader *r, const YamlNode *use, Item *out) {
    const char *text = use->text;
    size_t len = strcspn(text, "("), end = strlen(text);
    if (!text[len] || text[end - 1] != ')')
        return false;
    YamlNode *node = shared(r, "records", arena_strndup(r->arena, text, len));
    if (!node)
        return false;
    char *operand = arena_strndup(r->arena, text + len + 1, end - len - 2);
    char *open = strchr(operand, '[');
    ExprPlace outer = r->place;
    r->place.prefix = operand;
    r->place.suffix = NULL;
    if (open) {
        size_t inner = strlen(open);
        *open = 0;
        if (open[inner - 1] != ']')
            return false;
        open[inner - 1] = 0;
        r->place.suffix = open + 1;
    }
    *out = read_group(r, node, NULL);
    r->place = outer;
    return true;
}

static Item read_use(ItemReader *r, YamlNode *node) {
    Item item = {.kind = ITEM_NAMED, .at = EXPR_NONE, .size = EXPR_NONE};
    YamlNode *found;
    if (!strcmp(node->text, "body") && r->in_nodes)
        return (Item){.kind = ITEM_BODY, .loc = node->loc};
    if ((found = shared(r, "sections", node->text)))
        return read_section(r, found, node->text);
    if ((found = shared(r, "words", node->text))) {
        if (is_broken(r, found))
            return item;
        uint32_t errors = diag_errors(r->diag);
        item = read_word(r, found, yaml_get(r->root, "words"));
        item.name = node->text;
        if (diag_errors(r->diag) > errors)
            vec_push(r->arena, &r->broken, found);
        return item;
    }
    if (!read_record(r, node, &item))
        diag_error(r->diag, node->loc,
                   "`%s` is no word, section or RECORD(OPERAND)", node->text);
    return item;
}

/* ---- items that hold others ---- */

/* Bytes of one vector by the indices as they are. */
static bool is_plain(const ItemReader *r, const Item *each) {
    const Item *in = each->item;
    if (each->n != 1 || in->kind != ITEM_BITS || in->n_parts != 1 ||
        in->part->width != 8 || in->n_fields != 1 || !in->field->value ||
        in->field->is_signed || in->field->value->kind != EXPR_ELEMENT ||
        in->field->value->n != each->n_indices)
        return false;
    for (uint32_t i = 0; i < each->n_indices; i++)
        if (in->field->value->arg[i]->kind != EXPR_NAME ||
            in->field->value->arg[i]->name != each->index[i])
            return false;
    const ExprDomain *domain =
        &r->format->names->list.at[in->field->value->name].domain;
    return domain->range.lo >= 0 && domain->range.hi <= UINT8_MAX;
}

static bool read_index(ItemReader *r, const char *name, Loc loc,
                       uint32_t *out) {
    ExprNames *names = r->format->names;
    *out = expr_find(names, name);
    if (*out == EXPR_NONE)
        *out = expr_add(names, &(ExprName){.name = name, .kind = EXPR_INDEX});
    if (names->list.at[*out].kind == EXPR_INDEX)
        return true;
    diag_error(r->diag, loc, "%s is a name already, it cannot be an index",
               name);
    return false;
}

static bool read_indices(ItemReader *r, YamlNode *map, Item *item,
                         ExprPlace *inner) {
    if (!yaml_is(r->diag, map, YAML_MAP))
        return false;
    if (!map->n || map->n + inner->n_indices > MAX_INDICES) {
        diag_error(r->diag, map->loc, "`each` has 1 to %d indices in all",
                   MAX_INDICES);
        return false;
    }
    uint32_t *index = ARENA_ARRAY(r->arena, uint32_t, MAX_INDICES);
    const Expr **extent = ARENA_ARRAY(r->arena, const Expr *, map->n);
    uint32_t outer = inner->n_indices;
    for (uint32_t i = 0; i < outer; i++)
        index[i] = inner->index[i];
    for (uint32_t i = 0; i < map->n; i++) {
        extent[i] = format_read_expr(r, yaml_get(map, map->key[i]));
        if (!extent[i] ||
            !read_index(r, map->key[i], map->key_loc[i], &index[outer + i]))
            return false;
    }
    item->n_indices = map->n;
    item->index = index + outer;
    item->extent = extent;
    inner->n_indices = outer + map->n;
    inner->index = index;
    return true;
}

static bool read_content(ItemReader *r, YamlNode *map, Item *out);

/* `do: [items]`, or one item in the same map. */
static void read_inner(ItemReader *r, YamlNode *map, Item *item) {
    YamlNode *list = yaml_get(map, "do");
    if (list) {
        read_list_of_items(r, list, &item->n, &item->item);
        return;
    }
    item->item = ARENA_ARRAY(r->arena, Item, 1);
    item->n = read_content(r, map, item->item);
}

static bool read_each(ItemReader *r, YamlNode *map, Item *out) {
    YamlNode *each = yaml_get(map, "each");
    ExprPlace outer = r->place;
    bool nodes = each->kind == YAML_SCALAR && !strcmp(each->text, "nodes");
    *out = (Item){.kind = nodes ? ITEM_NODES : ITEM_EACH, .loc = map->loc};
    each->used = true;
    if (nodes && (!r->in_container || r->in_nodes || r->place.n_indices)) {
        diag_error(r->diag, each->loc,
                   "`each: nodes` stands in a container's own items");
        return false;
    }
    if (!nodes && !read_indices(r, each, out, &r->place))
        return false;
    r->in_nodes = r->in_nodes || nodes;
    read_inner(r, map, out);
    r->in_nodes = r->in_nodes && !nodes;
    out->is_plain = !nodes && is_plain(r, out);
    r->place = outer;
    return true;
}

static bool read_when(ItemReader *r, YamlNode *map, Item *out) {
    *out = (Item){.kind = ITEM_WHEN, .loc = map->loc};
    out->count = format_read_expr(r, yaml_get(map, "when"));
    if (!out->count)
        return false;
    if (!out->count->is_flag)
        diag_error(r->diag, out->count->loc, "`when` takes a condition");
    read_inner(r, map, out);
    return true;
}

/* What a map by itself is. False after an error. */
static bool read_content(ItemReader *r, YamlNode *map, Item *out) {
    const NumberType *type = number_type(map);
    YamlNode *word = yaml_get(map, "word");
    if (yaml_child(map, "align", 5) || yaml_child(map, "fill", 4)) {
        *out =
            read_fill(r, map, yaml_child(map, "align", 5) ? "align" : "fill");
        return out->count != NULL;
    }
    if (type) {
        *out = read_numbers(r, map, type);
        return true;
    }
    if (!word) {
        diag_error(r->diag, map->loc,
                   "an item is a number (u32: EXPR), a word, `align`, `fill`, "
                   "`each` or `when`");
        return false;
    }
    word->used = true;
    if (word->kind == YAML_SCALAR && !yaml_child(map, "bits", 4)) {
        *out = read_use(r, word);
        return true;
    }
    *out = (Item){.kind = ITEM_BITS, .loc = map->loc, .state = EXPR_NONE};
    YamlNode *bits = yaml_need(r->diag, map, "bits");
    if (read_size(r, word, out))
        read_bits(r, bits, out);
    return true;
}

static bool read_item(ItemReader *r, YamlNode *node, Item *out) {
    node->used = true;
    if (node->kind == YAML_SCALAR) {
        *out = read_use(r, node);
        return true;
    }
    if (!yaml_is(r->diag, node, YAML_MAP))
        return false;
    if (yaml_child(node, "each", 4))
        return read_each(r, node, out);
    if (yaml_child(node, "when", 4))
        return read_when(r, node, out);
    return read_content(r, node, out);
}

static void ignore(YamlNode *node) {
    node->used = true;
    for (uint32_t i = 0; i < node->n; i++)
        ignore(node->item[i]);
}

static void read_list_of_items(ItemReader *r, YamlNode *node, uint32_t *n,
                               Item **out) {
    bool is_list = node->kind == YAML_LIST;
    uint32_t count = is_list ? node->n : 1;
    node->used = true;
    if (count > MAX_ITEMS) {
        diag_error(r->diag, node->loc, "more than %d items", MAX_ITEMS);
        return;
    }
    *out = ARENA_ARRAY(r->arena, Item, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        YamlNode *item = is_list ? node->item[i] : node;
        uint32_t errors = diag_errors(r->diag);
        if (read_item(r, item, &(*out)[*n]))
            ++*n;
        if (diag_errors(r->diag) > errors)
            ignore(item);
    }
}

void format_read_items(ItemReader *r, YamlNode *node, uint32_t *n, Item **out) {
    if (node)
        read_list_of_items(r, node, n, out);
}

void format_check_shared(ItemReader *r) {
    static const char *const kinds[] = {"words", "sections", "records"};
    for (int i = 0; i < 3; i++) {
        const YamlNode *map = yaml_get(r->root, kinds[i]);
        for (uint32_t k = 0; map && k < map->n; k++) {
            if (!yaml_is(r->diag, map, YAML_MAP))
                return;
            if (map->item[k]->used)
                continue;
            /* what another file brings along may be left out */
            if (strcmp(map->key_loc[k].file, r->root->loc.file) != 0) {
                ignore(map->item[k]);
                continue;
            }
            diag_error(r->diag, map->key_loc[k], "nothing uses %s of `%s`",
                       map->key[k], kinds[i]);
            ignore(map->item[k]);
        }
    }
}
