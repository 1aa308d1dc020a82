/* choose.c - ranges by the method, weights to the nearest; see flow.h. */
#include "quantise/flow.h"

Histogram **group_histograms(Arena *arena, const Graph *g, const Groups *groups,
                             Histogram *const *by_tensor) {
    Histogram **out = ARENA_ARRAY(arena, Histogram *, g->tensor.n);
    for (uint32_t t = 0; t < g->tensor.n; t++) {
        Histogram **total = &out[groups->of[t]];
        if (!*total)
            *total = histogram_new(arena);
        Histogram part = *by_tensor[t]; /* which may become coarser */
        part.bin = ARENA_COPY(arena, uint64_t, part.bin, HISTOGRAM_BINS);
        histogram_join(*total, &part);
    }
    return out;
}

static Quant quant_for(const Flow *f, const Groups *groups, uint32_t group,
                       const Histogram *h) {
    QuantType type = groups->wide[group] ? QUANT_I16 : f->options->numbers.type;
    if (groups->real[group])
        return (Quant){0};
    return groups->fixed[group].type ? groups->fixed[group]
                                     : range_choose(h, type, f->options);
}

Scheme scheme_choose(Flow *f, const Graph *g, const Groups *groups,
                     Histogram *const *by_tensor) {
    Scheme s = {g, ARENA_ARRAY(f->arena, Quant, g->tensor.n),
                ARENA_ARRAY(f->arena, WeightCodes, g->node.n)};
    Histogram **h = group_histograms(f->arena, g, groups, by_tensor);
    for (uint32_t t = 0; t < g->tensor.n; t++)
        s.quant[t] = groups->of[t] == t ? quant_for(f, groups, t, h[t])
                                        : s.quant[groups->of[t]];
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        uint32_t bits = groups_bits(f->options, node).weight;
        if (bits && groups_sums(g, groups, node))
            s.weight[i] = weights_code(f->arena, g, node, bits, f->options);
    }
    return s;
}
