/* front.h - the plans that were found for a network and that none beats. */
#ifndef REPORT_FRONT_H
#define REPORT_FRONT_H

#include "base/json_out.h"
#include "report/page.h"

/* Their costs as a member `front`; nothing where there are fewer than two. */
void front_add(JsonOut *to, const ReportInput *input);

#endif
