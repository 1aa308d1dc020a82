/* Bodies of boxes: no two meet where they are placed, whatever the memory; and
 * of two that grow, one finds its place above the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "pack/flippable.h"

enum { ORDERS = 150 };

static uint64_t low(const RigidGroup *x, const Box *p) {
    return x->offset + (x->turned && p->turns ? x->bytes - p->high : p->low);
}

static bool meet(const RigidGroup *x, const Box *p, const RigidGroup *y,
                 const Box *q) {
    return p->first < q->end && q->first < p->end &&
           low(x, p) < low(y, q) + q->high - q->low &&
           low(y, q) < low(x, p) + p->high - p->low;
}

static void check_pair(const RigidGroups *b, const RigidGroup *x,
                       const RigidGroup *y) {
    for (uint32_t i = 0; i < x->n_boxes; i++)
        for (uint32_t k = 0; k < y->n_boxes; k++)
            assert_false(meet(x, &b->box.at[x->first_box + i], y,
                              &b->box.at[y->first_box + k]));
}

static void check_all(const RigidGroups *b) {
    for (uint32_t i = 0; i < b->body.n; i++) {
        assert_true(b->body.at[i].offset + b->body.at[i].bytes <= b->size);
        assert_int_equal(b->body.at[i].offset % b->align, 0);
        for (uint32_t k = 0; k < i; k++)
            check_pair(b, &b->body.at[i], &b->body.at[k]);
    }
}

/* `low` bytes from `first` on, `high` from `grows` to `end`. */
static void add(RigidGroups *b, uint32_t first, uint32_t grows, uint32_t end,
                uint64_t low, uint64_t high) {
    body_add(b, high);
    if (first < grows)
        body_box(b, (Box){first, grows, 0, low, false});
    body_box(b, (Box){grows, end, 0, high, false});
}

typedef struct Grown {
    uint32_t first, grows, end;
    uint64_t low, high;
} Grown;

/* U-Net in 29,360,128 bytes, in words: concats grow when their second member
 * comes, and one of them must hang from the top. */
static const Grown u_net[] = {
    {0, 0, 2, 0, 10240},    {0, 0, 4, 0, 163840},   {4, 4, 8, 0, 40960},
    {6, 6, 10, 0, 81920},   {10, 10, 14, 0, 24576}, {12, 12, 16, 0, 49152},
    {16, 16, 20, 0, 16384}, {18, 18, 22, 0, 32768}, {22, 22, 26, 0, 8192},
    {24, 24, 26, 0, 16384}, {28, 28, 30, 0, 16384}, {20, 28, 32, 32768, 65536},
    {34, 34, 36, 0, 32768}, {34, 34, 38, 0, 32768}, {14, 36, 42, 49152, 98304},
    {40, 40, 44, 0, 49152}, {42, 42, 46, 0, 49152}, {8, 44, 50, 81920, 163840},
    {48, 48, 52, 0, 81920}, {50, 50, 54, 0, 81920}, {2, 52, 62, 166390, 330230},
    {56, 56, 57, 0, 80640}, {56, 56, 59, 0, 39040}, {58, 58, 61, 0, 37760},
    {60, 60, 61, 0, 1180},
};

static void test_one_above_the_other(void **state) {
    (void)state;
    Arena *arena = arena_new("bodies");
    RigidGroups b = {.arena = arena, .size = 458752, .align = 1};
    for (uint32_t i = 0; i < sizeof u_net / sizeof *u_net; i++)
        add(&b, u_net[i].first, u_net[i].grows, u_net[i].end, u_net[i].low,
            u_net[i].high);
    assert_true(bodies_place(&b, ORDERS));
    check_all(&b);
    arena_free(arena);
}

static void test_random_ones_do_not_meet(void **state) {
    (void)state;
    uint32_t placed = 0;
    for (uint32_t seed = 0; seed < 200; seed++) {
        Arena *arena = arena_new("bodies");
        RigidGroups b = {.arena = arena, .size = 24, .align = 1 + seed % 3};
        for (uint32_t i = 0; i < 10; i++) {
            uint32_t bits = (uint32_t)rng_bits(seed, i);
            uint32_t first = bits % 16, grows = first + (bits >> 8) % 6;
            uint64_t low = 1 + (bits >> 16) % 5;
            add(&b, first, grows, grows + 1 + (bits >> 24) % 6, low,
                low + (bits >> 28) % 6);
        }
        if (bodies_place(&b, ORDERS)) {
            placed++;
            check_all(&b);
        }
        arena_free(arena);
    }
    assert_in_range(placed, 20, 199);
}

/* All of it up to `leaves` and from `comes` on, `kept` bytes between. */
static void add_kept(RigidGroups *b, uint32_t first, uint32_t leaves,
                     uint32_t comes, uint64_t kept, bool turns) {
    enum { ALL = 6 };
    body_add(b, ALL);
    body_box(b, (Box){first, leaves, 0, ALL, false});
    body_box(b, (Box){leaves, comes, 0, kept, turns});
    body_box(b, (Box){comes, comes + 1, 0, ALL, false});
}

/* The second leaves when the first comes back, and what is made then is there
 * with both: what one of them keeps must lie at its other end. */
static void test_one_keeps_its_end(void **state) {
    (void)state;
    for (int turns = 0; turns < 2; turns++) {
        Arena *arena = arena_new("bodies");
        RigidGroups b = {.arena = arena, .size = 12, .align = 1};
        add_kept(&b, 0, 2, 8, 3, turns);
        add_kept(&b, 4, 8, 14, 3, turns);
        body_add(&b, 2);
        body_box(&b, (Box){7, 9, 0, 2, false});
        assert_int_equal(bodies_place(&b, ORDERS), turns);
        if (turns)
            check_all(&b);
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_above_the_other),
        cmocka_unit_test(test_one_keeps_its_end),
        cmocka_unit_test(test_random_ones_do_not_meet)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
