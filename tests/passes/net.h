/* net.h - small networks and machines for the tests of passes. */
#ifndef TESTS_PASSES_NET_H
#define TESTS_PASSES_NET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/pass.h"

/* ---- one test's world ---- */

typedef struct Net {
    Arena *arena, *scratch;
    Diag *diag;
    Graph *g, *original;
} Net;

static inline Net net_new(void) {
    Net net = {.arena = arena_new("test"), .scratch = arena_new("scratch")};
    net.diag = diag_new(net.arena);
    net.g = graph_new(net.arena, "net");
    return net;
}

static inline void net_free(Net *net) {
    arena_free(net->arena);
    arena_free(net->scratch);
}

static inline const HwSpec *net_spec(Net *net, const char *target,
                                     const char *path, const char *value) {
    HwSetting setting = {path, value};
    const HwSpec *spec =
        hwspec_load(net->arena, net->diag, target, path != NULL, &setting);
    if (!spec)
        diag_print(net->diag, stderr);
    assert_non_null(spec);
    return spec;
}

/* ---- building ---- */

static inline TensorId net_add_act(Net *net, OpKind op, const char *name,
                                   uint32_t n_in, const TensorId *in,
                                   const Attrs *attr, Act act) {
    NodeId id = graph_add(net->g, op, name, (Loc){0}, n_in, in);
    if (attr)
        graph_node(net->g, id)->attr = *attr;
    graph_node(net->g, id)->act = act;
    TensorId out = graph_add_output(net->g, id, name);
    if (!graph_infer(net->g, id, net->diag))
        diag_print(net->diag, stderr);
    assert_int_equal(diag_errors(net->diag), 0);
    return out;
}

static inline TensorId net_add(Net *net, OpKind op, const char *name,
                               uint32_t n_in, const TensorId *in,
                               const Attrs *attr) {
    return net_add_act(net, op, name, n_in, in, attr, (Act){0});
}

static inline TensorId net_input(Net *net, uint32_t c, uint32_t h, uint32_t w) {
    NodeId id = graph_add(net->g, OP_INPUT, "data", (Loc){0}, 0, NULL);
    TensorId out = graph_add_output(net->g, id, "data");
    graph_tensor(net->g, out)->shape = shape_nchw(1, c, h, w);
    return out;
}

static inline TensorId net_one(Net *net, OpKind op, const char *name,
                               TensorId in) {
    return net_add(net, op, name, 1, &in, NULL);
}

static inline Attrs conv_attr(uint32_t out_c, uint32_t kernel, uint32_t stride,
                              uint32_t pad, uint32_t groups) {
    Attrs attr = {0};
    attr.conv = (ConvAttr){
        .out_c = out_c,
        .groups = groups,
        .kernel = {kernel, kernel},
        .stride = {stride, stride},
        .dilation = {1, 1},
        .pad = {pad, pad},
        .pad_end = {pad, pad},
    };
    return attr;
}

static inline TensorId net_conv(Net *net, const char *name, TensorId in,
                                uint32_t out_c, uint32_t kernel,
                                uint32_t stride, uint32_t pad,
                                uint32_t groups) {
    Attrs attr = conv_attr(out_c, kernel, stride, pad, groups);
    return net_add(net, OP_CONV, name, 1, &in, &attr);
}

static inline TensorId net_pool(Net *net, const char *name, TensorId in,
                                PoolKind kind, uint32_t kernel, uint32_t stride,
                                uint32_t pad, bool ceil) {
    Attrs attr = {0};
    attr.pool = (PoolAttr){
        .kind = kind,
        .ceil = ceil,
        .count_pad = true,
        .kernel = {kernel, kernel},
        .stride = {stride, stride},
        .pad = {pad, pad},
        .pad_end = {pad, pad},
    };
    return net_add(net, OP_POOL, name, 1, &in, &attr);
}

static inline TensorId net_bn(Net *net, const char *name, TensorId in) {
    Attrs attr = {.bn = {1e-3}};
    return net_add(net, OP_BN, name, 1, &in, &attr);
}

static inline TensorId net_act(Net *net, const char *name, TensorId in,
                               ActKind kind) {
    return net_add_act(net, OP_ACT, name, 1, &in, NULL,
                       (Act){kind, 0.125, -0.25, 0.5});
}

static inline TensorId net_fc(Net *net, const char *name, TensorId in,
                              uint32_t out) {
    Attrs attr = {.fc = {out}};
    return net_add(net, OP_FC, name, 1, &in, &attr);
}

static inline TensorId net_concat(Net *net, const char *name, uint32_t n,
                                  const TensorId *in) {
    Attrs attr = {.axis = {.axis = 1}};
    return net_add(net, OP_CONCAT, name, n, in, &attr);
}

static inline TensorId net_eltwise(Net *net, const char *name, EltKind kind,
                                   uint32_t n, const TensorId *in) {
    Attrs attr = {.elt = {kind, NULL}};
    return net_add(net, OP_ELTWISE, name, n, in, &attr);
}

static inline void net_output(Net *net, TensorId tensor) {
    graph_mark_output(net->g, tensor);
}

/* ---- running ---- */

/* Seeds what is missing and keeps the graph as it is now. */
static inline void net_seal(Net *net) {
    graph_seed_constants(net->g, 7);
    graph_mark_original(net->g);
    graph_verify(net->g, "test");
    net->original = graph_clone(net->arena, net->g);
}

static inline void net_passes(Net *net, const HwSpec *spec) {
    PassContext context = {
        .spec = spec, .diag = net->diag, .scratch = net->scratch};
    bool ok = passes_run(net->g, &context, NULL, NULL, NULL);
    if (!ok)
        diag_print(net->diag, stderr);
    assert_true(ok);
}

static inline void net_run(Net *net, const HwSpec *spec) {
    net_seal(net);
    net_passes(net, spec);
}

/* ---- looking ---- */

static inline NodeId net_find(const Net *net, const char *name) {
    for (uint32_t i = 0; i < net->g->node.n; i++)
        if (!strcmp(net->g->node.at[i].name, name))
            return (NodeId){i};
    fail_msg("no node is named %s", name);
    return NO_NODE;
}

static inline const Node *net_node(const Net *net, const char *name) {
    return graph_node(net->g, net_find(net, name));
}

/* "input data; conv c1; ..." in order. */
static inline const char *net_names(const Net *net) {
    const char *text = "";
    for (uint32_t i = 0; i < net->g->node.n; i++)
        text = arena_printf(net->arena, "%s%s%s %s", text, i ? "; " : "",
                            op_info[net->g->node.at[i].op].name,
                            net->g->node.at[i].name);
    return text;
}

static inline double biggest(const float *at, uint64_t n) {
    double most = 0;
    for (uint64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)at[i]));
    return most;
}

/* Values agree, relative to the tensor's largest. */
static inline void compare_values(const char *name, const float *a,
                                  const float *b, uint64_t n) {
    double scale = fmax(biggest(a, n), 1e-6);
    for (uint64_t i = 0; i < n; i++) {
        double error = fabs((double)a[i] - (double)b[i]) / scale;
        if (!(error < 2e-5))
            fail_msg("%s[%llu]: %g became %g", name, (unsigned long long)i,
                     (double)a[i], (double)b[i]);
    }
}

/* Every tensor with an origin, and every output, has its old values. Returns
 * how many were compared. */
static inline uint32_t net_compare(const Net *net) {
    uint32_t n, compared = 0;
    const float *const *inputs =
        graph_seed_inputs(net->arena, net->original, 3, &n);
    Values before = graph_eval(net->arena, net->original, n, inputs);
    Values after = graph_eval(net->arena, net->g, n, inputs);
    for (uint32_t t = 0; t < net->g->tensor.n; t++) {
        const Tensor *tensor = &net->g->tensor.at[t];
        if (tensor->origin.i == NONE)
            continue;
        const Tensor *was = graph_tensor(net->original, tensor->origin);
        assert_int_equal(shape_count(&was->shape), shape_count(&tensor->shape));
        compare_values(tensor->name, before.at[tensor->origin.i], after.at[t],
                       shape_count(&was->shape));
        compared++;
    }
    assert_int_equal(net->g->output.n, net->original->output.n);
    for (uint32_t i = 0; i < net->g->output.n; i++) {
        const Tensor *was =
            graph_tensor(net->original, net->original->output.at[i]);
        const Tensor *is = graph_tensor(net->g, net->g->output.at[i]);
        assert_string_equal(is->name, was->name);
        assert_int_equal(is->origin.i, net->original->output.at[i].i);
        assert_int_equal(shape_count(&is->shape), shape_count(&was->shape));
    }
    return compared;
}

#endif
