/* give_way.c - what gives way where active memory would hold too much.
 *
 * Input: decisions, buffers, a time. Output: a decision more. Method: evict the
 * interval that frees most for what it moves, the furthest next use first
 * (Belady, 1966); when none is left there, dissolve a concat, then run the
 * step's node by tiles.
 */
#include "alloc/spill/give_way.h"

#include "alloc/alias/alias.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/tile/tile.h"

/* ---- intervals ---- */

bool interval_may_leave(const AliasClass *alias, uint32_t i) {
    return !alias->use[i].spilled && !alias->kept &&
           (!alias->concat || alias->use[i].step >= alias->complete);
}

/* Whether an interval of the residency interval may cover the time: rows that
 * are read can keep one open behind its last touch. */
static bool residency_near(const Decisions *d, const AliasClass *alias,
                           const Residency *s, uint32_t time) {
    return 2 * alias->use[s->first].step + 2 <= time &&
           (config_low(d->config) || time <= 2 * alias->use[s->last].step);
}

/* The interval of the alias class that covers `time`; NONE if it is not
 * resident then, or touched. */
static uint32_t interval_at(const Decisions *d, const Buffers *p,
                            uint32_t index, uint32_t time) {
    const AliasClass *alias = &d->alias.at[index];
    const Residencies *stays = residencies_of(p, index);
    Away away;
    for (uint32_t k = 0; k < stays->n; k++) {
        const Residency *s = &stays->at[k];
        if (!residency_near(d, alias, s, time))
            continue;
        for (uint32_t i = s->first; i < s->last; i++)
            if (2 * alias->use[i].step + 2 <= time &&
                away_find(d, alias, i, &away) && time < away.end)
                return interval_may_leave(alias, i) ? i : NONE;
    }
    return NONE;
}

/* Whether the volume is known to lie outside unchanged before touch i ends. */
static bool has_copy(const Facts *f, const AliasClass *alias, uint32_t i) {
    if (alias->n_tensors > 1 && !alias->concat)
        return false;
    if (from_outside(f, alias->root))
        return true;
    for (uint32_t k = 0; k < i; k++)
        if (alias->use[k].spilled && alias->use[k].step >= alias->complete)
            return true;
    return false;
}

typedef struct Gap {
    uint32_t alias, use, next;
    double worth; /* bytes freed for each byte moved */
} Gap;

static Gap interval_make(const Decisions *d, uint32_t alias, uint32_t i) {
    const Facts *f = d->f;
    const AliasClass *u = &d->alias.at[alias];
    const HwMemory *backing = &f->spec->memory[f->spec->backing];
    Volume v = volume_in(f, u->root, (uint32_t)f->spec->backing);
    double moved = (double)layout_bytes(backing->layout, &v);
    uint64_t freed = least_bytes(f, u->bytes, UINT32_MAX);
    if (!has_copy(f, u, i))
        moved *= 2;
    return (Gap){alias, i, u->use[i + 1].step, (double)freed / moved};
}

static bool interval_better(const Gap *a, const Gap *b) {
    if (a->worth != b->worth)
        return a->worth > b->worth;
    return a->next != b->next ? a->next > b->next : a->alias < b->alias;
}

/* The alias class that leaves; NONE if there is none. */
uint32_t evict_at(Decisions *d, const Buffers *p, uint32_t time) {
    Gap best = {.alias = NONE};
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        uint32_t i = alias->dead ? NONE : interval_at(d, p, u, time);
        if (i == NONE)
            continue;
        Gap interval = interval_make(d, u, i);
        if (best.alias == NONE || interval_better(&interval, &best))
            best = interval;
    }
    if (best.alias != NONE)
        d->alias.at[best.alias].use[best.use].spilled = true;
    return best.alias;
}

/* ---- concats ---- */

static bool resident_at(const AliasClass *alias, const Residencies *stays,
                        uint32_t time) {
    for (uint32_t k = 0; k < stays->n; k++)
        if (2 * alias->use[stays->at[k].first].step <= time &&
            time < 2 * alias->use[stays->at[k].last].step + 2)
            return true;
    return false;
}

/* Its members become alias classes of their own, with their uses. */
bool dissolve(Decisions *d, uint32_t alias) {
    if (!alias_dissolve(d, alias))
        return false;
    uses_make(d);
    return true;
}

/* The largest concat that is being filled at the time. */
static bool dissolve_at(Decisions *d, const Buffers *p, uint32_t time) {
    uint32_t best = NONE;
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        if (alias->dead || !alias->concat || time > 2 * alias->complete + 1 ||
            !resident_at(alias, residencies_of(p, u), time))
            continue;
        if (best == NONE ||
            least_bytes(d->f, alias->bytes, UINT32_MAX) >
                least_bytes(d->f, d->alias.at[best].bytes, UINT32_MAX))
            best = u;
    }
    return best != NONE && dissolve(d, best);
}

bool operand_freed(Decisions *d, NodeId node, TensorId t) {
    const Facts *f = d->f;
    uint32_t step = f->schedule->step_of[node.i];
    bool is_out = graph_tensor(f->g, t)->producer.i == node.i;
    if (is_out ? result_lands(d, node) : takes_rows(d, node, t))
        return true;
    bool freed = true;
    while (freed && d->alias_of[t.i] != NONE) {
        const AliasClass *alias = &d->alias.at[d->alias_of[t.i]];
        if (!alias->concat || step > alias->complete || from_outside(f, t))
            break;
        freed = alias_dissolve(d, d->alias_of[t.i]);
    }
    return freed;
}

/* ---- tiles ---- */

bool is_operand(const Decisions *d, const Node *node, uint32_t alias) {
    for (uint32_t i = 0; i < node->n_in; i++)
        if (d->alias_of[node->in[i].i] == alias)
            return true;
    return d->alias_of[node->out[0].i] == alias;
}

/* Bytes at the node's step that are not the node's. */
static uint64_t bytes_of_others(const Decisions *d, const Buffers *p,
                                NodeId id) {
    const Node *node = graph_node(d->f->g, id);
    uint32_t time = 2 * d->f->schedule->step_of[id.i];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Owner *o = &p->owner.at[i];
        if (p->buf.at[i].first > time || p->buf.at[i].end <= time ||
            o->least == UINT64_MAX ||
            (o->node.i == id.i && o->kind != OWNER_WEIGHTS))
            continue;
        if (o->kind != OWNER_RESIDENT || !is_operand(d, node, o->alias))
            sum += o->least;
    }
    return sum;
}

/* Bytes of operands that stay whole in the node's mode. */
static uint64_t bytes_whole(const Decisions *d, NodeId id) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, id);
    const Mode *mode = &d->mode[id.i];
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= node->n_in; i++) {
        TensorId t = node_operand(node, i);
        if (i < node->n_in ? mode->streams_in : mode->streams_out)
            continue;
        uint64_t least = least_bytes(f, d->alias.at[d->alias_of[t.i]].bytes,
                                     reach_of(f, id, t));
        if (least == UINT64_MAX)
            return UINT64_MAX;
        sum += least;
    }
    return sum;
}

/* Those that pass in tiles. */
bool operands_freed(Decisions *d, NodeId id, const Mode *mode) {
    const Node *node = graph_node(d->f->g, id);
    if (mode->streams_out && !operand_freed(d, id, node->out[0]))
        return false;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (mode_streams(mode, i) && !operand_freed(d, id, node->in[i]))
            return false;
    return true;
}

static bool mode_holds(Decisions *d, NodeId id, uint64_t free) {
    if (d->mode[id.i].kind == MODE_HARDWARE) {
        uint64_t whole = bytes_whole(d, id);
        if (whole > free || mode_pinned(d, id) > free - whole)
            return false;
    }
    bool freed = operands_freed(d, id, &d->mode[id.i]);
    uses_make(d);
    return freed;
}

/* The node's next way to run that is possible. */
bool tile_more(Decisions *d, const Buffers *p, NodeId id) {
    const Facts *f = d->f;
    Mode old = d->mode[id.i];
    if (old.kind == MODE_CASCADE)
        return false;
    if (pair_partner(d, id).i != NONE) {
        pair_part(d, id);
        return true;
    }
    uint64_t others = bytes_of_others(d, p, id);
    uint64_t free = others < f->total ? f->total - others : 0;
    if (config_low(d->config) && free > f->total / config_low(d->config))
        free = f->total / config_low(d->config);
    while (mode_next(d, id, free)) {
        if (mode_holds(d, id, free)) {
            uses_refresh(d, f->schedule->step_of[id.i]);
            return true;
        }
        if (d->mode[id.i].kind == MODE_ROW_TILES)
            break;
    }
    d->mode[id.i] = old;
    return false;
}

static bool tile_at(Decisions *d, const Buffers *p, uint32_t step) {
    const Step *s = &d->f->schedule->step[step];
    for (uint32_t i = 0; i < s->n; i++)
        if (on_engine(d->f, s->slot[i].node) &&
            tile_more(d, p, s->slot[i].node))
            return true;
    return false;
}

bool bounce_shrink(Decisions *d, TensorId t) {
    uint32_t *rows = &d->bounce_rows[t.i];
    if (*rows <= 1)
        return false;
    *rows = (*rows + 1) / 2;
    return true;
}

static bool bounces_shrink_at(Decisions *d, const Buffers *p, uint32_t step) {
    bool any = false;
    for (uint32_t i = 0; i < p->bounce.n; i++)
        if (p->bounce.at[i].step == step)
            any |= bounce_shrink(d, p->bounce.at[i].tensor);
    return any;
}

/* ---- one round ---- */

/* A concat need not have what is not written yet. */
bool fill_at(Decisions *d, const Buffers *p, uint32_t time) {
    for (uint32_t u = 0; u < d->alias.n && config_low(d->config); u++)
        if (waits_empty(d, p, u, time)) {
            d->alias.at[u].as_filled = true;
            return true;
        }
    return false;
}

/* What waits takes less. */
bool make_room(Decisions *d, const Buffers *p, uint32_t time) {
    return fill_at(d, p, time) || evict_at(d, p, time) != NONE ||
           dissolve_at(d, p, time);
}

/* What runs takes less. */
bool run_smaller(Decisions *d, const Buffers *p, uint32_t time) {
    return (time % 2 && bounces_shrink_at(d, p, time / 2)) ||
           tile_at(d, p, time / 2);
}
