/* insn.c - instructions by meaning: building, reading back; see insn.h.
 *
 * Input: values by meaning (HwFields) and a row. Output: values by token, and
 * the mirror. Invariant: for values that the row can express, reading back what
 * was built gives what was given.
 */
#include "hwspec/insn.h"

#include <string.h>

const char *const hw_field_name[HW_F_COUNT + 1] = {
#define HW_FIELD(NAME, text, kind, doc) [HW_F_##NAME] = text,
#define HW_OPERAND(NAME, text, kind, doc)                                      \
    [HW_F_IN_##NAME] = "in." text, [HW_F_IN2_##NAME] = "in2." text,            \
    [HW_F_OUT_##NAME] = "out." text,
#include "hwspec/fields.def"
#undef HW_FIELD
#undef HW_OPERAND
};

HwFieldKind hw_field_kind(HwField field) {
    enum { NUM = HW_NUM, FLAG = HW_FLAG, STR = HW_STR };
    static const uint8_t kind[HW_F_COUNT + 2] = {
#define HW_FIELD(NAME, text, is, doc) [HW_F_##NAME] = is,
#define HW_OPERAND(NAME, text, is, doc)                                        \
    [HW_F_IN_##NAME] = is, [HW_F_IN2_##NAME] = is, [HW_F_OUT_##NAME] = is,
#include "hwspec/fields.def"
#undef HW_FIELD
#undef HW_OPERAND
    };
    return (HwFieldKind)kind[field];
}

int32_t insn_token(const HwForm *form, const char *name) {
    for (uint32_t i = 0; i < form->n; i++)
        if (form->token[i].name && !strcmp(form->token[i].name, name))
            return (int32_t)i;
    return -1;
}

int32_t insn_token_of(const HwForm *form, HwField field) {
    for (uint32_t i = 0; i < form->n; i++)
        if (form->token[i].from == field || form->token[i].also == field)
            return (int32_t)i;
    return -1;
}

static const HwServe *serve_of(const HwRow *row, HwOp op) {
    for (uint32_t i = 0; i < row->n_serves; i++)
        if (row->serve[i].op == op)
            return &row->serve[i];
    return NULL;
}

int32_t insn_row(const HwSpec *spec, HwOp op) {
    for (uint32_t i = 0; i < spec->insns->n; i++)
        if (serve_of(&spec->insns->row[i], op))
            return (int32_t)i;
    return -1;
}

/* ---- which operation ---- */

static bool holds(const HwForm *form, const HwValue *value,
                  const HwWhen *when) {
    int32_t at = insn_token(form, when->token);
    if (at < 0)
        return true;
    if (form->token[at].is_string)
        return when->str && !strcmp(value[at].str, when->str);
    return value[at].num == when->num;
}

bool insn_find_op(const HwSpec *spec, const HwInsn *insn, HwOp *out) {
    const HwRow *row = &spec->insns->row[insn->row];
    const HwForm *form = &row->form[insn->form];
    for (uint32_t i = 0; i < row->n_serves; i++) {
        const HwServe *serve = &row->serve[i];
        uint32_t held = 0;
        while (held < serve->n && holds(form, insn->value, &serve->when[held]))
            held++;
        *out = serve->op;
        if (held == serve->n)
            return true;
    }
    return false;
}

HwOp insn_op(const HwSpec *spec, const HwInsn *insn) {
    HwOp op;
    return insn_find_op(spec, insn, &op) ? op : spec->insns->row[insn->row].op;
}

bool insn_is_issued(const HwSpec *spec, const HwInsn *insn) {
    HwOp op = insn_op(spec, insn);
    return op != HW_OP_HOST && op != HW_OP_CONCAT;
}

/* ---- building ---- */

int64_t insn_token_value(const HwToken *token, int64_t field) {
    return field / token->unit + token->bias;
}

static HwValue constant_value(const HwToken *token) {
    return token->is_string ? (HwValue){.str = token->constant_text}
                            : (HwValue){.num = token->constant};
}

static HwValue value_of(const HwToken *token, const HwFields *fields) {
    if (token->from == HW_F_CONST)
        return constant_value(token);
    if (token->from == HW_F_MNEMONIC)
        return (HwValue){0};
    HwField field = token->from;
    if (!fields->set[field] && token->also != HW_F_CONST)
        field = token->also;
    if (token->is_string)
        return (HwValue){.str = fields->set[field] ? fields->str[field] : "0"};
    if (!fields->set[field])
        return (HwValue){0};
    return (HwValue){.num = insn_token_value(token, fields->num[field])};
}

static void apply_conditions(const HwForm *form, const HwServe *serve,
                             HwValue *value) {
    for (uint32_t i = 0; i < serve->n; i++) {
        int32_t at = insn_token(form, serve->when[i].token);
        if (at >= 0)
            value[at] = (HwValue){serve->when[i].num, serve->when[i].str};
    }
}

/* White space around a comment, and nothing but that, is not read back. */
static const char *tidy(Arena *arena, const char *comment) {
    if (!comment)
        return NULL;
    comment += strspn(comment, " \t");
    size_t len = strlen(comment);
    while (len && (comment[len - 1] == ' ' || comment[len - 1] == '\t'))
        len--;
    return len ? arena_strndup(arena, comment, len) : NULL;
}

HwInsn insn_build(Arena *arena, const HwSpec *spec, uint32_t index,
                  const HwFields *fields, const char *comment) {
    const HwRow *row = &spec->insns->row[index];
    const HwForm *form = &row->form[0];
    HwValue *value = ARENA_ARRAY(arena, HwValue, form->n);
    for (uint32_t i = 0; i < form->n; i++)
        value[i] = value_of(&form->token[i], fields);
    const HwServe *serve = fields->has_op       ? serve_of(row, fields->op)
                           : row->n_serves == 1 ? &row->serve[0]
                                                : NULL;
    if (serve)
        apply_conditions(form, serve, value);
    return (HwInsn){.row = (uint16_t)index,
                    .value = value,
                    .comment = tidy(arena, comment)};
}

/* ---- reading back ---- */

static void put(HwFields *out, HwField field, const HwToken *token,
                const HwValue *value) {
    out->set[field] = true;
    if (token->is_string)
        out->str[field] = value->str;
    else if (__builtin_sub_overflow(value->num, token->bias,
                                    &out->num[field]) ||
             __builtin_mul_overflow(out->num[field], (int64_t)token->unit,
                                    &out->num[field]))
        out->num[field] = value->num < 0 ? INT64_MIN : INT64_MAX;
}

static void put_implied(const HwForm *form, HwFields *out) {
    for (uint32_t i = 0; i < form->n_implied; i++) {
        const HwImplied *implied = &form->implied[i];
        out->set[implied->field] = true;
        out->num[implied->field] = implied->of == HW_F_CONST
                                       ? implied->num
                                       : out->num[implied->of] / implied->over;
    }
}

void insn_fields(const HwSpec *spec, const HwInsn *insn, HwFields *out) {
    const HwForm *form = &spec->insns->row[insn->row].form[insn->form];
    *out = (HwFields){.has_op = true, .op = insn_op(spec, insn)};
    for (uint32_t i = 0; i < form->n; i++) {
        const HwToken *token = &form->token[i];
        bool skipped = token->unread && !token->is_string;
        if (token->from >= HW_F_COUNT || skipped)
            continue;
        put(out, token->from, token, &insn->value[i]);
        if (token->also != HW_F_CONST)
            put(out, token->also, token, &insn->value[i]);
    }
    put_implied(form, out);
}
