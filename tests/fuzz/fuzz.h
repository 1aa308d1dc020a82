/* fuzz.h - one input to one reader.
 *
 * An input is a file, or two: the first ends before a line `====`. Readers get
 * them by path as ever, since file_read is replaced (files.c): no file of the
 * disk is seen while a target runs, and no memory stays mapped.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "base/file.h"

typedef struct FuzzInput {
    Arena *arena;
    Diag *diag;
    const char *path; /* of the first file */
    Bytes first, second;
    bool two;
} FuzzInput;

/* A path that leads to the second file, as any but the first's does. */
#define FUZZ_SECOND "fuzz/second"

typedef struct FuzzTarget {
    const char *name, *suffix; /* suffix: of the first file */
    void (*run)(const FuzzInput *input);
    const char *doc;
} FuzzTarget;

extern const FuzzTarget fuzz_targets[]; /* up to a name of NULL */
/* NULL and a line on stderr: there is none of that name. */
const FuzzTarget *fuzz_find(const char *name);

/* Runs one input in an arena of its own; what is said goes nowhere. */
void fuzz_one(const FuzzTarget *target, const uint8_t *data, size_t len);

/* files.c: what file_read gives from now on; NULL: what is on the disk. */
void fuzz_serve(const FuzzInput *input);

#endif
