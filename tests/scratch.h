/* scratch.h - where tests write files: the folder $TMPDIR, which whoever runs
 * them (tests/all.py, tests/mutants.py) takes away, however they end. */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stdlib.h>

static inline const char *scratch(void) {
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

#endif
