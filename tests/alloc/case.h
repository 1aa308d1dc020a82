/* case.h - a network being built, and the Toy machine that it is planned for.
 * Include behind <cmocka.h>. */
#ifndef TESTS_ALLOC_CASE_H
#define TESTS_ALLOC_CASE_H

#include "tests/alloc/nets.h"

typedef struct Case {
    Arena *arena;
    Diag *diag;
    Graph *g;
    Toy *toy;
} Case;

static inline Case case_new(uint64_t am) {
    Case c = {.arena = arena_new("test")};
    c.diag = diag_new(c.arena);
    c.g = graph_new(c.arena, "net");
    c.toy = toy_new(c.arena, am, 1);
    return c;
}

/* The plan, which there must be: else what was said against it is printed. */
static inline const Plan *case_expect_plan(Case *c, const Plan *plan) {
    if (!plan)
        diag_print(c->diag, stderr);
    assert_non_null(plan);
    return plan;
}

static inline const Plan *case_plan(Case *c) {
    bool does_not_fit;
    return case_expect_plan(
        c, net_plan(c->arena, c->diag, &c->toy->spec, c->g, &does_not_fit));
}

static inline const Plan *case_plan_layers(Case *c) {
    bool does_not_fit;
    return case_expect_plan(c, net_plan_layers(c->arena, c->diag, &c->toy->spec,
                                               c->g, &does_not_fit));
}

#endif
