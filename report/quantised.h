/* quantised.h - the page of a network that was brought on codes. */
#ifndef REPORT_QUANTISED_H
#define REPORT_QUANTISED_H

#include "quantise/quantise.h"

/* HTML: repairs, judgements, layers (the worst first) with histograms, outputs
 * of some samples side by side. `test`: NULL, or of other samples. */
const char *report_quantised(Arena *arena, const Quantised *q,
                             const QuantiseJudgement *test);

#endif
