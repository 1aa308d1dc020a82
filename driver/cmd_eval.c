/* cmd_eval.c - what a network computes: the reference evaluation by itself. */
#include "driver/commands.h"
#include "driver/evalnative.h"
#include "driver/expect.h"
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

static bool write_outputs(Arena *arena, Diag *diag, const Options *options,
                          const Graph *graph, const float *const *outputs) {
    if (!options->out)
        return true;
    bool ok = file_make_dir(arena, diag, options->out);
    for (uint32_t i = 0; ok && i < graph->output.n; i++) {
        Valued of =
            values_of("output", graph_tensor(graph, graph->output.at[i]));
        ok = values_write(arena, diag, options->out, &of, outputs[i]);
    }
    return ok;
}

static void report_json(Arena *arena, const Options *options, const Pipeline *p,
                        const NativeRunTimes *times, const Expectation *e) {
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
static void report(Arena *arena, const Pipeline *p, const NativeRunTimes *times,
                   const Expectation *e) {
    const Graph *g = p->original;
    for (uint32_t i = 0; i < g->output.n; i++) {
        const Tensor *tensor = graph_tensor(g, g->output.at[i]);
        say("output  %s %s\n", tensor->name, shape_text(arena, &tensor->shape));
    }
    if (times)
        say("native  %.1f ms to make, %.1f ms to run\n", times->made,
            times->run);
    if (e->outputs)
        expect_print(times ? "native" : "reference", e);
    if (p->import.seeded)
        say("weights %u layers had none: seeded ones\n", p->import.seeded);
}

/* By the reference, or natively. */
static const float *const *compute(Arena *arena, Diag *diag,
                                   const Options *options, Pipeline *p,
                                   const float *const *inputs,
                                   NativeRunTimes *times) {
    if (((const EvalArgs *)options->own)->native)
        return native_evaluate(arena, diag, options, p->original, inputs,
                               times);
    Values values;
    double start = now_ms();
    const float *const *out = evaluate(arena, p->original, inputs, &values);
    p->ms[STAGE_REFERENCE] = now_ms() - start;
    return out;
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
    const float *const *inputs = read_inputs(arena, diag, options, p.original);
    const float *const *expected;
    if (!inputs || !expect_read(arena, diag, options->file, &own->expects,
                                p.original, &expected))
        return EXIT_BAD_INPUT;
    NativeRunTimes times = {0};
    const float *const *outputs =
        compute(arena, diag, options, &p, inputs, &times);
    if (!outputs)
        return EXIT_BAD_INPUT;
    if (!write_outputs(arena, diag, options, p.original, outputs))
        return EXIT_BAD_INPUT;
    Expectation e =
        expect_compare(p.original, expected, outputs, own->tolerance);
    if (options->json)
        report_json(arena, options, &p, &times, &e);
    else
        report(arena, &p, own->native ? &times : NULL, &e);
    return e.output ? EXIT_BAD_INPUT : EXIT_FINE;
}
