/* receptive_field.c - which pixels of an operand a layer needs, along an axis.
 *
 * Input: a node. Output: spans of its operand and its result. Axes do not mix:
 * what an area needs is the product of what its rows and its columns need.
 */
#include "alloc/geometry/receptive_field.h"
#include "alloc/geometry/tensor_bytes.h"

#include "base/arith.h"

static int64_t ceiling(int64_t a, int64_t b) {
    return -floor_div(-a, b);
}

static Foot conv_foot(const ConvAttr *c, uint32_t axis) {
    int64_t d = c->kernel[axis] > 1 ? c->dilation[axis] : 1;
    return (Foot){.k = c->kernel[axis],
                  .s = c->stride[axis],
                  .d = d,
                  .pad = c->pad[axis]};
}

static Foot pool_foot(const PoolAttr *p, uint32_t axis) {
    return (Foot){.kind = p->global ? FOOT_ALL : FOOT_WINDOW,
                  .k = p->kernel[axis],
                  .s = p->stride[axis],
                  .d = 1,
                  .pad = p->pad[axis]};
}

static Foot node_foot(const Node *node, uint32_t axis) {
    Foot foot = {.kind = FOOT_NONE};
    switch (node->op) {
    case OP_CONV:
    case OP_CONV_POOL:
        return conv_foot(&node->attr.conv, axis);
    case OP_DECONV:
        foot = conv_foot(&node->attr.conv, axis);
        foot.kind = foot.d == 1 ? FOOT_SPREAD : FOOT_NONE;
        return foot;
    case OP_POOL:
        return pool_foot(&node->attr.pool, axis);
    case OP_UPSAMPLE:
        foot.k = foot.s = node->attr.up.factor[axis];
        foot.kind = FOOT_SPREAD;
        return foot;
    default:
        return node_goes_by_pixel(node) ? (Foot){.k = 1, .s = 1, .d = 1} : foot;
    }
}

static Span windows(const Foot *f, Span s) {
    return (Span){s.at * f->s - f->pad, (s.end - 1) * f->s - f->pad + f->k};
}

/* Those whose windows meet the span. */
static Span meeting(const Foot *f, Span s) {
    return (Span){ceiling(s.at + f->pad - f->k + 1, f->s),
                  floor_div(s.end - 1 + f->pad, f->s) + 1};
}

static int64_t middle(Span s) {
    return s.at + (s.end - s.at) / 2;
}

/* One of the span, if windows leave holes between them. */
static Span without_holes(const Foot *f, Span s) {
    return f->k >= f->s ? s : (Span){middle(s), middle(s) + 1};
}

/* With holes inside of windows: all, where enough of them overlap; else the
 * middle of one. */
static Span dilated_reads(const Foot *f, Span s) {
    if (f->s == 1 && s.end - s.at >= f->d)
        return (Span){s.at - f->pad, s.end - f->pad + (f->k - 1) * f->d};
    int64_t at = middle(s) * f->s - f->pad + f->k / 2 * f->d;
    return (Span){at, at + 1};
}

static Span dilated_readers(const Foot *f, Span s) {
    Foot hull = *f;
    hull.k = (f->k - 1) * f->d + 1;
    if (s.end - s.at >= f->d)
        return meeting(&hull, s);
    int64_t at = s.at + f->pad - f->k / 2 * f->d;
    return at % f->s ? (Span){0, 0} : (Span){at / f->s, at / f->s + 1};
}

/* Of the operand, some of what each of `s` of the result is made from, without
 * holes. */
static Span foot_reads(const Foot *f, Span s) {
    Span all = {0, f->in}, found = all;
    if (s.at >= s.end || f->kind == FOOT_NONE)
        return (Span){0, 0};
    if (f->kind == FOOT_WINDOW)
        found =
            f->d > 1 ? dilated_reads(f, s) : windows(f, without_holes(f, s));
    if (f->kind == FOOT_SPREAD)
        found = meeting(f, s);
    return span_both(found, all);
}

/* Of the result, what is made from some of `s` of the operand. */
static Span foot_readers(const Foot *f, Span s) {
    Span all = {0, f->out}, found = all;
    if (s.at >= s.end || f->kind == FOOT_NONE)
        return (Span){0, 0};
    if (f->kind == FOOT_WINDOW)
        found = f->d > 1 ? dilated_readers(f, s) : meeting(f, s);
    if (f->kind == FOOT_SPREAD)
        found = windows(f, without_holes(f, s));
    return span_both(found, all);
}

static void sizes_fill(const Facts *f, const Node *node, uint32_t axis,
                       Feet *feet) {
    Volume in = plan_volume(f->g, node->in[0]);
    Volume out = plan_volume(f->g, node->out[0]);
    feet->foot[0].in = axis ? in.w : in.h;
    feet->foot[feet->n - 1].out = axis ? out.w : out.h;
    if (feet->n < 2)
        return;
    const ConvAttr *c = &node->attr.conv;
    feet->foot[0].out = feet->foot[1].in =
        conv_out_size(axis ? in.w : in.h, c->kernel[axis], c->stride[axis],
                      c->dilation[axis], c->pad[axis], c->pad_end[axis]);
}

static bool by_parts(const Facts *f, NodeId id) {
    HwOps ops = f->spec->tiling.rows.ops;
    for (uint32_t i = 0; i < f->spec->tiling.tiles.n; i++)
        ops |= f->spec->tiling.tiles.style[i].ops;
    return on_engine(f, id) && ops >> f->legal[id.i].op & 1;
}

Feet feet_anywhere(const Facts *f, NodeId id, uint32_t axis) {
    const Node *node = graph_node(f->g, id);
    Feet feet = {.pointwise = node_goes_by_pixel(node),
                 .n = node->op == OP_CONV_POOL ? 2 : 1};
    feet.foot[0] = node_foot(node, axis);
    feet.foot[1] = pool_foot(&node->attr.pool, axis);
    if (!feet.pointwise && node->n_in != 1)
        feet.foot[0].kind = FOOT_NONE;
    if (node->n_in)
        sizes_fill(f, node, axis, &feet);
    return feet;
}

Feet feet_of(const Facts *f, NodeId id, uint32_t axis) {
    Feet feet = feet_anywhere(f, id, axis);
    if (!by_parts(f, id))
        feet.foot[0].kind = feet.foot[1].kind = FOOT_ALL;
    return feet;
}

/* What the feet say of an operand of this size; else all of it, or nothing. */
static FootKind kind_for(const Feet *feet, int64_t size) {
    const Foot *f = feet->foot;
    if (f->kind == FOOT_ALL || (feet->pointwise && size == 1))
        return FOOT_ALL;
    return size == f->in && (!feet->pointwise || size == f->out) ? f->kind
                                                                 : FOOT_NONE;
}

bool feet_known(const Feet *feet, int64_t size) {
    return kind_for(feet, size) != FOOT_NONE;
}

Span feet_reads(const Feet *feet, int64_t size, Span made) {
    FootKind kind = kind_for(feet, size);
    if (made.at >= made.end || kind == FOOT_NONE)
        return (Span){0, 0};
    if (kind == FOOT_ALL)
        return (Span){0, size};
    return foot_reads(feet->foot,
                      feet->n == 2 ? foot_reads(&feet->foot[1], made) : made);
}

Span feet_readers(const Feet *feet, int64_t size, int64_t made, Span read) {
    FootKind kind = kind_for(feet, size);
    if (read.at >= read.end || kind == FOOT_NONE)
        return (Span){0, 0};
    if (kind == FOOT_ALL)
        return (Span){0, made};
    read = foot_readers(feet->foot, read);
    return feet->n == 2 ? foot_readers(&feet->foot[1], read) : read;
}

int64_t feet_touched(const Feet *feet, int64_t size, int64_t made) {
    enum { MANY = 1 << 16 };
    int64_t sum = 0, end = 0;
    if (made > MANY)
        return span_length(feet_reads(feet, size, (Span){0, made}));
    for (int64_t at = 0; at < made; at++) {
        Span s = feet_reads(feet, size, (Span){at, at + 1});
        s.at = s.at > end ? s.at : end;
        sum += span_length(s);
        end = s.end > end ? s.end : end;
    }
    return sum;
}
