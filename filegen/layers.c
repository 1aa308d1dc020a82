/* layers.c - from a node of the graph to the numbers by which the machine
 * computes it; numbers.h. What is not possible says why.
 */
#include "filegen/numbers.h"

#include "graph/quant.h"
#include "passes/legal.h"

#include <math.h>
#include <string.h>

static bool refuse(LayerMaker *m, const char *why) {
    m->why = why;
    return false;
}

static const Tensor *in_of(const LayerMaker *m, const Node *node, uint32_t k) {
    return graph_tensor(m->g, node->in[k]);
}

static const Tensor *out_of(const LayerMaker *m, const Node *node) {
    return graph_tensor(m->g, node->out[0]);
}

static int32_t zero_of(const Tensor *t) {
    return t->quant.zero + file_code_offset(&t->quant);
}

/* ---- activations ---- */

void layer_bounds(const LayerMaker *m, NodeId id, int32_t *lo, int32_t *hi) {
    const Node *node = graph_node(m->g, id);
    const Quant *q = &out_of(m, node)->quant;
    const Act *act = &node->act;
    *lo = quant_type[q->type].lo;
    *hi = quant_type[q->type].hi;
    if (act->kind == ACT_RELU || act->kind == ACT_RELU6)
        *lo = quant_code(q, 0);
    if (act->kind == ACT_RELU6)
        *hi = quant_code(q, 6);
    if (act->kind == ACT_CLIP) {
        *lo = quant_code(q, act->lo);
        *hi = quant_code(q, act->hi);
    }
    *lo += file_code_offset(q);
    *hi += file_code_offset(q);
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

static bool clamps(const Act *act) {
    return act->kind == ACT_NONE || act->kind == ACT_RELU ||
           act->kind == ACT_RELU6 || act->kind == ACT_CLIP;
}

/* A leaky ReLU may say of which numbers it is: passes/rules_fuse.c. */
static Curve node_curve(const LayerMaker *m, NodeId id) {
    const Node *node = graph_node(m->g, id);
    const Quant *q = &out_of(m, node)->quant;
    const Act *act = &node->act;
    int32_t lo, hi;
    layer_bounds(m, id, &lo, &hi);
    if (act->kind != ACT_LEAKY)
        return curve_of(lo, hi, zero_of(out_of(m, node)), 1);
    if (act->lo < 0 && act->hi > 0) {
        int32_t least = quant_code(q, act->alpha * act->lo);
        int32_t most = quant_code(q, act->hi);
        lo = larger(lo, least + file_code_offset(q));
        hi = -larger(-hi, -(most + file_code_offset(q)));
    }
    return curve_of(lo, hi, zero_of(out_of(m, node)), act->alpha);
}

/* ---- convolutions of an engine ---- */

/* Codes of weights without sign; false if a byte does not hold them. */
static bool weight_codes(LayerMaker *m, const Const *c, uint8_t **out,
                         int32_t *zero) {
    Const codes = const_codes(c);
    uint64_t n = shape_count(&codes.shape);
    double *value = ARENA_ARRAY(m->arena, double, n);
    const_read_f64(&codes, value);
    double least = 0, most = 0;
    for (uint64_t i = 0; i < n; i++) {
        least = fmin(least, value[i]);
        most = fmax(most, value[i]);
    }
    if (most - least > UINT8_MAX)
        return refuse(m, "its weights have more than 256 codes");
    *zero = c->zero + (c->kind == CONST_I8 ? -INT8_MIN : 0);
    if (least + *zero < 0 || most + *zero > UINT8_MAX)
        *zero = -(int32_t)least;
    *out = ARENA_ARRAY(m->arena, uint8_t, n);
    for (uint64_t i = 0; i < n; i++)
        (*out)[i] = (uint8_t)((int32_t)value[i] + *zero);
    return true;
}

/* Real values of the bias, in codes of the result, its zero included. */
static double *offsets(LayerMaker *m, const Node *node, uint32_t n) {
    const Tensor *out = out_of(m, node);
    ConstId bias = node->constant[CONST_BIAS];
    double *offset = ARENA_ARRAY(m->arena, double, n);
    if (bias.i != NONE)
        const_read_f64(graph_const(m->g, bias), offset);
    for (uint32_t c = 0; c < n; c++)
        offset[c] = offset[c] / out->quant.scale + zero_of(out);
    return offset;
}

static double *factors(LayerMaker *m, const Node *node, uint32_t n) {
    const Const *w = graph_const(m->g, node->constant[CONST_WEIGHT]);
    double *factor = ARENA_ARRAY(m->arena, double, n);
    for (uint32_t c = 0; c < n; c++)
        factor[c] = in_of(m, node, 0)->quant.scale *
                    (w->mul0 ? w->mul0[c] : 1) / out_of(m, node)->quant.scale;
    return factor;
}

static bool has_codes(LayerMaker *m, const Node *node) {
    ConstId w = node->constant[CONST_WEIGHT];
    if (!file_bytes(in_of(m, node, 0)) || !file_bytes(out_of(m, node)))
        return refuse(m, "what it reads or writes are no codes of 8 bits");
    if (w.i == NONE || graph_const(m->g, w)->mul1 ||
        !const_has_codes(graph_const(m->g, w), 1))
        return refuse(m, "its weights are no codes of 8 bits");
    return true;
}

/* Of a layer that was found legal. */
static void set_pool(const LayerMaker *m, const Node *node, FileConv *v) {
    const Shape *in = &in_of(m, node, 0)->shape, *out = &out_of(m, node)->shape;
    LegalPool pool = {"none", "inside", 1, 1};
    const uint32_t from[] = {in->dim[2], in->dim[3]};
    const uint32_t to[] = {out->dim[2], out->dim[3]};
    if (node->op == OP_CONV_POOL)
        legal_pool(&node->attr.pool, from, to, &pool);
    v->pool = pool.kind;
    v->pool_edge = pool.edge;
    v->pool_stride = pool.stride;
    v->pool_kernel = pool.kernel;
}

static bool set_stages(LayerMaker *m, NodeId id, int32_t engine, FileConv *v,
                       const double *factor, const double *offset) {
    const HwArith *arith = m->spec->engine[engine].arithmetic;
    Curve curve = node_curve(m, id);
    if (!arith)
        return refuse(m, "the engine has no arithmetic");
    v->n_stages = arith->n_stages;
    v->stage = numbers_stages(m->arena, arith, v->out_c, factor, offset, &curve,
                              &m->why);
    return v->stage;
}

/* What the row has no name for must be as the simulator takes it then. */
static bool row_tells(LayerMaker *m, const Node *node) {
    const ConvAttr *c = &node->attr.conv;
    const ProgRow *row = program_row_for(m->spec, hw_op_name[HW_OP_CONV]);
    uint32_t reach[2];
    for (int a = 0; a < 2; a++)
        reach[a] = (c->kernel[a] - 1) * c->dilation[a];
    const struct {
        const char *name;
        uint32_t is, usual;
    } rows[] = {{"kernel.h", c->kernel[0], c->kernel[1]},
                {"stride.h", c->stride[0], 1},
                {"stride.w", c->stride[1], 1},
                {"dilation.h", c->dilation[0], 1},
                {"dilation.w", c->dilation[1], 1},
                {"pad.top", c->pad[0], reach[0] / 2},
                {"pad.left", c->pad[1], reach[1] / 2},
                {"pad.bottom", c->pad_end[0], reach[0] - reach[0] / 2},
                {"pad.right", c->pad_end[1], reach[1] - reach[1] / 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is != rows[i].usual &&
            (!row || !program_row_has(m->spec, row, rows[i].name)))
            return refuse(
                m, arena_printf(m->arena, "its row has no %s", rows[i].name));
    return true;
}

const FileConv *layer_conv(LayerMaker *m, NodeId id) {
    const Node *node = graph_node(m->g, id);
    const ConvAttr *conv = &node->attr.conv;
    Legal legal = legal_check(m->arena, m->spec, m->g, id);
    m->why = legal.reason ? legal.reason : "no engine runs it";
    if (legal.engine < 0 || (node->op != OP_CONV && node->op != OP_CONV_POOL) ||
        !has_codes(m, node) || !row_tells(m, node))
        return NULL;
    FileConv *v = ARENA_NEW(m->arena, FileConv);
    *v = (FileConv){.in_c = shape_dim(&in_of(m, node, 0)->shape, 1),
                    .out_c = conv->out_c,
                    .kernel = conv->kernel[1],
                    .depthwise = conv->groups > 1,
                    .zero_in = zero_of(in_of(m, node, 0))};
    uint8_t *weight;
    set_pool(m, node, v);
    if (!weight_codes(m, graph_const(m->g, node->constant[CONST_WEIGHT]),
                      &weight, &v->zero_weight) ||
        !set_stages(m, id, legal.engine, v, factors(m, node, v->out_c),
                    offsets(m, node, v->out_c)))
        return NULL;
    v->weight = weight;
    return v;
}

/* ---- sums as convolutions ---- */

/* Whole numbers up to 255 whose quotient is nearest to a / b, by the continued
 * fraction. */
static void two_weights(double a, double b, int32_t *p, int32_t *q) {
    double x = a < b ? a / b : b / a;
    int32_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    double rest = x;
    for (int i = 0; i < 32; i++) {
        double whole = floor(rest);
        if (whole > UINT8_MAX || whole * q1 + q0 > UINT8_MAX ||
            whole * p1 + p0 > UINT8_MAX)
            break;
        int32_t p2 = (int32_t)whole * p1 + p0, q2 = (int32_t)whole * q1 + q0;
        p0 = p1, q0 = q1, p1 = p2, q1 = q2;
        if (rest - whole < 1e-9)
            break;
        rest = 1 / (rest - whole);
    }
    if (!p1 || !q1) /* less than 1 / 255 */
        p1 = 1, q1 = UINT8_MAX;
    *p = a < b ? p1 : q1;
    *q = a < b ? q1 : p1;
}

static bool is_sum(LayerMaker *m, const Node *node) {
    if (node->op != OP_ELTWISE || node->attr.elt.kind != ELT_ADD ||
        node->n_in != 2 || node->attr.elt.coeff)
        return refuse(m, "it is no sum of two");
    const Tensor *a = in_of(m, node, 0), *b = in_of(m, node, 1);
    if (!file_bytes(a) || !file_bytes(b) || !file_bytes(out_of(m, node)) ||
        !shape_equal(&a->shape, &b->shape) || a->shape.rank != 4 || a == b)
        return refuse(m, "its operands are no two volumes of one shape");
    return clamps(&node->act) || node->act.kind == ACT_LEAKY;
}

/* An engine that runs 1 x 1 convolutions of both volumes together. */
static int32_t sum_engine(const LayerMaker *m, uint32_t channels) {
    int32_t e = hwspec_engine(m->spec, HW_OP_CONV);
    if (e < 0)
        return -1;
    const HwEngine *engine = &m->spec->engine[e];
    bool ok = hw_range_has(&engine->limit[HW_LIMIT_IN_C], 2 * channels) &&
              hw_range_has(&engine->limit[HW_LIMIT_KERNEL_W], 1);
    return ok ? e : -1;
}

/* Weights are p and q on two diagonals. The zero of the second operand is not
 * that of the convolution: the difference goes into the offset. */
const FileConv *layer_sum(LayerMaker *m, NodeId id) {
    const Node *node = graph_node(m->g, id);
    if (!is_sum(m, node))
        return NULL;
    const Tensor *a = in_of(m, node, 0), *b = in_of(m, node, 1);
    const Tensor *out = out_of(m, node);
    uint32_t c = shape_dim(&a->shape, 1);
    int32_t p, q, engine = sum_engine(m, c);
    refuse(m, "no engine runs a convolution of both");
    if (engine < 0)
        return NULL;
    two_weights(a->quant.scale, b->quant.scale, &p, &q);
    uint8_t *weight = ARENA_ARRAY(m->arena, uint8_t, (size_t)2 * c * c);
    double *factor = ARENA_ARRAY(m->arena, double, c);
    double *offset = ARENA_ARRAY(m->arena, double, c);
    for (uint32_t o = 0; o < c; o++) {
        weight[(size_t)o * 2 * c + o] = (uint8_t)p;
        weight[(size_t)o * 2 * c + c + o] = (uint8_t)q;
        factor[o] =
            (a->quant.scale / p + b->quant.scale / q) / 2 / out->quant.scale;
        offset[o] = zero_of(out) + factor[o] * q * (zero_of(a) - zero_of(b));
    }
    FileConv *v = ARENA_NEW(m->arena, FileConv);
    *v = (FileConv){.in_c = 2 * c,
                    .out_c = c,
                    .kernel = 1,
                    .zero_in = zero_of(a),
                    .weight = weight,
                    .pool = "none",
                    .pool_edge = "inside",
                    .pool_kernel = 1,
                    .pool_stride = 1};
    return set_stages(m, id, engine, v, factor, offset) ? v : NULL;
}

/* ---- on reals ---- */

static void real_windows(const Node *node, FileReal *v) {
    const ConvAttr *conv = &node->attr.conv;
    for (int a = 0; a < 2; a++) {
        bool is_conv = node->op == OP_CONV;
        v->kernel[a] = is_conv ? conv->kernel[a] : 1;
        v->stride[a] = is_conv ? conv->stride[a] : 1;
        v->dilation[a] = is_conv ? conv->dilation[a] : 1;
        v->before[a] = is_conv ? (int32_t)conv->pad[a] : 0;
        v->after[a] = is_conv ? (int32_t)conv->pad_end[a] : 0;
    }
}

/* One factor for all channels: whole numbers do it, in a quarter of the bytes.
 */
static void whole_numbers(LayerMaker *m, const Node *node, FileReal *v) {
    enum { BITS = 30, SHIFT_MOST = 62 };
    if (!has_codes(m, node))
        return;
    double *factor = factors(m, node, v->out_c);
    double *offset = offsets(m, node, v->out_c);
    int32_t zero = zero_of(out_of(m, node)), weight_zero;
    int exponent;
    uint8_t *code;
    for (uint32_t c = 1; c < v->out_c; c++)
        if (fabs(factor[c] - factor[0]) > 1e-9 * factor[0])
            return;
    double part = frexp(factor[0], &exponent);
    bool fits =
        factor[0] > 0 && exponent <= BITS && BITS - exponent <= SHIFT_MOST;
    if (!fits ||
        !weight_codes(m, graph_const(m->g, node->constant[CONST_WEIGHT]), &code,
                      &weight_zero))
        return;
    int64_t *bias = ARENA_ARRAY(m->arena, int64_t, v->out_c);
    for (uint32_t c = 0; c < v->out_c; c++) {
        double sum = nearbyint((offset[c] - zero) / factor[c]);
        if (fabs(sum) > INT32_MAX / 2)
            return;
        bias[c] = (int64_t)sum;
    }
    v->code = code;
    v->code_bias = bias;
    v->add_in = -zero_of(in_of(m, node, 0));
    v->add_weight = -weight_zero;
    v->out = (FileScaled){zero, (int32_t)nearbyint(ldexp(part, BITS)),
                          BITS - exponent};
}

/* A result is in codes of the output, less its zero. */
const FileReal *layer_real(LayerMaker *m, NodeId id) {
    const Node *node = graph_node(m->g, id);
    ConstId w = node->constant[CONST_WEIGHT];
    const Tensor *in = in_of(m, node, 0), *out = out_of(m, node);
    refuse(m, "the processor runs no such layer on codes");
    if ((node->op != OP_CONV && node->op != OP_FC) || w.i == NONE ||
        !file_bytes(in) || !file_bytes(out) || !clamps(&node->act))
        return NULL;
    const Const *weights = graph_const(m->g, w);
    uint64_t n = shape_count(&weights->shape);
    uint32_t out_c = shape_dim(&weights->shape, 0);
    double *value = ARENA_ARRAY(m->arena, double, n);
    float *real = ARENA_ARRAY(m->arena, float, n);
    float *bias = ARENA_ARRAY(m->arena, float, out_c);
    double *offset = offsets(m, node, out_c);
    const_read_f64(weights, value);
    for (uint64_t i = 0; i < n; i++)
        real[i] = (float)(value[i] * in->quant.scale / out->quant.scale);
    for (uint32_t c = 0; c < out_c; c++)
        bias[c] = (float)(offset[c] - zero_of(out));
    int32_t lo, hi;
    layer_bounds(m, id, &lo, &hi);
    FileReal *v = ARENA_NEW(m->arena, FileReal);
    *v = (FileReal){.out_c = out_c,
                    .in_c = node->op == OP_CONV ? shape_dim(&in->shape, 1)
                                                : (uint32_t)(n / out_c),
                    .groups = node->op == OP_CONV ? node->attr.conv.groups : 1,
                    .weight = real,
                    .bias = bias,
                    .least = (float)(lo - zero_of(out)),
                    .most = (float)(hi - zero_of(out))};
    real_windows(node, v);
    whole_numbers(m, node, v);
    return v;
}

/* ---- functions of one code ---- */

/* A graph of the node alone, on all codes of its operand k. */
const uint8_t *layer_table(LayerMaker *m, NodeId id, uint32_t k) {
    enum { CODES = UINT8_MAX + 1, SIDE = 16 };
    const Node *node = graph_node(m->g, id);
    const Quant *from = &in_of(m, node, k)->quant;
    const Quant *to = &out_of(m, node)->quant;
    refuse(m, "it is no function of one code of 8 bits");
    if (!file_bytes(in_of(m, node, k)) || !file_bytes(out_of(m, node)) ||
        node->act.kind == ACT_PRELU)
        return NULL;
    Arena *scratch = arena_new("table");
    Graph *g = graph_new(scratch, "table");
    NodeId in = graph_add(g, OP_INPUT, "in", (Loc){0}, 0, NULL);
    TensorId x = graph_add_output(g, in, "in");
    graph_tensor(g, x)->shape = shape_nchw(1, 1, SIDE, SIDE);
    graph_tensor(g, x)->quant = *from;
    NodeId act = graph_add(g, OP_ACT, "act", (Loc){0}, 1, &x);
    graph_node(g, act)->act = node->act;
    TensorId y = graph_add_output(g, act, "act");
    graph_tensor(g, y)->shape = shape_nchw(1, 1, SIDE, SIDE);
    graph_tensor(g, y)->quant = *to;
    graph_mark_output(g, y);
    float code[CODES];
    const float *input = code;
    for (int i = 0; i < CODES; i++)
        code[i] = (float)(i - file_code_offset(from));
    Values values = graph_eval(scratch, g, 1, &input);
    uint8_t *table = ARENA_ARRAY(m->arena, uint8_t, CODES);
    for (int i = 0; i < CODES; i++)
        table[i] = (uint8_t)((int32_t)values.at[y.i][i] + file_code_offset(to));
    arena_free(scratch);
    return table;
}

/* ---- two operands ---- */

/* Half up, with as many bits as 32 hold. */
bool layer_binary(LayerMaker *m, NodeId id, FileLayer *out) {
    enum { BITS = 20, PRODUCT_BITS = 30 };
    const Node *node = graph_node(m->g, id);
    refuse(m, "the processor has no such combination of codes");
    if (node->op != OP_ELTWISE || node->n_in != 2 || node->attr.elt.coeff ||
        !file_bytes(in_of(m, node, 0)) || !file_bytes(in_of(m, node, 1)) ||
        !file_bytes(out_of(m, node)) || !clamps(&node->act))
        return false;
    const Tensor *a = in_of(m, node, 0), *b = in_of(m, node, 1);
    const Tensor *r = out_of(m, node);
    EltKind kind = node->attr.elt.kind;
    if (kind != ELT_ADD && kind != ELT_SUB && kind != ELT_MUL)
        return false;
    out->operation = elt_name[kind];
    out->scaled[0] = (FileScaled){-zero_of(a), 1, 0};
    out->scaled[1] = (FileScaled){-zero_of(b), 1, 0};
    double product = a->quant.scale * b->quant.scale / r->quant.scale;
    double larger = fmax(a->quant.scale, b->quant.scale);
    int bits = kind == ELT_MUL ? PRODUCT_BITS : BITS;
    if (kind == ELT_MUL) {
        while (bits > 0 && ldexp(product, bits) > 1 << PRODUCT_BITS)
            bits--;
        out->scaled[2] = (FileScaled){
            zero_of(r), (int32_t)nearbyint(ldexp(product, bits)), bits};
        return true;
    }
    while (bits > 0 && ldexp(larger / r->quant.scale, bits) > 1 << BITS)
        bits--;
    out->scaled[0].mul =
        (int32_t)nearbyint(ldexp(a->quant.scale / r->quant.scale, bits));
    out->scaled[1].mul =
        (int32_t)nearbyint(ldexp(b->quant.scale / r->quant.scale, bits));
    out->scaled[2] = (FileScaled){zero_of(r), 1, bits};
    return true;
}

int32_t file_pad_code(const Graph *g, const Node *node) {
    const Quant *q = &graph_tensor(g, node->out[0])->quant;
    return quant_code(q, node->attr.pad.value) + file_code_offset(q);
}

const uint8_t *layer_constant(LayerMaker *m, NodeId id, uint32_t *bytes) {
    const Node *node = graph_node(m->g, id);
    const Tensor *out = out_of(m, node);
    ConstId value = node->constant[CONST_VALUE];
    uint64_t n = shape_count(&out->shape);
    refuse(m, "its values are no codes of 8 bits");
    if (value.i == NONE || (out->quant.type != QUANT_NONE && !file_bytes(out)))
        return NULL;
    float *real = ARENA_ARRAY(m->arena, float, n);
    const_read(graph_const(m->g, value), real);
    *bytes = (uint32_t)(n * sizeof *real);
    if (out->quant.type == QUANT_NONE)
        return (const uint8_t *)real;
    uint8_t *code = ARENA_ARRAY(m->arena, uint8_t, n);
    for (uint64_t i = 0; i < n; i++)
        code[i] = (uint8_t)((int32_t)real[i] + file_code_offset(&out->quant));
    *bytes = (uint32_t)n;
    return code;
}
