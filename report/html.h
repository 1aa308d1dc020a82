/* html.h - what all pages share: head, style, text made safe. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "base/json_out.h"

/* From the doctype to the title's heading; `subtitle` below it. */
void html_open(Text *to, const char *title, const char *subtitle);
void html_close(Text *to);
/* Text in which nothing is markup any more, in attributes too. */
void html_text(Text *to, const char *text);

/* A page that a script draws from data: `json` is written into it so that
 * nothing in its strings is markup. `script`: text of one of report/web. */
extern const char embedded_report_js[], embedded_explore_js[];
const char *html_page(Arena *arena, const char *title, const char *json,
                      const char *script);

#endif
