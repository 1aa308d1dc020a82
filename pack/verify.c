/* verify.c - the judge of planners; shares no code with them.
 *
 * Input: a problem and a result that claims to solve it. Output: NULL, or a
 * sentence about the first thing that is wrong. One sweep over time keeps the
 * living buffers as a set that is ordered by place; as they never overlapped so
 * far, a newcomer needs to be compared with its two neighbours only, and all
 * takes n log n steps. Buffers whose relations
 * let them overlap others are few: those are kept apart, and compared with all.
 */
#include "pack/pack.h"

#include "base/order.h"
#include "base/ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A placed buffer between two gaps of its life: a box in (pool, bytes, steps).
 */
typedef struct Box {
    uint32_t buf, first, end;
    uint16_t pool;
    bool lenient;       /* may overlap somebody */
    uint64_t low, high; /* bytes [low, high) */
} Box;

typedef struct Judge {
    Arena *arena;
    const PackProblem *problem;
    const PackResult *result;
    uint32_t *start; /* by buffer: of its relations; n_bufs + 1 */
    uint32_t *about; /* indices of relations */
} Judge;

/* ---- relations ---- */

static void list_relations(Judge *j) {
    const PackProblem *p = j->problem;
    j->start = ARENA_ARRAY(j->arena, uint32_t, p->n_bufs + 2u);
    j->about = ARENA_ARRAY(j->arena, uint32_t, 2 * (size_t)p->n_relations);
    for (uint32_t i = 0; i < p->n_relations; i++) {
        j->start[p->relation[i].a + 2]++;
        j->start[p->relation[i].b + 2]++;
    }
    for (uint32_t b = 0; b < p->n_bufs; b++)
        j->start[b + 2] += j->start[b + 1];
    for (uint32_t i = 0; i < p->n_relations; i++) {
        j->about[j->start[p->relation[i].a + 1]++] = i;
        j->about[j->start[p->relation[i].b + 1]++] = i;
    }
}

/* The relation that puts the buffer inside another; NULL if none does. */
static const Relation *where_inside(const Judge *j, uint32_t buf) {
    for (uint32_t i = j->start[buf]; i < j->start[buf + 1]; i++) {
        const Relation *r = &j->problem->relation[j->about[i]];
        if (r->kind == REL_INSIDE && r->a == buf)
            return r;
    }
    return NULL;
}

static bool is_part_of(const Judge *j, uint32_t part, uint32_t whole) {
    const Relation *r = where_inside(j, part);
    for (uint32_t n = 0; r && n < j->problem->n_bufs; n++) {
        if (r->b == whole)
            return true;
        r = where_inside(j, r->b);
    }
    return false;
}

/* Two living buffers share bytes: does a relation let them? */
static bool overlap_allowed(const Judge *j, uint32_t a, uint32_t b) {
    const uint64_t *at = j->result->offset;
    for (uint32_t i = j->start[a]; i < j->start[a + 1]; i++) {
        const Relation *r = &j->problem->relation[j->about[i]];
        if ((r->a != a || r->b != b) && (r->a != b || r->b != a))
            continue;
        bool right = r->kind == REL_SHARE;
        right |= r->kind == REL_SAME && at[a] == at[b];
        right |= r->kind == REL_BELOW &&
                 (int64_t)at[r->a] + r->bytes <= (int64_t)at[r->b];
        if (right)
            return true;
    }
    return is_part_of(j, a, b) || is_part_of(j, b, a);
}

static const char *judge_inside(const Judge *j, const Relation *r) {
    const PackResult *x = j->result;
    uint32_t pool = (uint32_t)x->pool[r->a];
    const uint64_t *part = j->problem->buf[r->a].bytes;
    const uint64_t *whole = j->problem->buf[r->b].bytes;
    if (x->pool[r->a] == x->pool[r->b] && r->bytes >= 0 &&
        x->offset[r->a] == x->offset[r->b] + (uint64_t)r->bytes &&
        (uint64_t)r->bytes + part[pool] <= whole[pool])
        return NULL;
    return arena_printf(j->arena,
                        "buffer %u does not lie inside buffer %u, at its byte "
                        "%" PRId64,
                        r->a, r->b, r->bytes);
}

/* Both lie in the pool: a byte of one in the other's partitions? */
static bool share_partition(const Judge *j, const Relation *r) {
    const PackResult *x = j->result;
    uint32_t pool = (uint32_t)x->pool[r->a];
    uint64_t part = j->problem->pool[pool].partition;
    uint64_t a = x->offset[r->a], b = x->offset[r->b];
    uint64_t a_last = a + j->problem->buf[r->a].bytes[pool] - 1;
    uint64_t b_last = b + j->problem->buf[r->b].bytes[pool] - 1;
    return !part || (a / part <= b_last / part && b / part <= a_last / part);
}

static bool needs_place(const Judge *j, uint32_t buf) {
    for (uint32_t p = 0; p < j->problem->n_pools; p++)
        if (j->problem->buf[buf].bytes[p])
            return true;
    return false;
}

static const char *judge_relations(const Judge *j) {
    for (uint32_t i = 0; i < j->problem->n_relations; i++) {
        const Relation *r = &j->problem->relation[i];
        const char *wrong = NULL;
        if (!needs_place(j, r->a))
            continue;
        if (r->kind == REL_INSIDE)
            wrong = judge_inside(j, r);
        else if (r->kind == REL_APART && needs_place(j, r->b) &&
                 j->result->pool[r->a] == j->result->pool[r->b] &&
                 share_partition(j, r))
            wrong = arena_printf(j->arena,
                                 "buffers %u and %u share a partition of pool "
                                 "%d",
                                 r->a, r->b, j->result->pool[r->a]);
        if (wrong)
            return wrong;
    }
    return NULL;
}

/* ---- each by itself ---- */

static const char *judge_pin(const Judge *j, uint32_t buf) {
    const Buffer *b = &j->problem->buf[buf];
    bool moved = b->pin_pool >= 0 && (b->pin_pool != j->result->pool[buf] ||
                                      b->pin_offset != j->result->offset[buf]);
    if (!moved)
        return NULL;
    return arena_printf(j->arena,
                        "buffer %u is pinned to byte %" PRIu64
                        " of pool %d but lies at byte %" PRIu64 " of pool %d",
                        buf, b->pin_offset, b->pin_pool, j->result->offset[buf],
                        j->result->pool[buf]);
}

/* What one buffer's place must satisfy, the others aside. */
static const char *judge_alone(const Judge *j, uint32_t buf) {
    int32_t pool = j->result->pool[buf];
    uint64_t offset = j->result->offset[buf];
    if (pool < 0)
        return arena_printf(j->arena, "buffer %u has no place", buf);
    if ((uint32_t)pool >= j->problem->n_pools)
        return arena_printf(j->arena, "buffer %u lies in pool %d of %u", buf,
                            pool, j->problem->n_pools);
    uint64_t bytes = j->problem->buf[buf].bytes[pool];
    const Pool *in = &j->problem->pool[pool];
    if (!bytes)
        return arena_printf(j->arena, "buffer %u is not allowed in pool %d",
                            buf, pool);
    if (bytes > in->size || offset > in->size - bytes)
        return arena_printf(j->arena,
                            "buffer %u (%" PRIu64 " bytes at byte %" PRIu64
                            ") leaves pool %d of %" PRIu64 " bytes",
                            buf, bytes, offset, pool, in->size);
    uint64_t own = j->problem->buf[buf].align;
    uint64_t pools = where_inside(j, buf) ? 1 : in->align;
    if (offset % pools || (own && offset % own))
        return arena_printf(j->arena,
                            "buffer %u at byte %" PRIu64 " of pool %d is not "
                            "a multiple of %" PRIu64,
                            buf, offset, pool, offset % pools ? pools : own);
    return judge_pin(j, buf);
}

/* ---- together ---- */

static int compare_births(const void *a, const void *b) {
    const Box *x = a, *y = b;
    return order_by(ORDER_UP(x->first, y->first), ORDER_UP(x->buf, y->buf));
}

static const char *collision(const Judge *j, const Box *a, const Box *b) {
    uint64_t low = a->low > b->low ? a->low : b->low;
    uint64_t high = a->high < b->high ? a->high : b->high;
    uint32_t first = a->first > b->first ? a->first : b->first;
    uint32_t end = a->end < b->end ? a->end : b->end;
    bool ordered = a->buf < b->buf;
    return arena_printf(j->arena,
                        "buffers %u and %u share bytes %" PRIu64 " to %" PRIu64
                        " of pool %u in steps %u to %u",
                        ordered ? a->buf : b->buf, ordered ? b->buf : a->buf,
                        low, high - 1, a->pool, first, end - 1);
}

/* A walk over the boxes in the order of birth. The places of all boxes are
 * ranked beforehand, so that the living are a set of ranks. */
typedef struct Sweep {
    const Box *box;      /* by birth */
    const uint32_t *who; /* by rank: a box */
    const uint32_t *rank;
    Ranks alive;               /* those that overlap nobody */
    const struct Death *death; /* in the order of time */
    uint32_t n_dead;
    uint32_t *lenient; /* those alive that may, by birth */
    uint32_t n_lenient;
} Sweep;

typedef struct Death {
    uint32_t step, box;
} Death;

static int compare_deaths(const void *a, const void *b) {
    const Death *x = a, *y = b;
    return order_by(ORDER_UP(x->step, y->step), ORDER_UP(x->box, y->box));
}

static const Death *list_deaths(const Judge *j, const Box *box, uint32_t n) {
    Death *death = ARENA_ARRAY(j->arena, Death, n);
    for (uint32_t i = 0; i < n; i++)
        death[i] = (Death){box[i].end, i};
    if (n)
        qsort(death, n, sizeof *death, compare_deaths);
    return death;
}

typedef struct Place {
    uint64_t low;
    uint32_t pool, box;
} Place;

static int compare_places(const void *a, const void *b) {
    const Place *x = a, *y = b;
    return order_by3(ORDER_UP(x->pool, y->pool), ORDER_UP(x->low, y->low),
                     ORDER_UP(x->box, y->box));
}

static void rank_places(const Judge *j, Sweep *s, uint32_t n) {
    Arena *scratch = arena_new("places");
    Place *place = ARENA_ARRAY(scratch, Place, n);
    for (uint32_t i = 0; i < n; i++)
        place[i] = (Place){s->box[i].low, s->box[i].pool, i};
    if (n)
        qsort(place, n, sizeof *place, compare_places);
    uint32_t *who = ARENA_ARRAY(j->arena, uint32_t, n);
    uint32_t *rank = ARENA_ARRAY(j->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        who[i] = place[i].box;
        rank[place[i].box] = i;
    }
    arena_free(scratch);
    s->who = who;
    s->rank = rank;
}

/* The one that is born at the step dies later: that ends the first loop. */
static void bury(Sweep *s, uint32_t step) {
    uint32_t kept = 0;
    for (; s->death[s->n_dead].step <= step; s->n_dead++)
        ranks_remove(&s->alive, s->rank[s->death[s->n_dead].box]);
    for (uint32_t i = 0; i < s->n_lenient; i++)
        if (s->box[s->lenient[i]].end > step)
            s->lenient[kept++] = s->lenient[i];
    s->n_lenient = kept;
}

static bool overlap(const Box *a, const Box *b) {
    return a->pool == b->pool && a->low < b->high && b->low < a->high;
}

static const char *compare(const Judge *j, const Box *a, const Box *b) {
    if (!overlap(a, b) || a->buf == b->buf)
        return NULL;
    if (a->lenient && b->lenient && overlap_allowed(j, a->buf, b->buf))
        return NULL;
    return collision(j, a, b);
}

static const char *admit(const Judge *j, Sweep *s, uint32_t newcomer) {
    const Box *box = &s->box[newcomer];
    uint32_t rank = s->rank[newcomer];
    uint32_t below = ranks_below(&s->alive, rank);
    uint32_t above = ranks_above(&s->alive, rank);
    const char *wrong = NULL;
    if (below != RANKS_NONE)
        wrong = compare(j, &s->box[s->who[below]], box);
    if (above != RANKS_NONE && !wrong)
        wrong = compare(j, box, &s->box[s->who[above]]);
    for (uint32_t i = 0; i < s->n_lenient && !wrong; i++)
        wrong = compare(j, &s->box[s->lenient[i]], box);
    if (box->lenient)
        s->lenient[s->n_lenient++] = newcomer;
    else
        ranks_add(&s->alive, rank);
    return wrong;
}

static const char *judge_together(const Judge *j, Box *box, uint32_t n) {
    Sweep sweep = {.box = box, .alive = ranks_new(j->arena, n)};
    if (n)
        qsort(box, n, sizeof *box, compare_births);
    rank_places(j, &sweep, n);
    sweep.death = list_deaths(j, box, n);
    sweep.lenient = ARENA_ARRAY(j->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || box[i].first != box[i - 1].first)
            bury(&sweep, box[i].first);
        const char *wrong = admit(j, &sweep, i);
        if (wrong)
            return wrong;
    }
    return NULL;
}

/* Returns how many boxes the buffer's life has between its gaps. */
static uint32_t cut_life(const Judge *j, uint32_t b, Box *out) {
    const Buffer *buf = &j->problem->buf[b];
    uint64_t low = j->result->offset[b];
    uint32_t pool = (uint32_t)j->result->pool[b], n = 0, from = buf->first;
    Box box = {.buf = b, .pool = (uint16_t)pool, .low = low};
    box.high = low + buf->bytes[pool];
    box.lenient = j->start[b] < j->start[b + 1];
    for (uint32_t i = 0; i <= buf->n_gaps; i++) {
        uint32_t to = i < buf->n_gaps ? buf->gap[i].first : buf->end;
        box.first = from;
        box.end = to < buf->end ? to : buf->end;
        if (box.first < box.end)
            out[n++] = box;
        if (i < buf->n_gaps && buf->gap[i].end > from)
            from = buf->gap[i].end;
    }
    return n;
}

const char *pack_verify(Arena *arena, const PackProblem *problem,
                        const PackResult *result) {
    Judge judge = {.arena = arena, .problem = problem, .result = result};
    list_relations(&judge);
    size_t most = problem->n_bufs;
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        most += problem->buf[b].n_gaps;
    Box *box = ARENA_ARRAY(arena, Box, most);
    uint32_t n = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        if (!needs_place(&judge, b))
            continue;
        const char *wrong = judge_alone(&judge, b);
        if (wrong)
            return wrong;
        n += cut_life(&judge, b, box + n);
    }
    const char *wrong = judge_relations(&judge);
    return wrong ? wrong : judge_together(&judge, box, n);
}
