/* onthefly_replication.c - volumes that are replicated on their way to the
 * array.
 *
 * Input: roles and modes. Output: modes of the nodes that read a
 * volume by tiles from where it lies outside, though it would fit: between
 * memory and array more copies are possible than a volume can be stored with.
 * These are the readers of network inputs that nothing else needs, and the
 * nodes that the options name.
 */
#include "alloc/work.h"

#include <string.h>

static bool reads_alone(const Work *w, TensorId t) {
    return w->role[t.i].origin == FROM_INPUT &&
           w->uses.start[t.i + 1] - w->uses.start[t.i] == 1;
}

static bool is_asked(const Work *w, NodeId id) {
    return w->options->fly && w->options->fly[id.i];
}

static uint64_t array_rows(Repl repl, const Node *node) {
    const ConvAttr *conv = &node->attr.conv;
    return hwspec_weight_rows(repl, conv->kernel[0] * conv->kernel[1]);
}

/* A way that leaves the output in active memory and takes fewer rows of the
 * array. */
static bool fly_one(Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    Mode *mode = &w->mode[id.i], old = *mode;
    memset(mode, 0, sizeof *mode); /* from the first way on */
    while (mode_next(w, id, w->total)) {
        if (mode->kind != MODE_HARDWARE)
            break;
        if (mode->streams_in && !mode->streams_out && mode->repl.sections &&
            array_rows(mode->repl, node) <
                array_rows(w->role[node->in[0].i].repl, node)) {
            tiles_hasten(w, id, 0, mode);
            return true;
        }
    }
    *mode = old;
    return false;
}

static bool can_fly(const Work *w) {
    return w->options->replication &&
           w->spec->tiling.kind == HW_TILING_HARDWARE &&
           w->spec->replication.n_fly;
}

static bool may_fly(const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    bool conv = node->op == OP_CONV || node->op == OP_CONV_POOL;
    return conv && on_engine(w, id) && !runs_ahead(w, id);
}

bool fly_hastens(Work *w) {
    for (NodeId id = {0}; can_fly(w) && id.i < w->g->node.n; id.i++)
        if (may_fly(w, id) && fly_one(w, id))
            return true;
    return false;
}

bool fly_choose(Work *w) {
    bool any = false;
    if (!can_fly(w))
        return false;
    for (NodeId id = {0}; id.i < w->g->node.n; id.i++) {
        const Node *node = graph_node(w->g, id);
        if (!may_fly(w, id) ||
            !(reads_alone(w, node->in[0]) || is_asked(w, id)) ||
            !fly_one(w, id))
            continue;
        touches_refresh(w, w->schedule->step_of[id.i]);
        any = true;
    }
    return any;
}
