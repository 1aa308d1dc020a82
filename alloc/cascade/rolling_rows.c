/* rolling_rows.c - cascades that run depth first and compute nothing twice.
 *
 * Input: a cascade of a machine whose operands may lie in rings of rows.
 * Output: the order in which its nodes add rows, and how many rows of each
 * tensor its ring must hold. A node that is asked for rows first asks those
 * that make its operands for what it lacks, so rows come as late as can be. A
 * ring keeps the rows that some reader still wants: of a window of k rows at
 * stride s, k - s and the new ones (the rolling buffers of
 * facts/two-level.md 1.5); of the short way around a residual, as many as the
 * long way is behind. What the rest of the network needs of a cascade, and what
 * it reads from before, lies whole in active memory if the cascade `stays`:
 * then only network inputs and what the host makes are loaded. Else all of it
 * passes row by row, each row once. Members of a concat of the cascade lie in
 * its ring; the concat is complete as far as they all are. Recursion is as deep
 * as a cascade is long.
 */
#include "alloc/alias/alias.h"
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/tensor_bytes.h"

#include "base/arith.h"

#include <string.h>

static uint32_t height(const Facts *f, TensorId t) {
    return plan_volume(f->g, t).h;
}

static TensorId result(const Facts *f, const Cascade *g, uint32_t i) {
    return graph_node(f->g, cascade_node(f, g, i))->out[0];
}

/* Whether nothing outside the cascade uses the alias class. */
static bool is_inner(const AliasClass *alias, const Cascade *g) {
    return alias->use[0].step >= g->first &&
           alias->use[alias->n_uses - 1].step < g->end;
}

bool cascade_keeps(const Decisions *d, const Cascade *g, TensorId t) {
    const Role *role = &d->f->role[t.i];
    if (!g->stays)
        return false;
    if (cascade_maker(d->f, g, t) == NONE)
        return role->origin == FROM_ENGINE || role->origin == FROM_PARTS;
    if (role->parent.i != NONE || role->origin == FROM_PARTS)
        return !is_inner(&d->alias.at[d->alias_of[t.i]], g);
    return role->last != NONE && role->last >= g->end;
}

/* ---- who rolls how far at a time ---- */

static const FlowStep *flow_of(const Facts *f, const Cascade *g) {
    return f->memo->flow + g->first;
}

uint32_t cascade_height(const Facts *f, const Cascade *g) {
    const FlowStep *step = flow_of(f, g);
    uint32_t most = 1;
    for (uint32_t i = 0; i < cascade_length(g); i++)
        most = step[i].size[0] > most ? step[i].size[0] : most;
    return most;
}

/* Rows of the node's result are added in multiples of this, but for the last.
 */
static uint32_t grain_of(const Cascade *g, const FlowStep *step) {
    return g->full ? step->turn : step->quantum[0];
}

/* `rows` is for the highest result, of `most` rows; the others take their
 * share. */
static uint32_t chunk_of(const Cascade *g, const FlowStep *step,
                         uint64_t most) {
    uint64_t share = (uint64_t)step->size[0] * g->rows;
    uint64_t q = grain_of(g, step);
    return smaller32((uint32_t)((share + most * q - 1) / (most * q) * q),
                     step->size[0]);
}

uint32_t roll_chunk(const Facts *f, const Cascade *g, uint32_t i) {
    return chunk_of(g, flow_of(f, g) + i, cascade_height(f, g));
}

uint32_t *roll_chunks(const Facts *f, const Cascade *g) {
    uint64_t most = cascade_height(f, g);
    uint32_t *chunk = ARENA_ARRAY(f->arena, uint32_t, cascade_length(g));
    for (uint32_t i = 0; i < cascade_length(g); i++)
        chunk[i] = chunk_of(g, flow_of(f, g) + i, most);
    return chunk;
}

/* ---- the order ---- */

typedef struct Walk {
    const Facts *f;
    const Cascade *g;
    FlowStep *step; /* by node */
    RollVisitor *visit;
    void *context;
    uint32_t *done, *chunk; /* by node: rows */
    bool *inner;            /* whether the cascade reads its result */
} Walk;

static bool advance(Walk *walk, uint32_t i, uint32_t end);

Rows operand_rows(const Facts *f, NodeId id, TensorId t, Rows need) {
    if (!node_reads_whole(graph_node(f->g, id), t))
        return need;
    return (Rows){.in_rows = height(f, t)};
}

/* Asks for rows of all operands up to the last that is needed. */
static bool operands_there(Walk *walk, const FlowStep *s, const Rows *all) {
    const Node *node = graph_node(walk->f->g, s->node);
    for (uint32_t k = 0; k < s->n_makers; k++) {
        uint32_t maker = s->maker[k] - walk->g->first;
        Rows need = operand_rows(walk->f, s->node, node->in[k], *all);
        if (maker < cascade_length(walk->g) &&
            !advance(walk, maker, need.in_row + need.in_rows))
            return false;
    }
    return true;
}

static bool advance(Walk *walk, uint32_t i, uint32_t end) {
    const FlowStep *s = &walk->step[i];
    uint32_t q = grain_of(walk->g, s);
    end = smaller32((end + q - 1) / q * q, s->size[0]);
    while (walk->done[i] < end) {
        uint32_t row = walk->done[i], rows = walk->chunk[i];
        rows = rows < end - row ? rows : end - row;
        Roll roll = {i, row, rows, rows_needed(walk->f->g, s->node, row, rows)};
        if (!roll.need.in_rows || !operands_there(walk, s, &roll.need))
            return false;
        walk->visit(walk->context, &roll, walk->done);
        walk->done[i] = row + rows;
    }
    return true;
}

/* What only others read keeps pace with the last result. */
static bool others_follow(Walk *walk, uint32_t n) {
    uint64_t last = walk->step[n - 1].size[0];
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint64_t end =
            (uint64_t)walk->step[i].size[0] * walk->done[n - 1] / last;
        bool waits = walk->inner[i] && walk->done[n - 1] < last;
        if (!waits && !advance(walk, i, (uint32_t)end))
            return false;
    }
    return true;
}

static bool is_read(const Walk *walk, uint32_t i) {
    const FlowStep *s = &walk->step[i];
    for (uint32_t k = 0; k < s->n_readers; k++)
        if (s->reader[k] - walk->g->first < cascade_length(walk->g))
            return true;
    return false;
}

static Walk walk_new(const Facts *f, const Cascade *g, RollVisitor *visit,
                     void *context) {
    uint32_t n = cascade_length(g);
    Walk walk = {.f = f, .g = g, .visit = visit, .context = context};
    walk.step = f->memo->flow + g->first;
    walk.done = ARENA_ARRAY(f->arena, uint32_t, n);
    walk.chunk = roll_chunks(f, g);
    walk.inner = ARENA_ARRAY(f->arena, bool, n);
    for (uint32_t i = 0; i < n; i++)
        walk.inner[i] = is_read(&walk, i);
    return walk;
}

/* Until `rows` rows of the last result are there. */
static bool roll_until(const Facts *f, const Cascade *g, uint32_t rows,
                       RollVisitor *visit, void *context) {
    uint32_t last = cascade_length(g) - 1;
    Walk walk = walk_new(f, g, visit, context);
    for (uint32_t end = 0; end < rows;) {
        end = end + walk.chunk[last] < rows ? end + walk.chunk[last] : rows;
        if (!advance(&walk, last, end) || !others_follow(&walk, last + 1))
            return false;
    }
    return true;
}

static uint32_t last_height(const Facts *f, const Cascade *g) {
    return flow_of(f, g)[cascade_length(g) - 1].size[0];
}

bool cascade_roll(const Facts *f, const Cascade *g, RollVisitor *visit,
                  void *context) {
    return roll_until(f, g, last_height(f, g), visit, context);
}

/* ---- rings ---- */

static void ring_add(const Facts *f, Rings *rings, TensorId t, uint32_t maker) {
    for (uint32_t i = 0; i < rings->at.n; i++)
        if (same_tensor(rings->at.at[i].tensor, t))
            return;
    vec_push(f->arena, &rings->at,
             ((Ring){.tensor = t,
                     .maker = maker,
                     .over = NONE,
                     .under = NONE,
                     .inside = NONE}));
}

/* Into the ring of a concat of the cascade. */
static void ring_join(const Facts *f, Rings *rings, Ring *part) {
    TensorId parent = f->role[part->tensor.i].parent;
    for (uint32_t i = rings->n_loaded; i < rings->at.n; i++)
        if (same_tensor(rings->at.at[i].tensor, parent))
            part->inside = i;
}

uint32_t ring_whole(const Facts *f, const Rings *rings, uint32_t i,
                    uint32_t *c) {
    *c = 0;
    for (; rings->at.at[i].inside != NONE; i = rings->at.at[i].inside)
        *c += f->role[rings->at.at[i].tensor.i].part_c;
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
static void ring_take_over(const Facts *f, const Cascade *g, Rings *rings,
                           uint32_t index) {
    Ring *out = &rings->at.at[index];
    NodeId id = graph_tensor(f->g, out->tensor)->producer;
    for (uint32_t i = 0; i < rings->at.n && out->maker != NONE; i++) {
        Ring *in = &rings->at.at[i];
        if (i == index || in->maker == NONE || in->under != NONE ||
            !has_operand(graph_node(f->g, id), in->tensor) ||
            !takes_in_place(f, id, in->tensor) ||
            !cascade_only_reader(f, g, in->tensor, out->maker))
            continue;
        out->over = i;
        in->under = index;
        return;
    }
}

/* Once all are listed. */
static void rings_place(const Facts *f, Rings *rings) {
    Ring *at = rings->at.at;
    uint32_t c, buf = 0;
    for (uint32_t i = 0; i < rings->at.n; i++) {
        for (at[i].root = i; at[at[i].root].over != NONE;)
            at[i].root = at[at[i].root].over;
        at[i].place = ring_whole(f, rings, at[i].root, &c);
    }
    for (uint32_t i = 0; i < rings->at.n; i++)
        if (at[i].place == i)
            at[i].buf = buf++;
    for (uint32_t i = 0; i < rings->at.n; i++)
        at[i].buf = at[at[i].place].buf;
}

/* Those that are loaded come first. */
void rings_list(const Decisions *d, const Cascade *g, Rings *rings) {
    const Facts *f = d->f;
    uint32_t n = cascade_length(g);
    memset(rings, 0, sizeof *rings);
    for (uint32_t i = 0; i < n; i++) {
        const Node *node = graph_node(f->g, cascade_node(f, g, i));
        for (uint32_t k = 0; k < node->n_in; k++)
            if (cascade_maker(f, g, node->in[k]) == NONE &&
                !cascade_keeps(d, g, node->in[k]))
                ring_add(f, rings, node->in[k], NONE);
    }
    rings->n_loaded = rings->at.n;
    rings->made = ARENA_ARRAY(f->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        bool whole = cascade_keeps(d, g, result(f, g, i));
        rings->made[i] = whole ? NONE : rings->at.n;
        if (!whole)
            ring_add(f, rings, result(f, g, i), i);
    }
    for (uint32_t i = 0; i < rings->at.n; i++)
        ring_join(f, rings, &rings->at.at[i]);
    for (uint32_t i = rings->n_loaded; i < rings->at.n; i++)
        ring_take_over(f, g, rings, i);
    rings_place(f, rings);
}

static uint32_t oldest(const Facts *f, const Cascade *g, uint32_t i,
                       const uint32_t *done, uint32_t row);

/* The first row of its operand `t` that node i of the cascade, or who reads it
 * as a concat, still wants; `row` if that is earlier. */
static uint32_t wanted_by(const Facts *f, const Cascade *g, uint32_t i,
                          TensorId t, const uint32_t *done, uint32_t row) {
    FlowStep *s = &f->memo->flow[g->first + i];
    if (is_placed(f, s->node))
        row = oldest(f, g, i, done, row);
    if (done[i] == s->size[0])
        return row;
    bool whole = node_reads_whole(graph_node(f->g, s->node), t);
    uint32_t first = whole ? 0 : flow_first(f, s, 0, done[i]);
    return first < row ? first : row;
}

/* The first row of node i's result that some reader of the cascade still wants
 * when done[] rows of each node are there; `row` if that is earlier. Who reads
 * a concat reads its members. */
static uint32_t oldest(const Facts *f, const Cascade *g, uint32_t i,
                       const uint32_t *done, uint32_t row) {
    const FlowStep *s = &f->memo->flow[g->first + i];
    for (uint32_t k = 0; k < s->n_readers; k++)
        if (s->reader[k] - g->first < cascade_length(g))
            row = wanted_by(f, g, s->reader[k] - g->first, result(f, g, i),
                            done, row);
    return row;
}

/* The same of a tensor that is loaded. */
static uint32_t oldest_loaded(const Facts *f, const Cascade *g, TensorId t,
                              const uint32_t *done, uint32_t row) {
    CascadeReaders r = cascade_readers(f, g, t);
    while (cascade_readers_next(&r))
        row = wanted_by(f, g, r.i, t, done, row);
    return row;
}

bool ring_load(const Facts *f, const Cascade *g, Ring *ring, const Roll *roll,
               const uint32_t *done, uint32_t *row) {
    Rows need =
        operand_rows(f, cascade_node(f, g, roll->i), ring->tensor, roll->need);
    uint32_t end = need.in_row + need.in_rows;
    if (ring->maker != NONE || ring->loaded >= end)
        return false;
    uint32_t first = oldest_loaded(f, g, ring->tensor, done, end);
    *row = first > ring->loaded ? first : ring->loaded;
    ring->loaded = end;
    return true;
}

typedef struct Growth {
    const Facts *f;
    const Cascade *g;
    Rings *rings;
} Growth;

/* Those that share a place hold rows of one and the same stretch: the newest of
 * the first, the oldest of the last. */
static void grow(Growth *growth, Ring *ring, const uint32_t *done, uint32_t row,
                 uint32_t end) {
    Ring *at = growth->rings->at.at;
    const Ring *root = &at[ring->root];
    Ring *place = &at[ring->place];
    if (root != ring)
        end = done[root->maker];
    if (root->maker == NONE)
        row = oldest_loaded(growth->f, growth->g, root->tensor, done, row);
    for (uint32_t i = ring->root; root->maker != NONE && i != NONE;
         i = at[i].under)
        row = oldest(growth->f, growth->g, at[i].maker, done, row);
    place->rows = end - row > place->rows ? end - row : place->rows;
}

static bool reads(const Facts *f, const Cascade *g, const Roll *roll,
                  TensorId t) {
    return has_operand(graph_node(f->g, cascade_node(f, g, roll->i)), t);
}

static void grow_by(void *context, const Roll *roll, const uint32_t *done) {
    Growth *growth = context;
    Rings *rings = growth->rings;
    uint32_t row, made = rings->made[roll->i];
    for (uint32_t i = 0; i < rings->n_loaded; i++) {
        Ring *ring = &rings->at.at[i];
        if (reads(growth->f, growth->g, roll, ring->tensor) &&
            ring_load(growth->f, growth->g, ring, roll, done, &row))
            grow(growth, ring, done, row, ring->loaded);
    }
    if (made != NONE)
        grow(growth, &rings->at.at[made], done, roll->row,
             roll->row + roll->rows);
}

/* Whether rows of it come from outside early, or leave late. */
static bool ring_moves(const Facts *f, const Cascade *g, const Ring *ring) {
    if (ring->maker == NONE)
        return g->ahead;
    if (!g->late)
        return false;
    return g->stays ? f->role[ring->tensor.i].outside
                    : cascade_stores(f, g, ring->tensor);
}

/* Rows of what moves that are there for a run of the cascade's last node more
 * than are needed: those of the next, or of the one before. */
static uint32_t rows_ahead(const Facts *f, const Cascade *g, const Ring *ring) {
    uint64_t rows = roll_chunk(f, g, cascade_length(g) - 1);
    uint64_t last = last_height(f, g), h = height(f, ring->tensor);
    return ring_moves(f, g, ring) ? (uint32_t)((rows * h + last - 1) / last)
                                  : 0;
}

/* Where rows lie in blocks, such as one a bank, a ring is of whole blocks:
 * rows that follow each other then lie in banks that do. The bytes are those
 * that the layout takes anyway. */
static uint32_t whole_blocks(const Facts *f, TensorId t, uint32_t rows) {
    Volume v = plan_volume(f->g, t);
    uint32_t block = layout_split(f->spec->memory[0].layout, &v, LAYOUT_H);
    uint64_t up = (rows + (uint64_t)block - 1) / block * block;
    return up < v.h ? (uint32_t)up : rows > v.h ? rows : v.h;
}

/* Makes room for rows that come early, or leave late; then whole blocks. */
static void rings_widen(const Facts *f, const Cascade *g, Rings *rings) {
    Ring *at = rings->at.at;
    uint32_t *more = ARENA_ARRAY(f->arena, uint32_t, rings->at.n);
    for (uint32_t i = 0; i < rings->at.n; i++)
        more[at[i].place] =
            larger32(more[at[i].place], rows_ahead(f, g, &at[i]));
    for (uint32_t i = 0; i < rings->at.n; i++) {
        uint32_t rows = at[i].rows, h = height(f, at[i].tensor);
        at[i].loaded = 0;
        rows = larger32(rows, smaller32(rows + more[i], h));
        at[i].rows = at[i].place == i ? whole_blocks(f, at[i].tensor, rows) : 0;
    }
}

static bool parts_start(const Facts *f, const Cascade *g, const Rings *rings,
                        uint32_t place) {
    const Ring *at = rings->at.at;
    for (uint32_t i = rings->n_loaded; i < rings->at.n; i++)
        if (at[i].place == place &&
            !row_tile_parts_start(f, g, at[i].maker, at[place].rows))
            return false;
    return true;
}

/* Raises concats' rings until all parts of them start at an address; false if
 * they never do. */
static bool rings_align(const Facts *f, const Cascade *g, Rings *rings) {
    enum { MORE = 64 };
    Ring *at = rings->at.at;
    for (uint32_t i = 0; i < rings->at.n; i++) {
        bool start = at[i].place != i;
        for (uint32_t k = 0; k < MORE && !start; k++) {
            start = parts_start(f, g, rings, i);
            if (!start)
                at[i].rows = whole_blocks(f, at[i].tensor, at[i].rows + 1);
        }
        if (!start)
            return false;
    }
    for (uint32_t i = 0; i < rings->at.n; i++)
        at[i].rows = at[at[i].place].rows;
    return true;
}

bool rings_until(const Facts *f, const Cascade *g, uint32_t rows,
                 Rings *rings) {
    Growth growth = {.f = f, g, rings};
    bool made = roll_until(f, g, rows, grow_by, &growth);
    rings_widen(f, g, rings);
    return made && rings_align(f, g, rings);
}

bool rings_make(const Decisions *d, const Cascade *g, Rings *rings) {
    rings_list(d, g, rings);
    return rings_until(d->f, g, last_height(d->f, g), rings);
}
