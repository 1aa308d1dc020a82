/* fold_graph.c - any node whose inputs are constants, by the reference
 * evaluation; see onnx.h.
 *
 * The node is built as always, but into a graph of its own, which is evaluated.
 * Where that would take long, or its results are codes, it stays a node.
 */
#include "frontends/onnx/onnx.h"

static const uint64_t most_products = UINT64_C(1) << 28;
enum { MOST_ELEMENTS = 1 << 25 };
static const uint64_t most_in_all = UINT64_C(1) << 27;

static bool is_small(const Onnx *x, const Graph *g) {
    uint64_t products = 0, elements = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        products += graph_products(g, &g->node.at[i]);
    for (uint32_t i = 0; i < g->tensor.n; i++)
        elements += shape_count(&g->tensor.at[i].shape);
    return products <= most_products && elements <= MOST_ELEMENTS &&
           x->numbers + elements <= most_in_all;
}

static bool has_codes(const Graph *g) {
    for (uint32_t i = 0; i < g->tensor.n; i++)
        if (g->tensor.at[i].quant.type != QUANT_NONE)
            return true;
    return false;
}

static void take_values(Onnx *x, const OnnxNode *n, const Graph *g) {
    Arena *scratch = arena_new("constants");
    Values values = graph_eval(scratch, g, 0, NULL);
    for (uint32_t i = 0; i < n->n_out; i++) {
        OnnxValue *value = onnx_out(x, n, i);
        if (!value || value->state != ONNX_TENSOR)
            continue;
        Const result = {.shape = value->shape,
                        .kind = CONST_F32,
                        .data = ARENA_COPY(x->arena, float,
                                           values.at[value->tensor.i],
                                           shape_count(&value->shape))};
        x->numbers += shape_count(&value->shape);
        value->tensor = NO_TENSOR;
        onnx_set_const(x, n, i, value->type, result);
    }
    arena_free(scratch);
}

/* As if nobody had built it. */
static void forget(Onnx *x, const OnnxNode *n) {
    for (uint32_t i = 0; i < n->n_out; i++)
        if (onnx_wants(n, i))
            *onnx_out(x, n, i) = (OnnxValue){.name = onnx_out(x, n, i)->name,
                                             .tensor = NO_TENSOR,
                                             .plain = NO_TENSOR};
}

bool onnx_fold_by_graph(Onnx *x, OnnxNode *n) {
    Graph *whole = x->graph;
    uint32_t first_new = x->first_new;
    TensorId *kept = ARENA_ARRAY(x->arena, TensorId, n->n_in);
    uint64_t elements = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (onnx_in(x, n, i))
            elements += shape_count(&onnx_in(x, n, i)->shape);
    if (!n->n_in || elements > MOST_ELEMENTS)
        return false;
    x->graph = graph_new(x->arena, "constants");
    x->first_new = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (onnx_in(x, n, i)) {
            kept[i] = onnx_in(x, n, i)->tensor;
            onnx_in(x, n, i)->tensor = NO_TENSOR;
        }
    bool built = n->op->build(x, n);
    bool folds = built && !has_codes(x->graph) && is_small(x, x->graph);
    if (folds)
        take_values(x, n, x->graph);
    for (uint32_t i = n->n_in; i-- > 0;)
        if (onnx_in(x, n, i))
            onnx_in(x, n, i)->tensor = kept[i];
    x->graph = whole;
    x->first_new = first_new;
    if (built && !folds)
        forget(x, n);
    return folds;
}
