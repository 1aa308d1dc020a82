/* given.c - values by their names, and what is said of them: initializers,
 * value_info, --shape, --fix; see onnx.h.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* ---- values ---- */

/* The value called `name`, new where there is none. */
static uint32_t index_of(Onnx *x, const char *name) {
    uint32_t i = map_get(x->values, name, NONE);
    if (i != NONE)
        return i;
    OnnxValue value = {.name = name, .tensor = NO_TENSOR, .plain = NO_TENSOR};
    vec_push(x->arena, &x->value, value);
    map_put(x->values, name, x->value.n - 1);
    return x->value.n - 1;
}

uint32_t onnx_index(Onnx *x, const char *name) {
    const OnnxScope *scope = x->scope;
    uint32_t i = NONE;
    while (scope && (i = map_get(scope->names, name, NONE)) == NONE &&
           scope->sees_around)
        scope = scope->up;
    if (i == NONE && scope)
        name = arena_printf(x->arena, "%s/%s", scope->prefix, name);
    if (i == NONE)
        i = index_of(x, name);
    return i == ONNX_LEFT_OUT ? NONE : i;
}

OnnxValue *onnx_value(Onnx *x, const char *name) {
    uint32_t i = index_of(x, name);
    return &x->value.at[i];
}

bool onnx_read_initializers(Onnx *x, const ProtoMessage *graph) {
    const char *dir = file_dir(x->arena, x->path);
    bool good = true;
    for (const ProtoField *f = NULL;
         (f = proto_next(graph, "initializer", f));) {
        OnnxTensor tensor;
        if (!onnx_tensor_read(x->arena, x->diag, f, dir, &tensor)) {
            good = false;
            continue;
        }
        uint32_t at = onnx_index(x, tensor.name);
        OnnxValue *value = &x->value.at[at];
        value->state = ONNX_CONST;
        value->type = tensor.type;
        value->shape = tensor.value.shape;
        value->constant = tensor.value;
    }
    return good;
}

const ShapeSetting *onnx_setting(const Onnx *x, const char *name) {
    const ShapeSetting *any = NULL;
    for (uint32_t i = 0; i < x->options->n_shapes; i++) {
        const ShapeSetting *setting = &x->options->shapes[i];
        if (!strcmp(setting->name, name))
            return setting;
        if (!*setting->name)
            any = setting;
    }
    return any;
}

bool onnx_read_fixed(Onnx *x, const char *file, Const *out) {
    Npy npy;
    if (!tensor_file_read(x->arena, x->diag, file, &npy))
        return false;
    *out = (Const){.shape.rank = npy.rank, .kind = CONST_F32, .data = npy.data};
    for (uint32_t i = 0; i < npy.rank; i++)
        out->shape.dim[i] = (uint32_t)npy.dim[i];
    return true;
}

const char *onnx_fixed_file(const Onnx *x, const char *name) {
    for (uint32_t i = 0; i < x->options->n_fixed; i++)
        if (!strcmp(x->options->fixed[i].name, name))
            return x->options->fixed[i].file;
    return NULL;
}

/* ---- what the file says of other values ---- */

static void read_info(Onnx *x, const char *list) {
    for (const ProtoField *f = NULL; (f = proto_next(x->net, list, f));) {
        const char *name = "";
        proto_str(x->diag, f->message, "name", &name);
        const ProtoMessage *type =
            proto_message(x->arena, x->diag,
                          proto_message(x->arena, x->diag, f->message, "type"),
                          "tensor_type");
        if (!type || !*name)
            continue;
        map_put(x->told, name, x->info.n);
        vec_push(x->arena, &x->info, type);
    }
}

void onnx_read_infos(Onnx *x) {
    read_info(x, "value_info");
    read_info(x, "output");
}

const ProtoMessage *onnx_info(const Onnx *x, const char *name) {
    uint32_t i = map_get(x->told, name, NONE);
    return i == NONE ? NULL : x->info.at[i];
}

/* A shape of which the file says every size; an open first one is the batch. */
static bool known_shape(Onnx *x, const ProtoMessage *type, Shape *out) {
    const ProtoMessage *shape = proto_message(x->arena, x->diag, type, "shape");
    *out = (Shape){0};
    for (const ProtoField *f = NULL; (f = proto_next(shape, "dim", f));) {
        int64_t size = 0;
        proto_i64(x->diag, f->message, "dim_value", &size);
        if (!out->rank && size <= 0)
            size = x->options->batch ? x->options->batch : 1;
        if (size <= 0 || size > INT32_MAX || out->rank == SHAPE_MAX_RANK)
            return false;
        out->dim[out->rank++] = (uint32_t)size;
    }
    return out->rank > 0;
}

bool onnx_told_shape(Onnx *x, const char *name, Shape *out) {
    const ShapeSetting *setting = onnx_setting(x, name);
    if (setting && *setting->name) {
        *out = setting->shape;
        return true;
    }
    const ProtoMessage *type = onnx_info(x, name);
    return type && known_shape(x, type, out);
}
