/* host_tokens.c - layers of the host on pixels as tokens; see host.h. */
#include "sim/host.h"

static bool misfit(const HostCall *call) {
    fault(call->run, "its operands and results do not fit together");
    return false;
}

static bool run_mix(const HostCall *call) {
    const HostLayer *l = call->layer;
    Mix m = {.over_pixels = host_count(l, "over_pixels", 0, 0),
             .attends = host_count(l, "attends", 0, 0),
             .groups = host_count(l, "groups", 0, 0),
             .in = host_extent(&l->in[0]),
             .in2 = host_extent(&l->in[1]),
             .out = host_extent(&l->out[0])};
    uint64_t pixels = 1;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t n = host_count(l, "windows", i, 0);
        uint32_t own = extent_axis(&m.in, (int)i);
        uint32_t other = extent_axis(&m.in2, (int)i);
        m.shift[i] = host_count(l, "shift", i, 0);
        if (!n || own % n || other % n || m.shift[i] >= own ||
            (m.shift[i] && own != other))
            return misfit(call);
        m.patch[i] = own / n;
        pixels *= other / n;
    }
    bool fits = m.groups && m.in.c % m.groups == 0 && m.in2.c % m.groups == 0 &&
                m.in.h == m.out.h && m.in.w == m.out.w;
    if (!fits ||
        (m.attends       ? m.in2.c <= m.in.c || m.out.c != m.in2.c - m.in.c
         : m.over_pixels ? m.in.c != m.groups * pixels || m.out.c != m.in2.c
                         : m.in.c != m.in2.c || m.out.c != m.groups * pixels))
        return misfit(call);
    mix_run(call->run->arena, &m, call->in[0], call->in[1], call->out[0]);
    return true;
}

static bool run_offset(const HostCall *call) {
    Extent size = host_extent(&call->layer->out[0]);
    uint64_t n = shape_count(&call->layer->out[0].shape);
    const uint32_t whole[] = {size.c, size.h, size.w};
    uint32_t period[3];
    uint64_t values = 1;
    for (uint32_t i = 0; i < 3; i++) {
        period[i] = host_count(call->layer, "period", i, 0);
        if (!period[i] || whole[i] % period[i])
            return misfit(call);
        values *= period[i];
    }
    const float *value = host_blob(call, "values", values);
    if (!value || n != shape_count(&call->layer->in[0].shape))
        return misfit(call);
    bool times = host_count(call->layer, "times", 0, 0);
    offset_run(&size, 0, period, times, value, call->in[0], call->out[0]);
    return true;
}

static bool run_pixels(const HostCall *call) {
    Extent in = host_extent(&call->layer->in[0]);
    Extent out = host_extent(&call->layer->out[0]);
    uint64_t n = (uint64_t)out.h * out.w, plane = (uint64_t)in.h * in.w;
    const float *index = host_blob(call, "index", n);
    bool fits = index && in.c == out.c;
    for (uint64_t i = 0; fits && i < n; i++)
        fits = index[i] >= 0 && index[i] <= (float)plane;
    if (!fits)
        return misfit(call);
    pixels_run(&in, &out, index, call->in[0], call->out[0]);
    return true;
}

const HostRow host_tokens[] = {
    {"mix", 2, run_mix, HOST_PLAIN},
    {"offset", 1, run_offset, HOST_PLAIN},
    {"pixels", 1, run_pixels, HOST_PLAIN},
    {NULL, 0, NULL, HOST_PLAIN},
};
