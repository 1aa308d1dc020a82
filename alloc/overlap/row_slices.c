/* row_slices.c - layers by slices of rows, so that transfers hide behind them.
 *
 * Input: a plan that list_schedule.c has ordered, on a machine whose engines
 * read and write rows of volumes (tiling.rings). Output: the same in fewer
 * cycles. Method: where a load stands in a step of its own, so does a part of
 * the layer that waits for it: by slices, only the first of its rows must be
 * there before the layer begins, and the others come while slices before are
 * computed. So it is with stores behind a layer. How many slices is a closed
 * form of what they hide and of what each costs: a start of the engine, and the
 * latencies of its transfers. Where a layer has too little to do for that,
 * those next to it are sliced, too, and take turns with it (interleave.c). Then
 * the actions are ordered anew; what takes no fewer cycles is dropped, and
 * fewer slices are tried. Invariants: no byte more moves; placements stay, rows
 * of them are named; nothing is computed twice.
 */
#include "alloc/overlap/overlap.h"
#include "alloc/tile/tile.h"

enum { LOOK = 512, MOST = 16, ROUNDS = 3, NEIGHBOURS = 6 };

typedef struct Sliced {
    uint64_t cycles; /* of the action, whole */
    uint32_t n;      /* slices of a run; 0, 1: it stays whole */
    uint32_t run;    /* of a move: the run by whose slices it moves; NONE */
    uint64_t beside; /* of a run: cycles of the moves that it hides already; */
    uint64_t waits;  /* of those that nothing hides, and how many these are */
    uint32_t moves;
    uint32_t before, behind; /* of a run that waits: how many runs there take
                              * turns with it */
} Sliced;

typedef struct Slices {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    Sliced *of; /* by action */
    VEC(Action) action;
    Placements placement;
    uint32_t step;
    bool interleaves; /* slices of neighbours take turns */
} Slices;

/* ---- what may run by slices ---- */

/* Rows of the volume can be named, wherever they lie. */
static bool names_rows(const Placement *p) {
    return !p->lines.band && (p->ring || p->row % p->whole.h == 0);
}

/* All rows of some channels. */
static bool is_channel_tile(const Slices *s, const Action *a) {
    const Placement *out = &s->plan->placement[a->out];
    return out->n_c != plan_volume(s->g, out->tensor).c;
}

/* Weights that the machine fetches for each run would move again; channel tiles
 * are of all rows. */
static bool may_slice(const Slices *s, const Action *a) {
    const HwSpec *spec = s->plan->schedule->spec;
    if (a->kind != ACTION_RUN || a->style >= 0 || a->again ||
        a->legal.engine < 0 || only_rolls(graph_node(s->g, a->node)) ||
        !(spec->tiling.rows.ops >> a->legal.op & 1) ||
        node_quantum(s->g, a->node, 0) > 1 || is_channel_tile(s, a) ||
        !engine_takes_parts(spec, s->g, &a->legal, a->node, 0) ||
        (spec->tiling.rows.weights_move &&
         graph_node(s->g, a->node)->op == OP_CONV))
        return false;
    bool named = names_rows(&s->plan->placement[a->out]);
    for (uint32_t i = 0; i < a->n_in; i++)
        named &= names_rows(&s->plan->placement[a->in[i]]);
    return named;
}

static bool rows_touch(uint32_t a, uint32_t n, uint32_t b, uint32_t m) {
    return a < b + m && b < a + n;
}

/* Whether the run reads what the load brings, or makes what the store takes. */
static bool is_partner(const Slices *s, const Action *run, const Action *move) {
    const Placement *at = s->plan->placement;
    bool load = move->kind == ACTION_LOAD, reads = false;
    if (run->kind != ACTION_RUN)
        return false;
    if (!load)
        return at[run->out].buffer == at[move->in[0]].buffer &&
               rows_touch(run->row, run->rows, move->row, move->rows);
    for (uint32_t i = 0; i < run->n_in; i++)
        reads |= at[run->in[i]].buffer == at[move->out].buffer;
    return reads &&
           rows_touch(run->in_row, run->in_rows, move->row, move->rows);
}

static uint32_t partner_of(const Slices *s, uint32_t i) {
    const Action *move = &s->plan->action[i];
    for (uint32_t k = 1; k < LOOK; k++) {
        uint32_t at = move->kind == ACTION_LOAD ? i + k : i - k;
        if (at >= s->plan->n_actions)
            return NONE;
        if (is_partner(s, &s->plan->action[at], move))
            return may_slice(s, &s->plan->action[at]) ? at : NONE;
    }
    return NONE;
}

/* ---- how many slices ---- */

/* Rows of the result in slice k of n. */
static Steps slice_of(const Action *run, uint32_t n, uint32_t k) {
    return (Steps){run->row + (uint32_t)((uint64_t)run->rows * k / n),
                   run->row + (uint32_t)((uint64_t)run->rows * (k + 1) / n)};
}

static Rows needed(const Slices *s, const Action *run, Steps rows) {
    return rows_needed(s->g, run->node, rows.first, rows.end - rows.first);
}

/* Rows that read nothing but padding cannot be computed alone. */
static bool has_slices(const Slices *s, const Action *run, uint32_t n) {
    bool all = true;
    for (uint32_t k = 0; k < n; k++)
        all &= needed(s, run, slice_of(run, n, k)).in_rows > 0;
    return all;
}

static uint64_t slices_cycles(const Slices *s, const Action *run, uint32_t n) {
    Action slice = *run;
    slice.rows = (run->rows + n - 1) / n;
    return action_cycles(s->plan, &slice) * n;
}

/* The next sliceable run of another layer from `at` on, or before; NONE behind
 * what has to be whole. */
static uint32_t next_run(const Slices *s, uint32_t at, bool behind) {
    const Action *from = &s->plan->action[at];
    for (uint32_t k = 1; k < LOOK; k++) {
        uint32_t i = behind ? at + k : at - k;
        if (i >= s->plan->n_actions)
            return NONE;
        const Action *a = &s->plan->action[i];
        if (a->kind == ACTION_HOST || a->kind == ACTION_CONCAT)
            return NONE;
        if (a->kind == ACTION_RUN && a->node.i != from->node.i)
            return may_slice(s, a) ? i : NONE;
    }
    return NONE;
}

/* Cycles that n slices of the next runs leave of what other moves want. */
static double left_by(const Slices *s, uint32_t i, uint32_t runs, bool behind,
                      uint32_t n) {
    double sum = 0;
    for (; runs-- > 0;) {
        i = next_run(s, i, behind);
        double cycles = (double)s->of[i].cycles;
        double left = cycles - (double)s->of[i].beside - (double)s->of[i].waits;
        sum += left > 0 ? left : 0;
        sum -= (double)slices_cycles(s, &s->plan->action[i], n) - cycles;
    }
    return sum;
}

/* Cycles that n slices save, at most: of the moves one slice's share waits, and
 * the rest finds the time of the other slices, if other moves have left it, and
 * of the neighbours' by turns. */
static double saved(const Slices *s, uint32_t i, uint32_t n) {
    const Action *run = &s->plan->action[i];
    const HwSpec *spec = s->plan->schedule->spec;
    const Sliced *of = &s->of[i];
    int32_t far = spec->backing < 0 ? spec->output : spec->backing;
    double latency = spec->memory[far].latency * spec->clock;
    double sliced = (double)slices_cycles(s, run, n);
    double costs = sliced - (double)of->cycles;
    double free = sliced - (double)of->beside, waits = (double)of->waits;
    free += left_by(s, i, of->before, false, n);
    free += left_by(s, i, of->behind, true, n);
    double hides = (waits < free ? waits : free) * (1 - 1.0 / n);
    return hides - costs - latency * n * of->moves;
}

static uint32_t slices_for(const Slices *s, uint32_t i, uint32_t most) {
    uint32_t best = 1;
    double least = 0;
    if (!s->of[i].waits)
        return 1;
    for (uint32_t n = 2; n <= most && n <= s->plan->action[i].rows; n *= 2)
        if (saved(s, i, n) > least && has_slices(s, &s->plan->action[i], n)) {
            least = saved(s, i, n);
            best = n;
        }
    return best;
}

/* Actions [i, end) are those of one step. What of its moves no engine hides is
 * told the runs that wait for them. */
static void find_waits(Slices *s, uint32_t i, uint32_t end) {
    uint64_t moves = 0, runs = 0;
    for (uint32_t k = i; k < end; k++) {
        uint64_t cycles = s->of[k].cycles;
        bool move = is_move(&s->plan->action[k]);
        moves += move ? cycles : 0;
        runs = !move && cycles > runs ? cycles : runs;
    }
    for (uint32_t k = i; k < end; k++) {
        bool move = is_move(&s->plan->action[k]);
        uint32_t run = move && moves > runs ? partner_of(s, k) : NONE;
        s->of[k].beside = move ? 0 : moves;
        if (run == NONE)
            continue;
        s->of[k].run = run;
        s->of[run].waits += s->of[k].cycles;
        s->of[run].moves++;
    }
}

/* How many runs before or behind take turns with it, until there is time for
 * what it waits for. */
static uint32_t neighbours(const Slices *s, uint32_t i, bool behind) {
    const Sliced *of = &s->of[i];
    double wanted = (double)(of->waits + of->beside) - (double)of->cycles;
    uint32_t n = 0, at = i;
    while (n < NEIGHBOURS && left_by(s, i, n, behind, 1) < wanted &&
           (at = next_run(s, at, behind)) != NONE)
        n++;
    return n;
}

static void find_neighbours(Slices *s, uint32_t i) {
    if (!s->interleaves || !s->of[i].waits)
        return;
    s->of[i].before = neighbours(s, i, false);
    s->of[i].behind = neighbours(s, i, true);
}

static void slice_at_least(Slices *s, uint32_t i, uint32_t n) {
    if (n < 2 || s->of[i].n >= n || n > s->plan->action[i].rows ||
        !has_slices(s, &s->plan->action[i], n))
        return;
    s->of[i].n = n;
}

static void slice_neighbours(Slices *s, uint32_t i, uint32_t runs,
                             bool behind) {
    for (uint32_t at = i; runs-- > 0;) {
        at = next_run(s, at, behind);
        slice_at_least(s, at, s->of[i].n);
    }
}

static bool choose(Slices *s, uint32_t most) {
    const Plan *plan = s->plan;
    bool any = false;
    s->of = ARENA_ARRAY(s->arena, Sliced, plan->n_actions + 1);
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        s->of[i].cycles = action_cycles(plan, &plan->action[i]);
        s->of[i].run = NONE;
    }
    for (uint32_t i = 0, end; i < plan->n_actions; i = end) {
        for (end = i; end < plan->n_actions &&
                      plan->action[end].step == plan->action[i].step;)
            end++;
        find_waits(s, i, end);
    }
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        find_neighbours(s, i);
        slice_at_least(s, i, slices_for(s, i, most));
        slice_neighbours(s, i, s->of[i].before, false);
        slice_neighbours(s, i, s->of[i].behind, true);
        any |= s->of[i].n > 1;
    }
    return any;
}

/* ---- slices ---- */

static uint32_t view(Slices *s, uint32_t of, uint32_t row, uint32_t rows) {
    return placements_add_rows(s->arena, &s->placement, of, row, rows);
}

static void add(Slices *s, const Action *like, uint32_t row, uint32_t rows) {
    Action a = *like;
    a.row = row;
    a.rows = rows;
    a.step = ++s->step;
    vec_push(s->arena, &s->action, a);
}

static void add_run(Slices *s, const Action *run, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        Steps rows = slice_of(run, n, k);
        Rows need = needed(s, run, rows);
        Action a = *run;
        uint32_t *in = ARENA_COPY(s->arena, uint32_t, run->in, run->n_in);
        for (uint32_t i = 0; i < run->n_in; i++)
            in[i] = view(s, in[i], need.in_row, need.in_rows);
        a.in = in;
        a.out = view(s, run->out, rows.first, rows.end - rows.first);
        action_reads(&a, need);
        add(s, &a, rows.first, rows.end - rows.first);
    }
}

/* Up to which row a move is one with slice k. */
static uint32_t moved_until(const Slices *s, const Action *move,
                            const Action *run, Steps rows) {
    if (move->kind == ACTION_STORE)
        return rows.end;
    Rows need = needed(s, run, rows);
    return need.in_row + need.in_rows;
}

/* Rows [row, row + rows) of a move, named in active memory. */
static void add_rows(Slices *s, const Action *move, uint32_t row,
                     uint32_t rows) {
    Action a = *move;
    uint32_t in = move->in[0];
    if (move->kind == ACTION_LOAD)
        a.out = view(s, move->out, row, rows);
    else
        in = view(s, in, row, rows);
    a.in = ARENA_COPY(s->arena, uint32_t, &in, 1);
    add(s, &a, row, rows);
}

static void add_move(Slices *s, const Action *move, const Action *run,
                     uint32_t n) {
    uint32_t row = move->row, end = move->row + move->rows;
    for (uint32_t k = 0; k < n && row < end; k++) {
        uint32_t until = moved_until(s, move, run, slice_of(run, n, k));
        until = k + 1 == n || until > end ? end : until;
        if (until <= row)
            continue;
        add_rows(s, move, row, until - row);
        row = until;
    }
}

/* A placement whose rows are not named, in a buffer in which others are. */
static bool is_unnamed(const Slices *s, const uint8_t *named,
                       uint32_t placement) {
    const Placement *p = &s->placement.at[placement];
    return named[p->buffer] && !p->ring && p->row && names_rows(p);
}

/* Rows are named by all who touch a buffer, or by none. */
static void name_rows(Slices *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->placement.n; i++)
        n = s->placement.at[i].buffer > n ? s->placement.at[i].buffer : n;
    uint8_t *named = ARENA_ARRAY(s->arena, uint8_t, n + 1);
    for (uint32_t i = s->plan->n_placements; i < s->placement.n; i++)
        named[s->placement.at[i].buffer] = 1;
    for (uint32_t i = 0; i < s->action.n; i++) {
        Action *a = &s->action.at[i];
        uint32_t *in = ARENA_COPY(s->arena, uint32_t, a->in, a->n_in);
        for (uint32_t k = 0; k <= a->n_in; k++) {
            uint32_t *at = k < a->n_in ? &in[k] : &a->out;
            const Placement *p = &s->placement.at[*at];
            if (is_unnamed(s, named, *at))
                *at = view(s, *at, p->row, p->rows);
        }
        a->in = in;
    }
}

/* Those of a layer count from 0 on. */
static void number_tiles(Slices *s) {
    uint32_t *n = ARENA_ARRAY(s->arena, uint32_t, s->g->node.n + 1);
    for (uint32_t i = 0; i < s->action.n; i++)
        if (s->action.at[i].kind == ACTION_RUN)
            s->action.at[i].tile = n[s->action.at[i].node.i]++;
    for (uint32_t i = 0; i < s->action.n; i++)
        if (s->action.at[i].kind == ACTION_RUN)
            s->action.at[i].n_tiles = n[s->action.at[i].node.i];
}

/* The plan's actions, step by step, and those that are sliced. */
static Plan slice_all(Slices *s) {
    const Plan *plan = s->plan;
    Plan made = *plan;
    s->placement = placements_of(s->arena, plan);
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        const Sliced *of = &s->of[i];
        uint32_t by = of->run != NONE ? s->of[of->run].n : of->n;
        bool beside = i > 0 && !is_move(a) && a->step == a[-1].step;
        s->step -= by < 2 && beside && !is_move(&a[-1]);
        if (by < 2)
            add(s, a, a->row, a->rows);
        else if (is_move(a))
            add_move(s, a, &plan->action[of->run], by);
        else
            add_run(s, a, by);
    }
    name_rows(s);
    number_tiles(s);
    made.n_actions = s->action.n;
    made.action = s->action.at;
    made.n_placements = s->placement.n;
    made.placement = s->placement.at;
    return made;
}

/* The most slices of a layer that were chosen. */
static uint32_t most_chosen(const Slices *s) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->plan->n_actions; i++)
        most = s->of[i].n > most ? s->of[i].n : most;
    return most;
}

static bool is_quicker(const Plan *a, const Plan *b) {
    uint32_t held = a->schedule->spec->max_instructions;
    return (!held || a->n_actions <= held) && a->cycles < b->cycles;
}

/* Slices in `arena`, at most `most` of a layer; what was chosen of them. False
 * if they save nothing. */
static bool try_slices(Arena *arena, Plan *plan, uint32_t most,
                       bool interleaves, uint32_t *chosen) {
    Arena *scratch = arena_new("slices");
    Slices s = {.arena = scratch,
                .plan = plan,
                .g = plan->schedule->graph,
                .interleaves = interleaves};
    bool better = choose(&s, most);
    *chosen = most_chosen(&s);
    if (better) {
        Plan made = slice_all(&s);
        if (interleaves)
            interleave(scratch, &made);
        overlap(scratch, &made);
        better = is_quicker(&made, plan);
        if (better)
            *plan = plan_compact(arena, &made, plan->n_placements);
    }
    arena_free(scratch);
    return better;
}

/* So many at most, and as long as that saves nothing, fewer. Returns how many
 * it were; what chose no more than the next number would choose the same
 * again. */
static uint32_t cut_slices(Arena *arena, Plan *plan, uint32_t most) {
    uint32_t woven = UINT32_MAX, plain = UINT32_MAX;
    for (; most > 1; most /= 4)
        if ((woven > most && try_slices(arena, plan, most, true, &woven)) ||
            (plain > most && try_slices(arena, plan, most, false, &plain)))
            break;
    return most;
}

void slices(Arena *arena, Plan *plan) {
    uint32_t most = MOST;
    if (!plan->schedule->spec->tiling.rows.rolls)
        return;
    uint32_t rounds = overlap_tries(plan, ROUNDS);
    for (uint32_t round = 0; round < rounds && most > 1; round++)
        most = cut_slices(arena, plan, most);
}
