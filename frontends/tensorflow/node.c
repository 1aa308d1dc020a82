/* node.c - a node of the file; attributes and inputs of the one that is being
 * built; see tf.h. */
#include "frontends/tensorflow/tf.h"

#include <string.h>

bool tf_read_node(const Tf *tf, TfNode *node, const ProtoField *field) {
    Diag *diag = tf->net.diag;
    *node = (TfNode){.name = "",
                     .op = "",
                     .message = field->message,
                     .loc = field->loc,
                     .live = NONE};
    if (field->kind != PROTO_MESSAGE ||
        !proto_str(diag, node->message, "name", &node->name) ||
        !proto_str(diag, node->message, "op", &node->op)) {
        diag_error(diag, field->loc, "a node has no name, or no op");
        return false;
    }
    return true;
}

/* ---- attributes ---- */

const ProtoMessage *tf_attr(const Tf *tf, const char *key) {
    const ProtoField *f = NULL;
    while ((f = proto_next(tf->at->message, "attr", f))) {
        const char *is = "";
        if (f->kind == PROTO_MESSAGE &&
            proto_str(tf->net.diag, f->message, "key", &is) && !strcmp(is, key))
            return proto_message(tf->net.arena, tf->net.diag, f->message,
                                 "value");
    }
    return NULL;
}

const char *tf_str(const Tf *tf, const char *key, const char *fallback) {
    proto_str(tf->net.diag, tf_attr(tf, key), "s", &fallback);
    return fallback;
}

double tf_num(const Tf *tf, const char *key, double fallback) {
    const ProtoMessage *value = tf_attr(tf, key);
    if (!proto_f64(tf->net.diag, value, "f", &fallback))
        proto_f64(tf->net.diag, value, "i", &fallback);
    return fallback;
}

bool tf_bool(const Tf *tf, const char *key, bool fallback) {
    proto_bool(tf->net.diag, tf_attr(tf, key), "b", &fallback);
    return fallback;
}

int tf_list(const Tf *tf, const char *key, uint32_t max, int64_t *out) {
    const ProtoMessage *list =
        proto_message(tf->net.arena, tf->net.diag, tf_attr(tf, key), "list");
    const ProtoField *f = NULL;
    uint32_t n = 0;
    while ((f = proto_next(list, "i", f))) {
        if (n == max) {
            net_fail(&tf->net, "%s has more than %u numbers", key, max);
            return -1;
        }
        if (!proto_get_i64(tf->net.diag, f, &out[n++]))
            return -1;
    }
    return (int)n;
}

Shape tf_shape(const Tf *tf, const ProtoMessage *message) {
    const ProtoField *f = NULL;
    Shape shape = {0};
    while ((f = proto_next(message, "dim", f)) && shape.rank < SHAPE_MAX_RANK) {
        int64_t size = 0;
        proto_i64(tf->net.diag, f->message, "size", &size);
        shape.dim[shape.rank++] =
            size > 0 && size <= INT32_MAX ? (uint32_t)size : 0;
    }
    return shape;
}

/* ---- inputs ---- */

static TfNode *input(Tf *tf, uint32_t i) {
    if (i < tf->at->n_in)
        return &tf->node[tf->at->in[i].node];
    net_fail(&tf->net, "its input %u is missing", i);
    return NULL;
}

TensorId tf_in(Tf *tf, uint32_t i) {
    TfNode *from = input(tf, i);
    if (!from)
        return NO_TENSOR;
    if (from->state == TF_CONST)
        return net_constant(&tf->net, "constant", &from->value);
    uint32_t output = from->live == NONE ? tf->at->in[i].output : 0;
    if (output < from->n_out)
        return from->out[output];
    return from->n_out ? net_none(&tf->net, "output %u of \"%s\" is not kept",
                                  output, from->name)
                       : NO_TENSOR;
}

const Const *tf_maybe(Tf *tf, uint32_t i) {
    if (i >= tf->at->n_in)
        return NULL;
    TfNode *from = input(tf, i);
    return from->state == TF_CONST ? &from->value : NULL;
}

const Const *tf_const(Tf *tf, uint32_t i) {
    const Const *value = tf_maybe(tf, i);
    if (!value)
        net_fail(&tf->net, "its input %u must be a constant", i);
    return value;
}

int tf_ints(Tf *tf, uint32_t i, uint32_t max, int64_t *out) {
    const Const *c = tf_const(tf, i);
    if (!c)
        return -1;
    uint64_t n = shape_count(&c->shape);
    if (!input(tf, i)->known || n > max || n > SHAPE_MAX_RANK * 2) {
        net_fail(&tf->net, "its input %u must be at most %u known numbers", i,
                 max);
        return -1;
    }
    return net_whole_numbers(c, out);
}

bool tf_shape_in(Tf *tf, uint32_t i, Shape *out) {
    int64_t dim[SHAPE_MAX_RANK];
    int n = tf_ints(tf, i, SHAPE_MAX_RANK, dim);
    return net_shape_of(&tf->net, n, dim, out);
}

bool tf_number_in(Tf *tf, uint32_t i, double *out) {
    const Const *c = tf_const(tf, i);
    if (!c)
        return false;
    if (shape_count(&c->shape) != 1 || !input(tf, i)->known)
        return net_fail(&tf->net, "its input %u must be one known number", i);
    const_read_f64(c, out);
    return true;
}

TensorId tf_be_const(Tf *tf, Const value, bool known) {
    tf->at->state = TF_CONST;
    tf->at->value = value;
    tf->at->known = known;
    return NO_TENSOR;
}
