/* frontends.c - the table of formats, and what all of them have in common.
 *
 * In: a file. Out: a graph that is sorted, has shapes and all its constants,
 * and passes graph_verify; or errors. A format is known by its content; the
 * suffix decides where the content says nothing.
 */
#include "frontends/formats.h"
#include "frontends/states.h"

#include "base/text.h"

#include <string.h>

const Format formats[] = {
    {"onnx", ".onnx .onnxtxt", "ONNX ModelProto, binary or text", onnx_looks,
     onnx_read},
    {"tensorflow", ".pb .pbtxt .json",
     "TensorFlow SavedModel (its folder), frozen GraphDef, or tfjs graph model",
     tensorflow_looks, tensorflow_read},
    {"tflite", ".tflite .lite",
     "TensorFlow Lite, of floats or of quantised values", tflite_looks,
     tflite_read},
    {"keras", ".keras .h5 .hdf5 .json",
     "Keras model, or its JSON with weights from an .h5; tfjs layers model",
     keras_looks, keras_read},
    {"mxnet", ".json", "MXNet symbol; weights from a .params", mxnet_looks,
     mxnet_read},
    {"amphora", ".json", "a graph in JSON, as show --emit json writes it",
     graphjson_looks, graphjson_read},
    {"graph", ".graph", "the text form of a graph, as --dump prints it",
     graphtext_looks, graphtext_read},
    {"darknet", ".cfg", "Darknet; weights from a .weights", darknet_looks,
     darknet_read},
    {"caffe", ".prototxt .pbtxt .caffemodel",
     "Caffe NetParameter, text or binary; weights from a .caffemodel",
     caffe_looks, caffe_read},
};
const uint32_t n_formats = sizeof formats / sizeof *formats;

/* Whether the path ends in one of the words of `suffixes`. */
static bool has_suffix(const char *path, const char *suffixes) {
    size_t path_len = strlen(path);
    for (const char *at = suffixes; *at;) {
        size_t len = strcspn(at, " ");
        if (len && len < path_len && !memcmp(path + path_len - len, at, len))
            return true;
        at += len + (at[len] == ' ');
    }
    return false;
}

/* By content; else by a suffix that one format alone has. */
static const Format *find_format(const char *path, Bytes bytes) {
    const Format *found = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_formats; i++)
        if (formats[i].looks(path, bytes))
            return &formats[i];
    for (uint32_t i = 0; i < n_formats; i++)
        if (has_suffix(path, formats[i].suffixes)) {
            found = &formats[i];
            n++;
        }
    return n == 1 ? found : NULL;
}

/* A name that belongs to others and not to what the content is. */
static void check_suffix(Diag *diag, const char *path, const Format *format) {
    if (has_suffix(path, format->suffixes))
        return;
    for (uint32_t i = 0; i < n_formats; i++)
        if (has_suffix(path, formats[i].suffixes)) {
            diag_warning(diag, (Loc){path, 0, 0},
                         "called as if it were %s, but its content is %s (%s)",
                         formats[i].name, format->name, format->suffixes);
            return;
        }
}

static void report_unknown(Arena *arena, Diag *diag, const char *path) {
    Text known = text_new(arena);
    for (uint32_t i = 0; i < n_formats; i++)
        text_addf(&known, "%s%s (%s)", i ? ", " : "", formats[i].name,
                  formats[i].suffixes);
    diag_error(diag, (Loc){path, 0, 0},
               "not a network in a known format; known: %s", text_str(&known));
}

/* Settings of --shape that name no input, which would otherwise be typing
 * mistakes without a word. */
static void check_shape_names(Arena *arena, Diag *diag, const Graph *g,
                              const ImportOptions *options) {
    Text inputs = text_new(arena);
    for (uint32_t i = 0; i < options->n_shapes; i++) {
        const char *name = options->shapes[i].name;
        bool found = !*name;
        inputs.len = 0;
        for (uint32_t n = 0; n < g->node.n; n++) {
            const Node *node = &g->node.at[n];
            if (node->op != OP_INPUT)
                continue;
            const char *tensor = graph_tensor(g, node->out[0])->name;
            found |= !strcmp(name, node->name) || !strcmp(name, tensor);
            text_addf(&inputs, "%s\"%s\"", inputs.len ? ", " : "", tensor);
        }
        found |= map_get(g->tensor_names, name, 0) != 0;
        if (!found)
            diag_error(diag, (Loc){0}, "no input is called \"%s\"; inputs: %s",
                       name, text_str(&inputs));
    }
}

static bool is_sorted(const Graph *g) {
    for (uint32_t i = 0; i < g->node.n; i++)
        for (uint32_t k = 0; k < g->node.at[i].n_in; k++)
            if (graph_tensor(g, g->node.at[i].in[k])->producer.i >= i)
                return false;
    return true;
}

/* Settings that make no difference, which formats set in one way or another:
 * rounding up where nothing is left over, what an average that has no padding
 * does about it, the window of one that is as large as its input. */
static void plain_pool(Node *node, const Shape *in, const Shape *out) {
    PoolAttr *a = &node->attr.pool;
    bool pads = false, left_over = false;
    if (a->global) {
        *a = (PoolAttr){.kind = a->kind, .global = true, .stride = {1, 1}};
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t room = (uint64_t)in->dim[2 + i] + a->pad[i] + a->pad_end[i];
        pads |= a->pad[i] || a->pad_end[i];
        left_over |=
            (room - a->kernel[i]) / a->stride[i] + 1 != out->dim[2 + i];
    }
    a->ceil = a->ceil && left_over;
    a->count_pad = a->count_pad && a->kind == POOL_AVG && (pads || a->ceil);
}

static void plain_pools(const Graph *g) {
    for (uint32_t i = 0; i < g->node.n; i++)
        if (g->node.at[i].op == OP_POOL)
            plain_pool(&g->node.at[i],
                       &graph_tensor(g, g->node.at[i].in[0])->shape,
                       &graph_tensor(g, g->node.at[i].out[0])->shape);
}

/* ---- a part of a network ---- */

static TensorId find_tensor(const Graph *g, const char *name) {
    for (uint32_t i = 0; i < g->tensor.n; i++)
        if (!strcmp(g->tensor.at[i].name, name))
            return (TensorId){i};
    return NO_TENSOR;
}

/* Inputs that nothing of the part reads. */
static void drop_idle_inputs(Graph *g, const ImportOptions *options) {
    bool *needed = ARENA_ARRAY(g->arena, bool, g->tensor.n + 1);
    if (!options->n_inputs && !options->n_outputs)
        return;
    for (uint32_t i = 0; i < g->output.n; i++)
        needed[g->output.at[i].i] = true;
    for (uint32_t i = g->node.n; i-- > 0;) {
        Node *node = &g->node.at[i];
        bool any = false;
        for (uint32_t o = 0; o < node->n_out; o++)
            any |= needed[node->out[o].i];
        for (uint32_t k = 0; any && k < node->n_in; k++)
            needed[node->in[k].i] = true;
        node->dead |= node->op == OP_INPUT && !any;
    }
}

/* What makes it becomes a network input. */
static void begin_at(Graph *g, TensorId tensor) {
    Node *node = graph_node(g, graph_tensor(g, tensor)->producer);
    node->op = OP_INPUT;
    node->n_in = 0;
    node->n_out = 1;
    node->out[0] = tensor;
    node->act = (Act){0};
    node->attr = (Attrs){0};
    for (int role = 0; role < CONST_ROLES; role++)
        node->constant[role] = NO_CONST;
}

/* Names of --inputs and --outputs that are tensors of the graph; formats that
 * did it themselves have the same ones. */
static void cut(Arena *arena, Diag *diag, Graph *g,
                const ImportOptions *options) {
    const TensorId *next = states_next(arena, g);
    if (options->n_outputs)
        g->output.n = 0;
    for (uint32_t i = 0; options->n_outputs && i < g->tensor.n; i++)
        g->tensor.at[i].is_output = false;
    for (uint32_t i = 0; i < options->n_inputs + options->n_outputs; i++) {
        bool ends = i >= options->n_inputs;
        const char *name =
            ends ? options->outputs[i - options->n_inputs] : options->inputs[i];
        TensorId tensor = find_tensor(g, name);
        if (tensor.i == NONE)
            diag_error(diag, (Loc){0}, "no tensor is called \"%s\"%s", name,
                       arena_printf(arena, "; --%s takes names of tensors",
                                    ends ? "outputs" : "inputs"));
        else if (ends)
            graph_mark_output(g, tensor);
        else
            begin_at(g, tensor);
    }
    states_follow(g, next);
    drop_idle_inputs(g, options);
}

/* From what a format's reader made to what the rest of the house relies on. */
static Graph *finish(Arena *arena, Diag *diag, Graph *g,
                     const ImportOptions *options, ImportInfo *info) {
    uint32_t errors = diag_errors(diag);
    check_shape_names(arena, diag, g, options);
    if (!is_sorted(g) && !graph_sort(g, diag))
        return NULL;
    cut(arena, diag, g, options);
    if (diag_errors(diag) > errors)
        return NULL;
    graph_compact(g);
    if (!graph_infer_all(g, diag) || diag_errors(diag) > errors)
        return NULL;
    states_take(arena, diag, g, options->n_states, options->states);
    if (diag_errors(diag) > errors)
        return NULL;
    plain_pools(g);
    info->seeded = graph_seed_constants(g, options->seed);
    graph_verify(g, "import");
    graph_mark_original(g);
    return g;
}

/* "net/" as "net", which it is called by. */
static const char *without_slash(Arena *arena, const char *path) {
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    return arena_strndup(arena, path, len);
}

/* A folder stands for the SavedModel that it holds. */
static const char *file_of(Arena *arena, const char *path) {
    const char *inside = arena_printf(arena, "%s/saved_model.pb", path);
    return file_exists(inside) ? inside : path;
}

Graph *frontend_read(Arena *arena, Diag *diag, const char *path,
                     const ImportOptions *options, ImportInfo *info) {
    Bytes bytes;
    *info = (ImportInfo){0};
    const char *given = without_slash(arena, path);
    path = file_of(arena, given); /* places in the graph point to it */
    if (!file_read(arena, diag, path, &bytes))
        return NULL;
    if (!bytes.len) {
        diag_error(diag, (Loc){path, 0, 0}, "the file is empty");
        return NULL;
    }
    const Format *format = find_format(path, bytes);
    if (!format) {
        report_unknown(arena, diag, path);
        return NULL;
    }
    check_suffix(diag, path, format);
    Graph *g = format->read(arena, diag, path, bytes, options);
    if (!g)
        return NULL;
    /* What files call themselves is rarely unique ("torch_jit"). */
    if (strcmp(path, "-"))
        g->name = file_stem(arena, given);
    return finish(arena, diag, g, options, info);
}
