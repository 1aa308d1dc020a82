/* test_loop_nest.c - tiles of rows, columns and channels: the plan's against
 * every size and order, each counted by walking its loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/alloc/case.h"

typedef struct Layer {
    uint32_t in_c, in, out_c, out, kernel, stride, pad;
} Layer;

typedef struct Tile {
    uint32_t h, w, c, in_c;
    bool stay;
} Tile;

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t pieces(uint32_t n, uint32_t tile) {
    return (n + tile - 1) / tile;
}

/* Pixels of an axis that windows [at, at + n) read. */
static uint64_t along(const Layer *l, uint32_t at, uint32_t n) {
    uint64_t sum = 0;
    for (uint32_t p = 0; p < l->in; p++) {
        bool read = false;
        for (uint32_t i = at; i < at + n; i++)
            for (uint32_t k = 0; k < l->kernel; k++)
                read |= i * l->stride + k == p + l->pad;
        sum += read;
    }
    return sum;
}

static uint64_t widest(const Layer *l, uint32_t tile) {
    uint64_t most = 0;
    for (uint32_t at = 0; at < l->out; at += tile) {
        uint64_t n = along(l, at, least(tile, l->out - at));
        most = n > most ? n : most;
    }
    return most;
}

static uint64_t all_along(const Layer *l, uint32_t tile) {
    uint64_t sum = 0;
    for (uint32_t at = 0; at < l->out; at += tile)
        sum += along(l, at, least(tile, l->out - at));
    return sum;
}

/* Two of what changes, 4 bytes a sum. */
static uint64_t room(const Layer *l, const Tile *t) {
    uint64_t taps = (uint64_t)l->kernel * l->kernel;
    uint32_t n_in = pieces(l->in_c, t->in_c), n_c = pieces(l->out_c, t->c);
    uint32_t spots = pieces(l->out, t->h) * pieces(l->out, t->w);
    uint64_t input = widest(l, t->h) * widest(l, t->w) * t->in_c;
    uint64_t weights = taps * t->in_c * t->c;
    return (spots * n_in > 1 ? 2 : 1) * input +
           (n_c * n_in > 1 ? 2 : 1) * weights +
           UINT64_C(4) * t->h * t->w * t->c;
}

/* What is read when a tile that is not in use comes: the numbers of the tiles
 * follow each other as the loops go. */
static uint64_t walk(const Layer *l, const Tile *t) {
    uint64_t taps = (uint64_t)l->kernel * l->kernel, sum = 0;
    uint32_t n_in = pieces(l->in_c, t->in_c), n_c = pieces(l->out_c, t->c);
    uint32_t across = pieces(l->out, t->w),
             spots = pieces(l->out, t->h) * across;
    uint32_t outer = t->stay ? n_c : spots, inner = t->stay ? spots : n_c;
    uint32_t input = UINT32_MAX, weights = UINT32_MAX;
    for (uint32_t a = 0; a < outer; a++)
        for (uint32_t b = 0; b < inner; b++)
            for (uint32_t i = 0; i < n_in; i++) {
                uint32_t spot = t->stay ? b : a, c = t->stay ? a : b;
                uint32_t depth = least(t->in_c, l->in_c - i * t->in_c);
                uint32_t row = spot / across * t->h, col = spot % across * t->w;
                if (input != spot * n_in + i)
                    sum += depth * along(l, row, least(t->h, l->out - row)) *
                           along(l, col, least(t->w, l->out - col));
                if (weights != c * n_in + i)
                    sum += taps * depth * least(t->c, l->out_c - c * t->c);
                input = spot * n_in + i;
                weights = c * n_in + i;
            }
    return sum;
}

/* The same in closed form, to look at all sizes. */
static uint64_t reads(const Layer *l, const Tile *t, uint64_t rows,
                      uint64_t cols) {
    uint64_t taps = (uint64_t)l->kernel * l->kernel;
    uint32_t n_in = pieces(l->in_c, t->in_c), n_c = pieces(l->out_c, t->c);
    uint32_t spots = pieces(l->out, t->h) * pieces(l->out, t->w);
    uint64_t input = rows * cols * l->in_c, weights = taps * l->in_c * l->out_c;
    if (n_in > 1 || (t->stay && spots > 1))
        input *= n_c;
    if (n_in > 1 || (!t->stay && n_c > 1))
        weights *= spots;
    return input + weights;
}

static uint64_t best_of_all(const Layer *l, uint64_t bytes) {
    uint64_t best = UINT64_MAX;
    Tile t;
    for (t.h = 1; t.h <= l->out; t.h++)
        for (t.w = 1; t.w <= l->out; t.w++) {
            uint64_t rows = all_along(l, t.h), cols = all_along(l, t.w);
            for (t.c = 1; t.c <= l->out_c; t.c++)
                for (t.in_c = 1; t.in_c <= l->in_c; t.in_c++)
                    for (int stay = 0; stay < 2; stay++) {
                        t.stay = stay;
                        uint64_t sum = reads(l, &t, rows, cols);
                        if (sum < best && room(l, &t) <= bytes)
                            best = sum;
                    }
        }
    return best;
}

static const Action *plan_of(Case *c, const Layer *l) {
    c->toy->style[0] = (HwTileStyle){.in_backing = true,
                                     .out_backing = true,
                                     .ops = 1u << HW_OP_CONV,
                                     .reserved = c->toy->memory[0].size,
                                     .sums = 4};
    c->toy->spec.tiling = (HwTiling){
        .kind = HW_TILING_HARDWARE,
        .tiles = {.always = 1u << HW_OP_CONV, .n = 1, .style = c->toy->style}};
    TensorId x = net_input(c->g, l->in_c, l->in, l->in);
    graph_mark_output(c->g, net_conv(c->g, c->diag, "a", x, l->out_c, l->kernel,
                                     l->stride, 1, l->pad));
    const Plan *plan = case_plan(c);
    assert_int_equal(plan->n_actions, 1);
    return &plan->action[0];
}

static const Layer layers[] = {
    {6, 12, 8, 12, 3, 1, 1}, {8, 9, 5, 5, 3, 2, 1},  {12, 8, 16, 8, 1, 1, 0},
    {5, 9, 7, 5, 1, 2, 0},   {3, 15, 4, 6, 5, 2, 0}, {16, 4, 16, 4, 3, 1, 1},
};

/* No size is better; what the plan says it moves is what its loops fetch. */
static void none_moves_less(void **state) {
    (void)state;
    static const uint64_t sizes[] = {110, 150, 260, 400, 700, 1200, 3000, 9000};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const Layer *l = &layers[i];
            Case c = case_new(sizes[k]);
            const Action *a = plan_of(&c, l);
            Tile t = {a->tile_h, a->tile_w, a->nest.c, a->nest.in_c,
                      a->nest.weights_stay};
            assert_true(room(l, &t) <= sizes[k]);
            uint64_t moved = walk(l, &t);
            if (moved != best_of_all(l, sizes[k]))
                fail_msg("layer %zu with %llu bytes: %llu, not %llu", i,
                         (unsigned long long)sizes[k],
                         (unsigned long long)moved,
                         (unsigned long long)best_of_all(l, sizes[k]));
            arena_free(c.arena);
        }
}

/* All tiles lie apart, below what is reserved. */
static void places(void **state) {
    (void)state;
    for (uint64_t size = 60; size < 4000; size += 77) {
        Case c = case_new(size);
        const Nest *n = &plan_of(&c, &layers[0])->nest;
        const uint64_t at[] = {n->input[0],   n->input[1], n->weights[0],
                               n->weights[1], n->sums,     size};
        for (size_t i = 0; i + 1 < sizeof at / sizeof *at; i++)
            assert_true(at[i] <= at[i + 1]);
        assert_int_equal(n->over, 0);
        arena_free(c.arena);
    }
}

static void too_small(void **state) {
    (void)state;
    Case c = case_new(20); /* 2 inputs, 2 x 9 weights, a sum: 24 */
    bool does_not_fit;
    c.toy->style[0] = (HwTileStyle){.in_backing = true,
                                    .out_backing = true,
                                    .ops = 1u << HW_OP_CONV,
                                    .reserved = 20,
                                    .sums = 4};
    c.toy->spec.tiling = (HwTiling){
        .kind = HW_TILING_HARDWARE,
        .tiles = {.always = 1u << HW_OP_CONV, .n = 1, .style = c.toy->style}};
    TensorId x = net_input(c.g, 4, 8, 8);
    graph_mark_output(c.g, net_conv(c.g, c.diag, "a", x, 4, 3, 1, 1, 1));
    assert_null(net_plan(c.arena, c.diag, &c.toy->spec, c.g, &does_not_fit));
    assert_true(does_not_fit);
    arena_free(c.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_moves_less),
        cmocka_unit_test(places),
        cmocka_unit_test(too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
