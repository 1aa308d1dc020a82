/* compare.c - values of the simulator against the reference; see compare.h. */
#include "driver/compare.h"

#include "driver/terms.h"

#include <math.h>

Comparison compare_start(Arena *arena, const Pipeline *pipeline,
                         Values reference, double tolerance) {
    uint32_t n = pipeline->original->tensor.n;
    Comparison comparison = {.pipeline = pipeline,
                             .reference = reference,
                             .known = ARENA_ARRAY(arena, bool, n),
                             .largest = ARENA_ARRAY(arena, double, n),
                             .scale = ARENA_ARRAY(arena, double, n),
                             .seen =
                                 ARENA_ARRAY(arena, bool, pipeline->listing->n),
                             .tolerance = tolerance};
    for (uint32_t i = 0; i < n; i++)
        comparison.known[i] = reference.at[i] != NULL;
    compare_next(&comparison, reference);
    return comparison;
}

void compare_next(Comparison *comparison, Values reference) {
    uint32_t n = comparison->pipeline->original->tensor.n;
    comparison->reference = reference;
    comparison->scaled = false;
    for (uint32_t i = 0; i < n; i++)
        comparison->largest[i] = -1;
}

static double largest_of(Comparison *c, TensorId tensor) {
    double *largest = &c->largest[tensor.i];
    const float *value = c->reference.at[tensor.i];
    if (*largest >= 0 || !value)
        return fmax(*largest, 0);
    const Shape *shape = &graph_tensor(c->pipeline->original, tensor)->shape;
    *largest = 0;
    for (uint64_t i = 0, n = shape_count(shape); i < n; i++)
        if (isfinite(value[i]))
            *largest = fmax(*largest, fabs((double)value[i]));
    return *largest;
}

/* How values of a tensor are compared. */
typedef struct Measure {
    TensorId tensor;
    double scale, tolerance;
    double *most; /* of all such tensors */
} Measure;

static double scale_of(Comparison *c, TensorId tensor) {
    if (!c->scaled)
        scales_of(c->pipeline->original, c->reference, c->scale);
    c->scaled = true;
    return c->scale[tensor.i] > 0 ? c->scale[tensor.i] : 1;
}

static Measure measure_of(Comparison *c, TensorId tensor) {
    const Tensor *t = graph_tensor(c->pipeline->original, tensor);
    if (t->quant.type != QUANT_NONE)
        return (Measure){tensor, 1, 0, &c->max_codes};
    Measure by = {tensor, largest_of(c, tensor), c->tolerance, &c->max_error};
    if (by.scale <= 0)
        by.scale = scale_of(c, tensor);
    return by;
}

static void record(Comparison *c, const char *layer, uint32_t channel,
                   uint32_t row, uint32_t column, float expected, float got,
                   const Measure *by) {
    double apart = fabs((double)got - (double)expected);
    double error = apart / by->scale;
    if (got == expected || (isnan(got) && isnan(expected)))
        error = 0;
    else if (isnan(error))
        error = INFINITY;
    else if (error > by->tolerance && by->tolerance > 0)
        error = apart / scale_of(c, by->tensor);
    if (error > *by->most)
        *by->most = error;
    if (error > by->tolerance && !c->first.layer)
        c->first =
            (Mismatch){layer, channel, row, column, expected, got, error};
}

/* The tensor before all passes whose rows this instruction made, or none (a
 * layer that a pass invented). */
static TensorId original_of(const Comparison *c, const Action *action) {
    if (action->kind != ACTION_RUN && action->kind != ACTION_HOST)
        return NO_TENSOR;
    const Placement *out = &c->pipeline->plan->placement[action->out];
    return graph_tensor(c->pipeline->graph, out->tensor)->origin;
}

/* Another makes the result of them. */
static bool leaves_sums(const Comparison *c, const Action *action) {
    return action->kind == ACTION_RUN && action->n_in &&
           !addends_end(action_addends(c->pipeline->plan, action));
}

uint32_t compare_missing(const Comparison *c,
                         const char *names[COMPARE_NAMES]) {
    uint32_t missing = 0;
    for (uint32_t i = 0; i < c->pipeline->listing->n; i++) {
        const Action *action =
            &c->pipeline->plan->action[c->pipeline->action_of[i]];
        TensorId tensor = original_of(c, action);
        if (c->seen[i] || tensor.i == NONE || !c->known[tensor.i] ||
            leaves_sums(c, action))
            continue;
        if (missing < COMPARE_NAMES)
            names[missing] = graph_node(c->pipeline->graph, action->node)->name;
        missing++;
    }
    return missing;
}

void compare_observe(void *context, uint32_t insn, const SimOutput *output) {
    Comparison *c = context;
    const Action *action =
        &c->pipeline->plan->action[c->pipeline->action_of[insn]];
    TensorId tensor = original_of(c, action);
    if (tensor.i == NONE || !c->reference.at[tensor.i])
        return;
    uint32_t channels, height, width;
    shape_chw(&graph_tensor(c->pipeline->original, tensor)->shape, &channels,
              &height, &width);
    bool part = action->kind == ACTION_RUN;
    uint32_t from = c->pipeline->plan->placement[action->out].c;
    uint32_t first = part ? action->row : 0, left = part ? action->col : 0;
    if (from + output->c > channels || left + output->w > width ||
        first + output->h > height)
        bug("layer %s: simulated %ux%ux%u, expected %ux%ux%u", output->name,
            output->c, output->h, output->w, channels, height, width);
    const float *value = c->reference.at[tensor.i];
    Measure by = measure_of(c, tensor);
    c->layers++;
    c->seen[insn] = true;
    c->quantised += by.most == &c->max_codes;
    for (uint32_t ch = from, i = 0; ch < from + output->c; ch++)
        for (uint32_t h = 0; h < output->h; h++)
            for (uint32_t w = left; w < left + output->w; w++, i++) {
                uint64_t at = ((uint64_t)ch * height + first + h) * width + w;
                record(c, output->name, ch, first + h, w, value[at],
                       output->value[i], &by);
            }
}

void compare_outputs(Comparison *c, const float *const *got) {
    const Graph *g = c->pipeline->original;
    for (uint32_t i = 0; i < g->output.n; i++) {
        TensorId tensor = g->output.at[i];
        const float *value = c->reference.at[tensor.i];
        if (!value || !got[i])
            continue;
        const Tensor *t = graph_tensor(g, tensor);
        uint32_t n_c, h, w;
        shape_chw(&t->shape, &n_c, &h, &w);
        Measure by = measure_of(c, tensor);
        c->outputs++;
        for (uint64_t at = 0, n = shape_count(&t->shape); at < n; at++)
            record(c, t->name, (uint32_t)(at / w / h % n_c),
                   (uint32_t)(at / w % h), (uint32_t)(at % w), value[at],
                   got[i][at], &by);
    }
}
