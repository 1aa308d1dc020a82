/* emit.c - `emit` of a hwspec; see hwspec/emit.h. */
#include "hwspec/emit.h"

#include "hwspec/format/format.h"

#include <string.h>

enum { MAX_WAYS = 64, MAX_INDICES = 8, MAX_CHOICES = 8, MAX_LIST = 256 };

typedef struct Reader {
    ItemReader *r;
} Reader;

static const Expr *expr_of(Reader *t, YamlNode *map, const char *key,
                           bool needed) {
    YamlNode *node =
        needed ? yaml_need(t->r->diag, map, key) : yaml_get(map, key);
    return node ? format_read_expr(t->r, node) : NULL;
}

static uint32_t name_of(Reader *t, const char *name, Loc loc) {
    const ExprNames *names = t->r->format->names;
    uint32_t number = expr_find(names, name);
    if (number != EXPR_NONE && names->list.at[number].kind == EXPR_MEANING)
        return number;
    diag_error(t->r->diag, loc, "`%s` cannot be set", name);
    return 0;
}

/* ---- parts of a way ---- */

static void read_ops(Reader *t, YamlNode *node, EmitWay *out) {
    const char *name;
    uint32_t n = node && node->kind == YAML_LIST ? node->n : 1;
    for (uint32_t i = 0; node && i < n; i++) {
        YamlNode *item = node->kind == YAML_LIST ? node->item[i] : node;
        int op = 0;
        if (!yaml_str(t->r->diag, item, &name))
            continue;
        while (op < HW_OP_COUNT && strcmp(hw_op_name[op], name))
            op++;
        if (op < HW_OP_COUNT)
            out->runs[op] = true;
        else
            diag_error(t->r->diag, item->loc,
                       "`%s` is no operation (hwspec/ops.def)", name);
    }
}

static const Expr *const *read_conditions(Reader *t, YamlNode *list,
                                          uint32_t *n) {
    const Expr **out = NULL;
    *n = 0;
    if (!list || !yaml_is(t->r->diag, list, YAML_LIST))
        return NULL;
    if (list->n > MAX_LIST) {
        diag_error(t->r->diag, list->loc, "more than %d conditions", MAX_LIST);
        return NULL;
    }
    out = ARENA_ARRAY(t->r->arena, const Expr *, list->n + 1);
    for (uint32_t i = 0; i < list->n; i++) {
        const Expr *e = format_read_expr(t->r, list->item[i]);
        if (e && !e->is_flag)
            diag_error(t->r->diag, e->loc, "a condition is needed");
        else if (e)
            out[(*n)++] = e;
    }
    return out;
}

static void read_indices(Reader *t, YamlNode *map, EmitConstant *out) {
    uint32_t *index = ARENA_ARRAY(t->r->arena, uint32_t, MAX_INDICES);
    const Expr **extent = ARENA_ARRAY(t->r->arena, const Expr *, MAX_INDICES);
    if (!map || !yaml_is(t->r->diag, map, YAML_MAP))
        return;
    if (map->n > MAX_INDICES) {
        diag_error(t->r->diag, map->loc, "more than %d indices", MAX_INDICES);
        return;
    }
    for (uint32_t i = 0; i < map->n; i++) {
        index[i] = name_of(t, map->key[i], map->key_loc[i]);
        extent[i] = format_read_expr(t->r, yaml_get(map, map->key[i]));
    }
    out->n = map->n;
    out->index = index;
    out->extent = extent;
}

static void read_constants(Reader *t, YamlNode *map, EmitWay *out) {
    if (!map || !yaml_is(t->r->diag, map, YAML_MAP))
        return;
    EmitConstant *list = ARENA_ARRAY(t->r->arena, EmitConstant, map->n + 1);
    for (uint32_t i = 0; i < map->n; i++) {
        YamlNode *one = yaml_get(map, map->key[i]);
        EmitConstant *c = &list[i];
        *c = (EmitConstant){.loc = map->key_loc[i]};
        c->at = name_of(t, map->key[i], map->key_loc[i]);
        if (!yaml_is(t->r->diag, one, YAML_MAP))
            continue;
        format_read_type(t->r, one, &c->type);
        read_indices(t, yaml_need(t->r->diag, one, "each"), c);
        c->value = expr_of(t, one, "value", true);
    }
    out->n_constants = map->n;
    out->constant = list;
}

static void read_choices(Reader *t, YamlNode *map, EmitWay *out) {
    if (!map || !yaml_is(t->r->diag, map, YAML_MAP))
        return;
    if (map->n > MAX_CHOICES) {
        diag_error(t->r->diag, map->loc, "more than %d choices", MAX_CHOICES);
        return;
    }
    EmitChoice *list = ARENA_ARRAY(t->r->arena, EmitChoice, map->n + 1);
    for (uint32_t i = 0; i < map->n; i++) {
        YamlNode *one = yaml_get(map, map->key[i]);
        list[i] = (EmitChoice){.loc = map->key_loc[i]};
        list[i].name = name_of(t, map->key[i], map->key_loc[i]);
        if (!yaml_is(t->r->diag, one, YAML_MAP))
            continue;
        list[i].most = expr_of(t, one, "most", true);
        list[i].step = expr_of(t, one, "step", false);
    }
    out->n_choices = map->n;
    out->choice = list;
}

/* `try` and `do` were read as templates before (template.c). */
static void read_way(Reader *t, YamlNode *map, EmitWay *out) {
    read_ops(t, yaml_need(t->r->diag, map, "for"), out);
    out->require =
        read_conditions(t, yaml_get(map, "requires"), &out->n_requires);
    read_constants(t, yaml_get(map, "constants"), out);
    read_choices(t, yaml_get(map, "choose"), out);
    out->limit = read_conditions(t, yaml_get(map, "limits"), &out->n_limits);
    out->cost = expr_of(t, map, "cost", false);
    yaml_need(t->r->diag, map, "do");
}

static int32_t memory_named(const HwSpec *spec, const char *name) {
    for (uint32_t i = 0; i < spec->n_memories; i++)
        if (!strcmp(spec->memory[i].name, name))
            return (int32_t)i;
    return EMIT_CONSTANTS;
}

static void read_regions(Reader *t, const HwSpec *spec, YamlNode *list,
                         HwEmit *emit) {
    const char *name;
    if (!list || !yaml_is(t->r->diag, list, YAML_LIST))
        return;
    if (list->n * 4 > emit->first)
        diag_error(t->r->diag, list->loc,
                   "their addresses take %u bytes: `first` leaves fewer",
                   list->n * 4);
    EmitRegion *region = ARENA_ARRAY(t->r->arena, EmitRegion, list->n + 1);
    for (uint32_t i = 0; i < list->n; i++) {
        if (!yaml_str(t->r->diag, list->item[i], &name))
            continue;
        region[i].memory = memory_named(spec, name);
        if (region[i].memory == EMIT_CONSTANTS && strcmp(name, "constants"))
            diag_error(t->r->diag, list->item[i]->loc,
                       "`%s` is no memory, nor `constants`", name);
    }
    emit->n_regions = list->n;
    emit->region = region;
}

void format_read_emit(ItemReader *r, const HwSpec *spec, const YamlNode *map,
                      uint32_t first) {
    static const char *const kinds[] = {"layers", "listing", NULL};
    YamlNode *ways = map ? yaml_get(map, "ways") : NULL;
    HwEmit *emit = ARENA_NEW(r->arena, HwEmit);
    Reader t = {r};
    uint32_t kind = 0;
    *emit = (HwEmit){0};
    if (!map)
        return;
    yaml_enum(r->diag, yaml_get(map, "of"), kinds, &kind);
    emit->of_listing = kind == 1;
    yaml_u64(r->diag, yaml_get(map, "first"), &emit->first);
    read_regions(&t, spec, yaml_get(map, "regions"), emit);
    if (!ways || !yaml_is(r->diag, ways, YAML_MAP)) {
        diag_error(r->diag, map->loc, "`ways` is needed, a map");
        return;
    }
    if (ways->n > MAX_WAYS) {
        diag_error(r->diag, ways->loc, "more than %d ways", MAX_WAYS);
        return;
    }
    EmitWay *way = ARENA_ARRAY(r->arena, EmitWay, ways->n + 1);
    for (uint32_t i = 0; i < ways->n; i++) {
        YamlNode *one = yaml_get(ways, ways->key[i]);
        way[i] = (EmitWay){.name = ways->key[i],
                           .loc = ways->key_loc[i],
                           .attempt = first + 2 * i,
                           .steps = first + 2 * i + 1};
        if (yaml_is(r->diag, one, YAML_MAP))
            read_way(&t, one, &way[i]);
    }
    emit->n = ways->n;
    emit->way = way;
    emit->begin = first + 2 * ways->n;
    emit->end = emit->begin + 1;
    r->format->emit = emit;
}

/* ---- for those who emit ---- */

static const HwEmit *emit_of(const HwSpec *spec, bool listing) {
    const HwEmit *emit = spec->format ? spec->format->emit : NULL;
    return emit && emit->of_listing == listing ? emit : NULL;
}

const HwEmit *program_emit(const HwSpec *spec) {
    return emit_of(spec, false);
}

const HwEmit *program_emit_listing(const HwSpec *spec) {
    return emit_of(spec, true);
}

const ProgRow *program_emit_row(const HwSpec *spec, uint32_t row) {
    return &spec->format->row[row];
}

const Expr *program_emit_holds(const HwSpec *spec, uint32_t row) {
    return spec->format->row[row].holds;
}

ProgNode program_emit_node(const TemplateRun *run, Arena *arena, uint32_t row) {
    const ProgRow *at = &run->spec->format->row[row];
    ProgNode node = program_node(arena, run->spec, at);
    for (uint32_t i = 0; i < at->n_meanings; i++) {
        node.scope.meaning[i].set = run->env.set[at->meaning[i]];
        node.scope.meaning[i].num = run->env.num[at->meaning[i]];
    }
    for (uint32_t i = 0; i < at->n_vectors; i++) {
        const ExprVector *v = &run->env.vector[at->vector[i]];
        node.scope.vector[i].set = v->set;
        node.scope.vector[i].n = v->n;
        node.scope.vector[i].byte = v->byte;
        node.scope.vector[i].num = v->num;
    }
    return node;
}
