/* writer.c - graphs on int8 codes as TensorFlow Lite models.
 *
 * In: a graph all of whose tensors are int8 or int16 codes. Out: the bytes of a
 * model. Volumes have their channels last: a tensor of rank 4, c x h x w here,
 * is h x w x c there; an input that the graph turns so itself stays as it is.
 */
#include "frontends/frontend.h"
#include "frontends/tflite/written.h"
#include "graph/quant.h"

#include <string.h>

enum { TFL_FLOAT = 0, TFL_INT32 = 2, TFL_INT16 = 7, TFL_INT8 = 9 };
enum { SAME = 0, VALID = 1 };

/* ---- tensors ---- */

static Shape channels_last(const Shape *s) {
    return s->rank == 4
               ? (Shape){4, {s->dim[0], s->dim[2], s->dim[3], s->dim[1]}}
               : *s;
}

static int32_t add_tensor(Writer *w, const OutTensor *tensor) {
    vec_push(w->arena, &w->tensor, *tensor);
    return (int32_t)w->tensor.n - 1;
}

static int32_t add_data(Writer *w, const void *data, size_t len) {
    vec_push(w->arena, &w->buffer, ((OutBuffer){data, len}));
    return (int32_t)w->buffer.n - 1;
}

/* A volume of this shape, as it is told, with the tensor's quantisation. */
static int32_t add_volume(Writer *w, TensorId t, const char *name,
                          Shape shape) {
    const Quant *q = &graph_tensor(w->g, t)->quant;
    float *scale = ARENA_NEW(w->arena, float);
    *scale = (float)q->scale;
    return add_tensor(
        w, &(OutTensor){.name = name,
                        .shape = shape,
                        .type = q->type == QUANT_I16 ? TFL_INT16 : TFL_INT8,
                        .n = 1,
                        .scale = scale,
                        .zero = q->zero});
}

static int32_t index_of(Writer *w, TensorId t) {
    const Tensor *tensor = graph_tensor(w->g, t);
    if (w->index[t.i] < 0)
        w->index[t.i] =
            add_volume(w, t, tensor->name, channels_last(&tensor->shape));
    return w->index[t.i];
}

static int32_t add_ints(Writer *w, const char *name, uint32_t n,
                        const int32_t *value) {
    int32_t *copy = ARENA_COPY(w->arena, int32_t, value, n);
    return add_tensor(w, &(OutTensor){.name = name,
                                      .shape = {1, {n}},
                                      .type = TFL_INT32,
                                      .buffer = add_data(w, copy, n * 4)});
}

/* ---- operators ---- */

static void add_op(Writer *w, TflKind kind, uint32_t n_in, const int32_t *in,
                   int32_t out, uint32_t n_options, const FlatField *option) {
    OutOp op = {.kind = kind, .n_in = n_in, .out = out, .n_options = n_options};
    if (n_in > 3)
        op.many = ARENA_COPY(w->arena, int32_t, in, n_in);
    else
        memcpy(op.in, in, n_in * sizeof *in);
    if (n_options)
        memcpy(op.option, option, n_options * sizeof *option);
    vec_push(w->arena, &w->op, op);
}

static void refuse(Writer *w, const Node *node) {
    diag_error(w->diag, node->loc,
               "layer \"%s\" (%s) cannot be written as TensorFlow Lite on int8",
               node->name, op_info[node->op].name);
    w->ok = false;
}

/* Fused activations by number; -1: none such. */
static int32_t fused(const Graph *g, const Node *node) {
    if (!quant_act_cuts(g, node) || node->act.kind == ACT_NONE)
        return 0;
    return node->act.kind == ACT_RELU    ? 1
           : node->act.kind == ACT_RELU6 ? 3
                                         : -1;
}

static int32_t turned(Writer *w, TensorId t, int32_t from, const char *suffix,
                      Shape shape, const int32_t perm[4]) {
    const char *name =
        arena_printf(w->arena, "%s/%s", graph_tensor(w->g, t)->name, suffix);
    int32_t out = add_volume(w, t, name, shape);
    const int32_t in[] = {
        from, add_ints(w, arena_printf(w->arena, "%s/perm", name), 4, perm)};
    add_op(w, TFLK_TRANSPOSE, 2, in, out, 0, NULL);
    return out;
}

/* A tensor with its elements in the order of the graph. */
static int32_t in_order(Writer *w, TensorId t) {
    const Shape *s = &graph_tensor(w->g, t)->shape;
    int32_t at = index_of(w, t);
    if (s->rank != 4 || s->dim[2] * s->dim[3] == 1 || s->dim[1] == 1)
        return at;
    return turned(w, t, at, "in_order", *s, (const int32_t[]){0, 3, 1, 2});
}

/* ---- weights ---- */

/* Codes of a constant with axes in another order, a tensor. */
static int32_t add_codes(Writer *w, const char *name, const Const *c,
                         const uint32_t *perm, int32_t axis) {
    Const turn = *c;
    turn.mul0 = turn.mul1 = NULL;
    uint64_t n = shape_count(&c->shape);
    double *value = ARENA_ARRAY(w->arena, double, n);
    size_t size = c->kind == CONST_I32 ? 4 : 1;
    uint8_t *raw = ARENA_ARRAY(w->arena, uint8_t, n * size);
    uint32_t scales = c->mul0 ? c->shape.dim[0] : 1;
    float *scale = ARENA_ARRAY(w->arena, float, scales);
    const_read_f64(&turn, value);
    Shape to = c->shape;
    uint64_t step[SHAPE_MAX_RANK], size_of = 1;
    for (uint32_t i = c->shape.rank; i-- > 0; size_of *= c->shape.dim[i])
        step[i] = size_of;
    for (uint32_t i = 0; perm && i < to.rank; i++)
        to.dim[i] = c->shape.dim[perm[i]];
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i, from = 0;
        for (uint32_t k = to.rank; k-- > 0; rest /= to.dim[k])
            from += rest % to.dim[k] * step[perm ? perm[k] : k];
        int32_t code = (int32_t)value[from];
        memcpy(raw + i * size, &code, size);
    }
    for (uint32_t i = 0; i < scales; i++)
        scale[i] = c->mul0 ? (float)c->mul0[i] : 1;
    return add_tensor(w, &(OutTensor){.name = name,
                                      .shape = to,
                                      .type = size == 4 ? TFL_INT32 : TFL_INT8,
                                      .buffer = add_data(w, raw, n * size),
                                      .axis = axis,
                                      .n = scales,
                                      .scale = scale});
}

static int32_t add_weight(Writer *w, const Node *node, ConstRole role,
                          const uint32_t *perm, int32_t axis) {
    ConstId id = node->constant[role];
    if (id.i == NONE)
        return -1;
    const char *name =
        arena_printf(w->arena, "%s/%s", graph_tensor(w->g, node->out[0])->name,
                     const_role_name[role]);
    return add_codes(w, name, graph_const(w->g, id), perm, axis);
}

static bool weights_fit(const Writer *w, const Node *node) {
    ConstId id = node->constant[CONST_WEIGHT];
    return id.i != NONE && graph_const(w->g, id)->kind == CONST_I8 &&
           !graph_const(w->g, id)->mul1 && !graph_const(w->g, id)->zero;
}

/* ---- layers ---- */

/* The least code of a tensor, which is never the largest of a window's. */
static int32_t add_least(Writer *w, TensorId t, const char *name) {
    int32_t at = add_volume(w, t, name, (Shape){1, {1}});
    bool wide = w->tensor.at[at].type == TFL_INT16;
    int16_t *least = ARENA_NEW(w->arena, int16_t);
    *least = INT16_MIN;
    if (!wide)
        memset(least, INT8_MIN, 1);
    w->tensor.at[at].shape = (Shape){0};
    w->tensor.at[at].buffer = add_data(w, least, wide ? 2 : 1);
    return at;
}

/* Padding as TensorFlow has it; else none, with codes of 0 around, or, of what
 * a maximum is taken of, the least. */
static int32_t padding(Writer *w, const Node *node, const uint32_t *kernel,
                       const uint32_t *stride, const uint32_t *dilation,
                       const uint32_t *pad, const uint32_t *pad_end,
                       int32_t *in) {
    bool max = node->op == OP_POOL && node->attr.pool.kind == POOL_MAX;
    uint32_t end[2];
    const Shape *s = &graph_tensor(w->g, node->in[0])->shape;
    const Shape *o = &graph_tensor(w->g, node->out[0])->shape;
    bool same = true, none = true;
    for (int i = 0; i < 2; i++) {
        uint32_t reach =
            (o->dim[2 + i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1;
        uint32_t all = reach > s->dim[2 + i] ? reach - s->dim[2 + i] : 0;
        same &= o->dim[2 + i] == (s->dim[2 + i] + stride[i] - 1) / stride[i] &&
                pad[i] == all / 2 &&
                (node->op == OP_POOL || pad[i] + pad_end[i] >= all);
        none &= !pad[i] && reach <= s->dim[2 + i];
        /* a pool's extent may be rounded up */
        end[i] = all > pad[i] + pad_end[i] ? all - pad[i] : pad_end[i];
    }
    if (none || same)
        return none ? VALID : SAME;
    const char *name = arena_printf(w->arena, "%s/padded",
                                    graph_tensor(w->g, node->out[0])->name);
    const int32_t pads[] = {0,
                            0,
                            (int32_t)pad[0],
                            (int32_t)end[0],
                            (int32_t)pad[1],
                            (int32_t)end[1],
                            0,
                            0};
    int32_t list =
        add_ints(w, arena_printf(w->arena, "%s/pads", name), 8, pads);
    w->tensor.at[list].shape = (Shape){2, {4, 2}};
    int32_t out = add_volume(w, node->in[0], name,
                             (Shape){4,
                                     {s->dim[0], s->dim[2] + pad[0] + end[0],
                                      s->dim[3] + pad[1] + end[1], s->dim[1]}});
    int32_t from[3] = {*in, list};
    if (max)
        from[2] =
            add_least(w, node->in[0], arena_printf(w->arena, "%s/by", name));
    add_op(w, max ? TFLK_PADV2 : TFLK_PAD, max ? 3 : 2, from, out, 0, NULL);
    *in = out;
    return VALID;
}

static void put_conv(Writer *w, const Node *node) {
    const ConvAttr *a = &node->attr.conv;
    const Shape *s = &graph_tensor(w->g, node->in[0])->shape;
    bool thin = a->groups > 1, whole_groups = a->groups == s->dim[1];
    int32_t act = fused(w->g, node), in[3] = {index_of(w, node->in[0])};
    if (act < 0 || !weights_fit(w, node) || (thin && !whole_groups)) {
        refuse(w, node);
        return;
    }
    int32_t pad = padding(w, node, a->kernel, a->stride, a->dilation, a->pad,
                          a->pad_end, &in[0]);
    in[1] = thin ? add_weight(w, node, CONST_WEIGHT,
                              (const uint32_t[]){1, 2, 3, 0}, 3)
                 : add_weight(w, node, CONST_WEIGHT,
                              (const uint32_t[]){0, 2, 3, 1}, 0);
    in[2] = add_weight(w, node, CONST_BIAS, NULL, 0);
    uint32_t n_in = in[2] < 0 ? 2 : 3;
    int32_t out = index_of(w, node->out[0]);
    FlatField x = flat_whole((int32_t)a->stride[1]),
              y = flat_whole((int32_t)a->stride[0]);
    FlatField dx = flat_whole((int32_t)a->dilation[1]);
    FlatField dy = flat_whole((int32_t)a->dilation[0]);
    if (thin)
        add_op(w, TFLK_DEPTHWISE, n_in, in, out, 7,
               (const FlatField[]){flat_byte(pad), x, y,
                                   flat_whole((int32_t)(a->out_c / a->groups)),
                                   flat_byte(act), dx, dy});
    else
        add_op(
            w, TFLK_CONV, n_in, in, out, 6,
            (const FlatField[]){flat_byte(pad), x, y, flat_byte(act), dx, dy});
}

static void put_fc(Writer *w, const Node *node) {
    int32_t act = fused(w->g, node);
    const Shape *s = &graph_tensor(w->g, node->in[0])->shape;
    if (act < 0 || !weights_fit(w, node)) {
        refuse(w, node);
        return;
    }
    int32_t in[3] = {in_order(w, node->in[0])};
    if (s->rank != 2) {
        uint32_t each = (uint32_t)(shape_count(s) / s->dim[0]);
        int32_t flat =
            add_volume(w, node->in[0],
                       arena_printf(w->arena, "%s/flat",
                                    graph_tensor(w->g, node->out[0])->name),
                       (Shape){2, {s->dim[0], each}});
        const int32_t dims[] = {(int32_t)s->dim[0], (int32_t)each};
        const int32_t from[] = {in[0], add_ints(w, "dims", 2, dims)};
        add_op(w, TFLK_RESHAPE, 2, from, flat, 0, NULL);
        in[0] = flat;
    }
    in[1] = add_weight(w, node, CONST_WEIGHT, NULL, 0);
    in[2] = add_weight(w, node, CONST_BIAS, NULL, 0);
    add_op(w, TFLK_FULLY_CONNECTED, in[2] < 0 ? 2 : 3, in,
           index_of(w, node->out[0]), 3,
           (const FlatField[]){flat_byte(act), flat_byte(0), flat_byte(0)});
}

static void put_pool(Writer *w, const Node *node) {
    const PoolAttr *a = &node->attr.pool;
    int32_t in = index_of(w, node->in[0]), act = fused(w->g, node);
    bool max = a->kind == POOL_MAX;
    static const uint32_t one[2] = {1, 1};
    if (a->global && !max) {
        const int32_t axes[] = {1, 2};
        const int32_t from[] = {in, add_ints(w, "axes", 2, axes)};
        add_op(w, TFLK_MEAN, 2, from, index_of(w, node->out[0]), 1,
               (const FlatField[]){flat_byte(1)});
        return;
    }
    int32_t before = in;
    int32_t pad =
        padding(w, node, a->kernel, a->stride, one, a->pad, a->pad_end, &in);
    if (act < 0 || (!max && (in != before || (a->count_pad && pad == SAME)))) {
        refuse(w, node); /* a mean counts what is padded, or does not */
        return;
    }
    add_op(
        w, max ? TFLK_MAX_POOL : TFLK_AVERAGE_POOL, 1, &in,
        index_of(w, node->out[0]), 6,
        (const FlatField[]){flat_byte(pad), flat_whole((int32_t)a->stride[1]),
                            flat_whole((int32_t)a->stride[0]),
                            flat_whole((int32_t)a->kernel[1]),
                            flat_whole((int32_t)a->kernel[0]), flat_byte(act)});
}

static void put_elt(Writer *w, const Node *node) {
    int32_t act = fused(w->g, node);
    TflKind kind = node->attr.elt.kind == ELT_ADD   ? TFLK_ADD
                   : node->attr.elt.kind == ELT_SUB ? TFLK_SUB
                   : node->attr.elt.kind == ELT_MUL ? TFLK_MUL
                                                    : TFLK_COUNT;
    if (act < 0 || kind == TFLK_COUNT || node->n_in != 2 ||
        node->attr.elt.coeff) {
        refuse(w, node);
        return;
    }
    const int32_t in[] = {index_of(w, node->in[0]), index_of(w, node->in[1])};
    add_op(w, kind, 2, in, index_of(w, node->out[0]), 1,
           (const FlatField[]){flat_byte(act)});
}

static void put_concat(Writer *w, const Node *node) {
    static const int32_t last[] = {0, 3, 1, 2};
    const Shape *s = &graph_tensor(w->g, node->out[0])->shape;
    int32_t *in = ARENA_ARRAY(w->arena, int32_t, node->n_in);
    uint32_t axis = node->attr.axis.axis;
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = index_of(w, node->in[k]);
    add_op(w, TFLK_CONCAT, node->n_in, in, index_of(w, node->out[0]), 2,
           (const FlatField[]){
               flat_whole(s->rank == 4 ? last[axis] : (int32_t)axis),
               flat_byte(0)});
}

static void put_softmax(Writer *w, const Node *node) {
    const Shape *s = &graph_tensor(w->g, node->in[0])->shape;
    int32_t in = index_of(w, node->in[0]);
    uint32_t channels = s->rank == 4 ? 1 : s->rank - 1;
    if (node->attr.axis.axis != channels) {
        refuse(w, node);
        return;
    }
    add_op(w, TFLK_SOFTMAX, 1, &in, index_of(w, node->out[0]), 1,
           (const FlatField[]){{.kind = FLAT_F32, .real = 1}});
}

static void put_act(Writer *w, const Node *node) {
    int32_t in = index_of(w, node->in[0]);
    TflKind kind = node->act.kind == ACT_RELU      ? TFLK_RELU
                   : node->act.kind == ACT_RELU6   ? TFLK_RELU6
                   : node->act.kind == ACT_SIGMOID ? TFLK_LOGISTIC
                   : node->act.kind == ACT_TANH    ? TFLK_TANH
                                                   : TFLK_COUNT;
    if (kind == TFLK_COUNT)
        refuse(w, node);
    else
        add_op(w, kind, 1, &in, index_of(w, node->out[0]), 0, NULL);
}

static void put_reshape(Writer *w, const Node *node) {
    const Shape *s = &graph_tensor(w->g, node->out[0])->shape;
    int32_t dim[SHAPE_MAX_RANK], from[2] = {in_order(w, node->in[0])};
    for (uint32_t i = 0; i < s->rank; i++)
        dim[i] = (int32_t)s->dim[i];
    from[1] = add_ints(w, "dims", s->rank, dim);
    if (s->rank != 4) {
        add_op(w, TFLK_RESHAPE, 2, from, index_of(w, node->out[0]), 0, NULL);
        return;
    }
    const char *name = arena_printf(w->arena, "%s/reshaped",
                                    graph_tensor(w->g, node->out[0])->name);
    int32_t plain = add_volume(w, node->out[0], name, *s);
    add_op(w, TFLK_RESHAPE, 2, from, plain, 0, NULL);
    const int32_t perm[] = {0, 2, 3, 1};
    const int32_t in[] = {plain, add_ints(w, "perm", 4, perm)};
    add_op(w, TFLK_TRANSPOSE, 2, in, index_of(w, node->out[0]), 0, NULL);
}

static bool turns_input(const Graph *g, const Node *node) {
    static const uint32_t perm[] = {0, 3, 1, 2};
    const Shape *p = &node->attr.perm;
    return node->op == OP_TRANSPOSE && p->rank == 4 &&
           !memcmp(p->dim, perm, sizeof perm) &&
           graph_node(g, graph_tensor(g, node->in[0])->producer)->op ==
               OP_INPUT;
}

static void put_transpose(Writer *w, const Node *node) {
    static const uint32_t axis[] = {0, 2, 3, 1}, back[] = {0, 3, 1, 2};
    int32_t perm[4];
    if (turns_input(w->g, node)) { /* the same tensor there */
        w->index[node->out[0].i] = index_of(w, node->in[0]);
        return;
    }
    if (node->attr.perm.rank != 4) {
        refuse(w, node);
        return;
    }
    for (int i = 0; i < 4; i++)
        perm[i] = (int32_t)back[node->attr.perm.dim[axis[i]]];
    const int32_t in[] = {index_of(w, node->in[0]),
                          add_ints(w, "perm", 4, perm)};
    add_op(w, TFLK_TRANSPOSE, 2, in, index_of(w, node->out[0]), 0, NULL);
}

/* An input that all its readers turn is as it is told. */
static void put_input(Writer *w, const Node *node, const Uses *uses) {
    uint32_t t = node->out[0].i;
    bool all = uses->start[t] < uses->start[t + 1];
    for (uint32_t i = uses->start[t]; i < uses->start[t + 1]; i++)
        all &= turns_input(w->g, graph_node(w->g, uses->node[i]));
    const Tensor *tensor = graph_tensor(w->g, node->out[0]);
    w->index[t] =
        add_volume(w, node->out[0], tensor->name,
                   all ? tensor->shape : channels_last(&tensor->shape));
    for (uint32_t i = uses->start[t]; !all && i < uses->start[t + 1]; i++)
        if (turns_input(w->g, graph_node(w->g, uses->node[i])))
            refuse(w, node);
}

static void put_node(Writer *w, const Node *node, const Uses *uses) {
    switch (node->op) {
    case OP_INPUT:
        put_input(w, node, uses);
        break;
    case OP_CONV:
        put_conv(w, node);
        break;
    case OP_FC:
        put_fc(w, node);
        break;
    case OP_POOL:
        put_pool(w, node);
        break;
    case OP_ELTWISE:
        put_elt(w, node);
        break;
    case OP_CONCAT:
        put_concat(w, node);
        break;
    case OP_SOFTMAX:
        put_softmax(w, node);
        break;
    case OP_ACT:
        put_act(w, node);
        break;
    case OP_RESHAPE:
        put_reshape(w, node);
        break;
    case OP_TRANSPOSE:
        put_transpose(w, node);
        break;
    default:
        refuse(w, node);
    }
}

/* ---- the whole ---- */

bool graph_to_tflite(Arena *arena, Diag *diag, const Graph *g, Text *out) {
    Arena *scratch = arena_new("graph_to_tflite");
    Writer w = {.arena = scratch, .diag = diag, .g = g, .ok = true};
    Uses uses = graph_uses(scratch, g);
    w.index = ARENA_ARRAY(scratch, int32_t, g->tensor.n);
    memset(w.index, 0xff, g->tensor.n * sizeof *w.index);
    add_data(&w, NULL, 0); /* buffer 0 is none */
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        QuantType type = graph_tensor(g, node->out[0])->quant.type;
        bool codes = type == QUANT_I8 || type == QUANT_I16;
        if (codes && node->n_out == 1)
            put_node(&w, node, &uses);
        else
            refuse(&w, node);
    }
    *out = text_new(arena);
    if (w.ok)
        tfl_put_model(&w, out);
    bool ok = w.ok;
    arena_free(scratch);
    return ok;
}
