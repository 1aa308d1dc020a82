/* ops_detect.c - layers of single-shot detectors: axes in another order, norms
 * over channels, boxes of a grid; and calls of functions of the user's. */
#include "frontends/caffe/caffe.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- axes ---- */

/* Those that `order` does not name follow in theirs. */
bool caffe_permute(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "permute_param");
    const Shape *in = caffe_in_shape(c, layer, 0);
    Shape perm = {0};
    uint32_t seen = 0;
    for (const ProtoField *f = NULL; (f = proto_next(param, "order", f));) {
        uint32_t axis;
        if (!proto_get_u32(c->diag, f, &axis))
            return false;
        if (axis >= in->rank || seen >> axis & 1)
            return caffe_error_at(c, layer, f->at,
                                  "its input has no axis %u, or it is named "
                                  "twice",
                                  axis);
        seen |= 1u << axis;
        perm.dim[perm.rank++] = axis;
    }
    for (uint32_t i = 0; i < in->rank; i++)
        if (!(seen >> i & 1))
            perm.dim[perm.rank++] = i;
    NodeId node = caffe_node(c, layer, OP_TRANSPOSE);
    graph_node(c->graph, node)->attr.perm = perm;
    return caffe_finish(c, layer, node, 0);
}

/* ---- norms ---- */

static TensorId part(Caffe *c, CaffeLayer *layer, OpKind op, const char *name,
                     TensorId a, TensorId b, Attrs attr, ActKind act) {
    if (a.i == NONE)
        return a;
    TensorId in[] = {a, b};
    NodeId node = caffe_part(c, layer, op, name, b.i == NONE ? 1 : 2, in);
    graph_node(c->graph, node)->attr = attr;
    graph_node(c->graph, node)->act.kind = act;
    return caffe_inner(c, node);
}

/* a + eps, of one channel. */
static TensorId plus(Caffe *c, CaffeLayer *layer, TensorId a, double eps) {
    if (a.i == NONE)
        return a;
    NodeId node = caffe_part(c, layer, OP_SCALE, "eps", 1, &a);
    caffe_fill(c, node, CONST_SCALE, 1);
    caffe_fill(c, node, CONST_BIAS, eps);
    return caffe_inner(c, node);
}

/* x / sqrt(sum of squares + eps) over channels or all, then a scale. */
bool caffe_normalize(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "norm_param");
    bool across = true, shared = true;
    double eps = 1e-10;
    Const scale;
    proto_bool(c->diag, param, "across_spatial", &across);
    proto_bool(c->diag, param, "channel_shared", &shared);
    proto_f64(c->diag, param, "eps", &eps);
    TensorId in = caffe_in(c, layer, 0);
    if (caffe_in_shape(c, layer, 0)->rank != 4)
        return caffe_error(c, layer, "needs an input of four dimensions");
    Attrs product = {.elt.kind = ELT_MUL}, over = {.elt.kind = ELT_DIV};
    Attrs sum = {.reduce = {REDUCE_SUM, across ? 14 : 2}};
    TensorId norm =
        part(c, layer, OP_ELTWISE, "square", in, in, product, ACT_NONE);
    norm = part(c, layer, OP_REDUCE, "sum", norm, NO_TENSOR, sum, ACT_NONE);
    norm = plus(c, layer, norm, eps);
    norm =
        part(c, layer, OP_ACT, "root", norm, NO_TENSOR, (Attrs){0}, ACT_SQRT);
    norm = part(c, layer, OP_ELTWISE, "unit", in, norm, over, ACT_NONE);
    if (norm.i == NONE)
        return false;
    NodeId node = caffe_node(c, layer, OP_SCALE);
    graph_node(c->graph, node)->in[0] = norm;
    graph_node(c->graph, node)->no_bias = true;
    uint32_t errors = diag_errors(c->diag);
    bool given = caffe_blob(c, layer, 0, &scale);
    if (diag_errors(c->diag) > errors)
        return false;
    if (given && shared && shape_count(&scale.shape) == 1) {
        double one;
        const_read_f64(&scale, &one);
        caffe_fill(c, node, CONST_SCALE, one);
    } else if (given && !caffe_use_blob(c, layer, node, CONST_SCALE, 0)) {
        return false;
    }
    return caffe_finish(c, layer, node, 0);
}

/* ---- boxes of a grid ---- */

enum { MOST_SIZES = 32 };
typedef struct List {
    uint32_t n;
    double at[2 * MOST_SIZES + 1];
} List;

static bool read_list(Caffe *c, CaffeLayer *layer, const ProtoMessage *param,
                      const char *name, List *out) {
    for (const ProtoField *f = NULL; (f = proto_next(param, name, f));) {
        if (out->n == MOST_SIZES)
            return caffe_error_at(c, layer, f->at, "more than %d of them",
                                  MOST_SIZES);
        if (!proto_get_f64(c->diag, f, &out->at[out->n++]))
            return false;
    }
    return true;
}

typedef struct Boxes {
    List least, most, ratio, variance;
    double image[2], step[2], offset; /* height, width */
    uint32_t grid[2], each;           /* boxes at each place */
    bool clips;
} Boxes;

/* Each ratio once, with its inverse where `flip` says so. */
static void add_ratio(List *to, double ratio) {
    for (uint32_t i = 0; i < to->n; i++)
        if (fabs(to->at[i] - ratio) < 1e-6)
            return;
    to->at[to->n++] = ratio;
}

static bool read_ratios(Caffe *c, CaffeLayer *layer, const ProtoMessage *param,
                        List *out) {
    List given = {0};
    bool flip = true;
    proto_bool(c->diag, param, "flip", &flip);
    if (!read_list(c, layer, param, "aspect_ratio", &given))
        return false;
    add_ratio(out, 1);
    for (uint32_t i = 0; i < given.n; i++) {
        if (!(given.at[i] > 0))
            return caffe_error(c, layer, "an aspect_ratio is not above 0");
        add_ratio(out, given.at[i]);
        if (flip)
            add_ratio(out, 1 / given.at[i]);
    }
    return true;
}

static bool read_boxes(Caffe *c, CaffeLayer *layer, Boxes *b) {
    const ProtoMessage *param = caffe_param(c, layer, "prior_box_param");
    const Shape *in = caffe_in_shape(c, layer, 0);
    const Shape *image = caffe_in_shape(c, layer, 1);
    double size[2] = {0, 0};
    *b = (Boxes){.offset = 0.5};
    for (uint32_t i = 0; i < 2; i++) {
        b->grid[i] = shape_dim(in, 2 + i);
        proto_f64(c->diag, param, "img_size", &size[i]);
        proto_f64(c->diag, param, i ? "img_w" : "img_h", &size[i]);
        b->image[i] = size[i] > 0 ? size[i] : shape_dim(image, 2 + i);
        proto_f64(c->diag, param, "step", &b->step[i]);
        proto_f64(c->diag, param, i ? "step_w" : "step_h", &b->step[i]);
        if (!(b->step[i] > 0))
            b->step[i] = b->image[i] / b->grid[i];
    }
    proto_f64(c->diag, param, "offset", &b->offset);
    proto_bool(c->diag, param, "clip", &b->clips);
    if (!read_list(c, layer, param, "min_size", &b->least) ||
        !read_list(c, layer, param, "max_size", &b->most) ||
        !read_list(c, layer, param, "variance", &b->variance) ||
        !read_ratios(c, layer, param, &b->ratio))
        return false;
    if (!b->least.n || (b->most.n && b->most.n != b->least.n) ||
        (b->variance.n > 1 && b->variance.n != 4))
        return caffe_error(c, layer,
                           "needs as many min_size as max_size, and one "
                           "variance or four");
    b->each = b->least.n * b->ratio.n + b->most.n;
    return true;
}

static double *add_box(const Boxes *b, const double at[2], double h, double w,
                       double *out) {
    const double low[2] = {at[1] - w / 2, at[0] - h / 2};
    const double high[2] = {at[1] + w / 2, at[0] + h / 2};
    for (uint32_t i = 0; i < 2; i++) {
        out[i] = low[i] / b->image[1 - i];
        out[2 + i] = high[i] / b->image[1 - i];
    }
    for (uint32_t i = 0; b->clips && i < 4; i++)
        out[i] = fmin(fmax(out[i], 0), 1);
    return out + 4;
}

/* The boxes at one place of the grid. */
static double *add_place(const Boxes *b, uint32_t y, uint32_t x, double *out) {
    const double at[2] = {(y + b->offset) * b->step[0],
                          (x + b->offset) * b->step[1]};
    for (uint32_t s = 0; s < b->least.n; s++) {
        double size = b->least.at[s];
        out = add_box(b, at, size, size, out);
        if (b->most.n) {
            double both = sqrt(size * b->most.at[s]);
            out = add_box(b, at, both, both, out);
        }
        for (uint32_t r = 1; r < b->ratio.n; r++) {
            double root = sqrt(b->ratio.at[r]);
            out = add_box(b, at, size / root, size * root, out);
        }
    }
    return out;
}

/* Constants: 1 x 2 x numbers, the boxes and their variances. */
bool caffe_prior_box(Caffe *c, CaffeLayer *layer) {
    Boxes b;
    if (!read_boxes(c, layer, &b))
        return false;
    uint64_t n = (uint64_t)b.grid[0] * b.grid[1] * b.each * 4;
    if (n > 1 << 24)
        return caffe_error(c, layer, "makes too many boxes");
    double *value = ARENA_ARRAY(c->arena, double, 2 * n), *to = value;
    for (uint32_t y = 0; y < b.grid[0]; y++)
        for (uint32_t x = 0; x < b.grid[1]; x++)
            to = add_place(&b, y, x, to);
    for (uint64_t i = 0; i < n; i++)
        to[i] = !b.variance.n       ? 0.1
                : b.variance.n == 1 ? b.variance.at[0]
                                    : b.variance.at[i % 4];
    Const boxes = {
        .shape = {3, {1, 2, (uint32_t)n}}, .kind = CONST_F64, .data = value};
    NodeId node = caffe_part(c, layer, OP_CONSTANT, "boxes", 0, NULL);
    graph_node(c->graph, node)->attr.reshape = boxes.shape;
    graph_node(c->graph, node)->constant[CONST_VALUE] =
        graph_add_const(c->graph, boxes);
    return caffe_finish(c, layer, node, 0);
}

/* ---- calls ---- */

bool caffe_told_shape(const Caffe *c, const char *top, Shape *out) {
    for (uint32_t i = 0; i < c->options->n_shapes; i++)
        if (!strcmp(c->options->shapes[i].name, top)) {
            if (out)
                *out = c->options->shapes[i].shape;
            return true;
        }
    return false;
}

static bool fix_values(Caffe *c, CaffeLayer *layer, NodeId node,
                       const char *top, const Shape *shape) {
    const char *file = NULL;
    Npy npy;
    for (uint32_t i = 0; i < c->options->n_fixed; i++)
        if (!strcmp(c->options->fixed[i].name, top))
            file = c->options->fixed[i].file;
    if (!file) {
        diag_warning(c->diag, layer->loc,
                     "layer \"%s\": its type is a call of a function of "
                     "yours; its values are made up: --fix %s=FILE.npy gives "
                     "them",
                     layer->name, top);
        return true;
    }
    if (!npy_read(c->arena, c->diag, file, &npy))
        return false;
    Const value = {.shape.rank = npy.rank, .kind = CONST_F32, .data = npy.data};
    for (uint32_t i = 0; i < npy.rank; i++)
        value.shape.dim[i] = (uint32_t)npy.dim[i];
    if (!shape_equal(&value.shape, shape))
        return caffe_error(c, layer, "%s holds values of %s, not %s", file,
                           shape_text(c->arena, &value.shape),
                           shape_text(c->arena, shape));
    graph_node(c->graph, node)->constant[CONST_VALUE] =
        graph_add_const(c->graph, value);
    return true;
}

/* A shape by --shape, or that of the detections that are kept. */
bool caffe_call(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "detection_output_param");
    const char *top = layer->top[0].blob;
    int64_t most = 0;
    Shape shape;
    proto_i64(c->diag, param, "keep_top_k", &most);
    proto_use_all(layer->message);
    if (!caffe_told_shape(c, top, &shape)) {
        if (most < 1 || most > 1 << 20)
            return caffe_error(c, layer,
                               "its type is not supported; --shape %s=1x... "
                               "makes it a call of a function of yours",
                               top);
        shape = shape_nchw(1, 1, (uint32_t)most, 7);
    }
    NodeId node = caffe_node(c, layer, OP_CALL);
    Attrs *attr = &graph_node(c->graph, node)->attr;
    attr->call.shape = shape;
    attr->call.what = layer->type->name;
    return fix_values(c, layer, node, top, &shape) &&
           caffe_finish(c, layer, node, 0);
}
