/* libfuzzer.c - a target under libFuzzer: `fuzz TARGET [options] FOLDER...`. */
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const FuzzTarget *target;

/* Takes the target's name; libFuzzer gets the rest. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    target = *argc > 1 ? fuzz_find((*argv)[1]) : fuzz_find("");
    if (!target)
        exit(2);
    for (int i = 1; i + 1 <= *argc; i++)
        (*argv)[i] = (*argv)[i + 1];
    --*argc;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    fuzz_one(target, data, len);
    return 0;
}
