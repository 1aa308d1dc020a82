/* program.h - what a machine's file says, by meaning.
 *
 * A container (hwspec: `container`) is a file as the machine's own tools read
 * it: numbers, sections, a list of nodes. A Program is such a file decoded: no
 * offset, width or bit position is in it, only integers under the names that
 * the hwspec's expressions use. What follows from others (sizes, counts, steps,
 * padding) is checked when a file is read and computed when one is written.
 *
 * Files: binary <-> Program <-> text. Both ways give the same bytes again.
 *
 * A meaning is one integer of 64 bits ("in.c", "kernel.w", "zero.x"). A vector
 * is several of one name ("bn.mul" by output channel, "weights" in the order of
 * the section's axes, "in.start" by operand of a concat). Reals are the bits of
 * a float of 32 bits (`f32`).
 */
#ifndef HWSPEC_PROGRAM_H
#define HWSPEC_PROGRAM_H

#include "base/text.h"
#include "hwspec/hwspec.h"

typedef struct ProgMeaning {
    const char *name;
    bool set; /* else it was not said, and nothing implies it */
    int64_t num;
} ProgMeaning;

typedef struct ProgVector {
    const char *name;
    bool set;
    uint32_t n;
    const uint8_t *byte; /* n of them, where all are 0..255; or NULL and: */
    const int64_t *num;
} ProgVector;

/* Names in the order in which the file says them. Of a node: those of its row.
 */
typedef struct ProgScope {
    uint32_t n_meanings, n_vectors;
    ProgMeaning *meaning;
    ProgVector *vector;
} ProgScope;

/* A row of `instructions` that has words or a body. */
typedef struct ProgRow ProgRow;
const char *prog_row_name(const ProgRow *row); /* "KPU" */
/* What it runs: the names of `for`, NULL at the end: "conv", "softmax". */
const char *const *prog_row_ops(const ProgRow *row);

typedef struct ProgNode {
    const ProgRow *row;
    ProgScope scope;
    Loc loc; /* of a file: byte offset of its body; of a text: its line */
} ProgNode;

typedef struct Program {
    const HwSpec *spec;
    const char *container; /* name: "kmodel" */
    ProgScope scope;       /* of the file: "input.start", "main.size" */
    uint32_t n_nodes;
    ProgNode *node;
} Program;

/* The meaning's value; false if the scope has none of that name, or it was not
 * set. */
bool prog_get(const ProgScope *scope, const char *name, int64_t *out);
/* The same, `absent` where there is none. */
int64_t prog_num(const ProgScope *scope, const char *name, int64_t absent);
/* The word that the meaning's value is called by; NULL if it has none. */
const char *prog_word(const Program *program, const ProgScope *scope,
                      const char *name);
/* The value that a meaning's word stands for; false if it has no such word. */
bool program_word_value(const HwSpec *spec, const char *name, const char *word,
                        int64_t *out);
/* NULL if the scope has no such vector, or it was not set. */
const ProgVector *prog_vector(const ProgScope *scope, const char *name);
static inline int64_t prog_at(const ProgVector *v, uint32_t i) {
    return v->byte ? v->byte[i] : v->num[i];
}

/* Has the machine a container? */
bool program_has(const HwSpec *spec);
/* How each field of each row is read back, a line each; of a machine that has a
 * container. */
void program_explain(Text *text, const HwSpec *spec);
/* Could these bytes be one: do the constants of its first number agree? */
bool program_is(const HwSpec *spec, const uint8_t *data, size_t len);

/* Is a file of a machine that has listings, too, one of its own: by its bytes,
 * by its text, or by the container's name as its ending? */
bool program_is_file(const HwSpec *spec, const char *file, const uint8_t *data,
                     size_t len);
/* Does this text begin as one of a file does? */
bool program_is_text(const HwSpec *spec, const char *text, size_t len);

/* Reads a file. Errors have the byte offset of what is wrong: what lies outside
 * its section, a constant or reserved bit that differs, a field that is not
 * what the others say it must be. NULL after any. */
const Program *program_decode(Arena *arena, Diag *diag, const HwSpec *spec,
                              const char *file, const uint8_t *data,
                              size_t len);

/* Seconds that a node takes by the prices of its row or engine. False if it has
 * none, or, with an error, if a quantity has no value. */
bool program_seconds(Arena *arena, Diag *diag, const Program *program,
                     const ProgNode *node, double *out);

/* Cells [at, at + size) and as many each `step` further, `count` in all. */
typedef struct ProgTouch {
    int64_t at, size, count, step;
    bool writes;
} ProgTouch;
/* Which queue a node stands in; bits of the queues from which it takes a token
 * before it begins, and to which it gives one when it is done; its own queue's
 * bit says nothing. */
typedef struct ProgIssue {
    uint32_t queue, n;
    int64_t waits, tells;
    ProgTouch *touch;
} ProgIssue;
enum { PROG_QUEUES = 8 };
/* Names of the queues that a file's instructions stand in; NULL and 0 where the
 * machine has no `issue`. */
const char *const *program_queues(const HwSpec *spec, uint32_t *n);
/* Are the tokens of what is emitted set by what it touches? With the bit of an
 * instruction's own queue? */
bool program_places_tokens(const HwSpec *spec, bool *own);
void program_set_tokens(const HwSpec *spec, ProgNode *node, int64_t waits,
                        int64_t tells);
/* By node, of a machine with queues. NULL after an error: a touch that has no
 * value. */
const ProgIssue *program_issue(Arena *arena, Diag *diag,
                               const Program *program);

/* Writes one: derived fields are filled in, meanings that were not set come
 * from `default`. Errors (a value that its field cannot hold, a meaning that is
 * needed and not there, a vector of another length) are at the node's place. */
bool program_encode(Arena *arena, Diag *diag, const Program *program,
                    const uint8_t **out, size_t *len);

/* The text form, and back; docs/hwspec.md. */
void program_print(Text *text, const Program *program);
const Program *program_parse(Arena *arena, Diag *diag, const HwSpec *spec,
                             const char *file, const char *text, size_t len);

/* ---- building one: all names are those of the hwspec; another is our bug ----
 */

Program *program_new(Arena *arena, const HwSpec *spec);
/* The row with the name, and the i-th; NULL if the machine has none. */
const ProgRow *program_row(const HwSpec *spec, const char *name);
const ProgRow *program_row_at(const HwSpec *spec, uint32_t i);
/* The first row that runs the operation: "conv", "softmax"; NULL: none. */
const ProgRow *program_row_for(const HwSpec *spec, const char *op);
/* Has the row (NULL: the file itself) such a meaning, or such a vector? */
bool program_row_has(const HwSpec *spec, const ProgRow *row, const char *name);
/* Has some line of the row's tables these meanings with these values? */
bool program_row_can(const ProgRow *row, uint32_t n, const char *const *name,
                     const int64_t *value, const HwSpec *spec);
/* A node with nothing set; `n` of them, `row` by node. */
ProgNode program_node(Arena *arena, const HwSpec *spec, const ProgRow *row);
void program_nodes(Arena *arena, Program *program, uint32_t n,
                   const ProgRow *const *row);
void prog_set(ProgScope *scope, const char *name, int64_t num);
void prog_set_nums(ProgScope *scope, const char *name, uint32_t n,
                   const int64_t *num);
void prog_set_bytes(ProgScope *scope, const char *name, uint32_t n,
                    const uint8_t *byte);

#endif
