/* lay.c - names for how operands lie: `in.step.h`, `out.split.c`, `in.units`.
 *
 * Input: the layout of the active memories in which an operand may lie. Output:
 * a name for each question of docs/hwspec.md, "How operands lie", with an
 * expression over the operand's c, h and w: what layout.c computes, said so
 * that fields can be read back and ranges are known. Where the memories differ,
 * the operand has no such names. Volumes are whole and have no copies.
 */
#include "hwspec/format/format.h"

#include "hwspec/layout.h"

typedef struct Lay {
    ItemReader *r;
    const char *operand;
    const HwMemory *memory;
} Lay;

static const char dim_name[] = "chw";

/* The extent of an axis. */
static const char *extent_of(const Lay *l, const LayoutAxis *axis) {
    Arena *arena = l->r->arena;
    const char *size =
        arena_printf(arena, "%s.%c", l->operand, dim_name[axis->dim]);
    if (axis->inner && axis->clip)
        size = arena_printf(arena, "min(%s, %u)", size, axis->split);
    else if (axis->inner)
        size = arena_printf(arena, "%u", axis->split);
    else if (axis->split)
        size = arena_printf(arena, "ceil(%s, %u)", size, axis->split);
    return axis->round == 1
               ? size
               : arena_printf(arena, "round_up(%s, %u)", size, axis->round);
}

/* Bytes of all axes from `first` on. */
static const char *bytes_from(const Lay *l, const Layout *axes,
                              uint32_t first) {
    const char *text = arena_printf(l->r->arena, "%u", axes->element);
    for (uint32_t i = axes->n; i-- > first;)
        text = arena_printf(l->r->arena, "%s * %s", text,
                            extent_of(l, &axes->axis[i]));
    return text;
}

/* One list of axes: its value of a question. */
typedef const char *Question(const Lay *l, const Layout *axes, int dim);

static const char *bytes(const Lay *l, const Layout *axes, int dim) {
    (void)dim;
    return bytes_from(l, axes, 0);
}

static const char *units(const Lay *l, const Layout *axes, int dim) {
    return arena_printf(l->r->arena, "ceil(%s, %u)", bytes(l, axes, dim),
                        l->memory->unit);
}

static const char *step(const Lay *l, const Layout *axes, int dim) {
    for (uint32_t i = 0; i < axes->n; i++)
        if ((int)axes->axis[i].dim == dim && !axes->axis[i].inner)
            return arena_printf(l->r->arena, "(%s) / %u",
                                bytes_from(l, axes, i + 1), l->memory->unit);
    return "0";
}

static const char *split(const Lay *l, const Layout *axes, int dim) {
    for (uint32_t i = 0; i < axes->n; i++)
        if ((int)axes->axis[i].dim == dim && axes->axis[i].split)
            return arena_printf(l->r->arena, "%u", axes->axis[i].split);
    return "1";
}

/* "in.w >= 3 and in.w <= 16"; "" where any volume is one. */
static const char *condition(const Lay *l, const LayoutCase *at) {
    Text text = text_new(l->r->arena);
    const char *also = "";
    for (int dim = LAYOUT_C; dim <= LAYOUT_W; dim++) {
        LayoutRange range = at->when[dim];
        if (range.lo > 1) {
            text_addf(&text, "%s%s.%c >= %u", also, l->operand, dim_name[dim],
                      range.lo);
            also = " and ";
        }
        if (range.hi < UINT32_MAX) {
            text_addf(&text, "%s%s.%c <= %u", also, l->operand, dim_name[dim],
                      range.hi);
            also = " and ";
        }
    }
    return text_str(&text);
}

/* The first case that holds; behind the last there is none. */
static const char *answer(const Lay *l, Question *question, int dim) {
    const Layout *layout = l->memory->layout;
    if (!layout->n_cases)
        return question(l, layout, dim);
    uint32_t i = layout->n_cases - 1;
    const char *text = question(l, &layout->cases[i].axes, dim);
    while (i-- > 0)
        text = arena_printf(l->r->arena, "if(%s, %s, %s)",
                            condition(l, &layout->cases[i]),
                            question(l, &layout->cases[i].axes, dim), text);
    return text;
}

static void add(const Lay *l, const char *name, Question *question, int dim) {
    ExprNames *names = l->r->format->names;
    Loc loc = l->memory->layout->loc;
    ExprName at = {.name = arena_printf(l->r->arena, "%s.%s", l->operand, name),
                   .loc = loc,
                   .kind = EXPR_LET};
    if (expr_find(names, at.name) != EXPR_NONE)
        return;
    at.let = expr_parse(names, l->r->diag, answer(l, question, dim), loc,
                        &l->r->place);
    if (at.let)
        expr_add(names, &at);
}

static void add_all(const Lay *l) {
    add(l, "bytes", bytes, 0);
    add(l, "units", units, 0);
    for (int dim = LAYOUT_C; dim <= LAYOUT_W; dim++) {
        const char *axis = arena_printf(l->r->arena, "%c", dim_name[dim]);
        add(l, arena_printf(l->r->arena, "step.%s", axis), step, dim);
        add(l, arena_printf(l->r->arena, "split.%s", axis), split, dim);
    }
}

/* The memory that stands for all in which the operand may lie; NULL where they
 * differ, or there is none. */
static const HwMemory *lies_in(const HwSpec *spec, HwOperand operand) {
    const HwMemory *found = NULL;
    uint32_t may = 0;
    for (uint32_t i = 0; i < spec->n_engines; i++)
        may |= spec->engine[i].lies[operand];
    for (uint32_t i = 0; i < spec->n_active; i++) {
        const HwMemory *m = &spec->memory[i];
        if (!(may >> i & 1))
            continue;
        if (!m->layout ||
            (found && (m->layout != found->layout || m->unit != found->unit)))
            return NULL;
        found = found ? found : m;
    }
    bool whole = found && (found->layout->n || found->layout->n_cases);
    return whole && !spec->replication.memories ? found : NULL;
}

void format_lay_names(ItemReader *r, const HwSpec *spec) {
    for (int i = 0; i < HW_OPERANDS; i++) {
        Lay l = {r, hw_operand_name[i], lies_in(spec, (HwOperand)i)};
        const char *c = arena_printf(r->arena, "%s.c", l.operand);
        if (l.memory && expr_find(r->format->names, c) != EXPR_NONE)
            add_all(&l);
    }
}
