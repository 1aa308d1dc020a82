/* The replication rule: facts/xdnn.md 2.4, and a search over everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "hwspec/hwspec.h"

#include <stdlib.h>
#include <string.h>

static const HwCopies stored[] = {{2, 48}, {3, 32}};
static const HwCopies fly[] = {{2, 48}, {3, 32}, {4, 24}, {6, 16}, {12, 8}};
static const HwSpec v3 = {.replication = {.section = 96,
                                          .n_stored = 2,
                                          .n_fly = 5,
                                          .stored = stored,
                                          .fly = fly}};

static void check(Repl got, Repl wanted) {
    assert_int_equal(got.full, wanted.full);
    assert_int_equal(got.sections, wanted.sections);
    assert_int_equal(got.units, wanted.units);
    assert_int_equal(got.width, wanted.width);
}

static const struct {
    uint32_t channels, area;
    bool on_the_fly;
    Repl repl;
} published[] = {
    {3, 9, true, {0, 1, 12, 8}},
    {3, 9, false, {0, 1, 3, 32}},
    {16, 9, true, {0, 1, 6, 16}},
    {48, 9, false, {0, 1, 2, 48}},
    {64, 9, false, {0, 2, 3, 32}},
    {112, 9, false, {1, 1, 3, 32}},
    {128, 9, false, {1, 1, 3, 32}},
    {256, 9, false, {2, 2, 3, 32}},
    {512, 9, false, {5, 1, 3, 32}},
    /* recorded: 1x1 kernels gain nothing; 96 fill a section */
    {64, 1, false, {1, 0, 0, 0}},
    {1024, 1, false, {11, 0, 0, 0}},
    {192, 9, false, {2, 0, 0, 0}},
    {3, 49, false, {0, 1, 3, 32}},
    {3, 49, true, {0, 1, 12, 8}},
};

static void published_quadruples(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        check(hwspec_repl_rule(&v3, published[i].channels, published[i].area,
                               published[i].on_the_fly),
              published[i].repl);
}

static uint64_t cycles(Repl r, uint32_t area) {
    uint64_t copies = r.units ? r.units : 1;
    return (uint64_t)r.full * area +
           ((uint64_t)r.sections * area + copies - 1) / copies;
}

/* No way is cheaper than the rule's, and its sections hold the channels. */
static void never_beaten(void **state) {
    (void)state;
    for (uint32_t c = 1; c <= 300; c++)
        for (uint32_t area = 1; area <= 49; area++) {
            Repl best = hwspec_repl_rule(&v3, c, area, true);
            assert_true(best.full * 96 + best.sections * best.width >= c);
            assert_true(cycles(best, area) == hwspec_weight_rows(best, area));
            assert_true(cycles(best, area) <=
                        cycles(hwspec_repl_none(&v3, c), area));
            for (size_t i = 0; i < sizeof fly / sizeof *fly; i++) {
                uint32_t rest = c % 96, width = fly[i].width;
                Repl other = {c / 96, (rest + width - 1) / width, fly[i].units,
                              width};
                assert_true(cycles(best, area) <= cycles(other, area));
            }
        }
}

static void machine_without(void **state) {
    (void)state;
    const HwSpec none = {0};
    check(hwspec_repl_rule(&none, 64, 9, false), (Repl){0});
    check(hwspec_repl_none(&none, 64), (Repl){0});
    check(hwspec_repl_none(&v3, 97), (Repl){2, 0, 0, 0});
}

/* 512 channels under 3x3: 48 rows of the weight cache, too many to ping-pong.
 */
static void weight_rows(void **state) {
    (void)state;
    assert_int_equal(hwspec_weight_rows((Repl){5, 1, 3, 32}, 9), 48);
    assert_int_equal(hwspec_weight_rows((Repl){1, 0, 3, 32}, 9), 9);
    assert_int_equal(hwspec_weight_rows((Repl){0, 1, 12, 8}, 9), 1);
}

/* ---- recorded listings ---- */

static uint32_t number(const cJSON *fields, const char *key) {
    return (uint32_t)strtoul(json_str(fields, key, "0"), NULL, 10);
}

/* A quadruple without replicated sections says nothing by its last two. */
static Repl recorded(const cJSON *fields) {
    Repl r = {number(fields, "src_full_sect_num"),
              number(fields, "src_repl_sect_num"),
              number(fields, "src_repl_unit_num"),
              number(fields, "src_repl_unit_width")};
    return r.sections ? r : (Repl){.full = r.full};
}

static bool same(Repl a, Repl b) {
    return a.full == b.full && a.sections == b.sections && a.units == b.units &&
           a.width == b.width;
}

/* Of the convolutions in a recorded file, how many have the rule's quadruple;
 * the others are not replicated at all (they share their input). */
static uint32_t follows_rule(const char *path, uint32_t *convolutions) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    Bytes bytes = {0};
    assert_true(file_read(arena, diag, path, &bytes));
    cJSON *root = json_parse(diag, path, (const char *)bytes.at, bytes.len);
    assert_non_null(root);
    uint32_t n = 0;
    const cJSON *layer;
    cJSON_ArrayForEach(layer, cJSON_GetObjectItem(root, "network")) {
        const cJSON *fields = cJSON_GetObjectItem(layer, "xdnn_kv");
        const char *op = json_str(fields, "XNOp", "");
        bool piped = strstr(op, "Pipelined") != NULL;
        if (strcmp(op, "XNConv") && !piped)
            continue;
        uint32_t area =
            piped ? number(fields, "conv_kernel_w") *
                        number(fields, "conv_kernel_h")
                  : number(fields, "kernel_w") * number(fields, "kernel_h");
        const char *way = json_str(layer, "memory_description", "");
        uint32_t c = number(fields, "inchan");
        Repl rule = hwspec_repl_rule(&v3, c, area, !strncmp(way, "ddr", 3));
        bool follows = same(recorded(fields), rule);
        assert_true(follows ||
                    same(recorded(fields), hwspec_repl_none(&v3, c)));
        n += follows;
        *convolutions += 1;
    }
    json_free(root);
    arena_free(arena);
    return n;
}

static void recorded_quadruples(void **state) {
    (void)state;
    static const char *const file[] = {
        "../shared/data/listings/googlenet_v1_8b_autoAllOpt.json",
        "../shared/data/listings/vai11_stdyolov2.json",
        "../shared/data/listings/vai11_segmentation.json",
    };
    uint32_t n = 0, follow = 0;
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        if (!file_exists(file[i]))
            skip();
        follow += follows_rule(file[i], &n);
    }
    assert_int_equal(n, 145);
    assert_int_equal(follow, 144);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_quadruples), cmocka_unit_test(never_beaten),
        cmocka_unit_test(machine_without),      cmocka_unit_test(weight_rows),
        cmocka_unit_test(recorded_quadruples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
