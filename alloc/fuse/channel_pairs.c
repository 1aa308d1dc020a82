/* channel_pairs.c - a layer and the only one that reads its result, by slabs.
 *
 * Input: units, all volumes whole. Output: modes of couples.
 * Where the second layer makes each channel from the same one of its operands
 * (sums, pools, upsampling, depthwise convolutions), the two take turns: the
 * first, another such or a dense convolution, makes some channels, the second
 * uses them up. So what lies between never exists whole, and nothing is
 * computed twice or moved. All else that the two touch is in active memory
 * while both run: their operands, and the result, which is written slab by
 * slab.
 * Method: couples are made where active memory would hold too much, and what
 * they need by themselves fits; slabs are as thick as there is room for.
 * Invariant: slabs are of one size, but for the last.
 */
#include "alloc/alias/alias.h"
#include "alloc/fuse/fuse.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"

/* Slabs of a layer: as few as fit, at most. */
enum { FEW_SLABS = 2, MOST_SLABS = 32, USUAL_SLABS = 8 };

typedef struct Couple {
    uint32_t step; /* of the giver */
    NodeId giver, taker;
    TensorId passed;
} Couple;

static NodeId only_node(const Facts *f, uint32_t step) {
    const Step *s = &f->schedule->step[step];
    return s->n == 1 ? s->slot[0].node : NO_NODE;
}

/* ---- which layers ---- */

static bool may_run_so(const Decisions *d, NodeId id) {
    const Facts *f = d->f;
    return id.i != NONE && on_engine(f, id) &&
           d->mode[id.i].kind == MODE_WHOLE &&
           !hwspec_stages(f->spec, f->legal[id.i].op) &&
           f->spec->tiling.rows.ops >> f->legal[id.i].op & 1;
}

/* Made for the taker alone, and no part of anything. */
static bool passes_alone(const Decisions *d, TensorId t) {
    const Facts *f = d->f;
    const Role *role = &f->role[t.i];
    return role->origin == FROM_ENGINE && !role->outside &&
           role->parent.i == NONE && d->over[t.i].i == NONE &&
           f->uses.start[t.i + 1] - f->uses.start[t.i] == 1;
}

NodeId couple_taker(const Decisions *d, NodeId id) {
    const Facts *f = d->f;
    if (!may_run_so(d, id))
        return NO_NODE;
    const Node *node = graph_node(f->g, id);
    TensorId t = node->out[0];
    if (!(is_dense(node) || goes_by_channel(f, node)) || !passes_alone(d, t))
        return NO_NODE;
    NodeId taker = f->uses.node[f->uses.start[t.i]];
    return may_run_so(d, taker) && goes_by_channel(f, graph_node(f->g, taker))
               ? taker
               : NO_NODE;
}

/* Where the result takes the place of what is passed, nothing is won. */
static bool takes_its_place(const Decisions *d, const Couple *c) {
    const Node *node = graph_node(d->f->g, c->taker);
    return same_tensor(d->over[node->out[0].i], c->passed);
}

/* A convolution reads all channels for each slab, so none may be written over.
 */
static bool spoils_operands(const Decisions *d, const Couple *c) {
    const Node *node = graph_node(d->f->g, c->giver);
    uint32_t result = d->unit_of[graph_node(d->f->g, c->taker)->out[0].i];
    for (uint32_t k = 0; k < node->n_in; k++)
        if (d->unit_of[node->in[k].i] == result)
            return true;
    return false;
}

static bool couple_at(const Decisions *d, uint32_t step, Couple *c) {
    const Facts *f = d->f;
    if (step + 1 >= f->schedule->n_steps)
        return false;
    *c = (Couple){step, only_node(f, step), only_node(f, step + 1), NO_TENSOR};
    if (c->giver.i == NONE || c->taker.i == NONE ||
        couple_taker(d, c->giver).i != c->taker.i)
        return false;
    c->passed = graph_node(f->g, c->giver)->out[0];
    return f->role[graph_node(f->g, c->taker)->out[0].i].parent.i == NONE;
}

/* ---- how thick ---- */

static bool engine_takes(const Facts *f, NodeId id, uint32_t c) {
    const HwEngine *engine = &f->spec->engine[f->legal[id.i].engine];
    return !(c % engine->part_align) &&
           hw_range_has(&engine->limit[HW_LIMIT_OUT_C], c) &&
           (is_dense(graph_node(f->g, id)) ||
            hw_range_has(&engine->limit[HW_LIMIT_IN_C], c));
}

/* Whether slabs of what it reads are volumes; of what is passed they need not
 * be. */
static bool operands_cut(const Facts *f, const Couple *c, NodeId id,
                         uint32_t channels) {
    const Node *node = graph_node(f->g, id);
    for (uint32_t k = 0; k < node->n_in && !is_dense(node); k++)
        if (!same_tensor(node->in[k], c->passed) &&
            !volume_cuts(f, node->in[k], channels))
            return false;
    return true;
}

static bool slabs_valid(const Facts *f, const Couple *c, uint32_t channels) {
    const Node *taker = graph_node(f->g, c->taker);
    uint32_t rest = plan_volume(f->g, c->passed).c % channels;
    bool valid = volume_cuts(f, taker->out[0], channels) &&
                 operands_cut(f, c, c->giver, channels) &&
                 operands_cut(f, c, c->taker, channels);
    for (uint32_t i = 0; i < 2 && valid; i++) {
        NodeId id = i ? c->taker : c->giver;
        valid = engine_takes(f, id, channels) &&
                (!rest || engine_takes(f, id, rest));
    }
    return valid;
}

/* Of `n` slabs, rounded up to what the array makes at a time. */
static uint32_t channels_of(const Facts *f, const Couple *c, uint32_t n) {
    uint32_t all = plan_volume(f->g, c->passed).c;
    uint32_t unit = f->spec->engine[f->legal[c->giver.i].engine].unroll.out_c;
    uint32_t one = (all + n - 1) / n;
    if (unit && all > unit)
        one = (one + unit - 1) / unit * unit;
    return one + one % 2;
}

static uint64_t slab_least_bytes(const Facts *f, const Couple *c, uint32_t n) {
    uint64_t bytes[PLAN_MAX_POOLS];
    slab_bytes(f, c->passed, n, bytes);
    return least_bytes(f, bytes,
                       reach_of(f, c->giver, c->passed) &
                           reach_of(f, c->taker, c->passed));
}

/* The thickest slabs within `free`; else such as are usual, within `most`; 0 if
 * there are none. */
static uint32_t slab_channels(const Facts *f, const Couple *c, uint64_t free,
                              uint64_t most) {
    uint32_t all = plan_volume(f->g, c->passed).c, found = 0;
    for (uint32_t n = FEW_SLABS; n <= MOST_SLABS; n *= 2) {
        uint32_t channels = channels_of(f, c, n);
        uint64_t bytes = slab_least_bytes(f, c, channels);
        if (channels >= all || bytes > most || !slabs_valid(f, c, channels))
            continue;
        if (bytes > free && n > USUAL_SLABS && found)
            break;
        found = channels;
        if (bytes <= free)
            break;
    }
    return found;
}

/* ---- where ---- */

static bool touches(const Unit *unit, uint32_t step) {
    for (uint32_t k = 0; k < unit->n_touches; k++)
        if (unit->touch[k].step == step)
            return true;
    return false;
}

/* Bytes that are there while the two run, less what is passed; `own`: those of
 * volumes that they touch. */
static uint64_t bytes_at(const Decisions *d, const Problem *p, const Couple *c,
                         uint64_t *own) {
    uint64_t sum = 0;
    *own = 0;
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Buf *buf = &p->buf.at[i];
        const Owner *o = &p->owner.at[i];
        if (buf->first > 2 * c->step + 3 || buf->end <= 2 * c->step ||
            o->unit == d->unit_of[c->passed.i])
            continue;
        sum = add_capped(sum, o->least);
        const Unit *unit = o->unit == NONE ? NULL : &d->unit.at[o->unit];
        if (unit && (touches(unit, c->step) || touches(unit, c->step + 1)))
            *own = add_capped(*own, o->least);
    }
    return sum;
}

/* At the fuller of their steps. */
static uint64_t fullest(const Problem *p, const Couple *c) {
    uint64_t most = 0;
    for (uint32_t t = 2 * c->step; t < 2 * c->step + 4; t++)
        most = p->live[t] > most ? p->live[t] : most;
    return most;
}

/* What either touches is there at both of their steps. */
static void touch_both(Decisions *d, uint32_t step) {
    for (uint32_t u = 0; u < d->unit.n; u++) {
        Unit *unit = &d->unit.at[u];
        bool first = touches(unit, step), second = touches(unit, step + 1);
        if (first != second)
            touch_insert(d->f, unit, first ? step + 1 : step);
    }
    touches_refill(d, step);
    touches_refill(d, step + 1);
}

static bool couple_make(Decisions *d, const Problem *p, const Couple *c) {
    const Facts *f = d->f;
    uint64_t own, beside = bytes_at(d, p, c, &own);
    if (own >= f->total)
        return false;
    uint64_t free = beside < f->total ? f->total - beside : 0;
    uint32_t channels = slab_channels(f, c, free, f->total - own);
    if (!channels ||
        add_capped(beside, slab_least_bytes(f, c, channels)) >= fullest(p, c))
        return false;
    d->mode[c->giver.i] =
        (Mode){.kind = MODE_GIVES, .channels = channels, .style = -1};
    d->mode[c->taker.i] =
        (Mode){.kind = MODE_TAKES, .channels = channels, .style = -1};
    touch_both(d, c->step);
    return true;
}

/* Another operand of which the place can be taken takes that of what is passed.
 */
static bool places_change(Decisions *d) {
    bool any = false;
    Couple c;
    for (uint32_t s = 0; s < d->f->schedule->n_steps; s++)
        if (couple_at(d, s, &c) && takes_its_place(d, &c))
            any |= place_instead(d, c.taker, c.passed);
    return any;
}

static bool machine_may(const Facts *f) {
    const HwTiling *tiling = &f->spec->tiling;
    return tiling->kind == HW_TILING_SOFTWARE && !tiling->rows.rolls &&
           !tiling->rows.weights_move && !f->options->layer_by_layer;
}

void couples_choose(Decisions *d) {
    const Facts *f = d->f;
    Problem p = {0};
    Couple c;
    if (!machine_may(f))
        return;
    if (places_change(d)) {
        d->unit.n = 0;
        units_make(d);
        touches_make(d);
    }
    problem_make(d, &p);
    for (uint32_t s = 0; s < f->schedule->n_steps; s++)
        if (couple_at(d, s, &c) && !takes_its_place(d, &c) &&
            !spoils_operands(d, &c) && fullest(&p, &c) > f->total)
            couple_make(d, &p, &c);
}
