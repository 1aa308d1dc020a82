/* address.c - cells of elements as numbers of mixed radix; see address.h.
 *
 * Input: a layout, a volume. Output: cells, element by element. Slow and plain
 * on purpose: no strides, and nothing of layout.c.
 * Invariant: a digit is below its radix for every element of the volume.
 */
#include "hwspec/address.h"

#include "base/arith.h"

typedef struct Element {
    uint32_t at[3]; /* by LayoutDim */
    uint32_t copy;
} Element;

static uint32_t extent(const Volume *v, LayoutDim dim) {
    return dim == LAYOUT_C ? v->c : dim == LAYOUT_H ? v->h : v->w;
}

/* Whether the volume's extents are those of the case. */
static bool is_case(const LayoutCase *c, const Volume *v) {
    return v->c >= c->when[LAYOUT_C].lo && v->c <= c->when[LAYOUT_C].hi &&
           v->h >= c->when[LAYOUT_H].lo && v->h <= c->when[LAYOUT_H].hi &&
           v->w >= c->when[LAYOUT_W].lo && v->w <= c->when[LAYOUT_W].hi;
}

/* The axes of the first case that the volume is; what no case before it takes
 * is the last one's. */
static const Layout *axes_of(const Layout *layout, const Volume *v) {
    const LayoutCase *c = layout->cases;
    if (!layout->n_cases)
        return layout;
    for (const LayoutCase *last = c + layout->n_cases - 1; c < last; c++)
        if (is_case(c, v))
            break;
    return &c->axes;
}

static uint32_t section(const Layout *layout) {
    for (uint32_t i = 0; i < layout->n; i++)
        if (layout->axis[i].dim == LAYOUT_C && layout->axis[i].split)
            return layout->axis[i].split;
    return 0;
}

/* Copies that a section has no room for are another memory's. */
static bool has_copies(const Layout *layout, const Volume *v) {
    uint64_t cells = (uint64_t)v->repl.units * v->repl.width;
    return v->repl.sections > 0 && cells > 0 && cells <= section(layout);
}

/* Channels in front of the sections of copies. */
static uint64_t single(const Layout *layout, const Volume *v) {
    return has_copies(layout, v) ? (uint64_t)v->repl.full * section(layout)
                                 : UINT64_MAX;
}

static uint32_t copies_of(const Layout *layout, const Volume *v, uint32_t c) {
    return c < single(layout, v) ? 1 : v->repl.units;
}

uint32_t address_copies(const Layout *layout, const Volume *v, uint32_t c) {
    return copies_of(axes_of(layout, v), v, c);
}

static uint64_t digit(const Layout *layout, const Volume *v,
                      const LayoutAxis *axis, const Element *e) {
    uint64_t at = e->at[axis->dim];
    if (axis->split == 0)
        return at;
    if (axis->dim != LAYOUT_C || at < single(layout, v))
        return axis->inner ? at % axis->split : at / axis->split;
    uint64_t behind = at - single(layout, v);
    return axis->inner
               ? behind % v->repl.width + (uint64_t)e->copy * v->repl.width
               : v->repl.full + behind / v->repl.width;
}

/* Behind the highest digit. Digits of a whole or an outer axis never fall, so
 * the last element has the highest; of an inner one, some of the last section.
 */
static uint64_t digits(const Layout *layout, const Volume *v,
                       const LayoutAxis *axis) {
    uint32_t n = extent(v, axis->dim), look = axis->inner ? axis->split : 1;
    uint64_t behind = 0;
    for (uint32_t i = n > look ? n - look : 0; i < n; i++) {
        Element e = {{0}, 0};
        e.at[axis->dim] = i;
        uint64_t d = digit(layout, v, axis, &e);
        behind = d >= behind ? d + 1 : behind;
    }
    return behind;
}

static uint64_t radix(const Layout *layout, const Volume *v,
                      const LayoutAxis *axis) {
    bool copies = axis->dim == LAYOUT_C && has_copies(layout, v);
    uint64_t n;
    if (axis->inner && (!axis->clip || copies))
        n = axis->split;
    else
        n = digits(layout, v, axis);
    uint64_t most = (uint64_t)v->repl.full + v->repl.sections;
    if (copies && !axis->inner && axis->split && v->c)
        n = larger(n, most);
    return round_up(n, axis->round);
}

typedef struct Radices {
    uint64_t of[LAYOUT_MAX_AXES];
} Radices;

static Radices radices(const Layout *layout, const Volume *v) {
    Radices r;
    for (uint32_t i = 0; i < layout->n; i++)
        r.of[i] = radix(layout, v, &layout->axis[i]);
    return r;
}

static uint64_t append(uint64_t number, uint64_t base, uint64_t last) {
    uint64_t product;
    if (__builtin_mul_overflow(number, base, &product))
        return UINT64_MAX;
    return add_capped(product, last);
}

uint64_t address_cells(const Layout *layout, const Volume *v) {
    layout = axes_of(layout, v);
    Radices r = radices(layout, v);
    uint64_t cells = 1;
    for (uint32_t i = 0; i < layout->n; i++)
        if (r.of[i] == 0)
            return 0;
    for (uint32_t i = 0; i < layout->n; i++)
        cells = append(cells, r.of[i], 0);
    return cells;
}

static uint64_t in_bytes(const Layout *layout, uint64_t cells) {
    return append(cells, layout->element, 0);
}

uint64_t address_bytes(const Layout *layout, const Volume *v) {
    return in_bytes(layout, address_cells(layout, v));
}

static uint64_t cell_of(const Layout *layout, const Volume *v, const Radices *r,
                        const Element *e) {
    uint64_t cell = 0;
    for (uint32_t i = 0; i < layout->n; i++)
        cell = append(cell, r->of[i], digit(layout, v, &layout->axis[i], e));
    return cell;
}

uint64_t address_cell(const Layout *layout, const Volume *v, uint32_t c,
                      uint32_t h, uint32_t w, uint32_t copy) {
    layout = axes_of(layout, v);
    Radices r = radices(layout, v);
    return cell_of(layout, v, &r, &(Element){{c, h, w}, copy});
}

/* A digit comes from one dimension, so a cell is a sum over the dimensions. */
static uint64_t *cells_along(Arena *arena, const Layout *layout,
                             const Volume *v, const Radices *r, LayoutDim dim) {
    uint32_t n = extent(v, dim);
    uint64_t *at = ARENA_ARRAY(arena, uint64_t, n);
    for (uint32_t i = 0; i < n; i++) {
        Element e = {{0}, 0};
        e.at[dim] = i;
        at[i] = cell_of(layout, v, r, &e);
    }
    return at;
}

/* From a channel that has a second copy to that one. */
static uint64_t step_of_copies(const Layout *layout, const Volume *v,
                               const Radices *r) {
    if (!has_copies(layout, v) || single(layout, v) > UINT32_MAX)
        return 0;
    uint32_t c = (uint32_t)single(layout, v);
    return cell_of(layout, v, r, &(Element){{c, 0, 0}, 1}) -
           cell_of(layout, v, r, &(Element){{c, 0, 0}, 0});
}

LayoutTables address_tables(Arena *arena, const Layout *layout,
                            const Volume *v) {
    layout = axes_of(layout, v);
    Radices r = radices(layout, v);
    LayoutTables t = {
        .c_at = cells_along(arena, layout, v, &r, LAYOUT_C),
        .h_at = cells_along(arena, layout, v, &r, LAYOUT_H),
        .w_at = cells_along(arena, layout, v, &r, LAYOUT_W),
        .copies = ARENA_ARRAY(arena, uint32_t, v->c),
        .copy_step = step_of_copies(layout, v, &r),
    };
    for (uint32_t c = 0; c < v->c; c++)
        t.copies[c] = copies_of(layout, v, c);
    return t;
}

/* By the digit that the next index, or section, has more on its axis. */
uint64_t address_step(const Layout *layout, const Volume *v, LayoutDim dim) {
    layout = axes_of(layout, v);
    Radices r = radices(layout, v);
    uint64_t cells = 0;
    for (uint32_t i = 0; i < layout->n; i++) {
        bool counts = layout->axis[i].dim == dim && !layout->axis[i].inner;
        cells = append(cells, r.of[i], counts);
    }
    return in_bytes(layout, cells);
}

/* ---- parts ---- */

static bool outermost_is_channels(const Layout *layout) {
    return layout->axis[0].dim == LAYOUT_C && !layout->axis[0].inner;
}

/* Bytes to the first cell of this digit on the outermost axis. */
static uint64_t part_at(const Layout *layout, const Radices *r,
                        uint64_t outermost) {
    uint64_t cell = outermost;
    for (uint32_t i = 1; i < layout->n; i++)
        cell = append(cell, r->of[i], 0);
    return in_bytes(layout, cell);
}

static uint64_t outermost_digit(const Layout *layout, const Volume *whole,
                                uint32_t c) {
    return digit(layout, whole, &layout->axis[0], &(Element){{c, 0, 0}, 0});
}

uint64_t address_part(const Layout *layout, const Volume *whole, uint32_t c) {
    layout = axes_of(layout, whole);
    Radices r = radices(layout, whole);
    if (!outermost_is_channels(layout))
        return 0;
    return part_at(layout, &r, outermost_digit(layout, whole, c));
}

void address_span(const Layout *layout, const Volume *whole, uint32_t c,
                  uint32_t n, uint64_t *first, uint64_t *end) {
    layout = axes_of(layout, whole);
    Radices r = radices(layout, whole);
    *first = 0;
    *end = address_bytes(layout, whole);
    if (!outermost_is_channels(layout))
        return;
    uint64_t last = outermost_digit(layout, whole, c + n - 1);
    *first = part_at(layout, &r, outermost_digit(layout, whole, c));
    if (c + n < whole->c && outermost_digit(layout, whole, whole->c - 1) > last)
        *end = part_at(layout, &r, last + 1);
}

/* ---- as an instruction takes it ---- */

bool address_agrees(const Layout *layout, const Volume *whole,
                    const AddressView *view, const uint32_t first[3],
                    const uint32_t n[3]) {
    const Layout *own_axes = axes_of(layout, &view->volume);
    layout = axes_of(layout, whole);
    Radices r = radices(layout, whole);
    Radices seen = radices(own_axes, &view->volume);
    if (view->offset % layout->element)
        return false;
    uint64_t start = view->offset / layout->element;
    for (int dim = 0; dim < 3; dim++)
        for (uint32_t i = 0; i < n[dim]; i++) {
            Element e = {{first[0], first[1], first[2]}, 0};
            Element own = {{view->c, 0, 0}, 0};
            e.at[dim] += i;
            own.at[dim] += i;
            if (cell_of(layout, whole, &r, &e) !=
                start + cell_of(own_axes, &view->volume, &seen, &own))
                return false;
            if (dim == LAYOUT_C &&
                copies_of(layout, whole, e.at[dim]) !=
                    copies_of(own_axes, &view->volume, own.at[dim]))
                return false;
        }
    return true;
}
