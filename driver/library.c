/* library.c - libamphora; see include/amphora/amphora.h.
 *
 * Input: paths, options. Output: plans, listings and what running them gives.
 * Invariants: a plan's arena holds all that it returns; messages are copied
 * into the session, which outlives what they tell of.
 */
#include <amphora/amphora.h>

#include "driver/commands.h"
#include "driver/manual.h"
#include "report/accounts.h"

#include <string.h>

struct amphora_session {
    Arena *arena;
    Diag *diag;
    amphora_watch *watch; /* or NULL */
    void *watcher;
    bool cancelled;
};

struct amphora_plan {
    Arena *arena;
    Options options;
    Pipeline pipeline;
    const char *json, *text, *listing, *svg;
    const SimResult *sim;
};

const char *amphora_version(void) {
    return version_text;
}

int amphora_api_version(void) {
    return AMPHORA_API_VERSION;
}

/* ---- sessions ---- */

amphora_session *amphora_session_new(void) {
    Arena *arena = arena_new("session");
    amphora_session *session = ARENA_NEW(arena, amphora_session);
    session->arena = arena;
    session->diag = diag_new(arena);
    return session;
}

void amphora_session_free(amphora_session *session) {
    if (session)
        arena_free(session->arena);
}

int amphora_message_count(const amphora_session *session) {
    return (int)diag_count(session->diag);
}

amphora_message amphora_message_at(const amphora_session *session, int i) {
    const DiagMessage *m = diag_at(session->diag, (uint32_t)i);
    return (amphora_message){(amphora_kind)m->kind, m->loc.file, m->loc.line,
                             m->loc.col, m->text};
}

void amphora_messages_clear(amphora_session *session) {
    session->diag = diag_new(session->arena);
}

static void pass_on(amphora_session *session, const Diag *from) {
    for (uint32_t i = 0; i < diag_count(from); i++) {
        const DiagMessage *m = diag_at(from, i);
        Loc loc = m->loc;
        if (loc.file)
            loc.file = arena_strdup(session->arena, loc.file);
        if (m->kind == DIAG_ERROR)
            diag_error(session->diag, loc, "%s", m->text);
        else if (m->kind == DIAG_WARNING)
            diag_warning(session->diag, loc, "%s", m->text);
        else
            diag_note(session->diag, loc, "%s", m->text);
    }
}

void amphora_session_watch(amphora_session *session, amphora_watch *watch,
                           void *context) {
    session->watch = watch;
    session->watcher = context;
}

/* Once it has said so, the program is asked no more. */
static int tell(void *context, double share, uint64_t cycles) {
    amphora_session *session = context;
    if (!session->cancelled)
        session->cancelled = session->watch(session->watcher, share, cycles);
    return session->cancelled;
}

/* ---- options ---- */

static const char *copy(Arena *arena, const char *text, const char *absent) {
    return text ? arena_strdup(arena, text) : absent;
}

static bool read_settings(Arena *arena, Diag *diag, const char *const *settings,
                          Options *out) {
    uint32_t n = 0;
    while (settings && settings[n])
        n++;
    HwSetting *setting = ARENA_ARRAY(arena, HwSetting, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const char *equals = strchr(settings[i], '=');
        if (!equals) {
            diag_error(diag, (Loc){0}, "a setting is PATH=VALUE, not %s",
                       settings[i]);
            return false;
        }
        setting[i].path =
            arena_strndup(arena, settings[i], (size_t)(equals - settings[i]));
        setting[i].value = arena_strdup(arena, equals + 1);
    }
    out->settings = setting;
    out->n_settings = n;
    return true;
}

static bool read_options(Arena *arena, Diag *diag, const char *network,
                         const char *machine, const amphora_options *given,
                         Options *out) {
    *out = options_default();
    out->file = arena_strdup(arena, network);
    out->target = arena_strdup(arena, machine);
    if (!given)
        return true;
    out->weights = copy(arena, given->weights, NULL);
    out->objective = copy(arena, given->objective, out->objective);
    out->order = copy(arena, given->order, NULL);
    out->planner = copy(arena, given->planner, out->planner);
    out->replication = copy(arena, given->replication, out->replication);
    out->mode = copy(arena, given->mode, out->mode);
    out->seed = given->seed ? given->seed : out->seed;
    out->batch = given->batch;
    out->images = given->images;
    if (given->effort > 0)
        out->effort = (uint64_t)given->effort - 1;
    return read_settings(arena, diag, given->settings, out);
}

/* ---- plans ---- */

amphora_plan *amphora_compile(amphora_session *session, const char *network,
                              const char *machine,
                              const amphora_options *options) {
    Arena *arena = arena_new("plan");
    Diag *diag = diag_new(arena);
    amphora_plan *plan = ARENA_NEW(arena, amphora_plan);
    plan->arena = arena;
    session->cancelled = false;
    bool good =
        read_options(arena, diag, network, machine, options, &plan->options);
    if (session->watch) {
        plan->options.watch = tell;
        plan->options.watcher = session;
    }
    good = good && !(session->watch && tell(session, 0, 0)) &&
           pipeline_run(arena, diag, &plan->options, STAGE_CODEGEN,
                        &plan->pipeline) == EXIT_FINE;
    if (good && session->watch)
        tell(session, 1, plan->pipeline.plan->cost.cycles);
    plan->options.watch = NULL;
    if (session->cancelled) {
        diag = diag_new(arena);
        diag_error(diag, (Loc){0}, "cancelled");
        good = false;
    }
    pass_on(session, diag);
    if (good)
        return plan;
    arena_free(arena);
    return NULL;
}

void amphora_plan_free(amphora_plan *plan) {
    if (plan)
        arena_free(plan->arena);
}

int amphora_volume_count(const amphora_plan *plan) {
    return (int)plan->pipeline.plan->n_placements;
}

amphora_volume amphora_volume_at(const amphora_plan *plan, int i) {
    const Plan *of = plan->pipeline.plan;
    const Placement *p = &of->placement[i];
    Volume v = plan_volume(of->schedule->graph, p->tensor);
    return (amphora_volume){
        .tensor = graph_tensor(of->schedule->graph, p->tensor)->name,
        .memory = of->schedule->spec->memory[p->memory].name,
        .offset = p->offset,
        .bytes = p->bytes,
        .channels = p->n_c,
        .rows = p->rows,
        .columns = p->cols ? p->cols : v.w,
        .first_step = p->first,
        .end_step = p->end};
}

static const char *json_text(Arena *arena, cJSON *json) {
    const char *text = arena_strdup(arena, json_print(arena, json, false));
    json_free(json);
    return text;
}

const char *amphora_plan_json(amphora_plan *plan) {
    if (!plan->json)
        plan->json =
            json_text(plan->arena, compile_json(plan->arena, &plan->pipeline));
    return plan->json;
}

const char *amphora_listing_text(amphora_plan *plan) {
    if (!plan->text)
        plan->text = listing_print(plan->arena, plan->pipeline.listing);
    return plan->text;
}

const char *amphora_listing_json(amphora_plan *plan) {
    const Listing *listing = plan->pipeline.listing;
    if (!plan->listing)
        plan->listing = listing_json(
            plan->arena, listing_timed(plan->arena, &plan->pipeline, false),
            arena_printf(plan->arena, "%s.weights", listing->network));
    return plan->listing;
}

int amphora_listing_write(amphora_session *session, amphora_plan *plan,
                          const char *folder) {
    Diag *diag = diag_new(plan->arena);
    const char *path[3];
    bool good = listing_write(
        plan->arena, diag, listing_timed(plan->arena, &plan->pipeline, false),
        folder, path);
    pass_on(session, diag);
    return good ? 0 : -1;
}

const char *amphora_plan_svg(amphora_plan *plan) {
    if (!plan->svg)
        plan->svg = plan_svg(plan->arena, plan->pipeline.plan);
    return plan->svg;
}

/* ---- running ---- */

static amphora_tensor tensor_of(const Region *region, const float *value) {
    amphora_tensor tensor = {
        .name = region->name, .rank = (int)region->shape.rank, .value = value};
    memcpy(tensor.dim, region->shape.dim, sizeof tensor.dim);
    return tensor;
}

int amphora_input_count(const amphora_plan *plan) {
    return (int)plan->pipeline.listing->image.n_inputs;
}

amphora_tensor amphora_input_at(const amphora_plan *plan, int i) {
    return tensor_of(&plan->pipeline.listing->image.input[i], NULL);
}

int amphora_output_count(const amphora_plan *plan) {
    return plan->sim ? (int)plan->sim->n_outputs : 0;
}

amphora_tensor amphora_output_at(const amphora_plan *plan, int i) {
    return tensor_of(&plan->sim->output[i], plan->sim->value[i]);
}

const char *amphora_simulate(amphora_session *session, amphora_plan *plan,
                             const float *const *inputs, int n_inputs) {
    Diag *diag = diag_new(plan->arena);
    const Listing *listing = plan->pipeline.listing;
    SimOptions options = {.seed = plan->options.seed};
    plan->sim = sim_run(plan->arena, diag, listing,
                        inputs ? (uint32_t)n_inputs : 0, inputs, &options);
    pass_on(session, diag);
    if (!plan->sim)
        return NULL;
    Accounts accounts = accounts_of(plan->arena, listing,
                                    sim_products(plan->sim), plan->sim->cycles);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", plan->sim->n_violations == 0);
    add_sim_json(plan->arena, json, listing, plan->sim);
    accounts_add_json(json, &accounts);
    return json_text(plan->arena, json);
}

int amphora_verify(amphora_session *session, amphora_plan *plan) {
    Diag *diag = diag_new(plan->arena);
    bool right = false;
    bool ran = verify_pipeline(plan->arena, diag, &plan->options,
                               &plan->pipeline, &right);
    pass_on(session, diag);
    return !ran ? -1 : right;
}

/* ---- commands ---- */

/* The program's arguments with --json behind the command's name. */
static int with_json(Arena *arena, const char *const *arguments, char ***out) {
    int n = 0;
    while (arguments[n])
        n++;
    char **argv = ARENA_ARRAY(arena, char *, (size_t)n + 2);
    for (int i = 0; i < n; i++)
        argv[i + (i > 0)] = arena_strdup(arena, arguments[i]);
    if (n)
        argv[1] = arena_strdup(arena, "--json");
    *out = argv;
    return n ? n + 1 : 0;
}

const char *amphora_run(amphora_session *session, const char *const *arguments,
                        int *exit_code) {
    Arena *arena = arena_new("command");
    Diag *diag = diag_new(arena);
    const char *said = NULL;
    Options base = options_default();
    char **argv;
    int argc = with_json(arena, arguments, &argv);
    base.said = &said;
    session->cancelled = false;
    if (session->watch) {
        base.watch = tell;
        base.watcher = session;
    }
    ExitCode code = command_run(arena, diag, argc, argv, &base);
    pass_on(session, diag);
    said = copy(session->arena, said, NULL);
    if (exit_code)
        *exit_code = (int)code;
    arena_free(arena);
    return said;
}
