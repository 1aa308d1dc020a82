/* `arithmetic`: what the reader makes of it, and what each mistake is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "hwspec/hwspec.h"

#include <string.h>

static const char before[] =
    "machine: {name: tiny, clock: 1MHz, element: 1}\n"
    "memories:\n"
    "  am:  {role: active, size: 1KiB, layout: flat}\n"
    "  in:  {role: input, size: 1KiB, layout: flat}\n"
    "  out: {role: output, size: 1KiB, layout: flat}\n"
    "layouts:\n"
    "  flat: {axes: [c, h, w]}\n"
    "fields: {id: step, op: mnemonic, src: in.addr, dst: out.addr}\n"
    "instructions:\n"
    "  RUN: {for: conv, text: id RUN src dst}\n"
    "engines: {all: {runs: [conv], arithmetic: a}}\n"
    "arithmetic:\n";

static const char *messages(Arena *arena, const Diag *diag) {
    Text text = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *m = diag_at(diag, i);
        text_addf(&text, "%u:%u: %s\n", m->loc.line, m->loc.col, m->text);
    }
    return text_str(&text);
}

static const HwSpec *read(Arena *arena, Diag *diag, const char *arithmetic) {
    const char *text = arena_printf(arena, "%s%s", before, arithmetic);
    return hwspec_read(arena, diag, "tiny.yaml", text, strlen(text), 0, NULL);
}

static const HwArith *good(Arena *arena, const char *arithmetic) {
    Diag *diag = diag_new(arena);
    const HwSpec *spec = read(arena, diag, arithmetic);
    assert_string_equal(messages(arena, diag), "");
    assert_non_null(spec);
    assert_ptr_equal(spec->engine[0].arithmetic, &spec->arithmetic[0]);
    return &spec->arithmetic[0];
}

static void bad(const char *arithmetic, const char *wanted) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    assert_null(read(arena, diag, arithmetic));
    assert_string_equal(messages(arena, diag), wanted);
    arena_free(arena);
}

#define CODES "codes: {activations: u8, weights: s8, sums: s64}"
/* A stage of the one arithmetic, from column 8 of line 15 on. */
#define STAGE(text) " a:\n  " CODES "\n  requantise: [\n   " text "]\n"

static void param_is(const HwStage *s, StageParam p, HwGiven given, int64_t lo,
                     int64_t hi) {
    assert_int_equal(s->param[p].given, given);
    assert_true(s->param[p].lo == lo && s->param[p].hi == hi);
}

static void all_is_read(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwArith *a = good(
        arena,
        " a:\n"
        "  pad: 0..255\n"
        "  codes: {activations: u8, weights: s4, sums: s32 wraps, bias: s8,\n"
        "    scales: pow2, zero_points: {x: s24, w: s24, xw: s40,\n"
        "    shift_x: 0..15, shift_w: 3}}\n"
        "  requantise:\n"
        "  - {name: s, per: channel, bias: 7, mul: s24, shift: -15..15,\n"
        "     round: half_up, add: zero}\n"
        "  - {name: t, table: {segments: 16, start: s36, mul: s16,\n"
        "     shift: 0..30, add: u8}, round: half_even_outward}\n"
        "  - {saturate: codes}\n"
        "  - {saturate: -5..9}\n"
        "  - {name: f, factor: f32, round: float_even}\n");
    assert_int_equal(a->pad.given, HW_GIVEN_LAYER);
    assert_int_equal(a->pad.hi, 255);
    assert_int_equal(a->weights.bits, 4);
    assert_true(a->weights.is_signed && !a->activations.is_signed && a->pow2);
    assert_int_equal(a->sums.bits, 32);
    assert_int_equal(a->overflow, HW_WRAPS);
    assert_int_equal(a->zero_points, HW_ZERO_EXPANDED);
    assert_true(a->zero[HW_ZERO_XW].lo == -(INT64_C(1) << 39));
    assert_int_equal(a->zero[HW_ZERO_SHIFT_X].hi, 15);
    assert_int_equal(a->zero[HW_ZERO_SHIFT_W].given, HW_GIVEN_HERE);
    assert_int_equal(a->n_stages, 5);
    const HwStage *s = a->stage;
    param_is(&s[0], STAGE_BIAS, HW_GIVEN_CHANNEL, -128, 127);
    param_is(&s[0], STAGE_MUL, HW_GIVEN_CHANNEL, -8388608, 8388607);
    param_is(&s[0], STAGE_SHIFT, HW_GIVEN_CHANNEL, -15, 15);
    assert_int_equal(s[0].param[STAGE_ADD].given, HW_GIVEN_ZERO);
    assert_int_equal(s[0].bias_at, 7);
    assert_int_equal(s[0].round, ROUND_HALF_UP);
    assert_int_equal(s[1].segments, 16);
    param_is(&s[1], STAGE_ADD, HW_GIVEN_SEGMENT, 0, 255);
    param_is(&s[2], STAGE_MIN, HW_GIVEN_HERE, 255, 255);
    param_is(&s[2], STAGE_MAX, HW_GIVEN_HERE, 0, 0);
    param_is(&s[3], STAGE_MIN, HW_GIVEN_HERE, 9, 9);
    param_is(&s[3], STAGE_MAX, HW_GIVEN_HERE, -5, -5);
    param_is(&s[4], STAGE_FACTOR, HW_GIVEN_LAYER, 0, UINT32_MAX);
    arena_free(arena);
}

static void types_have_bounds(void **state) {
    (void)state;
    assert_true(hw_code_least((HwCode){64, true}) == INT64_MIN);
    assert_true(hw_code_most((HwCode){64, true}) == INT64_MAX);
    assert_true(hw_code_most((HwCode){64, false}) == INT64_MAX);
    assert_true(hw_code_least((HwCode){8, true}) == -128);
    assert_true(hw_code_most((HwCode){1, false}) == 1);
}

static void bad_stages(void **state) {
    (void)state;
    bad(STAGE("{}"), "16:4: the stage does nothing\n");
    bad(STAGE("{mul: s24}"),
        "16:4: the stage needs a name: the network gives its numbers\n");
    bad(STAGE("{name: a, shift: 0..15}"), "16:4: the stage has no `round`\n");
    bad(STAGE("{name: a, mul: s8, round: floor}"),
        "16:4: the stage rounds, but has nothing to round\n");
    bad(STAGE("{name: a, shift: 0..63, round: floor}"),
        "16:4: the stage shifts by more than 62 bits\n");
    bad(STAGE("{name: a, factor: f32, shift: 3, round: float_even}"),
        "16:4: the stage has a factor, so neither mul nor shift\n");
    bad(STAGE("{name: a, factor: f32, round: half_even}"),
        "16:4: the stage has a rounding of the other kind: float_even and "
        "float_even_carry are those of a factor\n");
    bad(STAGE("{saturate: 0..9, min: 3}"),
        "16:4: the stage saturates, so it has neither min nor max\n");
    bad(STAGE("{name: a, add: u8, table: {segments: 4, start: s8}}"),
        "16:4: the stage has a table, whose keys stand inside it\n");
    bad(STAGE("{min: 3}, {name: a, mul: s8}, {name: a, add: s8}"),
        "16:34: `a` is the name of an earlier stage of `a`\n");
    bad(STAGE("{name: a, shift: 3, round: up}"),
        "16:31: `up` is not one of: floor, trunc, half_up, half_away, "
        "half_even, double, float_even, float_even_carry, "
        "half_even_outward\n");
    bad(STAGE("{add: s65}"),
        "16:10: `s65` is not where a number comes from: a type (s24) or a "
        "range (0..15) of what the network gives, a number, or `zero`\n");
    bad(STAGE("{saturate: 9}"),
        "16:15: `9` is neither a range (-128..127) nor `codes`\n");
    bad(STAGE("{name: a, bias: 63}"), "16:20: a bias is shifted by 0 to 62\n");
    bad(STAGE("{name: a, bias: 3}"),
        "16:4: the stage adds a bias: `codes` has no type of it\n");
    bad(STAGE("{name: a, table: {segments: 2000, start: s8}}"),
        "16:32: a table has at most 1024 segments\n");
    bad(STAGE(""), "15:15: 1 to 16 stages\n");
}

static void bad_codes(void **state) {
    (void)state;
    const char rest[] = "\n  requantise: [{saturate: codes}]\n";
    Arena *arena = arena_new("test");
    bad(arena_printf(
            arena,
            " a:\n  codes: {activations: f8, weights: s0, sums: s32 x}%s",
            rest),
        "14:24: `f8` is not a type: u8, s24 and the like, up to 64 bits\n"
        "14:37: `s0` is not a type: u8, s24 and the like, up to 64 bits\n"
        "14:47: `s32 x` is not a type of sums: s64, or one that is left: s32 "
        "wraps, s32 saturates\n");
    bad(arena_printf(arena,
                     " a:\n  codes: {activations: s24, weights: s8, sums: "
                     "s32}%s",
                     rest),
        "14:10: activations and weights have up to 16 bits\n");
    bad(arena_printf(arena,
                     " a:\n  codes: {activations: s8, weights: s8, sums: s32,"
                     " zero_points: {x: s9, w: s9, xw: s9, shift_w: -1..3}}%s",
                     rest),
        "14:97: a sum is shifted by 0 to 62\n");
    bad(arena_printf(arena, " b:\n  " CODES "%s", rest),
        "11:43: `a` is not one of: b\n");
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_read),
        cmocka_unit_test(types_have_bounds),
        cmocka_unit_test(bad_stages),
        cmocka_unit_test(bad_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
