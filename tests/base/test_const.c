/* Shapes, and constants whose values are made when read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/const.h"
#include "base/half.h"
#include "base/rng.h"

#include <string.h>

static void test_shape_text(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Shape shape;
    assert_true(shape_parse("1x3x224x224", &shape));
    assert_int_equal(shape_count(&shape), 3 * 224 * 224);
    assert_string_equal(shape_text(arena, &shape), "1x3x224x224");
    assert_true(shape_parse("2,3", &shape));
    assert_string_equal(shape_text(arena, &shape), "2x3");
    assert_string_equal(shape_text(arena, &(Shape){0}), "scalar");
    const char *const wrong[] = {
        "",      "x",  "3x",          "0x3", "-1x3", "3x3x3x3x3x3x3x3x3",
        "3 x 3", " 3", "65536x65536", "3.5", "1e3",  "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(shape_parse(wrong[i], &shape));
    arena_free(arena);
}

static void test_shape_chw(void **state) {
    (void)state;
    static const struct {
        Shape shape;
        uint32_t c, h, w;
    } row[] = {
        {{4, {1, 3, 5, 7}}, 3, 5, 7}, {{4, {2, 3, 5, 7}}, 6, 5, 7},
        {{3, {2, 3, 5}}, 6, 5, 1},    {{2, {2, 3}}, 6, 1, 1},
        {{1, {9}}, 9, 1, 1},          {{0, {0}}, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        uint32_t c, h, w;
        shape_chw(&row[i].shape, &c, &h, &w);
        assert_int_equal(c, row[i].c);
        assert_int_equal(h, row[i].h);
        assert_int_equal(w, row[i].w);
    }
}

static void test_too_large_a_count(void **state) {
    (void)state;
    Shape shape = {3, {1 << 16, 1 << 15, 1}};
    assert_int_equal(shape_count(&shape), SHAPE_MAX_COUNT);
    shape.dim[2] = 2;
    assert_true(shape_count(&shape) == UINT64_MAX);
}

static void test_unaligned_floats(void **state) {
    (void)state;
    const float values[3] = {1.5f, -2.0f, 3.25f};
    unsigned char raw[sizeof values + 1];
    memcpy(raw + 1, values, sizeof values);
    Const c = {.shape = {1, {3}}, .kind = CONST_F32, .data = raw + 1};
    float out[3];
    double out64[3];
    const_read(&c, out);
    assert_memory_equal(out, values, sizeof values);
    const_read_f64(&c, out64);
    for (int i = 0; i < 3; i++)
        assert_true(out64[i] == (double)values[i]);
}

static void test_factors_are_applied_in_double(void **state) {
    (void)state;
    const double data[4] = {0.1, 0.2, 0.3, 0.4};
    const double mul0[2] = {3, 5}, mul1[2] = {7, 11};
    Const c = {.shape = {2, {2, 2}}, .kind = CONST_F64, .data = data};
    c.mul0 = mul0;
    c.mul1 = mul1;
    float out[4];
    const_read(&c, out);
    for (int i = 0; i < 4; i++) {
        double exact = mul0[i / 2] * mul1[i % 2] * data[i];
        assert_true(out[i] == (float)exact);
    }
}

/* [4, 4, 1] in 2 groups from a base of [4, 2, 1]:
 *     0 1 . .
 *     2 3 . .
 *     . . 4 5
 *     . . 6 7   */
static void test_groups_are_diagonal_blocks(void **state) {
    (void)state;
    float data[8], out[16];
    for (int i = 0; i < 8; i++)
        data[i] = (float)(i + 1);
    Const c = {.shape = {3, {4, 4, 1}}, .kind = CONST_F32, .data = data};
    c.groups = 2;
    const_read(&c, out);
    const float want[16] = {1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0, 7, 8};
    assert_memory_equal(out, want, sizeof want);
}

/* Elements of each kind, unaligned; halves that round. */
static void test_narrow_elements(void **state) {
    (void)state;
    const uint16_t half[] = {0x3C00, 0xC000, 0x0001, 0x7BFF, 0xFC00, 0x3555};
    const double want[] = {1, -2, 0x1p-24, 65504, -INFINITY, 0x1.554p-2};
    const uint16_t brain[] = {0x3F80, 0xC040, 0x0001, 0x7F7F};
    const double brains[] = {1, -3, 0x1p-133, 0x1.FEp127};
    const uint8_t byte[] = {0, 127, 128, 255};
    unsigned char raw[sizeof half + 1];
    double out[6];
    memcpy(raw + 1, half, sizeof half);
    Const c = {.shape = {1, {6}}, .kind = CONST_F16, .data = raw + 1};
    const_read_f64(&c, out);
    for (int i = 0; i < 6; i++) {
        assert_true(out[i] == want[i]);
        assert_true(round_to_half(want[i]) == want[i]);
    }
    c = (Const){.shape = {1, {4}}, .kind = CONST_BF16, .data = brain};
    assert_int_equal(const_data_bytes(&c), 8);
    const_read_f64(&c, out);
    for (int i = 0; i < 4; i++) {
        assert_true(out[i] == brains[i]);
        assert_true(round_to_brain(brains[i]) == brains[i]);
    }
    c = (Const){.shape = {1, {4}}, .kind = CONST_I8, .data = byte};
    const_read_f64(&c, out);
    assert_true(out[1] == 127 && out[2] == -128 && out[3] == -1);
    c.kind = CONST_U8;
    const_read_f64(&c, out);
    assert_true(out[2] == 128 && out[3] == 255);
}

static void test_rounding_to_halves(void **state) {
    (void)state;
    assert_true(round_to_half(1 + 0x1p-11) == 1); /* ties go to even */
    assert_true(round_to_half(1 + 3 * 0x1p-11) == 1 + 0x1p-9);
    assert_true(round_to_half(65519) == 65504);
    assert_true(isinf(round_to_half(65520)) && round_to_half(-1e30) < -1e30);
    assert_true(round_to_half(0x1p-25) == 0);
    assert_true(round_to_half(0x1.8p-25) == 0x1p-24);
    assert_true(isnan(round_to_half((double)NAN)));
    assert_true(signbit(round_to_half(-0.0)));
    assert_true(round_to_brain(1 + 0x1p-8) == 1);
    assert_true(round_to_brain(-0x1.FFp127) < -0x1.FFp127);
}

/* Every order of [4, 6, 2, 5] by its definition, with factors and in groups:
 * the base is [4, 6 / groups, 2, 5] with its axes permuted. */
static void check_order(const uint32_t *order, uint32_t groups) {
    enum { D0 = 4, D1 = 6, D2 = 2, D3 = 5, ALL = D0 * D1 * D2 * D3 };
    const double mul0[D0] = {2, 3, 5, 7}, mul1[D1] = {1, 10, 100, 4, 40, 400};
    float data[ALL], out[ALL];
    for (int i = 0; i < ALL; i++)
        data[i] = (float)(i + 1);
    Const c = {.shape = {4, {D0, D1, D2, D3}}, .kind = CONST_F32};
    c.data = data;
    c.groups = groups;
    c.mul0 = mul0;
    c.mul1 = mul1;
    const_set_order(&c, order);
    const_read(&c, out);
    uint32_t dim[4] = {D0, D1 / groups, D2, D3}, base[4], index[4];
    for (uint32_t i = 0; i < 4; i++)
        base[order[i]] = dim[i];
    for (uint32_t i = 0; i < ALL; i++) {
        uint32_t at[4] = {i / (D1 * D2 * D3), i / (D2 * D3) % D1, i / D3 % D2,
                          i % D3};
        bool zero = at[0] / (D0 / groups) != at[1] / dim[1];
        double want = mul0[at[0]] * mul1[at[1]];
        at[1] %= dim[1];
        for (uint32_t k = 0; k < 4; k++)
            index[order[k]] = at[k];
        want *=
            1 +
            ((index[0] * base[1] + index[1]) * base[2] + index[2]) * base[3] +
            index[3];
        assert_true(out[i] == (zero ? 0.0f : (float)want));
    }
}

static void test_every_order(void **state) {
    (void)state;
    uint32_t n = 0;
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t order[4] = {i / 64, i / 16 % 4, i / 4 % 4, i % 4};
        if (!const_order_valid(4, order))
            continue;
        n++;
        check_order(order, 1);
        check_order(order, 2);
    }
    assert_int_equal(n, 24);
}

/* More rows than are read side by side, and a number that they do not divide;
 * twice transposed is as it was; a row that becomes a column has no order. */
static void test_transposed_matrix(void **state) {
    (void)state;
    enum { ROWS = 37, COLUMNS = 5 };
    float data[ROWS * COLUMNS], out[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = (float)i;
    Const c = {.shape = {2, {COLUMNS, ROWS}}, .kind = CONST_F32, .data = data};
    Const t = const_permuted(&c, (const uint32_t[]){1, 0});
    assert_true(const_has_order(&t) && t.data == data);
    const_read(&t, out);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        assert_true(out[i] == data[i % COLUMNS * ROWS + i / COLUMNS]);
    Arena *arena = arena_new("test");
    Const flat = const_reshaped(arena, &t, &(Shape){1, {ROWS * COLUMNS}});
    assert_false(const_has_order(&flat));
    float again_flat[ROWS * COLUMNS];
    const_read(&flat, again_flat);
    assert_memory_equal(again_flat, out, sizeof out);
    Const wide = const_reshaped(arena, &t, &(Shape){4, {ROWS, COLUMNS, 1, 1}});
    assert_true(const_has_order(&wide) && wide.data == data);
    const_read(&wide, again_flat);
    assert_memory_equal(again_flat, out, sizeof out);
    arena_free(arena);
    Const again = const_permuted(&t, (const uint32_t[]){1, 0});
    assert_false(const_has_order(&again));
    Const row = {.shape = {2, {1, 9}}, .kind = CONST_F32, .data = data};
    row = const_permuted(&row, (const uint32_t[]){1, 0});
    assert_false(const_has_order(&row));
}

static void test_seeded(void **state) {
    (void)state;
    Const c = {.shape = {1, {1000}}, .kind = CONST_SEEDED, .seed = 42};
    c.mean = 10;
    c.spread = 2;
    float out[1000], again[1000];
    const_read(&c, out);
    const_read(&c, again);
    assert_memory_equal(out, again, sizeof out);
    double sum = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(out[i] == (float)(10 + 2 * rng_unit(42, i)));
        assert_true(out[i] >= 8 && out[i] <= 12);
        sum += (double)out[i];
    }
    assert_true(sum > 9800 && sum < 10200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape_text),
        cmocka_unit_test(test_shape_chw),
        cmocka_unit_test(test_too_large_a_count),
        cmocka_unit_test(test_unaligned_floats),
        cmocka_unit_test(test_factors_are_applied_in_double),
        cmocka_unit_test(test_narrow_elements),
        cmocka_unit_test(test_rounding_to_halves),
        cmocka_unit_test(test_every_order),
        cmocka_unit_test(test_transposed_matrix),
        cmocka_unit_test(test_groups_are_diagonal_blocks),
        cmocka_unit_test(test_seeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
