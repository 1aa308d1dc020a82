/* channels.c - which of several backing memories each volume goes to; see
 * emit.h.
 *
 * Input: all actions, over regions that lie in the first backing memory.
 * Output: the memory of each region.
 * Method: what moves most chooses first. Wires of different memories move at
 * the same time, if there is more than one unit that moves: so each goes where
 * the fullest wires, within a few steps of each of its transfers, get the least
 * more to do. Where one unit moves all, to the fastest that has room.
 */
#include "alloc/lower/emit.h"

#include "base/order.h"

#include <stdlib.h>

enum { WINDOW = 4 }; /* steps: transfers run ahead */

/* A region of which something is moved. */
typedef struct Item {
    uint32_t region;
    uint64_t bytes, moved; /* that it takes, that are moved of it */
    uint32_t memories;     /* bit (1 << memory): where it may be */
    uint32_t chosen;
} Item;

typedef struct Move {
    uint32_t item, step;
    uint64_t bytes;
} Move;

typedef struct Spread {
    Arena *arena;
    const Emit *e;
    const HwSpec *spec;
    VEC(Item) item;
    VEC(Move) move; /* by item */
    uint32_t *of_region;
    double *load;     /* seconds, by window and wires */
    uint64_t *filled; /* bytes, by memory */
    uint32_t n_windows;
} Spread;

static bool several(uint32_t memories) {
    return (memories & (memories - 1)) != 0;
}

/* ---- what is moved ---- */

static uint32_t item_add(Spread *s, Item item) {
    vec_push(s->arena, &s->item, item);
    return s->item.n - 1;
}

static void move_add(Spread *s, uint32_t item, const Action *a,
                     uint64_t bytes) {
    Move move = {item, a->at, bytes};
    vec_push(s->arena, &s->move, move);
    s->item.at[item].moved += bytes;
}

static void add_volume(Spread *s, const Action *a) {
    uint32_t outside = a->kind == ACTION_LOAD ? a->in[0] : a->out;
    const Placement *p = &s->e->placement.at[outside];
    uint32_t region = s->e->region_of.at[outside];
    const Region *r = &s->e->regions.at.at[region];
    bool home = s->spec->backings >> r->memory & 1;
    if (s->of_region[region] == NONE)
        s->of_region[region] =
            item_add(s, (Item){.region = region,
                               .bytes = r->bytes,
                               .memories = home ? s->spec->backings
                                                : UINT32_C(1) << r->memory});
    move_add(s, s->of_region[region], a,
             (uint64_t)p->n_c * a->rows * a->cols * s->spec->element);
}

static void find_items(Spread *s) {
    for (uint32_t i = 0; i < s->e->action.n; i++) {
        const Action *a = &s->e->action.at[i];
        if (is_move(a))
            add_volume(s, a);
    }
}

/* ---- where it goes ---- */

static double seconds(const HwMemory *m, uint64_t bytes) {
    return m->bandwidth > 0 ? (double)bytes / m->bandwidth : 0;
}

static double fullest(const Spread *s, uint32_t window, uint32_t wires,
                      double more) {
    const double *load = &s->load[(size_t)window * HW_MAX_MEMORIES];
    double most = 0;
    for (uint32_t m = 0; m < s->spec->n_memories; m++) {
        double sum = load[m] + (m == wires ? more : 0);
        most = sum > most ? sum : most;
    }
    return most;
}

/* Its transfers stand together, from `first` on. */
typedef struct Moves {
    uint32_t first, end;
} Moves;

/* What its transfers add to the time of the fullest wires, there. */
static double added(const Spread *s, Moves of, uint32_t memory) {
    const HwMemory *m = &s->spec->memory[memory];
    double sum = 0;
    for (uint32_t i = of.first; i < of.end; i++) {
        double more = seconds(m, s->move.at[i].bytes);
        if (s->spec->n_dmas < 2)
            sum += more;
        for (uint32_t w = 0; w < WINDOW && s->spec->n_dmas > 1; w++)
            sum += fullest(s, s->move.at[i].step + w, m->channel, more) -
                   fullest(s, s->move.at[i].step + w, m->channel, 0);
    }
    return sum;
}

static double wires_load(const Spread *s, uint32_t memory) {
    double sum = 0;
    for (uint32_t w = 0; w < s->n_windows; w++)
        sum += s->load[(size_t)w * HW_MAX_MEMORIES +
                       s->spec->memory[memory].channel];
    return sum;
}

static void put(Spread *s, Item *item, Moves of, uint32_t memory) {
    const HwMemory *m = &s->spec->memory[memory];
    item->chosen = memory;
    s->filled[memory] += item->bytes;
    for (uint32_t i = of.first; i < of.end; i++)
        for (uint32_t w = 0; w < WINDOW; w++)
            s->load[(size_t)(s->move.at[i].step + w) * HW_MAX_MEMORIES +
                    m->channel] += seconds(m, s->move.at[i].bytes);
}

/* Of equals the one whose wires have less to do, then the first. What has room
 * nowhere goes to the first: that it does not fit is said there. */
static void choose(Spread *s, Item *item, Moves of) {
    uint32_t best = NONE;
    double least = 0;
    for (uint32_t m = 0; m < s->spec->n_memories; m++) {
        uint64_t size = s->spec->memory[m].size;
        if (!(item->memories >> m & 1) ||
            (several(item->memories) &&
             (s->filled[m] > size || item->bytes > size - s->filled[m])))
            continue;
        double sum = added(s, of, m);
        bool less = best == NONE || sum < least * (1 - 1e-9) ||
                    (sum <= least * (1 + 1e-9) &&
                     wires_load(s, m) < wires_load(s, best));
        best = less ? m : best;
        least = less ? sum : least;
    }
    put(s, item, of,
        best == NONE ? (uint32_t)__builtin_ctz(item->memories) : best);
}

static int by_item(const void *a, const void *b) {
    const Move *x = a, *y = b;
    return order_by3(ORDER_UP(x->item, y->item), ORDER_UP(x->step, y->step),
                     ORDER_UP(x->bytes, y->bytes));
}

typedef struct Turn {
    uint64_t moved;
    bool fixed;
    uint32_t item;
} Turn;

static int by_turn(const void *a, const void *b) {
    const Turn *x = a, *y = b;
    return order_by3(ORDER_DOWN(x->fixed, y->fixed),
                     ORDER_DOWN(x->moved, y->moved),
                     ORDER_UP(x->item, y->item));
}

/* Those that have no choice are there before. */
static void choose_all(Spread *s) {
    uint32_t n = s->item.n;
    Turn *turn = ARENA_ARRAY(s->arena, Turn, n + 1);
    Moves *of = ARENA_ARRAY(s->arena, Moves, n + 1);
    if (s->move.n)
        qsort(s->move.at, s->move.n, sizeof *s->move.at, by_item);
    for (uint32_t i = 0; i < s->move.n; i++) {
        Moves *m = &of[s->move.at[i].item];
        m->first = m->end ? m->first : i;
        m->end = i + 1;
    }
    for (uint32_t i = 0; i < n; i++)
        turn[i] =
            (Turn){s->item.at[i].moved, !several(s->item.at[i].memories), i};
    qsort(turn, n, sizeof *turn, by_turn);
    for (uint32_t i = 0; i < n; i++)
        choose(s, &s->item.at[turn[i].item], of[turn[i].item]);
}

/* ---- the plan ---- */

static void move_regions(Spread *s, Emit *e) {
    for (uint32_t i = 0; i < s->item.n; i++)
        e->regions.at.at[s->item.at[i].region].memory = s->item.at[i].chosen;
    for (uint32_t i = 0; i < e->placement.n; i++)
        if (e->region_of.at[i] != NONE)
            e->placement.at[i].memory =
                e->regions.at.at[e->region_of.at[i]].memory;
}

void emit_spread(Emit *e) {
    const HwSpec *spec = e->f->spec;
    if (!several(spec->backings))
        return;
    Arena *scratch = arena_new("channels");
    Spread s = {.arena = scratch,
                .e = e,
                .spec = spec,
                .of_region =
                    ARENA_ARRAY(scratch, uint32_t, e->regions.at.n + 1),
                .filled = ARENA_ARRAY(scratch, uint64_t, HW_MAX_MEMORIES),
                .n_windows = e->f->schedule->n_steps + WINDOW + 1};
    for (uint32_t i = 0; i < e->regions.at.n; i++)
        s.of_region[i] = NONE;
    s.load = ARENA_ARRAY(scratch, double, (size_t)s.n_windows *HW_MAX_MEMORIES);
    find_items(&s);
    choose_all(&s);
    move_regions(&s, e);
    arena_free(scratch);
}
