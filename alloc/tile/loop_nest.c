/* loop_nest.c - tiles of rows, columns, output and input channels: which sizes
 * and which order of loops cost least in bytes and cycles.
 *
 * Input: a convolution, the bytes of active memory for its tiles. Output: its
 * Mode: a tile size, which tile stays, where the tiles lie.
 * Method: every size that cuts an axis into a number of nearly equal pieces,
 * with both orders; what each moves, and how long it takes, is a closed form.
 * Between two tiles of rows and columns the halo is read again. Tiles of the
 * input and of weights are doubled where there are several, so that the next
 * comes while one is in use; partial sums stay until all input channels have
 * been added.
 *
 *     for each tile of rows and columns       (or these two the other
 *         for each tile of output channels     way round: weights stay)
 *             for each tile of input channels
 *
 * Where a kernel steps over pixels, tiles have those alone that it reads.
 * facts/two-level.md 2.4; the bound that bench/tiles.py prints is Chen et al.,
 * "Communication lower bound in convolution accelerators", HPCA 2020.
 */
#include "alloc/tile/loop_nest.h"
#include "alloc/tile/tile.h"

#include <string.h>

typedef struct Cuts {
    uint32_t n;
    Cut at[NEST_CUTS];
} Cuts;

typedef struct Best {
    uint64_t moved, cycles, tiles; /* moved UINT64_MAX: none so far */
    uint64_t ideal;                /* cycles: no tiles take fewer */
    uint64_t end;                  /* of its tiles */
    const NestKnown *limit;        /* what costs more is not looked at; NULL */
    Mode mode;
} Best;

/* Numbers of channels that a tile may have, the largest first. */
typedef struct Channels {
    uint32_t n, size[NEST_CUTS];
} Channels;

typedef struct Axes {
    Cuts rows, cols;
    Channels c, in;
} Axes;

static void cuts_make(Arena *arena, const Loops *l, uint32_t axis, Cuts *cuts) {
    uint32_t tile[NEST_CUTS], in = axis ? l->in.w : l->in.h;
    uint32_t out = axis ? l->out.w : l->out.h;
    cuts->n = nest_sizes(out, tile);
    for (uint32_t i = 0; i < cuts->n; i++)
        cuts->at[i] = nest_cut(arena, l->conv, axis, in, out, tile[i]);
}

/* Everything once, halos apart. */
static uint64_t once(const Loops *l, const Sizes *s) {
    uint64_t input = s->rows->sum * s->cols->sum * l->in.c * l->element;
    return nest_weights(l) + (l->style->in_backing ? input : 0);
}

/* ---- the search ---- */

static double price(const Loops *l, uint64_t moved, uint64_t cycles) {
    return (double)cycles + l->byte_cycles * (double)moved;
}

static bool is_beyond(const Loops *l, uint64_t moved, uint64_t cycles,
                      const NestKnown *limit) {
    if (l->bytes_alone && moved != limit->moved)
        return moved > limit->moved;
    return price(l, moved, cycles) > price(l, limit->moved, limit->cycles);
}

static bool beats(const Loops *l, uint64_t moved, uint64_t cycles,
                  uint64_t tiles, const Best *best) {
    if (best->limit && is_beyond(l, moved, cycles, best->limit))
        return false;
    if (l->bytes_alone && moved != best->moved)
        return moved < best->moved;
    double mine = price(l, moved, cycles);
    double other = price(l, best->moved, best->cycles);
    return mine != other ? mine < other : tiles < best->tiles;
}

static void consider(const Loops *l, const Sizes *s, Best *best) {
    Nest nest = {.c = s->c, .in_c = s->in_c};
    uint64_t tiles = nest_tiles(l, s), end = nest_lay(l, s, &nest), least = 0;
    if (tiles > NEST_TILES || end > l->style->reserved)
        return;
    for (int stay = 0; stay < 2; stay++) {
        uint64_t moved = nest_moved(l, s, stay);
        if (!beats(l, moved, best->ideal, tiles, best))
            continue;
        least = least ? least : nest_least_cycles(l, s);
        if (!beats(l, moved, least, tiles, best))
            continue;
        uint64_t cycles = nest_cycles(l, s, stay);
        if (!beats(l, moved, cycles, tiles, best))
            continue;
        nest.weights_stay = stay;
        best->moved = moved;
        best->cycles = cycles;
        best->tiles = tiles;
        best->end = end;
        best->mode.tile_h = s->rows->tile;
        best->mode.tile_w = s->cols->tile;
        best->mode.nest = nest;
    }
}

/* Whether some order of the loops could be better than what is known, were no
 * engine to wait, nor any tile too large. */
static bool may_beat(const Loops *l, const Sizes *s, const Best *best) {
    return beats(l, nest_moved(l, s, false), best->ideal, 0, best) ||
           beats(l, nest_moved(l, s, true), best->ideal, 0, best);
}

/* As many input channels as there is room for, but not all of them; 0: none. */
static uint32_t deepest(const Loops *l, const Sizes *sizes,
                        const Channels *in) {
    Nest unused;
    Sizes s = *sizes;
    uint32_t lo = 1, hi = in->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        s.in_c = in->size[mid];
        if (nest_lay(l, &s, &unused) <= l->style->reserved)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo < in->n ? in->size[lo] : 0;
}

/* All input channels at once, or else as many as there is room for: what is
 * moved does not depend on how many. */
static void consider_depths(const Loops *l, Sizes *s, const Channels *in,
                            Best *best) {
    s->in_c = l->by_channel ? s->c : in->size[0];
    if (nest_sums(l, s) > l->style->reserved || !may_beat(l, s, best))
        return;
    consider(l, s, best);
    if (l->by_channel || in->n < 2)
        return;
    s->in_c = in->size[1];
    if (!may_beat(l, s, best))
        return;
    s->in_c = deepest(l, s, in);
    if (s->in_c)
        consider(l, s, best);
}

static Loops loops_of(const Facts *f, NodeId id, const HwTileStyle *style) {
    const Node *node = graph_node(f->g, id);
    bool input = f->role[node->in[0].i].origin == FROM_INPUT;
    return loops_make(f->spec, f->g, node, &f->legal[id.i], style,
                      input ? f->spec->input : f->spec->backing);
}

/* What does not fit: remembered if it takes less than what is. */
static void smaller(const Loops *l, const Sizes *s, Best *best) {
    Nest nest = {.c = s->c, .in_c = s->in_c};
    uint64_t end = nest_lay(l, s, &nest), least = best->mode.nest.over;
    if (nest_tiles(l, s) > NEST_TILES || (least && least <= end))
        return;
    nest.over = end;
    best->mode.tile_h = s->rows->tile;
    best->mode.tile_w = s->cols->tile;
    best->mode.nest = nest;
}

/* As few input channels as there can be, or all: two tiles of some may take
 * more than one of all. */
static void smaller_depths(const Loops *l, Sizes *s, const Channels *in,
                           Best *best) {
    s->in_c = l->by_channel ? s->c : in->size[0];
    smaller(l, s, best);
    if (l->by_channel)
        return;
    uint32_t lo = 0, hi = in->n - 1;
    while (lo < hi) {
        uint32_t mid = (lo + hi + 1) / 2;
        s->in_c = in->size[mid];
        if (nest_tiles(l, s) <= NEST_TILES)
            lo = mid;
        else
            hi = mid - 1;
    }
    s->in_c = in->size[lo];
    smaller(l, s, best);
}

static bool sums_are_less(const Loops *l, const Sizes *s, const Best *best) {
    uint64_t over = best->mode.nest.over;
    return !over || nest_sums(l, s) < over;
}

/* The tiles that take least, where all are too large: the smallest of which
 * there are no more than can be run. */
static void smallest(const Loops *l, const Axes *a, Best *best) {
    best->mode.nest.over = 0;
    for (uint32_t i = a->rows.n; i-- > 0;)
        for (uint32_t j = a->cols.n; j-- > 0;) {
            Sizes s = {&a->rows.at[i], &a->cols.at[j], 0, 0};
            for (uint32_t k = a->c.n; k-- > 0;) {
                s.c = a->c.size[k];
                if (!sums_are_less(l, &s, best))
                    break;
                smaller_depths(l, &s, &a->in, best);
            }
        }
}

/* All sizes, but those that cost more than the limit. */
static void search(const Loops *l, const Axes *a, Best *best) {
    for (uint32_t i = 0; i < a->rows.n; i++)
        for (uint32_t j = 0; j < a->cols.n; j++) {
            Sizes s = {&a->rows.at[i], &a->cols.at[j], 0, 0};
            for (uint32_t k = 0;
                 k < a->c.n && beats(l, once(l, &s), best->ideal, 0, best);
                 k++) {
                s.c = a->c.size[k];
                consider_depths(l, &s, &a->in, best);
            }
        }
}

static const Axes *axes_make(Arena *arena, const Loops *l) {
    Axes *a = ARENA_NEW(arena, Axes);
    a->c.n = nest_sizes(l->out.c, a->c.size);
    a->in.n = nest_sizes(l->in.c, a->in.size);
    cuts_make(arena, l, 0, &a->rows);
    cuts_make(arena, l, 1, &a->cols);
    return a;
}

/* Fills `found` with the smallest tiles of the mode's style. */
static void nest_least(const Facts *f, NodeId id, const Mode *mode,
                       NestKnown *found) {
    Loops l = loops_of(f, id, &f->spec->tiling.tiles.style[mode->style]);
    Arena *arena = arena_new("nest");
    Best best = {.mode = *mode};
    smallest(&l, axes_make(arena, &l), &best);
    found->end = best.mode.nest.over;
    found->mode = best.mode;
    arena_free(arena);
}

/* Fills `found` for the mode's style. `limit`: tiles that fit, too, of another
 * number of input channels perhaps; or NULL. */
static void nest_search(const Facts *f, NodeId id, const Mode *mode,
                        const NestKnown *limit, NestKnown *found) {
    Loops l = loops_of(f, id, &f->spec->tiling.tiles.style[mode->style]);
    Arena *arena = arena_new("nest");
    l.bytes_alone |= f->memo->table != NULL; /* which weighs both */
    const Axes *a = axes_make(arena, &l);
    Best best = {.moved = UINT64_MAX,
                 .ideal = nest_ideal_cycles(&l),
                 .limit = limit,
                 .mode = *mode};
    search(&l, a, &best);
    best.limit = NULL;
    if (best.moved == UINT64_MAX && limit)
        search(&l, a, &best);
    if (best.moved == UINT64_MAX)
        smallest(&l, a, &best);
    found->reserved = l.style->reserved;
    found->end = best.end;
    found->moved = best.moved;
    found->cycles = best.cycles;
    found->mode = best.mode;
    arena_free(arena);
}

size_t nest_slots(const Schedule *schedule) {
    return (size_t)(schedule->graph->node.n + 1) *
           schedule->spec->tiling.tiles.n;
}

static size_t slot_of(const Facts *f, NodeId id, const Mode *mode) {
    return (size_t)id.i * f->spec->tiling.tiles.n +
           (size_t)(uint32_t)mode->style;
}

static NestKnown **smallest_slot(const Facts *f, NodeId id, const Mode *mode) {
    return &f->memo->smallest[slot_of(f, id, mode)];
}

static NestKnown **known_slot(const Facts *f, NodeId id, const Mode *mode) {
    return &f->memo->nest[slot_of(f, id, mode)];
}

static bool volumes_equal(const Graph *g, TensorId a, TensorId b) {
    Volume x = plan_volume(g, a), y = plan_volume(g, b);
    return x.c == y.c && x.h == y.h && x.w == y.w;
}

/* Whether both nodes have the same loops by each style. */
static bool nodes_alike(const Facts *f, NodeId a, NodeId b) {
    const Node *x = graph_node(f->g, a), *y = graph_node(f->g, b);
    const Legal *p = &f->legal[a.i], *q = &f->legal[b.i];
    bool x_input = f->role[x->in[0].i].origin == FROM_INPUT;
    bool y_input = f->role[y->in[0].i].origin == FROM_INPUT;
    return p->op == q->op && p->engine == q->engine && x_input == y_input &&
           volumes_equal(f->g, x->in[0], y->in[0]) &&
           volumes_equal(f->g, x->out[0], y->out[0]) &&
           !memcmp(&x->attr.conv, &y->attr.conv, sizeof x->attr.conv);
}

/* What is known of the node by the mode's style, for these bytes; NULL. */
static const NestKnown *known_of(const Facts *f, NodeId id, const Mode *mode) {
    uint64_t reserved = f->spec->tiling.tiles.style[mode->style].reserved;
    const NestKnown *known = *known_slot(f, id, mode);
    while (known && (reserved < known->end || reserved > known->reserved))
        known = known->older;
    return known;
}

/* Known of it, the largest that takes no more bytes than there are; NULL. */
static const NestKnown *limit_of(const Facts *f, NodeId id, const Mode *mode) {
    uint64_t reserved = f->spec->tiling.tiles.style[mode->style].reserved;
    const NestKnown *most = NULL;
    for (const NestKnown *k = *known_slot(f, id, mode); k; k = k->older)
        if (k->moved < UINT64_MAX && k->end <= reserved &&
            (!most || k->end > most->end))
            most = k;
    return most;
}

static bool is_known(const Facts *f, NodeId id, const Mode *mode) {
    size_t slot = slot_of(f, id, mode);
    return f->memo->nest[slot] || (f->memo->table && (f->memo->table[slot] ||
                                                      f->memo->smallest[slot]));
}

/* The first node with the same loops of which some are known, or itself. */
static NodeId node_known(const Facts *f, NodeId id, const Mode *mode) {
    if (is_known(f, id, mode))
        return id;
    for (NodeId n = {0}; n.i < f->g->node.n; n.i++)
        if (is_known(f, n, mode) && nodes_alike(f, n, id))
            return n;
    return id;
}

static void take(Mode *mode, const Mode *tiles) {
    mode->tile_h = tiles->tile_h;
    mode->tile_w = tiles->tile_w;
    mode->nest = tiles->nest;
}

/* The smallest tiles; false if they do not fit. */
static bool nest_smallest(const Facts *f, NodeId id, Mode *mode) {
    const HwTileStyle *style = &f->spec->tiling.tiles.style[mode->style];
    NestKnown **slot = smallest_slot(f, id, mode);
    if (!*slot) {
        *slot = ARENA_NEW(f->memo->arena, NestKnown);
        nest_least(f, id, mode, *slot);
    }
    if ((*slot)->end > style->reserved)
        return false;
    take(mode, &(*slot)->mode);
    mode->nest.over = 0;
    return true;
}

/* From the table; false if nothing fits. */
static bool nest_look_up(const Facts *f, NodeId id, Mode *mode) {
    const HwTileStyle *style = &f->spec->tiling.tiles.style[mode->style];
    NestTable **table = &f->memo->table[slot_of(f, id, mode)];
    Loops l = loops_of(f, id, style);
    if (!*table)
        *table = nest_table_new(f->memo->arena, &l);
    const NestEntry *e =
        nest_table_find(f->memo->arena, *table, &l, style->reserved);
    if (!e)
        return false;
    mode->tile_h = e->tile_h;
    mode->tile_w = e->tile_w;
    mode->nest = e->nest;
    return true;
}

void nest_choose(const Decisions *d, NodeId id, Mode *mode) {
    const Facts *f = d->f;
    NodeId like = node_known(f, id, mode);
    if (f->memo->table && !d->config->tile_bytes &&
        (d->config->tiny ? nest_smallest(f, like, mode)
                         : nest_look_up(f, like, mode)))
        return;
    const NestKnown *known = known_of(f, like, mode);
    if (!known) {
        NestKnown **slot = known_slot(f, like, mode);
        NestKnown *found = ARENA_NEW(f->memo->arena, NestKnown);
        nest_search(f, id, mode, limit_of(f, like, mode), found);
        found->older = *slot;
        known = *slot = found;
    }
    take(mode, &known->mode);
}

/* ---- what it moves ---- */

NestCost nest_cost(const Facts *f, NodeId id, const Mode *mode) {
    Loops l = loops_of(f, id, &f->spec->tiling.tiles.style[mode->style]);
    return loops_cost(&l, mode->tile_h, mode->tile_w, &mode->nest, true);
}
