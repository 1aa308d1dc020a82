/* quantised.h - what `quantise` writes and prints. */
#ifndef DRIVER_QUANTISED_H
#define DRIVER_QUANTISED_H

#include "base/json.h"
#include "driver/options.h"
#include "quantise/quantise.h"

typedef struct QuantisedReport {
    const Options *options;
    const QuantiseOptions *wanted;
    const Quantised *result;
    uint32_t samples, seeded;
    QuantiseJudgement test; /* of --test; samples 0: none */
    const char *machine;    /* of -t; NULL: none that has a rule of its own */
    QuantRound machine_round;
    QuantiseJudgement by_machine; /* by its rule; of --test, else held back */
    VEC(const char *) written;
} QuantisedReport;

/* The forms of the network, and the report, to the folder -o. */
bool quantised_write(Arena *arena, Diag *diag, QuantisedReport *report);
cJSON *quantised_json(Arena *arena, const QuantisedReport *report);
void quantised_print(Arena *arena, const QuantisedReport *report);

/* quantizer.c: the network as a quantizer.json of xfDNN; NULL where a tensor
 * has a zero point, for which that has no place. */
const char *quantizer_json(Arena *arena, const Graph *g);
/* Scales of such a file in place of samples. */
bool quantizer_read(Arena *arena, Diag *diag, const char *path,
                    QuantiseOptions *out);

#endif
