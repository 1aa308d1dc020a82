/* layer.c - which layer an instruction is of, and what kind; see work.h.
 *
 * What the reader of instructions, the judge of their tokens and those that
 * compute ask alike.
 */
#include "sim/blobs.h"
#include "sim/work.h"

#include <stdlib.h>
#include <string.h>

/* ---- kinds ---- */

bool op_is_fused(HwOp op) {
    return op == HW_OP_CONV_POOL_MAX || op == HW_OP_CONV_POOL_AVG;
}

bool op_is_conv(HwOp op) {
    return op == HW_OP_CONV || op == HW_OP_CONV_GROUPED ||
           op == HW_OP_CONV_DEPTHWISE || op == HW_OP_FC || op_is_fused(op);
}

bool op_has_pool(HwOp op) {
    return op == HW_OP_POOL_MAX || op == HW_OP_POOL_AVG || op_is_fused(op);
}

bool op_is_average(HwOp op) {
    return op == HW_OP_POOL_AVG || op == HW_OP_CONV_POOL_AVG;
}

uint32_t work_groups(Run *run, const Work *w) {
    const Blob *blob = blob_find(run, w->layer, "weight");
    if (w->groups)
        return w->groups;
    if (!blob || w->op == HW_OP_FC || w->op == HW_OP_DECONV)
        return 1;
    uint32_t of_group = shape_dim(&blob->value.shape, 1);
    return of_group && w->in.c % of_group == 0 ? w->in.c / of_group : 1;
}

/* ---- names ---- */

static const char *without_tile(Run *run, const char *name, uint32_t *tile) {
    enum { MOST_DIGITS = 9 };
    size_t mark = insn_tile_mark(name);
    if (!name[mark])
        return name;
    if (strlen(name + mark) <= 1 + MOST_DIGITS)
        *tile = (uint32_t)strtoul(name + mark + 1, NULL, 10);
    return arena_strndup(run->work, name, mark);
}

void work_names(Run *run, const HwFields *f, Work *w) {
    w->name = f->set[HW_F_NAME] && f->str[HW_F_NAME] ? f->str[HW_F_NAME] : "";
    w->is_named = *w->name;
    if (!w->is_named)
        w->name = hw_op_name[w->op];
    bool own = f->set[HW_F_CONV_NAME] && f->str[HW_F_CONV_NAME];
    w->layer =
        without_tile(run, own ? f->str[HW_F_CONV_NAME] : w->name, &w->first);
}

const char *work_layer(Run *run, const HwInsn *insn, HwOp op) {
    Work w = {.op = op};
    HwFields fields;
    insn_fields(run->spec, insn, &fields);
    work_names(run, &fields, &w);
    return w.layer;
}

/* ---- windows ---- */

uint64_t window_reach(const Window *w) {
    return (uint64_t)(w->kernel - 1) * w->dilation + 1;
}

static void needed(const Window *w, uint32_t at, uint32_t n, uint32_t size,
                   uint32_t *first, uint32_t *count) {
    int64_t from = (int64_t)at * w->stride - w->pad;
    int64_t to = from + (int64_t)(n - 1) * w->stride + (int64_t)window_reach(w);
    from = from < 0 ? 0 : from;
    to = to > size ? size : to;
    bool some = from < to;
    *first = some ? (uint32_t)from : 0;
    *count = some ? (uint32_t)(to - from) : 0;
}

Box window_needs(const Window window[2], Box box, uint32_t h, uint32_t w) {
    Box in;
    needed(&window[ROWS], box.row, box.rows, h, &in.row, &in.rows);
    needed(&window[COLS], box.col, box.cols, w, &in.col, &in.cols);
    return in;
}
