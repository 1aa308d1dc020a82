/* bands.c - loads by bands of rows, so that the layer behind one begins with
 * the first; see stage.h.
 *
 * Input: a plan whose actions run one behind the other, on a machine whose
 * engines name rows (tiling.rings). Output: the same; a volume that is loaded
 * for the layer behind it comes by bands, and the layer runs by as many.
 * Invariants: no byte more moves, nothing is computed twice.
 */
#include "alloc/stage.h"

typedef struct Bands {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    uint32_t n;
    uint32_t *load_of; /* by action: of a layer, its load; of that, itself */
    VEC(Action) action;
    VEC(Placement) placement;
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
           p->whole.h == v.h;
}

static bool may_band(const Bands *b, const Action *run) {
    const HwTiling *tiling = &b->plan->schedule->spec->tiling;
    bool may = run->kind == ACTION_RUN && run->style < 0 && !run->again &&
               run->n_tiles < 2 && tiling->ops >> run->legal.op & 1 &&
               node_quantum(b->g, run->node, 0) == 1 && run->rows >= b->n &&
               is_whole(b->plan, &b->plan->placement[run->out]) &&
               b->plan->placement[run->out].n_c ==
                   plan_volume(b->g, graph_node(b->g, run->node)->out[0]).c;
    for (uint32_t i = 0; i < run->n_in && may; i++)
        may = is_whole(b->plan, &b->plan->placement[run->in[i]]);
    return may;
}

static Steps band_of(const Bands *b, const Action *run, uint32_t k) {
    return (Steps){(uint32_t)((uint64_t)run->rows * k / b->n),
                   (uint32_t)((uint64_t)run->rows * (k + 1) / b->n)};
}

static Rows needed(const Bands *b, const Action *run, uint32_t k) {
    Steps rows = band_of(b, run, k);
    return rows_needed(b->g, run->node, rows.first, rows.end - rows.first);
}

/* Rows that read nothing but padding cannot be computed alone. */
static bool has_bands(const Bands *b, const Action *run) {
    bool all = true;
    for (uint32_t k = 0; k < b->n; k++)
        all &= needed(b, run, k).in_rows > 0;
    return all;
}

static void find_loads(Bands *b) {
    const Plan *plan = b->plan;
    b->load_of = ARENA_ARRAY(b->arena, uint32_t, plan->n_actions + 1);
    for (uint32_t i = 0; i < plan->n_actions; i++)
        b->load_of[i] = NONE;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        uint32_t k = i + 1;
        if (a->kind != ACTION_LOAD || b->load_of[i] != NONE ||
            !is_whole(plan, &plan->placement[a->out]))
            continue;
        while (k < plan->n_actions && !touches(&plan->action[k], a->out))
            k++;
        if (k == plan->n_actions || b->load_of[k] != NONE ||
            !may_band(b, &plan->action[k]) || !has_bands(b, &plan->action[k]))
            continue;
        b->load_of[i] = b->load_of[k] = i;
    }
}

static uint32_t view(Bands *b, uint32_t placement, uint32_t row,
                     uint32_t rows) {
    Placement p = b->placement.at[placement];
    p.row = row;
    p.rows = rows;
    p.ring = true;
    vec_push(b->arena, &b->placement, p);
    return b->placement.n - 1;
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
        Rows need = needed(b, run, k);
        Action a = *run;
        uint32_t *in = ARENA_COPY(b->arena, uint32_t, run->in, run->n_in);
        for (uint32_t i = 0; i < run->n_in; i++)
            in[i] = view(b, in[i], need.in_row, need.in_rows);
        a.in = in;
        a.row = rows.first;
        a.rows = rows.end - rows.first;
        a.out = view(b, run->out, a.row, a.rows);
        a.in_row = need.in_row;
        a.in_rows = need.in_rows;
        a.pad_top = need.pad_top;
        a.pool_pad_top = need.pool_pad_top;
        a.tile = k;
        a.n_tiles = b->n;
        vec_push(b->arena, &b->action, a);
    }
}

static const Action *layer_behind(const Bands *b, uint32_t load) {
    uint32_t k = load + 1;
    while (b->load_of[k] != load)
        k++;
    return &b->plan->action[k];
}

void bands_make(Arena *arena, Plan *plan, uint32_t n) {
    Bands b = {
        .arena = arena, .plan = plan, .g = plan->schedule->graph, .n = n};
    if (n < 2 || !plan->schedule->spec->tiling.rings)
        return;
    find_loads(&b);
    for (uint32_t i = 0; i < plan->n_placements; i++)
        vec_push(arena, &b.placement, plan->placement[i]);
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        if (b.load_of[i] == NONE)
            vec_push(arena, &b.action, *a);
        else if (b.load_of[i] == i)
            add_loads(&b, a, layer_behind(&b, i));
        else
            add_runs(&b, a);
    }
    plan->n_actions = b.action.n;
    plan->action = b.action.at;
    plan->n_placements = b.placement.n;
    plan->placement = b.placement.at;
}
