/* nest.c - instructions that the machine runs by tiles of channels, too; see
 * engine.h.
 *
 * Input: a convolution whose instruction gives a tile's rows, columns, output
 * and input channels, and which tile stays. Output: the same result, from
 * partial sums; bytes and cycles of each tile that is fetched. A tile of the
 * input, or of weights, is fetched when it is not the one that was in use just
 * before. Tiles of the input hold just the pixels that the kernel reads. All
 * tiles are bare elements in active memory, on top of whatever lives there.
 */
#include "sim/engine.h"
#include "sim/quant.h"

#include "hwspec/cost.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_STEPS = 1 << 17 };

/* A range of channels. */
typedef struct Part {
    uint32_t at, n;
} Part;

/* What the engine does for a tile of a size. */
typedef struct Known {
    uint32_t rows, cols, out, in; /* pixels, channels; 0: none */
    SimEvent cost;
} Known;

/* How long a tile of the input of a size comes. */
typedef struct Fetched {
    uint32_t rows, cols, in; /* 0: none */
    uint64_t cycles;
} Fetched;

enum { KNOWN = 32 };

typedef struct Nest {
    Run *run;
    const Job *job;
    Patch whole; /* of the output */
    Patch sum;   /* of the tile, so far */
    uint32_t writer;
    SimEvent *event;
    bool by_channel;            /* depthwise */
    uint32_t across, c, inner;  /* tiles of columns, output, input channels */
    uint64_t input, weights;    /* 1 + number of the tile in use; 0: none */
    uint64_t busy, moved, left; /* cycles: of the engine with the step before;
                                 * of what this one moves; of results that
                                 * leave */
    bool alike;                 /* tiles of one size take as long anywhere */
    Known known[KNOWN];
    Fetched fetched[KNOWN];
    uint64_t weight_bytes, weight_cycles; /* of the last tile of weights */
} Nest;

typedef struct Step {
    uint32_t spot, c, inner; /* numbers of its tiles */
    Box box, needs;          /* of the output, the input */
    Part out, in;            /* channels */
} Step;

static uint32_t pieces(uint32_t size, uint32_t tile) {
    return (uint32_t)(((uint64_t)size + tile - 1) / tile);
}

static Part part(uint32_t size, uint32_t tile, uint32_t i) {
    uint32_t at = i * tile;
    return (Part){at, tile < size - at ? tile : size - at};
}

static bool is_active(const Run *run, const Place *place) {
    return run->spec->memory[place->memory].role == HW_ACTIVE;
}

/* Some channels of an operand. */
static Place channels_of(const Place *place, Part c) {
    Place p = *place;
    p.c = c.n;
    if (p.c_at)
        p.c_at += c.at;
    p.copies += c.at;
    return p;
}

/* ---- the pixels that are read ---- */

static uint32_t windows_read(const Window *w, uint32_t at, uint32_t n,
                             uint32_t size) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < w->kernel; k++) {
            int64_t x = (int64_t)(at + i) * w->stride + k - w->pad;
            sum += x >= 0 && x < size;
        }
    return sum;
}

static uint32_t axis_read(const Work *w, int axis, Box box, Box needs) {
    const Window *window = &w->conv[axis];
    uint32_t span = axis == ROWS ? needs.rows : needs.cols;
    if (window->kernel >= window->stride || window->dilation > 1)
        return span;
    return axis == ROWS ? windows_read(window, box.row, box.rows, w->in.h)
                        : windows_read(window, box.col, box.cols, w->in.w);
}

/* ---- active memory ---- */

typedef struct Room {
    const char *what;
    uint64_t at, bytes;
} Room;

/* Bare elements. */
static bool room_place(Run *run, const Room *room, Place *out) {
    const HwMemory *m = &run->spec->memory[0];
    uint64_t element = m->layout->element, n = room->bytes / element;
    if (room->at > m->size || room->bytes > m->size - room->at) {
        fault(run, "%s at %s takes %" PRIu64 " bytes, more than there are",
              room->what, address_text(run, 0, room->at), room->bytes);
        return false;
    }
    uint64_t *at = ARENA_ARRAY(run->work, uint64_t, n + 1);
    uint32_t *one = ARENA_NEW(run->work, uint32_t);
    for (uint64_t i = 0; i < n; i++)
        at[i] = i;
    *one = 1;
    uint64_t start = room->at / element;
    *out = (Place){.memory = 0,
                   .c = 1,
                   .h = 1,
                   .w = (uint32_t)n,
                   .first = start,
                   .end = start + n,
                   .start = start,
                   .c_at = at,
                   .h_at = at,
                   .w_at = at,
                   .copies = one};
    Cells *cells = &run->cells[0];
    if (room->at + room->bytes > cells->touched)
        cells->touched = room->at + room->bytes;
    return true;
}

static uint64_t sum_bytes(const Run *run, const Work *w) {
    const HwTiling *tiling = &run->spec->tiling;
    for (uint32_t i = 0; i < tiling->tiles.n; i++)
        if (tiles_may_be(run->spec, w, &tiling->tiles.style[i]))
            return tiling->tiles.style[i].sums;
    return run->spec->element;
}

/* Pixels of the largest tile of the input. */
static uint64_t most_read(const Work *w) {
    uint64_t most[2] = {0, 0};
    for (int axis = 0; axis < 2; axis++) {
        uint32_t size = extent_axis(&w->out, axis);
        uint32_t tile = axis == ROWS ? w->tile.h : w->tile.w;
        for (uint32_t at = 0; at < size; at += tile) {
            uint32_t n = tile < size - at ? tile : size - at;
            Box box = axis == ROWS ? (Box){at, n, 0, 1} : (Box){0, 1, at, n};
            Box needs = window_needs(w->conv, box, w->in.h, w->in.w);
            uint64_t read = axis_read(w, axis, box, needs);
            most[axis] = read > most[axis] ? read : most[axis];
        }
    }
    return most[ROWS] * most[COLS];
}

static uint64_t taps_of(const Work *w) {
    return (uint64_t)w->conv[ROWS].kernel * w->conv[COLS].kernel;
}

static uint64_t weights_of(const Nest *t, Part out, Part in) {
    const Work *w = t->job->work;
    return taps_of(w) * out.n * (t->by_channel ? 1 : in.n) *
           t->run->spec->element;
}

/* No two of the tiles, and no operand, share a cell. */
static bool rooms_apart(Run *run, const Work *w, const Place *place,
                        const Room *room, uint32_t n) {
    const Place *operand[] = {&w->in_at, &w->out_at};
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (place_overlap(run, &place[i], &place[k])) {
                fault(run, "%s overlaps %s", room[i].what, room[k].what);
                return false;
            }
        for (uint32_t k = 0; k < 2; k++)
            if (place_overlap(run, &place[i], operand[k])) {
                fault(run, "%s overlaps %s", room[i].what,
                      place_text(run, operand[k]));
                return false;
            }
    }
    return true;
}

/* Takes the cells of all tiles. False, with a violation, if they are not to be
 * had. */
static bool rooms_take(Nest *t) {
    Run *run = t->run;
    if (run->options.time_only)
        return true;
    const Work *w = t->job->work;
    const Tiling *tile = &w->tile;
    uint64_t pixels = (uint64_t)tile->h * tile->w;
    uint64_t in = most_read(w) * tile->in_c * run->spec->element;
    uint64_t weights = weights_of(t, (Part){0, tile->c}, (Part){0, tile->in_c});
    bool from = !is_active(run, &w->in_at);
    bool second_in =
        from && t->across * t->inner * (t->by_channel ? t->c : 1) > 1;
    const Room all[] = {
        {"an input tile", tile->buffer[0], from ? in : 0},
        {"the second input tile", tile->buffer[1], second_in ? in : 0},
        {"a tile of weights", tile->weights[0], weights},
        {"the second tile of weights", tile->weights[1],
         t->c * t->inner > 1 ? weights : 0},
        {"the tile of sums", tile->sums, pixels * tile->c * sum_bytes(run, w)}};
    enum { N = sizeof all / sizeof *all };
    Room room[N];
    Place place[N];
    uint32_t n = 0;
    for (uint32_t i = 0; i < N; i++) {
        if (!all[i].bytes)
            continue;
        room[n] = all[i];
        if (!room_place(run, &room[n], &place[n]))
            return false;
        n++;
    }
    if (!rooms_apart(run, w, place, room, n))
        return false;
    SimSpan *tiles = &t->event->tiles;
    for (uint32_t i = 0; i < n; i++) {
        SimSpan span = span_of(run, &place[i]);
        uint32_t writer = memory_writer(run, &place[i], w->name, WRITER_BUFFER);
        memory_write(run, &place[i], place_box(&place[i]), writer, NULL);
        span.at = i && tiles->at < span.at ? tiles->at : span.at;
        span.end = i && tiles->end > span.end ? tiles->end : span.end;
        *tiles = span;
    }
    return true;
}

/* ---- values ---- */

static Patch read_part(const Nest *t, const Step *s, Part in) {
    const Work *w = t->job->work;
    Place from = channels_of(&w->in_at, in);
    Extent full = {in.n, w->in.h, w->in.w};
    Patch patch = {full, s->needs, NULL};
    if (!t->run->options.memory_only)
        patch = patch_new(t->run->work, full, s->needs);
    if (s->needs.rows && s->needs.cols)
        memory_read(t->run, &from, s->needs, "input", patch.at);
    return patch;
}

/* Weights from the step's input channels to its output channels. */
static const float *pack(const Nest *t, const Step *s) {
    const Work *w = t->job->work;
    size_t taps = taps_of(w), ins = t->by_channel ? 1 : w->in.c;
    size_t first = t->by_channel ? 0 : s->in.at;
    size_t n = t->by_channel ? 1 : s->in.n;
    float *to = ARENA_ARRAY(t->run->work, float, s->out.n *n *taps + 1);
    for (uint32_t o = 0; o < s->out.n; o++)
        memcpy(to + o * n * taps,
               t->job->conv.weight + ((s->out.at + o) * ins + first) * taps,
               n * taps * sizeof *to);
    return to;
}

static void add_to(Patch *sum, const Patch *more) {
    for (size_t i = 0, n = patch_count(sum); i < n; i++)
        sum->at[i] += more->at[i];
}

static void sum_part(Nest *t, const Step *s, const Patch *in) {
    Run *run = t->run;
    const Job *job = t->job;
    Extent full = {s->out.n, job->work->out.h, job->work->out.w};
    Patch out = patch_new(run->work, full, s->box);
    ConvTask task = {.window = job->conv.window,
                     .groups = t->by_channel ? s->out.n : 1,
                     .weight = pack(t, s)};
    if (job->conv.bias && s->inner == 0)
        task.bias = job->conv.bias + s->out.at;
    conv_run(run->work, &task, in, &out);
    if (s->inner == 0)
        memcpy(t->sum.at, out.at, patch_count(&out) * sizeof *out.at);
    else
        add_to(&t->sum, &out);
    if (s->inner + 1 < t->inner)
        return;
    ActTask act = job->act;
    if (act.slope)
        act.slope += s->out.at;
    act_run(&act, &t->sum);
}

/* Sums of codes are exact in any order: they are made with the last part. */
static void sum_codes(Nest *t, const Step *s) {
    const Work *w = t->job->work;
    if (s->inner + 1 < t->inner)
        return;
    size_t ins = t->by_channel ? 1 : w->in.c;
    ConvTask task = {.window = t->job->conv.window,
                     .groups = t->by_channel ? s->out.n : 1,
                     .weight_code = t->job->conv.weight_code +
                                    s->out.at * ins * taps_of(w)};
    if (t->job->conv.bias_code)
        task.bias_code = t->job->conv.bias_code + s->out.at;
    QuantLayer quant = *t->job->quant;
    quant_from_channel(&quant, s->out.at);
    Patch in = read_part(t, s, t->by_channel ? s->out : (Part){0, w->in.c});
    quant_conv(t->run->work, &task, &quant, &in, &t->sum);
}

/* The tile's results in the whole output. */
static void collect(Nest *t, const Step *s) {
    size_t rows = t->whole.full.h, cols = t->whole.full.w;
    const float *from = t->sum.at;
    for (size_t c = s->out.at; c < s->out.at + s->out.n; c++)
        for (size_t h = 0; h < s->box.rows; h++, from += s->box.cols)
            memcpy(t->whole.at + (c * rows + s->box.row + h) * cols +
                       s->box.col,
                   from, s->box.cols * sizeof *from);
}

static void compute(Nest *t, const Step *s) {
    if (t->run->options.time_only)
        return;
    Patch in = read_part(t, s, s->in);
    if (t->run->options.memory_only)
        return;
    if (t->job->quant)
        sum_codes(t, s);
    else
        sum_part(t, s, &in);
    if (s->inner + 1 == t->inner)
        collect(t, s);
}

/* ---- bytes and cycles ---- */

static uint64_t fetch_cycles(Nest *t, uint32_t rows, uint32_t cols,
                             uint32_t in) {
    Fetched *f = &t->fetched[(rows + 3 * cols + 7 * in) % KNOWN];
    if (f->rows != rows || f->cols != cols || f->in != in)
        *f = (Fetched){rows, cols, in,
                       cycles_of_tile(t->run, &t->job->work->in_at,
                                      &t->job->work->in, in, rows, cols)};
    return f->cycles;
}

static void fetch_input(Nest *t, const Step *s) {
    Run *run = t->run;
    const Work *w = t->job->work;
    uint64_t tile = 1 + (uint64_t)s->spot * t->inner * t->c + s->inner;
    if (t->by_channel)
        tile += s->c;
    if (is_active(run, &w->in_at) || tile == t->input)
        return;
    t->input = tile;
    uint32_t rows = axis_read(w, ROWS, s->box, s->needs);
    uint32_t cols = axis_read(w, COLS, s->box, s->needs);
    run->result->backing_read +=
        (uint64_t)rows * cols * s->in.n * run->spec->element;
    t->moved += fetch_cycles(t, rows, cols, s->in.n);
}

static void fetch_weights(Nest *t, const Step *s) {
    uint64_t tile = 1 + (uint64_t)s->c * t->inner + s->inner;
    if (tile == t->weights)
        return;
    t->weights = tile;
    uint64_t bytes = weights_of(t, s->out, s->in);
    if (bytes != t->weight_bytes) {
        t->weight_bytes = bytes;
        t->weight_cycles = hwspec_weight_cycles(t->run->spec, bytes);
    }
    uint64_t cycles = t->weight_cycles;
    t->event->weights += bytes;
    t->event->cost[SIM_WEIGHTS] += cycles;
    t->event->fetched += cycles;
    t->moved += cycles;
}

static void leave(Nest *t, const Step *s) {
    Run *run = t->run;
    const Work *w = t->job->work;
    Place to = channels_of(&w->out_at, s->out);
    operand_write(run, &to, s->box, t->writer,
                  run->options.memory_only ? NULL : t->sum.at);
    t->left = cycles_of_tile(run, &to, &w->out, to.c, s->box.rows, s->box.cols);
    t->event->cost[SIM_TRANSFER] += t->left;
}

/* While the engine is at work with a tile, the next ones come in and finished
 * results leave, over the same wires. */
static void overlap(Nest *t) {
    uint64_t wires = t->moved + t->left;
    t->event->cycles += t->busy > wires ? t->busy : wires;
    t->moved = t->left = 0;
}

static SimEvent cost_of_step(const Nest *t, const Step *s) {
    Work tile = *t->job->work; /* with the step's channels */
    tile.in.c = s->in.n;
    tile.out.c = s->out.n;
    tile.groups = t->by_channel ? s->out.n : 1;
    tile.has_repl = false;
    tile.in_at = channels_of(&tile.in_at, s->in);
    tile.out_at = channels_of(&tile.out_at, s->out);
    SimEvent cost = cost_of_box(t->run, &tile, s->box);
    cost.cost[SIM_WEIGHTS] = 0; /* its tiles are fetched */
    return cost;
}

/* Ports are not counted there. */
static bool is_unported(const Run *run, const Place *place) {
    return !is_active(run, place) ||
           run->spec->memory[place->memory].bandwidth <= 0;
}

/* Tiles of one size cost the same, but for copies of their channels that pass
 * through ports. */
static const SimEvent *cost_known(Nest *t, const Step *s) {
    const Box *box = &s->box;
    Known *k =
        &t->known[(box->rows + 3 * box->cols + 5 * s->out.n + 7 * s->in.n) %
                  KNOWN];
    if (k->rows != box->rows || k->cols != box->cols || k->out != s->out.n ||
        k->in != s->in.n || !t->alike)
        *k = (Known){box->rows, box->cols, s->out.n, s->in.n,
                     cost_of_step(t, s)};
    return &k->cost;
}

static void count(Nest *t, const Step *s) {
    const SimEvent *cost = cost_known(t, s);
    t->busy = cost_busy(t->job->work, cost);
    t->event->busy += t->busy;
    t->event->cost[SIM_COMPUTE] += cost->cost[SIM_COMPUTE];
    t->event->cost[SIM_PORTS] += cost->cost[SIM_PORTS];
    t->event->macs += cost->macs;
}

/* ---- the loops ---- */

static void run_step(Nest *t, const Step *s) {
    uint64_t before = t->moved;
    fetch_input(t, s);
    t->event->cost[SIM_TRANSFER] += t->moved - before;
    fetch_weights(t, s);
    overlap(t);
    compute(t, s);
    count(t, s);
    if (s->inner + 1 == t->inner)
        leave(t, s);
}

static void run_channels(Nest *t, uint32_t spot, uint32_t c) {
    const Work *w = t->job->work;
    uint32_t columns = pieces(w->out.w, w->tile.w);
    Part rows = part(w->out.h, w->tile.h, spot / columns);
    Part cols = part(w->out.w, w->tile.w, spot % columns);
    Step s = {.spot = spot,
              .c = c,
              .box = {rows.at, rows.n, cols.at, cols.n},
              .out = part(w->out.c, w->tile.c, c)};
    s.needs = window_needs(w->conv, s.box, w->in.h, w->in.w);
    Arena *arena = NULL;
    if (!t->run->options.memory_only) {
        arena = arena_new("sums");
        t->sum = patch_new(arena, (Extent){s.out.n, w->out.h, w->out.w}, s.box);
    }
    for (s.inner = 0; s.inner < t->inner; s.inner++) {
        arena_reset(t->run->work);
        s.in = t->by_channel ? s.out : part(w->in.c, w->tile.in_c, s.inner);
        run_step(t, &s);
    }
    arena_free(arena);
}

static void run_all(Nest *t) {
    const Tiling *tile = &t->job->work->tile;
    uint32_t outer = tile->weights_stay ? t->c : t->across;
    uint32_t inner = tile->weights_stay ? t->across : t->c;
    for (uint32_t i = 0; i < outer; i++)
        for (uint32_t k = 0; k < inner; k++)
            run_channels(t, tile->weights_stay ? k : i,
                         tile->weights_stay ? i : k);
    overlap(t);
    t->event->cycles += t->left;
}

static bool can_run(Nest *t) {
    const Work *w = t->job->work;
    const Tiling *tile = &w->tile;
    uint64_t steps = (uint64_t)pieces(w->out.h, tile->h) *
                     pieces(w->out.w, tile->w) * pieces(w->out.c, tile->c);
    uint32_t inner = t->by_channel ? 1 : pieces(w->in.c, tile->in_c);
    if (steps > MAX_STEPS || steps * inner > MAX_STEPS) {
        fault(t->run, "%" PRIu64 " tiles are more than can be simulated",
              steps * inner);
        return false;
    }
    t->across = pieces(w->out.h, tile->h) * pieces(w->out.w, tile->w);
    t->c = pieces(w->out.c, tile->c);
    t->inner = inner;
    return true;
}

bool nest_run(Run *run, const Job *job, SimEvent *event) {
    const Work *w = job->work;
    Nest t = {.run = run,
              .job = job,
              .event = event,
              .by_channel = w->op == HW_OP_CONV_DEPTHWISE,
              .alike =
                  is_unported(run, &w->in_at) && is_unported(run, &w->out_at)};
    if (!can_run(&t) || !rooms_take(&t))
        return false;
    if (!run->options.memory_only)
        t.whole = patch_new(run->work, w->out, whole_box(&w->out));
    t.writer = memory_writer(run, &w->out_at, w->name, WRITER_ENGINE);
    Arena *outer = run->work;
    run->work = arena_new("tile");
    run_all(&t);
    arena_free(run->work);
    run->work = outer;
    show_result(run, w->name, &w->out, t.whole.at);
    return true;
}
