/* host_quant.c - layers of the host that read or write codes; see host.h.
 *
 * A rule of integers is computed by the kind itself, as its style says; all
 * else on real numbers, between codes that are scaled before and rounded
 * behind. */
#include "sim/blobs.h"
#include "sim/host.h"
#include "sim/quant.h"

#include <string.h>

static bool misfit(const HostCall *call) {
    fault(call->run, "its operands and results do not fit together");
    return false;
}

/* ---- real numbers ---- */

static const float *real_operand(const HostCall *call, uint32_t i) {
    const Region *region = &call->layer->in[i];
    Extent e = host_extent(region);
    if (region->quant.type == QUANT_NONE)
        return call->in[i];
    float *out = patch_new(call->run->work, e, whole_box(&e)).at;
    for (uint64_t k = 0, n = extent_count(&e); k < n; k++)
        out[k] = (float)quant_to_real(&region->quant, call->in[i][k]);
    return out;
}

static bool reals(const HostRow *kind, const HostCall *call) {
    const HostLayer *layer = call->layer;
    const float **in = ARENA_ARRAY(call->run->work, const float *, layer->n_in);
    for (uint32_t i = 0; i < layer->n_in; i++)
        in[i] = real_operand(call, i);
    HostCall real = {call->run, layer, NULL, in, call->out};
    if (!host_reals(kind, &real))
        return false;
    for (uint32_t o = 0; o < layer->n_out; o++) {
        const Quant *q = &layer->out[o].quant;
        uint64_t n = shape_count(&layer->out[o].shape);
        for (uint64_t k = 0; q->type != QUANT_NONE && k < n; k++)
            call->out[o][k] = quant_from_real(q, (double)call->out[o][k]);
    }
    return true;
}

/* ---- rules of integers ---- */

bool host_eltwise_codes(const HostCall *call) {
    const HostLayer *layer = call->layer;
    const Shape *out = &layer->out[0].shape;
    if (layer->n_in != 2)
        return misfit(call);
    for (uint64_t i = 0, n = shape_count(out); i < n; i++) {
        uint64_t a = host_broadcast(&layer->in[0].shape, out, i);
        uint64_t b = host_broadcast(&layer->in[1].shape, out, i);
        call->out[0][i] =
            quant_two(call->quant, call->in[0][a], call->in[1][b]);
    }
    return true;
}

bool host_reduce_codes(const HostCall *call) {
    const Shape *in = &call->layer->in[0].shape;
    const Shape *out = &call->layer->out[0].shape;
    uint64_t n = shape_count(in), results = shape_count(out);
    if (!host_broadcasts(out, in) || in->rank != out->rank)
        return misfit(call);
    int64_t *sum = ARENA_ARRAY(call->run->work, int64_t, results);
    for (uint64_t i = 0; i < n; i++)
        sum[host_broadcast(out, in, i)] +=
            quant_less_zero(call->quant, call->in[0][i]);
    for (uint64_t i = 0; i < results; i++)
        call->out[0][i] = quant_mean(call->quant, sum[i], n / results);
    return true;
}

static void move_all(const HostCall *call) {
    for (uint32_t o = 0; o < call->layer->n_out; o++)
        quant_move(call->quant, call->out[o],
                   shape_count(&call->layer->out[o].shape));
}

static bool knows(const HostRow *kind, QuantRule rule) {
    static const uint32_t style[QUANT_RULE_COUNT] = {
        [QUANT_SUMS] = HOST_SUMS,   [QUANT_MEANS] = HOST_MEANS,
        [QUANT_ADDS] = HOST_TWO,    [QUANT_PRODUCT] = HOST_TWO,
        [QUANT_TABLE] = HOST_TABLE,
    };
    return rule == QUANT_MOVES || kind->style & style[rule];
}

bool host_codes(const HostRow *kind, const HostCall *call) {
    const QuantLayer *q = blob_quant(call->run, call->layer->name);
    if (!q || q->rule == QUANT_REALS)
        return reals(kind, call);
    if (!knows(kind, q->rule)) {
        fault(call->run,
              "a layer of kind \"%s\" does not compute codes by \"%s\"",
              kind->name, quant_rule_name[q->rule]);
        return false;
    }
    HostCall codes = {call->run, call->layer, q, call->in, call->out};
    uint32_t channels = host_extent(&call->layer->out[0]).c;
    if (q->rule != QUANT_SUMS && !quant_suits(call->run, q, channels))
        return false;
    if (!host_plain(kind, &codes))
        return false;
    if (q->rule == QUANT_MOVES)
        move_all(&codes);
    if (q->rule == QUANT_TABLE)
        quant_look_up(q, call->out[0], shape_count(&call->layer->out[0].shape));
    return true;
}
