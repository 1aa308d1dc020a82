/* codes.c - QuantizeLinear, DequantizeLinear, and values that are codes; see
 * onnx.h.
 *
 * A quantised tensor of the graph stands for real numbers. In a model it is
 * two values: the codes that QuantizeLinear gives, and the numbers that
 * DequantizeLinear makes of them; both are the same tensor, and OnnxValue.codes
 * says which of the two a value means. Operators that only move elements are
 * built on the numbers and give codes again (onnx_on_codes); any other that
 * reads codes gets them as numbers of their own (`plain`).
 *
 * Scales and zeros that are not constant, or lie along an axis of a tensor that
 * is none, are arithmetic on floats that are whole numbers.
 */
#include "frontends/net/net.h"
#include "frontends/onnx/onnx.h"
#include "graph/quant.h"

#include <math.h>
#include <string.h>

static const struct {
    QuantType type; /* of tensors */
    ConstKind kind; /* of constants */
    bool is;
    double lo, hi;
} code_types[ONNX_TYPES] = {
    [ONNX_UINT8] = {QUANT_U8, CONST_U8, true, 0, UINT8_MAX},
    [ONNX_INT8] = {QUANT_I8, CONST_I8, true, INT8_MIN, INT8_MAX},
    [ONNX_UINT16] = {QUANT_NONE, CONST_I32, true, 0, UINT16_MAX},
    [ONNX_INT16] = {QUANT_I16, CONST_I16, true, INT16_MIN, INT16_MAX},
    [ONNX_INT32] = {QUANT_NONE, CONST_I32, true, INT32_MIN, INT32_MAX},
};

/* ---- scales and zeros ---- */

/* Of one tensor: for all of it, along an axis, or by blocks along an axis. */
typedef struct Scales {
    const double *scale, *zero; /* zero NULL: 0 */
    uint64_t n_scales, n_zeros;
    uint32_t axis;
    uint64_t size, inner, block; /* of the axis; behind it; 1: no blocks */
} Scales;

/* Values of a constant that has one element, one an index of the axis, or, with
 * blocks, one a block; NULL without an error where it is none of these. */
static const double *scales_of(Onnx *x, const OnnxValue *value, const Shape *in,
                               const Scales *s, uint64_t *n) {
    *n = shape_count(&value->shape);
    bool fits = *n == 1 || (s->block == 1 && *n == s->size);
    if (s->block > 1 && value->shape.rank == in->rank) {
        Shape blocks = *in;
        blocks.dim[s->axis] = (uint32_t)((s->size + s->block - 1) / s->block);
        fits = shape_equal(&blocks, &value->shape);
    }
    return value->state == ONNX_CONST && fits ? onnx_numbers(x, value) : NULL;
}

static int64_t axis_of(Onnx *x, const OnnxNode *n) {
    return n->has_axis ? n->axis : onnx_int(x, n, "axis", 1);
}

/* False without an error where they are no constants of such a form. */
static bool read_scales(Onnx *x, const OnnxNode *n, const Shape *in,
                        const OnnxValue *scale, const OnnxValue *zero,
                        Scales *s) {
    int64_t block = onnx_int(x, n, "block_size", 0);
    int64_t axis = axis_of(x, n);
    *s = (Scales){
        .size = 1, .inner = 1, .block = block > 1 ? (uint64_t)block : 1};
    if (shape_count(&scale->shape) != 1) {
        if (!onnx_axis(x, n, axis, in->rank, &s->axis))
            return false;
        s->size = in->dim[s->axis];
    }
    for (uint32_t i = s->axis + 1; i < in->rank; i++)
        s->inner *= in->dim[i];
    s->scale = scales_of(x, scale, in, s, &s->n_scales);
    if (zero)
        s->zero = scales_of(x, zero, in, s, &s->n_zeros);
    return s->scale && (!zero || s->zero);
}

static double listed(const Scales *s, const double *list, uint64_t n,
                     uint64_t i) {
    uint64_t at = i / s->inner % s->size;
    uint64_t blocks = (s->size + s->block - 1) / s->block;
    if (!list)
        return 0;
    if (n == 1)
        return list[0];
    if (s->block == 1)
        return list[at];
    return list[(i / s->inner / s->size * blocks + at / s->block) * s->inner +
                i % s->inner];
}

/* Of a whole tensor; QUANT_NONE where no quantised tensor can have it. */
static Quant quant_of(const Scales *s, OnnxType type) {
    if (s->n_scales != 1 || s->n_zeros > 1 || type >= ONNX_TYPES)
        return (Quant){0};
    double zero = s->zero ? s->zero[0] : 0;
    Quant q = {.type = code_types[type].type,
               .zero = (int32_t)fmax(fmin(zero, INT32_MAX), INT32_MIN),
               .scale = (double)(float)s->scale[0],
               .round = QUANT_EVEN};
    return q.type != QUANT_NONE && quant_sound(&q) ? q : (Quant){0};
}

/* ---- constants ---- */

static int32_t zero_at(const Scales *s, uint64_t i) {
    return s->zero ? (int32_t)s->zero[s->n_zeros > 1 ? i : 0] : 0;
}

static bool one_zero(const Scales *s) {
    for (uint64_t i = 1; i < s->n_zeros; i++)
        if (zero_at(s, i) != zero_at(s, 0))
            return false;
    return true;
}

/* Each less the zero of its channel. */
static const void *less_zeros(Onnx *x, const Scales *s, const Const *codes) {
    uint64_t n = shape_count(&codes->shape);
    double *value = ARENA_ARRAY(x->arena, double, n);
    int16_t *out = ARENA_ARRAY(x->arena, int16_t, n);
    const_read_f64(codes, value);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (int16_t)(value[i] - listed(s, s->zero, s->n_zeros, i));
    return out;
}

static void store(ConstKind kind, void *to, uint64_t i, double code) {
    if (kind == CONST_U8)
        ((uint8_t *)to)[i] = (uint8_t)code;
    else if (kind == CONST_I8)
        ((int8_t *)to)[i] = (int8_t)code;
    else if (kind == CONST_I16)
        ((int16_t *)to)[i] = (int16_t)code;
    else
        ((int32_t *)to)[i] = (int32_t)code;
}

/* Whole numbers of a type, however they are stored (--fix gives floats). */
static Const stored_codes(Onnx *x, const OnnxValue *value) {
    const Const *c = &value->constant;
    bool is = value->type < ONNX_TYPES && code_types[value->type].is;
    if (!is || const_has_codes(c, 4))
        return *c;
    ConstKind kind = code_types[value->type].kind;
    uint64_t n = shape_count(&value->shape);
    const double *number = onnx_numbers(x, value);
    void *to = ARENA_ARRAY(x->arena, int32_t, number ? n + 1 : 1);
    for (uint64_t i = 0; number && i < n; i++)
        store(kind, to, i,
              fmin(fmax(number[i], code_types[value->type].lo),
                   code_types[value->type].hi));
    return number ? (Const){.shape = value->shape, .kind = kind, .data = to}
                  : *c;
}

/* Codes with factors; false where a Const cannot say that. */
static bool scaled_codes(Onnx *x, const Scales *s, const Const *codes,
                         Const *out) {
    *out = *codes;
    bool whole = const_has_codes(codes, 4) && !codes->zero && !codes->mul0 &&
                 !codes->mul1 && codes->groups < 2;
    for (uint64_t i = 0; i < s->n_scales; i++)
        whole = whole && isfinite(s->scale[i]) && s->scale[i] > 0;
    if (!whole || s->block > 1 || s->axis > 1 ||
        (s->zero && !const_has_codes(codes, 1) && !one_zero(s)))
        return false;
    uint32_t n = shape_dim(&codes->shape, s->axis);
    double *by = ARENA_ARRAY(x->arena, double, n);
    for (uint32_t i = 0; i < n; i++)
        by[i] = (double)(float)s->scale[s->n_scales > 1 ? i : 0];
    *(s->axis ? &out->mul1 : &out->mul0) = by;
    if (one_zero(s)) {
        out->zero = zero_at(s, 0);
        return const_has_codes(out, 4);
    }
    out->data = less_zeros(x, s, codes);
    out->kind = CONST_I16;
    memset(out->order, 0, sizeof out->order);
    return true;
}

bool onnx_fold_dequantize(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    Scales s;
    Const codes;
    if (!read_scales(x, n, &in->shape, onnx_in(x, n, 1), onnx_in(x, n, 2), &s))
        return false;
    Const stored = stored_codes(x, in);
    if (scaled_codes(x, &s, &stored, &codes)) {
        onnx_set_const(x, n, 0, ONNX_FLOAT, codes);
        if (onnx_wants(n, 0))
            onnx_out(x, n, 0)->quant = quant_of(&s, in->type);
        return true;
    }
    double *value = onnx_numbers(x, in);
    if (!value)
        return false;
    for (uint64_t i = 0, count = shape_count(&in->shape); i < count; i++)
        value[i] =
            (double)(float)((value[i] - listed(&s, s.zero, s.n_zeros, i)) *
                            listed(&s, s.scale, s.n_scales, i));
    return onnx_set_numbers(x, n, 0, ONNX_FLOAT, in->shape, value);
}

/* What QuantizeLinear makes; ONNX_TYPES after the error. */
static OnnxType code_type(Onnx *x, const OnnxNode *n) {
    const OnnxValue *zero = onnx_in(x, n, 2);
    int64_t type = onnx_int(x, n, "output_dtype", n->codes);
    if (zero || !type)
        type = zero ? (int64_t)zero->type : ONNX_UINT8;
    if (onnx_is_number(type) && code_types[type].is)
        return (OnnxType)type;
    onnx_error(x, n, "quantising to %s is not supported",
               onnx_type_name(x->arena, type));
    return ONNX_TYPES;
}

static double code_of(double value, double scale, double zero, OnnxType type) {
    double code = (double)rintf((float)value / (float)scale) + zero;
    return isnan(code)
               ? zero
               : fmin(fmax(code, code_types[type].lo), code_types[type].hi);
}

bool onnx_fold_quantize(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    OnnxType type = code_type(x, n);
    Scales s;
    if (type == ONNX_TYPES ||
        !read_scales(x, n, &in->shape, onnx_in(x, n, 1), onnx_in(x, n, 2), &s))
        return false;
    const double *value = onnx_numbers(x, in);
    if (!value)
        return false;
    ConstKind kind = code_types[type].kind;
    uint64_t count = shape_count(&in->shape);
    void *to = ARENA_ARRAY(x->arena, int32_t, count + 1);
    for (uint64_t i = 0; i < count; i++)
        store(kind, to, i,
              code_of(value[i], listed(&s, s.scale, s.n_scales, i),
                      listed(&s, s.zero, s.n_zeros, i), type));
    return onnx_set_const(
        x, n, 0, type, (Const){.shape = in->shape, .kind = kind, .data = to});
}

/* ---- tensors ---- */

/* A node for what has none in the model. */
static OnnxNode nameless(const Onnx *x, const OnnxValue *value) {
    return (OnnxNode){.name = value->name, .loc = {x->path, 0, 0}};
}

/* Numbers as codes: a layer that rounds. */
static TensorId rounded(Onnx *x, const OnnxNode *n, TensorId in,
                        const Quant *q) {
    NodeId id = onnx_add(x, n, OP_IDENTITY, "codes", 1, &in);
    TensorId out = onnx_end(x, id);
    if (out.i != NONE)
        graph_tensor(x->graph, out)->quant = *q;
    return out;
}

/* The value is this tensor, which others are, too. */
static bool set_same(Onnx *x, const OnnxNode *n, const OnnxValue *of,
                     OnnxType type, bool codes) {
    OnnxValue *out = onnx_out(x, n, 0);
    if (!out)
        return true;
    out->state = ONNX_TENSOR;
    out->type = type;
    out->shape = of->shape;
    out->tensor = of->tensor;
    out->codes = codes;
    return true;
}

bool onnx_same_codes(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    return set_same(x, n, in, in->type, in->codes);
}

TensorId onnx_result(Onnx *x, OnnxValue *value) {
    TensorId tensor = onnx_tensor(x, value);
    bool numbers = value->state == ONNX_TENSOR && !value->codes;
    if (tensor.i == NONE || !numbers ||
        graph_tensor(x->graph, tensor)->quant.type == QUANT_NONE)
        return tensor;
    OnnxNode n = nameless(x, value);
    tensor = onnx_end(x, onnx_add(x, &n, OP_IDENTITY, "numbers", 1, &tensor));
    if (tensor.i != NONE)
        graph_rename(x->graph, tensor, value->name, value->name);
    return tensor;
}

/* ---- operators on codes ---- */

static bool moves_elements(const OnnxNode *n) {
    static const char *const words[] = {
        "MaxPool", "GlobalMaxPool", "Reshape",   "Transpose", "Flatten",
        "Slice",   "Squeeze",       "Unsqueeze", "Gather",    "Concat",
        "Split",   "Identity",      "Expand",    "Tile",      "DepthToSpace",
        "Dropout", "SpaceToDepth",  "Pad",       "Upsample",  "Resize"};
    bool moves = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        moves |= !strcmp(words[i], n->op->name);
    return moves;
}

/* Of all inputs that are no constants, the codes of one quantisation? */
bool onnx_on_codes(Onnx *x, const OnnxNode *n) {
    const OnnxValue *first = onnx_in(x, n, 0);
    if (!first || !first->codes || !moves_elements(n))
        return false;
    const Quant *q = &graph_tensor(x->graph, first->tensor)->quant;
    bool concat = !strcmp(n->op->name, "Concat");
    for (uint32_t i = 1; i < n->n_in; i++) {
        const OnnxValue *value = onnx_in(x, n, i);
        if (value && value->state == ONNX_TENSOR &&
            (!value->codes ||
             !quant_equal(q, &graph_tensor(x->graph, value->tensor)->quant)))
            return false;
        if (value && value->state == ONNX_CONST && concat)
            return false;
    }
    return strcmp(onnx_word(x, n, "mode", "nearest"), "linear") &&
           strcmp(onnx_word(x, n, "mode", "nearest"), "cubic");
}

/* A number that surrounds codes is a code. */
static void pad_by_code(const Graph *g, Node *node, const Quant *q) {
    (void)g;
    if (node->op == OP_PAD)
        node->attr.pad.value = quant_real(q, node->attr.pad.value);
}

void onnx_give_codes(Onnx *x, const OnnxNode *n, uint32_t first_node) {
    Graph *g = x->graph;
    const OnnxValue *in = onnx_in(x, n, 0);
    Quant q = graph_tensor(g, in->tensor)->quant;
    for (uint32_t i = first_node; i < g->node.n; i++) {
        pad_by_code(g, &g->node.at[i], &q);
        net_move_codes(g, (NodeId){i});
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        OnnxValue *out = onnx_out(x, n, i);
        if (!out || out->state != ONNX_TENSOR)
            continue;
        out->type = in->type;
        out->codes = graph_tensor(g, out->tensor)->quant.type != QUANT_NONE;
        if (!out->codes) /* numbers, which become codes alike */
            out->tensor = rounded(x, n, out->tensor, &q);
        out->codes = true;
    }
}

bool onnx_blends_codes(const Onnx *x, const OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    return in && in->codes && !x->on_codes &&
           (!strcmp(n->op->name, "Resize") || !strcmp(n->op->name, "Upsample"));
}

void onnx_cut_codes(Onnx *x, const OnnxNode *n) {
    OnnxValue *out = onnx_out(x, n, 0);
    const OnnxValue *in = onnx_in(x, n, 0);
    if (!out || out->state != ONNX_TENSOR)
        return;
    Quant q = graph_tensor(x->graph, in->tensor)->quant;
    TensorId real = onnx_act(x, n, out->tensor, (Act){.kind = ACT_TRUNC});
    if (q.zero)
        real = onnx_binary(
            x, n, ELT_SUB, real,
            onnx_constant(x, n, onnx_fill((Shape){1, {1}}, q.zero)));
    real =
        onnx_binary(x, n, ELT_MUL, real,
                    onnx_constant(x, n, onnx_fill((Shape){1, {1}}, q.scale)));
    TensorId codes = rounded(x, n, real, &q);
    if (codes.i == NONE)
        return;
    Tensor *numbers = graph_tensor(x->graph, out->tensor);
    Tensor *named = graph_tensor(x->graph, codes);
    const char *name = numbers->name; /* swapped, so that they stay unique */
    numbers->name = named->name;
    named->name = name;
    out->tensor = codes;
    out->type = in->type;
    out->codes = true;
}

/* ---- QuantizeLinear, DequantizeLinear ---- */

/* Another operator, without attributes, in the place of this one. */
static OnnxNode as_node(Onnx *x, const OnnxNode *n, const uint32_t in[3],
                        uint32_t out) {
    OnnxNode inner = *n;
    inner.message = NULL;
    inner.n_in = in[2] == NONE ? 2 : 3;
    inner.in = ARENA_COPY(x->arena, uint32_t, in, 3);
    inner.n_out = 1;
    inner.out = ARENA_COPY(x->arena, uint32_t, &out, 1);
    return inner;
}

bool onnx_scaled(Onnx *x, const OnnxNode *n, const uint32_t in[3], int64_t axis,
                 uint32_t out) {
    OnnxNode inner = as_node(x, n, in, out);
    inner.has_axis = true;
    inner.axis = axis;
    return x->run(x, &inner, "DequantizeLinear");
}

bool onnx_rounded(Onnx *x, const OnnxNode *n, const uint32_t in[3],
                  OnnxType like, uint32_t out) {
    OnnxNode inner = as_node(x, n, in, out);
    inner.codes = like;
    return x->run(x, &inner, "QuantizeLinear");
}

/* A network input of codes: what is read first of it says what they mean. */
static bool takes_meaning(const Onnx *x, const OnnxValue *value,
                          const Quant *q) {
    Tensor *tensor = graph_tensor(x->graph, value->tensor);
    if (graph_node(x->graph, tensor->producer)->op != OP_INPUT ||
        tensor->quant.type != QUANT_NONE || value->used)
        return false;
    tensor->quant = *q;
    return true;
}

/* One for each block of `size` elements of an axis, as one for each element. */
static TensorId by_block(Onnx *x, OnnxNode *n, TensorId in, uint32_t axis,
                         int64_t size, uint32_t count) {
    uint32_t blocks = in.i == NONE ? 0 : onnx_shape(x, in)->dim[axis];
    if (size > count || (uint64_t)blocks * (uint64_t)size < count ||
        count > 1 << 24) {
        onnx_error(x, n, "%u blocks of %lld are not %u elements", blocks,
                   (long long)size, count);
        return NO_TENSOR;
    }
    double *index = ARENA_ARRAY(x->arena, double, count);
    for (uint32_t i = 0; i < count; i++)
        index[i] = (double)(i / size);
    return onnx_gather(x, n, in, axis, count, 1, index, NULL);
}

/* Input `i` as a tensor beside the first: along `axis` where it is a list. */
static TensorId along_axis(Onnx *x, OnnxNode *n, uint32_t i) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    Shape own = onnx_in(x, n, i)->shape;
    uint32_t axis = 0;
    int64_t block = onnx_int(x, n, "block_size", 0);
    if (block > 0 && own.rank == in->rank)
        return onnx_axis(x, n, axis_of(x, n), in->rank, &axis)
                   ? by_block(x, n, onnx_tensor_in(x, n, i), axis, block,
                              in->dim[axis])
                   : NO_TENSOR;
    if (own.rank != 1 || own.dim[0] == 1)
        return onnx_tensor_in(x, n, i);
    if (!onnx_axis(x, n, axis_of(x, n), in->rank, &axis))
        return NO_TENSOR;
    Shape wide = onnx_rank(&(Shape){0}, in->rank);
    wide.dim[axis] = own.dim[0];
    return onnx_reshape(x, n, onnx_tensor_in(x, n, i), wide);
}

/* The quantisation that scale and zero of the node say; QUANT_NONE: none that
 * a tensor can have. */
static Quant quant_in(Onnx *x, const OnnxNode *n, OnnxType type) {
    const OnnxValue *scale = onnx_in(x, n, 1), *zero = onnx_in(x, n, 2);
    Scales s;
    if (scale->state != ONNX_CONST || shape_count(&scale->shape) != 1 ||
        (zero &&
         (zero->state != ONNX_CONST || shape_count(&zero->shape) != 1)) ||
        !read_scales(x, n, &onnx_in(x, n, 0)->shape, scale, zero, &s))
        return (Quant){0};
    return quant_of(&s, type);
}

bool onnx_dequantize(Onnx *x, OnnxNode *n) {
    OnnxValue *in = onnx_in(x, n, 0);
    Quant q = quant_in(x, n, in->type);
    bool known =
        in->codes || (in->state == ONNX_TENSOR && q.type != QUANT_NONE &&
                      takes_meaning(x, in, &q));
    in->codes = known;
    if (known && quant_equal(&q, &graph_tensor(x->graph, in->tensor)->quant))
        return set_same(x, n, in, ONNX_FLOAT, false);
    TensorId out = onnx_tensor_in(x, n, 0);
    onnx_out(x, n, 0)->type = ONNX_FLOAT;
    if (onnx_in(x, n, 2))
        out = onnx_binary(x, n, ELT_SUB, out, along_axis(x, n, 2));
    out = onnx_binary(x, n, ELT_MUL, out, along_axis(x, n, 1));
    return onnx_set(x, n, 0, out, &onnx_in(x, n, 0)->shape);
}

/* Arithmetic on floats. */
static bool quantize_plain(Onnx *x, OnnxNode *n, OnnxType type) {
    Act range = {ACT_CLIP, 0, code_types[type].lo, code_types[type].hi};
    TensorId out = onnx_binary(x, n, ELT_DIV, onnx_tensor_in(x, n, 0),
                               along_axis(x, n, 1));
    out = onnx_act(x, n, out, (Act){.kind = ACT_ROUND});
    if (onnx_in(x, n, 2))
        out = onnx_binary(x, n, ELT_ADD, out, along_axis(x, n, 2));
    onnx_out(x, n, 0)->type = type;
    return onnx_set(x, n, 0, onnx_act(x, n, out, range),
                    &onnx_in(x, n, 0)->shape);
}

bool onnx_quantize(Onnx *x, OnnxNode *n) {
    OnnxValue *in = onnx_in(x, n, 0);
    OnnxType type = code_type(x, n);
    if (type == ONNX_TYPES)
        return false;
    Quant q = quant_in(x, n, type);
    if (q.type == QUANT_NONE)
        return quantize_plain(x, n, type);
    TensorId from = onnx_tensor(x, in);
    if (from.i != NONE && !in->codes && in->state == ONNX_TENSOR &&
        quant_equal(&q, &graph_tensor(x->graph, from)->quant))
        return set_same(x, n, in, type, true);
    onnx_out(x, n, 0)->type = type;
    if (!onnx_set(x, n, 0, rounded(x, n, from, &q), &in->shape))
        return false;
    onnx_out(x, n, 0)->codes = true;
    return true;
}
