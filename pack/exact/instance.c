/* instance.c - PlanProblem -> Strip: the same problem, smaller; see exact.h.
 *
 * Input: a problem of one pool. Output: items over sections of time, in units.
 *
 * Time. Only which buffers are alive together matters. The buffers alive at one
 * step are a clique of the conflict graph; a clique inside another adds
 * nothing. Walking over births and deaths, a maximal clique ends at the first
 * death after a birth, so a new section begins at the first birth after a
 * death: of 71 steps of a problem 66 remain, of 199 of another 148.
 *
 *     buffers   aaaaaaa        births a, b | deaths b | birth c ...
 *               bb  ccc   d
 *     sections  0   1     2
 *
 * Bytes. Every offset is a multiple of the pool's alignment, so a size may as
 * well be rounded up to one. In some best placement each buffer lies on the
 * bottom, on another, or on a pin: offsets are sums of rounded sizes and pins,
 * hence multiples of their greatest common divisor, the `unit` (buffers with an
 * alignment of their own are rounded up to it, so it counts, too). Only the
 * highest buffer shows its true size; Item.last keeps that exact.
 */
#include "base/arith.h"
#include "base/order.h"
#include "pack/cluster.h"
#include "pack/events.h"
#include "pack/exact/exact.h"

#include <stdlib.h>

/* Larger problems have no use for a search, and its memory grows with them. */
enum { MAX_ITEMS = 20000, MAX_MEMBERS = 1 << 23 };

/* Steps of an item's life between two gaps, later sections. */
typedef struct Span {
    uint32_t lo, hi, item;
} Span;

bool item_alive(const Item *item, uint32_t section) {
    for (uint32_t k = 0; k < item->n_gaps; k++)
        if (item->gap[k].first <= section && section < item->gap[k].end)
            return false;
    return item->lo <= section && section < item->hi;
}

bool items_meet(const Item *a, const Item *b) {
    uint32_t lo = a->lo > b->lo ? a->lo : b->lo;
    uint32_t hi = a->hi < b->hi ? a->hi : b->hi;
    if (!a->n_gaps && !b->n_gaps)
        return lo < hi;
    for (uint32_t t = a->lo; t < hi; t = item_next(a, t))
        if (t >= lo && item_alive(b, t))
            return true;
    return false;
}

/* Renumbers the times of lives in [lo, hi) to sections; their number. */
static uint32_t find_sections(Arena *arena, Span *item, uint32_t n) {
    LifeEvent *event = ARENA_ARRAY(arena, LifeEvent, 2 * (size_t)n);
    for (uint32_t i = 0; i < n; i++) {
        event[2 * i] = (LifeEvent){item[i].lo, true, i};
        event[2 * i + 1] = (LifeEvent){item[i].hi, false, i};
    }
    events_sort(event, 2 * (size_t)n);
    uint32_t n_sections = 0;
    bool died = true;
    for (uint32_t e = 0; e < 2 * n; e++) {
        Span *it = &item[event[e].who];
        if (!event[e].birth) {
            it->hi = n_sections;
            died = true;
            continue;
        }
        n_sections += died;
        it->lo = n_sections - 1;
        died = false;
    }
    return n_sections;
}

static uint32_t item_length(const Item *item) {
    uint32_t length = item->hi - item->lo;
    for (uint32_t k = 0; k < item->n_gaps; k++)
        length -= item->gap[k].end - item->gap[k].first;
    return length;
}

static bool find_members(Arena *arena, Strip *strip) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < strip->n; i++)
        total += item_length(&strip->item[i]);
    if (total > MAX_MEMBERS)
        return false;
    uint32_t *start = ARENA_ARRAY(arena, uint32_t, strip->n_sections + 2u);
    for (uint32_t i = 0; i < strip->n; i++)
        for (uint32_t t = strip->item[i].lo; t < strip->item[i].hi;
             t = item_next(&strip->item[i], t))
            start[t + 2]++;
    for (uint32_t t = 0; t < strip->n_sections; t++)
        start[t + 2] += start[t + 1];
    strip->members = ARENA_ARRAY(arena, uint32_t, total);
    for (uint32_t i = 0; i < strip->n; i++)
        for (uint32_t t = strip->item[i].lo; t < strip->item[i].hi;
             t = item_next(&strip->item[i], t))
            strip->members[start[t + 1]++] = i;
    strip->start = start;
    return true;
}

/* Bytes rounded up to the alignment; 0 if that leaves 63 bits. */
static uint64_t rounded(uint64_t bytes, uint64_t align) {
    uint64_t over = bytes % align, pad = over ? align - over : 0;
    return bytes > INT64_MAX - pad ? 0 : bytes + pad;
}

/* Sums of sizes must not overflow: all of them together have 62 bits. */
static bool find_unit(Strip *strip, const PackProblem *problem) {
    uint64_t sum = 0, align = problem->pool[0].align;
    for (uint32_t i = 0; i < strip->n; i++) {
        const Item *item = &strip->item[i];
        const Buffer *buf = &problem->buf[item->buf];
        uint64_t size = rounded(item->bytes, align);
        uint64_t end = buf->pin_pool < 0 ? 0 : buf->pin_offset;
        if (!size || size > INT64_MAX / 4 || end > INT64_MAX / 4)
            return false;
        uint64_t own = buf_align(&problem->pool[0], buf);
        if (own > align && own > INT64_MAX / 4)
            return false;
        own = own > align ? own : 0; /* sizes are multiples of the pool's */
        sum += size + end + own;
        if (sum > INT64_MAX / 4)
            return false;
        strip->total = sum;
        strip->unit = gcd(gcd(strip->unit, size), gcd(end, own));
        if (size - item->bytes > strip->padding)
            strip->padding = size - item->bytes;
    }
    return true;
}

static int by_pin(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return order_by(ORDER_UP(x[0], y[0]), ORDER_UP(x[1], y[1]));
}

static void sort_pins(Arena *arena, Strip *strip) {
    strip->n_pins = 0;
    int64_t(*key)[2] = arena_calloc(arena, strip->n, sizeof *key, 8);
    for (uint32_t i = 0; i < strip->n; i++)
        if (strip->item[i].pin >= 0) {
            key[strip->n_pins][0] = strip->item[i].pin;
            key[strip->n_pins++][1] = i;
        }
    strip->pins = ARENA_ARRAY(arena, uint32_t, strip->n_pins);
    if (strip->n_pins)
        qsort(key, strip->n_pins, sizeof *key, by_pin);
    for (uint32_t i = 0; i < strip->n_pins; i++)
        strip->pins[i] = (uint32_t)key[i][1];
}

static void measure_items(Strip *strip, const PackProblem *problem) {
    uint64_t align = problem->pool[0].align;
    for (uint32_t i = 0; i < strip->n; i++) {
        Item *item = &strip->item[i];
        const Buffer *buf = &problem->buf[item->buf];
        item->size = (int64_t)(rounded(item->bytes, align) / strip->unit);
        uint64_t own = buf_align(&problem->pool[0], buf);
        item->align = own > align ? (int64_t)(own / strip->unit) : 1;
        item->pin =
            buf->pin_pool < 0 ? -1 : (int64_t)(buf->pin_offset / strip->unit);
    }
}

/* Sections of the spans of all lives; a gap is what lies between two spans of
 * an item, where it is still one when steps have become sections. */
static void find_lives(Arena *arena, Strip *strip, const PackProblem *problem) {
    VEC(Span) all = {0};
    for (uint32_t i = 0; i < strip->n; i++) {
        const Buffer *buf = &problem->buf[strip->item[i].buf];
        uint32_t next = 0, at = buf->first;
        for (Steps s; next_span(buf, &next, &at, &s);)
            vec_push(arena, &all, ((Span){s.first, s.end, i}));
    }
    strip->n_sections = find_sections(arena, all.at, all.n);
    Steps *gap = ARENA_ARRAY(arena, Steps, all.n);
    for (uint32_t k = 0; k < all.n; k++) {
        Item *item = &strip->item[all.at[k].item];
        bool first = !k || all.at[k - 1].item != all.at[k].item;
        if (first) {
            item->lo = all.at[k].lo;
            item->gap = &gap[k];
        } else if (item->hi < all.at[k].lo) {
            gap[item->gap - gap + item->n_gaps++] =
                (Steps){item->hi, all.at[k].lo};
        }
        item->hi = all.at[k].hi;
    }
}

Strip *strip_new(Arena *arena, const PackProblem *problem) {
    if (problem->n_pools != 1)
        return NULL;
    Strip *strip = ARENA_NEW(arena, Strip);
    strip->deadline = problem->deadline;
    strip->item = ARENA_ARRAY(arena, Item, problem->n_bufs);
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
        if (buf->bytes[0] && buf_is_alive(buf))
            strip->item[strip->n++] = (Item){.buf = b, .bytes = buf->bytes[0]};
    }
    if (strip->n > MAX_ITEMS || !find_unit(strip, problem))
        return NULL;
    measure_items(strip, problem);
    find_lives(arena, strip, problem);
    return strip_index(arena, strip) ? strip : NULL;
}

bool strip_late(const Strip *strip) {
    return strip->deadline > 0 && pack_clock() >= strip->deadline;
}

bool strip_index(Arena *arena, Strip *strip) {
    strip->has_gaps = strip->has_grids = false;
    for (uint32_t i = 0; i < strip->n; i++) {
        strip->has_gaps |= strip->item[i].n_gaps > 0;
        strip->has_grids |= strip->item[i].align > 1;
    }
    sort_pins(arena, strip);
    return find_members(arena, strip);
}

uint64_t strip_bound(const Strip *strip) {
    uint64_t bound = 0;
    for (uint32_t t = 0; t < strip->n_sections; t++) {
        uint64_t sum = 0, padding = 0;
        for (uint32_t k = strip->start[t]; k < strip->start[t + 1]; k++) {
            const Item *item = &strip->item[strip->members[k]];
            uint64_t size = (uint64_t)item->size * strip->unit;
            uint64_t end = (uint64_t)item->pin * strip->unit + item->bytes;
            sum += size;
            if (size - item->bytes > padding)
                padding = size - item->bytes;
            if (item->pin >= 0 && end > bound)
                bound = end;
        }
        if (sum - padding > bound) /* one of them lies on top */
            bound = sum - padding;
    }
    return bound;
}

bool strip_limit(Strip *strip, uint64_t bytes) {
    strip->limit = bytes;
    strip->capacity = 0;
    for (uint32_t i = 0; i < strip->n; i++) {
        Item *item = &strip->item[i];
        if (item->bytes > bytes)
            return false;
        uint64_t last = (bytes - item->bytes) / strip->unit;
        item->last = last > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)last;
        if (item->last < item->pin)
            return false;
        if (item->pin >= 0)
            item->last = item->pin;
        else if (item->last + item->size > strip->capacity)
            strip->capacity = item->last + item->size;
    }
    for (uint32_t i = 0; i < strip->n_pins; i++) {
        const Item *item = &strip->item[strip->pins[i]];
        if (item->pin + item->size > strip->capacity)
            strip->capacity = item->pin + item->size;
    }
    return true;
}

uint32_t strip_component(const Strip *strip, uint32_t lo) {
    uint32_t end = lo + 1;
    for (uint32_t t = lo; t < end; t++)
        for (uint32_t k = strip->start[t]; k < strip->start[t + 1]; k++)
            if (strip->item[strip->members[k]].hi > end)
                end = strip->item[strip->members[k]].hi;
    return end;
}
