/* weight_blocks.c - layers by slices of output channels, so that the weights of
 * one slice fit; see weights.h.
 *
 * Input: a plan. Output: the same with a run of each slice in place of a run
 * that needs weights, slices of a layer being the same in all of its runs.
 * Invariants: slices of a run are alike, but for the last, and begin where a
 * volume may begin; nothing is computed twice, and no byte of a volume moves
 * more. A run that makes some channels of its layer has slices of these.
 */
#include "alloc/tile/tile.h"
#include "alloc/weights/weights.h"

#include "base/arith.h"
#include "hwspec/cost.h"

typedef struct Blocks {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    const HwSpec *spec;
    uint32_t *unit;     /* by node: slices begin at multiples, in all runs */
    uint32_t *channels; /* by node: of a slice, at most */
    uint32_t *first;    /* by node: index of its first slice; NONE */
    uint32_t *listed;   /* by node: channels that have slices */
    VEC(Slice) slice;
    VEC(Action) action;
    Placements placement;
    VEC(uint32_t) slice_of;
} Blocks;

static bool needs_weights(const Plan *plan, const Action *a) {
    return a->kind == ACTION_RUN &&
           hwspec_stages(plan->schedule->spec, a->legal.op);
}

static bool in_groups(const Node *node) {
    return (node->op == OP_CONV || node->op == OP_CONV_POOL ||
            node->op == OP_DECONV) &&
           node->attr.conv.groups > 1;
}

/* Slices of a result may begin at multiples of so many channels, by its layout.
 * What each is padded by may lie over the next ones; of the last
 * slice there must be room for it in the memory. */
static uint32_t slices_begin(const HwMemory *m, const Placement *out) {
    uint32_t one = layout_granule(m->layout), all = out->whole.c;
    uint32_t last = one ? (all - 1) / one * one : 0;
    Volume part = {.c = all - last, .h = out->whole.h, .w = out->whole.w};
    uint64_t end = out->offset +
                   layout_part_offset(m->layout, &out->whole, last) +
                   layout_bytes(m->layout, &part);
    return end <= m->size ? one : layout_part_step(m->layout);
}

/* Where volumes may begin, slices of the result may: at multiples of so many
 * channels; UINT32_MAX: it has no slices. */
static uint32_t granule_of(const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    const Placement *out = &plan->placement[a->out];
    const HwMemory *m = &spec->memory[out->memory];
    const HwEngine *engine = &spec->engine[a->legal.engine];
    uint32_t all = out->whole.c, one = slices_begin(m, out);
    if (in_groups(graph_node(plan->schedule->graph, a->node)) ||
        !engine_takes_channels(spec, &a->legal, all))
        return UINT32_MAX;
    if (hwspec_parts_between(spec, m))
        return engine->part_align < all ? engine->part_align : UINT32_MAX;
    uint64_t step = layout_part_offset(m->layout, &out->whole, one);
    if (!one || all <= one || !step)
        return UINT32_MAX;
    uint32_t align = m->align ? m->align : 1;
    uint64_t unit = one * (align / gcd(align, step % align));
    uint32_t last = unit < all ? (uint32_t)((all - 1) / unit * unit) : 0;
    bool alone = last &&
                 layout_part_alone(m->layout, &out->whole, 0, (uint32_t)unit) &&
                 layout_part_alone(m->layout, &out->whole, last, all - last);
    return alone ? (uint32_t)unit : UINT32_MAX;
}

/* Bytes that a weight takes on chip: those of an element of a volume there. */
static uint32_t stored_weight(const HwSpec *spec) {
    return spec->memory[spec->weights].layout->element;
}

static uint64_t bytes_of(const Plan *plan, const Action *a, uint32_t channels) {
    const Graph *g = plan->schedule->graph;
    return (uint64_t)weight_taps(g, graph_node(g, a->node)) * channels *
           stored_weight(plan->schedule->spec);
}

uint64_t block_floor(const HwSpec *spec, const Graph *g, const Slot *slot) {
    const Node *node = graph_node(g, slot->node);
    const HwEngine *engine = &spec->engine[slot->legal.engine];
    uint32_t all = plan_volume(g, node->out[0]).c, least = all;
    for (uint32_t m = 0; m < spec->n_active; m++) {
        const HwMemory *memory = &spec->memory[m];
        uint32_t one = hwspec_parts_between(spec, memory)
                           ? engine->part_align
                           : layout_granule(memory->layout);
        if (engine->lies[HW_OUT] >> m & 1)
            least = one && one < least ? one : least;
    }
    if (in_groups(node) || !engine_takes_channels(spec, &slot->legal, all))
        least = all;
    return (uint64_t)weight_taps(g, node) * least * stored_weight(spec);
}

/* However few rows of the result a place holds. */
uint64_t block_least(const HwSpec *spec, const Graph *g, const Slot *slot) {
    const Node *node = graph_node(g, slot->node);
    const HwMemory *m = &spec->memory[0];
    uint32_t all = plan_volume(g, node->out[0]).c;
    uint64_t n = layout_granule(m->layout);
    n *= m->align ? m->align : 1;
    if (in_groups(node) || !n || n > all ||
        !engine_takes_channels(spec, &slot->legal, all))
        n = all;
    return (uint64_t)weight_taps(g, node) * n * stored_weight(spec);
}

/* Channels that fill the array, from where a volume may begin. */
static uint32_t turn_of(const Plan *plan, const Action *a, uint32_t unit) {
    const HwEngine *engine = &plan->schedule->spec->engine[a->legal.engine];
    uint32_t all = plan->placement[a->out].n_c;
    uint32_t turn = engine->unroll.out_c ? engine->unroll.out_c : 1;
    uint64_t both = (uint64_t)unit / gcd(unit, turn) * turn;
    return both < all ? (uint32_t)both : all;
}

/* Channels of the largest slices of at most `most` bytes, whole turns of the
 * array where that leaves any; 0: there are none. */
static uint32_t channels_within(const Plan *plan, const Action *a,
                                uint32_t unit, uint64_t most) {
    uint32_t all = plan->placement[a->out].n_c;
    uint32_t turn = turn_of(plan, a, unit);
    uint64_t one = bytes_of(plan, a, 1);
    if (one * all <= most)
        return all;
    uint32_t n = (uint32_t)(most / one);
    if (unit >= all || n < unit)
        return 0;
    return n >= turn ? n / turn * turn : n / unit * unit;
}

/* Runs of more rows may be cut at channels at which those of fewer may not. */
static void find_units(Blocks *b) {
    for (uint32_t i = 0; i < b->plan->n_actions; i++) {
        const Action *a = &b->plan->action[i];
        if (!needs_weights(b->plan, a))
            continue;
        uint32_t one = granule_of(b->plan, a), *unit = &b->unit[a->node.i];
        uint64_t both = *unit ? (uint64_t)*unit / gcd(*unit, one) * one : one;
        *unit = both < UINT32_MAX ? (uint32_t)both : UINT32_MAX;
    }
}

static Blocks blocks_of(Arena *arena, const Plan *plan) {
    uint32_t n_nodes = plan->schedule->graph->node.n;
    Blocks b = {.arena = arena,
                .plan = plan,
                .g = plan->schedule->graph,
                .spec = plan->schedule->spec,
                .unit = ARENA_ARRAY(arena, uint32_t, n_nodes + 1)};
    find_units(&b);
    return b;
}

uint64_t blocks_need(const Plan *plan, const Room *room) {
    if (plan->schedule->spec->weights)
        return plan->am_height;
    Arena *scratch = arena_new("need");
    Blocks b = blocks_of(scratch, plan);
    uint64_t align = b.spec->memory[0].align, most = plan->am_height;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        if (!needs_weights(plan, a))
            continue;
        uint32_t unit = b.unit[a->node.i], all = plan->placement[a->out].n_c;
        uint64_t bytes = bytes_of(plan, a, unit < all ? unit : all) + align;
        uint64_t end = room[i].between < bytes ? room[i].end + bytes : 0;
        most = end > most ? end : most;
    }
    arena_free(scratch);
    return round_up(most, align ? align : 1);
}

/* Of each node with weights; false if one has no room. A run of few channels
 * that fit says nothing of runs of more. */
static bool find_channels(Blocks *b, const Room *rooms, uint32_t share) {
    const HwMemory *memory = &b->spec->memory[b->spec->weights];
    uint64_t align = memory->align;
    for (uint32_t i = 0; i < b->g->node.n; i++)
        b->channels[i] = UINT32_MAX;
    for (uint32_t i = 0; i < b->plan->n_actions; i++) {
        const Action *a = &b->plan->action[i];
        if (!needs_weights(b->plan, a))
            continue;
        uint64_t room = room_longest(rooms[i], memory->size);
        if (!b->spec->weights) /* volumes may begin anywhere below */
            room -= room < align ? room : align;
        uint32_t unit = b->unit[a->node.i];
        uint32_t most = channels_within(b->plan, a, unit, room);
        uint32_t n = channels_within(b->plan, a, unit, room / 16 * share);
        uint32_t least = share ? turn_of(b->plan, a, unit) : unit;
        if (!most)
            return false;
        n = n < least ? least : n;
        n = n < most ? n : most;
        uint32_t *channels = &b->channels[a->node.i];
        if (n < b->plan->placement[a->out].n_c && n < *channels)
            *channels = n;
    }
    return true;
}

/* Index of the first slice of the run, which is listed now. Runs of the same
 * channels share slices; those of others follow by rising channel. */
static uint32_t list_slices(Blocks *b, const Action *a) {
    const Placement *out = &b->plan->placement[a->out];
    uint32_t end = out->c + out->n_c, most = b->channels[a->node.i];
    uint32_t taps = weight_taps(b->g, graph_node(b->g, a->node));
    uint32_t at = b->first[a->node.i];
    if (out->c < b->listed[a->node.i]) {
        while (b->slice.at[at].node.i != a->node.i ||
               b->slice.at[at].c != out->c)
            at++;
        return at;
    }
    at = b->slice.n;
    if (b->first[a->node.i] == NONE)
        b->first[a->node.i] = at;
    b->listed[a->node.i] = end;
    for (uint32_t c = out->c, n; c < end; c += n) {
        n = most < end - c ? most : end - c;
        Slice s = {.node = a->node, .c = c, .n_c = n, .taps = taps};
        s.bytes = (uint64_t)taps * s.n_c * stored_weight(b->spec);
        vec_push(b->arena, &b->slice, s);
    }
    return at;
}

static void push(Blocks *b, Action a, uint32_t slice) {
    vec_push(b->arena, &b->action, a);
    vec_push(b->arena, &b->slice_of, slice);
}

static void push_slices(Blocks *b, const Action *a) {
    const Placement *out = &b->plan->placement[a->out];
    uint32_t all = out->n_c, n = b->channels[a->node.i];
    uint32_t count = n < all ? (all + n - 1) / n : 1;
    uint32_t first = list_slices(b, a), from = out->c;
    for (uint32_t k = 0; k < count; k++) {
        Action one = *a;
        one.tile = a->tile * count + k;
        one.n_tiles = (a->n_tiles ? a->n_tiles : 1) * count;
        const Slice *s = &b->slice.at[first + k];
        if (count > 1)
            one.out = placements_add_channels(b->arena, &b->placement, a->out,
                                              s->c - from, s->n_c);
        push(b, one, first + k);
    }
}

bool blocks_make(Arena *arena, Plan *plan, const Room *room, StageWay way,
                 Sliced *out) {
    uint32_t n_nodes = plan->schedule->graph->node.n;
    Blocks b = blocks_of(arena, plan);
    b.channels = ARENA_ARRAY(arena, uint32_t, n_nodes + 1);
    b.listed = ARENA_ARRAY(arena, uint32_t, n_nodes + 1);
    b.first = ARENA_ARRAY(arena, uint32_t, n_nodes + 1);
    for (uint32_t i = 0; i < n_nodes; i++)
        b.first[i] = NONE;
    if (!find_channels(&b, room, way.share))
        return false;
    b.placement = placements_of(arena, plan);
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        if (!needs_weights(plan, a)) {
            push(&b, *a, NONE);
            continue;
        }
        push_slices(&b, a);
    }
    plan->n_actions = b.action.n;
    plan->action = b.action.at;
    plan->n_placements = b.placement.n;
    plan->placement = b.placement.at;
    *out = (Sliced){b.slice.n, b.slice.at, b.slice_of.at};
    return homes_choose(arena, plan, way.fastest, out);
}
