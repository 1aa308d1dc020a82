/* stretches.c - the cheapest way to cut a schedule into stretches.
 *
 * Input: who offers stretches, and what they cost. Output: cascades.
 * Method: dynamic programming over the schedule, in its order.
 */
#include "alloc/fuse/stretches.h"
#include "alloc/geometry/tensor_bytes.h"

static bool price_less(Price a, Price b) {
    if (a.first < b.first || a.first > b.first)
        return a.first < b.first;
    return a.second < b.second;
}

Price price_sum(Price a, Price b) {
    return (Price){a.first + b.first, a.second + b.second, a.again + b.again};
}

uint64_t most_again(const Facts *f) {
    double factor = f->options->recompute;
    uint64_t once = network_work(f);
    return factor > 0 ? (uint64_t)((factor - 1) * (double)once) : UINT64_MAX;
}

/* ---- ways ---- */

static bool beats(const Price *a, const Price *b) {
    return a->again <= b->again && !price_less(*b, *a);
}

static bool is_beaten(const Stretches *s, uint32_t end, const Price *price) {
    const Cut *cut = &s->cut[end];
    bool beaten = price->again > s->most_again;
    for (uint32_t i = 0; i < cut->n && !beaten; i++)
        beaten = beats(&cut->way[i].price, price);
    return beaten;
}

/* Whether nothing that is known is as cheap, were this the stretch's price. */
static bool stretch_improves(const Stretches *s, const Cascade *g, Price own) {
    const Cut *from = &s->cut[g->first];
    for (uint32_t i = 0; i < from->n; i++) {
        Price price = price_sum(from->way[i].price, own);
        if (!is_beaten(s, g->end, &price))
            return true;
    }
    return false;
}

/* Of too many that which computes hardly more again than the next one; the
 * cheapest and the one that computes the least stay. */
static void ways_thin(Cut *cut) {
    uint32_t least = 1;
    uint64_t step = UINT64_MAX;
    for (uint32_t i = 1; i + 1 < cut->n; i++) {
        uint64_t own = cut->way[i].price.again - cut->way[i + 1].price.again;
        if (own < step) {
            step = own;
            least = i;
        }
    }
    cut->n--;
    for (uint32_t i = least; i < cut->n; i++)
        cut->way[i] = cut->way[i + 1];
}

static void way_add(Cut *cut, const Way *way) {
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < cut->n; i++)
        if (!beats(&way->price, &cut->way[i].price))
            cut->way[n++] = cut->way[i];
    while (at < n && !price_less(way->price, cut->way[at].price))
        at++;
    for (uint32_t i = n; i > at; i--)
        cut->way[i] = cut->way[i - 1];
    cut->way[at] = *way;
    cut->n = n + 1;
    if (cut->n > MOST_WAYS)
        ways_thin(cut);
}

void stretch_offer(Stretches *s, const Cascade *g, Price own) {
    for (uint32_t i = 0; i < s->cut[g->first].n; i++) {
        Way way = {price_sum(s->cut[g->first].way[i].price, own), *g, i};
        if (!is_beaten(s, g->end, &way.price))
            way_add(&s->cut[g->end], &way);
    }
}

/* ---- cascades that roll ---- */

enum { MOST_STRIPS = 128 };

/* The fewest strips that fit; what they take falls with their number, up to
 * where they are hardly more than halos. */
static bool strips_fit(const Decisions *d, Cascade *g, uint64_t bytes,
                       RollCost *cost) {
    NodeId last = cascade_node(d->f, g, cascade_length(g) - 1);
    uint32_t most = plan_volume(d->f->g, graph_node(d->f->g, last)->out[0]).w;
    most = most < MOST_STRIPS ? most : MOST_STRIPS;
    uint32_t lo = 1, hi = most + 1;
    while (hi > most && lo < most) {
        g->strips = 2 * lo < most ? 2 * lo : most;
        *(roll_columns(d, *g, bytes, cost) ? &hi : &lo) = g->strips;
    }
    while (hi <= most && lo + 1 < hi) {
        g->strips = lo + (hi - lo) / 2;
        *(roll_columns(d, *g, bytes, cost) ? &hi : &lo) = g->strips;
    }
    g->strips = hi <= most ? hi : 0;
    g->rows = g->cols = hi <= most ? roll_columns(d, *g, bytes, cost) : 0;
    return g->rows > 0;
}

bool stretch_rows(const Decisions *d, Cascade *g, uint64_t bytes,
                  RollCost *cost) {
    g->rows = roll_rows(d, *g, bytes, cost);
    if (!g->rows && hwspec_by_columns(d->f->spec))
        g->rows = g->cols = roll_columns(d, *g, bytes, cost);
    return g->rows > 0 || (d->config->strips && strips_fit(d, g, bytes, cost));
}

static bool roll_as(Stretches *s, const Cascade *form, uint64_t bytes,
                    RollCost *cost) {
    Cascade g = *form;
    if (roll_fits(s->d, g, bytes, cost) &&
        !stretch_improves(s, &g, s->price(s->context, &g, cost)))
        return true;
    if (stretch_rows(s->d, &g, bytes, cost))
        stretch_offer(s, &g, s->price(s->context, &g, cost));
    return g.rows > 0;
}

bool stretch_roll(Stretches *s, uint32_t first, uint32_t end, uint64_t bytes,
                  RollCost *cost) {
    Cascade g = s->form;
    bool any = false;
    g.first = first;
    g.end = end;
    g.full = true;
    if (s->fills)
        any = roll_as(s, &g, bytes, cost);
    g.full = false;
    return roll_as(s, &g, bytes, cost) || any;
}

static void follow(Stretches *s, uint32_t n) {
    s->d->cascade.n = 0;
    uint32_t by = 0;
    for (uint32_t end = n; end > 0;) {
        const Way *way = &s->cut[end].way[by];
        if (way->g.rows)
            vec_push(s->d->f->arena, &s->d->cascade, way->g);
        end = way->g.first;
        by = way->by;
    }
}

bool stretches_cut(Stretches *s) {
    const Facts *f = s->d->f;
    uint32_t n = f->schedule->n_steps;
    s->fills = s->d->config->aims.fills && may_fill(f->spec);
    s->cut = ARENA_ARRAY(f->arena, Cut, n + 1);
    s->cut[0].n = 1;
    for (uint32_t step = 0; step < n; step++)
        if (s->cut[step].n)
            s->from(s->context, step);
    if (s->cut[n].n)
        follow(s, n);
    return s->cut[n].n > 0;
}
