/* tune.c - choices by the error of the outputs; see flow.h.
 *
 * A range that is best for its tensor need not be best for the network. Each in
 * turn is tried some steps wider and narrower, and layers with 16 bits: the
 * network runs from the changed tensor on, on some samples that are not held
 * back.
 */
#include "quantise/flow.h"

#include <math.h>
#include <string.h>

/* Products that all tries together may take. */
static const double most_products = 6e10;
enum { MOST_SAMPLES = 48, LEAST_SAMPLES = 4, MOST_VALUES = 1 << 26 };

typedef struct Tuner {
    Flow *f;
    const State *from;
    Scheme scheme; /* the best so far */
    Some some;
    uint32_t *first; /* by group: the first node that makes or reads it */
    float ***kept;   /* by sample: values under the best scheme, by tensor */
    Arena **owner;   /* of these */
    double least;    /* noise of the outputs */
} Tuner;

typedef struct Try {
    Tuner *t;
    const Graph *g;
    const Runner *runner;
    uint32_t from;
    bool keep;
    QuantiseError *error; /* by sample */
} Try;

static void try_one(void *context, uint32_t i, Arena *scratch) {
    const Try *try = context;
    Tuner *t = try->t;
    const Graph *g = try->g;
    uint32_t sample = t->some.at[i];
    Arena *arena = try->keep ? t->owner[i] : scratch;
    float **at = ARENA_COPY(arena, float *, t->kept[i], g->tensor.n);
    for (uint32_t k = try->from; k < g->node.n; k++)
        for (uint32_t o = 0; o < g->node.at[k].n_out; o++)
            at[g->node.at[k].out[o].i] = NULL;
    runner_eval(try->runner, arena, flow_inputs(t->f, sample), try->from, at);
    judged_add(t->f, scratch, g, sample, at, &try->error[i]);
    if (try->keep)
        t->kept[i] = at;
}

/* Noise of the outputs; node `from` on is run anew. */
static double try_scheme(Tuner *t, const Scheme *scheme, uint32_t from,
                         bool keep) {
    Arena *arena = arena_new("a try");
    const Graph *g = scheme_graph(arena, scheme, &t->f->options->numbers);
    Try try = {t,    g,    runner_new(arena, g),
               from, keep, ARENA_ARRAY(arena, QuantiseError, t->some.n)};
    double noise = 0;
    run_all(t->some.n, t->f->options->threads, try_one, &try);
    for (uint32_t i = 0; i < t->some.n; i++)
        noise += try.error[i].noise;
    arena_free(arena);
    return noise;
}

/* ---- a tuner ---- */

static uint32_t *first_nodes(Arena *arena, const State *from) {
    const Graph *g = from->g;
    uint32_t *first = ARENA_ARRAY(arena, uint32_t, g->tensor.n);
    memset(first, 0xff, g->tensor.n * sizeof *first);
    for (uint32_t i = g->node.n; i-- > 0;) {
        const Node *node = &g->node.at[i];
        for (uint32_t o = 0; o < node->n_out; o++)
            first[from->groups.of[node->out[o].i]] = i;
    }
    return first;
}

static uint64_t all_values(const Graph *g) {
    uint64_t sum = 1;
    for (uint32_t t = 0; t < g->tensor.n; t++)
        sum += shape_count(&g->tensor.at[t].shape);
    return sum;
}

/* Samples so that `tries` runs of half the network keep to the budget; none:
 * too large a network. */
static Some affordable(Flow *f, const Graph *g, uint32_t tries) {
    double one = (double)flow_products(g) / 2 * tries;
    double most = most_products / one;
    double room = (double)MOST_VALUES / (double)all_values(g);
    uint32_t n = (uint32_t)fmin(fmin(most, room), MOST_SAMPLES);
    if (n < LEAST_SAMPLES)
        return (Some){0, NULL};
    return some_of(f->arena, some_samples(f->arena, f->samples, false), n);
}

static bool start(Tuner *t, Flow *f, const State *from, uint32_t tries) {
    *t = (Tuner){.f = f,
                 .from = from,
                 .scheme = from->scheme,
                 .some = affordable(f, from->g, tries),
                 .first = first_nodes(f->arena, from)};
    uint32_t n = from->g->tensor.n;
    if (!t->some.n)
        return false;
    t->scheme.quant = ARENA_COPY(f->arena, Quant, from->scheme.quant, n);
    t->scheme.weight =
        ARENA_COPY(f->arena, WeightCodes, from->scheme.weight, from->g->node.n);
    t->kept = ARENA_ARRAY(f->arena, float **, t->some.n);
    t->owner = ARENA_ARRAY(f->arena, Arena *, t->some.n);
    for (uint32_t i = 0; i < t->some.n; i++) {
        t->owner[i] = arena_new("values of a sample");
        t->kept[i] = ARENA_ARRAY(f->arena, float *, n);
    }
    t->least = try_scheme(t, &t->scheme, 0, true);
    return true;
}

static void end(Tuner *t) {
    for (uint32_t i = 0; i < t->some.n; i++)
        arena_free(t->owner[i]);
}

static void set_group(const Tuner *t, Scheme *s, uint32_t group, Quant q) {
    for (uint32_t k = 0; k < t->from->g->tensor.n; k++)
        if (t->from->groups.of[k] == group)
            s->quant[k] = q;
}

/* Keeps the quantisation if the outputs are better for it. */
static bool try_quant(Tuner *t, uint32_t group, Quant q) {
    Quant old = t->scheme.quant[group];
    set_group(t, &t->scheme, group, q);
    double noise = try_scheme(t, &t->scheme, t->first[group], false);
    bool better = noise < t->least * 0.999;
    if (better)
        t->least = try_scheme(t, &t->scheme, t->first[group], true);
    else
        set_group(t, &t->scheme, group, old);
    return better;
}

/* ---- ranges ---- */

static bool is_free(const Tuner *t, uint32_t group) {
    const Groups *g = &t->from->groups;
    return g->of[group] == group && !g->real[group] && !g->fixed[group].type &&
           t->scheme.quant[group].type != QUANT_NONE &&
           t->scheme.quant[group].type != QUANT_I16 && t->first[group] != NONE;
}

/* The same zero, another reach; or another power of two. */
static Quant stretched(const Tuner *t, uint32_t group, double by) {
    Quant q = t->scheme.quant[group];
    if (t->f->options->numbers.pow2)
        by = by > 1 ? 2 : 0.5;
    Range r = range_of(&q);
    return range_quant((Range){r.lo * by, r.hi * by}, q.type,
                       &t->f->options->numbers);
}

static uint32_t tune_group(Tuner *t, uint32_t group) {
    static const double wider[] = {1.08, 1.08, 1.16},
                        less[] = {0.92, 0.92, 0.85};
    uint32_t changed = 0;
    bool pow2 = t->f->options->numbers.pow2;
    for (int i = 0; i < (pow2 ? 1 : 3); i++)
        if (!try_quant(t, group, stretched(t, group, less[i])))
            break;
        else
            changed = 1;
    for (int i = 0; !changed && i < (pow2 ? 1 : 3); i++)
        if (!try_quant(t, group, stretched(t, group, wider[i])))
            break;
        else
            changed = 1;
    return changed;
}

/* Each range once; how many changed. */
static uint32_t tune_once(Tuner *t, uint32_t groups) {
    uint32_t changed = 0, done = 0;
    for (uint32_t k = 0; k < t->from->g->tensor.n; k++) {
        if (t->from->groups.of[k] == k)
            flow_progress(t->f, "ranges tried", ++done, groups);
        changed += is_free(t, k) ? tune_group(t, k) : 0;
    }
    return changed;
}

/* A power of two is tried twice, not six times: there is time to ask what else
 * is better behind what has changed. */
Scheme tune_ranges(Flow *f, const State *from, const char **detail) {
    enum { ROUNDS = 4 };
    Tuner t;
    uint32_t groups = 0, changes = 0;
    for (uint32_t k = 0; k < from->g->tensor.n; k++)
        groups += from->groups.of[k] == k;
    bool pow2 = f->options->numbers.pow2;
    if (!start(&t, f, from, (pow2 ? 2 * ROUNDS : 3) * groups)) {
        *detail = "the network is too large for so many tries";
        return from->scheme;
    }
    for (int i = 0; i < (pow2 ? ROUNDS : 1); i++) {
        uint32_t changed = tune_once(&t, groups);
        changes += changed;
        if (!changed)
            break;
    }
    end(&t);
    *detail = arena_printf(f->arena, "%u changes of %u", changes, groups);
    return t.scheme;
}

/* ---- layers with 16 bits ---- */

/* The noise of the outputs where the group alone has them. */
static double with_wide(Tuner *t, uint32_t group, const Histogram *h) {
    Quant old = t->scheme.quant[group];
    Range r = {(double)h->lo, (double)h->hi};
    set_group(t, &t->scheme, group,
              range_quant(r, QUANT_I16, &t->f->options->numbers));
    double noise = try_scheme(t, &t->scheme, t->first[group], false);
    set_group(t, &t->scheme, group, old);
    return noise;
}

Scheme keep_layers(Flow *f, const State *from, Groups *groups,
                   const char **detail) {
    Tuner t;
    uint32_t n = from->g->tensor.n;
    Histogram **h = group_histograms(f->arena, from->g, &from->groups,
                                     from->seen.histogram);
    double *noise = ARENA_ARRAY(f->arena, double, n);
    *detail = "none makes it better";
    if (!start(&t, f, from, n)) {
        *detail = "the network is too large for so many tries";
        return from->scheme;
    }
    for (uint32_t k = 0; k < n; k++) {
        noise[k] = is_free(&t, k) ? with_wide(&t, k, h[k]) : t.least;
        flow_progress(f, "layers in 16 bits tried", k + 1, n);
    }
    groups->wide = ARENA_COPY(f->arena, bool, groups->wide, n);
    for (uint32_t i = 0; i < f->options->keep_most; i++) {
        uint32_t best = 0;
        for (uint32_t k = 1; k < n; k++)
            best = noise[k] < noise[best] ? k : best;
        if (noise[best] >= t.least * 0.99)
            break;
        noise[best] = t.least;
        groups->wide[best] = true;
        set_group(&t, &t.scheme, best,
                  range_quant((Range){(double)h[best]->lo, (double)h[best]->hi},
                              QUANT_I16, &f->options->numbers));
        *detail = arena_printf(f->arena, "%s%s%s", i ? *detail : "",
                               i ? ", " : "", from->g->tensor.at[best].name);
    }
    end(&t);
    return t.scheme;
}
