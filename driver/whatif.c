/* whatif.c - what a change would buy, for --report and --trace.
 *
 * Input: a network that compiles. Output: the page, with the same network
 * compiled and simulated again for each change.
 */
#include "base/file.h"
#include "base/vec.h"
#include "driver/commands.h"

#include <string.h>

static void set_what_if(const Pipeline *p, const SimResult *sim, WhatIf *out) {
    (void)p;
    out->fits = sim->n_violations == 0;
    out->reason = sim->n_violations ? sim->violation[0].text : "";
    out->cycles = sim->interval + sim->host_cycles;
    out->am_peak = sim->am_peak;
    out->ddr = sim->backing_read + sim->backing_written;
}

static const char *first_error(const Diag *diag) {
    return diag_count(diag) ? diag_at(diag, 0)->text : "";
}

/* Compiles and simulates with one setting more, or another replication. */
static WhatIf try_change(Arena *arena, const Options *options,
                         const char *change, const char *path,
                         const char *value) {
    Options o = *options;
    HwSetting *settings = ARENA_ARRAY(arena, HwSetting, o.n_settings + 1);
    for (uint32_t i = 0; i < o.n_settings; i++)
        settings[i] = o.settings[i];
    o.settings = settings;
    o.dump = NULL;
    o.rules = false;
    if (!strcmp(path, "replication"))
        o.replication = value;
    else if (!strcmp(path, "mode"))
        o.mode = value;
    else
        settings[o.n_settings++] = (HwSetting){path, value};
    Diag *diag = diag_new(arena);
    WhatIf result = {.change = change};
    Pipeline p;
    SimOptions memory_only = {.seed = o.seed, .memory_only = true};
    const SimResult *sim = NULL;
    if (pipeline_run(arena, diag, &o, STAGE_CODEGEN, &p) == EXIT_FINE)
        sim = sim_run(arena, diag, p.listing, 0, NULL, &memory_only);
    if (sim)
        set_what_if(&p, sim, &result);
    else
        result.reason = arena_strdup(arena, first_error(diag));
    return result;
}

typedef VEC(WhatIf) WhatIfs;

/* Sizes that stay multiples of the memory's unit. */
static void change_memories(Arena *arena, const Options *o, const HwSpec *spec,
                            WhatIfs *out) {
    static const int percent[] = {-25, -10, 10, 25};
    for (uint32_t m = 0; m < spec->n_active; m++)
        for (int i = 0; i < 4; i++) {
            const HwMemory *memory = &spec->memory[m];
            uint64_t grain = (uint64_t)memory->align *
                             (memory->buffers ? memory->buffers : 1);
            uint64_t size = memory->size / 100 * (uint64_t)(100 + percent[i]) /
                            grain * grain;
            vec_push(
                arena, out,
                try_change(
                    arena, o,
                    arena_printf(arena, "%s of %s bytes (%+d %%)", memory->name,
                                 with_commas(arena, size), percent[i]),
                    arena_printf(arena, "memories.%s.size", memory->name),
                    arena_printf(arena, "%llu", (unsigned long long)size)));
        }
}

/* Each axis that an engine unrolls, twice as wide. */
static void widen_engines(Arena *arena, const Options *o, const HwSpec *spec,
                          const SimResult *sim, WhatIfs *out) {
    for (uint32_t e = 0; e < spec->n_engines; e++) {
        const HwUnroll *u = &spec->engine[e].unroll;
        const struct {
            const char *axis;
            uint32_t n;
        } axis[] = {{"out_c", u->out_c},
                    {"in_c", u->in_c},
                    {"out_w", u->out_w},
                    {"out_h", u->out_h}};
        for (int i = 0; i < 4; i++)
            if (axis[i].n > 1 && sim->engine[e].cycles)
                vec_push(
                    arena, out,
                    try_change(arena, o,
                               arena_printf(arena, "engine %s: %s %u, not %u",
                                            spec->engine[e].name, axis[i].axis,
                                            2 * axis[i].n, axis[i].n),
                               arena_printf(arena, "engines.%s.unroll.%s",
                                            spec->engine[e].name, axis[i].axis),
                               arena_printf(arena, "%u", 2 * axis[i].n)));
    }
}

static void change_replication(Arena *arena, const Options *o,
                               const HwSpec *spec, WhatIfs *out) {
    bool off = !strcmp(o->replication, "off");
    if (spec->replication.section)
        vec_push(arena, out,
                 try_change(arena, o,
                            off ? "with replication" : "without replication",
                            "replication", off ? "safe" : "off"));
}

static void change_mode(Arena *arena, const Options *o, const HwSpec *spec,
                        WhatIfs *out) {
    bool ahead = false;
    for (uint32_t i = 0; i < spec->n_engines; i++)
        ahead |= spec->engine[i].ahead;
    if (ahead && !strcmp(o->mode, "latency"))
        vec_push(arena, out,
                 try_change(arena, o,
                            "images one behind the other: cycles "
                            "an image",
                            "mode", "throughput"));
}

static void change_bandwidth(Arena *arena, const Options *o, const HwSpec *spec,
                             WhatIfs *out) {
    if (spec->weight_cache.bandwidth > 0)
        vec_push(arena, out,
                 try_change(arena, o, "weights come twice as fast",
                            "weight_cache.bandwidth",
                            arena_printf(arena, "%.6fB/s",
                                         2 * spec->weight_cache.bandwidth)));
}

static bool moves_by_dma(const HwMemory *memory) {
    return memory->role != HW_ACTIVE && memory->bandwidth > 0;
}

/* All memories off the chip at once: inputs, outputs and what layers of the
 * host hold cross the same pins. */
static void change_transfers(Arena *arena, const Options *o, const HwSpec *spec,
                             WhatIfs *out) {
    Options faster = *o;
    HwSetting *settings =
        ARENA_ARRAY(arena, HwSetting, o->n_settings + spec->n_memories);
    for (uint32_t i = 0; i < o->n_settings; i++)
        settings[i] = o->settings[i];
    faster.settings = settings;
    HwSetting *last = NULL;
    for (uint32_t m = 0; m < spec->n_memories; m++) {
        const HwMemory *memory = &spec->memory[m];
        if (!moves_by_dma(memory))
            continue;
        last = &settings[faster.n_settings++];
        *last = (HwSetting){
            arena_printf(arena, "memories.%s.bandwidth", memory->name),
            arena_printf(arena, "%.6fB/s", 2 * memory->bandwidth)};
    }
    if (!last)
        return;
    faster.n_settings--;
    vec_push(arena, out,
             try_change(arena, &faster, "all transfers at twice the bandwidth",
                        last->path, last->value));
}

static uint32_t what_ifs(Arena *arena, const Options *o, const HwSpec *spec,
                         const SimResult *sim, const WhatIf **out) {
    WhatIfs list = {0};
    change_memories(arena, o, spec, &list);
    change_replication(arena, o, spec, &list);
    change_mode(arena, o, spec, &list);
    widen_engines(arena, o, spec, sim, &list);
    change_bandwidth(arena, o, spec, &list);
    change_transfers(arena, o, spec, &list);
    *out = list.at;
    return list.n;
}

bool write_report(Arena *arena, Diag *diag, const Options *o,
                  const Listing *listing, const SimResult *sim,
                  const Plan *plan, bool again) {
    ReportInput input = {.listing = listing, .sim = sim};
    if (plan) {
        PlanBound bound = plan_bound(plan);
        input.bound = bound.bytes;
        input.bound_of =
            arena_printf(arena, "bytes are the bound: %s", bound.of);
        input.n_front = plan->n_front;
        input.front = plan->front;
        input.chosen = &plan->cost;
        input.volumes = o->report ? plan_explain(arena, plan) : NULL;
    }
    if (o->report && again)
        input.n_what_ifs =
            what_ifs(arena, o, listing->spec, sim, &input.what_if);
    const char *page = o->report ? report_page(arena, &input) : NULL;
    const char *trace = o->trace ? report_trace(arena, listing, sim) : NULL;
    return (!page || file_write(arena, diag, o->report, page, strlen(page))) &&
           (!trace || file_write(arena, diag, o->trace, trace, strlen(trace)));
}
