/* pipeline.h - the way of a network from file to listing, stage by stage. */
#ifndef DRIVER_PIPELINE_H
#define DRIVER_PIPELINE_H

#include "codegen/codegen.h"
#include "driver/options.h"
#include "passes/pass.h"

typedef enum Stage {
    STAGE_HWSPEC,
    STAGE_READ,
    STAGE_PASSES,
    STAGE_SCHEDULE,
    STAGE_ALLOC,
    STAGE_CODEGEN,
    STAGE_WRITE,
    STAGE_NATIVE,
    STAGE_SIMULATE,
    STAGE_REFERENCE,
    STAGE_COUNT
} Stage;
extern const char *const stage_name[STAGE_COUNT];

/* What plans have in common that differ in the size of the first memory alone.
 * `times`: cycles by what a listing says. */
typedef struct Shared {
    Arena *arena; /* outlives all of them */
    struct PlanShared *plans;
    MemoTable *times;
} Shared;

/* Everything between the file and the listing; what was not reached is NULL. */
typedef struct Pipeline {
    const HwSpec *spec;    /* of a bundle: with room for any plan */
    const HwSpec *machine; /* as it is */
    const Graph *network;  /* as read */
    const Graph *original; /* the same as the machine rounds: the reference */
    const Graph *graph;    /* after the passes */
    const Schedule *schedule;
    const Schedule *one;   /* of one image, where there are several; NULL */
    const Schedule *other; /* that may be planned as well; or NULL */
    const Plan *plan;
    const Listing *listing;
    const uint32_t *action_of; /* by instruction */
    ImportInfo import;
    BandsOf bands; /* for the passes */
    uint64_t band_bytes;
    bool banded;
    const struct SimResult *timed; /* or NULL: by listing_timed, with spans */
    Shared *shared;                /* or NULL */
    double ms[STAGE_COUNT];
} Pipeline;

/* Milliseconds since some fixed moment. */
double now_ms(void);

/* Reads the hwspec of options->target; NULL after errors. */
const HwSpec *pipeline_spec(Arena *arena, Diag *diag, const Options *options);
/* The same with elements of so many bytes. */
const HwSpec *pipeline_spec_of(Arena *arena, Diag *diag, const Options *options,
                               uint32_t element);

/* How the machine's results become codes; `up` where it follows the network. */
QuantRound pipeline_rounds(const HwSpec *spec);
/* The same network with all results on codes rounded by one rule; itself, where
 * they are. */
const Graph *pipeline_rounded(Arena *arena, const Graph *network,
                              QuantRound round);

/* Runs the stages up to and including `last` (at most STAGE_CODEGEN). With no
 * options->target the stages after STAGE_PASSES are out of reach. */
ExitCode pipeline_run(Arena *arena, Diag *diag, const Options *options,
                      Stage last, Pipeline *out);

/* The same from `first` on, in a pipeline that was run up to there. */
ExitCode pipeline_resume(Arena *arena, Diag *diag, const Options *options,
                         Stage first, Stage last, Pipeline *pipeline);

/* What the command line says about the order. False after an error. */
bool pipeline_sched_options(Diag *diag, const Options *options,
                            SchedOptions *out);

/* Images in the listing. */
uint32_t pipeline_images(const Pipeline *pipeline);

/* Nodes that the host runs. */
uint32_t pipeline_host_layers(const Pipeline *pipeline);

#endif
