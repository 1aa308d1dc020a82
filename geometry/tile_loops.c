/* tile_loops.c - a convolution's loops over tiles, and what tiles of one size
 * cost: see tile_loops.h. */
#include "geometry/tile_loops.h"

Loops loops_make(const HwSpec *spec, const Graph *g, const Node *node,
                 const Legal *legal, const HwTileStyle *style, int32_t input) {
    const ConvAttr *conv = &node->attr.conv;
    const HwMemory *m = spec->memory;
    double wire = bytes_seconds(spec, 1) * spec->clock;
    return (Loops){.spec = spec,
                   .wire = wire,
                   .byte_cycles = TILE_BYTE_PRICE * wire,
                   .bytes_alone = wire <= 0,
                   .engine = &spec->engine[legal->engine],
                   .from = style->in_backing ? &m[input] : NULL,
                   .to = style->out_backing ? &m[spec->backing] : NULL,
                   .conv = conv,
                   .style = style,
                   .in = plan_volume(g, node->in[0]),
                   .out = plan_volume(g, node->out[0]),
                   .taps = (uint64_t)conv->kernel[0] * conv->kernel[1],
                   .element = spec->element,
                   .align = pool_of(&m[0]).align,
                   .by_channel = legal->op == HW_OP_CONV_DEPTHWISE};
}

NestCost loops_cost(const Loops *l, uint32_t tile_h, uint32_t tile_w,
                    const Nest *nest, bool timed) {
    Arena *arena = arena_new("nest");
    Cut rows = nest_cut(arena, l->conv, 0, l->in.h, l->out.h, tile_h);
    Cut cols = nest_cut(arena, l->conv, 1, l->in.w, l->out.w, tile_w);
    Sizes s = {&rows, &cols, nest->c, nest->in_c};
    bool stay = nest->weights_stay;
    NestCost cost = {.weights =
                         nest_weights(l) * nest_weight_reads(l, &s, stay)};
    if (l->style->in_backing)
        cost.input = nest_input_reads(l, &s, stay) * l->element;
    if (timed)
        cost.cycles = nest_cycles(l, &s, stay);
    arena_free(arena);
    return cost;
}

NestCost nest_reads(const HwSpec *spec, const Graph *g, const Node *node,
                    const Legal *legal, int32_t style, uint32_t tile_h,
                    uint32_t tile_w, const Nest *nest) {
    Loops l = loops_make(spec, g, node, legal, &spec->tiling.tiles.style[style],
                         spec->backing);
    return loops_cost(&l, tile_h, tile_w, nest, false);
}
