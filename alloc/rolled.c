/* rolled.c - where layers roll, of all plans one that is no worse than what a
 * smaller memory gets.
 *
 * Input: a contest. Output: its best way.
 * Method: from some size on, layers roll so that nothing moves twice. For the
 * least such size, to the granule, for a row of larger ones, and for that in
 * which everything stays, the fastest plan of the fewest bytes is looked for,
 * and taken where it is no worse than that of the size before. What rolls in
 * little memory does so row by row, and all that it loads hides behind many
 * layers; in more memory it may be slower, as what stays whole is loaded before
 * work begins. Between these and the least size in which anything fits there is
 * halving (boxes.h): of what lies between both ends the plan with the fewest
 * bytes. What is too fast beside a larger memory's plan hides fewer transfers:
 * time follows bytes here but for what chance leaves unhidden, so that costs
 * little, and bytes nothing. Few plans are timed, and more are made, which hide
 * transfers in other ways, only where those shut out the fewest bytes.
 */
#include "alloc/ladder.h"

#include "base/arith.h"

#include <math.h>

/* Sizes that are planned for each power of two, and parts of a price that are
 * worth it. */
enum { OCTAVE = 32, TOP_OCTAVE = 4, PART = 128 };

/* Ways in the order in which they are tried. */
enum { WAYS = 3, TIERS = 3, QUICK_TIERS = 2 };
static const Way tier_ways[TIERS][WAYS] = {
    {{.rolls = true}, {.share = 16}, {.share = 0}},
    {{.rolls = true, .runs = 8},
     {.share = 16, .runs = 8},
     {.rolls = true, .runs = 16}},
    {{.rolls = true, .runs = 4},
     {.share = 16, .runs = 4},
     {.share = 16, .runs = 16}},
};

/* ---- a plan for one size ---- */

typedef struct Search {
    const Contest *c;
    uint64_t size;
    Timed below, above; /* no worse than the one, no better than the other */
    uint32_t tiers;     /* that may be tried */
    bool fastest;       /* of those with the fewest bytes */
    bool found;
    Offer best;
    uint64_t fewest; /* bytes of those that may lie between both */
} Search;

static bool is_less(Timed a, Timed b) {
    uint64_t mine = traffic_bytes(a.traffic), other = traffic_bytes(b.traffic);
    return mine != other ? mine < other : a.cycles < b.cycles;
}

/* Such a plan takes long to time: no others are for the same size. */
static bool is_long(const Search *n) {
    enum { LONG = 8192 };
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

/* The plan may be faster than that of a larger memory. */
static bool slow_down(const Search *n, Offer *o) {
    while (o->timed.cycles < n->above.cycles)
        if (o->way.hides == HIDES_NONE || !offer_slower(n->c, o))
            return false;
    return no_worse(n->above, o->timed) && no_worse(o->timed, n->below);
}

static void consider(Search *n, Attempt *a) {
    Offer o;
    if (!is_promising(n, a->traffic) || !offer_quickly(n->c, a, &o) ||
        !slow_down(n, &o))
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

static void tier_try(Search *n, const Way ways[WAYS]) {
    uint64_t most = traffic_bytes(n->below.traffic);
    most = n->fewest < most ? n->fewest : most;
    Heat h = {.c = n->c, .loose = true, .most = SLACK * (double)most};
    for (uint32_t i = 0; i < WAYS; i++) {
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

/* A box with what is found; else `none`. */
static Box search_box(Climb *climb, Search n, const Box *none) {
    n.c = climb->c;
    n.fewest = UINT64_MAX;
    for (uint32_t i = 0; i < n.tiers && !is_good(&n) && !is_long(&n); i++)
        tier_try(&n, tier_ways[i]);
    return n.found ? climb_box(climb, n.size, n.best) : *none;
}

/* ---- sizes in which layers do not roll ---- */

static Timed timed_of(const Climb *climb, const Box *box) {
    return climb->held.at[box->plan].timed;
}

static Box middle(void *context, uint64_t size, const Box *below,
                  const Box *above) {
    Climb *climb = context;
    Search n = {.size = size,
                .below = timed_of(climb, below),
                .above = timed_of(climb, above),
                .tiers = TIERS};
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

static bool rolls_within(const Contest *c, uint64_t size) {
    Heat h = {.c = c, .loose = true, .most = HUGE_VAL};
    heat_way(&h, (Way){.size = size, .rolls = true});
    bool rolls = h.entry.n > 0;
    heat_free(&h);
    return rolls;
}

/* From `no` bytes, in which they do not, to `yes`. */
typedef struct Begins {
    uint64_t no, yes;
} Begins;

/* A coarse row of sizes, up to `all`, in which they may not. */
static Begins size_to_roll(const Contest *c, uint64_t all) {
    uint32_t number = box_number(TOP_OCTAVE, c->never);
    Begins b = {0, box_size(TOP_OCTAVE, number)};
    while (b.yes < all && !rolls_within(c, b.yes))
        b = (Begins){b.yes, box_size(TOP_OCTAVE, ++number)};
    return b.yes < all ? b : (Begins){all, all};
}

/* The least between them, to the granule. */
static uint64_t least_to_roll(const Contest *c, Begins b) {
    uint64_t align = c->schedule->spec->memory[0].align;
    uint64_t unit = align ? align : 1;
    while (b.yes - b.no > unit) {
        uint64_t mid = round_up(b.no + (b.yes - b.no) / 2, unit);
        if (mid >= b.yes)
            break;
        *(rolls_within(c, mid) ? &b.yes : &b.no) = mid;
    }
    return b.yes;
}

/* What a memory gets that is no smaller than the box: a little more lets more
 * layers roll together. */
static Box box_beyond(Climb *climb, uint64_t all, Box box) {
    enum { LITTLE = 8 };
    uint64_t real = climb->c->schedule->spec->memory[0].size;
    uint64_t size = box.size, more = size / LITTLE;
    for (; size < all; more = size) {
        size = size + more < all ? size + more : all;
        if (size > real)
            break;
        box =
            fastest_box(climb, size, timed_of(climb, &box), QUICK_TIERS, &box);
    }
    return box;
}

/* ---- all of them ---- */

/* Boxes of rising sizes. */
typedef struct Boxes {
    uint32_t n;
    Box at[3];
} Boxes;

/* The least size below that in which layers roll; its plan is not better than
 * `last`, and as slow as can be: others are between the two. */
static void add_least(Climb *climb, uint64_t end, const Box *last, Boxes *to) {
    const Box none = {0};
    Search n = {.size = size_for_any(climb->c, end),
                .below = costs_all,
                .above = timed_of(climb, last),
                .tiers = TIERS};
    Box box = search_box(climb, n, &none);
    to->n = 0;
    if (!box.any)
        return;
    Offer slow = climb->held.at[box.plan];
    while (slow.way.hides != HIDES_NONE && offer_slower(climb->c, &slow))
        continue;
    to->at[to->n++] = climb_box(climb, box.size, slow);
}

static bool goes_on(const Climb *climb, const Boxes *boxes, const Box *next) {
    return !boxes->n || no_worse(timed_of(climb, next),
                                 timed_of(climb, &boxes->at[boxes->n - 1]));
}

/* The least memory in which layers roll may be a slow one. It has its own plan
 * where that is no slower than that for the least in which anything fits; where
 * it halves the bytes and is slower by little, that one may not be faster. */
static void add_boxes(Climb *climb, Box first, Box top, Boxes *to) {
    enum { LITTLE = 512 };
    add_least(climb, first.size, &top, to);
    bool goes = goes_on(climb, to, &first);
    const Price *last = to->n ? &to->at[to->n - 1].price : &first.price;
    if (!goes && first.price.bytes < last->bytes / 2) {
        uint64_t slower = first.price.cycles - last->cycles;
        goes = slower <= last->cycles / LITTLE;
        if (goes)
            add_least(climb, first.size, &first, to);
    }
    if (goes && first.size < top.size)
        to->at[to->n++] = first;
    to->at[to->n++] = top;
}

/* What a memory gets that is smaller than the last of them. */
static Box box_among(Climb *climb, const Boxes *boxes) {
    uint64_t real = climb->c->schedule->spec->memory[0].size;
    uint32_t at = 0;
    if (real < boxes->at[0].size)
        return (Box){0};
    while (boxes->at[at + 1].size <= real)
        at++;
    Box below = boxes->at[at], above = boxes->at[at + 1];
    Halving h = {middle, climb, OCTAVE, PART};
    return boxes_halve(&h, below, above, real);
}

void rolled_climb(Contest *c) {
    Climb climb = {.c = c};
    Boxes boxes = {0};
    const Box none = {0};
    uint64_t real = c->schedule->spec->memory[0].size, all = size_for_all(c);
    Begins begins = size_to_roll(c, all);
    Box box =
        fastest_box(&climb, least_to_roll(c, begins), costs_all, TIERS, &none);
    if (!box.any)
        return;
    Box top =
        fastest_box(&climb, begins.yes, timed_of(&climb, &box), TIERS, &box);
    top.size = begins.yes;
    if (real < top.size) {
        add_boxes(&climb, box, top, &boxes);
        box = box_among(&climb, &boxes);
    } else {
        box = box_beyond(&climb, all, top);
    }
    if (box.any)
        ladder_take(c, &climb.held.at[box.plan]);
}
