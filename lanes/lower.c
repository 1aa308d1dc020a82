/* lower.c - layers of the hardware from a network on codes.
 *
 * A chain of convolutions and inner products, each with pools in front, becomes
 * layers; processors count from 0, and volumes lie at both ends of the
 * memories in turn. A bias of the machine is one byte, 128 units of the sums:
 * the graph's biases are changed to the nearest ones, so that the graph says
 * what the machine computes.
 */
#include "lanes/inside.h"

#include "graph/quant.h"

#include <math.h>

typedef struct Lower {
    Arena *arena;
    Diag *diag;
    const LaneMachine *m;
    Graph *g;
    LaneNet *net;
    LaneLowered *out;
    LaneLayer next; /* the pool in front of it was read */
    uint32_t c, h, w;
} Lower;

static bool refuse(const Lower *l, const Node *node, const char *why) {
    diag_error(l->diag, node->loc, "layer \"%s\" (%s): %s", node->name,
               op_info[node->op].name, why);
    return false;
}

static LaneLayer fresh(const Node *node) {
    return (LaneLayer){.loc = node->loc,
                       .op = LANE_PASS,
                       .n_sources = 1,
                       .operands = 1,
                       .pool = {1, 1},
                       .pool_stride = 1,
                       .kernel = {1, 1},
                       .dilation = {1, 1},
                       .pool_first = true,
                       .bits = 8,
                       .width = 1,
                       .says_in_offset = true};
}

static void push(Lower *l, const Node *node) {
    LaneLayer *to = &l->net->layer[l->net->n];
    *to = l->next;
    to->source[0] = (int32_t)l->net->n++ - 1;
    uint32_t lanes = lanes_needed(l->arena, l->m, l->c);
    to->lanes = lanes >= 64 ? UINT64_MAX : ((uint64_t)1 << lanes) - 1;
    l->next = fresh(node);
}

static bool is_volume(const Lower *l, TensorId t) {
    uint32_t c, h, w;
    shape_chw(&graph_tensor(l->g, t)->shape, &c, &h, &w);
    return c == l->c && h == l->h && w == l->w;
}

static void set_volume(Lower *l, TensorId t) {
    shape_chw(&graph_tensor(l->g, t)->shape, &l->c, &l->h, &l->w);
    l->out->result = t;
}

/* Less their zero, are codes -128 to 127? */
static bool is_plain(const Quant *q) {
    return q->type != QUANT_NONE && quant_type[q->type].lo - q->zero == -128 &&
           quant_type[q->type].hi - q->zero == 127;
}

/* ---- pools ---- */

static bool lower_pool(Lower *l, const Node *node) {
    const PoolAttr *a = &node->attr.pool;
    const Quant *in = &graph_tensor(l->g, node->in[0])->quant;
    const Quant *out = &graph_tensor(l->g, node->out[0])->quant;
    uint32_t kernel[2] = {a->global ? l->h : a->kernel[0],
                          a->global ? l->w : a->kernel[1]};
    uint32_t stride = a->global ? 1 : a->stride[0];
    bool pads = !a->global &&
                (a->pad[0] || a->pad[1] || a->pad_end[0] || a->pad_end[1]);
    if (!is_plain(in) || !quant_equal(in, out) || node->act.kind != ACT_NONE)
        return refuse(l, node,
                      "a pool's result has the scale of its input, of codes "
                      "around 0");
    if (pads || kernel[0] > l->h || kernel[1] > l->w ||
        (!a->global && a->stride[1] != stride) || kernel[0] > 16 ||
        kernel[1] > 16 || stride > 16)
        return refuse(l, node,
                      "pools have no padding, one stride, and at most 16 rows "
                      "and columns");
    if (a->kind == POOL_AVG && !l->m->half_away)
        return refuse(l, node,
                      "averages are truncated: --set lanes.average=half_away, "
                      "with the vendor's --avg-pool-rounding");
    if (a->kind == POOL_AVG && in->zero)
        return refuse(l, node,
                      "averages of unsigned codes round otherwise: quantise to "
                      "int8, and give the network as JSON or TFLite");
    uint32_t c = l->c, h = (l->h - kernel[0]) / stride + 1,
             w = (l->w - kernel[1]) / stride + 1;
    if (l->next.pooled)
        push(l, node);
    l->next.pooled = true;
    l->next.average = a->kind == POOL_AVG;
    l->next.pool[0] = kernel[0];
    l->next.pool[1] = kernel[1];
    l->next.pool_stride = stride;
    set_volume(l, node->out[0]);
    return (l->c == c && l->h == h && l->w == w) ||
           refuse(l, node, "sizes behind a pool are rounded down");
}

/* ---- sums ---- */

static const double *codes_of(Lower *l, const Node *node, ConstRole role,
                              uint64_t *n) {
    Const codes = const_codes(graph_const(l->g, node->constant[role]));
    *n = shape_count(&codes.shape);
    double *out = ARENA_ARRAY(l->arena, double, *n + 1);
    const_read_f64(&codes, out);
    return out;
}

static bool lower_weights(Lower *l, const Node *node) {
    uint64_t n;
    const double *code = codes_of(l, node, CONST_WEIGHT, &n);
    int8_t *to = ARENA_ARRAY(l->arena, int8_t, n + 1);
    for (uint64_t i = 0; i < n; i++) {
        if (code[i] < -128 || code[i] > 127)
            return refuse(l, node, "weights are codes of 8 bits around 0");
        to[i] = (int8_t)code[i];
    }
    l->next.weight = to;
    return true;
}

/* The nearest biases that the machine has, here and in the graph. */
static void lower_bias(Lower *l, const Node *node) {
    ConstId id = node->constant[CONST_BIAS];
    uint64_t n;
    if (id.i == NONE)
        return;
    const double *code = codes_of(l, node, CONST_BIAS, &n);
    int8_t *to = ARENA_ARRAY(l->arena, int8_t, n + 1);
    int32_t *whole = ARENA_ARRAY(l->arena, int32_t, n + 1);
    for (uint64_t i = 0; i < n; i++) {
        double near = fmax(-128, fmin(127, floor(code[i] / 128 + 0.5)));
        to[i] = (int8_t)near;
        whole[i] = to[i] * 128;
        l->out->biases++;
        l->out->changed += fabs(code[i] - whole[i]) > 0;
    }
    Const *c = graph_const(l->g, id);
    c->kind = CONST_I32;
    c->data = whole;
    c->zero = 0;
    for (uint32_t i = 0; i < SHAPE_MAX_RANK; i++)
        c->order[i] = 0;
    l->next.bias = to;
    l->next.n_bias = (uint32_t)n;
}

static bool lower_numbers(Lower *l, const Node *node) {
    const QuantLayer q = quant_layer(l->arena, l->g, node);
    const char *advice =
        "wants codes of 8 bits around 0 and one scale, a power of two: "
        "amphora quantise --scales pow2 --zeros none --per tensor";
    if (q.rule != QUANT_SUMS || !q.n ||
        !is_plain(&graph_tensor(l->g, node->in[0])->quant) ||
        !is_plain(&graph_tensor(l->g, node->out[0])->quant))
        return refuse(l, node, advice);
    int exponent;
    double real = (double)quant_float(q.scale[0]);
    bool fine = frexp(real, &exponent) <= 0.5;
    for (uint32_t i = 1; i < q.n; i++)
        fine = fine && q.scale[i].factor == q.scale[0].factor &&
               q.scale[i].shift == q.scale[0].shift;
    if (!fine)
        return refuse(l, node, advice);
    int32_t lo = q.lo - q.zero_out;
    if (q.hi - q.zero_out != 127 || (lo != -128 && lo != 0))
        return refuse(l, node, "the only activation is ReLU");
    l->next.act = lo == 0 ? LANE_RELU : LANE_PLAIN;
    l->next.shift = exponent - 1 + 7;
    if (!lower_weights(l, node))
        return false;
    lower_bias(l, node);
    return true;
}

static bool lower_conv(Lower *l, const Node *node) {
    const ConvAttr *a = &node->attr.conv;
    bool even = a->pad[0] == a->pad_end[0] && a->pad[1] == a->pad_end[1] &&
                a->pad[0] == a->pad[1];
    if (!is_volume(l, node->in[0]))
        return refuse(l, node, "reads another volume than the layer before");
    if (a->groups != 1 || a->stride[0] != 1 || a->stride[1] != 1 ||
        a->dilation[0] != 1 || a->dilation[1] != 1 || !even)
        return refuse(l, node,
                      "convolutions have no stride, dilation and groups, and "
                      "the same padding on all sides");
    if (!lower_numbers(l, node))
        return false;
    l->next.op = LANE_CONV2D;
    l->next.in_c = l->c;
    l->next.out_c = a->out_c;
    for (int k = 0; k < 2; k++) {
        l->next.kernel[k] = a->kernel[k];
        l->next.pad[k] = a->pad[k];
    }
    push(l, node);
    set_volume(l, node->out[0]);
    return true;
}

static bool lower_fc(Lower *l, const Node *node) {
    uint64_t n = shape_count(&graph_tensor(l->g, node->in[0])->shape);
    if (n != (uint64_t)l->c * l->h * l->w)
        return refuse(l, node, "reads another volume than the layer before");
    bool flattens = (uint64_t)l->h * l->w != 1;
    if (flattens && l->next.pooled)
        push(l, node); /* a layer that flattens does not pool */
    if (!lower_numbers(l, node))
        return false;
    l->next.op = LANE_LINEAR;
    l->next.flatten = flattens;
    l->next.in_c = (uint32_t)n;
    l->next.out_c = node->attr.fc.out;
    push(l, node);
    set_volume(l, node->out[0]);
    return true;
}

/* ---- the chain ---- */

static bool lower_input(Lower *l, const Node *node) {
    if (l->out->result.i != NONE)
        return refuse(l, node, "networks of one input");
    l->out->input = node->out[0];
    set_volume(l, node->out[0]);
    l->net->in_c = l->c;
    l->net->in[0] = l->h;
    l->net->in[1] = l->w;
    return true;
}

/* The same codes in another shape; real numbers at both ends become codes, and
 * codes these, outside. */
static bool lower_rename(Lower *l, const Node *node) {
    const Quant *in = &graph_tensor(l->g, node->in[0])->quant;
    const Quant *out = &graph_tensor(l->g, node->out[0])->quant;
    bool first = l->out->input.i == node->in[0].i;
    if (node->n_out == 1 && first && in->type == QUANT_NONE && is_plain(out)) {
        l->out->input = l->out->result = node->out[0];
        return true;
    }
    if (node->n_out == 1 && out->type == QUANT_NONE && is_plain(in) &&
        graph_tensor(l->g, node->out[0])->is_output)
        return true;
    l->out->result = node->out[0];
    return (node->n_out == 1 && quant_equal(in, out)) ||
           refuse(l, node, "only the same codes in another shape");
}

/* ReLU of the codes that a layer has just made. */
static bool lower_act(Lower *l, const Node *node) {
    const Quant *in = &graph_tensor(l->g, node->in[0])->quant;
    const Quant *out = &graph_tensor(l->g, node->out[0])->quant;
    LaneLayer *last = l->net->n ? &l->net->layer[l->net->n - 1] : NULL;
    if (!last || l->next.pooled || last->op == LANE_PASS ||
        node->act.kind != ACT_RELU || !is_plain(out) || !quant_equal(in, out))
        return refuse(l, node,
                      "the only activation is ReLU behind conv or fc, on "
                      "codes of one scale");
    last->act = LANE_RELU;
    l->out->result = node->out[0];
    return true;
}

static bool lower_node(Lower *l, const Node *node) {
    if (node->op == OP_INPUT)
        return lower_input(l, node);
    if (node->n_in != 1 || node->in[0].i != l->out->result.i)
        return refuse(l, node, "only chains of layers are taken");
    if (node->op == OP_CONV)
        return lower_conv(l, node);
    if (node->op == OP_FC)
        return lower_fc(l, node);
    if (node->op == OP_POOL)
        return is_volume(l, node->in[0])
                   ? lower_pool(l, node)
                   : refuse(l, node, "reads another volume than it is given");
    if (node->op == OP_ACT)
        return lower_act(l, node);
    if (node->op == OP_RESHAPE || node->op == OP_IDENTITY)
        return lower_rename(l, node);
    return refuse(l, node, "no layer of this machine: only conv, pool and fc");
}

/* Volumes at both ends of the memories in turn. */
static void spread(const LaneMachine *m, LaneNet *net) {
    for (uint32_t i = 0; i < net->n; i++) {
        LaneLayer *l = &net->layer[i];
        uint64_t size = lanes_out_bytes(m, net, i);
        bool high = i % 2 == 0 && size <= m->bank_bytes;
        l->in_offset = i ? net->layer[i - 1].out_offset : 0;
        l->out_offset = high ? (uint32_t)((m->bank_bytes - size) / 4 * 4) : 0;
    }
}

LaneNet *lanes_lower(Arena *arena, Diag *diag, const LaneMachine *m, Graph *g,
                     LaneLowered *out) {
    LaneNet *net = ARENA_NEW(arena, LaneNet);
    *net = (LaneNet){.arch = g->name,
                     .dataset = "none",
                     .layer = ARENA_ARRAY(arena, LaneLayer, 2 * g->node.n + 2)};
    *out = (LaneLowered){.result = NO_TENSOR, .input = NO_TENSOR};
    Lower l = {
        .arena = arena, .diag = diag, .m = m, .g = g, .net = net, .out = out};
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (i == 0)
            l.next = fresh(node);
        if (!lower_node(&l, node))
            return NULL;
    }
    if (l.next.pooled)
        push(&l, &g->node.at[g->node.n - 1]);
    if (!net->n)
        diag_error(diag, (Loc){0}, "there are no layers");
    if (!net->n || !lanes_shapes(arena, diag, m, net))
        return NULL;
    spread(m, net);
    return net;
}
