/* pqtree.c - see pqtree.h.
 *
 * A node is full if all of its leaves are marked, empty if none is, else
 * partial. The deepest node above all marked leaves is the root of the change.
 * There the full children are brought together; a partial child must have its
 * full leaves at one end, so it is flattened to a list, empty ones first:
 *
 *     P: e e f f p q   ->  P: e e Q(empty of p .. full of p, f f, full of q ..)
 *     Q: e p f q e     ->  Q: e (p flat) f (q flat, reversed) e
 *
 * The templates of the paper, written as recursion over lists; it takes time in
 * proportion to the tree, not to the set, which is little in trees of those
 * that are alive at one time.
 */
#include "pack/exact/pqtree.h"

typedef struct Change {
    Arena *arena;
    uint32_t stamp;
    const bool *marked;
    const PqNode *other; /* NULL: the marked leaves stay */
    PqCut *cut;
} Change;

/* ---- nodes ---- */

static const PqNode *node_of(Arena *arena, uint32_t stamp, PqKind kind,
                             const PqNode *const *child, uint32_t n) {
    if (n == 1)
        return child[0];
    PqNode *node = ARENA_NEW(arena, PqNode);
    *node = (PqNode){.kind = n == 2 ? PQ_P : kind, .stamp = stamp, .n = n};
    node->child = ARENA_COPY(arena, const PqNode *, child, n);
    for (uint32_t i = 0; i < n; i++)
        node->n_leaves += child[i]->n_leaves;
    return node;
}

const PqNode *pq_leaf(Arena *arena, uint32_t stamp, uint32_t leaf) {
    PqNode *node = ARENA_NEW(arena, PqNode);
    *node = (PqNode){PQ_LEAF, leaf, stamp, 0, 1, NULL};
    return node;
}

const PqNode *pq_any(Arena *arena, uint32_t stamp, const PqNode *const *child,
                     uint32_t n) {
    return node_of(arena, stamp, PQ_P, child, n);
}

void pq_leaves(const PqNode *tree, uint32_t *list, uint32_t *n) {
    if (tree->kind == PQ_LEAF)
        list[(*n)++] = tree->leaf;
    for (uint32_t i = 0; i < tree->n; i++)
        pq_leaves(tree->child[i], list, n);
}

static uint32_t any_leaf(const PqNode *tree) {
    while (tree->n)
        tree = tree->child[0];
    return tree->leaf;
}

/* ---- labels ---- */

static uint32_t count_marked(const Change *c, const PqNode *node) {
    if (node->kind == PQ_LEAF)
        return c->marked[node->leaf];
    uint32_t n = 0;
    for (uint32_t i = 0; i < node->n; i++)
        n += count_marked(c, node->child[i]);
    return n;
}

typedef enum Label { EMPTY, PARTIAL, FULL } Label;

static Label label(const Change *c, const PqNode *node) {
    uint32_t n = count_marked(c, node);
    return !n ? EMPTY : n == node->n_leaves ? FULL : PARTIAL;
}

/* The children of a P node by label. */
typedef struct Kinds {
    PqNodes of[3];
} Kinds;

static Kinds sort_children(const Change *c, const PqNode *node) {
    Kinds kinds = {0};
    for (uint32_t i = 0; i < node->n; i++)
        vec_push(c->arena, &kinds.of[label(c, node->child[i])], node->child[i]);
    return kinds;
}

/* ---- lists ---- */

static void add_all(const Change *c, PqNodes *to, const PqNodes *from,
                    bool reversed) {
    for (uint32_t i = 0; i < from->n; i++)
        vec_push(c->arena, to, from->at[reversed ? from->n - 1 - i : i]);
}

/* As one child, if there are any. */
static void add_group(const Change *c, PqNodes *to, const PqNodes *nodes) {
    if (nodes->n)
        vec_push(c->arena, to, pq_any(c->arena, c->stamp, nodes->at, nodes->n));
}

static bool flatten(const Change *c, const PqNode *node, PqNodes *list);

/* The children of a Q node, from the empty end to the full one. */
static bool flatten_q(const Change *c, const PqNode *node, PqNodes *list) {
    Label front = label(c, node->child[0]);
    Label back = label(c, node->child[node->n - 1]);
    bool reversed = front > back;
    Label last = EMPTY;
    for (uint32_t i = 0; i < node->n; i++) {
        const PqNode *child = node->child[reversed ? node->n - 1 - i : i];
        Label here = label(c, child);
        if (here < last || (here == PARTIAL && last == PARTIAL))
            return false;
        if (!flatten(c, child, list))
            return false;
        last = here;
    }
    return true;
}

static bool flatten_p(const Change *c, const PqNode *node, PqNodes *list) {
    Kinds kinds = sort_children(c, node);
    if (kinds.of[PARTIAL].n > 1)
        return false;
    add_group(c, list, &kinds.of[EMPTY]);
    if (kinds.of[PARTIAL].n && !flatten(c, kinds.of[PARTIAL].at[0], list))
        return false;
    add_group(c, list, &kinds.of[FULL]);
    return true;
}

/* Adds pieces of the node: empty ones, then full ones. */
static bool flatten(const Change *c, const PqNode *node, PqNodes *list) {
    if (label(c, node) != PARTIAL) {
        vec_push(c->arena, list, node);
        return true;
    }
    return node->kind == PQ_Q ? flatten_q(c, node, list)
                              : flatten_p(c, node, list);
}

/* ---- the change ---- */

static void cut_out(const Change *c, const PqNodes *full, uint32_t witness) {
    uint32_t n = 0;
    if (!c->other)
        return;
    for (uint32_t i = 0; i < full->n; i++)
        n += full->at[i]->n_leaves;
    uint32_t *order = ARENA_ARRAY(c->arena, uint32_t, n);
    *c->cut = (PqCut){order, 0, witness};
    for (uint32_t i = 0; i < full->n; i++)
        pq_leaves(full->at[i], order, &c->cut->n);
}

/* A Q node of the list, in which the full pieces are side by side and empty
 * ones at one end at least. */
static const PqNode *replace_in_list(const Change *c, PqNodes list) {
    PqNodes turned = {0}, full = {0}, kept = {0};
    add_all(c, &turned, &list, label(c, list.at[0]) == FULL);
    for (uint32_t i = 0; i < turned.n; i++) {
        bool is_full = label(c, turned.at[i]) == FULL;
        if (is_full && !full.n && c->other)
            vec_push(c->arena, &kept, c->other);
        if (is_full)
            vec_push(c->arena, &full, turned.at[i]);
        if (!is_full || !c->other)
            vec_push(c->arena, &kept, turned.at[i]);
    }
    cut_out(c, &full, any_leaf(turned.at[0]));
    return node_of(c->arena, c->stamp, PQ_Q, kept.at, kept.n);
}

static const PqNode *replace_in_p(const Change *c, const PqNode *node) {
    Kinds kinds = sort_children(c, node);
    PqNodes list = {0}, other_end = {0}, *partial = &kinds.of[PARTIAL];
    PqNodes *children = &kinds.of[EMPTY];
    if (partial->n > 2)
        return NULL;
    if (!partial->n) {
        cut_out(c, &kinds.of[FULL], PQ_NONE);
        if (c->other)
            vec_push(c->arena, children, c->other);
        else
            add_group(c, children, &kinds.of[FULL]);
        return pq_any(c->arena, c->stamp, children->at, children->n);
    }
    if (!flatten(c, partial->at[0], &list))
        return NULL;
    add_group(c, &list, &kinds.of[FULL]);
    if (partial->n == 2 && !flatten(c, partial->at[1], &other_end))
        return NULL;
    add_all(c, &list, &other_end, true);
    vec_push(c->arena, children, replace_in_list(c, list));
    return pq_any(c->arena, c->stamp, children->at, children->n);
}

/* Empty, partial, full ..., partial, empty. */
static const PqNode *replace_in_q(const Change *c, const PqNode *node) {
    PqNodes list = {0};
    enum { BEFORE, INSIDE, BEHIND } at = BEFORE;
    for (uint32_t i = 0; i < node->n; i++) {
        Label here = label(c, node->child[i]);
        PqNodes piece = {0};
        bool opens = at == BEFORE;
        if ((here != EMPTY && at == BEHIND) ||
            !flatten(c, node->child[i], &piece))
            return NULL;
        if (here != EMPTY || at != BEFORE)
            at = here == FULL || (here == PARTIAL && opens) ? INSIDE : BEHIND;
        add_all(c, &list, &piece, here == PARTIAL && !opens);
    }
    return replace_in_list(c, list);
}

static const PqNode *replace(const Change *c, const PqNode *node, uint32_t n);

/* The node with another child in the place of one. */
static const PqNode *with_child(const Change *c, const PqNode *node,
                                uint32_t at, const PqNode *child) {
    if (!child)
        return NULL;
    PqNode *copy = ARENA_NEW(c->arena, PqNode);
    *copy = *node;
    const PqNode **list =
        ARENA_COPY(c->arena, const PqNode *, node->child, node->n);
    list[at] = child;
    copy->child = list;
    copy->n_leaves += child->n_leaves - node->child[at]->n_leaves;
    return copy;
}

static const PqNode *replace(const Change *c, const PqNode *node, uint32_t n) {
    if (node->n_leaves == n) {
        cut_out(c, &(PqNodes){&node, 1, 1}, PQ_NONE);
        return c->other ? c->other : node;
    }
    for (uint32_t i = 0; i < node->n; i++)
        if (count_marked(c, node->child[i]) == n)
            return with_child(c, node, i, replace(c, node->child[i], n));
    return node->kind == PQ_Q ? replace_in_q(c, node) : replace_in_p(c, node);
}

const PqNode *pq_replace(Arena *arena, uint32_t stamp, const PqNode *tree,
                         const bool *marked, uint32_t n, const PqNode *other,
                         PqCut *cut) {
    Change c = {arena, stamp, marked, other, cut};
    return replace(&c, tree, n);
}

const PqNode *pq_together(Arena *arena, uint32_t stamp, const PqNode *tree,
                          const bool *marked, uint32_t n) {
    Change c = {.arena = arena, .stamp = stamp, .marked = marked};
    return replace(&c, tree, n);
}

static void add_stamps(const Change *c, const PqNode *node, PqStamps *stamps) {
    if (!count_marked(c, node))
        return;
    vec_push(c->arena, stamps, node->stamp);
    for (uint32_t i = 0; i < node->n; i++)
        add_stamps(c, node->child[i], stamps);
}

void pq_reasons(Arena *arena, const PqNode *tree, const bool *marked,
                uint32_t n, PqStamps *stamps) {
    Change c = {.arena = arena, .marked = marked};
    for (uint32_t i = 0; i < tree->n; i++)
        if (count_marked(&c, tree->child[i]) == n) {
            tree = tree->child[i];
            i = (uint32_t)-1;
        }
    add_stamps(&c, tree, stamps);
}

static void add_run(const Change *c, const PqNode *const *node, uint32_t n,
                    PqRuns *runs) {
    uint32_t n_leaves = 0;
    for (uint32_t i = 0; i < n; i++)
        n_leaves += node[i]->n_leaves;
    uint32_t *leaf = ARENA_ARRAY(c->arena, uint32_t, n_leaves);
    n_leaves = 0;
    for (uint32_t i = 0; i < n; i++)
        pq_leaves(node[i], leaf, &n_leaves);
    vec_push(c->arena, runs, ((PqRun){leaf, n_leaves}));
}

static void find_runs(const Change *c, const PqNode *node, PqRuns *runs) {
    Label here = label(c, node);
    if (here == FULL)
        add_run(c, &node, 1, runs);
    if (here != PARTIAL)
        return;
    for (uint32_t i = 0, n; i < node->n; i += n) {
        for (n = 0; node->kind == PQ_Q && i + n < node->n; n++)
            if (label(c, node->child[i + n]) != FULL)
                break;
        if (n > 1)
            add_run(c, node->child + i, n, runs);
        else
            n = 1, find_runs(c, node->child[i], runs);
    }
}

void pq_runs(Arena *arena, const PqNode *tree, const bool *marked,
             PqRuns *runs) {
    Change c = {.arena = arena, .marked = marked};
    find_runs(&c, tree, runs);
}
