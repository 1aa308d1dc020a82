/* row_bands.c - transfers by bands of rows, so that the layer behind a load
 * begins with the first, and a store with the first of the layer before it; see
 * weights.h.
 *
 * Input: a plan whose actions run one behind the other, on a machine whose
 * engines name rows (tiling.rings). Output: the same; a volume that is loaded
 * for the layer behind it comes by bands, one that is stored behind the layer
 * that makes it goes by bands, and so do rows of a ring that are stored behind
 * the tile that makes them; the layer, or the tile, runs by as many. Before
 * that the store of a concat becomes one of each member, which does not wait
 * for the others.
 * Invariants: no byte more moves, nothing is computed twice.
 */
#include "alloc/overlap/dependences.h"
#include "alloc/overlap/split.h"
#include "alloc/tile/tile.h"
#include "alloc/weights/weights.h"
#include "plan/cost.h"

typedef struct Bands {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    uint32_t n;
    BandStores stores;
    uint32_t *run_of; /* by action: the layer by whose bands it runs, or moves;
                       * NONE */
    bool *cut;        /* by node: runs of it go by bands */
    VEC(Action) action;
    Placements placement;
} Bands;

static bool touches(const Action *a, uint32_t placement) {
    bool any = a->out == placement;
    for (uint32_t i = 0; i < a->n_in; i++)
        any |= a->in[i] == placement;
    return any;
}

static bool is_whole(const Plan *plan, const Placement *p) {
    Volume v = plan_volume(plan->schedule->graph, p->tensor);
    return !p->ring && !p->lines.band && p->row == 0 && p->rows == v.h &&
           p->whole.h == v.h && p->whole.w == v.w;
}

/* Rows of it can be named by their numbers in the tensor. */
static bool has_rows(const Plan *plan, const Placement *p) {
    return is_whole(plan, p) || (p->ring && !p->lines.band);
}

static bool is_whole_store(const Plan *plan, const Action *a) {
    return a->kind == ACTION_STORE &&
           is_whole(plan, &plan->placement[a->in[0]]) &&
           a->rows == plan->placement[a->in[0]].rows;
}

/* ---- concats by members ---- */

/* By channel of what is stored, the last action in front that writes it, and
 * NONE behind the last. */
static const uint32_t *makers_of(Arena *arena, const Plan *plan, uint32_t i) {
    const Placement *from = &plan->placement[plan->action[i].in[0]];
    uint32_t n = from->n_c, left = n;
    uint32_t *maker = ARENA_ARRAY(arena, uint32_t, n + 1);
    for (uint32_t c = 0; c <= n; c++)
        maker[c] = NONE;
    for (uint32_t k = i; k-- > 0 && left > 0;) {
        const Action *a = &plan->action[k];
        const Placement *to = &plan->placement[a->out];
        if (a->kind == ACTION_CONCAT || !placements_share(to, from))
            continue;
        for (uint32_t c = 0; c < n; c++)
            if (maker[c] == NONE && from->part_c + c >= to->part_c &&
                from->part_c + c < to->part_c + to->n_c) {
                maker[c] = k;
                left--;
            }
    }
    return maker;
}

static void add_by_members(Pieces *p, uint32_t i) {
    const Action *store = &p->plan->action[i];
    const uint32_t *maker = makers_of(p->arena, p->plan, i);
    Seams seams = piece_seams(p, store);
    uint32_t n = p->plan->placement[store->in[0]].n_c, at = 0;
    for (uint32_t c = 1; c <= n; c++)
        if (c == n || (maker[c] != maker[c - 1] && seam_at(&seams, c))) {
            Action member = piece_channels(p, store, at, c - at);
            vec_push(p->arena, &p->source, member);
            at = c;
        }
}

/* `tiles`: rows of rings, too. */
static const Plan *by_members(Arena *arena, const Plan *plan, bool tiles) {
    Plan *out = ARENA_COPY(arena, Plan, plan, 1);
    Pieces p = {
        .arena = arena, .plan = plan, .placement = placements_of(arena, plan)};
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        bool rows = tiles && a->kind == ACTION_STORE &&
                    has_rows(plan, &plan->placement[a->in[0]]);
        if (rows || is_whole_store(plan, a))
            add_by_members(&p, i);
        else
            vec_push(arena, &p.source, *a);
    }
    out->n_actions = p.source.n;
    out->action = p.source.at;
    out->n_placements = p.placement.n;
    out->placement = p.placement.at;
    return out;
}

/* ---- what goes by bands ---- */

bool bands_may(const Plan *plan, const Action *run) {
    const HwSpec *spec = plan->schedule->spec;
    const Graph *g = plan->schedule->graph;
    bool may = run->kind == ACTION_RUN && run->style < 0 && !run->again &&
               spec->tiling.rows.rolls &&
               spec->tiling.rows.ops >> run->legal.op & 1 &&
               !only_rolls(graph_node(g, run->node)) &&
               node_quantum(g, run->node, 0) == 1 &&
               engine_takes_parts(spec, g, &run->legal, run->node, 0) &&
               has_rows(plan, &plan->placement[run->out]);
    for (uint32_t i = 0; i < run->n_in && may; i++)
        may = has_rows(plan, &plan->placement[run->in[i]]);
    return may;
}

static bool may_band(const Bands *b, const Action *run) {
    return bands_may(b->plan, run) && run->rows >= b->n &&
           b->plan->placement[run->out].n_c ==
               plan_volume(b->g, graph_node(b->g, run->node)->out[0]).c;
}

static Steps band_of(const Bands *b, const Action *run, uint32_t k) {
    return (Steps){run->row + (uint32_t)((uint64_t)run->rows * k / b->n),
                   run->row + (uint32_t)((uint64_t)run->rows * (k + 1) / b->n)};
}

static Rows needed(const Bands *b, const Action *run, uint32_t k) {
    Steps rows = band_of(b, run, k);
    return rows_needed(b->g, run->node, rows.first, rows.end - rows.first);
}

/* Rows that read nothing but padding cannot be computed alone; a tile of a
 * cascade has no rows but those that it reads. */
bool band_reads_alone(Rows need, const Action *run) {
    return need.in_rows > 0 && need.in_row >= run->in_row &&
           need.in_row + need.in_rows <= run->in_row + run->in_rows;
}

static bool has_bands(const Bands *b, const Action *run) {
    bool all = true;
    for (uint32_t k = 0; k < b->n; k++)
        all &= band_reads_alone(needed(b, run, k), run);
    return all;
}

static bool runs_by_bands(const Bands *b, uint32_t run) {
    const Action *a = &b->plan->action[run];
    return b->run_of[run] == run || (may_band(b, a) && has_bands(b, a));
}

/* The layer that reads first what the load brings; NONE. */
static uint32_t reader_of(const Bands *b, uint32_t load) {
    uint32_t out = b->plan->action[load].out, k = load + 1;
    while (k < b->plan->n_actions && !touches(&b->plan->action[k], out))
        k++;
    bool whole = k < b->plan->n_actions && b->plan->action[k].n_tiles < 2;
    return whole && runs_by_bands(b, k) ? k : NONE;
}

/* Channels of one volume, some of both. */
static bool have_common(const Placement *a, const Placement *b) {
    return placements_share(a, b) && a->part_c < b->part_c + b->n_c &&
           b->part_c < a->part_c + a->n_c;
}

/* The run that makes the rows that the store takes, these and no others;
 * NONE. */
static uint32_t maker_of(const Bands *b, uint32_t store) {
    const Placement *at = b->plan->placement;
    const Action *s = &b->plan->action[store];
    const Placement *from = &at[s->in[0]];
    for (uint32_t k = store; k-- > 0;) {
        const Action *a = &b->plan->action[k];
        const Placement *to = &at[a->out];
        if (a->kind != ACTION_RUN ||
            (!same_tensor(to->tensor, from->tensor) && !have_common(to, from)))
            continue;
        bool all = a->row == s->row && a->rows == s->rows &&
                   placements_share(to, from) && to->part_c <= from->part_c &&
                   to->part_c + to->n_c >= from->part_c + from->n_c;
        return all && runs_by_bands(b, k) ? k : NONE;
    }
    return NONE;
}

static bool stores_by_bands(const Bands *b, const Action *store) {
    const Placement *from = &b->plan->placement[store->in[0]];
    if (b->stores == STORES_OF_TILES)
        return has_rows(b->plan, from);
    return b->stores == STORES_OF_LAYERS && is_whole_store(b->plan, store);
}

static void find_runs(Bands *b) {
    const Plan *plan = b->plan;
    b->run_of = ARENA_ARRAY(b->arena, uint32_t, plan->n_actions + 1);
    b->cut = ARENA_ARRAY(b->arena, bool, b->g->node.n + 1);
    for (uint32_t i = 0; i < plan->n_actions; i++)
        b->run_of[i] = NONE;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        uint32_t run = NONE;
        if (a->kind == ACTION_LOAD &&
            is_whole(plan, &plan->placement[a->out]) &&
            a->rows == plan_volume(b->g, plan->placement[a->out].tensor).h)
            run = reader_of(b, i);
        if (a->kind == ACTION_STORE && stores_by_bands(b, a))
            run = maker_of(b, i);
        if (run == NONE)
            continue;
        b->run_of[i] = run;
        b->run_of[run] = run;
        b->cut[plan->action[run].node.i] = true;
    }
}

static uint32_t view(Bands *b, uint32_t of, uint32_t row, uint32_t rows) {
    return placements_add_rows(b->arena, &b->placement, of, row, rows);
}

Action band_of_run(Arena *arena, Placements *all, const Action *run,
                   uint32_t row, uint32_t rows, Rows need) {
    Action a = *run;
    uint32_t *in = ARENA_COPY(arena, uint32_t, run->in, run->n_in);
    for (uint32_t i = 0; i < run->n_in; i++)
        in[i] =
            placements_add_rows(arena, all, in[i], need.in_row, need.in_rows);
    a.in = in;
    a.row = row;
    a.rows = rows;
    a.out = placements_add_rows(arena, all, run->out, row, rows);
    action_reads(&a, need);
    return a;
}

static void add_loads(Bands *b, const Action *load, const Action *run) {
    uint32_t at = 0, end = b->plan->placement[load->out].rows;
    for (uint32_t k = 0; k < b->n; k++) {
        Rows need = needed(b, run, k);
        uint32_t until = k + 1 == b->n ? end : need.in_row + need.in_rows;
        if (until <= at)
            continue;
        Action a = *load;
        a.row = at;
        a.rows = until - at;
        a.out = view(b, load->out, a.row, a.rows);
        vec_push(b->arena, &b->action, a);
        at = until;
    }
}

static void add_runs(Bands *b, const Action *run) {
    for (uint32_t k = 0; k < b->n; k++) {
        Steps rows = band_of(b, run, k);
        Action a = band_of_run(b->arena, &b->placement, run, rows.first,
                               rows.end - rows.first, needed(b, run, k));
        a.tile = run->tile * b->n + k;
        a.n_tiles = (run->n_tiles ? run->n_tiles : 1) * b->n;
        vec_push(b->arena, &b->action, a);
    }
}

static void add_stores(Bands *b, const Action *store, const Action *run) {
    for (uint32_t k = 0; k < b->n; k++) {
        Steps rows = band_of(b, run, k);
        Action a = *store;
        a.row = rows.first;
        a.rows = rows.end - rows.first;
        uint32_t in = view(b, store->in[0], a.row, a.rows);
        a.in = ARENA_COPY(b->arena, uint32_t, &in, 1);
        vec_push(b->arena, &b->action, a);
    }
}

/* Tiles of a node are numbered in their order. */
static void add_as_is(Bands *b, Action a) {
    if (a.kind == ACTION_RUN && b->cut[a.node.i]) {
        a.tile *= b->n;
        a.n_tiles = (a.n_tiles ? a.n_tiles : 1) * b->n;
    }
    vec_push(b->arena, &b->action, a);
}

static void add_bands(Bands *b, uint32_t i) {
    const Action *a = &b->plan->action[i];
    if (b->run_of[i] == NONE) {
        add_as_is(b, *a);
        return;
    }
    const Action *run = &b->plan->action[b->run_of[i]];
    if (a->kind == ACTION_LOAD)
        add_loads(b, a, run);
    else if (a->kind == ACTION_STORE)
        add_stores(b, a, run);
    else
        add_runs(b, a);
}

static void cut_all(Bands *b, Plan *plan) {
    if (b->stores != STORES_WHOLE)
        b->plan = by_members(b->arena, b->plan, b->stores == STORES_OF_TILES);
    find_runs(b);
    b->placement = placements_of(b->arena, b->plan);
    for (uint32_t i = 0; i < b->plan->n_actions; i++)
        add_bands(b, i);
    plan->n_actions = b->action.n;
    plan->action = b->action.at;
    plan->n_placements = b->placement.n;
    plan->placement = b->placement.at;
}

Banded bands_make(Arena *arena, const Plan *plan, uint32_t n,
                  BandStores stores) {
    Bands b = {.arena = arena,
               .plan = plan,
               .g = plan->schedule->graph,
               .n = n,
               .stores = stores};
    Banded banded = {.n = n, .stores = stores, .plan = *plan};
    if (n > 1 && plan->schedule->spec->tiling.rows.rolls)
        cut_all(&b, &banded.plan);
    banded.room = rooms_of(arena, &banded.plan);
    banded.moved = plan_traffic(plan).moved;
    return banded;
}
