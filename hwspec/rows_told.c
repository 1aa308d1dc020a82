/* rows_told.c - whether rows tell what listings cannot do without.
 *
 * Input: a machine whose rows were read without errors. Output: an error for
 * each row that lacks the token of a name, of where an operand lies that may
 * lie in several memories, of copies, or of tiles. Numbers of windows are for
 * the legality of nodes (passes/legal_told.c): a row that lacks them can still
 * tell some.
 */
#include "hwspec/rows.h"

#include "base/text.h"

typedef struct Told {
    Diag *diag;
    const HwSpec *spec;
    const HwRow *row;
    HwOp op;
} Told;

static bool has(const Told *t, HwField field) {
    return insn_token_of(&t->row->form[0], field) >= 0;
}

/* All of these, of `operand` where fields are those of the first: one error for
 * all that are missing. */
static void need_all(const Told *t, size_t n, const HwField *field, int operand,
                     const char *why) {
    Arena *arena = arena_new("told");
    Text lacks = text_new(arena);
    for (size_t i = 0; i < n; i++) {
        HwField f = (HwField)((int)field[i] + operand);
        if (!has(t, f))
            text_addf(&lacks, "%s`%s`", *text_str(&lacks) ? ", " : "",
                      hw_field_name[f]);
    }
    if (*text_str(&lacks))
        diag_error(t->diag, t->row->loc, "%s does not tell %s, %s",
                   t->row->mnemonic, text_str(&lacks), why);
    arena_free(arena);
}

static void need(const Told *t, HwField field, const char *why) {
    need_all(t, 1, &field, 0, why);
}

/* ---- places ---- */

/* Bits of memories. */
static uint32_t outside(const HwSpec *spec) {
    uint32_t bits = 0;
    for (uint32_t m = spec->n_active; m < spec->n_memories; m++)
        bits |= UINT32_C(1) << m;
    return bits;
}

static uint32_t bit_of(int32_t memory) {
    return memory < 0 ? 0 : UINT32_C(1) << memory;
}

/* Where the operand may lie; the far side of a transfer lies outside. */
static uint32_t memories_of(const Told *t, HwOperand operand) {
    const HwSpec *spec = t->spec;
    uint32_t far =
        operand == HW_OUT ? bit_of(spec->output) : bit_of(spec->input);
    if ((t->op == HW_OP_LOAD && operand == HW_IN) ||
        (t->op == HW_OP_STORE && operand == HW_OUT))
        return far | spec->backings;
    if (t->op == HW_OP_LOAD || t->op == HW_OP_STORE)
        return 0;
    uint32_t lies = 0;
    for (uint32_t e = 0; e < spec->n_engines; e++)
        if (spec->engine[e].ops >> t->op & 1)
            lies |= spec->engine[e].lies[operand];
    return lies &
           ~(operand == HW_OUT ? bit_of(spec->input) : bit_of(spec->output));
}

/* The memory's number, or the field. */
static void need_place(const Told *t, HwOperand operand, HwField field,
                       const char *why) {
    if (!has(t, field))
        diag_error(t->diag, t->row->loc, "%s tells neither `%s` nor `%s`: %s",
                   t->row->mnemonic,
                   hw_field_name[HW_FIELD_OF(operand, MEMORY)],
                   hw_field_name[field], why);
}

static void check_place(const Told *t, HwOperand operand) {
    const HwSpec *spec = t->spec;
    uint32_t lies = memories_of(t, operand), far = lies & outside(spec);
    uint32_t io = far & (bit_of(spec->input) | bit_of(spec->output));
    bool moves = t->op == HW_OP_LOAD || t->op == HW_OP_STORE;
    if (!far || has(t, HW_FIELD_OF(operand, MEMORY)))
        return;
    if (far & spec->backings & ~bit_of(spec->backing))
        need(t, HW_FIELD_OF(operand, MEMORY),
             "though it may lie in one of several memories");
    if (io && (far != io || !moves) && spec->backing >= 0)
        need_place(t, operand, HW_FIELD_OF(operand, IO),
                   "it may lie where inputs and outputs do");
    if ((far & bit_of(spec->backing)) && !moves)
        need_place(t, operand, HW_FIELD_OF(operand, BACKING),
                   "it may lie outside of active memory");
}

/* ---- copies ---- */

/* Of the operand, and, where it may be part of a volume, of that. */
static void check_copies(const Told *t, HwOperand operand) {
    static const HwField field[2][4] = {
        {HW_F_IN_FULL, HW_F_IN_REPL, HW_F_IN_UNITS, HW_F_IN_WIDTH},
        {HW_F_IN_PART_FULL, HW_F_IN_PART_REPL, HW_F_IN_PART_UNITS,
         HW_F_IN_PART_WIDTH}};
    const HwSpec *spec = t->spec;
    bool moves = t->op == HW_OP_LOAD || t->op == HW_OP_STORE;
    bool near = !moves || (t->op == HW_OP_LOAD) == (operand == HW_OUT);
    uint32_t lies =
        moves ? (UINT32_C(1) << spec->n_active) - 1 : memories_of(t, operand);
    if (!near || !(spec->replication.memories & lies))
        return;
    int n = has(t, HW_FIELD_OF(operand, PART)) ? 2 : 1;
    for (int i = 0; i < n; i++)
        need_all(t, 4, field[i], (int)operand,
                 "though there may be copies of channels");
}

/* ---- tiles of the machine's own ---- */

static void check_tiles(const Told *t) {
    static const HwField field[] = {HW_F_TILE_ON, HW_F_TILE_W, HW_F_TILE_H};
    static const HwField nest[] = {HW_F_TILE_BUFFER0,  HW_F_TILE_BUFFER1,
                                   HW_F_TILE_C,        HW_F_TILE_IN_C,
                                   HW_F_TILE_STAYS,    HW_F_TILE_WEIGHTS0,
                                   HW_F_TILE_WEIGHTS1, HW_F_TILE_SUMS};
    bool any = false, sums = false;
    for (uint32_t i = 0; i < t->spec->tiling.tiles.n; i++) {
        const HwTileStyle *style = &t->spec->tiling.tiles.style[i];
        if (style->ops >> t->op & 1) {
            any = true;
            sums |= style->sums != 0;
        }
    }
    if (any)
        need_all(t, sizeof field / sizeof *field, field, 0,
                 "though it may run by tiles");
    if (sums)
        need_all(t, sizeof nest / sizeof *nest, nest, 0,
                 "though it may run by tiles of channels");
}

/* ---- sizes of what moves, and of concats ---- */

/* The whole volume, as the source is told, or the destination; a concat may
 * leave it to its members. */
static void check_sizes(const Told *t) {
    static const HwField field[] = {HW_F_IN_C, HW_F_IN_H, HW_F_IN_W};
    enum { N = sizeof field / sizeof *field };
    bool concat = t->op == HW_OP_CONCAT, by_in = has(t, HW_F_IN_C) && !concat;
    int operand = by_in ? HW_IN : HW_OUT, told = 0;
    for (int i = 0; i < N; i++)
        told += has(t, (HwField)((int)field[i] + operand));
    if (told || !concat)
        need_all(t, N, field, operand, "the size of a volume");
    if (concat && !has(t, HW_F_OUT_OFFSET))
        need(t, HW_F_OUT_ADDR, "where the volume starts");
}

/* A part is told by all that says so. */
static void check_part(const Told *t, HwOperand operand) {
    HwField on = HW_FIELD_OF(operand, PART);
    HwField start = HW_FIELD_OF(operand, PART_START);
    if (has(t, on) || has(t, start) || has(t, HW_FIELD_OF(operand, PART_C))) {
        need(t, on, "though it tells of parts");
        need(t, start, "though it tells of parts");
    }
}

/* ---- all ---- */

static bool engine_runs(const HwSpec *spec, HwOp op) {
    for (uint32_t e = 0; e < spec->n_engines; e++)
        if (spec->engine[e].ops >> op & 1)
            return true;
    return false;
}

void rows_check_told(Diag *diag, const HwSpec *spec) {
    for (uint32_t i = 0; i < HW_OP_COUNT; i++) {
        HwOp op = (HwOp)i;
        int32_t row = insn_row(spec, op);
        bool moves = op == HW_OP_LOAD || op == HW_OP_STORE;
        bool concat = op == HW_OP_CONCAT, host = op == HW_OP_HOST;
        if (row < 0 || op == HW_OP_LAYER ||
            !(moves || concat || host || engine_runs(spec, op)))
            continue;
        Told told = {diag, spec, &spec->insns->row[row], op};
        bool two = insn_is_binary(op);
        if (moves || concat)
            check_sizes(&told);
        if (host)
            need(&told, HW_F_NAME, "by which the layer is known");
        if (host || concat)
            continue;
        check_part(&told, HW_OUT);
        check_place(&told, HW_IN);
        if (two)
            check_place(&told, HW_IN2);
        check_place(&told, HW_OUT);
        check_copies(&told, HW_IN);
        check_copies(&told, HW_OUT);
        check_tiles(&told);
    }
}
