/* fields.c - tokens that follow from others must say so; see work.h.
 *
 * Input: an instruction whose fields make sense as work, and that work.
 * Output: a violation for each token that says something else than what its
 * meaning must be, given the rest: a constant, what an operation does not have
 * (hwspec/absent.c), an operand's place in all the ways that tokens tell it,
 * copies that the machine can store, modes that follow from sizes, what the
 * engine allows. Of fields that are free, flags are 0 or 1, and two tokens of
 * one meaning say the same. What the row declares unread is passed over.
 */
#include "sim/fields.h"

#include "sim/blobs.h"
#include "sim/host.h"

#include <inttypes.h>
#include <string.h>

/* ---- modes ---- */

static void judge_windows(Judge *j) {
    const Work *w = j->w;
    if (w->op == HW_OP_FC) {
        must_be(j, HW_F_KERNEL_W, w->in.w);
        must_be(j, HW_F_KERNEL_H, w->in.h);
    }
    if (op_has_pool(w->op)) {
        const Window *p = w->pool;
        bool whole = p[ROWS].kernel == w->mid.h && p[COLS].kernel == w->mid.w &&
                     !p[ROWS].pad && !p[COLS].pad;
        must_be(j, HW_F_POOL_GLOBAL, whole && w->out.h == 1 && w->out.w == 1);
    }
    if (op_is_conv(w->op) || w->op == HW_OP_DECONV)
        must_be(j, HW_F_GROUPS,
                w->op == HW_OP_CONV ? 1 : work_groups(j->run, w));
}

static void judge_method(Judge *j) {
    const char *method = given(j, HW_F_METHOD) ? j->f->str[HW_F_METHOD] : NULL;
    if (j->w->op == HW_OP_UPSAMPLE && method &&
        strcmp(method, "NearestNeighbor") != 0 && strcmp(method, "Zero") != 0)
        fault(j->run, "`%s` is neither NearestNeighbor nor Zero", method);
}

/* What the image says that the host runs. */
static void judge_kind(Judge *j) {
    const HostLayer *layer = host_layer(j->run, j->w->name);
    const char *kind =
        given(j, HW_F_HOST_KIND) ? j->f->str[HW_F_HOST_KIND] : NULL;
    if (layer && kind && strcmp(kind, layer->kind) != 0)
        fault(j->run, "a layer of kind `%s`; in the image `%s`", kind,
              layer->kind);
}

/* Weights are those of a layer, not of one of its tiles; one whose own name
 * ends as that of a tile has the number 0. */
static void judge_weights_name(Judge *j) {
    const Work *w = j->w;
    bool numbered = w->layer[insn_tile_mark(w->layer)];
    if (hw_is_among(w->op, HW_CONSTANT_LOADS) &&
        ((strcmp(w->name, w->layer) != 0) != numbered || w->first))
        fault(j->run, "weights of %s, a tile of %s", w->name, w->layer);
}

static void judge_flags(Judge *j) {
    const Work *w = j->w;
    static const HwField decided[] = {HW_F_ADD, HW_F_SCALE, HW_F_BIAS};
    if (says(j, HW_F_PRELU))
        must_be(j, HW_F_RELU, 1); /* a relu with slopes */
    if (j->run->listing->has_image)
        must_be(j, HW_F_BIAS, blob_find(j->run, w->layer, "bias") != NULL);
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++) {
        int64_t value;
        if (insn_decided(w->op, decided[i], &value))
            must_be(j, decided[i], value);
    }
    for (HwField f = 0; f < HW_F_IN_ADDR; f++)
        if (hw_field_is_wait(f) && !insn_wait_stands(j->spec, f))
            must_be(j, f, 0);
    must_be(j, HW_F_BLOCK, is_move(w) || !j->spec->engine[w->engine].ahead);
}

/* Rows of the weight cache, where the instruction tells them. */
static bool weight_rows(const Judge *j, uint64_t *rows) {
    const Work *w = j->w;
    static const HwField field[] = {HW_F_IN_FULL, HW_F_IN_REPL, HW_F_IN_UNITS,
                                    HW_F_IN_WIDTH};
    Repl repl = {0};
    bool known = read_copies(j, field, &repl);
    *rows =
        hwspec_weight_rows(repl, w->conv[ROWS].kernel * w->conv[COLS].kernel);
    return known || !j->spec->replication.section;
}

static void judge_weights(Judge *j) {
    const Work *w = j->w;
    const HwWeightCache *cache = &j->spec->weight_cache;
    uint64_t rows;
    bool weighs = op_is_conv(w->op) || w->op == HW_OP_DECONV;
    if (!weighs)
        must_be(j, HW_F_PINGPONG, 1);
    if (!weighs || !weight_rows(j, &rows))
        return;
    must_be(j, HW_F_PINGPONG, rows <= cache->pingpong);
    must_be(j, HW_F_HALFRATE, cache->full_rate && rows > cache->full_rate);
}

/* What cannot go on with sums adds up all channels. */
static void judge_sums(Judge *j) {
    if (!j->w->reads_bias)
        must_be_unset(j, HW_F_BIAS_ADDR);
    if (!j->w->keeps_sums)
        must_be_unset(j, HW_F_SUMS_ADDR);
    if (hwspec_adds_up(j->spec, j->w->op, j->w->engine))
        return;
    must_be(j, HW_F_WEIGHTS_IN, 0);
    must_be(j, HW_F_SUMS_FIRST, 1);
    must_be(j, HW_F_SUMS_LAST, 1);
}

static void judge_parallel(Judge *j) {
    const Work *w = j->w;
    const Place *a = &w->in_at, *b = &w->in2_at;
    const HwMemory *m = &j->spec->memory[a->memory];
    uint32_t e = m->layout->element;
    if (!w->parallel_read || !w->has_in2)
        return;
    if (a->memory != b->memory ||
        !hwspec_in_partitions(m, a->first * e, (a->end - a->first) * e,
                              b->first * e, (b->end - b->first) * e))
        fault(j->run, "its operands cannot be read at once: both lie in one "
                      "partition");
}

/* ---- what all of it makes of the tokens ---- */

static void judge_absent(Judge *j) {
    int64_t value;
    for (HwField f = 0; f < HW_F_IN_ADDR; f++) {
        HwAbsent absent = insn_absent(j->w->op, f, &value);
        if (absent == HW_UNSET)
            must_be_unset(j, f);
        else if (absent == HW_NEUTRAL)
            must_be(j, f, value);
    }
}

static bool is_absent(const Judge *j, HwField field) {
    int64_t value;
    return j->must[field].kind == MUST_BE_UNSET ||
           (field < HW_F_IN_ADDR &&
            insn_absent(j->w->op, field, &value) != HW_PRESENT);
}

/* Of two meanings the one that the operation has. */
static HwField meaning_of(const Judge *j, const HwToken *token) {
    bool other = token->also != HW_F_CONST && is_absent(j, token->from);
    return other ? token->also : token->from;
}

static bool tells_operations(const Judge *j, const HwToken *token) {
    for (uint32_t s = 0; s < j->row->n_serves; s++)
        for (uint32_t k = 0; k < j->row->serve[s].n; k++)
            if (!strcmp(j->row->serve[s].when[k].token, token->name))
                return true;
    return false;
}

static void judge_number(Judge *j, const HwToken *token, int64_t got,
                         int64_t want) {
    if (got != want)
        fault(j->run, "%s is %" PRId64 ", and must be %" PRId64, token->name,
              got, want);
}

static void judge_text(Judge *j, const HwToken *token, const char *got,
                       const char *want) {
    if (strcmp(got ? got : "", want) != 0)
        fault(j->run, "%s is `%s`, and must be `%s`", token->name, got, want);
}

static void judge_limit(Judge *j, const HwToken *token, HwField field) {
    HwLimitKind limit;
    int64_t num = j->f->num[field];
    if (!is_run(j->w) || !insn_limit(field, &limit))
        return;
    const HwEngine *engine = &j->spec->engine[j->w->engine];
    const HwRange *range = &engine->limit[limit];
    if (range->set && (num < 0 || !hw_range_has(range, (uint64_t)num)))
        fault(j->run, "%s is %" PRId64 "; engine %s takes %s", token->name, num,
              engine->name, hw_range_text(j->run->work, range));
}

static void judge_free(Judge *j, const HwToken *token, HwField field,
                       const HwValue *value) {
    if (token->is_string) {
        judge_text(j, token, value->str, j->f->str[field]);
        return;
    }
    judge_number(j, token, value->num,
                 insn_token_value(token, j->f->num[field]));
    if (hw_field_kind(field) == HW_FLAG && j->f->num[field] >> 1)
        fault(j->run, "%s is %" PRId64 ", neither 0 nor 1", token->name,
              j->f->num[field]);
    judge_limit(j, token, field);
}

static void judge_token(Judge *j, const HwToken *token, const HwValue *value) {
    if (!token->name || token->from == HW_F_MNEMONIC || token->unread ||
        token->free || token->later)
        return;
    if (token->from == HW_F_CONST && tells_operations(j, token))
        return;
    if (token->from == HW_F_CONST && token->is_string) {
        judge_text(j, token, value->str, token->constant_text);
        return;
    }
    if (token->from == HW_F_CONST) {
        judge_number(j, token, value->num, token->constant);
        return;
    }
    HwField field = meaning_of(j, token);
    const Must *must = &j->must[field];
    if (must->kind == MUST_NOTHING)
        judge_free(j, token, field, value);
    else if (token->is_string)
        judge_text(j, token, value->str, "0");
    else
        judge_number(j, token, value->num,
                     must->kind == MUST_BE_UNSET
                         ? 0
                         : insn_token_value(token, must->num));
}

/* A listing has placeholders in all its instructions, or in none. */
static void judge_placeholders(Judge *j, const HwInsn *insn) {
    const HwToken *some = NULL;
    bool put = false;
    for (uint32_t i = 0; i < j->form->n; i++) {
        const HwToken *token = &j->form->token[i];
        if (!token->later || token->unread)
            continue;
        some = token;
        put = put || (token->is_string
                          ? strcmp(insn->value[i].str, token->constant_text)
                          : insn->value[i].num != token->constant);
    }
    if (!some)
        return;
    if (!j->run->placeholders)
        j->run->placeholders = put ? PUT_DONE : PUT_LATER;
    else if (put != (j->run->placeholders == PUT_DONE))
        fault(j->run,
              "%s and the like are %s here, %s in instructions before "
              "this one",
              some->name, put ? "numbers" : "placeholders",
              put ? "placeholders" : "numbers");
}

void fields_judge(Run *run, const HwInsn *insn, const HwFields *fields,
                  const Work *w) {
    const HwRow *row = &run->spec->insns->row[insn->row];
    const HwForm *form = &row->form[insn->form];
    Judge j = {.run = run,
               .spec = run->spec,
               .row = row,
               .form = form,
               .f = fields,
               .w = w};
    judge_absent(&j);
    judge_operands(&j);
    if (is_run(w)) {
        judge_windows(&j);
        judge_method(&j);
        judge_weights(&j);
        judge_sums(&j);
        judge_parallel(&j);
        judge_tile(&j);
    }
    if (is_run(w) || is_move(w))
        judge_flags(&j);
    if (is_layer(w))
        judge_kind(&j);
    judge_weights_name(&j);
    if (w->op == HW_OP_CONCAT)
        judge_note(&j);
    judge_placeholders(&j, insn);
    if (is_run(w))
        run->rows_made = w->out.h;
    for (uint32_t i = 0; i < form->n; i++)
        judge_token(&j, &form->token[i], &insn->value[i]);
}
