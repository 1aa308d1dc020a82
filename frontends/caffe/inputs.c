/* inputs.c - the network's inputs: Input layers, `input:` fields, and
 * the layers that fetch data for training.
 *
 * In: a layer without bottoms. Out: an OP_INPUT for each of its tops that is
 * read; what only losses read (labels) is left out. The shape is the user's,
 * else the file's. The batch in the file is the author's habit, not a property
 * of the network: it becomes ImportOptions.batch, or 1.
 * What a data layer does to images (scale, mean) is left to whoever feeds the
 * network.
 */
#include "frontends/caffe/caffe.h"

#include <string.h>

bool caffe_shape(Caffe *c, const CaffeLayer *layer, const ProtoMessage *message,
                 Shape *out) {
    const ProtoField *f = NULL;
    *out = (Shape){0};
    while ((f = proto_next(message, "dim", f))) {
        if (out->rank == SHAPE_MAX_RANK)
            return caffe_error_at(c, layer, f->loc, "more than %d dimensions",
                                  SHAPE_MAX_RANK);
        if (!proto_get_u32(c->diag, f, &out->dim[out->rank++]))
            return false;
    }
    return out->rank > 0;
}

/* The i-th of the messages called `name`, or the only one. */
static const ProtoMessage *nth_message(const ProtoMessage *from,
                                       const char *name, uint32_t i) {
    bool only = proto_count(from, name) == 1;
    const ProtoField *f = NULL;
    while ((f = proto_next(from, name, f)))
        if (only || i-- == 0)
            return f->message;
    return NULL;
}

/* The i-th of the numbers called `name`, or the only one. */
static bool nth_number(Caffe *c, const ProtoMessage *from, const char *name,
                       uint32_t i, uint32_t *out) {
    bool only = proto_count(from, name) == 1;
    const ProtoField *f = NULL;
    while ((f = proto_next(from, name, f)))
        if (only || i-- == 0)
            return proto_get_u32(c->diag, f, out);
    return false;
}

/* ---- shapes in the file, by the kind of layer ---- */

/* `input_dim`, four for each input, or `input_shape`. */
static bool net_shape(Caffe *c, const CaffeLayer *layer, Shape *out) {
    const NetInputs *net = &c->inputs;
    uint32_t i = layer->input;
    if (net->n_shapes == 1 || i < net->n_shapes)
        return caffe_shape(
            c, layer, net->shape[net->n_shapes == 1 ? 0 : i]->message, out);
    if (!net->n_dims)
        return false;
    if (net->n_dims != 4 * net->n)
        return caffe_error(c, layer, "%u inputs need %u input_dim, not %u",
                           net->n, 4 * net->n, net->n_dims);
    out->rank = 4;
    for (uint32_t k = 0; k < 4; k++)
        if (!proto_get_u32(c->diag, net->dim[4 * i + k], &out->dim[k]))
            return false;
    return true;
}

static bool dummy_shape(Caffe *c, const CaffeLayer *layer, uint32_t top,
                        Shape *out) {
    static const char *const names[] = {"num", "channels", "height", "width"};
    const ProtoMessage *param = caffe_param(c, layer, "dummy_data_param");
    const ProtoMessage *shape = nth_message(param, "shape", top);
    const ProtoField *f = NULL;
    while ((f = proto_next(param, "data_filler", f)))
        if (f->message)
            proto_use_all(f->message);
    if (shape)
        return caffe_shape(c, layer, shape, out);
    out->rank = 4;
    for (uint32_t i = 0; i < 4; i++)
        if (!nth_number(c, param, names[i], top, &out->dim[i]))
            return false;
    return true;
}

static bool memory_shape(Caffe *c, const CaffeLayer *layer, Shape *out) {
    const ProtoMessage *param = caffe_param(c, layer, "memory_data_param");
    uint32_t n = 1;
    out->rank = 4;
    proto_u32(c->diag, param, "batch_size", &n);
    out->dim[0] = n;
    return proto_u32(c->diag, param, "channels", &out->dim[1]) &&
           proto_u32(c->diag, param, "height", &out->dim[2]) &&
           proto_u32(c->diag, param, "width", &out->dim[3]);
}

static uint32_t image_channels(Caffe *c, const ProtoMessage *transform,
                               const ProtoMessage *image) {
    bool gray = false, color = true;
    proto_bool(c->diag, transform, "force_gray", &gray);
    proto_bool(c->diag, image, "is_color", &color);
    return gray || !color ? 1 : 3;
}

/* Images of a data base, where something cuts or scales them to a size. */
static bool image_shape(Caffe *c, const CaffeLayer *layer, Shape *out) {
    static const char *const params[] = {"data_param", "image_data_param",
                                         "window_data_param"};
    const ProtoMessage *transform = caffe_param(c, layer, "transform_param");
    uint32_t crop = 0, h = 0, w = 0,
             channels = image_channels(c, transform, NULL);
    proto_u32(c->diag, transform, "crop_size", &crop);
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        const ProtoMessage *param = caffe_param(c, layer, params[i]);
        if (!param)
            continue;
        channels = image_channels(c, transform, param);
        proto_u32(c->diag, param, "new_height", &h);
        proto_u32(c->diag, param, "new_width", &w);
        proto_u32(c->diag, param, "crop_size", &crop);
    }
    if (crop)
        h = w = crop;
    *out = shape_nchw(1, channels, h, w);
    return h && w;
}

static bool file_shape(Caffe *c, const CaffeLayer *layer, uint32_t top,
                       Shape *out) {
    const char *type = layer->type->name;
    if (!layer->message)
        return net_shape(c, layer, out);
    if (!strcmp(type, "Input"))
        return caffe_shape(
            c, layer,
            nth_message(caffe_param(c, layer, "input_param"), "shape", top),
            out);
    if (!strcmp(type, "DummyData"))
        return dummy_shape(c, layer, top, out);
    /* Behind the first top of the others come labels, whose shape no field
     * tells. */
    if (top > 0)
        return false;
    return !strcmp(type, "MemoryData") ? memory_shape(c, layer, out)
                                       : image_shape(c, layer, out);
}

/* ---- the user's shapes ---- */

static bool user_shape(const Caffe *c, const CaffeLayer *layer,
                       const char *blob, Shape *out) {
    for (uint32_t i = 0; i < c->options->n_shapes; i++) {
        const ShapeSetting *setting = &c->options->shapes[i];
        if (!*setting->name || !strcmp(setting->name, blob) ||
            !strcmp(setting->name, layer->name)) {
            *out = setting->shape;
            return true;
        }
    }
    return false;
}

static bool input_shape(Caffe *c, const CaffeLayer *layer, uint32_t top,
                        Shape *out) {
    const char *blob = layer->top[top].blob;
    uint32_t errors = diag_errors(c->diag), batch = c->options->batch;
    if (user_shape(c, layer, blob, out)) {
        if (batch)
            out->dim[0] = batch;
        return true;
    }
    if (file_shape(c, layer, top, out)) {
        if (out->rank > 1)
            out->dim[0] = batch ? batch : 1;
        return true;
    }
    if (diag_errors(c->diag) > errors)
        return false;
    return caffe_error(c, layer,
                       "the file does not say the shape of input \"%s\"; give "
                       "it, for example --shape %s=1x1x28x28",
                       blob, blob);
}

/* The input node of one top. With several, the layer's name would not tell
 * them apart. */
static bool build_input(Caffe *c, CaffeLayer *layer, uint32_t top, bool only) {
    Shape shape;
    if (!input_shape(c, layer, top, &shape))
        return false;
    NodeId node =
        graph_add(c->graph, OP_INPUT, only ? layer->name : layer->top[top].blob,
                  layer->loc, 0, NULL);
    TensorId tensor =
        graph_add_output(c->graph, node, caffe_tensor_name(c, layer, top));
    graph_tensor(c->graph, tensor)->shape = shape;
    if (!graph_infer(c->graph, node, c->diag))
        return false;
    layer->top[top].tensor = tensor;
    return true;
}

bool caffe_inputs(Caffe *c, CaffeLayer *layer) {
    uint32_t n = 0;
    bool ok = true;
    for (uint32_t t = 0; t < layer->n_top; t++)
        n += layer->top[t].readers > 0;
    for (uint32_t t = 0; t < layer->n_top; t++)
        if (layer->top[t].readers)
            ok &= build_input(c, layer, t, n == 1);
    return ok;
}
