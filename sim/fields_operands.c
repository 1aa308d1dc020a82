/* fields_operands.c - operands must lie where all tokens of them say; see
 * fields.h.
 */
#include "sim/fields.h"

#include <inttypes.h>

/* Fields of operands come in threes. */
static HwOperand operand_of(HwField field) {
    return (HwOperand)((field - HW_F_IN_ADDR) % 3);
}

static bool has_operand(const Work *w, HwOperand operand) {
    if (operand == HW_OUT && w->op == HW_OP_CONCAT)
        return true;
    return operand == HW_IN2 ? is_run(w) && w->has_in2
                             : is_run(w) || is_move(w);
}

void judge_address(Judge *j, HwOperand operand) {
    uint32_t memory;
    uint64_t offset;
    HwFields same = {0};
    static const HwField told[] = {HW_F_IN_ADDR,    HW_F_IN_MEMORY,
                                   HW_F_IN_BUFFER,  HW_F_IN_OFFSET,
                                   HW_F_IN_BACKING, HW_F_IN_IO};
    if (!insn_operand(j->spec, j->w->op, j->f, operand, &memory, &offset))
        return;
    insn_set_operand(j->spec, &same, operand, memory, offset);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        HwField field = told[i] + (HwField)operand;
        must_be(j, field, same.num[field]);
    }
}

static void judge_extent(Judge *j, HwOperand operand, const Extent *e) {
    must_be(j, HW_FIELD_OF(operand, W), e->w);
    must_be(j, HW_FIELD_OF(operand, H), e->h);
    must_be(j, HW_FIELD_OF(operand, C), e->c);
}

/* Of an operand that lies in rows of its own. */
static void judge_turns(Judge *j, HwOperand operand, const Extent *e) {
    bool lines = says(j, HW_FIELD_OF(operand, BAND));
    bool ring = says(j, HW_FIELD_OF(operand, RING));
    if (!lines) {
        must_be(j, HW_FIELD_OF(operand, KEEP), 0);
        must_be(j, HW_FIELD_OF(operand, SPAN), 0);
        must_be(j, HW_FIELD_OF(operand, SHIFT), 0);
    }
    HwField band = HW_FIELD_OF(operand, BAND);
    HwField shift = HW_FIELD_OF(operand, SHIFT);
    if (lines)
        must_be(j, HW_FIELD_OF(operand, RING), 0);
    if (lines && says(j, shift) && j->f->num[shift] >= j->f->num[band])
        fault(j->run, "%s is %" PRId64 ", not below %s", hw_field_name[shift],
              j->f->num[shift], hw_field_name[band]);
    if (lines || ring)
        return;
    must_be(j, HW_FIELD_OF(operand, ROW), 0);
    must_be(j, HW_FIELD_OF(operand, COL), 0);
    must_be(j, HW_FIELD_OF(operand, PITCH), e->w);
}

/* Four fields, `first` the one of full sections; false where the row lacks
 * some. */
bool read_copies(const Judge *j, const HwField field[4], Repl *out) {
    uint32_t v[4];
    for (int i = 0; i < 4; i++) {
        int64_t num = given(j, field[i]) ? j->f->num[field[i]] : -1;
        if (!given(j, field[i]))
            return false;
        v[i] = num < 0 || num > UINT32_MAX ? UINT32_MAX : (uint32_t)num;
    }
    *out = (Repl){v[0], v[1], v[2], v[3]};
    return true;
}

static bool is_zero(Repl r) {
    return !r.full && !r.sections && !r.units && !r.width;
}

/* All are 0 where a memory stores none and none are made on the fly. */
void judge_copies(Judge *j, const HwField field[4], const char *what,
                  uint32_t channels, bool on_the_fly) {
    Repl repl;
    int32_t token = insn_token_of(j->form, field[0]);
    if (!read_copies(j, field, &repl) || token < 0 ||
        j->form->token[token].free || (on_the_fly && is_zero(repl)) ||
        hwspec_repl_allowed(j->spec, channels, repl, on_the_fly))
        return;
    fault(j->run, "%s: %u channels cannot be stored as %u %u %u %u", what,
          channels, repl.full, repl.sections, repl.units, repl.width);
}

/* The larger volume has copies only where the memory holds such. */
static void judge_part(Judge *j, HwOperand operand, const char *what,
                       bool stores_copies) {
    HwField field[] = {
        HW_FIELD_OF(operand, PART_FULL), HW_FIELD_OF(operand, PART_REPL),
        HW_FIELD_OF(operand, PART_UNITS), HW_FIELD_OF(operand, PART_WIDTH)};
    HwField start = HW_FIELD_OF(operand, PART_START);
    HwField whole = HW_FIELD_OF(operand, PART_C);
    if (says(j, HW_FIELD_OF(operand, PART))) {
        if (given(j, whole) && !says(j, whole))
            fault(j->run, "%s is part of a volume without channels", what);
        else if (given(j, whole) && stores_copies)
            judge_copies(j, field, what, (uint32_t)j->f->num[whole], false);
        for (int i = 0; i < 4 && !stores_copies; i++)
            must_be_unset(j, field[i]);
        return;
    }
    for (int i = 0; i < 4; i++)
        must_be_unset(j, field[i]);
    must_be_unset(j, start);
    must_be_unset(j, whole);
}

static void judge_operand(Judge *j, HwOperand operand, const Extent *e) {
    static const char *const what[] = {"input", "second input", "output"};
    uint32_t memory;
    uint64_t offset;
    HwField field[] = {HW_FIELD_OF(operand, FULL), HW_FIELD_OF(operand, REPL),
                       HW_FIELD_OF(operand, UNITS),
                       HW_FIELD_OF(operand, WIDTH)};
    if (!insn_operand(j->spec, j->w->op, j->f, operand, &memory, &offset))
        return;
    bool stores_copies = j->spec->replication.memories >> memory & 1;
    judge_address(j, operand);
    judge_turns(j, operand, e);
    judge_part(j, operand, what[operand], stores_copies);
    judge_copies(j, field, what[operand], e->c, !stores_copies);
}

void judge_operands(Judge *j) {
    const Work *w = j->w;
    if (!is_layer(w))
        for (HwField f = HW_F_IN_ADDR; f < HW_F_COUNT; f++)
            if (!has_operand(w, operand_of(f)))
                must_be_unset(j, f);
    if (has_operand(w, HW_IN))
        judge_operand(j, HW_IN, &w->in);
    if (has_operand(w, HW_IN2))
        judge_operand(j, HW_IN2, &w->in2);
    if (is_run(w) && w->has_in2)
        judge_extent(j, HW_IN2, &w->in2);
    if (has_operand(w, HW_OUT) && w->op != HW_OP_CONCAT)
        judge_operand(j, HW_OUT, is_move(w) ? &w->in : &w->out);
    if (is_move(w))
        judge_extent(j, HW_OUT, &w->in);
}
