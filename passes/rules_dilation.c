/* rules_dilation.c - convolutions whose taps lie far apart: taps that read
 * padding alone go, and dilations beyond an engine's limit go by phases, or get
 * taps of zeros between, whatever is less work and fits.
 *
 * Rows y, y + m, y + 2 m... see each other alone where the dilation d is a
 * multiple of m: they are a convolution of dilation d / m of their own. All m
 * phases lie one below the other in one volume, paddings and, behind the last
 * row, zeros among them; so one convolution does for all, whose results are put
 * back into their order. Columns likewise.
 */
#include "passes/passes_int.h"

/* ---- other taps ---- */

/* Taps [first, first + kernel) of the weights, each `apart` behind the other;
 * what lies between, and outside, are zeros. */
typedef struct Taps {
    uint32_t first[2], kernel[2], apart[2];
} Taps;

/* Place of a tap of the new kernel in the old one; NONE: zeros. */
static uint32_t tap_from(const Taps *t, uint32_t axis, uint32_t i) {
    return i % t->apart[axis] ? NONE : t->first[axis] + i / t->apart[axis];
}

static void take_taps(Match *m, const Taps *t) {
    Node *node = match_node(m, 0);
    const Const *is = graph_const(m->g, node->constant[CONST_WEIGHT]);
    Shape shape = is->shape;
    uint32_t h = shape.dim[2], w = shape.dim[3];
    double *old = ARENA_ARRAY(m->context->scratch, double, shape_count(&shape));
    const_read_f64(is, old);
    for (uint32_t a = 0; a < 2; a++)
        node->attr.conv.kernel[a] = shape.dim[2 + a] = t->kernel[a];
    size_t n = (size_t)shape.dim[0] * shape.dim[1];
    double *made = ARENA_ARRAY(m->g->arena, double, shape_count(&shape)), *to;
    to = made;
    for (size_t i = 0; i < n; i++)
        for (uint32_t y = 0; y < t->kernel[0]; y++)
            for (uint32_t x = 0; x < t->kernel[1]; x++, to++) {
                uint32_t at[] = {tap_from(t, 0, y), tap_from(t, 1, x)};
                *to = at[0] == NONE || at[1] == NONE
                          ? 0
                          : old[(i * h + at[0]) * w + at[1]];
            }
    node->constant[CONST_WEIGHT] = graph_add_const(
        m->g, (Const){.shape = shape, .kind = CONST_F64, .data = made});
}

/* ---- taps that read padding alone ---- */

/* The convolution without such taps of a dilated axis, and which are left;
 * false where all read more. */
static bool drop_taps(const Match *m, ConvAttr *conv, Taps *t) {
    uint32_t all = 0;
    for (uint32_t a = 0; a < 2; a++) {
        uint64_t in = match_in(m, 0)->shape.dim[2 + a];
        uint64_t out = match_out(m, 0)->shape.dim[2 + a];
        uint32_t *kernel = &conv->kernel[a], *pad = &conv->pad[a],
                 d = conv->dilation[a], *end = &conv->pad_end[a];
        *t = (Taps){.first = {t->first[0], 0}, .apart = {1, 1}};
        for (; d > 1 && *kernel > 1 && *pad >= d &&
               *pad > (out - 1) * conv->stride[a];
             all++, t->first[a]++, *pad -= d)
            (*kernel)--;
        for (; d > 1 && *kernel > 1 && *end >= d &&
               (uint64_t)(*kernel - 1) * d >= in + *pad;
             all++, *end -= d)
            (*kernel)--;
        if (*kernel == 1)
            conv->dilation[a] = 1;
    }
    t->kernel[0] = conv->kernel[0];
    t->kernel[1] = conv->kernel[1];
    return all > 0;
}

static bool has_weights(const Match *m) {
    return match_node(m, 0)->constant[CONST_WEIGHT].i != NONE;
}

static bool reads_padding(const Match *m) {
    ConvAttr conv = match_node(m, 0)->attr.conv;
    Taps t = {0};
    return has_weights(m) && match_in(m, 0)->shape.rank == 4 &&
           drop_taps(m, &conv, &t);
}

static void drop_padding(Match *m) {
    ConvAttr conv = match_node(m, 0)->attr.conv;
    Taps t = {0};
    drop_taps(m, &conv, &t);
    take_taps(m, &t);
    match_node(m, 0)->attr.conv = conv;
}

/* ---- phases ---- */

/* How the convolution goes along an axis: 0 rows, 1 columns. */
typedef struct Phases {
    uint32_t m, n; /* phases, and rows of each */
    uint32_t pad;  /* what lies before the first row */
    uint32_t size, out;
} Phases;

static Phases phases_of(const ConvAttr *conv, const Shape *in, const Shape *out,
                        uint32_t axis, uint32_t m) {
    uint32_t size = in->dim[2 + axis];
    Phases p = {.m = m, .n = size, .size = size, .out = out->dim[2 + axis]};
    if (m == 1)
        return p;
    uint64_t all = (uint64_t)size + conv->pad[axis] + conv->pad_end[axis];
    p.pad = conv->pad[axis];
    p.n = (uint32_t)((all + m - 1) / m);
    return p;
}

/* The convolution of all phases, and its shapes. */
static Node of_phases(const Node *node, const Phases p[2], Shape *in,
                      Shape *out) {
    Node made = *node;
    ConvAttr *conv = &made.attr.conv;
    for (uint32_t a = 0; a < 2; a++) {
        if (p[a].m == 1)
            continue;
        conv->dilation[a] /= p[a].m;
        conv->pad[a] = conv->pad_end[a] = 0;
        in->dim[2 + a] = p[a].m * p[a].n;
        out->dim[2 + a] =
            in->dim[2 + a] - conv->dilation[a] * (conv->kernel[a] - 1);
    }
    return made;
}

enum { MOST_PHASES = 64 };

static bool has_phases(const ConvAttr *conv, uint32_t axis, uint32_t m) {
    return m == 1 || (conv->kernel[axis] > 1 && conv->stride[axis] == 1 &&
                      conv->dilation[axis] % m == 0);
}

/* What a pair of numbers of phases, or of parts of a dilation, is judged by. */
typedef uint64_t WorkOf(const Match *m, uint32_t y, uint32_t x);

/* The pair of least work by axis; false where none will do. */
static bool find_pair(const Match *m, WorkOf *work, uint32_t pair[2],
                      uint64_t *least) {
    const ConvAttr *conv = &match_node(m, 0)->attr.conv;
    *least = UINT64_MAX;
    for (uint32_t y = 1; y <= MOST_PHASES; y++)
        for (uint32_t x = 1; has_phases(conv, 0, y) && x <= MOST_PHASES; x++) {
            uint64_t by = y * x > 1 && has_phases(conv, 1, x) ? work(m, y, x)
                                                              : UINT64_MAX;
            if (by >= *least)
                continue;
            *least = by;
            pair[0] = y;
            pair[1] = x;
        }
    return *least < UINT64_MAX;
}

static bool fits(const Match *m, const Shape *in, const Shape *out) {
    const HwSpec *spec = m->context->spec;
    const Volume a = {.c = in->dim[1], .h = in->dim[2], .w = in->dim[3]};
    const Volume b = {.c = out->dim[1], .h = out->dim[2], .w = out->dim[3]};
    for (uint32_t i = 0; i < spec->n_active; i++)
        if (layout_bytes(spec->memory[i].layout, &a) +
                layout_bytes(spec->memory[i].layout, &b) <=
            spec->memory[i].size)
            return true;
    return false;
}

static uint64_t work_of_phases(const Match *m, uint32_t y, uint32_t x) {
    const Shape *is = &match_in(m, 0)->shape, *made = &match_out(m, 0)->shape;
    const ConvAttr *conv = &match_node(m, 0)->attr.conv;
    const Phases p[] = {phases_of(conv, is, made, 0, y),
                        phases_of(conv, is, made, 1, x)};
    Shape in = *is, out = *made;
    Node phased = of_phases(match_node(m, 0), p, &in, &out);
    bool can = hwspec_engine(m->context->spec, HW_OP_GATHER_PIXELS) >= 0 &&
               fits(m, is, &in) && fits(m, &out, made) &&
               candidate_engine(m, &phased, &in, &out) >= 0;
    return can ? (uint64_t)out.dim[2] * out.dim[3] * conv->kernel[0] *
                     conv->kernel[1]
               : UINT64_MAX;
}

/* ---- zeros between ---- */

static Node with_zeros(const Match *m, uint32_t y, uint32_t x) {
    Node node = *match_node(m, 0);
    const uint32_t by[] = {y, x};
    for (uint32_t a = 0; a < 2; a++) {
        node.attr.conv.dilation[a] /= by[a];
        node.attr.conv.kernel[a] = (node.attr.conv.kernel[a] - 1) * by[a] + 1;
    }
    return node;
}

/* Whether what a row of the result reads fits beside it. */
static bool row_fits(const Match *m, const ConvAttr *conv) {
    Shape in = match_in(m, 0)->shape, out = match_out(m, 0)->shape;
    uint64_t rows = (uint64_t)conv->dilation[0] * (conv->kernel[0] - 1) + 1;
    in.dim[2] = rows < in.dim[2] ? (uint32_t)rows : in.dim[2];
    out.dim[2] = 1;
    return fits(m, &in, &out);
}

/* An engine that dilates at all goes on to do so; weights that are loaded might
 * have no room. */
static bool may_have_zeros(const Match *m, const ConvAttr *conv) {
    return !m->context->spec->weights &&
           (conv->dilation[0] > 1 || conv->dilation[1] > 1) &&
           row_fits(m, conv);
}

static uint64_t work_of_zeros(const Match *m, uint32_t y, uint32_t x) {
    enum { MOST_WEIGHTS = 1 << 25 };
    Node node = with_zeros(m, y, x);
    const Shape *in = &match_in(m, 0)->shape, *out = &match_out(m, 0)->shape;
    const Shape *weight =
        &graph_const(m->g, node.constant[CONST_WEIGHT])->shape;
    uint64_t taps =
        (uint64_t)node.attr.conv.kernel[0] * node.attr.conv.kernel[1];
    bool can = taps * weight->dim[0] * weight->dim[1] <= MOST_WEIGHTS &&
               may_have_zeros(m, &node.attr.conv) &&
               candidate_engine(m, &node, in, out) >= 0;
    return can ? taps * out->dim[2] * out->dim[3] : UINT64_MAX;
}

static void put_zeros(Match *m, const uint32_t by[2]) {
    Node node = with_zeros(m, by[0], by[1]);
    const ConvAttr *conv = &node.attr.conv;
    Taps t = {.kernel = {conv->kernel[0], conv->kernel[1]},
              .apart = {by[0], by[1]}};
    take_taps(m, &t);
    match_node(m, 0)->attr.conv = *conv;
}

/* ---- pixels ---- */

/* Where row i of all phases comes from; `size`: it is zeros. */
static uint32_t row_from(const Phases *p, uint32_t i) {
    uint64_t at = (uint64_t)(i % p->n) * p->m + i / p->n;
    return p->m == 1                               ? i
           : at < p->pad || at - p->pad >= p->size ? p->size
                                                   : (uint32_t)at - p->pad;
}

/* Which row of all phases row i of the result is. */
static uint32_t row_to(const Phases *p, uint32_t i) {
    return p->m == 1 ? i : i % p->m * p->n + i / p->m;
}

/* Where row i of a padded volume comes from. */
static uint32_t row_padded(const Phases *p, uint32_t i) {
    return i < p->pad || i - p->pad >= p->size ? p->size : i - p->pad;
}

typedef uint32_t RowOf(const Phases *p, uint32_t i);

/* A plane, each of whose pixels is one of `size`, or zero. */
static ConstId pixels_of(Match *m, const Phases p[2], RowOf *row,
                         const uint32_t plane[2], const uint32_t size[2]) {
    double *index =
        ARENA_ARRAY(m->context->scratch, double, (size_t)plane[0] * plane[1]);
    for (uint32_t y = 0; y < plane[0]; y++)
        for (uint32_t x = 0; x < plane[1]; x++) {
            uint32_t at[] = {row(&p[0], y), row(&p[1], x)};
            bool zero = at[0] >= size[0] || at[1] >= size[1];
            index[(size_t)y * plane[1] + x] =
                zero ? (double)size[0] * size[1]
                     : (double)at[0] * size[1] + at[1];
        }
    return write_constant(m, plane[0] * plane[1], index);
}

static Attrs plane_of(const uint32_t plane[2]) {
    return (Attrs){.plane = {plane[0], plane[1]}};
}

static void go_by_phases(Match *m, const uint32_t by[2]) {
    Shape in = match_in(m, 0)->shape, out = match_out(m, 0)->shape;
    const ConvAttr *is = &match_node(m, 0)->attr.conv;
    const Phases p[] = {phases_of(is, &in, &out, 0, by[0]),
                        phases_of(is, &in, &out, 1, by[1])};
    const uint32_t size[] = {in.dim[2], in.dim[3]};
    const uint32_t last[] = {out.dim[2], out.dim[3]};
    Node like = of_phases(match_node(m, 0), p, &in, &out);
    NewNode phases = {.op = OP_PIXELS,
                      .name =
                          arena_printf(m->g->arena, "%s__phases", like.name),
                      .n_in = 1,
                      .in = like.in,
                      .attr = plane_of(&in.dim[2]),
                      .gloss = "X__phases puts side by side what meets in the "
                               "windows of X, X__dense is the layer over it"};
    TensorId made = match_add(m, 0, &phases);
    graph_node(m->g, graph_tensor(m->g, made)->producer)
        ->constant[CONST_INDEX] = pixels_of(m, p, row_from, &in.dim[2], size);
    NewNode dense = {.op = OP_CONV,
                     .name = arena_printf(m->g->arena, "%s__dense", like.name),
                     .n_in = 1,
                     .in = &made,
                     .attr = like.attr,
                     .act = like.act,
                     .gloss = "X__dense is X over these phases, with a smaller "
                              "dilation"};
    made = match_add(m, 0, &dense);
    Node *conv = graph_node(m->g, graph_tensor(m->g, made)->producer);
    conv->no_bias = like.no_bias;
    for (int r = 0; r < CONST_ROLES; r++)
        conv->constant[r] = like.constant[r];
    Attrs back = plane_of(last);
    node_become(m->g, match_node(m, 0), OP_PIXELS, &back, 1, &made);
    match_node(m, 0)->constant[CONST_INDEX] =
        pixels_of(m, p, row_to, last, &out.dim[2]);
}

/* ---- which ---- */

typedef struct Way {
    bool phases; /* else zeros */
    uint32_t by[2];
} Way;

/* Whether phases, or else zeros, make an engine take it. */
static bool find_way(const Match *m, Way *way) {
    const ConvAttr *conv = &match_node(m, 0)->attr.conv;
    const Shape *in = &match_in(m, 0)->shape;
    uint32_t by[2];
    uint64_t phases, zeros;
    if (!m->context->spec || !has_weights(m) || in->rank != 4 ||
        in->dim[0] != 1 || (conv->dilation[0] < 2 && conv->dilation[1] < 2) ||
        match_engine(m, 0) >= 0)
        return false;
    bool found = find_pair(m, work_of_phases, way->by, &phases);
    way->phases = found;
    if (!find_pair(m, work_of_zeros, by, &zeros) || phases <= zeros)
        return found;
    *way = (Way){false, {by[0], by[1]}};
    return true;
}

static bool has_way(const Match *m) {
    Way way;
    return find_way(m, &way);
}

static void take_way(Match *m) {
    Way way;
    if (!find_way(m, &way))
        bug("rule dilation: there is no way");
    (way.phases ? go_by_phases : put_zeros)(m, way.by);
}

/* ---- paddings ---- */

static bool is_pixels(const Match *m) {
    const HwSpec *spec = m->context->spec;
    const Shape *in = &match_in(m, 0)->shape, *out = &match_out(m, 0)->shape;
    const Node *pad = match_node(m, 0);
    Node pixels = *pad;
    pixels.op = OP_PIXELS;
    pixels.attr = plane_of(&out->dim[2]);
    return spec && in->rank == 4 && in->dim[0] == 1 &&
           !(pad->attr.pad.value < 0 || pad->attr.pad.value > 0) &&
           pad->act.kind == ACT_NONE && match_engine(m, 0) < 0 &&
           candidate_engine(m, &pixels, in, out) >= 0 && fits(m, in, out);
}

/* As if it were a convolution's: rows of one phase. */
static void pad_pixels(Match *m) {
    const Shape *in = &match_in(m, 0)->shape, *out = &match_out(m, 0)->shape;
    const uint32_t size[] = {in->dim[2], in->dim[3]};
    const uint32_t plane[] = {out->dim[2], out->dim[3]};
    Node *node = match_node(m, 0);
    Phases p[2];
    for (uint32_t a = 0; a < 2; a++)
        p[a] = (Phases){.m = 1,
                        .n = plane[a],
                        .pad = node->attr.pad.before[a],
                        .size = size[a]};
    Attrs attr = plane_of(plane);
    TensorId from = node->in[0];
    node_become(m->g, node, OP_PIXELS, &attr, 1, &from);
    node->constant[CONST_INDEX] = pixels_of(m, p, row_padded, plane, size);
}

static const Rule rules[] = {
    {"padding-taps",
     1,
     {OPS(CONV)},
     reads_padding,
     drop_padding,
     "taps of which all windows read padding alone add nothing"},
    {"dilation",
     1,
     {OPS(CONV)},
     has_way,
     take_way,
     "rows that meet in windows lie side by side, where an engine gathers "
     "pixels and its dilations are too small; or a larger kernel has zeros "
     "between its taps, where that is less work"},
    {"pad-pixels",
     1,
     {OPS(PAD)},
     is_pixels,
     pad_pixels,
     "zeros that no window takes in are pixels, where an engine gathers them"},
};
const RuleSet dilation_rules = {"dilation", sizeof rules / sizeof *rules,
                                rules};
