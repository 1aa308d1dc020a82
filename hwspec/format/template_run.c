/* template_run.c - the walk over steps; see template.h. */
#include "hwspec/template.h"

#include "hwspec/format/format.h"

#include <string.h>

enum { MOST_ELEMENTS = 1 << 20 };

const HwTemplates *program_templates(const HwSpec *spec) {
    return spec->format ? spec->format->templates : NULL;
}

uint32_t template_find(const HwSpec *spec, const char *name) {
    const HwTemplates *all = program_templates(spec);
    for (uint32_t i = 0; all && i < all->n; i++)
        if (!strcmp(all->at[i].name, name))
            return i;
    return EXPR_NONE;
}

TemplateRun template_run(Arena *arena, const HwSpec *spec, uint64_t budget,
                         TemplateAct *act, void *context) {
    return (TemplateRun){.arena = arena,
                         .spec = spec,
                         .env = format_env(arena, spec->format),
                         .budget = budget,
                         .act = act,
                         .context = context};
}

bool template_fail(TemplateRun *run, Loc at, const char *why) {
    if (!run->failed) {
        run->failed = why;
        run->at = at;
    }
    return false;
}

bool template_eval(TemplateRun *run, const Expr *e, int64_t absent,
                   int64_t *out) {
    ExprFault fault;
    *out = absent;
    if (!e || expr_eval(&run->env, e, out, &fault))
        return true;
    return template_fail(run, e->loc,
                         expr_fault_text(run->arena, &run->env, &fault));
}

bool template_set(TemplateRun *run, const char *name, int64_t value) {
    uint32_t number = expr_find(run->env.names, name);
    if (number == EXPR_NONE)
        return false;
    run->env.set[number] = true;
    run->env.num[number] = value;
    return true;
}

bool template_set_vector(TemplateRun *run, const char *name, uint32_t n,
                         const int64_t *num) {
    uint32_t number = expr_find(run->env.names, name);
    if (number == EXPR_NONE ||
        run->env.names->list.at[number].kind != EXPR_VECTOR)
        return false;
    run->env.vector[number] = (ExprVector){.set = true, .n = n, .num = num};
    return true;
}

int64_t template_get(const TemplateRun *run, const char *name, int64_t absent) {
    uint32_t number = expr_find(run->env.names, name);
    ExprFault fault;
    int64_t value = absent;
    if (number == EXPR_NONE)
        return absent;
    const ExprName *at = &run->env.names->list.at[number];
    if (at->kind == EXPR_LET)
        return expr_eval(&run->env, at->let, &value, &fault) ? value : absent;
    return run->env.set[number] ? run->env.num[number] : absent;
}

/* Elements that nobody set are 0. */
static bool open_vector(TemplateRun *run, const TplSet *set) {
    ExprVector *v = &run->env.vector[set->name];
    ExprFault fault;
    uint64_t n;
    if (v->set)
        return true;
    if (!format_count(&run->env, set->name, &n, &fault) || n > MOST_ELEMENTS)
        return template_fail(run, set->index->loc, "a vector without a length");
    *v = (ExprVector){.set = true,
                      .n = (uint32_t)n,
                      .num = ARENA_ARRAY(run->arena, int64_t, n + 1)};
    return true;
}

bool template_assign(TemplateRun *run, const TplSet *set, int64_t value) {
    int64_t index;
    if (!set->index) {
        run->env.set[set->name] = true;
        run->env.num[set->name] = value;
        return true;
    }
    if (!open_vector(run, set) || !template_eval(run, set->index, 0, &index))
        return false;
    const ExprVector *v = &run->env.vector[set->name];
    if (index < 0 || index >= v->n)
        return template_fail(run, set->index->loc,
                             "an index beyond its vector");
    ((int64_t *)(uintptr_t)v->num)[index] = value;
    return true;
}

static bool assign_all(TemplateRun *run, const TplStep *step) {
    for (uint32_t i = 0; i < step->n_sets; i++) {
        int64_t value;
        if (!template_eval(run, step->set[i].value, 0, &value) ||
            !template_assign(run, &step->set[i], value))
            return false;
    }
    return true;
}

static bool spend(TemplateRun *run, const TplStep *step) {
    if (!run->budget)
        return template_fail(run, step->loc, "the budget of steps ends");
    run->budget--;
    return true;
}

static bool walk(TemplateRun *run, uint32_t n, const TplStep *step);

static bool walk_each(TemplateRun *run, const TplStep *step) {
    int64_t count;
    if (!template_eval(run, step->set[0].value, 0, &count))
        return false;
    for (int64_t i = 0; i < count; i++) {
        if (!spend(run, step) || !template_assign(run, &step->set[0], i) ||
            !walk(run, step->n, step->step))
            return false;
    }
    return true;
}

static bool walk_one(TemplateRun *run, const TplStep *step) {
    int64_t holds;
    switch (step->kind) {
    case TPL_SET:
        return assign_all(run, step);
    case TPL_EACH:
        return walk_each(run, step);
    case TPL_WHEN:
        if (!template_eval(run, step->value, 0, &holds))
            return false;
        return holds ? walk(run, step->n, step->step)
                     : walk(run, step->n_others, step->other);
    case TPL_RUN:
        return assign_all(run, step) && template_call(run, step->target);
    case TPL_REQUIRE:
        if (!template_eval(run, step->value, 0, &holds))
            return false;
        return holds || template_fail(run, step->loc,
                                      expr_text(run->arena, run->env.names,
                                                step->value, NULL));
    default:
        return run->act(run, step);
    }
}

static bool walk(TemplateRun *run, uint32_t n, const TplStep *step) {
    for (uint32_t i = 0; i < n; i++) {
        if (!spend(run, &step[i]) || !walk_one(run, &step[i]))
            return false;
    }
    return true;
}

bool template_call(TemplateRun *run, uint32_t number) {
    const Template *t = &program_templates(run->spec)->at[number];
    return walk(run, t->n, t->step);
}

bool template_node(TemplateRun *run, const ProgNode *node) {
    const HwTemplates *all = program_templates(run->spec);
    uint32_t row = (uint32_t)(node->row - run->spec->format->row);
    for (uint32_t i = 0; i < node->scope.n_meanings; i++) {
        const ProgMeaning *m = &node->scope.meaning[i];
        run->env.set[node->row->meaning[i]] |= m->set;
        if (m->set)
            run->env.num[node->row->meaning[i]] = m->num;
    }
    return template_call(run, all->n_named + row);
}
