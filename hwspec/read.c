/* read.c - the hwspec reader: files and what they extend, settings, and the
 * table of sections.
 *
 * Input: a name, a path or a text; settings. Output: HwSpec, or NULL after any
 * error; all errors of all sections are reported at once.
 * Invariant: sections are read in the table's order, each after those that it
 * leans on.
 */
#include "hwspec/read.h"

#include "base/file.h"
#include "base/vec.h"
#include "hwspec/format/read.h"
#include "hwspec/rows.h"

#include <string.h>
#include <sys/stat.h>

enum { MAX_EXTENDS = 16 };

/* ---- keys ---- */

bool read_inherited(const Reader *r, Loc said) {
    const char *own = r->spec->loc.file;
    return said.line && said.file && own && strcmp(said.file, own) != 0;
}

void read_ignore(YamlNode *node) {
    node->used = true;
    for (uint32_t i = 0; i < node->n; i++)
        read_ignore(node->item[i]);
}

bool read_is(Reader *r, YamlNode *node, YamlKind kind) {
    if (yaml_is(r->diag, node, kind))
        return true;
    if (node)
        read_ignore(node);
    return false;
}

Loc read_loc(const YamlNode *map, const char *key) {
    const YamlNode *node = yaml_get(map, key);
    return node ? node->loc : map->loc;
}

bool read_keys(Reader *r, YamlNode *map, const Section *section, void *out) {
    if (!read_is(r, map, YAML_MAP))
        return false;
    bool ok = true;
    for (uint32_t i = 0; i < section->n; i++) {
        const Key *key = &section->key[i];
        YamlNode *node = key->needed ? yaml_need(r->diag, map, key->name)
                                     : yaml_get(map, key->name);
        if (node)
            ok &= key->read(r, node, (char *)out + key->at);
        else
            ok &= !key->needed;
    }
    return ok;
}

/* ---- small sections ---- */

static bool read_rounding(Reader *r, YamlNode *node, void *out) {
    static const char *const names[] = {"up", "even", "network", "terms", NULL};
    uint32_t k;
    if (!yaml_enum(r->diag, node, names, &k))
        return false;
    *(HwRounding *)out = (HwRounding)k;
    return true;
}

static const Key machine_keys[] = {
    NEED("name", read_str, HwSpec, machine, "of the machine"),
    KEY("doc", read_str, HwSpec, doc, "one line about it"),
    NEED("clock", read_hertz, HwSpec, clock,
         "of engines that give none: 500MHz"),
    NEED("element", read_element, HwSpec, element,
         "bytes of an element in active memory"),
    KEY("rounding", read_rounding, HwSpec, rounding,
        "how results on codes are rounded: up (by 31-bit factors, halves up; "
        "also where this is absent), even (by float32 factors, halves to "
        "even), network (as the network's own runtime does) or terms (as even; "
        "of a sum of two first the term of the smaller scale)"),
};
const Section read_machine_section = SECTION("machine", machine_keys);

static const Key weight_cache_keys[] = {
    NEED("pingpong", read_u32, HwWeightCache, pingpong,
         "up to so many rows, weights load while others run"),
    NEED("full_rate", read_u32, HwWeightCache, full_rate,
         "up to so many rows they are read at full rate"),
    NEED("half_rate", read_u32, HwWeightCache, half_rate,
         "up to so many rows at half rate; the cache holds no more"),
    KEY("bandwidth", read_rate, HwWeightCache, bandwidth,
        "of weights on their way into the cache, bytes a second; else "
        "unbounded"),
};
const Section read_weight_cache_section =
    SECTION("weight_cache", weight_cache_keys);

static const Key native_keys[] = {
    KEY("triple", read_str, HwNative, triple,
        "as LLVM names the target: aarch64-linux-gnu; else that of the "
        "computer that amphora runs on"),
    KEY("cpu", read_str, HwNative, cpu, "as LLVM names it; else any"),
    KEY("features", read_str, HwNative, features,
        "as LLVM names them: +avx2,+fma; else those of the cpu"),
    KEY("lanes", read_count, HwNative, lanes,
        "floats of a vector register; else what the others imply"),
    KEY("weights", read_bytes, HwNative, weights,
        "bytes that there are for constants; else any number"),
    KEY("weights_file", read_bool, HwNative, weights_file,
        "true: of a bundle, they are a file, NET.bin, that the caller has in "
        "memory"),
    KEY("fit_element", read_bool, HwNative, fit_element,
        "true: an element takes no more bytes than the widest type of the "
        "network, codes or floats; machine.element is the most"),
};
const Section read_native_section = SECTION("native", native_keys);

static bool read_native(Reader *r, YamlNode *node, void *out) {
    return read_keys(r, node, &read_native_section, out);
}

static const Key host_keys[] = {
    KEY("macs_per_second", read_per_second, HwHost, macs,
        "products of a layer that the host computes; else 4e9"),
    KEY("bytes_per_second", read_per_second, HwHost, bandwidth,
        "operands, constants and result of such a layer; else 4e9"),
    KEY("call", read_seconds, HwHost, call,
        "time that each such layer takes at least; else 10us"),
};
const Section read_host_section = SECTION("host", host_keys);

/* A processor of some GHz with short vectors, and one memory. */
static const HwHost usual_host = {4e9, 4e9, 10e-6};

static bool read_host(Reader *r, YamlNode *node, void *out) {
    return read_keys(r, node, &read_host_section, out);
}

static const Key limits_keys[] = {
    KEY("instructions", read_u32, HwSpec, max_instructions,
        "that a listing may have, layers of the host aside; else any number"),
};
const Section read_limits_section = SECTION("limits", limits_keys);

static const Key rewrites_keys[] = {
    KEY("conv_1x1_stride2", read_bool, HwSpec, conv_1x1_stride2,
        "true: such a convolution becomes a max pool 1x1 of stride 2 and a "
        "convolution 1x1"),
    KEY("pool_around_concat", read_bool, HwSpec, pool_around_concat,
        "true: the pool of a concat becomes the concat of pools"),
    KEY("expand_groups", read_bool, HwSpec, expand_groups,
        "true: grouped convolutions that no engine runs become dense ones, "
        "with "
        "zero weights"),
    KEY("stride_as_sample", read_bool, HwSpec, stride_as_sample,
        "true: a strided convolution becomes one of every place and a "
        "max pool 1x1 with its stride, where an engine runs both in "
        "one"),
    KEY("input_by_phases", read_bool, HwSpec, input_by_phases,
        "true: rows and columns of an input that a convolution of "
        "stride 2 reads become channels by parity, where a sample "
        "would not start at place 0"),
    KEY("fc_as_conv", read_bool, HwSpec, fc_as_conv,
        "true: an inner product becomes a convolution 1x1"),
    KEY("pad_to_limits", read_bool, HwSpec, pad_to_limits,
        "true: a volume smaller than the least in.w, in.h of the "
        "engine is padded behind, and its result cut"),
    KEY("slabs", read_bool, HwSpec, slabs,
        "true: a depthwise layer whose operand and result do not fit into "
        "active memory together takes some channels at a time"),
    KEY("bands", read_bool, HwSpec, bands,
        "true: layers that are taller, wider or larger than their engine "
        "and active memory take run in bands of rows or columns"),
    KEY("act_of_codes", read_bool, HwSpec, act_of_codes,
        "true: a function of the codes that a convolution makes, or another "
        "quantisation, is computed from its sums (with a `container` alone)"),
    KEY("pool_behind_conv", read_bool, HwSpec, pool_behind_conv,
        "true: a max pool that engines run only behind a convolution "
        "gets one; 3x3 by 2 becomes 2x2 by 1 and 2x2 by 2"),
};
const Section read_rewrites_section = SECTION("rewrites", rewrites_keys);

/* Layers count from 1; what has the same number runs at the same time. */
static bool read_input_step(Reader *r, YamlNode *node, void *out) {
    uint32_t *step = out;
    if (!read_u32(r, node, step))
        return false;
    if (*step == 1)
        diag_error(r->diag, node->loc,
                   "1 is the number of the first layer: loads of inputs would "
                   "be said to run beside it");
    return *step != 1;
}

static const Key listing_keys[] = {
    KEY("input_shares_step", read_bool, HwSpec, input_shares_step,
        "true: loads of network inputs take no step number of their own"),
    KEY("input_step", read_input_step, HwSpec, input_step,
        "... but this one, which is not 1"),
};
const Section read_listing_section = SECTION("listing", listing_keys);

static bool read_machine(Reader *r, YamlNode *node, void *out) {
    return read_keys(r, node, &read_machine_section, out);
}

static bool read_limits(Reader *r, YamlNode *node, void *out) {
    return read_keys(r, node, &read_limits_section, out);
}

static bool read_rewrites(Reader *r, YamlNode *node, void *out) {
    return read_keys(r, node, &read_rewrites_section, out);
}

static bool read_listing(Reader *r, YamlNode *node, void *out) {
    return read_keys(r, node, &read_listing_section, out);
}

static bool read_weight_cache(Reader *r, YamlNode *node, void *out) {
    HwWeightCache *cache = out;
    if (!read_keys(r, node, &read_weight_cache_section, cache))
        return false;
    bool ok = cache->pingpong <= cache->full_rate &&
              cache->full_rate <= cache->half_rate;
    if (!ok)
        diag_error(r->diag, node->loc,
                   "pingpong, full_rate, half_rate must not fall: %u, %u, %u",
                   cache->pingpong, cache->full_rate, cache->half_rate);
    return ok;
}

/* ---- the whole ---- */

static bool read_extends(Reader *r, YamlNode *node, void *out) {
    (void)r, (void)node, (void)out; /* merge_base did it */
    return true;
}

/* The room lanes/ reads it. */
static bool read_lanes(Reader *r, YamlNode *node, void *out) {
    (void)r;
    read_ignore(node);
    *(const YamlNode **)out = node;
    return true;
}

static const Key top_keys[] = {
    {"extends", read_extends, 0, false,
     "the target that this one changes: a shipped name, or a path from this "
     "file's folder"},
    {"machine", read_machine, 0, true, "name, clock, element"},
    {"layouts", read_layouts, 0, true, "map: how volumes lie in a memory"},
    {"memories", read_memories, 0, true,
     "map, in order of preference: where volumes lie"},
    KEY("cores", read_cores, HwSpec, cores,
        "how often there is all of it, each on an image of its own; else "
        "once"),
    {"arithmetic", read_arithmetic, 0, false,
     "map: how sums of codes become codes; engines name one"},
    {"engines", read_engines, 0, true, "map: what computes"},
    KEY("numbers", read_numbers, HwSpec, numbers,
        "what numbers of networks on codes engines take; else those of their "
        "`arithmetic`, or any"),
    {"replication", read_replication, 0, false,
     "copies of the last, partial section of channels"},
    {"tiling", read_tiling, 0, false,
     "how layers that are too large for active memory are run"},
    {"dma", read_dma, 0, false,
     "map: units that move data at the same time; else one moves all"},
    KEY("weight_cache", read_weight_cache, HwSpec, weight_cache,
        "how many rows of weights fit where; else no limits"),
    KEY("native", read_native, HwSpec, native,
        "what machine code is for: that of an engine that runs `layer`, and "
        "that of the host"),
    KEY("bundle", read_bundle, HwSpec, bundle,
        "in which memories a bundle keeps what"),
    KEY("host", read_host, HwSpec, host,
        "how fast layers are that no engine runs; else a small processor"),
    {"costs", read_costs, 0, false,
     "map: what the machine costs, and a run on it, in units of your own: "
     "area, "
     "energy"},
    {"limits", read_limits, 0, false, "of the whole machine"},
    {"rewrites", read_rewrites, 0, false,
     "what shall be done to the network first"},
    {"listing", read_listing, 0, false, "how steps are numbered"},
    KEY("lanes", read_lanes, HwSpec, lanes,
        "memories by channel, registers by layer: docs/max78000.md"),
};
const Section read_top_section = SECTION("", top_keys);

const Section *const hwspec_sections[] = {
    &read_top_section,      &read_machine_section,
    &read_native_section,   &read_memory_section,
    &read_ports_section,    &read_cores_section,
    &read_layout_section,   &read_axis_section,
    &read_case_section,     &read_when_section,
    &read_arith_section,    &read_codes_section,
    &read_zero_section,     &read_stage_section,
    &read_table_section,    &read_engine_section,
    &read_operands_section, &read_unroll_section,
    &read_quantities_section,
    &read_dma_section,      &read_replication_section,
    &read_copies_section,   &read_tiling_section,
    &read_style_section,    &read_weight_cache_section,
    &read_limits_section,   &read_rewrites_section,
    &read_listing_section,  &read_bundle_section,
    &read_host_section,     &read_numbers_section,
    &read_cost_section,     NULL,
};

/* Keys that earlier versions had: they are passed over, with a warning. */
static void pass_retired(Diag *diag, const YamlNode *map) {
    static const char *const retired[] = {"planned_bandwidth", "planned_unroll",
                                          "bytes_alone", "weights_move"};
    for (uint32_t i = 0; i < map->n; i++) {
        for (size_t k = 0; map->kind == YAML_MAP && !map->item[i]->used &&
                           k < sizeof retired / sizeof *retired;
             k++)
            if (!strcmp(map->key[i], retired[k])) {
                map->item[i]->used = true;
                diag_warning(diag, map->key_loc[i],
                             "`%s` has no meaning any more: plans are made for "
                             "the machine as it is, by --objective",
                             retired[k]);
            }
        pass_retired(diag, map->item[i]);
    }
}

/* Quantities are over meanings of nodes. */
static void check_prices(Reader *r, const YamlNode *root) {
    const YamlNode *engines = yaml_get(root, "engines");
    for (uint32_t i = 0; i < r->spec->n_engines; i++) {
        const HwEngine *engine = &r->spec->engine[i];
        YamlNode *node = yaml_get(engines, engine->name);
        if (!engine->has_time || yaml_get(root, "container"))
            continue;
        diag_error(r->diag, read_loc(node, "time"),
                   "prices are of nodes, and there is no `container`");
        read_ignore(yaml_get(node, "time"));
    }
}

/* A listing is held to the codes of the network, between layers, too. */
static void check_act_of_codes(Reader *r, const YamlNode *root) {
    if (r->spec->act_of_codes && !yaml_get(root, "container"))
        diag_error(r->diag,
                   read_loc(yaml_get(root, "rewrites"), "act_of_codes"),
                   "codes would be others than the network's, and there is no "
                   "`container`");
}

static const HwSpec *build(Arena *arena, Diag *diag, YamlNode *root) {
    uint32_t errors = diag_errors(diag);
    HwSpec *spec = ARENA_NEW(arena, HwSpec);
    *spec = (HwSpec){.loc = root->loc,
                     .machine = "",
                     .doc = "",
                     .element = 1,
                     .clock = 1,
                     .host = usual_host,
                     .backing = -1,
                     .input = -1,
                     .output = -1,
                     .constants = -1};
    Reader r = {.arena = arena, .diag = diag, .spec = spec};
    read_keys(&r, root, &read_top_section, spec);
    if (root->kind == YAML_MAP)
        spec->insns = rows_read(arena, diag, spec, root);
    if (root->kind == YAML_MAP)
        spec->format = format_read(arena, diag, spec, root);
    check_prices(&r, root);
    check_act_of_codes(&r, root);
    check_dma(&r);
    check_operand_roles(&r, yaml_get(root, "engines"));
    pass_retired(diag, root);
    yaml_check_used(diag, root);
    return diag_errors(diag) > errors ? NULL : spec;
}

/* ---- files ---- */

/* The files that lead to the one being read, by identity: names can differ. */
typedef struct Chain {
    const struct Chain *up;
    const char *path;
    struct stat id;
    uint32_t depth;
} Chain;

static bool stands_in(const Chain *chain, const Chain *file) {
    for (; chain; chain = chain->up)
        if (chain->id.st_dev == file->id.st_dev &&
            chain->id.st_ino == file->id.st_ino)
            return true;
    return false;
}

static YamlNode *merge_base(Arena *arena, Diag *diag, YamlNode *root,
                            const char *file, const Chain *chain);

/* `loc`: where the path is named. */
static YamlNode *parse_file(Arena *arena, Diag *diag, Loc loc, const char *path,
                            const Chain *up) {
    Chain chain = {up, path, {0}, up ? up->depth + 1 : 0};
    if (stat(path, &chain.id) == 0 && stands_in(up, &chain)) {
        diag_error(diag, loc, "`%s` extends itself in the end", path);
        return NULL;
    }
    if (chain.depth > MAX_EXTENDS) {
        diag_error(diag, loc, "more than %d files extend each other",
                   MAX_EXTENDS);
        return NULL;
    }
    Bytes text;
    if (!file_read(arena, diag, path, &text))
        return NULL;
    YamlNode *root =
        yaml_parse(arena, diag, path, (const char *)text.at, text.len);
    return root ? merge_base(arena, diag, root, path, &chain) : NULL;
}

/* What `root` of `file` extends, with `root` laid over it. */
static YamlNode *merge_base(Arena *arena, Diag *diag, YamlNode *root,
                            const char *file, const Chain *chain) {
    YamlNode *extends = yaml_get(root, "extends");
    const char *name;
    if (!extends)
        return root;
    if (!yaml_str(diag, extends, &name))
        return NULL;
    const char *path =
        target_path(arena, diag, extends->loc, file_dir(arena, file), name);
    YamlNode *base =
        path ? parse_file(arena, diag, extends->loc, path, chain) : NULL;
    if (!base || !read_is(&(Reader){.diag = diag}, base, YAML_MAP))
        return NULL;
    YamlNode *merged = yaml_merge(arena, base, root);
    merged->loc = root->loc;
    return merged;
}

/* `errors`: how many there were before the text was read. */
static const HwSpec *finish(Arena *arena, Diag *diag, uint32_t errors,
                            YamlNode *root, uint32_t n_settings,
                            const HwSetting *settings) {
    if (!root)
        return NULL;
    for (uint32_t i = 0; i < n_settings; i++)
        setting_apply(arena, diag, root, &settings[i]);
    const HwSpec *spec = build(arena, diag, root);
    return diag_errors(diag) > errors ? NULL : spec;
}

static YamlNode *load_tree(Arena *arena, Diag *diag, const char *name_or_path) {
    Loc nowhere = {0};
    const char *path = target_path(arena, diag, nowhere, NULL, name_or_path);
    return path ? parse_file(arena, diag, nowhere, path, NULL) : NULL;
}

const YamlNode *hwspec_tree(Arena *arena, Diag *diag, const char *name_or_path,
                            uint32_t n_settings, const HwSetting *settings) {
    YamlNode *root = load_tree(arena, diag, name_or_path);
    for (uint32_t i = 0; root && i < n_settings; i++)
        setting_apply(arena, diag, root, &settings[i]);
    return root;
}

const HwSpec *hwspec_load(Arena *arena, Diag *diag, const char *name_or_path,
                          uint32_t n_settings, const HwSetting *settings) {
    uint32_t errors = diag_errors(diag);
    YamlNode *root = load_tree(arena, diag, name_or_path);
    const HwSpec *spec =
        finish(arena, diag, errors, root, n_settings, settings);
    if (spec && spec->insns)
        rows_check_told(diag, spec);
    return diag_errors(diag) == errors ? spec : NULL;
}

const HwSpec *hwspec_read(Arena *arena, Diag *diag, const char *file,
                          const char *text, size_t len, uint32_t n_settings,
                          const HwSetting *settings) {
    uint32_t errors = diag_errors(diag);
    YamlNode *root = yaml_parse(arena, diag, file, text, len);
    if (root)
        root = merge_base(arena, diag, root, file, NULL);
    return finish(arena, diag, errors, root, n_settings, settings);
}
