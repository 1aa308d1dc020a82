/* inputs.c - the network's inputs: from the image, or assumed; see engine.h. */
#include "sim/engine.h"
#include "sim/host.h"

#include "base/rng.h"

#include <inttypes.h>

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

void inputs_write(Run *run) {
    const Image *image = &run->listing->image;
    for (uint32_t i = 0; i < image->n_inputs; i++) {
        const Region *region = &image->input[i];
        Place place;
        run->who = region->name;
        if (!region_place(run, region, "network input", &place))
            continue;
        uint64_t n = box_count(&place, place_box(&place));
        if (!run->inputs || i >= run->n_inputs || !run->inputs[i])
            note(run, "input %s: values are seeded", region->name);
        uint32_t writer = memory_writer(run, &place, region->name, WRITER_HOST);
        memory_write(run, &place, place_box(&place), writer,
                     input_values(run, i, region->name, &region->quant, n));
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
