/* diag.h - what we tell the user about their input.
 *
 * A Diag collects messages; nothing is printed until diag_print. Each has a
 * place: file, line and column (1-based), or for binary files a byte offset.
 * Errors in the user's input go here; our own mistakes are asserts or bug().
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>

/* line == 0: no line; `col` then holds a byte offset, or 0 for "the file". */
typedef struct Loc {
    const char *file; /* NULL: nowhere in particular */
    uint32_t line;
    uint32_t col;
} Loc;

typedef enum DiagKind { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE } DiagKind;

typedef struct DiagMessage {
    DiagKind kind;
    Loc loc;
    const char *text;
} DiagMessage;

typedef struct Diag Diag;

Diag *diag_new(Arena *arena);

/* Remembers a source text, so that its lines can be shown under a message.
 * The text must outlive the Diag and need not end in NUL. */
void diag_source(Diag *diag, const char *file, const char *text, size_t len);

void diag_error(Diag *diag, Loc loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_warning(Diag *diag, Loc loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A note belongs to the message before it. */
void diag_note(Diag *diag, Loc loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Remembers a file of the user's that was read, by device and number, and says
 * whether one was: none is written over by what is made from it. */
void diag_input(Diag *diag, uint64_t device, uint64_t number);
bool diag_is_input(const Diag *diag, uint64_t device, uint64_t number);

uint32_t diag_errors(const Diag *diag);
uint32_t diag_count(const Diag *diag);
const DiagMessage *diag_at(const Diag *diag, uint32_t i);
/* The text of the first error; "" where there is none. */
const char *diag_first_error(const Diag *diag);

/* Adds the messages of another. */
void diag_pass_on(Diag *to, const Diag *from);

/* Prints everything not yet printed, in order: `file:line:col: error: text`,
 * the source line and a caret where the source is known. At most 20 errors,
 * then how many more there are. */
void diag_print(Diag *diag, FILE *to);

/* Our own bug: says so with file and line of the C source, exits with 70. */
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void bug_at(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
