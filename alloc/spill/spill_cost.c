/* spill_cost.c - bytes that move between memories for what leaves, and for what
 * never is there whole.
 *
 * Input: decisions. Output: bytes.
 */
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/spill/parts.h"

double alias_moved(const Facts *f, const AliasClass *alias) {
    return (double)moved_bytes(f, alias->root);
}

/* Some node takes it, or gives it, by parts that come from outside. */
static bool passes_in_parts(const AliasClass *alias) {
    for (uint32_t i = 0; i < alias->n_uses; i++)
        if (alias->use[i].stream && !alias->use[i].by_rows)
            return true;
    return false;
}

/* Whether storing costs nothing: it lies outside anyway. */
bool is_outside(const Decisions *d, const AliasClass *alias) {
    if (alias->n_tensors > 1)
        return false;
    return from_outside(d->f, alias->root) || d->dissolved[alias->root.i] ||
           passes_in_parts(alias) || dests_of(d, alias->root, false).home;
}

/* Steps up to this one may pass the same rows on. */
static uint32_t passes_until(const Decisions *d, uint32_t step) {
    for (uint32_t g = 0; g < d->cascade.n; g++)
        if (d->cascade.at[g].first <= step && step < d->cascade.at[g].end)
            return d->cascade.at[g].end;
    return step + 1;
}

/* How often it passes where nothing of it can have stayed. */
static uint32_t passes_of(const Decisions *d, const AliasClass *alias) {
    bool there = false;
    uint32_t n = 0, until = 0;
    for (uint32_t i = 0; i < alias->n_uses; i++) {
        const Use *use = &alias->use[i];
        there = use->whole || (there && use->by_rows);
        if (!use->stream || there || use->step < until)
            continue;
        n++;
        until = passes_until(d, use->step);
    }
    return n;
}

/* Bytes that each pass moves at least. */
static double least_moved(const Facts *f, const AliasClass *alias) {
    double least = alias_moved(f, alias);
    for (uint32_t i = 1; i < alias->n_tensors; i++) {
        double own = (double)moved_bytes(f, alias->tensor[i]);
        least = own < least ? own : least;
    }
    return least;
}

/* How often all of it comes before its first use, or goes behind it, whatever
 * stays between its uses. */
static uint32_t moves_of(const Decisions *dec, const AliasClass *alias) {
    if (alias->n_tensors > 1 || !alias->n_uses || !alias->use[0].whole ||
        alias->use[0].stream)
        return 0;
    if (from_outside(dec->f, alias->root) || dec->dissolved[alias->root.i])
        return 1;
    Dests d = dests_of(dec, alias->root, false);
    return d.home + d.output;
}

/* Where rows of volumes that stay are read, spills_cost counts what a cascade
 * loads once for several of its nodes more than once: then fewer are counted
 * here, as the sum of both ends plans early. */
double streaming_cost(const Decisions *d) {
    double sum = 0;
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        if (alias->dead || alias->concat ||
            (config_low(d->config) && alias->n_tensors > 1))
            continue;
        uint32_t moves = config_low(d->config) ? 0 : moves_of(d, alias);
        sum += (passes_of(d, alias) + moves) * least_moved(d->f, alias);
    }
    return sum;
}

/* Channels that leave over the interval. */
static uint32_t channels_away(const Facts *f, const AliasClass *alias,
                              uint32_t use) {
    const Use *t = &alias->use[use];
    if (!t->spilled || !t->retained)
        return t->spilled ? wanted_behind(f, alias, use) : 0;
    TensorId *kept = ARENA_ARRAY(f->arena, TensorId, alias->n_tensors);
    uint32_t n = kept_tensors(f, alias, use, kept), away = 0;
    for (uint32_t i = 0; i < n; i++)
        away += plan_volume(f->g, kept[i]).c -
                kept_of(f, alias, kept[i], t->retained);
    return away;
}

/* How often what is away comes by, or back. */
uint32_t loads_of(const AliasClass *alias, const Away *away) {
    return away->n_by_rows + (away->next < alias->n_uses);
}

double spills_cost(const Decisions *d) {
    const Facts *f = d->f;
    double sum = 0;
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        double c = plan_volume(f->g, alias->root).c, most = 0, moved = 0;
        for (uint32_t i = 0; i + 1 < alias->n_uses && !alias->dead; i++) {
            Away away;
            if (!away_find(d, alias, i, &away))
                continue;
            double now = channels_away(f, alias, i);
            moved += now * (is_filling(alias, i) ? 2 : loads_of(alias, &away));
            most = !is_filling(alias, i) && now > most ? now : most;
        }
        sum += alias_moved(f, alias) / c *
               (moved + (is_outside(d, alias) ? 0 : most));
    }
    return sum;
}
