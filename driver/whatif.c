/* whatif.c - what a change would buy, for --report and --trace.
 *
 * Input: a network that was compiled. Output: the page. What a change would buy
 * is found without a search: the plan is run on the changed machine, and of
 * smaller memories the plans that were found tell; with --what-if the network
 * is compiled anew for each change.
 */
#include "base/file.h"
#include "base/vec.h"
#include "driver/commands.h"

#include <string.h>

typedef struct Trial {
    Arena *arena;
    const Options *options;
    const Pipeline *made;
    uint64_t host_cycles;
    VEC(WhatIf) list;
    bool anew; /* compile for each change */
} Trial;

static void add_result(Trial *t, const char *change, const char *how,
                       const SimResult *sim, const char *reason) {
    WhatIf w = {.change = change, .how = how, .reason = reason};
    if (sim) {
        w.fits = sim->n_violations == 0;
        w.reason = sim->n_violations ? sim->violation[0].text : "";
        w.cycles = sim->interval + sim->host_cycles;
        w.am_peak = sim->am_peak;
        w.ddr = sim->backing_read + sim->backing_written;
    }
    vec_push(t->arena, &t->list, w);
}

static const SimResult *simulate(Arena *arena, const Options *o,
                                 const Listing *listing) {
    SimOptions timed = {
        .seed = o->seed, .memory_only = true, .time_only = true, .spans = true};
    return sim_run(arena, diag_new(arena), listing, 0, NULL, &timed);
}

static void plan_anew(Trial *t, const Options *o, const char *change) {
    Diag *diag = diag_new(t->arena);
    Pipeline p;
    const SimResult *sim = NULL;
    if (pipeline_run(t->arena, diag, o, STAGE_CODEGEN, &p) == EXIT_FINE)
        sim = simulate(t->arena, o, p.listing);
    add_result(t, change, "planned anew", sim,
               sim ? "" : arena_strdup(t->arena, diag_first_error(diag)));
}

/* The plan's listing as the changed machine runs it; nothing where the plan is
 * not one of that machine. */
static void run_there(Trial *t, const Options *o, const char *change) {
    enum { MOST = 1000 }; /* instructions: longer ones take long to run */
    if (t->made->listing->n > MOST)
        return;
    Diag *quiet = diag_new(t->arena);
    const HwSpec *spec =
        pipeline_spec_of(t->arena, quiet, o, t->made->machine->element);
    if (!spec)
        return;
    Pipeline p = *t->made;
    Schedule *schedule = ARENA_COPY(t->arena, Schedule, p.plan->schedule, 1);
    Plan *plan = ARENA_COPY(t->arena, Plan, p.plan, 1);
    schedule->spec = spec;
    plan->schedule = schedule;
    p.plan = plan;
    p.schedule = schedule;
    if (pipeline_resume(t->arena, quiet, o, STAGE_CODEGEN, STAGE_CODEGEN, &p))
        return;
    const SimResult *sim = simulate(t->arena, o, p.listing);
    if (sim && !sim->n_violations)
        add_result(t, change, "the same plan", sim, "");
}

/* With so many settings more than the command has. */
static Options with_settings(Trial *t, uint32_t n, const HwSetting *more) {
    Options o = *t->options;
    HwSetting *settings = ARENA_ARRAY(t->arena, HwSetting, o.settings.n + n);
    for (uint32_t i = 0; i < o.settings.n + n; i++)
        settings[i] = i < o.settings.n ? t->options->settings.at[i]
                                       : more[i - o.settings.n];
    o.settings.at = settings;
    o.settings.n += n;
    o.dump = NULL;
    o.rules = false;
    return o;
}

static void try_settings(Trial *t, const char *change, uint32_t n,
                         const HwSetting *more) {
    Options o = with_settings(t, n, more);
    if (t->anew)
        plan_anew(t, &o, change);
    else
        run_there(t, &o, change);
}

static void try_one(Trial *t, const char *change, const char *path,
                    const char *value) {
    try_settings(t, change, 1, &(HwSetting){path, value});
}

/* ---- memories ---- */

/* The best of the plans that were found and that take no more. */
static void take_from_front(Trial *t, const char *change, uint64_t size) {
    const Plan *plan = t->made->plan;
    PlanObjective objective = PLAN_BALANCED;
    for (uint32_t i = 0; i < PLAN_OBJECTIVES; i++)
        if (!strcmp(plan_objective_name[i], t->options->objective))
            objective = (PlanObjective)i;
    const PlanCost *best = NULL;
    for (uint32_t i = 0; i < plan->n_front; i++)
        if (plan->front[i].memory <= size &&
            (!best || plan_cost_less(objective, &plan->front[i], best)))
            best = &plan->front[i];
    if (!best || !best->cycles)
        return;
    WhatIf w = {.change = change,
                .fits = true,
                .how = "of the plans found",
                .cycles = best->cycles + t->host_cycles,
                .am_peak = best->memory};
    vec_push(t->arena, &t->list, w);
}

/* Sizes that stay multiples of the memory's unit. Nobody knows a plan for more
 * memory without a search. */
static void change_memory(Trial *t, const HwMemory *memory, int percent) {
    uint64_t grain =
        (uint64_t)memory->align * (memory->buffers ? memory->buffers : 1);
    uint64_t size =
        memory->size / 100 * (uint64_t)(100 + percent) / grain * grain;
    const char *change =
        arena_printf(t->arena, "%s of %s bytes (%+d %%)", memory->name,
                     with_commas(t->arena, size), percent);
    if (t->anew)
        try_one(t, change,
                arena_printf(t->arena, "memories.%s.size", memory->name),
                arena_printf(t->arena, "%llu", (unsigned long long)size));
    else if (percent < 0 && t->made->machine->n_active == 1)
        take_from_front(t, change, size);
}

static void change_memories(Trial *t, const HwSpec *spec) {
    static const int percent[] = {-25, -10, 10, 25};
    for (uint32_t m = 0; m < spec->n_active; m++)
        for (int i = 0; i < 4; i++)
            change_memory(t, &spec->memory[m], percent[i]);
}

/* ---- engines, options, wires ---- */

/* Each axis that an engine unrolls, twice as wide. */
static void widen_engine(Trial *t, const HwEngine *engine) {
    const HwUnroll *u = &engine->unroll;
    const struct {
        const char *axis;
        uint32_t n;
    } axis[] = {{"out_c", u->out_c},
                {"in_c", u->in_c},
                {"out_w", u->out_w},
                {"out_h", u->out_h}};
    for (int i = 0; i < 4; i++)
        if (axis[i].n > 1)
            try_one(t,
                    arena_printf(t->arena, "engine %s: %s %u, not %u",
                                 engine->name, axis[i].axis, 2 * axis[i].n,
                                 axis[i].n),
                    arena_printf(t->arena, "engines.%s.unroll.%s", engine->name,
                                 axis[i].axis),
                    arena_printf(t->arena, "%u", 2 * axis[i].n));
}

/* These need plans of their own. */
static void change_options(Trial *t, const HwSpec *spec) {
    Options o = with_settings(t, 0, NULL);
    bool off = !strcmp(o.replication, "off"), ahead = false;
    if (spec->replication.section) {
        o.replication = off ? "safe" : "off";
        plan_anew(t, &o, off ? "with replication" : "without replication");
        o.replication = t->options->replication;
    }
    for (uint32_t i = 0; i < spec->n_engines; i++)
        ahead |= spec->engine[i].ahead;
    if (!ahead || strcmp(o.mode, "latency") != 0)
        return;
    o.mode = "throughput";
    plan_anew(t, &o, "images one behind the other: cycles an image");
}

static void change_bandwidth(Trial *t, const HwSpec *spec) {
    if (spec->weight_cache.bandwidth > 0)
        try_one(t, "weights come twice as fast", "weight_cache.bandwidth",
                arena_printf(t->arena, "%.6fB/s",
                             2 * spec->weight_cache.bandwidth));
}

static bool moves_by_dma(const HwMemory *memory) {
    return memory->role != HW_ACTIVE && memory->bandwidth > 0;
}

/* All memories off the chip at once: inputs, outputs and what layers of the
 * host hold cross the same pins. */
static void change_transfers(Trial *t, const HwSpec *spec) {
    VEC(HwSetting) faster = {0};
    for (uint32_t m = 0; m < spec->n_memories; m++) {
        const HwMemory *memory = &spec->memory[m];
        if (!moves_by_dma(memory))
            continue;
        HwSetting twice = {
            arena_printf(t->arena, "memories.%s.bandwidth", memory->name),
            arena_printf(t->arena, "%.6fB/s", 2 * memory->bandwidth)};
        vec_push(t->arena, &faster, twice);
    }
    if (faster.n)
        try_settings(t, "all transfers at twice the bandwidth", faster.n,
                     faster.at);
}

static void try_changes(Trial *t, const SimResult *sim) {
    const HwSpec *spec = t->made->machine;
    change_memories(t, spec);
    if (t->anew)
        change_options(t, spec);
    for (uint32_t e = 0; e < spec->n_engines; e++)
        if (sim->engine[e].cycles)
            widen_engine(t, &spec->engine[e]);
    change_bandwidth(t, spec);
    change_transfers(t, spec);
}

/* ---- how long a result is needed ---- */

typedef struct Lives {
    Arena *arena;
    const Plan *plan;
    uint32_t buffers, blocks; /* numbers that there are */
    uint64_t *buffer;         /* cycle of the last read, by memory and number */
    uint64_t *block;          /* the same of blocks of weights */
} Lives;

static uint64_t *life_of(const Lives *l, uint32_t placement) {
    const Placement *p = &l->plan->placement[placement];
    return &l->buffer[(size_t)p->memory * l->buffers + p->buffer];
}

static Lives lives_new(Arena *arena, const Plan *plan) {
    Lives l = {.arena = arena, .plan = plan, .buffers = 1, .blocks = 1};
    for (uint32_t i = 0; i < plan->n_placements; i++)
        if (plan->placement[i].buffer >= l.buffers)
            l.buffers = plan->placement[i].buffer + 1;
    for (uint32_t i = 0; i < plan->n_actions; i++)
        if (plan->action[i].weights >= l.blocks)
            l.blocks = plan->action[i].weights + 1;
    uint32_t memories = plan->schedule->spec->n_memories;
    l.buffer = ARENA_ARRAY(arena, uint64_t, (size_t)memories * l.buffers);
    l.block = ARENA_ARRAY(arena, uint64_t, l.blocks);
    return l;
}

static void extend(uint64_t *life, uint64_t end) {
    *life = end > *life ? end : *life;
}

static void add_reads(const Lives *l, const Action *a, const SimEvent *e) {
    uint64_t end = e->start + e->cycles;
    for (uint32_t k = 0; k < a->n_in; k++)
        extend(life_of(l, a->in[k]), end);
    if (a->kind == ACTION_RUN)
        extend(&l->block[a->weights], end);
}

/* The simulation of the plan's own listing, with lives by who shares a buffer:
 * the last that reads it. */
static const SimResult *with_lives(Arena *arena, const Pipeline *p,
                                   const SimResult *sim) {
    Lives l = lives_new(arena, p->plan);
    SimEvent *event = ARENA_COPY(arena, SimEvent, sim->event, sim->n_events);
    for (uint32_t i = 0; i < sim->n_events; i++)
        add_reads(&l, &p->plan->action[p->action_of[event[i].insn]], &event[i]);
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const Action *a = &p->plan->action[p->action_of[event[i].insn]];
        extend(&event[i].out_until,
               loads_constants(a) ? l.block[a->weights] : *life_of(&l, a->out));
    }
    SimResult *out = ARENA_COPY(arena, SimResult, sim, 1);
    out->event = event;
    return out;
}

/* ---- the page ---- */

static void add_plan(Arena *arena, const ReportWanted *wanted,
                     const Pipeline *made, ReportInput *input) {
    const Options *o = wanted->options;
    const Plan *plan = made->plan;
    PlanBoundKind bound = plan_bound(plan);
    input->bound = plan->ddr_bound[bound];
    input->bound_of = arena_printf(arena, "bytes are the bound: %s",
                                   plan_bound_words(plan, bound));
    input->n_front = plan->n_front;
    input->front = plan->front;
    input->chosen = &plan->cost;
    input->volumes = plan_explain(arena, plan);
    if (options_bundle(o))
        return;
    Trial t = {.arena = arena,
               .options = o,
               .anew = wanted->anew,
               .made = made,
               .host_cycles = input->sim->host_cycles};
    try_changes(&t, input->sim);
    input->n_what_ifs = t.list.n;
    input->what_if = t.list.at;
}

bool write_report(Arena *arena, Diag *diag, const ReportWanted *wanted,
                  const Listing *listing, const SimResult *sim,
                  const Pipeline *made) {
    const Options *o = wanted->options;
    ReportInput input = {.listing = listing,
                         .sim = sim,
                         .command = o->line,
                         .n_settings = o->settings.n,
                         .setting = o->settings.at};
    if (wanted->page && made) {
        input.sim = with_lives(arena, made, sim);
        add_plan(arena, wanted, made, &input);
    }
    const char *page = wanted->page ? report_page(arena, &input) : NULL;
    const char *trace =
        wanted->trace ? report_trace(arena, listing, sim) : NULL;
    return (!page ||
            file_write(arena, diag, wanted->page, page, strlen(page))) &&
           (!trace ||
            file_write(arena, diag, wanted->trace, trace, strlen(trace)));
}
