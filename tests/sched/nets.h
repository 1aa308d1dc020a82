/* nets.h - random networks for tests of orders, and their machine. Include
 * behind cmocka.h. */
#ifndef TESTS_SCHED_NETS_H
#define TESTS_SCHED_NETS_H

#include "base/rng.h"
#include "sched/orders.h"

#include <string.h>

static inline const HwSpec *packed(Arena *arena) {
    Diag *diag = diag_new(arena);
    const HwSpec *spec =
        hwspec_load(arena, diag, "tests/sched/data/packed-16.yaml", 0, NULL);
    diag_print(diag, stderr);
    assert_non_null(spec);
    return spec;
}

static inline TensorId add(Graph *g, OpKind op, uint32_t n_in,
                           const TensorId *in, uint32_t channels,
                           uint32_t kernel) {
    Arena *arena = arena_new("add");
    Diag *diag = diag_new(arena);
    NodeId id = graph_add(g, op, "", (Loc){0}, n_in, in);
    Node *node = graph_node(g, id);
    for (uint32_t axis = 0; axis < 2; axis++) {
        if (op == OP_CONV) {
            node->attr.conv.out_c = channels;
            node->attr.conv.kernel[axis] = kernel;
            node->attr.conv.pad[axis] = kernel / 2;
            node->attr.conv.pad_end[axis] = kernel / 2;
        } else if (op == OP_POOL) {
            node->attr.pool.kernel[axis] = kernel;
            node->attr.pool.stride[axis] = 1;
            node->attr.pool.pad[axis] = kernel / 2;
            node->attr.pool.pad_end[axis] = kernel / 2;
        }
    }
    if (op == OP_CONCAT)
        node->attr.axis.axis = 1;
    TensorId out = graph_add_output(g, id, "");
    if (op == OP_INPUT)
        graph_tensor(g, out)->shape = shape_nchw(1, channels, kernel, kernel);
    if (!graph_infer(g, id, diag)) {
        diag_print(diag, stderr);
        fail();
    }
    arena_free(arena);
    return out;
}

static inline const Graph *random_graph(Arena *arena, uint64_t seed,
                                        uint32_t n) {
    Graph *g = graph_new(arena, "net");
    uint64_t at = 0;
    TensorId in[3], out = add(g, OP_INPUT, 0, NULL, 8, 4);
    bool used[64] = {false};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_tensors = g->tensor.n;
        for (uint32_t k = 0; k < 3; k++)
            in[k].i = (uint32_t)(rng_bits(seed, at++) % n_tensors);
        uint32_t kind = (uint32_t)(rng_bits(seed, at++) % 8);
        uint32_t c = 3 + (uint32_t)(rng_bits(seed, at++) % 30);
        bool alike = graph_tensor(g, in[0])->shape.dim[1] ==
                     graph_tensor(g, in[1])->shape.dim[1];
        bool parts = in[0].i && in[1].i && in[0].i != in[1].i &&
                     !used[in[0].i] && !used[in[1].i];
        if (kind == 0 && parts) {
            used[in[0].i] = used[in[1].i] = true;
            out = add(g, OP_CONCAT, 2, in, 0, 0);
        } else if (kind <= 3 && alike && in[0].i != in[1].i) {
            out = add(g, OP_ELTWISE, 2, in, 0, 0);
        } else if (kind == 4) {
            out = add(g, OP_POOL, 1, in, 0, 3);
        } else {
            out = add(g, OP_CONV, 1, in, rng_bits(seed, at++) % 2 ? 8 : c, 1);
        }
    }
    graph_mark_output(g, out);
    graph_verify(g, "test");
    return g;
}

#endif
