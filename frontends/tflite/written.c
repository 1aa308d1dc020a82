/* written.c - a TensorFlow Lite model as bytes; see written.h. */
#include "frontends/tflite/written.h"

static const struct {
    int32_t number, table, version;
} kinds[TFLK_COUNT] = {
#define KIND(NAME, number, table, version)                                     \
    [TFLK_##NAME] = {number, table, version},
    TFL_OPS
#undef KIND
};

static size_t put_shape(Text *to, const Shape *s) {
    return flat_put_vector(to, s->rank, 4, 4, s->dim);
}

static size_t put_tensor(Writer *w, Text *to, const OutTensor *t) {
    FlatField field[] = {{.kind = FLAT_REF},
                         flat_byte(t->type),
                         flat_whole(t->buffer),
                         {.kind = FLAT_REF},
                         {.kind = t->n ? FLAT_REF : FLAT_ABSENT}};
    size_t at = flat_put_table(to, 5, field);
    flat_refer(to, field[0].place, put_shape(to, &t->shape));
    flat_refer(to, field[3].place, flat_put_string(to, t->name));
    if (!t->n)
        return at;
    FlatField quant[7] = {[2] = {.kind = FLAT_REF},
                          [3] = {.kind = FLAT_REF},
                          [6] = flat_whole(t->axis)};
    int64_t *zero = ARENA_ARRAY(w->arena, int64_t, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        zero[i] = t->zero;
    flat_refer(to, field[4].place, flat_put_table(to, 7, quant));
    flat_refer(to, quant[2].place, flat_put_vector(to, t->n, 4, 4, t->scale));
    flat_refer(to, quant[3].place, flat_put_vector(to, t->n, 8, 8, zero));
    return at;
}

static size_t put_op(Text *to, OutOp *op) {
    bool options = kinds[op->kind].table && op->n_options;
    FlatField field[] = {flat_whole((int32_t)op->kind),
                         {.kind = FLAT_REF},
                         {.kind = FLAT_REF},
                         flat_byte(options ? kinds[op->kind].table : 0),
                         {.kind = options ? FLAT_REF : FLAT_ABSENT}};
    size_t at = flat_put_table(to, 5, field);
    flat_refer(
        to, field[1].place,
        flat_put_vector(to, op->n_in, 4, 4, op->many ? op->many : op->in));
    flat_refer(to, field[2].place, flat_put_vector(to, 1, 4, 4, &op->out));
    if (options)
        flat_refer(to, field[4].place,
                   flat_put_table(to, op->n_options, op->option));
    return at;
}

static size_t put_graph(Writer *w, Text *to) {
    FlatField field[] = {{.kind = FLAT_REF},
                         {.kind = FLAT_REF},
                         {.kind = FLAT_REF},
                         {.kind = FLAT_REF},
                         {.kind = FLAT_REF}};
    VEC(int32_t) in = {0}, out = {0};
    for (uint32_t i = 0; i < w->g->node.n; i++)
        if (w->g->node.at[i].op == OP_INPUT)
            vec_push(w->arena, &in, w->index[w->g->node.at[i].out[0].i]);
    for (uint32_t i = 0; i < w->g->output.n; i++)
        vec_push(w->arena, &out, w->index[w->g->output.at[i].i]);
    size_t at = flat_put_table(to, 5, field);
    size_t list = flat_put_refs(to, w->tensor.n);
    flat_refer(to, field[0].place, list);
    for (uint32_t i = 0; i < w->tensor.n; i++)
        flat_refer(to, list + 4 + 4 * i, put_tensor(w, to, &w->tensor.at[i]));
    flat_refer(to, field[1].place, flat_put_vector(to, in.n, 4, 4, in.at));
    flat_refer(to, field[2].place, flat_put_vector(to, out.n, 4, 4, out.at));
    list = flat_put_refs(to, w->op.n);
    flat_refer(to, field[3].place, list);
    for (uint32_t i = 0; i < w->op.n; i++)
        flat_refer(to, list + 4 + 4 * i, put_op(to, &w->op.at[i]));
    flat_refer(to, field[4].place, flat_put_string(to, w->g->name));
    return at;
}

void tfl_put_model(Writer *w, Text *to) {
    FlatField field[] = {flat_whole(3),
                         {.kind = FLAT_REF},
                         {.kind = FLAT_REF},
                         {.kind = FLAT_REF},
                         {.kind = FLAT_REF}};
    text_add_n(to, "\0\0\0\0TFL3", 8);
    flat_refer(to, 0, flat_put_table(to, 5, field));
    size_t list = flat_put_refs(to, TFLK_COUNT);
    flat_refer(to, field[1].place, list);
    for (uint32_t i = 0; i < TFLK_COUNT; i++) {
        FlatField code[] = {flat_byte(kinds[i].number),
                            {.kind = FLAT_ABSENT},
                            flat_whole(kinds[i].version),
                            flat_whole(kinds[i].number)};
        flat_refer(to, list + 4 + 4 * i, flat_put_table(to, 4, code));
    }
    list = flat_put_refs(to, 1);
    flat_refer(to, field[2].place, list);
    flat_refer(to, list + 4, put_graph(w, to));
    flat_refer(to, field[3].place, flat_put_string(to, "amphora"));
    list = flat_put_refs(to, w->buffer.n);
    flat_refer(to, field[4].place, list);
    for (uint32_t i = 0; i < w->buffer.n; i++) {
        const OutBuffer *b = &w->buffer.at[i];
        FlatField data[] = {{.kind = b->data ? FLAT_REF : FLAT_ABSENT}};
        flat_refer(to, list + 4 + 4 * i, flat_put_table(to, 1, data));
        if (b->data)
            flat_refer(to, data[0].place,
                       flat_put_vector(to, (uint32_t)b->len, 1, 16, b->data));
    }
}
