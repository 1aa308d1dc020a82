/* actions.c - the ordered actions of a plan, and its placements.
 *
 * Input: units with their segments, modes of nodes, a placement of all
 * buffers. Output: the plan's arrays.
 * Method: walk the steps and keep account of where each tensor's values are: a
 * resident volume that is read and not there is loaded; one that leaves and is
 * needed later is stored, unless it lies outside already.
 * Within a step: loads, runs (or tiles), concats and stores.
 */
#include "alloc/emit.h"

#include <assert.h>

/* ---- placements ---- */

static uint32_t placement_add(Emit *e, Placement p, uint32_t region) {
    vec_push(e->arena, &e->placement, p);
    vec_push(e->arena, &e->region_of, region);
    return e->placement.n - 1;
}

static uint32_t place_outside(Emit *e, TensorId t, uint32_t region,
                              uint32_t part_c) {
    const Region *r = &e->regions.at.at[region];
    return placement_add(e,
                         (Placement){.tensor = t,
                                     .rows = plan_volume(e->w->g, t).h,
                                     .cols = plan_volume(e->w->g, t).w,
                                     .n_c = plan_volume(e->w->g, t).c,
                                     .memory = r->memory,
                                     .whole = r->whole,
                                     .part_c = part_c,
                                     .bytes = r->bytes,
                                     .buffer = e->problem->buf.n + region},
                         region);
}

uint32_t emit_place(Emit *e, uint32_t buf, uint64_t at, Placement p) {
    p.memory = (uint32_t)e->result->pool[buf];
    p.offset = e->result->offset[buf] + at;
    p.buffer = buf;
    p.bytes = layout_bytes(e->w->spec->memory[p.memory].layout, &p.whole);
    p.n_c = plan_volume(e->w->g, p.tensor).c;
    return placement_add(e, p, NONE);
}

/* All columns. */
static uint32_t place_buffer(Emit *e, uint32_t buf, Placement p) {
    p.cols = plan_volume(e->w->g, p.tensor).w;
    return emit_place(e, buf, 0, p);
}

uint32_t emit_part(Emit *e, uint32_t buf, TensorId t, TensorId root, uint32_t c,
                   uint32_t row, uint32_t rows) {
    uint32_t memory = (uint32_t)e->result->pool[buf];
    return place_buffer(e, buf,
                        (Placement){.tensor = t,
                                    .row = row,
                                    .rows = rows,
                                    .whole = plank_in(e->w, root, rows, memory),
                                    .part_c = c,
                                    .first = e->step,
                                    .end = e->step + 1});
}

uint32_t emit_plank(Emit *e, uint32_t buf, TensorId t, uint32_t row,
                    uint32_t rows) {
    return emit_part(e, buf, t, t, 0, row, rows);
}

uint32_t emit_first_buf(const Mode *mode, uint32_t tile) {
    return mode->first_buf + (mode->doubled && tile % 2 ? mode->twin : 0);
}

static const Segment *segment_now(const Emit *e, const Unit *unit) {
    for (uint32_t i = 0; i < unit->n_segments; i++) {
        const Segment *s = &unit->segment[i];
        if (unit->touch[s->first].step <= e->step &&
            e->step <= unit->touch[s->last].step)
            return s;
    }
    return NULL;
}

static Unit *unit_of(const Emit *e, TensorId t) {
    return &e->w->unit.at[e->w->unit_of[t.i]];
}

/* The tensor's place in a segment of its unit. */
static uint32_t place_in(Emit *e, TensorId t, const Segment *s) {
    const Unit *unit = unit_of(e, t);
    uint32_t memory = (uint32_t)e->result->pool[s->buf];
    return place_buffer(
        e, s->buf,
        (Placement){.tensor = t,
                    .rows = plan_volume(e->w->g, t).h,
                    .whole = volume_in(e->w, unit->root, memory),
                    .part_c = channel_in_unit(e->w, unit, t),
                    .first = unit->touch[s->first].step,
                    .end = unit->touch[s->last].step + 1});
}

static uint32_t place_resident(Emit *e, TensorId t) {
    const Segment *s = segment_now(e, unit_of(e, t));
    assert(s);
    return place_in(e, t, s);
}

/* ---- actions ---- */

static Action action_new(const Emit *e, ActionKind kind, uint32_t n_in,
                         const uint32_t *in, uint32_t out) {
    uint32_t rows = e->placement.at[out].rows;
    return (Action){.kind = kind,
                    .node = NO_NODE,
                    .n_in = n_in,
                    .in = ARENA_COPY(e->arena, uint32_t, in, n_in),
                    .out = out,
                    .row = e->placement.at[out].row,
                    .rows = rows,
                    .col = e->placement.at[out].col,
                    .cols = e->placement.at[out].cols,
                    .n_tiles = 1,
                    .at = e->step,
                    .style = -1};
}

static void use_regions(Emit *e, const Action *a) {
    for (uint32_t i = 0; i <= a->n_in; i++) {
        uint32_t region = e->region_of.at[i < a->n_in ? a->in[i] : a->out];
        if (region != NONE)
            region_use(&e->regions, region, e->step);
    }
}

/* Whole nodes of one step have one number. */
static bool runs_beside(const Emit *e, const Action *a) {
    const Action *last = e->action.n ? &e->action.at[e->action.n - 1] : NULL;
    return last && a->kind == ACTION_RUN && last->kind == ACTION_RUN &&
           a->n_tiles == 1 && last->n_tiles == 1 && a->style < 0 &&
           last->style < 0 && last->at == a->at;
}

/* Loads of network inputs may go without a number of their own, but only where
 * nothing has one yet: behind that, theirs would be another's. */
void emit_action(Emit *e, Action a) {
    bool input =
        a.kind == ACTION_LOAD &&
        e->w->role[e->placement.at[a.in[0]].tensor.i].origin == FROM_INPUT;
    bool shares = e->w->spec->input_shares_step && e->number == FIRST_STEP;
    if (runs_beside(e, &a))
        a.step = e->number - 1;
    else
        a.step = input && shares ? e->w->spec->input_step : e->number++;
    use_regions(e, &a);
    vec_push(e->arena, &e->action, a);
}

void emit_move(Emit *e, ActionKind kind, uint32_t from, uint32_t to,
               uint32_t row, uint32_t rows) {
    Action a = action_new(e, kind, 1, &from, to);
    a.row = row;
    a.rows = rows;
    emit_action(e, a);
}

void emit_move_from(Emit *e, ActionKind kind, uint32_t from, uint32_t to) {
    const Placement *p = &e->placement.at[from];
    Action a = action_new(e, kind, 1, &from, to);
    a.row = p->row;
    a.rows = p->rows;
    a.col = p->col;
    a.cols = p->cols;
    emit_action(e, a);
}

void emit_move_all(Emit *e, ActionKind kind, uint32_t from, uint32_t to) {
    emit_move(e, kind, from, to, e->placement.at[to].row,
              e->placement.at[to].rows);
}

/* ---- where values are ---- */

/* A placement from which the tensor can be loaded: its own, or its part of a
 * concat's; NONE if there is none. */
static uint32_t readable(Emit *e, TensorId t) {
    uint32_t c = 0;
    for (TensorId a = t; a.i != NONE; a = e->w->role[a.i].parent) {
        if (e->copy[a.i] != NONE) {
            if (same_tensor(a, t))
                return e->copy[t.i];
            const Placement *p = &e->placement.at[e->copy[a.i]];
            return place_outside(e, t, e->region_of.at[e->copy[a.i]],
                                 p->part_c + c);
        }
        c += e->w->role[a.i].part_c;
    }
    return NONE;
}

uint32_t emit_channels(Emit *e, uint32_t placement, uint32_t c, uint32_t end) {
    Placement p = e->placement.at[placement];
    if (p.n_c == end - c)
        return placement;
    p.part_c += c;
    p.c = c;
    p.n_c = end - c;
    return placement_add(e, p, e->region_of.at[placement]);
}

/* The tensor's place in backing memory. */
static uint32_t place_home(Emit *e, TensorId t) {
    uint32_t c;
    TensorId root = home_of(e->w, t, &c);
    uint32_t *region = &e->home[root.i];
    if (*region == NONE)
        *region =
            region_add(&e->regions, root, (uint32_t)e->w->spec->backing, true);
    return place_outside(e, t, *region, c);
}

static uint32_t place_output(Emit *e, TensorId t) {
    uint32_t *output = &e->output[t.i];
    if (*output == NONE) {
        uint32_t memory = (uint32_t)e->w->spec->output;
        bool timed = !graph_is_output(e->w->g, t);
        *output =
            place_outside(e, t, region_add(&e->regions, t, memory, timed), 0);
    }
    return *output;
}

/* Channels from `c` on that do not lie there yet. */
static void store_from(Emit *e, TensorId t, uint32_t c) {
    uint32_t home = place_home(e, t);
    uint32_t end = plan_volume(e->w->g, t).c - e->stored[t.i];
    if (c < end) {
        uint32_t from = emit_channels(e, e->present[t.i], c, end);
        emit_move_all(e, ACTION_STORE, from, emit_channels(e, home, c, end));
        e->stored[t.i] += end - c;
    }
    if (c == 0)
        e->copy[t.i] = home;
}

static void store_home(Emit *e, TensorId t) {
    store_from(e, t, 0);
}

static void store_now(Emit *e, TensorId t) {
    Dests d = dests_of(e->w, t, false);
    if (d.home)
        store_home(e, t);
    if (d.output)
        emit_move_all(e, ACTION_STORE, e->present[t.i], place_output(e, t));
}

uint32_t emit_readable(Emit *e, TensorId t) {
    uint32_t from = readable(e, t);
    if (from == NONE) {
        assert(e->present[t.i] != NONE);
        store_home(e, t);
        from = e->copy[t.i];
    }
    return from;
}

/* ---- rows of what is resident ---- */

void emit_copy(Emit *e, uint32_t from, uint32_t to) {
    emit_move_all(e, ACTION_COPY, from, to);
    e->action.at[e->action.n - 1].legal =
        copy_legal(e->w, e->placement.at[to].tensor);
}

static bool read_by_rows(const Emit *e, const Unit *unit) {
    for (uint32_t i = 0; i < unit->n_touches; i++)
        if (unit->touch[i].step == e->step)
            return unit->touch[i].by_rows;
    return false;
}

/* The last segment before this step of which channels stay for it, or NULL. */
static const Segment *segment_kept(const Emit *e, const Unit *unit) {
    for (uint32_t i = 0; i < unit->n_segments; i++) {
        const Segment *s = &unit->segment[i];
        const Touch *last = &unit->touch[s->last];
        Away away;
        if (last->keeps && last->step < e->step &&
            away_find(e->w, unit, s->last, &away) && 2 * e->step < away.end)
            return s;
    }
    return NULL;
}

/* The tensor's first channels that are resident, of a volume that is read by
 * rows; *from: where. */
static uint32_t resident_part(Emit *e, TensorId t, uint32_t *from) {
    const Unit *unit = e->w->unit_of[t.i] == NONE ? NULL : unit_of(e, t);
    if (!unit || !read_by_rows(e, unit))
        return 0;
    *from = e->present[t.i];
    if (*from != NONE)
        return plan_volume(e->w->g, t).c;
    const Segment *s = segment_kept(e, unit);
    if (!s)
        return 0;
    *from = place_in(e, t, s);
    return kept_of(e->w, unit, t, unit->touch[s->last].keeps);
}

uint32_t emit_rows_into(Emit *e, uint32_t plank) {
    TensorId t = e->placement.at[plank].tensor;
    uint32_t from, end = plan_volume(e->w->g, t).c;
    uint32_t kept = resident_part(e, t, &from);
    if (kept)
        emit_copy(e, emit_channels(e, from, 0, kept),
                  emit_channels(e, plank, 0, kept));
    if (kept == end)
        return NONE;
    uint32_t outside = readable(e, t);
    if (outside == NONE)
        outside = kept ? place_home(e, t) : emit_readable(e, t);
    emit_move_all(e, ACTION_LOAD, emit_channels(e, outside, kept, end),
                  emit_channels(e, plank, kept, end));
    return outside;
}

static bool needed(const Emit *e, TensorId t, uint32_t from_step) {
    uint32_t last = e->w->role[t.i].last;
    return last != NONE && last >= from_step;
}

/* All of the unit's tensors that lie within `t` are there with it. */
static void present_with(Emit *e, TensorId t) {
    e->present[t.i] = place_resident(e, t);
    const Node *node = graph_node(e->w->g, graph_tensor(e->w->g, t)->producer);
    const Role *role = &e->w->role[t.i];
    if (role->origin == FROM_PARTS && !role->dissolved)
        for (uint32_t i = 0; i < node->n_in; i++)
            present_with(e, node->in[i]);
}

/* Loads what has not stayed. */
static void load_rest(Emit *e, TensorId t, uint32_t kept) {
    uint32_t end = plan_volume(e->w->g, t).c;
    uint32_t whole = readable(e, t);
    present_with(e, t);
    if (kept == end)
        return;
    if (whole == NONE)
        whole = place_home(e, t);
    emit_move_all(e, ACTION_LOAD, emit_channels(e, whole, kept, end),
                  emit_channels(e, e->present[t.i], kept, end));
}

/* A unit of which channels have stayed is whole again as soon as it is
 * touched. */
static void unit_return(Emit *e, TensorId t) {
    if (e->w->unit_of[t.i] == NONE)
        return;
    const Unit *unit = unit_of(e, t);
    const Segment *s = segment_now(e, unit);
    if (!s || s == unit->segment || unit->touch[s->first].step != e->step ||
        !unit->touch[s[-1].last].keeps)
        return;
    uint32_t keeps = unit->touch[s[-1].last].keeps;
    TensorId *kept = ARENA_ARRAY(e->arena, TensorId, unit->n_tensors);
    uint32_t n = kept_tensors(e->w, unit, s[-1].last, kept);
    for (uint32_t i = 0; i < n; i++)
        if (e->present[kept[i].i] == NONE)
            load_rest(e, kept[i], kept_of(e->w, unit, kept[i], keeps));
}

/* The tensor, or the concat around it if that is wanted too. */
static void load(Emit *e, TensorId t) {
    TensorId root = unit_of(e, t)->root;
    bool whole = unit_of(e, t)->concat && needed(e, root, e->step) &&
                 readable(e, root) != NONE;
    TensorId what = whole ? root : t;
    uint32_t from = readable(e, what);
    assert(from != NONE);
    present_with(e, what);
    emit_move_all(e, ACTION_LOAD, from, e->present[what.i]);
}

static void make_present(Emit *e, TensorId t) {
    if (e->present[t.i] == NONE)
        load(e, t);
}

/* ---- nodes ---- */

static void set_whole(const Work *w, const Node *node, Action *a) {
    bool conv = node->op == OP_CONV || node->op == OP_CONV_POOL ||
                node->op == OP_DECONV;
    a->in_rows = plan_volume(w->g, node->in[0]).h;
    a->in_cols = plan_volume(w->g, node->in[0]).w;
    a->pad_top = conv                  ? node->attr.conv.pad[0]
                 : node->op == OP_POOL ? node->attr.pool.pad[0]
                                       : 0;
    a->pad_left = conv                  ? node->attr.conv.pad[1]
                  : node->op == OP_POOL ? node->attr.pool.pad[1]
                                        : 0;
    if (node->op == OP_CONV_POOL)
        a->pool_pad_top = node->attr.pool.pad[0];
}

Action emit_run_new(Emit *e, NodeId id, const uint32_t *in, uint32_t out) {
    const Node *node = graph_node(e->w->g, id);
    Action a = action_new(e, ACTION_RUN, node->n_in, in, out);
    a.node = id;
    a.legal = e->w->legal[id.i];
    set_whole(e->w, node, &a);
    return a;
}

uint32_t emit_view(Emit *e, TensorId t, uint32_t row, uint32_t rows) {
    assert(e->present[t.i] != NONE);
    Placement p = e->placement.at[e->present[t.i]];
    p.row = row;
    p.rows = rows;
    p.ring = true;
    return placement_add(e, p, NONE);
}

void emit_made(Emit *e, TensorId t) {
    e->present[t.i] = place_resident(e, t);
}

uint32_t emit_result(Emit *e, NodeId id) {
    TensorId out = graph_node(e->w->g, id)->out[0];
    TensorId over = e->w->role[out.i].over;
    if (over.i != NONE)
        e->present[over.i] = NONE;
    e->present[out.i] = place_resident(e, out);
    return e->present[out.i];
}

static void run_whole(Emit *e, NodeId id) {
    const Node *node = graph_node(e->w->g, id);
    uint32_t in[MAX_OPERANDS];
    for (uint32_t i = 0; i < node->n_in; i++)
        in[i] = e->present[node->in[i].i];
    emit_action(e, emit_run_new(e, id, in, emit_result(e, id)));
}

static void run_plank(Emit *e, NodeId id, uint32_t tile, uint32_t n_tiles,
                      const uint32_t *to, uint32_t n_to) {
    const Node *node = graph_node(e->w->g, id);
    const Mode *mode = &e->w->mode[id.i];
    uint32_t h = plan_volume(e->w->g, node->out[0]).h;
    uint32_t row = tile * mode->rows;
    uint32_t rows = mode->rows < h - row ? mode->rows : h - row;
    Rows need = rows_needed(e->w->g, id, row, rows);
    uint32_t in[MAX_OPERANDS], buf = emit_first_buf(mode, tile);
    for (uint32_t i = 0; i < node->n_in; i++) {
        in[i] = emit_plank(e, buf + i, node->in[i], need.in_row, need.in_rows);
        emit_rows_into(e, in[i]);
    }
    Action a = emit_run_new(
        e, id, in, emit_plank(e, buf + node->n_in, node->out[0], row, rows));
    a.in_row = need.in_row;
    a.in_rows = need.in_rows;
    a.pad_top = need.pad_top;
    a.pool_pad_top = need.pool_pad_top;
    a.tile = tile;
    a.n_tiles = n_tiles;
    emit_action(e, a);
    for (uint32_t i = 0; i < n_to; i++)
        emit_move(e, ACTION_STORE, a.out, to[i], row, rows);
}

uint32_t emit_targets(Emit *e, TensorId t, uint32_t to[2], uint32_t *home) {
    Dests d = dests_of(e->w, t, true);
    uint32_t n = 0;
    *home = d.home ? place_home(e, t) : NONE;
    if (d.home)
        to[n++] = *home;
    if (d.output)
        to[n++] = place_output(e, t);
    return n;
}

static void run_planks(Emit *e, NodeId id) {
    TensorId out = graph_node(e->w->g, id)->out[0];
    uint32_t n_tiles = parts_of_planks(e->w, id);
    uint32_t to[2], home;
    if (e->w->mode[id.i].channels) {
        emit_slabs(e, id);
        return;
    }
    uint32_t n_to = emit_targets(e, out, to, &home);
    for (uint32_t k = 0; k < n_tiles; k++)
        run_plank(e, id, k, n_tiles, to, n_to);
    e->copy[out.i] = home;
}

/* Its partner runs it. */
static void run_giver(Emit *e, NodeId id) {
    (void)e;
    (void)id;
}

static void run_hardware(Emit *e, NodeId id) {
    const Node *node = graph_node(e->w->g, id);
    const Mode *mode = &e->w->mode[id.i];
    TensorId out = node->out[0];
    uint32_t in[MAX_OPERANDS], to;
    for (uint32_t i = 0; i < node->n_in; i++)
        in[i] = mode->streams_in ? emit_readable(e, node->in[i])
                                 : e->present[node->in[i].i];
    if (!mode->streams_out)
        to = emit_result(e, id);
    else if (dests_of(e->w, out, true).home)
        to = e->copy[out.i] = place_home(e, out);
    else
        to = place_output(e, out);
    Action a = emit_run_new(e, id, in, to);
    a.style = mode->style;
    a.tile_w = mode->tile_w;
    a.tile_h = mode->tile_h;
    a.nest = mode->nest;
    a.tile_repl = mode->repl;
    emit_action(e, a);
}

/* The first of its steps runs the whole group. */
static void run_group(Emit *e, NodeId id) {
    const Group *g = &e->w->group.at[e->w->mode[id.i].group];
    if (e->step == g->first)
        emit_group(e, g);
}

static void run_host(Emit *e, NodeId id) {
    const Node *node = graph_node(e->w->g, id);
    TensorId out = node->out[0];
    const Role *role = &e->w->role[out.i];
    uint32_t *in = ARENA_ARRAY(e->arena, uint32_t, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++) {
        Origin origin = e->w->role[node->in[i].i].origin;
        bool engines = origin == FROM_ENGINE || origin == FROM_PARTS;
        in[i] = engines ? e->output[node->in[i].i] : e->copy[node->in[i].i];
    }
    bool result = graph_is_output(e->w->g, out) && !role->engine_reads &&
                  role->parent.i == NONE;
    int32_t memory = result ? e->w->spec->output : e->w->spec->input;
    bool timed = !graph_is_output(e->w->g, out);
    e->copy[out.i] = place_outside(
        e, out, region_add(&e->regions, out, (uint32_t)memory, timed), 0);
    Action a = action_new(e, ACTION_HOST, node->n_in, in, e->copy[out.i]);
    a.node = id;
    a.legal = e->w->legal[id.i];
    a.in_rows = node->n_in ? plan_volume(e->w->g, node->in[0]).h : 0;
    emit_action(e, a);
}

/* ---- concats ---- */

static void relay(Emit *e, const Relay *r, uint32_t to) {
    uint32_t from = readable(e, r->tensor);
    uint32_t h = plan_volume(e->w->g, r->tensor).h;
    for (uint32_t row = 0; row < h; row += r->rows) {
        uint32_t rows = r->rows < h - row ? r->rows : h - row;
        uint32_t plank = emit_plank(e, r->buf, r->tensor, row, rows);
        emit_move(e, ACTION_LOAD, from, plank, row, rows);
        emit_move(e, ACTION_STORE, plank, to, row, rows);
    }
}

/* Relays of this step: members into the concat's place, or (`outward`) what
 * the outside needs to the output memory. */
static void relays_now(Emit *e, NodeId id, bool outward) {
    const Node *node = graph_node(e->w->g, id);
    for (uint32_t i = 0; i < e->w->relay.n; i++) {
        const Relay *r = &e->w->relay.at[i];
        bool is_out = same_tensor(r->tensor, node->out[0]);
        if (r->step == e->step && is_out && outward)
            relay(e, r, place_output(e, r->tensor));
        for (uint32_t k = 0; k < node->n_in && !outward; k++)
            if (r->step == e->step && same_tensor(r->tensor, node->in[k]))
                relay(e, r, place_home(e, r->tensor));
    }
}

static void concat_add(Emit *e, NodeId id, const uint32_t *in, uint32_t out) {
    Action a =
        action_new(e, ACTION_CONCAT, graph_node(e->w->g, id)->n_in, in, out);
    a.node = id;
    a.in_rows = a.rows;
    emit_action(e, a);
}

static void concat_dissolved(Emit *e, NodeId id) {
    const Node *node = graph_node(e->w->g, id);
    uint32_t *in = ARENA_ARRAY(e->arena, uint32_t, node->n_in);
    relays_now(e, id, false);
    for (uint32_t i = 0; i < node->n_in; i++)
        in[i] = place_home(e, node->in[i]);
    uint32_t out = place_home(e, node->out[0]);
    concat_add(e, id, in, out);
    e->copy[node->out[0].i] = out;
    relays_now(e, id, true);
}

static void concat_whole(Emit *e, NodeId id) {
    const Node *node = graph_node(e->w->g, id);
    uint32_t *in = ARENA_ARRAY(e->arena, uint32_t, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++) {
        make_present(e, node->in[i]);
        in[i] = e->present[node->in[i].i];
    }
    e->present[node->out[0].i] = place_resident(e, node->out[0]);
    concat_add(e, id, in, e->present[node->out[0].i]);
}

/* ---- steps ---- */

static void loads(Emit *e, NodeId id) {
    const Node *node = graph_node(e->w->g, id);
    for (uint32_t i = 0; i < node->n_in; i++)
        unit_return(e, node->in[i]);
    if (!result_lands(e->w, id))
        unit_return(e, node->out[0]);
    if (!on_engine(e->w, id) || e->w->mode[id.i].streams_in)
        return;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!couple_passes(e->w, node->in[i]))
            make_present(e, node->in[i]);
}

/* Those of a couple, before either runs. */
static void all_loads(Emit *e, NodeId id) {
    loads(e, id);
    if (e->w->mode[id.i].kind == MODE_GIVES)
        loads(e, couple_partner(e->w, id));
}

static bool in_group(const Emit *e, NodeId id) {
    return e->w->mode[id.i].kind == MODE_GROUP;
}

static void run(Emit *e, NodeId id) {
    static void (*const by_mode[])(Emit *, NodeId) = {
        [MODE_WHOLE] = run_whole,       [MODE_PLANKS] = run_planks,
        [MODE_HARDWARE] = run_hardware, [MODE_AHEAD] = run_hardware,
        [MODE_GROUP] = run_group,       [MODE_GIVES] = run_giver,
        [MODE_TAKES] = emit_couple,
    };
    if (on_engine(e->w, id) || in_group(e, id))
        by_mode[e->w->mode[id.i].kind](e, id);
    else if (!is_placed(e->w, id))
        run_host(e, id);
}

/* What was written by parts is brought to its place in a concat. */
static void land(Emit *e, TensorId t) {
    unit_return(e, t);
    e->present[t.i] = place_resident(e, t);
    emit_move_all(e, ACTION_LOAD, e->copy[t.i], e->present[t.i]);
}

static void finish(Emit *e, NodeId id) {
    TensorId out = graph_node(e->w->g, id)->out[0];
    if (is_placed(e->w, id) && in_group(e, id))
        return;
    if (is_placed(e->w, id) && e->w->role[out.i].dissolved) {
        concat_dissolved(e, id);
        return;
    }
    if (is_placed(e->w, id))
        concat_whole(e, id);
    else if (!on_engine(e->w, id))
        return;
    if (result_lands(e->w, id))
        land(e, out);
    if (e->w->mode[id.i].streams_out)
        relays_now(e, id, true);
    else
        store_now(e, out);
}

static void leave_partly(Emit *e, const Unit *unit, uint32_t touch) {
    TensorId *kept = ARENA_ARRAY(e->arena, TensorId, unit->n_tensors);
    uint32_t n = kept_tensors(e->w, unit, touch, kept);
    for (uint32_t i = 0; i < n; i++)
        if (e->present[kept[i].i] != NONE && readable(e, kept[i]) == NONE)
            store_from(e, kept[i],
                       kept_of(e->w, unit, kept[i], unit->touch[touch].keeps));
}

/* Stores what leaves and is needed again. */
static void leave(Emit *e, TensorId t) {
    if (e->w->unit_of[t.i] == NONE)
        return;
    const Unit *unit = unit_of(e, t);
    const Segment *s = segment_now(e, unit);
    if (!s || unit->touch[s->last].step != e->step)
        return;
    uint32_t keeps = unit->touch[s->last].keeps;
    if (keeps)
        leave_partly(e, unit, s->last);
    for (uint32_t i = 0; i < unit->n_tensors && !keeps; i++) {
        TensorId u = unit->tensor[i];
        if (e->present[u.i] != NONE && needed(e, u, e->step + 1) &&
            readable(e, u) == NONE)
            store_home(e, u);
    }
    for (uint32_t i = 0; i < unit->n_tensors; i++)
        e->present[unit->tensor[i].i] = NONE;
}

static void leave_all(Emit *e, NodeId id) {
    const Node *node = graph_node(e->w->g, id);
    for (uint32_t k = 0; k < node->n_in; k++)
        leave(e, node->in[k]);
    leave(e, node->out[0]);
}

static void step_actions(Emit *e, const Step *step) {
    for (uint32_t i = 0; i < step->n; i++)
        all_loads(e, step->slot[i].node);
    for (uint32_t i = 0; i < step->n; i++)
        run(e, step->slot[i].node);
    for (uint32_t i = 0; i < step->n; i++)
        finish(e, step->slot[i].node);
    for (uint32_t i = 0; i < step->n; i++) {
        NodeId id = step->slot[i].node;
        if (e->w->mode[id.i].kind == MODE_TAKES)
            leave_all(e, couple_partner(e->w, id));
        leave_all(e, id);
    }
}

/* ---- the plan ---- */

static uint32_t *nones(Arena *arena, uint32_t n) {
    uint32_t *at = ARENA_ARRAY(arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        at[i] = NONE;
    return at;
}

static void place_inputs(Emit *e) {
    for (NodeId n = {0}; n.i < e->w->g->node.n; n.i++) {
        const Node *node = graph_node(e->w->g, n);
        if (node->op != OP_INPUT)
            continue;
        TensorId t = node->out[0];
        uint32_t region =
            region_add(&e->regions, t, (uint32_t)e->w->spec->input, false);
        e->copy[t.i] = place_outside(e, t, region, 0);
    }
}

static void offsets_fill(Emit *e) {
    for (uint32_t i = 0; i < e->placement.n; i++) {
        if (e->region_of.at[i] == NONE)
            continue;
        const Region *r = &e->regions.at.at[e->region_of.at[i]];
        Placement *p = &e->placement.at[i];
        p->offset = r->offset;
        p->first = r->first;
        p->end = r->end;
    }
}

static void plan_fill(const Emit *e, Plan *plan) {
    const Work *w = e->w;
    plan->schedule = w->schedule;
    plan->n_placements = e->placement.n;
    plan->placement = e->placement.at;
    plan->n_actions = e->action.n;
    plan->action = e->action.at;
    Repl *repl = ARENA_ARRAY(e->arena, Repl, w->g->tensor.n + 1);
    for (uint32_t t = 0; t < w->g->tensor.n; t++)
        repl[t] = w->role[t].repl;
    plan->repl = repl;
    plan->am_height = plan->am_live = 0;
    for (uint32_t m = 0; m < w->spec->n_active; m++) {
        plan->memory_used[m] = e->result->height[m];
        plan->am_height += e->result->height[m];
    }
    for (uint32_t t = 0; t < e->problem->n_times; t++)
        if (e->problem->live[t] > plan->am_live)
            plan->am_live = e->problem->live[t];
}

bool actions_make(Work *w, Diag *diag, const Problem *problem,
                  const PlanResult *result, Plan *plan) {
    Emit e = {.w = w,
              .arena = w->arena,
              .problem = problem,
              .result = result,
              .regions = {.arena = w->arena, .work = w},
              .number = FIRST_STEP};
    e.present = nones(w->arena, w->g->tensor.n);
    e.stored = ARENA_ARRAY(w->arena, uint32_t, w->g->tensor.n + 1);
    e.copy = nones(w->arena, w->g->tensor.n);
    e.output = nones(w->arena, w->g->tensor.n);
    e.home = nones(w->arena, w->g->tensor.n);
    place_inputs(&e);
    for (; e.step < w->schedule->n_steps; e.step++)
        step_actions(&e, &w->schedule->step[e.step]);
    if (!regions_place(&e.regions, diag, plan->memory_used))
        return false;
    offsets_fill(&e);
    plan_fill(&e, plan);
    return true;
}
