/* inside.h - the inside of wordgen_network. */
#ifndef WORDGEN_INSIDE_H
#define WORDGEN_INSIDE_H

#include "wordgen/wordgen.h"
#include "wordgen/writer.h"

/* A tensor of codes: its own volume, or channels of another's. */
typedef struct Home {
    uint32_t c, h, w;
    TensorId whole; /* whose channels these are; NO_TENSOR: it is its own */
    uint32_t first; /* ... from this one on */
    TensorId same;  /* whose bytes these are, with other axes; NO_TENSOR */
} Home;

typedef struct Work { /* by node */
    const EmitWay *way;
    const char *why;
    bool renames; /* nothing to do */
    const int64_t *chosen;
    const Stored *stored; /* by constant of the way */
} Work;

typedef struct Emitter {
    Writer w;
    Arena *arena, *scratch; /* w's */
    Diag *diag;
    const HwSpec *spec;
    const HwEmit *emit;
    const Graph *g;
    Home *home;       /* by tensor */
    Work *work;       /* by node */
    EmitPlace *place; /* by tensor */
} Emitter;

/* ---- homes.c: which tensors are channels of others ---- */
void wordgen_homes(Emitter *e);
/* Is the result the operand's bytes? */
bool wordgen_renames(const Emitter *e, const Node *node);
/* c, h, w as EmitPlace has them; false for several images. */
bool wordgen_volume(const Shape *shape, uint32_t *c, uint32_t *h, uint32_t *w);
/* Follows `whole`; *first is the first channel in it. */
TensorId wordgen_whole(const Emitter *e, TensorId tensor, uint32_t *first);
/* Finds `place` of all tensors. False if the memory is too small. */
bool wordgen_place(Emitter *e, uint64_t *height);

/* ---- facts.c: what a layer is, by names of the hwspec ---- */
/* Vectors of weights only where `numbers`. */
void wordgen_facts(Emitter *e, NodeId node, bool numbers);

/* ---- tiles.c: sizes that cost least ---- */
/* The values of the way's choices, and what they cost; NULL, with the reason in
 * run.failed or none, where no size is within the limits. */
const int64_t *wordgen_choose(Emitter *e, const EmitWay *way, int64_t *cost);
/* Values as wordgen_choose found them. */
bool wordgen_choice(Emitter *e, const EmitWay *way, const int64_t *chosen);

#endif
