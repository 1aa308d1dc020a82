/* tables.c - the tables of a page; see tables.h.
 *
 * Input: events of a simulation, and the image's constants. Output: rows of
 * data, which the page's script shows.
 */
#include "report/tables.h"

#include "report/moves.h"
#include "report/sheet.h"

#include <inttypes.h>
#include <string.h>

SimCost event_bound(const SimEvent *e) {
    SimCost bound = SIM_COMPUTE;
    for (SimCost i = SIM_COMPUTE; i < SIM_COST_COUNT; i++)
        if (e->cost[i] > e->cost[bound])
            bound = i;
    return bound;
}

double event_utilisation(const HwSpec *spec, const SimEvent *e) {
    if (e->use >= spec->n_engines || !e->cycles)
        return 0;
    const HwEngine *engine = &spec->engine[e->use];
    double peak = hwspec_lanes(engine) * engine->clock / spec->clock;
    return (double)e->macs / ((double)e->cycles * peak);
}

const char *event_name(const Listing *listing, const SimEvent *e) {
    bool moves = e->op == HW_OP_LOAD || e->op == HW_OP_STORE;
    const char *comment = listing->insn[e->insn].comment;
    return moves && comment ? comment : e->name;
}

/* ---- summary ---- */

/* Cycles in which no engine works. */
static uint64_t idle_cycles(const SimResult *s, uint32_t n_engines) {
    uint64_t idle = 0, computed = 0;
    for (uint32_t i = 0; i < s->n_events; i++) {
        const SimEvent *e = &s->event[i];
        idle += e->idle;
        if (e->use < n_engines && e->start + e->cycles > computed)
            computed = e->start + e->cycles;
    }
    return idle + s->cycles - computed;
}

/* A figure of the page's head: what it is called, and what it counts. */
static void fact(JsonOut *to, const char *name, uint64_t value,
                 const char *what) {
    json_out_list(to, NULL);
    json_out_text(to, NULL, name);
    json_out_number(to, NULL, value);
    json_out_text(to, NULL, what);
    json_out_close(to);
}

static void facts_of_time(JsonOut *to, const ReportInput *input) {
    const SimResult *s = input->sim;
    double clock = input->listing->spec->clock;
    fact(to, "time", s->cycles,
         arena_printf(to->text->arena, "cycles: %.3f ms at %.0f MHz%s",
                      (double)s->cycles / clock * 1e3, clock / 1e6,
                      s->host_cycles ? ", layers of the host aside" : ""));
    if (s->host_cycles) {
        fact(to, "host", s->host_cycles, "cycles, which all wait for");
        fact(to, "in all", s->cycles + s->host_cycles, "cycles");
    }
    if (s->interval != s->cycles)
        fact(to, "steady", s->interval,
             arena_printf(
                 to->text->arena, "cycles an image, %s",
                 sim_images_how(to->text->arena, input->listing->spec)));
    if (s->transfer)
        fact(to, "no engine works",
             idle_cycles(s, input->listing->spec->n_engines), "cycles");
}

static void facts_of_bytes(JsonOut *to, const ReportInput *input) {
    const SimResult *s = input->sim;
    const HwSpec *spec = input->listing->spec;
    uint64_t capacity = 0;
    for (uint32_t i = 0; i < spec->n_active; i++)
        capacity += spec->memory[i].size;
    fact(to, "active memory", s->am_peak,
         arena_printf(to->text->arena, "bytes up to the highest touched, of %s",
                      with_commas(to->text->arena, capacity)));
    fact(to, "DDR read", s->backing_read, "bytes");
    fact(to, "DDR written", s->backing_written, "bytes");
    fact(to, "compulsory", input->sim->compulsory,
         "bytes must cross in any case");
    if (input->bound_of)
        fact(to, "bound", input->bound, input->bound_of);
    fact(to, "weights", s->weights_read, "bytes into their cache");
}

void table_summary(JsonOut *to, const ReportInput *input) {
    const SimResult *s = input->sim;
    json_out_list(to, "facts");
    facts_of_time(to, input);
    facts_of_bytes(to, input);
    fact(to, "products", sim_products(s), "of convolutions");
    fact(to, "instructions", s->instructions, "of engines and the DMA");
    if (s->n_violations)
        fact(to, "violations", s->n_violations, "rules of the machine broken");
    json_out_close(to);
}

/* ---- what if ---- */

static void change_cell(JsonOut *to, uint64_t value, uint64_t base) {
    sheet_some(to, value);
    if (value && base)
        sheet_real(to, (double)value / (double)base - 1);
    else
        sheet_empty(to);
}

void table_what_if(JsonOut *to, const ReportInput *input) {
    static const char *const columns[] = {"<change",  "cycles", "+",
                                          "AM bytes", "+",      "DDR bytes",
                                          "+",        "<how",   NULL};
    if (!input->n_what_ifs)
        return;
    const SimResult *s = input->sim;
    sheet_open(to, "What if",
               "Planned anew: the network was compiled for the changed "
               "machine. The same plan: it was run on the changed machine, for "
               "which a plan of its own may be better; --what-if makes those.",
               columns);
    for (uint32_t i = 0; i < input->n_what_ifs; i++) {
        const WhatIf *w = &input->what_if[i];
        sheet_row(to, UINT32_MAX);
        sheet_word(to, w->change);
        if (w->fits) {
            change_cell(to, w->cycles, s->interval + s->host_cycles);
            change_cell(to, w->am_peak, s->am_peak);
            change_cell(to, w->ddr, s->backing_read + s->backing_written);
        }
        for (int k = 0; !w->fits && k < 6; k++)
            sheet_empty(to);
        sheet_word(to, w->fits ? w->how : w->reason);
        sheet_row_end(to);
    }
    sheet_close(to);
}

/* ---- what moves, and why no more does ---- */

#define HEAD(field, head, key) head,

void table_moves(JsonOut *to, const ReportInput *input, const Nodes *nodes) {
    static const char *const columns[] = {"<volume", "<",
                                          VOLUME_MOVES(HEAD) "%of all", NULL};
    const SimResult *sim = input->sim;
    const VolumeMoves *v;
    uint32_t n = moves_by_volume(nodes->arena, input->listing, sim, &v);
    uint64_t all = sim->backing_read + sim->backing_written;
    if (!n)
        return;
    sheet_open(to, "What moves",
               "Bytes between active memory and all that is not, by volume, "
               "in the order of first moves: the image and results, and what "
               "is spilled. What is not in the table never leaves active "
               "memory.",
               columns);
    for (uint32_t i = 0; i < n; i++) {
        sheet_row(to, node_of_name(nodes, v[i].name));
        sheet_word(to, v[i].name);
        sheet_word(to, v[i].by_tiles ? "tiles" : "");
#define CELL(field, head, key) sheet_some(to, v[i].field);
        VOLUME_MOVES(CELL)
#undef CELL
        sheet_real(to,
                   all ? (double)(v[i].read + v[i].written) / (double)all : 0);
        sheet_row_end(to);
    }
    sheet_close(to);
}

void table_together(JsonOut *to, const ReportInput *input, const Nodes *nodes) {
    static const char *const columns[] = {"<first", "<last",
                                          LAYERS_TOGETHER(HEAD) NULL};
    const LayersTogether *t;
    uint32_t n = moves_together(nodes->arena, input->listing, input->sim, &t);
    if (!n)
        return;
    sheet_open(to, "Layers that run together",
               "Their tiles alternate, so what lies between the first and the "
               "last of them never exists whole. Bytes: all that moves "
               "meanwhile.",
               columns);
    for (uint32_t i = 0; i < n; i++) {
        sheet_row(to, node_of_name(nodes, t[i].first));
        sheet_word(to, t[i].first);
        sheet_word(to, t[i].last);
#define CELL(field, head, key) sheet_count(to, t[i].field);
        LAYERS_TOGETHER(CELL)
#undef CELL
        sheet_row_end(to);
    }
    sheet_close(to);
}

/* ---- layers ---- */

static void layer_row(JsonOut *to, const ReportInput *input, const Nodes *nodes,
                      const SimEvent *e) {
    sheet_row(to, node_of_event(nodes, e));
    sheet_word(to, event_name(input->listing, e));
    sheet_word(to, hw_op_name[e->op]);
    sheet_word(to, input->sim->engine[e->use].name);
    sheet_count(to, e->start);
    sheet_count(to, e->cycles);
    if (e->macs)
        sheet_real(to, event_utilisation(input->listing->spec, e));
    else
        sheet_empty(to);
    for (int i = 0; i < SIM_COST_COUNT; i++)
        sheet_some(to, e->cost[i]);
    sheet_word(to, sim_cost_name[event_bound(e)]);
    sheet_some(to, e->read);
    sheet_some(to, e->written);
    sheet_some(to, e->least);
    sheet_some(to, e->idle);
    sheet_word(to, e->behind);
    sheet_row_end(to);
}

void table_layers(JsonOut *to, const ReportInput *input, const Nodes *nodes) {
    static const char *const columns[] = {
        "<layer",     "<operation", "<engine", "from cycle", "cycles",
        "%array use", "array",      "ports",   "weights",    "transfer",
        "<bound by",  "DDR read",   "written", "least",      "idle before",
        "<behind",    NULL};
    const SimResult *sim = rows_of(nodes->arena, input->listing, input->sim);
    sheet_open(to, "Layers",
               "Cycles by what they are spent on overlap; array use is of the "
               "products that the engine could make in the layer's cycles. "
               "Least: the DDR bytes of its operands, each once. Idle before: "
               "cycles in which no engine works, behind the transfer that it "
               "waits for.",
               columns);
    for (uint32_t i = 0; i < sim->n_events; i++)
        layer_row(to, input, nodes, &sim->event[i]);
    sheet_close(to);
}

/* ---- memory ---- */

typedef struct LayerMemory {
    uint64_t weight, bias, scale;
} LayerMemory;

static uint64_t blob_bytes(const HwSpec *spec, const Blob *blob) {
    return shape_count(&blob->value.shape) * spec->element;
}

static LayerMemory constants_of(const Listing *listing, const char *layer) {
    LayerMemory m = {0};
    for (uint32_t i = 0; i < listing->image.n_blobs; i++) {
        const Blob *b = &listing->image.blob[i];
        if (strcmp(b->layer, layer))
            continue;
        uint64_t bytes = blob_bytes(listing->spec, b);
        if (!strcmp(b->role, "weight"))
            m.weight += bytes;
        else if (!strcmp(b->role, "bias"))
            m.bias += bytes;
        else
            m.scale += bytes;
    }
    return m;
}

/* The layer whose constants an instruction uses: a tile's name without #k, the
 * convolution's of a convolution with its pool. */
static const char *constants_name(Arena *arena, const Listing *listing,
                                  const SimEvent *e) {
    HwFields f;
    insn_fields(listing->spec, &listing->insn[e->insn], &f);
    const char *name = e->name;
    if (f.set[HW_F_CONV_NAME] && f.str[HW_F_CONV_NAME])
        name = f.str[HW_F_CONV_NAME];
    const char *mark = strrchr(name, '#');
    return mark ? arena_strndup(arena, name, (size_t)(mark - name)) : name;
}

static void memory_row(JsonOut *to, const ReportInput *input,
                       const Nodes *nodes, const SimEvent *e) {
    LayerMemory m = constants_of(
        input->listing, constants_name(nodes->arena, input->listing, e));
    sheet_row(to, node_of_event(nodes, e));
    sheet_word(to, e->name);
    sheet_some(to, e->in.end - e->in.at + (e->in2.end - e->in2.at));
    sheet_some(to, e->out.end - e->out.at);
    sheet_some(to, e->tiles.end - e->tiles.at);
    sheet_some(to, m.weight);
    sheet_some(to, m.bias);
    sheet_some(to, m.scale);
    sheet_some(to, e->macs);
    sheet_row_end(to);
}

void table_memory(JsonOut *to, const ReportInput *input, const Nodes *nodes) {
    static const char *const columns[] = {"<layer", "input",    "output",
                                          "tiles",  "weights",  "bias",
                                          "scale",  "products", NULL};
    const SimResult *sim = rows_of(nodes->arena, input->listing, input->sim);
    sheet_open(to, "Memory",
               arena_printf(nodes->arena,
                            "Bytes; activations as they lie in their memory, "
                            "with padding and copies; tiles: what passes "
                            "through buffers in active memory; constants as "
                            "%u bytes a value.",
                            input->listing->spec->element),
               columns);
    for (uint32_t i = 0; i < sim->n_events; i++)
        if (sim->event[i].use < input->listing->spec->n_engines)
            memory_row(to, input, nodes, &sim->event[i]);
    sheet_close(to);
}

/* ---- host ---- */

void table_hosts(JsonOut *to, const Listing *listing, const Nodes *nodes) {
    static const char *const columns[] = {"<layer", "<kind", "<why", NULL};
    const Image *image = &listing->image;
    if (!image->n_hosts)
        return;
    sheet_open(to, "Layers of the host", "", columns);
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        const HostLayer *host = &image->host[i];
        sheet_row(to, node_of_name(nodes, host->name));
        sheet_word(to, host->name);
        sheet_word(to, host->kind);
        sheet_word(to, host->reason);
        sheet_row_end(to);
    }
    sheet_close(to);
}

/* ---- volumes ---- */

/* "conv1 (16x8x8)": the layer is named in front. */
static uint32_t node_of_volume(const Nodes *nodes, const char *name) {
    const char *end = strstr(name, " (");
    return node_of_name(
        nodes,
        end ? arena_strndup(nodes->arena, name, (size_t)(end - name)) : name);
}

void table_volumes(JsonOut *to, const ReportInput *input, const Nodes *nodes) {
    static const char *const columns[] = {"<volume", "<where, and why there",
                                          NULL};
    if (!input->volumes)
        return;
    sheet_open(to, "Volumes", "Steps count from 1, as in the listing.",
               columns);
    for (const char *line = input->volumes; *line;) {
        size_t len = strcspn(line, "\n");
        const char *all = arena_strndup(nodes->arena, line, len);
        const char *colon = strstr(all, ": ");
        line += len + (line[len] == '\n');
        if (!colon)
            continue;
        const char *name =
            arena_strndup(nodes->arena, all, (size_t)(colon - all));
        sheet_row(to, node_of_volume(nodes, name));
        sheet_word(to, name);
        sheet_word(to, colon + 2);
        sheet_row_end(to);
    }
    sheet_close(to);
}
