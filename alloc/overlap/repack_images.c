/* repack_images.c - places for what an image begins and ends with; see
 * overlap.h.
 *
 * Input: a plan of several images whose actions run one behind the other.
 * Output: the same with other places for volumes that an image loads before its
 * first layer runs, and for those that it stores behind its last one.
 * Method: a load may come as soon as nothing that is needed lies where it goes,
 * a store may wait until something else comes there. Of all places at which a
 * volume does not meet another one, it gets the one that is free through most
 * of the time that the layers of the image before (of a store, of the image
 * behind) take; the lowest of several.
 * Invariants: buffers move whole, and never to where another one lives.
 */
#include "alloc/overlap/overlap.h"
#include "base/arith.h"

typedef struct ImageRepack {
    Arena *arena;
    const Plan *plan;
    uint32_t n;      /* buffers */
    HeldBytes *stay; /* by buffer; of no bytes: it is never in use */
    uint64_t *time;  /* by action: cycles of the layers before it */
    Placement *placement;
} ImageRepack;

static bool is_active(const ImageRepack *r, uint32_t placement) {
    const Placement *p = &r->plan->placement[placement];
    return p->memory < r->plan->schedule->spec->n_active && p->buffer != NONE;
}

static void stay_add(ImageRepack *r, uint32_t placement, uint32_t action) {
    const Placement *p = &r->plan->placement[placement];
    if (!is_active(r, placement))
        return;
    HeldBytes *s = &r->stay[p->buffer];
    Reach own = {p->offset, p->offset + p->bytes}, *all = &s->bytes;
    if (!all->end)
        *s = (HeldBytes){own, action, action, placement};
    s->until = action;
    all->first = own.first < all->first ? own.first : all->first;
    all->end = own.end > all->end ? own.end : all->end;
}

static void find_stays(ImageRepack *r) {
    const Plan *plan = r->plan;
    for (uint32_t i = 0; i < plan->n_placements; i++)
        if (is_active(r, i) && plan->placement[i].buffer >= r->n)
            r->n = plan->placement[i].buffer + 1;
    r->stay = ARENA_ARRAY(r->arena, HeldBytes, r->n + 1);
    r->time = ARENA_ARRAY(r->arena, uint64_t, plan->n_actions + 1);
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        bool layer = a->kind == ACTION_RUN || a->kind == ACTION_COPY;
        r->time[i + 1] = r->time[i] + (layer ? action_cycles(plan, a) : 0);
        for (uint32_t k = 0; k < a->n_in; k++)
            stay_add(r, a->in[k], i);
        stay_add(r, a->out, i);
    }
}

/* ---- a place ---- */

static uint64_t bytes_of(const HeldBytes *s) {
    return s->bytes.end - s->bytes.first;
}

/* The actions between which nothing else lies at [at, at + bytes), around the
 * stay of the buffer; first == end: something does. */
static Steps free_around(const ImageRepack *r, uint32_t buffer, uint64_t at) {
    const HeldBytes *own = &r->stay[buffer];
    Reach there = {at, at + bytes_of(own)};
    Steps free = {0, r->plan->n_actions};
    for (uint32_t b = 0; b < r->n; b++) {
        const HeldBytes *s = &r->stay[b];
        if (b == buffer || !s->bytes.end || !reaches_meet(s->bytes, there))
            continue;
        if (s->since <= own->until && own->since <= s->until)
            return (Steps){0, 0};
        if (s->until < own->since && s->until >= free.first)
            free.first = s->until + 1;
        if (s->since > own->until && s->since < free.end)
            free.end = s->since;
    }
    return free;
}

static uint64_t cycles_between(const ImageRepack *r, uint32_t a, uint32_t b) {
    return b > a ? r->time[b] - r->time[a] : 0;
}

/* Cycles of layers in which the transfer could run. */
static uint64_t worth(const ImageRepack *r, uint32_t buffer, bool load,
                      Steps free) {
    const HeldBytes *s = &r->stay[buffer];
    return load ? cycles_between(r, free.first, s->since)
                : cycles_between(r, s->until + 1, free.end);
}

typedef struct Found {
    uint64_t at, worth;
    Steps free;
} Found;

static void try_place(const ImageRepack *r, uint32_t buffer, bool load,
                      uint64_t most, uint64_t at, Found *best) {
    Steps free = free_around(r, buffer, at);
    uint64_t value = worth(r, buffer, load, free);
    if (free.first == free.end)
        return;
    value = value > most ? most : value;
    if (value > best->worth || (value == best->worth && at < best->at))
        *best = (Found){at, value, free};
}

/* Upon each other buffer, and below each. */
static Found find_place(const ImageRepack *r, uint32_t buffer, bool load,
                        uint64_t most) {
    const HwMemory *m = &r->plan->schedule->spec->memory[0];
    const HeldBytes *own = &r->stay[buffer];
    uint64_t align = m->align ? m->align : 1, bytes = bytes_of(own);
    Found best = {own->bytes.first, 0,
                  free_around(r, buffer, own->bytes.first)};
    best.worth = worth(r, buffer, load, best.free);
    best.worth = best.worth > most ? most : best.worth;
    if (best.free.first == best.free.end || best.worth == most)
        return best;
    try_place(r, buffer, load, most, (m->size - bytes) / align * align, &best);
    try_place(r, buffer, load, most, 0, &best);
    for (uint32_t b = 0; b < r->n; b++) {
        Reach other = r->stay[b].bytes;
        uint64_t upon = round_up(other.end, align);
        if (!other.end)
            continue;
        if (upon + bytes <= m->size)
            try_place(r, buffer, load, most, upon, &best);
        if (other.first >= bytes)
            try_place(r, buffer, load, most,
                      (other.first - bytes) / align * align, &best);
    }
    return best;
}

/* ---- moving ---- */

/* The life that the transfer needs is its own from now on. */
static void keep_free(const ImageRepack *r, HeldBytes *s, bool load,
                      uint64_t most, Steps free) {
    if (load)
        while (s->since > free.first &&
               cycles_between(r, s->since, s->until + 1) < most)
            s->since--;
    else
        while (s->until + 1 < free.end &&
               cycles_between(r, s->since, s->until + 1) < most)
            s->until++;
}

static void move(ImageRepack *r, uint32_t buffer, bool load, uint64_t most) {
    HeldBytes *s = &r->stay[buffer];
    Found found = find_place(r, buffer, load, most);
    if (found.free.first == found.free.end)
        return;
    uint64_t was = s->bytes.first;
    for (uint32_t i = 0; i < r->plan->n_placements && found.at != was; i++) {
        Placement *p = &r->placement[i];
        if (is_active(r, i) && p->buffer == buffer)
            p->offset = p->offset - was + found.at;
    }
    s->bytes = (Reach){found.at, found.at + bytes_of(s)};
    uint64_t own = cycles_between(r, s->since, s->until + 1);
    keep_free(r, s, load, own + most, found.free);
}

/* The transfer's buffer in active memory. */
static uint32_t buffer_of(const Plan *plan, const Action *a) {
    return plan->placement[a->kind == ACTION_LOAD ? a->out : a->in[0]].buffer;
}

/* Loads, or stores, of [first, end): their buffers get a place that is free for
 * twice as long as all of them take. */
static void move_all(ImageRepack *r, Steps actions, bool load) {
    ActionKind kind = load ? ACTION_LOAD : ACTION_STORE;
    const Action *action = r->plan->action;
    uint64_t sum = 0;
    for (uint32_t i = actions.first; i < actions.end; i++)
        if (action[i].kind == kind)
            sum += action_cycles(r->plan, &action[i]);
    for (uint32_t i = actions.first, last = NONE; i < actions.end; i++) {
        if (action[i].kind != kind || buffer_of(r->plan, &action[i]) == last)
            continue;
        last = buffer_of(r->plan, &action[i]);
        move(r, last, load, 2 * sum);
    }
}

/* From the first layer of each image to behind its last one. */
static Steps *find_images(const ImageRepack *r, uint32_t images) {
    Steps *image = ARENA_ARRAY(r->arena, Steps, images + 1);
    uint32_t steps = r->plan->schedule->n_steps / images;
    for (uint32_t i = 0; i < r->plan->n_actions; i++) {
        const Action *a = &r->plan->action[i];
        Steps *own = &image[a->at / steps];
        if (a->kind != ACTION_RUN)
            continue;
        if (!own->end)
            own->first = i;
        own->end = i + 1;
    }
    return image;
}

void repack_images(Arena *arena, Plan *plan, uint32_t images) {
    ImageRepack r = {.arena = arena, .plan = plan};
    const Steps *image = find_images(&r, images);
    r.placement =
        ARENA_COPY(arena, Placement, plan->placement, plan->n_placements);
    find_stays(&r);
    for (uint32_t k = 0; k + 1 < images; k++) {
        Steps between = {image[k].end, image[k + 1].first};
        move_all(&r, between, true);
        move_all(&r, between, false);
    }
    plan->placement = r.placement;
}
