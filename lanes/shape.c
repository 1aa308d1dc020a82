/* shape.c - sizes of all layers, passes, and what of the maps was not said. */
#include "lanes/inside.h"

static bool fail(Diag *diag, const LaneLayer *l, uint32_t at,
                 const char *reason) {
    diag_error(diag, l->loc, "layer %u: %s", at, reason);
    return false;
}

static uint32_t source_c(const LaneNet *net, int32_t source) {
    return source < 0 ? net->in_c : net->layer[source].out_c;
}

/* Channels and size of the input, from the layers that it comes from. */
static bool size_in(Diag *diag, const LaneNet *net, uint32_t at, LaneLayer *l) {
    uint32_t channels = 0;
    for (uint32_t i = 0; i < l->n_sources; i++) {
        int32_t source = l->source[i];
        const uint32_t *size = source < 0 ? net->in : net->layer[source].out;
        bool same = i == 0 || (size[0] == l->in[0] && size[1] == l->in[1]);
        bool adds = l->elt == LANE_ALONE || i == 0;
        if (!same || (!adds && source_c(net, source) != channels))
            return fail(diag, l, at, "layers that it reads differ in size");
        if (i == 0 && !(l->in[0] && l->op == LANE_CONV1D)) {
            l->in[0] = size[0];
            l->in[1] = size[1];
        }
        channels += adds ? source_c(net, source) : 0;
    }
    if (l->elt != LANE_ALONE && l->n_sources != l->operands)
        return fail(diag, l, at, "not so many in_sequences as operands");
    uint64_t places = l->flatten ? (uint64_t)l->in[0] * l->in[1] : 1;
    if (l->weight && !l->sized && l->in_c != channels * places) {
        diag_error(diag, l->loc,
                   "layer %u: its weights are for %u channels, it reads %llu",
                   at, l->in_c, (unsigned long long)(channels * places));
        return false;
    }
    l->in_c = channels;
    l->sized = true;
    return true;
}

static bool size_axis(LaneLayer *l, int a) {
    if (l->in[a] < l->pool[a] || l->in[a] > 4096)
        return false;
    l->mid[a] = (l->in[a] - l->pool[a]) / l->pool_stride + 1;
    uint32_t span = (l->kernel[a] - 1) * l->dilation[a] + 1;
    uint32_t all =
        l->op == LANE_DECONV
            ? 2 * l->mid[a] + 2 * (2 - (l->pad[a] > 2 ? 2 : l->pad[a]))
            : l->mid[a] + 2 * l->pad[a];
    if (all < span)
        return false;
    l->out[a] = l->flatten ? 1 : all - span + 1;
    return true;
}

static uint32_t value(Arena *arena, const LaneMachine *m, const LaneNet *net,
                      uint32_t at, const Expr *e) {
    return (uint32_t)lanes_value(arena, m, net, at, 0, 0, e);
}

/* Passes and lanes of so many channels, as if a layer read them. */
static uint32_t for_channels(Arena *arena, const LaneMachine *m, uint32_t c,
                             const Expr *e) {
    LaneLayer one = {.in_c = c,
                     .in = {1, 1},
                     .pool = {1, 1},
                     .mid = {1, 1},
                     .kernel = {1, 1},
                     .out = {1, 1},
                     .dilation = {1, 1},
                     .out_c = 1,
                     .pool_stride = 1,
                     .operands = 1,
                     .in_passes = 1,
                     .out_passes = 1,
                     .lanes = 1,
                     .out_lanes = 1,
                     .bits = 8,
                     .width = 1};
    return value(arena, m, &(LaneNet){.n = 1, .layer = &one}, 0, e);
}

uint32_t lanes_passes(Arena *arena, const LaneMachine *m, uint32_t c) {
    return for_channels(arena, m, c, m->passes);
}
uint32_t lanes_needed(Arena *arena, const LaneMachine *m, uint32_t c) {
    return for_channels(arena, m, c, m->in_count);
}

static void offset_in(LaneNet *net, uint32_t at) {
    LaneLayer *l = &net->layer[at];
    int32_t source = (int32_t)at - 1;
    if (!l->says_in_offset && source >= 0)
        l->in_offset = net->layer[source].out_offset;
}

/* Where a layer does not say where it writes, it is where the next reads. */
static void map_out(LaneNet *net, uint32_t at, uint32_t needed) {
    LaneLayer *l = &net->layer[at];
    if (l->out_lanes)
        return;
    bool last = at + 1 == net->n;
    l->out_lanes = !last          ? net->layer[at + 1].lanes
                   : needed >= 64 ? UINT64_MAX
                                  : ((uint64_t)1 << needed) - 1;
}

static bool size_layer(Arena *arena, Diag *diag, const LaneMachine *m,
                       LaneNet *net, uint32_t at) {
    LaneLayer *l = &net->layer[at];
    if (!size_in(diag, net, at, l))
        return false;
    if (l->op == LANE_PASS)
        l->out_c = l->in_c;
    if (l->op == LANE_LINEAR && !l->flatten && l->in[0] * l->in[1] != 1)
        return fail(diag, l, at, "linear needs 1x1, or `flatten: true`");
    if (!size_axis(l, 0) || !size_axis(l, 1))
        return fail(diag, l, at, "its input is smaller than pool or kernel");
    if (l->in_c > 65536 || l->out_c > 65536 || !l->out_c)
        return fail(diag, l, at, "more channels than the machine has");
    l->in_passes = lanes_passes(arena, m, l->in_c);
    l->out_passes = lanes_passes(arena, m, l->out_c);
    offset_in(net, at);
    map_out(net, at, lanes_needed(arena, m, l->out_c));
    return true;
}

bool lanes_shapes(Arena *arena, Diag *diag, const LaneMachine *m,
                  LaneNet *net) {
    if (net->n > m->layers || net->n > 128) {
        diag_error(diag, net->layer[m->layers].loc,
                   "%u layers: %s has %u; two networks in turn have as many "
                   "each",
                   net->n, m->name, m->layers);
        return false;
    }
    for (uint32_t i = 0; i < net->n; i++)
        if (!size_layer(arena, diag, m, net, i))
            return false;
    for (uint32_t i = 0; i < net->n; i++)
        if (net->layer[i].streaming)
            net->layer[i].ring = value(arena, m, net, i, m->ring);
    return true;
}
