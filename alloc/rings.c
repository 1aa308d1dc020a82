/* rings.c - groups that run depth first and compute nothing twice.
 *
 * Input: a group of a machine whose operands may lie in rings of rows. Output:
 * the order in which its nodes add rows, and how many rows of each tensor its
 * ring must hold.
 * A node that is asked for rows first asks those that make its operands for
 * what it lacks, so rows come as late as can be. A ring keeps the rows that
 * some reader still wants: of a window of k rows at stride s, k - s and the new
 * ones (the rolling buffers of facts/two-level.md 1.5); of the short way around
 * a residual, as many as the long way is behind. What the rest of the network
 * needs of a group, and what it reads from before, lies whole in active memory
 * if the group `stays`: then only network inputs and what the host makes are
 * loaded. Else all of it passes row by row, each row once. Members of a concat
 * of the group lie in its ring; the concat is complete as far as they all are.
 * Recursion is as deep as a group is long.
 */
#include "alloc/work.h"

#include <string.h>

static uint32_t height(const Work *w, TensorId t) {
    return plan_volume(w->g, t).h;
}

static TensorId result(const Work *w, const Group *g, uint32_t i) {
    return graph_node(w->g, group_node(w, g, i))->out[0];
}

/* Whether nothing outside the group touches the unit. */
static bool is_inner(const Unit *unit, const Group *g) {
    return unit->touch[0].step >= g->first &&
           unit->touch[unit->n_touches - 1].step < g->end;
}

bool group_keeps(const Work *w, const Group *g, TensorId t) {
    const Role *role = &w->role[t.i];
    if (!g->stays)
        return false;
    if (group_maker(w, g, t) == NONE)
        return role->origin == FROM_ENGINE || role->origin == FROM_PARTS;
    if (role->parent.i != NONE || role->origin == FROM_PARTS)
        return !is_inner(&w->unit.at[w->unit_of[t.i]], g);
    return role->last != NONE && role->last >= g->end;
}

/* ---- who rolls how far at a time ---- */

uint32_t group_height(const Work *w, const Group *g) {
    uint32_t most = 1;
    for (uint32_t i = 0; i < g->end - g->first; i++) {
        uint32_t h = height(w, result(w, g, i));
        most = h > most ? h : most;
    }
    return most;
}

/* `rows` is for the highest result, of `most` rows; the others take their
 * share. */
static uint32_t chunk_of(const Work *w, const Group *g, uint32_t i,
                         uint64_t most) {
    uint64_t share = (uint64_t)height(w, result(w, g, i)) * g->rows;
    uint64_t q = node_quantum(w->g, group_node(w, g, i), 0);
    return (uint32_t)((share + most * q - 1) / (most * q) * q);
}

uint32_t roll_chunk(const Work *w, const Group *g, uint32_t i) {
    return chunk_of(w, g, i, group_height(w, g));
}

uint32_t *roll_chunks(const Work *w, const Group *g) {
    uint32_t n = g->end - g->first;
    uint64_t most = group_height(w, g);
    uint32_t *chunk = ARENA_ARRAY(w->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        chunk[i] = chunk_of(w, g, i, most);
    return chunk;
}

/* ---- the order ---- */

typedef struct Walk {
    const Work *w;
    const Group *g;
    RollVisitor *visit;
    void *context;
    uint32_t *done, *chunk; /* by node: rows */
    uint32_t *height;       /* of its result, */
    bool *inner;            /* and whether the group reads that */
} Walk;

static bool advance(Walk *walk, uint32_t i, uint32_t end);

/* Asks for rows of all operands up to the last that is needed. */
static bool operands_there(Walk *walk, const Node *node, const Rows *need) {
    for (uint32_t k = 0; k < node->n_in; k++) {
        uint32_t maker = group_maker(walk->w, walk->g, node->in[k]);
        if (maker != NONE &&
            !advance(walk, maker, need->in_row + need->in_rows))
            return false;
    }
    return true;
}

static bool advance(Walk *walk, uint32_t i, uint32_t end) {
    NodeId id = group_node(walk->w, walk->g, i);
    uint32_t q = node_quantum(walk->w->g, id, 0);
    end = (end + q - 1) / q * q;
    while (walk->done[i] < end) {
        uint32_t row = walk->done[i], rows = walk->chunk[i];
        rows = rows < end - row ? rows : end - row;
        Roll roll = {i, row, rows, rows_needed(walk->w->g, id, row, rows)};
        if (!roll.need.in_rows ||
            !operands_there(walk, graph_node(walk->w->g, id), &roll.need))
            return false;
        walk->visit(walk->context, &roll, walk->done);
        walk->done[i] = row + rows;
    }
    return true;
}

/* What only others read keeps pace with the last result. */
static bool others_follow(Walk *walk, uint32_t n) {
    uint64_t last = walk->height[n - 1];
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint64_t end = (uint64_t)walk->height[i] * walk->done[n - 1] / last;
        bool waits = walk->inner[i] && walk->done[n - 1] < last;
        if (!waits && !advance(walk, i, (uint32_t)end))
            return false;
    }
    return true;
}

static Walk walk_new(const Work *w, const Group *g, RollVisitor *visit,
                     void *context) {
    uint32_t n = g->end - g->first;
    Walk walk = {.w = w, .g = g, .visit = visit, .context = context};
    walk.done = ARENA_ARRAY(w->arena, uint32_t, n);
    walk.chunk = roll_chunks(w, g);
    walk.height = ARENA_ARRAY(w->arena, uint32_t, n);
    walk.inner = ARENA_ARRAY(w->arena, bool, n);
    for (uint32_t i = 0; i < n; i++) {
        GroupReaders r = group_readers(w, g, result(w, g, i));
        walk.height[i] = height(w, result(w, g, i));
        walk.inner[i] = group_readers_next(&r);
    }
    return walk;
}

/* Until `rows` rows of the last result are there. */
static bool roll_until(const Work *w, const Group *g, uint32_t rows,
                       RollVisitor *visit, void *context) {
    uint32_t last = g->end - g->first - 1;
    Walk walk = walk_new(w, g, visit, context);
    for (uint32_t end = 0; end < rows;) {
        end = end + walk.chunk[last] < rows ? end + walk.chunk[last] : rows;
        if (!advance(&walk, last, end) || !others_follow(&walk, last + 1))
            return false;
    }
    return true;
}

static uint32_t last_height(const Work *w, const Group *g) {
    return height(w, result(w, g, g->end - g->first - 1));
}

bool group_roll(const Work *w, const Group *g, RollVisitor *visit,
                void *context) {
    return roll_until(w, g, last_height(w, g), visit, context);
}

/* ---- rings ---- */

/* The first of those that share a place. */
static uint32_t ring_root(const Rings *rings, uint32_t i) {
    while (rings->at.at[i].over != NONE)
        i = rings->at.at[i].over;
    return i;
}

static void ring_add(const Work *w, Rings *rings, TensorId t, uint32_t maker) {
    for (uint32_t i = 0; i < rings->at.n; i++)
        if (same_tensor(rings->at.at[i].tensor, t))
            return;
    vec_push(w->arena, &rings->at,
             ((Ring){.tensor = t,
                     .maker = maker,
                     .over = NONE,
                     .under = NONE,
                     .inside = NONE}));
}

/* Into the ring of a concat of the group. */
static void ring_join(const Work *w, Rings *rings, Ring *part) {
    TensorId parent = w->role[part->tensor.i].parent;
    for (uint32_t i = rings->n_loaded; i < rings->at.n; i++)
        if (same_tensor(rings->at.at[i].tensor, parent))
            part->inside = i;
}

uint32_t ring_whole(const Work *w, const Rings *rings, uint32_t i,
                    uint32_t *c) {
    *c = 0;
    for (; rings->at.at[i].inside != NONE; i = rings->at.at[i].inside)
        *c += w->role[rings->at.at[i].tensor.i].part_c;
    return i;
}

static bool has_operand(const Node *node, TensorId t) {
    for (uint32_t k = 0; k < node->n_in; k++)
        if (same_tensor(node->in[k], t))
            return true;
    return false;
}

/* A pointwise result may replace, row by row, an operand that nobody else
 * reads. */
static void ring_take_over(const Work *w, const Group *g, Rings *rings,
                           uint32_t index) {
    Ring *out = &rings->at.at[index];
    NodeId id = graph_tensor(w->g, out->tensor)->producer;
    for (uint32_t i = 0; i < rings->at.n && out->maker != NONE; i++) {
        Ring *in = &rings->at.at[i];
        if (i == index || in->maker == NONE || in->under != NONE ||
            !has_operand(graph_node(w->g, id), in->tensor) ||
            !takes_in_place(w, id, in->tensor) ||
            !group_only_reader(w, g, in->tensor, out->maker))
            continue;
        out->over = i;
        in->under = index;
        return;
    }
}

/* The one whose buffer it is: it lies inside of that, or over it. */
static uint32_t ring_place(const Work *w, const Rings *rings, uint32_t i) {
    uint32_t c;
    return ring_whole(w, rings, ring_root(rings, i), &c);
}

/* Those that are loaded come first. */
void rings_list(const Work *w, const Group *g, Rings *rings) {
    uint32_t n = g->end - g->first;
    memset(rings, 0, sizeof *rings);
    for (uint32_t i = 0; i < n; i++) {
        const Node *node = graph_node(w->g, group_node(w, g, i));
        for (uint32_t k = 0; k < node->n_in; k++)
            if (group_maker(w, g, node->in[k]) == NONE &&
                !group_keeps(w, g, node->in[k]))
                ring_add(w, rings, node->in[k], NONE);
    }
    rings->n_loaded = rings->at.n;
    rings->made = ARENA_ARRAY(w->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        bool whole = group_keeps(w, g, result(w, g, i));
        rings->made[i] = whole ? NONE : rings->at.n;
        if (!whole)
            ring_add(w, rings, result(w, g, i), i);
    }
    for (uint32_t i = 0; i < rings->at.n; i++)
        ring_join(w, rings, &rings->at.at[i]);
    for (uint32_t i = rings->n_loaded; i < rings->at.n; i++)
        ring_take_over(w, g, rings, i);
    for (uint32_t i = 0, buf = 0; i < rings->at.n; i++)
        if (ring_place(w, rings, i) == i)
            rings->at.at[i].buf = buf++;
    for (uint32_t i = 0; i < rings->at.n; i++)
        rings->at.at[i].buf = rings->at.at[ring_place(w, rings, i)].buf;
}

/* The first row of the tensor that some reader of the group still wants when
 * done[] rows of each node are there; `row` if that is earlier. Who reads a
 * concat reads its members. */
static uint32_t oldest(const Work *w, const Group *g, TensorId t,
                       const uint32_t *done, uint32_t row) {
    GroupReaders r = group_readers(w, g, t);
    while (group_readers_next(&r)) {
        if (is_placed(w, group_node(w, g, r.i)))
            row = oldest(w, g, result(w, g, r.i), done, row);
        if (done[r.i] == height(w, result(w, g, r.i)))
            continue;
        Rows need = rows_needed(w->g, group_node(w, g, r.i), done[r.i], 1);
        row = need.in_row < row ? need.in_row : row;
    }
    return row;
}

bool ring_load(const Work *w, const Group *g, Ring *ring, const Roll *roll,
               const uint32_t *done, uint32_t *row) {
    uint32_t end = roll->need.in_row + roll->need.in_rows;
    if (ring->maker != NONE || ring->loaded >= end)
        return false;
    uint32_t first = oldest(w, g, ring->tensor, done, end);
    *row = first > ring->loaded ? first : ring->loaded;
    ring->loaded = end;
    return true;
}

typedef struct Growth {
    const Work *w;
    const Group *g;
    Rings *rings;
} Growth;

/* Those that share a place hold rows of one and the same stretch: the newest of
 * the first, the oldest of the last. */
static void grow(Growth *growth, Ring *ring, const uint32_t *done, uint32_t row,
                 uint32_t end) {
    Ring *at = growth->rings->at.at;
    uint32_t i = ring_root(growth->rings, (uint32_t)(ring - at));
    Ring *root = &at[i];
    if (root != ring)
        end = done[root->maker];
    for (; i != NONE; i = at[i].under)
        row = oldest(growth->w, growth->g, at[i].tensor, done, row);
    root = &at[ring_place(growth->w, growth->rings, (uint32_t)(root - at))];
    root->rows = end - row > root->rows ? end - row : root->rows;
}

static bool reads(const Work *w, const Group *g, const Roll *roll, TensorId t) {
    return has_operand(graph_node(w->g, group_node(w, g, roll->i)), t);
}

static void grow_by(void *context, const Roll *roll, const uint32_t *done) {
    Growth *growth = context;
    Rings *rings = growth->rings;
    uint32_t row, made = rings->made[roll->i];
    for (uint32_t i = 0; i < rings->n_loaded; i++) {
        Ring *ring = &rings->at.at[i];
        if (reads(growth->w, growth->g, roll, ring->tensor) &&
            ring_load(growth->w, growth->g, ring, roll, done, &row))
            grow(growth, ring, done, row, ring->loaded);
    }
    if (made != NONE)
        grow(growth, &rings->at.at[made], done, roll->row,
             roll->row + roll->rows);
}

/* Raises a concat's ring until all parts of it start at an address; false if
 * they never do. */
static bool ring_aligns(const Work *w, const Group *g, Rings *rings,
                        uint32_t i) {
    enum { MORE = 64 };
    Ring *ring = &rings->at.at[i];
    Ring *place = &rings->at.at[ring_place(w, rings, i)];
    for (uint32_t k = 0; k < MORE; k++, place->rows++)
        if (plank_parts_start(w, g, ring->maker, place->rows))
            return true;
    return false;
}

/* Rows that are loaded for a run of the group's last node. */
static uint32_t rows_ahead(const Work *w, const Group *g, const Ring *ring) {
    uint64_t rows = roll_chunk(w, g, g->end - g->first - 1);
    uint64_t last = last_height(w, g), h = height(w, ring->tensor);
    return g->ahead ? (uint32_t)((rows * h + last - 1) / last) : 0;
}

bool rings_until(const Work *w, const Group *g, uint32_t rows, Rings *rings) {
    Growth growth = {w, g, rings};
    bool made = roll_until(w, g, rows, grow_by, &growth);
    for (uint32_t i = rings->n_loaded; i < rings->at.n && made; i++)
        made = ring_aligns(w, g, rings, i);
    for (uint32_t i = 0; i < rings->at.n; i++) {
        rings->at.at[i].loaded = 0;
        rings->at.at[i].rows = rings->at.at[ring_place(w, rings, i)].rows;
    }
    for (uint32_t i = 0; i < rings->n_loaded; i++) {
        Ring *ring = &rings->at.at[i];
        uint32_t h = height(w, ring->tensor);
        ring->rows += rows_ahead(w, g, ring);
        ring->rows = ring->rows < h ? ring->rows : h;
    }
    return made;
}

bool rings_make(const Work *w, const Group *g, Rings *rings) {
    rings_list(w, g, rings);
    return rings_until(w, g, last_height(w, g), rings);
}
