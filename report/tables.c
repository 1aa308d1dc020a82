/* tables.c - the tables of a page; see tables.h.
 *
 * Input: events of a simulation, and the image's constants. Output: HTML.
 */
#include "report/tables.h"

#include "report/html.h"
#include "report/moves.h"

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
    const HwUnroll *u = &engine->unroll;
    double peak = (double)u->out_c * u->in_c * u->kernel * u->out_h * u->out_w *
                  engine->clock / spec->clock;
    return (double)e->macs / ((double)e->cycles * peak);
}

const char *event_name(const Listing *listing, const SimEvent *e) {
    bool moves = e->op == HW_OP_LOAD || e->op == HW_OP_STORE;
    const char *comment = listing->insn[e->insn].comment;
    return moves && comment ? comment : e->name;
}

/* ---- cells ---- */

static void name_cell(Text *to, const char *name) {
    text_add(to, "<td class=\"l\">");
    html_text(to, name);
    text_add(to, "</td>");
}

static void number_cell(Text *to, uint64_t value) {
    text_add(to, "<td>");
    html_count(to, value);
    text_add(to, "</td>");
}

/* Blank where there are none. */
static void count_cell(Text *to, uint64_t value) {
    if (value)
        number_cell(to, value);
    else
        text_add(to, "<td></td>");
}

static void heads(Text *to, const char *left, const char *const *right) {
    text_addf(to, "<div class=\"scroll\"><table><tr><th class=\"l\">%s</th>",
              left);
    for (; *right; right++) /* '<' in front: to the left */
        if (**right == '<')
            text_addf(to, "<th class=\"l\">%s</th>", *right + 1);
        else
            text_addf(to, "<th>%s</th>", *right);
    text_add(to, "</tr>\n");
}

static void close_table(Text *to) {
    text_add(to, "</table></div>\n");
}

static void fact(Text *to, const char *name, uint64_t value, const char *what) {
    text_addf(to, "<tr><td class=\"l\">%s</td><td>", name);
    html_count(to, value);
    text_addf(to, "</td><td class=\"l\">%s</td></tr>\n", what);
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

void table_summary(Text *to, const ReportInput *input) {
    const SimResult *s = input->sim;
    const HwSpec *spec = input->listing->spec;
    uint64_t capacity = 0, macs = 0;
    for (uint32_t i = 0; i < spec->n_active; i++)
        capacity += spec->memory[i].size;
    for (uint32_t i = 0; i < s->n_events; i++)
        macs += s->event[i].macs;
    text_add(to, "<table>\n");
    text_add(to, "<tr><td class=\"l\">time</td><td>");
    html_count(to, s->cycles);
    text_addf(to,
              "</td><td class=\"l\">cycles: %.3f ms at %.0f MHz, layers of "
              "the host aside</td></tr>\n",
              (double)s->cycles / spec->clock * 1e3, spec->clock / 1e6);
    if (s->host_cycles) {
        fact(to, "", s->host_cycles, "cycles of the host, which all wait for");
        fact(to, "", s->cycles + s->host_cycles, "cycles in all");
    }
    if (s->interval != s->cycles)
        fact(to, "", s->interval, "cycles an image, one behind the other");
    fact(to, "products", macs, "of convolutions");
    fact(to, "active memory", s->am_peak, "bytes up to the highest touched");
    fact(to, "", capacity, "bytes of it there are");
    fact(to, "DDR", s->backing_read, "bytes read");
    fact(to, "", s->backing_written, "bytes written");
    fact(to, "", s->compulsory, "bytes must cross in any case");
    if (input->bound_of)
        fact(to, "", input->bound, input->bound_of);
    if (s->transfer) {
        fact(to, "transfers", s->transfer, "cycles");
        fact(to, "", idle_cycles(s, spec->n_engines),
             "cycles in which no engine works");
    }
    fact(to, "weights", s->weights_read, "bytes into their cache");
    fact(to, "instructions", s->instructions, "of engines and the DMA");
    if (s->n_violations)
        fact(to, "<span class=\"mark\">violations</span>", s->n_violations,
             "rules of the machine broken");
    text_add(to, "</table>\n");
}

/* ---- what if ---- */

static void change_cell(Text *to, uint64_t value, uint64_t base) {
    count_cell(to, value);
    double change = base ? (double)value / (double)base - 1 : 0;
    if (change != 0)
        text_addf(to, "<td>%+.1f %%</td>", change * 100);
    else
        text_add(to, "<td>0</td>");
}

void table_what_if(Text *to, const ReportInput *input) {
    static const char *const right[] = {"cycles",    "", "AM bytes", "",
                                        "DDR bytes", "", NULL};
    if (!input->n_what_ifs)
        return;
    const SimResult *s = input->sim;
    text_add(to, "<h2>What if</h2>\n");
    heads(to, "change", right);
    for (uint32_t i = 0; i < input->n_what_ifs; i++) {
        const WhatIf *w = &input->what_if[i];
        text_add(to, "<tr>");
        name_cell(to, w->change);
        if (w->fits) {
            change_cell(to, w->cycles, s->interval + s->host_cycles);
            change_cell(to, w->am_peak, s->am_peak);
            change_cell(to, w->ddr, s->backing_read + s->backing_written);
        } else {
            text_add(to, "<td colspan=\"6\" class=\"w\">");
            html_text(to, w->reason);
            text_add(to, "</td>");
        }
        text_add(to, "</tr>\n");
    }
    close_table(to);
}

/* ---- what moves, and why no more does ---- */

#define HEAD(field, head, key) head,

void table_moves(Arena *arena, Text *to, const ReportInput *input) {
    static const char *const right[] = {VOLUME_MOVES(HEAD) "<of all", NULL};
    const SimResult *sim = input->sim;
    const VolumeMoves *v;
    uint32_t n = moves_by_volume(arena, input->listing, sim, &v);
    uint64_t all = sim->backing_read + sim->backing_written;
    if (!n)
        return;
    text_add(to, "<h2>What moves</h2>\n<p>Bytes between active memory and all "
                 "that is not, by volume, in the order of first moves: the "
                 "image and results, and what is spilled. What is not in the "
                 "table never leaves active memory.</p>\n");
    heads(to, "volume", right);
    for (uint32_t i = 0; i < n; i++) {
        text_add(to, "<tr><td class=\"l\">");
        text_add(to, v[i].by_tiles ? "tiles of " : "");
        html_text(to, v[i].name);
        text_add(to, "</td>");
#define CELL(field, head, key) count_cell(to, v[i].field);
        VOLUME_MOVES(CELL)
#undef CELL
        text_addf(to,
                  "<td class=\"l\"><span class=\"bar\" "
                  "style=\"width:%.1fem\"></span></td></tr>\n",
                  (double)(v[i].read + v[i].written) / (double)all * 20);
    }
    close_table(to);
}

void table_together(Arena *arena, Text *to, const ReportInput *input) {
    static const char *const right[] = {"<last", LAYERS_TOGETHER(HEAD) NULL};
    const LayersTogether *t;
    uint32_t n = moves_together(arena, input->listing, input->sim, &t);
    if (!n)
        return;
    text_add(to, "<h2>Layers that run together</h2>\n<p>Their tiles "
                 "alternate, so what lies between the first and the last of "
                 "them never exists whole. Bytes: all that moves "
                 "meanwhile.</p>\n");
    heads(to, "first", right);
    for (uint32_t i = 0; i < n; i++) {
        text_add(to, "<tr>");
        name_cell(to, t[i].first);
        name_cell(to, t[i].last);
#define CELL(field, head, key) number_cell(to, t[i].field);
        LAYERS_TOGETHER(CELL)
#undef CELL
        text_add(to, "</tr>\n");
    }
    close_table(to);
}

/* ---- layers ---- */

static void layer_row(Text *to, const ReportInput *input, const SimEvent *e) {
    const SimResult *sim = input->sim;
    const HwSpec *spec = input->listing->spec;
    double used = event_utilisation(spec, e);
    text_add(to, "<tr>");
    name_cell(to, event_name(input->listing, e));
    text_addf(to, "<td class=\"l\">%s</td><td class=\"l\">%s</td>",
              hw_op_name[e->op], sim->engine[e->use].name);
    text_add(to, "<td>");
    html_count(to, e->start);
    text_add(to, "</td>");
    count_cell(to, e->cycles);
    if (e->macs)
        text_addf(to,
                  "<td>%.1f %%</td><td class=\"l\"><span class=\"bar\" "
                  "style=\"width:%.1fem\"></span></td>",
                  used * 100, used * 6);
    else
        text_add(to, "<td></td><td></td>");
    for (int i = 0; i < SIM_COST_COUNT; i++)
        count_cell(to, e->cost[i]);
    text_addf(to, "<td class=\"l\">%s</td>", sim_cost_name[event_bound(e)]);
    count_cell(to, e->read);
    count_cell(to, e->written);
    count_cell(to, e->least);
    count_cell(to, e->idle);
    name_cell(to, e->behind ? e->behind : "");
    text_add(to, "</tr>\n");
}

void table_layers(Text *to, const ReportInput *input) {
    static const char *const right[] = {
        "<operation", "<engine",  "from cycle", "cycles",  "array use",
        "",           "array",    "ports",      "weights", "transfer",
        "<bound by",  "DDR read", "written",    "least",   "idle before",
        "<behind",    NULL};
    const SimResult *sim = input->sim;
    text_add(to, "<h2>Layers</h2>\n<p>Cycles by what they are spent on "
                 "overlap; array use is of the products that the engine "
                 "could make in the layer's cycles. Least: the DDR bytes of "
                 "its operands, each once. Idle before: cycles in which no "
                 "engine works, behind the transfer that it waits for.</p>\n");
    heads(to, "layer", right);
    for (uint32_t i = 0; i < sim->n_events; i++)
        layer_row(to, input, &sim->event[i]);
    close_table(to);
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

static void memory_row(Text *to, const char *name, uint64_t in, uint64_t out,
                       uint64_t tiles, const LayerMemory *m, uint64_t macs) {
    text_add(to, "<tr>");
    name_cell(to, name);
    count_cell(to, in);
    count_cell(to, out);
    count_cell(to, tiles);
    count_cell(to, m->weight);
    count_cell(to, m->bias);
    count_cell(to, m->scale);
    count_cell(to, macs);
    text_add(to, "</tr>\n");
}

void table_memory(Arena *arena, Text *to, const ReportInput *input) {
    static const char *const right[] = {"input", "output", "tiles", "weights",
                                        "bias",  "scale",  "MAC",   NULL};
    const SimResult *sim = input->sim;
    LayerMemory sum = {0};
    uint64_t macs = 0;
    text_addf(to,
              "<h2>Memory</h2>\n<p>Bytes; activations as they lie in "
              "their memory, with padding and copies; tiles: what passes "
              "through buffers in active memory; constants as %u bytes a "
              "value.</p>\n",
              input->listing->spec->element);
    heads(to, "layer", right);
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        if (e->use >= input->listing->spec->n_engines)
            continue;
        LayerMemory m = constants_of(input->listing,
                                     constants_name(arena, input->listing, e));
        memory_row(to, e->name, e->in.end - e->in.at + (e->in2.end - e->in2.at),
                   e->out.end - e->out.at, e->tiles.end - e->tiles.at, &m,
                   e->macs);
        sum.weight += m.weight;
        sum.bias += m.bias;
        sum.scale += m.scale;
        macs += e->macs;
    }
    memory_row(to, "all", 0, 0, 0, &sum, macs);
    close_table(to);
}

/* ---- host ---- */

void table_hosts(Text *to, const Listing *listing) {
    static const char *const right[] = {"<kind", "<why", NULL};
    const Image *image = &listing->image;
    if (!image->n_hosts)
        return;
    text_add(to, "<h2>Layers of the host</h2>\n");
    heads(to, "layer", right);
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        const HostLayer *host = &image->host[i];
        text_add(to, "<tr>");
        name_cell(to, host->name);
        name_cell(to, host->kind);
        name_cell(to, host->reason ? host->reason : "");
        text_add(to, "</tr>\n");
    }
    close_table(to);
}

/* ---- volumes ---- */

void table_volumes(Arena *arena, Text *to, const ReportInput *input) {
    static const char *const right[] = {"<where, and why there", NULL};
    if (!input->volumes)
        return;
    text_add(to, "<h2>Volumes</h2>\n<p>Steps count from 1, as in the "
                 "listing.</p>\n");
    heads(to, "volume", right);
    for (const char *line = input->volumes; *line;) {
        size_t len = strcspn(line, "\n");
        const char *all = arena_strndup(arena, line, len);
        const char *colon = strstr(all, ": ");
        line += len + (line[len] == '\n');
        if (!colon)
            continue;
        text_add(to, "<tr>");
        name_cell(to, arena_strndup(arena, all, (size_t)(colon - all)));
        text_add(to, "<td class=\"w\">");
        html_text(to, colon + 2);
        text_add(to, "</td></tr>\n");
    }
    close_table(to);
}
