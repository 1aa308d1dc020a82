/* file_program.c - compile and verify for machines that run files of their own:
 * graph -> passes -> Program -> bytes; see filegen/filegen.h. */
#include "driver/file_program.h"

#include "base/crc.h"
#include "driver/commands.h"
#include "driver/rounding.h"
#include "filegen/filegen.h"
#include "sim/program.h"

#include <string.h>

/* A network as a file. */
typedef struct Made {
    Pipeline p;
    const FileGen *file;
    const uint8_t *data;
    size_t len;
    const Program *read; /* from these bytes */
} Made;

/* Which layers run in bands, and how many eighths of active memory one may
 * need by itself. */
static const struct BandTry {
    BandsOf of;
    uint32_t eighths;
} band_tries[] = {{BANDS_OF_NONE, 0},
                  {BANDS_OF_EXTENTS, 8},
                  {BANDS_OF_ALL, 8},
                  {BANDS_OF_ALL, 6},
                  {BANDS_OF_ALL, 4}};

static ExitCode make_one(Arena *arena, Diag *diag, const Options *options,
                         const struct BandTry *bands, Made *out) {
    bool no_fit = false;
    Pipeline *p = &out->p;
    p->bands = bands->of;
    if (p->spec->n_active)
        p->band_bytes = p->spec->memory[0].size / 8 * bands->eighths;
    ExitCode code =
        pipeline_resume(arena, diag, options, STAGE_PASSES, STAGE_PASSES, p);
    if (code != EXIT_FINE)
        return code;
    double start = now_ms();
    out->file = filegen_run(arena, diag, p->spec, p->graph, &no_fit);
    p->ms[STAGE_CODEGEN] = now_ms() - start;
    return out->file ? EXIT_FINE : no_fit ? EXIT_NO_FIT : EXIT_BAD_INPUT;
}

/* Bands where it does not fit without, or where convolutions are the
 * processor's: as few of these as may be. What is said is of the file, or why
 * there is none without bands. */
static ExitCode make_file(Arena *arena, Diag *diag, const Options *options,
                          Made *out) {
    uint32_t n = sizeof band_tries / sizeof *band_tries;
    Diag *said = diag_new(arena);
    ExitCode code = make_one(arena, said, options, &band_tries[0], out);
    for (uint32_t i = 1; i < n; i++) {
        if (out->file && !out->file->host_convs)
            break;
        Made banded = *out;
        banded.file = NULL;
        Diag *tried = diag_new(arena);
        ExitCode one = make_one(arena, tried, options, &band_tries[i], &banded);
        if (one != EXIT_FINE || !banded.p.banded ||
            (out->file && banded.file->host_convs >= out->file->host_convs))
            continue;
        *out = banded;
        said = tried;
        code = one;
    }
    diag_pass_on(diag, said);
    return code;
}

static ExitCode make(Arena *arena, Diag *diag, const Options *options,
                     Made *out) {
    *out = (Made){0};
    ExitCode code = pipeline_run(arena, diag, options, STAGE_READ, &out->p);
    if (code != EXIT_FINE)
        return code;
    code = make_file(arena, diag, options, out);
    const HwSpec *spec = out->p.spec;
    bool could = spec->format && spec->constants >= 0;
    if (!out->file && could && is_real(out->p.original))
        diag_note(diag, (Loc){0},
                  "amphora quantise %s --calibrate DIR -t %s makes a network "
                  "of codes",
                  options->file, options->target);
    if (!out->file)
        return code;
    if (program_encode(arena, diag, out->file->program, &out->data, &out->len))
        out->read = program_decode(arena, diag, out->p.spec, "(file)",
                                   out->data, out->len);
    return out->read ? EXIT_FINE : EXIT_BAD_INPUT;
}

/* ---- compile ---- */

static uint32_t layers_of(const Graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        n += g->node.at[i].op != OP_INPUT;
    return n;
}

static double seconds_of(Arena *arena, Diag *diag, const Program *program,
                         uint32_t *priced) {
    double sum = 0, one;
    *priced = 0;
    for (uint32_t i = 0; i < program->n_nodes; i++)
        if (program_seconds(arena, diag, program, &program->node[i], &one)) {
            sum += one;
            ++*priced;
        }
    return sum;
}

static void report_json(Arena *arena, Diag *diag, const Options *options,
                        const Made *made, const char *path) {
    const FileGen *file = made->file;
    const HwSpec *spec = made->p.spec;
    uint32_t priced;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", true);
    cJSON_AddStringToObject(json, "network", made->p.graph->name);
    cJSON_AddStringToObject(json, "machine", spec->machine);
    cJSON_AddStringToObject(json, "file", path);
    cJSON_AddNumberToObject(json, "bytes", (double)made->len);
    cJSON_AddNumberToObject(json, "nodes", file->program->n_nodes);
    cJSON_AddNumberToObject(json, "layers", layers_of(made->p.graph));
    cJSON_AddNumberToObject(json, "engine_layers", file->on_engine);
    cJSON_AddNumberToObject(json, "spilled", file->spilled);
    cJSON *memory = cJSON_AddObjectToObject(json, "memory");
    for (uint32_t i = 0; i < spec->n_memories; i++) {
        if (!file->used[i].height)
            continue;
        cJSON *one = cJSON_AddObjectToObject(memory, spec->memory[i].name);
        cJSON_AddNumberToObject(one, "bytes", (double)file->used[i].height);
        cJSON_AddNumberToObject(one, "live_peak",
                                (double)file->used[i].live_peak);
    }
    cJSON_AddNumberToObject(json, "seconds",
                            seconds_of(arena, diag, made->read, &priced));
    cJSON_AddNumberToObject(json, "n_priced", priced);
    print_json(arena, options, json);
}

static void report(Arena *arena, Diag *diag, const Made *made,
                   const char *path) {
    const FileGen *file = made->file;
    const HwSpec *spec = made->p.spec;
    uint32_t priced;
    say("%s on %s: %u layers, %u of them on engines\n", made->p.graph->name,
        spec->machine, layers_of(made->p.graph), file->on_engine);
    for (uint32_t i = 0; i < spec->n_memories; i++)
        if (file->used[i].height)
            say("%-7s %s of %s bytes, live peak %s\n", spec->memory[i].name,
                with_commas(arena, file->used[i].height),
                with_commas(arena, spec->memory[i].size),
                with_commas(arena, file->used[i].live_peak));
    if (file->spilled)
        say("spilled %s\n", with_noun(arena, file->spilled, "volume"));
    double seconds = seconds_of(arena, diag, made->read, &priced);
    if (priced)
        say("time    %.3f ms, of %u nodes that have a price\n", seconds * 1e3,
            priced);
    say("wrote   %s: %u nodes, %zu bytes\n", path, file->program->n_nodes,
        made->len);
}

static const char *path_of(Arena *arena, const Options *options,
                           const Program *program) {
    const char *name = arena_printf(
        arena, "%s.%s", file_stem(arena, options->file), program->container);
    return options->out ? arena_printf(arena, "%s/%s", options->out, name)
                        : name;
}

ExitCode compile_file(Arena *arena, Diag *diag, const Options *options) {
    Made made;
    ExitCode code = make(arena, diag, options, &made);
    if (code != EXIT_FINE)
        return code;
    const Program *program = made.file->program;
    if (options->emit && strcmp(options->emit, program->container) != 0) {
        diag_error(diag, (Loc){0}, "--emit %s: for %s there is only %s",
                   options->emit, made.p.spec->machine, program->container);
        return EXIT_BAD_USAGE;
    }
    const char *path = path_of(arena, options, program);
    if ((options->out && !file_make_dir(arena, diag, options->out)) ||
        !file_write(arena, diag, path, made.data, made.len))
        return EXIT_BAD_INPUT;
    if (options->json)
        report_json(arena, diag, options, &made, path);
    else
        report(arena, diag, &made, path);
    return EXIT_FINE;
}

/* ---- verify ---- */

/* What the file computed against what it should. */
typedef struct Verdict {
    const ProgramResult *sim;
    uint64_t codes, wrong;   /* of nodes that make codes of a tensor */
    uint32_t nodes;          /* that were compared */
    uint32_t first;          /* that is wrong; or its number of nodes */
    uint64_t outputs, other; /* elements; not as the network's own rule has */
    double most;             /* codes */
} Verdict;

/* Bytes as the file has them: codes without sign, or floats. */
static const uint8_t *as_bytes(Arena *arena, const Tensor *t, const float *from,
                               uint64_t *bytes) {
    uint64_t n = shape_count(&t->shape);
    if (t->quant.type == QUANT_NONE) {
        *bytes = n * sizeof *from;
        return (const uint8_t *)from;
    }
    uint8_t *out = ARENA_ARRAY(arena, uint8_t, n);
    for (uint64_t i = 0; i < n; i++)
        out[i] =
            (uint8_t)((int32_t)from[i] + (t->quant.type == QUANT_I8 ? 128 : 0));
    *bytes = n;
    return out;
}

static const ProgramBytes *file_inputs(Arena *arena, const Graph *g,
                                       const float *const *values,
                                       uint32_t *n) {
    ProgramBytes *out = ARENA_ARRAY(arena, ProgramBytes, g->node.n + 1);
    *n = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        if (g->node.at[i].op != OP_INPUT)
            continue;
        const Tensor *t = graph_tensor(g, g->node.at[i].out[0]);
        out[*n].at = as_bytes(arena, t, values[*n], &out[*n].n);
        ++*n;
    }
    return out;
}

/* Nodes whose result is a tensor, or some channels of it, by their checksums;
 * of one that is wrong all codes count. */
static void compare_nodes(const FileGen *file, const FileValues *want,
                          Verdict *v) {
    v->first = file->program->n_nodes;
    for (uint32_t i = 0; i < file->program->n_nodes; i++) {
        const FilePiece *piece = &file->piece[i];
        if (piece->tensor.i == NONE)
            continue;
        const Tensor *t = graph_tensor(file->graph, piece->tensor);
        uint64_t n = shape_count(&t->shape), first = 0, unit = 1;
        const uint8_t *at = want->code[piece->tensor.i];
        if (t->quant.type == QUANT_NONE) {
            at = (const uint8_t *)want->real[piece->tensor.i];
            unit = sizeof(float);
        }
        if (piece->n) {
            uint64_t plane = n / shape_dim(&t->shape, 1);
            first = piece->first * plane;
            n = piece->n * plane;
        }
        v->nodes++;
        v->codes += n;
        if (v->sim->step[i].ran &&
            v->sim->step[i].crc == crc32_of(at + first, n * unit))
            continue;
        v->wrong += n;
        v->first = v->first < i ? v->first : i;
    }
}

/* Outputs against the network's own rule of rounding. */
static void compare_outputs(const Graph *original, const Values *reference,
                            Verdict *v) {
    for (uint32_t i = 0; i < original->output.n; i++) {
        const Tensor *t = graph_tensor(original, original->output.at[i]);
        const float *want = reference->at[original->output.at[i].i];
        uint64_t n = shape_count(&t->shape);
        const ProgramOutput *got = &v->sim->output[i];
        if (t->quant.type == QUANT_NONE || got->bytes.n != n)
            continue;
        int32_t offset = t->quant.type == QUANT_I8 ? 128 : 0;
        v->outputs += n;
        for (uint64_t k = 0; k < n; k++) {
            double off = got->bytes.at[k] - offset - (double)want[k];
            off = off < 0 ? -off : off;
            v->other += off > 0;
            v->most = off > v->most ? off : v->most;
        }
    }
}

static bool is_right(const Made *made, const Verdict *v) {
    bool moved = !made->file->program->n_nodes && !v->other;
    return !v->wrong && !v->sim->n_faults && (v->nodes || moved);
}

static void verdict_json(Arena *arena, const Options *options, const Made *made,
                         const Verdict *v) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", is_right(made, v));
    cJSON_AddStringToObject(json, "network", made->p.graph->name);
    cJSON_AddStringToObject(json, "machine", made->p.spec->machine);
    cJSON_AddNumberToObject(json, "nodes", made->file->program->n_nodes);
    cJSON_AddNumberToObject(json, "nodes_compared", v->nodes);
    cJSON_AddNumberToObject(json, "layers", layers_of(made->p.graph));
    cJSON_AddNumberToObject(json, "engine_layers", made->file->on_engine);
    cJSON_AddNumberToObject(json, "spilled", made->file->spilled);
    cJSON_AddNumberToObject(json, "codes", (double)v->codes);
    cJSON_AddNumberToObject(json, "codes_wrong", (double)v->wrong);
    cJSON_AddNumberToObject(json, "outputs", (double)v->outputs);
    cJSON_AddNumberToObject(json, "outputs_other", (double)v->other);
    cJSON_AddNumberToObject(json, "outputs_most", v->most);
    cJSON_AddNumberToObject(json, "faults", v->sim->n_faults);
    cJSON_AddNumberToObject(json, "bytes", (double)made->len);
    cJSON_AddNumberToObject(json, "active", (double)made->file->used[0].height);
    cJSON_AddNumberToObject(json, "seconds", v->sim->seconds);
    print_json(arena, options, json);
}

static void verdict_print(Arena *arena, const Made *made, const Verdict *v) {
    const FileGen *file = made->file;
    const HwSpec *spec = made->p.spec;
    say("%s on %s: %s\n", made->p.graph->name, spec->machine,
        is_right(made, v)
            ? "the file computes what the network computes by the "
              "machine's arithmetic"
            : "WRONG");
    say("codes   %s of %u nodes compared, %s\n", with_commas(arena, v->codes),
        v->nodes,
        v->wrong ? arena_printf(arena, "%s in nodes that differ, the first %u",
                                with_commas(arena, v->wrong), v->first)
                 : "all equal");
    if (v->outputs)
        say("outputs %s of %s codes as by the network's own rule%s\n",
            with_commas(arena, v->outputs - v->other),
            with_commas(arena, v->outputs),
            v->other ? arena_printf(arena, ", others off by up to %g", v->most)
                     : "");
    for (uint32_t i = 0; i < spec->n_memories; i++)
        if (file->used[i].height)
            say("%-7s %s of %s bytes\n", spec->memory[i].name,
                with_commas(arena, file->used[i].height),
                with_commas(arena, spec->memory[i].size));
    for (uint32_t i = 0; i < v->sim->n_faults && i < PROGRAM_FAULTS; i++)
        say("fault   %s\n", v->sim->fault[i]);
    if (v->sim->n_priced)
        say("time    %.3f ms, of %u nodes that have a price\n",
            v->sim->seconds * 1e3, v->sim->n_priced);
    say("%u nodes, %u of %u layers on engines, %u faults\n",
        file->program->n_nodes, file->on_engine, layers_of(made->p.graph),
        v->sim->n_faults);
}

ExitCode verify_file(Arena *arena, Diag *diag, const Options *options) {
    Made made;
    ExitCode code = make(arena, diag, options, &made);
    if (code != EXIT_FINE)
        return code;
    const Graph *g = made.p.original;
    const float *const *values = read_inputs(arena, diag, options, g);
    const Program *read =
        program_decode(arena, diag, made.p.spec, "(file)", made.data, made.len);
    if (!values || !read)
        return EXIT_BAD_INPUT;
    uint32_t n;
    const ProgramBytes *inputs = file_inputs(arena, made.p.graph, values, &n);
    Verdict v = {0};
    v.sim = program_run(arena, diag, made.read, n, inputs);
    if (!v.sim)
        return EXIT_BAD_INPUT;
    const uint8_t **bytes = ARENA_ARRAY(arena, const uint8_t *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        bytes[i] = inputs[i].at;
    FileValues want = filegen_evaluate(arena, made.file, n, bytes);
    compare_nodes(made.file, &want, &v);
    Values reference;
    evaluate(arena, g, values, &reference);
    compare_outputs(g, &reference, &v);
    if (options->json)
        verdict_json(arena, options, &made, &v);
    else
        verdict_print(arena, &made, &v);
    return is_right(&made, &v) ? EXIT_FINE : EXIT_BAD_INPUT;
}
