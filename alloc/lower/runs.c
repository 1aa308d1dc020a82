/* runs.c - the runs of a node, by its mode; see emit.h.
 *
 * Input: a node whose operands are where its mode wants them. Output: what it
 * loads by row tiles, its runs, and stores of what it makes by row tiles.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/lower/emit.h"

Action emit_run_new(Emit *e, NodeId id, const uint32_t *in, uint32_t out) {
    const Node *node = graph_node(e->f->g, id);
    Action a = emit_new(e, ACTION_RUN, node->n_in, in, out);
    a.node = id;
    a.legal = e->f->legal[id.i];
    action_reads(&a, axis_whole(e->f->g, id, 0));
    action_reads_columns(&a, axis_whole(e->f->g, id, 1));
    return a;
}

uint32_t cascade_first_buf(const Emit *e, const Cascade *g) {
    return e->buffers->first_buf[cascade_node(e->f, g, 0).i];
}

uint32_t emit_first_buf(const Emit *e, NodeId id, uint32_t tile) {
    bool second = e->d->mode[id.i].doubled && tile % 2;
    return e->buffers->first_buf[id.i] +
           (second ? e->buffers->second_set[id.i] : 0);
}

static void run_whole(Emit *e, NodeId id) {
    const Node *node = graph_node(e->f->g, id);
    uint32_t in[MAX_OPERANDS];
    for (uint32_t i = 0; i < node->n_in; i++)
        in[i] = e->present[node->in[i].i];
    emit_action(e, emit_run_new(e, id, in, emit_result(e, id)));
}

static void run_row_tile(Emit *e, NodeId id, uint32_t tile, uint32_t n_tiles,
                         const uint32_t *to, uint32_t n_to) {
    const Node *node = graph_node(e->f->g, id);
    const Mode *mode = &e->d->mode[id.i];
    uint32_t h = plan_volume(e->f->g, node->out[0]).h;
    uint32_t row = tile * mode->rows;
    uint32_t rows = mode->rows < h - row ? mode->rows : h - row;
    Rows need = rows_needed(e->f->g, id, row, rows);
    uint32_t in[MAX_OPERANDS], buf = emit_first_buf(e, id, tile);
    for (uint32_t i = 0; i < node->n_in; i++) {
        in[i] =
            emit_row_tile(e, buf + i, node->in[i], need.in_row, need.in_rows);
        emit_rows_into(e, in[i]);
    }
    Action a = emit_run_new(
        e, id, in, emit_row_tile(e, buf + node->n_in, node->out[0], row, rows));
    action_reads(&a, need);
    a.tile = tile;
    a.n_tiles = n_tiles;
    emit_action(e, a);
    for (uint32_t i = 0; i < n_to; i++)
        emit_move(e, ACTION_STORE, a.out, to[i], row, rows);
}

static void run_row_tiles(Emit *e, NodeId id) {
    TensorId out = graph_node(e->f->g, id)->out[0];
    uint32_t n_tiles = parts_of_row_tiles(e->d, id);
    uint32_t to[2], home;
    if (e->d->mode[id.i].cols) {
        emit_boxes(e, id);
        return;
    }
    if (e->d->mode[id.i].channels) {
        emit_channel_tiles(e, id);
        return;
    }
    uint32_t n_to = emit_targets(e, out, to, &home);
    for (uint32_t k = 0; k < n_tiles; k++)
        run_row_tile(e, id, k, n_tiles, to, n_to);
    e->copy[out.i] = home;
}

/* Its partner runs it. */
static void run_producer(Emit *e, NodeId id) {
    (void)e;
    (void)id;
}

static void run_hardware(Emit *e, NodeId id) {
    const Node *node = graph_node(e->f->g, id);
    const Mode *mode = &e->d->mode[id.i];
    TensorId out = node->out[0];
    uint32_t in[MAX_OPERANDS], to;
    for (uint32_t i = 0; i < node->n_in; i++)
        in[i] = mode->streams_in ? emit_readable(e, node->in[i])
                                 : e->present[node->in[i].i];
    if (!mode->streams_out)
        to = emit_result(e, id);
    else if (dests_of(e->d, out, true).home)
        to = e->copy[out.i] = emit_home(e, out);
    else
        to = emit_output(e, out);
    Action a = emit_run_new(e, id, in, to);
    a.style = mode->style;
    a.tile_w = mode->tile_w;
    a.tile_h = mode->tile_h;
    a.nest = mode->nest;
    a.tile_repl = mode->repl;
    emit_action(e, a);
}

/* The first of its steps runs the whole cascade. */
static void run_cascade(Emit *e, NodeId id) {
    const Cascade *g = cascade_of(e->d, id);
    if (e->step == g->first)
        emit_cascade(e, g);
}

static void run_host(Emit *e, NodeId id) {
    const Node *node = graph_node(e->f->g, id);
    TensorId out = node->out[0];
    const Role *role = &e->f->role[out.i];
    uint32_t *in = ARENA_ARRAY(e->arena, uint32_t, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++) {
        Origin origin = e->f->role[node->in[i].i].origin;
        bool engines = origin == FROM_ENGINE || origin == FROM_PARTS;
        in[i] = engines ? e->output[node->in[i].i] : e->copy[node->in[i].i];
    }
    bool result = graph_is_output(e->f->g, out) && !role->engine_reads &&
                  role->parent.i == NONE;
    int32_t memory = result ? e->f->spec->output : e->f->spec->input;
    bool timed = !graph_is_output(e->f->g, out);
    e->copy[out.i] = emit_outside(
        e, out, region_add(&e->regions, out, (uint32_t)memory, timed), 0);
    Action a = emit_new(e, ACTION_HOST, node->n_in, in, e->copy[out.i]);
    a.node = id;
    a.legal = e->f->legal[id.i];
    a.in_rows = node->n_in ? plan_volume(e->f->g, node->in[0]).h : 0;
    emit_action(e, a);
}

void emit_run(Emit *e, NodeId id) {
    static void (*const by_mode[])(Emit *, NodeId) = {
        [MODE_WHOLE] = run_whole,       [MODE_ROW_TILES] = run_row_tiles,
        [MODE_HARDWARE] = run_hardware, [MODE_AHEAD] = run_hardware,
        [MODE_CASCADE] = run_cascade,   [MODE_PRODUCER] = run_producer,
        [MODE_CONSUMER] = emit_pair,
    };
    if (on_engine(e->f, id) || in_cascade(e->d, id))
        by_mode[e->d->mode[id.i].kind](e, id);
    else if (!is_placed(e->f, id))
        run_host(e, id);
}
