/* accesses.c - the simulation, and a line for each access; see accesses.h.
 *
 * Input: a listing. Output: the result, and a file that is written while the
 * simulation runs: nothing of it is kept in memory. Invariant: the same listing
 * gives the same bytes.
 */
#include "driver/accesses.h"

#include "base/file.h"

#include <inttypes.h>
#include <string.h>

typedef struct Task {
    Arena *arena;
    Diag *diag;
    const Listing *listing;
    uint32_t n_inputs;
    const float *const *inputs;
    const SimOptions *options;
    const SimResult **result;
} Task;

typedef struct Table {
    Text *out;
    const HwSpec *spec;
    const Listing *listing;
} Table;

static const char *operation(const Table *table, const SimAccesses *a) {
    if (a->insn == UINT32_MAX)
        return a->access[0].writes ? "input" : "output";
    return hw_op_name[insn_op(table->spec, &table->listing->insn[a->insn])];
}

/* A name in quotes; those in it are doubled. */
static void add_name(Text *out, const char *name) {
    text_add(out, "\"");
    for (; *name; name++)
        text_add_n(out, *name == '"' ? "\"\"" : name, *name == '"' ? 2 : 1);
    text_add(out, "\"");
}

static void add_access(const Table *table, const SimAccesses *a,
                       const SimAccess *access) {
    text_addf(table->out, "%" PRIu64 ",%" PRIu64 ",", a->start, a->end);
    if (a->insn != UINT32_MAX)
        text_addf(table->out, "%" PRIu32, a->insn);
    text_addf(table->out, ",%s,%s,", operation(table, a),
              access->by_host ? "host" : a->unit);
    add_name(table->out, a->name);
    text_addf(table->out,
              ",%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
              access->writes ? "write" : "read",
              table->spec->memory[access->memory].name, access->at, access->end,
              access->more + 1, access->step);
}

static void add_accesses(void *context, const SimAccesses *accesses) {
    for (uint32_t i = 0; i < accesses->n; i++)
        add_access(context, accesses, &accesses->access[i]);
}

static void simulate(Text *out, const void *context) {
    const Task *task = context;
    Table table = {out, task->listing->spec, task->listing};
    SimOptions options = *task->options;
    options.watcher = add_accesses;
    options.watcher_context = &table;
    text_add(out, "cycle,until,instruction,operation,unit,layer,access,memory,"
                  "from,to,ranges,step\n");
    *task->result = sim_run(task->arena, task->diag, task->listing,
                            task->n_inputs, task->inputs, &options);
}

const SimResult *accesses_run(Arena *arena, Diag *diag, const Listing *listing,
                              uint32_t n_inputs, const float *const *inputs,
                              const SimOptions *options, const char *path) {
    const SimResult *result = NULL;
    if (!path)
        return sim_run(arena, diag, listing, n_inputs, inputs, options);
    const Task task = {arena,  diag,    listing, n_inputs,
                       inputs, options, &result};
    const FilePart part = {.path = path, .write = simulate, .context = &task};
    return file_write_all(arena, diag, 1, &part) ? result : NULL;
}
