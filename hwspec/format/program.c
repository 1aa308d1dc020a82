/* program.c - Programs as values: looking things up, and building. */
#include "hwspec/format/format.h"

#include <string.h>

bool program_has(const HwSpec *spec) {
    return spec->format != NULL;
}

const char *prog_row_name(const ProgRow *row) {
    return row->name;
}

const char *const *prog_row_ops(const ProgRow *row) {
    return row->ops;
}

static ProgMeaning *find_meaning(const ProgScope *scope, const char *name) {
    for (uint32_t i = 0; i < scope->n_meanings; i++)
        if (!strcmp(scope->meaning[i].name, name))
            return &scope->meaning[i];
    return NULL;
}

static ProgVector *find_vector(const ProgScope *scope, const char *name) {
    for (uint32_t i = 0; i < scope->n_vectors; i++)
        if (!strcmp(scope->vector[i].name, name))
            return &scope->vector[i];
    return NULL;
}

bool prog_get(const ProgScope *scope, const char *name, int64_t *out) {
    const ProgMeaning *meaning = find_meaning(scope, name);
    if (!meaning || !meaning->set)
        return false;
    *out = meaning->num;
    return true;
}

int64_t prog_num(const ProgScope *scope, const char *name, int64_t absent) {
    int64_t num = absent;
    prog_get(scope, name, &num);
    return num;
}

const char *prog_word(const Program *program, const ProgScope *scope,
                      const char *name) {
    const ExprNames *names = program->spec->format->names;
    uint32_t i = expr_find(names, name);
    int64_t num;
    if (i == EXPR_NONE || !prog_get(scope, name, &num))
        return NULL;
    const ExprName *at = &names->list.at[i];
    return num >= 0 && num < at->n_words ? at->word[num] : NULL;
}

bool program_word_value(const HwSpec *spec, const char *name, const char *word,
                        int64_t *out) {
    uint32_t i = expr_find(spec->format->names, name);
    if (i == EXPR_NONE)
        return false;
    const ExprName *at = &spec->format->names->list.at[i];
    for (uint32_t k = 0; k < at->n_words; k++)
        if (!strcmp(at->word[k], word)) {
            *out = k;
            return true;
        }
    return false;
}

const ProgVector *prog_vector(const ProgScope *scope, const char *name) {
    const ProgVector *vector = find_vector(scope, name);
    return vector && vector->set ? vector : NULL;
}

const ProgRow *program_row_at(const HwSpec *spec, uint32_t i) {
    return spec->format && i < spec->format->n_rows ? &spec->format->row[i]
                                                    : NULL;
}

/* ---- building ---- */

static ProgScope new_scope(Arena *arena, const HwFormat *format,
                           const ProgRow *row) {
    ProgScope scope = {
        .n_meanings = row->n_meanings,
        .n_vectors = row->n_vectors,
        .meaning = ARENA_ARRAY(arena, ProgMeaning, row->n_meanings + 1),
        .vector = ARENA_ARRAY(arena, ProgVector, row->n_vectors + 1)};
    for (uint32_t i = 0; i < row->n_meanings; i++)
        scope.meaning[i].name = format->names->list.at[row->meaning[i]].name;
    for (uint32_t i = 0; i < row->n_vectors; i++)
        scope.vector[i].name = format->names->list.at[row->vector[i]].name;
    return scope;
}

Program *program_new(Arena *arena, const HwSpec *spec) {
    const HwFormat *format = spec->format;
    Program *program = ARENA_NEW(arena, Program);
    *program = (Program){.spec = spec,
                         .container = format->file.name,
                         .scope = new_scope(arena, format, &format->file)};
    return program;
}

const ProgRow *program_row(const HwSpec *spec, const char *name) {
    for (uint32_t i = 0; spec->format && i < spec->format->n_rows; i++)
        if (!strcmp(spec->format->row[i].name, name))
            return &spec->format->row[i];
    return NULL;
}

const ProgRow *program_row_for(const HwSpec *spec, const char *op) {
    for (uint32_t i = 0; spec->format && i < spec->format->n_rows; i++)
        for (const char *const *of = spec->format->row[i].ops; *of; of++)
            if (!strcmp(*of, op))
                return &spec->format->row[i];
    return NULL;
}

bool program_row_has(const HwSpec *spec, const ProgRow *row, const char *name) {
    const HwFormat *format = spec->format;
    const ProgRow *at = row ? row : &format->file;
    for (uint32_t i = 0; i < at->n_meanings; i++)
        if (!strcmp(format->names->list.at[at->meaning[i]].name, name))
            return true;
    for (uint32_t i = 0; i < at->n_vectors; i++)
        if (!strcmp(format->names->list.at[at->vector[i]].name, name))
            return true;
    return false;
}

static bool line_agrees(const ExprNames *names, const FormatLine *line,
                        const char *name, int64_t value) {
    for (uint32_t i = 0; i < line->n; i++)
        if (!strcmp(names->list.at[line->name[i]].name, name))
            return line->num[i] == value;
    return false;
}

bool program_row_can(const ProgRow *row, uint32_t n, const char *const *name,
                     const int64_t *value, const HwSpec *spec) {
    const ExprNames *names = spec->format->names;
    for (uint32_t t = 0; row && t < row->n_tables; t++)
        for (uint32_t i = 0; i < row->table[t]->n; i++) {
            uint32_t agree = 0;
            while (agree < n && line_agrees(names, &row->table[t]->line[i],
                                            name[agree], value[agree]))
                agree++;
            if (agree == n)
                return true;
        }
    return false;
}

ProgNode program_node(Arena *arena, const HwSpec *spec, const ProgRow *row) {
    return (ProgNode){.row = row, .scope = new_scope(arena, spec->format, row)};
}

void program_nodes(Arena *arena, Program *program, uint32_t n,
                   const ProgRow *const *row) {
    program->n_nodes = n;
    program->node = ARENA_ARRAY(arena, ProgNode, n + 1);
    for (uint32_t i = 0; i < n; i++)
        program->node[i] = program_node(arena, program->spec, row[i]);
}

void prog_set(ProgScope *scope, const char *name, int64_t num) {
    ProgMeaning *meaning = find_meaning(scope, name);
    if (!meaning)
        bug("no meaning %s", name);
    meaning->set = true;
    meaning->num = num;
}

static void set_vector(ProgScope *scope, const ProgVector *value) {
    ProgVector *vector = find_vector(scope, value->name);
    if (!vector)
        bug("no vector %s", value->name);
    *vector = *value;
}

void prog_set_nums(ProgScope *scope, const char *name, uint32_t n,
                   const int64_t *num) {
    set_vector(scope, &(ProgVector){name, true, n, NULL, num});
}

void prog_set_bytes(ProgScope *scope, const char *name, uint32_t n,
                    const uint8_t *byte) {
    set_vector(scope, &(ProgVector){name, true, n, byte, NULL});
}
