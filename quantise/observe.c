/* observe.c - what values tensors have over all samples; see flow.h. */
#include "quantise/flow.h"

#include <math.h>
#include <pthread.h>

typedef struct Observer {
    Flow *f;
    const Graph *g;
    const Runner *runner;
    Seen total;
    bool keep;
    uint32_t done;
    pthread_mutex_t lock; /* of total, done, and the flow's arena */
} Observer;

static void keep_outputs(Observer *o, uint32_t sample, float *const *at) {
    uint32_t n = o->g->output.n;
    for (uint32_t i = 0; i < n; i++) {
        TensorId id = o->g->output.at[i];
        uint64_t count = shape_count(&graph_tensor(o->g, id)->shape);
        o->f->real_out[sample * n + i] =
            ARENA_COPY(o->f->arena, float, at[id.i], count);
        o->f->real_judged[sample * n + i] =
            judged_values(o->f->arena, o->g, i, at[judged_tensor(o->g, i).i]);
    }
}

/* Larger of what channels had and have. */
static void widen_channels(const Shape *shape, const float *value, float *to) {
    size_t channels = shape->dim[1], inner = 1;
    for (uint32_t i = 2; i < shape->rank; i++)
        inner *= shape->dim[i];
    for (uint64_t i = 0, n = shape_count(shape); i < n; i++) {
        size_t c = i / inner % channels;
        to[c] = fmaxf(to[c], fabsf(value[i]));
    }
}

static void observe_one(void *context, uint32_t sample, Arena *scratch) {
    Observer *o = context;
    const Graph *g = o->g;
    float **at = ARENA_ARRAY(scratch, float *, g->tensor.n);
    Histogram **seen = ARENA_ARRAY(scratch, Histogram *, g->tensor.n);
    runner_eval(o->runner, scratch, flow_inputs(o->f, sample), 0, at);
    for (uint32_t t = 0; t < g->tensor.n; t++) {
        if (!at[t])
            continue;
        seen[t] = histogram_new(scratch);
        histogram_add(seen[t], shape_count(&g->tensor.at[t].shape), at[t]);
    }
    pthread_mutex_lock(&o->lock);
    for (uint32_t t = 0; t < g->tensor.n; t++)
        if (seen[t]) {
            histogram_join(o->total.histogram[t], seen[t]);
            if (o->total.channel[t])
                widen_channels(&g->tensor.at[t].shape, at[t],
                               o->total.channel[t]);
        }
    if (o->keep)
        keep_outputs(o, sample, at);
    flow_progress(o->f, "samples seen", ++o->done, o->f->samples->n);
    pthread_mutex_unlock(&o->lock);
}

static Seen seen_nothing(Arena *arena, const Graph *g) {
    Seen seen = {ARENA_ARRAY(arena, Histogram *, g->tensor.n),
                 ARENA_ARRAY(arena, float *, g->tensor.n)};
    for (uint32_t t = 0; t < g->tensor.n; t++) {
        const Shape *shape = &g->tensor.at[t].shape;
        seen.histogram[t] = histogram_new(arena);
        if (shape->rank > 1)
            seen.channel[t] = ARENA_ARRAY(arena, float, shape->dim[1]);
    }
    return seen;
}

Seen observe(Flow *f, const Graph *g, bool keep) {
    Arena *scratch = arena_new("observe");
    Observer o = {.f = f,
                  .g = g,
                  .runner = runner_new(scratch, g),
                  .total = seen_nothing(f->arena, g),
                  .keep = keep};
    size_t outputs = (size_t)f->samples->n * g->output.n;
    if (keep) {
        f->real_out = ARENA_ARRAY(f->arena, const float *, outputs);
        f->real_judged = ARENA_ARRAY(f->arena, const float *, outputs);
    }
    pthread_mutex_init(&o.lock, NULL);
    run_all(f->samples->n, f->options->threads, observe_one, &o);
    pthread_mutex_destroy(&o.lock);
    arena_free(scratch);
    return o.total;
}
