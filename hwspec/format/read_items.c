/* read_items.c - items from YAML: sections, records, padding, and what holds
 * other items; see docs/hwspec.md, "Containers".
 *
 * Words, sections and records are written once and used in several rows, each
 * time with the row's own meanings, so each use is read anew.
 */
#include "hwspec/format/read_bits.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16, MAX_ITEMS = 4096, MAX_INDICES = 8 };

const Expr *format_read_expr(ItemReader *r, YamlNode *node) {
    const char *text;
    if (!node || !yaml_str(r->diag, node, &text))
        return NULL;
    Loc loc = node->loc;
    loc.col += node->quoted ? 1 : 0;
    return expr_parse(r->format->names, r->diag, text, loc, &r->place);
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
        item = format_read_word(r, found, yaml_get(r->root, "words"));
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
    const NumberType *type = format_number_type(map);
    YamlNode *word = yaml_get(map, "word");
    if (yaml_child(map, "align", 5) || yaml_child(map, "fill", 4)) {
        *out =
            read_fill(r, map, yaml_child(map, "align", 5) ? "align" : "fill");
        return out->count != NULL;
    }
    if (type) {
        *out = format_read_numbers(r, map, type);
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
    *out = format_read_own_word(r, map, word);
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
