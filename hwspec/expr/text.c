/* text.c - expressions as text again, with names or with their values. */
#include "hwspec/expr/expr.h"

typedef struct Symbol {
    const char *text;
    uint32_t binds; /* how strongly */
} Symbol;

static const Symbol symbols[EXPR_KINDS] = {
    [EXPR_OR] = {" or ", 1},  [EXPR_AND] = {" and ", 2},
    [EXPR_NOT] = {"not ", 3}, [EXPR_LT] = {" < ", 4},
    [EXPR_LE] = {" <= ", 4},  [EXPR_GT] = {" > ", 4},
    [EXPR_GE] = {" >= ", 4},  [EXPR_EQ] = {" == ", 4},
    [EXPR_NE] = {" != ", 4},  [EXPR_ADD] = {" + ", 5},
    [EXPR_SUB] = {" - ", 5},  [EXPR_MUL] = {" * ", 6},
    [EXPR_DIV] = {" / ", 6},  [EXPR_MOD] = {" % ", 6},
    [EXPR_NEG] = {"-", 7},
#define EXPR_FUNCTION(NAME, name, least, most, doc) [EXPR_##NAME] = {#name, 0},
#include "hwspec/expr/functions.def"
#undef EXPR_FUNCTION
};

typedef struct Writer {
    Text text;
    const ExprNames *names;
    const ExprEnv *env;
} Writer;

static void write(Writer *w, const Expr *e, uint32_t binds);

static void write_list(Writer *w, const Expr *e, const char *open,
                       const char *close) {
    text_add(&w->text, open);
    for (uint32_t i = 0; i < e->n; i++) {
        text_add(&w->text, i ? ", " : "");
        write(w, e->arg[i], 0);
    }
    text_add(&w->text, close);
}

static void write_name(Writer *w, const Expr *e) {
    int64_t value;
    ExprFault fault;
    if (w->env && expr_eval(w->env, e, &value, &fault)) {
        text_addf(&w->text, value < 0 ? "(%lld)" : "%lld", (long long)value);
        return;
    }
    text_add(&w->text, w->names->list.at[e->name].name);
    if (e->n)
        write_list(w, e, "[", "]");
}

static void write_operator(Writer *w, const Expr *e) {
    const Symbol *symbol = &symbols[e->kind];
    if (e->n == 1) {
        text_add(&w->text, symbol->text);
        write(w, e->arg[0], symbol->binds + 1);
        return;
    }
    write(w, e->arg[0], symbol->binds + (symbol->binds == 4));
    text_add(&w->text, symbol->text);
    write(w, e->arg[1], symbol->binds + 1);
}

static void write(Writer *w, const Expr *e, uint32_t binds) {
    const Symbol *symbol = &symbols[e->kind];
    if (e->kind == EXPR_NUMBER) {
        text_addf(&w->text, "%lld", (long long)e->num);
    } else if (e->kind == EXPR_NAME || e->kind == EXPR_ELEMENT) {
        write_name(w, e);
    } else if (!symbol->binds) {
        text_add(&w->text, symbol->text);
        write_list(w, e, "(", ")");
    } else {
        text_add(&w->text, symbol->binds < binds ? "(" : "");
        write_operator(w, e);
        text_add(&w->text, symbol->binds < binds ? ")" : "");
    }
}

const char *expr_text(Arena *arena, const ExprNames *names, const Expr *e,
                      const ExprEnv *env) {
    Writer w = {text_new(arena), names, env};
    write(&w, e, 0);
    return text_str(&w.text);
}
