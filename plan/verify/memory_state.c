/* memory_state.c - what the memories hold while a plan is replayed; see
 * memory_state.h.
 *
 * Input: placements that are written, bytes that are lost. Output: whether rows
 * of a placement are there.
 * Invariant: areas of one memory do not overlap in what they hold; what an area
 * holds is in the order of its first channels.
 */
#include "plan/verify/memory_state.h"

#include "base/arith.h"

#include <string.h>

/* Channels [from, from + n_c) of a tensor that is no concat, from channel c of
 * the area on, pixels [at, end), counted row by row; pixel p is pixel p - base
 * of the area's channels. */
typedef struct Held {
    TensorId tensor;
    uint32_t c, from, n_c;
    uint64_t base, at, end;
} Held;

typedef VEC(Held) Helds;

typedef struct Area {
    uint64_t at, end; /* `end`: of whole granules */
    Volume whole;
    Helds held;
    uint32_t widest; /* nothing that it holds has more channels */
} Area;

typedef struct InMemory {
    VEC(Area) at;
} InMemory;

struct Areas {
    Arena *arena;
    const Graph *g;
    const HwSpec *spec;
    InMemory *memory; /* by memory */
    Helds pieces;     /* room */
};

/* ---- what a tensor is made of ---- */

bool areas_is_concat(const Areas *all, TensorId t) {
    const Node *node = graph_node(all->g, graph_tensor(all->g, t)->producer);
    if (node->op != OP_CONCAT)
        return false;
    Volume whole = plan_volume(all->g, t);
    uint64_t c = 0;
    for (uint32_t i = 0; i < node->n_in; i++) {
        Volume v = plan_volume(all->g, node->in[i]);
        if (v.h != whole.h || v.w != whole.w)
            return false;
        c += v.c;
    }
    return c == whole.c && node->attr.axis.axis == 1;
}

typedef struct BaseTensor {
    TensorId tensor;
    uint32_t c, from, n_c; /* as in Held */
} BaseTensor;

typedef struct BaseTensors {
    VEC(BaseTensor) at;
} BaseTensors;

static void leaves_of(Areas *all, TensorId t, uint32_t c, BaseTensors *out) {
    if (!areas_is_concat(all, t)) {
        BaseTensor leaf = {t, c, 0, plan_volume(all->g, t).c};
        vec_push(all->arena, &out->at, leaf);
        return;
    }
    const Node *node = graph_node(all->g, graph_tensor(all->g, t)->producer);
    for (uint32_t i = 0; i < node->n_in; i++) {
        leaves_of(all, node->in[i], c, out);
        c += plan_volume(all->g, node->in[i]).c;
    }
}

/* ---- areas ---- */

static Area *area_find(Areas *all, const Placement *p) {
    InMemory *areas = &all->memory[p->memory];
    for (uint32_t i = 0; i < areas->at.n; i++) {
        Area *a = &areas->at.at[i];
        if (a->at == p->offset && volumes_same(&a->whole, &p->whole))
            return a;
    }
    return NULL;
}

/* The bytes of channels [c, c + n_c) of the volume at `at`: whole granules. */
static Range part_bytes(const Layout *layout, const Volume *whole, uint64_t at,
                        uint32_t c, uint32_t n_c) {
    Range r;
    address_span(layout, whole, c, n_c, &r.first, &r.end);
    return (Range){at + r.first, at + r.end};
}

/* What the placement holds of its tensor. */
static void leaves_held(Areas *all, const Placement *p, BaseTensors *out) {
    uint32_t first = p->c, end = p->c + p->n_c, n = 0;
    leaves_of(all, p->tensor, 0, out);
    for (uint32_t i = 0; i < out->at.n; i++) {
        BaseTensor leaf = out->at.at[i];
        uint32_t stop = smaller32(leaf.c + leaf.n_c, end);
        uint32_t skip = larger32(leaf.c, first) - leaf.c;
        if (leaf.c + skip >= stop)
            continue;
        leaf.from += skip;
        leaf.n_c = stop - leaf.c - skip;
        leaf.c = leaf.c + skip - p->c + p->part_c;
        out->at.at[n++] = leaf;
    }
    out->at.n = n;
}

Range areas_bytes(const Areas *all, const Placement *p) {
    return part_bytes(all->spec->memory[p->memory].layout, &p->whole, p->offset,
                      p->part_c, p->n_c);
}

/* How many of the held channels lie outside the bytes: the first of them before
 * these, or the last of them behind. */
static uint32_t channels_outside(const Layout *layout, const Area *a,
                                 const Held *h, Range bytes, bool behind) {
    uint32_t lo = 0, hi = h->n_c;
    while (lo < hi) {
        uint32_t mid = (lo + hi + 1) / 2;
        uint32_t c = behind ? h->c + h->n_c - mid : h->c;
        Range part = part_bytes(layout, &a->whole, a->at, c, mid);
        if (behind ? part.first >= bytes.end : part.end <= bytes.first)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* Channels [at, at + n) of what is held, if there are any. */
static uint32_t held_cut(const Held *h, uint32_t at, uint32_t n, Held *out) {
    *out = *h;
    out->c += at;
    out->from += at;
    out->n_c = n;
    return n > 0;
}

/* What is left when the bytes are overwritten. */
static uint32_t held_outside(const Layout *layout, const Area *a, const Held *h,
                             Range bytes, Held left[2]) {
    if (!ranges_meet(part_bytes(layout, &a->whole, a->at, h->c, h->n_c),
                     bytes)) {
        left[0] = *h;
        return 1;
    }
    uint32_t before = channels_outside(layout, a, h, bytes, false);
    uint32_t behind = channels_outside(layout, a, h, bytes, true);
    uint32_t n = held_cut(h, 0, before, left);
    return n + held_cut(h, h->n_c - behind, behind, left + n);
}

/* In the order of first channels; most are already. */
static void helds_sort(Helds *held) {
    for (uint32_t i = 1; i < held->n; i++) {
        Held h = held->at[i];
        uint32_t k = i;
        for (; k > 0 && held->at[k - 1].c > h.c; k--)
            held->at[k] = held->at[k - 1];
        held->at[k] = h;
    }
}

static void area_clear(Areas *all, const Layout *layout, Area *a, Range bytes) {
    Held left[2];
    uint32_t n = a->held.n, kept = 0;
    if (!ranges_meet((Range){a->at, a->end}, bytes))
        return;
    for (uint32_t i = 0; i < n; i++) {
        Held old = a->held.at[i];
        uint32_t pieces = held_outside(layout, a, &old, bytes, left);
        if (pieces > 0)
            a->held.at[kept++] = left[0];
        if (pieces > 1)
            vec_push(all->arena, &a->held, left[1]);
    }
    for (uint32_t i = n; i < a->held.n; i++)
        a->held.at[kept++] = a->held.at[i];
    a->held.n = kept;
    helds_sort(&a->held);
}

/* Everything in the bytes is lost, but for the volume of `keep`. */
static void areas_clear(Areas *all, uint32_t memory, Range bytes,
                        const Placement *keep) {
    const Layout *layout = all->spec->memory[memory].layout;
    InMemory *areas = &all->memory[memory];
    uint32_t left = 0;
    for (uint32_t i = 0; i < areas->at.n; i++) {
        Area *a = &areas->at.at[i];
        bool kept = keep && a->at == keep->offset &&
                    volumes_same(&a->whole, &keep->whole);
        if (!kept)
            area_clear(all, layout, a, bytes);
        if (kept || a->held.n)
            areas->at.at[left++] = *a;
    }
    areas->at.n = left;
}

/* What is left of `old` when `now` is written: up to four pieces. */
static uint32_t held_left(const Held *old, const Held *now, Held left[4]) {
    int64_t shift = (int64_t)(old->base - now->base);
    int64_t at = (int64_t)now->at + shift, end = (int64_t)now->end + shift;
    uint32_t c = larger32(old->c, now->c), n = 0;
    uint32_t c_end = smaller32(old->c + old->n_c, now->c + now->n_c);
    if (c >= c_end || end <= (int64_t)old->at || at >= (int64_t)old->end) {
        left[n++] = *old;
        return n;
    }
    Held middle = *old;
    if (at > (int64_t)old->at) {
        left[n] = *old;
        left[n++].end = middle.at = (uint64_t)at;
    }
    if (end < (int64_t)old->end) {
        left[n] = *old;
        left[n++].at = middle.end = (uint64_t)end;
    }
    n += held_cut(&middle, 0, c - old->c, left + n);
    return n + held_cut(&middle, c_end - old->c, old->c + old->n_c - c_end,
                        left + n);
}

static bool joins(const Held *old, const Held *now) {
    return same_tensor(old->tensor, now->tensor) && old->c == now->c &&
           old->from == now->from && old->n_c == now->n_c &&
           old->base == now->base && old->at <= now->end && now->at <= old->end;
}

/* The first that begins at channel c or behind it. */
static uint32_t held_behind(const Area *area, uint64_t c) {
    uint32_t lo = 0, hi = area->held.n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (area->held.at[mid].c < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The first that may have channel c. */
static uint32_t held_around(const Area *area, uint32_t c) {
    return held_behind(area, c < area->widest ? 0 : c - area->widest + 1);
}

/* Takes what it joins with out of [*first, *end) of the area. */
static Held area_join(Area *area, uint32_t first, uint32_t *end, Held now) {
    for (uint32_t i = first; i < *end;) {
        const Held *old = &area->held.at[i];
        if (!joins(old, &now)) {
            i++;
            continue;
        }
        now.at = old->at < now.at ? old->at : now.at;
        now.end = old->end > now.end ? old->end : now.end;
        memmove(&area->held.at[i], &area->held.at[i + 1],
                (--area->held.n - i) * sizeof *old);
        --*end;
        i = first;
    }
    return now;
}

/* Puts the pieces where [first, end) of the area were. */
static void area_splice(Areas *all, Area *area, uint32_t first, uint32_t end) {
    const Helds *pieces = &all->pieces;
    uint32_t behind = area->held.n - end, n = first + pieces->n + behind;
    while (area->held.cap < n) {
        area->held.at = vec_room(all->arena, area->held.at, area->held.cap,
                                 &area->held.cap, sizeof *area->held.at);
    }
    memmove(area->held.at + first + pieces->n, area->held.at + end,
            behind * sizeof *area->held.at);
    memcpy(area->held.at + first, pieces->at,
           pieces->n * sizeof *area->held.at);
    area->held.n = n;
}

static void area_put(Areas *all, Area *area, Held now) {
    Held left[4];
    uint32_t first = held_around(area, now.c);
    uint32_t end = held_behind(area, (uint64_t)now.c + now.n_c);
    now = area_join(area, first, &end, now);
    all->pieces.n = 0;
    for (uint32_t i = first; i < end; i++) {
        uint32_t n = held_left(&area->held.at[i], &now, left);
        for (uint32_t k = 0; k < n; k++)
            vec_push(all->arena, &all->pieces, left[k]);
    }
    vec_push(all->arena, &all->pieces, now);
    helds_sort(&all->pieces);
    area_splice(all, area, first, end);
    area->widest = larger32(area->widest, now.n_c);
}

/* ---- pixels ---- */

/* Pixels that lie one behind the other: pixel p in pixel p - base. */
typedef struct Stretch {
    uint64_t base, at, end;
} Stretch;

/* Walks through the stretches of a part of a tensor. */
typedef struct Walk {
    const Placement *p;
    Part part;
    uint32_t width, row, col; /* row, col: the next pixel */
    Stretch now;
} Walk;

static Walk walk_of(const Areas *all, const Placement *p, Part part) {
    return (Walk){.p = p,
                  .part = part,
                  .width = plan_volume(all->g, p->tensor).w,
                  .row = part.row,
                  .col = part.col};
}

/* Columns of one row of a volume that has no others. */
static void walk_box(Walk *w) {
    const Placement *p = w->p;
    uint64_t row = (uint64_t)w->row * w->width, at = row + w->part.col;
    uint64_t in = (uint64_t)(w->row - p->row) * p->whole.w;
    w->now = (Stretch){row + p->col - in, at, at + w->part.cols};
    w->row++;
}

/* Whole rows up to the end of a turn of the ring, or columns of one row. */
static void walk_rows(Walk *w) {
    const Placement *p = w->p;
    uint32_t turn = p->ring ? w->row / p->whole.h * p->whole.h : p->row;
    uint32_t end = w->part.row + w->part.rows;
    uint64_t width = w->width;
    if (p->ring)
        end = smaller32(end, turn + p->whole.h);
    w->now = (Stretch){turn * width, w->row * width, end * width};
    if (w->part.cols < width) {
        end = w->row + 1;
        w->now.at += w->part.col;
        w->now.end = w->now.at + w->part.cols;
    }
    w->row = end;
}

/* Columns of one row of a line buffer, up to where their ring ends. Pixels are
 * counted from as many on as it has, so that no base is negative. */
static void walk_lines(Walk *w) {
    const LineBuffer *lines = &w->p->lines;
    uint32_t pitch = w->p->pitch ? w->p->pitch : w->width;
    uint32_t col = w->col - w->p->left;
    uint64_t at =
        lines_pixels(lines, pitch) + (uint64_t)w->row * w->width + w->col;
    uint32_t n = smaller32(lines_run(lines, pitch, w->row, col),
                           w->part.col + w->part.cols - w->col);
    uint64_t in = lines_pixel(lines, pitch, w->row, col);
    w->now = (Stretch){at - in, at, at + n};
    w->col += n;
    if (w->col == w->part.col + w->part.cols) {
        w->col = w->part.col;
        w->row++;
    }
}

static bool walk_next(Walk *w) {
    if (w->row >= w->part.row + w->part.rows || !w->part.cols)
        return false;
    bool box = !w->p->ring && w->p->whole.w != w->width;
    (w->p->lines.band ? walk_lines : box ? walk_box : walk_rows)(w);
    return true;
}

bool areas_parts_meet(const Areas *all, const Placement *p, Part part,
                      const Placement *other, Part at) {
    Walk a = walk_of(all, p, part);
    while (walk_next(&a)) {
        Range mine = {a.now.at - a.now.base, a.now.end - a.now.base};
        Walk b = walk_of(all, other, at);
        while (walk_next(&b))
            if (ranges_meet(mine, (Range){b.now.at - b.now.base,
                                          b.now.end - b.now.base}))
                return true;
    }
    return false;
}

static void leaf_put(Areas *all, Area *area, const Placement *p,
                     const BaseTensor *leaf, Part part) {
    Walk w = walk_of(all, p, part);
    while (walk_next(&w))
        area_put(all, area,
                 (Held){leaf->tensor, leaf->c, leaf->from, leaf->n_c,
                        w.now.base, w.now.at, w.now.end});
}

/* A piece that has pixel `at` of channel `c` of the area for the leaf. */
static const Held *piece_at(const Area *area, const BaseTensor *leaf,
                            uint32_t c, uint64_t base, uint64_t at) {
    for (uint32_t i = held_around(area, c); i < area->held.n; i++) {
        const Held *h = &area->held.at[i];
        if (h->c > c)
            return NULL;
        if (same_tensor(h->tensor, leaf->tensor) &&
            h->c - h->from == leaf->c - leaf->from && c < h->c + h->n_c &&
            h->base == base && h->at <= at && at < h->end)
            return h;
    }
    return NULL;
}

/* Channel by channel, those together that the same pieces cover. */
static bool area_holds(const Area *area, const BaseTensor *leaf,
                       const Stretch *s) {
    for (uint32_t c = leaf->c, next; c < leaf->c + leaf->n_c; c = next) {
        next = leaf->c + leaf->n_c;
        for (uint64_t at = s->at; at < s->end;) {
            const Held *h = piece_at(area, leaf, c, s->base, at);
            if (!h)
                return false;
            at = h->end;
            next = smaller32(next, h->c + h->n_c);
        }
    }
    return true;
}

bool areas_find(Areas *all, const Placement *p) {
    return area_find(all, p) != NULL;
}

bool areas_read(Areas *all, const Placement *p, Part part) {
    const Area *area = area_find(all, p);
    Walk w = walk_of(all, p, part);
    BaseTensors leaves = {0};
    leaves_held(all, p, &leaves);
    while (area && walk_next(&w))
        for (uint32_t i = 0; i < leaves.at.n; i++)
            if (!area_holds(area, &leaves.at.at[i], &w.now))
                return false;
    return area != NULL;
}

/* `lost`: what lies there is nothing that anybody reads. */
static void part_put(Areas *all, const Placement *p, Part part, bool lost) {
    areas_clear(all, p->memory, areas_bytes(all, p), p);
    Area *area = area_find(all, p);
    if (!area) {
        const Layout *layout = all->spec->memory[p->memory].layout;
        Range bytes = part_bytes(layout, &p->whole, p->offset, 0, p->whole.c);
        Area fresh = {.at = p->offset, .end = bytes.end, .whole = p->whole};
        vec_push(all->arena, &all->memory[p->memory].at, fresh);
        area = area_find(all, p);
    }
    BaseTensors leaves = {0};
    leaves_held(all, p, &leaves);
    for (uint32_t i = 0; i < leaves.at.n; i++) {
        if (lost)
            leaves.at.at[i].tensor = (TensorId){NONE};
        leaf_put(all, area, p, &leaves.at.at[i], part);
    }
}

void areas_write(Areas *all, const Placement *p, Part part) {
    part_put(all, p, part, false);
}

void areas_spoil(Areas *all, const Placement *p, Part part) {
    part_put(all, p, part, true);
}

void areas_drop(Areas *all, uint32_t memory, Range bytes) {
    areas_clear(all, memory, bytes, NULL);
}

Areas *areas_new(Arena *arena, const Graph *g, const HwSpec *spec) {
    Areas *areas = ARENA_NEW(arena, Areas);
    *areas = (Areas){.arena = arena,
                     .g = g,
                     .spec = spec,
                     .memory = ARENA_ARRAY(arena, InMemory, spec->n_memories)};
    return areas;
}
