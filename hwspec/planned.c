/* planned.c - the machine that plans are chosen for; see cost.h.
 *
 * Input: a machine. Output: a copy of it with other bandwidths, other arrays.
 * A plan that is best for some bandwidth moves more bytes than one that is best
 * for less: bytes cost less time then. So that more bandwidth, or a wider
 * array, never costs bytes, a machine names what its plans are chosen for.
 */
#include "hwspec/cost.h"

/* What the copy may have of its own. */
typedef struct Copy {
    HwSpec *spec;
    HwMemory *memory;
    HwEngine *engine;
} Copy;

static Copy copy_make(Arena *arena, const HwSpec *spec) {
    Copy copy = {
        ARENA_COPY(arena, HwSpec, spec, 1),
        ARENA_COPY(arena, HwMemory, spec->memory, spec->n_memories),
        ARENA_COPY(arena, HwEngine, spec->engine, spec->n_engines),
    };
    copy.spec->memory = copy.memory;
    copy.spec->engine = copy.engine;
    return copy;
}

static double rate(double planned, double own) {
    return planned > 0 ? planned : own;
}

static uint32_t lanes(uint32_t planned, uint32_t own) {
    return planned ? planned : own;
}

static HwUnroll unroll(const HwEngine *engine) {
    HwUnroll a = engine->planned_unroll, b = engine->unroll;
    return (HwUnroll){lanes(a.out_c, b.out_c), lanes(a.in_c, b.in_c),
                      lanes(a.kernel, b.kernel), lanes(a.out_h, b.out_h),
                      lanes(a.out_w, b.out_w)};
}

const HwSpec *hwspec_planned(Arena *arena, const HwSpec *spec) {
    Copy copy = copy_make(arena, spec);
    HwWeightCache *cache = &copy.spec->weight_cache;
    cache->bandwidth = rate(cache->planned_bandwidth, cache->bandwidth);
    for (uint32_t m = 0; m < spec->n_memories; m++)
        copy.memory[m].bandwidth =
            rate(spec->memory[m].planned_bandwidth, spec->memory[m].bandwidth);
    for (uint32_t e = 0; e < spec->n_engines; e++)
        copy.engine[e].unroll = unroll(&spec->engine[e]);
    return copy.spec;
}

const HwSpec *hwspec_timed_as(Arena *arena, const HwSpec *spec,
                              const HwSpec *real) {
    Copy copy = copy_make(arena, spec);
    copy.spec->weight_cache.bandwidth = real->weight_cache.bandwidth;
    for (uint32_t m = 0; m < spec->n_memories; m++)
        copy.memory[m].bandwidth = real->memory[m].bandwidth;
    for (uint32_t e = 0; e < spec->n_engines; e++)
        copy.engine[e].unroll = real->engine[e].unroll;
    return copy.spec;
}
