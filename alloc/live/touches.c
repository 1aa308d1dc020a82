/* touches.c - when engines need the tensors of an alias class, and where values
 * go.
 *
 * Input: alias classes, modes of nodes. Output: the uses of each alias class.
 */
#include "alloc/alias/alias.h"
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/onchip_copy.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/buffers.h"

#include "base/order.h"

#include <stdlib.h>
#include <string.h>

/* ---- uses ---- */

/* Made and read within one cascade, and there only: it never exists whole. */
static bool inner(const Decisions *d, NodeId node, TensorId t) {
    const Facts *f = d->f;
    const Cascade *g = cascade_of(d, node);
    if (pair_passes(d, t))
        return true;
    if (!g || cascade_maker(f, g, t) == NONE)
        return false;
    NodeId maker = graph_tensor(f->g, t)->producer;
    return g->stays ? !cascade_keeps(d, g, t)
                    : maker.i != node.i || !cascade_stores(f, g, t);
}

/* Whether the node takes operand k by parts, or gives the result so, which is
 * behind the operands. */
static bool streams(const Decisions *d, NodeId node, uint32_t k) {
    const Mode *mode = &d->mode[node.i];
    const Node *n = graph_node(d->f->g, node);
    const Cascade *g = cascade_of(d, node);
    if (g && g->stays)
        return !cascade_keeps(d, g, node_operand(n, k));
    return k < n->n_in ? mode_streams(mode, k) : mode->streams_out;
}

bool takes_rows(const Decisions *d, NodeId node, TensorId in) {
    const Mode *mode = &d->mode[node.i];
    const Cascade *g = cascade_of(d, node);
    return config_low(d->config) &&
           ((g && !g->rolls) ||
            (mode->kind == MODE_ROW_TILES && !mode->channels)) &&
           copy_legal(d->f, in).engine >= 0;
}

/* Whether a load can bring the member of a concat to its place: it cannot name
 * the volume of which that is a part. */
static bool loads_into_concat(const Decisions *d, TensorId t) {
    const Facts *f = d->f;
    const AliasClass *alias = &d->alias.at[d->alias_of[t.i]];
    uint32_t c = channel_in_alias(f, alias, t);
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        Volume whole = volume_in(f, alias->root, m);
        if (!part_told(f, &f->spec->memory[m], &whole, c,
                       plan_volume(f->g, t).c))
            return false;
    }
    return true;
}

/* Behind all parts: the last node of a cascade writes its last ones then. */
bool result_lands(const Decisions *d, NodeId node) {
    const Facts *f = d->f;
    const Mode *mode = &d->mode[node.i];
    TensorId out = graph_node(f->g, node)->out[0];
    const Role *role = &f->role[out.i];
    const Cascade *g = cascade_of(d, node);
    uint32_t step = f->schedule->step_of[node.i];
    bool last = mode->kind == MODE_ROW_TILES && mode->streams_out;
    if (!config_low(d->config) || !on_engine(f, node) || role->parent.i == NONE)
        return false;
    for (uint32_t i = 0; i < graph_node(f->g, node)->n_in; i++)
        if (d->alias_of[graph_node(f->g, node)->in[i].i] == d->alias_of[out.i])
            return false;
    if (g)
        last = !g->rolls && step + 1 == g->end;
    return last && !role->outside && !d->dissolved[role->parent.i] &&
           loads_into_concat(d, out);
}

static void use_by(const Facts *f, Use *use, NodeId node, HwOperand operand,
                   bool streams, bool by_rows) {
    if (streams) {
        use->by_rows = by_rows && (use->by_rows || !use->stream);
        use->stream = true;
        return;
    }
    use->whole = true;
    use->memories &= reach(f, node, operand);
}

/* What a node of the touch's step, or its partner in a fused pair, makes of it.
 */
static void use_by_node(Decisions *d, const AliasClass *u, Use *use,
                        NodeId id) {
    const Facts *f = d->f;
    uint32_t alias = d->alias_of[u->root.i];
    bool filling = u->concat && use->step <= u->complete;
    const Node *node = graph_node(f->g, id);
    TensorId out = node->out[0];
    if (is_placed(f, id) && !d->dissolved[out.i] && !inner(d, id, out) &&
        d->alias_of[out.i] == alias)
        use->whole = true;
    if (!on_engine(f, id))
        return;
    for (uint32_t k = 0; k < node->n_in; k++) {
        TensorId in = node->in[k];
        bool by_parts = streams(d, id, k);
        bool by_rows = by_parts && takes_rows(d, id, in);
        if (d->alias_of[in.i] == alias && !inner(d, id, in) &&
            !(filling && by_parts && !by_rows))
            use_by(f, use, id, hw_operand(k, node->n_in), by_parts, by_rows);
    }
    if (d->alias_of[out.i] != alias || inner(d, id, out))
        return;
    bool lands = result_lands(d, id);
    use->lands |= lands;
    use_by(f, use, id, HW_OUT, !lands && streams(d, id, node->n_in), false);
}

/* Fills the touch from the nodes of its step. What streams from a concat that
 * is still being filled is a member that lies outside anyway: that does not
 * touch the alias class (alias_of has dissolved the others, see greedy.c). */
static void use_fill(Decisions *d, const AliasClass *u, Use *use) {
    const Step *step = &d->f->schedule->step[use->step];
    use->whole = use->stream = use->by_rows = use->lands = false;
    use->memories = UINT32_MAX;
    for (uint32_t i = 0; i < step->n; i++) {
        NodeId other = pair_partner(d, step->slot[i].node);
        use_by_node(d, u, use, step->slot[i].node);
        if (other.i != NONE)
            use_by_node(d, u, use, other);
    }
    use->by_rows &= !use->whole;
}

static int by_step(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return ORDER_UP(x, y);
}

/* What a node of a fused pair uses is there while either runs. */
static uint32_t node_steps(const Decisions *d, NodeId id, uint32_t *step) {
    NodeId other = pair_partner(d, id);
    step[0] = d->f->schedule->step_of[id.i];
    if (other.i != NONE)
        step[1] = d->f->schedule->step_of[other.i];
    return 1 + (other.i != NONE);
}

/* Steps at which engines touch the tensor; returns how many. */
static uint32_t tensor_steps(const Decisions *d, TensorId t, uint32_t *step) {
    const Facts *f = d->f;
    const Role *role = &f->role[t.i];
    uint32_t n = 0;
    if (role->origin == FROM_ENGINE ||
        (role->origin == FROM_PARTS && !d->dissolved[t.i]))
        n += node_steps(d, graph_tensor(f->g, t)->producer, step);
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++)
        if (on_engine(f, f->uses.node[i]))
            n += node_steps(d, f->uses.node[i], step + n);
    return n;
}

/* The last use before the step; NONE. */
static uint32_t use_before(const AliasClass *alias, uint32_t step) {
    uint32_t lo = 0, hi = alias->n_uses;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (alias->use[mid].step < step)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? lo - 1 : NONE;
}

/* Of each of the concat's tensors, up to its last channel, until it is touched
 * last. `step`: room for the steps of one. */
static void uses_behind(const Decisions *d, AliasClass *alias, uint32_t *step) {
    const Facts *f = d->f;
    for (uint32_t i = 0; i < alias->n_tensors; i++) {
        TensorId t = alias->tensor[i];
        uint32_t n = tensor_steps(d, t, step), last = 0;
        uint32_t end = channel_in_alias(f, alias, t) + plan_volume(f->g, t).c;
        for (uint32_t k = 0; k < n; k++)
            last = step[k] > last ? step[k] : last;
        uint32_t use = use_before(alias, last);
        if (use != NONE && alias->use[use].behind < end)
            alias->use[use].behind = end;
    }
    for (uint32_t i = alias->n_uses; i-- > 1;)
        if (alias->use[i - 1].behind < alias->use[i].behind)
            alias->use[i - 1].behind = alias->use[i].behind;
}

static void alias_use(Decisions *d, AliasClass *alias) {
    const Facts *f = d->f;
    uint32_t n = 0, most = 0;
    for (uint32_t i = 0; i < alias->n_tensors; i++) {
        uint32_t t = alias->tensor[i].i;
        most += 2 * (1 + f->uses.start[t + 1] - f->uses.start[t]);
    }
    uint32_t *step = ARENA_ARRAY(f->arena, uint32_t, most);
    for (uint32_t i = 0; i < alias->n_tensors; i++)
        n += tensor_steps(d, alias->tensor[i], step + n);
    qsort(step, n, sizeof *step, by_step);
    alias->use = ARENA_ARRAY(f->arena, Use, n);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || step[i] != step[i - 1])
            alias->use[alias->n_uses++].step = step[i];
    for (uint32_t i = 0; i < alias->n_uses; i++)
        use_fill(d, alias, &alias->use[i]);
    if (alias->concat)
        uses_behind(d, alias, step);
}

void uses_make(Decisions *d) {
    for (uint32_t u = 0; u < d->alias.n; u++)
        if (!d->alias.at[u].use && !d->alias.at[u].dead)
            alias_use(d, &d->alias.at[u]);
}

static void alias_refresh(Decisions *d, TensorId t, uint32_t step) {
    if (d->alias_of[t.i] == NONE)
        return;
    AliasClass *alias = &d->alias.at[d->alias_of[t.i]];
    for (uint32_t i = 0; i < alias->n_uses; i++)
        if (alias->use[i].step == step)
            use_fill(d, alias, &alias->use[i]);
}

void use_insert(const Facts *f, AliasClass *alias, uint32_t step) {
    uint32_t at = 0, n = alias->n_uses;
    while (at < n && alias->use[at].step < step)
        at++;
    Use *use = ARENA_ARRAY(f->arena, Use, n + 1);
    memcpy(use, alias->use, at * sizeof *use);
    use[at].step = step;
    use[at].behind = at ? use[at - 1].behind : UINT32_MAX;
    if (at)
        use[at - 1].behind = at > 1 ? use[at - 2].behind : UINT32_MAX;
    memcpy(use + at + 1, alias->use + at, (n - at) * sizeof *use);
    alias->use = use;
    alias->n_uses = n + 1;
}

void uses_refill(Decisions *d, uint32_t step) {
    for (uint32_t u = 0; u < d->alias.n; u++) {
        AliasClass *alias = &d->alias.at[u];
        for (uint32_t i = 0; i < alias->n_uses; i++)
            if (alias->use[i].step == step)
                use_fill(d, alias, &alias->use[i]);
    }
}

void uses_refresh(Decisions *d, uint32_t step) {
    const Step *s = &d->f->schedule->step[step];
    for (uint32_t i = 0; i < s->n; i++) {
        const Node *node = graph_node(d->f->g, s->slot[i].node);
        for (uint32_t k = 0; k < node->n_in; k++)
            alias_refresh(d, node->in[k], step);
        alias_refresh(d, node->out[0], step);
    }
}

void pair_part(Decisions *d, NodeId id) {
    NodeId other = pair_partner(d, id);
    if (other.i == NONE)
        return;
    d->mode[id.i] = d->mode[other.i] = (Mode){.style = -1};
    uses_refill(d, d->f->schedule->step_of[id.i]);
    uses_refill(d, d->f->schedule->step_of[other.i]);
}

/* ---- where values go ---- */

Dests dests_of(const Decisions *dec, TensorId t, bool streamed) {
    const Facts *f = dec->f;
    const Role *role = &f->role[t.i];
    bool in_dissolved =
        role->parent.i != NONE && dec->dissolved[role->parent.i];
    const Cascade *g = cascade_of(dec, graph_tensor(f->g, t)->producer);
    bool reread = streamed && !g && role->engine_reads;
    Dests d = {.home = g && !g->stays ? cascade_leaves(f, g, t)
                                      : in_dissolved || reread,
               .output = role->outside};
    if (streamed && !d.output)
        d.home = true;
    return d;
}
