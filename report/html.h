/* html.h - what all pages share: head, style, text made safe, numbers. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "base/text.h"

/* From the doctype to the title's heading; `subtitle` below it. */
void html_open(Text *to, const char *title, const char *subtitle);
void html_close(Text *to);
/* Behind the pictures: shows the title of each circle of class p under the
 * pointer, and marks the row that its data-p names, pN. Without scripts the
 * titles are still there. */
void html_tips(Text *to);
/* Text in which nothing is markup any more, in attributes too. */
void html_text(Text *to, const char *text);
/* 1,234,567 */
void html_count(Text *to, uint64_t value);
/* A step of 1, 2 or 5 times a power of ten, so that at most `most` of them lie
 * in 0..top; at least 1. */
uint64_t html_step(uint64_t top, uint32_t most);
/* "1.5 M" for axes. */
void html_short(Text *to, uint64_t value);

#endif
