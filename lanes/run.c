/* run.c - runs a network through the data memories.
 *
 * Every cell has an owner beside its byte: which volume's which pixel it holds.
 * A layer reads a window of its input when its next result needs it, and writes
 * each result before it reads on; so a result that lies over input that is
 * still needed is found, and so is one that was overwritten before its use.
 * What was read stays in the row buffers. Layers that stream pull pixel by
 * pixel from the layer before.
 */
#include "lanes/lanes.h"

#include "base/crc.h"

#include <stdlib.h>
#include <string.h>

enum { FAULTS = 20, PIXELS = 1 << 20 };

typedef struct Cells {
    uint8_t *byte;
    uint32_t *owner; /* (source + 2) * PIXELS + pixel; 0: nothing */
} Cells;

typedef struct Stage {
    int8_t *pooled;  /* c, h, w: what was read */
    uint32_t n_read; /* pooled pixels */
    uint32_t n_made; /* pixels of the result */
    int32_t *out;    /* c, h, w */
    bool told;       /* its fault was said */
} Stage;

typedef struct Run {
    Arena *arena;
    const LaneMachine *m;
    const LaneNet *net;
    const int8_t *input;
    Cells *bank;
    Stage *stage;
    uint32_t fed; /* pixels of a streaming network's input */
    LaneRun *result;
} Run;

uint32_t lane_at(uint64_t map, uint32_t k) {
    while (k--)
        map &= map - 1;
    return lane_first(map);
}

LaneCell lane_in_cell(const LaneMachine *m, const LaneLayer *l,
                      uint32_t operand, uint32_t c, uint32_t pixel) {
    uint32_t count = lane_count(l->lanes);
    uint32_t lane = lane_at(l->lanes, c % count), pass = c / count;
    uint32_t word = (pixel * l->in_passes + pass) * l->operands + operand;
    if (l->chw)
        return (LaneCell){lane / m->bank, l->in_offset + pixel};
    if (l->ring)
        word %= l->ring;
    return (LaneCell){lane / m->bank,
                      l->in_offset + word * m->bank + lane % m->bank};
}

LaneCell lane_out_cell(const LaneMachine *m, const LaneLayer *l, uint32_t c,
                       uint32_t pixel, uint32_t k) {
    uint32_t count = lane_count(l->out_lanes);
    uint32_t lane = lane_at(l->out_lanes, c % count), pass = c / count;
    uint32_t word = pixel * l->out_passes * l->width + pass * l->width + k;
    return (LaneCell){lane / m->bank, l->out_offset +
                                          word * (l->gap + 1) * m->bank +
                                          lane % m->bank};
}

static void fault(Run *r, uint32_t at, const char *text) {
    if (r->stage[at].told)
        return;
    r->stage[at].told = true;
    if (r->result->n_faults++ < FAULTS)
        vec_push(r->arena, &r->result->fault, text);
}

static void write_cell(Run *r, uint32_t at, LaneCell cell, uint8_t byte,
                       uint32_t owner) {
    if (cell.byte >= r->m->bank_bytes) {
        fault(r, at,
              arena_printf(r->arena,
                           "layer %u writes byte %u of instance %u, which has "
                           "%u",
                           at, cell.byte, cell.bank, r->m->bank_bytes));
        return;
    }
    r->bank[cell.bank].byte[cell.byte] = byte;
    r->bank[cell.bank].owner[cell.byte] = owner;
    if (cell.byte / r->m->bank * r->m->bank + r->m->bank >
        r->result->high[cell.bank])
        r->result->high[cell.bank] =
            cell.byte / r->m->bank * r->m->bank + r->m->bank;
}

/* Whose channel c of operand e is, and which of its channels. */
static int32_t source_of(const LaneNet *net, const LaneLayer *l, uint32_t e,
                         uint32_t *c) {
    if (l->elt != LANE_ALONE)
        return l->source[e];
    for (uint32_t i = 0; i + 1 < l->n_sources; i++) {
        int32_t s = l->source[i];
        uint32_t n = s < 0 ? net->in_c : net->layer[s].out_c;
        if (*c < n)
            return s;
        *c -= n;
    }
    return l->source[l->n_sources - 1];
}

static const char *owner_text(Run *r, uint32_t owner) {
    if (!owner)
        return "nothing";
    int32_t source = (int32_t)(owner / PIXELS) - 2;
    return source < 0
               ? arena_printf(r->arena, "pixel %u of the input", owner % PIXELS)
               : arena_printf(r->arena, "pixel %u of layer %d", owner % PIXELS,
                              source);
}

static bool make_pixel(Run *r, uint32_t at);

/* Pixel n of the network's input, into its cells. */
static void feed(Run *r, uint32_t pixel) {
    const LaneLayer *l = &r->net->layer[0];
    uint32_t n = r->net->in[0] * r->net->in[1];
    for (uint32_t e = 0; e < l->operands; e++)
        for (uint32_t c = 0; c < r->net->in_c; c++)
            write_cell(r, 0, lane_in_cell(r->m, l, e, c, pixel),
                       (uint8_t)r->input[(size_t)c * n + pixel],
                       PIXELS + pixel);
}

/* A layer that streams: until the one before has made this pixel. */
static void pull(Run *r, uint32_t at, uint32_t pixel) {
    if (at == 0)
        while (r->fed <= pixel)
            feed(r, r->fed++);
    while (at && r->stage[at - 1].n_made <= pixel)
        if (!make_pixel(r, at - 1))
            return;
}

static int8_t read_cell(Run *r, uint32_t at, uint32_t e, uint32_t c,
                        uint32_t pixel) {
    const LaneLayer *l = &r->net->layer[at];
    uint32_t channel = c;
    int32_t source = source_of(r->net, l, e, &channel);
    uint32_t owner = (uint32_t)(source + 2) * PIXELS + pixel;
    LaneCell cell = lane_in_cell(r->m, l, e, c, pixel);
    bool inside = cell.byte < r->m->bank_bytes;
    uint32_t has = inside ? r->bank[cell.bank].owner[cell.byte] : 0;
    if (has != owner)
        fault(r, at,
              arena_printf(r->arena,
                           "layer %u reads byte %u of instance %u for %s, "
                           "which holds %s",
                           at, cell.byte, cell.bank, owner_text(r, owner),
                           owner_text(r, has)));
    return inside ? (int8_t)r->bank[cell.bank].byte[cell.byte] : 0;
}

static int32_t saturate(int64_t x) {
    return (int32_t)(x < -128 ? -128 : x > 127 ? 127 : x);
}

static int32_t combine(LaneElt elt, int32_t a, int32_t b) {
    return elt == LANE_ADD   ? a + b
           : elt == LANE_SUB ? a - b
           : elt == LANE_OR  ? (int8_t)(a | b)
                             : (int8_t)(a ^ b);
}

/* One value of a pool's window, element-wise first where the layer says so. */
static int32_t window_value(Run *r, uint32_t at, uint32_t e, uint32_t c,
                            uint32_t pixel) {
    const LaneLayer *l = &r->net->layer[at];
    int32_t v = read_cell(r, at, e, c, pixel);
    if (l->pool_first || l->operands == 1)
        return v;
    for (uint32_t k = 1; k < l->operands; k++)
        v = combine(l->elt, v, read_cell(r, at, k, c, pixel));
    return saturate(v);
}

static int32_t average(const LaneMachine *m, int32_t sum, int32_t n) {
    if (!m->half_away)
        return sum / n;
    return (2 * abs(sum) + n) / (2 * n) * (sum < 0 ? -1 : 1);
}

static int32_t pool_one(Run *r, uint32_t at, uint32_t e, uint32_t c,
                        uint32_t pixel) {
    const LaneLayer *l = &r->net->layer[at];
    uint32_t y = pixel / l->mid[1] * l->pool_stride;
    uint32_t x = pixel % l->mid[1] * l->pool_stride;
    int32_t best = INT32_MIN, sum = 0;
    for (uint32_t i = 0; i < l->pool[0]; i++)
        for (uint32_t k = 0; k < l->pool[1]; k++) {
            uint32_t from = (y + i) * l->in[1] + x + k;
            int32_t v = window_value(r, at, e, c, from);
            best = v > best ? v : best;
            sum += v;
        }
    return l->average ? average(r->m, sum, (int32_t)(l->pool[0] * l->pool[1]))
                      : best;
}

/* Reads the next window of all channels and operands. */
static void read_pixel(Run *r, uint32_t at) {
    const LaneLayer *l = &r->net->layer[at];
    Stage *s = &r->stage[at];
    uint32_t pixel = s->n_read++, n = l->mid[0] * l->mid[1];
    uint32_t y = pixel / l->mid[1] * l->pool_stride + l->pool[0] - 1;
    uint32_t x = pixel % l->mid[1] * l->pool_stride + l->pool[1] - 1;
    if (l->streaming)
        pull(r, at, y * l->in[1] + x);
    for (uint32_t c = 0; c < l->in_c; c++) {
        int32_t v = pool_one(r, at, 0, c, pixel);
        for (uint32_t e = 1; l->pool_first && e < l->operands; e++)
            v = combine(l->elt, v, pool_one(r, at, e, c, pixel));
        s->pooled[(size_t)c * n + pixel] = (int8_t)saturate(v);
    }
}

/* ---- arithmetic ---- */

/* The place of the volume that tap k of result y takes; -1: padding. */
static int64_t tap(const LaneLayer *l, int a, uint32_t y, uint32_t k) {
    int64_t at = (int64_t)y + (int64_t)k * l->dilation[a];
    if (l->op != LANE_DECONV) {
        at -= l->pad[a];
        return at < l->mid[a] ? at : -1;
    }
    at -= 2 - (int64_t)l->pad[a];
    return at >= 0 && at % 2 == 0 && at / 2 < l->mid[a] ? at / 2 : -1;
}

static int64_t sum_of(const LaneLayer *l, const int8_t *in, uint32_t o,
                      uint32_t y, uint32_t x) {
    uint32_t taps = l->kernel[0] * l->kernel[1], n = l->mid[0] * l->mid[1];
    const int8_t *w = l->weight + (size_t)o * l->in_c * taps;
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->kernel[0]; i++)
        for (uint32_t k = 0; k < l->kernel[1]; k++) {
            int64_t py = tap(l, 0, y, i), px = tap(l, 1, x, k);
            if (py < 0 || px < 0)
                continue;
            const int8_t *from = in + py * l->mid[1] + px;
            const int8_t *by = w + i * l->kernel[1] + k;
            for (uint32_t c = 0; c < l->in_c; c++)
                sum += from[(size_t)c * n] * by[(size_t)c * taps];
        }
    return sum;
}

static int64_t flat_sum(const LaneLayer *l, const int8_t *in, uint32_t o) {
    size_t n = (size_t)l->in_c * l->mid[0] * l->mid[1];
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += in[i] * l->weight[o * n + i];
    return sum;
}

/* floor(0.5 + sum * 2^shift / 128), saturated. */
static int32_t code_of(int64_t sum, int32_t shift) {
    int64_t scaled = shift >= 0 ? sum * ((int64_t)1 << shift) : sum;
    int32_t down = shift >= 0 ? 7 : 7 - shift;
    return saturate((scaled + ((int64_t)1 << (down - 1))) >> down);
}

static int32_t result_of(const LaneLayer *l, const int8_t *in, uint32_t o,
                         uint32_t y, uint32_t x) {
    if (l->op == LANE_PASS)
        return in[((size_t)o * l->mid[0] + y) * l->mid[1] + x];
    int64_t sum = l->flatten ? flat_sum(l, in, o) : sum_of(l, in, o, y, x);
    sum += l->bias ? 128 * l->bias[o] : 0;
    if (l->width == 4)
        return (int32_t)sum;
    int32_t code = code_of(sum, l->shift);
    return l->act == LANE_RELU  ? (code < 0 ? 0 : code)
           : l->act == LANE_ABS ? (abs(code) > 127 ? 127 : abs(code))
                                : code;
}

/* ---- layers ---- */

/* Up to which window pixel (y, x) of the result needs its input. */
static uint32_t needs(const LaneLayer *l, uint32_t y, uint32_t x) {
    int64_t last[2] = {0, 0};
    uint32_t place[2] = {y, x};
    for (int a = 0; a < 2; a++)
        for (uint32_t k = 0; k < l->kernel[a]; k++) {
            int64_t at = tap(l, a, place[a], k);
            last[a] = at > last[a] ? at : last[a];
        }
    return l->flatten ? l->mid[0] * l->mid[1]
                      : (uint32_t)(last[0] * l->mid[1] + last[1] + 1);
}

/* A streaming layer's result goes where the ring of the next one is. */
static LaneCell result_cell(const Run *r, uint32_t at, uint32_t c,
                            uint32_t pixel, uint32_t k) {
    const LaneLayer *next = at + 1 < r->net->n ? &r->net->layer[at + 1] : NULL;
    LaneLayer l = r->net->layer[at];
    if (next && next->streaming) {
        uint32_t passes = l.out_passes;
        uint32_t count = lane_count(l.out_lanes);
        uint32_t word = (pixel * passes + c / count) % next->ring;
        uint32_t lane = lane_at(l.out_lanes, c % count);
        return (LaneCell){lane / r->m->bank,
                          l.out_offset + word * r->m->bank + lane % r->m->bank};
    }
    return lane_out_cell(r->m, &l, c, pixel, k);
}

static bool make_pixel(Run *r, uint32_t at) {
    const LaneLayer *l = &r->net->layer[at];
    Stage *s = &r->stage[at];
    uint32_t n = l->out[0] * l->out[1], pixel = s->n_made;
    if (pixel == n)
        return false;
    uint32_t y = pixel / l->out[1], x = pixel % l->out[1];
    for (uint32_t need = needs(l, y, x); s->n_read < need;)
        read_pixel(r, at);
    for (uint32_t c = 0; c < l->out_c; c++) {
        int32_t v = result_of(l, s->pooled, c, y, x);
        s->out[(size_t)c * n + pixel] = v;
        for (uint32_t k = 0; k < l->width; k++)
            write_cell(r, at, result_cell(r, at, c, pixel, k),
                       (uint8_t)((uint32_t)v >> (8 * k)),
                       (at + 2) * PIXELS + pixel);
    }
    s->n_made++;
    return true;
}

static uint32_t crc_of(Arena *arena, const LaneLayer *l, const int32_t *out) {
    uint64_t n = (uint64_t)l->out_c * l->out[0] * l->out[1];
    uint8_t *bytes = ARENA_ARRAY(arena, uint8_t, n * l->width);
    for (uint64_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < l->width; k++)
            bytes[i * l->width + k] = (uint8_t)((uint32_t)out[i] >> (8 * k));
    return crc32_of(bytes, n * l->width);
}

static void start(Run *r) {
    uint32_t banks = r->m->lanes / r->m->bank;
    r->bank = ARENA_ARRAY(r->arena, Cells, banks);
    r->result->high = ARENA_ARRAY(r->arena, uint32_t, banks);
    for (uint32_t i = 0; i < banks; i++)
        r->bank[i] = (Cells){ARENA_ARRAY(r->arena, uint8_t, r->m->bank_bytes),
                             ARENA_ARRAY(r->arena, uint32_t, r->m->bank_bytes)};
    r->stage = ARENA_ARRAY(r->arena, Stage, r->net->n);
    for (uint32_t i = 0; i < r->net->n; i++) {
        const LaneLayer *l = &r->net->layer[i];
        r->stage[i].pooled = ARENA_ARRAY(
            r->arena, int8_t, (size_t)l->in_c * l->mid[0] * l->mid[1]);
        r->stage[i].out = ARENA_ARRAY(r->arena, int32_t,
                                      (size_t)l->out_c * l->out[0] * l->out[1]);
    }
}

LaneRun *lanes_run(Arena *arena, const LaneMachine *m, const LaneNet *net,
                   const int8_t *input) {
    LaneRun *result = ARENA_NEW(arena, LaneRun);
    Run r = {
        .arena = arena, .m = m, .net = net, .input = input, .result = result};
    uint32_t *crc = ARENA_ARRAY(arena, uint32_t, net->n);
    start(&r);
    for (uint32_t i = 0;
         !net->layer[0].streaming && i < net->in[0] * net->in[1]; i++)
        feed(&r, i);
    for (uint32_t i = 0; i < net->n; i++) {
        const LaneLayer *l = &net->layer[i];
        bool pulled = i + 1 < net->n && net->layer[i + 1].streaming;
        while (!pulled && make_pixel(&r, i))
            ;
        if (l->streaming && !pulled)
            for (uint32_t k = i; k-- > 0;)
                while (make_pixel(&r, k)) /* rows that no pool reads */
                    ;
        result->n_out = l->out_c * l->out[0] * l->out[1];
        result->out = r.stage[i].out;
    }
    for (uint32_t i = 0; i < net->n; i++)
        crc[i] = crc_of(arena, &net->layer[i], r.stage[i].out);
    const uint8_t **memory =
        ARENA_ARRAY(arena, const uint8_t *, m->lanes / m->bank);
    for (uint32_t i = 0; i < m->lanes / m->bank; i++)
        memory[i] = r.bank[i].byte;
    result->crc = crc;
    result->memory = memory;
    return result;
}
