/* skyline.c - floors that rise: the state of a search over places.
 *
 * In every section items pile up from the bottom. For each section the state
 * knows a floor below which no open item starts, for each open item the lowest
 * offset it can still have. They follow from each other:
 *
 *     low(item)      >= floor of each of its sections
 *     floor(section) >= low of one of its open items: the least of them
 *
 * so each placed item sets off a wave of raises until nothing changes. A state
 * has failed when
 *   - floor + open items of a section exceed the capacity;
 *   - even those items of it whose `low` is x or more, piled from x, exceed it
 *     (the bound of one machine with heads in scheduling; Carlier, 1982);
 *   - they exceed it in whatever order, for their alignments (aligned.c);
 *   - an item can only start above its highest offset.
 * It is not worth keeping when an open item would fit whole into a hole between
 * top and floor: moving the item down there turns any solution into a better
 * one. "Better" is the sum of (size squared x offset), which every move down
 * lessens; the search keeps at least the solution where that sum is least.
 *
 * Every change is on a trail, so that going back costs what going on did.
 */
#include "pack/exact/exact.h"

#include "base/rng.h"

#include <string.h>

static void set(Skyline *sky, int64_t *at, int64_t value) {
    vec_push(sky->arena, &sky->trail, ((Change){at, *at}));
    *at = value;
}

static void note_move(Skyline *sky, uint32_t section) {
    if (sky->is_moved[section])
        return;
    sky->is_moved[section] = true;
    sky->moved[sky->n_moved++] = section;
}

static void enqueue(Skyline *sky, uint32_t section) {
    if (sky->queued[section])
        return;
    sky->queued[section] = true;
    sky->queue[sky->n_queue++] = section;
}

void skyline_blame(Skyline *sky, uint32_t section) {
    enum { HUGE_WEIGHT = 1 << 30 };
    sky->weight[section] += sky->weight_step;
    sky->weight_step *= 1.001;
    if (sky->weight_step < HUGE_WEIGHT)
        return;
    for (uint32_t t = 0; t < sky->strip->n_sections; t++)
        sky->weight[t] /= HUGE_WEIGHT;
    sky->weight_step /= HUGE_WEIGHT;
}

void skyline_needs(Skyline *sky, int64_t units) {
    if (units > INT64_MAX / 4)
        return; /* no capacity helps */
    uint64_t bytes = (uint64_t)units * sky->strip->unit - sky->strip->padding;
    if (bytes < sky->needed)
        sky->needed = bytes;
}

static void fail(Skyline *sky, uint32_t section, int64_t needed) {
    skyline_blame(sky, section);
    skyline_needs(sky, needed);
    sky->failed = true;
}

static int64_t aligned(int64_t low, int64_t align) {
    return low % align ? low + align - low % align : low;
}

/* The lowest aligned offset >= `low` that is clear of pins. */
static int64_t above_pins(const Skyline *sky, uint32_t i, int64_t low) {
    const Strip *strip = sky->strip;
    const Item *item = &strip->item[i];
    if (item->pin >= 0)
        return low;
    low = aligned(low, item->align);
    for (uint32_t k = 0; k < strip->n_pins; k++) {
        const Item *pin = &strip->item[strip->pins[k]];
        if (pin->pin < low + item->size && low < pin->pin + pin->size &&
            items_meet(pin, item))
            low = aligned(pin->pin + pin->size, item->align);
    }
    return low;
}

static void raise_item(Skyline *sky, uint32_t i, int64_t low) {
    const Item *item = &sky->strip->item[i];
    if (sky->low[i] >= low)
        return;
    low = above_pins(sky, i, low);
    if (low > item->last) {
        /* A pin never moves, whatever the capacity. */
        fail(sky, item->lo, item->pin < 0 ? low + item->size : INT64_MAX / 2);
        return;
    }
    set(sky, &sky->low[i], low);
    for (uint32_t t = item->lo; t < item->hi; t = item_next(item, t)) {
        note_move(sky, t);
        if (sky->floor[t] < low)
            enqueue(sky, t);
    }
}

static void raise_floor(Skyline *sky, uint32_t t, int64_t floor) {
    if (sky->floor[t] >= floor)
        return;
    set(sky, &sky->floor[t], floor);
    note_move(sky, t);
    sky->work += sky->n_open[t];
    if (sky->n_open[t] && floor + sky->open[t] > sky->strip->capacity)
        fail(sky, t, floor + sky->open[t]);
    const uint32_t *member = skyline_open(sky, t);
    for (uint32_t k = 0; k < sky->n_open[t] && !sky->failed; k++)
        raise_item(sky, member[k], floor);
}

/* The least `low` of the open items; the capacity where none is left, so that
 * a finished section is a wall. */
static int64_t least_low(const Skyline *sky, uint32_t t) {
    int64_t least = sky->strip->capacity;
    const uint32_t *member = skyline_open(sky, t);
    for (uint32_t k = sky->n_open[t]; k-- > 0 && least > sky->floor[t];)
        least = sky->low[member[k]] < least ? sky->low[member[k]] : least;
    return least;
}

/* Keeps the open members by falling `low` - nearly sorted since the last time,
 * and any order is a right one to start from, so nothing is undone. */
static void sort_members(Skyline *sky, uint32_t t) {
    uint32_t *member = skyline_open(sky, t);
    for (uint32_t k = 1; k < sky->n_open[t]; k++) {
        uint32_t i = member[k], to = k;
        for (; to > 0 && sky->low[member[to - 1]] < sky->low[i]; to--)
            member[to] = member[to - 1];
        member[to] = i;
    }
}

/* Piles the open items from the highest `low` down; counts those that can lie
 * on the floor. */
static void judge_section(Skyline *sky, uint32_t t) {
    const Strip *strip = sky->strip;
    int64_t pile = 0, choices = 0;
    sky->work += sky->n_open[t];
    sort_members(sky, t);
    const uint32_t *member = skyline_open(sky, t);
    for (uint32_t k = 0; k < sky->n_open[t]; k++) {
        uint32_t i = member[k];
        pile += strip->item[i].size;
        if (sky->low[i] + pile > strip->capacity) {
            fail(sky, t, sky->low[i] + pile);
            return;
        }
        choices += sky->low[i] == sky->floor[t];
    }
    int64_t end = sky->aligned ? aligned_end(sky, t) : 0;
    if (end > strip->capacity) {
        fail(sky, t, end);
        return;
    }
    if (choices != sky->choices[t])
        set(sky, &sky->choices[t], choices);
}

static bool fits_a_hole(const Skyline *sky, uint32_t i) {
    const Item *item = &sky->strip->item[i];
    int64_t top = 0, floor = INT64_MAX;
    for (uint32_t t = item->lo; t < item->hi; t = item_next(item, t)) {
        top = sky->top[t] > top ? sky->top[t] : top;
        floor = sky->floor[t] < floor ? sky->floor[t] : floor;
        if (floor - top < item->size)
            return false;
    }
    return item->pin < 0 && floor - aligned(top, item->align) >= item->size;
}

static bool leaves_a_hole(const Skyline *sky, uint32_t t) {
    int64_t hole = sky->floor[t] - sky->top[t];
    if (!hole)
        return false;
    const uint32_t *member = skyline_open(sky, t);
    for (uint32_t k = 0; k < sky->n_open[t]; k++)
        if (sky->strip->item[member[k]].size <= hole &&
            fits_a_hole(sky, member[k]))
            return true;
    return false;
}

static void judge_moved(Skyline *sky) {
    for (uint32_t k = 0; k < sky->n_moved && !sky->failed; k++)
        if (sky->n_open[sky->moved[k]])
            judge_section(sky, sky->moved[k]);
    for (uint32_t k = 0; k < sky->n_moved && !sky->failed; k++)
        if (sky->n_open[sky->moved[k]] && leaves_a_hole(sky, sky->moved[k])) {
            skyline_blame(sky, sky->moved[k]);
            sky->failed = true;
        }
}

/* The wave; leaves the lists empty. */
static bool settle(Skyline *sky) {
    while (sky->n_queue) {
        uint32_t t = sky->queue[--sky->n_queue];
        sky->queued[t] = false;
        if (!sky->failed)
            raise_floor(sky, t, least_low(sky, t));
    }
    judge_moved(sky);
    for (uint32_t k = 0; k < sky->n_moved; k++)
        sky->is_moved[sky->moved[k]] = false;
    sky->n_moved = 0;
    bool fine = !sky->failed;
    sky->failed = false;
    return fine;
}

/* Moves it behind the open members, before those placed earlier. */
static void close_member(Skyline *sky, uint32_t t, uint32_t i) {
    uint32_t *member = skyline_open(sky, t), k = 0;
    while (member[k] != i)
        k++;
    for (sky->n_open[t]--; k < sky->n_open[t]; k++)
        member[k] = member[k + 1];
    member[k] = i;
}

/* What states are told apart by: which items are open, and where. */
static void flip_open(Skyline *sky, uint32_t i) {
    const Item *item = &sky->strip->item[i];
    sky->begins[item->lo] ^= rng_bits(i, 0);
    for (uint32_t t = item->lo + 1; t < item->hi; t++)
        sky->crossed[t] += sky->placed[i] ? UINT32_MAX : 1;
}

bool skyline_place(Skyline *sky, uint32_t i) {
    const Item *item = &sky->strip->item[i];
    int64_t top = sky->low[i] + item->size;
    sky->placed[i] = true;
    vec_push(sky->arena, &sky->order, i);
    flip_open(sky, i);
    for (uint32_t t = item->lo; t < item->hi; t = item_next(item, t)) {
        close_member(sky, t, i);
        set(sky, &sky->open[t], sky->open[t] - item->size);
        set(sky, &sky->top[t], top);
        enqueue(sky, t);
        note_move(sky, t);
    }
    for (uint32_t t = item->lo; t < item->hi && !sky->failed;
         t = item_next(item, t))
        raise_floor(sky, t, top);
    return settle(sky);
}

bool skyline_raise(Skyline *sky, uint32_t section, int64_t floor) {
    raise_floor(sky, section, floor);
    return settle(sky);
}

Mark skyline_mark(const Skyline *sky) {
    return (Mark){sky->trail.n, sky->order.n};
}

void skyline_undo(Skyline *sky, Mark mark) {
    while (sky->trail.n > mark.trail) {
        const Change *change = &sky->trail.at[--sky->trail.n];
        *change->at = change->was;
    }
    while (sky->order.n > mark.order) {
        uint32_t i = sky->order.at[--sky->order.n];
        sky->placed[i] = false;
        flip_open(sky, i);
        const Item *item = &sky->strip->item[i];
        for (uint32_t t = item->lo; t < item->hi; t = item_next(item, t))
            sky->n_open[t]++;
    }
}

Skyline *skyline_new(Arena *arena, const Strip *strip) {
    Skyline *sky = ARENA_NEW(arena, Skyline);
    uint32_t n = strip->n_sections, total = strip->start[n];
    *sky = (Skyline){.arena = arena, .strip = strip, .weight_step = 1};
    sky->floor = ARENA_ARRAY(arena, int64_t, n);
    sky->top = ARENA_ARRAY(arena, int64_t, n);
    sky->open = ARENA_ARRAY(arena, int64_t, n);
    sky->choices = ARENA_ARRAY(arena, int64_t, n);
    sky->n_open = ARENA_ARRAY(arena, uint32_t, n);
    sky->crossed = ARENA_ARRAY(arena, uint32_t, n);
    sky->begins = ARENA_ARRAY(arena, uint64_t, n);
    sky->low = ARENA_ARRAY(arena, int64_t, strip->n);
    sky->placed = ARENA_ARRAY(arena, bool, strip->n);
    sky->member = ARENA_COPY(arena, uint32_t, strip->members, total);
    sky->weight = ARENA_ARRAY(arena, double, n);
    sky->queue = ARENA_ARRAY(arena, uint32_t, n);
    sky->moved = ARENA_ARRAY(arena, uint32_t, n);
    sky->queued = ARENA_ARRAY(arena, bool, n);
    sky->is_moved = ARENA_ARRAY(arena, bool, n);
    sky->aligned = strip->has_grids ? aligned_cache(arena) : NULL;
    return sky;
}

bool skyline_start(Skyline *sky) {
    const Strip *strip = sky->strip;
    sky->trail.n = sky->order.n = 0;
    memset(sky->placed, 0, strip->n * sizeof *sky->placed);
    memset(sky->low, 0, strip->n * sizeof *sky->low);
    memset(sky->begins, 0, strip->n_sections * sizeof *sky->begins);
    memset(sky->crossed, 0, strip->n_sections * sizeof *sky->crossed);
    for (uint32_t i = 0; i < strip->n; i++)
        flip_open(sky, i);
    for (uint32_t t = 0; t < strip->n_sections; t++) {
        sky->floor[t] = sky->top[t] = sky->open[t] = sky->choices[t] = 0;
        sky->n_open[t] = strip->start[t + 1] - strip->start[t];
        for (uint32_t k = strip->start[t]; k < strip->start[t + 1]; k++)
            sky->open[t] += strip->item[strip->members[k]].size;
        if (sky->open[t] > strip->capacity)
            fail(sky, t, sky->open[t]);
        enqueue(sky, t);
        note_move(sky, t);
    }
    for (uint32_t i = 0; i < strip->n && !sky->failed; i++) {
        int64_t pin = strip->item[i].pin;
        raise_item(sky, i, pin >= 0 ? pin : above_pins(sky, i, 0));
    }
    return settle(sky);
}
