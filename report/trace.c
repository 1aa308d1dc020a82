/* trace.c - a simulation as trace events; see page.h.
 *
 * Output: the JSON that chrome://tracing and Perfetto read: complete events
 * ("X") with microseconds, a thread an engine.
 */
#include "base/json.h"
#include "report/page.h"
#include "report/tables.h"

static void add_name(cJSON *list, const char *kind, uint32_t lane,
                     const char *name) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", kind);
    cJSON_AddStringToObject(item, "ph", "M");
    cJSON_AddNumberToObject(item, "pid", 1);
    cJSON_AddNumberToObject(item, "tid", lane);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(item, "args"), "name",
                            name);
    cJSON_AddItemToArray(list, item);
}

/* A complete event of a lane; times in cycles of the machine's clock. */
static cJSON *new_event(cJSON *list, const Listing *listing, const char *name,
                        HwOp op, uint32_t lane, uint64_t start,
                        uint64_t cycles) {
    double us = 1e6 / listing->spec->clock;
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", name);
    cJSON_AddStringToObject(item, "cat", hw_op_name[op]);
    cJSON_AddStringToObject(item, "ph", "X");
    cJSON_AddNumberToObject(item, "pid", 1);
    cJSON_AddNumberToObject(item, "tid", lane);
    cJSON_AddNumberToObject(item, "ts", (double)start * us);
    cJSON_AddNumberToObject(item, "dur", (double)cycles * us);
    cJSON_AddItemToArray(list, item);
    return item;
}

static void add_event(cJSON *list, const Listing *listing, const SimEvent *e,
                      uint64_t waited) {
    cJSON *item = new_event(list, listing, event_name(listing, e), e->op,
                            e->use, e->start + waited, e->cycles);
    cJSON *args = cJSON_AddObjectToObject(item, "args");
    cJSON_AddNumberToObject(args, "instruction", e->insn);
    cJSON_AddNumberToObject(args, "cycles", (double)e->cycles);
    cJSON_AddStringToObject(args, "bound_by", sim_cost_name[event_bound(e)]);
    for (int i = 0; i < SIM_COST_COUNT; i++)
        if (e->cost[i])
            cJSON_AddNumberToObject(args, sim_cost_name[i], (double)e->cost[i]);
    cJSON_AddNumberToObject(args, "macs", (double)e->macs);
    cJSON_AddNumberToObject(args, "ddr_read_bytes", (double)e->read);
    cJSON_AddNumberToObject(args, "ddr_written_bytes", (double)e->written);
}

/* Events of engines in the listing's order, each behind the layers of the host
 * that stand before it. */
static void add_events(cJSON *list, const Listing *listing,
                       const SimResult *sim) {
    uint64_t waited = 0;
    uint32_t call = 0;
    for (uint32_t i = 0; i <= sim->n_events; i++) {
        uint32_t insn = i < sim->n_events ? sim->event[i].insn : listing->n;
        for (; call < sim->n_calls && sim->call[call].insn < insn; call++) {
            const SimHostCall *c = &sim->call[call];
            new_event(list, listing, listing->image.host[c->layer].name,
                      HW_OP_HOST, listing->spec->n_engines + 1,
                      c->start + waited, c->cycles);
            waited += c->cycles;
        }
        if (i < sim->n_events)
            add_event(list, listing, &sim->event[i], waited);
    }
}

const char *report_trace(Arena *arena, const Listing *listing,
                         const SimResult *sim) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "displayTimeUnit", "ms");
    cJSON *list = cJSON_AddArrayToObject(json, "traceEvents");
    add_name(list, "process_name", 0, listing->spec->machine);
    for (uint32_t i = 0; i < sim->n_engines; i++)
        if (sim->engine[i].cycles)
            add_name(list, "thread_name", i, sim->engine[i].name);
    add_events(list, listing, sim);
    const char *text = json_print(arena, json, false);
    json_free(json);
    return text;
}
