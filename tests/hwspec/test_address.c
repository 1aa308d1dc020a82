/* Addresses by definition: against memory written out cell by cell, against
 * layout.c, and as instructions take operands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hwspec/address.h"
#include "tests/hwspec/layouts.h"

static uint32_t size_of(const Volume *v, LayoutDim dim) {
    const uint32_t size[] = {v->c, v->h, v->w};
    return size[dim];
}

/* ---- memory written out ---- */

/* Cells in the order of memory: a loop an axis, one in the other. */
typedef struct Loops {
    const Layout *layout;
    const Volume *v;
    uint64_t cell;
    uint32_t seen; /* elements */
    uint32_t at[LAYOUT_MAX_AXES];
} Loops;

static uint32_t count_of(const LayoutAxis *axis, uint32_t size) {
    uint32_t n = size;
    if (axis->split)
        n = axis->inner ? axis->split : (size + axis->split - 1) / axis->split;
    if (axis->inner && axis->clip && size < n)
        n = size;
    return (n + axis->round - 1) / axis->round * axis->round;
}

/* False: padding. */
static bool element_at(const Loops *l, uint32_t chw[3]) {
    uint32_t outer[3] = {0}, inner[3] = {0}, split[3] = {1, 1, 1};
    for (uint32_t i = 0; i < l->layout->n; i++) {
        const LayoutAxis *axis = &l->layout->axis[i];
        split[axis->dim] = axis->split ? axis->split : 1;
        (axis->inner ? inner : outer)[axis->dim] = l->at[i];
    }
    for (int d = 0; d < 3; d++) {
        chw[d] = outer[d] * split[d] + inner[d];
        if (inner[d] >= split[d] || chw[d] >= size_of(l->v, (LayoutDim)d))
            return false;
    }
    return true;
}

static void visit(Loops *l, uint32_t axis) {
    uint32_t chw[3];
    if (axis == l->layout->n) {
        if (element_at(l, chw)) {
            l->seen++;
            assert_true(address_cell(l->layout, l->v, chw[0], chw[1], chw[2],
                                     0) == l->cell);
        }
        l->cell++;
        return;
    }
    const LayoutAxis *a = &l->layout->axis[axis];
    uint32_t n = count_of(a, size_of(l->v, a->dim));
    for (l->at[axis] = 0; l->at[axis] < n; l->at[axis]++)
        visit(l, axis + 1);
}

static void cells_follow_each_other(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        Dice dice = {i, 0};
        Layout layout = random_layout(&dice);
        Volume v = random_volume(&dice, &layout);
        v.repl = (Repl){0};
        Loops loops = {.layout = &layout, .v = &v};
        visit(&loops, 0);
        assert_int_equal(loops.seen, v.c * v.h * v.w);
        assert_true(address_cells(&layout, &v) == loops.cell);
        assert_true(address_bytes(&layout, &v) == loops.cell * layout.element);
    }
}

/* ---- beside layout.c ---- */

static void check_elements(const Layout *layout, const Volume *v,
                           const LayoutTables *t) {
    for (uint32_t c = 0; c < v->c; c++)
        for (uint32_t h = 0; h < v->h; h++)
            for (uint32_t w = 0; w < v->w; w++)
                for (uint32_t k = 0; k < layout_copies(layout, v, c); k++) {
                    uint64_t cell = address_cell(layout, v, c, h, w, k);
                    assert_true(cell * layout->element ==
                                layout_offset(layout, v, c, h, w, k));
                    assert_true(cell == t->c_at[c] + t->h_at[h] + t->w_at[w] +
                                            k * t->copy_step);
                }
}

static void both_agree(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    for (uint64_t i = 0; i < 3000; i++) {
        Dice dice = {i, 0};
        Layout layout = random_layout(&dice);
        Volume v = random_volume(&dice, &layout);
        assert_true(address_bytes(&layout, &v) == layout_bytes(&layout, &v));
        LayoutTables t = address_tables(arena, &layout, &v);
        check_elements(&layout, &v, &t);
        for (uint32_t c = 0; c < v.c; c++) {
            assert_int_equal(t.copies[c], layout_copies(&layout, &v, c));
            assert_true(address_part(&layout, &v, c) ==
                        layout_part_offset(&layout, &v, c));
        }
        arena_reset(arena);
    }
    arena_free(arena);
}

/* Of a layout of cases, what each of the cases gives by itself. */
static void both_take_the_case(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    uint32_t taken[3] = {0};
    for (uint64_t i = 0; i < 2000; i++) {
        Dice dice = {i, 1};
        LayoutCase room[3];
        Layout layout = random_cases(&dice, room);
        Volume v = random_volume(&dice, &room[0].axes);
        const Layout *own = layout_case(&layout, &v);
        taken[own == &room[0].axes ? 0 : own == &room[1].axes ? 1 : 2]++;
        assert_true(layout_bytes(&layout, &v) == layout_bytes(own, &v));
        assert_true(address_bytes(&layout, &v) == address_bytes(own, &v));
        LayoutTables t = address_tables(arena, &layout, &v);
        check_elements(&layout, &v, &t);
        LayoutTables other = layout_tables(arena, &layout, &v);
        for (uint32_t w = 0; w < v.w; w++)
            assert_true(other.w_at[w] == t.w_at[w] * layout.element);
        for (uint32_t c = 0; c < v.c; c++)
            assert_true(address_part(&layout, &v, c) ==
                        layout_part_offset(&layout, &v, c));
        assert_true(address_part(&layout, &v, v.c - 1) ==
                    address_part(own, &v, v.c - 1));
        arena_reset(arena);
    }
    assert_true(taken[0] > 100 && taken[1] > 100 && taken[2] > 100);
    arena_free(arena);
}

static void steps_agree(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 2000; i++) {
        Dice dice = {i, 2};
        LayoutCase room[3];
        Layout layout = random_cases(&dice, room);
        Volume v = random_volume(&dice, &layout);
        for (int d = LAYOUT_C; d <= LAYOUT_W; d++) {
            LayoutDim dim = (LayoutDim)d;
            uint32_t split = layout_split(&layout, &v, dim);
            uint64_t step = layout_step(&layout, &v, dim);
            assert_true(step == address_step(&layout, &v, dim));
            if (split >= size_of(&v, dim))
                continue;
            uint32_t at[3] = {0};
            at[dim] = split;
            assert_true(layout_offset(&layout, &v, at[0], at[1], at[2], 0) ==
                        step);
        }
    }
}

static void both_are_capped(void **state) {
    (void)state;
    Layout layout = {.n = 3,
                     .element = 4,
                     .axis = {{LAYOUT_C, 0, false, false, 4},
                              {LAYOUT_H, 0, false, false, 1},
                              {LAYOUT_W, 0, false, false, 1}}};
    Volume v = {UINT32_MAX, UINT32_MAX, UINT32_MAX, {0}};
    Volume none = {0, 4, 4, {0}};
    assert_true(address_bytes(&layout, &v) == UINT64_MAX);
    assert_true(address_part(&layout, &v, UINT32_MAX) == UINT64_MAX);
    assert_true(address_bytes(&layout, &none) == 0);
}

/* ---- spans ---- */

/* A channel lies in the span of a part if its outermost digit is one of the
 * part's; none of its bytes does else. */
static void check_span(const Layout *layout, const Volume *v, uint32_t c,
                       uint32_t n) {
    uint64_t first, end, size = layout->element;
    address_span(layout, v, c, n, &first, &end);
    assert_true(first < end && end <= address_bytes(layout, v));
    for (uint32_t i = 0; i < v->c; i++) {
        bool among = layout_granule(layout) == 0;
        for (uint32_t k = c; k < c + n; k++)
            among |= address_part(layout, v, i) == address_part(layout, v, k);
        for (uint32_t h = 0; h < v->h; h++)
            for (uint32_t w = 0; w < v->w; w++) {
                uint64_t at = address_cell(layout, v, i, h, w, 0) * size;
                assert_true(among == (first <= at && at + size <= end));
                assert_true(among || at + size <= first || end <= at);
            }
    }
}

static void spans_hold_their_channels(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        Dice dice = {i, 0};
        Layout layout = random_layout(&dice);
        Volume v = random_volume(&dice, &layout);
        uint32_t c = roll(&dice, v.c);
        check_span(&layout, &v, c, 1 + roll(&dice, v.c - c));
    }
}

/* ---- views ---- */

static bool agrees_slowly(const Layout *layout, const Volume *v,
                          const AddressView *view, const uint32_t at[3],
                          const uint32_t n[3]) {
    uint64_t start = view->offset / layout->element;
    for (uint32_t c = 0; c < n[0]; c++)
        for (uint32_t h = 0; h < n[1]; h++)
            for (uint32_t w = 0; w < n[2]; w++)
                if (address_cell(layout, v, at[0] + c, at[1] + h, at[2] + w,
                                 0) !=
                    start + address_cell(layout, &view->volume, view->c + c, h,
                                         w, 0))
                    return false;
    return view->offset % layout->element == 0;
}

/* Parts of channels, rows and columns, taken for volumes of their own. */
static void views_agree_where_cells_do(void **state) {
    (void)state;
    uint32_t count[2] = {0};
    for (uint64_t i = 0; i < 20000; i++) {
        Dice dice = {i, 0};
        Layout layout = random_layout(&dice);
        Volume v = random_volume(&dice, &layout);
        uint32_t at[3], n[3];
        v.repl = (Repl){0};
        for (int d = 0; d < 3; d++) {
            uint32_t size = size_of(&v, (LayoutDim)d);
            at[d] = roll(&dice, 2) ? 0 : roll(&dice, size);
            n[d] =
                roll(&dice, 2) ? size - at[d] : 1 + roll(&dice, size - at[d]);
        }
        AddressView view = {.volume = {n[0], n[1], n[2], {0}}};
        view.offset =
            layout.element * address_cell(&layout, &v, at[0], at[1], at[2], 0);
        view.offset += roll(&dice, 16) == 0;
        bool agrees = agrees_slowly(&layout, &v, &view, at, n);
        assert_int_equal(address_agrees(&layout, &v, &view, at, n), agrees);
        count[agrees]++;
    }
    assert_true(count[0] > 1000 && count[1] > 1000);
}

/* Four of 12 channels, eight a pixel: as a volume of their own they are packed
 * where an inner part is clipped. */
static void a_short_section_is_no_volume(void **state) {
    (void)state;
    Layout layout = {.n = 4,
                     .element = 1,
                     .axis = {{LAYOUT_C, 8, false, false, 1},
                              {LAYOUT_H, 0, false, false, 1},
                              {LAYOUT_W, 0, false, false, 1},
                              {LAYOUT_C, 8, true, true, 1}}};
    Volume v = {12, 2, 2, {0}}, narrow = {6, 2, 2, {0}};
    AddressView view = {.volume = {4, 2, 2, {0}}, .offset = 32};
    const uint32_t at[3] = {8, 0, 0}, n[3] = {4, 2, 2};
    assert_false(address_agrees(&layout, &v, &view, at, n));
    assert_false(layout_part_alone(&layout, &v, 8, 4));
    assert_false(layout_part_alone(&layout, &v, 0, 4));
    assert_true(layout_part_alone(&layout, &v, 0, 8));
    assert_false(layout_part_alone(&layout, &narrow, 0, 4));
    layout.axis[3].round = 8;
    assert_true(address_agrees(&layout, &v, &view, at, n));
    assert_true(layout_part_alone(&layout, &v, 8, 4));
    layout.axis[3] = (LayoutAxis){LAYOUT_C, 8, true, false, 1};
    assert_true(address_agrees(&layout, &v, &view, at, n));
    assert_true(layout_part_alone(&layout, &v, 8, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_follow_each_other),
        cmocka_unit_test(both_agree),
        cmocka_unit_test(both_take_the_case),
        cmocka_unit_test(steps_agree),
        cmocka_unit_test(both_are_capped),
        cmocka_unit_test(spans_hold_their_channels),
        cmocka_unit_test(views_agree_where_cells_do),
        cmocka_unit_test(a_short_section_is_no_volume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
