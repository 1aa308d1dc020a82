/* The page of a listing: balanced markup, its numbers, lives of volumes; the
 * trace as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "report/am_map.h"
#include "report/page.h"

#include <string.h>

typedef struct Run {
    Arena *arena;
    const Listing *listing;
    const SimResult *sim;
} Run;

static Run run_listing(const char *text) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = hwspec_load(arena, diag, "xdnn-v2-28", 0, NULL);
    assert_non_null(spec);
    const Listing *listing =
        listing_parse(arena, diag, spec, "t.cmd", text, strlen(text));
    SimOptions options = {.memory_only = true};
    const SimResult *sim =
        listing ? sim_run(arena, diag, listing, 0, NULL, &options) : NULL;
    diag_print(diag, stderr);
    assert_non_null(sim);
    return (Run){arena, listing, sim};
}

static const char text[] =
    "1 XNGather 0x0 0x0 56 10 5 0 1 1 0 9 0 1\n"
    "2 XNConv a<1> 1 1 1 1 0 0 1 1 16 26 2 1 1 0x0 56 10 5 0x10000 56 10 33 "
    "0\n"
    "3 XNMaxPool p 2 2 2 2 0 0 0x0 56 10 5 0x30000 28 5 0\n"
    "4 XNMaxPool q 2 2 2 2 0 0 0x10000 56 10 33 0x40000 28 5 0\n";

/* Every tag is closed by the right one; these have no end. */
static bool is_void(const char *tag, size_t len) {
    static const char *const names[] = {"meta", "!DOCTYPE"};
    for (int i = 0; i < 2; i++)
        if (strlen(names[i]) == len && !strncmp(tag, names[i], len))
            return true;
    return false;
}

static void must_balance(const char *page) {
    const char *open[64];
    size_t size[64];
    int depth = 0;
    for (const char *at = page; (at = strchr(at, '<')); at++) {
        const char *end = strchr(at, '>');
        assert_non_null(end);
        bool closes = at[1] == '/';
        const char *tag = at + 1 + closes;
        size_t len = strcspn(tag, " >/");
        if (closes) {
            assert_true(depth > 0 && size[depth - 1] == len &&
                        !strncmp(open[depth - 1], tag, len));
            depth--;
        } else if (end[-1] != '/' && !is_void(tag, len)) {
            assert_true(depth < 64);
            open[depth] = tag;
            size[depth++] = len;
        }
    }
    assert_int_equal(depth, 0);
}

static void pages_are_markup_with_the_right_numbers(void **state) {
    (void)state;
    Run r = run_listing(text);
    WhatIf what[] = {{"<twice>", true, "", r.sim->cycles / 2, 7, 9},
                     {"less", false, "1 byte & more short", 0, 0, 0}};
    ReportInput input = {
        .listing = r.listing,
        .sim = r.sim,
        .volumes = "a<1> (5x10x56): outside: for q\nb (1x1x1): inside\n",
        .n_what_ifs = 2,
        .what_if = what};
    const char *page = report_page(r.arena, &input);
    must_balance(page);
    assert_null(strstr(page, "a<1>"));
    assert_non_null(strstr(page, "a&lt;1&gt;"));
    assert_non_null(strstr(page, "-50.0 %"));
    assert_non_null(strstr(page, "1 byte &amp; more short"));
    assert_non_null(strstr(page, "a&lt;1&gt; (5x10x56)</td><td class=\"w\">"
                                 "outside: for q</td>"));
    assert_non_null(strstr(page, "<td>92,400</td>")); /* 56 x 10 x 5 x 33 */
    arena_free(r.arena);
}

static uint32_t count(const char *page, const char *word) {
    uint32_t n = 0;
    for (; (page = strstr(page, word)); page += strlen(word))
        n++;
    return n;
}

/* Two pictures with each plan in both, steps through those that are lowest in
 * one, and a table of changes against the chosen one. */
static void fronts_are_drawn_against_the_chosen_plan(void **state) {
    (void)state;
    Run r = run_listing(text);
    const PlanCost front[] = {
        {.cycles = 400, .bytes = 1000, .instructions = 5, .memory = 600},
        {.cycles = 500, .bytes = 800, .instructions = 5, .memory = 700},
        {.cycles = 450, .bytes = 1100, .instructions = 4, .memory = 650}};
    ReportInput input = {.listing = r.listing,
                         .sim = r.sim,
                         .n_front = 3,
                         .front = front,
                         .chosen = &front[0]};
    const char *page = report_page(r.arena, &input);
    must_balance(page);
    assert_int_equal(count(page, "<circle class=\"p\""), 6);
    assert_int_equal(count(page, "stroke=\"#b35900\" stroke-width=\"2\""), 2);
    assert_int_equal(count(page, "fill=\"#4e79a7\" stroke=\"#4e79a7\""), 3);
    assert_int_equal(count(page, "1 chosen</text>"), 2);
    assert_int_equal(count(page, "<td>500 (+25.0 %)</td>"), 1);
    assert_int_equal(count(page, "<td>800 (-20.0 %)</td>"), 1);
    assert_int_equal(count(page, "<td class=\"l\">bytes</td>"), 1);
    assert_int_equal(count(page, "<td class=\"l\">balanced, time</td>"), 1);
    input.n_front = 1;
    assert_null(strstr(report_page(r.arena, &input), "Plans found"));
    arena_free(r.arena);
}

/* What was loaded is read last by p, the result of a by q, q's by none. */
static void volumes_live_until_their_last_reader(void **state) {
    (void)state;
    Run r = run_listing(text);
    const SimEvent *e = r.sim->event;
    const AmVolume *v;
    assert_int_equal(am_map(r.arena, r.listing, r.sim, &v), 4);
    assert_int_equal(v[0].to, e[2].start + e[2].cycles);
    assert_int_equal(v[1].to, e[3].start + e[3].cycles);
    assert_int_equal(v[3].to, e[3].start + e[3].cycles);
    assert_int_equal(v[3].span.at, 0x40000);
    for (int i = 0; i < 4; i++)
        assert_int_equal(v[i].from, e[i].start);
    arena_free(r.arena);
}

static void traces_have_an_event_an_instruction(void **state) {
    (void)state;
    Run r = run_listing(text);
    const char *trace = report_trace(r.arena, r.listing, r.sim);
    cJSON *json = json_parse(diag_new(r.arena), "trace", trace, strlen(trace));
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "traceEvents");
    double end = 0;
    int events = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        if (strcmp(json_str(item, "ph", ""), "X"))
            continue;
        events++;
        double stop = json_num(item, "ts", -1) + json_num(item, "dur", -1);
        end = stop > end ? stop : end;
    }
    assert_int_equal(events, 4);
    double us = (double)r.sim->cycles / r.listing->spec->clock * 1e6;
    assert_true(end > us * 0.999 && end < us * 1.001);
    json_free(json);
    arena_free(r.arena);
}

static bool is_number(const cJSON *event, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);
    return cJSON_IsNumber(item) && item->valuedouble >= 0;
}

/* As the trace event format asks: https://ui.perfetto.dev reads no others. */
static void check_event(const cJSON *event, double end[16], bool named[16]) {
    assert_true(is_number(event, "pid") && is_number(event, "tid"));
    int thread = (int)json_num(event, "tid", 0);
    const char *name = json_str(event, "name", "");
    assert_true(thread < 16 && *name);
    if (!strcmp(json_str(event, "ph", ""), "M")) {
        const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
        assert_true(*json_str(args, "name", ""));
        named[thread] |= !strcmp(name, "thread_name");
        return;
    }
    assert_string_equal(json_str(event, "ph", ""), "X");
    assert_true(is_number(event, "ts") && is_number(event, "dur"));
    assert_true(named[thread]);
    double ts = json_num(event, "ts", 0);
    assert_true(ts >= end[thread] - 1e-6);
    end[thread] = ts + json_num(event, "dur", 0);
}

/* Names before events; in one thread events rise and do not overlap. */
static void traces_keep_to_the_format(void **state) {
    (void)state;
    Run r = run_listing(text);
    const char *trace = report_trace(r.arena, r.listing, r.sim);
    cJSON *json = json_parse(diag_new(r.arena), "trace", trace, strlen(trace));
    double end[16] = {0};
    bool named[16] = {0};
    const cJSON *event;
    cJSON_ArrayForEach(event,
                       cJSON_GetObjectItemCaseSensitive(json, "traceEvents"))
        check_event(event, end, named);
    json_free(json);
    arena_free(r.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_markup_with_the_right_numbers),
        cmocka_unit_test(fronts_are_drawn_against_the_chosen_plan),
        cmocka_unit_test(volumes_live_until_their_last_reader),
        cmocka_unit_test(traces_have_an_event_an_instruction),
        cmocka_unit_test(traces_keep_to_the_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
