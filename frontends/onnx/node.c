/* node.c - inputs, outputs and attributes of ONNX nodes; see onnx.h. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

/* Elements that are read whole to be computed with, of one constant and of all
 * of a file; weights are not. The second bounds time and memory of a small
 * file whose constants are computed from each other; lists of a few are read
 * always. */
enum { NUMBERS_MOST = 1 << 24, NUMBERS_OF_ALL = 1 << 26, NUMBERS_FEW = 64 };

bool onnx_error(Onnx *x, const OnnxNode *n, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *what = arena_vprintf(x->arena, format, args);
    va_end(args);
    diag_error(x->diag, n->loc, "layer \"%s\" (%s): %s", n->name, n->type,
               what);
    return false;
}

/* ---- inputs ---- */

OnnxValue *onnx_in(const Onnx *x, const OnnxNode *n, uint32_t i) {
    return i < n->n_in && n->in[i] != NONE ? &x->value.at[n->in[i]] : NULL;
}

OnnxValue *onnx_out(const Onnx *x, const OnnxNode *n, uint32_t i) {
    return onnx_wants(n, i) ? &x->value.at[n->out[i]] : NULL;
}

bool onnx_wants(const OnnxNode *n, uint32_t i) {
    return i < n->n_out && n->out[i] != NONE;
}

TensorId onnx_tensor(Onnx *x, OnnxValue *value) {
    if (value->state == ONNX_CONST && value->tensor.i == NONE) {
        Const constant = value->constant;
        if (!constant.shape.rank)
            constant.shape = (Shape){1, {1}};
        NodeId id = graph_add(x->graph, OP_CONSTANT, value->name,
                              (Loc){x->path, 0, 0}, 0, NULL);
        graph_node(x->graph, id)->attr.reshape = constant.shape;
        onnx_give(x, id, CONST_VALUE, constant);
        value->tensor = onnx_end(x, id);
        if (value->tensor.i != NONE)
            graph_tensor(x->graph, value->tensor)->quant = value->quant;
    }
    return value->codes && !x->on_codes ? onnx_plain(x, value) : value->tensor;
}

TensorId onnx_tensor_in(Onnx *x, const OnnxNode *n, uint32_t i) {
    return onnx_tensor(x, onnx_in(x, n, i));
}

const OnnxValue *onnx_const_in(Onnx *x, const OnnxNode *n, uint32_t i) {
    const OnnxValue *value = onnx_in(x, n, i);
    if (!value)
        onnx_error(x, n, "input %u is left out", i);
    else if (value->state != ONNX_CONST)
        onnx_error(x, n,
                   "input %u, \"%s\", must be a constant: --fix %s=FILE.npy "
                   "makes it one",
                   i, value->name, value->name);
    return value && value->state == ONNX_CONST ? value : NULL;
}

double *onnx_numbers(Onnx *x, const OnnxValue *value) {
    uint64_t count = shape_count(&value->shape);
    if (count > NUMBERS_MOST ||
        (count > NUMBERS_FEW && x->numbers > NUMBERS_OF_ALL))
        return NULL;
    x->numbers += count;
    double *out = ARENA_ARRAY(x->arena, double, count + 1);
    const_read_f64(&value->constant, out);
    return out;
}

static int64_t whole(double value) {
    return value >= 9.2e18    ? INT64_MAX
           : value <= -9.2e18 ? INT64_MIN
                              : (int64_t)value;
}

bool onnx_list_in(Onnx *x, const OnnxNode *n, uint32_t i, uint32_t *n_out,
                  int64_t **out) {
    *n_out = 0;
    if (!onnx_in(x, n, i))
        return true;
    const OnnxValue *value = onnx_const_in(x, n, i);
    if (!value)
        return false;
    const double *number = onnx_numbers(x, value);
    if (!number)
        return onnx_error(x, n, "input %u: too many constants to read", i);
    *n_out = (uint32_t)shape_count(&value->shape);
    *out = ARENA_ARRAY(x->arena, int64_t, *n_out);
    for (uint32_t k = 0; k < *n_out; k++)
        (*out)[k] = whole(number[k]);
    return true;
}

bool onnx_list(Onnx *x, const OnnxNode *n, uint32_t i, const char *name,
               uint32_t *n_out, int64_t **out) {
    if (onnx_in(x, n, i))
        return onnx_list_in(x, n, i, n_out, out);
    *n_out = onnx_ints(x, n, name, out);
    return true;
}

/* ---- outputs ---- */

bool onnx_set(Onnx *x, const OnnxNode *n, uint32_t i, TensorId tensor,
              const Shape *shape) {
    OnnxValue *value = onnx_out(x, n, i);
    if (tensor.i == NONE || !value || value->fixed)
        return tensor.i != NONE;
    const char *name = n->name;
    if (n->n_out > 1)
        name = arena_printf(x->arena, "%s/%u", n->name, i);
    if (tensor.i <
        x->first_new) { /* its own input: it needs a name of its own */
        tensor = onnx_end(x, onnx_add(x, n, OP_IDENTITY, "same", 1, &tensor));
        if (tensor.i == NONE)
            return false;
    }
    graph_rename(x->graph, tensor, name, value->name);
    value->state = ONNX_TENSOR;
    value->tensor = tensor;
    value->shape = shape ? *shape : *onnx_shape(x, tensor);
    if (!value->type && onnx_in(x, n, 0))
        value->type = onnx_in(x, n, 0)->type;
    return true;
}

bool onnx_set_const(Onnx *x, const OnnxNode *n, uint32_t i, OnnxType type,
                    Const constant) {
    OnnxValue *value = onnx_out(x, n, i);
    if (value && !value->fixed) {
        value->state = ONNX_CONST;
        value->type = type;
        value->constant = constant;
        value->shape = constant.shape;
    }
    return true;
}

bool onnx_set_numbers(Onnx *x, const OnnxNode *n, uint32_t i, OnnxType type,
                      Shape shape, const double *value) {
    x->numbers += shape_count(&shape);
    return onnx_set_const(x, n, i, type, onnx_values(shape, value));
}

/* ---- attributes ---- */

/* An attribute of the call, or what the function says it is else. */
static const ProtoMessage *attr_of_call(const OnnxScope *scope,
                                        const char *name) {
    const ProtoMessage *given = onnx_attr(scope->call, name);
    const ProtoField *f = NULL;
    while (!given && (f = proto_next(scope->function, "attribute_proto", f))) {
        const ProtoField *is =
            f->message ? proto_last(f->message, "name") : NULL;
        if (is && is->kind == PROTO_STRING && !strcmp(is->text, name))
            given = f->message;
    }
    return given;
}

const ProtoMessage *onnx_attr(const OnnxNode *n, const char *name) {
    const ProtoField *f = NULL;
    while ((f = proto_next(n->message, "attribute", f))) {
        const ProtoField *is =
            f->message ? proto_last(f->message, "name") : NULL;
        if (!is || is->kind != PROTO_STRING || strcmp(is->text, name))
            continue;
        const ProtoField *ref = proto_last(f->message, "ref_attr_name");
        const OnnxScope *scope = n->scope;
        while (scope && scope->sees_around)
            scope = scope->up;
        if (ref && ref->kind == PROTO_STRING && *ref->text && scope)
            return attr_of_call(scope, ref->text);
        return f->message;
    }
    return NULL;
}

int64_t onnx_int(Onnx *x, const OnnxNode *n, const char *name, int64_t absent) {
    proto_i64(x->diag, onnx_attr(n, name), "i", &absent);
    return absent;
}

double onnx_float(Onnx *x, const OnnxNode *n, const char *name, double absent) {
    proto_f64(x->diag, onnx_attr(n, name), "f", &absent);
    return absent;
}

const char *onnx_word(Onnx *x, const OnnxNode *n, const char *name,
                      const char *absent) {
    proto_str(x->diag, onnx_attr(n, name), "s", &absent);
    return absent;
}

uint32_t onnx_ints(Onnx *x, const OnnxNode *n, const char *name,
                   int64_t **out) {
    const ProtoMessage *attr = onnx_attr(n, name);
    uint32_t count = proto_count(attr, "ints"), i = 0;
    *out = ARENA_ARRAY(x->arena, int64_t, count);
    for (const ProtoField *f = NULL; (f = proto_next(attr, "ints", f));)
        proto_get_i64(x->diag, f, &(*out)[i++]);
    return count;
}

bool onnx_axis(Onnx *x, const OnnxNode *n, int64_t axis, uint32_t rank,
               uint32_t *out) {
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return onnx_error(x, n, "axis %lld is outside a shape of %u dimensions",
                          (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

bool onnx_axes(Onnx *x, const OnnxNode *n, uint32_t count, const int64_t *axes,
               uint32_t rank, uint32_t all, uint32_t *out) {
    *out = count ? 0 : all;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = 0;
        if (!onnx_axis(x, n, axes[i], rank, &axis))
            return false;
        *out |= 1u << axis;
    }
    return true;
}
