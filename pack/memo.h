/* memo.h - placements that were asked for before. */
#ifndef PACK_MEMO_H
#define PACK_MEMO_H

#include "base/memo.h"
#include "pack/pack.h"

/* As plan_memory, but what was asked before is not searched again. */
void placed_once(MemoTable *memo_table, Arena *arena,
                 const PackProblem *problem, const char *planner, bool best,
                 PackResult *result, const char **used);

#endif
