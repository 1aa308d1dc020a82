/* regions.c - where volumes lie in the input, output and backing memories. */
#include "alloc/regions.h"

uint32_t region_add(Regions *r, TensorId tensor, uint32_t memory, bool timed) {
    Region region = {.memory = memory,
                     .whole = volume_in(r->work, tensor, memory),
                     .first = UINT32_MAX,
                     .timed = timed,
                     .name = graph_tensor(r->work->g, tensor)->name};
    region.bytes =
        layout_bytes(r->work->spec->memory[memory].layout, &region.whole);
    if (!timed) {
        region.first = 0;
        region.end = r->work->schedule->n_steps;
    }
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
    const HwMemory *memory = &r->work->spec->memory[region->memory];
    diag_error(diag, memory->loc,
               "does not fit: %s needs %llu bytes of %s, which has %llu left "
               "of %llu",
               region->name, (unsigned long long)region->bytes, memory->name,
               (unsigned long long)free, (unsigned long long)memory->size);
    return false;
}

/* Regions that stay. */
static bool place_fixed(Regions *r, Diag *diag, uint64_t *used) {
    for (uint32_t i = 0; i < r->at.n; i++) {
        Region *region = &r->at.at[i];
        const HwMemory *memory = &r->work->spec->memory[region->memory];
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

static uint32_t timed_bufs(const Regions *r, Buf *buf, uint32_t *region) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->at.n; i++) {
        const Region *at = &r->at.at[i];
        if (!at->timed)
            continue;
        buf[n] = (Buf){.first = at->first,
                       .end = at->end,
                       .bytes = {at->bytes},
                       .pin_pool = -1,
                       .hint = PLAN_NO_HINT};
        region[n++] = i;
    }
    return n;
}

bool regions_place(Regions *r, Diag *diag, uint64_t *used) {
    if (!place_fixed(r, diag, used))
        return false;
    Buf *buf = ARENA_ARRAY(r->arena, Buf, r->at.n + 1);
    uint32_t *region = ARENA_ARRAY(r->arena, uint32_t, r->at.n + 1);
    PlanProblem p = {.n_pools = 1, .n_bufs = timed_bufs(r, buf, region)};
    if (!p.n_bufs)
        return true;
    uint32_t backing = (uint32_t)r->work->spec->backing;
    const HwMemory *memory = &r->work->spec->memory[backing];
    uint64_t align = memory->align ? memory->align : 1;
    uint64_t base = (used[backing] + align - 1) / align * align;
    p.pool[0] = (Pool){memory->size > base ? memory->size - base : 0, align};
    p.buf = buf;
    PlanResult result = {0};
    const char *planner;
    plan_memory(r->arena, &p, "auto", false, &result, &planner);
    if (result.status != PLAN_FITS)
        return too_small(
            r, diag,
            &r->at.at[region[result.failed < p.n_bufs ? result.failed : 0]],
            p.pool[0].size);
    for (uint32_t i = 0; i < p.n_bufs; i++)
        r->at.at[region[i]].offset = base + result.offset[i];
    used[backing] = base + result.height[0];
    return true;
}
