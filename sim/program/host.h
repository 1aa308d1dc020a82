/* host.h - what nodes of a processor share, on codes and on reals. */
#ifndef SIM_PROGRAM_HOST_H
#define SIM_PROGRAM_HOST_H

#include "sim/program/run.h"

/* in, in2 and out, of which axes of 1 are repeated. */
typedef struct TwoShapes {
    Operand of[3];
    Dims dims[3];
} TwoShapes;
bool host_two_shapes(ProgramRun *run, TwoShapes *out);
/* Of the input, the element that element i of the result comes from. */
uint64_t host_spread(const Dims *in, const Dims *out, uint64_t i);

/* A convolution in groups; axes 0 and 1 are rows and columns. */
typedef struct HostConv {
    Operand of_in, of_out;
    Dims in, out;
    uint32_t groups, kernel[2], stride[2], dilation[2];
    int64_t before[2];
    uint64_t n_weights;
} HostConv;
bool host_conv_of(ProgramRun *run, HostConv *out);
/* Windows over each channel by itself; without weights. */
bool host_pool_of(ProgramRun *run, HostConv *v);

/* The taps of element i of the result that lie inside, in the order of input
 * channels, rows, columns. */
typedef struct HostTap {
    uint32_t image, out_c, y, x; /* of the result */
    uint64_t next;               /* tap that is looked at next */
    uint64_t in, weight;         /* elements */
} HostTap;
HostTap host_first_tap(const HostConv *v, uint64_t i);
/* The first and each further one; false behind the last. */
bool host_next_tap(const HostConv *v, HostTap *tap);

/* rows x columns times columns x columns2. */
typedef struct HostProduct {
    Operand of[3]; /* in, in2, out */
    uint64_t rows, columns, columns2;
} HostProduct;
bool host_product_of(ProgramRun *run, HostProduct *out);

#endif
