/* template.h - steps by which a machine's instruction works.
 *
 * Input: `templates` of a hwspec and `does` of its rows: lists of steps over
 * named integers. Steps set names, loop over ranges, look at conditions, run
 * other templates, move and multiply numbers in memories.
 * There is one value a name, and no recursion; every step counts against a
 * budget, so a run ends. Names keep their values from one instruction to the
 * next: they are the machine's state.
 */
#ifndef HWSPEC_TEMPLATE_H
#define HWSPEC_TEMPLATE_H

#include "hwspec/expr/expr.h"
#include "hwspec/program.h"

typedef enum TplKind {
    TPL_SET,     /* names = values */
    TPL_EACH,    /* steps for 0..count - 1 */
    TPL_WHEN,    /* steps where the condition holds, or the others */
    TPL_RUN,     /* a template, or what a row does */
    TPL_REQUIRE, /* a condition that holds */
    TPL_GET,     /* name = a number of a memory */
    TPL_PUT,     /* a number of a memory = value */
    TPL_COPY,    /* rows x columns of numbers from one place to another */
    TPL_PRODUCT, /* to = plus + from x by, matrices */
    TPL_SCALE,   /* name = the first times the second, a float; rounded */
    TPL_DIVIDE,  /* name = the first by the second, as a float */
    TPL_EMIT,    /* an instruction of a row, after names are set */
    TPL_FORGET   /* what instructions of a row held holds no longer */
} TplKind;

/* Of numbers in memories: whole, of 1, 2 or 4 bytes. */
typedef struct TplType {
    uint32_t bytes;
    bool is_unsigned;
} TplType;

static inline int64_t tpl_least(TplType t) {
    return t.is_unsigned ? 0 : -(INT64_C(1) << (8 * t.bytes - 1));
}
static inline int64_t tpl_most(TplType t) {
    return (INT64_C(1) << (8 * t.bytes - (t.is_unsigned ? 0 : 1))) - 1;
}

/* Numbers in a memory: (r, c) at `at + r * row + c * column`, in bytes. */
typedef struct TplView {
    bool there;
    uint32_t n; /* memories, one of them chosen by `which` */
    const uint32_t *memory;
    const Expr *which;
    TplType type;
    const Expr *when; /* NULL: always; else zeros where it does not hold */
    const Expr *at, *row, *column;
} TplView;

typedef struct TplSet {
    uint32_t name;
    const Expr *index; /* of a vector */
    const Expr *value, *by;
} TplSet;

typedef enum TplRound { TPL_HALF_EVEN, TPL_HALF_UP, TPL_FLOOR } TplRound;

enum { TPL_FROM, TPL_BY, TPL_PLUS, TPL_TO, TPL_VIEWS };

typedef struct TplStep TplStep;
struct TplStep {
    TplKind kind;
    Loc loc;
    uint32_t n_sets;
    const TplSet *set;
    const Expr *value;    /* WHEN, REQUIRE; PUT */
    uint32_t n, n_others; /* EACH, WHEN: steps, and those of `else` */
    const TplStep *step, *other;
    uint32_t target; /* RUN: a template; EMIT, FORGET: a row */
    TplView view[TPL_VIEWS];
    const Expr *rows, *columns, *depth;
    /* of the result: times a float, rounded (`carry`: as a machine does that
     * adds 1 in floats); times whole numbers, one below 0, one above; shifted
     * right, rounded; held in `bits`; at least, at most; added to what is
     * there */
    const Expr *scale, *carry, *below, *above, *shift, *least, *most, *add;
    TplRound round;
    uint32_t bits;
};

typedef struct Template {
    const char *name;
    Loc loc;
    uint32_t n;
    const TplStep *step;
} Template;

typedef struct HwTemplates {
    uint32_t n;       /* those of `templates`, one by row, two by way of
                       * `emit`, its begin and end */
    uint32_t n_named; /* of these: of `templates` */
    Template *at;
} HwTemplates;

/* NULL where the machine has none. */
const HwTemplates *program_templates(const HwSpec *spec);
/* The number of a template or of a row; EXPR_NONE: there is none. */
uint32_t template_find(const HwSpec *spec, const char *name);

typedef struct TemplateRun TemplateRun;
/* Does a step of a kind that the walk does not know: GET and on.
 * False, with a message (template_fail). */
typedef bool TemplateAct(TemplateRun *run, const TplStep *step);

struct TemplateRun {
    Arena *arena;
    const HwSpec *spec;
    ExprEnv env;
    uint64_t budget; /* steps that are left */
    TemplateAct *act;
    void *context;
    const char *failed; /* why, and at which step */
    Loc at;
};

TemplateRun template_run(Arena *arena, const HwSpec *spec, uint64_t budget,
                         TemplateAct *act, void *context);
/* Gives a name its value; false if the hwspec has no such name. */
bool template_set(TemplateRun *run, const char *name, int64_t value);
/* Gives a vector its elements, which stay where they are. */
bool template_set_vector(TemplateRun *run, const char *name, uint32_t n,
                         const int64_t *num);
/* A name's value; `absent` where it has none. */
int64_t template_get(const TemplateRun *run, const char *name, int64_t absent);
/* Values of the instruction, then what its row does. */
bool template_node(TemplateRun *run, const ProgNode *node);
bool template_call(TemplateRun *run, uint32_t number);
/* For acts: an expression's value, `absent` where there is none; and failing.
 */
bool template_eval(TemplateRun *run, const Expr *e, int64_t absent,
                   int64_t *out);
bool template_assign(TemplateRun *run, const TplSet *set, int64_t value);
bool template_fail(TemplateRun *run, Loc at, const char *why);

#endif
