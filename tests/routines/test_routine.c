/* test_routine.c - what routines refuse, and what they do with indices that are
 * outside. Their values: tests/onnx_testdata.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "routines/routine.h"

#include <math.h>
#include <string.h>

/* A call whose attributes are set by name. */
typedef struct Bench {
    RoutineCall call;
    double number[ROUTINE_NUMBERS];
    Shape shape[ROUTINE_INPUTS];
    const float *in[ROUTINE_INPUTS];
    float out[64];
} Bench;

static void set_up(Bench *b, RoutineKind kind) {
    memset(b, 0, sizeof *b);
    b->call = (RoutineCall){.arena = arena_new("test"),
                            .kind = kind,
                            .number = b->number,
                            .shape = b->shape,
                            .in = b->in,
                            .out = b->out};
    routine_defaults(kind, b->number);
}

static void add(Bench *b, Shape shape, const float *value) {
    b->shape[b->call.n_in] = shape;
    b->in[b->call.n_in++] = value;
}

static const char *set(Bench *b, const char *name, double value) {
    AttrPair pair = {.name = name, .n = 1, .value = &value};
    return routine_set(b->call.kind, &pair, b->number);
}

/* Runs it; the first values are as given. */
static void check(Bench *b, uint32_t n, const float *want) {
    const char *wrong = routine_shape(&b->call, &b->call.out_shape);
    if (wrong)
        fail_msg("%s", wrong);
    assert_int_equal(shape_count(&b->call.out_shape), n);
    routine_run(&b->call);
    for (uint32_t i = 0; i < n; i++)
        assert_true(fabsf(b->out[i] - want[i]) < 1e-6F);
    arena_free(b->call.arena);
}

static void check_refused(Bench *b, const char *why) {
    Shape out;
    const char *wrong = routine_shape(&b->call, &out);
    assert_non_null(wrong);
    if (!strstr(wrong, why))
        fail_msg("%s", wrong);
    arena_free(b->call.arena);
}

static const float three[] = {1, 2, 3}, odd[] = {-1, 7, NAN};

static void test_index_outside(void **state) {
    (void)state;
    Bench b;
    set_up(&b, ROUTINE_TAKE);
    add(&b, (Shape){1, {3}}, three);
    add(&b, (Shape){1, {3}}, odd);
    check(&b, 3, (float[]){3, 0, 0});
    set_up(&b, ROUTINE_GATHER_ELEMENTS);
    add(&b, (Shape){1, {3}}, three);
    add(&b, (Shape){1, {3}}, odd);
    check(&b, 3, (float[]){3, 0, 0});
    set_up(&b, ROUTINE_GATHER_ND);
    add(&b, (Shape){1, {3}}, three);
    add(&b, (Shape){2, {3, 1}}, odd);
    check(&b, 3, (float[]){3, 0, 0});
    set_up(&b, ROUTINE_SCATTER_ELEMENTS);
    add(&b, (Shape){1, {3}}, three);
    add(&b, (Shape){1, {3}}, odd);
    add(&b, (Shape){1, {3}}, three);
    check(&b, 3, (float[]){1, 2, 1});
    set_up(&b, ROUTINE_SCATTER_ND);
    add(&b, (Shape){1, {3}}, three);
    add(&b, (Shape){2, {3, 1}}, odd);
    add(&b, (Shape){1, {3}}, three);
    check(&b, 3, (float[]){1, 2, 1});
    set_up(&b, ROUTINE_UNPOOL);
    add(&b, (Shape){3, {1, 1, 3}}, three);
    add(&b, (Shape){3, {1, 1, 3}}, odd);
    double size[] = {1, 1, 4};
    AttrPair pair = {.name = "size", .n = 3, .value = size};
    assert_null(routine_set(ROUTINE_UNPOOL, &pair, b.number));
    check(&b, 4, (float[]){0, 0, 0, 1});
}

/* Lengths and places that are no numbers leave results finite. */
static void test_odd_data(void **state) {
    (void)state;
    static const float at[] = {NAN, INFINITY, 0, 0}, one[] = {1};
    Bench b;
    set_up(&b, ROUTINE_GRID_SAMPLE);
    add(&b, shape_nchw(1, 1, 1, 1), one);
    add(&b, shape_nchw(1, 1, 2, 2), at);
    check(&b, 2, (float[]){0, 1});
    set_up(&b, ROUTINE_REVERSE);
    add(&b, (Shape){2, {3, 1}}, three);
    add(&b, (Shape){1, {1}}, at);
    check(&b, 3, three);
    set_up(&b, ROUTINE_TOP_K);
    add(&b, (Shape){1, {3}}, odd);
    assert_null(set(&b, "k", 3));
    assert_null(set(&b, "result", 1));
    check(&b, 3, (float[]){2, 1, 0});
}

static void test_wrong_attributes(void **state) {
    (void)state;
    Bench b;
    set_up(&b, ROUTINE_TOP_K);
    add(&b, (Shape){1, {3}}, three);
    assert_non_null(set(&b, "axis", -1));
    assert_non_null(set(&b, "axis", 0.5));
    assert_non_null(set(&b, "axis", NAN));
    assert_non_null(set(&b, "mode", 0));
    assert_null(set(&b, "axis", 1));
    check_refused(&b, "along an axis");
    set_up(&b, ROUTINE_TOP_K);
    add(&b, (Shape){1, {3}}, three);
    assert_null(set(&b, "k", 4));
    check_refused(&b, "more elements");
    set_up(&b, ROUTINE_TOP_K);
    add(&b, (Shape){1, {3}}, three);
    assert_null(set(&b, "result", 2));
    check_refused(&b, "2 results");
    AttrPair word = {.name = "reduction", .word = "sum"};
    assert_non_null(routine_set(ROUTINE_SCATTER_ND, &word, b.number));
}

/* No shape, however odd, is read outside its numbers. */
static void test_wrong_shapes(void **state) {
    (void)state;
    const Shape odd_shapes[] = {
        {1, {1}}, {2, {3, 9}}, {3, {1, 1, 1}}, {8, {1, 1, 1, 1, 1, 1, 1, 9}}};
    uint32_t refused = 0;
    for (RoutineKind kind = 0; kind < ROUTINE_COUNT; kind++)
        for (uint32_t i = 0; i < 64; i++)
            for (uint32_t n = 1; n <= 8; n++) {
                Bench b;
                Shape out;
                set_up(&b, kind);
                for (uint32_t k = 0; k < n; k++)
                    add(&b, odd_shapes[(i >> 2 * (k % 3)) & 3], NULL);
                refused += routine_shape(&b.call, &out) != NULL;
                if (!routine_shape(&b.call, &out))
                    assert_true(shape_count(&out) > 0);
                arena_free(b.call.arena);
            }
    assert_true(refused > 64 * ROUTINE_COUNT);
}

/* Steps behind an image's length give zeros, and keep the state. */
static void test_lengths(void **state) {
    (void)state;
    static const float weight[] = {1}, none[] = {0}, length[] = {2};
    Bench b;
    for (uint32_t result = 0; result < 2; result++) {
        set_up(&b, ROUTINE_RECURRENT);
        add(&b, (Shape){3, {3, 1, 1}}, three);
        add(&b, (Shape){2, {1, 1}}, weight);
        add(&b, (Shape){2, {1, 1}}, none);
        add(&b, (Shape){1, {1}}, length);
        AttrPair relu = {.name = "f", .word = "relu"};
        assert_null(routine_set(ROUTINE_RECURRENT, &relu, b.number));
        assert_null(set(&b, "given", 1 | 2 | 4 | 16));
        assert_null(set(&b, "reverse", 1));
        assert_null(set(&b, "result", result));
        check(&b, result ? 1 : 3, (float[]){1, 2, 0});
    }
    set_up(&b, ROUTINE_RECURRENT);
    add(&b, (Shape){3, {3, 1, 1}}, three);
    add(&b, (Shape){2, {1, 1}}, weight);
    add(&b, (Shape){2, {1, 1}}, none);
    assert_null(set(&b, "given", 1 | 2));
    check_refused(&b, "other inputs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_outside),
        cmocka_unit_test(test_odd_data),
        cmocka_unit_test(test_wrong_attributes),
        cmocka_unit_test(test_wrong_shapes),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
