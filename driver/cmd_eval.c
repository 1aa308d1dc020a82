/* cmd_eval.c - what a network computes: the reference evaluation by itself. */
#include "driver/calls.h"
#include "driver/commands.h"
#include "driver/evalnative.h"
#include "driver/room.h"

#include <math.h>

const float *const *evaluate(Arena *arena, const Graph *graph,
                             const float *const *inputs, Values *values) {
    const float **outputs = ARENA_ARRAY(arena, const float *, graph->output.n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->node.n; i++)
        n += graph->node.at[i].op == OP_INPUT;
    *values = graph_eval(arena, graph, n, inputs);
    for (uint32_t i = 0; i < graph->output.n; i++)
        outputs[i] = values->at[graph->output.at[i].i];
    return outputs;
}

typedef struct RunTimes {
    double made, run; /* of native code, in milliseconds */
} RunTimes;

static void report_json(Arena *arena, const Options *options, const Pipeline *p,
                        const RunTimes *times, const Expectation *e) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", e->output == NULL);
    cJSON_AddStringToObject(json, "network", p->original->name);
    cJSON_AddNumberToObject(json, "outputs_compared", e->outputs);
    cJSON_AddNumberToObject(json, "max_rel_error",
                            isfinite(e->max_error) ? e->max_error : 1e300);
    cJSON_AddNumberToObject(json, "seeded_layers", p->import.seeded);
    cJSON *ms = stage_times_json(p);
    if (times->made > 0) {
        cJSON_AddNumberToObject(ms, "native", times->made);
        cJSON_AddNumberToObject(ms, "run", times->run);
    }
    cJSON_AddItemToObject(json, "ms", ms);
    print_json(arena, options, json);
}

/* times: of native code; NULL: the reference computed. */
static void report(Arena *arena, const Pipeline *p, const Calls *calls,
                   const RunTimes *times, const Expectation *e) {
    const Graph *g = p->original;
    for (uint32_t i = 0; i < g->output.n; i++) {
        const Tensor *tensor = graph_tensor(g, g->output.at[i]);
        Shape shape = calls_shape(calls->n, &tensor->shape);
        say("output  %s %s%s\n", tensor->name, shape_text(arena, &shape),
            graph_state_of(g, g->output.at[i]).i != NONE ? ", a state" : "");
    }
    if (times)
        say("native  %.1f ms to make, %.1f ms to run\n", times->made,
            times->run);
    if (e->outputs)
        expect_print(times ? "native" : "reference", e);
    print_seeded(arena, p->import.seeded);
}

/* Runs all calls, by the reference or natively. */
static bool compute(Arena *arena, Diag *diag, const Options *options,
                    Pipeline *p, const Calls *calls, RunTimes *times,
                    Expectation *e) {
    const EvalArgs *own = options->own;
    NativeNetwork *net = NULL;
    if (own->native && !(net = native_open(arena, diag, options, p->original,
                                           &times->made)))
        return false;
    Arena *scratch = arena_new("call");
    double start = now_ms();
    for (uint32_t call = 0; call < calls->n; call++) {
        Values values;
        const float *const *in = calls_inputs(scratch, calls, call);
        const float *const *out =
            net ? native_call(scratch, net, in, &times->run)
                : evaluate(scratch, p->original, in, &values);
        calls_keep(calls, call, out);
        *e = expect_join(*e, calls_compare(scratch, calls, call, out,
                                           own->tolerance));
        arena_reset(scratch);
    }
    if (net)
        native_close(net);
    else
        p->ms[STAGE_REFERENCE] = now_ms() - start;
    arena_free(scratch);
    return true;
}

ExitCode cmd_eval(Arena *arena, Diag *diag, const Options *options) {
    const EvalArgs *own = options->own;
    Pipeline p;
    Options plain = *options;
    plain.target = NULL; /* only code is for a machine */
    ExitCode code = pipeline_run(arena, diag, &plain, STAGE_READ, &p);
    if (code != EXIT_FINE)
        return code;
    if (!own->native && !room_evaluates(arena, diag, p.original))
        return EXIT_NO_FIT;
    Calls calls;
    RunTimes times = {0};
    Expectation e = {0};
    if (!calls_read(arena, diag, options, &own->expects, p.original, &calls) ||
        !compute(arena, diag, options, &p, &calls, &times, &e))
        return EXIT_BAD_INPUT;
    if (options->out && !calls_write(arena, diag, &calls, options->out))
        return EXIT_BAD_INPUT;
    if (options->json)
        report_json(arena, options, &p, &times, &e);
    else
        report(arena, &p, &calls, own->native ? &times : NULL, &e);
    return e.output ? EXIT_BAD_INPUT : EXIT_FINE;
}
