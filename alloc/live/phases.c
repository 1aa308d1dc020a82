/* phases.c - when buffers are alive, turn by turn; see phases.h.
 *
 * Input: a problem, whose times know of one turn only. Output: sets of phases.
 * Of n turns with one set of buffers the blocks are
 *     first | middle | last      the middle one follows on itself, too
 * with two sets, which take turns,
 *     first | odd | even | last  even and odd follow on each other
 * and fewer where there are fewer turns. What is loaded lives `early` phases
 * before its use, perhaps in the block before; what is stored `late` behind.
 */
#include "alloc/live/phases.h"
#include "alloc/cascade/cascade.h"

enum { MAX_BLOCKS = 4 };

/* Of a turning: how many blocks, the set of each, and before[b]: bits of the
 * blocks that it follows on. */
typedef struct Blocks {
    uint32_t n, set[MAX_BLOCKS], before[MAX_BLOCKS];
} Blocks;

static Blocks blocks_of(const Turning *t) {
    if (!t->doubled && t->n > 2)
        return (Blocks){3, {0, 0, 0}, {0, 3, 2}};
    if (t->n <= MAX_BLOCKS)
        return (Blocks){t->n, {0, t->doubled, 0, t->doubled}, {0, 1, 2, 4}};
    bool odd = t->n % 2; /* then the last is of the first set */
    return (Blocks){4, {0, 1, 0, !odd}, {0, 1 | 4, 2, odd ? 2 : 4}};
}

static uint32_t turning_phases(const Turning *t) {
    return blocks_of(t).n * (t->end - t->first);
}

bool turning_at(const Decisions *d, NodeId id, Turning *out) {
    const Facts *f = d->f;
    const Mode *mode = &d->mode[id.i];
    const Cascade *g = cascade_of(d, id);
    uint32_t step = f->schedule->step_of[id.i];
    *out = (Turning){.first = step, .end = step + 1, .doubled = mode->doubled};
    if (f->schedule->step[step].n > 1)
        return false;
    if (mode->kind == MODE_ROW_TILES) {
        out->n = parts_of_row_tiles(d, id);
    } else if (g) {
        out->first = g->first;
        out->end = g->end;
        out->n = g->rolls ? 1 : cascade_stripes(f, g);
    }
    return out->n > 1;
}

/* ---- phases ---- */

static void add_turning(Lives *l, Turning t) {
    t.phase = l->n;
    for (uint32_t step = t.first; step < t.end; step++) {
        l->turning_of[step] = l->turning.n;
        l->phase_of[2 * step] = l->phase_of[2 * step + 1] = l->n;
    }
    vec_push(l->arena, &l->turning, t);
    l->n += turning_phases(&t);
}

static void find_phases(Lives *l) {
    uint32_t steps = l->f->schedule->n_steps;
    l->phase_of = ARENA_ARRAY(l->arena, uint32_t, 2 * steps + 1);
    l->turning_of = ARENA_ARRAY(l->arena, uint32_t, steps + 1);
    for (uint32_t step = 0; step < steps; step++) {
        Turning t;
        l->turning_of[step] = NONE;
        if (turning_at(l->d, l->f->schedule->step[step].slot[0].node, &t)) {
            add_turning(l, t);
            step = t.end - 1;
        } else {
            l->phase_of[2 * step] = l->n++;
            l->phase_of[2 * step + 1] = l->n++;
        }
    }
    l->phase_of[2 * steps] = l->n;
}

static void find_costs(Lives *l, const uint64_t *time) {
    l->cost = ARENA_ARRAY(l->arena, uint64_t, l->n + 1);
    l->live = ARENA_ARRAY(l->arena, uint64_t, l->n + 1);
    for (uint32_t step = 0; step < l->f->schedule->n_steps; step++)
        if (l->turning_of[step] == NONE)
            l->cost[l->phase_of[2 * step]] = time[step];
    for (uint32_t i = 0; i < l->turning.n; i++) {
        const Turning *t = &l->turning.at[i];
        for (uint32_t k = 0, m = t->end - t->first; k < turning_phases(t); k++)
            l->cost[t->phase + k] = time[t->first + k % m] / t->n;
    }
}

/* ---- sets of phases ---- */

void lives_set(Lives *l, uint32_t buf, uint32_t phase, bool alive) {
    uint64_t bytes = l->buffers->owner.at[buf].least;
    uint64_t *word = &l->alive[(size_t)buf * l->words + phase / 64];
    uint64_t bit = UINT64_C(1) << phase % 64;
    if (!(*word & bit) == !alive)
        return;
    *word ^= bit;
    l->live[phase] = alive ? l->live[phase] + bytes : l->live[phase] - bytes;
}

Lives *lives_copy(const Lives *l) {
    Lives *copy = ARENA_COPY(l->arena, Lives, l, 1);
    size_t n = (size_t)l->buffers->buf.n * l->words;
    copy->alive = ARENA_COPY(l->arena, uint64_t, l->alive, n);
    copy->turning.at =
        ARENA_COPY(l->arena, Turning, l->turning.at, l->turning.n);
    copy->live = ARENA_COPY(l->arena, uint64_t, l->live, l->n);
    return copy;
}

Steps lives_span(const Lives *l, uint32_t buf) {
    const uint64_t *word = &l->alive[(size_t)buf * l->words];
    uint32_t first = 0, end = l->words;
    while (first < end && !word[first])
        first++;
    if (first == end)
        return (Steps){l->n, l->n};
    while (!word[end - 1])
        end--;
    return (Steps){64 * first + (uint32_t)__builtin_ctzll(word[first]),
                   64 * end - (uint32_t)__builtin_clzll(word[end - 1])};
}

bool lives_in(const Lives *l, uint32_t buf, Steps phases) {
    const uint64_t *word = &l->alive[(size_t)buf * l->words];
    for (uint32_t i = phases.first / 64; 64 * i < phases.end; i++) {
        uint64_t bits = word[i];
        if (i == phases.first / 64)
            bits = bits >> phases.first % 64 << phases.first % 64;
        if (i == phases.end / 64)
            bits &= (UINT64_C(1) << phases.end % 64) - 1;
        if (bits)
            return true;
    }
    return false;
}

static void set_all(Lives *l, uint32_t buf, int64_t first, int64_t end) {
    for (int64_t phase = first < 0 ? 0 : first; phase < end; phase++)
        lives_set(l, buf, (uint32_t)phase, true);
}

/* ---- buffers ---- */

/* A buffer of a turning, alive in its turn from place a to e. */
static void turn_life(Lives *l, uint32_t buf, const Turning *t, uint32_t set,
                      int64_t a, int64_t e) {
    Blocks blocks = blocks_of(t);
    int64_t m = t->end - t->first;
    for (uint32_t b = 0; b < blocks.n; b++) {
        int64_t at = t->phase + b * m;
        for (uint32_t k = 0; k < blocks.n; k++) {
            int64_t other = t->phase + k * m;
            if (blocks.set[b] == set && blocks.before[b] >> k & 1)
                set_all(l, buf, other + (a < -m ? 0 : m + a), other + m);
            if (blocks.set[b] == set && blocks.before[k] >> b & 1)
                set_all(l, buf, other, other + (e - m < m ? e - m : m));
        }
        if (blocks.set[b] == set)
            set_all(l, buf, at + (a > 0 ? a : 0), at + (e < m ? e : m));
    }
}

static void life_by_turns(Lives *l, uint32_t buf, const Turning *t) {
    const Decisions *d = l->d;
    const Owner *owner = &l->buffers->owner.at[buf];
    const Buffer *b = &l->buffers->buf.at[buf];
    const Cascade *g = cascade_of(d, owner->node);
    bool made =
        same_tensor(owner->tensor, graph_node(d->f->g, owner->node)->out[0]);
    bool loaded =
        !made && (!g || cascade_maker(d->f, g, owner->tensor) == NONE);
    bool stored = made && (!g || cascade_stores(d->f, g, owner->tensor));
    const Buffers *p = l->buffers;
    uint32_t set = t->doubled && buf - p->first_buf[owner->node.i] >=
                                     p->second_set[owner->node.i];
    int64_t a = b->first / 2 - t->first, e = (b->end + 1) / 2 - t->first;
    turn_life(l, buf, t, set, a - (loaded ? t->early : 0),
              e + (stored ? t->late : 0));
}

static void life_by_steps(Lives *l, uint32_t buf) {
    const Buffer *b = &l->buffers->buf.at[buf];
    uint32_t end = l->phase_of[b->end];
    uint32_t at = b->end % 2 ? l->turning_of[b->end / 2] : NONE;
    if (at != NONE) /* ends with all its turns */
        end = l->turning.at[at].phase + turning_phases(&l->turning.at[at]);
    set_all(l, buf, l->phase_of[b->first], end);
}

static uint32_t turning_of_buf(const Lives *l, uint32_t buf) {
    const Owner *owner = &l->buffers->owner.at[buf];
    return owner->kind == OWNER_ROW_TILE
               ? l->turning_of[l->f->schedule->step_of[owner->node.i]]
               : NONE;
}

void lives_turn(Lives *l, uint32_t turning, uint32_t early, uint32_t late) {
    Turning *t = &l->turning.at[turning];
    t->early = early;
    t->late = late;
    for (uint32_t i = 0; i < l->buffers->buf.n; i++) {
        if (turning_of_buf(l, i) != turning)
            continue;
        for (uint32_t k = 0; k < turning_phases(t); k++)
            lives_set(l, i, t->phase + k, false);
        life_by_turns(l, i, t);
    }
}

Steps lives_phases(const Lives *l, uint32_t step) {
    uint32_t at = l->turning_of[step];
    uint32_t first = l->phase_of[2 * step];
    if (at == NONE)
        return (Steps){first, first + 2};
    return (Steps){first, first + turning_phases(&l->turning.at[at])};
}

Lives *lives_make(Arena *arena, const Decisions *d, const Buffers *buffers,
                  const uint64_t *time) {
    Lives *l = ARENA_NEW(arena, Lives);
    *l = (Lives){.arena = arena, .f = d->f, .d = d, .buffers = buffers};
    find_phases(l);
    find_costs(l, time);
    l->words = (l->n + 63) / 64;
    l->alive =
        ARENA_ARRAY(arena, uint64_t, (size_t)buffers->buf.n * l->words + 1);
    for (uint32_t i = 0; i < buffers->buf.n; i++) {
        uint32_t turning = turning_of_buf(l, i);
        if (turning == NONE)
            life_by_steps(l, i);
        else
            life_by_turns(l, i, &l->turning.at[turning]);
    }
    return l;
}

Buffer lives_buf(const Lives *l, uint32_t buf, Steps phases) {
    Buffer b = l->buffers->buf.at[buf];
    VEC(Steps) gap = {0};
    bool alive = false, before = false;
    b.first = b.end = phases.first;
    for (uint32_t phase = phases.first; phase < phases.end; phase++) {
        before = alive;
        alive = lives_has(l, buf, phase);
        if (alive && b.end == phases.first && !before)
            b.first = phase;
        else if (alive && !before)
            vec_push(l->arena, &gap, ((Steps){b.end, phase}));
        if (alive)
            b.end = phase + 1;
    }
    b.n_gaps = gap.n;
    b.gap = gap.at;
    return b;
}
