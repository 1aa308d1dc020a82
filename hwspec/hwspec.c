/* hwspec.c - names, ranges, engines and the replication rule; see hwspec.h. */
#include "hwspec/hwspec.h"
#include "hwspec/insn.h"

#include "base/arith.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>

const char *const hw_role_name[HW_ROLES + 1] = {
    [HW_ACTIVE] = "active",      [HW_BACKING] = "backing",
    [HW_INPUT] = "input",        [HW_OUTPUT] = "output",
    [HW_WEIGHTS] = "weights",    [HW_BIAS] = "bias",
    [HW_SUMS] = "sums",          [HW_CONSTANTS] = "constants",
    [HW_REGISTERS] = "registers"};

const char *const hw_operand_name[HW_OPERANDS + 1] = {
    [HW_IN] = "in", [HW_IN2] = "in2", [HW_OUT] = "out"};

const char *const hw_op_name[HW_OP_COUNT + 1] = {
#define HW_OP(NAME, name, traits, doc) [HW_OP_##NAME] = #name,
#include "hwspec/ops.def"
#undef HW_OP
};

const uint32_t hw_op_traits[HW_OP_COUNT] = {
#define HW_OP(NAME, name, traits, doc) [HW_OP_##NAME] = (traits),
#include "hwspec/ops.def"
#undef HW_OP
};

HwOps hw_ops_with(uint32_t traits) {
    HwOps ops = 0;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (hw_op_traits[op] & traits)
            ops |= UINT64_C(1) << op;
    return ops;
}

const char *const hw_limit_name[HW_LIMIT_COUNT + 1] = {
#define HW_LIMIT(NAME, text, doc) [HW_LIMIT_##NAME] = (text),
#include "hwspec/limits.def"
#undef HW_LIMIT
};

const char *const hw_act_name[HW_ACT_COUNT + 1] = {
#define HW_ACT(NAME, name) [HW_ACT_##NAME] = #name,
#include "hwspec/acts.def"
#undef HW_ACT
};

uint32_t hw_act_number(const char *name) {
    for (uint32_t i = 0; i < HW_ACT_COUNT; i++)
        if (!strcmp(name, hw_act_name[i]))
            return i + 1;
    return 0;
}

const char *hw_act_text(uint32_t number) {
    assert(number <= HW_ACT_COUNT);
    return number ? hw_act_name[number - 1] : "none";
}

bool hw_range_has(const HwRange *range, uint64_t v) {
    if (!range->set)
        return true;
    for (uint32_t i = 0; i < range->n; i++)
        if (range->list[i] == v)
            return true;
    return range->n == 0 && range->lo <= v && v <= range->hi;
}

const char *hw_range_text(Arena *arena, const HwRange *range) {
    if (!range->set)
        return "anything";
    Text text = text_new(arena);
    for (uint32_t i = 0; i < range->n; i++)
        text_addf(&text, "%s%llu", i ? ", " : "",
                  (unsigned long long)range->list[i]);
    if (range->n)
        return text_str(&text);
    text_addf(&text, "%llu", (unsigned long long)range->lo);
    if (range->hi == UINT64_MAX)
        text_add(&text, "..");
    else if (range->hi != range->lo)
        text_addf(&text, "..%llu", (unsigned long long)range->hi);
    return text_str(&text);
}

static int32_t first_engine(const HwSpec *spec, HwOp op, bool ahead) {
    for (uint32_t i = 0; i < spec->n_engines; i++)
        if (spec->engine[i].ops >> op & 1 && spec->engine[i].ahead == ahead)
            return (int32_t)i;
    return -1;
}

uint64_t hwspec_place(const HwPlace *place, const HwMemory *memory) {
    if (!place->whole)
        return place->bytes;
    uint64_t times = memory->size / place->whole * place->part;
    uint64_t rest = memory->size % place->whole * place->part / place->whole;
    return times + rest - (times + rest) % memory->align;
}

void hwspec_place_style(HwTileStyle *style, const HwMemory *memory) {
    uint64_t *at = style->buffer;
    for (uint32_t i = 0; i < 2; i++)
        at[i] = hwspec_place(&style->given.buffer[i], memory);
    style->buffer_size = hwspec_place(&style->given.size, memory);
    style->reserved = hwspec_place(&style->given.reserved, memory);
    if (style->reserved == UINT64_MAX)
        style->reserved = (at[0] > at[1] ? at[0] : at[1]) + style->buffer_size;
}

/* Equal parts, such that no unit of alignment lies in two of them. */
static uint64_t part_bytes(const HwMemory *memory, uint32_t parts) {
    uint64_t bytes = memory->size / parts;
    return bytes - bytes % larger(memory->align, 1);
}

uint64_t hwspec_buffer_bytes(const HwMemory *memory) {
    return memory->buffers ? part_bytes(memory, memory->buffers) : 0;
}

uint64_t hwspec_partition_bytes(const HwMemory *memory) {
    uint64_t bytes = hwspec_buffer_bytes(memory) * memory->buffers;
    return bytes ? bytes / memory->partitions
                 : part_bytes(memory, memory->partitions);
}

uint32_t hwspec_partition_of(const HwMemory *memory, uint64_t byte) {
    uint64_t bytes = hwspec_partition_bytes(memory);
    uint64_t last = memory->partitions - 1;
    return (uint32_t)(!bytes || byte / bytes > last ? last : byte / bytes);
}

bool hwspec_in_partitions(const HwMemory *m, uint64_t a, uint64_t n_a,
                          uint64_t b, uint64_t n_b) {
    if (m->role != HW_ACTIVE || m->partitions < 2)
        return false;
    return hwspec_partition_of(m, a + n_a - 1) < hwspec_partition_of(m, b) ||
           hwspec_partition_of(m, b + n_b - 1) < hwspec_partition_of(m, a);
}

int32_t hwspec_engine(const HwSpec *spec, HwOp op) {
    return first_engine(spec, op, false);
}

int32_t hwspec_engine_ahead(const HwSpec *spec, HwOp op) {
    return first_engine(spec, op, true);
}

uint32_t hwspec_lies(const HwSpec *spec, HwOp op, HwOperand operand) {
    uint32_t active = (UINT32_C(1) << spec->n_active) - 1, memories = 0;
    for (uint32_t e = 0; e < spec->n_engines; e++)
        if (spec->engine[e].ops >> op & 1)
            memories |= spec->engine[e].lies[operand];
    return memories & active ? memories & active : active;
}

int32_t hwspec_dma(const HwSpec *spec, HwOp op, uint32_t memory) {
    for (uint32_t i = 0; i < spec->n_dmas; i++)
        if ((spec->dma[i].ops >> op & 1) &&
            (spec->dma[i].memories >> memory & 1))
            return (int32_t)i;
    return spec->n_dmas ? -1 : 0;
}

bool hwspec_stages(const HwSpec *spec, HwOp op) {
    bool has_weights = op == HW_OP_CONV || op == HW_OP_CONV_GROUPED ||
                       op == HW_OP_CONV_DEPTHWISE || op == HW_OP_DECONV ||
                       op == HW_OP_CONV_POOL_MAX || op == HW_OP_CONV_POOL_AVG ||
                       op == HW_OP_FC;
    return spec->tiling.rows.weights_from && has_weights;
}

bool hwspec_adds_up(const HwSpec *spec, HwOp op, int32_t engine) {
    return engine >= 0 && spec->engine[engine].sums &&
           (op == HW_OP_CONV || op == HW_OP_FC) && hwspec_stages(spec, op);
}

bool hwspec_keeps_sums(const HwSpec *spec, HwOp op, int32_t engine) {
    return spec->sums && engine >= 0 &&
           (spec->engine[engine].sums >> spec->sums & 1) &&
           hwspec_stages(spec, op);
}

uint64_t hwspec_room(const HwMemory *memory) {
    return memory->buffers ? hwspec_buffer_bytes(memory) : memory->size;
}

uint64_t hwspec_sums_room(const HwSpec *spec) {
    return hwspec_room(&spec->memory[spec->sums]);
}

bool hwspec_loads_bias(const HwSpec *spec, HwOp op) {
    return spec->bias && hwspec_stages(spec, op);
}

bool hwspec_parts_between(const HwSpec *spec, const HwMemory *memory) {
    return layout_granule(memory->layout) == 0 && spec->insns &&
           spec->insns->tells_parts;
}

bool hwspec_part_told(const HwSpec *spec, const HwMemory *memory,
                      const Volume *whole, uint32_t c, uint32_t n) {
    return hwspec_parts_between(spec, memory) ||
           layout_part_alone(memory->layout, whole, c, n);
}

uint64_t hwspec_active_bytes(const HwSpec *spec) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < spec->n_active; i++)
        bytes += spec->memory[i].size;
    return bytes;
}

Repl hwspec_repl_none(const HwSpec *spec, uint32_t channels) {
    uint32_t section = spec->replication.section;
    if (section == 0)
        return (Repl){0};
    return (Repl){.full = (uint32_t)ceil_div(channels, section)};
}

Repl hwspec_repl_in(const HwSpec *spec, uint32_t memory, Repl repl) {
    return spec->replication.memories >> memory & 1 ? repl : (Repl){0};
}

static bool same_repl(Repl a, Repl b) {
    return a.full == b.full && a.sections == b.sections && a.units == b.units &&
           a.width == b.width;
}

bool hwspec_repl_allowed(const HwSpec *spec, uint32_t channels, Repl repl,
                         bool on_the_fly) {
    const HwReplication *rule = &spec->replication;
    Repl none = hwspec_repl_none(spec, channels);
    if (same_repl(repl, none) || !rule->section)
        return same_repl(repl, none);
    uint32_t rest = channels % rule->section;
    for (uint32_t i = 0; i < rule->n_stored + rule->n_fly; i++) {
        bool stored = i < rule->n_stored;
        HwCopies way = stored ? rule->stored[i] : rule->fly[i - rule->n_stored];
        Repl copied = {channels / rule->section,
                       (uint32_t)ceil_div(rest, way.width), way.units,
                       way.width};
        Repl named = {none.full, 0, way.units, way.width};
        if ((stored || on_the_fly) &&
            (same_repl(repl, copied) || same_repl(repl, named)))
            return true;
    }
    return false;
}

uint64_t hwspec_weight_rows(Repl repl, uint32_t area) {
    uint64_t rows = (uint64_t)repl.full * area;
    if (repl.sections == 0 || repl.units == 0)
        return rows;
    return rows + ceil_div((uint64_t)repl.sections * area, repl.units);
}

/* Fewer cycles, then fewer sections, then fewer copies. */
static bool better(Repl a, Repl b, uint32_t area) {
    uint64_t rows_a = hwspec_weight_rows(a, area);
    uint64_t rows_b = hwspec_weight_rows(b, area);
    if (rows_a != rows_b)
        return rows_a < rows_b;
    if (a.sections != b.sections)
        return a.sections < b.sections;
    return a.units < b.units;
}

Repl hwspec_repl_rule(const HwSpec *spec, uint32_t channels, uint32_t area,
                      bool on_the_fly) {
    const HwReplication *rule = &spec->replication;
    Repl best = hwspec_repl_none(spec, channels);
    if (rule->section == 0 || channels % rule->section == 0)
        return best;
    uint32_t n = on_the_fly ? rule->n_fly : rule->n_stored;
    const HwCopies *way = on_the_fly ? rule->fly : rule->stored;
    uint32_t rest = channels % rule->section;
    for (uint32_t i = 0; i < n; i++) {
        Repl repl = {channels / rule->section,
                     (uint32_t)ceil_div(rest, way[i].width), way[i].units,
                     way[i].width};
        if (better(repl, best, area))
            best = repl;
    }
    return best;
}
