/* text.c - a graph as text, one node a line; text_read.c reads it back.
 *
 *     graph "net"
 *     const 0 seeded 4x3x3x3 seed=0x00c0ffee mean=0 spread=0.47
 *     const 1 f32 4 # 0123456789abcdef
 *     input "data" writes="data":1x3x8x8 at="net.prototxt":1:1
 *     conv "conv1" reads="data" writes="conv1":1x4x8x8 out_c=4 kernel=3,3 ...
 * weight=0 output "conv1"
 *
 * A quantised tensor has its type, scale and zero behind the shape, as in
 * "conv1":1x4x8x8:int8:0.25:-128, and ":even" where halves do not go up. A
 * line is a word, then values and key=value
 * fields; a field has one value or several with commas between; # starts a
 * comment. Values of a constant with data are not told, only their checksum.
 * Dead nodes are left out.
 */
#include "graph/graph.h"

#include "base/plain.h"

#include <inttypes.h>
#include <stdlib.h>

static void add_string(Text *text, const char *string) {
    text_add(text, "\"");
    for (size_t n; *string; string += n ? n : 1) {
        n = *string == '"' || *string == '\\' ? 0 : plain_length(string);
        if (n)
            text_add_n(text, string, n);
        else
            text_addf(text, "\\x%02x", (unsigned char)*string);
    }
    text_add(text, "\"");
}

/* The shortest of 15 to 17 digits that reads back as the same number. */
static void add_number(Text *text, double value) {
    char digits[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) >= value && strtod(digits, NULL) <= value)
            break;
    }
    text_add(text, digits);
}

static void add_numbers(Text *text, const char *key, const double *value,
                        uint32_t n) {
    text_addf(text, " %s=", key);
    for (uint32_t i = 0; i < n; i++) {
        text_add(text, i ? "," : "");
        add_number(text, value[i]);
    }
}

static void add_shape(Text *text, const Shape *shape) {
    for (uint32_t i = 0; i < shape->rank; i++)
        text_addf(text, i ? "x%u" : "%u", shape->dim[i]);
}

/* ---- constants ---- */

static uint64_t mix_bytes(uint64_t sum, const void *bytes, uint64_t n) {
    const unsigned char *byte = bytes;
    for (uint64_t i = 0; bytes && i < n; i++)
        sum = (sum ^ byte[i]) * UINT64_C(0x100000001B3);
    return sum;
}

static uint64_t checksum(const Const *c) {
    uint64_t sum =
        mix_bytes(UINT64_C(0xCBF29CE484222325), c->data, const_data_bytes(c));
    if (const_has_order(c))
        sum = mix_bytes(sum, c->order, c->shape.rank);
    sum = mix_bytes(sum, c->mul0, shape_dim(&c->shape, 0) * sizeof *c->mul0);
    return mix_bytes(sum, c->mul1, shape_dim(&c->shape, 1) * sizeof *c->mul1);
}

static void add_order(Text *text, const Const *c) {
    double order[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < c->shape.rank; i++)
        order[i] = c->order[i];
    add_numbers(text, "order", order, c->shape.rank);
}

static void add_const(Text *text, uint32_t id, const Const *c) {
    text_addf(text, "const %u %s ", id, const_kind_word(c->kind));
    add_shape(text, &c->shape);
    if (c->kind != CONST_SEEDED) {
        text_addf(text, " # %016" PRIx64 "\n", checksum(c));
        return;
    }
    text_addf(text, " seed=0x%016" PRIx64, c->seed);
    add_numbers(text, "mean", &c->mean, 1);
    add_numbers(text, "spread", &c->spread, 1);
    if (c->groups > 1)
        text_addf(text, " groups=%u", c->groups);
    if (const_has_order(c))
        add_order(text, c);
    if (c->mul0)
        add_numbers(text, "mul0", c->mul0, shape_dim(&c->shape, 0));
    if (c->mul1)
        add_numbers(text, "mul1", c->mul1, shape_dim(&c->shape, 1));
    text_add(text, "\n");
}

/* ---- nodes ---- */

static void add_quant(Text *text, const Quant *q) {
    if (q->type == QUANT_NONE)
        return;
    text_addf(text, ":%s:", quant_type[q->type].name);
    add_number(text, q->scale);
    text_addf(text, ":%d", q->zero);
    if (q->round != QUANT_UP)
        text_addf(text, ":%s", quant_round_name[q->round]);
}

static void add_tensors(Text *text, const Graph *g, const Node *node) {
    for (uint32_t k = 0; k < node->n_in; k++) {
        text_add(text, k ? "," : " reads=");
        add_string(text, graph_tensor(g, node->in[k])->name);
    }
    for (uint32_t k = 0; k < node->n_out; k++) {
        text_add(text, k ? "," : " writes=");
        add_string(text, graph_tensor(g, node->out[k])->name);
        text_add(text, ":");
        add_shape(text, &graph_tensor(g, node->out[k])->shape);
        add_quant(text, &graph_tensor(g, node->out[k])->quant);
    }
}

static void add_attributes(Text *text, const Graph *g, NodeId id) {
    Arena *scratch = arena_new("graph_print");
    const AttrPair *pair;
    uint32_t n = graph_attr_pairs(scratch, g, id, &pair);
    for (uint32_t i = 0; i < n; i++)
        if (pair[i].word)
            text_addf(text, " %s=%s", pair[i].name, pair[i].word);
        else
            add_numbers(text, pair[i].name, pair[i].value, pair[i].n);
    arena_free(scratch);
}

static void add_constants(Text *text, const Node *node) {
    for (int role = 0; role < CONST_ROLES; role++)
        if (node->constant[role].i != NONE)
            text_addf(text, " %s=%u", const_role_name[role],
                      node->constant[role].i);
    if (node->no_bias)
        text_add(text, " no_bias=1");
}

static void add_origins(Text *text, const Graph *g, const Node *node) {
    bool any = false;
    for (uint32_t k = 0; k < node->n_out; k++)
        any |= graph_tensor(g, node->out[k])->origin.i != NONE;
    for (uint32_t k = 0; any && k < node->n_out; k++) {
        uint32_t origin = graph_tensor(g, node->out[k])->origin.i;
        text_add(text, k ? "," : " origin=");
        if (origin == NONE)
            text_add(text, "none");
        else
            text_addf(text, "%u", origin);
    }
}

static void add_names(Text *text, const Node *node) {
    if (node->conv_name) {
        text_add(text, " conv_name=");
        add_string(text, node->conv_name);
    }
    for (uint32_t i = 0; node->n_merged > 1 && i < node->n_merged; i++) {
        text_add(text, i ? "," : " merged=");
        add_string(text, node->merged[i]);
    }
    if (node->loc.file) {
        text_add(text, " at=");
        add_string(text, node->loc.file);
        text_addf(text, ":%u:%u", node->loc.line, node->loc.col);
    }
}

static void add_node(Text *text, const Graph *g, NodeId id) {
    const Node *node = graph_node(g, id);
    text_addf(text, "%s ", op_info[node->op].name);
    add_string(text, node->name);
    add_tensors(text, g, node);
    add_attributes(text, g, id);
    add_constants(text, node);
    add_origins(text, g, node);
    add_names(text, node);
    text_add(text, "\n");
}

const char *graph_print(Arena *arena, const Graph *g) {
    Text text = text_new(arena);
    text_add(&text, "graph ");
    add_string(&text, g->name);
    text_add(&text, "\n");
    for (uint32_t i = 0; i < g->constant.n; i++)
        add_const(&text, i, &g->constant.at[i]);
    for (uint32_t i = 0; i < g->node.n; i++)
        if (!g->node.at[i].dead)
            add_node(&text, g, (NodeId){i});
    for (uint32_t i = 0; i < g->output.n; i++) {
        text_add(&text, "output ");
        add_string(&text, graph_tensor(g, g->output.at[i])->name);
        text_add(&text, "\n");
    }
    return text_str(&text);
}
