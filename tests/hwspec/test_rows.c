/* Instruction rows: what each mistake in them is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "tests/hwspec/insn.h"

static const char rows[] =
    "fields:\n"
    "  id: step\n"
    "  src: in.addr\n"
    "  dst: {from: out.addr, as: hex}\n"
    "  k: kernel.w\n"
    "  layer: name\n"
    "  both: [src, dst]\n"
    "  deep: [deeper]\n"
    "  deeper: [deep]\n"
    "instructions:\n"
    "  RUN:\n"
    "    for: conv\n"
    "    text: id RUN both k\n"
    "    bits: [{field: code, word: 0, at: 0, width: 4, is: 1}]\n"
    "  LOAD: {for: load, text: id LOAD src dst}\n"
    "  SAVE: {for: store, text: id SAVE src dst}\n";

static const char machine[] =
    "machine: {name: tiny, clock: 1MHz, element: 1}\n"
    "memories:\n"
    "  am:  {role: active, size: 1KiB, layout: flat}\n"
    "  ddr: {role: backing, size: 4KiB, layout: flat}\n"
    "  in:  {role: input, size: 1KiB, layout: flat}\n"
    "  out: {role: output, size: 1KiB, layout: flat}\n"
    "layouts: {flat: {axes: [c, h, w]}}\n"
    "engines: {all: {runs: [conv], limits: {kernel.w: 1..14}}}\n";

static const char *swap(Arena *arena, const char *text, const char *from,
                        const char *to) {
    const char *at = strstr(text, from);
    if (!at)
        fail_msg("not in the text: %s", from);
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to,
                        at + strlen(from));
}

/* Lines are counted from `fields:`. */
static void check_rows(const char *head, const char *from, const char *to,
                       const char *wanted) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const char *text =
        arena_printf(arena, "%s%s", head, swap(arena, rows, from, to));
    uint32_t before = 0;
    for (const char *at = head; *at; at++)
        before += *at == '\n';
    const HwSpec *spec =
        hwspec_read(arena, diag, "tiny.yaml", text, strlen(text), 0, NULL);
    Text told = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *m = diag_at(diag, i);
        text_addf(&told, "%d:%u: %s\n", (int)m->loc.line - (int)before,
                  m->loc.col, m->text);
    }
    assert_string_equal(text_str(&told), wanted);
    assert_int_equal(!spec, *wanted != '\0');
    arena_free(arena);
}

/* One instruction, two operations, told apart by a constant and a name. */
static void conditions_are_written_and_read(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const char *text = arena_printf(
        arena, "%s%s", machine,
        swap(
            arena, rows, "  RUN:",
            "  ALU:\n"
            "    for: {max: {fn: 3, way: up}, add: {fn: 3, way: down}}\n"
            "    fields: {fn: {is: 0, as: hex}, way: {is: none}, b: in2.addr}\n"
            "    text: ALU fn way src b dst\n"
            "  RUN:"));
    const HwSpec *spec =
        hwspec_read(arena, diag, "tiny.yaml", text, strlen(text), 0, NULL);
    diag_print(diag, stderr);
    assert_non_null(spec);
    HwFields fields = {.has_op = true, .op = HW_OP_ADD};
    uint32_t row = (uint32_t)insn_row(spec, HW_OP_MAX);
    HwInsn insn = insn_build(arena, spec, row, &fields, NULL);
    const char *line = insn_print(arena, spec, &insn);
    assert_string_equal(line, "ALU 0x3 down 0 0 0x0");
    insn = parsed(arena, spec, line);
    assert_int_equal(insn_op(spec, &insn), HW_OP_ADD);
    insn = parsed(arena, spec, "ALU 3 up 0 0 0");
    assert_int_equal(insn_op(spec, &insn), HW_OP_MAX);
    line = "ALU 3 left 0 0 0";
    assert_int_equal(insn_parse(arena, diag, spec, line, strlen(line),
                                (Loc){"f", 1, 1}, &insn),
                     INSN_ERROR);
    assert_string_equal(diag_at(diag, 0)->text,
                        "these fields make ALU none of: max, add");
    arena_free(arena);
}

static void bad_dictionary(void **state) {
    (void)state;
    check_rows(machine, "k: kernel.w", "k: kernel.w", "");
    check_rows(machine, "k: kernel.w", "k: kernel.x",
               "5:6: `kernel.x` is no meaning of a field; did you mean "
               "`kernel.w`? docs/hwspec.md has all\n");
    check_rows(machine, "k: kernel.w", "k: {from: kernel.w, is: 1}",
               "5:6: `k` needs either `from` or `is`\n");
    check_rows(machine, "k: kernel.w", "k: {from: [kernel.w, name]}",
               "5:13: one of these meanings is a number, the other a string\n");
    check_rows(machine, "layer: name", "layer: {from: name, as: hex}",
               "6:27: `layer` is a string, not a number\n");
    check_rows(machine, "k: kernel.w", "k: {from: kernel.w, unit: 0}",
               "5:29: the unit must not be 0\n");
    check_rows(machine, "k: kernel.w", "7: kernel.w\n  k: kernel.w",
               "5:3: `7` cannot be the name of a token\n");
}

static void fields_are_a_map(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const char *text = arena_printf(arena,
                                    "%sfields: [step]\n"
                                    "instructions:\n"
                                    "  RUN: {for: conv, text: RUN}\n",
                                    machine);
    assert_null(
        hwspec_read(arena, diag, "tiny.yaml", text, strlen(text), 0, NULL));
    assert_string_equal(diag_at(diag, 0)->text,
                        "a map is expected here, not a list");
    arena_free(arena);
}

/* Every operation that an engine runs needs a row, whatever its number. */
static void every_operation_has_a_row(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    check_rows(swap(arena, machine, "[conv]", "[conv, fc, upsample]"),
               "k:", "k:",
               "0:11: engine `all` runs `upsample`, which no instruction is "
               "for\n"
               "0:11: engine `all` runs `fc`, which no instruction is for\n");
    arena_free(arena);
}

/* What a machine with rings is told whose RUN, ADD, LOAD and SAVE have these
 * tokens besides addresses. */
static void check_moves(const char *moved, const char *run, const char *add,
                        const char *load, const char *save,
                        const char *wanted) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const char *text = arena_printf(
        arena,
        "%stiling: {kind: software, ops: [conv, add], rings: true}\n"
        "fields: {src: in.addr, dst: out.addr, two: in2.addr, ri: in.ring,"
        " qi: in.row, ro: out.ring, qo: out.row, r2: in2.ring, q2: in2.row,"
        " f: row.first, l: row.last, c: in.c, h: in.h, w: in.w}\n"
        "instructions:\n"
        "  RUN: {for: conv, text: RUN src dst %s}\n"
        "  ADD: {for: add, text: ADD src two dst %s}\n"
        "  LOAD: {for: load, text: LOAD src dst %s %s}\n"
        "  SAVE: {for: store, text: SAVE src dst f l c h w %s}\n",
        swap(arena, machine, "[conv]", "[conv, add]"), run, add, moved, load,
        save);
    const HwSpec *spec =
        hwspec_read(arena, diag, "tiny.yaml", text, strlen(text), 0, NULL);
    Text told = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const char *needs = strstr(diag_at(diag, i)->text, "it needs ");
        text_addf(&told, "%u: %s\n", diag_at(diag, i)->loc.line,
                  needs ? needs : diag_at(diag, i)->text);
    }
    assert_string_equal(text_str(&told), wanted);
    assert_int_equal(!spec, *wanted != '\0');
    arena_free(arena);
}

static void check_rings(const char *run, const char *add, const char *load,
                        const char *save, const char *wanted) {
    check_moves("f l c h w", run, add, load, save, wanted);
}

/* Where layers run by rows, a load says which rows of what it moves. */
static void moved_rows_are_told(void **state) {
    (void)state;
    static const char *const lacks[][2] = {
        {"l c h w", "14: LOAD does not tell `row.first`\n"},
        {"f c h w", "14: LOAD does not tell `row.last`\n"}};
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        check_moves(lacks[i][0], "ri qi ro qo", "ri qi ro qo r2 q2", "ro", "ri",
                    lacks[i][1]);
}

/* Where rings are used, each operand in active memory tells its own. */
static void rings_are_told(void **state) {
    (void)state;
    const char *two = "ri qi ro qo", *all = "ri qi ro qo r2 q2";
    check_rings(two, all, "ro", "ri", "");
    check_rings("qi ro qo", all, "ro", "ri",
                "12: it needs `in.ring` and `in.row`\n");
    check_rings("ri qi ro", all, "ro", "ri",
                "12: it needs `out.ring` and `out.row`\n");
    check_rings(two, two, "ro", "ri",
                "13: it needs `in2.ring` and `in2.row`\n");
    check_rings(two, all, "", "ri", "14: it needs `out.ring`\n");
    check_rings(two, all, "ro", "", "15: it needs `in.ring`\n");
}

static void bad_texts(void **state) {
    (void)state;
    check_rows(machine, "id RUN both k", "id RUN both q",
               "13:23: `q` is neither the mnemonic RUN, nor a number, nor a "
               "name under `fields`\n");
    check_rows(machine, "id RUN both k", "id RUN both src k",
               "13:23: `src` stands twice in this text\n");
    check_rows(machine, "id RUN both k", "id both k",
               "13:11: this text lacks the mnemonic RUN\n");
    check_rows(machine, "id RUN both k", "id RUN both deep",
               "9:12: `deep`: lists within lists, too deep\n");
    check_rows(machine, "for: conv\n", "for: convolve\n",
               "12:10: `convolve` is no operation (did you mean `conv`? "
               "hwspec/ops.def)\n");
    check_rows(machine, "for: conv\n", "for: {conv: {layer: 1}}\n",
               "12:18: `layer` is no token of the text of RUN\n");
    check_rows(machine, "for: conv\n", "for: conv\n    implies: {pad.q: 1}\n",
               "13:15: `pad.q` is no meaning of a field that is a number\n");
    check_rows(machine, "for: conv\n",
               "for: conv\n    implies: {pad.w: kernel.w*2}\n",
               "13:22: `kernel.w*2` is no number, field or FIELD/NUMBER\n");
}

static void bad_excuses(void **state) {
    (void)state;
    check_rows(machine, "for: conv\n", "for: conv\n    unread: [k]\n", "");
    check_rows(machine, "for: conv\n", "for: conv\n    unread: [q]\n",
               "13:14: `q` is no token of the texts of RUN\n");
    check_rows(machine, "for: conv\n", "for: {conv: {k: 1}}\n    unread: [k]\n",
               "13:14: `k` tells the operations of RUN apart\n");
    check_rows(machine, "k: kernel.w", "k: {from: kernel.w, later: true}",
               "5:30: `k` has no `is`\n");
}

static void bad_machines(void **state) {
    (void)state;
    check_rows(machine, "for: store", "for: host",
               "-4:3: there is a backing memory, but no instruction is for "
               "`store`\n");
    check_rows(machine, "for: conv\n", "for: pool_max\n",
               "0:11: engine `all` runs `conv`, which no instruction is for\n");
    check_rows(machine, "id RUN both k", "id RUN src k",
               "11:3: RUN does not say where its `out` operand lies: it needs "
               "`out.addr`, or `out.buffer` and `out.offset`\n");
    Arena *arena = arena_new("test");
    const char *two = swap(
        arena, machine,
        "  ddr:", "  am2: {role: active, size: 1KiB, layout: flat}\n  ddr:");
    check_rows(two, "k: kernel.w", "k: kernel.w",
               "11:3: the `in` operand of RUN may lie in `am` or `am2`: it "
               "needs `in.memory`, or the memories different `base` "
               "addresses\n"
               "11:3: the `out` operand of RUN may lie in `am` or `am2`: it "
               "needs `out.memory`, or the memories different `base` "
               "addresses\n"
               "15:3: the `out` operand of LOAD may lie in `am` or `am2`: it "
               "needs `out.memory`, or the memories different `base` "
               "addresses\n"
               "16:3: the `in` operand of SAVE may lie in `am` or `am2`: it "
               "needs `in.memory`, or the memories different `base` "
               "addresses\n");
    const char *apart = swap(
        arena, machine, "  ddr:",
        "  am2: {role: active, size: 1KiB, base: 1024, layout: flat}\n  ddr:");
    check_rows(apart, "k: kernel.w", "k: kernel.w", "");
    arena_free(arena);
}

/* What tells operations apart says what the operation alone decides. */
static void operations_are_told_by_what_they_decide(void **state) {
    (void)state;
#define FOR "for: conv\n"
    check_rows(machine, FOR, "for: {conv: {k: 3}}\n",
               "12:18: `k` cannot tell `conv` from others: it means "
               "`kernel.w`, which differs from layer to layer\n");
    check_rows(machine, FOR,
               "for: {conv: {k: 2}}\n    fields: {k: groups}\n",
               "12:18: `k` is 1 of `conv`, since it means `groups`\n");
    check_rows(machine, FOR,
               "for: {conv: {k: 1}}\n    fields: {k: groups}\n", "");
    check_rows(machine, FOR, "for: {conv: {k: 12}}\n    fields: {k: add}\n",
               "12:18: `k` is 0 of `conv`, since it means `add`\n");
    check_rows(machine, FOR,
               "for: {conv: {k: 1}}\n    fields: {k: factor.h}\n", "");
    check_rows(machine, FOR, "for: {conv: {k: 7}}\n    fields: {k: {is: 0}}\n",
               "");
#undef FOR
}

/* An activation needs a token that tells it; leaky and prelu share a flag. */
static void untold_activations(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *acts[] = {"relu", "leaky, prelu", "relu, tanh"};
    const char *head[3];
    for (int i = 0; i < 3; i++)
        head[i] =
            swap(arena, machine, "limits",
                 arena_printf(arena, "activations: [%s], limits", acts[i]));
#define K "k: kernel.w"
#define UNTOLD(act)                                                            \
    "0:44: engine `all` applies `" act "` to `conv`, but no token of RUN "     \
    "tells it: one must mean `act`"
    check_rows(head[0], K, K, UNTOLD("relu") " or `relu`\n");
    check_rows(head[0], K, "k: relu", "");
    check_rows(head[0], K, "k: prelu", UNTOLD("relu") " or `relu`\n");
    check_rows(head[1], K, "k: relu",
               UNTOLD("leaky") " or `prelu`\n" UNTOLD("prelu") " or `prelu`\n");
    check_rows(head[1], K, "k: prelu", "");
    check_rows(head[2], K, "k: relu", UNTOLD("tanh") "\n");
    check_rows(head[2], K, "k: act", "");
#undef UNTOLD
#undef K
    arena_free(arena);
}

#define CODE "{field: code, word: 0, at: 0, width: 4, is: 1}"

static void bad_bits(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    check_rows(swap(arena, machine, "1..14", "0"), CODE,
               CODE ", {field: k, word: 0, at: 8, width: auto}", "");
    check_rows(machine, CODE, CODE ", {field: k, word: 0, at: 3, width: 4}",
               "14:60: bits 3 to 6 of word 0 overlap those of `code`\n");
    check_rows(machine, CODE,
               "{word: 0, at: 0, width: 4, is: 1}, "
               "{field: k, word: 0, at: 3, width: 4}",
               "14:47: bits 3 to 6 of word 0 overlap those of a constant\n");
    check_rows(machine, CODE,
               "{word: 0, at: 0, width: 4, is: 16}, "
               "{field: k, word: 0, at: 3, width: 4}",
               "14:43: 16 does not fit into 4 bits\n");
    check_rows(machine, CODE, CODE ", {field: k, word: 0, at: 4, width: 3}",
               "14:94: `k` needs 4 bits, for 1 to 14; it has 3\n");
    check_rows(machine, CODE, CODE ", {field: k, word: 0, at: 4, width: 4}",
               "");
    check_rows(machine, CODE, CODE ", {field: k, word: 63, at: 60, width: 4}",
               "");
    check_rows(machine, CODE, CODE ", {field: k, word: 64, at: 0, width: 4}",
               "14:60: an instruction has at most 64 words\n");
    check_rows(machine, CODE, CODE ", {field: k, word: 0, at: 64, width: 4}",
               "14:60: bits 64 to 67 are outside a word of 64 bits\n");
    check_rows(machine, CODE,
               CODE ", {word: 1, at: 0, width: 64, is: 1}, "
                    "{word: 1, at: 63, width: 1, is: 0}",
               "14:96: bits 63 to 63 of word 1 overlap those of a constant\n");
    check_rows(machine, CODE, CODE ", {field: k, word: 0, at: 62, width: 4}",
               "14:60: bits 62 to 65 are outside a word of 64 bits\n");
    check_rows(machine, CODE, CODE ", {field: k, word: 0, at: 64, width: 4}",
               "14:60: bits 64 to 67 are outside a word of 64 bits\n");
    check_rows(machine, CODE, CODE ", {field: k, word: 63, at: 60, width: 4}",
               "");
    check_rows(machine, CODE, CODE ", {field: k, word: 64, at: 0, width: 4}",
               "14:60: an instruction has at most 64 words\n");
    check_rows(machine, CODE,
               CODE ", {field: k, word: 0, at: 8, width: 8, bias: 2}",
               "14:60: `k` can be -1 here, and is not `signed`\n");
    check_rows(machine, CODE,
               CODE ", {field: k, word: 0, at: 8, width: 4, bias: 2, "
                    "signed: true}",
               "14:94: `k` needs 5 bits, for -1 to 12; it has 4\n");
    check_rows(machine, CODE,
               CODE ", {field: k, word: 0, at: 8, width: 2, unit: 2}",
               "14:94: `k` needs 3 bits, for 0 to 7; it has 2\n");
    check_rows(machine, CODE, CODE ", {field: id, word: 0, at: 8, width: auto}",
               "14:95: nothing bounds `id`: its width must be given\n");
    check_rows(machine, "  LOAD:",
               "  IDLE: {for: fc, text: src IDLE dst, bits: [{field: code, "
               "word: 0, at: 0, width: 4, is: 2}, {field: src, word: 0, at: 8, "
               "width: auto}]}\n  LOAD:",
               ""); /* a variant that runs less than its rows are for */
    check_rows(machine, CODE, CODE ", {field: RUN, word: 0, at: 8, width: 8}",
               "14:68: `RUN` is no token of this row's text\n");
    check_rows(machine, CODE,
               CODE ", {field: k, word: 0, at: 8, width: 4}, "
                    "{field: k, word: 0, at: 12, width: 4}",
               "14:106: `k` has bits already\n");
    check_rows(machine, CODE, CODE ", {field: src, word: 0, at: 8, width: 9}",
               "14:96: `src` needs 10 bits, for 0 to 1023; it has 9\n");
    check_rows(machine, "bits: [" CODE "]", "bits: " CODE,
               "14:11: a list is expected here, not a map\n");
    /* Operands of the engine lie in the second, smaller active memory. */
    check_rows(swap(arena,
                    swap(arena, machine, "  ddr:",
                         "  low: {role: active, size: 64, base: 4, "
                         "layout: flat}\n  ddr:"),
                    "limits:", "memories: [low], limits:"),
               CODE,
               CODE ", {field: src, word: 0, at: 8, width: auto}, "
                    "{field: dst, word: 0, at: 16, width: 6}",
               "14:140: `dst` needs 7 bits, for 4 to 67; it has 6\n");
    check_rows(machine, "is: 1}", "is: 16}",
               "14:56: 16 does not fit into 4 bits\n");
    check_rows(machine, "LOAD src dst}",
               "LOAD src dst, bits: [{field: code, word: 0, at: 4, width: 4, "
               "is: 1}]}",
               "15:3: no constant bits tell LOAD from RUN\n");
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_written_and_read),
        cmocka_unit_test(bad_dictionary),
        cmocka_unit_test(fields_are_a_map),
        cmocka_unit_test(every_operation_has_a_row),
        cmocka_unit_test(rings_are_told),
        cmocka_unit_test(moved_rows_are_told),
        cmocka_unit_test(bad_texts),
        cmocka_unit_test(bad_excuses),
        cmocka_unit_test(bad_machines),
        cmocka_unit_test(operations_are_told_by_what_they_decide),
        cmocka_unit_test(untold_activations),
        cmocka_unit_test(bad_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
