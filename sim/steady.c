/* steady.c - images one behind the other; see engine.h.
 *
 * Input: the events of one image. Output: cycles from one image's end to the
 * next one's, where engines that work ahead are at the next image while the
 * others are at this one. A violation where what they write then is not theirs
 * alone.
 * The part that runs ahead takes A cycles; the rest R, of which F pass until
 * the last reader of what ran ahead is done: then the next image's may come.
 * Neither the rest of two images overlaps nor the part ahead, so an image comes
 * every max(R, F + A) cycles.
 */
#include "sim/engine.h"

typedef struct Steady {
    Run *run;
    uint64_t ahead;      /* A */
    uint64_t first, end; /* of the rest: cycles */
    uint64_t free;       /* cycle */
} Steady;

static bool runs_ahead(const Run *run, const SimEvent *e) {
    return e->use < run->spec->n_engines && run->spec->engine[e->use].ahead;
}

static void add_event(Steady *s, const SimEvent *e) {
    uint64_t end = e->start + e->cycles;
    if (runs_ahead(s->run, e)) {
        s->ahead += e->cycles;
        s->free = e->out_until > s->free ? e->out_until : s->free;
        return;
    }
    s->first = e->start < s->first ? e->start : s->first;
    s->end = end > s->end ? end : s->end;
}

static bool overlap(const SimSpan *a, const SimSpan *b) {
    return a->memory == b->memory && a->at < b->end && b->at < a->end;
}

/* Nobody else may write where the next image's results come. */
static void check_alone(Run *run, const SimEvent *ahead) {
    for (uint32_t i = 0; i < run->event.n; i++) {
        const SimEvent *e = &run->event.at[i];
        if (e == ahead ||
            !(overlap(&e->out, &ahead->out) || overlap(&e->tiles, &ahead->out)))
            continue;
        run->insn = e->insn;
        run->who = e->name;
        fault(run, "writes where %s puts its result of the next image",
              ahead->name);
    }
}

const char *sim_images_how(Arena *arena, const HwSpec *spec) {
    return hwspec_cores(spec) > 1
               ? arena_printf(arena, "on %u cores side by side",
                              hwspec_cores(spec))
               : "one behind the other";
}

uint64_t steady_cycles(Run *run) {
    Steady s = {.run = run, .first = UINT64_MAX};
    for (uint32_t i = 0; i < run->event.n; i++)
        add_event(&s, &run->event.at[i]);
    if (!s.ahead || s.first == UINT64_MAX)
        return run->result->cycles;
    for (uint32_t i = 0; i < run->event.n; i++)
        if (runs_ahead(run, &run->event.at[i]))
            check_alone(run, &run->event.at[i]);
    uint64_t rest = s.end - s.first;
    uint64_t freed = s.free > s.first ? s.free - s.first : 0;
    return rest > freed + s.ahead ? rest : freed + s.ahead;
}
