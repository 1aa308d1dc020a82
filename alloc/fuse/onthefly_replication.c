/* onthefly_replication.c - volumes that are replicated on their way to the
 * array.
 *
 * Input: roles and modes. Output: modes of the nodes that read a
 * volume by tiles from where it lies outside, though it would fit: between
 * memory and array more copies are possible than a volume can be stored with.
 * These are the readers of network inputs that nothing else needs, and the
 * nodes that the options name.
 */
#include "alloc/alias/alias.h"
#include "alloc/fuse/fuse.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/tile/tile.h"

#include <string.h>

static bool reads_alone(const Facts *f, TensorId t) {
    return f->role[t.i].origin == FROM_INPUT &&
           f->uses.start[t.i + 1] - f->uses.start[t.i] == 1;
}

static bool is_asked(const Facts *f, NodeId id) {
    return f->options->fly && f->options->fly[id.i];
}

static uint64_t array_rows(Repl repl, const Node *node) {
    const ConvAttr *conv = &node->attr.conv;
    return hwspec_weight_rows(repl, conv->kernel[0] * conv->kernel[1]);
}

/* A way that leaves the output in active memory and takes fewer rows of the
 * array. */
static bool on_the_fly_one(Decisions *d, NodeId id) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, id);
    Mode *mode = &d->mode[id.i], old = *mode;
    memset(mode, 0, sizeof *mode); /* from the first way on */
    while (mode_next(d, id, f->total)) {
        if (mode->kind != MODE_HARDWARE)
            break;
        if (mode->streams_in && !mode->streams_out && mode->repl.sections &&
            array_rows(mode->repl, node) <
                array_rows(f->role[node->in[0].i].repl, node)) {
            tiles_hasten(f, id, 0, mode);
            return true;
        }
    }
    *mode = old;
    return false;
}

static bool can_on_the_fly(const Facts *f) {
    return f->options->replication &&
           f->spec->tiling.kind == HW_TILING_HARDWARE &&
           f->spec->replication.n_fly;
}

static bool may_on_the_fly(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    bool conv = node->op == OP_CONV || node->op == OP_CONV_POOL;
    return conv && on_engine(f, id) && !runs_ahead(f, id);
}

bool on_the_fly_hastens(Decisions *d) {
    const Facts *f = d->f;
    for (NodeId id = {0}; can_on_the_fly(f) && id.i < f->g->node.n; id.i++)
        if (may_on_the_fly(f, id) && on_the_fly_one(d, id))
            return true;
    return false;
}

bool on_the_fly_choose(Decisions *d) {
    const Facts *f = d->f;
    bool any = false;
    if (!can_on_the_fly(f))
        return false;
    for (NodeId id = {0}; id.i < f->g->node.n; id.i++) {
        const Node *node = graph_node(f->g, id);
        if (!may_on_the_fly(f, id) ||
            !(reads_alone(f, node->in[0]) || is_asked(f, id)) ||
            !on_the_fly_one(d, id))
            continue;
        uses_refresh(d, f->schedule->step_of[id.i]);
        any = true;
    }
    return any;
}
