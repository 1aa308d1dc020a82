/* codes.h - what a kernel on codes needs beside its node's constants. */
#ifndef NATIVE_CODES_H
#define NATIVE_CODES_H

#include "graph/graph.h"
#include "native/program.h"

/* Constants of a kernel, while they are gathered: what the kernel knows of
 * each, and its values. */
typedef struct Constants {
    uint32_t n;
    KernelConst *is;
    Const *value;
} Constants;

/* More constants than any kernel has. */
enum { MOST_CONSTANTS = CONST_ROLES + 6 };

/* Adds a constant whose values `at` (of a type that `kind` names) are alive as
 * long as the kernel. */
void constants_add(Constants *to, const char *role, const Shape *shape,
                   ConstKind kind, const void *at);

/* The weights and the bias of a layer that sums codes, as whole numbers, and
 * what "factor", "shift", those "_below" and "tap_sum" are. */
void codes_sums(Arena *arena, const Graph *g, const Node *node,
                const QuantLayer *layer, Constants *to);
/* What "table" is. */
void codes_table(const QuantLayer *layer, Constants *to);
/* The codes of real numbers, as a constant of their type. */
const Const *codes_of_reals(Arena *arena, const Quant *q, const Const *real);
/* "real0"... and "code": tables between codes of 8 bits and numbers. */
void codes_tables(Arena *arena, const Graph *g, const Node *node,
                  Constants *to);

#endif
