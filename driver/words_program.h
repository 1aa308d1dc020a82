/* words_program.h - networks for machines that run lists of words. */
#ifndef DRIVER_WORDS_PROGRAM_H
#define DRIVER_WORDS_PROGRAM_H

#include "driver/options.h"

/* compile: words, the backing memory before, and what lies where. */
ExitCode compile_words(Arena *arena, Diag *diag, const Options *options);
/* verify: the words as they are read back, by what their rows do; each layer
 * against the network as the machine rounds. */
ExitCode verify_words(Arena *arena, Diag *diag, const Options *options);

#endif
