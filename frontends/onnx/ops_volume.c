/* ops_volume.c - ONNX's convolutions over three axes, and those with computed
 * weights; see onnx.h.
 *
 * A volume is laid out by depth: N x (D * C) x H x W. A window over depth is
 * then a slice of channels, so each plane of the result is a convolution over
 * planes, which engines run. What cannot be told so is a routine of the host.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* ---- routines ---- */

bool onnx_convolve(Onnx *x, OnnxNode *n, const OnnxWindow *w, bool transposed) {
    TensorId in[3];
    for (uint32_t i = 0; i < n->n_in; i++)
        if (onnx_in(x, n, i))
            in[i] = onnx_tensor_in(x, n, i);
    bool bias = onnx_in(x, n, 2) != NULL;
    NodeId id = onnx_routine(x, n, ROUTINE_CONVOLVE, bias ? 3 : 2, in);
    return onnx_set_windows(x, n, id, w) &&
           onnx_number_is(x, n, id, "groups",
                          (double)onnx_int(x, n, "group", 1)) &&
           onnx_number_is(x, n, id, "transposed", transposed) &&
           onnx_set(x, n, 0, onnx_end(x, id), NULL);
}

/* ---- planes ---- */

typedef struct Volume {
    Onnx *x;
    OnnxNode *n;
    Shape in; /* N x C x D x H x W */
    OnnxWindow w;
    uint32_t groups, out_c, depth; /* depth: of the result */
    const Const *weight;           /* O x C / g x d x h x w */
    const float *value;            /* its values */
    Const taps[3];                 /* weights of taps [first, end), made once */
    uint32_t first[3], end[3], n_taps;
    TensorId from; /* by depth */
} Volume;

static uint32_t out_depth(const Volume *v) {
    return conv_out_size(v->in.dim[2], v->w.kernel[0], v->w.stride[0],
                         v->w.dilation[0], (uint32_t)v->w.pad[0],
                         (uint32_t)v->w.pad_end[0]);
}

/* Weights of O x (taps * C) x h x w. */
static Const weight_of(Volume *v, uint32_t first, uint32_t end) {
    uint32_t k = 0;
    for (; k < v->n_taps; k++)
        if (v->first[k] == first && v->end[k] == end)
            return v->taps[k];
    const uint32_t *d = v->weight->shape.dim;
    uint64_t plane = (uint64_t)d[3] * d[4], n = end - first;
    Shape shape = shape_nchw(d[0], (uint32_t)n * d[1], d[3], d[4]);
    float *out = ARENA_ARRAY(v->x->arena, float, shape_count(&shape)),
          *to = out;
    for (uint64_t o = 0; o < d[0]; o++)
        for (uint64_t t = first; t < end; t++)
            for (uint64_t c = 0; c < d[1]; c++, to += plane)
                memcpy(to, v->value + ((o * d[1] + c) * d[2] + t) * plane,
                       plane * sizeof *to);
    Const made = {.shape = shape, .kind = CONST_F32, .data = out};
    if (k < 3) {
        v->first[k] = first;
        v->end[k] = end;
        v->taps[v->n_taps++] = made;
    }
    return made;
}

static TensorId convolve_plane(Volume *v, TensorId in, uint32_t first,
                               uint32_t end, bool has_bias) {
    Onnx *x = v->x;
    NodeId id = onnx_add(x, v->n, OP_CONV, "plane", 1, &in);
    if (id.i == NONE)
        return NO_TENSOR;
    ConvAttr *conv = &graph_node(x->graph, id)->attr.conv;
    conv->out_c = v->out_c;
    conv->groups = v->groups;
    for (int i = 0; i < 2; i++) {
        conv->kernel[i] = v->w.kernel[i + 1];
        conv->stride[i] = v->w.stride[i + 1];
        conv->dilation[i] = v->w.dilation[i + 1];
        conv->pad[i] = (uint32_t)v->w.pad[i + 1];
        conv->pad_end[i] = (uint32_t)v->w.pad_end[i + 1];
    }
    onnx_give(x, id, CONST_WEIGHT, weight_of(v, first, end));
    const OnnxValue *bias = has_bias ? onnx_in(x, v->n, 2) : NULL;
    graph_node(x->graph, id)->no_bias = !bias;
    if (bias)
        onnx_give(
            x, id, CONST_BIAS,
            onnx_const_reshaped(x, &bias->constant, &(Shape){1, {v->out_c}}));
    return onnx_end(x, id);
}

static TensorId planes(Volume *v, int64_t first, uint32_t n) {
    uint32_t c = v->in.dim[1];
    return onnx_slice(v->x, v->n, v->from, 1, (uint32_t)first * c,
                      ((uint32_t)first + n) * c);
}

/* Plane `z` of the result: one convolution over all its taps where these lie
 * side by side and channels are in one group, else a sum of one a tap. */
static TensorId plane(Volume *v, uint32_t z) {
    const OnnxWindow *w = &v->w;
    int64_t start = (int64_t)z * w->stride[0] - w->pad[0],
            step = w->dilation[0];
    uint32_t first = 0, end = w->kernel[0];
    while (first < end && start + first * step < 0)
        first++;
    while (first < end && start + (end - 1) * step >= v->in.dim[2])
        end--;
    if (first == end) {
        onnx_error(v->x, v->n, "a window has no element of its input");
        return NO_TENSOR;
    }
    if (v->groups == 1 && (step == 1 || end - first == 1))
        return convolve_plane(v, planes(v, start + first * step, end - first),
                              first, end, true);
    TensorId sum = NO_TENSOR;
    for (uint32_t t = first; t < end; t++) {
        TensorId one = convolve_plane(v, planes(v, start + t * step, 1), t,
                                      t + 1, t == first);
        sum = t == first ? one : onnx_binary(v->x, v->n, ELT_ADD, sum, one);
    }
    return sum;
}

/* N x C x D x H x W and N x (D * C) x H x W: depth and channels change places.
 */
static TensorId swap_depth(Volume *v, TensorId in) {
    static const uint32_t perm[] = {0, 2, 1, 3, 4};
    return onnx_transpose(v->x, v->n, in, perm);
}

static bool by_planes(Volume *v) {
    Onnx *x = v->x;
    TensorId in = onnx_tensor_in(x, v->n, 0);
    Shape s = v->in;
    v->from = onnx_reshape(
        x, v->n, swap_depth(v, in),
        shape_nchw(s.dim[0], s.dim[2] * s.dim[1], s.dim[3], s.dim[4]));
    TensorId *part = ARENA_ARRAY(x->arena, TensorId, v->depth);
    for (uint32_t z = 0; z < v->depth; z++)
        if (v->from.i == NONE || (part[z] = plane(v, z)).i == NONE)
            return false;
    NodeId id = onnx_add(x, v->n, OP_CONCAT, "planes", v->depth, part);
    graph_node(x->graph, id)->attr.axis.axis = 1;
    TensorId out = onnx_end(x, id);
    if (out.i == NONE)
        return false;
    s = *onnx_shape(x, out);
    out = onnx_reshape(
        x, v->n, out,
        (Shape){5, {s.dim[0], v->depth, v->out_c, s.dim[2], s.dim[3]}});
    return onnx_set(x, v->n, 0, swap_depth(v, out), NULL);
}

/* Windows over depth alone, as one over the rows of C x D x (H * W). */
static bool by_rows(Volume *v) {
    Onnx *x = v->x;
    Shape s = v->in, weight = v->weight->shape;
    TensorId in = onnx_tensor_in(x, v->n, 0);
    in = onnx_reshape(
        x, v->n, in,
        shape_nchw(s.dim[0], s.dim[1], s.dim[2], s.dim[3] * s.dim[4]));
    NodeId id = onnx_add(x, v->n, OP_CONV, "depth", 1, &in);
    if (id.i == NONE)
        return false;
    ConvAttr *conv = &graph_node(x->graph, id)->attr.conv;
    conv->out_c = v->out_c;
    conv->groups = v->groups;
    conv->kernel[0] = v->w.kernel[0];
    conv->kernel[1] = 1;
    conv->stride[0] = v->w.stride[0];
    conv->dilation[0] = v->w.dilation[0];
    conv->pad[0] = (uint32_t)v->w.pad[0];
    conv->pad_end[0] = (uint32_t)v->w.pad_end[0];
    Shape plane = shape_nchw(weight.dim[0], weight.dim[1], weight.dim[2], 1);
    onnx_give(x, id, CONST_WEIGHT, onnx_const_reshaped(x, v->weight, &plane));
    const OnnxValue *bias = onnx_in(x, v->n, 2);
    graph_node(x->graph, id)->no_bias = !bias;
    if (bias)
        onnx_give(
            x, id, CONST_BIAS,
            onnx_const_reshaped(x, &bias->constant, &(Shape){1, {v->out_c}}));
    TensorId out = onnx_end(x, id);
    if (out.i == NONE)
        return false;
    s.dim[1] = v->out_c;
    s.dim[2] = onnx_shape(x, out)->dim[2];
    return onnx_set(x, v->n, 0, onnx_reshape(x, v->n, out, s), NULL);
}

static bool is_deep_only(const OnnxWindow *w) {
    for (int i = 1; i < 3; i++)
        if (w->kernel[i] > 1 || w->stride[i] > 1 || w->pad[i] || w->pad_end[i])
            return false;
    return true;
}

bool onnx_conv_volume(Onnx *x, OnnxNode *n, const OnnxWindow *w) {
    const OnnxValue *weight = onnx_in(x, n, 1), *bias = onnx_in(x, n, 2);
    Volume v = {.x = x,
                .n = n,
                .in = onnx_in(x, n, 0)->shape,
                .w = *w,
                .groups = (uint32_t)onnx_int(x, n, "group", 1),
                .out_c = weight->shape.dim[0],
                .weight = &weight->constant};
    if (weight->state != ONNX_CONST || (bias && bias->state != ONNX_CONST))
        return onnx_convolve(x, n, w, false);
    if (bias && shape_count(&bias->shape) != v.out_c)
        return onnx_error(x, n, "its bias does not fit");
    v.depth = out_depth(&v);
    if (!v.depth || v.depth > 4096)
        return onnx_error(x, n, "it has no windows, or too many");
    if (is_deep_only(w))
        return by_rows(&v);
    uint64_t count = shape_count(&weight->shape);
    x->numbers += count;
    if (x->numbers > UINT64_C(1) << 28)
        return onnx_error(x, n, "its weights are too many");
    float *value = ARENA_ARRAY(x->arena, float, count);
    const_read(&weight->constant, value);
    v.value = value;
    return by_planes(&v);
}
