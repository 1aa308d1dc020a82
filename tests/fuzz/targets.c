/* targets.c - the readers, and what must hold of what they read: text that is
 * printed reads back, and prints the same. */
#include "fuzz.h"

#include "base/npy.h"
#include "base/yaml.h"
#include "codegen/listing.h"
#include "frontends/frontend.h"
#include "frontends/import.h"
#include "frontends/samples/samples_int.h"
#include "frontends/tensorflow/bundle.h"
#include "hwspec/expr/expr.h"
#include "hwspec/hwspec.h"
#include "hwspec/program.h"
#include "lanes/lanes.h"
#include "pack/csv.h"
#include "sim/program.h"
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

static _Noreturn void unreadable(const FuzzInput *in, const char *what,
                                 const char *text) {
    diag_print(in->diag, stderr);
    bug("a %s prints as what does not read back:\n%s", what, text);
}

/* ---- networks ---- */

static const char *print_read(const FuzzInput *in, const char *text) {
    Graph *g = graph_read(in->arena, in->diag, "printed", text, strlen(text));
    if (!g)
        unreadable(in, "graph", text);
    return graph_print(in->arena, g);
}

/* Data of constants is not in the text, so only the second text is as the one
 * before it. */
static void check_graph_text(const FuzzInput *in, const Graph *g) {
    const char *text = print_read(in, graph_print(in->arena, g));
    if (strcmp(text, print_read(in, text)))
        bug("a graph that was read prints in another way:\n%s", text);
}

static void network(const FuzzInput *in) {
    const ImportOptions options = {.weights = in->two ? FUZZ_SECOND : NULL};
    ImportInfo info;
    Graph *g = frontend_read(in->arena, in->diag, in->path, &options, &info);
    if (g)
        check_graph_text(in, g);
}

/* JSON of ours names its weights itself. */
static void named_weights(const FuzzInput *in) {
    const ImportOptions none = {0};
    ImportInfo info;
    Graph *g = frontend_read(in->arena, in->diag, in->path, &none, &info);
    if (g)
        check_graph_text(in, g);
}

/* ---- values ---- */

static void npy(const FuzzInput *in) {
    Npy out;
    npy_read(in->arena, in->diag, in->path, &out);
}

static void tensor(const FuzzInput *in) {
    Npy out;
    tensor_file_read(in->arena, in->diag, in->path, &out);
}

/* Keys of variables, and their values in the second file. */
static void bundle(const FuzzInput *in) {
    static const char *const keys[] = {"a", "b", "b/kernel"};
    size_t end = strlen(in->path) - strlen(".index");
    Bundle *b = bundle_open(in->arena, in->diag,
                            arena_strndup(in->arena, in->path, end));
    BundleValue value;
    for (size_t i = 0; b && i < sizeof keys / sizeof *keys; i++)
        if (bundle_find(b, keys[i], &value))
            arena_strndup(in->arena, (const char *)value.bytes.at,
                          value.bytes.len);
}

/* ---- samples ---- */

static void npz(const FuzzInput *in) {
    Npy out;
    const char *const *names =
        npz_names(in->arena, in->diag, in->path, in->first);
    for (; names && *names; names++)
        npz_array(in->arena, in->diag, in->path, in->first, *names, &out);
}

/* Decoded, and as small as a network may want it. */
static void picture(const FuzzInput *in) {
    enum { SIDE = 8 };
    Picture out;
    if (picture_looks(in->first) &&
        picture_read(in->arena, in->diag, in->path, in->first, &out))
        picture_resize(in->arena, &out, "crop", SIDE, SIDE);
}

/* ---- machines ---- */

static void hwspec(const FuzzInput *in) {
    hwspec_load(in->arena, in->diag, in->path, 0, NULL);
}

/* What is made of somebody else's description is read as `import` does, which
 * refuses what is no machine. */
static void dpu(const FuzzInput *in) {
    const char *yaml = import_dpu(in->arena, in->diag, in->path, in->first);
    if (yaml)
        hwspec_read(in->arena, in->diag, "made", yaml, strlen(yaml), 0, NULL);
}

/* One that is no input. */
static const HwSpec *known_machine(const FuzzInput *in, const char *name) {
    static Arena *arena;
    arena = arena ? arena : arena_new("machines");
    fuzz_serve(NULL);
    const HwSpec *spec = hwspec_load(arena, diag_new(arena), name, 0, NULL);
    fuzz_serve(in);
    if (!spec)
        bug("%s does not read", name);
    return spec;
}

/* ---- listings ---- */

/* The machines whose listings are read: the first byte chooses. */
static const char *const machines[] = {"xdnn-v2-28", "stage-npu", "ring-npu",
                                       "tile-npu",   "darius-32", "n64"};
enum { MACHINES = sizeof machines / sizeof *machines };

static const HwSpec *machine(const FuzzInput *in) {
    static const HwSpec *spec[MACHINES];
    uint32_t i = in->first.at[0] % MACHINES;
    if (!spec[i])
        spec[i] = known_machine(in, machines[i]);
    return spec[i];
}

/* Its text, which must read back as the same text. */
static void check_listing(const FuzzInput *in, const Listing *listing) {
    const char *text = listing_print(in->arena, listing);
    const Listing *again = listing_parse(in->arena, in->diag, listing->spec,
                                         "printed", text, strlen(text));
    if (!again)
        unreadable(in, "listing", text);
    if (strcmp(text, listing_print(in->arena, again)))
        bug("a listing that was read prints in another way:\n%s", text);
}

/* Where it stays small: damage can make an instruction move gigabytes. */
static void simulate(const FuzzInput *in, const Listing *listing) {
    const SimOptions options = {.memory_only = true};
    sim_run(in->arena, in->diag, listing, 0, NULL, &options);
}

static void listing_text(const FuzzInput *in) {
    const HwSpec *spec = in->first.len ? machine(in) : NULL;
    const Listing *listing =
        spec ? listing_parse(in->arena, in->diag, spec, in->path,
                             (const char *)in->first.at + 1, in->first.len - 1)
             : NULL;
    const uint8_t *words;
    size_t len;
    if (!listing)
        return;
    check_listing(in, listing);
    if (listing_encode(in->arena, in->diag, listing, &words, &len) &&
        !listing_decode(in->arena, in->diag, spec, "encoded", words, len))
        bug("a listing encodes to what does not decode");
    simulate(in, listing);
}

static void listing_of_json(const FuzzInput *in) {
    const HwSpec *spec = in->first.len ? machine(in) : NULL;
    const Listing *listing =
        spec ? listing_json_parse(in->arena, in->diag, spec, in->path,
                                  (const char *)in->first.at + 1,
                                  in->first.len - 1)
             : NULL;
    if (!listing)
        return;
    check_listing(in, listing);
    listing_json(in->arena, listing, "x.weights");
    simulate(in, listing);
}

static void listing_binary(const FuzzInput *in) {
    const HwSpec *spec = in->first.len ? machine(in) : NULL;
    const Listing *listing =
        spec ? listing_decode(in->arena, in->diag, spec, in->path,
                              in->first.at + 1, in->first.len - 1)
             : NULL;
    if (listing)
        listing_print(in->arena, listing);
}

/* ---- files of machines ---- */

enum { K210, SLICE, GEMMINI, CONTAINERS }; /* by the first byte */

static const HwSpec *container_machine(const FuzzInput *in) {
    static const char *const name[CONTAINERS] = {
        [K210] = "k210",
        [SLICE] = "tests/hwspec/data/slice.yaml",
        [GEMMINI] = "gemmini-16"};
    static const HwSpec *spec[CONTAINERS];
    uint32_t i = in->first.at[0] % CONTAINERS;
    if (!spec[i])
        spec[i] = known_machine(in, name[i]);
    return spec[i];
}

static const char *program_text(const FuzzInput *in, const Program *program) {
    Text text = text_new(in->arena);
    program_print(&text, program);
    return text_str(&text);
}

/* What is read comes back, by its text, too: each byte, or of a text of words
 * all but remarks and blanks. */
static void container(const FuzzInput *in) {
    if (!in->first.len)
        return;
    const HwSpec *spec = container_machine(in);
    const uint8_t *data = in->first.at + 1, *out;
    size_t len = in->first.len - 1, n;
    const Program *program =
        program_decode(in->arena, in->diag, spec, in->path, data, len);
    if (!program)
        return;
    const char *printed = program_text(in, program);
    const Program *again = program_parse(in->arena, in->diag, spec, "printed",
                                         printed, strlen(printed));
    if (!again)
        unreadable(in, "file", printed);
    if (!program_encode(in->arena, in->diag, again, &out, &n))
        bug("a file that was read is not written");
    if (in->first.at[0] % CONTAINERS != GEMMINI &&
        (n != len || (n && memcmp(out, data, n))))
        bug("a file that was read is written with other bytes");
    const Program *back =
        program_decode(in->arena, in->diag, spec, "written", out, n);
    if (!back || strcmp(program_text(in, back), printed))
        bug("a file that was read is written as another");
}

/* What is written can be read. */
static void container_text(const FuzzInput *in) {
    const HwSpec *spec = in->first.len ? container_machine(in) : NULL;
    const Program *program =
        spec ? program_parse(in->arena, in->diag, spec, in->path,
                             (const char *)in->first.at + 1, in->first.len - 1)
             : NULL;
    const uint8_t *out;
    size_t len;
    if (program && program_encode(in->arena, in->diag, program, &out, &len) &&
        !program_decode(in->arena, in->diag, spec, "written", out, len))
        unreadable(in, "file", (const char *)in->first.at + 1);
}

/* Inputs are zeros. */
static void machine_file(const FuzzInput *in) {
    enum { MOST = 1 << 20 }; /* bytes of one */
    const HwSpec *spec = in->first.len ? container_machine(in) : NULL;
    const Program *program =
        spec ? program_decode(in->arena, in->diag, spec, in->path,
                              in->first.at + 1, in->first.len - 1)
             : NULL;
    uint32_t n = program ? program_inputs(program) : 0;
    ProgramBytes *input = ARENA_ARRAY(in->arena, ProgramBytes, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        ProgramInput one = program_input(program, i);
        uint64_t count = (uint64_t)one.n * one.c * one.h * one.w;
        input[i].n = count * (one.reals ? sizeof(float) : 1);
        if (input[i].n > MOST)
            return;
        input[i].at = ARENA_ARRAY(in->arena, uint8_t, input[i].n + 1);
    }
    if (program)
        program_run(in->arena, in->diag, program, n, input);
}

/* ---- layers on lanes ---- */

static const LaneMachine *lane_machine(const FuzzInput *in) {
    static const LaneMachine *machine;
    static Arena *arena;
    if (!machine) {
        arena = arena_new("lanes");
        machine = lanes_machine(arena, diag_new(arena),
                                known_machine(in, "max78000"));
        if (!machine)
            bug("the lanes of max78000 do not read");
    }
    return machine;
}

/* A description, checked and as registers; its input is 3 x 32 x 32. */
static void lanes(const FuzzInput *in) {
    const LaneMachine *m = lane_machine(in);
    LaneNet *net = lanes_read(in->arena, in->diag, in->path);
    uint32_t n;
    if (!net)
        return;
    net->in_c = 3;
    net->in[0] = net->in[1] = 32;
    if (lanes_shapes(in->arena, in->diag, m, net) &&
        lanes_columns(in->arena, in->diag, m, net) &&
        lanes_check(in->arena, in->diag, m, net))
        lanes_registers(in->arena, m, net, &n);
}

/* Weights of a convolution and a linear layer, a pass between them. */
static void lane_weights(const FuzzInput *in) {
    LaneLayer layer[] = {{.op = LANE_CONV2D, .kernel = {3, 3}},
                         {.op = LANE_PASS},
                         {.op = LANE_LINEAR}};
    LaneNet net = {.n = sizeof layer / sizeof *layer, .layer = layer};
    lanes_weights(in->arena, in->diag, in->path, &net);
}

/* Each line an expression; what it is lies in its range. */
static void expression(const FuzzInput *in) {
    ExprNames *names = expr_names(in->arena);
    static const char *const name[] = {"a", "b", "c", "d"};
    bool set[8] = {true, true, true, true};
    int64_t num[8] = {3, -5, 1000000, INT64_MAX};
    ExprVector vector[8] = {{0}};
    for (int i = 0; i < 4; i++)
        expr_add(names, &(ExprName){.name = name[i],
                                    .kind = EXPR_MEANING,
                                    .domain = {.range = {num[i], num[i]}}});
    const ExprBounds bounds = {.names = names};
    const ExprEnv env = {names, set, num, vector};
    const char *text =
        arena_strndup(in->arena, (const char *)in->first.at, in->first.len);
    const Expr *e = expr_parse(names, in->diag, text, (Loc){0}, NULL);
    ExprRange range;
    int64_t value;
    ExprFault fault;
    if (!e || !expr_range(&bounds, in->diag, e, &range))
        return;
    bool has = expr_eval(&env, e, &value, &fault);
    if (has && (value < range.lo || value > range.hi))
        bug("%s is outside of its range", text);
    const char *again = expr_text(in->arena, names, e, NULL);
    const Expr *same = expr_parse(names, in->diag, again, (Loc){0}, NULL);
    int64_t other = 0;
    if (!same ||
        (has && (!expr_eval(&env, same, &other, &fault) || other != value)))
        bug("%s prints as %s", text, again);
    for (uint32_t x = 0; x < 4 && has; x++)
        if (expr_tells(&bounds, e, x) &&
            expr_invert(&env, e, x, value, &range) &&
            (num[x] < range.lo || num[x] > range.hi))
            bug("%s is not read back", text);
}

/* ---- placement problems ---- */

static void problem(const FuzzInput *in) {
    const CsvPool pool = {"am", {.size = 1 << 20, .align = 1}};
    CsvProblem csv;
    problem_csv_read(in->arena, in->diag, in->path, &pool, 1, &csv);
}

const FuzzTarget fuzz_targets[] = {
    {"onnx", ".onnx", network, "ONNX, binary or text"},
    {"caffe", ".prototxt", network, "Caffe's text, and a .caffemodel"},
    {"caffemodel", ".caffemodel", network, "Caffe's binary form by itself"},
    {"tensorflow", ".pb", network, "TensorFlow's GraphDef, tfjs"},
    {"tflite", ".tflite", network, "TensorFlow Lite"},
    {"keras", ".keras", network, "Keras: JSON, HDF5, zip, and weights"},
    {"mxnet", ".json", network, "MXNet's symbols, and .params"},
    {"darknet", ".cfg", network, "Darknet, and .weights"},
    {"graphjson", ".json", named_weights, "a graph in JSON, and its weights"},
    {"graphtext", ".graph", network, "a graph in text"},
    {"npy", ".npy", npy, "NumPy's arrays"},
    {"tensor", ".pb", tensor, "ONNX's TensorProto"},
    {"bundle", ".index", bundle, "variables of a SavedModel, and their values"},
    {"npz", ".npz", npz, "archives of arrays"},
    {"picture", ".png", picture, "PNG and JPEG"},
    {"hwspec", ".yaml", hwspec, "machines"},
    {"dpu", ".prototxt", dpu, "machines as Vitis AI describes them"},
    {"listing", ".cmd", listing_text, "a byte for the machine, and a listing"},
    {"listingjson", ".json", listing_of_json, "the same in JSON, and weights"},
    {"binary", ".bin", listing_binary, "the same in binary form"},
    {"container", ".bin", container, "a byte for the machine, and a file"},
    {"containertext", ".txt", container_text, "the same as text"},
    {"program", ".bin", machine_file, "the same file, run"},
    {"lanes", ".yaml", lanes, "layers on lanes, as a vendor describes them"},
    {"laneweights", ".json", lane_weights, "their weights, and an array"},
    {"expression", ".txt", expression, "expressions of a hwspec"},
    {"problem", ".csv", problem, "placement problems"},
    {0},
};

const FuzzTarget *fuzz_find(const char *name) {
    for (const FuzzTarget *t = fuzz_targets; t->name; t++)
        if (!strcmp(t->name, name))
            return t;
    fprintf(stderr, "no target is called %s; targets:\n", name);
    for (const FuzzTarget *t = fuzz_targets; t->name; t++)
        fprintf(stderr, "  %-12s%s\n", t->name, t->doc);
    return NULL;
}

/* A copy of exactly its size, so that reading past its end is seen. */
static Bytes part(Arena *arena, const uint8_t *at, size_t len) {
    uint8_t *copy = arena_alloc_raw(arena, len, 16);
    if (len)
        memcpy(copy, at, len);
    return (Bytes){copy, len};
}

static size_t find_second(const uint8_t *data, size_t len, size_t mark_len,
                          const char *mark) {
    for (size_t i = 0; i + mark_len <= len; i++)
        if (!memcmp(data + i, mark, mark_len))
            return i;
    return len;
}

void fuzz_one(const FuzzTarget *target, const uint8_t *data, size_t len) {
    static const char mark[] = "\n====\n";
    static FILE *nowhere;
    size_t mark_len = sizeof mark - 1;
    Arena *arena = arena_new("fuzz");
    size_t first = find_second(data, len, mark_len, mark);
    bool two = first < len;
    FuzzInput in = {.arena = arena, .diag = diag_new(arena), .two = two};
    in.path = arena_printf(arena, "fuzz/first%s", target->suffix);
    in.first = part(arena, data, first);
    if (two)
        in.second =
            part(arena, data + first + mark_len, len - first - mark_len);
    fuzz_serve(&in);
    target->run(&in);
    fuzz_serve(NULL);
    nowhere = nowhere ? nowhere : fopen("/dev/null", "w");
    diag_print(in.diag, nowhere);
    arena_free(arena);
}
