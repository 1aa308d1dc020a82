/* commands.h - one function a command, and what they share. */
#ifndef DRIVER_COMMANDS_H
#define DRIVER_COMMANDS_H

#include "base/json.h"
#include "base/text.h"
#include "driver/options.h"
#include "driver/pipeline.h"
#include "driver/values.h"
#include "report/accounts.h"
#include "report/page.h"
#include "sim/sim.h"

ExitCode cmd_compile(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_simulate(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_verify(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_eval(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_show(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_explore(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_pack(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_check(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_asm(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_diff(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_import(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_quantise(Arena *arena, Diag *diag, const Options *options);
ExitCode cmd_disasm(Arena *arena, Diag *diag, const Options *options);

/* simulate, of a machine's file */
ExitCode simulate_program(Arena *arena, Diag *diag, const Options *options,
                          const HwSpec *spec);

/* show --orders */
ExitCode show_orders(Arena *arena, Diag *diag, const Options *options,
                     const char *svg);

/* The listing with a record for each instruction, and what running it costs;
 * `spans`: what was simulated for that stays in the pipeline. */
const Listing *listing_timed(Arena *arena, Pipeline *pipeline, bool spans);
/* What compile --json says of a plan whose listing is not written. */
cJSON *compile_json(Arena *arena, const Pipeline *p);
/* verify, of a pipeline up to the listing; false if it could not be run. */
bool verify_pipeline(Arena *arena, Diag *diag, const Options *options,
                     Pipeline *p, bool *right);

/* show -t --svg: the volumes of active memory over the steps. */
const char *plan_svg(Arena *arena, const Plan *plan);
bool show_svg(Arena *arena, Diag *diag, const Plan *plan, const char *path);

/* What is known of the order: peak_bytes, steps, bound_bytes, proved... */
cJSON *order_json(const Schedule *schedule);

/* whatif.c: --report and --trace, where given; `made`: the pipeline that the
 * listing came out of, so that what-ifs can be tried; or NULL. */
typedef struct ReportWanted {
    const Options *options;
    const char *page, *trace; /* files; NULL: none */
    bool anew;                /* compile for each changed machine */
} ReportWanted;
bool write_report(Arena *arena, Diag *diag, const ReportWanted *wanted,
                  const Listing *listing, const SimResult *sim,
                  const Pipeline *made);

/* Prints the object as one line on stdout, or gives it to options->said, and
 * frees it. */
void print_json(Arena *arena, const Options *options, cJSON *json);

/* commands.c: runs the command argv[0]; what options do not say is as in
 * `base`. */
ExitCode command_run(Arena *arena, Diag *diag, int argc, char **argv,
                     const Options *base);
/* The same, and what the program does without a command; argv[0]: its name. */
ExitCode command_program(Arena *arena, Diag *diag, int argc, char **argv);

/* {"read": 1.2, ...}: the stages that ran. */
cJSON *stage_times_json(const Pipeline *pipeline);

/* Layers of the host: [{"layer", "kind", "function", "reason"}]. */
cJSON *host_layers_json(const Listing *listing);

/* Fields that every report of a simulation has. */
/* Bytes that the plan moves over DDR, and the least that any could. */
void add_traffic_json(cJSON *json, const Plan *plan);
void add_sim_json(Arena *arena, cJSON *json, const Listing *listing,
                  const SimResult *sim);

/* The same for people. `images`: that the listing computes. */
void print_sim(Arena *arena, const Listing *listing, const SimResult *sim,
               uint32_t images);
/* Shares of engines and host, where the plan's own cycles are known or not. */
Accounts plan_accounts(Arena *arena, const Pipeline *pipeline, uint64_t cycles);
void print_plan(Arena *arena, const Pipeline *pipeline);

/* Of the placement in active memory: height, live peak, bound, whether it is
 * proved to be the least, planner. */
void add_placement_json(cJSON *json, const Plan *plan);
void print_placement(Arena *arena, const Plan *plan);
/* A listing by path, for the machine with the elements that it says. */
const Listing *listing_of_file(Arena *arena, Diag *diag, const Options *options,
                               const HwSpec *spec, const char *file);
void print_products(Arena *arena, const Plan *plan);
/* How many layers had no weights and were given some, if any. */
void print_seeded(Arena *arena, uint32_t layers);

/* The values of the network's outputs by the reference evaluation, and of all
 * tensors. */
const float *const *evaluate(Arena *arena, const Graph *graph,
                             const float *const *inputs, Values *values);

/* The i-th --input file as values of the i-th input; those not given are
 * seeded. Checks counts against `shapes`. NULL after errors. */
const float *const *read_inputs(Arena *arena, Diag *diag,
                                const Options *options, const Graph *graph);

#endif
