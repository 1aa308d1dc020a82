/* waits.c - fields that hold an instruction back until units are idle.
 *
 * Input, output: fields of an instruction, and a set of units. Invariant: each
 * field stands for the engine that runs its operator, for loads or for stores;
 * a field of an operator that no engine runs stands for nothing.
 */
#include "hwspec/insn.h"

static const struct {
    HwField field;
    HwOp op; /* of the unit */
} wait[] = {
    {HW_F_WAIT_LOAD, HW_OP_LOAD},   {HW_F_WAIT_STORE, HW_OP_STORE},
    {HW_F_WAIT_CONV, HW_OP_CONV},   {HW_F_WAIT_POOL, HW_OP_POOL_MAX},
    {HW_F_WAIT_ELTWISE, HW_OP_ADD}, {HW_F_WAIT_UPSAMPLE, HW_OP_UPSAMPLE},
};
enum { N_WAITS = sizeof wait / sizeof *wait };

static uint64_t units_of(const HwSpec *spec, HwOp op) {
    if (op == HW_OP_LOAD)
        return UINT64_C(1) << insn_unit_of_loads(spec);
    if (op == HW_OP_STORE)
        return UINT64_C(1) << insn_unit_of_stores(spec);
    int32_t engine = hwspec_engine(spec, op);
    return engine < 0 ? 0 : UINT64_C(1) << engine;
}

bool hw_field_is_wait(HwField field) {
    for (int i = 0; i < N_WAITS; i++)
        if (wait[i].field == field)
            return true;
    return false;
}

bool insn_wait_stands(const HwSpec *spec, HwField field) {
    for (int i = 0; i < N_WAITS; i++)
        if (wait[i].field == field)
            return units_of(spec, wait[i].op) != 0;
    return false;
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
    *units = waits | (insn_units(spec) & ~named);
    return named != 0;
}

void insn_set_waits(const HwSpec *spec, HwFields *fields, uint64_t units) {
    for (int i = 0; i < N_WAITS; i++) {
        fields->set[wait[i].field] = true;
        fields->num[wait[i].field] = (units & units_of(spec, wait[i].op)) != 0;
    }
}
