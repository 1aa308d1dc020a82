/* host.c - layers of the processor as nodes of the file.
 *
 * One row an operator. Codes stay codes where the container has a node for
 * them; else they become reals in units of one code, so that nothing is lost,
 * and codes again behind it. What has no node is refused by name.
 */
#include "filegen/lower.h"

#include <float.h>
#include <string.h>

typedef struct Host {
    Lower *l;
    const Node *node;
    FileLayer *layer;
    LayerMaker maker;
} Host;

static bool refuse(Host *h, const char *why) {
    diag_error(h->l->diag, h->node->loc,
               "layer \"%s\" (%s): neither an engine nor the processor of %s "
               "runs it from a file: %s%s%s",
               h->node->name, op_info[h->node->op].name, h->l->spec->machine,
               why, h->layer->why ? "; engines: " : "",
               h->layer->why ? h->layer->why : "");
    h->l->failed = true;
    return false;
}

static NodeId node_id(const Host *h) {
    return (NodeId){(uint32_t)(h->node - h->l->g->node.at)};
}

static const Tensor *tensor_in(const Host *h, uint32_t k) {
    return graph_tensor(h->l->g, h->node->in[k]);
}

static const Tensor *tensor_out(const Host *h) {
    return graph_tensor(h->l->g, h->node->out[0]);
}

static int32_t zero_of(const Tensor *t) {
    return t->quant.zero + file_code_offset(&t->quant);
}

static Range main_in(Host *h, uint32_t k) {
    return value_main(h->l, h->l->value_of[h->node->in[k].i]);
}

static Range main_out(Host *h) {
    return value_main(h->l, h->l->value_of[h->node->out[0].i]);
}

static FilePiece piece_of(const Host *h, bool ends) {
    return (FilePiece){ends ? h->node->out[0] : NO_TENSOR, 0, 0};
}

static bool begin(Host *h, const char *op, Range in, Range out, bool ends) {
    if (!draft_node(h->l, h->node, op, piece_of(h, ends)))
        return false;
    draft_range(h->l, "in", in);
    draft_range(h->l, "out", out);
    return true;
}

/* ---- between codes and reals ---- */

static Range reals_for(Host *h, uint64_t n) {
    return room_for(h->l, h->l->main, n * sizeof(float), true);
}

static bool change(Host *h, const char *op, Range from, Range to, int32_t zero,
                   float codes_a_unit, bool ends) {
    if (!begin(h, op, from, to, ends))
        return false;
    draft_num(h->l, "code.zero", zero);
    draft_real(h->l, "code.scale", codes_a_unit);
    return true;
}

/* Operand 0 as reals: codes less their zero. */
static bool to_reals(Host *h, Range *out) {
    Range in = main_in(h, 0);
    *out = reals_for(h, in.size);
    return change(h, "dequantise", in, *out, h->layer->zero[0],
                  h->layer->codes_a_unit[0], false);
}

static bool to_codes(Host *h, Range from) {
    return change(h, "quantise", from, main_out(h), h->layer->zero[1],
                  h->layer->codes_a_unit[1], true);
}

/* Reals in codes of the operand; those of the result follow by scale. */
static void unit_codes(Host *h) {
    const Tensor *in = tensor_in(h, 0), *out = tensor_out(h);
    h->layer->zero[0] = zero_of(in);
    h->layer->zero[1] = zero_of(out);
    h->layer->codes_a_unit[0] = 1;
    h->layer->codes_a_unit[1] = (float)(in->quant.scale / out->quant.scale);
}

static bool both_bytes(Host *h) {
    return (file_bytes(tensor_in(h, 0)) && file_bytes(tensor_out(h))) ||
           refuse(h, "what it reads or writes are no codes of 8 bits");
}

static bool no_act(Host *h) {
    return h->node->act.kind == ACT_NONE ||
           refuse(h, "its activation has no node of its own");
}

/* ---- functions of one code ---- */

static bool look_up(Host *h, Range in, Range out, const uint8_t *table) {
    enum { CODES = UINT8_MAX + 1 };
    if (!begin(h, "lookup", in, out, true))
        return false;
    draft_range(h->l, "in2", constant_range(h->l, table, CODES));
    return true;
}

static bool run_function(Host *h) {
    const Tensor *in = tensor_in(h, 0), *out = tensor_out(h);
    bool real_in = in->quant.type == QUANT_NONE;
    bool real_out = out->quant.type == QUANT_NONE;
    if (real_in != real_out && h->node->act.kind == ACT_NONE &&
        file_bytes(real_in ? out : in)) {
        const Tensor *codes = real_in ? out : in;
        h->layer->zero[real_in] = zero_of(codes);
        h->layer->codes_a_unit[real_in] = (float)(1 / codes->quant.scale);
        return change(h, real_in ? "quantise" : "dequantise", main_in(h, 0),
                      main_out(h), zero_of(codes),
                      h->layer->codes_a_unit[real_in], true);
    }
    h->layer->table = layer_table(
        &h->maker, (NodeId){(uint32_t)(h->node - h->l->g->node.at)}, 0);
    return h->layer->table
               ? look_up(h, main_in(h, 0), main_out(h), h->layer->table)
               : refuse(h, h->maker.why);
}

/* ---- convolutions and products ---- */

static void say_windows(Host *h, const uint32_t kernel[2],
                        const uint32_t stride[2], const uint32_t dilation[2],
                        const int32_t before[2], const int32_t after[2]) {
    static const char *const axis[] = {"h", "w"};
    for (int a = 0; a < 2; a++) {
        Lower *l = h->l;
        draft_num(l, arena_printf(l->arena, "kernel.%s", axis[a]), kernel[a]);
        draft_num(l, arena_printf(l->arena, "stride.%s", axis[a]), stride[a]);
        draft_num(l, arena_printf(l->arena, "dilation.%s", axis[a]),
                  dilation[a]);
        draft_num(l, arena_printf(l->arena, "before.%s", axis[a]), before[a]);
        draft_num(l, arena_printf(l->arena, "after.%s", axis[a]), after[a]);
    }
}

/* 256 codes between bounds; NULL where all codes are. */
static const uint8_t *cut_table(Host *h, NodeId id) {
    int32_t lo, hi;
    layer_bounds(&h->maker, id, &lo, &hi);
    if (lo <= 0 && hi >= UINT8_MAX)
        return NULL;
    uint8_t *table = ARENA_ARRAY(h->l->arena, uint8_t, UINT8_MAX + 1);
    for (int32_t i = 0; i <= UINT8_MAX; i++)
        table[i] = (uint8_t)(i < lo ? lo : i > hi ? hi : i);
    return table;
}

/* What both kinds of nodes say. */
static void say_product(Host *h, const FileReal *v) {
    const Value *value = &h->l->value.at[h->l->value_of[h->node->in[0].i]];
    bool is_conv = h->node->op == OP_CONV;
    const uint32_t dims[] = {1, v->in_c, is_conv ? value->h : 1,
                             is_conv ? value->w : 1};
    draft_dims(h->l, "in", dims);
    draft_num(h->l, "groups", v->groups);
    draft_num(h->l, "out.c", v->out_c);
    say_windows(h, v->kernel, v->stride, v->dilation, v->before, v->after);
}

static uint32_t weights_of(const FileReal *v) {
    return v->out_c * (v->in_c / v->groups) * v->kernel[0] * v->kernel[1];
}

/* Not several images behind one another, or rows of a matrix. */
static bool one_image(const Host *h, const FileReal *v) {
    const Value *in = &h->l->value.at[h->l->value_of[h->node->in[0].i]];
    uint64_t area = h->node->op == OP_CONV ? (uint64_t)in->h * in->w : 1;
    return value_count(in) == v->in_c * area;
}

/* In whole numbers. */
static bool run_codes(Host *h, const FileReal *v) {
    Lower *l = h->l;
    h->layer->table = cut_table(h, node_id(h));
    Range out = main_out(h), made = out, in = main_in(h, 0);
    if (h->layer->table)
        made = room_for(l, l->main, out.size, false);
    if (!begin(h, "conv_codes", in, made, !h->layer->table))
        return false;
    say_product(h, v);
    draft_num(l, "in.add", v->add_in);
    draft_num(l, "weights.add", v->add_weight);
    draft_num(l, "out.mul", v->out.mul);
    draft_num(l, "out.shift", v->out.shift);
    draft_num(l, "out.add", v->out.add);
    draft_bytes(l, "code.weights", weights_of(v), v->code);
    draft_nums(l, "code.bias", v->out_c, v->code_bias);
    return !h->layer->table || look_up(h, made, out, h->layer->table);
}

static bool run_product(Host *h) {
    const FileReal *v = h->layer->real = layer_real(&h->maker, node_id(h));
    if (!v)
        return refuse(h, h->maker.why);
    if (!one_image(h, v))
        return refuse(h, "its node is of one image");
    if (v->code)
        return run_codes(h, v);
    unit_codes(h);
    h->layer->codes_a_unit[1] = 1;
    const Value *result = &h->l->value.at[h->l->value_of[h->node->out[0].i]];
    Range in, out = reals_for(h, value_count(result));
    if (!to_reals(h, &in) || !begin(h, "conv_real", in, out, false))
        return false;
    say_product(h, v);
    draft_real(h->l, "least", v->least);
    draft_real(h->l, "most", v->most);
    draft_reals(h->l, "real.weights", weights_of(v), v->weight);
    draft_reals(h->l, "real.bias", v->out_c, v->bias);
    return to_codes(h, out);
}

/* ---- pools ---- */

static bool run_pool(Host *h) {
    const PoolAttr *pool = &h->node->attr.pool;
    if (!both_bytes(h) || !no_act(h))
        return false;
    bool mean = pool->kind == POOL_AVG;
    bool padded =
        pool->pad[0] | pool->pad[1] | pool->pad_end[0] | pool->pad_end[1];
    if (mean && padded && pool->count_pad)
        return refuse(h, "its averages count the padding");
    unit_codes(h);
    uint32_t in[4], out[4], kernel[2], stride[2];
    const uint32_t dilation[] = {1, 1};
    int32_t before[2], after[2];
    dims_of_tensor(tensor_in(h, 0), in);
    dims_of_tensor(tensor_out(h), out);
    for (int a = 0; a < 2; a++) {
        kernel[a] = pool->global ? in[2 + a] : pool->kernel[a];
        stride[a] = pool->global ? 1 : pool->stride[a];
        before[a] = pool->global ? 0 : (int32_t)pool->pad[a];
        int64_t reach = (int64_t)(out[2 + a] - 1) * stride[a] + kernel[a];
        int64_t more = reach - in[2 + a] - before[a];
        after[a] = more > 0 ? (int32_t)more : 0;
    }
    Range from,
        to = reals_for(
            h, value_count(&h->l->value.at[h->l->value_of[h->node->out[0].i]]));
    if (!to_reals(h, &from) || !begin(h, "reduce_window", from, to, false))
        return false;
    draft_word(h->l, "reduce", mean ? "mean" : "max");
    draft_dims(h->l, "in", in);
    say_windows(h, kernel, stride, dilation, before, after);
    draft_real(h->l, "first", mean ? 0 : -FLT_MAX);
    draft_real(h->l, "least", -FLT_MAX);
    draft_real(h->l, "most", FLT_MAX);
    return to_codes(h, to);
}

static bool run_reduce(Host *h) {
    const Node *node = h->node;
    uint32_t in[4], out[4], rank = tensor_in(h, 0)->shape.rank;
    if (!both_bytes(h) || !no_act(h))
        return false;
    if (node->attr.reduce.kind != REDUCE_MEAN ||
        !dims_of_tensor(tensor_in(h, 0), in))
        return refuse(h, "only means of at most 4 axes have a node");
    for (uint32_t i = 0; i < 4; i++) {
        bool gone =
            i + rank >= 4 && node->attr.reduce.axes >> (i + rank - 4) & 1;
        out[i] = gone ? 1 : in[i];
    }
    unit_codes(h);
    uint64_t n = (uint64_t)out[0] * out[1] * out[2] * out[3];
    Range from, to = reals_for(h, n);
    if (!to_reals(h, &from) || !begin(h, "reduce", from, to, false))
        return false;
    draft_word(h->l, "reduce", "mean");
    draft_dims(h->l, "in", in);
    draft_dims(h->l, "out", out);
    draft_real(h->l, "first", 0);
    return to_codes(h, to);
}

static bool run_softmax(Host *h) {
    const Shape *shape = &tensor_in(h, 0)->shape;
    uint32_t axis = h->node->attr.axis.axis;
    uint64_t outer = 1;
    if (!both_bytes(h) || !no_act(h))
        return false;
    for (uint32_t i = axis + 1; i < shape->rank; i++)
        if (shape->dim[i] > 1)
            return refuse(h, "only a softmax along the last axis has a node");
    for (uint32_t i = 0; i < axis; i++)
        outer *= shape->dim[i];
    h->layer->zero[0] = zero_of(tensor_in(h, 0));
    h->layer->zero[1] = zero_of(tensor_out(h));
    h->layer->codes_a_unit[0] = (float)(1 / tensor_in(h, 0)->quant.scale);
    h->layer->codes_a_unit[1] = (float)(1 / tensor_out(h)->quant.scale);
    uint64_t n = shape_count(shape);
    Range from, to = reals_for(h, n);
    if (!to_reals(h, &from) || !begin(h, "softmax", from, to, false))
        return false;
    draft_num(h->l, "inner", shape->dim[axis]);
    draft_num(h->l, "outer", (int64_t)outer);
    draft_real(h->l, "beta", 1);
    return to_codes(h, to);
}

/* ---- two operands ---- */

static void say_scaled(Host *h, const char *name, const FileScaled *s) {
    Lower *l = h->l;
    draft_num(l, arena_printf(l->arena, "%s.add", name), s->add);
    draft_num(l, arena_printf(l->arena, "%s.mul", name), s->mul);
    draft_num(l, arena_printf(l->arena, "%s.shift", name), s->shift);
}

static bool run_binary(Host *h) {
    static const char *const name[] = {"in", "in2", "out"};
    NodeId id = {(uint32_t)(h->node - h->l->g->node.at)};
    if (!layer_binary(&h->maker, id, h->layer))
        return refuse(h, h->maker.why);
    h->layer->table = cut_table(h, id);
    Range out = main_out(h), made = out;
    if (h->layer->table)
        made = room_for(h->l, h->l->main, out.size, false);
    uint32_t dims[3][4];
    if (!dims_of_tensor(tensor_in(h, 0), dims[0]) ||
        !dims_of_tensor(tensor_in(h, 1), dims[1]) ||
        !dims_of_tensor(tensor_out(h), dims[2]))
        return refuse(h, "nodes of files have at most 4 axes");
    Range a = main_in(h, 0), b = main_in(h, 1);
    if (!begin(h, "binary_codes", a, made, !h->layer->table))
        return false;
    draft_range(h->l, "in2", b);
    draft_word(h->l, "operation", h->layer->operation);
    for (int k = 0; k < 3; k++) {
        draft_dims(h->l, name[k], dims[k]);
        say_scaled(h, name[k], &h->layer->scaled[k]);
    }
    return !h->layer->table || look_up(h, made, out, h->layer->table);
}

/* ---- moves ---- */

static bool one_quantisation(Host *h) {
    const Tensor *out = tensor_out(h);
    for (uint32_t k = 0; k < h->node->n_in; k++) {
        const Tensor *in = tensor_in(h, k);
        bool alike = quant_equal(&in->quant, &out->quant);
        if (!alike)
            return refuse(h, "it changes the quantisation");
    }
    return true;
}

static uint32_t element(const Host *h) {
    return tensor_out(h)->quant.type == QUANT_NONE ? sizeof(float) : 1;
}

static bool run_concat(Host *h) {
    enum { PARTS = 5 };
    static const char *const name[PARTS] = {
        "part.memory", "part.type", "part.start", "part.size", "part.extent"};
    Lower *l = h->l;
    uint32_t n = h->node->n_in, axis = h->node->attr.axis.axis;
    const Shape *shape = &tensor_out(h)->shape;
    uint64_t outer = 1, inner = element(h);
    if (!no_act(h) || !one_quantisation(h))
        return false;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (i < axis)
            outer *= shape->dim[i];
        else if (i > axis)
            inner *= shape->dim[i];
    int64_t *part[PARTS];
    for (int p = 0; p < PARTS; p++)
        part[p] = ARENA_ARRAY(l->arena, int64_t, n);
    for (uint32_t k = 0; k < n; k++) {
        Range range = main_in(h, k);
        part[0][k] = l->spec->memory[range.memory].id;
        part[1][k] = !range.reals;
        part[2][k] = (int64_t)range.start;
        part[3][k] = (int64_t)range.size;
        part[4][k] = tensor_in(h, k)->shape.dim[axis];
    }
    Range out = main_out(h);
    if (!draft_node(l, h->node, "concat", piece_of(h, true)))
        return false;
    draft_range(l, "out", out);
    draft_num(l, "inner", (int64_t)inner);
    draft_num(l, "outer", (int64_t)outer);
    draft_num(l, "parts", n);
    for (int p = 0; p < PARTS; p++)
        draft_nums(l, name[p], n, part[p]);
    return true;
}

/* Values by axis of 4. */
static void say_axes(Host *h, const char *name, const int64_t value[4]) {
    int64_t *own = ARENA_COPY(h->l->arena, int64_t, value, 4);
    draft_nums(h->l, name, 4, own);
}

static bool run_slice(Host *h) {
    enum { MASKS = 5 };
    uint32_t dims[4], rank = tensor_in(h, 0)->shape.rank;
    if (!no_act(h) || !one_quantisation(h))
        return false;
    if (!dims_of_tensor(tensor_in(h, 0), dims))
        return refuse(h, "nodes of files have at most 4 axes");
    int64_t begins[4] = {0}, ends[4], steps[] = {1, 1, 1, 1};
    for (int i = 0; i < 4; i++)
        ends[i] = dims[i];
    uint32_t axis = h->node->attr.slice.axis + 4 - rank;
    begins[axis] = h->node->attr.slice.begin;
    ends[axis] = h->node->attr.slice.end;
    if (!begin(h, "slice", main_in(h, 0), main_out(h), true))
        return false;
    draft_dims(h->l, "in", dims);
    say_axes(h, "begin", begins);
    say_axes(h, "end", ends);
    say_axes(h, "step", steps);
    draft_nums(h->l, "mask", MASKS, ARENA_ARRAY(h->l->arena, int64_t, MASKS));
    return true;
}

static bool run_pad(Host *h) {
    static const char *const axis[] = {"n", "c", "h", "w"};
    uint32_t dims[4];
    Lower *l = h->l;
    if (!both_bytes(h) || !no_act(h) || !one_quantisation(h))
        return false;
    dims_of_tensor(tensor_in(h, 0), dims);
    if (!begin(h, "pad", main_in(h, 0), main_out(h), true))
        return false;
    draft_dims(l, "in", dims);
    for (int i = 0; i < 4; i++) {
        bool inside = i >= 2;
        draft_num(l, arena_printf(l->arena, "before.%s", axis[i]),
                  inside ? h->node->attr.pad.before[i - 2] : 0);
        draft_num(l, arena_printf(l->arena, "after.%s", axis[i]),
                  inside ? h->node->attr.pad.behind[i - 2] : 0);
    }
    h->layer->zero[1] = file_pad_code(l->g, h->node);
    draft_num(l, "value.type", 1);
    draft_num(l, "value", h->layer->zero[1]);
    return true;
}

static bool run_transpose(Host *h) {
    uint32_t dims[4], rank = tensor_in(h, 0)->shape.rank;
    if (!no_act(h) || !one_quantisation(h))
        return false;
    if (!dims_of_tensor(tensor_in(h, 0), dims))
        return refuse(h, "nodes of files have at most 4 axes");
    int64_t perm[4];
    for (uint32_t i = 0; i < 4; i++)
        perm[i] = i < 4 - rank
                      ? i
                      : h->node->attr.perm.dim[i - (4 - rank)] + (4 - rank);
    if (!begin(h, "transpose", main_in(h, 0), main_out(h), true))
        return false;
    draft_dims(h->l, "in", dims);
    say_axes(h, "perm", perm);
    return true;
}

static bool run_upsample(Host *h) {
    uint32_t dims[4], out[4];
    if (!both_bytes(h) || !no_act(h) || !one_quantisation(h))
        return false;
    dims_of_tensor(tensor_in(h, 0), dims);
    dims_of_tensor(tensor_out(h), out);
    if (!begin(h, "resize", main_in(h, 0), main_out(h), true))
        return false;
    draft_dims(h->l, "in", dims);
    draft_num(h->l, "out.h", out[2]);
    draft_num(h->l, "out.w", out[3]);
    draft_word(h->l, "resize", "nearest");
    draft_num(h->l, "corners", 0);
    return true;
}

static bool run_constant(Host *h) {
    Value *v = &h->l->value.at[h->l->value_of[h->node->out[0].i]];
    uint32_t bytes;
    NodeId id = {(uint32_t)(h->node - h->l->g->node.at)};
    h->layer->value = layer_constant(&h->maker, id, &bytes);
    if (!h->layer->value)
        return refuse(h, h->maker.why);
    Range range = constant_range(h->l, h->layer->value, bytes);
    v->main = (Home){true, true, range.start};
    return true;
}

static bool run_nothing(Host *h) {
    return refuse(h, "there is no node for it");
}

/* ---- operators ---- */

typedef bool RunHost(Host *h);
static RunHost *const rows[OP_COUNT] = {
    [OP_INPUT] = run_nothing,     [OP_CONV] = run_product,
    [OP_DECONV] = run_nothing,    [OP_POOL] = run_pool,
    [OP_CONV_POOL] = run_nothing, [OP_FC] = run_product,
    [OP_BN] = run_nothing,        [OP_SCALE] = run_nothing,
    [OP_ACT] = run_function,      [OP_ELTWISE] = run_binary,
    [OP_CONCAT] = run_concat,     [OP_SLICE] = run_slice,
    [OP_LRN] = run_nothing,       [OP_SOFTMAX] = run_softmax,
    [OP_UPSAMPLE] = run_upsample, [OP_PAD] = run_pad,
    [OP_RESHAPE] = run_function,  [OP_CONSTANT] = run_constant,
    [OP_MATMUL] = run_nothing,    [OP_TRANSPOSE] = run_transpose,
    [OP_REDUCE] = run_reduce,     [OP_GATHER] = run_nothing,
    [OP_MIX] = run_nothing,       [OP_OFFSET] = run_nothing,
    [OP_PIXELS] = run_nothing,    [OP_NORM] = run_nothing,
    [OP_IDENTITY] = run_function, [OP_CALL] = run_nothing,
    [OP_ROUTINE] = run_nothing,
};

void lower_host(Lower *l, NodeId id) {
    const Node *node = graph_node(l->g, id);
    Host h = {.l = l,
              .node = node,
              .layer = &l->layer[id.i],
              .maker = {.arena = l->arena, .spec = l->spec, .g = l->g}};
    if (node->n_out != 1)
        refuse(&h, "it has several results");
    else
        rows[node->op](&h);
}
