/* ops_recurrent.c - ONNX's RNN, GRU and LSTM; see onnx.h.
 *
 * Each direction is a routine of the host with its own part of the weights;
 * those of several directions lie side by side behind them. The last state is
 * part of all states where lengths do not differ.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

enum { X, W, R, B, LENGTHS, STATE, CELL_STATE, PEEPHOLES, INPUTS };
enum { MOST_ACTS = 6 };

/* What a direction reads, made once for all its results. */
typedef struct Direction {
    TensorId in[INPUTS];
    uint32_t count, given;
} Direction;

typedef struct Layer {
    Onnx *x;
    OnnxNode *n;
    const char *cell;
    uint32_t directions, n_acts; /* activations of each direction */
    bool backwards, by_image;    /* layout 1: images come first */
    const char *act[MOST_ACTS];
    double alpha[MOST_ACTS], beta[MOST_ACTS];
    TensorId in; /* T x N x I */
    Direction direction[2];
} Layer;

/* ---- attributes ---- */

/* What ONNX calls an activation, and its numbers where nobody gives them. */
static const struct {
    const char *given, *word;
    uint32_t numbers; /* how many of alpha, beta it has */
    double alpha, beta;
} acts[] = {
    {"sigmoid", "sigmoid", 0, 0, 0},
    {"tanh", "tanh", 0, 0, 0},
    {"relu", "relu", 0, 0, 0},
    {"hardsigmoid", "hard_sigmoid", 2, 0.2, 0.5},
    {"affine", "affine", 2, 1, 0},
    {"leakyrelu", "leaky_relu", 1, 0.01, 0},
    {"thresholdedrelu", "thresholded_relu", 1, 1, 0},
    {"scaledtanh", "scaled_tanh", 2, 1, 1},
    {"elu", "elu", 1, 1, 0},
    {"softsign", "softsign", 0, 0, 0},
    {"softplus", "softplus", 0, 0, 0},
};
enum { N_ACTS = sizeof acts / sizeof *acts };

static bool same_word(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if ((*a | 32) != (*b | 32))
            return false;
    return *a == *b;
}

/* The next number of a list that goes over all activations. */
static double next_number(Layer *l, const char *list, const ProtoField **at,
                          double absent) {
    *at = proto_next(onnx_attr(l->n, list), "floats", *at);
    if (*at)
        proto_get_f64(l->x->diag, *at, &absent);
    return absent;
}

static bool read_acts(Layer *l) {
    const ProtoField *f = NULL, *alpha = NULL, *beta = NULL;
    const ProtoMessage *list = onnx_attr(l->n, "activations");
    uint32_t all = l->directions * l->n_acts;
    for (uint32_t i = 0; i < all; i++) {
        const char *given =
            i % l->n_acts || !strcmp(l->cell, "rnn") ? "tanh" : "sigmoid";
        uint32_t k = 0;
        if (list && (f = proto_next(list, "strings", f)))
            proto_get_str(l->x->diag, f, &given);
        while (k < N_ACTS && !same_word(acts[k].given, given))
            k++;
        if (k == N_ACTS)
            return onnx_error(l->x, l->n, "activation \"%.40s\" is not known",
                              given);
        l->act[i] = acts[k].word;
        l->alpha[i] = acts[k].alpha;
        l->beta[i] = acts[k].beta;
        if (acts[k].numbers > 0 && (alpha || !i))
            l->alpha[i] =
                next_number(l, "activation_alpha", &alpha, acts[k].alpha);
        if (acts[k].numbers > 1 && (beta || !i))
            l->beta[i] = next_number(l, "activation_beta", &beta, acts[k].beta);
    }
    return true;
}

/* ---- one direction ---- */

/* Of D x ...: part `d`, as a tensor of all other axes. */
static TensorId part(Layer *l, uint32_t i, uint32_t d) {
    Onnx *x = l->x;
    OnnxValue *value = onnx_in(x, l->n, i);
    Shape rest = {.rank = value->shape.rank - 1};
    memcpy(rest.dim, value->shape.dim + 1, rest.rank * sizeof *rest.dim);
    if (value->state == ONNX_CONST && l->directions == 1)
        return onnx_constant(x, l->n,
                             onnx_const_reshaped(x, &value->constant, &rest));
    if (value->state == ONNX_CONST) {
        const double *number = onnx_numbers(x, value);
        if (!number)
            return onnx_error(x, l->n, "its weights are too many"), NO_TENSOR;
        return onnx_constant(
            x, l->n, onnx_values(rest, number + d * shape_count(&rest)));
    }
    TensorId in = onnx_tensor(x, value);
    if (l->directions > 1)
        in = onnx_slice(x, l->n, in, 0, d, d + 1);
    return onnx_reshape(x, l->n, in, rest);
}

/* A state, which is images x D x H where images come first. */
static TensorId state(Layer *l, uint32_t i, uint32_t d) {
    static const uint32_t perm[] = {1, 0, 2};
    Onnx *x = l->x;
    if (!l->by_image)
        return part(l, i, d);
    TensorId in = onnx_tensor_in(x, l->n, i);
    if (onnx_in(x, l->n, i)->shape.rank != 3)
        return onnx_error(x, l->n, "its state has not three axes"), NO_TENSOR;
    in = onnx_transpose(x, l->n, in, perm);
    in = onnx_slice(x, l->n, in, 0, d, d + 1);
    if (in.i == NONE)
        return in;
    const Shape *s = onnx_shape(x, in);
    return onnx_reshape(x, l->n, in, (Shape){2, {s->dim[1], s->dim[2]}});
}

static bool set_attributes(Layer *l, NodeId id, uint32_t d, bool backwards) {
    static const char *const names[] = {"f", "g", "h"};
    Onnx *x = l->x;
    const OnnxNode *n = l->n;
    double alpha[3] = {0}, beta[3] = {0};
    bool good = onnx_word_is(x, n, id, "cell", l->cell);
    for (uint32_t i = 0; i < l->n_acts; i++) {
        uint32_t at = d * l->n_acts + i;
        good &= onnx_word_is(x, n, id, names[i], l->act[at]);
        alpha[i] = l->alpha[at];
        beta[i] = l->beta[at];
    }
    return good && onnx_numbers_are(x, n, id, "alpha", 3, alpha) &&
           onnx_numbers_are(x, n, id, "beta", 3, beta) &&
           onnx_number_is(x, n, id, "reverse", backwards) &&
           onnx_number_is(x, n, id, "clip", onnx_float(x, n, "clip", 0)) &&
           onnx_number_is(x, n, id, "couple",
                          onnx_int(x, n, "input_forget", 0) != 0) &&
           onnx_number_is(x, n, id, "reset_after",
                          onnx_int(x, n, "linear_before_reset", 0) != 0);
}

static Direction inputs_of(Layer *l, uint32_t d) {
    Onnx *x = l->x;
    Direction made = {.in = {l->in}, .count = 1, .given = 1};
    for (uint32_t i = 1; i < INPUTS; i++) {
        if (!onnx_in(x, l->n, i) || onnx_in(x, l->n, i)->shape.rank == 0)
            continue;
        bool is_state = i == STATE || i == CELL_STATE;
        made.in[made.count++] = i == LENGTHS ? onnx_tensor_in(x, l->n, i)
                                : is_state   ? state(l, i, d)
                                             : part(l, i, d);
        made.given |= 1u << i;
    }
    return made;
}

/* A result of direction `d`. */
static TensorId run_direction(Layer *l, uint32_t d, uint32_t result) {
    Onnx *x = l->x;
    const Direction *own = &l->direction[d];
    bool backwards = l->directions > 1 ? d == 1 : l->backwards;
    NodeId id = onnx_routine(x, l->n, ROUTINE_RECURRENT, own->count, own->in);
    if (!set_attributes(l, id, d, backwards) ||
        !onnx_number_is(x, l->n, id, "given", own->given) ||
        !onnx_number_is(x, l->n, id, "result", result))
        return NO_TENSOR;
    return onnx_end(x, id);
}

/* The last state of all states. */
static TensorId last_of(Layer *l, TensorId all, uint32_t d) {
    Onnx *x = l->x;
    if (all.i == NONE)
        return all;
    Shape s = *onnx_shape(x, all);
    bool backwards = l->directions > 1 ? d == 1 : l->backwards;
    uint32_t at = backwards ? 0 : s.dim[0] - 1;
    all = onnx_slice(x, l->n, all, 0, at, at + 1);
    return onnx_reshape(x, l->n, all, (Shape){2, {s.dim[1], s.dim[2]}});
}

/* ---- all directions ---- */

/* Results of the directions, T x N x H or N x H, side by side at `axis`. */
static TensorId join(Layer *l, const TensorId *part, uint32_t axis) {
    Onnx *x = l->x;
    TensorId wide[2] = {NO_TENSOR, NO_TENSOR};
    for (uint32_t d = 0; d < l->directions; d++) {
        if (part[d].i == NONE)
            return NO_TENSOR;
        Shape s = *onnx_shape(x, part[d]), to = {.rank = s.rank + 1};
        for (uint32_t i = 0; i < to.rank; i++)
            to.dim[i] = i == axis ? 1 : s.dim[i - (i > axis)];
        wide[d] = onnx_reshape(x, l->n, part[d], to);
    }
    if (l->directions == 1)
        return wide[0];
    NodeId id = onnx_add(x, l->n, OP_CONCAT, "directions", 2, wide);
    if (id.i == NONE)
        return NO_TENSOR;
    graph_node(x->graph, id)->attr.axis.axis = axis;
    return onnx_end(x, id);
}

static bool set_result(Layer *l, uint32_t i, const TensorId *part) {
    static const uint32_t all[] = {2, 0, 1, 3}, last[] = {1, 0, 2};
    TensorId out = join(l, part, i ? 0 : 1);
    if (l->by_image)
        out = onnx_transpose(l->x, l->n, out, i ? last : all);
    return onnx_set(l->x, l->n, i, out, NULL);
}

static bool check_layer(Layer *l) {
    Onnx *x = l->x;
    const char *direction = onnx_word(x, l->n, "direction", "forward");
    uint32_t ranks[INPUTS] = {3, 3, 3, 2, 1, 3, 3, 2};
    l->backwards = !strcmp(direction, "reverse");
    l->directions = !strcmp(direction, "bidirectional") ? 2 : 1;
    l->by_image = onnx_int(x, l->n, "layout", 0) != 0;
    l->n_acts = !strcmp(l->cell, "rnn") ? 1 : !strcmp(l->cell, "gru") ? 2 : 3;
    for (uint32_t i = 0; i < l->n->n_in; i++) {
        const OnnxValue *in = onnx_in(x, l->n, i);
        bool split = i != X && i != LENGTHS && !(l->by_image && i >= STATE);
        if (in && (in->shape.rank != ranks[i] ||
                   (split && in->shape.dim[0] != l->directions)))
            return onnx_error(x, l->n, "input %u of %s does not fit", i,
                              shape_text(x->arena, &in->shape));
    }
    return read_acts(l);
}

bool onnx_recurrent(Onnx *x, OnnxNode *n) {
    static const uint32_t perm[] = {1, 0, 2};
    static const char *const cells[] = {"rnn", "gru", "lstm"};
    Layer l = {.x = x, .n = n, .cell = cells[n->op->kind]};
    if (!check_layer(&l))
        return false;
    l.in = onnx_tensor_in(x, n, X);
    if (l.by_image)
        l.in = onnx_transpose(x, n, l.in, perm);
    TensorId all[2], last[2], cell[2];
    bool same = !onnx_in(x, n, LENGTHS);
    for (uint32_t d = 0; d < l.directions; d++) {
        l.direction[d] = inputs_of(&l, d);
        bool needs_all = onnx_wants(n, 0) || (same && onnx_wants(n, 1));
        all[d] = needs_all ? run_direction(&l, d, 0) : NO_TENSOR;
        last[d] = !onnx_wants(n, 1) ? NO_TENSOR
                  : same            ? last_of(&l, all[d], d)
                                    : run_direction(&l, d, 1);
        cell[d] = onnx_wants(n, 2) ? run_direction(&l, d, 2) : NO_TENSOR;
    }
    return (!onnx_wants(n, 0) || set_result(&l, 0, all)) &&
           (!onnx_wants(n, 1) || set_result(&l, 1, last)) &&
           (!onnx_wants(n, 2) || set_result(&l, 2, cell));
}
