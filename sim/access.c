/* access.c - what each instruction reads and writes, byte by byte, for those
 * who compare another simulator with this one; see sim.h.
 *
 * Input: the boxes of places that memory.c reads and writes. Output: ranges of
 * bytes, handed on behind each instruction, when its cycles are known.
 * Invariant: nothing is done, or kept, where nobody watches.
 */
#include "sim/memory.h"
#include "sim/run.h"

void access_open(Run *run) {
    if (run->options.watcher && !run->options.time_only)
        run->watched = arena_new("accesses");
}

/* Whether it goes on where the last one ends, or is the next of its row. */
static bool join(SimAccess *last, const SimAccess *access) {
    if (last->memory != access->memory || last->writes != access->writes ||
        last->by_host != access->by_host)
        return false;
    if (!last->more && last->end == access->at) {
        last->end = access->end;
        return true;
    }
    uint64_t step = last->more ? last->step : access->at - last->at;
    if (access->end - access->at != last->end - last->at ||
        access->at <= last->end ||
        access->at != last->at + (last->more + 1) * step)
        return false;
    last->step = step;
    last->more++;
    return true;
}

static void add_range(Run *run, SimAccess access) {
    uint32_t n = run->accessed.n;
    if (!n || !join(&run->accessed.at[n - 1], &access))
        vec_push(run->watched, &run->accessed, access);
}

void access_add(Run *run, const Place *place, Box box, bool writes,
                bool by_host) {
    const CellRange *span;
    if (!run->watched || !box_count(place, box))
        return;
    uint64_t element = run->spec->memory[place->memory].layout->element;
    uint32_t n = place_spans(run, place, box, &span);
    for (uint32_t i = 0; i < n; i++)
        add_range(run, (SimAccess){.memory = place->memory,
                                   .writes = writes,
                                   .by_host = by_host,
                                   .at = span[i].from * element,
                                   .end = span[i].to * element});
}

static const char *unit_name(const Run *run, const SimEvent *event) {
    return event ? run->use[event->use].name : "host";
}

/* A note that a concatenation is complete is checked, but moves nothing. */
static bool is_note(const Run *run, uint32_t insn) {
    return insn != UINT32_MAX &&
           insn_op(run->spec, &run->listing->insn[insn]) == HW_OP_CONCAT;
}

static void hand_on(Run *run, uint32_t insn, uint32_t events) {
    const SimEvent *event =
        run->event.n > events ? &run->event.at[run->event.n - 1] : NULL;
    uint64_t start = event ? event->start : run->issued;
    SimAccesses accesses = {insn,
                            run->who,
                            unit_name(run, event),
                            start,
                            event ? start + event->cycles : start,
                            run->accessed.n,
                            run->accessed.at};
    run->options.watcher(run->options.watcher_context, &accesses);
}

void access_end(Run *run, uint32_t insn, uint32_t events) {
    if (!run->watched || !run->accessed.n)
        return;
    if (!is_note(run, insn))
        hand_on(run, insn, events);
    arena_reset(run->watched);
    run->accessed.at = NULL;
    run->accessed.n = run->accessed.cap = 0;
}

void access_close(Run *run) {
    if (run->watched)
        arena_free(run->watched);
}
