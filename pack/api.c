/* api.c - the planners as others embed them: see include/amphora/planner.h.
 *
 * Arguments are checked, copied into a problem of our own, and given to the
 * portfolio under a guard (base/guard.h), which is how deadlines, cancelling
 * and lack of memory end it. The best placement so far lies in the caller's
 * array.
 */
#include "base/guard.h"
#include "pack/conflicts.h"
#include "pack/pack.h"

#include <amphora/planner.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const uint64_t MOST = INT64_MAX / 8;

typedef struct Call {
    const amphora_planner_problem *problem;
    amphora_planner_options options;
    uint64_t *offsets;
    amphora_planner_result *result;
    double start;
    bool told; /* a placement is in `offsets` */
    Guard guard;
} Call;

/* ---- what is asked ---- */

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static bool
wrong(amphora_planner_result *result, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(result->message, sizeof result->message, format, list);
    va_end(list);
    result->status = AMPHORA_PLANNER_INVALID;
    return false;
}

static bool check_gaps(const amphora_planner_buffer *b) {
    uint32_t at = b->first;
    for (uint32_t k = 0; k < b->n_gaps && b->gaps; k++) {
        if (b->gaps[k].first < at || b->gaps[k].end <= b->gaps[k].first ||
            b->gaps[k].end > b->end)
            return false;
        at = b->gaps[k].end;
    }
    return !b->n_gaps || b->gaps;
}

static bool check_buffers(const amphora_planner_problem *p,
                          amphora_planner_result *result) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        const amphora_planner_buffer *b = &p->buffers[i];
        if (b->first > b->end)
            return wrong(result,
                         "buffer %u: its life [%u, %u) ends before it begins",
                         i, b->first, b->end);
        if (!check_gaps(b))
            return wrong(result,
                         "buffer %u: its gaps are not in its life, rising and "
                         "apart",
                         i);
        if (b->size > MOST || b->offset > MOST || b->alignment > MOST)
            return wrong(
                result,
                "buffer %u: a size, alignment or offset is above 2^60 - 1", i);
        sum += b->size + b->alignment;
        if (sum > MOST)
            return wrong(
                result,
                "buffer %u: with it sizes and alignments sum up to more than "
                "2^60 - 1",
                i);
        if (b->flags > (AMPHORA_PLANNER_PINNED | AMPHORA_PLANNER_HINTED))
            return wrong(result, "buffer %u: unknown flags %#x", i, b->flags);
    }
    return true;
}

static bool check_relations(const amphora_planner_problem *p,
                            amphora_planner_result *result) {
    for (uint32_t i = 0; i < p->n_relations; i++) {
        const amphora_planner_relation *r = &p->relations[i];
        int64_t most = (int64_t)MOST;
        if (r->kind > AMPHORA_PLANNER_BELOW)
            return wrong(result, "relation %u: unknown kind %u", i, r->kind);
        if (r->a >= p->n_buffers || r->b >= p->n_buffers || r->a == r->b)
            return wrong(result,
                         "relation %u: %u and %u are not two of %u buffers", i,
                         r->a, r->b, p->n_buffers);
        if (r->bytes > most || r->bytes < -most ||
            (r->kind == AMPHORA_PLANNER_INSIDE && r->bytes < 0))
            return wrong(result, "relation %u: bytes %lld are out of range", i,
                         (long long)r->bytes);
    }
    return true;
}

static bool check_conflicts(const amphora_planner_problem *p,
                            amphora_planner_result *result) {
    if (p->n_conflicts && !p->conflicts)
        return wrong(result, "conflicts is NULL, n_conflicts is not 0");
    if (p->n_conflicts > PAIRS_MOST)
        return wrong(result, "n_conflicts is above %u", (unsigned)PAIRS_MOST);
    for (size_t i = 0; i < p->n_conflicts; i++)
        if (p->conflicts[i].a >= p->n_buffers ||
            p->conflicts[i].b >= p->n_buffers ||
            p->conflicts[i].a == p->conflicts[i].b)
            return wrong(result,
                         "conflict %u: %u and %u are not two of %u buffers",
                         (uint32_t)i, p->conflicts[i].a, p->conflicts[i].b,
                         p->n_buffers);
    if (p->n_streams && p->n_buffers && !p->clocks)
        return wrong(result, "clocks is NULL, n_streams is %u", p->n_streams);
    for (uint32_t i = 0; i < p->n_buffers && p->n_streams; i++) {
        const int64_t *clock = p->clocks + 2 * (size_t)i * p->n_streams;
        for (uint32_t s = 0; s < p->n_streams; s++)
            if (clock[s] > clock[p->n_streams + s])
                return wrong(result,
                             "buffer %u: in stream %u its life ends before it "
                             "begins",
                             i, s);
    }
    return true;
}

static bool check(const amphora_planner_problem *p,
                  const amphora_planner_options *o, const uint64_t *offsets,
                  amphora_planner_result *result) {
    if (o && o->struct_size != sizeof *o)
        return wrong(result, "options->struct_size is %zu, not %zu",
                     o->struct_size, sizeof *o);
    if (p->n_buffers && (!p->buffers || !offsets))
        return wrong(result, "%s is NULL, n_buffers is %u",
                     p->buffers ? "offsets" : "buffers", p->n_buffers);
    if (p->n_relations && !p->relations)
        return wrong(result, "relations is NULL, n_relations is %u",
                     p->n_relations);
    if (p->capacity > MOST || p->alignment > MOST)
        return wrong(result, "capacity or alignment is above 2^60 - 1");
    if (o && o->planner && !planner_find(o->planner))
        return wrong(result,
                     "no planner is called '%.40s'; see amphora_planner_name",
                     o->planner);
    if (o && !(o->seconds >= 0))
        return wrong(result, "seconds is below 0, or not a number");
    return check_buffers(p, result) && check_relations(p, result) &&
           check_conflicts(p, result);
}

static Buffer take_buffer(const amphora_planner_buffer *b) {
    bool pinned = b->flags & AMPHORA_PLANNER_PINNED && b->size;
    bool hinted = b->flags & AMPHORA_PLANNER_HINTED;
    return (Buffer){.first = b->first,
                    .end = b->end,
                    .n_gaps = b->n_gaps,
                    .gap = (const Steps *)b->gaps,
                    .bytes = {b->size},
                    .pin_pool = pinned ? 0 : -1,
                    .pin_offset = pinned ? b->offset : 0,
                    .hint = hinted ? b->offset : PACK_NO_HINT,
                    .align = b->alignment};
}
_Static_assert(sizeof(Steps) == sizeof(amphora_planner_span), "one layout");

/* False: too many buffers conflict. */
static bool take_problem(Arena *arena, const Call *call, PackProblem *problem) {
    const amphora_planner_problem *p = call->problem;
    Buffer *buf = ARENA_ARRAY(arena, Buffer, p->n_buffers);
    Relation *relation = ARENA_ARRAY(arena, Relation, p->n_relations);
    for (uint32_t i = 0; i < p->n_buffers; i++)
        buf[i] = take_buffer(&p->buffers[i]);
    for (uint32_t i = 0; i < p->n_relations; i++)
        relation[i] =
            (Relation){(RelationKind)p->relations[i].kind, p->relations[i].a,
                       p->relations[i].b, p->relations[i].bytes};
    *problem = (PackProblem){.n_pools = 1,
                             .n_bufs = p->n_buffers,
                             .buf = buf,
                             .n_relations = p->n_relations,
                             .relation = relation,
                             .seed = call->options.seed,
                             .budget = call->options.steps,
                             .any_fit = p->capacity && !call->options.lowest};
    if (call->options.seconds > 0)
        problem->deadline = call->start + call->options.seconds;
    problem->pool[0] = (Pool){.size = p->capacity ? p->capacity : INT64_MAX / 4,
                              .align = p->alignment ? p->alignment : 1};
    if (!p->n_conflicts && !p->n_streams)
        return true;
    Clocks clocks = {p->clocks, p->n_streams};
    Pair *pair = ARENA_ARRAY(arena, Pair, p->n_conflicts);
    for (size_t i = 0; i < p->n_conflicts; i++)
        pair[i] = (Pair){p->conflicts[i].a, p->conflicts[i].b};
    return conflicts_to_lives(arena, (Pairs){pair, p->n_conflicts},
                              p->n_streams ? &clocks : NULL, buf, p->n_buffers);
}

/* ---- what is answered ---- */

#define GRACE 1.1

static bool tell(Call *call, bool better) {
    const amphora_planner_options *o = &call->options;
    amphora_planner_progress progress = {
        .seconds = pack_clock() - call->start,
        .offsets = call->told ? call->offsets : NULL,
        .height = call->told ? call->result->height : 0,
        .better = better};
    /* the planners stop by themselves, but for those that take long to begin */
    bool late = o->seconds > 0 && progress.seconds >= GRACE * o->seconds;
    return (o->progress && o->progress(o->context, &progress)) || late;
}

static bool poll_call(void *context) {
    return tell(context, false);
}

static void take_result(Call *call, const PackResult *found) {
    for (uint32_t i = 0; i < call->problem->n_buffers; i++)
        call->offsets[i] = found->offset[i];
    call->told = true;
    call->result->height = found->height[0];
}

static void hear(void *context, const PackResult *found) {
    Call *call = context;
    uint64_t height = 0;
    for (uint32_t i = 0; i < call->problem->n_buffers; i++) {
        uint64_t end = found->offset[i] + call->problem->buffers[i].size;
        if (call->problem->buffers[i].size && end > height)
            height = end;
    }
    if (call->told && height >= call->result->height)
        return;
    take_result(call, found);
    call->result->height = height;
    if (tell(call, true))
        guard_leave(GUARD_STOPPED);
}

static void run(Call *call) {
    Arena *arena = arena_new("planner");
    PackProblem problem;
    if (!take_problem(arena, call, &problem)) {
        call->result->status = AMPHORA_PLANNER_INVALID;
        return;
    }
    problem.found = hear;
    problem.context = call;
    PackResult found;
    const char *name = call->options.planner;
    pack_lowest(arena, &problem, name ? name : "portfolio", &found);
    call->result->nodes = found.nodes;
    call->result->bound = found.bound;
    call->result->proved = found.proved;
    if (found.status == PACK_FITS)
        take_result(call, &found);
    if (found.status == PACK_INFEASIBLE)
        call->result->status = AMPHORA_PLANNER_INFEASIBLE;
}

/* Nothing but the guard lives here: it may come back to this place. */
static void run_guarded(Call *call) {
    guard_open(&call->guard);
    if (guard_begins(&call->guard))
        run(call);
    guard_exit(&call->guard);
}

static void conclude(Call *call) {
    amphora_planner_result *r = call->result;
    GuardReason reason = call->guard.reason;
    double seconds = call->options.seconds;
    bool late = seconds > 0 && pack_clock() - call->start >= seconds;
    r->stopped =
        reason == GUARD_STOPPED || reason == GUARD_NO_MEMORY ||
        (late && !r->proved && r->status != AMPHORA_PLANNER_INFEASIBLE);
    if (call->told && reason != GUARD_BUG)
        r->status = AMPHORA_PLANNER_FITS;
    else if (reason == GUARD_NO_MEMORY)
        r->status = AMPHORA_PLANNER_NO_MEMORY;
    else if (reason == GUARD_BUG)
        r->status = AMPHORA_PLANNER_BUG;
    static const char *const text[] = {
        "it fits",
        "no placement exists",
        "undecided: no placement found; allow more steps or seconds",
        "more buffers conflict than pairs are kept, or lives reach 2^32",
        "out of memory",
        "a bug in the library"};
    snprintf(r->message, sizeof r->message, "%s%s", text[r->status],
             r->stopped && call->told ? "; stopped before the end" : "");
}

int amphora_planner_version(void) {
    return AMPHORA_PLANNER_VERSION;
}

const char *amphora_planner_name(uint32_t planner) {
    return planner < n_planners ? planners[planner].name : NULL;
}

/* What callers were compiled with that knew of no conflicts. */
static bool take_struct(const amphora_planner_problem *p,
                        amphora_planner_problem *asked,
                        amphora_planner_result *result) {
    if (!p || (p->struct_size != sizeof *p &&
               p->struct_size != offsetof(amphora_planner_problem, conflicts)))
        return wrong(result, "%s",
                     p ? "problem->struct_size is not "
                         "sizeof(amphora_planner_problem)"
                       : "problem is NULL");
    memcpy(asked, p, p->struct_size);
    return true;
}

amphora_planner_status
amphora_planner_place(const amphora_planner_problem *problem,
                      const amphora_planner_options *options, uint64_t *offsets,
                      amphora_planner_result *result) {
    amphora_planner_result own;
    result = result ? result : &own;
    memset(result, 0, sizeof *result);
    amphora_planner_problem asked = {0};
    if (!take_struct(problem, &asked, result) ||
        !check(&asked, options, offsets, result))
        return result->status;
    Call call = {.problem = &asked,
                 .offsets = offsets,
                 .result = result,
                 .start = pack_clock()};
    if (options)
        call.options = *options;
    result->status = AMPHORA_PLANNER_UNDECIDED;
    call.guard.poll = poll_call;
    call.guard.context = &call;
    run_guarded(&call);
    conclude(&call);
    return result->status;
}
