/* test_program.c - files by the rows of a hwspec: data/slice.yaml.
 *
 * Bytes worked out by hand, both ways; each damaged bit is noticed or comes
 * back; each mistake in rows is told at its place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "hwspec/program.h"

#include <string.h>

static const char machine[] = "tests/hwspec/data/slice.yaml";

static const char text[] =
    "# slice, a file of slice: amphora asm makes its bytes\n"
    "slice version=3 entries=3\n"
    "  entry[]= -2 7 300\n"
    "RUN in.w=12 in.h=5 kind=padded pad.w=1 in.addr=5 out.addr=2048 out.c=3\n"
    "    kernel.w=3\n"
    "  taps[]= 1 -2 3 -4 5 -6 7 -8 0\n"
    "RUN in.w=12 in.h=5 kind=padded pad.w=1 in.addr=6 out.addr=9 out.c=1 "
    "kernel.w=2\n"
    "  taps[]= 1 2\n"
    "RUN in.w=12 in.h=5 kind=scaled pad.w=0 zero=-3 in.addr=6 out.addr=9 "
    "out.c=1\n"
    "    kernel.w=2 scale=0.25\n"
    "  taps[]= 1 2\n"
    "LOAD at=34\n";

static const uint8_t bytes[] = {
    /* magic, version; where the table is, its bytes, the file's */
    0x5a, 0xce, 0, 3, 0, 0, 0, 18, 0, 0, 0, 6, 0, 0, 0, 82,
    /* entries, note; -2, 7, 300 */
    3, 0, 0xff, 0xfe, 0, 7, 1, 44,
    /* CONFIG: 3; in.h - 1, lines * in.h, in.w - 1; zero, kind */
    3, 4, 10, 11, 0, 2,
    /* RUN: 9; out.addr << 12 | in.addr; min, last, out.c - 1; nothing to align;
     * taps of 3 channels and of 1 that pads */
    9, 0x80, 0, 5, 3, 0x22, 1, 14, 3, 12, 5, 10, 7, 8, 0, 0, 0, 0,
    /* the same CONFIG again: left out */
    9, 0, 0x90, 6, 1, 0x10, 0, 0, 1, 2, 0, 0,
    /* another; a scale */
    3, 4, 10, 11, 0xfd, 7, 9, 0, 0x90, 6, 1, 0x10, 0x3e, 0x80, 0, 0, 1, 2, 0, 0,
    /* LOAD of 34 / 2 */
    0x20, 17};

static const HwSpec *load(Arena *arena, const char *path) {
    Diag *diag = diag_new(arena);
    const HwSpec *spec = hwspec_load(arena, diag, path, 0, NULL);
    if (!spec)
        fail_msg("%s: %s", path, diag_at(diag, 0)->text);
    return spec;
}

static void are_written(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = load(arena, machine);
    const Program *program =
        program_parse(arena, diag, spec, "text", text, strlen(text));
    const uint8_t *out;
    size_t len;
    assert_non_null(program);
    assert_true(program_encode(arena, diag, program, &out, &len));
    assert_int_equal(len, sizeof bytes);
    assert_memory_equal(out, bytes, len);
    arena_free(arena);
}

static const char *printed(Arena *arena, const Program *program) {
    Text out = text_new(arena);
    program_print(&out, program);
    return text_str(&out);
}

static void are_read(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = load(arena, machine);
    assert_true(program_has(spec));
    assert_true(program_is(spec, bytes, sizeof bytes));
    assert_false(program_is(spec, bytes + 1, sizeof bytes - 1));
    const Program *program =
        program_decode(arena, diag, spec, "file", bytes, sizeof bytes);
    assert_non_null(program);
    assert_string_equal(printed(arena, program), text);
    assert_int_equal(program->n_nodes, 4);
    const ProgScope *scope = &program->node[1].scope;
    assert_string_equal(prog_row_name(program->node[1].row), "RUN");
    assert_string_equal(prog_row_ops(program->node[1].row)[0], "conv");
    assert_int_equal(prog_num(scope, "in.w", -1), 12);
    assert_int_equal(prog_num(scope, "out.w", -1), 13); /* implied */
    assert_int_equal(prog_num(scope, "nothing", -1), -1);
    const ProgVector *taps = prog_vector(scope, "taps");
    assert_int_equal(taps->n, 2);
    assert_int_equal(prog_at(taps, 1), 2);
    arena_free(arena);
}

static void are_built(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = load(arena, machine);
    Program *program = program_new(arena, spec);
    static const int64_t entry[] = {-2, 7, 300};
    static const int64_t taps[] = {1, 2};
    const ProgRow *row[] = {program_row(spec, "RUN")};
    assert_null(program_row(spec, "STOP"));
    prog_set(&program->scope, "version", 3);
    prog_set(&program->scope, "entries", 3);
    prog_set_nums(&program->scope, "entry", 3, entry);
    program_nodes(arena, program, 1, row);
    ProgScope *scope = &program->node[0].scope;
    static const struct {
        const char *name;
        int64_t num;
    } values[] = {{"in.w", 12},    {"in.h", 5},     {"kind", 0},
                  {"in.addr", 6},  {"out.addr", 9}, {"out.c", 1},
                  {"kernel.w", 2}, {"zero", -3}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        prog_set(scope, values[i].name, values[i].num);
    prog_set_nums(scope, "taps", 2, taps);
    const uint8_t *out;
    size_t len;
    assert_true(program_encode(arena, diag, program, &out, &len));
    assert_int_equal(len, 40);
    assert_int_equal(out[15], 40);
    assert_int_equal(out[29], 1); /* kind plain */
    arena_free(arena);
}

/* Each bit turned: an error with its place, or a file that comes back. */
static void damage_is_noticed(void **state) {
    (void)state;
    Arena *arena = arena_new("test"), *each = arena_new("each");
    const HwSpec *spec = load(arena, machine);
    uint32_t noticed = 0;
    for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
        Diag *diag = diag_new(each);
        uint8_t damaged[sizeof bytes];
        memcpy(damaged, bytes, sizeof bytes);
        damaged[bit / 8] ^= (uint8_t)(1 << bit % 8);
        const Program *program =
            program_decode(each, diag, spec, "file", damaged, sizeof damaged);
        const uint8_t *out;
        size_t len;
        noticed += !program;
        assert_int_equal(diag_errors(diag) > 0, !program);
        if (program) {
            assert_true(program_encode(each, diag, program, &out, &len));
            assert_int_equal(len, sizeof bytes);
            assert_memory_equal(out, damaged, len);
        }
        arena_reset(each);
    }
    /* Free: version, entries' and taps' values, note, zero, addresses, scale,
     * and pairs of sizes that go together. */
    assert_true(noticed > sizeof bytes * 8 / 2);
    /* Cut anywhere. */
    for (size_t len = 0; len < sizeof bytes; len++) {
        Diag *diag = diag_new(each);
        assert_null(program_decode(each, diag, spec, "file", bytes, len));
        assert_true(diag_errors(diag) > 0);
        arena_reset(each);
    }
    arena_free(each);
    arena_free(arena);
}

/* ---- words of a machine that exists ---- */

/* Recorded words of a Vitis DPU, and what they say. */
static const uint32_t dpu_words[] = {
    0x01121000, 0x000000ff, 0x000000ff, 0x001f4800, /* LOAD of a bias */
    0x9440207f, 0x00001400, 0x0000000f, 0x00000000, /* CONVINIT */
    0x85500000, 0x7f000000, 0x00000000, 0x00008000, 0x00000000, /* CONV */
    0x85500000, 0x7f000001, 0x00000080, 0x00008001, 0x00000000,
    0x05110000, 0x000007ff, 0x7f0007ff, 0x00080000, /* a slot again */
    0x46208000, 0x00000000, 0x0f0000ff, 0x60000000, /* SAVE */
    0x72200000};                                    /* END */

static void dpu_words_are_read(void **state) {
    (void)state;
    enum { N = sizeof dpu_words / sizeof *dpu_words };
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = load(arena, "hwspec/targets/dpuczdx8g-isa0.yaml");
    uint8_t data[4 * N];
    for (int i = 0; i < 4 * N; i++)
        data[i] = (uint8_t)(dpu_words[i / 4] >> 8 * (i % 4));
    const Program *program =
        program_decode(arena, diag, spec, "words", data, sizeof data);
    assert_non_null(program);
    assert_int_equal(program->n_nodes, 7);
    const ProgNode *node = program->node;
    assert_int_equal(prog_num(&node[0].scope, "bank.id", 0), 33);
    assert_int_equal(prog_num(&node[0].scope, "channels", 0), 256);
    assert_int_equal(prog_num(&node[0].scope, "ddr.addr", 0), 0x1f4800);
    assert_int_equal(prog_num(&node[1].scope, "src.jump", 0), 128);
    assert_int_equal(prog_num(&node[1].scope, "kernel.w", 0), 1);
    assert_int_equal(prog_num(&node[3].scope, "weight.addr", 0), 128);
    assert_int_equal(prog_num(&node[3].scope, "src.groups", 0), 128);
    assert_int_equal(prog_num(&node[4].scope, "waits", 0), 5);
    assert_int_equal(prog_num(&node[5].scope, "ddr.base", 0), 3);
    assert_string_equal(prog_row_name(node[6].row), "end");
    const uint8_t *out;
    size_t len;
    assert_true(program_encode(arena, diag, program, &out, &len));
    assert_int_equal(len, sizeof data);
    assert_memory_equal(out, data, len);
    arena_free(arena);
}

/* ---- mistakes in files and texts ---- */

static const struct {
    size_t at;
    uint8_t is;
    uint32_t place;
    const char *message;
} damages[] = {
    {1, 0xcf, 1, "a constant is 23247, 23246 expected"},
    {7, 19, 18, "at(entries_of) was said to be 19, it is 18"},
    {11, 4, 24, "size(entries_of) was said to be 4, it is 6"},
    {16, 200, 18, "entries takes 200 bytes, the file ends after 64"},
    {26, 11, 26, "lines is 11, 2 * 5 = 10 expected: lines * in.h"},
    {29, 0x0a, 29, "bits 0x8 of b, which no field has, are set"},
    {29, 3, 29, "b.0..2 is 3: kinds has 1, 2, 7"},
    {24, 4, 24, "node 0: no row begins with these bytes"},
    {35, 0x2f, 34, "b.8..11 is 3, min(16, 5) = 5 expected: min(out.c, 5)"},
};

static void places_are_told(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, machine);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        Diag *diag = diag_new(arena);
        uint8_t damaged[sizeof bytes];
        memcpy(damaged, bytes, sizeof bytes);
        damaged[damages[i].at] = damages[i].is;
        assert_null(
            program_decode(arena, diag, spec, "file", damaged, sizeof damaged));
        const DiagMessage *first = diag_at(diag, 0);
        assert_string_equal(first->text, damages[i].message);
        assert_int_equal(first->loc.col, damages[i].place);
    }
    arena_free(arena);
}

static const struct {
    const char *text, *messages;
} texts[] = {
    {"", "0:0: nothing in it: no line of slice\n"},
    {"RUN in.w=3\n", "1:1: `RUN`: the first line is of slice\n"},
    {"slice version=3\nslice version=4\n", "2:1: `slice` stands here twice\n"},
    {"slice version=3 verson=4\n", "1:17: slice has no verson: version?\n"},
    {"slice version=70000 version=x\n",
     "1:15: version is 70000, 0..65535 can be\n"
     "1:21: version stands here twice\n"
     "1:29: `x` is no whole number\n"},
    {"slice version\n", "1:7: `version` is no NAME=VALUE\n"},
    {"slice version=3 entries=0\nHALT\n", "2:1: `HALT` is no row of slice\n"},
    {"slice version=3 entries=0\nLOAD at=3\n",
     "2:9: at is 3, 0..510 in steps of 2 can be\n"},
    {"slice version=3 entries=0\nRUN scale=abc kind=odd\n",
     "2:11: `abc` is no real number\n"
     "2:20: `odd` is no number, nor a word that is known\n"},
};

static const char *messages(Arena *arena, const Diag *diag) {
    Text out = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *m = diag_at(diag, i);
        text_addf(&out, "%u:%u: %s\n", m->loc.line, m->loc.col, m->text);
    }
    return text_str(&out);
}

static void texts_are_refused(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, machine);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Diag *diag = diag_new(arena);
        assert_null(program_parse(arena, diag, spec, "text", texts[i].text,
                                  strlen(texts[i].text)));
        assert_string_equal(messages(arena, diag), texts[i].messages);
    }
    arena_free(arena);
}

/* What only writing finds. */
static const struct {
    const char *node, *message;
} programs[] = {
    {"RUN in.w=12 in.h=5 kind=padded in.addr=5 out.addr=1 out.c=3\n",
     "RUN: kernel.w has no value"},
    {"RUN in.w=12 in.h=5 kind=padded in.addr=5 out.addr=1 out.c=1 kernel.w=2\n"
     "  taps[]= 1\n",
     "RUN: taps has 1 values, 2 expected"},
    {"RUN in.w=12 in.h=5 kind=padded in.addr=5 out.addr=1 out.c=17 "
     "kernel.w=1\n",
     "RUN: out.c is 17, 1..16 can be"},
    {"RUN in.w=1 in.h=5 kind=padded in.addr=5 out.addr=1 out.c=1 kernel.w=2\n"
     "  taps[]= 1 2\n",
     "RUN: in.w >= kernel.w does not hold: 1 >= 2"},
    {"RUN in.w=12 in.h=5 kind=plain pad.w=1 in.addr=5 out.addr=1 out.c=1 "
     "kernel.w=2\n  taps[]= 1 2\n",
     "RUN: no line of kinds has kind=0 pad.w=1"},
    {"RUN in.w=12 in.h=5 kind=plain out.w=3 in.addr=5 out.addr=1 out.c=1 "
     "kernel.w=2\n  taps[]= 1 2\n",
     "RUN: out.w is 3, in.w - kernel.w + 1 + 2 * pad.w = 11 expected"},
};

static void programs_are_refused(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, machine);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        Diag *diag = diag_new(arena);
        const char *whole = arena_printf(arena, "slice version=3 entries=0\n%s",
                                         programs[i].node);
        const Program *program =
            program_parse(arena, diag, spec, "text", whole, strlen(whole));
        const uint8_t *out;
        size_t len;
        if (!program)
            fail_msg("%s", diag_at(diag, 0)->text);
        assert_false(program_encode(arena, diag, program, &out, &len));
        assert_string_equal(diag_at(diag, 0)->text, programs[i].message);
        assert_int_equal(diag_at(diag, 0)->loc.line, 2);
    }
    arena_free(arena);
}

/* ---- mistakes in rows ---- */

static const struct {
    const char *from, *to, *message;
} rows[] = {
    {"b.4..7: last", "b.3..7: last", "b.3..7 overlaps b.0..3"},
    {"b.4..7: last", "b.4..17: last",
     "`b.4..17`: bits are PART.FIRST..LAST, within 0..15"},
    {"b.4..7: last", "q.4..7: last", "the word has no part q"},
    {"b.4..7: last", "b.4..7: lost", "unknown meaning lost: last?"},
    {"a.0..7: in.w - 1", "a.0..7: in.w % 8",
     "in.w % 8 cannot be read back: nothing else tells in.w"},
    {"f: 3,", "f: 300,", "300 does not fit 7 bits"},
    {"lines: ceil(in.w, 8)", "lines: ceil(in.w, last)",
     "division by last, which may be 0 (kernel.w: 1..16)"},
    {"lines: ceil(in.w, 8)",
     "lines: ceil(in.w, 8) + last * 0\n  a1: b1\n  "
     "b1: a1 + 1",
     "circle: a1 -> b1 -> a1"},
    {"default: {scale: 0, zero: 0}", "default: {scale: zero, zero: scale}",
     "circle: scale depends on itself"},
    {"{is: 7,", "{is: 2,", "2 stands in kinds twice"},
    {"{is: 7, kind: scaled, pad.w: 0}", "{is: 7, kind: scaled}",
     "all lines of kinds say the same meanings in one order"},
    {"kind: scaled,", "kind: bent,",
     "`bent` is not one of: plain, padded, scaled"},
    {"for: load", "for: lode",
     "`lode` is no operation (hwspec/ops.def, hwspec/host_ops.def)"},
    {"body: [LOAD]", "body: [LOUD]",
     "`LOUD` is no word, section or RECORD(OPERAND)"},
    {"- entries_of\n", "- {u8: 0}\n", "nothing uses entries_of of `sections`"},
    {"size: 16", "size: 3 x 99",
     "`3 x 99` is no size of a word: 12 x 64, up to 256 parts of up to 64 "
     "bits"},
    {"scale: f32", "scale: f64",
     "`f64` is no type: u8, s24, flag, f32, 0..9 or [1, 3]"},
    {"u8: [entries, note]", "u8: [note]",
     "the extent of an index: entries is not known yet where a file is read "
     "up to here"},
    {"when: kind == 2", "when: kind", "`when` takes a condition"},
    {"{each: {i: entries}, s16: \"entry[i]\"}", "{each: {i: entries}, fill: 0}",
     "what is repeated here may take no bytes"},
    {"require: [in.w >= kernel.w]", "require: [in.w]",
     "a requirement is a condition"},
};

static const char *replaced(Arena *arena, const char *whole, const char *from,
                            const char *to) {
    const char *at = strstr(whole, from);
    if (!at)
        fail_msg("no %s", from);
    return arena_printf(arena, "%.*s%s%s", (int)(at - whole), whole, to,
                        at + strlen(from));
}

static void rows_are_refused(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Bytes file;
    assert_true(file_read(arena, diag_new(arena), machine, &file));
    const char *whole = arena_strndup(arena, (const char *)file.at, file.len);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Diag *diag = diag_new(arena);
        const char *wrong = replaced(arena, whole, rows[i].from, rows[i].to);
        const HwSpec *spec = hwspec_read(arena, diag, "wrong.yaml", wrong,
                                         strlen(wrong), 0, NULL);
        if (spec)
            fail_msg("no error: %s", rows[i].message);
        assert_string_equal(diag_at(diag, 0)->text, rows[i].message);
        assert_true(diag_at(diag, 0)->loc.line > 0);
    }
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_written),
        cmocka_unit_test(are_read),
        cmocka_unit_test(are_built),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(dpu_words_are_read),
        cmocka_unit_test(places_are_told),
        cmocka_unit_test(texts_are_refused),
        cmocka_unit_test(programs_are_refused),
        cmocka_unit_test(rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
