/* cycles.h - an engine's cycles as an expression; private to hwspec. */
#ifndef HWSPEC_CYCLES_H
#define HWSPEC_CYCLES_H

#include "hwspec/expr/expr.h"
#include "hwspec/hwspec.h"

/* What it may name. */
enum {
    HW_CYCLES_OUT_C, /* what an instruction makes */
    HW_CYCLES_OUT_H,
    HW_CYCLES_OUT_W,
    HW_CYCLES_STEPS, /* for one result: over input channels and taps */
    HW_CYCLES_NAMES
};

struct HwCycles {
    const Expr *expr;
    ExprNames *names;
};

/* Of the engine's clock; what has no room is as long as can be. */
double hwspec_cycles_of(const HwCycles *cycles,
                        const int64_t value[HW_CYCLES_NAMES]);

#endif
