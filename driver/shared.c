/* shared.c - what several commands print; see commands.h. */
#include "driver/commands.h"
#include "plan/cost.h"

#include "base/guard.h"
#include "report/moves.h"

#include <string.h>

void print_json(Arena *arena, const Options *options, cJSON *json) {
    const char *text = json_print(arena, json, false);
    if (options->said)
        *options->said = text;
    else
        fprintf(guard_out(), "%s\n", text);
    json_free(json);
}

cJSON *stage_times_json(const Pipeline *pipeline) {
    cJSON *ms = cJSON_CreateObject();
    for (int i = 0; i < STAGE_COUNT; i++)
        if (pipeline->ms[i] > 0)
            cJSON_AddNumberToObject(ms, stage_name[i], pipeline->ms[i]);
    return ms;
}

cJSON *host_layers_json(const Listing *listing) {
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < listing->image.n_hosts; i++) {
        const HostLayer *host = &listing->image.host[i];
        if (!host->reason)
            continue;
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "layer", host->name);
        cJSON_AddStringToObject(item, "kind", host->kind);
        cJSON_AddStringToObject(item, "function", host->function);
        cJSON_AddStringToObject(item, "reason", host->reason);
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

static cJSON *violations_json(const Listing *listing, const SimResult *sim) {
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < sim->n_kept; i++) {
        cJSON *item = cJSON_CreateObject();
        Loc loc = listing->insn[sim->violation[i].insn].loc;
        cJSON_AddNumberToObject(item, "instruction", sim->violation[i].insn);
        cJSON_AddNumberToObject(item, "line", loc.line);
        cJSON_AddStringToObject(item, "text", sim->violation[i].text);
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

static cJSON *engines_json(const SimResult *sim) {
    cJSON *engines = cJSON_CreateObject();
    for (uint32_t i = 0; i < sim->n_engines; i++) {
        const SimEngineUse *use = &sim->engine[i];
        cJSON *item = cJSON_AddObjectToObject(engines, use->name);
        cJSON_AddNumberToObject(item, "cycles", (double)use->cycles);
        cJSON_AddNumberToObject(item, "instructions",
                                (double)use->instructions);
    }
    return engines;
}

/* Of loads and stores. */
static cJSON *memories_json(const HwSpec *spec, const SimResult *sim) {
    cJSON *memories = cJSON_CreateObject();
    for (uint32_t m = spec->n_active; m < spec->n_memories; m++) {
        cJSON *item = cJSON_AddObjectToObject(memories, spec->memory[m].name);
        cJSON_AddNumberToObject(item, "read", (double)sim->read[m]);
        cJSON_AddNumberToObject(item, "written", (double)sim->written[m]);
        cJSON_AddNumberToObject(item, "cycles", (double)sim->wires[m]);
    }
    return memories;
}

/* Of what makes products, were it bound by nothing else. */
static uint64_t array_cycles(const SimResult *sim) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sim->n_events; i++)
        if (sim->event[i].macs)
            sum += sim->event[i].cost[SIM_COMPUTE];
    return sum;
}

static cJSON *moves_json(Arena *arena, const Listing *listing,
                         const SimResult *sim) {
    cJSON *list = cJSON_CreateArray();
    const VolumeMoves *v;
    uint32_t n = moves_by_volume(arena, listing, sim, &v);
    for (uint32_t i = 0; i < n; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, v[i].by_tiles ? "tiles_of" : "volume",
                                v[i].name);
#define ADD(field, head, key)                                                  \
    cJSON_AddNumberToObject(item, key, (double)v[i].field);
        VOLUME_MOVES(ADD)
#undef ADD
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

static cJSON *together_json(Arena *arena, const Listing *listing,
                            const SimResult *sim) {
    cJSON *list = cJSON_CreateArray();
    const LayersTogether *t;
    uint32_t n = moves_together(arena, listing, sim, &t);
    for (uint32_t i = 0; i < n; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "first", t[i].first);
        cJSON_AddStringToObject(item, "last", t[i].last);
#define ADD(field, head, key)                                                  \
    cJSON_AddNumberToObject(item, key, (double)t[i].field);
        LAYERS_TOGETHER(ADD)
#undef ADD
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

void add_sim_json(Arena *arena, cJSON *json, const Listing *listing,
                  const SimResult *sim) {
    cJSON_AddNumberToObject(json, "am_peak_bytes", (double)sim->am_peak);
    cJSON_AddNumberToObject(json, "am_capacity_bytes",
                            (double)hwspec_active_bytes(listing->spec));
    cJSON_AddNumberToObject(json, "ddr_read_bytes", (double)sim->backing_read);
    cJSON_AddNumberToObject(json, "ddr_written_bytes",
                            (double)sim->backing_written);
    cJSON_AddNumberToObject(json, "ddr_compulsory_bytes",
                            (double)sim->compulsory);
    cJSON_AddNumberToObject(json, "weights_read_bytes",
                            (double)sim->weights_read);
    cJSON_AddNumberToObject(json, "cycles", (double)sim->cycles);
    cJSON_AddNumberToObject(json, "cycles_an_image", (double)sim->interval);
    cJSON_AddNumberToObject(json, "busy_cycles", (double)sim->busy);
    cJSON_AddNumberToObject(json, "transfer_cycles", (double)sim->transfer);
    cJSON_AddNumberToObject(json, "array_cycles", (double)array_cycles(sim));
    cJSON_AddNumberToObject(json, "instructions", (double)sim->instructions);
    cJSON_AddItemToObject(json, "engines", engines_json(sim));
    cJSON_AddItemToObject(json, "memories", memories_json(listing->spec, sim));
    cJSON_AddItemToObject(json, "moves", moves_json(arena, listing, sim));
    cJSON_AddItemToObject(json, "together", together_json(arena, listing, sim));
    cJSON_AddItemToObject(json, "host_layers", host_layers_json(listing));
    cJSON_AddNumberToObject(json, "violations", (double)sim->n_violations);
    cJSON_AddItemToObject(json, "violation_list",
                          violations_json(listing, sim));
}

void add_traffic_json(cJSON *json, const Plan *plan) {
    cJSON_AddNumberToObject(json, "ddr_moved_bytes", (double)plan->ddr_moved);
    for (uint32_t i = 0; i < PLAN_BOUNDS; i++)
        cJSON_AddNumberToObject(json, plan_bound_key[i],
                                (double)plan->ddr_bound[i]);
    cJSON_AddNumberToObject(json, "computed_again_bytes",
                            (double)plan->ddr_again);
    cJSON_AddNumberToObject(json, "products", (double)plan_products(plan).all);
    if (plan->cycles)
        cJSON_AddNumberToObject(json, "plan_cycles", (double)plan->cycles);
}

static void print_violations(const Listing *listing, const SimResult *sim) {
    for (uint32_t i = 0; i < sim->n_kept; i++) {
        const Violation *v = &sim->violation[i];
        Loc loc = listing->insn[v->insn].loc;
        if (loc.line)
            say("  %s:%u: %s\n", loc.file, loc.line, v->text);
        else
            say("  instruction %u: %s\n", v->insn, v->text);
    }
    if (sim->n_violations > sim->n_kept)
        say("  and %llu more\n",
            (unsigned long long)(sim->n_violations - sim->n_kept));
}

/* Where several memories lie behind active memory, each by itself. */
static void print_wires(Arena *arena, const HwSpec *spec,
                        const SimResult *sim) {
    uint32_t used = spec->backings | spec->tiling.rows.weights_in;
    for (uint32_t m = 0; (used & (used - 1)) && m < spec->n_memories; m++)
        if (sim->read[m] || sim->written[m])
            say("        %s: %s bytes read, %s written, in %s cycles\n",
                spec->memory[m].name, with_commas(arena, sim->read[m]),
                with_commas(arena, sim->written[m]),
                with_commas(arena, sim->wires[m]));
}

/* Where elements are as small as a network lets them be, the listing tells how
 * small. */
const Listing *listing_of_file(Arena *arena, Diag *diag, const Options *options,
                               const HwSpec *spec, const char *file) {
    const Listing *listing = listing_read(arena, diag, spec, file);
    uint32_t element = listing ? listing->image.element : 0;
    if (!element || !spec->native.fit_element || element >= spec->element)
        return listing;
    spec = pipeline_spec_of(arena, diag, options, element);
    return spec ? listing_read(arena, diag, spec, file) : NULL;
}

void print_sim(Arena *arena, const Listing *listing, const SimResult *sim,
               uint32_t images) {
    say("AM      %s of %s bytes touched\n", with_commas(arena, sim->am_peak),
        with_commas(arena, hwspec_active_bytes(listing->spec)));
    say("DDR     %s bytes read, %s written; compulsory %s\n",
        with_commas(arena, sim->backing_read),
        with_commas(arena, sim->backing_written),
        with_commas(arena, sim->compulsory));
    print_wires(arena, listing->spec, sim);
    say("time    %s cycles (%.3f ms at %.0f MHz), %s\n",
        with_commas(arena, sim->cycles),
        (double)sim->cycles / listing->spec->clock * 1e3,
        listing->spec->clock / 1e6,
        with_noun(arena, sim->instructions, "instruction"));
    if (images < 2 && sim->interval != sim->cycles)
        say("steady  %s cycles an image (%.1f images/s), %s\n",
            with_commas(arena, sim->interval),
            listing->spec->clock / (double)sim->interval,
            sim_images_how(arena, listing->spec));
    for (uint32_t i = 0; i < sim->n_notes; i++)
        say("note    %s\n", sim->note[i]);
    say("memory  %s\n", with_noun(arena, sim->n_violations, "violation"));
    print_violations(listing, sim);
}

Accounts plan_accounts(Arena *arena, const Pipeline *p, uint64_t cycles) {
    const SimOptions timed = {
        .seed = 1, .time_only = true, .memory_only = true};
    const SimResult *sim =
        listing_host_layers(p->listing)
            ? sim_run(arena, diag_new(arena), p->listing, 0, NULL, &timed)
            : NULL;
    return accounts_of(arena, p->listing, plan_products(p->plan).once, cycles,
                       sim);
}

/* What the placement in active memory is worth. */
static const char *placement_words(Arena *arena, const Plan *plan) {
    const char *bound = "", *packed = "";
    if (plan->am_bound != plan->am_live)
        bound = arena_printf(arena, ", bound %s",
                             with_commas(arena, plan->am_bound));
    if (plan->am_packed != plan->am_height)
        packed = arena_printf(arena, "packed %s, ",
                              with_commas(arena, plan->am_packed));
    return arena_printf(arena, "%slive peak %s%s (planner %s, %s)", packed,
                        with_commas(arena, plan->am_live), bound, plan->planner,
                        plan->am_proved ? "proved" : "not proved");
}

/* Of products that are computed again, how much. */
void print_products(Arena *arena, const Plan *plan) {
    Products p = plan_products(plan);
    if (p.once && p.all > p.once)
        say("again   %s of %s products are computed again: %.2f times those "
            "of the network\n",
            with_commas(arena, p.all - p.once), with_commas(arena, p.once),
            (double)p.all / (double)p.once);
}

void print_seeded(Arena *arena, uint32_t layers) {
    if (layers)
        say("weights %s had none: seeded ones\n",
            with_noun(arena, layers, "layer"));
}

void print_placement(Arena *arena, const Plan *plan) {
    say("plan    %s bytes of AM, %s\n", with_commas(arena, plan->am_height),
        placement_words(arena, plan));
}

void add_placement_json(cJSON *json, const Plan *plan) {
    cJSON_AddNumberToObject(json, "am_bytes", (double)plan->am_height);
    cJSON_AddNumberToObject(json, "am_packed_bytes", (double)plan->am_packed);
    cJSON_AddNumberToObject(json, "am_live_bytes", (double)plan->am_live);
    cJSON_AddNumberToObject(json, "am_bound_bytes", (double)plan->am_bound);
    PlanWeights weights = plan_weights(plan);
    if (weights.blocks) {
        cJSON_AddNumberToObject(json, "am_weights_most_bytes",
                                (double)weights.most);
        cJSON_AddNumberToObject(json, "am_weights_end", (double)weights.end);
    }
    cJSON_AddBoolToObject(json, "am_proved", plan->am_proved);
    cJSON_AddStringToObject(json, "planner", plan->planner);
}

/* Where they lie, beside the volumes that the line above is of. */
static void print_weights(Arena *arena, const HwSpec *spec, const Plan *plan) {
    PlanWeights w = plan_weights(plan);
    if (w.blocks)
        say("        volumes alone; beside them at most %s bytes of weights "
            "wait or are read, up to byte %s of %s\n",
            with_commas(arena, w.most), with_commas(arena, w.end),
            spec->memory[spec->weights].name);
}

void print_plan(Arena *arena, const Pipeline *p) {
    const Plan *plan = p->plan;
    say("AM      %s of %s bytes, %s\n", with_commas(arena, plan->am_height),
        with_commas(arena, hwspec_active_bytes(p->spec)),
        placement_words(arena, plan));
    print_weights(arena, p->spec, plan);
    uint64_t ddr =
        p->spec->backing < 0 ? 0 : plan->memory_used[p->spec->backing];
    say("DDR     %s bytes for %s\n", with_commas(arena, ddr),
        plan->two_levels ? "spilled and tiled volumes"
                         : "volumes: everything stays in AM");
    PlanBoundKind bound = plan_bound(plan);
    uint64_t most = plan->ddr_bound[bound];
    uint64_t once = plan->ddr_bound[PLAN_BOUND_ONCE];
    uint64_t layers = plan->ddr_bound[PLAN_BOUND_LAYERS];
    say("        %s bytes moved; compulsory %s, bound %s (%s)\n",
        with_commas(arena, plan->ddr_moved),
        with_commas(arena, plan_compulsory(plan)), with_commas(arena, most),
        plan_bound_words(plan, bound));
    if (once > most)
        say("        computing nothing twice no plan moves less than %s; "
            "this one computes %s bytes of results again\n",
            with_commas(arena, once), with_commas(arena, plan->ddr_again));
    if (layers > most && layers > once)
        say("        layer by layer no plan in this order moves less than "
            "%s\n",
            with_commas(arena, layers));
    print_products(arena, plan);
}
