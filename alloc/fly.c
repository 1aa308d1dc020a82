/* fly.c - volumes that are replicated on their way to the array.
 *
 * Input: roles and modes, all whole. Output: modes of the nodes that read a
 * volume by tiles from where it lies outside, though it would fit: between
 * memory and array more copies are possible than a volume can be stored with,
 * and the first tile is there long before the whole volume is.
 * These are the readers of network inputs that nothing else needs, and the
 * nodes that the options name. Engines that work ahead read their inputs from
 * where they lie in any case.
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

/* Rows of the array by tiles, less those as the volume is stored. */
static int64_t more_rows(const Work *w, NodeId id, const Mode *mode) {
    const Node *node = graph_node(w->g, id);
    return (int64_t)array_rows(mode->repl, node) -
           (int64_t)array_rows(w->role[node->in[0].i].repl, node);
}

/* One tile is there no earlier than the volume. */
static bool is_cut(const Work *w, NodeId id, const Mode *mode) {
    Volume out = plan_volume(w->g, graph_node(w->g, id)->out[0]);
    return mode->tile_w < out.w || mode->tile_h < out.h;
}

/* A way that leaves the output in active memory and takes fewer rows of the
 * array, or as many, not to wait for an image. Not where the clock likes it
 * alone: what smaller memories do larger ones shall, too. */
static bool fly_one(Work *w, NodeId id) {
    Mode *mode = &w->mode[id.i];
    while (mode_next(w, id, w->total)) {
        if (mode->kind != MODE_HARDWARE)
            break;
        if (!mode->streams_in || mode->streams_out)
            continue;
        int64_t more = more_rows(w, id, mode);
        if (more < 0) {
            tiles_hasten(w, id, 0, mode);
            return true;
        }
        if (!more && reads_alone(w, graph_node(w->g, id)->in[0]) &&
            is_cut(w, id, mode))
            return true;
    }
    memset(mode, 0, sizeof *mode);
    return false;
}

static bool runs_ahead(const Work *w, NodeId id) {
    return on_engine(w, id) && w->spec->engine[w->legal[id.i].engine].ahead;
}

void ahead_choose(Work *w) {
    for (NodeId id = {0}; id.i < w->g->node.n; id.i++)
        if (runs_ahead(w, id))
            w->mode[id.i] =
                (Mode){.kind = MODE_AHEAD, .streams_in = true, .style = -1};
}

bool made_ahead(const Work *w, TensorId t) {
    return runs_ahead(w, graph_tensor(w->g, t)->producer);
}

bool fly_choose(Work *w) {
    bool any = false;
    if (w->spec->tiling.kind != HW_TILING_HARDWARE || w->spec->tiling.always)
        return false;
    for (NodeId id = {0}; id.i < w->g->node.n; id.i++) {
        const Node *node = graph_node(w->g, id);
        bool conv = node->op == OP_CONV || node->op == OP_CONV_POOL;
        if (!conv || !on_engine(w, id) || runs_ahead(w, id) ||
            !(reads_alone(w, node->in[0]) || is_asked(w, id)) ||
            !fly_one(w, id))
            continue;
        touches_refresh(w, w->schedule->step_of[id.i]);
        any = true;
    }
    return any;
}
