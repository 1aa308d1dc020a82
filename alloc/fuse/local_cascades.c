/* local_cascades.c - cascades only where layers do not fit, beside volumes that
 * stay.
 *
 * Input: alias classes, all volumes whole. Output: cascades.
 * cascade_dp.c cuts the schedule into stretches and brings everything between
 * two of them outside. Here all stays in active memory that is there, cascades
 * copy rows of what they read from it, and what they write to a concat is
 * loaded into it behind them. Method: at the fullest step that holds too much,
 * the cascade around it that fits beside what waits and moves the fewest bytes,
 * if these are no more than what is too much would move if it left; then the
 * next step.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/fuse/fuse.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/spill/spill.h"

/* Steps of a cascade on either side of the one that is mended. */
enum { REACH = 6 };
/* Where more steps hold too much, whole volumes are of little use. */
enum { MAX_TRIED = 64 };

typedef struct LocalRepair {
    const Facts *f;
    Decisions *d;
    Buffers p;
    uint8_t *tried; /* by step */
} LocalRepair;

/* ---- stripes ---- */

/* The highest stripes of the cascade that take at most `bytes`, of heights at
 * growing distances; 0 if there are none. */
static uint32_t rows_within(const Facts *f, Cascade g, uint64_t bytes,
                            CascadeCost *cost) {
    NodeId last = cascade_node(f, &g, g.end - g.first - 1);
    uint32_t h = plan_volume(f->g, graph_node(f->g, last)->out[0]).h, best = 0;
    for (g.rows = 1; g.rows <= h; g.rows += 1 + g.rows / 4) {
        CascadeCost now;
        if (!cascade_cost(f, &g, STRIPES_MIDDLE, &now))
            continue;
        if (now.peak > bytes)
            break;
        if (!cascade_cost(f, &g, STRIPES_ALL, &now) || now.peak > bytes)
            continue;
        best = g.rows;
        *cost = now;
    }
    return best;
}

/* Whether its alias class has been whole before: then it may stay. */
static bool may_be_resident(const Decisions *d, TensorId t, uint32_t step) {
    if (d->alias_of[t.i] == NONE)
        return false;
    const AliasClass *alias = &d->alias.at[d->alias_of[t.i]];
    bool there = false;
    for (uint32_t i = 0; i < alias->n_uses && alias->use[i].step < step; i++)
        there = alias->use[i].whole || (there && alias->use[i].by_rows);
    return there;
}

static bool reads_resident(const Decisions *d, const Cascade *g) {
    const Facts *f = d->f;
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        const Node *node = graph_node(f->g, cascade_node(f, g, i));
        for (uint32_t k = 0; k < node->n_in; k++)
            if (cascade_maker(f, g, node->in[k]) == NONE &&
                takes_rows(d, cascade_node(f, g, i), node->in[k]) &&
                may_be_resident(d, node->in[k], g->first + i))
                return true;
    }
    return false;
}

void cascades_lower(Decisions *d) {
    const Facts *f = d->f;
    for (uint32_t i = 0; i < d->cascade.n && config_low(d->config); i++) {
        Cascade *g = &d->cascade.at[i];
        CascadeCost cost;
        if (g->rolls || !reads_resident(d, g))
            continue;
        uint32_t rows =
            rows_within(f, *g, f->total / config_low(d->config), &cost);
        if (!rows)
            rows = rows_within(f, *g, f->total, &cost);
        g->rows = rows && rows < g->rows ? rows : g->rows;
    }
}

/* ---- one cascade ---- */

/* Bytes of volumes that are there before the cascade and stay. */
static uint64_t bytes_beside(const LocalRepair *m, const Cascade *g) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->p.buf.n; i++) {
        const Buffer *buf = &m->p.buf.at[i];
        const Owner *o = &m->p.owner.at[i];
        if (buf->first <= 2 * g->first && 2 * g->first < buf->end &&
            o->kind == OWNER_RESIDENT &&
            m->d->alias.at[o->alias].use[0].step < g->first)
            sum += o->least;
    }
    return sum;
}

/* Bytes that results bring outside and back, and operands from there; those of
 * a concat in the cascade have to be there. */
static uint64_t bytes_moved(const Decisions *d, const Cascade *g) {
    const Facts *f = d->f;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        NodeId id = cascade_node(f, g, i);
        const Node *node = graph_node(f->g, id);
        TensorId out = node->out[0];
        bool joins = is_placed(f, id);
        if (!joins && cascade_stores(f, g, out) && !f->role[out.i].outside)
            sum += 2 * moved_bytes(f, out);
        for (uint32_t k = 0; k < node->n_in; k++)
            if (cascade_maker(f, g, node->in[k]) == NONE &&
                (joins || !may_be_resident(d, node->in[k], g->first + i)))
                sum += (joins ? 2 : 1) * moved_bytes(f, node->in[k]);
    }
    return sum;
}

/* No step of it is in a cascade already, each can be in one. */
static bool may_cascade(const LocalRepair *m, const Cascade *g) {
    for (uint32_t s = g->first; s < g->end; s++)
        if (!cascade_may_hold(m->d, s) ||
            m->d->mode[m->f->schedule->step[s].slot[0].node.i].kind !=
                MODE_WHOLE)
            return false;
    return !cascade_has_loose_end(m->d, g->first, g->end);
}

typedef struct Choice {
    Cascade g;
    uint64_t moved, work;
} Choice;

/* The cheapest around the step; g.rows is 0 if there is none. */
static Choice choose(const LocalRepair *m, uint32_t step) {
    const Decisions *d = m->d;
    Choice best = {.moved = UINT64_MAX};
    uint32_t from = step > REACH ? step - REACH : 0;
    uint32_t to = step + REACH < d->f->schedule->n_steps
                      ? step + REACH
                      : d->f->schedule->n_steps;
    for (uint32_t first = from; first <= step; first++)
        for (uint32_t end = step + 1; end <= to; end++) {
            Cascade g = {.first = first, .end = end};
            CascadeCost cost = {0};
            if (!may_cascade(m, &g))
                continue;
            uint64_t moved = bytes_moved(d, &g), beside = bytes_beside(m, &g);
            if (moved > best.moved || beside >= d->f->total)
                continue;
            g.rows = rows_within(d->f, g, d->f->total - beside, &cost);
            if (g.rows && (moved < best.moved || cost.work < best.work))
                best = (Choice){g, moved, cost.work};
        }
    return best;
}

/* ---- where ---- */

/* What waits at the time, as far as it is too much, leaves and comes back; all
 * there is if that is not enough. */
static uint64_t bytes_if_left(const LocalRepair *m, uint32_t time) {
    uint64_t waits = 0, excess = m->p.live[time] - m->f->total;
    for (uint32_t i = 0; i < m->p.buf.n; i++) {
        const Owner *o = &m->p.owner.at[i];
        const AliasClass *alias =
            o->kind == OWNER_RESIDENT ? &m->d->alias.at[o->alias] : NULL;
        bool touched = !alias;
        for (uint32_t k = 0; alias && k < alias->n_uses; k++)
            touched |= alias->use[k].step == time / 2;
        if (!touched && m->p.buf.at[i].first <= time &&
            time < m->p.buf.at[i].end)
            waits += o->least;
    }
    return waits < excess ? UINT64_MAX : 2 * excess;
}

/* The fullest step of those that hold too much and were not tried. */
static uint32_t fullest(const LocalRepair *m) {
    uint32_t worst = NONE;
    for (uint32_t t = 0; t < m->p.n_times; t += 2)
        if (m->p.live[t] > m->f->total && !m->tried[t / 2] &&
            (worst == NONE || m->p.live[t] > m->p.live[worst]))
            worst = t;
    return worst;
}

bool cascades_repair(Decisions *d) {
    const Facts *f = d->f;
    LocalRepair m = {
        .f = f,
        .d = d,
        .tried = ARENA_ARRAY(f->arena, uint8_t, f->schedule->n_steps + 1)};
    d->cascade.n = 0;
    buffers_make(d, &m.p);
    aliases_fill(d, &m.p);
    for (uint32_t i = 0; i < MAX_TRIED; i++) {
        uint32_t time = fullest(&m);
        if (time == NONE)
            return true;
        m.tried[time / 2] = 1;
        Choice best = choose(&m, time / 2);
        if (!best.g.rows || best.moved / 4 > bytes_if_left(&m, time))
            continue;
        vec_push(f->arena, &d->cascade, best.g);
        if (!cascades_apply(d))
            return false;
        buffers_make(d, &m.p);
        aliases_fill(d, &m.p);
    }
    return false;
}
