/* lanes_network.c - a network on codes as a description with its weights, for
 * machines with memories by channel; compared with its reference evaluation. */
#include "driver/lanes_program.h"

#include "base/npy.h"
#include "driver/commands.h"

#include <stdlib.h>
#include <string.h>

typedef struct Made {
    const LaneMachine *m;
    LaneNet *net;
    Graph *graph; /* as the machine computes: its biases, its rounding */
    const Graph *network;
    LaneLowered of;
    uint64_t wrong, differ, n; /* codes of the result */
    int32_t most;              /* by which one differs */
    int8_t *input;             /* codes less their zero */
    const LaneRun *run;
} Made;

static bool lower(Arena *arena, Diag *diag, const Options *options,
                  const HwSpec *spec, Made *out) {
    Pipeline p;
    Options plain = *options;
    plain.target = NULL;
    if (pipeline_run(arena, diag, &plain, STAGE_READ, &p) != EXIT_FINE)
        return false;
    out->m = lanes_machine(arena, diag, spec);
    out->network = p.network;
    out->graph =
        graph_clone(arena, pipeline_rounded(arena, p.network, QUANT_UP));
    out->net =
        out->m ? lanes_lower(arena, diag, out->m, out->graph, &out->of) : NULL;
    if (!out->net)
        return false;
    return lanes_check(arena, diag, out->m, out->net) &&
           lanes_columns(arena, diag, out->m, out->net);
}

static int32_t code_at(const Made *made, const Values *values, TensorId t,
                       uint64_t i) {
    return (int32_t)values->at[t.i][i] -
           graph_tensor(made->graph, t)->quant.zero;
}

/* Runs it through the memories, and both graphs on the same input. */
static bool compare(Arena *arena, Diag *diag, const Options *options,
                    Made *made) {
    Values own, network;
    const float *const *inputs =
        read_inputs(arena, diag, options, made->network);
    if (!inputs)
        return false;
    evaluate(arena, made->graph, inputs, &own);
    evaluate(arena, made->network, inputs, &network);
    uint64_t n = shape_count(&graph_tensor(made->graph, made->of.input)->shape);
    int8_t *code = ARENA_ARRAY(arena, int8_t, n + 1);
    for (uint64_t i = 0; i < n; i++)
        code[i] = (int8_t)code_at(made, &own, made->of.input, i);
    const LaneRun *run = lanes_run(arena, made->m, made->net, code);
    for (uint32_t i = 0; i < run->fault.n; i++)
        diag_error(diag, (Loc){0}, "%s", run->fault.at[i]);
    made->input = code;
    made->run = run;
    made->n = run->n_out;
    for (uint64_t i = 0; i < made->n; i++) {
        TensorId t = made->of.result;
        int32_t apart = abs(run->out[i] - code_at(made, &network, t, i));
        made->wrong += run->out[i] != code_at(made, &own, t, i);
        made->differ += apart != 0;
        made->most = apart > made->most ? apart : made->most;
    }
    if (made->wrong)
        diag_error(
            diag, (Loc){0}, "%llu of %llu codes are not those of the reference",
            (unsigned long long)made->wrong, (unsigned long long)made->n);
    return !run->n_faults && !made->wrong;
}

/* ---- files ---- */

/* Appends codes; their place as {offset, shape}. */
static cJSON *add_codes(Npy *all, float *data, const int8_t *code,
                        uint32_t rank, const uint32_t *dim) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "offset", (double)all->count);
    cJSON *shape = cJSON_AddArrayToObject(json, "shape");
    uint64_t n = 1;
    for (uint32_t i = 0; i < rank; i++) {
        cJSON_AddItemToArray(shape, cJSON_CreateNumber(dim[i]));
        n *= dim[i];
    }
    for (uint64_t i = 0; i < n; i++)
        data[all->count++] = code[i];
    return json;
}

static uint64_t weights_of(const LaneLayer *l) {
    uint64_t taps = (uint64_t)l->kernel[0] * l->kernel[1];
    uint64_t places = l->flatten ? (uint64_t)l->in[0] * l->in[1] : 1;
    return l->weight ? l->out_c * l->in_c * places * taps : 0;
}

static bool write_weights(Arena *arena, Diag *diag, const LaneNet *net,
                          const char *dir) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < net->n; i++)
        n += weights_of(&net->layer[i]) + net->layer[i].n_bias;
    float *data = ARENA_ARRAY(arena, float, n + 1);
    Npy all = {.rank = 1, .data = data, .kind = "|i1"};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "weights", "weights.npy");
    cJSON *layers = cJSON_AddArrayToObject(json, "layers");
    for (uint32_t i = 0; i < net->n; i++) {
        const LaneLayer *l = &net->layer[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddItemToArray(layers, one);
        if (!l->weight)
            continue;
        uint32_t places = l->flatten ? l->in[0] * l->in[1] : 1;
        uint32_t dim[4] = {l->out_c, l->in_c * places, l->kernel[0],
                           l->kernel[1]};
        cJSON_AddItemToObject(one, "weights",
                              add_codes(&all, data, l->weight, 4, dim));
        if (l->bias)
            cJSON_AddItemToObject(
                one, "bias", add_codes(&all, data, l->bias, 1, &l->n_bias));
        cJSON_AddNumberToObject(one, "weight_bits", l->bits);
        cJSON_AddNumberToObject(one, "total_shift", l->shift);
    }
    all.dim[0] = all.count;
    char *text = cJSON_Print(json);
    bool ok =
        file_write(arena, diag, arena_printf(arena, "%s/layers.json", dir),
                   text, strlen(text)) &&
        npy_write(arena, diag, arena_printf(arena, "%s/weights.npy", dir),
                  &all);
    cJSON_free(text);
    json_free(json);
    return ok;
}

static bool write_input(Arena *arena, Diag *diag, const Made *made,
                        const char *dir) {
    const LaneNet *net = made->net;
    uint64_t n = (uint64_t)net->in_c * net->in[0] * net->in[1];
    float *data = ARENA_ARRAY(arena, float, n + 1);
    for (uint64_t i = 0; i < n; i++)
        data[i] = made->input[i];
    Npy npy = {.rank = 3,
               .dim = {net->in_c, net->in[0], net->in[1]},
               .data = data,
               .count = n,
               .kind = "|i1"};
    return npy_write(arena, diag, arena_printf(arena, "%s/input.npy", dir),
                     &npy);
}

static void print_made(Arena *arena, const Made *made) {
    say("memory  %llu of %u bytes of an instance\n",
        (unsigned long long)lanes_height(made->m, made->net),
        made->m->bank_bytes);
    lanes_say_cycles(arena, made->m, made->net);
    say("biases  %u, of which %u were rounded to 128 units of the sums\n",
        made->of.biases, made->of.changed);
    say("result  %llu codes, %llu wrong; %llu differ from eval of the network "
        "as given, by at most %d\n",
        (unsigned long long)made->n, (unsigned long long)made->wrong,
        (unsigned long long)made->differ, made->most);
}

/* A network of real numbers has had its error. */
static void advise(Diag *diag, const Options *options, const Made *made) {
    bool codes = false;
    for (uint32_t i = 0; made->network && i < made->network->tensor.n; i++)
        codes |= made->network->tensor.at[i].quant.type != QUANT_NONE;
    if (made->network && !codes)
        diag_note(diag, (Loc){0},
                  "amphora quantise %s --calibrate DIR -t %s makes a network "
                  "of codes",
                  options->file, options->target);
}

static bool make(Arena *arena, Diag *diag, const Options *options,
                 const HwSpec *spec, Made *made) {
    if (lower(arena, diag, options, spec, made))
        return compare(arena, diag, options, made);
    advise(diag, options, made);
    return false;
}

ExitCode verify_lanes(Arena *arena, Diag *diag, const Options *options) {
    Made made = {0};
    const HwSpec *spec = hwspec_load(arena, diag, options->target,
                                     options->settings.n, options->settings.at);
    if (spec && !lanes_foreign(arena, options->file)) {
        diag_error(diag, (Loc){options->file, 0, 0},
                   "a description has no network to compare with: simulate "
                   "runs it");
        return EXIT_BAD_INPUT;
    }
    if (!spec || !make(arena, diag, options, spec, &made))
        return EXIT_BAD_INPUT;
    say("%s on %s: the memories hold what the network computes\n",
        made.network->name, spec->machine);
    print_made(arena, &made);
    return EXIT_FINE;
}

ExitCode compile_lanes_network(Arena *arena, Diag *diag, const Options *options,
                               const HwSpec *spec) {
    Made made = {0};
    if (!make(arena, diag, options, spec, &made) ||
        !lane_emits(diag, options, made.m))
        return EXIT_BAD_INPUT;
    LaneFile file = lane_file(arena, options, made.m, made.net, made.input,
                              made.run, file_stem(arena, options->file));
    bool ok =
        file_make_dir(arena, diag, file.dir) &&
        file_write(arena, diag, file.path, file.text, strlen(file.text)) &&
        write_weights(arena, diag, made.net, file.dir) &&
        write_input(arena, diag, &made, file.dir);
    if (!ok)
        return EXIT_BAD_INPUT;
    print_made(arena, &made);
    say("wrote   %s, layers.json, weights.npy, input.npy: %u layers\n",
        file.path, made.net->n);
    return EXIT_FINE;
}
