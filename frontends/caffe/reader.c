/* reader.c - Caffe networks: reading the file, and its layers of one phase.
 *
 * In: a NetParameter as text or binary, in the dialects since 2014 (`layers`
 * with types in capitals, `input:` fields), perhaps a file of weights. Out: a
 * Graph; see caffe.h for the names in it. Layers that serve training alone
 * go; losses become what they compute of their input in the field.
 * Outputs of the network are the blobs that nobody reads, in file order.
 */
#include "frontends/caffe/caffe.h"

#include "frontends/formats.h"
#include "frontends/proto/textformat.h"
#include "frontends/proto/wire.h"

#include <string.h>

/* Fields that do not change what the network computes in the field. */
static const char *const ignored_fields[] = {
    "accuracy_param",
    "bias_filler",
    "blob_share_mode",
    "blobs",
    "blobs_lr",
    "data_param",
    "debug_info",
    "dropout_param",
    "engine",
    "exclude",
    "filler",
    "force_backward",
    "force_nd_im2col",
    "hdf5_data_param",
    "image_data_param",
    "include",
    "loss_param",
    "loss_weight",
    "moving_average_fraction",
    "param",
    "phase",
    "propagate_down",
    "scale_filler",
    "stable_prod_grad",
    "state",
    "transform_param",
    "weight_decay",
    "weight_filler",
    "window_data_param",
    NULL,
};

/* ---- layers ---- */

static void read_type(Caffe *c, CaffeLayer *layer) {
    const ProtoField *field = proto_last(layer->message, "type");
    const char *top = "";
    layer->type = field ? caffe_find_type(field) : NULL;
    bool unknown = !layer->type || layer->type->build == caffe_refuse;
    proto_str(c->diag, layer->message, "top", &top);
    if (field && unknown && field->text && caffe_told_shape(c, top, NULL)) {
        CaffeType *called = ARENA_NEW(c->arena, CaffeType);
        *called = (CaffeType){field->text, NULL, 0, CAFFE_BUILD,
                              1,           99,   1, caffe_call};
        layer->type = called;
    }
    if (!field)
        caffe_error(c, layer, "has no type");
    else if (!layer->type || layer->type->build == caffe_refuse)
        caffe_error_at(c, layer, field->at, "type \"%.80s\" is not supported",
                       layer->type ? layer->type->name : field->text);
    if (!layer->type || layer->type->build == caffe_refuse) {
        layer->type = &caffe_unsupported;
        proto_use_all(layer->message);
    }
}

static bool read_bottoms(Caffe *c, CaffeLayer *layer) {
    uint32_t n = proto_count(layer->message, "bottom");
    layer->bottom = ARENA_ARRAY(c->arena, CaffeBottom, n);
    const ProtoField *f = NULL;
    while ((f = proto_next(layer->message, "bottom", f))) {
        CaffeBottom *bottom = &layer->bottom[layer->n_bottom++];
        *bottom = (CaffeBottom){.loc = f->loc, .layer = NONE};
        if (!proto_get_str(c->diag, f, &bottom->blob))
            return false;
    }
    return true;
}

static bool read_tops(Caffe *c, CaffeLayer *layer) {
    uint32_t n = proto_count(layer->message, "top");
    layer->top = ARENA_ARRAY(c->arena, CaffeTop, n + 1);
    const ProtoField *f = NULL;
    while ((f = proto_next(layer->message, "top", f))) {
        CaffeTop *top = &layer->top[layer->n_top++];
        *top = (CaffeTop){.loc = f->loc, .tensor = NO_TENSOR};
        if (!proto_get_str(c->diag, f, &top->blob))
            return false;
    }
    return true;
}

/* "1 bottom", "2 to 16 bottoms". */
static const char *count_text(Caffe *c, uint32_t min, uint32_t max,
                              const char *what) {
    if (min == max)
        return arena_printf(c->arena, "%u %s%s", max, what, &"s"[max == 1]);
    return arena_printf(c->arena, "%u to %u %ss", min, max, what);
}

static bool check_counts(Caffe *c, CaffeLayer *layer) {
    const CaffeType *type = layer->type;
    uint32_t min_top = type->max_top > 0;
    if (type->role == CAFFE_LOSS && layer->n_bottom > type->max_bottom)
        layer->n_bottom = type->max_bottom;
    /* Caffe makes up a top for a loss that names none. */
    if (type->role == CAFFE_LOSS && !layer->n_top)
        layer->top[layer->n_top++] =
            (CaffeTop){layer->name, layer->loc, 0, false, 0, NO_TENSOR};
    if (layer->n_bottom < type->min_bottom ||
        layer->n_bottom > type->max_bottom)
        return caffe_error(
            c, layer, "a %s has %s, not %u", type->name,
            count_text(c, type->min_bottom, type->max_bottom, "bottom"),
            layer->n_bottom);
    if (layer->n_top < min_top || layer->n_top > type->max_top)
        return caffe_error(c, layer, "a %s has %s, not %u", type->name,
                           count_text(c, min_top, type->max_top, "top"),
                           layer->n_top);
    return true;
}

/* One `layer` or `layers` of the file. */
static void read_layer(Caffe *c, const CaffeState *state,
                       const ProtoField *field) {
    CaffeLayer layer = {
        .loc = field->loc, .name = "", .message = field->message};
    if (!layer.message) {
        diag_error(c->diag, field->at, "'%s' must be a message", field->name);
        return;
    }
    if (!caffe_is_included(c, state, layer.message)) {
        proto_use_all(layer.message);
        return;
    }
    proto_str(c->diag, layer.message, "name", &layer.name);
    if (layer.loc.line && proto_next(layer.message, "blobs", NULL))
        caffe_error(c, &layer,
                    "weights in a text file are not read: give a "
                    ".caffemodel with --weights");
    read_type(c, &layer);
    if (layer.type->role == CAFFE_DROP)
        proto_use_all(layer.message);
    else if (read_bottoms(c, &layer) && read_tops(c, &layer) &&
             check_counts(c, &layer))
        vec_push(c->arena, &c->layer, layer);
}

/* All fields of the network called `name`. */
static const ProtoField **net_fields(Caffe *c, const char *name, uint32_t *n) {
    const ProtoField **all =
        ARENA_ARRAY(c->arena, const ProtoField *, proto_count(c->net, name));
    *n = 0;
    for (const ProtoField *f = NULL; (f = proto_next(c->net, name, f));)
        all[(*n)++] = f;
    return all;
}

/* Each `input:` is a layer ahead of the others. */
static void read_inputs(Caffe *c) {
    const ProtoField *f = NULL;
    const ProtoField input = {.kind = PROTO_STRING, .text = "Input"};
    c->inputs.dim = net_fields(c, "input_dim", &c->inputs.n_dims);
    c->inputs.shape = net_fields(c, "input_shape", &c->inputs.n_shapes);
    while ((f = proto_next(c->net, "input", f))) {
        CaffeLayer layer = {.loc = f->loc,
                            .type = caffe_find_type(&input),
                            .input = c->inputs.n++,
                            .n_top = 1};
        if (!proto_get_str(c->diag, f, &layer.name))
            continue;
        layer.top = ARENA_NEW(c->arena, CaffeTop);
        *layer.top = (CaffeTop){layer.name, f->loc, 0, false, 0, NO_TENSOR};
        vec_push(c->arena, &c->layer, layer);
    }
}

static void read_layers(Caffe *c) {
    CaffeState state = caffe_state(c);
    read_inputs(c);
    for (uint32_t i = 0; i < c->net->n; i++) {
        ProtoField *field = &c->net->field[i];
        if (strcmp(field->name, "layer") && strcmp(field->name, "layers"))
            continue;
        field->used = true;
        if (field->message && proto_next(field->message, "layer", NULL)) {
            diag_error(c->diag, field->loc,
                       "layers in the form of 2013 (`layers { layer {`) are "
                       "not read: upgrade the file with Caffe's "
                       "upgrade_net_proto_text");
            return;
        }
        read_layer(c, &state, field);
    }
}

/* ---- nodes ---- */

static bool has_inputs(const Caffe *c, const CaffeLayer *layer) {
    for (uint32_t i = 0; i < layer->n_bottom; i++)
        if (caffe_in(c, layer, i).i == NONE)
            return false;
    return true;
}

/* Layers behind one that failed are passed over: one mistake, one message. */
static void build(Caffe *c) {
    for (uint32_t i = 0; i < c->layer.n; i++) {
        CaffeLayer *layer = &c->layer.at[i];
        if (!has_inputs(c, layer) || !layer->type->build(c, layer))
            continue;
        if (layer->n_blobs > layer->used_blobs && layer->used_blobs)
            caffe_error(c, layer, "the weights hold %u blobs, not %u",
                        layer->n_blobs, layer->used_blobs);
    }
}

static void mark_outputs(Caffe *c) {
    for (uint32_t i = 0; i < c->layer.n; i++) {
        const CaffeLayer *layer = &c->layer.at[i];
        for (uint32_t t = 0; t < layer->n_top; t++)
            if (layer->type->role != CAFFE_SOURCE && !layer->top[t].readers &&
                layer->top[t].tensor.i != NONE)
                graph_mark_output(c->graph, layer->top[t].tensor);
    }
    if (!c->graph->output.n)
        diag_error(c->diag, (Loc){c->path, 0, 0},
                   "no layer of this phase makes an output");
}

/* ---- the file ---- */

static bool is_text(Bytes bytes) {
    size_t n = bytes.len < 4096 ? bytes.len : 4096;
    for (size_t i = 0; i < n; i++)
        if (bytes.at[i] < ' ' && !strchr("\t\n\v\f\r", bytes.at[i]))
            return false;
    return n == 0 || !memchr(bytes.at, 0, n);
}

/* Whether the binary's outermost fields are those of a NetParameter. Field 2
 * alone would do for a TensorFlow graph too, which has many fields 1. */
static bool looks_binary(Bytes bytes) {
    uint32_t names = 0, old = 0, layers = 0;
    WireReader reader = wire_open(bytes);
    for (WireField f; wire_next(&reader, &f);) {
        names += f.number == 1 && f.type == WIRE_BYTES;
        old += f.number == 2 && f.type == WIRE_BYTES;
        layers += f.number == 100 && f.type == WIRE_BYTES;
        if (f.number == 1 && f.type != WIRE_BYTES)
            return false;
    }
    return layers > 0 || (old > 0 && names <= 1);
}

/* Whether a field of a NetParameter's stands at the start of a line. */
static bool looks_text(Bytes bytes) {
    static const char *const fields[] = {"layer", "layers", "input",
                                         "input_dim", "input_shape"};
    const char *at = (const char *)bytes.at, *end = at + bytes.len;
    for (; at < end; at++) {
        while (at < end && strchr(" \t\r", *at) && *at)
            at++;
        const char *word = at;
        while (at < end && (*at == '_' || (*at >= 'a' && *at <= 'z')))
            at++;
        size_t len = (size_t)(at - word);
        while (at < end && *at == ' ')
            at++;
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            if (len == strlen(fields[i]) && !memcmp(word, fields[i], len) &&
                at < end && (*at == ':' || *at == '{'))
                return true;
        while (at < end && *at != '\n')
            at++;
    }
    return false;
}

bool caffe_looks(const char *path, Bytes bytes) {
    (void)path;
    if (!bytes.len)
        return false;
    return is_text(bytes) ? looks_text(bytes) : looks_binary(bytes);
}

static const char *net_name(Caffe *c) {
    const char *name = file_stem(c->arena, c->path);
    proto_str(c->diag, c->net, "name", &name);
    return name;
}

Graph *caffe_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                  const ImportOptions *options) {
    uint32_t errors = diag_errors(diag);
    Caffe c = {.arena = arena, .diag = diag, .path = path, .options = options};
    c.net = is_text(bytes)
                ? textformat_parse(arena, diag, path, bytes)
                : protobin_parse(arena, diag, path, bytes, &caffe_schema);
    if (!c.net)
        return NULL;
    c.graph = graph_new(arena, net_name(&c));
    read_layers(&c);
    if (caffe_link(&c) && caffe_find_weights(&c, bytes)) {
        build(&c);
        if (diag_errors(diag) == errors)
            mark_outputs(&c);
    }
    if (diag_errors(diag) > errors)
        return NULL;
    proto_warn_unused(arena, diag, c.net, ignored_fields);
    return c.graph;
}
