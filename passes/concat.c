/* concat.c - which concats need no work at run time.
 *
 * A concat of channels is free when each member is written straight to its
 * place in the whole. In: a machine and a graph. Out: the reason against a
 * concat, or against one member of it.
 *
 * A member that is itself a concat is in place when its own members are. If an
 * engine can start a part at multiples of `a` channels, a member needs every
 * offset on the way from the outermost concat to be such a multiple; the
 * greatest common divisor of those offsets stands for them all. (Offsets that
 * fit only in sum are not looked for: each concat is thus legal or not by
 * itself, whatever it is a member of.)
 *
 * A tensor read by several concats lies in the first of them.
 */
#include "base/arith.h"
#include "passes/legal_int.h"

#include "graph/quant.h"
#include "hwspec/insn.h"

typedef struct Member {
    NodeId concat;
    uint32_t k;
    uint32_t path; /* greatest common divisor of the offsets; 0: all are 0 */
} Member;

enum { NOT_ASKED = -2 };

static uint32_t channels(const Graph *g, TensorId tensor) {
    return shape_dim(&graph_tensor(g, tensor)->shape, 1);
}

/* ---- what all members look at ---- */

static void count_reader(ConcatView *view, uint32_t node, uint32_t k,
                         bool holds) {
    uint32_t t = view->g->node.at[node].in[k].i;
    if (holds && view->claim[t] == NONE) {
        view->claim[t] = node;
        view->index[t] = k;
    } else {
        view->others[t]++;
    }
}

ConcatView concat_view(Arena *arena, const HwSpec *spec, const Graph *g) {
    ConcatView view = {
        .spec = spec,
        .g = g,
        .claim = ARENA_ARRAY(arena, uint32_t, g->tensor.n),
        .index = ARENA_ARRAY(arena, uint32_t, g->tensor.n),
        .others = ARENA_ARRAY(arena, uint32_t, g->tensor.n),
        .engine = ARENA_ARRAY(arena, int32_t, g->node.n),
    };
    for (uint32_t t = 0; t < g->tensor.n; t++)
        view.claim[t] = NONE;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        view.engine[i] = NOT_ASKED;
        bool holds =
            node->op == OP_CONCAT && !concat_refuses(NULL, &view, node);
        for (uint32_t k = 0; !node->dead && k < node->n_in; k++)
            count_reader(&view, i, k, holds);
    }
    return view;
}

/* The coarsest of the active memories; 0 if one cannot address parts. Where
 * they are told they may begin anywhere. */
static uint32_t granule(const HwSpec *spec) {
    uint32_t coarsest = 1;
    for (uint32_t i = 0; i < spec->n_active; i++) {
        uint32_t step = layout_granule(spec->memory[i].layout);
        if (step == 0 && !hwspec_parts_between(spec, &spec->memory[i]))
            return 0;
        if (step > coarsest)
            coarsest = step;
    }
    return coarsest;
}

/* ---- the whole ---- */

const char *concat_refuses(Arena *arena, const ConcatView *view,
                           const Node *node) {
    const Shape *out = &graph_tensor(view->g, node->out[0])->shape;
    uint32_t axis = node->attr.axis.axis;
    if (out->rank != 4)
        return arena ? legal_say(arena,
                                 "volumes have axes N, C, H, W: shape "
                                 "is %s",
                                 shape_text(arena, out))
                     : "";
    if (axis != 1)
        return legal_say(arena, "only channels lie side by side: axis is %u",
                         axis);
    if (out->dim[0] != 1)
        return legal_say(arena,
                         "engines compute one image at a time: N is "
                         "%u",
                         out->dim[0]);
    if (node->act.kind != ACT_NONE)
        return legal_say(arena, "a concat computes nothing: it has %s",
                         act_name[node->act.kind]);
    if (!quant_is_one(view->g, node))
        return legal_say(arena, "members are quantised differently");
    if (granule(view->spec) == 0)
        return legal_say(arena,
                         "no part of the channels is a volume in "
                         "memory %s",
                         view->spec->memory[0].name);
    return NULL;
}

/* ---- members ---- */

/* Whether so many channels lie otherwise in a volume of more than they would
 * as one of their own, in an active memory. */
static bool too_few(const HwSpec *spec, uint32_t n) {
    Volume more = {.c = UINT32_MAX, .h = 1, .w = 1};
    for (uint32_t i = 0; i < spec->n_active; i++)
        if (!hwspec_part_told(spec, &spec->memory[i], &more, 0, n))
            return true;
    return false;
}

/* Whether instructions of `op` say where in the whole a part begins. */
static bool tells(const HwSpec *spec, HwOp op) {
    int32_t row = spec->insns ? insn_row(spec, op) : -1;
    const HwForm *form = row < 0 ? NULL : &spec->insns->row[row].form[0];
    return !form || (insn_token_of(form, HW_F_OUT_PART) >= 0 &&
                     insn_token_of(form, HW_F_OUT_PART_START) >= 0);
}

bool concat_told(const HwSpec *spec, HwOp op, uint32_t step, uint32_t n) {
    uint32_t section = granule(spec);
    return section < 2 || (step % section == 0 && !too_few(spec, n)) ||
           tells(spec, op);
}

/* Without a token for it a listing gives a part like a volume, by its first
 * byte, and it is padded like one; where whole channels lie outermost, always.
 */
bool concat_aligned(const HwSpec *spec, HwOp op, const Shape *shape,
                    uint32_t step) {
    uint32_t section = granule(spec);
    if (hwspec_engine(spec, HW_OP_LAYER) >= 0 ||
        (section > 1 && tells(spec, op)))
        return true;
    Volume whole = {
        .c = step + 1, .h = shape_dim(shape, 2), .w = shape_dim(shape, 3)};
    for (uint32_t i = 0; i < spec->n_active; i++) {
        const HwMemory *m = &spec->memory[i];
        if (hwspec_parts_between(spec, m))
            continue;
        uint32_t unit = layout_part_step(m->layout);
        if (!unit || step % unit)
            return false;
        if (m->align && layout_part_offset(m->layout, &whole, step) % m->align)
            return false;
    }
    return true;
}

/* A tensor is a member of as many concats as list it. */
static int32_t engine_of(const ConcatView *view, NodeId id) {
    int32_t *known = &view->engine[id.i];
    if (*known == NOT_ASKED)
        *known = legal_engine(view->spec, view->g, graph_node(view->g, id));
    return *known;
}

static const char *refuses_writer(Arena *arena, const ConcatView *view,
                                  const Member *m, TensorId t) {
    const Tensor *tensor = graph_tensor(view->g, t);
    const Node *writer = graph_node(view->g, tensor->producer);
    if (writer->op == OP_INPUT)
        return legal_say(arena, "member %s is a network input", tensor->name);
    int32_t e = engine_of(view, tensor->producer);
    if (e < 0)
        return legal_say(arena, "member %s comes from the host", tensor->name);
    const HwEngine *engine = &view->spec->engine[e];
    uint32_t step = engine->part_align > 1 ? engine->part_align : 1;
    if (m->path % step)
        return legal_say(arena,
                         "member %s starts at channel %u or in a part that "
                         "does, engine %s writes at multiples of %u",
                         tensor->name, m->path, engine->name, step);
    HwOp op = legal_candidate(view->spec, view->g, writer).op;
    if (!concat_told(view->spec, op, m->path, channels(view->g, t)))
        return legal_say(arena,
                         "member %s starts at channel %u or in a part that "
                         "does, inside a section of %u channels: no token of "
                         "%s tells it",
                         tensor->name, m->path, granule(view->spec),
                         hw_op_name[op]);
    if (!concat_aligned(view->spec, op, &tensor->shape, m->path))
        return legal_say(arena,
                         "member %s starts at channel %u or in a part that "
                         "does, which is not aligned",
                         tensor->name, m->path);
    return NULL;
}

static const char *refuses_tensor(Arena *arena, const ConcatView *view,
                                  const Member *m, TensorId t) {
    const char *name = graph_tensor(view->g, t)->name;
    if (view->claim[t.i] != m->concat.i || view->index[t.i] != m->k)
        return legal_say(arena, "member %s lies in concat %s already", name,
                         view->g->node.at[view->claim[t.i]].name);
    if (graph_is_output(view->g, t))
        return legal_say(arena, "member %s is a network output", name);
    uint32_t step = granule(view->spec);
    if (view->others[t.i] && m->path % step)
        return legal_say(arena,
                         "member %s is read by others too and starts at "
                         "channel %u, volumes start at multiples of %u",
                         name, m->path, step);
    if (view->others[t.i] && too_few(view->spec, channels(view->g, t)))
        return legal_say(arena,
                         "member %s is read by others too and has %u "
                         "channels, which lie otherwise in a larger volume",
                         name, channels(view->g, t));
    return NULL;
}

typedef struct Walk {
    Arena *arena; /* of the reason */
    const ConcatView *view;
    Arena *scratch;
    VEC(Member) open;
} Walk;

static void open_members(Walk *walk, NodeId concat, uint32_t path) {
    const Node *node = graph_node(walk->view->g, concat);
    uint32_t start = 0;
    for (uint32_t k = 0; k < node->n_in; k++) {
        Member member = {concat, k, (uint32_t)gcd(path, start)};
        vec_push(walk->scratch, &walk->open, member);
        start += channels(walk->view->g, node->in[k]);
    }
}

/* Looks at one member; a concat's own members are left open. */
static const char *refuses_step(Walk *walk, const Member *m) {
    const Graph *g = walk->view->g;
    TensorId t = graph_node(g, m->concat)->in[m->k];
    NodeId producer = graph_tensor(g, t)->producer;
    const Node *writer = graph_node(g, producer);
    const char *reason = refuses_tensor(walk->arena, walk->view, m, t);
    if (reason)
        return reason;
    if (writer->op != OP_CONCAT)
        return refuses_writer(walk->arena, walk->view, m, t);
    reason = concat_refuses(walk->arena, walk->view, writer);
    if (reason)
        return legal_say(walk->arena, "member %s: %s", graph_tensor(g, t)->name,
                         reason);
    open_members(walk, producer, m->path);
    return NULL;
}

static const char *refuses_open(Walk *walk) {
    const char *reason = NULL;
    while (!reason && walk->open.n) {
        Member member = walk->open.at[--walk->open.n];
        reason = refuses_step(walk, &member);
    }
    arena_free(walk->scratch);
    return reason;
}

const char *concat_refuses_member(Arena *arena, const ConcatView *view,
                                  NodeId concat, uint32_t k, uint32_t start) {
    Walk walk = {arena, view, arena_new("concat"), {0}};
    Member member = {concat, k, start};
    vec_push(walk.scratch, &walk.open, member);
    return refuses_open(&walk);
}

const char *concat_refuses_any(Arena *arena, const ConcatView *view,
                               NodeId concat) {
    const char *reason =
        concat_refuses(arena, view, graph_node(view->g, concat));
    if (reason)
        return reason;
    Walk walk = {arena, view, arena_new("concat"), {0}};
    open_members(&walk, concat, 0);
    return refuses_open(&walk);
}
