/* spill.h - what stays in active memory, what leaves it, and which part of
 * that stays; private.
 */
#ifndef ALLOC_SPILL_SPILL_H
#define ALLOC_SPILL_SPILL_H

#include "alloc/live/live.h"

/* Where everything is made to fit. */
typedef struct Attempt Attempt;
struct Attempt {
    const Facts *f;
    Decisions d;
    Buffers buffers;     /* of these decisions */
    PackResult result;   /* of that */
    const char *planner; /* that found it */
    bool two_levels;     /* of a plan: see there */
    bool keeps_all;      /* of a plan: see there */
    bool fills_holes;    /* concat_holes.c has done it */
    uint32_t stuck;      /* step at which nothing more can be done */
    uint8_t *given_up;   /* by step: it cannot run in what there is */
    bool settled;        /* modes_settle, when it was begun */
    double most;         /* bytes moved by a plan that is known already */
    bool hopeless;       /* more than that must move, however it goes on */
    bool by_parts;       /* what fit_around chose without evict_whole */
    bool brief;          /* a plan that is too long is of no use: it may end
                          * early, */
    bool gave_up;        /* and has: it was not placed, or lacks actions */
    bool explains;       /* all steps that cannot run are to be known */
    uint64_t would_do; /* bytes of the first memory: a refusal's; 0: unknown */
    /* whether, with these decisions, the listing is longer than the machine
     * holds wherever buffers lie: count_instructions.c */
    bool (*too_long)(const Attempt *a);
};

/* ---- give_way.c, greedy.c: what is evicted, dissolved, tiled ---- */

/* A volume that passes in tiles must not be part of a concat that is still
 * being filled: dissolves such. The new alias classes have no uses yet. */
bool operand_freed(Decisions *d, NodeId node, TensorId t);
/* The modes that are set stay; false if they leave no way. */
bool fit_around(Attempt *a);
/* Places everything. False if it does not fit; w->stuck then tells where. */
bool fit_one_level(Attempt *a);
/* Places what alias classes and modes ask for now. False if it does not fit:
 * then the result is as it was. Counts placements in *tries. */
bool place_anew(Attempt *a, uint32_t *tries);
/* All volumes kept, all nodes whole. */
void start_again(Attempt *a);
bool fit_two_levels(Attempt *a);

/* ---- fractional.c: how much of a volume stays between two uses ---- */

/* parts.c: the tensors of which a part may stay over the interval behind the
 * touch, of none that is part of another; at most as many as the alias class
 * has. */
uint32_t kept_tensors(const Facts *f, const AliasClass *alias, uint32_t use,
                      TensorId *out);
/* How many of the tensor's channels are among the alias class's first `keeps`.
 */
uint32_t kept_of(const Facts *f, const AliasClass *alias, TensorId t,
                 uint32_t retained);
/* spill_cost.c: bytes that move at least, whatever stays between two uses. */
double streaming_cost(const Decisions *d);
/* Bytes that leave and come back, by intervals' leaves and keeps. */
double spills_cost(const Decisions *d);
/* Nothing leaves. */
void spills_none(Decisions *d);
/* Concats take no more than is written of them, where they would not fit. */
void aliases_fill(Decisions *d, Buffers *buffers);
/* Chooses the intervals anew and places everything, if that moves fewer bytes
 * than `most`; else false, and all is as it was. */
bool fit_spills(Attempt *a, double most);

/* rigid_place.c: places a problem with buffers that move together. False if no
 * place is found; *blocked: while what was most in the way is alive. Sets
 * AliasClass.retains_end. */
bool place_tied(Decisions *d, const Buffers *p, PackResult *result,
                Times *blocked);

/* ---- concat_holes.c: concats whose bytes serve others until they are written
 * ---- */

/* One level in one linear memory, where whole concats did not fit. */
bool fit_slots(Attempt *a);

#endif
