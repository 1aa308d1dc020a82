/* large.c - best fit outwards from the peak, for hundreds of thousands
 * of buffers, in n log n steps and linear memory.
 *
 * What is alive at the step where most is alive lies in one stack without a
 * hole, largest on top: that is where no byte may be wasted. From there time is
 * walked to its end, and to its beginning. At each step first the dead give
 * back their blocks, which join with free neighbours, then the born, largest
 * first, each take the free block in which the fewest bytes are left over, at
 * the end beside the neighbour that will die nearest to them: what dies
 * together becomes one hole. Giants that lie on top leave theirs to the free
 * bytes above all, which are taken last, so small buffers do not cut them up.
 *
 * Where that is not near the bound, layers of like sizes are tried as well.
 *
 * Free blocks are in a treap (Seidel and Aragon, 1996) by size and address;
 * blocks know their neighbours in address order, as in a heap with boundary
 * tags.
 *
 * Pins, several pools, relations and gaps in lives are left to greedy_by_size.
 */
#include "base/order.h"
#include "base/rng.h"
#include "pack/free_list.h"
#include "pack/packers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 0 stands for "none" wherever a block's number is expected. */
typedef struct Block {
    uint64_t at, size;
    uint32_t below, above; /* neighbours by address */
    uint32_t left, right;  /* in the treap, if free */
    uint32_t death;        /* of the buffer, if not */
    bool free;
} Block;

typedef struct Heap {
    Block *block;
    uint32_t n, root;
    uint32_t spare; /* unused blocks, linked by `left` */
} Heap;

/* ---- the treap of free blocks ---- */

static bool is_less(const Block *a, const Block *b) {
    return a->size != b->size ? a->size < b->size : a->at < b->at;
}

static uint64_t priority(uint32_t block) {
    return rng_bits(0, block);
}

/* Cuts the tree into what is less than `pivot` and the rest. */
static void split(Heap *h, uint32_t tree, const Block *pivot, uint32_t *less,
                  uint32_t *rest) {
    while (tree) {
        Block *b = &h->block[tree];
        if (is_less(b, pivot)) {
            *less = tree;
            less = &b->right;
            tree = b->right;
        } else {
            *rest = tree;
            rest = &b->left;
            tree = b->left;
        }
    }
    *less = *rest = 0;
}

/* All of `a` is less than all of `b`. */
static uint32_t join(Heap *h, uint32_t a, uint32_t b) {
    uint32_t root = 0, *at = &root;
    while (a && b) {
        if (priority(a) > priority(b)) {
            *at = a;
            at = &h->block[a].right;
            a = *at;
        } else {
            *at = b;
            at = &h->block[b].left;
            b = *at;
        }
    }
    *at = a ? a : b;
    return root;
}

static void tree_add(Heap *h, uint32_t block) {
    uint32_t *at = &h->root;
    const Block *b = &h->block[block];
    while (*at && priority(*at) >= priority(block)) {
        Block *here = &h->block[*at];
        at = is_less(here, b) ? &here->right : &here->left;
    }
    uint32_t less, rest;
    split(h, *at, b, &less, &rest);
    h->block[block].left = less;
    h->block[block].right = rest;
    h->block[block].free = true;
    *at = block;
}

static void tree_remove(Heap *h, uint32_t block) {
    uint32_t *at = &h->root;
    Block *b = &h->block[block];
    while (*at != block) {
        Block *here = &h->block[*at];
        at = is_less(here, b) ? &here->right : &here->left;
    }
    *at = join(h, b->left, b->right);
    b->free = false;
}

/* The smallest block that is at least as `pivot`; 0 if there is none. */
static uint32_t tree_at_least(const Heap *h, const Block *pivot) {
    uint32_t best = 0;
    for (uint32_t at = h->root; at;) {
        const Block *here = &h->block[at];
        bool less = is_less(here, pivot);
        if (!less)
            best = at;
        at = less ? here->right : here->left;
    }
    return best;
}

/* ---- the heap ---- */

static uint32_t new_block(Heap *h, uint64_t at, uint64_t size) {
    uint32_t block = h->spare;
    if (block)
        h->spare = h->block[block].left;
    else
        block = ++h->n;
    h->block[block] = (Block){.at = at, .size = size};
    return block;
}

static Heap heap_new(Arena *arena, uint32_t n_bufs, uint64_t size) {
    Heap h = {.block = ARENA_ARRAY(arena, Block, 2 * (size_t)n_bufs + 4)};
    tree_add(&h, new_block(&h, 0, size));
    return h;
}

/* What a buffer asks for. */
typedef struct Wish {
    uint64_t size, align;
    uint32_t death;
    double bytes_a_step; /* see weigh_end */
} Wish;

/* At the low or the high end of a free block. */
typedef struct Place {
    uint32_t block;
    uint64_t at;
    double cost;
} Place;

/* Bytes that are left over, and how far apart the deaths of the new buffer and
 * of its neighbour are: what dies together leaves one large block. */
static void weigh_end(const Heap *h, uint32_t block, bool high,
                      const Wish *wish, Place *best) {
    const Block *b = &h->block[block];
    uint64_t spare = b->size - wish->size, over = b->at % wish->align;
    uint64_t at = over ? b->at + wish->align - over : b->at;
    if (at - b->at > spare)
        return;
    if (high)
        at = (b->at + spare) / wish->align * wish->align;
    uint32_t next = high ? b->above : b->below;
    double apart =
        next ? fabs((double)h->block[next].death - (double)wish->death) : 0;
    double cost = (double)spare + wish->bytes_a_step * apart;
    if (!best->block || cost < best->cost)
        *best = (Place){block, at, cost};
}

/* Looks at blocks from the smallest that may hold it on, while they can be
 * better than the best, then at one that holds it wherever it begins. The
 * topmost is for when no other fits. */
static Place choose_place(const Heap *h, const Wish *wish) {
    enum { MOST_LOOKS = 5, MOST_MISSES = 20 };
    Place best = {0};
    Block pivot = {.size = wish->size};
    int looks = 0, misses = 0;
    while (looks < MOST_LOOKS) {
        uint32_t block = tree_at_least(h, &pivot);
        if (!block)
            break;
        const Block *b = &h->block[block];
        uint64_t spare = b->size - wish->size;
        if (best.block && (!b->above || (double)spare >= best.cost))
            break;
        weigh_end(h, block, false, wish, &best);
        if (b->above && spare <= wish->size)
            weigh_end(h, block, true, wish, &best);
        pivot = (Block){.size = b->size, .at = b->at + 1};
        looks += best.block != 0;
        misses += !best.block;
        if (!best.block && misses > MOST_MISSES && spare < wish->align)
            pivot = (Block){.size = wish->size + wish->align};
    }
    return best;
}

/* Cuts `size` bytes off the low end of the block; what lies above is a new
 * block, which is returned. */
static uint32_t cut_block(Heap *h, uint32_t block, uint64_t size) {
    Block *b = &h->block[block];
    uint32_t rest = new_block(h, b->at + size, b->size - size);
    h->block[rest].below = block;
    h->block[rest].above = b->above;
    if (b->above)
        h->block[b->above].below = rest;
    b->above = rest;
    b->size = size;
    return rest;
}

/* Takes a block for a buffer; 0 if there is none. */
static uint32_t heap_take(Heap *h, const Wish *wish) {
    Place place = choose_place(h, wish);
    uint32_t block = place.block;
    if (!block)
        return 0;
    tree_remove(h, block);
    if (place.at > h->block[block].at) {
        uint32_t rest = block;
        block = cut_block(h, rest, place.at - h->block[rest].at);
        tree_add(h, rest);
    }
    if (h->block[block].size > wish->size)
        tree_add(h, cut_block(h, block, wish->size));
    h->block[block].death = wish->death;
    return block;
}

/* `block` takes in its neighbour above. */
static void absorb(Heap *h, uint32_t block) {
    uint32_t gone = h->block[block].above;
    h->block[block].size += h->block[gone].size;
    h->block[block].above = h->block[gone].above;
    if (h->block[gone].above)
        h->block[h->block[gone].above].below = block;
    h->block[gone].left = h->spare;
    h->spare = gone;
}

static void heap_give(Heap *h, uint32_t block) {
    uint32_t above = h->block[block].above, below = h->block[block].below;
    if (above && h->block[above].free) {
        tree_remove(h, above);
        absorb(h, block);
    }
    if (below && h->block[below].free) {
        tree_remove(h, below);
        absorb(h, below);
        block = below;
    }
    tree_add(h, block);
}

/* ---- the walk ---- */

typedef struct Event {
    uint32_t step, buf;
    uint64_t rank; /* within the step; 0: it dies */
} Event;

static int by_step(const void *a, const void *b) {
    const Event *x = a, *y = b;
    return order_by3(ORDER_UP(x->step, y->step), ORDER_UP(x->rank, y->rank),
                     ORDER_UP(x->buf, y->buf));
}

/* Of the buffers that are alive at the peak and on one side of it. Backwards,
 * a life [first, end) is [-end, -first). Those alive at the peak are born
 * there, in the same order for both directions, whatever their deaths, and so
 * lie in the same places.
 */
typedef struct Side {
    const PackProblem *problem;
    bool backwards;
    uint32_t start;
} Side;

static Steps life_on(const Side *side, uint32_t b) {
    const Buffer *buf = &side->problem->buf[b];
    Steps life = {buf->first, buf->end};
    if (side->backwards)
        life = (Steps){~buf->end, ~buf->first};
    return life;
}

/* Rounded up. */
static uint64_t size_of(const Side *side, uint32_t b) {
    uint64_t align = side->problem->pool[0].align;
    uint64_t bytes = side->problem->buf[b].bytes[0], over = bytes % align;
    return bytes + (over ? align - over : 0);
}

static bool is_on(const Side *side, uint32_t b) {
    Steps life = life_on(side, b);
    return side->problem->buf[b].bytes[0] && life.first < life.end &&
           life.end > side->start;
}

/* Deaths first, as lives are half-open; giants on top. */
static uint32_t list_events(const Side *side, Event *event) {
    uint32_t n = 0;
    for (uint32_t b = 0; b < side->problem->n_bufs; b++) {
        if (!is_on(side, b))
            continue;
        Steps life = life_on(side, b);
        bool at_peak = life.first <= side->start;
        uint64_t size = size_of(side, b);
        event[n++] = (Event){at_peak ? side->start : life.first, b,
                             at_peak ? size : ~size};
        event[n++] = (Event){life.end, b, 0};
    }
    if (n)
        qsort(event, n, sizeof *event, by_step);
    return n;
}

/* A byte left over weighs as much as neighbours whose deaths are so far apart
 * that the mean buffer would have been written WEIGHT times over. */
static double price_of_steps(const PackProblem *problem) {
    enum { WEIGHT = 8 };
    double bytes = 0, steps = 1;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
        bytes += (double)buf->bytes[0];
        steps += buf->end > buf->first ? buf->end - buf->first : 0;
    }
    return bytes / steps / WEIGHT;
}

/* True if all found a place. */
static bool walk(Arena *arena, const PackProblem *problem, bool backwards,
                 uint32_t peak, double price, uint64_t *offset) {
    const Pool *pool = &problem->pool[0];
    Side side = {problem, backwards, backwards ? ~(peak + 1) : peak};
    uint32_t n_lives = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        n_lives += is_on(&side, b);
    Event *event = ARENA_ARRAY(arena, Event, 2 * (size_t)n_lives);
    uint32_t *block = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    uint32_t n = list_events(&side, event);
    Heap heap = heap_new(arena, n_lives, pool->size - pool->size % pool->align);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t b = event[i].buf;
        if (!event[i].rank) {
            heap_give(&heap, block[b]);
            continue;
        }
        Wish wish = {size_of(&side, b), buf_align(pool, &problem->buf[b]),
                     life_on(&side, b).end,
                     event[i].step > side.start ? price : 0};
        block[b] = heap_take(&heap, &wish);
        if (!block[b])
            return false;
        offset[b] = heap.block[block[b]].at;
    }
    return true;
}

static bool is_plain(const PackProblem *problem) {
    bool plain = problem->n_pools == 1 && problem_is_plain(problem);
    for (uint32_t b = 0; b < problem->n_bufs && plain; b++) {
        const Buffer *buf = &problem->buf[b];
        uint64_t align = buf_align(&problem->pool[0], buf);
        plain = buf->pin_pool < 0 && align <= INT64_MAX &&
                buf->bytes[0] <= INT64_MAX - align;
    }
    return plain;
}

static bool walk_both_ways(const PackProblem *problem, uint32_t peak,
                           double price, uint64_t *offset) {
    bool fits = true;
    for (int side = 0; side < 2 && fits; side++) {
        Arena *scratch = arena_new("walk");
        fits = walk(scratch, problem, side, peak, price, offset);
        arena_free(scratch);
    }
    return fits;
}

/* Few buffers get several walks with other prices, for the best of them. */
static uint32_t count_walks(uint32_t n_bufs) {
    enum { MANY = 400000, MOST = 6 };
    return n_bufs > MANY ? 1 : n_bufs > MANY / MOST ? MANY / n_bufs : MOST;
}

/* The lowest of some walks; UINT64_MAX if none fits. */
static uint64_t walks(const PackProblem *problem, uint64_t bound, uint32_t peak,
                      uint64_t *offset) {
    static const double part[] = {1, 0.25, 4, 0, 0.5, 2};
    Arena *scratch = arena_new("walks");
    uint32_t n = problem->n_bufs;
    uint64_t least = UINT64_MAX;
    double price = price_of_steps(problem);
    PackResult other = {.offset = ARENA_ARRAY(scratch, uint64_t, n)};
    for (uint32_t k = 0; k < count_walks(n) && least > bound; k++) {
        if (!walk_both_ways(problem, peak, price * part[k], other.offset) ||
            placed_height(problem, &other) >= least)
            continue;
        least = placed_height(problem, &other);
        memcpy(offset, other.offset, n * sizeof *other.offset);
    }
    arena_free(scratch);
    return least;
}

/* A walk has no good place for a buffer that is larger than most: layers do.
 * They end where they come to be no lower, or take too long. */
static bool lay_lower(const PackProblem *problem, uint64_t least,
                      PackResult *result) {
    static const uint64_t most_steps = 700000000; /* some seconds */
    Arena *scratch = arena_new("layers");
    PackProblem lower = *problem;
    PackResult other = *result;
    if (least <= lower.pool[0].size)
        lower.pool[0].size = least - 1;
    other.offset = ARENA_ARRAY(scratch, uint64_t, problem->n_bufs);
    other.pool = ARENA_ARRAY(scratch, int32_t, problem->n_bufs);
    pack_layers_within(scratch, &lower, most_steps, &other);
    bool found = other.status == PACK_FITS;
    if (found)
        memcpy(result->offset, other.offset,
               problem->n_bufs * sizeof *other.offset);
    arena_free(scratch);
    return found;
}

void plan_large(Arena *arena, const PackProblem *problem, PackResult *result) {
    enum { NEAR = 1000 }; /* less than a thousandth above the bound */
    if (!is_plain(problem)) {
        plan_greedy_by_size(arena, problem, result);
        return;
    }
    uint32_t peak;
    uint64_t bound = pack_live_peak(arena, problem, &peak);
    uint64_t least = walks(problem, bound, peak, result->offset);
    bool fits = least < UINT64_MAX;
    if (!fits || least - bound > bound / NEAR)
        fits |= lay_lower(problem, least, result);
    if (fits) /* another planner may have left some without a pool */
        memset(result->pool, 0, problem->n_bufs * sizeof *result->pool);
    result->failed = PACK_NO_BUFFER;
    result->status = fits ? PACK_FITS : PACK_FAILS;
}
