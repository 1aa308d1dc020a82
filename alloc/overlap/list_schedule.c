/* list_schedule.c - loads and stores in the steps of layers; see overlap.h.
 *
 * Input: a plan whose actions run one behind the other, on a machine that runs
 * all actions of one step side by side. Output: the same plan in fewer cycles.
 * Method: layers keep their order. Two actions that conflict keep theirs, in
 * different steps; all others may change it. Step by step, a layer's time is
 * filled with transfers that may run beside it, the one that is due first
 * first: due before the layer that needs it, directly or through other
 * transfers that wait for its bytes. A transfer that is longer than what is
 * left of the step is cut between channels, where pieces have addresses.
 * What is due and could not be hidden stands in a step of its own.
 * Invariants: no byte more moves; placements stay; an action passes at most
 * WINDOW others; plan_cycles never rises. Plans of more than MOST actions are
 * not ordered.
 */
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/overlap/dependences.h"

#include <string.h>

enum {
    SIDE_BY_SIDE = 24, /* transfers of one step */
    PIECES = 8,        /* a piece is at least this part of its transfer */
    FINE_PIECES = 64,  /* the same where images have time for each other's */
    MOST = 1 << 17     /* actions of all tries together; line by line and
                        * column by column, layers can be a million */
};

#define UNKNOWN UINT64_MAX

typedef struct Item {
    uint32_t block; /* of layers side by side; of transfers and concats: of
                     * the next layers */
    bool moves;     /* a load or a store */
    bool done;
    uint32_t step;    /* in which it was done last */
    uint32_t due;     /* transfers: block before which they must be done */
    uint32_t c, rows; /* of all of it: channels, rows */
    uint64_t cycles;  /* of what is left, */
    uint64_t least;   /* of the shortest transfer that it can be cut into, or
                       * UNKNOWN */
    uint32_t waits;   /* for so many before it: they are not done, or in the
                       * step that is at work */
} Item;

typedef struct Overlap {
    Arena *arena;
    const Plan *plan;
    Pieces p;
    uint32_t n, n_blocks;
    Item *item; /* by source */
    Waits waits;
    VEC(uint32_t) ended; /* in the step that is at work */
    uint64_t *ready; /* bits: moves that wait for nothing, and are not done */
    uint32_t front;  /* the first action that is not done */
    uint32_t step;   /* at work now, counted from 1 */
    uint32_t reach;  /* the last action that may be at work in it */
    uint32_t pieces; /* that may still be cut off */
    uint32_t least_part; /* the shortest piece is one in so many */
    VEC(Action) action;  /* in their new order */
} Overlap;

/* ---- what there is ---- */

/* Cycles of the shortest transfer that it can be cut into. */
static uint64_t least_find(const Overlap *o, uint32_t i) {
    const Action *whole = &o->p.source.at[i];
    uint32_t parts = o->least_part, n = o->p.placement.at[whole->out].n_c,
             c = (n + parts - 1) / parts;
    Action least = *whole;
    if (piece_may_cut_rows(&o->p, whole))
        least.rows = (whole->rows + parts - 1) / parts;
    Seams seams = piece_seams(&o->p, whole);
    while (c < n && !seam_at(&seams, c))
        c++;
    return move_cycles(&o->p.now, &least, c);
}

/* Found before anything is cut off; few are asked for it. */
static uint64_t least_cycles(const Overlap *o, uint32_t i) {
    Item *item = &o->item[i];
    if (item->least == UNKNOWN)
        item->least = o->plan->cuts ? least_find(o, i) : 0;
    return item->least;
}

static void find_blocks(Overlap *o) {
    const Action *last = NULL;
    uint32_t block = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        const Action *a = &o->p.source.at[i];
        bool layer = is_layer(a);
        if (layer && last && last->step != a->step)
            block++;
        o->item[i] = (Item){.block = block + (!layer && last != NULL),
                            .moves = is_move(a),
                            .rows = a->rows,
                            .c = o->p.placement.at[a->out].n_c,
                            .least = UNKNOWN,
                            .cycles = action_cycles(&o->p.now, a)};
        if (layer)
            last = a;
    }
    o->n_blocks = block + 1;
}

/* How many each waits for. */
static void find_waits(Overlap *o) {
    o->waits = waits_find(o->arena, &o->p.now, o->p.source.at, o->n);
    for (uint32_t i = 0; i < o->n; i++)
        for (uint32_t k = 0; k < WINDOW / 64; k++)
            o->item[i].waits +=
                (uint32_t)__builtin_popcountll(o->waits.before[i].bit[k]);
}

static void set_ready(Overlap *o, uint32_t i, bool ready) {
    uint64_t bit = (uint64_t)1 << i % 64;
    if (ready && o->item[i].moves)
        o->ready[i / 64] |= bit;
    else
        o->ready[i / 64] &= ~bit;
}

static void find_ready(Overlap *o) {
    o->ready = ARENA_ARRAY(o->arena, uint64_t, o->n / 64 + 1);
    for (uint32_t i = 0; i < o->n; i++)
        set_ready(o, i, !o->item[i].waits);
}

/* The window's end waits for everything in front of it. */
static void find_due(Overlap *o) {
    for (uint32_t i = 0; i < o->n; i++)
        o->item[i].due =
            i + WINDOW < o->n ? o->item[i + WINDOW].block : o->n_blocks;
    for (uint32_t i = o->n; i-- > 0;) {
        const Item *item = &o->item[i];
        uint32_t due = item->moves ? item->due : item->block;
        for (uint32_t d = near_next(&o->waits.before[i], 0); d != NONE;
             d = near_next(&o->waits.before[i], d + 1))
            if (o->item[i - d - 1].due > due)
                o->item[i - d - 1].due = due;
    }
}

/* ---- doing ---- */

static void finish(Overlap *o, uint32_t i) {
    o->item[i].done = true;
    set_ready(o, i, false);
    vec_push(o->arena, &o->ended, i);
    while (o->front < o->n && o->item[o->front].done)
        o->front++;
}

static void do_action(Overlap *o, uint32_t i) {
    Action a = o->p.source.at[i];
    a.step = o->step;
    o->item[i].step = o->step;
    vec_push(o->arena, &o->action, a);
    finish(o, i);
}

/* Some rows or channels of a transfer; none: all of it. */
typedef struct Cutting {
    uint32_t rows, c;
} Cutting;

static void add_move(Overlap *o, Action a) {
    Action *last = o->action.n ? &o->action.at[o->action.n - 1] : NULL;
    if (!last || !is_move(last) || !pieces_join(&o->p, last, &a))
        vec_push(o->arena, &o->action, a);
}

/* The first rows or channels of a transfer, or all; the source is then what is
 * left. */
static void do_piece(Overlap *o, uint32_t i, Cutting piece) {
    Item *item = &o->item[i];
    Action *whole = &o->p.source.at[i], a = *whole;
    uint32_t all = o->p.placement.at[whole->out].n_c;
    if (piece.rows || piece.c)
        least_cycles(o, i);
    if (piece.rows) {
        a = piece_rows(&o->p, whole, whole->row, piece.rows);
        *whole = piece_rows(&o->p, whole, whole->row + piece.rows,
                            whole->rows - piece.rows);
    } else if (piece.c) {
        a = piece_channels(&o->p, whole, 0, piece.c);
        *whole = piece_channels(&o->p, whole, piece.c, all - piece.c);
    }
    a.step = o->step;
    add_move(o, a);
    item->step = o->step;
    if (piece.rows || piece.c)
        item->cycles = action_cycles(&o->p.now, whole);
    else
        finish(o, i);
}

/* ---- pieces ---- */

/* The most rows of the transfer that take no longer than `cycles`; 0 if that is
 * too few. */
static uint32_t rows_for(const Overlap *o, uint32_t i, uint64_t cycles) {
    const Action *a = &o->p.source.at[i];
    if (a->rows < 2 || !o->plan->cuts || !piece_may_cut_rows(&o->p, a))
        return 0;
    uint64_t guess = (uint64_t)a->rows * cycles / o->item[i].cycles;
    uint32_t most = guess < a->rows ? (uint32_t)guess : a->rows - 1;
    for (uint32_t n = most; n * o->least_part >= o->item[i].rows && n > 0;
         n--) {
        Action first = *a;
        first.rows = n;
        if (action_cycles(&o->p.now, &first) <= cycles)
            return n;
    }
    return 0;
}

/* The same of channels, the rest having an address. */
static uint32_t channels_for(const Overlap *o, uint32_t i, uint64_t cycles) {
    const Action *a = &o->p.source.at[i];
    uint32_t all = o->p.placement.at[a->out].n_c;
    uint64_t guess = (uint64_t)all * cycles / o->item[i].cycles;
    uint32_t most = guess < all ? (uint32_t)guess : all - 1;
    if (most * o->least_part < o->item[i].c)
        return 0;
    Seams seams = piece_seams(&o->p, a);
    for (uint32_t n = most; n * o->least_part >= o->item[i].c && n > 0; n--)
        if (seam_at(&seams, n) && move_cycles(&o->p.now, a, n) <= cycles)
            return n;
    return 0;
}

static Cutting piece_for(const Overlap *o, uint32_t i, uint64_t cycles) {
    Cutting piece = {0, 0};
    if (!o->pieces || !o->item[i].cycles)
        return piece;
    piece.rows = rows_for(o, i, cycles);
    if (!piece.rows)
        piece.c = channels_for(o, i, cycles);
    return piece;
}

/* ---- steps ---- */

/* What is done within a step lets nothing in that has not been compared. */
static void next_step(Overlap *o) {
    o->step++;
    for (uint32_t k = 0; k < o->ended.n; k++) {
        uint32_t i = o->ended.at[k];
        for (uint32_t d = near_next(&o->waits.after[i], 0); d != NONE;
             d = near_next(&o->waits.after[i], d + 1))
            if (!--o->item[i + d + 1].waits)
                set_ready(o, i + d + 1, true);
    }
    o->ended.n = 0;
    o->reach = o->front + WINDOW;
}

static bool beside_now(const Overlap *o, uint32_t i) {
    return !o->item[i].waits && i <= o->reach;
}

/* The next move from `i` on that waits for nothing, within reach; NONE, or one
 * that is not. */
static uint32_t next_ready(const Overlap *o, uint32_t i) {
    uint32_t last = o->reach < o->n ? o->reach : o->n;
    uint32_t words = last / 64 + 1, word = i / 64;
    if (word >= words)
        return NONE;
    uint64_t bits = o->ready[word] >> i % 64 << i % 64;
    while (!bits && ++word < words)
        bits = o->ready[word];
    return bits ? word * 64 + (uint32_t)__builtin_ctzll(bits) : NONE;
}

/* Whether a later layer that comes before it is due takes longer. */
static bool fits_later(const Overlap *o, const uint64_t *time, uint32_t block,
                       uint32_t i) {
    uint32_t due = o->item[i].due;
    for (uint32_t b = block + 1; b < due && b < o->n_blocks; b++)
        if (time[b] >= o->item[i].cycles)
            return true;
    return false;
}

/* Whether a later layer that comes before it is due hides more of it. */
static bool more_later(const Overlap *o, const uint64_t *time, uint32_t block,
                       uint32_t i, uint64_t left) {
    uint32_t due = o->item[i].due;
    for (uint32_t b = block + 1; b < due && b < o->n_blocks; b++)
        if (time[b] > left)
            return true;
    return false;
}

/* Cycles of all transfers that are due no later. */
static uint64_t due_with(const Overlap *o, uint32_t i) {
    uint64_t sum = 0;
    for (uint32_t k = o->front; k < o->n && k <= o->reach; k++) {
        const Item *item = &o->item[k];
        if (item->moves && !item->done && item->due <= o->item[i].due)
            sum += item->cycles;
    }
    return sum;
}

/* Whether later layers hide it piece by piece, and what is due before. */
static bool pieces_fit_later(const Overlap *o, const uint64_t *time,
                             uint32_t block, uint32_t i) {
    uint32_t due = o->item[i].due;
    uint64_t least = least_cycles(o, i), sum = 0, wanted = 0;
    for (uint32_t b = block + 1; b < due && b < o->n_blocks && least; b++) {
        sum += time[b] / least * least;
        if (sum < o->item[i].cycles)
            continue;
        wanted = wanted ? wanted : due_with(o, i);
        if (sum >= wanted)
            return true;
    }
    return false;
}

/* What of it is to run beside what takes `left` cycles, if anything. */
static bool choose_piece(const Overlap *o, const uint64_t *time, uint32_t block,
                         uint32_t i, uint64_t left, Cutting *piece) {
    const Item *item = &o->item[i];
    *piece = (Cutting){0, 0};
    if (item->cycles <= left)
        return true;
    *piece = piece_for(o, i, left);
    if (piece->rows || piece->c)
        return true;
    uint64_t least = least_cycles(o, i);
    if (o->plan->images && (!o->plan->cuts || least >= item->cycles))
        return !more_later(o, time, block, i, left);
    if (!o->plan->cuts || !o->pieces)
        return !fits_later(o, time, block, i);
    if (2 * left < least || pieces_fit_later(o, time, block, i))
        return false;
    *piece = piece_for(o, i, least);
    return true;
}

/* The transfer that is due first of those that can run now and of which
 * something fits: *n. */
static uint32_t next_move(const Overlap *o, const uint64_t *time,
                          uint32_t block, uint64_t left, Cutting *n) {
    uint32_t best = NONE;
    for (uint32_t i = next_ready(o, o->front); i <= o->reach;
         i = next_ready(o, i + 1)) {
        const Item *item = &o->item[i];
        if (item->step == o->step ||
            (best != NONE && o->item[best].due <= item->due))
            continue;
        Cutting piece;
        if (choose_piece(o, time, block, i, left, &piece)) {
            best = i;
            *n = piece;
        }
    }
    return best;
}

static void fill_step(Overlap *o, const uint64_t *time, uint32_t block) {
    uint64_t left = time[block];
    for (uint32_t k = 0; k < SIDE_BY_SIDE && left; k++) {
        Cutting piece;
        uint32_t i = next_move(o, time, block, left, &piece);
        if (i == NONE)
            return;
        uint64_t cycles = o->item[i].cycles;
        do_piece(o, i, piece);
        cycles -= o->item[i].done ? 0 : o->item[i].cycles;
        left -= cycles < left ? cycles : left;
        o->pieces -= !o->item[i].done;
    }
}

/* Transfers without which the block cannot begin, and concats before it. */
static void do_due(Overlap *o, uint32_t block) {
    next_step(o);
    for (uint32_t i = o->front; i < o->n; i++) {
        Item *item = &o->item[i];
        bool layer = is_layer(&o->p.source.at[i]);
        if (layer && item->block >= block + 1)
            break;
        if (item->done || layer ||
            (item->moves ? item->due > block : item->block > block))
            continue;
        if (!item->moves || !beside_now(o, i))
            next_step(o);
        if (item->moves) {
            do_piece(o, i, (Cutting){0, 0});
        } else {
            do_action(o, i);
            next_step(o);
        }
    }
    next_step(o);
}

static void do_block(Overlap *o, const uint64_t *time, uint32_t block) {
    bool shares = true;
    for (uint32_t i = o->front; i < o->n && (!is_layer(&o->p.source.at[i]) ||
                                             o->item[i].block <= block);
         i++) {
        const Action *a = &o->p.source.at[i];
        if (o->item[i].done || !is_layer(a))
            continue;
        shares &= a->kind != ACTION_HOST && a->legal.op != HW_OP_LAYER;
        do_action(o, i);
    }
    if (shares)
        fill_step(o, time, block);
}

/* Cycles of each block. */
static uint64_t *block_times(const Overlap *o) {
    uint64_t *time = ARENA_ARRAY(o->arena, uint64_t, o->n_blocks + 1);
    for (uint32_t i = 0; i < o->n; i++) {
        const Item *item = &o->item[i];
        if (is_layer(&o->p.source.at[i]) && item->cycles > time[item->block])
            time[item->block] = item->cycles;
    }
    return time;
}

/* Numbers of the listing: loads of network inputs in front of everything may
 * go without one of their own. */
static void number_steps(Overlap *o) {
    const HwSpec *spec = o->plan->schedule->spec;
    const Graph *g = o->plan->schedule->graph;
    uint32_t number = 0, last = 0;
    for (uint32_t i = 0; i < o->action.n; i++) {
        Action *a = &o->action.at[i];
        TensorId t = o->p.placement.at[a->out].tensor;
        NodeId maker = graph_tensor(g, t)->producer;
        bool input =
            a->kind == ACTION_LOAD && graph_node(g, maker)->op == OP_INPUT;
        if (input && spec->input_shares_step && !number) {
            a->step = spec->input_step;
            continue;
        }
        number += a->step != last;
        last = a->step;
        a->step = number;
    }
}

uint32_t overlap_spare(const Plan *plan) {
    uint32_t most = plan->schedule->spec->max_instructions;
    uint32_t n = plan->n_actions, request = 4 * n;
    if (!most)
        return request;
    uint32_t spare = most > n ? most - n : 0;
    return spare < request ? spare : request;
}

uint32_t overlap_tries(const Plan *plan, uint32_t most) {
    uint32_t tries = MOST / (plan->n_actions + 1);
    return tries < most ? tries : most;
}

static void run(Overlap *o) {
    pieces_make(&o->p);
    o->n = o->p.source.n;
    o->item = ARENA_ARRAY(o->arena, Item, o->n + 1);
    vec_reserve(o->arena, &o->action, 2 * o->n);
    find_blocks(o);
    find_waits(o);
    find_ready(o);
    find_due(o);
    uint64_t *time = block_times(o);
    for (uint32_t block = 0; block < o->n_blocks; block++) {
        do_due(o, block);
        do_block(o, time, block);
    }
    do_due(o, o->n_blocks);
    number_steps(o);
}

/* False if that takes no fewer cycles, or more instructions than there are. */
static bool try_parts(Arena *arena, Plan *plan, bool parts) {
    Arena *scratch = arena_new("overlap");
    Overlap o = {.arena = scratch,
                 .plan = plan,
                 .pieces = overlap_spare(plan),
                 .least_part = plan->images ? FINE_PIECES : PIECES,
                 .p = {.arena = scratch, .plan = plan, .parts = parts}};
    uint32_t most = plan->schedule->spec->max_instructions;
    run(&o);
    Plan made = o.p.now;
    made.n_actions = o.action.n;
    made.action = o.action.at;
    made.n_placements = o.p.placement.n;
    made.placement = o.p.placement.at;
    made.cycles = plan_cycles(&made);
    bool better = (!most || o.action.n <= most) && made.cycles < plan->cycles;
    if (better)
        *plan = plan_compact(arena, &made, plan->n_placements);
    arena_free(scratch);
    return better;
}

void overlap(Arena *arena, Plan *plan) {
    plan->cycles = plan_cycles(plan);
    if (!try_parts(arena, plan, true))
        try_parts(arena, plan, false);
}

void overlap_images(Arena *arena, Plan *plan) {
    Plan early = *plan;
    overlap(arena, plan);
    if (!hoist_hosts(arena, &early))
        return;
    overlap(arena, &early);
    if (early.cycles < plan->cycles)
        *plan = early;
}
