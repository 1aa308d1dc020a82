/* reader.c - networks from TensorFlow Lite's FlatBuffers.
 *
 * In: the file, whose first subgraph is the network. Out: the graph, channels
 * before height and width. Quantised tensors keep their quantisation, weights
 * and biases of 8 and 32 bits stay codes in the file.
 */
#include "frontends/formats.h"
#include "frontends/tflite/tflite.h"

#include "graph/quant.h"

#include <string.h>

/* Numbers of fields in the schema. */
enum { MODEL_CODES = 1, MODEL_SUBGRAPHS = 2, MODEL_BUFFERS = 4 };
enum { CODE_OLD = 0, CODE_CUSTOM = 1, CODE_NEW = 3 };
enum { GRAPH_TENSORS, GRAPH_INPUTS, GRAPH_OUTPUTS, GRAPH_OPERATORS };
enum {
    TENSOR_SHAPE,
    TENSOR_TYPE,
    TENSOR_BUFFER,
    TENSOR_NAME,
    TENSOR_VARIABLE = 5
};
enum { OPERATOR_CODE, OPERATOR_INPUTS, OPERATOR_OUTPUTS, OPERATOR_OPTIONS = 4 };
enum { CODE_CUSTOM_OP = 32 };

static Loc place(const Tfl *t, uint32_t at) {
    return (Loc){t->net.path, 0, at};
}

/* ---- tables ---- */

static bool damaged(const Tfl *t) {
    if (t->flat.bad)
        diag_error(t->net.diag, place(t, 0),
                   "the file is damaged: an offset leads outside");
    return t->flat.bad;
}

static void read_shape(Tfl *t, uint32_t table, Shape *out) {
    FlatVector dims = flat_vector(&t->flat, table, TENSOR_SHAPE, 4);
    *out = (Shape){.rank = dims.n < SHAPE_MAX_RANK ? dims.n : SHAPE_MAX_RANK};
    for (uint32_t i = 0; i < out->rank; i++) {
        int32_t dim = flat_at_i32(&t->flat, dims, i);
        out->dim[i] = dim > 0 ? (uint32_t)dim : 0;
    }
}

static void read_tensor(Tfl *t, uint32_t table, FlatVector buffers,
                        TflTensor *out) {
    Flat *flat = &t->flat;
    uint32_t buffer = (uint32_t)flat_i32(flat, table, TENSOR_BUFFER, 0);
    FlatVector data =
        flat_vector(flat, flat_element(flat, buffers, buffer), 0, 1);
    *out = (TflTensor){
        .table = table,
        .name = flat_string(t->net.arena, flat, table, TENSOR_NAME),
        .type = flat_u8(flat, table, TENSOR_TYPE, 0),
        .variable = flat_u8(flat, table, TENSOR_VARIABLE, 0) != 0,
        .made = NO_TENSOR,
    };
    read_shape(t, table, &out->shape);
    if (data.n)
        out->data = (Bytes){flat->at + data.at, data.n};
    out->quant = tfl_quant(t, out);
    if (!*out->name)
        out->name = arena_printf(t->net.arena, "tensor_%u", table);
}

static void read_tensors(Tfl *t, uint32_t model, uint32_t graph) {
    FlatVector buffers = flat_vector(&t->flat, model, MODEL_BUFFERS, 4);
    FlatVector all = flat_vector(&t->flat, graph, GRAPH_TENSORS, 4);
    t->n = all.n;
    t->tensor = ARENA_ARRAY(t->net.arena, TflTensor, all.n);
    for (uint32_t i = 0; i < all.n && !t->flat.bad; i++)
        read_tensor(t, flat_element(&t->flat, all, i), buffers, &t->tensor[i]);
}

/* ---- operators ---- */

/* Codes above 127 stand in a field of their own. */
static uint32_t code_of(Tfl *t, uint32_t index) {
    uint32_t table = flat_element(&t->flat, t->codes, index);
    uint32_t old = flat_u8(&t->flat, table, CODE_OLD, 0);
    int32_t new = flat_i32(&t->flat, table, CODE_NEW, 0);
    return new > (int32_t)old ? (uint32_t) new : old;
}

static bool inputs_failed(Tfl *t) {
    for (uint32_t i = 0; i < t->in.n; i++) {
        const TflTensor *tensor = tfl_tensor(t, i);
        if (tensor && tensor->made.i == NONE && !tfl_known(tensor) &&
            !tensor->variable)
            return true;
    }
    return false;
}

/* The tensor that an operator writes; NULL if there is none. */
static TflTensor *output(Tfl *t, uint32_t i) {
    int32_t id = flat_at_i32(&t->flat, t->out, i);
    return i < t->out.n && id >= 0 && (uint32_t)id < t->n ? &t->tensor[id]
                                                          : NULL;
}

/* An operator that is not known is a call, if the shapes of its results are. */
static void call_op(Tfl *t, uint32_t code, uint32_t index) {
    uint32_t table = flat_element(&t->flat, t->codes, index);
    const char *custom =
        flat_string(t->net.arena, &t->flat, table, CODE_CUSTOM);
    t->net.kind = code == CODE_CUSTOM_OP
                      ? custom
                      : arena_printf(t->net.arena, "operator_%u", code);
    TensorId *in = ARENA_ARRAY(t->net.arena, TensorId, t->in.n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->in.n; i++)
        if (tfl_tensor(t, i))
            in[n++] = tfl_in(t, i);
    for (uint32_t i = 0; i < t->out.n; i++) {
        TflTensor *out = output(t, i);
        Shape shape;
        if (!out || out->made.i != NONE)
            continue;
        if (net_told_shape(&t->net, out->name, &out->shape, &shape))
            out->made = net_call(&t->net, out->name, i, n, in, &shape);
        else
            net_fail(&t->net,
                     "it is not supported; --shape %s=1x... makes it a call "
                     "of a function of yours",
                     out->name);
    }
}

/* Tensors that were made on the way: what only moves values keeps codes. */
static void quantise_parts(Tfl *t, uint32_t known) {
    Graph *g = t->net.g;
    for (uint32_t i = known; i < g->tensor.n; i++) {
        const Node *node = graph_node(g, g->tensor.at[i].producer);
        if (node->n_in && quant_moves(g, node))
            g->tensor.at[i].quant = graph_tensor(g, node->in[0])->quant;
    }
}

/* Output i of the operator is as the file says. */
static void quantise(Tfl *t, uint32_t known, TflTensor *out) {
    Graph *g = t->net.g;
    if (!out || out->made.i == NONE)
        return;
    if (out->made.i < known &&
        !quant_equal(&graph_tensor(g, out->made)->quant, &out->quant))
        out->made = net_identity(&t->net, out->made);
    tfl_set_quant(t, known, out->made, &out->quant);
}

static void build_op(Tfl *t, uint32_t table) {
    uint32_t index = (uint32_t)flat_i32(&t->flat, table, OPERATOR_CODE, 0);
    uint32_t code = code_of(t, index);
    const TflOp *op = tfl_find_op(code);
    t->in = flat_vector(&t->flat, table, OPERATOR_INPUTS, 4);
    t->out = flat_vector(&t->flat, table, OPERATOR_OUTPUTS, 4);
    t->options = flat_table(&t->flat, table, OPERATOR_OPTIONS);
    TflTensor *out = output(t, 0);
    if (t->flat.bad || !out)
        return;
    net_at(&t->net, out->name, op ? op->name : "?", place(t, table));
    if (inputs_failed(t) || out->made.i != NONE || (op && tfl_fold(t, op)))
        return;
    if (!op) {
        call_op(t, code, index);
        return;
    }
    uint32_t known = t->net.g->tensor.n;
    out->made = op->build(t, op->kind);
    quantise_parts(t, known);
    for (uint32_t i = 0; i < t->out.n; i++)
        quantise(t, known, output(t, i));
}

static void build_inputs(Tfl *t, uint32_t graph) {
    FlatVector inputs = flat_vector(&t->flat, graph, GRAPH_INPUTS, 4);
    for (uint32_t i = 0; i < inputs.n; i++) {
        int32_t id = flat_at_i32(&t->flat, inputs, i);
        if (id < 0 || (uint32_t)id >= t->n || t->tensor[id].made.i != NONE)
            continue;
        TflTensor *tensor = &t->tensor[id];
        net_at(&t->net, tensor->name, "input", place(t, tensor->table));
        tensor->made = net_input(&t->net, &tensor->shape);
        if (tensor->made.i != NONE)
            graph_tensor(t->net.g, tensor->made)->quant = tensor->quant;
    }
}

static void mark_outputs(Tfl *t, uint32_t graph) {
    FlatVector outputs = flat_vector(&t->flat, graph, GRAPH_OUTPUTS, 4);
    for (uint32_t i = 0; i < outputs.n; i++) {
        int32_t id = flat_at_i32(&t->flat, outputs, i);
        if (id < 0 || (uint32_t)id >= t->n)
            continue;
        TflTensor *tensor = &t->tensor[id];
        if (tensor->made.i == NONE && tensor->has_value) {
            net_at(&t->net, tensor->name, "output", place(t, tensor->table));
            tensor->made = net_constant(&t->net, NULL, &tensor->value);
        }
        if (tensor->made.i != NONE)
            graph_mark_output(t->net.g, tensor->made);
    }
    if (!t->net.g->output.n && !diag_errors(t->net.diag))
        diag_error(t->net.diag, place(t, 0), "nothing makes its outputs");
}

static void build(Tfl *t) {
    uint32_t model = flat_root(&t->flat);
    FlatVector graphs = flat_vector(&t->flat, model, MODEL_SUBGRAPHS, 4);
    uint32_t graph = flat_element(&t->flat, graphs, 0);
    FlatVector operators = flat_vector(&t->flat, graph, GRAPH_OPERATORS, 4);
    t->codes = flat_vector(&t->flat, model, MODEL_CODES, 4);
    read_tensors(t, model, graph);
    if (damaged(t))
        return;
    build_inputs(t, graph);
    for (uint32_t i = 0; i < operators.n && !t->flat.bad; i++)
        build_op(t, flat_element(&t->flat, operators, i));
    if (!damaged(t))
        mark_outputs(t, graph);
}

bool tflite_looks(const char *path, Bytes bytes) {
    (void)path;
    return bytes.len >= 8 && !memcmp(bytes.at + 4, "TFL3", 4);
}

Graph *tflite_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                   const ImportOptions *options) {
    Tfl t = {.net = net_open(arena, diag, path, options, true),
             .flat = {bytes.at, (uint32_t)bytes.len, false}};
    if (options->weights) {
        diag_error(diag, (Loc){path, 0, 0},
                   "a .tflite has its own weights; none are read beside it");
        return NULL;
    }
    if (bytes.len > INT32_MAX) {
        diag_error(diag, (Loc){path, 0, 0}, "a .tflite is at most 2 GiB long");
        return NULL;
    }
    build(&t);
    return diag_errors(diag) ? NULL : t.net.g;
}
