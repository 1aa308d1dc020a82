/* expr.h - expressions over named integers.
 *
 * Input: text in a hwspec, such as `ceil(out.c, occ) - 1`, and the names that
 * it may use. Output: a tree that was checked once and is evaluated many times.
 * Integers are signed, of 64 bits; a result that has no room is a fault, never
 * another number. `/` and `%` round down, and whatever is divided by is proved
 * not to be 0 by its range. There are no loops, strings, reals, or functions of
 * users: an evaluation ends after as many operations as the tree has.
 *
 *     expr := or;  or := and {"or" and};  and := not {"and" not}
 *     not  := ["not"] cmp;  cmp := sum [("<"|"<="|">"|">="|"=="|"!=") sum]
 *     sum  := prod {("+"|"-") prod};  prod := unary {("*"|"/"|"%") unary}
 *     unary := ["-"] atom
 *     atom := number | name | name[expr, ...] | f(expr, ...) | (expr)
 */
#ifndef HWSPEC_EXPR_H
#define HWSPEC_EXPR_H

#include "base/diag.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"

typedef struct ExprRange {
    int64_t lo, hi;
} ExprRange;

/* The values that a name can have: lo..hi; of these only `list` where n > 0
 * (rising), or multiples of `step` where that is above 1. */
typedef struct ExprDomain {
    ExprRange range;
    uint32_t n;
    const int64_t *list;
    int64_t step;
} ExprDomain;

bool expr_domain_has(const ExprDomain *domain, int64_t value);
/* The one value of the domain in the range; false if there is none, or several.
 */
bool expr_domain_only(const ExprDomain *domain, ExprRange range, int64_t *out);
/* "1..64", "1, 3". */
const char *expr_domain_text(Arena *arena, const ExprDomain *domain);

typedef enum ExprNameKind {
    EXPR_MEANING, /* one integer */
    EXPR_VECTOR,  /* integers by index */
    EXPR_INDEX,   /* of a loop that stands around the expression */
    EXPR_LET,     /* another expression */
    EXPR_CONSTANT
} ExprNameKind;

typedef struct Expr Expr;

typedef struct ExprName {
    const char *name;
    ExprNameKind kind;
    bool is_flag; /* 0 or 1, as a condition is */
    Loc loc;
    ExprDomain domain; /* of a vector: of each element */
    int64_t num;       /* EXPR_CONSTANT */
    const Expr *let;   /* EXPR_LET */
    uint32_t n_extents;
    const Expr *const *extent; /* EXPR_VECTOR, from the outside in */
    /* how texts show it: words for 0.. (n_words > 0), a real by its bits */
    bool is_real;
    uint32_t n_words;
    const char *const *word;
} ExprName;

/* All names of a hwspec; expressions hold their numbers. */
typedef struct ExprNames {
    Arena *arena;
    Map *number;
    VEC(ExprName) list;
} ExprNames;

#define EXPR_NONE UINT32_MAX

ExprNames *expr_names(Arena *arena);
/* The number of a name; EXPR_NONE if there is none. */
uint32_t expr_find(const ExprNames *names, const char *name);
/* Adds a name that is not there yet. */
uint32_t expr_add(ExprNames *names, const ExprName *name);
/* The name that looks most like `wrong`, NULL if none does: of all, or of
 * these.
 */
const char *expr_suggest(const ExprNames *names, const char *wrong);
const char *expr_suggest_of(const ExprNames *names, uint32_t n,
                            const uint32_t *name, const char *wrong);

typedef enum ExprKind {
    EXPR_NUMBER,
    EXPR_NAME,    /* meaning, index, constant, let */
    EXPR_ELEMENT, /* of a vector: args are its indices */
    EXPR_OR,
    EXPR_AND,
    EXPR_NOT,
    EXPR_LT,
    EXPR_LE,
    EXPR_GT,
    EXPR_GE,
    EXPR_EQ,
    EXPR_NE,
    EXPR_ADD,
    EXPR_SUB,
    EXPR_MUL,
    EXPR_DIV,
    EXPR_MOD,
    EXPR_NEG,
#define EXPR_FUNCTION(NAME, name, least, most, doc) EXPR_##NAME,
#include "hwspec/expr/functions.def"
#undef EXPR_FUNCTION
    EXPR_KINDS
} ExprKind;

struct Expr {
    ExprKind kind;
    bool is_flag; /* a condition: 0 or 1 */
    Loc loc;
    uint32_t name; /* EXPR_NAME, EXPR_ELEMENT */
    int64_t num;   /* EXPR_NUMBER */
    uint32_t n;
    const Expr **arg;
    uint32_t size; /* operations, those of names of `let` included */
};

/* What an expression may use beside the names that all may. */
typedef struct ExprPlace {
    uint32_t n_indices;
    const uint32_t *index; /* loops around it */
    /* in a record: `.start` stands for PREFIX.start, or PREFIX.start[SUFFIX] */
    const char *prefix, *suffix;
} ExprPlace;

/* Parses the whole of `text`, which starts at `loc`. NULL after an error: at
 * the place of what is wrong. Names must be there, those of `let` parsed. */
const Expr *expr_parse(ExprNames *names, Diag *diag, const char *text, Loc loc,
                       const ExprPlace *place);

/* Domains of names where they are narrower than the name says: by number, or
 * NULL. */
typedef struct ExprBounds {
    const ExprNames *names;
    const ExprDomain *domain; /* by name; n = 0, lo > hi: the name's own */
    uint32_t n;
} ExprBounds;
ExprDomain expr_domain_of(const ExprBounds *bounds, uint32_t name);

/* Least and most that the expression can be. A divisor that may be 0, a
 * logarithm of what may be below 1: an error at its place, false. */
bool expr_range(const ExprBounds *bounds, Diag *diag, const Expr *e,
                ExprRange *out);

/* ---- values ---- */

typedef struct ExprVector {
    bool set;
    uint32_t n;
    const uint8_t *byte; /* or NULL, and: */
    const int64_t *num;
} ExprVector;

/* By number of the name. */
typedef struct ExprEnv {
    const ExprNames *names;
    bool *set;
    int64_t *num;
    ExprVector *vector;
} ExprEnv;

typedef enum ExprFaultKind {
    EXPR_FINE,
    EXPR_UNSET,    /* a name has no value */
    EXPR_OVERFLOW, /* beyond 64 bits */
    EXPR_ZERO,     /* divided by 0, or the logarithm of none */
    EXPR_OUTSIDE   /* an index of a vector that has no such element */
} ExprFaultKind;

typedef struct ExprFault {
    ExprFaultKind kind;
    const Expr *at;
    int64_t index; /* EXPR_OUTSIDE */
} ExprFault;

/* False, and the fault, where there is no value. */
bool expr_eval(const ExprEnv *env, const Expr *e, int64_t *out,
               ExprFault *fault);
/* "in.c has no value", "in.c * in.w exceeds 64 bits". */
const char *expr_fault_text(Arena *arena, const ExprEnv *env,
                            const ExprFault *fault);

/* Which element the indices of an EXPR_ELEMENT choose, outermost first. Where
 * the vector has extents, *inside is false for one beyond them. */
bool expr_index(const ExprEnv *env, const Expr *e, uint64_t *out, bool *inside,
                ExprFault *fault);

/* The expression with names, or where `env` is given with their values:
 * "9 * 8 * 21". */
const char *expr_text(Arena *arena, const ExprNames *names, const Expr *e,
                      const ExprEnv *env);

/* ---- which names, and reading back ---- */

/* Calls `visit` for each name that a value depends on, perhaps several times:
 * names of `let` are looked through, constants left out. */
typedef void ExprVisit(void *context, uint32_t name);
void expr_visit(const ExprNames *names, const Expr *e, ExprVisit *visit,
                void *context);

/* Can x be told from the value of e, where all other names are known? x is a
 * meaning, or the vector of the one element. So for a sum, difference or
 * multiple of what holds x once; for a quotient where the values that x may
 * have give different ones. */
bool expr_tells(const ExprBounds *bounds, const Expr *e, uint32_t x);

/* The values of x for which e is `value`, as a range; false if none is, or the
 * rest of e has no value. For an EXPR_ELEMENT x is that element. */
bool expr_invert(const ExprEnv *env, const Expr *e, uint32_t x, int64_t value,
                 ExprRange *out);

#endif
