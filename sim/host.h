/* host.h - layers that the host computes.
 *
 * Input: regions of memories and attributes, as the image has them. Output:
 * regions. The host reads and writes tensors in the order of their shapes.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "sim/compute.h"

/* One call of a layer's arithmetic. Tensors are dense, in shape order. */
typedef struct HostCall {
    Run *run;
    const HostLayer *layer;
    const QuantLayer *quant; /* of a layer on codes by a rule of integers */
    const float *const *in;
    float *const *out;
} HostCall;

/* False, with a violation, if shapes and attributes do not fit. */
typedef bool HostKind(const HostCall *call);

typedef enum HostStyle {
    HOST_PLAIN = 0,
    HOST_BY_IMAGE = 1, /* is called once for each image of N x C x H x W */
    HOST_ACTS = 2,     /* its activation does not come last */
    HOST_SUMS = 4,     /* computes codes by these rules of QUANT_RULES, too: */
    HOST_MEANS = 8,
    HOST_TWO = 16, /* ADDS and PRODUCT */
    HOST_TABLE = 32
} HostStyle;
typedef struct HostRow {
    const char *name; /* as in HostLayer.kind */
    uint32_t n_in;    /* operands that it needs at least */
    HostKind *run;
    uint32_t style; /* HostStyle, together */
} HostRow;
/* host_windows.c: convolutions and pools; host_shapes.c: what moves elements;
 * host_tensors.c: on any rank; host_tokens.c: on pixels as tokens;
 * host_numbers.c: the rest. NULL name at the end. */
extern const HostRow host_windows[], host_shapes[], host_tensors[],
    host_tokens[], host_numbers[];

/* The row of that name; NULL: there is none. */
const HostRow *host_kind(const char *name);
/* Runs the layer of that name; without an image it is skipped with a note. */
void host_run(Run *run, const Work *work);

/* ---- host_call.c ---- */

/* The image's layer of that name, or NULL. */
const HostLayer *host_layer(const Run *run, const char *name);

const AttrPair *host_attr(const HostLayer *layer, const char *name);
double host_number(const HostLayer *layer, const char *name, uint32_t at,
                   double absent);
/* The same as a whole number in 0..2^24. */
uint32_t host_count(const HostLayer *layer, const char *name, uint32_t at,
                    uint32_t absent);
/* Is the attribute this word? */
bool host_is(const HostLayer *layer, const char *name, const char *word);
/* Constants of the layer by role, `n` of them; NULL if the image has none. */
const float *host_blob(const HostCall *call, const char *role, uint64_t n);
/* A tensor as images x n channels x plane: axis 0, axis 1, all others. */
typedef struct Channels {
    uint64_t images, n, plane;
} Channels;
Channels host_channels(const Region *region);
/* A tensor as channels, rows, columns. */
Extent host_extent(const Region *region);
/* The kind's arithmetic, image by image if it is HOST_BY_IMAGE, without the
 * activation. */
bool host_plain(const HostRow *kind, const HostCall *call);
/* The layer on real numbers: the kind, then its activation. */
bool host_reals(const HostRow *kind, const HostCall *call);
/* host_quant.c: a layer that reads or writes codes, and two kinds of them. */
bool host_codes(const HostRow *kind, const HostCall *call);
bool host_eltwise_codes(const HostCall *call);
bool host_reduce_codes(const HostCall *call);

/* Lines of the first operand, whose size the result must have, along some axes
 * from this one on, in the groups that the layer says; false if there are no
 * such. */
bool host_lines(const HostCall *call, uint32_t axis, uint32_t axes, Lines *out);

/* Index in an operand of element i of the result; axes of size
 * 1 repeat. Shapes of lower rank stand at the right. */
uint64_t host_broadcast(const Shape *in, const Shape *out, uint64_t i);
bool host_broadcasts(const Shape *in, const Shape *out);

/* Applies the layer's activation, fused or its own. */
bool host_act(const HostCall *call, const Channels *size, float *value);

#endif
