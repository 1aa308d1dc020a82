/* pqtree.h - all orders in which certain sets lie side by side.
 *
 * Booth and Lueker, "Testing for the consecutive ones property ... using
 * PQ-tree algorithms", 1976. A tree stands for a set of orders of its leaves:
 * the children of a P node come in any order, those of a Q node in the order
 * given or its reverse. Nodes never change: a new tree shares what it keeps
 * with the old one, so that a search goes back by dropping a pointer.
 */
#ifndef PACK_EXACT_PQTREE_H
#define PACK_EXACT_PQTREE_H

#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>

typedef enum PqKind { PQ_LEAF, PQ_P, PQ_Q } PqKind;
typedef struct PqNode {
    PqKind kind;
    uint32_t leaf;  /* its name */
    uint32_t stamp; /* the caller's, of the call that made it */
    uint32_t n, n_leaves;
    const struct PqNode *const *child;
} PqNode;

typedef VEC(const PqNode *) PqNodes;

/* Where a set of leaves was taken out. */
typedef struct PqCut {
    const uint32_t *order; /* the leaves, as they lay side by side */
    uint32_t n;
    uint32_t witness; /* a leaf that stays, in front of them if they lie in
                       * this order, behind them if in the reverse; PQ_NONE:
                       * either is as good */
} PqCut;
#define PQ_NONE UINT32_MAX

const PqNode *pq_leaf(Arena *arena, uint32_t stamp, uint32_t leaf);

/* Leaves or trees in any order; `n` > 0. */
const PqNode *pq_any(Arena *arena, uint32_t stamp, const PqNode *const *child,
                     uint32_t n);

/* The orders of `tree` in which the leaves that are `marked` (by name; `n` > 0
 * of them) lie side by side, with `other` in their place. NULL: there are
 * none. */
const PqNode *pq_replace(Arena *arena, uint32_t stamp, const PqNode *tree,
                         const bool *marked, uint32_t n, const PqNode *other,
                         PqCut *cut);

/* The orders of `tree` in which the marked leaves lie side by side, or NULL. */
const PqNode *pq_together(Arena *arena, uint32_t stamp, const PqNode *tree,
                          const bool *marked, uint32_t n);

/* Marked leaves that lie side by side in all orders: the largest such sets.
 * Adds to `runs`. */
typedef struct PqRun {
    const uint32_t *leaf;
    uint32_t n;
} PqRun;
typedef VEC(PqRun) PqRuns;
void pq_runs(Arena *arena, const PqNode *tree, const bool *marked,
             PqRuns *runs);

/* Adds the stamps of the nodes that keep the marked leaves where they are. */
typedef VEC(uint32_t) PqStamps;
void pq_reasons(Arena *arena, const PqNode *tree, const bool *marked,
                uint32_t n, PqStamps *stamps);

/* Adds the leaves to the list, in one of the orders. */
void pq_leaves(const PqNode *tree, uint32_t *list, uint32_t *n);

#endif
