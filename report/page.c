/* page.c - one compiled network on one page; see page.h.
 *
 * Input: a listing and its simulation. Output: data for report/web/report.js,
 * in HTML. Every number was counted by the simulation.
 */
#include "report/page.h"

#include "report/am_map.h"
#include "report/front.h"
#include "report/html.h"
#include "report/moves.h"
#include "report/sheet.h"
#include "report/tables.h"

/* ---- the machine ---- */

static void add_settings(JsonOut *to, const ReportInput *input) {
    json_out_list(to, "settings");
    for (uint32_t i = 0; i < input->n_settings; i++) {
        json_out_list(to, NULL);
        json_out_text(to, NULL, input->setting[i].path);
        json_out_text(to, NULL, input->setting[i].value);
        json_out_close(to);
    }
    json_out_close(to);
}

static const char *memory_title(HwRole role) {
    return role == HW_WEIGHTS ? "Memory of weights"
           : role == HW_BIAS  ? "Memory of biases"
           : role == HW_SUMS  ? "Memory of sums"
                              : "Active memory";
}

static void add_memories(JsonOut *to, const HwSpec *spec) {
    json_out_list(to, "memories");
    for (uint32_t i = 0; i < spec->n_memories; i++) {
        const HwMemory *m = &spec->memory[i];
        if (!am_draws(m->role))
            continue;
        json_out_object(to, NULL);
        json_out_number(to, "id", i);
        json_out_text(to, "title", memory_title(m->role));
        json_out_text(to, "name", m->name);
        json_out_number(to, "size", m->size);
        json_out_number(
            to, "partition",
            m->partitions > 1 && !m->buffers ? hwspec_partition_bytes(m) : 0);
        json_out_close(to);
    }
    json_out_close(to);
}

/* Products an engine can make in a cycle of the machine. */
static double peak(const HwSpec *spec, uint32_t engine) {
    const HwEngine *e = &spec->engine[engine];
    return hwspec_lanes(e) * e->clock / spec->clock;
}

static void add_lanes(JsonOut *to, const HwSpec *spec, const SimResult *sim) {
    json_out_list(to, "lanes");
    for (uint32_t i = 0; i < sim->n_engines; i++) {
        json_out_object(to, NULL);
        json_out_text(to, "name", sim->engine[i].name);
        json_out_number(to, "cycles", sim->engine[i].cycles);
        json_out_value(
            to, "peak",
            cJSON_CreateNumber(i < spec->n_engines ? peak(spec, i) : 0));
        json_out_close(to);
    }
    json_out_close(to);
}

/* Bytes a cycle to and from the memory behind active memory; 0: no bound. */
static double bytes_a_cycle(const HwSpec *spec) {
    return spec->backing < 0
               ? 0
               : spec->memory[spec->backing].bandwidth / spec->clock;
}

static void add_machine(JsonOut *to, const ReportInput *input) {
    const HwSpec *spec = input->listing->spec;
    json_out_text(to, "machine", spec->machine);
    json_out_text(to, "doc", spec->doc);
    json_out_text(to, "command", input->command);
    add_settings(to, input);
    json_out_number(to, "clock", (uint64_t)spec->clock);
    add_memories(to, spec);
    add_lanes(to, spec, input->sim);
    json_out_value(to, "bytes_a_cycle",
                   cJSON_CreateNumber(bytes_a_cycle(spec)));
}

/* ---- the network ---- */

static void add_names(JsonOut *to, const char *key, uint32_t n,
                      const char *const *name) {
    json_out_list(to, key);
    for (uint32_t i = 0; i < n; i++)
        json_out_text(to, NULL, name[i]);
    json_out_close(to);
}

static void add_layer(JsonOut *to, const ListingLayer *layer) {
    json_out_object(to, NULL);
    json_out_text(to, "name", layer->name);
    json_out_text(to, "type", layer->type);
    json_out_list(to, "shape");
    for (uint32_t i = 0; i < layer->shape.rank; i++)
        json_out_number(to, NULL, (uint64_t)layer->shape.dim[i]);
    json_out_close(to);
    json_out_number(to, "step", layer->step);
    add_names(to, "bottoms", layer->n_bottoms, layer->bottom);
    add_names(to, "merged", layer->n_merged, layer->merged);
    json_out_text(to, "where", layer->memory);
    json_out_close(to);
}

static void add_layers(JsonOut *to, const Nodes *nodes) {
    json_out_list(to, "layers");
    for (uint32_t i = 0; i < nodes->n; i++) {
        if (!nodes->name) {
            add_layer(to, nodes->layer[i]);
            continue;
        }
        json_out_object(to, NULL);
        json_out_text(to, "name", nodes->name[i]);
        json_out_close(to);
    }
    json_out_close(to);
}

/* ---- what happened ---- */

static void add_event(JsonOut *to, const Nodes *nodes, const SimEvent *e) {
    sheet_row(to, node_of_event(nodes, e));
    sheet_word(to, event_name(nodes->listing, e));
    sheet_word(to, hw_op_name[e->op]);
    const uint64_t number[] = {e->use,  e->start,   e->cycles, event_bound(e),
                               e->read, e->written, e->macs};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        sheet_count(to, number[i]);
    sheet_row_end(to);
}

static void add_events(JsonOut *to, const Nodes *nodes, const SimResult *sim) {
    add_names(to, "bounds", SIM_COST_COUNT, sim_cost_name);
    json_out_list(to, "events");
    for (uint32_t i = 0; i < sim->n_events; i++)
        add_event(to, nodes, &sim->event[i]);
    json_out_close(to);
    json_out_list(to, "calls");
    for (uint32_t i = 0; i < sim->n_calls; i++) {
        const SimHostCall *c = &sim->call[i];
        const char *name = nodes->listing->image.host[c->layer].name;
        uint32_t node = node_of_insn(nodes, c->insn);
        sheet_row(to, node != UINT32_MAX ? node : node_of_name(nodes, name));
        sheet_word(to, name);
        sheet_count(to, c->start);
        sheet_count(to, c->cycles);
        sheet_row_end(to);
    }
    json_out_close(to);
}

static void add_volumes(JsonOut *to, const Nodes *nodes, const SimResult *sim) {
    const AmVolume *v;
    uint32_t n = am_map(nodes->arena, nodes->listing, sim, &v);
    json_out_list(to, "volumes");
    for (uint32_t i = 0; i < n; i++) {
        sheet_row(to, node_of_event(nodes, v[i].by));
        sheet_word(to, event_name(nodes->listing, v[i].by));
        sheet_word(to, v[i].is_tiles               ? "tiles"
                       : v[i].by->op == HW_OP_LOAD ? "loaded"
                                                   : "made");
        const uint64_t number[] = {v[i].span.memory, v[i].span.at,
                                   v[i].span.end, v[i].from, v[i].to};
        for (size_t k = 0; k < sizeof number / sizeof *number; k++)
            sheet_count(to, number[k]);
        sheet_row_end(to);
    }
    json_out_close(to);
}

static void add_tables(JsonOut *to, const ReportInput *input,
                       const Nodes *nodes) {
    json_out_list(to, "tables");
    table_layers(to, input, nodes);
    table_what_if(to, input);
    table_moves(to, input, nodes);
    table_together(to, input, nodes);
    table_memory(to, input, nodes);
    table_cliffs(to, input, nodes);
    table_hosts(to, input->listing, nodes);
    table_volumes(to, input, nodes);
    json_out_close(to);
}

/* ---- the page ---- */

const char *report_page(Arena *arena, const ReportInput *input) {
    const Listing *listing = input->listing;
    const char *title = arena_printf(arena, "%s on %s", listing->network,
                                     listing->spec->machine);
    Nodes nodes = nodes_of(arena, listing, input->sim);
    Text json = text_new(arena);
    JsonOut out = json_out_new(&json);
    out.compact = true;
    json_out_object(&out, NULL);
    json_out_text(&out, "title", title);
    add_machine(&out, input);
    table_summary(&out, input);
    json_out_number(&out, "cycles", input->sim->cycles);
    add_layers(&out, &nodes);
    add_events(&out, &nodes, input->sim);
    add_volumes(&out, &nodes, input->sim);
    front_add(&out, input);
    add_tables(&out, input, &nodes);
    json_out_close(&out);
    return html_page(arena, title, text_str(&json), embedded_report_js);
}
