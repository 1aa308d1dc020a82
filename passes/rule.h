/* rule.h - the engine of rewrite rules, and what a rewrite may call.
 *
 * A rule is a row: a chain of operators in which each reads only the one
 * before it, a guard that says what the chain cannot, and a rewrite. A set of
 * rules is applied to a fixed point. Each firing must make the graph smaller
 * by a measure (rule.c: the sum of node weights); the engine checks it, so
 * that termination is no promise of the rules.
 *
 * A rewrite changes only nodes of its match and nodes that it adds.
 */
#ifndef PASSES_RULE_H
#define PASSES_RULE_H

#include "passes/pass.h"

enum { RULE_MAX_CHAIN = 3 };

/* A set of operators, as bits; the last one is free for what follows. */
_Static_assert(OP_COUNT < 62, "a set of operators is 62 bits");
#define OPS(NAME) (UINT64_C(1) << OP_##NAME)
/* In a chain, with a set: it reads the one before it as its second input. */
#define BY_SECOND (UINT64_C(1) << 63)
/* In a chain, with the first set: the rule holds for quantised layers too,
 * whose tensors all have one quantisation unless the layer computes sums. */
#define ON_CODES (UINT64_C(1) << 63)
/* In such a chain, with a set: the node may change the quantisation. */
#define REQUANTS (UINT64_C(1) << 62)

typedef struct Rewriter Rewriter; /* of rule.c */

typedef struct Match {
    Graph *g;
    PassContext *context;
    Rewriter *rewriter;
    uint32_t n;
    NodeId node[RULE_MAX_CHAIN]; /* in the order of the data */
} Match;

typedef struct Rule {
    const char *name;
    uint32_t n;
    uint64_t chain[RULE_MAX_CHAIN]; /* sets of operators, first to last */
    bool (*guard)(const Match *m);  /* NULL: the chain says it all */
    void (*rewrite)(Match *m);
    const char *why;
} Rule;

typedef struct RuleSet {
    const char *pass; /* that applies it */
    uint32_t n;
    const Rule *rule;
} RuleSet;

/* Applies the set until no rule of it matches. True always: rules report no
 * errors. */
bool rules_apply(Graph *g, PassContext *context, const RuleSet *set);

/* ---- for guards and rewrites ---- */

/* Valid until the next node or tensor is added. */
Node *match_node(const Match *m, uint32_t i);
Tensor *match_in(const Match *m, uint32_t i);  /* first input of node i */
Tensor *match_out(const Match *m, uint32_t i); /* first output of node i */
/* Nodes that read a tensor; a node that reads it twice counts twice. */
uint32_t match_readers(const Match *m, TensorId tensor);
/* Exactly one reader, and no network output. */
bool match_is_private(const Match *m, TensorId tensor);

/* Node `i + 1` is done by node i from now on: its output takes over. */
void match_fuse_behind(Match *m, uint32_t i);
/* Node i is done by node `i + 1` from now on, which reads what i read. */
void match_fuse_before(Match *m, uint32_t i);
/* Node i goes; readers of its outputs read its input. */
void match_bypass(Match *m, uint32_t i);
/* Node i goes; readers of its only output read `tensor`, which has its values.
 */
void match_hand_over(Match *m, uint32_t i, TensorId tensor);
/* Node i goes, and nothing takes its place. */
void match_kill(Match *m, uint32_t i);

typedef struct NewNode {
    OpKind op;
    const char *name;
    uint32_t n_in;
    const TensorId *in;
    Attrs attr;
    Act act;
    const char *gloss; /* what such names mean, as a sentence */
} NewNode;

/* The output of a node that will stand right before node i; it bears the
 * node's name and has the shape that follows. */
TensorId match_add(Match *m, uint32_t i, const NewNode *node);

#endif
