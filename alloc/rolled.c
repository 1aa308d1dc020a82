/* rolled.c - where layers roll, of all plans one that is no worse than what a
 * smaller memory gets.
 *
 * Input: a contest. Output: its best way.
 * Method: from some size on, layers roll so that nothing moves twice. For a row
 * of such sizes, up to that in which everything stays, the fastest plan of the
 * fewest bytes is looked for, and taken where it is no worse than that of the
 * size before. What rolls in little memory does so row by row, and all that it
 * loads hides behind many layers; in more memory it may be slower, as what
 * stays whole is loaded before work begins. Between the first of the row from
 * which on time hardly falls and the least size in which anything fits there is
 * halving (boxes.h): of what lies between both ends the plan with the fewest
 * bytes. The least size in which layers roll, to the granule, is an end, too,
 * where that costs little time. What is too fast beside a larger memory's plan
 * hides fewer transfers (slower.c), or has narrow tiles where that does not
 * suffice; and it may take a little more time than it must, so that others find
 * room between it and that one. Time follows bytes here but for what chance
 * leaves unhidden and for tiles that are narrow in little memory, so that costs
 * little, and bytes nothing. Few plans are timed, and more are made, which hide
 * transfers in other ways, only where those shut out the fewest bytes. Networks
 * of many steps have fewer ways and sizes; the least size is looked for only
 * where the memory is so small that no size below it has a plan.
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
    uint32_t n_seen;
    Seen seen[SEEN];
} Search;

static bool is_less(Timed a, Timed b) {
    uint64_t mine = traffic_bytes(a.traffic), other = traffic_bytes(b.traffic);
    return mine != other ? mine < other : a.cycles < b.cycles;
}

/* Such a plan takes long to time: no others are for the same size. */
static bool is_long(const Search *n) {
    return n->found && n->best.timed.traffic.instructions > LONG;
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
           (n->fastest && bytes == best && !is_long(n));
}

/* The plan is no faster than that of a larger memory, and may be a little
 * slower: others are to be between it and that one. */
static bool fit_between(Search *n, Attempt *a, Offer *o) {
    Slow slow = {.least = n->above.cycles};
    const Plan *plan = a->plan;
    uint64_t serial = plan->serial ? plan_cycles(plan->serial) : plan->cycles;
    slow.most = larger(o->timed.cycles, slow.least) +
                (serial - plan->cycles) * n->room / ROOM;
    if (slow.most > n->below.cycles)
        slow.most = n->below.cycles;
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
        if (alike && a->traffic.instructions > LONG)
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
    if (!is_promising(n, a->traffic) || !is_new(n, a) ||
        is_too_fast(n, a->plan) || !offer_quickly(n->c, a, &o) ||
        !fit_between(n, a, &o))
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
    for (uint32_t i = 0; i < h.entry.n; i++)
        consider(n, h.entry.at[i]);
    heat_free(&h);
}

static bool is_good(const Search *n) {
    enum { NEAR = 16 };
    uint64_t bytes = traffic_bytes(n->best.timed.traffic);
    return n->found && !n->fastest && bytes - n->fewest <= n->fewest / NEAR;
}

/* Plans of so many steps take long: the first that are found are enough. */
static void few_try(Search *n, bool any) {
    for (uint32_t i = 0; i < (any ? 1 : QUICK_TIERS) && !n->found; i++) {
        tier_try(n, few_ways[i], FEW_WAYS);
        for (uint32_t k = 0; k < NARROW && n->too_fast && !n->found; k++)
            tier_try(n, &narrow_ways[k], 1);
        n->too_fast = false;
    }
}

/* A box with what is found; else `none`. */
static Box search_box(Climb *climb, Search n, const Box *none) {
    n.c = climb->c;
    n.fewest = UINT64_MAX;
    if (has_many_steps(n.c)) {
        few_try(&n, none->any);
        n.tiers = 0;
    }
    for (uint32_t i = 0; i < n.tiers && !is_good(&n) && !is_long(&n); i++) {
        tier_try(&n, tier_ways[i], WAYS);
        for (uint32_t k = 0; k < NARROW && n.too_fast && !is_good(&n); k++)
            tier_try(&n, &narrow_ways[k], 1);
        n.too_fast = false;
    }
    return n.found ? climb_box(climb, n.size, n.best) : *none;
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

static Box middle(void *context, uint64_t size, const Box *below,
                  const Box *above) {
    Climb *climb = context;
    Search n = {.size = size,
                .below = timed_of(climb, below),
                .above = timed_of(climb, above),
                .tiers = TIERS,
                .room = room_between(below, above)};
    return search_box(climb, n, below);
}

/* ---- sizes in which they do ---- */

static Box fastest_box(Climb *climb, uint64_t size, Timed below, uint32_t tiers,
                       const Box *none) {
    Search n = {.size = size,
                .below = below,
                .above = costs_nothing,
                .tiers = tiers,
                .fastest = true};
    return search_box(climb, n, none);
}

static bool rolls_within(const Contest *c, uint64_t size, bool groups) {
    Way rolls = {.size = size, .rolls = true},
        grouped = {.size = size, .share = 16};
    Heat h = {.c = c, .loose = true, .most = HUGE_VAL};
    heat_way(&h, groups ? grouped : rolls);
    bool rolled = h.entry.n > 0;
    if (rolled && groups)
        rolled = h.entry.at[0]->traffic.moved == c->compulsory;
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
    for (uint64_t at = least - 1; at > c->never; number--) {
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

/* What a memory gets that is no smaller than the box. `fast` is the first of
 * the row behind which time hardly falls; a smaller memory gets that. */
static Box box_beyond(Climb *climb, uint64_t all, Box box, Box *fast) {
    enum { LITTLE = 32 };
    uint64_t real = climb->c->schedule->spec->memory[0].size;
    bool found = false;
    *fast = box;
    for (bool first = true; box.size < all; first = false) {
        if (found && row_size(all, &box, first) > real)
            return box;
        Box next = box_next(climb, all, &box, first);
        uint64_t saved = box.price.cycles - next.price.cycles;
        if (!found)
            *fast = box;
        found |= saved <= box.price.cycles / LITTLE;
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
    Box at[4];
} Boxes;

/* A plan for a small size that is no better than what a larger one gets. */
static Box small_box(Climb *climb, uint64_t size, Timed above) {
    const Box none = {0};
    Search n = {.size = size,
                .below = costs_all,
                .above = above,
                .tiers = TIERS,
                .room = ROOM};
    return search_box(climb, n, &none);
}

/* The least size up to this one; its plan is not better than `last`, and as
 * slow as can be: others are between the two. */
static Box least_box(Climb *climb, uint64_t end, const Box *last) {
    return small_box(climb, size_for_any(climb->c, end), timed_of(climb, last));
}

/* The least size, and before it the one that is exact: what fits just below the
 * least may move fewer bytes by chance, or be faster whatever it hides, and is
 * in its place then. */
static void add_least(Climb *climb, Box least, const Box *last, Boxes *to) {
    uint64_t size = size_to_granule(climb->c, least.size);
    Box exact = {0};
    if (size < least.size)
        exact = small_box(climb, size, timed_of(climb, last));
    bool better = exact.any && exact.price.bytes < least.price.bytes;
    if (exact.any && !better && !price_no_more(least.price, exact.price)) {
        Box slow = small_box(climb, size, timed_of(climb, &least));
        better = !slow.any;
        exact = slow.any ? slow : exact;
    }
    if (exact.any)
        to->at[to->n++] = exact;
    if (!better)
        to->at[to->n++] = least;
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
    Box box = search_box(climb, n, &none);
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
 * as slow: it has its own plan where that is not by much, and where others can
 * be. */
static void add_boxes(Climb *climb, uint64_t rolls, Box top, Boxes *to) {
    enum { MUCH = 6 };
    Box first = rolls < top.size ? first_box(climb, rolls, &top) : (Box){0};
    uint64_t slower = first.price.cycles - top.price.cycles,
             end = first.any ? rolls : top.size;
    bool own = first.any && slower <= top.price.cycles / MUCH;
    if (has_many_steps(climb->c)) {
        *to = (Boxes){1, {{.size = climb->c->never}}};
        if (own)
            to->at[to->n++] = first;
        to->at[to->n++] = top;
        return;
    }
    Box least = least_box(climb, end, own ? &first : &top);
    if (own && !least.any) {
        own = false;
        least = least_box(climb, end, &top);
    }
    if (least.any)
        add_least(climb, least, own ? &first : &top, to);
    if (own)
        to->at[to->n++] = first;
    to->at[to->n++] = top;
}

/* What a memory of `size` bytes gets between two of them. Of many steps the
 * least size is looked for only where the halves end below the least that has a
 * plan: then that was the last to be held. */
static Box box_between(Climb *climb, Box below, Box above, uint64_t size) {
    bool few = has_many_steps(climb->c);
    Halving h = {middle, climb, few ? FEW_OCTAVE : OCTAVE, PART};
    uint32_t held = climb->held.n;
    Box box = boxes_halve(&h, below, above, size);
    if (box.any || !few)
        return box;
    if (climb->held.n > held) {
        Offer last = climb->held.at[climb->held.n - 1];
        above = climb_box(climb, last.way.size, last);
    }
    box = least_box(climb, above.size, &above);
    return box.size <= size ? box : below;
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
        add_boxes(&climb, least_to_roll(c, begins), fast, &boxes);
        box = box_among(&climb, &boxes);
    }
    if (box.any)
        ladder_take(c, &climb.held.at[box.plan]);
}
