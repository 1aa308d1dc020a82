/* tile_loops_cycles.c - how long loops over tiles take.
 *
 * Input: sizes of tiles, and the order of the loops. Output: cycles.
 * Method: the simulator's, without values: while the engine is at work with a
 * tile, the next ones come in and its results leave, over the same wires. What
 * a tile costs depends on few sizes; those of an axis that are alike are runs.
 */
#include "geometry/tile_loops.h"

#include "base/arith.h"
#include "hwspec/cost.h"

enum { FULL, LAST, ENDS }; /* tiles of channels: the last may be smaller */

/* Tiles of channels along one loop. */
typedef struct Channels {
    uint32_t n, size[ENDS];
} Channels;

/* Cycles of a tile of rows and columns. */
typedef struct Spot {
    uint64_t load[ENDS], leave[ENDS]; /* by input, by output channels */
    uint64_t busy[ENDS][ENDS];        /* by output, then input channels */
} Spot;

typedef struct Clock {
    const Loops *l;
    const Sizes *s;
    Channels c, in;
    bool stay;
    bool input, weights; /* the next tile needs others than the one before */
    uint64_t weight[ENDS][ENDS];   /* cycles, by output, then input channels */
    uint64_t total, busy, leaving; /* of the tile before this one */
} Clock;

static Channels channels_of(uint32_t size, uint32_t tile) {
    uint32_t n = (size + tile - 1) / tile;
    return (Channels){n, {tile, size - (n - 1) * tile}};
}

/* ---- one tile ---- */

/* What takes these cycles: transfers in, and out, and the engine. */
typedef enum Kind { COMES = 1, LEAVES, COMPUTED } Kind;

/* Of a tile of these channels, rows and columns; 0: it is not remembered. */
static uint64_t key_of(Kind kind, uint32_t c, uint32_t in_c, uint32_t rows,
                       uint32_t cols) {
    enum { BITS = 15 };
    uint64_t all = c | in_c | rows | cols;
    if (all >> BITS)
        return 0;
    return (((((uint64_t)kind << BITS | c) << BITS | in_c) << BITS | rows)
            << BITS) |
           cols;
}

static uint64_t cycles_of(const Loops *l, Kind kind, uint32_t c, uint32_t in_c,
                          uint32_t rows, uint32_t cols) {
    if (kind != COMPUTED)
        return hwspec_tile_cycles(l->spec, kind == COMES ? l->from : l->to,
                                  kind == COMES ? &l->in : &l->out, c, rows,
                                  cols);
    uint64_t inner = hwspec_inner_steps(l->spec, l->engine, NULL,
                                        l->by_channel ? 1 : in_c, l->taps);
    return hwspec_engine_cycles(l->spec, l->engine, c, rows, cols, inner);
}

/* The same, remembered. */
static uint64_t tile_cycles(const Loops *l, Kind kind, uint32_t c,
                            uint32_t in_c, uint32_t rows, uint32_t cols) {
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t key = l->memo ? key_of(kind, c, in_c, rows, cols) : 0;
    if (!key)
        return cycles_of(l, kind, c, in_c, rows, cols);
    NestMemo *memo = &l->memo[key * golden >> (64 - NEST_MEMO_BITS)];
    if (memo->key != key)
        *memo = (NestMemo){key, cycles_of(l, kind, c, in_c, rows, cols)};
    return memo->cycles;
}

static uint64_t comes(const Loops *l, uint32_t c, uint32_t rows,
                      uint32_t cols) {
    return l->from ? tile_cycles(l, COMES, c, 0, rows, cols) : 0;
}

static uint64_t leaves(const Loops *l, uint32_t c, uint32_t rows,
                       uint32_t cols) {
    return l->to ? tile_cycles(l, LEAVES, c, 0, rows, cols) : 0;
}

static uint64_t computed(const Loops *l, uint32_t c, uint32_t in_c,
                         uint32_t rows, uint32_t cols) {
    return tile_cycles(l, COMPUTED, c, in_c, rows, cols);
}

/* Ends of the loop that differ. */
static uint32_t ends(const Channels *c) {
    return c->size[FULL] == c->size[LAST] ? 1 : ENDS;
}

static Spot spot_make(const Clock *k, const CutRun *rows, const CutRun *cols) {
    const Loops *l = k->l;
    uint32_t n_c = ends(&k->c), n_in = ends(&k->in);
    Spot s;
    for (uint32_t i = 0; i < n_in; i++)
        s.load[i] = comes(l, k->in.size[i], rows->in, cols->in);
    for (uint32_t c = 0; c < n_c; c++) {
        s.leave[c] = leaves(l, k->c.size[c], rows->out, cols->out);
        for (uint32_t i = 0; i < n_in; i++)
            s.busy[c][i] =
                computed(l, k->c.size[c], k->in.size[i], rows->out, cols->out);
        if (n_in < ENDS)
            s.busy[c][LAST] = s.busy[c][FULL];
    }
    if (n_in < ENDS)
        s.load[LAST] = s.load[FULL];
    if (n_c < ENDS) {
        s.leave[LAST] = s.leave[FULL];
        s.busy[LAST][FULL] = s.busy[FULL][FULL];
        s.busy[LAST][LAST] = s.busy[FULL][LAST];
    }
    return s;
}

static void weights_make(Clock *k) {
    const Loops *l = k->l;
    for (uint32_t c = 0; c < ENDS; c++)
        for (uint32_t i = 0; i < ENDS; i++)
            k->weight[c][i] = hwspec_weight_cycles(
                l->spec, l->taps * k->c.size[c] * l->element *
                             (l->by_channel ? 1 : k->in.size[i]));
}

/* `n` tiles, each for which so much comes and which take the engine so long. */
static void pass(Clock *k, uint64_t n, uint64_t load, uint64_t busy) {
    if (!n)
        return;
    k->total += larger(k->busy, load + k->leaving);
    k->total += (n - 1) * larger(busy, load);
    k->busy = busy;
    k->leaving = 0;
}

/* All input channels of a tile. */
static void run_tile(Clock *k, const Spot *s, uint32_t c) {
    const uint64_t *weight = k->weight[c], *busy = s->busy[c];
    bool several = k->in.n > 1;
    uint64_t load = 0;
    pass(k, k->in.n - 1, s->load[FULL] + weight[FULL], busy[FULL]);
    if (k->input || several || k->l->by_channel)
        load += s->load[k->l->by_channel ? c : LAST];
    if (k->weights || several)
        load += weight[LAST];
    pass(k, 1, load, busy[LAST]);
    k->leaving = s->leave[c];
    k->input = k->weights = false;
}

typedef void Part(Clock *k, const void *what, uint32_t c);

/* All but the first take as long as the second. */
static void repeat(Clock *k, Part *part, const void *what, uint32_t c,
                   uint64_t n) {
    for (uint64_t i = 0; i < n && i < 2; i++) {
        uint64_t before = k->total;
        part(k, what, c);
        if (i == 1)
            k->total += (n - 2) * (k->total - before);
    }
}

static void run_channels(Clock *k, const void *spot, uint32_t c) {
    k->weights |= k->c.n > 1;
    run_tile(k, spot, c);
}

static void run_spot(Clock *k, const void *spot, uint32_t c) {
    k->input |= k->s->rows->n * k->s->cols->n > 1;
    if (k->stay) {
        run_tile(k, spot, c);
        return;
    }
    repeat(k, run_channels, spot, FULL, k->c.n - 1);
    run_channels(k, spot, LAST);
}

static void run_row(Clock *k, const void *row, uint32_t c) {
    const Cut *cols = k->s->cols;
    for (uint32_t i = 0; i < cols->n_runs; i++) {
        Spot spot = spot_make(k, row, &cols->run[i]);
        repeat(k, run_spot, &spot, c, cols->run[i].n);
    }
}

static void run_plane(Clock *k, const void *unused, uint32_t c) {
    const Cut *rows = k->s->rows;
    (void)unused;
    k->weights = true;
    for (uint32_t i = 0; i < rows->n_runs; i++)
        repeat(k, run_row, &rows->run[i], c, rows->run[i].n);
}

static Clock clock_make(const Loops *l, const Sizes *s, bool stay) {
    Clock k = {.l = l, .s = s, .stay = stay, .input = true};
    k.c = channels_of(l->out.c, s->c);
    k.in = l->by_channel ? (Channels){1, {k.c.size[FULL], k.c.size[LAST]}}
                         : channels_of(l->in.c, s->in_c);
    return k;
}

uint64_t nest_cycles(const Loops *l, const Sizes *s, bool stay) {
    Clock k = clock_make(l, s, stay);
    weights_make(&k);
    if (stay)
        repeat(&k, run_plane, NULL, FULL, k.c.n - 1);
    run_plane(&k, NULL, LAST);
    return k.total + larger(k.busy, k.leaving);
}

uint64_t nest_busy_cycles(const Loops *l, uint32_t tile_c, uint32_t tile_in_c) {
    Channels out = channels_of(l->out.c, tile_c), in = {1, {tile_c, tile_c}};
    if (!l->by_channel)
        in = channels_of(l->in.c, tile_in_c);
    const uint64_t n_c[ENDS] = {out.n - 1, 1}, n_in[ENDS] = {in.n - 1, 1};
    uint64_t busy = 0;
    for (uint32_t c = 0; c < ENDS; c++)
        for (uint32_t i = 0; i < ENDS; i++) {
            uint64_t n = n_c[c] * n_in[i];
            if (n)
                busy += n * computed(l, out.size[c], in.size[i], l->out.h,
                                     l->out.w);
        }
    return busy;
}

uint64_t nest_least_cycles(const Loops *l, const Sizes *s) {
    uint64_t busy = nest_busy_cycles(l, s->c, s->in_c), wires = 0;
    for (uint32_t i = 0; i < s->cols->n_runs; i++) {
        const CutRun *cols = &s->cols->run[i];
        uint32_t rows = (uint32_t)s->rows->sum;
        wires += cols->n * (comes(l, l->in.c, rows, cols->in) +
                            leaves(l, l->out.c, l->out.h, cols->out));
    }
    return larger(busy, wires);
}

uint64_t nest_ideal_cycles(const Loops *l) {
    return computed(l, l->out.c, l->in.c, l->out.h, l->out.w);
}
