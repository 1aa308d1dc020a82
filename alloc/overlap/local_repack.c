/* local_repack.c - new places for buffers of some phases; see overlap.h.
 *
 * Input: lives, and a placement that need not hold for them. Output: one that
 * does, at least among the buffers that are alive in the phases. Buffers that
 * are alive at other times, too, stay where they are.
 */
#include "alloc/overlap/overlap.h"

enum { SEARCH = 2000 }; /* steps of it */

static bool is_alone(const Buffers *p, uint32_t buf) {
    if (p->buf.at[buf].pin_pool >= 0)
        return false;
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (i != buf && p->tied.at[i] == p->tied.at[buf])
            return false;
    return true;
}

/* The buffer as the window sees it: cut to it, and pinned if it must stay. */
static Buffer buf_within(const Lives *l, uint32_t buf, Steps phases,
                         const PackResult *r) {
    Buffer b = lives_buf(l, buf, phases);
    Steps span = lives_span(l, buf);
    if (span.first >= phases.first && span.end <= phases.end &&
        is_alone(l->buffers, buf))
        return b;
    b.pin_pool = r->pool[buf];
    b.pin_offset = r->offset[buf];
    return b;
}

bool window_place(const Lives *l, Steps phases, PackResult *r) {
    const Buffers *p = l->buffers;
    Arena *arena = arena_new("window");
    Buffer *buf = ARENA_ARRAY(arena, Buffer, p->buf.n + 1);
    uint32_t *id = ARENA_ARRAY(arena, uint32_t, p->buf.n + 1);
    PackProblem asked = p->p;
    PackResult found;
    const char *used;
    asked.n_bufs = 0;
    asked.buf = buf;
    asked.any_fit = true;
    asked.budget = SEARCH;
    for (uint32_t i = 0; i < p->buf.n; i++) {
        if (!lives_in(l, i, phases))
            continue;
        id[asked.n_bufs] = i;
        buf[asked.n_bufs++] = buf_within(l, i, phases, r);
    }
    pack_memory(arena, &asked, "auto", false, &found, &used);
    bool fits = found.status == PACK_FITS;
    for (uint32_t i = 0; i < asked.n_bufs && fits; i++) {
        uint64_t end = found.offset[i] + buf[i].bytes[found.pool[i]];
        r->pool[id[i]] = found.pool[i];
        r->offset[id[i]] = found.offset[i];
        if (end > r->height[found.pool[i]])
            r->height[found.pool[i]] = end;
    }
    arena_free(arena);
    return fits;
}
