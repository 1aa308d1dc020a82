/* vocabulary.h - what engines may do, by name: operations, limits, activations;
 * from ops.def, limits.def, acts.def.
 */
#ifndef HWSPEC_VOCABULARY_H
#define HWSPEC_VOCABULARY_H

#include <stdbool.h>
#include <stdint.h>

typedef enum HwOp {
#define HW_OP(NAME, name, traits, doc) HW_OP_##NAME,
#include "hwspec/ops.def"
#undef HW_OP
    HW_OP_COUNT
} HwOp;
/* A set of operations: HW_BIT(CONV) | ... */
typedef uint64_t HwOps;
_Static_assert(HW_OP_COUNT <= 64, "a set of operations is 64 bits");
#define HW_BIT(NAME) (UINT64_C(1) << HW_OP_##NAME)
/* Loads of what layers bring along, and all between memories. */
#define HW_CONSTANT_LOADS (HW_BIT(LOAD_WEIGHTS) | HW_BIT(LOAD_BIAS))
#define HW_TRANSFERS (HW_BIT(LOAD) | HW_BIT(STORE) | HW_CONSTANT_LOADS)
static inline bool hw_is_among(HwOp op, HwOps ops) {
    return ops >> op & 1;
}

/* What is true of an operation, whatever the machine. */
typedef enum HwTrait {
    HW_ACTS = 1,       /* an activation may be fused behind it */
    HW_TWO = 2,        /* it has a second operand... */
    HW_BY_CHANNEL = 4, /* ... of one number by channel */
    HW_WHOLE = 8,      /* it runs on whole volumes only */
    HW_GROUPED = 16,   /* channels may be in groups */
    HW_MOVE = 32,      /* it moves rows and computes nothing */
    HW_NOTE = 64,      /* its instruction names no operands */
    HW_ANY = 128,      /* it stands for any layer */
    HW_MATRIX = 256    /* its second operand has a shape of its own */
} HwTrait;
extern const uint32_t hw_op_traits[HW_OP_COUNT]; /* of HwTrait, together */
/* Those that have one of these traits at least. */
HwOps hw_ops_with(uint32_t traits);

typedef enum HwLimitKind {
#define HW_LIMIT(NAME, text, doc) HW_LIMIT_##NAME,
#include "hwspec/limits.def"
#undef HW_LIMIT
    HW_LIMIT_COUNT
} HwLimitKind;

/* Activations that an engine may apply to its result, or run alone. */
typedef enum HwAct {
#define HW_ACT(NAME, name) HW_ACT_##NAME,
#include "hwspec/acts.def"
#undef HW_ACT
    HW_ACT_COUNT
} HwAct;

extern const char *const hw_op_name[HW_OP_COUNT + 1]; /* NULL at the end */
extern const char *const hw_limit_name[HW_LIMIT_COUNT + 1];
extern const char *const hw_act_name[HW_ACT_COUNT + 1];

/* What the meaning `act` of an instruction says: 1.. in the order of
 * hw_act_name, 0 for any other name. */
uint32_t hw_act_number(const char *name);
/* The mirror: "none" for 0. */
const char *hw_act_text(uint32_t number);

#endif
