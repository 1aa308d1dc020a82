/* diag.c - collecting and printing messages; see diag.h. */
#include "base/diag.h"

#include "base/guard.h"

#include "base/plain.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PRINTED_ERRORS = 20, MAX_LINE_SHOWN = 200 };

typedef struct Source {
    const char *file, *text;
    size_t len;
} Source;

typedef struct InputFile {
    uint64_t device, number;
} InputFile;

struct Diag {
    Arena *arena;
    VEC(DiagMessage) message;
    VEC(Source) source;
    VEC(InputFile) input;
    uint32_t errors, printed, printed_errors;
};

Diag *diag_new(Arena *arena) {
    Diag *diag = ARENA_NEW(arena, Diag);
    diag->arena = arena;
    return diag;
}

void diag_source(Diag *diag, const char *file, const char *text, size_t len) {
    Source source = {file, text, len};
    vec_push(diag->arena, &diag->source, source);
}

void diag_input(Diag *diag, uint64_t device, uint64_t number) {
    InputFile input = {device, number};
    vec_push(diag->arena, &diag->input, input);
}

bool diag_is_input(const Diag *diag, uint64_t device, uint64_t number) {
    for (uint32_t i = 0; i < diag->input.n; i++)
        if (diag->input.at[i].device == device &&
            diag->input.at[i].number == number)
            return true;
    return false;
}

static void add(Diag *diag, DiagKind kind, Loc loc, const char *format,
                va_list args) {
    DiagMessage message = {kind, loc, arena_vprintf(diag->arena, format, args)};
    vec_push(diag->arena, &diag->message, message);
    diag->errors += kind == DIAG_ERROR;
}

#define ADD(kind)                                                              \
    va_list args;                                                              \
    va_start(args, format);                                                    \
    add(diag, kind, loc, format, args);                                        \
    va_end(args)

void diag_error(Diag *diag, Loc loc, const char *format, ...) {
    ADD(DIAG_ERROR);
}

void diag_warning(Diag *diag, Loc loc, const char *format, ...) {
    ADD(DIAG_WARNING);
}

void diag_note(Diag *diag, Loc loc, const char *format, ...) {
    ADD(DIAG_NOTE);
}

uint32_t diag_errors(const Diag *diag) {
    return diag->errors;
}

uint32_t diag_count(const Diag *diag) {
    return diag->message.n;
}

const DiagMessage *diag_at(const Diag *diag, uint32_t i) {
    return &diag->message.at[i];
}

const char *diag_first_error(const Diag *diag) {
    for (uint32_t i = 0; i < diag_count(diag); i++)
        if (diag_at(diag, i)->kind == DIAG_ERROR)
            return diag_at(diag, i)->text;
    return "";
}

static void print_place(Loc loc, FILE *to) {
    if (!loc.file)
        fputs("amphora: ", to);
    else if (loc.line)
        say_to(to, "%s:%u:%u: ", loc.file, loc.line, loc.col);
    else if (loc.col)
        say_to(to, "%s: byte %u: ", loc.file, loc.col);
    else
        say_to(to, "%s: ", loc.file);
}

static const Source *find_source(const Diag *diag, const char *file) {
    for (uint32_t i = diag->source.n; file && i > 0; i--)
        if (!strcmp(diag->source.at[i - 1].file, file))
            return &diag->source.at[i - 1];
    return NULL;
}

/* As many bytes as there are, so that a caret stands below what it means. */
static void print_dotted(const char *line, FILE *to) {
    for (size_t n; *line; line += n ? n : 1)
        if ((n = plain_length(line)) > 0)
            fwrite(line, 1, n, to);
        else
            fputc(*line == '\t' ? ' ' : '.', to);
}

/* The line, tabs as spaces and control characters as dots, and a caret. */
static void print_line(const Diag *diag, Loc loc, FILE *to) {
    const Source *source = find_source(diag, loc.file);
    if (!source || !loc.line)
        return;
    const char *at = source->text, *end = source->text + source->len;
    for (uint32_t line = 1; line < loc.line && at < end; at++)
        line += *at == '\n';
    if (at >= end || !loc.col || loc.col > MAX_LINE_SHOWN)
        return;
    fputs("    ", to);
    char line[MAX_LINE_SHOWN + 1] = {0};
    for (int n = 0; at < end && *at != '\n' && n < MAX_LINE_SHOWN; at++, n++)
        line[n] = (char)(*at ? *at : '.');
    print_dotted(line, to);
    fprintf(to, "\n    %*s\n", (int)loc.col, "^");
}

static void print_one(const Diag *diag, const DiagMessage *message, FILE *to) {
    static const char *const kind[] = {"error", "warning", "note"};
    print_place(message->loc, to);
    say_to(to, "%s: %s\n", kind[message->kind], message->text);
    print_line(diag, message->loc, to);
}

void diag_print(Diag *diag, FILE *to) {
    bool hidden = false;
    for (; diag->printed < diag->message.n; diag->printed++) {
        const DiagMessage *message = &diag->message.at[diag->printed];
        if (message->kind == DIAG_ERROR)
            hidden = diag->printed_errors++ >= MAX_PRINTED_ERRORS;
        else if (message->kind == DIAG_WARNING)
            hidden = false;
        if (!hidden)
            print_one(diag, message, to);
    }
    if (hidden)
        fprintf(to, "amphora: and %u more errors\n",
                diag->printed_errors - MAX_PRINTED_ERRORS);
}

_Noreturn void bug_at(const char *file, int line, const char *format, ...) {
    enum { MOST = sizeof ((Guard *)NULL)->said };
    char own[MOST]; /* no arena: memory may be what is wrong */
    char *said = guard_active() ? guard_reason_text() : own;
    int n = snprintf(said, MOST, "internal error at %s:%d: ", file, line);
    va_list args;
    va_start(args, format);
    if (n > 0 && n < MOST)
        vsnprintf(said + n, (size_t)(MOST - n), format, args);
    va_end(args);
    if (guard_active())
        guard_leave(GUARD_BUG);
    fputs("amphora: ", stderr);
    print_dotted(said, stderr);
    fputs("\nThis is a bug in amphora, not in your input.\n", stderr);
    exit(70);
}

void diag_pass_on(Diag *to, const Diag *from) {
    for (uint32_t i = 0; i < diag_count(from); i++) {
        const DiagMessage *m = diag_at(from, i);
        if (m->kind == DIAG_ERROR)
            diag_error(to, m->loc, "%s", m->text);
        else if (m->kind == DIAG_WARNING)
            diag_warning(to, m->loc, "%s", m->text);
        else
            diag_note(to, m->loc, "%s", m->text);
    }
}
