/* bundle.h - values of variables beside a SavedModel.
 *
 * In: the path of variables/variables, whose .index is a sorted table of keys
 * and whose .data-*-of-* hold the bytes. Out: type, shape and bytes of a key;
 * files are opened when one of their values is asked for.
 */
#ifndef FRONTENDS_TENSORFLOW_BUNDLE_H
#define FRONTENDS_TENSORFLOW_BUNDLE_H

#include "base/file.h"
#include "graph/graph.h"

typedef struct Bundle Bundle;

typedef struct BundleValue {
    uint32_t type; /* a DataType's number */
    Shape shape;
    Bytes bytes;
} BundleValue;

/* NULL after errors. */
Bundle *bundle_open(Arena *arena, Diag *diag, const char *path);

/* False where it has no such key; after errors too, which `diag` counts. */
bool bundle_find(Bundle *bundle, const char *key, BundleValue *out);

#endif
