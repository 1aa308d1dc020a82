/* Plans of two levels: spills, dissolved concats, row tiles, hardware tiles,
 * and what is said when nothing fits. On Toy of nets.h, where a volume takes as
 * many bytes as it has elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc/alloc.h"
#include "tests/alloc/case.h"

/* The actions alone, without their numbers of placements. */
static const char *story(Case *c, const Plan *plan) {
    static const char *const kind[] = {"load", "store",  "run",
                                       "copy", "concat", "host"};
    const char *text = "";
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        const Placement *out = &plan->placement[a->out];
        text = arena_printf(c->arena, "%s%s %s %u..%u", text, kind[a->kind],
                            graph_tensor(c->g, out->tensor)->name, a->row,
                            a->row + a->rows - 1);
        if (a->n_tiles > 1)
            text =
                arena_printf(c->arena, "%s from %u..%u pad %u", text, a->in_row,
                             a->in_row + a->in_rows - 1, a->pad_top);
        text = arena_printf(c->arena, "%s %s\n", text,
                            c->toy->memory[out->memory].name);
    }
    return text;
}

static void expect(Case *c, const char *text) {
    const char *got = story(c, case_plan_layers(c));
    if (strcmp(got, text))
        print_message("%s", got);
    assert_string_equal(got, text);
    arena_free(c->arena);
}

/* While b becomes d, a waits in DDR: it is stored once and loaded once. */
static void spill(void **state) {
    (void)state;
    Case c = case_new(600);
    TensorId x = net_input(c.g, 3, 8, 8);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", a, 4, 1, 1, 1, 0);
    TensorId d = net_conv(c.g, c.diag, "d", b, 4, 1, 1, 1, 0);
    TensorId e = net_conv(c.g, c.diag, "e", d, 4, 1, 1, 1, 0);
    graph_mark_output(c.g, net_add(c.g, c.diag, "sum", e, a));
    expect(&c, "load data 0..7 am\n"
               "run a 0..7 am\n"
               "run b 0..7 am\n"
               "store a 0..7 ddr\n"
               "run d 0..7 am\n"
               "run e 0..7 am\n"
               "load a 0..7 am\n"
               "run sum 0..7 am\n"
               "store sum 0..7 outputs\n");
}

/* The network's input need not be stored: it comes back from its memory. */
static void input_again(void **state) {
    (void)state;
    Case c = case_new(600);
    TensorId x = net_input(c.g, 4, 8, 8);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", a, 4, 1, 1, 1, 0);
    graph_mark_output(c.g, net_add(c.g, c.diag, "sum", b, x));
    expect(&c, "load data 0..7 am\n"
               "run a 0..7 am\n"
               "run b 0..7 am\n"
               "load data 0..7 am\n"
               "run sum 0..7 am\n"
               "store sum 0..7 outputs\n");
}

/* a and b never stand side by side: each is stored into the concat's place,
 * which is then read by row tiles. */
static void dissolve(void **state) {
    (void)state;
    Case c = case_new(300);
    TensorId x = net_input(c.g, 1, 8, 8);
    TensorId a = net_conv(c.g, c.diag, "a", x, 3, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", x, 3, 1, 1, 1, 0);
    TensorId ab = net_concat(c.g, c.diag, "ab", 2, (TensorId[]){a, b});
    graph_mark_output(c.g, net_conv(c.g, c.diag, "e", ab, 1, 3, 1, 1, 1));
    expect(&c, "load data 0..7 am\n"
               "run a 0..7 am\n"
               "store a 0..7 ddr\n"
               "run b 0..7 am\n"
               "store b 0..7 ddr\n"
               "concat ab 0..7 ddr\n"
               "load ab 0..4 am\n"
               "run e 0..3 from 0..4 pad 1 am\n"
               "store e 0..3 outputs\n"
               "load ab 3..7 am\n"
               "run e 4..7 from 3..7 pad 0 am\n"
               "store e 4..7 outputs\n");
}

static void row_tiles(void **state) {
    (void)state;
    Case c = case_new(200);
    TensorId x = net_input(c.g, 1, 16, 16);
    TensorId a = net_conv(c.g, c.diag, "a", x, 1, 3, 1, 1, 1);
    TensorId b = net_conv(c.g, c.diag, "b", a, 1, 3, 1, 2, 2);
    TensorId d = net_pool(c.g, c.diag, "d", b, 3, 2, 0);
    TensorId e = net_conv(c.g, c.diag, "e", d, 2, 3, 2, 1, 1);
    TensorId f = net_upsample(c.g, c.diag, "f", e, 4);
    graph_mark_output(c.g, f);
    expect(&c, "load data 0..4 am\n"
               "run a 0..3 from 0..4 pad 1 am\n"
               "store a 0..3 ddr\n"
               "load data 3..8 am\n"
               "run a 4..7 from 3..8 pad 0 am\n"
               "store a 4..7 ddr\n"
               "load data 7..12 am\n"
               "run a 8..11 from 7..12 pad 0 am\n"
               "store a 8..11 ddr\n"
               "load data 11..15 am\n"
               "run a 12..15 from 11..15 pad 0 am\n"
               "store a 12..15 ddr\n"
               "load a 0..5 am\n"
               "run b 0..3 from 0..5 pad 2 am\n"
               "store b 0..3 ddr\n"
               "load a 2..9 am\n"
               "run b 4..7 from 2..9 pad 0 am\n"
               "store b 4..7 ddr\n"
               "load a 6..13 am\n"
               "run b 8..11 from 6..13 pad 0 am\n"
               "store b 8..11 ddr\n"
               "load a 10..15 am\n"
               "run b 12..15 from 10..15 pad 0 am\n"
               "store b 12..15 ddr\n"
               "load b 0..8 am\n"
               "run d 0..3 from 0..8 pad 0 am\n"
               "store d 0..3 ddr\n"
               "load b 8..15 am\n"
               "run d 4..7 from 8..15 pad 0 am\n"
               "store d 4..7 ddr\n"
               "load d 0..7 am\n"
               "run e 0..3 am\n"
               "store e 0..3 ddr\n"
               "load e 0..0 am\n"
               "run f 0..3 from 0..0 pad 0 am\n"
               "store f 0..3 outputs\n"
               "load e 1..1 am\n"
               "run f 4..7 from 1..1 pad 0 am\n"
               "store f 4..7 outputs\n"
               "load e 2..2 am\n"
               "run f 8..11 from 2..2 pad 0 am\n"
               "store f 8..11 outputs\n"
               "load e 3..3 am\n"
               "run f 12..15 from 3..3 pad 0 am\n"
               "store f 12..15 outputs\n");
}

/* ---- rows of row tiles against a window moved by hand ---- */

static void check_row_tile(const Graph *g, NodeId id, uint32_t row,
                           uint32_t rows) {
    const ConvAttr *a = &graph_node(g, id)->attr.conv;
    uint32_t h = plan_volume(g, graph_node(g, id)->in[0]).h;
    Rows r = rows_needed(g, id, row, rows);
    int64_t start = (int64_t)row * a->stride[0] - a->pad[0];
    /* An instruction that makes these rows has `from` input rows and `pad` on
     * top; a window may not start behind both paddings. */
    int64_t pad = start < 0 ? -start : 0, last = (rows - 1) * a->stride[0];
    int64_t end = start + last + (int64_t)(a->kernel[0] - 1) * a->dilation[0];
    int64_t from = (end < h ? end + 1 : h) - (start > 0 ? start : 0);
    if (start >= h || last >= (from > 1 ? from : 1) + 2 * pad) {
        assert_int_equal(r.in_rows, 0);
        return;
    }
    assert_int_equal((int64_t)r.in_row - r.pad_top, start);
    assert_true(r.in_rows > 0 && r.in_row + r.in_rows <= h);
    for (uint32_t o = row; o < row + rows; o++)
        for (uint32_t k = 0; k < a->kernel[0]; k++) {
            int64_t at = (int64_t)o * a->stride[0] - a->pad[0] +
                         (int64_t)k * a->dilation[0];
            if (at >= 0 && at < h)
                assert_true(at >= r.in_row && at < r.in_row + r.in_rows);
        }
}

static void row_tile_rows(void **state) {
    (void)state;
    for (uint32_t k = 1; k <= 5; k++)
        for (uint32_t s = 1; s <= 3; s++)
            for (uint32_t d = 1; d <= 3; d++)
                for (uint32_t p = 0; p <= 3; p++) {
                    Case c = case_new(1);
                    TensorId x = net_input(c.g, 1, 14, 14);
                    TensorId y = net_conv(c.g, c.diag, "y", x, 1, k, s, d, p);
                    uint32_t h = plan_volume(c.g, y).h;
                    for (uint32_t row = 0; row < h; row++)
                        for (uint32_t n = 1; n <= h - row; n++)
                            check_row_tile(c.g, graph_tensor(c.g, y)->producer,
                                           row, n);
                    arena_free(c.arena);
                }
}

/* ---- hardware tiles ---- */

static void hardware_styles(Toy *toy) {
    uint64_t am = toy->memory[0].size;
    toy->style[0] = (HwTileStyle){.in_backing = true,
                                  .out_backing = true,
                                  .ops = 1u << HW_OP_CONV,
                                  .buffer = {0, am / 2},
                                  .buffer_size = am / 2,
                                  .reserved = am,
                                  .multiple_w = 4};
    toy->style[1] = (HwTileStyle){.in_backing = true,
                                  .ops = 1u << HW_OP_CONV,
                                  .buffer = {0, am / 6},
                                  .buffer_size = am / 6,
                                  .reserved = am / 3,
                                  .multiple_w = 4};
    toy->spec.tiling.kind = HW_TILING_HARDWARE;
    toy->spec.tiling.tiles.n = 2;
}

static void hardware(void **state) {
    (void)state;
    Case c = case_new(1200);
    hardware_styles(c.toy);
    TensorId x = net_input(c.g, 4, 24, 24);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 3, 1, 1, 1);
    TensorId b = net_conv(c.g, c.diag, "b", a, 4, 3, 2, 1, 1);
    graph_mark_output(c.g, b);
    const Plan *plan = case_plan_layers(&c);
    assert_int_equal(plan->n_actions, 3);
    const Action *first = &plan->action[0], *second = &plan->action[1];
    /* 2304 bytes of input, as many of output: both stay outside. A tile of the
     * input takes at most 4 * (w + 2) * (h + 2) <= 600 bytes, of which none
     * lie beyond the image's edges. */
    uint32_t wide = first->tile_w + 2 < 24 ? first->tile_w + 2 : 24;
    assert_int_equal(first->style, 0);
    assert_true(4 * wide * (first->tile_h + 2) <= 600);
    assert_int_equal(plan->placement[first->in[0]].memory, 2);
    assert_int_equal(plan->placement[first->out].memory, 1);
    /* 576 bytes of output stay, behind the reserved 400. */
    assert_int_equal(second->style, 1);
    assert_int_equal(plan->placement[second->out].memory, 0);
    assert_true(plan->placement[second->out].offset >= 400);
    assert_true(second->tile_w % 4 == 0);
    arena_free(c.arena);
}

/* Least re-read halo, then the widest: by hand for 8 x 8 outputs of a 3x3
 * convolution whose input tile may have 60 elements: whole rows of 8 + 2 fit
 * 6 high, so 4 rows of output; 4 wide would fit 8 high (6 x 10). Both read
 * 2 * 60; the wider wins. */
static void tile_shape(void **state) {
    (void)state;
    Case c = case_new(120);
    hardware_styles(c.toy);
    TensorId x = net_input(c.g, 1, 10, 10);
    TensorId a = net_conv(c.g, c.diag, "a", x, 2, 3, 1, 1, 0);
    graph_mark_output(c.g, a);
    const Plan *plan = case_plan_layers(&c);
    assert_int_equal(plan->action[0].style, 0);
    assert_int_equal(plan->action[0].tile_w, 8);
    assert_int_equal(plan->action[0].tile_h, 4);
    arena_free(c.arena);
}

/* ---- other memories ---- */

static void three_pools(void **state) {
    (void)state;
    Case c = case_new(0);
    c.toy = toy_new(c.arena, 64, 3);
    TensorId x = net_input(c.g, 1, 8, 8);
    TensorId a = net_conv(c.g, c.diag, "a", x, 1, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", a, 1, 1, 1, 1, 0);
    TensorId s = net_add(c.g, c.diag, "s", x, a);
    graph_mark_output(c.g, net_add(c.g, c.diag, "t", b, s));
    const Plan *plan = case_plan_layers(&c);
    assert_false(plan->two_levels);
    assert_int_equal(plan->am_height, 3 * 64);
    for (uint32_t m = 0; m < 3; m++)
        assert_int_equal(plan->memory_used[m], 64);
    arena_free(c.arena);
}

/* The convolution reaches the first memory only, the pool the second: what
 * passes between them goes through DDR. */
static void engines_apart(void **state) {
    (void)state;
    Case c = case_new(0);
    c.toy = toy_new(c.arena, 128, 2);
    toy_reach(&c.toy->engine[0], 1);
    toy_reach(&c.toy->engine[1], 2);
    TensorId x = net_input(c.g, 1, 8, 8);
    TensorId a = net_conv(c.g, c.diag, "a", x, 1, 1, 1, 1, 0);
    graph_mark_output(c.g, net_pool(c.g, c.diag, "p", a, 2, 2, 0));
    expect(&c, "load data 0..7 am\n"
               "run a 0..7 am\n"
               "store a 0..7 ddr\n"
               "load a 0..7 am1\n"
               "run p 0..3 am1\n"
               "store p 0..3 outputs\n");
}

static void fixed_buffers(void **state) {
    (void)state;
    Case c = case_new(400);
    c.toy->memory[0].buffers = 4;
    TensorId x = net_input(c.g, 1, 8, 8);
    TensorId a = net_conv(c.g, c.diag, "a", x, 1, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", x, 1, 1, 1, 1, 0);
    TensorId ab = net_concat(c.g, c.diag, "ab", 2, (TensorId[]){a, b});
    graph_mark_output(c.g, ab);
    const Plan *plan = case_plan_layers(&c);
    for (uint32_t i = 0; i < plan->n_placements; i++)
        if (plan->placement[i].memory == 0)
            assert_int_equal(plan->placement[i].offset % 100, 0);
    assert_int_equal(plan->am_height, 300);
    arena_free(c.arena);
}

/* ---- members that no engine writes ---- */

/* legal_check leaves such concats to the host; a machine whose loads can write
 * parts would not. */
static void loaded_members(uint64_t am, bool layers, const char *text) {
    Case c = case_new(am);
    TensorId x = net_input(c.g, 1, 8, 8);
    TensorId h = net_softmax(c.g, c.diag, "h", x);
    TensorId a = net_conv(c.g, c.diag, "a", x, 3, 1, 1, 1, 0);
    TensorId all = net_concat(c.g, c.diag, "all", 3, (TensorId[]){a, h, x});
    TensorId e = net_conv(c.g, c.diag, "e", all, 1, 1, 1, 1, 0);
    graph_mark_output(c.g, e);
    graph_mark_output(c.g, all);
    const Schedule *schedule =
        sched_run(c.arena, c.diag, &c.toy->spec, c.g, "file");
    for (uint32_t s = 0; s < schedule->n_steps; s++) {
        Slot *slot = (Slot *)schedule->step[s].slot;
        if (graph_node(c.g, slot->node)->op == OP_CONCAT)
            slot->legal = (Legal){-1, HW_OP_CONCAT, NULL};
    }
    PlanOptions options = {.planner = "auto", .layer_by_layer = layers};
    bool does_not_fit;
    const Plan *plan =
        plan_make(c.arena, c.diag, schedule, &options, &does_not_fit);
    assert_non_null(plan);
    const char *got = story(&c, plan);
    if (strcmp(got, text))
        print_message("%s", got);
    assert_string_equal(got, text);
    arena_free(c.arena);
}

static void loaded_into_place(void **state) {
    (void)state;
    loaded_members(600, false,
                   "host h 0..7 inputs\n"
                   "load data 0..7 am\n"
                   "run a 0..7 am\n"
                   "load h 0..7 am\n"
                   "concat all 0..7 am\n"
                   "store all 0..7 outputs\n"
                   "run e 0..7 am\n"
                   "store e 0..7 outputs\n");
}

static void relayed(void **state) {
    (void)state;
    loaded_members(280, true,
                   "host h 0..7 inputs\n"
                   "load data 0..7 am\n"
                   "run a 0..7 am\n"
                   "store a 0..7 ddr\n"
                   "load h 0..3 am\n"
                   "store h 0..3 ddr\n"
                   "load h 4..7 am\n"
                   "store h 4..7 ddr\n"
                   "load data 0..3 am\n"
                   "store data 0..3 ddr\n"
                   "load data 4..7 am\n"
                   "store data 4..7 ddr\n"
                   "concat all 0..7 ddr\n"
                   "load all 0..1 am\n"
                   "store all 0..1 outputs\n"
                   "load all 2..3 am\n"
                   "store all 2..3 outputs\n"
                   "load all 4..5 am\n"
                   "store all 4..5 outputs\n"
                   "load all 6..7 am\n"
                   "store all 6..7 outputs\n"
                   "load all 0..3 am\n"
                   "run e 0..3 from 0..3 pad 0 am\n"
                   "store e 0..3 outputs\n"
                   "load all 4..7 am\n"
                   "run e 4..7 from 4..7 pad 0 am\n"
                   "store e 4..7 outputs\n");
}

static void loaded_into_stripes(void **state) {
    (void)state;
    loaded_members(280, false,
                   "host h 0..7 inputs\n"
                   "load data 0..3 am\n"
                   "run a 0..3 from 0..3 pad 0 am\n"
                   "load h 0..3 am\n"
                   "copy data 0..3 am\n"
                   "concat all 0..3 from 0..3 pad 0 am\n"
                   "store all 0..3 outputs\n"
                   "run e 0..3 from 0..3 pad 0 am\n"
                   "store e 0..3 outputs\n"
                   "load data 4..7 am\n"
                   "run a 4..7 from 4..7 pad 0 am\n"
                   "load h 4..7 am\n"
                   "copy data 4..7 am\n"
                   "concat all 4..7 from 4..7 pad 0 am\n"
                   "store all 4..7 outputs\n"
                   "run e 4..7 from 4..7 pad 0 am\n"
                   "store e 4..7 outputs\n");
}

/* ---- nothing fits ---- */

static void expect_error(Case *c, uint32_t n, const char *const *text) {
    bool does_not_fit;
    assert_null(
        net_plan_layers(c->arena, c->diag, &c->toy->spec, c->g, &does_not_fit));
    assert_true(does_not_fit);
    for (uint32_t i = 0; i < diag_count(c->diag); i++)
        if (i >= n || strcmp(diag_at(c->diag, i)->text, text[i]))
            print_message("%s\n", diag_at(c->diag, i)->text);
    assert_int_equal(diag_count(c->diag), n);
    for (uint32_t i = 0; i < n; i++)
        assert_string_equal(diag_at(c->diag, i)->text, text[i]);
    arena_free(c->arena);
}

static void one_level_short(void **state) {
    (void)state;
    Case c = case_new(3000);
    c.toy->spec.backing = -1;
    TensorId x = net_input(c.g, 16, 10, 10);
    graph_mark_output(c.g,
                      net_conv(c.g, c.diag, "conv2/3x3", x, 20, 1, 1, 1, 0));
    static const char *const text[] = {
        ("does not fit: step 1 (conv2/3x3) needs 3,600 bytes of am, which has "
         "3,000: 600 short"),
        "conv2/3x3 (20x10x10): 2,000 bytes",
        "data (16x10x10): 1,600 bytes",
        "--set memories.am.size=3600 would do; 3599 would not",
        ("the machine has no backing memory: with one, volumes that wait could "
         "leave am"),
    };
    expect_error(&c, 5, text);
}

static void row_tiles_short(void **state) {
    (void)state;
    Case c = case_new(1024);
    TensorId x = net_input(c.g, 64, 8, 20);
    graph_mark_output(c.g, net_conv(c.g, c.diag, "a", x, 1, 3, 1, 1, 1));
    static const char *const text[] = {
        ("does not fit: step 1 (a) needs 3,860 bytes of am, which has 1,024: "
         "2,836 short"),
        "data (64x8x20, 3 of its rows): 3,840 bytes",
        "a (1x8x20, 1 of its rows): 20 bytes",
        "no stripe of a fits: the lowest, 1 of its 8 rows, takes 3,860 bytes",
        "--set memories.am.size=3860 would do; 3859 would not",
    };
    expect_error(&c, 5, text);
}

static void no_tiling(void **state) {
    (void)state;
    Case c = case_new(3000);
    c.toy->spec.tiling.rows.ops = 0;
    TensorId x = net_input(c.g, 16, 10, 10);
    graph_mark_output(c.g, net_conv(c.g, c.diag, "a", x, 20, 1, 1, 1, 0));
    static const char *const text[] = {
        ("does not fit: step 1 (a) needs 3,600 bytes of am, which has 3,000: "
         "600 short"),
        "a (20x10x10): 2,000 bytes",
        "data (16x10x10): 1,600 bytes",
        "--set memories.am.size=3600 would do; 3599 would not",
        ("the machine cannot run a by tiles: with tiling for it, a part of "
         "each volume would do"),
    };
    expect_error(&c, 5, text);
}

static void backing_short(void **state) {
    (void)state;
    Case c = case_new(600);
    c.toy->memory[1].size = 100;
    TensorId x = net_input(c.g, 3, 8, 8);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", a, 4, 1, 1, 1, 0);
    TensorId d = net_conv(c.g, c.diag, "d", b, 4, 1, 1, 1, 0);
    graph_mark_output(c.g, net_add(c.g, c.diag, "sum", d, a));
    static const char *const text[] = {
        "does not fit: a needs 256 bytes of ddr, which has 100 left of 100"};
    expect_error(&c, 1, text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spill),
        cmocka_unit_test(input_again),
        cmocka_unit_test(dissolve),
        cmocka_unit_test(row_tiles),
        cmocka_unit_test(row_tile_rows),
        cmocka_unit_test(hardware),
        cmocka_unit_test(tile_shape),
        cmocka_unit_test(three_pools),
        cmocka_unit_test(engines_apart),
        cmocka_unit_test(fixed_buffers),
        cmocka_unit_test(loaded_into_place),
        cmocka_unit_test(relayed),
        cmocka_unit_test(loaded_into_stripes),
        cmocka_unit_test(one_level_short),
        cmocka_unit_test(row_tiles_short),
        cmocka_unit_test(no_tiling),
        cmocka_unit_test(backing_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
