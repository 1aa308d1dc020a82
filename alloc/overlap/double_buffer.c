/* double_buffer.c - row tiles and stripes in two sets of buffers, by turns.
 *
 * Input: a plan, and what it does not hide. Output: modes that are doubled,
 * where that takes fewer cycles.
 * Method: while one row tile or stripe is computed, the operands of the next
 * come in and the result of the one before leaves. So two turns that follow
 * each other have buffers of their own, of which those that are loaded are
 * alive `early` steps of a turn before they are used, those that are stored
 * `late` steps behind. How many is a matter of what the transfers of a turn
 * take; where that finds no place, of fewer. With none at all both sets lie at
 * the same place. Two sets need not be twice the bytes: what is not alive at
 * the same time may share them.
 */
#include "alloc/live/live.h"
#include "alloc/overlap/overlap.h"

enum { ROW_TILES = 4 };

/* ---- two sets ---- */

/* The second sets lie where the first ones do. */
static PackResult spread_sets(const Prefetch *s, const PackResult *was) {
    const Buffers *p = s->buffers;
    PackResult r = *was;
    r.pool = ARENA_ARRAY(s->arena, int32_t, p->buf.n + 1);
    r.offset = ARENA_ARRAY(s->arena, uint64_t, p->buf.n + 1);
    for (uint32_t i = 0, old = 0; i < p->buf.n; i++) {
        const Owner *owner = &p->owner.at[i];
        const Mode *mode =
            owner->kind == OWNER_ROW_TILE ? &s->a->d.mode[owner->node.i] : NULL;
        uint32_t n = mode ? p->second_set[owner->node.i] : 0;
        bool second_set =
            mode && mode->doubled && i - p->first_buf[owner->node.i] >= n;
        r.pool[i] = second_set ? r.pool[i - n] : was->pool[old];
        r.offset[i] = second_set ? r.offset[i - n] : was->offset[old];
        old += !second_set;
    }
    return r;
}

static void set_doubled(const Decisions *d, const Turning *t, bool doubled) {
    for (uint32_t step = t->first; step < t->end; step++)
        d->mode[d->f->schedule->step[step].slot[0].node.i].doubled = doubled;
}

/* Rows of the operands that all row tiles of so many rows read; UINT64_MAX
 * where there are no such row tiles. */
static uint64_t rows_read(const Graph *g, NodeId id, uint32_t rows) {
    uint32_t h = plan_volume(g, graph_node(g, id)->out[0]).h;
    uint64_t sum = 0;
    for (uint32_t row = 0; row < h; row += rows) {
        uint32_t n = rows < h - row ? rows : h - row;
        uint32_t in = rows_needed(g, id, row, n).in_rows;
        if (!in)
            return UINT64_MAX;
        sum += in;
    }
    return sum;
}

/* More and lower row tiles, if they read no row twice and the listing has room
 * for them: the first is there sooner, the last gone sooner. */
static void cut_row_tiles(Prefetch *s, NodeId id) {
    const Node *node = graph_node(s->a->f->g, id);
    Mode *mode = &s->a->d.mode[id.i];
    uint32_t h = plan_volume(s->a->f->g, node->out[0]).h;
    uint32_t row_tiles = (h + mode->rows - 1) / mode->rows;
    uint32_t q = node_quantum(s->a->f->g, id, 0);
    uint32_t rows = ((h + ROW_TILES - 1) / ROW_TILES + q - 1) / q * q;
    uint32_t more = (ROW_TILES - row_tiles) * (node->n_in + 3);
    if (mode->channels || row_tiles >= ROW_TILES || rows >= mode->rows ||
        more > s->instructions ||
        rows_read(s->a->f->g, id, rows) > rows_read(s->a->f->g, id, mode->rows))
        return;
    s->instructions -= more;
    mode->rows = rows;
}

/* Doubles what has requests; true if there is any. */
static bool double_wished(Prefetch *s) {
    bool any = false;
    prefetch_requests(s);
    for (uint32_t i = 0; i < s->request.n; i++) {
        const Owner *owner = &s->buffers->owner.at[s->request.at[i].buf];
        Turning t;
        if (owner->kind != OWNER_ROW_TILE)
            continue;
        if (s->a->d.mode[owner->node.i].kind == MODE_ROW_TILES)
            cut_row_tiles(s, owner->node);
        if (!turning_at(&s->a->d, owner->node, &t))
            continue;
        set_doubled(&s->a->d, &t, true);
        any = true;
    }
    return any;
}

/* ---- how long ---- */

typedef struct Moves {
    uint64_t load, store; /* cycles */
} Moves;

static Moves sum_moves(const Prefetch *s, const Turning *t) {
    Moves sum = {0, 0};
    for (uint32_t i = 0; i < s->plan->n_actions; i++) {
        const Action *a = &s->plan->action[i];
        if (a->at < t->first || a->at >= t->end)
            continue;
        if (a->kind == ACTION_LOAD)
            sum.load += action_cycles(s->plan, a);
        if (a->kind == ACTION_STORE)
            sum.store += action_cycles(s->plan, a);
    }
    return sum;
}

/* Steps behind the end of a turn, or before, that take as long as `cycles` of
 * all turns together. */
static uint32_t steps_for(const Prefetch *s, const Turning *t, uint64_t cycles,
                          bool before) {
    uint32_t n = t->end - t->first, steps = 0;
    for (uint64_t hidden = 0; hidden < cycles && steps < n; steps++)
        hidden += s->time[before ? t->end - 1 - steps : t->first + steps];
    return steps;
}

/* The longest early and late of those for which there is a place. */
static void lengthen(const Prefetch *s, Lives *lives, uint32_t turning,
                     PackResult *r) {
    const Turning *t = &lives->turning.at[turning];
    Moves moves = sum_moves(s, t);
    uint64_t all = moves.load + moves.store;
    uint32_t early = moves.load ? steps_for(s, t, all, true) : 0;
    uint32_t late = moves.store ? steps_for(s, t, all, false) : 0;
    while (early + late) {
        lives_turn(lives, turning, early, late);
        if (window_place(lives, lives_phases(lives, t->first), r))
            return;
        if (late >= early)
            late--;
        else
            early--;
    }
    lives_turn(lives, turning, 0, 0);
}

void turns_double(Prefetch *s) {
    bool any = double_wished(s);
    if (any)
        buffers_make(&s->a->d, s->buffers);
    *s->result = spread_sets(s, s->result);
    s->lives = lives_make(s->arena, &s->a->d, s->buffers, s->time);
    if (!any)
        return;
    Lives *lives = lives_copy(s->lives);
    PackResult r = result_copy(s->arena, s->buffers->buf.n, s->result);
    for (uint32_t i = 0; i < lives->turning.n; i++)
        if (lives->turning.at[i].doubled)
            lengthen(s, lives, i, &r);
    prefetch_try(s, lives, &r);
}
