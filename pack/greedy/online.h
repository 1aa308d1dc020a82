/* online.h - the seed compiler's way: walk the steps, give each volume its
 * place when it is born, from the free blocks of that moment, and free it when
 * it dies. A strategy is only the choice of a block (facts/xdnn.md section 3).
 *
 * Volumes born in one step come in the order of their ids.
 */
#ifndef PACK_GREEDY_ONLINE_H
#define PACK_GREEDY_ONLINE_H

#include "pack/free_list.h"

/* What a chooser may look at; the `context` of its ChooseFn. */
typedef struct Online {
    const PackProblem *problem;
    uint32_t turn;        /* volumes placed so far */
    uint32_t birth;       /* index of the present one of the birth steps */
    uint32_t n_births;    /* distinct steps at which something is born */
    const uint64_t *live; /* bytes alive at each birth step */
    uint32_t peak;        /* the first birth step with most bytes alive */
    uint64_t boundary;    /* bytes of the first volume alive at the peak */
} Online;

void online_plan(Arena *arena, const PackProblem *problem, PackResult *result,
                 ChooseFn *choose);

/* Ways to choose: the lowest block at its low end; the highest at its high. */
ChooseFn choose_bottom, choose_tops;

#endif
