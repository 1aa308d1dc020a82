/* tiles.c - instructions that the machine runs by tiles; see engine.h.
 *
 * Input: a job with operands in backing memories. Output: the same cells as
 * without tiles, and what tiling costs: each input tile with its halo is read
 * again, and lands in a buffer of active memory, on top of whatever lives
 * there.
 */
#include "sim/engine.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_TILES = 1 << 16 };

typedef struct Tiler {
    Run *run;
    const Job *job;
    Arena *outer;    /* of the instruction; run->work is the tile's */
    Patch whole;     /* of the output */
    uint32_t writer; /* of the output */
    uint32_t tile;   /* number */
    Place last;      /* the tile in the other buffer */
    Arena *kept[2];  /* last's tables, and those of the one before it */
    SimEvent *event;
    /* cycles: of the engine with the tile before this one; that its result
     * takes to leave, and the result before that */
    uint64_t busy, made, leaving;
} Tiler;

static bool in_backing(const Run *run, const Place *place) {
    return run->spec->memory[place->memory].role != HW_ACTIVE;
}

static void check_buffer(Tiler *t, const Place *tile, bool doubled) {
    Run *run = t->run;
    const Place *out = &t->job->work->out_at;
    const char *what = NULL;
    const Place *other = NULL;
    if (doubled && t->tile > 0 && place_overlap(run, tile, &t->last)) {
        what = "the tile before it";
        other = &t->last;
    } else if (place_overlap(run, tile, out)) {
        what = "the output";
        other = out;
    }
    if (what && fault_once(run, ONCE_TILE))
        fault(run, "input tile %s overlaps %s, %s", place_text(run, tile), what,
              place_text(run, other));
}

/* The tile's cells in active memory are overwritten. */
static bool fill_buffer(Tiler *t, const Patch *patch, uint32_t buffer,
                        bool doubled) {
    Run *run = t->run;
    const Work *w = t->job->work;
    Spot spot = {
        .what = "input tile",
        .memory = 0,
        .offset = w->tile.buffer[buffer],
        .c = w->in.c,
        .whole = {w->in.c, patch->box.rows, patch->box.cols, w->in_repl}};
    Place tile;
    if (!place_make(run, &spot, &tile))
        return false;
    check_buffer(t, &tile, doubled);
    SimSpan span = span_of(run, &tile), *all = &t->event->tiles;
    bool first = all->at == all->end;
    if (first || span.at < all->at)
        all->at = span.at;
    if (span.end > all->end)
        all->end = span.end;
    uint32_t writer = memory_writer(run, &tile, w->name, WRITER_BUFFER);
    memory_write(run, &tile, place_box(&tile), writer, patch->at);
    if (doubled) {
        arena_reset(t->kept[buffer]);
        t->last = place_keep(t->kept[buffer], &tile);
    }
    return true;
}

static bool fetch(Tiler *t, const Place *place, Box box, const char *what,
                  uint32_t buffer, bool doubled, Patch *out) {
    Run *run = t->run;
    Extent full = t->job->work->in;
    *out = (Patch){full, box, NULL};
    if (!run->options.memory_only)
        *out = patch_new(run->work, full, box);
    if (box.rows == 0 || box.cols == 0)
        return true;
    operand_read(run, place, box, what, out->at);
    return !in_backing(run, place) || fill_buffer(t, out, buffer, doubled);
}

/* A tile's values in the whole output. */
static void collect(Tiler *t, const Patch *tile) {
    const Box *box = &tile->box;
    size_t rows = t->whole.full.h, cols = t->whole.full.w;
    const float *from = tile->at;
    for (size_t c = 0; c < t->whole.full.c; c++)
        for (size_t h = 0; h < box->rows; h++, from += box->cols)
            memcpy(t->whole.at + (c * rows + box->row + h) * cols + box->col,
                   from, box->cols * sizeof *from);
}

/* While the engine is at work with a tile, the next one comes in and the one
 * before leaves, over the same wires. */
static void overlap(Tiler *t, uint64_t moved) {
    t->event->cycles += t->busy > moved ? t->busy : moved;
}

static void count_tile(Tiler *t, Box needs, Box box) {
    Run *run = t->run;
    const Work *w = t->job->work;
    SimEvent *e = t->event, tile = cost_of_box(run, w, box);
    uint64_t load =
        cycles_of_tile(run, &w->in_at, &w->in, w->in.c, needs.rows, needs.cols);
    uint64_t store =
        cycles_of_tile(run, &w->out_at, &w->out, w->out.c, box.rows, box.cols);
    if (w->has_in2)
        load += cycles_of_tile(run, &w->in2_at, &w->in2, w->in2.c, needs.rows,
                               needs.cols);
    bool cached = w->out.c <= run->spec->engine[w->engine].unroll.out_c;
    if (cached && t->tile > 0) /* all weights are there */
        tile.weights = tile.cost[SIM_WEIGHTS] = 0;
    overlap(t, load + t->leaving);
    t->leaving = t->made;
    t->made = store;
    t->busy = cost_busy(w, &tile);
    e->busy += t->busy;
    for (int i = 0; i < SIM_COST_COUNT; i++)
        e->cost[i] += tile.cost[i];
    e->cost[SIM_TRANSFER] += load + store;
    e->weights += tile.weights;
    e->macs += tile.macs;
}

static bool run_tile(Tiler *t, Box box) {
    const Work *w = t->job->work;
    Run *run = t->run;
    Box needs = job_needs(t->job, box);
    Patch in, in2 = {0}, out = {w->out, box, NULL};
    bool pair = w->has_in2;
    if (!fetch(t, &w->in_at, needs, "input", pair ? 0 : t->tile & 1, !pair,
               &in))
        return false;
    if (pair && !fetch(t, &w->in2_at, needs, "second input", 1, false, &in2))
        return false;
    if (!run->options.memory_only) {
        out = patch_new(run->work, w->out, box);
        job_run(run->work, t->job, &in, pair ? &in2 : NULL, &out);
        collect(t, &out);
    }
    operand_write(run, &w->out_at, box, t->writer, out.at);
    count_tile(t, needs, box);
    return true;
}

static bool run_all(Tiler *t) {
    const Work *w = t->job->work;
    for (uint32_t row = 0; row < w->out.h; row += w->tile.h)
        for (uint32_t col = 0; col < w->out.w; col += w->tile.w, t->tile++) {
            uint32_t rows = w->out.h - row, cols = w->out.w - col;
            Box box = {row, rows < w->tile.h ? rows : w->tile.h, col,
                       cols < w->tile.w ? cols : w->tile.w};
            arena_reset(t->run->work);
            if (!run_tile(t, box))
                return false;
        }
    overlap(t, t->leaving);
    t->event->cycles += t->made;
    return true;
}

static uint64_t tile_count(const Work *w) {
    uint64_t rows = (w->out.h + (uint64_t)w->tile.h - 1) / w->tile.h;
    return rows * ((w->out.w + (uint64_t)w->tile.w - 1) / w->tile.w);
}

static bool is_outside(const HwSpec *spec, const Place *place) {
    return spec->memory[place->memory].role != HW_ACTIVE;
}

bool tiles_may_be(const HwSpec *spec, const Work *w, const HwTileStyle *s) {
    return s->ops >> w->op & 1 &&
           s->in_backing == is_outside(spec, &w->in_at) &&
           s->out_backing == is_outside(spec, &w->out_at) &&
           !s->sums == !w->tile.c;
}

bool tiles_run(Run *run, const Job *job, SimEvent *event) {
    const Work *w = job->work;
    if (tile_count(w) > MAX_TILES) {
        fault(run, "%" PRIu64 " tiles of %ux%u are more than can be simulated",
              tile_count(w), w->tile.w, w->tile.h);
        return false;
    }
    Tiler t = {.run = run, .job = job, .outer = run->work, .event = event};
    if (!run->options.memory_only)
        t.whole = patch_new(run->work, w->out, whole_box(&w->out));
    t.writer = memory_writer(run, &w->out_at, w->name, WRITER_ENGINE);
    for (int i = 0; i < 2; i++)
        t.kept[i] = arena_new("tile buffers");
    run->work = arena_new("tile");
    bool done = run_all(&t);
    arena_free(run->work);
    run->work = t.outer;
    for (int i = 0; i < 2; i++)
        arena_free(t.kept[i]);
    if (done)
        show_result(run, w->name, &w->out, t.whole.at);
    return done;
}
