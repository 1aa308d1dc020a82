/* disjunctive.h - the search of planner `exact` for problems with relations,
 * gaps, costs, partitions or several pools.
 *
 *   disjunctive.c          bundles -> Pile: who may lie below whom, and what
 * follows edge_finding.c  what follows from all that is alive at one step
 *   disjunctive_search.c   the search: decide who lies below whom, restarted
 *   improve.c  least cost, then least height, then most hints
 *
 * Two buffers in each other's way are an *edge*: a disjunction of up to three
 * *ways*, each a bound on the difference of two offsets. When a way is left of
 * every edge, the least offsets are a placement: nothing else needs deciding
 * (as in scheduling by precedence constraint posting: Smith and Cheng, 1993).
 */
#ifndef PACK_EXACT_DISJUNCTIVE_H
#define PACK_EXACT_DISJUNCTIVE_H

#include "base/vec.h"
#include "pack/cluster.h"

enum { WAY_BELOW = 1, WAY_ABOVE = 2, WAY_SAME = 4 };

typedef struct Edge {
    uint32_t a, b; /* bundles, both in the pool */
    uint32_t pool;
    int64_t below; /* at[a] + below <= at[b] */
    int64_t above; /* at[b] + above <= at[a] */
    int64_t same;  /* at[a] + same == at[b] */
    /* 0; else the upper one begins in a later partition: */
    int64_t partition, low_a, low_b;
    int64_t ways; /* all that there are */
} Edge;

/* Buffers that are all alive at some step, no two of which can share a byte of
 * the pool. */
typedef struct Section {
    uint32_t pool, n;
    const uint32_t *buf;
} Section;

/* A buffer with a hint. */
typedef struct Wanted {
    uint32_t bundle;
    int64_t at; /* of the bundle */
} Wanted;

typedef struct DisjunctiveChange {
    int64_t *at, was;
} DisjunctiveChange;

/* The limits of a question. */
typedef struct Limit {
    uint64_t cost, height;
    uint32_t hints; /* at least so many kept */
} Limit;

typedef struct Disjunctive {
    Arena *arena;
    const PackProblem *problem;
    const Clusters *bundles;
    uint32_t n;      /* bundles */
    int64_t *bytes;  /* of bundle i in pool p: bytes[i * n_pools + p] */
    int64_t *grid;   /* the same: offsets are its multiples; 0: ask bundle_up */
    uint64_t *costs; /* the same; NULL where nothing costs anything */
    VEC(Edge) edge;
    uint32_t *start, *incident; /* by bundle: its edges */
    VEC(Section) section;
    struct Job *job; /* of the section at hand */
    int64_t *earliest, *raised;
    uint32_t *section_start, *in_section; /* by bundle: its sections */
    Wanted *wanted;
    uint32_t n_wanted;
    Limit limit;
    int64_t *low, *high; /* by bundle: of its offset, once its pool is known */
    int64_t *pools;      /* by bundle: bits, those that are left */
    int64_t *ways;       /* by edge */
    int64_t *given_up;   /* by wanted */
    VEC(DisjunctiveChange) trail;
    uint32_t *queue, *dirty; /* bundles to look at; sections */
    uint32_t n_queue, n_dirty;
    bool *queued, *is_dirty;
    double *weight; /* by bundle: failures */
    bool failed;
    uint64_t work; /* edges and pairs of buffers looked at */
} Disjunctive;

/* ---- disjunctive.c ---- */

/* NULL where there are too many buffers for it. */
Disjunctive *pile_new(Arena *arena, const Clusters *bundles);

/* For a new question; false if the answer is no at first sight. */
bool pile_start(Disjunctive *pile, Limit limit);

/* Each applies one decision; pile_follow then all that follows from what was
 * decided. False if there is no placement within the limit. */
void pile_assign(Disjunctive *pile, uint32_t bundle, int64_t pools);
void pile_order(Disjunctive *pile, uint32_t edge, int64_t ways);
void pile_keep_hint(Disjunctive *pile, uint32_t wanted);
void pile_set(Disjunctive *pile, int64_t *at, int64_t value);
bool pile_follow(Disjunctive *pile);
void pile_undo(Disjunctive *pile, uint32_t trail);

/* The pool of a bundle for which one is left; -1. */
int32_t pile_pool(const Disjunctive *pile, uint32_t bundle);
/* Bytes of the bundle in the pool. */
static inline int64_t pile_bytes(const Disjunctive *pile, uint32_t bundle,
                                 uint32_t pool) {
    return pile->bytes[(size_t)bundle * pile->problem->n_pools + pool];
}
/* How much further up the least offsets would have to go for the way to hold;
 * <= 0: it holds. */
int64_t pile_push(const Disjunctive *pile, const Edge *edge, int64_t way);
/* Room that the way would leave; < 0: none. */
int64_t pile_slack(const Disjunctive *pile, const Edge *edge, int64_t way);
/* The bundle's offset cannot be less, or more. */
void pile_raise(Disjunctive *pile, uint32_t bundle, int64_t low);
void pile_lower(Disjunctive *pile, uint32_t bundle, int64_t high);

/* ---- edge_finding.c ---- */

void sections_make(Disjunctive *pile);
void section_follow(Disjunctive *pile, uint32_t section);

/* ---- disjunctive_search.c ---- */

typedef enum Answer { ANSWER_YES, ANSWER_NO, ANSWER_UNKNOWN } Answer;

/* Is there a placement within the limit? YES: it is pile->low. Spends so many
 * steps and little more. */
Answer pile_ask(Disjunctive *pile, Limit limit, uint64_t seed, uint64_t steps,
                uint64_t *nodes);
/* Steps spent so far. */
uint64_t pile_steps(const Disjunctive *pile);

/* ---- improve.c ---- */

/* As exact_improve. */
void pile_improve(Arena *arena, const PackProblem *problem, PackResult *result);

/* Keeps as many hints as it can at the cost and the height of the placement. */
void pile_keep_hints(Arena *arena, const PackProblem *problem,
                     PackResult *result);

#endif
