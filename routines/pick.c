/* pick.c - elements and slices by indices that are data; see routine.h. */
#include "routines/kinds.h"

#include <math.h>
#include <string.h>

/* ---- walking ---- */

/* The indices of the elements of a shape, one after the other. */
typedef struct Walk {
    const Shape *shape;
    uint32_t index[SHAPE_MAX_RANK];
} Walk;

static void walk_on(Walk *w) {
    for (uint32_t axis = w->shape->rank; axis-- > 0;) {
        if (++w->index[axis] < w->shape->dim[axis])
            return;
        w->index[axis] = 0;
    }
}

/* The element of `shape` at the walk's indices, with another one at `axis`. */
static uint64_t element(const Walk *w, const Shape *shape, uint32_t axis,
                        uint64_t at) {
    uint64_t place = 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        place = place * shape->dim[i] + (i == axis ? at : w->index[i]);
    return place;
}

/* ---- slices along an axis ---- */

const char *take_shape(const RoutineCall *call, Shape *out) {
    const Shape *in = &call->shape[0], *by = &call->shape[1];
    uint32_t axis = routine_whole(call, "axis", 0);
    uint32_t batch = routine_whole(call, "batch", 0);
    if (axis >= in->rank || batch > axis || batch > by->rank)
        return "takes along an axis that its input has not";
    if (in->rank + by->rank - 1 - batch > SHAPE_MAX_RANK)
        return "makes too many axes";
    for (uint32_t i = 0; i < batch; i++)
        if (in->dim[i] != by->dim[i])
            return routine_misfit(call, 0, 1);
    for (uint32_t i = 0; i < axis; i++)
        out->dim[out->rank++] = in->dim[i];
    for (uint32_t i = batch; i < by->rank; i++)
        out->dim[out->rank++] = by->dim[i];
    for (uint32_t i = axis + 1; i < in->rank; i++)
        out->dim[out->rank++] = in->dim[i];
    if (!out->rank)
        *out = (Shape){1, {1}};
    return NULL;
}

/* One slice, or zeros where there is none. */
static void copy(float *to, const float *from, int64_t at, uint64_t n) {
    if (at < 0)
        memset(to, 0, n * sizeof *to);
    else
        memcpy(to, from + (uint64_t)at * n, n * sizeof *to);
}

void take_run(const RoutineCall *call) {
    const Shape *in = &call->shape[0], *by = &call->shape[1];
    uint32_t axis = routine_whole(call, "axis", 0);
    uint32_t batch = routine_whole(call, "batch", 0), size = in->dim[axis];
    uint64_t outer = routine_product(in, 0, batch);
    uint64_t middle = routine_product(in, batch, axis);
    uint64_t inner = routine_product(in, axis + 1, in->rank);
    uint64_t count = routine_product(by, batch, by->rank);
    float *to = call->out;
    for (uint64_t o = 0; o < outer * middle; o++)
        for (uint64_t i = 0; i < count; i++, to += inner)
            copy(to, call->in[0] + o * size * inner,
                 routine_place(call->in[1][o / middle * count + i], size),
                 inner);
}

/* ---- elements along an axis ---- */

/* Do both have as many axes, and the second no more elsewhere than the first?
 */
static const char *check_elements(const RoutineCall *call) {
    const Shape *in = &call->shape[0], *by = &call->shape[1];
    uint32_t axis = routine_whole(call, "axis", 0);
    if (axis >= in->rank || by->rank != in->rank)
        return routine_misfit(call, 0, 1);
    for (uint32_t i = 0; i < in->rank; i++)
        if (i != axis && by->dim[i] > in->dim[i])
            return routine_misfit(call, 0, 1);
    return NULL;
}

const char *gather_elements_shape(const RoutineCall *call, Shape *out) {
    *out = call->shape[1];
    return check_elements(call);
}

void gather_elements_run(const RoutineCall *call) {
    uint32_t axis = routine_whole(call, "axis", 0);
    const Shape *in = &call->shape[0];
    Walk w = {.shape = &call->shape[1]};
    uint64_t n = shape_count(w.shape);
    for (uint64_t i = 0; i < n; i++, walk_on(&w)) {
        int64_t at = routine_place(call->in[1][i], in->dim[axis]);
        call->out[i] =
            at < 0 ? 0 : call->in[0][element(&w, in, axis, (uint64_t)at)];
    }
}

static void store(uint32_t reduction, float *to, float value) {
    switch (reduction) {
    case REDUCTION_add:
        *to += value;
        break;
    case REDUCTION_mul:
        *to *= value;
        break;
    case REDUCTION_max:
        *to = fmaxf(*to, value);
        break;
    case REDUCTION_min:
        *to = fminf(*to, value);
        break;
    default:
        *to = value;
    }
}

static void copy_first(const RoutineCall *call) {
    memcpy(call->out, call->in[0],
           shape_count(&call->out_shape) * sizeof *call->out);
}

const char *scatter_elements_shape(const RoutineCall *call, Shape *out) {
    *out = call->shape[0];
    if (!shape_equal(&call->shape[1], &call->shape[2]))
        return routine_misfit(call, 1, 2);
    return check_elements(call);
}

void scatter_elements_run(const RoutineCall *call) {
    uint32_t axis = routine_whole(call, "axis", 0);
    uint32_t reduction = routine_whole(call, "reduction", 0);
    const Shape *in = &call->shape[0];
    Walk w = {.shape = &call->shape[1]};
    uint64_t n = shape_count(w.shape);
    copy_first(call);
    for (uint64_t i = 0; i < n; i++, walk_on(&w)) {
        int64_t at = routine_place(call->in[1][i], in->dim[axis]);
        if (at >= 0)
            store(reduction, &call->out[element(&w, in, axis, (uint64_t)at)],
                  call->in[2][i]);
    }
}

/* ---- slices by rows of indices ---- */

/* Axes [batch, batch + n) of the first are in each row of the second. */
typedef struct Rows {
    uint32_t batch, n;
    uint64_t images, rows; /* rows of each image of the batch */
    uint64_t size, inner;  /* slices of each image, elements of a slice */
} Rows;

static Rows rows_of(const RoutineCall *call, uint32_t batch) {
    const Shape *in = &call->shape[0], *by = &call->shape[1];
    uint32_t n = by->dim[by->rank - 1];
    return (Rows){batch,
                  n,
                  routine_product(in, 0, batch),
                  routine_product(by, batch, by->rank - 1),
                  routine_product(in, batch, batch + n),
                  routine_product(in, batch + n, in->rank)};
}

static const char *check_rows(const RoutineCall *call, uint32_t batch) {
    const Shape *in = &call->shape[0], *by = &call->shape[1];
    if (batch >= by->rank || batch >= in->rank ||
        by->dim[by->rank - 1] > in->rank - batch)
        return routine_misfit(call, 0, 1);
    for (uint32_t i = 0; i < batch; i++)
        if (in->dim[i] != by->dim[i])
            return routine_misfit(call, 0, 1);
    return NULL;
}

/* The slice within an image that a row names; -1: none. */
static int64_t slice_of(const Rows *r, const Shape *in, const float *row) {
    int64_t place = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t size = in->dim[r->batch + i];
        int64_t at = routine_place(row[i], size);
        if (at < 0)
            return -1;
        place = place * size + at;
    }
    return place;
}

/* The shape of all slices together. */
static Shape rows_shape(const RoutineCall *call, uint32_t batch) {
    const Shape *in = &call->shape[0], *by = &call->shape[1];
    Shape out = *by;
    uint32_t n = by->dim[by->rank - 1];
    out.rank--;
    for (uint32_t i = batch + n; i < in->rank; i++) {
        if (out.rank < SHAPE_MAX_RANK)
            out.dim[out.rank] = in->dim[i];
        out.rank++;
    }
    return out.rank ? out : (Shape){1, {1}};
}

const char *gather_nd_shape(const RoutineCall *call, Shape *out) {
    uint32_t batch = routine_whole(call, "batch", 0);
    const char *wrong = check_rows(call, batch);
    if (!wrong)
        *out = rows_shape(call, batch);
    return wrong;
}

void gather_nd_run(const RoutineCall *call) {
    Rows r = rows_of(call, routine_whole(call, "batch", 0));
    const float *row = call->in[1];
    float *to = call->out;
    for (uint64_t image = 0; image < r.images; image++)
        for (uint64_t i = 0; i < r.rows; i++, row += r.n, to += r.inner)
            copy(to, call->in[0] + image * r.size * r.inner,
                 slice_of(&r, &call->shape[0], row), r.inner);
}

const char *scatter_nd_shape(const RoutineCall *call, Shape *out) {
    *out = call->shape[0];
    const char *wrong = check_rows(call, 0);
    if (wrong)
        return wrong;
    Shape slices = rows_shape(call, 0);
    return shape_equal(&slices, &call->shape[2]) ? NULL
                                                 : routine_misfit(call, 1, 2);
}

void scatter_nd_run(const RoutineCall *call) {
    Rows r = rows_of(call, 0);
    uint32_t reduction = routine_whole(call, "reduction", 0);
    copy_first(call);
    for (uint64_t i = 0; i < r.rows; i++) {
        int64_t at = slice_of(&r, &call->shape[0], call->in[1] + i * r.n);
        for (uint64_t k = 0; at >= 0 && k < r.inner; k++)
            store(reduction, &call->out[(uint64_t)at * r.inner + k],
                  call->in[2][i * r.inner + k]);
    }
}
