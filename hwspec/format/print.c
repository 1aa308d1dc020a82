/* print.c - Program -> text.
 *
 *     kmodel main.bytes=296 inputs=1
 *       input.start[]= 0
 *     KPU in.addr=12 in.c=2 pool=max
 *       bn.mul[]= 372 -136 456
 *       weights[]= x79fe0382
 *
 * A line that is not indented names the container, then the row of each node in
 * order. `name=value` is a meaning, `name[]=` a vector, whose values go on
 * until the next name; x and hexadecimal digits are bytes. What rules say
 * anyway is left out.
 */
#include "hwspec/format/format.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 78, BYTES_A_WORD = 32, FEW_BYTES = 8 };

typedef struct Printer {
    Text *text;
    Arena *arena;
    const HwFormat *format;
    ExprEnv env;
    uint32_t column;
} Printer;

static void put(Printer *p, const char *word) {
    uint32_t len = (uint32_t)strlen(word);
    if (p->column && p->column + 1 + len > COLUMNS) {
        text_add(p->text, "\n   ");
        p->column = 3;
    }
    text_add(p->text, p->column ? " " : "");
    text_add(p->text, word);
    p->column += len + (p->column ? 1 : 0);
}

static void end_line(Printer *p) {
    text_add(p->text, "\n");
    p->column = 0;
}

/* A float of 32 bits: decimal where that gives the same bits again. */
static const char *real_text(Arena *arena, int64_t num) {
    uint32_t bits = (uint32_t)num, again;
    float value;
    memcpy(&value, &bits, sizeof value);
    const char *text = arena_printf(arena, "%.9g", (double)value);
    float back = strtof(text, NULL);
    memcpy(&again, &back, sizeof again);
    bool finite = value - value == 0;
    return finite && again == bits ? text : arena_printf(arena, "0x%08x", bits);
}

static const char *value_text(Arena *arena, const ExprName *name, int64_t num) {
    if (name->is_real && num >= 0 && num <= UINT32_MAX)
        return real_text(arena, num);
    if (num >= 0 && num < (int64_t)name->n_words)
        return name->word[num];
    return arena_printf(arena, "%lld", (long long)num);
}

/* ---- what rules say anyway ---- */

static const FormatRule *rule_of(const ProgRow *row, uint32_t name) {
    for (uint32_t i = 0; i < row->n_rules; i++)
        if (row->rule[i].name == name)
            return &row->rule[i];
    return NULL;
}

static bool says(const Printer *p, const FormatRule *rule, int64_t *out) {
    ExprFault fault;
    return rule && expr_eval(&p->env, rule->value, out, &fault);
}

static bool is_implied(const Printer *p, const ProgRow *row, uint32_t name,
                       int64_t num) {
    int64_t value;
    return says(p, rule_of(row, name), &value) && value == num;
}

static bool vector_is_implied(const Printer *p, const ProgRow *row,
                              uint32_t name, const ProgVector *v) {
    int64_t value;
    if (!says(p, rule_of(row, name), &value))
        return false;
    for (uint32_t i = 0; i < v->n; i++)
        if (prog_at(v, i) != value)
            return false;
    return true;
}

/* ---- scopes ---- */

static void print_bytes(Printer *p, const ProgVector *v) {
    static const char digit[] = "0123456789abcdef";
    for (uint32_t i = 0; i < v->n; i += BYTES_A_WORD) {
        char word[2 * BYTES_A_WORD + 2] = "x";
        char *at = word + 1;
        for (uint32_t k = i; k < v->n && k < i + BYTES_A_WORD; k++) {
            *at++ = digit[v->byte[k] >> 4];
            *at++ = digit[v->byte[k] & 15];
        }
        put(p, word);
    }
}

static void print_vector(Printer *p, const ExprName *name,
                         const ProgVector *v) {
    text_add(p->text, " ");
    p->column = 1;
    put(p, arena_printf(p->arena, "%s[]=", name->name));
    if (v->byte && v->n > FEW_BYTES && name->domain.range.hi == UINT8_MAX)
        print_bytes(p, v);
    else
        for (uint32_t i = 0; i < v->n; i++)
            put(p, value_text(p->arena, name, prog_at(v, i)));
    end_line(p);
}

static void load(Printer *p, const ProgRow *row, const ProgScope *scope) {
    format_forget(&p->env, row);
    for (uint32_t i = 0; i < row->n_meanings; i++) {
        p->env.set[row->meaning[i]] = scope->meaning[i].set;
        p->env.num[row->meaning[i]] = scope->meaning[i].num;
    }
    format_imply(p->arena, &p->env, row, false);
}

static void print_scope(Printer *p, const ProgRow *row,
                        const ProgScope *scope) {
    load(p, row, scope);
    put(p, row->name);
    for (uint32_t i = 0; i < row->n_meanings; i++) {
        const ProgMeaning *meaning = &scope->meaning[i];
        uint32_t name = row->meaning[i];
        if (meaning->set && !is_implied(p, row, name, meaning->num))
            put(p, arena_printf(p->arena, "%s=%s", meaning->name,
                                value_text(p->arena,
                                           &p->format->names->list.at[name],
                                           meaning->num)));
    }
    end_line(p);
    for (uint32_t i = 0; i < row->n_vectors; i++) {
        const ProgVector *v = &scope->vector[i];
        if (v->set && v->n && !vector_is_implied(p, row, row->vector[i], v))
            print_vector(p, &p->format->names->list.at[row->vector[i]], v);
    }
}

void program_print(Text *text, const Program *program) {
    const HwFormat *format = program->spec->format;
    Arena *arena = arena_new("print");
    Printer p = {.text = text,
                 .arena = arena,
                 .format = format,
                 .env = format_env(arena, format)};
    text_addf(text, "# %s, a file of %s: amphora asm makes its bytes\n",
              program->container, program->spec->machine);
    print_scope(&p, &format->file, &program->scope);
    for (uint32_t i = 0; i < program->n_nodes; i++)
        print_scope(&p, program->node[i].row, &program->node[i].scope);
    arena_free(arena);
}
