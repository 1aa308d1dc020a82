/* issue.c - which queue an instruction of a file stands in, what it waits for,
 * and which cells it touches.
 *
 * Input: `issue` of a hwspec, and `queue`, `reads`, `writes` of its rows.
 * Output: of a program, each node's queue, masks of queues and touches. Masks
 * are meanings of the node; touches are expressions, in which a meaning that
 * the row does not have is what the last row said that has it.
 */
#include "hwspec/format/format.h"

#include <string.h>

static void list_touches(ItemReader *r, YamlNode *list, bool writes,
                         ProgRow *row) {
    if (!list || !yaml_is(r->diag, list, YAML_LIST))
        return;
    FormatTouch *touch =
        ARENA_ARRAY(r->arena, FormatTouch, row->n_touches + list->n + 1);
    if (row->n_touches)
        memcpy(touch, row->touch, row->n_touches * sizeof *touch);
    for (uint32_t i = 0; i < list->n; i++) {
        YamlNode *map = list->item[i];
        if (!yaml_is(r->diag, map, YAML_MAP))
            continue;
        FormatTouch t = {.writes = writes};
        YamlNode *size = yaml_get(map, "size"), *count = yaml_get(map, "count");
        t.at = format_read_expr(r, yaml_need(r->diag, map, "at"));
        t.size = size ? format_read_expr(r, size) : NULL;
        t.count = count ? format_read_expr(r, count) : NULL;
        t.step =
            count ? format_read_expr(r, yaml_need(r->diag, map, "step")) : NULL;
        touch[row->n_touches++] = t;
    }
    row->touch = touch;
}

void format_read_touches(ItemReader *r, YamlNode *map, ProgRow *row) {
    YamlNode *queue = yaml_get(map, "queue");
    const char *name;
    row->queue = EXPR_NONE;
    if (yaml_str(r->diag, queue, &name)) {
        for (uint32_t i = 0; i < r->format->n_queues; i++)
            if (!strcmp(r->format->queue[i], name))
                row->queue = i;
        if (row->queue == EXPR_NONE)
            diag_error(r->diag, queue->loc, "`%s` is none of `issue.queues`",
                       name);
    } else if (r->format->n_queues) {
        diag_error(r->diag, row->loc, "%s has no `queue`", row->name);
    }
    list_touches(r, yaml_get(map, "reads"), false, row);
    list_touches(r, yaml_get(map, "writes"), true, row);
}

static uint32_t mask_named(ItemReader *r, YamlNode *map, const char *key) {
    YamlNode *node = yaml_need(r->diag, map, key);
    const char *name;
    if (!node || !yaml_str(r->diag, node, &name))
        return EXPR_NONE;
    uint32_t number = expr_find(r->format->names, name);
    if (number == EXPR_NONE)
        diag_error(r->diag, node->loc, "unknown meaning %s", name);
    return number;
}

void format_read_issue(ItemReader *r, YamlNode *map) {
    static const char *const kinds[] = {"tokens", NULL};
    static const char *const bits[] = {"own", "others", NULL};
    HwFormat *format = r->format;
    uint32_t kind = 0, own = 1;
    if (!map || !yaml_is(r->diag, map, YAML_MAP))
        return;
    yaml_enum(r->diag, yaml_need(r->diag, map, "kind"), kinds, &kind);
    YamlNode *list = yaml_need(r->diag, map, "queues");
    if (list && yaml_is(r->diag, list, YAML_LIST)) {
        if (list->n < 2 || list->n > PROG_QUEUES)
            diag_error(r->diag, list->loc, "2 to %d queues", PROG_QUEUES);
        const char **name = ARENA_ARRAY(r->arena, const char *, list->n + 1);
        for (uint32_t i = 0; i < list->n; i++) {
            name[i] = "";
            yaml_str(r->diag, list->item[i], &name[i]);
        }
        format->n_queues = list->n < PROG_QUEUES ? list->n : PROG_QUEUES;
        format->queue = name;
    }
    format->waits = mask_named(r, map, "waits");
    format->tells = mask_named(r, map, "tells");
    format->places = yaml_enum(r->diag, yaml_get(map, "placed"), bits, &own);
    format->places_own = own == 0;
}

/* ---- of a program ---- */

const char *const *program_queues(const HwSpec *spec, uint32_t *n) {
    *n = spec->format ? spec->format->n_queues : 0;
    return *n ? spec->format->queue : NULL;
}

bool program_places_tokens(const HwSpec *spec, bool *own) {
    *own = spec->format && spec->format->places_own;
    return spec->format && spec->format->places;
}

void program_set_tokens(const HwSpec *spec, ProgNode *node, int64_t waits,
                        int64_t tells) {
    for (uint32_t i = 0; i < node->scope.n_meanings; i++) {
        ProgMeaning *m = &node->scope.meaning[i];
        uint32_t name = node->row->meaning[i];
        if (name == spec->format->waits)
            *m = (ProgMeaning){m->name, true, waits};
        if (name == spec->format->tells)
            *m = (ProgMeaning){m->name, true, tells};
    }
}

static bool value_of(Arena *arena, Diag *diag, const ProgNode *node,
                     const ExprEnv *env, const Expr *e, int64_t *out) {
    ExprFault fault;
    if (!e || expr_eval(env, e, out, &fault))
        return true;
    diag_error(diag, node->loc, "%s: %s", node->row->name,
               expr_fault_text(arena, env, &fault));
    return false;
}

static void take_meanings(ExprEnv *env, const ProgNode *node) {
    for (uint32_t i = 0; i < node->scope.n_meanings; i++) {
        const ProgMeaning *m = &node->scope.meaning[i];
        if (!m->set)
            continue;
        env->set[node->row->meaning[i]] = true;
        env->num[node->row->meaning[i]] = m->num;
    }
}

static bool touches_of(Arena *arena, Diag *diag, const ProgNode *node,
                       const ExprEnv *env, ProgIssue *out) {
    const ProgRow *row = node->row;
    out->n = row->n_touches;
    out->touch = ARENA_ARRAY(arena, ProgTouch, row->n_touches + 1);
    for (uint32_t i = 0; i < row->n_touches; i++) {
        const FormatTouch *t = &row->touch[i];
        ProgTouch *to = &out->touch[i];
        *to = (ProgTouch){.size = 1, .count = 1, .writes = t->writes};
        if (!value_of(arena, diag, node, env, t->at, &to->at) ||
            !value_of(arena, diag, node, env, t->size, &to->size) ||
            !value_of(arena, diag, node, env, t->count, &to->count) ||
            !value_of(arena, diag, node, env, t->step, &to->step))
            return false;
    }
    return true;
}

const ProgIssue *program_issue(Arena *arena, Diag *diag,
                               const Program *program) {
    const HwFormat *format = program->spec->format;
    ProgIssue *issue = ARENA_ARRAY(arena, ProgIssue, program->n_nodes + 1);
    ExprEnv env = format_env(arena, format);
    for (uint32_t i = 0; i < program->n_nodes; i++) {
        const ProgNode *node = &program->node[i];
        env.set[format->waits] = env.set[format->tells] = false;
        take_meanings(&env, node);
        issue[i].queue = node->row->queue;
        issue[i].waits = env.set[format->waits] ? env.num[format->waits] : 0;
        issue[i].tells = env.set[format->tells] ? env.num[format->tells] : 0;
        if (!touches_of(arena, diag, node, &env, &issue[i]))
            return NULL;
    }
    return issue;
}
