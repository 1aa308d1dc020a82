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

static void add_event(cJSON *list, const Listing *listing, const SimEvent *e) {
    double us = 1e6 / listing->spec->clock;
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", event_name(listing, e));
    cJSON_AddStringToObject(item, "cat", hw_op_name[e->op]);
    cJSON_AddStringToObject(item, "ph", "X");
    cJSON_AddNumberToObject(item, "pid", 1);
    cJSON_AddNumberToObject(item, "tid", e->use);
    cJSON_AddNumberToObject(item, "ts", (double)e->start * us);
    cJSON_AddNumberToObject(item, "dur", (double)e->cycles * us);
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
    cJSON_AddItemToArray(list, item);
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
    for (uint32_t i = 0; i < sim->n_events; i++)
        add_event(list, listing, &sim->event[i]);
    const char *text = json_print(arena, json, false);
    json_free(json);
    return text;
}
