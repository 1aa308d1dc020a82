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

/* What is lower than any bandwidth that matters: 64 times. */
enum { MOST_HALVINGS = 6 };

/* The two are the machine's own, and another's; halvings as the caller's. */
typedef double Rate(double own, double other, uint32_t halvings);
typedef uint32_t Lanes(uint32_t own, uint32_t other);

static double planned_rate(double own, double planned, uint32_t halvings) {
    (void)halvings;
    return planned > 0 ? planned : own;
}

static double other_rate(double own, double other, uint32_t halvings) {
    (void)own;
    (void)halvings;
    return other;
}

static double halved(double rate, uint32_t times) {
    while (times--)
        rate /= 2;
    return rate;
}

/* How often it has to be halved, to be no more than the other; 0 is the highest
 * rate. */
static uint32_t halvings_to(double rate, double other) {
    uint32_t n = 0;
    while (n < MOST_HALVINGS && other > 0 && halved(rate, n) > other)
        n++;
    return n;
}

static double halved_rate(double own, double other, uint32_t halvings) {
    uint32_t n = halvings_to(own, other);
    return halved(own, n < halvings ? n : halvings);
}

static double least_rate(double own, double other, uint32_t halvings) {
    double least = halved(other, halvings);
    return own > 0 && own < least ? least : own;
}

static uint32_t planned_lanes(uint32_t own, uint32_t planned) {
    return planned ? planned : own;
}

static uint32_t own_lanes(uint32_t own, uint32_t other) {
    (void)other;
    return own;
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
                               const HwSpec *of, Rate *rate, uint32_t halvings,
                               Lanes *lanes) {
    Copy copy = copy_make(arena, spec);
    HwWeightCache *cache = &copy.spec->weight_cache;
    cache->bandwidth =
        rate(cache->bandwidth, of->weight_cache.bandwidth, halvings);
    for (uint32_t m = 0; m < spec->n_memories; m++)
        copy.memory[m].bandwidth =
            rate(spec->memory[m].bandwidth, of->memory[m].bandwidth, halvings);
    for (uint32_t e = 0; e < spec->n_engines; e++)
        copy.engine[e].unroll =
            unroll_with(spec->engine[e].unroll, of->engine[e].unroll, lanes);
    return copy.spec;
}

const HwSpec *hwspec_timed_as(Arena *arena, const HwSpec *spec,
                              const HwSpec *of) {
    return spec_with(arena, spec, of, other_rate, 0, other_lanes);
}

const HwSpec *hwspec_halved(Arena *arena, const HwSpec *planned,
                            const HwSpec *spec, uint32_t halvings) {
    return spec_with(arena, planned, spec, halved_rate, halvings, own_lanes);
}

const HwSpec *hwspec_no_slower(Arena *arena, const HwSpec *spec,
                               const HwSpec *planned, uint32_t halvings) {
    return spec_with(arena, spec, planned, least_rate, halvings, own_lanes);
}

uint32_t hwspec_halvings(const HwSpec *planned, const HwSpec *spec) {
    uint32_t most = halvings_to(planned->weight_cache.bandwidth,
                                spec->weight_cache.bandwidth);
    for (uint32_t m = 0; m < spec->n_memories; m++) {
        uint32_t n = halvings_to(planned->memory[m].bandwidth,
                                 spec->memory[m].bandwidth);
        most = n > most ? n : most;
    }
    return most;
}

/* Bytes a second, of a machine that names none: so many products of its widest
 * array for each byte, as the shipped machines have them. */
static double usual_rate(const HwSpec *spec) {
    enum { PRODUCTS = 32 };
    double most = 0;
    for (uint32_t e = 0; e < spec->n_engines; e++) {
        const HwEngine *engine = &spec->engine[e];
        const HwUnroll *u = &engine->unroll;
        double clock = engine->clock > 0 ? engine->clock : spec->clock;
        const uint32_t lane[] = {u->out_c, u->in_c, u->kernel, u->out_h,
                                 u->out_w};
        for (uint32_t i = 0; i < sizeof lane / sizeof *lane; i++)
            clock *= lane[i] ? lane[i] : 1;
        most = clock > most ? clock : most;
    }
    return most / PRODUCTS;
}

static const HwSpec *planned_with(Arena *arena, const HwSpec *spec,
                                  double unnamed) {
    Copy named = copy_make(arena, spec);
    HwWeightCache *cache = &named.spec->weight_cache;
    bool timed = cache->bandwidth > 0;
    cache->bandwidth = cache->planned_bandwidth;
    if (timed && cache->bandwidth <= 0)
        cache->bandwidth = unnamed;
    for (uint32_t m = 0; m < spec->n_memories; m++) {
        HwMemory *memory = &named.memory[m];
        timed = memory->bandwidth > 0 && memory->role != HW_ACTIVE;
        memory->bandwidth = memory->planned_bandwidth;
        if (timed && memory->bandwidth <= 0)
            memory->bandwidth = unnamed;
    }
    for (uint32_t e = 0; e < spec->n_engines; e++)
        named.engine[e].unroll = spec->engine[e].planned_unroll;
    return spec_with(arena, spec, named.spec, planned_rate, 0, planned_lanes);
}

const HwSpec *hwspec_planned(Arena *arena, const HwSpec *spec) {
    return planned_with(arena, spec, usual_rate(spec));
}

const HwSpec *hwspec_ordered(Arena *arena, const HwSpec *spec) {
    return planned_with(arena, spec, 0);
}
