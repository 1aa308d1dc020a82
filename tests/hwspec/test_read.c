/* The reader: what each shipped target says, and what each mistake is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/yaml.h"
#include "hwspec/cost.h"
#include "hwspec/hwspec.h"
#include "tests/effort.h"

#include <string.h>

static const char tiny[] =
    "machine: {name: tiny, clock: 1MHz, element: 1}\n"
    "memories:\n"
    "  am:  {role: active, size: 1KiB, layout: flat}\n"
    "  in:  {role: input, size: 1KiB, layout: flat}\n"
    "  out: {role: output, size: 1KiB, layout: flat}\n"
    "layouts:\n"
    "  flat: {axes: [c, h, w]}\n"
    "engines:\n"
    "  all: {runs: [conv], limits: {kernel.w: 1..14}}\n"
    "fields: {id: step, op: mnemonic, src: in.addr, dst: out.addr}\n"
    "instructions:\n"
    "  RUN: {for: conv, text: id RUN src dst}\n";

/* All messages, one a line: "line:col: text". */
static const char *messages(Arena *arena, const Diag *diag) {
    Text text = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *m = diag_at(diag, i);
        text_addf(&text, "%u:%u: %s\n", m->loc.line, m->loc.col, m->text);
    }
    return text_str(&text);
}

static const char *replaced(Arena *arena, const char *text, const char *from,
                            const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to,
                        at + strlen(from));
}

static const HwSpec *read_text(Arena *arena, Diag *diag, const char *text) {
    return hwspec_read(arena, diag, "tiny.yaml", text, strlen(text), 0, NULL);
}

static void check_bad(const char *from, const char *to, const char *wanted) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const char *text = replaced(arena, tiny, from, to);
    assert_null(read_text(arena, diag, text));
    assert_string_equal(messages(arena, diag), wanted);
    arena_free(arena);
}

static void smallest_machine(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = read_text(arena, diag, tiny);
    assert_string_equal(messages(arena, diag), "");
    assert_non_null(spec);
    assert_string_equal(spec->machine, "tiny");
    assert_int_equal(spec->n_memories, 3);
    assert_int_equal(spec->n_active, 1);
    assert_int_equal(spec->backing, -1);
    assert_int_equal(spec->input, 1);
    assert_int_equal(spec->output, 2);
    assert_int_equal(spec->memory[0].unit, 1);
    assert_int_equal(spec->memory[0].align, 1);
    assert_int_equal(spec->memory[2].id, 2);
    assert_int_equal(spec->engine[0].lies[HW_OUT], 1);
    assert_true(spec->engine[0].clock == 1e6);
    assert_int_equal(hwspec_engine(spec, HW_OP_CONV), 0);
    assert_int_equal(hwspec_engine(spec, HW_OP_FC), -1);
    assert_false(hw_range_has(&spec->engine[0].limit[HW_LIMIT_KERNEL_W], 15));
    assert_true(hw_range_has(&spec->engine[0].limit[HW_LIMIT_KERNEL_H], 15));
    arena_free(arena);
}

static void bad_keys(void **state) {
    (void)state;
    check_bad("size: 1KiB, layout", "sise: 1KiB, size: 1KiB, layout",
              "3:23: unknown key `sise`; did you mean `size`?\n");
    check_bad("kernel.w: 1..14", "kernel.v: 1..14",
              "9:32: unknown key `kernel.v`; did you mean `kernel.w`?\n");
    check_bad("  in:", "  am:",
              "4:3: the key `am` is there twice\n3:3: the first is here\n"
              "3:3: no memory has the role `input`\n");
    check_bad("clock: 1MHz, ", "", "1:10: the key `clock` is missing\n");
    check_bad("machine: {name: tiny, clock: 1MHz, element: 1}\n", "",
              "1:1: the key `machine` is missing\n");
    check_bad("runs: [conv], ", "", "9:8: the key `runs` is missing\n");
    check_bad("engines:\n", "tilling: {kind: none}\nengines:\n",
              "8:1: unknown key `tilling`; did you mean `tiling`?\n");
}

static void bad_values(void **state) {
    (void)state;
    check_bad("role: active, size: 1KiB",
              "role: active, load: callback, size: 1KiB",
              "3:29: only constants are loaded on demand\n");
    check_bad("role: active, size: 1KiB", "role: active, piece: 8, size: 1KiB",
              "3:30: only constants are loaded on demand\n");
    check_bad("size: 1KiB", "size: 1KHz",
              "3:29: `1KHz` is not a whole number of bytes (4096, 512KiB, "
              "4.5MiB, 1GB)\n");
    check_bad("size: 1KiB", "size: 0",
              "3:29: a memory of `0` bytes holds nothing\n");
    check_bad("size: 1KiB", "size: 300000GiB",
              "3:29: a memory of `300000GiB` is beyond 256 TiB\n");
    check_bad("1MHz", "1MB",
              "1:30: `1MB` is not a frequency (800MHz, "
              "1.2GHz)\n");
    check_bad("element: 1", "element: 0",
              "1:45: `0` is not a number of bytes from 1 to 64\n");
    check_bad("1..14", "14..1",
              "9:42: the range `14..1` is empty: 14 is above 1\n");
    check_bad("1..14", "few",
              "9:42: `few` is not a range (1..14, 3.., ..9, 5, "
              "or a list)\n");
    check_bad("1..14", "..",
              "9:42: `..` is not a range (1..14, 3.., ..9, 5, "
              "or a list)\n");
    check_bad("1..14", "[]", "9:42: the list is empty: nothing is allowed\n");
    char unknown[2048];
    size_t n = (size_t)snprintf(unknown, sizeof unknown,
                                "9:22: `cnv` is not one of: ");
    for (uint32_t i = 0; hw_op_name[i]; i++)
        n += (size_t)snprintf(unknown + n, sizeof unknown - n, "%s%s",
                              i ? ", " : "", hw_op_name[i]);
    snprintf(unknown + n, sizeof unknown - n, "; did you mean `conv`?\n");
    check_bad("[conv]", "[conv, cnv]", unknown);
    check_bad("[conv]", "[conv, conv]",
              "9:22: `conv` stands here a second time\n");
    check_bad("[conv]", "[conv, load]",
              "9:15: `load` is not the work of an engine\n");
    check_bad("layout: flat", "layout: thin",
              "3:43: `thin` is not one of: flat\n");
    check_bad("size: 1KiB", "size: 1KiB, bandwidth: 1GB",
              "3:46: `1GB` is not a bandwidth (17.28GB/s)\n");
    check_bad("size: 1KiB", "size: 1KiB, latency: 3min",
              "3:44: `3min` is not a time (200ns, 1.5us)\n");
}

static void bad_memories(void **state) {
    (void)state;
    check_bad("role: output", "role: input",
              "5:3: `out` is a second memory of role `input`: `in` is one\n"
              "3:3: no memory has the role `output`\n");
    check_bad("role: active", "role: input",
              "4:3: `in` is a second memory of role `input`: `am` is one\n"
              "3:3: no memory has the role `active`\n");
    check_bad("role: output", "role: weights",
              "3:3: no memory has the role `output`\n"
              "5:3: nothing loads `out`: weights need "
              "`tiling.weights_from`\n");
    check_bad("size: 1KiB", "size: 1KiB, unit: 4, align: 6",
              "3:51: align is 6 bytes: no multiple of the address unit, 4\n");
    check_bad("size: 1KiB", "size: 1KiB, buffers: 2000",
              "3:44: 2000 buffers in 1024 bytes\n");
    check_bad("size: 1KiB", "size: 1KiB, base: 0xffffffffffffffff",
              "3:41: a base of 18446744073709551615 is beyond 2^48\n");
    check_bad("size: 1KiB", "size: 1KiB, buffers: 9",
              "3:3: 9 active memories, each fixed buffer counted; at most 8 "
              "are possible\n");
}

/* The list of axes becomes a list of cases. */
static void check_bad_cases(const char *cases, const char *wanted) {
    Arena *arena = arena_new("test");
    check_bad("axes: [c, h, w]", arena_printf(arena, "cases: %s", cases),
              wanted);
    arena_free(arena);
}

static void bad_cases(void **state) {
    (void)state;
    check_bad_cases("[{when: {w: ..16}, axes: [c, h, w]}, "
                    "{when: {w: ..64}, axes: [c, w, h]}]",
                    "7:17: cases leave w = 65.. open\n");
    check_bad_cases("[{when: {c: 3, w: ..16}, axes: [c, h, w]}, "
                    "{when: {w: 9..}, axes: [c, h, w]}]",
                    "7:17: cases leave c = 1..2, w = 1..8 open\n");
    check_bad_cases("[{when: {w: ..16}, axes: [c, h, w]}, "
                    "{when: {w: 4..9}, axes: [c, w, h]}, {axes: [c, h, w]}]",
                    "7:54: case 2 is never taken\n");
    check_bad_cases("[{axes: [c, h, w]}, {axes: [c, w, h]}]",
                    "7:37: case 2 is never taken\n");
    check_bad_cases("[{when: {w: [1]}, axes: [c, h, w]}, {axes: [c, w, h]}]",
                    "7:29: extents of a case are from .. to, from 1 on\n");
    check_bad_cases("[{when: {w: 1, x: 1}, axes: [c, h, w]}, "
                    "{axes: [c, w, h]}]",
                    "7:32: unknown key `x`\n");
    check_bad_cases("[{axes: [c, h]}]", "7:18: the axis `w` is missing\n");
    check_bad_cases("[{when: {w: 1..}}]", "7:18: the key `axes` is missing\n");
    check_bad_cases("[]", "7:17: 1 to 16 cases\n");
    check_bad("axes: [c, h, w]", "axes: [c, h, w], cases: [{axes: [c, h, w]}]",
              "7:9: a layout has `axes`, or `cases` with axes each\n");
    check_bad("axes: [c, h, w]", "element: 2",
              "7:9: a layout has `axes`, or `cases` with axes each\n");
}

static void bad_layouts(void **state) {
    (void)state;
    check_bad("[c, h, w]", "[c, h]", "7:16: the axis `w` is missing\n");
    check_bad("[c, h, w]", "[c, h, w, c]",
              "7:16: the axis `c` stands there twice\n");
    check_bad("[c, h, w]", "[c/8, h, w]",
              "7:16: the axis `c` has only one of its two parts\n");
    check_bad("[c, h, w]", "[c/8, h, w, c%16]",
              "7:16: the axis `c` has parts of two different splits\n");
    check_bad("[c, h, w]", "[c/8, h, w, c%8, c]",
              "7:16: the axis `c` stands there whole and in parts\n");
    check_bad("[c, h, w]", "[c, h, x]",
              "7:23: `x` is not an axis: c, h, w, or a part such as c/96 "
              "(which section) or c%96 (where in it)\n");
    check_bad("[c, h, w]", "[c, h, w/0, w%0]",
              "7:23: `w/0` is not an axis: c, h, w, or a part such as c/96 "
              "(which section) or c%96 (where in it)\n"
              "7:28: `w%0` is not an axis: c, h, w, or a part such as c/96 "
              "(which section) or c%96 (where in it)\n");
    check_bad("[c, h, w]", "[c, h, {w: {clip: true}}]",
              "7:34: only an inner part such as w%28 can be clipped\n");
    check_bad("[c, h, w]", "[c, h, w/fit, w%fit]",
              "7:16: `fit` cannot be computed: it stands for one split that "
              "makes the inner parts fill `word` bytes\n");
}

static void bad_engines(void **state) {
    (void)state;
    check_bad("[conv],", "[conv], beside: [all],",
              "9:3: engine `all` cannot run beside itself\n");
    check_bad("[conv],", "[conv], memories: [ram],",
              "9:34: `ram` is not one of: am, in, out\n");
    check_bad("[conv],", "[conv], memories: [in, out],",
              "9:33: engine `all` needs an active memory to work in\n");
    check_bad("[conv],", "[conv], operands: {in2: [am], out: [in]},",
              "9:50: engine `all` needs an active memory for its operand "
              "`out`\n");
    check_bad("[conv],", "[conv], operands: {acc: [am]},",
              "9:34: unknown key `acc`\n");
    check_bad("[conv],", "[conv], activations: {add: [relu]},",
              "9:42: the engine does not run `add`\n");
    check_bad("[conv],", "[conv], efficiency: 1.5,",
              "9:35: `1.5` is not a share above 0 and up to 1\n");
    check_bad("[conv],", "[conv], unroll: {out_c: 0},",
              "9:39: `0` is not a whole number from 1\n");
}

static void bad_sections(void **state) {
    (void)state;
    const char *at = "engines:\n";
    check_bad(at,
              "replication: {section: 8, memories: [am], stored: [{units: 2, "
              "width: 5}]}\nengines:\n",
              "8:52: 2 copies of 5 channels do not fit into a section of 8\n"
              "8:37: the layout of `am` has no sections of 8 channels\n");
    check_bad(at, "listing: {input_step: 1}\nengines:\n",
              "8:23: 1 is the number of the first layer: loads of inputs would "
              "be said to run beside it\n");
    check_bad(at, "tiling: {kind: software, ops: [add]}\nengines:\n",
              "8:32: no engine runs `add`\n");
    check_bad(at,
              "tiling: {kind: hardware, styles: [{from: in, to: am, ops: "
              "[conv], buffers: [0, 1/4], buffer_size: 1/2}]}\nengines:\n",
              "8:42: `from` is outside active memory, of which no memory is "
              "the backing\n"
              "8:76: the two input tiles overlap\n"
              "8:59: the style from `in` to `am` tiles `conv`, but engine "
              "`all` has no `in` in its `memories` or `operands`\n");
    check_bad(at,
              "tiling: {kind: hardware, styles: [{from: am, to: am, ops: "
              "[conv], sums: 4, dest: 1/2}]}\nengines:\n",
              "8:35: the key `reserved` is missing\n"
              "8:82: `dest` and `sums` exclude each other\n");
    check_bad(at,
              "tiling: {kind: software, ops: [conv], always: [conv]}\n"
              "engines:\n",
              "8:47: `always` belongs to kind `hardware`, not `software`\n");
    check_bad(at,
              "tiling: {kind: software, ops: [conv], lines: true}\nengines:\n",
              "8:9: `lines` needs `rings`\n");
    check_bad(at,
              "tiling: {kind: software, ops: [conv], rings: true, lines: true, "
              "weights_move: true}\nengines:\n",
              "13:3: `tiling.rings` is set, but RUN does not tell the rings of "
              "its operands in active memory: it needs `in.ring` and `in.row`\n"
              "13:3: `tiling.lines` is set, but RUN does not tell the line "
              "buffers of its operands in active memory: they need "
              "`line.band`, `line.keep`, `line.span`, `line.shift`, and `col` "
              "and `pitch`\n"
              "8:65: `weights_move` has no meaning any more: plans are made "
              "for the machine as it is, by --objective\n");
    check_bad(at, "tiling: {kind: hardware, ops: [conv]}\nengines:\n",
              "8:31: `ops` belongs to kind `software`, not `hardware`\n"
              "8:9: the key `styles` is missing\n");
    check_bad(at, "tiling: {kind: magic}\nengines:\n",
              "8:16: `magic` is not one of: none, software, hardware\n");
    check_bad(at,
              "weight_cache: {pingpong: 3, full_rate: 2, half_rate: 1}\n"
              "engines:\n",
              "8:15: pingpong, full_rate, half_rate must not fall: 3, 2, 1\n");
    check_bad("engines:\n", "rewrites: {act_of_codes: true}\nengines:\n",
              "8:26: codes would be others than the network's, and there is no "
              "`container`\n");
    check_bad("engines:\n  all: {runs: [conv], limits: {kernel.w: 1..14}}\n",
              "engines: [{runs: [conv]}]\n",
              "8:10: a map is expected here, not a list\n");
}

static void all_errors_at_once(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const char *text = replaced(arena, tiny, "1MHz", "fast");
    text = replaced(arena, text, "[c, h, w]", "[c, h]");
    text = replaced(arena, text, "1..14", "2..1");
    text = replaced(arena, text, "for: conv", "fro: conv");
    assert_null(read_text(arena, diag, text));
    assert_true(diag_errors(diag) >= 4);
    const char *all = messages(arena, diag);
    assert_non_null(strstr(all, "1:30: `fast` is not a frequency"));
    assert_non_null(strstr(all, "7:16: the axis `w` is missing"));
    assert_non_null(strstr(all, "9:42: the range `2..1` is empty"));
    assert_non_null(strstr(all, "unknown key `fro`"));
    arena_free(arena);
}

/* ---- files ---- */

static const HwSpec *load(Arena *arena, const char *name, const char *path,
                          const char *value, const char *wanted) {
    Diag *diag = diag_new(arena);
    HwSetting setting = {path, value};
    const HwSpec *spec = hwspec_load(arena, diag, name, path ? 1 : 0, &setting);
    assert_string_equal(messages(arena, diag), wanted);
    assert_true((*wanted != 0) == (spec == NULL));
    return spec;
}

static void bad_files(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    load(arena, "tests/hwspec/data/loop_a.yaml", NULL, NULL,
         "1:10: `tests/hwspec/data/./loop_a.yaml` extends itself in the "
         "end\n");
    load(arena, "nosuch", NULL, NULL,
         "0:0: no target is called `nosuch`; there are: cortex-m4, "
         "cpu-aarch64, cpu-riscv64, cpu-x86-64, cpu-x86-64-v4, darius-32, "
         "darius-64, dpuczdx8g, dpuczdx8g-b1024, dpuczdx8g-b1152, "
         "dpuczdx8g-b1600, dpuczdx8g-b2304, dpuczdx8g-b3136, dpuczdx8g-b4096, "
         "dpuczdx8g-b512, dpuczdx8g-b800, dpuczdx8g-isa0, gemmini-16, k210, "
         "line-npu, "
         "math-engine, max78000, max78002, n64, ne16, null, nvdla-small, "
         "ring-npu, stage-npu, "
         "template, "
         "tile-npu, vision-npu, vta-pynq, vta-words, xdnn-v2-28, xdnn-v2-56, "
         "xdnn-v3-96; "
         "or "
         "give a path, with a `/` or ending in .yaml\n");
    load(arena, "xdnn-v2-28", "memories.am.sise", "1",
         "0:0: nothing is called `memories.am.sise`; did you mean `size`? "
         "there are: role, size, "
         "unit, align, partitions, ports, layout; also base, id, buffers, "
         "bandwidth, latency, row_setup, burst, cost, "
         "load, piece, channel\n");
    load(arena, "xdnn-v2-28", "memories.dm.row_setup", "1ns",
         "0:0: nothing is called `memories.dm`; there are: am, ddr, inputs, "
         "outputs\n");
    load(arena, "template", "weight_cache.bandwidth", "1GB/s",
         "0:0: the key `pingpong` is missing\n"
         "0:0: the key `full_rate` is missing\n"
         "0:0: the key `half_rate` is missing\n");
    load(arena, "xdnn-v3-96", "engines.conv.unroll.row_taps", "8",
         "64:3: engine `conv`: `unroll.row_taps` is not for "
         "`tiling.kind: hardware`\n");
    load(arena, "xdnn-v2-28", "memories.am.size", "0",
         "0:0: a memory of `0` bytes holds nothing\n");
    arena_free(arena);
}

static void shipped_targets(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *const *names = hwspec_targets(arena);
    uint32_t n = 0;
    for (; names[n]; n++)
        assert_non_null(load(arena, names[n], NULL, NULL, ""));
    assert_true(n >= 8);
    arena_free(arena);
}

/* What the machine that is extended says of operators which a variant does not
 * run is void; what the variant says itself is not. */
static void variant_of_fewer_operators(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const char *text = "extends: vision-npu\n"
                       "machine: {name: v}\n"
                       "engines:\n"
                       "  array: {runs: [conv]}\n"
                       "  vector: {runs: [pool_max], activations: [relu]}\n";
    const HwSpec *spec = read_text(arena, diag, text);
    assert_string_equal(messages(arena, diag), "");
    assert_non_null(spec);
    assert_true(spec->engine[0].ops == (HwOps)1 << HW_OP_CONV);
    assert_int_equal(spec->engine[0].passes[HW_OP_ATTENTION], 0);
    assert_true(spec->tiling.rows.ops ==
                ((HwOps)1 << HW_OP_CONV | (HwOps)1 << HW_OP_POOL_MAX));
    text = replaced(arena, text, "[conv]", "[conv], passes: {attention: 2}");
    text = replaced(arena, text, "[relu]", "{add: [relu]}");
    text = arena_printf(arena, "%stiling: {ops: [conv, deconv]}\n", text);
    assert_null(read_text(arena, diag, text));
    assert_string_equal(messages(arena, diag),
                        "4:45: the engine does not run `attention`\n"
                        "5:49: the engine does not run `add`\n"
                        "6:22: no engine runs `deconv`\n");
    arena_free(arena);
}

static void settings_reach_base(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec =
        load(arena, "xdnn-v2-56", "memories.am.size", "1KiB", "");
    assert_int_equal(spec->memory[0].size, 1024);
    assert_int_equal(spec->memory[0].align, 128);
    assert_int_equal(spec->engine[0].unroll.out_w, 56);
    assert_int_equal(spec->engine[0].unroll.out_c, 32);
    assert_int_equal(spec->engine[0].limit[HW_LIMIT_TAPS].hi, 9792);
    assert_int_equal(spec->engine[0].limit[HW_LIMIT_KERNEL_W].hi, 14);
    spec =
        load(arena, "xdnn-v2-56", "engines.conv.limits.kernel.w", "1..20", "");
    assert_int_equal(spec->engine[0].limit[HW_LIMIT_KERNEL_W].hi, 20);
    arena_free(arena);
}

static void settings_add_keys(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec =
        load(arena, "template", "engines.array.unroll.out_w", "4", "");
    assert_int_equal(spec->engine[0].unroll.out_w, 4);
    assert_int_equal(spec->engine[0].unroll.in_c, 16);
    assert_int_equal(spec->engine[1].unroll.out_w, 1);
    assert_int_equal(spec->engine[0].unroll.row_taps, 0);
    spec = load(arena, "dpuczdx8g-b4096", "machine.clock", "1GHz", "");
    assert_int_equal(spec->engine[0].unroll.row_taps, 8);
    spec = load(arena, "template", "engines.post.clock", "1GHz", "");
    assert_true(spec->engine[1].clock == 1e9);
    spec = load(arena, "null", "rewrites.expand_groups", "true", "");
    assert_true(spec->expand_groups);
    arena_free(arena);
}

/* Byte counts of facts/xdnn.md 2.3, through the files. */
static const struct {
    const char *target, *path, *value, *memory;
    Volume volume;
    uint64_t bytes;
} golden[] = {
    {"xdnn-v2-28", 0, 0, "am", {64, 112, 112, {0}}, 1835008},
    {"xdnn-v2-28", 0, 0, "am", {256, 28, 28, {0}}, 458752},
    {"xdnn-v2-28", 0, 0, "inputs", {3, 224, 224, {0}}, 1605632},
    {"xdnn-v2-28", 0, 0, "outputs", {1024, 1, 1, {0}}, 16384},
    {"xdnn-v2-56", 0, 0, "am", {480, 28, 28, {0}}, 1720320},
    {"xdnn-v2-56", 0, 0, "ddr", {32, 608, 608, {0}}, 27394048},
    {"xdnn-v3-96", 0, 0, "am", {256, 28, 28, {3, 0, 0, 0}}, 225792},
    {"xdnn-v3-96", 0, 0, "am", {1024, 7, 7, {0}}, 51744},
    {"xdnn-v3-96", 0, 0, "am", {64, 56, 56, {0, 2, 3, 32}}, 602112},
    {"xdnn-v3-96", 0, 0, "ddr", {32, 304, 304, {0}}, 2957312},
    {"xdnn-v3-96", 0, 0, "inputs", {3, 224, 224, {0}}, 1605632},
    {"xdnn-v3-96", 0, 0, "outputs", {1024, 19, 19, {0}}, 1556480},
    {"xdnn-v3-96", "machine.element", "2", "am", {64, 112, 112, {0}}, 2408448},
    {"xdnn-v3-96", "machine.element", "2", "ddr", {8, 1, 5, {0}}, 128},
    {"xdnn-v3-96",
     "machine.element",
     "2",
     "inputs",
     {3, 224, 224, {0}},
     1605632},
    {"darius-64", 0, 0, "am", {480, 28, 28, {0}}, 802816},
    {"math-engine", 0, 0, "am", {256, 28, 28, {0}}, 401408},
};

static const HwMemory *memory_called(const HwSpec *spec, const char *name) {
    for (uint32_t i = 0; i < spec->n_memories; i++)
        if (!strcmp(spec->memory[i].name, name))
            return &spec->memory[i];
    fail_msg("no memory %s", name);
    return NULL;
}

static void recorded_sizes(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const HwSpec *spec =
            load(arena, golden[i].target, golden[i].path, golden[i].value, "");
        const HwMemory *m = memory_called(spec, golden[i].memory);
        assert_true(layout_bytes(m->layout, &golden[i].volume) ==
                    golden[i].bytes);
    }
    arena_free(arena);
}

/* Rows of 2.5: buffers of 49152 rows; 0 and 16384, 65536. 16 bits halve them.
 */
static void hardware_tiles(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, "xdnn-v3-96", NULL, NULL, "");
    const HwTiling *t = &spec->tiling;
    assert_int_equal(spec->memory[0].unit, 96);
    assert_int_equal(t->kind, HW_TILING_HARDWARE);
    assert_int_equal(t->tiles.n, 3);
    assert_int_equal(t->tiles.style[0].buffer[1] / 96, 49152);
    assert_true(t->tiles.style[0].in_backing && t->tiles.style[0].out_backing);
    assert_false(t->tiles.style[0].has_dest);
    assert_int_equal(t->tiles.style[1].buffer[1] / 96, 16384);
    assert_int_equal(t->tiles.style[1].buffer_size / 96, 16384);
    assert_int_equal(t->tiles.style[1].reserved, 3 << 20);
    assert_false(t->tiles.style[1].out_backing || t->tiles.style[1].has_dest);
    assert_true(t->tiles.style[2].has_dest);
    assert_int_equal(t->tiles.style[2].dest / 96, 65536);
    assert_int_equal(t->tiles.style[2].multiple_w, 8);
    spec = load(arena, "xdnn-v3-96", "machine.element", "2", "");
    assert_int_equal(spec->memory[0].unit, 192);
    assert_int_equal(spec->tiling.tiles.style[2].dest / 192, 32768);
    load(arena, "xdnn-v3-96", "memories.am.size", "1KiB", "");
    arena_free(arena);
}

static void several_pools(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, "template", NULL, NULL, "");
    assert_int_equal(spec->n_active, 2);
    assert_string_equal(spec->memory[0].name, "fast");
    assert_string_equal(spec->memory[1].name, "bulk");
    assert_true(spec->memory[0].layout != spec->memory[1].layout);
    assert_int_equal(spec->engine[0].acts[HW_OP_CONV],
                     1 << HW_ACT_RELU | 1 << HW_ACT_RELU6);
    assert_int_equal(spec->engine[0].beside, 2);
    assert_int_equal(spec->engine[1].beside, 1);
    spec = load(arena, "math-engine", NULL, NULL, "");
    assert_int_equal(spec->memory[0].buffers, 4);
    spec = load(arena, "math-engine", "memories.am.size", "90548", "");
    assert_int_equal(hwspec_buffer_bytes(&spec->memory[0]), 22636);
    assert_int_equal(hwspec_partition_bytes(&spec->memory[0]), 22636);
    assert_int_equal(hwspec_buffer_bytes(&spec->memory[1]), 0);
    load(arena, "math-engine", "memories.am.size", "7",
         "16:14: 4 buffers in 7 bytes\n");
    arena_free(arena);
}

/* Three pools of their own sizes, layouts and addresses; the order of the file
 * is the order of preference, whatever stands between them. */
static void three_pools(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const char *text = replaced(
        arena, tiny, "  out:",
        "  l1: {role: active, size: 3KiB, unit: 8, base: 4096, layout: deep}\n"
        "  ddr: {role: backing, size: 1MiB, layout: flat}\n"
        "  l2: {role: active, size: 1MiB, unit: 4, base: 8192, layout: wide}\n"
        "  out:");
    text = replaced(arena, text, "  flat:",
                    "  deep: {axes: [c/8, h, w, c%8]}\n"
                    "  wide: {axes: [h, c, {w: {round: 4}}]}\n"
                    "  flat:");
    text = replaced(arena, text, "for: conv", "for: [conv, load, store]");
    const HwSpec *spec = read_text(arena, diag, text);
    assert_string_equal(messages(arena, diag), "");
    assert_int_equal(spec->n_active, 3);
    assert_string_equal(spec->memory[0].name, "am");
    assert_string_equal(spec->memory[1].name, "l1");
    assert_string_equal(spec->memory[2].name, "l2");
    assert_int_equal(spec->memory[2].id, 4);
    assert_int_equal(spec->memory[1].align, 8);
    assert_string_equal(spec->memory[spec->backing].name, "ddr");
    assert_int_equal(spec->engine[0].lies[HW_IN], 7);
    Volume v = {9, 2, 5, {0}};
    assert_int_equal(layout_bytes(spec->memory[0].layout, &v), 90);
    assert_int_equal(layout_bytes(spec->memory[1].layout, &v), 160);
    assert_int_equal(layout_bytes(spec->memory[2].layout, &v), 144);
    arena_free(arena);
}

static void ranges_as_text(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const uint64_t list[] = {1, 2, 4};
    const struct {
        HwRange range;
        const char *text;
    } row[] = {
        {{0}, "anything"},
        {{.set = true, .lo = 1, .hi = 14}, "1..14"},
        {{.set = true, .lo = 3, .hi = UINT64_MAX}, "3.."},
        {{.set = true, .lo = 5, .hi = 5}, "5"},
        {{.set = true, .n = 3, .list = list}, "1, 2, 4"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_string_equal(hw_range_text(arena, &row[i].range), row[i].text);
    assert_true(hw_range_has(&row[4].range, 4));
    assert_false(hw_range_has(&row[4].range, 3));
    assert_true(hw_range_has(&row[2].range, UINT64_MAX));
    assert_false(hw_range_has(&row[2].range, 2));
    arena_free(arena);
}

/* Every damaged text is refused with a message, or is a machine. */
static void damaged_texts(void **state) {
    (void)state;
    static const char odd[] = "{}[]:,%/.-0 9\n\"#";
    Arena *arena = arena_new("test");
    Bytes whole = {0};
    assert_true(file_read(arena, diag_new(arena),
                          "hwspec/targets/xdnn-v3-96.yaml", &whole));
    for (uint64_t i = 0; i < cases_of(1500, 300); i++) {
        Arena *run = arena_new("damaged");
        Diag *diag = diag_new(run);
        char *text = arena_strndup(run, (const char *)whole.at, whole.len);
        for (uint64_t k = 0; k < 3; k++)
            text[rng_bits(i, 2 * k) % whole.len] =
                odd[rng_bits(i, 2 * k + 1) % (sizeof odd - 1)];
        size_t len = i % 4 ? whole.len : rng_bits(i, 9) % whole.len;
        const HwSpec *spec =
            hwspec_read(run, diag, "damaged.yaml", text, len, 0, NULL);
        assert_true((spec == NULL) == (diag_errors(diag) > 0));
        arena_free(run);
    }
    arena_free(arena);
}

typedef struct Paths {
    Arena *arena;
    const char **at;
    uint32_t n;
} Paths;

static void add_paths(Paths *paths, const YamlNode *node, const char *path) {
    if (node->kind == YAML_SCALAR && paths->n < 4096)
        paths->at[paths->n++] = path;
    for (uint32_t i = 0; i < node->n; i++)
        add_paths(paths, node->item[i],
                  node->kind == YAML_MAP
                      ? arena_printf(paths->arena, "%s%s%s", path,
                                     *path ? "." : "", node->key[i])
                      : arena_printf(paths->arena, "%s.%u", path, i));
}

/* Each scalar of a machine in turn set to something odd. */
static void odd_settings(void **state) {
    (void)state;
    static const char *const odd[] = {
        "",    "0",    "-1",    "1",     "99999999999999999999",
        "1/0", "7/3",  "1/3",   "nan",   "4294967295",
        "..",  "3..2", "c%0",   "c/fit", "281474976710656",
        "[",   "am",   "1e400", "s",     "4294967295 elements"};
    const uint64_t n_odd = sizeof odd / sizeof *odd;
    const char *file = "hwspec/targets/xdnn-v3-96.yaml";
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    Bytes whole = {0};
    assert_true(file_read(arena, diag, file, &whole));
    const char *text = (const char *)whole.at;
    Paths paths = {arena, ARENA_ARRAY(arena, const char *, 4096), 0};
    add_paths(&paths, yaml_parse(arena, diag, file, text, whole.len), "");
    assert_true(paths.n > 200);
    for (uint32_t i = 0; i < paths.n; i += cases_of(1, 4)) {
        Arena *run = arena_new("odd");
        Diag *heard = diag_new(run);
        HwSetting s = {paths.at[i], odd[rng_bits(1, i) % n_odd]};
        const HwSpec *spec =
            hwspec_read(run, heard, file, text, whole.len, 1, &s);
        assert_true((spec == NULL) == (diag_errors(heard) > 0));
        arena_free(run);
    }
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smallest_machine),
        cmocka_unit_test(bad_keys),
        cmocka_unit_test(bad_values),
        cmocka_unit_test(bad_memories),
        cmocka_unit_test(bad_layouts),
        cmocka_unit_test(bad_cases),
        cmocka_unit_test(bad_engines),
        cmocka_unit_test(bad_sections),
        cmocka_unit_test(all_errors_at_once),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(shipped_targets),
        cmocka_unit_test(variant_of_fewer_operators),
        cmocka_unit_test(settings_reach_base),
        cmocka_unit_test(settings_add_keys),
        cmocka_unit_test(recorded_sizes),
        cmocka_unit_test(hardware_tiles),
        cmocka_unit_test(several_pools),
        cmocka_unit_test(three_pools),
        cmocka_unit_test(ranges_as_text),
        cmocka_unit_test(damaged_texts),
        cmocka_unit_test(odd_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
