/* tensor_bytes.c - geometry: which volume a tensor is in a memory, its bytes
 * there, and how it is replicated.
 *
 * Input: roles of tensors. Output: volumes, bytes by pool.
 * The replication rule is that of facts/xdnn.md 2.4: a volume is stored with
 * copies where a convolution with more than one tap reads it and nothing but
 * convolutions does.
 */
#include "alloc/work.h"

/* Larger volumes are counted as this many bytes, so that sums stay exact. */
#define HUGE_BYTES (UINT64_C(1) << 50)

Volume plank_in(const Work *w, TensorId tensor, uint32_t rows,
                uint32_t memory) {
    Volume v = plan_volume(w->g, tensor);
    v.h = rows;
    if (w->spec->replication.memories >> memory & 1)
        v.repl = w->role[tensor.i].repl;
    return v;
}

Volume volume_in(const Work *w, TensorId tensor, uint32_t memory) {
    return plank_in(w, tensor, plan_volume(w->g, tensor).h, memory);
}

uint64_t active_bytes(const Work *w) {
    uint64_t sum = 0;
    for (uint32_t m = 0; m < w->spec->n_active; m++)
        sum += pool_of(&w->spec->memory[m]).size;
    return sum;
}

static uint64_t bytes_in(const HwMemory *memory, const Volume *v, bool spans) {
    uint64_t b = layout_bytes(memory->layout, v),
             one = hwspec_buffer_bytes(memory);
    if (b > HUGE_BYTES)
        b = HUGE_BYTES;
    if (!one)
        return b;
    return b > one && !spans ? 0 : round_up(b, one);
}

void pool_bytes(const Work *w, TensorId tensor, uint32_t rows, bool spans,
                uint64_t bytes[PLAN_MAX_POOLS]) {
    for (uint32_t m = 0; m < w->spec->n_active; m++) {
        Volume v = plank_in(w, tensor, rows, m);
        bytes[m] = bytes_in(&w->spec->memory[m], &v, spans);
    }
}

void volume_pool_bytes(const Work *w, Volume v,
                       uint64_t bytes[PLAN_MAX_POOLS]) {
    for (uint32_t m = 0; m < w->spec->n_active; m++)
        bytes[m] = bytes_in(&w->spec->memory[m], &v, false);
}

uint64_t least_bytes(const Work *w, const uint64_t bytes[PLAN_MAX_POOLS],
                     uint32_t memories) {
    uint64_t least = UINT64_MAX;
    for (uint32_t m = 0; m < w->spec->n_active; m++) {
        Pool pool = pool_of(&w->spec->memory[m]);
        if (!(memories >> m & 1) || !bytes[m] || bytes[m] > pool.size)
            continue;
        uint64_t b = round_up(bytes[m], pool.align);
        if (b > pool.size)
            b = bytes[m];
        if (b < least)
            least = b;
    }
    return least;
}

bool is_placed(const Work *w, NodeId node) {
    return graph_node(w->g, node)->op == OP_CONCAT &&
           w->legal[node.i].op == HW_OP_CONCAT;
}

bool on_engine(const Work *w, NodeId node) {
    return w->legal[node.i].engine >= 0 && !is_placed(w, node);
}

uint32_t reach(const Work *w, NodeId node, HwOperand operand) {
    uint32_t active = (UINT32_C(1) << w->spec->n_active) - 1;
    int32_t engine = w->legal[node.i].engine;
    uint32_t reached = engine < 0
                           ? active
                           : w->spec->engine[engine].lies[operand] & active;
    return reached ? reached : active;
}

uint32_t reach_of(const Work *w, NodeId node, TensorId t) {
    const Node *n = graph_node(w->g, node);
    uint32_t memories = UINT32_MAX;
    for (uint32_t k = 0; k <= n->n_in; k++)
        if (same_tensor(k < n->n_in ? n->in[k] : n->out[0], t))
            memories &= reach(w, node, hw_operand(k, n->n_in));
    return memories;
}

/* Taps of a convolution that could read copies; 0 for other nodes. */
static uint32_t conv_area(const Work *w, NodeId node) {
    HwOp op = w->legal[node.i].op;
    if (op != HW_OP_CONV && op != HW_OP_CONV_POOL_MAX &&
        op != HW_OP_CONV_POOL_AVG)
        return 0;
    const ConvAttr *conv = &graph_node(w->g, node)->attr.conv;
    return conv->kernel[0] * conv->kernel[1];
}

/* The largest area among the readers; 0 where copies do not pay or a reader
 * cannot use them. */
static uint32_t copies_area(const Work *w, TensorId t) {
    uint32_t area = 0;
    for (uint32_t i = w->uses.start[t.i]; i < w->uses.start[t.i + 1]; i++) {
        NodeId reader = w->uses.node[i];
        if (is_placed(w, reader))
            return 0;
        if (!on_engine(w, reader))
            continue;
        uint32_t a = conv_area(w, reader);
        if (!a)
            return 0;
        area = a > area ? a : area;
    }
    return area > 1 ? area : 0;
}

void replication_choose(Work *w) {
    for (TensorId t = {0}; t.i < w->g->tensor.n; t.i++) {
        Role *role = &w->role[t.i];
        uint32_t c = plan_volume(w->g, t).c;
        uint32_t area = 0;
        if (w->options->replication && role->origin != FROM_PARTS)
            area = copies_area(w, t);
        const Repl *chosen = w->options->chosen;
        if (chosen && (chosen[t.i].full || chosen[t.i].sections))
            role->repl = chosen[t.i];
        else
            role->repl = area ? hwspec_repl_rule(w->spec, c, area, false)
                              : hwspec_repl_none(w->spec, c);
    }
}

uint64_t node_work(const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    return row_work(w->g, node) * plan_volume(w->g, node->out[0]).h;
}
