/* order.c - steps and names of instructions, see engine.h.
 *
 * Input: works in the listing's order, and the image's table of layers where
 * there is one. Output: violations. Invariants: steps never go back; what
 * shares a step runs side by side, so that none writes what another reads or
 * writes, whatever the instructions wait for; an instruction has the name, and
 * where it is alone the step, of its item of the table.
 */
#include "sim/engine.h"
#include "sim/host.h"

#include <inttypes.h>
#include <string.h>

void order_open(Run *run) {
    const Image *image = &run->listing->image;
    if (!run->listing->has_image || run->options.time_only)
        return;
    run->item = ARENA_ARRAY(run->hold, const ListingLayer *, run->listing->n);
    for (uint32_t i = 0; i < image->n_layers; i++) {
        const ListingLayer *layer = &image->layer[i];
        for (uint32_t k = 0; k < layer->n_insns; k++)
            if (layer->first_insn + k < run->listing->n)
                run->item[layer->first_insn + k] = layer;
    }
}

/* ---- the table ---- */

/* The name, perhaps with the number of a tile behind it. */
static bool is_named(const char *name, const char *layer, const char *behind) {
    size_t n = strlen(layer), m = strlen(behind);
    if (m && (n < m || strcmp(layer + n - m, behind) != 0))
        return false;
    n -= m;
    return !strncmp(name, layer, n) && (!name[n] || (!m && name[n] == '#'));
}

/* "NAME#8..15": rows of a volume, which are copied. */
static bool is_copy(const char *name) {
    const char *mark = strrchr(name, '#');
    size_t digits = mark ? strspn(mark + 1, "0123456789") : 0;
    return digits && !strncmp(mark + 1 + digits, "..", 2);
}

/* Loads, stores, copies, notes and layers of the host among the tiles of a
 * layer are in its item. */
static bool name_fits(const Work *w, const ListingLayer *item) {
    bool aside = w->op == HW_OP_LOAD || w->op == HW_OP_STORE ||
                 w->op == HW_OP_CONCAT || w->op == HW_OP_HOST ||
                 is_copy(w->name);
    bool apart = hw_is_among(w->op, HW_CONSTANT_LOADS) ||
                 (aside && item->n_insns > 1) || !strcmp(item->type, "Copy");
    return apart ||
           is_named(w->name, item->name, w->op == HW_OP_STORE ? "_output" : "");
}

/* Another layer of the table may run between the tiles of this one. */
static bool is_between(const Run *run, const Work *w,
                       const ListingLayer *item) {
    const Image *image = &run->listing->image;
    for (uint32_t i = 0; item->n_insns > 1 && i < image->n_layers; i++)
        if (image->layer[i].name && is_named(w->name, image->layer[i].name, ""))
            return true;
    return false;
}

/* Channels and columns of a note that says them; it may be of some rows. */
static void check_size(Run *run, const Work *w, const ListingLayer *item) {
    uint32_t c, rows, cols;
    shape_chw(&item->shape, &c, &rows, &cols);
    if (w->op != HW_OP_CONCAT || item->n_insns > 1 || !w->out.c)
        return;
    if (w->out.c != c || w->out.h > rows || w->out.w != cols)
        fault(run, "its size is %ux%ux%u, in the table of layers %ux%ux%u",
              w->out.c, w->out.h, w->out.w, c, rows, cols);
}

/* An inner product of one pixel would pass for a convolution. */
static bool type_fits(const Work *w, const ListingLayer *item) {
    return (w->op == HW_OP_FC) == !strcmp(item->type, "InnerProduct") ||
           (w->op != HW_OP_FC && !op_is_conv(w->op));
}

static void check_item(Run *run, const Work *w) {
    const ListingLayer *item = run->item ? run->item[run->insn] : NULL;
    if (!item || !item->name || !item->type)
        return;
    if (w->is_named && !name_fits(w, item) && !is_between(run, w, item))
        fault(run, "in the table of layers its name is %s", item->name);
    if (item->n_insns == 1 && !type_fits(w, item))
        fault(run, "in the table of layers it is of type %s", item->type);
    check_size(run, w, item);
    if (w->step != NO_STEP && item->n_insns == 1 && w->step != item->step)
        fault(run, "its step is %" PRId64 ", in the table of layers %u",
              w->step, item->step);
}

/* ---- steps ---- */

/* The loads of network inputs that come first may have a number of their own.
 */
static bool is_numbered_apart(const Run *run, const Work *w) {
    const HwSpec *spec = run->spec;
    return w->op == HW_OP_LOAD && !run->highest &&
           (spec->input_step || spec->input_shares_step) &&
           w->step == spec->input_step &&
           (int32_t)w->in_at.memory == spec->input;
}

static void check_step(Run *run, const Work *w) {
    if (w->step == NO_STEP || is_numbered_apart(run, w))
        return;
    if (w->step < run->highest || w->step < 1)
        fault(run, "its step, %" PRId64 ", lies before step %" PRId64, w->step,
              run->highest ? run->highest : 1);
    else
        run->highest = w->step;
}

void order_check(Run *run, const Work *w) {
    if (run->options.time_only || run->options.lax)
        return;
    check_item(run, w);
    check_step(run, w);
}

void order_close(Run *run) {
    if (!run->listing->image.of_another || run->options.lax)
        return;
    run->who = "listing";
    fault(run, "it has not as many instructions as the file beside it says");
}

/* ---- side by side ---- */

static void check_beside(Run *run, const Place *place, bool writes) {
    for (uint32_t i = 0; i < run->peer.n; i++) {
        const Use *other = &run->peer.at[i];
        if ((writes || other->writes) && other->insn != run->insn &&
            place_overlap(run, place, &other->place) &&
            fault_once(run, ONCE_CONFLICT))
            fault(run, "%s %s while %s, in the same step, %s %s",
                  writes ? "writes" : "reads", place_text(run, place),
                  other->name, other->writes ? "writes" : "reads",
                  place_text(run, &other->place));
    }
}

/* The step of the next instruction that is more than a note. */
static int64_t next_step(const Run *run) {
    for (uint32_t i = run->insn + 1; i < run->listing->n; i++) {
        const HwInsn *insn = &run->listing->insn[i];
        const HwRow *row = &run->spec->insns->row[insn->row];
        int32_t at = insn_token_of(&row->form[insn->form], HW_F_STEP);
        if (insn_op(run->spec, insn) != HW_OP_CONCAT)
            return at < 0 ? NO_STEP : insn->value[at].num;
    }
    return NO_STEP;
}

static void meet(Run *run, const Place *place, bool writes, bool stays) {
    check_beside(run, place, writes);
    if (!stays)
        return;
    Use touch = {.name = arena_strdup(run->peers, run->who),
                 .writes = writes,
                 .insn = run->insn,
                 .place = place_keep(run->peers, place)};
    vec_push(run->peers, &run->peer, touch);
}

static void meet_regions(Run *run, uint32_t n, const Region *region,
                         bool writes, bool stays) {
    Place place;
    for (uint32_t i = 0; i < n; i++)
        if (region_place(run, &region[i], "operand", &place))
            meet(run, &place, writes, stays);
}

void order_beside(Run *run, const Work *w) {
    bool shares = w->step != NO_STEP && w->step == run->peer_step;
    bool stays = w->step != NO_STEP && w->step == next_step(run);
    if (run->options.time_only || run->options.lax ||
        run->spec->tiling.rows.moves == HW_MOVES_QUEUED)
        return;
    if (!shares && run->peer.n) {
        arena_reset(run->peers);
        run->peer.at = NULL;
        run->peer.n = run->peer.cap = 0;
    }
    run->peer_step = w->step;
    if (!shares && !stays)
        return;
    if (w->op == HW_OP_HOST || w->op == HW_OP_LAYER) {
        const HostLayer *layer = host_layer(run, w->name);
        if (layer) {
            meet_regions(run, layer->n_in, layer->in, false, stays);
            meet_regions(run, layer->n_out, layer->out, true, stays);
        }
        return;
    }
    Operand operand[MOST_TOUCHED];
    uint32_t n = work_operands(w, operand);
    for (uint32_t i = 0; i < n; i++)
        meet(run, &operand[i].place, operand[i].writes, stays);
}
