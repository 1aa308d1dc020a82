/* cmd_simulate.c - runs a listing from its files; no network is needed. */
#include "driver/accesses.h"
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
                                    &sim->output[i].shape,
                                    &sim->output[i].quant},
                          sim->value[i]);
    return ok;
}

/* Values of the listing's inputs from --input files, NULL to seed them all. */
static bool listing_inputs(Arena *arena, Diag *diag, const Options *options,
                           const Listing *listing, const float *const **out) {
    const float **values = ARENA_ARRAY(arena, const float *, options->inputs.n);
    for (uint32_t i = 0; i < options->inputs.n; i++) {
        bool known = i < listing->image.n_inputs;
        const Region *region = known ? &listing->image.input[i] : NULL;
        Valued of = known ? (Valued){"input", region->name, &region->shape,
                                     &region->quant}
                          : (Valued){.what = "input"};
        values[i] = values_read(arena, diag, options->inputs.at[i], &of);
        if (!values[i])
            return false;
    }
    *out = options->inputs.n ? values : NULL;
    return true;
}

/* Where elements are as small as a network lets them be, the listing tells how
 * small. */
static const Listing *listing_fitted(Arena *arena, Diag *diag,
                                     const Options *options,
                                     const HwSpec *spec) {
    const Listing *listing = listing_read(arena, diag, spec, options->file);
    uint32_t element = listing ? listing->image.element : 0;
    if (!element || !spec->native.fit_element || element >= spec->element)
        return listing;
    spec = pipeline_spec_of(arena, diag, options, element);
    return spec ? listing_read(arena, diag, spec, options->file) : NULL;
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
    const Listing *listing = listing_fitted(arena, diag, options, spec);
    const float *const *inputs;
    if (!listing)
        return EXIT_BAD_INPUT;
    if (!own->memory_only && !room_simulates(arena, diag, listing))
        return EXIT_NO_FIT;
    if (!listing_inputs(arena, diag, options, listing, &inputs))
        return EXIT_BAD_INPUT;
    SimOptions sim_options = {.seed = options->seed,
                              .memory_only = own->memory_only,
                              .lax = own->lax};
    HostCode *code;
    if (!hostcode_open(arena, diag, own->host, listing, &sim_options, &code))
        return EXIT_BAD_INPUT;
    const SimResult *sim = accesses_run(arena, diag, listing, options->inputs.n,
                                        inputs, &sim_options, own->accesses);
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
        print_sim(arena, listing, sim, sim->compulsory);
        accounts_print(arena, &accounts);
    }
    return sim->n_violations ? EXIT_BAD_INPUT : EXIT_FINE;
}
