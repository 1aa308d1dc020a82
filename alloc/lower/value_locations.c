/* value_locations.c - where each tensor's values are; see emit.h.
 *
 * Input: alias classes with their residency intervals. Output: loads of what is
 * needed and not there, stores of what leaves and is needed later, unless it
 * lies outside already; copies of rows of what is resident.
 */
#include "alloc/live/live.h"
#include "alloc/lower/emit.h"

#include <assert.h>

/* ---- outside ---- */

/* Whether instructions can tell of the tensor's channels from `c` on in what
 * lies there. */
static bool told_within(const Emit *e, TensorId t, uint32_t c, uint32_t where) {
    const Placement *p = &e->placement.at[where];
    return hwspec_part_told(e->f->spec, &e->f->spec->memory[p->memory],
                            &p->whole, p->part_c + c,
                            plan_volume(e->f->g, t).c);
}

uint32_t emit_source(Emit *e, TensorId t) {
    uint32_t c = 0;
    for (TensorId a = t; a.i != NONE; a = e->f->role[a.i].parent) {
        uint32_t copy = e->copy[a.i];
        if (copy != NONE && same_tensor(a, t))
            return copy;
        if (copy != NONE && told_within(e, t, c, copy))
            return emit_outside(e, t, e->region_of.at[copy],
                                e->placement.at[copy].part_c + c);
        c += e->f->role[a.i].part_c;
    }
    return NONE;
}

uint32_t emit_home(Emit *e, TensorId t) {
    uint32_t c;
    TensorId root = home_of(e->d, t, &c);
    uint32_t *region = &e->home[root.i];
    const HwSpec *spec = e->f->spec;
    bool homeless = spec->backing < 0;
    e->lost |= homeless;
    if (*region == NONE)
        *region = region_add(
            &e->regions, root,
            (uint32_t)(homeless ? spec->output : spec->backing), true);
    return emit_outside(e, t, *region, c);
}

uint32_t emit_output(Emit *e, TensorId t) {
    uint32_t *output = &e->output[t.i];
    if (*output == NONE) {
        uint32_t memory = (uint32_t)e->f->spec->output;
        bool timed = !graph_is_output(e->f->g, t);
        *output =
            emit_outside(e, t, region_add(&e->regions, t, memory, timed), 0);
    }
    return *output;
}

uint32_t emit_targets(Emit *e, TensorId t, uint32_t to[2], uint32_t *home) {
    Dests d = dests_of(e->d, t, true);
    uint32_t n = 0;
    *home = d.home ? emit_home(e, t) : NONE;
    if (d.home)
        to[n++] = *home;
    if (d.output)
        to[n++] = emit_output(e, t);
    return n;
}

static bool retains_end(const Emit *e, TensorId t) {
    uint32_t alias = e->d->alias_of[t.i];
    return alias != NONE && e->d->alias.at[alias].retains_end;
}

/* But for so many channels that stay, and those that lie there. */
static void store_but(Emit *e, TensorId t, uint32_t kept) {
    uint32_t home = emit_home(e, t), end = plan_volume(e->f->g, t).c;
    bool front = retains_end(e, t);
    uint32_t c = front ? e->stored[t.i] : kept;
    end -= front ? kept : e->stored[t.i];
    if (c < end) {
        uint32_t from = emit_channels(e, e->present[t.i], c, end);
        emit_move_all(e, ACTION_STORE, from, emit_channels(e, home, c, end));
        e->stored[t.i] += end - c;
    }
    if (kept == 0)
        e->copy[t.i] = home;
}

static void store_home(Emit *e, TensorId t) {
    store_but(e, t, 0);
}

void emit_store(Emit *e, TensorId t) {
    Dests d = dests_of(e->d, t, false);
    if (d.home)
        store_home(e, t);
    if (d.output)
        emit_move_all(e, ACTION_STORE, e->present[t.i], emit_output(e, t));
}

uint32_t emit_readable(Emit *e, TensorId t) {
    uint32_t from = emit_source(e, t);
    if (from == NONE) {
        assert(e->present[t.i] != NONE);
        store_home(e, t);
        from = e->copy[t.i];
    }
    return from;
}

/* ---- rows of what is resident ---- */

static bool read_by_rows(const Emit *e, const AliasClass *alias) {
    for (uint32_t i = 0; i < alias->n_uses; i++)
        if (alias->use[i].step == e->step)
            return alias->use[i].by_rows;
    return false;
}

/* The last residency interval before this step of which channels stay for it,
 * or NULL. */
static const Residency *residency_kept(const Emit *e, const AliasClass *alias) {
    const Residencies *stays = emit_stays(e, alias);
    for (uint32_t i = 0; i < stays->n; i++) {
        const Residency *s = &stays->at[i];
        const Use *last = &alias->use[s->last];
        Away away;
        if (last->retained && last->step < e->step &&
            away_find(e->d, alias, s->last, &away) && 2 * e->step < away.end)
            return s;
    }
    return NULL;
}

/* The tensor's first channels that are resident, of a volume that is read by
 * rows; *from: where. */
static uint32_t resident_part(Emit *e, TensorId t, uint32_t *from) {
    const AliasClass *alias =
        e->d->alias_of[t.i] == NONE ? NULL : emit_alias(e, t);
    if (!alias || !read_by_rows(e, alias))
        return 0;
    *from = e->present[t.i];
    if (*from != NONE)
        return plan_volume(e->f->g, t).c;
    const Residency *s = residency_kept(e, alias);
    if (!s)
        return 0;
    *from = emit_in_residency(e, t, s);
    return kept_of(e->f, alias, t, alias->use[s->last].retained);
}

uint32_t emit_rows_into(Emit *e, uint32_t row_tile) {
    TensorId t = e->placement.at[row_tile].tensor;
    uint32_t from, end = plan_volume(e->f->g, t).c;
    uint32_t kept = resident_part(e, t, &from);
    if (kept)
        emit_copy(e, emit_channels(e, from, 0, kept),
                  emit_channels(e, row_tile, 0, kept));
    if (kept == end)
        return NONE;
    uint32_t outside = emit_source(e, t);
    if (outside == NONE)
        outside = kept ? emit_home(e, t) : emit_readable(e, t);
    emit_move_all(e, ACTION_LOAD, emit_channels(e, outside, kept, end),
                  emit_channels(e, row_tile, kept, end));
    return outside;
}

/* ---- into active memory ---- */

/* All of the alias class's tensors that lie within `t` are there with it. */
static void present_with(Emit *e, TensorId t) {
    e->present[t.i] = emit_resident(e, t);
    const Node *node = graph_node(e->f->g, graph_tensor(e->f->g, t)->producer);
    const Role *role = &e->f->role[t.i];
    if (role->origin == FROM_PARTS && !e->d->dissolved[t.i])
        for (uint32_t i = 0; i < node->n_in; i++)
            present_with(e, node->in[i]);
}

/* Loads what has not stayed. */
static void load_rest(Emit *e, TensorId t, uint32_t kept) {
    uint32_t n = plan_volume(e->f->g, t).c - kept;
    uint32_t c = retains_end(e, t) ? 0 : kept;
    uint32_t whole = emit_source(e, t);
    present_with(e, t);
    if (n == 0)
        return;
    if (whole == NONE)
        whole = emit_home(e, t);
    emit_move_all(e, ACTION_LOAD, emit_channels(e, whole, c, c + n),
                  emit_channels(e, e->present[t.i], c, c + n));
}

void emit_return(Emit *e, TensorId t) {
    if (e->d->alias_of[t.i] == NONE)
        return;
    const AliasClass *alias = emit_alias(e, t);
    const Residency *s = emit_residency(e, alias);
    if (!s || s == emit_stays(e, alias)->at ||
        alias->use[s->first].step != e->step ||
        !alias->use[s[-1].last].retained)
        return;
    uint32_t keeps = alias->use[s[-1].last].retained;
    TensorId *kept = ARENA_ARRAY(e->arena, TensorId, alias->n_tensors);
    uint32_t n = kept_tensors(e->f, alias, s[-1].last, kept);
    for (uint32_t i = 0; i < n; i++)
        if (e->present[kept[i].i] == NONE)
            load_rest(e, kept[i], kept_of(e->f, alias, kept[i], keeps));
}

static bool needed(const Emit *e, TensorId t, uint32_t from_step) {
    uint32_t last = e->f->role[t.i].last;
    return last != NONE && last >= from_step;
}

/* The tensor, or the concat around it if that is wanted too. */
static void load(Emit *e, TensorId t) {
    TensorId root = emit_alias(e, t)->root;
    bool whole = emit_alias(e, t)->concat && needed(e, root, e->step) &&
                 emit_source(e, root) != NONE;
    TensorId what = whole ? root : t;
    uint32_t from = emit_source(e, what);
    assert(from != NONE);
    present_with(e, what);
    emit_move_all(e, ACTION_LOAD, from, e->present[what.i]);
}

void emit_load(Emit *e, TensorId t) {
    if (e->present[t.i] == NONE)
        load(e, t);
}

void emit_land(Emit *e, TensorId t) {
    emit_return(e, t);
    e->present[t.i] = emit_resident(e, t);
    emit_move_all(e, ACTION_LOAD, e->copy[t.i], e->present[t.i]);
}

void emit_made(Emit *e, TensorId t) {
    e->present[t.i] = emit_resident(e, t);
}

uint32_t emit_result(Emit *e, NodeId id) {
    TensorId out = graph_node(e->f->g, id)->out[0];
    TensorId over = e->d->over[out.i];
    if (over.i != NONE)
        e->present[over.i] = NONE;
    e->present[out.i] = emit_resident(e, out);
    return e->present[out.i];
}

/* ---- out of it ---- */

static void leave_partly(Emit *e, const AliasClass *alias, uint32_t use) {
    TensorId *kept = ARENA_ARRAY(e->arena, TensorId, alias->n_tensors);
    uint32_t n = kept_tensors(e->f, alias, use, kept);
    for (uint32_t i = 0; i < n; i++)
        if (e->present[kept[i].i] != NONE && emit_source(e, kept[i]) == NONE)
            store_but(e, kept[i],
                      kept_of(e->f, alias, kept[i], alias->use[use].retained));
}

void emit_leave(Emit *e, TensorId t) {
    if (e->d->alias_of[t.i] == NONE)
        return;
    const AliasClass *alias = emit_alias(e, t);
    const Residency *s = emit_residency(e, alias);
    if (!s || alias->use[s->last].step != e->step)
        return;
    uint32_t keeps = alias->use[s->last].retained;
    if (keeps)
        leave_partly(e, alias, s->last);
    for (uint32_t i = 0; i < alias->n_tensors && !keeps; i++) {
        TensorId u = alias->tensor[i];
        if (e->present[u.i] != NONE && needed(e, u, e->step + 1) &&
            emit_source(e, u) == NONE)
            store_home(e, u);
    }
    for (uint32_t i = 0; i < alias->n_tensors; i++)
        e->present[alias->tensor[i].i] = NONE;
}
