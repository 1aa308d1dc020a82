/* ops_shape.c - Caffe layers that move values without changing them: into
 * other shapes, beside each other, apart, larger. */
#include "frontends/caffe/caffe.h"

/* ---- other shapes ---- */

static bool build_reshape(Caffe *c, CaffeLayer *layer, const Shape *to) {
    NodeId node = caffe_node(c, layer, OP_RESHAPE);
    graph_node(c->graph, node)->attr.reshape = *to;
    return caffe_finish(c, layer, node, 0);
}

bool caffe_flatten(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "flatten_param");
    Shape in = *caffe_in_shape(c, layer, 0), to = {0};
    uint32_t first = 1, last = in.rank - 1;
    if (!caffe_axis(c, layer, param, "axis", in.rank, &first) ||
        !caffe_axis(c, layer, param, "end_axis", in.rank, &last))
        return false;
    if (first > last)
        return caffe_error(c, layer, "flattens from axis %u to %u", first,
                           last);
    for (uint32_t i = 0; i < in.rank; i++) {
        if (i <= first || i > last)
            to.dim[to.rank++] = in.dim[i];
        else
            to.dim[to.rank - 1] *= in.dim[i];
    }
    return build_reshape(c, layer, &to);
}

/* Appends the dims of a reshape_param: 0 keeps the input's dim at the same
 * place, -1 (`*inferred`) is found from the count. */
static bool append_dims(Caffe *c, CaffeLayer *layer, const ProtoMessage *shape,
                        const Shape *in, Shape *to, uint32_t *inferred) {
    const ProtoField *f = NULL;
    while ((f = proto_next(shape, "dim", f))) {
        int64_t dim;
        if (!proto_get_i64(c->diag, f, &dim))
            return false;
        if (dim == -1 && *inferred == NONE)
            *inferred = to->rank;
        else if (dim == 0 && to->rank < in->rank)
            dim = in->dim[to->rank];
        else if (dim < 1 || dim > INT32_MAX)
            return caffe_error_at(c, layer, f->at,
                                  "cannot reshape to a dim of %lld here",
                                  (long long)dim);
        if (to->rank == SHAPE_MAX_RANK)
            return caffe_error_at(c, layer, f->at, "more than %d dimensions",
                                  SHAPE_MAX_RANK);
        to->dim[to->rank++] = dim == -1 ? 1 : (uint32_t)dim;
    }
    return true;
}

/* The axes [first, end) that a Reshape replaces. */
static bool replaced_axes(Caffe *c, CaffeLayer *layer,
                          const ProtoMessage *param, uint32_t rank,
                          uint32_t *first, uint32_t *end) {
    int64_t axis = 0, n = -1;
    proto_i64(c->diag, param, "axis", &axis);
    proto_i64(c->diag, param, "num_axes", &n);
    if (axis < 0)
        axis += (int64_t)rank + 1;
    if (n == -1)
        n = (int64_t)rank - axis;
    if (axis < 0 || axis > rank || n < 0 || n > (int64_t)rank - axis)
        return caffe_error(c, layer,
                           "axis and num_axes are outside %u "
                           "dimensions",
                           rank);
    *first = (uint32_t)axis;
    *end = (uint32_t)(axis + n);
    return true;
}

bool caffe_reshape(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "reshape_param");
    const ProtoMessage *shape =
        proto_message(c->arena, c->diag, param, "shape");
    Shape in = *caffe_in_shape(c, layer, 0), to = {0};
    uint32_t first = 0, end = 0, inferred = NONE;
    if (!replaced_axes(c, layer, param, in.rank, &first, &end))
        return false;
    for (uint32_t i = 0; i < first; i++)
        to.dim[to.rank++] = in.dim[i];
    if (!append_dims(c, layer, shape, &in, &to, &inferred))
        return false;
    for (uint32_t i = end; i < in.rank; i++) {
        if (to.rank == SHAPE_MAX_RANK)
            return caffe_error(c, layer, "more than %d dimensions",
                               SHAPE_MAX_RANK);
        to.dim[to.rank++] = in.dim[i];
    }
    uint64_t rest = shape_count(&to);
    if (inferred != NONE && shape_count(&in) % rest == 0)
        to.dim[inferred] = (uint32_t)(shape_count(&in) / rest);
    return build_reshape(c, layer, &to);
}

bool caffe_padding(Caffe *c, CaffeLayer *layer) {
    static const char *const names[2][2] = {{"pad_top", "pad_bottom"},
                                            {"pad_left", "pad_right"}};
    const ProtoMessage *param = caffe_param(c, layer, "padding_param");
    uint32_t before[2] = {0}, behind[2];
    double value = 0;
    if (!caffe_pair(c, layer, param, "pad", "pad_h", "pad_w", before))
        return false;
    behind[0] = before[0];
    behind[1] = before[1];
    NodeId node = caffe_node(c, layer, OP_PAD);
    Attrs *attr = &graph_node(c->graph, node)->attr;
    for (int i = 0; i < 2; i++) {
        proto_u32(c->diag, param, "pad_beg", &before[i]);
        proto_u32(c->diag, param, "pad_end", &behind[i]);
        proto_u32(c->diag, param, names[i][0], &before[i]);
        proto_u32(c->diag, param, names[i][1], &behind[i]);
        attr->pad.before[i] = before[i];
        attr->pad.behind[i] = behind[i];
    }
    proto_f64(c->diag, param, "value", &value);
    attr->pad.value = value;
    return caffe_finish(c, layer, node, 0);
}

/* ---- beside each other, and apart ---- */

bool caffe_concat(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "concat_param");
    uint32_t rank = caffe_in_shape(c, layer, 0)->rank, axis = 1;
    if (!caffe_axis(c, layer, param, "concat_dim", rank, &axis) ||
        !caffe_axis(c, layer, param, "axis", rank, &axis))
        return false;
    NodeId node = caffe_node(c, layer, OP_CONCAT);
    graph_node(c->graph, node)->attr.axis.axis = axis;
    return caffe_finish(c, layer, node, 0);
}

/* Node `t` of a layer that makes one for each top. */
static NodeId node_of_top(Caffe *c, CaffeLayer *layer, OpKind op, uint32_t t) {
    TensorId in = caffe_in(c, layer, 0);
    if (layer->n_top == 1)
        return caffe_node(c, layer, op);
    return caffe_part(c, layer, op, arena_printf(c->arena, "%u", t), 1, &in);
}

static bool build_slice(Caffe *c, CaffeLayer *layer, uint32_t axis,
                        uint32_t top, uint32_t begin, uint32_t end) {
    NodeId node = node_of_top(c, layer, OP_SLICE, top);
    Attrs *attr = &graph_node(c->graph, node)->attr;
    attr->slice.axis = axis;
    attr->slice.begin = begin;
    attr->slice.end = end;
    return caffe_finish(c, layer, node, top);
}

/* Where the parts of an axis end: the slice points and the end, or as many
 * equal parts as there are tops. */
static bool slice_ends(Caffe *c, CaffeLayer *layer, const ProtoMessage *param,
                       uint32_t whole, uint32_t *end) {
    uint32_t n = proto_count(param, "slice_point"), i = 0;
    if (n && n != layer->n_top - 1)
        return caffe_error(c, layer, "%u slice points for %u tops", n,
                           layer->n_top);
    if (!n && whole % layer->n_top)
        return caffe_error(c, layer, "%u does not divide into %u equal parts",
                           whole, layer->n_top);
    for (uint32_t t = 0; t < layer->n_top; t++)
        end[t] = whole / layer->n_top * (t + 1);
    const ProtoField *f = NULL;
    while ((f = proto_next(param, "slice_point", f)))
        if (!proto_get_u32(c->diag, f, &end[i++]))
            return false;
    end[layer->n_top - 1] = whole;
    return true;
}

bool caffe_slice(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "slice_param");
    Shape in = *caffe_in_shape(c, layer, 0);
    uint32_t axis = 1;
    uint32_t *end = ARENA_ARRAY(c->arena, uint32_t, layer->n_top);
    if (!caffe_axis(c, layer, param, "slice_dim", in.rank, &axis) ||
        !caffe_axis(c, layer, param, "axis", in.rank, &axis) ||
        !slice_ends(c, layer, param, in.dim[axis], end))
        return false;
    for (uint32_t t = 0; t < layer->n_top; t++)
        if (!build_slice(c, layer, axis, t, t ? end[t - 1] : 0, end[t]))
            return false;
    return true;
}

/* Split, and Dropout in the field. */
bool caffe_identity(Caffe *c, CaffeLayer *layer) {
    for (uint32_t t = 0; t < layer->n_top; t++)
        if (!caffe_finish(c, layer, node_of_top(c, layer, OP_IDENTITY, t), t))
            return false;
    return true;
}

/* Offsets of a Crop by axis from `first` on: one for all, or one each. */
static bool crop_offsets(Caffe *c, CaffeLayer *layer, const ProtoMessage *param,
                         uint32_t first, uint32_t rank, uint32_t *offset) {
    uint32_t n = proto_count(param, "offset"), i = first;
    const ProtoField *f = NULL;
    if (n > 1 && n != rank - first)
        return caffe_error(c, layer, "%u offsets for %u axes", n, rank - first);
    while ((f = proto_next(param, "offset", f)))
        if (!proto_get_u32(c->diag, f, &offset[i++]))
            return false;
    for (; n == 1 && i < rank; i++)
        offset[i] = offset[first];
    return true;
}

/* The first bottom cut to the shape of the second, axis after axis. */
bool caffe_crop(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "crop_param");
    Shape in = *caffe_in_shape(c, layer, 0), to = *caffe_in_shape(c, layer, 1);
    uint32_t first = 2, offset[SHAPE_MAX_RANK] = {0};
    TensorId tensor = caffe_in(c, layer, 0);
    if (!caffe_axis(c, layer, param, "axis", in.rank, &first) ||
        !crop_offsets(c, layer, param, first, in.rank, offset))
        return false;
    if (in.rank != to.rank)
        return caffe_error(c, layer, "bottoms of %u and %u dimensions", in.rank,
                           to.rank);
    for (uint32_t axis = first; axis < in.rank; axis++) {
        uint64_t end = (uint64_t)offset[axis] + to.dim[axis];
        if (to.dim[axis] == in.dim[axis] && !offset[axis])
            continue;
        NodeId node =
            caffe_part(c, layer, OP_SLICE,
                       arena_printf(c->arena, "axis%u", axis), 1, &tensor);
        Attrs *attr = &graph_node(c->graph, node)->attr;
        attr->slice.axis = axis;
        attr->slice.begin = offset[axis];
        attr->slice.end = end > UINT32_MAX ? UINT32_MAX : (uint32_t)end;
        tensor = caffe_inner(c, node);
        if (tensor.i == NONE)
            return false;
    }
    NodeId last =
        graph_add(c->graph, OP_IDENTITY, layer->name, layer->loc, 1, &tensor);
    return caffe_finish(c, layer, last, 0);
}

/* ---- larger ---- */

bool caffe_upsample(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "upsample_param");
    uint32_t factor[2] = {0};
    if (!caffe_pair(c, layer, param, "scale", "scale_h", "scale_w", factor))
        return false;
    if (!factor[0] || !factor[1])
        return caffe_error(c, layer, "has no scale");
    NodeId node = caffe_node(c, layer, OP_UPSAMPLE);
    for (int i = 0; i < 2; i++)
        graph_node(c->graph, node)->attr.up.factor[i] = factor[i];
    return caffe_finish(c, layer, node, 0);
}

/* Interp is bilinear, and OP_UPSAMPLE is not: only where the size stays, or
 * there is one value to repeat, are they the same. */
bool caffe_interp(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "interp_param");
    Shape in = *caffe_in_shape(c, layer, 0);
    uint32_t zoom = 1, size[2] = {shape_dim(&in, 2), shape_dim(&in, 3)};
    proto_u32(c->diag, param, "zoom_factor", &zoom);
    for (int i = 0; i < 2; i++)
        size[i] = zoom > 1 && size[i] > 1 ? 0 : size[i];
    proto_u32(c->diag, param, "height", &size[0]);
    proto_u32(c->diag, param, "width", &size[1]);
    NodeId node = caffe_node(c, layer, OP_UPSAMPLE);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t from = shape_dim(&in, 2 + i);
        if (size[i] != from && from != 1)
            return caffe_error(c, layer,
                               "bilinear interpolation is not supported");
        graph_node(c->graph, node)->attr.up.factor[i] = size[i] / from;
    }
    return caffe_finish(c, layer, node, 0);
}
