/* compare.c - values of the simulator against the reference; see compare.h. */
#include "driver/compare.h"

#include "driver/terms.h"

#include <math.h>

Comparison compare_start(Arena *arena, const Pipeline *pipeline,
                         Values reference, double tolerance) {
    uint32_t n = pipeline->original->tensor.n;
    Comparison comparison = {.pipeline = pipeline,
                             .halfway =
                                 halfway_start(arena, pipeline->original),
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
    halfway_next(&comparison->halfway, reference);
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

/* The reference's values are those that follow from what the listing made. */
static void refresh(Comparison *c, TensorId tensor) {
    if (!halfway_refresh(&c->halfway, tensor))
        return;
    c->largest[tensor.i] = -1;
    c->scaled = false;
}

/* Elements of a result, one after the other, by where they are in a tensor. */
typedef struct Part {
    TensorId tensor;
    uint32_t channel, row, col; /* the first */
    uint32_t height, width;     /* of the tensor */
    const SimOutput *output;
} Part;

static uint64_t element_at(const Part *p, uint32_t c, uint32_t h, uint32_t w) {
    return ((uint64_t)(p->channel + c) * p->height + p->row + h) * p->width +
           p->col + w;
}

/* A result may have got another shape of the same elements. */
static const Shape *shape_compiled(const Comparison *c, TensorId tensor,
                                   const Action *action) {
    TensorId made = c->pipeline->plan->placement[action->out].tensor;
    const Shape *was = &graph_tensor(c->pipeline->original, tensor)->shape;
    const Shape *is = &graph_tensor(c->pipeline->graph, made)->shape;
    return shape_count(was) == shape_count(is) ? is : was;
}

static Part part_of(const Comparison *c, const Action *action, TensorId tensor,
                    const SimOutput *output) {
    uint32_t channels;
    bool run = action->kind == ACTION_RUN;
    Part p = {.tensor = tensor,
              .channel = c->pipeline->plan->placement[action->out].c,
              .row = run ? action->row : 0,
              .col = run ? action->col : 0,
              .output = output};
    shape_chw(shape_compiled(c, tensor, action), &channels, &p.height,
              &p.width);
    if (p.channel + output->c > channels || p.col + output->w > p.width ||
        p.row + output->h > p.height)
        bug("layer %s: simulated %ux%ux%u, expected %ux%ux%u", output->name,
            output->c, output->h, output->w, channels, p.height, p.width);
    return p;
}

/* A layer of the host may have rounded halfway numbers to the other code. */
static void take_halfway(Comparison *c, const Part *p) {
    Arena *scratch = arena_new("halfway");
    const SimOutput *o = p->output;
    uint64_t count = (uint64_t)o->c * o->h * o->w, n = 0;
    uint64_t *at = ARENA_ARRAY(scratch, uint64_t, count + 1);
    for (uint32_t ch = 0; ch < o->c; ch++)
        for (uint32_t h = 0; h < o->h; h++)
            for (uint32_t w = 0; w < o->w; w++)
                at[n++] = element_at(p, ch, h, w);
    const MadeCodes made = {p->tensor, n, at, o->value};
    halfway_take(&c->halfway, &made);
    arena_free(scratch);
}

static void record_part(Comparison *c, const Part *p) {
    const SimOutput *o = p->output;
    const float *value = c->reference.at[p->tensor.i];
    Measure by = measure_of(c, p->tensor);
    c->quantised += by.most == &c->max_codes;
    for (uint32_t ch = 0, i = 0; ch < o->c; ch++)
        for (uint32_t h = 0; h < o->h; h++)
            for (uint32_t w = 0; w < o->w; w++, i++)
                record(c, o->name, p->channel + ch, p->row + h, p->col + w,
                       value[element_at(p, ch, h, w)], o->value[i], &by);
}

void compare_observe(void *context, uint32_t insn, const SimOutput *output) {
    Comparison *c = context;
    const Action *action =
        &c->pipeline->plan->action[c->pipeline->action_of[insn]];
    TensorId tensor = original_of(c, action);
    if (tensor.i == NONE || !c->reference.at[tensor.i])
        return;
    Part part = part_of(c, action, tensor, output);
    bool codes =
        graph_tensor(c->pipeline->original, tensor)->quant.type != QUANT_NONE;
    refresh(c, tensor);
    if (action->kind == ACTION_HOST && codes)
        take_halfway(c, &part);
    c->layers++;
    c->seen[insn] = true;
    record_part(c, &part);
}

void compare_outputs(Comparison *c, const float *const *got) {
    const Graph *g = c->pipeline->original;
    for (uint32_t i = 0; i < g->output.n; i++) {
        TensorId tensor = g->output.at[i];
        const float *value = c->reference.at[tensor.i];
        refresh(c, tensor);
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
