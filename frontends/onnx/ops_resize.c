/* ops_resize.c - ONNX's Resize and Upsample; see onnx.h.
 *
 * All its modes are separable and, sizes known, linear with constant factors:
 * along each axis an output is a sum of one (nearest), two (linear) or four
 * (cubic) inputs. So each axis is a GATHER, and one that repeats elements
 * whole times an UPSAMPLE, which engines run.
 * Cubic factors: Keys, "Cubic convolution interpolation for digital image
 * processing", 1981.
 */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

/* The rounding of Upsample and operator set 10: down when an axis grows, up
 * when it shrinks. */
#define BY_DIRECTION "by direction"

typedef struct Resize {
    const char *mode, *coordinates, *nearest;
    double cubic, outside;
    bool exclude, antialias;
    const double *roi; /* start and end of each axis; NULL: none */
} Resize;

/* One axis: `in` elements to `out`, by `scale`. */
typedef struct Axis {
    uint32_t in, out;
    double scale, start, end;
} Axis;

/* In float32, as runtimes have it: element 3 of a scale of 0.6 is at 5, not at
 * 4.9999998 and cut to 4. */
static float coordinate(const Resize *r, const Axis *a, uint32_t i) {
    const char *how = r->coordinates;
    float in = (float)a->in, out = (float)a->out, scale = (float)a->scale;
    float at = (float)i;
    if (!strcmp(how, "asymmetric"))
        return at / scale;
    if (!strcmp(how, "align_corners"))
        return a->out > 1 ? at * (in - 1) / (in * scale - 1) : 0;
    if (!strcmp(how, "pytorch_half_pixel") && a->out == 1)
        return 0;
    if (!strcmp(how, "tf_half_pixel_for_nn"))
        return (at + 0.5F) / scale;
    if (!strcmp(how, "tf_crop_and_resize")) {
        float start = (float)a->start, end = (float)a->end;
        return a->out > 1 ? start * (in - 1) +
                                at * (end - start) * (in - 1) / (out - 1)
                          : 0.5F * (start + end) * (in - 1);
    }
    float half = (at + 0.5F) / scale - 0.5F;
    if (!strcmp(how, "half_pixel_symmetric"))
        half += in / 2 * (1 - out / (scale * in));
    return half;
}

static double round_nearest(const Resize *r, const Axis *a, double at) {
    if (!strcmp(r->nearest, BY_DIRECTION))
        return a->scale < 1 ? ceil(at) : floor(at);
    if (!strcmp(r->nearest, "floor"))
        return floor(at);
    if (!strcmp(r->nearest, "ceil"))
        return ceil(at);
    return !strcmp(r->nearest, "round_prefer_ceil") ? floor(at + 0.5)
                                                    : ceil(at - 0.5);
}

static double inside(double at, uint32_t size) {
    return at < 0 ? 0 : at > size - 1 ? size - 1 : at;
}

/* Factor of the tap that is `d` away. */
static double cubic_factor(double a, double d) {
    d = fabs(d);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* How far taps reach to each side: 0 (nearest), 1 or 2 elements of the smaller
 * of both sides, as antialiasing has it. */
static double reach(const Resize *r, const Axis *a) {
    bool wide = r->antialias && a->scale < 1;
    return (!strcmp(r->mode, "nearest") ? 0
            : !strcmp(r->mode, "cubic") ? 2
                                        : 1) /
           (wide ? a->scale : 1);
}

static uint32_t tap_count(const Resize *r, const Axis *a) {
    double each = ceil(reach(r, a));
    return each < 1 ? 1 : each > 1 << 20 ? 1 << 21 : 2 * (uint32_t)each;
}

/* Of a tap that lies `distance` elements away. */
static double tap_factor(const Resize *r, const Axis *a, double distance) {
    double near = r->antialias && a->scale < 1 ? a->scale : 1;
    if (!strcmp(r->mode, "cubic"))
        return cubic_factor(r->cubic, distance * near);
    return fmax(0, 1 - fabs(distance) * near);
}

/* The taps of one output. */
static void fill_taps(const Resize *r, const Axis *a, double at, uint32_t taps,
                      double *index, double *factor) {
    bool crop = !strcmp(r->coordinates, "tf_crop_and_resize");
    double first = taps == 1 ? round_nearest(r, a, at)
                             : floor(at) - (double)(taps / 2 - 1);
    double sum = 0;
    for (uint32_t k = 0; k < taps; k++) {
        double from = first + k;
        factor[k] = taps == 1 ? 1 : tap_factor(r, a, at - from);
        if (r->exclude && (from < 0 || from > a->in - 1))
            factor[k] = 0;
        index[k] = inside(from, a->in);
        sum += factor[k];
    }
    for (uint32_t k = 0; k < taps; k++) {
        if ((r->exclude || r->antialias) && sum != 0)
            factor[k] /= sum;
        if (crop && (at < 0 || at > a->in - 1))
            factor[k] = 0;
    }
}

static TensorId resize_axis(Onnx *x, OnnxNode *n, TensorId in, uint32_t axis,
                            const Resize *r, const Axis *a) {
    uint32_t taps = tap_count(r, a);
    if ((uint64_t)a->out * taps > 1 << 24) {
        onnx_error(x, n, "an axis of %u is too large", a->out);
        return NO_TENSOR;
    }
    double *index = ARENA_ARRAY(x->arena, double, a->out *taps);
    double *factor = ARENA_ARRAY(x->arena, double, a->out *taps);
    bool same = a->in == a->out;
    for (uint32_t i = 0; i < a->out; i++) {
        fill_taps(r, a, coordinate(r, a, i), taps, index + i * taps,
                  factor + i * taps);
        for (uint32_t k = 0; k < taps; k++)
            same &= factor[i * taps + k] == (index[i * taps + k] == i);
    }
    return same ? in : onnx_gather(x, n, in, axis, a->out, taps, index, factor);
}

/* Whole factors of height and width whose elements repeat. */
static bool repeats(const Resize *r, uint32_t rank, const Axis *a,
                    uint32_t factor[2]) {
    if (rank != 4 || strcmp(r->mode, "nearest") != 0)
        return false;
    for (uint32_t axis = 0; axis < 4; axis++) {
        uint32_t by = a[axis].out / a[axis].in;
        if (by * a[axis].in != a[axis].out || (axis < 2 && by != 1))
            return false;
        for (uint32_t i = 0; i < a[axis].out; i++) {
            double index, one;
            fill_taps(r, &a[axis], coordinate(r, &a[axis], i), 1, &index, &one);
            if (index != i / by || one != 1)
                return false;
        }
        if (axis >= 2)
            factor[axis - 2] = by;
    }
    return true;
}

/* ---- of codes ---- */

/* Between which two elements an output lies, and how far from each. */
typedef struct Between {
    double low, high;
    float to_low, to_high;
} Between;

static Between between(const Resize *r, const Axis *a, uint32_t i) {
    float last = (float)(a->in - 1);
    float at = fminf(fmaxf(coordinate(r, a, i), 0), last);
    Between b = {.low = floor((double)at)};
    b.high = fmin(b.low + 1, (double)last);
    b.to_low = fabsf(at - (float)b.low);
    b.to_high = fabsf(at - (float)b.high);
    if (b.low >= b.high)
        b.to_low = b.to_high = 0.5F;
    return b;
}

/* Does it depend on each rounding which code an output becomes? */
static bool is_codes(const Onnx *x, const OnnxValue *in, const Resize *r,
                     const Axis *a) {
    const uint64_t most = 1 << 20;
    return in->shape.rank == 4 && in->state == ONNX_TENSOR &&
           graph_tensor(x->graph, in->tensor)->quant.type != QUANT_NONE &&
           a[0].in == a[0].out && a[1].in == a[1].out &&
           (uint64_t)a[2].out * a[3].out <= most && !r->antialias &&
           !r->exclude && !strcmp(r->mode, "linear") &&
           strcmp(r->coordinates, "tf_crop_and_resize") != 0;
}

/* Four taps at once, in the order and the float32 of onnxruntime. */
static TensorId resize_codes(Onnx *x, OnnxNode *n, TensorId in, const Resize *r,
                             const Axis *a) {
    const Axis *rows = &a[2], *columns = &a[3];
    uint32_t count = rows->out * columns->out, at = 0;
    Shape shape = *onnx_shape(x, in), whole = shape;
    double *index = ARENA_ARRAY(x->arena, double, 4 * (size_t)count);
    double *factor = ARENA_ARRAY(x->arena, double, 4 * (size_t)count);
    for (uint32_t i = 0; i < rows->out; i++) {
        Between y = between(r, rows, i);
        for (uint32_t j = 0; j < columns->out; j++, at += 4) {
            Between c = between(r, columns, j);
            for (uint32_t k = 0; k < 4; k++) {
                float by_x = k & 1 ? c.to_low : c.to_high;
                float product = by_x * (k & 2 ? y.to_low : y.to_high);
                factor[at + k] = (double)product;
                index[at + k] = (k & 2 ? y.high : y.low) * columns->in +
                                (k & 1 ? c.high : c.low);
            }
        }
    }
    Shape line = {3, {shape.dim[0], shape.dim[1], shape.dim[2] * shape.dim[3]}};
    in = onnx_reshape(x, n, in, line);
    in = onnx_gather(x, n, in, 2, count, 4, index, factor);
    whole.dim[2] = rows->out;
    whole.dim[3] = columns->out;
    return onnx_reshape(x, n, in, whole);
}

/* ---- sizes ---- */

static double *floats_in(Onnx *x, OnnxNode *n, uint32_t i, uint32_t *count) {
    const OnnxValue *value = onnx_in(x, n, i);
    *count = 0;
    if (!value || !shape_count(&value->shape))
        return NULL;
    if (!onnx_const_in(x, n, i))
        return NULL;
    *count = (uint32_t)shape_count(&value->shape);
    return onnx_numbers(x, value);
}

static double *attr_floats(Onnx *x, OnnxNode *n, const char *name,
                           uint32_t *count) {
    const ProtoMessage *attr = onnx_attr(n, name);
    *count = proto_count(attr, "floats");
    double *out = ARENA_ARRAY(x->arena, double, *count);
    uint32_t i = 0;
    for (const ProtoField *f = NULL; (f = proto_next(attr, "floats", f));)
        proto_get_f64(x->diag, f, &out[i++]);
    return *count ? out : NULL;
}

/* Sets the axis that entry `i` of a list speaks of. The product is rounded to
 * float32 as scales are: 5 times 1.4 is 7, not 6.9999999 and cut to 6. */
static bool set_axis(Onnx *x, OnnxNode *n, Axis *a, double scale, double size) {
    double out = size > 0 ? size : (double)floorf((float)a->in * (float)scale);
    if (!(out >= 1 && out <= 1 << 24))
        return onnx_error(x, n, "scales or sizes make an axis of %g", out);
    a->out = (uint32_t)out;
    a->scale = scale > 0 ? scale : out / a->in;
    return true;
}

/* "not_larger" and "not_smaller" keep the picture's proportions: all axes have
 * one scale, which coordinates go by and sizes are rounded from. 0: none. */
static double keep_proportions(Onnx *x, OnnxNode *n, uint32_t count,
                               const uint32_t *axis, double *size,
                               const Axis *a) {
    const char *policy = onnx_word(x, n, "keep_aspect_ratio_policy", "stretch");
    bool larger = !strcmp(policy, "not_smaller");
    if (!larger && strcmp(policy, "not_larger") != 0)
        return 0;
    double scale = 0;
    for (uint32_t i = 0; i < count; i++) {
        double own = size[i] / a[axis[i]].in;
        if (!i || (larger ? own > scale : own < scale))
            scale = own;
    }
    for (uint32_t i = 0; i < count; i++)
        size[i] = floor(a[axis[i]].in * scale + 0.5);
    return scale;
}

static bool read_axes(Onnx *x, OnnxNode *n, uint32_t rank, uint32_t *axis,
                      uint32_t *n_axes) {
    int64_t *given;
    *n_axes = onnx_ints(x, n, "axes", &given);
    bool all = !*n_axes;
    if (all)
        *n_axes = rank;
    if (*n_axes > rank)
        return onnx_error(x, n, "too many axes");
    for (uint32_t i = 0; i < *n_axes; i++)
        if (!onnx_axis(x, n, all ? i : given[i], rank, &axis[i]))
            return false;
    return true;
}

static bool read_sizes(Onnx *x, OnnxNode *n, Resize *r, Axis *a) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    uint32_t axis[SHAPE_MAX_RANK], n_axes, n_scales, n_sizes = 0, n_roi = 0;
    bool new = onnx_in(x, n, 2) || onnx_in(x, n, 3);
    double *scale = floats_in(x, n, new ? 2 : 1, &n_scales), *size = NULL;
    if (!scale && n->op->kind)
        scale = attr_floats(x, n, "scales", &n_scales);
    if (!scale)
        size = floats_in(x, n, 3, &n_sizes);
    if (!read_axes(x, n, in->rank, axis, &n_axes))
        return false;
    if ((!scale && !size) || (scale ? n_scales : n_sizes) != n_axes)
        return onnx_error(x, n,
                          "scales or sizes must be constants, one an "
                          "axis");
    double kept = 0;
    if (size)
        kept = keep_proportions(x, n, n_axes, axis, size, a);
    bool crops = !strcmp(r->coordinates, "tf_crop_and_resize");
    const double *roi = crops ? floats_in(x, n, 1, &n_roi) : NULL;
    if (crops && n_roi != 2 * n_axes)
        return onnx_error(x, n, "its region must be constant");
    for (uint32_t i = 0; i < n_axes; i++) {
        if (roi) {
            a[axis[i]].start = roi[i];
            a[axis[i]].end = roi[n_axes + i];
        }
        if (!set_axis(x, n, &a[axis[i]], scale ? scale[i] : kept,
                      size ? size[i] : 0))
            return false;
    }
    return true;
}

/* Upsample, and Resize of operator set 10, know one kind of coordinates. */
static bool read_modes(Onnx *x, OnnxNode *n, Resize *r) {
    bool old = n->op->kind || x->opset == 10;
    r->mode = onnx_word(x, n, "mode", "nearest");
    if (!strcmp(r->mode, "bilinear"))
        r->mode = "linear";
    r->coordinates = onnx_word(x, n, "coordinate_transformation_mode",
                               old ? "asymmetric" : "half_pixel");
    r->nearest = onnx_word(x, n, "nearest_mode",
                           old ? BY_DIRECTION : "round_prefer_floor");
    r->cubic = onnx_float(x, n, "cubic_coeff_a", -0.75);
    r->outside = onnx_float(x, n, "extrapolation_value", 0);
    r->exclude = onnx_int(x, n, "exclude_outside", 0) != 0;
    if (strcmp(r->mode, "nearest") && strcmp(r->mode, "linear") &&
        strcmp(r->mode, "cubic"))
        return onnx_error(x, n, "mode \"%.40s\" is not known", r->mode);
    r->antialias = onnx_int(x, n, "antialias", 0) != 0;
    return r->outside == 0 ||
           onnx_error(x, n,
                      "an extrapolation value other than 0 is not "
                      "supported");
}

bool onnx_resize(Onnx *x, OnnxNode *n) {
    Resize r = {0};
    Axis a[SHAPE_MAX_RANK] = {{0}};
    const Shape *in = &onnx_in(x, n, 0)->shape;
    for (uint32_t i = 0; i < in->rank; i++)
        a[i] = (Axis){in->dim[i], in->dim[i], 1, 0, 1};
    if (!read_modes(x, n, &r) || !read_sizes(x, n, &r, a))
        return false;
    TensorId out = onnx_tensor_in(x, n, 0);
    uint32_t factor[2];
    if (repeats(&r, in->rank, a, factor)) {
        NodeId id = onnx_add(x, n, OP_UPSAMPLE, "upsample", 1, &out);
        graph_node(x->graph, id)->attr.up.factor[0] = factor[0];
        graph_node(x->graph, id)->attr.up.factor[1] = factor[1];
        return onnx_set(x, n, 0, onnx_end(x, id), NULL);
    }
    if (is_codes(x, onnx_in(x, n, 0), &r, a))
        return onnx_set(x, n, 0, resize_codes(x, n, out, &r, a), NULL);
    for (uint32_t i = 0; i < in->rank; i++)
        out = resize_axis(x, n, out, i, &r, &a[i]);
    return onnx_set(x, n, 0, out, NULL);
}
