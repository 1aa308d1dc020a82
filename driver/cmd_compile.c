/* cmd_compile.c - a network and a machine in, listing files out. */
#include "base/guard.h"
#include "driver/commands.h"
#include "driver/file_program.h"
#include "driver/hostcode.h"
#include "driver/images.h"
#include "driver/lanes_program.h"
#include "driver/listed_words.h"
#include "driver/makes.h"
#include "driver/words_program.h"

#include "passes/pass.h"

#include <string.h>

/* The best order, where the file's was taken and another needs less; NULL, too,
 * where that takes more than some milliseconds to find. */
static const Schedule *better_order(Arena *arena, Diag *diag,
                                    const Options *options, const Pipeline *p) {
    enum { LOOKS = 200000 };
    SchedOptions sched;
    if (options->order || options->side ||
        !pipeline_sched_options(diag, options, &sched))
        return NULL;
    sched.strategy = "best";
    sched.budget = LOOKS;
    const Schedule *one = p->one ? p->one : p->schedule;
    const Schedule *best =
        sched_search(arena, diag, p->spec, one->graph, &sched);
    return best->facts.peak < one->facts.peak ? best : NULL;
}

/* ---- reports ---- */

/* What is written. */
enum {
    LISTING,
    JSON,
    WEIGHTS,
    OBJECT,
    HEADER,
    CONSTANTS,
    PROBLEM,
    DATA,
    MANIFEST,
    PATHS
};
static const char *const path_key[PATHS] = {"listing", "json",   "weights",
                                            "object",  "header", "constants",
                                            "problem", "data",   "manifest"};

typedef struct Made {
    const char *path[PATHS];
    const NativeBundle *bundle; /* NULL: none */
    const Schedule *better;     /* or NULL */
} Made;

static const char *explanation(Arena *arena, const Pipeline *p,
                               const Made *made) {
    return made->bundle
               ? native_bundle_table(arena, made->bundle)
               : arena_printf(arena, "%s%s", plan_explain(arena, p->plan),
                              plan_explain_time(arena, p->plan));
}

static cJSON *cost_json(const PlanCost *cost) {
    cJSON *one = cJSON_CreateObject();
    cJSON_AddNumberToObject(one, "memory", (double)cost->memory);
    cJSON_AddNumberToObject(one, "cycles", (double)cost->cycles);
    cJSON_AddNumberToObject(one, "bytes", (double)cost->bytes);
    cJSON_AddNumberToObject(one, "instructions", (double)cost->instructions);
    return one;
}

/* The plan that was taken, among those of the front. */
static bool is_chosen(const Plan *plan, uint32_t i) {
    return !memcmp(&plan->front[i], &plan->cost, sizeof plan->cost);
}

static cJSON *front_json(const Plan *plan) {
    cJSON *front = cJSON_CreateArray();
    for (uint32_t i = 0; i < plan->n_front; i++) {
        cJSON *one = cost_json(&plan->front[i]);
        cJSON_AddBoolToObject(one, "chosen", is_chosen(plan, i));
        cJSON_AddItemToArray(front, one);
    }
    return front;
}

static cJSON *effort_json(const Plan *plan) {
    const PlanEffort *e = &plan->effort;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "configurations", (double)e->configurations);
    cJSON_AddNumberToObject(json, "packings", (double)e->packings);
    cJSON_AddNumberToObject(json, "steps", (double)e->steps);
    cJSON_AddNumberToObject(json, "budget", (double)e->budget);
    return json;
}

static cJSON *report_json(Arena *arena, const Pipeline *p, const Made *made,
                          bool explain) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "network", p->listing->network);
    cJSON_AddStringToObject(json, "machine", p->spec->machine);
    cJSON_AddNumberToObject(json, "instructions", listing_issued(p->listing));
    cJSON_AddNumberToObject(json, "records", p->listing->n);
    if (p->listing->n_parts > 1)
        cJSON_AddNumberToObject(json, "parts", p->listing->n_parts);
    if (pipeline_images(p) > 1)
        cJSON_AddNumberToObject(json, "images", pipeline_images(p));
    add_placement_json(json, p->plan);
    cJSON_AddNumberToObject(json, "am_capacity_bytes",
                            (double)hwspec_active_bytes(p->machine));
    if (made->bundle)
        cJSON_AddItemToObject(json, "bundle", bundle_json(made->bundle));
    if (p->spec->backing >= 0)
        cJSON_AddNumberToObject(json, "ddr_bytes",
                                (double)p->plan->memory_used[p->spec->backing]);
    add_traffic_json(json, p->plan);
    cJSON_AddBoolToObject(json, "two_levels", p->plan->two_levels);
    cJSON_AddItemToObject(json, "cost", cost_json(&p->plan->cost));
    cJSON_AddNumberToObject(json, "planned_for_bytes",
                            (double)p->plan->am_planned);
    cJSON_AddItemToObject(json, "front", front_json(p->plan));
    cJSON_AddItemToObject(json, "effort", effort_json(p->plan));
    cJSON_AddNumberToObject(json, "rejected", p->plan->rejected);
    if (explain)
        cJSON_AddStringToObject(json, "volumes", explanation(arena, p, made));
    cJSON_AddItemToObject(json, "order", order_json(p->schedule));
    if (made->better)
        cJSON_AddItemToObject(json, "better_order", order_json(made->better));
    cJSON_AddNumberToObject(json, "seeded_layers", p->import.seeded);
    cJSON_AddItemToObject(json, "host_layers", host_layers_json(p->listing));
    Accounts accounts = plan_accounts(arena, p, p->plan->cost.cycles);
    accounts_add_json(json, &accounts);
    for (int i = 0; i < PATHS; i++)
        if (made->path[i])
            cJSON_AddStringToObject(json, path_key[i], made->path[i]);
    cJSON_AddItemToObject(json, "ms", stage_times_json(p));
    return json;
}

cJSON *compile_json(Arena *arena, const Pipeline *p) {
    return report_json(arena, p, &(Made){0}, false);
}

static void print_front(Arena *arena, const Plan *plan) {
    say("front   %4s %15s %15s %15s %13s\n", "plan", "active memory", "cycles",
        "bytes+weights", "instructions");
    for (uint32_t i = 0; i < plan->n_front; i++) {
        const PlanCost *cost = &plan->front[i];
        say("        %4u %15s %15s %15s %13s%s\n", i + 1,
            with_commas(arena, cost->memory), with_commas(arena, cost->cycles),
            with_commas(arena, cost->bytes),
            with_commas(arena, cost->instructions),
            is_chosen(plan, i) ? "  chosen" : "");
    }
}

static void print_report(Arena *arena, const Options *options,
                         const Pipeline *p, const Made *made) {
    const CompileArgs *own = options->own;
    bool explain = own->explain;
    const Schedule *better = made->better;
    say("%s on %s: %s, %s of the host\n", p->listing->network, p->spec->machine,
        with_noun(arena, listing_issued(p->listing), "instruction"),
        with_noun(arena, listing_host_layers(p->listing), "layer"));
    for (uint32_t i = 0; i < p->listing->image.n_hosts; i++) {
        const HostLayer *host = &p->listing->image.host[i];
        if (host->reason && image_is_first(p, host->name))
            say("host    %s (%s): %s\n", host->name, host->kind, host->reason);
    }
    if (p->listing->n_parts > 1)
        say("parts   %u (.1.cmd and so on), each loaded when the one before "
            "has "
            "ended; %s holds %u instructions, and loading them is not "
            "counted\n",
            p->listing->n_parts, p->spec->machine, p->spec->max_instructions);
    if (pipeline_images(p) > 1)
        say("images  %u, one behind the other; names of the second end in "
            "@2, and so on\n",
            pipeline_images(p));
    if (made->bundle)
        print_bundle(arena, made->bundle);
    else
        print_plan(arena, p);
    Accounts accounts = plan_accounts(arena, p, p->plan->cost.cycles);
    accounts_print(arena, &accounts);
    if (options->front)
        print_front(arena, p->plan);
    if (explain)
        say_lines(guard_out(), explanation(arena, p, made));
    if (better)
        say("order   --order best has %s bytes alive at the worst step, not "
            "%s%s\n",
            with_commas(arena, better->facts.peak),
            with_commas(arena, p->schedule->facts.peak),
            better->facts.proved ? ": the least of all orders" : "");
    print_seeded(arena, p->import.seeded);
    for (int i = 0; i < PATHS; i++)
        if (made->path[i])
            say("wrote   %s\n", made->path[i]);
    double total = 0;
    say("ms     ");
    for (int i = 0; i < STAGE_COUNT; i++) {
        total += p->ms[i];
        if (p->ms[i] > 0)
            say(" %s %.1f", stage_name[i], p->ms[i]);
    }
    say(", all %.1f\n", total);
}

/* ---- files ---- */

static bool emits(const Options *options, const char *what) {
    return options->emit && strcmp(options->emit, what) == 0;
}

const Listing *listing_timed(Arena *arena, Pipeline *p, bool spans) {
    const Listing *listing = p->listing;
    SimOptions options = {.seed = 1,
                          .compulsory = plan_compulsory(p->plan),
                          .time_only = true,
                          .memory_only = true,
                          .spans = spans};
    const SimResult *sim =
        sim_run(arena, diag_new(arena), listing, 0, NULL, &options);
    p->timed = spans ? sim : NULL;
    RecordTime *time = ARENA_ARRAY(arena, RecordTime, listing->n + 1);
    for (uint32_t i = 0; sim && i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        time[e->insn] =
            (RecordTime){true, e->start, e->cycles, e->read, e->written};
    }
    Listing *copy = ARENA_COPY(arena, Listing, listing, 1);
    copy->time = time;
    copy->record = records_make(arena, p->plan, listing, p->action_of);
    return copy;
}

static bool write_listing(Arena *arena, Diag *diag, const Options *options,
                          Pipeline *p, Made *made) {
    const CompileArgs *own = options->own;
    double start = now_ms();
    bool spans = own->report || own->trace;
    bool ok = listing_write(arena, diag, listing_timed(arena, p, spans),
                            options->out ? options->out : ".", made->path);
    p->ms[STAGE_WRITE] = now_ms() - start;
    return ok;
}

/* The listing and the layers of its host. */
static bool write_host(Arena *arena, Diag *diag, const Options *options,
                       Pipeline *p, Made *made) {
    double start = now_ms();
    const HostObject *host = hostcode_make(arena, diag, &p->listing);
    p->ms[STAGE_NATIVE] = now_ms() - start;
    if (!host || !write_listing(arena, diag, options, p, made))
        return false;
    start = now_ms();
    bool ok = hostcode_write(arena, diag, host, made->path[LISTING],
                             &made->path[OBJECT]);
    p->ms[STAGE_NATIVE] += now_ms() - start;
    return ok;
}

/* The listing and the whole network as code, or what that keeps in memory. */
static ExitCode write_bundle(Arena *arena, Diag *diag, const Options *options,
                             Pipeline *p, Made *made) {
    const CompileArgs *own = options->own;
    const BundleOptions how = {
        .images = own->most_images ? (uint32_t)own->most_images : 1,
        .planner = options->planner,
        .io = own->io};
    bool does_not_fit = false, ok = false;
    double start = now_ms();
    made->bundle =
        bundle_make(arena, diag, &how, p->plan, p->machine, &does_not_fit);
    if (!made->bundle)
        return does_not_fit ? EXIT_NO_FIT : EXIT_BAD_INPUT;
    p->ms[STAGE_NATIVE] = now_ms() - start;
    if (!write_listing(arena, diag, options, p, made))
        return EXIT_BAD_INPUT;
    start = now_ms();
    if (emits(options, "problem"))
        ok = bundle_write_problem(arena, diag, made->bundle,
                                  made->path[LISTING], &made->path[PROBLEM]);
    else
        ok = bundle_write(arena, diag, made->bundle, made->path[LISTING],
                          &made->path[OBJECT]);
    p->ms[STAGE_NATIVE] += now_ms() - start;
    return ok ? EXIT_FINE : EXIT_BAD_INPUT;
}

static ExitCode write_files(Arena *arena, Diag *diag, const Options *options,
                            Pipeline *p, Made *made) {
    if (options_bundle(options))
        return write_bundle(arena, diag, options, p, made);
    const CompileArgs *own = options->own;
    bool ok = emits(options, "host")
                  ? write_host(arena, diag, options, p, made)
                  : write_listing(arena, diag, options, p, made);
    if (ok && own->materialise)
        ok = listing_materialise(arena, diag, p->listing,
                                 options->out ? options->out : ".",
                                 &made->path[DATA]);
    return ok ? EXIT_FINE : EXIT_BAD_INPUT;
}

static bool usage_is_right(Diag *diag, const Options *options) {
    const CompileArgs *own = options->own;
    if (options->emit && !emits(options, "host") && !options_bundle(options)) {
        diag_error(diag, (Loc){0},
                   "--emit %s is not known, only host, bundle, problem; words "
                   "where the machine has them",
                   options->emit);
        return false;
    }
    if ((own->io || own->most_images) && !options_bundle(options)) {
        diag_error(diag, (Loc){0}, "--%s is about bundles: --emit bundle",
                   own->io ? "io" : "most-images");
        return false;
    }
    if (own->most_images > NATIVE_MOST_IMAGES) {
        diag_error(diag, (Loc){0}, "--most-images: at most %d",
                   NATIVE_MOST_IMAGES);
        return false;
    }
    return true;
}

ExitCode cmd_compile(Arena *arena, Diag *diag, const Options *options) {
    const CompileArgs *own = options->own;
    if (own->print_passes) {
        passes_print(guard_out());
        return EXIT_FINE;
    }
    Makes makes = options_make(arena, options);
    if (makes == MAKES_DESCRIPTION)
        return compile_lanes(arena, diag, options);
    if (makes == MAKES_WORDS)
        return compile_words(arena, diag, options);
    if (makes == MAKES_FILE)
        return compile_file(arena, diag, options);
    if (options_listed_words(arena, options))
        return compile_listed_words(arena, diag, options);
    if (!usage_is_right(diag, options))
        return EXIT_BAD_USAGE;
    Pipeline p;
    Options planned = *options;
    planned.front |= own->report != NULL; /* which shows it */
    ExitCode code = pipeline_run(arena, diag, &planned, STAGE_CODEGEN, &p);
    if (code != EXIT_FINE)
        return code;
    Made made = {0};
    code = write_files(arena, diag, options, &p, &made);
    if (code != EXIT_FINE)
        return code;
    const ReportWanted wanted = {options, own->report, own->trace,
                                 own->what_if};
    if (p.timed && !write_report(arena, diag, &wanted, p.listing, p.timed, &p))
        return EXIT_BAD_INPUT;
    made.better = better_order(arena, diag, options, &p);
    if (options->json)
        print_json(arena, options, report_json(arena, &p, &made, own->explain));
    else
        print_report(arena, options, &p, &made);
    return EXIT_FINE;
}
