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

enum { SPARE = 64 };

/* What an instruction that may still be at work touches; in order of ends. */
typedef struct AtWork {
    uint64_t end;         /* cycle */
    uint64_t first, last; /* cells, half open, */
    uint32_t memory;      /* of this one */
    bool writes;
    bool own; /* its tables are its own: not of tables.c */
    const Place *place;
} AtWork;

/* The last ones first: those that end before what it waits for already need not
 * be asked. */
static void wait_for_cells(Run *run, const Operand *operand) {
    const Place *p = &operand->place;
    for (uint32_t i = run->at_work.n; i-- > 0;) {
        const AtWork *t = &run->at_work.at[i];
        if (t->end <= run->issued)
            return;
        if (t->memory == p->memory && t->first < p->end && p->first < t->last &&
            (t->writes || operand->writes) && place_overlap(run, t->place, p)) {
            run->issued = t->end;
            return;
        }
    }
}

/* When the unit, and engines that cannot run beside it, are done. */
static uint64_t unit_free(const Run *run, const Work *w, uint32_t unit) {
    const HwSpec *spec = run->spec;
    uint64_t free = run->done[unit];
    for (uint32_t e = 0; w->engine >= 0 && e < spec->n_engines; e++) {
        bool beside = spec->engine[w->engine].beside >> e & 1 ||
                      spec->engine[e].beside >> w->engine & 1;
        if (!beside && run->done[e] > free)
            free = run->done[e];
    }
    return free;
}

void queue_begin(Run *run, const Work *w, uint32_t unit) {
    Operand operand[MOST_TOUCHED];
    uint32_t n = work_operands(w, operand);
    uint64_t free = unit_free(run, w, unit);
    run->issued = free > run->floor ? free : run->floor;
    for (uint32_t i = 0; i < n; i++)
        wait_for_cells(run, &operand[i]);
}

/* A copy; with tables of its own where others may go sooner. */
static const Place *keep(Arena *arena, const Place *place, bool own) {
    Place kept = own ? place_keep(arena, place) : *place;
    return ARENA_COPY(arena, Place, &kept, 1);
}

/* Keeps what may still be at work; `own`: tables.c forgets its tables. */
static void forget_done(Run *run, bool own) {
    Arena *kept = arena_new("simulated queue");
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->at_work.n; i++) {
        AtWork t = run->at_work.at[i];
        if (t.end <= run->floor)
            continue;
        t.own |= own;
        t.place = keep(kept, t.place, t.own);
        run->at_work.at[n++] = t;
    }
    AtWork *at = ARENA_COPY(kept, AtWork, run->at_work.at, n);
    arena_free(run->group);
    run->group = kept;
    run->at_work.at = at;
    run->at_work.n = run->at_work.cap = n;
    run->most_at_work = 2 * n + SPARE;
}

void queue_between(Run *run) {
    if (run->at_work.n)
        forget_done(run, true);
}

static void touch(Run *run, const Operand *operand, uint64_t end) {
    const Place *p = &operand->place;
    bool own = p->ring || p->weights_of;
    AtWork touch = {.end = end,
                    .first = p->first,
                    .last = p->end,
                    .memory = p->memory,
                    .writes = operand->writes,
                    .own = own,
                    .place = keep(run->group, p, own)};
    vec_push(run->group, &run->at_work, touch);
    AtWork *at = run->at_work.at;
    for (uint32_t i = run->at_work.n - 1; i > 0 && at[i - 1].end > end; i--) {
        at[i] = at[i - 1];
        at[i - 1] = touch;
    }
    if (run->at_work.n > run->most_at_work)
        forget_done(run, false);
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
            touch(run, &operand, run->issued);
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
        touch(run, &operand[i], run->done[unit]);
    vec_push(run->hold, &run->ended, run->done[unit]);
    if (run->ended.n >= most) {
        uint64_t end = run->ended.at[run->ended.n - most];
        run->floor = end > run->floor ? end : run->floor;
    }
}
