/* styles.c - which operands of each layer pass in hardware tiles, and which lie
 * in active memory.
 *
 * Input: a schedule on a machine whose instructions run tiles by styles.
 * Output: the style of each node. Method: dynamic programming over the
 * schedule. A state is which volumes lie in active memory, and which outside; a
 * node runs by one of its styles, or whole. What it needs in active memory is
 * loaded, what passes in tiles must be outside; what does not fit beside
 * leaves, as late as it can. Of two ways to one state the cheaper stays, and of
 * many states the cheapest. What leaves when, and which part of it, is then
 * decided by spill/ anew. Members of a concat are one volume, from the first
 * that is written on.
 */
#include "alloc/alias/alias.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"

enum { MOST_ALIVE = 32, MOST_STATES = 64, MOST_OTHERS = 6 };

/* A volume. */
typedef struct Object {
    uint32_t first, last; /* steps */
    uint32_t slot;        /* its bit while it is alive */
    uint64_t bytes;       /* in active memory */
    bool alive, outside;  /* it comes from there, or has to be there */
} Object;

/* One way to run a node. */
typedef struct NodeWay {
    Mode mode;
    bool in, out; /* pass in tiles */
    uint64_t reserved;
    double reads, runs; /* prices: of operands in tiles; of the rest */
} NodeWay;
enum { MOST_NODE_WAYS = 8 };

typedef struct State {
    uint32_t here, there; /* bits: in active memory, outside */
    double price;
    uint32_t by, way; /* the state before, the node's way */
} State;
typedef VEC(State) States;

/* What a node does to volumes. */
typedef struct Turn {
    NodeId node;
    uint32_t *slot;               /* by operand */
    uint32_t reads, makes, alive; /* bits */
    uint32_t dies;                /* no one needs them behind it */
    uint32_t leaves;              /* of these: has to be outside */
    bool first;                   /* nothing of what it makes is there yet */
    uint64_t spared;              /* bytes of a result in an operand's place */
    uint64_t bytes[MOST_ALIVE];
    double moves[MOST_ALIVE]; /* price of a transfer */
    uint32_t n_ways;
    NodeWay way[MOST_NODE_WAYS];
} Turn;

typedef struct Styles {
    Decisions *d;
    const Facts *f;
    Object *object;   /* by tensor: those that are no members */
    VEC(TensorId) at; /* alive, by slot; NO_TENSOR */
    VEC(Turn) turn;
    States *states; /* by turn, and behind the last */
} Styles;

/* Price of so many bytes over DDR, and of cycles. */
static double price_of(const Styles *s, double bytes, double cycles) {
    const HwSpec *spec = s->f->spec;
    double wire = bytes_seconds(spec, 1) * spec->clock;
    bool alone = s->d->config->tile_bytes || wire <= 0;
    return alone ? bytes : cycles + wire * bytes;
}

static double elements(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    return (double)v.c * v.h * v.w * f->spec->element;
}

static double move_price(const Styles *s, TensorId t) {
    const HwSpec *spec = s->f->spec;
    double bytes = elements(s->f, t);
    return price_of(s, bytes, bytes_seconds(spec, bytes) * spec->clock);
}

/* ---- volumes and when they live ---- */

static void object_touch(Styles *s, TensorId t, uint32_t step) {
    const Role *role = &s->f->role[t.i];
    TensorId root = enclosing(s->f, t);
    Object *o = &s->object[root.i];
    if (!o->bytes) {
        uint64_t bytes[PACK_MAX_POOLS];
        pool_bytes(s->f, root, plan_volume(s->f->g, root).h, true, bytes);
        *o = (Object){.first = step, .last = step};
        o->bytes = least_bytes(s->f, bytes, UINT32_MAX);
    }
    o->last = step;
    o->outside |= role->outside || from_outside(s->f, t);
}

static void objects_find(Styles *s) {
    const Schedule *schedule = s->f->schedule;
    s->object = ARENA_ARRAY(s->f->arena, Object, s->f->g->tensor.n + 1);
    for (uint32_t i = 0; i < schedule->n_steps; i++)
        for (uint32_t k = 0; k < schedule->step[i].n; k++) {
            const Node *node =
                graph_node(s->f->g, schedule->step[i].slot[k].node);
            if (!on_engine(s->f, schedule->step[i].slot[k].node))
                continue;
            for (uint32_t n = 0; n < node->n_in; n++)
                object_touch(s, node->in[n], i);
            object_touch(s, node->out[0], i);
        }
}

/* Its bit; 0: too many are alive. */
static uint32_t slot_take(Styles *s, TensorId t, bool *fresh) {
    TensorId root = enclosing(s->f, t);
    Object *o = &s->object[root.i];
    *fresh = !o->alive;
    if (o->alive)
        return UINT32_C(1) << o->slot;
    uint32_t i = 0;
    while (i < s->at.n && s->at.at[i].i != NONE)
        i++;
    if (i == MOST_ALIVE)
        return 0;
    if (i == s->at.n)
        vec_push(s->f->arena, &s->at, root);
    s->at.at[i] = root;
    o->alive = true;
    o->slot = i;
    return UINT32_C(1) << i;
}

/* ---- how nodes run ---- */

static NodeWay way_of(const Styles *s, NodeId id, const Mode *mode) {
    const HwTileStyle *style = &s->f->spec->tiling.tiles.style[mode->style];
    const Node *node = graph_node(s->f->g, id);
    NodeWay w = {
        *mode, style->in_backing, style->out_backing, style->reserved, 0, 0};
    if (style->sums) {
        NestCost cost = nest_cost(s->f, id, mode);
        w.reads = price_of(s, (double)cost.input, 0);
        w.runs = price_of(s, (double)cost.weights, (double)cost.cycles);
        return w;
    }
    double pixels =
        (double)tiles_read(s->f->g, node, mode->tile_w, mode->tile_h);
    for (uint32_t k = 0; k < node->n_in && w.in; k++)
        w.reads += price_of(s,
                            pixels * plan_volume(s->f->g, node->in[k]).c *
                                s->f->spec->element,
                            0);
    w.runs = price_of(s, 0, (double)tiles_cycles(s->f, id, mode));
    return w;
}

static uint64_t bytes_of(const Turn *t, uint32_t bits) {
    uint64_t sum = 0;
    for (; bits; bits &= bits - 1)
        sum = add_capped(sum, t->bytes[__builtin_ctz(bits)]);
    return sum;
}

/* Bytes that the node needs while it runs so. */
static uint64_t way_bytes(const Turn *t, bool in, bool out, uint64_t reserved) {
    uint32_t needs = (in ? 0 : t->reads) | (out ? 0 : t->makes);
    uint64_t own = add_capped(bytes_of(t, needs), reserved);
    return own - (!in && !out && t->spared < own ? t->spared : 0);
}

/* Those that fit; where all fits beside that which keeps all, none else. */
static void ways_find(Styles *s, Turn *t) {
    const HwTiling *tiling = &s->f->spec->tiling;
    uint32_t others = t->alive & ~t->reads & ~t->makes;
    uint64_t beside = bytes_of(t, others), total = s->f->total;
    Mode *mode = &s->d->mode[t->node.i], was = *mode;
    int32_t i;
    if (!(tiling->tiles.always >> s->f->legal[t->node.i].op & 1)) {
        t->way[t->n_ways++] = (NodeWay){
            .runs = price_of(s, 0, (double)engine_work(s->f, t->node))};
        if (add_capped(way_bytes(t, false, false, 0), beside) <= total)
            return;
    }
    for (uint32_t rank = 0; t->n_ways < MOST_NODE_WAYS &&
                            (i = hardware_style(s->f, t->node, rank)) >= 0;
         rank++) {
        const HwTileStyle *style = &tiling->tiles.style[i];
        uint64_t own = way_bytes(t, style->in_backing, style->out_backing,
                                 style->reserved);
        if (own > total || !hardware_mode(s->d, t->node, rank))
            continue;
        t->way[t->n_ways++] = way_of(s, t->node, mode);
        if (!style->in_backing && !style->out_backing &&
            add_capped(own, beside) <= total)
            break;
    }
    *mode = was;
}

/* False if too many volumes are alive. */
static bool turn_add(Styles *s, NodeId id, uint32_t step) {
    const Node *node = graph_node(s->f->g, id);
    Turn t = {.node = id,
              .slot = ARENA_ARRAY(s->f->arena, uint32_t, node->n_in + 1)};
    bool fresh;
    for (uint32_t k = 0; k < node->n_in; k++) {
        uint32_t bit = slot_take(s, node->in[k], &fresh);
        if (!bit)
            return false;
        t.slot[k] = (uint32_t)__builtin_ctz(bit);
        t.reads |= bit;
    }
    t.makes = slot_take(s, node->out[0], &t.first);
    for (uint32_t i = 0; i < s->at.n; i++) {
        TensorId root = s->at.at[i];
        Object *o = root.i == NONE ? NULL : &s->object[root.i];
        if (!o)
            continue;
        t.alive |= UINT32_C(1) << i;
        t.bytes[i] = o->bytes;
        t.moves[i] = move_price(s, root);
        if (o->last > step)
            continue;
        t.dies |= UINT32_C(1) << i;
        t.leaves |= (uint32_t)o->outside << i;
        o->alive = false;
        s->at.at[i] = NO_TENSOR;
    }
    for (uint32_t k = 0; k < node->n_in; k++) {
        const Object *o = &s->object[enclosing(s->f, node->in[k]).i];
        if (takes_in_place(s->f, id, node->in[k]) && o->last == step)
            t.spared = o->bytes;
    }
    ways_find(s, &t);
    vec_push(s->f->arena, &s->turn, t);
    return t.makes && t.n_ways;
}

static bool turns_find(Styles *s) {
    const Schedule *schedule = s->f->schedule;
    for (uint32_t i = 0; i < schedule->n_steps; i++)
        for (uint32_t k = 0; k < schedule->step[i].n; k++) {
            NodeId id = schedule->step[i].slot[k].node;
            if (s->d->mode[id.i].kind == MODE_AHEAD)
                return false;
            if (on_engine(s->f, id) && !turn_add(s, id, i))
                return false;
        }
    return s->turn.n > 0;
}

/* ---- states ---- */

static void state_offer(const Styles *s, States *to, const State *state) {
    uint32_t worst = 0;
    for (uint32_t i = 0; i < to->n; i++) {
        State *other = &to->at[i];
        if (other->here == state->here && other->there == state->there) {
            if (state->price < other->price)
                *other = *state;
            return;
        }
        worst = other->price > to->at[worst].price ? i : worst;
    }
    if (to->n < MOST_STATES)
        vec_push(s->f->arena, to, *state);
    else if (state->price < to->at[worst].price)
        to->at[worst] = *state;
}

static double moves_of(const Turn *t, uint32_t bits) {
    double sum = 0;
    for (; bits; bits &= bits - 1)
        sum += t->moves[__builtin_ctz(bits)];
    return sum;
}

/* What stays of `others`, and the node has run. */
static void turn_end(Styles *s, const Turn *t, State next, uint32_t others,
                     uint32_t stay, States *to) {
    uint32_t stored = others & ~stay & ~next.there & ~(t->dies & ~t->leaves);
    next.price += moves_of(t, stored);
    next.there |= stored;
    next.here &= ~(others & ~stay);
    uint32_t last = t->dies & t->leaves & next.here & ~next.there;
    next.price += moves_of(t, last);
    next.here &= ~t->dies;
    next.there &= ~t->dies;
    state_offer(s, to, &next);
}

/* All sets of others that fit, and to which no other can be added. */
static void others_try(Styles *s, const Turn *t, const State *next,
                       uint32_t others, uint64_t room, States *to) {
    uint32_t bit[MOST_ALIVE], n = 0;
    if (bytes_of(t, others) <= room) {
        turn_end(s, t, *next, others, others, to);
        return;
    }
    for (uint32_t bits = others; bits; bits &= bits - 1)
        bit[n++] = bits & (~bits + 1);
    uint32_t looked = n < MOST_OTHERS ? n : MOST_OTHERS;
    for (uint32_t set = 0; set < UINT32_C(1) << looked; set++) {
        uint32_t stay = 0;
        for (uint32_t i = 0; i < looked; i++)
            stay |= set >> i & 1 ? bit[i] : 0;
        uint64_t taken = bytes_of(t, stay);
        bool most = taken <= room;
        for (uint32_t i = 0; i < looked && most; i++)
            most = set >> i & 1 || taken + bytes_of(t, bit[i]) > room;
        if (most)
            turn_end(s, t, *next, others, stay, to);
    }
}

static void way_try(Styles *s, const Turn *t, const State *from, uint32_t by,
                    uint32_t way, States *to) {
    const NodeWay *w = &t->way[way];
    State next = *from;
    uint32_t needs = (w->in ? 0 : t->reads) | (w->out ? 0 : t->makes);
    uint32_t made = from->here & t->makes;
    if (!t->first && !made == !w->out)
        return; /* some of it lies elsewhere */
    next.by = by;
    next.way = way;
    next.price += w->runs + w->reads;
    if (w->in)
        next.price += moves_of(t, t->reads & ~from->there);
    else
        next.price += moves_of(t, t->reads & ~from->here);
    if (w->in)
        next.there |= t->reads;
    if (w->out) {
        next.price += moves_of(t, t->makes);
        next.there |= t->makes;
    } else {
        next.there &= ~t->makes;
    }
    next.here |= needs;
    uint64_t own = way_bytes(t, w->in, w->out, w->reserved);
    if (own <= s->f->total)
        others_try(s, t, &next, next.here & ~needs, s->f->total - own, to);
}

static bool walk(Styles *s) {
    s->states = ARENA_ARRAY(s->f->arena, States, s->turn.n + 1);
    state_offer(s, &s->states[0], &(State){0});
    for (uint32_t i = 0; i < s->turn.n; i++) {
        const Turn *t = &s->turn.at[i];
        for (uint32_t k = 0; k < s->states[i].n; k++) {
            State from = s->states[i].at[k];
            /* what is read and is nowhere comes from outside */
            from.there |= t->reads & ~from.here;
            for (uint32_t w = 0; w < t->n_ways; w++)
                way_try(s, t, &from, k, w, &s->states[i + 1]);
        }
    }
    return s->states[s->turn.n].n > 0;
}

/* A result takes the place of what has been there, not of what is loaded just
 * for it, wherever there is room. */
static void over_choose(Styles *s, const Turn *t, const State *before) {
    const Node *node = graph_node(s->f->g, t->node);
    TensorId over = s->d->over[node->out[0].i];
    for (uint32_t k = 0; k < node->n_in; k++)
        if (over.i == node->in[k].i && !(before->here >> t->slot[k] & 1))
            place_instead(s->d, t->node, over);
}

static void follow(Styles *s) {
    uint32_t k = 0, n = s->turn.n;
    for (uint32_t i = 0; i < s->states[n].n; i++)
        k = s->states[n].at[i].price < s->states[n].at[k].price ? i : k;
    for (uint32_t i = n; i > 0; i--) {
        const State *state = &s->states[i].at[k];
        const Turn *t = &s->turn.at[i - 1];
        s->d->mode[t->node.i] = t->way[state->way].mode;
        k = state->by;
        over_choose(s, t, &s->states[i - 1].at[k]);
    }
}

void styles_choose(Decisions *d) {
    Styles s = {.d = d, .f = d->f};
    if (d->f->spec->tiling.kind != HW_TILING_HARDWARE ||
        !d->f->spec->tiling.tiles.n)
        return;
    objects_find(&s);
    if (turns_find(&s) && walk(&s))
        follow(&s);
}
