/* call.c - operators that are not known, as calls of functions of the user's;
 * see onnx.h.
 *
 * In: a node and the shapes of its results, which the file tells (value_info)
 * or --shape. Out: one CALL a result. Its values, for `verify` and `eval`, come
 * from --fix, or are seeded.
 */
#include "frontends/onnx/onnx.h"

#include <ctype.h>
#include <string.h>

/* "com.example.Foo", made of bytes that a word has in every text form. */
static const char *word_for(Onnx *x, const OnnxNode *n) {
    char *word = arena_printf(x->arena, "%s%s%.80s", n->domain,
                              *n->domain ? "." : "", n->type);
    for (char *c = word; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._", *c))
            *c = '_';
    return word;
}

static bool add_call(Onnx *x, OnnxNode *n, uint32_t i, uint32_t n_in,
                     const TensorId *in) {
    OnnxValue *value = onnx_out(x, n, i);
    Shape shape = {0};
    onnx_told_shape(x, value->name, &shape);
    NodeId id = onnx_add(x, n, OP_CALL, "call", n_in, in);
    if (id.i == NONE)
        return false;
    graph_node(x->graph, id)->attr.call.shape = shape;
    graph_node(x->graph, id)->attr.call.what = word_for(x, n);
    graph_node(x->graph, id)->attr.call.result = i;
    const char *file = onnx_fixed_file(x, value->name);
    if (file) {
        Const fixed;
        if (!onnx_read_fixed(x, file, &fixed))
            return false;
        if (!shape_equal(&fixed.shape, &shape))
            return onnx_error(x, n, "%s holds values of %s, not %s", file,
                              shape_text(x->arena, &fixed.shape),
                              shape_text(x->arena, &shape));
        onnx_give(x, id, CONST_VALUE, fixed);
    } else {
        diag_warning(x->diag, n->loc,
                     "layer \"%s\": operator %s is a call of a function of "
                     "yours; its values are made up: --fix %s=FILE.npy gives "
                     "them",
                     n->name, word_for(x, n), value->name);
    }
    value->type = ONNX_FLOAT;
    return onnx_set(x, n, i, onnx_end(x, id), NULL);
}

bool onnx_call_is_told(Onnx *x, const OnnxNode *n) {
    Shape shape;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (onnx_wants(n, i) &&
            !onnx_told_shape(x, onnx_out(x, n, i)->name, &shape))
            return onnx_error(x, n,
                              "operator %s is not supported; --shape %s=1x... "
                              "makes it a call of a function of yours",
                              word_for(x, n), onnx_out(x, n, i)->name);
    return true;
}

bool onnx_call(Onnx *x, OnnxNode *n) {
    TensorId *in = ARENA_ARRAY(x->arena, TensorId, n->n_in);
    uint32_t n_in = 0;
    bool good = true;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (onnx_in(x, n, i))
            in[n_in++] = onnx_tensor_in(x, n, i);
    x->first_new = x->graph->tensor.n;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (onnx_wants(n, i))
            good &= add_call(x, n, i, n_in, in);
    return good;
}
