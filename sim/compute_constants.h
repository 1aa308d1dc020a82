/* compute_constants.h - constants of a job, by what it computes.
 *
 * Each sets what its kind of job needs; false, with a violation, if the image
 * lacks it or it does not fit.
 */
#ifndef SIM_COMPUTE_CONSTANTS_H
#define SIM_COMPUTE_CONSTANTS_H

#include "sim/compute.h"

typedef bool Prepare(Run *run, Job *job);

Prepare prepare_conv, prepare_pool, prepare_scale, prepare_gather,
    prepare_pixels, prepare_offset, prepare_norm, prepare_act;

/* Rules for codes of the layer, for the channels that the instruction makes;
 * NULL: its cells are real numbers. */
const QuantLayer *prepare_quant(Run *run, const Work *w);
/* Channels of what an activation is applied to. */
uint32_t middle_channels(const Work *w);

#endif
