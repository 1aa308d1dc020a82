/* read_cores.c - `cores`: the same machine several times, side by side.
 *
 * Input: how many, and which memories they share. Output: spec->cores, and
 * spec->memory, of which each core has its part: so all that reads the machine
 * sees one core.
 */
#include "hwspec/read.h"

enum { MOST_CORES = 1024 };
enum {
    ON_CHIP =
        1 << HW_ACTIVE | 1 << HW_WEIGHTS | 1 << HW_BIAS | 1 << HW_REGISTERS
};

static bool read_number(Reader *r, YamlNode *node, void *out) {
    uint32_t *count = out;
    if (!read_count(r, node, count))
        return false;
    if (*count > MOST_CORES)
        diag_error(r->diag, node->loc, "more than %d cores", MOST_CORES);
    return *count <= MOST_CORES;
}

static const Key cores_keys[] = {
    NEED("count", read_number, HwCores, count, "of them, each on an image"),
    KEY("share", read_memory_set, HwCores, share,
        "memories that there are once; each core has an equal part of size and "
        "bandwidth; else those that are not on chip"),
};
const Section read_cores_section = SECTION("cores", cores_keys);

static void take_part(Reader *r, const YamlNode *node, HwMemory *m,
                      uint32_t count) {
    uint64_t align = m->align ? m->align : 1;
    uint64_t part = m->size / count / align * align;
    if (!part)
        diag_error(r->diag, read_loc(node, "count"),
                   "%u parts of the %llu bytes of `%s` are less than its "
                   "alignment, %llu",
                   count, (unsigned long long)m->size, m->name,
                   (unsigned long long)align);
    else
        m->size = part;
    m->bandwidth /= count;
}

bool read_cores(Reader *r, YamlNode *node, void *out) {
    HwCores *cores = out;
    *cores = (HwCores){.count = 1};
    for (uint32_t m = 0; m < r->spec->n_memories; m++)
        if (!(ON_CHIP >> r->memory[m].role & 1))
            cores->share |= UINT32_C(1) << m;
    if (!read_keys(r, node, &read_cores_section, cores))
        return false;
    for (uint32_t m = 0; m < r->spec->n_memories; m++)
        if (cores->share >> m & 1)
            take_part(r, node, &r->memory[m], cores->count);
    return true;
}
