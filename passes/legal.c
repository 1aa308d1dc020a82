/* legal.c - which engine runs a node, and if none, why; see legal.h.
 *
 * In: a machine and a node with known shapes. Out: the first engine of the
 * hwspec that lists the node's operation and breaks no constraint, or the
 * reason against the first that lists it.
 *
 * Three tables: constraints on a node, constraints between a node and an
 * engine (their texts are the errors and the manual's lines), and one function
 * for each quantity that a hwspec can bound (limits.def).
 */
#include "passes/legal_parts.h"

#include "base/arith.h"
#include "graph/quant.h"
#include "hwspec/emit.h"
#include "hwspec/insn.h"
#include "hwspec/program.h"

#include <assert.h>
#include <inttypes.h>

const char *legal_say(Arena *arena, const char *format, ...) {
    if (!arena)
        return "";
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

/* ---- constraints on a node ---- */

/* NULL if it holds, else the detail behind the row's text. */
typedef const char *NodeCheck(Arena *arena, const Candidate *c);

static const char *has_operation(Arena *arena, const Candidate *c) {
    return c->op == HW_OP_HOST
               ? legal_say(arena, "%s", op_info[c->node->op].name)
               : NULL;
}

static const char *is_one_image(Arena *arena, const Candidate *c) {
    uint32_t n = larger32(shape_dim(c->in, 0), shape_dim(c->out, 0));
    bool rows = c->op == HW_OP_FC && c->in->rank == 2;
    if ((rows && program_emit(c->spec)) /* they are pixels */ ||
        c->op == HW_OP_RESHAPE) /* all images are one volume */
        return NULL;
    return n > 1 ? legal_say(arena, "N is %u", n) : NULL;
}

/* Axes that volumes have. */
static bool is_volume(const Shape *shape) {
    return shape->rank >= 1 && shape->rank <= 4 &&
           (shape->rank == 1 || shape->dim[0] == 1);
}

/* Whether it does to each element what its channel says, so that a vector is
 * as good as a volume of one pixel. */
static bool by_element(HwOp op) {
    return op == HW_OP_ACT || op == HW_OP_SCALE || op == HW_OP_ADD ||
           op == HW_OP_MUL || op == HW_OP_MAX;
}

static const char *has_four_axes(Arena *arena, const Candidate *c) {
    const Shape *wrong = c->in->rank != 4 ? c->in : c->out;
    bool line = wrong->rank == 2 && hw_op_traits[c->op] & HW_GROUPED;
    line |= wrong->rank == 2 && by_element(c->op);
    if (c->op == HW_OP_RESHAPE ||
        (c->op == HW_OP_TRANSPOSE && is_volume(c->in) && is_volume(c->out)))
        return NULL;
    if (wrong->rank == 4 || c->op == HW_OP_FC || line)
        return NULL;
    return arena ? legal_say(arena, "shape is %s", shape_text(arena, wrong))
                 : "";
}

static const char *has_two_operands(Arena *arena, const Candidate *c) {
    if (c->node->op != OP_ELTWISE)
        return NULL;
    if (c->node->n_in != 2)
        return legal_say(arena, "%u operands", c->node->n_in);
    const Shape *other = &graph_tensor(c->g, c->node->in[1])->shape;
    bool by_channel =
        insn_by_channel(c->op) && hwspec_engine(c->spec, c->op) >= 0;
    if (shape_equal(c->in, other) || by_channel)
        return NULL;
    return arena ? legal_say(arena, "%s and %s", shape_text(arena, c->in),
                             shape_text(arena, other))
                 : "";
}

static const char *has_no_coefficients(Arena *arena, const Candidate *c) {
    if (c->node->op != OP_ELTWISE || !c->node->attr.elt.coeff)
        return NULL;
    for (uint32_t i = 0; i < c->node->n_in; i++)
        if (c->node->attr.elt.coeff[i] != 1.0)
            return legal_say(arena, "a coefficient is %g",
                             c->node->attr.elt.coeff[i]);
    return NULL;
}

static const char *has_slopes(Arena *arena, const Candidate *c) {
    bool lacks = c->node->act.kind == ACT_PRELU &&
                 c->node->constant[CONST_SLOPE].i == NONE;
    return lacks ? legal_say(arena, "%s has none", c->node->name) : NULL;
}

static const char *is_ungrouped(Arena *arena, const Candidate *c) {
    bool grouped = c->node->op == OP_DECONV && c->node->attr.conv.groups > 1;
    return grouped ? legal_say(arena, "%u groups", c->node->attr.conv.groups)
                   : NULL;
}

/* Instructions of transposed convolutions have one padding an axis, which is
 * cut from both sides of the output. */
static const char *cuts_evenly(Arena *arena, const Candidate *c) {
    const ConvAttr *conv = &c->node->attr.conv;
    for (int axis = 0; c->node->op == OP_DECONV && axis < 2; axis++)
        if (conv->pad[axis] != conv->pad_end[axis])
            return legal_say(arena, "padding is %u before, %u behind",
                             conv->pad[axis], conv->pad_end[axis]);
    return NULL;
}

/* Instructions tell the padding before the input; of that behind it they know
 * that every window starts before as much again has passed. */
static const char *starts_in_time(Arena *arena, const Candidate *c) {
    Part part[2];
    uint32_t n = c->node->op == OP_DECONV ? 0 : legal_node_parts(c, part);
    for (uint32_t i = 0; i < n; i++)
        for (int axis = 0; axis < 2; axis++) {
            const Part *p = &part[i];
            uint32_t in = axis ? p->in.w : p->in.h;
            uint32_t windows = axis ? p->out.w : p->out.h;
            if ((p->has & PART_WINDOW) &&
                (uint64_t)(windows - 1) * p->stride[axis] >=
                    (uint64_t)in + 2 * (uint64_t)p->pad[axis])
                return legal_say(arena, "padding is %u before, %u behind",
                                 p->pad[axis], p->pad_end[axis]);
        }
    return NULL;
}

static const char *is_of_integers(Arena *arena, const Candidate *c) {
    bool reals =
        quant_is_at(c->g, c->node) && quant_rule(c->g, c->node) == QUANT_REALS;
    return reals ? legal_say(arena, "%s has none", op_info[c->node->op].name)
                 : NULL;
}

static const char *fits_cells(Arena *arena, const Candidate *c) {
    const Node *node = c->node;
    for (uint32_t k = 0; k <= node->n_in; k++) {
        TensorId id = k < node->n_in ? node->in[k] : node->out[0];
        QuantType type = graph_tensor(c->g, id)->quant.type;
        if (type != QUANT_NONE && quant_type[type].size > c->spec->element)
            return legal_say(arena, "%s has more than %u",
                             quant_type[type].name, c->spec->element);
    }
    return NULL;
}

static uint64_t bytes_whole(const HwMemory *memory, const Shape *shape) {
    Volume v = {0};
    shape_chw(shape, &v.c, &v.h, &v.w);
    return layout_bytes(memory->layout, &v);
}

/* What it takes at least of active memory, of what no machine does by parts:
 * heads of attention can be apart (rules_slabs.c). 0: not known here. */
static uint64_t least_whole(const Candidate *c, const HwMemory *memory) {
    bool moves = c->op == HW_OP_GATHER || c->op == HW_OP_GATHER_PIXELS ||
                 c->op == HW_OP_TRANSPOSE || c->op == HW_OP_RESHAPE;
    bool matrix = hw_op_traits[c->op] & HW_MATRIX;
    bool rows =
        c->spec->tiling.rows.ops >> c->op & 1 && node_goes_by_row(c->node);
    uint32_t heads = matrix && c->node->attr.mix.attends && rows
                         ? larger32(c->node->attr.mix.groups, 1)
                         : 1;
    if (!matrix && !moves)
        return 0;
    uint64_t bytes = rows ? 0
                          : add_capped(bytes_whole(memory, c->in),
                                       bytes_whole(memory, c->out));
    if (matrix) {
        const Shape *other = &graph_tensor(c->g, c->node->in[1])->shape;
        bytes = add_capped(bytes, bytes_whole(memory, other) / heads);
    }
    return bytes;
}

static const char *fits_beside(Arena *arena, const Candidate *c) {
    const HwSpec *spec = c->spec;
    if (spec->n_active != 1 || spec->backing < 0)
        return NULL;
    uint64_t bytes = least_whole(c, &spec->memory[0]);
    return bytes <= spec->memory[0].size
               ? NULL
               : legal_say(arena, "%" PRIu64 " bytes of %" PRIu64, bytes,
                           spec->memory[0].size);
}

static const struct NodeRow {
    const char *text;
    NodeCheck *check;
} node_rows[] = {
    {"engines know no such operation", has_operation},
    {"engines compute one image at a time", is_one_image},
    {"volumes have axes N, C, H, W", has_four_axes},
    {"engines combine two operands of one shape", has_two_operands},
    {"engines add without coefficients", has_no_coefficients},
    {"a prelu needs a slope for each channel", has_slopes},
    {"transposed convolutions run without groups", is_ungrouped},
    {"transposed convolutions are cut alike on both sides", cuts_evenly},
    {"windows start before or in the input", starts_in_time},
    {"on codes engines follow rules of integers", is_of_integers},
    {"a code fits into the bytes of an element", fits_cells},
    {"what runs whole fits beside its result", fits_beside},
};
enum { N_NODE_ROWS = sizeof node_rows / sizeof node_rows[0] };

/* ---- constraints between a node and an engine ---- */

typedef const char *EngineCheck(Arena *arena, const Candidate *c,
                                const HwEngine *engine);

/* ---- pools that stand in a table of a file's words ---- */

bool legal_pool(const PoolAttr *pool, const uint32_t in[2],
                const uint32_t out[2], LegalPool *p) {
    uint32_t kernel = pool->kernel[0], stride = pool->stride[0];
    bool samples = kernel == 1, max = pool->kind == POOL_MAX;
    bool inside = samples || kernel == stride;
    if (pool->global || pool->kernel[1] != kernel || pool->stride[1] != stride)
        return false;
    *p = (LegalPool){samples ? "sample"
                     : max   ? "max"
                             : "mean",
                     inside ? "inside" : "ignore", samples ? stride : kernel,
                     stride};
    for (int a = 0; a < 2; a++)
        if (pool->pad[a] || pool->pad_end[a] != (inside ? 0 : kernel - 1) ||
            out[a] != in[a] / stride || (samples && in[a] % stride))
            return false;
    return inside || (max && stride == 1);
}

/* NULL where the machine's files name it, or where it has none. */
static const char *is_named_pool(Arena *arena, const Candidate *c,
                                 const Part *part) {
    const HwSpec *spec = c->spec;
    const ProgRow *row = program_row_for(spec, hw_op_name[HW_OP_CONV]);
    const uint32_t in[] = {part->in.h, part->in.w};
    const uint32_t out[] = {part->out.h, part->out.w};
    LegalPool p;
    const char *const name[] = {"pool", "pool.edge", "pool.kernel.w",
                                "pool.stride.w"};
    int64_t value[4];
    bool ok = legal_pool(&c->node->attr.pool, in, out, &p) &&
              program_word_value(spec, name[0], p.kind, &value[0]) &&
              program_word_value(spec, name[1], p.edge, &value[1]);
    value[2] = ok ? p.kernel : 0;
    value[3] = ok ? p.stride : 0;
    if (ok && program_row_can(row, 4, name, value, spec))
        return NULL;
    return legal_say(arena, "files of %s have no such pool", spec->machine);
}

/* Rows whose tables name pools; ways of `emit` say themselves what they take.
 */
static bool has_rows(const HwSpec *spec) {
    return spec->format && !spec->insns->n && !program_emit(spec);
}

/* Why a convolution of more input channels than there may be is no sum of
 * convolutions of some (pass `channels`); "": it is, or cannot be cut so. */
static const char *not_summed(Arena *arena, const Candidate *c,
                              const Part *part, const HwEngine *engine) {
    uint32_t limit = legal_broken(part, engine);
    int32_t adds = hwspec_engine(c->spec, HW_OP_ADD);
    ActKind kind = c->node->act.kind;
    uint32_t act = kind == ACT_NONE ? 0 : hw_act_number(act_name[kind]);
    if (c->op != HW_OP_CONV ||
        (limit != HW_LIMIT_TAPS && limit != HW_LIMIT_IN_C))
        return "";
    if (graph_tensor(c->g, c->node->in[0])->quant.type != QUANT_NONE)
        return "; of codes a sum of layers of some input channels would be "
               "rounded";
    if (adds < 0)
        return "; it would be a sum of layers of some input channels, but no "
               "engine runs add";
    if (kind != ACT_NONE &&
        !(act && c->spec->engine[adds].acts[HW_OP_ADD] >> (act - 1) & 1))
        return legal_say(arena,
                         "; it would be a sum of layers of some input "
                         "channels, but engine %s has no %s for add",
                         c->spec->engine[adds].name, act_name[kind]);
    return "";
}

static const char *is_within_limits(Arena *arena, const Candidate *c,
                                    const HwEngine *engine) {
    Part part[2];
    uint32_t n = legal_node_parts(c, part);
    const char *broken = NULL;
    for (uint32_t i = 0; i < n && !broken; i++)
        broken = i && has_rows(c->spec) ? is_named_pool(arena, c, &part[i])
                                        : legal_within(arena, &part[i], engine);
    if (!broken || !arena)
        return broken;
    return legal_say(arena, "%s%s", broken,
                     not_summed(arena, c, &part[0], engine));
}

static const char *has_activation(Arena *arena, const Candidate *c,
                                  const HwEngine *engine) {
    ActKind kind = c->node->act.kind;
    uint32_t number = hw_act_number(act_name[kind]);
    if (kind == ACT_NONE || (number && engine->acts[c->op] >> (number - 1) & 1))
        return NULL;
    return legal_say(arena, "engine %s has no %s for %s", engine->name,
                     act_name[kind], hw_op_name[c->op]);
}

/* Elements of window `i` along an axis that count in an average. */
static uint32_t window_length(const Part *p, int axis, uint32_t i,
                              bool padded) {
    int64_t in = axis ? p->in.w : p->in.h;
    int64_t first = (int64_t)i * p->stride[axis] - p->pad[axis];
    int64_t end = first + p->kernel[axis];
    int64_t from = padded ? -(int64_t)p->pad[axis] : 0;
    int64_t to = padded ? in + p->pad_end[axis] : in;
    int64_t length = (end < to ? end : to) - (first > from ? first : from);
    return length > 0 ? (uint32_t)length : 0;
}

/* Both divisors are products of lengths along the axes, and the engine's is
 * never on the other side of the reference's: they are equal for all windows
 * exactly if the lengths are. */
static const char *divides_alike(Arena *arena, const Candidate *c,
                                 const HwEngine *engine) {
    bool averages = c->op == HW_OP_POOL_AVG || c->op == HW_OP_CONV_POOL_AVG;
    if (!averages)
        return NULL;
    Part part[2];
    const Part *p = &part[legal_node_parts(c, part) - 1];
    bool count_pad = c->node->attr.pool.count_pad;
    for (int axis = 0; axis < 2; axis++)
        for (uint32_t i = 0; i < (axis ? p->out.w : p->out.h); i++) {
            uint32_t want = window_length(p, axis, i, count_pad);
            uint32_t got = engine->divisor == HW_DIVISOR_KERNEL
                               ? p->kernel[axis]
                               : window_length(p, axis, i, false);
            if (want != got)
                return legal_say(
                    arena, "%s %u of windows counts %u, engine %s %u",
                    axis ? "column" : "row", i, want, engine->name, got);
        }
    return NULL;
}

static const char *is_told(Arena *arena, const Candidate *c,
                           const HwEngine *engine) {
    (void)engine;
    Part part[2];
    uint32_t n = legal_node_parts(c, part);
    return legal_untold(arena, c, n, part);
}

static const struct EngineRow {
    const char *text;
    bool bare; /* the detail alone is the error */
    EngineCheck *check;
} engine_rows[] = {
    {"quantities are within the engine's limits", true, is_within_limits},
    {"its instruction tells what is not usual", true, is_told},
    {"activations are among those of the engine", true, has_activation},
    {"averages divide by different numbers", false, divides_alike},
};
enum { N_ENGINE_ROWS = sizeof engine_rows / sizeof engine_rows[0] };

/* ---- verdicts ---- */

static const char *node_refusal(Arena *arena, const Candidate *c) {
    for (int i = 0; i < N_NODE_ROWS; i++) {
        const char *detail = node_rows[i].check(arena, c);
        if (detail)
            return legal_say(arena, "%s: %s", node_rows[i].text, detail);
    }
    return NULL;
}

static const char *engine_refusal(Arena *arena, const Candidate *c,
                                  const HwEngine *engine) {
    for (int i = 0; i < N_ENGINE_ROWS; i++) {
        const struct EngineRow *row = &engine_rows[i];
        const char *detail = row->check(arena, c, engine);
        if (detail)
            return row->bare ? detail
                             : legal_say(arena, "%s: %s", row->text, detail);
    }
    return NULL;
}

/* Code for a convolution with its pool would compute a result for each window
 * that it is in, or need room in between. */
Legal legal_elsewhere(const HwSpec *spec, const Node *node,
                      const char *reason) {
    int32_t processor = hwspec_engine(spec, HW_OP_LAYER);
    if (processor < 0 || node->op == OP_CONV_POOL || node->n_in == 0)
        return (Legal){-1, HW_OP_HOST, reason};
    return (Legal){processor, HW_OP_LAYER, NULL};
}

static Legal judge_engines(Arena *arena, const Candidate *c) {
    const char *reason = node_refusal(arena, c);
    if (reason)
        return (Legal){-1, HW_OP_HOST, reason};
    for (uint32_t e = 0; e < c->spec->n_engines; e++) {
        const HwEngine *engine = &c->spec->engine[e];
        if (!(engine->ops >> c->op & 1) || engine->ahead)
            continue;
        const char *refusal = engine_refusal(arena, c, engine);
        if (!refusal)
            return (Legal){(int32_t)e, c->op, NULL};
        if (!reason)
            reason = refusal;
    }
    if (!reason)
        reason = legal_say(arena, "no engine of %s runs %s", c->spec->machine,
                           hw_op_name[c->op]);
    return (Legal){-1, HW_OP_HOST, reason};
}

Legal legal_judge(Arena *arena, const Candidate *c) {
    Legal legal = judge_engines(arena, c);
    return legal.engine >= 0 ? legal
                             : legal_elsewhere(c->spec, c->node, legal.reason);
}

Candidate legal_candidate(const HwSpec *spec, const Graph *g,
                          const Node *node) {
    TensorId out = node->out[0], in = node->n_in ? node->in[0] : out;
    return (Candidate){
        .spec = spec,
        .g = g,
        .node = node,
        .in = &graph_tensor(g, in)->shape,
        .out = &graph_tensor(g, out)->shape,
        .op = legal_node_op(g, node),
    };
}

int32_t legal_engine(const HwSpec *spec, const Graph *g, const Node *node) {
    if (node->n_in == 0 || node->op == OP_CONCAT)
        return -1;
    Candidate candidate = legal_candidate(spec, g, node);
    return legal_judge(NULL, &candidate).engine;
}

/* `view` NULL: one is made. */
static Legal check_concat(Arena *arena, const HwSpec *spec, const Graph *g,
                          const ConcatView *view, NodeId node) {
    Arena *scratch = arena_new("legal");
    ConcatView own = {0};
    if (!view)
        own = concat_view(scratch, spec, g);
    const char *reason = concat_refuses_any(arena, view ? view : &own, node);
    arena_free(scratch);
    if (reason)
        return legal_elsewhere(spec, graph_node(g, node), reason);
    return (Legal){-1, HW_OP_CONCAT, NULL};
}

static Legal check_in(Arena *arena, const HwSpec *spec, const Graph *g,
                      const ConcatView *view, NodeId node);

/* Whether the host makes what the node reads, be it in another shape. */
static bool reads_host(const HwSpec *spec, const Graph *g,
                       const ConcatView *view, NodeId id) {
    enum { MOST_SHAPES = 4 };
    const Node *node = graph_node(g, id);
    for (uint32_t i = 0; i < MOST_SHAPES && node->op == OP_RESHAPE; i++) {
        id = graph_tensor(g, node->in[0])->producer;
        node = graph_node(g, id);
    }
    return node->op != OP_RESHAPE && node->op != OP_INPUT &&
           check_in(NULL, spec, g, view, id).op == HW_OP_HOST;
}

static Legal check_in(Arena *arena, const HwSpec *spec, const Graph *g,
                      const ConcatView *view, NodeId node) {
    if (graph_node(g, node)->op == OP_INPUT)
        return (Legal){-1, HW_OP_HOST, NULL};
    if (graph_node(g, node)->n_in == 0)
        return (Legal){-1, HW_OP_HOST, "the host brings constants along"};
    if (graph_node(g, node)->op == OP_CONCAT)
        return check_concat(arena, spec, g, view, node);
    Candidate candidate = legal_candidate(spec, g, graph_node(g, node));
    if (candidate.op == HW_OP_RESHAPE && reads_host(spec, g, view, node))
        return legal_elsewhere(spec, candidate.node,
                               "the host makes its operand");
    return legal_judge(arena, &candidate);
}

Legal legal_check(Arena *arena, const HwSpec *spec, const Graph *g,
                  NodeId node) {
    return check_in(arena, spec, g, NULL, node);
}

Legal *legal_check_all(Arena *arena, const HwSpec *spec, const Graph *g) {
    Arena *scratch = arena_new("legal");
    ConcatView view = concat_view(scratch, spec, g);
    Legal *all = ARENA_ARRAY(arena, Legal, g->node.n + 1);
    for (NodeId n = {0}; n.i < g->node.n; n.i++)
        all[n.i] = check_in(arena, spec, g, &view, n);
    arena_free(scratch);
    return all;
}

static bool may_run_ahead(const Graph *g, const Uses *uses, const Node *node) {
    if (node->n_in != 1 || node->n_out != 1)
        return false;
    TensorId in = node->in[0], out = node->out[0];
    if (graph_node(g, graph_tensor(g, in)->producer)->op != OP_INPUT ||
        uses->start[in.i + 1] - uses->start[in.i] != 1)
        return false;
    for (uint32_t i = uses->start[out.i]; i < uses->start[out.i + 1]; i++)
        if (graph_node(g, uses->node[i])->op == OP_CONCAT)
            return false;
    return true;
}

Legal legal_check_ahead(const HwSpec *spec, const Graph *g, const Uses *uses,
                        NodeId id) {
    Legal none = {-1, HW_OP_HOST, NULL};
    const Node *node = graph_node(g, id);
    if (!may_run_ahead(g, uses, node))
        return none;
    Candidate c = legal_candidate(spec, g, node);
    if (node_refusal(NULL, &c))
        return none;
    for (uint32_t e = 0; e < spec->n_engines; e++)
        if (spec->engine[e].ahead && spec->engine[e].ops >> c.op & 1 &&
            !engine_refusal(NULL, &c, &spec->engine[e]))
            return (Legal){(int32_t)e, c.op, NULL};
    return none;
}

void legal_print(FILE *to) {
    static const char *const limit_doc[HW_LIMIT_COUNT] = {
#define HW_LIMIT(NAME, text, doc) doc,
#include "hwspec/limits.def"
#undef HW_LIMIT
    };
    fputs("constraints (a layer that breaks one goes to the host):\n", to);
    for (int i = 0; i < N_NODE_ROWS; i++)
        fprintf(to, "  %s\n", node_rows[i].text);
    for (int i = 0; i < N_ENGINE_ROWS; i++)
        fprintf(to, "  %s\n", engine_rows[i].text);
    fputs("quantities that a hwspec can bound:\n", to);
    for (int i = 0; i < HW_LIMIT_COUNT; i++)
        fprintf(to, "  %-12s %s\n", hw_limit_name[i], limit_doc[i]);
}
