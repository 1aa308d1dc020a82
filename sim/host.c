/* host.c - layers of the host: from regions to regions; see host.h. */
#include "sim/host.h"
#include "hwspec/cost.h"
#include "sim/engine.h"

#include <string.h>

/* ---- running ---- */

const HostRow *host_kind(const char *name) {
    const HostRow *const tables[] = {host_windows, host_shapes, host_tensors,
                                     host_tokens, host_numbers};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const HostRow *row = tables[t]; row->name; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

/* Without arithmetic nobody looks into it. */
static float *region_buffer(Run *run, const Region *region) {
    if (run->options.memory_only)
        return ARENA_NEW(run->work, float);
    Extent e = host_extent(region);
    return patch_new(run->work, e, whole_box(&e)).at;
}

static const float *read_region(Run *run, const Region *region) {
    Place place;
    if (!region_place(run, region, "operand", &place) ||
        !memory_holds(run, &place, place_box(&place), "operand"))
        return NULL;
    float *value = region_buffer(run, region);
    bool values = !run->options.memory_only;
    memory_read(run, &place, place_box(&place), "operand",
                values ? value : NULL);
    return value;
}

static void write_region(Run *run, const Region *region, const char *name,
                         const float *value) {
    Place place;
    if (!region_place(run, region, "result", &place))
        return;
    bool values = !run->options.memory_only;
    uint32_t writer = memory_writer(run, &place, name, WRITER_HOST);
    memory_write(run, &place, place_box(&place), writer, values ? value : NULL);
    if (!values)
        return;
    Extent size = {place.c, place.h, place.w};
    show_result(run, name, &size, value);
}

static bool compute_outside(const HostCall *call) {
    const SimOptions *options = &call->run->options;
    uint32_t index = (uint32_t)(call->layer - call->run->listing->image.host);
    return options->host &&
           options->host(options->host_context, index, call->in, call->out);
}

static bool compute(const HostRow *kind, const HostCall *call) {
    return host_has_codes(call->layer) ? host_codes(kind, call)
                                       : host_reals(kind, call);
}

static void run_layer(Run *run, const HostLayer *layer) {
    const float **in = ARENA_ARRAY(run->work, const float *, layer->n_in);
    float **out = ARENA_ARRAY(run->work, float *, layer->n_out);
    const HostRow *kind = host_kind(layer->kind);
    if (!kind || layer->n_in < kind->n_in || layer->n_out == 0) {
        fault(run, "the host knows no layer of kind \"%s\" with %u operands",
              layer->kind, layer->n_in);
        return;
    }
    for (uint32_t i = 0; i < layer->n_in; i++)
        if (!(in[i] = read_region(run, &layer->in[i])))
            return;
    for (uint32_t i = 0; i < layer->n_out; i++)
        out[i] = region_buffer(run, &layer->out[i]);
    HostCall call = {run, layer, NULL, in, out};
    if (!run->options.memory_only && !compute_outside(&call) &&
        !compute(kind, &call))
        return;
    for (uint32_t i = 0; i < layer->n_out; i++)
        write_region(run, &layer->out[i],
                     layer->n_out == 1 ? layer->name : layer->out[i].name,
                     out[i]);
}

/* Nothing else runs meanwhile. Processors have no clock. */
static void take_time(Run *run, const HostLayer *layer) {
    if (!layer->reason)
        return;
    SimHostCall call = {
        .insn = run->insn,
        .layer = (uint32_t)(layer - run->listing->image.host),
        .start = run->issued,
        .cycles = hwspec_host_cycles(run->spec, layer->products, layer->bytes)};
    run->use[run->spec->n_engines + 1].cycles += call.cycles;
    run->result->host_cycles += call.cycles;
    vec_push(run->arena, &run->call, call);
}

void host_run(Run *run, const Work *work) {
    const HostLayer *layer = host_layer(run, work->name);
    if (!layer && run->listing->has_image) {
        fault(run, "the image has no host layer of this name");
    } else if (!layer) {
        note(run, "host layer %s skipped: its operands are not known",
             work->name);
    } else {
        run->on_host = true;
        run_layer(run, layer);
        run->on_host = false;
        take_time(run, layer);
    }
    run->use[run->spec->n_engines + 1].instructions++;
}
