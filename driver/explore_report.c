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

static void add_setting(Arena *arena, Text *to, const char *path,
                        const char *value) {
    if (is_compiler_option(path)) {
        command_word(to, arena_printf(arena, "--%s", path));
        command_word(to, value);
    } else {
        command_word(to, "--set");
        command_word(to, arena_printf(arena, "%s=%s", path, value));
    }
}

static const char *command_of(Arena *arena, const Options *o, const Point *p) {
    Text text = text_new(arena);
    text_add(&text, "amphora compile");
    command_word(&text, p->network);
    command_word(&text, "-t");
    command_word(&text, p->target);
    for (uint32_t i = 0; i < o->settings.n; i++)
        add_setting(arena, &text, o->settings.at[i].path,
                    o->settings.at[i].value);
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
    uint32_t n = o->settings.n + p->n_settings;
    HwSetting *setting = ARENA_ARRAY(arena, HwSetting, n + 1);
    for (uint32_t i = 0; i < n; i++)
        setting[i] = i < o->settings.n
                         ? o->settings.at[i]
                         : (HwSetting){p->path[i - o->settings.n],
                                       p->value[i - o->settings.n]};
    ReportInput input = {.listing = listing,
                         .sim = sim,
                         .command = p->command,
                         .n_settings = n,
                         .setting = setting};
    const char *page = report_page(arena, &input);
    return file_write(arena, diag, arena_printf(arena, "%s/%s", dir, p->report),
                      page, strlen(page));
}

bool sweep_report(Arena *arena, Diag *diag, const Options *o, const char *dir,
                  uint32_t n, Point *point) {
    const char *which = ((const ExploreArgs *)o->own)->reports;
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
