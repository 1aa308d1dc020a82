/* reader.c - networks from MXNet's symbol JSON.
 *
 * In: the JSON (three ages of it: attributes under "param", "attr" or "attrs";
 * inputs with two numbers or three), and a .params file. Out: the graph.
 * Variables that layers read as images are the network's inputs; those in the
 * place of a weight get values from the .params file, or seeded ones; labels of
 * losses are left out.
 */
#include "base/jsonlook.h"
#include "frontends/formats.h"
#include "frontends/mxnet/mxnet.h"

#include <string.h>

/* ---- building ---- */

/* Only what an output needs: labels and losses of training are not read. */
static void mark_needed(const Mx *mx, const cJSON *heads, bool *needed) {
    const cJSON *item;
    MxRef ref;
    cJSON_ArrayForEach(item, heads) {
        if (mx_read_ref(item, mx->n, &ref))
            needed[ref.node] = true;
    }
    for (uint32_t i = mx->n; i-- > 0;)
        for (uint32_t k = 0; needed[i] && k < mx->node[i].n_in; k++)
            needed[mx->node[i].in[k].node] = true;
}

/* Inputs that could not be built have had their error. */
static bool inputs_failed(const Mx *mx, const MxNode *node) {
    for (uint32_t i = 0; i < node->n_in; i++) {
        const MxNode *from = &mx->node[node->in[i].node];
        if (!mx_is_variable(from) && (!from->n_out || from->out[0].i == NONE))
            return true;
    }
    return false;
}

static void build_node(Mx *mx, MxNode *node) {
    const MxOp *op = mx_find_op(node->op);
    mx->at = node;
    net_at(&mx->net, node->name, node->op, mx->net.loc);
    if (!op)
        net_fail(&mx->net, "this operator is not supported");
    if (!op || inputs_failed(mx, node))
        return;
    TensorId out = op->build(mx, op->kind);
    if (node->n_out) /* a builder with several outputs has put them there */
        return;
    node->out = ARENA_COPY(mx->net.arena, TensorId, &out, 1);
    node->n_out = out.i != NONE;
}

/* Numbers that a dequantize makes, where nobody but the user reads them. */
static TensorId as_numbers(Mx *mx, const MxNode *node, uint32_t output) {
    TensorId out = node->out[output];
    if (graph_tensor(mx->net.g, out)->quant.type == QUANT_NONE ||
        mx_find_op(node->op)->build != mx_dequantize)
        return out;
    net_at(&mx->net, node->name, node->op, mx->net.loc);
    return net_identity(&mx->net, out);
}

static void mark_outputs(Mx *mx, const cJSON *heads) {
    const cJSON *item;
    MxRef ref;
    cJSON_ArrayForEach(item, heads) {
        if (!mx_read_ref(item, mx->n, &ref)) {
            diag_error(mx->net.diag, mx->net.loc,
                       "heads: a node that does not exist");
            continue;
        }
        const MxNode *node = &mx->node[ref.node];
        if (ref.output < node->n_out && node->out[ref.output].i != NONE)
            graph_mark_output(mx->net.g, as_numbers(mx, node, ref.output));
    }
}

/* Seeded weights are numbers, and what reads codes by them computes numbers. */
static void warn_of_numbers(const Mx *mx) {
    for (uint32_t i = 0; i < mx->n && !mx->net.options->weights; i++)
        if (mx->node[i].ranged) {
            diag_warning(mx->net.diag, mx->net.loc,
                         "codes of weights are in the .params file: without "
                         "--weights layers compute real numbers");
            return;
        }
}

static bool build(Mx *mx, const cJSON *json) {
    const cJSON *heads = cJSON_GetObjectItemCaseSensitive(json, "heads");
    if (!mx_read_nodes(mx, json))
        return false;
    bool *needed = ARENA_ARRAY(mx->net.arena, bool, mx->n);
    mark_needed(mx, heads, needed);
    for (uint32_t i = 0; i < mx->n; i++)
        if (needed[i] && !mx_is_variable(&mx->node[i]))
            build_node(mx, &mx->node[i]);
    mark_outputs(mx, heads);
    warn_of_numbers(mx);
    if (!mx->net.g->output.n && !diag_errors(mx->net.diag))
        diag_error(mx->net.diag, mx->net.loc, "heads names no output");
    if (!diag_errors(mx->net.diag))
        net_settle_codes(mx->net.g);
    return !diag_errors(mx->net.diag);
}

/* A .params file in the place of the network. */
static bool is_params(Bytes bytes) {
    static const uint8_t magic[8] = {0x12, 0x01};
    return bytes.len >= 16 && !memcmp(bytes.at, magic, sizeof magic);
}

bool mxnet_looks(const char *path, Bytes bytes) {
    (void)path;
    if (is_params(bytes))
        return true;
    return json_has_key(bytes, "nodes") && json_has_key(bytes, "heads");
}

Graph *mxnet_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                  const ImportOptions *options) {
    Mx mx = {.net = net_open(arena, diag, path, options, false),
             .param_names = map_new(arena),
             .build = build_node};
    if (is_params(bytes)) {
        diag_error(diag, (Loc){path, 0, 0},
                   "these are weights: read the symbol's JSON with --weights");
        return NULL;
    }
    cJSON *json = json_parse(diag, path, (const char *)bytes.at, bytes.len);
    if (!json)
        return NULL;
    bool good = (!options->weights || mx_read_params(&mx, options->weights)) &&
                build(&mx, json);
    json_free(json);
    return good ? mx.net.g : NULL;
}
