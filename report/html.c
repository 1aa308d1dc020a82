/* html.c - what all pages share; see html.h. */
#include "report/html.h"

#include "base/plain.h"

#include <string.h>

/* Files of report/web, as bytes: tools/embed.cmake. */
extern const char embedded_style_css[], embedded_common_js[];

void html_text(Text *to, const char *text) {
    static const struct {
        char plain;
        const char *safe;
    } special[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
    for (; *text; text++) {
        const char *safe = NULL;
        for (int i = 0; i < 4; i++)
            if (*text == special[i].plain)
                safe = special[i].safe;
        size_t n = plain_length(text);
        if (safe)
            text_add(to, safe);
        else if (n)
            text_add_n(to, text, n);
        else
            text_addf(to, "\\x%02x", (unsigned char)*text);
        text += n ? n - 1 : 0;
    }
}

static void open_head(Text *to, const char *title) {
    text_add(to, "<!DOCTYPE html>\n<html lang=\"en\"><head>"
                 "<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
                 "content=\"width=device-width\">\n<title>");
    html_text(to, title);
    text_add(to, "</title>\n<style>\n");
    text_add(to, embedded_style_css);
    text_add(to, "</style></head>");
}

void html_open(Text *to, const char *title, const char *subtitle) {
    open_head(to, title);
    text_add(to, "<body>\n<h1>");
    html_text(to, title);
    text_add(to, "</h1>\n<p class=\"sub\">");
    html_text(to, subtitle);
    text_add(to, "</p>\n");
}

void html_close(Text *to) {
    text_add(to, "</body></html>\n");
}

/* In JSON `<` stands in strings alone, where \u003c is the same. */
static void add_data(Text *to, const char *json) {
    for (size_t n; *json; json += n) {
        n = strcspn(json, "<");
        text_add_n(to, json, n);
        if (json[n] == '<') {
            text_add(to, "\\u003c");
            n++;
        }
    }
}

const char *html_page(Arena *arena, const char *title, const char *json,
                      const char *script) {
    Text to = text_new(arena);
    open_head(&to, title);
    text_add(&to, "<body>\n<noscript>This page is drawn by a script, which is "
                  "in it; please allow it.</noscript>\n<script id=\"data\" "
                  "type=\"application/json\">\n");
    add_data(&to, json);
    text_add(&to, "\n</script>\n<script>\n");
    text_add(&to, embedded_common_js);
    text_add(&to, script);
    text_add(&to, "</script>\n");
    html_close(&to);
    return text_str(&to);
}
