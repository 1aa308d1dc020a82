/* Rows of some channels of two volumes: whether they share a byte, against all
 * their bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/access.h"
#include "base/rng.h"
#include "tests/effort.h"

enum { MOST = 4096, CASES = 20000, SANITIZED = 2000 };

typedef struct Rolls {
    uint64_t seed, n;
} Rolls;

static uint32_t roll(Rolls *r, uint32_t below) {
    return (uint32_t)(rng_bits(r->seed, r->n++) % below);
}

/* An order of the axes; at times, their ends are padded. */
static Layout layout_of(Rolls *r) {
    static const LayoutDim order[][3] = {
        {LAYOUT_C, LAYOUT_H, LAYOUT_W}, {LAYOUT_C, LAYOUT_H, LAYOUT_W},
        {LAYOUT_H, LAYOUT_W, LAYOUT_C}, {LAYOUT_H, LAYOUT_C, LAYOUT_W},
        {LAYOUT_W, LAYOUT_H, LAYOUT_C}, {LAYOUT_C, LAYOUT_W, LAYOUT_H}};
    const LayoutDim *dim = order[roll(r, 6)];
    Layout layout = {.n = 3, .element = 1 + roll(r, 2)};
    bool pads = roll(r, 3) == 0;
    for (uint32_t i = 0; i < 3; i++)
        layout.axis[i] =
            (LayoutAxis){.dim = dim[i], .round = pads ? 1 + roll(r, 3) : 1};
    return layout;
}

static void access_roll(Rolls *r, const Layout *layout, Placement *p,
                        Access *a) {
    Volume v = {1 + roll(r, 6), 1 + roll(r, 6), 1 + roll(r, 6), {0}};
    uint32_t c = roll(r, v.c), row = roll(r, v.h);
    bool ring = roll(r, 4) == 0;
    *p = (Placement){.whole = v,
                     .offset = roll(r, 40),
                     .bytes = layout_bytes(layout, &v),
                     .part_c = c,
                     .n_c = 1 + roll(r, v.c - c)};
    *a = (Access){.at = p,
                  .start = p->offset,
                  .first = p->offset,
                  .end = p->offset + p->bytes,
                  .row = row,
                  .rows = 1 + roll(r, ring ? v.h : v.h - row),
                  .exact = true};
}

static void mark(const Layout *layout, const Access *a, uint8_t bit,
                 uint8_t *touched) {
    const Placement *p = a->at;
    for (uint32_t c = p->part_c; c < p->part_c + p->n_c; c++)
        for (uint32_t h = 0; h < a->rows; h++)
            for (uint32_t w = 0; w < p->whole.w; w++) {
                uint32_t row = (a->row + h) % p->whole.h;
                uint64_t at =
                    p->offset + layout_offset(layout, &p->whole, c, row, w, 0);
                for (uint32_t i = 0; i < layout->element; i++)
                    touched[at + i] |= bit;
            }
}

static bool have_common(const Layout *layout, const Access *a,
                        const Access *b) {
    uint8_t touched[MOST] = {0};
    bool any = false;
    mark(layout, a, 1, touched);
    mark(layout, b, 2, touched);
    for (uint32_t i = 0; i < MOST; i++)
        any |= touched[i] == 3;
    return any;
}

/* Nor is one found in vain where channels are the first axis, rows the next. */
static void no_byte_is_missed(void **state) {
    uint32_t n[2] = {0};
    (void)state;
    for (uint32_t i = 0; i < cases_of(CASES, SANITIZED); i++) {
        Rolls r = {.seed = i};
        Layout layout = layout_of(&r);
        HwMemory memory = {.layout = &layout};
        HwSpec spec = {.n_memories = 1, .memory = &memory};
        Placement p, q;
        Access a, b;
        access_roll(&r, &layout, &p, &a);
        access_roll(&r, &layout, &q, &b);
        Accesses reads = {1, 1, &a, {0}, {0}}, writes = {1, 0, &b, {0}, {0}};
        bool common = have_common(&layout, &a, &b);
        bool found = accesses_touch(&spec, &reads, &writes);
        assert_true(found || !common);
        if (layout.axis[0].dim == LAYOUT_C && layout.axis[1].dim == LAYOUT_H &&
            layout.axis[2].round == 1)
            assert_int_equal(found, common);
        n[found]++;
    }
    assert_true(n[0] > n[1] / 8 && n[1] > n[0] / 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_byte_is_missed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
