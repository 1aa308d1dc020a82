/* bands_build.c - a region as bands in the graph; bands.h. */
#include "passes/bands.h"

typedef struct Builder {
    Bands *b;
    const Region *r;
    Insertions *insertions;
    TensorId *now; /* by tensor before the pass: in the band in hand */
    uint32_t row;  /* of the result, where the band begins */
} Builder;

/* A node like `like`, right before the last of the region. */
static TensorId add(Builder *x, const Node *like, const char *name,
                    uint32_t n_in, const TensorId *in, const Quant *quant) {
    Graph *g = x->b->g;
    NodeId id = graph_add(g, like->op, name, like->loc, n_in, in);
    Node *node = graph_node(g, id);
    node->attr = like->attr;
    node->act = like->act;
    node->no_bias = like->no_bias;
    for (int r = 0; r < CONST_ROLES; r++)
        node->constant[r] = like->constant[r];
    TensorId out = graph_add_output(g, id, name);
    graph_tensor(g, out)->quant = *quant;
    if (!graph_infer(g, id, x->b->context->diag))
        bug("pass bands: no shape for %s", name);
    insert_before(x->b->context->scratch, x->insertions, id,
                  (NodeId){x->r->last});
    return out;
}

static const char *band_name(const Builder *x, const char *of) {
    return arena_printf(x->b->g->arena, "%s__%s%u", of,
                        x->r->axis ? "column" : "row", x->row);
}

/* Rows [begin, end) of a tensor that has `has`; itself, if these are all. */
static TensorId cut(Builder *x, TensorId from, uint32_t begin, uint32_t end,
                    const char *what) {
    Graph *g = x->b->g;
    const Tensor *t = graph_tensor(g, from);
    uint32_t axis = 2 + (uint32_t)x->r->axis;
    if (!begin && end == t->shape.dim[axis])
        return from;
    const Quant quant = t->quant;
    Node slice = {.op = OP_SLICE,
                  .loc = g->node.at[x->r->last].loc,
                  .attr = {.slice = {axis, begin, end}}};
    for (int r = 0; r < CONST_ROLES; r++)
        slice.constant[r] = NO_CONST;
    return add(x, &slice,
               arena_printf(g->arena, "%s__%s", band_name(x, t->name), what), 1,
               &from, &quant);
}

static TensorId add_band(Builder *x, uint32_t begin, uint32_t end) {
    Graph *g = x->b->g;
    const Region *r = x->r;
    const Rows *rows = x->b->rows;
    x->row = begin;
    x->now[r->in.i] =
        cut(x, r->in, rows[r->in.i].begin, rows[r->in.i].end, "read");
    for (uint32_t j = r->first; j <= r->last; j++) {
        const Node like = g->node.at[j];
        const Quant quant = graph_tensor(g, like.out[0])->quant;
        TensorId *in = ARENA_ARRAY(x->b->context->scratch, TensorId, like.n_in);
        for (uint32_t k = 0; k < like.n_in; k++)
            in[k] = x->now[like.in[k].i];
        x->now[like.out[0].i] =
            add(x, &like, band_name(x, like.name), like.n_in, in, &quant);
    }
    uint32_t first = rows[r->out.i].begin;
    return cut(x, x->now[r->out.i], begin - first, end - first, "made");
}

void bands_build(Bands *b, Insertions *insertions, const Region *r) {
    Graph *g = b->g;
    Builder x = {.b = b,
                 .r = r,
                 .insertions = insertions,
                 .now =
                     ARENA_ARRAY(b->context->scratch, TensorId, g->tensor.n)};
    TensorId part[BANDS_MOST];
    uint32_t n = 0,
             whole = graph_tensor(g, r->out)->shape.dim[2 + (uint32_t)r->axis];
    const Quant quant = graph_tensor(g, r->out)->quant;
    for (uint32_t begin = 0; begin < whole; begin += r->each) {
        uint32_t end = begin + r->each < whole ? begin + r->each : whole;
        if (!bands_rows(b, r, begin, end))
            bug("pass bands: no rows for a band that had some");
        part[n++] = add_band(&x, begin, end);
    }
    Node concat = {.op = OP_CONCAT, .loc = g->node.at[r->last].loc};
    concat.attr.axis.axis = 2 + (uint32_t)r->axis;
    for (int role = 0; role < CONST_ROLES; role++)
        concat.constant[role] = NO_CONST;
    const char *name =
        arena_printf(g->arena, "%s__bands", g->node.at[r->last].name);
    graph_take_over(g, add(&x, &concat, name, n, part, &quant), r->out);
    graph_gloss(g, "X__rowN is X for rows from N on, X__rowN__read and "
                   "X__rowN__made are rows cut from X; X__bands puts such rows "
                   "together; X__columnN likewise");
}
