/* parse.c - text -> Expr, by recursive descent; the grammar stands in expr.h.
 *
 * Output: a tree in which every name is known and every operand has the kind
 * that its operator takes. Invariant: nesting is bounded, and so is the size
 * with all names of `let` written out, so that no evaluation takes long.
 */
#include "hwspec/expr/expr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_SIZE = 4096, MAX_ARGS = 8 };

static const char *const function_name[] = {
#define EXPR_FUNCTION(NAME, name, least, most, doc) #name,
#include "hwspec/expr/functions.def"
#undef EXPR_FUNCTION
};
static const struct {
    uint32_t least, most;
} function_args[] = {
#define EXPR_FUNCTION(NAME, name, least, most, doc) {least, most},
#include "hwspec/expr/functions.def"
#undef EXPR_FUNCTION
};
enum {
    N_FUNCTIONS = sizeof function_name / sizeof *function_name,
    FIRST_FUNCTION = EXPR_KINDS - N_FUNCTIONS
};

typedef struct Parser {
    ExprNames *names;
    Diag *diag;
    const char *text, *at;
    Loc loc;
    const ExprPlace *place;
    uint32_t depth;
    bool failed;
} Parser;

static Loc here(const Parser *p, const char *at) {
    Loc loc = p->loc;
    loc.col += (uint32_t)(at - p->text);
    return loc;
}

/* The first mistake is the one that is told. */
#define FAIL(p, at, ...)                                                       \
    do {                                                                       \
        if (!(p)->failed)                                                      \
            diag_error((p)->diag, here((p), (at)), __VA_ARGS__);               \
        (p)->failed = true;                                                    \
    } while (0)

static void skip_space(Parser *p) {
    p->at += strspn(p->at, " \t\n");
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t word_length(const char *at) {
    size_t n = 0;
    while (is_letter(at[n]) || is_digit(at[n]) || at[n] == '.')
        n++;
    return n;
}

/* Takes the operator if it comes next; a word only as a whole. */
static bool take(Parser *p, const char *symbol) {
    skip_space(p);
    size_t len = strlen(symbol);
    if (strncmp(p->at, symbol, len) ||
        (is_letter(*symbol) && word_length(p->at) != len))
        return false;
    p->at += len;
    return true;
}

static void expect(Parser *p, const char *symbol) {
    if (!take(p, symbol))
        FAIL(p, p->at, "`%s` is missing here", symbol);
}

static Expr *new_expr(Parser *p, ExprKind kind, const char *at, bool is_flag) {
    Expr *e = ARENA_NEW(p->names->arena, Expr);
    *e =
        (Expr){.kind = kind, .is_flag = is_flag, .loc = here(p, at), .size = 1};
    return e;
}

static void set_args(Parser *p, Expr *e, uint32_t n, const Expr *const *arg) {
    e->n = n;
    e->arg = ARENA_COPY(p->names->arena, const Expr *, arg, n);
    for (uint32_t i = 0; i < n; i++)
        e->size += arg[i]->size;
    if (e->size > MAX_SIZE)
        FAIL(p, p->at, "more than %d operations, names of `let` written out",
             MAX_SIZE);
}

static const Expr *parse_or(Parser *p);

/* An operand that is a number; a condition counts as 0 or 1 only where a field
 * takes it, so that `a < b < c` is found. */
static bool need_number(Parser *p, const Expr *e, const char *at) {
    if (e && e->is_flag)
        FAIL(p, at, "%s is a condition, where a number is wanted",
             expr_text(p->names->arena, p->names, e, NULL));
    return e && !e->is_flag;
}

static bool need_flag(Parser *p, const Expr *e, const char *at) {
    if (e && !e->is_flag)
        FAIL(p, at, "a number stands where a condition is wanted: compare it");
    return e && e->is_flag;
}

/* ---- atoms ---- */

static const Expr *parse_number(Parser *p) {
    const char *at = p->at;
    char *end;
    bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    errno = 0;
    long long value = strtoll(at, &end, hex ? 16 : 10);
    if (errno || is_letter(*end) || is_digit(*end)) {
        FAIL(p, at, "this is no number of 63 bits");
        return NULL;
    }
    p->at = end;
    Expr *e = new_expr(p, EXPR_NUMBER, at, false);
    e->num = value;
    return e;
}

static bool is_active(const Parser *p, uint32_t name) {
    for (uint32_t i = 0; i < p->place->n_indices; i++)
        if (p->place->index[i] == name)
            return true;
    return false;
}

static void unknown_name(Parser *p, const char *at, const char *name) {
    const char *like = expr_suggest(p->names, name);
    if (like)
        FAIL(p, at, "unknown meaning %s: %s?", name, like);
    else
        FAIL(p, at, "unknown meaning %s", name);
}

/* Indices behind a vector, up to the bracket. */
static void parse_indices(Parser *p, Expr *e, const char *at) {
    const Expr *arg[MAX_ARGS];
    uint32_t n = 0;
    do {
        skip_space(p);
        const char *from = p->at;
        const Expr *index = parse_or(p);
        if (!need_number(p, index, from))
            return;
        if (n == MAX_ARGS) {
            FAIL(p, from, "more than %d indices", MAX_ARGS);
            return;
        }
        arg[n++] = index;
    } while (take(p, ","));
    expect(p, "]");
    const ExprName *name = &p->names->list.at[e->name];
    if (n != (name->n_extents ? name->n_extents : 1))
        FAIL(p, at, "%s has %u indices, not %u", name->name,
             name->n_extents ? name->n_extents : 1, n);
    set_args(p, e, n, arg);
}

/* A name of a record is made where it is used for the first time, like what is
 * said of all operands (`.start`), if anything; so is a standard one. */
static uint32_t record_name(Parser *p, const char *word) {
    const char *full =
        arena_printf(p->names->arena, "%s%s", p->place->prefix, word);
    uint32_t number = expr_find(p->names, full);
    uint32_t all = expr_find(p->names, word);
    ExprName name = {.domain = {.range = {0, UINT32_MAX}}};
    if (all != EXPR_NONE)
        name = p->names->list.at[all];
    else if (number != EXPR_NONE)
        return number;
    name.name = full;
    name.kind = p->place->suffix ? EXPR_VECTOR : EXPR_MEANING;
    if (number == EXPR_NONE)
        return expr_add(p->names, &name);
    if (!p->names->list.at[number].loc.line)
        p->names->list.at[number] = name;
    return number;
}

/* The index of a record's operand: `input[i]` makes .start input.start[i]. */
static void record_index(Parser *p, Expr *e) {
    ExprPlace place = *p->place;
    place.prefix = place.suffix = NULL;
    const Expr *index =
        expr_parse(p->names, p->diag, p->place->suffix, p->loc, &place);
    if (index)
        set_args(p, e, 1, &index);
    else
        p->failed = true;
}

static const Expr *name_of(Parser *p, const char *at, uint32_t number,
                           bool from_record) {
    const ExprName *name = &p->names->list.at[number];
    bool is_vector = name->kind == EXPR_VECTOR;
    Expr *e =
        new_expr(p, is_vector ? EXPR_ELEMENT : EXPR_NAME, at, name->is_flag);
    e->name = number;
    if (name->kind == EXPR_INDEX && !is_active(p, number))
        FAIL(p, at, "no `each` around this goes over %s", name->name);
    if (name->kind == EXPR_LET && name->let) {
        e->is_flag = name->let->is_flag;
        e->size += name->let->size;
    }
    if (is_vector && from_record && p->place->suffix)
        record_index(p, e);
    else if (is_vector && take(p, "["))
        parse_indices(p, e, at);
    else if (is_vector)
        FAIL(p, at, "%s is a vector: %s[index]", name->name, name->name);
    return e;
}

/* `size(weights)` is a name where it is one. */
static uint32_t find_label(Parser *p, const char *word) {
    size_t len = *p->at == '(' ? word_length(p->at + 1) : 0;
    if (!len || p->at[len + 1] != ')')
        return EXPR_NONE;
    uint32_t number =
        expr_find(p->names, arena_printf(p->names->arena, "%s(%.*s)", word,
                                         (int)len, p->at + 1));
    if (number != EXPR_NONE)
        p->at += len + 2;
    return number;
}

static uint32_t find_function(const char *word) {
    for (uint32_t i = 0; i < N_FUNCTIONS; i++)
        if (!strcmp(word, function_name[i]))
            return i;
    return N_FUNCTIONS;
}

static void check_call(Parser *p, const Expr *e, const char *at) {
    bool first_flag = e->kind == EXPR_IF;
    for (uint32_t i = 0; i < e->n; i++)
        if ((i == 0 && first_flag) || (i == 1 && e->kind == EXPR_SOME))
            need_flag(p, e->arg[i], at);
        else
            need_number(p, e->arg[i], at);
    if (e->kind != EXPR_BITS)
        return;
    const Expr *lo = e->arg[1], *n = e->arg[2];
    if (lo->kind != EXPR_NUMBER || n->kind != EXPR_NUMBER || lo->num < 0 ||
        n->num < 1 || lo->num > 62 || n->num > 63 - lo->num)
        FAIL(p, at, "bits(x, first, how many) takes numbers within 0..63");
}

static const Expr *parse_call(Parser *p, const char *at, const char *word) {
    uint32_t function = find_function(word), n = 0;
    const Expr *arg[MAX_ARGS];
    if (function == N_FUNCTIONS) {
        FAIL(p, at, "there is no function or section %s of that name", word);
        return NULL;
    }
    expect(p, "(");
    do {
        const Expr *e = n < MAX_ARGS ? parse_or(p) : NULL;
        if (!e) {
            FAIL(p, p->at, "more than %d arguments", MAX_ARGS);
            return NULL;
        }
        arg[n++] = e;
    } while (take(p, ","));
    expect(p, ")");
    Expr *e = new_expr(p, (ExprKind)(FIRST_FUNCTION + function), at, false);
    set_args(p, e, n, arg);
    if (n < function_args[function].least || n > function_args[function].most)
        FAIL(p, at, "%s takes %u arguments, not %u", word,
             function_args[function].least, n);
    else if (!p->failed)
        check_call(p, e, at);
    return e;
}

static const Expr *parse_word(Parser *p) {
    const char *at = p->at;
    bool from_record = *at == '.';
    size_t len = word_length(at);
    const char *word = arena_strndup(p->names->arena, at, len);
    p->at += len;
    if (from_record && (!p->place->prefix || len == 1)) {
        FAIL(p, at, "`%s` stands for an operand's only within `records`", word);
        return NULL;
    }
    uint32_t label = find_label(p, word);
    if (label != EXPR_NONE)
        return name_of(p, at, label, false);
    if (*p->at == '(')
        return parse_call(p, at, word);
    uint32_t number =
        from_record ? record_name(p, word) : expr_find(p->names, word);
    if (number != EXPR_NONE)
        return name_of(p, at, number, from_record);
    unknown_name(p, at, word);
    return NULL;
}

static const Expr *parse_atom(Parser *p) {
    skip_space(p);
    if (is_digit(*p->at))
        return parse_number(p);
    if (is_letter(*p->at) || *p->at == '.')
        return parse_word(p);
    if (!take(p, "(")) {
        FAIL(p, p->at,
             *p->at ? "`%.1s` is no start of a value"
                    : "the expression ends too early",
             p->at);
        return NULL;
    }
    const Expr *e = parse_or(p);
    expect(p, ")");
    return e;
}

/* ---- operators ---- */

static const Expr *join(Parser *p, ExprKind kind, const char *at, bool is_flag,
                        uint32_t n, const Expr *const *arg) {
    Expr *e = new_expr(p, kind, at, is_flag);
    set_args(p, e, n, arg);
    return e;
}

static const Expr *parse_unary(Parser *p) {
    skip_space(p);
    const char *at = p->at;
    if (!take(p, "-"))
        return parse_atom(p);
    const Expr *arg = ++p->depth <= MAX_DEPTH ? parse_unary(p) : NULL;
    p->depth--;
    if (!arg)
        FAIL(p, at, "nested more than %d deep", MAX_DEPTH);
    return need_number(p, arg, at) ? join(p, EXPR_NEG, at, false, 1, &arg)
                                   : NULL;
}

typedef struct Operator {
    const char *symbol;
    ExprKind kind;
} Operator;

/* Longer ones first. */
static const Operator products[] = {
    {"*", EXPR_MUL}, {"/", EXPR_DIV}, {"%", EXPR_MOD}, {NULL, EXPR_KINDS}};
static const Operator sums[] = {
    {"+", EXPR_ADD}, {"-", EXPR_SUB}, {NULL, EXPR_KINDS}};
static const Operator comparisons[] = {
    {"<=", EXPR_LE}, {">=", EXPR_GE}, {"==", EXPR_EQ},   {"!=", EXPR_NE},
    {"<", EXPR_LT},  {">", EXPR_GT},  {NULL, EXPR_KINDS}};

static const Operator *take_any(Parser *p, const Operator *list) {
    while (list->symbol && !take(p, list->symbol))
        list++;
    return list->symbol ? list : NULL;
}

/* Operands that are numbers, from the left. */
static const Expr *parse_chain(Parser *p, const Operator *list,
                               const Expr *(*operand)(Parser *)) {
    skip_space(p);
    const char *at = p->at;
    const Expr *left = operand(p);
    const Operator *op;
    while (left && (op = take_any(p, list))) {
        skip_space(p);
        const char *from = p->at;
        const Expr *right = operand(p);
        if (!need_number(p, left, at) || !need_number(p, right, from))
            return NULL;
        const Expr *both[] = {left, right};
        left = join(p, op->kind, at, false, 2, both);
    }
    return left;
}

static const Expr *parse_product(Parser *p) {
    return parse_chain(p, products, parse_unary);
}

static const Expr *parse_sum(Parser *p) {
    return parse_chain(p, sums, parse_product);
}

static const Expr *parse_comparison(Parser *p) {
    skip_space(p);
    const char *at = p->at;
    const Expr *left = parse_sum(p);
    const Operator *op = left ? take_any(p, comparisons) : NULL;
    if (!op)
        return left;
    skip_space(p);
    const char *from = p->at;
    const Expr *right = parse_sum(p);
    if (!need_number(p, left, at) || !need_number(p, right, from))
        return NULL;
    const Expr *both[] = {left, right};
    return join(p, op->kind, at, true, 2, both);
}

static const Expr *parse_not(Parser *p) {
    skip_space(p);
    const char *at = p->at;
    if (!take(p, "not"))
        return parse_comparison(p);
    const Expr *arg = parse_comparison(p);
    return need_flag(p, arg, at) ? join(p, EXPR_NOT, at, true, 1, &arg) : NULL;
}

static const Expr *parse_logic(Parser *p, const char *symbol, ExprKind kind,
                               const Expr *(*operand)(Parser *)) {
    skip_space(p);
    const char *at = p->at;
    const Expr *left = operand(p);
    while (left && take(p, symbol)) {
        skip_space(p);
        const char *from = p->at;
        const Expr *right = operand(p);
        if (!need_flag(p, left, at) || !need_flag(p, right, from))
            return NULL;
        const Expr *both[] = {left, right};
        left = join(p, kind, at, true, 2, both);
    }
    return left;
}

static const Expr *parse_and(Parser *p) {
    return parse_logic(p, "and", EXPR_AND, parse_not);
}

static const Expr *parse_or(Parser *p) {
    if (p->depth == MAX_DEPTH) {
        FAIL(p, p->at, "nested more than %d deep", MAX_DEPTH);
        return NULL;
    }
    p->depth++;
    const Expr *e = parse_logic(p, "or", EXPR_OR, parse_and);
    p->depth--;
    return p->failed ? NULL : e;
}

const Expr *expr_parse(ExprNames *names, Diag *diag, const char *text, Loc loc,
                       const ExprPlace *place) {
    static const ExprPlace nowhere = {0};
    Parser p = {.names = names,
                .diag = diag,
                .text = text,
                .at = text,
                .loc = loc,
                .place = place ? place : &nowhere};
    const Expr *e = parse_or(&p);
    skip_space(&p);
    if (e && *p.at)
        FAIL(&p, p.at, "`%s` is left over behind the expression", p.at);
    return p.failed ? NULL : e;
}
