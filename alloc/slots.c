/* slots.c - concats whose bytes serve others until their members are written.
 *
 * Input: one level that does not fit with each concat whole from the first
 * write to the last read. Output: the same problem with a buffer for each run
 * of members, alive from its own first touch, and a placement in which these
 * lie at their places within the concat's volume.
 * Method: each concat is a body of boxes that move together (bodies.c).
 * Invariants: the boxes of a concat are disjoint, and together as many bytes as
 * it has; the planners' judge has passed the result.
 */
#include "alloc/bodies.h"
#include "alloc/work.h"

enum { MAX_BODIES = 1000, MAX_ORDERS = 200 };

/* One body a buffer of the problem with whole concats. */
typedef struct Slots {
    Work *w;
    Problem *p;
    Bodies bodies;
} Slots;

/* ---- boxes ---- */

/* When the tensor, or a member of it, is first touched. */
static uint32_t first_touch(const Work *w, TensorId t, uint32_t complete) {
    const Role *role = &w->role[t.i];
    uint32_t first = role->origin == FROM_ENGINE ? role->made : complete;
    for (uint32_t i = w->uses.start[t.i]; i < w->uses.start[t.i + 1]; i++) {
        uint32_t step = w->schedule->step_of[w->uses.node[i].i];
        if (on_engine(w, w->uses.node[i]) && step < first)
            first = step;
    }
    return first;
}

typedef struct Part {
    uint32_t c, first;
} Part;
typedef VEC(Part) Parts;

/* Members that no concat makes, by channel. */
static void list_parts(const Work *w, TensorId t, uint32_t c, uint32_t complete,
                       Parts *out) {
    if (w->role[t.i].origin != FROM_PARTS) {
        vec_push(w->arena, out, ((Part){c, first_touch(w, t, complete)}));
        return;
    }
    const Node *node = graph_node(w->g, graph_tensor(w->g, t)->producer);
    for (uint32_t i = 0; i < node->n_in; i++)
        list_parts(w, node->in[i], c + w->role[node->in[i].i].part_c, complete,
                   out);
}

/* One box a run of members that share no granule, each up to the end. */
static void concat_boxes(Slots *x, const Buf *buf, const Unit *unit) {
    const Work *w = x->w;
    const Layout *layout = w->spec->memory[0].layout;
    uint32_t granule = layout_granule(layout), first = UINT32_MAX;
    Volume whole = volume_in(w, unit->root, 0);
    Parts parts = {0};
    uint64_t low = 0;
    list_parts(w, unit->root, 0, unit->complete, &parts);
    for (uint32_t i = 0; i < parts.n; i++) {
        bool last = i + 1 == parts.n;
        uint64_t high = buf->bytes[0];
        first = parts.at[i].first < first ? parts.at[i].first : first;
        if (!last) {
            high = layout_part_offset(layout, &whole, parts.at[i + 1].c);
            if (!granule || parts.at[i + 1].c % granule ||
                high % x->bodies.align)
                continue;
        }
        body_box(&x->bodies, (Box){2 * first, buf->end, low, high});
        first = UINT32_MAX;
        low = high;
    }
}

static void body_make(Slots *x, uint32_t buf) {
    const Owner *owner = &x->p->owner.at[buf];
    const Buf *b = &x->p->buf.at[buf];
    body_add(&x->bodies, b->bytes[0]);
    const Unit *unit =
        owner->kind == OWNER_SEGMENT ? &x->w->unit.at[owner->unit] : NULL;
    if (unit && unit->concat && unit->n_segments == 1 &&
        b->first < 2 * unit->complete)
        concat_boxes(x, b, unit);
    else
        body_box(&x->bodies, (Box){b->first, b->end, 0, b->bytes[0]});
}

/* ---- the problem ---- */

/* Boxes of concats become buffers of their own, up to the step at which the
 * concat is complete; the concat's buffer begins there. */
static void problem_split(Slots *x) {
    Problem *p = x->p;
    for (uint32_t i = 0; i < x->bodies.body.n; i++) {
        const Body *body = &x->bodies.body.at[i];
        if (body->n_boxes < 2)
            continue;
        Owner owner = p->owner.at[i];
        uint32_t complete = 2 * x->w->unit.at[owner.unit].complete;
        p->buf.at[i].first = complete;
        for (uint32_t k = 0; k < body->n_boxes; k++) {
            const Box *box = &x->bodies.box.at[body->first_box + k];
            Buf buf = {.first = box->first,
                       .end = complete > box->first ? complete : box->first,
                       .pin_pool = 0,
                       .hint = PLAN_NO_HINT};
            buf.bytes[0] = owner.least = box->high - box->low;
            vec_push(x->w->arena, &p->buf, buf);
            vec_push(x->w->arena, &p->owner, owner);
            vec_push(x->w->arena, &p->tied, p->buf.n - 1);
        }
    }
    live_make(p);
    p->p.buf = p->buf.at;
    p->p.n_bufs = p->buf.n;
}

static void result_fill(Slots *x, PlanResult *result) {
    uint32_t n = x->p->buf.n, bodies = x->bodies.body.n, at = bodies;
    *result = (PlanResult){.status = PLAN_FITS,
                           .pool = ARENA_ARRAY(x->w->arena, int32_t, n + 1),
                           .offset = ARENA_ARRAY(x->w->arena, uint64_t, n + 1),
                           .failed = PLAN_NO_BUF};
    for (uint32_t i = 0; i < bodies; i++) {
        const Body *body = &x->bodies.body.at[i];
        uint64_t end = body->offset + body->bytes;
        result->offset[i] = body->offset;
        if (end > result->height[0])
            result->height[0] = end;
        for (uint32_t k = 0; k < body->n_boxes && body->n_boxes > 1; k++) {
            const Box *box = &x->bodies.box.at[body->first_box + k];
            result->offset[at] = body->offset + box->low;
            x->p->buf.at[at].pin_offset = result->offset[at];
            at++;
        }
    }
    result->bound = plan_live_peak(x->w->arena, &x->p->p, NULL);
    result->proved = result->bound == result->height[0];
}

static bool can_split(const Work *w, const Problem *p) {
    bool concat = false;
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Owner *o = &p->owner.at[i];
        if (o->kind != OWNER_SEGMENT || p->buf.at[i].pin_pool >= 0 ||
            o->least == UINT64_MAX)
            return false;
        concat |= w->unit.at[o->unit].concat;
    }
    return concat && w->spec->n_active == 1 && !w->spec->memory[0].buffers &&
           p->buf.n <= MAX_BODIES && w->split == NONE;
}

bool fit_slots(Work *w, Problem *p, PlanResult *result, const char **planner) {
    problem_make(w, p);
    if (!can_split(w, p))
        return false;
    Pool pool = pool_of(&w->spec->memory[0]);
    Slots x = {
        .w = w,
        .p = p,
        .bodies = {.arena = w->arena, .size = pool.size, .align = pool.align}};
    for (uint32_t i = 0, n = p->buf.n; i < n; i++)
        body_make(&x, i);
    problem_split(&x);
    for (uint32_t t = 0; t < p->n_times; t++)
        if (p->live[t] > pool.size)
            return false;
    uint64_t least;
    if (!bodies_place(&x.bodies, MAX_ORDERS, &least))
        return false;
    result_fill(&x, result);
    *planner = "slots";
    return !plan_check(w->arena, &p->p, result);
}
