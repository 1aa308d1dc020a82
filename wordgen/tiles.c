/* tiles.c - sizes of tiles: all that differ in their number, the last as large
 * as the limits allow; of these the cheapest, of equal ones the first. */
#include "wordgen/inside.h"

#include <string.h>

enum { MOST_TRIES = 1 << 20 };

typedef struct Search {
    Emitter *e;
    const EmitWay *way;
    int64_t value[8], best_value[8];
    bool found;
    int64_t best;
    uint32_t tries;
} Search;

static bool assign(Search *s) {
    TemplateRun *run = &s->e->w.run;
    for (uint32_t i = 0; i < s->way->n_choices; i++) {
        run->env.set[s->way->choice[i].name] = true;
        run->env.num[s->way->choice[i].name] = s->value[i];
    }
    return template_call(run, s->way->attempt);
}

/* False after a fault. */
static bool within(Search *s, bool *fits) {
    int64_t holds = 1;
    *fits = true;
    if (!assign(s))
        return false;
    for (uint32_t i = 0; i < s->way->n_limits && *fits; i++) {
        if (!template_eval(&s->e->w.run, s->way->limit[i], 1, &holds))
            return false;
        *fits = holds != 0;
    }
    return true;
}

static bool weigh(Search *s) {
    int64_t cost;
    if (!template_eval(&s->e->w.run, s->way->cost, 0, &cost))
        return false;
    if (s->found && cost >= s->best)
        return true;
    s->found = true;
    s->best = cost;
    memcpy(s->best_value, s->value, sizeof s->value);
    return true;
}

static bool extent(Search *s, const EmitChoice *c, int64_t *most,
                   int64_t *step) {
    TemplateRun *run = &s->e->w.run;
    if (!template_eval(run, c->most, 1, most) ||
        !template_eval(run, c->step, 1, step))
        return false;
    if (*most >= 1 && *step >= 1 && *most <= INT32_MAX && *step <= INT32_MAX)
        return true;
    return template_fail(run, c->loc, "a size or its step is below 1");
}

/* The greatest size below `above` that makes another number of tiles; 0: none.
 */
static int64_t next_size(int64_t most, int64_t step, int64_t above) {
    int64_t least = step < most ? step : most;
    if (above > most)
        return most;
    if (above <= least)
        return 0;
    int64_t tiles = (most + above - 1) / above + 1;
    for (;; tiles++) {
        int64_t each = (most + tiles - 1) / tiles;
        int64_t size = (each + step - 1) / step * step;
        if (size < above)
            return size < least ? least : size;
    }
}

static bool visit(Search *s, uint32_t depth) {
    if (depth == s->way->n_choices) {
        bool fits;
        return within(s, &fits) && (!fits || weigh(s));
    }
    bool last = depth + 1 == s->way->n_choices, fits = false;
    int64_t most, step;
    if (!extent(s, &s->way->choice[depth], &most, &step))
        return false;
    int64_t size = most + 1;
    while (!fits && (size = next_size(most, step, size)) > 0) {
        s->value[depth] = size;
        if (!last) {
            if (!visit(s, depth + 1))
                return false;
            continue;
        }
        if (++s->tries > MOST_TRIES)
            return template_fail(&s->e->w.run, s->way->loc,
                                 "there are too many sizes to try");
        if (!within(s, &fits) || (fits && !weigh(s)))
            return false;
    }
    return true;
}

const int64_t *wordgen_choose(Emitter *e, const EmitWay *way, int64_t *cost) {
    Search s = {.e = e, .way = way};
    if (!visit(&s, 0) || !s.found)
        return NULL;
    int64_t *out = ARENA_ARRAY(e->arena, int64_t, 8);
    memcpy(out, s.best_value, sizeof s.best_value);
    *cost = s.best;
    return out;
}

bool wordgen_choice(Emitter *e, const EmitWay *way, const int64_t *chosen) {
    Search s = {.e = e, .way = way};
    memcpy(s.value, chosen, sizeof s.value);
    return assign(&s);
}
