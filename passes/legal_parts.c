/* legal_parts.c - a node as the windows that it is made of, and the quantities
 * of these that a hwspec can bound (limits.def), one function each.
 */
#include "passes/legal_parts.h"

#include "base/arith.h"

static uint32_t difference(uint32_t a, uint32_t b) {
    return a > b ? a - b : b - a;
}

static uint32_t uneven(const Part *p, int axis) {
    return difference(p->pad[axis], p->pad_end[axis]);
}

static uint32_t not_same(const Part *p, int axis) {
    uint32_t same = (p->kernel[axis] - 1) / 2;
    return larger32(difference(p->pad[axis], same),
                    difference(p->pad_end[axis], same));
}

/* Without replication, which may be off, and never takes fewer. */
static uint64_t weight_rows(const Part *p) {
    uint32_t area = p->kernel[0] * p->kernel[1];
    return hwspec_weight_rows(hwspec_repl_none(p->spec, p->in.c / p->groups),
                              area);
}

#define QUANTITY(NAME, expression)                                             \
    static uint64_t quantity_##NAME(const Part *p) {                           \
        return expression;                                                     \
    }
QUANTITY(KERNEL_W, p->kernel[1])
QUANTITY(KERNEL_H, p->kernel[0])
QUANTITY(STRIDE_W, p->stride[1])
QUANTITY(STRIDE_H, p->stride[0])
QUANTITY(PAD_W, p->pad[1])
QUANTITY(PAD_H, p->pad[0])
QUANTITY(PAD_UNEVEN, larger32(uneven(p, 0), uneven(p, 1)))
QUANTITY(PAD_NOT_SAME, larger32(not_same(p, 0), not_same(p, 1)))
QUANTITY(DILATION_W, p->dilation[1])
QUANTITY(DILATION_H, p->dilation[0])
QUANTITY(IN_C, p->in.c)
QUANTITY(IN_W, p->in.w)
QUANTITY(IN_H, p->in.h)
QUANTITY(OUT_C, p->out.c)
QUANTITY(OUT_W, p->out.w)
QUANTITY(OUT_H, p->out.h)
QUANTITY(TAPS, (uint64_t)p->kernel[0] * p->kernel[1] * (p->in.c / p->groups))
QUANTITY(WEIGHT_ROWS, weight_rows(p))
QUANTITY(FACTOR_W, p->factor[1])
QUANTITY(FACTOR_H, p->factor[0])
#undef QUANTITY

typedef struct Quantity {
    uint32_t of; /* PART_... */
    uint64_t (*value)(const Part *p);
} Quantity;

static const Quantity quantities[HW_LIMIT_COUNT] = {
#define ROW(NAME, part) [HW_LIMIT_##NAME] = {part, quantity_##NAME}
    ROW(KERNEL_W, PART_WINDOW),   ROW(KERNEL_H, PART_WINDOW),
    ROW(STRIDE_W, PART_WINDOW),   ROW(STRIDE_H, PART_WINDOW),
    ROW(PAD_W, PART_WINDOW),      ROW(PAD_H, PART_WINDOW),
    ROW(PAD_UNEVEN, PART_WINDOW), ROW(PAD_NOT_SAME, PART_WINDOW),
    ROW(DILATION_W, PART_WINDOW), ROW(DILATION_H, PART_WINDOW),
    ROW(IN_C, PART_VOLUME),       ROW(IN_W, PART_VOLUME),
    ROW(IN_H, PART_VOLUME),       ROW(OUT_C, PART_VOLUME),
    ROW(OUT_W, PART_VOLUME),      ROW(OUT_H, PART_VOLUME),
    ROW(TAPS, PART_WEIGHT),       ROW(WEIGHT_ROWS, PART_WEIGHT),
    ROW(FACTOR_W, PART_FACTOR),   ROW(FACTOR_H, PART_FACTOR),
#undef ROW
};

/* ---- parts ---- */

static Size size_of(const Shape *shape) {
    Size size;
    shape_chw(shape, &size.c, &size.h, &size.w);
    return size;
}

static Part plain_part(const HwSpec *spec, Size in, Size out) {
    return (Part){
        .has = PART_VOLUME,
        .spec = spec,
        .in = in,
        .out = out,
        .groups = 1,
        .kernel = {1, 1},
        .stride = {1, 1},
        .dilation = {1, 1},
        .factor = {1, 1},
    };
}

static Part conv_part(const HwSpec *spec, const ConvAttr *conv, Size in,
                      Size out) {
    Part part = plain_part(spec, in, out);
    part.has |= PART_WINDOW | PART_WEIGHT;
    part.groups = conv->groups;
    for (int axis = 0; axis < 2; axis++) {
        part.kernel[axis] = conv->kernel[axis];
        part.stride[axis] = conv->stride[axis];
        part.dilation[axis] = conv->dilation[axis];
        part.pad[axis] = conv->pad[axis];
        part.pad_end[axis] = conv->pad_end[axis];
    }
    return part;
}

static Part pool_part(const HwSpec *spec, const PoolAttr *pool, Size in,
                      Size out) {
    Part part = plain_part(spec, in, out);
    part.has |= PART_WINDOW;
    if (pool->global) {
        part.kernel[0] = in.h;
        part.kernel[1] = in.w;
        return part;
    }
    for (int axis = 0; axis < 2; axis++) {
        part.kernel[axis] = pool->kernel[axis];
        part.stride[axis] = pool->stride[axis];
        part.pad[axis] = pool->pad[axis];
        part.pad_end[axis] = pool->pad_end[axis];
    }
    return part;
}

static Size conv_out(const ConvAttr *conv, Size in) {
    uint32_t hw[2], from[2] = {in.h, in.w};
    for (int axis = 0; axis < 2; axis++)
        hw[axis] = conv_out_size(from[axis], conv->kernel[axis],
                                 conv->stride[axis], conv->dilation[axis],
                                 conv->pad[axis], conv->pad_end[axis]);
    return (Size){conv->out_c, hw[0], hw[1]};
}

static uint32_t conv_pool_parts(const Candidate *c, Part part[2]) {
    Size in = size_of(c->in), mid = conv_out(&c->node->attr.conv, in);
    part[0] = conv_part(c->spec, &c->node->attr.conv, in, mid);
    part[1] = pool_part(c->spec, &c->node->attr.pool, mid, size_of(c->out));
    return 2;
}

uint32_t legal_node_parts(const Candidate *c, Part part[2]) {
    Size in = size_of(c->in), out = size_of(c->out);
    switch (c->node->op) {
    case OP_CONV:
    case OP_DECONV:
        part[0] = conv_part(c->spec, &c->node->attr.conv, in, out);
        return 1;
    case OP_CONV_POOL:
        return conv_pool_parts(c, part);
    case OP_POOL:
        part[0] = pool_part(c->spec, &c->node->attr.pool, in, out);
        return 1;
    default:
        break;
    }
    part[0] = plain_part(c->spec, in, out);
    if (c->node->op == OP_FC) {
        part[0].has |= PART_WEIGHT;
        part[0].kernel[0] = in.h;
        part[0].kernel[1] = in.w;
    }
    if (c->node->op == OP_UPSAMPLE) {
        part[0].has |= PART_FACTOR;
        part[0].factor[0] = c->node->attr.up.factor[0];
        part[0].factor[1] = c->node->attr.up.factor[1];
    }
    return 1;
}

uint32_t legal_broken(const Part *part, const HwEngine *engine) {
    for (uint32_t i = 0; i < HW_LIMIT_COUNT; i++) {
        const HwRange *range = &engine->limit[i];
        if (range->set && (part->has & quantities[i].of) &&
            !hw_range_has(range, quantities[i].value(part)))
            return i;
    }
    return HW_LIMIT_COUNT;
}

const char *legal_within(Arena *arena, const Part *part,
                         const HwEngine *engine) {
    uint32_t i = legal_broken(part, engine);
    if (i == HW_LIMIT_COUNT || !arena)
        return i == HW_LIMIT_COUNT ? NULL : "";
    return legal_say(arena, "%s %llu is outside %s of engine %s",
                     hw_limit_name[i],
                     (unsigned long long)quantities[i].value(part),
                     hw_range_text(arena, &engine->limit[i]), engine->name);
}
