/* Listings: made ones through text, JSON and bytes; recorded ones as they were;
 * damaged ones to the right message at the right place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "codegen/listing.h"
#include "tests/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const HwSpec *load(Arena *arena, const char *name) {
    Diag *diag = diag_new(arena);
    const HwSpec *spec = hwspec_load(arena, diag, name, 0, NULL);
    diag_print(diag, stderr);
    assert_non_null(spec);
    return spec;
}

/* ---- a made listing, with one of everything in its image ---- */

static HwInsn built(Arena *arena, const HwSpec *spec, HwOp op, const char *name,
                    const char *comment) {
    HwFields fields = {.has_op = true, .op = op};
    int32_t row = insn_row(spec, op);
    assert_true(row >= 0);
    fields.set[HW_F_NAME] = true;
    fields.str[HW_F_NAME] = name;
    for (uint32_t f = HW_F_KERNEL_W; f <= HW_F_DILATION_H; f++) {
        fields.set[f] = true;
        fields.num[f] = 1;
    }
    insn_set_operand(spec, &fields, HW_IN,
                     op == HW_OP_LOAD ? (uint32_t)spec->input : 0, 0);
    insn_set_operand(spec, &fields, HW_OUT,
                     op == HW_OP_STORE ? (uint32_t)spec->output : 0,
                     (uint64_t)spec->memory[0].unit * 64);
    return insn_build(arena, spec, (uint32_t)row, &fields, comment);
}

static Region region(const char *name, uint32_t memory, uint64_t offset) {
    return (Region){.name = name,
                    .shape = shape_nchw(1, 3, 8, 8),
                    .memory = memory,
                    .offset = offset,
                    .whole = {96, 8, 8, {1, 0, 2, 48}},
                    .part_c = 5};
}

static const Blob *blobs(Arena *arena, uint32_t *n) {
    static const double mul0[] = {0.1, -3.0, 1e-300};
    static const double mul1[] = {1.0 / 3.0, (double)INFINITY};
    static const float f32[] = {1.5F, -0.25F, 3e-30F, 4, 5, 6};
    static const double f64[] = {1.0 / 7.0, 2, 3};
    Shape matrix = {2, {3, 2}}, list = {1, {3}}, grouped = {4, {4, 4, 1, 1}};
    const Blob all[] = {
        {"conv \"1\"/7x7",
         "weight",
         {.shape = matrix,
          .kind = CONST_SEEDED,
          .seed = UINT64_MAX - 2,
          .mean = 0.1,
          .spread = 1.0 / 3.0,
          .mul0 = mul0,
          .mul1 = mul1}},
        {"conv1",
         "bias",
         {.shape = matrix, .kind = CONST_F32, .data = f32, .order = {1, 0}}},
        {"conv1", "scale", {.shape = list, .kind = CONST_F64, .data = f64}},
        {"conv2",
         "weight",
         {.shape = grouped, .kind = CONST_SEEDED, .seed = 7, .groups = 2}},
    };
    *n = sizeof all / sizeof *all;
    return ARENA_COPY(arena, Blob, all, *n);
}

static const HostLayer *hosts(Arena *arena, const HwSpec *spec) {
    static const double size[] = {5, 1e-4};
    static const AttrPair attr[] = {{"size", 2, size, NULL},
                                    {"kind", 0, NULL, "within"}};
    HostLayer host = {.name = "prob",
                      .function = "net_prob",
                      .kind = "softmax",
                      .reason = "no engine runs softmax",
                      .n_in = 1,
                      .n_out = 2,
                      .n_attrs = 2,
                      .attr = attr};
    Region in = region("pool5", (uint32_t)spec->output, 64);
    host.in = ARENA_COPY(arena, Region, &in, 1);
    host.out[0] = region("prob", (uint32_t)spec->input, 0);
    host.out[1] = region("prob_2", (uint32_t)spec->input, 1 << 16);
    return ARENA_COPY(arena, HostLayer, &host, 1);
}

static const ListingLayer *layers(Arena *arena) {
    static const char *const bottom[] = {"data"};
    static const char *const merged[] = {"conv1", "relu1"};
    const ListingLayer all[] = {
        {.name = "data",
         .type = "Input",
         .shape = shape_nchw(1, 3, 8, 8),
         .step = 1,
         .memory = "ddr_to_am",
         .ops = 6144,
         .n_insns = 1},
        {.name = "conv1",
         .type = "Convolution",
         .n_bottoms = 1,
         .bottom = bottom,
         .shape = shape_nchw(1, 16, 8, 8),
         .step = 2,
         .n_merged = 2,
         .merged = merged,
         .memory = "am_to_am",
         .ops = (UINT64_C(1) << 60) + 1,
         .first_insn = 1,
         .n_insns = 2},
    };
    return ARENA_COPY(arena, ListingLayer, all, 2);
}

static const QuantScale scales[] = {{1288490189, 32}, {INT32_MAX, 1}};
static const LayerQuant quants[] = {
    {"conv1",
     {QUANT_SUMS,
      {-128, 0},
      3,
      -128,
      127,
      0,
      false,
      2,
      scales,
      QUANT_EVEN,
      scales,
      NULL}},
    {"sum",
     {QUANT_ADDS,
      {-32768, 32767},
      -1,
      -7,
      7,
      20,
      true,
      1,
      scales + 1,
      QUANT_UP,
      NULL,
      NULL}},
};

static const Listing *made(Arena *arena, const HwSpec *spec) {
    static const LayerAct act[] = {{"conv1", "relu6", 0, 0, 6},
                                   {"conv2", "leaky", 0.1, 0, 0}};
    const HwInsn insn[] = {
        built(arena, spec, HW_OP_LOAD, "data", "data_blob"),
        built(arena, spec, HW_OP_CONV, "conv1", "am_to_am"),
        built(arena, spec, HW_OP_POOL_MAX, "a b", NULL),
        built(arena, spec, HW_OP_HOST, "prob", "no engine runs softmax"),
        built(arena, spec, HW_OP_STORE, "out", "Output out"),
    };
    Region *input = ARENA_NEW(arena, Region);
    Region *output = ARENA_NEW(arena, Region);
    *input = region("data", (uint32_t)spec->input, 0);
    *output = region("out", (uint32_t)spec->output, 128);
    output->quant = (Quant){QUANT_I8, -3, 1.0 / 3.0, QUANT_EVEN};
    Image image = {.n_acts = 2,
                   .n_quants = 2,
                   .n_inputs = 1,
                   .n_outputs = 1,
                   .n_hosts = 1,
                   .n_layers = 2,
                   .act = act,
                   .quant = quants,
                   .input = input,
                   .output = output,
                   .host = hosts(arena, spec),
                   .layer = layers(arena)};
    image.blob = blobs(arena, &image.n_blobs);
    Listing *listing = ARENA_NEW(arena, Listing);
    *listing = (Listing){.spec = spec,
                         .network = "net",
                         .n = sizeof insn / sizeof *insn,
                         .insn = ARENA_COPY(arena, HwInsn, insn, 5),
                         .image = image,
                         .has_image = true};
    return listing;
}

/* A folder of this test's own, taken away at its end. */
static const char *folder(Arena *arena) {
    char *path = arena_printf(arena, "%s/amphora-listing-XXXXXX", scratch());
    assert_non_null(mkdtemp(path));
    return path;
}

static void remove_all(const char *dir, const char *const *path) {
    for (int i = 0; i < 3; i++)
        if (path[i])
            unlink(path[i]);
    rmdir(dir);
}

static const char *everything(Arena *arena, const Listing *listing) {
    return arena_printf(arena, "%s\n%s", listing_print(arena, listing),
                        listing_json(arena, listing, "net.weights"));
}

static void assert_same_constants(const Image *a, const Image *b) {
    assert_int_equal(a->n_blobs, b->n_blobs);
    for (uint32_t i = 0; i < a->n_blobs; i++) {
        double x[16], y[16];
        uint64_t n = shape_count(&a->blob[i].value.shape);
        assert_int_equal(n, shape_count(&b->blob[i].value.shape));
        const_read_f64(&a->blob[i].value, x);
        const_read_f64(&b->blob[i].value, y);
        assert_memory_equal(x, y, n * sizeof *x);
    }
}

static void files_read_back(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *const *name = hwspec_targets(arena);
    const char *dir = folder(arena), *path[3];
    for (; *name; name++) {
        const HwSpec *spec = load(arena, *name);
        Diag *diag = diag_new(arena);
        if (hwspec_engine(spec, HW_OP_LAYER) >= 0 || !spec->insns->n)
            continue; /* a processor, or files, have no other instructions */
        const Listing *listing = made(arena, spec);
        assert_true(listing_write(arena, diag, listing, dir, path));
        assert_non_null(path[2]);
        for (int i = 0; i < 2; i++) {
            const Listing *back = listing_read(arena, diag, spec, path[i]);
            diag_print(diag, stderr);
            assert_non_null(back);
            assert_true(back->has_image);
            assert_string_equal(everything(arena, back),
                                everything(arena, listing));
            assert_same_constants(&listing->image, &back->image);
        }
    }
    remove_all(dir, path);
    arena_free(arena);
}

static void instructions_name_functions(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = load(arena, "math-engine");
    const Listing *plain = made(arena, spec);
    uint32_t layer = 0;
    assert_string_equal(everything(arena, listing_call(arena, plain, 0, NULL)),
                        everything(arena, plain));
    const char *text =
        listing_print(arena, listing_call(arena, plain, 1, &layer));
    assert_non_null(strstr(text, " # net_prob: no engine runs softmax\n"));
    const Listing *back = listing_parse(arena, diag_new(arena), spec, "x.cmd",
                                        text, strlen(text));
    assert_non_null(back);
    assert_string_equal(listing_print(arena, back), text);
    arena_free(arena);
}

/* A text without its JSON has no image; one that was edited has no layers. */
static void names_in_c(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Map *taken = map_new(arena);
    assert_string_equal(listing_take(arena, taken, "3/a"), "_3_a");
    assert_string_equal(listing_take(arena, taken, "_3.a"), "_3_a_2");
    assert_string_equal(listing_take(arena, taken, "_3_a"), "_3_a_3");
    assert_string_equal(listing_comment(arena, "a/b*c"), "a/b*c");
    assert_string_equal(listing_comment(arena, "a*/b/*c\n"), "a_/b/_c\\x0a");
    arena_free(arena);
}

static void text_and_json_apart(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = load(arena, "xdnn-v2-28");
    const char *dir = folder(arena), *path[3];
    const Listing *listing = made(arena, spec), *back;
    assert_true(listing_write(arena, diag, listing, dir, path));
    const char *text = "1 XNUpsample up 2 2 0x0 8 8 3 0x40 16 16 Zero\n";
    assert_true(file_write(arena, diag, path[0], text, strlen(text)));
    back = listing_read(arena, diag, spec, path[0]);
    assert_non_null(back);
    assert_int_equal(back->n, 1);
    assert_int_equal(back->image.n_blobs, 4);
    assert_int_equal(back->image.n_layers, 0);
    unlink(path[1]);
    back = listing_read(arena, diag, spec, path[0]);
    assert_false(back->has_image);
    assert_string_equal(back->network, "net");
    remove_all(dir, path);
    arena_free(arena);
}

static void odd_network_names_stay_in_the_folder(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = load(arena, "null");
    const char *dir = folder(arena), *path[3];
    Listing listing = {.spec = spec, .network = "../a/b"};
    assert_true(listing_write(arena, diag, &listing, dir, path));
    assert_string_equal(path[0], arena_printf(arena, "%s/_._a_b.cmd", dir));
    assert_null(path[2]);
    remove_all(dir, path);
    arena_free(arena);
}

static void bytes_read_back(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *const *name = hwspec_targets(arena);
    for (; *name; name++) {
        const HwSpec *spec = load(arena, *name);
        Diag *diag = diag_new(arena);
        if (hwspec_engine(spec, HW_OP_LAYER) >= 0 || !spec->insns->n)
            continue; /* a processor, or files, have no other instructions */
        const Listing *listing = made(arena, spec);
        const uint8_t *data;
        size_t len;
        assert_true(listing_encode(arena, diag, listing, &data, &len));
        const Listing *back =
            listing_decode(arena, diag, spec, "net.bin", data, len);
        diag_print(diag, stderr);
        assert_non_null(back);
        assert_string_equal(back->network, "net");
        assert_string_equal(listing_print(arena, back),
                            listing_print(arena, listing));
    }
    arena_free(arena);
}

/* ---- the keys that others read ---- */

static void json_has_the_recorded_keys(void **state) {
    (void)state;
    static const char *const top[] = {
        "arguments",  "batchSize",   "first_layer", "inputddr", "inputs",
        "last_layer", "moveops",     "network",     "ops",      "outputddr",
        "outputs",    "unsupported", "version"};
    static const char *const item[] = {
        "active",     "bottoms", "layer",        "memory_description", "merged",
        "name",       "ops",     "outputshapes", "schedule",           "type",
        "xdnn_instr", "xdnn_kv", "xdnn_list"};
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const Listing *listing = made(arena, load(arena, "xdnn-v3-96"));
    const char *text = listing_json(arena, listing, "net.weights");
    cJSON *json = json_parse(diag, "net.json", text, strlen(text));
    assert_non_null(json);
    for (size_t i = 0; i < sizeof top / sizeof *top; i++)
        assert_true(cJSON_HasObjectItem(json, top[i]));
    const cJSON *network = cJSON_GetObjectItem(json, "network");
    const cJSON *first = cJSON_GetArrayItem(network, 0);
    for (size_t i = 0; i < sizeof item / sizeof *item; i++)
        assert_true(cJSON_HasObjectItem(first, item[i]));
    const cJSON *kv = cJSON_GetObjectItem(first, "xdnn_kv");
    assert_string_equal(json_str(kv, "XNOp", ""), "XNGather");
    assert_string_equal(json_str(kv, "b1", ""), "1");
    assert_string_equal(json_str(kv, "srcAddrReadFromImgQ", ""), "1");
    const cJSON *list =
        cJSON_GetObjectItem(cJSON_GetArrayItem(network, 1), "xdnn_list");
    assert_int_equal(cJSON_GetArraySize(list), 2);
    const cJSON *unsupported = cJSON_GetObjectItem(json, "unsupported");
    assert_int_equal(json_num(unsupported, "count", 0), 1);
    const cJSON *why =
        cJSON_GetObjectItem(cJSON_GetObjectItem(unsupported, "list"), "prob");
    assert_string_equal(cJSON_GetArrayItem(why, 0)->valuestring,
                        "no engine runs softmax");
    json_free(json);
    arena_free(arena);
}

/* ---- recorded listings ---- */

#define DATA "../shared/data/listings/"

static const struct {
    const char *file, *target;
    uint32_t n;
} recorded[] = {
    {"googlenet_v1_28.json", "xdnn-v2-28", 82},
    {"resnet50_28.json", "xdnn-v2-28", 73},
    {"googlenet_v1_28.v1.3.cmd", "xdnn-v2-28", 80},
    {"mobilenet_28.cmd", "xdnn-v2-28", 28},
    {"googlenet_v1_8b_autoAllOpt.json", "xdnn-v3-96", 78},
    {"googlenet_v1_8b_autoNoOptimizations.cmds", "xdnn-v3-96", 80},
    {"googlenet_v1_8b_autoOnlyReplicationOptimization.cmds", "xdnn-v3-96", 80},
    {"resnet50_8bit_repl_pipe_xdnnv3.cmds", "xdnn-v3-96", 70},
    {"vai11_segmentation.json", "xdnn-v3-96", 96},
    {"vai11_stdyolov2.json", "xdnn-v3-96", 24},
};
enum { RECORDED = sizeof recorded / sizeof *recorded };

static bool have_recorded(void) {
    return file_exists(DATA "googlenet_v1_28.json");
}

/* Words up to the comment, one space between them. */
static const char *bare(Arena *arena, const char *line, size_t len) {
    Text text = text_new(arena);
    bool commented = len && *line == '#';
    for (size_t at = commented; at < len;) {
        while (at < len && (line[at] == ' ' || line[at] == '\r'))
            at++;
        size_t start = at;
        while (at < len && line[at] != ' ' && line[at] != '\r')
            at++;
        if (at == start || line[start] == '#')
            break;
        text_add(&text, text.len ? " " : "");
        text_add_n(&text, line + start, at - start);
    }
    return text_str(&text);
}

static void assert_bare(Arena *arena, const HwSpec *spec, const HwInsn *insn,
                        const char *line, size_t len) {
    const char *printed = insn_print(arena, spec, insn);
    assert_string_equal(bare(arena, printed, strlen(printed)),
                        bare(arena, line, len));
}

static bool is_insn(const char *line, size_t len) {
    if (!len || line[0] != '#')
        return len > 0;
    const char *text = line + 1 + (len > 1 && line[1] == ' ');
    return *text >= '0' && *text <= '9' && strstr(line, " XNConcat ") &&
           strstr(line, " XNConcat ") < line + len;
}

static void check_text(Arena *arena, const Listing *listing, Bytes bytes) {
    const char *text = (const char *)bytes.at;
    uint32_t i = 0;
    for (size_t at = 0; at < bytes.len;) {
        const char *end = memchr(text + at, '\n', bytes.len - at);
        size_t len = end ? (size_t)(end - text) - at : bytes.len - at;
        if (is_insn(text + at, len)) {
            assert_true(i < listing->n);
            assert_bare(arena, listing->spec, &listing->insn[i++], text + at,
                        len);
        }
        at += len + 1;
    }
    assert_int_equal(i, listing->n);
}

/* Every key that was recorded is one of ours, with the same value. */
static void check_key_values(Arena *arena, const HwSpec *spec,
                             const HwInsn *insn, const cJSON *kv) {
    static const char *const not_tokens[] = {"sep", "comment", "pound"};
    const HwRow *row = &spec->insns->row[insn->row];
    const HwForm *form = &row->form[insn->form];
    const cJSON *item;
    cJSON_ArrayForEach(item, kv) {
        bool skip = false;
        for (int i = 0; i < 3; i++)
            skip |= !strcmp(item->string, not_tokens[i]);
        if (skip)
            continue;
        int32_t at = insn_token(form, item->string);
        if (at < 0)
            fail_msg("%s has no token %s", row->mnemonic, item->string);
        assert_string_equal(
            insn_token_text(arena, row, &form->token[at], &insn->value[at]),
            item->valuestring);
    }
}

static void check_json(Arena *arena, const Listing *listing, Bytes bytes) {
    Diag *diag = diag_new(arena);
    cJSON *json =
        json_parse(diag, "recorded", (const char *)bytes.at, bytes.len);
    const cJSON *layer;
    uint32_t i = 0;
    cJSON_ArrayForEach(layer, cJSON_GetObjectItem(json, "network")) {
        const char *line = json_str(layer, "xdnn_instr", NULL);
        const cJSON *kv = cJSON_GetObjectItem(layer, "xdnn_kv");
        bool muted = json_num(layer, "active", 1) == 0;
        if (!line || (muted && *line != '#'))
            continue;
        assert_true(i < listing->n);
        const HwInsn *insn = &listing->insn[i++];
        const char *id = json_str(kv, "id", "");
        if (*line == 'X')
            line = arena_printf(arena, "%s %s", id, line);
        assert_bare(arena, listing->spec, insn, line, strlen(line));
        check_key_values(arena, listing->spec, insn, kv);
    }
    assert_int_equal(i, listing->n);
    json_free(json);
}

static void recorded_listings_print_as_they_were(void **state) {
    (void)state;
    if (!have_recorded())
        skip();
    Arena *arena = arena_new("test");
    for (size_t i = 0; i < RECORDED; i++) {
        Diag *diag = diag_new(arena);
        const char *path = arena_printf(arena, DATA "%s", recorded[i].file);
        const HwSpec *spec = load(arena, recorded[i].target);
        const Listing *listing = listing_read(arena, diag, spec, path);
        diag_print(diag, stderr);
        assert_non_null(listing);
        Bytes bytes;
        assert_true(file_read(arena, diag, path, &bytes));
        if (strstr(path, ".json"))
            check_json(arena, listing, bytes);
        else
            check_text(arena, listing, bytes);
        assert_int_equal(listing->n, recorded[i].n);
    }
    arena_free(arena);
}

/* Through bytes, and through our JSON, to the same text. */
static void recorded_listings_survive(void **state) {
    (void)state;
    if (!have_recorded())
        skip();
    Arena *arena = arena_new("test");
    for (size_t i = 0; i < RECORDED; i++) {
        Diag *diag = diag_new(arena);
        const char *path = arena_printf(arena, DATA "%s", recorded[i].file);
        const HwSpec *spec = load(arena, recorded[i].target);
        const Listing *listing = listing_read(arena, diag, spec, path);
        assert_non_null(listing);
        const char *text = listing_print(arena, listing);
        const uint8_t *data;
        size_t len;
        assert_true(listing_encode(arena, diag, listing, &data, &len));
        const Listing *back =
            listing_decode(arena, diag, spec, "bytes", data, len);
        assert_non_null(back);
        assert_string_equal(listing_print(arena, back), text);
        const char *json = listing_json(arena, listing, "none");
        back =
            listing_json_parse(arena, diag, spec, "x.json", json, strlen(json));
        assert_non_null(back);
        assert_string_equal(listing_print(arena, back), text);
        back = listing_parse(arena, diag, spec, "x.cmd", text, strlen(text));
        assert_non_null(back);
        assert_string_equal(listing_print(arena, back), text);
    }
    arena_free(arena);
}

static void muted_items_are_not_run(void **state) {
    (void)state;
    static const char text[] =
        "{\"network\": [{\"active\": 0, \"xdnn_instr\": \"1 XNUpload 0x0 1 "
        "1\"},"
        "{\"active\": 0, \"xdnn_instr\": \"# 2 XNConcat a  0x0 0x40 64 \"},"
        "{\"active\": 1, \"xdnn_list\": [\"3 XNUpload 0x0 1 1\","
        "{\"xdnn_instr\": \"XNUpload 0x40 1 1\", \"xdnn_kv\": {\"id\": "
        "\"4\"}}]}]}";
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = load(arena, "xdnn-v2-28");
    const Listing *listing =
        listing_json_parse(arena, diag, spec, "x.json", text, sizeof text - 1);
    assert_non_null(listing);
    assert_int_equal(listing->n, 3);
    assert_string_equal(insn_print(arena, spec, &listing->insn[0]),
                        "# 2 XNConcat a  0x0 0x40 64");
    assert_string_equal(insn_print(arena, spec, &listing->insn[2]),
                        "4 XNUpload 0x40 1 1");
    arena_free(arena);
}

/* ---- damage ---- */

static const char *messages(Arena *arena, const Diag *diag) {
    Text text = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *m = diag_at(diag, i);
        text_addf(&text, "%s%u:%u: %s", i ? "\n" : "", m->loc.line, m->loc.col,
                  m->text);
    }
    return text_str(&text);
}

static void check_bad_text(const char *text, const char *wanted) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    assert_null(listing_parse(arena, diag, load(arena, "xdnn-v2-28"), "x.cmd",
                              text, strlen(text)));
    assert_string_equal(messages(arena, diag), wanted);
    arena_free(arena);
}

static void damaged_text_is_reported_in_place(void **state) {
    (void)state;
    check_bad_text("# template\n"
                   "1 XNMaxPool a 3 3 2 2 0 0 0x0 112 112 64 0x0 56 56 0\n"
                   "2 XNMaxPool a 3 3 2 2 0 0 0x0 112 112 64 0x0 56",
                   "3:46: XNMaxPool has 17 or 12 tokens; this line has 15");
    check_bad_text("1 XNMaxPool a 3 3 2 2 0 0 0q0 112 112 64 0x0 56 56 0\n"
                   "\n"
                   "2 XNMinPool a 3 3",
                   "1:27: `0q0` is not a number of 64 bits (inaddr)\n"
                   "3:3: `XNMinPool` is no instruction of xdnn-v2-28");
}

static void check_bad_json(const char *text, const char *wanted) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    assert_null(listing_json_parse(arena, diag, load(arena, "xdnn-v2-28"),
                                   "x.json", text, strlen(text)));
    assert_string_equal(messages(arena, diag), wanted);
    arena_free(arena);
}

static void damaged_json_is_reported(void **state) {
    (void)state;
    check_bad_json("{}", "0:0: no listing: neither `amphora` nor `network` is "
                         "in it");
    check_bad_json("{\"amphora\": {\"instructions\": [\n"
                   " \"1 XNUpload 0x0 1 1\",\n \"1 XNUpload 0x0 1\"]}}",
                   "3:18: XNUpload has 5 tokens; this line has 4");
    check_bad_json("{\"network\": [{\"xdnn_kv\": {\"id\": \"9\"},\n"
                   "\"xdnn_instr\": \"XNUpload 0x0 one 1\"}]}",
                   "2:29: `one` is not a number of 64 bits (insize)");
    check_bad_json("{\"network\": [{\"xdnn_instr\": 7}]}",
                   "0:0: instruction 0 is not a string");
    check_bad_json(
        "{\"network\": [], \"amphora\": {\"instructions\": [], \"image\": {"
        "\"blobs\": [{\"layer\": \"a\", \"role\": \"bias\", \"kind\": "
        "\"f32\", \"shape\": [4], \"offset\": 0}], \"acts\": [], \"inputs\": "
        "[{\"name\": \"data\", \"shape\": [0], \"memory\": \"nowhere\", "
        "\"offset\": -1, \"part_c\": 0, \"whole\": [1, 1], \"repl\": "
        "[0, 0, 0, 0]}], \"outputs\": 3, \"hosts\": [], \"layers\": []}}}",
        "0:0: amphora.image.blobs[0].offset leaves the weights file\n"
        "0:0: amphora.image.inputs[0].shape is not a list of at most 8 sizes "
        "of a tensor\n"
        "0:0: amphora.image.inputs[0].memory is no memory of this machine\n"
        "0:0: amphora.image.inputs[0].offset is not a whole number\n"
        "0:0: amphora.image.inputs[0].whole is not a list of channels, height "
        "and width\n"
        "0:0: `outputs` is not a list");
    check_bad_json(
        "{\"network\": [], \"amphora\": {\"instructions\": [], \"image\": {"
        "\"blobs\": [{\"layer\": \"a\", \"role\": \"bias\", \"kind\": "
        "\"f31\", \"shape\": [4]}, {\"layer\": \"a\", \"role\": \"bias\", "
        "\"kind\": \"seeded\", \"shape\": [4], \"seed\": 1}], \"acts\": [], "
        "\"inputs\": [], \"outputs\": [], \"hosts\": [], \"layers\": []}}}",
        "0:0: amphora.image.blobs[0].kind is none of: seeded, f32, f64, f16, "
        "bf16, i8, u8, i16 or i32\n"
        "0:0: amphora.image.blobs[1].mean is not a number\n"
        "0:0: amphora.image.blobs[1].spread is not a number");
}

/* The image of made() with one text in place of another. */
static void check_changed(const char *from, const char *to,
                          const char *wanted) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = load(arena, "template");
    const Listing *listing = made(arena, spec);
    const char *dir = folder(arena), *path[3];
    assert_true(listing_write(arena, diag, listing, dir, path));
    const char *text = listing_json(arena, listing, "net.weights");
    const char *at = strstr(text, from);
    if (!at)
        fail_msg("no %s in the listing", from);
    text = arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to,
                        at + strlen(from));
    if (listing_json_parse(arena, diag, spec, path[1], text, strlen(text)))
        fail_msg("%s instead of %s is read", to, from);
    assert_string_equal(messages(arena, diag), wanted);
    remove_all(dir, path);
    arena_free(arena);
}

static void damaged_quantisation_is_reported(void **state) {
    (void)state;
#define AT "0:0: amphora.image.quants"
    check_changed("-32768", "-32769",
                  AT "[1].zero_in holds something that is no code");
    check_changed("32767", "32768",
                  AT "[1].zero_in holds something that is no code");
    check_changed("32767", "\"0\"",
                  AT "[1].zero_in holds something that is no code");
    check_changed("32767", "0, 0", AT "[1].zero_in is not a list of 2 numbers");
    check_changed("\"sums\"", "\"sum\"",
                  AT "[0].rule is no rule of quantised layers");
    check_changed("\"left\":\t20", "\"left\": 21", AT "[1].left is above 20");
    check_changed("\"sums\"", "\"moves\"",
                  AT "[0].factor_below is only of sums");
    check_changed("1288490189", "2147483648",
                  AT "[0].factor is above 2^31, or its shift is none of 1..62");
#undef AT
    check_changed("\"int8\"", "\"int9\"",
                  "0:0: amphora.image.outputs[0].quant is no quantisation");
}

static void check_damage(Arena *arena, const HwSpec *spec, const uint8_t *data,
                         size_t len) {
    Diag *diag = diag_new(arena);
    const Listing *back = listing_decode(arena, diag, spec, "x.bin", data, len);
    assert_int_equal(!back, diag_errors(diag) > 0);
    if (back)
        listing_print(arena, back);
}

static void damaged_bytes_are_refused_or_read(void **state) {
    (void)state;
    Arena *arena = arena_new("test"), *scratch = arena_new("damage");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = load(arena, "template");
    const uint8_t *data;
    size_t len;
    assert_true(listing_encode(arena, diag, made(arena, spec), &data, &len));
    for (size_t cut = 0; cut < len; cut++) {
        check_damage(scratch, spec, data, cut);
        arena_reset(scratch);
    }
    uint8_t *copy = ARENA_COPY(arena, uint8_t, data, len);
    for (uint64_t i = 0; i < 5000; i++) {
        size_t at = rng_bits(1, i) % len;
        copy[at] ^= (uint8_t)(1 << (rng_bits(2, i) & 7));
        check_damage(scratch, spec, copy, len);
        copy[at] = data[at];
        arena_reset(scratch);
    }
    copy[len - 1] = 'x';
    diag = diag_new(arena);
    assert_null(listing_decode(arena, diag, spec, "x.bin", copy, len));
    assert_string_equal(messages(arena, diag),
                        "0:12: the table of strings does not end in a NUL");
    diag = diag_new(arena);
    assert_null(
        listing_decode(arena, diag, load(arena, "null"), "x.bin", data, len));
    assert_string_equal(messages(arena, diag),
                        "0:8: written for a machine with other instructions");
    arena_free(scratch);
    arena_free(arena);
}

/* Cut or flipped JSON never crashes; what is accepted can be printed. */
static void damaged_json_is_refused_or_read(void **state) {
    (void)state;
    Arena *arena = arena_new("test"), *scratch = arena_new("damage");
    const HwSpec *spec = load(arena, "template");
    const char *dir = folder(arena), *path[3];
    assert_true(
        listing_write(arena, diag_new(arena), made(arena, spec), dir, path));
    const char *text = listing_json(arena, made(arena, spec), "net.weights");
    size_t len = strlen(text), n_read = 0;
    char *copy = arena_strdup(arena, text);
    for (uint64_t i = 0; i < 1000; i++) {
        Diag *diag = diag_new(scratch);
        size_t at = rng_bits(3, i) % len;
        copy[at] = (char)(copy[at] ^ (1 << (rng_bits(4, i) % 7)));
        size_t n = i % 10 ? len : at;
        const Listing *back =
            listing_json_parse(scratch, diag, spec, path[1], copy, n);
        assert_int_equal(!back, diag_errors(diag) > 0);
        n_read += back != NULL;
        if (back)
            everything(scratch, back);
        copy[at] = text[at];
        arena_reset(scratch);
    }
    assert_in_range(n_read, 100, 900);
    remove_all(dir, path);
    arena_free(scratch);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_read_back),
        cmocka_unit_test(instructions_name_functions),
        cmocka_unit_test(names_in_c),
        cmocka_unit_test(text_and_json_apart),
        cmocka_unit_test(odd_network_names_stay_in_the_folder),
        cmocka_unit_test(bytes_read_back),
        cmocka_unit_test(json_has_the_recorded_keys),
        cmocka_unit_test(recorded_listings_print_as_they_were),
        cmocka_unit_test(recorded_listings_survive),
        cmocka_unit_test(muted_items_are_not_run),
        cmocka_unit_test(damaged_text_is_reported_in_place),
        cmocka_unit_test(damaged_json_is_reported),
        cmocka_unit_test(damaged_quantisation_is_reported),
        cmocka_unit_test(damaged_bytes_are_refused_or_read),
        cmocka_unit_test(damaged_json_is_refused_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
