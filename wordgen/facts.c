/* facts.c - what a layer is, by names: docs/hwspec.md, "emit".
 *
 * A name that the hwspec does not have is left out.
 */
#include "wordgen/inside.h"

#include "graph/quant.h"
#include "passes/legal.h"

#include <math.h>
#include <string.h>

static void say(Emitter *e, const char *name, int64_t value) {
    template_set(&e->w.run, name, value);
}

static void say_of(Emitter *e, const char *what, const char *part,
                   int64_t value) {
    say(e, arena_printf(e->scratch, "%s.%s", what, part), value);
}

static void say_hw(Emitter *e, const char *what, const uint32_t hw[2]) {
    say_of(e, what, "h", hw[0]);
    say_of(e, what, "w", hw[1]);
}

/* ---- volumes ---- */

static void say_volume(Emitter *e, const char *what, TensorId tensor) {
    const Home *home = &e->home[tensor.i];
    uint32_t first;
    const Home *whole = &e->home[wordgen_whole(e, tensor, &first).i];
    say_of(e, what, "c", home->c);
    say_of(e, what, "h", home->h);
    say_of(e, what, "w", home->w);
    say_of(e, what, "part.c", whole->c);
    say_of(e, what, "part.start", first);
    const EmitPlace *place = &e->place[tensor.i];
    Volume volume = {whole->c, whole->h, whole->w, {0}};
    const Layout *layout = e->spec->memory[e->spec->backing].layout;
    say_of(e, what, "addr",
           place->there ? (int64_t)(place->at + layout_offset(layout, &volume,
                                                              first, 0, 0, 0))
                        : 0);
    const Quant *q = &graph_tensor(e->g, tensor)->quant;
    int32_t less = wordgen_less(e->spec, q);
    say_of(e, what, "zero", q->zero - less);
    say_of(e, what, "lo", quant_type[q->type].lo - less);
    say_of(e, what, "hi", quant_type[q->type].hi - less);
}

static void say_volumes(Emitter *e, const Node *node) {
    say_volume(e, "in", node->in[0]);
    say_volume(e, "in2", node->in[node->n_in > 1 ? 1 : 0]);
    say_volume(e, "out", node->out[0]);
    say(e, "operands", node->n_in);
}

/* ---- windows ---- */

/* Of an inner product the window is the whole operand. */
static ConvAttr conv_of(const Emitter *e, const Node *node) {
    const Home *in = &e->home[node->in[0].i];
    ConvAttr a = {.out_c = e->home[node->out[0].i].c,
                  .groups = 1,
                  .kernel = {1, 1},
                  .stride = {1, 1},
                  .dilation = {1, 1}};
    if (node_convolves(node))
        return node->attr.conv;
    const Shape *shape = &graph_tensor(e->g, node->in[0])->shape;
    if (node->op == OP_FC && shape->rank == 4) {
        a.kernel[0] = in->h;
        a.kernel[1] = in->w;
    }
    return a;
}

static PoolAttr pool_of(const Emitter *e, const Node *node) {
    PoolAttr a = {.kernel = {1, 1}, .stride = {1, 1}};
    if (node->op != OP_POOL && node->op != OP_CONV_POOL)
        return a;
    a = node->attr.pool;
    if (a.global) {
        a.kernel[0] = e->home[node->in[0].i].h;
        a.kernel[1] = e->home[node->in[0].i].w;
    }
    return a;
}

static void say_windows(Emitter *e, const Node *node) {
    ConvAttr conv = conv_of(e, node);
    PoolAttr pool = pool_of(e, node);
    const Home *in = &e->home[node->in[0].i], *out = &e->home[node->out[0].i];
    const uint32_t from[2] = {in->h, in->w};
    uint32_t mid[2] = {out->h, out->w};
    for (uint32_t k = 0; node->op == OP_CONV_POOL && k < 2; k++)
        mid[k] = conv_out_size(from[k], conv.kernel[k], conv.stride[k],
                               conv.dilation[k], conv.pad[k], conv.pad_end[k]);
    if (node->op == OP_POOL)
        memcpy(mid, from, sizeof mid);
    say_hw(e, "mid", mid);
    say(e, "mid.c", node->op == OP_CONV_POOL ? conv.out_c : out->c);
    say_hw(e, "kernel", conv.kernel);
    say_hw(e, "stride", conv.stride);
    say_hw(e, "dilation", conv.dilation);
    say_hw(e, "pad", conv.pad);
    say(e, "pad.bottom", conv.pad_end[0]);
    say(e, "pad.right", conv.pad_end[1]);
    say(e, "groups", conv.groups);
    say(e, "transposed", node->op == OP_DECONV);
    say(e, "group.c", conv.groups ? in->c / conv.groups : in->c);
    say_hw(e, "pool.kernel", pool.kernel);
    say_hw(e, "pool.stride", pool.stride);
    say_hw(e, "pool.pad", pool.pad);
    say(e, "pool.pad.bottom", pool.pad_end[0]);
    say(e, "pool.pad.right", pool.pad_end[1]);
    say(e, "pool.global", pool.global);
    say(e, "pool.on", node->op == OP_POOL || node->op == OP_CONV_POOL);
}

void wordgen_facts(Emitter *e, NodeId id, bool numbers) {
    const Node *node = graph_node(e->g, id);
    say_volumes(e, node);
    say_windows(e, node);
    writer_numbers(&e->w, node, numbers);
}
