/* read_engine.c - `engines`: what each runs, fuses, and within which limits.
 *
 * Input: a map of engines. Output: spec->engine in the file's order, which is
 * the order in which operators look for one.
 * Invariant: `beside` is symmetric.
 */
#include "hwspec/read.h"

#include <string.h>

/* What no engine runs: it moves data, or none, or is the host's. */
static HwOps not_for_engines(void) {
    return hw_ops_with(HW_MOVE | HW_NOTE) & ~hw_ops_with(HW_ANY);
}

static const char *const divisor_name[] = {
    [HW_DIVISOR_KERNEL] = "kernel",
    [HW_DIVISOR_VALID] = "valid",
    NULL,
};

static bool read_divisor(Reader *r, YamlNode *node, void *out) {
    uint32_t divisor;
    if (!yaml_enum(r->diag, node, divisor_name, &divisor))
        return false;
    *(HwDivisor *)out = (HwDivisor)divisor;
    return true;
}

static bool read_overlap(Reader *r, YamlNode *node, void *out) {
    static const char *const name[] = {
        [HW_OVERLAP_DEPTHWISE] = "depthwise",
        [HW_OVERLAP_POOL] = "pool",
        [HW_OVERLAP_POINTWISE] = "pointwise",
        [HW_OVERLAP_SUM] = "sum",
        NULL,
    };
    return read_names(r, node, name, out);
}

static bool read_runs(Reader *r, YamlNode *node, void *out) {
    HwOps ops, wrong;
    bool ok = read_ops(r, node, &ops);
    wrong = ops & not_for_engines();
    if (ok && !ops)
        diag_error(r->diag, node->loc, "an engine runs one operator at least");
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (wrong >> op & 1)
            diag_error(r->diag, node->loc, "`%s` is not the work of an engine",
                       hw_op_name[op]);
    *(HwOps *)out = ops & ~wrong;
    r->runs_unclear |= !ok || wrong;
    return ok && ops && !wrong;
}

/* Whether the engine runs an operator of which something is said. If not, that
 * is a mistake, but void where it is inherited. */
static bool engine_runs(Reader *r, const HwEngine *engine, uint32_t op,
                        Loc said) {
    bool runs = engine->ops >> op & 1;
    if (!runs && !r->runs_unclear && !read_inherited(r, said))
        diag_error(r->diag, said, "the engine does not run `%s`",
                   hw_op_name[op]);
    return runs;
}

/* A list is meant for all operators of the engine. */
static bool read_acts(Reader *r, YamlNode *node, void *out) {
    HwEngine *engine = out;
    uint32_t all = 0;
    engine->acts_loc = node->loc;
    if (node->kind == YAML_LIST) {
        bool ok = read_names(r, node, hw_act_name, &all);
        for (uint32_t op = 0; op < HW_OP_COUNT; op++)
            engine->acts[op] = engine->ops >> op & 1 ? all : 0;
        return ok;
    }
    if (!read_is(r, node, YAML_MAP))
        return false;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        YamlNode *acts = yaml_get(node, hw_op_name[op]);
        if (acts && engine_runs(r, engine, op, acts->loc))
            read_names(r, acts, hw_act_name, &engine->acts[op]);
        else if (acts)
            read_ignore(acts);
    }
    return true;
}

static const Key quantity_keys[] = {
#define HW_LIMIT(NAME, name, doc)                                              \
    KEY(name, read_range, HwEngine, limit[HW_LIMIT_##NAME], doc),
#include "hwspec/limits.def"
#undef HW_LIMIT
};
const Section read_quantities_section =
    SECTION("engines.*.limits", quantity_keys);

static bool read_limits(Reader *r, YamlNode *node, void *out) {
    return read_keys(r, node, &read_quantities_section, out);
}

static bool read_passes(Reader *r, YamlNode *node, void *out) {
    HwEngine *engine = out;
    bool ok = read_is(r, node, YAML_MAP);
    for (uint32_t op = 0; ok && op < HW_OP_COUNT; op++) {
        YamlNode *passes = yaml_get(node, hw_op_name[op]);
        if (passes && engine_runs(r, engine, op, passes->loc))
            ok = read_count(r, passes, &engine->passes[op]);
        else if (passes)
            read_ignore(passes);
    }
    return ok;
}

static const Key unroll_keys[] = {
    KEY("out_c", read_count, HwUnroll, out_c, "output channels; else 1"),
    KEY("in_c", read_count, HwUnroll, in_c, "input channels; else 1"),
    KEY("kernel", read_count, HwUnroll, kernel, "taps of the kernel; else 1"),
    KEY("out_h", read_count, HwUnroll, out_h, "output rows; else 1"),
    KEY("out_w", read_count, HwUnroll, out_w, "output columns; else 1"),
    KEY("row_taps", read_count, HwUnroll, row_taps,
        "input channels, at most, beside which taps of a row take lanes of "
        "`in_c`: ceil(channels * kernel.w / in_c) * kernel.h steps; else none"),
};
const Section read_unroll_section = SECTION("engines.*.unroll", unroll_keys);

static bool read_unroll(Reader *r, YamlNode *node, void *out) {
    return read_keys(r, node, &read_unroll_section, out);
}

static bool read_engine_memories(Reader *r, YamlNode *node, void *out) {
    HwEngine *engine = out;
    uint32_t all;
    if (!read_memory_set(r, node, &all))
        return false;
    engine->lies[HW_IN] = engine->lies[HW_IN2] = engine->lies[HW_OUT] = all;
    return true;
}

#define OPERAND(NAME, OPERAND, doc)                                            \
    { NAME, read_memory_set, offsetof(HwEngine, lies[OPERAND]), false, doc }
static const Key operand_keys[] = {
    OPERAND("in", HW_IN, "the first input; else in `memories`"),
    OPERAND("in2", HW_IN2, "any other input; else where `in` may lie"),
    OPERAND("out", HW_OUT, "the result; else in `memories`"),
    KEY("weights", read_memory_set, HwEngine, weights,
        "weights that `tiling.weights_from` loads; else the memory of that "
        "role, or the first active one"),
    KEY("bias", read_memory_set, HwEngine, bias,
        "biases that are loaded: the memory of that role; else the engine has "
        "them"),
    KEY("sums", read_memory_set, HwEngine, sums,
        "where sums of some of the input channels lie for the next "
        "instruction, which goes on with them: where the result will, or in "
        "the memory of that role; else each instruction adds up all channels"),
};
const Section read_operands_section =
    SECTION("engines.*.operands", operand_keys);

static bool read_operands(Reader *r, YamlNode *node, void *out) {
    HwEngine *engine = out;
    bool ok = read_keys(r, node, &read_operands_section, out);
    if (ok && yaml_get(node, "in") && !yaml_get(node, "in2"))
        engine->lies[HW_IN2] = engine->lies[HW_IN];
    return ok;
}

/* Only whether there are prices: price.c reads them, behind all meanings. */
static bool read_time(Reader *r, YamlNode *node, void *out) {
    HwEngine *engine = out;
    engine->has_time = true;
    return yaml_is(r->diag, node, YAML_MAP);
}

static const Key engine_keys[] = {
    NEED("runs", read_runs, HwEngine, ops,
         "list of operators; each goes to the first engine that lists it"),
    {"activations", read_acts, 0, false,
     "what is fused behind an operator: a map from operator to a list, or one "
     "list for all; else nothing"},
    {"limits", read_limits, 0, false,
     "map from quantity to range; what is not named is not limited"},
    {"memories", read_engine_memories, 0, false,
     "where its operands may lie, inputs and result alike; else in any active "
     "memory"},
    {"operands", read_operands, 0, false,
     "where each operand may lie, if not all where `memories` says"},
    KEY("beside", read_engine_set, HwEngine, beside,
        "engines that can run in the same step; else none"),
    KEY("unroll", read_unroll, HwEngine, unroll,
        "how far each loop axis is unrolled: cycles are products of ceilings"),
    KEY("clock", read_hertz, HwEngine, clock, "else that of the machine"),
    KEY("efficiency", read_share, HwEngine, efficiency,
        "useful share of the cycles, above 0 and up to 1; else 1"),
    KEY("cycles", read_cycles, HwEngine, cycles,
        "instead of the products of ceilings: an expression over `out.c`, "
        "`out.h`, `out.w` of what an instruction makes, and `steps` for one "
        "result: over input channels and taps as `unroll` has them, and "
        "passes"),
    {"passes", read_passes, 0, false,
     "map from operator to how often it goes over its operand, 1 or more; "
     "cycles are multiplied by it; else 1"},
    KEY("setup", read_u32, HwEngine, setup,
        "cycles before an instruction's first result; else 0"),
    KEY("slope_cycles", read_u32, HwEngine, slope_cycles,
        "cycles more for each group of results whose negative values are "
        "scaled by a slope; else 0"),
    KEY("arithmetic", read_arith_name, HwEngine, arithmetic,
        "one of `arithmetic`: what it does with codes; else not said"),
    {"time", read_time, 0, false,
     "of nodes of a container, map from quantities, expressions over a node's "
     "meanings, to the price of one: {out.units: 3ns, 1: 6us}; a node takes "
     "their sum"},
    KEY("floor", read_seconds, HwEngine, floor,
        "... and at least this long; else 0"),
    KEY("in_place", read_bool, HwEngine, in_place,
        "true: a result may take the place of an operand; else false"),
    KEY("overlap", read_overlap, HwEngine, overlap,
        "of bundles: what may be written where operands lie that are done "
        "with: "
        "depthwise, pool (row by row), pointwise (some pixels at a time), sum "
        "(of a convolution that is only added, some channels at a time); else "
        "nothing"),
    KEY("ahead", read_bool, HwEngine, ahead,
        "true: it works on the next image while the others are at this one, "
        "and what it reads from other memories passes through buffers of its "
        "own; used with --mode throughput only; else false"),
    KEY("divisor", read_divisor, HwEngine, divisor,
        "of averages: kernel (its whole area) or valid (what lies inside the "
        "volume); else kernel"),
    KEY("part_align", read_count, HwEngine, part_align,
        "channels: a result that is a member of a concat starts at a multiple "
        "of this; else 1"),
};
const Section read_engine_section = SECTION("engines.*", engine_keys);

/* What an engine works in is active memory; what else it names comes and goes
 * by tiles. */
static void check_operands(Reader *r, const YamlNode *node,
                           const HwEngine *engine) {
    uint32_t active = (UINT32_C(1) << r->spec->n_active) - 1, lacks = 0;
    const YamlNode *operands = yaml_get(node, "operands");
    for (uint32_t i = 0; active && i < HW_OPERANDS; i++)
        lacks |= engine->lies[i] & active ? 0 : UINT32_C(1) << i;
    if (lacks && !operands)
        diag_error(r->diag, read_loc(node, "memories"),
                   "engine `%s` needs an active memory to work in",
                   engine->name);
    for (uint32_t i = 0; operands && i < HW_OPERANDS; i++)
        if (lacks >> i & 1)
            diag_error(r->diag, read_loc(operands, hw_operand_name[i]),
                       "engine `%s` needs an active memory for its operand "
                       "`%s`",
                       engine->name, hw_operand_name[i]);
}

/* What is loaded has one memory of its role. */
static void check_loaded(Reader *r, const YamlNode *at, const HwEngine *engine,
                         const char *what, uint32_t set, uint32_t memory,
                         bool loads) {
    if (at && !loads)
        diag_error(r->diag, at->loc,
                   "engine `%s` reads its %s from a memory, but nothing loads "
                   "them: that takes `tiling.weights_from`, and for biases a "
                   "memory of role `bias`",
                   engine->name, what);
    else if (at && set != UINT32_C(1) << memory)
        diag_error(r->diag, at->loc,
                   "the %s of engine `%s` are loaded into `%s`, and nowhere "
                   "else",
                   what, engine->name, r->spec->memory[memory].name);
}

/* Of codes of a byte; numbers of fixed point may be summed as they are. */
static uint32_t sum_bytes(const HwSpec *spec) {
    enum { OF_CODES = 4 };
    return spec->element > 1 ? spec->element : OF_CODES;
}

static void check_sums_hold(Reader *r, const YamlNode *at, uint32_t m) {
    const HwMemory *memory = &r->spec->memory[m];
    if (memory->layout && memory->layout->element < sum_bytes(r->spec))
        diag_error(r->diag, at->loc,
                   "sums take %u bytes, an element of `%s` %u",
                   sum_bytes(r->spec), memory->name, memory->layout->element);
}

/* Sums that lie where results do. */
static void check_sums_in_place(Reader *r, const YamlNode *at,
                                const HwEngine *engine) {
    for (uint32_t m = 0; m < r->spec->n_memories; m++) {
        bool sums = engine->sums >> m & 1;
        if (sums != (engine->lies[HW_OUT] >> m & 1))
            diag_error(r->diag, at->loc,
                       sums ? "engine `%s` leaves sums in `%s`, but no results"
                              ": else that takes the role `sums`"
                            : "engine `%s` leaves results in `%s`, but no sums",
                       engine->name, r->spec->memory[m].name);
        else if (sums)
            check_sums_hold(r, at, m);
    }
}

/* In elements that hold them. */
static void check_sums(Reader *r, const YamlNode *node,
                       const HwEngine *engine) {
    const YamlNode *at = yaml_get(yaml_get(node, "operands"), "sums");
    const HwSpec *spec = r->spec;
    if (!at)
        return;
    if (!spec->tiling.rows.weights_from)
        diag_error(r->diag, at->loc,
                   "instructions that go on with the sums of others need "
                   "`tiling.weights_from`");
    if (spec->sums && engine->sums == UINT32_C(1) << spec->sums)
        check_sums_hold(r, at, spec->sums);
    else
        check_sums_in_place(r, at, engine);
}

/* Nothing else lies there. */
static void check_sums_used(Reader *r) {
    const HwSpec *spec = r->spec;
    bool used = !spec->sums;
    for (uint32_t i = 0; i < spec->n_engines; i++)
        used |= spec->engine[i].sums >> spec->sums & 1;
    if (!used)
        diag_error(r->diag, spec->memory[spec->sums].loc,
                   "no engine keeps its sums in `%s`: `operands.sums` of one "
                   "must name it",
                   spec->memory[spec->sums].name);
}

void check_operand_roles(Reader *r, YamlNode *node) {
    const HwSpec *spec = r->spec;
    bool loads = spec->tiling.rows.weights_from;
    for (uint32_t i = 0; i < spec->n_engines; i++) {
        const HwEngine *engine = &spec->engine[i];
        const YamlNode *own = yaml_get(node, engine->name);
        const YamlNode *at = yaml_get(own, "operands");
        check_loaded(r, yaml_get(at, "weights"), engine, "weights",
                     engine->weights, spec->weights, loads);
        check_loaded(r, yaml_get(at, "bias"), engine, "biases", engine->bias,
                     spec->bias, loads && spec->bias);
        check_sums(r, own, engine);
    }
    check_sums_used(r);
}

static void read_engine(Reader *r, YamlNode *node, HwEngine *engine) {
    engine->unroll = (HwUnroll){1, 1, 1, 1, 1, 0};
    engine->clock = r->spec->clock;
    engine->efficiency = 1;
    engine->part_align = 1;
    uint32_t active = (UINT32_C(1) << r->spec->n_active) - 1;
    for (uint32_t i = 0; i < HW_OPERANDS; i++)
        engine->lies[i] = active;
    read_keys(r, node, &read_engine_section, engine);
    check_operands(r, node, engine);
}

static void check_beside(Reader *r) {
    uint32_t n = r->spec->n_engines;
    for (uint32_t i = 0; i < n; i++) {
        HwEngine *engine = &r->engine[i];
        if (engine->beside >> i & 1)
            diag_error(r->diag, engine->loc,
                       "engine `%s` cannot run beside itself", engine->name);
        for (uint32_t k = 0; k < n; k++)
            if (engine->beside >> k & 1)
                r->engine[k].beside |= UINT32_C(1) << i;
    }
}

bool read_engines(Reader *r, YamlNode *node, void *out) {
    (void)out;
    HwSpec *spec = r->spec;
    if (!read_is(r, node, YAML_MAP))
        return false;
    if (node->n > HW_MAX_ENGINES) {
        diag_error(r->diag, node->loc, "more than %d engines", HW_MAX_ENGINES);
        read_ignore(node);
        return false;
    }
    spec->engine = r->engine = ARENA_ARRAY(r->arena, HwEngine, node->n);
    spec->n_engines = node->n;
    for (uint32_t i = 0; i < node->n; i++)
        r->engine[i] =
            (HwEngine){.name = node->key[i], .loc = node->key_loc[i]};
    for (uint32_t i = 0; i < node->n; i++)
        read_engine(r, yaml_get(node, node->key[i]), &r->engine[i]);
    check_beside(r);
    return true;
}
