/* test_tile_loops.c - what loops over tiles take, move and cost: every tile of
 * random layers and sizes, one by one as the loops go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "geometry/tile_loops.h"
#include "hwspec/cost.h"
#include "tests/geometry/net.h"

static const Layout chw = {.name = "chw",
                           .n = 3,
                           .axis = {{.dim = LAYOUT_C, .round = 1},
                                    {.dim = LAYOUT_H, .round = 1},
                                    {.dim = LAYOUT_W, .round = 1}},
                           .element = 2};

/* A machine and a layer on it. */
typedef struct Case {
    Net net;
    HwSpec spec;
    HwMemory memory[2];
    HwEngine engine;
    HwTileStyle style;
    Legal legal;
    Volume in, out;
    const ConvAttr *conv;
    bool by_channel;
} Case;

static void draw_machine(Case *c, Dice *d) {
    c->memory[0] = (HwMemory){.role = HW_ACTIVE,
                              .size = 1 << 20,
                              .align = 1u << draw(d, 0, 4),
                              .layout = &chw};
    c->memory[1] = (HwMemory){.role = HW_BACKING,
                              .size = 1 << 20,
                              .burst = 1u << draw(d, 0, 5),
                              .bandwidth = 1e8 * draw(d, 1, 30),
                              .latency = 1e-9 * draw(d, 0, 50),
                              .row_setup = 1e-9 * draw(d, 0, 9),
                              .layout = &chw};
    c->engine =
        (HwEngine){.unroll = {draw(d, 1, 4), draw(d, 1, 4), draw(d, 1, 3),
                              draw(d, 1, 3), draw(d, 1, 3), 0},
                   .setup = draw(d, 0, 20)};
    c->style = (HwTileStyle){.in_backing = draw(d, 0, 3) > 0,
                             .out_backing = draw(d, 0, 3) > 0,
                             .sums = draw(d, 1, 4)};
    c->spec = (HwSpec){.clock = 1e8 * draw(d, 1, 9),
                       .element = draw(d, 1, 4),
                       .n_memories = 2,
                       .memory = c->memory,
                       .n_active = 1,
                       .backing = 1,
                       .n_engines = 1,
                       .engine = &c->engine,
                       .weight_cache.bandwidth = 1e8 * draw(d, 0, 9)};
}

static bool draw_case(Case *c, Dice *d) {
    draw_machine(c, d);
    c->by_channel = draw(d, 0, 3) == 0;
    uint32_t in_c = draw(d, 1, 9), out_c = draw(d, 1, 9);
    c->net = net_open(in_c, draw(d, 1, 11), draw(d, 1, 11), OP_CONV);
    ConvAttr *a = &net_node(&c->net)->attr.conv;
    *a = draw_conv(d, c->by_channel ? in_c : out_c);
    a->groups = c->by_channel ? in_c : 1;
    c->legal.op = c->by_channel ? HW_OP_CONV_DEPTHWISE : HW_OP_CONV;
    c->conv = a;
    if (!net_close(&c->net))
        return false;
    c->in = plan_volume(c->net.g, c->net.input);
    c->out = plan_volume(c->net.g, net_node(&c->net)->out[0]);
    return true;
}

/* ---- one by one ---- */

/* Pixels of an axis that a tile's windows read: where kernels skip pixels,
 * those alone; else all from the first to the last, gaps between the taps of a
 * dilated kernel too. */
static uint32_t pixels(const Case *c, int axis, uint32_t at, uint32_t n) {
    const ConvAttr *a = c->conv;
    int64_t size = axis ? c->in.w : c->in.h;
    bool skips = a->kernel[axis] < a->stride[axis] && a->dilation[axis] == 1;
    int64_t reach = (int64_t)(a->kernel[axis] - 1) * a->dilation[axis];
    int64_t first = (int64_t)at * a->stride[axis] - a->pad[axis];
    int64_t last = first + (int64_t)(n - 1) * a->stride[axis] + reach;
    uint32_t sum = 0;
    for (int64_t p = 0; p < size; p++)
        sum += p >= first && p <= last &&
               (!skips || (p - first) % a->stride[axis] <= reach);
    return sum;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

typedef struct Tile {
    uint32_t h, w, c, in_c;
    bool stay;
} Tile;

/* What all tiles together cost. */
typedef struct Sums {
    uint64_t input, weights; /* elements */
    uint64_t cycles, tiles;
    uint64_t busy, leaving; /* of the tile before */
    uint32_t held[5];       /* row, column, channel of the input; of weights:
                               channels of both sides */
} Sums;

static uint64_t weight_elements(const Case *c, uint32_t n_c, uint32_t n_in) {
    return (uint64_t)c->conv->kernel[0] * c->conv->kernel[1] * n_c *
           (c->by_channel ? 1 : n_in);
}

static uint64_t transfer(const Case *c, bool is, const Volume *whole,
                         uint32_t n, uint32_t h, uint32_t w) {
    return is ? hwspec_tile_cycles(&c->spec, &c->memory[1], whole, n, h, w) : 0;
}

static uint64_t engine_time(const Case *c, uint32_t n_c, uint32_t n_in,
                            uint32_t h, uint32_t w) {
    uint64_t taps = (uint64_t)c->conv->kernel[0] * c->conv->kernel[1];
    uint64_t inner = hwspec_inner_steps(&c->spec, &c->engine, NULL,
                                        c->by_channel ? 1 : n_in, taps);
    return hwspec_engine_cycles(&c->spec, &c->engine, n_c, h, w, inner);
}

static void one_step(const Case *c, const Tile *t, const uint32_t at[4],
                     Sums *s) {
    uint32_t h = least(t->h, c->out.h - at[0]);
    uint32_t w = least(t->w, c->out.w - at[1]);
    uint32_t n_c = least(t->c, c->out.c - at[2]);
    uint32_t n_in = c->by_channel ? n_c : least(t->in_c, c->in.c - at[3]);
    uint32_t held[5] = {at[0], at[1], c->by_channel ? at[2] : at[3], at[2],
                        at[3]};
    uint64_t load = 0, weights = weight_elements(c, n_c, n_in);
    uint32_t rows = pixels(c, 0, at[0], h), cols = pixels(c, 1, at[1], w);
    if (memcmp(held, s->held, 3 * sizeof *held) != 0) {
        s->input += (uint64_t)rows * cols * n_in;
        load += transfer(c, c->style.in_backing, &c->in, n_in, rows, cols);
    }
    if (memcmp(held + 3, s->held + 3, 2 * sizeof *held) != 0) {
        s->weights += weights;
        load += hwspec_weight_cycles(&c->spec, weights * c->spec.element);
    }
    memcpy(s->held, held, sizeof held);
    load += s->leaving;
    s->cycles += s->busy > load ? s->busy : load;
    s->busy = engine_time(c, n_c, n_in, h, w);
    s->leaving = 0;
    s->tiles++;
    if (c->by_channel || at[3] + n_in == c->in.c)
        s->leaving = transfer(c, c->style.out_backing, &c->out, n_c, h, w);
}

static Sums every_tile(const Case *c, const Tile *t) {
    Sums s = {.held = {99, 99, 99, 99, 99}};
    uint32_t in_step = c->by_channel ? c->in.c : t->in_c;
    uint32_t outer = t->stay ? c->out.c : 1, inner = t->stay ? 1 : c->out.c;
    for (uint32_t a = 0; a < outer; a += t->c)
        for (uint32_t row = 0; row < c->out.h; row += t->h)
            for (uint32_t col = 0; col < c->out.w; col += t->w)
                for (uint32_t b = 0; b < inner; b += t->c)
                    for (uint32_t i = 0; i < c->in.c; i += in_step)
                        one_step(c, t,
                                 (uint32_t[]){row, col, t->stay ? a : b, i},
                                 &s);
    s.cycles += s.busy > s.leaving ? s.busy : s.leaving;
    return s;
}

/* ---- against the closed forms ---- */

static Loops loops_of(const Case *c) {
    return loops_make(&c->spec, c->net.g, net_node(&c->net), &c->legal,
                      &c->style, 1);
}

static void check_cut(const Case *c, int axis, const Cut *cut) {
    uint32_t out = axis ? c->out.w : c->out.h, i = 0, n = 0;
    uint32_t most = 0;
    uint64_t sum = 0;
    for (uint32_t at = 0; at < out; at += cut->tile, n++) {
        uint32_t size = least(cut->tile, out - at);
        uint32_t read = pixels(c, axis, at, size);
        if (n == cut->run[i].n) {
            i++;
            n = 0;
        }
        assert_true(i < cut->n_runs);
        assert_int_equal(cut->run[i].in, read);
        assert_int_equal(cut->run[i].out, size);
        most = read > most ? read : most;
        sum += read;
    }
    assert_int_equal(i + 1, cut->n_runs);
    assert_int_equal(cut->run[i].n, n);
    assert_int_equal(cut->n, (out + cut->tile - 1) / cut->tile);
    assert_int_equal(cut->most, most);
    assert_int_equal(cut->sum, sum);
}

static uint64_t aligned(const Case *c, uint64_t bytes) {
    uint64_t align = c->memory[0].align;
    return (bytes + align - 1) / align * align;
}

/* The input, weights, sums, one behind the other; two of what changes. */
static void check_places(const Case *c, const Loops *l, const Sizes *s) {
    uint32_t n_c = (c->out.c + s->c - 1) / s->c;
    uint32_t n_in = c->by_channel ? 1 : (c->in.c + s->in_c - 1) / s->in_c;
    uint32_t spots = s->rows->n * s->cols->n;
    bool inputs = spots * n_in > 1 || (c->by_channel && n_c > 1);
    uint64_t input =
        (uint64_t)s->rows->most * s->cols->most * s->in_c * c->spec.element;
    uint64_t weights = weight_elements(c, s->c, s->in_c) * c->spec.element;
    input = aligned(c, c->style.in_backing ? input : 0);
    weights = aligned(c, weights);
    Nest nest = {0};
    uint64_t end = nest_lay(l, s, &nest);
    uint64_t behind = (inputs ? 2 : 1) * input;
    assert_int_equal(nest.input[0], 0);
    assert_int_equal(nest.input[1], inputs ? input : 0);
    assert_int_equal(nest.weights[0], behind);
    assert_int_equal(nest.weights[1], behind + (n_c * n_in > 1 ? weights : 0));
    behind += (n_c * n_in > 1 ? 2 : 1) * weights;
    assert_int_equal(nest.sums, behind);
    uint64_t sums = (uint64_t)s->rows->tile * s->cols->tile * s->c;
    assert_int_equal(nest_sums(l, s), sums * c->style.sums);
    assert_int_equal(end, behind + aligned(c, sums * c->style.sums));
}

static void check_bytes(const Case *c, const Loops *l, const Sizes *s,
                        const Tile *t) {
    Sums sums = every_tile(c, t);
    uint64_t input = c->style.in_backing ? sums.input * l->element : 0;
    uint64_t weights = sums.weights * l->element;
    assert_int_equal(nest_tiles(l, s), sums.tiles);
    assert_int_equal(nest_input_reads(l, s, t->stay), sums.input);
    assert_int_equal(nest_weight_reads(l, s, t->stay) * nest_weights(l),
                     weights);
    assert_int_equal(nest_moved(l, s, t->stay), input + weights);
    assert_int_equal(nest_cycles(l, s, t->stay), sums.cycles);
    Nest nest = {.c = t->c, .in_c = t->in_c, .weights_stay = t->stay};
    NestCost cost = loops_cost(l, t->h, t->w, &nest, true);
    assert_int_equal(cost.input, input);
    assert_int_equal(cost.weights, weights);
    assert_int_equal(cost.cycles, sums.cycles);
    HwSpec spec = c->spec;
    spec.tiling.tiles.style = &c->style;
    cost = nest_reads(&spec, c->net.g, net_node(&c->net), &c->legal, 0, t->h,
                      t->w, &nest);
    assert_int_equal(cost.input, input);
    assert_int_equal(cost.weights, weights);
    assert_int_equal(cost.cycles, 0);
}

/* The engine with all channels at once, tile by tile; the wires with what one
 * column of tiles needs. */
static void check_least(const Case *c, const Loops *l, const Sizes *s) {
    uint64_t busy = 0, wires = 0;
    uint32_t step = c->by_channel ? c->in.c : s->in_c;
    for (uint32_t o = 0; o < c->out.c; o += s->c)
        for (uint32_t i = 0; i < c->in.c; i += step)
            busy += engine_time(c, least(s->c, c->out.c - o),
                                least(step, c->in.c - i), c->out.h, c->out.w);
    for (uint32_t at = 0; at < c->out.w; at += s->cols->tile) {
        uint32_t n = least(s->cols->tile, c->out.w - at);
        wires +=
            transfer(c, c->style.in_backing, &c->in, c->in.c,
                     (uint32_t)s->rows->sum, pixels(c, 1, at, n)) +
            transfer(c, c->style.out_backing, &c->out, c->out.c, c->out.h, n);
    }
    assert_int_equal(nest_busy_cycles(l, s->c, s->in_c), busy);
    assert_int_equal(nest_least_cycles(l, s), busy > wires ? busy : wires);
    assert_int_equal(nest_ideal_cycles(l),
                     engine_time(c, c->out.c, c->in.c, c->out.h, c->out.w));
}

static void check_sizes(const Case *c, Dice *d) {
    Loops l = loops_of(c), remembers = l;
    NestMemo memo[1 << NEST_MEMO_BITS] = {{0}};
    remembers.memo = memo;
    for (int i = 0; i < 6; i++) {
        Tile t = {draw(d, 1, c->out.h), draw(d, 1, c->out.w),
                  draw(d, 1, c->out.c), draw(d, 1, c->in.c), draw(d, 0, 1)};
        if (c->by_channel)
            t.in_c = t.c;
        Arena *arena = arena_new("cuts");
        Cut rows = nest_cut(arena, c->conv, 0, c->in.h, c->out.h, t.h);
        Cut cols = nest_cut(arena, c->conv, 1, c->in.w, c->out.w, t.w);
        Sizes s = {&rows, &cols, t.c, t.in_c};
        check_cut(c, 0, &rows);
        check_cut(c, 1, &cols);
        check_places(c, &l, &s);
        check_bytes(c, &l, &s, &t);
        check_least(c, &l, &s);
        assert_int_equal(nest_cycles(&remembers, &s, t.stay),
                         nest_cycles(&l, &s, t.stay));
        arena_free(arena);
    }
}

static void loops(void **state) {
    (void)state;
    Dice d = {1, 0};
    uint32_t seen = 0;
    for (int i = 0; i < 400; i++) {
        Case c = {0};
        if (draw_case(&c, &d)) {
            check_sizes(&c, &d);
            seen++;
        }
        arena_free(c.net.arena);
    }
    assert_true(seen > 200);
}

/* What is known of a machine before any tile. */
static void constants(void **state) {
    (void)state;
    Dice d = {2, 0};
    Case c = {0};
    while (!draw_case(&c, &d))
        arena_free(c.net.arena);
    c.spec.clock = 5e8;
    c.memory[1].bandwidth = 2e9;
    c.style.in_backing = c.style.out_backing = true;
    Loops l = loops_of(&c);
    assert_true(l.wire > 0.2499 && l.wire < 0.2501);
    assert_true(l.byte_cycles > 0.2499 * TILE_BYTE_PRICE &&
                l.byte_cycles < 0.2501 * TILE_BYTE_PRICE);
    assert_false(l.bytes_alone);
    assert_ptr_equal(l.from, &c.memory[1]);
    assert_ptr_equal(l.to, &c.memory[1]);
    c.memory[1].bandwidth = 0;
    c.style.in_backing = c.style.out_backing = false;
    l = loops_of(&c);
    assert_true(l.bytes_alone);
    assert_null(l.from);
    assert_null(l.to);
    arena_free(c.net.arena);
}

/* Each number of pieces has its size; the smallest one is 1. */
static void sizes(void **state) {
    (void)state;
    for (uint32_t size = 1; size < 500; size++) {
        uint32_t tile[NEST_CUTS], n = nest_sizes(size, tile), at = 0;
        assert_true(n <= NEST_CUTS);
        for (uint32_t t = size; t > 1 && at < NEST_CUTS - 1; t--) {
            uint32_t n_pieces = (size + t - 1) / t;
            if ((size + n_pieces - 1) / n_pieces == t)
                assert_int_equal(tile[at++], t);
        }
        assert_int_equal(tile[at++], 1);
        assert_int_equal(n, at);
    }
}

/* ---- products ---- */

static void products(void **state) {
    (void)state;
    Net n = net_open(6, 8, 10, OP_CONV);
    ConvAttr *a = &net_node(&n)->attr.conv;
    *a = (ConvAttr){4, 2, {3, 5}, {1, 2}, {1, 1}, {1, 2}, {1, 2}};
    assert_true(net_close(&n));
    assert_int_equal(row_elements(n.g, n.input), 60);
    assert_int_equal(row_elements(n.g, net_node(&n)->out[0]), 4 * 5);
    assert_int_equal(row_work(n.g, net_node(&n)), 4 * 5 * 15 * 3);
    assert_int_equal(weight_taps(n.g, net_node(&n)), 15 * 3);
    a->groups = 0;
    assert_int_equal(row_work(n.g, net_node(&n)), 4 * 5 * 15 * 6);
    assert_int_equal(weight_taps(n.g, net_node(&n)), 15 * 6);
    net_node(&n)->op = OP_CONV_POOL;
    assert_int_equal(row_work(n.g, net_node(&n)), 4 * 5 * 15 * 6);
    net_node(&n)->op = OP_FC;
    assert_int_equal(weight_taps(n.g, net_node(&n)), 480);
    assert_int_equal(row_work(n.g, net_node(&n)), 20);
    net_node(&n)->op = OP_DECONV;
    assert_int_equal(row_work(n.g, net_node(&n)), 20);
    *a = (ConvAttr){4, 1, {2, 3}, {2, 3}, {1, 1}, {0, 0}, {0, 0}};
    assert_int_equal(row_work(n.g, net_node(&n)), 120);
    arena_free(n.arena);
}

static void memories(void **state) {
    (void)state;
    HwMemory ddr = {.bandwidth = 4e9};
    HwSpec spec = {.memory = &ddr, .backing = 0};
    assert_true(bytes_seconds(&spec, 1e9) > 0.2499 &&
                bytes_seconds(&spec, 1e9) < 0.2501);
    ddr.bandwidth = 0;
    assert_true(bytes_seconds(&spec, 1e9) <= 0);
    spec.backing = -1;
    assert_true(bytes_seconds(&spec, 1e9) <= 0);
    HwMemory m = {.size = 1000};
    Pool p = pool_of(&m);
    assert_int_equal(p.size, 1000);
    assert_int_equal(p.align, 1);
    m = (HwMemory){.size = 1000, .align = 16, .buffers = 3};
    p = pool_of(&m);
    assert_int_equal(p.align, 320);
    assert_int_equal(p.size, 960);
    m.size = 40; /* none of the three holds a line */
    p = pool_of(&m);
    assert_int_equal(p.size, 0);
    assert_int_equal(p.align, 16);
}

/* The largest piece of 1, 2, 3... pieces; of large sizes as many as there is
 * room for, and 1 in the end. */
static void sizes_fall(void **state) {
    (void)state;
    static const uint32_t size[] = {1,    2,    3,    10,     224,
                                    2255, 2400, 9999, 1000003};
    for (uint32_t i = 0; i < sizeof size / sizeof *size; i++) {
        uint32_t tile[NEST_CUTS + 4] = {0}, k = 0;
        uint32_t n = nest_sizes(size[i], tile);
        for (uint32_t pieces = 1; pieces < size[i] && k + 1 < NEST_CUTS;
             pieces++) {
            uint32_t most = (size[i] + pieces - 1) / pieces;
            if (!k || tile[k - 1] != most)
                assert_int_equal(tile[k++], most);
        }
        assert_int_equal(n, k + 1);
        assert_int_equal(tile[k], 1);
        for (k++; k < NEST_CUTS + 4; k++)
            assert_int_equal(tile[k], 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_fall), cmocka_unit_test(loops),
        cmocka_unit_test(constants),  cmocka_unit_test(sizes),
        cmocka_unit_test(products),   cmocka_unit_test(memories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
