/* engine.c - an engine's instruction on a whole volume; see engine.h. */
#include "sim/engine.h"

#include "sim/origin.h"
#include "sim/sums.h"

/* A pool stops reading at its last window: its operand may be the rows of a
 * higher volume from a later one on, which reach over that one's end. */
static Box operand_box(const Work *w) {
    Box box = whole_box(&w->in);
    if (w->op == HW_OP_POOL_MAX || w->op == HW_OP_POOL_AVG) {
        Box needs = window_needs(w->pool, whole_box(&w->out), w->in.h, w->in.w);
        box.rows = needs.row + needs.rows;
    }
    return box;
}

/* Rows that are not read may be written. */
static void check_in_place(Run *run, const Work *w, const Place *in,
                           const char *what) {
    Box box = operand_box(w);
    bool in_place = run->spec->engine[w->engine].in_place;
    if (!cells_matter(run))
        return;
    bool stops = !in->ring && box.rows && box.rows < in->h;
    Place read = stops ? place_rows(in, 0, box.rows) : *in;
    if ((in_place && place_same(in, &w->out_at)) ||
        !place_overlap(run, &read, &w->out_at))
        return;
    fault(run, "output %s overlaps its %s %s", place_text(run, &w->out_at),
          what, place_text(run, in));
}

static Patch read_operand(Run *run, const Extent *size, Box box,
                          const Place *place, const char *what) {
    Patch patch = {*size, box, NULL};
    if (!run->options.memory_only)
        patch = patch_new(run->work, *size, box);
    operand_read(run, place, patch.box, what, patch.at);
    return patch;
}

/* It makes each element from the same one. */
static bool is_copy(const Run *run, const Work *w) {
    const Window *rows = &w->pool[ROWS], *cols = &w->pool[COLS];
    return !run->options.time_only && w->op == HW_OP_POOL_MAX &&
           !w->in_at.ring && !w->out_at.ring && rows->kernel == 1 &&
           cols->kernel == 1 && rows->stride == 1 && cols->stride == 1 &&
           !rows->pad && !cols->pad && w->in.c == w->out.c &&
           w->in.h == w->out.h && w->in.w == w->out.w;
}

/* Their values are with job->sums; a cell says whose it is. */
static void write_sums(Run *run, const Work *w) {
    Place to = sums_place(w);
    to.weights_of = arena_strdup(run->hold, w->layer); /* outlives the work */
    Box box = place_box(&to);
    float *none = NULL;
    if (!run->options.memory_only)
        none = ARENA_ARRAY(run->work, float, box_count(&to, box));
    uint32_t writer = memory_writer(run, &to, w->name, WRITER_ENGINE);
    operand_write(run, &to, box, writer, none);
}

static void run_whole(Run *run, const Work *w, const Job *job, bool prepared) {
    Patch in = read_operand(run, &w->in, operand_box(w), &w->in_at, "input");
    bool copies = is_copy(run, w);
    CellOrigin *origin = copies ? origins_read(run, &w->in_at) : NULL;
    Patch in2 = {0};
    Patch out = {w->out, whole_box(&w->out), NULL};
    if (w->has_in2)
        in2 = read_operand(run, &w->in2, whole_box(&w->in2), &w->in2_at,
                           "second input");
    if (!run->options.memory_only) {
        out = patch_new(run->work, w->out, out.box);
        if (prepared)
            job_run(run->work, job, &in, w->has_in2 ? &in2 : NULL, &out);
    }
    bool stays = job->sums && !w->sums_last;
    if (stays || w->keeps_sums)
        write_sums(run, w);
    if (stays)
        return;
    uint32_t writer = memory_writer(run, &w->out_at, w->name, WRITER_ENGINE);
    operand_write(run, &w->out_at, out.box, writer, out.at);
    if (origin)
        origins_write(run, &w->out_at, origin);
    show_result(run, w->name, &w->out, out.at);
}

static bool operands_ready(Run *run, const Work *w) {
    return operand_ready(run, &w->in_at, operand_box(w), "input") &&
           (!w->has_in2 ||
            operand_ready(run, &w->in2_at, whole_box(&w->in2), "second input"));
}

bool engine_run(Run *run, const Work *w) {
    if (!operands_ready(run, w))
        return false;
    bool writes = !w->keeps_sums || w->sums_last; /* else its sums alone */
    if (writes)
        check_in_place(run, w, &w->in_at, "input");
    if (w->has_in2)
        check_in_place(run, w, &w->in2_at, "second input");
    if (writes && w->stages && place_overlap(run, &w->weights_at, &w->out_at))
        fault(run, "output %s overlaps its weights %s",
              place_text(run, &w->out_at), place_text(run, &w->weights_at));
    Job job;
    bool prepared = job_prepare(run, w, &job);
    SimEvent event = {0};
    uint64_t read = run->result->backing_read;
    uint64_t written = run->result->backing_written;
    if (!w->tile.on) {
        run_whole(run, w, &job, prepared);
        event = cost_of_box(run, w, whole_box(&w->out));
        event.cost[SIM_TRANSFER] =
            cycles_of_tile(run, &w->in_at, &w->in, w->in.c, w->in.h, w->in.w);
        event.cycles = event.busy = cost_busy(w, &event);
        if (event.cycles < event.cost[SIM_TRANSFER])
            event.cycles = event.cost[SIM_TRANSFER];
    } else if (!prepared ||
               !(w->tile.c ? nest_run : tiles_run)(run, &job, &event)) {
        return false;
    }
    event.read = run->result->backing_read - read;
    event.written = run->result->backing_written - written;
    event.least = operand_outside(run, &w->in_at) +
                  operand_outside(run, &w->out_at) +
                  (w->has_in2 ? operand_outside(run, &w->in2_at) : 0);
    event.op = w->op;
    event.in = span_of(run, &w->in_at);
    event.out = span_of(run, &w->out_at);
    if (w->has_in2)
        event.in2 = span_of(run, &w->in2_at);
    if (w->keeps_sums) {
        event.sums = span_of(run, &w->sums_at);
        event.sums_stay = !w->sums_last;
    }
    timeline_add(run, (uint32_t)w->engine, &event);
    return true;
}
