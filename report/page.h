/* page.h - one compiled network on one page, and as a trace.
 *
 * Everything comes from the listing and its simulation: the pages of a network
 * that was compiled and of a listing that was read are the same.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "plan/objective.h"
#include "sim/sim.h"

/* What a change of the machine or the network would buy. */
typedef struct WhatIf {
    const char *change;
    bool fits;
    const char *reason; /* why it does not */
    const char *how;    /* it was found */
    uint64_t cycles, am_peak, ddr;
} WhatIf;

typedef struct ReportInput {
    const Listing *listing;
    const SimResult *sim;
    const char *command; /* that made it; NULL: not known */
    uint32_t n_settings; /* what is not as the hwspec says */
    const HwSetting *setting;
    const char *bound_of; /* what moves no fewer bytes than that; NULL: nobody
                           * knows of any */
    uint64_t bound;
    const char *volumes; /* lines `volume: where it is, and why`; or NULL */
    uint32_t n_front;    /* plans that were found and none beats; */
    const PlanCost *front, *chosen; /* which of them it is */
    uint32_t n_what_ifs;
    const WhatIf *what_if;
} ReportInput;

/* HTML that needs nothing from elsewhere: graph, active memory and engines over
 * time, roofline, plans that were found, tables; a layer that is chosen in one
 * is marked in all. */
const char *report_page(Arena *arena, const ReportInput *input);

/* Trace events for chrome://tracing or Perfetto: a lane an engine,
 * microseconds of the machine. */
const char *report_trace(Arena *arena, const Listing *listing,
                         const SimResult *sim);

#endif
