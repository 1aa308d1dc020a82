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
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/spill/spill.h"

enum { MAX_BUFS = 1000, STEPS = 2000 };

/* ---- members ---- */

/* When the tensor, or a member of it, is first touched. */
static uint32_t first_use(const Facts *f, TensorId t, uint32_t complete) {
    const Role *role = &f->role[t.i];
    uint32_t first = role->origin == FROM_ENGINE ? role->made : complete;
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++) {
        uint32_t step = f->schedule->step_of[f->uses.node[i].i];
        if (on_engine(f, f->uses.node[i]) && step < first)
            first = step;
    }
    return first;
}

typedef struct Part {
    uint32_t c, first;
} Part;
typedef VEC(Part) Parts;

/* Members that no concat makes, by channel. */
static void list_parts(const Facts *f, TensorId t, uint32_t c,
                       uint32_t complete, Parts *out) {
    if (f->role[t.i].origin != FROM_PARTS) {
        vec_push(f->arena, out, ((Part){c, first_use(f, t, complete)}));
        return;
    }
    const Node *node = graph_node(f->g, graph_tensor(f->g, t)->producer);
    for (uint32_t i = 0; i < node->n_in; i++)
        list_parts(f, node->in[i], c + f->role[node->in[i].i].part_c, complete,
                   out);
}

/* Bytes [low, high) of the concat, first touched at the step. */
static void member_add(Decisions *d, Buffers *p, uint32_t concat,
                       uint32_t first, uint64_t low, uint64_t high) {
    const Facts *f = d->f;
    Owner owner = p->owner.at[concat];
    uint32_t complete = 2 * d->alias.at[owner.alias].complete;
    Buffer buf = {.first = 2 * first,
                  .end = complete > 2 * first ? complete : 2 * first,
                  .pin_pool = -1,
                  .hint = PACK_NO_HINT};
    buf.bytes[0] = owner.least = high - low;
    Relation inside = {REL_INSIDE, p->buf.n, concat, (int64_t)low};
    vec_push(f->arena, &p->relation, inside);
    vec_push(f->arena, &p->buf, buf);
    vec_push(f->arena, &p->owner, owner);
    vec_push(f->arena, &p->tied, concat);
}

/* One a run of members that share no granule, each up to the end. */
static void members_split(Decisions *d, Buffers *p, uint32_t concat) {
    const Facts *f = d->f;
    const AliasClass *alias = &d->alias.at[p->owner.at[concat].alias];
    const Layout *layout = f->spec->memory[0].layout;
    uint64_t align = pool_of(&f->spec->memory[0]).align, low = 0;
    uint32_t granule = layout_granule(layout), first = UINT32_MAX;
    uint32_t n_before = p->buf.n;
    Volume whole = volume_in(f, alias->root, 0);
    Parts parts = {0};
    list_parts(f, alias->root, 0, alias->complete, &parts);
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
            member_add(d, p, concat, first, low, high);
        first = UINT32_MAX;
        low = high;
    }
    if (p->buf.n > n_before)
        p->buf.at[concat].first = 2 * alias->complete;
}

static bool is_filled(const Decisions *d, const Buffers *p, uint32_t buf) {
    const AliasClass *alias = &d->alias.at[p->owner.at[buf].alias];
    return alias->concat && p->stays[p->owner.at[buf].alias].n == 1 &&
           p->buf.at[buf].first < 2 * alias->complete;
}

static bool can_split(const Decisions *d, const Buffers *p) {
    bool concat = false;
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Owner *o = &p->owner.at[i];
        if (o->kind != OWNER_RESIDENT || p->buf.at[i].pin_pool >= 0 ||
            o->least == UINT64_MAX)
            return false;
        concat |= d->alias.at[o->alias].concat;
    }
    return concat && d->f->spec->n_active == 1 &&
           !d->f->spec->memory[0].buffers && p->buf.n <= MAX_BUFS &&
           p->split == NONE;
}

bool fit_slots(Attempt *a) {
    Buffers *p = &a->buffers;
    PackResult *result = &a->result;
    buffers_make(&a->d, p);
    if (!can_split(&a->d, p))
        return false;
    for (uint32_t i = 0, n = p->buf.n; i < n; i++)
        if (is_filled(&a->d, p, i))
            members_split(&a->d, p, i);
    live_make(p);
    p->p.buf = p->buf.at;
    p->p.n_bufs = p->buf.n;
    p->p.relation = p->relation.at;
    p->p.n_relations = p->relation.n;
    p->p.budget = STEPS;
    for (uint32_t t = 0; t < p->n_times; t++)
        if (p->live[t] > p->p.pool[0].size)
            return false;
    pack_memory(a->f->arena, &p->p, a->f->options->planner, false, result,
                &a->planner);
    a->fills_holes = result->status == PACK_FITS;
    return a->fills_holes;
}
