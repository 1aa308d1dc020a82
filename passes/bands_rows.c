/* bands_rows.c - which rows of each tensor a band has; bands.h. */
#include "passes/bands.h"

/* Row y of the result reads rows y * stride - pad and `reach` more of what is
 * `times` as many. */
typedef struct Window {
    uint32_t stride, pad, reach, times;
} Window;

static const Tensor *in_of(const Graph *g, const Node *node, uint32_t k) {
    return graph_tensor(g, node->in[k]);
}

static const Tensor *out_of(const Graph *g, const Node *node) {
    return graph_tensor(g, node->out[0]);
}

static bool is_plain(const Graph *g, const Node *node) {
    const Shape *out = &out_of(g, node)->shape;
    if (node->n_out != 1 || !node->n_in || out->rank != 4 || out->dim[0] != 1)
        return false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        const Shape *in = &in_of(g, node, k)->shape;
        bool by_pixel = in->rank == 4 && in->dim[2] == out->dim[2] &&
                        in->dim[3] == out->dim[3];
        if (in->rank != 4 || (node->n_in > 1 && !by_pixel))
            return false;
    }
    return true;
}

static bool window_of(const Graph *g, const Node *node, int axis, Window *w) {
    const ConvAttr *conv = &node->attr.conv;
    const PoolAttr *pool = &node->attr.pool;
    *w = (Window){1, 0, 0, 1};
    if (!is_plain(g, node))
        return false;
    switch (node->op) {
    case OP_CONV:
        *w = (Window){conv->stride[axis], conv->pad[axis],
                      (conv->kernel[axis] - 1) * conv->dilation[axis], 1};
        return true;
    case OP_POOL:
        *w = (Window){pool->stride[axis], pool->pad[axis],
                      pool->kernel[axis] - 1, 1};
        return !pool->global;
    case OP_UPSAMPLE:
        w->times = node->attr.up.factor[axis];
        return true;
    case OP_CONCAT:
        return node->attr.axis.axis == 1;
    case OP_ELTWISE:
    case OP_ACT:
    case OP_IDENTITY:
        return true;
    default:
        return false;
    }
}

bool bands_windows(const Graph *g, const Node *node, int axis) {
    Window w;
    return window_of(g, node, axis, &w);
}

static uint32_t extent(const Tensor *t, int axis) {
    return t->shape.dim[2 + axis];
}

/* Rows of the result from so many of the operand. */
static uint32_t made_rows(const Node *node, int axis, uint32_t rows) {
    const ConvAttr *conv = &node->attr.conv;
    switch (node->op) {
    case OP_CONV:
        return conv_out_size(rows, conv->kernel[axis], conv->stride[axis],
                             conv->dilation[axis], conv->pad[axis],
                             conv->pad_end[axis]);
    case OP_POOL:
        return pool_out_size(&node->attr.pool, (uint32_t)axis, rows);
    case OP_UPSAMPLE:
        return rows * node->attr.up.factor[axis];
    default:
        return rows;
    }
}

/* ---- strides ---- */

static uint32_t common(uint32_t a, uint32_t b) {
    return b ? common(b, a % b) : a;
}

static bool same_step(const Rows *a, const Rows *b) {
    return a->over == b->over && a->under == b->under;
}

bool bands_steps(const Bands *b, Region *r) {
    enum { MOST_STEP = 256 };
    r->step = 1;
    b->rows[r->in.i].over = b->rows[r->in.i].under = 1;
    for (uint32_t j = r->first; j <= r->last; j++) {
        const Node *node = &b->g->node.at[j];
        const Rows *in = &b->rows[node->in[0].i];
        Rows *out = &b->rows[node->out[0].i];
        Window w;
        for (uint32_t k = 1; k < node->n_in; k++)
            if (!same_step(in, &b->rows[node->in[k].i]))
                return false;
        if (!window_of(b->g, node, r->axis, &w))
            return false;
        uint32_t over = in->over * w.stride, under = in->under * w.times;
        uint32_t both = common(over, under);
        out->over = over / both;
        out->under = under / both;
        r->step = r->step / common(r->step, out->over) * out->over;
        if (r->step > MOST_STEP || out->under > MOST_STEP)
            return false;
    }
    return true;
}

/* ---- rows ---- */

static uint32_t at_most(uint64_t a, uint32_t b) {
    return a < b ? (uint32_t)a : b;
}

static void need_rows(Rows *rows, uint32_t begin, uint32_t end) {
    rows->need = at_most(begin, rows->need);
    rows->need_end = end > rows->need_end ? end : rows->need_end;
}

/* Last to first: what each operand must have. */
static void find_needs(const Bands *b, const Region *r, uint32_t begin,
                       uint32_t end) {
    b->rows[r->in.i].need = UINT32_MAX;
    b->rows[r->in.i].need_end = 0;
    for (uint32_t j = r->first; j <= r->last; j++) {
        Rows *out = &b->rows[b->g->node.at[j].out[0].i];
        out->need = UINT32_MAX;
        out->need_end = 0;
    }
    need_rows(&b->rows[r->out.i], begin, end);
    for (uint32_t j = r->last + 1; j-- > r->first;) {
        const Node *node = &b->g->node.at[j];
        const Rows *out = &b->rows[node->out[0].i];
        Window w;
        if (out->need >= out->need_end || !window_of(b->g, node, r->axis, &w))
            continue;
        uint32_t from = out->need / w.times * w.stride;
        uint64_t to =
            (uint64_t)((out->need_end - 1) / w.times) * w.stride + w.reach + 1;
        for (uint32_t k = 0; k < node->n_in; k++)
            need_rows(&b->rows[node->in[k].i], from > w.pad ? from - w.pad : 0,
                      at_most(to > w.pad ? to - w.pad : 1,
                              extent(in_of(b->g, node, k), r->axis)));
    }
}

static bool extents_allowed(const Bands *b, const Node *node, int axis,
                            uint32_t rows) {
    const HwRange *range =
        &b->engine->limit[axis ? HW_LIMIT_IN_W : HW_LIMIT_IN_H];
    return node->op != OP_CONV || !range->set ||
           (rows >= range->lo && rows <= range->hi);
}

/* First to last: what each has. */
static bool find_extents(const Bands *b, const Region *r) {
    for (uint32_t j = r->first; j <= r->last; j++) {
        const Node *node = &b->g->node.at[j];
        const Rows *in = &b->rows[node->in[0].i];
        Rows *out = &b->rows[node->out[0].i];
        uint32_t whole = extent(out_of(b->g, node), r->axis);
        Window w;
        for (uint32_t k = 1; k < node->n_in; k++) {
            const Rows *other = &b->rows[node->in[k].i];
            if (other->begin != in->begin || other->end != in->end)
                return false;
        }
        if (!window_of(b->g, node, r->axis, &w) || in->begin % w.stride ||
            !extents_allowed(b, node, r->axis, in->end - in->begin))
            return false;
        out->begin = in->begin / w.stride * w.times;
        out->end = out->begin + made_rows(node, r->axis, in->end - in->begin);
        if (out->end > whole || out->need < out->begin ||
            out->need_end > out->end)
            return false;
    }
    return true;
}

bool bands_rows(const Bands *b, const Region *r, uint32_t begin, uint32_t end) {
    uint32_t whole = extent(graph_tensor(b->g, r->in), r->axis);
    Rows *in = &b->rows[r->in.i];
    find_needs(b, r, begin, end);
    in->begin = in->need / r->step * r->step;
    in->end = at_most(
        ((uint64_t)in->need_end + r->step - 1) / r->step * r->step, whole);
    return in->need < in->need_end && find_extents(b, r);
}

/* ---- bytes ---- */

static uint64_t bytes_of(const Bands *b, TensorId t, int axis, uint32_t rows) {
    const Shape *shape = &graph_tensor(b->g, t)->shape;
    Volume v = {shape->dim[1], shape->dim[2], shape->dim[3], {0}};
    *(axis ? &v.w : &v.h) = rows;
    return layout_bytes(b->memory->layout, &v);
}

/* What it makes: with a pool behind, what that leaves; nothing, if that is made
 * before. */
static TensorId made_by(const Bands *b, const Node *node) {
    if (node->op == OP_POOL && b->pool[node->in[0].i] != NONE)
        return NO_TENSOR;
    uint32_t pool = b->pool[node->out[0].i];
    return pool == NONE ? node->out[0] : b->g->node.at[pool].out[0];
}

/* A stride is every place first, then a sample. Where that is not in one node,
 * all places are there as well. */
static uint64_t places(const Bands *b, const Node *node, int axis,
                       uint32_t rows) {
    const ConvAttr *conv = &node->attr.conv;
    bool strided = node->op == OP_CONV && conv->stride[0] > 1;
    bool direct = conv->groups == 1 && conv->pad[0] == conv->kernel[0] / 2 &&
                  conv->pad[1] == conv->kernel[1] / 2;
    if (!strided || direct)
        return 0;
    const Shape *in = &in_of(b->g, node, 0)->shape;
    Volume v = {conv->out_c, in->dim[2], in->dim[3], {0}};
    *(axis ? &v.w : &v.h) = rows;
    return layout_bytes(b->memory->layout, &v);
}

uint64_t bands_whole(const Bands *b, const Node *node) {
    uint64_t sum = places(b, node, 0, extent(in_of(b->g, node, 0), 0));
    TensorId made = made_by(b, node);
    for (uint32_t k = 0; k < node->n_in; k++)
        if (b->pool[node->in[k].i] == NONE)
            sum += bytes_of(b, node->in[k], 0, extent(in_of(b->g, node, k), 0));
    if (made.i != NONE)
        sum += bytes_of(b, made, 0, extent(graph_tensor(b->g, made), 0));
    return sum;
}

static uint64_t band_bytes(const Bands *b, TensorId t, int axis) {
    return bytes_of(b, t, axis, b->rows[t.i].end - b->rows[t.i].begin);
}

uint64_t bands_peak(const Bands *b, const Region *r) {
    uint64_t alive = band_bytes(b, r->in, r->axis), peak = 0, carried = 0;
    for (uint32_t j = r->first; j <= r->last; j++) {
        const Node *node = &b->g->node.at[j];
        const Rows *in = &b->rows[node->in[0].i];
        TensorId made = made_by(b, node);
        uint64_t extra = places(b, node, r->axis, in->end - in->begin);
        if (made.i != NONE)
            alive += band_bytes(b, made, r->axis);
        peak = alive + extra + carried > peak ? alive + extra + carried : peak;
        carried = extra;
        for (uint32_t k = 0; k < node->n_in; k++) {
            bool again = false;
            for (uint32_t i = 0; i < k; i++)
                again |= same_tensor(node->in[i], node->in[k]);
            if (!again && b->last[node->in[k].i] == j &&
                b->pool[node->in[k].i] == NONE)
                alive -= band_bytes(b, node->in[k], r->axis);
        }
    }
    return peak;
}
