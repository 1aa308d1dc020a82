/* The page of a listing: its data, lives of volumes; the trace as JSON. How it
 * looks and works: tests/pages.py. */
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

/* The data of a page; the caller frees it. Names cannot end the script that it
 * stands in. */
static cJSON *data_of(Arena *arena, const char *page) {
    static const char open[] = "type=\"application/json\">\n";
    const char *from = strstr(page, open);
    assert_non_null(from);
    from += sizeof open - 1;
    const char *to = strstr(from, "\n</script>");
    assert_non_null(to);
    assert_null(memchr(from, '<', (size_t)(to - from)));
    cJSON *json =
        json_parse(diag_new(arena), "page", from, (size_t)(to - from));
    assert_non_null(json);
    return json;
}

static const cJSON *table_of(const cJSON *json, const char *title) {
    const cJSON *item;
    cJSON_ArrayForEach(
        item, cJSON_GetObjectItemCaseSensitive(
                  json, "tables")) if (!strcmp(json_str(item, "title", ""),
                                               title)) return item;
    return NULL;
}

static const cJSON *cell_of(const cJSON *table, int row, int column) {
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(table, "rows");
    return cJSON_GetArrayItem(cJSON_GetArrayItem(rows, row), column + 1);
}

static void pages_hold_the_right_numbers(void **state) {
    (void)state;
    Run r = run_listing(text);
    WhatIf what[] = {
        {"<twice>", true, "", "the same plan", r.sim->cycles / 2, 7, 9},
        {"less", false, "1 byte & more short", "", 0, 0, 0}};
    const HwSetting set = {"memories.am.size", "2</script>MiB"};
    ReportInput input = {
        .listing = r.listing,
        .sim = r.sim,
        .command = "amphora compile a b",
        .n_settings = 1,
        .setting = &set,
        .volumes = "a<1> (5x10x56): outside: for q\nb (1x1x1): inside\n",
        .n_what_ifs = 2,
        .what_if = what};
    const char *page = report_page(r.arena, &input);
    cJSON *json = data_of(r.arena, page);
    assert_string_equal(json_str(json, "command", ""), "amphora compile a b");
    const cJSON *changes = table_of(json, "What if");
    assert_string_equal(cell_of(changes, 0, 0)->valuestring, "<twice>");
    assert_true(cell_of(changes, 0, 2)->valuedouble < -0.49);
    assert_string_equal(cell_of(changes, 1, 7)->valuestring,
                        "1 byte & more short");
    assert_true(cJSON_IsNull(cell_of(changes, 1, 1)));
    assert_string_equal(cell_of(table_of(json, "Volumes"), 0, 0)->valuestring,
                        "a<1> (5x10x56)");
    /* in 56 x 10 x 5 x 33 elements: what the convolution makes */
    const cJSON *memory = table_of(json, "Memory");
    assert_true(cell_of(memory, 0, 2)->valuedouble > 0);
    assert_int_equal(
        cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "events")),
        (int)r.sim->n_events);
    assert_int_equal(cell_of(memory, 0, 7)->valuedouble, 92400);
    json_free(json);
    arena_free(r.arena);
}

/* All plans, which one was chosen, and by what each is the least. */
static void fronts_name_the_chosen_plan(void **state) {
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
    cJSON *json = data_of(r.arena, report_page(r.arena, &input));
    const cJSON *plans = cJSON_GetObjectItemCaseSensitive(json, "front");
    assert_int_equal(cJSON_GetArraySize(plans), 3);
    static const char *const least[] = {"[\"balanced\",\"time\"]",
                                        "[\"bytes\"]", "[]"};
    for (int i = 0; i < 3; i++) {
        const cJSON *plan = cJSON_GetArrayItem(plans, i);
        assert_true(json_num(plan, "chosen", -1) == (i == 0));
        assert_true(json_num(plan, "bytes", 0) == (double)front[i].bytes);
        assert_string_equal(
            json_print(r.arena,
                       cJSON_GetObjectItemCaseSensitive(plan, "least_by"),
                       false),
            least[i]);
    }
    json_free(json);
    input.n_front = 1;
    json = data_of(r.arena, report_page(r.arena, &input));
    assert_null(cJSON_GetObjectItemCaseSensitive(json, "front"));
    json_free(json);
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
        cmocka_unit_test(pages_hold_the_right_numbers),
        cmocka_unit_test(fronts_name_the_chosen_plan),
        cmocka_unit_test(volumes_live_until_their_last_reader),
        cmocka_unit_test(traces_have_an_event_an_instruction),
        cmocka_unit_test(traces_keep_to_the_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
