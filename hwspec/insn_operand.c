/* insn_operand.c - where an operand lies; see insn.h.
 *
 * A machine may name the memory by id, by flags, by the role of the operand
 * (the far side of a load or store), or by the address alone; and the place in
 * it by an address or by the number of a fixed buffer and an offset.
 */
#include "hwspec/insn.h"

static bool given(const HwFields *fields, HwField field, int64_t *value) {
    *value = fields->num[field];
    return fields->set[field];
}

static bool flagged(const HwFields *fields, HwField field) {
    return fields->set[field] && fields->num[field] == 1;
}

static bool is_far_side(HwOp op, HwOperand operand) {
    return (op == HW_OP_LOAD && operand == HW_IN) ||
           (op == HW_OP_STORE && operand == HW_OUT);
}

/* ---- the memory ---- */

static int32_t memory_by_id(const HwSpec *spec, int64_t id) {
    for (uint32_t i = 0; i < spec->n_memories; i++)
        if (spec->memory[i].id == id)
            return (int32_t)i;
    return -1;
}

/* The address as printed, counted from 0 of the address space. */
static bool address_of(const HwFields *fields, HwOperand operand,
                       int64_t *out) {
    int64_t buffer;
    if (given(fields, HW_FIELD_OF(operand, ADDR), out))
        return *out >= 0;
    return given(fields, HW_FIELD_OF(operand, OFFSET), out) && *out >= 0 &&
           (!given(fields, HW_FIELD_OF(operand, BUFFER), &buffer) || !buffer);
}

static bool in_range(const HwMemory *memory, uint64_t address) {
    return address >= memory->base &&
           address - memory->base < memory->size / memory->unit;
}

static int32_t active_memory(const HwSpec *spec, HwOp op,
                             const HwFields *fields, HwOperand operand) {
    int64_t number;
    bool by_buffer = given(fields, HW_FIELD_OF(operand, BUFFER), &number);
    uint32_t lies = hwspec_lies(spec, op, operand);
    for (uint32_t i = 0; i < spec->n_active; i++) {
        const HwMemory *memory = &spec->memory[i];
        if (lies == UINT32_C(1) << i)
            return (int32_t)i;
        if (!(lies >> i & 1))
            continue;
        if (memory->buffers && by_buffer)
            return (int32_t)i;
        if (address_of(fields, operand, &number) &&
            in_range(memory, (uint64_t)number))
            return (int32_t)i;
    }
    return -1;
}

static int32_t memory_of(const HwSpec *spec, HwOp op, const HwFields *fields,
                         HwOperand operand) {
    int64_t id;
    bool io = flagged(fields, HW_FIELD_OF(operand, IO));
    int32_t outside = operand == HW_OUT ? spec->output : spec->input;
    if (given(fields, HW_FIELD_OF(operand, MEMORY), &id))
        return memory_by_id(spec, id);
    if (io || (is_far_side(op, operand) && spec->backing < 0))
        return outside;
    if (is_far_side(op, operand) ||
        flagged(fields, HW_FIELD_OF(operand, BACKING)))
        return spec->backing;
    return active_memory(spec, op, fields, operand);
}

/* ---- the place in it ---- */

static bool to_bytes(uint64_t units, uint64_t unit, uint64_t before,
                     uint64_t *out) {
    return !__builtin_mul_overflow(units, unit, out) &&
           !__builtin_add_overflow(*out, before, out);
}

static bool offset_in(const HwMemory *memory, const HwFields *fields,
                      HwOperand operand, uint64_t *out) {
    int64_t address, buffer, offset;
    if (memory->buffers &&
        given(fields, HW_FIELD_OF(operand, BUFFER), &buffer) &&
        given(fields, HW_FIELD_OF(operand, OFFSET), &offset)) {
        uint64_t before;
        return buffer >= 0 && offset >= 0 &&
               to_bytes((uint64_t)buffer, hwspec_buffer_bytes(memory), 0,
                        &before) &&
               to_bytes((uint64_t)offset, memory->unit, before, out);
    }
    return address_of(fields, operand, &address) &&
           (uint64_t)address >= memory->base &&
           to_bytes((uint64_t)address - memory->base, memory->unit, 0, out);
}

bool insn_operand(const HwSpec *spec, HwOp op, const HwFields *fields,
                  HwOperand operand, uint32_t *memory, uint64_t *offset) {
    int32_t index = memory_of(spec, op, fields, operand);
    if (index < 0)
        return false;
    *memory = (uint32_t)index;
    return offset_in(&spec->memory[index], fields, operand, offset);
}

/* ---- building ---- */

static void set(HwFields *fields, HwField field, uint64_t value) {
    fields->set[field] = true;
    fields->num[field] = (int64_t)value;
}

void insn_set_operand(const HwSpec *spec, HwFields *fields, HwOperand operand,
                      uint32_t memory, uint64_t offset) {
    const HwMemory *m = &spec->memory[memory];
    uint64_t address = m->base + offset / m->unit;
    uint64_t buffer_size = hwspec_buffer_bytes(m);
    set(fields, HW_FIELD_OF(operand, ADDR), address);
    set(fields, HW_FIELD_OF(operand, MEMORY), m->id);
    set(fields, HW_FIELD_OF(operand, BUFFER),
        buffer_size ? offset / buffer_size : 0);
    set(fields, HW_FIELD_OF(operand, OFFSET),
        buffer_size ? offset % buffer_size / m->unit : address);
    set(fields, HW_FIELD_OF(operand, BACKING), m->role != HW_ACTIVE);
    set(fields, HW_FIELD_OF(operand, IO),
        m->role == HW_INPUT || m->role == HW_OUTPUT);
}

static bool tells_strips(const HwSpec *spec, HwOp op, HwOperand near) {
    int32_t row = insn_row(spec, op);
    const HwForm *form = row < 0 ? NULL : &spec->insns->row[row].form[0];
    return form && insn_token_of(form, HW_FIELD_OF(near, COL)) >= 0 &&
           insn_token_of(form, HW_FIELD_OF(near, PITCH)) >= 0;
}

bool insn_by_strips(const HwSpec *spec) {
    return spec->insns && hwspec_by_columns(spec) &&
           tells_strips(spec, HW_OP_LOAD, HW_OUT) &&
           tells_strips(spec, HW_OP_STORE, HW_IN);
}
