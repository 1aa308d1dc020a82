/* sums.c - sums that runs leave for others; see judge.h.
 *
 * They lie where the result will, or in the memory of sums, where those of
 * every run of its engine lie: what it writes there is what no other goes on
 * with.
 */
#include "plan/verify/judge.h"

/* Bytes of a memory. */
typedef struct Lies {
    uint32_t memory;
    Range bytes;
} Lies;

static Lies lies_of(const Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    if (!a->sums)
        return (Lies){out->memory, areas_bytes(j->areas, out)};
    const SumsPlace *s = &j->plan->sums[a->sums - 1];
    return (Lies){j->spec->sums, {s->offset, s->offset + s->bytes}};
}

void judge_drop_sums(Judge *j, uint32_t memory, Range bytes) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->left.n; i++) {
        Lies at = lies_of(j, j->left.at[i]);
        if (at.memory != memory || !ranges_meet(at.bytes, bytes))
            j->left.at[n++] = j->left.at[i];
    }
    j->left.n = n;
}

static bool same_place(const Judge *j, const Action *a, const Action *b) {
    Lies p = lies_of(j, a), q = lies_of(j, b);
    return p.memory == q.memory && p.bytes.first == q.bytes.first &&
           p.bytes.end == q.bytes.end;
}

static bool same_box(const Judge *j, const Action *a, const Action *b) {
    const Placement *p = &j->plan->placement[a->out],
                    *q = &j->plan->placement[b->out];
    return a->node.i == b->node.i && a->row == b->row && a->rows == b->rows &&
           a->col == b->col && a->cols == b->cols && p->memory == q->memory &&
           p->offset == q->offset && volumes_same(&p->whole, &q->whole) &&
           p->part_c == q->part_c && p->c == q->c && p->n_c == q->n_c &&
           same_place(j, a, b);
}

/* Those that the run goes on with are there, and are no more. */
static const char *take(Judge *j, const Action *a, Addends x) {
    for (uint32_t i = 0; i < j->left.n; i++)
        if (same_box(j, j->left.at[i], a) &&
            addends_follow(action_addends(j->plan, j->left.at[i]), x)) {
            j->left.at[i] = j->left.at[--j->left.n];
            return NULL;
        }
    return judge_says(j, &j->plan->placement[a->out],
                      "goes on with sums that are not there");
}

static void leave(Judge *j, const Action *a) {
    Lies at = lies_of(j, a);
    if (!a->sums) {
        areas_spoil(j->areas, &j->plan->placement[a->out], made_by(a));
        if (at.memory == j->spec->weights)
            judge_drop_weights(j, at.bytes);
    }
    judge_drop_sums(j, at.memory, at.bytes);
    vec_push(j->arena, &j->left, a);
}

/* All sums of the run have a place in the memory, in one of its buffers. */
static bool lies_right(const Judge *j, const Action *a) {
    const HwMemory *m = &j->spec->memory[j->spec->sums];
    if (!a->sums || a->sums > j->plan->n_sums)
        return false;
    const SumsPlace *s = &j->plan->sums[a->sums - 1];
    Volume v = action_sums(j->plan, a, j->plan->placement[a->out].n_c, a->row,
                           a->rows);
    uint64_t one = hwspec_sums_room(j->spec);
    return s->bytes > 0 && s->bytes == layout_bytes(m->layout, &v) &&
           s->offset <= m->size && s->bytes <= m->size - s->offset &&
           s->offset / one == (s->offset + s->bytes - 1) / one &&
           s->offset % (m->align ? m->align : 1) == 0;
}

const char *judge_sums(Judge *j, const Action *a, bool *stays) {
    Addends x = action_addends(j->plan, a);
    const char *wrong = NULL;
    bool keeps = hwspec_keeps_sums(j->spec, a->legal.op, a->legal.engine);
    *stays = !addends_end(x);
    if (keeps ? !lies_right(j, a) : a->sums)
        return judge_says(j, &j->plan->placement[a->out],
                          "has no place for its sums");
    if (!addends_begin(x))
        wrong = take(j, a, x);
    if (!wrong && *stays)
        leave(j, a);
    else if (!wrong && a->sums)
        judge_drop_sums(j, j->spec->sums, lies_of(j, a).bytes);
    return wrong;
}
