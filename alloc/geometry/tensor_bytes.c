/* tensor_bytes.c - geometry: which volume a tensor is in a memory, its bytes
 * there, and how it is replicated.
 *
 * Input: roles of tensors. Output: volumes, bytes by pool.
 * The replication rule is that of facts/xdnn.md 2.4: a volume is stored with
 * copies where a convolution with more than one tap reads it and nothing but
 * convolutions does.
 */
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/facts.h"

/* Larger volumes are counted as this many bytes, so that sums stay exact. */
#define HUGE_BYTES (UINT64_C(1) << 50)

Volume row_tile_in(const Facts *f, TensorId tensor, uint32_t rows,
                   uint32_t memory) {
    Volume v = plan_volume(f->g, tensor);
    v.h = rows;
    v.repl = hwspec_repl_in(f->spec, memory, f->role[tensor.i].repl);
    return v;
}

Volume volume_in(const Facts *f, TensorId tensor, uint32_t memory) {
    return row_tile_in(f, tensor, plan_volume(f->g, tensor).h, memory);
}

uint64_t active_bytes(const Facts *f) {
    uint64_t sum = 0;
    for (uint32_t m = 0; m < f->spec->n_active; m++)
        sum += pool_of(&f->spec->memory[m]).size;
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

void pool_bytes(const Facts *f, TensorId tensor, uint32_t rows, bool spans,
                uint64_t bytes[PACK_MAX_POOLS]) {
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        Volume v = row_tile_in(f, tensor, rows, m);
        bytes[m] = bytes_in(&f->spec->memory[m], &v, spans);
    }
}

void volume_pool_bytes(const Facts *f, Volume v,
                       uint64_t bytes[PACK_MAX_POOLS]) {
    for (uint32_t m = 0; m < f->spec->n_active; m++)
        bytes[m] = bytes_in(&f->spec->memory[m], &v, false);
}

uint64_t least_bytes(const Facts *f, const uint64_t bytes[PACK_MAX_POOLS],
                     uint32_t memories) {
    uint64_t least = UINT64_MAX;
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        Pool pool = pool_of(&f->spec->memory[m]);
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

/* Whether the operands have places in what is left of each memory: at most
 * MOST_APART operands in as many memories as there are, all ways tried. */
static bool have_places(const Facts *f, const OperandBytes *operand, uint32_t n,
                        uint64_t left[PACK_MAX_POOLS]) {
    for (uint32_t m = 0; n && m < f->spec->n_active; m++) {
        uint64_t bytes = operand->bytes[m], align = f->spec->memory[m].align;
        if (!(operand->memories >> m & 1) || !bytes || bytes > left[m])
            continue;
        uint64_t before = left[m], taken = round_up(bytes, align ? align : 1);
        left[m] -= taken < before ? taken : before;
        bool all = have_places(f, operand + 1, n - 1, left);
        left[m] = before;
        if (all)
            return true;
    }
    return n == 0;
}

uint64_t bytes_apart(const Facts *f, const OperandBytes *operand, uint32_t n) {
    uint64_t sum = 0, left[PACK_MAX_POOLS] = {0};
    for (uint32_t i = 0; i < n; i++)
        sum = add_capped(sum,
                         least_bytes(f, operand[i].bytes, operand[i].memories));
    for (uint32_t m = 0; m < f->spec->n_active; m++)
        left[m] = pool_of(&f->spec->memory[m]).size;
    bool one = f->spec->n_active == 1 || n > MOST_APART;
    return sum == UINT64_MAX || one || have_places(f, operand, n, left)
               ? sum
               : UINT64_MAX;
}

bool is_placed(const Facts *f, NodeId node) {
    return graph_node(f->g, node)->op == OP_CONCAT &&
           f->legal[node.i].op == HW_OP_CONCAT;
}

bool on_engine(const Facts *f, NodeId node) {
    return f->legal[node.i].engine >= 0 && !is_placed(f, node);
}

uint32_t reach(const Facts *f, NodeId node, HwOperand operand) {
    uint32_t active = (UINT32_C(1) << f->spec->n_active) - 1;
    int32_t engine = f->legal[node.i].engine;
    uint32_t reached =
        engine < 0 ? active : f->spec->engine[engine].lies[operand] & active;
    return reached ? reached : active;
}

uint32_t reach_of(const Facts *f, NodeId node, TensorId t) {
    const Node *n = graph_node(f->g, node);
    uint32_t memories = UINT32_MAX;
    for (uint32_t k = 0; k <= n->n_in; k++)
        if (same_tensor(k < n->n_in ? n->in[k] : n->out[0], t))
            memories &= reach(f, node, hw_operand(k, n->n_in));
    return memories;
}

/* Taps of a convolution that could read copies; 0 for other nodes. */
static uint32_t conv_area(const Facts *f, NodeId node) {
    HwOp op = f->legal[node.i].op;
    if (op != HW_OP_CONV && op != HW_OP_CONV_POOL_MAX &&
        op != HW_OP_CONV_POOL_AVG)
        return 0;
    const ConvAttr *conv = &graph_node(f->g, node)->attr.conv;
    return conv->kernel[0] * conv->kernel[1];
}

/* The largest area among the readers; 0 where copies do not pay or a reader
 * cannot use them. */
static uint32_t copies_area(const Facts *f, TensorId t) {
    uint32_t area = 0;
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++) {
        NodeId reader = f->uses.node[i];
        if (is_placed(f, reader))
            return 0;
        if (!on_engine(f, reader))
            continue;
        uint32_t a = conv_area(f, reader);
        if (!a)
            return 0;
        area = a > area ? a : area;
    }
    return area > 1 ? area : 0;
}

void replication_choose(Facts *f) {
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++) {
        Role *role = &f->role[t.i];
        uint32_t c = plan_volume(f->g, t).c;
        uint32_t area = 0;
        if (f->options->replication && role->origin != FROM_PARTS)
            area = copies_area(f, t);
        const Repl *chosen = f->options->chosen;
        if (chosen && (chosen[t.i].full || chosen[t.i].sections))
            role->repl = chosen[t.i];
        else
            role->repl = area ? hwspec_repl_rule(f->spec, c, area, false)
                              : hwspec_repl_none(f->spec, c);
    }
}

uint64_t node_work(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    return row_work(f->g, node) * plan_volume(f->g, node->out[0]).h;
}

uint64_t network_work(const Facts *f) {
    uint64_t sum = 0;
    for (NodeId id = {0}; id.i < f->g->node.n; id.i++)
        sum += on_engine(f, id) ? node_work(f, id) : 0;
    return sum;
}
