/* heat.c - all ways to plan for one size of active memory.
 *
 * Input: a contest, a size. Output: the plans that fit, with what they move.
 * Some ways are tried only where plans of others ask for them: whole volumes
 * leave where parts did, groups have a price for instructions where there were
 * too many.
 */
#include "alloc/contest.h"

#include <math.h>

/* Bytes over DDR that an instruction is worth where there are too many. */
enum { LEAST_THRIFT = 4096, MOST_THRIFT = 8 * 8 * LEAST_THRIFT };

/* False if it is of no use. */
static bool enter(Heat *h, Attempt *a) {
    bool acts = way_act(a, diag_new(a->arena));
    a->w->brief = false;
    a->traffic.too_long = a->w->gave_up;
    if (!acts)
        return false;
    a->traffic = plan_traffic(a->plan);
    double bytes = (double)traffic_bytes(a->traffic);
    h->stops |= h->c->enough && !a->traffic.too_long;
    if (h->fewest && !a->traffic.too_long && bytes >= h->most)
        return false;
    if (h->fewest && !a->traffic.too_long)
        h->most = bytes;
    vec_push(h->c->arena, &h->entry, a);
    return true;
}

/* The ways that the one asks for; `a` is its plan, or NULL. */
static void follow(Heat *h, Way way, bool by_parts, bool too_long) {
    if (by_parts && !way.low && !way.wholes) {
        Way wholes = way;
        wholes.wholes = true;
        heat_way(h, wholes);
    }
    bool hastens = way.haste && has_many_steps(h->c);
    bool groups = !way.thrift && !way.runs && (way.share || way.rolls) &&
                  !(hastens && way.low);
    for (uint32_t kind = 1; groups && kind < KIND_END; kind *= 2)
        if (h->c->kinds & kind && way.apart < kind) {
            Way fewer = way;
            fewer.apart |= kind;
            heat_way(h, fewer);
        }
    if (way.share && !way.apart && too_long && way.thrift < MOST_THRIFT &&
        !hastens) {
        Way longer = way;
        longer.thrift = way.thrift ? 8 * way.thrift : LEAST_THRIFT;
        heat_way(h, longer);
    }
}

/* Two ways may ask for the same third one. */
static bool is_tried(Heat *h, const Way *way) {
    for (uint32_t i = 0; i < h->tried.n; i++) {
        const Way *b = &h->tried.at[i].way;
        if (way->most <= b->most && way->size == b->size &&
            way->share == b->share && way->rolls == b->rolls &&
            way->runs == b->runs && way->narrow == b->narrow &&
            way->streams == b->streams &&
            way->wholes == b->wholes && way->apart == b->apart &&
            way->low == b->low && way->mends == b->mends &&
            way->thrift == b->thrift && way->haste == b->haste &&
            way->price == b->price)
            return true;
    }
    vec_push(h->c->arena, &h->tried, (Tried){.way = *way});
    return false;
}

/* A way that has chosen the same groups, and differs in nothing that matters
 * from there on: its plan is the same. NULL: there is none. */
static const Tried *find_twin(const Heat *h, const Way *way,
                              const Group *groups) {
    for (uint32_t i = 0; i < h->tried.n && groups; i++) {
        const Tried *t = &h->tried.at[i];
        const Way *b = &t->way;
        if (t->groups == groups && way->size == b->size &&
            way->most <= b->most && way->most >= b->most &&
            way->runs == b->runs && way->narrow == b->narrow &&
            way->wholes == b->wholes && way->low == b->low)
            return t;
    }
    return NULL;
}

/* Places it, and keeps it if it is of use. */
static Tried attempt(Heat *h, const Way *way) {
    Arena *arena = arena_new("way");
    Attempt *a = ARENA_NEW(arena, Attempt);
    way_open(arena, h->c, way, a);
    const Tried *twin = find_twin(h, way, a->w->chosen);
    Tried t = twin ? *twin : (Tried){.groups = a->w->chosen};
    bool placed = !twin && way_settle(h->c, a), entered = false;
    if (!twin) {
        h->fits |= placed || a->hopeless || a->too_long;
        t.by_parts = placed && a->plan->by_parts;
        t.height = a->height;
        h->stops |= placed && h->places;
        entered = placed && !h->places && enter(h, a);
        t.too_long = a->too_long || (placed && a->traffic.too_long);
    }
    if (!entered)
        arena_free(arena);
    t.way = *way;
    return t;
}

/* False if there was nothing to try; `way` is then as it was tried. */
static bool heat_try(Heat *h, Way *at, Tried *tried) {
    Way way = *at;
    uint32_t n = h->tried.n;
    h->height = 0;
    way.most = h->most;
    if (h->stops || way.size < h->c->never ||
        budget_spent(h->c->options->budget) || is_tried(h, &way))
        return false;
    way.loose = h->loose;
    way.tight = h->tight;
    way.falls = h->falls;
    way.others = h->others;
    way.brief = h->loose || h->c->enough;
    *at = way;
    *tried = h->tried.at[n] = attempt(h, &way);
    h->height = tried->height;
    return true;
}

void heat_way(Heat *h, Way way) {
    Tried tried;
    if (!heat_try(h, &way, &tried))
        return;
    follow(h, way, tried.by_parts, tried.too_long);
    h->height = tried.height;
}

void heat_alone(Heat *h, Way way) {
    Tried tried;
    heat_try(h, &way, &tried);
}

/* Products computed again that are worth a byte over DDR, where time counts:
 * groups that compute less again, and such without. */
static const uint32_t hastes[] = {50, 150};
enum { LOW = 8, PLAIN_HASTE = 50, N_HASTES = sizeof hastes / sizeof *hastes };
enum { MANY_HASTE = 150 }; /* of many steps just these */

/* Groups beside volumes that stay: where machines can copy rows of these. */
static void low_ways(Heat *h, uint64_t size) {
    Way low = {.size = size, .share = 16, .low = LOW};
    if (weighs_time(h->c) && has_many_steps(h->c)) {
        low.haste = MANY_HASTE;
        heat_way(h, low);
        return;
    }
    heat_way(h, (Way){.size = size, .low = LOW, .mends = true});
    if (!weighs_time(h->c)) {
        heat_way(h, low);
        return;
    }
    for (uint32_t i = 0; i < N_HASTES; i++) {
        low.haste = hastes[i];
        heat_way(h, low);
    }
}

static void beside_ways(Heat *h, uint64_t size) {
    const HwTiling *tiling = &h->c->schedule->spec->tiling;
    bool timed = weighs_time(h->c);
    if (tiling->kind != HW_TILING_SOFTWARE || tiling->rings)
        return;
    low_ways(h, size);
    if (timed)
        heat_way(h, (Way){.size = size, .share = 16, .haste = PLAIN_HASTE});
}

/* Layers that roll, or run by groups, in so many runs hide what moves. */
static void ring_ways(Heat *h, uint64_t size) {
    static const uint32_t runs[] = {8, 16};
    enum { N_RUNS = sizeof runs / sizeof *runs };
    heat_way(h, (Way){.size = size, .rolls = true});
    heat_way(h, (Way){.size = size, .share = 16});
    for (uint32_t i = 0; i < N_RUNS && !h->c->enough; i++)
        heat_way(h, (Way){.size = size, .share = 16, .runs = runs[i]});
    heat_way(h, (Way){.size = size});
}

/* Layers that never run whole: beside what stays or all of them from outside,
 * with tiles for each price of a byte, or some of them. */
static void tile_ways(Heat *h, uint64_t size) {
    enum { SOME = 3 };
    if (h->c->enough) { /* all from outside mostly takes the least */
        heat_way(h, (Way){.size = size, .tiny = true, .streams = true});
        heat_way(h, (Way){.size = size, .tiny = true});
        return;
    }
    uint32_t every = has_many_steps(h->c) ? SOME : 1;
    for (uint32_t i = 0; i < N_NEST_PRICES; i += every) {
        Way way = {.size = size, .price = nest_prices[i]};
        heat_way(h, way);
        way.streams = true;
        heat_way(h, way);
    }
}

void heat_ways(Heat *h, uint64_t size, bool beside) {
    const HwTiling *tiling = &h->c->schedule->spec->tiling;
    if (tiling->rings && weighs_time(h->c)) {
        ring_ways(h, size);
        return;
    }
    if (tiling->always && weighs_time(h->c)) {
        tile_ways(h, size);
        return;
    }
    heat_way(h, (Way){.size = size});
    if (tiling->always)
        heat_way(h, (Way){.size = size, .streams = true});
    if (tiling->rings)
        heat_way(h, (Way){.size = size, .rolls = true});
    heat_way(h, (Way){.size = size, .share = 16});
    if (beside)
        beside_ways(h, size);
}

void heat_drop(Heat *h, uint32_t entry) {
    Attempt *a = h->entry.at[entry];
    h->entry.at[entry] = NULL;
    if (a)
        arena_free(a->arena);
}

void heat_free(Heat *h) {
    for (uint32_t i = 0; i < h->entry.n; i++)
        heat_drop(h, i);
    h->entry.n = 0;
}
