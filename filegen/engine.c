/* engine.c - a layer of an engine as nodes of the file.
 *
 * One node if the row can say it, else several by output channels, each as many
 * as it can. A copy for the processor goes to the backing memory on the way.
 */
#include "filegen/lower.h"

#include <string.h>

/* Channels first... of a layer, and where they go. */
typedef struct Slice {
    const FileConv *conv;
    const Value *in, *out;
    uint32_t first, n;
    uint64_t from, to; /* bytes of active memory */
    bool copies;
    Range copy;
} Slice;

static void say_stage(Lower *l, const HwStage *stage, const RequantStage *from,
                      uint32_t first, uint32_t n) {
    for (int p = 0; p < STAGE_PARAM_COUNT; p++) {
        HwGiven given = stage->param[p].given;
        const StageValues *values = &from->of[p];
        if (!stage->name || given < HW_GIVEN_LAYER)
            continue;
        const char *name =
            arena_printf(l->arena, "%s.%s", stage->name, stage_param_name[p]);
        if (given == HW_GIVEN_LAYER)
            draft_num(l, name, values->value[0]);
        else if (given == HW_GIVEN_SEGMENT)
            draft_nums(l, name, values->n, values->value);
        else
            draft_nums(l, name, n, values->value + first);
    }
}

static void say_numbers(Lower *l, const Slice *s) {
    const FileConv *v = s->conv;
    int32_t e = hwspec_engine(l->spec, HW_OP_CONV);
    const HwArith *arith = l->spec->engine[e].arithmetic;
    uint32_t each = v->kernel * v->kernel * (v->depthwise ? 1 : v->in_c);
    if (arith->zero_points == HW_ZERO_EXPANDED) {
        int64_t taps = (int64_t)v->kernel * v->kernel;
        draft_num(l, "zero.w", -v->zero_in);
        draft_num(l, "zero.x", -v->zero_weight);
        draft_num(l, "zero.xw", taps * v->zero_in * v->zero_weight);
        draft_num(l, "zero.shift_w", 0);
        draft_num(l, "zero.shift_x", 0);
    }
    draft_num(l, "in.zero", v->zero_in);
    draft_num(l, "weights.zero", v->zero_weight);
    draft_num(l, "in.pad", v->zero_in);
    for (uint32_t i = 0; i < arith->n_stages; i++)
        say_stage(l, &arith->stage[i], &v->stage[i], s->first, s->n);
    draft_bytes(l, "weights", s->n * each, v->weight + (size_t)s->first * each);
}

static uint64_t address(const Lower *l, uint64_t byte) {
    const HwMemory *m = &l->spec->memory[l->active];
    return byte / m->unit + m->base;
}

static bool say_node(Lower *l, const Node *node, const Slice *s) {
    const FileConv *v = s->conv;
    FilePiece piece = {node->out[0], s->first, s->n};
    HwOp op = v->depthwise ? HW_OP_CONV_DEPTHWISE : HW_OP_CONV;
    if (!draft_node(l, node, hw_op_name[op], piece))
        return false;
    uint32_t in_c = v->depthwise ? s->n : v->in_c;
    draft_num(l, "batch", 1);
    draft_num(l, "depthwise", v->depthwise);
    draft_num(l, "in.addr", (int64_t)address(l, s->from));
    draft_num(l, "in.c", in_c);
    draft_num(l, "in.h", s->in->h);
    draft_num(l, "in.w", s->in->w);
    draft_num(l, "out.addr", (int64_t)address(l, s->to));
    draft_num(l, "out.c", s->n);
    draft_num(l, "out.h", s->out->h);
    draft_num(l, "out.w", s->out->w);
    draft_num(l, "kernel.w", v->kernel);
    draft_num(l, "kernel.h", v->kernel);
    draft_word(l, "pool", v->pool);
    draft_num(l, "pool.kernel.w", v->pool_kernel);
    draft_num(l, "pool.stride.w", v->pool_stride);
    draft_num(l, "pool.phase", 0);
    draft_word(l, "pool.edge", v->pool_edge);
    draft_num(l, "out2.on", s->copies);
    if (s->copies)
        draft_range(l, "out2", s->copy);
    say_numbers(l, s);
    return !l->failed;
}

/* ---- what a row can say ---- */

/* A file of this node alone, written. */
static bool row_says(Lower *l, const Node *node, Slice s, const char **why) {
    Arena *scratch = arena_new("trial");
    Diag *said = diag_new(scratch);
    Lower one = *l;
    const uint8_t *data;
    size_t len;
    one.arena = scratch;
    one.diag = said;
    one.draft.at = NULL;
    one.draft.n = one.draft.cap = 0;
    s.from = s.to = 0;
    s.copies = false;
    bool ok = say_node(&one, node, &s);
    if (ok) {
        const Program *program = lower_program(&one, false);
        ok = program_encode(scratch, said, program, &data, &len);
    }
    if (!ok && diag_count(said))
        *why = arena_printf(l->arena, "%s", diag_at(said, 0)->text);
    arena_free(scratch);
    return ok;
}

static Slice slice_of(Lower *l, NodeId id, uint32_t first, uint32_t n) {
    const Node *node = graph_node(l->g, id);
    uint32_t whole = l->beside[id.i];
    return (Slice){
        .conv = l->layer[id.i].conv,
        .in = &l->value.at[whole == NONE ? l->value_of[node->in[0].i] : whole],
        .out = &l->value.at[l->value_of[node->out[0].i]],
        .first = first,
        .n = n};
}

uint32_t engine_channels(Lower *l, NodeId id, const char **why) {
    const FileConv *v = l->layer[id.i].conv;
    const Node *node = graph_node(l->g, id);
    Slice s = slice_of(l, id, 0, v->out_c);
    Volume out = {s.out->c, s.out->h, s.out->w, {0}};
    uint32_t step =
        layout_split(l->spec->memory[l->active].layout, &out, LAYOUT_C);
    if (row_says(l, node, s, why))
        return v->out_c;
    for (uint32_t parts = 2; !v->depthwise && v->out_c > parts * step;
         parts *= 2) {
        const char *ignored;
        s.n = (v->out_c + parts - 1) / parts;
        s.n = (s.n + step - 1) / step * step;
        if (row_says(l, node, s, &ignored))
            return s.n;
    }
    return 0;
}

/* ---- a layer ---- */

void lower_engine(Lower *l, NodeId id) {
    const Node *node = graph_node(l->g, id);
    const FileConv *v = l->layer[id.i].conv;
    uint32_t out = l->value_of[node->out[0].i], whole = l->beside[id.i];
    uint32_t each = l->layer[id.i].channels;
    uint64_t from = 0;
    for (uint32_t k = 0; k < node->n_in; k++) {
        uint64_t at = value_read(l, node, l->value_of[node->in[k].i]);
        from = k == 0 || at < from ? at : from;
    }
    if (whole != NONE)
        from = l->value.at[whole].active.start;
    bool copies = l->value.at[out].wants_main;
    Range copy = {0};
    if (copies)
        copy = value_main(l, out);
    uint64_t to = value_make(l, out);
    Volume volume = {
        l->value.at[out].c, l->value.at[out].h, l->value.at[out].w, {0}};
    uint64_t plane = (uint64_t)volume.h * volume.w;
    for (uint32_t first = 0; first < v->out_c && !l->failed; first += each) {
        uint32_t n = v->out_c - first < each ? v->out_c - first : each;
        Slice s = slice_of(l, id, first, n);
        s.from = from;
        s.to = to + layout_part_offset(l->spec->memory[l->active].layout,
                                       &volume, first);
        s.copies = copies;
        s.copy = copy;
        s.copy.start += first * plane;
        s.copy.size = n * plane;
        say_node(l, node, &s);
    }
}
