/* bank_spread.c - buffers moved apart where that saves time.
 *
 * Input: a placement, and the memory that it leaves free. Output: a placement
 * in which more pairs of operands lie as their machine likes it:
 *   both operands of a sum in different partitions, so that they are read at
 *     the same time;
 *   what one engine reads or writes clear of what another one writes a few
 *     steps later, so that neither waits for the other.
 * Method: hill climbing, from the placement as it is and from one made anew; a
 * buffer with an unmet preference goes where most of its preferences are met,
 * lowest first. Invariants: no move loses a preference's worth; buffers that
 * conflict stay apart; the preferences are those of the machine whose listings
 * can tell of them.
 */
#include "alloc/overlap/bank_spread.h"
#include "alloc/decisions.h"
#include "alloc/geometry/tensor_bytes.h"

#include "hwspec/insn.h"

enum { LOOK_BACK = 3, MAX_ROUNDS = 4, FIXED_SPOTS = HW_MAX_MEMORIES };

typedef struct Preference {
    uint32_t a, b;      /* buffers */
    bool in_partitions; /* else: clear of each other */
    uint64_t worth;     /* bytes that are moved while something else is */
} Preference;

typedef struct Spread {
    const Facts *f;
    Decisions *d;
    Buffers *buffers;
    PackResult *result;
    const HwMemory *memory; /* the only pool, whole */
    Pool pool;
    VEC(Preference) preference;
    bool *fixed;  /* by buffer: pinned, or tied to others */
    bool *placed; /* by buffer: has an offset */
    uint32_t *start,
        *of;        /* preferences of buffer b: of[start[b]..start[b + 1]) */
    uint64_t *spot; /* candidates for one buffer */
    uint32_t n_spots;
} Spread;

static uint64_t bytes_of(const Spread *s, uint32_t buf) {
    return s->buffers->buf.at[buf].bytes[0];
}

static uint64_t end_of(const Spread *s, uint32_t buf) {
    return s->result->offset[buf] + bytes_of(s, buf);
}

/* ---- preferences ---- */

static bool says(const HwSpec *spec, HwOp op, HwField field) {
    int32_t row = insn_row(spec, op);
    return row >= 0 &&
           insn_token_of(&spec->insns->row[row].form[0], field) >= 0;
}

static bool says_waits(const HwSpec *spec, HwOp op) {
    for (HwField f = HW_F_WAIT_LOAD; f <= HW_F_WAIT_UPSAMPLE; f++)
        if (says(spec, op, f))
            return true;
    return false;
}

/* The buffer that holds the tensor whole at the step; NONE. */
static uint32_t buf_at(const Spread *s, TensorId t, uint32_t step) {
    if (s->d->alias_of[t.i] == NONE)
        return NONE;
    const AliasClass *alias = &s->d->alias.at[s->d->alias_of[t.i]];
    const Residencies *stays = &s->buffers->stays[s->d->alias_of[t.i]];
    for (uint32_t i = 0; i < stays->n; i++)
        if (alias->use[stays->at[i].first].step <= step &&
            step <= alias->use[stays->at[i].last].step)
            return stays->at[i].buf;
    return NONE;
}

static bool is_whole(const Spread *s, NodeId node) {
    return on_engine(s->f, node) && s->d->mode[node.i].kind == MODE_WHOLE;
}

static void preference_add(Spread *s, uint32_t a, uint32_t b,
                           bool in_partitions) {
    if (a == NONE || b == NONE || a == b)
        return;
    const Buffer *buf = s->buffers->buf.at;
    if (!in_partitions && bufs_conflict(&buf[a], &buf[b]))
        return;
    uint64_t worth =
        bytes_of(s, a) < bytes_of(s, b) ? bytes_of(s, a) : bytes_of(s, b);
    Preference preference = {a, b, in_partitions, worth};
    vec_push(s->f->arena, &s->preference, preference);
}

/* Whether it reads both operands at once where they lie in two partitions. */
static bool reads_in_parallel(const Facts *f, NodeId id) {
    return graph_node(f->g, id)->n_in == 2 &&
           f->spec->memory[0].partitions > 1 &&
           says(f->spec, f->legal[id.i].op, HW_F_PARALLEL_READ);
}

static void preference_parallel_read(Spread *s, NodeId id) {
    const Node *node = graph_node(s->f->g, id);
    uint32_t step = s->f->schedule->step_of[id.i];
    if (reads_in_parallel(s->f, id))
        preference_add(s, buf_at(s, node->in[0], step),
                       buf_at(s, node->in[1], step), true);
}

/* The later one's result off all that the earlier one uses, and its
 * operands off the earlier one's result. */
static void preference_clear(Spread *s, NodeId earlier, NodeId later) {
    const Node *a = graph_node(s->f->g, earlier),
               *b = graph_node(s->f->g, later);
    uint32_t at = s->f->schedule->step_of[earlier.i];
    uint32_t then = s->f->schedule->step_of[later.i];
    uint32_t made = buf_at(s, b->out[0], then);
    for (uint32_t i = 0; i < a->n_in; i++)
        preference_add(s, buf_at(s, a->in[i], at), made, false);
    preference_add(s, buf_at(s, a->out[0], at), made, false);
    for (uint32_t i = 0; i < b->n_in; i++)
        preference_add(s, buf_at(s, a->out[0], at), buf_at(s, b->in[i], then),
                       false);
}

static bool beside(const Spread *s, NodeId a, NodeId b) {
    const Legal *x = &s->f->legal[a.i], *y = &s->f->legal[b.i];
    return x->engine != y->engine &&
           s->f->spec->engine[y->engine].beside >> x->engine & 1 &&
           says_waits(s->f->spec, y->op);
}

static void preferences_of(Spread *s, NodeId later) {
    uint32_t step = s->f->schedule->step_of[later.i];
    preference_parallel_read(s, later);
    for (uint32_t back = 1; back <= LOOK_BACK && back <= step; back++) {
        const Step *before = &s->f->schedule->step[step - back];
        for (uint32_t i = 0; i < before->n; i++)
            if (is_whole(s, before->slot[i].node) &&
                beside(s, before->slot[i].node, later))
                preference_clear(s, before->slot[i].node, later);
    }
}

static void index_preferences(Spread *s) {
    Arena *arena = s->f->arena;
    uint32_t n = s->buffers->buf.n;
    s->start = ARENA_ARRAY(arena, uint32_t, n + 2);
    s->of = ARENA_ARRAY(arena, uint32_t, 2 * s->preference.n);
    for (uint32_t i = 0; i < s->preference.n; i++) {
        s->start[s->preference.at[i].a + 2]++;
        s->start[s->preference.at[i].b + 2]++;
    }
    for (uint32_t b = 2; b < n + 2; b++)
        s->start[b] += s->start[b - 1];
    for (uint32_t i = 0; i < s->preference.n; i++) {
        s->of[s->start[s->preference.at[i].a + 1]++] = i;
        s->of[s->start[s->preference.at[i].b + 1]++] = i;
    }
}

/* ---- what is met ---- */

/* With `buf` at `offset`, and the others where they are. */
static bool is_met(const Spread *s, const Preference *preference, uint32_t buf,
                   uint64_t offset) {
    uint32_t other = preference->a == buf ? preference->b : preference->a;
    uint64_t end = offset + bytes_of(s, buf);
    uint64_t at = s->result->offset[other], stop = end_of(s, other);
    const HwMemory *m = s->memory;
    if (!preference->in_partitions)
        return end <= at || stop <= offset;
    return hwspec_partition_of(m, end - 1) < hwspec_partition_of(m, at) ||
           hwspec_partition_of(m, stop - 1) < hwspec_partition_of(m, offset);
}

static bool other_placed(const Spread *s, const Preference *preference,
                         uint32_t buf) {
    return s->placed[preference->a == buf ? preference->b : preference->a];
}

static uint64_t met(const Spread *s, uint32_t buf, uint64_t offset) {
    uint64_t sum = 0;
    for (uint32_t i = s->start[buf]; i < s->start[buf + 1]; i++) {
        const Preference *preference = &s->preference.at[s->of[i]];
        if (other_placed(s, preference, buf) &&
            is_met(s, preference, buf, offset))
            sum += preference->worth;
    }
    return sum;
}

/* By all preferences together. */
static uint64_t met_by_all(const Spread *s) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->preference.n; i++) {
        uint32_t a = s->preference.at[i].a;
        if (is_met(s, &s->preference.at[i], a, s->result->offset[a]))
            sum += s->preference.at[i].worth;
    }
    return sum;
}

/* ---- moves ---- */

static bool is_free(const Spread *s, uint32_t buf, uint64_t offset) {
    const Buffer *own = &s->buffers->buf.at[buf];
    if (bytes_of(s, buf) > s->pool.size ||
        offset > s->pool.size - bytes_of(s, buf))
        return false;
    for (uint32_t i = 0; i < s->buffers->buf.n; i++)
        if (i != buf && s->placed[i] &&
            bufs_conflict(own, &s->buffers->buf.at[i]) &&
            offset < end_of(s, i) &&
            s->result->offset[i] < offset + bytes_of(s, buf))
            return false;
    return true;
}

/* From the byte on upwards. */
static void spot_above(Spread *s, uint32_t buf, uint64_t byte) {
    uint64_t align = buf_align(&s->pool, &s->buffers->buf.at[buf]);
    if (align != UINT64_MAX && byte <= s->pool.size)
        s->spot[s->n_spots++] = round_up(byte, align);
}

/* Up to the byte. */
static void spot_below(Spread *s, uint32_t buf, uint64_t byte) {
    uint64_t align = buf_align(&s->pool, &s->buffers->buf.at[buf]);
    if (align != UINT64_MAX && byte >= bytes_of(s, buf))
        s->spot[s->n_spots++] = (byte - bytes_of(s, buf)) / align * align;
}

static void spots_beside(Spread *s, uint32_t buf, uint32_t other) {
    spot_above(s, buf, end_of(s, other));
    spot_below(s, buf, s->result->offset[other]);
}

static void list_spots(Spread *s, uint32_t buf) {
    uint64_t size = hwspec_partition_bytes(s->memory);
    const Buffer *all = s->buffers->buf.at;
    s->n_spots = 0;
    for (uint32_t i = 0; i < s->memory->partitions && i < FIXED_SPOTS; i++) {
        spot_above(s, buf, i * size);
        spot_below(s, buf, (i + 1) * size);
    }
    for (uint32_t i = 0; i < s->buffers->buf.n; i++)
        if (i != buf && s->placed[i] && bufs_conflict(&all[buf], &all[i]))
            spots_beside(s, buf, i);
    for (uint32_t i = s->start[buf]; i < s->start[buf + 1]; i++) {
        const Preference *preference = &s->preference.at[s->of[i]];
        if (other_placed(s, preference, buf))
            spots_beside(s, buf,
                         preference->a == buf ? preference->b : preference->a);
    }
}

/* The free spot where most is met, the lowest of these. False if there is
 * none. */
static bool settle_at_best(Spread *s, uint32_t buf) {
    uint64_t most = 0;
    bool found = false;
    list_spots(s, buf);
    for (uint32_t i = 0; i < s->n_spots; i++) {
        uint64_t spot = s->spot[i], worth = met(s, buf, spot);
        bool better = !found || worth > most ||
                      (worth == most && spot < s->result->offset[buf]);
        if (better && is_free(s, buf, spot)) {
            found = true;
            most = worth;
            s->result->offset[buf] = spot;
        }
    }
    return found;
}

/* True if it moved. */
static bool move(Spread *s, uint32_t buf) {
    uint64_t at = s->result->offset[buf], now = met(s, buf, at), most = now;
    list_spots(s, buf);
    for (uint32_t i = 0; i < s->n_spots; i++) {
        uint64_t spot = s->spot[i], worth = met(s, buf, spot);
        bool better =
            worth > most || (worth == most && most > now && spot < at);
        if (better && is_free(s, buf, spot)) {
            at = spot;
            most = worth;
        }
    }
    s->result->offset[buf] = at;
    return most > now;
}

static bool wants_more(const Spread *s, uint32_t buf) {
    uint64_t at = s->result->offset[buf];
    for (uint32_t i = s->start[buf]; i < s->start[buf + 1]; i++)
        if (!is_met(s, &s->preference.at[s->of[i]], buf, at))
            return true;
    return false;
}

static void find_fixed(Spread *s) {
    const Buffers *p = s->buffers;
    s->fixed = ARENA_ARRAY(s->f->arena, bool, p->buf.n + 1);
    s->placed = ARENA_ARRAY(s->f->arena, bool, p->buf.n + 1);
    for (uint32_t b = 0; b < p->buf.n; b++)
        s->placed[b] = true;
    for (uint32_t b = 0; b < p->buf.n; b++) {
        s->fixed[b] |= p->buf.at[b].pin_pool >= 0 || p->tied.at[b] != b;
        s->fixed[p->tied.at[b]] |= p->tied.at[b] != b;
    }
}

/* The buffer that comes next: the largest, then the first. */
static uint32_t next_unplaced(const Spread *s) {
    uint32_t next = NONE;
    for (uint32_t b = 0; b < s->buffers->buf.n; b++)
        if (!s->placed[b] &&
            (next == NONE || bytes_of(s, b) > bytes_of(s, next)))
            next = b;
    return next;
}

/* All that is not fixed anew, the largest first, each where its preferences are
 * met. False if something finds no place. */
static bool place_anew(Spread *s) {
    for (uint32_t b = 0; b < s->buffers->buf.n; b++)
        s->placed[b] = s->fixed[b] || !bytes_of(s, b);
    for (uint32_t b; (b = next_unplaced(s)) != NONE; s->placed[b] = true)
        if (!settle_at_best(s, b))
            return false;
    return true;
}

static void climb(Spread *s) {
    bool moved = true;
    for (uint32_t round = 0; moved && round < MAX_ROUNDS; round++) {
        moved = false;
        for (uint32_t b = 0; b < s->buffers->buf.n; b++)
            if (!s->fixed[b] && wants_more(s, b))
                moved |= move(s, b);
    }
}

/* From the placement that there is, and from one made for the preferences; what
 * meets more stays. */
static void climb_twice(Spread *s) {
    uint32_t n = s->buffers->buf.n;
    climb(s);
    uint64_t most = met_by_all(s);
    uint64_t *first = ARENA_COPY(s->f->arena, uint64_t, s->result->offset, n);
    bool anew = place_anew(s);
    for (uint32_t b = 0; b < n; b++)
        s->placed[b] = true;
    if (anew)
        climb(s);
    if (!anew || met_by_all(s) <= most)
        for (uint32_t b = 0; b < n; b++)
            s->result->offset[b] = first[b];
    for (uint32_t b = 0; b < n; b++)
        if (bytes_of(s, b) && end_of(s, b) > s->result->height[0])
            s->result->height[0] = end_of(s, b);
}

void spread(Decisions *d, Buffers *buffers, PackResult *result) {
    const Facts *f = d->f;
    Spread s = {.f = f,
                .d = d,
                .buffers = buffers,
                .result = result,
                .memory = &f->spec->memory[0],
                .pool = buffers->p.pool[0]};
    if (buffers->p.n_pools != 1 || s.memory->buffers)
        return;
    for (uint32_t step = 0; step < f->schedule->n_steps; step++)
        for (uint32_t i = 0; i < f->schedule->step[step].n; i++)
            if (is_whole(&s, f->schedule->step[step].slot[i].node))
                preferences_of(&s, f->schedule->step[step].slot[i].node);
    if (!s.preference.n)
        return;
    index_preferences(&s);
    find_fixed(&s);
    s.spot = ARENA_ARRAY(
        f->arena, uint64_t,
        2 * (buffers->buf.n + s.preference.n + (uint64_t)FIXED_SPOTS));
    climb_twice(&s);
}
