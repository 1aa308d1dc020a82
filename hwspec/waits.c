/* waits.c - fields that hold an instruction back until units are idle.
 *
 * Input, output: fields of an instruction, and a set of units: bit i stands
 * for engine i, the bit behind the last engine for loads and stores.
 * Invariant: each field stands for the engine that runs its operator, or for
 * the DMA; a field of an operator that no engine runs stands for nothing.
 */
#include "hwspec/insn.h"

static const struct {
    HwField field;
    HwOp op; /* of the engine; LOAD: the DMA */
} wait[] = {
    {HW_F_WAIT_LOAD, HW_OP_LOAD},   {HW_F_WAIT_STORE, HW_OP_LOAD},
    {HW_F_WAIT_CONV, HW_OP_CONV},   {HW_F_WAIT_POOL, HW_OP_POOL_MAX},
    {HW_F_WAIT_ELTWISE, HW_OP_ADD}, {HW_F_WAIT_UPSAMPLE, HW_OP_UPSAMPLE},
};
enum { N_WAITS = sizeof wait / sizeof *wait };

static uint64_t units_of(const HwSpec *spec, HwOp op) {
    if (op == HW_OP_LOAD)
        return UINT64_C(1) << spec->n_engines;
    int32_t engine = hwspec_engine(spec, op);
    return engine < 0 ? 0 : UINT64_C(1) << engine;
}

bool insn_waits(const HwSpec *spec, const HwFields *fields, uint64_t *units) {
    uint64_t named = 0, waits = 0;
    for (int i = 0; i < N_WAITS; i++) {
        if (!fields->set[wait[i].field])
            continue;
        uint64_t unit = units_of(spec, wait[i].op);
        named |= unit;
        if (fields->num[wait[i].field])
            waits |= unit;
    }
    uint64_t all = (UINT64_C(2) << spec->n_engines) - 1;
    *units = waits | (all & ~named);
    return named != 0;
}

void insn_set_waits(const HwSpec *spec, HwFields *fields, uint64_t units) {
    for (int i = 0; i < N_WAITS; i++) {
        fields->set[wait[i].field] = true;
        fields->num[wait[i].field] = (units & units_of(spec, wait[i].op)) != 0;
    }
}
