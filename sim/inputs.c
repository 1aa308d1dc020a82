/* inputs.c - the network's inputs: from the image, or assumed; see engine.h. */
#include "sim/blobs.h"
#include "sim/engine.h"
#include "sim/host.h"

#include "base/rng.h"

#include <inttypes.h>
#include <string.h>

/* 256 MiB of floats: no picture is larger. */
static const uint64_t MAX_ASSUMED = UINT64_C(1) << 26;

static const float *seeded(Run *run, const char *name, const Quant *q,
                           uint64_t n) {
    QuantType type = q ? q->type : QUANT_NONE;
    float *value = ARENA_ARRAY(run->work, float, n);
    uint64_t seed = rng_seed(name, run->options.seed);
    for (uint64_t i = 0; i < n; i++)
        value[i] = quant_seeded(type, rng_unit(seed, i));
    return value;
}

/* q: NULL where nobody says whether these are codes. */
static const float *input_values(Run *run, uint32_t index, const char *name,
                                 const Quant *q, uint64_t n) {
    if (run->options.memory_only)
        return NULL;
    bool given = run->inputs && index < run->n_inputs && run->inputs[index];
    return given ? run->inputs[index] : seeded(run, name, q, n);
}

static bool is_given(const Run *run, uint32_t input) {
    return run->inputs && input < run->n_inputs && run->inputs[input];
}

/* What a state is before the first call, where nobody gives it. */
static const float *state_start(Run *run, const Region *region, uint64_t n) {
    float *value = ARENA_ARRAY(run->work, float, n);
    const Blob *start =
        blob_find(run, region->name, "value");
    if (start && shape_count(&start->value.shape) == n)
        const_read(&start->value, value);
    return value;
}

static void input_write(Run *run, uint32_t i, const Place *place) {
    const Region *region = &run->listing->image.input[i];
    uint64_t n = box_count(place, place_box(place));
    const float *value;
    if (region->next && !is_given(run, i)) {
        value = run->options.memory_only ? NULL : state_start(run, region, n);
    } else {
        if (!is_given(run, i))
            note(run, "input %s: values are seeded", region->name);
        value = input_values(run, i, region->name, &region->quant, n);
    }
    uint32_t writer = memory_writer(run, place, region->name, WRITER_HOST);
    memory_write(run, place, place_box(place), writer, value);
}

/* The output that the state is in the next call; NULL after a violation. */
static const Region *region_next(Run *run, const Region *state) {
    const Image *image = &run->listing->image;
    for (uint32_t i = 0; i < image->n_outputs; i++)
        if (!strcmp(image->output[i].name, state->next))
            return &image->output[i];
    fault(run, "is the output %s before, which is not there", state->next);
    return NULL;
}

static bool same_place(const Region *a, const Region *b) {
    return a->memory == b->memory && a->offset == b->offset &&
           a->part_c == b->part_c && a->whole.c == b->whole.c &&
           a->whole.h == b->whole.h && a->whole.w == b->whole.w;
}

/* Between two calls: copied, where the new one lies elsewhere. */
static void state_keep(Run *run, const Region *state, const Place *to) {
    const Region *next = region_next(run, state);
    Place from;
    if (!next || same_place(state, next) ||
        !region_place(run, next, "state", &from))
        return;
    uint64_t n = box_count(to, place_box(to));
    float *value =
        run->options.memory_only ? NULL : ARENA_ARRAY(run->work, float, n);
    if (box_count(&from, place_box(&from)) != n) {
        fault(run, "has another shape than %s", next->name);
        return;
    }
    run->on_host = true;
    if (memory_holds(run, &from, place_box(&from), "state"))
        memory_read(run, &from, place_box(&from), "state", value);
    run->on_host = false;
    uint32_t writer = memory_writer(run, to, state->name, WRITER_HOST);
    memory_write(run, to, place_box(to), writer, value);
}

void inputs_write(Run *run, bool first) {
    const Image *image = &run->listing->image;
    for (uint32_t i = 0; i < image->n_inputs; i++) {
        const Region *region = &image->input[i];
        Place place;
        run->who = region->name;
        if (!region_place(run, region, "network input", &place))
            continue;
        if (region->next && !first)
            state_keep(run, region, &place);
        else
            input_write(run, i, &place);
        arena_reset(run->work);
    }
}

void inputs_assume(Run *run, const Place *place) {
    if (run->listing->has_image || run->on_host)
        return;
    const HwMemory *m = &run->spec->memory[place->memory];
    bool expected = m->role == HW_INPUT || !run->has_read;
    uint64_t n = box_count(place, place_box(place));
    if (!expected || n > MAX_ASSUMED || !memory_is_blank(run, place))
        return;
    const char *name =
        arena_printf(run->hold, "input %" PRIu32, run->n_assumed);
    uint32_t writer = memory_writer(run, place, name, WRITER_HOST);
    memory_write(run, place, place_box(place), writer,
                 input_values(run, run->n_assumed, name, NULL, n));
    note(run, "%s assumed: %s", name, place_text(run, place));
    run->n_assumed++;
}
