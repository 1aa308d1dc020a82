/* side_by_side.c - what runs at the same time keeps apart; of the judge.
 *
 * Input: an action, and those of its step. Output: whether what one writes
 * another touches, or itself reads elsewhere, and whether engines run beside
 * each other that cannot.
 */
#include "plan/verify/judge.h"

/* Rows of its operand i that the action touches, as rows of the volume; engines
 * know where volumes are, and where in a ring, but not of fewer rows. */
static void rows_touched(const Action *a, uint32_t i, const Placement *p,
                         uint32_t *row, uint32_t *rows) {
    bool reads = i < a->n_in && a->kind == ACTION_RUN;
    *row = reads ? a->in_row : a->row;
    *rows = reads ? a->in_rows : a->rows;
    if (reads && i == 1 && hw_op_traits[a->legal.op] & HW_MATRIX) {
        *row = p->row;
        *rows = p->rows;
    }
    if (!p->ring && a->kind != ACTION_LOAD && a->kind != ACTION_STORE) {
        *row = p->row;
        *rows = p->rows;
    }
    *row -= p->ring ? 0 : p->row;
}

/* Whether a row of one lies where a row of the other does, h of them there. */
static bool rows_meet(uint32_t h, uint32_t row, uint32_t rows, uint32_t other,
                      uint32_t others) {
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t k = 0; k < others && k < h; k++)
            if ((row + r) % h == (other + k) % h)
                return true;
    return false;
}

/* Whether both are of one volume, and other channels or rows of it. */
static bool parts_apart(const Placement *p, uint32_t p_row, uint32_t p_rows,
                        const Placement *out, uint32_t row, uint32_t rows) {
    return p->offset == out->offset && volumes_same(&p->whole, &out->whole) &&
           (!ranges_overlap(p->part_c, p->part_c + p->n_c, out->part_c,
                            out->part_c + out->n_c) ||
            !rows_meet(p->whole.h, row, rows, p_row, p_rows));
}

/* What one action writes, another of the same step must not touch. */
static const char *check_apart(Judge *j, const Action *a, const Action *b) {
    const Placement *out = &j->plan->placement[a->out];
    uint64_t first, end, p_first, p_end;
    uint32_t row, rows, p_row, p_rows;
    areas_bytes(j->areas, out, &first, &end);
    rows_touched(a, a->n_in, out, &row, &rows);
    for (uint32_t i = 0; i <= b->n_in; i++) {
        const Placement *p =
            &j->plan->placement[i < b->n_in ? b->in[i] : b->out];
        areas_bytes(j->areas, p, &p_first, &p_end);
        rows_touched(b, i, p, &p_row, &p_rows);
        if (p->memory != out->memory ||
            !ranges_overlap(p_first, p_end, first, end))
            continue;
        if (!parts_apart(p, p_row, p_rows, out, row, rows))
            return judge_says(j, out, "is written where another works");
    }
    return NULL;
}

/* What an action writes, it does not read but in the same place. */
const char *judge_in_place(Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    bool in_place = j->spec->engine[a->legal.engine].in_place;
    uint64_t first, end, p_first, p_end;
    uint32_t row, rows, p_row, p_rows;
    areas_bytes(j->areas, out, &first, &end);
    rows_touched(a, a->n_in, out, &row, &rows);
    for (uint32_t i = 0; i < a->n_in; i++) {
        const Placement *p = &j->plan->placement[a->in[i]];
        areas_bytes(j->areas, p, &p_first, &p_end);
        rows_touched(a, i, p, &p_row, &p_rows);
        bool apart = p->memory != out->memory ||
                     !ranges_overlap(p_first, p_end, first, end) ||
                     parts_apart(p, p_row, p_rows, out, row, rows);
        if (!apart && !(in_place && placement_same(p, out)))
            return judge_says(j, out, "is written over its operand");
    }
    return NULL;
}

/* An engine runs what it has, one action at a time, and beside certain others.
 */
static const char *check_engines(Judge *j, const Action *a, const Action *b) {
    const HwEngine *mine = &j->spec->engine[a->legal.engine],
                   *other = &j->spec->engine[b->legal.engine];
    bool beside = mine->beside >> b->legal.engine & 1 ||
                  other->beside >> a->legal.engine & 1;
    return beside || j->spec->tiling.rows.moves == HW_MOVES_QUEUED
               ? NULL
               : judge_says(j, &j->plan->placement[a->out],
                            "is made beside what its engine cannot run beside");
}

static bool at_work(const Action *a) {
    return a->kind != ACTION_CONCAT && a->kind != ACTION_HOST;
}

/* All that follow with the same number run at the same time; as do all whole
 * nodes of one step of the schedule. */
const char *judge_step(Judge *j, const Action *a, const Action *end) {
    bool several = j->plan->schedule->step[a->at].n > 1;
    const char *wrong = NULL;
    for (const Action *b = a + 1;
         at_work(a) && b < end && b->step == a->step && at_work(b) && !wrong;
         b++) {
        if (!(wrong = check_apart(j, a, b)))
            wrong = check_apart(j, b, a);
        if (!wrong && on_engine(a) && on_engine(b))
            wrong = check_engines(j, a, b);
    }
    for (const Action *b = a + 1; a->kind == ACTION_RUN && several && b < end &&
                                  b->at == a->at && !wrong;
         b++)
        if (b->kind == ACTION_RUN && b->node.i != a->node.i &&
            !(wrong = check_apart(j, a, b)))
            wrong = check_apart(j, b, a);
    return wrong;
}
