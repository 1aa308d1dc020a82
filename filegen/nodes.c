/* nodes.c - nodes of a file as they come to be, and rooms of volumes. */
#include "filegen/lower.h"

#include <string.h>

/* ---- what a node says ---- */

static Draft *last(Lower *l) {
    return &l->draft.at[l->draft.n - 1];
}

bool draft_node(Lower *l, const Node *node, const char *op, FilePiece piece) {
    Draft draft = {program_row_for(l->spec, op), piece, node->loc, {0}};
    if (!draft.row) {
        diag_error(l->diag, node->loc,
                   "layer \"%s\" (%s): files of %s have no node for `%s`",
                   node->name, op_info[node->op].name, l->spec->machine, op);
        l->failed = true;
        return false;
    }
    vec_push(l->arena, &l->draft, draft);
    return true;
}

/* What the row has no name for is as is usual: the layer was found legal. */
static void say(Lower *l, Said said) {
    Draft *draft = last(l);
    if (program_row_has(l->spec, draft->row, said.name))
        vec_push(l->arena, &draft->said, said);
}

void draft_num(Lower *l, const char *name, int64_t num) {
    say(l, (Said){.name = name, .num = num});
}

void draft_word(Lower *l, const char *name, const char *word) {
    int64_t num;
    if (program_word_value(l->spec, name, word, &num)) {
        draft_num(l, name, num);
        return;
    }
    diag_error(l->diag, last(l)->loc, "files of %s know no `%s` of %s",
               l->spec->machine, word, name);
    l->failed = true;
}

static int64_t bits_of(float real) {
    uint32_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

void draft_real(Lower *l, const char *name, float real) {
    draft_num(l, name, bits_of(real));
}

void draft_nums(Lower *l, const char *name, uint32_t n, const int64_t *num) {
    say(l, (Said){.name = name, .n = n, .nums = num});
}

void draft_bytes(Lower *l, const char *name, uint32_t n, const uint8_t *byte) {
    say(l, (Said){.name = name, .n = n, .bytes = byte});
}

void draft_reals(Lower *l, const char *name, uint32_t n, const float *real) {
    int64_t *num = ARENA_ARRAY(l->arena, int64_t, n);
    for (uint32_t i = 0; i < n; i++)
        num[i] = bits_of(real[i]);
    draft_nums(l, name, n, num);
}

static const char *part(Lower *l, const char *name, const char *of) {
    return arena_printf(l->arena, "%s.%s", name, of);
}

void draft_range(Lower *l, const char *name, Range range) {
    draft_num(l, part(l, name, "memory"), l->spec->memory[range.memory].id);
    draft_num(l, part(l, name, "type"), !range.reals);
    draft_num(l, part(l, name, "start"), (int64_t)range.start);
    draft_num(l, part(l, name, "size"), (int64_t)range.size);
}

void draft_dims(Lower *l, const char *name, const uint32_t dims[4]) {
    static const char *const axis[] = {"n", "c", "h", "w"};
    for (int i = 0; i < 4; i++)
        draft_num(l, part(l, name, axis[i]), dims[i]);
}

bool dims_of_tensor(const Tensor *t, uint32_t dims[4]) {
    uint32_t rank = t->shape.rank;
    if (rank > 4)
        return false;
    for (uint32_t i = 0; i < 4; i++)
        dims[i] = i < 4 - rank ? 1 : t->shape.dim[i - (4 - rank)];
    return true;
}

/* ---- rooms ---- */

uint64_t value_count(const Value *v) {
    return (uint64_t)v->n * v->c * v->h * v->w;
}

Range room_for(Lower *l, uint32_t memory, uint64_t bytes, bool reals) {
    const HwMemory *m = &l->spec->memory[memory];
    uint64_t align = m->align > m->unit ? m->align : m->unit;
    uint64_t start = l->next[memory];
    l->next[memory] = start + (bytes + align - 1) / align * align;
    return (Range){memory, start, bytes, reals};
}

Range value_main(Lower *l, uint32_t value) {
    Value *v = &l->value.at[value];
    uint64_t bytes = value_count(v) * v->unit;
    if (!v->main.there)
        v->main = (Home){true, false, room_for(l, l->main, bytes, false).start};
    uint32_t memory = v->main.constant ? l->constants : l->main;
    return (Range){memory, v->main.start, bytes, v->unit > 1};
}

static Volume volume_of(const Value *v) {
    return (Volume){v->c, v->h, v->w, {0}};
}

uint64_t value_bytes(const Lower *l, const Value *v) {
    Volume volume = volume_of(v);
    return layout_bytes(l->spec->memory[l->active].layout, &volume);
}

static uint64_t fresh(Lower *l, const Value *v) {
    return room_for(l, l->active, value_bytes(l, v), false).start;
}

/* What it is part of, and what that is part of, get their room with the first
 * of the parts. */
static uint64_t home_of(Lower *l, uint32_t value) {
    Value *v = &l->value.at[value];
    if (v->active.there)
        return v->active.start;
    uint64_t at;
    if (v->whole != NONE) {
        Volume volume = volume_of(&l->value.at[v->whole]);
        at = home_of(l, v->whole) +
             layout_part_offset(l->spec->memory[l->active].layout, &volume,
                                v->first);
    } else {
        at = fresh(l, v);
    }
    v->active = (Home){true, false, at};
    v->born = l->draft.n;
    return at;
}

uint64_t value_make(Lower *l, uint32_t value) {
    Value *v = &l->value.at[value];
    if (v->spilled)
        return fresh(l, v);
    uint64_t at = home_of(l, value);
    v = &l->value.at[value];
    v->active = (Home){true, false, at};
    v->born = v->dies = l->draft.n;
    return at;
}

/* Members of a whole are loaded to where they lie in it. */
uint64_t value_read(Lower *l, const Node *node, uint32_t value) {
    Value *v = &l->value.at[value];
    v->dies = l->draft.n;
    if (v->active.there && !v->spilled)
        return v->active.start;
    uint64_t at =
        v->whole == NONE && v->spilled ? fresh(l, v) : home_of(l, value);
    Range from = value_main(l, value);
    v = &l->value.at[value];
    uint32_t dims[] = {v->n, v->c, v->h, v->w};
    Range to = {l->active, at, value_bytes(l, v), false};
    if (!draft_node(l, node, hw_op_name[HW_OP_LOAD],
                    (FilePiece){NO_TENSOR, 0, 0}))
        return 0;
    draft_range(l, "in", from);
    draft_range(l, "out", to);
    draft_dims(l, "in", dims);
    if (!v->spilled) {
        v->active = (Home){true, false, at};
        v->born = l->draft.n - 1;
    }
    v->dies = l->draft.n;
    return at;
}

Range constant_range(Lower *l, const uint8_t *byte, uint32_t n) {
    uint32_t align = l->spec->memory[l->constants].align;
    while (align && l->constant.n % align)
        vec_push(l->arena, &l->constant, 0);
    Range range = {l->constants, l->constant.n, n, false};
    for (uint32_t i = 0; i < n; i++)
        vec_push(l->arena, &l->constant, byte[i]);
    return range;
}
