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

typedef double Rate(double a, double b);
typedef uint32_t Lanes(uint32_t a, uint32_t b);

static double planned_rate(double own, double planned) {
    return planned > 0 ? planned : own;
}

static uint32_t planned_lanes(uint32_t own, uint32_t planned) {
    return planned ? planned : own;
}

/* Of rates 0 is the highest. */
static double lower_rate(double a, double b) {
    return a <= 0 || (b > 0 && b < a) ? b : a;
}

static uint32_t fewer_lanes(uint32_t a, uint32_t b) {
    return b < a ? b : a;
}

static double other_rate(double own, double other) {
    (void)own;
    return other;
}

static uint32_t other_lanes(uint32_t own, uint32_t other) {
    (void)own;
    return other;
}

static HwUnroll unroll_with(HwUnroll a, HwUnroll b, Lanes *lanes) {
    return (HwUnroll){lanes(a.out_c, b.out_c), lanes(a.in_c, b.in_c),
                      lanes(a.kernel, b.kernel), lanes(a.out_h, b.out_h),
                      lanes(a.out_w, b.out_w)};
}

static const HwSpec *spec_with(Arena *arena, const HwSpec *spec,
                               const HwSpec *of, Rate *rate, Lanes *lanes) {
    Copy copy = copy_make(arena, spec);
    HwWeightCache *cache = &copy.spec->weight_cache;
    cache->bandwidth = rate(cache->bandwidth, of->weight_cache.bandwidth);
    for (uint32_t m = 0; m < spec->n_memories; m++)
        copy.memory[m].bandwidth =
            rate(spec->memory[m].bandwidth, of->memory[m].bandwidth);
    for (uint32_t e = 0; e < spec->n_engines; e++)
        copy.engine[e].unroll =
            unroll_with(spec->engine[e].unroll, of->engine[e].unroll, lanes);
    return copy.spec;
}

const HwSpec *hwspec_timed_as(Arena *arena, const HwSpec *spec,
                              const HwSpec *of) {
    return spec_with(arena, spec, of, other_rate, other_lanes);
}

const HwSpec *hwspec_no_faster(Arena *arena, const HwSpec *spec,
                               const HwSpec *than) {
    return spec_with(arena, spec, than, lower_rate, fewer_lanes);
}

const HwSpec *hwspec_planned(Arena *arena, const HwSpec *spec) {
    Copy named = copy_make(arena, spec);
    named.spec->weight_cache.bandwidth = spec->weight_cache.planned_bandwidth;
    for (uint32_t m = 0; m < spec->n_memories; m++)
        named.memory[m].bandwidth = spec->memory[m].planned_bandwidth;
    for (uint32_t e = 0; e < spec->n_engines; e++)
        named.engine[e].unroll = spec->engine[e].planned_unroll;
    return spec_with(arena, spec, named.spec, planned_rate, planned_lanes);
}
