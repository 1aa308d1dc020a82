/* squeeze.c - a placement of many buffers, made lower.
 *
 * Input: a problem of one pool without relations and pins, a placement of it or
 * none, and steps to spend. Output: the lowest that was found.
 * Method: ejection chains (Glover, 1996), guided by what failed before (Nagata
 * and Braysy, 2009). A limit is set between the bound and the height. What
 * stands above it loses its place. One after the other the homeless take the
 * narrowest gap that fits; where there is none, the place where they drive out
 * least: buffers small and short that seldom were in want of a place. When all
 * are housed the placement is kept and the limit falls; when that takes too
 * long, it goes back to the last such placement, and the limit falls by less.
 *
 * What is in a newcomer's way is found from lists of who is alive at some
 * births, and the births since: lives never change, so neither do the lists.
 */
#include "pack/squeeze.h"

#include "base/arith.h"
#include "base/guard.h"
#include "base/order.h"
#include "base/rng.h"
#include "pack/cluster.h"
#include "pack/packers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t OUT = UINT64_MAX; /* it has no place */

static const double MOST_WORTH = 1e60, WANT = 1.5, NOISE = 0.66;

static const double FIRST_PATIENCE = 4e6, /* looks without success */
    MOST_PATIENCE = 1e15;

enum { OUTS_A_LOOK = 4, BOXES_A_LOOK = 4 };

/* A buffer; their order is that of births. */
typedef struct Box {
    uint32_t first, end;
    uint64_t size, at;
} Box;

/* One in the newcomer's way. */
typedef struct Near {
    uint64_t low, high;
    double worth;
    uint32_t box;
} Near;

typedef struct Squeeze {
    const PackProblem *problem;
    PackResult *result;
    uint32_t n;
    Box *box;
    uint32_t *buf; /* by box */
    double *worth; /* by box: its area, and more for each want of a place */
    bool has_gaps;
    uint32_t stride; /* births from one list to the next */
    uint32_t *start; /* by list */
    uint32_t *alive; /* boxes of all lists */
    uint64_t limit;
    uint32_t *out, n_out; /* boxes without a place */
    double area_out;
    Near *near, *sorted; /* `room` each */
    uint64_t *key;       /* twice */
    size_t room;
    uint32_t n_near;
    uint64_t looks, most_looks, drawn;
} Squeeze;

/* ---- who is in the way ---- */

typedef struct Birth {
    uint32_t first, buf;
} Birth;

static int by_birth(const void *a, const void *b) {
    const Birth *x = a, *y = b;
    return order_by(ORDER_UP(x->first, y->first), ORDER_UP(x->buf, y->buf));
}

static double area_of(const Box *box) {
    return (double)box->size * (box->end - box->first);
}

static void list_boxes(Arena *arena, Squeeze *s) {
    const PackProblem *p = s->problem;
    Birth *birth = ARENA_ARRAY(arena, Birth, p->n_bufs);
    for (uint32_t b = 0; b < p->n_bufs; b++)
        if (p->buf[b].bytes[0] && buf_is_alive(&p->buf[b]))
            birth[s->n++] = (Birth){p->buf[b].first, b};
    if (s->n)
        qsort(birth, s->n, sizeof *birth, by_birth);
    s->box = ARENA_ARRAY(arena, Box, s->n);
    s->buf = ARENA_ARRAY(arena, uint32_t, s->n);
    s->worth = ARENA_ARRAY(arena, double, s->n);
    s->out = ARENA_ARRAY(arena, uint32_t, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        const Buffer *b = &p->buf[birth[i].buf];
        s->buf[i] = birth[i].buf;
        s->box[i] =
            (Box){b->first, b->end, round_up(b->bytes[0], p->pool[0].align),
                  s->result->offset[birth[i].buf]};
        s->worth[i] = area_of(&s->box[i]);
        s->has_gaps |= b->n_gaps > 0;
    }
}

/* Keeps those that live at `step` of the first `n`; how many. */
static uint32_t still_alive(const Squeeze *s, uint32_t *alive, uint32_t n,
                            uint32_t step) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->box[alive[i]].end > step)
            alive[kept++] = alive[i];
    return kept;
}

/* With this stride; false if the lists would be longer than `most`. */
static bool list_alive(Squeeze *s, uint32_t *now, size_t most) {
    uint32_t n_now = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (i % s->stride == 0) {
            n_now = still_alive(s, now, n_now, s->box[i].first);
            if (n + n_now > most)
                return false;
            memcpy(s->alive + n, now, n_now * sizeof *now);
            s->start[i / s->stride] = (uint32_t)n;
            n += n_now;
            s->start[i / s->stride + 1] = (uint32_t)n;
        }
        now[n_now++] = i;
    }
    return true;
}

static void index_lives(Arena *arena, Squeeze *s) {
    enum { LEAST_STRIDE = 64, LISTED = 4 };
    Arena *scratch = arena_new("alive");
    uint32_t *now = ARENA_ARRAY(scratch, uint32_t, s->n);
    size_t most = LISTED * (size_t)s->n;
    s->alive = ARENA_ARRAY(arena, uint32_t, most);
    s->start = ARENA_ARRAY(arena, uint32_t, s->n / LEAST_STRIDE + 2u);
    for (s->stride = LEAST_STRIDE; !list_alive(s, now, most); s->stride *= 2)
        continue;
    arena_free(scratch);
}

/* How many may be in the way of one. */
static size_t most_near(const Squeeze *s) {
    size_t most = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t list = i / s->stride, low = i, high = s->n;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (s->box[middle].first < s->box[i].end)
                low = middle + 1;
            else
                high = middle;
        }
        size_t near = s->start[list + 1] - s->start[list];
        near += low - list * s->stride;
        most = near > most ? near : most;
    }
    return most;
}

static void meet(Squeeze *s, uint32_t box, uint32_t other) {
    const Box *x = &s->box[box], *y = &s->box[other];
    if (y->at == OUT || y->end <= x->first || other == box)
        return;
    if (s->has_gaps && !bufs_conflict(&s->problem->buf[s->buf[box]],
                                      &s->problem->buf[s->buf[other]]))
        return;
    s->near[s->n_near++] =
        (Near){y->at, y->at + y->size, s->worth[other], other};
}

static void meet_all(Squeeze *s, uint32_t box) {
    const Box *x = &s->box[box];
    uint32_t list = box / s->stride, i = list * s->stride;
    s->n_near = 0;
    for (uint32_t k = s->start[list]; k < s->start[list + 1]; k++)
        meet(s, box, s->alive[k]);
    s->looks += s->start[list + 1] - s->start[list];
    for (; i < s->n && s->box[i].first < x->end; i++, s->looks++)
        meet(s, box, i);
    s->looks += s->n_near;
}

/* ---- from low to high ---- */

static uint64_t key_of(const Near *near, bool by_high) {
    return by_high ? near->high : near->low;
}

static void insert_each(Near *near, uint32_t n, bool by_high) {
    for (uint32_t i = 1; i < n; i++) {
        Near moved = near[i];
        uint32_t k = i;
        for (; k && key_of(&near[k - 1], by_high) > key_of(&moved, by_high);
             k--)
            near[k] = near[k - 1];
        near[k] = moved;
    }
}

/* By the first 22 bits of the keys, digit by digit; what is left to do is
 * little. */
static void sort_near(Squeeze *s, const Near *near, bool by_high,
                      Near *sorted) {
    enum { BITS = 11, DIGITS = 1 << BITS, FEW = 40 };
    uint32_t n = s->n_near;
    if (n <= FEW) {
        memcpy(sorted, near, n * sizeof *sorted);
        insert_each(sorted, n, by_high);
        return;
    }
    uint32_t low[DIGITS + 1] = {0}, high[DIGITS + 1] = {0};
    uint64_t *key = s->key, *other = key + s->room;
    int shift = 0;
    while (s->limit >> shift >> 2 * BITS)
        shift++;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t digits = key_of(&near[i], by_high) >> shift;
        key[i] = digits << 32 | i;
        low[digits % DIGITS + 1]++;
        high[(digits >> BITS) % DIGITS + 1]++;
    }
    for (uint32_t d = 1; d < DIGITS; d++) {
        low[d] += low[d - 1];
        high[d] += high[d - 1];
    }
    for (uint32_t i = 0; i < n; i++)
        other[low[(key[i] >> 32) % DIGITS]++] = key[i];
    for (uint32_t i = 0; i < n; i++)
        key[high[(other[i] >> (32 + BITS)) % DIGITS]++] = other[i];
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = near[(uint32_t)key[i]];
    insert_each(sorted, n, by_high);
}

/* ---- a place for one ---- */

typedef struct Place {
    uint64_t at;
    double cost;
} Place;

static uint64_t align_of(const Squeeze *s, uint32_t box) {
    return buf_align(&s->problem->pool[0], &s->problem->buf[s->buf[box]]);
}

/* The narrowest gap that holds it; `sorted` rises. */
static Place find_gap(const Squeeze *s, uint32_t box) {
    Place best = {OUT, INFINITY};
    uint64_t size = s->box[box].size, align = align_of(s, box), floor = 0;
    for (uint32_t i = 0; i <= s->n_near; i++) {
        uint64_t top = i < s->n_near ? s->sorted[i].low : s->limit;
        uint64_t at = round_up(floor, align);
        if (top >= size && at <= top - size &&
            (double)(top - floor) < best.cost)
            best = (Place){at, (double)(top - floor)};
        if (i < s->n_near && s->sorted[i].high > floor)
            floor = s->sorted[i].high;
    }
    return best;
}

static double noise(Squeeze *s) {
    return 1 + NOISE * (1 + rng_unit(s->problem->seed, s->drawn++)) / 2;
}

static void weigh(Squeeze *s, uint64_t at, double cost, Place *best) {
    if (cost >= best->cost)
        return; /* noise only adds */
    cost *= noise(s);
    if (cost < best->cost)
        *best = (Place){at, cost};
}

/* The place where what is in the way is worth least: on top of some of it
 * (`high`), or below. `low` and `high` are the same, sorted by each. */
static Place find_cheapest(Squeeze *s, uint32_t box, const Near *low,
                           const Near *high) {
    Place best = {OUT, INFINITY};
    uint64_t size = s->box[box].size, align = align_of(s, box);
    if (size > s->limit)
        return best;
    uint64_t last = s->limit - size;
    double below = 0, begun = 0; /* worth of what ends, what begins so far */
    uint32_t n = s->n_near, k = 0;
    for (uint32_t i = 0; i <= n; i++) {
        uint64_t at = i ? round_up(high[i - 1].high, align) : 0;
        below += i ? high[i - 1].worth : 0;
        if (at > last)
            break;
        for (; k < n && low[k].low < at + size; k++)
            begun += low[k].worth;
        weigh(s, at, begun - below, &best);
    }
    below = begun = 0;
    k = 0;
    for (uint32_t i = 0; i <= n; i++) {
        uint64_t top = i < n ? low[i].low : s->limit;
        if (top >= size) {
            uint64_t at = (top - size) / align * align;
            for (; k < n && high[k].high <= at; k++)
                below += high[k].worth;
            weigh(s, at, begun - below, &best);
        }
        begun += i < n ? low[i].worth : 0;
    }
    return best;
}

static void evict(Squeeze *s, uint32_t box) {
    s->box[box].at = OUT;
    s->out[s->n_out++] = box;
    s->area_out += area_of(&s->box[box]);
}

static void drive_out(Squeeze *s, uint32_t box, uint64_t at) {
    uint64_t end = at + s->box[box].size;
    for (uint32_t i = 0; i < s->n_near; i++) {
        const Near *near = &s->sorted[i];
        if (near->low < end && near->high > at)
            evict(s, near->box);
    }
}

static void house(Squeeze *s, uint32_t box) {
    meet_all(s, box);
    sort_near(s, s->near, false, s->sorted);
    Place place = find_gap(s, box);
    if (place.at == OUT) {
        sort_near(s, s->sorted, true, s->near);
        s->worth[box] *= s->worth[box] < MOST_WORTH ? WANT : 1;
        place = find_cheapest(s, box, s->sorted, s->near);
        s->looks += 2 * s->n_near;
        drive_out(s, box, place.at);
    }
    s->box[box].at = place.at;
    s->area_out -= area_of(&s->box[box]);
}

/* ---- the limit ---- */

static uint64_t height_of(const Squeeze *s) {
    uint64_t height = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t end = s->box[i].at + s->box[i].size;
        height = end > height ? end : height;
    }
    return height;
}

static void evict_above(Squeeze *s) {
    s->n_out = 0;
    s->area_out = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->box[i].at + s->box[i].size > s->limit)
            evict(s, i);
}

/* Of those without a place the one that is worth most: the small find theirs
 * between the large. */
static uint32_t take_homeless(Squeeze *s) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < s->n_out; i++)
        if (s->worth[s->out[i]] > s->worth[s->out[best]])
            best = i;
    uint32_t box = s->out[best];
    s->out[best] = s->out[--s->n_out];
    s->looks += s->n_out / OUTS_A_LOOK;
    return box;
}

static bool is_over(const Squeeze *s) {
    return s->looks >= s->most_looks || pack_late(s->problem);
}

/* Houses all within the limit, or gives up when for so many steps there were
 * never fewer homeless than before. */
static bool house_all(Squeeze *s, uint64_t patience) {
    uint64_t end = s->looks + patience;
    evict_above(s);
    double least = s->area_out;
    while (s->n_out && s->looks < end && !is_over(s)) {
        guard_poll();
        house(s, take_homeless(s));
        if (s->area_out >= least)
            continue;
        least = s->area_out;
        end = s->looks + patience;
    }
    return !s->n_out;
}

static void keep(Squeeze *s) {
    for (uint32_t i = 0; i < s->n; i++)
        s->result->offset[s->buf[i]] = s->box[i].at;
    pack_tell(s->problem, s->result);
}

static void go_back(Squeeze *s) {
    for (uint32_t i = 0; i < s->n; i++)
        s->box[i].at = s->result->offset[s->buf[i]];
}

/* From the height down, by a part of the way to the goal. */
static uint64_t next_limit(const Squeeze *s, uint64_t goal, uint64_t height,
                           double part) {
    uint64_t fall = (uint64_t)((double)(height - goal) * part);
    uint64_t align = s->problem->pool[0].align;
    uint64_t limit = (height - fall) / align * align;
    limit = limit < height ? limit : height - align;
    return limit > goal ? limit : goal;
}

/* Small falls are soon done or soon given up; the longer it takes to make one,
 * the more may be spent on it. */
static void descend(Squeeze *s, uint64_t goal) {
    static const double first_part = 1. / 16, most_part = 0.5,
                        least_part = 1. / 256, growth = 1.5, patience = 1.2;
    double part = first_part, patient = FIRST_PATIENCE;
    uint64_t height = height_of(s);
    while (height > goal && !is_over(s)) {
        s->limit = next_limit(s, goal, height, part);
        s->looks += s->n / BOXES_A_LOOK;
        if (house_all(s, (uint64_t)patient)) {
            keep(s);
            height = height_of(s);
            part = fmin(part * growth, most_part);
        } else {
            go_back(s);
            part = fmax(part / 2, least_part);
            patient = fmin(patient * patience, MOST_PATIENCE);
        }
    }
}

uint64_t squeeze_down(const PackProblem *problem, uint64_t goal,
                      uint64_t most_looks, PackResult *result) {
    Arena *arena = arena_new("squeeze");
    Squeeze s = {
        .problem = problem, .result = result, .most_looks = most_looks};
    list_boxes(arena, &s);
    index_lives(arena, &s);
    s.room = most_near(&s);
    s.near = ARENA_ARRAY(arena, Near, s.room);
    s.sorted = ARENA_ARRAY(arena, Near, s.room);
    s.key = ARENA_ARRAY(arena, uint64_t, 2 * s.room);
    descend(&s, round_up(goal, problem->pool[0].align));
    arena_free(arena);
    return s.looks;
}
