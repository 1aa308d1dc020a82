/* free_space.c - what volumes leave of active memory; see weights.h.
 *
 * Input: a plan whose actions run one behind the other. Output: which bytes of
 * the memory for weights hold values, from which action to which; the longest
 * range beside these.
 * Method: what is written stays until its last reader, or until another volume
 * is written over it. So what stays of a volume between two uses, while
 * nothing names it, is found as well.
 */
#include "alloc/weights/weights.h"

typedef struct Walk {
    Arena *arena;
    const Plan *plan;
    Stays *stays;
    VEC(uint32_t) now; /* stays that are not written over */
} Walk;

static void begin(Walk *w, Reach bytes, uint32_t action, uint32_t placement) {
    HeldBytes stay = {bytes, action, action, placement};
    vec_push(w->arena, &w->now, w->stays->at.n);
    vec_push(w->arena, &w->stays->at, stay);
}

/* What is left of a stay beside bytes that another volume takes. */
static void cut(Walk *w, uint32_t i, Reach taken) {
    HeldBytes old = w->stays->at.at[i];
    const Reach rest[] = {{old.bytes.first, taken.first},
                          {taken.end, old.bytes.end}};
    for (uint32_t k = 0; k < 2; k++) {
        if (rest[k].first >= rest[k].end)
            continue;
        begin(w, rest[k], old.since, old.placement);
        w->stays->at.at[w->stays->at.n - 1].until = old.until;
    }
}

static void read_bytes(Walk *w, Reach bytes, uint32_t action) {
    for (uint32_t k = 0; k < w->now.n; k++) {
        HeldBytes *s = &w->stays->at.at[w->now.at[k]];
        if (reaches_meet(s->bytes, bytes))
            s->until = action;
    }
}

/* Places of the same image; each has all of them. */
static bool same_volume(const Plan *plan, const Placement *a,
                        const Placement *b) {
    uint32_t images = plan->images ? plan->images : 1;
    uint32_t tensors = plan->schedule->graph->tensor.n / images;
    return placements_share(a, b) &&
           a->tensor.i / tensors == b->tensor.i / tensors;
}

/* True if the bytes are those of a stay of the same volume. */
static bool write_bytes(Walk *w, Reach bytes, uint32_t action,
                        uint32_t placement) {
    const Placement *own = &w->plan->placement[placement];
    bool within = false;
    for (uint32_t k = w->now.n; k-- > 0;) {
        HeldBytes *s = &w->stays->at.at[w->now.at[k]];
        if (!reaches_meet(s->bytes, bytes))
            continue;
        if (same_volume(w->plan, own, &w->plan->placement[s->placement])) {
            s->until = action;
            within |=
                s->bytes.first <= bytes.first && bytes.end <= s->bytes.end;
            continue;
        }
        uint32_t old = w->now.at[k];
        w->now.at[k] = w->now.at[--w->now.n];
        cut(w, old, bytes);
    }
    return within;
}

static void take_action(Walk *w, Arena *scratch, uint32_t i) {
    const Action *a = &w->plan->action[i];
    Accesses all = accesses_of(scratch, w->plan, a);
    for (uint32_t k = 0; k < all.n; k++) {
        const Access *access = &all.at[k];
        Reach bytes = {access->first, access->end};
        uint32_t placement = k < a->n_in ? a->in[k] : a->out;
        if (access->at->memory != w->plan->schedule->spec->weights)
            continue;
        if (k < all.n_read) {
            read_bytes(w, bytes, i);
        } else if (!write_bytes(w, bytes, i, placement)) {
            if (a->kind == ACTION_LOAD)
                w->stays->of_load[i] = w->stays->at.n;
            begin(w, bytes, i, placement);
        }
    }
}

/* By `since`, then by index. */
static void order_stays(Arena *arena, Stays *stays, uint32_t n_actions) {
    const HeldBytes *stay = stays->at.at;
    uint32_t n = stays->at.n;
    uint32_t *start = ARENA_ARRAY(arena, uint32_t, n_actions + 2);
    stays->order = ARENA_ARRAY(arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        start[stay[i].since + 1]++;
    for (uint32_t i = 0; i < n_actions; i++)
        start[i + 1] += start[i];
    for (uint32_t i = 0; i < n; i++)
        stays->order[start[stay[i].since]++] = i;
}

Stays stays_of(Arena *arena, const Plan *plan) {
    Stays stays = {.of_load =
                       ARENA_ARRAY(arena, uint32_t, plan->n_actions + 1)};
    Walk w = {.arena = arena, .plan = plan, .stays = &stays};
    Arena *scratch = arena_new("room");
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        stays.of_load[i] = NONE;
        take_action(&w, scratch, i);
    }
    arena_free(scratch);
    order_stays(arena, &stays, plan->n_actions);
    return stays;
}

/* What is held while an action is at work, by first byte. */
typedef struct Holding {
    VEC(HeldBytes) at;
} Holding;

static void drop_over(Holding *h, uint32_t action) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->at.n; i++)
        if (h->at.at[i].until >= action)
            h->at.at[n++] = h->at.at[i];
    h->at.n = n;
}

static void hold(Arena *arena, Holding *h, HeldBytes stay) {
    uint32_t i = h->at.n;
    vec_push(arena, &h->at, stay);
    for (; i > 0 && h->at.at[i - 1].bytes.first > stay.bytes.first; i--)
        h->at.at[i] = h->at.at[i - 1];
    h->at.at[i] = stay;
}

static Room room_beside(const Holding *h) {
    Room room = {0};
    for (uint32_t i = 0; i < h->at.n; i++) {
        Reach bytes = h->at.at[i].bytes;
        if (bytes.first > room.end && bytes.first - room.end > room.between)
            room.between = bytes.first - room.end;
        room.end = bytes.end > room.end ? bytes.end : room.end;
    }
    return room;
}

const Room *rooms_of(Arena *arena, const Plan *plan) {
    Arena *scratch = arena_new("rooms");
    Stays stays = stays_of(scratch, plan);
    Room *room = ARENA_ARRAY(arena, Room, plan->n_actions + 1);
    Holding held = {0};
    uint32_t k = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        drop_over(&held, i);
        for (; k < stays.at.n && stays.at.at[stays.order[k]].since <= i; k++)
            hold(scratch, &held, stays.at.at[stays.order[k]]);
        room[i] = room_beside(&held);
    }
    arena_free(scratch);
    return room;
}
