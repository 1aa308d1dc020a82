/* single_compute_cuts.c - how few bytes over DDR a plan moves that computes
 * nothing twice, in any order.
 *
 * Input: leaves, and which rows each layer needs of them. Output: a bound.
 * A *cut* is a row of a result, or a pixel where layers roll by columns, of a
 * layer that makes each channel from all of its operand. When the first channel
 * of it is made, all that it is made from has been made, and nothing that is
 * made from it. So a row that the cut needs, directly or not, and that a row
 * needs which in turn needs the cut, is *caught*: it was made before, is read
 * behind, and nobody makes it again. It is in active memory then, or is loaded
 * behind, and was stored before unless it is outside anyway. Cuts of which each
 * needs the one before it follow each other in time in every plan. What is
 * caught by several in a row may stay outside for all of them at the cost of
 * one; a row that is read for certain between two cuts is loaded once more.
 * Those are the times and gaps of spill_lp.c: the rows of a base tensor are
 * caught by runs of cuts, and of all rows with the same numbers by cut the
 * longest runs are cheapest, so that numbers of bytes are enough. Rounded down
 * they stay a bound, as fewer rows are caught, too. What rows need is taken
 * from below: where strides or dilation leave holes, fewer rows.
 */
#include "alloc/bound/bound.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include "base/order.h"

#include "alloc/geometry/receptive_field.h"
#include "alloc/spill/spill_lp.h"

#include <stdlib.h>
#include <string.h>

typedef struct Area {
    Span axis[2]; /* rows, columns */
} Area;

static bool is_empty(const Area *a) {
    return a->axis[0].at >= a->axis[0].end || a->axis[1].at >= a->axis[1].end;
}

static int64_t pixels(const Area *a) {
    return span_length(a->axis[0]) * span_length(a->axis[1]);
}

/* ---- layers ---- */

/* A result of a layer; layers of the host, too. */
typedef struct Op {
    bool engine, parts; /* parts: some channels may be made before others, from
                         * fewer than all */
    uint32_t step, out; /* out: base tensor */
    uint32_t first, n;  /* operands, in Cuts.operand */
    Feet feet[2];       /* by axis */
} Op;

typedef struct Cut {
    uint32_t op;
    double excess;        /* bytes that it moves, were it the only one */
    double *caught;       /* bytes by base tensor */
    uint8_t *made, *open; /* by base tensor: all of it before, nothing before */
    uint8_t *behind;      /* by cut before it: whether this needs that */
    uint32_t from;        /* the one before it in its chain; NONE */
    double sum;           /* excess of the chain */
} Cut;

typedef struct Cuts {
    const Facts *f;
    const BaseTensors *bases;
    uint32_t n_ops, n;
    Op *op;                          /* by step */
    uint32_t *operand;               /* leaves */
    Area *whole, *need, *led, *held; /* by base tensor */
    Cut *cut;
} Cuts;

static Area area_of(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    return (Area){{{0, v.h}, {0, v.w}}};
}

static Op op_make(const Facts *f, const BaseTensors *bases, NodeId id,
                  TensorId t) {
    Op op = {.engine = on_engine(f, id),
             .parts = goes_by_channel(f, graph_node(f->g, id)),
             .step = f->schedule->step_of[id.i],
             .out = bases->of[t.i]};
    op.feet[0] = feet_of(f, id, 0);
    op.feet[1] = feet_of(f, id, 1);
    if (!hwspec_by_columns(f->spec))
        op.feet[1].foot[0].kind = FOOT_ALL;
    return op;
}

/* Each result of each layer, and by node the first of them. */
static void ops_make(Cuts *c, uint32_t *first_of) {
    const Facts *f = c->f;
    VEC(Op) ops = {0};
    for (uint32_t s = 0; s < f->schedule->n_steps; s++)
        for (uint32_t i = 0; i < f->schedule->step[s].n; i++) {
            NodeId id = f->schedule->step[s].slot[i].node;
            const Node *node = graph_node(f->g, id);
            first_of[id.i] = ops.n;
            for (uint32_t k = 0; k < node->n_out && !is_placed(f, id); k++)
                vec_push(f->arena, &ops,
                         op_make(f, c->bases, id, node->out[k]));
        }
    c->op = ops.at;
    c->n_ops = ops.n;
}

/* Of each op, what its node reads. */
static void operands_make(Cuts *c, const uint32_t *first_of) {
    const Facts *f = c->f;
    const BaseTensors *bases = c->bases;
    uint32_t sum = 0;
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t l = 0; l < bases->n; l++)
            for (uint32_t i = 0; i < bases->at[l].n; i++) {
                NodeId id = bases->at[l].reader[i];
                uint32_t n_out = graph_node(f->g, id)->n_out;
                for (uint32_t k = 0; k < n_out; k++) {
                    Op *op = &c->op[first_of[id.i] + k];
                    if (fill)
                        c->operand[op->first + op->n] = l;
                    op->n++;
                }
            }
        for (uint32_t o = 0; o < c->n_ops && !fill; o++) {
            c->op[o].first = sum;
            sum += c->op[o].n;
            c->op[o].n = 0;
        }
        if (!fill)
            c->operand = ARENA_ARRAY(f->arena, uint32_t, sum + 1);
    }
}

static Span op_reads(const Cuts *c, const Op *op, uint32_t base, uint32_t axis,
                     Span made) {
    return feet_reads(&op->feet[axis], c->whole[base].axis[axis].end, made);
}

static Span op_readers(const Cuts *c, const Op *op, uint32_t base,
                       uint32_t axis, Span read) {
    return feet_readers(&op->feet[axis], c->whole[base].axis[axis].end,
                        c->whole[op->out].axis[axis].end, read);
}

/* ---- one cut ---- */

static bool same(Span a, Span b) {
    return a.at == b.at && a.end == b.end;
}

/* Some of both, as an area: all, if that is one; else the larger. */
static void area_add(Area *to, const Area *more) {
    for (uint32_t axis = 0; axis < 2; axis++) {
        Span a = to->axis[axis], b = more->axis[axis];
        bool use = a.at <= b.end && b.at <= a.end;
        if (is_empty(to) || is_empty(more) || !use ||
            !same(to->axis[!axis], more->axis[!axis]))
            continue;
        to->axis[axis] =
            (Span){a.at < b.at ? a.at : b.at, a.end > b.end ? a.end : b.end};
        return;
    }
    if (pixels(more) > pixels(to))
        *to = *more;
}

/* What the cut needs, of each base tensor. */
static void needs_find(Cuts *c, uint32_t cut, const Area *row) {
    memset(c->need, 0, c->bases->n * sizeof *c->need);
    c->need[c->op[cut].out] = *row;
    for (uint32_t o = cut + 1; o-- > 0;) {
        const Op *op = &c->op[o];
        const Area *made = &c->need[op->out];
        for (uint32_t i = 0; i < op->n && !is_empty(made); i++) {
            uint32_t l = c->operand[op->first + i];
            Area area = {{op_reads(c, op, l, 0, made->axis[0]),
                          op_reads(c, op, l, 1, made->axis[1])}};
            area_add(&c->need[l], &area);
        }
    }
}

/* What needs the cut, of each base tensor; and of what the cut needs, what
 * engines make such from. */
static void held_find(Cuts *c, uint32_t cut, const Area *row) {
    memset(c->led, 0, c->bases->n * sizeof *c->led);
    memset(c->held, 0, c->bases->n * sizeof *c->held);
    c->led[c->op[cut].out] = *row;
    for (uint32_t o = cut + 1; o < c->n_ops; o++) {
        const Op *op = &c->op[o];
        Area *made = &c->led[op->out];
        for (uint32_t i = 0; i < op->n; i++) {
            const Area *from = &c->led[c->operand[op->first + i]];
            if (is_empty(from))
                continue;
            uint32_t l = c->operand[op->first + i];
            Area area = {{op_readers(c, op, l, 0, from->axis[0]),
                          op_readers(c, op, l, 1, from->axis[1])}};
            area_add(made, &area);
        }
        for (uint32_t i = 0; i < op->n && op->engine && !is_empty(made); i++) {
            uint32_t l = c->operand[op->first + i];
            const Area *need = &c->need[l];
            Area area;
            for (uint32_t axis = 0; axis < 2; axis++)
                area.axis[axis] =
                    span_both(need->axis[axis],
                              op_reads(c, op, l, axis, made->axis[axis]));
            if (!is_empty(&area))
                area_add(&c->held[l], &area);
        }
    }
}

static bool is_whole(const Cuts *c, const Area *area, uint32_t base) {
    return pixels(area) == pixels(&c->whole[base]);
}

/* Bytes that are caught: in parts of a base tensor, so that few numbers differ.
 */
static double caught(const Cuts *c, uint32_t base) {
    enum { PARTS = 16 };
    int64_t all = pixels(&c->whole[base]);
    int64_t part =
        is_empty(&c->held[base]) ? 0 : pixels(&c->held[base]) * PARTS / all;
    return c->bases->at[base].bytes / PARTS * (double)part;
}

typedef struct Price {
    double bytes, moved;
} Price;

static int by_price(const void *a, const void *b) {
    const Price *x = a, *y = b;
    double p = x->moved * y->bytes, q = y->moved * x->bytes;
    return ORDER_UP(p, q);
}

/* What moves at least for one cut. */
static double excess(const Cuts *c, const Cut *cut, Price *price) {
    double moved = 0, much = -active_moved(c->f);
    uint32_t n = 0;
    for (uint32_t l = 0; l < c->bases->n; l++) {
        const BaseTensor *base = &c->bases->at[l];
        double bytes = cut->caught[l];
        if (bytes <= 0)
            continue;
        much += bytes;
        price[n++] = (Price){bytes, bytes + base->store / base->bytes * bytes};
    }
    if (n && much > 0)
        qsort(price, n, sizeof *price, by_price);
    for (uint32_t i = 0; i < n && much > 0; i++) {
        double part = price[i].bytes < much ? price[i].bytes : much;
        moved += price[i].moved * part / price[i].bytes;
        much -= part;
    }
    return moved;
}

static bool covers(const Area *a, const Area *b) {
    for (uint32_t axis = 0; axis < 2; axis++)
        if (a->axis[axis].at > b->axis[axis].at ||
            a->axis[axis].end < b->axis[axis].end)
            return false;
    return true;
}

/* A row in the middle, of which most needs and is needed. */
static Area cut_row(const Cuts *c, uint32_t op) {
    Area row = c->whole[c->op[op].out];
    uint32_t axes = hwspec_by_columns(c->f->spec) ? 2 : 1;
    for (uint32_t axis = 0; axis < axes; axis++) {
        int64_t at = row.axis[axis].end / 2;
        row.axis[axis] = (Span){at, at + 1};
    }
    return row;
}

static void cut_make(Cuts *c, uint32_t op, Price *price) {
    uint32_t n = c->bases->n;
    Arena *arena = c->f->arena;
    Cut *cut = &c->cut[c->n];
    Area row = cut_row(c, op);
    *cut = (Cut){.op = op,
                 .caught = ARENA_ARRAY(arena, double, n + 1),
                 .made = ARENA_ARRAY(arena, uint8_t, n + 1),
                 .open = ARENA_ARRAY(arena, uint8_t, n + 1),
                 .behind = ARENA_ARRAY(arena, uint8_t, c->n + 1)};
    needs_find(c, op, &row);
    held_find(c, op, &row);
    for (uint32_t l = 0; l < n; l++) {
        cut->caught[l] = caught(c, l);
        cut->made[l] = is_whole(c, &c->need[l], l);
        cut->open[l] = is_whole(c, &c->led[l], l);
    }
    for (uint32_t i = 0; i < c->n; i++) {
        Area other = cut_row(c, c->cut[i].op);
        cut->behind[i] = covers(&c->need[c->op[c->cut[i].op].out], &other);
    }
    cut->excess = excess(c, cut, price);
    c->n += cut->excess > 0;
}

/* ---- which cuts ---- */

/* By step: bytes that wait in whatever order, were all of them whole. */
static double *crossing(const Cuts *c) {
    const Facts *f = c->f;
    uint32_t n = f->schedule->n_steps;
    double *live = ARENA_ARRAY(f->arena, double, n + 2);
    for (uint32_t l = 0; l < c->bases->n; l++) {
        const BaseTensor *base = &c->bases->at[l];
        if (!base->n)
            continue;
        uint32_t first = base->made == NONE ? 0 : base->made;
        live[first] += base->bytes;
        live[f->schedule->step_of[base->reader[base->n - 1].i]] -= base->bytes;
    }
    for (uint32_t s = 0; s < n; s++)
        live[s + 1] += live[s];
    return live;
}

/* Of steps that may catch too much, as many as there is time for. */
static void cuts_make(Cuts *c) {
    enum { LEAST = 8, MOST = 96, STEPS = 8000 };
    uint32_t most = STEPS / (c->n_ops + 1), n = 0, tried = 0;
    most = most < LEAST ? LEAST : most > MOST ? MOST : most;
    const double *live = crossing(c);
    uint32_t *op = ARENA_ARRAY(c->f->arena, uint32_t, c->n_ops + 1);
    for (uint32_t o = 0; o < c->n_ops; o++)
        if (!c->op[o].parts && live[c->op[o].step] > active_moved(c->f))
            op[n++] = o;
    Price *price = ARENA_ARRAY(c->f->arena, Price, c->bases->n + 1);
    c->cut = ARENA_ARRAY(c->f->arena, Cut, most + 1);
    for (uint32_t i = 0; i < n; i++)
        if ((uint64_t)i * most / n >= tried || n <= most) {
            cut_make(c, op[i], price);
            tried++;
        }
}

/* The chain of cuts, one behind the other, that move most one by one: the last
 * of it; NONE. */
static uint32_t chain_find(Cuts *c) {
    uint32_t best = NONE;
    for (uint32_t i = 0; i < c->n; i++) {
        Cut *cut = &c->cut[i];
        cut->from = NONE;
        for (uint32_t k = 0; k < i; k++)
            if (cut->behind[k] &&
                (cut->from == NONE || c->cut[k].sum > c->cut[cut->from].sum))
                cut->from = k;
        cut->sum =
            cut->excess + (cut->from == NONE ? 0 : c->cut[cut->from].sum);
        if (best == NONE || cut->sum > c->cut[best].sum)
            best = i;
    }
    return best;
}

/* ---- the program ---- */

typedef struct Chain {
    uint32_t n;
    const Cut **cut;
    uint8_t *
        again; /* by cut: the base tensor is read for certain before the next */
    SpillProgram x;
    uint32_t units;
} Chain;

/* Whether some reader of the base tensor makes all that it makes between two
 * cuts. */
static bool read_between(const Cuts *c, const BaseTensor *base, const Cut *a,
                         const Cut *b) {
    for (uint32_t i = 0; i < base->n; i++) {
        const Node *node = graph_node(c->f->g, base->reader[i]);
        uint32_t out = c->bases->of[node->out[0].i];
        if (on_engine(c->f, base->reader[i]) && a->open[out] && b->made[out])
            return true;
    }
    return false;
}

/* Bytes that are caught by cuts [first, end): a gap for each run without a
 * reader between, one store for all. */
static void channel_tile_add(Chain *chain, const BaseTensor *base,
                             uint32_t first, uint32_t end, double bytes) {
    for (uint32_t i = first, at = first; i < end; i++) {
        if (i + 1 < end && !chain->again[i])
            continue;
        SpillInterval stay = {.alias = chain->units,
                              .first = at,
                              .end = i + 1,
                              .bytes = bytes,
                              .load = bytes,
                              .store = base->store / base->bytes * bytes};
        vec_push(chain->x.arena, &chain->x.stay, stay);
        at = i + 1;
    }
    chain->units++;
}

/* What a base tensor has at each cut, as the longest runs there are. */
static void channel_tiles_add(Chain *chain, const BaseTensor *base,
                              uint32_t l) {
    typedef struct Open {
        uint32_t first;
        double bytes;
    } Open;
    Open *open = ARENA_ARRAY(chain->x.arena, Open, chain->n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i <= chain->n; i++) {
        double now = i < chain->n ? chain->cut[i]->caught[l] : 0;
        uint32_t first = i;
        while (n && open[n - 1].bytes > now) {
            double under =
                n > 1 && open[n - 2].bytes > now ? open[n - 2].bytes : now;
            channel_tile_add(chain, base, open[n - 1].first, i,
                             open[n - 1].bytes - under);
            first = open[--n].first;
        }
        if (now > 0 && (!n || open[n - 1].bytes < now))
            open[n++] = (Open){first, now};
    }
}

static double chain_bound(const Cuts *c, uint32_t last) {
    Arena *arena = c->f->arena;
    Chain chain = {.again = ARENA_ARRAY(arena, uint8_t, c->n + 1)};
    chain.cut = ARENA_ARRAY(arena, const Cut *, c->n + 1);
    for (uint32_t i = last; i != NONE; i = c->cut[i].from)
        chain.n++;
    for (uint32_t i = last, k = chain.n; i != NONE; i = c->cut[i].from)
        chain.cut[--k] = &c->cut[i];
    chain.x = (SpillProgram){.arena = arena,
                             .total = active_moved(c->f),
                             .n_times = chain.n,
                             .live = ARENA_ARRAY(arena, double, chain.n + 1)};
    for (uint32_t l = 0; l < c->bases->n; l++) {
        const BaseTensor *base = &c->bases->at[l];
        for (uint32_t i = 0; i < chain.n; i++) {
            chain.x.live[i] += chain.cut[i]->caught[l];
            chain.again[i] =
                i + 1 < chain.n &&
                read_between(c, base, chain.cut[i], chain.cut[i + 1]);
        }
        channel_tiles_add(&chain, base, l);
    }
    return spill_lp_bound(&chain.x);
}

double cuts_bound(const Facts *f, const BaseTensors *bases) {
    Arena *arena = f->arena;
    Cuts c = {.f = f, .bases = bases};
    uint32_t *first_of = ARENA_ARRAY(arena, uint32_t, f->g->node.n + 1);
    c.whole = ARENA_ARRAY(arena, Area, bases->n + 1);
    c.need = ARENA_ARRAY(arena, Area, bases->n + 1);
    c.led = ARENA_ARRAY(arena, Area, bases->n + 1);
    c.held = ARENA_ARRAY(arena, Area, bases->n + 1);
    for (uint32_t l = 0; l < bases->n; l++)
        c.whole[l] = area_of(f, bases->at[l].tensor);
    ops_make(&c, first_of);
    operands_make(&c, first_of);
    cuts_make(&c);
    uint32_t last = chain_find(&c);
    if (last == NONE)
        return 0;
    double moved = chain_bound(&c, last);
    for (uint32_t i = 0; i < c.n; i++)
        moved = c.cut[i].excess > moved ? c.cut[i].excess : moved;
    return moved;
}
