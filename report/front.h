/* front.h - the plans that were found for a network and that none beats. */
#ifndef REPORT_FRONT_H
#define REPORT_FRONT_H

#include "base/text.h"
#include "report/page.h"

/* Pictures of what they cost against each other, and a table; nothing where
 * there are fewer than two. */
void front_draw(Arena *arena, Text *to, const ReportInput *input);

#endif
