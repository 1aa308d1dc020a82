/* edge_finding.c - what follows from buffers that are all alive at one step.
 *
 * Of such buffers no two share a byte: they stand one upon another, as jobs on
 * a machine run one after another, offsets for times. So the rules of
 * disjunctive scheduling hold; here edge finding (Carlier and Pinson, 1989; in
 * the quadratic form of Baptiste, Le Pape and Nuijten, 2001): where a buffer
 * cannot be but on top of a set of others, it begins above all of these.
 *
 * Input: sections, bounds of offsets. Output: tighter bounds, or failure.
 */
#include "pack/events.h"
#include "pack/exact/disjunctive.h"

#include "base/order.h"

#include <stdlib.h>

typedef struct Job {
    uint32_t bundle;
    int64_t low;          /* in its bundle */
    int64_t release, due; /* begins no lower, ends no higher */
    int64_t bytes;
} Job;

static int by_release(const void *a, const void *b) {
    const Job *x = a, *y = b;
    return order_by(ORDER_UP(x->release, y->release),
                    ORDER_UP(x->bundle, y->bundle));
}

/* ---- edge finding ---- */

/* For the set of jobs due by `due`: raises those that must come after it (the
 * answers in `raised`). False if the set itself has no room. */
static bool find_edges(const Job *job, uint32_t n, int64_t due,
                       int64_t *earliest, int64_t *raised) {
    int64_t bytes = 0, end = INT64_MIN, most = INT64_MIN;
    for (uint32_t i = n; i-- > 0;) {
        if (job[i].due <= due) {
            bytes += job[i].bytes;
            int64_t here = job[i].release + bytes;
            end = here > end ? here : end;
            if (end > due)
                return false;
        }
        earliest[i] = end;
    }
    for (uint32_t i = 0; i < n; i++) {
        const Job *j = &job[i];
        if (j->due <= due) {
            int64_t here = j->release + bytes;
            most = here > most ? here : most;
            bytes -= j->bytes;
            continue;
        }
        if (bytes && j->release + bytes + j->bytes > due &&
            earliest[i] > raised[i])
            raised[i] = earliest[i];
        if (most != INT64_MIN && most + j->bytes > due &&
            earliest[0] > raised[i])
            raised[i] = earliest[0];
    }
    return true;
}

static bool raise_jobs(Disjunctive *pile, Job *job, uint32_t n, bool mirrored) {
    int64_t *earliest = pile->earliest, *raised = pile->raised;
    qsort(job, n, sizeof *job, by_release);
    for (uint32_t i = 0; i < n; i++)
        raised[i] = INT64_MIN;
    for (uint32_t i = 0; i < n; i++)
        if (!find_edges(job, n, job[i].due, earliest, raised))
            return false;
    for (uint32_t i = 0; i < n && !pile->failed; i++) {
        const Job *j = &job[i];
        if (raised[i] <= j->release)
            continue;
        if (mirrored)
            pile_lower(pile, j->bundle, -raised[i] - j->bytes - j->low);
        else
            pile_raise(pile, j->bundle, raised[i] - j->low);
    }
    return !pile->failed;
}

/* Jobs upside down: what cannot be but below. */
static void mirror(Job *job, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        int64_t release = job[i].release;
        job[i].release = -job[i].due;
        job[i].due = -release;
    }
}

static uint32_t list_jobs(const Disjunctive *pile, const Section *s, Job *job) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t b = s->buf[i], bundle = pile->bundles->of[b];
        if (pile->pools[bundle] != INT64_C(1) << s->pool)
            continue;
        int64_t low = pile->bundles->low[b];
        int64_t bytes = (int64_t)pile->problem->buf[b].bytes[s->pool];
        job[n++] = (Job){bundle, low, pile->low[bundle] + low,
                         pile->high[bundle] + low + bytes, bytes};
    }
    return n;
}

void section_follow(Disjunctive *pile, uint32_t section) {
    const Section *s = &pile->section.at[section];
    Job *job = pile->job;
    uint32_t n = list_jobs(pile, s, job);
    pile->work += 2 * (uint64_t)n * n;
    bool fine = n < 2 || raise_jobs(pile, job, n, false);
    if (fine && n > 1) {
        n = list_jobs(pile, s, job);
        mirror(job, n);
        fine = raise_jobs(pile, job, n, true);
    }
    if (fine)
        return;
    pile->failed = true;
    for (uint32_t i = 0; i < n; i++)
        pile->weight[job[i].bundle] += 1.0 / n;
}

/* ---- which ---- */

typedef struct Candidate {
    uint64_t bytes;
    uint32_t buf;
} Candidate;

static int largest_first(const void *a, const void *b) {
    const Candidate *x = a, *y = b;
    return order_by(ORDER_DOWN(x->bytes, y->bytes), ORDER_UP(x->buf, y->buf));
}

/* In every placement their bytes are disjoint. */
static bool always_apart(const Disjunctive *pile, uint32_t a, uint32_t b,
                         uint32_t pool) {
    const Clusters *x = pile->bundles;
    int64_t below = (int64_t)pile->problem->buf[a].bytes[pool];
    int64_t above = (int64_t)pile->problem->buf[b].bytes[pool];
    if (x->of[a] == x->of[b])
        return x->low[a] + below <= x->low[b] || x->low[b] + above <= x->low[a];
    Clearance c = bundles_clearance(x, a, b, pool);
    return !c.free && !c.same && c.below >= below && c.above >= above;
}

/* The largest first, then all that are apart from those before. */
static void section_add(Disjunctive *pile, Candidate *all, uint32_t n,
                        uint32_t pool) {
    uint32_t *buf = ARENA_ARRAY(pile->arena, uint32_t, n), kept = 0;
    if (n)
        qsort(all, n, sizeof *all, largest_first);
    for (uint32_t i = 0; i < n; i++) {
        bool apart = true;
        for (uint32_t k = 0; k < kept && apart; k++)
            apart = always_apart(pile, all[i].buf, buf[k], pool);
        if (apart)
            buf[kept++] = all[i].buf;
    }
    if (kept > 1)
        vec_push(pile->arena, &pile->section, ((Section){pool, kept, buf}));
}

static uint32_t list_events(const Disjunctive *pile, uint32_t pool,
                            LifeEvent *event) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < pile->bundles->n_pieces; i++) {
        const Piece *piece = &pile->bundles->piece[i];
        if (!(pile->bundles->bundle[piece->bundle].pools >> pool & 1))
            continue;
        event[n++] = (LifeEvent){piece->first, true, piece->buf};
        event[n++] = (LifeEvent){piece->end, false, piece->buf};
    }
    events_sort(event, n);
    return n;
}

/* One section for each largest set of those alive together: where somebody
 * dies and the last event was a birth. */
static void sections_of_pool(Disjunctive *pile, uint32_t pool) {
    uint32_t pieces = pile->bundles->n_pieces, alive = 0;
    LifeEvent *event = ARENA_ARRAY(pile->arena, LifeEvent, 2 * (size_t)pieces);
    Candidate *now = ARENA_ARRAY(pile->arena, Candidate, pieces);
    Candidate *copy = ARENA_ARRAY(pile->arena, Candidate, pieces);
    uint32_t n = list_events(pile, pool, event);
    for (uint32_t e = 0; e < n; e++) {
        uint32_t b = event[e].who, at = 0;
        if (event[e].birth) {
            now[alive++] = (Candidate){pile->problem->buf[b].bytes[pool], b};
            continue;
        }
        if (e && event[e - 1].birth) {
            for (uint32_t i = 0; i < alive; i++)
                copy[i] = now[i];
            section_add(pile, copy, alive, pool);
        }
        while (now[at].buf != b)
            at++;
        now[at] = now[--alive];
    }
}

static void list_sections_of_bundles(Disjunctive *pile) {
    uint32_t total = 0;
    pile->section_start = ARENA_ARRAY(pile->arena, uint32_t, pile->n + 2u);
    for (uint32_t s = 0; s < pile->section.n; s++)
        for (uint32_t i = 0; i < pile->section.at[s].n; i++, total++)
            pile->section_start[pile->bundles->of[pile->section.at[s].buf[i]] +
                                2]++;
    for (uint32_t i = 0; i < pile->n; i++)
        pile->section_start[i + 2] += pile->section_start[i + 1];
    pile->in_section = ARENA_ARRAY(pile->arena, uint32_t, total);
    for (uint32_t s = 0; s < pile->section.n; s++)
        for (uint32_t i = 0; i < pile->section.at[s].n; i++) {
            uint32_t bundle = pile->bundles->of[pile->section.at[s].buf[i]];
            pile->in_section[pile->section_start[bundle + 1]++] = s;
        }
}

void sections_make(Disjunctive *pile) {
    uint32_t most = 0;
    for (uint32_t p = 0; p < pile->problem->n_pools; p++)
        sections_of_pool(pile, p);
    for (uint32_t s = 0; s < pile->section.n; s++)
        if (pile->section.at[s].n > most)
            most = pile->section.at[s].n;
    pile->job = ARENA_ARRAY(pile->arena, Job, most);
    pile->earliest = ARENA_ARRAY(pile->arena, int64_t, most);
    pile->raised = ARENA_ARRAY(pile->arena, int64_t, most);
    list_sections_of_bundles(pile);
    pile->dirty = ARENA_ARRAY(pile->arena, uint32_t, pile->section.n);
    pile->is_dirty = ARENA_ARRAY(pile->arena, bool, pile->section.n);
}
