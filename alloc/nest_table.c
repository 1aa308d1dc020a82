/* nest_table.c - the cheapest tiles of a layer for every capacity.
 *
 * Input: a convolution's loops. Output: for each of 16 capacities between a
 * power of two and the next, and for each price of a byte (nest_prices), the
 * tiles that fit and cost least: cycles, and those that their bytes take over
 * DDR so many times.
 * Method: one walk over sizes of tiles for the capacities between two powers
 * of two, when they are asked for; each size is offered to the capacities that
 * hold it. How long it takes is asked only if it would be the cheapest for one,
 * were the engine or the wires never to wait. Sizes that hardly differ from
 * others are left out, and so are tiles that leave most of the capacity free.
 */
#include "alloc/boxes.h"
#include "alloc/nest.h"
#include "base/arith.h"
#include "base/vec.h"

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

const uint32_t nest_prices[N_NEST_PRICES] = {TILE_BYTE_PRICE, 75, 40, 20, 10};

typedef struct Band {
    const NestEntry *entry;
    uint16_t at[BAND][N_NEST_PRICES];
} Band;

struct NestTable {
    uint32_t most; /* a capacity in which the layer is one tile */
    Band *band[BANDS];
};

typedef struct Cheap {
    double cost;
    uint32_t entry;
} Cheap;

typedef struct Filling {
    Arena *arena;
    const Loops *l;
    uint32_t first;       /* capacity */
    uint64_t least, most; /* bytes of tiles that are looked at */
    Cheap at[BAND][N_NEST_PRICES];
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

static double cost_of(const Filling *f, uint32_t price, uint64_t moved,
                      double cycles) {
    return cycles + nest_prices[price] * f->l->wire * (double)moved;
}

/* By enough to ask. */
static bool may_enter(const Filling *f, uint32_t i, uint64_t moved,
                      double cycles) {
    for (uint32_t p = 0; p < N_NEST_PRICES; p++)
        if (cost_of(f, p, moved, cycles) < WORTH * f->at[i][p].cost)
            return true;
    return false;
}

static void enter(Filling *f, uint32_t first, const NestEntry *e) {
    uint32_t index = f->entry.n;
    bool any = false;
    for (uint32_t p = 0; p < N_NEST_PRICES; p++) {
        double cost = cost_of(f, p, e->moved, (double)e->cycles);
        for (uint32_t i = first; i < BAND && cost < f->at[i][p].cost; i++) {
            f->at[i][p] = (Cheap){cost, index};
            any = true;
        }
    }
    if (any)
        vec_push(f->arena, &f->entry, *e);
}

static uint32_t number_above(uint64_t bytes) {
    uint32_t number = box_number(PER_OCTAVE, bytes);
    return number + (box_size(PER_OCTAVE, number) < bytes);
}

static double latency(const Loops *l, const HwMemory *memory) {
    return memory ? memory->latency * l->spec->clock : 0;
}

/* The wires alone: all bytes, and a latency for each tile that comes or
 * leaves; weights have none. */
static double wire_cycles(const Loops *l, const Sizes *s, bool stay,
                          uint64_t moved) {
    uint64_t spots = (uint64_t)s->rows->n * s->cols->n, leaving = 0;
    uint64_t once = s->rows->sum * s->cols->sum * l->in.c, tiles = spots;
    uint64_t times = once ? nest_input_reads(l, s, stay) / once : 1;
    if (l->to)
        leaving = (uint64_t)l->out.c * l->out.h * l->out.w * l->element;
    tiles *= l->by_channel ? pieces(l->out.c, s->c) : pieces(l->in.c, s->in_c);
    return l->wire * (double)(moved + leaving) +
           latency(l, l->from) * (double)(times * tiles) +
           latency(l, l->to) * (double)(spots * pieces(l->out.c, s->c));
}

static void offer(Filling *f, const Sizes *s, uint64_t busy, NestEntry *e) {
    const Loops *l = f->l;
    uint64_t tiles = nest_tiles(l, s);
    uint32_t number = number_above(e->end);
    if (tiles > NEST_TILES || number >= f->first + BAND)
        return;
    uint32_t i = number > f->first ? number - f->first : 0;
    double least = (double)busy + (double)tiles * l->engine->setup;
    for (int stay = 0; stay < 2; stay++) {
        e->moved = nest_moved(l, s, stay);
        double wires = wire_cycles(l, s, stay, e->moved);
        if (!may_enter(f, i, e->moved, wires > least ? wires : least))
            continue;
        e->cycles = nest_cycles(l, s, stay);
        e->nest.weights_stay = stay;
        enter(f, i, e);
    }
}

/* ---- all of them ---- */

/* From the widest tile that fits to the narrowest that is not too small. */
static void fill_columns(Filling *f, Sizes *s, uint64_t busy,
                         const Spots *cols) {
    for (uint32_t j = 0; j < cols->n; j++) {
        NestEntry e = {.tile_h = s->rows->tile,
                       .tile_w = cols->at[j].tile,
                       .nest = {.c = s->c, .in_c = s->in_c}};
        s->cols = &cols->at[j];
        e.end = nest_lay(f->l, s, &e.nest);
        if (e.end <= f->least)
            return;
        if (e.end <= f->most)
            offer(f, s, busy, &e);
    }
}

/* Whether the smallest of these spots fits, and the largest is not too small.
 */
static bool some_fit(const Filling *f, const Cut *rows, uint32_t n_rows,
                     const Spots *cols, uint32_t c, uint32_t in_c) {
    Nest unused;
    Sizes large = {rows, cols->at, c, in_c};
    Sizes small = {rows + n_rows - 1, &cols->at[cols->n - 1], c, in_c};
    return nest_lay(f->l, &small, &unused) <= f->most &&
           nest_lay(f->l, &large, &unused) > f->least;
}

static void fill_channels(Filling *f, uint32_t c, uint32_t in_c,
                          const Spots *rows, const Spots *cols) {
    if (!some_fit(f, rows->at, rows->n, cols, c, in_c))
        return;
    uint64_t busy = nest_busy_cycles(f->l, c, in_c);
    for (uint32_t i = 0; i < rows->n; i++) {
        Sizes s = {&rows->at[i], NULL, c, in_c};
        if (some_fit(f, s.rows, 1, cols, c, in_c))
            fill_columns(f, &s, busy, cols);
    }
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
static Band *band_of(Arena *arena, const Filling *f) {
    Band *band = ARENA_NEW(arena, Band);
    uint16_t *known = ARENA_ARRAY(f->arena, uint16_t, f->entry.n + 1);
    VEC(NestEntry) entry = {0};
    for (uint32_t i = 0; i < BAND; i++)
        for (uint32_t p = 0; p < N_NEST_PRICES; p++) {
            const Cheap *cheap = &f->at[i][p];
            band->at[i][p] = NO_ENTRY;
            if (cheap->cost >= HUGE_VAL)
                continue;
            if (!known[cheap->entry]) {
                vec_push(arena, &entry, f->entry.at[cheap->entry]);
                known[cheap->entry] = (uint16_t)entry.n;
            }
            band->at[i][p] = (uint16_t)(known[cheap->entry] - 1);
        }
    band->entry = entry.at;
    return band;
}

static Band *band_make(Arena *arena, const Loops *l, uint32_t first) {
    Arena *own = arena_new("nest band");
    Filling *f = ARENA_NEW(own, Filling);
    f->arena = own;
    f->l = l;
    f->first = first;
    f->least = box_size(PER_OCTAVE, first) / 2;
    f->most = box_size(PER_OCTAVE, first + BAND - 1);
    for (uint32_t i = 0; i < BAND; i++)
        for (uint32_t p = 0; p < N_NEST_PRICES; p++)
            f->at[i][p].cost = HUGE_VAL;
    fill(f);
    Band *band = band_of(arena, f);
    arena_free(own);
    return band;
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
                                 uint64_t capacity, uint32_t price) {
    uint32_t number = box_number(PER_OCTAVE, capacity), p = 0;
    number = number < table->most ? number : table->most;
    uint32_t i = number / BAND;
    if (!capacity || i >= BANDS)
        return NULL;
    if (!table->band[i])
        table->band[i] = band_make(arena, l, i * BAND);
    while (p + 1 < N_NEST_PRICES && nest_prices[p] != price)
        p++;
    uint16_t at = table->band[i]->at[number % BAND][p];
    return at == NO_ENTRY ? NULL : &table->band[i]->entry[at];
}
