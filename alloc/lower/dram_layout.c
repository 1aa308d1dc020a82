/* dram_layout.c - where volumes lie in the input, output and backing memories.
 */
#include "alloc/lower/dram_layout.h"
#include "alloc/geometry/tensor_bytes.h"

#include "base/text.h"

static void region_stays(const Regions *r, Region *region) {
    region->timed = false;
    region->first = 0;
    region->end = r->f->schedule->n_steps;
}

uint32_t region_add(Regions *r, TensorId tensor, uint32_t memory, bool timed) {
    Region region = {.memory = memory,
                     .whole = volume_in(r->f, tensor, memory),
                     .first = UINT32_MAX,
                     .timed = timed,
                     .name = graph_tensor(r->f->g, tensor)->name};
    region.bytes =
        layout_bytes(r->f->spec->memory[memory].layout, &region.whole);
    if (!timed)
        region_stays(r, &region);
    vec_push(r->arena, &r->at, region);
    return r->at.n - 1;
}

void region_use(Regions *r, uint32_t region, uint32_t step) {
    Region *at = &r->at.at[region];
    if (!at->timed)
        return;
    at->first = step < at->first ? step : at->first;
    at->end = step + 1 > at->end ? step + 1 : at->end;
}

static bool too_small(const Regions *r, Diag *diag, const Region *region,
                      uint64_t free) {
    const HwMemory *memory = &r->f->spec->memory[region->memory];
    diag_error(diag, memory->loc,
               "does not fit: %s needs %s bytes of %s, which has %s left of %s",
               region->name, with_commas(r->arena, region->bytes), memory->name,
               with_commas(r->arena, free),
               with_commas(r->arena, memory->size));
    return false;
}

/* Whether all of a memory's regions have a place of their own. */
static bool has_room(const Regions *r, uint32_t m) {
    const HwMemory *memory = &r->f->spec->memory[m];
    uint64_t align = memory->align ? memory->align : 1;
    uint64_t at = 0;
    for (uint32_t i = 0; i < r->at.n; i++) {
        if (r->at.at[i].memory != m)
            continue;
        at = (at + align - 1) / align * align;
        if (at > memory->size || r->at.at[i].bytes > memory->size - at)
            return false;
        at += r->at.at[i].bytes;
    }
    return true;
}

/* Volumes that wait between the host's layers share only where they must. */
static void spread_out(Regions *r) {
    for (uint32_t m = 0; m < r->f->spec->n_memories; m++) {
        if ((r->f->spec->backings >> m & 1) || !has_room(r, m))
            continue;
        for (uint32_t i = 0; i < r->at.n; i++)
            if (r->at.at[i].memory == m)
                region_stays(r, &r->at.at[i]);
    }
}

/* Regions that stay. */
static bool place_fixed(Regions *r, Diag *diag, uint64_t *used) {
    for (uint32_t i = 0; i < r->at.n; i++) {
        Region *region = &r->at.at[i];
        const HwMemory *memory = &r->f->spec->memory[region->memory];
        if (region->timed)
            continue;
        uint64_t align = memory->align ? memory->align : 1;
        uint64_t at = (used[region->memory] + align - 1) / align * align;
        if (at > memory->size || region->bytes > memory->size - at)
            return too_small(r, diag, region,
                             at > memory->size ? 0 : memory->size - at);
        region->offset = at;
        used[region->memory] = at + region->bytes;
    }
    return true;
}

static uint32_t timed_bufs(const Regions *r, uint32_t memory, Buffer *buf,
                           uint32_t *region) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->at.n; i++) {
        const Region *at = &r->at.at[i];
        if (!at->timed || at->memory != memory)
            continue;
        buf[n] = (Buffer){.first = at->first,
                          .end = at->end,
                          .bytes = {at->bytes},
                          .pin_pool = -1,
                          .hint = PACK_NO_HINT};
        region[n++] = i;
    }
    return n;
}

/* The most bytes of buffers that are there at once. */
static uint64_t most_at_once(const PackProblem *p) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < p->n_bufs; i++) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < p->n_bufs; k++)
            if (p->buf[k].first <= p->buf[i].first &&
                p->buf[i].first < p->buf[k].end)
                sum += p->buf[k].bytes[0];
        most = sum > most ? sum : most;
    }
    return most;
}

/* One volume that is too large by itself, or all of the fullest step. */
static bool no_place(const Regions *r, Diag *diag, const PackProblem *p,
                     const uint32_t *region) {
    const HwMemory *memory = &r->f->spec->memory[r->at.at[region[0]].memory];
    for (uint32_t i = 0; i < p->n_bufs; i++)
        if (p->buf[i].bytes[0] > p->pool[0].size)
            return too_small(r, diag, &r->at.at[region[i]], p->pool[0].size);
    diag_error(diag, memory->loc,
               "does not fit: volumes of %s bytes are in %s at once, which has "
               "%s left of %s",
               with_commas(r->arena, most_at_once(p)), memory->name,
               with_commas(r->arena, p->pool[0].size),
               with_commas(r->arena, memory->size));
    return false;
}

static bool place_timed(Regions *r, Diag *diag, uint32_t m, uint64_t *used) {
    Buffer *buf = ARENA_ARRAY(r->arena, Buffer, r->at.n + 1);
    uint32_t *region = ARENA_ARRAY(r->arena, uint32_t, r->at.n + 1);
    PackProblem p = {.n_pools = 1, .n_bufs = timed_bufs(r, m, buf, region)};
    if (!p.n_bufs)
        return true;
    const HwMemory *memory = &r->f->spec->memory[m];
    uint64_t align = memory->align ? memory->align : 1;
    uint64_t base = (used[m] + align - 1) / align * align;
    p.pool[0] = (Pool){.size = memory->size > base ? memory->size - base : 0,
                       .align = align};
    p.buf = buf;
    PackResult result = {0};
    const char *planner;
    pack_memory(r->arena, &p, "auto", false, &result, &planner);
    if (result.status != PACK_FITS)
        return no_place(r, diag, &p, region);
    for (uint32_t i = 0; i < p.n_bufs; i++)
        r->at.at[region[i]].offset = base + result.offset[i];
    used[m] = base + result.height[0];
    return true;
}

bool regions_place(Regions *r, Diag *diag, uint64_t *used) {
    spread_out(r);
    bool ok = place_fixed(r, diag, used);
    for (uint32_t m = 0; ok && m < r->f->spec->n_memories; m++)
        ok = place_timed(r, diag, m, used);
    return ok;
}
