/* moves.c - what actions read and write, and moves and copies of it; see
 * judge.h. What is written over is lost, weights and sums as well.
 */
#include "plan/verify/judge.h"

/* ---- reading and writing ---- */

static bool within(const Placement *p, Part part) {
    return part.row >= p->row && part.row + part.rows <= p->row + p->rows &&
           part.col >= p->col && part.col + part.cols <= p->col + p->cols;
}

const char *judge_read(Judge *j, uint32_t placement, Part part) {
    const Placement *p = &j->plan->placement[placement];
    if (!within(p, part))
        return judge_says(j, p, "is read beyond the rows held");
    if (!areas_find(j->areas, p))
        return judge_says(j, p, "is not there (never written, or overwritten)");
    return areas_read(j->areas, p, part) ? NULL
                                         : judge_says(j, p, "is not all there");
}

const char *judge_write(Judge *j, uint32_t placement, Part part) {
    const Placement *p = &j->plan->placement[placement];
    if (!within(p, part))
        return judge_says(j, p, "is written beyond its rows");
    areas_write(j->areas, p, part);
    judge_drop_sums(j, p->memory, areas_bytes(j->areas, p));
    if (p->memory == j->spec->weights)
        judge_drop_weights(j, areas_bytes(j->areas, p));
    return NULL;
}

/* ---- moves and copies ---- */

const char *judge_move(Judge *j, const Action *a) {
    const Placement *from = &j->plan->placement[a->in[0]];
    HwRole in = role_of(j, a->in[0]), out = role_of(j, a->out);
    bool load = a->kind == ACTION_LOAD;
    bool right =
        load ? (in == HW_BACKING || in == HW_INPUT) && out == HW_ACTIVE
             : in == HW_ACTIVE && (out == HW_BACKING || out == HW_OUTPUT);
    if (!right || a->n_in != 1)
        return judge_says(j, from, "is moved the wrong way");
    const Placement *to = &j->plan->placement[a->out];
    if (!same_tensor(from->tensor, to->tensor) || from->c != to->c ||
        from->n_c != to->n_c)
        return judge_says(j, from, "changes its name on the way");
    const char *wrong = judge_read(j, a->in[0], made_by(a));
    return wrong ? wrong : judge_write(j, a->out, made_by(a));
}

/* An instruction says how high the plank is, not where its rows end: from a
 * later row on it reaches over its end, though nothing is read there. */
static bool reaches_over(Judge *j, const Placement *p, uint32_t row) {
    const HwMemory *m = &j->spec->memory[p->memory];
    uint64_t behind =
        address_cell(m->layout, &p->whole, 0, row - p->row, 0, 0) *
        m->layout->element;
    return p->bytes > m->size - p->offset - behind ||
           (m->align && behind % m->align);
}

const char *judge_copy(Judge *j, const Action *a) {
    const Placement *from = &j->plan->placement[a->in[0]];
    const Placement *to = &j->plan->placement[a->out];
    if (a->n_in != 1 || !same_tensor(from->tensor, to->tensor) ||
        role_of(j, a->in[0]) != HW_ACTIVE || role_of(j, a->out) != HW_ACTIVE ||
        to->row != a->row || to->rows != a->rows)
        return judge_says(j, from, "is copied the wrong way");
    const char *wrong = judge_read(j, a->in[0], made_by(a));
    if (!wrong && reaches_over(j, from, a->row))
        wrong = judge_says(j, from, "is copied from a place of no address");
    return wrong ? wrong : judge_write(j, a->out, made_by(a));
}
