/* boxes.c - running a layer by boxes: some columns of some rows of some
 * channels of its result at a time.
 *
 * Input: a node, the bytes that are free at its step. Output: its mode: boxes
 * of one size, but for the last ones, and whether all of some channels are made
 * before the next ones. Of a layer that makes each channel from the same one of
 * its operands, boxes of these have as many channels; else they have all.
 * Method: of all boxes that fit, those that move least: operands where windows
 * overlap twice, weights that have no room once more for each part of the map,
 * or operands once more for each part of the channels. Where the engine goes on
 * with sums, a box may add up some input channels after the others. It is for
 * layers of
 * which not even the lowest stripe fits, or whose stripes would each load all
 * weights: what passes is loaded and stored.
 */
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"
#include "hwspec/insn.h"

enum {
    MOST_BOXES = 1 << 14, /* of a layer */
    MOST_CUTS = 96,       /* sizes along an axis that are tried */
    BOX_PRICE = 256,      /* bytes that a box more is as dear as */
    BOX_SLOTS = 4         /* of Memo, a node */
};

/* Along an axis, pieces of `n` pixels of the result, or channels: how many, the
 * most that one of them reads, what all read, and bytes that could move while
 * engines make fewer rows than they can. */
typedef struct Cut {
    uint32_t n, pieces, most;
    uint64_t sum, wasted;
} Cut;

typedef struct Boxes {
    const Facts *f;
    NodeId id;
    const Node *node;
    Volume in, out;
    bool each;        /* a channel is made from the same one of operands */
    bool doubled;     /* two boxes have places, so that transfers hide */
    uint64_t weights; /* bytes of them that are loaded; 0: none are */
    uint64_t room;    /* for them */
    uint32_t n[4];    /* cuts of rows, columns, channels, input channels */
    Cut cut[4][MOST_CUTS];
} Boxes;

/* One size along each axis. */
typedef struct Size {
    const Cut *rows, *cols, *channels, *ins;
} Size;

/* ---- sizes along an axis ---- */

/* Whether each piece of the node's result can be made by itself. */
static bool pieces_of(const Boxes *b, uint32_t axis, uint32_t all, Cut *cut) {
    *cut = (Cut){.n = cut->n, .pieces = (uint32_t)ceil_div(all, cut->n)};
    for (uint32_t at = 0; at < all; at += cut->n) {
        uint32_t n = smaller32(cut->n, all - at);
        Rows need = axis ? columns_needed(b->f->g, b->id, at, n)
                         : rows_needed(b->f->g, b->id, at, n);
        uint32_t in = need.in_rows;
        if (!in)
            return false;
        cut->most = in > cut->most ? in : cut->most;
        cut->sum += in;
    }
    uint64_t cycles = axis ? 0 : cycles_wasted(b->f, b->id, cut->n);
    cut->wasted = (uint64_t)bytes_during(b->f->spec, cycles);
    return true;
}

/* In so many pieces, and more, of sizes that differ; the largest first. */
static void cut_axis(Boxes *b, uint32_t axis) {
    uint32_t all = axis ? b->out.w : b->out.h, *n = &b->n[axis];
    uint32_t q = node_quantum(b->f->g, b->id, axis), last = 0;
    uint32_t turn = axis ? q : q * rows_at_once(b->f, b->id);
    const HwInsnSet *rows = b->f->spec->insns;
    bool lines = hwspec_by_columns(b->f->spec); /* pitches are of these */
    bool cuts = (axis == 0 || (rows && rows->tells_columns && !lines)) &&
                engine_takes_parts(b->f->spec, b->f->g, &b->f->legal[b->id.i],
                                   b->id, axis);
    for (uint32_t k = 1; k <= (cuts ? all : 1) && last != q; k++) {
        bool no_more = *n + 1 == MOST_CUTS;
        uint64_t one = ceil_div(all, k);
        one = no_more ? q : round_up(one, one > turn ? turn : q);
        Cut cut = {.n = smaller32((uint32_t)one, all)};
        if (one == last)
            continue;
        last = (uint32_t)one;
        if (pieces_of(b, axis, all, &cut))
            b->cut[axis][(*n)++] = cut;
    }
}

static bool engine_makes(const Boxes *b, uint32_t channels) {
    const HwEngine *engine = &b->f->spec->engine[b->f->legal[b->id.i].engine];
    return hw_range_has(&engine->limit[HW_LIMIT_OUT_C], channels) &&
           (!b->each || hw_range_has(&engine->limit[HW_LIMIT_IN_C], channels));
}

static void cut_channels(Boxes *b) {
    const HwEngine *engine = &b->f->spec->engine[b->f->legal[b->id.i].engine];
    uint32_t all = b->out.c, *n = &b->n[2], last = all;
    uint32_t q =
        b->each || is_dense(b->node) ? channel_tile_quantum(b->f, b->id) : NONE;
    b->cut[2][(*n)++] = (Cut){.n = all, .pieces = 1};
    if (q == NONE)
        return;
    uint32_t lanes = engine->unroll.out_c;
    uint32_t step = lanes && lanes % q == 0 ? lanes : q;
    for (uint32_t k = 2; k <= all && last > step && *n < MOST_CUTS; k++) {
        bool no_more = *n + 1 == MOST_CUTS;
        uint32_t one =
            no_more ? step : (uint32_t)round_up(ceil_div(all, k), step);
        uint32_t rest = all % one;
        if (one >= last)
            continue;
        last = one;
        if (engine_makes(b, one) && (!rest || engine_makes(b, rest)))
            b->cut[2][(*n)++] =
                (Cut){.n = one, .pieces = (uint32_t)ceil_div(all, one)};
    }
}

/* Whole turns of the array where that leaves any. */
static void cut_inputs(Boxes *b) {
    const Legal *legal = &b->f->legal[b->id.i];
    uint32_t all = b->in.c, *n = &b->n[3], last = all;
    b->cut[3][(*n)++] = (Cut){.n = all, .pieces = 1};
    uint32_t q = input_quantum(b->f, b->id);
    if (q == NONE)
        return;
    uint32_t lanes = b->f->spec->engine[legal->engine].unroll.in_c;
    uint32_t step = lanes && lanes % q == 0 ? lanes : q;
    for (uint32_t k = 2; k <= all && last > step && *n < MOST_CUTS; k++) {
        bool no_more = *n + 1 == MOST_CUTS;
        uint32_t one =
            no_more ? step : (uint32_t)round_up(ceil_div(all, k), step);
        if (one >= last)
            continue;
        last = one;
        b->cut[3][(*n)++] =
            (Cut){.n = one, .pieces = (uint32_t)ceil_div(all, one)};
    }
}

/* ---- what a box takes ---- */

/* Of an operand, or behind them of the result. */
static Volume box_of(const Boxes *b, uint32_t k, uint32_t channels,
                     uint32_t ins, uint32_t rows, uint32_t cols) {
    uint32_t c = k == b->node->n_in || b->each ? channels : ins;
    return (Volume){c, rows, cols, hwspec_repl_none(b->f->spec, c)};
}

/* Where a box adds up some input channels after the others, all of its sums
 * wait; and where they have one place, the box is not made by fewer channels.
 */
static bool has_sums_room(const Boxes *b, const Size *s) {
    bool waits = s->ins->pieces > 1;
    if (!sums_have_room(b->f, b->id, waits ? s->channels->n : 0, s->rows->n,
                        s->cols->n))
        return false;
    const Legal *legal = &b->f->legal[b->id.i];
    if (!waits || b->f->spec->insns->tells_sums ||
        !hwspec_keeps_sums(b->f->spec, legal->op, legal->engine))
        return true;
    uint64_t least = b->weights / b->out.c / b->in.c * s->channels->n *
                     input_quantum(b->f, b->id);
    return least <= b->room;
}

/* With its operands; UINT64_MAX: they have no places beside each other. */
static uint64_t bytes_with(const Boxes *b, const Size *s) {
    OperandBytes own[2 * (MAX_OPERANDS + 1)] = {0};
    uint32_t n = b->node->n_in + 1, all = b->doubled ? 2 * n : n;
    if (!has_sums_room(b, s))
        return UINT64_MAX;
    for (uint32_t i = 0; i < all; i++) {
        uint32_t k = i % n;
        bool is_in = k < b->node->n_in;
        TensorId t = node_operand(b->node, k);
        volume_pool_bytes(b->f,
                          box_of(b, k, s->channels->n, s->ins->n,
                                 is_in ? s->rows->most : s->rows->n,
                                 is_in ? s->cols->most : s->cols->n),
                          own[i].bytes);
        own[i].memories = reach_of(b->f, b->id, t);
    }
    return bytes_apart(b->f, own, all);
}

/* ---- what they move ---- */

static uint64_t boxes_of(const Size *s) {
    return (uint64_t)s->rows->pieces * s->cols->pieces * s->channels->pieces *
           s->ins->pieces;
}

static uint64_t inputs_moved(const Boxes *b, const Size *s) {
    return s->rows->sum * s->cols->sum * b->in.c * b->node->n_in *
           b->f->spec->element;
}

/* For weights: their memory, or what the box leaves of one that they share. */
static uint64_t room_beside(const Boxes *b, const Size *s) {
    uint64_t bytes = b->f->spec->weights || !b->weights ? 0 : bytes_with(b, s);
    return bytes < b->room ? b->room - bytes : 0;
}

static uint64_t cost_of(const Boxes *b, const Size *s, bool outer) {
    uint64_t in = inputs_moved(b, s), weights = b->weights;
    uint64_t some = ceil_div(b->weights, s->channels->pieces);
    if (weights && (outer ? some : weights) > room_beside(b, s))
        weights *= (uint64_t)s->rows->pieces * s->cols->pieces;
    if ((outer || s->ins->pieces > 1) && !b->each)
        in *= s->channels->pieces;
    uint64_t cost = in + weights + boxes_of(s) * BOX_PRICE;
    return cost + s->rows->wasted;
}

/* ---- the choice ---- */

static bool boxes_open(const Facts *f, NodeId id, Boxes *b) {
    const Node *node = graph_node(f->g, id);
    const HwTiling *tiling = &f->spec->tiling;
    if (tiling->kind != HW_TILING_SOFTWARE || f->spec->backing < 0 ||
        f->spec->replication.section || node->n_in == 0 ||
        node->n_in > MOST_APART - 1 || insn_own_plane(f->legal[id.i].op) ||
        only_rolls(node))
        return false;
    *b = (Boxes){.f = f,
                 .id = id,
                 .node = node,
                 .in = plan_volume(f->g, node->in[0]),
                 .out = plan_volume(f->g, node->out[0]),
                 .each = goes_by_channel(f, node)};
    for (uint32_t k = 1; k < node->n_in; k++)
        if (plan_volume(f->g, node->in[k]).h != b->in.h ||
            plan_volume(f->g, node->in[k]).w != b->in.w)
            return false;
    if (hwspec_stages(f->spec, f->legal[id.i].op)) {
        const HwMemory *m = &f->spec->memory[f->spec->weights];
        b->weights =
            (uint64_t)weight_taps(f->g, node) * b->out.c * m->layout->element;
        b->room = m->size;
    }
    return true;
}

static bool boxes_look(const Facts *f, NodeId id, Boxes *b) {
    if (!boxes_open(f, id, b))
        return false;
    cut_axis(b, 0);
    cut_axis(b, 1);
    cut_channels(b);
    cut_inputs(b);
    return b->n[0] && b->n[1];
}

static void take(const Boxes *b, const Size *s, bool outer, uint64_t *least,
                 Mode *out) {
    uint64_t cost = cost_of(b, s, outer);
    if (cost >= *least)
        return;
    *least = cost;
    *out = (Mode){.kind = MODE_ROW_TILES,
                  .streams_in = true,
                  .streams_out = true,
                  .rows = s->rows->n,
                  .cols = s->cols->n,
                  .channels = s->channels->n,
                  .in_channels = s->ins->pieces > 1 ? s->ins->n : 0,
                  .channels_outer = outer,
                  .style = -1};
}

/* The most input channels with which the box fits, of at most `from` cuts. */
static bool find_inputs(const Boxes *b, Size *s, uint64_t free) {
    uint32_t low = 0, high = b->n[3];
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        s->ins = &b->cut[3][mid];
        uint64_t bytes = bytes_with(b, s);
        if (bytes != UINT64_MAX && bytes <= free)
            high = mid;
        else
            low = mid + 1;
    }
    s->ins = &b->cut[3][low < b->n[3] ? low : 0];
    return low < b->n[3];
}

/* Of these rows and columns: with the most channels that fit, and with the most
 * of which the weights do; and all that go on with sums. */
static void try_spot(const Boxes *b, Size s, uint64_t free, uint64_t *least,
                     Mode *out) {
    bool inner = false;
    for (uint32_t k = 0; k < b->n[2] && inputs_moved(b, &s) < *least; k++) {
        s.channels = &b->cut[2][k];
        if (!find_inputs(b, &s, free))
            continue;
        if (boxes_of(&s) > MOST_BOXES)
            return;
        bool fits =
            ceil_div(b->weights, s.channels->pieces) <= room_beside(b, &s);
        bool several = s.channels->pieces > 1;
        if (s.ins->pieces > 1) {
            take(b, &s, several && fits, least, out);
            continue;
        }
        if (!inner)
            take(b, &s, false, least, out);
        inner = true;
        if (!fits)
            continue;
        take(b, &s, several, least, out);
        return;
    }
}

static Mode boxes_search(const Facts *f, NodeId id, uint64_t free,
                         bool doubled) {
    Mode mode = {.style = -1};
    uint64_t least = UINT64_MAX;
    Boxes box, *b = &box;
    if (!boxes_look(f, id, b))
        return mode;
    b->doubled = doubled;
    if (doubled)
        b->n[3] = 1;
    for (uint32_t i = 0; i < b->n[0]; i++)
        for (uint32_t k = 0; k < b->n[1]; k++)
            try_spot(b, (Size){&b->cut[0][i], &b->cut[1][k], NULL, NULL}, free,
                     &least, &mode);
    return mode;
}

size_t box_slots(const Graph *g) {
    return (size_t)g->node.n * BOX_SLOTS + 1;
}

/* What a box takes depends on the memories, too: what ends with one need not
 * end aligned. */
static bool is_known(const BoxKnown *known, const BoxKnown *asked) {
    return known->asked && known->free == asked->free &&
           known->total == asked->total && known->first == asked->first &&
           known->doubled == asked->doubled;
}

static bool choose(const Facts *f, NodeId id, uint64_t free, bool doubled,
                   Mode *mode) {
    BoxKnown *known = &f->memo->boxes[(size_t)id.i * BOX_SLOTS];
    BoxKnown asked = {.asked = true,
                      .doubled = doubled,
                      .free = free,
                      .total = f->total,
                      .first = f->spec->memory[0].size};
    uint32_t i = 0;
    while (i + 1 < BOX_SLOTS && known[i].asked && !is_known(&known[i], &asked))
        i++;
    if (!is_known(&known[i], &asked)) {
        asked.mode = boxes_search(f, id, free, doubled);
        known[i] = asked;
    }
    if (known[i].mode.kind == MODE_WHOLE)
        return false;
    *mode = known[i].mode;
    return true;
}

/* Those of a mode. */
typedef struct BoxCuts {
    Cut rows, cols, channels, ins;
    Size size;
} BoxCuts;

static bool cuts_of(const Boxes *b, const Mode *mode, BoxCuts *c) {
    uint32_t ins = mode->in_channels ? mode->in_channels : b->in.c;
    *c = (BoxCuts){
        .rows = {.n = mode->rows},
        .cols = {.n = mode->cols},
        .channels = {.n = mode->channels,
                     .pieces = (uint32_t)ceil_div(b->out.c, mode->channels)},
        .ins = {.n = ins, .pieces = (uint32_t)ceil_div(b->in.c, ins)}};
    c->size = (Size){&c->rows, &c->cols, &c->channels, &c->ins};
    return pieces_of(b, 0, b->out.h, &c->rows) &&
           pieces_of(b, 1, b->out.w, &c->cols);
}

/* A stripe of so many rows. */
static Mode stripe_of(const Boxes *b, uint32_t rows) {
    return (Mode){.rows = rows, .cols = b->out.w, .channels = b->out.c};
}

bool boxes_choose(const Facts *f, NodeId id, uint64_t free, Mode *mode) {
    return choose(f, id, free, false, mode);
}

/* Bytes of its operands and its result. */
static uint64_t volumes_bytes(const Boxes *b) {
    uint64_t in = (uint64_t)b->in.c * b->in.h * b->in.w * b->node->n_in;
    return (in + (uint64_t)b->out.c * b->out.h * b->out.w) *
           b->f->spec->element;
}

/* What boxes of the mode move; of one set, all that is loaded and stored counts
 * again, as nothing hides it, and of two that of a box. */
static bool mode_cost(const Boxes *b, const Mode *mode, bool doubled,
                      uint64_t *cost) {
    BoxCuts cuts;
    if (!cuts_of(b, mode, &cuts))
        return false;
    *cost = cost_of(b, &cuts.size, mode->channels_outer) +
            volumes_bytes(b) / (doubled ? boxes_of(&cuts.size) : 1);
    return true;
}

bool boxes_hide(const Facts *f, NodeId id, uint32_t rows, bool pair,
                uint64_t free, Mode *mode) {
    Boxes box, *b = &box;
    Mode best, stripe;
    uint64_t own, high;
    if (!boxes_open(f, id, b) || !choose(f, id, free, true, &best))
        return false;
    stripe = stripe_of(b, rows);
    if (!mode_cost(b, &stripe, pair, &high) ||
        !mode_cost(b, &best, true, &own) || own >= high)
        return false;
    *mode = best;
    mode->doubled = true;
    return true;
}

bool boxes_pay(const Facts *f, NodeId id, uint32_t rows, uint64_t free,
               bool any, Mode *mode) {
    Boxes box, *b = &box;
    Mode best;
    if (!hwspec_stages(f->spec, f->legal[id.i].op) || !boxes_look(f, id, b) ||
        (!any && b->weights <= b->room) || !boxes_choose(f, id, free, &best) ||
        (!any && !best.channels_outer))
        return false;
    Mode stripe = stripe_of(b, rows);
    BoxCuts own, high;
    if (!cuts_of(b, &stripe, &high) || !cuts_of(b, &best, &own) ||
        cost_of(b, &own.size, true) > cost_of(b, &high.size, false) / 4 * 3)
        return false;
    *mode = best;
    return true;
}

uint64_t boxes_bytes(const Facts *f, NodeId id, const Mode *mode) {
    Boxes box, *b = &box;
    BoxCuts cuts;
    return boxes_open(f, id, b) && cuts_of(b, mode, &cuts)
               ? bytes_with(b, &cuts.size)
               : UINT64_MAX;
}

bool boxes_smallest(const Facts *f, NodeId id, Mode *mode) {
    Boxes box, *b = &box;
    uint64_t least = UINT64_MAX;
    if (!boxes_look(f, id, b))
        return false;
    Size smallest = {&b->cut[0][b->n[0] - 1], &b->cut[1][b->n[1] - 1],
                     &b->cut[2][b->n[2] - 1], &b->cut[3][b->n[3] - 1]};
    take(b, &smallest, false, &least, mode);
    return true;
}

uint32_t boxes_count(const Facts *f, NodeId id, const Mode *mode) {
    Volume v = plan_volume(f->g, graph_node(f->g, id)->out[0]);
    uint32_t in = plan_volume(f->g, graph_node(f->g, id)->in[0]).c;
    uint32_t ins = mode->in_channels ? mode->in_channels : in;
    return (uint32_t)(ceil_div(v.h, mode->rows) * ceil_div(v.w, mode->cols) *
                      ceil_div(v.c, mode->channels) * ceil_div(in, ins));
}

Volume boxes_volume(const Facts *f, NodeId id, const Mode *mode, uint32_t k) {
    const Node *node = graph_node(f->g, id);
    Volume out = plan_volume(f->g, node->out[0]);
    Boxes b = {.f = f,
               .id = id,
               .node = node,
               .in = plan_volume(f->g, node->in[0]),
               .out = out,
               .each = goes_by_channel(f, node)};
    Cut rows = {.n = mode->rows}, cols = {.n = mode->cols};
    bool is_in = k < node->n_in;
    if (is_in)
        (void)(pieces_of(&b, 0, out.h, &rows) &&
               pieces_of(&b, 1, out.w, &cols));
    return box_of(&b, k, mode->channels,
                  mode->in_channels ? mode->in_channels : b.in.c,
                  is_in ? rows.most : rows.n, is_in ? cols.most : cols.n);
}
