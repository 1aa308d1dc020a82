/* emit.h - how a layer becomes instructions that are lists of words.
 *
 * Input: `emit` of a hwspec. A way says which operators it is for, what must
 * hold of a layer, which constants it needs and in which order, which sizes of
 * tiles are tried under which limits, and steps (hwspec/template.h) that append
 * instructions. Names are those of a layer's facts (docs/hwspec.md).
 */
#ifndef HWSPEC_EMIT_H
#define HWSPEC_EMIT_H

#include "hwspec/template.h"

/* Numbers in the backing memory: `value` for all indices, outermost first. */
typedef struct EmitConstant {
    uint32_t at; /* the name that has their first byte's address */
    Loc loc;
    TplType type;
    uint32_t n;
    const uint32_t *index;
    const Expr *const *extent;
    const Expr *value;
} EmitConstant;

/* A size that is searched: `most`, or as small a multiple of `step` as makes so
 * many tiles of it. */
typedef struct EmitChoice {
    uint32_t name;
    Loc loc;
    const Expr *most, *step; /* step NULL: 1 */
} EmitChoice;

typedef struct EmitWay {
    const char *name;
    Loc loc;
    bool runs[HW_OP_COUNT];
    uint32_t n_requires, n_constants, n_choices, n_limits;
    const Expr *const *require;
    const EmitConstant *constant;
    const EmitChoice *choice; /* the last is as large as the limits allow */
    const Expr *const *limit; /* of a choice */
    const Expr *cost;         /* of a choice; NULL: all alike */
    uint32_t attempt, steps;  /* templates: for each choice; for the best */
} EmitWay;

/* A part of the backing memory: constants, or a memory of a listing. */
enum { EMIT_CONSTANTS = -1 };
typedef struct EmitRegion {
    int32_t memory; /* or EMIT_CONSTANTS */
} EmitRegion;

typedef struct HwEmit {
    bool of_listing; /* ways take instructions of a listing, not layers */
    uint64_t first;  /* bytes of the backing memory that nothing may use */
    uint32_t n_regions;
    const EmitRegion *region; /* number k of 32 bits at byte 4 * k of the memory
                               * is where it begins */
    uint32_t begin, end;      /* templates: around a list of instructions */
    uint32_t n;
    const EmitWay *way; /* in order of preference */
} HwEmit;

/* NULL where the machine has none, or one for the other. */
const HwEmit *program_emit(const HwSpec *spec);         /* of layers */
const HwEmit *program_emit_listing(const HwSpec *spec); /* of listings */
/* A row by the number that EMIT steps have, and what its instructions hold:
 * NULL where they do not. */
const ProgRow *program_emit_row(const HwSpec *spec, uint32_t row);
const Expr *program_emit_holds(const HwSpec *spec, uint32_t row);
/* An instruction of the row with the values that its names have now. */
ProgNode program_emit_node(const TemplateRun *run, Arena *arena, uint32_t row);

#endif
