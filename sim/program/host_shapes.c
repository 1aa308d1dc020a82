/* host_shapes.c - shapes of what a processor computes; see host.h. */
#include "sim/program/host.h"

bool host_two_shapes(ProgramRun *run, TwoShapes *out) {
    static const char *const name[] = {"in", "in2", "out"};
    for (int k = 0; k < 3; k++)
        if (!operand_of(run, node_scope(run), name[k], &out->of[k]) ||
            !dims_of(run, name[k], &out->dims[k]) ||
            !dims_fill(run, &out->dims[k], &out->of[k]))
            return false;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 4; i++)
            if (out->dims[k].at[i] != 1 &&
                out->dims[k].at[i] != out->dims[2].at[i])
                return prog_fault(run, "%s does not spread over out", name[k]);
    return true;
}

uint64_t host_spread(const Dims *in, const Dims *out, uint64_t i) {
    uint64_t at = 0, step = 1;
    for (int a = 3; a >= 0; a--) {
        uint64_t index = i % out->at[a];
        i /= out->at[a];
        at += in->at[a] == 1 ? 0 : index * step;
        step *= in->at[a];
    }
    return at;
}

/* ---- windows ---- */

static bool axis_of(ProgramRun *run, HostConv *v, int a) {
    static const char axis[] = "hw";
    enum { MOST = 1 << 12 };
    int64_t before, after, kernel, stride, dilation;
    Arena *w = run->work;
    if (!node_num(run, arena_printf(w, "before.%c", axis[a]), -MOST, MOST,
                  &before) ||
        !node_num(run, arena_printf(w, "after.%c", axis[a]), -MOST, MOST,
                  &after) ||
        !node_num(run, arena_printf(w, "kernel.%c", axis[a]), 1, MOST,
                  &kernel) ||
        !node_num(run, arena_printf(w, "stride.%c", axis[a]), 1, MOST,
                  &stride) ||
        !node_num(run, arena_printf(w, "dilation.%c", axis[a]), 1, MOST,
                  &dilation))
        return false;
    int64_t room = v->in.at[2 + a] + before + after - (kernel - 1) * dilation;
    if (room < 1)
        return prog_fault(run, "the window is larger than the volume");
    v->before[a] = before;
    v->kernel[a] = (uint32_t)kernel;
    v->stride[a] = (uint32_t)stride;
    v->dilation[a] = (uint32_t)dilation;
    v->out.at[2 + a] = (uint32_t)((room - 1) / stride + 1);
    return true;
}

/* Work without end is no layer. */
static bool bounded(ProgramRun *run, const HostConv *v, uint64_t channels) {
    const uint64_t most = UINT64_C(1) << 34;
    uint64_t taps = channels * v->kernel[0] * v->kernel[1];
    return taps <= most / dims_count(&v->out) ||
           prog_fault(run, "%llu taps for each of %llu elements are too many",
                      (unsigned long long)taps,
                      (unsigned long long)dims_count(&v->out));
}

static bool windows_of(ProgramRun *run, HostConv *v) {
    return operand_of(run, node_scope(run), "in", &v->of_in) &&
           operand_of(run, node_scope(run), "out", &v->of_out) &&
           dims_of(run, "in", &v->in) && dims_fill(run, &v->in, &v->of_in) &&
           axis_of(run, v, 0) && axis_of(run, v, 1);
}

bool host_conv_of(ProgramRun *run, HostConv *v) {
    enum { MOST = 1 << 16 };
    int64_t groups, out_c;
    if (!windows_of(run, v) || !node_num(run, "groups", 1, MOST, &groups) ||
        !node_num(run, "out.c", 1, MOST, &out_c))
        return false;
    if (v->in.at[1] % groups || out_c % groups)
        return prog_fault(run, "%u and %lld channels in %lld groups",
                          v->in.at[1], (long long)out_c, (long long)groups);
    v->groups = (uint32_t)groups;
    v->out.at[0] = v->in.at[0];
    v->out.at[1] = (uint32_t)out_c;
    v->n_weights = (uint64_t)out_c * (v->in.at[1] / v->groups) * v->kernel[0] *
                   v->kernel[1];
    return dims_fill(run, &v->out, &v->of_out) &&
           bounded(run, v, v->in.at[1] / v->groups);
}

bool host_pool_of(ProgramRun *run, HostConv *v) {
    if (!windows_of(run, v))
        return false;
    v->out.at[0] = v->in.at[0];
    v->out.at[1] = v->groups = v->in.at[1];
    return dims_fill(run, &v->out, &v->of_out) && bounded(run, v, 1);
}

HostTap host_first_tap(const HostConv *v, uint64_t i) {
    HostTap t = {0};
    t.x = (uint32_t)(i % v->out.at[3]);
    i /= v->out.at[3];
    t.y = (uint32_t)(i % v->out.at[2]);
    i /= v->out.at[2];
    t.out_c = (uint32_t)(i % v->out.at[1]);
    t.image = (uint32_t)(i / v->out.at[1]);
    return t;
}

bool host_next_tap(const HostConv *v, HostTap *t) {
    uint32_t taps = v->kernel[0] * v->kernel[1];
    uint32_t in_c = v->in.at[1] / v->groups;
    uint32_t group = t->out_c / (v->out.at[1] / v->groups);
    while (t->next < (uint64_t)in_c * taps) {
        uint64_t tap = t->next++;
        uint32_t c = (uint32_t)(tap / taps), k = (uint32_t)(tap % taps);
        int64_t y = (int64_t)t->y * v->stride[0] - v->before[0] +
                    (int64_t)(k / v->kernel[1]) * v->dilation[0];
        int64_t x = (int64_t)t->x * v->stride[1] - v->before[1] +
                    (int64_t)(k % v->kernel[1]) * v->dilation[1];
        if (y < 0 || y >= v->in.at[2] || x < 0 || x >= v->in.at[3])
            continue;
        uint64_t plane = (uint64_t)t->image * v->in.at[1] + group * in_c + c;
        t->in = (plane * v->in.at[2] + (uint64_t)y) * v->in.at[3] + (uint64_t)x;
        t->weight = (uint64_t)t->out_c * in_c * taps + tap;
        return true;
    }
    return false;
}

/* ---- products ---- */

bool host_product_of(ProgramRun *run, HostProduct *p) {
    static const char *const name[] = {"in", "in2", "out"};
    const int64_t most = 1 << 20;
    int64_t rows, columns, columns2;
    if (!node_num(run, "rows", 1, most, &rows) ||
        !node_num(run, "columns", 1, most, &columns) ||
        !node_num(run, "columns2", 1, most, &columns2))
        return false;
    const int64_t need[] = {rows * columns, columns * columns2,
                            rows * columns2};
    for (int k = 0; k < 3; k++) {
        if (!operand_of(run, node_scope(run), name[k], &p->of[k]))
            return false;
        if (operand_count(&p->of[k]) != (uint64_t)need[k])
            return prog_fault(run, "%s: %llu elements, %lld are needed",
                              name[k],
                              (unsigned long long)operand_count(&p->of[k]),
                              (long long)need[k]);
    }
    p->rows = (uint64_t)rows;
    p->columns = (uint64_t)columns;
    p->columns2 = (uint64_t)columns2;
    return true;
}
