/* stretches.c - the cheapest way to cut a schedule into stretches.
 *
 * Input: who offers stretches, and what they cost. Output: cascades.
 * Method: dynamic programming over the schedule, in its order.
 */
#include "alloc/fuse/stretches.h"

bool price_less(Price a, Price b) {
    if (a.first < b.first || a.first > b.first)
        return a.first < b.first;
    return a.second < b.second;
}

Price price_sum(Price a, Price b) {
    return (Price){a.first + b.first, a.second + b.second};
}

bool stretch_improves(const Stretches *s, const Cascade *g, Price own) {
    const Cut *cut = &s->cut[g->end];
    return !cut->reached ||
           price_less(price_sum(s->cut[g->first].price, own), cut->price);
}

void stretch_offer(Stretches *s, const Cascade *g, Price own) {
    if (stretch_improves(s, g, own))
        s->cut[g->end] = (Cut){.reached = true,
                               .shares = g->n_shared > 0,
                               .price = price_sum(s->cut[g->first].price, own),
                               .first = g->first,
                               .rows = g->rows,
                               .cols = g->cols};
}

bool stretch_rows(const Decisions *d, Cascade *g, uint64_t bytes,
                  RollCost *cost) {
    g->rows = roll_rows(d, *g, bytes, cost);
    if (!g->rows && hwspec_by_columns(d->f->spec))
        g->rows = g->cols = roll_columns(d, *g, bytes, cost);
    return g->rows > 0;
}

bool stretch_roll(Stretches *s, uint32_t first, uint32_t end, uint64_t bytes,
                  RollCost *cost) {
    Cascade g = s->form;
    g.first = first;
    g.end = end;
    if (roll_fits(s->d, g, bytes, cost) &&
        !stretch_improves(s, &g, s->price(s->context, &g, cost)))
        return true;
    if (stretch_rows(s->d, &g, bytes, cost))
        stretch_offer(s, &g, s->price(s->context, &g, cost));
    return g.rows > 0;
}

static void follow(Stretches *s, uint32_t n) {
    const Facts *f = s->d->f;
    s->d->cascade.n = 0;
    for (uint32_t end = n; end > 0; end = s->cut[end].first) {
        const Cut *cut = &s->cut[end];
        Cascade g = s->form;
        g.first = cut->first;
        g.end = end;
        g.rows = cut->rows;
        g.cols = cut->cols;
        if (cut->shares)
            cascade_share(f, &g);
        if (g.rows)
            vec_push(f->arena, &s->d->cascade, g);
    }
}

bool stretches_cut(Stretches *s) {
    const Facts *f = s->d->f;
    uint32_t n = f->schedule->n_steps;
    s->cut = ARENA_ARRAY(f->arena, Cut, n + 1);
    s->cut[0].reached = true;
    for (uint32_t step = 0; step < n; step++)
        if (s->cut[step].reached)
            s->from(s->context, step);
    if (s->cut[n].reached)
        follow(s, n);
    return s->cut[n].reached;
}
