/* Instruction rows: round trips of every shipped row on random values, operands
 * in every memory, and what each mistake in a line is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/text.h"
#include "hwspec/rows.h"
#include "tests/effort.h"
#include "tests/hwspec/insn.h"

#include <string.h>

enum { TRIES = 2000 };

typedef struct Random {
    uint64_t seed, at;
} Random;

static uint64_t next(Random *r) {
    return rng_bits(r->seed, r->at++);
}

static const HwSpec *load(Arena *arena, const char *name) {
    Diag *diag = diag_new(arena);
    const HwSpec *spec = hwspec_load(arena, diag, name, 0, NULL);
    diag_print(diag, stderr);
    assert_non_null(spec);
    return spec;
}

/* ---- random instructions ---- */

static const char *random_name(Arena *arena, Random *r) {
    static const char *const odd[] = {
        "",    "%",        "#",       "%20",   "a b",  "conv1/7x7_s2",
        "x#3", "0x12",     "XNConv",  "\t",    "a%",   "%zz",
        "-1",  "\xc3\xa9", "a#b # c", "%25%0", "MUTE", "inception_3a/output"};
    size_t n = sizeof odd / sizeof *odd;
    uint64_t pick = next(r) % (2 * n);
    return pick < n ? odd[pick]
                    : arena_printf(arena, "layer%u", (unsigned)pick);
}

static int64_t random_number(Random *r) {
    static const int64_t edge[] = {0, 1, -1, INT64_MAX, INT64_MIN, 4096, 224};
    uint64_t bits = next(r), pick = bits % 10;
    return pick < 7 ? edge[pick] : (int64_t)(bits >> (bits & 63));
}

static void apply(const HwForm *form, const HwServe *serve, HwValue *value) {
    for (uint32_t i = 0; i < serve->n; i++) {
        int32_t at = insn_token(form, serve->when[i].token);
        if (at >= 0)
            value[at] = (HwValue){serve->when[i].num, serve->when[i].str};
    }
}

static HwInsn random_insn(Arena *arena, const HwSpec *spec, Random *r,
                          uint32_t row, uint32_t index) {
    const HwRow *is = &spec->insns->row[row];
    const HwForm *form = &is->form[index];
    HwValue *value = ARENA_ARRAY(arena, HwValue, form->n);
    for (uint32_t i = 0; i < form->n; i++) {
        const HwToken *token = &form->token[i];
        if (token->is_string)
            value[i].str = random_name(arena, r);
        else if (!token->name)
            value[i].num = token->constant;
        else if (token->from != HW_F_MNEMONIC)
            value[i].num = random_number(r);
    }
    apply(form, &is->serve[next(r) % is->n_serves], value);
    return (HwInsn){.row = (uint16_t)row,
                    .form = (uint16_t)index,
                    .value = value,
                    .comment = next(r) % 2 ? "am_to_am # and more" : NULL};
}

static void assert_same(const HwSpec *spec, const HwInsn *a, const HwInsn *b) {
    assert_int_equal(a->row, b->row);
    assert_int_equal(a->form, b->form);
    const HwForm *form = &spec->insns->row[a->row].form[a->form];
    for (uint32_t i = 0; i < form->n; i++)
        if (form->token[i].is_string)
            assert_string_equal(a->value[i].str, b->value[i].str);
        else
            assert_int_equal(a->value[i].num, b->value[i].num);
    assert_int_equal(!a->comment, !b->comment);
    if (a->comment)
        assert_string_equal(a->comment, b->comment);
}

/* An older form is read by the first that has as many tokens: two forms of one
 * row with the same number would hide each other. */
static void every_form_is_reachable(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *const *name = hwspec_targets(arena);
    for (; *name; name++) {
        const HwSpec *spec = load(arena, *name);
        for (uint32_t r = 0; r < spec->insns->n; r++) {
            const HwRow *row = &spec->insns->row[r];
            for (uint32_t a = 0; a < row->n_forms; a++)
                for (uint32_t b = 0; b < a; b++)
                    assert_int_not_equal(row->form[a].n, row->form[b].n);
        }
    }
    arena_free(arena);
}

static void round_trips_of(const HwSpec *spec, uint32_t row, uint32_t form) {
    Random random = {rng_seed(spec->machine, row * 16 + form), 0};
    Arena *arena = arena_new("test");
    for (uint32_t i = 0; i < cases_of(TRIES, TRIES / 8); i++) {
        HwInsn insn = random_insn(arena, spec, &random, row, form);
        const char *line = insn_print(arena, spec, &insn);
        HwInsn back = parsed(arena, spec, line);
        assert_same(spec, &insn, &back);
        assert_string_equal(insn_print(arena, spec, &back), line);
        arena_reset(arena);
    }
    arena_free(arena);
}

static void parse_undoes_print(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *const *name = hwspec_targets(arena);
    for (; *name; name++) {
        const HwSpec *spec = load(arena, *name);
        for (uint32_t row = 0; row < spec->insns->n; row++)
            for (uint32_t f = 0; f < spec->insns->row[row].n_forms; f++)
                round_trips_of(spec, row, f);
    }
    arena_free(arena);
}

/* ---- by meaning ---- */

static void fields_undo_build(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *const *name = hwspec_targets(arena);
    for (; *name; name++) {
        const HwSpec *spec = load(arena, *name);
        Random random = {rng_seed(*name, 2), 0};
        for (int i = 0; i < TRIES && spec->insns->n; i++) {
            uint32_t row = (uint32_t)(next(&random) % spec->insns->n);
            HwFields in = {0}, out, again;
            for (uint32_t f = 0; f < HW_F_COUNT; f++) {
                in.set[f] = true;
                in.num[f] = (int64_t)(next(&random) % 1000);
                in.str[f] = "name";
            }
            const HwRow *is = &spec->insns->row[row];
            in.has_op = true;
            in.op = is->serve[next(&random) % is->n_serves].op;
            HwInsn insn = insn_build(arena, spec, row, &in, "  hello ");
            assert_string_equal(insn.comment, "hello");
            insn_fields(spec, &insn, &out);
            assert_int_equal(out.op, in.op);
            assert_int_equal(insn_op(spec, &insn), in.op);
            HwInsn twin = insn_build(arena, spec, row, &out, "hello");
            assert_same(spec, &insn, &twin);
            insn_fields(spec, &twin, &again);
            assert_memory_equal(&out, &again, sizeof out);
        }
    }
    arena_free(arena);
}

static void square_forms_imply_the_rest(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, "xdnn-v2-28");
    HwInsn insn = parsed(arena, spec,
                         "2 XNConv conv1/7x7_s2 7 2 16 26 2 1 1 0x0 224 3 "
                         "0x70000 112 64 0");
    HwFields fields;
    insn_fields(spec, &insn, &fields);
    assert_int_equal(fields.num[HW_F_KERNEL_H], 7);
    assert_int_equal(fields.num[HW_F_STRIDE_W], 2);
    assert_int_equal(fields.num[HW_F_PAD_W], 3);
    assert_int_equal(fields.num[HW_F_PAD_H], 3);
    assert_int_equal(fields.num[HW_F_DILATION_H], 1);
    assert_int_equal(fields.num[HW_F_IN_H], 224);
    assert_int_equal(fields.num[HW_F_OUT_ADDR], 0x70000);
    assert_false(fields.set[HW_F_IN_BACKING]);
    arena_free(arena);
}

static void fields_tell_the_operation(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, "xdnn-v2-28");
    HwInsn add = parsed(arena, spec,
                        "7 XNEltwise res2a 1 0 1 0x0 0x230000 56 56 256 0x0 0");
    HwInsn scale =
        parsed(arena, spec, "7 XNEltwise s -1 1 1 0x0 0x0 56 56 256 0x0 0");
    assert_int_equal(insn_op(spec, &add), HW_OP_ADD);
    assert_int_equal(insn_op(spec, &scale), HW_OP_SCALE);
    assert_int_equal(insn_row(spec, HW_OP_ADD), insn_row(spec, HW_OP_SCALE));
    assert_int_equal(insn_row(spec, HW_OP_FC), -1);
    arena_free(arena);
}

static void text_as_recorded(void **state) {
    (void)state;
    static const struct {
        const char *target, *line;
    } row[] = {
        {"math-engine", "18 XNMaxPool pool3_3x3_s2 3 3 2 2 0 0 0x2 0x0  28 28 "
                        "480 0x3 0x0  14 14 0"},
        {"math-engine", "20 XNConv inception_4a_5x5/Conv2D 5 5 1 1 2 2 1 1 16 "
                        "26 2 1 1 0x0 0x0  14 14 16 0x2 0x6200  14 14 48 0"},
        {"xdnn-v3-96", "# 15 XNConcat inception_3a/output  0x11800 0x13000 "
                       "589824 3 0 0 0 MUTE CODE"},
        {"xdnn-v2-28", "# 193 XNConcat concat28  0x0 0x286000 2646016"},
        {"xdnn-v2-28", "5 XNConv conv0#0 3 3 1 1 1 1 1 1 16 26 2 1 1 0x0 608 "
                       "102 3 0x8c400 608 101 32 0 # SPLIT Code :)"},
        {"xdnn-v2-28", "7 XNGather 0x0 0x1a20000 608 608 3 0 1 1 100 202 # # "
                       " Conv conv0 # SPLIT Code :)"},
    };
    Arena *arena = arena_new("test");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const HwSpec *spec = load(arena, row[i].target);
        HwInsn insn = parsed(arena, spec, row[i].line);
        assert_string_equal(insn_print(arena, spec, &insn), row[i].line);
    }
    const HwSpec *spec = load(arena, "xdnn-v2-28");
    assert_string_equal(
        insn_template(arena, spec, (uint32_t)insn_row(spec, HW_OP_LOAD)),
        "# template XNGather id XNOp uram_dest ddr_src insize_w insize_h "
        "inchan a0 b1 c1 start_row end_row slice srcAddrReadFromImgQ");
    arena_free(arena);
}

/* ---- operands ---- */

/* Through text and back, wherever the operand can be said to lie. */
static void check_operand(Arena *arena, const HwSpec *spec, HwOp op,
                          HwOperand operand, uint32_t memory, Random *random) {
    int32_t row = insn_row(spec, op);
    bool active = spec->memory[memory].role == HW_ACTIVE;
    if (row < 0 || (active && !(hwspec_lies(spec, op, operand) >> memory & 1)))
        return;
    const HwMemory *m = &spec->memory[memory];
    uint64_t offset = next(random) % m->size / m->unit * m->unit;
    HwFields fields = {.has_op = true, .op = op}, back;
    insn_set_operand(spec, &fields, operand, memory, offset);
    HwInsn insn = insn_build(arena, spec, (uint32_t)row, &fields, NULL);
    insn = parsed(arena, spec, insn_print(arena, spec, &insn));
    insn_fields(spec, &insn, &back);
    uint32_t found = UINT32_MAX;
    uint64_t at = UINT64_MAX;
    assert_true(insn_operand(spec, op, &back, operand, &found, &at));
    assert_string_equal(spec->memory[found].name, m->name);
    assert_int_equal(at, offset);
}

static void operands_are_found_again(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *const *name = hwspec_targets(arena);
    for (; *name; name++) {
        const HwSpec *spec = load(arena, *name);
        Random random = {rng_seed(*name, 3), 0};
        if (hwspec_engine(spec, HW_OP_LAYER) >= 0 || !spec->insns->n)
            continue; /* a processor, or files, have no other instructions */
        for (int i = 0; i < TRIES / 20; i++) {
            for (uint32_t m = 0; m < spec->n_active; m++) {
                check_operand(arena, spec, HW_OP_CONV, HW_IN, m, &random);
                check_operand(arena, spec, HW_OP_CONV, HW_OUT, m, &random);
                check_operand(arena, spec, HW_OP_ADD, HW_IN2, m, &random);
                check_operand(arena, spec, HW_OP_LOAD, HW_OUT, m, &random);
                check_operand(arena, spec, HW_OP_STORE, HW_IN, m, &random);
            }
            uint32_t backing = (uint32_t)spec->backing;
            check_operand(arena, spec, HW_OP_LOAD, HW_IN, backing, &random);
            check_operand(arena, spec, HW_OP_STORE, HW_OUT, backing, &random);
            check_operand(arena, spec, HW_OP_LOAD, HW_IN, (uint32_t)spec->input,
                          &random);
            check_operand(arena, spec, HW_OP_STORE, HW_OUT,
                          (uint32_t)spec->output, &random);
        }
    }
    arena_free(arena);
}

static void tiled_operands_lie_in_ddr(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, "xdnn-v3-96");
    Random random = {5, 0};
    for (int i = 0; i < 100; i++) {
        check_operand(arena, spec, HW_OP_CONV, HW_IN, (uint32_t)spec->input,
                      &random);
        check_operand(arena, spec, HW_OP_CONV, HW_IN, (uint32_t)spec->backing,
                      &random);
        check_operand(arena, spec, HW_OP_CONV_POOL_MAX, HW_OUT,
                      (uint32_t)spec->backing, &random);
    }
    arena_free(arena);
}

static void absurd_operands_are_refused(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, "math-engine");
    HwFields fields = {0};
    uint32_t memory;
    uint64_t offset;
    assert_false(
        insn_operand(spec, HW_OP_CONV, &fields, HW_IN, &memory, &offset));
    insn_set_operand(spec, &fields, HW_IN, 0, 4096);
    fields.num[HW_F_IN_OFFSET] = -1;
    fields.set[HW_F_IN_MEMORY] = false;
    assert_false(
        insn_operand(spec, HW_OP_CONV, &fields, HW_IN, &memory, &offset));
    fields.num[HW_F_IN_OFFSET] = 0;
    fields.num[HW_F_IN_BUFFER] = INT64_MAX;
    assert_false(
        insn_operand(spec, HW_OP_CONV, &fields, HW_IN, &memory, &offset));
    fields.num[HW_F_IN_BUFFER] = 7; /* of 4: for the caller to judge */
    assert_true(
        insn_operand(spec, HW_OP_CONV, &fields, HW_IN, &memory, &offset));
    assert_int_equal(offset, 7 << 20);
    arena_free(arena);
}

/* ---- bits ---- */

static int64_t random_stored(const HwBits *bits, Random *random) {
    uint64_t raw = next(random);
    if (bits->width < 64)
        raw &= (UINT64_C(1) << bits->width) - 1;
    if (bits->is_signed && raw >> (bits->width - 1))
        raw |= ~((UINT64_C(1) << bits->width) - 1);
    return ((int64_t)raw + bits->bias) * (int64_t)bits->unit;
}

static void decode_undoes_encode(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, "template");
    Random random = {11, 0};
    uint32_t encoded = 0;
    for (int i = 0; i < TRIES; i++) {
        uint32_t index = (uint32_t)(next(&random) % spec->insns->n);
        const HwRow *row = &spec->insns->row[index];
        Diag *diag = diag_new(arena);
        if (!row->n_bits)
            continue;
        HwFields fields = {.has_op = true, .op = row->op};
        HwInsn insn = insn_build(arena, spec, index, &fields, NULL), back;
        HwValue *value = ARENA_COPY(arena, HwValue, insn.value, row->form[0].n);
        for (uint32_t b = 0; b < row->n_bits; b++)
            if (row->bits[b].name)
                value[row->bits[b].token].num =
                    random_stored(&row->bits[b], &random);
        insn.value = value;
        for (uint32_t t = 0; t < row->form[0].n; t++)
            if (row->form[0].token[t].is_string)
                value[t].str = "";
        uint64_t words[8];
        assert_true(insn_encode(diag, spec, &insn, words, (Loc){0}));
        assert_int_equal(
            insn_decode(arena, diag, spec, words, 8, (Loc){0}, &back),
            row->words);
        assert_same(spec, &insn, &back);
        encoded++;
    }
    assert_true(encoded > TRIES / 10);
    arena_free(arena);
}

static void bits_refuse_what_does_not_fit(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = load(arena, "template");
    HwInsn insn = parsed(
        arena, spec, "VCONV 1 a 0 0x0  8 8 8 1 0x0 8 8 8 9 3 1 1 1 1 1 1 7");
    uint64_t words[8];
    assert_false(insn_encode(diag, spec, &insn, words, (Loc){"f", 3, 1}));
    assert_string_equal(diag_at(diag, 0)->text,
                        "`kw` of VCONV is 9, which does not fit into 3 bits "
                        "of units of 1");
    uint64_t none[] = {UINT64_MAX};
    assert_int_equal(
        insn_decode(arena, diag, spec, none, 1, (Loc){"f", 0, 8}, &insn), 0);
    assert_string_equal(diag_at(diag, 1)->text,
                        "no instruction of acme-slice has these 1 words");
    arena_free(arena);
}

/* ---- bad lines ---- */

static void check_line(const char *target, const char *line,
                       const char *wanted) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    HwInsn insn;
    InsnParse result = insn_parse(arena, diag, load(arena, target), line,
                                  strlen(line), (Loc){"net.cmd", 4, 1}, &insn);
    Text text = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++)
        text_addf(&text, "%s%u:%s", i ? "\n" : "", diag_at(diag, i)->loc.col,
                  diag_at(diag, i)->text);
    assert_int_equal(result, wanted ? INSN_ERROR : INSN_NOTHING);
    assert_string_equal(text_str(&text), wanted ? wanted : "");
    arena_free(arena);
}

static void bad_lines(void **state) {
    (void)state;
    static const char v2[] = "xdnn-v2-28";
    check_line(v2, "", NULL);
    check_line(v2, "  \r", NULL);
    check_line(v2, "# template XNConcat id XNOp name start end size", NULL);
    check_line(v2, "# BUD \"relu\" [u'ReLU'] ['inplace_layer']", NULL);
    check_line(v2, "# ## 140 XNInner fc 16 26 2 0x3a5000 1 1024", NULL);
    check_line(v2, "# 1 Input download not possible", NULL);
    check_line(v2, "# 3 XNConv taken out", NULL);
    check_line(v2, "5 XNFoo a 1 2",
               "3:`XNFoo` is no instruction of xdnn-v2-28");
    check_line(v2, "5", "1:`5` is no instruction of xdnn-v2-28");
    check_line(v2, "5 XNMaxPool a 3 3",
               "17:XNMaxPool has 17 or 12 tokens; this line has 5");
    check_line(v2,
               "7 XNEltwise r one 0 1 0x0 0xg 56 56 256 99999999999999999999 "
               "0",
               "15:`one` is not a number of 64 bits (add)\n"
               "27:`0xg` is not a number of 64 bits (inaddrB)\n"
               "41:`99999999999999999999` is not a number of 64 bits "
               "(outaddr)");
    check_line(v2, "7 XNEltwise r 0 0 1 0x0 0x0 56 56 256 0x0 0",
               "15:these fields make XNEltwise none of: add, scale");
    check_line(v2, "3 XNConcat a 0x0 0x1 1",
               "1:XNConcat is written behind `#`: it moves no data");
    check_line(v2, "# 3 XNConcat a 0x0 0x1",
               "20:XNConcat has 6 tokens; this line has 5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_reachable),
        cmocka_unit_test(parse_undoes_print),
        cmocka_unit_test(fields_undo_build),
        cmocka_unit_test(square_forms_imply_the_rest),
        cmocka_unit_test(fields_tell_the_operation),
        cmocka_unit_test(text_as_recorded),
        cmocka_unit_test(operands_are_found_again),
        cmocka_unit_test(tiled_operands_lie_in_ddr),
        cmocka_unit_test(absurd_operands_are_refused),
        cmocka_unit_test(decode_undoes_encode),
        cmocka_unit_test(bits_refuse_what_does_not_fit),
        cmocka_unit_test(bad_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
