/* sums.c - sums that one instruction leaves for the next; see sums.h. */
#include "sim/sums.h"

#include "sim/blobs.h"

#include <string.h>

/* Input channels of the layer, of which an instruction adds up some; 0: nobody
 * knows. */
static uint32_t channels_of(Run *run, const Work *w) {
    const Blob *blob = blob_find(run, w->layer, "weight");
    uint32_t made = blob ? shape_dim(&blob->value.shape, 0) : 0;
    return made ? (uint32_t)(shape_count(&blob->value.shape) / made / w->area)
                : 0;
}

/* Behind the taps that it adds up. */
static uint32_t end_tap(const Work *w) {
    return w->taps.n ? w->taps.first + w->taps.n : w->area;
}

/* One that stays may leave the last channels with taps that are missing. */
static bool channels_fit(Run *run, const Work *w) {
    uint32_t all = channels_of(run, w), end = w->first_in + w->in.c;
    bool some = end_tap(w) < w->area;
    if (w->sums_first && w->first_in)
        fault(run, "its sums begin with input channel %u", w->first_in);
    else if (w->sums_first && w->taps.first)
        fault(run, "its sums begin with tap %u", w->taps.first);
    else if (w->sums_last && some)
        fault(run, "its sums end with tap %u of %u", end_tap(w) - 1, w->area);
    else if (all && w->sums_last && end != all)
        fault(run, "its sums end with %u of %u input channels", end, all);
    else if (all && !w->sums_last && (end > all || (end == all && !some)))
        fault(run, "its sums stay with %u of %u input channels", end, all);
    else
        return true;
    return false;
}

bool sums_in_buffer(Run *run, const Place *place) {
    const HwMemory *m = &run->spec->memory[place->memory];
    uint64_t cells = m->layout->element, one = m->buffers;
    if (one)
        one = hwspec_buffer_bytes(m) / cells;
    if (!one || place->end == place->first ||
        place->first / one == (place->end - 1) / one)
        return true;
    fault(run, "sums %s cross the end of a buffer", place_text(run, place));
    return false;
}

static const Place *lie(const Work *w) {
    return w->keeps_sums ? &w->sums_at : &w->out_at;
}

Place sums_place(const Work *w) {
    Place place = *lie(w);
    place.weights_of = w->layer;
    place.role = "sums";
    place.row = w->first_c;
    place.col = 0;
    return place;
}

static bool meets(const Place *a, const Place *b) {
    return a->memory == b->memory && a->first < b->end && b->first < a->end;
}

/* One that serves nobody, with room; those in its place are gone. */
static PartSums *sums_new(Run *run, const Work *w) {
    uint64_t n = extent_count(&w->out);
    PartSums *free = NULL;
    for (uint32_t i = 0; i < run->sums.n; i++) {
        PartSums *s = run->sums.at[i];
        if (s->serves && meets(&s->place, lie(w)))
            s->serves = false;
        if (!s->serves && s->room >= n && (!free || s->room < free->room))
            free = s;
    }
    if (!free) {
        free = ARENA_NEW(run->hold, PartSums);
        free->room = n;
        free->real = ARENA_ARRAY(run->hold, float, n + 1);
        free->code = ARENA_ARRAY(run->hold, int64_t, n + 1);
        vec_push(run->hold, &run->sums, free);
    }
    return free;
}

static bool same_box(const Place *a, const Place *b) {
    return a->memory == b->memory && a->start == b->start && a->c == b->c &&
           a->h == b->h && a->w == b->w && a->row == b->row && a->col == b->col;
}

static PartSums *sums_find(Run *run, const Work *w) {
    for (uint32_t i = 0; i < run->sums.n; i++) {
        PartSums *s = run->sums.at[i];
        if (s->serves && strcmp(s->layer, w->layer) == 0 &&
            s->first_c == w->first_c && same_box(&s->place, lie(w)) &&
            same_box(&s->out, &w->out_at))
            return s;
    }
    return NULL;
}

/* Nobody has written there since. */
static bool are_there(Run *run, const Work *w) {
    Place place = sums_place(w);
    Box box = place_box(&place);
    float *values = NULL;
    if (!memory_holds(run, &place, box, "sums"))
        return false;
    if (!run->options.memory_only)
        values = ARENA_ARRAY(run->work, float, box_count(&place, box));
    memory_read(run, &place, box, "sums", values);
    return true;
}

/* Taps of the same channels follow each other, then come the next channels. */
static bool goes_on(const PartSums *s, const Work *w) {
    bool same = s->first_in == w->first_in && s->n_in == w->in.c;
    return s->end_tap ? same && w->taps.first == s->end_tap
                      : !w->taps.first && w->first_in == s->first_in + s->n_in;
}

static void say_missing(Run *run, const Work *w) {
    if (w->taps.first)
        fault(run,
              "the sums of its first %u input channels, and of %u taps of the "
              "next %u, are not there",
              w->first_in, w->taps.first, w->in.c);
    else
        fault(run, "the sums of its first %u input channels are not there",
              w->first_in);
}

bool sums_open(Run *run, const Work *w, PartSums **out) {
    *out = NULL;
    if (!w->partial || w->op == HW_OP_LOAD_WEIGHTS || !channels_fit(run, w))
        return !w->partial || w->op == HW_OP_LOAD_WEIGHTS;
    if (w->sums_first && w->sums_last)
        return true;
    PartSums *s = w->sums_first ? sums_new(run, w) : sums_find(run, w);
    if (!s || (!w->sums_first && !goes_on(s, w))) {
        say_missing(run, w);
        return false;
    }
    if (!w->sums_first && !are_there(run, w))
        return false;
    if (w->sums_first)
        s->layer = arena_strdup(run->hold, w->layer);
    s->place = *lie(w);
    s->out = w->out_at;
    s->first_c = w->first_c;
    s->n = extent_count(&w->out);
    s->first_in = w->first_in;
    s->n_in = w->in.c;
    s->end_tap = end_tap(w) < w->area ? end_tap(w) : 0;
    s->begins = w->sums_first;
    s->stays = !w->sums_last;
    s->serves = s->stays;
    *out = s;
    return true;
}

bool sums_add(PartSums *s, Patch *patch) {
    if (!s)
        return false;
    for (uint64_t i = 0; i < s->n && !s->begins; i++)
        patch->at[i] += s->real[i];
    if (s->stays)
        memcpy(s->real, patch->at, s->n * sizeof *s->real);
    return s->stays;
}
