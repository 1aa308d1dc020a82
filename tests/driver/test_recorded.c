/* test_recorded.c - what commands print and write, as recorded.
 *
 * A line of recorded.txt is a command of `amphora`, a colon, its exit code, and
 * digests of what it prints and of the files that it writes into $OUT; of times
 * and paths nothing is left in them. A command that differs is run by hand, by
 * the program as it was and as it is. `driver_test_recorded --write` makes the
 * right sides anew; a new command is a line without one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "amphora/amphora.h"
#include "base/rng.h"
#include "base/text.h"
#include "tests/recorded.h"
#include "tests/scratch.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const recorded = "tests/driver/recorded.txt";

enum { MOST_WORDS = 32, MOST_FILES = 16 };

static int keep(void *context, amphora_stream stream, const char *text,
                size_t n) {
    (void)stream;
    if (n)
        text_addf(context, "%.*s", (int)n, text);
    return 0;
}

static bool begins(const char *text, const char *with) {
    return !strncmp(text, with, strlen(with));
}

/* The source folder, as getcwd has it: tests run there. */
static char root[PATH_MAX];

/* What is no one's doing: where files lie, times, and how far real numbers are
 * from those of a library that goes by the processor. */
static size_t neutral(const char *text, const char *folder, bool line) {
    if (begins(text, folder))
        return strlen(folder);
    if (begins(text, root))
        return strlen(root);
    if (line && begins(text, "ms "))
        return strcspn(text, "\n");
    if (begins(text, "\"ms\":{"))
        return strcspn(text, "}");
    if (begins(text, "\"ms\":") || begins(text, "\"max_rel_error\":"))
        return strcspn(text, ",}");
    if (begins(text, "relative error "))
        return strcspn(text, "\n");
    return 0;
}

static uint64_t digest_of(const char *text, const char *folder) {
    uint64_t all = 1;
    for (size_t i = 0; text[i];) {
        size_t skip = neutral(text + i, folder, !i || text[i - 1] == '\n');
        if (!skip)
            all = rng_bits(all, (uint8_t)text[i]);
        i += skip ? skip : 1;
    }
    return all & 0xffffffff;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Digests of the files of a folder, which is then empty. */
static void add_files(Arena *arena, Text *line, const char *folder) {
    char *name[MOST_FILES];
    size_t n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (e->d_name[0] != '.' && n < MOST_FILES)
            name[n++] = arena_printf(arena, "%s/%s", folder, e->d_name);
    closedir(dir);
    qsort(name, n, sizeof *name, by_name);
    for (size_t i = 0; i < n; i++) {
        const char *text = recorded_text(arena, name[i]);
        text_addf(line, " %08llx", (unsigned long long)digest_of(text, folder));
        unlink(name[i]);
    }
}

/* "exit 0 01234567 89abcdef ..." */
static void add_command(Arena *arena, Text *line, const char *command,
                        const char *folder) {
    Text said = text_new(arena);
    const char *word[MOST_WORDS] = {"amphora"};
    int n = 1;
    for (const char *at = command; *at && n < MOST_WORDS - 1;) {
        int length = (int)strcspn(at, " ");
        word[n] = arena_printf(arena, "%.*s", length, at);
        if (begins(word[n], "$OUT"))
            word[n] = arena_printf(arena, "%s%s", folder, word[n] + 4);
        n++;
        at += length + (at[length] == ' ');
    }
    amphora_session *session = amphora_session_new();
    int code = amphora_command(session, n, word, keep, &said);
    amphora_session_free(session);
    text_addf(line, "exit %d %08llx", code,
              (unsigned long long)digest_of(text_str(&said), folder));
    add_files(arena, line, folder);
}

/* A line of the file, as it is now. */
static const char *answer(Arena *arena, const char *line, const char *folder) {
    Text text = text_new(arena);
    const char *end = strstr(line, ": exit ");
    size_t length = end ? (size_t)(end - line) : strlen(line);
    const char *command = arena_printf(arena, "%.*s", (int)length, line);
    text_addf(&text, "%s: ", command);
    add_command(arena, &text, command, folder);
    return text_str(&text);
}

typedef struct Lines {
    uint32_t n;
    const char **at;
} Lines;

static Lines lines_of(Arena *arena) {
    char *text = recorded_text(arena, recorded);
    Lines lines = {0, ARENA_ARRAY(arena, const char *, strlen(text) + 1)};
    for (char *at = strtok(text, "\n"); at; at = strtok(NULL, "\n"))
        lines.at[lines.n++] = at;
    return lines;
}

static char *new_folder(Arena *arena) {
    char *folder = arena_printf(arena, "%s/amphora-recorded-XXXXXX", scratch());
    assert_non_null(mkdtemp(folder));
    return folder;
}

/* Some of all kinds first, so that a difference shows early. */
static void commands_do_as_recorded(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Lines lines = lines_of(arena);
    const char *folder = new_folder(arena);
    enum { APART = 23 };
    for (uint32_t k = 0; k < APART; k++)
        for (uint32_t i = k; i < lines.n; i += APART) {
            Arena *own = arena_new("command");
            assert_string_equal(answer(own, lines.at[i], folder), lines.at[i]);
            arena_free(own);
        }
    rmdir(folder);
    arena_free(arena);
}

static int write_all(void) {
    Arena *arena = arena_new("test");
    Lines lines = lines_of(arena);
    const char *folder = new_folder(arena);
    Text text = text_new(arena);
    for (uint32_t i = 0; i < lines.n; i++)
        text_addf(&text, "%s\n", answer(arena, lines.at[i], folder));
    rmdir(folder);
    return recorded_write(recorded, text_str(&text));
}

int main(int argc, char **argv) {
    if (!getcwd(root, sizeof root))
        return 1;
    if (argc > 1 && !strcmp(argv[1], "--write"))
        return write_all();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_do_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
