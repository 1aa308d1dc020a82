/* read_memory.c - `memories`: roles, sizes, units, and how they go together.
 *
 * Input: a map of memories. Output: spec->memory, active ones first, else in
 * the file's order; spec->backing, input, output.
 */
#include "hwspec/read.h"

#include <string.h>

/* More bytes than that are a slip of the pen, and their sums could overflow. */
static const uint64_t max_size = UINT64_C(1) << 48;

static bool read_role(Reader *r, YamlNode *node, void *out) {
    uint32_t role;
    if (!yaml_enum(r->diag, node, hw_role_name, &role))
        return false;
    *(HwRole *)out = (HwRole)role;
    return true;
}

static bool read_layout_name(Reader *r, YamlNode *node, void *out) {
    const char **name = ARENA_ARRAY(r->arena, const char *, r->n_layouts + 1);
    for (uint32_t i = 0; i < r->n_layouts; i++)
        name[i] = r->layout[i].name;
    uint32_t k;
    if (!r->n_layouts || !yaml_enum(r->diag, node, name, &k))
        return false; /* of no layouts at all an error was made already */
    *(const Layout **)out = &r->layout[k];
    return true;
}

static bool read_memory_size(Reader *r, YamlNode *node, void *out) {
    uint64_t size;
    if (!read_bytes(r, node, &size))
        return false;
    if (size > 0 && size <= max_size) {
        *(uint64_t *)out = size;
        return true;
    }
    diag_error(r->diag, node->loc,
               size ? "a memory of `%s` is beyond 256 TiB"
                    : "a memory of `%s` bytes holds nothing",
               node->text);
    return false;
}

static const Key ports_keys[] = {
    KEY("read", read_count, HwMemory, ports_read,
        "reads of a partition in one cycle; else 1"),
    KEY("write", read_count, HwMemory, ports_write,
        "writes of a partition in one cycle; else 1"),
};
const Section read_ports_section = SECTION("memories.*.ports", ports_keys);

static bool read_ports(Reader *r, YamlNode *node, void *out) {
    return read_keys(r, node, &read_ports_section, out);
}

static bool read_load(Reader *r, YamlNode *node, void *out) {
    static const char *const way[] = {"callback", NULL};
    uint32_t index;
    bool ok = yaml_enum(r->diag, node, way, &index);
    if (ok)
        *(bool *)out = true;
    return ok;
}

/* When all are known: find_channels. */
static bool read_channel(Reader *r, YamlNode *node, void *out) {
    const char *name;
    (void)out;
    return yaml_str(r->diag, node, &name);
}

static const Key memory_keys[] = {
    NEED("role", read_role, HwMemory, role,
         "active: engines compute in it; backing: what does not fit goes "
         "there, of several to one of them; input, output: those of the "
         "network; constants: what layers "
         "bring along, of bundles; weights: on chip, where "
         "`tiling.weights_from` "
         "puts weights, and nothing else lies; bias: the same of biases; "
         "sums: on chip, where `operands.sums` of engines keeps sums until "
         "they are results; "
         "registers: known to the steps of "
         "`templates` alone"),
    NEED("size", read_memory_size, HwMemory, size, "bytes"),
    KEY("unit", read_bytes32, HwMemory, unit,
        "bytes that one step of an address stands for; else 1"),
    KEY("base", read_u64, HwMemory, base,
        "address, in units, of the first byte; else 0"),
    KEY("id", read_u32, HwMemory, id,
        "its number in instructions; else its position in the file, from 0"),
    KEY("align", read_bytes32, HwMemory, align,
        "volumes start at multiples of this many bytes, where whole channels "
        "lie outermost members of concats as well; else the least that unit "
        "and element allow"),
    KEY("buffers", read_count, HwMemory, buffers,
        "fixed buffers of size / buffers bytes, in whole units of `align`, one "
        "volume or one concat in each, of sums those of one instruction; else "
        "they lie anywhere"),
    KEY("partitions", read_count, HwMemory, partitions,
        "equal parts with ports of their own, in whole units of `align`; "
        "else 1"),
    {"ports", read_ports, 0, false, "reads and writes in one cycle"},
    KEY("bandwidth", read_rate, HwMemory, bandwidth,
        "bytes a second, of transfers, or of a port of an active memory: "
        "17.28GB/s; else unbounded"),
    KEY("latency", read_seconds, HwMemory, latency,
        "before a transfer's first byte: 200ns; else 0"),
    KEY("row_setup", read_seconds, HwMemory, row_setup,
        "before rows of a transfer that lie together, or each row: 5ns; "
        "else 0"),
    KEY("burst", read_bytes32, HwMemory, burst,
        "bytes: a transfer is a number of whole bursts; else 1"),
    KEY("cost", read_u64, HwMemory, cost,
        "of each byte of a bundle's buffer that lies there: the least is "
        "chosen first; else 0"),
    KEY("load", read_load, HwMemory, load,
        "callback: of constants, a bundle calls for them when a layer needs "
        "them; else they are at hand"),
    KEY("piece", read_bytes, HwMemory, piece,
        "bytes that a bundle loads at once, or one channel of a result; else "
        "as many as there is room for"),
    {"channel", read_channel, 0, false,
     "a memory whose wires it uses, so that transfers of both take turns; else "
     "its own"},
    NEED("layout", read_layout_name, HwMemory, layout, "one of `layouts`"),
};
const Section read_memory_section = SECTION("memories.*", memory_keys);

static void check_align(Reader *r, const YamlNode *node, HwMemory *m) {
    Loc loc = read_loc(node, "align");
    uint32_t element = m->layout->element;
    if (m->align == 0)
        for (m->align = m->unit; m->align % element;)
            m->align += m->unit;
    if (m->align % m->unit)
        diag_error(r->diag, loc,
                   "align is %u bytes: no multiple of the address unit, %u",
                   m->align, m->unit);
    if (m->align % element)
        diag_error(r->diag, loc,
                   "align is %u bytes: no multiple of the element, %u",
                   m->align, element);
}

static void check_base(Reader *r, const YamlNode *node, const HwMemory *m) {
    if (m->base > max_size)
        diag_error(r->diag, read_loc(node, "base"),
                   "a base of %llu is beyond 2^48",
                   (unsigned long long)m->base);
}

static void check_buffers(Reader *r, const YamlNode *node, const HwMemory *m) {
    Loc loc = read_loc(node, "buffers");
    if (m->buffers && m->role != HW_ACTIVE && m->role != HW_SUMS)
        diag_error(r->diag, loc,
                   "only an active memory, or one of sums, can have buffers");
    if (m->buffers && !hwspec_buffer_bytes(m))
        diag_error(r->diag, loc, "%u buffers in %llu bytes", m->buffers,
                   (unsigned long long)m->size);
}

static void check_load(Reader *r, const YamlNode *node, const HwMemory *m) {
    if ((m->load || m->piece) && m->role != HW_CONSTANTS)
        diag_error(r->diag, read_loc(node, m->load ? "load" : "piece"),
                   "only constants are loaded on demand");
    else if (m->piece && !m->load)
        diag_error(r->diag, read_loc(node, "piece"),
                   "pieces of what is not loaded");
}

static void read_memory(Reader *r, YamlNode *node, HwMemory *m) {
    m->unit = m->partitions = m->ports_read = m->ports_write = m->burst = 1;
    bool ok = read_keys(r, node, &read_memory_section, m);
    if (m->layout && (m->layout->n || m->layout->n_cases))
        check_align(r, node, m);
    check_base(r, node, m);
    if (ok) {
        check_buffers(r, node, m);
        check_load(r, node, m);
    }
    if (m->align == 0)
        m->align = m->unit;
}

/* Active ones first; both groups keep their order. */
static void sort_by_role(Reader *r) {
    HwSpec *spec = r->spec;
    HwMemory *sorted = ARENA_ARRAY(r->arena, HwMemory, spec->n_memories);
    uint32_t n = 0;
    for (uint32_t i = 0; i < spec->n_memories; i++)
        if (r->memory[i].role == HW_ACTIVE)
            sorted[n++] = r->memory[i];
    spec->n_active = n;
    for (uint32_t i = 0; i < spec->n_memories; i++)
        if (r->memory[i].role != HW_ACTIVE)
            sorted[n++] = r->memory[i];
    spec->memory = r->memory = sorted;
}

/* The one memory of a role that is not active; -1: none. */
static int32_t only(Reader *r, HwRole role) {
    int32_t found = -1;
    for (uint32_t i = r->spec->n_active; i < r->spec->n_memories; i++) {
        const HwMemory *m = &r->memory[i];
        if (m->role != role)
            continue;
        if (found < 0)
            found = (int32_t)i;
        else
            diag_error(r->diag, m->loc,
                       "`%s` is a second memory of role `%s`: `%s` is one",
                       m->name, hw_role_name[role], r->memory[found].name);
    }
    return found;
}

/* Whether volumes may go to either: all that depends on where they lie is
 * planned before it is known which. */
static void check_alike(Reader *r, const HwMemory *m, const HwMemory *first) {
    if (m->layout != first->layout || m->align != first->align)
        diag_error(r->diag, m->loc,
                   "`%s` is a second memory of role `backing`: it needs the "
                   "layout and the alignment of `%s`",
                   m->name, first->name);
}

static int32_t first_backing(Reader *r) {
    int32_t found = -1;
    for (uint32_t i = r->spec->n_active; i < r->spec->n_memories; i++) {
        if (r->memory[i].role != HW_BACKING)
            continue;
        if (found < 0)
            found = (int32_t)i;
        check_alike(r, &r->memory[i], &r->memory[found]);
        r->spec->backings |= UINT32_C(1) << i;
    }
    return found;
}

/* A chain of names ends where a memory has wires of its own. */
static void find_channels(Reader *r, const YamlNode *node) {
    for (uint32_t i = 0; i < r->spec->n_memories; i++) {
        HwMemory *m = &r->memory[i];
        const YamlNode *name = yaml_get(yaml_get(node, m->name), "channel");
        int32_t at = name ? read_memory_name(r, name) : (int32_t)i;
        m->channel = at < 0 ? i : (uint32_t)at;
        if (name && at >= 0 && m->role == HW_ACTIVE)
            diag_error(r->diag, name->loc,
                       "`%s` is active memory: nothing is moved over its wires",
                       m->name);
    }
    for (uint32_t i = 0; i < r->spec->n_memories; i++) {
        const HwMemory *m = &r->memory[i], *of = &r->memory[m->channel];
        if (of->channel != m->channel ||
            (of->role == HW_ACTIVE && m->role != HW_ACTIVE))
            diag_error(r->diag, m->loc,
                       "`%s` uses the wires of `%s`, which has none of its own",
                       m->name, of->name);
    }
}

static int32_t need_role(Reader *r, const YamlNode *node, HwRole role) {
    int32_t found = only(r, role);
    if (found < 0)
        diag_error(r->diag, node->loc, "no memory has the role `%s`",
                   hw_role_name[role]);
    return found;
}

static void find_roles(Reader *r, const YamlNode *node) {
    HwSpec *spec = r->spec;
    spec->backing = first_backing(r);
    spec->constants = only(r, HW_CONSTANTS);
    int32_t weights = only(r, HW_WEIGHTS);
    spec->weights = weights < 0 ? 0 : (uint32_t)weights;
    int32_t bias = only(r, HW_BIAS);
    spec->bias = bias < 0 ? 0 : (uint32_t)bias;
    int32_t sums = only(r, HW_SUMS);
    spec->sums = sums < 0 ? 0 : (uint32_t)sums;
    spec->input = need_role(r, node, HW_INPUT);
    spec->output = need_role(r, node, HW_OUTPUT);
    if (spec->n_active == 0)
        diag_error(r->diag, node->loc, "no memory has the role `active`");
}

static void check_pools(Reader *r, const YamlNode *node) {
    uint64_t pools = 0;
    for (uint32_t i = 0; i < r->spec->n_active; i++)
        pools += r->memory[i].buffers ? r->memory[i].buffers : 1;
    if (pools > HW_MAX_POOLS)
        diag_error(r->diag, node->loc,
                   "%llu active memories, each fixed buffer counted; at most "
                   "%d are possible",
                   (unsigned long long)pools, HW_MAX_POOLS);
}

bool read_memories(Reader *r, YamlNode *node, void *out) {
    (void)out;
    HwSpec *spec = r->spec;
    if (!read_is(r, node, YAML_MAP))
        return false;
    if (node->n > HW_MAX_MEMORIES) {
        diag_error(r->diag, node->loc, "more than %d memories",
                   HW_MAX_MEMORIES);
        read_ignore(node);
        return false;
    }
    spec->memory = r->memory = ARENA_ARRAY(r->arena, HwMemory, node->n);
    spec->n_memories = node->n;
    uint32_t errors = diag_errors(r->diag);
    for (uint32_t i = 0; i < node->n; i++) {
        r->memory[i] =
            (HwMemory){.name = node->key[i], .loc = node->key_loc[i], .id = i};
        read_memory(r, yaml_get(node, node->key[i]), &r->memory[i]);
    }
    sort_by_role(r);
    if (diag_errors(r->diag) > errors)
        return false;
    find_roles(r, node);
    find_channels(r, node);
    check_pools(r, node);
    return true;
}
