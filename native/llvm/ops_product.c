/* ops_product.c - inner products; see ops_window.h. */
#include "native/llvm/ops_window.h"

#include "native/llvm/codes.h"

bool product_read(const Kernel *k, Product *p) {
    const Shape *in = &k->in[0].shape, *out = &k->out[0].shape;
    p->batch = in->rank > 1 && out->rank > 1 ? in->dim[0] : 1;
    p->n = shape_count(in) / p->batch;
    p->m = shape_count(out) / p->batch;
    return p->n * p->batch == shape_count(in) &&
           p->m * p->batch == shape_count(out) &&
           p->n * p->m <= SHAPE_MAX_COUNT &&
           has_constant(k, "weight", p->n * p->m) &&
           fits_constant(k, "bias", p->m) && fits_constant(k, "slope", p->m);
}

bool check_fc(const Kernel *k) {
    Product p;
    return product_read(k, &p);
}

/* Several vectors of sums hide how long a multiplication takes. */
enum { SUMS = 4 };

static Val dot_vectors(Code *c, Val a, Val a_at, Val b, Val b_at, uint64_t n) {
    uint32_t step = c->lanes * SUMS;
    Type type = code_vector(c, c->lanes);
    Val sum[SUMS];
    Loop loop;
    for (int i = 0; i < SUMS; i++)
        sum[i] = code_variable(c, LLVMConstNull(type));
    Val at = loop_open(c, &loop, code_index(c, 0),
                       code_index(c, (int64_t)(n - n % step)), step);
    for (uint32_t i = 0; i < SUMS; i++) {
        Val more = index_add(c, at, code_index(c, i * c->lanes));
        Val x = code_load_vector(c, a, index_add(c, a_at, more), c->lanes);
        Val y = code_load_vector(c, b, index_add(c, b_at, more), c->lanes);
        code_set(c, sum[i], float_fma(c, x, y, code_get(c, type, sum[i])));
    }
    loop_close(c, &loop);
    Val all = code_get(c, type, sum[0]);
    for (int i = 1; i < SUMS; i++)
        all = float_add(c, all, code_get(c, type, sum[i]));
    return float_sum(c, all);
}

/* Inner product of n floats behind a_at and b_at; both dense. */
static Val dot(Code *c, Val a, Val a_at, Val b, Val b_at, uint64_t n) {
    uint64_t whole = n - n % (c->lanes * SUMS);
    Loop loop;
    Val first = whole ? dot_vectors(c, a, a_at, b, b_at, n) : code_scalar(c, 0);
    Val sum = code_variable(c, first);
    Val at = loop_open(c, &loop, code_index(c, (int64_t)whole),
                       code_index(c, (int64_t)n), 1);
    Val x = code_load(c, a, index_add(c, a_at, at));
    Val y = code_load(c, b, index_add(c, b_at, at));
    code_set(c, sum, float_fma(c, x, y, code_get(c, c->f32, sum)));
    loop_close(c, &loop);
    return code_get(c, c->f32, sum);
}

/* The same where the first operand has gaps. */
static Val dot_scattered(const Emit *e, Val in_at, Val weight_at, uint64_t n) {
    Code *c = e->c;
    Loop loop;
    Val sum = code_variable(c, code_scalar(c, 0));
    Val at = loop_count(c, &loop, n);
    Val place = operand_linear(c, &e->k->in[0], index_add(c, in_at, at));
    Val x = emit_get(e, 0, place);
    Val y =
        code_load(c, emit_constant(e, "weight"), index_add(c, weight_at, at));
    code_set(c, sum, float_fma(c, x, y, code_get(c, c->f32, sum)));
    loop_close(c, &loop);
    return code_get(c, c->f32, sum);
}

void emit_fc(const Emit *e) {
    Code *c = e->c;
    Product p;
    Loop batches, results;
    product_read(e->k, &p);
    Val batch = loop_count(c, &batches, p.batch);
    Val o = loop_count(c, &results, p.m);
    Val in_at = index_mul(c, batch, p.n), weight_at = index_mul(c, o, p.n);
    Val sum = operand_is_dense(&e->k->in[0]) && !e->k->quant
                  ? dot(c, emit_constant(e, "weight"), weight_at, e->in[0],
                        in_at, p.n)
                  : dot_scattered(e, in_at, weight_at, p.n);
    sum = float_add(c, sum, emit_bias(e, o));
    Val at = index_step(c, batch, p.m, o);
    emit_put(e, operand_linear(c, &e->k->out[0], at), sum, o);
    loop_close(c, &results);
    loop_close(c, &batches);
}
