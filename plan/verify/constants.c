/* constants.c - weights and biases: loaded to where they fit, and there when a
 * run reads them; see judge.h.
 */
#include "hwspec/cost.h"
#include "plan/verify/judge.h"

/* ---- blocks of both ---- */

static Range range_of(const ConstantBlock *b) {
    return (Range){b->offset, b->offset + b->bytes};
}

static bool is_there(const Numbers *there, uint32_t number) {
    for (uint32_t i = 0; i < there->n; i++)
        if (there->at[i] == number)
            return true;
    return false;
}

/* Those in these bytes of their memory are gone. */
static void drop(Numbers *there, const ConstantBlock *block, Range bytes) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < there->n; i++)
        if (!ranges_meet(range_of(&block[there->at[i] - 1]), bytes))
            there->at[n++] = there->at[i];
    there->n = n;
}

void judge_drop_weights(Judge *j, Range bytes) {
    drop(&j->weights, j->plan->block, bytes);
}

/* Whether it has a place in its memory, and just its elements take it. */
static bool is_placed(const HwMemory *m, const ConstantBlock *b,
                      uint64_t elements) {
    return b->offset <= m->size && b->bytes <= m->size - b->offset &&
           (!m->align || b->offset % m->align == 0) &&
           b->bytes == elements * m->layout->element;
}

/* ---- weights ---- */

/* Whole rows of the kernel, or some taps of one, where rows tell which. */
static bool taps_may(const Judge *j, const Action *a, Addends x) {
    const Node *node = graph_node(j->g, a->node);
    uint32_t first = x.kernel.first, end = first + x.kernel.n;
    if (!a->kernel.n || (first == 0 && end == x.area))
        return true;
    uint32_t wide = kernel_width(j->g, node);
    return (j->spec->insns->tells_taps >> a->legal.op & 1) && end <= x.area &&
           hwspec_adds_up(j->spec, a->legal.op, a->legal.engine) &&
           ((first % wide == 0 && end % wide == 0) ||
            first / wide == (end - 1) / wide);
}

const char *judge_weights(Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    bool needs = hwspec_stages(j->spec, a->legal.op);
    if (!needs && !a->weights)
        return NULL;
    if (!needs || a->weights == 0 || a->weights > j->plan->n_blocks ||
        !is_there(&j->weights, a->weights))
        return judge_says(j, out, "is computed without its weights");
    const ConstantBlock *b = &j->plan->block[a->weights - 1];
    uint32_t images = j->plan->images ? j->plan->images : 1;
    uint32_t nodes = j->plan->schedule->graph->node.n / images;
    Addends x = action_addends(j->plan, a);
    const Node *node = graph_node(j->g, a->node);
    bool right = b->node.i % nodes == a->node.i % nodes && b->c == out->c &&
                 b->n_c == out->n_c && b->in_c == x.first &&
                 taps_may(j, a, x) && b->kernel.first == x.kernel.first &&
                 b->kernel.n == x.kernel.n &&
                 (uint64_t)b->taps * x.all * x.area ==
                     (uint64_t)weight_taps(j->g, node) * x.n * x.kernel.n;
    if (!right)
        return judge_says(j, out, "is computed with other weights");
    if (out->memory == j->spec->weights && !keeps_for_next(j->plan, a) &&
        ranges_meet(range_of(b), areas_bytes(j->areas, out)))
        return judge_says(j, out, "is written over its weights");
    return NULL;
}

const char *judge_loads_weights(Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    const HwMemory *m = &j->spec->memory[j->spec->weights];
    if (a->weights == 0 || a->weights > j->plan->n_blocks)
        return judge_says(j, out, "has no weights to load");
    const ConstantBlock *b = &j->plan->block[a->weights - 1];
    if (!is_placed(m, b, (uint64_t)b->taps * b->n_c))
        return judge_says(j, out, "has weights in a wrong place");
    areas_drop(j->areas, j->spec->weights, range_of(b));
    judge_drop_sums(j, j->spec->weights, range_of(b));
    judge_drop_weights(j, range_of(b));
    vec_push(j->arena, &j->weights, a->weights);
    return NULL;
}

/* ---- biases ---- */

static bool needs_bias(const Judge *j, const Action *a) {
    return hwspec_loads_bias(j->spec, a->legal.op) &&
           graph_node(j->g, a->node)->constant[CONST_BIAS].i != NONE &&
           addends_begin(action_addends(j->plan, a));
}

const char *judge_bias(Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    if (!needs_bias(j, a))
        return a->bias ? judge_says(j, out, "has no biases to read") : NULL;
    if (!a->bias || !is_there(&j->biases, a->bias))
        return judge_says(j, out, "is computed without its biases");
    const ConstantBlock *b = &j->plan->bias[a->bias - 1];
    bool right = b->node.i == a->node.i && b->c <= out->c &&
                 out->c + out->n_c <= b->c + b->n_c;
    return right ? NULL : judge_says(j, out, "is computed with other biases");
}

const char *judge_loads_bias(Judge *j, const Action *a) {
    const HwMemory *m = &j->spec->memory[j->spec->bias];
    if (a->bias == 0 || a->bias > j->plan->n_biases ||
        !is_placed(m, &j->plan->bias[a->bias - 1],
                   j->plan->bias[a->bias - 1].n_c))
        return judge_says(j, &j->plan->placement[a->out],
                          "has biases in a wrong place");
    drop(&j->biases, j->plan->bias, range_of(&j->plan->bias[a->bias - 1]));
    vec_push(j->arena, &j->biases, a->bias);
    return NULL;
}
