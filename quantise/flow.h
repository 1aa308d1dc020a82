/* flow.h - what the steps of quantise_run share. */
#ifndef QUANTISE_FLOW_H
#define QUANTISE_FLOW_H

#include "quantise/run.h"
#include "quantise/scheme.h"

typedef struct Flow {
    Arena *arena;
    Diag *diag;
    const QuantiseSamples *samples;
    const QuantiseOptions *options;
    const float **real_out;    /* sample s, output o: [s * outputs + o] */
    const float **real_judged; /* the same of what outputs are judged by */
} Flow;

/* Some of the samples, by number. */
typedef struct Some {
    uint32_t n;
    const uint32_t *at;
} Some;
enum { HELD_BACK = 4 }; /* every so many-th is */
/* Held back, or the others. */
Some some_samples(Arena *arena, const QuantiseSamples *samples, bool held_back);
/* Every n-th of them, so that there are at most `most`. */
Some some_of(Arena *arena, Some from, uint32_t most);

static inline const float *const *flow_inputs(const Flow *f, uint32_t sample) {
    return f->samples->value + (size_t)sample * f->samples->n_inputs;
}

void flow_progress(const Flow *f, const char *what, uint32_t done, uint32_t of);

/* Products of one sample. */
uint64_t flow_products(const Graph *g);

/* ---- observe.c ---- */

/* Over all samples. */
typedef struct Seen {
    Histogram **histogram; /* by tensor */
    float **channel; /* by tensor: the largest size of each channel (axis 1);
                      * NULL where the shape has none */
} Seen;
/* With `keep`, outputs of each sample go to f->real_out, real_judged. */
Seen observe(Flow *f, const Graph *g, bool keep);

/* ---- judge.c ---- */

void error_add(QuantiseError *e, uint64_t n, const float *real,
               const float *got);
void error_join(QuantiseError *e, const QuantiseError *other);

/* What choices are judged by in place of output o: of a softmax, what it reads,
 * less the mean. Probabilities near 0 and 1 hide errors, those of a few samples
 * between would decide alone. */
TensorId judged_tensor(const Graph *g, uint32_t o);
/* A copy of what is compared; `real`: run_reals of the tensor. */
float *judged_values(Arena *arena, const Graph *g, uint32_t o,
                     const float *real);
/* Adds the error of sample `sample`, whose values on codes are `at`. */
void judged_add(const Flow *f, Arena *scratch, const Graph *codes,
                uint32_t sample, float *const *at, QuantiseError *e);

/* Outputs of a graph on codes against f->real_out; `judged`, or NULL, gets the
 * error of what choices are judged by. */
QuantiseJudgement flow_judge(const Flow *f, const Graph *codes, Some some,
                             QuantiseError *judged);

/* ---- choose.c ---- */

/* Everything to the nearest, by the method. */
Scheme scheme_choose(Flow *f, const Graph *g, const Groups *groups,
                     Histogram *const *by_tensor);
/* The histogram of each group's tensors together, at the group's tensor. */
Histogram **group_histograms(Arena *arena, const Graph *g, const Groups *groups,
                             Histogram *const *by_tensor);

/* given.c: as the options say, layer by layer; false after errors. */
bool scheme_given(Flow *f, const Graph *g, Groups *groups, Scheme *out);

/* What is chosen so far. */
typedef struct State {
    const Graph *g; /* of real numbers */
    Seen seen;
    Groups groups;
    Scheme scheme;
} State;
/* From a graph, with what the options say. */
State state_of(Flow *f, const Graph *g, bool keep);

/* ---- repairs: each gives a state to be judged ---- */

/* equalise.c: ways to do it, by number; false: no such way, or nothing to
 * equalise. */
bool equalise(Flow *f, const State *from, uint32_t way, const Graph **out,
              const char **detail);

/* measure.c: errors by tensor, examples; and warnings. */
void measure(Flow *f, const State *state, Quantised *out);
/* Of all constants. */
uint64_t weight_bytes(const Graph *g);

/* sweep.c: weights up or down, and biases, layer by layer. */
Scheme sweep(Flow *f, const State *from, bool round, bool bias,
             const char **detail);

/* tune.c: ranges by the error of the outputs; layers with 16 bits. */
Scheme tune_ranges(Flow *f, const State *from, const char **detail);
Scheme keep_layers(Flow *f, const State *from, Groups *groups,
                   const char **detail);

#endif
