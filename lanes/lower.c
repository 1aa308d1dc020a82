/* lower.c - layers of the hardware from a network on codes.
 *
 * Each tensor has a front: layers to read, their sum, and a pool, which the
 * next layer does to its input before all else. What one layer cannot do in
 * front becomes a layer of its own. Codes are moved, added by powers of two and
 * cut by convolutions of one pixel; strides are pools of one pixel behind. A
 * bias of the machine is one byte, 128 units of the sums: the graph's biases
 * are changed to the nearest ones, so that the graph says what the machine
 * computes.
 */
#include "lanes/lower.h"

#include "lanes/kernels.h"

#include <math.h>

bool low_refuse(const Lower *l, const Node *node, const char *why) {
    diag_error(l->diag, node->loc, "layer \"%s\" (%s): %s", node->name,
               op_info[node->op].name, why);
    return false;
}

bool low_is_plain(const Quant *q) {
    return q->type != QUANT_NONE && quant_type[q->type].lo - q->zero == -128 &&
           quant_type[q->type].hi - q->zero == 127;
}

LaneLayer low_fresh(const Node *node, int32_t source) {
    return (LaneLayer){.loc = node->loc,
                       .op = LANE_PASS,
                       .n_sources = 1,
                       .source = {source},
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

void low_set(Lower *l, TensorId t, const LaneLayer *front) {
    Value *v = &l->value[t.i];
    v->front = *front;
    v->set = true;
    shape_chw(&graph_tensor(l->g, t)->shape, &v->c, &v->size[0], &v->size[1]);
    if (l->turned) {
        uint32_t w = v->size[1];
        v->size[1] = v->size[0];
        v->size[0] = w;
    }
    l->out->result = t;
}

static int32_t push(Lower *l, const LaneLayer *layer) {
    l->net->layer[l->net->n++] = *layer;
    return (int32_t)l->net->n - 1;
}

void low_make(Lower *l, const Node *node, const LaneLayer *layer, TensorId t) {
    LaneLayer front = low_fresh(node, push(l, layer));
    low_set(l, t, &front);
}

/* A layer of its own for what stands in front, if anything does. Pools of
 * volumes of several passes need a convolution. */
bool low_settle(Lower *l, const Node *node, TensorId t) {
    static const double one = 1;
    Value *v = &l->value[t.i];
    LaneLayer layer = v->front;
    bool many =
        lanes_passes(l->arena, l->m, v->c) > 1 && v->size[0] * v->size[1] > 1;
    if (is_one(&v->front))
        return true;
    if (many && pools(&layer) && !kernels_sum(l->arena, v->c, 1, &one, &layer))
        return low_refuse(l, node, "too many channels to be pooled");
    v->front = low_fresh(node, push(l, &layer));
    return true;
}

bool low_share(Lower *l, const Node *node, TensorId t) {
    return l->uses[t.i] <= 1 || low_settle(l, node, t);
}

static uint32_t along(const Lower *l, const uint32_t pair[2], int axis) {
    return pair[l->turned ? 1 - axis : axis];
}

/* ---- pools ---- */

static bool lower_pool(Lower *l, const Node *node) {
    const PoolAttr *a = &node->attr.pool;
    const Quant *in = quant_of(l, node->in[0]);
    Value *v = &l->value[node->in[0].i];
    bool pads = !a->global &&
                (a->pad[0] || a->pad[1] || a->pad_end[0] || a->pad_end[1]);
    bool average = a->kind == POOL_AVG;
    uint32_t kernel[2], size[2],
        stride = a->global ? 1 : along(l, a->stride, 0);
    bool fine =
        a->global || v->size[1] == 1 || along(l, a->stride, 1) == stride;
    for (int k = 0; k < 2; k++) {
        kernel[k] = a->global ? v->size[k] : along(l, a->kernel, k);
        fine = fine && kernel[k] <= v->size[k] && kernel[k] <= 16;
        size[k] = fine && stride ? (v->size[k] - kernel[k]) / stride + 1 : 0;
    }
    if (!low_is_plain(in) || !quant_equal(in, quant_of(l, node->out[0])) ||
        node->act.kind != ACT_NONE)
        return low_refuse(
            l, node,
            "a pool's result has the scale of its input, of codes "
            "around 0");
    if (pads || !fine || stride > 16)
        return low_refuse(
            l, node,
            "pools have no padding, one stride, and at most 16 rows "
            "and columns");
    if (average && !l->m->half_away)
        return low_refuse(
            l, node,
            "averages are truncated: --set lanes.average=half_away, "
            "with the vendor's --avg-pool-rounding");
    if (average && in->zero)
        return low_refuse(
            l, node,
            "averages of unsigned codes round otherwise: quantise to "
            "int8, and give the network as JSON or TFLite");
    if ((pools(&v->front) || v->front.operands > 2) &&
        !low_settle(l, node, node->in[0]))
        return false;
    LaneLayer front = v->front;
    front.pool_first = front.elt == LANE_ALONE;
    front.pooled = true;
    front.average = average;
    front.pool[0] = kernel[0];
    front.pool[1] = kernel[1];
    front.pool_stride = stride;
    low_set(l, node->out[0], &front);
    const Value *made = &l->value[node->out[0].i];
    if (made->size[0] != size[0] || made->size[1] != size[1])
        return low_refuse(l, node, "sizes behind a pool are rounded down");
    return low_share(l, node, node->out[0]);
}

/* ---- sums of products ---- */

bool low_cut(Lower *l, const Node *node, const QuantLayer *q,
             LaneLayer *layer) {
    int32_t lo = q->lo - q->zero_out;
    layer->act = lo == 0 ? LANE_RELU : LANE_PLAIN;
    bool cuts = q->hi - q->zero_out == 127 && (lo == -128 || lo == 0);
    return (cuts && !q->below) ||
           low_refuse(l, node, "the only activation is ReLU");
}

static bool lower_numbers(Lower *l, const Node *node, LaneLayer *layer) {
    const QuantLayer q = quant_layer(l->arena, l->g, node);
    int exponent = 0;
    bool fine = q.rule == QUANT_SUMS && q.n &&
                low_is_plain(quant_of(l, node->in[0])) &&
                low_is_plain(quant_of(l, node->out[0])) &&
                frexp((double)quant_float(q.scale[0]), &exponent) <= 0.5;
    for (uint32_t i = 1; fine && i < q.n; i++)
        fine = q.scale[i].factor == q.scale[0].factor &&
               q.scale[i].shift == q.scale[0].shift;
    if (!fine)
        return low_refuse(
            l, node,
            "wants codes of 8 bits around 0 and one scale, a power of two: "
            "amphora quantise --scales pow2 --zeros none --per tensor");
    layer->shift = exponent - 1 + 7;
    return low_cut(l, node, &q, layer);
}

/* Rows and columns as the layers have them. */
static ConvAttr attr_of(const Lower *l, const Node *node) {
    const ConvAttr *of = &node->attr.conv;
    ConvAttr a = *of;
    for (int k = 0; k < 2; k++) {
        a.kernel[k] = along(l, of->kernel, k);
        a.stride[k] = along(l, of->stride, k);
        a.dilation[k] = along(l, of->dilation, k);
        a.pad[k] = along(l, of->pad, k);
        a.pad_end[k] = along(l, of->pad_end, k);
    }
    return a;
}

/* The kernel that the node's fits into: 1x1, 3x3, or of one column. */
static bool lower_kernel(Lower *l, const Node *node, const ConvAttr *a,
                         LaneLayer *layer, const Value *v) {
    uint32_t span[2];
    bool even = a->pad[0] == a->pad_end[0] && a->pad[1] == a->pad_end[1];
    for (int k = 0; k < 2; k++)
        span[k] = (a->kernel[k] - 1) * a->dilation[k] + 1;
    bool column = l->turned || !pools(&v->front); /* before its pool, too */
    bool line = column && v->size[1] == 1 && span[1] == 1 && !a->pad[1];
    bool point = span[0] == 1 && span[1] == 1 && !a->pad[0] && !a->pad[1];
    layer->op = line && v->front.elt == LANE_ALONE ? LANE_CONV1D : LANE_CONV2D;
    for (int k = 0; k < 2; k++) {
        layer->kernel[k] = line ? span[k] : point ? 1 : 3;
        even = even && span[k] <= layer->kernel[k] &&
               (layer->kernel[k] - span[k]) % 2 == 0;
        layer->pad[k] = a->pad[k] + (layer->kernel[k] - span[k]) / 2;
    }
    return (even && (line || layer->pad[0] == layer->pad[1])) ||
           low_refuse(l, node,
                      "kernels are 1x1, 3x3 or of one column, with the same "
                      "padding on all sides");
}

/* Can the convolution have the input's front in its own layer? */
static bool fits_front(const Lower *l, const Node *node, const ConvAttr *a,
                       const Value *v) {
    const LaneLayer *f = &v->front;
    uint32_t passes = lanes_passes(l->arena, l->m, v->c);
    bool sums = f->elt != LANE_ALONE;
    bool stretched = a->kernel[0] * a->kernel[1] > 1;
    bool strides = !stretched && (a->stride[0] > 1 || a->stride[1] > 1);
    bool line = v->size[1] == 1 && stretched;
    return !(sums && (passes > 2 || (passes == 2 && f->operands > 2))) &&
           !(sums && line) && !(strides && pools(f)) &&
           !(pools(f) && node->op == OP_DECONV);
}

/* Strides of one pixel are taken in front, all others behind. */
static bool lower_conv(Lower *l, const Node *node) {
    const ConvAttr own = attr_of(l, node), *a = &own;
    Value *v = &l->value[node->in[0].i];
    bool back = node->op == OP_DECONV;
    uint32_t stride = a->stride[0];
    bool fine = v->size[1] == 1 || a->stride[1] == stride;
    if (!fine || stride < 1 || stride > 16)
        return low_refuse(l, node, "strides are the same in both directions");
    if (!fits_front(l, node, a, v) && !low_settle(l, node, node->in[0]))
        return false;
    LaneLayer layer = v->front;
    layer.in_c = v->c;
    layer.out_c = a->out_c;
    bool ahead = stride > 1 && a->kernel[0] * a->kernel[1] == 1 && !back;
    if (ahead)
        layer.pool_stride = stride;
    if (back) {
        layer.op = LANE_DECONV;
        for (int k = 0; k < 2; k++) {
            layer.kernel[k] = a->kernel[k];
            layer.pad[k] = a->pad[k];
            fine = fine && a->kernel[k] == 3 && a->stride[k] == 2 &&
                   a->dilation[k] == 1 && a->pad[k] == a->pad_end[k] + 1;
        }
        if (!fine || a->groups != 1 || l->turned)
            return low_refuse(
                l, node,
                "transposed convolutions are 3x3 with stride 2 and "
                "one row and column more behind");
    } else if (!lower_kernel(l, node, a, &layer, v))
        return false;
    if (!lower_numbers(l, node, &layer))
        return false;
    if (!kernels_conv(l->arena, l->g, node, a, &layer))
        return low_refuse(l, node, "weights are codes of 8 bits around 0");
    kernels_bias(l->arena, l->g, node, &layer, l->out);
    LaneLayer front = low_fresh(node, push(l, &layer));
    if (stride > 1 && !ahead && !back)
        front.pool_stride = stride;
    low_set(l, node->out[0], &front);
    return low_share(l, node, node->out[0]);
}

/* The input, settled; what is flattened fills passes: channels of zeros
 * behind. */
static bool fill_passes(Lower *l, const Node *node, Value *v) {
    uint32_t all =
        lanes_passes(l->arena, l->m, v->c) * lanes_needed(l->arena, l->m, v->c);
    if ((all == v->c || v->front.elt != LANE_ALONE) &&
        !low_settle(l, node, node->in[0]))
        return false;
    *v = l->value[node->in[0].i];
    if (all == v->c)
        return true;
    LaneLayer layer = v->front;
    kernels_more(l->arena, v->c, all, &layer);
    v->front = low_fresh(node, push(l, &layer));
    v->c = all;
    return true;
}

static bool lower_fc(Lower *l, const Node *node) {
    Value own = l->value[node->in[0].i], *v = &own;
    uint64_t n = shape_count(&graph_tensor(l->g, node->in[0])->shape);
    /* A reshape's value has the size of what it renames. */
    bool flattens = (uint64_t)v->size[0] * v->size[1] != 1;
    if (n != (uint64_t)v->c * v->size[0] * v->size[1])
        return low_refuse(l, node, "reads another volume than it is given");
    /* Neither pools nor sums stand in front of inner products. */
    uint32_t c = v->c;
    if (flattens && !fill_passes(l, node, v))
        return false;
    LaneLayer layer = v->front;
    layer.op = is_one(&layer) ? LANE_LINEAR : LANE_CONV2D;
    layer.flatten = flattens;
    layer.in_c = (uint32_t)n;
    layer.out_c = node->attr.fc.out;
    if (!lower_numbers(l, node, &layer))
        return false;
    if (!kernels_fc(l->arena, l->g, node, &layer))
        return low_refuse(l, node, "weights are codes of 8 bits around 0");
    if (flattens)
        kernels_deepen(l->arena, c, v->c, &layer);
    kernels_bias(l->arena, l->g, node, &layer, l->out);
    low_make(l, node, &layer, node->out[0]);
    return true;
}

/* ---- the graph ---- */

static bool lower_input(Lower *l, const Node *node) {
    LaneLayer front = low_fresh(node, LANE_INPUT);
    if (l->out->result.i != NONE)
        return low_refuse(l, node, "networks of one input");
    l->out->input = node->out[0];
    low_set(l, node->out[0], &front);
    const Value *v = &l->value[node->out[0].i];
    l->net->in_c = v->c;
    l->net->in[0] = v->size[0];
    l->net->in[1] = v->size[1];
    return true;
}

void low_rename(Lower *l, TensorId from, TensorId to) {
    l->value[to.i] = l->value[from.i];
    l->out->result = to;
}

/* The same codes in another shape; real numbers at both ends become codes, and
 * codes these, outside. */
static bool lower_rename(Lower *l, const Node *node) {
    const Quant *in = quant_of(l, node->in[0]);
    const Quant *out = quant_of(l, node->out[0]);
    bool first = l->out->input.i == node->in[0].i;
    if (node->n_out == 1 && first && in->type == QUANT_NONE &&
        low_is_plain(out)) {
        l->out->input = node->out[0];
        low_rename(l, node->in[0], node->out[0]);
        return true;
    }
    if (node->n_out == 1 && out->type == QUANT_NONE && low_is_plain(in) &&
        graph_tensor(l->g, node->out[0])->is_output) {
        TensorId result = l->out->result;
        low_rename(l, node->in[0], node->out[0]);
        l->out->result = result;
        return true;
    }
    if (node->n_out == 1 && !quant_equal(in, out) && low_is_plain(in) &&
        low_is_plain(out) && node->op == OP_IDENTITY)
        return low_move(l, node, node->in[0], LANE_PLAIN);
    low_rename(l, node->in[0], node->out[0]);
    return (node->n_out == 1 && quant_equal(in, out)) ||
           low_refuse(l, node, "only the same codes in another shape");
}

static bool refuse_kind(const Lower *l, const Node *node) {
    const char *why = "no layer of this machine: only convolutions, inner "
                      "products, pools, sums, concats and ReLU";
    bool last = node->n_in == 1 && graph_is_output(l->g, node->out[0]);
    if (last)
        why =
            arena_printf(l->arena, "%s; --outputs %s leaves it to a processor",
                         why, graph_tensor(l->g, node->in[0])->name);
    return low_refuse(l, node, why);
}

static bool lower_node(Lower *l, const Node *node) {
    switch (node->op) {
    case OP_INPUT:
        return lower_input(l, node);
    case OP_CONV:
    case OP_DECONV:
        return lower_conv(l, node);
    case OP_FC:
        return lower_fc(l, node);
    case OP_POOL:
        return lower_pool(l, node);
    case OP_ELTWISE:
        return low_elt(l, node);
    case OP_CONCAT:
        return low_concat(l, node);
    case OP_ACT:
        return low_act(l, node);
    case OP_RESHAPE:
    case OP_IDENTITY:
        return lower_rename(l, node);
    default:
        return refuse_kind(l, node);
    }
}

/* Is the network one of rows alone, which this machine has as columns? */
static bool is_turned(const Graph *g) {
    bool turned = true, wide = false;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        uint32_t c, h, w;
        shape_chw(&graph_tensor(g, node->out[0])->shape, &c, &h, &w);
        turned = turned && h == 1;
        wide = wide || w > 1;
    }
    return turned && wide;
}

static uint32_t count_uses(Lower *l) {
    uint32_t most = 1;
    for (uint32_t i = 0; i < l->g->node.n; i++) {
        const Node *node = &l->g->node.at[i];
        for (uint32_t k = 0; k < node->n_in; k++)
            l->uses[node->in[k].i]++;
        most += node->n_in + 2;
    }
    for (uint32_t t = 0; t < l->g->tensor.n; t++)
        l->uses[t] += l->g->tensor.at[t].is_output;
    return most;
}

static bool lower_all(Lower *l) {
    for (uint32_t i = 0; i < l->g->node.n; i++) {
        const Node *node = &l->g->node.at[i];
        for (uint32_t k = 0; k < node->n_in; k++)
            if (!l->value[node->in[k].i].set)
                return low_refuse(l, node, "reads what no layer here makes");
        if (!lower_node(l, node))
            return false;
    }
    uint32_t outputs = 0;
    for (uint32_t t = 0; t < l->g->tensor.n; t++)
        outputs += l->g->tensor.at[t].is_output;
    const Node *last = &l->g->node.at[l->g->node.n - 1];
    if (outputs > 1)
        return low_refuse(l, last, "networks of one result");
    if (!low_settle(l, last, l->out->result))
        return false;
    if (!l->net->n)
        return low_refuse(l, last, "there are no layers");
    return l->value[l->out->result.i].front.source[0] ==
               (int32_t)l->net->n - 1 ||
           low_refuse(l, last, "the last layer makes the result");
}

LaneNet *lanes_lower(Arena *arena, Diag *diag, const LaneMachine *m, Graph *g,
                     LaneLowered *out) {
    LaneNet *net = ARENA_NEW(arena, LaneNet);
    *net = (LaneNet){.arch = g->name, .dataset = "none"};
    *out = (LaneLowered){.result = NO_TENSOR, .input = NO_TENSOR};
    Lower l = {.arena = arena,
               .diag = diag,
               .m = m,
               .g = g,
               .net = net,
               .out = out,
               .value = ARENA_ARRAY(arena, Value, g->tensor.n + 1),
               .uses = ARENA_ARRAY(arena, uint32_t, g->tensor.n + 1),
               .turned = is_turned(g)};
    net->layer = ARENA_ARRAY(arena, LaneLayer, count_uses(&l) + 1);
    return lower_all(&l) && lanes_arrange(arena, diag, m, net) ? net : NULL;
}
