/* input_rows.c - rows and columns of its input that a node needs; of the judge.
 *
 * Input: a run. Output: whether what it reads, with its padding, gives what it
 * makes, along each axis. Found from the node's attributes, not by the
 * planner's geometry.
 */
#include "plan/verify/judge.h"

typedef struct Need {
    int64_t first, last; /* input rows, not clipped */
} Need;

/* What an action computes along an axis (rows, columns), and from what. */
typedef struct Along {
    uint32_t axis, at, n, in, in_n, pad;
} Along;

static Need conv_need(const ConvAttr *c, uint32_t axis, Need out) {
    int64_t stride = c->stride[axis], pad = c->pad[axis];
    return (Need){out.first * stride - pad,
                  out.last * stride - pad +
                      (int64_t)c->dilation[axis] * (c->kernel[axis] - 1)};
}

static Need pool_need(const PoolAttr *p, uint32_t axis, uint32_t in, Need out) {
    int64_t stride = p->stride[axis], pad = p->pad[axis];
    if (p->global)
        return (Need){0, (int64_t)in - 1};
    return (Need){out.first * stride - pad,
                  out.last * stride - pad + p->kernel[axis] - 1};
}

static Need conv_pool_need(const Node *node, uint32_t axis, uint32_t in,
                           Need out) {
    const ConvAttr *c = &node->attr.conv;
    uint32_t mid =
        conv_out_size(in, c->kernel[axis], c->stride[axis], c->dilation[axis],
                      c->pad[axis], c->pad_end[axis]);
    Need pool = pool_need(&node->attr.pool, axis, mid, out);
    if (pool.first < 0)
        pool.first = 0;
    if (pool.last > (int64_t)mid - 1)
        pool.last = (int64_t)mid - 1;
    return conv_need(c, axis, pool);
}

/* Whether the rows of the input hold all that reaches the output, and nothing
 * but the padding is made besides: of a whole layer, of `size` to `made` rows,
 * what its node says; of a part, as much on both sides. */
static bool deconv_agrees(const ConvAttr *c, uint32_t size, uint32_t made,
                          Along x) {
    if (x.in_n == size && x.n == made)
        return x.at == 0 && x.in == 0 && x.pad == c->pad[x.axis];
    int64_t s = c->stride[x.axis], end = (int64_t)x.in + x.in_n;
    int64_t reach = (int64_t)(c->kernel[x.axis] - 1) * c->dilation[x.axis] + 1;
    int64_t first = (int64_t)x.at + c->pad[x.axis], behind = first + x.n;
    bool starts = x.in == 0 || ((int64_t)x.in - 1) * s + reach <= first;
    bool ends = end == size || end * s >= behind;
    return starts && ends && first == (int64_t)x.in * s + x.pad &&
           behind == (end - 1) * s + reach - x.pad;
}

/* Softmax, norms and sums of each pixel by itself. */
static bool along_channels(const Node *node) {
    return (node->op == OP_REDUCE && node->attr.reduce.axes == 1u << 1) ||
           (node->op == OP_SOFTMAX && node->attr.axis.axis == 1) ||
           (node->op == OP_NORM && node->attr.norm.axis == 1 &&
            node->attr.norm.axes == 1);
}

/* Each row of queries meets all keys; each row is turned by itself. */
static bool is_matrix_of_rows(const Node *node) {
    if (node->op == OP_TRANSPOSE)
        return node->attr.perm.rank == 4 && node->attr.perm.dim[2] == 2;
    return node->op == OP_MIX && node->attr.mix.windows[0] == 1 &&
           node->attr.mix.windows[1] == 1 && node->attr.mix.shift[0] == 0 &&
           node->attr.mix.shift[1] == 0;
}

/* Whether the tile's input and padding give its output. */
static const char *check_along(Judge *j, const Action *a, Along x) {
    const Node *node = graph_node(j->g, a->node);
    const Placement *out = &j->plan->placement[a->out];
    Volume in = plan_volume(j->g, node->in[0]);
    Volume whole = plan_volume(j->g, node->out[0]);
    uint32_t size = x.axis ? in.w : in.h;
    Need made = {x.at, (int64_t)x.at + x.n - 1};
    Need need = {0, (int64_t)size - 1};
    if (node->op == OP_CONV)
        need = conv_need(&node->attr.conv, x.axis, made);
    else if (node->op == OP_POOL)
        need = pool_need(&node->attr.pool, x.axis, size, made);
    else if (node->op == OP_CONV_POOL)
        need = conv_pool_need(node, x.axis, size, made);
    else if (node->op == OP_ELTWISE || node->op == OP_SCALE ||
             node->op == OP_ACT || node->op == OP_OFFSET ||
             along_channels(node) || (x.axis == 0 && is_matrix_of_rows(node)))
        need = made;
    else if (node->op == OP_UPSAMPLE)
        need = (Need){made.first / node->attr.up.factor[x.axis],
                      made.last / node->attr.up.factor[x.axis]};
    else if (node->op == OP_DECONV)
        return deconv_agrees(&node->attr.conv, size, x.axis ? whole.w : whole.h,
                             x)
                   ? NULL
                   : judge_says(j, out, "is computed from the wrong rows");
    int64_t stop = need.last < size ? need.last : (int64_t)size - 1;
    if ((int64_t)x.in - x.pad != need.first || (int64_t)x.in + x.in_n <= stop)
        return judge_says(j, out, "is computed from the wrong rows");
    return NULL;
}

const char *judge_rows(Judge *j, const Action *a) {
    const char *wrong = check_along(
        j, a, (Along){0, a->row, a->rows, a->in_row, a->in_rows, a->pad_top});
    if (wrong)
        return wrong;
    const Node *node = graph_node(j->g, a->node);
    bool whole = a->cols == plan_volume(j->g, node->out[0]).w;
    if (whole && a->in_cols != plan_volume(j->g, node->in[0]).w)
        return judge_says(j, &j->plan->placement[a->out],
                          "is computed from some columns");
    return check_along(
        j, a, (Along){1, a->col, a->cols, a->in_col, a->in_cols, a->pad_left});
}
