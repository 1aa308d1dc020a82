/* legal_told.c - whether an instruction can tell what a node is; see
 * legal_parts.h.
 *
 * In: a node as its windows, the row of its operation. Out: the first number
 * that the row lacks a token for and that is not what listings are then read
 * with (sim/work_sizes.c): what the row implies; of a height the width; of a
 * result the size that its operand makes with the same padding on both sides;
 * else 1, of padding 0. Of what runs by rows, numbers that differ from tile to
 * tile need tokens of their own.
 */
#include "hwspec/insn.h"
#include "passes/legal_parts.h"

/* A number, its field, that of the same number along the other axis
 * (HW_F_COUNT: none) with its value, and what it is where neither is told. */
typedef struct Told {
    HwField field, other;
    uint32_t value, other_value, usual;
    bool varies; /* between tiles */
} Told;

typedef struct Row {
    const Candidate *c;
    const HwRow *row;
    Arena *arena;
    bool rows_vary, columns_vary; /* it runs by tiles of these */
} Row;

static bool is_token(const Row *r, HwField field) {
    return field != HW_F_COUNT && insn_token_of(&r->row->form[0], field) >= 0;
}

static const char *check(const Row *r, Told t) {
    const HwForm *form = &r->row->form[0];
    bool own = is_token(r, t.field), other = is_token(r, t.other);
    bool both = own && other &&
                insn_token_of(form, t.field) == insn_token_of(form, t.other);
    if (own && !both)
        return NULL;
    int64_t read = other ? t.other_value : t.usual;
    for (uint32_t i = 0; i < form->n_implied; i++)
        if (form->implied[i].field == t.field) {
            if (form->implied[i].of != HW_F_CONST)
                return NULL;
            read = form->implied[i].num;
        }
    if (read == t.value && !t.varies)
        return NULL;
    return legal_say(r->arena, "no token of %s tells %s, which is %u%s",
                     r->row->mnemonic, hw_field_name[t.field], t.value,
                     read == t.value ? ", and other in tiles" : "");
}

/* Of both axes, by the field of the width; that of the height is the next. */
static const char *check_axes(const Row *r, HwField wide, HwField high,
                              const uint32_t value[2], const uint32_t usual[2],
                              const bool varies[2]) {
    const char *broken =
        check(r, (Told){wide, HW_F_COUNT, value[1], 0, usual[1], varies[1]});
    return broken ? broken
                  : check(r, (Told){high, wide, value[0], value[1], usual[0],
                                    varies[0]});
}

static const bool no_axis[2];

static const char *check_window(const Row *r, const Part *p, bool second) {
    enum { KERNEL, STRIDE, PAD, DILATION, N };
    static const HwField wide[][N] = {
        {HW_F_KERNEL_W, HW_F_STRIDE_W, HW_F_PAD_W, HW_F_DILATION_W},
        {HW_F_POOL_KERNEL_W, HW_F_POOL_STRIDE_W, HW_F_POOL_PAD_W, HW_F_COUNT}};
    static const uint32_t one[2] = {1, 1}, zero[2];
    const uint32_t *value[] = {p->kernel, p->stride, p->pad, p->dilation};
    const bool padded[2] = {r->rows_vary && p->pad[0],
                            r->columns_vary && p->pad[1]};
    const Node *node = r->c->node;
    /* without a kernel that of all its input */
    bool whole = node->op == OP_POOL && node->attr.pool.global &&
                 is_token(r, HW_F_POOL_GLOBAL) && !r->rows_vary &&
                 !is_token(r, HW_F_KERNEL_W) && !is_token(r, HW_F_KERNEL_H);
    const char *broken = NULL;
    for (int i = whole ? STRIDE : KERNEL; i < N && !broken; i++)
        if (wide[second][i] != HW_F_COUNT)
            broken = check_axes(
                r, wide[second][i], (HwField)(wide[second][i] + 1), value[i],
                i == PAD ? zero : one, i == PAD ? padded : no_axis);
    return broken;
}

static const char *check_input(const Row *r, const Part *p) {
    static const uint32_t one[2] = {1, 1};
    const uint32_t size[2] = {p->in.h, p->in.w};
    const bool varies[2] = {r->rows_vary, r->columns_vary};
    const char *broken =
        check(r, (Told){HW_F_IN_C, HW_F_COUNT, p->in.c, 0, 1, false});
    return broken ? broken
                  : check_axes(r, HW_F_IN_W, HW_F_IN_H, size, one, varies);
}

/* With the padding in front behind as well. */
static uint32_t windows(uint32_t in, const Part *p, int axis) {
    uint64_t reach = (uint64_t)(p->kernel[axis] - 1) * p->dilation[axis] + 1;
    uint64_t padded = (uint64_t)in + 2 * (uint64_t)p->pad[axis];
    return padded < reach ? 1
                          : (uint32_t)((padded - reach) / p->stride[axis] + 1);
}

static const char *check_output(const Row *r, const Part *p, bool fused_first) {
    bool window = p->has & PART_WINDOW, deconv = r->c->node->op == OP_DECONV;
    const uint32_t size[2] = {p->out.h, p->out.w};
    const bool varies[2] = {window && r->rows_vary, window && r->columns_vary};
    uint32_t usual[2] = {p->out.h, p->out.w};
    if (window && !deconv) {
        usual[0] = windows(p->in.h, p, 0);
        usual[1] = windows(p->in.w, p, 1);
    }
    HwField c = r->c->node->op == OP_CONV_POOL && !is_token(r, HW_F_OUT_C)
                    ? HW_F_MID_C
                    : HW_F_OUT_C;
    const char *broken =
        check(r, (Told){c, HW_F_COUNT, p->out.c, 0, p->in.c, false});
    if (broken)
        return broken;
    return fused_first
               ? check_axes(r, HW_F_MID_W, HW_F_MID_H, size, usual, varies)
               : check_axes(r, HW_F_OUT_W, HW_F_OUT_H, size, usual, varies);
}

static const char *check_names(const Row *r) {
    HwField field = r->c->node->op == OP_CONV_POOL && is_token(r, HW_F_NAME)
                        ? HW_F_CONV_NAME
                        : HW_F_NAME;
    return is_token(r, field)
               ? NULL
               : legal_say(r->arena, "no token of %s tells %s",
                           r->row->mnemonic, hw_field_name[field]);
}

static const char *check_part(const Row *r, const Part *p, uint32_t i,
                              uint32_t n) {
    static const uint32_t one[2] = {1, 1};
    const char *broken = i ? NULL : check_input(r, p);
    if (!broken && (p->has & PART_WINDOW))
        broken = check_window(r, p, i == 1);
    if (!broken && (p->has & PART_FACTOR))
        broken = check_axes(r, HW_F_FACTOR_W, HW_F_FACTOR_H, p->factor, one,
                            no_axis);
    return broken ? broken : check_output(r, p, i + 1 < n);
}

const char *legal_untold(Arena *arena, const Candidate *c, uint32_t n,
                         const Part *part) {
    const HwTiling *tiling = &c->spec->tiling;
    int32_t at = c->spec->insns ? insn_row(c->spec, c->op) : -1;
    if (at < 0)
        return NULL;
    bool tiled = tiling->rows.ops >> c->op & 1;
    Row row = {c, &c->spec->insns->row[at], arena, tiled,
               tiled && hwspec_by_columns(c->spec)};
    const char *broken = check_names(&row);
    for (uint32_t i = 0; i < n && !broken; i++)
        broken = check_part(&row, &part[i], i, n);
    return broken;
}
