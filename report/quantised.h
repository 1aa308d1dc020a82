/* quantised.h - the page of a network that was brought on codes. */
#ifndef REPORT_QUANTISED_H
#define REPORT_QUANTISED_H

#include "quantise/quantise.h"

/* HTML: repairs, judgements, layers (the worst first) with histograms, outputs
 * of some samples side by side. `test`: of other samples, `by_machine`: by a
 * machine's rule of rounding; samples 0: none. */
const char *report_quantised(Arena *arena, const Quantised *q,
                             const QuantiseJudgement *test,
                             const QuantiseJudgement *by_machine);

#endif
