/* pipeline.c - the stages in order; see pipeline.h. */
#include "driver/pipeline.h"
#include "base/guard.h"

#include "alloc/alloc.h"
#include "driver/replication.h"
#include "native/native.h"
#include "passes/pass.h"
#include "sim/sim.h"

#include <string.h>
#include <time.h>

enum { MOST_IMAGES = 256 };

const char *const stage_name[STAGE_COUNT] = {
    "hwspec",  "read",  "passes", "schedule", "alloc",
    "codegen", "write", "native", "simulate", "reference"};

double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static bool dumps(const Options *options, const char *stage) {
    return options->dump &&
           (!strcmp(options->dump, stage) || !strcmp(options->dump, "all"));
}

const HwSpec *pipeline_spec(Arena *arena, Diag *diag, const Options *options) {
    if (!options->target) {
        diag_error(diag, (Loc){0}, "which machine? Give one with -t TARGET");
        const char *const *name = hwspec_targets(arena);
        for (; name && *name; name++)
            diag_note(diag, (Loc){0}, "-t %s", *name);
        return NULL;
    }
    return hwspec_load(arena, diag, options->target, options->settings.n,
                       options->settings.at);
}

const HwSpec *pipeline_spec_of(Arena *arena, Diag *diag, const Options *options,
                               uint32_t element) {
    uint32_t n = options->settings.n;
    HwSetting *settings = ARENA_ARRAY(arena, HwSetting, n + 1);
    for (uint32_t i = 0; i < n; i++)
        settings[i] = options->settings.at[i];
    settings[n] =
        (HwSetting){"machine.element", arena_printf(arena, "%u", element)};
    return hwspec_load(arena, diag, options->target, n + 1, settings);
}

static bool stage_read(Arena *arena, Diag *diag, const Options *options,
                       Pipeline *p) {
    ImportOptions import = {.weights = options->weights,
                            .phase = options->phase,
                            .batch = (uint32_t)options->batch,
                            .n_shapes = options->shapes.n,
                            .shapes = options->shapes.at,
                            .n_fixed = options->fixed.n,
                            .fixed = options->fixed.at,
                            .n_inputs = options->starts.n,
                            .inputs = options->starts.at,
                            .n_outputs = options->ends.n,
                            .outputs = options->ends.at,
                            .n_states = options->states.n,
                            .states = options->states.at,
                            .seed = options->seed};
    p->network = p->original =
        frontend_read(arena, diag, options->file, &import, &p->import);
    return p->original != NULL;
}

const Graph *pipeline_rounded(Arena *arena, const Graph *network,
                              QuantRound round) {
    Graph *graph = NULL;
    for (uint32_t i = 0; i < network->tensor.n; i++) {
        const Quant *q = &network->tensor.at[i].quant;
        if (q->type == QUANT_NONE || q->round == round)
            continue;
        if (!graph)
            graph = graph_clone(arena, network);
        graph->tensor.at[i].quant.round = round;
    }
    return graph ? graph : network;
}

QuantRound pipeline_rounds(const HwSpec *spec) {
    return spec->rounding == HW_ROUNDING_EVEN    ? QUANT_EVEN
           : spec->rounding == HW_ROUNDING_TERMS ? QUANT_TERMS
                                                 : QUANT_UP;
}

/* Codes are those that the machine's rule of rounding gives. */
static void round_as_machine(Arena *arena, Pipeline *p) {
    if (p->spec && p->spec->rounding != HW_ROUNDING_NETWORK)
        p->original =
            pipeline_rounded(arena, p->network, pipeline_rounds(p->spec));
}

/* False for NULL. A bundle finds places by itself. */
static bool set_machine(Arena *arena, const Options *options, Pipeline *p,
                        const HwSpec *machine) {
    p->machine = machine;
    p->spec = machine && options_bundle(options) ? native_roomy(arena, machine)
                                                 : machine;
    return machine != NULL;
}

/* A listing is of rows with a text. */
static bool has_texts(Diag *diag, const HwSpec *machine) {
    if (!machine->insns->n)
        diag_error(diag, machine->loc,
                   "%s has no instructions with a text, so no plans: only "
                   "files (compile, verify, disasm, asm, simulate)",
                   machine->machine);
    return machine->insns->n > 0;
}

/* Bytes of the widest type of the network. */
static uint32_t widest_type(const Graph *g) {
    uint32_t most = 1;
    for (uint32_t i = 0; i < g->tensor.n; i++) {
        uint32_t size = quant_type[g->tensor.at[i].quant.type].size;
        most = size > most ? size : most;
    }
    return most;
}

/* The machine with elements as small as the network lets them be. */
static bool fit_element(Arena *arena, Diag *diag, const Options *options,
                        Pipeline *p) {
    uint32_t size = widest_type(p->original);
    if (!p->machine || !p->machine->native.fit_element ||
        size >= p->machine->element)
        return true;
    return set_machine(arena, options, p,
                       pipeline_spec_of(arena, diag, options, size));
}

static bool stage_passes(Arena *arena, Diag *diag, const Options *options,
                         Pipeline *p) {
    if (dumps(options, "graph"))
        say_lines(guard_err(), graph_print(arena, p->original));
    round_as_machine(arena, p);
    Graph *graph = graph_clone(arena, p->original);
    for (uint32_t i = 0; i < graph->tensor.n; i++)
        graph->tensor.at[i].origin = (TensorId){i};
    PassContext context = {.spec = p->spec,
                           .diag = diag,
                           .scratch = arena_new("passes"),
                           .log = options->rules ? guard_err() : NULL,
                           .bands = p->bands,
                           .band_bytes = p->band_bytes};
    const char *dump = dumps(options, "passes") ? "all" : options->dump;
    bool ok = passes_run(graph, &context, dump, guard_err(), NULL);
    arena_free(context.scratch);
    p->graph = graph;
    p->banded = context.banded;
    return ok;
}

bool pipeline_sched_options(Diag *diag, const Options *options,
                            SchedOptions *out) {
    const char *order = options->side ? "best" : "file";
    bool throughput = !strcmp(options->mode, "throughput");
    if (!throughput && strcmp(options->mode, "latency") != 0) {
        diag_error(diag, (Loc){0},
                   "no mode \"%s\"; there are: latency, "
                   "throughput",
                   options->mode);
        return false;
    }
    *out = (SchedOptions){.strategy = options->order ? options->order : order,
                          .seed = options->seed,
                          .budget = options->budget,
                          .replication = replication_on(options),
                          .ahead = throughput};
    if (!options->side)
        return true;
    for (int i = SIDE_BY_SIDE_PEAK; i < SIDE_BY_SIDE_COUNT; i++)
        if (!strcmp(options->side, side_by_side_name[i]))
            out->aim = (SideBySide)i;
    if (out->aim == SIDE_BY_SIDE_NOT)
        diag_error(diag, (Loc){0},
                   "--side-by-side %s: there are peak, steps, time",
                   options->side);
    return out->aim != SIDE_BY_SIDE_NOT;
}

static bool stage_schedule(Arena *arena, Diag *diag, const Options *options,
                           Pipeline *p) {
    SchedOptions sched;
    if (!pipeline_sched_options(diag, options, &sched))
        return false;
    p->schedule = sched_search(arena, diag, p->spec, p->graph, &sched);
    if (p->schedule && dumps(options, "schedule"))
        say_lines(guard_err(), sched_print(arena, p->schedule));
    return p->schedule != NULL;
}

/* Ends of the network, some of which have the shape of what reads or makes
 * them, with the shapes that they have in the network. */
static Region *with_shapes(Arena *arena, const Graph *original,
                           const Region *region, uint32_t n) {
    Region *own = ARENA_COPY(arena, Region, region, n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = 0; t < original->tensor.n; t++) {
            const Tensor *tensor = &original->tensor.at[t];
            if (!strcmp(tensor->name, own[i].name) &&
                !shape_equal(&tensor->shape, &own[i].shape) &&
                shape_count(&tensor->shape) == shape_count(&own[i].shape))
                own[i].given = tensor->shape;
        }
    return own;
}

static bool stage_codegen(Arena *arena, Diag *diag, Pipeline *p) {
    const Listing *made = codegen_run(arena, diag, p->plan, &p->action_of);
    if (!made)
        return false;
    Listing *listing = ARENA_COPY(arena, Listing, made, 1);
    Image *image = &listing->image;
    image->input =
        with_shapes(arena, p->original, image->input, image->n_inputs);
    image->output =
        with_shapes(arena, p->original, image->output, image->n_outputs);
    p->listing = listing;
    return true;
}

/* On a machine that holds one image's part of the listing. */
static const Schedule *schedule_of_one(Arena *arena, const Schedule *schedule,
                                       uint32_t images) {
    HwSpec *spec = ARENA_COPY(arena, HwSpec, schedule->spec, 1);
    Schedule *one = ARENA_COPY(arena, Schedule, schedule, 1);
    uint32_t most = spec->max_instructions;
    if (most)
        spec->max_instructions = most > images ? most / images : 1;
    one->spec = spec;
    return one;
}

/* From the plan of one image to that of all; the reference is of all, too. */
static ExitCode plan_all_images(Arena *arena, Diag *diag,
                                const Options *options, Pipeline *p) {
    uint32_t images = (uint32_t)options->images, n = p->original->tensor.n;
    bool does_not_fit = false;
    if (graph_states(p->graph)) {
        diag_error(diag, (Loc){0}, "--images: states are kept from call to "
                                   "call, and a listing is one call");
        return EXIT_BAD_USAGE;
    }
    const Schedule *schedule = p->schedule;
    p->schedule = p->one = schedule_of_one(arena, schedule, images);
    ExitCode code = replication_plan(arena, diag, options, p);
    if (code != EXIT_FINE)
        return code;
    p->original = graph_repeat(arena, p->original, images, n);
    p->graph = graph_repeat(arena, p->graph, images, n);
    p->schedule = sched_repeat(arena, schedule, p->graph, images);
    PlanOptions all = {.cycles = simulated_cycles, .images = images};
    p->plan =
        plan_images(arena, diag, p->plan, p->schedule, &all, &does_not_fit);
    return p->plan ? EXIT_FINE : does_not_fit ? EXIT_NO_FIT : EXIT_BAD_INPUT;
}

static ExitCode stage_alloc(Arena *arena, Diag *diag, const Options *options,
                            Pipeline *p) {
    ExitCode code = options->images > 1
                        ? plan_all_images(arena, diag, options, p)
                        : replication_plan(arena, diag, options, p);
    if (p->plan && dumps(options, "plan"))
        say_lines(guard_err(), plan_print(arena, p->plan));
    return code;
}

static ExitCode run_stage(Arena *arena, Diag *diag, const Options *options,
                          Stage stage, Pipeline *p) {
    bool ok = true;
    switch (stage) {
    case STAGE_HWSPEC:
        if (options->target)
            ok = set_machine(arena, options, p,
                             pipeline_spec(arena, diag, options));
        break;
    case STAGE_READ:
        ok = stage_read(arena, diag, options, p) &&
             fit_element(arena, diag, options, p);
        break;
    case STAGE_PASSES:
        ok = stage_passes(arena, diag, options, p);
        break;
    case STAGE_SCHEDULE:
        ok = has_texts(diag, p->machine) &&
             stage_schedule(arena, diag, options, p);
        break;
    case STAGE_ALLOC:
        return stage_alloc(arena, diag, options, p);
    case STAGE_CODEGEN: /* more instructions than the machine holds */
        return stage_codegen(arena, diag, p) ? EXIT_FINE : EXIT_NO_FIT;
    default:
        bug("stage %d is not part of the pipeline", (int)stage);
    }
    return ok ? EXIT_FINE : EXIT_BAD_INPUT;
}

ExitCode pipeline_resume(Arena *arena, Diag *diag, const Options *options,
                         Stage first, Stage last, Pipeline *out) {
    for (Stage stage = first; stage <= last; stage++) {
        double start = now_ms();
        ExitCode code = run_stage(arena, diag, options, stage, out);
        out->ms[stage] = now_ms() - start;
        if (code != EXIT_FINE)
            return code;
    }
    return EXIT_FINE;
}

/* ---- engines that work ahead ---- */

static bool runs_ahead(const Pipeline *p) {
    for (uint32_t i = 0; p->plan && i < p->plan->n_actions; i++) {
        const Action *a = &p->plan->action[i];
        if (a->kind == ACTION_RUN && p->spec->engine[a->legal.engine].ahead)
            return true;
    }
    return false;
}

/* Cycles from image to image; UINT64_MAX where a rule is broken. */
static uint64_t interval_of(const Pipeline *p, uint64_t seed) {
    Arena *arena = arena_new("interval");
    SimOptions memory_only = {.seed = seed, .memory_only = true};
    const SimResult *sim =
        sim_run(arena, diag_new(arena), p->listing, 0, NULL, &memory_only);
    uint64_t cycles = sim && !sim->n_violations ? sim->interval : UINT64_MAX;
    arena_free(arena);
    return cycles;
}

/* With engines that work ahead and without; what takes fewer cycles an image
 * stays. Where neither fits, what is said is of those ahead, but for the size
 * that would do: in that one of them fits. */
static ExitCode run_throughput(Arena *arena, Diag *diag, const Options *o,
                               Pipeline *out) {
    Options latency = *o;
    latency.mode = "latency";
    Diag *said = diag_new(arena), *said_plain = diag_new(arena);
    ExitCode plain = pipeline_resume(arena, said_plain, &latency,
                                     STAGE_SCHEDULE, STAGE_SCHEDULE, out);
    Pipeline ahead = *out;
    ahead.other = out->schedule;
    ExitCode code =
        pipeline_resume(arena, said, o, STAGE_SCHEDULE, STAGE_CODEGEN, &ahead);
    bool alone = code == EXIT_FINE && !runs_ahead(&ahead);
    if (plain == EXIT_FINE)
        plain = alone ? EXIT_NO_FIT
                      : pipeline_resume(arena, said_plain, &latency,
                                        STAGE_ALLOC, STAGE_CODEGEN, out);
    bool stays = plain == EXIT_FINE &&
                 (code != EXIT_FINE ||
                  interval_of(&ahead, o->seed) >= interval_of(out, o->seed));
    diag_pass_on(diag, stays ? said_plain : said);
    if (!stays)
        *out = ahead;
    return stays ? EXIT_FINE : code;
}

static bool images_are_right(Diag *diag, const Options *options) {
    const char *wrong = NULL;
    if (options->images > MOST_IMAGES)
        wrong = "at most 256";
    else if (options->images > 1 && options_bundle(options))
        wrong = "one listing has them; for bundles there is --most-images";
    else if (options->images > 1 && !strcmp(options->mode, "throughput"))
        wrong = "--mode throughput is for the listing of one image";
    if (wrong)
        diag_error(diag, (Loc){0}, "--images: %s", wrong);
    return !wrong;
}

ExitCode pipeline_run(Arena *arena, Diag *diag, const Options *options,
                      Stage last, Pipeline *out) {
    *out = (Pipeline){0};
    if (!images_are_right(diag, options))
        return EXIT_BAD_USAGE;
    if (last > STAGE_PASSES && !options->target) {
        pipeline_spec(arena, diag, options);
        return EXIT_BAD_USAGE;
    }
    bool both = last == STAGE_CODEGEN && !strcmp(options->mode, "throughput");
    ExitCode code = pipeline_resume(arena, diag, options, STAGE_HWSPEC,
                                    both ? STAGE_PASSES : last, out);
    return code == EXIT_FINE && both ? run_throughput(arena, diag, options, out)
                                     : code;
}

uint32_t pipeline_images(const Pipeline *p) {
    return p->one ? p->schedule->graph->node.n / p->one->graph->node.n : 1;
}

uint32_t pipeline_host_layers(const Pipeline *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->plan->n_actions; i++)
        n += p->plan->action[i].kind == ACTION_HOST;
    return n;
}
