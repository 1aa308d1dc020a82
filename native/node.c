/* node.c - a node of a graph as a kernel; see native.h. */
#include "native/codes.h"
#include "native/native.h"

#include "graph/quant.h"

#include <string.h>

static void add_all(const Graph *g, const Node *node, Constants *to) {
    for (uint32_t role = 0; role < CONST_ROLES; role++)
        if (node->constant[role].i != NONE) {
            const Const *value = graph_const(g, node->constant[role]);
            to->is[to->n] =
                (KernelConst){const_role_name[role], value->shape, CONST_F32};
            to->value[to->n++] = *value;
        }
}

/* Around an image of codes is the code of the number that the node says. */
static void code_padding(Arena *arena, const Quant *q, Kernel *kernel) {
    AttrPair *attr = ARENA_COPY(arena, AttrPair, kernel->attr, kernel->n_attrs);
    double *code = ARENA_NEW(arena, double);
    *code = quant_code(q, kernel_number(kernel, "value", 0, 0));
    for (uint32_t i = 0; i < kernel->n_attrs; i++)
        if (strcmp(attr[i].name, "value") == 0)
            attr[i].value = code;
    kernel->attr = attr;
}

static void add_quant(Arena *arena, const Graph *g, const Node *node,
                      Kernel *kernel, Constants *to) {
    QuantLayer *layer = ARENA_NEW(arena, QuantLayer);
    *layer = quant_layer(arena, g, node);
    kernel->quant = layer;
    if (layer->rule == QUANT_SUMS)
        codes_sums(arena, g, node, layer, to);
    else if (layer->rule == QUANT_TABLE)
        codes_table(layer, to);
    else
        add_all(g, node, to);
    if (layer->rule == QUANT_REALS)
        codes_tables(arena, g, node, to);
    else if (node->op == OP_PAD)
        code_padding(arena, &graph_tensor(g, node->in[0])->quant, kernel);
}

Kernel native_kernel(Arena *arena, const Graph *g, NodeId id, const Operand *in,
                     const Operand *out, const Const **values) {
    const Node *node = graph_node(g, id);
    Constants constants = {0, ARENA_ARRAY(arena, KernelConst, MOST_CONSTANTS),
                           ARENA_ARRAY(arena, Const, MOST_CONSTANTS)};
    Kernel kernel = {.kind = op_info[node->op].name,
                     .n_in = node->n_in,
                     .n_out = node->n_out,
                     .in = in,
                     .out = out,
                     .over = -1};
    kernel.n_attrs = graph_attr_pairs(arena, g, id, &kernel.attr);
    if (quant_is_at(g, node))
        add_quant(arena, g, node, &kernel, &constants);
    else
        add_all(g, node, &constants);
    kernel.n_constants = constants.n;
    kernel.constant = constants.is;
    *values = constants.value;
    return kernel;
}
