/* tables.h - the tables of a page. */
#ifndef REPORT_TABLES_H
#define REPORT_TABLES_H

#include "base/text.h"
#include "report/page.h"

/* The largest of its costs. */
SimCost event_bound(const SimEvent *event);
/* Products made over those that the engine could have made, 0..1. */
double event_utilisation(const HwSpec *spec, const SimEvent *event);

/* Its layer; of a load or store the listing's comment. */
const char *event_name(const Listing *listing, const SimEvent *event);

void table_summary(Text *to, const ReportInput *input);
void table_what_if(Text *to, const ReportInput *input);
/* What crosses the edge of active memory, by volume. */
void table_moves(Arena *arena, Text *to, const ReportInput *input);
/* Layers that run together, stripe by stripe. */
void table_together(Arena *arena, Text *to, const ReportInput *input);
void table_layers(Text *to, const ReportInput *input);
void table_memory(Arena *arena, Text *to, const ReportInput *input);
/* cliffs.c: convolutions that one channel more or less would change. */
void table_cliffs(Arena *arena, Text *to, const ReportInput *input);
void table_hosts(Text *to, const Listing *listing);
/* Where each volume is, and why there. */
void table_volumes(Arena *arena, Text *to, const ReportInput *input);

#endif
