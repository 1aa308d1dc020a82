/* tables.c - tables of volumes, found once; see memory.h.
 *
 * Input: a memory's layout, a volume. Output: its cells by channel, row and
 * column. Tiles of one layer, and layers of one shape, have the same volumes:
 * those that were asked for last are kept, one a slot. Invariant: tables live
 * until the instruction ends for which they were asked; no more than MOST
 * entries outlive it.
 */
#include "sim/run.h"

enum { SLOTS = 256, MOST = 1 << 20 };

struct KnownTables {
    const Layout *layout; /* NULL: an empty slot */
    Volume volume;
    VolumeTables tables;
};

static uint32_t slot_of(const Layout *layout, const Volume *v) {
    const uint32_t part[] = {v->c, v->h, v->w, layout->n};
    uint64_t mix = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < sizeof part / sizeof *part; i++)
        mix = (mix ^ part[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(mix >> 16) % SLOTS;
}

static bool rises(const uint64_t *at, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        if (at[i] <= at[i - 1])
            return false;
    return true;
}

static VolumeTables make(Arena *arena, const Layout *layout,
                         const Volume *volume) {
    LayoutTables t = address_tables(arena, layout, volume);
    return (VolumeTables){t, !t.copy_step && rises(t.c_at, volume->c) &&
                                 rises(t.h_at, volume->h) &&
                                 rises(t.w_at, volume->w)};
}

/* Where no cell is looked at. */
static VolumeTables make_copies(Arena *arena, const Layout *layout,
                                const Volume *volume) {
    VolumeTables t = {.at.copies = ARENA_ARRAY(arena, uint32_t, volume->c)};
    for (uint32_t c = 0; c < volume->c; c++)
        t.at.copies[c] = address_copies(layout, volume, c);
    return t;
}

void tables_open(Run *run) {
    run->tables.arena = arena_new("tables of volumes");
    run->tables.slot = ARENA_ARRAY(run->tables.arena, KnownTables, SLOTS);
}

bool tables_go(const Run *run) {
    return run->tables.n > MOST;
}

void tables_between(Run *run) {
    if (!tables_go(run))
        return;
    run->tables.n = 0;
    arena_reset(run->tables.arena);
    run->tables.slot = ARENA_ARRAY(run->tables.arena, KnownTables, SLOTS);
}

VolumeTables tables_of(Run *run, const Layout *layout, const Volume *volume) {
    TableCache *cache = &run->tables;
    KnownTables *slot = &cache->slot[slot_of(layout, volume)];
    if (slot->layout == layout && volumes_same(&slot->volume, volume))
        return slot->tables;
    *slot = (KnownTables){layout, *volume,
                          (tables_matter(run) ? make : make_copies)(
                              cache->arena, layout, volume)};
    cache->n += (uint64_t)volume->c + volume->h + volume->w;
    return slot->tables;
}

bool cells_matter(const Run *run) {
    return !run->options.time_only ||
           run->spec->tiling.rows.moves == HW_MOVES_QUEUED;
}

bool tables_matter(const Run *run) {
    return run->options.spans || cells_matter(run);
}
