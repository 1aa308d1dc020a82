/* rules_dilation.c - convolutions whose dilation is beyond an engine's limit,
 * by phases.
 *
 * Rows y, y + m, y + 2 m... see each other alone where the dilation d is a
 * multiple of m: they are a convolution of dilation d / m of their own. All m
 * phases lie one below the other in one volume, paddings and, behind the last
 * row, zeros among them; so one convolution does for all, whose results are put
 * back into their order. Columns likewise.
 */
#include "passes/passes_int.h"

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

enum { MOST_PHASES = 64, MOST_PIXELS = 1 << 22 };

static bool has_phases(const ConvAttr *conv, uint32_t axis, uint32_t m) {
    return m == 1 || (conv->kernel[axis] > 1 && conv->stride[axis] == 1 &&
                      conv->dilation[axis] % m == 0);
}

/* Whether an engine takes so many. */
static bool takes_phases(const Match *m, const Phases p[2]) {
    Shape in = match_in(m, 0)->shape, out = match_out(m, 0)->shape;
    Node phased = of_phases(match_node(m, 0), p, &in, &out);
    return (uint64_t)in.dim[2] * in.dim[3] <= MOST_PIXELS &&
           candidate_engine(m, &phased, &in, &out) >= 0;
}

/* The fewest that an engine takes. */
static bool find_phases(const Match *m, Phases best[2]) {
    const ConvAttr *conv = &match_node(m, 0)->attr.conv;
    const Shape *in = &match_in(m, 0)->shape, *out = &match_out(m, 0)->shape;
    uint32_t least = UINT32_MAX;
    for (uint32_t y = 1; y <= MOST_PHASES; y++)
        for (uint32_t x = 1; has_phases(conv, 0, y) && x <= MOST_PHASES; x++) {
            const Phases p[] = {phases_of(conv, in, out, 0, y),
                                phases_of(conv, in, out, 1, x)};
            if (y * x < 2 || y * x >= least || !has_phases(conv, 1, x) ||
                !takes_phases(m, p))
                continue;
            least = y * x;
            best[0] = p[0];
            best[1] = p[1];
        }
    return least < UINT32_MAX;
}

static bool is_too_dilated(const Match *m) {
    Phases p[2];
    const HwSpec *spec = m->context->spec;
    const Node *node = match_node(m, 0);
    const ConvAttr *conv = &node->attr.conv;
    const Shape *in = &match_in(m, 0)->shape;
    return spec && (conv->dilation[0] > 1 || conv->dilation[1] > 1) &&
           in->rank == 4 && in->dim[0] == 1 &&
           hwspec_engine(spec, HW_OP_GATHER_PIXELS) >= 0 &&
           match_engine(m, 0) < 0 && find_phases(m, p);
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

static void go_by_phases(Match *m) {
    Phases p[2];
    Shape in = match_in(m, 0)->shape, out = match_out(m, 0)->shape;
    if (!find_phases(m, p))
        bug("rule dilation: there are no phases");
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

static const Rule rules[] = {
    {"dilation",
     1,
     {OPS(CONV)},
     is_too_dilated,
     go_by_phases,
     "rows that meet in windows lie side by side, where an engine gathers "
     "pixels and its dilations are too small"},
};
const RuleSet dilation_rules = {"dilation", sizeof rules / sizeof *rules,
                                rules};
