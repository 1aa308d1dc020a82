/* ops_window.c - ONNX's windows, convolutions and paddings; see onnx.h.
 *
 * Layers over one axis are layers over rows of one.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* ---- windows ---- */

/* A list of `n` numbers in [min, 2^16], or `n` times `absent`. */
static bool numbers(Onnx *x, const OnnxNode *n, const char *name, uint32_t want,
                    int64_t min, uint32_t absent, uint32_t *out) {
    int64_t *given;
    uint32_t count = onnx_ints(x, n, name, &given);
    if (count && count != want)
        return onnx_error(x, n, "%s has %u values, not %u", name, count, want);
    for (uint32_t i = 0; i < want; i++) {
        if (count && (given[i] < min || given[i] > 1 << 16))
            return onnx_error(x, n, "%s %lld is outside %lld..%d", name,
                              (long long)given[i], (long long)min, 1 << 16);
        out[i] = count ? (uint32_t)given[i] : absent;
    }
    return true;
}

static bool read_pads(Onnx *x, const OnnxNode *n, OnnxWindow *w) {
    const char *mode = onnx_word(x, n, "auto_pad", "NOTSET");
    uint32_t pad[2 * ONNX_MAX_AXES];
    w->lower = !strcmp(mode, "SAME_LOWER");
    w->same = w->lower || !strcmp(mode, "SAME_UPPER");
    if (!w->same && strcmp(mode, "NOTSET") != 0 && strcmp(mode, "VALID") != 0)
        return onnx_error(x, n, "auto_pad \"%.40s\" is not known", mode);
    if (!numbers(x, n, "pads", 2 * w->n, 0, 0, pad))
        return false;
    for (uint32_t i = 0; i < w->n; i++) {
        w->pad[i] = strcmp(mode, "NOTSET") ? 0 : pad[i];
        w->pad_end[i] = strcmp(mode, "NOTSET") ? 0 : pad[w->n + i];
    }
    return true;
}

bool onnx_window(Onnx *x, const OnnxNode *n, uint32_t n_axes,
                 const uint32_t *kernel, OnnxWindow *out) {
    *out = (OnnxWindow){.n = n_axes};
    if (!n_axes || n_axes > ONNX_MAX_AXES)
        return onnx_error(x, n, "windows of %u axes are not supported", n_axes);
    if (!numbers(x, n, "kernel_shape", n_axes, 1, 0, out->kernel) ||
        !numbers(x, n, "strides", n_axes, 1, 1, out->stride) ||
        !numbers(x, n, "dilations", n_axes, 1, 1, out->dilation))
        return false;
    for (uint32_t i = 0; i < n_axes; i++) {
        if (!out->kernel[i])
            out->kernel[i] = kernel ? kernel[i] : 1;
        if (kernel && out->kernel[i] != kernel[i])
            return onnx_error(x, n, "kernel_shape is not that of its weights");
    }
    return read_pads(x, n, out);
}

void onnx_pad_same(OnnxWindow *w, const uint32_t *in) {
    for (uint32_t i = 0; w->same && i < w->n; i++) {
        int64_t out = ((int64_t)in[i] + w->stride[i] - 1) / w->stride[i];
        int64_t extent = (int64_t)w->dilation[i] * (w->kernel[i] - 1) + 1;
        int64_t total = (out - 1) * w->stride[i] + extent - in[i];
        total = total > 0 ? total : 0;
        w->pad[i] = w->lower ? total - total / 2 : total / 2;
        w->pad_end[i] = total - w->pad[i];
    }
}

void onnx_window_plane(OnnxWindow *w) {
    if (w->n != 1)
        return;
    w->n = 2;
    w->kernel[1] = w->kernel[0];
    w->stride[1] = w->stride[0];
    w->dilation[1] = w->dilation[0];
    w->pad[1] = w->pad[0];
    w->pad_end[1] = w->pad_end[0];
    w->kernel[0] = w->stride[0] = w->dilation[0] = 1;
    w->pad[0] = w->pad_end[0] = 0;
}

Shape onnx_plane(const Shape *in) {
    return in->rank == 3 ? shape_nchw(in->dim[0], in->dim[1], 1, in->dim[2])
                         : *in;
}

TensorId onnx_line(Onnx *x, const OnnxNode *n, TensorId in, bool line) {
    if (!line || in.i == NONE)
        return in;
    Shape s = *onnx_shape(x, in);
    return onnx_reshape(x, n, in, (Shape){3, {s.dim[0], s.dim[1], s.dim[3]}});
}

/* ---- convolutions ---- */

/* What both kinds have in common: input as planes, weights, windows. */
typedef struct ConvParts {
    Shape in;
    Const weight;
    OnnxWindow w;
    TensorId from;
    uint32_t groups;
    bool line;
    bool apart; /* its weights are computed, or it is over three axes */
} ConvParts;

static bool conv_parts(Onnx *x, OnnxNode *n, ConvParts *out) {
    const OnnxValue *in = onnx_in(x, n, 0), *weight = onnx_in(x, n, 1);
    int64_t groups = onnx_int(x, n, "group", 1);
    out->line = in->shape.rank == 3;
    if (in->shape.rank < 3 || in->shape.rank > 2 + ONNX_MAX_AXES ||
        weight->shape.rank != in->shape.rank)
        return onnx_error(x, n,
                          "input of %s and weights of %s: only one to "
                          "three axes of windows are supported",
                          shape_text(x->arena, &in->shape),
                          shape_text(x->arena, &weight->shape));
    if (groups < 1 || groups > in->shape.dim[1])
        return onnx_error(x, n, "%lld groups", (long long)groups);
    out->groups = (uint32_t)groups;
    if (!onnx_window(x, n, in->shape.rank - 2, weight->shape.dim + 2, &out->w))
        return false;
    const OnnxValue *bias = onnx_in(x, n, 2);
    out->in = onnx_plane(&in->shape);
    out->apart = in->shape.rank == 5 || weight->state != ONNX_CONST ||
                 (bias && bias->state != ONNX_CONST);
    if (out->apart)
        return true;
    Shape plane = onnx_plane(&weight->shape);
    out->weight = onnx_const_reshaped(x, &weight->constant, &plane);
    out->from = onnx_reshape(x, n, onnx_tensor_in(x, n, 0), out->in);
    return out->from.i != NONE;
}

static bool give_bias(Onnx *x, OnnxNode *n, NodeId id, uint32_t out_c) {
    graph_node(x->graph, id)->no_bias = true;
    if (!onnx_in(x, n, 2))
        return true;
    const OnnxValue *bias = onnx_const_in(x, n, 2);
    if (!bias)
        return false;
    if (shape_count(&bias->shape) != out_c)
        return onnx_error(x, n, "its bias has shape %s, not %u",
                          shape_text(x->arena, &bias->shape), out_c);
    onnx_give(x, id, CONST_BIAS,
              onnx_const_reshaped(x, &bias->constant, &(Shape){1, {out_c}}));
    return true;
}

static void set_conv(ConvAttr *conv, const ConvParts *p, uint32_t out_c) {
    conv->out_c = out_c;
    conv->groups = p->groups;
    for (int i = 0; i < 2; i++) {
        conv->kernel[i] = p->w.kernel[i];
        conv->stride[i] = p->w.stride[i];
        conv->dilation[i] = p->w.dilation[i];
        conv->pad[i] = (uint32_t)p->w.pad[i];
        conv->pad_end[i] = (uint32_t)p->w.pad_end[i];
    }
}

bool onnx_conv(Onnx *x, OnnxNode *n) {
    ConvParts p;
    if (!conv_parts(x, n, &p))
        return false;
    onnx_pad_same(&p.w, p.in.dim + (p.line ? 3 : 2));
    if (p.apart)
        return p.w.n == 3 ? onnx_conv_volume(x, n, &p.w)
                          : onnx_convolve(x, n, &p.w, false);
    onnx_window_plane(&p.w);
    uint32_t out_c = p.weight.shape.dim[0];
    NodeId id = onnx_add(x, n, OP_CONV, "conv", 1, &p.from);
    set_conv(&graph_node(x->graph, id)->attr.conv, &p, out_c);
    onnx_give(x, id, CONST_WEIGHT, onnx_weight(x, &p.weight, 0));
    if (!give_bias(x, n, id, out_c))
        return false;
    return onnx_set(x, n, 0, onnx_line(x, n, onnx_end(x, id), p.line), NULL);
}

/* Pads of a transposed convolution: output_shape decides where it is given;
 * `more` is what they would have to be below zero: rows that no window makes.
 */
static bool transpose_pads(Onnx *x, OnnxNode *n, ConvParts *p,
                           uint32_t more[ONNX_MAX_AXES]) {
    uint32_t extra[ONNX_MAX_AXES], shape[ONNX_MAX_AXES];
    OnnxWindow *w = &p->w;
    if (!numbers(x, n, "output_padding", w->n, 0, 0, extra) ||
        !numbers(x, n, "output_shape", w->n, 1, 0, shape))
        return false;
    const uint32_t *in = p->in.dim + (p->line ? 3 : 2);
    for (uint32_t i = 0; i < w->n; i++) {
        int64_t whole = (int64_t)w->stride[i] * (in[i] - 1) + extra[i] +
                        (int64_t)w->dilation[i] * (w->kernel[i] - 1) + 1;
        int64_t want = shape[i]  ? shape[i]
                       : w->same ? (int64_t)in[i] * w->stride[i]
                                 : whole - w->pad[i] - w->pad_end[i];
        if (shape[i] || w->same) {
            int64_t total = whole - want, half = total > 0 ? total / 2 : 0;
            w->pad[i] = total < 0              ? 0
                        : w->same && !w->lower ? half
                                               : total - half;
            w->pad_end[i] = total - w->pad[i];
        }
        w->pad_end[i] -= extra[i];
        if (p->apart)
            continue;
        more[i] = w->pad_end[i] < 0 ? (uint32_t)-w->pad_end[i] : 0;
        w->pad_end[i] = w->pad_end[i] < 0 ? 0 : w->pad_end[i];
    }
    if (w->n == 1) {
        more[1] = more[0];
        more[0] = 0;
    }
    return true;
}

bool onnx_conv_transpose(Onnx *x, OnnxNode *n) {
    ConvParts p;
    uint32_t more[ONNX_MAX_AXES] = {0};
    if (!conv_parts(x, n, &p) || !transpose_pads(x, n, &p, more))
        return false;
    if (p.apart)
        return onnx_convolve(x, n, &p.w, true);
    onnx_window_plane(&p.w);
    uint32_t out_c = p.weight.shape.dim[1] * p.groups;
    NodeId id = onnx_add(x, n, OP_DECONV, "deconv", 1, &p.from);
    set_conv(&graph_node(x->graph, id)->attr.conv, &p, out_c);
    onnx_give(x, id, CONST_WEIGHT, onnx_weight(x, &p.weight, 1));
    bool grows = more[0] || more[1];
    graph_node(x->graph, id)->no_bias = true;
    if (!grows && !give_bias(x, n, id, out_c))
        return false;
    TensorId out = onnx_end(x, id);
    if (grows) { /* the bias reaches those rows too, so it comes last */
        uint32_t none[4] = {0}, behind[4] = {0, 0, more[0], more[1]};
        out = onnx_pad(x, n, out, none, behind, 0);
        const OnnxValue *bias = onnx_in(x, n, 2);
        if (bias && onnx_const_in(x, n, 2))
            out = onnx_scale(x, n, out, NULL, &bias->constant);
    }
    return onnx_set(x, n, 0, onnx_line(x, n, out, p.line), NULL);
}

/* ---- paddings ---- */

/* Which element the padded axis shows at `i`. */
static double padded_index(const char *mode, int64_t i, int64_t size) {
    int64_t period = 2 * (size - 1);
    if (!strcmp(mode, "wrap"))
        return (double)((i % size + size) % size);
    if (!strcmp(mode, "edge") || !period)
        return (double)(i < 0 ? 0 : i >= size ? size - 1 : i);
    i = (i % period + period) % period;
    return (double)(i < size ? i : period - i);
}

static TensorId pad_by_index(Onnx *x, OnnxNode *n, TensorId in, uint32_t axis,
                             const char *mode, int64_t before, int64_t behind) {
    if (in.i == NONE)
        return NO_TENSOR;
    uint32_t size = onnx_shape(x, in)->dim[axis];
    uint32_t count = (uint32_t)(size + before + behind);
    double *index = ARENA_ARRAY(x->arena, double, count);
    for (uint32_t i = 0; i < count; i++)
        index[i] = padded_index(mode, i - before, size);
    return onnx_gather(x, n, in, axis, count, 1, index, NULL);
}

/* The amounts, before and behind by axis of the input. */
static bool pad_amounts(Onnx *x, OnnxNode *n, int64_t *before,
                        int64_t *behind) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    uint32_t count, n_axes, axis;
    int64_t *pads, *axes;
    if (!onnx_list(x, n, 1, "pads", &count, &pads) ||
        !onnx_list_in(x, n, 3, &n_axes, &axes))
        return false;
    uint32_t half = onnx_in(x, n, 3) ? n_axes : in->rank;
    if (count != 2 * half)
        return onnx_error(x, n, "%u pads for %u axes", count, half);
    for (uint32_t i = 0; i < half; i++) {
        if (!onnx_axis(x, n, onnx_in(x, n, 3) ? axes[i] : i, in->rank, &axis))
            return false;
        before[axis] = pads[i];
        behind[axis] = pads[half + i];
        if (pads[i] > 1 << 15 || pads[half + i] > 1 << 15 ||
            (int64_t)in->dim[axis] + (pads[i] < 0 ? pads[i] : 0) +
                    (pads[half + i] < 0 ? pads[half + i] : 0) <
                1)
            return onnx_error(x, n, "pads %lld and %lld do not go with axis %u",
                              (long long)pads[i], (long long)pads[half + i],
                              axis);
    }
    return true;
}

bool onnx_pads(Onnx *x, OnnxNode *n) {
    Shape in = onnx_in(x, n, 0)->shape;
    int64_t before[SHAPE_MAX_RANK] = {0}, behind[SHAPE_MAX_RANK] = {0};
    uint32_t front[SHAPE_MAX_RANK], back[SHAPE_MAX_RANK];
    const char *mode = onnx_word(x, n, "mode", "constant");
    double value = onnx_float(x, n, "value", 0);
    if (!pad_amounts(x, n, before, behind))
        return false;
    const OnnxValue *given = onnx_in(x, n, 2);
    if (given && (!onnx_const_in(x, n, 2) || shape_count(&given->shape) != 1))
        return onnx_error(x, n, "its value must be one constant");
    if (given)
        const_read_f64(&given->constant, &value);
    bool constant = !strcmp(mode, "constant");
    if (!constant && strcmp(mode, "reflect") && strcmp(mode, "edge") &&
        strcmp(mode, "wrap"))
        return onnx_error(x, n, "mode \"%.40s\" is not known", mode);
    TensorId out = onnx_tensor_in(x, n, 0);
    for (uint32_t i = 0; i < in.rank; i++) {
        int64_t cut = before[i] < 0 ? -before[i] : 0;
        int64_t end = in.dim[i] + (behind[i] < 0 ? behind[i] : 0);
        if (cut || end < in.dim[i])
            out = onnx_slice(x, n, out, i, (uint32_t)cut, (uint32_t)end);
        front[i] = before[i] > 0 ? (uint32_t)before[i] : 0;
        back[i] = behind[i] > 0 ? (uint32_t)behind[i] : 0;
        if (!constant && front[i] + back[i])
            out = pad_by_index(x, n, out, i, mode, front[i], back[i]);
    }
    if (constant)
        out = onnx_pad(x, n, out, front, back, value);
    return onnx_set(x, n, 0, out, NULL);
}
