/* range.c - the least and the most that an expression can be.
 *
 * Input: an expression, domains of names. Output: a range that holds all its
 * values; it may hold more. Ends beyond 64 bits are the last ones: whether a
 * value has room is asked when it is computed.
 */
#include "hwspec/expr/expr.h"

#include "base/arith.h"

typedef struct Walk {
    const ExprBounds *bounds;
    Diag *diag;
    bool ok;
} Walk;

ExprDomain expr_domain_of(const ExprBounds *bounds, uint32_t name) {
    static const ExprRange any = {INT64_MIN, INT64_MAX};
    if (name < bounds->n) {
        const ExprDomain *own = &bounds->domain[name];
        if (own->n || own->range.lo <= own->range.hi)
            return *own;
    }
    const ExprName *n = &bounds->names->list.at[name];
    bool told = n->kind == EXPR_MEANING || n->kind == EXPR_VECTOR;
    return told ? n->domain : (ExprDomain){.range = any};
}

static int64_t add_within(int64_t a, int64_t b) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static int64_t sub_within(int64_t a, int64_t b) {
    int64_t rest;
    if (__builtin_sub_overflow(a, b, &rest))
        return b > 0 ? INT64_MIN : INT64_MAX;
    return rest;
}

static int64_t mul_within(int64_t a, int64_t b) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return product;
}

/* Rounded down; b is not 0. */
static int64_t div_within(int64_t a, int64_t b) {
    if (b == -1)
        return sub_within(0, a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t ceil_within(int64_t a, int64_t b) {
    if (b == -1)
        return sub_within(0, a);
    return a / b + (a % b != 0 && (a < 0) == (b < 0));
}

/* Of what is monotone in both: the ends are among the corners. */
static ExprRange corners(ExprRange a, ExprRange b,
                         int64_t (*of)(int64_t, int64_t)) {
    const int64_t v[] = {of(a.lo, b.lo), of(a.lo, b.hi), of(a.hi, b.lo),
                         of(a.hi, b.hi)};
    ExprRange out = {v[0], v[0]};
    for (int i = 1; i < 4; i++) {
        out.lo = v[i] < out.lo ? v[i] : out.lo;
        out.hi = v[i] > out.hi ? v[i] : out.hi;
    }
    return out;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static ExprRange hull(ExprRange a, ExprRange b) {
    return (ExprRange){least(a.lo, b.lo), most(a.hi, b.hi)};
}

static int64_t floor_log2(int64_t value) {
    int64_t bits = -1;
    for (; value > 0; value >>= 1)
        bits++;
    return bits;
}

/* ---- by kind ---- */

static ExprRange walk(Walk *w, const Expr *e);

/* The first name in it, to say what is known of it. */
static void first_name(void *context, uint32_t name) {
    uint32_t *first = context;
    if (*first == EXPR_NONE)
        *first = name;
}

static void refuse(Walk *w, const Expr *e, const Expr *of, const char *what) {
    Arena *arena = w->bounds->names->arena;
    uint32_t name = EXPR_NONE;
    w->ok = false;
    expr_visit(w->bounds->names, of, first_name, &name);
    const char *text = expr_text(arena, w->bounds->names, of, NULL);
    if (name == EXPR_NONE) {
        diag_error(w->diag, e->loc, what, text);
        return;
    }
    ExprDomain domain = expr_domain_of(w->bounds, name);
    diag_error(w->diag, e->loc, "%s (%s: %s)", arena_printf(arena, what, text),
               w->bounds->names->list.at[name].name,
               expr_domain_text(arena, &domain));
}

/* The divisor's range; 1 where it may be 0, after an error. */
static ExprRange divisor(Walk *w, const Expr *e) {
    ExprRange by = walk(w, e->arg[1]);
    if (by.lo > 0 || by.hi < 0)
        return by;
    if (w->ok)
        refuse(w, e, e->arg[1], "division by %s, which may be 0");
    return (ExprRange){1, 1};
}

static ExprRange modulo(Walk *w, const Expr *e) {
    ExprRange a = walk(w, e->arg[0]), by = divisor(w, e);
    if (by.hi < 0)
        return (ExprRange){add_within(by.lo, 1), 0};
    if (a.lo >= 0 && a.hi < by.lo)
        return a;
    return (ExprRange){0, by.hi - 1};
}

static ExprRange round_to(Walk *w, const Expr *e) {
    ExprRange a = walk(w, e->arg[0]), by = divisor(w, e);
    if (by.lo > 0)
        return (ExprRange){a.lo, add_within(a.hi, by.hi - 1)};
    return (ExprRange){INT64_MIN, INT64_MAX};
}

static ExprRange absolute(ExprRange a) {
    ExprRange minus = {sub_within(0, a.hi), sub_within(0, a.lo)};
    if (a.lo >= 0)
        return a;
    return a.hi <= 0 ? minus : (ExprRange){0, most(a.hi, minus.hi)};
}

static ExprRange logarithm(Walk *w, const Expr *e) {
    ExprRange a = walk(w, e->arg[0]);
    if (a.lo < 1 && w->ok)
        refuse(w, e, e->arg[0], "logarithm of %s, which may be below 1");
    return (ExprRange){floor_log2(most(a.lo, 1)), floor_log2(most(a.hi, 1))};
}

static ExprRange power_of_two(Walk *w, const Expr *e) {
    ExprRange a = walk(w, e->arg[0]);
    return (ExprRange){a.lo < 0 ? 0 : INT64_C(1) << (a.lo > 62 ? 62 : a.lo),
                       a.hi < 0    ? 0
                       : a.hi > 62 ? INT64_MAX
                                   : INT64_C(1) << a.hi};
}

static ExprRange of_name(Walk *w, const Expr *e) {
    const ExprName *name = &w->bounds->names->list.at[e->name];
    for (uint32_t i = 0; i < e->n; i++)
        walk(w, e->arg[i]);
    if (name->kind == EXPR_CONSTANT)
        return (ExprRange){name->num, name->num};
    if (name->kind == EXPR_LET)
        return walk(w, name->let);
    return expr_domain_of(w->bounds, e->name).range;
}

/* Of the least, and of the most, of several. */
static ExprRange fold(Walk *w, const Expr *e, int64_t (*of)(int64_t, int64_t)) {
    ExprRange all = walk(w, e->arg[0]);
    for (uint32_t i = 1; i < e->n; i++) {
        ExprRange next = walk(w, e->arg[i]);
        all = (ExprRange){of(all.lo, next.lo), of(all.hi, next.hi)};
    }
    return all;
}

static ExprRange choice(Walk *w, const Expr *e) {
    walk(w, e->arg[0]);
    ExprRange yes = walk(w, e->arg[1]);
    return hull(yes, walk(w, e->arg[2]));
}

static ExprRange some_of(Walk *w, const Expr *e) {
    ExprRange x = walk(w, e->arg[0]);
    walk(w, e->arg[1]);
    return hull(x, (ExprRange){0, 0});
}

static ExprRange bits_of(Walk *w, const Expr *e) {
    walk(w, e->arg[0]);
    return (ExprRange){0, (INT64_C(1) << e->arg[2]->num) - 1};
}

static ExprRange two(Walk *w, const Expr *e, int64_t (*of)(int64_t, int64_t)) {
    ExprRange a = walk(w, e->arg[0]);
    return corners(a, walk(w, e->arg[1]), of);
}

static ExprRange condition(Walk *w, const Expr *e) {
    for (uint32_t i = 0; i < e->n; i++)
        walk(w, e->arg[i]);
    return (ExprRange){0, 1};
}

static ExprRange walk(Walk *w, const Expr *e) {
    ExprRange a, b;
    switch (e->kind) {
    case EXPR_NUMBER:
        return (ExprRange){e->num, e->num};
    case EXPR_NAME:
    case EXPR_ELEMENT:
        return of_name(w, e);
    case EXPR_ADD:
        return two(w, e, add_within);
    case EXPR_SUB:
        a = walk(w, e->arg[0]);
        b = walk(w, e->arg[1]);
        return (ExprRange){sub_within(a.lo, b.hi), sub_within(a.hi, b.lo)};
    case EXPR_MUL:
        return two(w, e, mul_within);
    case EXPR_DIV:
        a = walk(w, e->arg[0]);
        return corners(a, divisor(w, e), div_within);
    case EXPR_CEIL:
        a = walk(w, e->arg[0]);
        return corners(a, divisor(w, e), ceil_within);
    case EXPR_MOD:
        return modulo(w, e);
    case EXPR_NEG:
        a = walk(w, e->arg[0]);
        return (ExprRange){sub_within(0, a.hi), sub_within(0, a.lo)};
    case EXPR_MIN:
        return fold(w, e, least);
    case EXPR_MAX:
        return fold(w, e, most);
    case EXPR_ABS:
        return absolute(walk(w, e->arg[0]));
    case EXPR_ROUND_UP:
        return round_to(w, e);
    case EXPR_EXP2:
        return power_of_two(w, e);
    case EXPR_LOG2:
        return logarithm(w, e);
    case EXPR_BITS:
        return bits_of(w, e);
    case EXPR_IF:
        return choice(w, e);
    case EXPR_SOME:
        return some_of(w, e);
    default:
        return condition(w, e);
    }
}

bool expr_range(const ExprBounds *bounds, Diag *diag, const Expr *e,
                ExprRange *out) {
    Walk w = {bounds, diag, true};
    *out = walk(&w, e);
    return w.ok;
}
