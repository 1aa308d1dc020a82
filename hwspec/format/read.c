/* read.c - names, tables, rows and the container from YAML.
 *
 * Input: the tree of a hwspec. Output: HwFormat, planned. Order: names first,
 * since expressions refuse what they do not know; then `let`, each after those
 * that it names; then tables, rows, the container.
 */
#include "hwspec/format/read.h"

#include "hwspec/format/format.h"
#include "hwspec/insn.h"

#include <string.h>

enum { MAX_ROWS = 1024, MAX_EXTENTS = 8 };

static const char *const host_op_name[] = {
#define HW_HOST_OP(name, doc) #name,
#include "hwspec/host_ops.def"
#undef HW_HOST_OP
    NULL};

/* ---- names ---- */

static bool ends_in_extent(const char *name) {
    static const char *const last[] = {".w", ".h", ".c"};
    size_t len = strlen(name);
    for (int i = 0; i < 3 && len > 2; i++)
        if (!strcmp(name + len - 2, last[i]))
            return strncmp(name, "pad.", 4) && !strstr(name, ".pad.");
    return false;
}

/* Meanings that every machine has: those of instructions that are numbers. */
static void add_standard(ExprNames *names) {
    for (int f = 0; f < HW_F_COUNT; f++) {
        HwFieldKind kind = hw_field_kind((HwField)f);
        ExprName name = {.name = hw_field_name[f], .kind = EXPR_MEANING};
        name.is_flag = kind == HW_FLAG;
        int64_t least = ends_in_extent(name.name);
        name.domain.range =
            (ExprRange){least, name.is_flag ? 1 : (int64_t)UINT32_MAX};
        if (kind != HW_STR)
            expr_add(names, &name);
    }
}

static uint32_t add_label(ExprNames *names, const char *what, const char *of) {
    const char *text = arena_printf(names->arena, "%s(%s)", what, of);
    uint32_t found = expr_find(names, text);
    ExprName name = {.name = text,
                     .kind = EXPR_MEANING,
                     .domain = {.range = {0, INT64_C(1) << 40}}};
    return found == EXPR_NONE ? expr_add(names, &name) : found;
}

static void add_labels(ExprNames *names, const YamlNode *sections) {
    for (uint32_t i = 0; sections && i < sections->n; i++) {
        if (sections->kind != YAML_MAP)
            return;
        add_label(names, "at", sections->key[i]);
        add_label(names, "size", sections->key[i]);
    }
}

static uint32_t extents_of(const YamlNode *of) {
    return !of ? 0 : of->kind == YAML_LIST ? of->n : 1;
}

static void read_words(Arena *arena, Diag *diag, const YamlNode *list,
                       ExprName *name) {
    if (!list || !yaml_is(diag, list, YAML_LIST) || !list->n)
        return;
    const char **word = ARENA_ARRAY(arena, const char *, list->n);
    for (uint32_t i = 0; i < list->n; i++) {
        word[i] = "";
        yaml_str(diag, list->item[i], &word[i]);
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(word[k], word[i]))
                diag_error(diag, list->item[i]->loc, "%s stands here twice",
                           word[i]);
    }
    name->n_words = list->n;
    name->word = word;
    name->domain = (ExprDomain){.range = {0, (int64_t)list->n - 1}};
}

static void put_name(ExprNames *names, Diag *diag, const ExprName *name) {
    uint32_t there = expr_find(names, name->name);
    if (there == EXPR_NONE)
        expr_add(names, name);
    else if (names->list.at[there].loc.line)
        diag_error(diag, name->loc, "%s is a name already", name->name);
    else
        names->list.at[there] = *name; /* a standard one, told again */
}

static bool is_plain_name(const char *name) {
    const char *letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    return *name && strchr(letters, *name) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_."
                        "0123456789") == strlen(name);
}

static void read_meaning(Arena *arena, Diag *diag, ExprNames *names,
                         const YamlNode *map, uint32_t i) {
    YamlNode *node = yaml_get(map, map->key[i]);
    ExprName name = {.name = map->key[i],
                     .loc = map->key_loc[i],
                     .kind = EXPR_MEANING,
                     .domain = {.range = {0, UINT32_MAX}}};
    const YamlNode *of = NULL;
    if (!is_plain_name(name.name + (*name.name == '.')))
        diag_error(diag, name.loc, "`%s` cannot be a meaning", name.name);
    if (node->kind == YAML_MAP) {
        YamlNode *type = yaml_get(node, "type");
        if (type)
            format_read_domain(arena, diag, type, &name);
        read_words(arena, diag, yaml_get(node, "words"), &name);
        YamlNode *step = yaml_get(node, "step");
        if (yaml_i64(diag, step, &name.domain.step) && name.domain.step < 1)
            diag_error(diag, step->loc, "a step is 1 or more");
        of = yaml_get(node, "of");
        yaml_get(node, "doc");
    } else {
        format_read_domain(arena, diag, node, &name);
    }
    name.n_extents = extents_of(of);
    if (name.n_extents > MAX_EXTENTS) {
        diag_error(diag, of->loc, "more than %d extents", MAX_EXTENTS);
        name.n_extents = 0;
    }
    if (of) {
        name.kind = EXPR_VECTOR;
        name.extent = ARENA_ARRAY(arena, const Expr *, name.n_extents + 1);
    }
    put_name(names, diag, &name);
}

static bool is_map(Diag *diag, const YamlNode *node) {
    return node && yaml_is(diag, node, YAML_MAP);
}

/* What a vector's indices go up to: after `let`, which these may name. */
static void read_extents(ItemReader *r, const YamlNode *meanings) {
    for (uint32_t i = 0; i < meanings->n; i++) {
        uint32_t number = expr_find(r->format->names, meanings->key[i]);
        YamlNode *of = meanings->item[i]->kind == YAML_MAP
                           ? yaml_get(meanings->item[i], "of")
                           : NULL;
        if (!of || number == EXPR_NONE)
            continue;
        uint32_t n = r->format->names->list.at[number].n_extents;
        const Expr **extent = ARENA_ARRAY(r->arena, const Expr *, n + 1);
        for (uint32_t k = 0; k < n; k++)
            extent[k] =
                format_read_expr(r, of->kind == YAML_LIST ? of->item[k] : of);
        r->format->names->list.at[number].extent = extent;
    }
}

/* ---- let ---- */

typedef enum LetState { LET_NEW, LET_OPEN, LET_DONE } LetState;

typedef struct Lets {
    ItemReader *r;
    const YamlNode *map;
    LetState *state;
    const uint32_t *path; /* of those that are open */
    uint32_t depth;
} Lets;

static uint32_t let_at(const YamlNode *map, const char *at, size_t len) {
    for (uint32_t i = 0; i < map->n; i++)
        if (strlen(map->key[i]) == len && !strncmp(map->key[i], at, len))
            return i;
    return map->n;
}

static void tell_circle(const Lets *l, const uint32_t *path, uint32_t depth,
                        uint32_t again) {
    Text text = text_new(l->r->arena);
    uint32_t from = 0;
    while (path[from] != again)
        from++;
    for (uint32_t i = from; i < depth; i++)
        text_addf(&text, "%s -> ", l->map->key[path[i]]);
    text_add(&text, l->map->key[again]);
    diag_error(l->r->diag, l->map->item[again]->loc, "circle: %s",
               text_str(&text));
}

/* Parses a `let` after those that its text names. */
static void read_let(Lets *l, uint32_t i, uint32_t *path, uint32_t depth) {
    const char *text;
    YamlNode *node = yaml_get(l->map, l->map->key[i]);
    l->state[i] = LET_OPEN;
    path[depth] = i;
    bool ok = yaml_str(l->r->diag, node, &text);
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.0123456789";
    for (const char *at = ok ? text : ""; *at;) {
        size_t len = strspn(at, letters);
        uint32_t other = len ? let_at(l->map, at, len) : l->map->n;
        at += len ? len : 1;
        if (other == l->map->n || l->state[other] == LET_DONE)
            continue;
        if (l->state[other] == LET_OPEN) {
            tell_circle(l, path, depth + 1, other);
            ok = false;
        } else {
            read_let(l, other, path, depth + 1);
        }
    }
    uint32_t number = expr_find(l->r->format->names, l->map->key[i]);
    const Expr *e = ok ? format_read_expr(l->r, node) : NULL;
    l->r->format->names->list.at[number].let = e;
    l->state[i] = LET_DONE;
}

enum { MAX_LETS = 256 };

static void read_lets(ItemReader *r, const YamlNode *map) {
    uint32_t path[MAX_LETS + 1];
    if (!is_map(r->diag, map))
        return;
    if (map->n > MAX_LETS) {
        diag_error(r->diag, map->loc, "more than %d names of `let`", MAX_LETS);
        return;
    }
    for (uint32_t i = 0; i < map->n; i++) {
        ExprName name = {
            .name = map->key[i], .loc = map->key_loc[i], .kind = EXPR_LET};
        if (!is_plain_name(name.name))
            diag_error(r->diag, name.loc, "`%s` cannot be a name", name.name);
        if (expr_find(r->format->names, name.name) != EXPR_NONE) {
            diag_error(r->diag, name.loc, "%s is a name already", name.name);
            return;
        }
        expr_add(r->format->names, &name);
    }
    Lets l = {
        .r = r, .map = map, .state = ARENA_ARRAY(r->arena, LetState, map->n)};
    for (uint32_t i = 0; i < map->n; i++)
        if (l.state[i] == LET_NEW)
            read_let(&l, i, path, 0);
}

/* Bytes of memories, by the path that also sets them. */
static void add_sizes(ItemReader *r, const HwSpec *spec) {
    for (uint32_t i = 0; i < spec->n_memories; i++) {
        const HwMemory *m = &spec->memory[i];
        int64_t size = m->size > INT64_MAX ? INT64_MAX : (int64_t)m->size;
        const char *name = arena_printf(r->arena, "memories.%s.size", m->name);
        expr_add(r->format->names, &(ExprName){.name = name,
                                               .loc = m->loc,
                                               .kind = EXPR_CONSTANT,
                                               .domain.range = {size, size},
                                               .num = size});
    }
}

/* ---- tables ---- */

/* A number, or a word of the meaning. */
static bool read_constant(ItemReader *r, uint32_t meaning, YamlNode *node,
                          int64_t *out) {
    const ExprName *name = &r->format->names->list.at[meaning];
    uint32_t word;
    if (!name->n_words)
        return yaml_i64(r->diag, node, out);
    const char **list = ARENA_ARRAY(r->arena, const char *, name->n_words + 1);
    memcpy(list, name->word, name->n_words * sizeof *list);
    bool ok = yaml_enum(r->diag, node, list, &word);
    *out = ok ? word : 0;
    return ok;
}

static uint32_t meaning_named(ItemReader *r, const char *name, Loc loc) {
    const ExprNames *names = r->format->names;
    uint32_t number = expr_find(names, name);
    if (number != EXPR_NONE && names->list.at[number].kind == EXPR_MEANING)
        return number;
    const char *like = expr_suggest(names, name);
    diag_error(r->diag, loc, "unknown meaning %s%s%s", name, like ? ": " : "",
               like ? arena_printf(r->arena, "%s?", like) : "");
    return EXPR_NONE;
}

static FormatLine read_line(ItemReader *r, YamlNode *map) {
    FormatLine line = {0};
    if (!is_map(r->diag, map))
        return line;
    uint32_t *name = ARENA_ARRAY(r->arena, uint32_t, map->n + 1);
    int64_t *num = ARENA_ARRAY(r->arena, int64_t, map->n + 1);
    yaml_i64(r->diag, yaml_need(r->diag, map, "is"), &line.is);
    for (uint32_t i = 0; i < map->n; i++) {
        YamlNode *node = yaml_get(map, map->key[i]);
        if (!strcmp(map->key[i], "is"))
            continue;
        name[line.n] = meaning_named(r, map->key[i], map->key_loc[i]);
        if (name[line.n] != EXPR_NONE &&
            read_constant(r, name[line.n], node, &num[line.n]))
            line.n++;
    }
    line.name = name;
    line.num = num;
    return line;
}

/* Do both say the same meanings? */
static bool names_alike(const FormatLine *a, const FormatLine *b) {
    bool same = a->n == b->n;
    for (uint32_t i = 0; i < a->n && same; i++)
        same = a->name[i] == b->name[i];
    return same;
}

static bool lines_alike(const FormatLine *a, const FormatLine *b) {
    bool same = a->n == b->n;
    for (uint32_t i = 0; i < a->n && same; i++)
        same = a->name[i] == b->name[i] && a->num[i] == b->num[i];
    return same;
}

static FormatTable read_table(ItemReader *r, const char *name, Loc loc,
                              YamlNode *list) {
    FormatTable table = {.name = name, .loc = loc};
    if (!list || !yaml_is(r->diag, list, YAML_LIST))
        return table;
    FormatLine *line = ARENA_ARRAY(r->arena, FormatLine, list->n + 1);
    for (uint32_t i = 0; i < list->n; i++) {
        line[i] = read_line(r, list->item[i]);
        if (!names_alike(&line[0], &line[i]))
            diag_error(r->diag, list->item[i]->loc,
                       "all lines of %s say the same meanings in one order",
                       name);
        for (uint32_t k = 0; k < i; k++)
            if (line[k].is == line[i].is || lines_alike(&line[k], &line[i]))
                diag_error(r->diag, list->item[i]->loc,
                           line[k].is == line[i].is
                               ? "%lld stands in %s twice"
                               : "%lld has the same meanings in %s as another",
                           (long long)line[i].is, name);
    }
    table.n = list->n;
    table.line = line;
    return table;
}

static void read_tables(ItemReader *r, const YamlNode *map) {
    if (!is_map(r->diag, map))
        return;
    FormatTable *table = ARENA_ARRAY(r->arena, FormatTable, map->n);
    for (uint32_t i = 0; i < map->n; i++)
        table[i] = read_table(r, map->key[i], map->key_loc[i],
                              yaml_get(map, map->key[i]));
    r->format->n_tables = map->n;
    r->format->table = table;
}

/* ---- rows ---- */

static bool is_op(const char *name) {
    for (int i = 0; i < HW_OP_COUNT; i++)
        if (!strcmp(hw_op_name[i], name))
            return true;
    for (int i = 0; host_op_name[i]; i++)
        if (!strcmp(host_op_name[i], name))
            return true;
    return false;
}

static const char *const *read_ops(ItemReader *r, YamlNode *node) {
    uint32_t n = node && node->kind == YAML_LIST ? node->n : 1;
    const char **ops = ARENA_ARRAY(r->arena, const char *, n + 1);
    for (uint32_t i = 0; node && i < n; i++) {
        YamlNode *item = node->kind == YAML_LIST ? node->item[i] : node;
        if (yaml_str(r->diag, item, &ops[i]) && !is_op(ops[i]))
            diag_error(r->diag, item->loc,
                       "`%s` is no operation (hwspec/ops.def, "
                       "hwspec/host_ops.def)",
                       ops[i]);
    }
    return ops;
}

typedef VEC(FormatRule) Rules;

static void read_rules(ItemReader *r, const YamlNode *map, bool always,
                       Rules *out) {
    if (!is_map(r->diag, map))
        return;
    for (uint32_t i = 0; i < map->n; i++) {
        FormatRule rule = {.loc = map->key_loc[i], .always = always};
        const ExprNames *names = r->format->names;
        rule.name = expr_find(names, map->key[i]);
        if (rule.name == EXPR_NONE ||
            names->list.at[rule.name].kind != EXPR_VECTOR)
            rule.name = meaning_named(r, map->key[i], map->key_loc[i]);
        rule.value = format_read_expr(r, yaml_get(map, map->key[i]));
        if (rule.value && rule.name != EXPR_NONE)
            vec_push(r->arena, out, rule);
    }
}

static void read_requirements(ItemReader *r, const YamlNode *list,
                              ProgRow *row) {
    if (!list || !yaml_is(r->diag, list, YAML_LIST))
        return;
    const Expr **requirement = ARENA_ARRAY(r->arena, const Expr *, list->n + 1);
    for (uint32_t i = 0; i < list->n; i++) {
        const Expr *e = format_read_expr(r, list->item[i]);
        if (e && !e->is_flag)
            diag_error(r->diag, e->loc, "a requirement is a condition");
        else if (e)
            requirement[row->n_requirements++] = e;
    }
    row->requirement = requirement;
}

/* What rows and the container have in common. */
static void read_parts(ItemReader *r, YamlNode *map, const char *items,
                       ProgRow *row) {
    Rules rules = {0};
    format_read_items(r, yaml_need(r->diag, map, items), &row->n, &row->item);
    read_rules(r, yaml_get(map, "implies"), true, &rules);
    read_rules(r, yaml_get(map, "default"), false, &rules);
    row->n_rules = rules.n;
    row->rule = rules.at;
    read_requirements(r, yaml_get(map, "require"), row);
}

static ProgRow read_row(ItemReader *r, const char *name, Loc loc,
                        YamlNode *map) {
    ProgRow row = {.name = name, .loc = loc};
    if (!is_plain_name(name))
        diag_error(r->diag, loc, "`%s` cannot be a row's name", name);
    YamlNode *node = yaml_get(map, "node");
    row.has_number = yaml_i64(r->diag, node, &row.number);
    row.ops = read_ops(r, yaml_need(r->diag, map, "for"));
    YamlNode *holds = yaml_get(map, "holds");
    row.holds = holds ? format_read_expr(r, holds) : NULL;
    read_parts(r, map, "body", &row);
    format_read_prices(r, yaml_get(map, "time"), &row.time);
    format_read_touches(r, map, &row);
    return row;
}

bool format_is_row(const YamlNode *row) {
    return row->kind == YAML_MAP && yaml_child(row, "body", 4);
}

static void read_rows(ItemReader *r, const YamlNode *map) {
    if (!map || map->kind != YAML_MAP || map->n > MAX_ROWS)
        return; /* rows.c says so */
    HwFormat *format = r->format;
    format->row = ARENA_ARRAY(r->arena, ProgRow, map->n);
    for (uint32_t i = 0; i < map->n; i++) {
        if (!format_is_row(map->item[i]))
            continue;
        ProgRow row = read_row(r, map->key[i], map->key_loc[i],
                               yaml_get(map, map->key[i]));
        for (uint32_t k = 0; k < format->n_rows; k++)
            if (row.has_number && format->row[k].has_number &&
                format->row[k].number == row.number)
                diag_error(r->diag, row.loc, "%s has the same `node` as %s",
                           row.name, format->row[k].name);
        format->row[format->n_rows++] = row;
    }
}

/* ---- the whole ---- */

static void read_container(ItemReader *r, YamlNode *map) {
    HwFormat *format = r->format;
    ProgRow *file = &format->file;
    *file = (ProgRow){.name = "container", .loc = map->loc};
    if (!is_map(r->diag, map))
        return;
    yaml_str(r->diag, yaml_need(r->diag, map, "name"), &file->name);
    r->in_container = true;
    read_parts(r, map, "items", file);
    static const char *const orders[] = {"little", "big", NULL};
    uint32_t order = 0;
    yaml_enum(r->diag, yaml_get(map, "order"), orders, &order);
    format->is_big = order == 1;
    format_read_columns(r, yaml_get(map, "columns"));
    YamlNode *lacks = yaml_get(map, "lacks");
    const char *name;
    format->lacks = EXPR_NONE;
    if (yaml_str(r->diag, lacks, &name))
        format->lacks = meaning_named(r, name, lacks->loc);
    format->may_lack = format->lacks != EXPR_NONE;
}

static void plan_all(ItemReader *r) {
    HwFormat *format = r->format;
    format_plan(r->arena, r->diag, format, &format->file, NULL);
    for (uint32_t i = 0; i < format->n_rows; i++)
        format_plan(r->arena, r->diag, format, &format->row[i], &format->file);
}

const HwFormat *format_read(Arena *arena, Diag *diag, const HwSpec *spec,
                            YamlNode *root) {
    YamlNode *container = yaml_get(root, "container");
    if (!container)
        return NULL;
    uint32_t errors = diag_errors(diag);
    HwFormat *format = ARENA_NEW(arena, HwFormat);
    ExprNames *names = format->names = expr_names(arena);
    ItemReader r = {
        .arena = arena, .diag = diag, .format = format, .root = root};
    YamlNode *meanings = yaml_get(root, "meanings");
    add_standard(names);
    add_labels(names, yaml_get(root, "sections"));
    format->node =
        expr_add(names, &(ExprName){.name = "node",
                                    .domain = {.range = {0, UINT32_MAX}}});
    format->body_at = add_label(names, "at", "body");
    format->body_size = add_label(names, "size", "body");
    format->n_nodes = add_label(names, "count", "nodes");
    format->file_size = add_label(names, "size", "file");
    if (is_map(diag, meanings))
        for (uint32_t i = 0; i < meanings->n; i++)
            read_meaning(arena, diag, names, meanings, i);
    format_lay_names(&r, spec);
    add_sizes(&r, spec);
    read_lets(&r, yaml_get(root, "let"));
    if (meanings && meanings->kind == YAML_MAP)
        read_extents(&r, meanings);
    read_tables(&r, yaml_get(root, "tables"));
    format_read_issue(&r, yaml_get(root, "issue"));
    read_rows(&r, yaml_get(root, "instructions"));
    format_read_templates(&r, spec);
    read_container(&r, container);
    format_read_engine_prices(&r, spec); /* over names that records make */
    format_check_shared(&r);
    if (diag_errors(diag) == errors)
        plan_all(&r);
    return diag_errors(diag) == errors ? format : NULL;
}
