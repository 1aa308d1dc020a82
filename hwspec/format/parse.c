/* parse.c - text -> Program; the form stands in print.c.
 *
 * Input: hostile text. Output: a Program, or errors at line and column. What is
 * missing, too long, or does not fit is found when it is encoded.
 */
#include "hwspec/format/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef VEC(int64_t) Values;

typedef struct Parser {
    Arena *arena;
    Diag *diag;
    const HwFormat *format;
    Program *program;
    VEC(ProgNode) nodes;
    const ProgRow *row; /* of the scope that is being filled; NULL: of none */
    ProgScope scope;
    bool begun, in_node;
    Loc loc;         /* of the word */
    uint32_t vector; /* index in the scope, or EXPR_NONE */
    Values values;
} Parser;

static const ExprName *name_at(const Parser *p, uint32_t name) {
    return &p->format->names->list.at[name];
}

/* ---- scopes ---- */

static void end_vector(Parser *p) {
    if (p->vector == EXPR_NONE)
        return;
    const ExprDomain *domain = &name_at(p, p->row->vector[p->vector])->domain;
    ProgVector *v = &p->scope.vector[p->vector];
    uint32_t n = p->values.n, k = 0;
    v->set = true;
    v->n = n;
    if (domain->range.lo >= 0 && domain->range.hi <= UINT8_MAX)
        while (k < n && p->values.at[k] >= 0 && p->values.at[k] <= UINT8_MAX)
            k++;
    if (n && k == n) {
        uint8_t *byte = arena_alloc_raw(p->arena, n, 1);
        for (uint32_t i = 0; i < n; i++)
            byte[i] = (uint8_t)p->values.at[i];
        v->byte = byte;
    } else {
        v->num = ARENA_COPY(p->arena, int64_t, p->values.at, n);
    }
    p->vector = EXPR_NONE;
    p->values.n = 0;
}

static void end_scope(Parser *p) {
    end_vector(p);
    if (p->in_node)
        p->nodes.at[p->nodes.n - 1].scope = p->scope;
    else if (p->row)
        p->program->scope = p->scope;
}

static const ProgRow *find_row(const Parser *p, const char *name) {
    for (uint32_t i = 0; i < p->format->n_rows; i++)
        if (!strcmp(p->format->row[i].name, name))
            return &p->format->row[i];
    return NULL;
}

static ProgScope empty_scope(Parser *p, const ProgRow *row) {
    Program one = {.spec = p->program->spec};
    program_nodes(p->arena, &one, 1, &row);
    return one.node->scope;
}

/* Is the word one that begins a scope here? */
static bool check_first(Parser *p, const char *word, bool is_file,
                        const ProgRow *row) {
    const char *file = p->format->file.name;
    if (!p->begun && !is_file)
        diag_error(p->diag, p->loc, "`%s`: the first line is of %s", word,
                   file);
    else if (p->begun && is_file)
        diag_error(p->diag, p->loc, "`%s` stands here twice", word);
    else if (!is_file && !row)
        diag_error(p->diag, p->loc, "`%s` is no row of %s", word,
                   p->program->spec->machine);
    else
        return true;
    return false;
}

static void begin_scope(Parser *p, const char *word) {
    bool is_file = !strcmp(word, p->format->file.name);
    const ProgRow *row = is_file ? &p->format->file : find_row(p, word);
    end_scope(p);
    bool ok = check_first(p, word, is_file, row);
    p->begun = true;
    p->row = ok ? row : NULL;
    p->in_node = ok && !is_file;
    if (ok)
        p->scope = empty_scope(p, row);
    if (p->in_node) {
        ProgNode node = {.row = row, .loc = p->loc};
        vec_push(p->arena, &p->nodes, node);
    }
}

/* ---- values ---- */

static bool parse_real(const char *text, int64_t *out) {
    char *end;
    uint32_t bits;
    errno = 0;
    float value = strtof(text, &end);
    if (end == text || *end || !strncmp(text, "0x", 2))
        return false;
    memcpy(&bits, &value, sizeof bits);
    *out = bits;
    return true;
}

static bool parse_whole(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    *out = value;
    return end != text && !*end && !errno;
}

static void parse_value(Parser *p, const ExprName *name, const char *text,
                        uint32_t at, int64_t *out) {
    Loc loc = p->loc;
    loc.col += at;
    for (uint32_t i = 0; i < name->n_words; i++)
        if (!strcmp(name->word[i], text)) {
            *out = i;
            return;
        }
    if (name->is_real && parse_real(text, out))
        return;
    if (!parse_whole(text, out)) {
        diag_error(p->diag, loc, "`%s` is no %s", text,
                   name->is_real   ? "real number"
                   : name->n_words ? "number, nor a word that is known"
                                   : "whole number");
        *out = 0;
    } else if (!expr_domain_has(&name->domain, *out)) {
        diag_error(p->diag, loc, "%s is %s, %s can be", name->name, text,
                   expr_domain_text(p->arena, &name->domain));
    }
}

/* "x79fe": a byte for each two digits. */
static bool parse_bytes(Parser *p, const char *text) {
    size_t n = strlen(text);
    if (*text != 'x' || n % 2 == 0)
        return false;
    for (size_t i = 1; i < n; i += 2) {
        static const char digits[] = "0123456789abcdef";
        const char *hi = strchr(digits, text[i]);
        const char *lo = strchr(digits, text[i + 1]);
        if (!hi || !lo)
            return false;
        int64_t value = (hi - digits) * 16 + (lo - digits);
        vec_push(p->arena, &p->values, value);
    }
    return true;
}

static void add_element(Parser *p, const char *text) {
    const ExprName *name = name_at(p, p->row->vector[p->vector]);
    uint32_t had = p->values.n;
    int64_t value;
    if (parse_bytes(p, text))
        return;
    p->values.n = had;
    parse_value(p, name, text, 0, &value);
    vec_push(p->arena, &p->values, value);
}

static void unknown(Parser *p, const char *name) {
    const ExprNames *names = p->format->names;
    const char *like =
        expr_suggest_of(names, p->row->n_meanings, p->row->meaning, name);
    if (!like)
        like = expr_suggest_of(names, p->row->n_vectors, p->row->vector, name);
    diag_error(p->diag, p->loc, "%s has no %s%s%s%s", p->row->name, name,
               like ? ": " : "", like ? like : "", like ? "?" : "");
}

static void begin_vector(Parser *p, const char *name) {
    for (uint32_t i = 0; i < p->row->n_vectors; i++)
        if (!strcmp(p->scope.vector[i].name, name)) {
            if (p->scope.vector[i].set)
                diag_error(p->diag, p->loc, "%s stands here twice", name);
            p->vector = i;
            return;
        }
    unknown(p, name);
}

static void set_meaning(Parser *p, const char *name, const char *text,
                        uint32_t at) {
    for (uint32_t i = 0; i < p->row->n_meanings; i++) {
        ProgMeaning *meaning = &p->scope.meaning[i];
        if (strcmp(meaning->name, name))
            continue;
        if (meaning->set)
            diag_error(p->diag, p->loc, "%s stands here twice", name);
        meaning->set = true;
        parse_value(p, name_at(p, p->row->meaning[i]), text, at, &meaning->num);
        return;
    }
    unknown(p, name);
}

static void parse_word(Parser *p, const char *word, bool first) {
    const char *equals = strchr(word, '=');
    if (first) {
        begin_scope(p, word);
        return;
    }
    if (!p->row) { /* of a line that was refused */
        if (!p->begun)
            begin_scope(p, word);
        return;
    }
    if (!equals && p->vector != EXPR_NONE) {
        add_element(p, word);
        return;
    }
    end_vector(p);
    if (!equals) {
        diag_error(p->diag, p->loc, "`%s` is no NAME=VALUE", word);
        return;
    }
    size_t len = (size_t)(equals - word);
    bool is_vector = len > 2 && !strncmp(equals - 2, "[]", 2);
    char *name = arena_strndup(p->arena, word, is_vector ? len - 2 : len);
    if (!is_vector)
        set_meaning(p, name, equals + 1, (uint32_t)len + 1);
    else
        begin_vector(p, name);
    if (is_vector && p->vector != EXPR_NONE && equals[1])
        add_element(p, equals + 1);
}

/* ---- lines ---- */

static void parse_line(Parser *p, const char *at, size_t len, uint32_t line,
                       const char *file) {
    static const char space[] = " \t\r";
    for (size_t i = 0; i < len;) {
        size_t from = i;
        if (at[i] == '#')
            return;
        if (strchr(space, at[i])) {
            i++;
            continue;
        }
        while (i < len && at[i] && !strchr(space, at[i]))
            i++;
        if (i == from) { /* a NUL */
            p->loc = (Loc){file, line, (uint32_t)from + 1};
            diag_error(p->diag, p->loc, "a byte 0 in a text");
            return;
        }
        p->loc = (Loc){file, line, (uint32_t)from + 1};
        parse_word(p, arena_strndup(p->arena, at + from, i - from), from == 0);
    }
}

bool program_is_text(const HwSpec *spec, const char *text, size_t len) {
    const char *name = spec->format ? spec->format->file.name : "";
    size_t at = 0, n = strlen(name);
    while (at < len && strchr("# \t\r\n", text[at])) {
        const char *end = memchr(text + at, '\n', len - at);
        at = end ? (size_t)(end - text) + 1 : len;
    }
    return n && len - at >= n && !memcmp(text + at, name, n) &&
           (len - at == n || strchr(" \t\r\n", text[at + n]));
}

const Program *program_parse(Arena *arena, Diag *diag, const HwSpec *spec,
                             const char *file, const char *text, size_t len) {
    enum { MAX_ERRORS = 100 };
    uint32_t errors = diag_errors(diag), line = 1;
    Parser p = {.arena = arena,
                .diag = diag,
                .format = spec->format,
                .program = program_new(arena, spec),
                .vector = EXPR_NONE};
    diag_source(diag, file, text, len);
    for (size_t at = 0; at < len && diag_errors(diag) < errors + MAX_ERRORS;
         line++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        parse_line(&p, text + at, n, line, file);
        at += n + 1;
    }
    if (!p.begun)
        diag_error(diag, (Loc){.file = file}, "nothing in it: no line of %s",
                   spec->format->file.name);
    end_scope(&p);
    p.program->n_nodes = p.nodes.n;
    p.program->node = p.nodes.at;
    return diag_errors(diag) > errors ? NULL : p.program;
}
