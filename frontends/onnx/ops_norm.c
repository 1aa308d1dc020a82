/* ops_norm.c - ONNX's normalisations, reductions and softmax; see onnx.h.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* Input `i` as `n` constants of a channel each. */
static bool channel_const(Onnx *x, OnnxNode *n, uint32_t i, Const *out) {
    const OnnxValue *value = onnx_const_in(x, n, i);
    uint32_t channels = shape_dim(&onnx_in(x, n, 0)->shape, 1);
    if (!value)
        return false;
    if (shape_count(&value->shape) != channels)
        return onnx_error(x, n, "input %u has shape %s, not %u", i,
                          shape_text(x->arena, &value->shape), channels);
    *out = onnx_const_reshaped(x, &value->constant, &(Shape){1, {channels}});
    return true;
}

/* What was so far times `keep`, and the rest of what is now. */
static bool set_running(Onnx *x, OnnxNode *n, uint32_t out, TensorId now,
                        double keep) {
    if (!onnx_wants(n, out))
        return true;
    now = onnx_reshape(x, n, now, onnx_in(x, n, out + 2)->shape);
    TensorId old = onnx_tensor_in(x, n, out + 2);
    old = onnx_binary(x, n, ELT_MUL, old,
                      onnx_constant(x, n, onnx_fill((Shape){1, {1}}, keep)));
    now =
        onnx_binary(x, n, ELT_MUL, now,
                    onnx_constant(x, n, onnx_fill((Shape){1, {1}}, 1 - keep)));
    return onnx_set(x, n, out, onnx_binary(x, n, ELT_ADD, old, now), NULL);
}

/* In training mode mean and variance are those of the tensor: of weights that
 * are standardised so. c: scale and shift. */
static bool norm_of_batch(Onnx *x, OnnxNode *n, const Const c[2]) {
    TensorId in = onnx_tensor_in(x, n, 0);
    uint32_t rank = onnx_in(x, n, 0)->shape.rank;
    uint32_t axes = ((1u << rank) - 1) & ~2u;
    double keep = onnx_float(x, n, "momentum", 0.9);
    TensorId mean = onnx_reduce(x, n, in, REDUCE_MEAN, axes);
    TensorId rest = onnx_binary(x, n, ELT_SUB, in, mean);
    TensorId var = onnx_binary(x, n, ELT_MUL, rest, rest);
    var = onnx_reduce(x, n, var, REDUCE_MEAN, axes);
    Shape one = onnx_rank(&(Shape){0}, rank);
    TensorId root = onnx_binary(
        x, n, ELT_ADD, var,
        onnx_constant(x, n, onnx_fill(one, onnx_float(x, n, "epsilon", 1e-5))));
    root = onnx_act(x, n, root, (Act){.kind = ACT_SQRT});
    TensorId out = onnx_binary(x, n, ELT_DIV, rest, root);
    return set_running(x, n, 1, mean, keep) &&
           set_running(x, n, 2, var, keep) &&
           onnx_set(x, n, 0, onnx_scale(x, n, out, &c[0], &c[1]), NULL);
}

bool onnx_batch_norm(Onnx *x, OnnxNode *n) {
    Const c[5];
    bool training = onnx_int(x, n, "training_mode", 0) != 0;
    for (uint32_t i = 1; i < (training ? 3 : 5); i++)
        if (!channel_const(x, n, i, &c[i]))
            return false;
    if (!onnx_int(x, n, "spatial", 1))
        return onnx_error(x, n, "it is by element");
    if (training)
        return norm_of_batch(x, n, &c[1]);
    TensorId in = onnx_tensor_in(x, n, 0);
    NodeId id = onnx_add(x, n, OP_BN, "bn", 1, &in);
    if (id.i == NONE)
        return false;
    graph_node(x->graph, id)->attr.bn.eps = onnx_float(x, n, "epsilon", 1e-5);
    onnx_give(x, id, CONST_MEAN, c[3]);
    onnx_give(x, id, CONST_VAR, c[4]);
    return onnx_set(x, n, 0, onnx_scale(x, n, onnx_end(x, id), &c[1], &c[2]),
                    NULL);
}

/* Operator set 18 had one a group. */
static bool group_const(Onnx *x, OnnxNode *n, uint32_t i, uint32_t groups,
                        Const *out) {
    const OnnxValue *value = onnx_const_in(x, n, i);
    uint32_t channels = onnx_in(x, n, 0)->shape.dim[1];
    if (!value)
        return false;
    if (shape_count(&value->shape) != groups || groups == channels)
        return channel_const(x, n, i, out);
    const double *each = onnx_numbers(x, value);
    double *all = ARENA_ARRAY(x->arena, double, channels);
    for (uint32_t c = 0; each && c < channels; c++)
        all[c] = each[c / (channels / groups)];
    *out = onnx_values((Shape){1, {channels}}, all);
    return each != NULL;
}

/* Each group of channels of each image by itself, then a factor and a shift
 * a channel. */
static bool norm_groups(Onnx *x, OnnxNode *n, uint32_t groups) {
    Const scale, bias;
    Shape in = onnx_in(x, n, 0)->shape;
    if (in.rank < 2 || !groups || in.dim[1] % groups)
        return onnx_error(x, n, "%u groups do not divide %s", groups,
                          shape_text(x->arena, &in));
    if (!group_const(x, n, 1, groups, &scale) ||
        !group_const(x, n, 2, groups, &bias))
        return false;
    uint32_t size = (uint32_t)(shape_count(&in) / in.dim[0] / groups);
    Shape flat = {3, {in.dim[0], groups, size}};
    TensorId out = onnx_reshape(x, n, onnx_tensor_in(x, n, 0), flat);
    out = onnx_norm(x, n, out, 2, onnx_float(x, n, "epsilon", 1e-5));
    out = onnx_reshape(x, n, out, in);
    return onnx_set(x, n, 0, onnx_scale(x, n, out, &scale, &bias), NULL);
}

bool onnx_instance_norm(Onnx *x, OnnxNode *n) {
    return norm_groups(x, n, shape_dim(&onnx_in(x, n, 0)->shape, 1));
}

bool onnx_group_norm(Onnx *x, OnnxNode *n) {
    int64_t groups = onnx_int(x, n, "num_groups", 0);
    return norm_groups(
        x, n, groups > 0 && groups <= INT32_MAX ? (uint32_t)groups : 0);
}

/* LayerNormalization's other outputs: the mean, and 1 / sqrt(var + eps). */
static bool set_statistics(Onnx *x, OnnxNode *n, uint32_t axis) {
    if (!onnx_wants(n, 1) && !onnx_wants(n, 2))
        return true;
    TensorId in = onnx_tensor_in(x, n, 0);
    uint32_t rank = onnx_shape(x, in)->rank;
    uint32_t axes = ((1u << rank) - 1) & ~((1u << axis) - 1);
    TensorId mean = onnx_reduce(x, n, in, REDUCE_MEAN, axes);
    TensorId rest = onnx_binary(x, n, ELT_SUB, in, mean);
    TensorId var = onnx_binary(x, n, ELT_MUL, rest, rest);
    var = onnx_reduce(x, n, var, REDUCE_MEAN, axes);
    Shape one = onnx_rank(&(Shape){0}, rank);
    double eps = onnx_float(x, n, "epsilon", 1e-5);
    var = onnx_binary(x, n, ELT_ADD, var,
                      onnx_constant(x, n, onnx_fill(one, eps)));
    var = onnx_act(x, n, var, (Act){.kind = ACT_SQRT});
    var = onnx_act(x, n, var, (Act){.kind = ACT_RECIPROCAL});
    return onnx_set(x, n, 1, mean, NULL) && onnx_set(x, n, 2, var, NULL);
}

bool onnx_layer_norm(Onnx *x, OnnxNode *n) {
    uint32_t axis;
    const Shape *in = &onnx_in(x, n, 0)->shape;
    if (!onnx_axis(x, n, onnx_int(x, n, "axis", -1), in->rank, &axis))
        return false;
    if (!set_statistics(x, n, axis))
        return false;
    TensorId out = onnx_norm(x, n, onnx_tensor_in(x, n, 0), axis,
                             onnx_float(x, n, "epsilon", 1e-5));
    out = onnx_binary(x, n, ELT_MUL, out, onnx_tensor_in(x, n, 1));
    if (onnx_in(x, n, 2))
        out = onnx_binary(x, n, ELT_ADD, out, onnx_tensor_in(x, n, 2));
    return onnx_set(x, n, 0, out, NULL);
}

/* Axes that are normalised together go to the end, and back. */
bool onnx_mvn(Onnx *x, OnnxNode *n) {
    static const int64_t usual[] = {0, 2, 3};
    int64_t *axis;
    uint32_t axes, perm[SHAPE_MAX_RANK], back[SHAPE_MAX_RANK], k = 0, kept;
    uint32_t count = onnx_ints(x, n, "axes", &axis);
    uint32_t rank = onnx_in(x, n, 0)->shape.rank;
    if (!onnx_axes(x, n, count ? count : 3, count ? axis : usual, rank, 0,
                   &axes))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (!(axes >> i & 1))
            perm[k++] = i;
    kept = k;
    for (uint32_t i = 0; i < rank; i++)
        if (axes >> i & 1)
            perm[k++] = i;
    for (uint32_t i = 0; i < rank; i++)
        back[perm[i]] = i;
    TensorId out = onnx_transpose(x, n, onnx_tensor_in(x, n, 0), perm);
    out = onnx_norm(x, n, out, kept, 1e-18);
    return onnx_set(x, n, 0, onnx_transpose(x, n, out, back), NULL);
}

bool onnx_lrn(Onnx *x, OnnxNode *n) {
    int64_t size = onnx_int(x, n, "size", 0);
    if (size < 1 || size > 1 << 16 || size % 2 == 0)
        return onnx_error(x, n, "size %lld must be odd, and from 1 to 65535",
                          (long long)size);
    TensorId in = onnx_tensor_in(x, n, 0);
    NodeId id = onnx_add(x, n, OP_LRN, "lrn", 1, &in);
    if (id.i == NONE)
        return false;
    LrnAttr *lrn = &graph_node(x->graph, id)->attr.lrn;
    lrn->size = (uint32_t)size;
    lrn->alpha = onnx_float(x, n, "alpha", 1e-4);
    lrn->beta = onnx_float(x, n, "beta", 0.75);
    lrn->k = onnx_float(x, n, "bias", 1);
    return onnx_set(x, n, 0, onnx_end(x, id), NULL);
}

/* ---- reductions ---- */

/* Height and width of a volume: a pool, which engines run. */
static TensorId mean_plane(Onnx *x, OnnxNode *n, TensorId in) {
    NodeId id = onnx_add(x, n, OP_POOL, "mean", 1, &in);
    if (id.i == NONE)
        return NO_TENSOR;
    PoolAttr *pool = &graph_node(x->graph, id)->attr.pool;
    pool->kind = POOL_AVG;
    pool->global = true;
    return onnx_end(x, id);
}

bool onnx_arg(Onnx *x, OnnxNode *n) {
    Shape in = onnx_in(x, n, 0)->shape, shape = {0};
    bool last = onnx_int(x, n, "select_last_index", 0) != 0;
    uint32_t axis;
    if (!onnx_axis(x, n, onnx_int(x, n, "axis", 0), in.rank, &axis))
        return false;
    bool keeps = onnx_int(x, n, "keepdims", 1) != 0;
    for (uint32_t i = 0; i < in.rank; i++)
        if (i != axis || keeps)
            shape.dim[shape.rank++] = i == axis ? 1 : in.dim[i];
    ReduceKind kind = (ReduceKind)(n->op->kind + last);
    onnx_out(x, n, 0)->type = ONNX_INT64;
    TensorId out = onnx_reduce(x, n, onnx_tensor_in(x, n, 0), kind, 1u << axis);
    return onnx_set(x, n, 0, onnx_reshape(x, n, out, shape), &shape);
}

bool onnx_reduction(Onnx *x, OnnxNode *n) {
    ReduceKind kind = (ReduceKind)n->op->kind;
    Shape in = onnx_in(x, n, 0)->shape, shape = {0};
    uint32_t count, axes, all = (1u << in.rank) - 1;
    int64_t *axis;
    if (onnx_int(x, n, "noop_with_empty_axes", 0))
        all = 0;
    if (!onnx_list(x, n, 1, "axes", &count, &axis) ||
        !onnx_axes(x, n, count, axis, in.rank, all, &axes))
        return false;
    bool keeps = onnx_int(x, n, "keepdims", 1) != 0;
    for (uint32_t i = 0; i < in.rank; i++)
        if (!(axes >> i & 1))
            shape.dim[shape.rank++] = in.dim[i];
        else if (keeps)
            shape.dim[shape.rank++] = 1;
    TensorId out = onnx_tensor_in(x, n, 0);
    bool noop = !axes && !count;
    if (in.rank == 4 && axes == 12 && kind == REDUCE_MEAN)
        out = mean_plane(x, n, out);
    else if (!noop || kind != REDUCE_SUM)
        out = onnx_reduce(x, n, out, kind, axes);
    return onnx_set(x, n, 0, onnx_reshape(x, n, out, shape), &shape);
}

/* ---- softmax ---- */

/* In operator sets before 13, all axes from the one that is given. */
static bool softmax_shape(Onnx *x, OnnxNode *n, Shape *shape, uint32_t *axis) {
    bool joins = !x->opset || x->opset < 13;
    *shape = onnx_in(x, n, 0)->shape;
    if (!onnx_axis(x, n, onnx_int(x, n, "axis", joins ? 1 : -1), shape->rank,
                   axis))
        return false;
    if (joins && *axis + 1 < shape->rank) {
        Shape joined = {2, {1, 1}};
        for (uint32_t i = 0; i < shape->rank; i++)
            joined.dim[i >= *axis] *= shape->dim[i];
        bool same = true; /* other axes are 1: no need to join */
        for (uint32_t i = *axis + 1; i < shape->rank; i++)
            same &= shape->dim[i] == 1;
        if (!same) {
            *shape = joined;
            *axis = 1;
        }
    }
    return true;
}

bool onnx_softmax(Onnx *x, OnnxNode *n) {
    Shape shape, in = onnx_in(x, n, 0)->shape;
    uint32_t axis;
    if (!softmax_shape(x, n, &shape, &axis))
        return false;
    TensorId out = onnx_reshape(x, n, onnx_tensor_in(x, n, 0), shape);
    if (n->op->kind) { /* x - log(sum(exp(x))) keeps small probabilities */
        TensorId sum = onnx_reduce(x, n, out, REDUCE_LOG_SUM_EXP, 1u << axis);
        out = onnx_binary(x, n, ELT_SUB, out, sum);
    } else {
        NodeId id = onnx_add(x, n, OP_SOFTMAX, "softmax", 1, &out);
        if (id.i == NONE)
            return false;
        graph_node(x->graph, id)->attr.axis.axis = axis;
        out = onnx_end(x, id);
    }
    return onnx_set(x, n, 0, onnx_reshape(x, n, out, in), NULL);
}
