/* pass.h - Graph -> Graph. The ordered table in pipeline.c is the pipeline. */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "graph/graph.h"
#include "hwspec/hwspec.h"

#include <stdio.h>

/* Facts about a graph that passes need, give and break. */
enum {
    FACT_NO_BN = 1u << 0,         /* no BN nodes: folded or turned into SCALE */
    FACT_NO_IDENTITY = 1u << 1,   /* no identity, no reshape that is one */
    FACT_FUSED = 1u << 2,         /* activations sit in their producers */
    FACT_CONCAT_PLACED = 1u << 3, /* concat members can be written in place */
    FACT_NO_BROADCAST = 1u << 4   /* (for later passes) */
};

/* Which layers run in bands of rows or columns, where the machine asks for it:
 * those of extents that the engine does not take, or also those whose volumes
 * need more than `band_bytes` of active memory. No band needs more. */
typedef enum BandsOf { BANDS_OF_NONE, BANDS_OF_EXTENTS, BANDS_OF_ALL } BandsOf;

typedef struct PassContext {
    const HwSpec *spec; /* NULL: only the rules that suit every machine */
    Diag *diag;
    Arena *scratch; /* reset by the runner after each pass */
    FILE *log;      /* --dump rules: each firing; NULL: quiet */
    BandsOf bands;
    uint64_t band_bytes;
    bool banded; /* set by the pass: there are bands */
} PassContext;

typedef struct Pass {
    const char *name;
    bool (*run)(Graph *g, PassContext *context); /* false: errors reported */
    uint32_t needs, gives, breaks;
    const char *doc;
} Pass;

extern const Pass passes[];
extern const uint32_t n_passes;

typedef struct PassTime {
    const char *name;
    double ms;
    uint32_t nodes; /* after it */
} PassTime;

/* Runs the whole table on g in place. After each pass: shapes, verifier, and
 * if `dump` names the pass (or "all"), the graph's text to dump_to. `times`
 * (n_passes of them, or NULL) is filled. */
bool passes_run(Graph *g, PassContext *context, const char *dump, FILE *dump_to,
                PassTime *times);

/* The table as text, for --print-passes: passes, then rules with their why. */
void passes_print(FILE *to);

#endif
