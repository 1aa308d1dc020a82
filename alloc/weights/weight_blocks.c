/* weight_blocks.c - layers by slices of output channels, and where an engine
 * goes on with sums of input channels, and of taps of the kernel where rows
 * tell them, so that the weights of one slice fit; and by bands of rows, so
 * that its sums do, where they have a memory; see weights.h.
 *
 * Input: a plan. Output: the same with a run of each slice in place of a run
 * that needs weights, slices of a layer being the same in all of its runs.
 * Invariants: slices of a run are alike, but for the last, and begin where a
 * volume may begin; nothing is computed twice, and no byte of a volume moves
 * more. A run that makes some channels of its layer has slices of these. Bands
 * of a slice of a whole layer follow each other, slices of input channels in
 * each, and slices of taps in these.
 */
#include "alloc/tile/tile.h"
#include "alloc/weights/weights.h"

#include "base/arith.h"
#include "hwspec/cost.h"
#include "hwspec/insn.h"

typedef struct Blocks {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    const HwSpec *spec;
    uint32_t *unit;     /* by node: slices begin at multiples, in all runs */
    uint32_t *channels; /* by node: of a slice, at most */
    uint32_t *inputs;   /* ... input channels */
    uint32_t *kernel;   /* ... taps of the kernel of each, if not all */
    uint32_t *first;    /* by node: index of its first slice; NONE */
    uint32_t *tiles;    /* by node: runs of it so far */
    VEC(ConstantBlock) slice;
    VEC(Action) action;
    Placements placement;
    VEC(uint32_t) slice_of;
} Blocks;

static bool needs_weights(const Plan *plan, const Action *a) {
    return a->kind == ACTION_RUN &&
           hwspec_stages(plan->schedule->spec, a->legal.op);
}

/* Parts of a volume may begin at multiples of so many channels, by its layout.
 * What each is padded by may lie over the next ones; of the last
 * part there must be room for it in the memory. */
static uint32_t parts_begin(const HwMemory *m, const Placement *p) {
    uint32_t one = layout_granule(m->layout), all = p->whole.c;
    uint32_t last = one ? (all - 1) / one * one : 0;
    Volume part = {.c = all - last, .h = p->whole.h, .w = p->whole.w};
    uint64_t end = p->offset + layout_part_offset(m->layout, &p->whole, last) +
                   layout_bytes(m->layout, &part);
    return end <= m->size ? one : layout_part_step(m->layout);
}

/* Where volumes may begin, parts of it may: at multiples of so many channels;
 * UINT32_MAX: it has no parts. `told`: where the instruction says of what
 * volume they are parts. */
static uint32_t parts_unit(const HwSpec *spec, const Placement *p,
                           uint32_t told) {
    const HwMemory *m = &spec->memory[p->memory];
    uint32_t all = p->whole.c, one = parts_begin(m, p);
    if (hwspec_parts_between(spec, m))
        return told < all ? told : UINT32_MAX;
    uint64_t step = layout_part_offset(m->layout, &p->whole, one);
    if (!one || all <= one || !step)
        return UINT32_MAX;
    uint32_t align = m->align ? m->align : 1;
    uint64_t unit = one * (align / gcd(align, step % align));
    uint32_t last = unit < all ? (uint32_t)((all - 1) / unit * unit) : 0;
    bool alone = last &&
                 layout_part_alone(m->layout, &p->whole, 0, (uint32_t)unit) &&
                 layout_part_alone(m->layout, &p->whole, last, all - last);
    return alone ? (uint32_t)unit : UINT32_MAX;
}

/* Of the result. */
static uint32_t granule_of(const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    const Placement *out = &plan->placement[a->out];
    if (node_in_groups(graph_node(plan->schedule->graph, a->node)) ||
        !engine_takes_channels(spec, &a->legal, out->whole.c))
        return UINT32_MAX;
    return parts_unit(spec, out, spec->engine[a->legal.engine].part_align);
}

/* Of the operand; UINT32_MAX: all of its channels are added up at once. */
static uint32_t input_granule(const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    const Node *node = graph_node(plan->schedule->graph, a->node);
    if (!hwspec_adds_up(spec, a->legal.op, a->legal.engine) ||
        node_in_groups(node))
        return UINT32_MAX;
    return parts_unit(spec, &plan->placement[a->in[0]], 1);
}

/* Bytes that a weight takes on chip: those of an element of a volume there. */
static uint32_t stored_weight(const HwSpec *spec) {
    return spec->memory[spec->weights].layout->element;
}

/* Weights of an output channel that belong to so many of the input channels. */
static uint32_t taps_of(const Plan *plan, const Action *a, uint32_t inputs) {
    const Graph *g = plan->schedule->graph;
    Addends x = action_addends(plan, a);
    uint64_t all = weight_taps(g, graph_node(g, a->node));
    return (uint32_t)(all * inputs / x.all);
}

static uint32_t inputs_of(const Plan *plan, const Action *a) {
    return action_addends(plan, a).n;
}

static uint64_t bytes_of(const Plan *plan, const Action *a, uint32_t channels,
                         uint32_t inputs) {
    return (uint64_t)taps_of(plan, a, inputs) * channels *
           stored_weight(plan->schedule->spec);
}

/* Whether instructions of the node may add up some taps of its kernel. */
static bool tells_taps(const HwSpec *spec, const Node *node,
                       const Legal *legal) {
    return spec->insns && (spec->insns->tells_taps >> legal->op & 1) &&
           hwspec_adds_up(spec, legal->op, legal->engine) &&
           !node_in_groups(node);
}

/* Weights of an output channel in the thinnest blocks that there can be. */
static uint64_t least_taps(const HwSpec *spec, const Graph *g,
                           const Slot *slot) {
    const Node *node = graph_node(g, slot->node);
    Volume in = plan_volume(g, node->in[0]);
    uint32_t taps = weight_taps(g, node), least = in.c;
    uint32_t area = kernel_area(g, node);
    if (node_in_groups(node) || in.c > taps ||
        !hwspec_adds_up(spec, slot->legal.op, slot->legal.engine))
        return taps;
    for (uint32_t m = 0; m < spec->n_active; m++) {
        uint32_t one = layout_granule(spec->memory[m].layout);
        if (spec->engine[slot->legal.engine].lies[HW_IN] >> m & 1)
            least = one < least ? one : least;
    }
    area = tells_taps(spec, node, &slot->legal) ? 1 : area;
    return (uint64_t)area * (least ? least : 1);
}

uint64_t block_floor(const HwSpec *spec, const Graph *g, const Slot *slot) {
    uint32_t least = run_channels_least(spec, g, slot->node, &slot->legal);
    return least_taps(spec, g, slot) * least * stored_weight(spec);
}

/* However few rows of the result a place holds. */
uint64_t block_least(const HwSpec *spec, const Graph *g, const Slot *slot) {
    const Node *node = graph_node(g, slot->node);
    const HwMemory *m = &spec->memory[0];
    uint32_t all = plan_volume(g, node->out[0]).c;
    uint64_t n = layout_granule(m->layout);
    if (n && m->align)
        n *= m->align / gcd(m->align, n * m->layout->element);
    if (node_in_groups(node) || !n || n > all ||
        !engine_takes_channels(spec, &slot->legal, all))
        n = all;
    return least_taps(spec, g, slot) * n * stored_weight(spec);
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
    uint64_t one = bytes_of(plan, a, 1, inputs_of(plan, a));
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
        uint64_t bytes =
            bytes_of(plan, a, unit < all ? unit : all, inputs_of(plan, a)) +
            align;
        uint64_t end = room[i].between < bytes ? room[i].end + bytes : 0;
        most = end > most ? end : most;
    }
    arena_free(scratch);
    return round_up(most, align ? align : 1);
}

static void at_most(uint32_t *most, uint64_t n) {
    if (n < *most)
        *most = (uint32_t)n;
}

/* Of the fewest input channels, which take so many bytes with all taps, as many
 * taps as `part` holds, or, where that is none, all the room: whole rows of the
 * kernel, or some of each. */
static bool find_taps(Blocks *b, const Action *a, uint32_t inputs,
                      uint64_t bytes, uint64_t part, uint64_t room) {
    const Node *node = graph_node(b->g, a->node);
    if (!tells_taps(b->spec, node, &a->legal))
        return false;
    uint32_t area = kernel_area(b->g, node), wide = kernel_width(b->g, node);
    uint64_t n = part * area / bytes;
    n = n ? n : room * area / bytes;
    at_most(&b->inputs[a->node.i], inputs);
    at_most(&b->kernel[a->node.i], n > wide ? n / wide * wide : n);
    return n > 0;
}

/* Input channels of the largest slices that take no more than that: whole turns
 * of the array where that leaves any. */
static uint64_t inputs_within(const Blocks *b, const Action *a, uint32_t one,
                              uint64_t bytes, uint64_t most) {
    uint32_t lanes = b->spec->engine[a->legal.engine].unroll.in_c;
    uint64_t some = most / bytes * one;
    return lanes && some > lanes && lanes % one == 0 ? some / lanes * lanes
                                                     : some;
}

/* Gives the run of `channels` channels as many input channels at a time as its
 * weights have room for, in as much as is theirs if that is one turn of the
 * array; or taps of these; false if there are none. */
static bool find_inputs(Blocks *b, const Action *a, uint32_t channels,
                        uint64_t room, uint32_t share) {
    uint32_t one = input_granule(b->plan, a), all = inputs_of(b->plan, a);
    uint32_t lanes = b->spec->engine[a->legal.engine].unroll.in_c;
    one = one < all ? one : all;
    uint64_t bytes = bytes_of(b->plan, a, channels, one);
    uint64_t part = room / 16 * share;
    if (bytes > room)
        return find_taps(b, a, one, bytes, part, room);
    if (one == all)
        return false;
    uint64_t some = inputs_within(b, a, one, bytes, room);
    uint64_t own = inputs_within(b, a, one, bytes, part);
    at_most(&b->inputs[a->node.i], own >= lanes && own ? own : some);
    return true;
}

/* No more channels than have room for their biases; false if there is none. */
static bool has_bias_room(const Blocks *b, const Action *a, uint32_t unit,
                          uint32_t *most) {
    const HwMemory *m = &b->spec->memory[b->spec->bias];
    if (!hwspec_loads_bias(b->spec, a->legal.op))
        return true;
    uint64_t n = m->size / m->layout->element;
    if (n >= *most)
        return true;
    *most = (uint32_t)(n / unit) * unit;
    return *most > 0;
}

/* Rows of the highest bands of the run whose sums of so many channels have
 * room, all of which it may make; 0: there are none. */
static uint32_t band_rows(const Blocks *b, const Action *a, uint32_t channels) {
    uint32_t low = 0, high = a->rows;
    if (!hwspec_keeps_sums(b->spec, a->legal.op, a->legal.engine) ||
        sums_fit(b->plan, a, channels, a->row, a->rows))
        return a->rows;
    if (!bands_may(b->plan, a))
        return 0;
    while (low + 1 < high) {
        uint32_t mid = low + (high - low) / 2;
        *(sums_fit(b->plan, a, channels, a->row, mid) ? &low : &high) = mid;
    }
    bool fit = false;
    for (uint32_t n = low; n > 0 && !fit; low = n--) {
        fit = true;
        for (uint32_t row = 0; row < a->rows && fit; row += n) {
            uint32_t rows = n < a->rows - row ? n : a->rows - row;
            Rows need = rows_needed(b->g, a->node, a->row + row, rows);
            fit = band_reads_alone(need, a) &&
                  sums_fit(b->plan, a, channels, a->row + row, rows);
        }
    }
    return fit ? low : 0;
}

/* No more channels than have room for their sums: whole turns of the array with
 * all rows, else one turn with some, else fewer; false if there is none. */
static bool has_sums_room(const Blocks *b, const Action *a, uint32_t unit,
                          uint32_t *most) {
    uint32_t turn = turn_of(b->plan, a, unit);
    if (band_rows(b, a, *most) == a->rows)
        return true;
    for (uint32_t n = *most / turn * turn; n > turn; n -= turn)
        if (sums_fit(b->plan, a, n, a->row, a->rows)) {
            *most = n;
            return true;
        }
    *most = *most < turn ? *most : turn;
    if (band_rows(b, a, *most))
        return true;
    *most = *most < unit ? *most : unit;
    return band_rows(b, a, *most) > 0;
}

/* Whether the run's channels are one slice: it goes on with sums of some input
 * channels, and no two sets of them have places beside each other. */
static bool is_one_slice(const Blocks *b, const Action *a) {
    Addends x = action_addends(b->plan, a);
    return x.n < x.all && !b->spec->insns->tells_sums &&
           hwspec_keeps_sums(b->spec, a->legal.op, a->legal.engine);
}

/* Of each node with weights; false if one has no room. A run of few channels
 * that fit says nothing of runs of more. */
static bool find_channels(Blocks *b, const Room *rooms, uint32_t share) {
    const HwMemory *memory = &b->spec->memory[b->spec->weights];
    uint64_t align = memory->align;
    for (uint32_t i = 0; i < b->g->node.n; i++)
        b->channels[i] = b->inputs[i] = b->kernel[i] = UINT32_MAX;
    for (uint32_t i = 0; i < b->plan->n_actions; i++) {
        const Action *a = &b->plan->action[i];
        if (!needs_weights(b->plan, a))
            continue;
        uint64_t room = room_longest(rooms[i], memory->size);
        if (!b->spec->weights) /* volumes may begin anywhere below */
            room -= room < align ? room : align;
        uint32_t unit = b->unit[a->node.i];
        uint32_t all = b->plan->placement[a->out].n_c;
        uint32_t most = channels_within(b->plan, a, unit, room);
        if (most && !has_bias_room(b, a, unit, &most))
            return false;
        uint32_t n = channels_within(b->plan, a, unit, room / 16 * share);
        uint32_t least = share ? turn_of(b->plan, a, unit) : unit;
        bool one = is_one_slice(b, a);
        if (!most || (one && most < all)) {
            most = unit < all && !one ? unit : all;
            if (!find_inputs(b, a, most, room, share))
                return false;
        }
        if (!has_sums_room(b, a, unit, &most))
            return false;
        n = n < least ? least : n;
        n = n < most && !one ? n : most;
        uint32_t *channels = &b->channels[a->node.i];
        if (n < all && n < *channels)
            *channels = n;
    }
    return true;
}

/* Of a run. */
typedef struct Parts {
    uint32_t c, n_c, in_c, n_in; /* where they begin, and all of them */
    uint32_t channels, inputs;   /* of a slice */
    uint32_t area, wide, taps;   /* of the kernel, its rows, a slice */
    uint32_t around;             /* slices of taps, */
    uint32_t across, count;      /* of these and input channels, and all */
    uint32_t rows;               /* of a band */
} Parts;

/* Rows of the kernel are cut, or there are some of them in each. */
static uint32_t slices_of_taps(const Parts *p) {
    uint32_t rows = p->area / p->wide;
    return (uint32_t)(p->taps < p->wide ? rows * ceil_div(p->wide, p->taps)
                                        : ceil_div(p->area, p->taps));
}

static KernelTaps taps_at(const Parts *p, uint32_t k) {
    uint32_t end = p->area, first = k * p->taps;
    if (p->taps < p->wide) {
        uint32_t of_row = (uint32_t)ceil_div(p->wide, p->taps);
        uint32_t row = k / of_row * p->wide;
        first = row + k % of_row * p->taps;
        end = row + p->wide;
    }
    return (KernelTaps){first, end - first < p->taps ? end - first : p->taps};
}

static Parts parts_of(const Blocks *b, const Action *a) {
    const Placement *out = &b->plan->placement[a->out];
    Addends x = action_addends(b->plan, a);
    const Node *node = graph_node(b->g, a->node);
    uint32_t n = b->channels[a->node.i], in = b->inputs[a->node.i];
    uint32_t taps = b->kernel[a->node.i];
    Parts p = {.c = out->c,
               .n_c = out->n_c,
               .in_c = x.first,
               .n_in = x.n,
               .channels = n < out->n_c ? n : out->n_c,
               .inputs = in < x.n ? in : x.n,
               .area = x.area,
               .wide = x.area,
               .taps = taps < x.area ? taps : x.area};
    if (p.taps < x.area)
        p.wide = kernel_width(b->g, node);
    p.around = slices_of_taps(&p);
    p.across = (uint32_t)ceil_div(p.n_in, p.inputs) * p.around;
    p.count = (uint32_t)ceil_div(p.n_c, p.channels) * p.across;
    p.rows = band_rows(b, a, p.channels);
    return p;
}

/* Slice k: taps are innermost, in input channels. */
static ConstantBlock slice_at(const Blocks *b, const Action *a, const Parts *p,
                              uint32_t k) {
    uint32_t c = k / p->across * p->channels;
    uint32_t in = k % p->across / p->around * p->inputs;
    uint32_t n = p->n_c - c < p->channels ? p->n_c - c : p->channels;
    uint32_t n_in = p->n_in - in < p->inputs ? p->n_in - in : p->inputs;
    ConstantBlock s = {.node = a->node,
                       .c = p->c + c,
                       .n_c = n,
                       .in_c = p->in_c + in,
                       .kernel = taps_at(p, k % p->around)};
    s.taps = taps_of(b->plan, a, n_in) / p->area * s.kernel.n;
    s.bytes = (uint64_t)s.taps * s.n_c * stored_weight(b->spec);
    return s;
}

static bool same_slice(const ConstantBlock *a, const ConstantBlock *b) {
    return a->node.i == b->node.i && a->c == b->c && a->n_c == b->n_c &&
           a->in_c == b->in_c && a->taps == b->taps &&
           a->kernel.first == b->kernel.first && a->kernel.n == b->kernel.n;
}

/* Index of the first slice of the run, which is listed now. Runs of the same
 * channels share slices. */
static uint32_t list_slices(Blocks *b, const Action *a, const Parts *p) {
    uint32_t *first = &b->first[a->node.i];
    ConstantBlock one = slice_at(b, a, p, 0);
    for (uint32_t i = b->slice.n; *first != NONE && i-- > *first;)
        if (same_slice(&b->slice.at[i], &one))
            return i;
    uint32_t at = b->slice.n;
    if (*first == NONE)
        *first = at;
    for (uint32_t k = 0; k < p->count; k++)
        vec_push(b->arena, &b->slice, slice_at(b, a, p, k));
    return at;
}

static void push(Blocks *b, Action a, uint32_t slice) {
    vec_push(b->arena, &b->action, a);
    vec_push(b->arena, &b->slice_of, slice);
}

/* The run with some channels of its operand. */
static void add_up_some(Blocks *b, Action *a, const Parts *p,
                        const ConstantBlock *s) {
    uint32_t n_in = s->taps / s->kernel.n;
    uint32_t *in = ARENA_COPY(b->arena, uint32_t, a->in, a->n_in);
    in[0] = placements_add_channels(b->arena, &b->placement, in[0],
                                    s->in_c - p->in_c, n_in);
    a->in = in;
}

/* The run's rows [row, row + rows), counted from its first. */
static Action band_at(Blocks *b, const Action *a, uint32_t row, uint32_t rows) {
    Rows need = rows_needed(b->g, a->node, a->row + row, rows);
    return rows == a->rows ? *a
                           : band_of_run(b->arena, &b->placement, a,
                                         a->row + row, rows, need);
}

/* Slices [k, k + across) of one set of output channels, for some rows. */
static void push_band(Blocks *b, const Action *a, const Parts *p,
                      uint32_t first, uint32_t k) {
    uint32_t out = a->out;
    for (uint32_t i = k; i < k + p->across; i++) {
        const ConstantBlock *s = &b->slice.at[first + i];
        Action one = *a;
        if (p->channels < p->n_c && i == k)
            out = placements_add_channels(b->arena, &b->placement, a->out,
                                          s->c - p->c, s->n_c);
        one.out = out;
        if (p->inputs < p->n_in)
            add_up_some(b, &one, p, s);
        if (p->taps < p->area)
            one.kernel = s->kernel;
        one.tile = b->tiles[a->node.i]++;
        push(b, one, first + i);
    }
}

/* Slices [k, end) of some rows. */
static void push_rows(Blocks *b, const Action *a, const Parts *p,
                      uint32_t first, uint32_t row, Steps slices) {
    uint32_t rows = p->rows < a->rows - row ? p->rows : a->rows - row;
    Action band = band_at(b, a, row, rows);
    for (uint32_t k = slices.first; k < slices.end; k += p->across)
        push_band(b, &band, p, first, k);
}

/* Weights of some output channels are loaded once for all rows of a whole
 * layer; runs of some rows of it make all of their channels before the next. */
static void push_slices(Blocks *b, const Action *a) {
    Parts p = parts_of(b, a);
    uint32_t first = list_slices(b, a, &p);
    const Node *node = graph_node(b->g, a->node);
    bool whole = a->rows == plan_volume(b->g, node->out[0]).h;
    uint32_t n = whole ? p.across : p.count;
    for (uint32_t k = 0; k < p.count; k += n)
        for (uint32_t row = 0; row < a->rows; row += p.rows)
            push_rows(b, a, &p, first, row, (Steps){k, k + n});
}

/* Runs of a node are numbered in their order. */
static void count_tiles(Blocks *b) {
    for (uint32_t i = 0; i < b->action.n; i++)
        if (b->slice_of.at[i] != NONE)
            b->action.at[i].n_tiles = b->tiles[b->action.at[i].node.i];
}

bool blocks_make(Arena *arena, Plan *plan, const Room *room, StageWay way,
                 Sliced *out) {
    uint32_t n_nodes = plan->schedule->graph->node.n;
    Blocks b = blocks_of(arena, plan);
    b.channels = ARENA_ARRAY(arena, uint32_t, n_nodes + 1);
    b.inputs = ARENA_ARRAY(arena, uint32_t, n_nodes + 1);
    b.kernel = ARENA_ARRAY(arena, uint32_t, n_nodes + 1);
    b.first = ARENA_ARRAY(arena, uint32_t, n_nodes + 1);
    b.tiles = ARENA_ARRAY(arena, uint32_t, n_nodes + 1);
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
    count_tiles(&b);
    plan->n_actions = b.action.n;
    plan->action = b.action.at;
    plan->n_placements = b.placement.n;
    plan->placement = b.placement.at;
    *out = (Sliced){b.slice.n, b.slice.at, b.slice_of.at};
    return homes_choose(arena, plan, way.fastest, out);
}
