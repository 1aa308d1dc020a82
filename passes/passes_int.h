/* passes_int.h - what the files of this room share. */
#ifndef PASSES_PASSES_INT_H
#define PASSES_PASSES_INT_H

#include "passes/legal_int.h"
#include "passes/rule.h"

/* Sets of rules; each is applied by the pass of the same name. */
extern const RuleSet bias_rules, clean_rules, gate_rules, delay_rules,
    emulate_rules, fold_rules, forms_rules, fuse_rules, split_rules,
    groups_rules, stride_rules, around_rules, phases_rules, sample_rules,
    slabs_rules, pipeline_rules, dilation_rules;
extern const RuleSet *const rule_sets[]; /* all, in order; NULL at the end */

/* The pass of bands.c. */
bool bands_run(Graph *g, PassContext *context);
/* The pass of channels.c. */
bool channels_run(Graph *g, PassContext *context);
bool parts_run(Graph *g, PassContext *context);
/* The pass of canon.c. */
bool canon_run(Graph *g, PassContext *context);
/* The pass of volumes.c. */
bool volumes_run(Graph *g, PassContext *context);
/* The pass of place.c. */
bool place_concats(Graph *g, PassContext *context);

/* ---- for guards (common.c) ---- */

/* The engine that would run node i of the match; -1 also without a machine. */
int32_t match_engine(const Match *m, uint32_t i);

/* The engine that would run `node` with these shapes of its first input and
 * its output; -1 also without a machine. */
int32_t candidate_engine(const Match *m, const Node *node, const Shape *in,
                         const Shape *out);

/* True unless node i runs on an engine now and `changed`, which would stand
 * in its place, would not. Always true without a machine. */
bool keeps_engine(const Match *m, uint32_t i, const Node *changed,
                  const Shape *in, const Shape *out);

static inline bool node_is_depthwise(const Graph *g, const Node *node) {
    return legal_node_op(g, node) == HW_OP_CONV_DEPTHWISE;
}

/* ---- for rewrites ---- */

/* The node becomes another operator of these inputs, without constants and
 * without an activation. */
void node_become(Graph *g, Node *node, OpKind op, const Attrs *attr,
                 uint32_t n_in, const TensorId *in);
/* ... a concat of their channels. */
void node_become_concat(Graph *g, Node *node, uint32_t n, const TensorId *in);
/* Channels [first, first + n) of all constants of `like`. */
void node_take_constants(Graph *g, NodeId to, const Node *like, uint32_t first,
                         uint32_t n);

/* A recipe for one value throughout; `groups` as in Const. */
ConstId constant_of(Graph *g, Shape shape, double value, uint32_t groups);
/* One dimension. */
Shape shape_of(uint32_t n);

/* `n` values of a constant in scratch memory; `absent` where there is none. */
double *read_constant(const Match *m, ConstId id, uint32_t n, double absent);
/* A constant of n computed values, which are copied. */
ConstId write_constant(Match *m, uint32_t n, const double *value);

#endif
