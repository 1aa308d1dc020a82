/* cluster.h - a problem with gaps and relations, as what a planner moves about.
 *
 * A *bundle* is a buffer with all that lies inside it: one offset places them
 * all. Its *pieces* are what is in others' way: bytes of one buffer during one
 * stretch of its life. Relations between bundles are *links* of their buffers,
 * listed for both; what they mean is told by bundles_clearance and
 * bundles_apart.
 */
#ifndef PACK_CLUSTER_H
#define PACK_CLUSTER_H

#include "pack/pack.h"

typedef struct Piece {
    uint32_t buf, bundle;
    uint32_t first, end; /* steps */
    int64_t low;         /* of its bytes in the bundle */
} Piece;

typedef struct Cluster {
    uint32_t root;                    /* the buffer that holds the others */
    uint32_t first_member, n_members; /* in Bundles.member, root included */
    uint32_t first_piece, n_pieces;
    uint32_t pools; /* bits: where all of it is allowed */
    bool linked;
    int32_t pin_pool; /* -1: free */
    int64_t pin;
} Cluster;

typedef struct Clusters {
    const PackProblem *problem;
    uint32_t n, n_pieces;
    Cluster *bundle;
    Piece *piece;
    uint32_t *member; /* buffers */
    uint32_t *of; /* by buffer: its bundle; PLAN_NO_BUF: it needs no place */
    int64_t *low; /* by buffer: in its bundle */
    uint32_t *parent;      /* by buffer; PLAN_NO_BUF */
    uint32_t *link_start;  /* by buffer: of its links; n_bufs + 1 */
    Relation *link;        /* .a is the buffer itself or .b is */
    uint32_t contradicted; /* a buffer whose relations, pins or alignments
                            * cannot hold together; PLAN_NO_BUF */
} Clusters;

/* No gaps, no relations: every buffer is a bundle of one piece. */
bool problem_is_plain(const PackProblem *problem);

/* Is there a step at which it needs its place? */
bool buf_is_alive(const Buffer *buf);

/* Bytes, and their sums, must be below 2^61; what is larger is contradicted. */
Clusters *bundles_new(Arena *arena, const PackProblem *problem);

int64_t bundle_bytes(const Clusters *bundles, const Cluster *bundle,
                     uint32_t pool);

/* The nearest offset in a pool, not below `at` (or not above it), that the
 * bundle's alignments allow, and its members that must lie in different
 * partitions; -1 if there is none. The pool's size is not looked at. */
int64_t bundle_up(const Clusters *bundles, const Cluster *bundle, uint32_t pool,
                  int64_t at);
int64_t bundle_down(const Clusters *bundles, const Cluster *bundle,
                    uint32_t pool, int64_t at);

/* Where the bundle must lie that a hint is kept; false if none of it has one.
 */
bool bundle_hint(const Clusters *bundles, const Cluster *bundle, uint64_t *at);

/* Of buffers of two bundles that conflict. */
Clearance bundles_clearance(const Clusters *bundles, uint32_t a, uint32_t b,
                            uint32_t pool);
bool bundles_apart(const Clusters *bundles, uint32_t a, uint32_t b);

/* Whether two bundles of one pool are in each other's way. */
bool bundles_collide(const Clusters *bundles, uint32_t pool, const Cluster *a,
                     int64_t at_a, const Cluster *b, int64_t at_b);

/* The partitions that hold some of the bytes. */
typedef struct Extent {
    int64_t first, end;
} Extent;
Extent partitions_of(const Pool *pool, uint64_t at, uint64_t bytes);

/* As plan_live_peak; `pool` >= 0: of what only this pool allows. */
uint64_t bundles_live_peak(Arena *arena, const Clusters *bundles, int32_t pool,
                           uint32_t *at);

/* The stretches of a life between its gaps: false after the last. Begin with
 * `*next` 0 and `*at` the life's first step. */
bool next_span(const Buffer *buf, uint32_t *next, uint32_t *at, Steps *span);

#endif
