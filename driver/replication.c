/* replication.c - how each volume is stored; see replication.h.
 *
 * Input: a schedule, and off, safe, best or a file. Output: a plan.
 *   safe  copies where nothing but convolutions reads a volume, by the rule of
 *         facts/xdnn.md 2.4;
 *   best  from there what a model of the network likes best
 *         (alloc/search/replication.h), then, where memory is short, volume by
 *         volume another way, then volumes that come from backing memory with
 *         more copies; each kept where the whole network, simulated, takes
 *         fewer cycles, or as many in less active memory. Bounded by MAX_TRIALS
 *         simulations; never worse than safe;
 *   file  lines of `name full sections units width` between tabs, for the
 *         outputs of layers; others as with safe (facts/xdnn.md 3, -G).
 */
#include "driver/replication.h"

#include "alloc/alloc.h"
#include "alloc/search/replication.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/plain.h"
#include "base/vec.h"
#include "sim/sim.h"

#include <string.h>
#include <unistd.h>

enum { MAX_TRIALS = 32 };

bool replication_on(const Options *options) {
    return strcmp(options->replication, "off") != 0;
}

static bool same_repl(const Repl *a, const Repl *b) {
    return a->full == b->full && a->sections == b->sections &&
           a->units == b->units && a->width == b->width;
}

/* ---- a file ---- */

typedef struct Line {
    char name[256];
    Repl repl;
} Line;

static bool read_line(const char *at, size_t len, Line *out) {
    char text[512];
    if (len >= sizeof text)
        return false;
    memcpy(text, at, len);
    text[len] = '\0';
    char rest;
    return sscanf(text, "%255[^\t] %u %u %u %u %c", out->name, &out->repl.full,
                  &out->repl.sections, &out->repl.units, &out->repl.width,
                  &rest) == 5;
}

static TensorId output_of(const Graph *g, const char *layer) {
    for (NodeId n = {0}; n.i < g->node.n; n.i++)
        if (!strcmp(graph_node(g, n)->name, layer))
            return graph_node(g, n)->out[0];
    return NO_TENSOR;
}

static bool take_line(Arena *arena, Diag *diag, Loc loc, const Pipeline *p,
                      const CopyModel *model, const Line *line, Repl *chosen) {
    TensorId t = output_of(p->graph, line->name);
    if (t.i == NONE) {
        diag_error(diag, loc, "no layer is called %s", line->name);
        return false;
    }
    const char *why = copies_refusal(model, t);
    if (why) {
        diag_error(diag, loc, "the output of %s cannot be replicated: %s",
                   line->name, why);
        return false;
    }
    Repl way[COPIES_MAX_WAYS];
    uint32_t channels = plan_volume(p->graph, t).c;
    uint32_t n = copies_ways(p->spec, channels, way);
    for (uint32_t i = 0; i < n; i++)
        if (same_repl(&way[i], &line->repl)) {
            chosen[t.i] = line->repl;
            return true;
        }
    diag_error(diag, loc, "%s has no way %u %u %u %u for %u channels%s",
               p->spec->machine, line->repl.full, line->repl.sections,
               line->repl.units, line->repl.width, channels,
               n ? "; there are:" : "");
    for (uint32_t i = 0; i < n; i++)
        diag_note(diag, loc, "%s",
                  arena_printf(arena, "%u %u %u %u", way[i].full,
                               way[i].sections, way[i].units, way[i].width));
    return false;
}

static bool read_choices(Arena *arena, Diag *diag, const char *path,
                         const Pipeline *p, Repl *chosen) {
    Bytes bytes;
    if (!file_read(arena, diag, path, &bytes))
        return false;
    const CopyModel *model = copies_model(arena, p->schedule);
    const char *at = (const char *)bytes.at, *end = at + bytes.len;
    bool ok = true;
    for (uint32_t number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        Loc loc = {path, number, 1};
        Line line;
        if (len && *at != '#' && !read_line(at, len, &line)) {
            diag_error(diag, loc,
                       "a line is: layer, full sections, "
                       "replicated ones, copies, width");
            ok = false;
        } else if (len && *at != '#') {
            ok &= take_line(arena, diag, loc, p, model, &line, chosen);
        }
        at += len + 1;
    }
    return ok;
}

/* ---- search ---- */

typedef struct Trial {
    bool fits, spills;
    uint64_t cycles, am;
} Trial;

typedef struct Search {
    Arena *arena, *scratch;
    const Pipeline *p;
    PlanOptions *options;
    CopyModel *model;
    Repl *chosen; /* by tensor */
    bool *fly;    /* by node */
    Trial best;
    uint32_t trials;
} Search;

static bool better(const Trial *a, const Trial *b) {
    if (a->fits != b->fits)
        return a->fits;
    return a->cycles != b->cycles ? a->cycles < b->cycles : a->am < b->am;
}

/* now: how each tensor lies by that plan; or NULL. */
static Trial try_plan(Search *s, Repl *now) {
    Arena *scratch = s->scratch;
    Diag *diag = diag_new(scratch);
    bool does_not_fit;
    const Plan *plan =
        plan_make(scratch, diag, s->p->schedule, s->options, &does_not_fit);
    const Listing *listing =
        plan ? codegen_run(scratch, diag, plan, NULL) : NULL;
    SimOptions memory_only = {.seed = 1, .memory_only = true};
    const SimResult *sim =
        listing ? sim_run(scratch, diag, listing, 0, NULL, &memory_only) : NULL;
    Trial trial = {0};
    for (uint32_t t = 0; plan && now && t < s->p->graph->tensor.n; t++)
        now[t] = plan->repl[t];
    if (sim && !sim->n_violations)
        trial = (Trial){true, !plan->keeps_all, sim->cycles, sim->am_peak};
    arena_reset(scratch);
    s->trials++;
    return trial;
}

/* Whether the choice at hand beats the best; it then is the best. */
static bool is_better(Search *s) {
    Trial trial = try_plan(s, NULL);
    if (!better(&trial, &s->best))
        return false;
    s->best = trial;
    return true;
}

static bool trials_left(const Search *s) {
    return s->trials < MAX_TRIALS;
}

/* What the model likes best of all. */
static void try_model(Search *s, const Repl *now) {
    uint32_t n = s->p->graph->tensor.n;
    Repl *wanted = ARENA_COPY(s->arena, Repl, now, n);
    copies_choose(s->model, wanted);
    bool differs = false;
    for (uint32_t t = 0; t < n; t++)
        if (!same_repl(&wanted[t], &now[t])) {
            s->chosen[t] = wanted[t];
            differs = true;
        }
    if (differs && !is_better(s))
        memset(s->chosen, 0, n * sizeof *s->chosen);
}

static uint64_t bytes_of(const Search *s, TensorId t, const Repl *repl) {
    Volume v = plan_volume(s->p->graph, t);
    v.repl = *repl;
    return layout_bytes(s->p->spec->memory[0].layout, &v);
}

/* Volume by volume in fewer bytes: where memory is short, copies cost more than
 * the model knows. */
static void try_volumes(Search *s, const Repl *now) {
    const CopyVolume *volume;
    uint32_t n = copies_volumes(s->model, &volume);
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t i = 0; i < volume[v].n && trials_left(s); i++) {
            uint32_t t = volume[v].tensor.i;
            Repl old = s->chosen[t];
            const Repl *is = old.full || old.sections ? &old : &now[t];
            if (bytes_of(s, volume[v].tensor, &volume[v].way[i]) >=
                bytes_of(s, volume[v].tensor, is))
                continue;
            s->chosen[t] = volume[v].way[i];
            if (!is_better(s))
                s->chosen[t] = old;
        }
}

static void try_flies(Search *s, const Repl *now) {
    uint32_t n_tensors = s->p->graph->tensor.n;
    Repl *stored = ARENA_COPY(s->arena, Repl, now, n_tensors);
    for (uint32_t t = 0; t < n_tensors; t++)
        if (s->chosen[t].full || s->chosen[t].sections)
            stored[t] = s->chosen[t];
    const CopyFly *fly;
    uint32_t n = copies_flies(s->model, stored, &fly);
    for (uint32_t i = 0; i < n && trials_left(s); i++) {
        s->fly[fly[i].node.i] = true;
        s->fly[fly[i].node.i] = is_better(s);
    }
}

static void search(Arena *arena, const Pipeline *p, PlanOptions *options,
                   Repl *chosen) {
    Search s = {.arena = arena,
                .scratch = arena_new("trial"),
                .p = p,
                .options = options,
                .model = copies_model(arena, p->schedule),
                .chosen = chosen,
                .fly = ARENA_ARRAY(arena, bool, p->graph->node.n + 1)};
    options->fly = s.fly;
    Repl *now = ARENA_ARRAY(arena, Repl, p->graph->tensor.n + 1);
    s.best = try_plan(&s, now);
    if (s.best.fits) {
        try_model(&s, now);
        if (s.best.spills)
            try_volumes(&s, now);
        try_flies(&s, now);
    }
    arena_free(s.scratch);
}

/* ---- the plan ---- */

static bool choose(Arena *arena, Diag *diag, const Options *o, Pipeline *p,
                   PlanOptions *options) {
    const char *how = o->replication;
    if (!strcmp(how, "off") || !strcmp(how, "safe"))
        return true;
    bool best = !strcmp(how, "best");
    if (!best && !file_exists(how)) {
        diag_error(diag, (Loc){0},
                   "--replication takes off, safe, best or a file, not %s",
                   how);
        return false;
    }
    Repl *chosen = ARENA_ARRAY(arena, Repl, p->graph->tensor.n);
    options->chosen = chosen;
    if (best)
        search(arena, p, options, chosen);
    return best || read_choices(arena, diag, how, p, chosen);
}

static bool runs_ahead(const HwSpec *spec, const SimResult *sim) {
    for (uint32_t e = 0; e < spec->n_engines; e++)
        if (spec->engine[e].ahead && sim->engine[e].instructions)
            return true;
    return false;
}

/* When the next image may come depends on who reads what is made ahead. */
static uint64_t listing_cycles(Arena *arena, Diag *diag,
                               const Listing *listing) {
    SimOptions options = {.seed = 1, .memory_only = true, .time_only = true};
    const SimResult *sim = sim_run(arena, diag, listing, 0, NULL, &options);
    options.time_only = false;
    if (sim && runs_ahead(listing->spec, sim))
        sim = sim_run(arena, diag, listing, 0, NULL, &options);
    return sim ? sim->interval : UINT64_MAX;
}

/* The size counts where buffers have their places by it. */
static Print listing_print_of(const Listing *listing) {
    const HwTiling *tiling = &listing->spec->tiling;
    Print print = {0};
    if (tiling->tiles.n || tiling->rows.rolls)
        print_add(&print, listing->spec->memory[0].size);
    listing_fingerprint(listing, &print);
    return print;
}

/* The same, but for listings that were timed before. */
static uint64_t known_cycles(MemoTable *times, Arena *arena, Diag *diag,
                             const Listing *listing) {
    Print print = listing_print_of(listing);
    const uint64_t *known = memo_find(times, print);
    if (known)
        return *known;
    uint64_t cycles = listing_cycles(arena, diag, listing);
    uint64_t *kept = memo_insert(times, print, sizeof cycles);
    if (kept)
        *kept = cycles;
    return cycles;
}

uint64_t simulated_cycles(void *context, const Plan *plan) {
    const Shared *shared = context;
    Arena *arena = arena_new("cycles of a plan");
    Diag *diag = diag_new(arena);
    const Listing *listing = codegen_run(arena, diag, plan, NULL);
    uint64_t cycles = !listing ? UINT64_MAX
                      : shared
                          ? known_cycles(shared->times, arena, diag, listing)
                          : listing_cycles(arena, diag, listing);
    arena_free(arena);
    return cycles;
}

/* ---- progress ---- */

static const char *progress_text(Arena *arena, const PlanEffort *effort,
                                 const PlanCost *best) {
    const char *cost = best ? arena_printf(arena, "best %s cycles, %s bytes",
                                           with_commas(arena, best->cycles),
                                           with_commas(arena, best->bytes))
                            : "none fits yet";
    return arena_printf(arena, "%s configurations, %s of %s steps: %s",
                        with_commas(arena, effort->configurations),
                        with_commas(arena, effort->steps),
                        with_commas(arena, effort->budget), cost);
}

static bool tell_line(void *context, const PlanEffort *effort,
                      const PlanCost *best) {
    Arena *arena = arena_new("progress");
    (void)context;
    say_to(guard_err(), "%s\n", progress_text(arena, effort, best));
    arena_free(arena);
    return true;
}

/* One line that is written over. */
static bool tell_terminal(void *context, const PlanEffort *effort,
                          const PlanCost *best) {
    Arena *arena = arena_new("progress");
    (void)context;
    say_to(guard_err(), "\r%s\x1b[K", progress_text(arena, effort, best));
    arena_free(arena);
    return true;
}

/* What a program that uses the library asked for. */
static bool tell_program(void *context, const PlanEffort *effort,
                         const PlanCost *best) {
    const Options *o = context;
    double share =
        effort->budget ? (double)effort->steps / (double)effort->budget : 0;
    return o->watch(o->watcher, share, best ? best->cycles : 0) == 0;
}

static PlanWatch *watch_of(const Options *o) {
    if (o->watch)
        return tell_program;
    if (isatty(STDERR_FILENO) && (o->progress || o->effort == PLAN_MOST_EFFORT))
        return tell_terminal;
    return o->progress ? tell_line : NULL;
}

/* Of plans that are all stored in one way. */
static PlanShared *shared_of(const Pipeline *p, const PlanOptions *options) {
    Shared *shared = p->shared;
    if (!shared || options->chosen)
        return NULL;
    if (!shared->plans)
        shared->plans = plan_shared_new(shared->arena, p->schedule, options);
    return shared->plans;
}

static bool read_objective(Diag *diag, const Options *o, PlanOptions *out) {
    uint32_t i = 0;
    while (i < PLAN_OBJECTIVES &&
           strcmp(o->objective, plan_objective_name[i]) != 0)
        i++;
    out->objective = (PlanObjective)i;
    if (i == PLAN_OBJECTIVES)
        diag_error(diag, (Loc){0},
                   "--objective %s: there are balanced, time, bytes",
                   o->objective);
    if (o->effort > PLAN_MOST_EFFORT)
        diag_error(diag, (Loc){0}, "--effort: at most %d", PLAN_MOST_EFFORT);
    bool most = o->recompute == 0 || o->recompute >= 1;
    if (!most)
        diag_error(diag, (Loc){0},
                   "--recompute: at least 1, the products of the network");
    return i < PLAN_OBJECTIVES && o->effort <= PLAN_MOST_EFFORT && most;
}

ExitCode replication_plan(Arena *arena, Diag *diag, const Options *o,
                          Pipeline *p) {
    PlanOptions options = {.planner = o->planner,
                           .cycles = simulated_cycles,
                           .context = p->shared,
                           .watch = watch_of(o),
                           .watcher = (void *)(uintptr_t)o,
                           .effort = (uint32_t)o->effort,
                           .recompute = o->recompute,
                           .front = o->front,
                           .replication = replication_on(o),
                           .images = (uint32_t)o->images,
                           .other = p->other,
                           .no_states = options_bundle(o),
                           .no_remedy = true};
    if (!read_objective(diag, o, &options))
        return EXIT_BAD_USAGE;
    if (!choose(arena, diag, o, p, &options))
        return EXIT_BAD_INPUT;
    bool does_not_fit = false;
    options.no_remedy = false;
    options.shared = shared_of(p, &options);
    p->plan = plan_make(arena, diag, p->schedule, &options, &does_not_fit);
    if (options.watch == tell_terminal)
        say_to(guard_err(), "\r\x1b[K");
    return p->plan ? EXIT_FINE : does_not_fit ? EXIT_NO_FIT : EXIT_BAD_INPUT;
}
