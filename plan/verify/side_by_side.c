/* side_by_side.c - what runs at the same time keeps apart; of the judge.
 *
 * Input: an action, and those of its step. Output: whether what one writes
 * another touches, or itself reads elsewhere, and whether engines run beside
 * each other that cannot.
 */
#include "plan/verify/judge.h"

/* Rows of its operand i that the action touches, as rows of the volume; engines
 * know where volumes are, and where in a ring, but not of fewer rows. */
static Range rows_touched(const Action *a, uint32_t i, const Placement *p) {
    bool moves = is_move(a);
    bool reads = i < a->n_in && a->kind == ACTION_RUN;
    uint32_t row = reads ? a->in_row : a->row;
    uint32_t rows = reads ? a->in_rows : a->rows;
    if ((reads && i == 1 && hw_op_traits[a->legal.op] & HW_MATRIX) ||
        (!p->ring && !moves)) {
        row = p->row;
        rows = p->rows;
    }
    row -= p->ring ? 0 : p->row;
    return (Range){row, (uint64_t)row + rows};
}

/* Whether a row of one lies where a row of the other does, h of them there. */
static bool rows_meet(uint32_t h, Range a, Range b) {
    for (uint64_t r = a.first; r < a.end; r++)
        for (uint64_t k = b.first; k < b.end && k < b.first + h; k++)
            if (r % h == k % h)
                return true;
    return false;
}

static Range channels_of(const Placement *p) {
    return (Range){p->part_c, (uint64_t)p->part_c + p->n_c};
}

/* Whether operand i of b touches nothing that a writes: other bytes, or other
 * channels or rows of one volume. */
static bool keeps_apart(const Judge *j, const Action *a, const Action *b,
                        uint32_t i) {
    const Placement *out = &j->plan->placement[a->out];
    const Placement *p = &j->plan->placement[i < b->n_in ? b->in[i] : b->out];
    if (p->memory != out->memory ||
        !ranges_meet(areas_bytes(j->areas, p), areas_bytes(j->areas, out)))
        return true;
    if (p->offset != out->offset || !volumes_same(&p->whole, &out->whole))
        return false;
    if (!ranges_meet(channels_of(p), channels_of(out)))
        return true;
    return is_move(a) && is_move(b) /* which know columns */
               ? !areas_parts_meet(j->areas, out, made_by(a), p, made_by(b))
               : !rows_meet(p->whole.h, rows_touched(a, a->n_in, out),
                            rows_touched(b, i, p));
}

/* What one action writes, another of the same step must not touch. */
static const char *check_apart(Judge *j, const Action *a, const Action *b) {
    for (uint32_t i = 0; i <= b->n_in; i++)
        if (!keeps_apart(j, a, b, i))
            return judge_says(j, &j->plan->placement[a->out],
                              "is written where another works");
    return NULL;
}

/* What an action writes, it does not read but in the same place. */
const char *judge_in_place(Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    bool in_place = j->spec->engine[a->legal.engine].in_place;
    for (uint32_t i = 0; i < a->n_in; i++)
        if (!keeps_apart(j, a, a, i) &&
            !(in_place && placement_same(&j->plan->placement[a->in[i]], out)))
            return judge_says(j, out, "is written over its operand");
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
