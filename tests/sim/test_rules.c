/* test_rules.c - each rule of memory, broken once, with the whole sentence. */
#include "tests/sim/harness.h"

/* Runs a text without an image: its violations are these sentences. */
static void expect_both(const char *target, const char *text, const char *want,
                        const char *also) {
    Bench *b = bench_open(target);
    b->options.memory_only = true;
    bench_text(b, text);
    const SimResult *r = bench_run(b, 0, NULL);
    for (uint32_t i = 0; i < r->n_kept && i < 2; i++)
        assert_string_equal(r->violation[i].text, i ? also : want);
    assert_int_equal(r->n_violations, also ? 2 : 1);
    bench_close(b);
}

static void expect(const char *target, const char *text, const char *want) {
    expect_both(target, text, want, NULL);
}

#define V2 "xdnn-v2-28"
/* a convolution 1x1 of 4 channels on 4x4, from..to */
#define CONV(step, name, from, to)                                             \
    step " XNConv " name " 1 1 1 1 0 0 1 1 16 26 2 1 1 " from " 4 4 4 " to     \
         " 4 4 4 0\n"

static void never_written(void **state) {
    (void)state;
    expect_both(
        V2, CONV("1", "a", "0x0", "0x1000") CONV("2", "b", "0x1040", "0x2000"),
        "b: input 4x4x4 at 0x1040 in am: 4 of its cells were never written, "
        "first channel 3, row 3, column 0 at 0x1400 in am",
        "b: input 4x4x4 at 0x1040 in am: 60 of its cells hold something else, "
        "first channel 0, row 0, column 0 at 0x1040 in am, last written by a "
        "as 4x4x4 at 0x1000 in am");
    expect(V2,
           CONV("1", "a", "0x0", "0x1000") CONV("2", "b", "0x8000", "0x2000"),
           "b: input 4x4x4 at 0x8000 in am: 64 of its cells were never "
           "written, first channel 0, row 0, column 0 at 0x8000 in am");
}

static void stale_volume(void **state) {
    (void)state;
    expect(V2,
           CONV("1", "a", "0x0", "0x1000")
               CONV("2", "b", "0x1000",
                    "0x2000") "3 XNMaxPool p 2 2 2 2 0 0 0x2000 4 4 4 0x1080 2 "
                              "2 0\n" CONV("4", "c", "0x1000", "0x3000"),
           "c: input 4x4x4 at 0x1000 in am: 16 of its cells hold something "
           "else, first channel 0, row 2, column 0 at 0x1080 in am, last "
           "written by p as 4x2x2 at 0x1080 in am");
}

static void channels_out_of_place(void **state) {
    (void)state;
    Bench *b = bench_open(V2);
    /* two parts of 4 channels make a volume of 8: rows are 64 bytes */
    bench_text(
        b,
        CONV("1", "a", "0x0", "0x1000") CONV(
            "2", "b", "0x0",
            "0x1400") "3 XNMaxPool p 1 1 1 1 0 0 0x1000 4 4 8 0x2000 4 4 0\n");
    b->options.memory_only = true;
    bench_run(b, 0, NULL);
    bench_clean(b);
    bench_close(b);
    /* the second one a row too low is another volume */
    expect_both(
        V2,
        CONV("1", "a", "0x0", "0x1000") CONV(
            "2", "b", "0x0",
            "0x1440") "3 XNMaxPool p 1 1 1 1 0 0 0x1000 4 4 8 0x2000 4 4 0\n",
        "p: input 8x4x4 at 0x1000 in am: 4 of its cells were never written, "
        "first channel 4, row 0, column 0 at 0x1400 in am",
        "p: input 8x4x4 at 0x1000 in am: 60 of its cells hold something else, "
        "first channel 4, row 1, column 0 at 0x1440 in am, last written by b "
        "as 4x4x4 at 0x1440 in am");
}

/* rows first..last of an input 1x4x4, in a ring of 3 at 0x0 */
#define ROWS(step, first, last)                                                \
    "LD " step " 2 0x0 3 0x0 1 4 4 " first " " last "\n"
/* a window of 3 rows from `row` on */
#define TALL(step, name, row)                                                  \
    "MAXP " step " " name " 0x100 1 1 4 0 0 0x0 1 3 4 " row " 3 1 3 1 1 0 0 "  \
    "0\n"

static void rings(void **state) {
    (void)state;
    Bench *b = bench_open("ring-npu");
    bench_text(b, ROWS("1", "0", "2") TALL("2", "p", "0") ROWS("3", "3", "3")
                      TALL("4", "q", "1"));
    b->options.memory_only = true;
    bench_run(b, 0, NULL);
    bench_clean(b);
    bench_close(b);
    /* row 0 is gone when row 3 has come */
    expect(
        "ring-npu", ROWS("1", "0", "2") ROWS("2", "3", "3") TALL("3", "p", "0"),
        "p: input 1x3x4 at 0x0 in am: 4 of its cells hold something else, "
        "first channel 0, row 0, column 0 at 0x0 in am, last written by load "
        "as 1x1x4 at 0x0 in am");
    /* and row 3 is not there before, though its cells are */
    expect(
        "ring-npu", ROWS("1", "0", "2") TALL("2", "p", "1"),
        "p: input 1x3x4 at 0x0 in am: 4 of its cells hold something else, "
        "first channel 0, row 2, column 0 at 0x0 in am, last written by load "
        "as 1x3x4 at 0x0 in am");
    expect_both("ring-npu", ROWS("1", "0", "3"),
                "load: destination has 4 rows, its ring 3", NULL);
}

/* rows and columns of an input 1x8x6, in a line buffer at 0x0: bands of 2 rows,
 * one row and 3 columns are kept */
#define COLUMNS(step, rows, first, last)                                       \
    "LD " step " 2 0x0 0 " first " 6 2 1 3 0 0x0 1 8 6 " rows " " first        \
    " " last "\n"
/* a window of 3 x 3 from there on */
#define PATCH(step, name, row, col)                                            \
    "MAXP " step " " name " 0x100 1 1 1 0 0 0 1 0 0 0 0 0x0 1 3 3 " row        \
    " 0 " col " 6 2 1 3 0 3 3 1 1 0 0 1\n"

static void line_buffers(void **state) {
    (void)state;
    Bench *b = bench_open("line-npu");
    bench_text(b,
               COLUMNS("1", "0 1", "0", "2") COLUMNS("2", "0 1", "3", "5")
                   COLUMNS("3", "2 3", "0", "2") PATCH("4", "p", "1", "0")
                       COLUMNS("5", "2 3", "3", "4") PATCH("6", "q", "1", "2"));
    b->options.memory_only = true;
    bench_run(b, 0, NULL);
    bench_clean(b);
    bench_close(b);
    /* column 0 is gone when three more have come, in the row above as well */
    expect("line-npu",
           COLUMNS("1", "0 1", "0", "2") COLUMNS("2", "0 1", "3", "5")
               COLUMNS("3", "2 3", "0", "2") COLUMNS("4", "2 3", "3", "3")
                   PATCH("5", "p", "1", "0"),
           "p: input 1x3x3 at 0x0 in am: 2 of its cells hold something else, "
           "first channel 0, row 0, column 0 at 0xc in am, last written by "
           "load as 1x2x1 at 0x0 in am");
    /* columns that have not come are not there */
    expect_both(
        "line-npu",
        COLUMNS("1", "0 1", "0", "2") COLUMNS("2", "0 1", "3", "5")
            COLUMNS("3", "2 3", "0", "1") PATCH("4", "p", "1", "0"),
        "p: input 1x3x3 at 0x0 in am: 1 of its cells were never written, "
        "first channel 0, row 2, column 2 at 0x2c in am",
        "p: input 1x3x3 at 0x0 in am: 1 of its cells hold something else, "
        "first channel 0, row 1, column 2 at 0x8 in am, last written by load "
        "as 1x2x3 at 0x0 in am");
    expect_both("line-npu", COLUMNS("1", "0 3", "0", "1"),
                "load: destination has 4 rows and 2 columns, its line buffer 3 "
                "and 3",
                NULL);
}

static void beyond_the_memory(void **state) {
    (void)state;
    expect(V2, CONV("1", "a", "0x0", "0x3fff00"),
           "a: output 4x4x4 at 0x3fff00 in am takes 1024 bytes, 768 more than "
           "the memory has from there");
    expect(V2, CONV("1", "a", "0x0", "0x400040"),
           "a: output at 0x400040 in am starts behind the memory's 4194304 "
           "bytes");
}

static void not_aligned(void **state) {
    (void)state;
    expect(V2, CONV("1", "a", "0x0", "0x1020"),
           "a: output at 0x1020 in am is not aligned to 64 bytes");
}

static void in_place_or_not(void **state) {
    (void)state;
    Bench *b = bench_open(V2);
    b->options.memory_only = true;
    bench_text(
        b, CONV("1", "a", "0x0", "0x1000") CONV(
               "2", "b", "0x0",
               "0x2000") "3 XNEltwise s 1 0 1 0x1000 0x2000 4 4 4 0x1000 0\n");
    bench_run(b, 0, NULL);
    bench_clean(b);
    bench_close(b);
    expect(V2, CONV("1", "a", "0x0", "0x0"),
           "a: output 4x4x4 at 0x0 in am overlaps its input 4x4x4 at 0x0 in "
           "am");
    expect(V2,
           CONV("1", "a", "0x0", "0x1000") CONV(
               "2", "b", "0x0",
               "0x2000") "3 XNEltwise s 1 0 1 0x1000 0x2000 4 4 4 0x1040 0\n",
           "s: output 4x4x4 at 0x1040 in am overlaps its input 4x4x4 at 0x1000 "
           "in am");
}

static void one_step_touches_the_same_cells(void **state) {
    (void)state;
    expect(
        V2,
        CONV("1", "a", "0x0", "0x1000") CONV(
            "2", "b", "0x0",
            "0x2000") "2 XNMaxPool p 2 2 2 2 0 0 0x1000 4 4 4 0x2300 2 2 0\n",
        "p: writes 4x2x2 at 0x2300 in am while b, in the same step, writes "
        "4x4x4 at 0x2000 in am");
    expect(V2,
           CONV("1", "a", "0x0", "0x1000") CONV(
               "2", "b", "0x1000",
               "0x2000") "2 XNMaxPool p 2 2 2 2 0 0 0x0 4 4 4 0x1000 2 2 0\n",
           "p: writes 4x2x2 at 0x1000 in am while b, in the same step, reads "
           "4x4x4 at 0x1000 in am");
}

static void engines_beside_each_other(void **state) {
    (void)state;
    expect(V2, CONV("2", "a", "0x0", "0x1000") CONV("2", "b", "0x0", "0x2000"),
           "b: engine conv cannot run in one step with engine conv");
}

static void sizes_that_make_no_sense(void **state) {
    (void)state;
    expect(V2, "1 XNMaxPool p 0 2 2 2 0 0 0x0 4 4 4 0x1000 2 2 0\n",
           "p: kernel.w is 0, not in 1..65536");
    expect(V2, "1 XNMaxPool p 2 2 2 2 0 0 0x0 4 4 4 0x1000 9 2 0\n",
           "p: output width 9 does not come from 4 by kernel 2, stride 2, "
           "padding 0");
    expect(V2,
           "1 XNConv c 1 1 1 1 0 0 1 1 16 26 2 1 1 0x0 4 4 99999999 "
           "0x0 4 4 4 0\n",
           "c: in.c is 99999999, not in 1..16777216");
    expect(V2, "1 XNUpsample u 2 2 0x0 4 4 4 0x1000 8 4 Zero\n",
           "u: its output is 4x4x8, but must be 4x8x8");
    expect(V2, "1 XNGather 0x0 0x0 4 4 4 0 1 1 2 4 0 0\n",
           "load: row.last is 4, not in 2..3");
    expect(V2,
           "1 XNConv c 60000 60000 1 1 0 0 1 1 16 26 2 1 1 0x0 4 4 4 "
           "0x1000 4 4 4 0\n",
           "c: its 4x4x4 to 4x4x4 is more than can be simulated");
}

static void only_the_first_are_kept(void **state) {
    (void)state;
    Bench *b = bench_open(V2);
    b->options.memory_only = true;
    b->options.max_violations = 3;
    for (int i = 1; i <= 10; i++)
        bench_text(b,
                   arena_printf(b->arena, CONV("%d", "a", "0x0", "0x1020"), i));
    const SimResult *r = bench_run(b, 0, NULL);
    assert_int_equal(r->n_violations, 10);
    assert_int_equal(r->n_kept, 3);
    assert_int_equal(r->violation[2].insn, 2);
    bench_close(b);
}

/* ---- xdnn-v3-96: sections and copies ---- */

#define V3_TAIL_WAITS " 1 1 1 1 1 1 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0\n"
#define NO_PART " 0 0 0 0 0 0 0"

static void copies_must_be_written_to_be_read(void **state) {
    (void)state;
    const char *load = "1 XNGather 0x0 0x0 4 4 40 0 1 1 0 3 1 0 2 3 32 1\n";
    const char *same = "2 XNConv a 1 1 1 1 0 0 1 1 16 26 2 1 0 1 0x0 4 4 40 "
                       "0x100 4 4 8 1 1 0 2 3 32 1 0 0 0" NO_PART V3_TAIL_WAITS;
    const char *plain = "2 XNConv a 1 1 1 1 0 0 1 1 16 26 2 1 0 1 0x0 4 4 40 "
                        "0x100 4 4 8 1 1 1 0 0 0 1 0 0 0" NO_PART V3_TAIL_WAITS;
    Bench *b = bench_open("xdnn-v3-96");
    b->options.memory_only = true;
    bench_text(b, load);
    bench_text(b, same);
    bench_run(b, 0, NULL);
    bench_clean(b);
    bench_close(b);
    b = bench_open("xdnn-v3-96");
    const char *both = arena_printf(b->arena, "%s%s", load, plain);
    expect("xdnn-v3-96", both,
           "a: input 40x4x4 at 0x0 in am: 640 of its cells hold something "
           "else, first channel 0, row 0, column 0 at 0x0 in am, last written "
           "by load as 40x4x4 at 0x0 in am");
    bench_close(b);
}

/* A part may start within a section; its address is the section's. */
static void parts_share_sections(void **state) {
    (void)state;
    Bench *b = bench_open("xdnn-v3-96");
    b->options.memory_only = true;
    bench_text(b, "1 XNGather 0x0 0x0 4 4 40 0 1 1 0 3 1 1 0 0 0 1\n");
    for (int first = 0; first < 160; first += 80)
        bench_text(b, arena_printf(b->arena,
                                   "%d XNConv a 1 1 1 1 0 0 1 1 16 26 2 1 0 1 "
                                   "0x0 4 4 40 0x100 4 4 80 1 1 1 0 0 0 1 0 0 "
                                   "0 1 2 0 0 0 %d 160" V3_TAIL_WAITS,
                                   2 + first, first));
    bench_text(b,
               "99 XNMaxPool p 1 1 1 1 0 0 0x100 4 4 160 0x200 4 4 1 1 2 0 0 "
               "0 2 0 0 0" NO_PART V3_TAIL_WAITS);
    bench_run(b, 0, NULL);
    bench_clean(b);
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_written),
        cmocka_unit_test(stale_volume),
        cmocka_unit_test(channels_out_of_place),
        cmocka_unit_test(rings),
        cmocka_unit_test(line_buffers),
        cmocka_unit_test(beyond_the_memory),
        cmocka_unit_test(not_aligned),
        cmocka_unit_test(in_place_or_not),
        cmocka_unit_test(one_step_touches_the_same_cells),
        cmocka_unit_test(engines_beside_each_other),
        cmocka_unit_test(sizes_that_make_no_sense),
        cmocka_unit_test(only_the_first_are_kept),
        cmocka_unit_test(copies_must_be_written_to_be_read),
        cmocka_unit_test(parts_share_sections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
