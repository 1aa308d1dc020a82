/* test_random.c - random small networks of all operators: whatever fires, for
 * whatever machine, every tensor that has an origin keeps its values. */
#include "net.h"
#include <math.h>

#include "base/rng.h"
#include "graph/quant.h"
#include "passes/passes_int.h"
#include "tests/effort.h"

/* Of the networks the last ones have gathers and numbers by channel. */
enum {
    GRAPHS = 300,
    FORMS = 60,
    MOST_NODES = 24,
    MOST_CHANNELS = 40,
    MOST_SIDE = 12
};

typedef struct Maker {
    Net *net;
    uint64_t seed, at;
    VEC(TensorId) volume; /* tensors of four axes */
} Maker;

static uint32_t below(Maker *m, uint32_t n) {
    return (uint32_t)(rng_bits(m->seed, m->at++) % n);
}

static Shape shape(const Maker *m, TensorId t) {
    return graph_tensor(m->net->g, t)->shape;
}

/* Later tensors more often, so that chains grow. */
static TensorId any(Maker *m) {
    uint32_t n = m->volume.n;
    uint32_t back = below(m, below(m, 3) ? (n < 3 ? n : 3) : n);
    return m->volume.at[n - 1 - back];
}

/* Another tensor that agrees with t in the axes of `mask`; t if none does. */
static TensorId like(Maker *m, TensorId t, uint32_t mask) {
    uint32_t first = below(m, m->volume.n);
    for (uint32_t i = 0; i < m->volume.n; i++) {
        TensorId other = m->volume.at[(first + i) % m->volume.n];
        bool same = true;
        for (uint32_t axis = 0; axis < 4; axis++)
            if (mask >> axis & 1)
                same &= shape(m, t).dim[axis] == shape(m, other).dim[axis];
        if (same)
            return other;
    }
    return t;
}

static void keep(Maker *m, TensorId t) {
    vec_push(m->net->arena, &m->volume, t);
}

static uint32_t some_groups(Maker *m, uint32_t c) {
    uint32_t choice = below(m, 4);
    return choice == 0 ? c : choice == 1 && c % 2 == 0 ? 2 : 1;
}

static void add_conv(Maker *m) {
    TensorId in = any(m);
    Shape s = shape(m, in);
    bool back = below(m, 5) == 0;
    uint32_t groups = some_groups(m, s.dim[1]), kernel = 1 + below(m, 3);
    uint32_t out_c =
        groups == s.dim[1] ? groups : groups * (1 + below(m, 4)) * 2;
    uint32_t pad = below(m, 2);
    uint32_t least = back ? 2 : 1, most = back ? 5 : MOST_SIDE * 2;
    for (int axis = 2; axis < 4; axis++)
        if (s.dim[axis] < kernel || s.dim[axis] < least || s.dim[axis] > most)
            return;
    if (out_c > MOST_CHANNELS)
        return;
    Attrs attr = conv_attr(out_c, kernel, 1 + below(m, 2),
                           back && kernel < 3 ? 0 : pad, groups);
    if (kernel == 2 && s.dim[2] > 3 && s.dim[3] > 3)
        attr.conv.dilation[1] = 1 + below(m, 2);
    if (back && kernel == 3) /* cut more on one side */
        attr.conv.pad[below(m, 2)] = below(m, 3);
    keep(m, net_add(m->net, back ? OP_DECONV : OP_CONV, "conv", 1, &in, &attr));
}

static void add_pool(Maker *m) {
    TensorId in = any(m);
    Shape s = shape(m, in);
    Attrs attr = {0};
    uint32_t kernel = 2 + below(m, 2), pad = below(m, 2);
    if (kernel > s.dim[2] || kernel > s.dim[3])
        return;
    attr.pool = (PoolAttr){
        .kind = below(m, 2) ? POOL_MAX : POOL_AVG,
        .global = below(m, 8) == 0,
        .ceil = below(m, 2),
        .count_pad = below(m, 2),
        .kernel = {kernel, kernel},
        .stride = {1 + below(m, 2), 1 + below(m, 2)},
        .pad = {pad, pad},
        .pad_end = {pad, pad},
    };
    keep(m, net_add(m->net, OP_POOL, "pool", 1, &in, &attr));
}

static void add_affine(Maker *m) {
    TensorId in = any(m);
    bool bn = below(m, 2);
    TensorId out =
        bn ? net_bn(m->net, "bn", in) : net_one(m->net, OP_SCALE, "scale", in);
    if (!bn && below(m, 3) == 0) { /* without a shift */
        Const zero = {.shape = {1, {shape(m, in).dim[1]}},
                      .kind = CONST_SEEDED};
        ConstId id = graph_add_const(m->net->g, zero);
        NodeId node = graph_tensor(m->net->g, out)->producer;
        graph_node(m->net->g, node)->constant[CONST_BIAS] = id;
    }
    keep(m, out);
}

static void add_act(Maker *m) {
    ActKind kind = below(m, 2) ? ACT_RELU : 1 + below(m, ACT_CLIP);
    keep(m, net_act(m->net, "act", any(m), kind));
}

static void add_eltwise(Maker *m) {
    TensorId in[4] = {any(m)};
    uint32_t n = 2 + below(m, 3), mask = below(m, 4) ? 15 : 3;
    EltKind kind = below(m, 2) ? ELT_ADD : below(m, ELT_MAX + 1);
    static const double coeff[] = {1, -1, 0.5, 2};
    for (uint32_t i = 1; i < n; i++) {
        in[i] = like(m, in[0], mask);
        Shape s = shape(m, in[i]), first = shape(m, in[0]);
        bool unit = s.dim[2] == 1 && s.dim[3] == 1;
        if (!shape_equal(&s, &first) && !unit)
            in[i] = in[0];
    }
    Attrs attr = {.elt = {kind, NULL}};
    if (kind == ELT_ADD && below(m, 4) == 0)
        attr.elt.coeff = coeff;
    keep(m, net_add(m->net, OP_ELTWISE, "elt", n, in, &attr));
}

/* A tensor times its sigmoid, from either side. */
static void add_gate(Maker *m) {
    TensorId x = any(m), gate = net_act(m->net, "gate", x, ACT_SIGMOID);
    bool first = below(m, 2);
    TensorId in[2] = {first ? gate : x, first ? x : gate};
    Attrs attr = {.elt = {ELT_MUL, NULL}};
    keep(m, net_add(m->net, OP_ELTWISE, "gated", 2, in, &attr));
}

static void add_concat(Maker *m) {
    TensorId in[4] = {any(m)};
    uint32_t n = 1 + below(m, 4), channels = shape(m, in[0]).dim[1];
    for (uint32_t i = 1; i < n; i++) {
        in[i] = like(m, in[0], 1 | 4 | 8);
        channels += shape(m, in[i]).dim[1];
    }
    if (channels <= 2 * MOST_CHANNELS)
        keep(m, net_concat(m->net, "concat", n, in));
}

/* Convolutions side by side, a concat, a pool. */
static void add_inception(Maker *m) {
    TensorId in = any(m), part[3];
    Shape s = shape(m, in);
    if (s.dim[1] > 8 || s.dim[2] < 3 || s.dim[3] < 3)
        return;
    for (int i = 0; i < 3; i++) {
        part[i] =
            net_conv(m->net, "branch", in, 4 + 4 * below(m, 2), 1, 1, 0, 1);
        if (below(m, 2))
            part[i] = net_act(m->net, "act", part[i], ACT_RELU);
    }
    TensorId out = net_concat(m->net, "inception", 3, part);
    keep(m,
         net_pool(m->net, "pool", out, POOL_MAX, 2, 1 + below(m, 2), 0, true));
}

/* Convolutions and what they read in a concat, which two layers read behind the
 * same activation. */
static void add_cell(Maker *m) {
    TensorId part[3] = {any(m)};
    if (shape(m, part[0]).dim[1] > 8)
        return;
    for (int i = 1; i < 3; i++)
        part[i] =
            net_conv(m->net, "member", part[0], 4 + below(m, 8), 1, 1, 0, 1);
    TensorId cell = net_concat(m->net, "cell", 3, part);
    ActKind kind = 1 + below(m, ACT_CLIP);
    for (int i = 0; i < 2; i++)
        keep(m, net_conv(m->net, "squeeze", net_act(m->net, "twin", cell, kind),
                         4, 1, 1, 0, 1));
}

/* The start of many a network. */
static void add_stem(Maker *m) {
    TensorId t = any(m);
    Shape s = shape(m, t);
    if (s.dim[2] < 4 || s.dim[3] < 4)
        return;
    t = net_conv(m->net, "stem", t, 8, 3, 1, 1, 1);
    bool late = below(m, 2);
    if (!late)
        t = net_act(m->net, "act", t, 1 + below(m, ACT_CLIP));
    t = net_pool(m->net, "pool", t, POOL_MAX, 2, 2, below(m, 2), below(m, 2));
    if (below(m, 2))
        t = net_bn(m->net, "bn", t);
    if (late)
        t = net_act(m->net, "act", t, 1 + below(m, ACT_CLIP));
    keep(m, t);
}

/* A stride of 2 as TensorFlow pads it: more behind than before; of an input, or
 * depthwise in front of a convolution of 1 x 1. */
static void add_same(Maker *m) {
    bool first = below(m, 2);
    TensorId in = first ? m->volume.at[0] : any(m);
    Shape s = shape(m, in);
    uint32_t c = s.dim[1], out_c = first ? 4 + below(m, 4) : c;
    if (s.dim[2] < 4 || s.dim[3] < 4 || c > MOST_CHANNELS)
        return;
    Attrs attr = conv_attr(out_c, 3, 2, 0, first ? 1 : c);
    for (int axis = 0; axis < 2; axis++) {
        attr.conv.pad[axis] = s.dim[2 + axis] % 2;
        attr.conv.pad_end[axis] = 1;
    }
    if (below(m, 3) == 0)
        keep(m, net_pool(m->net, "pool", in, POOL_MAX, 3, 2, 0, true));
    TensorId t = net_add(m->net, OP_CONV, "same", 1, &in, &attr);
    if (!first && below(m, 4))
        t = net_conv(m->net, "point", t, 4 + below(m, 8), 1, 1, 0, 1);
    keep(m, t);
}

static void add_slice(Maker *m) {
    TensorId in = any(m);
    uint32_t axis = 1 + below(m, 3), size = shape(m, in).dim[axis];
    uint32_t begin = below(m, size);
    Attrs attr = {.slice = {axis, begin, begin + 1 + below(m, size - begin)}};
    keep(m, net_add(m->net, OP_SLICE, "slice", 1, &in, &attr));
}

static void add_rare(Maker *m) {
    TensorId in = any(m);
    Shape s = shape(m, in);
    Attrs attr = {.lrn = {below(m, 2), 3, 1e-2, 0.75, 1}};
    switch (below(m, 5)) {
    case 0:
        keep(m, net_add(m->net, OP_LRN, "lrn", 1, &in, &attr));
        return;
    case 1:
        attr = (Attrs){.axis = {.axis = 1}};
        keep(m, net_add(m->net, OP_SOFTMAX, "softmax", 1, &in, &attr));
        return;
    case 2:
        attr = (Attrs){.up = {{1 + below(m, 2), 1 + below(m, 2)}}};
        if (s.dim[2] * 2 <= MOST_SIDE && s.dim[3] * 2 <= MOST_SIDE)
            keep(m, net_add(m->net, OP_UPSAMPLE, "up", 1, &in, &attr));
        return;
    default:
        attr = (Attrs){.pad = {{below(m, 2), below(m, 2)},
                               {below(m, 2), below(m, 2)},
                               below(m, 4) == 0}};
        if (s.dim[2] + 2 <= MOST_SIDE && s.dim[3] + 2 <= MOST_SIDE)
            keep(m, net_add(m->net, OP_PAD, "pad", 1, &in, &attr));
    }
}

/* Other shapes and back, dropout, splits. */
static void add_nothing(Maker *m) {
    TensorId in = any(m), out = in;
    Shape s = shape(m, in), flat = {2, {1, (uint32_t)shape_count(&s)}};
    Attrs to_flat = {.reshape = flat}, back = {.reshape = s};
    if (below(m, 2)) {
        out = net_add(m->net, OP_RESHAPE, "flat", 1, &out, &to_flat);
        out = net_add(m->net, OP_RESHAPE, "back", 1, &out, &back);
    } else {
        out = net_one(m->net, OP_IDENTITY, "drop", out);
        NodeId split = graph_tensor(m->net->g, out)->producer;
        if (below(m, 2)) {
            TensorId twin = graph_add_output(m->net->g, split, "twin");
            graph_tensor(m->net->g, twin)->shape = s;
            keep(m, twin);
        }
    }
    keep(m, out);
}

static TensorId turned(Maker *m, TensorId t, const Shape *perm) {
    Attrs attr = {.perm = *perm};
    return net_add(m->net, OP_TRANSPOSE, "turn", 1, &t, &attr);
}

static TensorId shaped(Maker *m, TensorId t, Shape to) {
    Attrs attr = {.reshape = to};
    return net_add(m->net, OP_RESHAPE, "shape", 1, &t, &attr);
}

/* a x + b for all. */
static TensorId scaled(Maker *m, TensorId t, double a, double b) {
    Graph *g = m->net->g;
    Shape n = {1, {shape(m, t).dim[1]}};
    TensorId out = net_one(m->net, OP_SCALE, "scaled", t);
    Const of = {.shape = n, .kind = CONST_SEEDED, .mean = a};
    Node *node = graph_node(g, graph_tensor(g, out)->producer);
    node->constant[CONST_SCALE] = graph_add_const(g, of);
    of.mean = b;
    node->constant[CONST_BIAS] = graph_add_const(g, of);
    return out;
}

/* As files have it. */
static TensorId gelu(Maker *m, TensorId x) {
    TensorId erf = net_act(m->net, "erf", scaled(m, x, sqrt(0.5), 0), ACT_ERF);
    TensorId both[] = {x, scaled(m, erf, 1, 1)};
    bool second = below(m, 2);
    TensorId in[] = {both[!second], both[second]};
    return scaled(m, net_eltwise(m->net, "mul", ELT_MUL, 2, in), 0.5, 0);
}

/* Pixels as rows of numbers, and an inner product over them. */
static void add_tokens(Maker *m) {
    static const Shape last = {4, {0, 2, 3, 1}}, first = {4, {0, 3, 1, 2}};
    static const Shape none = {4, {0, 1, 2, 3}};
    TensorId t = any(m);
    Shape s = shape(m, t);
    uint32_t h = s.dim[2], w = s.dim[3], out = 2 + below(m, 6);
    t = turned(m, t, &last);
    if (below(m, 3) == 0)
        t = turned(m, turned(m, t, &first), &last);
    if (below(m, 3) == 0)
        t = turned(m, t, &none);
    t = shaped(m, t, (Shape){2, {h * w, s.dim[1]}});
    t = net_fc(m->net, "rows", t, out);
    graph_node(m->net->g, graph_tensor(m->net->g, t)->producer)->no_bias = true;
    bool flat = below(m, 2);
    if (!flat)
        t = shaped(m, t, (Shape){4, {1, h, w, out}});
    Attrs one = {.reshape =
                     flat ? (Shape){2, {1, out}} : (Shape){4, {1, 1, 1, out}}};
    TensorId bias = net_add(m->net, OP_CONSTANT, "bias", 0, NULL, &one);
    bool second = below(m, 2);
    TensorId in[] = {second ? bias : t, second ? t : bias};
    t = net_eltwise(m->net, "add", ELT_ADD, 2, in);
    if (flat)
        t = shaped(m, t, (Shape){4, {1, h, w, out}});
    t = below(m, 2) ? gelu(m, t) : net_act(m->net, "act", t, ACT_RELU);
    t = turned(m, t, &first);
    Shape volume = shape(m, t);
    if (below(m, 2)) {
        t = shaped(m, t, (Shape){3, {1, out, h * w}});
        t = shaped(m, net_act(m->net, "act", t, ACT_RELU), volume);
    }
    keep(m, t);
}

/* Channels in another order, and then some of them. */
static void add_shuffle(Maker *m) {
    static const Shape turn = {5, {0, 2, 1, 3, 4}};
    TensorId t = any(m);
    Shape s = shape(m, t);
    uint32_t groups = 1 + below(m, 3), c = s.dim[1];
    if (c % groups)
        return;
    t = shaped(m, t, (Shape){5, {1, groups, c / groups, s.dim[2], s.dim[3]}});
    t = shaped(m, turned(m, t, &turn), s);
    keep(m, t);
    if (below(m, 4) == 0)
        t = net_conv(m->net, "conv", t, c, 1, 1, 0, 1);
    for (uint32_t i = below(m, 3); i > 0; i--) {
        uint32_t begin = below(m, c);
        Attrs attr = {.slice = {1, begin, begin + 1 + below(m, c - begin)}};
        TensorId part = net_add(m->net, OP_SLICE, "part", 1, &t, &attr);
        if (below(m, 2)) { /* of which the next one takes some */
            t = part;
            c = shape(m, t).dim[1];
        }
        keep(m, part);
    }
}

/* With one number by channel, which is made of the volume. */
static void add_by_channel(Maker *m) {
    TensorId t = any(m);
    Attrs over = {.reduce = {below(m, 2) ? REDUCE_MEAN : REDUCE_MAX, 12}};
    TensorId one = net_add(m->net, OP_REDUCE, "over", 1, &t, &over);
    bool second = below(m, 2);
    TensorId in[] = {second ? one : t, second ? t : one};
    EltKind kind = below(m, 2) ? ELT_ADD : ELT_MUL;
    keep(m, net_eltwise(m->net, "by", kind, 2, in));
}

/* Of what the same pixels make: 1x1 convolutions, in heads of 8 channels. */
static void add_attention(Maker *m) {
    TensorId t = any(m), part[3];
    Shape s = shape(m, t);
    uint32_t heads = 1 + below(m, 2);
    Attrs attr = conv_attr(8 * heads, 1, 1, 0, 1);
    if (s.dim[0] != 1)
        return;
    for (uint32_t i = 0; i < 3; i++)
        part[i] = net_add(m->net, OP_CONV, "part", 1, &t, &attr);
    Attrs soft = {.axis = {.axis = 1, .groups = heads}};
    Attrs mix = {.mix = {.groups = heads, .windows = {1, 1}}};
    TensorId in[2] = {part[0], part[1]};
    in[0] = net_add(m->net, OP_MIX, "scores", 2, in, &mix);
    in[0] = net_add(m->net, OP_SOFTMAX, "weights", 1, in, &soft);
    in[1] = part[2];
    mix.mix.over_pixels = 1;
    keep(m, net_add(m->net, OP_MIX, "sums", 2, in, &mix));
}

static void add_head(Maker *m) {
    TensorId t = any(m);
    Shape s = shape(m, t);
    Attrs flat = {.reshape = {2, {1, (uint32_t)shape_count(&s)}}};
    if (below(m, 2))
        t = net_add(m->net, OP_RESHAPE, "flat", 1, &t, &flat);
    t = net_fc(m->net, "fc", t, 2 + below(m, 9));
    if (below(m, 2))
        t = net_bn(m->net, "bn", t);
    if (below(m, 2))
        t = net_act(m->net, "act", t, ACT_RELU);
    net_output(m->net, t);
}

/* Functions that engines know in other words: channels with factors,
 * quotients, negatives. */
static void add_functions(Maker *m) {
    Graph *g = m->net->g;
    TensorId t = any(m);
    uint32_t c = shape(m, t).dim[1], n = 1 + below(m, 2 * c);
    TensorId by = scaled(m, net_act(m->net, "some", t, ACT_SIGMOID), 1, 0.5);
    TensorId both[] = {t, by};
    switch (below(m, 3)) {
    case 0:
        keep(m, net_act(m->net, "neg", t, ACT_NEG));
        return;
    case 1:
        keep(m, net_eltwise(m->net, "div", ELT_DIV, 2, both));
        return;
    default:
        break;
    }
    Attrs attr = {.gather = {.axis = 1, .n = n, .taps = 1}};
    TensorId out = net_add(m->net, OP_GATHER, "pick", 1, &t, &attr);
    Const of = {.shape = {2, {n, 1}}, .kind = CONST_SEEDED};
    Node *node = graph_node(g, graph_tensor(g, out)->producer);
    of.mean = below(m, c);
    node->constant[CONST_INDEX] = graph_add_const(g, of);
    of.mean = 0.5;
    node->constant[CONST_VALUE] = graph_add_const(g, of);
    keep(m, out);
}

/* An input in another shape than that in which it is read. */
static void add_folded(Maker *m) {
    TensorId in = net_input(m->net, 14, 2, 4);
    TensorId t = shaped(m, in, shape_nchw(1, 2, 7, 8));
    net_output(m->net, net_conv(m->net, "folded", t, 4, 3, 1, 1, 1));
}

static void make(Maker *m) {
    static void (*const add[])(Maker *) = {
        add_conv,    add_conv,    add_conv,      add_affine, add_affine,
        add_affine,  add_act,     add_act,       add_pool,   add_pool,
        add_concat,  add_concat,  add_slice,     add_rare,   add_nothing,
        add_eltwise, add_eltwise, add_inception, add_stem,   add_gate,
        add_cell,    add_same,    add_same,      add_rare,   add_tokens,
        add_tokens,
    };
    static void (*const forms[])(Maker *) = {
        add_conv, add_shuffle, add_by_channel, add_attention, add_functions};
    uint32_t inputs = 1 + below(m, 2), c = 3 + below(m, 6);
    for (uint32_t i = 0; i < inputs; i++)
        keep(m, net_input(m->net, c, 7, 8));
    uint32_t n = 4 + below(m, MOST_NODES);
    for (uint32_t i = 0; i < n; i++)
        if (m->seed < GRAPHS)
            add[below(m, sizeof add / sizeof *add)](m);
        else
            forms[below(m, sizeof forms / sizeof *forms)](m);
    if (below(m, 2))
        add_head(m);
    if (m->seed % 4 == 1)
        add_folded(m);
    for (uint32_t i = 0; i < m->volume.n; i++) {
        TensorId t = m->volume.at[i];
        NodeId producer = graph_tensor(m->net->g, t)->producer;
        bool input = graph_node(m->net->g, producer)->op == OP_INPUT;
        if (!input && (i + 1 == m->volume.n || below(m, 6) == 0))
            net_output(m->net, t);
    }
}

/* ---- the same on codes ---- */

static Quant some_quant(Maker *m) {
    static const Quant choice[] = {
        {QUANT_I8, 3, 0.05, QUANT_UP},
        {QUANT_I8, -128, 0.03, QUANT_UP},
        {QUANT_I8, -128, 6.0 / 255.0, QUANT_UP},
        {QUANT_U8, 120, 0.04, QUANT_UP},
        {QUANT_I8, -20, 0.11, QUANT_UP},
    };
    return choice[below(m, sizeof choice / sizeof *choice)];
}

static Const some_codes(Maker *m, ConstKind kind, Shape shape, uint32_t axis,
                        double unit) {
    Arena *arena = m->net->arena;
    uint64_t n = shape_count(&shape);
    int8_t *small = ARENA_ARRAY(arena, int8_t, n);
    int32_t *wide = ARENA_ARRAY(arena, int32_t, n);
    double *scale = ARENA_ARRAY(arena, double, shape_dim(&shape, axis));
    for (uint64_t i = 0; i < n; i++) {
        small[i] = (int8_t)((int32_t)below(m, 255) - 127);
        wide[i] = (int32_t)below(m, 2001) - 1000;
    }
    for (uint32_t i = 0; i < shape_dim(&shape, axis); i++)
        scale[i] = (1 + i % 3) * unit;
    return (Const){.shape = shape,
                   .kind = kind,
                   .data = kind == CONST_I8 ? (void *)small : (void *)wide,
                   .mul0 = axis ? NULL : scale,
                   .mul1 = axis ? scale : NULL};
}

static void quantise_weights(Maker *m, NodeId id) {
    const double unit = 0.005;
    Graph *g = m->net->g;
    Node *node = graph_node(g, id);
    ConstId w = node->constant[CONST_WEIGHT], b = node->constant[CONST_BIAS];
    if (w.i == NONE)
        return;
    const Quant *in = &graph_tensor(g, node->in[0])->quant;
    if (in->type == QUANT_NONE)
        return;
    Const weight = some_codes(m, CONST_I8, graph_const(g, w)->shape,
                              node->op == OP_DECONV, unit);
    node->constant[CONST_WEIGHT] = graph_add_const(g, weight);
    if (b.i == NONE)
        return;
    Const bias =
        some_codes(m, CONST_I32, graph_const(g, b)->shape, 0, unit * in->scale);
    graph_node(g, id)->constant[CONST_BIAS] = graph_add_const(g, bias);
}

/* Most tensors become codes; what moves values mostly keeps them as they are.
 */
static void quantise(Maker *m) {
    Graph *g = m->net->g;
    graph_seed_constants(g, 7);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        Quant quant = below(m, 12) ? some_quant(m) : (Quant){0};
        bool moves = node->n_in && quant_moves(g, node);
        if (moves && below(m, 8))
            quant = graph_tensor(g, node->in[0])->quant;
        for (uint32_t o = 0; o < node->n_out; o++)
            graph_tensor(g, node->out[o])->quant = quant;
        quantise_weights(m, (NodeId){i});
        bool sums = node->op == OP_CONV || node->op == OP_ELTWISE;
        if (sums && below(m, 2)) /* as files have them: in the layer */
            graph_node(g, (NodeId){i})->act.kind = ACT_RELU6;
    }
}

/* What each machine must keep to, once passes have run. */
static void check_legality(Net *net, const HwSpec *spec) {
    for (uint32_t i = 0; spec && i < net->g->node.n; i++) {
        Legal legal = legal_check(net->arena, spec, net->g, (NodeId){i});
        OpKind op = net->g->node.at[i].op;
        assert_true(legal.engine < (int32_t)spec->n_engines);
        if (op == OP_INPUT || legal.op == HW_OP_CONCAT)
            assert_null(legal.reason);
        else if (legal.engine < 0)
            assert_true(legal.reason && *legal.reason);
        else
            assert_int_equal(legal.op, legal_op(net->g, (NodeId){i}));
        if (op == OP_CONV_POOL)
            assert_true(legal.engine >= 0);
    }
}

/* Nothing is left to do: a second run changes nothing. */
static void check_fixed_point(Net *net, const HwSpec *spec) {
    const char *names = net_names(net);
    if (strstr(names, "__bridge"))
        return;
    bool moves = strstr(names, "__") != NULL;
    uint32_t nodes = net->g->node.n;
    net_passes(net, spec);
    if (moves) /* what puts elements into order may get other names */
        assert_true(net->g->node.n <= nodes);
    else
        assert_string_equal(net_names(net), names);
}

static FILE *firings; /* of all machines */

static void machine_keeps_values(const char *target, const char *path,
                                 const char *value) {
    Net shelf = net_new();
    const HwSpec *spec = target ? net_spec(&shelf, target, path, value) : NULL;
    uint32_t compared = 0, step = cases_of(1, 4);
    for (uint32_t seed = 0; seed < GRAPHS + FORMS; seed += step) {
        Net net = net_new();
        Maker maker = {.net = &net, .seed = seed};
        make(&maker);
        if (seed % 3 == 0)
            quantise(&maker);
        net_seal(&net);
        PassContext context = {.spec = spec,
                               .diag = net.diag,
                               .scratch = net.scratch,
                               .log = firings};
        bool ran = passes_run(net.g, &context, NULL, NULL, NULL);
        if (!ran)
            diag_print(net.diag, stderr);
        assert_true(ran);
        compared += net_compare(&net);
        check_legality(&net, spec);
        check_fixed_point(&net, spec);
        net_free(&net);
    }
    assert_true(compared > GRAPHS * 4 / step);
    net_free(&shelf);
}

#define MACHINE(name, target, path, value)                                     \
    static void name(void **state) {                                           \
        (void)state;                                                           \
        machine_keeps_values(target, path, value);                             \
    }
MACHINE(no_machine, NULL, NULL, NULL)
MACHINE(v2_28, "xdnn-v2-28", NULL, NULL)
MACHINE(v2_56_strided, "xdnn-v2-56", "rewrites.conv_1x1_stride2", "true")
MACHINE(v3_96, "xdnn-v3-96", NULL, NULL)
MACHINE(v3_96_valid, "xdnn-v3-96", "engines.pool.divisor", "valid")
MACHINE(math_engine, "math-engine", NULL, NULL)
MACHINE(darius_64, "darius-64", NULL, NULL)
MACHINE(template, "template", NULL, NULL)
MACHINE(ring_npu, "ring-npu", NULL, NULL)
MACHINE(vision_npu, "vision-npu", NULL, NULL)
/* act-of-codes rounds once where the network rounds twice. */
MACHINE(k210, "k210", "rewrites.act_of_codes", "false")
MACHINE(gemmini, "gemmini-16", NULL, NULL)

/* The networks are random enough to need every row but those that cut stored
 * constants: these are recipes; and those of windows larger than the volumes
 * are (tests/dilations.py, tests/modern.py). */
static void every_rule_fired(void **state) {
    (void)state;
    Arena *arena = arena_new("firings");
    Map *seen = map_new(arena);
    char line[512];
    rewind(firings);
    while (fgets(line, sizeof line, firings)) {
        line[strcspn(line, ":")] = '\0';
        map_put(seen, line, map_get(seen, line, 0) + 1);
    }
    for (const RuleSet *const *set = rule_sets; *set; set++)
        for (uint32_t r = 0; r < (*set)->n; r++) {
            uint32_t n = map_get(seen, (*set)->rule[r].name, 0);
            print_message("%6u %s\n", n, (*set)->rule[r].name);
            if (!n && cases_of(1, 0) && strcmp((*set)->pass, "dilation") != 0 &&
                strncmp((*set)->rule[r].name, "slabs", 5) != 0 &&
                strcmp((*set)->rule[r].name, "heads") != 0 &&
                strcmp((*set)->rule[r].name, "stride-blocks") != 0 &&
                strcmp((*set)->rule[r].name, "act-of-codes") != 0)
                fail_msg("rule %s never fired", (*set)->rule[r].name);
        }
    assert_true(map_get(seen, "place-concats", 0) > 0);
    arena_free(arena);
}

int main(void) {
    firings = tmpfile();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_machine),
        cmocka_unit_test(v2_28),
        cmocka_unit_test(v2_56_strided),
        cmocka_unit_test(v3_96),
        cmocka_unit_test(v3_96_valid),
        cmocka_unit_test(math_engine),
        cmocka_unit_test(vision_npu),
        cmocka_unit_test(darius_64),
        cmocka_unit_test(template),
        cmocka_unit_test(ring_npu),
        cmocka_unit_test(k210),
        cmocka_unit_test(gemmini),
        cmocka_unit_test(every_rule_fired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
