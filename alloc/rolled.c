/* rolled.c - where layers roll, of all plans one that is no worse than what a
 * smaller memory gets.
 *
 * Input: a contest. Output: its best way.
 * Method: from some size on, layers roll so that nothing moves twice. For a row
 * of such sizes, up to that in which everything stays, the fastest plan of the
 * fewest bytes is looked for, and taken where it is no worse than that of the
 * size before. What rolls in little memory does so row by row, and all that it
 * loads hides behind many layers; in more memory it may be slower, as what
 * stays whole is loaded before work begins. Below the first of the row from
 * which on time hardly falls there is halving (boxes.h): of what lies between
 * both ends the plan with the fewest bytes. The least size in which layers
 * roll, to the granule, is an end, too, where that costs little time. What is
 * too fast beside a larger memory's plan hides fewer transfers (slower.c), or
 * has narrow tiles where that does not suffice; and it may take a little more
 * time than it must, so that others find room between it and that one. Time
 * follows bytes here but for what chance leaves unhidden and for tiles that are
 * narrow in little memory, so that costs little, and bytes nothing. Few plans
 * are timed, and more are made, which hide transfers in other ways, only where
 * those shut out the fewest bytes and are not long. Halving goes on between
 * neighbours of which the larger has far fewer bytes, if their plans are short.
 * Networks of many steps have fewer ways and sizes. The least size in which
 * anything fits is looked for only where no smaller size has a plan, or one
 * that fits may not stand beside the larger memory's.
 */
#include "alloc/ladder.h"
#include "alloc/overlap.h"

#include "base/arith.h"

#include <math.h>

/* Sizes that are planned for each power of two, likewise for networks of many
 * steps, and parts of a price that are worth it. */
enum { OCTAVE = 64, FEW_OCTAVE = 32, TOP_OCTAVE = 4, PART = 128 };

/* Ways in the order in which they are tried. */
enum { WAYS = 3, FEW_WAYS = 4, TIERS = 3, QUICK_TIERS = 2, NARROW = 2 };
static const Way tier_ways[TIERS][WAYS] = {
    {{.rolls = true}, {.share = 16}, {.share = 0}},
    {{.rolls = true, .runs = 8},
     {.share = 16, .runs = 8},
     {.rolls = true, .runs = 16}},
    {{.rolls = true, .runs = 4},
     {.share = 16, .runs = 4},
     {.share = 16, .runs = 16}},
};

/* The same of networks of many steps: the second ones only where no smaller
 * memory has a plan and the first have none either. */
static const Way few_ways[QUICK_TIERS][FEW_WAYS] = {
    {{.rolls = true},
     {.rolls = true, .runs = 16},
     {.share = 16},
     {.share = 0}},
    {{.share = 16, .runs = 4},
     {.share = 16, .runs = 8},
     {.share = 16, .runs = 16},
     {.rolls = true, .runs = 8}},
};

/* Those that can take more cycles: narrow tiles have more transfers. */
static const Way narrow_ways[NARROW] = {
    {.share = 16, .narrow = 4},
    {.share = 16, .narrow = 1},
};

/* ---- a plan for one size ---- */

enum {
    LONG = 8192, /* instructions */
    SEEN = 8,    /* plans that are known to be others */
    ROOM = 64    /* parts of all that a plan hides */
};

/* A plan that was timed. */
typedef struct Seen {
    Way way;
    Traffic traffic;
} Seen;

typedef struct Search {
    const Contest *c;
    uint64_t size;
    Timed below, above; /* no worse than the one, no better than the other */
    uint32_t tiers;     /* that may be tried */
    bool fastest;       /* of those with the fewest bytes */
    uint64_t room;      /* parts of what it hides that it may leave unhidden */
    bool found;
    Offer best;
    uint64_t fewest; /* bytes of those that may lie between both */
    bool too_fast;   /* some are faster than the larger memory's */
    bool fits;       /* some fit, whatever they cost */
    bool timed_long; /* one that takes long to time was */
    uint32_t n_seen;
    Seen seen[SEEN];
} Search;

static bool is_less(Timed a, Timed b) {
    uint64_t mine = traffic_bytes(a.traffic), other = traffic_bytes(b.traffic);
    return mine != other ? mine < other : a.cycles < b.cycles;
}

/* Such a plan takes long to time: no others are timed for the same size. */
static bool is_long(Traffic t) {
    return t.instructions > LONG;
}

/* Whether its bytes are worth the time that it takes to count cycles. */
static bool is_promising(Search *n, Traffic t) {
    uint64_t bytes = traffic_bytes(t);
    if (t.too_long || !fewer_bytes(t, n->below.traffic) ||
        !fewer_bytes(n->above.traffic, t))
        return false;
    n->fewest = bytes < n->fewest ? bytes : n->fewest;
    uint64_t best = traffic_bytes(n->best.timed.traffic);
    return !n->found || bytes < best ||
           (n->fastest && bytes == best &&
            !is_long(n->best.timed.traffic));
}

/* The plan is no faster than that of a larger memory, and may be a little
 * slower: others are to be between it and that one; and others between it and
 * the smaller memory's. */
static bool fit_between(Search *n, Attempt *a, Offer *o) {
    enum { HALF = 2 };
    Slow slow = {.least = n->above.cycles};
    const Plan *plan = a->plan;
    uint64_t serial = plan->serial ? plan->serial->cycles : plan->cycles;
    uint64_t from = larger(o->timed.cycles, slow.least), most = n->below.cycles;
    uint64_t room = (serial - plan->cycles) * n->room / ROOM;
    uint64_t half = most > from ? (most - from) / HALF : 0;
    slow.most = from + (room < half ? room : half);
    offer_slower(n->c, a, slow, o);
    return no_worse(n->above, o->timed) && no_worse(o->timed, n->below);
}

/* Faster than the larger memory's, even if nothing is hidden. */
static bool is_too_fast(Search *n, const Plan *plan) {
    bool fast = plan_cycles(plan) < n->above.cycles;
    n->too_fast |= fast;
    return fast;
}

/* Plans that differ in what may be in groups, but are alike, take as many
 * cycles; long ones that differ in their runs, about as many. */
static bool is_new(Search *n, const Attempt *a) {
    const Way *way = &a->way;
    for (uint32_t i = 0; i < n->n_seen && i < SEEN; i++) {
        const Way *b = &n->seen[i].way;
        bool alike = same_traffic(n->seen[i].traffic, a->traffic);
        if (alike && is_long(a->traffic))
            return false;
        if (alike && way->share == b->share && way->rolls == b->rolls &&
            way->runs == b->runs && way->narrow == b->narrow)
            return false;
    }
    n->seen[n->n_seen++ % SEEN] = (Seen){a->way, a->traffic};
    return true;
}

static void consider(Search *n, Attempt *a) {
    Offer o;
    n->fits |= !a->traffic.too_long;
    if (!is_promising(n, a->traffic) || !is_new(n, a) ||
        is_too_fast(n, a->plan) || !offer_quickly(n->c, a, &o))
        return;
    n->timed_long |= is_long(a->traffic);
    if (!fit_between(n, a, &o))
        return;
    if (!n->found || is_less(o.timed, n->best.timed))
        n->best = o;
    n->found = true;
}

/* Whether one moves what every plan moves. */
static bool has_least(const Contest *c, const Heat *h) {
    for (uint32_t i = 0; i < h->entry.n; i++) {
        const Traffic *t = &h->entry.at[i]->traffic;
        if (!t->too_long && t->moved == c->compulsory &&
            t->weights <= c->weights)
            return true;
    }
    return false;
}

static void tier_try(Search *n, const Way *ways, uint32_t n_ways) {
    uint64_t most = traffic_bytes(n->below.traffic);
    most = n->fewest < most ? n->fewest : most;
    Heat h = {.c = n->c, .loose = true, .most = SLACK * (double)most};
    for (uint32_t i = 0; i < n_ways; i++) {
        Way way = ways[i];
        way.size = n->size;
        if (way.rolls || !has_least(n->c, &h))
            heat_way(&h, way);
    }
    heat_sort(&h);
    for (uint32_t i = 0; i < h.entry.n; i++) {
        consider(n, h.entry.at[i]);
        heat_drop(&h, i);
    }
    heat_free(&h);
}

static bool is_good(const Search *n) {
    enum { NEAR = 16 };
    uint64_t bytes = traffic_bytes(n->best.timed.traffic);
    return n->found && !n->fastest && bytes - n->fewest <= n->fewest / NEAR;
}

/* Plans of so many steps take long: the first that are found are enough. What
 * does not fit at first fits in no other way. */
static void few_try(Search *n, bool any) {
    for (uint32_t i = 0; i < (any ? 1 : QUICK_TIERS) && !n->found; i++) {
        tier_try(n, few_ways[i], FEW_WAYS);
        for (uint32_t k = 0; k < NARROW && n->too_fast && !n->found; k++)
            tier_try(n, &narrow_ways[k], 1);
        n->too_fast = false;
        if (!n->fits)
            return;
    }
}

static void tiers_try(Search *n) {
    for (uint32_t i = 0; i < n->tiers && !is_good(n) && !n->timed_long; i++) {
        tier_try(n, tier_ways[i], WAYS);
        for (uint32_t k = 0; k < NARROW && n->too_fast && !is_good(n); k++)
            tier_try(n, &narrow_ways[k], 1);
        n->too_fast = false;
        if (!n->fits)
            return;
    }
}

/* A box with what is found; else `none`. */
static Box search_box(Climb *climb, Search *n, const Box *none) {
    n->c = climb->c;
    n->fewest = UINT64_MAX;
    if (has_many_steps(n->c))
        few_try(n, none->any);
    else
        tiers_try(n);
    return n->found ? climb_box(climb, n->size, n->best) : *none;
}

/* ---- sizes in which layers do not roll ---- */

static Timed timed_of(const Climb *climb, const Box *box) {
    return box->any ? climb->held.at[box->plan].timed : costs_all;
}

/* For as often as what lies above the middle is halved. */
static uint32_t room_between(const Box *below, const Box *above) {
    uint32_t room = 0, sizes = box_number(OCTAVE, above->size) -
                               box_number(OCTAVE, below->size);
    for (; sizes > 2; sizes /= 2)
        room++;
    return room;
}

/* ---- sizes in which they do ---- */

static Box fastest_box(Climb *climb, uint64_t size, Timed below, uint32_t tiers,
                       const Box *none) {
    Search n = {.size = size,
                .below = below,
                .above = costs_nothing,
                .tiers = tiers,
                .fastest = true};
    return search_box(climb, &n, none);
}

static bool rolls_within(const Contest *c, uint64_t size, bool groups) {
    Way rolls = {.size = size, .rolls = true},
        grouped = {.size = size, .share = 16};
    Heat h = {.c = c, .loose = true, .most = HUGE_VAL, .places = !groups};
    heat_way(&h, groups ? grouped : rolls);
    bool rolled = h.stops;
    if (groups)
        rolled = h.entry.n && h.entry.at[0]->traffic.moved == c->compulsory;
    heat_free(&h);
    return rolled;
}

/* From `no` bytes, in which they do not, to `yes`. */
typedef struct Begins {
    uint64_t no, yes;
} Begins;

/* A coarse row of sizes, up to `all`, in which they may not. */
static Begins size_to_roll(const Contest *c, uint64_t all) {
    uint32_t number = box_number(TOP_OCTAVE, c->never);
    Begins b = {0, box_size(TOP_OCTAVE, number)};
    while (b.yes < all && !rolls_within(c, b.yes, false))
        b = (Begins){b.yes, box_size(TOP_OCTAVE, ++number)};
    return b.yes < all ? b : (Begins){all, all};
}

/* The least between them, to the granule. */
static uint64_t least_between(const Contest *c, Begins b, bool groups) {
    uint64_t align = c->schedule->spec->memory[0].align;
    uint64_t unit = align ? align : 1;
    while (b.yes - b.no > unit) {
        uint64_t mid = round_up(b.no + (b.yes - b.no) / 2, unit);
        if (mid >= b.yes)
            break;
        *(rolls_within(c, mid, groups) ? &b.yes : &b.no) = mid;
    }
    return b.yes;
}

/* Groups of layers that roll, with volumes between them, may do in less than
 * what rolls all along. */
static uint64_t least_to_roll(const Contest *c, Begins b) {
    uint64_t least = least_between(c, b, false);
    uint32_t number = box_number(TOP_OCTAVE, least - 1);
    b = (Begins){0, least};
    for (uint64_t at = least - 1; at > c->never && number; number--) {
        if (!rolls_within(c, at, true)) {
            b.no = at;
            break;
        }
        b.yes = at;
        at = box_size(TOP_OCTAVE, number);
    }
    return b.yes < least ? least_between(c, b, true) : least;
}

/* The next of a row of sizes: a little more lets more layers roll together. */
static uint64_t row_size(uint64_t all, const Box *box, bool first) {
    enum { LITTLE = 8 };
    uint64_t more = first ? box->size / LITTLE : box->size;
    return box->size + more < all ? box->size + more : all;
}

static Box box_next(Climb *climb, uint64_t all, const Box *box, bool first) {
    uint64_t size = row_size(all, box, first);
    Box next = fastest_box(climb, size, timed_of(climb, box), QUICK_TIERS, box);
    next.size = size;
    return next;
}

/* All layers take, whatever is done for transfers. */
static uint64_t least_cycles(const Contest *c) {
    Arena *arena = arena_new("layers");
    Work *w =
        work_new(arena, c->schedule, c->schedule->spec, c->options, c->once);
    uint64_t least = network_cycles(w);
    arena_free(arena);
    return least;
}

/* Whether so little is between both that it is no use. */
static bool is_near(uint64_t cycles, uint64_t least) {
    enum { LITTLE = 32 };
    return cycles - least <= cycles / LITTLE;
}

/* What a memory gets that is no smaller than the box. `fast` is the first of
 * the row behind which time hardly falls; a smaller memory gets that. */
static Box box_beyond(Climb *climb, uint64_t all, Box box, Box *fast) {
    uint64_t real = climb->c->schedule->spec->memory[0].size;
    bool found = is_near(box.price.cycles, least_cycles(climb->c));
    *fast = box;
    for (bool first = true; box.size < all; first = false) {
        if (found && (fast->size > real || row_size(all, &box, first) > real))
            return box;
        Box next = box_next(climb, all, &box, first);
        if (!found)
            *fast = box;
        found |= is_near(box.price.cycles, next.price.cycles);
        if (found && (fast->size > real || next.size > real))
            return box;
        box = next;
    }
    if (!found)
        *fast = box;
    return box;
}

/* ---- all of them ---- */

/* Boxes of rising sizes. */
typedef struct Boxes {
    uint32_t n;
    Box at[3];
} Boxes;

/* The least size up to `end`; its plan is not better than `last`, and as slow
 * as can be: others are between the two. */
static Box least_box(Climb *climb, uint64_t end, const Box *last) {
    const Box none = {0};
    uint64_t size = size_to_byte(climb->c, size_for_any(climb->c, end));
    Search n = {.size = size,
                .below = costs_all,
                .above = timed_of(climb, last),
                .tiers = TIERS,
                .room = ROOM};
    return search_box(climb, &n, &none);
}

/* Where none is found beside what a larger memory gets, though some fit, those
 * between get what the least memory does. */
static Box middle(void *context, uint64_t size, const Box *below,
                  const Box *above) {
    Climb *climb = context;
    Search n = {.size = size,
                .below = timed_of(climb, below),
                .above = timed_of(climb, above),
                .tiers = TIERS,
                .room = room_between(below, above)};
    Box box = search_box(climb, &n, below);
    if (box.any || !n.fits)
        return box;
    Box least = least_box(climb, size, above);
    least.size = size;
    return least;
}

/* The least memory in which layers roll, no better than what rolls in more. Its
 * tiles may be narrow: all that can be done is done for its time, then. */
static Box first_box(Climb *climb, uint64_t size, const Box *top) {
    enum { LITTLE = 32 };
    const Box none = {0};
    Search n = {.size = size,
                .below = costs_all,
                .above = timed_of(climb, top),
                .tiers = TIERS,
                .fastest = true};
    Box box = search_box(climb, &n, &none);
    uint64_t slower = box.price.cycles - top->price.cycles;
    if (!box.any || slower <= top->price.cycles / LITTLE)
        return box;
    Offer done = climb->held.at[box.plan];
    done.way.slow = (Slow){0};
    done.way.cuts = false;
    bool better = offer_finish(climb->c, &done) &&
                  no_worse(done.timed, timed_of(climb, &box)) &&
                  no_worse(n.above, done.timed);
    return better ? climb_box(climb, size, done) : box;
}

/* What is slow in the least memory in which layers roll makes all smaller ones
 * as slow: it has its own plan where that is not by much; of many steps, which
 * are rarely so many times slower in less, by little. */
static Boxes boxes_up_to(Climb *climb, uint64_t rolls, Box top) {
    enum { MUCH = 6, LITTLE = 32 };
    uint32_t part = has_many_steps(climb->c) ? LITTLE : MUCH;
    Box first = rolls < top.size ? first_box(climb, rolls, &top) : (Box){0};
    uint64_t slower = first.price.cycles - top.price.cycles;
    Boxes boxes = {1, {{.size = climb->c->never}}};
    if (first.any && slower <= top.price.cycles / part)
        boxes.at[boxes.n++] = first;
    boxes.at[boxes.n++] = top;
    return boxes;
}

static bool is_short(const Climb *climb, const Box *box) {
    return box->any && !is_long(timed_of(climb, box).traffic);
}

/* Goes on between two sizes of which the larger has far fewer bytes, if it does
 * not take long. */
static void narrow_more(Climb *climb, Halving h, Box *below, Box *above,
                        uint64_t size) {
    enum { FINE_OCTAVE = 16 * OCTAVE, MUCH = 8 };
    uint32_t at = box_number(h.octave, size);
    uint64_t first = box_size(h.octave, at), end = box_size(h.octave, at + 1);
    if (!is_short(climb, below) || !is_short(climb, above))
        return;
    below->size = larger(below->size, first);
    above->size = above->size < end ? above->size : end;
    h.octave = FINE_OCTAVE;
    h.part = MUCH;
    boxes_narrow(&h, below, above, size);
}

/* What a memory of `size` bytes gets between two of them. The least size is
 * looked for only where the halves end below the least that has a plan: then
 * that was the last to be held. */
static Box box_between(Climb *climb, Box below, Box above, uint64_t size) {
    bool few = has_many_steps(climb->c);
    Halving h = {middle, climb, few ? FEW_OCTAVE : OCTAVE, PART};
    uint32_t held = climb->held.n;
    Box low = below, high = above;
    boxes_narrow(&h, &low, &high, size);
    if (low.any) {
        narrow_more(climb, h, &low, &high, size);
        return low;
    }
    if (climb->held.n > held) {
        Offer last = climb->held.at[climb->held.n - 1];
        above = climb_box(climb, last.way.size, last);
    }
    low = least_box(climb, above.size, &above);
    return low.size <= size ? low : below;
}

/* What a memory gets that is smaller than the last of them. */
static Box box_among(Climb *climb, const Boxes *boxes) {
    uint64_t real = climb->c->schedule->spec->memory[0].size;
    uint32_t at = 0;
    if (real < boxes->at[0].size)
        return (Box){0};
    while (boxes->at[at + 1].size <= real)
        at++;
    return box_between(climb, boxes->at[at], boxes->at[at + 1], real);
}

void rolled_climb(Contest *c) {
    Climb climb = {.c = c};
    Boxes boxes = {0};
    const Box none = {0};
    uint64_t real = c->schedule->spec->memory[0].size, all = size_for_all(c);
    Begins begins = size_to_roll(c, all);
    Box fast, box = fastest_box(&climb, begins.yes, costs_all, TIERS, &none);
    if (!box.any)
        return;
    c->exact = climb.held.at[box.plan].exact;
    box = box_beyond(&climb, all, box, &fast);
    if (real < fast.size) {
        boxes = boxes_up_to(&climb, least_to_roll(c, begins), fast);
        box = box_among(&climb, &boxes);
    }
    if (box.any)
        ladder_take(c, &climb.held.at[box.plan]);
}
