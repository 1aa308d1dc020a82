/* sums_room.c - nodes whose engine keeps sums in a memory of their own: what
 * runs of them may make at once.
 *
 * Input: a node and rows and columns of its result. Output: whether the sums of
 * so much of its fewest channels have room there. Runs of more channels go by
 * some, and where operands may be rows of volumes by some rows
 * (alloc/weights/weight_blocks.c), so that nothing passes twice for it.
 */
#include "alloc/tile/tile.h"

#include "base/arith.h"
#include "hwspec/insn.h"

uint32_t run_channels_least(const HwSpec *spec, const Graph *g, NodeId id,
                            const Legal *legal) {
    const Node *node = graph_node(g, id);
    const HwEngine *engine = &spec->engine[legal->engine];
    uint32_t all = plan_volume(g, node->out[0]).c, least = all;
    if (node_in_groups(node) || !engine_takes_channels(spec, legal, all))
        return all;
    for (uint32_t m = 0; m < spec->n_active; m++) {
        const HwMemory *memory = &spec->memory[m];
        uint32_t one = hwspec_parts_between(spec, memory)
                           ? engine->part_align
                           : layout_granule(memory->layout);
        if (engine->lies[HW_OUT] >> m & 1)
            least = one && one < least ? one : least;
    }
    return least;
}

/* In front of its pool, if it has one. */
static uint32_t made_for(const Graph *g, NodeId id, uint32_t axis, uint32_t all,
                         uint32_t n) {
    uint32_t in, first, middle;
    if (graph_node(g, id)->op != OP_CONV_POOL)
        return n;
    tile_needs(g, id, axis, 0, n, &in, &first);
    tile_needs(g, id, axis, (all - n) / 2, n, &in, &middle);
    return first > middle ? first : middle;
}

uint64_t sums_least(const HwSpec *spec, const Graph *g, NodeId id,
                    const Legal *legal) {
    Volume out = plan_volume(g, graph_node(g, id)->out[0]);
    bool tiles = spec->tiling.kind == HW_TILING_SOFTWARE &&
                 (spec->tiling.rows.ops >> legal->op & 1);
    Volume v = {.c = run_channels_least(spec, g, id, legal),
                .h = made_for(g, id, 0, out.h, tiles ? 1 : out.h),
                .w = made_for(g, id, 1, out.w, tiles ? 1 : out.w)};
    return layout_bytes(spec->memory[spec->sums].layout, &v);
}

bool sums_have_room(const Facts *f, NodeId id, uint32_t channels, uint32_t rows,
                    uint32_t cols) {
    const HwSpec *spec = f->spec;
    const Legal *legal = &f->legal[id.i];
    if (!hwspec_keeps_sums(spec, legal->op, legal->engine))
        return true;
    Volume out = plan_volume(f->g, graph_node(f->g, id)->out[0]);
    bool whole = rows == out.h && cols == out.w; /* tiles have no names */
    bool by_rows = !channels && whole && spec->tiling.rows.rolls &&
                   (spec->tiling.rows.ops >> legal->op & 1) &&
                   node_quantum(f->g, id, 0) == 1 &&
                   engine_takes_parts(spec, f->g, legal, id, 0);
    Volume v = {.c = channels ? channels
                              : run_channels_least(spec, f->g, id, legal),
                .h = made_for(f->g, id, 0, out.h, by_rows ? 1 : rows),
                .w = made_for(f->g, id, 1, out.w, cols)};
    return layout_bytes(spec->memory[spec->sums].layout, &v) <=
           hwspec_sums_room(spec);
}
