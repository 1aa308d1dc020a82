/* eval.c - values of expressions; see expr.h. Invariant: nothing wraps. */
#include "hwspec/expr/expr.h"

#include "base/arith.h"

static bool fail(ExprFault *fault, ExprFaultKind kind, const Expr *at) {
    *fault = (ExprFault){.kind = kind, .at = at};
    return false;
}

static bool divide(const Expr *e, int64_t a, int64_t b, bool up, int64_t *out,
                   ExprFault *fault) {
    if (b == 0)
        return fail(fault, EXPR_ZERO, e);
    if (b == -1)
        return !__builtin_sub_overflow((int64_t)0, a, out) ||
               fail(fault, EXPR_OVERFLOW, e);
    bool rest = a % b != 0, negative = (a < 0) != (b < 0);
    *out = a / b + (up ? rest && !negative : -(rest && negative));
    return true;
}

static bool modulo(const Expr *e, int64_t a, int64_t b, int64_t *out,
                   ExprFault *fault) {
    if (b == 0)
        return fail(fault, EXPR_ZERO, e);
    int64_t rest = b == -1 ? 0 : a % b;
    *out = rest && (rest < 0) != (b < 0) ? rest + b : rest;
    return true;
}

static bool round_to(const Expr *e, int64_t a, int64_t b, int64_t *out,
                     ExprFault *fault) {
    int64_t times;
    return divide(e, a, b, true, &times, fault) &&
           (!__builtin_mul_overflow(times, b, out) ||
            fail(fault, EXPR_OVERFLOW, e));
}

static bool logarithm(const Expr *e, int64_t a, int64_t *out,
                      ExprFault *fault) {
    if (a < 1)
        return fail(fault, EXPR_ZERO, e);
    for (*out = -1; a; a >>= 1)
        ++*out;
    return true;
}

static int64_t power_of_two(int64_t a) {
    return a < 0 || a > 62 ? 0 : INT64_C(1) << a;
}

static bool compare(ExprKind kind, int64_t a, int64_t b) {
    switch (kind) {
    case EXPR_LT:
        return a < b;
    case EXPR_LE:
        return a <= b;
    case EXPR_GT:
        return a > b;
    case EXPR_GE:
        return a >= b;
    case EXPR_EQ:
        return a == b;
    default:
        return a != b;
    }
}

/* Bits `lo` to `lo + n - 1` of the number as two's complement has it. */
static int64_t bits_of(int64_t a, int64_t lo, int64_t n) {
    return (int64_t)((uint64_t)a >> lo & ((UINT64_C(1) << n) - 1));
}

static bool combine(const Expr *e, const int64_t *v, int64_t *out,
                    ExprFault *fault) {
    int64_t a = v[0], b = e->n > 1 ? v[1] : 0;
    bool wraps = false;
    switch (e->kind) {
    case EXPR_ADD:
        wraps = __builtin_add_overflow(a, b, out);
        break;
    case EXPR_SUB:
        wraps = __builtin_sub_overflow(a, b, out);
        break;
    case EXPR_MUL:
        wraps = __builtin_mul_overflow(a, b, out);
        break;
    case EXPR_NEG:
        wraps = __builtin_sub_overflow((int64_t)0, a, out);
        break;
    case EXPR_ABS:
        *out = a;
        wraps = a < 0 && __builtin_sub_overflow((int64_t)0, a, out);
        break;
    case EXPR_DIV:
    case EXPR_CEIL:
        return divide(e, a, b, e->kind == EXPR_CEIL, out, fault);
    case EXPR_MOD:
        return modulo(e, a, b, out, fault);
    case EXPR_ROUND_UP:
        return round_to(e, a, b, out, fault);
    case EXPR_EXP2:
        *out = power_of_two(a);
        wraps = a > 62;
        break;
    case EXPR_LOG2:
        return logarithm(e, a, out, fault);
    case EXPR_NOT:
        *out = !a;
        break;
    case EXPR_BITS:
        *out = bits_of(a, b, v[2]);
        break;
    case EXPR_MIN:
    case EXPR_MAX:
        *out = a;
        for (uint32_t i = 1; i < e->n; i++)
            if (e->kind == EXPR_MIN ? v[i] < *out : v[i] > *out)
                *out = v[i];
        break;
    default:
        *out = compare(e->kind, a, b);
    }
    return !wraps || fail(fault, EXPR_OVERFLOW, e);
}

static bool eval_name(const ExprEnv *env, const Expr *e, int64_t *out,
                      ExprFault *fault) {
    const ExprName *name = &env->names->list.at[e->name];
    if (name->kind == EXPR_LET)
        return expr_eval(env, name->let, out, fault);
    bool is_constant = name->kind == EXPR_CONSTANT;
    if (!is_constant && !env->set[e->name])
        return fail(fault, EXPR_UNSET, e);
    *out = is_constant ? name->num : env->num[e->name];
    return true;
}

bool expr_index(const ExprEnv *env, const Expr *e, uint64_t *out, bool *inside,
                ExprFault *fault) {
    const ExprName *name = &env->names->list.at[e->name];
    uint64_t at = 0;
    *inside = true;
    for (uint32_t i = 0; i < e->n; i++) {
        int64_t index, extent = INT64_MAX;
        if (!expr_eval(env, e->arg[i], &index, fault) ||
            (name->n_extents &&
             !expr_eval(env, name->extent[i], &extent, fault)))
            return false;
        if (index < 0 || index >= extent)
            *inside = false;
        if (*inside && i && (__builtin_mul_overflow(at, extent, &at)))
            return fail(fault, EXPR_OVERFLOW, e);
        if (*inside && __builtin_add_overflow(at, index, &at))
            return fail(fault, EXPR_OVERFLOW, e);
        fault->index = index;
    }
    *out = at;
    return true;
}

/* Beyond its extents a vector is 0; one without has no elements there. */
static bool eval_element(const ExprEnv *env, const Expr *e, int64_t *out,
                         ExprFault *fault) {
    const ExprVector *v = &env->vector[e->name];
    uint64_t at;
    bool inside;
    if (!expr_index(env, e, &at, &inside, fault))
        return false;
    if (!inside && env->names->list.at[e->name].n_extents) {
        *out = 0;
        return true;
    }
    if (!v->set)
        return fail(fault, EXPR_UNSET, e);
    if (!inside || at >= v->n) {
        int64_t index = fault->index;
        fail(fault, EXPR_OUTSIDE, e);
        fault->index = index;
        return false;
    }
    *out = v->byte ? v->byte[at] : v->num[at];
    return true;
}

/* Only the branch that is taken, or as much as decides. */
static bool eval_lazy(const ExprEnv *env, const Expr *e, int64_t *out,
                      ExprFault *fault) {
    bool is_some = e->kind == EXPR_SOME;
    int64_t first;
    if (!expr_eval(env, e->arg[is_some ? 1 : 0], &first, fault))
        return false;
    if (is_some && !first)
        *out = 0;
    else if (is_some)
        return expr_eval(env, e->arg[0], out, fault);
    else if (e->kind == EXPR_IF)
        return expr_eval(env, e->arg[first ? 1 : 2], out, fault);
    else if ((e->kind == EXPR_OR) == (first != 0))
        *out = first != 0;
    else
        return expr_eval(env, e->arg[1], out, fault);
    return true;
}

bool expr_eval(const ExprEnv *env, const Expr *e, int64_t *out,
               ExprFault *fault) {
    int64_t value[8] = {0};
    switch (e->kind) {
    case EXPR_NUMBER:
        *out = e->num;
        return true;
    case EXPR_NAME:
        return eval_name(env, e, out, fault);
    case EXPR_ELEMENT:
        return eval_element(env, e, out, fault);
    case EXPR_OR:
    case EXPR_AND:
    case EXPR_IF:
    case EXPR_SOME:
        return eval_lazy(env, e, out, fault);
    default:
        for (uint32_t i = 0; i < e->n; i++)
            if (!expr_eval(env, e->arg[i], &value[i], fault))
                return false;
        return combine(e, value, out, fault);
    }
}

const char *expr_fault_text(Arena *arena, const ExprEnv *env,
                            const ExprFault *fault) {
    const Expr *e = fault->at;
    const char *text = expr_text(arena, env->names, e, NULL);
    switch (fault->kind) {
    case EXPR_UNSET:
        return arena_printf(arena, "%s has no value", text);
    case EXPR_OVERFLOW:
        return arena_printf(arena, "%s exceeds 64 bits", text);
    case EXPR_ZERO:
        return arena_printf(
            arena, "%s has no value: %s is %s", text,
            expr_text(arena, env->names, e->arg[e->n > 1 ? 1 : 0], NULL),
            e->n > 1 ? "0" : "below 1");
    case EXPR_OUTSIDE:
        return arena_printf(arena, "%s has %u values, number %lld is asked for",
                            env->names->list.at[e->name].name,
                            env->vector[e->name].n, (long long)fault->index);
    default:
        return "";
    }
}
