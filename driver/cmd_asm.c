/* cmd_asm.c - listing text to bytes and back, by the hwspec's rows. */
#include "driver/commands.h"

#include <string.h>

static ExitCode report(Arena *arena, const Options *options,
                       const Listing *listing, const char *out, size_t bytes) {
    if (options->json) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddBoolToObject(json, "ok", true);
        cJSON_AddNumberToObject(json, "instructions", listing->n);
        cJSON_AddNumberToObject(json, "bytes", (double)bytes);
        cJSON_AddStringToObject(json, "file", out);
        print_json(arena, json);
    } else if (strcmp(out, "-")) {
        say("wrote   %s: %u instructions, %zu bytes\n", out, listing->n, bytes);
    }
    return EXIT_FINE;
}

ExitCode cmd_asm(Arena *arena, Diag *diag, const Options *options) {
    const HwSpec *spec = pipeline_spec(arena, diag, options);
    if (!spec)
        return options->target ? EXIT_BAD_INPUT : EXIT_BAD_USAGE;
    const Listing *listing = listing_read(arena, diag, spec, options->file);
    const uint8_t *data;
    size_t len;
    if (!listing || !listing_encode(arena, diag, listing, &data, &len))
        return EXIT_BAD_INPUT;
    const char *out =
        options->out
            ? options->out
            : arena_printf(arena, "%s.bin", file_stem(arena, options->file));
    if (!file_write(arena, diag, out, data, len))
        return EXIT_BAD_INPUT;
    return report(arena, options, listing, out, len);
}

ExitCode cmd_disasm(Arena *arena, Diag *diag, const Options *options) {
    const HwSpec *spec = pipeline_spec(arena, diag, options);
    if (!spec)
        return options->target ? EXIT_BAD_INPUT : EXIT_BAD_USAGE;
    Bytes bytes;
    if (!file_read(arena, diag, options->file, &bytes))
        return EXIT_BAD_INPUT;
    const Listing *listing =
        listing_decode(arena, diag, spec, options->file, bytes.at, bytes.len);
    if (!listing)
        return EXIT_BAD_INPUT;
    const char *text = listing_print(arena, listing);
    if (!options->out && !options->json) {
        say_lines(stdout, text);
        return EXIT_FINE;
    }
    const char *out =
        options->out
            ? options->out
            : arena_printf(arena, "%s.cmd", file_stem(arena, options->file));
    if (!file_write(arena, diag, out, text, strlen(text)))
        return EXIT_BAD_INPUT;
    return report(arena, options, listing, out, strlen(text));
}
