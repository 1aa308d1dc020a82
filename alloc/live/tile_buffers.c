/* tile_buffers.c - buffers of what passes in parts.
 *
 * Input: how a node runs. Output: buffers for its row tiles, stripes, rings,
 * lines and hardware tiles, and for what is brought from one place outside to
 * another when it has run.
 */
#include "alloc/alias/alias.h"
#include "alloc/cascade/lines.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/buffers.h"

/* ---- row tiles and stripes ---- */

static void row_tile_set(const Decisions *d, Buffers *p, NodeId id) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, id);
    const Mode *mode = &d->mode[id.i];
    uint32_t time = 2 * f->schedule->step_of[id.i];
    uint32_t in_rows = row_tile_in_rows(f, id, mode->rows);
    uint64_t bytes[PACK_MAX_POOLS];
    for (uint32_t i = 0; i < node->n_in + mode->streams_out; i++) {
        bool is_in = i < node->n_in;
        if (is_in && !mode_streams(mode, i))
            continue;
        Owner owner = {.kind = OWNER_ROW_TILE,
                       .alias = NONE,
                       .node = id,
                       .tensor = node_operand(node, i),
                       .rows = is_in ? in_rows : mode->rows,
                       .channels = mode->channels,
                       .cols = mode->cols};
        if (mode->cols) {
            Volume box = boxes_volume(f, id, mode, i);
            owner.rows = box.h;
            owner.cols = box.w;
            owner.channels = box.c;
            volume_pool_bytes(f, box, bytes);
        } else if (mode->channels)
            channel_tile_bytes(f, owner.tensor, mode->channels, bytes);
        else
            pool_bytes(f, owner.tensor, owner.rows, false, bytes);
        buffer_add(f, p, (Times){time, time + 1}, bytes,
                   reach(f, id, hw_operand(i, node->n_in)), owner);
    }
}

static void row_tile_bufs(const Decisions *d, Buffers *p, NodeId id) {
    p->first_buf[id.i] = p->buf.n;
    row_tile_set(d, p, id);
    p->second_set[id.i] = p->buf.n - p->first_buf[id.i];
    if (d->mode[id.i].doubled)
        row_tile_set(d, p, id);
}

/* The row tile of what a stripe holds, from step `first` on. */
static void held_buf(const Decisions *d, Buffers *p, NodeId id, TensorId t,
                     uint32_t first, const Stripe *most) {
    const Facts *f = d->f;
    const Cascade *g = cascade_of(d, id);
    uint64_t bytes[PACK_MAX_POOLS];
    stripe_bytes(f, t, most, bytes);
    buffer_add(f, p, (Times){2 * first, 2 * cascade_last_use(f, g, t) + 1},
               bytes, cascade_reach(f, g, t),
               (Owner){.kind = OWNER_ROW_TILE,
                       .alias = NONE,
                       .node = id,
                       .tensor = t,
                       .rows = most->rows});
}

/* One buffer for an operand that the node loads for itself, or copies; in a
 * concat's row tile they have their place. */
static void operand_buf(const Decisions *d, Buffers *p, NodeId id, uint32_t k,
                        const Stripe *own) {
    const Facts *f = d->f;
    TensorId t = graph_node(f->g, id)->in[k];
    bool held = cascade_holder(f, cascade_of(d, id), t) != NONE;
    uint32_t step = f->schedule->step_of[id.i];
    uint64_t bytes[PACK_MAX_POOLS];
    if (is_placed(f, id) || (held && !(own->copies >> k & 1)))
        return;
    pool_bytes(f, t, own->need.in_rows, false, bytes);
    buffer_add(f, p, (Times){2 * step, 2 * step + 1}, bytes, reach_of(f, id, t),
               (Owner){.kind = OWNER_ROW_TILE,
                       .alias = NONE,
                       .node = id,
                       .tensor = t,
                       .rows = own->need.in_rows});
}

/* First what is loaded for this node and others, then its operands, then its
 * result, if that lies in no other. */
static void stripe_set(const Decisions *d, Buffers *p, NodeId id,
                       const Stripe *most) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, id);
    const Cascade *g = cascade_of(d, id);
    uint32_t step = f->schedule->step_of[id.i], at = step - g->first;
    for (uint32_t s = 0; s < g->n_shared; s++)
        if (shared_first(f, g, s) == at)
            held_buf(d, p, id, g->shared[s], step,
                     &most[cascade_length(g) + s]);
    for (uint32_t k = 0; k < node->n_in; k++)
        operand_buf(d, p, id, k, &most[at]);
    if (!cascade_joins(f, g, node->out[0]))
        held_buf(d, p, id, node->out[0], g->first + row_tile_first(f, g, at),
                 &most[at]);
}

static void stripe_bufs(const Decisions *d, Buffers *p, NodeId id) {
    const Cascade *g = cascade_of(d, id);
    const Stripe *most = cascade_highest(d->f, g);
    p->first_buf[id.i] = p->buf.n;
    stripe_set(d, p, id, most);
    p->second_set[id.i] = p->buf.n - p->first_buf[id.i];
    if (d->mode[id.i].doubled)
        stripe_set(d, p, id, most);
}

/* Memories that all rings may lie in which share that place. */
static uint32_t place_reach(const Facts *f, const Cascade *g,
                            const Rings *rings, uint32_t place) {
    uint32_t memories = UINT32_MAX;
    for (uint32_t i = 0; i < rings->at.n; i++)
        if (rings->at.at[i].place == place)
            memories &= cascade_reach(f, g, rings->at.at[i].tensor);
    return memories;
}

/* All rings of a cascade, at its first step. */
static void ring_bufs(const Decisions *d, Buffers *p, const Cascade *g) {
    const Facts *f = d->f;
    const Rings *rings = cascade_rings(d, g);
    uint64_t bytes[PACK_MAX_POOLS];
    for (uint32_t i = 0; i < rings->at.n; i++) {
        const Ring *ring = &rings->at.at[i];
        if (ring->over != NONE || ring->inside != NONE)
            continue;
        uint32_t maker = ring->maker == NONE ? 0 : ring->maker;
        pool_bytes(f, ring->tensor, ring->rows, false, bytes);
        buffer_add(f, p, (Times){2 * g->first, 2 * g->end}, bytes,
                   place_reach(f, g, rings, i),
                   (Owner){.kind = OWNER_ROW_TILE,
                           .alias = NONE,
                           .node = cascade_node(f, g, maker),
                           .tensor = ring->tensor,
                           .rows = ring->rows});
    }
}

/* All line buffers of a cascade, and the room of those that pass. */
static void line_bufs(const Decisions *d, Buffers *p, const Cascade *g) {
    const Facts *f = d->f;
    const Lines *lines = cascade_lines(d, g);
    uint64_t bytes[PACK_MAX_POOLS] = {0};
    Owner owner = {
        .kind = OWNER_ROW_TILE, .alias = NONE, .node = cascade_node(f, g, 0)};
    for (uint32_t i = 0; i < lines->at.n; i++) {
        const LineRing *line = &lines->at.at[i];
        Volume v = line_volume(f, line);
        owner.tensor = line->tensor;
        owner.rows = line->buffer.keep + line->buffer.band;
        bytes[0] = layout_bytes(f->spec->memory[0].layout, &v);
        if (!line->passes)
            buffer_add(f, p, (Times){2 * g->first, 2 * g->end}, bytes, 1,
                       owner);
    }
    bytes[0] = lines->room;
    if (lines->room)
        buffer_add(f, p, (Times){2 * g->first, 2 * g->end}, bytes, 1, owner);
}

static void cascade_bufs(const Decisions *d, Buffers *p, NodeId id) {
    const Cascade *g = cascade_of(d, id);
    if (!g->rolls) {
        stripe_bufs(d, p, id);
    } else if (d->f->schedule->step_of[id.i] == g->first) {
        p->first_buf[id.i] = p->buf.n;
        g->cols ? line_bufs(d, p, g) : ring_bufs(d, p, g);
    }
}

static void tile_bufs(const Decisions *d, Buffers *p, NodeId id) {
    const Facts *f = d->f;
    Range pin[3];
    uint32_t memory, n = mode_pins(d, id, pin, &memory);
    uint32_t time = 2 * f->schedule->step_of[id.i];
    p->first_buf[id.i] = p->buf.n;
    for (uint32_t i = 0; i < n; i++) {
        Owner owner = {.kind = OWNER_HARDWARE_TILE,
                       .alias = NONE,
                       .node = id,
                       .tensor = graph_node(f->g, id)->in[0],
                       .least = pin[i].end - pin[i].at};
        Buffer *buf = buffer_new(f, p, &owner);
        buf->first = time;
        buf->end = time + 1;
        buf->pin_pool = (int32_t)memory;
        buf->pin_offset = pin[i].at;
        buf->bytes[memory] = owner.least;
    }
}

/* What passes between two nodes. */
static void pair_buf(const Decisions *d, Buffers *p, NodeId id) {
    const Facts *f = d->f;
    const Mode *mode = &d->mode[id.i];
    TensorId t = graph_node(f->g, id)->out[0];
    uint32_t step = f->schedule->step_of[id.i];
    uint64_t bytes[PACK_MAX_POOLS];
    channel_tile_bytes(f, t, mode->channels, bytes);
    p->first_buf[id.i] =
        buffer_add(f, p, (Times){2 * step, 2 * step + 3}, bytes,
                   reach_of(f, id, t) & reach_of(f, pair_partner(d, id), t),
                   (Owner){.kind = OWNER_ROW_TILE,
                           .alias = NONE,
                           .node = id,
                           .tensor = t,
                           .rows = plan_volume(f->g, t).h,
                           .channels = mode->channels});
}

/* ---- bounce buffers ---- */

static void bounce_add(const Decisions *d, Buffers *p, uint32_t step,
                       TensorId t) {
    const Facts *f = d->f;
    Bounce bounce = {.step = step, .tensor = t, .rows = d->bounce_rows[t.i]};
    uint64_t bytes[PACK_MAX_POOLS];
    pool_bytes(f, t, bounce.rows, false, bytes);
    bounce.buf =
        buffer_add(f, p, (Times){2 * step + 1, 2 * step + 2}, bytes, UINT32_MAX,
                   (Owner){.kind = OWNER_BOUNCE,
                           .alias = NONE,
                           .node = NO_NODE,
                           .tensor = t,
                           .rows = bounce.rows});
    vec_push(f->arena, &p->bounce, bounce);
}

/* Members of a dissolved concat that no engine writes must be brought to the
 * parent's place; the parent itself to the output. */
static void concat_bounces(const Decisions *d, Buffers *p, NodeId id) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, id);
    uint32_t step = f->schedule->step_of[id.i];
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (from_outside(f, node->in[i]))
            bounce_add(d, p, step, node->in[i]);
    }
    if (f->role[node->out[0].i].outside)
        bounce_add(d, p, step, node->out[0]);
}

/* ---- weights ---- */

/* What the largest block of its nodes takes, while the cascade runs; likewise a
 * node by itself. */
static void weight_buf(const Decisions *d, Buffers *p, NodeId id) {
    const Facts *f = d->f;
    const Cascade *g = in_cascade(d, id) ? cascade_of(d, id) : NULL;
    uint32_t step = f->schedule->step_of[id.i];
    uint64_t bytes[PACK_MAX_POOLS] = {d->config->aims.blocks[id.i]};
    for (uint32_t i = 0; g && i < cascade_length(g); i++)
        bytes[0] =
            larger(bytes[0], d->config->aims.blocks[cascade_node(f, g, i).i]);
    if (bytes[0] && (!g || g->first == step))
        buffer_add(f, p, (Times){2 * step, g ? 2 * g->end : 2 * step + 1},
                   bytes, 1,
                   (Owner){.kind = OWNER_WEIGHTS,
                           .alias = NONE,
                           .node = id,
                           .tensor = graph_node(f->g, id)->out[0]});
}

void node_bufs(const Decisions *dec, Buffers *p, NodeId id) {
    const Facts *f = dec->f;
    TensorId out = graph_node(f->g, id)->out[0];
    uint32_t step = f->schedule->step_of[id.i];
    bool grouped = in_cascade(dec, id);
    if (is_placed(f, id) && dec->dissolved[out.i] && !grouped)
        concat_bounces(dec, p, id);
    if (dec->mode[id.i].kind == MODE_ROW_TILES)
        row_tile_bufs(dec, p, id);
    if (dec->mode[id.i].kind == MODE_PRODUCER)
        pair_buf(dec, p, id);
    if (grouped)
        cascade_bufs(dec, p, id);
    if (dec->config->aims.blocks)
        weight_buf(dec, p, id);
    if (dec->mode[id.i].kind != MODE_HARDWARE)
        return;
    tile_bufs(dec, p, id);
    Dests d = dests_of(dec, out, true);
    if (dec->mode[id.i].streams_out && d.home && d.output)
        bounce_add(dec, p, step, out);
}
