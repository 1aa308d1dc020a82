/* rigid_place.c - places for buffers that move together: a volume of which a
 * part stays while the rest is away.
 *
 * Input: buffers, which of them are tied. Output: offsets, and which end of
 * each volume stays; or who was in the way.
 */
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/spill/parts.h"
#include "pack/flippable.h"

#include "base/arith.h"

enum { MAX_ORDERS = 400 };

/* By buffer: the next that moves with it; NONE. */
static uint32_t *next_tied(const Facts *f, const Buffers *p) {
    uint32_t *next = ARENA_ARRAY(f->arena, uint32_t, p->buf.n + 1);
    uint32_t *last = ARENA_ARRAY(f->arena, uint32_t, p->buf.n + 1);
    for (uint32_t i = 0; i < p->buf.n; i++) {
        uint32_t first = p->tied.at[i];
        next[i] = NONE;
        if (first != i)
            next[last[first]] = i;
        last[first] = i;
    }
    return next;
}

/* Whether so many channels that stay over an interval could as well be the last
 * ones, which take as much. */
static bool channels_turn(const Facts *f, const AliasClass *alias,
                          uint32_t keeps) {
    const HwMemory *active = &f->spec->memory[0];
    Volume whole = volume_in(f, alias->root, 0);
    uint32_t backing = (uint32_t)f->spec->backing;
    Volume outside = volume_in(f, alias->root, backing);
    if (keeps > whole.c)
        return false;
    uint32_t c = whole.c - keeps;
    return cut_is_aligned(f, alias, &whole, c) &&
           cut_has_addresses(f, alias, backing, &outside, c) &&
           layout_part_offset(active->layout, &whole, c) +
                   kept_bytes(f, alias, keeps) ==
               alias->bytes[0];
}

/* Rows are copied from what stays at the start. */
static bool alias_turns(const Facts *f, const AliasClass *alias) {
    uint32_t turns = 0; /* channels that do: most intervals retain as many */
    for (uint32_t i = 0; i < alias->n_uses; i++) {
        const Use *use = &alias->use[i];
        bool kept = use->spilled && use->retained;
        if (use->by_rows || (kept && is_filling(alias, i)))
            return false;
        if (!kept || use->retained == turns)
            continue;
        if (!channels_turn(f, alias, use->retained))
            return false;
        turns = use->retained;
    }
    return true;
}

/* By alias class: whether what stays of it turns, as far as buffers ask. */
static const bool *aliases_turn(const Decisions *d, const Buffers *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (p->owner.at[i].kind == OWNER_KEPT && p->owner.at[i].alias >= n)
            n = p->owner.at[i].alias + 1;
    bool *turns = ARENA_ARRAY(d->f->arena, bool, n + 1);
    bool *asked = ARENA_ARRAY(d->f->arena, bool, n + 1);
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Owner *o = &p->owner.at[i];
        if (o->kind != OWNER_KEPT || asked[o->alias])
            continue;
        asked[o->alias] = true;
        turns[o->alias] = alias_turns(d->f, &d->alias.at[o->alias]);
    }
    return turns;
}

static RigidGroups bodies_of(const Decisions *d, const Buffers *p,
                             uint32_t *body) {
    const Facts *f = d->f;
    Pool pool = pool_of(&f->spec->memory[0]);
    RigidGroups b = {.arena = f->arena,
                     .memo_table = f->memo->memo_table,
                     .size = pool.size,
                     .align = pool.align};
    const uint32_t *next = next_tied(f, p);
    const bool *turns = aliases_turn(d, p);
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Buffer *first = &p->buf.at[i];
        if (p->tied.at[i] != i)
            continue;
        body[i] = body_add(&b, first->bytes[0]);
        b.body.at[body[i]].pinned = first->pin_pool >= 0;
        b.body.at[body[i]].offset = first->pin_offset;
        for (uint32_t k = i; k != NONE; k = next[k]) {
            const Buffer *buf = &p->buf.at[k];
            body[k] = body[i];
            const Owner *o = &p->owner.at[k];
            body_box(&b, (Box){buf->first, buf->end, 0, buf->bytes[0],
                               o->kind == OWNER_KEPT && turns[o->alias]});
            if (buf->bytes[0] > b.body.at[body[i]].bytes)
                b.body.at[body[i]].bytes = buf->bytes[0];
        }
    }
    return b;
}

/* Where the buffer lies in its body's place. */
static uint64_t offset_in(const RigidGroup *body, const Buffers *p,
                          uint32_t buf) {
    return body->turned && p->owner.at[buf].kind == OWNER_KEPT
               ? body->bytes - p->buf.at[buf].bytes[0]
               : 0;
}

/* Which end of each volume stays. */
static void ends_take(Decisions *d, const RigidGroups *b, const Buffers *p,
                      const uint32_t *body) {
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (p->owner.at[i].kind == OWNER_KEPT)
            d->alias.at[p->owner.at[i].alias].retains_end =
                b->body.at[body[i]].turned;
}

/* At most so many orders are tried. */
bool place_in_orders(Decisions *d, const Buffers *p, uint32_t orders,
                     PackResult *result, Times *blocked) {
    const Facts *f = d->f;
    uint32_t n = p->buf.n;
    uint32_t *body = ARENA_ARRAY(f->arena, uint32_t, n + 1);
    RigidGroups b = bodies_of(d, p, body);
    if (!bodies_place(&b, orders)) {
        const RigidGroup *failed = &b.body.at[b.failed];
        *blocked = (Times){failed->first, failed->end};
        return false;
    }
    *result = (PackResult){.status = PACK_FITS,
                           .pool = ARENA_ARRAY(f->arena, int32_t, n + 1),
                           .offset = ARENA_ARRAY(f->arena, uint64_t, n + 1),
                           .failed = PACK_NO_BUFFER};
    for (uint32_t i = 0; i < n; i++) {
        const RigidGroup *own = &b.body.at[body[i]];
        result->offset[i] = own->offset + offset_in(own, p, i);
        uint64_t end = result->offset[i] + p->buf.at[i].bytes[0];
        result->height[0] = end > result->height[0] ? end : result->height[0];
    }
    ends_take(d, &b, p, body);
    result->bound = pack_live_peak(f->arena, &p->p, NULL);
    result->proved = result->bound == result->height[0];
    return !pack_verify(f->arena, &p->p, result);
}

bool place_tied(Decisions *d, const Buffers *p, PackResult *result,
                Times *blocked) {
    return place_in_orders(d, p, MAX_ORDERS, result, blocked);
}
