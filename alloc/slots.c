/* slots.c - concats whose bytes serve others until their members are written.
 *
 * Input: one level that does not fit with each concat whole from the first
 * write to the last read. Output: the same problem with a buffer for each run
 * of members, alive from its own first touch, and a placement in which these
 * lie at their places within the concat's volume.
 * Method: as greedy by size (Pisarchyk, Lee 2020), but what is placed is a
 * body of boxes that move together; then orders drawn from a fixed seed.
 * Invariants: the boxes of a concat are disjoint, and together as many bytes as
 * it has; the planners' judge has passed the result.
 */
#include "alloc/work.h"

#include "base/rng.h"

#include <stdlib.h>

enum { MAX_BODIES = 1000, MAX_ORDERS = 200 };

/* Bytes [low, high) of a body, alive in [first, end). */
typedef struct Box {
    uint32_t first, end;
    uint64_t low, high;
} Box;

typedef struct Body {
    uint32_t buf, first_box, n_boxes;
    uint64_t bytes, weight, offset;
    bool placed;
} Body;

typedef struct Slots {
    Work *w;
    Problem *p;
    VEC(Box) box; /* of all bodies, one behind the other */
    Body *body;   /* one a buffer of the problem with whole concats */
    uint32_t n;
    uint64_t size, align;
    uint32_t *near; /* bodies that share time with the one at hand */
    uint32_t n_near;
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

static void box_add(Slots *x, Body *body, Box box) {
    vec_push(x->w->arena, &x->box, box);
    body->n_boxes++;
    body->weight += (box.high - box.low) * (box.end - box.first);
}

/* One box a run of members that share no granule, each up to the end. */
static void concat_boxes(Slots *x, Body *body, const Unit *unit) {
    const Work *w = x->w;
    const Layout *layout = w->spec->memory[0].layout;
    const Buf *buf = &x->p->buf.at[body->buf];
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
            if (!granule || parts.at[i + 1].c % granule || high % x->align)
                continue;
        }
        box_add(x, body, (Box){2 * first, buf->end, low, high});
        first = UINT32_MAX;
        low = high;
    }
}

static void body_make(Slots *x, uint32_t buf) {
    const Owner *owner = &x->p->owner.at[buf];
    const Buf *b = &x->p->buf.at[buf];
    Body *body = &x->body[buf];
    *body = (Body){.buf = buf, .first_box = x->box.n, .bytes = b->bytes[0]};
    const Unit *unit =
        owner->kind == OWNER_SEGMENT ? &x->w->unit.at[owner->unit] : NULL;
    if (unit && unit->concat && unit->n_segments == 1 &&
        b->first < 2 * unit->complete)
        concat_boxes(x, body, unit);
    else
        box_add(x, body, (Box){b->first, b->end, 0, b->bytes[0]});
}

/* ---- placing ---- */

static bool share_time(const Box *a, const Box *b) {
    return a->first < b->end && b->first < a->end;
}

static bool bodies_share_time(const Slots *x, const Body *a, const Body *b) {
    for (uint32_t i = 0; i < a->n_boxes; i++)
        for (uint32_t k = 0; k < b->n_boxes; k++)
            if (share_time(&x->box.at[a->first_box + i],
                           &x->box.at[b->first_box + k]))
                return true;
    return false;
}

/* The least offset from `at` on at which no box of `a` meets one of `b` for
 * what lies there; `at` itself if none does. */
static uint64_t clear_of(const Slots *x, const Body *a, uint64_t at,
                         const Body *b) {
    for (uint32_t i = 0; i < a->n_boxes; i++)
        for (uint32_t k = 0; k < b->n_boxes; k++) {
            const Box *p = &x->box.at[a->first_box + i];
            const Box *q = &x->box.at[b->first_box + k];
            uint64_t low = b->offset + q->low, high = b->offset + q->high;
            if (share_time(p, q) && at + p->low < high && low < at + p->high)
                at = high - p->low;
        }
    return at;
}

/* The lowest place; boxes only push it up, so it is found in the end. */
static bool body_place(Slots *x, Body *body) {
    uint64_t at = 0, was;
    do {
        was = at;
        for (uint32_t i = 0; i < x->n_near; i++)
            at = clear_of(x, body, at, &x->body[x->near[i]]);
        at = (at + x->align - 1) / x->align * x->align;
    } while (at != was);
    body->offset = at;
    body->placed = true;
    return at <= x->size && body->bytes <= x->size - at;
}

static bool place_order(Slots *x, const uint32_t *order) {
    for (uint32_t i = 0; i < x->n; i++)
        x->body[i].placed = false;
    for (uint32_t i = 0; i < x->n; i++) {
        Body *body = &x->body[order[i]];
        x->n_near = 0;
        for (uint32_t k = 0; k < x->n; k++)
            if (x->body[k].placed && bodies_share_time(x, body, &x->body[k]))
                x->near[x->n_near++] = k;
        if (!body_place(x, body))
            return false;
    }
    return true;
}

typedef struct Key {
    uint64_t weight;
    uint32_t body;
} Key;

static int heaviest_first(const void *a, const void *b) {
    const Key *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->body > y->body) - (x->body < y->body);
}

/* By bytes, by bytes times life, then drawn: with regard to bytes or not. */
static uint64_t key_of(const Body *body, uint32_t try) {
    uint64_t drawn = rng_bits(try, body->buf) % 64;
    if (try < 2)
        return try ? body->weight : body->bytes;
    return try % 2 ? drawn : body->bytes / 16 * drawn;
}

static bool place_all(Slots *x) {
    Key *key = ARENA_ARRAY(x->w->arena, Key, x->n + 1);
    uint32_t *order = ARENA_ARRAY(x->w->arena, uint32_t, x->n + 1);
    for (uint32_t try = 0; try < MAX_ORDERS; try++) {
        for (uint32_t i = 0; i < x->n; i++)
            key[i] = (Key){key_of(&x->body[i], try), i};
        qsort(key, x->n, sizeof *key, heaviest_first);
        for (uint32_t i = 0; i < x->n; i++)
            order[i] = key[i].body;
        if (place_order(x, order))
            return true;
    }
    return false;
}

/* ---- the problem ---- */

/* Boxes of concats become buffers of their own, up to the step at which the
 * concat is complete; the concat's buffer begins there. */
static void problem_split(Slots *x) {
    Problem *p = x->p;
    for (uint32_t i = 0; i < x->n; i++) {
        const Body *body = &x->body[i];
        if (body->n_boxes < 2)
            continue;
        Owner owner = p->owner.at[i];
        uint32_t complete = 2 * x->w->unit.at[owner.unit].complete;
        p->buf.at[i].first = complete;
        for (uint32_t k = 0; k < body->n_boxes; k++) {
            const Box *box = &x->box.at[body->first_box + k];
            Buf buf = {.first = box->first,
                       .end = complete > box->first ? complete : box->first,
                       .pin_pool = 0,
                       .hint = PLAN_NO_HINT};
            buf.bytes[0] = owner.least = box->high - box->low;
            vec_push(x->w->arena, &p->buf, buf);
            vec_push(x->w->arena, &p->owner, owner);
        }
    }
    live_make(p);
    p->p.buf = p->buf.at;
    p->p.n_bufs = p->buf.n;
}

static void result_fill(Slots *x, PlanResult *result) {
    uint32_t n = x->p->buf.n, at = x->n;
    *result = (PlanResult){.status = PLAN_FITS,
                           .pool = ARENA_ARRAY(x->w->arena, int32_t, n + 1),
                           .offset = ARENA_ARRAY(x->w->arena, uint64_t, n + 1),
                           .failed = PLAN_NO_BUF};
    for (uint32_t i = 0; i < x->n; i++) {
        const Body *body = &x->body[i];
        uint64_t end = body->offset + body->bytes;
        result->offset[i] = body->offset;
        if (end > result->height[0])
            result->height[0] = end;
        for (uint32_t k = 0; k < body->n_boxes && body->n_boxes > 1; k++) {
            const Box *box = &x->box.at[body->first_box + k];
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
    Slots x = {.w = w,
               .p = p,
               .n = p->buf.n,
               .body = ARENA_ARRAY(w->arena, Body, p->buf.n + 1),
               .size = pool.size,
               .align = pool.align,
               .near = ARENA_ARRAY(w->arena, uint32_t, p->buf.n + 1)};
    for (uint32_t i = 0; i < x.n; i++)
        body_make(&x, i);
    problem_split(&x);
    for (uint32_t t = 0; t < p->n_times; t++)
        if (p->live[t] > pool.size)
            return false;
    if (!place_all(&x))
        return false;
    result_fill(&x, result);
    *planner = "slots";
    return !plan_check(w->arena, &p->p, result);
}
