/* commands.c - finds the command, runs it, says what it found.
 *
 * Input: arguments. Output: for people where the guard says (base/guard.h), or
 * for programs, as the object of --json and messages.
 */
#include "driver/commands.h"
#include "base/guard.h"
#include "base/near.h"
#include "base/plain.h"
#include "driver/manual.h"

#include <string.h>

static void usage(FILE *to) {
    fputs("amphora compiles neural networks for accelerators with two\n"
          "levels of memory, described in one YAML file.\n\n"
          "usage: amphora COMMAND [arguments]\n\ncommands:\n",
          to);
    for (uint32_t i = 0; i < n_commands; i++) {
        int line = (int)strcspn(commands[i].doc, "\n");
        fprintf(to, "  %-9s %-8s %.*s\n", commands[i].name,
                commands[i].argument, line, commands[i].doc);
    }
    fputs("\nshipped machines:", to);
    Arena *arena = arena_new("usage");
    const char *const *name = hwspec_targets(arena);
    for (; name && *name; name++)
        fprintf(to, " %s", *name);
    arena_free(arena);
    fputs("\n\nEach command has --help, and --help all; amphora --formats "
          "lists what networks\n"
          "can be read from. Exit codes: 0 ok, 1 bad input or wrong\n"
          "result, 2 usage, 3 does not fit, 70 a bug of ours.\n",
          to);
}

/* What can be read, in the order in which contents are looked at. */
static void print_formats(FILE *to) {
    fprintf(to, "%-10s  %-30s  %s\n", "format", "suffixes", "what is read");
    for (uint32_t i = 0; i < n_formats; i++)
        fprintf(to, "%-10s  %-30s  %s\n", formats[i].name, formats[i].suffixes,
                formats[i].doc);
    fputs("\nA file is known by its content; its suffix counts only where the\n"
          "content says nothing, and one that does not fit is warned of.\n",
          to);
}

static const char *unknown_command(Arena *arena, const char *name) {
    Near near = near_to(name);
    for (uint32_t i = 0; i < n_commands; i++)
        near_look(&near, commands[i].name);
    return arena_printf(arena, "no command %s%s%s; try `amphora --help`", name,
                        near.best ? "; did you mean " : "",
                        near.best ? near.best : "");
}

/* --json gives one object even when there is no result to report. A command
 * that printed its own object has left no error behind. */
static void print_failure(Arena *arena, const Options *options,
                          const Diag *diag, ExitCode code) {
    static const char *const kind[] = {"error", "warning", "note"};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", false);
    cJSON_AddNumberToObject(json, "exit", code);
    cJSON *list = cJSON_AddArrayToObject(json, "messages");
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *message = diag_at(diag, i);
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "kind", kind[message->kind]);
        if (message->loc.file)
            cJSON_AddStringToObject(item, "file", message->loc.file);
        if (message->loc.line)
            cJSON_AddNumberToObject(item, "line", message->loc.line);
        if (message->loc.col)
            cJSON_AddNumberToObject(item, message->loc.line ? "column" : "byte",
                                    message->loc.col);
        cJSON_AddStringToObject(item, "text", message->text);
        cJSON_AddItemToArray(list, item);
    }
    print_json(arena, options, json);
}

/* Looked for by itself: a usage error may stand in front of it. */
static bool wants_json(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--json"))
            return true;
    return false;
}

ExitCode command_run(Arena *arena, Diag *diag, int argc, char **argv,
                     const Options *base) {
    const Command *command = argc ? command_find(argv[0]) : NULL;
    if (!command) {
        diag_error(diag, (Loc){0}, "%s",
                   unknown_command(arena, argc ? argv[0] : ""));
        return EXIT_BAD_USAGE;
    }
    Options options = *base;
    ExitCode code = EXIT_BAD_USAGE;
    if (options_parse(arena, diag, command, argc, argv, &options)) {
        code = EXIT_FINE;
        if (options.help)
            options_help(command, options.help_all, guard_out());
        else
            code = command->run(arena, diag, &options);
    }
    if (code && diag_errors(diag) && wants_json(argc, argv))
        print_failure(arena, &options, diag, code);
    return code;
}

/* What the program does with arguments, the program's name in front. */
ExitCode command_program(Arena *arena, Diag *diag, int argc, char **argv) {
    const char *first = argc > 1 ? argv[1] : "";
    Options base = options_default();
    if (argc < 2) {
        usage(guard_err());
        return EXIT_BAD_USAGE;
    }
    if (!strcmp(first, "--man") || !strcmp(first, "--completion"))
        return manual_print(argc - 1, argv + 1);
    if (!strcmp(first, "--help") || !strcmp(first, "-h"))
        usage(guard_out());
    else if (!strcmp(first, "--formats"))
        print_formats(guard_out());
    else if (!strcmp(first, "--version"))
        fprintf(guard_out(), "%s\n", version_text);
    else
        return command_run(arena, diag, argc - 1, argv + 1, &base);
    return EXIT_FINE;
}
