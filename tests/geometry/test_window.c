/* test_window.c - what parts of results are made from: every span of random
 * layers, against the pixels that its windows touch, one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/geometry/net.h"

/* A window function along an axis. */
typedef struct Kernel {
    int64_t kernel, stride, dilation, pad;
    bool all; /* it reads everything */
} Kernel;

/* The lowest and the highest pixel that outputs [at, at + n) touch, inside or
 * outside of the input; the last window's first pixel. */
typedef struct Touched {
    int64_t low, high, last;
} Touched;

static Touched touched(const Kernel *k, int64_t at, int64_t n, int64_t size) {
    Touched t = {INT64_MAX, INT64_MIN, 0};
    if (k->all)
        return (Touched){0, size - 1, 0};
    for (int64_t i = at; i < at + n; i++)
        for (int64_t tap = 0; tap < k->kernel; tap++) {
            int64_t p = i * k->stride + tap * k->dilation - k->pad;
            t.low = p < t.low ? p : t.low;
            t.high = p > t.high ? p : t.high;
            t.last = tap == 0 ? p : t.last;
        }
    return t;
}

/* Those from the lowest to the highest that the input has, at least one; how
 * far the lowest is in front of it. */
typedef struct Inside {
    int64_t first, n, before;
    bool starts; /* the last window starts no later than the padding ends, that
                    is as large behind as before */
} Inside;

static Inside inside(const Kernel *k, int64_t at, int64_t n, int64_t size) {
    Touched t = touched(k, at, n, size);
    Inside in = {.before = t.low < 0 ? -t.low : 0};
    int64_t low = t.low < 0 ? 0 : t.low;
    int64_t high = t.high < size ? t.high : size - 1;
    low = low < size ? low : size - 1;
    in.first = low;
    in.n = high > low ? high - low + 1 : 1;
    in.starts = k->all || t.last < in.first + in.n + in.before;
    return in;
}

static Kernel conv_kernel(const ConvAttr *a, int axis) {
    return (Kernel){a->kernel[axis], a->stride[axis], a->dilation[axis],
                    a->pad[axis], false};
}

static Kernel pool_kernel(const PoolAttr *a, int axis) {
    return (Kernel){a->kernel[axis], a->stride[axis], 1, a->pad[axis],
                    a->global};
}

static Volume drawn(Dice *d) {
    return (Volume){draw(d, 1, 5), draw(d, 1, 12), draw(d, 1, 12), {0}};
}

static uint32_t along(Volume v, uint32_t axis) {
    return axis ? v.w : v.h;
}

static void same_rows(Rows a, Rows b) {
    assert_int_equal(a.in_row, b.in_row);
    assert_int_equal(a.in_rows, b.in_rows);
    assert_int_equal(a.pad_top, b.pad_top);
    assert_int_equal(a.pool_pad_top, b.pool_pad_top);
}

typedef Rows Expected(const Net *n, uint32_t axis, uint32_t at, uint32_t count);

/* Every span along both axes; how many can be made. */
static uint64_t every_span(const Net *n, Expected *expected) {
    Volume out = plan_volume(n->g, net_node(n)->out[0]);
    uint64_t made = 0;
    for (uint32_t axis = 0; axis < 2; axis++)
        for (uint32_t at = 0; at < along(out, axis); at++)
            for (uint32_t k = 1; at + k <= along(out, axis); k++) {
                Rows want = expected(n, axis, at, k);
                Rows got = axis_needed(n->g, n->node, axis, at, k);
                if (want.in_rows)
                    same_rows(got, want);
                else
                    assert_int_equal(got.in_rows, 0);
                if (!axis)
                    same_rows(rows_needed(n->g, n->node, at, k), got);
                made += want.in_rows > 0;
            }
    return made;
}

static Rows windows_of(const Net *n, const Kernel *k, uint32_t axis,
                       uint32_t at, uint32_t count) {
    int64_t size = along(plan_volume(n->g, n->input), axis);
    Touched t = touched(k, at, count, size);
    Inside in = inside(k, at, count, size);
    if (t.low >= size || !in.starts)
        return (Rows){0};
    return (Rows){(uint32_t)in.first, (uint32_t)in.n, (uint32_t)in.before, 0};
}

static Rows conv_rows(const Net *n, uint32_t axis, uint32_t at,
                      uint32_t count) {
    Kernel k = conv_kernel(&net_node(n)->attr.conv, (int)axis);
    return windows_of(n, &k, axis, at, count);
}

static Rows pool_rows(const Net *n, uint32_t axis, uint32_t at,
                      uint32_t count) {
    Kernel k = pool_kernel(&net_node(n)->attr.pool, (int)axis);
    return windows_of(n, &k, axis, at, count);
}

enum { LAYERS = 400 };

static void convolutions(void **state) {
    (void)state;
    Dice d = {1, 0};
    uint64_t made = 0;
    for (int i = 0; i < LAYERS; i++) {
        Volume in = drawn(&d);
        Net n = net_open(in.c, in.h, in.w, OP_CONV);
        net_node(&n)->attr.conv = draw_conv(&d, 3);
        if (net_close(&n))
            made += every_span(&n, conv_rows);
        arena_free(n.arena);
    }
    assert_true(made > LAYERS * 10);
}

static void pools(void **state) {
    (void)state;
    Dice d = {2, 0};
    uint64_t made = 0;
    for (int i = 0; i < LAYERS; i++) {
        Volume in = drawn(&d);
        Net n = net_open(in.c, in.h, in.w, OP_POOL);
        net_node(&n)->attr.pool = draw_pool(&d);
        if (net_close(&n))
            made += every_span(&n, pool_rows);
        arena_free(n.arena);
    }
    assert_true(made > LAYERS * 10);
}

/* ---- a pool behind a convolution ---- */

static int64_t mid_size(const Net *n, uint32_t axis) {
    const ConvAttr *a = &net_node(n)->attr.conv;
    int64_t size = along(plan_volume(n->g, n->input), axis);
    int64_t reach = (int64_t)(a->kernel[axis] - 1) * a->dilation[axis] + 1;
    int64_t room = size + a->pad[axis] + a->pad_end[axis] - reach;
    return room / a->stride[axis] + 1;
}

static Rows both_rows(const Net *n, uint32_t axis, uint32_t at,
                      uint32_t count) {
    Kernel pool = pool_kernel(&net_node(n)->attr.pool, (int)axis);
    Kernel conv = conv_kernel(&net_node(n)->attr.conv, (int)axis);
    Inside mid = inside(&pool, at, count, mid_size(n, axis));
    assert_int_equal(axis_before_pool(n->g, n->node, axis, at, count), mid.n);
    Rows r = windows_of(n, &conv, axis, (uint32_t)mid.first, (uint32_t)mid.n);
    r.pool_pad_top = (uint32_t)mid.before;
    return mid.starts ? r : (Rows){0};
}

static bool open_both(Net *n, Dice *d) {
    Volume in = drawn(d);
    *n = net_open(in.c, in.h, in.w, OP_CONV_POOL);
    net_node(n)->attr.conv = draw_conv(d, 2);
    net_node(n)->attr.pool = draw_pool(d);
    return net_close(n);
}

static void convolutions_with_pools(void **state) {
    (void)state;
    Dice d = {3, 0};
    uint64_t made = 0;
    for (int i = 0; i < LAYERS; i++) {
        Net n;
        if (open_both(&n, &d))
            made += every_span(&n, both_rows);
        arena_free(n.arena);
    }
    assert_true(made > LAYERS * 4);
}

/* ---- transposed convolutions ---- */

/* Whether input i reaches one of the outputs [at, at + count), gaps of a
 * dilated kernel aside. */
static bool reaches(const ConvAttr *a, uint32_t axis, int64_t i, int64_t at,
                    int64_t count) {
    int64_t first = i * a->stride[axis] - a->pad[axis];
    int64_t last = first + (int64_t)(a->kernel[axis] - 1) * a->dilation[axis];
    return last >= at && first < at + count;
}

/* What an instruction makes of rows [first, first + n) is all that they reach,
 * without `pad` at both ends. */
static Rows spread_rows(const Net *n, uint32_t axis, uint32_t at,
                        uint32_t count) {
    const ConvAttr *a = &net_node(n)->attr.conv;
    int64_t size = along(plan_volume(n->g, n->input), axis);
    int64_t first = -1, last = -1;
    for (int64_t i = 0; i < size; i++)
        if (reaches(a, axis, i, at, count)) {
            first = first < 0 ? i : first;
            last = i;
        }
    if (first < 0)
        return (Rows){0};
    int64_t reach = (int64_t)(a->kernel[axis] - 1) * a->dilation[axis];
    int64_t made = (last - first) * a->stride[axis] + reach + 1;
    int64_t pad = (int64_t)at - (first * a->stride[axis] - a->pad[axis]);
    if (pad < 0 || made - 2 * pad != count)
        return (Rows){0};
    return (Rows){(uint32_t)first, (uint32_t)(last - first + 1), (uint32_t)pad,
                  0};
}

static bool is_spread(const ConvAttr *a) {
    bool all = true;
    for (int i = 0; i < 2; i++)
        all = all && a->kernel[i] == a->stride[i] && a->dilation[i] == 1 &&
              !a->pad[i] && !a->pad_end[i];
    return all;
}

static void check_quantum(const Net *n) {
    const ConvAttr *a = &net_node(n)->attr.conv;
    assert_int_equal(deconv_spreads(net_node(n)), is_spread(a));
    for (uint32_t axis = 0; axis < 2; axis++)
        assert_int_equal(node_quantum(n->g, n->node, axis),
                         is_spread(a) ? a->stride[axis] : 1);
}

static void transposed(void **state) {
    (void)state;
    Dice d = {4, 0};
    uint64_t made = 0, spread = 0;
    for (int i = 0; i < 2 * LAYERS; i++) {
        Volume in = drawn(&d);
        Net n = net_open(in.c, in.h, in.w, OP_DECONV);
        ConvAttr *a = &net_node(&n)->attr.conv;
        *a = draw_conv(&d, 3);
        for (int axis = 0; axis < 2 && i % 2; axis++) {
            a->kernel[axis] = a->stride[axis];
            a->dilation[axis] = draw(&d, 0, 9) ? 1 : 2;
            a->pad[axis] = draw(&d, 0, 9) ? 0 : 1;
            a->pad_end[axis] = draw(&d, 0, 9) ? 0 : 1;
        }
        if (net_close(&n)) {
            made += every_span(&n, spread_rows);
            check_quantum(&n);
            spread += deconv_spreads(net_node(&n));
        }
        arena_free(n.arena);
    }
    assert_true(made > LAYERS * 4 && spread > LAYERS / 4);
}

/* ---- layers without windows ---- */

static Rows as_upsampled(const Net *n, uint32_t axis, uint32_t at,
                         uint32_t count) {
    uint32_t f = net_node(n)->attr.up.factor[axis];
    uint32_t first = at / f, last = (at + count - 1) / f;
    return (Rows){first, last - first + 1, 0, 0};
}

static Rows as_is(const Net *n, uint32_t axis, uint32_t at, uint32_t count) {
    (void)n, (void)axis;
    return (Rows){at, count, 0, 0};
}

static Rows everything(const Net *n, uint32_t axis, uint32_t at,
                       uint32_t count) {
    (void)at, (void)count;
    return (Rows){0, along(plan_volume(n->g, n->input), axis), 0, 0};
}

static void others(void **state) {
    (void)state;
    static const struct {
        OpKind op;
        Expected *expected;
    } rows[] = {{OP_UPSAMPLE, as_upsampled}, {OP_ELTWISE, as_is},
                {OP_SCALE, as_is},           {OP_ACT, as_is},
                {OP_CONCAT, as_is},          {OP_LRN, everything}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Net n = net_open(3, 7, 5, rows[i].op);
        if (rows[i].op == OP_UPSAMPLE) {
            net_node(&n)->attr.up.factor[0] = 3;
            net_node(&n)->attr.up.factor[1] = 2;
        }
        if (rows[i].op == OP_CONCAT)
            net_node(&n)->attr.axis.axis = 1;
        if (rows[i].op == OP_LRN)
            net_node(&n)->attr.lrn.size = 3;
        if (rows[i].op == OP_ACT)
            net_node(&n)->act.kind = ACT_RELU;
        if (!net_close(&n))
            fail_msg("%s", op_info[rows[i].op].name);
        assert_true(every_span(&n, rows[i].expected) > 0);
        uint32_t up = rows[i].op == OP_UPSAMPLE;
        assert_int_equal(node_quantum(n.g, n.node, 0), up ? 3 : 1);
        assert_int_equal(node_quantum(n.g, n.node, 1), up ? 2 : 1);
        assert_int_equal(tile_extent(n.g, net_node(&n), 0, 4),
                         up ? 2
                         : rows[i].expected == as_is && rows[i].op != OP_CONCAT
                             ? 4
                             : 7);
        assert_int_equal(tile_extent(n.g, net_node(&n), 1, 99), 5);
        arena_free(n.arena);
    }
}

/* ---- tiles of the hardware ---- */

static Inside behind(const Net *n, uint32_t axis, int64_t at, int64_t count) {
    const Node *node = net_node(n);
    int64_t size = along(plan_volume(n->g, n->input), axis);
    Kernel pool = pool_kernel(&node->attr.pool, (int)axis);
    Kernel conv = conv_kernel(&node->attr.conv, (int)axis);
    if (node->op == OP_POOL)
        return inside(&pool, at, count, size);
    if (node->op == OP_CONV)
        return inside(&conv, at, count, size);
    Inside mid = inside(&pool, at, count, mid_size(n, axis));
    return inside(&conv, mid.first, mid.n, size);
}

static void check_spans(const Net *n, uint32_t axis) {
    uint32_t out = along(plan_volume(n->g, net_node(n)->out[0]), axis);
    bool pooled = net_node(n)->op == OP_CONV_POOL;
    for (uint32_t at = 0; at < out; at++)
        for (uint32_t k = 1; at + k <= out; k++) {
            uint32_t in, made;
            tile_needs(n->g, n->node, axis, at, k, &in, &made);
            assert_int_equal(in, behind(n, axis, at, k).n);
            assert_int_equal(
                made,
                pooled ? axis_before_pool(n->g, n->node, axis, at, k) : k);
        }
}

/* Pixels that the windows of n outputs reach over, no more than there are. */
static void check_extents(const Net *n, uint32_t axis) {
    const Node *node = net_node(n);
    uint32_t size = along(plan_volume(n->g, n->input), axis);
    uint32_t out = along(plan_volume(n->g, node->out[0]), axis);
    Kernel pool = pool_kernel(&node->attr.pool, (int)axis);
    Kernel conv = conv_kernel(&node->attr.conv, (int)axis);
    for (uint32_t k = 1; k <= out; k++) {
        int64_t reach = k;
        if (node->op != OP_CONV) {
            int64_t whole = node->op == OP_POOL ? size : mid_size(n, axis);
            Touched t = touched(&pool, 0, reach, whole);
            reach = t.high - t.low + 1;
        }
        if (node->op != OP_POOL) {
            Touched t = touched(&conv, 0, reach, size);
            reach = t.high - t.low + 1;
        }
        assert_int_equal(tile_extent(n->g, node, axis, k),
                         reach < size ? reach : size);
    }
}

static uint64_t summed(const Net *n, uint32_t axis, uint32_t tile) {
    uint32_t out = along(plan_volume(n->g, net_node(n)->out[0]), axis);
    uint64_t sum = 0;
    for (uint32_t at = 0; at < out; at += tile)
        sum +=
            (uint64_t)behind(n, axis, at, at + tile < out ? tile : out - at).n;
    return sum;
}

static void check_tiles(const Net *n) {
    for (uint32_t axis = 0; axis < 2; axis++) {
        check_spans(n, axis);
        check_extents(n, axis);
    }
    for (uint32_t w = 1; w < 6; w++)
        for (uint32_t h = 1; h < 6; h++)
            assert_int_equal(tiles_read(n->g, net_node(n), w, h),
                             summed(n, 0, h) * summed(n, 1, w));
}

static void tiles(void **state) {
    (void)state;
    static const OpKind ops[] = {OP_CONV, OP_POOL, OP_CONV_POOL};
    Dice d = {5, 0};
    uint32_t seen = 0;
    for (int i = 0; i < LAYERS; i++) {
        Volume in = drawn(&d);
        Net n = net_open(in.c, in.h, in.w, ops[i % 3]);
        if (ops[i % 3] != OP_POOL)
            net_node(&n)->attr.conv = draw_conv(&d, 3);
        if (ops[i % 3] != OP_CONV)
            net_node(&n)->attr.pool = draw_pool(&d);
        if (net_close(&n)) {
            check_tiles(&n);
            seen++;
        }
        arena_free(n.arena);
    }
    assert_true(seen > LAYERS / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),
        cmocka_unit_test(pools),
        cmocka_unit_test(convolutions_with_pools),
        cmocka_unit_test(transposed),
        cmocka_unit_test(others),
        cmocka_unit_test(tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
