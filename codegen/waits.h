/* waits.h - which engines an instruction must wait for; see waits.c. */
#ifndef CODEGEN_WAITS_H
#define CODEGEN_WAITS_H

#include "plan/plan.h"
#include "base/vec.h"
#include "hwspec/insn.h"

typedef struct Flight {
    uint32_t action; /* index in the plan */
    uint32_t unit;   /* of insn.h */
} Flight;

typedef struct Waits {
    Arena *arena;
    const Plan *plan;
    VEC(Flight) flight; /* what may still be at work */
} Waits;

/* Units, as bits (insn_set_waits), that must be idle before action i starts;
 * the action is then at work itself. Loads, stores and layers of the host wait
 * for all. */
uint64_t waits_before(Waits *waits, uint32_t i);

/* True if an eltwise action's operands lie in different partitions of an
 * active memory: both can be read at once. */
bool waits_parallel(const Plan *plan, const Action *action);

#endif
