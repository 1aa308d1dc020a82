/* tables.h - the tables of a page. */
#ifndef REPORT_TABLES_H
#define REPORT_TABLES_H

#include "base/json_out.h"
#include "report/nodes.h"
#include "report/page.h"

/* The largest of its costs. */
SimCost event_bound(const SimEvent *event);
/* Products made over those that the engine could have made, 0..1. */
double event_utilisation(const HwSpec *spec, const SimEvent *event);

/* Its layer; of a load or store the listing's comment. */
const char *event_name(const Listing *listing, const SimEvent *event);

/* Figures of the whole network. */
void table_summary(JsonOut *to, const ReportInput *input);

/* Each adds a table to an open list, or none where it has no rows. */
void table_what_if(JsonOut *to, const ReportInput *input);
/* What crosses the edge of active memory, by volume. */
void table_moves(JsonOut *to, const ReportInput *input, const Nodes *nodes);
/* Layers that run together, stripe by stripe. */
void table_together(JsonOut *to, const ReportInput *input, const Nodes *nodes);
void table_layers(JsonOut *to, const ReportInput *input, const Nodes *nodes);
void table_memory(JsonOut *to, const ReportInput *input, const Nodes *nodes);
/* cliffs.c: convolutions that one channel more or less would change. */
void table_cliffs(JsonOut *to, const ReportInput *input, const Nodes *nodes);
void table_hosts(JsonOut *to, const Listing *listing, const Nodes *nodes);
/* Where each volume is, and why there. */
void table_volumes(JsonOut *to, const ReportInput *input, const Nodes *nodes);

#endif
