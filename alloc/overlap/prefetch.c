/* prefetch.c - longer lives for buffers, so that transfers hide behind layers.
 *
 * Input: a plan's problem and placement. Output: both, and the plan, in fewer
 * cycles by plan_cycles, with the same transfers.
 * Method: where a transfer stands in a step of its own, its buffer is given a
 * longer life: one that is loaded begins some phases earlier, one that is
 * stored ends some phases later, as many as are needed to hide the transfer and
 * as the live bytes allow. The buffers of those phases are placed anew
 * (local_repack.c); if that fails a shorter life is tried. Then the actions are
 * ordered anew (list_schedule.c), and what takes fewer cycles stays. Before all
 * that, double_buffer.c doubles buffers. Invariants: what must be alive is;
 * never more bytes, never more cycles.
 */
#include "alloc/lower/lower.h"
#include "alloc/overlap/overlap.h"

#include "base/order.h"

#include <stdlib.h>

enum { HALVINGS = 3, ROUNDS = 4, LOOK = 512 };

/* ---- what is not hidden ---- */

static void find_times(Prefetch *s) {
    uint32_t n = s->a->f->schedule->n_steps;
    s->time = ARENA_ARRAY(s->arena, uint64_t, n + 1);
    for (uint32_t i = 0; i < s->plan->n_actions; i++) {
        const Action *a = &s->plan->action[i];
        if (a->kind == ACTION_RUN || a->kind == ACTION_COPY)
            s->time[a->at] += action_cycles(s->plan, a);
    }
}

static bool runs_on(const Plan *plan, const Action *a, uint32_t buf,
                    bool load) {
    bool uses = false;
    if (a->kind != ACTION_RUN && a->kind != ACTION_COPY)
        return false;
    for (uint32_t i = 0; load && i < a->n_in; i++)
        uses |= plan->placement[a->in[i]].buffer == buf;
    return uses || (!load && plan->placement[a->out].buffer == buf);
}

/* The run for which action i loads, or of which it stores; NULL. */
static const Action *partner(const Plan *plan, uint32_t i, uint32_t buf,
                             bool load) {
    for (uint32_t k = 1; k < LOOK; k++) {
        uint32_t at = load ? i + k : i - k;
        if (at >= plan->n_actions)
            return NULL;
        if (runs_on(plan, &plan->action[at], buf, load))
            return &plan->action[at];
    }
    return NULL;
}

static void request_add(Prefetch *s, uint32_t i) {
    const Action *a = &s->plan->action[i];
    bool load = a->kind == ACTION_LOAD;
    const Placement *p = &s->plan->placement[load ? a->out : a->in[0]];
    const Action *run = partner(s->plan, i, p->buffer, load);
    bool outer = !run || run->tile == (load ? 0 : run->n_tiles - 1);
    Request request = {p->buffer, load, outer, p->tensor,
                       action_cycles(s->plan, a)};
    for (uint32_t k = 0; k < s->request.n; k++) {
        Request *other = &s->request.at[k];
        if (other->buf == request.buf && other->load == load &&
            other->outer == outer) {
            other->cycles += request.cycles;
            return;
        }
    }
    if (p->buffer < s->buffers->buf.n)
        vec_push(s->arena, &s->request, request);
}

static int by_cycles(const void *a, const void *b) {
    const Request *x = a, *y = b;
    return order_by(ORDER_DOWN(x->cycles, y->cycles),
                    order_by3(ORDER_UP(x->buf, y->buf),
                              ORDER_UP(x->load, y->load),
                              ORDER_UP(x->outer, y->outer)));
}

/* Transfers in steps without layers. */
void prefetch_requests(Prefetch *s) {
    const Plan *plan = s->plan;
    s->request.n = 0;
    for (uint32_t i = 0, end; i < plan->n_actions; i = end) {
        bool alone = true;
        for (end = i; end < plan->n_actions &&
                      plan->action[end].step == plan->action[i].step;
             end++)
            alone &= is_move(&plan->action[end]);
        for (uint32_t k = i; alone && k < end; k++)
            request_add(s, k);
    }
    if (s->request.n)
        qsort(s->request.at, s->request.n, sizeof *s->request.at, by_cycles);
}

/* ---- longer lives ---- */

/* The step behind which the operands of a layer of the host are there. */
static uint32_t ready_at(const Facts *f, const Node *host) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < host->n_in; i++) {
        const Role *role = &f->role[host->in[i].i];
        uint32_t made = role->made == NONE ? 0 : role->made + 1;
        last = made > last ? made : last;
    }
    return last;
}

/* The step behind which something of the tensor is there. */
static uint32_t made_at(const Facts *f, TensorId t) {
    const Node *node = graph_node(f->g, graph_tensor(f->g, t)->producer);
    uint32_t made = f->role[t.i].made, first = made == NONE ? 0 : made + 1;
    if (f->role[t.i].origin == FROM_HOST)
        return ready_at(f, node);
    if (f->role[t.i].origin != FROM_PARTS)
        return first;
    for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t part = made_at(f, node->in[i]);
        first = part < first ? part : first;
    }
    return first;
}

/* The step behind which something of the tensor's values, or all of those of
 * the residency interval before, are outside. */
static uint32_t outside_from(const Prefetch *s, const Request *request) {
    const Owner *owner = &s->buffers->owner.at[request->buf];
    uint32_t step = made_at(s->a->f, request->tensor);
    if (owner->kind != OWNER_RESIDENT)
        return step;
    const AliasClass *alias = &s->a->d.alias.at[owner->alias];
    const Residencies *stays = &s->buffers->stays[owner->alias];
    for (uint32_t i = 1; i < stays->n; i++)
        if (stays->at[i].buf == request->buf)
            step = alias->use[stays->at[i - 1].last].step + 1;
    return step;
}

/* The step at which the alias class's next residency interval begins. */
static uint32_t outside_until(const Prefetch *s, const Request *request) {
    const Owner *owner = &s->buffers->owner.at[request->buf];
    if (owner->kind == OWNER_RESIDENT) {
        const AliasClass *alias = &s->a->d.alias.at[owner->alias];
        const Residencies *stays = &s->buffers->stays[owner->alias];
        for (uint32_t i = 0; i + 1 < stays->n; i++)
            if (stays->at[i].buf == request->buf)
                return alias->use[stays->at[i + 1].first].step;
    }
    return s->a->f->schedule->n_steps;
}

/* The buffer of what stays of the volume meanwhile; NONE. */
static uint32_t kept_at(const Lives *l, uint32_t buf, uint32_t phase) {
    const Buffers *p = l->buffers;
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (i != buf && p->tied.at[i] == p->tied.at[buf] &&
            lives_has(l, i, phase))
            return i;
    return NONE;
}

/* Whether the buffer may live in the phase; what stays of it while the rest is
 * away is to be away for one phase at least. */
static bool may_live(const Prefetch *s, const Lives *l, uint32_t buf,
                     uint32_t phase) {
    uint64_t bytes = s->buffers->owner.at[buf].least, live = l->live[phase];
    uint32_t kept = kept_at(l, buf, phase);
    if (kept != NONE) {
        Steps span = lives_span(l, kept);
        if (s->buffers->owner.at[kept].kind != OWNER_KEPT ||
            span.end - span.first < 3 || phase == span.first ||
            phase + 1 == span.end)
            return false;
        live -= s->buffers->owner.at[kept].least;
    }
    return live + bytes <= s->a->f->total;
}

/* Phases by which its buffer should live longer: before its life for a load,
 * else behind it; first == end: none. */
static Steps wanted_by(const Prefetch *s, const Lives *l,
                       const Request *request) {
    Steps span = lives_span(l, request->buf), wanted = {span.first, span.first};
    uint64_t hidden = 0;
    if (request->load) {
        uint32_t least = l->phase_of[2 * outside_from(s, request)];
        for (uint32_t phase = span.first;
             phase-- > least && hidden < request->cycles &&
             may_live(s, l, request->buf, phase);) {
            hidden += l->cost[phase];
            if (l->cost[phase])
                wanted.first = phase;
        }
        return wanted;
    }
    wanted = (Steps){span.end, span.end};
    uint32_t most = l->phase_of[2 * outside_until(s, request)];
    for (uint32_t phase = span.end; phase < most && hidden < request->cycles &&
                                    may_live(s, l, request->buf, phase);
         phase++) {
        hidden += l->cost[phase];
        if (l->cost[phase])
            wanted.end = phase + 1;
    }
    return wanted;
}

/* A phase in which a buffer came to life, or died. */
typedef struct Change {
    uint32_t buf, phase;
} Change;

typedef VEC(Change) Changes;

static void change(Lives *l, Changes *done, uint32_t buf, uint32_t phase,
                   bool alive) {
    if (lives_has(l, buf, phase) == alive)
        return;
    lives_set(l, buf, phase, alive);
    vec_push(l->arena, done, ((Change){buf, phase}));
}

static void grant(Lives *l, const Request *request, Steps phases,
                  Changes *done) {
    for (uint32_t phase = phases.first; phase < phases.end; phase++) {
        uint32_t kept = kept_at(l, request->buf, phase);
        if (kept != NONE)
            change(l, done, kept, phase, false);
        change(l, done, request->buf, phase, true);
    }
}

static void take_back(Lives *l, Changes *done) {
    for (; done->n; done->n--) {
        const Change *c = &done->at[done->n - 1];
        lives_set(l, c->buf, c->phase, !lives_has(l, c->buf, c->phase));
    }
}

/* ---- trials ---- */

bool prefetch_try(Prefetch *s, Lives *lives, const PackResult *result) {
    Plan plan = *s->plan;
    if (s->tried && result_same(s->buffers->buf.n, s->tried, result))
        return false;
    s->tried = ARENA_COPY(s->arena, PackResult, result, 1);
    if (!actions_make(s->a, s->diag, s->buffers, result, &plan) ||
        (plan.n_actions > s->plan->serial->n_actions &&
         plan_traffic(&plan).moved > plan_traffic(s->plan->serial).moved))
        return false; /* what lay where it is needed does not any more */
    plan.serial = ARENA_COPY(s->arena, Plan, &plan, 1);
    overlap(s->arena, &plan);
    if (plan.cycles >= s->cycles)
        return false;
    *s->result = *result;
    *s->plan = plan;
    s->lives = lives;
    s->cycles = plan.cycles;
    return true;
}

/* Phases of the buffer's life and of all turns that it is alive in. */
static Steps around(const Lives *l, uint32_t buf) {
    Steps span = lives_span(l, buf), all = span;
    for (uint32_t i = 0; i < l->turning.n; i++) {
        Steps turns = lives_phases(l, l->turning.at[i].first);
        if (turns.first >= span.end || span.first >= turns.end)
            continue;
        all.first = turns.first < all.first ? turns.first : all.first;
        all.end = turns.end > all.end ? turns.end : all.end;
    }
    return all;
}

static Steps half(const Request *request, Steps wanted) {
    uint32_t n = (wanted.end - wanted.first) / 2;
    return request->load ? (Steps){wanted.end - n, wanted.end}
                         : (Steps){wanted.first, wanted.first + n};
}

/* All of what is wanted, or half of it... */
static bool try_request(const Prefetch *s, Lives *lives, PackResult *r,
                        const Request *request, Changes *done) {
    Steps wanted = wanted_by(s, lives, request);
    for (uint32_t i = 0; i < HALVINGS && wanted.first < wanted.end; i++) {
        done->n = 0;
        grant(lives, request, wanted, done);
        if (window_place(lives, around(lives, request->buf), r))
            return true;
        take_back(lives, done);
        wanted = half(request, wanted);
    }
    return false;
}

static bool improve(Prefetch *s) {
    Lives *lives = lives_copy(s->lives);
    Changes done = {0};
    PackResult r = result_copy(s->arena, s->buffers->buf.n, s->result);
    bool any = false;
    prefetch_requests(s);
    for (uint32_t i = 0; i < s->request.n; i++)
        if (s->request.at[i].outer)
            any |= try_request(s, lives, &r, &s->request.at[i], &done);
    return any && prefetch_try(s, lives, &r);
}

void prefetch_quickly(const Facts *f, Plan *plan) {
    uint64_t live = plan->am_live;
    plan->cycles = plan_cycles(plan);
    if (!overlap_tries(plan, ROUNDS))
        return;
    plan->serial = ARENA_COPY(f->arena, Plan, plan, 1);
    overlap(f->arena, plan);
    plan->am_live = live;
}

void prefetch(Attempt *a, Diag *diag, Buffers *buffers, PackResult *result,
              Plan *plan) {
    Prefetch s = {.a = a,
                  .arena = a->f->arena,
                  .diag = diag,
                  .buffers = buffers,
                  .result = result,
                  .plan = plan,
                  .cycles = plan->cycles};
    uint64_t live = plan->am_live;
    uint32_t rounds = overlap_tries(plan->serial, ROUNDS);
    s.instructions = overlap_spare(plan->serial);
    find_times(&s);
    if (!buffers->relation.n) {
        turns_double(&s);
        for (uint32_t round = 0; round < rounds && improve(&s); round++)
            continue;
    }
    slices(s.arena, plan);
    plan->am_live = live;
}
