/* calls.c - a network called several times; see calls.h.
 *
 * In: a graph, files of values. Out: what each call reads, states included, and
 * what all calls gave.
 */
#include "driver/calls.h"

#include "driver/commands.h"
#include "driver/values.h"

#include <string.h>

Shape calls_shape(uint32_t calls, const Shape *shape) {
    Shape all = {.rank = shape->rank + 1, .dim = {calls}};
    if (calls == 1 || shape->rank == SHAPE_MAX_RANK)
        return *shape;
    memcpy(all.dim + 1, shape->dim, shape->rank * sizeof *shape->dim);
    return all;
}

static uint32_t files_asked(const Graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        n += g->node.at[i].op == OP_INPUT && !g->node.at[i].attr.state;
    return n;
}

static const float *read_all(Arena *arena, Diag *diag, const char *path,
                             const char *what, const Tensor *t,
                             uint32_t calls) {
    Valued of = values_of(what, t);
    Shape shape = calls_shape(calls, &t->shape);
    of.shape = &shape;
    return values_read(arena, diag, path, &of);
}

static bool read_given(Arena *arena, Diag *diag, const Options *options,
                       Calls *c) {
    uint32_t n = files_asked(c->g), k = 0;
    const float **given = ARENA_ARRAY(arena, const float *, n + 1);
    bool ok = options->inputs.n <= n;
    if (!ok)
        diag_error(diag, (Loc){options->file, 0, 0},
                   "the network has %u inputs, but --input was given %u times",
                   n, options->inputs.n);
    for (uint32_t i = 0; ok && i < c->g->node.n; i++) {
        const Node *node = &c->g->node.at[i];
        if (node->op != OP_INPUT || node->attr.state ||
            k >= options->inputs.n)
            continue;
        given[k] = read_all(arena, diag, options->inputs.at[k], "input",
                            graph_tensor(c->g, node->out[0]), c->n);
        ok = given[k++] != NULL;
    }
    c->given = given;
    return ok;
}

static bool read_expect(Arena *arena, Diag *diag, const Options *options,
                        const Texts *expects, Calls *c) {
    const float **values = ARENA_ARRAY(arena, const float *, c->g->output.n);
    bool ok = expects->n <= c->g->output.n;
    if (!ok)
        diag_error(diag, (Loc){options->file, 0, 0},
                   "the network has %u outputs, but --expect was given %u "
                   "times",
                   c->g->output.n, expects->n);
    for (uint32_t i = 0; ok && i < expects->n; i++) {
        values[i] = read_all(arena, diag, expects->at[i], "output",
                             graph_tensor(c->g, c->g->output.at[i]), c->n);
        ok = values[i] != NULL;
    }
    c->expect = values;
    return ok;
}

static uint64_t output_count(const Calls *c, uint32_t output) {
    return shape_count(&graph_tensor(c->g, c->g->output.at[output])->shape);
}

enum { MOST_CALLS = 1 << 20 };

uint32_t calls_asked(const Options *options) {
    return options->calls > MOST_CALLS ? MOST_CALLS + 1
           : options->calls            ? (uint32_t)options->calls
                                       : 1;
}

bool calls_read(Arena *arena, Diag *diag, const Options *options,
                const Texts *expects, const Graph *graph, Calls *out) {
    *out = (Calls){
        .n = calls_asked(options), .g = graph, .seed = options->seed};
    if (out->n > MOST_CALLS) {
        diag_error(diag, (Loc){0}, "--calls: at most %d", MOST_CALLS);
        return false;
    }
    bool ok = read_given(arena, diag, options, out) &&
              read_expect(arena, diag, options, expects, out);
    out->output = ARENA_ARRAY(arena, float *, graph->output.n + 1);
    for (uint32_t i = 0; ok && i < graph->output.n; i++)
        out->output[i] =
            ARENA_ARRAY(arena, float, out->n * output_count(out, i));
    return ok;
}

const float *const *calls_inputs(Arena *arena, const Calls *calls,
                                 uint32_t call) {
    const Graph *g = calls->g;
    uint32_t n, k = 0, file = 0;
    const float *const *seeded =
        graph_seed_inputs(arena, g, calls->seed + call, &n);
    const float **value = ARENA_ARRAY(arena, const float *, n + 1);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->op != OP_INPUT || node->dead)
            continue;
        const Tensor *t = graph_tensor(g, node->out[0]);
        value[k] = seeded[k];
        if (node->attr.state && call)
            value[k] = calls->output[node->attr.state - 1] +
                       (call - 1) * shape_count(&t->shape);
        else if (!node->attr.state && calls->given[file++])
            value[k] = calls->given[file - 1] + call * shape_count(&t->shape);
        k++;
    }
    return value;
}

void calls_keep(const Calls *calls, uint32_t call,
                const float *const *outputs) {
    for (uint32_t i = 0; i < calls->g->output.n; i++) {
        uint64_t n = output_count(calls, i);
        memcpy(calls->output[i] + call * n, outputs[i], n * sizeof(float));
    }
}

Expectation calls_compare(Arena *arena, const Calls *calls, uint32_t call,
                          const float *const *outputs, double tolerance) {
    const float **expect =
        ARENA_COPY(arena, const float *, calls->expect, calls->g->output.n);
    for (uint32_t i = 0; i < calls->g->output.n; i++)
        if (expect[i])
            expect[i] += call * output_count(calls, i);
    return expect_compare(calls->g, expect, outputs, tolerance);
}

Expectation expect_join(Expectation a, Expectation b) {
    Expectation all = a.output ? a : b;
    all.outputs = a.outputs > b.outputs ? a.outputs : b.outputs;
    all.max_error = a.max_error > b.max_error ? a.max_error : b.max_error;
    return all;
}

bool calls_write(Arena *arena, Diag *diag, const Calls *calls,
                 const char *dir) {
    bool ok = file_make_dir(arena, diag, dir);
    for (uint32_t i = 0; ok && i < calls->g->output.n; i++) {
        const Tensor *t = graph_tensor(calls->g, calls->g->output.at[i]);
        Shape shape = calls_shape(calls->n, &t->shape);
        Valued of = values_of("output", t);
        of.shape = &shape;
        ok = values_write(arena, diag, dir, &of, calls->output[i]);
    }
    return ok;
}

const float *const *read_inputs(Arena *arena, Diag *diag,
                                const Options *options, const Graph *graph) {
    Calls calls;
    Texts none = {0};
    if (options->calls > 1) {
        diag_error(diag, (Loc){0}, "--calls: only listings are run several "
                                   "times, not programs of a machine's own");
        return NULL;
    }
    return calls_read(arena, diag, options, &none, graph, &calls)
               ? calls_inputs(arena, &calls, 0)
               : NULL;
}
