/* recompute_paths.c - how few bytes over DDR a plan moves, in any order,
 * whatever it computes again, that does not put rows together in active memory.
 *
 * Input: a schedule. Output: a bound.
 * Machines: their instructions and transfers write volumes of their own, with
 * channels outside of rows: rows from two instructions do not lie side by side
 * in all channels, unless one copies them there channel by channel, or makes
 * each channel of each row by itself. Of other plans this says nothing. So, of
 * the rows that an instruction reads of an operand, each channel was written by
 * one instruction, with all of these rows, or came by transfers. An instruction
 * may make some channels of a result (channel_pairs.c, channels_choose.c): a
 * dense convolution from all channels of its operand, of which all are there
 * then, others each from its own. One that copies reads at least what it
 * writes.
 *
 * A *path* is a row of results, each read by the layer of the next, itself or
 * in a concat. Some instruction makes row y of the last one. What it reads of
 * the one before has at least the rows from the first to the last behind y.
 * Either one instruction made all of these, from at least the rows behind
 * them; or each channel of them was loaded, and so was stored before, as
 * results are no inputs. And so on: with every layer there are more. Where an
 * instruction would read and write more bytes than there are, the path is
 * *blocked*; so of one result behind that layer, all rows that y is made from
 * were loaded. Of these rows, y is charged those that are not charged to a
 * smaller y: so each row of each result is charged once, and y pays no more
 * than the cheapest result that could be loaded. Stretches of the path that
 * have no result in common pay one beside the other: which pay most, dynamic
 * programming tells.
 *
 * Which rows y is made from is taken from below (receptive_field.h): where
 * strides leave holes, some are not counted.
 */
#include "alloc/bound/bound.h"
#include "alloc/geometry/receptive_field.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include <math.h>
#include <string.h>

/* Further than this no path is followed back. */
enum { LONGEST = 64 };

typedef struct Link {
    TensorId tensor;
    NodeId by; /* reads the link before */
    Feet feet;
    bool by_parts, windows;
    bool fits;  /* all of its rows can be made at once: it blocks nothing */
    double row; /* bytes that move if a row of it leaves and comes back */
    int64_t h;
} Link;

/* One row of a result, and what is behind it. */
typedef struct Trace {
    Span rows;    /* of the link that is looked at, from first to last */
    Span sure;    /* those that y is made from, from below */
    double least; /* bytes, of the links that could be loaded */
    bool ends;
} Trace;

typedef struct Paths {
    const Facts *f;
    const Decisions *d;
    TensorId *before;  /* by tensor: which the path comes from; NO_TENSOR */
    uint32_t *length;  /* by tensor: links up to it; 0: it is none */
    uint8_t *needed;   /* by tensor: all of its rows are */
    uint32_t n, first; /* first: the first link that may block */
    Link *link;
} Paths;

/* ---- which tensors ---- */

static bool machine_is_such(const Facts *f) {
    const HwSpec *spec = f->spec;
    const Layout *layout = spec->memory[0].layout;
    return spec->tiling.kind == HW_TILING_SOFTWARE &&
           !spec->tiling.rows.rolls && spec->n_active == 1 &&
           !spec->memory[0].buffers && !spec->replication.memories &&
           layout->n && layout->axis[0].dim == LAYOUT_C &&
           !layout->axis[0].split;
}

static bool may_link(const Decisions *d, NodeId id) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, id);
    if (!on_engine(f, id) || node->n_out != 1 ||
        d->mode[id.i].kind == MODE_AHEAD)
        return false;
    Feet rows = feet_of(f, id, 0);
    for (uint32_t i = 0; i < rows.n; i++)
        if (rows.foot[i].kind == FOOT_NONE)
            return false;
    return plan_volume(f->g, node->out[0]).c > 1;
}

static double tensor_bytes(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    return (double)v.c * v.h * v.w;
}

/* The longer path, or, where these are not `wide`, then the larger tensor; with
 * `wide` the other way round. */
static bool is_better(const Paths *p, TensorId a, TensorId b, bool wide) {
    if (b.i == NONE || !p->length[a.i] || !p->length[b.i])
        return p->length[a.i] > 0;
    double x = tensor_bytes(p->f, a), y = tensor_bytes(p->f, b);
    uint32_t m = p->length[a.i], n = p->length[b.i];
    return wide && x != y ? x > y : m != n ? m > n : x > y;
}

/* A concat is what its best member is. */
static void tensor_link(Paths *p, NodeId id, bool wide) {
    const Decisions *d = p->d;
    const Node *node = graph_node(d->f->g, id);
    bool placed = is_placed(d->f, id);
    TensorId best = NO_TENSOR;
    if (!placed && !may_link(d, id))
        return;
    for (uint32_t k = 0; k < node->n_in; k++) {
        TensorId t = node->in[k];
        NodeId maker = graph_tensor(d->f->g, t)->producer;
        if (is_placed(d->f, maker))
            t = p->before[t.i];
        if (t.i != NONE && is_better(p, t, best, wide))
            best = t;
    }
    p->before[node->out[0].i] = best;
    p->length[node->out[0].i] =
        placed ? 0 : 1 + (best.i == NONE ? 0 : p->length[best.i]);
}

static bool reader_needs_all(const Paths *p, TensorId t, NodeId id) {
    const Node *node = graph_node(p->f->g, id);
    if (!p->needed[node->out[0].i])
        return false;
    if (is_placed(p->f, id))
        return true;
    Feet rows = feet_of(p->f, id, 0);
    Volume v = plan_volume(p->f->g, t);
    return on_engine(p->f, id) &&
           feet_touched(&rows, v.h, plan_volume(p->f->g, node->out[0]).h) ==
               v.h;
}

static void needed_find(Paths *p) {
    const Facts *f = p->f;
    for (uint32_t s = f->schedule->n_steps; s-- > 0;)
        for (uint32_t i = 0; i < f->schedule->step[s].n; i++) {
            NodeId id = f->schedule->step[s].slot[i].node;
            TensorId t = graph_node(f->g, id)->out[0];
            bool needed = f->role[t.i].outside;
            for (uint32_t k = f->uses.start[t.i];
                 k < f->uses.start[t.i + 1] && !needed; k++)
                needed = reader_needs_all(p, t, f->uses.node[k]);
            p->needed[t.i] = needed;
        }
}

/* ---- a path ---- */

static bool has_windows(const Feet *feet) {
    for (uint32_t i = 0; i < feet->n; i++)
        if (feet->foot[i].kind != FOOT_WINDOW)
            return false;
    return true;
}

static Link link_make(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    NodeId by = graph_tensor(f->g, t)->producer;
    Feet feet = feet_of(f, by, 0);
    return (Link){.tensor = t,
                  .by = by,
                  .feet = feet,
                  .windows = has_windows(&feet),
                  .by_parts = f->spec->tiling.rows.ops >> f->legal[by.i].op & 1,
                  .row = (double)v.c * v.w * f->spec->element *
                         (f->role[t.i].outside ? 1 : 2),
                  .h = v.h};
}

/* The longest there is. */
static void path_make(Paths *p, bool wide) {
    const Facts *f = p->f;
    TensorId last = NO_TENSOR;
    memset(p->length, 0, f->g->tensor.n * sizeof *p->length);
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++)
        p->before[t.i] = NO_TENSOR;
    for (uint32_t s = 0; s < f->schedule->n_steps; s++)
        for (uint32_t i = 0; i < f->schedule->step[s].n; i++) {
            NodeId id = f->schedule->step[s].slot[i].node;
            TensorId t = graph_node(f->g, id)->out[0];
            tensor_link(p, id, wide);
            if (p->length[t.i] &&
                (last.i == NONE || p->length[t.i] > p->length[last.i]))
                last = t;
        }
    p->n = last.i == NONE ? 0 : p->length[last.i];
    for (uint32_t i = p->n; i-- > 0; last = p->before[last.i])
        p->link[i] = link_make(f, last);
}

/* ---- what is behind a row ---- */

static double row_tile_bytes(const Facts *f, TensorId t, int64_t rows) {
    Volume v = row_tile_in(f, t, (uint32_t)rows, 0);
    return (double)layout_bytes(f->spec->memory[0].layout, &v);
}

static bool was_read(const Node *node, uint32_t k) {
    for (uint32_t i = 0; i < k; i++)
        if (same_tensor(node->in[i], node->in[k]))
            return true;
    return false;
}

/* From the first to the last row of an operand of `size` that the link's rows
 * are made from. */
static Span rows_behind(const Facts *f, const Link *link, int64_t size,
                        Span rows) {
    Span sure = feet_reads(&link->feet, size, rows);
    if (!link->windows || size == 1)
        return sure;
    Rows need = rows_needed(f->g, link->by, (uint32_t)rows.at,
                            (uint32_t)span_length(rows));
    return (Span){need.in_row, need.in_row + need.in_rows};
}

/* Whether it may make some channels of its result from the same ones. */
static bool takes_channels(const Facts *f, const Link *link) {
    const Node *node = graph_node(f->g, link->by);
    return node->op == OP_POOL || (link->by_parts && goes_by_channel(f, node));
}

/* Bytes for the rows of the result: of one channel, where there may be others.
 */
static double made_bytes(const Facts *f, const Link *link, int64_t rows) {
    Volume v = row_tile_in(f, link->tensor, (uint32_t)rows, 0);
    if (f->spec->engine[f->legal[link->by.i].engine].in_place)
        return 0;
    if (link->by_parts && is_dense(graph_node(f->g, link->by)))
        v.c = 1;
    return (double)layout_bytes(f->spec->memory[0].layout, &v);
}

/* Whether an instruction can make the rows of the link, or some channels of
 * these. */
static bool can_make(const Facts *f, const Link *link, Span rows) {
    const Node *node = graph_node(f->g, link->by);
    if (takes_channels(f, link))
        return true;
    double sum = made_bytes(f, link, span_length(rows));
    for (uint32_t k = 0; k < node->n_in; k++) {
        int64_t size = plan_volume(f->g, node->in[k]).h;
        Span need = rows_behind(f, link, size, rows);
        if (!was_read(node, k))
            sum += row_tile_bytes(f, node->in[k], span_length(need));
    }
    return sum <= (double)f->total;
}

static void blocks_find(Paths *p) {
    p->first = p->n;
    for (uint32_t i = p->n; i-- > 0;) {
        Link *link = &p->link[i];
        link->fits = can_make(p->f, link, (Span){0, link->h});
        p->first = link->fits ? p->first : i;
    }
}

/* What rows of the link may cost, were they loaded: each y those before the
 * first of any larger one. */
static void traces_charge(const Link *link, Trace *trace, int64_t n) {
    int64_t next = link->h;
    for (int64_t y = n; y-- > 0;) {
        Trace *t = &trace[y];
        if (t->ends)
            continue;
        Span own = span_both(t->sure, (Span){0, next});
        double cost = (double)span_length(own) * link->row;
        t->least = cost < t->least ? cost : t->least;
        next = t->sure.at < next ? t->sure.at : next;
    }
}

/* Steps back over link i. Returns what those rows pay that it blocks. */
static double traces_step(const Paths *p, uint32_t i, Trace *trace, int64_t n) {
    const Link *link = &p->link[i];
    int64_t size = i ? p->link[i - 1].h : 0;
    double paid = 0;
    for (int64_t y = 0; y < n; y++) {
        Trace *t = &trace[y];
        if (t->ends)
            continue;
        if (!link->by_parts)
            t->rows = (Span){0, link->h};
        t->ends = !link->fits && !can_make(p->f, link, t->rows);
        paid += t->ends && t->least < HUGE_VAL ? t->least : 0;
        if (t->ends || !i)
            continue;
        t->rows = rows_behind(p->f, link, size, t->rows);
        t->sure = feet_reads(&link->feet, size, t->sure);
        t->ends = !span_length(t->sure) || !span_length(t->rows);
    }
    return paid;
}

static bool all_end(const Trace *trace, int64_t n) {
    for (int64_t y = 0; y < n; y++)
        if (!trace[y].ends)
            return false;
    return true;
}

/* Whether something blocks what is behind the row in the middle, which has most
 * behind it. */
static bool is_blocked(const Paths *p, uint32_t last) {
    int64_t y = p->link[last].h / 2;
    Trace trace = {{y, y + 1}, {y, y + 1}, 1, false};
    for (uint32_t i = last; last - i < LONGEST && i >= p->first; i--) {
        if (traces_step(p, i, &trace, 1) > 0)
            return true;
        if (trace.ends || !i)
            return false;
    }
    return false;
}

/* most[i]: what links before the i-th pay. Finds it for link `last`. */
static void most_find(const Paths *p, uint32_t last, double *most) {
    int64_t n = p->link[last].h;
    Trace *trace = ARENA_ARRAY(p->f->arena, Trace, (size_t)n);
    double sum = 0;
    for (int64_t y = 0; y < n; y++)
        trace[y] = (Trace){{y, y + 1}, {y, y + 1}, HUGE_VAL, false};
    for (uint32_t i = last; last - i < LONGEST && i >= p->first; i--) {
        if (i < last)
            traces_charge(&p->link[i], trace, n);
        sum += traces_step(p, i, trace, n);
        if (most[i] + sum > most[last])
            most[last] = most[i] + sum;
        if (!i || all_end(trace, n))
            return;
    }
}

static double path_bound(const Paths *p) {
    double *most = ARENA_ARRAY(p->f->arena, double, p->n + 1);
    if (p->first == p->n)
        return 0;
    for (uint32_t i = 1; i < p->n; i++) {
        most[i] = most[i - 1];
        if (p->needed[p->link[i].tensor.i] && is_blocked(p, i))
            most_find(p, i, most);
    }
    return p->n ? most[p->n - 1] : 0;
}

double paths_bound(const Decisions *d) {
    const Facts *f = d->f;
    Paths p = {.f = f, .d = d};
    double most = 0;
    if (!machine_is_such(f))
        return 0;
    p.before = ARENA_ARRAY(f->arena, TensorId, f->g->tensor.n + 1);
    p.length = ARENA_ARRAY(f->arena, uint32_t, f->g->tensor.n + 1);
    p.needed = ARENA_ARRAY(f->arena, uint8_t, f->g->tensor.n + 1);
    p.link = ARENA_ARRAY(f->arena, Link, f->g->tensor.n + 1);
    needed_find(&p);
    for (int wide = 0; wide < 2; wide++) {
        path_make(&p, wide);
        blocks_find(&p);
        double bound = path_bound(&p);
        most = bound > most ? bound : most;
    }
    return most;
}
