/* node.c - what the builders of Caffe layers have in common. */
#include "frontends/caffe/caffe.h"

bool caffe_error_at(Caffe *c, const CaffeLayer *layer, Loc loc,
                    const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(c->arena, format, args);
    va_end(args);
    diag_error(c->diag, loc, "layer \"%s\": %s", layer->name, text);
    return false;
}

const char *caffe_tensor_name(Caffe *c, const CaffeLayer *layer, uint32_t t) {
    const CaffeTop *top = &layer->top[t];
    if (top->last)
        return top->blob;
    if (map_get(c->blobs, layer->name, NONE) == NONE)
        return layer->name;
    return arena_printf(c->arena, "%s@%u", layer->name, top->version);
}

const ProtoMessage *caffe_param(Caffe *c, const CaffeLayer *layer,
                                const char *name) {
    return proto_message(c->arena, c->diag, layer->message, name);
}

TensorId caffe_in(const Caffe *c, const CaffeLayer *layer, uint32_t bottom) {
    const CaffeBottom *from = &layer->bottom[bottom];
    return c->layer.at[from->layer].top[from->top].tensor;
}

const Shape *caffe_in_shape(const Caffe *c, const CaffeLayer *layer,
                            uint32_t bottom) {
    return &graph_tensor(c->graph, caffe_in(c, layer, bottom))->shape;
}

NodeId caffe_node(Caffe *c, const CaffeLayer *layer, OpKind op) {
    TensorId *in = ARENA_ARRAY(c->arena, TensorId, layer->n_bottom);
    for (uint32_t i = 0; i < layer->n_bottom; i++)
        in[i] = caffe_in(c, layer, i);
    return graph_add(c->graph, op, layer->name, layer->loc, layer->n_bottom,
                     in);
}

bool caffe_finish(Caffe *c, CaffeLayer *layer, NodeId node, uint32_t top) {
    TensorId out =
        graph_add_output(c->graph, node, caffe_tensor_name(c, layer, top));
    if (!graph_infer(c->graph, node, c->diag))
        return false;
    layer->top[top].tensor = out;
    return true;
}

NodeId caffe_part(Caffe *c, const CaffeLayer *layer, OpKind op,
                  const char *part, uint32_t n_in, const TensorId *in) {
    const char *name = arena_printf(c->arena, "%s/%s", layer->name, part);
    return graph_add(c->graph, op, name, layer->loc, n_in, in);
}

TensorId caffe_inner(Caffe *c, NodeId node) {
    const char *name = graph_node(c->graph, node)->name;
    TensorId out = graph_add_output(c->graph, node, name);
    return graph_infer(c->graph, node, c->diag) ? out : NO_TENSOR;
}

bool caffe_axis(Caffe *c, const CaffeLayer *layer, const ProtoMessage *param,
                const char *name, uint32_t rank, uint32_t *axis) {
    const ProtoField *field = proto_last(param, name);
    int64_t value = *axis;
    if (field && !proto_get_i64(c->diag, field, &value))
        return false;
    if (value >= -(int64_t)rank && value < (int64_t)rank) {
        *axis = (uint32_t)(value < 0 ? value + rank : value);
        return true;
    }
    return caffe_error_at(c, layer, field ? field->at : layer->loc,
                          "axis %lld is outside a shape of %u dimensions",
                          (long long)value, rank);
}

bool caffe_pair(Caffe *c, const CaffeLayer *layer, const ProtoMessage *param,
                const char *both, const char *h, const char *w,
                uint32_t out[2]) {
    const ProtoField *f = NULL;
    uint32_t n = 0;
    while ((f = proto_next(param, both, f))) {
        if (n == 2)
            return caffe_error_at(c, layer, f->loc,
                                  "more than two values of %s", both);
        if (!proto_get_u32(c->diag, f, &out[n++]))
            return false;
    }
    if (n == 1)
        out[1] = out[0];
    bool one = proto_u32(c->diag, param, h, &out[0]);
    bool other = proto_u32(c->diag, param, w, &out[1]);
    if (n && (one || other))
        return caffe_error(c, layer, "has both %s and %s or %s", both, h, w);
    return true;
}

ConstId caffe_fill(Caffe *c, NodeId node, ConstRole role, double value) {
    Const fill = {.kind = CONST_SEEDED, .mean = value};
    if (!graph_const_shape(c->graph, node, role, &fill.shape))
        bug("a constant that its operator does not have");
    return graph_node(c->graph, node)->constant[role] =
               graph_add_const(c->graph, fill);
}

bool caffe_nothing(Caffe *c, CaffeLayer *layer) {
    (void)c;
    (void)layer;
    return true;
}

/* The error was reported when the layer's type was read. */
bool caffe_refuse(Caffe *c, CaffeLayer *layer) {
    (void)c;
    (void)layer;
    return false;
}
