/* listed_words.h - words of machines whose instructions they are made of. */
#ifndef DRIVER_LISTED_WORDS_H
#define DRIVER_LISTED_WORDS_H

#include "driver/options.h"

/* Is it `--emit words` for a machine with listings and words? */
bool options_listed_words(Arena *arena, const Options *options);
/* compile: words, the backing memory before, and what lies where. */
ExitCode compile_listed_words(Arena *arena, Diag *diag, const Options *options);
/* verify: the words as they are read back, by what their rows do; what each
 * instruction of the listing makes, where it lies, against the network as the
 * machine rounds; and their tokens. */
ExitCode verify_listed_words(Arena *arena, Diag *diag, const Options *options);

#endif
