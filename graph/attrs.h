/* attrs.h - attributes by name; inside graph/ only. */
#ifndef GRAPH_ATTRS_H
#define GRAPH_ATTRS_H

#include "graph/graph.h"

/* Sets the attribute that `pair` names. Returns NULL, or what is wrong with
 * the pair, to be put behind its name. "act" must come before the attributes
 * of the activation. */
const char *attr_set(Arena *arena, Node *node, const AttrPair *pair);

#endif
