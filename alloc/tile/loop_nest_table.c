/* loop_nest_table.c - the cheapest tiles of a layer for every capacity.
 *
 * Input: a convolution's loops. Output: for each of 16 capacities between a
 * power of two and the next, the tiles that fit and cost least: cycles, and
 * those that their bytes take over DDR NEST_BYTE_PRICE times.
 * Method: a walk over sizes of tiles for the capacities between two powers of
 * two, a band, when one is asked for; for all larger ones, too, where smaller
 * ones were asked for before. Each size is offered to the capacities that hold
 * it. How long it takes is asked only if it would be the cheapest for one, were
 * the engine or the wires never to wait; where even the widest tiles of some
 * rows and channels would not, the others are left out. So are sizes that
 * hardly differ from others, and tiles that leave most of the capacity free.
 */
#include "alloc/tile/loop_nest.h"
#include "alloc/tile/tile.h"
#include "base/arith.h"
#include "base/size_grid.h"
#include "base/vec.h"

#include <assert.h>
#include <math.h>

enum {
    PER_OCTAVE = 16,
    BAND = PER_OCTAVE, /* capacities of one walk */
    BANDS = 40,
    NO_ENTRY = UINT16_MAX,
    SPOT_PART = 10, /* sizes that differ by less are left out */
    OUT_PART = 10,
    IN_PART = 6
};

typedef struct Band {
    const NestEntry *entry;
    uint16_t at[BAND];
} Band;

struct NestTable {
    uint32_t most; /* a capacity in which the layer is one tile */
    Band *band[BANDS];
};

typedef struct Cheap {
    double cost;
    uint32_t entry;
} Cheap;

/* One size of tiles of channels: how many there are, of output and of input
 * channels, bytes of weights in active memory, cycles of the engine. */
typedef struct Depth {
    uint32_t c, in_c;
    uint64_t across, inner;
    uint64_t weights, busy;
} Depth;

/* Of bands one behind the other. */
typedef struct Filling {
    Arena *arena;
    const Loops *l;
    uint32_t first, n;    /* bands */
    uint64_t least, most; /* bytes of tiles that are looked at */
    uint64_t mask;        /* of the bytes below the alignment; 0: unknown */
    uint64_t weights;     /* bytes, all of them once */
    uint64_t leaving;     /* bytes that leave active memory */
    double latency[2];    /* cycles, of a tile that comes, or leaves */
    double worth;                /* cycles of a byte */
    uint64_t capacity[BANDS * BAND];
    Cheap at[BANDS * BAND];
    VEC(NestEntry) entry;
} Filling;

typedef struct Thin {
    uint32_t n, size[NEST_CUTS];
} Thin;

typedef struct Spots {
    uint32_t n;
    Cut at[NEST_CUTS];
} Spots;

static uint32_t pieces(uint32_t size, uint32_t tile) {
    return (size + tile - 1) / tile;
}

/* ---- sizes ---- */

/* Of the sizes that cut an axis evenly those that differ by one part in so
 * many, and those that leave no lane of the array idle. */
static Thin thin_sizes(uint32_t size, uint32_t lanes, uint32_t part) {
    uint32_t all[NEST_CUTS], n = nest_sizes(size, all);
    Thin t = {0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = t.n ? t.size[t.n - 1] : UINT32_MAX;
        bool even = lanes > 1 && all[i] % lanes == 0;
        if (even || all[i] == 1 || before - all[i] >= before / part)
            t.size[t.n++] = all[i];
    }
    return t;
}

static Spots spots_make(Arena *arena, const Loops *l, uint32_t axis) {
    uint32_t in = axis ? l->in.w : l->in.h, out = axis ? l->out.w : l->out.h;
    Thin t = thin_sizes(out, 1, SPOT_PART);
    Spots s = {.n = t.n};
    for (uint32_t i = 0; i < t.n; i++)
        s.at[i] = nest_cut(arena, l->conv, axis, in, out, t.size[i]);
    return s;
}

/* ---- one size ---- */

static const double WORTH = 511.0 / 512;

/* By enough to ask. */
static bool may_enter(const Filling *f, uint32_t i, uint64_t moved,
                      double cycles) {
    return cycles + f->worth * (double)moved < WORTH * f->at[i].cost;
}

/* For the capacities of a band from that one on. */
static bool enter(Filling *f, uint32_t first, const NestEntry *e) {
    uint32_t end = (first / BAND + 1) * BAND, i = first;
    double cost = (double)e->cycles + f->worth * (double)e->moved;
    for (; i < end && cost < f->at[i].cost; i++)
        f->at[i] = (Cheap){cost, f->entry.n};
    return i > first;
}

static uint32_t number_above(uint64_t bytes) {
    uint32_t number = grid_number(PER_OCTAVE, bytes);
    return number + (grid_size(PER_OCTAVE, number) < bytes);
}

static double latency(const Loops *l, const HwMemory *memory) {
    return memory ? memory->latency * l->spec->clock : 0;
}

/* How often all pixels are read, or weights, as nest_input_reads and
 * nest_weight_reads have it. */
static uint64_t input_times(const Loops *l, const Depth *d, uint64_t spots,
                            bool stay) {
    bool again = d->inner > 1 || (stay && spots > 1);
    return again && !l->by_channel ? d->across : 1;
}

static uint64_t weight_times(const Depth *d, uint64_t spots, bool stay) {
    return d->inner > 1 || (d->across > 1 && !stay) ? spots : 1;
}

/* The wires alone: all bytes, and a latency for each tile that comes or
 * leaves; weights have none. `moved`: bytes that come. */
static double wire_cycles(const Filling *f, const Sizes *s, const Depth *d,
                          bool stay, uint64_t *moved) {
    const Loops *l = f->l;
    uint64_t spots = (uint64_t)s->rows->n * s->cols->n;
    uint64_t times = input_times(l, d, spots, stay);
    uint64_t tiles = spots * (l->by_channel ? d->across : d->inner);
    *moved = f->weights * weight_times(d, spots, stay);
    if (l->style->in_backing)
        *moved += s->rows->sum * s->cols->sum * l->in.c * times * l->element;
    return l->wire * (double)(*moved + f->leaving) +
           f->latency[0] * (double)(times * tiles) +
           f->latency[1] * (double)(spots * d->across);
}

/* Cycles, were the engine or the wires never to wait. */
static double least_cycles(const Filling *f, const Sizes *s, const Depth *d,
                           bool stay, uint64_t *moved) {
    uint64_t tiles = (uint64_t)s->rows->n * s->cols->n * d->across * d->inner;
    double busy = (double)d->busy + (double)tiles * f->l->engine->setup;
    double wires = wire_cycles(f, s, d, stay, moved);
    return wires > busy ? wires : busy;
}

/* Whether it would for some capacity of these bands, were it no larger than the
 * least. */
static bool may_enter_any(const Filling *f, const Sizes *s, const Depth *d,
                          uint32_t first, uint32_t end) {
    for (int stay = 0; stay < 2; stay++) {
        uint64_t moved;
        double cycles = least_cycles(f, s, d, stay, &moved);
        for (uint32_t i = first; i < end && i < f->n; i++)
            if (may_enter(f, i * BAND, moved, cycles))
                return true;
    }
    return false;
}

/* One size, to the capacities that hold it: from `i` on, of its own band and of
 * the next one. */
static void offer(Filling *f, const Sizes *s, const Depth *d, uint64_t end,
                  uint32_t i) {
    const Loops *l = f->l;
    uint64_t tiles = (uint64_t)s->rows->n * s->cols->n * d->across * d->inner;
    uint32_t bands = f->n * BAND, next = (i / BAND + 1) * BAND;
    if (tiles > NEST_TILES)
        return;
    for (int stay = 0; stay < 2; stay++) {
        NestEntry e = {0};
        double cycles = least_cycles(f, s, d, stay, &e.moved);
        bool own = may_enter(f, i, e.moved, cycles);
        bool other = next < bands && f->capacity[next] < 2 * end &&
                     may_enter(f, next, e.moved, cycles);
        if (!own && !other)
            continue;
        e.cycles = nest_cycles(l, s, stay);
        own = own && enter(f, i, &e);
        other = other && enter(f, next, &e);
        if (!own && !other)
            continue;
        e.tile_h = s->rows->tile;
        e.tile_w = s->cols->tile;
        e.nest = (Nest){.c = s->c, .in_c = s->in_c, .weights_stay = stay};
        e.end = nest_lay(l, s, &e.nest);
        assert(e.end == end && e.moved == nest_moved(l, s, stay));
        vec_push(f->arena, &f->entry, e);
    }
}

/* ---- all of them ---- */

static uint64_t aligned(const Filling *f, uint64_t bytes) {
    return f->mask ? (bytes + f->mask) & ~f->mask
                   : round_up(bytes, f->l->align);
}

/* The byte behind them, as nest_lay has it. */
static uint64_t end_of(const Filling *f, const Depth *d, const Cut *rows,
                       const Cut *cols) {
    const Loops *l = f->l;
    uint64_t spot = (uint64_t)rows->most * cols->most, input = 0;
    bool several = (uint64_t)rows->n * cols->n * d->inner > 1 ||
                   (l->by_channel && d->across > 1);
    if (l->style->in_backing)
        input = aligned(f, spot * d->in_c * l->element) << several;
    return input + d->weights +
           aligned(f,
                   (uint64_t)rows->tile * cols->tile * d->c * l->style->sums);
}

/* From the widest tile that fits to the narrowest that is not too small. */
static void fill_columns(Filling *f, const Cut *rows, const Spots *cols,
                         const Depth *d) {
    uint32_t i = f->n * BAND - 1, band = f->n;
    bool useful = false; /* the widest of the band, and so others */
    for (uint32_t j = 0; j < cols->n; j++) {
        Sizes s = {rows, &cols->at[j], d->c, d->in_c};
        uint64_t end = end_of(f, d, rows, s.cols);
        if (end <= f->least)
            return;
        if (end > f->most)
            continue;
        while (f->capacity[i] < end)
            i++;
        while (i > 0 && f->capacity[i - 1] >= end)
            i--;
        if (i / BAND != band) {
            band = i / BAND;
            useful = may_enter_any(f, &s, d, band, band + 2);
        }
        if (useful)
            offer(f, &s, d, end, i);
    }
}

/* Whether the smallest of these spots fits, and the largest is not too small.
 */
static bool some_fit(const Filling *f, const Cut *rows, uint32_t n_rows,
                     const Spots *cols, const Depth *d) {
    return end_of(f, d, &rows[n_rows - 1], &cols->at[cols->n - 1]) <= f->most &&
           end_of(f, d, rows, cols->at) > f->least;
}

static Depth depth_make(const Filling *f, uint32_t c, uint32_t in_c) {
    const Loops *l = f->l;
    Depth d = {.c = c, .in_c = in_c, .across = pieces(l->out.c, c)};
    uint64_t in = l->by_channel ? 1 : in_c;
    d.inner = l->by_channel ? 1 : pieces(l->in.c, in_c);
    d.weights = aligned(f, c * in * l->taps * l->element)
                << (d.across * d.inner > 1);
    return d;
}

static void fill_channels(Filling *f, uint32_t c, uint32_t in_c,
                          const Spots *rows, const Spots *cols) {
    Depth d = depth_make(f, c, in_c);
    if (!some_fit(f, rows->at, rows->n, cols, &d))
        return;
    d.busy = nest_busy_cycles(f->l, c, in_c);
    if (!may_enter_any(f, &(Sizes){rows->at, cols->at, c, in_c}, &d, 0, f->n))
        return;
    for (uint32_t i = 0; i < rows->n; i++)
        if (some_fit(f, &rows->at[i], 1, cols, &d))
            fill_columns(f, &rows->at[i], cols, &d);
}

static void fill(Filling *f) {
    const Loops *l = f->l;
    Spots rows = spots_make(f->arena, l, 0), cols = spots_make(f->arena, l, 1);
    Thin c = thin_sizes(l->out.c, l->engine->unroll.out_c, OUT_PART);
    Thin in = thin_sizes(l->in.c, l->engine->unroll.in_c, IN_PART);
    for (uint32_t i = 0; i < c.n; i++)
        for (uint32_t k = 0; k < (l->by_channel ? 1 : in.n); k++)
            fill_channels(f, c.size[i], l->by_channel ? c.size[i] : in.size[k],
                          &rows, &cols);
}

/* Those that are cheapest for some capacity. */
static Band *band_of(Arena *arena, const Filling *f, uint32_t number) {
    Band *band = ARENA_NEW(arena, Band);
    uint32_t known[BAND];
    VEC(NestEntry) entry = {0};
    for (uint32_t i = 0; i < BAND; i++) {
        const Cheap *cheap = &f->at[number * BAND + i];
        uint32_t k = 0;
        band->at[i] = NO_ENTRY;
        if (cheap->cost >= HUGE_VAL)
            continue;
        while (k < entry.n && known[k] != cheap->entry)
            k++;
        if (k == entry.n) {
            vec_push(arena, &entry, f->entry.at[cheap->entry]);
            known[k] = cheap->entry;
        }
        band->at[i] = (uint16_t)k;
    }
    band->entry = entry.at;
    return band;
}

static void filling_open(Filling *f, Arena *own, const Loops *l, uint32_t first,
                         uint32_t n) {
    f->arena = own;
    f->l = l;
    f->first = first;
    f->n = n;
    f->mask = l->align & (l->align - 1) ? 0 : l->align - 1;
    f->weights = nest_weights(l);
    if (l->to)
        f->leaving = (uint64_t)l->out.c * l->out.h * l->out.w * l->element;
    f->latency[0] = latency(l, l->from);
    f->latency[1] = latency(l, l->to);
    f->worth = NEST_BYTE_PRICE * l->wire;
    for (uint32_t i = 0; i < n * BAND; i++) {
        f->capacity[i] = grid_size(PER_OCTAVE, first * BAND + i);
        f->at[i].cost = HUGE_VAL;
    }
    f->least = f->capacity[0] / 2;
    f->most = f->capacity[n * BAND - 1];
}

/* Fills a band; all up to the next one that is there, where the one below it
 * is: then sizes are asked for in turn. */
static void bands_make(Arena *arena, NestTable *table, const Loops *l,
                       uint32_t first) {
    bool in_turn = first > 0 && table->band[first - 1];
    uint32_t end = first + 1;
    while (in_turn && end <= table->most / BAND && !table->band[end])
        end++;
    Arena *own = arena_new("nest bands");
    Filling *f = ARENA_NEW(own, Filling);
    Loops known = *l;
    known.memo = ARENA_ARRAY(own, NestMemo, 1 << NEST_MEMO_BITS);
    filling_open(f, own, &known, first, end - first);
    fill(f);
    for (uint32_t i = 0; i < f->n; i++)
        table->band[first + i] = band_of(arena, f, i);
    arena_free(own);
}

NestTable *nest_table_new(Arena *arena, const Loops *l) {
    NestTable *table = ARENA_NEW(arena, NestTable);
    Arena *own = arena_new("whole layer");
    Nest unused;
    Cut rows = nest_cut(own, l->conv, 0, l->in.h, l->out.h, l->out.h);
    Cut cols = nest_cut(own, l->conv, 1, l->in.w, l->out.w, l->out.w);
    Sizes all = {&rows, &cols, l->out.c, l->in.c};
    table->most = number_above(nest_lay(l, &all, &unused));
    arena_free(own);
    return table;
}

const NestEntry *nest_table_find(Arena *arena, NestTable *table, const Loops *l,
                                 uint64_t capacity) {
    uint32_t number = grid_number(PER_OCTAVE, capacity);
    number = number < table->most ? number : table->most;
    uint32_t i = number / BAND;
    if (!capacity || i >= BANDS)
        return NULL;
    if (!table->band[i])
        bands_make(arena, table, l, i);
    uint16_t at = table->band[i]->at[number % BAND];
    return at == NO_ENTRY ? NULL : &table->band[i]->entry[at];
}
