/* legal_int.h - legality as passes ask for it: of nodes that do not exist yet,
 * and of members of a concat. */
#ifndef PASSES_LEGAL_INT_H
#define PASSES_LEGAL_INT_H

#include "passes/legal.h"

#include <stdio.h>

/* A node that may not be in the graph, with the shapes of its first input and
 * of its output. `node->in` are tensors of g (ELTWISE looks at them). */
typedef struct Candidate {
    const HwSpec *spec;
    const Graph *g;
    const Node *node;
    const Shape *in, *out;
    HwOp op;
} Candidate;

/* The operation that the node stands for, as legal_op. */
HwOp legal_node_op(const Graph *g, const Node *node);

/* The node itself as a candidate. Not for INPUT and CONCAT. */
Candidate legal_candidate(const HwSpec *spec, const Graph *g, const Node *node);

/* Engine that would run it and why not; `arena` NULL: no reason is composed
 * (it is "" then). */
Legal legal_judge(Arena *arena, const Candidate *candidate);

/* The engine of a node of the graph, -1 for the host; -1 for INPUT, CONCAT. */
int32_t legal_engine(const HwSpec *spec, const Graph *g, const Node *node);

/* printf into the arena; "" without one. */
const char *legal_say(Arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The table of constraints, for the manual. */
void legal_print(FILE *to);

/* ---- concats: concat.c ---- */

/* What decides where members may lie; valid until the graph changes. */
typedef struct ConcatView {
    const HwSpec *spec;
    const Graph *g;
    uint32_t *claim;  /* by tensor: the concat that may hold it in place */
    uint32_t *index;  /* by tensor: as which of its members */
    uint32_t *others; /* by tensor: readers besides that member */
    int32_t *engine;  /* by node: as legal_engine, once it was asked for */
} ConcatView;
ConcatView concat_view(Arena *arena, const HwSpec *spec, const Graph *g);

/* NULL if concat by placement suits the node's axis and shapes; else why not.
 */
const char *concat_refuses(Arena *arena, const ConcatView *view,
                           const Node *node);

/* NULL if member k, which starts at channel `start` of the concat, can be
 * written in place; else why not. */
const char *concat_refuses_member(Arena *arena, const ConcatView *view,
                                  NodeId concat, uint32_t k, uint32_t start);

/* Whether parts of volumes of such a height and width, at multiples of `step`
 * channels, start where active memories have volumes start, or need not, since
 * instructions of `op` name the whole. */
bool concat_aligned(const HwSpec *spec, HwOp op, const Shape *shape,
                    uint32_t step);

/* Whether instructions of `op` can write parts of `n` channels at multiples of
 * `step` channels: where sections start and the parts lie as volumes of their
 * own, or where a token tells `out.part.start`. True for machines without
 * encodings. */
bool concat_told(const HwSpec *spec, HwOp op, uint32_t step, uint32_t n);

/* NULL if all of it can be in place. */
const char *concat_refuses_any(Arena *arena, const ConcatView *view,
                               NodeId concat);

#endif
