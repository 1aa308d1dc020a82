/* simulate_program.c - runs a machine's file: what each node wrote, the
 * outputs, and what is wrong.
 *
 * Input: a file, or the text of one (disasm); --input: bytes of the inputs as
 * they are, codes or little-endian floats in the order n, c, h, w; else codes
 * and reals by the seed. Output: a line a node; with -o DIR outK.bin.
 */
#include "driver/commands.h"

#include "base/rng.h"
#include "hwspec/template.h"
#include "sim/does.h"
#include "sim/program.h"

#include <string.h>

/* A text says no more than it must: the rest is known when it was a file. */
static const Program *read_text(Arena *arena, Diag *diag, const HwSpec *spec,
                                const char *path, const Bytes *text) {
    const uint8_t *data;
    size_t len;
    const Program *program = program_parse(arena, diag, spec, path,
                                           (const char *)text->at, text->len);
    if (!program || !program_encode(arena, diag, program, &data, &len))
        return NULL;
    return program_decode(arena, diag, spec, path, data, len);
}

static const Program *read_program(Arena *arena, Diag *diag, const HwSpec *spec,
                                   const char *path) {
    Bytes bytes;
    if (!file_read(arena, diag, path, &bytes))
        return NULL;
    return program_is_text(spec, (const char *)bytes.at, bytes.len)
               ? read_text(arena, diag, spec, path, &bytes)
               : program_decode(arena, diag, spec, path, bytes.at, bytes.len);
}

/* Codes: any byte; reals: in [-1, 1). */
static ProgramBytes seeded(Arena *arena, const ProgramInput *in,
                           uint64_t seed) {
    uint64_t n = (uint64_t)in->n * in->c * in->h * in->w;
    uint32_t unit = in->reals ? sizeof(float) : 1;
    uint8_t *at = ARENA_ARRAY(arena, uint8_t, n * unit);
    for (uint64_t i = 0; i < n; i++) {
        float real = (float)(2 * rng_unit(seed, i) - 1);
        at[in->reals ? 0 : i] = (uint8_t)rng_bits(seed, i);
        if (in->reals)
            memcpy(at + i * unit, &real, sizeof real);
    }
    return (ProgramBytes){at, n * unit};
}

static const ProgramBytes *inputs_of(Arena *arena, Diag *diag,
                                     const Options *options,
                                     const Program *program) {
    uint32_t n = program_inputs(program);
    ProgramBytes *out = ARENA_ARRAY(arena, ProgramBytes, n);
    if (options->inputs.n > n) {
        diag_error(diag, (Loc){0}, "%u inputs are given, the file has %u",
                   options->inputs.n, n);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        Bytes bytes;
        ProgramInput in = program_input(program, i);
        if (i >= options->inputs.n) {
            out[i] = seeded(arena, &in, options->seed + i);
            continue;
        }
        if (!file_read(arena, diag, options->inputs.at[i], &bytes))
            return NULL;
        out[i] = (ProgramBytes){(const uint8_t *)bytes.at, bytes.len};
    }
    return out;
}

static bool write_outputs(Arena *arena, Diag *diag, const char *dir,
                          const ProgramResult *result) {
    bool ok = file_make_dir(arena, diag, dir);
    for (uint32_t i = 0; ok && i < result->n_outputs; i++)
        ok =
            file_write(arena, diag, arena_printf(arena, "%s/out%u.bin", dir, i),
                       result->output[i].bytes.at, result->output[i].bytes.n);
    return ok;
}

static void print_lines(const ProgramResult *result, const HwSpec *spec) {
    for (uint32_t i = 0; i < result->n_steps; i++) {
        const ProgramStep *step = &result->step[i];
        say("%u %s ", i, step->row);
        if (step->ran)
            say("%s crc32 %08x", step->result, step->crc);
        else
            say("did not run");
        if (step->priced)
            say(" %.3f ms", step->seconds * 1e3);
        say("\n");
    }
    for (uint32_t i = 0; i < result->n_memories; i++)
        if (result->touched[i])
            say("memory  %s: %llu of %llu bytes\n", spec->memory[i].name,
                (unsigned long long)result->touched[i],
                (unsigned long long)spec->memory[i].size);
    for (uint32_t i = 0; i < result->n_faults && i < PROGRAM_FAULTS; i++)
        say("fault   %s\n", result->fault[i]);
    if (result->n_priced)
        say("time    %.3f ms, of %u nodes that have a price\n",
            result->seconds * 1e3, result->n_priced);
    say("%u nodes, %u faults\n", result->n_steps, result->n_faults);
}

static void print_object(Arena *arena, const Options *options,
                         const ProgramResult *result, const HwSpec *spec) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", result->n_faults == 0);
    cJSON *nodes = cJSON_AddArrayToObject(json, "nodes");
    for (uint32_t i = 0; i < result->n_steps; i++) {
        const ProgramStep *step = &result->step[i];
        cJSON *node = cJSON_CreateObject();
        cJSON_AddStringToObject(node, "row", step->row);
        cJSON_AddBoolToObject(node, "ran", step->ran);
        cJSON_AddStringToObject(node, "result", step->result);
        cJSON_AddNumberToObject(node, "crc32", step->crc);
        if (step->priced)
            cJSON_AddNumberToObject(node, "seconds", step->seconds);
        cJSON_AddItemToArray(nodes, node);
    }
    cJSON *touched = cJSON_AddObjectToObject(json, "touched");
    for (uint32_t i = 0; i < result->n_memories; i++)
        cJSON_AddNumberToObject(touched, spec->memory[i].name,
                                (double)result->touched[i]);
    cJSON_AddNumberToObject(json, "seconds", result->seconds);
    cJSON_AddNumberToObject(json, "n_priced", result->n_priced);
    cJSON_AddNumberToObject(json, "n_faults", result->n_faults);
    cJSON *faults = cJSON_AddArrayToObject(json, "faults");
    for (uint32_t i = 0; i < result->n_faults && i < PROGRAM_FAULTS; i++)
        cJSON_AddItemToArray(faults, cJSON_CreateString(result->fault[i]));
    print_json(arena, options, json);
}

static void print_replay(const ProgramReplay *replay, const HwSpec *spec) {
    uint32_t n, all = 0;
    const char *const *name = program_queues(spec, &n);
    for (uint32_t q = 0; q < n; q++) {
        all += replay->nodes[q];
        if (replay->nodes[q])
            say("queue   %s: %u instructions\n", name[q], replay->nodes[q]);
    }
    for (uint32_t q = 0; q < n; q++)
        for (uint32_t to = 0; to < n; to++)
            if (replay->tokens[q][to])
                say("tokens  %s to %s: %u\n", name[q], name[to],
                    replay->tokens[q][to]);
    for (uint32_t i = 0; i < replay->n_faults && i < PROGRAM_FAULTS; i++)
        say("fault   %s\n", replay->fault[i]);
    say("%u nodes, %u faults\n", all, replay->n_faults);
}

static void replay_object(Arena *arena, const Options *options,
                          const ProgramReplay *replay, const HwSpec *spec) {
    uint32_t n;
    const char *const *name = program_queues(spec, &n);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", replay->n_faults == 0);
    cJSON *queues = cJSON_AddObjectToObject(json, "queues");
    cJSON *tokens = cJSON_AddArrayToObject(json, "tokens");
    for (uint32_t q = 0; q < n; q++) {
        cJSON_AddNumberToObject(queues, name[q], replay->nodes[q]);
        for (uint32_t to = 0; to < n; to++) {
            if (!replay->tokens[q][to])
                continue;
            cJSON *one = cJSON_CreateObject();
            cJSON_AddStringToObject(one, "from", name[q]);
            cJSON_AddStringToObject(one, "to", name[to]);
            cJSON_AddNumberToObject(one, "n", replay->tokens[q][to]);
            cJSON_AddItemToArray(tokens, one);
        }
    }
    cJSON_AddNumberToObject(json, "n_faults", replay->n_faults);
    cJSON *faults = cJSON_AddArrayToObject(json, "faults");
    for (uint32_t i = 0; i < replay->n_faults && i < PROGRAM_FAULTS; i++)
        cJSON_AddItemToArray(faults, cJSON_CreateString(replay->fault[i]));
    print_json(arena, options, json);
}

/* Of a machine whose instructions wait for tokens: these, and no values. */
static ExitCode replay_tokens(Arena *arena, Diag *diag, const Options *options,
                              const Program *program) {
    const ProgramReplay *replay = program_replay(arena, diag, program);
    if (!replay)
        return EXIT_BAD_INPUT;
    if (options->json)
        replay_object(arena, options, replay, program->spec);
    else
        print_replay(replay, program->spec);
    return replay->n_faults ? EXIT_BAD_INPUT : EXIT_FINE;
}

/* ---- instructions that say what they do ---- */

static void print_does(const DoesResult *result) {
    for (uint32_t i = 0; i < result->n_memories; i++)
        if (result->memory[i].read || result->memory[i].written)
            say("memory  %s: %llu bytes read, %llu written\n",
                result->memory[i].name,
                (unsigned long long)result->memory[i].read,
                (unsigned long long)result->memory[i].written);
    if (result->cycles >= 0)
        say("time    %lld cycles\n", (long long)result->cycles);
    say("%u of %u instructions\n", result->done, result->n);
}

static void does_object(Arena *arena, const Options *options,
                        const DoesResult *result) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", !result->failed);
    cJSON_AddNumberToObject(json, "instructions", result->n);
    cJSON_AddNumberToObject(json, "done", result->done);
    if (result->cycles >= 0)
        cJSON_AddNumberToObject(json, "cycles", (double)result->cycles);
    cJSON *memories = cJSON_AddObjectToObject(json, "memories");
    for (uint32_t i = 0; i < result->n_memories; i++) {
        cJSON *one = cJSON_AddObjectToObject(memories, result->memory[i].name);
        cJSON_AddNumberToObject(one, "read", (double)result->memory[i].read);
        cJSON_AddNumberToObject(one, "written",
                                (double)result->memory[i].written);
    }
    print_json(arena, options, json);
}

/* --input: the image of main memory; -o DIR: DIR/main.bin is that afterwards.
 */
static ExitCode simulate_does(Arena *arena, Diag *diag, const Options *options,
                              const Program *program) {
    const HwSpec *spec = program->spec;
    Bytes image = {0};
    if (options->inputs.n != 1 || spec->backing < 0) {
        diag_error(diag, (Loc){.file = options->file},
                   "`--input FILE` gives the bytes of main memory");
        return EXIT_BAD_INPUT;
    }
    if (!file_read(arena, diag, options->inputs.at[0], &image))
        return EXIT_BAD_INPUT;
    const DoesResult *result =
        program_does(arena, program, image.at, image.len, NULL);
    if (result->failed) {
        const char *row = prog_row_name(program->node[result->done].row);
        diag_error(diag, program->node[result->done].loc,
                   "instruction %u, %s: %s", result->done, row, result->failed);
        diag_note(diag, result->at, "in this step");
    }
    if (options->out &&
        (!file_make_dir(arena, diag, options->out) ||
         !file_write(arena, diag,
                     arena_printf(arena, "%s/%s.bin", options->out,
                                  spec->memory[spec->backing].name),
                     result->main, result->bytes)))
        return EXIT_BAD_INPUT;
    if (options->json)
        does_object(arena, options, result);
    else
        print_does(result);
    return result->failed ? EXIT_BAD_INPUT : EXIT_FINE;
}

ExitCode simulate_program(Arena *arena, Diag *diag, const Options *options,
                          const HwSpec *spec) {
    const Program *program = read_program(arena, diag, spec, options->file);
    uint32_t n_queues;
    bool queues = program && program_queues(spec, &n_queues);
    if (program && program_templates(spec) && (options->inputs.n || !queues))
        return simulate_does(arena, diag, options, program);
    if (queues)
        return replay_tokens(arena, diag, options, program);
    const ProgramBytes *inputs =
        program ? inputs_of(arena, diag, options, program) : NULL;
    const ProgramResult *result =
        inputs
            ? program_run(arena, diag, program, program_inputs(program), inputs)
            : NULL;
    if (!result ||
        (options->out && !write_outputs(arena, diag, options->out, result)))
        return EXIT_BAD_INPUT;
    if (options->json)
        print_object(arena, options, result, spec);
    else
        print_lines(result, spec);
    return result->n_faults ? EXIT_BAD_INPUT : EXIT_FINE;
}
