/* writer.h - steps that make instructions, and what they need to know: for
 * layers of a network (wordgen.h) and for instructions of a listing (codegen/).
 */
#ifndef WORDGEN_WRITER_H
#define WORDGEN_WRITER_H

#include "base/vec.h"
#include "graph/graph.h"
#include "hwspec/emit.h"

/* What instructions of a row said last, by the number that they hold. */
typedef struct Held {
    uint32_t row;
    int64_t number;
    const ProgMeaning *meaning;
} Held;

/* Constants of a layer: bytes of the image from `at` on. */
typedef struct Stored {
    uint32_t name;
    uint64_t at;
} Stored;

typedef struct Writer {
    Arena *arena, *scratch; /* scratch: of one layer */
    const HwSpec *spec;
    const Graph *g;
    TemplateRun run;
    VEC(uint8_t) constant;
    uint64_t base; /* the constants' first byte */
    VEC(ProgNode) node;
    VEC(Held) held;
    Loc loc; /* of what is written: instructions have it */
} Writer;

/* In place, since its steps know where it is. */
void writer_open(Writer *w, Arena *arena, const HwSpec *spec, const Graph *g);
/* Nothing is known of the machine any more: a new list begins. */
void writer_forget(Writer *w);

/* The layer's rule, scales, codes and its bias by their names in the hwspec;
 * vectors of weights only where `numbers`. A name that the hwspec does not have
 * is left out. */
void writer_numbers(Writer *w, const Node *node, bool numbers);

/* Bytes of the way's constants at the end of `constant`; NULL, with the reason
 * in run.failed. */
const Stored *writer_constants(Writer *w, const EmitWay *way);
/* Gives their names the addresses. */
void writer_set_constants(Writer *w, const EmitWay *way, const Stored *stored);

/* NULL where all that the way requires holds, else what does not; run.failed
 * where that is a fault. */
const char *writer_lacks(Writer *w, const EmitWay *way);

/* Sets the tokens of a list whose machine has them set (`issue.placed`): as few
 * as order all touches of a cell, one of them a write. False after an error. */
bool writer_place_tokens(Arena *arena, Diag *diag, Program *program);

/* What is taken from a tensor's codes where it lies: 128 of uint8, where the
 * machine's engines take int8 alone. */
int32_t wordgen_less(const HwSpec *spec, const Quant *q);

#endif
