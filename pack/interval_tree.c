/* interval_tree.c - taken bytes in a tree over time; see interval_tree.h. */
#include "pack/interval_tree.h"

#include "base/order.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

typedef VEC(Run) Runs;

typedef struct Node {
    Runs all, some;
} Node;

struct Occupied {
    Arena *arena;
    uint32_t *birth; /* steps: rising, each once */
    uint32_t n_births;
    size_t n_leaves; /* a power of two; the root is node 1, its children 2 and
                      * 3, the leaves are the last */
    Node *node;
};

static int by_step(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return ORDER_UP(*x, *y);
}

/* How many births are before the step. */
static size_t births_before(const Occupied *o, uint32_t step) {
    size_t low = 0, high = o->n_births;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->birth[middle] < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

Occupied *occupied_new(Arena *arena, const PackProblem *problem) {
    Occupied *o = ARENA_NEW(arena, Occupied);
    uint32_t n = 0, kept = 0;
    o->arena = arena;
    o->birth = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        if (problem->buf[b].first < problem->buf[b].end)
            o->birth[n++] = problem->buf[b].first;
    if (n)
        qsort(o->birth, n, sizeof *o->birth, by_step);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || o->birth[i] != o->birth[kept - 1])
            o->birth[kept++] = o->birth[i];
    o->n_births = kept;
    for (o->n_leaves = 1; o->n_leaves < kept;)
        o->n_leaves *= 2;
    o->node = ARENA_ARRAY(arena, Node, 2 * o->n_leaves);
    return o;
}

/* ---- the nodes of a life ---- */

/* Lives conflict if and only if the younger's birth is in both: so a life is a
 * range of births, cut into nodes. */
typedef struct Cut {
    size_t whole[LOOK_MOST / 2], above[LOOK_MOST / 2];
    uint32_t n_whole, n_above;
} Cut;

static void cut_life(const Occupied *o, const Buffer *buf, Cut *cut) {
    const size_t first = o->n_leaves + births_before(o, buf->first);
    const size_t end = o->n_leaves + births_before(o, buf->end);
    cut->n_whole = cut->n_above = 0;
    for (size_t low = first, high = end; low < high; low /= 2, high /= 2) {
        if (low & 1)
            cut->whole[cut->n_whole++] = low++;
        if (high & 1)
            cut->whole[cut->n_whole++] = --high;
    }
    for (uint32_t up = 1; o->n_leaves >> up; up++) {
        size_t left = first >> up, right = (end - 1) >> up;
        if (left << up < first || (left + 1) << up > end)
            cut->above[cut->n_above++] = left;
        if (right != left && (right + 1) << up > end)
            cut->above[cut->n_above++] = right;
    }
}

/* ---- runs ---- */

/* The first run from `from` on that ends after `byte`, near ones found first.
 */
static uint32_t skip_runs(const Run *run, uint32_t n, uint32_t from,
                          uint64_t byte) {
    uint32_t stride = 1;
    while (n - from > stride && run[from + stride - 1].end <= byte) {
        from += stride;
        stride *= 2;
    }
    uint32_t high = n - from > stride ? from + stride : n;
    while (from < high) {
        uint32_t middle = from + (high - from) / 2;
        if (run[middle].end <= byte)
            from = middle + 1;
        else
            high = middle;
    }
    return from;
}

static void add_run(Arena *arena, Runs *runs, Run run) {
    uint32_t low = run.at ? skip_runs(runs->at, runs->n, 0, run.at - 1) : 0;
    uint32_t high = low;
    for (; high < runs->n && runs->at[high].at <= run.end; high++) {
        const Run *met = &runs->at[high];
        run = (Run){met->at < run.at ? met->at : run.at,
                    met->end > run.end ? met->end : run.end};
    }
    if (low == high)
        vec_push(arena, runs, run); /* room for one more */
    else
        runs->n -= high - low - 1;
    uint32_t left = runs->n - low - 1;
    uint32_t from = low == high ? low : high;
    if (low + 1 != from)
        memmove(runs->at + low + 1, runs->at + from, left * sizeof run);
    runs->at[low] = run;
}

void occupied_add(Occupied *o, const Buffer *buf, Run run) {
    Cut cut;
    cut_life(o, buf, &cut);
    for (uint32_t i = 0; i < cut.n_whole; i++) {
        Node *node = &o->node[cut.whole[i]];
        add_run(o->arena, &node->all, run);
        add_run(o->arena, &node->some, run);
    }
    for (uint32_t i = 0; i < cut.n_above; i++)
        add_run(o->arena, &o->node[cut.above[i]].some, run);
}

/* ---- gaps ---- */

static void see(Look *look, const Runs *runs) {
    if (runs->n)
        look->seen[look->n++] = (struct Seen){runs->at, runs->n, 0};
}

void occupied_look(const Occupied *o, const Buffer *buf, uint64_t bytes,
                   uint64_t align, uint64_t size, Look *look) {
    Cut cut;
    cut_life(o, buf, &cut);
    look->n = 0;
    look->steps = 0;
    look->floor = 0;
    look->bytes = bytes;
    look->align = align;
    look->size = size;
    for (uint32_t i = 0; i < cut.n_whole; i++)
        see(look, &o->node[cut.whole[i]].some);
    for (uint32_t i = 0; i < cut.n_above; i++)
        see(look, &o->node[cut.above[i]].all);
}

/* The lowest place from the floor on, the taken bytes aside. */
static bool lowest_place(const Look *look, uint64_t *at) {
    uint64_t over = look->floor % look->align;
    uint64_t pad = over ? look->align - over : 0;
    if (look->size < look->floor || look->size - look->floor < pad ||
        look->size - look->floor - pad < look->bytes)
        return false;
    *at = look->floor + pad;
    return true;
}

bool look_next(Look *look, Run *free) {
    uint32_t clear = 0; /* sets in a row that leave the place free */
    if (!lowest_place(look, &free->at))
        return false;
    for (uint32_t i = 0; clear < look->n; i = i + 1 < look->n ? i + 1 : 0) {
        struct Seen *seen = &look->seen[i];
        uint32_t next = skip_runs(seen->run, seen->n, seen->next, free->at);
        clear++;
        look->steps++;
        while (next < seen->n && seen->run[next].at < free->at + look->bytes) {
            look->floor = seen->run[next++].end;
            clear = 1;
            look->steps++;
            if (!lowest_place(look, &free->at))
                return false;
        }
        seen->next = next;
    }
    free->end = look->size;
    for (uint32_t i = 0; i < look->n; i++) {
        const struct Seen *seen = &look->seen[i];
        if (seen->next < seen->n && seen->run[seen->next].at < free->end)
            free->end = seen->run[seen->next].at;
    }
    look->floor = free->end;
    return true;
}
