/* channel_tiles.c - the actions of nodes that run by channel tiles: some
 * channels of all rows at a time.
 *
 * Input: a node that runs so, or a fused pair, and where its buffers lie.
 * Output: for each channel tile the loads of what passes through active memory,
 * the run, and the stores.
 */
#include "alloc/lower/emit.h"
#include "alloc/tile/tile.h"

/* Channels [c, c + n) of the tensor, in a buffer of their own. */
static uint32_t place_channel_tile(Emit *e, uint32_t buf, TensorId t,
                                   uint32_t c, uint32_t n) {
    Volume v = plan_volume(e->f->g, t);
    uint32_t row_tile = emit_row_tile(e, buf, t, 0, v.h);
    Placement *p = &e->placement.at[row_tile];
    v.c = n;
    v.repl = hwspec_repl_none(e->f->spec, n);
    p->whole = v;
    p->c = c;
    p->n_c = n;
    p->bytes = layout_bytes(e->f->spec->memory[p->memory].layout, &v);
    return row_tile;
}

/* What a node reads of an operand for channels [c, end): these, or all. */
static uint32_t channel_tile_operand(Emit *e, NodeId id, uint32_t k,
                                     uint32_t *buf, uint32_t c, uint32_t end) {
    const Node *node = graph_node(e->f->g, id);
    TensorId t = node->in[k];
    if (is_dense(node))
        return e->present[t.i];
    if (!mode_streams(&e->d->mode[id.i], k))
        return emit_channels(e, e->present[t.i], c, end);
    uint32_t from = emit_readable(e, t);
    uint32_t channel_tile = place_channel_tile(e, (*buf)++, t, c, end - c);
    emit_move_all(e, ACTION_LOAD, emit_channels(e, from, c, end), channel_tile);
    return channel_tile;
}

/* A channel tile of a node. */
typedef struct ChannelTile {
    uint32_t tile, n_tiles;
    uint32_t to[2], n_to; /* where it is stored, if it passes */
} ChannelTile;

static void run_channel_tile(Emit *e, NodeId id, const ChannelTile *s) {
    const Node *node = graph_node(e->f->g, id);
    const Mode *mode = &e->d->mode[id.i];
    TensorId t = node->out[0];
    uint32_t end = plan_volume(e->f->g, t).c, in[MAX_OPERANDS];
    uint32_t c = s->tile * mode->channels, buf = emit_first_buf(e, id, s->tile);
    end = mode->channels < end - c ? c + mode->channels : end;
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = channel_tile_operand(e, id, k, &buf, c, end);
    uint32_t out = mode->streams_out
                       ? place_channel_tile(e, buf, t, c, end - c)
                       : emit_channels(e, e->present[t.i], c, end);
    Action a = emit_run_new(e, id, in, out);
    a.tile = s->tile;
    a.n_tiles = s->n_tiles;
    emit_action(e, a);
    for (uint32_t i = 0; i < s->n_to; i++)
        emit_move_all(e, ACTION_STORE, out, emit_channels(e, s->to[i], c, end));
}

/* Operands that stay may give their place to the result. */
void emit_channel_tiles(Emit *e, NodeId id) {
    ChannelTile s = {.n_tiles = parts_of_row_tiles(e->d, id)};
    const Node *node = graph_node(e->f->g, id);
    TensorId over = e->d->over[node->out[0].i];
    uint32_t home = NONE;
    uint32_t there = over.i == NONE ? NONE : e->present[over.i];
    if (e->d->mode[id.i].streams_out)
        s.n_to = emit_targets(e, node->out[0], s.to, &home);
    else
        emit_result(e, id);
    if (over.i != NONE)
        e->present[over.i] = there;
    for (; s.tile < s.n_tiles; s.tile++)
        run_channel_tile(e, id, &s);
    if (e->d->mode[id.i].streams_out)
        e->copy[node->out[0].i] = home;
    else if (over.i != NONE)
        e->present[over.i] = NONE;
}

/* ---- fused pairs ---- */

static uint32_t give_channel_tile(Emit *e, NodeId id, uint32_t tile,
                                  uint32_t n_tiles, uint32_t c, uint32_t n) {
    const Node *node = graph_node(e->f->g, id);
    uint32_t in[MAX_OPERANDS];
    for (uint32_t i = 0; i < node->n_in; i++) {
        in[i] = e->present[node->in[i].i];
        if (!is_dense(node))
            in[i] = emit_channels(e, in[i], c, c + n);
    }
    e->step--;
    uint32_t channel_tile =
        place_channel_tile(e, e->buffers->first_buf[id.i], node->out[0], c, n);
    e->placement.at[channel_tile].end++;
    Action a = emit_run_new(e, id, in, channel_tile);
    a.tile = tile;
    a.n_tiles = n_tiles;
    emit_action(e, a);
    e->step++;
    return channel_tile;
}

static void take_channel_tile(Emit *e, NodeId id, const uint32_t *in,
                              uint32_t out, uint32_t tile) {
    const Node *node = graph_node(e->f->g, id);
    const Mode *mode = &e->d->mode[id.i];
    NodeId producer = pair_partner(e->d, id);
    uint32_t n_tiles = parts_of_row_tiles(e->d, id), part[MAX_OPERANDS];
    uint32_t c = tile * mode->channels;
    uint32_t end = plan_volume(e->f->g, node->out[0]).c;
    end = mode->channels < end - c ? c + mode->channels : end;
    uint32_t channel_tile =
        give_channel_tile(e, producer, tile, n_tiles, c, end - c);
    for (uint32_t i = 0; i < node->n_in; i++)
        part[i] = pair_passes(e->d, node->in[i])
                      ? channel_tile
                      : emit_channels(e, in[i], c, end);
    Action a = emit_run_new(e, id, part, emit_channels(e, out, c, end));
    a.tile = tile;
    a.n_tiles = n_tiles;
    emit_action(e, a);
}

void emit_pair(Emit *e, NodeId id) {
    const Node *node = graph_node(e->f->g, id);
    uint32_t in[MAX_OPERANDS], n_tiles = parts_of_row_tiles(e->d, id);
    for (uint32_t i = 0; i < node->n_in; i++)
        in[i] = e->present[node->in[i].i];
    uint32_t out = emit_result(e, id);
    for (uint32_t k = 0; k < n_tiles; k++)
        take_channel_tile(e, id, in, out, k);
}
