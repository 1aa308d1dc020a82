/* explore_report.c - pages of single points; see explore.h.
 *
 * Input: the points of a sweep. Output: a report for each point of a front and
 * for those from which on more memory stops paying, or for all; and for every
 * point the command that makes its report.
 */
#include "base/file.h"
#include "driver/explore.h"
#include "report/page.h"

#include <string.h>

/* ---- the command ---- */

static bool is_plain(const char *text) {
    return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_./:=,+-")];
}

/* As a shell reads it. */
static void add_word(Text *to, const char *word) {
    if (is_plain(word)) {
        text_add(to, word);
        return;
    }
    text_add(to, "'");
    for (; *word; word++)
        text_add(to, *word == '\'' ? "'\\''" : (const char[2]){*word, '\0'});
    text_add(to, "'");
}

static void add_setting(Arena *arena, Text *to, const char *path,
                        const char *value) {
    if (is_compiler_option(path)) {
        text_addf(to, " --%s ", path);
        add_word(to, value);
    } else {
        text_add(to, " --set ");
        add_word(to, arena_printf(arena, "%s=%s", path, value));
    }
}

static const char *command_of(Arena *arena, const Options *o, const Point *p) {
    Text text = text_new(arena);
    text_add(&text, "amphora compile ");
    add_word(&text, p->network);
    text_add(&text, " -t ");
    add_word(&text, p->target);
    for (uint32_t i = 0; i < o->n_settings; i++)
        add_setting(arena, &text, o->settings[i].path, o->settings[i].value);
    for (uint32_t i = 0; i < p->n_settings; i++)
        add_setting(arena, &text, p->path[i], p->value[i]);
    text_add(&text, " --report page.html");
    return text_str(&text);
}

/* ---- the pages ---- */

static bool known(Diag *diag, const char *which) {
    if (!strcmp(which, "front") || !strcmp(which, "all") ||
        !strcmp(which, "none"))
        return true;
    diag_error(diag, (Loc){0}, "--reports takes front, all or none, not %s",
               which);
    return false;
}

static bool write_one(Arena *arena, Diag *diag, const Options *o,
                      const char *dir, Point *p) {
    Point again = *p;
    const Listing *listing;
    const SimResult *sim = point_run(arena, o, NULL, &again, &listing);
    if (!sim || again.cycles != p->cycles || again.am_peak != p->am_peak) {
        diag_note(diag, (Loc){0},
                  "no report of point %u: it does not come "
                  "out as before",
                  p->index);
        return true;
    }
    ReportInput input = {.listing = listing, .sim = sim};
    const char *page = report_page(arena, &input);
    return file_write(arena, diag, arena_printf(arena, "%s/%s", dir, p->report),
                      page, strlen(page));
}

bool sweep_report(Arena *arena, Diag *diag, const Options *o, const char *dir,
                  uint32_t n, Point *point) {
    const char *which = o->reports;
    if (!known(diag, which))
        return false;
    bool all = !strcmp(which, "all"), ok = true;
    bool *am = points_front(arena, n, point, AXIS_AM);
    bool *ddr = points_front(arena, n, point, AXIS_DDR);
    bool *enough = points_enough(arena, n, point);
    for (uint32_t i = 0; i < n; i++)
        point[i].command = command_of(arena, o, &point[i]);
    if (!strcmp(which, "none") ||
        !file_make_dir(arena, diag, arena_printf(arena, "%s/reports", dir)))
        return !strcmp(which, "none");
    for (uint32_t i = 0; ok && i < n; i++) {
        if (point[i].status != POINT_FITS ||
            !(all || am[i] || ddr[i] || enough[i]))
            continue;
        Arena *scratch = arena_new("report");
        const char *link =
            arena_printf(arena, "reports/%u.html", point[i].index);
        point[i].report = link;
        uint32_t notes = diag_count(diag);
        ok = write_one(scratch, diag, o, dir, &point[i]);
        if (diag_count(diag) != notes)
            point[i].report = NULL;
        arena_free(scratch);
    }
    return ok;
}
