/* volumes_mix.c - products of two views as products of pixels of two volumes;
 * see volumes.c.
 *
 * Scores are sums over channels: [heads, tokens, d] x [heads, d, keys]. What
 * they weigh are sums over pixels: [heads, tokens, keys] x [heads, keys, d].
 * Tokens may be in windows, whose axis is one of the batch's.
 */
#include "passes/volumes.h"

static void turn_last(View *view) {
    ViewAxis last = view->axis[view->rank - 1];
    view->axis[view->rank - 1] = view->axis[view->rank - 2];
    view->axis[view->rank - 2] = last;
}

/* ---- windows ---- */

enum { MOST_PIXELS = 1 << 20 };

typedef struct Windows {
    uint32_t n[2], size[2], first[2];
} Windows;

static bool along_pixels(const View *view, uint32_t axis) {
    return !(view_moves(view, axis) & MOVES_CHANNELS);
}

/* The axis as rows of columns, from a first pixel on. */
static bool raster(const View *view, const ViewAxis *axis, uint32_t step_y,
                   uint32_t step_x, uint32_t n[2]) {
    const uint32_t *y = axis->at[VIEW_Y], *x = axis->at[VIEW_X];
    uint32_t across = 1;
    while (across < axis->n && y[across] == y[0])
        across++;
    n[0] = axis->n / across;
    n[1] = across;
    if (axis->n % across)
        return false;
    for (uint32_t i = 0; i < axis->n; i++)
        if (y[i] != (y[0] + i / across * step_y) % view->size[VIEW_Y] ||
            x[i] != (x[0] + i % across * step_x) % view->size[VIEW_X])
            return false;
    return true;
}

/* Axes of the batch that go along pixels, merged; what heads add is no pixel.
 */
static ViewAxis batch_pixels(Volumes *v, const View *view) {
    View some = *view;
    some.rank = 0;
    for (uint32_t i = 0; i + 2 < view->rank; i++)
        if (view_moves(view, i) != MOVES_CHANNELS)
            some.axis[some.rank++] = view->axis[i];
    return view_merged(v->arena, &some, 0, some.rank);
}

/* Windows whose pixels are those of the axis `tokens`. */
static bool windows_of(Volumes *v, const View *view, uint32_t tokens,
                       Windows *w) {
    ViewAxis batch = batch_pixels(v, view);
    for (uint32_t i = 0; i < view->rank; i++) {
        uint32_t moves = view_moves(view, i);
        if (i + 2 < view->rank && moves == (MOVES_CHANNELS | MOVES_PIXELS))
            return false;
    }
    const ViewAxis *own = &view->axis[tokens];
    if (!along_pixels(view, tokens) || !raster(view, own, 1, 1, w->size) ||
        !raster(view, &batch, w->size[0], w->size[1], w->n))
        return false;
    w->first[0] =
        (batch.at[VIEW_Y][0] + own->at[VIEW_Y][0]) % view->size[VIEW_Y];
    w->first[1] =
        (batch.at[VIEW_X][0] + own->at[VIEW_X][0]) % view->size[VIEW_X];
    return w->n[0] * w->size[0] == view->size[VIEW_Y] &&
           w->n[1] * w->size[1] == view->size[VIEW_X];
}

/* Pixels in another order: a row a window, its tokens in their order; those of
 * which several windows are, again for each. */
static bool order_windows(Volumes *v, View *view, uint32_t tokens, Windows *w) {
    ViewAxis batch = batch_pixels(v, view), own = view->axis[tokens];
    uint32_t h = view->size[VIEW_Y], width = view->size[VIEW_X];
    uint32_t plane[] = {batch.n, own.n}, step = 1;
    uint64_t n = (uint64_t)batch.n * own.n;
    if (n > MOST_PIXELS || !along_pixels(view, tokens))
        return false;
    uint32_t *pixel = ARENA_ARRAY(v->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i / own.n, in = i % own.n;
        pixel[i] = (batch.at[VIEW_Y][at] + own.at[VIEW_Y][in]) % h * width +
                   (batch.at[VIEW_X][at] + own.at[VIEW_X][in]) % width;
    }
    View made = *view;
    for (uint32_t k = view->rank; k-- > 0;) {
        uint32_t moves = view_moves(view, k), many = view->axis[k].n;
        bool windows = k + 2 < view->rank && !(moves & MOVES_CHANNELS);
        if (k + 2 < view->rank && moves == (MOVES_CHANNELS | MOVES_PIXELS))
            return false;
        if (windows || k == tokens)
            made.axis[k] = axis_of(v->arena, many, windows ? VIEW_Y : VIEW_X, 0,
                                   windows ? step : 1);
        step *= windows ? many : 1;
    }
    made.base = volumes_pixels(v, view->base, plane, pixel);
    made.size[VIEW_Y] = plane[0];
    made.size[VIEW_X] = plane[1];
    *view = made;
    *w = (Windows){{plane[0], 1}, {1, plane[1]}, {0, 0}};
    return true;
}

static bool same_windows(const View *a, const Windows *x, const View *b,
                         const Windows *y) {
    for (uint32_t i = 0; i < 2; i++)
        if (x->n[i] != y->n[i] || x->first[i] != y->first[i] ||
            (x->first[i] && a->size[VIEW_Y + i] != b->size[VIEW_Y + i]))
            return false;
    return true;
}

/* Both in the same windows of their planes; where they are none, in an order of
 * pixels in which they are. */
static bool both_in_windows(Volumes *v, View *a, uint32_t of_a, View *b,
                            uint32_t of_b, Windows *w) {
    Windows other;
    if (windows_of(v, a, of_a, w) && windows_of(v, b, of_b, &other) &&
        same_windows(a, w, b, &other))
        return true;
    return order_windows(v, a, of_a, w) && order_windows(v, b, of_b, &other) &&
           same_windows(a, w, b, &other);
}

/* ---- heads ---- */

/* Whether the axis is `n` channels in their order, and whether heads of the
 * batch begin at multiples of that. */
static bool in_heads(const View *view, uint32_t axis) {
    const ViewAxis *own = &view->axis[axis];
    for (uint32_t i = 0; i < own->n; i++)
        if (own->at[VIEW_C][i] != i)
            return false;
    if (view_moves(view, axis) & MOVES_PIXELS || view->size[VIEW_C] % own->n)
        return false;
    for (uint32_t k = 0; k < view->rank; k++)
        for (uint32_t i = 0; i < view->axis[k].n && k != axis; i++)
            if (view->axis[k].at[VIEW_C][i] % own->n)
                return false;
    return true;
}

/* Head i of both has one number. */
static bool same_heads(const View *a, uint32_t wide_a, const View *b,
                       uint32_t wide_b) {
    for (uint32_t k = 0; k + 2 < a->rank; k++)
        for (uint32_t i = 0; i < a->axis[k].n; i++)
            if (a->axis[k].n != b->axis[k].n ||
                a->axis[k].at[VIEW_C][i] / wide_a !=
                    b->axis[k].at[VIEW_C][i] / wide_b)
                return false;
    return a->size[VIEW_C] / wide_a == b->size[VIEW_C] / wide_b;
}

/* ---- products ---- */

/* The product has the rows of `a`, and for each head `made` channels behind
 * `wide` of `a`; `turned`: it is the one that was asked for with its last two
 * axes exchanged. */
static void give_rows(Volumes *v, const View *a, TensorId base, uint32_t wide,
                      uint32_t made, bool turned) {
    uint32_t last = a->rank - 1;
    View view = view_over(a, base, a->size[VIEW_C] / wide * made);
    for (uint32_t k = 0; k < last; k++) {
        uint32_t n = view.axis[k].n;
        uint32_t *at = ARENA_ARRAY(v->arena, uint32_t, n);
        for (uint32_t i = 0; i < n; i++)
            at[i] = a->axis[k].at[VIEW_C][i] / wide * made;
        view.axis[k].at[VIEW_C] = at;
    }
    view.axis[last] = axis_of(v->arena, made, VIEW_C, 0, 1);
    if (turned)
        turn_last(&view);
    if (view.rank != volumes_out(v)->rank &&
        !view_reshape(v->arena, &view, volumes_out(v)))
        bug("pass volumes: axes of a batch do not merge");
    volumes_give(v, &view);
}

static TensorId mixed(Volumes *v, const View *a, const View *b,
                      const Windows *w, bool sums, uint32_t wide) {
    Layer layer = layer_of(OP_MIX, "volume", a->base);
    layer.n_in = 2;
    layer.in[1] = b->base;
    layer.attr.mix.over_pixels = sums;
    layer.attr.mix.groups = a->size[VIEW_C] / wide;
    for (uint32_t i = 0; i < 2; i++) {
        layer.attr.mix.windows[i] = w->n[i];
        layer.attr.mix.shift[i] = w->first[i];
    }
    return volumes_add(v, &layer);
}

static bool lies_in_heads(Volumes *v, View *view, uint32_t channels) {
    View made = *view;
    if (volumes_compact(v, &made) && in_heads(&made, channels)) {
        *view = made;
        return true;
    }
    return volumes_heads(v, view, channels) && volumes_compact(v, view) &&
           in_heads(view, channels);
}

/* What all windows of the other share is there again for each. */
static void repeat_windows(Volumes *v, View *view, const View *other) {
    for (uint32_t k = 0; k + 2 < view->rank; k++) {
        uint32_t h = view->size[VIEW_Y], w = view->size[VIEW_X];
        uint32_t n = view->axis[k].n, plane[] = {n * h, w};
        uint64_t all = (uint64_t)n * h * w;
        if (n == 1 || n != other->axis[k].n || view_moves(view, k) ||
            view_moves(other, k) != MOVES_PIXELS || all > MOST_PIXELS)
            continue;
        uint32_t *pixel = ARENA_ARRAY(v->arena, uint32_t, all);
        for (uint32_t i = 0; i < all; i++)
            pixel[i] = i % (h * w);
        view->base = volumes_pixels(v, view->base, plane, pixel);
        view->axis[k] = axis_of(v->arena, n, VIEW_Y, 0, h);
        view->size[VIEW_Y] = plane[0];
    }
}

/* Windows and heads that files have as one axis. */
static void split_batch(Volumes *v, View *a, View *b) {
    for (uint32_t k = 0; k + 2 < a->rank && a->rank < SHAPE_MAX_RANK; k++) {
        uint32_t all = a->axis[k].n;
        if ((!volumes_mixes(a, k) && !volumes_mixes(b, k)) ||
            all != b->axis[k].n)
            continue;
        for (uint32_t n = 2; n < all; n++) {
            View first = *a, second = *b;
            if (all % n || !volumes_split(v, &first, k, n) ||
                !volumes_split(v, &second, k, n))
                continue;
            *a = first;
            *b = second;
            break;
        }
    }
}

static bool multiply(Volumes *v, View a, View b, bool turned) {
    Windows w;
    split_batch(v, &a, &b);
    repeat_windows(v, &a, &b);
    repeat_windows(v, &b, &a);
    uint32_t last = a.rank - 1, inner = last - 1;
    bool sums = view_moves(&b, last) == MOVES_CHANNELS;
    uint32_t tokens = sums ? inner : last, channels = sums ? last : inner;
    if (!lies_in_heads(v, &a, last) || !lies_in_heads(v, &b, channels))
        return false;
    uint32_t wide_a = a.axis[last].n, wide_b = b.axis[channels].n;
    if (!same_heads(&a, wide_a, &b, wide_b) || (!sums && wide_a != wide_b) ||
        !both_in_windows(v, &a, inner, &b, tokens, &w))
        return false;
    give_rows(v, &a, mixed(v, &a, &b, &w, sums, wide_a), wide_a, b.axis[last].n,
              turned);
    return true;
}

/* ---- one operand that the network brings along ---- */

/* Where the part for a head begins among the constant's matrices; NONE: pixels
 * of one head would need several. */
static uint32_t matrix_of(const View *a, const Shape *own, uint32_t index) {
    uint32_t at = 0, step = 1, before = a->rank - own->rank;
    for (uint32_t k = a->rank - 2; k-- > 0;) {
        uint32_t i = index % a->axis[k].n,
                 n = k < before ? 1 : own->dim[k - before];
        index /= a->axis[k].n;
        if (n > 1 && view_moves(a, k) & MOVES_PIXELS)
            return NONE;
        at += n > 1 ? i * step : 0;
        step *= n;
    }
    return at;
}

static uint32_t head_of(const View *a, uint32_t index) {
    uint32_t at = 0;
    for (uint32_t k = a->rank - 2; k-- > 0; index /= a->axis[k].n)
        at += a->axis[k].at[VIEW_C][index % a->axis[k].n];
    return at / a->axis[a->rank - 1].n;
}

/* Rows of weights, one for each channel of the product. NULL: they differ
 * within a head. */
static double *head_weights(Volumes *v, const View *a, uint32_t k, uint32_t n,
                            TensorId constant, bool turned) {
    const Shape *own = &graph_tensor(v->g, constant)->shape;
    uint32_t wide = a->axis[a->rank - 1].n, all = 1;
    double *read = ARENA_ARRAY(v->arena, double, shape_count(own));
    double *made = ARENA_ARRAY(v->arena, double, (size_t)k *wide *n);
    const_read_f64(volumes_value(v, constant), read);
    for (uint32_t i = 0; i + 2 < a->rank; i++)
        all *= a->axis[i].n;
    for (uint32_t i = 0; i < all; i++) {
        uint32_t at = matrix_of(a, own, i), head = head_of(a, i);
        if (at == NONE || head >= k)
            return NULL;
        for (uint32_t o = 0; o < n; o++)
            for (uint32_t c = 0; c < wide; c++)
                made[((size_t)head * n + o) * wide + c] =
                    read[(size_t)at * wide * n +
                         (turned ? o * wide + c : c * n + o)];
    }
    return made;
}

/* Each head is a group of a convolution. */
static bool multiply_constant(Volumes *v, View a, TensorId constant,
                              bool turned) {
    const Shape *own = &graph_tensor(v->g, constant)->shape;
    uint32_t last = a.rank - 1;
    if (own->rank < 2 || own->rank > a.rank || !lies_in_heads(v, &a, last) ||
        !along_pixels(&a, last - 1))
        return false;
    for (uint32_t i = 0; i + 2 < a.rank; i++)
        if (volumes_mixes(&a, i))
            return false;
    uint32_t wide = a.axis[last].n, heads = a.size[VIEW_C] / wide;
    uint32_t n = own->dim[own->rank - (turned ? 2 : 1)];
    double *weight = head_weights(v, &a, heads, n, constant, turned);
    if (!weight)
        return false;
    Layer layer = layer_of_heads(a.base, heads, n);
    layer.no_bias = true;
    layer.constant[CONST_WEIGHT] =
        volumes_const(v, shape_nchw(heads * n, wide, 1, 1), weight);
    give_rows(v, &a, volumes_add(v, &layer), wide, n, turned);
    return true;
}

/* ---- ways to look at operands ---- */

enum { MOST_WAYS = 4 };

/* What input k can be seen as: its view, or, of a tensor that is none, one
 * whose last axis are channels; each also with channels and pixels exchanged.
 */
static uint32_t ways_of(Volumes *v, uint32_t k, bool turned, View *way) {
    uint32_t n = 0;
    bool plain = volumes_plain(v, k);
    n += volumes_see(v, k, &way[n]);
    if (plain)
        n += volumes_see_last(v, k, &way[n]);
    for (uint32_t i = 0, seen = n; i < seen; i++) {
        way[n] = way[i];
        n += volumes_swap(v, &way[n]) ||
             volumes_by_channel(v, &way[n], way[n].rank - 1);
    }
    for (uint32_t i = 0; i < n && turned; i++)
        turn_last(&way[i]);
    return n;
}

/* a x b, or, turned, the transpose of b times that of a. */
static bool multiply_any(Volumes *v, bool turned) {
    View a[MOST_WAYS], b[MOST_WAYS];
    uint32_t n_a = ways_of(v, turned, turned, a);
    uint32_t n_b = ways_of(v, !turned, turned, b);
    for (uint32_t i = 0; i < n_a; i++)
        for (uint32_t k = 0; k < n_b; k++)
            if (a[i].rank == b[k].rank && a[i].rank > 1 &&
                multiply(v, a[i], b[k], turned))
                return true;
    return false;
}

/* As both are seen: nothing turns. */
static bool multiply_seen(Volumes *v, const View *a, const View *b, bool has) {
    View first = *b, second = *a;
    if (multiply(v, *a, *b, false))
        return true;
    turn_last(&first);
    turn_last(&second);
    return has && multiply(v, first, second, true);
}

static bool multiply_by(Volumes *v, uint32_t constant) {
    View a[MOST_WAYS];
    bool turned = constant == 0;
    uint32_t n = ways_of(v, 1 - constant, turned, a);
    for (uint32_t i = 0; i < n; i++)
        if (a[i].rank > 1 &&
            multiply_constant(v, a[i], v->node->in[constant], turned))
            return true;
    return false;
}

bool convert_matmul(Volumes *v) {
    View a, b;
    bool has = volumes_has(v, HW_OP_MATMUL_CHANNELS) &&
               volumes_has(v, HW_OP_MATMUL_PIXELS);
    if (v->node->act.kind != ACT_NONE)
        return false;
    for (uint32_t k = 0; k < 2; k++)
        if (volumes_value(v, v->node->in[k]))
            return volumes_has(v, HW_OP_CONV) && multiply_by(v, k);
    if (volumes_see(v, 0, &a) && volumes_see(v, 1, &b) && a.rank == b.rank &&
        a.rank > 1 && multiply_seen(v, &a, &b, has))
        return true;
    return has && (multiply_any(v, false) || multiply_any(v, true));
}
