/* flippable.c - placing bodies of boxes in one linear memory.
 *
 * Input: bodies. Output: an offset for each.
 * Method: as greedy by size (Pisarchyk, Lee 2020), each at the lowest place
 * where none of its boxes meets one of those placed before, or at the highest:
 * what waits with fewer bytes leaves room above itself, which is of use if its
 * neighbours stay away from there. What then finds no place comes first in the
 * next order (Joslin, Clements, "Squeaky wheel optimization", 1999), and from
 * the other end: of two volumes that grow at times, one may have to lie above
 * the other.
 */
#include "pack/flippable.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

uint32_t body_add(RigidGroups *b, uint64_t bytes) {
    RigidGroup body = {
        .first_box = b->box.n, .first = UINT32_MAX, .bytes = bytes};
    vec_push(b->arena, &b->body, body);
    return b->body.n - 1;
}

void body_box(RigidGroups *b, Box box) {
    RigidGroup *body = &b->body.at[b->body.n - 1];
    vec_push(b->arena, &b->box, box);
    body->n_boxes++;
    body->first = box.first < body->first ? box.first : body->first;
    body->end = box.end > body->end ? box.end : body->end;
    body->weight += (box.high - box.low) * (box.end - box.first);
    body->turns |= box.turns;
}

static uint64_t box_low(const RigidGroup *body, const Box *box, bool turned) {
    return turned && box->turns ? body->bytes - box->high : box->low;
}

static uint64_t box_high(const RigidGroup *body, const Box *box, bool turned) {
    return turned && box->turns ? body->bytes - box->low : box->high;
}

static bool share_time(const Box *a, const Box *b) {
    return a->first < b->end && b->first < a->end;
}

static bool bodies_share_time(const RigidGroups *b, const RigidGroup *x,
                              const RigidGroup *y) {
    for (uint32_t i = 0; i < x->n_boxes; i++)
        for (uint32_t k = 0; k < y->n_boxes; k++)
            if (share_time(&b->box.at[x->first_box + i],
                           &b->box.at[y->first_box + k]))
                return true;
    return false;
}

static bool is_taken(int64_t at, Taken t) {
    return t.low < at && at < t.high;
}

/* The highest place within the memory that is not taken. */
static bool body_hang(const RigidGroups *b, RigidGroup *body) {
    if (body->bytes > b->size)
        return false;
    int64_t align = (int64_t)b->align;
    int64_t at = (int64_t)(b->size - body->bytes) / align * align, was;
    do {
        was = at;
        for (uint32_t i = 0; i < b->n_taken && at >= 0; i++)
            if (is_taken(at, b->taken[i]))
                at = b->taken[i].low;
        if (at < 0)
            return false;
        at = at / align * align;
    } while (at != was);
    body->offset = (uint64_t)at;
    return true;
}

/* The lowest place; what is taken only pushes it up, so it is found in the end.
 */
static void body_place(const RigidGroups *b, RigidGroup *body) {
    int64_t align = (int64_t)b->align, at = 0, was;
    do {
        was = at;
        for (uint32_t i = 0; i < b->n_taken; i++)
            if (is_taken(at, b->taken[i]))
                at = b->taken[i].high;
        if (at != was)
            at = (at + align - 1) / align * align;
    } while (at != was);
    body->offset = (uint64_t)at;
}

/* ---- one order ---- */

static uint32_t begin_of(const RigidGroups *b, uint32_t i, uint32_t last) {
    return b->body.at[i].first < last ? b->body.at[i].first : last;
}

/* Bodies by when they begin. */
static uint32_t *order_by_begin(const RigidGroups *b) {
    uint32_t n = b->body.n, last = 0;
    for (uint32_t i = 0; i < n; i++)
        last = b->body.at[i].end > last ? b->body.at[i].end : last;
    uint32_t *at = ARENA_ARRAY(b->arena, uint32_t, (size_t)last + 2);
    uint32_t *order = ARENA_ARRAY(b->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        at[begin_of(b, i, last) + 1]++;
    for (uint32_t t = 0; t < last; t++)
        at[t + 1] += at[t];
    for (uint32_t i = 0; i < n; i++)
        order[at[begin_of(b, i, last)]++] = i;
    return order;
}

typedef struct Pair {
    uint32_t a, b;
} Pair;

/* Bodies that share time, by body: near.at[start[i]..start[i + 1]). */
static void find_near(RigidGroups *b) {
    VEC(Pair) pair = {0};
    uint32_t n = b->body.n, *order = order_by_begin(b);
    uint32_t *fill = ARENA_ARRAY(b->arena, uint32_t, n + 2);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++) {
            const RigidGroup *x = &b->body.at[order[i]],
                             *y = &b->body.at[order[k]];
            if (y->first >= x->end)
                break;
            if (!bodies_share_time(b, x, y))
                continue;
            vec_push(b->arena, &pair, ((Pair){order[i], order[k]}));
            fill[order[i] + 2]++;
            fill[order[k] + 2]++;
        }
    for (uint32_t i = 0; i < n; i++)
        fill[i + 2] += fill[i + 1];
    b->start = fill;
    b->near = ARENA_ARRAY(b->arena, uint32_t, 2 * (size_t)pair.n + 1);
    for (uint32_t i = 0; i < pair.n; i++) {
        b->near[fill[pair.at[i].a + 1]++] = pair.at[i].b;
        b->near[fill[pair.at[i].b + 1]++] = pair.at[i].a;
    }
}

/* Where a body lies. */
typedef struct Seat {
    uint64_t offset; /* of the attempt in which the body was .. */
    uint32_t placed; /* .. placed: its number; ALWAYS: it is pinned there */
    uint32_t stale;  /* the attempt in which its neighbours moved */
} Seat;

#define ALWAYS UINT32_MAX

/* One order of bodies, and where its latest attempt has put them. */
typedef struct Order {
    uint32_t *body; /* first to last */
    bool *hangs;    /* by body, whether from the top; NULL: none */
    bool *turned;   /* by body */
    Seat *seat;     /* by body */
    uint32_t attempt;
} Order;

/* Adds where body i cannot lie for where k lies. */
static void taken_by(RigidGroups *b, const Order *o, uint32_t i, uint32_t k) {
    const RigidGroup *x = &b->body.at[i], *y = &b->body.at[k];
    uint64_t at = o->seat[k].offset;
    bool x_turned = o->turned[i], y_turned = o->turned[k];
    for (uint32_t m = 0; m < x->n_boxes; m++)
        for (uint32_t n = 0; n < y->n_boxes; n++) {
            const Box *p = &b->box.at[x->first_box + m];
            const Box *q = &b->box.at[y->first_box + n];
            if (share_time(p, q))
                b->taken[b->n_taken++] =
                    (Taken){(int64_t)(at + box_low(y, q, y_turned) -
                                      box_high(x, p, x_turned)),
                            (int64_t)(at + box_high(y, q, y_turned) -
                                      box_low(x, p, x_turned))};
        }
}

/* Its neighbours that are placed are listed without a branch, which could not
 * be predicted. */
static void find_taken(RigidGroups *b, const Order *o, uint32_t body) {
    const uint32_t *near = b->near + b->start[body];
    const Seat *seat = o->seat;
    uint32_t n_near = b->start[body + 1] - b->start[body], n = 0;
    uint32_t *there = b->there, attempt = o->attempt;
    for (uint32_t i = 0; i < n_near; i++) {
        there[n] = near[i];
        n += seat[near[i]].placed >= attempt;
    }
    b->n_taken = 0;
    for (uint32_t i = 0; i < n; i++)
        taken_by(b, o, body, there[i]);
}

/* As much as any body may find. */
static Taken *taken_new(const RigidGroups *b) {
    size_t most = 1;
    for (uint32_t i = 0; i < b->body.n; i++) {
        size_t boxes = 0;
        for (uint32_t k = b->start[i]; k < b->start[i + 1]; k++)
            boxes += b->body.at[b->near[k]].n_boxes;
        boxes *= b->body.at[i].n_boxes;
        most = boxes > most ? boxes : most;
    }
    return ARENA_ARRAY(b->arena, Taken, most);
}

static Order order_new(const RigidGroups *b, const uint32_t *body,
                       bool *hangs) {
    uint32_t n = b->body.n;
    Order o = {.body = ARENA_COPY(b->arena, uint32_t, body, n),
               .hangs = hangs,
               .turned = ARENA_ARRAY(b->arena, bool, n + 1),
               .seat = ARENA_ARRAY(b->arena, Seat, n + 1),
               .attempt = 1};
    for (uint32_t i = 0; i < n; i++)
        if (b->body.at[i].pinned)
            o.seat[i] = (Seat){b->body.at[i].offset, ALWAYS, 0};
    return o;
}

static void neighbours_stale(const RigidGroups *b, Order *o, uint32_t body) {
    for (uint32_t i = b->start[body]; i < b->start[body + 1]; i++)
        o->seat[b->near[i]].stale = o->attempt;
}

/* Where nobody near it that comes before has moved since the attempt before
 * this one, it lies where it lay then. */
static bool is_as_before(const Order *o, const Seat *seat) {
    return seat->placed + 1 == o->attempt && seat->stale != o->attempt;
}

static void body_settle(RigidGroups *b, Order *o, uint32_t i) {
    Seat *seat = &o->seat[i];
    RigidGroup *body = &b->body.at[i];
    bool known = seat->placed + 1 == o->attempt;
    seat->placed = o->attempt;
    find_taken(b, o, i);
    if (!(o->hangs && o->hangs[i] && body_hang(b, body)))
        body_place(b, body);
    if (!known || body->offset != seat->offset)
        neighbours_stale(b, o, i);
    seat->offset = body->offset;
}

/* Index in the order of the first body that finds no place; the number of
 * bodies if all do. */
static uint32_t place_order(RigidGroups *b, Order *o) {
    o->attempt++;
    for (uint32_t i = 0; i < b->body.n; i++) {
        uint32_t at = o->body[i];
        if (is_as_before(o, &o->seat[at])) {
            o->seat[at].placed = o->attempt;
            continue;
        }
        if (o->seat[at].placed != ALWAYS)
            body_settle(b, o, at);
        if (b->body.at[at].bytes > b->size ||
            o->seat[at].offset > b->size - b->body.at[at].bytes)
            return i;
    }
    return b->body.n;
}

/* What the order has found. */
static void order_take(RigidGroups *b, const Order *o) {
    for (uint32_t i = 0; i < b->body.n; i++) {
        b->body.at[i].offset = o->seat[i].offset;
        b->body.at[i].turned = o->turned[i];
    }
}

/* ---- orders ---- */

typedef struct Key {
    uint64_t weight;
    uint32_t body;
} Key;

static int heaviest_first(const void *a, const void *b) {
    const Key *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->body > y->body) - (x->body < y->body);
}

static uint32_t *order_by(RigidGroups *b, bool by_weight) {
    uint32_t n = b->body.n;
    Key *key = ARENA_ARRAY(b->arena, Key, n + 1);
    uint32_t *order = ARENA_ARRAY(b->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        key[i] =
            (Key){by_weight ? b->body.at[i].weight : b->body.at[i].bytes, i};
    if (n)
        qsort(key, n, sizeof *key, heaviest_first);
    for (uint32_t i = 0; i < n; i++)
        order[i] = key[i].body;
    return order;
}

/* At first those hang whose bytes do not change. */
static bool *hangs_make(const RigidGroups *b) {
    bool *hangs = ARENA_ARRAY(b->arena, bool, b->body.n + 1);
    for (uint32_t i = 0; i < b->body.n; i++)
        hangs[i] = b->body.at[i].n_boxes == 1;
    return hangs;
}

/* What found no place comes first in the next attempt, or near the front, from
 * the other end. */
static void forward(const RigidGroups *b, Order *o, uint32_t at, uint32_t try,
                    bool turns) {
    uint32_t to =
        try % 4 == 3 ? (uint32_t)(rng_bits(try, at) % (at / 2 + 1)) : 0;
    uint32_t body = o->body[at];
    memmove(o->body + to + 1, o->body + to, (at - to) * sizeof *o->body);
    o->body[to] = body;
    if (o->seat[body].placed != ALWAYS)
        o->seat[body].placed = 0;
    if (o->hangs)
        o->hangs[body] = !o->hangs[body];
    if (turns && b->body.at[body].turns && (!o->hangs || !o->hangs[body]))
        o->turned[body] = !o->turned[body];
}

/* From orders that begin anew; `turns`: what may be turned is, too, when it
 * finds no place. */
static bool orders_try(RigidGroups *b, uint32_t orders, bool turns) {
    uint32_t n = b->body.n, most = 0;
    uint32_t *by_bytes = order_by(b, false), *by_weight = order_by(b, true);
    Order order[] = {order_new(b, by_bytes, NULL),
                     order_new(b, by_weight, NULL),
                     order_new(b, by_bytes, hangs_make(b)),
                     order_new(b, by_weight, hangs_make(b))};
    uint32_t *fails = ARENA_ARRAY(b->arena, uint32_t, n + 1);
    for (uint32_t try = 0; try < orders; try++) {
        Order *own = &order[try % 4];
        uint32_t at = place_order(b, own);
        if (at == n) {
            order_take(b, own);
            return true;
        }
        uint32_t failed = own->body[at];
        if (!turns && ++fails[failed] > most) {
            most = fails[failed];
            b->failed = failed;
        }
        forward(b, own, at, try, turns);
    }
    return false;
}

static bool bodies_find(RigidGroups *b, uint32_t orders) {
    bool turns = false;
    find_near(b);
    b->taken = taken_new(b);
    b->there = ARENA_ARRAY(b->arena, uint32_t, b->body.n + 1);
    for (uint32_t i = 0; i < b->body.n; i++)
        turns |= b->body.at[i].turns;
    return orders_try(b, orders, false) ||
           (turns && orders_try(b, orders, true));
}

/* ---- again ---- */

/* What is asked. */
static Print bodies_print(const RigidGroups *b, uint32_t orders) {
    Print p = {b->size, (uint64_t)orders << 32 | b->body.n};
    print_add(&p, b->align);
    for (uint32_t i = 0; i < b->body.n; i++) {
        const RigidGroup *body = &b->body.at[i];
        print_add(&p, (uint64_t)body->n_boxes << 1 | body->pinned);
        print_add(&p, body->bytes);
        print_add(&p, body->pinned ? body->offset : 0);
    }
    for (uint32_t i = 0; i < b->box.n; i++) {
        const Box *box = &b->box.at[i];
        print_add(&p, (uint64_t)box->first << 32 | box->end);
        print_add(&p, box->low << 1 | box->turns);
        print_add(&p, box->high);
    }
    return p;
}

/* Where a body was put. */
typedef struct Put {
    uint64_t offset;
    bool turned;
} Put;

/* Of all bodies, or just which failed. */
typedef struct Known {
    bool placed;
    uint32_t failed;
    Put put[];
} Known;

static bool bodies_recall(RigidGroups *b, const Known *known) {
    b->failed = known->failed;
    for (uint32_t i = 0; i < b->body.n && known->placed; i++) {
        b->body.at[i].offset = known->put[i].offset;
        b->body.at[i].turned = known->put[i].turned;
    }
    return known->placed;
}

static void bodies_keep(const RigidGroups *b, Print print, bool placed) {
    uint32_t n = placed ? b->body.n : 0;
    Known *known =
        memo_insert(b->memo_table, print, sizeof *known + n * sizeof(Put));
    if (!known)
        return;
    known->placed = placed;
    known->failed = b->failed;
    for (uint32_t i = 0; i < n; i++)
        known->put[i] = (Put){b->body.at[i].offset, b->body.at[i].turned};
}

bool bodies_place(RigidGroups *b, uint32_t orders) {
    if (!b->memo_table)
        return bodies_find(b, orders);
    Print print = bodies_print(b, orders);
    const Known *known = memo_find(b->memo_table, print);
    if (known)
        return bodies_recall(b, known);
    bool placed = bodies_find(b, orders);
    bodies_keep(b, print, placed);
    return placed;
}
