/* planners.h - the functions behind the rows of planners.def. */
#ifndef ALLOC_PLANNERS_H
#define ALLOC_PLANNERS_H

#include "alloc/planner.h"

#define PLANNER(name, in_auto, doc) PlanFn plan_##name;
#include "alloc/planners.def"
#undef PLANNER

#endif
