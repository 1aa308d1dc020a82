/* cmd_asm.c - listing text to bytes and back, by the hwspec's rows. */
#include "base/guard.h"
#include "driver/commands.h"

#include "filegen/filegen.h"
#include "hwspec/program.h"

#include <string.h>

/* `n` of what: instructions, or nodes of a container. */
static ExitCode report(Arena *arena, const Options *options, const char *what,
                       uint32_t n, const char *out, size_t bytes) {
    if (options->json) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddBoolToObject(json, "ok", true);
        cJSON_AddNumberToObject(json, what, n);
        cJSON_AddNumberToObject(json, "bytes", (double)bytes);
        cJSON_AddStringToObject(json, "file", out);
        print_json(arena, options, json);
    } else if (strcmp(out, "-")) {
        say("wrote   %s: %u %s, %zu bytes\n", out, n, what, bytes);
    }
    return EXIT_FINE;
}

/* ---- containers ---- */

static const char *output(Arena *arena, const Options *options,
                          const char *suffix) {
    return options->out ? options->out
                        : arena_printf(arena, "%s.%s",
                                       file_stem(arena, options->file), suffix);
}

/* With other addresses; what the text leaves out is known when it was a file.
 */
static const Program *placed(Arena *arena, Diag *diag, const Options *options,
                             const Program *program) {
    const uint8_t *data;
    size_t len;
    PlacedMemory *used =
        ARENA_ARRAY(arena, PlacedMemory, program->spec->n_memories);
    if (!program_encode(arena, diag, program, &data, &len))
        return NULL;
    program =
        program_decode(arena, diag, program->spec, options->file, data, len);
    Program *own = program ? ARENA_COPY(arena, Program, program, 1) : NULL;
    return own && program_place(arena, diag, own, used, NULL) ? own : NULL;
}

static ExitCode asm_program(Arena *arena, Diag *diag, const Options *options,
                            const HwSpec *spec, const Bytes *text) {
    const AsmArgs *own = options->own;
    const uint8_t *data;
    size_t len;
    const Program *program = program_parse(arena, diag, spec, options->file,
                                           (const char *)text->at, text->len);
    if (program && own->place)
        program = placed(arena, diag, options, program);
    if (!program || !program_encode(arena, diag, program, &data, &len))
        return EXIT_BAD_INPUT;
    const char *out = output(arena, options, program->container);
    if (!file_write(arena, diag, out, data, len))
        return EXIT_BAD_INPUT;
    return report(arena, options, "nodes", program->n_nodes, out, len);
}

static void write_program(Text *out, const void *context) {
    program_print(out, context);
}

static void to_out(void *context, const char *bytes, size_t len) {
    fwrite(bytes, 1, len, context);
}

static ExitCode disasm_program(Arena *arena, Diag *diag, const Options *options,
                               const HwSpec *spec, const Bytes *bytes) {
    const Program *program =
        program_decode(arena, diag, spec, options->file, bytes->at, bytes->len);
    if (!program)
        return EXIT_BAD_INPUT;
    if (!options->out && !options->json) {
        Text text = text_into(arena, to_out, guard_out());
        program_print(&text, program);
        text_end(&text);
        return EXIT_FINE;
    }
    FilePart part = {.path = output(arena, options, "txt"),
                     .write = write_program,
                     .context = program};
    if (!file_write_all(arena, diag, 1, &part))
        return EXIT_BAD_INPUT;
    return report(arena, options, "nodes", program->n_nodes, part.path,
                  bytes->len);
}

/* ---- commands ---- */

ExitCode cmd_asm(Arena *arena, Diag *diag, const Options *options) {
    const HwSpec *spec = pipeline_spec(arena, diag, options);
    if (!spec)
        return options->target ? EXIT_BAD_INPUT : EXIT_BAD_USAGE;
    if (program_has(spec)) {
        Bytes file;
        if (!file_read(arena, diag, options->file, &file))
            return EXIT_BAD_INPUT;
        if (!spec->insns->n ||
            program_is_text(spec, (const char *)file.at, file.len))
            return asm_program(arena, diag, options, spec, &file);
    }
    const Listing *listing = listing_read(arena, diag, spec, options->file);
    const uint8_t *data;
    size_t len;
    uint32_t n = listing ? listing->n : 0;
    const AsmArgs *own = options->own;
    if (!listing ||
        !(own->raw ? listing_words(arena, diag, listing, &data, &len, &n)
                   : listing_encode(arena, diag, listing, &data, &len)))
        return EXIT_BAD_INPUT;
    const char *out = output(arena, options, own->raw ? "words" : "bin");
    if (!file_write(arena, diag, out, data, len))
        return EXIT_BAD_INPUT;
    return report(arena, options, "instructions", n, out, len);
}

ExitCode cmd_disasm(Arena *arena, Diag *diag, const Options *options) {
    const HwSpec *spec = pipeline_spec(arena, diag, options);
    if (!spec)
        return options->target ? EXIT_BAD_INPUT : EXIT_BAD_USAGE;
    Bytes bytes;
    if (!file_read(arena, diag, options->file, &bytes))
        return EXIT_BAD_INPUT;
    if (program_has(spec) &&
        (!spec->insns->n || !listing_is_binary(bytes.at, bytes.len)))
        return disasm_program(arena, diag, options, spec, &bytes);
    const Listing *listing =
        listing_decode(arena, diag, spec, options->file, bytes.at, bytes.len);
    if (!listing)
        return EXIT_BAD_INPUT;
    const char *text = listing_print(arena, listing);
    if (!options->out && !options->json) {
        say_lines(guard_out(), text);
        return EXIT_FINE;
    }
    const char *out =
        options->out
            ? options->out
            : arena_printf(arena, "%s.cmd", file_stem(arena, options->file));
    if (!file_write(arena, diag, out, text, strlen(text)))
        return EXIT_BAD_INPUT;
    return report(arena, options, "instructions", listing->n, out,
                  strlen(text));
}
