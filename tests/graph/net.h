/* net.h - small networks for the tests of graph/. */
#ifndef TESTS_GRAPH_NET_H
#define TESTS_GRAPH_NET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/graph.h"

typedef struct Net {
    Arena *arena;
    Diag *diag;
    Graph *g;
} Net;

static inline Net net_new(void) {
    Net net = {.arena = arena_new("test")};
    net.diag = diag_new(net.arena);
    net.g = graph_new(net.arena, "net");
    return net;
}

static inline void net_free(Net *net) {
    arena_free(net->arena);
}

/* A node of one input on line `id + 1` of net.prototxt. */
static inline NodeId net_node(Net *net, OpKind op, const char *name,
                              uint32_t n_in, const TensorId *in) {
    Loc loc = {"net.prototxt", net->g->node.n + 1, 1};
    return graph_add(net->g, op, name, loc, n_in, in);
}

static inline NodeId net_node1(Net *net, OpKind op, const char *name,
                               TensorId in) {
    return net_node(net, op, name, 1, &in);
}

static inline TensorId net_input(Net *net, const char *name, Shape shape) {
    NodeId node = net_node(net, OP_INPUT, name, 0, NULL);
    TensorId out = graph_add_output(net->g, node, name);
    graph_tensor(net->g, out)->shape = shape;
    return out;
}

/* The node's output, its shape inferred; attributes must be set. */
static inline TensorId net_out(Net *net, NodeId node) {
    TensorId out =
        graph_add_output(net->g, node, graph_node(net->g, node)->name);
    if (!graph_infer(net->g, node, net->diag))
        fail_msg("%s", diag_at(net->diag, 0)->text);
    return out;
}

/* A 3x3 convolution that keeps height and width, with a fused activation. */
static inline TensorId net_conv(Net *net, const char *name, TensorId in,
                                uint32_t out_c, ActKind act) {
    NodeId id = net_node1(net, OP_CONV, name, in);
    Node *node = graph_node(net->g, id);
    ConvAttr *conv = &node->attr.conv;
    conv->out_c = out_c;
    for (int i = 0; i < 2; i++) {
        conv->kernel[i] = 3;
        conv->pad[i] = conv->pad_end[i] = 1;
    }
    node->act.kind = act;
    return net_out(net, id);
}

static inline TensorId net_add(Net *net, const char *name, TensorId a,
                               TensorId b) {
    return net_out(net, net_node(net, OP_ELTWISE, name, 2, (TensorId[]){a, b}));
}

static inline TensorId net_act(Net *net, const char *name, TensorId in,
                               ActKind kind) {
    NodeId id = net_node1(net, OP_ACT, name, in);
    graph_node(net->g, id)->act.kind = kind;
    return net_out(net, id);
}

/* A network's layers in order, as "a b c". */
static inline const char *net_order(const Net *net) {
    const char *order = "";
    for (uint32_t i = 0; i < net->g->node.n; i++)
        order = arena_printf(net->arena, "%s%s%s", order, i ? " " : "",
                             net->g->node.at[i].name);
    return order;
}

#endif
