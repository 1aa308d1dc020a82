/* local_cascades.c - groups only where layers do not fit, beside volumes that
 * stay.
 *
 * Input: units, all volumes whole. Output: groups.
 * cascade_dp.c cuts the schedule into stretches and brings everything between
 * two of them outside. Here all stays in active memory that is there, groups
 * copy rows of what they read from it, and what they write to a concat is
 * loaded into it behind them. Method: at the fullest step that holds too much,
 * the group around it that fits beside what waits and moves the fewest bytes,
 * if these are no more than what is too much would move if it left; then the
 * next step.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/fuse/fuse.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/spill/spill.h"

/* Steps of a group on either side of the one that is mended. */
enum { REACH = 6 };
/* Where more steps hold too much, whole volumes are of little use. */
enum { MAX_TRIED = 64 };

typedef struct Mend {
    const Facts *f;
    Decisions *d;
    Problem p;
    uint8_t *tried; /* by step */
} Mend;

/* ---- stripes ---- */

/* The highest stripes of the group that take at most `bytes`, of heights at
 * growing distances; 0 if there are none. */
static uint32_t rows_within(const Facts *f, Group g, uint64_t bytes,
                            GroupCost *cost) {
    NodeId last = group_node(f, &g, g.end - g.first - 1);
    uint32_t h = plan_volume(f->g, graph_node(f->g, last)->out[0]).h, best = 0;
    for (g.rows = 1; g.rows <= h; g.rows += 1 + g.rows / 4) {
        GroupCost now;
        if (!group_cost(f, &g, STRIPES_MIDDLE, &now))
            continue;
        if (now.peak > bytes)
            break;
        if (!group_cost(f, &g, STRIPES_ALL, &now) || now.peak > bytes)
            continue;
        best = g.rows;
        *cost = now;
    }
    return best;
}

/* Whether its unit has been whole before: then it may stay. */
static bool may_be_resident(const Decisions *d, TensorId t, uint32_t step) {
    if (d->unit_of[t.i] == NONE)
        return false;
    const Unit *unit = &d->unit.at[d->unit_of[t.i]];
    bool there = false;
    for (uint32_t i = 0; i < unit->n_touches && unit->touch[i].step < step; i++)
        there = unit->touch[i].whole || (there && unit->touch[i].by_rows);
    return there;
}

static bool reads_resident(const Decisions *d, const Group *g) {
    const Facts *f = d->f;
    for (uint32_t i = 0; i < g->end - g->first; i++) {
        const Node *node = graph_node(f->g, group_node(f, g, i));
        for (uint32_t k = 0; k < node->n_in; k++)
            if (group_maker(f, g, node->in[k]) == NONE &&
                takes_rows(d, group_node(f, g, i), node->in[k]) &&
                may_be_resident(d, node->in[k], g->first + i))
                return true;
    }
    return false;
}

void groups_lower(Decisions *d) {
    const Facts *f = d->f;
    for (uint32_t i = 0; i < d->group.n && config_low(d->config); i++) {
        Group *g = &d->group.at[i];
        GroupCost cost;
        if (g->rolls || !reads_resident(d, g))
            continue;
        uint32_t rows =
            rows_within(f, *g, f->total / config_low(d->config), &cost);
        if (!rows)
            rows = rows_within(f, *g, f->total, &cost);
        g->rows = rows && rows < g->rows ? rows : g->rows;
    }
}

/* ---- one group ---- */

static uint64_t moved_whole(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    return (uint64_t)v.c * v.h * v.w * f->spec->element;
}

/* Bytes of volumes that are there before the group and stay. */
static uint64_t bytes_beside(const Mend *m, const Group *g) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->p.buf.n; i++) {
        const Buf *buf = &m->p.buf.at[i];
        const Owner *o = &m->p.owner.at[i];
        if (buf->first <= 2 * g->first && 2 * g->first < buf->end &&
            o->kind == OWNER_SEGMENT &&
            m->d->unit.at[o->unit].touch[0].step < g->first)
            sum += o->least;
    }
    return sum;
}

/* Bytes that results bring outside and back, and operands from there; those of
 * a concat in the group have to be there. */
static uint64_t bytes_moved(const Decisions *d, const Group *g) {
    const Facts *f = d->f;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->end - g->first; i++) {
        NodeId id = group_node(f, g, i);
        const Node *node = graph_node(f->g, id);
        TensorId out = node->out[0];
        bool joins = is_placed(f, id);
        if (!joins && group_stores(f, g, out) && !f->role[out.i].outside)
            sum += 2 * moved_whole(f, out);
        for (uint32_t k = 0; k < node->n_in; k++)
            if (group_maker(f, g, node->in[k]) == NONE &&
                (joins || !may_be_resident(d, node->in[k], g->first + i)))
                sum += (joins ? 2 : 1) * moved_whole(f, node->in[k]);
    }
    return sum;
}

/* No step of it is in a group already, each can be in one. */
static bool may_group(const Mend *m, const Group *g) {
    for (uint32_t s = g->first; s < g->end; s++)
        if (!group_may_hold(m->d, s) ||
            m->d->mode[m->f->schedule->step[s].slot[0].node.i].kind !=
                MODE_WHOLE)
            return false;
    return !group_has_loose_end(m->d, g->first, g->end);
}

typedef struct Choice {
    Group g;
    uint64_t moved, work;
} Choice;

/* The cheapest around the step; g.rows is 0 if there is none. */
static Choice choose(const Mend *m, uint32_t step) {
    const Decisions *d = m->d;
    Choice best = {.moved = UINT64_MAX};
    uint32_t from = step > REACH ? step - REACH : 0;
    uint32_t to = step + REACH < d->f->schedule->n_steps
                      ? step + REACH
                      : d->f->schedule->n_steps;
    for (uint32_t first = from; first <= step; first++)
        for (uint32_t end = step + 1; end <= to; end++) {
            Group g = {.first = first, .end = end};
            GroupCost cost = {0};
            if (!may_group(m, &g))
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
static uint64_t bytes_if_left(const Mend *m, uint32_t time) {
    uint64_t waits = 0, excess = m->p.live[time] - m->f->total;
    for (uint32_t i = 0; i < m->p.buf.n; i++) {
        const Owner *o = &m->p.owner.at[i];
        const Unit *unit =
            o->kind == OWNER_SEGMENT ? &m->d->unit.at[o->unit] : NULL;
        bool touched = !unit;
        for (uint32_t k = 0; unit && k < unit->n_touches; k++)
            touched |= unit->touch[k].step == time / 2;
        if (!touched && m->p.buf.at[i].first <= time &&
            time < m->p.buf.at[i].end)
            waits += o->least;
    }
    return waits < excess ? UINT64_MAX : 2 * excess;
}

/* The fullest step of those that hold too much and were not tried. */
static uint32_t fullest(const Mend *m) {
    uint32_t worst = NONE;
    for (uint32_t t = 0; t < m->p.n_times; t += 2)
        if (m->p.live[t] > m->f->total && !m->tried[t / 2] &&
            (worst == NONE || m->p.live[t] > m->p.live[worst]))
            worst = t;
    return worst;
}

bool groups_mend(Decisions *d) {
    const Facts *f = d->f;
    Mend m = {.f = f,
              .d = d,
              .tried =
                  ARENA_ARRAY(f->arena, uint8_t, f->schedule->n_steps + 1)};
    d->group.n = 0;
    problem_make(d, &m.p);
    units_fill(d, &m.p);
    for (uint32_t i = 0; i < MAX_TRIED; i++) {
        uint32_t time = fullest(&m);
        if (time == NONE)
            return true;
        m.tried[time / 2] = 1;
        Choice best = choose(&m, time / 2);
        if (!best.g.rows || best.moved / 4 > bytes_if_left(&m, time))
            continue;
        vec_push(f->arena, &d->group, best.g);
        if (!groups_apply(d))
            return false;
        problem_make(d, &m.p);
        units_fill(d, &m.p);
    }
    return false;
}
