/* reader.c - networks from TensorFlow GraphDefs and SavedModels.
 *
 * In: a frozen GraphDef, binary or text, tfjs' JSON with its files of weights,
 * or a SavedModel with the variables in the folder beside it. Out: the graph,
 * channels before height and width. Nodes may stand in any order; they are
 * built when their inputs are. A node is a tensor, a constant (folded where
 * that is plain), or dead: on the side of a Switch that a constant does not
 * take. What no node reads is an output, unless a signature says what is.
 */
#include "base/jsonlook.h"
#include "frontends/formats.h"
#include "frontends/proto/wire.h"
#include "frontends/tensorflow/tf.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_OUTPUTS = 1024 };

/* ---- nodes of the file ---- */

static bool read_node(Tf *tf, TfNode *node, const ProtoField *field) {
    if (!tf_read_node(tf, node, field))
        return false;
    if (!map_put(tf->names, node->name, (uint32_t)(node - tf->node))) {
        diag_error(tf->net.diag, field->loc, "two nodes are called \"%s\"",
                   node->name);
        return false;
    }
    return true;
}

/* "name", "name:1"; "^name" only orders, and is left out. */
static bool read_input(Tf *tf, TfNode *node, const char *text) {
    const char *colon = strrchr(text, ':');
    TfRef *ref = &node->in[node->n_in];
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    if (*text == '^')
        return true;
    ref->node =
        map_get(tf->names, arena_strndup(tf->net.arena, text, len), NONE);
    unsigned long output = colon ? strtoul(colon + 1, NULL, 10) : 0;
    ref->output = output < MAX_OUTPUTS ? (uint32_t)output : MAX_OUTPUTS;
    if (ref->node == NONE) {
        diag_error(tf->net.diag, node->loc,
                   "node \"%s\" reads \"%s\", which does not exist", node->name,
                   text);
        return false;
    }
    tf->node[ref->node].readers++;
    node->n_in++;
    return true;
}

static bool read_inputs(Tf *tf, TfNode *node) {
    const ProtoField *f = NULL;
    bool good = true;
    node->in =
        ARENA_ARRAY(tf->net.arena, TfRef, proto_count(node->message, "input"));
    while ((f = proto_next(node->message, "input", f))) {
        const char *text = "";
        good &=
            proto_get_str(tf->net.diag, f, &text) && read_input(tf, node, text);
    }
    node->waits = node->n_in;
    return good;
}

static bool read_nodes(Tf *tf, const ProtoMessage *graph) {
    const ProtoField *f = NULL;
    bool good = true;
    tf->node = ARENA_ARRAY(tf->net.arena, TfNode, proto_count(graph, "node"));
    while ((f = proto_next(graph, "node", f)))
        good &= read_node(tf, &tf->node[tf->n++], f);
    for (uint32_t i = 0; good && i < tf->n; i++)
        good &= read_inputs(tf, &tf->node[i]);
    if (good && !tf->n)
        diag_error(tf->net.diag, (Loc){tf->net.path, 0, 0}, "it has no nodes");
    return good && tf->n;
}

/* One way for all images in the file: what any node says of it. */
static bool is_nchw(const Tf *tf) {
    Tf look = *tf;
    for (uint32_t i = 0; i < tf->n; i++) {
        look.at = &tf->node[i];
        if (!strcmp(tf_str(&look, "data_format", "NHWC"), "NCHW"))
            return true;
    }
    return false;
}

/* ---- building ---- */

static bool input_is_dead(const Tf *tf, const TfNode *node, uint32_t i) {
    const TfNode *from = &tf->node[node->in[i].node];
    return from->state == TF_DEAD ||
           (from->live != NONE && from->live != node->in[i].output);
}

/* A node on a side that is not taken; a Merge lives with either input. */
static bool is_dead(const Tf *tf, const TfNode *node) {
    bool merge = !strcmp(node->op, "Merge");
    uint32_t dead = 0;
    for (uint32_t i = 0; i < node->n_in; i++)
        dead += input_is_dead(tf, node, i);
    return merge ? dead == node->n_in : dead > 0;
}

static bool inputs_failed(const Tf *tf, const TfNode *node) {
    for (uint32_t i = 0; i < node->n_in; i++) {
        const TfNode *from = &tf->node[node->in[i].node];
        if (from->state == TF_NOT_BUILT ||
            (from->state == TF_TENSOR && from->out[0].i == NONE))
            return true;
    }
    return false;
}

/* A node that is not known, of whose result --shape says the shape. */
static TensorId call(Tf *tf, const TfNode *node) {
    TensorId *in = ARENA_ARRAY(tf->net.arena, TensorId, node->n_in);
    Shape shape = {0};
    net_told_shape(&tf->net, node->name, NULL, &shape);
    for (uint32_t i = 0; i < node->n_in; i++)
        in[i] = tf_in(tf, i);
    return net_call(&tf->net, node->name, 0, node->n_in, in, &shape);
}

static void build_node(Tf *tf, TfNode *node) {
    const TfOp *op = tf_find_op(node->op);
    tf->at = node;
    net_at(&tf->net, node->name, node->op, node->loc);
    if (is_dead(tf, node)) {
        node->state = TF_DEAD;
        return;
    }
    bool known = op || net_told_shape(&tf->net, node->name, NULL, &(Shape){0});
    if (!known)
        net_fail(&tf->net,
                 "this operator is not supported; --shape %s=1x... makes it a "
                 "call of a function of yours",
                 node->name);
    if (!known || inputs_failed(tf, node) || (op && tf_fold_node(tf, op)))
        return;
    TensorId out = op ? op->build(tf, op->kind) : call(tf, node);
    if (node->state != TF_NOT_BUILT)
        return;
    node->state = TF_TENSOR;
    if (!node->n_out) {
        node->out = ARENA_COPY(tf->net.arena, TensorId, &out, 1);
        node->n_out = 1;
    }
}

/* Readers of each node, to wake them when it is built. */
typedef struct Readers {
    uint32_t *start, *node;
} Readers;

static Readers find_readers(const Tf *tf) {
    Readers r = {ARENA_ARRAY(tf->net.arena, uint32_t, tf->n + 1), NULL};
    uint32_t total = 0;
    for (uint32_t i = 0; i < tf->n; i++) {
        r.start[i] = total;
        total += tf->node[i].readers;
    }
    r.start[tf->n] = total;
    r.node = ARENA_ARRAY(tf->net.arena, uint32_t, total);
    uint32_t *at = ARENA_COPY(tf->net.arena, uint32_t, r.start, tf->n);
    for (uint32_t i = 0; i < tf->n; i++)
        for (uint32_t k = 0; k < tf->node[i].n_in; k++)
            r.node[at[tf->node[i].in[k].node]++] = i;
    return r;
}

/* First come, first built: the order of the file where it can be. */
static void build_all(Tf *tf) {
    Readers readers = find_readers(tf);
    uint32_t *queue = ARENA_ARRAY(tf->net.arena, uint32_t, tf->n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < tf->n; i++)
        if (!tf->node[i].waits)
            queue[n++] = i;
    for (uint32_t done = 0; done < n; done++) {
        uint32_t id = queue[done];
        build_node(tf, &tf->node[id]);
        for (uint32_t k = readers.start[id]; k < readers.start[id + 1]; k++)
            if (!--tf->node[readers.node[k]].waits)
                queue[n++] = readers.node[k];
    }
    for (uint32_t i = 0; i < tf->n && n < tf->n; i++)
        if (tf->node[i].waits) {
            diag_error(tf->net.diag, tf->node[i].loc,
                       "node \"%s\" (%s) waits for itself: loops are not "
                       "supported",
                       tf->node[i].name, tf->node[i].op);
            return;
        }
}

static void mark_result(Tf *tf, TfRef ref) {
    TfNode *node = &tf->node[ref.node];
    tf->at = &(TfNode){.name = node->name, .n_in = 1, .in = &ref};
    net_at(&tf->net, node->name, node->op, node->loc);
    TensorId tensor = node->state == TF_NOT_BUILT || node->state == TF_DEAD
                          ? NO_TENSOR
                          : tf_in(tf, 0);
    if (tensor.i != NONE)
        graph_mark_output(tf->net.g, tensor);
}

static void mark_outputs(Tf *tf) {
    for (uint32_t i = 0; i < tf->result.n; i++)
        mark_result(tf, tf->result.at[i]);
    for (uint32_t i = 0; i < tf->n && !tf->result.n; i++) {
        const TfNode *node = &tf->node[i];
        if (node->readers || node->state != TF_TENSOR ||
            !strcmp(node->op, "Placeholder"))
            continue;
        for (uint32_t k = 0; k < node->n_out; k++)
            if (node->out[k].i != NONE)
                graph_mark_output(tf->net.g, node->out[k]);
    }
    if (!tf->net.g->output.n && !diag_errors(tf->net.diag))
        diag_error(tf->net.diag, (Loc){tf->net.path, 0, 0},
                   "no node computes an output");
}

/* ---- the whole ---- */

/* A first field 1 that is itself a message with a name and an op. */
static bool looks_binary(Bytes bytes) {
    WireReader reader = wire_open(bytes);
    WireField node, name, op;
    if (!wire_next(&reader, &node) || node.number != 1 ||
        node.type != WIRE_BYTES)
        return false;
    WireReader inner = wire_enter(&reader, &node);
    return wire_next(&inner, &name) && name.number == 1 &&
           name.type == WIRE_BYTES && wire_next(&inner, &op) &&
           op.number == 2 && op.type == WIRE_BYTES;
}

static bool looks_saved(Bytes bytes) {
    WireReader reader = wire_open(bytes);
    WireField version, graph, info;
    if (!wire_next(&reader, &version) || version.number != 1 ||
        version.type != WIRE_VARINT || version.value != 1 ||
        !wire_next(&reader, &graph) || graph.number != 2 ||
        graph.type != WIRE_BYTES)
        return false;
    WireReader inner = wire_enter(&reader, &graph);
    return wire_next(&inner, &info) && info.number == 1 &&
           info.type == WIRE_BYTES;
}

static bool looks_text(Bytes bytes) {
    static const char *const heads[] = {"node {", "node{", "node: {"};
    const char *at = (const char *)bytes.at, *end = at + bytes.len;
    while (at < end && (strchr(" \t\r\n", *at) || *at == '#')) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        at = *at == '#' ? (stop ? stop : end) : at + 1;
    }
    for (int i = 0; i < 3; i++)
        if ((size_t)(end - at) > strlen(heads[i]) &&
            !memcmp(at, heads[i], strlen(heads[i])))
            return true;
    return false;
}

bool tensorflow_looks(const char *path, Bytes bytes) {
    (void)path;
    return json_has_inner_key(bytes, "modelTopology", "node") ||
           json_has_key(bytes, "node") || looks_text(bytes) ||
           looks_saved(bytes) || looks_binary(bytes);
}

/* Variables lie beside a SavedModel; one without any needs no file. */
static bool read_saved(Tf *tf, const ProtoMessage *model) {
    Arena *arena = tf->net.arena;
    const char *folder = file_dir(arena, tf->net.path);
    const char *path = arena_printf(arena, "%s/variables/variables", folder);
    if (file_exists(arena_printf(arena, "%s.index", path)) &&
        !(tf->bundle = bundle_open(arena, tf->net.diag, path)))
        return false;
    return tf_read_saved(tf, model);
}

static bool read_file(Tf *tf, Bytes bytes) {
    bool saved = looks_saved(bytes);
    const ProtoMessage *tree =
        tf_parse(tf, bytes, saved ? &tf_saved_schema : &tf_graph_schema);
    if (!tree)
        return false;
    return saved ? read_saved(tf, tree) : read_nodes(tf, tree);
}

Graph *tensorflow_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                       const ImportOptions *options) {
    Tf tf = {.net = net_open(arena, diag, path, options, true),
             .names = map_new(arena),
             .weights = map_new(arena)};
    if (!read_file(&tf, bytes))
        return NULL;
    tf.net.nhwc = !is_nchw(&tf);
    build_all(&tf);
    mark_outputs(&tf);
    return diag_errors(diag) ? NULL : tf.net.g;
}
