/* placements.c - placements by themselves, and what the host finds where; see
 * judge.h.
 */
#include "plan/verify/judge.h"

static bool in_one_buffer(const HwMemory *m, const Placement *p) {
    uint64_t one = hwspec_buffer_bytes(m);
    return one && p->offset / one == (p->offset + p->bytes - 1) / one;
}

static const char *check_placement(Judge *j, const Placement *p) {
    const HwMemory *m = &j->spec->memory[p->memory];
    Volume v = plan_volume(j->g, p->tensor);
    if (p->bytes != address_bytes(m->layout, &p->whole))
        return judge_says(j, p, "has a wrong size");
    if (m->align && p->offset % m->align)
        return judge_says(j, p, "is not aligned");
    if (p->offset > m->size || p->bytes > m->size - p->offset)
        return judge_says(j, p, "leaves its memory");
    const LineBuffer *l = &p->lines;
    bool fits = p->ring ? p->rows <= p->whole.h : p->rows == p->whole.h;
    bool wide = v.w == p->whole.w || (!p->ring && p->cols == p->whole.w);
    if (l->band) {
        uint32_t left = p->pitch ? p->left : 0;
        uint32_t pitch = p->pitch ? p->pitch : v.w;
        fits = p->rows <= l->keep + l->band && p->cols <= l->span &&
               p->col >= left && p->col + p->cols <= left + pitch;
        wide = p->whole.h == 1 && p->whole.w == lines_pixels(l, pitch);
    }
    if (p->row + p->rows > v.h || p->col + p->cols > v.w || !fits || !wide)
        return judge_says(j, p, "has wrong rows");
    if (p->c + p->n_c > v.c || p->part_c + p->n_c > p->whole.c)
        return judge_says(j, p, "leaves its volume");
    bool concat = p->n_c != p->whole.c || areas_is_concat(j->areas, p->tensor);
    if (m->buffers && !concat && !in_one_buffer(m, p))
        return judge_says(j, p, "crosses a buffer's end");
    return NULL;
}

const char *judge_placements(Judge *j) {
    const char *wrong = NULL;
    for (uint32_t i = 0; i < j->plan->n_placements && !wrong; i++)
        wrong = check_placement(j, &j->plan->placement[i]);
    return wrong;
}

/* What the host gives and takes lies in one place of each memory. */
const char *judge_host_side(Judge *j) {
    const Placement **at =
        ARENA_ARRAY(j->arena, const Placement *, (j->g->tensor.n + 1) * 2);
    for (uint32_t i = 0; i < j->plan->n_placements; i++) {
        const Placement *p = &j->plan->placement[i];
        HwRole role = role_of(j, i);
        if (role != HW_INPUT && role != HW_OUTPUT)
            continue;
        const Placement **first = &at[p->tensor.i * 2 + (role == HW_OUTPUT)];
        if (*first && ((*first)->offset != p->offset ||
                       !volumes_same(&(*first)->whole, &p->whole)))
            return judge_says(j, p, "lies in two places");
        *first = p;
    }
    return NULL;
}
