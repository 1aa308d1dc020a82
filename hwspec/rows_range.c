/* rows_range.c - what values the machine lets a token have.
 *
 * Input: a machine and one of its rows. Output: least and most of the number
 * that is printed. Sources: flags by their meaning, limits of the engines that
 * run the row's operations, sizes of the memories its operands can lie in.
 */
#include "hwspec/rows.h"

typedef struct Span {
    int64_t least, most;
} Span;

static const struct {
    HwField field;
    HwLimitKind limit;
} limited[] = {
    {HW_F_KERNEL_W, HW_LIMIT_KERNEL_W},
    {HW_F_KERNEL_H, HW_LIMIT_KERNEL_H},
    {HW_F_STRIDE_W, HW_LIMIT_STRIDE_W},
    {HW_F_STRIDE_H, HW_LIMIT_STRIDE_H},
    {HW_F_PAD_W, HW_LIMIT_PAD_W},
    {HW_F_PAD_H, HW_LIMIT_PAD_H},
    {HW_F_DILATION_W, HW_LIMIT_DILATION_W},
    {HW_F_DILATION_H, HW_LIMIT_DILATION_H},
    {HW_F_FACTOR_W, HW_LIMIT_FACTOR_W},
    {HW_F_FACTOR_H, HW_LIMIT_FACTOR_H},
    {HW_F_IN_C, HW_LIMIT_IN_C},
    {HW_F_IN_W, HW_LIMIT_IN_W},
    {HW_F_IN_H, HW_LIMIT_IN_H},
    {HW_F_OUT_C, HW_LIMIT_OUT_C},
    {HW_F_OUT_W, HW_LIMIT_OUT_W},
    {HW_F_OUT_H, HW_LIMIT_OUT_H},
};

bool insn_limit(HwField field, HwLimitKind *out) {
    for (size_t i = 0; i < sizeof limited / sizeof *limited; i++) {
        *out = limited[i].limit;
        if (limited[i].field == field)
            return true;
    }
    return false;
}

static void widen(Span *span, bool *known, int64_t least, int64_t most) {
    if (!*known || least < span->least)
        span->least = least;
    if (!*known || most > span->most)
        span->most = most;
    *known = true;
}

static bool add_range(const HwRange *range, Span *span, bool *known) {
    if (!range->set)
        return false;
    for (uint32_t i = 0; i < range->n; i++) {
        if (range->list[i] > INT64_MAX)
            return false;
        widen(span, known, (int64_t)range->list[i], (int64_t)range->list[i]);
    }
    if (!range->n) {
        if (range->lo > INT64_MAX || range->hi > INT64_MAX)
            return false;
        widen(span, known, (int64_t)range->lo, (int64_t)range->hi);
    }
    return true;
}

/* Over every engine that runs one of the row's operations. */
static bool limit_span(const HwSpec *spec, const HwRow *row, HwLimitKind kind,
                       Span *span) {
    bool known = false;
    for (uint32_t s = 0; s < row->n_serves; s++)
        for (uint32_t e = 0; e < spec->n_engines; e++) {
            const HwEngine *engine = &spec->engine[e];
            if (engine->ops >> row->serve[s].op & 1 &&
                !add_range(&engine->limit[kind], span, &known))
                return false;
        }
    return known;
}

static bool has(const HwRow *row, HwField field) {
    return insn_token_of(&row->form[0], field) >= 0;
}

/* Memories in which the engines of `op` let it lie; for moves, all. */
static uint32_t reached(const HwSpec *spec, HwOp op, HwOperand operand) {
    uint32_t memories = 0;
    bool moves = op == HW_OP_LOAD || op == HW_OP_STORE;
    for (uint32_t e = 0; e < spec->n_engines; e++)
        if (spec->engine[e].ops >> op & 1)
            memories |= spec->engine[e].lies[operand];
    return moves ? UINT32_MAX : memories;
}

/* Can the operand of the row, being `op`, lie in this memory? */
static bool can_lie_in(const HwSpec *spec, const HwRow *row, HwOp op,
                       HwOperand operand, uint32_t memory) {
    HwRole role = spec->memory[memory].role;
    HwRole outside = operand == HW_OUT ? HW_OUTPUT : HW_INPUT;
    bool named = has(row, HW_FIELD_OF(operand, MEMORY));
    bool io = named || has(row, HW_FIELD_OF(operand, IO));
    bool moves = op == HW_OP_LOAD || op == HW_OP_STORE;
    if (moves && (operand == HW_IN) == (op == HW_OP_LOAD))
        return role == HW_BACKING || (io && role == outside);
    if (moves || !(reached(spec, op, operand) >> memory & 1))
        return moves && role == HW_ACTIVE;
    return role == HW_ACTIVE || (io && role == outside) ||
           (role == HW_BACKING &&
            (named || has(row, HW_FIELD_OF(operand, BACKING))));
}

typedef enum Place { PLACE_ADDR, PLACE_OFFSET, PLACE_BUFFER, PLACE_ID } Place;

static bool place_in(const HwMemory *memory, Place place, uint64_t *least,
                     uint64_t *most) {
    bool in_buffers = memory->buffers && place != PLACE_ADDR;
    uint64_t bytes = in_buffers ? hwspec_buffer_bytes(memory) : memory->size;
    uint64_t base = in_buffers ? 0 : memory->base;
    if (place == PLACE_ID)
        *least = *most = memory->id;
    else if (place == PLACE_BUFFER) {
        *least = 0;
        *most = memory->buffers ? memory->buffers - 1 : 0;
    } else {
        *least = base;
        *most = base + (bytes ? bytes - 1 : 0) / memory->unit;
    }
    return *most <= INT64_MAX;
}

static bool place_span(const HwSpec *spec, const HwRow *row, HwOperand operand,
                       Place place, Span *span) {
    bool known = false;
    for (uint32_t s = 0; s < row->n_serves; s++)
        for (uint32_t m = 0; m < spec->n_memories; m++) {
            const HwMemory *memory = &spec->memory[m];
            uint64_t least, most;
            if (!can_lie_in(spec, row, row->serve[s].op, operand, m))
                continue;
            if (!place_in(memory, place, &least, &most))
                return false;
            widen(span, &known, (int64_t)least, (int64_t)most);
        }
    return known;
}

static bool operand_span(const HwSpec *spec, const HwRow *row, HwField field,
                         Span *span) {
    static const HwField first[] = {
        [PLACE_ADDR] = HW_F_IN_ADDR,
        [PLACE_OFFSET] = HW_F_IN_OFFSET,
        [PLACE_BUFFER] = HW_F_IN_BUFFER,
        [PLACE_ID] = HW_F_IN_MEMORY,
    };
    for (int place = PLACE_ADDR; place <= PLACE_ID; place++)
        for (int operand = HW_IN; operand <= HW_OUT; operand++)
            if (field == first[place] + (HwField)operand)
                return place_span(spec, row, (HwOperand)operand, (Place)place,
                                  span);
    return false;
}

static bool constant_span(const HwRow *row, const HwToken *token, Span *span) {
    *span = (Span){token->constant, token->constant};
    for (uint32_t s = 0; s < row->n_serves; s++)
        for (uint32_t w = 0; w < row->serve[s].n; w++) {
            const HwWhen *when = &row->serve[s].when[w];
            int32_t at = insn_token(&row->form[0], when->token);
            bool known = true;
            if (at >= 0 && &row->form[0].token[at] == token)
                widen(span, &known, when->num, when->num);
        }
    return true;
}

/* Up to the last activation that an engine applies in this row. */
static Span act_span(const HwSpec *spec, const HwRow *row) {
    uint32_t acts = 0;
    for (uint32_t s = 0; s < row->n_serves; s++)
        for (uint32_t e = 0; e < spec->n_engines; e++)
            acts |= spec->engine[e].acts[row->serve[s].op];
    Span span = {0, 0};
    for (; acts; acts >>= 1)
        span.most++;
    return span;
}

static bool field_span(const HwSpec *spec, const HwRow *row,
                       const HwToken *token, Span *span) {
    if (token->from == HW_F_CONST)
        return constant_span(row, token, span);
    if (token->from == HW_F_ACT) {
        *span = act_span(spec, row);
        return true;
    }
    if (hw_field_kind(token->from) == HW_FLAG || token->from == HW_F_ADD) {
        *span = (Span){token->from == HW_F_ADD ? -1 : 0, 1};
        return true;
    }
    HwLimitKind limit;
    if (insn_limit(token->from, &limit))
        return limit_span(spec, row, limit, span);
    return operand_span(spec, row, token->from, span);
}

bool rows_range(const HwSpec *spec, const HwRow *row, const HwToken *token,
                int64_t *least, int64_t *most) {
    Span span = {0};
    if (token->is_string || token->from == HW_F_MNEMONIC ||
        !field_span(spec, row, token, &span))
        return false;
    bool is_constant = token->from == HW_F_CONST;
    int64_t bias = is_constant ? 0 : token->bias;
    int64_t unit = is_constant ? 1 : token->unit;
    return !__builtin_add_overflow(span.least / unit, bias, least) &&
           !__builtin_add_overflow(span.most / unit, bias, most);
}
