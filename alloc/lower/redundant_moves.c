/* redundant_moves.c - no transfers of what is there already.
 *
 * Input: a plan's actions, as they were written, one behind the other. Output:
 * these without loads of rows into the very bytes in which an action has left
 * them, and without what is stored for nobody else. What a cascade makes last
 * is stored, and loaded by what comes next, which may have got the same place.
 * Invariants: never more bytes; what is not sure to be there is loaded.
 */
#include "alloc/lower/emit.h"

enum { LOOK = 64 }; /* actions back to the one that has left the rows */

typedef struct Needless {
    const Emit *e;
    bool *drop; /* by action */
    bool *seen; /* by tensor: active memory has had of it */
} Needless;

static HwRole role_at(const Emit *e, uint32_t placement) {
    return e->f->spec->memory[e->placement.at[placement].memory].role;
}

/* Whether it writes to active memory. */
static bool writes(const Emit *e, const Action *a) {
    return (a->kind == ACTION_LOAD || a->kind == ACTION_RUN ||
            a->kind == ACTION_COPY) &&
           role_at(e, a->out) == HW_ACTIVE;
}

/* Whether each element of the tensor lies at the same byte. */
static bool same_place(const Placement *a, const Placement *b) {
    return a->memory == b->memory && a->offset == b->offset &&
           volumes_same(&a->whole, &b->whole) && a->row == b->row &&
           a->col == b->col && a->part_c - a->c == b->part_c - b->c &&
           !a->ring && !b->ring && !a->lines.band && !b->lines.band;
}

/* Whether the action has written all that the load would. */
static bool covers(const Emit *e, const Action *a, const Action *load) {
    const Placement *from = &e->placement.at[a->out];
    const Placement *to = &e->placement.at[load->out];
    return same_tensor(from->tensor, to->tensor) && same_place(from, to) &&
           a->row <= load->row && load->row + load->rows <= a->row + a->rows &&
           a->col <= load->col && load->col + load->cols <= a->col + a->cols &&
           from->c <= to->c && to->c + to->n_c <= from->c + from->n_c;
}

/* Whether an action has left there what the load would bring. */
static bool is_there(const Needless *n, uint32_t load) {
    const Emit *e = n->e;
    const Placement *p = &e->placement.at[e->action.at[load].out];
    for (uint32_t i = load; i-- > 0 && load - i <= LOOK;) {
        const Action *a = &e->action.at[i];
        const Placement *out = &e->placement.at[a->out];
        if (n->drop[i] || !writes(e, a) || out->memory != p->memory ||
            out->offset >= p->offset + p->bytes ||
            p->offset >= out->offset + out->bytes)
            continue;
        return covers(e, a, &e->action.at[load]);
    }
    return false;
}

/* Whether there were any loads to drop. */
static bool find_loads(Needless *n) {
    const Emit *e = n->e;
    bool any = false;
    for (uint32_t i = 0; i < e->action.n; i++) {
        const Action *a = &e->action.at[i];
        bool *seen = &n->seen[e->placement.at[a->out].tensor.i];
        if (!writes(e, a))
            continue;
        n->drop[i] = *seen && a->kind == ACTION_LOAD && is_there(n, i);
        any |= n->drop[i];
        *seen = true;
    }
    return any;
}

/* By buffer: whether a load that is dropped read it, and nothing else does. */
static const bool *find_unread(const Needless *n) {
    const Emit *e = n->e;
    uint32_t n_buffers = e->buffers->buf.n + e->regions.at.n;
    bool *unread = ARENA_ARRAY(e->arena, bool, n_buffers + 1);
    for (uint32_t i = 0; i < e->action.n; i++) {
        uint32_t from = n->drop[i] ? e->action.at[i].in[0] : NONE;
        if (from != NONE && role_at(e, from) == HW_BACKING)
            unread[e->placement.at[from].buffer] = true;
    }
    for (uint32_t i = 0; i < e->action.n; i++)
        for (uint32_t k = 0; k < e->action.at[i].n_in && !n->drop[i]; k++)
            unread[e->placement.at[e->action.at[i].in[k]].buffer] = false;
    return unread;
}

/* Of what was stored for loads that are dropped. */
static void drop_stores(Needless *n) {
    const Emit *e = n->e;
    const bool *unread = find_unread(n);
    for (uint32_t i = 0; i < e->action.n; i++) {
        const Action *a = &e->action.at[i];
        n->drop[i] |=
            a->kind == ACTION_STORE && unread[e->placement.at[a->out].buffer];
    }
}

/* Each transfer had a step of its own. */
static void close_up(Emit *e, const bool *drop) {
    uint32_t n = 0, dropped = 0;
    for (uint32_t i = 0; i < e->action.n; i++) {
        if (drop[i]) {
            dropped++;
            continue;
        }
        e->action.at[n] = e->action.at[i];
        e->action.at[n++].step -= dropped;
    }
    e->action.n = n;
}

void emit_drop_needless(Emit *e) {
    Needless n = {.e = e};
    const HwSpec *spec = e->f->spec;
    if (spec->tiling.kind != HW_TILING_SOFTWARE)
        return; /* tiles pass through active memory, too */
    n.drop = ARENA_ARRAY(e->arena, bool, e->action.n + 1);
    n.seen = ARENA_ARRAY(e->arena, bool, e->f->g->tensor.n + 1);
    if (!find_loads(&n))
        return;
    drop_stores(&n);
    close_up(e, n.drop);
}
