/* explore_goal.c - the best of many machines without trying all; see goal.h.
 *
 * Input: the grid of a sweep, limits, an aim. Output: the machine that meets
 * the limits and has the best aim, what binds it, and what the next better one
 * would miss. Assumed: where values of rising paths are no smaller, and all
 * else is the same, a machine is worse in what plans are chosen for by no more
 * than the planner's noise. So what misses an upper limit of such a figure by
 * more takes all smaller machines with it, and so does what is that much behind
 * the best aim. Machines that only the noise could make best are tried last, up
 * to a tenth of all; how many are left is said. Fixed figures need no
 * compilation, and are exact.
 */
#include "driver/goal.h"

#include "base/file.h"
#include "base/map.h"
#include "driver/heaviest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A search for plans ends where little could be won: so much more may a larger
 * memory take. */
static const double noise = 1.04;

/* Figures are sums and products of what is written in decimals. */
static const double rounding = 1e-9;

/* Machines tried of those that only the noise could make best: a tenth of all,
 * or so many. */
enum { TRIED_OF_FEW = 16, TRIED_SHARE = 10 };

/* NEAR: only the noise could make it the best. */
typedef enum State { OPEN, NEAR, OUT, RUN } State;

typedef struct Machine {
    State state;
    bool fits, right; /* of those that were run: all networks; the limits */
    uint32_t group;   /* all but rising values the same */
    double *rising;   /* by rising path */
    Point fixed;      /* costs and capacity, where they are asked for */
    Point *point;     /* by network, of those that were run */
    double aim;       /* where it is known */
} Machine;

typedef struct Search {
    Arena *arena;
    Diag *diag;
    const Sweep *sweep;
    Goal goal;
    PointSet *set;
    uint32_t n, n_networks, n_rising;
    const uint32_t *rising; /* indices of --vary */
    Machine *machine;
    Machine *best;
    uint32_t compiled; /* points */
    bool failed, spent;
} Search;

/* ---- what is assumed ---- */

static bool ends_in(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

static bool is_rising(const ExploreArgs *own, const char *path) {
    for (uint32_t i = 0; i < own->risings.n; i++)
        if (!strcmp(own->risings.at[i], "none"))
            return false;
    for (uint32_t i = 0; i < own->risings.n; i++)
        if (!strcmp(own->risings.at[i], path))
            return true;
    return !strncmp(path, "memories.", 9) &&
           (ends_in(path, ".size") || ends_in(path, ".bandwidth"));
}

/* 2MiB, 17.28GB/s, 500MHz: what stands before the unit is a power. */
static double number_of(const char *text) {
    static const char prefix[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    const char *at = *end ? strchr(prefix, *end == 'k' ? 'K' : *end) : NULL;
    return at ? value *
                    pow(end[1] == 'i' ? 1024 : 1000, (double)(at - prefix + 1))
              : value;
}

static bool is_below(const Search *s, const Machine *a, const Machine *b) {
    for (uint32_t i = 0; i < s->n_rising; i++)
        if (a->rising[i] > b->rising[i])
            return false;
    return a->group == b->group;
}

/* ---- machines ---- */

static uint32_t index_of(const Search *s, const Machine *m) {
    return (uint32_t)(m - s->machine);
}

static const char *group_name(const Search *s, const Point *p) {
    const char *name = p->target;
    for (uint32_t i = 0; i < p->n_settings; i++)
        if (!is_rising(s->sweep->options->own, p->path[i]))
            name = arena_printf(s->arena, "%s %s", name, p->value[i]);
    return name;
}

static const char *machine_name(const Search *s, const Machine *m) {
    Point p = sweep_point(s->arena, s->sweep, index_of(s, m));
    const char *name = p.target;
    for (uint32_t i = 0; i < p.n_settings; i++)
        name = arena_printf(s->arena, "%s %s=%s", name, p.path[i], p.value[i]);
    return name;
}

static bool asks_fixed(const Goal *goal) {
    bool any = goal->aim.kind == OF_MACHINES;
    for (uint32_t i = 0; i < goal->n_limits; i++)
        any |= goal->limit[i].figure.kind == OF_MACHINES;
    return any;
}

/* Costs and capacity of the machine; false where it is none. */
static bool load_fixed(const Search *s, Machine *m) {
    Options o = *s->sweep->options;
    Point p = sweep_point(s->arena, s->sweep, index_of(s, m));
    Arena *scratch = arena_new("machine");
    HwSetting *settings =
        ARENA_ARRAY(scratch, HwSetting, o.settings.n + p.n_settings + 1);
    memcpy(settings, o.settings.at, o.settings.n * sizeof *settings);
    for (uint32_t i = 0; i < p.n_settings; i++)
        if (!is_compiler_option(p.path[i]))
            settings[o.settings.n++] = (HwSetting){p.path[i], p.value[i]};
    const HwSpec *spec = hwspec_load(scratch, diag_new(scratch), p.target,
                                     o.settings.n, settings);
    if (spec) {
        m->fixed.am_capacity = hwspec_active_bytes(spec);
        point_costs(s->arena, spec, NULL, &m->fixed);
        const char **name =
            ARENA_ARRAY(s->arena, const char *, spec->n_costs + 1);
        for (uint32_t i = 0; i < spec->n_costs; i++)
            name[i] = arena_strdup(s->arena, spec->cost[i].name);
        m->fixed.cost_name = name;
    }
    arena_free(scratch);
    return spec != NULL;
}

static double limit_value(const Search *s, const Limit *l, const Machine *m) {
    return figure_value(&l->figure, s->n_networks,
                        l->figure.kind == OF_MACHINES ? &m->fixed : m->point);
}

static bool meets(const Search *s, const Limit *limit, const Machine *m) {
    double value = limit_value(s, limit, m);
    double slack = fabs(limit->value) * rounding;
    return limit->least ? value >= limit->value - slack
                        : value <= limit->value + slack;
}

static void make_machine(Search *s, Map *groups, Machine *m) {
    Point p = sweep_point(s->arena, s->sweep, index_of(s, m));
    const char *group = group_name(s, &p);
    m->group = map_get(groups, group, index_of(s, m));
    map_put(groups, group, m->group);
    m->rising = ARENA_ARRAY(s->arena, double, s->n_rising + 1);
    for (uint32_t i = 0; i < s->n_rising; i++)
        m->rising[i] = number_of(p.value[s->rising[i]]);
    if (!asks_fixed(&s->goal))
        return;
    if (!load_fixed(s, m)) {
        m->state = OUT;
        return;
    }
    if (s->goal.aim.kind == OF_MACHINES)
        m->aim = figure_value(&s->goal.aim, 1, &m->fixed);
    for (uint32_t i = 0; i < s->goal.n_limits; i++)
        if (s->goal.limit[i].figure.kind == OF_MACHINES &&
            !meets(s, &s->goal.limit[i], m))
            m->state = OUT;
}

static void make_machines(Search *s) {
    uint32_t *rising = ARENA_ARRAY(s->arena, uint32_t, s->sweep->n_varies + 1);
    for (uint32_t i = 0; i < s->sweep->n_varies; i++)
        if (is_rising(s->sweep->options->own, s->sweep->vary[i].path))
            rising[s->n_rising++] = i;
    s->rising = rising;
    s->n = s->sweep->n_points / s->sweep->n_files;
    s->machine = ARENA_ARRAY(s->arena, Machine, s->n + 1);
    Map *groups = map_new(s->arena);
    for (uint32_t i = 0; i < s->n; i++)
        make_machine(s, groups, &s->machine[i]);
}

/* ---- one machine is compiled ---- */

static void arrive(void *context, const char *line, size_t len) {
    Search *s = context;
    s->failed |= !points_add(s->arena, s->diag, (Loc){"worker", 0, 0}, line,
                             len, s->set);
}

/* The set's last points are those of the machine, in any order. */
static void take_points(Search *s, Machine *m, uint32_t from) {
    m->point = ARENA_ARRAY(s->arena, Point, s->n_networks);
    m->fits = true;
    for (uint32_t i = from; i < s->set->point.n; i++) {
        const Point *p = &s->set->point.at[i];
        m->point[p->index / s->n] = *p;
        m->fits &= p->status == POINT_FITS;
    }
}

static bool better(const Search *s, double a, double b) {
    return s->goal.maximise ? a > b : a < b;
}

static void judge(Search *s, Machine *m) {
    m->right = m->fits;
    for (uint32_t i = 0; m->fits && i < s->goal.n_limits; i++)
        m->right &= meets(s, &s->goal.limit[i], m);
    if (m->fits && s->goal.aim.kind != OF_MACHINES)
        m->aim = figure_value(&s->goal.aim, s->n_networks, m->point);
    if (m->right && (!s->best || better(s, m->aim, s->best->aim)))
        s->best = m;
}

static bool compile(Search *s, Machine *m) {
    const ExploreArgs *own = s->sweep->options->own;
    uint64_t most = own->most_points;
    if (most && s->compiled + s->n_networks > most) {
        s->spent = true;
        return false;
    }
    uint32_t *todo = ARENA_ARRAY(s->arena, uint32_t, s->n_networks);
    for (uint32_t i = 0; i < s->n_networks; i++)
        todo[i] = i * s->n + index_of(s, m);
    uint32_t from = s->set->point.n;
    s->failed |=
        !sweep_run(s->arena, s->diag, s->sweep, s->n_networks, todo, arrive, s);
    if (s->failed)
        return false;
    s->compiled += s->n_networks;
    m->state = RUN;
    take_points(s, m, from);
    judge(s, m);
    return true;
}

/* ---- which machine is next, and which need not be ---- */

/* Does what is below the machine miss a limit, too? */
static bool misses_below(const Search *s, const Machine *m) {
    if (!m->fits)
        return true;
    for (uint32_t i = 0; i < s->goal.n_limits; i++) {
        const Limit *l = &s->goal.limit[i];
        if (l->figure.falls && !l->least &&
            limit_value(s, l, m) > l->value * noise)
            return true;
    }
    return false;
}

static bool aim_falls(const Search *s) {
    return s->goal.aim.falls && !s->goal.maximise;
}

/* What a compiled machine says of another. */
static State state_of(const Search *s, const Machine *m, const Machine *other) {
    if (m->right && s->goal.aim.kind == OF_MACHINES &&
        !better(s, other->aim, s->best->aim))
        return OUT;
    if (!is_below(s, other, m))
        return other->state;
    if (misses_below(s, m))
        return OUT;
    if (!aim_falls(s) || !s->best)
        return other->state;
    return m->aim >= s->best->aim * noise ? OUT
           : m->right                     ? NEAR
                                          : other->state;
}

static void leave_out(Search *s) {
    for (uint32_t k = 0; k < s->n; k++) {
        const Machine *m = &s->machine[k];
        for (uint32_t i = 0; m->state == RUN && i < s->n; i++) {
            Machine *other = &s->machine[i];
            if (other->state == OPEN || other->state == NEAR)
                other->state = state_of(s, m, other);
        }
    }
}

/* Machines of the same state that are settled by this one at least, whatever
 * comes out. */
static uint32_t settles(const Search *s, const Machine *m) {
    uint32_t below = 0, worse = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const Machine *other = &s->machine[i];
        if (other->state != m->state)
            continue;
        below += is_below(s, other, m);
        worse +=
            s->goal.aim.kind == OF_MACHINES && !better(s, other->aim, m->aim);
    }
    if (s->goal.aim.kind != OF_MACHINES)
        return below;
    return below < worse ? below : worse;
}

static Machine *next_in(const Search *s, State state) {
    Machine *found = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        Machine *m = &s->machine[i];
        uint32_t n = m->state == state ? settles(s, m) : 0;
        if (n > most) {
            most = n;
            found = m;
        }
    }
    return found;
}

static Machine *next_machine(const Search *s) {
    Machine *m = next_in(s, OPEN);
    uint32_t most = s->n / TRIED_SHARE;
    if (most < TRIED_OF_FEW)
        most = TRIED_OF_FEW;
    /* the next better one is compiled, too */
    bool spent = s->compiled + 2 * s->n_networks > most * s->n_networks;
    return m || spent ? m : next_in(s, NEAR);
}

static uint32_t count_near(const Search *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += s->machine[i].state == NEAR;
    return n;
}

/* How near the limit it is: 1 is at it. */
static double strain(const Search *s, const Limit *l, const Machine *m) {
    double value = limit_value(s, l, m);
    return l->least ? l->value / value : value / l->value;
}

/* By how much it misses fixed limits: 1, not at all. */
static double excess(const Search *s, const Machine *m) {
    double most = 1;
    for (uint32_t i = 0; i < s->goal.n_limits; i++)
        if (s->goal.limit[i].figure.kind == OF_MACHINES)
            most = fmax(most, strain(s, &s->goal.limit[i], m));
    return most > 1 + rounding ? most : 1;
}

/* The one that misses the fixed limits by least: what more of them would buy.
 */
static Machine *next_beyond(const Search *s) {
    Machine *found = NULL;
    for (uint32_t i = 0; s->best && asks_fixed(&s->goal) && i < s->n; i++) {
        Machine *m = &s->machine[i];
        double miss = m->fixed.am_capacity ? excess(s, m) : 1;
        if (miss > 1 && (!found || miss < excess(s, found) ||
                         (miss <= excess(s, found) && is_below(s, found, m))))
            found = m;
    }
    return found;
}

/* The one whose fixed aim is better than the best's by least; of several the
 * largest. */
static Machine *next_better(const Search *s) {
    Machine *found = NULL;
    if (s->goal.aim.kind != OF_MACHINES)
        return next_beyond(s);
    for (uint32_t i = 0; s->best && i < s->n; i++) {
        Machine *m = &s->machine[i];
        bool closer =
            better(s, m->aim, s->best->aim) &&
            (!found || better(s, found->aim, m->aim) ||
             (is_below(s, found, m) && !better(s, m->aim, found->aim)));
        if (closer && m->fixed.am_capacity && excess(s, m) <= 1)
            found = m;
    }
    return found;
}

/* ---- what is said ---- */

static const char *shown(Arena *arena, double value) {
    return value >= 1000 ? with_commas(arena, (uint64_t)(value + 0.5))
                         : arena_printf(arena, "%.6g", value);
}

static const Limit *tightest(const Search *s, const Machine *m) {
    const Limit *most = NULL;
    for (uint32_t i = 0; i < s->goal.n_limits; i++)
        if (!most || strain(s, &s->goal.limit[i], m) > strain(s, most, m))
            most = &s->goal.limit[i];
    return most;
}

static void say_layer(const Search *s, const Machine *m, uint32_t network) {
    Point p = sweep_point(s->arena, s->sweep, network * s->n + index_of(s, m));
    const Listing *listing;
    const SimResult *sim =
        point_run(s->arena, s->sweep->options, NULL, &p, &listing);
    Heavy heavy = sim ? heaviest(s->arena, sim) : (Heavy){0};
    if (heavy.layer)
        say("layer   %s: %s has %.1f %% of the cycles, bound by %s\n",
            file_stem(s->arena, p.network), heavy.layer,
            (double)heavy.cycles / (double)(heavy.all ? heavy.all : 1) * 100,
            sim_cost_name[heavy.bound]);
}

/* Why a machine that was compiled does not meet the goal. */
static void say_missed(const Search *s, const Machine *m) {
    if (!m->fits) {
        for (uint32_t i = 0; i < s->n_networks; i++)
            if (m->point[i].status != POINT_FITS) {
                say(": %s %s: %s\n", file_stem(s->arena, m->point[i].network),
                    point_status_name[m->point[i].status], m->point[i].reason);
                return;
            }
    }
    const char *between = " would miss ";
    for (uint32_t i = 0; i < s->goal.n_limits; i++) {
        const Limit *l = &s->goal.limit[i];
        if (meets(s, l, m))
            continue;
        double value = limit_value(s, l, m);
        say("%s%s, %s of %s", between, l->figure.text, shown(s->arena, value),
            shown(s->arena, l->value));
        between = " and ";
    }
    say("\n");
}

static void say_next(const Search *s, const Machine *m) {
    say("next    %s: %s %s", machine_name(s, m), s->goal.aim.text,
        shown(s->arena, m->aim));
    if (m->state == RUN)
        say_missed(s, m);
    else
        say(", not compiled\n");
}

/* Where none meets the goal: of those that were compiled the one that misses
 * its limits by least. */
static const Machine *nearest(const Search *s) {
    const Machine *found = NULL;
    for (uint32_t i = 0; !s->best && i < s->n; i++) {
        const Machine *m = &s->machine[i];
        if (m->state == RUN &&
            (!found || (m->fits && (!found->fits ||
                                    strain(s, tightest(s, m), m) <
                                        strain(s, tightest(s, found), found)))))
            found = m;
    }
    return found;
}

static double chosen_for(const Search *s, const Point *p) {
    return strcmp(s->goal.objective, "bytes") ? p->ms : (double)p->ddr;
}

/* Pairs of points that contradict what is assumed. */
static uint32_t contradictions(const Search *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->n; k++) {
            const Machine *a = &s->machine[i], *b = &s->machine[k];
            if (a->state != RUN || b->state != RUN || i == k ||
                !is_below(s, a, b))
                continue;
            for (uint32_t p = 0; p < s->n_networks; p++)
                n += a->point[p].status == POINT_FITS &&
                     chosen_for(s, &b->point[p]) >
                         chosen_for(s, &a->point[p]) * noise;
        }
    return n;
}

static void say_assumed(const Search *s) {
    if (!strcmp(s->goal.objective, "balanced"))
        return;
    for (uint32_t i = 0; i < s->n_rising; i++)
        say("assumed more of %s costs at most %.0f %% more %s\n",
            s->sweep->vary[s->rising[i]].path, (noise - 1) * 100,
            s->goal.objective);
    uint32_t against = contradictions(s);
    if (against)
        say("        but not in %u pairs of the points that were compiled: "
            "--rising none assumes nothing\n",
            against);
    uint32_t near = count_near(s);
    if (near)
        say("        so each of %u machines that were not compiled may be up "
            "to "
            "%.0f %% better than the best\n",
            near, (noise - 1) * 100);
}

static void say_all(const Search *s, const Machine *next) {
    say("tried   %u of %u points\n", s->compiled, s->n * s->n_networks);
    say_assumed(s);
    const Machine *near = nearest(s);
    if (!s->best) {
        say("best    no machine meets the goal%s\n",
            s->spent ? ", of those that --most-points allowed" : "");
        if (near) {
            say("nearest %s", machine_name(s, near));
            say_missed(s, near);
        }
        return;
    }
    say("plans   --objective %s\n", s->goal.objective);
    say("best    %s%s\n", machine_name(s, s->best),
        s->spent ? " (--most-points ended the search)" : "");
    say("aim     %s %s\n", s->goal.aim.text, shown(s->arena, s->best->aim));
    for (uint32_t i = 0; i < s->goal.n_limits; i++) {
        const Limit *l = &s->goal.limit[i];
        say("limit   %s %s of %s%s\n", l->figure.text,
            shown(s->arena, limit_value(s, l, s->best)),
            shown(s->arena, l->value),
            l == tightest(s, s->best) ? ": the tightest" : "");
    }
    const Limit *tight = tightest(s, s->best);
    bool named = tight && tight->figure.network >= 0;
    say_layer(s, s->best, named ? (uint32_t)tight->figure.network : 0);
    if (next)
        say_next(s, next);
}

static void add_machine_json(const Search *s, cJSON *json, const char *key,
                             const Machine *m) {
    cJSON *item = cJSON_AddObjectToObject(json, key);
    cJSON_AddStringToObject(item, "machine", machine_name(s, m));
    cJSON_AddNumberToObject(item, "aim", m->aim);
    cJSON *limits = cJSON_AddArrayToObject(item, "limits");
    for (uint32_t i = 0; m->fits && i < s->goal.n_limits; i++) {
        const Limit *l = &s->goal.limit[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "figure", l->figure.text);
        cJSON_AddNumberToObject(one, "value", limit_value(s, l, m));
        cJSON_AddNumberToObject(one, "limit", l->value);
        cJSON_AddItemToArray(limits, one);
    }
}

static void print_search_json(const Search *s, const Machine *next) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "tried", s->compiled);
    cJSON_AddNumberToObject(json, "points", s->n * s->n_networks);
    cJSON_AddBoolToObject(json, "complete", !s->spent);
    cJSON_AddNumberToObject(json, "near", count_near(s));
    cJSON_AddStringToObject(json, "objective", s->goal.objective);
    if (s->best)
        add_machine_json(s, json, "best", s->best);
    const Machine *near = nearest(s);
    if (near)
        add_machine_json(s, json, "nearest", near);
    if (next && next->state == RUN)
        add_machine_json(s, json, "next", next);
    print_json(s->arena, s->sweep->options, json);
}

ExitCode goal_search(Arena *arena, Diag *diag, const Options *o,
                     PointSet *set) {
    Options own = *o;
    Sweep sweep;
    Search s = {.arena = arena, .diag = diag, .sweep = &sweep, .set = set};
    if (!sweep_make(arena, diag, &own, &sweep))
        return EXIT_BAD_INPUT;
    if (!goal_read(arena, diag, &sweep, &s.goal))
        return EXIT_BAD_USAGE;
    own.objective = s.goal.objective;
    s.n_networks = sweep.n_files;
    make_machines(&s);
    for (Machine *m; (m = next_machine(&s)) && compile(&s, m);)
        leave_out(&s);
    Machine *next = NULL;
    while (!s.failed && (next = next_better(&s)) && next->state != RUN)
        if (!compile(&s, next))
            break;
    if (s.failed)
        return EXIT_BAD_INPUT;
    if (o->json)
        print_search_json(&s, next);
    else
        say_all(&s, next);
    return s.best ? EXIT_FINE : EXIT_NO_FIT;
}
