/* rows_check.c - rows against the machine, and against each other.
 *
 * Input: a machine whose rows were read without errors. Output: an error for
 * each operation or activation that nothing can express, each operand that
 * cannot be located, each pair of encodings that a decoder could not tell
 * apart.
 */
#include "hwspec/rows.h"

#include <inttypes.h>

static const HwRow *row_for(const HwInsnSet *set, HwOp op) {
    for (uint32_t i = 0; i < set->n; i++)
        for (uint32_t s = 0; s < set->row[i].n_serves; s++)
            if (set->row[i].serve[s].op == op)
                return &set->row[i];
    return NULL;
}

static bool has(const HwRow *row, HwField field) {
    return insn_token_of(&row->form[0], field) >= 0;
}

/* ---- every operation has a row ---- */

static void check_engines(Diag *diag, const HwSpec *spec,
                          const HwInsnSet *set) {
    for (uint32_t e = 0; e < spec->n_engines; e++)
        for (uint32_t op = 0; op < HW_OP_COUNT; op++)
            if (spec->engine[e].ops >> op & 1 && !row_for(set, (HwOp)op))
                diag_error(diag, spec->engine[e].loc,
                           "engine `%s` runs `%s`, which no instruction is for",
                           spec->engine[e].name, hw_op_name[op]);
}

static void check_moves(Diag *diag, const HwSpec *spec, const HwInsnSet *set) {
    static const HwOp move[] = {HW_OP_LOAD, HW_OP_STORE};
    if (spec->backing < 0)
        return;
    for (size_t i = 0; i < sizeof move / sizeof *move; i++)
        if (!row_for(set, move[i]))
            diag_error(diag, spec->memory[spec->backing].loc,
                       "there is a backing memory, but no instruction is for "
                       "`%s`",
                       hw_op_name[move[i]]);
}

/* ---- every activation can be told ---- */

/* Flags that tell an activation as well as `act` does. The slopes, one or one
 * a channel, are data. */
static HwField act_flag(HwAct act) {
    if (act == HW_ACT_RELU)
        return HW_F_RELU;
    return act == HW_ACT_LEAKY || act == HW_ACT_PRELU ? HW_F_PRELU : HW_F_ACT;
}

static bool says(const HwRow *row, HwField field) {
    for (uint32_t i = 0; i < row->form[0].n_implied; i++)
        if (row->form[0].implied[i].field == field)
            return true;
    return has(row, field);
}

static void check_act(Diag *diag, const HwEngine *engine, HwOp op, HwAct act,
                      const HwRow *row) {
    HwField flag = act_flag(act);
    if (says(row, HW_F_ACT) || says(row, flag))
        return;
    diag_error(diag, engine->acts_loc,
               "engine `%s` applies `%s` to `%s`, but no token of %s tells it: "
               "one must mean `act`%s%s%s",
               engine->name, hw_act_name[act], hw_op_name[op], row->mnemonic,
               flag == HW_F_ACT ? "" : " or `",
               flag == HW_F_ACT ? "" : hw_field_name[flag],
               flag == HW_F_ACT ? "" : "`");
}

static void check_acts(Diag *diag, const HwSpec *spec, const HwInsnSet *set) {
    for (uint32_t e = 0; e < spec->n_engines; e++)
        for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
            const HwEngine *engine = &spec->engine[e];
            const HwRow *row = row_for(set, (HwOp)op);
            bool takes = hw_op_traits[op] & HW_ACTS;
            uint32_t acts = takes ? engine->acts[op] : 0;
            for (uint32_t act = 0; row && act < HW_ACT_COUNT; act++)
                if (acts >> act & 1)
                    check_act(diag, engine, (HwOp)op, (HwAct)act, row);
        }
}

/* ---- every operand can be located ---- */

typedef struct Units {
    uint64_t first, end;
} Units;

static Units addresses(const HwMemory *memory) {
    return (Units){memory->base, memory->base + memory->size / memory->unit};
}

static void check_apart(Diag *diag, const HwSpec *spec, const HwRow *row,
                        HwOp op, HwOperand operand, const char *name) {
    uint32_t lies = hwspec_lies(spec, op, operand);
    if (has(row, HW_FIELD_OF(operand, MEMORY)))
        return;
    for (uint32_t a = 0; a < spec->n_active; a++)
        for (uint32_t b = 0; b < a; b++) {
            if (!(lies >> a & lies >> b & 1))
                continue;
            Units x = addresses(&spec->memory[a]);
            Units y = addresses(&spec->memory[b]);
            if (x.first < y.end && y.first < x.end) {
                diag_error(diag, row->loc,
                           "the `%s` operand of %s may lie in `%s` or `%s`: it "
                           "needs `%s.memory`, or the memories different "
                           "`base` addresses",
                           name, row->mnemonic, spec->memory[b].name,
                           spec->memory[a].name, name);
                return;
            }
        }
}

static void check_operand(Diag *diag, const HwSpec *spec, const HwRow *row,
                          HwOp op, HwOperand operand) {
    static const char *const names[] = {"in", "in2", "out"};
    const char *name = names[operand];
    bool outside = (op == HW_OP_LOAD && operand == HW_IN) ||
                   (op == HW_OP_STORE && operand == HW_OUT);
    bool by_address = has(row, HW_FIELD_OF(operand, ADDR));
    bool by_offset = has(row, HW_FIELD_OF(operand, OFFSET));
    if (!by_address && !by_offset)
        diag_error(diag, row->loc,
                   "%s does not say where its `%s` operand lies: it needs "
                   "`%s.addr`, or `%s.buffer` and `%s.offset`",
                   row->mnemonic, name, name, name, name);
    else if (!by_address && !has(row, HW_FIELD_OF(operand, BUFFER)))
        diag_error(diag, row->loc, "%s has `%s.offset` without `%s.buffer`",
                   row->mnemonic, name, name);
    else if (!outside)
        check_apart(diag, spec, row, op, operand, name);
}

static void check_operands(Diag *diag, const HwSpec *spec,
                           const HwInsnSet *set) {
    for (uint32_t i = 0; i < HW_OP_COUNT; i++) {
        HwOp op = (HwOp)i;
        const HwRow *row = row_for(set, op);
        if (!row || op == HW_OP_CONCAT || op == HW_OP_LOAD_WEIGHTS ||
            op == HW_OP_LOAD_BIAS || op == HW_OP_HOST || op == HW_OP_LAYER)
            continue;
        check_operand(diag, spec, row, op, HW_IN);
        if (insn_is_binary(op))
            check_operand(diag, spec, row, op, HW_IN2);
        check_operand(diag, spec, row, op, HW_OUT);
    }
}

/* What moves may be some rows of a volume, and says of which. What layers say
 * is for the legality of nodes. */
static void check_moved(Diag *diag, const HwSpec *spec, const HwInsnSet *set) {
    static const HwField rows[] = {HW_F_ROW_FIRST, HW_F_ROW_LAST};
    static const HwOp op[] = {HW_OP_LOAD, HW_OP_STORE};
    for (int k = 0; k < 2; k++) {
        const HwRow *row = row_for(set, op[k]);
        if (!row || spec->tiling.kind != HW_TILING_SOFTWARE)
            continue;
        for (int i = 0; i < 2; i++)
            if (!has(row, rows[i]))
                diag_error(diag, row->loc, "%s does not tell `%s`",
                           row->mnemonic, hw_field_name[rows[i]]);
    }
}

static bool tells_ring(const HwRow *row, HwOperand operand) {
    return has(row, HW_FIELD_OF(operand, RING)) &&
           has(row, HW_FIELD_OF(operand, ROW));
}

/* Loads and stores move rows that they name: these need the height only. */
static void check_rings(Diag *diag, const HwSpec *spec, const HwInsnSet *set) {
    if (!spec->tiling.rows.rolls)
        return;
    for (uint32_t i = 0; i < HW_OP_COUNT; i++) {
        HwOp op = (HwOp)i;
        const HwRow *row = row_for(set, op);
        bool load = op == HW_OP_LOAD, store = op == HW_OP_STORE;
        bool two = insn_is_binary(op) && !insn_own_plane(op);
        if (!row || !(load || store || spec->tiling.rows.ops >> op & 1))
            continue;
        bool in =
            load || (store && has(row, HW_F_IN_RING)) || tells_ring(row, HW_IN);
        bool out = store || (load && has(row, HW_F_OUT_RING)) ||
                   tells_ring(row, HW_OUT);
        if (!in || !out || (two && !tells_ring(row, HW_IN2)))
            diag_error(diag, row->loc,
                       "`tiling.rings` is set, but %s does not tell the rings "
                       "of its operands in active memory: it needs `%s`",
                       row->mnemonic,
                       load    ? "out.ring"
                       : store ? "in.ring"
                       : !in   ? "in.ring` and `in.row"
                       : !out  ? "out.ring` and `out.row"
                               : "in2.ring` and `in2.row");
    }
}

/* What tells a line buffer, and which columns of the tensor. */
static const HwField line_fields[] = {HW_F_IN_BAND, HW_F_IN_KEEP, HW_F_IN_SPAN,
                                      HW_F_IN_SHIFT};
static const HwField column_fields[] = {HW_F_IN_COL, HW_F_IN_PITCH};

static bool tells_all(const HwRow *row, HwOperand operand, const HwField *field,
                      size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!has(row, (HwField)((int)field[i] + (int)operand)))
            return false;
    return true;
}

static bool tells_lines(const HwRow *row, HwOperand operand) {
    return tells_all(row, operand, line_fields, 4) &&
           tells_all(row, operand, column_fields, 2);
}

static bool move_tells_lines(const HwRow *row, HwOperand active) {
    return tells_all(row, active, line_fields, 4) && has(row, HW_F_COL_FIRST) &&
           has(row, HW_F_COL_LAST);
}

static void check_lines(Diag *diag, const HwSpec *spec, const HwInsnSet *set) {
    for (uint32_t i = 0; hwspec_by_columns(spec) && i < HW_OP_COUNT; i++) {
        HwOp op = (HwOp)i;
        const HwRow *row = row_for(set, op);
        bool two = insn_is_binary(op);
        bool move = op == HW_OP_LOAD || op == HW_OP_STORE;
        if (!row || !(move || spec->tiling.rows.ops >> op & 1))
            continue;
        bool told =
            move ? move_tells_lines(row, op == HW_OP_LOAD ? HW_OUT : HW_IN)
                 : tells_lines(row, HW_IN) && tells_lines(row, HW_OUT) &&
                       (!two || tells_lines(row, HW_IN2));
        if (!told)
            diag_error(diag, row->loc,
                       "`tiling.lines` is set, but %s does not tell the line "
                       "buffers of its operands in active memory: they need "
                       "`line.band`, `line.keep`, `line.span`, `line.shift`, "
                       "and %s",
                       row->mnemonic,
                       move ? "`col.first` and `col.last`"
                            : "`col` and `pitch`");
    }
}

/* Tiles that the machine walks may take some of the input's channels. */
static void check_row_taps(Diag *diag, const HwSpec *spec) {
    for (uint32_t i = 0; i < spec->n_engines; i++)
        if (spec->engine[i].unroll.row_taps &&
            spec->tiling.kind == HW_TILING_HARDWARE)
            diag_error(diag, spec->engine[i].loc,
                       "engine `%s`: `unroll.row_taps` is not for "
                       "`tiling.kind: hardware`",
                       spec->engine[i].name);
}

/* Where weights lie in active memory, a row loads them, and those that read
 * them say where they lie. */
static void check_weights(Diag *diag, const HwSpec *spec,
                          const HwInsnSet *set) {
    static const HwField field[] = {HW_F_WEIGHTS_ADDR, HW_F_WEIGHTS_FIRST,
                                    HW_F_WEIGHTS_LAST, HW_F_WEIGHTS_TAPS,
                                    HW_F_WEIGHTS_MEMORY};
    if (!spec->tiling.rows.weights_from && spec->weights)
        diag_error(diag, spec->memory[spec->weights].loc,
                   "nothing loads `%s`: weights need `tiling.weights_from`",
                   spec->memory[spec->weights].name);
    if (!spec->tiling.rows.weights_from && spec->bias)
        diag_error(diag, spec->memory[spec->bias].loc,
                   "nothing loads `%s`: biases need `tiling.weights_from`",
                   spec->memory[spec->bias].name);
    if (!spec->tiling.rows.weights_from)
        return;
    if (!row_for(set, HW_OP_LOAD_WEIGHTS))
        diag_error(diag, spec->loc,
                   "`tiling.weights_from` is set, but no instruction is for "
                   "`load_weights`");
    uint32_t in = spec->tiling.rows.weights_in, several = (in & (in - 1)) != 0;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        const HwRow *row = row_for(set, (HwOp)op);
        uint32_t n = op == HW_OP_LOAD_WEIGHTS        ? 4 + several
                     : hwspec_stages(spec, (HwOp)op) ? 2
                                                     : 0;
        for (uint32_t i = 0; row && i < n; i++)
            if (!says(row, field[i]))
                diag_error(diag, row->loc,
                           "`tiling.weights_from` is set, but %s does not tell "
                           "`%s`",
                           row->mnemonic, hw_field_name[field[i]]);
    }
}

static void need_fields(Diag *diag, const HwRow *row, const HwField *field,
                        uint32_t n, const char *why) {
    for (uint32_t i = 0; row && i < n; i++)
        if (!says(row, field[i]))
            diag_error(diag, row->loc, "%s, but %s does not tell `%s`", why,
                       row->mnemonic, hw_field_name[field[i]]);
}

/* Sums that are not told lie at the first byte: then all do. */
static void check_sums_told(Diag *diag, const HwSpec *spec,
                            const HwInsnSet *set) {
    static const HwField field = HW_F_SUMS_ADDR;
    bool needed = spec->sums && spec->memory[spec->sums].buffers > 1;
    const char *why = "the memory of sums has buffers";
    for (uint32_t op = 0; op < HW_OP_COUNT && spec->sums && !needed; op++) {
        const HwRow *row = row_for(set, (HwOp)op);
        needed = row && has(row, field);
        why = needed ? "another row tells `sums.addr`" : why;
    }
    for (uint32_t op = 0; op < HW_OP_COUNT && needed; op++)
        if (hwspec_keeps_sums(spec, (HwOp)op, hwspec_engine(spec, (HwOp)op)))
            need_fields(diag, row_for(set, (HwOp)op), &field, 1, why);
}

static const HwField tap_fields[] = {HW_F_WEIGHTS_TAP_FIRST,
                                     HW_F_WEIGHTS_TAP_LAST};

/* Convolutions that go on with sums, and loads: all say of which taps weights
 * are, or none. */
static void check_taps_told(Diag *diag, const HwSpec *spec,
                            const HwInsnSet *set) {
    const char *why = "another row tells of which taps weights are";
    const HwOp op = HW_OP_CONV;
    bool any = false;
    for (uint32_t i = 0; i < set->n; i++)
        for (int k = 0; k < 2; k++)
            any |= has(&set->row[i], tap_fields[k]);
    if (!any || !hwspec_adds_up(spec, op, hwspec_engine(spec, op)))
        return;
    need_fields(diag, row_for(set, op), tap_fields, 2, why);
    need_fields(diag, row_for(set, HW_OP_LOAD_WEIGHTS), tap_fields, 2, why);
}

/* Sums that go on are told, as is of which input channels weights are. */
static void check_sums(Diag *diag, const HwSpec *spec, const HwInsnSet *set) {
    static const HwField field[] = {HW_F_WEIGHTS_IN, HW_F_SUMS_FIRST,
                                    HW_F_SUMS_LAST};
    const char *why = "engines go on with sums (`operands.sums`)";
    bool any = false;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (hwspec_adds_up(spec, (HwOp)op, hwspec_engine(spec, (HwOp)op))) {
            need_fields(diag, row_for(set, (HwOp)op), field, 3, why);
            any = true;
        }
    if (any)
        need_fields(diag, row_for(set, HW_OP_LOAD_WEIGHTS), field, 1, why);
    check_sums_told(diag, spec, set);
    check_taps_told(diag, spec, set);
}

/* Biases that are loaded have a row that loads them, and readers. */
static void check_bias(Diag *diag, const HwSpec *spec, const HwInsnSet *set) {
    static const HwField field[] = {HW_F_BIAS_ADDR, HW_F_WEIGHTS_FIRST,
                                    HW_F_WEIGHTS_LAST, HW_F_WEIGHTS_MEMORY};
    const char *why = "a memory has the role `bias`";
    uint32_t in = spec->tiling.rows.weights_in, several = (in & (in - 1)) != 0;
    if (!spec->bias || !spec->tiling.rows.weights_from)
        return;
    if (!row_for(set, HW_OP_LOAD_BIAS))
        diag_error(diag, spec->loc,
                   "a memory has the role `bias`, but no instruction is for "
                   "`load_bias`");
    need_fields(diag, row_for(set, HW_OP_LOAD_BIAS), field, 3 + several, why);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (hwspec_loads_bias(spec, (HwOp)op))
            need_fields(diag, row_for(set, (HwOp)op), field, 1, why);
}

/* A memory's id must name one memory where rows use it. */
static void check_ids(Diag *diag, const HwSpec *spec, const HwInsnSet *set) {
    bool used = false;
    for (uint32_t i = 0; i < set->n; i++)
        for (int operand = HW_IN; operand <= HW_OUT; operand++)
            used |= has(&set->row[i], HW_FIELD_OF((HwOperand)operand, MEMORY));
    for (uint32_t a = 0; used && a < spec->n_memories; a++)
        for (uint32_t b = 0; b < a; b++)
            if (spec->memory[a].id == spec->memory[b].id)
                diag_error(diag, spec->memory[a].loc,
                           "`%s` and `%s` have the same id %u, by which "
                           "instructions name them",
                           spec->memory[b].name, spec->memory[a].name,
                           spec->memory[a].id);
}

/* ---- encodings ---- */

static uint64_t constant_mask(const HwRow *row, uint32_t word,
                              uint64_t *value) {
    uint64_t mask = 0;
    *value = 0;
    for (uint32_t i = 0; i < row->n_bits; i++) {
        const HwBits *bits = &row->bits[i];
        if (bits->name || bits->word != word)
            continue;
        uint64_t ones =
            bits->width == 64 ? UINT64_MAX : (UINT64_C(1) << bits->width) - 1;
        mask |= ones << bits->at;
        *value |= bits->is << bits->at;
    }
    return mask;
}

static bool told_apart(const HwRow *a, const HwRow *b) {
    for (uint32_t word = 0; word < a->words && word < b->words; word++) {
        uint64_t value_a, value_b;
        uint64_t both =
            constant_mask(a, word, &value_a) & constant_mask(b, word, &value_b);
        if ((value_a ^ value_b) & both)
            return true;
    }
    return false;
}

static void check_encodings(Diag *diag, const HwInsnSet *set) {
    for (uint32_t i = 0; i < set->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (set->row[i].n_bits && set->row[j].n_bits &&
                !told_apart(&set->row[i], &set->row[j]))
                diag_error(diag, set->row[i].loc,
                           "no constant bits tell %s from %s",
                           set->row[i].mnemonic, set->row[j].mnemonic);
}

/* ---- parts ---- */

/* Of what volume an operand that the row locates is a part, and which. */
static bool tells_part(const HwRow *row, HwOperand operand) {
    return !(has(row, HW_FIELD_OF(operand, ADDR)) ||
             has(row, HW_FIELD_OF(operand, OFFSET))) ||
           (has(row, HW_FIELD_OF(operand, PART)) &&
            has(row, HW_FIELD_OF(operand, PART_START)) &&
            has(row, HW_FIELD_OF(operand, PART_C)));
}

bool rows_tell_parts(const HwSpec *spec, const HwInsnSet *set) {
    HwOps ops = HW_BIT(LOAD) | HW_BIT(STORE) | HW_BIT(CONCAT);
    for (uint32_t e = 0; e < spec->n_engines; e++)
        ops |= spec->engine[e].ops;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        const HwRow *row = ops >> op & 1 ? row_for(set, (HwOp)op) : NULL;
        if (row && !(tells_part(row, HW_IN) && tells_part(row, HW_IN2) &&
                     tells_part(row, HW_OUT)))
            return false;
    }
    return set->n > 0;
}

bool rows_tell_columns(const HwInsnSet *set) {
    const HwRow *load = row_for(set, HW_OP_LOAD);
    const HwRow *store = row_for(set, HW_OP_STORE);
    return load && store && has(load, HW_F_COL_FIRST) &&
           has(load, HW_F_COL_LAST) && has(store, HW_F_COL_FIRST) &&
           has(store, HW_F_COL_LAST);
}

/* ---- operations are told apart by what is true of them ---- */

static void check_when(Diag *diag, const HwRow *row, HwOp op,
                       const HwWhen *when) {
    const HwForm *form = &row->form[0];
    const HwToken *token = &form->token[insn_token(form, when->token)];
    int64_t value = 0;
    HwField field = token->from;
    if (field == HW_F_CONST || hw_field_kind(field) == HW_STR)
        return;
    if (token->also != HW_F_CONST && insn_absent(op, field, &value))
        field = token->also;
    if (!insn_decided(op, field, &value))
        diag_error(diag, when->loc,
                   "`%s` cannot tell `%s` from others: it means `%s`, which "
                   "differs from layer to layer",
                   when->token, hw_op_name[op], hw_field_name[field]);
    else if (insn_token_value(token, value) != when->num)
        diag_error(diag, when->loc,
                   "`%s` is %" PRId64 " of `%s`, since it means `%s`",
                   when->token, insn_token_value(token, value), hw_op_name[op],
                   hw_field_name[field]);
}

static void check_told(Diag *diag, const HwInsnSet *set) {
    for (uint32_t i = 0; i < set->n; i++)
        for (uint32_t s = 0; s < set->row[i].n_serves; s++)
            for (uint32_t k = 0; k < set->row[i].serve[s].n; k++)
                check_when(diag, &set->row[i], set->row[i].serve[s].op,
                           &set->row[i].serve[s].when[k]);
}

static bool tells_taps(const HwRow *row) {
    return row && has(row, tap_fields[0]) && has(row, tap_fields[1]);
}

uint64_t rows_tell_taps(const HwSpec *spec, const HwInsnSet *set) {
    uint64_t told = 0;
    if (!tells_taps(row_for(set, HW_OP_LOAD_WEIGHTS)))
        return 0;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (hwspec_adds_up(spec, (HwOp)op, hwspec_engine(spec, (HwOp)op)) &&
            tells_taps(row_for(set, (HwOp)op)))
            told |= UINT64_C(1) << op;
    return told;
}

bool rows_tell_sums(const HwSpec *spec, const HwInsnSet *set) {
    bool any = false, all = true;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        const HwRow *row = row_for(set, (HwOp)op);
        if (!row ||
            !hwspec_keeps_sums(spec, (HwOp)op, hwspec_engine(spec, (HwOp)op)))
            continue;
        any = true;
        all &= has(row, HW_F_SUMS_ADDR);
    }
    return any && all;
}

void rows_check(Diag *diag, const HwSpec *spec, const HwInsnSet *set) {
    check_engines(diag, spec, set);
    check_moves(diag, spec, set);
    check_acts(diag, spec, set);
    check_operands(diag, spec, set);
    check_moved(diag, spec, set);
    check_rings(diag, spec, set);
    check_lines(diag, spec, set);
    check_weights(diag, spec, set);
    check_sums(diag, spec, set);
    check_bias(diag, spec, set);
    check_row_taps(diag, spec);
    check_ids(diag, spec, set);
    check_told(diag, set);
    check_encodings(diag, set);
}

bool insn_rows_hold(Arena *arena, const HwSpec *spec) {
    Diag *diag = diag_new(arena);
    if (!spec->insns)
        return true;
    rows_check(diag, spec, spec->insns);
    for (uint32_t i = 0; i < spec->insns->n; i++)
        if (!rows_bits_hold(spec, &spec->insns->row[i]))
            return false;
    return !diag_errors(diag);
}
