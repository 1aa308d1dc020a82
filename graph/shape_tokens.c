/* shape_tokens.c - shape inference of operators on pixels as tokens; see
 * shape.c, whose promises it shares. */
#include "graph/shape.h"

#include <math.h>

static const char *text(const Infer *x, const Shape *shape) {
    return shape_text(x->g->arena, shape);
}

static bool is_image(const Shape *shape) {
    return shape->rank == 4 && shape->dim[0] == 1;
}

static bool mix_fits(const Infer *x, const Shape *a, const Shape *b) {
    uint32_t groups = x->node->attr.mix.groups;
    const uint32_t *windows = x->node->attr.mix.windows;
    const uint32_t *shift = x->node->attr.mix.shift;
    if (x->node->attr.mix.over_pixels > 1 ||
        x->node->attr.mix.over_pixels + x->node->attr.mix.attends > 1 ||
        !groups || a->dim[1] % groups || b->dim[1] % groups)
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (!windows[i] || a->dim[2 + i] % windows[i] ||
            b->dim[2 + i] % windows[i] || shift[i] >= a->dim[2 + i] ||
            (shift[i] && a->dim[2 + i] != b->dim[2 + i]))
            return false;
    return true;
}

bool infer_mix(const Infer *x) {
    const Shape *a = &x->in;
    const Shape *b = &graph_tensor(x->g, x->node->in[1])->shape;
    uint32_t groups = x->node->attr.mix.groups;
    if (!is_image(a) || !is_image(b) || !mix_fits(x, a, b))
        return shape_fail(x, "cannot multiply pixels of %s by those of %s",
                          text(x, a), text(x, b));
    const uint32_t *windows = x->node->attr.mix.windows;
    uint64_t pixels =
        (uint64_t)(b->dim[2] / windows[0]) * (b->dim[3] / windows[1]);
    bool sums = x->node->attr.mix.over_pixels;
    bool attends = x->node->attr.mix.attends;
    bool fits = sums      ? a->dim[1] == groups * pixels
                : attends ? a->dim[1] < b->dim[1]
                          : a->dim[1] == b->dim[1];
    if (!fits || groups * pixels > UINT32_MAX)
        return shape_fail(x, "cannot multiply channels of %s by those of %s",
                          text(x, a), text(x, b));
    *x->out = *a;
    x->out->dim[1] = sums      ? b->dim[1]
                     : attends ? b->dim[1] - a->dim[1]
                               : (uint32_t)(groups * pixels);
    return shape_check_size(x, "output", x->out);
}

bool infer_offset(const Infer *x) {
    const Shape *period = &x->node->attr.offset.period;
    bool fits = is_image(&x->in) && period->rank == 3;
    for (uint32_t i = 0; fits && i < 3; i++)
        fits = period->dim[i] && x->in.dim[1 + i] % period->dim[i] == 0;
    *x->out = x->in;
    return fits || shape_fail(x, "%s does not repeat in its input %s",
                              text(x, period), text(x, &x->in));
}

/* A file can bring any index. */
static bool indices_inside(const Infer *x, uint64_t pixels) {
    ConstId id = x->node->constant[CONST_INDEX];
    if (id.i == NONE)
        return true;
    const Const *c = graph_const(x->g, id);
    uint64_t n = shape_count(&c->shape);
    Arena *scratch = arena_new("infer_pixels");
    double *index = ARENA_ARRAY(scratch, double, n);
    const_read_f64(c, index);
    bool inside = true;
    for (uint64_t i = 0; i < n; i++)
        inside &= index[i] >= 0 && index[i] <= (double)pixels &&
                  floor(index[i]) == index[i];
    arena_free(scratch);
    return inside || shape_fail(x, "an index is outside 0..%llu",
                                (unsigned long long)pixels);
}

bool infer_pixels(const Infer *x) {
    enum { MOST = 1 << 24 }; /* floats tell them apart up to here */
    uint64_t rows = x->node->attr.plane[0], columns = x->node->attr.plane[1];
    if (!is_image(&x->in))
        return shape_fail(x, "its input %s is no image", text(x, &x->in));
    uint64_t pixels = (uint64_t)x->in.dim[2] * x->in.dim[3];
    if (!rows || !columns || rows * columns > MOST || pixels > MOST)
        return shape_fail(x, "a plane of %llux%llu is empty or too large",
                          (unsigned long long)rows,
                          (unsigned long long)columns);
    *x->out = x->in;
    x->out->dim[2] = (uint32_t)rows;
    x->out->dim[3] = (uint32_t)columns;
    return shape_check_size(x, "output", x->out) && indices_inside(x, pixels);
}
