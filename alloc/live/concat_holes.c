/* concat_holes.c - concats whose bytes serve others until their members are
 * written.
 *
 * Input: one level that does not fit with each concat whole from the first
 * write to the last read. Output: the same problem with a buffer for each run
 * of members, inside the concat's and alive from its own first touch; the
 * concat's own begins where it is complete. A placement of that.
 * Invariants: the members of a concat are disjoint, and together as many bytes
 * as it has.
 */
#include "alloc/work.h"

enum { MAX_BUFS = 1000, STEPS = 2000 };

/* ---- members ---- */

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

/* Bytes [low, high) of the concat, first touched at the step. */
static void member_add(Work *w, Problem *p, uint32_t concat, uint32_t first,
                       uint64_t low, uint64_t high) {
    Owner owner = p->owner.at[concat];
    uint32_t complete = 2 * w->unit.at[owner.unit].complete;
    Buf buf = {.first = 2 * first,
               .end = complete > 2 * first ? complete : 2 * first,
               .pin_pool = -1,
               .hint = PLAN_NO_HINT};
    buf.bytes[0] = owner.least = high - low;
    Relation inside = {REL_INSIDE, p->buf.n, concat, (int64_t)low};
    vec_push(w->arena, &p->relation, inside);
    vec_push(w->arena, &p->buf, buf);
    vec_push(w->arena, &p->owner, owner);
    vec_push(w->arena, &p->tied, concat);
}

/* One a run of members that share no granule, each up to the end. */
static void members_split(Work *w, Problem *p, uint32_t concat) {
    const Unit *unit = &w->unit.at[p->owner.at[concat].unit];
    const Layout *layout = w->spec->memory[0].layout;
    uint64_t align = pool_of(&w->spec->memory[0]).align, low = 0;
    uint32_t granule = layout_granule(layout), first = UINT32_MAX;
    uint32_t n_before = p->buf.n;
    Volume whole = volume_in(w, unit->root, 0);
    Parts parts = {0};
    list_parts(w, unit->root, 0, unit->complete, &parts);
    for (uint32_t i = 0; i < parts.n; i++) {
        bool last = i + 1 == parts.n;
        uint64_t high = p->buf.at[concat].bytes[0];
        first = parts.at[i].first < first ? parts.at[i].first : first;
        if (!last) {
            high = layout_part_offset(layout, &whole, parts.at[i + 1].c);
            if (!granule || parts.at[i + 1].c % granule || high % align)
                continue;
        }
        if (low || !last)
            member_add(w, p, concat, first, low, high);
        first = UINT32_MAX;
        low = high;
    }
    if (p->buf.n > n_before)
        p->buf.at[concat].first = 2 * unit->complete;
}

static bool is_filled(const Work *w, const Problem *p, uint32_t buf) {
    const Unit *unit = &w->unit.at[p->owner.at[buf].unit];
    return unit->concat && unit->n_segments == 1 &&
           p->buf.at[buf].first < 2 * unit->complete;
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
           p->buf.n <= MAX_BUFS && w->split == NONE;
}

bool fit_slots(Work *w, Problem *p, PlanResult *result, const char **planner) {
    problem_make(w, p);
    if (!can_split(w, p))
        return false;
    for (uint32_t i = 0, n = p->buf.n; i < n; i++)
        if (is_filled(w, p, i))
            members_split(w, p, i);
    live_make(p);
    p->p.buf = p->buf.at;
    p->p.n_bufs = p->buf.n;
    p->p.relation = p->relation.at;
    p->p.n_relations = p->relation.n;
    p->p.budget = STEPS;
    for (uint32_t t = 0; t < p->n_times; t++)
        if (p->live[t] > p->p.pool[0].size)
            return false;
    plan_memory(w->arena, &p->p, w->options->planner, false, result, planner);
    w->lends = result->status == PLAN_FITS;
    return w->lends;
}
