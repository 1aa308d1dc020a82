/* arrange.c - copies, processors, streams and offsets of layers that have none.
 *
 * Volumes that one layer reads side by side take neighbouring processors; those
 * that it reads word by word in turn take the same ones, with gaps. A volume
 * that cannot be read so by all its readers is copied. Each such bond of
 * volumes starts at a processor of its own, the first of an instance: these are
 * searched one by one, so that rules hold and weights, biases and volumes fit,
 * then for cycles, then for the highest byte of an instance, then for weight
 * columns. Bonds between which a layer without operation stands move together,
 * too, as it keeps processors; where no rule allows its own, it becomes a
 * convolution of one pixel.
 * Where volumes do not fit, the first layers stream, as few as can.
 */
#include "lanes/inside.h"
#include "lanes/kernels.h"

#include <string.h>

enum { SWEEPS = 4 };

typedef struct Cost {
    uint64_t broken, over, cycles, bytes, columns;
} Cost;

typedef struct Arrange {
    Arena *arena, *scratch;
    const LaneMachine *m;
    LaneNet *net;
    uint32_t n;      /* volumes: the input, then each layer's result */
    uint32_t *uses;  /* by volume */
    uint32_t *top;   /* by volume: the first of its bond */
    int32_t *lane;   /* by volume: its processors behind those of `top` */
    uint32_t *start; /* by bond, of its lowest processor */
    uint32_t *tie;   /* by bond: the first that moves with it */
    int32_t *behind; /* by bond: its start less that of `tie` */
    uint8_t *needed; /* by channels: processors; 0: not known yet */
    bool fixed;      /* the input's processors are those of the queues */
} Arrange;

bool lanes_weaves(const LaneLayer *l) {
    return l->elt != LANE_ALONE || (l->n_sources > 1 && l->in_passes > 1);
}

static uint32_t channels(const LaneNet *net, uint32_t v) {
    return v ? net->layer[v - 1].out_c : net->in_c;
}

static uint32_t needed(const Arrange *a, uint32_t c) {
    if (!a->needed[c])
        a->needed[c] = (uint8_t)lanes_needed(a->scratch, a->m, c);
    return a->needed[c];
}

/* Processors that a volume reaches over. */
static uint32_t width(const Arrange *a, uint32_t v) {
    uint32_t n = needed(a, channels(a->net, v));
    return v == 0 && a->net->layer[0].chw ? n * a->m->bank : n;
}

/* ---- bonds ---- */

static void unbind(Arrange *a, uint32_t from) {
    for (uint32_t v = from; v < a->n; v++) {
        a->top[v] = v;
        a->lane[v] = 0;
    }
}

static void extent(const Arrange *a, uint32_t top, int32_t *low,
                   int32_t *high) {
    *low = INT32_MAX;
    *high = INT32_MIN;
    for (uint32_t v = 0; v < a->n; v++) {
        int32_t end = a->lane[v] + (int32_t)width(a, v);
        if (a->top[v] != top)
            continue;
        *low = a->lane[v] < *low ? a->lane[v] : *low;
        *high = end > *high ? end : *high;
    }
}

/* Would any two volumes of both bonds share processors? */
static bool collide(const Arrange *a, uint32_t one, uint32_t other,
                    int32_t shift) {
    for (uint32_t v = 0; v < a->n; v++)
        for (uint32_t w = 0; a->top[v] == one && w < a->n; w++) {
            int32_t at = a->lane[w] + shift;
            if (a->top[w] == other && at < a->lane[v] + (int32_t)width(a, v) &&
                a->lane[v] < at + (int32_t)width(a, w))
                return true;
        }
    return false;
}

/* Volume b's processors begin `apart` behind those of volume a. */
static bool bind(Arrange *a, uint32_t one, uint32_t other, int32_t apart,
                 bool woven) {
    uint32_t keep = a->top[one], gone = a->top[other];
    int32_t shift = a->lane[one] + apart - a->lane[other], low, high;
    if (keep == gone)
        return shift == 0 && one != other;
    if (shift % (int32_t)a->m->bank ||
        (!woven && collide(a, keep, gone, shift)))
        return false;
    uint32_t *was = ARENA_COPY(a->scratch, uint32_t, a->top, a->n);
    int32_t *lay = ARENA_COPY(a->scratch, int32_t, a->lane, a->n);
    for (uint32_t v = 0; v < a->n; v++)
        if (a->top[v] == gone) {
            a->top[v] = keep;
            a->lane[v] += shift;
        }
    extent(a, keep, &low, &high);
    if (high - low <= (int32_t)a->m->lanes)
        return true;
    for (uint32_t v = 0; v < a->n; v++) {
        a->top[v] = was[v];
        a->lane[v] = lay[v];
    }
    return false;
}

/* ---- copies ---- */

static LaneLayer copy_of(const LaneNet *net, const LaneLayer *reader,
                         int32_t source) {
    const LaneLayer *from = source < 0 ? NULL : &net->layer[source];
    LaneLayer copy = {.loc = reader->loc,
                      .op = LANE_PASS,
                      .n_sources = 1,
                      .source = {source},
                      .operands = 1,
                      .pool = {1, 1},
                      .pool_stride = 1,
                      .kernel = {1, 1},
                      .dilation = {1, 1},
                      .pool_first = true,
                      .bits = 8,
                      .width = 1,
                      .says_in_offset = true,
                      .in_c = from ? from->out_c : net->in_c};
    copy.out_c = copy.in_c;
    for (int k = 0; k < 2; k++)
        copy.out[k] = from ? from->out[k] : net->in[k];
    return copy;
}

/* Source k of the layer that comes next: bound to the first, or a copy. */
static void take_source(Arrange *a, const LaneLayer *was, LaneLayer *l,
                        uint32_t k, int32_t apart) {
    uint32_t v = (uint32_t)(l->source[k] + 1);
    bool woven = lanes_weaves(was);
    bool fits = woven ? v > 0 && a->uses[v] == 1 : true;
    if (fits && k)
        fits = bind(a, (uint32_t)(l->source[0] + 1), v, apart, woven);
    if (fits)
        return;
    a->net->layer[a->net->n] = copy_of(a->net, was, l->source[k]);
    l->source[k] = (int32_t)a->net->n++;
    v = a->net->n;
    a->uses[v] = 1;
    a->n = v + 1;
    unbind(a, v);
    if (k)
        bind(a, (uint32_t)(l->source[0] + 1), v, apart, woven);
}

/* The layers again, with copies in front of those that need them. */
static void add_copies(Arrange *a, const LaneNet *given) {
    LaneNet *net = a->net;
    int32_t *now = ARENA_ARRAY(a->scratch, int32_t, given->n);
    uint32_t *uses = ARENA_ARRAY(a->scratch, uint32_t, given->n + 1);
    for (uint32_t i = 0; i < given->n; i++)
        for (uint32_t k = 0; k < given->layer[i].n_sources; k++)
            uses[given->layer[i].source[k] + 1]++;
    net->n = 0;
    a->n = 1;
    a->uses[0] = uses[0];
    unbind(a, 0);
    for (uint32_t i = 0; i < given->n; i++) {
        const LaneLayer *was = &given->layer[i];
        LaneLayer l = *was;
        for (uint32_t k = 0; k < l.n_sources; k++)
            l.source[k] = l.source[k] < 0 ? LANE_INPUT : now[l.source[k]];
        int32_t apart = 0;
        for (uint32_t k = 0; l.n_sources > 1 && k < l.n_sources; k++) {
            uint32_t c = channels(net, (uint32_t)(l.source[k] + 1));
            take_source(a, was, &l, k, apart);
            apart += lanes_weaves(was) ? 0 : (int32_t)c;
        }
        for (uint32_t k = 0; lanes_weaves(was) && k < l.n_sources; k++) {
            net->layer[l.source[k]].gap = l.n_sources - 1;
            net->layer[l.source[k]].out_offset = k * a->m->bank;
        }
        now[i] = (int32_t)net->n;
        net->layer[net->n++] = l;
        a->n = net->n + 1;
        a->uses[net->n] = uses[i + 1];
        unbind(a, net->n);
    }
}

/* ---- processors ---- */

static uint64_t run_of(uint32_t first, uint32_t n) {
    return (n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1) << first;
}

/* Each channel in an instance of its own. */
static uint64_t apart_of(const LaneMachine *m, uint32_t first, uint32_t n) {
    uint64_t map = 0;
    for (uint32_t k = 0; k < n; k++)
        map |= (uint64_t)1 << (first + k * m->bank);
    return map;
}

/* Channels of an input that comes through queues: four a quadrant. */
static uint64_t queues_of(const LaneMachine *m, uint32_t n) {
    uint64_t map = 0;
    for (uint32_t k = 0; k < n && k < m->bank * 4; k++)
        map |= (uint64_t)1 << (k / m->bank * m->quadrant + k % m->bank);
    return map;
}

static uint64_t map_of(const Arrange *a, uint32_t v, uint32_t c) {
    uint32_t n = needed(a, c);
    int32_t low, high;
    if (v == 0 && a->fixed)
        return queues_of(a->m, n);
    extent(a, a->top[v], &low, &high);
    uint32_t first = a->start[a->top[v]] + (uint32_t)(a->lane[v] - low);
    return v == 0 && a->net->layer[0].chw ? apart_of(a->m, first, n)
                                          : run_of(first, n);
}

static void set_maps(const Arrange *a) {
    for (uint32_t i = 0; i < a->net->n; i++) {
        LaneLayer *l = &a->net->layer[i];
        l->lanes = map_of(a, (uint32_t)(l->source[0] + 1), l->in_c);
        l->out_lanes = map_of(a, i + 1, l->out_c);
    }
}

/* ---- cost ---- */

/* Of layers whose cycles depend on where volumes and weights are. */
static uint64_t own_cycles(const Arrange *a) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < a->net->n; i++)
        if (a->net->layer[i].op == LANE_PASS || !a->net->layer[i].pool_first)
            sum += (uint64_t)lanes_layer_cycles(a->scratch, a->m, a->net, i);
    return sum;
}

static Cost cost_of(Arrange *a) {
    Cost cost;
    uint32_t peak;
    arena_reset(a->scratch);
    set_maps(a);
    cost.over = lanes_pack(a->scratch, a->m, a->net, &peak);
    cost.bytes = lanes_offsets(a->scratch, a->m, a->net, true);
    if (cost.bytes > a->m->bank_bytes)
        cost.over += cost.bytes - a->m->bank_bytes;
    cost.broken = 0;
    for (uint32_t i = 0; i < a->net->n; i++)
        cost.broken += !lanes_fit(a->scratch, a->m, a->net, i);
    cost.cycles = own_cycles(a);
    cost.columns = peak;
    return cost;
}

static bool is_less(const Cost *a, const Cost *b) {
    if (a->broken != b->broken)
        return a->broken < b->broken;
    if (a->over != b->over)
        return a->over < b->over;
    if (a->cycles != b->cycles)
        return a->cycles < b->cycles;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->columns < b->columns;
}

/* Bonds in which a layer without operation reads and writes: so far apart that
 * both volumes have the same processors. */
static void tie(Arrange *a) {
    for (uint32_t v = 0; v < a->n; v++) {
        a->tie[v] = v;
        a->behind[v] = 0;
    }
    for (uint32_t i = 0; i < a->net->n; i++) {
        uint32_t in = (uint32_t)(a->net->layer[i].source[0] + 1), out = i + 1;
        uint32_t from = a->top[in], to = a->top[out];
        uint32_t keep = a->tie[from], gone = a->tie[to];
        int32_t low, first, high;
        if (a->net->layer[i].op != LANE_PASS || keep == gone)
            continue;
        extent(a, from, &low, &high);
        extent(a, to, &first, &high);
        int32_t shift = a->behind[from] + a->lane[in] - low -
                        (a->behind[to] + a->lane[out] - first);
        for (uint32_t v = 0; v < a->n; v++)
            if (a->tie[v] == gone) {
                a->tie[v] = keep;
                a->behind[v] += shift;
            }
    }
}

/* Moves all bonds of a tie, or one alone; false: they do not all have room. */
static bool move_to(Arrange *a, uint32_t bond, bool all, int32_t at) {
    int32_t low, high, most = (int32_t)a->m->lanes;
    for (uint32_t v = 0; v < a->n; v++) {
        int32_t start = at + (all ? a->behind[v] : 0);
        if (a->top[v] != v || (all ? a->tie[v] != bond : v != bond))
            continue;
        extent(a, v, &low, &high);
        if (start < 0 || start + high - low > most)
            return false;
        a->start[v] = (uint32_t)start;
    }
    return true;
}

static bool is_tied(const Arrange *a, uint32_t bond) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < a->n; v++)
        n += a->top[v] == v && a->tie[v] == a->tie[bond];
    return n > 1;
}

/* The best start of one bond, or tie, the others as they are. */
static bool better_start(Arrange *a, uint32_t bond, bool all, Cost *best) {
    uint32_t *chosen = ARENA_COPY(a->arena, uint32_t, a->start, a->n);
    int32_t most = (int32_t)a->m->lanes;
    bool better = false;
    for (int32_t at = -most; at < most; at += (int32_t)a->m->bank) {
        if ((at < 0 && !all) || !move_to(a, bond, all, at))
            continue;
        Cost cost = cost_of(a);
        if (is_less(&cost, best)) {
            *best = cost;
            memcpy(chosen, a->start, a->n * sizeof *chosen);
            better = true;
        }
    }
    memcpy(a->start, chosen, a->n * sizeof *chosen);
    return better;
}

static Cost search(Arrange *a) {
    tie(a);
    lanes_lengths(a->scratch, a->m, a->net);
    Cost best = cost_of(a);
    bool better = true;
    for (uint32_t sweep = 0; better && sweep < SWEEPS; sweep++) {
        better = false;
        for (uint32_t v = 0; v < a->n; v++)
            if (a->top[v] == v && a->tie[v] == v && is_tied(a, v))
                better |= better_start(a, v, true, &best);
        for (uint32_t v = 0; v < a->n; v++)
            if (a->top[v] == v)
                better |= better_start(a, v, false, &best);
    }
    cost_of(a);
    return best;
}

/* Convolutions of one pixel, which may write anywhere, instead of layers
 * without operation that no start suits. Several passes of operands are none.
 */
static bool convolve(Arrange *a) {
    static const double one = 1;
    bool any = false;
    for (uint32_t i = 0; i < a->net->n; i++) {
        LaneLayer *l = &a->net->layer[i];
        bool sums = l->elt != LANE_ALONE && l->in_passes > 1;
        if (l->op == LANE_PASS && !sums &&
            !lanes_fit(a->scratch, a->m, a->net, i))
            any |= kernels_sum(a->arena, l->in_c, 1, &one, l);
    }
    return any;
}

static Cost search_all(Arrange *a) {
    Cost best = search(a);
    while (best.broken && convolve(a))
        best = search(a);
    return best;
}

/* ---- streams ---- */

/* Layers up to the last whose input is larger than an instance. */
static uint32_t streams_needed(const Arrange *a) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->net->n; i++)
        if (lanes_in_bytes(a->m, &a->net->layer[i]) > a->m->bank_bytes)
            n = i + 1;
    return n;
}

/* A chain of convolutions, the last with padding. */
static bool can_stream(const Arrange *a, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const LaneLayer *l = &a->net->layer[i];
        bool pads = l->pad[0] > 0 || l->kernel[0] == 1;
        if (l->op != LANE_CONV2D || l->n_sources > 1 || a->uses[i] > 1 ||
            l->source[0] != (int32_t)i - 1 || l->elt != LANE_ALONE ||
            (i + 1 == n && !pads))
            return false;
    }
    return n <= a->net->n;
}

static void stream(Arrange *a, uint32_t n) {
    a->fixed = n > 0;
    for (uint32_t i = 0; i < n; i++) {
        LaneLayer *l = &a->net->layer[i];
        l->streaming = true;
        l->chw = false;
    }
    kernels_stream(a->arena, a->net);
}

/* An input of few channels that is too large for pixels of four. */
static void by_channels(Arrange *a) {
    LaneLayer *l = &a->net->layer[0];
    uint64_t pixels = (uint64_t)l->in[0] * l->in[1];
    l->chw = a->uses[0] == 1 && l->source[0] == LANE_INPUT &&
             l->n_sources == 1 && l->in_c <= a->m->lanes / a->m->bank &&
             pixels * a->m->bank > a->m->bank_bytes &&
             pixels <= a->m->bank_bytes;
}

static bool try_streams(Arrange *a, Diag *diag, uint32_t n) {
    if (n && !can_stream(a, n))
        return false;
    stream(a, n);
    if (!lanes_shapes(a->arena, diag, a->m, a->net))
        return false;
    Cost best = search_all(a);
    return !best.broken && !best.over;
}

/* As few layers as can; where none fit, what is asked of them is said later. */
static void choose_streams(Arrange *a, Diag *diag) {
    LaneNet *net = a->net, whole = *net;
    by_channels(a);
    uint32_t least = streams_needed(a);
    for (uint32_t n = least; n <= least + 8; n++) {
        whole.layer = ARENA_COPY(a->arena, LaneLayer, net->layer, net->n);
        if (try_streams(a, diag, n))
            return;
        net->layer = whole.layer;
    }
    try_streams(a, diag, can_stream(a, least) ? least : 0);
}

bool lanes_arrange(Arena *arena, Diag *diag, const LaneMachine *m,
                   LaneNet *net) {
    uint32_t most = net->n;
    if (!lanes_shapes(arena, diag, m, net))
        return false;
    for (uint32_t i = 0; i < net->n; i++)
        most += net->layer[i].n_sources;
    LaneNet given = *net;
    net->layer = ARENA_ARRAY(arena, LaneLayer, most + 1);
    Arrange a = {.arena = arena,
                 .scratch = arena_new("processors"),
                 .m = m,
                 .net = net,
                 .uses = ARENA_ARRAY(arena, uint32_t, most + 2),
                 .top = ARENA_ARRAY(arena, uint32_t, most + 2),
                 .lane = ARENA_ARRAY(arena, int32_t, most + 2),
                 .start = ARENA_ARRAY(arena, uint32_t, most + 2),
                 .tie = ARENA_ARRAY(arena, uint32_t, most + 2),
                 .behind = ARENA_ARRAY(arena, int32_t, most + 2),
                 .needed = ARENA_ARRAY(arena, uint8_t, 65537)};
    add_copies(&a, &given);
    bool ok = lanes_shapes(arena, diag, m, net);
    if (ok)
        choose_streams(&a, diag);
    arena_free(a.scratch);
    return ok;
}
