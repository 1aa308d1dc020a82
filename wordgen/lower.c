/* lower.c - from the graph to words, layer by layer; wordgen.h.
 *
 * First the way of each layer, its sizes and constants; then places in the
 * backing memory; then words, which know all addresses.
 */
#include "wordgen/inside.h"

#include "passes/legal.h"

#include <string.h>

/* ---- ways ---- */

static bool fault(Emitter *e, const Node *node) {
    diag_error(e->diag, node->loc, "layer \"%s\" (%s): %s", node->name,
               op_info[node->op].name, e->w.run.failed);
    diag_note(e->diag, e->w.run.at, "here");
    return false;
}

static bool wants_alike(HwOp op) {
    return op == HW_OP_ADD || op == HW_OP_MUL || op == HW_OP_MAX;
}

/* Volumes of one image, all of codes of one byte; of one shape, where the
 * operation is of such. */
static const char *unfit(const Emitter *e, const Node *node, HwOp op) {
    const Shape *out = &graph_tensor(e->g, node->out[0])->shape;
    uint32_t c, h, w;
    for (uint32_t k = 0; k < node->n_in + node->n_out; k++) {
        TensorId id = k < node->n_in ? node->in[k] : node->out[k - node->n_in];
        const Tensor *t = graph_tensor(e->g, id);
        if (t->quant.type == QUANT_NONE ||
            quant_type[t->quant.type].size != e->spec->element)
            return arena_printf(e->arena, "%s is not of codes of %u bytes",
                                t->name, e->spec->element);
        if (!wordgen_volume(&t->shape, &c, &h, &w))
            return arena_printf(e->arena, "%s has several images", t->name);
        if (wants_alike(op) && !shape_equal(&t->shape, out))
            return arena_printf(e->arena, "%s is not of the result's shape",
                                t->name);
    }
    return NULL;
}

/* Its sizes of the least cost; NULL, with the reason in *why, where it takes
 * the layer not at all. */
static const int64_t *try_way(Emitter *e, const EmitWay *way, int64_t *cost,
                              const char **why) {
    *why = writer_lacks(&e->w, way);
    if (e->w.run.failed || *why)
        return NULL;
    *why = arena_printf(e->arena, "%s: no size of tiles is within the limits",
                        way->name);
    return wordgen_choose(e, way, cost);
}

/* Of the ways that take the layer the first of the least cost. */
static bool find_way(Emitter *e, NodeId id) {
    const Node *node = graph_node(e->g, id);
    Work *work = &e->work[id.i];
    HwOp op = legal_op(e->g, id);
    int64_t least = INT64_MAX, cost;
    work->why = unfit(e, node, op);
    if (work->why)
        return true;
    work->why = arena_printf(e->arena, "no way for %s", hw_op_name[op]);
    if (op == HW_OP_HOST)
        return true;
    wordgen_facts(e, id, false);
    for (uint32_t i = 0; i < e->emit->n; i++) {
        const EmitWay *way = &e->emit->way[i];
        const int64_t *chosen =
            way->runs[op] ? try_way(e, way, &cost, &work->why) : NULL;
        if (e->w.run.failed)
            return fault(e, node);
        if (!chosen || (work->way && cost >= least))
            continue;
        work->way = way;
        work->chosen = chosen;
        least = cost;
    }
    if (work->way)
        work->why = NULL;
    return true;
}

static bool store_constants(Emitter *e, NodeId id) {
    Work *work = &e->work[id.i];
    wordgen_facts(e, id, true);
    if (wordgen_choice(e, work->way, work->chosen))
        work->stored = writer_constants(&e->w, work->way);
    return work->stored || fault(e, graph_node(e->g, id));
}

static bool prepare(Emitter *e) {
    for (uint32_t i = 0; i < e->g->node.n; i++) {
        const Node *node = &e->g->node.at[i];
        if (e->work[i].renames || node->op == OP_INPUT)
            continue;
        if (!find_way(e, (NodeId){i}) ||
            (e->work[i].way && !store_constants(e, (NodeId){i})))
            return false;
        arena_reset(e->scratch);
    }
    return true;
}

/* ---- words ---- */

static bool write_layer(Emitter *e, NodeId id) {
    const Node *node = graph_node(e->g, id);
    const Work *work = &e->work[id.i];
    e->w.loc = node->loc;
    wordgen_facts(e, id, false);
    writer_set_constants(&e->w, work->way, work->stored);
    return (wordgen_choice(e, work->way, work->chosen) &&
            template_call(&e->w.run, work->way->steps)) ||
           fault(e, node);
}

static void say_layer(Emitter *e, uint32_t i, EmitLayer *out) {
    const Work *work = &e->work[i];
    *out = (EmitLayer){.node = {i}, .first = e->w.node.n, .why = work->why};
    if (!work->way)
        return;
    EmitChosen *chosen =
        ARENA_ARRAY(e->arena, EmitChosen, work->way->n_choices + 1);
    for (uint32_t k = 0; k < work->way->n_choices; k++)
        chosen[k] = (EmitChosen){
            e->w.run.env.names->list.at[work->way->choice[k].name].name,
            work->chosen[k]};
    out->way = work->way->name;
    out->n_chosen = work->way->n_choices;
    out->chosen = chosen;
}

/* What the host does between words may change nothing that they hold, but a
 * list of words that follows begins anew. */
static const EmitLayer *write_layers(Emitter *e) {
    EmitLayer *out = ARENA_ARRAY(e->arena, EmitLayer, e->g->node.n + 1);
    for (uint32_t i = 0; i < e->g->node.n; i++) {
        say_layer(e, i, &out[i]);
        if (out[i].why)
            writer_forget(&e->w);
        if (out[i].way && !write_layer(e, (NodeId){i}))
            return NULL;
        out[i].n = e->w.node.n - out[i].first;
        arena_reset(e->scratch);
    }
    return out;
}

static const Program *program_of(Emitter *e) {
    Program *program = program_new(e->arena, e->spec);
    program->n_nodes = e->w.node.n;
    program->node = e->w.node.at;
    return program;
}

static const Emitted *finish(Emitter *e, uint64_t height) {
    Emitted *out = ARENA_NEW(e->arena, Emitted);
    const EmitLayer *layer = write_layers(e);
    if (!layer)
        return NULL;
    *out = (Emitted){.graph = e->g,
                     .program = program_of(e),
                     .layer = layer,
                     .place = e->place,
                     .layout = e->spec->memory[e->spec->backing].layout,
                     .spec = e->spec,
                     .image = ARENA_ARRAY(e->arena, uint8_t, height + 1),
                     .bytes = height,
                     .constants = e->w.constant.n};
    if (e->w.constant.n)
        memcpy(out->image + e->w.base, e->w.constant.at, e->w.constant.n);
    return out;
}

static const Emitted *run(Emitter *e, bool *no_fit) {
    uint64_t height;
    wordgen_homes(e);
    e->place = ARENA_ARRAY(e->arena, EmitPlace, e->g->tensor.n + 1);
    if (!prepare(e))
        return NULL;
    if (wordgen_place(e, &height))
        return finish(e, height);
    const HwMemory *m = &e->spec->memory[e->spec->backing];
    *no_fit = true;
    diag_error(e->diag, (Loc){0},
               "%s has %llu bytes: too few for %u bytes of constants and the "
               "volumes",
               m->name, (unsigned long long)m->size, e->w.constant.n);
    return NULL;
}

const Emitted *wordgen_network(Arena *arena, Diag *diag, const HwSpec *spec,
                               const Graph *graph, bool *no_fit) {
    Emitter e = {.arena = arena,
                 .diag = diag,
                 .spec = spec,
                 .emit = program_emit(spec),
                 .g = graph,
                 .work = ARENA_ARRAY(arena, Work, graph->node.n + 1)};
    *no_fit = false;
    if (!e.emit || spec->backing < 0 || !spec->memory[spec->backing].layout) {
        diag_error(diag, spec->loc,
                   "%s: words need a section `emit`, and a backing memory with "
                   "a layout",
                   spec->machine);
        return NULL;
    }
    writer_open(&e.w, arena, spec, graph);
    e.scratch = e.w.scratch;
    e.w.base = e.emit->first;
    const Emitted *out = run(&e, no_fit);
    arena_free(e.w.scratch);
    return out;
}

/* ---- values ---- */

typedef struct Walk {
    LayoutTables table;
    const EmitPlace *place;
    bool last; /* the last axis is c */
} Walk;

static Walk walk_of(Arena *arena, const Emitted *emitted, TensorId id) {
    const EmitPlace *p = &emitted->place[id.i];
    Volume volume = {p->c, p->h, p->w, {0}};
    return (Walk){layout_tables(arena, emitted->layout, &volume), p,
                  graph_tensor(emitted->graph, id)->shape.rank != 4};
}

static uint64_t byte_at(const Walk *w, uint64_t i) {
    const EmitPlace *p = w->place;
    uint64_t plane = (uint64_t)p->h * p->w;
    uint64_t c = w->last ? i % p->own_c : i / plane;
    uint64_t rest = w->last ? i / p->own_c : i % plane;
    return p->at + w->table.c_at[p->first + c] + w->table.h_at[rest / p->w] +
           w->table.w_at[rest % p->w];
}

void wordgen_store(const Emitted *emitted, TensorId tensor, const float *codes,
                   uint8_t *memory) {
    Arena *scratch = arena_new("wordgen_store");
    Walk w = walk_of(scratch, emitted, tensor);
    const Tensor *t = graph_tensor(emitted->graph, tensor);
    uint64_t n = shape_count(&t->shape);
    int32_t less = wordgen_less(emitted->spec, &t->quant);
    for (uint64_t i = 0; i < n; i++)
        memory[byte_at(&w, i)] = (uint8_t)((int32_t)codes[i] - less);
    arena_free(scratch);
}

void wordgen_load(const Emitted *emitted, TensorId tensor,
                  const uint8_t *memory, float *codes) {
    Arena *scratch = arena_new("wordgen_load");
    const Tensor *t = graph_tensor(emitted->graph, tensor);
    Walk w = walk_of(scratch, emitted, tensor);
    uint64_t n = shape_count(&t->shape);
    int32_t less = wordgen_less(emitted->spec, &t->quant);
    for (uint64_t i = 0; i < n; i++) {
        uint8_t byte = memory[byte_at(&w, i)];
        codes[i] = t->quant.type == QUANT_I8 || less
                       ? (float)((int8_t)byte + less)
                       : byte;
    }
    arena_free(scratch);
}
