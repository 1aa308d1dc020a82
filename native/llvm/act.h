/* act.h - activations, and functions of two numbers, by name. */
#ifndef NATIVE_LLVM_ACT_H
#define NATIVE_LLVM_ACT_H

#include "native/llvm/math.h"

/* What a kernel does to its results on the way out. */
typedef struct Epilogue {
    double alpha, lo, hi;
    Val (*apply)(Code *c, const struct Epilogue *e, Val x); /* NULL: nothing */
    bool by_channel; /* slopes are a constant by channel: epilogue_slope */
} Epilogue;

/* The kernel's activation; false if there is none of that name, or its slopes
 * are missing. */
bool epilogue_read(const Kernel *kernel, Epilogue *out);
/* slope: of its channel, where the epilogue goes by channel. */
Val epilogue_apply(Code *c, const Epilogue *e, Val x, Val slope);

typedef Val Binary(Code *c, Val a, Val b);
/* NULL: there is none of that name. */
Binary *binary_named(const char *name);

#endif
