/* PQ-trees against all orders of six leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "pack/exact/pqtree.h"

enum { LEAVES = 6, MOST_SETS = 5 };

static bool side_by_side(const uint32_t *order, const bool *marked,
                         uint32_t n) {
    uint32_t run = 0, longest = 0;
    for (uint32_t i = 0; i < LEAVES; i++) {
        run = marked[order[i]] ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest == n;
}

typedef struct Sets {
    bool marked[MOST_SETS][LEAVES];
    uint32_t size[MOST_SETS], n;
} Sets;

static bool all_side_by_side(const Sets *sets, const uint32_t *order) {
    for (uint32_t k = 0; k < sets->n; k++)
        if (!side_by_side(order, sets->marked[k], sets->size[k]))
            return false;
    return true;
}

/* Is there an order, beginning with the first `n` of this one? */
static bool order_exists(const Sets *sets, uint32_t *order, uint32_t n) {
    if (n == LEAVES)
        return all_side_by_side(sets, order);
    for (uint32_t i = n; i < LEAVES; i++) {
        uint32_t leaf = order[i];
        order[i] = order[n];
        order[n] = leaf;
        bool found = order_exists(sets, order, n + 1);
        order[n] = order[i];
        order[i] = leaf;
        if (found)
            return true;
    }
    return false;
}

static void add_set(Sets *sets, uint64_t seed) {
    uint32_t k = sets->n++;
    for (uint32_t i = 0; i < LEAVES; i++) {
        sets->marked[k][i] = rng_bits(seed, i) % 2;
        sets->size[k] += sets->marked[k][i];
    }
    if (sets->size[k])
        return;
    sets->marked[k][0] = true;
    sets->size[k] = 1;
}

static const PqNode *six_leaves(Arena *arena) {
    const PqNode *leaf[LEAVES];
    for (uint32_t i = 0; i < LEAVES; i++)
        leaf[i] = pq_leaf(arena, 0, i);
    return pq_any(arena, 0, leaf, LEAVES);
}

static void test_all_orders(void **state) {
    (void)state;
    uint32_t refused = 0, deep = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        Arena *arena = arena_new("seed");
        Sets sets = {0};
        const PqNode *tree = six_leaves(arena);
        while (tree && sets.n < MOST_SETS) {
            uint32_t order[LEAVES] = {0, 1, 2, 3, 4, 5}, n = 0, last;
            add_set(&sets, seed * MOST_SETS + sets.n);
            last = sets.n - 1;
            tree =
                pq_together(arena, 0, tree, sets.marked[last], sets.size[last]);
            assert_int_equal(tree != NULL, order_exists(&sets, order, 0));
            refused += !tree;
            if (!tree)
                break;
            assert_int_equal(tree->n_leaves, LEAVES);
            pq_leaves(tree, order, &n);
            assert_true(all_side_by_side(&sets, order));
            deep += sets.n > 2;
        }
        arena_free(arena);
    }
    assert_true(refused > 500 && deep > 500);
}

/* What is cut out lay side by side, in an order that its witness tells. */
static void test_replace(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    static const bool chain[][LEAVES] = {{1, 1}, {0, 1, 1}, {0, 0, 1, 1}};
    const bool middle[LEAVES] = {0, 1, 1};
    const PqNode *tree = six_leaves(arena);
    for (int k = 0; k < 3; k++) {
        tree = pq_together(arena, 0, tree, chain[k], 2);
        assert_non_null(tree);
    }
    PqCut cut;
    tree = pq_replace(arena, 0, tree, middle, 2, pq_leaf(arena, 0, 9), &cut);
    assert_non_null(tree);
    assert_int_equal(tree->n_leaves, 5);
    assert_int_equal(cut.n, 2);
    assert_true(cut.witness == 0 || cut.witness == 3);
    assert_int_equal(cut.order[0], cut.witness == 0 ? 1 : 2);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_orders),
        cmocka_unit_test(test_replace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
