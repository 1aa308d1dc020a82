/* flow.c - from a network and samples to the network on codes; see quantise.h.
 */
#include "quantise/flow.h"

#include <math.h>

const char *const quantise_repair_name[REPAIR_COUNT + 1] = {
#define REPAIR(NAME, text, doc) text,
    QUANTISE_REPAIRS
#undef REPAIR
        NULL};

Some some_samples(Arena *arena, const QuantiseSamples *samples,
                  bool held_back) {
    uint32_t *at = ARENA_ARRAY(arena, uint32_t, samples->n), n = 0;
    for (uint32_t s = 0; s < samples->n; s++)
        if ((s % HELD_BACK == HELD_BACK - 1) == held_back)
            at[n++] = s;
    if (!n) /* too few to hold any back */
        at[n++] = 0;
    return (Some){n, at};
}

Some some_of(Arena *arena, Some from, uint32_t most) {
    uint32_t step = most ? (from.n + most - 1) / most : from.n;
    uint32_t *at = ARENA_ARRAY(arena, uint32_t, from.n), n = 0;
    for (uint32_t i = 0; i < from.n; i += step ? step : 1)
        at[n++] = from.at[i];
    return (Some){n, at};
}

void flow_progress(const Flow *f, const char *what, uint32_t done,
                   uint32_t of) {
    if (f->options->progress)
        f->options->progress(what, done, of);
}

uint64_t flow_products(const Graph *g) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (!linear_is(g, node))
            continue;
        Linear l = linear_of(g, node);
        sum += linear_count(&l) * l.length;
    }
    return sum ? sum : 1;
}

static bool any_codes(const Scheme *s) {
    for (uint32_t t = 0; t < s->g->tensor.n; t++)
        if (s->quant[t].type != QUANT_NONE)
            return true;
    return false;
}

State state_of(Flow *f, const Graph *g, bool keep) {
    State s = {.g = g, .seen = observe(f, g, keep)};
    s.groups = groups_of(f->arena, g, f->options);
    s.scheme = scheme_choose(f, g, &s.groups, s.seen.histogram);
    return s;
}

/* False, and an error, where an input had no number on any sample. */
static bool inputs_have_numbers(const Flow *f, const State *s) {
    for (uint32_t i = 0; i < s->g->node.n; i++) {
        const Node *node = &s->g->node.at[i];
        const Histogram *h = s->seen.histogram[node->out[0].i];
        if (node->op != OP_INPUT || h->n || h->zeros || !h->nans)
            continue;
        diag_error(f->diag, (Loc){0},
                   "input \"%s\" is no number on any sample",
                   graph_tensor(s->g, node->out[0])->name);
        return false;
    }
    return true;
}

/* ---- repairs ---- */

/* What is kept so far, and what was tried. */
typedef struct Course {
    Flow *f;
    State state;
    Some held_back;
    double db; /* of the held-back samples */
    VEC(QuantiseTrial) trial;
} Course;

static double db_of(const Course *c, const State *state) {
    Arena *scratch = arena_new("a judgement");
    const Graph *g =
        scheme_graph(scratch, &state->scheme, &c->f->options->numbers);
    QuantiseError judged = {0};
    flow_judge(c->f, g, c->held_back, &judged);
    arena_free(scratch);
    return quantise_db(&judged);
}

/* Keeps the state if held-back samples get better. */
static bool consider(Course *c, QuantiseRepair repair, const State *state,
                     const char *detail) {
    double db = db_of(c, state);
    QuantiseTrial trial = {quantise_repair_name[repair], c->db, db, db > c->db,
                           detail};
    vec_push(c->f->arena, &c->trial, trial);
    if (!trial.kept)
        return false;
    c->db = db;
    c->state = *state;
    return true;
}

static bool wants(const Course *c, QuantiseRepair repair) {
    return c->f->options->repairs >> repair & 1;
}

static void try_equalise(Course *c) {
    const State before = c->state;
    const Graph *g;
    const char *detail;
    for (uint32_t way = 0; equalise(c->f, &before, way, &g, &detail); way++) {
        if (!g)
            continue;
        State state = state_of(c->f, g, false);
        consider(c, REPAIR_EQUALISE, &state, detail);
    }
}

static void try_sweep(Course *c, QuantiseRepair repair) {
    State state = c->state;
    const char *detail = NULL;
    bool round = repair == REPAIR_ROUND;
    state.scheme =
        sweep(c->f, &c->state, round, !round || wants(c, REPAIR_BIAS), &detail);
    consider(c, repair, &state, detail);
}

static void try_ranges(Course *c) {
    State state = c->state;
    const char *detail = NULL;
    state.scheme = tune_ranges(c->f, &c->state, &detail);
    consider(c, REPAIR_RANGES, &state, detail);
}

static void try_keep(Course *c) {
    State state = c->state;
    const char *detail = "the machine has no 16 bits";
    if (c->f->options->numbers.wide)
        state.scheme = keep_layers(c->f, &c->state, &state.groups, &detail);
    consider(c, REPAIR_KEEP, &state, detail);
}

static void repair(Course *c) {
    if (wants(c, REPAIR_EQUALISE))
        try_equalise(c);
    if (wants(c, REPAIR_RANGES))
        try_ranges(c);
    if (wants(c, REPAIR_ROUND))
        try_sweep(c, REPAIR_ROUND);
    if (wants(c, REPAIR_BIAS))
        try_sweep(c, REPAIR_BIAS);
    if (wants(c, REPAIR_KEEP))
        try_keep(c);
}

static bool has_codes(const Flow *f, const Scheme *s) {
    if (!any_codes(s))
        diag_error(f->diag, (Loc){0},
                   "no layer of the network can be on codes");
    return any_codes(s);
}

/* The graph, and what it does on the samples, if there are any. */
static Quantised *finish(Flow *f, const State *state, Some judged) {
    Quantised *out = ARENA_NEW(f->arena, Quantised);
    out->real = state->g;
    out->graph =
        scheme_graph(f->arena, &state->scheme, &f->options->numbers);
    out->weight_bytes_before = weight_bytes(out->real);
    out->weight_bytes_after = weight_bytes(out->graph);
    if (!judged.n)
        return out;
    out->held_back = flow_judge(f, out->graph, judged, NULL);
    measure(f, state, out);
    return out;
}

/* Nothing is chosen: all samples judge. */
static const Quantised *run_given(Flow *f, const Graph *g) {
    State state = {.g = g, .groups = groups_of(f->arena, g, f->options)};
    if (!scheme_given(f, g, &state.groups, &state.scheme) ||
        !has_codes(f, &state.scheme))
        return NULL;
    uint32_t *at = ARENA_ARRAY(f->arena, uint32_t, f->samples->n);
    for (uint32_t s = 0; s < f->samples->n; s++)
        at[s] = s;
    Some all = {f->samples->n, at};
    if (all.n)
        state.seen = observe(f, g, true);
    if (all.n && !inputs_have_numbers(f, &state))
        return NULL;
    return finish(f, &state, all);
}

const Quantised *quantise_run(Arena *arena, Diag *diag, const Graph *from,
                              const QuantiseSamples *samples,
                              const QuantiseOptions *options) {
    Flow f = {arena, diag, samples, options, NULL, NULL};
    const Graph *g = prepare_graph(arena, diag, from, &options->numbers);
    if (!g)
        return NULL;
    if (options->n_given)
        return run_given(&f, g);
    Course c = {.f = &f,
                .state = state_of(&f, g, true),
                .held_back = some_samples(arena, samples, true)};
    if (!has_codes(&f, &c.state.scheme) || !inputs_have_numbers(&f, &c.state))
        return NULL;
    c.db = db_of(&c, &c.state);
    repair(&c);
    Quantised *out = finish(&f, &c.state, c.held_back);
    out->n_trials = c.trial.n;
    out->trial = c.trial.at;
    return out;
}
