/* The judge refuses plans that were right and have been broken on purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/alloc/nets.h"

/* A right plan, with arrays that a test may change. */
typedef struct Case {
    Arena *arena;
    Plan plan;
    Placement *placement;
    Action *action;
    ConstantBlock *block;
} Case;

static Case case_of(Arena *arena, const Plan *plan) {
    Case c = {.arena = arena, .plan = *plan};
    c.placement =
        ARENA_COPY(arena, Placement, plan->placement, plan->n_placements);
    c.action = ARENA_COPY(arena, Action, plan->action, plan->n_actions);
    c.block = ARENA_COPY(arena, ConstantBlock, plan->block, plan->n_blocks);
    c.plan.placement = c.placement;
    c.plan.action = c.action;
    c.plan.block = c.block;
    assert_null(plan_judge(arena, &c.plan));
    return c;
}

static Case case_new(uint64_t am, bool hardware) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    Graph *g = graph_new(arena, "net");
    Toy *toy = toy_new(arena, am, 1);
    if (hardware) {
        toy->spec.tiling.kind = HW_TILING_HARDWARE;
        toy->spec.tiling.tiles.n = 1;
        toy->style[0] = (HwTileStyle){.in_backing = true,
                                      .ops = 1u << HW_OP_CONV,
                                      .buffer = {0, am / 6},
                                      .buffer_size = am / 6,
                                      .reserved = am / 3};
    }
    TensorId x = net_input(g, hardware ? 30 : 3, 8, 8);
    TensorId a = net_conv(g, diag, "a", x, 4, 3, 1, 1, 1);
    TensorId b = net_conv(g, diag, "b", a, 4, 1, 1, 1, 0);
    TensorId ab = net_concat(g, diag, "ab", 2, (TensorId[]){a, b});
    TensorId e = net_conv(g, diag, "e", ab, 3, 1, 1, 1, 0);
    graph_mark_output(g, e);
    bool does_not_fit;
    const Plan *plan = net_plan(arena, diag, &toy->spec, g, &does_not_fit);
    assert_non_null(plan);
    return case_of(arena, plan);
}

/* Weights are loaded to where volumes lie. */
static Case staged_new(void) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    HwSetting setting = {"memories.am.size", "16KiB"};
    const HwSpec *spec = hwspec_load(arena, diag, "stage-npu", 1, &setting);
    Graph *g = graph_new(arena, "net");
    TensorId a = net_input(g, 8, 10, 10);
    a = net_conv(g, diag, "a", a, 16, 3, 1, 1, 1);
    a = net_conv(g, diag, "b", a, 12, 3, 1, 1, 1);
    a = net_conv(g, diag, "c", a, 8, 1, 1, 1, 0);
    graph_mark_output(g, a);
    graph_mark_original(g);
    graph_seed_constants(g, 1);
    bool does_not_fit;
    const Plan *plan = net_plan(arena, diag, spec, g, &does_not_fit);
    assert_non_null(plan);
    assert_true(plan->n_blocks >= 3);
    return case_of(arena, plan);
}

static Action *first(Case *c, ActionKind kind) {
    for (uint32_t i = 0; i < c->plan.n_actions; i++)
        if (c->action[i].kind == kind)
            return &c->action[i];
    fail();
    return NULL;
}

static void drop(Case *c, Action *a) {
    uint32_t i = (uint32_t)(a - c->action);
    memmove(a, a + 1, (c->plan.n_actions - i - 1) * sizeof *a);
    c->plan.n_actions--;
}

static void refuse(Case *c, const char *part) {
    const char *wrong = plan_judge(c->arena, &c->plan);
    assert_non_null(wrong);
    if (!strstr(wrong, part))
        print_message("%s\n", wrong);
    assert_non_null(strstr(wrong, part));
    arena_free(c->arena);
}

enum { ALL = 4096, SOME = 420 };

static void load_missing(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    drop(&c, first(&c, ACTION_LOAD));
    refuse(&c, "data is not there (never written, or overwritten) in am");
}

static void store_missing(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    drop(&c, first(&c, ACTION_STORE));
    refuse(&c, "output e is nowhere outside");
}

static void run_missing(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    drop(&c, first(&c, ACTION_RUN) + 1);
    refuse(&c, "ab is not all there in am");
}

static void run_twice(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    Action *run = first(&c, ACTION_RUN);
    run[1] = run[0];
    run[1].step = 1000;
    refuse(&c, "a is computed out of order, or twice");
}

static void overwritten(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    Action *run = first(&c, ACTION_RUN);
    /* the concat's volume moves over the input that the first member reads:
     * allowed, since it is read before; b's result over a is not */
    Placement *b = &c.placement[run[1].out];
    Placement alone = *b;
    alone.whole = plan_volume(c.plan.schedule->graph, b->tensor);
    alone.bytes = 4 * 8 * 8;
    alone.part_c = 0;
    *b = alone;
    refuse(&c, "b is written over its operand in am");
}

static void misplaced(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    c.placement[first(&c, ACTION_LOAD)->out].offset = ALL;
    refuse(&c, "data leaves its memory in am");
    c = case_new(ALL, false);
    c.placement[first(&c, ACTION_LOAD)->out].bytes -= 1;
    refuse(&c, "data has a wrong size in am");
    c = case_new(ALL, false);
    c.placement[first(&c, ACTION_RUN)->out].part_c = 5;
    refuse(&c, "a leaves its volume in am");
    c = case_new(ALL, false);
    HwMemory *am = (HwMemory *)c.plan.schedule->spec->memory;
    am->align = 64;
    c.placement[first(&c, ACTION_LOAD)->out].offset += 32;
    refuse(&c, "data is not aligned in am");
}

static void wrong_way(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    first(&c, ACTION_LOAD)->kind = ACTION_STORE;
    refuse(&c, "data is moved the wrong way");
    c = case_new(ALL, false);
    Action *load = first(&c, ACTION_LOAD);
    ((uint32_t *)first(&c, ACTION_RUN)->in)[0] = load->in[0];
    refuse(&c, "data is an operand on the wrong side in inputs");
}

static void other_tensor(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    Action *run = first(&c, ACTION_RUN);
    ((uint32_t *)run[1].in)[0] = run[0].in[0];
    refuse(&c, "b is computed from other tensors in am");
}

static void wrong_rows(void **state) {
    (void)state;
    Case c = case_new(SOME, false);
    Action *run = first(&c, ACTION_RUN);
    assert_true(run->n_tiles > 1);
    run->pad_top = 0;
    refuse(&c, "a is computed from the wrong rows");
    c = case_new(SOME, false);
    run = first(&c, ACTION_RUN);
    run->in_rows--;
    refuse(&c, "a is computed from the wrong rows");
    c = case_new(SOME, false);
    drop(&c, first(&c, ACTION_RUN));
    refuse(&c, "a is not there");
    c = case_new(SOME, false);
    first(&c, ACTION_LOAD)->rows--;
    refuse(&c, "data is not all there in am");
}

static void tile_buffers(void **state) {
    (void)state;
    Case c = case_new(1800, true);
    Action *run = first(&c, ACTION_RUN);
    assert_true(run->style >= 0);
    c.placement[run->out].offset = 200;
    refuse(&c, "a lies in the tile buffers");
}

static void side_by_side(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    Action *run = first(&c, ACTION_RUN);
    /* as if the first two ran in one step */
    Step *step = (Step *)c.plan.schedule->step;
    step[run->at].n = 2;
    step[run->at].slot = ARENA_COPY(
        c.arena, Slot, ((Slot[]){step[0].slot[0], step[1].slot[0]}), 2);
    run[1].at = run->at;
    refuse(&c, "a is written where another works in am");
}

/* Loads and stores run with what has their number. */
static void beside_layers(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    first(&c, ACTION_LOAD)->step = first(&c, ACTION_RUN)->step;
    refuse(&c, "is written where another works in am");
}

/* Numbers of steps do not fall. */
static void steps_backwards(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    first(&c, ACTION_RUN)[1].step = 1;
    refuse(&c, "b is of a step that is over");
}

/* Columns of whole rows are what their node says. */
static void wrong_columns(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    first(&c, ACTION_RUN)->pad_left = 0;
    refuse(&c, "a is computed from the wrong rows");
    c = case_new(ALL, false);
    first(&c, ACTION_RUN)->in_cols--;
    refuse(&c, "a is computed from some columns");
}

static void wrong_engine(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    first(&c, ACTION_RUN)->legal.engine = 1;
    refuse(&c, "a is made by an engine that cannot");
}

/* The host has put it into one. */
static void two_inputs(void **state) {
    (void)state;
    Case c = case_new(ALL, false);
    uint32_t n = c.plan.n_placements;
    Placement *p = ARENA_ARRAY(c.arena, Placement, n + 1);
    memcpy(p, c.placement, n * sizeof *p);
    p[n] = p[first(&c, ACTION_LOAD)->in[0]];
    p[n].offset += 64;
    c.plan.placement = p;
    c.plan.n_placements++;
    refuse(&c, "data lies in two places in inputs");
}

static ConstantBlock *block_of(Case *c, const Action *a) {
    assert_true(a->weights > 0);
    return &c->block[a->weights - 1];
}

static void weights_in_wrong_places(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        Case c = staged_new();
        ConstantBlock *b = block_of(&c, first(&c, ACTION_WEIGHTS));
        const HwMemory *am = c.plan.schedule->spec->memory;
        assert_true(am->align > 1);
        if (i == 0)
            b->offset = am->size - b->bytes + am->align;
        else if (i == 1)
            b->offset += 1;
        else if (i == 2)
            b->bytes += am->align;
        else
            first(&c, ACTION_WEIGHTS)->weights = c.plan.n_blocks + 1;
        refuse(&c, i < 3 ? "has weights in a wrong place"
                         : "has no weights to load");
    }
}

static void weights_of_others(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        Case c = staged_new();
        Action *run = first(&c, ACTION_RUN);
        ConstantBlock *b = block_of(&c, run);
        if (i == 0)
            b->node = run[0].node.i ? (NodeId){0} : (NodeId){1};
        else if (i == 1)
            b->c++;
        else if (i == 2)
            run->weights = 0;
        else if (i == 3)
            drop(&c, first(&c, ACTION_WEIGHTS));
        else
            b->offset = c.placement[run->out].offset;
        refuse(&c, i < 2   ? "is computed with other weights"
                   : i < 4 ? "is computed without its weights"
                           : "is written over its weights");
    }
}

/* What weights are loaded over is there no more, tensors and other weights. */
static void weights_over_what_is_read(void **state) {
    (void)state;
    Case c = staged_new();
    Action *load = NULL, *run = first(&c, ACTION_RUN), *last = NULL;
    for (uint32_t i = 0; i < c.plan.n_actions; i++)
        if (c.action[i].kind == ACTION_WEIGHTS && !last)
            load = &c.action[i];
        else if (&c.action[i] == run)
            last = run;
    /* The last weights before the first run go where its input lies, behind the
     * load of that. */
    Action first_load = *first(&c, ACTION_LOAD), weights = *load;
    assert_true(load < run && first(&c, ACTION_LOAD) < run);
    drop(&c, load);
    drop(&c, first(&c, ACTION_LOAD));
    run = first(&c, ACTION_RUN);
    memmove(run + 2, run,
            (c.plan.n_actions - (uint32_t)(run - c.action)) * sizeof *run);
    c.plan.n_actions += 2;
    weights.step = first_load.step = run[2].step - 1;
    run[0] = first_load;
    run[1] = weights;
    block_of(&c, &weights)->offset = c.placement[run[2].in[0]].offset;
    refuse(&c, "data is not");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_missing),
        cmocka_unit_test(store_missing),
        cmocka_unit_test(run_missing),
        cmocka_unit_test(run_twice),
        cmocka_unit_test(overwritten),
        cmocka_unit_test(misplaced),
        cmocka_unit_test(wrong_way),
        cmocka_unit_test(other_tensor),
        cmocka_unit_test(wrong_rows),
        cmocka_unit_test(tile_buffers),
        cmocka_unit_test(side_by_side),
        cmocka_unit_test(beside_layers),
        cmocka_unit_test(steps_backwards),
        cmocka_unit_test(wrong_columns),
        cmocka_unit_test(wrong_engine),
        cmocka_unit_test(two_inputs),
        cmocka_unit_test(weights_in_wrong_places),
        cmocka_unit_test(weights_of_others),
        cmocka_unit_test(weights_over_what_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
