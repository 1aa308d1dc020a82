/* word_run.h - what a run of lists of words was found to be: codes against the
 * network as the machine rounds, what moved, what went wrong. */
#ifndef DRIVER_WORD_RUN_H
#define DRIVER_WORD_RUN_H

#include "driver/pipeline.h"
#include "driver/rounding.h"
#include "sim/does.h"

#include <cjson/cJSON.h>

/* Codes of something that was compared. */
typedef struct WordCodes {
    const char *layer;
    uint32_t insn; /* of the listing */
    uint64_t codes, wrong;
    double most; /* by how much one is off */
} WordCodes;

typedef struct WordRun {
    const char *what;     /* is compared: "layers", "tiles" */
    WordCodes all, first; /* first: that has wrong ones; layer NULL: none */
    uint32_t compared, unknown;           /* of `what` */
    uint64_t instructions, read, written; /* of the backing memory */
    int64_t cycles;                       /* below 0: nobody says */
    uint32_t token_faults;
    const char *fault;
    Loc at;
    bool whole; /* all that there is was run */
} WordRun;

/* A value that should be `want`. */
static inline void word_codes_add(WordCodes *to, float got, float want) {
    double off = (double)got - (double)want;
    off = off < 0 ? -off : off;
    to->codes++;
    to->wrong += off > 0;
    to->most = off > to->most ? off : to->most;
}
/* One more is compared. */
void word_run_compared(WordRun *run, const WordCodes *codes);
/* A list was run. */
void word_run_did(WordRun *run, const DoesResult *done, int32_t backing);
bool word_run_right(const WordRun *run);

/* The verdict as JSON: its begin, its values, its end. */
cJSON *word_run_json(const WordRun *run, const Pipeline *p);
void word_run_json_values(const WordRun *run, cJSON *json);
void word_run_json_end(const WordRun *run, const Roundings *rounded,
                       cJSON *json);
/* ... and as lines: "values", "first"; "fault". */
void word_run_print(Arena *arena, const WordRun *run, const char *compared);
void word_run_print_fault(Arena *arena, const WordRun *run);

/* What a network gives, on the inputs that are given or made. */
typedef struct WordWanted {
    const float *const *inputs;
    Values reference; /* of p->original */
    Roundings rounded;
} WordWanted;
/* False after an error. */
bool word_wanted(Arena *arena, Diag *diag, const Options *options,
                 const Pipeline *p, WordWanted *out);

#endif
