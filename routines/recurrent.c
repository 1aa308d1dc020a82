/* recurrent.c - recurrent layers, step by step; see routine.h.
 *
 * A step makes the sums of its gates from the input and the last state, then
 * the cell makes the next state of them. Weights are used with the gates
 * innermost, so that a sum runs over the inputs in their order.
 */
#include "routines/kinds.h"

#include <math.h>
#include <string.h>

enum { X, W, R, B, LENGTHS, STATE, CELL_STATE, PEEPHOLES, INPUTS };

/* A call, opened. Missing inputs are NULL. */
typedef struct Layer {
    const RoutineCall *call;
    uint32_t cell, gates; /* gates: sums a unit of the state needs */
    uint32_t steps, images, inputs, units;
    const Shape *shape[INPUTS];
    const float *in[INPUTS];
    bool reset_after, couple;
    double clip, cell_clip, alpha[3], beta[3];
    uint32_t act[3];
} Layer;

static const uint32_t gates_of[N_CELLS] = {
    [CELL_rnn] = 1, [CELL_gru] = 3, [CELL_lstm] = 4};

/* ---- shapes ---- */

static void open_layer(const RoutineCall *call, Layer *l) {
    uint32_t given = routine_whole(call, "given", 0), next = 0;
    *l = (Layer){.call = call,
                 .cell = routine_whole(call, "cell", 0),
                 .reset_after = routine_whole(call, "reset_after", 0) != 0,
                 .couple = routine_whole(call, "couple", 0) != 0,
                 .clip = routine_real(call, "clip", 0),
                 .cell_clip = routine_real(call, "cell_clip", 0)};
    l->gates = gates_of[l->cell];
    for (uint32_t i = 0; i < INPUTS; i++)
        if (given >> i & 1 && next < call->n_in) {
            l->shape[i] = &call->shape[next];
            l->in[i] = call->in ? call->in[next] : NULL;
            next++;
        }
    for (uint32_t i = 0; i < 3; i++) {
        static const char *const names[] = {"f", "g", "h"};
        l->act[i] = routine_whole(call, names[i], 0);
        l->alpha[i] = routine_real(call, "alpha", i);
        l->beta[i] = routine_real(call, "beta", i);
    }
}

static bool has_count(const Layer *l, uint32_t i, uint64_t count) {
    return !l->shape[i] || shape_count(l->shape[i]) == count;
}

const char *recurrent_shape(const RoutineCall *call, Shape *out) {
    Layer l;
    uint32_t given = routine_whole(call, "given", 0), n = 0;
    for (uint32_t i = 0; i < INPUTS; i++)
        n += given >> i & 1;
    if ((given & 7) != 7 || given >> INPUTS || n != call->n_in)
        return "has other inputs than it says";
    open_layer(call, &l);
    if (l.shape[X]->rank != 3 || l.shape[R]->rank != 2)
        return routine_misfit(call, X, R);
    uint32_t units = l.shape[R]->dim[1], images = l.shape[X]->dim[1];
    uint64_t wide = (uint64_t)l.gates * units;
    uint64_t state = (uint64_t)images * units;
    if (!has_count(&l, R, wide * units) ||
        !has_count(&l, W, wide * l.shape[X]->dim[2]))
        return routine_misfit(call, X, W);
    if (!has_count(&l, B, 2 * wide) || !has_count(&l, LENGTHS, images) ||
        !has_count(&l, STATE, state) || !has_count(&l, CELL_STATE, state) ||
        !has_count(&l, PEEPHOLES, 3 * (uint64_t)units))
        return "has a bias, lengths or a state that do not fit";
    if (!(l.clip >= 0 && l.cell_clip >= 0))
        return "clips at no number from 0 up";
    *out = (Shape){3, {l.shape[X]->dim[0], images, units}};
    if (routine_whole(call, "result", 0))
        *out = (Shape){2, {images, units}};
    return NULL;
}

uint64_t recurrent_products(const RoutineCall *call) {
    const Shape *x = &call->shape[X];
    return (uint64_t)x->dim[0] * x->dim[1] *
           (shape_count(&call->shape[W]) + shape_count(&call->shape[R]));
}

/* ---- activations ---- */

static double act(const Layer *l, uint32_t i, double x) {
    double a = l->alpha[i], b = l->beta[i];
    switch (l->act[i]) {
    case RECURRENT_sigmoid:
        return 1 / (1 + exp(-x));
    case RECURRENT_tanh:
        return tanh(x);
    case RECURRENT_relu:
        return x > 0 ? x : 0;
    case RECURRENT_hard_sigmoid:
        return fmax(0, fmin(1, a * x + b));
    case RECURRENT_affine:
        return a * x + b;
    case RECURRENT_leaky_relu:
        return x < 0 ? a * x : x;
    case RECURRENT_thresholded_relu:
        return x >= a ? x : 0;
    case RECURRENT_scaled_tanh:
        return a * tanh(b * x);
    case RECURRENT_elu:
        return x < 0 ? a * expm1(x) : x;
    case RECURRENT_softsign:
        return x / (1 + fabs(x));
    default:
        return log1p(exp(-fabs(x))) + (x > 0 ? x : 0);
    }
}

static double clipped(double limit, double x) {
    return limit > 0 ? fmax(-limit, fmin(limit, x)) : x;
}

static double gate(const Layer *l, uint32_t i, double x) {
    return act(l, i, clipped(l->clip, x));
}

/* ---- cells ---- */

/* What a step works on, of one image. x and r: sums of the gates from the input
 * and from the state, biases included; h and c: the states. */
typedef struct Step {
    float *x, *r, *h, *c;
} Step;

static void rnn_step(const Layer *l, const Step *s) {
    for (uint32_t k = 0; k < l->units; k++)
        s->h[k] = (float)gate(l, 0, (double)s->x[k] + (double)s->r[k]);
}

/* Adds in x [units] times columns [from, from + wide) of the weights. */
static void add_products(const float *in, uint32_t n, const float *weight,
                         uint32_t stride, uint32_t wide, float *out) {
    for (uint32_t i = 0; i < n; i++) {
        float by = in[i];
        const float *row = weight + (uint64_t)i * stride;
        for (uint32_t k = 0; k < wide; k++)
            out[k] += by * row[k];
    }
}

/* z, r, then the new state, whose sum may need the state reset before. */
static void gru_step(const Layer *l, const Step *s, const float *weight) {
    uint32_t n = l->units;
    const float *bias = l->in[B] ? l->in[B] + 5 * (uint64_t)n : NULL;
    for (uint32_t k = 0; k < 2 * n; k++)
        s->x[k] = (float)gate(l, 0, (double)s->x[k] + (double)s->r[k]);
    float *sum = s->r + 2 * n;
    if (!l->reset_after) {
        for (uint32_t k = 0; k < n; k++) {
            s->r[k] = s->x[n + k] * s->h[k];
            sum[k] = bias ? bias[k] : 0;
        }
        add_products(s->r, n, weight + 2 * n, 3 * n, n, sum);
    }
    for (uint32_t k = 0; k < n; k++) {
        double reset = l->reset_after ? (double)s->x[n + k] : 1;
        double fresh =
            gate(l, 1, (double)s->x[2 * n + k] + reset * (double)sum[k]);
        double z = (double)s->x[k];
        s->h[k] = (float)((1 - z) * fresh + z * (double)s->h[k]);
    }
}

static void lstm_step(const Layer *l, const Step *s) {
    uint32_t n = l->units;
    const float *p = l->in[PEEPHOLES];
    for (uint32_t k = 0; k < n; k++) {
        double sum[4], c = (double)s->c[k];
        for (uint32_t g = 0; g < 4; g++)
            sum[g] = (double)s->x[g * n + k] + (double)s->r[g * n + k];
        double i = gate(l, 0, sum[0] + (p ? (double)p[k] * c : 0));
        double f = gate(l, 0, sum[2] + (p ? (double)p[2 * n + k] * c : 0));
        c = (l->couple ? 1 - i : f) * c + i * gate(l, 1, sum[3]);
        c = clipped(l->cell_clip, c);
        double o = gate(l, 0, sum[1] + (p ? (double)p[n + k] * c : 0));
        s->c[k] = (float)c;
        s->h[k] = (float)(o * act(l, 2, c));
    }
}

/* ---- layers ---- */

static float *transposed(const Layer *l, uint32_t i, uint32_t wide,
                         uint32_t n) {
    float *out = ARENA_ARRAY(l->call->arena, float, (uint64_t)wide *n);
    for (uint32_t r = 0; r < wide; r++)
        for (uint32_t c = 0; c < n; c++)
            out[(uint64_t)c * wide + r] = l->in[i][(uint64_t)r * n + c];
    return out;
}

static float *state_of(const Layer *l, uint32_t i) {
    uint64_t n = (uint64_t)l->images * l->units;
    float *out = ARENA_ARRAY(l->call->arena, float, n);
    if (l->in[i])
        memcpy(out, l->in[i], n * sizeof *out);
    return out;
}

/* How many steps an image has. */
static uint32_t length_of(const Layer *l, uint32_t image) {
    if (!l->in[LENGTHS])
        return l->steps;
    float length = l->in[LENGTHS][image];
    return length >= (float)l->steps ? l->steps
           : length >= 1             ? (uint32_t)length
                                     : 0;
}

/* Sums with a bias, where there is one. */
static void sum_gates(const float *bias, uint32_t wide, const float *in,
                      uint32_t n, const float *weight, float *out) {
    for (uint32_t k = 0; k < wide; k++)
        out[k] = bias ? bias[k] : 0;
    add_products(in, n, weight, wide, wide, out);
}

static void run_image(const Layer *l, uint32_t image, const float *w,
                      const float *r, const Step *s) {
    uint32_t length = length_of(l, image), wide = l->gates * l->units;
    bool reverse = routine_whole(l->call, "reverse", 0) != 0;
    bool all = routine_whole(l->call, "result", 0) == 0;
    const float *bias = l->in[B];
    for (uint32_t t = 0; t < l->steps; t++) {
        uint32_t at = reverse && t < length ? length - 1 - t : t;
        uint64_t row = (uint64_t)at * l->images + image;
        float *to = all ? l->call->out + row * l->units : NULL;
        if (t >= length) {
            if (all)
                memset(to, 0, l->units * sizeof *to);
            continue;
        }
        sum_gates(bias, wide, l->in[X] + row * l->inputs, l->inputs, w, s->x);
        sum_gates(bias ? bias + wide : NULL, wide, s->h, l->units, r, s->r);
        if (l->cell == CELL_lstm)
            lstm_step(l, s);
        else if (l->cell == CELL_gru)
            gru_step(l, s, r);
        else
            rnn_step(l, s);
        if (all)
            memcpy(to, s->h, l->units * sizeof *to);
    }
}

void recurrent_run(const RoutineCall *call) {
    Layer l;
    open_layer(call, &l);
    l.steps = l.shape[X]->dim[0];
    l.images = l.shape[X]->dim[1];
    l.inputs = l.shape[X]->dim[2];
    l.units = l.shape[R]->dim[1];
    uint32_t wide = l.gates * l.units,
             result = routine_whole(call, "result", 0);
    const float *w = transposed(&l, W, wide, l.inputs);
    const float *r = transposed(&l, R, wide, l.units);
    float *h = state_of(&l, STATE), *c = state_of(&l, CELL_STATE);
    Step s = {.x = ARENA_ARRAY(call->arena, float, wide),
              .r = ARENA_ARRAY(call->arena, float, wide)};
    for (uint32_t i = 0; i < l.images; i++) {
        s.h = h + (uint64_t)i * l.units;
        s.c = c + (uint64_t)i * l.units;
        run_image(&l, i, w, r, &s);
    }
    if (result)
        memcpy(call->out, result == 1 ? h : c,
               shape_count(&call->out_shape) * sizeof *call->out);
}
