/* volumes_steps.c - recurrent layers, step by step, as layers over volumes; see
 * volumes.c.
 *
 * Units are channels, steps rows and images columns. What gates get from the
 * input is one convolution for all steps; a step takes its row of that, adds
 * products with the last state, and goes on element by element. Gates of one
 * activation are one volume. States lie side by side as channels, which moves
 * nothing, until they become rows.
 */
#include "passes/volumes.h"

#include <string.h>

enum { X, W, R, B, LENGTHS, STATE, CELL_STATE, PEEPHOLES, INPUTS };
enum { MOST_GATES = 4, MOST_PARTS = 2 };
/* More steps stay a loop of the host. */
enum { MOST_STEPS = 128 };

/* Gates [first, first + n) of a cell, which have one activation. */
typedef struct Part {
    uint32_t first, n;
    TensorId from_in; /* of the input: all steps */
    ConstId weight, bias;
    Act act;
} Part;

typedef struct Cell {
    const char *name;
    uint32_t gates, parts;
    struct {
        uint32_t first, n;
        const char *act;
    } part[MOST_PARTS];
} Cell;
static const Cell cells[] = {
    {"rnn", 1, 1, {{0, 1, "f"}}},
    {"gru", 3, 2, {{0, 2, "f"}, {2, 1, "g"}}},
    {"lstm", 4, 2, {{0, 3, "f"}, {3, 1, "g"}}},
};

typedef struct Steps {
    Volumes *v;
    const Cell *cell;
    uint32_t in[INPUTS]; /* which input of the node; NONE */
    uint32_t n, images, inputs, units;
    bool reset_after, couple;
    double clip, cell_clip; /* 0: none */
    Part part[MOST_PARTS];
    ConstId peep[MOST_GATES]; /* factors of the cell; NO_CONST: none */
    TensorId h, c;            /* states; NO_TENSOR: zeros */
} Steps;

/* ---- the routine's attributes ---- */

static double number(const Volumes *v, const char *name, uint32_t i) {
    RoutineAttr attr;
    if (!routine_attr_named(ROUTINE_RECURRENT, name, &attr))
        bug("recurrent layers have no \"%s\"", name);
    return v->node->attr.routine.number[attr.at + i];
}

static bool is_set(const Volumes *v, const char *name) {
    return number(v, name, 0) > 0;
}

static const char *word(const Volumes *v, const char *name) {
    RoutineAttr attr;
    if (!routine_attr_named(ROUTINE_RECURRENT, name, &attr))
        bug("recurrent layers have no \"%s\"", name);
    return attr.words[(uint32_t)number(v, name, 0)];
}

/* The activation of gates f, g or h; false: engines know none such. */
static bool act_named(const Volumes *v, const char *name, Act *act) {
    static const struct {
        const char *word;
        ActKind kind;
    } known[] = {{"sigmoid", ACT_SIGMOID},
                 {"tanh", ACT_TANH},
                 {"relu", ACT_RELU},
                 {"hard_sigmoid", ACT_HARD_SIGMOID}};
    const char *is = word(v, name);
    uint32_t at = (uint32_t)(name[0] - 'f');
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].word, is)) {
            *act = (Act){.kind = known[i].kind,
                         .alpha = number(v, "alpha", at),
                         .lo = number(v, "beta", at)};
            return true;
        }
    return false;
}

/* ---- layers ---- */

static TensorId unary(Steps *s, const char *suffix, TensorId in, Act act) {
    Layer layer = layer_of(OP_ACT, suffix, in);
    layer.act = act;
    return volumes_add(s->v, &layer);
}

static TensorId both(Steps *s, EltKind kind, const char *suffix, TensorId a,
                     TensorId b, Act act) {
    Layer layer = layer_of(OP_ELTWISE, suffix, a);
    layer.attr.elt.kind = kind;
    layer.n_in = 2;
    layer.in[1] = b;
    layer.act = act;
    return volumes_add(s->v, &layer);
}

static TensorId times(Steps *s, const char *suffix, TensorId a, TensorId b) {
    return both(s, ELT_MUL, suffix, a, b, (Act){0});
}

static TensorId scaled(Steps *s, const char *suffix, TensorId in, ConstId scale,
                       ConstId bias) {
    Layer layer = layer_of(OP_SCALE, suffix, in);
    layer.constant[CONST_SCALE] = scale;
    layer.constant[CONST_BIAS] = bias;
    layer.no_bias = bias.i == NONE;
    return volumes_add(s->v, &layer);
}

static TensorId clipped(Steps *s, double limit, TensorId in) {
    return unary(s, "clip", in,
                 (Act){.kind = ACT_CLIP, .lo = -limit, .hi = limit});
}

/* 1 - x */
static TensorId rest_of(Steps *s, TensorId in) {
    Shape shape = shape_of(s->units);
    return scaled(s, "rest", in, constant_of(s->v->g, shape, -1, 0),
                  constant_of(s->v->g, shape, 1, 0));
}

static TensorId products(Steps *s, const char *suffix, TensorId in,
                         ConstId weight, ConstId bias) {
    Layer layer = layer_of(OP_CONV, suffix, in);
    layer.constant[CONST_WEIGHT] = weight;
    layer.constant[CONST_BIAS] = bias;
    layer.no_bias = bias.i == NONE;
    layer.attr.conv = (ConvAttr){
        .out_c = graph_const(s->v->g, weight)->shape.dim[0],
        .groups = 1,
        .kernel = {1, 1},
        .stride = {1, 1},
        .dilation = {1, 1},
    };
    return volumes_add(s->v, &layer);
}

/* Units [first, first + n) of a volume of several gates. */
static TensorId units_of(Steps *s, TensorId in, uint32_t gate) {
    uint32_t *channel = ARENA_ARRAY(s->v->arena, uint32_t, s->units);
    for (uint32_t i = 0; i < s->units; i++)
        channel[i] = gate * s->units + i;
    return volumes_channels(s->v, in, s->units, channel);
}

/* ---- constants ---- */

static double *values(Steps *s, uint32_t input) {
    TensorId in = s->v->node->in[s->in[input]];
    uint64_t n = shape_count(&graph_tensor(s->v->g, in)->shape);
    double *value = ARENA_ARRAY(s->v->arena, double, n);
    const_read_f64(volumes_value(s->v, in), value);
    return value;
}

/* Rows of the gates' weights for a part. */
static ConstId weights_of(Steps *s, const double *all, const Part *part,
                          uint32_t wide) {
    uint32_t rows = part->n * s->units;
    return volumes_const(s->v, shape_nchw(rows, wide, 1, 1),
                         all + (size_t)part->first * s->units * wide);
}

/* Biases of the sums from the input, and from the state: they are one, but
 * where a gate comes between. */
static ConstId bias_of(Steps *s, const double *all, const Part *part,
                       bool apart) {
    uint32_t n = part->n * s->units, wide = s->cell->gates * s->units;
    const double *from = all + part->first * s->units;
    double *sum = ARENA_ARRAY(s->v->arena, double, n);
    for (uint32_t i = 0; i < n; i++)
        sum[i] = from[i] + (apart ? 0 : from[wide + i]);
    return volumes_const(s->v, shape_of(n), sum);
}

/* ---- operands ---- */

/* Input k, of [rows, images, channels], as a volume. */
static bool volume_of(Steps *s, uint32_t input, uint32_t rows, uint32_t wide,
                      TensorId *out) {
    static const Shape perm = {4, {0, 3, 1, 2}};
    Shape lines = {4, {1, rows, s->images, wide}};
    View view;
    if (!volumes_see_last(s->v, s->in[input], &view) ||
        !view_reshape(s->v->arena, &view, &lines))
        return false;
    view_transpose(&view, &perm);
    if (volumes_image(s->v, &view, out))
        return true;
    View part = view;
    volumes_compact(s->v, &part);
    return volumes_in_order(s->v, &part, out);
}

/* A state that the layer begins with; false where engines cannot read it. */
static bool start_of(Steps *s, uint32_t input, TensorId *out) {
    *out = NO_TENSOR;
    if (s->in[input] == NONE)
        return true;
    if (!volumes_value(s->v, s->v->node->in[s->in[input]]))
        return volume_of(s, input, 1, s->units, out);
    const double *value = values(s, input);
    for (uint32_t i = 0; i < s->images * s->units; i++)
        if (value[i] < 0 || value[i] > 0)
            return false;
    return true;
}

/* ---- cells ---- */

/* What a part's gates get at a step, before their activation. */
typedef struct Sums {
    TensorId in, state; /* NO_TENSOR: the state is zeros, and has no bias */
} Sums;

static Sums sums_at(Steps *s, const Part *part, uint32_t row) {
    uint32_t plane[] = {1, s->images};
    uint32_t *pixel = ARENA_ARRAY(s->v->arena, uint32_t, s->images);
    for (uint32_t i = 0; i < s->images; i++)
        pixel[i] = row * s->images + i;
    Sums sums = {volumes_pixels(s->v, part->from_in, plane, pixel), NO_TENSOR};
    if (s->h.i != NONE)
        sums.state = products(s, "state", s->h, part->weight, part->bias);
    return sums;
}

/* The sum of both, through the activation. */
static TensorId gate_of(Steps *s, const char *suffix, const Sums *sums,
                        Act act) {
    bool clips = s->clip > 0;
    if (sums->state.i == NONE && !clips)
        return act.kind == ACT_NONE ? sums->in
                                    : unary(s, suffix, sums->in, act);
    TensorId sum = sums->state.i == NONE
                       ? sums->in
                       : both(s, ELT_ADD, suffix, sums->in, sums->state,
                              clips ? (Act){0} : act);
    if (!clips || act.kind == ACT_NONE)
        return sum;
    sum = clipped(s, s->clip, sum);
    return unary(s, suffix, sum, act);
}

static TensorId gates_at(Steps *s, const Part *part, uint32_t row) {
    Sums sums = sums_at(s, part, row);
    return gate_of(s, "gates", &sums, part->act);
}

static TensorId rnn_step(Steps *s, uint32_t row) {
    return gates_at(s, &s->part[0], row);
}

/* The gate of the new state, where r comes after the products with the old. */
static TensorId fresh_state(Steps *s, TensorId r, uint32_t row) {
    const Part *part = &s->part[1];
    Sums sums = sums_at(s, part, row);
    TensorId sum = sums.state;
    if (sum.i != NONE)
        sum = times(s, "reset", r, sum);
    else if (part->bias.i != NONE)
        sum = scaled(s, "reset", r, part->bias, NO_CONST);
    sums.state = sum;
    return gate_of(s, "fresh", &sums, part->act);
}

/* ... and before them. */
static TensorId fresh_of_reset(Steps *s, TensorId r, uint32_t row) {
    TensorId h = s->h;
    if (h.i != NONE)
        s->h = times(s, "reset", r, h);
    TensorId fresh = gates_at(s, &s->part[1], row);
    s->h = h;
    return fresh;
}

static TensorId gru_step(Steps *s, uint32_t row) {
    TensorId gates = gates_at(s, &s->part[0], row);
    TensorId z = units_of(s, gates, 0), r = units_of(s, gates, 1);
    TensorId fresh =
        s->reset_after ? fresh_state(s, r, row) : fresh_of_reset(s, r, row);
    TensorId next = times(s, "new", rest_of(s, z), fresh);
    return s->h.i == NONE ? next
                          : both(s, ELT_ADD, "next", next,
                                 times(s, "kept", z, s->h), (Act){0});
}

/* A gate of the first part, which may also look at the cell. */
static TensorId lstm_gate(Steps *s, TensorId gates, uint32_t gate,
                          TensorId cell) {
    TensorId own = units_of(s, gates, gate);
    if (s->in[PEEPHOLES] == NONE)
        return own;
    Sums sums = {own, NO_TENSOR};
    if (cell.i != NONE)
        sums.state = scaled(s, "peep", cell, s->peep[gate], NO_CONST);
    return gate_of(s, "gate", &sums, s->part[0].act);
}

static TensorId lstm_step(Steps *s, uint32_t row, Act last) {
    bool peeps = s->in[PEEPHOLES] != NONE;
    Part first = s->part[0];
    if (peeps)
        first.act = (Act){0};
    TensorId gates = gates_at(s, &first, row);
    TensorId in = lstm_gate(s, gates, 0, s->c);
    TensorId out = peeps ? NO_TENSOR : lstm_gate(s, gates, 1, NO_TENSOR);
    TensorId c = times(s, "new", in, gates_at(s, &s->part[1], row));
    if (s->c.i != NONE) {
        TensorId keep =
            s->couple ? rest_of(s, in) : lstm_gate(s, gates, 2, s->c);
        TensorId kept = times(s, "kept", keep, s->c);
        c = both(s, ELT_ADD, "cell", kept, c, (Act){0});
    }
    if (s->cell_clip > 0)
        c = clipped(s, s->cell_clip, c);
    s->c = c;
    if (peeps)
        out = lstm_gate(s, gates, 1, c);
    return times(s, "next", out, unary(s, "cell", c, last));
}

/* ---- the layer ---- */

static bool reads(const Steps *s) {
    const Volumes *v = s->v;
    static const HwOp needs[] = {
        HW_OP_CONV,          HW_OP_ADD,       HW_OP_MUL,
        HW_OP_ACT,           HW_OP_SCALE,     HW_OP_GATHER,
        HW_OP_GATHER_PIXELS, HW_OP_TRANSPOSE, HW_OP_RESHAPE};
    bool all = true;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        all &= volumes_has(v, needs[i]);
    for (uint32_t i = W; i <= B; i++)
        all &= s->in[i] == NONE || volumes_value(v, v->node->in[s->in[i]]);
    if (s->in[PEEPHOLES] != NONE)
        all &= volumes_value(v, v->node->in[s->in[PEEPHOLES]]) != NULL;
    return all && s->in[LENGTHS] == NONE && s->n && s->n <= MOST_STEPS;
}

static Steps open(Volumes *v) {
    Steps s = {.v = v, .h = NO_TENSOR, .c = NO_TENSOR};
    uint32_t given = (uint32_t)number(v, "given", 0), next = 0;
    const char *cell = word(v, "cell");
    s.cell = cells;
    while (strcmp(s.cell->name, cell))
        s.cell++;
    for (uint32_t i = 0; i < INPUTS; i++)
        s.in[i] = given >> i & 1 ? next++ : NONE;
    const Shape *x = volumes_in(v, X);
    s.n = x->dim[0];
    s.images = x->dim[1];
    s.inputs = x->dim[2];
    s.units = volumes_in(v, R)->dim[1];
    s.reset_after = is_set(v, "reset_after");
    s.couple = is_set(v, "couple");
    s.clip = number(v, "clip", 0);
    s.cell_clip = number(v, "cell_clip", 0);
    return s;
}

/* What all steps share. */
static bool make_parts(Steps *s) {
    TensorId in;
    for (uint32_t i = 0; i < s->cell->parts; i++)
        if (!act_named(s->v, s->cell->part[i].act, &s->part[i].act))
            return false;
    if (!volume_of(s, X, s->n, s->inputs, &in) || !start_of(s, STATE, &s->h) ||
        !start_of(s, CELL_STATE, &s->c))
        return false;
    if (s->in[PEEPHOLES] != NONE)
        for (uint32_t i = 0; i < 3; i++)
            s->peep[i] = volumes_const(s->v, shape_of(s->units),
                                       values(s, PEEPHOLES) + i * s->units);
    const double *w = values(s, W), *r = values(s, R);
    const double *b = s->in[B] == NONE ? NULL : values(s, B);
    for (uint32_t i = 0; i < s->cell->parts; i++) {
        Part *part = &s->part[i];
        part->first = s->cell->part[i].first;
        part->n = s->cell->part[i].n;
        bool apart = b && s->reset_after && part->first == 2;
        ConstId bias = b ? bias_of(s, b, part, apart) : NO_CONST;
        part->from_in =
            products(s, "inputs", in, weights_of(s, w, part, s->inputs), bias);
        part->weight = weights_of(s, r, part, s->units);
        part->bias = NO_CONST;
        if (apart)
            part->bias = bias_of(s, b + s->cell->gates * s->units, part, true);
    }
    return true;
}

/* All states, as rows. */
static TensorId rows_of(Steps *s, const TensorId *state) {
    static const Shape back = {4, {0, 2, 1, 3}};
    Volumes *v = s->v;
    if (s->n == 1)
        return state[0];
    TensorId made = volumes_join(v, "states", s->n, state);
    Shape apart = {4, {1, s->n, s->units, s->images}};
    return volumes_turned(v, volumes_reshaped(v, made, &apart), &back);
}

static void give_lines(Volumes *v, TensorId image) {
    static const Shape perm = {4, {0, 2, 3, 1}};
    const Shape *out = volumes_out(v);
    View view =
        view_of_image(v->arena, image, &graph_tensor(v->g, image)->shape);
    view_transpose(&view, &perm);
    if (!view_reshape(v->arena, &view, out))
        bug("pass volumes: states of rank %u have no view", out->rank);
    volumes_give(v, &view);
}

static bool is_bounded(const Steps *s) {
    uint64_t wide = (uint64_t)s->cell->gates * s->units;
    return wide <= 1 << 16 && s->images <= 1 << 12;
}

/* Those of a layer that is there already, for another of its results. */
static const Unrolled *unrolled_find(const Volumes *v) {
    RoutineAttr result;
    routine_attr_named(ROUTINE_RECURRENT, "result", &result);
    for (uint32_t i = 0; i < v->unrolled.n; i++) {
        const Unrolled *u = &v->unrolled.at[i];
        const Node *a = graph_node(v->g, u->node), *b = v->node;
        Attrs x = a->attr;
        x.routine.number[result.at] = b->attr.routine.number[result.at];
        if (a->n_in == b->n_in &&
            !memcmp(a->in, b->in, a->n_in * sizeof *a->in) &&
            !memcmp(x.routine.number, b->attr.routine.number,
                    sizeof x.routine.number))
            return u;
    }
    return NULL;
}

static bool unroll(Volumes *v, Unrolled *out) {
    Steps s = open(v);
    Act last = {0};
    if (!is_bounded(&s) || !reads(&s) || !act_named(v, "h", &last) ||
        !make_parts(&s))
        return false;
    TensorId *state = ARENA_ARRAY(v->arena, TensorId, s.n);
    bool reverse = is_set(v, "reverse");
    graph_gloss(v->g, "X__gates, X__state, X__cell, X__next and their like are "
                      "steps of the recurrent layer X");
    for (uint32_t t = 0; t < s.n; t++) {
        uint32_t row = reverse ? s.n - 1 - t : t;
        s.h = s.cell->gates == 4   ? lstm_step(&s, row, last)
              : s.cell->gates == 3 ? gru_step(&s, row)
                                   : rnn_step(&s, row);
        state[row] = s.h;
    }
    *out = (Unrolled){v->id, rows_of(&s, state), s.h, s.c};
    return true;
}

bool convert_routine(Volumes *v) {
    Unrolled made;
    if (v->node->attr.routine.kind != ROUTINE_RECURRENT)
        return false;
    const Unrolled *is = unrolled_find(v);
    if (!is && !unroll(v, &made))
        return false;
    if (!is) {
        vec_push(v->arena, &v->unrolled, made);
        is = &made;
    }
    uint32_t result = (uint32_t)number(v, "result", 0);
    give_lines(v, result == 0 ? is->all : result == 1 ? is->state : is->cell);
    return true;
}
