/* replication.c - a model of copies against cycles; see replication.h.
 *
 * Input: a schedule. Output: volumes with a choice, groups of them that share
 * nodes, cycles by node.
 * The problem is that of facts/two-level.md 3: for each volume a way, such that
 * who writes it and who reads it agree; least cycles. Two volumes meet in a
 * node, so volumes that no chain of nodes links are apart.
 */
#include "alloc/search/replication.h"
#include "alloc/geometry/tensor_bytes.h"

#include "alloc/search/search.h"
#include "base/arith.h"
#include "base/order.h"
#include "base/vec.h"
#include "hwspec/cost.h"

#include <stdlib.h>

enum { MAX_COMBINATIONS = 1 << 12, MAX_ROUNDS = 8 };

struct CopyModel {
    Arena *arena;
    const Facts *f;
    Decisions *d;
    VEC(CopyVolume) volume;
    uint32_t *volume_of; /* by tensor; NONE */
    uint32_t *group;     /* by volume: the first of its group */
    Repl *stored;        /* by tensor: the choice at hand */
};

/* ---- which volumes ---- */

uint32_t copies_ways(const HwSpec *spec, uint32_t channels,
                     Repl way[COPIES_MAX_WAYS]) {
    const HwReplication *r = &spec->replication;
    uint32_t n = 0;
    if (!r->section)
        return 0;
    way[n++] = hwspec_repl_none(spec, channels);
    uint32_t rest = channels % r->section;
    for (uint32_t i = 0; rest && i < r->n_stored && n < COPIES_MAX_WAYS; i++) {
        HwCopies copies = r->stored[i];
        way[n++] = (Repl){channels / r->section,
                          (rest + copies.width - 1) / copies.width,
                          copies.units, copies.width};
    }
    return n;
}

static bool takes_copies(const Facts *f, NodeId reader) {
    OpKind op = graph_node(f->g, reader)->op;
    return !on_engine(f, reader) || op == OP_CONV || op == OP_CONV_POOL ||
           op == OP_POOL;
}

static const char *readers_refuse(const Facts *f, TensorId t) {
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++) {
        if (is_placed(f, f->uses.node[i]))
            return "it is part of a concat, which decides";
        if (!takes_copies(f, f->uses.node[i]))
            return "something else than convolutions and pools reads it";
    }
    return NULL;
}

static bool engine_reads(const Facts *f, TensorId t) {
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++)
        if (on_engine(f, f->uses.node[i]))
            return true;
    return false;
}

/* Instructions have no field for a source that is a part, so who reads a part
 * by itself must find it in the sections that have no copies. */
static bool parts_refuse(const Facts *f, TensorId whole, uint32_t base,
                         uint32_t full) {
    const Node *node = graph_node(f->g, graph_tensor(f->g, whole)->producer);
    for (uint32_t i = 0; i < node->n_in; i++) {
        TensorId part = node->in[i];
        uint32_t c = base + f->role[part.i].part_c;
        if (engine_reads(f, part) && c + plan_volume(f->g, part).c > full)
            return true;
        if (f->role[part.i].origin == FROM_PARTS &&
            parts_refuse(f, part, c, full))
            return true;
    }
    return false;
}

const char *copies_refusal(const CopyModel *m, TensorId t) {
    const Decisions *d = m->d;
    uint32_t section = d->f->spec->replication.section;
    if (d->alias_of[t.i] == NONE)
        return "no engine touches it";
    const char *why = readers_refuse(d->f, t);
    if (!why && section && d->f->role[t.i].origin == FROM_PARTS &&
        parts_refuse(d->f, t, 0, plan_volume(d->f->g, t).c / section * section))
        why = "a part of it is read by itself";
    return why;
}

static uint32_t taps_of(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    bool conv = node->op == OP_CONV || node->op == OP_CONV_POOL;
    if (!conv || !on_engine(f, id))
        return 0;
    return node->attr.conv.kernel[0] * node->attr.conv.kernel[1];
}

/* Copies save nothing where all kernels are 1x1. */
static bool has_taps(const Facts *f, TensorId t) {
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++)
        if (taps_of(f, f->uses.node[i]) > 1)
            return true;
    return false;
}

static void volumes_find(CopyModel *m) {
    const Graph *g = m->f->g;
    m->volume_of = ARENA_ARRAY(m->arena, uint32_t, g->tensor.n + 1);
    for (TensorId t = {0}; t.i < g->tensor.n; t.i++) {
        CopyVolume v = {.tensor = t};
        m->volume_of[t.i] = NONE;
        if (!copies_refusal(m, t) && has_taps(m->f, t))
            v.n = copies_ways(m->f->spec, plan_volume(g, t).c, v.way);
        if (v.n < 2)
            continue;
        m->volume_of[t.i] = m->volume.n;
        vec_push(m->arena, &m->volume, v);
    }
}

/* ---- cycles of a node ---- */

/* Through one port of active memory. */
static uint64_t port_cycles(const CopyModel *m, TensorId t) {
    const HwMemory *memory = &m->f->spec->memory[0];
    if (memory->bandwidth <= 0 || m->d->alias_of[t.i] == NONE)
        return 0;
    TensorId whole = enclosing(m->f, t);
    Volume own = plan_volume(m->f->g, t), pixel = plan_volume(m->f->g, whole);
    double share = (double)own.c / (double)pixel.c;
    pixel.h = pixel.w = 1;
    pixel.repl = m->stored[whole.i];
    double bytes = (double)layout_bytes(memory->layout, &pixel) * share;
    return hwspec_cycles(m->f->spec, bytes * own.h * own.w / memory->bandwidth);
}

/* With the input as `repl` says. */
static uint64_t array_cycles(const CopyModel *m, NodeId id, const Repl *repl,
                             uint64_t ports) {
    const Node *node = graph_node(m->f->g, id);
    const ConvAttr *conv = &node->attr.conv;
    const HwSpec *spec = m->f->spec;
    const HwEngine *engine = &spec->engine[m->f->legal[id.i].engine];
    Volume in = plan_volume(m->f->g, node->in[0]);
    uint32_t made[2], size[2] = {in.h, in.w};
    for (int axis = 0; axis < 2; axis++)
        made[axis] = conv_out_size(size[axis], conv->kernel[axis],
                                   conv->stride[axis], conv->dilation[axis],
                                   conv->pad[axis], conv->pad_end[axis]);
    uint64_t inner =
        hwspec_inner_steps(spec, engine, repl, in.c, taps_of(m->f, id));
    const HwWeightCache *cache = &spec->weight_cache;
    bool half = cache->full_rate && inner > cache->full_rate;
    uint64_t weights = hwspec_weight_cycles(
        spec, hwspec_weight_bytes(spec, in.c, taps_of(m->f, id), conv->out_c));
    uint64_t work =
        larger(ports, hwspec_engine_cycles(spec, engine, conv->out_c, made[0],
                                           made[1], half ? 2 * inner : inner));
    return inner <= cache->pingpong ? larger(work, weights) : work + weights;
}

static uint64_t node_cycles(const CopyModel *m, NodeId id) {
    const Node *node = graph_node(m->f->g, id);
    if (!on_engine(m->f, id))
        return 0;
    uint64_t ports = port_cycles(m, node->out[0]), read = 0;
    for (uint32_t i = 0; i < node->n_in; i++)
        read += port_cycles(m, node->in[i]);
    ports = larger(ports, read);
    return taps_of(m->f, id)
               ? array_cycles(m, id, &m->stored[node->in[0].i], ports)
               : ports;
}

/* ---- groups of volumes ---- */

static uint32_t group_of(const CopyModel *m, uint32_t v) {
    while (m->group[v] != v)
        v = m->group[v];
    return v;
}

static void link(CopyModel *m, uint32_t a, uint32_t b) {
    if (a == NONE || b == NONE)
        return;
    a = group_of(m, a);
    b = group_of(m, b);
    m->group[a > b ? a : b] = a > b ? b : a;
}

static uint32_t volume_at(const CopyModel *m, TensorId t) {
    return m->volume_of[enclosing(m->f, t).i];
}

static void groups_find(CopyModel *m) {
    m->group = ARENA_ARRAY(m->arena, uint32_t, m->volume.n + 1);
    for (uint32_t v = 0; v < m->volume.n; v++)
        m->group[v] = v;
    for (NodeId id = {0}; id.i < m->f->g->node.n; id.i++) {
        const Node *node = graph_node(m->f->g, id);
        for (uint32_t i = 0; on_engine(m->f, id) && i < node->n_in; i++)
            link(m, volume_at(m, node->in[i]), volume_at(m, node->out[0]));
    }
}

/* Nodes that touch a volume of the group. */
static uint32_t group_nodes(const CopyModel *m, uint32_t group, NodeId *out) {
    uint32_t n = 0;
    for (NodeId id = {0}; id.i < m->f->g->node.n; id.i++) {
        const Node *node = graph_node(m->f->g, id);
        uint32_t v = node->n_out ? volume_at(m, node->out[0]) : NONE;
        for (uint32_t i = 0; v == NONE && i < node->n_in; i++)
            v = volume_at(m, node->in[i]);
        if (on_engine(m->f, id) && v != NONE && group_of(m, v) == group)
            out[n++] = id;
    }
    return n;
}

/* ---- the choice ---- */

typedef struct GroupTask {
    CopyModel *m;
    uint32_t n_nodes, n_volumes;
    NodeId *node;
    uint32_t *volume;
    uint64_t least; /* cycles */
} GroupTask;

static uint64_t task_cycles(const GroupTask *t) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++)
        sum += node_cycles(t->m, t->node[i]);
    return sum;
}

static Repl *slot(const GroupTask *t, uint32_t i) {
    return &t->m->stored[t->m->volume.at[t->volume[i]].tensor.i];
}

/* All combinations; the first of the best is kept. */
static void try_all(GroupTask *t, uint32_t count) {
    uint32_t best = NONE;
    for (uint32_t k = 0; k <= count; k++) {
        uint32_t rest = k < count ? k : best;
        if (rest == NONE)
            return;
        Repl before[COPIES_MAX_WAYS];
        for (uint32_t i = 0; i < t->n_volumes; i++) {
            const CopyVolume *v = &t->m->volume.at[t->volume[i]];
            before[i] = *slot(t, i);
            *slot(t, i) = v->way[rest % v->n];
            rest /= v->n;
        }
        uint64_t cycles = k < count ? task_cycles(t) : t->least;
        if (cycles < t->least) {
            t->least = cycles;
            best = k;
        }
        for (uint32_t i = 0; k < count && i < t->n_volumes; i++)
            *slot(t, i) = before[i];
    }
}

/* One volume at a time. */
static void descend(GroupTask *t) {
    bool better = true;
    for (uint32_t round = 0; better && round < MAX_ROUNDS; round++) {
        better = false;
        for (uint32_t i = 0; i < t->n_volumes; i++) {
            const CopyVolume *v = &t->m->volume.at[t->volume[i]];
            Repl best = *slot(t, i);
            for (uint32_t k = 0; k < v->n; k++) {
                *slot(t, i) = v->way[k];
                uint64_t cycles = task_cycles(t);
                if (cycles >= t->least)
                    continue;
                t->least = cycles;
                best = v->way[k];
                better = true;
            }
            *slot(t, i) = best;
        }
    }
}

static void group_choose(GroupTask *t, uint32_t group) {
    CopyModel *m = t->m;
    uint64_t count = 1;
    t->n_volumes = 0;
    for (uint32_t v = group; v < m->volume.n; v++)
        if (group_of(m, v) == group) {
            t->volume[t->n_volumes++] = v;
            count =
                count > MAX_COMBINATIONS ? count : count * m->volume.at[v].n;
        }
    t->n_nodes = group_nodes(m, group, t->node);
    t->least = task_cycles(t);
    if (count <= MAX_COMBINATIONS && t->n_volumes <= COPIES_MAX_WAYS)
        try_all(t, (uint32_t)count);
    else
        descend(t);
}

static void take(CopyModel *m, const Repl *stored) {
    for (uint32_t t = 0; t < m->f->g->tensor.n; t++)
        m->stored[t] = stored[t];
}

void copies_choose(CopyModel *m, Repl *stored) {
    GroupTask t = {.m = m};
    t.node = ARENA_ARRAY(m->arena, NodeId, m->f->g->node.n + 1);
    t.volume = ARENA_ARRAY(m->arena, uint32_t, m->volume.n + 1);
    take(m, stored);
    for (uint32_t v = 0; v < m->volume.n; v++)
        if (m->group[v] == v)
            group_choose(&t, v);
    for (uint32_t v = 0; v < m->volume.n; v++) {
        TensorId tensor = m->volume.at[v].tensor;
        stored[tensor.i] = m->stored[tensor.i];
    }
}

uint64_t copies_cycles(CopyModel *m, const Repl *stored) {
    uint64_t sum = 0;
    take(m, stored);
    for (NodeId id = {0}; id.i < m->f->g->node.n; id.i++)
        sum += node_cycles(m, id);
    return sum;
}

/* ---- on the fly ---- */

/* To backing memory and back. */
static uint64_t trip(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    const HwMemory *backing = &f->spec->memory[f->spec->backing];
    return 2 * hwspec_transfer_cycles(f->spec, backing, v.c, v.h, v.w,
                                      ALL_TOGETHER);
}

static uint64_t on_the_fly_gain(const CopyModel *m, NodeId id) {
    const Facts *f = m->f;
    uint32_t taps = taps_of(f, id);
    if (taps < 2 || f->spec->backing < 0)
        return 0;
    TensorId in = graph_node(f->g, id)->in[0];
    if (f->role[in.i].origin == FROM_INPUT || f->role[in.i].parent.i != NONE)
        return 0;
    Repl fly = hwspec_repl_rule(f->spec, plan_volume(f->g, in).c, taps, true);
    uint64_t ports = port_cycles(m, graph_node(f->g, id)->out[0]);
    uint64_t now = node_cycles(m, id);
    uint64_t then = array_cycles(m, id, &fly, ports) + trip(f, in);
    return fly.sections && then < now ? now - then : 0;
}

static int by_gain(const void *a, const void *b) {
    const CopyFly *x = a, *y = b;
    return order_by(ORDER_DOWN(x->gain, y->gain),
                    ORDER_UP(x->node.i, y->node.i));
}

uint32_t copies_flies(CopyModel *m, const Repl *stored, const CopyFly **out) {
    VEC(CopyFly) list = {0};
    take(m, stored);
    for (NodeId id = {0}; id.i < m->f->g->node.n; id.i++) {
        CopyFly fly = {id, on_the_fly_gain(m, id)};
        if (fly.gain)
            vec_push(m->arena, &list, fly);
    }
    if (list.n)
        qsort(list.at, list.n, sizeof *list.at, by_gain);
    *out = list.at;
    return list.n;
}

/* ---- the model ---- */

CopyModel *copies_model(Arena *arena, const Schedule *schedule) {
    CopyModel *m = ARENA_NEW(arena, CopyModel);
    PlanOptions *options = ARENA_NEW(arena, PlanOptions);
    *options = (PlanOptions){.planner = "auto", .replication = true};
    m->arena = arena;
    m->d =
        &attempt_new(arena, schedule, schedule->spec, options, NULL, NULL)->d;
    m->f = m->d->f;
    m->stored = ARENA_ARRAY(arena, Repl, schedule->graph->tensor.n + 1);
    volumes_find(m);
    groups_find(m);
    return m;
}

uint32_t copies_volumes(const CopyModel *m, const CopyVolume **out) {
    *out = m->volume.at;
    return m->volume.n;
}
