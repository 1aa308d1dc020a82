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
#include "plan/cost.h"

#include "base/arith.h"

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

/* The largest first. */
typedef struct Apart {
    const Facts *f;
    const OperandBytes **operand;
    uint32_t n, tries;
    uint64_t left[PACK_MAX_POOLS];
} Apart;

/* Whether the operands from `at` on have places in what is left of each memory,
 * as far as tries go. */
static bool have_places(Apart *a, uint32_t at) {
    const HwSpec *spec = a->f->spec;
    for (uint32_t m = 0; at < a->n && m < spec->n_active && a->tries; m++) {
        uint64_t bytes = a->operand[at]->bytes[m],
                 align = spec->memory[m].align;
        if (!(a->operand[at]->memories >> m & 1) || !bytes ||
            bytes > a->left[m])
            continue;
        uint64_t before = a->left[m];
        uint64_t taken = round_up(bytes, align ? align : 1);
        a->left[m] -= taken < before ? taken : before;
        a->tries--;
        bool all = have_places(a, at + 1);
        a->left[m] = before;
        if (all)
            return true;
    }
    return at == a->n;
}

bool lie_apart(const Facts *f, const OperandBytes *operand, uint32_t n) {
    enum { TRIES = 1 << 12 };
    Apart a = {.f = f, .n = n, .tries = TRIES};
    uint64_t *least = ARENA_ARRAY(f->arena, uint64_t, n + 1);
    a.operand = ARENA_ARRAY(f->arena, const OperandBytes *, n + 1);
    for (uint32_t m = 0; m < f->spec->n_active; m++)
        a.left[m] = pool_of(&f->spec->memory[m]).size;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t own = least_bytes(f, operand[i].bytes, operand[i].memories);
        uint32_t at = i;
        for (; at > 0 && least[at - 1] < own; at--) {
            least[at] = least[at - 1];
            a.operand[at] = a.operand[at - 1];
        }
        least[at] = own;
        a.operand[at] = &operand[i];
    }
    return f->spec->n_active == 1 || have_places(&a, 0);
}

uint64_t bytes_apart(const Facts *f, const OperandBytes *operand, uint32_t n) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum = add_capped(sum,
                         least_bytes(f, operand[i].bytes, operand[i].memories));
    return sum == UINT64_MAX || lie_apart(f, operand, n) ? sum : UINT64_MAX;
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

uint64_t engine_work(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    if (!on_engine(f, id))
        return 0;
    Volume v = plan_volume(f->g, node->out[0]);
    Placement all[] = {{.n_c = v.c}, {.n_c = plan_volume(f->g, node->in[0]).c}};
    Plan plan = {.schedule = f->schedule, .placement = all};
    Action whole = {.kind = ACTION_RUN,
                    .node = id,
                    .legal = f->legal[id.i],
                    .in = (const uint32_t[]){1},
                    .n_in = 1,
                    .rows = v.h,
                    .cols = v.w};
    return action_cycles(&plan, &whole);
}

bool may_fill(const HwSpec *spec) {
    bool any = false;
    for (uint32_t e = 0; e < spec->n_engines; e++)
        any |= spec->engine[e].unroll.out_h > 1;
    return any;
}

uint32_t rows_at_once(const Facts *f, NodeId id) {
    int32_t engine = on_engine(f, id) ? f->legal[id.i].engine : -1;
    uint32_t rows = engine < 0 ? 1 : f->spec->engine[engine].unroll.out_h;
    return rows ? rows : 1;
}

uint64_t row_turns(const Facts *f, NodeId id, uint32_t rows) {
    uint32_t h = plan_volume(f->g, graph_node(f->g, id)->out[0]).h;
    uint32_t once = rows_at_once(f, id);
    return h / rows * ceil_div(rows, once) + ceil_div(h % rows, once);
}

uint64_t cycles_wasted(const Facts *f, NodeId id, uint32_t rows) {
    uint64_t all = row_turns(f, id, UINT32_MAX);
    uint64_t more = row_turns(f, id, rows) - all;
    return more ? engine_work(f, id) / all * more : 0;
}

double bytes_during(const HwSpec *spec, uint64_t cycles) {
    double a_byte = bytes_seconds(spec, 1) * spec->clock;
    return a_byte > 0 ? (double)cycles / a_byte : 0;
}
