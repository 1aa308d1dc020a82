/* cmd_import.c - a hwspec from somebody else's description of a machine. */
#include "driver/commands.h"

#include "frontends/import.h"

#include <string.h>

ExitCode cmd_import(Arena *arena, Diag *diag, const Options *options) {
    Bytes bytes;
    if (!file_read(arena, diag, options->file, &bytes))
        return EXIT_BAD_INPUT;
    const char *yaml = import_dpu(arena, diag, options->file, bytes);
    const char *out =
        options->out
            ? options->out
            : arena_printf(arena, "%s.yaml", file_stem(arena, options->file));
    if (!yaml || !hwspec_read(arena, diag, out, yaml, strlen(yaml), 0, NULL) ||
        !file_write(arena, diag, out, yaml, strlen(yaml)))
        return EXIT_BAD_INPUT;
    if (options->json) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddBoolToObject(json, "ok", true);
        cJSON_AddStringToObject(json, "file", out);
        print_json(arena, options, json);
    } else {
        say("wrote   %s\n", out);
    }
    return EXIT_FINE;
}
