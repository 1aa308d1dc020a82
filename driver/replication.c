/* replication.c - how each volume is stored; see replication.h.
 *
 * Input: a schedule, and off, safe, best or a file. Output: a plan.
 *   safe  copies where nothing but convolutions reads a volume, by the rule of
 *         facts/xdnn.md 2.4;
 *   best  from there, volume by volume, whatever way costs the fewest cycles
 *         of the whole network as simulated, then the least active memory;
 *         bounded by MAX_TRIALS simulations; the first volumes come first;
 *   file  lines of `name full sections units width` between tabs, for the
 *         outputs of layers; others as with safe (facts/xdnn.md 3, -G).
 */
#include "driver/replication.h"

#include "base/file.h"
#include "base/vec.h"
#include "sim/sim.h"

#include <string.h>

enum { MAX_TRIALS = 64, MAX_WAYS = 16 };

bool replication_on(const Options *options) {
    return strcmp(options->replication, "off") != 0;
}

/* ---- ways ---- */

static bool same_repl(const Repl *a, const Repl *b) {
    return a->full == b->full && a->sections == b->sections &&
           a->units == b->units && a->width == b->width;
}

/* Without copies, then with each stored way; without repetition. */
static uint32_t ways_of(const HwSpec *spec, uint32_t channels,
                        Repl way[MAX_WAYS]) {
    const HwReplication *r = &spec->replication;
    uint32_t n = 0;
    if (!r->section)
        return 0;
    way[n++] = hwspec_repl_none(spec, channels);
    uint32_t rest = channels % r->section;
    for (uint32_t i = 0; rest && i < r->n_stored && n < MAX_WAYS; i++) {
        HwCopies copies = r->stored[i];
        way[n++] = (Repl){channels / r->section,
                          (rest + copies.width - 1) / copies.width,
                          copies.units, copies.width};
    }
    return n;
}

static bool in_concat(const Graph *g, const Uses *uses, TensorId t) {
    for (uint32_t i = uses->start[t.i]; i < uses->start[t.i + 1]; i++)
        if (graph_node(g, uses->node[i])->op == OP_CONCAT)
            return true;
    return false;
}

/* Nothing but convolutions and pools can read copies. */
static bool readers_allow(const Graph *g, const Uses *uses, TensorId t) {
    for (uint32_t i = uses->start[t.i]; i < uses->start[t.i + 1]; i++) {
        OpKind op = graph_node(g, uses->node[i])->op;
        if (op != OP_CONV && op != OP_CONV_POOL && op != OP_POOL)
            return false;
    }
    return uses->start[t.i] < uses->start[t.i + 1];
}

/* Copies save nothing where all kernels are 1x1. */
static bool has_taps(const Graph *g, const Uses *uses, TensorId t) {
    for (uint32_t i = uses->start[t.i]; i < uses->start[t.i + 1]; i++) {
        const Node *node = graph_node(g, uses->node[i]);
        const uint32_t *kernel = node->attr.conv.kernel;
        if (node->op != OP_POOL && kernel[0] * kernel[1] > 1)
            return true;
    }
    return false;
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
                      const Uses *uses, const Line *line, Repl *chosen) {
    TensorId t = output_of(p->graph, line->name);
    if (t.i == NONE) {
        diag_error(diag, loc, "no layer is called %s", line->name);
        return false;
    }
    if (in_concat(p->graph, uses, t) || !readers_allow(p->graph, uses, t)) {
        diag_error(diag, loc,
                   "the output of %s cannot be replicated: something else "
                   "than convolutions and pools reads it",
                   line->name);
        return false;
    }
    Repl way[MAX_WAYS];
    uint32_t channels = plan_volume(p->graph, t).c;
    uint32_t n = ways_of(p->spec, channels, way);
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
    Uses uses = graph_uses(arena, p->graph);
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
            ok &= take_line(arena, diag, loc, p, &uses, &line, chosen);
        }
        at += len + 1;
    }
    return ok;
}

/* ---- search ---- */

typedef struct Trial {
    bool fits;
    uint64_t cycles, am;
} Trial;

static bool better(const Trial *a, const Trial *b) {
    if (a->fits != b->fits)
        return a->fits;
    return a->cycles != b->cycles ? a->cycles < b->cycles : a->am < b->am;
}

/* now: how each tensor lies by that plan; or NULL. */
static Trial try_plan(Arena *scratch, const Pipeline *p,
                      const PlanOptions *options, Repl *now) {
    Diag *diag = diag_new(scratch);
    bool does_not_fit;
    const Plan *plan =
        plan_make(scratch, diag, p->schedule, options, &does_not_fit);
    const Listing *listing =
        plan ? codegen_run(scratch, diag, plan, NULL) : NULL;
    SimOptions memory_only = {.seed = 1, .memory_only = true};
    const SimResult *sim =
        listing ? sim_run(scratch, diag, listing, 0, NULL, &memory_only) : NULL;
    Trial trial = {0};
    for (uint32_t t = 0; plan && now && t < p->graph->tensor.n; t++)
        now[t] = plan->repl[t];
    if (sim && !sim->n_violations)
        trial = (Trial){true, sim->cycles, sim->am_peak};
    arena_reset(scratch);
    return trial;
}

/* Volume by volume, in the order of the graph, while trials are left. */
static void search(Arena *arena, const Pipeline *p, PlanOptions *options,
                   Repl *chosen) {
    const Graph *g = p->graph;
    Uses uses = graph_uses(arena, g);
    Arena *scratch = arena_new("trial");
    Repl *now = ARENA_ARRAY(arena, Repl, g->tensor.n);
    Trial best = try_plan(scratch, p, options, now);
    uint32_t trials = 1;
    for (TensorId t = {0}; t.i < g->tensor.n; t.i++) {
        Repl way[MAX_WAYS];
        uint32_t n = 0;
        if (!in_concat(g, &uses, t) && readers_allow(g, &uses, t) &&
            has_taps(g, &uses, t))
            n = ways_of(p->spec, plan_volume(g, t).c, way);
        for (uint32_t i = 0; n > 1 && i < n && trials < MAX_TRIALS; i++) {
            if (same_repl(&way[i], &now[t.i]))
                continue;
            Repl old = chosen[t.i];
            chosen[t.i] = way[i];
            Trial trial = try_plan(scratch, p, options, NULL);
            trials++;
            if (better(&trial, &best))
                best = trial;
            else
                chosen[t.i] = old;
        }
    }
    arena_free(scratch);
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

ExitCode replication_plan(Arena *arena, Diag *diag, const Options *o,
                          Pipeline *p) {
    PlanOptions options = {.planner = o->planner,
                           .replication = replication_on(o)};
    if (!choose(arena, diag, o, p, &options))
        return EXIT_BAD_INPUT;
    bool does_not_fit = false;
    p->plan = plan_make(arena, diag, p->schedule, &options, &does_not_fit);
    return p->plan ? EXIT_FINE : does_not_fit ? EXIT_NO_FIT : EXIT_BAD_INPUT;
}
