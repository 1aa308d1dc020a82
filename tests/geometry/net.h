/* net.h - single layers for tests of geometry; both axes differ. Include behind
 * <cmocka.h>. */
#ifndef TESTS_GEOMETRY_NET_H
#define TESTS_GEOMETRY_NET_H

#include "base/rng.h"
#include "geometry/geometry.h"

#include <stdio.h>
#include <string.h>

typedef struct Net {
    Arena *arena;
    Diag *diag;
    Graph *g;
    TensorId input;
    NodeId node;
} Net;

static inline Net net_open(uint32_t c, uint32_t h, uint32_t w, OpKind op) {
    Net n = {.arena = arena_new("test")};
    n.diag = diag_new(n.arena);
    n.g = graph_new(n.arena, "net");
    NodeId data = graph_add(n.g, OP_INPUT, "data", (Loc){0}, 0, NULL);
    n.input = graph_add_output(n.g, data, "data");
    graph_tensor(n.g, n.input)->shape = shape_nchw(1, c, h, w);
    TensorId in[] = {n.input, n.input};
    n.node = graph_add(n.g, op, "x", (Loc){0}, op == OP_ELTWISE ? 2 : 1, in);
    return n;
}

static inline Node *net_node(const Net *n) {
    return graph_node(n->g, n->node);
}

/* Gives the node its output; false if its attributes do not allow any. */
static inline bool net_close(Net *n) {
    TensorId out = graph_add_output(n->g, n->node, "x");
    graph_mark_output(n->g, out);
    return graph_infer(n->g, n->node, n->diag);
}

typedef struct Dice {
    uint64_t seed, at;
} Dice;

/* lo..hi */
static inline uint32_t draw(Dice *d, uint32_t lo, uint32_t hi) {
    return lo + (uint32_t)(rng_bits(d->seed, d->at++) % (hi - lo + 1));
}

static inline ConvAttr draw_conv(Dice *d, uint32_t out_c) {
    ConvAttr a = {.out_c = out_c, .groups = 1};
    for (int i = 0; i < 2; i++) {
        a.kernel[i] = draw(d, 1, 4);
        a.stride[i] = draw(d, 1, 4);
        a.dilation[i] = draw(d, 1, 3);
        a.pad[i] = draw(d, 0, 3);
        a.pad_end[i] = draw(d, 0, 3);
    }
    return a;
}

static inline PoolAttr draw_pool(Dice *d) {
    PoolAttr a = {.kind = POOL_MAX, .ceil = draw(d, 0, 1)};
    a.global = draw(d, 0, 7) == 0;
    for (int i = 0; i < 2; i++) {
        a.kernel[i] = draw(d, 1, 4);
        a.stride[i] = draw(d, 1, 4);
        a.pad[i] = draw(d, 0, a.kernel[i] - 1);
        a.pad_end[i] = draw(d, 0, a.kernel[i] - 1);
    }
    return a;
}

#endif
