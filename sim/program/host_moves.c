/* host_moves.c - nodes that move elements: see run.h.
 *
 * Elements are of the type of the input's range, and stay as they are.
 */
#include "sim/program/run.h"

#include <math.h>
#include <string.h>

/* Both operands of a node with one input. */
static bool two(ProgramRun *run, Operand *in, Operand *out) {
    if (!operand_of(run, node_scope(run), "in", in) ||
        !operand_of(run, node_scope(run), "out", out))
        return false;
    return in->reals == out->reals ||
           prog_fault(run, "in and out have different types");
}

static bool room(ProgramRun *run, const Operand *out, uint64_t elements) {
    if (operand_count(out) == elements)
        return true;
    return prog_fault(run, "%s: the result has %llu elements, its range %llu",
                      out->what, (unsigned long long)elements,
                      (unsigned long long)operand_count(out));
}

/* ---- between memories ---- */

static bool load(ProgramRun *run) {
    Operand in, out;
    Dims d;
    Cells from, to;
    if (!operand_of(run, node_scope(run), "in", &in) ||
        !operand_of(run, node_scope(run), "out", &out) ||
        !dims_of(run, "in", &d))
        return false;
    Volume v = {d.at[1], d.at[2], d.at[3], {0}};
    if (in.reals || out.reals)
        return prog_fault(run, "only codes are laid out");
    if (!cells_volume(run, "in", in.bank, in.start, d.at[0], &v, &from) ||
        !cells_volume(run, "out", out.bank, out.start, d.at[0], &v, &to))
        return false;
    if (from.end - from.start != in.size || to.end - to.start != out.size)
        return prog_fault(run,
                          "in and out take %llu and %llu bytes, it says "
                          "%llu and %llu",
                          (unsigned long long)(from.end - from.start),
                          (unsigned long long)(to.end - to.start),
                          (unsigned long long)in.size,
                          (unsigned long long)out.size);
    from.shaped = run->spec->memory[in.bank].role == HW_ACTIVE;
    to.shaped = run->spec->memory[out.bank].role == HW_ACTIVE;
    cells_write(run, &to,
                arena_printf(run->arena, "node %u (%s)", run->node,
                             prog_row_name(run->program->node[run->node].row)),
                cells_read(run, &from));
    return true;
}

static bool copy(ProgramRun *run) {
    Operand in, out;
    if (!two(run, &in, &out) || !room(run, &out, operand_count(&in)))
        return false;
    return result_write(run, &out, operand_bytes(run, &in));
}

/* ---- of four axes ---- */

/* For each element of the result, outermost axis first: the input's element, or
 * -1 for the value of a pad. */
typedef int64_t Source(const void *context, const uint32_t at[4]);

static bool gather(ProgramRun *run, const Operand *in, const Operand *out,
                   const Dims *to, Source *source, const void *context,
                   const uint8_t pad[4]) {
    uint32_t unit = operand_unit(in);
    const uint8_t *from = operand_bytes(run, in);
    if (!dims_fill(run, to, out) || !from)
        return false;
    uint8_t *made = ARENA_ARRAY(run->work, uint8_t, out->size);
    uint64_t i = 0;
    uint32_t at[4];
    for (at[0] = 0; at[0] < to->at[0]; at[0]++)
        for (at[1] = 0; at[1] < to->at[1]; at[1]++)
            for (at[2] = 0; at[2] < to->at[2]; at[2]++)
                for (at[3] = 0; at[3] < to->at[3]; at[3]++) {
                    int64_t k = source(context, at);
                    memcpy(made + i++ * unit,
                           k < 0 ? pad : from + (uint64_t)k * unit, unit);
                }
    return result_write(run, out, made);
}

static int64_t element(const Dims *d, const int64_t at[4]) {
    int64_t k = 0;
    for (int i = 0; i < 4; i++) {
        if (at[i] < 0 || at[i] >= d->at[i])
            return -1;
        k = k * d->at[i] + at[i];
    }
    return k;
}

/* By axis, index = start + step * index of the result's axis. */
typedef struct Stepped {
    Dims in;
    int64_t start[4], step[4];
    uint32_t axis[4]; /* of the result that an input's axis is */
} Stepped;

static int64_t stepped(const void *context, const uint32_t at[4]) {
    const Stepped *s = context;
    int64_t from[4];
    for (int i = 0; i < 4; i++)
        from[i] = s->start[i] + s->step[i] * at[s->axis[i]];
    return element(&s->in, from);
}

static bool pad(ProgramRun *run) {
    static const char axis[] = "nchw";
    enum { MOST = 1 << 14 };
    Operand in, out;
    Dims to;
    Stepped s = {.step = {1, 1, 1, 1}, .axis = {0, 1, 2, 3}};
    int64_t value;
    if (!two(run, &in, &out) || !dims_of(run, "in", &s.in) ||
        !dims_fill(run, &s.in, &in) ||
        !node_num(run, "value", INT32_MIN, UINT32_MAX, &value))
        return false;
    for (int i = 0; i < 4; i++) {
        int64_t before, after;
        if (!node_num(run, arena_printf(run->work, "before.%c", axis[i]), -MOST,
                      MOST, &before) ||
            !node_num(run, arena_printf(run->work, "after.%c", axis[i]), -MOST,
                      MOST, &after))
            return false;
        int64_t extent = s.in.at[i] + before + after;
        if (extent < 1)
            return prog_fault(run, "axis %c: nothing is left", axis[i]);
        to.at[i] = (uint32_t)extent;
        s.start[i] = -before;
    }
    uint8_t bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> 8 * i);
    return gather(run, &in, &out, &to, stepped, &s, bytes);
}

static bool transpose(ProgramRun *run) {
    Operand in, out;
    Dims to;
    Stepped s = {.step = {1, 1, 1, 1}};
    const int64_t *perm = node_nums(run, "perm", 4);
    if (!perm || !two(run, &in, &out) || !dims_of(run, "in", &s.in) ||
        !dims_fill(run, &s.in, &in))
        return false;
    bool seen[4] = {false};
    for (uint32_t i = 0; i < 4; i++) {
        if (perm[i] < 0 || perm[i] > 3 || seen[perm[i]])
            return prog_fault(run, "perm is no order of four axes");
        seen[perm[i]] = true;
        to.at[i] = s.in.at[perm[i]];
        s.axis[perm[i]] = i;
    }
    return gather(run, &in, &out, &to, stepped, &s, NULL);
}

static bool slice(ProgramRun *run) {
    Operand in, out;
    Dims to;
    Stepped s = {.axis = {0, 1, 2, 3}};
    const int64_t *begin = node_nums(run, "begin", 4);
    const int64_t *end = node_nums(run, "end", 4);
    const int64_t *step = node_nums(run, "step", 4);
    if (!begin || !end || !step || !two(run, &in, &out) ||
        !dims_of(run, "in", &s.in) || !dims_fill(run, &s.in, &in))
        return false;
    for (int i = 0; i < 4; i++) {
        int64_t size = s.in.at[i];
        bool up = step[i] > 0;
        if (step[i] == 0 || begin[i] < 0 || begin[i] >= size || end[i] < -1 ||
            end[i] > size || (up ? end[i] <= begin[i] : end[i] >= begin[i]))
            return prog_fault(run, "axis %d: nothing from %lld to %lld by %lld",
                              i, (long long)begin[i], (long long)end[i],
                              (long long)step[i]);
        int64_t span = up ? end[i] - begin[i] : begin[i] - end[i];
        int64_t by = up ? step[i] : -step[i];
        to.at[i] = (uint32_t)((span - 1) / by + 1);
        s.start[i] = begin[i];
        s.step[i] = step[i];
    }
    return gather(run, &in, &out, &to, stepped, &s, NULL);
}

/* ---- concat ---- */

/* Of each outer index, `extent` times inner bytes of every part. */
static bool concat(ProgramRun *run) {
    int64_t inner, outer, parts, total = 0;
    Operand out;
    const int64_t most = INT64_C(1) << 32;
    if (!node_num(run, "inner", 1, most, &inner) ||
        !node_num(run, "outer", 1, most, &outer) ||
        !node_num(run, "parts", 1, 1 << 16, &parts) ||
        !operand_of(run, node_scope(run), "out", &out))
        return false;
    const int64_t *extent = node_nums(run, "part.extent", (uint64_t)parts);
    if (!extent)
        return false;
    for (int64_t k = 0; k < parts; k++) {
        if (extent[k] < 0 || extent[k] > most)
            return prog_fault(run, "part %lld has an extent of %lld",
                              (long long)k, (long long)extent[k]);
        total += extent[k];
    }
    int64_t row, all;
    if (__builtin_mul_overflow(total, inner, &row) ||
        __builtin_mul_overflow(row, outer, &all) || (uint64_t)all != out.size)
        return prog_fault(run, "out: the parts do not fill its %llu bytes",
                          (unsigned long long)out.size);
    uint8_t *made = ARENA_ARRAY(run->work, uint8_t, out.size);
    Cells to;
    if (!cells_flat(run, "out", out.bank, out.start, out.size, &to))
        return false;
    uint64_t at = 0;
    for (uint32_t k = 0; k < parts; k++) {
        Operand in;
        Cells from;
        uint64_t bytes = (uint64_t)(extent[k] * inner);
        if (!operand_at(run, node_scope(run), "part", k, &in))
            return false;
        if (in.size != bytes * (uint64_t)outer)
            return prog_fault(run, "%s: %llu bytes, %llu are needed", in.what,
                              (unsigned long long)in.size,
                              (unsigned long long)(bytes * (uint64_t)outer));
        if (!cells_flat(run, in.what, in.bank, in.start, in.size, &from))
            return false;
        cells_apart(run, &from, &to);
        const uint8_t *bytes_in = cells_read(run, &from);
        for (uint64_t o = 0; o < (uint64_t)outer; o++)
            memcpy(made + o * (uint64_t)row + at, bytes_in + o * bytes, bytes);
        at += bytes;
    }
    return result_write(run, &out, made);
}

/* ---- resize ---- */

typedef struct Resize {
    uint32_t from[2], to[2];
    bool corners; /* the first and last elements fall together */
} Resize;

static float step_of(const Resize *r, int axis) {
    if (r->corners && r->to[axis] > 1)
        return (float)(r->from[axis] - 1) / (float)(r->to[axis] - 1);
    return (float)r->from[axis] / (float)r->to[axis];
}

/* Where the result's index lies: its neighbours, and how far from the first. */
typedef struct Between {
    uint32_t low, high;
    float rest;
} Between;

static Between between(const Resize *r, int axis, uint32_t i) {
    float at = (float)i * step_of(r, axis);
    uint32_t last = r->from[axis] - 1, low = (uint32_t)floorf(at);
    low = low < last ? low : last;
    return (Between){low, low < last ? low + 1 : last, at - (float)low};
}

static float mixed(const float *plane, uint32_t width, Between y, Between x) {
    const float *low = plane + (size_t)y.low * width;
    const float *high = plane + (size_t)y.high * width;
    return low[x.low] * ((1 - y.rest) * (1 - x.rest)) +
           high[x.low] * (y.rest * (1 - x.rest)) +
           low[x.high] * ((1 - y.rest) * x.rest) +
           high[x.high] * (y.rest * x.rest);
}

static bool resize(ProgramRun *run) {
    Operand in, out;
    Dims d;
    int64_t h, w, corners;
    const char *mode = node_word(run, "resize");
    bool nearest = !strcmp(mode, "nearest");
    if (!two(run, &in, &out) || !dims_of(run, "in", &d) ||
        !dims_fill(run, &d, &in) || !node_num(run, "out.h", 1, 1 << 14, &h) ||
        !node_num(run, "out.w", 1, 1 << 14, &w) ||
        !node_opt(run, "corners", 0, 1, 0, &corners))
        return false;
    if (!nearest && strcmp(mode, "bilinear"))
        return prog_fault(run, "nobody knows the resize `%s`", mode);
    Resize r = {{d.at[2], d.at[3]}, {(uint32_t)h, (uint32_t)w}, corners};
    uint64_t planes = (uint64_t)d.at[0] * d.at[1], n = operand_count(&in);
    if (!room(run, &out, planes * (uint64_t)h * (uint64_t)w))
        return false;
    const uint8_t *bytes = operand_bytes(run, &in);
    float *from = ARENA_ARRAY(run->work, float, n);
    float *made = ARENA_ARRAY(run->work, float, operand_count(&out));
    uint8_t *codes = ARENA_ARRAY(run->work, uint8_t, operand_count(&out));
    for (uint64_t i = 0; i < n && !in.reals; i++)
        from[i] = bytes[i];
    if (in.reals)
        memcpy(from, bytes, in.size);
    uint64_t i = 0;
    for (uint64_t p = 0; p < planes; p++)
        for (uint32_t y = 0; y < r.to[0]; y++)
            for (uint32_t x = 0; x < r.to[1]; x++, i++) {
                Between row = between(&r, 0, y), col = between(&r, 1, x);
                if (nearest)
                    row.rest = col.rest = 0;
                made[i] = mixed(from + p * r.from[0] * r.from[1], r.from[1],
                                row, col);
                codes[i] = (uint8_t)made[i];
            }
    return in.reals ? result_write(run, &out, made)
                    : result_write(run, &out, codes);
}

const ProgramHostRow prog_moves[] = {
    {"load", load},           {"copy", copy},   {"pad", pad},
    {"transpose", transpose}, {"slice", slice}, {"concat", concat},
    {"resize", resize},       {NULL, NULL},
};
