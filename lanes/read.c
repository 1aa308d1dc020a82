/* read.c - a network's description in YAML, as the vendor's tool reads it.
 *
 * Input: the text. Output: layers with what it says; sizes come with the
 * weights (shape.c). Keys are a table; a key that is not in it is an error.
 */
#include "lanes/lanes.h"

#include "base/file.h"
#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct Description {
    Arena *arena;
    Diag *diag;
    const YamlNode *layers;
    LaneNet *net;
    uint32_t at;
    const char *format; /* data_format */
} Description;

typedef bool ReadKey(Description *d, const YamlNode *node, LaneLayer *l);

static bool wrong(Description *d, const YamlNode *node, const char *wants) {
    diag_error(d->diag, node->loc, "layer %u: %s", d->at, wants);
    return false;
}

/* 0x00ff, dots allowed; or decimal. */
static bool read_map(Description *d, const YamlNode *node, uint64_t *out) {
    const char *text;
    char plain[32];
    size_t n = 0;
    if (!yaml_str(d->diag, node, &text))
        return false;
    for (; *text && n + 1 < sizeof plain; text++)
        if (*text != '.' && *text != '_')
            plain[n++] = *text;
    plain[n] = 0;
    char *end = plain;
    *out = n ? strtoull(plain, &end, 0) : 0;
    if (*text || !n || *end || !*out)
        return wrong(d, node, "a map of processors is 1 to 64 bits: 0x000f");
    return true;
}

static bool read_number(Description *d, const YamlNode *node, uint32_t least,
                        uint32_t most, uint32_t *out) {
    if (!yaml_u32(d->diag, node, out))
        return false;
    if (*out >= least && *out <= most)
        return true;
    diag_error(d->diag, node->loc, "layer %u: %u is not within %u to %u", d->at,
               *out, least, most);
    return false;
}

/* n, or [rows, columns]. */
static bool read_pair(Description *d, const YamlNode *node, uint32_t least,
                      uint32_t most, uint32_t out[2]) {
    if (node->kind != YAML_LIST) {
        bool ok = read_number(d, node, least, most, &out[0]);
        out[1] = out[0];
        return ok;
    }
    if (node->n != 2)
        return wrong(d, node, "[rows, columns] has two numbers");
    return read_number(d, node->item[0], least, most, &out[0]) &&
           read_number(d, node->item[1], least, most, &out[1]);
}

typedef struct Word {
    const char *name;
    uint32_t value;
} Word;

static bool read_word(Description *d, const YamlNode *node, const Word *words,
                      uint32_t *out) {
    const char *text;
    Text offer = text_new(d->arena);
    if (!yaml_str(d->diag, node, &text))
        return false;
    for (; words->name; words++) {
        text_addf(&offer, " %s", words->name);
        if (!strcasecmp(words->name, text)) {
            *out = words->value;
            return true;
        }
    }
    diag_error(d->diag, node->loc, "layer %u: `%s` is none of:%s", d->at, text,
               text_str(&offer));
    return false;
}

/* ---- keys ---- */

static bool key_lanes(Description *d, const YamlNode *node, LaneLayer *l) {
    return read_map(d, node, &l->lanes);
}
static bool key_out_lanes(Description *d, const YamlNode *node, LaneLayer *l) {
    return read_map(d, node, &l->out_lanes);
}
static bool key_in_offset(Description *d, const YamlNode *node, LaneLayer *l) {
    l->says_in_offset = true;
    return read_number(d, node, 0, 1 << 20, &l->in_offset);
}
static bool key_out_offset(Description *d, const YamlNode *node, LaneLayer *l) {
    return read_number(d, node, 0, 1 << 20, &l->out_offset);
}
static bool key_gap(Description *d, const YamlNode *node, LaneLayer *l) {
    return read_number(d, node, 0, 4096, &l->gap);
}

static bool key_operation(Description *d, const YamlNode *node, LaneLayer *l) {
    static const Word words[] = {{"conv2d", LANE_CONV2D},
                                 {"conv1d", LANE_CONV1D},
                                 {"linear", LANE_LINEAR},
                                 {"convtranspose2d", LANE_DECONV},
                                 {"fc", LANE_LINEAR},
                                 {"mlp", LANE_LINEAR},
                                 {"none", LANE_PASS},
                                 {"passthrough", LANE_PASS},
                                 {"add", LANE_OPS + 1},
                                 {"sub", LANE_OPS + 2},
                                 {"or", LANE_OPS + 3},
                                 {"xor", LANE_OPS + 4},
                                 {NULL, 0}};
    uint32_t value;
    if (!read_word(d, node, words, &value))
        return false;
    l->op = value > LANE_OPS ? LANE_PASS : (LaneOp)value;
    if (value > LANE_OPS) {
        static const LaneElt elt[] = {LANE_ALONE, LANE_ADD, LANE_SUB, LANE_OR,
                                      LANE_XOR};
        l->elt = elt[value - LANE_OPS];
    }
    return true;
}
static bool key_eltwise(Description *d, const YamlNode *node, LaneLayer *l) {
    static const Word words[] = {{"add", LANE_ADD},
                                 {"sub", LANE_SUB},
                                 {"or", LANE_OR},
                                 {"xor", LANE_XOR},
                                 {NULL, 0}};
    uint32_t value = 0;
    bool ok = read_word(d, node, words, &value);
    l->elt = (LaneElt)value;
    return ok;
}
static bool key_operands(Description *d, const YamlNode *node, LaneLayer *l) {
    return read_number(d, node, 2, LANE_OPERANDS, &l->operands);
}
static bool key_activate(Description *d, const YamlNode *node, LaneLayer *l) {
    static const Word words[] = {{"relu", LANE_RELU},
                                 {"abs", LANE_ABS},
                                 {"none", LANE_PLAIN},
                                 {NULL, 0}};
    uint32_t value = 0;
    bool ok = read_word(d, node, words, &value);
    l->act = (LaneAct)value;
    return ok;
}

static bool key_kernel(Description *d, const YamlNode *node, LaneLayer *l) {
    const char *text;
    l->says_kernel = true;
    if (!yaml_str(d->diag, node, &text))
        return false;
    const char *x = strpbrk(text, "xX");
    l->says_square = x != NULL;
    char *end, *second;
    unsigned long h = strtoul(text, &end, 10), w = h;
    second = end;
    if (x)
        w = strtoul(x + 1, &second, 10);
    if ((x && end != x) || *second || h < 1 || h > 9 || w < 1 || w > 9)
        return wrong(d, node, "kernel_size is 1 to 9, or 3x3, 1x1");
    l->kernel[0] = (uint32_t)h;
    l->kernel[1] = (uint32_t)w;
    return true;
}
static bool key_pad(Description *d, const YamlNode *node, LaneLayer *l) {
    l->says_pad = true;
    return read_pair(d, node, 0, 2, l->pad);
}
static bool key_dilation(Description *d, const YamlNode *node, LaneLayer *l) {
    return read_pair(d, node, 1, 1023, l->dilation);
}
static bool read_pool(Description *d, const YamlNode *node, LaneLayer *l) {
    bool again = l->pooled;
    l->pooled = true;
    return read_pair(d, node, 1, 16, l->pool) &&
           (!again ||
            wrong(d, node, "a layer has max_pool or avg_pool, not both"));
}
static bool key_max_pool(Description *d, const YamlNode *node, LaneLayer *l) {
    return read_pool(d, node, l);
}
static bool key_avg_pool(Description *d, const YamlNode *node, LaneLayer *l) {
    l->average = true;
    return read_pool(d, node, l);
}
static bool key_pool_stride(Description *d, const YamlNode *node,
                            LaneLayer *l) {
    uint32_t both[2] = {1, 1};
    bool ok = read_pair(d, node, 1, 16, both);
    l->pool_stride = both[0];
    return ok && (both[0] == both[1] ||
                  wrong(d, node, "pool_stride is the same in both directions"));
}
static bool key_pool_first(Description *d, const YamlNode *node, LaneLayer *l) {
    return yaml_bool(d->diag, node, &l->pool_first);
}
static bool key_flatten(Description *d, const YamlNode *node, LaneLayer *l) {
    return yaml_bool(d->diag, node, &l->flatten);
}
static bool key_streaming(Description *d, const YamlNode *node, LaneLayer *l) {
    return yaml_bool(d->diag, node, &l->streaming);
}
static bool key_output(Description *d, const YamlNode *node, LaneLayer *l) {
    return yaml_bool(d->diag, node, &l->marked);
}
static bool key_width(Description *d, const YamlNode *node, LaneLayer *l) {
    uint32_t bits = 8;
    if (!yaml_u32(d->diag, node, &bits))
        return false;
    l->width = bits / 8;
    return bits == 8 || bits == 32 || wrong(d, node, "output_width is 8 or 32");
}
static bool key_bits(Description *d, const YamlNode *node, LaneLayer *l) {
    bool ok = read_number(d, node, 1, 8, &l->bits);
    l->says_bits = true;
    return ok && ((l->bits & (l->bits - 1)) == 0 ||
                  wrong(d, node, "quantization is 1, 2, 4 or 8"));
}
static bool key_format(Description *d, const YamlNode *node, LaneLayer *l) {
    static const Word words[] = {{"hwc", 0}, {"chw", 1}, {NULL, 0}};
    uint32_t value = 0;
    bool ok = read_word(d, node, words, &value);
    l->chw = value == 1;
    return ok && (!l->chw || d->at == 0 ||
                  wrong(d, node, "only the first layer's data are chw"));
}
static bool key_in_dim(Description *d, const YamlNode *node, LaneLayer *l) {
    return read_pair(d, node, 1, 1023, l->in);
}
static bool key_name(Description *d, const YamlNode *node, LaneLayer *l) {
    if (!yaml_str(d->diag, node, &l->name))
        return false;
    bool taken = !strcasecmp(l->name, "stop") || !strcasecmp(l->name, "input");
    for (uint32_t i = 0; i < d->at; i++)
        taken = taken || (d->net->layer[i].name &&
                          !strcasecmp(d->net->layer[i].name, l->name));
    return !taken || wrong(d, node, "the name is taken");
}
static bool key_one(Description *d, const YamlNode *node, LaneLayer *l) {
    uint32_t both[2];
    (void)l;
    return read_pair(d, node, 1, 2, both) &&
           ((both[0] == 1 && both[1] == 1) ||
            wrong(d, node, "this machine has no groups"));
}
static bool key_stride(Description *d, const YamlNode *node, LaneLayer *l) {
    return read_pair(d, node, 1, 16, l->stride);
}
static bool key_sequence(Description *d, const YamlNode *node, LaneLayer *l) {
    uint32_t number = 0;
    (void)l;
    return yaml_u32(d->diag, node, &number) &&
           (number == d->at ||
            wrong(d, node, "`sequence` is the layer's place in the list"));
}
static bool key_shift(Description *d, const YamlNode *node, LaneLayer *l) {
    const char *text;
    char *end;
    if (!yaml_str(d->diag, node, &text))
        return false;
    long shift = strtol(text, &end, 10);
    if (end == text || *end || shift < -15 || shift > 15)
        return wrong(d, node, "output_shift is -15 to 15");
    l->out_shift = (int32_t)shift;
    l->says_shift = true;
    return true;
}

/* A layer before this one: its number, or its name. */
static bool one_source(Description *d, const YamlNode *node, LaneLayer *l) {
    const char *text;
    char *end;
    if (!yaml_str(d->diag, node, &text))
        return false;
    long number = strtol(text, &end, 10);
    if (*end) {
        number = strcasecmp(text, "input") ? -2 : LANE_INPUT;
        for (uint32_t i = 0; i < d->at; i++)
            if (d->net->layer[i].name && !strcmp(d->net->layer[i].name, text))
                number = i;
    }
    if (number < LANE_INPUT || number >= (long)d->at)
        return wrong(d, node, "in_sequences names layers before this one");
    if (l->n_sources == LANE_OPERANDS)
        return wrong(d, node, "in_sequences has at most 16 layers");
    l->source[l->n_sources++] = (int32_t)number;
    return true;
}
static bool key_sources(Description *d, const YamlNode *node, LaneLayer *l) {
    bool ok = true;
    l->n_sources = 0;
    l->says_sources = true;
    if (node->kind == YAML_SCALAR)
        return one_source(d, node, l);
    for (uint32_t i = 0; ok && i < node->n; i++)
        ok = one_source(d, node->item[i], l);
    return ok && l->n_sources;
}

static const struct {
    const char *name;
    ReadKey *read;
} keys[] = {
    {"name", key_name},
    {"processors", key_lanes},
    {"output_processors", key_out_lanes},
    {"in_offset", key_in_offset},
    {"out_offset", key_out_offset},
    {"write_gap", key_gap},
    {"op", key_operation},
    {"operation", key_operation},
    {"operator", key_operation},
    {"convolution", key_operation},
    {"eltwise", key_eltwise},
    {"operands", key_operands},
    {"activate", key_activate},
    {"activation", key_activate},
    {"kernel_size", key_kernel},
    {"pad", key_pad},
    {"dilation", key_dilation},
    {"max_pool", key_max_pool},
    {"avg_pool", key_avg_pool},
    {"pool_stride", key_pool_stride},
    {"pool_first", key_pool_first},
    {"flatten", key_flatten},
    {"streaming", key_streaming},
    {"output", key_output},
    {"output_width", key_width},
    {"quantization", key_bits},
    {"data_format", key_format},
    {"in_dim", key_in_dim},
    {"in_sequences", key_sources},
    {"stride", key_stride},
    {"groups", key_one},
    {"sequence", key_sequence},
    {"output_shift", key_shift},
};

/* Does a key before the i-th say the same? */
static bool is_said(const YamlNode *node, uint32_t i, ReadKey *read) {
    for (uint32_t j = 0; j < i; j++)
        for (uint32_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (keys[k].read == read && !strcmp(keys[k].name, node->key[j]))
                return true;
    return false;
}

static void read_layer(Description *d, const YamlNode *node, LaneLayer *l) {
    *l = (LaneLayer){.loc = node->loc,
                     .n_sources = 1,
                     .source = {(int32_t)d->at - 1},
                     .operands = 0,
                     .pool = {1, 1},
                     .pool_stride = 1,
                     .dilation = {1, 1},
                     .pool_first = true,
                     .bits = 8,
                     .width = 1};
    if (!yaml_is(d->diag, node, YAML_MAP))
        return;
    for (uint32_t i = 0; i < node->n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < sizeof keys / sizeof *keys && !found; k++)
            if (!strcmp(node->key[i], keys[k].name)) {
                node->item[i]->used = found = true;
                if (is_said(node, i, keys[k].read))
                    wrong(d, node->item[i], "another key says this already");
                keys[k].read(d, node->item[i], l);
            }
        if (!found)
            diag_error(d->diag, node->key_loc[i],
                       "layer %u: `%s` is not known, or not of this machine",
                       d->at, node->key[i]);
    }
    if (!l->lanes)
        diag_error(d->diag, node->loc, "layer %u has no `processors`", d->at);
    if (!l->operands)
        l->operands = l->elt == LANE_ALONE ? 1
                      : l->n_sources > 1   ? l->n_sources
                                           : 2;
}

static bool is_dense(const LaneLayer *l) {
    return l->op == LANE_LINEAR || l->op == LANE_PASS;
}

/* Keys that the operation does not take. */
static void check_keys(Description *d, const YamlNode *node,
                       const LaneLayer *l) {
    uint32_t usual = l->op == LANE_DECONV ? 2 : 1;
    bool strided =
        l->stride[0] && (l->stride[0] != usual || l->stride[1] != usual);
    if (strided && usual == 2)
        wrong(d, node, "the stride of convtranspose2d is 2");
    else if (strided)
        wrong(d, node,
              "this machine has no strided convolution; pool_stride takes "
              "every second pixel of the input");
    if (l->says_pad && is_dense(l) && (l->pad[0] || l->pad[1]))
        wrong(d, node, "only convolutions have a pad");
    if (l->operands > 1 && l->elt == LANE_ALONE)
        wrong(d, node, "only sums, differences, or, xor have operands");
    if (l->says_kernel &&
        (l->op == LANE_LINEAR || (l->op == LANE_PASS && l->kernel[0] != 1)))
        wrong(d, node, "only convolutions have a kernel_size");
    bool square = l->op == LANE_CONV2D || l->op == LANE_DECONV;
    if (l->says_kernel && l->says_square != square)
        wrong(d, node, "kernel_size is 3x3 or 1x1 of conv2d, else a number");
    if (l->op == LANE_PASS && l->says_shift && l->out_shift)
        wrong(d, node, "a layer without weights does not shift");
}

/* What is not said: kernels, pads. */
static void defaults(LaneLayer *l) {
    bool dense = is_dense(l);
    uint32_t usual = dense ? 1 : l->op == LANE_CONV1D ? 9 : 3;
    if (!l->says_kernel || dense)
        l->kernel[0] = l->kernel[1] = usual;
    if (!l->says_pad || dense)
        l->pad[0] = l->pad[1] = !dense;
    if (l->op == LANE_CONV1D) {
        l->kernel[1] = 1;
        l->pad[1] = 0;
        l->dilation[1] = 1;
        l->pool[1] = 1;
    }
}

/* The map of the last layer's result. */
static void read_output_map(Description *d, const YamlNode *node) {
    uint64_t map = 0;
    if (!node || !d->net->n)
        return;
    d->at = d->net->n - 1;
    LaneLayer *last = &d->net->layer[d->at];
    if (!read_map(d, node, &map))
        return;
    if (last->out_lanes && last->out_lanes != map)
        wrong(d, node, "output_map is not what output_processors says");
    last->out_lanes = map;
}

static void check_top(Diag *diag, const YamlNode *root) {
    for (uint32_t i = 0; i < root->n; i++)
        if (!root->item[i]->used)
            diag_error(diag, root->key_loc[i],
                       "`%s` is not known, or not read here: only arch, "
                       "dataset, layers and output_map",
                       root->key[i]);
}

LaneNet *lanes_read(Arena *arena, Diag *diag, const char *path) {
    Bytes text;
    uint32_t errors = diag_errors(diag);
    if (!file_read(arena, diag, path, &text))
        return NULL;
    YamlNode *root =
        yaml_parse(arena, diag, path, (const char *)text.at, text.len);
    if (!root || !yaml_is(diag, root, YAML_MAP))
        return NULL;
    LaneNet *net = ARENA_NEW(arena, LaneNet);
    Description d = {.arena = arena, .diag = diag, .net = net};
    d.layers = yaml_need(diag, root, "layers");
    yaml_str(diag, yaml_need(diag, root, "arch"), &net->arch);
    yaml_str(diag, yaml_need(diag, root, "dataset"), &net->dataset);
    if (!d.layers || !yaml_is(diag, d.layers, YAML_LIST))
        return NULL;
    net->n = d.layers->n;
    net->layer = ARENA_ARRAY(arena, LaneLayer, net->n + 1);
    for (d.at = 0; d.at < net->n; d.at++) {
        read_layer(&d, d.layers->item[d.at], &net->layer[d.at]);
        check_keys(&d, d.layers->item[d.at], &net->layer[d.at]);
        defaults(&net->layer[d.at]);
    }
    if (!net->n)
        diag_error(diag, d.layers->loc, "there are no layers");
    read_output_map(&d, yaml_get(root, "output_map"));
    check_top(diag, root);
    return diag_errors(diag) > errors ? NULL : net;
}
