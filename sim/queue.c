/* queue.c - instructions that wait for their engine and their bytes alone; see
 * engine.h.
 *
 * Input: works in the listing's order. Output: run->issued, before which one
 * cannot begin: those of the `tiling.queue` before it may still be at work, no
 * others; of these it waits for each that touches one of its cells, one of the
 * two writing. Engines that cannot run beside its own are done then, too. A
 * layer of the host waits for its operands, and takes no time.
 */
#include "sim/engine.h"
#include "sim/host.h"

enum { SPARE = 8 };

/* The last ones first: behind one that it waits for, those that end before need
 * not be asked. */
static void wait_for_cells(Run *run, const Operand *operand) {
    for (uint32_t i = run->touched.n; i-- > 0;) {
        const Use *t = &run->touched.at[i];
        if (t->end > run->issued && (t->writes || operand->writes) &&
            place_overlap(run, &t->place, &operand->place))
            run->issued = t->end;
    }
}

void queue_begin(Run *run, const Work *w) {
    const HwSpec *spec = run->spec;
    Operand operand[MOST_TOUCHED];
    uint32_t n = work_operands(w, operand);
    run->issued = run->floor;
    for (uint32_t i = 0; i < n; i++)
        wait_for_cells(run, &operand[i]);
    for (uint32_t e = 0; w->engine >= 0 && e < spec->n_engines; e++) {
        bool beside = spec->engine[w->engine].beside >> e & 1 ||
                      spec->engine[e].beside >> w->engine & 1;
        if (!beside && run->done[e] > run->issued)
            run->issued = run->done[e];
    }
}

/* Keeps what may still be at work. */
static void forget_done(Run *run) {
    Arena *kept = arena_new("simulated queue");
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->touched.n; i++) {
        Use t = run->touched.at[i];
        if (t.end <= run->floor)
            continue;
        t.place = place_keep(kept, &t.place);
        run->touched.at[n++] = t;
    }
    Use *at = ARENA_COPY(kept, Use, run->touched.at, n);
    arena_free(run->group);
    run->group = kept;
    run->touched.at = at;
    run->touched.n = run->touched.cap = n;
}

static void touch(Run *run, const Operand *operand, uint32_t unit,
                  uint64_t end) {
    uint64_t most = run->spec->tiling.rows.queue;
    Use touch = {.name = run->who,
                 .writes = operand->writes,
                 .unit = unit,
                 .end = end,
                 .place = place_keep(run->group, &operand->place)};
    vec_push(run->group, &run->touched, touch);
    if (run->touched.n > SPARE * most + SPARE)
        forget_done(run);
}

/* What the layer of the host reads, or writes. */
static void over_regions(Run *run, uint32_t n, const Region *region,
                         bool writes, bool waits) {
    for (uint32_t i = 0; i < n; i++) {
        Operand operand = {.writes = writes};
        if (!region_place(run, &region[i], "operand", &operand.place))
            continue;
        if (waits)
            wait_for_cells(run, &operand);
        else
            touch(run, &operand, insn_unit_of_host(run->spec), run->issued);
    }
}

static void over_layer(Run *run, const HostLayer *layer, bool waits) {
    over_regions(run, layer->n_in, layer->in, false, waits);
    over_regions(run, layer->n_out, layer->out, true, waits);
}

void queue_host(Run *run, const Work *w) {
    const HostLayer *layer = host_layer(run, w->name);
    run->issued = run->floor;
    if (!layer)
        return;
    over_layer(run, layer, true);
    over_layer(run, layer, false);
}

void queue_end(Run *run, const Work *w, uint32_t unit) {
    uint32_t most = run->spec->tiling.rows.queue;
    Operand operand[MOST_TOUCHED];
    uint32_t n = work_operands(w, operand);
    for (uint32_t i = 0; i < n; i++)
        touch(run, &operand[i], unit, run->done[unit]);
    vec_push(run->hold, &run->ended, run->done[unit]);
    if (run->ended.n >= most) {
        uint64_t end = run->ended.at[run->ended.n - most];
        run->floor = end > run->floor ? end : run->floor;
    }
}
