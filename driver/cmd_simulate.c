/* cmd_simulate.c - runs a listing from its files; no network is needed. */
#include "driver/accesses.h"
#include "driver/calls.h"
#include "driver/commands.h"
#include "driver/hostcode.h"
#include "driver/lanes_program.h"
#include "driver/room.h"
#include "hwspec/program.h"
#include "lanes/lanes.h"

#include <string.h>

static bool write_outputs(Arena *arena, Diag *diag, const char *dir,
                          const SimResult *sim) {
    bool ok = file_make_dir(arena, diag, dir);
    for (uint32_t i = 0; ok && i < sim->n_outputs; i++)
        ok = values_write(arena, diag, dir,
                          &(Valued){"output", sim->output[i].name,
                                    region_shape(&sim->output[i]),
                                    &sim->output[i].quant},
                          sim->value[i]);
    return ok;
}

/* Of the listing's inputs, in its order, those of --input files, which are for
 * inputs that are no states. */
typedef struct Inputs {
    Arena *arena;
    const Listing *listing;
    uint32_t n;
    const float **value; /* of all calls; NULL: seeded */
} Inputs;

/* The listing's input that the file is for; without an image nobody knows. */
static uint32_t input_of_file(const Image *image, uint32_t file) {
    for (uint32_t i = 0; i < image->n_inputs; i++)
        if (!image->input[i].next && file-- == 0)
            return i;
    return image->n_inputs + file;
}

static bool listing_inputs(Arena *arena, Diag *diag, const Options *options,
                           const Listing *listing, Inputs *out) {
    const Image *image = &listing->image;
    uint32_t n = image->n_inputs + options->inputs.n;
    *out = (Inputs){arena, listing, 0, ARENA_ARRAY(arena, const float *, n)};
    for (uint32_t i = 0; i < options->inputs.n; i++) {
        uint32_t at = input_of_file(image, i);
        bool known = at < image->n_inputs;
        const Region *region = known ? &image->input[at] : NULL;
        Shape shape = {0};
        Valued of = {.what = "input"};
        if (known) {
            shape = calls_shape(calls_asked(options), region_shape(region));
            of = (Valued){"input", region->name, &shape, &region->quant};
        }
        out->value[at] = values_read(arena, diag, options->inputs.at[i], &of);
        if (!out->value[at])
            return false;
        out->n = at + 1 > out->n ? at + 1 : out->n;
    }
    return true;
}

/* A SimCalls. */
static const float *const *next_inputs(void *context, uint32_t call,
                                       const float *const *outputs) {
    const Inputs *in = context;
    const float **value =
        ARENA_COPY(in->arena, const float *, in->value, in->n);
    (void)outputs;
    for (uint32_t i = 0; i < in->n && i < in->listing->image.n_inputs; i++)
        if (value[i])
            value[i] += call * shape_count(&in->listing->image.input[i].shape);
    return value;
}

static bool calls_are_right(Diag *diag, const Options *options,
                            const Listing *listing) {
    if (options->calls > 1 && !listing->has_image)
        diag_error(diag, (Loc){options->file, 0, 0},
                   "--calls needs the .json, which says where inputs lie");
    return options->calls < 2 || listing->has_image;
}

/* A file of the machine's own, or its text, rather than a listing. */
static bool is_program(Arena *arena, const Options *options,
                       const HwSpec *spec) {
    Bytes file;
    if (!program_has(spec) || !spec->insns->n)
        return program_has(spec);
    return file_read(arena, diag_new(arena), options->file, &file) &&
           program_is_file(spec, options->file, file.at, file.len);
}

ExitCode cmd_simulate(Arena *arena, Diag *diag, const Options *options) {
    const SimulateArgs *own = options->own;
    const HwSpec *spec = pipeline_spec(arena, diag, options);
    if (!spec)
        return options->target ? EXIT_BAD_INPUT : EXIT_BAD_USAGE;
    if (lanes_has(spec))
        return simulate_lanes(arena, diag, options, spec);
    if (is_program(arena, options, spec))
        return simulate_program(arena, diag, options, spec);
    const Listing *listing =
        listing_of_file(arena, diag, options, spec, options->file);
    Inputs inputs;
    if (!listing || !calls_are_right(diag, options, listing))
        return EXIT_BAD_INPUT;
    if (!own->memory_only && !room_simulates(arena, diag, listing))
        return EXIT_NO_FIT;
    if (!listing_inputs(arena, diag, options, listing, &inputs))
        return EXIT_BAD_INPUT;
    SimOptions sim_options = {.seed = options->seed,
                              .memory_only = own->memory_only,
                              .lax = own->lax,
                              .calls = calls_asked(options),
                              .called = next_inputs,
                              .calls_context = &inputs};
    HostCode *code;
    if (!hostcode_open(arena, diag, own->host, listing, &sim_options, &code))
        return EXIT_BAD_INPUT;
    const SimResult *sim =
        accesses_run(arena, diag, listing, inputs.n, inputs.value, &sim_options,
                     own->accesses);
    hostcode_close(code);
    const ReportWanted wanted = {options, own->report, own->trace, false};
    if (!sim || !write_report(arena, diag, &wanted, listing, sim, NULL))
        return EXIT_BAD_INPUT;
    if (options->out && !own->memory_only &&
        !write_outputs(arena, diag, options->out, sim))
        return EXIT_BAD_INPUT;
    Accounts accounts =
        accounts_of(arena, listing, sim_products(sim), sim->cycles, sim);
    if (options->json) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddBoolToObject(json, "ok", sim->n_violations == 0);
        add_sim_json(arena, json, listing, sim);
        accounts_add_json(json, &accounts);
        print_json(arena, options, json);
    } else {
        print_sim(arena, listing, sim, 1);
        accounts_print(arena, &accounts);
    }
    return sim->n_violations ? EXIT_BAD_INPUT : EXIT_FINE;
}
