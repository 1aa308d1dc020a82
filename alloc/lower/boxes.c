/* boxes.c - the actions of a node that runs by boxes: some columns of some rows
 * of some channels at a time.
 *
 * Input: a node that runs so, and where its buffers lie. Output: for each box
 * the loads of what it is made from, the run, and the stores; or a run for each
 * block of input channels, of which the last makes the result. An operand that
 * is there already, as the run before read the same, is not loaded again.
 */
#include "alloc/lower/emit.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"

typedef struct Box {
    uint32_t row, rows, col, cols, c, n_c;
} Box;

/* Of the loops over channels, rows and columns. */
typedef struct BoxLoop {
    Emit *e;
    NodeId id;
    Volume out;
    bool each;                    /* operands have the box's channels */
    uint32_t tile, n_tiles, made; /* runs so far, in all; boxes so far */
    uint32_t to[2], n_to;
    uint32_t held[MAX_OPERANDS]; /* placements of what was loaded last */
    Box read;                    /* which part of the operands that is */
} BoxLoop;

static bool same_box(const Box *a, const Box *b) {
    return a->row == b->row && a->rows == b->rows && a->col == b->col &&
           a->cols == b->cols && a->c == b->c && a->n_c == b->n_c;
}

static uint32_t place_box(Emit *e, uint32_t buf, TensorId t, const Box *box) {
    uint32_t index = emit_row_tile(e, buf, t, box->row, box->rows);
    Placement *p = &e->placement.at[index];
    p->col = box->col;
    p->cols = box->cols;
    p->c = box->c;
    p->n_c = box->n_c;
    p->whole = (Volume){box->n_c, box->rows, box->cols,
                        hwspec_repl_none(e->f->spec, box->n_c)};
    p->bytes = layout_bytes(e->f->spec->memory[p->memory].layout, &p->whole);
    return index;
}

static void load_operands(BoxLoop *l, const Box *read) {
    Emit *e = l->e;
    const Node *node = graph_node(e->f->g, l->id);
    uint32_t buf = emit_first_buf(e, l->id, l->tile);
    bool doubled = e->d->mode[l->id.i].doubled;
    if (l->tile && !doubled && same_box(read, &l->read))
        return;
    l->read = *read;
    for (uint32_t k = 0; k < node->n_in; k++) {
        uint32_t from = emit_readable(e, node->in[k]);
        l->held[k] = place_box(e, buf + k, node->in[k], read);
        emit_move_all(e, ACTION_LOAD,
                      emit_channels(e, from, read->c, read->c + read->n_c),
                      l->held[k]);
    }
}

/* Adds up the input channels of `read`. */
static void run_part(BoxLoop *l, const Box *read, uint32_t out, Rows rows,
                     Rows cols) {
    load_operands(l, read);
    Action a = emit_run_new(l->e, l->id, l->held, out);
    action_reads(&a, rows);
    action_reads_columns(&a, cols);
    a.tile = l->tile++;
    a.n_tiles = l->n_tiles;
    emit_action(l->e, a);
}

static void run_box(BoxLoop *l, const Box *box) {
    Emit *e = l->e;
    const Node *node = graph_node(e->f->g, l->id);
    Rows rows = axis_needed(e->f->g, l->id, 0, box->row, box->rows);
    Rows cols = columns_needed(e->f->g, l->id, box->col, box->cols);
    uint32_t all = plan_volume(e->f->g, node->in[0]).c;
    uint32_t some = e->d->mode[l->id.i].in_channels;
    uint32_t first = l->each ? box->c : 0, end = first + box->n_c;
    end = l->each ? end : all;
    uint32_t one = some ? some : end - first;
    uint32_t buf = emit_first_buf(e, l->id, l->made++) + node->n_in;
    uint32_t out = place_box(e, buf, node->out[0], box);
    for (uint32_t c = first; c < end; c += one) {
        Box read = {rows.in_row, rows.in_rows,
                    cols.in_row, cols.in_rows,
                    c,           smaller32(one, end - c)};
        run_part(l, &read, out, rows, cols);
    }
    for (uint32_t i = 0; i < l->n_to; i++)
        emit_move_from(e, ACTION_STORE, out,
                       emit_channels(e, l->to[i], box->c, box->c + box->n_c));
}

/* All of some channels, or all channels of one spot. */
static void run_boxes(BoxLoop *l, uint32_t from, uint32_t end) {
    const Mode *mode = &l->e->d->mode[l->id.i];
    Box box;
    for (box.row = 0; box.row < l->out.h; box.row += mode->rows) {
        box.rows = smaller32(mode->rows, l->out.h - box.row);
        for (box.col = 0; box.col < l->out.w; box.col += mode->cols) {
            box.cols = smaller32(mode->cols, l->out.w - box.col);
            for (box.c = from; box.c < end; box.c += mode->channels) {
                box.n_c = smaller32(mode->channels, end - box.c);
                run_box(l, &box);
            }
        }
    }
}

void emit_boxes(Emit *e, NodeId id) {
    const Node *node = graph_node(e->f->g, id);
    const Mode *mode = &e->d->mode[id.i];
    BoxLoop l = {.e = e,
                 .id = id,
                 .out = plan_volume(e->f->g, node->out[0]),
                 .each = goes_by_channel(e->f, node),
                 .n_tiles = boxes_count(e->f, id, mode)};
    uint32_t home, c = 0, one = mode->channels_outer ? mode->channels : l.out.c;
    l.n_to = emit_targets(e, node->out[0], l.to, &home);
    for (; c < l.out.c; c += one)
        run_boxes(&l, c, smaller32(c + one, l.out.c));
    e->copy[node->out[0].i] = home;
}
