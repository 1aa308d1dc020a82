/* bound.c - how few bytes over DDR plans of each kind must move.
 *
 * Input: alias classes of a network, none evicted. Output: lower bounds for
 * classes of plans. All listings: compulsory.c. Plans in this order: while a
 * step runs that machine and layers do not let run by parts, a *barrier*, its
 * volumes are in active memory whole, all steps before it are complete, none
 * behind it has begun. What was made before
 * and is needed behind it shares what is left; the rest lies outside: a load
 * for each byte in each gap between two uses, and a store once, unless it is
 * there anyway. The program of spill_lp.c takes the cheapest fractions over all
 * barriers. Plans layer by layer - each complete before the next begins, none
 * twice - have a barrier between any two steps, whatever their tiles and
 * buffers take. A machine whose instructions run whole layers has no other
 * plans; what none of a layer's styles that fit has in active memory is then
 * outside for it, and what all of them reserve no volume has. Where rows are
 * not put together in active memory: recompute_paths.c. Plans that compute
 * nothing twice: single_compute_cuts.c.
 */
#include "alloc/bound/bound.h"
#include "alloc/alias/alias.h"
#include "alloc/geometry/receptive_field.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/spill/spill_lp.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"

#include <math.h>
#include <stdlib.h>

double active_moved(const Facts *f) {
    uint32_t least = f->spec->element;
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        uint32_t element = f->spec->memory[m].layout->element;
        least = element < least ? element : least;
    }
    return (double)f->total * f->spec->element / least;
}

/* ---- barriers ---- */

static bool runs_by_parts(const Facts *f, NodeId id) {
    HwOp op = f->legal[id.i].op;
    if (f->spec->tiling.kind == HW_TILING_SOFTWARE)
        return f->spec->tiling.rows.ops >> op & 1;
    if (f->spec->tiling.kind == HW_TILING_HARDWARE && channel_tile_least(f, id))
        return true;
    for (uint32_t i = 0; i < f->spec->tiling.tiles.n; i++)
        if (f->spec->tiling.kind == HW_TILING_HARDWARE &&
            f->spec->tiling.tiles.style[i].ops >> op & 1)
            return true;
    return false;
}

/* Nodes that work ahead read their input through buffers. */
static bool is_barrier(const Decisions *d, uint32_t step) {
    const Facts *f = d->f;
    const Step *s = &f->schedule->step[step];
    for (uint32_t i = 0; i < s->n; i++) {
        NodeId id = s->slot[i].node;
        if (!on_engine(f, id) || runs_by_parts(f, id) ||
            d->mode[id.i].kind == MODE_AHEAD)
            return false;
    }
    return s->n > 0;
}

/* ---- programs ---- */

/* What all styles by which a layer can run have in common. */
typedef struct Styled {
    bool in, out;    /* its operands, its result are outside */
    double reserved; /* bytes */
} Styled;

/* While step s runs is time 2 s, behind it 2 s + 1. */
typedef struct Waits {
    SpillProgram x;
    Styled *styled;   /* by step */
    double forced;    /* bytes that move whatever else does */
    uint8_t *barrier; /* by step */
    bool passes;      /* one instruction runs a layer: what is read and made is
                       * in active memory whole, or passes through it */
} Waits;

/* Bytes that the node's volumes have in active memory, if they do not pass in
 * tiles; at least. */
static uint64_t volume_bytes(const Facts *f, NodeId id, bool in, bool out) {
    const Node *node = graph_node(f->g, id);
    uint64_t sum = 0, most = 0, bytes[PACK_MAX_POOLS];
    for (uint32_t k = 0; k <= node->n_in; k++) {
        bool is_in = k < node->n_in;
        TensorId t = is_in ? node->in[k] : node->out[0];
        pool_bytes(f, t, plan_volume(f->g, t).h, true, bytes);
        uint64_t own = least_bytes(f, bytes, UINT32_MAX);
        if (is_in ? in : out)
            continue;
        sum = add_capped(sum, own);
        if (is_in && !out && takes_in_place(f, id, t))
            most = own;
    }
    return sum == UINT64_MAX ? sum : sum - (in ? 0 : most);
}

static void styled_meet(Styled *all, bool first, Styled one) {
    if (first)
        *all = one;
    all->in &= one.in;
    all->out &= one.out;
    all->reserved = fmin(all->reserved, one.reserved);
}

/* Nothing, if it may run otherwise, or not at all. */
static Styled styled_of(const Facts *f, NodeId id) {
    const HwTiling *tiling = &f->spec->tiling;
    Styled all = {0};
    bool any = false;
    int32_t i;
    if (!on_engine(f, id) || runs_ahead(f, id) || f->spec->n_active > 1 ||
        channel_tile_least(f, id))
        return all;
    if (!(tiling->tiles.always >> f->legal[id.i].op & 1) &&
        volume_bytes(f, id, false, false) <= f->total)
        any = true;
    for (uint32_t rank = 0; (i = hardware_style(f, id, rank)) >= 0; rank++) {
        const HwTileStyle *style = &tiling->tiles.style[i];
        Styled one = {style->in_backing, style->out_backing,
                      (double)style->reserved};
        uint64_t own = add_capped(
            volume_bytes(f, id, style->in_backing, style->out_backing),
            style->reserved);
        if (own > f->total)
            continue;
        styled_meet(&all, !any, one);
        any = true;
    }
    return all;
}

static void live_add(SpillProgram *x, uint32_t first, uint32_t end,
                     double bytes) {
    x->live[first] += bytes;
    x->live[end] -= bytes;
}

/* While a step runs it has what it reads and makes: there, if it is a barrier;
 * else, where such passes, as part of the gap that would have it outside. */
static void own_add(Waits *waits, uint32_t step, double bytes) {
    if (waits->barrier[step])
        live_add(&waits->x, 2 * step, 2 * step + 1, bytes);
}

/* A result that can take the place of an operand: not counted besides. */
static bool in_place(const Facts *f, const BaseTensor *base) {
    NodeId id = graph_tensor(f->g, base->tensor)->producer;
    const Node *node = graph_node(f->g, id);
    for (uint32_t k = 0; k < node->n_in; k++)
        if (takes_in_place(f, id, node->in[k]))
            return true;
    return false;
}

/* Of the base tensor's bytes, those that a reader needs: strides may leave some
 * out.
 */
static double bytes_touched(const Facts *f, const BaseTensor *base,
                            NodeId reader) {
    Volume v = plan_volume(f->g, base->tensor);
    Volume out = plan_volume(f->g, graph_node(f->g, reader)->out[0]);
    Feet rows = feet_of(f, reader, 0), columns = feet_of(f, reader, 1);
    double pixels = (double)feet_touched(&rows, v.h, out.h) *
                    (double)feet_touched(&columns, v.w, out.w);
    return base->bytes * pixels / ((double)v.h * v.w);
}

/* Bytes of the base tensor wait behind one step, which may have made it, for
 * another.
 */
static void wait_add(const Facts *f, Waits *waits, uint32_t l,
                     const BaseTensor *base, double bytes, uint32_t from,
                     uint32_t to) {
    bool with_first = waits->passes && from == base->made &&
                      !waits->barrier[from] && !in_place(f, base);
    bool with_last = waits->passes && !waits->barrier[to];
    bool made = from == base->made && waits->styled[from].out;
    SpillInterval stay = {.alias = l,
                          .forced = made || waits->styled[to].in,
                          .first = 2 * from + !with_first,
                          .end = 2 * to + with_last,
                          .bytes = bytes,
                          .load = bytes,
                          .store = base->store};
    if (bytes <= 0)
        return;
    vec_push(f->arena, &waits->x.stay, stay);
    live_add(&waits->x, stay.first, stay.end, stay.bytes);
}

/* An alias class's gaps store the same, once: no more than waits over any of
 * them. */
static void stores_least(Waits *waits, uint32_t first) {
    double least = HUGE_VAL;
    for (uint32_t i = first; i < waits->x.stay.n; i++)
        least = fmin(least, waits->x.stay.at[i].bytes);
    for (uint32_t i = first; i < waits->x.stay.n; i++)
        waits->x.stay.at[i].store = fmin(waits->x.stay.at[i].store, least);
}

/* The same of what is outside in any case. */
static void forced_add(Waits *waits, uint32_t first) {
    double store = 0;
    for (uint32_t i = first; i < waits->x.stay.n; i++) {
        const SpillInterval *stay = &waits->x.stay.at[i];
        if (!stay->forced)
            continue;
        store = stay->store;
        waits->forced += stay->load;
    }
    waits->forced += store;
}

static void base_waits(const Facts *f, Waits *waits, uint32_t l,
                       const BaseTensor *base) {
    uint32_t from = base->made, first = waits->x.stay.n;
    double before = base->bytes; /* that the step `from` needs, or makes */
    for (uint32_t i = 0; i < base->n; i++) {
        uint32_t step = f->schedule->step_of[base->reader[i].i];
        if (!on_engine(f, base->reader[i]) || step == from)
            continue;
        double needs = bytes_touched(f, base, base->reader[i]);
        if (from != NONE)
            wait_add(f, waits, l, base, before + needs - base->bytes, from,
                     step);
        own_add(waits, step, base->bytes);
        from = step;
        before = needs;
    }
    stores_least(waits, first);
    forced_add(waits, first);
}

/* All gaps between two uses, and the bytes that wait, by time. */
static Waits waits_make(const Decisions *d, const BaseTensors *bases) {
    const Facts *f = d->f;
    uint32_t n = f->schedule->n_steps;
    Waits waits = {.x = {.arena = f->arena,
                         .total = active_moved(f),
                         .live = ARENA_ARRAY(f->arena, double, 2 * n + 1),
                         .n_times = 2 * n},
                   .barrier = ARENA_ARRAY(f->arena, uint8_t, n + 1),
                   .styled = ARENA_ARRAY(f->arena, Styled, n + 1),
                   .passes = f->spec->tiling.kind == HW_TILING_HARDWARE};
    for (uint32_t s = 0; s < n; s++) {
        waits.barrier[s] = is_barrier(d, s);
        if (!waits.passes || f->schedule->step[s].n != 1)
            continue;
        waits.styled[s] = styled_of(f, f->schedule->step[s].slot[0].node);
        live_add(&waits.x, 2 * s, 2 * s + 1, waits.styled[s].reserved);
    }
    for (uint32_t l = 0; l < bases->n; l++) {
        const BaseTensor *base = &bases->at[l];
        base_waits(f, &waits, l, base);
        if (base->made != NONE && !in_place(f, base))
            own_add(&waits, base->made, base->bytes);
    }
    for (uint32_t t = 0; t < 2 * n; t++)
        waits.x.live[t + 1] += waits.x.live[t];
    return waits;
}

/* What leaves at least, if all times of the program count or only barriers. */
static double waits_bound(Waits *waits, bool barriers) {
    SpillProgram *x = &waits->x;
    for (uint32_t t = 0; t < x->n_times && barriers; t++)
        if (t % 2 || !waits->barrier[t / 2])
            x->live[t] = 0;
    return waits->forced + spill_lp_bound(x);
}

void bound_make(const Decisions *d, Plan *plan) {
    const Facts *f = d->f;
    BaseTensors bases;
    double more[PLAN_BOUNDS] = {0};
    uint64_t any = maps_compulsory(f);
    if (base_tensors_make(f, &bases)) {
        Waits waits = waits_make(d, &bases);
        double layers = waits_bound(&waits, false);
        more[PLAN_BOUND_ORDER] = f->spec->tiling.kind == HW_TILING_SOFTWARE
                                     ? waits_bound(&waits, true)
                                     : layers;
        more[PLAN_BOUND_ONCE] = layers > 0 ? cuts_bound(f, &bases) : 0;
        more[PLAN_BOUND_LAYERS] =
            fmax(layers, fmax(more[PLAN_BOUND_ORDER], more[PLAN_BOUND_ONCE]));
    }
    more[PLAN_BOUND_APART] = paths_bound(d);
    for (uint32_t i = 0; i < PLAN_BOUNDS; i++)
        plan->ddr_bound[i] = any + (uint64_t)more[i];
}
