/* access.c - whether two actions touch the same element; see overlap.h.
 *
 * Input: actions over placements that have their offsets. Output: yes or no.
 * Invariant: no for two that the simulator would find to touch one cell, one of
 * them to write it. In one volume rows and channels tell them apart, though
 * their bytes interleave; else the bytes of whole granules.
 */
#include "plan/access.h"

#include "hwspec/insn.h"

static uint64_t memory_base(const Placement *p) {
    enum { MEMORY_BITS = 48 };
    return (uint64_t)p->memory << MEMORY_BITS;
}

/* Bytes of channels [part_c, part_c + n_c), whole granules. */
static void bytes_of(const HwSpec *spec, Access *access) {
    const Placement *p = access->at;
    const Layout *layout =
        layout_case(spec->memory[p->memory].layout, &p->whole);
    uint32_t granule = layout_granule(layout);
    access->first = p->offset;
    access->end = p->offset + p->bytes;
    if (!granule)
        return;
    uint64_t stop =
        ((uint64_t)p->part_c + p->n_c + granule - 1) / granule * granule;
    access->first += layout_part_offset(layout, &p->whole, p->part_c);
    if (stop < p->whole.c)
        access->end =
            p->offset + layout_part_offset(layout, &p->whole, (uint32_t)stop);
}

static Access access_of(const Plan *plan, const Action *a, uint32_t i) {
    bool is_in = i < a->n_in;
    Access access = {.at = &plan->placement[is_in ? a->in[i] : a->out],
                     .exact = true};
    const Placement *p = access.at;
    bool rows_read = is_in && a->kind == ACTION_RUN;
    uint32_t row = rows_read ? a->in_row : a->row;
    access.rows = rows_read ? a->in_rows : a->rows;
    if (rows_read && i == 1 && insn_own_plane(a->legal.op)) {
        row = p->row;
        access.rows = p->rows;
    }
    access.row = p->ring ? row % p->whole.h : row - p->row;
    bytes_of(plan->schedule->spec, &access);
    access.start = memory_base(p) + p->offset;
    access.first += memory_base(p);
    access.end += memory_base(p);
    if (is_in && a->kind == ACTION_COPY) { /* reaches over the plank's end */
        access.end += p->bytes;
        access.exact = false;
    }
    if (p->lines.band) /* rows and columns wind through all of it */
        access.exact = false;
    if (!is_move(a) && !p->ring) { /* engines know of volumes, not of rows */
        access.row = 0;
        access.rows = p->whole.h;
    }
    return access;
}

bool placements_share(const Placement *a, const Placement *b) {
    return a->memory == b->memory && a->offset == b->offset &&
           a->whole.c == b->whole.c && a->whole.h == b->whole.h &&
           a->whole.w == b->whole.w && a->bytes == b->bytes;
}

/* Rows of a ring of h; in other volumes they do not turn. */
static bool rows_apart(const Access *a, const Access *b) {
    uint32_t h = a->at->whole.h;
    uint32_t up = (b->row + h - a->row) % h, down = (a->row + h - b->row) % h;
    return a->rows <= up && b->rows <= down;
}

static bool apart(const Access *a, const Access *b) {
    const Placement *p = a->at, *q = b->at;
    if (a->start != b->start || !a->exact || !b->exact ||
        !placements_share(p, q))
        return false;
    return p->part_c + p->n_c <= q->part_c || q->part_c + q->n_c <= p->part_c ||
           rows_apart(a, b);
}

bool access_meet(const Access *a, const Access *b) {
    return a->first < b->end && b->first < a->end && !apart(a, b);
}

static void extend(Reach *reach, const Access *access) {
    if (access->first < reach->first)
        reach->first = access->first;
    if (access->end > reach->end)
        reach->end = access->end;
}

Accesses accesses_of(Arena *arena, const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    const Reach none = {UINT64_MAX, 0};
    bool writes = a->kind != ACTION_CONCAT;
    uint32_t n = a->n_in + !keeps_for_next(plan, a);
    Access *at = ARENA_ARRAY(arena, Access, a->n_in + 1);
    Accesses all = {n, a->n_in + !writes, at, none, none};
    for (uint32_t i = 0; i < n; i++) {
        at[i] = access_of(plan, a, i);
        bool active = at[i].at->memory < spec->n_active;
        extend(active ? &all.active : &all.outside, &at[i]);
    }
    return all;
}

bool accesses_meet(const Accesses *a, const Accesses *b) {
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = i < a->n_read ? b->n_read : 0; k < b->n; k++)
            if (access_meet(&a->at[i], &b->at[k]))
                return true;
    return false;
}
