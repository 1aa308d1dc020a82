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

#include "base/order.h"
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

static int earlier_box(const void *a, const void *b) {
    const Box *x = a, *y = b;
    return ORDER_UP(x->first, y->first);
}

/* Boxes of each body by when they begin: those that share time with another
 * box are then found by halving. */
static void boxes_sort(RigidGroups *b) {
    b->until = ARENA_ARRAY(b->arena, uint32_t, b->box.n + 1);
    for (uint32_t i = 0; i < b->body.n; i++) {
        const RigidGroup *body = &b->body.at[i];
        Box *box = b->box.at + body->first_box;
        uint32_t *until = b->until + body->first_box;
        if (body->n_boxes > 1)
            qsort(box, body->n_boxes, sizeof *box, earlier_box);
        for (uint32_t k = 0; k < body->n_boxes; k++) {
            until[k] = k ? until[k - 1] : 0;
            until[k] = box[k].end > until[k] ? box[k].end : until[k];
        }
    }
}

/* Of the body's boxes the first that may share time with `p`; those behind it
 * that begin before p ends may, too. */
static uint32_t box_beside(const RigidGroups *b, const RigidGroup *body,
                           const Box *p) {
    uint32_t lo = body->first_box, hi = lo + body->n_boxes;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (b->until[mid] > p->first)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* How many boxes of the two share time: looks for each of x. */
static uint32_t boxes_sharing(const RigidGroups *b, const RigidGroup *x,
                              const RigidGroup *y) {
    uint32_t n = 0, end = y->first_box + y->n_boxes;
    if (x->n_boxes > y->n_boxes)
        return boxes_sharing(b, y, x);
    for (uint32_t i = 0; i < x->n_boxes; i++) {
        const Box *p = &b->box.at[x->first_box + i], *box = b->box.at;
        for (uint32_t k = box_beside(b, y, p); k < end && box[k].first < p->end;
             k++)
            n += share_time(p, &box[k]);
    }
    return n;
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

/* Bodies that share time, by body: near.at[start[i]..start[i + 1]). And room
 * for as much as any of them may find taken. */
static void find_near(RigidGroups *b) {
    VEC(Pair) pair = {0};
    uint32_t n = b->body.n, *order = order_by_begin(b);
    uint32_t *fill = ARENA_ARRAY(b->arena, uint32_t, n + 2);
    size_t *boxes = ARENA_ARRAY(b->arena, size_t, n + 1), most = 1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++) {
            const RigidGroup *x = &b->body.at[order[i]],
                             *y = &b->body.at[order[k]];
            if (y->first >= x->end)
                break;
            uint32_t sharing = boxes_sharing(b, x, y);
            if (!sharing)
                continue;
            boxes[order[i]] += sharing;
            boxes[order[k]] += sharing;
            vec_push(b->arena, &pair, ((Pair){order[i], order[k]}));
            fill[order[i] + 2]++;
            fill[order[k] + 2]++;
        }
    for (uint32_t i = 0; i < n; i++) {
        fill[i + 2] += fill[i + 1];
        most = boxes[i] > most ? boxes[i] : most;
    }
    b->taken = ARENA_ARRAY(b->arena, Taken, most);
    b->start = fill;
    b->near = ARENA_ARRAY(b->arena, uint32_t, 2 * (size_t)pair.n + 1);
    for (uint32_t i = 0; i < pair.n; i++) {
        b->near[fill[pair.at[i].a + 1]++] = pair.at[i].b;
        b->near[fill[pair.at[i].b + 1]++] = pair.at[i].a;
    }
}

/* One order of bodies, and where its latest attempt has put them. A later
 * attempt settles only those anew that come behind one that moved, near it. */
typedef struct Order {
    uint32_t *body;    /* first to last */
    uint32_t *place;   /* by body: its index in that + 1; 0: it is pinned */
    uint64_t *offset;  /* by body; NOWHERE: it was not placed */
    uint64_t *waits;   /* bits by index: to be settled anew */
    uint32_t n_placed; /* the first so many are placed, but for those */
    bool *hangs;       /* by body, whether from the top; NULL: none */
    bool *turned;      /* by body */
} Order;

#define NOWHERE UINT64_MAX

/* Two boxes of bodies that share time: body i's p and body k's q. */
static void taken_by_box(RigidGroups *b, const Order *o, uint32_t i, uint32_t k,
                         const Box *p, const Box *q) {
    const RigidGroup *x = &b->body.at[i], *y = &b->body.at[k];
    uint64_t at = o->offset[k];
    bool x_turned = o->turned[i], y_turned = o->turned[k];
    b->taken[b->n_taken++] = (Taken){
        (int64_t)(at + box_low(y, q, y_turned) - box_high(x, p, x_turned)),
        (int64_t)(at + box_high(y, q, y_turned) - box_low(x, p, x_turned))};
}

/* Adds where body i cannot lie for where k lies: looks for each box of the one
 * that has fewer. */
static void taken_by(RigidGroups *b, const Order *o, uint32_t i, uint32_t k) {
    const RigidGroup *few = &b->body.at[i], *many = &b->body.at[k];
    bool other = few->n_boxes > many->n_boxes;
    if (other) {
        const RigidGroup *x = few;
        few = many;
        many = x;
    }
    const Box *end = b->box.at + many->first_box + many->n_boxes;
    for (uint32_t m = 0; m < few->n_boxes; m++) {
        const Box *p = &b->box.at[few->first_box + m];
        const Box *q = b->box.at + box_beside(b, many, p);
        for (; q < end && q->first < p->end; q++)
            if (share_time(p, q))
                taken_by_box(b, o, i, k, other ? q : p, other ? p : q);
    }
}

/* Its neighbours that come before it are listed without a branch, which could
 * not be predicted. */
static void find_taken(RigidGroups *b, const Order *o, uint32_t body) {
    const uint32_t *near = b->near + b->start[body];
    const uint32_t *place = o->place;
    uint32_t n_near = b->start[body + 1] - b->start[body], n = 0;
    uint32_t *there = b->there, own = place[body];
    for (uint32_t i = 0; i < n_near; i++) {
        there[n] = near[i];
        n += place[near[i]] < own;
    }
    b->n_taken = 0;
    for (uint32_t i = 0; i < n; i++)
        taken_by(b, o, body, there[i]);
}

static void order_wait(Order *o, uint32_t index) {
    o->waits[index / 64] |= UINT64_C(1) << index % 64;
}

static Order order_new(const RigidGroups *b, const uint32_t *body,
                       bool *hangs) {
    uint32_t n = b->body.n;
    Order o = {.body = ARENA_COPY(b->arena, uint32_t, body, n),
               .place = ARENA_ARRAY(b->arena, uint32_t, n + 1),
               .offset = ARENA_ARRAY(b->arena, uint64_t, n + 1),
               .waits = ARENA_ARRAY(b->arena, uint64_t, n / 64 + 1),
               .hangs = hangs,
               .turned = ARENA_ARRAY(b->arena, bool, n + 1)};
    for (uint32_t i = 0; i < n; i++) {
        const RigidGroup *at = &b->body.at[body[i]];
        o.place[body[i]] = at->pinned ? 0 : i + 1;
        o.offset[body[i]] = at->pinned ? at->offset : NOWHERE;
    }
    return o;
}

/* Those near it that are placed behind it. */
static void neighbours_wait(const RigidGroups *b, Order *o, uint32_t body) {
    for (uint32_t i = b->start[body]; i < b->start[body + 1]; i++) {
        uint32_t place = o->place[b->near[i]];
        if (place > o->place[body] && place <= o->n_placed)
            order_wait(o, place - 1);
    }
}

static void body_settle(RigidGroups *b, Order *o, uint32_t i) {
    RigidGroup *body = &b->body.at[i];
    find_taken(b, o, i);
    if (!(o->hangs && o->hangs[i] && body_hang(b, body)))
        body_place(b, body);
    if (body->offset != o->offset[i])
        neighbours_wait(b, o, i);
    o->offset[i] = body->offset;
}

/* The first index from `from` on that waits, or that was not placed yet. */
static uint32_t next_waiting(const Order *o, uint32_t from) {
    uint32_t word = from / 64, words = o->n_placed / 64;
    uint64_t bits = o->waits[word] >> from % 64 << from % 64;
    while (!bits && word < words)
        bits = o->waits[++word];
    return bits ? word * 64 + (uint32_t)__builtin_ctzll(bits) : o->n_placed;
}

/* Index in the order of the first body that finds no place; the number of
 * bodies if all do. */
static uint32_t place_order(RigidGroups *b, Order *o) {
    uint32_t n = b->body.n, i = 0;
    while ((i = next_waiting(o, i)) < n) {
        uint32_t at = o->body[i];
        o->waits[i / 64] &= ~(UINT64_C(1) << i % 64);
        if (o->place[at])
            body_settle(b, o, at);
        if (b->body.at[at].bytes > b->size ||
            o->offset[at] > b->size - b->body.at[at].bytes)
            break;
        o->n_placed += i == o->n_placed;
    }
    if (i < n)
        memset(o->waits, 0, (n / 64 + 1) * sizeof *o->waits);
    o->n_placed = i;
    return i;
}

/* What the order has found. */
static void order_take(RigidGroups *b, const Order *o) {
    for (uint32_t i = 0; i < b->body.n; i++) {
        b->body.at[i].offset = o->offset[i];
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
    return order_by(ORDER_DOWN(x->weight, y->weight),
                    ORDER_UP(x->body, y->body));
}

static uint32_t *bodies_in_order(RigidGroups *b, bool by_weight) {
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
    for (uint32_t i = to; i <= at; i++)
        if (o->place[o->body[i]])
            o->place[o->body[i]] = i + 1;
    if (o->place[body])
        o->offset[body] = NOWHERE;
    order_wait(o, to);
    o->n_placed = at + 1;
    if (o->hangs)
        o->hangs[body] = !o->hangs[body];
    if (turns && b->body.at[body].turns && (!o->hangs || !o->hangs[body]))
        o->turned[body] = !o->turned[body];
}

/* From orders that begin anew; `turns`: what may be turned is, too, when it
 * finds no place. */
static bool orders_try(RigidGroups *b, uint32_t orders, bool turns) {
    uint32_t n = b->body.n, most = 0;
    uint32_t *by_bytes = bodies_in_order(b, false),
             *by_weight = bodies_in_order(b, true);
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
    boxes_sort(b);
    find_near(b);
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
