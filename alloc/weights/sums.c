/* sums.c - sums of runs in a memory of their own; see weights.h.
 *
 * Input: a plan whose weights are loaded. Output: the same; each run of an
 * engine that keeps sums has a place for them, which those that go on with them
 * share. Places follow each other around the memory, or its buffers, so that
 * results are made of some while others begin; all are the first byte where
 * instructions do not tell.
 */
#include "alloc/weights/weights.h"

#include "base/arith.h"
#include "hwspec/insn.h"

static uint64_t bytes_of(const HwSpec *spec, const Volume *v) {
    return layout_bytes(spec->memory[spec->sums].layout, v);
}

bool sums_fit(const Plan *plan, const Action *a, uint32_t channels,
              uint32_t row, uint32_t rows) {
    const HwSpec *spec = plan->schedule->spec;
    Volume v = action_sums(plan, a, channels, row, rows);
    return bytes_of(spec, &v) <= hwspec_sums_room(spec);
}

/* Sums that another run goes on with. */
typedef struct Live {
    const Action *by; /* that began them */
    uint32_t number;  /* + 1 */
} Live;

typedef struct Sums {
    Arena *arena;
    const Plan *plan;
    const HwSpec *spec;
    VEC(SumsPlace) place;
    VEC(Live) live;
    uint64_t behind; /* the last place */
} Sums;

/* From there on they lie in one buffer, and in the memory; else where the next
 * buffer begins, or UINT64_MAX. */
static uint64_t within(const HwSpec *spec, uint64_t at, uint64_t bytes) {
    const HwMemory *m = &spec->memory[spec->sums];
    uint64_t one = hwspec_sums_room(spec), align = m->align ? m->align : 1;
    uint64_t end = m->buffers ? one * m->buffers : one;
    at = round_up(at, align);
    if (at % one + bytes > one)
        at = round_up(at, one);
    return at + bytes <= end ? at : UINT64_MAX;
}

/* End of live sums that it would lie over; 0: it does not. */
static uint64_t over_live(const Sums *s, uint64_t at, uint64_t bytes) {
    for (uint32_t i = 0; i < s->live.n; i++) {
        const SumsPlace *p = &s->place.at[s->live.at[i].number - 1];
        if (at < p->offset + p->bytes && p->offset < at + bytes)
            return p->offset + p->bytes;
    }
    return 0;
}

/* The first place from there on; UINT64_MAX: there is none. */
static uint64_t free_from(const Sums *s, uint64_t at, uint64_t bytes) {
    uint64_t over = 1;
    at = within(s->spec, at, bytes);
    while (at != UINT64_MAX && (over = over_live(s, at, bytes)) != 0)
        at = within(s->spec, over, bytes);
    return at;
}

/* Behind the last, in the next buffer, or from the first byte on. */
static bool begin(Sums *s, Action *a) {
    const HwMemory *m = &s->spec->memory[s->spec->sums];
    uint64_t from = m->buffers && s->behind
                        ? round_up(s->behind, hwspec_sums_room(s->spec))
                        : s->behind;
    SumsPlace p = {.volume =
                       action_sums(s->plan, a, s->plan->placement[a->out].n_c,
                                   a->row, a->rows)};
    p.bytes = bytes_of(s->spec, &p.volume);
    p.offset = UINT64_MAX;
    if (s->spec->insns->tells_sums)
        p.offset = free_from(s, from, p.bytes);
    if (p.offset == UINT64_MAX)
        p.offset = free_from(s, 0, p.bytes);
    if (p.offset == UINT64_MAX || (p.offset && !s->spec->insns->tells_sums))
        return false;
    s->behind = p.offset + p.bytes;
    vec_push(s->arena, &s->place, p);
    a->sums = s->place.n;
    if (keeps_for_next(s->plan, a))
        vec_push(s->arena, &s->live, ((Live){a, a->sums}));
    return true;
}

static bool same_box(const Plan *plan, const Action *a, const Action *b) {
    const Placement *p = &plan->placement[a->out],
                    *q = &plan->placement[b->out];
    return a->node.i == b->node.i && a->row == b->row && a->col == b->col &&
           p->c == q->c && p->n_c == q->n_c;
}

static void go_on(Sums *s, Action *a) {
    for (uint32_t i = 0; i < s->live.n; i++)
        if (same_box(s->plan, s->live.at[i].by, a)) {
            a->sums = s->live.at[i].number;
            if (!keeps_for_next(s->plan, a))
                s->live.at[i] = s->live.at[--s->live.n];
            return;
        }
}

bool sums_give(Arena *arena, Plan *plan) {
    const HwSpec *spec = plan->schedule->spec;
    if (!spec->sums)
        return true;
    Action *action = ARENA_COPY(arena, Action, plan->action, plan->n_actions);
    Sums s = {.arena = arena, .plan = plan, .spec = spec};
    bool all = true;
    for (uint32_t i = 0; i < plan->n_actions && all; i++) {
        Action *a = &action[i];
        if (a->kind != ACTION_RUN ||
            !hwspec_keeps_sums(spec, a->legal.op, a->legal.engine))
            continue;
        if (addends_begin(action_addends(plan, a)))
            all = begin(&s, a);
        else
            go_on(&s, a);
    }
    plan->action = action;
    plan->sums = s.place.at;
    plan->n_sums = s.place.n;
    return all;
}
