/* kernel.c - what a kernel says of itself; see program.h. */
#include "native/program.h"

#include <string.h>

Operand operand_dense(const Shape *shape, const Quant *quant) {
    uint32_t c, h, w;
    shape_chw(shape, &c, &h, &w);
    return (Operand){.shape = *shape,
                     .block = 1,
                     .c_step = (uint64_t)h * w,
                     .h_step = w,
                     .w_step = 1,
                     .cell = quant_type[quant->type].size,
                     .quant = *quant};
}

uint32_t operand_size(const Operand *operand) {
    return quant_type[operand->quant.type].size;
}

bool operand_alike(const Operand *a, const Operand *b) {
    return shape_equal(&a->shape, &b->shape) && a->block == b->block &&
           a->c_step == b->c_step && a->h_step == b->h_step &&
           a->w_step == b->w_step && a->cell == b->cell;
}

bool kernel_on_codes(const Kernel *kernel) {
    return kernel->quant && kernel->quant->rule != QUANT_REALS;
}

bool kernel_is_wide(const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->n_in; i++)
        if (operand_size(&kernel->in[i]) > 1)
            return true;
    return operand_size(&kernel->out[0]) > 1;
}

const AttrPair *kernel_attr(const Kernel *kernel, const char *name) {
    return attr_find(kernel->attr, kernel->n_attrs, name);
}

double kernel_number(const Kernel *kernel, const char *name, uint32_t at,
                     double absent) {
    return attr_number(kernel_attr(kernel, name), at, absent);
}

uint32_t kernel_count(const Kernel *kernel, const char *name, uint32_t at,
                      uint32_t absent) {
    return attr_count(kernel_attr(kernel, name), at, absent);
}

bool kernel_is(const Kernel *kernel, const char *name, const char *word) {
    return attr_is(kernel_attr(kernel, name), word);
}

int32_t kernel_constant(const Kernel *kernel, const char *role) {
    for (uint32_t i = 0; i < kernel->n_constants; i++)
        if (strcmp(kernel->constant[i].role, role) == 0)
            return (int32_t)i;
    return -1;
}

bool quant_shifts_high(const QuantLayer *q) {
    bool high = true;
    for (uint32_t i = 0; i < q->n; i++)
        high = high && q->scale[i].shift > 32 &&
               (!q->below || q->below[i].shift > 32);
    return high;
}

static const char *operand_text(Arena *arena, const Operand *o) {
    return arena_printf(
        arena, "%s/%u:%llu:%llu:%llu*%u %s", shape_text(arena, &o->shape),
        o->block, (unsigned long long)o->c_step, (unsigned long long)o->h_step,
        (unsigned long long)o->w_step, o->cell, quant_type[o->quant.type].name);
}

/* Scales of single channels are constants, and not said here. */
static const char *quant_text(Arena *arena, const QuantLayer *q) {
    const char *text = arena_printf(
        arena, "%s %s zero=%d,%d,%d in=%d..%d left=%u minus=%d",
        quant_rule_name[q->rule], quant_round_name[q->round], q->zero_in[0],
        q->zero_in[1], q->zero_out, q->lo, q->hi, q->left, q->minus);
    for (uint32_t i = 0; i < q->n && q->rule != QUANT_SUMS; i++)
        text = arena_printf(arena, "%s %d>>%u", text, q->scale[i].factor,
                            q->scale[i].shift);
    return arena_printf(arena, "%s%s", text,
                        quant_shifts_high(q) ? " high" : "");
}

static const char *attr_text(Arena *arena, const AttrPair *attr) {
    const char *text =
        arena_printf(arena, "%s=%s", attr->name, attr->word ? attr->word : "");
    for (uint32_t i = 0; i < attr->n; i++)
        text = arena_printf(arena, "%s,%a", text, attr->value[i]);
    return text;
}

const char *kernel_text(Arena *arena, const Kernel *k) {
    const char *text = arena_printf(arena, "%s over=%d%s", k->kind, k->over,
                                    k->overlaps ? " overlaps" : "");
    for (uint32_t i = 0; i < k->n_in; i++)
        text =
            arena_printf(arena, "%s %s", text, operand_text(arena, &k->in[i]));
    for (uint32_t i = 0; i < k->n_out; i++)
        text = arena_printf(arena, "%s >%s", text,
                            operand_text(arena, &k->out[i]));
    for (uint32_t i = 0; i < k->n_constants; i++)
        text = arena_printf(arena, "%s %s:%s:%s", text, k->constant[i].role,
                            shape_text(arena, &k->constant[i].shape),
                            const_kind_word(k->constant[i].kind));
    if (k->quant)
        text = arena_printf(arena, "%s %s", text, quant_text(arena, k->quant));
    for (uint32_t i = 0; i < k->n_attrs; i++)
        text =
            arena_printf(arena, "%s %s", text, attr_text(arena, &k->attr[i]));
    return text;
}
