/* operands.c - operands as instructions say them; see operands.h.
 *
 * Input: an action. Output: whether each of its operands' elements has, by what
 * the instruction can say, the cell that it has by the placement.
 */
#include "plan/verify/operands.h"

#include "hwspec/address.h"
#include "hwspec/insn.h"

/* The operation whose row is written; HW_OP_COUNT: none that names operands. */
static HwOp op_of(const Action *a) {
    switch (a->kind) {
    case ACTION_LOAD:
        return HW_OP_LOAD;
    case ACTION_STORE:
        return HW_OP_STORE;
    case ACTION_RUN:
    case ACTION_COPY:
        return a->legal.op == HW_OP_LAYER ? HW_OP_COUNT : a->legal.op;
    case ACTION_CONCAT:
    case ACTION_HOST:
    case ACTION_WEIGHTS:
    case ACTION_BIAS:
        break;
    }
    return HW_OP_COUNT;
}

static const HwForm *form_of(const HwSpec *spec, HwOp op) {
    int32_t row = op < HW_OP_COUNT && spec->insns ? insn_row(spec, op) : -1;
    return row < 0 ? NULL : &spec->insns->row[row].form[0];
}

static bool says(const HwForm *form, HwField field) {
    return insn_token_of(form, field) >= 0;
}

/* The channels: of the enclosing volume where the row can name it. */
static void see_channels(const HwForm *form, HwOperand operand,
                         const Layout *layout, const Placement *p,
                         AddressView *view) {
    bool part = p->n_c != p->whole.c;
    view->volume = p->whole;
    if (!part)
        return;
    if (says(form, HW_FIELD_OF(operand, PART)) &&
        says(form, HW_FIELD_OF(operand, PART_START))) {
        view->c = p->part_c;
        if (!says(form, HW_FIELD_OF(operand, PART_C)))
            view->volume.c = p->part_c + p->n_c;
        view->offset = address_part(layout, &p->whole, p->part_c) -
                       address_part(layout, &view->volume, p->part_c);
        return;
    }
    view->volume.c = p->n_c;
    view->volume.repl = (Repl){0};
    view->offset = address_part(layout, &p->whole, p->part_c);
}

/* What is no volume by what the instruction says, need not start as one. */
static bool starts_there(const HwMemory *m, const Placement *p,
                         const AddressView *view) {
    return m->role != HW_ACTIVE || !m->align || view->c ||
           (p->offset + view->offset) % m->align == 0;
}

/* Operand i of an action, and what the instruction says of it: elements
 * [first, first + n) along each axis of its volume. */
typedef struct Seen {
    const Action *action;
    uint32_t i;
    const Placement *p;
    const HwMemory *memory;
    AddressView view;
    uint32_t first[3], n[3];
} Seen;

/* Rows and columns that an engine, or the near side of a transfer, has. */
static void see_pixels(Seen *s) {
    const Action *a = s->action;
    const Placement *p = s->p;
    const Layout *layout = s->memory->layout;
    bool moves = a->kind == ACTION_LOAD || a->kind == ACTION_STORE;
    bool reads = s->i < a->n_in && a->kind == ACTION_RUN;
    bool spread = s->i == 1 && reads && insn_own_plane(a->legal.op);
    if (p->ring || p->lines.band || spread ||
        (moves && s->memory->role != HW_ACTIVE))
        return;
    s->first[LAYOUT_H] = (reads ? a->in_row : a->row) - p->row;
    s->first[LAYOUT_W] = (reads ? a->in_col : a->col) - p->col;
    s->n[LAYOUT_H] = reads ? a->in_rows : a->rows;
    s->n[LAYOUT_W] = reads ? a->in_cols : a->cols;
    s->view.volume.h = s->n[LAYOUT_H];
    s->view.volume.w = s->n[LAYOUT_W];
    if (a->kind == ACTION_COPY && s->i < a->n_in) {
        s->view.volume.h = p->whole.h;
        s->view.offset += address_cell(layout, &p->whole, 0, s->first[LAYOUT_H],
                                       s->first[LAYOUT_W], 0) *
                          layout->element;
    }
}

bool view_agrees(const Plan *plan, const Action *a, uint32_t i) {
    const HwSpec *spec = plan->schedule->spec;
    const HwForm *form = form_of(spec, op_of(a));
    const Placement *p = &plan->placement[i < a->n_in ? a->in[i] : a->out];
    const HwMemory *memory = &spec->memory[p->memory];
    Seen s = {.action = a,
              .i = i,
              .p = p,
              .memory = memory,
              .first = {p->part_c, 0, 0},
              .n = {p->n_c, p->whole.h, p->whole.w}};
    if (!form || i > 2)
        return true;
    see_channels(form, hw_operand(i, a->n_in), memory->layout, p, &s.view);
    see_pixels(&s);
    if (s.view.offset == 0 && s.view.c == s.first[LAYOUT_C] &&
        s.first[LAYOUT_H] == 0 && s.first[LAYOUT_W] == 0 &&
        volumes_same(&s.view.volume, &p->whole))
        return true;
    return starts_there(memory, p, &s.view) &&
           address_agrees(memory->layout, &p->whole, &s.view, s.first, s.n);
}
