/* read_tiling.c - `replication` and `tiling`: both lean on memories, layouts
 * and engines, which were read before.
 */
#include "hwspec/insn.h"
#include "hwspec/read.h"

#include <stddef.h>

/* ---- replication ---- */

typedef struct CopyList {
    uint32_t n;
    const HwCopies *at;
} CopyList;

typedef struct ReplicationKeys {
    uint32_t section, memories;
    CopyList stored, fly;
} ReplicationKeys;

static ReadValue read_copies;

static const Key copies_keys[] = {
    NEED("units", read_count, HwCopies, units, "copies in a section"),
    NEED("width", read_count, HwCopies, width, "channels in a copy"),
};
const Section read_copies_section = SECTION("replication.*.*", copies_keys);

static const Key replication_keys[] = {
    NEED("section", read_count, ReplicationKeys, section,
         "channels of a section"),
    NEED("memories", read_memory_set, ReplicationKeys, memories,
         "where copies are stored; their layouts have sections of that length"),
    NEED("stored", read_copies, ReplicationKeys, stored,
         "ways to store the last, partial section"),
    KEY("on_the_fly", read_copies, ReplicationKeys, fly,
        "ways to make copies while a backing memory is read; else none"),
};
const Section read_replication_section =
    SECTION("replication", replication_keys);

static bool read_copies(Reader *r, YamlNode *node, void *out) {
    CopyList *list = out;
    if (!read_is(r, node, YAML_LIST))
        return false;
    HwCopies *at = ARENA_ARRAY(r->arena, HwCopies, node->n);
    bool ok = true;
    for (uint32_t i = 0; i < node->n; i++)
        ok &= read_keys(r, node->item[i], &read_copies_section, &at[i]);
    *list = (CopyList){ok ? node->n : 0, at};
    return ok;
}

static void check_copies(Reader *r, const YamlNode *list, uint32_t section,
                         const CopyList *copies) {
    for (uint32_t i = 0; i < copies->n; i++) {
        const HwCopies *way = &copies->at[i];
        if ((uint64_t)way->units * way->width > section)
            diag_error(r->diag, list->item[i]->loc,
                       "%u copies of %u channels do not fit into a section of "
                       "%u",
                       way->units, way->width, section);
    }
}

static uint32_t channel_split(const Layout *layout) {
    for (uint32_t i = 0; i < layout->n; i++)
        if (layout->axis[i].dim == LAYOUT_C)
            return layout->axis[i].split;
    return 0;
}

static void check_sections(Reader *r, const YamlNode *node,
                           const HwReplication *rule) {
    for (uint32_t i = 0; i < r->spec->n_memories; i++) {
        const HwMemory *m = &r->memory[i];
        if (rule->memories >> i & 1 && m->layout &&
            (m->layout->n || m->layout->n_cases) &&
            channel_split(m->layout) != rule->section)
            diag_error(r->diag, read_loc(node, "memories"),
                       "the layout of `%s` has no sections of %u channels",
                       m->name, rule->section);
    }
}

bool read_replication(Reader *r, YamlNode *node, void *out) {
    (void)out;
    ReplicationKeys keys = {0};
    if (!read_keys(r, node, &read_replication_section, &keys))
        return false;
    HwReplication *rule = &r->spec->replication;
    *rule = (HwReplication){.section = keys.section,
                            .n_stored = keys.stored.n,
                            .n_fly = keys.fly.n,
                            .stored = keys.stored.at,
                            .fly = keys.fly.at,
                            .memories = keys.memories};
    check_copies(r, yaml_get(node, "stored"), rule->section, &keys.stored);
    check_copies(r, yaml_get(node, "on_the_fly"), rule->section, &keys.fly);
    check_sections(r, node, rule);
    return true;
}

/* ---- tiling ---- */

typedef struct StyleKeys {
    HwTileStyle style;
    int32_t from, to; /* memories */
    HwPlace dest;     /* bytes UINT64_MAX: none */
} StyleKeys;

static const char *const kind_name[] = {
    [HW_TILING_NONE] = "none",
    [HW_TILING_SOFTWARE] = "software",
    [HW_TILING_HARDWARE] = "hardware",
    NULL,
};

static bool read_kind(Reader *r, YamlNode *node, void *out) {
    uint32_t kind;
    if (!yaml_enum(r->diag, node, kind_name, &kind))
        return false;
    *(HwTilingKind *)out = (HwTilingKind)kind;
    return true;
}

static bool read_memory_index(Reader *r, YamlNode *node, void *out) {
    int32_t k = read_memory_name(r, node);
    *(int32_t *)out = k;
    return k >= 0;
}

/* Operators that some engine runs, of parts of a volume too. Those that a
 * variant of a machine runs no more are left out. */
static bool read_run_ops(Reader *r, YamlNode *node, void *out) {
    HwOps ops;
    if (!read_ops(r, node, &ops))
        return false;
    if (r->spec->n_engines == 0)
        return true; /* that was reported */
    for (uint32_t i = 0; i < node->n; i++) {
        uint32_t op;
        bool known = yaml_enum(r->diag, node->item[i], hw_op_name, &op);
        bool lacks = known && hwspec_engine(r->spec, (HwOp)op) < 0;
        if (lacks && read_inherited(r, node->item[i]->loc))
            ops &= ~((HwOps)1 << op);
        else if (lacks && !r->runs_unclear)
            diag_error(r->diag, node->item[i]->loc, "no engine runs `%s`",
                       hw_op_name[op]);
        else if (known && hw_op_traits[op] & HW_WHOLE)
            diag_error(r->diag, node->item[i]->loc,
                       "`%s` runs on whole volumes only", hw_op_name[op]);
    }
    *(HwOps *)out = ops;
    return true;
}

static bool read_two_places(Reader *r, YamlNode *node, void *out) {
    HwPlace *place = out;
    if (!read_is(r, node, YAML_LIST))
        return false;
    if (node->n != 2) {
        diag_error(r->diag, node->loc, "two places are expected here, not %u",
                   node->n);
        return false;
    }
    bool first = read_place(r, node->item[0], &place[0]);
    return read_place(r, node->item[1], &place[1]) && first;
}

static const Key style_keys[] = {
    NEED("from", read_memory_index, StyleKeys, from, "memory of the input"),
    NEED("to", read_memory_index, StyleKeys, to, "memory of the output"),
    NEED("ops", read_run_ops, StyleKeys, style.ops,
         "operators that can be tiled so"),
    KEY("buffers", read_two_places, StyleKeys, style.given.buffer,
        "where the two input tiles start: bytes, or fractions of the first "
        "active memory; needed but with `sums`"),
    KEY("buffer_size", read_place, StyleKeys, style.given.size,
        "of one input tile; needed but with `sums`"),
    KEY("sums", read_count, StyleKeys, style.sums,
        "bytes of a partial sum: tiles are of channels, too, and those of "
        "inputs, weights and sums lie where the instruction says, below "
        "`reserved`, which is then needed"),
    KEY("reserved", read_place, StyleKeys, style.given.reserved,
        "from 0 up to here no other volume may lie; else up to the end of the "
        "buffers"),
    KEY("dest", read_place, StyleKeys, dest,
        "what tile.dest says; else the output's address, or -1 where that is "
        "not in active memory"),
    KEY("multiple_w", read_count, StyleKeys, style.multiple_w,
        "tile widths are multiples of this; else 1"),
};
const Section read_style_section = SECTION("tiling.styles.*", style_keys);

static void check_style(Reader *r, const YamlNode *node,
                        const HwTileStyle *style) {
    const uint64_t *at = style->buffer;
    uint64_t apart = at[0] < at[1] ? at[1] - at[0] : at[0] - at[1];
    uint64_t last = at[0] > at[1] ? at[0] : at[1];
    uint64_t size = r->memory[0].size;
    if (apart < style->buffer_size)
        diag_error(r->diag, read_loc(node, "buffers"),
                   "the two input tiles overlap");
    if (style->buffer_size > size || last > size - style->buffer_size)
        diag_error(r->diag, read_loc(node, "buffers"),
                   "an input tile leaves the active memory");
    if (style->has_dest && style->dest >= size)
        diag_error(r->diag, read_loc(node, "dest"),
                   "dest is outside the active memory");
}

static bool outside(const Reader *r, int32_t memory) {
    return (uint32_t)memory >= r->spec->n_active;
}

/* The engine of `op` must reach what the style reads and writes; what comes
 * from outside comes from any memory of that side. */
static void check_reach(Reader *r, const YamlNode *node, HwOp op,
                        const StyleKeys *keys) {
    int32_t e = hwspec_engine(r->spec, op);
    if (e < 0)
        return; /* that was reported */
    const HwSpec *spec = r->spec;
    bool from = outside(r, keys->from), to = outside(r, keys->to);
    const int32_t needed[] = {0,
                              keys->from,
                              keys->to,
                              from ? spec->backing : -1,
                              from ? spec->input : -1,
                              to ? spec->backing : -1,
                              to ? spec->output : -1};
    uint32_t lacking = 0;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (needed[i] >= 0)
            lacking |= UINT32_C(1) << needed[i];
    lacking &= ~(r->engine[e].lies[HW_IN] | r->engine[e].lies[HW_OUT]);
    for (uint32_t m = 0; m < spec->n_memories; m++)
        if (lacking >> m & 1)
            diag_error(r->diag, read_loc(node, "ops"),
                       "the style from `%s` to `%s` tiles `%s`, but engine "
                       "`%s` has no `%s` in its `memories` or `operands`",
                       r->memory[keys->from].name, r->memory[keys->to].name,
                       hw_op_name[op], r->engine[e].name, r->memory[m].name);
}

/* Which keys there must be, and must not be, beside `sums` or without it. */
static bool check_sums(Reader *r, const YamlNode *node, bool sums) {
    static const char *const of_rows[] = {"buffers", "buffer_size"};
    static const char *const not_of_sums[] = {"buffers", "buffer_size", "dest",
                                              "multiple_w"};
    bool ok = true;
    if (sums)
        ok &= yaml_need(r->diag, node, "reserved") != NULL;
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows && !sums; i++)
        ok &= yaml_need(r->diag, node, of_rows[i]) != NULL;
    for (size_t i = 0; i < sizeof not_of_sums / sizeof *not_of_sums; i++) {
        const YamlNode *value = sums ? yaml_get(node, not_of_sums[i]) : NULL;
        if (value)
            diag_error(r->diag, value->loc,
                       "`%s` and `sums` exclude each other", not_of_sums[i]);
        ok &= !value;
    }
    return ok;
}

/* Convolutions alone have tiles of weights. */
static void check_summed(Reader *r, const YamlNode *node, HwOps ops) {
    const HwOps summed = HW_BIT(CONV) | HW_BIT(CONV_DEPTHWISE);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if ((ops & ~summed) >> op & 1)
            diag_error(r->diag, read_loc(node, "ops"),
                       "tiles with `sums` are of conv and conv_depthwise, not "
                       "of `%s`",
                       hw_op_name[op]);
}

/* Tiles from outside, or for it, are of volumes in backing memory. */
static void check_outside(Reader *r, const YamlNode *node, const char *key,
                          bool is_outside) {
    if (is_outside && r->spec->backing < 0)
        diag_error(r->diag, read_loc(node, key),
                   "`%s` is outside active memory, of which no memory is the "
                   "backing",
                   key);
}

static bool read_style(Reader *r, YamlNode *node, HwTileStyle *style) {
    StyleKeys keys = {.style = {.loc = node->loc, .multiple_w = 1},
                      .dest.bytes = UINT64_MAX};
    keys.style.given.reserved.bytes = UINT64_MAX;
    if (!read_keys(r, node, &read_style_section, &keys) ||
        !check_sums(r, node, keys.style.sums > 0))
        return false;
    *style = keys.style;
    style->in_backing = outside(r, keys.from);
    style->out_backing = outside(r, keys.to);
    check_outside(r, node, "from", style->in_backing);
    check_outside(r, node, "to", style->out_backing);
    style->has_dest = keys.dest.bytes != UINT64_MAX;
    style->dest = style->has_dest ? keys.dest.bytes : 0;
    hwspec_place_style(style, &r->memory[0]);
    if (style->sums)
        check_summed(r, node, style->ops);
    else
        check_style(r, node, style);
    if (style->reserved > r->memory[0].size)
        diag_error(r->diag, read_loc(node, "reserved"),
                   "more is reserved than active memory has");
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (style->ops >> op & 1)
            check_reach(r, node, (HwOp)op, &keys);
    return true;
}

/* As the keys have it. */
typedef struct TilingKeys {
    HwTilingKind kind;
    HwOps ops, always;
    uint32_t queue, weights_in;
    bool rings, lines, overlap, weights_stay;
    HwTileTiling tiles;
} TilingKeys;

static bool read_styles(Reader *r, YamlNode *node, void *out) {
    HwTileTiling *tiles = &((TilingKeys *)out)->tiles;
    if (!read_is(r, node, YAML_LIST))
        return false;
    HwTileStyle *style = ARENA_ARRAY(r->arena, HwTileStyle, node->n);
    for (uint32_t i = 0; i < node->n; i++)
        read_style(r, node->item[i], &style[i]);
    tiles->n = node->n;
    tiles->style = style;
    return true;
}

/* The first of the memories in which weights do not wait to be loaded. */
static const HwMemory *holds_no_weights(const HwSpec *spec, uint32_t set) {
    for (uint32_t m = 0; m < spec->n_memories; m++)
        if (set >> m & 1 && spec->memory[m].role != HW_BACKING &&
            spec->memory[m].role != HW_CONSTANTS)
            return &spec->memory[m];
    return NULL;
}

/* A memory outside, or a list of them. */
static bool read_weights_from(Reader *r, YamlNode *node, void *out) {
    uint32_t set;
    int32_t one;
    bool list = node->kind == YAML_LIST;
    if (list ? !read_memory_set(r, node, &set)
             : !read_memory_index(r, node, &one))
        return false;
    set = list ? set : UINT32_C(1) << one;
    if (list && !set)
        diag_error(r->diag, node->loc, "weights come from somewhere");
    const HwMemory *wrong = holds_no_weights(r->spec, set);
    if (wrong)
        diag_error(r->diag, node->loc,
                   "weights come from a memory of role %s or %s: `%s` is of "
                   "role %s",
                   hw_role_name[HW_BACKING], hw_role_name[HW_CONSTANTS],
                   wrong->name, hw_role_name[wrong->role]);
    *(uint32_t *)out = set;
    return set && !wrong;
}

static int32_t first_of(uint32_t set) {
    return set ? __builtin_ctz(set) : 0;
}

static const Key tiling_keys[] = {
    NEED("kind", read_kind, TilingKeys, kind,
         "none; software: load, run, store by rows of full width; hardware: "
         "one instruction holds the tile's size"),
    KEY("ops", read_run_ops, TilingKeys, ops,
        "software: operators that can run by rows"),
    KEY("rings", read_bool, TilingKeys, rings,
        "software: operands may be rows of a ring, row r of the tensor in its "
        "row r modulo its height"),
    KEY("overlap", read_bool, TilingKeys, overlap,
        "software: true: loads and stores may share a step with layers, and "
        "run while these do; else each waits for all"),
    KEY("weights_stay", read_bool, TilingKeys, weights_stay,
        "true: engines hold the weights of all layers, so that runs read none; "
        "else each run reads its own, and these bytes count, too"),
    KEY("queue", read_count, TilingKeys, queue,
        "software: instructions that are at work or wait at once; each begins "
        "when its engine has done those before it and they touch its bytes no "
        "more; else they run step by step"),
    KEY("weights_from", read_weights_from, TilingKeys, weights_in,
        "software: backing memory, or one of role constants, from which "
        "weights are loaded into active memory, where engines read them, or a "
        "list: each block lies in one of these; else engines have them; needs "
        "`queue`"),
    KEY("always", read_run_ops, TilingKeys, always,
        "hardware: operators of the styles that never run whole, so that all "
        "they read and make passes through tiles"),
    KEY("lines", read_bool, TilingKeys, lines,
        "software: operands may lie in line buffers, and instructions read and "
        "write some of the columns; needs `rings`"),
    {"styles", read_styles, 0, false,
     "hardware: list of where tiles and results may lie"},
};
const Section read_tiling_section = SECTION("tiling", tiling_keys);

/* A key that belongs to one kind. */
static bool check_absent(Reader *r, const YamlNode *node, const char *key,
                         HwTilingKind is, HwTilingKind kind) {
    const YamlNode *value = is == kind ? NULL : yaml_get(node, key);
    if (value)
        diag_error(r->diag, value->loc, "`%s` belongs to kind `%s`, not `%s`",
                   key, kind_name[kind], kind_name[is]);
    return !value;
}

/* Keys of each kind, which others must not have; the first must be there. */
static bool check_kind(Reader *r, const YamlNode *node, HwTilingKind is) {
    static const char *const of_kind[][8] = {
        [HW_TILING_NONE] = {NULL},
        [HW_TILING_SOFTWARE] = {"ops", "rings", "overlap", "lines", "queue",
                                "weights_from", NULL},
        [HW_TILING_HARDWARE] = {"styles", "always", NULL},
    };
    bool ok = true;
    for (HwTilingKind k = HW_TILING_SOFTWARE; k <= HW_TILING_HARDWARE; k++)
        for (const char *const *key = of_kind[k]; *key; key++)
            ok &= check_absent(r, node, *key, is, k);
    if (is != HW_TILING_NONE)
        ok &= yaml_need(r->diag, node, of_kind[is][0]) != NULL;
    return ok;
}

/* Keys that need another, or exclude it. */
static bool check_pairs(Reader *r, const YamlNode *node, const TilingKeys *k) {
    const char *wrong =
        k->weights_in && !k->queue ? "`weights_from` needs `queue`"
        : k->overlap && k->queue   ? "`overlap` and `queue` exclude each other"
        : k->lines && !k->rings    ? "`lines` needs `rings`"
                                   : NULL;
    if (wrong)
        diag_error(r->diag, node->loc, "%s", wrong);
    return !wrong;
}

bool read_tiling(Reader *r, YamlNode *node, void *out) {
    TilingKeys k = {0};
    (void)out;
    if (!read_keys(r, node, &read_tiling_section, &k))
        return false;
    HwTiling *tiling = &r->spec->tiling;
    *tiling = (HwTiling){.kind = k.kind,
                         .weights_stay = k.weights_stay,
                         .rows = {.ops = k.ops,
                                  .queue = k.queue,
                                  .weights_from = first_of(k.weights_in),
                                  .weights_in = k.weights_in},
                         .tiles = k.tiles};
    tiling->tiles.always = k.always;
    tiling->rows.rolls = !k.rings  ? HW_ROLLS_NOTHING
                         : k.lines ? HW_ROLLS_COLUMNS
                                   : HW_ROLLS_ROWS;
    tiling->rows.moves = k.queue     ? HW_MOVES_QUEUED
                         : k.overlap ? HW_MOVES_BESIDE
                                     : HW_MOVES_ALONE;
    bool ok = check_kind(r, node, k.kind);
    return check_pairs(r, node, &k) && ok;
}
