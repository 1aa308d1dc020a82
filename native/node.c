/* node.c - a node of a graph as a kernel; see native.h. */
#include "native/native.h"

Kernel native_kernel(Arena *arena, const Graph *g, NodeId id, const Operand *in,
                     const Operand *out) {
    const Node *node = graph_node(g, id);
    KernelConst *constant = ARENA_ARRAY(arena, KernelConst, CONST_ROLES);
    Kernel kernel = {.kind = op_info[node->op].name,
                     .n_in = node->n_in,
                     .n_out = node->n_out,
                     .in = in,
                     .out = out,
                     .constant = constant,
                     .over = -1};
    for (uint32_t role = 0; role < CONST_ROLES; role++)
        if (node->constant[role].i != NONE)
            constant[kernel.n_constants++] =
                (KernelConst){const_role_name[role],
                              graph_const(g, node->constant[role])->shape};
    kernel.n_attrs = graph_attr_pairs(arena, g, id, &kernel.attr);
    return kernel;
}
