/* cut.c - a part of a model: --inputs and --outputs; see onnx.h.
 *
 * In: the model's nodes, and names of values where the part begins and ends.
 * Out: the names that the part needs.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

static bool is_cut(const ImportOptions *options, const char *name) {
    for (uint32_t i = 0; i < options->n_inputs; i++)
        if (!strcmp(options->inputs[i], name))
            return true;
    return false;
}

bool onnx_is_cut(const Onnx *x, const char *name) {
    return is_cut(x->options, name);
}

static void need(Onnx *x, const char *name) {
    if (*name)
        map_put(x->needed, name, 1);
}

static void need_field(Onnx *x, const ProtoMessage *message,
                       const char *field) {
    for (const ProtoField *f = NULL; (f = proto_next(message, field, f));) {
        const char *name = "";
        proto_get_str(x->diag, f, &name);
        need(x, name);
    }
}

static void need_outputs(Onnx *x) {
    const ImportOptions *o = x->options;
    for (uint32_t i = 0; i < o->n_outputs; i++)
        need(x, o->outputs[i]);
    for (const ProtoField *f = NULL;
         !o->n_outputs && (f = proto_next(x->net, "output", f));) {
        const char *name = "";
        proto_str(x->diag, f->message, "name", &name);
        need(x, name);
    }
}

bool onnx_makes_needed(const Onnx *x, const ProtoMessage *node) {
    if (!x->needed)
        return true;
    for (const ProtoField *f = NULL; (f = proto_next(node, "output", f));)
        if (f->kind == PROTO_STRING && map_get(x->needed, f->text, 0) &&
            !is_cut(x->options, f->text))
            return true;
    return false;
}

/* Branches read names around them, too. */
static void need_branch(Onnx *x, const ProtoMessage *node) {
    for (const ProtoField *f = NULL; (f = proto_next(node, "attribute", f));) {
        const ProtoMessage *body = onnx_branch(x, f->message);
        for (const ProtoField *inner = NULL;
             (inner = proto_next(body, "node", inner));)
            need_field(x, inner->message, "input");
    }
}

void onnx_find_needed(Onnx *x) {
    if (!x->options->n_inputs && !x->options->n_outputs)
        return;
    uint32_t n = proto_count(x->net, "node"), i = 0;
    const ProtoMessage **node = ARENA_ARRAY(x->arena, const ProtoMessage *, n);
    for (const ProtoField *f = NULL; (f = proto_next(x->net, "node", f));)
        node[i++] = f->message;
    x->needed = map_new(x->arena);
    need_outputs(x);
    while (i-- > 0)
        if (node[i] && onnx_makes_needed(x, node[i])) {
            need_field(x, node[i], "input");
            need_branch(x, node[i]);
        }
}

bool onnx_is_needed(const Onnx *x, const char *name) {
    return !x->needed || map_get(x->needed, name, 0);
}
