/* homes.c - which tensors are bytes of others, and where all of them lie.
 *
 * A concat's members are channels of its result, a slice of channels is part of
 * its operand, and a result that has the operand's bytes in the operand's order
 * is the operand. What is left is placed by live ranges.
 */
#include "wordgen/inside.h"

#include "graph/quant.h"
#include "pack/pack.h"
#include "pack/packers.h"

bool wordgen_volume(const Shape *shape, uint32_t *c, uint32_t *h, uint32_t *w) {
    uint32_t rank = shape->rank;
    if (rank == 4) {
        shape_chw(shape, c, h, w);
        *c = shape->dim[1];
        return shape->dim[0] == 1;
    }
    *c = rank ? shape->dim[rank - 1] : 1;
    *h = *w = 1;
    for (uint32_t i = 0; i + 1 < rank; i++)
        *w *= shape->dim[i];
    return true;
}

TensorId wordgen_whole(const Emitter *e, TensorId tensor, uint32_t *first) {
    *first = 0;
    while (e->home[tensor.i].whole.i != NONE) {
        *first += e->home[tensor.i].first;
        tensor = e->home[tensor.i].whole;
    }
    return tensor;
}

/* Whose bytes they are in the end. */
static TensorId root_of(const Emitter *e, TensorId tensor) {
    for (;;) {
        const Home *home = &e->home[tensor.i];
        if (home->whole.i == NONE && home->same.i == NONE)
            return tensor;
        tensor = home->whole.i != NONE ? home->whole : home->same;
    }
}

static bool is_codes(const Emitter *e, TensorId t) {
    return graph_tensor(e->g, t)->quant.type != QUANT_NONE;
}

static bool is_free(const Emitter *e, TensorId t) {
    return e->home[t.i].whole.i == NONE && e->home[t.i].same.i == NONE;
}

static bool same_quant(const Emitter *e, TensorId a, TensorId b) {
    return is_codes(e, a) && quant_equal(&graph_tensor(e->g, a)->quant,
                                         &graph_tensor(e->g, b)->quant);
}

/* ---- concats ---- */

static bool joins(const Emitter *e, const Node *node) {
    const Shape *shape = &graph_tensor(e->g, node->out[0])->shape;
    if (node->op != OP_CONCAT || node->attr.axis.axis != 1 ||
        shape->rank != 4 || node->act.kind != ACT_NONE)
        return false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        if (!is_free(e, node->in[k]) ||
            !same_quant(e, node->in[k], node->out[0]))
            return false;
        for (uint32_t j = 0; j < k; j++)
            if (same_tensor(node->in[j], node->in[k]))
                return false;
    }
    return true;
}

static void join(Emitter *e, const Node *node) {
    uint32_t first = 0;
    for (uint32_t k = 0; k < node->n_in; k++) {
        Home *part = &e->home[node->in[k].i];
        part->whole = node->out[0];
        part->first = first;
        first += part->c;
    }
}

/* ---- the same bytes ---- */

/* The operand's element, by the result's. */
static uint64_t source(const Node *node, const Shape *in, const Shape *out,
                       uint64_t i) {
    uint64_t index[SHAPE_MAX_RANK], at = 0;
    if (node->op != OP_TRANSPOSE)
        return i;
    for (uint32_t k = out->rank; k-- > 0; i /= out->dim[k])
        index[node->attr.perm.dim[k]] = i % out->dim[k];
    for (uint32_t k = 0; k < in->rank; k++)
        at = at * in->dim[k] + index[k];
    return at;
}

typedef struct Bytes {
    bool last; /* the last axis is c */
    uint32_t c, h, w;
    LayoutTables table;
} Bytes;

static Bytes bytes_of(Arena *arena, const Layout *layout, const Shape *shape) {
    Bytes b = {.last = shape->rank != 4};
    wordgen_volume(shape, &b.c, &b.h, &b.w);
    Volume volume = {b.c, b.h, b.w, {0}};
    b.table = layout_tables(arena, layout, &volume);
    return b;
}

static uint64_t byte_of(const Bytes *b, uint64_t i) {
    uint64_t c = b->last ? i % b->c : i / ((uint64_t)b->h * b->w);
    uint64_t rest = b->last ? i / b->c : i % ((uint64_t)b->h * b->w);
    return b->table.c_at[c] + b->table.h_at[rest / b->w] +
           b->table.w_at[rest % b->w];
}

bool wordgen_renames(const Emitter *e, const Node *node) {
    bool moves = node->op == OP_IDENTITY || node->op == OP_RESHAPE ||
                 node->op == OP_TRANSPOSE || node->op == OP_ACT;
    if (!moves || node->n_out != 1 ||
        !same_quant(e, node->in[0], node->out[0]) || quant_act_cuts(e->g, node))
        return false;
    const Shape *in = &graph_tensor(e->g, node->in[0])->shape;
    const Shape *out = &graph_tensor(e->g, node->out[0])->shape;
    const Layout *layout = e->spec->memory[e->spec->backing].layout;
    Arena *scratch = arena_new("renames");
    Bytes a = bytes_of(scratch, layout, in), b = bytes_of(scratch, layout, out);
    uint64_t n = shape_count(out);
    bool same = n == shape_count(in);
    for (uint64_t i = 0; i < n && same; i++)
        same = byte_of(&a, source(node, in, out, i)) == byte_of(&b, i);
    arena_free(scratch);
    return same;
}

/* The operand's home, where that can be. */
static bool take_over(Emitter *e, const Node *node) {
    Home *in = &e->home[node->in[0].i], *out = &e->home[node->out[0].i];
    if (!is_free(e, node->out[0]) || !wordgen_renames(e, node))
        return false;
    if (in->c == out->c && in->h == out->h && in->w == out->w)
        out->whole = node->in[0];
    else if (in->whole.i == NONE)
        out->same = node->in[0];
    return !is_free(e, node->out[0]);
}

static bool cut(Emitter *e, const Node *node) {
    const Shape *shape = &graph_tensor(e->g, node->in[0])->shape;
    if (node->op != OP_SLICE || node->attr.slice.axis != 1 ||
        shape->rank != 4 || !is_free(e, node->out[0]) ||
        !same_quant(e, node->in[0], node->out[0]) || quant_act_cuts(e->g, node))
        return false;
    e->home[node->out[0].i].whole = node->in[0];
    e->home[node->out[0].i].first = node->attr.slice.begin;
    return true;
}

void wordgen_homes(Emitter *e) {
    e->home = ARENA_ARRAY(e->arena, Home, e->g->tensor.n + 1);
    for (uint32_t i = 0; i < e->g->tensor.n; i++) {
        Home *home = &e->home[i];
        *home = (Home){.whole = NO_TENSOR, .same = NO_TENSOR};
        wordgen_volume(&e->g->tensor.at[i].shape, &home->c, &home->h, &home->w);
    }
    for (uint32_t i = 0; i < e->g->node.n; i++) {
        const Node *node = &e->g->node.at[i];
        e->work[i].renames = joins(e, node);
        if (e->work[i].renames)
            join(e, node);
    }
    for (uint32_t i = 0; i < e->g->node.n; i++) {
        const Node *node = &e->g->node.at[i];
        if (node->n_in == 1)
            e->work[i].renames |= take_over(e, node) || cut(e, node);
    }
}

/* ---- places ---- */

static void lengthen(Buffer *buf, uint32_t step) {
    buf->first = step < buf->first ? step : buf->first;
    buf->end = step + 1 > buf->end ? step + 1 : buf->end;
}

/* By tensor, those that are roots: from the node that makes the first of its
 * bytes to the last that reads any. */
static void live(const Emitter *e, Buffer *buf) {
    const Graph *g = e->g;
    const Layout *layout = e->spec->memory[e->spec->backing].layout;
    for (uint32_t i = 0; i < g->tensor.n; i++) {
        const Home *home = &e->home[i];
        Volume v = {home->c, home->h, home->w, {0}};
        TensorId root = root_of(e, (TensorId){i});
        bool own = root.i == i && is_codes(e, root);
        buf[i] = (Buffer){.first = UINT32_MAX,
                          .bytes = {own ? layout_bytes(layout, &v) : 0},
                          .pin_pool = -1,
                          .hint = PACK_NO_HINT};
    }
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        for (uint32_t k = 0; k < node->n_in; k++)
            lengthen(&buf[root_of(e, node->in[k]).i], i);
        for (uint32_t k = 0; k < node->n_out; k++)
            lengthen(&buf[root_of(e, node->out[k]).i],
                     node->op == OP_INPUT ? 0 : i);
    }
    for (uint32_t i = 0; i < g->output.n; i++)
        lengthen(&buf[root_of(e, g->output.at[i]).i], g->node.n);
}

static void place_all(Emitter *e, const uint64_t *offset, uint64_t from) {
    e->place = ARENA_ARRAY(e->arena, EmitPlace, e->g->tensor.n + 1);
    for (uint32_t i = 0; i < e->g->tensor.n; i++) {
        TensorId id = {i};
        uint32_t first;
        const Home *whole = &e->home[wordgen_whole(e, id, &first).i];
        e->place[i] = (EmitPlace){.there = is_codes(e, id),
                                  .at = from + offset[root_of(e, id).i],
                                  .first = first,
                                  .c = whole->c,
                                  .h = whole->h,
                                  .w = whole->w,
                                  .own_c = e->home[i].c};
    }
}

bool wordgen_place(Emitter *e, uint64_t *height) {
    const HwMemory *m = &e->spec->memory[e->spec->backing];
    uint32_t align = m->align ? m->align : 1;
    uint64_t from = e->w.base + e->w.constant.n;
    from = (from + align - 1) / align * align;
    Buffer *buf = ARENA_ARRAY(e->scratch, Buffer, e->g->tensor.n + 1);
    PackResult result = {.status = PACK_FAILS};
    const char *used;
    live(e, buf);
    PackProblem problem = {
        .n_pools = 1,
        .n_bufs = e->g->tensor.n,
        .pool = {{.size = from < m->size ? m->size - from : 0, .align = align}},
        .buf = buf,
        .seed = 1};
    if (from < m->size)
        pack_memory(e->scratch, &problem, "auto", true, &result, &used);
    if (result.status != PACK_FITS)
        return false;
    place_all(e, result.offset, from);
    *height = from + result.height[0];
    return true;
}
