/* invert.c - which x makes an expression have this value.
 *
 * Input: an expression that holds x once, values of all other names. Output:
 * the range of x. Each step of the way down to x is undone: x + b, b - x,
 * a * x, x / a, ceil(x, a), a let, a condition (0 or 1). A quotient leaves a
 * range; the domain of x must then have one value in it.
 */
#include "hwspec/expr/expr.h"

typedef struct Seek {
    uint32_t name, count;
} Seek;

static void count_name(void *context, uint32_t name) {
    Seek *seek = context;
    seek->count += name == seek->name;
}

static bool holds(const ExprNames *names, const Expr *e, uint32_t x) {
    Seek seek = {x, 0};
    expr_visit(names, e, count_name, &seek);
    return seek.count > 0;
}

void expr_visit(const ExprNames *names, const Expr *e, ExprVisit *visit,
                void *context) {
    for (uint32_t i = 0; i < e->n; i++)
        expr_visit(names, e->arg[i], visit, context);
    if (e->kind != EXPR_NAME && e->kind != EXPR_ELEMENT)
        return;
    const ExprName *name = &names->list.at[e->name];
    if (name->kind == EXPR_LET)
        expr_visit(names, name->let, visit, context);
    else if (name->kind != EXPR_CONSTANT)
        visit(context, e->name);
}

/* ---- may it be read back? ---- */

typedef enum Undo { UNDO_NOT, UNDO_EXACT, UNDO_RANGE } Undo;

static Undo worse(Undo a, Undo b) {
    return !a || !b ? UNDO_NOT : a > b ? a : b;
}

static Undo undo_of(const ExprNames *names, const Expr *e, uint32_t x) {
    if (e->kind == EXPR_NAME || e->kind == EXPR_ELEMENT) {
        const ExprName *name = &names->list.at[e->name];
        bool in_index = false;
        for (uint32_t i = 0; i < e->n; i++)
            in_index = in_index || holds(names, e->arg[i], x);
        if (name->kind == EXPR_LET)
            return undo_of(names, name->let, x);
        return e->name == x && !in_index ? UNDO_EXACT : UNDO_NOT;
    }
    bool left = e->n && holds(names, e->arg[0], x);
    switch (e->kind) {
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_NEG:
    case EXPR_NOT:
        return undo_of(names, e->arg[left ? 0 : 1], x);
    case EXPR_DIV:
    case EXPR_CEIL:
        return left ? worse(UNDO_RANGE, undo_of(names, e->arg[0], x))
                    : UNDO_NOT;
    default:
        return UNDO_NOT;
    }
}

/* Have all values of the domain results of their own? Other names than x would
 * make that depend on their values. */
static bool all_differ(const ExprBounds *bounds, const Expr *e, uint32_t x,
                       const ExprDomain *domain) {
    uint32_t n = bounds->names->list.n;
    Arena *arena = arena_new("domain");
    ExprEnv env = {bounds->names, ARENA_ARRAY(arena, bool, n),
                   ARENA_ARRAY(arena, int64_t, n),
                   ARENA_ARRAY(arena, ExprVector, n)};
    int64_t *value = ARENA_ARRAY(arena, int64_t, domain->n + 1);
    ExprFault fault;
    bool ok = true;
    env.set[x] = true;
    for (uint32_t i = 0; i < domain->n && ok; i++) {
        env.num[x] = domain->list[i];
        ok = expr_eval(&env, e, &value[i], &fault);
        for (uint32_t k = 0; k < i && ok; k++)
            ok = value[k] != value[i];
    }
    arena_free(arena);
    return ok;
}

/* x and what is added to it. */
static bool is_shifted(const ExprNames *names, const Expr *e, uint32_t x) {
    if (e->kind == EXPR_NAME && names->list.at[e->name].kind == EXPR_LET)
        return is_shifted(names, names->list.at[e->name].let, x);
    if (e->kind != EXPR_ADD && e->kind != EXPR_SUB)
        return e->kind == EXPR_NAME && e->name == x;
    bool left = holds(names, e->arg[0], x);
    return is_shifted(names, e->arg[left ? 0 : 1], x);
}

/* Is x divided once, by no more than the step between its values? */
static bool steps_differ(const ExprNames *names, const Expr *e, uint32_t x,
                         int64_t step) {
    if (e->kind == EXPR_NAME && names->list.at[e->name].kind == EXPR_LET)
        return steps_differ(names, names->list.at[e->name].let, x, step);
    if (e->kind == EXPR_DIV || e->kind == EXPR_CEIL)
        return e->arg[1]->kind == EXPR_NUMBER && e->arg[1]->num <= step &&
               is_shifted(names, e->arg[0], x);
    bool left = e->n && holds(names, e->arg[0], x);
    return e->n && steps_differ(names, e->arg[left ? 0 : e->n - 1], x, step);
}

bool expr_tells(const ExprBounds *bounds, const Expr *e, uint32_t x) {
    Seek seek = {x, 0};
    expr_visit(bounds->names, e, count_name, &seek);
    if (seek.count != 1)
        return false;
    Undo undo = undo_of(bounds->names, e, x);
    if (undo != UNDO_RANGE)
        return undo == UNDO_EXACT;
    ExprDomain domain = expr_domain_of(bounds, x);
    if (!domain.n && domain.step > 1)
        return steps_differ(bounds->names, e, x, domain.step);
    return domain.n && bounds->names->list.at[x].kind == EXPR_MEANING &&
           all_differ(bounds, e, x, &domain);
}

/* ---- reading back ---- */

static bool shift(ExprRange *r, int64_t by) {
    return !__builtin_add_overflow(r->lo, by, &r->lo) &&
           !__builtin_add_overflow(r->hi, by, &r->hi);
}

static bool negate(ExprRange *r) {
    int64_t lo = r->lo;
    return !__builtin_sub_overflow((int64_t)0, r->hi, &r->lo) &&
           !__builtin_sub_overflow((int64_t)0, lo, &r->hi);
}

static int64_t floor_of(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* x * by lies in r; by is not 0. */
static bool undo_product(ExprRange *r, int64_t by) {
    if (by < 0 && (by == INT64_MIN || !negate(r)))
        return false;
    by = by < 0 ? -by : by;
    r->hi = floor_of(r->hi, by);
    r->lo = r->lo == INT64_MIN ? r->lo / by : -floor_of(-r->lo, by);
    return r->lo <= r->hi;
}

/* x / by rounded down, or up, lies in r. */
static bool undo_quotient(ExprRange *r, int64_t by, bool up) {
    if (by < 1)
        return false;
    int64_t rest = by - 1;
    return !__builtin_mul_overflow(r->lo, by, &r->lo) &&
           !__builtin_mul_overflow(r->hi, by, &r->hi) &&
           (up ? !__builtin_sub_overflow(r->lo, rest, &r->lo)
               : !__builtin_add_overflow(r->hi, rest, &r->hi));
}

static bool undo_step(ExprKind kind, bool left, int64_t other, ExprRange *r) {
    switch (kind) {
    case EXPR_ADD:
        return other != INT64_MIN && shift(r, -other);
    case EXPR_SUB:
        if (left)
            return shift(r, other);
        return negate(r) && shift(r, other);
    case EXPR_MUL:
        return other != 0 && undo_product(r, other);
    case EXPR_DIV:
    case EXPR_CEIL:
        return undo_quotient(r, other, kind == EXPR_CEIL);
    case EXPR_NEG:
        return negate(r);
    case EXPR_NOT:
        *r = (ExprRange){1 - r->hi, 1 - r->lo};
        return true;
    default:
        return false;
    }
}

bool expr_invert(const ExprEnv *env, const Expr *e, uint32_t x, int64_t value,
                 ExprRange *out) {
    *out = (ExprRange){value, value};
    for (;;) {
        bool is_name = e->kind == EXPR_NAME || e->kind == EXPR_ELEMENT;
        if (is_name && env->names->list.at[e->name].kind == EXPR_LET) {
            e = env->names->list.at[e->name].let;
            continue;
        }
        if (is_name)
            return e->name == x;
        if (e->is_flag && (value < 0 || value > 1))
            return false;
        bool left = e->n && holds(env->names, e->arg[0], x);
        int64_t other = 0;
        ExprFault fault;
        if (e->n == 2 && !expr_eval(env, e->arg[left ? 1 : 0], &other, &fault))
            return false;
        if (!e->n || !undo_step(e->kind, left, other, out))
            return false;
        e = e->arg[left ? 0 : e->n - 1];
    }
}
