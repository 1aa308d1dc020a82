/* sim.c - a listing from its first instruction to its last; see sim.h.
 *
 * Input: a listing with or without image. Output: a SimResult. Invariants:
 * instructions run in the order of the listing; those of one step that follow
 * each other are taken to run at the same time, so they must not touch each
 * other's cells.
 */
#include "sim/sim.h"
#include "sim/engine.h"
#include "sim/host.h"
#include "sim/staged.h"

#include <string.h>

enum { MAX_VIOLATIONS = 20, MAX_SIDE_BY_SIDE = 64 };

/* ---- the image, before anything runs ---- */

/* NULL, or what is wrong with a region. */
static const char *region_flaw(const HwSpec *spec, const Region *region) {
    const Volume *v = &region->whole;
    uint64_t count = shape_count(&region->shape);
    if (region->memory >= spec->n_memories)
        return "lies in a memory that the machine does not have";
    if (count == 0 || count > SHAPE_MAX_COUNT)
        return "has no elements, or too many";
    uint32_t c, h, w;
    shape_chw(&region->shape, &c, &h, &w);
    if (v->h != h || v->w != w || region->part_c > v->c ||
        c > v->c - region->part_c)
        return "does not fit into its volume";
    const HwMemory *m = &spec->memory[region->memory];
    uint64_t bytes = address_bytes(m->layout, v);
    if (region->offset > m->size || bytes > m->size - region->offset)
        return "reaches beyond its memory";
    return NULL;
}

static bool regions_are_sane(const Listing *listing, Diag *diag, uint32_t n,
                             const Region *region) {
    bool sane = true;
    for (uint32_t i = 0; i < n; i++) {
        const char *flaw = region_flaw(listing->spec, &region[i]);
        if (flaw)
            diag_error(diag, (Loc){0}, "image: %s %s", region[i].name, flaw);
        sane &= !flaw;
    }
    return sane;
}

static bool image_is_sane(const Listing *listing, Diag *diag) {
    const Image *image = &listing->image;
    bool sane = regions_are_sane(listing, diag, image->n_inputs, image->input);
    sane &= regions_are_sane(listing, diag, image->n_outputs, image->output);
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        const HostLayer *host = &image->host[i];
        sane &= regions_are_sane(listing, diag, host->n_in, host->in);
        sane &= regions_are_sane(listing, diag, host->n_out, host->out);
    }
    return sane;
}

/* ---- instructions that run side by side ---- */

static const uint64_t all_units = UINT64_MAX;

static uint32_t unit_of(const Run *run, const Work *w) {
    return w->engine >= 0 ? (uint32_t)w->engine : unit_that_moves(run, w);
}

static void touch(Run *run, const Work *w, const Place *place, bool writes) {
    Use touch = {.name = run->who, .writes = writes, .unit = unit_of(run, w)};
    if (!run->options.time_only)
        touch.place = place_keep(run->group, place);
    vec_push(run->group, &run->touched, touch);
}

static void check_beside(Run *run, const Place *place, bool writes,
                         uint32_t before) {
    for (uint32_t i = 0; i < before; i++) {
        const Use *other = &run->touched.at[i];
        if (!(writes || other->writes) ||
            !place_overlap(run, place, &other->place))
            continue;
        if (fault_once(run, ONCE_CONFLICT))
            fault(run, "%s %s while %s, in the same step, %s %s",
                  writes ? "writes" : "reads", place_text(run, place),
                  other->name, other->writes ? "writes" : "reads",
                  place_text(run, &other->place));
    }
}

/* An engine runs one instruction at a time, and beside certain others. */
static void check_engines(Run *run, const Work *w) {
    const HwSpec *spec = run->spec;
    if (w->engine < 0 || spec->tiling.rows.moves == HW_MOVES_QUEUED)
        return;
    for (uint32_t i = 0; i < spec->n_engines; i++) {
        const HwEngine *mine = &spec->engine[w->engine],
                       *other = &spec->engine[i];
        bool beside = mine->beside >> i & 1 || other->beside >> w->engine & 1;
        if ((run->busy >> i & 1) && !beside)
            fault(run, "engine %s cannot run in one step with engine %s",
                  mine->name, other->name);
    }
}

/* It starts when those are done that its fields name; else when those of
 * earlier steps are. */
static void begin_insn(Run *run, const Work *w) {
    if (run->spec->tiling.rows.moves == HW_MOVES_QUEUED)
        queue_begin(run, w, unit_of(run, w));
    else if (w->has_waits)
        timeline_wait(run, w->waits | UINT64_C(1) << unit_of(run, w));
    else if (w->step != run->step || w->step == NO_STEP ||
             run->touched.n > MAX_SIDE_BY_SIDE)
        timeline_wait(run, all_units);
    run->step = w->step;
}

static void end_insn(Run *run, const Work *w) {
    uint32_t before = run->options.time_only ? 0 : run->touched.n;
    Operand operand[MOST_TOUCHED];
    uint32_t n = work_operands(w, operand);
    if (run->spec->tiling.rows.moves == HW_MOVES_QUEUED) {
        queue_end(run, w, unit_of(run, w));
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        check_beside(run, &operand[i].place, operand[i].writes, before);
    for (uint32_t i = 0; i < n; i++)
        touch(run, w, &operand[i].place, operand[i].writes);
}

/* ---- one instruction ---- */

static bool work_do(Run *run, const Work *w) {
    if (hw_is_among(w->op, HW_CONSTANT_LOADS))
        return staged_load(run, w);
    bool moves = w->op == HW_OP_LOAD || w->op == HW_OP_STORE;
    return moves ? move_run(run, w) : engine_run(run, w);
}

static void run_insn(Run *run, uint32_t index) {
    Work work;
    run->insn = index;
    run->once = 0;
    run->reads = false;
    run->who = "instruction";
    bool good = work_read(run, &run->listing->insn[index], &work);
    order_check(run, &work);
    if (!good || work.op == HW_OP_CONCAT)
        return;
    order_beside(run, &work);
    if (work.op == HW_OP_HOST || work.op == HW_OP_LAYER) {
        if (run->spec->tiling.rows.moves == HW_MOVES_QUEUED)
            queue_host(run, &work);
        else
            timeline_wait(run, all_units);
        host_run(run, &work);
    } else {
        begin_insn(run, &work);
        check_engines(run, &work);
        if (work_do(run, &work))
            end_insn(run, &work);
        run->result->instructions++;
    }
    run->has_read |= run->reads;
}

/* ---- results ---- */

static void read_outputs(Run *run) {
    const Image *image = &run->listing->image;
    SimResult *result = run->result;
    const float **value =
        ARENA_ARRAY(run->arena, const float *, image->n_outputs);
    run->on_host = true;
    for (uint32_t i = 0; i < image->n_outputs; i++) {
        const Region *region = &image->output[i];
        Place place;
        run->once = 0;
        run->who = region->name;
        Extent e = host_extent(region);
        float *to = NULL;
        if (!run->options.memory_only)
            to = ARENA_ARRAY(run->arena, float, extent_count(&e));
        if (region_place(run, region, "network output", &place) &&
            memory_holds(run, &place, place_box(&place), "network output"))
            memory_read(run, &place, place_box(&place), "network output", to);
        value[i] = to;
        arena_reset(run->work);
    }
    result->n_outputs = image->n_outputs;
    result->output = image->output;
    result->value = value;
}

/* What must cross the border of the chip in any case: what the host made and
 * the device read, and what the device made and the host read. Nobody reads the
 * outputs of a listing without an image. */
static uint64_t compulsory_bytes(const Run *run) {
    uint64_t elements = 0;
    for (uint32_t m = 0; m < run->spec->n_memories; m++)
        elements += run->cells[m].crossed;
    for (uint32_t i = 0; i < run->writer.n; i++) {
        const Writer *w = &run->writer.at[i];
        if (run->spec->memory[w->place.memory].role == HW_OUTPUT &&
            w->kind == WRITER_ENGINE && !run->listing->image.n_outputs)
            elements += w->elements;
    }
    return elements * run->spec->element + staged_once(run);
}

/* Events by instruction: their number + 1. */
static uint32_t *events_by_insn(Run *run) {
    uint32_t *at = ARENA_ARRAY(run->hold, uint32_t, run->listing->n);
    for (uint32_t i = 0; i < run->event.n; i++)
        at[run->event.at[i].insn] = i + 1;
    return at;
}

/* How long each result is needed, by the readers of its cells. */
static void fill_lives(Run *run) {
    uint32_t *at = events_by_insn(run);
    for (uint32_t i = 0; i < run->event.n; i++) {
        SimEvent *e = &run->event.at[i];
        e->out_until = e->start + e->cycles;
    }
    for (uint32_t i = 0; i < run->writer.n; i++) {
        const Writer *w = &run->writer.at[i];
        if (w->kind != WRITER_ENGINE || !at[w->insn] || !at[w->last_reader])
            continue;
        SimEvent *e = &run->event.at[at[w->insn] - 1];
        const SimEvent *reader = &run->event.at[at[w->last_reader] - 1];
        if (reader->start + reader->cycles > e->out_until)
            e->out_until = reader->start + reader->cycles;
    }
}

/* Engines, what moves data, the host. */
static uint32_t n_uses(const HwSpec *spec) {
    return spec->n_engines + 1 + (spec->n_dmas ? spec->n_dmas : 1);
}

/* Each core is at an image of its own. */
static uint64_t ceilings(uint64_t n, uint64_t by) {
    return (n + by - 1) / by;
}

static void fill_result(Run *run) {
    SimResult *result = run->result;
    const HwSpec *spec = run->spec;
    fill_lives(run);
    result->interval = ceilings(steady_cycles(run), hwspec_cores(spec));
    result->n_violations = run->n_violations;
    result->n_kept = run->violation.n;
    result->violation = run->violation.at;
    result->n_notes = run->note.n;
    result->note = run->note.at;
    result->n_memories = spec->n_memories;
    result->read = run->read;
    result->written = run->written;
    result->compulsory = run->options.compulsory ? run->options.compulsory
                                                 : compulsory_bytes(run);
    for (uint32_t i = 0; i < spec->n_memories; i++)
        if (spec->memory[i].role == HW_ACTIVE)
            result->am_peak += run->cells[i].touched;
    result->n_engines = n_uses(spec);
    result->wires = run->wires;
    result->engine = run->use;
    result->n_calls = run->call.n;
    result->call = run->call.at;
    result->n_events = run->event.n;
    result->event = run->event.at;
}

static void name_uses(Run *run) {
    const HwSpec *spec = run->spec;
    run->use = ARENA_ARRAY(run->arena, SimEngineUse, n_uses(spec));
    for (uint32_t i = 0; i < spec->n_engines; i++)
        run->use[i].name = spec->engine[i].name;
    run->use[spec->n_engines].name = spec->n_dmas ? spec->dma[0].name : "dma";
    run->use[spec->n_engines + 1].name = "host";
    for (uint32_t i = 1; i < spec->n_dmas; i++)
        run->use[spec->n_engines + 1 + i].name = spec->dma[i].name;
}

static void run_listing(Run *run) {
    for (uint32_t i = 0; i < run->listing->n; i++) {
        uint32_t events = run->event.n;
        run_insn(run, i);
        access_end(run, i, events);
        arena_reset(run->work);
        if (tables_go(run))
            queue_between(run);
        tables_between(run);
    }
    timeline_wait(run, all_units);
}

/* What is counted in the first call stays as it was. */
static void count_anew(Run *run) {
    uint32_t n = run->spec->n_memories;
    name_uses(run);
    run->read = ARENA_ARRAY(run->hold, uint64_t, n);
    run->written = ARENA_ARRAY(run->hold, uint64_t, n);
    run->free = ARENA_ARRAY(run->hold, uint64_t, n);
    run->wires = ARENA_ARRAY(run->hold, uint64_t, n);
    memset(&run->event, 0, sizeof run->event);
    memset(&run->call, 0, sizeof run->call);
    memset(&run->ended, 0, sizeof run->ended);
    memset(run->done, 0, sizeof run->done);
    run->touched.n = run->peer.n = 0;
    memset(&run->at_work, 0, sizeof run->at_work);
    run->step = run->peer_step = NO_STEP;
    run->highest = 0;
    run->busy = run->issued = run->floor = 0;
    run->last_move = 0;
    run->on_host = false;
}

static void call_again(Run *run, uint32_t call) {
    SimResult counted = *run->result;
    const float *const *outputs = counted.value;
    if (run->options.called)
        run->inputs =
            run->options.called(run->options.calls_context, call, outputs);
    count_anew(run);
    inputs_write(run, false);
    run_listing(run);
    read_outputs(run);
    counted.value = run->result->value;
    *run->result = counted;
}

static void run_all(Run *run) {
    memory_open(run);
    tables_open(run);
    order_open(run);
    name_uses(run);
    run->read = ARENA_ARRAY(run->arena, uint64_t, run->spec->n_memories);
    run->written = ARENA_ARRAY(run->arena, uint64_t, run->spec->n_memories);
    run->free = ARENA_ARRAY(run->hold, uint64_t, run->spec->n_memories);
    run->wires = ARENA_ARRAY(run->arena, uint64_t, run->spec->n_memories);
    access_open(run);
    inputs_write(run, true);
    access_end(run, UINT32_MAX, 0);
    run_listing(run);
    order_close(run);
    read_outputs(run);
    access_end(run, UINT32_MAX, run->event.n);
    access_close(run);
    fill_result(run);
    for (uint32_t call = 1; call < run->options.calls; call++)
        call_again(run, call);
    run->result->n_violations = run->n_violations;
    run->result->n_kept = run->violation.n;
    run->result->violation = run->violation.at;
}

uint64_t sim_products(const SimResult *result) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < result->n_events; i++)
        sum += result->event[i].macs;
    return sum;
}

const SimResult *sim_run(Arena *arena, Diag *diag, const Listing *listing,
                         uint32_t n_inputs, const float *const *inputs,
                         const SimOptions *options) {
    if (listing->n == 0 && !listing->has_image) {
        diag_error(diag, (Loc){0}, "the listing has no instructions");
        return NULL;
    }
    if (listing->has_image && !image_is_sane(listing, diag))
        return NULL;
    Run run = {.arena = arena,
               .hold = arena_new("simulated memories"),
               .work = arena_new("simulated instruction"),
               .group = arena_new("instructions at work"),
               .peers = arena_new("simulated step"),
               .blobs = {.arena = arena_new("constants of a layer")},
               .staged_blobs = {.arena = arena_new("weights of a layer")},
               .listing = listing,
               .spec = listing->spec,
               .options = *options,
               .n_inputs = n_inputs,
               .inputs = inputs,
               .step = NO_STEP,
               .peer_step = NO_STEP,
               .result = ARENA_NEW(arena, SimResult)};
    if (run.options.max_violations == 0)
        run.options.max_violations = MAX_VIOLATIONS;
    run_all(&run);
    arena_free(run.hold);
    arena_free(run.work);
    arena_free(run.group);
    arena_free(run.peers);
    arena_free(run.blobs.arena);
    arena_free(run.staged_blobs.arena);
    arena_free(run.tables.arena);
    return run.result;
}
