/* test_expr.c - expressions: values, ranges, reading back, and what is wrong.
 *
 * Of random expressions each value must lie in its range, and what is read back
 * must give the value again, and nothing beside it.
 */
#include "hwspec/expr/expr.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

typedef struct World {
    Arena *arena;
    Diag *diag;
    ExprNames *names;
    ExprEnv env;
} World;

static void add(World *w, const char *name, int64_t lo, int64_t hi) {
    expr_add(w->names, &(ExprName){.name = name,
                                   .kind = EXPR_MEANING,
                                   .domain = {.range = {lo, hi}}});
}

static const int64_t odd[] = {1, 3, 5};

static World world(void) {
    Arena *arena = arena_new("test");
    World w = {arena, diag_new(arena), expr_names(arena), {0}};
    add(&w, "in.c", 1, 1024);
    add(&w, "in.w", 1, 512);
    add(&w, "x", -100, 100);
    add(&w, "big", INT64_MIN, INT64_MAX);
    expr_add(w.names, &(ExprName){.name = "flag",
                                  .kind = EXPR_MEANING,
                                  .is_flag = true,
                                  .domain = {.range = {0, 1}}});
    expr_add(w.names, &(ExprName){.name = "kernel",
                                  .kind = EXPR_MEANING,
                                  .domain = {{1, 5}, 3, odd, 1}});
    expr_add(w.names, &(ExprName){.name = "v",
                                  .kind = EXPR_VECTOR,
                                  .domain = {.range = {0, 9}}});
    expr_add(w.names, &(ExprName){.name = "i", .kind = EXPR_INDEX});
    expr_add(w.names, &(ExprName){.name = "size(bn)",
                                  .kind = EXPR_MEANING,
                                  .domain = {.range = {0, 99}}});
    enum { MOST = 64 };
    w.env = (ExprEnv){w.names, ARENA_ARRAY(arena, bool, MOST),
                      ARENA_ARRAY(arena, int64_t, MOST),
                      ARENA_ARRAY(arena, ExprVector, MOST)};
    return w;
}

static const Expr *parse(World *w, const char *text) {
    const Expr *e =
        expr_parse(w->names, w->diag, text, (Loc){"test", 7, 11}, NULL);
    return e;
}

static void set(World *w, const char *name, int64_t value) {
    uint32_t number = expr_find(w->names, name);
    w->env.set[number] = true;
    w->env.num[number] = value;
}

static void set_all(World *w) {
    static const int64_t values[] = {4, 5, 6};
    set(w, "in.c", 21);
    set(w, "in.w", 10);
    set(w, "x", -7);
    set(w, "big", INT64_MAX);
    set(w, "flag", 1);
    set(w, "kernel", 3);
    set(w, "size(bn)", 8);
    w->env.vector[expr_find(w->names, "v")] =
        (ExprVector){.set = true, .n = 3, .num = values};
}

/* ---- values ---- */

static const struct {
    const char *text;
    int64_t value;
} values[] = {
    {"1 + 2 * 3", 7},
    {"(1 + 2) * 3", 9},
    {"10 - 3 - 2", 5},
    {"0x10 + 1", 17},
    {"-7 / 2", -4},
    {"7 / -2", -4},
    {"-7 / -2", 3},
    {"-7 % 4", 1},
    {"7 % -4", -1},
    {"-8 % 4", 0},
    {"--3", 3},
    {"ceil(7, 2)", 4},
    {"ceil(-7, 2)", -3},
    {"ceil(7, -2)", -3},
    {"round_up(7, 4)", 8},
    {"round_up(8, 4)", 8},
    {"round_up(-7, 4)", -4},
    {"log2(1)", 0},
    {"log2(1023)", 9},
    {"log2(1024)", 10},
    {"exp2(0)", 1},
    {"exp2(62)", INT64_C(1) << 62},
    {"exp2(0 - 1)", 0},
    {"bits(0x1234, 4, 8)", 0x23},
    {"bits(-1, 60, 3)", 7},
    {"min(3, 1, 2)", 1},
    {"max(3, 1, 2)", 3},
    {"abs(x)", 7},
    {"if(in.c < 22, 5, 6)", 5},
    {"if(not in.c < 22, 5, 6)", 6},
    {"if(flag and in.c == 21 or 1 == 2, 5, 6)", 5},
    {"some(9, in.c != 21)", 0},
    {"some(9, flag)", 9},
    {"in.c>=21", 1},
    {"in.c<=20", 0},
    {"in.c > 21", 0},
    {"v[2]", 6},
    {"v[in.c % 2]", 5},
    {"size(bn) * 2", 16},
    {"min(in.c, 30720 / (kernel * kernel * in.c))", 21},
    /* only the branch that is taken has a value */
    {"if(flag, 1, v[99])", 1},
    {"big - big + 1", 1},
};

static void have_values(void **state) {
    (void)state;
    World w = world();
    set_all(&w);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const Expr *e = parse(&w, values[i].text);
        ExprFault fault = {0};
        int64_t value = 0;
        if (!e || !expr_eval(&w.env, e, &value, &fault))
            fail_msg("%s has no value", values[i].text);
        if (value != values[i].value)
            fail_msg("%s is %lld, not %lld", values[i].text, (long long)value,
                     (long long)values[i].value);
    }
    arena_free(w.arena);
}

static const struct {
    const char *text, *message;
} faults[] = {
    {"big + 1", "big + 1 exceeds 64 bits"},
    {"-(-big - 1)", "-(-big - 1) exceeds 64 bits"},
    {"big * 2", "big * 2 exceeds 64 bits"},
    {"abs(-big - 1)", "abs(-big - 1) exceeds 64 bits"},
    {"(-big - 1) / -1", "(-big - 1) / -1 exceeds 64 bits"},
    {"round_up(big, 16)", "round_up(big, 16) exceeds 64 bits"},
    {"1 / (in.c - 21)", "1 / (in.c - 21) has no value: in.c - 21 is 0"},
    {"1 % (in.c - 21)", "1 % (in.c - 21) has no value: in.c - 21 is 0"},
    {"log2(x)", "log2(x) has no value: x is below 1"},
    {"v[3]", "v has 3 values, number 3 is asked for"},
    {"v[-1]", "v has 3 values, number -1 is asked for"},
};

static void have_faults(void **state) {
    (void)state;
    World w = world();
    set_all(&w);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const Expr *e = parse(&w, faults[i].text);
        ExprFault fault = {0};
        int64_t value;
        assert_non_null(e);
        assert_false(expr_eval(&w.env, e, &value, &fault));
        assert_string_equal(expr_fault_text(w.arena, &w.env, &fault),
                            faults[i].message);
    }
    const Expr *e = parse(&w, "in.c + 1");
    ExprFault fault = {0};
    int64_t value;
    w.env.set[expr_find(w.names, "in.c")] = false;
    assert_false(expr_eval(&w.env, e, &value, &fault));
    assert_string_equal(expr_fault_text(w.arena, &w.env, &fault),
                        "in.c has no value");
    arena_free(w.arena);
}

/* ---- what is refused ---- */

static const struct {
    const char *text;
    uint32_t column;
    const char *message;
} wrong[] = {
    {"in.chan - 1", 11, "unknown meaning in.chan: in.c?"},
    {"1 + in.k", 15, "unknown meaning in.k: in.c?"},
    {"1 + zzzzzzzzzz", 15, "unknown meaning zzzzzzzzzz"},
    {"", 11, "the expression ends too early"},
    {"1 +", 14, "the expression ends too early"},
    {"(1 + 2", 17, "`)` is missing here"},
    {"1 2", 13, "`2` is left over behind the expression"},
    {"1 + * 2", 15, "`*` is no start of a value"},
    {"9223372036854775808", 11, "this is no number of 63 bits"},
    {"12ab", 11, "this is no number of 63 bits"},
    {"1 < 2 < 3", 17, "`< 3` is left over behind the expression"},
    {"(1 < 2) + 3", 11, "1 < 2 is a condition, where a number is wanted"},
    {"in.c and flag", 11,
     "a number stands where a condition is wanted: compare it"},
    {"flag or in.c", 19,
     "a number stands where a condition is wanted: compare it"},
    {"if(in.c, 1, 2)", 11,
     "a number stands where a condition is wanted: compare it"},
    {"not 3", 11, "a number stands where a condition is wanted: compare it"},
    {"min(1)", 11, "min takes 2 arguments, not 1"},
    {"ceil(1, 2, 3)", 11, "ceil takes 2 arguments, not 3"},
    {"size(act)", 11, "there is no function or section size of that name"},
    {"bits(1, 60, 8)", 11,
     "bits(x, first, how many) takes numbers within 0..63"},
    {"i + 1", 11, "no `each` around this goes over i"},
    {"v + 1", 11, "v is a vector: v[index]"},
    {"v[1, 2]", 11, "v has 1 indices, not 2"},
    {".start", 11, "`.start` stands for an operand's only within `records`"},
};

static void are_refused(void **state) {
    (void)state;
    World w = world();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t had = diag_count(w.diag);
        assert_null(parse(&w, wrong[i].text));
        assert_int_equal(diag_count(w.diag), had + 1);
        const DiagMessage *message = diag_at(w.diag, had);
        assert_string_equal(message->text, wrong[i].message);
        assert_int_equal(message->loc.line, 7);
        assert_int_equal(message->loc.col, wrong[i].column);
    }
    arena_free(w.arena);
}

/* Neither nesting nor size is without end. */
static void are_bounded(void **state) {
    (void)state;
    World w = world();
    char text[20000];
    memset(text, '(', 9999);
    text[9999] = 0;
    assert_null(parse(&w, text));
    memset(text, '-', 9999);
    assert_null(parse(&w, text));
    for (int i = 0; i < 4998; i++)
        memcpy(text + 2 * i, "1+", 2);
    strcpy(text + 2 * 4998, "1");
    assert_null(parse(&w, text));
    const DiagMessage *last = diag_at(w.diag, diag_count(w.diag) - 1);
    assert_non_null(strstr(last->text, "more than 4096 operations"));
    arena_free(w.arena);
}

/* ---- ranges ---- */

static const struct {
    const char *text;
    int64_t lo, hi;
} ranges[] = {
    {"in.c - 1", 0, 1023},
    {"in.c * in.w", 1, 1024 * 512},
    {"x * x", -10000, 10000},
    {"-x", -100, 100},
    {"abs(x)", 0, 100},
    {"abs(x - 200)", 100, 300},
    {"x / 3", -34, 33},
    {"ceil(x, 3)", -33, 34},
    {"x / -3", -34, 33},
    {"100 / in.c", 0, 100},
    {"x % 7", 0, 6},
    {"kernel % 7", 1, 5},
    {"round_up(in.c, 64)", 1, 1087},
    {"log2(in.c)", 0, 10},
    {"exp2(log2(in.c))", 1, 1024},
    {"bits(in.c, 2, 4)", 0, 15},
    {"min(in.c, 16)", 1, 16},
    {"max(in.c, 16)", 16, 1024},
    {"if(flag, in.c, 0)", 0, 1024},
    {"some(in.c, flag)", 0, 1024},
    {"in.c == 3", 0, 1},
    {"big + 1", INT64_MIN + 1, INT64_MAX},
    {"big * big", INT64_MIN, INT64_MAX},
    {"x % -7", -6, 0},
    {"x % kernel", 0, 4},
    {"in.c % 1024", 0, 1023},
    {"in.c % 1025", 1, 1024},
    {"round_up(x, kernel)", -100, 104},
    {"exp2(x)", 0, INT64_MAX},
    {"bits(x, 3, 1)", 0, 1},
    {"v[x]", 0, 9},
    {"some(in.w, flag)", 0, 512},
    {"if(flag, 7, x)", -100, 100},
    {"min(in.c, 30720 / (kernel * kernel * in.c))", 1, 1024},
};

static void have_ranges(void **state) {
    (void)state;
    World w = world();
    const ExprBounds bounds = {.names = w.names};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const Expr *e = parse(&w, ranges[i].text);
        ExprRange range;
        assert_non_null(e);
        assert_true(expr_range(&bounds, w.diag, e, &range));
        if (range.lo != ranges[i].lo || range.hi != ranges[i].hi)
            fail_msg("%s is %lld..%lld", ranges[i].text, (long long)range.lo,
                     (long long)range.hi);
    }
    arena_free(w.arena);
}

static void divisors_are_proved(void **state) {
    (void)state;
    World w = world();
    const ExprBounds bounds = {.names = w.names};
    static const char *const text[] = {"1 / (kernel - 1)", "1 % x",
                                       "ceil(3, x)", "log2(kernel - 1)",
                                       "round_up(1, 0)"};
    static const char *const told[] = {
        "division by kernel - 1, which may be 0 (kernel: 1, 3, 5)",
        "division by x, which may be 0 (x: -100..100)",
        "division by x, which may be 0 (x: -100..100)",
        "logarithm of kernel - 1, which may be below 1 (kernel: 1, 3, 5)",
        "division by 0, which may be 0"};
    for (int i = 0; i < 5; i++) {
        ExprRange range;
        assert_false(expr_range(&bounds, w.diag, parse(&w, text[i]), &range));
        assert_string_equal(diag_at(w.diag, diag_count(w.diag) - 1)->text,
                            told[i]);
    }
    arena_free(w.arena);
}

/* Ranges of a and b in which an operation is tried whole. */
enum { EDGE = 5 };

static const char *const operations[] = {"a + b",     "a - b",      "a * b",
                                         "a / b",     "ceil(a, b)", "min(a, b)",
                                         "max(a, b)", "-a",         "abs(a)"};

/* The least and the most value for a and b in these ranges. */
static ExprRange tried(World *w, const Expr *e, ExprRange a, ExprRange b) {
    ExprRange all = {INT64_MAX, INT64_MIN};
    for (int64_t i = a.lo; i <= a.hi; i++)
        for (int64_t k = b.lo; k <= b.hi; k++) {
            int64_t value = 0;
            ExprFault fault;
            set(w, "a", i);
            set(w, "b", k);
            assert_true(expr_eval(&w->env, e, &value, &fault));
            all.lo = value < all.lo ? value : all.lo;
            all.hi = value > all.hi ? value : all.hi;
        }
    return all;
}

static World with_ranges(ExprDomain **domain) {
    World w = world();
    add(&w, "a", 0, 0);
    add(&w, "b", 0, 0);
    *domain = ARENA_ARRAY(w.arena, ExprDomain, w.names->list.n);
    for (uint32_t i = 0; i < w.names->list.n; i++)
        (*domain)[i] = w.names->list.at[i].domain;
    return w;
}

static ExprRange range_in(World *w, ExprDomain *domain, const Expr *e,
                          ExprRange a, ExprRange b) {
    const ExprBounds bounds = {w->names, domain, w->names->list.n};
    ExprRange range = {0, 0};
    domain[expr_find(w->names, "a")] = (ExprDomain){.range = a};
    domain[expr_find(w->names, "b")] = (ExprDomain){.range = b};
    assert_true(expr_range(&bounds, w->diag, e, &range));
    return range;
}

static void ranges_are_exact(void **state) {
    (void)state;
    ExprDomain *domain;
    World w = with_ranges(&domain);
    for (size_t op = 0; op < sizeof operations / sizeof *operations; op++) {
        const Expr *e = parse(&w, operations[op]);
        bool divides = strstr(operations[op], "/") || operations[op][0] == 'c';
        assert_non_null(e);
        for (int i = 0; i < 1 << 12; i++) {
            ExprRange a = {(i & 7) - EDGE, (i & 7) - EDGE + (i >> 3 & 7)};
            ExprRange b = {(i >> 6 & 7) - EDGE,
                           (i >> 6 & 7) - EDGE + (i >> 9 & 7)};
            if (divides && b.lo <= 0 && b.hi >= 0)
                continue;
            ExprRange has = range_in(&w, domain, e, a, b);
            ExprRange is = tried(&w, e, a, b);
            assert_int_equal(has.lo, is.lo);
            assert_int_equal(has.hi, is.hi);
        }
    }
    arena_free(w.arena);
}

/* What has no room in 64 bits is the last number that has. */
static const struct {
    const char *text;
    int64_t a, b, value;
} ends[] = {
    {"a + b", INT64_MAX, 1, INT64_MAX},
    {"a + b", INT64_MIN, -1, INT64_MIN},
    {"a - b", INT64_MIN, 1, INT64_MIN},
    {"a - b", INT64_MAX, -1, INT64_MAX},
    {"a - b", 0, INT64_MIN, INT64_MAX},
    {"a * b", INT64_MAX, 2, INT64_MAX},
    {"a * b", INT64_MAX, -2, INT64_MIN},
    {"a * b", INT64_MIN, 2, INT64_MIN},
    {"a * b", INT64_MIN, -1, INT64_MAX},
    {"a * b", INT64_MIN, 0, 0},
    {"a / b", INT64_MIN, -1, INT64_MAX},
    {"a / b", INT64_MIN, 1, INT64_MIN},
    {"ceil(a, b)", INT64_MIN, -1, INT64_MAX},
    {"ceil(a, b)", INT64_MAX, -1, -INT64_MAX},
    {"-a", INT64_MIN, 0, INT64_MAX},
    {"abs(a)", INT64_MIN, 0, INT64_MAX},
    {"exp2(a)", 62, 0, INT64_C(1) << 62},
    {"exp2(a)", 0, 0, 1},
    {"exp2(a)", -1, 0, 0},
    {"log2(a)", INT64_MAX, 0, 62},
    {"log2(a)", 1, 0, 0},
};

static void ranges_end_at_64_bits(void **state) {
    (void)state;
    ExprDomain *domain;
    World w = with_ranges(&domain);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        ExprRange has = range_in(&w, domain, parse(&w, ends[i].text),
                                 (ExprRange){ends[i].a, ends[i].a},
                                 (ExprRange){ends[i].b, ends[i].b});
        if (has.lo != ends[i].value || has.hi != ends[i].value)
            fail_msg("%s of %lld, %lld is %lld..%lld", ends[i].text,
                     (long long)ends[i].a, (long long)ends[i].b,
                     (long long)has.lo, (long long)has.hi);
    }
    ExprRange far = range_in(&w, domain, parse(&w, "exp2(a)"),
                             (ExprRange){61, 63}, (ExprRange){0, 0});
    assert_int_equal(far.lo, INT64_C(1) << 61);
    assert_int_equal(far.hi, INT64_MAX);
    arena_free(w.arena);
}

/* ---- reading back ---- */

static const struct {
    const char *text;
    bool tells;
} read_back[] = {
    {"x", true},
    {"x - 1", true},
    {"3 - x", true},
    {"2 * x + in.c", true},
    {"-x", true},
    {"in.c * x", true},
    {"(kernel - 1) / 2", false /* of kernel, below */},
    {"x + x", false},
    {"x / 2", false},
    {"x % 2", false},
    {"min(x, 3)", false},
    {"if(flag, x, 0)", false},
    {"in.c", false},
    {"v[x]", false},
};

static void tell_what_they_can(void **state) {
    (void)state;
    World w = world();
    const ExprBounds bounds = {.names = w.names};
    uint32_t x = expr_find(w.names, "x"), k = expr_find(w.names, "kernel");
    for (size_t i = 0; i < sizeof read_back / sizeof *read_back; i++)
        if (expr_tells(&bounds, parse(&w, read_back[i].text), x) !=
            read_back[i].tells)
            fail_msg("%s", read_back[i].text);
    assert_true(expr_tells(&bounds, parse(&w, "(kernel - 1) / 2"), k));
    assert_true(expr_tells(&bounds, parse(&w, "ceil(kernel, 2)"), k));
    assert_false(expr_tells(&bounds, parse(&w, "(kernel - 1) / 4"), k));
    assert_false(expr_tells(&bounds, parse(&w, "kernel / in.c"), k));
    arena_free(w.arena);
}

typedef struct Random {
    uint64_t at;
} Random;

static uint64_t rng_below(Random *random, uint64_t n) {
    return rng_bits(rng_seed("expr", 1), random->at++) % n;
}

/* A random expression in which x stands once, and can be told. */
static const char *make(Arena *arena, Random *random, int depth) {
    if (!depth)
        return "x";
    const char *in = make(arena, random, depth - 1);
    int64_t n = (int64_t)rng_below(random, 40) - 20;
    switch (rng_below(random, 6)) {
    case 0:
        return arena_printf(arena, "(%s + %lld)", in, (long long)n);
    case 1:
        return arena_printf(arena, "(in.c - %s)", in);
    case 2:
        return arena_printf(arena, "%lld * (%s)", (long long)(n ? n : 1), in);
    case 3:
        return arena_printf(arena, "-(%s)", in);
    case 4:
        return arena_printf(arena, "(%s) / %lld", in,
                            (long long)(n > 0 ? n : 3));
    default:
        return arena_printf(arena, "ceil(%s, in.w)", in);
    }
}

static void come_back(void **state) {
    (void)state;
    World w = world();
    const ExprBounds bounds = {.names = w.names};
    uint32_t x = expr_find(w.names, "x");
    Random random = {0};
    set_all(&w);
    for (int i = 0; i < 20000; i++) {
        const Expr *e =
            parse(&w, make(w.arena, &random, (int)rng_below(&random, 5)));
        ExprFault fault;
        int64_t is = (int64_t)rng_below(&random, 201) - 100, value;
        ExprRange range, back;
        set(&w, "x", is);
        assert_non_null(e);
        assert_true(expr_eval(&w.env, e, &value, &fault));
        assert_true(expr_range(&bounds, w.diag, e, &range));
        assert_true(range.lo <= value && value <= range.hi);
        assert_true(expr_invert(&w.env, e, x, value, &back));
        assert_true(back.lo <= is && is <= back.hi);
        set(&w, "x", back.lo);
        assert_true(expr_eval(&w.env, e, &range.lo, &fault));
        assert_int_equal(range.lo, value);
        set(&w, "x", back.hi);
        assert_true(expr_eval(&w.env, e, &range.hi, &fault));
        assert_int_equal(range.hi, value);
        set(&w, "x", back.hi + 1);
        assert_true(!expr_eval(&w.env, e, &range.hi, &fault) ||
                    range.hi != value);
    }
    arena_free(w.arena);
}

static void print_as_they_read(void **state) {
    (void)state;
    World w = world();
    set_all(&w);
    static const char *const text[] = {
        "(in.c - 1) * 2 - (x - 3)", "in.c / (x / 2)", "-(in.c + 1)",
        "not (flag and in.c == 3) or flag", "if(flag, min(1, 2), v[x + 8])"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        const Expr *e = parse(&w, text[i]);
        assert_non_null(e);
        assert_string_equal(expr_text(w.arena, w.names, e, NULL), text[i]);
    }
    assert_string_equal(
        expr_text(w.arena, w.names, parse(&w, "in.c * in.w * x"), &w.env),
        "21 * 10 * (-7)");
    arena_free(w.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(have_values),
        cmocka_unit_test(have_faults),
        cmocka_unit_test(are_refused),
        cmocka_unit_test(are_bounded),
        cmocka_unit_test(have_ranges),
        cmocka_unit_test(ranges_are_exact),
        cmocka_unit_test(ranges_end_at_64_bits),
        cmocka_unit_test(divisors_are_proved),
        cmocka_unit_test(tell_what_they_can),
        cmocka_unit_test(come_back),
        cmocka_unit_test(print_as_they_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
