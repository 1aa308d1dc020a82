/* libfuzzer.c - a target under libFuzzer: `fuzz TARGET [options] FOLDER...`. */
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const FuzzTarget *target;

/* Takes the target's name; libFuzzer gets the rest. Processes that it starts
 * itself find the name in the environment. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    const char *name = getenv("FUZZ_TARGET");
    if (*argc > 1 && (*argv)[1][0] != '-') {
        name = (*argv)[1];
        setenv("FUZZ_TARGET", name, true);
        for (int i = 1; i + 1 <= *argc; i++)
            (*argv)[i] = (*argv)[i + 1];
        --*argc;
    }
    target = fuzz_find(name ? name : "");
    if (!target)
        exit(2);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    fuzz_one(target, data, len);
    return 0;
}
