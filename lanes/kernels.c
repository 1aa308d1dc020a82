/* kernels.c - weights and biases of layers from those of a graph: groups and
 * stretched kernels become dense ones with zeros, and copies and sums become
 * convolutions of one pixel. */
#include "lanes/kernels.h"

#include "graph/quant.h"

#include <math.h>
#include <string.h>

static const double *codes_of(Arena *arena, const Graph *g, ConstId id,
                              uint64_t *n) {
    Const codes = const_codes(graph_const(g, id));
    *n = shape_count(&codes.shape);
    double *out = ARENA_ARRAY(arena, double, *n + 1);
    const_read_f64(&codes, out);
    return out;
}

static bool are_codes(const double *code, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (code[i] < -128 || code[i] > 127)
            return false;
    return true;
}

/* The layer's weights, in the fewest bits that hold them. */
static void set_weights(LaneLayer *l, const int8_t *weight, uint64_t n) {
    l->weight = weight;
    l->bits = 1;
    for (uint64_t i = 0; i < n; i++)
        while (weight[i] < -(1 << (l->bits - 1)) ||
               weight[i] >= 1 << (l->bits - 1))
            l->bits *= 2;
}

/* Where weight [o][i][y][x] of the layer is. */
static size_t place(const LaneLayer *l, uint64_t o, uint64_t i, uint64_t y,
                    uint64_t x) {
    return ((o * l->in_c + i) * l->kernel[0] + y) * l->kernel[1] + x;
}

static void spread(const ConvAttr *a, bool transposed, const double *code,
                   LaneLayer *l, int8_t *to) {
    uint32_t in_g = l->in_c / a->groups, out_g = a->out_c / a->groups;
    uint32_t room[2];
    for (int k = 0; k < 2; k++)
        room[k] =
            (l->kernel[k] - ((a->kernel[k] - 1) * a->dilation[k] + 1)) / 2;
    for (uint32_t o = 0; o < a->out_c; o++)
        for (uint32_t i = 0; i < in_g; i++)
            for (uint32_t y = 0; y < a->kernel[0]; y++)
                for (uint32_t x = 0; x < a->kernel[1]; x++) {
                    uint64_t from = transposed ? (uint64_t)i * a->out_c + o
                                               : (uint64_t)o * in_g + i;
                    uint32_t ty = transposed ? a->kernel[0] - 1 - y : y;
                    uint32_t tx = transposed ? a->kernel[1] - 1 - x : x;
                    to[place(l, o, i + o / out_g * in_g,
                             room[0] + (uint64_t)ty * a->dilation[0],
                             room[1] + (uint64_t)tx * a->dilation[1])] =
                        (int8_t)
                            code[(from * a->kernel[0] + y) * a->kernel[1] + x];
                }
}

bool kernels_conv(Arena *arena, const Graph *g, const Node *node,
                  const ConvAttr *a, LaneLayer *l) {
    uint64_t n, taps = (uint64_t)a->kernel[0] * a->kernel[1];
    const double *code = codes_of(arena, g, node->constant[CONST_WEIGHT], &n);
    if (!are_codes(code, n) || n != a->out_c * (l->in_c / a->groups) * taps)
        return false;
    uint64_t all = (uint64_t)a->out_c * l->in_c * l->kernel[0] * l->kernel[1];
    int8_t *to = ARENA_ARRAY(arena, int8_t, all + 1);
    spread(a, node->op == OP_DECONV, code, l, to);
    set_weights(l, to, all);
    return true;
}

bool kernels_fc(Arena *arena, const Graph *g, const Node *node, LaneLayer *l) {
    uint64_t n;
    const double *code = codes_of(arena, g, node->constant[CONST_WEIGHT], &n);
    if (!are_codes(code, n))
        return false;
    int8_t *to = ARENA_ARRAY(arena, int8_t, n + 1);
    for (uint64_t i = 0; i < n; i++)
        to[i] = (int8_t)code[i];
    set_weights(l, to, n);
    return true;
}

void kernels_set_bias(LaneLayer *l, const int8_t *bias, uint32_t n) {
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any = any || bias[i];
    l->bias = any ? bias : NULL;
    l->n_bias = any ? n : 0;
}

void kernels_bias(Arena *arena, Graph *g, const Node *node, LaneLayer *l,
                  LaneLowered *out) {
    ConstId id = node->constant[CONST_BIAS];
    uint64_t n;
    if (id.i == NONE)
        return;
    const double *code = codes_of(arena, g, id, &n);
    int8_t *to = ARENA_ARRAY(arena, int8_t, n + 1);
    int32_t *whole = ARENA_ARRAY(arena, int32_t, n + 1);
    for (uint64_t i = 0; i < n; i++) {
        double near = fmax(-128, fmin(127, floor(code[i] / 128 + 0.5)));
        to[i] = (int8_t)near;
        whole[i] = to[i] * 128;
        out->biases++;
        out->changed += fabs(code[i] - whole[i]) > 0;
    }
    Const *c = graph_const(g, id);
    c->kind = CONST_I32;
    c->data = whole;
    c->zero = 0;
    for (uint32_t i = 0; i < SHAPE_MAX_RANK; i++)
        c->order[i] = 0;
    kernels_set_bias(l, to, (uint32_t)n);
}

bool kernels_sum(Arena *arena, uint32_t c, uint32_t n, const double *factor,
                 LaneLayer *l) {
    int least = 15, exponent[LANE_OPERANDS];
    for (uint32_t k = 0; k < n; k++) {
        if (fabs(frexp(factor[k], &exponent[k])) > 0.5)
            return false;
        exponent[k]--;
        least = exponent[k] < least ? exponent[k] : least;
    }
    int8_t *to = ARENA_ARRAY(arena, int8_t, (uint64_t)c * c * n + 1);
    for (uint32_t k = 0; k < n; k++) {
        if (exponent[k] - least > 6)
            return false;
        for (uint32_t o = 0; o < c; o++)
            to[((uint64_t)o * n + k) * c + o] =
                (int8_t)((factor[k] < 0 ? -1 : 1) *
                         (1 << (exponent[k] - least)));
    }
    l->op = LANE_CONV2D;
    l->kernel[0] = l->kernel[1] = 1;
    l->in_c = c * n;
    l->out_c = c;
    set_weights(l, to, (uint64_t)c * c * n);
    l->shift = least + 7;
    return l->shift >= -15 && l->shift <= 15;
}

void kernels_more(Arena *arena, uint32_t c, uint32_t all, LaneLayer *l) {
    int8_t *to = ARENA_ARRAY(arena, int8_t, (uint64_t)c * all + 1);
    for (uint32_t o = 0; o < c; o++)
        to[(uint64_t)o * c + o] = 1;
    l->op = LANE_CONV2D;
    l->kernel[0] = l->kernel[1] = 1;
    l->in_c = c;
    l->out_c = all;
    set_weights(l, to, (uint64_t)c * all);
    l->shift = 7;
}

void kernels_deepen(Arena *arena, uint32_t c, uint32_t all, LaneLayer *l) {
    uint64_t of = l->in_c, taps = of / c, wide = taps * all;
    int8_t *to = ARENA_ARRAY(arena, int8_t, l->out_c * wide + 1);
    for (uint64_t o = 0; o < l->out_c; o++)
        memcpy(to + o * wide, l->weight + o * of, of);
    l->weight = to;
    l->in_c = (uint32_t)wide;
}

static void widen(Arena *arena, LaneLayer *l) {
    int8_t *to = ARENA_ARRAY(arena, int8_t, (uint64_t)l->out_c * l->in_c * 9);
    for (uint64_t i = 0; i < (uint64_t)l->out_c * l->in_c; i++)
        to[i * 9 + 4] = l->weight[i];
    l->weight = to;
    l->kernel[0] = l->kernel[1] = 3;
    l->pad[0] = l->pad[1] = 1;
    l->widened = l->says_kernel;
}

void kernels_stream(Arena *arena, LaneNet *net) {
    for (uint32_t i = 0; i < net->n; i++) {
        LaneLayer *l = &net->layer[i];
        bool runs = l->streaming || (i && net->layer[i - 1].streaming);
        if (runs && l->op == LANE_CONV2D && l->weight && l->kernel[0] == 1)
            widen(arena, l);
    }
}
