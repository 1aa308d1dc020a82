/* lanes_program.c - compile and simulate for machines with memories by
 * channel; see lanes/lanes.h. */
#include "driver/lanes_program.h"

#include "base/rng.h"
#include "driver/commands.h"
#include "frontends/frontend.h"

#include <string.h>

/* The input's codes; its shape is the network's. */
static const int8_t *read_input(Arena *arena, Diag *diag, const char *path,
                                LaneNet *net) {
    Npy npy;
    const int8_t *codes = lanes_codes(arena, diag, path, &npy);
    if (!codes)
        return NULL;
    bool fine = npy.rank >= 2 && npy.rank <= 3 && npy_is_whole(&npy);
    for (uint32_t i = 0; fine && i < npy.rank; i++)
        fine = npy.dim[i] >= 1 && npy.dim[i] <= 4096;
    if (!fine) {
        diag_error(diag, (Loc){path, 0, 0},
                   "an input has codes of 8 bits in the order channels, rows, "
                   "columns");
        return NULL;
    }
    net->in_c = (uint32_t)npy.dim[0];
    net->in[0] = (uint32_t)npy.dim[1];
    net->in[1] = npy.rank == 3 ? (uint32_t)npy.dim[2] : 1;
    return codes;
}

typedef struct Loaded {
    const LaneMachine *machine;
    LaneNet *net;
    const int8_t *input;
} Loaded;

bool lanes_foreign(Arena *arena, const char *path) {
    Bytes bytes;
    const char *suffix = strrchr(path, '.');
    if (suffix && (!strcmp(suffix, ".yaml") || !strcmp(suffix, ".yml")))
        return false;
    if (!file_read(arena, diag_new(arena), path, &bytes))
        return false; /* read again, that is an error */
    for (uint32_t i = 0; i < n_formats; i++)
        if (formats[i].looks(path, bytes))
            return true;
    return false;
}

static bool load(Arena *arena, Diag *diag, const Options *options,
                 const HwSpec *spec, Loaded *out) {
    Bytes bytes;
    if (!file_read(arena, diag, options->file, &bytes))
        return false;
    if (lanes_foreign(arena, options->file)) {
        diag_error(diag, (Loc){options->file, 0, 0},
                   "what runs is the vendor's YAML description of a network "
                   "(with --weights LAYERS.json and --input INPUT.npy); "
                   "`compile --emit yaml` writes it from a network on codes");
        return false;
    }
    if (!options->weights || !options->inputs.n) {
        diag_error(diag, (Loc){0},
                   "a description has no weights and no size: --weights "
                   "LAYERS.json (beside it the .npy) and --input INPUT.npy");
        return false;
    }
    out->machine = lanes_machine(arena, diag, spec);
    out->net = out->machine ? lanes_read(arena, diag, options->file) : NULL;
    if (!out->net || !lanes_weights(arena, diag, options->weights, out->net))
        return false;
    out->input = read_input(arena, diag, options->inputs.at[0], out->net);
    return out->input && lanes_shapes(arena, diag, out->machine, out->net);
}

/* ---- simulate ---- */

/* Bytes of the fullest instance. */
static uint32_t high_water(const LaneMachine *m, const LaneRun *run) {
    uint32_t high = 0;
    for (uint32_t b = 0; b < m->lanes / m->bank; b++)
        high = run->high[b] > high ? run->high[b] : high;
    return high;
}

void lanes_say_cycles(Arena *arena, const LaneMachine *m, const LaneNet *net) {
    if (m->cycles)
        say("cycles  %llu\n", (unsigned long long)lanes_cycles(arena, m, net));
}

static void print_layers(Arena *arena, const Loaded *of, const LaneRun *run) {
    for (uint32_t i = 0; i < of->net->n; i++) {
        const LaneLayer *l = &of->net->layer[i];
        const char *cycles = "";
        if (of->machine->cycles)
            cycles = arena_printf(
                arena, " cycles %lld",
                (long long)lanes_layer_cycles(arena, of->machine, of->net, i));
        say("layer %2u %ux%ux%u crc32 %08x%s columns %u..%u\n", i, l->out_c,
            l->out[0], l->out[1], run->crc[i], cycles, l->column,
            l->column + l->columns);
    }
    say("memory  %u of %u bytes of an instance\n", high_water(of->machine, run),
        of->machine->bank_bytes);
    for (uint32_t i = 0; i < run->fault.n; i++)
        say("fault   %s\n", run->fault.at[i]);
    lanes_say_cycles(arena, of->machine, of->net);
    say("%u layers, %u faults\n", of->net->n, run->n_faults);
}

static void print_object(Arena *arena, const Options *options, const Loaded *of,
                         const LaneRun *run) {
    cJSON *json = cJSON_CreateObject();
    cJSON *layers = cJSON_AddArrayToObject(json, "layers");
    uint32_t n;
    const LaneWord *word = lanes_registers(arena, of->machine, of->net, &n);
    cJSON_AddBoolToObject(json, "ok", run->n_faults == 0);
    for (uint32_t i = 0; i < of->net->n; i++) {
        const LaneLayer *l = &of->net->layer[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "crc32",
                                arena_printf(arena, "%08x", run->crc[i]));
        if (of->machine->cycles)
            cJSON_AddNumberToObject(
                one, "cycles",
                (double)lanes_layer_cycles(arena, of->machine, of->net, i));
        cJSON_AddNumberToObject(one, "column", l->column);
        cJSON_AddNumberToObject(one, "columns", l->columns);
        cJSON_AddItemToArray(layers, one);
    }
    cJSON *registers = cJSON_AddArrayToObject(json, "registers");
    for (uint32_t i = 0; i < n; i++)
        cJSON_AddItemToArray(
            registers,
            cJSON_CreateString(arena_printf(
                arena, "%u %u %02u %08x %08x", word[i].layer, word[i].quadrant,
                word[i].number, word[i].address, word[i].value)));
    cJSON *faults = cJSON_AddArrayToObject(json, "faults");
    for (uint32_t i = 0; i < run->fault.n; i++)
        cJSON_AddItemToArray(faults, cJSON_CreateString(run->fault.at[i]));
    cJSON_AddNumberToObject(json, "high", high_water(of->machine, run));
    if (of->machine->cycles)
        cJSON_AddNumberToObject(
            json, "cycles", (double)lanes_cycles(arena, of->machine, of->net));
    print_json(arena, options, json);
}

static bool write_out(Arena *arena, Diag *diag, const Options *options,
                      const Loaded *of, const LaneRun *run) {
    const LaneLayer *l = &of->net->layer[of->net->n - 1];
    float *data = ARENA_ARRAY(arena, float, run->n_out + 1);
    for (uint32_t i = 0; i < run->n_out; i++)
        data[i] = (float)run->out[i];
    Npy npy = {.rank = 3,
               .dim = {l->out_c, l->out[0], l->out[1]},
               .data = data,
               .count = run->n_out,
               .kind = l->width == 4 ? "<i4" : "|i1"};
    return file_make_dir(arena, diag, options->out) &&
           npy_write(arena, diag,
                     arena_printf(arena, "%s/out0.npy", options->out), &npy);
}

ExitCode simulate_lanes(Arena *arena, Diag *diag, const Options *options,
                        const HwSpec *spec) {
    Loaded of;
    if (!load(arena, diag, options, spec, &of) ||
        !lanes_check(arena, diag, of.machine, of.net) ||
        !lanes_columns(arena, diag, of.machine, of.net))
        return EXIT_BAD_INPUT;
    const LaneRun *run = lanes_run(arena, of.machine, of.net, of.input);
    if (options->out && !write_out(arena, diag, options, &of, run))
        return EXIT_BAD_INPUT;
    if (options->json)
        print_object(arena, options, &of, run);
    else
        print_layers(arena, &of, run);
    return run->n_faults ? EXIT_BAD_INPUT : EXIT_FINE;
}

/* ---- compile ---- */

static bool emits_c(const Options *options) {
    return options->emit && !strcmp(options->emit, "c");
}

bool lane_emits(Diag *diag, const Options *options, const LaneMachine *m) {
    bool fine = !emits_c(options) || m->n_registers;
    if (!fine)
        diag_error(diag, m->loc,
                   "--emit c: the registers of %s are not stated here, only "
                   "its descriptions: --emit yaml",
                   m->name);
    return fine;
}

LaneFile lane_file(Arena *arena, const Options *options, const LaneMachine *m,
                   const LaneNet *net, const int8_t *input, const LaneRun *run,
                   const char *name) {
    bool as_c = emits_c(options);
    const char *dir = options->out ? options->out : ".";
    return (LaneFile){
        .dir = dir,
        .path = arena_printf(arena, "%s/%s.%s", dir, name, as_c ? "c" : "yaml"),
        .text =
            as_c ? lanes_c(arena, m, net, input, run) : lanes_yaml(arena, net)};
}

/* Writes the description with our offsets, proved by a run. */
ExitCode compile_lanes(Arena *arena, Diag *diag, const Options *options) {
    Loaded of;
    const HwSpec *spec = hwspec_load(arena, diag, options->target,
                                     options->settings.n, options->settings.at);
    if (options->emit && !emits_c(options) && strcmp(options->emit, "yaml")) {
        diag_error(diag, (Loc){0},
                   "--emit %s is not known here, only yaml and c",
                   options->emit);
        return EXIT_BAD_USAGE;
    }
    if (spec && lanes_foreign(arena, options->file))
        return compile_lanes_network(arena, diag, options, spec);
    if (!spec || !load(arena, diag, options, spec, &of) ||
        !lane_emits(diag, options, of.machine))
        return EXIT_BAD_INPUT;
    uint64_t given = lanes_height(of.machine, of.net);
    lanes_place(arena, of.machine, of.net);
    if (!lanes_check(arena, diag, of.machine, of.net) ||
        !lanes_columns(arena, diag, of.machine, of.net))
        return EXIT_NO_FIT;
    const LaneRun *run = lanes_run(arena, of.machine, of.net, of.input);
    LaneFile file = lane_file(
        arena, options, of.machine, of.net, of.input, run,
        arena_printf(arena, "%s-placed", file_stem(arena, options->file)));
    for (uint32_t i = 0; i < run->fault.n; i++)
        diag_error(diag, (Loc){0}, "%s", run->fault.at[i]);
    if (run->n_faults || !file_make_dir(arena, diag, file.dir) ||
        !file_write(arena, diag, file.path, file.text, strlen(file.text)))
        return EXIT_BAD_INPUT;
    say("memory  %llu of %u bytes of an instance, %llu as given\n",
        (unsigned long long)lanes_height(of.machine, of.net),
        of.machine->bank_bytes, (unsigned long long)given);
    lanes_say_cycles(arena, of.machine, of.net);
    say("wrote   %s: %u layers\n", file.path, of.net->n);
    return EXIT_FINE;
}
