/* hardware.c - which tile makes a layer fast.
 *
 * Input: a node that runs by hardware tiles. Output: the tile that takes the
 * fewest cycles, or costs least. Large tiles read less
 * twice; small ones let the engine start sooner, since the first tile must be
 * there before it does. Tiles overlap as facts/xdnn.md 2.5 has it: while one
 * is computed, the next comes in and the one before leaves.
 */
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"
#include "base/memo.h"
#include "hwspec/cost.h"

#include <math.h>
#include <string.h>

enum { MAX_CUTS = 16, MAX_TILES = 64 };

/* Tiles along one axis: of input, of what is computed, of output. */
typedef struct Axis {
    uint32_t n;
    uint32_t *in, *made, *out;
} Axis;

typedef struct Timer {
    const Facts *f;
    NodeId id;
    const Mode *mode;
    const HwEngine *engine;
    const HwMemory *from, *to; /* to: NULL if results stay in active memory */
    Volume in, out;
    uint32_t operands;
    bool weighs; /* it has weights */
    uint64_t inner, taps;
} Timer;

static const HwMemory *memory_or_null(const HwSpec *spec, int32_t index) {
    return index < 0 ? NULL : &spec->memory[index];
}

static uint64_t taps_of(const Graph *g, const Node *node) {
    const uint32_t *kernel = node->attr.conv.kernel;
    if (node->op == OP_POOL) {
        Volume in = plan_volume(g, node->in[0]);
        if (node->attr.pool.global)
            return (uint64_t)in.h * in.w;
        kernel = node->attr.pool.kernel;
    } else if (node->op != OP_CONV && node->op != OP_CONV_POOL) {
        return 1;
    }
    return (uint64_t)kernel[0] * kernel[1];
}

static Timer timer_make(const Facts *f, NodeId id, const Mode *mode) {
    const Node *node = graph_node(f->g, id);
    bool input = f->role[node->in[0].i].origin == FROM_INPUT;
    Timer t = {.f = f,
               .id = id,
               .mode = mode,
               .engine = &f->spec->engine[f->legal[id.i].engine],
               .in = plan_volume(f->g, node->in[0]),
               .out = plan_volume(f->g, node->out[0]),
               .operands = node->n_in,
               .weighs = node->op == OP_CONV || node->op == OP_CONV_POOL,
               .taps = taps_of(f->g, node)};
    if (mode->streams_in)
        t.from =
            memory_or_null(f->spec, input ? f->spec->input : f->spec->backing);
    if (mode->streams_out)
        t.to = memory_or_null(f->spec, f->spec->backing);
    t.inner =
        hwspec_inner_steps(f->spec, t.engine, t.weighs ? &mode->repl : NULL,
                           t.weighs ? t.in.c : 1, t.taps);
    return t;
}

static Axis axis_cut(const Timer *t, Arena *arena, uint32_t axis, uint32_t size,
                     uint32_t tile) {
    Axis a = {.n = (size + tile - 1) / tile};
    a.in = ARENA_ARRAY(arena, uint32_t, a.n);
    a.made = ARENA_ARRAY(arena, uint32_t, a.n);
    a.out = ARENA_ARRAY(arena, uint32_t, a.n);
    for (uint32_t i = 0, at = 0; i < a.n; i++, at += tile) {
        a.out[i] = tile < size - at ? tile : size - at;
        tile_needs(t->f->g, t->id, axis, at, a.out[i], &a.in[i], &a.made[i]);
    }
    return a;
}

static uint64_t moved(const Timer *t, const HwMemory *memory, const Volume *of,
                      uint32_t rows, uint32_t cols) {
    return memory
               ? hwspec_tile_cycles(t->f->spec, memory, of, of->c, rows, cols)
               : 0;
}

static uint64_t tile_weights(const Timer *t, bool first) {
    if (!t->weighs || (!first && t->out.c <= t->engine->unroll.out_c))
        return 0; /* all of them are there */
    return hwspec_weight_cycles(
        t->f->spec,
        hwspec_weight_bytes(t->f->spec, t->in.c, t->taps, t->out.c));
}

static uint64_t time_of(const Timer *t, const Axis *rows, const Axis *cols) {
    const HwSpec *spec = t->f->spec;
    uint64_t total = 0, busy = 0, made = 0, leaving = 0;
    bool pingpong = t->inner <= spec->weight_cache.pingpong;
    for (uint32_t i = 0; i < rows->n; i++)
        for (uint32_t k = 0; k < cols->n; k++) {
            uint64_t load = t->operands *
                            moved(t, t->from, &t->in, rows->in[i], cols->in[k]);
            uint64_t weights = tile_weights(t, i + k == 0);
            total += larger(busy, load + leaving);
            leaving = made;
            made = moved(t, t->to, &t->out, rows->out[i], cols->out[k]);
            busy = hwspec_engine_cycles(spec, t->engine, t->out.c,
                                        rows->made[i], cols->made[k], t->inner);
            busy = pingpong ? larger(busy, weights) : busy + weights;
        }
    return total + larger(busy, leaving) + made;
}

/* Cycles with the mode's tiles, as the machine overlaps them; ports aside. */
uint64_t tiles_cycles(const Facts *f, NodeId id, const Mode *mode) {
    Timer t = timer_make(f, id, mode);
    Volume out = plan_volume(f->g, graph_node(f->g, id)->out[0]);
    Arena *arena = arena_new("tile time");
    Axis rows = axis_cut(&t, arena, 0, out.h, mode->tile_h);
    Axis cols = axis_cut(&t, arena, 1, out.w, mode->tile_w);
    uint64_t cycles = time_of(&t, &rows, &cols);
    arena_free(arena);
    return cycles;
}

static uint32_t cut(uint32_t size, uint32_t pieces, uint32_t step) {
    uint32_t tile = (size + pieces - 1) / pieces;
    return step > 1 ? (tile + step - 1) / step * step : tile;
}

typedef struct Hasten {
    const Facts *f;
    NodeId id;
    uint32_t price;
    Mode *best;
    double least;
} Hasten;

/* Cycles, and those that the input takes to come, `price` times. */
static double tile_cost(const Hasten *h, const Mode *mode) {
    const Node *node = graph_node(h->f->g, h->id);
    double bytes =
        (double)tiles_read(h->f->g, node, mode->tile_w, mode->tile_h) *
        plan_volume(h->f->g, node->in[0]).c * h->f->spec->element;
    return (double)tiles_cycles(h->f, h->id, mode) +
           h->price * bytes_seconds(h->f->spec, bytes) * h->f->spec->clock;
}

static bool is_held(const Facts *f, NodeId id, const Mode *mode) {
    return tile_bytes(f, id, mode) <=
           f->spec->tiling.tiles.style[mode->style].buffer_size;
}

static void try_tile(Hasten *h, uint32_t tile_w, uint32_t tile_h) {
    Mode mode = *h->best;
    mode.tile_w = tile_w;
    mode.tile_h = tile_h;
    if (!is_held(h->f, h->id, &mode))
        return;
    double cost = tile_cost(h, &mode);
    if (cost < h->least) {
        h->least = cost;
        *h->best = mode;
    }
}

/* Tiles that cut the output differently: not how large a tile fits decides
 * which there are, so that more memory adds some and takes none away. */
static void hasten(const Facts *f, NodeId id, uint32_t price, Mode *mode) {
    Hasten h = {.f = f, id, price, mode, HUGE_VAL};
    Volume out = plan_volume(f->g, graph_node(f->g, id)->out[0]);
    uint32_t step = f->spec->tiling.tiles.style[mode->style].multiple_w;
    for (uint32_t across = 1, w_before = 0; across <= MAX_CUTS; across++) {
        uint32_t tile_w = cut(out.w, across, across > 1 ? step : 1);
        uint32_t columns = (out.w + tile_w - 1) / tile_w;
        if (tile_w == w_before)
            continue;
        w_before = tile_w;
        for (uint32_t down = 1; down <= MAX_CUTS; down++)
            if (down * columns <= MAX_TILES)
                try_tile(&h, tile_w, cut(out.h, down, 1));
    }
}

static void print_words(Print *p, const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof(uint32_t); i++) {
        uint32_t word;
        memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
        print_add(p, word);
    }
}

/* All that the tiles of a convolution depend on. */
static Print tiles_asked(const Facts *f, NodeId id, uint32_t price,
                         const Mode *mode) {
    const Node *node = graph_node(f->g, id);
    const PoolAttr *pool = &node->attr.pool;
    Volume volume[] = {plan_volume(f->g, node->in[0]),
                       plan_volume(f->g, node->out[0])};
    uint32_t word[] = {price,
                       mode->streams_in,
                       mode->streams_out,
                       mode->tile_w,
                       mode->tile_h,
                       f->role[node->in[0].i].origin == FROM_INPUT,
                       reach(f, id, HW_IN),
                       node->n_in,
                       (uint32_t)f->legal[id.i].engine,
                       f->legal[id.i].op};
    Print p = {node->op, (uint64_t)mode->style};
    print_add(&p, f->spec->tiling.tiles.style[mode->style].buffer_size);
    print_words(&p, volume, sizeof volume);
    print_words(&p, word, sizeof word);
    print_words(&p, &mode->repl, sizeof mode->repl);
    print_words(&p, &node->attr.conv, sizeof node->attr.conv);
    if (node->op != OP_CONV_POOL)
        return p;
    uint32_t kind[] = {pool->kind, pool->global, pool->ceil, pool->count_pad};
    print_words(&p, kind, sizeof kind);
    print_words(&p, pool->kernel, sizeof pool->kernel);
    print_words(&p, pool->stride, sizeof pool->stride);
    print_words(&p, pool->pad, sizeof pool->pad);
    print_words(&p, pool->pad_end, sizeof pool->pad_end);
    return p;
}

typedef struct Hastened {
    uint32_t tile_w, tile_h;
} Hastened;

void tiles_hasten(const Facts *f, NodeId id, uint32_t price, Mode *mode) {
    Print asked = tiles_asked(f, id, price, mode);
    const Hastened *known = memo_find(f->memo->memo_table, asked);
    if (known) {
        mode->tile_w = known->tile_w;
        mode->tile_h = known->tile_h;
        return;
    }
    hasten(f, id, price, mode);
    Hastened *found = memo_insert(f->memo->memo_table, asked, sizeof(Hastened));
    if (found)
        *found = (Hastened){mode->tile_w, mode->tile_h};
}

/* Of full width, as tiles that read the least mostly are. */
void tiles_quicken(const Facts *f, NodeId id, Mode *mode) {
    const Node *node = graph_node(f->g, id);
    uint64_t least = tiles_cycles(f, id, mode);
    uint64_t reads = tiles_read(f->g, node, mode->tile_w, mode->tile_h);
    uint32_t rows = plan_volume(f->g, node->out[0]).h;
    for (uint32_t down = 2; down <= MAX_CUTS; down++) {
        Mode other = *mode;
        other.tile_h = cut(rows, down, 1);
        if (!is_held(f, id, &other) ||
            tiles_read(f->g, node, other.tile_w, other.tile_h) > reads)
            continue;
        uint64_t cycles = tiles_cycles(f, id, &other);
        if (cycles < least) {
            least = cycles;
            *mode = other;
        }
    }
}
