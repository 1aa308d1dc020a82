/* ops_matrix.c - ONNX's matrix products; see onnx.h.
 *
 * A constant right operand is the weight of an inner product, which engines
 * run; other products are matrix products of the host.
 */
#include "frontends/onnx/onnx.h"

/* in [m, k] by weight [outputs, k]. */
static TensorId inner_product(Onnx *x, OnnxNode *n, TensorId in, Const weight,
                              const Const *bias) {
    NodeId id = onnx_add(x, n, OP_FC, "fc", 1, &in);
    if (id.i == NONE)
        return NO_TENSOR;
    uint32_t outputs = weight.shape.dim[0];
    graph_node(x->graph, id)->attr.fc.out = outputs;
    graph_node(x->graph, id)->no_bias = !bias;
    onnx_give(x, id, CONST_WEIGHT, onnx_weight(x, &weight, 0));
    if (bias)
        onnx_give(x, id, CONST_BIAS, *bias);
    return onnx_end(x, id);
}

static Const transposed(Onnx *x, const Const *matrix) {
    return onnx_permuted(x, matrix, (const uint32_t[]){1, 0});
}

static TensorId flip(Onnx *x, OnnxNode *n, TensorId in) {
    return onnx_transpose(x, n, in, (const uint32_t[]){1, 0});
}

static TensorId times(Onnx *x, OnnxNode *n, TensorId in, double by) {
    if (by == 1 || in.i == NONE)
        return in;
    Shape channels = {1, {shape_dim(onnx_shape(x, in), 1)}};
    Const factor = onnx_fill(channels, by);
    return onnx_scale(x, n, in, &factor, NULL);
}

/* The third input as a bias of `outputs` values, times beta. */
static bool as_bias(Onnx *x, OnnxNode *n, uint32_t outputs, Const *out) {
    const OnnxValue *c = onnx_in(x, n, 2);
    uint64_t count = c ? shape_count(&c->shape) : 0;
    double beta = onnx_float(x, n, "beta", 1);
    if (!c || c->state != ONNX_CONST ||
        (count != 1 && (count != outputs ||
                        shape_dim(&c->shape, c->shape.rank - 1) != outputs)))
        return false;
    if (const_has_codes(&c->constant, 4) && beta == 1 && count == outputs) {
        *out = onnx_const_reshaped(x, &c->constant, &(Shape){1, {outputs}});
        return true;
    }
    double *value = ARENA_ARRAY(x->arena, double, outputs);
    const_read_f64(&c->constant, value);
    for (uint32_t i = 0; i < outputs; i++)
        value[i] = beta * value[count == 1 ? 0 : i];
    if (count == 1 && outputs > 1)
        value[0] = value[1];
    *out = onnx_values((Shape){1, {outputs}}, value);
    return true;
}

static TensorId product(Onnx *x, OnnxNode *n, bool flip_a, bool flip_b) {
    TensorId a = onnx_tensor_in(x, n, 0), b = onnx_tensor_in(x, n, 1);
    a = flip_a ? flip(x, n, a) : a;
    b = flip_b ? flip(x, n, b) : b;
    return onnx_add(x, n, OP_MATMUL, "matmul", 2, (TensorId[]){a, b}).i == NONE
               ? NO_TENSOR
               : onnx_end(x, (NodeId){x->graph->node.n - 1});
}

bool onnx_gemm(Onnx *x, OnnxNode *n) {
    const OnnxValue *a = onnx_in(x, n, 0), *b = onnx_in(x, n, 1);
    bool flip_a = onnx_int(x, n, "transA", 0) != 0;
    bool flip_b = onnx_int(x, n, "transB", 0) != 0;
    double alpha = onnx_float(x, n, "alpha", 1);
    double beta = onnx_float(x, n, "beta", 1);
    if (a->shape.rank != 2 || b->shape.rank != 2)
        return onnx_error(x, n, "%s and %s are no matrices",
                          shape_text(x->arena, &a->shape),
                          shape_text(x->arena, &b->shape));
    Const bias;
    bool has_bias = false;
    TensorId out;
    if (b->state == ONNX_CONST) {
        Const weight = flip_b ? b->constant : transposed(x, &b->constant);
        TensorId in = onnx_tensor_in(x, n, 0);
        has_bias = alpha == 1 && as_bias(x, n, weight.shape.dim[0], &bias);
        out = inner_product(x, n, flip_a ? flip(x, n, in) : in, weight,
                            has_bias ? &bias : NULL);
    } else {
        out = product(x, n, flip_a, flip_b);
    }
    out = times(x, n, out, alpha);
    if (onnx_in(x, n, 2) && !has_bias) {
        TensorId c = onnx_tensor_in(x, n, 2);
        c = onnx_reshape(x, n, c, onnx_rank(onnx_shape(x, c), 2));
        out = onnx_binary(x, n, ELT_ADD, out, times(x, n, c, beta));
    }
    return onnx_set(x, n, 0, out, NULL);
}

/* ---- products of stacks of matrices ---- */

/* [.., k] by a constant [k, outputs]. */
static TensorId by_weight(Onnx *x, OnnxNode *n, const Const *weight) {
    Shape in = onnx_in(x, n, 0)->shape, out = in;
    uint32_t k = in.dim[in.rank - 1];
    Shape rows = {2, {(uint32_t)(shape_count(&in) / k), k}};
    out.dim[in.rank - 1] = weight->shape.dim[1];
    TensorId flat = onnx_reshape(x, n, onnx_tensor_in(x, n, 0), rows);
    flat = inner_product(x, n, flat, transposed(x, weight), NULL);
    return onnx_reshape(x, n, flat, out);
}

/* Operands of rank 1 are a row and a column; their axis goes again. */
bool onnx_matmul(Onnx *x, OnnxNode *n) {
    const OnnxValue *va = onnx_in(x, n, 0), *vb = onnx_in(x, n, 1);
    Shape a = va->shape, b = vb->shape;
    if (!a.rank || !b.rank)
        return onnx_error(x, n, "a scalar is no matrix");
    if (vb->state == ONNX_CONST && b.rank == 2 && a.rank >= 1 &&
        a.dim[a.rank - 1] == b.dim[0])
        return onnx_set(x, n, 0, by_weight(x, n, &vb->constant), NULL);
    bool row = a.rank == 1, column = b.rank == 1;
    if (row)
        a = onnx_rank(&a, 2);
    if (column)
        b = (Shape){2, {b.dim[0], 1}};
    uint32_t rank = a.rank > b.rank ? a.rank : b.rank;
    TensorId in[2] = {onnx_tensor_in(x, n, 0), onnx_tensor_in(x, n, 1)};
    in[0] = onnx_reshape(x, n, in[0], onnx_rank(&a, rank));
    in[1] = onnx_reshape(x, n, in[1], onnx_rank(&b, rank));
    NodeId id = onnx_add(x, n, OP_MATMUL, "matmul", 2, in);
    TensorId out = onnx_end(x, id);
    if (out.i == NONE)
        return false;
    Shape whole = *onnx_shape(x, out), shape = {0};
    for (uint32_t i = 0; i < rank; i++)
        if (!(row && i == rank - 2) && !(column && i == rank - 1))
            shape.dim[shape.rank++] = whole.dim[i];
    return onnx_set(x, n, 0, onnx_reshape(x, n, out, shape), &shape);
}
