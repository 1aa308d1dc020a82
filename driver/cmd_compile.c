/* cmd_compile.c - a network and a machine in, listing files out. */
#include "driver/commands.h"
#include "driver/hostcode.h"

#include "passes/pass.h"

#include <string.h>

/* The best order, where the file's was taken and another needs less; NULL, too,
 * where that takes more than some milliseconds to find. */
static const Schedule *better_order(Arena *arena, Diag *diag,
                                    const Options *options, const Pipeline *p) {
    enum { LOOKS = 200000 };
    SchedOptions sched;
    if (options->order || options->objective ||
        !pipeline_sched_options(diag, options, &sched))
        return NULL;
    sched.strategy = "best";
    sched.budget = LOOKS;
    const Schedule *best = sched_search(arena, diag, p->spec, p->graph, &sched);
    return best->facts.peak < p->schedule->facts.peak ? best : NULL;
}

static void print_json_report(Arena *arena, const Pipeline *p,
                              const Schedule *better,
                              const char *const paths[6], bool explain) {
    static const char *const key[5] = {"listing", "json", "weights", "object",
                                       "header"};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "network", p->listing->network);
    cJSON_AddStringToObject(json, "machine", p->spec->machine);
    cJSON_AddNumberToObject(json, "instructions", p->listing->n);
    add_placement_json(json, p->plan);
    cJSON_AddNumberToObject(json, "am_capacity_bytes",
                            (double)hwspec_active_bytes(p->spec));
    if (p->spec->backing >= 0)
        cJSON_AddNumberToObject(json, "ddr_bytes",
                                (double)p->plan->memory_used[p->spec->backing]);
    add_traffic_json(json, p->plan);
    cJSON_AddBoolToObject(json, "two_levels", p->plan->two_levels);
    if (explain)
        cJSON_AddStringToObject(json, "volumes", plan_explain(arena, p->plan));
    cJSON_AddItemToObject(json, "order", order_json(p->schedule));
    if (better)
        cJSON_AddItemToObject(json, "better_order", order_json(better));
    cJSON_AddNumberToObject(json, "seeded_layers", p->import.seeded);
    cJSON_AddItemToObject(json, "host_layers", host_layers_json(p->listing));
    for (int i = 0; i < 6; i++)
        if (paths[i])
            cJSON_AddStringToObject(json, key[i], paths[i]);
    cJSON_AddItemToObject(json, "ms", stage_times_json(p));
    print_json(arena, json);
}

static void print_report(Arena *arena, const Pipeline *p,
                         const Schedule *better, const char *const paths[6],
                         bool explain) {
    printf("%s on %s: %u instructions, %u of them layers of the host\n",
           p->listing->network, p->spec->machine, p->listing->n,
           listing_host_layers(p->listing));
    for (uint32_t i = 0; i < p->listing->image.n_hosts; i++) {
        const HostLayer *host = &p->listing->image.host[i];
        if (host->reason)
            printf("host    %s (%s): %s\n", host->name, host->kind,
                   host->reason);
    }
    print_plan(arena, p);
    if (explain)
        fputs(plan_explain(arena, p->plan), stdout);
    if (better)
        printf("order   --order best has %s bytes alive at the worst step, not "
               "%s%s\n",
               with_commas(arena, better->facts.peak),
               with_commas(arena, p->schedule->facts.peak),
               better->facts.proved ? ": the least of all orders" : "");
    if (p->import.seeded)
        printf("weights %u layers had none: seeded ones\n", p->import.seeded);
    for (int i = 0; i < 6; i++)
        if (paths[i])
            printf("wrote   %s\n", paths[i]);
    double total = 0;
    printf("ms     ");
    for (int i = 0; i < STAGE_COUNT; i++) {
        total += p->ms[i];
        if (p->ms[i] > 0)
            printf(" %s %.1f", stage_name[i], p->ms[i]);
    }
    printf(", all %.1f\n", total);
}

/* Pages and traces need a simulation. */
static bool report(Arena *arena, Diag *diag, const Options *options,
                   const Pipeline *p) {
    if (!options->report && !options->trace)
        return true;
    SimOptions memory_only = {.seed = options->seed, .memory_only = true};
    const SimResult *sim =
        sim_run(arena, diag, p->listing, 0, NULL, &memory_only);
    return sim && write_report(arena, diag, options, p->listing, sim, true);
}

/* The listing and, where --emit asks for it, machine code beside it. */
static bool write_files(Arena *arena, Diag *diag, const Options *options,
                        Pipeline *p, const char *paths[6]) {
    bool host = options->emit && strcmp(options->emit, "host") == 0;
    bool bundle = options->emit && !host;
    double start = now_ms();
    const HostObject *made =
        host ? hostcode_make(arena, diag, &p->listing) : NULL;
    p->ms[STAGE_NATIVE] = host ? now_ms() - start : 0;
    if (host && !made)
        return false;
    start = now_ms();
    if (!listing_write(arena, diag, p->listing,
                       options->out ? options->out : ".", paths))
        return false;
    p->ms[STAGE_WRITE] = now_ms() - start;
    start = now_ms();
    if (host && !hostcode_write(arena, diag, made, paths[0], paths + 3))
        return false;
    if (bundle && !bundle_write(arena, diag, p->plan, paths[0], paths + 3))
        return false;
    p->ms[STAGE_NATIVE] += options->emit ? now_ms() - start : 0;
    return true;
}

ExitCode cmd_compile(Arena *arena, Diag *diag, const Options *options) {
    if (options->print_passes) {
        passes_print(stdout);
        return EXIT_FINE;
    }
    if (options->emit && strcmp(options->emit, "host") &&
        strcmp(options->emit, "bundle")) {
        diag_error(diag, (Loc){0}, "--emit %s is not known, only host, bundle",
                   options->emit);
        return EXIT_BAD_USAGE;
    }
    Pipeline p;
    ExitCode code = pipeline_run(arena, diag, options, STAGE_CODEGEN, &p);
    if (code != EXIT_FINE)
        return code;
    const char *paths[6] = {NULL};
    if (!write_files(arena, diag, options, &p, paths))
        return EXIT_BAD_INPUT;
    if (!report(arena, diag, options, &p))
        return EXIT_BAD_INPUT;
    const Schedule *better = better_order(arena, diag, options, &p);
    if (options->json)
        print_json_report(arena, &p, better, paths, options->explain);
    else
        print_report(arena, &p, better, paths, options->explain);
    return EXIT_FINE;
}
