/* library.c - libamphora; see include/amphora/amphora.h.
 *
 * Input: paths, options. Output: plans, listings and what running them gives.
 * Invariants: a plan's arena holds all that it returns; messages are copied
 * into the session, which outlives what they tell of; whatever may allocate
 * runs under a guard.
 */
#include "driver/call.h"
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

/* ---- calls ---- */

/* What a function was asked, and what it found. */
typedef struct Task {
    amphora_session *session;
    amphora_plan *plan;
    const char *network, *machine, *folder;
    const amphora_options *options;
    const float *const *inputs;
    int n; /* of inputs or arguments */
    const char *const *arguments;
    const char *text;
    int result;
    Sink *out, *err;
} Task;

static void keep_reason(void *context) {
    Task *task = context;
    diag_error(task->session->diag, (Loc){0}, "%s", task->text);
}

/* False: the work was given up, and the session has the reason. */
static bool call(CallWork *work, Task *task) {
    char said[CALL_SAID], ignored[CALL_SAID];
    GuardReason reason = call_guarded(work, task, task->out, task->err, said);
    if (reason == GUARD_NONE)
        return true;
    task->text = said;
    if (task->session)
        call_guarded(keep_reason, task, NULL, NULL, ignored);
    if (task->err) {
        say_to(task->err->file, "amphora: %s\n", said);
        if (reason == GUARD_BUG)
            say_to(task->err->file,
                   "This is a bug in amphora, not in your input.\n");
    }
    task->text = NULL;
    task->result = reason == GUARD_BUG ? EXIT_OUR_BUG : EXIT_BAD_INPUT;
    return false;
}

/* ---- sessions ---- */

static void do_session(void *context) {
    Task *task = context;
    Arena *arena = arena_new("session");
    amphora_session *session = ARENA_NEW(arena, amphora_session);
    session->arena = arena;
    session->diag = diag_new(arena);
    arena_keep(arena);
    task->session = session;
}

amphora_session *amphora_session_new(void) {
    Task task = {0};
    char said[CALL_SAID];
    return call_guarded(do_session, &task, NULL, NULL, said) ? NULL
                                                             : task.session;
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

static void do_clear(void *context) {
    amphora_session *session = ((Task *)context)->session;
    session->diag = diag_new(session->arena);
}

void amphora_messages_clear(amphora_session *session) {
    call(do_clear, &(Task){.session = session});
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
    out->settings.at = setting;
    out->settings.n = n;
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
    out->recompute = given->recompute;
    if (given->effort > 0)
        out->effort = (uint64_t)given->effort - 1;
    return read_settings(arena, diag, given->settings, out);
}

/* ---- plans ---- */

static void do_compile(void *context) {
    Task *task = context;
    amphora_session *session = task->session;
    Arena *arena = arena_new("plan");
    Diag *diag = diag_new(arena);
    amphora_plan *plan = ARENA_NEW(arena, amphora_plan);
    plan->arena = arena;
    session->cancelled = false;
    bool good = read_options(arena, diag, task->network, task->machine,
                             task->options, &plan->options);
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
    if (!good) {
        arena_free(arena);
        return;
    }
    arena_keep(arena);
    task->plan = plan;
}

amphora_plan *amphora_compile(amphora_session *session, const char *network,
                              const char *machine,
                              const amphora_options *options) {
    Task task = {.session = session,
                 .network = network,
                 .machine = machine,
                 .options = options};
    return call(do_compile, &task) ? task.plan : NULL;
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

static void do_plan_json(void *context) {
    amphora_plan *plan = ((Task *)context)->plan;
    plan->json =
        json_text(plan->arena, compile_json(plan->arena, &plan->pipeline));
}

static void do_listing_text(void *context) {
    amphora_plan *plan = ((Task *)context)->plan;
    plan->text = listing_print(plan->arena, plan->pipeline.listing);
}

static void do_listing_json(void *context) {
    amphora_plan *plan = ((Task *)context)->plan;
    plan->listing = listing_json(
        plan->arena, listing_timed(plan->arena, &plan->pipeline, false),
        arena_printf(plan->arena, "%s.weights",
                     plan->pipeline.listing->network));
}

static void do_svg(void *context) {
    amphora_plan *plan = ((Task *)context)->plan;
    plan->svg = plan_svg(plan->arena, plan->pipeline.plan);
}

/* Made when it is first asked for. */
static const char *made(amphora_plan *plan, const char *const *text,
                        CallWork *work) {
    if (!*text)
        call(work, &(Task){.plan = plan});
    return *text;
}

const char *amphora_plan_json(amphora_plan *plan) {
    return made(plan, &plan->json, do_plan_json);
}

const char *amphora_listing_text(amphora_plan *plan) {
    return made(plan, &plan->text, do_listing_text);
}

const char *amphora_listing_json(amphora_plan *plan) {
    return made(plan, &plan->listing, do_listing_json);
}

const char *amphora_plan_svg(amphora_plan *plan) {
    return made(plan, &plan->svg, do_svg);
}

static void do_write(void *context) {
    Task *task = context;
    amphora_plan *plan = task->plan;
    Diag *diag = diag_new(plan->arena);
    const char *path[3];
    if (listing_write(plan->arena, diag,
                      listing_timed(plan->arena, &plan->pipeline, false),
                      task->folder, path))
        task->result = 0;
    pass_on(task->session, diag);
}

int amphora_listing_write(amphora_session *session, amphora_plan *plan,
                          const char *folder) {
    Task task = {
        .session = session, .plan = plan, .folder = folder, .result = -1};
    return call(do_write, &task) ? task.result : -1;
}

/* ---- running ---- */

static amphora_tensor tensor_of(const Region *region, const float *value) {
    const Shape *shape = region_shape(region);
    amphora_tensor tensor = {
        .name = region->name, .rank = (int)shape->rank, .value = value};
    memcpy(tensor.dim, shape->dim, sizeof tensor.dim);
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

static void do_simulate(void *context) {
    Task *task = context;
    amphora_plan *plan = task->plan;
    Diag *diag = diag_new(plan->arena);
    const Listing *listing = plan->pipeline.listing;
    SimOptions options = {.seed = plan->options.seed,
                          .compulsory = plan_compulsory(plan->pipeline.plan)};
    plan->sim =
        sim_run(plan->arena, diag, listing,
                task->inputs ? (uint32_t)task->n : 0, task->inputs, &options);
    pass_on(task->session, diag);
    if (!plan->sim)
        return;
    Accounts accounts =
        accounts_of(plan->arena, listing, sim_products(plan->sim),
                    plan->sim->cycles, plan->sim);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", plan->sim->n_violations == 0);
    add_sim_json(plan->arena, json, listing, plan->sim);
    accounts_add_json(json, &accounts);
    task->text = json_text(plan->arena, json);
}

const char *amphora_simulate(amphora_session *session, amphora_plan *plan,
                             const float *const *inputs, int n_inputs) {
    Task task = {
        .session = session, .plan = plan, .inputs = inputs, .n = n_inputs};
    return call(do_simulate, &task) ? task.text : NULL;
}

static void do_verify(void *context) {
    Task *task = context;
    amphora_plan *plan = task->plan;
    Diag *diag = diag_new(plan->arena);
    bool right = false;
    Options options = plan->options;
    options.own = options_own(plan->arena, command_find("verify"));
    if (verify_pipeline(plan->arena, diag, &options, &plan->pipeline, &right))
        task->result = right;
    pass_on(task->session, diag);
}

int amphora_verify(amphora_session *session, amphora_plan *plan) {
    Task task = {.session = session, .plan = plan, .result = -1};
    return call(do_verify, &task) ? task.result : -1;
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

static void do_run(void *context) {
    Task *task = context;
    amphora_session *session = task->session;
    Arena *arena = arena_new("command");
    Diag *diag = diag_new(arena);
    const char *said = NULL;
    Options base = options_default();
    char **argv;
    int argc = with_json(arena, task->arguments, &argv);
    base.said = &said;
    session->cancelled = false;
    if (session->watch) {
        base.watch = tell;
        base.watcher = session;
    }
    task->result = (int)command_run(arena, diag, argc, argv, &base);
    pass_on(session, diag);
    task->text = copy(session->arena, said, NULL);
    arena_free(arena);
}

static void do_command(void *context) {
    Task *task = context;
    Arena *arena = arena_new("amphora");
    Diag *diag = diag_new(arena);
    char **argv = ARENA_ARRAY(arena, char *, (size_t)task->n + 1);
    for (int i = 0; i < task->n; i++)
        argv[i] = arena_strdup(arena, task->arguments[i]);
    task->result = (int)command_program(arena, diag, task->n, argv);
    if (!sink_flush(task->out)) {
        diag_error(diag, (Loc){0}, "cannot write to stdout: %s",
                   strerror(task->out->error));
        task->result = task->result ? task->result : EXIT_BAD_INPUT;
    }
    diag_print(diag, task->err->file);
    pass_on(task->session, diag);
    arena_free(arena);
}

/* With streams to `write`. */
static void call_printing(CallWork *work, Task *task, amphora_write *write,
                          void *context) {
    Sink out, err;
    bool open = sink_open(&out, AMPHORA_OUT, write, context);
    open = sink_open(&err, AMPHORA_ERR, write, context) && open;
    task->out = &out;
    task->err = &err;
    task->result = EXIT_BAD_INPUT;
    if (open && !call(work, task))
        sink_flush(&out);
    sink_close(&out);
    sink_close(&err);
}

const char *amphora_run(amphora_session *session, const char *const *arguments,
                        int *exit_code) {
    Task task = {.session = session, .arguments = arguments};
    call_printing(do_run, &task, NULL, NULL);
    if (exit_code)
        *exit_code = task.result;
    return task.text;
}

int amphora_command(amphora_session *session, int argc, const char *const *argv,
                    amphora_write *write, void *context) {
    Task task = {.session = session, .n = argc, .arguments = argv};
    call_printing(do_command, &task, write, context);
    return task.result;
}
