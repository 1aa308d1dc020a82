/* writer.c - graphs as JSON, the exchange form for other tools.
 *
 * In: a graph as a front end left it. Out: the JSON text, and the bytes of the
 * file of weights that stands beside it. Constants that are recipes are told
 * whole in the JSON; values of trained ones are in the file of weights, and the
 * JSON says where. reader.c reads it back to the same graph.
 * Numbers are written so that they read back exactly: cJSON alone would round
 * the last bit of some.
 */
#include "frontends/frontend.h"
#include "frontends/json/graphjson.h"

#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The shortest of 15 to 17 digits that reads back as the same number; JSON has
 * no words for infinities, so these are strings. */
static cJSON *number(double value) {
    char digits[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        double back = strtod(digits, NULL);
        if (back >= value && back <= value)
            break;
    }
    return isfinite(value) ? cJSON_CreateRaw(digits)
                           : cJSON_CreateString(digits);
}

static cJSON *numbers(const double *value, uint32_t n) {
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, number(value[i]));
    return list;
}

static void add_shape(cJSON *json, const Shape *shape) {
    cJSON *list = cJSON_AddArrayToObject(json, "shape");
    for (uint32_t i = 0; i < shape->rank; i++)
        cJSON_AddItemToArray(list, number(shape->dim[i]));
}

/* ---- constants ---- */

static void add_recipe(cJSON *json, const Const *c) {
    char seed[20];
    snprintf(seed, sizeof seed, "0x%016" PRIx64, c->seed);
    cJSON_AddStringToObject(json, "seed", seed);
    cJSON_AddItemToObject(json, "mean", number(c->mean));
    cJSON_AddItemToObject(json, "spread", number(c->spread));
}

static void add_data(cJSON *json, const Const *c, Text *weights) {
    static const char zeros[GRAPHJSON_ALIGN] = {0};
    size_t over = weights->len % GRAPHJSON_ALIGN;
    text_add_n(weights, zeros, over ? GRAPHJSON_ALIGN - over : 0);
    cJSON_AddItemToObject(json, "offset", number((double)weights->len));
    text_add_n(weights, c->data, const_data_bytes(c));
}

static void add_order(cJSON *json, const Const *c) {
    cJSON *list = cJSON_AddArrayToObject(json, "order");
    for (uint32_t i = 0; i < c->shape.rank; i++)
        cJSON_AddItemToArray(list, number(c->order[i]));
}

static cJSON *constant(const Const *c, Text *weights) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kind", const_kind_word(c->kind));
    add_shape(json, &c->shape);
    if (c->zero)
        cJSON_AddItemToObject(json, "zero", number(c->zero));
    if (c->kind == CONST_SEEDED)
        add_recipe(json, c);
    else
        add_data(json, c, weights);
    if (c->groups > 1)
        cJSON_AddNumberToObject(json, "groups", c->groups);
    if (const_has_order(c))
        add_order(json, c);
    if (c->mul0)
        cJSON_AddItemToObject(json, "mul0",
                              numbers(c->mul0, shape_dim(&c->shape, 0)));
    if (c->mul1)
        cJSON_AddItemToObject(json, "mul1",
                              numbers(c->mul1, shape_dim(&c->shape, 1)));
    return json;
}

/* ---- nodes ---- */

static void add_quant(cJSON *json, const Quant *q) {
    if (q->type == QUANT_NONE)
        return;
    cJSON *quant = cJSON_AddObjectToObject(json, "quant");
    cJSON_AddStringToObject(quant, "type", quant_type[q->type].name);
    cJSON_AddItemToObject(quant, "scale", number(q->scale));
    cJSON_AddNumberToObject(quant, "zero", q->zero);
    if (q->round != QUANT_UP)
        cJSON_AddStringToObject(quant, "round", quant_round_name[q->round]);
}

static void add_tensors(cJSON *json, const Graph *g, const Node *node) {
    cJSON *reads = cJSON_AddArrayToObject(json, "reads");
    for (uint32_t k = 0; k < node->n_in; k++)
        cJSON_AddItemToArray(
            reads, cJSON_CreateString(graph_tensor(g, node->in[k])->name));
    cJSON *writes = cJSON_AddArrayToObject(json, "writes");
    for (uint32_t k = 0; k < node->n_out; k++) {
        const Tensor *tensor = graph_tensor(g, node->out[k]);
        cJSON *out = cJSON_CreateObject();
        cJSON_AddStringToObject(out, "name", tensor->name);
        add_shape(out, &tensor->shape);
        add_quant(out, &tensor->quant);
        cJSON_AddItemToArray(writes, out);
    }
}

static void add_attributes(cJSON *json, Arena *arena, const Graph *g,
                           NodeId id) {
    const AttrPair *pair;
    uint32_t n = graph_attr_pairs(arena, g, id, &pair);
    cJSON *attributes = n ? cJSON_AddObjectToObject(json, "attributes") : NULL;
    for (uint32_t i = 0; i < n; i++)
        cJSON_AddItemToObject(attributes, pair[i].name,
                              pair[i].word ? cJSON_CreateString(pair[i].word)
                                           : numbers(pair[i].value, pair[i].n));
}

static void add_constants(cJSON *json, const Node *node) {
    cJSON *constants = cJSON_CreateObject();
    for (int role = 0; role < CONST_ROLES; role++)
        if (node->constant[role].i != NONE)
            cJSON_AddNumberToObject(constants, const_role_name[role],
                                    node->constant[role].i);
    if (constants->child)
        cJSON_AddItemToObject(json, "constants", constants);
    else
        cJSON_Delete(constants);
    if (node->no_bias)
        cJSON_AddTrueToObject(json, "no_bias");
}

static void add_names(cJSON *json, const Node *node) {
    if (node->conv_name)
        cJSON_AddStringToObject(json, "conv_name", node->conv_name);
    if (node->n_merged > 1) {
        cJSON *merged = cJSON_AddArrayToObject(json, "merged");
        for (uint32_t i = 0; i < node->n_merged; i++)
            cJSON_AddItemToArray(merged, cJSON_CreateString(node->merged[i]));
    }
    if (!node->loc.file)
        return;
    cJSON *at = cJSON_AddObjectToObject(json, "at");
    cJSON_AddStringToObject(at, "file", node->loc.file);
    cJSON_AddNumberToObject(at, "line", node->loc.line);
    cJSON_AddNumberToObject(at, "column", node->loc.col);
}

static cJSON *node_json(Arena *arena, const Graph *g, NodeId id) {
    const Node *node = graph_node(g, id);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "op", op_info[node->op].name);
    cJSON_AddStringToObject(json, "name", node->name);
    add_tensors(json, g, node);
    add_attributes(json, arena, g, id);
    add_constants(json, node);
    add_names(json, node);
    return json;
}

/* ---- the whole ---- */

/* Lists one item a line: neither all in one line nor each number in its own. */
static void print_list(Text *text, const char *key, cJSON *list) {
    text_addf(text, ",\n \"%s\": [", key);
    const cJSON *item;
    const char *before = "\n  ";
    cJSON_ArrayForEach(item, list) {
        text_add(text, before);
        text_add(text, json_print(text->arena, item, false));
        before = ",\n  ";
    }
    text_add(text, "]");
    json_free(list);
}

static cJSON *all_constants(const Graph *g, Text *weights) {
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < g->constant.n; i++)
        cJSON_AddItemToArray(list, constant(&g->constant.at[i], weights));
    return list;
}

static cJSON *all_nodes(Arena *arena, const Graph *g) {
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < g->node.n; i++)
        if (!g->node.at[i].dead)
            cJSON_AddItemToArray(list, node_json(arena, g, (NodeId){i}));
    return list;
}

static void add_string(Text *text, const char *key, const char *value) {
    cJSON *string = cJSON_CreateString(value);
    text_addf(text, ",\n \"%s\": %s", key,
              json_print(text->arena, string, false));
    json_free(string);
}

const char *graph_to_json(Arena *arena, const Graph *g, const char *weights,
                          Text *bytes) {
    Arena *scratch = arena_new("graph_to_json");
    Text text = text_new(scratch);
    cJSON *constants = all_constants(g, bytes);
    text_addf(&text, "{\"amphora\": %d", GRAPHJSON_VERSION);
    add_string(&text, "name", g->name);
    if (bytes->len)
        add_string(&text, "weights", weights);
    print_list(&text, "constants", constants);
    print_list(&text, "nodes", all_nodes(scratch, g));
    cJSON *outputs = cJSON_CreateArray();
    for (uint32_t i = 0; i < g->output.n; i++)
        cJSON_AddItemToArray(
            outputs,
            cJSON_CreateString(graph_tensor(g, g->output.at[i])->name));
    print_list(&text, "outputs", outputs);
    text_add(&text, "}\n");
    const char *json = arena_strdup(arena, text_str(&text));
    arena_free(scratch);
    return json;
}
