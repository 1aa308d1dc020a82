/* rolling_cost.c - what cascades that roll cost, and how many rows, or columns,
 * at a time fit.
 *
 * Input: a cascade. Output: bytes of its rings, bytes over DDR, weights read.
 * Once a cascade has begun, it repeats itself with each run of its last node: a
 * few runs tell its rings. Costs depend on the cascade and its rows alone, not
 * on the memory that is planned for, so they are kept: of each cascade for some
 * numbers of rows, close together where they are small.
 */
#include "alloc/cascade/lines.h"
#include "alloc/geometry/tensor_bytes.h"

enum { RUNS = 3, MAX_TRIED = 48 };

/* What was found last: the same for all bytes from `fits` up to `exceeds`. */
typedef struct Answer {
    uint64_t fits, exceeds;
    uint64_t first, total; /* bytes of the first memory, and of all */
    uint32_t most, k; /* as it was asked; the number that was found, or NONE, */
    RollCost cost;    /* and what it, or else the first one, costs */
    bool is;
} Answer;

/* Of one number of rows. */
typedef struct Trial {
    RollCost cost;
    const OperandBytes *ring; /* where there are several memories */
    uint32_t n_rings;
    bool is, exact;
} Trial;

typedef struct Known {
    Answer answer;
    Trial first;              /* that is all that most are asked for */
    Trial *other;             /* NULL, or MAX_TRIED */
    struct Known *by_columns; /* the same of line buffers; of these, */
    uint32_t strips;          /* ... with so many strips, */
    struct Known *others;     /* ... and with other numbers */
    const Rings *list;        /* of any number, and what that means: */
    uint64_t moved, once;     /* bytes over DDR; weights, were each read once */
    const Rings **rings;      /* those of all runs, as far as they are known */
    const Lines **lines;
} Known;

struct RollCosts {
    Arena *arena;
    uint32_t n_steps;
    struct Ends {
        uint32_t n;
        struct Fit {
            RollCost least; /* as roll_fits gives it */
            Known *known;
            bool is;
        } * fit;  /* by length of the cascade */
    } * from[16]; /* by whether it stays, is ahead, full, late; by its first
                     step */
};

RollCosts *roll_costs_new(Arena *arena, uint32_t n_steps) {
    RollCosts *costs = ARENA_NEW(arena, RollCosts);
    *costs = (RollCosts){.arena = arena, .n_steps = n_steps};
    for (uint32_t i = 0; i < sizeof costs->from / sizeof *costs->from; i++)
        costs->from[i] = ARENA_ARRAY(arena, struct Ends, n_steps);
    return costs;
}

static Known *known_strips(RollCosts *costs, Known *rows, uint32_t strips) {
    Known *known = rows->by_columns;
    while (known && known->strips != strips)
        known = known->others;
    if (known)
        return known;
    known = ARENA_NEW(costs->arena, Known);
    known->strips = strips;
    known->others = rows->by_columns;
    return rows->by_columns = known;
}

static struct Fit *fit_of(RollCosts *costs, const Cascade *g) {
    struct Ends *ends = &costs->from[g->stays + 2 * g->ahead + 4 * g->full +
                                     8 * g->late][g->first];
    uint32_t length = cascade_length(g);
    if (length >= ends->n) {
        uint32_t n = 2 * length;
        struct Fit *more = ARENA_ARRAY(costs->arena, struct Fit, n);
        for (uint32_t i = 0; i < ends->n; i++)
            more[i] = ends->fit[i];
        *ends = (struct Ends){n, more};
    }
    return &ends->fit[length];
}

static Known *known_of(RollCosts *costs, const Cascade *g) {
    struct Fit *fit = fit_of(costs, g);
    if (!fit->known)
        fit->known = ARENA_NEW(costs->arena, Known);
    return g->cols ? known_strips(costs, fit->known, g->strips) : fit->known;
}

/* ---- costs ---- */

static OperandBytes ring_bytes(const Facts *f, const Cascade *g,
                               const Ring *ring) {
    OperandBytes own = {.memories = cascade_reach(f, g, ring->tensor)};
    pool_bytes(f, ring->tensor, ring->rows, false, own.bytes);
    return own;
}

/* In the memory where it takes the least, however large that is. */
static uint64_t least_of(const Facts *f, const OperandBytes *ring) {
    uint64_t least = UINT64_MAX;
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        uint64_t bytes = ring->bytes[m];
        uint64_t b = round_up(bytes, pool_of(&f->spec->memory[m]).align);
        if (ring->memories >> m & 1 && bytes && b < least)
            least = b;
    }
    return least;
}

uint64_t node_weights(const Facts *f, NodeId id) {
    ConstId weight = graph_node(f->g, id)->constant[CONST_WEIGHT];
    return weight.i == NONE ? 0
                            : shape_count(&graph_const(f->g, weight)->shape);
}

/* But for rows that were asked for out of turn. */
static uint64_t weights_read(const Facts *f, const Cascade *g) {
    uint64_t sum = 0;
    const uint32_t *chunk = roll_chunks(f, g);
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        NodeId id = cascade_node(f, g, i);
        uint32_t h = plan_volume(f->g, graph_node(f->g, id)->out[0]).h;
        sum += node_weights(f, id) * ((h + chunk[i] - 1) / chunk[i]);
    }
    return sum;
}

/* Cycles of turns in which engines make fewer rows than they could. */
static uint64_t wasted(const Facts *f, const Cascade *g) {
    uint64_t sum = 0;
    const uint32_t *chunk = roll_chunks(f, g);
    for (uint32_t i = 0; i < cascade_length(g); i++)
        sum += cycles_wasted(f, cascade_node(f, g, i), chunk[i]);
    return sum;
}

static uint64_t moved_by(const Facts *f, const Cascade *g, TensorId t,
                         bool loaded) {
    bool placed = is_placed(f, graph_tensor(f->g, t)->producer);
    bool stored = placed ? f->role[t.i].outside : cascade_stores(f, g, t);
    return loaded || stored ? moved_bytes(f, t) : 0;
}

static uint64_t once_weights(const Facts *f, const Cascade *g) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < cascade_length(g); i++)
        sum += node_weights(f, cascade_node(f, g, i));
    return sum;
}

uint64_t roll_weights(const Decisions *d, const RollCost *cost) {
    bool stay = cost->once * d->f->spec->element <= d->config->aside;
    return stay ? cost->once : cost->weights;
}

/* All columns of all strips, row by row of their bands; about. */
static uint64_t line_weights(const Facts *f, const Cascade *g,
                             const Lines *lines) {
    uint64_t sum = 0, strips = cascade_strips(g);
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        NodeId id = cascade_node(f, g, i);
        Volume v = plan_volume(f->g, graph_node(f->g, id)->out[0]);
        const LineNode *node = &lines->node[i];
        uint64_t strip = (node->columns + strips - 1) / strips;
        sum += node_weights(f, id) * ((v.h + node->rows - 1) / node->rows) *
               ((strip + node->cols - 1) / node->cols) * strips;
    }
    return sum;
}

static uint64_t line_again(const Facts *f, const Cascade *g,
                           const Lines *lines) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        const Node *node = line_node(f, g, i);
        Volume v = plan_volume(f->g, node->out[0]);
        sum +=
            row_work(f->g, node) / v.w * v.h * (lines->node[i].columns - v.w);
    }
    return sum;
}

/* What is loaded comes with each strip that has it; each pixel of what is
 * stored goes once. */
static uint64_t line_moved(const Facts *f, const Cascade *g,
                           const LineRing *line) {
    Volume v = plan_volume(f->g, line->tensor);
    uint64_t whole = moved_by(f, g, line->tensor, line->maker == NONE);
    return line->maker == NONE ? whole / v.w * line->columns : whole;
}

static RollCost line_cost_make(const Decisions *d, const Cascade *g,
                               bool exact) {
    Lines lines;
    if (!lines_make(d, g, exact, &lines))
        return (RollCost){.bytes = UINT64_MAX};
    RollCost cost = {.bytes = lines.bytes,
                     .weights = line_weights(d->f, g, &lines),
                     .once = once_weights(d->f, g),
                     .again = line_again(d->f, g, &lines)};
    for (uint32_t i = 0; i < lines.at.n; i++)
        cost.moved += line_moved(d->f, g, &lines.at.at[i]);
    return cost;
}

static Rings *rings_keep(Arena *arena, const Cascade *g, const Rings *rings) {
    Rings *kept = ARENA_COPY(arena, Rings, rings, 1);
    kept->at.at = ARENA_COPY(arena, Ring, rings->at.at, rings->at.n);
    kept->made = ARENA_COPY(arena, uint32_t, rings->made, cascade_length(g));
    return kept;
}

/* Of cascades that stay they depend on alias classes, which are the same
 * whenever costs are asked for. */
static void list_make(const Decisions *d, const Cascade *g, Known *known) {
    const Facts *f = d->f;
    Rings rings;
    rings_list(d, g, &rings);
    known->list = rings_keep(f->memo->rolls->arena, g, &rings);
    for (uint32_t i = 0; i < rings.at.n; i++)
        known->moved +=
            moved_by(f, g, rings.at.at[i].tensor, i < rings.n_loaded);
    known->once = once_weights(f, g);
}

/* Bytes of all; of several memories, of each, too. */
static uint64_t rings_bytes(const Facts *f, const Cascade *g,
                            const Rings *rings, Trial *trial) {
    Arena *arena = f->memo->rolls->arena;
    uint64_t sum = 0;
    bool each = f->spec->n_active > 1;
    OperandBytes *own =
        ARENA_ARRAY(each ? arena : f->arena, OperandBytes, rings->at.n + 1);
    trial->n_rings = 0;
    trial->ring = own;
    for (uint32_t i = 0; i < rings->at.n; i++) {
        if (rings->at.at[i].place != i)
            continue;
        own[trial->n_rings] = ring_bytes(f, g, &rings->at.at[i]);
        uint64_t bytes = least_of(f, &own[trial->n_rings++]);
        if (bytes > UINT64_MAX - sum)
            return UINT64_MAX;
        sum += bytes;
    }
    return sum;
}

static RollCost ring_cost_make(const Decisions *d, const Cascade *g, bool exact,
                               Trial *trial) {
    const Facts *f = d->f;
    Known *known = known_of(f->memo->rolls, g);
    if (!known->list)
        list_make(d, g, known);
    Rings *rings = rings_keep(f->arena, g, known->list);
    RollCost cost = {.moved = known->moved,
                     .weights = weights_read(f, g),
                     .once = known->once,
                     .wasted = wasted(f, g)};
    uint32_t last = cascade_length(g) - 1;
    uint32_t rows = RUNS * roll_chunk(f, g, last);
    NodeId id = cascade_node(f, g, last);
    uint32_t h = plan_volume(f->g, graph_node(f->g, id)->out[0]).h;
    if (!rings_until(f, g, exact || rows > h ? h : rows, rings))
        return (RollCost){.bytes = UINT64_MAX};
    cost.bytes = rings_bytes(f, g, rings, trial);
    return cost;
}

/* What is made on the way goes at once. */
static RollCost cost_make(const Decisions *d, const Cascade *g, bool exact,
                          Trial *trial) {
    Arena *scratch = arena_new("roll");
    Facts facts = *d->f;
    Decisions within = *d;
    facts.arena = scratch;
    within.f = &facts;
    RollCost cost = g->cols ? line_cost_make(&within, g, exact)
                            : ring_cost_make(&within, g, exact, trial);
    arena_free(scratch);
    return cost;
}

/* ---- rows ---- */

/* The k-th number that is tried: 1 to 8, then eight for each power of two. */
static uint32_t tried(uint32_t k) {
    uint32_t power = k / 8;
    return power ? (9 + k % 8) << (power - 1) : k + 1;
}

static Trial *known_trial(RollCosts *costs, Known *known, uint32_t k) {
    if (k && !known->other)
        known->other = ARENA_ARRAY(costs->arena, Trial, MAX_TRIED);
    return k ? &known->other[k] : &known->first;
}

/* Sets the rows, or columns, to the k-th number. */
static const Trial *trial_of(const Decisions *d, Cascade *g, uint32_t k) {
    RollCosts *costs = d->f->memo->rolls;
    *(g->cols ? &g->cols : &g->rows) = tried(k);
    Trial *trial = known_trial(costs, known_of(costs, g), k);
    if (!trial->is)
        trial->cost = cost_make(d, g, false, trial);
    trial->is = true;
    return trial;
}

static RollCost cost_of(const Decisions *d, Cascade *g, uint32_t k) {
    return trial_of(d, g, k)->cost;
}

/* Whether its rings have places beside each other. */
static bool have_places(const Decisions *d, const Trial *trial) {
    return d->f->spec->n_active == 1 || trial->cost.bytes == UINT64_MAX ||
           lie_apart(d->f, trial->ring, trial->n_rings);
}

/* Whether the k-th number takes at most `bytes`. */
static bool try_bytes(const Decisions *d, Cascade *g, uint32_t k,
                      uint64_t bytes, Answer *answer) {
    const Trial *trial = trial_of(d, g, k);
    uint64_t own = trial->cost.bytes;
    if (!have_places(d, trial))
        return false; /* however many bytes there are */
    if (own <= bytes)
        answer->fits = own > answer->fits ? own : answer->fits;
    else
        answer->exceeds = own < answer->exceeds ? own : answer->exceeds;
    return own <= bytes;
}

/* The greatest number up to `most` with which the cascade takes at most
 * `bytes`; NONE if there is none. */
static Answer answer_find(const Decisions *d, Cascade *g, uint32_t most,
                          uint64_t bytes) {
    Answer answer = {.exceeds = UINT64_MAX,
                     .first = d->f->spec->memory[0].size,
                     .total = d->f->total,
                     .most = most,
                     .k = NONE,
                     .is = true};
    uint32_t lo = 0, hi = 1;
    bool any = try_bytes(d, g, 0, bytes, &answer);
    answer.cost = cost_of(d, g, 0);
    if (!any)
        return answer;
    while (hi < MAX_TRIED && tried(hi) < 2 * most)
        hi++;
    while (lo + 1 < hi) {
        uint32_t k = lo + (hi - lo) / 2;
        *(try_bytes(d, g, k, bytes, &answer) ? &lo : &hi) = k;
    }
    answer.k = lo;
    answer.cost = cost_of(d, g, lo);
    return answer;
}

/* Sets the cascade's rows, or columns, to it; 0 if there is none. */
static void roll_most(const Decisions *d, Cascade *g, uint32_t most,
                      uint64_t bytes, RollCost *cost) {
    Answer *answer = &known_of(d->f->memo->rolls, g)->answer;
    bool same = answer->first == d->f->spec->memory[0].size &&
                answer->total == d->f->total;
    if (!answer->is || answer->most != most || !same || bytes < answer->fits ||
        bytes >= answer->exceeds)
        *answer = answer_find(d, g, most, bytes);
    *cost = answer->cost;
    *(g->cols ? &g->cols : &g->rows) = answer->k == NONE ? 0 : tried(answer->k);
}

uint32_t roll_rows(const Decisions *d, Cascade g, uint64_t bytes,
                   RollCost *cost) {
    uint32_t h = cascade_height(d->f, &g),
             most = h / (g.ahead ? d->config->runs : 1);
    roll_most(d, &g, most ? most : 1, bytes, cost);
    return g.rows;
}

bool roll_fits(const Decisions *d, Cascade g, uint64_t bytes, RollCost *least) {
    struct Fit *fit = fit_of(d->f->memo->rolls, &g);
    if (!fit->is) {
        fit->least = cost_of(d, &g, 0);
        fit->least.weights = fit->known->once;
        fit->least.wasted = 0;
        fit->is = true;
    }
    *least = fit->least;
    return least->bytes <= bytes && have_places(d, &fit->known->first);
}

uint32_t roll_columns(const Decisions *d, Cascade g, uint64_t bytes,
                      RollCost *cost) {
    g.cols = 1; /* by columns */
    uint32_t most =
        plan_volume(d->f->g,
                    graph_node(d->f->g, cascade_node(d->f, &g, 0))->out[0])
            .w;
    roll_most(d, &g, (most + 1) / 2, bytes, cost);
    return g.cols;
}

/* Of which number that is tried the cascade is. */
static uint32_t tried_as(const Cascade *g) {
    uint32_t k = 0;
    while (tried(k) != (g->cols ? g->cols : g->rows))
        k++;
    return k;
}

bool roll_confirm(const Decisions *d, const Cascade *g) {
    Known *known = known_of(d->f->memo->rolls, g);
    Trial *trial = known_trial(d->f->memo->rolls, known, tried_as(g));
    if (trial->exact)
        return true;
    fit_of(d->f->memo->rolls, g)->is = false;
    uint64_t before = trial->cost.bytes;
    trial->exact = true;
    trial->cost = cost_make(d, g, true, trial);
    known->answer.is = false;
    return trial->cost.bytes == before;
}

/* ---- rings and lines ---- */

/* Of cascades that stay they are made anew. */
const Rings *cascade_rings(const Decisions *d, const Cascade *g) {
    const Facts *f = d->f;
    Arena *arena = f->memo->rolls->arena;
    Known *known = known_of(f->memo->rolls, g);
    uint32_t k = tried_as(g);
    if (!known->rings)
        known->rings = ARENA_ARRAY(arena, const Rings *, MAX_TRIED);
    if (known->rings[k] && !g->stays)
        return known->rings[k];
    Rings rings;
    rings_make(d, g, &rings);
    if (g->stays)
        return rings_keep(f->arena, g, &rings);
    return known->rings[k] = rings_keep(arena, g, &rings);
}

const Lines *cascade_lines(const Decisions *d, const Cascade *g) {
    const Facts *f = d->f;
    Arena *arena = g->stays ? f->arena : f->memo->rolls->arena;
    Known *known = known_of(f->memo->rolls, g);
    uint32_t k = tried_as(g);
    if (!known->lines)
        known->lines =
            ARENA_ARRAY(f->memo->rolls->arena, const Lines *, MAX_TRIED);
    if (known->lines[k] && !g->stays)
        return known->lines[k];
    Lines lines;
    if (!lines_make(d, g, true, &lines))
        bug("line buffers of a group cannot be made");
    Lines *kept = ARENA_COPY(arena, Lines, &lines, 1);
    kept->at.at = ARENA_COPY(arena, LineRing, lines.at.at, lines.at.n);
    kept->node = ARENA_COPY(arena, LineNode, lines.node, cascade_length(g));
    if (!g->stays)
        known->lines[k] = kept;
    return kept;
}
