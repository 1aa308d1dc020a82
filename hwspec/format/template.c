/* template.c - templates from YAML; see hwspec/template.h.
 *
 * Names that steps set need no declaration: they are found first, so that
 * expressions anywhere may use them. Vectors are `meanings` with `of`.
 */
#include "hwspec/template.h"

#include "hwspec/format/format.h"

#include <string.h>

enum { MAX_TEMPLATES = 512, MAX_STEPS = 4096 };

typedef struct Reader {
    ItemReader *r;
    const HwSpec *spec;
    HwTemplates *all;
    uint32_t depth;
} Reader;

/* ---- names ---- */

static void declare(ItemReader *r, const YamlNode *map) {
    for (uint32_t i = 0; map->kind == YAML_MAP && i < map->n; i++) {
        const char *key = map->key[i];
        if (strchr(key, '[') || expr_find(r->format->names, key) != EXPR_NONE)
            continue;
        expr_add(r->format->names,
                 &(ExprName){.name = key,
                             .loc = map->key_loc[i],
                             .kind = EXPR_MEANING,
                             .domain = {.range = {INT64_MIN, INT64_MAX}}});
    }
}

static void declare_all(ItemReader *r, const YamlNode *node) {
    static const char *const keys[] = {"set",    "with",      "each",
                                       "get",    "scale",     "divide",
                                       "choose", "constants", NULL};
    if (!node || node->kind == YAML_SCALAR)
        return;
    for (uint32_t i = 0; i < node->n; i++) {
        for (int k = 0; node->kind == YAML_MAP && keys[k]; k++)
            if (!strcmp(node->key[i], keys[k]))
                declare(r, node->item[i]);
        declare_all(r, node->item[i]);
    }
}

/* ---- steps ---- */

static const Expr *expr_of(Reader *t, YamlNode *map, const char *key) {
    YamlNode *node = yaml_get(map, key);
    return node ? format_read_expr(t->r, node) : NULL;
}

/* NAME, or NAME[INDEX]. */
static bool read_name(Reader *t, const char *key, Loc loc, TplSet *out) {
    ExprNames *names = t->r->format->names;
    const Expr *e = expr_parse(names, t->r->diag, key, loc, &t->r->place);
    if (!e)
        return false;
    out->name = e->name;
    bool is_vector = e->kind == EXPR_ELEMENT && e->n == 1;
    out->index = is_vector ? e->arg[0] : NULL;
    if (is_vector ||
        (e->kind == EXPR_NAME && names->list.at[e->name].kind == EXPR_MEANING))
        return true;
    diag_error(t->r->diag, loc, "`%s` cannot be set", key);
    return false;
}

/* A map of names; a value is an expression, or two where `two`. */
static void read_sets(Reader *t, YamlNode *map, bool two, TplStep *out) {
    if (!map || !yaml_is(t->r->diag, map, YAML_MAP))
        return;
    TplSet *set = ARENA_ARRAY(t->r->arena, TplSet, map->n + 1);
    for (uint32_t i = 0; i < map->n; i++) {
        YamlNode *value = yaml_get(map, map->key[i]);
        TplSet *s = &set[out->n_sets];
        if (!read_name(t, map->key[i], map->key_loc[i], s))
            continue;
        if (!two) {
            s->value = format_read_expr(t->r, value);
        } else if (yaml_is(t->r->diag, value, YAML_LIST) && value->n == 2) {
            s->value = format_read_expr(t->r, value->item[0]);
            s->by = format_read_expr(t->r, value->item[1]);
        } else {
            diag_error(t->r->diag, value->loc, "two expressions are needed");
        }
        out->n_sets++;
    }
    out->set = set;
}

static void read_memories(Reader *t, YamlNode *node, TplView *out) {
    const char *name = "";
    uint32_t n = node->kind == YAML_LIST ? node->n : 1;
    uint32_t *memory = ARENA_ARRAY(t->r->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        YamlNode *one = node->kind == YAML_LIST ? node->item[i] : node;
        if (!yaml_str(t->r->diag, one, &name))
            continue;
        while (memory[i] < t->spec->n_memories &&
               strcmp(t->spec->memory[memory[i]].name, name))
            memory[i]++;
        if (memory[i] == t->spec->n_memories)
            diag_error(t->r->diag, one->loc, "there is no memory `%s`", name);
    }
    out->n = n;
    out->memory = memory;
}

void format_read_type(ItemReader *r, YamlNode *map, TplType *out) {
    static const char *const names[] = {"s8", "s32", "u8", "s16", "u16", NULL};
    static const TplType types[] = {
        {1, false}, {4, false}, {1, true}, {2, false}, {2, true}};
    uint32_t type = 0;
    yaml_enum(r->diag, yaml_need(r->diag, map, "type"), names, &type);
    *out = types[type];
}

static void read_view(Reader *t, YamlNode *map, const char *key, TplView *out) {
    YamlNode *memory = yaml_need(t->r->diag, map, key);
    out->there = true;
    if (!memory)
        return;
    read_memories(t, memory, out);
    format_read_type(t->r, map, &out->type);
    out->which = expr_of(t, map, "which");
    out->when = expr_of(t, map, "when");
    out->at = expr_of(t, map, "at");
    out->row = expr_of(t, map, "row");
    out->column = expr_of(t, map, "column");
    if (!out->at)
        diag_error(t->r->diag, map->loc, "`at` is needed");
    if ((out->n > 1) != (out->which != NULL))
        diag_error(t->r->diag, map->loc,
                   "`which` chooses one of several memories");
}

static void read_views(Reader *t, YamlNode *map, TplStep *out) {
    static const char *const keys[] = {"from", "by", "plus", "to"};
    static const char *const rounds[] = {"half_even", "half_up", "floor", NULL};
    YamlNode *rounding = yaml_get(map, "round");
    uint64_t bits = 0;
    uint32_t round = TPL_HALF_EVEN;
    if (!yaml_is(t->r->diag, map, YAML_MAP))
        return;
    for (int i = 0; i < TPL_VIEWS; i++) {
        YamlNode *view = yaml_get(map, keys[i]);
        if (view && yaml_is(t->r->diag, view, YAML_MAP))
            read_view(t, view, "memory", &out->view[i]);
    }
    out->rows = expr_of(t, map, "rows");
    out->columns = expr_of(t, map, "columns");
    out->depth = expr_of(t, map, "depth");
    out->scale = expr_of(t, map, "scale");
    out->carry = expr_of(t, map, "carry");
    out->shift = expr_of(t, map, "shift");
    if (rounding)
        yaml_enum(t->r->diag, rounding, rounds, &round);
    out->round = (TplRound)round;
    out->least = expr_of(t, map, "least");
    out->most = expr_of(t, map, "most");
    out->below = expr_of(t, map, "below");
    out->above = expr_of(t, map, "above");
    out->add = expr_of(t, map, "add");
    if (yaml_u64(t->r->diag, yaml_get(map, "bits"), &bits))
        out->bits = bits >= 1 && bits <= 32 ? (uint32_t)bits : 32;
    bool whole =
        out->view[TPL_TO].there && out->rows && out->columns &&
        (out->kind == TPL_COPY ||
         (out->depth && out->view[TPL_FROM].there && out->view[TPL_BY].there));
    if (!whole)
        diag_error(t->r->diag, map->loc,
                   "`rows`, `columns` and `to` are needed, of a product "
                   "`depth`, `from` and `by`, too");
}

static void read_steps(Reader *t, YamlNode *list, uint32_t *n,
                       const TplStep **out);

static void read_body(Reader *t, YamlNode *map, TplStep *out) {
    read_steps(t, yaml_need(t->r->diag, map, "do"), &out->n, &out->step);
    YamlNode *other = yaml_get(map, "else");
    if (other && out->kind == TPL_WHEN)
        read_steps(t, other, &out->n_others, &out->other);
}

/* Of several ranges the first is the outermost: each holds the next. */
static void nest(Reader *t, const YamlNode *node, TplStep *out) {
    if (!out->n_sets)
        diag_error(t->r->diag, node->loc, "a range is needed");
    while (out->n_sets > 1) {
        TplStep *inner = ARENA_NEW(t->r->arena, TplStep);
        *inner = *out;
        inner->set = &out->set[out->n_sets - 1];
        inner->n_sets = 1;
        out->n = 1;
        out->step = inner;
        out->n_sets--;
    }
}

static void read_target(Reader *t, YamlNode *map, TplStep *out) {
    const char *name;
    YamlNode *node = yaml_get(map, "run");
    YamlNode *with = yaml_get(map, "with");
    if (with)
        read_sets(t, with, false, out);
    if (!yaml_str(t->r->diag, node, &name))
        return;
    out->target = EXPR_NONE;
    uint32_t n = t->all->n_named + t->r->format->n_rows; /* no ways */
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(t->all->at[i].name, name))
            out->target = i;
    if (out->target == EXPR_NONE)
        diag_error(t->r->diag, node->loc,
                   "there is no template or instruction `%s`", name);
}

/* A row of instructions. */
static void read_row(Reader *t, YamlNode *map, YamlNode *node, TplStep *out) {
    const char *name;
    YamlNode *with = yaml_get(map, "with");
    const HwFormat *format = t->r->format;
    if (with)
        read_sets(t, with, false, out);
    if (!yaml_str(t->r->diag, node, &name))
        return;
    while (out->target < format->n_rows &&
           strcmp(format->row[out->target].name, name))
        out->target++;
    if (out->target == format->n_rows)
        diag_error(t->r->diag, node->loc, "there is no instruction `%s`", name);
}

static void read_cell(Reader *t, YamlNode *map, const char *key, TplStep *out) {
    if (!yaml_is(t->r->diag, map, YAML_MAP))
        return;
    read_view(t, map, key, &out->view[TPL_FROM]);
    out->value = expr_of(t, map, "value");
}

static void read_get(Reader *t, YamlNode *map, TplStep *out) {
    TplSet *set = ARENA_ARRAY(t->r->arena, TplSet, 1);
    if (!yaml_is(t->r->diag, map, YAML_MAP))
        return;
    if (map->n != 1)
        diag_error(t->r->diag, map->loc, "one name is needed");
    else if (read_name(t, map->key[0], map->key_loc[0], set))
        read_cell(t, yaml_get(map, map->key[0]), "from", out);
    out->n_sets = 1;
    out->set = set;
}

static void read_step(Reader *t, YamlNode *map, TplStep *out) {
    static const char *const keys[] = {
        "set",  "each",    "when",  "run",    "require", "get",   "put",
        "copy", "product", "scale", "divide", "emit",    "forget"};
    uint32_t kind = 0;
    out->loc = map->loc;
    if (!yaml_is(t->r->diag, map, YAML_MAP))
        return;
    while (kind <= TPL_FORGET && !yaml_get(map, keys[kind]))
        kind++;
    if (kind > TPL_FORGET) {
        diag_error(t->r->diag, map->loc, "this is no step of a template");
        return;
    }
    YamlNode *node = yaml_get(map, keys[kind]);
    out->kind = (TplKind)kind;
    switch (out->kind) {
    case TPL_SET:
        read_sets(t, node, false, out);
        break;
    case TPL_EACH:
        read_sets(t, node, false, out);
        read_body(t, map, out);
        nest(t, node, out);
        break;
    case TPL_WHEN:
        out->value = format_read_expr(t->r, node);
        read_body(t, map, out);
        break;
    case TPL_REQUIRE:
        out->value = format_read_expr(t->r, node);
        break;
    case TPL_RUN:
        read_target(t, map, out);
        break;
    case TPL_GET:
        read_get(t, node, out);
        break;
    case TPL_PUT:
        read_cell(t, node, "to", out);
        break;
    case TPL_COPY:
    case TPL_PRODUCT:
        read_views(t, node, out);
        break;
    case TPL_SCALE:
    case TPL_DIVIDE:
        out->carry = expr_of(t, map, "carry");
        read_sets(t, node, true, out);
        break;
    case TPL_EMIT:
    case TPL_FORGET:
        read_row(t, map, node, out);
        break;
    }
}

static void read_steps(Reader *t, YamlNode *list, uint32_t *n,
                       const TplStep **out) {
    *n = 0;
    if (!list || !yaml_is(t->r->diag, list, YAML_LIST))
        return;
    if (list->n > MAX_STEPS || t->depth > YAML_MAX_DEPTH) {
        diag_error(t->r->diag, list->loc, "more than %d steps", MAX_STEPS);
        return;
    }
    TplStep *step = ARENA_ARRAY(t->r->arena, TplStep, list->n + 1);
    t->depth++;
    for (uint32_t i = 0; i < list->n; i++)
        read_step(t, list->item[i], &step[i]);
    t->depth--;
    *n = list->n;
    *out = step;
}

/* ---- no recursion ---- */

typedef enum Mark { MARK_NEW, MARK_OPEN, MARK_DONE } Mark;

static void check_calls(Reader *t, uint8_t *mark, uint32_t number);

static void check_steps(Reader *t, uint8_t *mark, uint32_t n,
                        const TplStep *step) {
    for (uint32_t i = 0; i < n; i++) {
        if (step[i].kind != TPL_RUN || step[i].target == EXPR_NONE)
            ;
        else if (mark[step[i].target] == MARK_OPEN)
            diag_error(t->r->diag, step[i].loc, "`%s` would run itself",
                       t->all->at[step[i].target].name);
        else
            check_calls(t, mark, step[i].target);
        check_steps(t, mark, step[i].n, step[i].step);
        check_steps(t, mark, step[i].n_others, step[i].other);
    }
}

static void check_calls(Reader *t, uint8_t *mark, uint32_t number) {
    if (mark[number] != MARK_NEW)
        return;
    mark[number] = MARK_OPEN;
    check_steps(t, mark, t->all->at[number].n, t->all->at[number].step);
    mark[number] = MARK_DONE;
}

/* ---- the whole ---- */

typedef struct Sources {
    YamlNode *named, *emit, *ways;
    const YamlNode *rows;
} Sources;

static uint32_t entries(const YamlNode *map) {
    return map && map->kind == YAML_MAP ? map->n : 0;
}

/* The steps of a template: a named one, what a row does, what a way tries and
 * does. */
static YamlNode *steps_of(const Sources *s, const HwTemplates *all,
                          uint32_t i) {
    uint32_t ways = all->n - 2 * entries(s->ways) - 2;
    if (i < all->n_named)
        return yaml_get(s->named, s->named->key[i]);
    if (i + 2 >= all->n)
        return s->emit ? yaml_get(s->emit, i + 1 < all->n ? "begin" : "end")
                       : NULL;
    const YamlNode *map = i < ways ? s->rows : s->ways;
    YamlNode *row = map ? yaml_get(map, all->at[i].name) : NULL;
    const char *key = i < ways ? "does" : (i - ways) % 2 ? "do" : "try";
    return row && row->kind == YAML_MAP ? yaml_get(row, key) : NULL;
}

static void name_templates(const Sources *s, const HwFormat *format,
                           HwTemplates *all) {
    for (uint32_t i = 0; i < all->n_named; i++)
        all->at[i] =
            (Template){.name = s->named->key[i], .loc = s->named->key_loc[i]};
    Template *at = all->at + all->n_named;
    for (uint32_t i = 0; i < format->n_rows; i++)
        *at++ =
            (Template){.name = format->row[i].name, .loc = format->row[i].loc};
    for (uint32_t i = 0; i < 2 * entries(s->ways); i++)
        *at++ = (Template){.name = s->ways->key[i / 2],
                           .loc = s->ways->key_loc[i / 2]};
    *at++ = (Template){.name = "begin"};
    *at++ = (Template){.name = "end"};
}

/* Does a row say what it does? */
static bool any_does(const YamlNode *rows) {
    bool any = false;
    for (uint32_t i = 0; rows && i < rows->n; i++)
        any = any || (rows->item[i]->kind == YAML_MAP &&
                      yaml_get(rows->item[i], "does"));
    return any;
}

void format_read_templates(ItemReader *r, const HwSpec *spec) {
    YamlNode *emit = yaml_get(r->root, "emit");
    Sources s = {.named = yaml_get(r->root, "templates"),
                 .emit = emit,
                 .rows = yaml_get(r->root, "instructions")};
    HwFormat *format = r->format;
    if ((!s.named && !emit && !any_does(s.rows)) ||
        (s.named && !yaml_is(r->diag, s.named, YAML_MAP)) ||
        (emit && !yaml_is(r->diag, emit, YAML_MAP)))
        return;
    s.ways = emit ? yaml_get(emit, "ways") : NULL;
    if (entries(s.named) + entries(s.ways) > MAX_TEMPLATES) {
        diag_error(r->diag, s.named ? s.named->loc : emit->loc,
                   "more than %d templates", MAX_TEMPLATES);
        return;
    }
    HwTemplates *all = ARENA_NEW(r->arena, HwTemplates);
    uint32_t first = entries(s.named) + format->n_rows;
    all->n_named = entries(s.named);
    all->n = first + 2 * entries(s.ways) + 2;
    all->at = ARENA_ARRAY(r->arena, Template, all->n + 1);
    name_templates(&s, format, all);
    if (emit)
        declare_all(r, emit);
    for (uint32_t i = 0; i < first; i++)
        declare_all(r, steps_of(&s, all, i));
    Reader t = {.r = r, .spec = spec, .all = all};
    for (uint32_t i = 0; i < all->n; i++)
        read_steps(&t, steps_of(&s, all, i), &all->at[i].n, &all->at[i].step);
    uint8_t *mark = ARENA_ARRAY(r->arena, uint8_t, all->n + 1);
    for (uint32_t i = 0; i < all->n; i++)
        check_calls(&t, mark, i);
    format->templates = all;
    format_read_emit(r, spec, emit, first);
}
