/* cliffs.c - what one channel more or less would cost; see tables.h.
 *
 * Input: convolutions of a listing. Output: a table of the array's cycles with
 * one input or output channel fewer and more: unrolled axes make steps of
 * them, and a channel at an edge is either free or dear.
 */
#include "report/sheet.h"
#include "report/tables.h"

#include <stdlib.h>

enum { MAX_ROWS = 20 };

typedef struct Conv {
    const SimEvent *event;
    uint32_t in_c, out_c, area;
    bool replicated;
    int64_t change[4]; /* cycles: inputs - 1, + 1, outputs - 1, + 1 */
    uint64_t largest;
} Conv;

static int64_t field(const HwFields *f, HwField at, int64_t absent) {
    return f->set[at] ? f->num[at] : absent;
}

static bool read_conv(const HwSpec *spec, const Listing *listing,
                      const SimEvent *e, Conv *out) {
    HwFields f;
    insn_fields(spec, &listing->insn[e->insn], &f);
    if (!e->macs || !f.set[HW_F_IN_C] || field(&f, HW_F_GROUPS, 1) > 1)
        return false;
    int64_t kernel = field(&f, HW_F_KERNEL_W, 1);
    int64_t area = kernel * field(&f, HW_F_KERNEL_H, kernel);
    int64_t out_c = field(&f, HW_F_MID_C, field(&f, HW_F_OUT_C, 0));
    if (f.num[HW_F_IN_C] < 2 || out_c < 2 || area < 1)
        return false;
    *out = (Conv){.event = e,
                  .in_c = (uint32_t)f.num[HW_F_IN_C],
                  .out_c = (uint32_t)out_c,
                  .area = (uint32_t)area,
                  .replicated = field(&f, HW_F_IN_UNITS, 0) > 1};
    return true;
}

static double steps_in(const HwSpec *spec, const Conv *conv, uint32_t in_c) {
    const HwUnroll *u = &spec->engine[conv->event->use].unroll;
    bool by_tiles = conv->event->tiles.end > conv->event->tiles.at;
    if (conv->replicated)
        return (double)hwspec_weight_rows(
            hwspec_repl_rule(spec, in_c, conv->area, by_tiles), conv->area);
    return (double)((in_c + u->in_c - 1) / u->in_c) *
           (double)((conv->area + u->kernel - 1) / u->kernel);
}

static double steps_out(const HwSpec *spec, const Conv *conv, uint32_t out_c) {
    const HwUnroll *u = &spec->engine[conv->event->use].unroll;
    return (double)((out_c + u->out_c - 1) / u->out_c);
}

static void find_changes(const HwSpec *spec, Conv *c) {
    double in = steps_in(spec, c, c->in_c), out = steps_out(spec, c, c->out_c);
    double step = (double)c->event->cost[SIM_COMPUTE] / (in * out);
    double then[4] = {steps_in(spec, c, c->in_c - 1) * out,
                      steps_in(spec, c, c->in_c + 1) * out,
                      steps_out(spec, c, c->out_c - 1) * in,
                      steps_out(spec, c, c->out_c + 1) * in};
    for (int i = 0; i < 4; i++) {
        c->change[i] = (int64_t)(step * (then[i] - in * out));
        uint64_t size = (uint64_t)llabs(c->change[i]);
        c->largest = size > c->largest ? size : c->largest;
    }
}

static int by_largest(const void *a, const void *b) {
    const Conv *x = a, *y = b;
    if (x->largest != y->largest)
        return x->largest < y->largest ? 1 : -1;
    return x->event->insn < y->event->insn ? -1 : 1;
}

static void row(JsonOut *to, const Nodes *nodes, const Conv *c) {
    sheet_row(to, node_of_event(nodes, c->event));
    sheet_word(to, c->event->name);
    for (int side = 0; side < 2; side++) {
        sheet_count(to, side ? c->out_c : c->in_c);
        sheet_real(to, (double)c->change[2 * side]);
        sheet_real(to, (double)c->change[2 * side + 1]);
    }
    sheet_row_end(to);
}

void table_cliffs(JsonOut *to, const ReportInput *input, const Nodes *nodes) {
    static const char *const columns[] = {"<layer",  "inputs", ".-1", ".+1",
                                          "outputs", ".-1",    ".+1", NULL};
    const HwSpec *spec = input->listing->spec;
    const SimResult *sim = input->sim;
    Conv *conv = ARENA_ARRAY(nodes->arena, Conv, sim->n_events + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim->n_events; i++)
        if (sim->event[i].use < spec->n_engines &&
            read_conv(spec, input->listing, &sim->event[i], &conv[n]))
            find_changes(spec, &conv[n++]);
    qsort(conv, n, sizeof *conv, by_largest);
    if (!n || !conv[0].largest)
        return;
    sheet_open(to, "Channels: one less, one more",
               "Cycles of the array; the layers where it matters most.",
               columns);
    for (uint32_t i = 0; i < n && i < MAX_ROWS && conv[i].largest; i++)
        row(to, nodes, &conv[i]);
    sheet_close(to);
}
