/* perfect_packing.c - perfect packings: a search along time, not along height.
 *
 * Input: a strip in which each section is full: its items sum up to the
 * capacity. Output: offsets, or nothing. What is not found may exist.
 *
 * Without waste the items alive lie as a stack without gaps, and time changes
 * the stack in blocks: some that lie side by side die together, and those that
 * are born fill exactly their place.
 *
 *        |  d  |     |  d  |
 *        |-----|     |-----|       {b, c} -> {e}: sizes add up to the same,
 *        |  c  |     |     |       and b, c must have been neighbours
 *        |-----| ->  |  e  |
 *        |  b  |     |     |
 *        |-----|     |-----|
 *        |  a  |     |  a  |
 *
 * The order in which the born lie in their block matters later, when some of
 * them must die side by side with others. It need not be guessed: a PQ-tree
 * holds all orders that are left, and each block restricts it (pqtree.h). What
 * is guessed is only who makes way for whom. Equal sums of few items are seldom
 * a chance, those of many often: blocks of few pieces come first, where a
 * piece is a set of dead that lie side by side anyway, or of born that will die
 * together. A failure goes back to the last guess that it depends on.
 *
 * Runs are short; each goes into one direction of time, with noise of its own.
 * At the end the stacks are read from the last to the first: the tree's last
 * order, then block by block the dead in the place of the born.
 */
#include "pack/exact/exact.h"

#include "base/guard.h"
#include "base/order.h"
#include "base/rng.h"
#include "pack/exact/pqtree.h"

#include <stdlib.h>

typedef VEC(uint32_t) Items;

/* Who makes way for whom. */
typedef struct Block {
    uint32_t n_dead, n_born;
    const uint32_t *dead, *born;
    double cost;
    PqCut cut;
} Block;
typedef VEC(Block) Blocks;

/* A state of the search and what is still to be tried from it. */
typedef struct Level {
    const PqNode *tree;
    uint32_t section; /* at whose beginning they die and are born */
    Items dead, born; /* not in blocks yet */
    Blocks choice;
    uint32_t tried;   /* the last one tried is in force */
    PqStamps reasons; /* earlier levels that failures from here are due to */
} Level;

typedef struct Sweep {
    Arena *arena; /* of the run */
    const Strip *strip;
    bool backwards;
    bool *marked;         /* by item */
    bool *noted;          /* by stamp */
    Items *dies, *begins; /* by boundary */
    Items *bonds; /* by boundary: those at which all die that must lie side by
                   * side, the last of which begins here */
    VEC(Level) level;
    uint64_t seed, drawn, steps, max_steps;
    double noise;
} Sweep;

/* ---- what happens when ---- */

static int64_t size_of(const Sweep *s, uint32_t item) {
    return s->strip->item[item].size;
}

/* The boundary between sections at which event `k` = 1 ... happens. */
static uint32_t boundary(const Sweep *s, uint32_t k) {
    return s->backwards ? s->strip->n_sections - k : k;
}

static void list_events(Sweep *s) {
    uint32_t n = s->strip->n_sections + 1;
    s->dies = ARENA_ARRAY(s->arena, Items, n);
    s->begins = ARENA_ARRAY(s->arena, Items, n);
    for (uint32_t i = 0; i < s->strip->n; i++) {
        const Item *item = &s->strip->item[i];
        vec_push(s->arena, &s->begins[s->backwards ? item->hi : item->lo], i);
        vec_push(s->arena, &s->dies[s->backwards ? item->lo : item->hi], i);
    }
}

/* By boundary: its number in the order of the walk. */
static uint32_t turn(const Sweep *s, uint32_t at) {
    return s->backwards ? s->strip->n_sections - at : at;
}

/* A question of sums, given up after so many tries. */
enum { MOST_HALVES = 4, MOST_SUMS = 1000 };

/* Is there a set of items, from position `from` on, that weighs `rest`? */
static bool has_sum(const Sweep *s, const Items *items, uint32_t from,
                    int64_t rest, uint32_t *tries) {
    if (!rest || ++*tries > MOST_SUMS)
        return true;
    for (uint32_t i = from; i < items->n; i++) {
        int64_t size = size_of(s, items->at[i]);
        if (size <= rest && has_sum(s, items, i + 1, rest - size, tries))
            return true;
    }
    return false;
}

/* Could those that die and those that are born be two blocks? Not if some of
 * the latter, but not all, never weigh as much as some of the former. */
static bool falls_apart(const Sweep *s, const Items *dead, const Items *born) {
    if (born->n > MOST_HALVES)
        return true;
    /* Without the last one: the other half has it. */
    for (uint32_t half = 1; half < 1u << (born->n - 1); half++) {
        int64_t sum = 0;
        uint32_t tries = 0;
        for (uint32_t i = 0; i < born->n; i++)
            if (half >> i & 1)
                sum += size_of(s, born->at[i]);
        if (has_sum(s, dead, 0, sum, &tries))
            return true;
    }
    return false;
}

/* Where all is one block, all that die lie side by side, and do so ever since
 * the last of them was born: what is placed does not move. */
static void list_bonds(Sweep *s) {
    uint32_t n = s->strip->n_sections;
    s->bonds = ARENA_ARRAY(s->arena, Items, n + 1);
    for (uint32_t t = 1; t < n; t++) {
        if (s->dies[t].n < 2 || !s->begins[t].n ||
            falls_apart(s, &s->dies[t], &s->begins[t]))
            continue;
        uint32_t last = 0;
        for (uint32_t i = 0; i < s->dies[t].n; i++) {
            const Item *item = &s->strip->item[s->dies[t].at[i]];
            uint32_t k = turn(s, s->backwards ? item->hi : item->lo);
            last = k > last ? k : last;
        }
        vec_push(s->arena, &s->bonds[boundary(s, last)], t);
    }
}

/* ---- which blocks there could be ---- */

static void mark(Sweep *s, const uint32_t *item, uint32_t n, bool marked) {
    for (uint32_t i = 0; i < n; i++)
        s->marked[item[i]] = marked;
}

/* Items that are in one block together. */
typedef struct Piece {
    const uint32_t *item;
    uint32_t n;
    int64_t size;
} Piece;
typedef VEC(Piece) Pieces;

/* A piece alone against a set, two against a set ... */
enum { MOST_ON_ONE_SIDE = 3, MOST_CHOICES = 48, MOST_TRIES = 3000 };

/* A search for sets of one side that weigh as much as one of the other. */
typedef struct Match {
    Sweep *s;
    Level *level;
    const Pieces *dead, *side, *other;
    uint32_t *chosen, *matched; /* positions in `side` and `other` */
    uint32_t n_chosen, n_matched, tries, found;
} Match;

static double noise(Sweep *s) {
    uint64_t bits = rng_bits(s->seed, s->drawn++);
    return s->noise * (double)(bits >> 40) / (double)(1 << 24);
}

static void add_choice(Sweep *s, Level *level, Block block) {
    block.cost += noise(s);
    vec_push(s->arena, &level->choice, block);
    Block *at = level->choice.at;
    uint32_t to = level->choice.n - 1;
    for (; to && at[to - 1].cost > block.cost; to--)
        at[to] = at[to - 1];
    at[to] = block;
}

static const uint32_t *items_at(Arena *arena, const Pieces *pieces,
                                const uint32_t *position, uint32_t n,
                                uint32_t *n_items) {
    Items list = {0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < pieces->at[position[i]].n; k++)
            vec_push(arena, &list, pieces->at[position[i]].item[k]);
    *n_items = list.n;
    return list.at;
}

static void add_match(Match *m) {
    Arena *arena = m->s->arena;
    bool dies = m->side == m->dead;
    Block block = {.cost = m->n_chosen + m->n_matched};
    const uint32_t *one = items_at(arena, m->side, m->chosen, m->n_chosen,
                                   dies ? &block.n_dead : &block.n_born);
    const uint32_t *two = items_at(arena, m->other, m->matched, m->n_matched,
                                   dies ? &block.n_born : &block.n_dead);
    block.dead = dies ? one : two;
    block.born = dies ? two : one;
    add_choice(m->s, m->level, block);
    m->found++;
}

/* Sets of `other`, from position `from` on, that weigh `rest`. */
static void match(Match *m, uint32_t from, int64_t rest) {
    if (!rest)
        add_match(m);
    for (uint32_t i = from; i < m->other->n && rest; i++) {
        if (m->tries++ > MOST_TRIES || m->found > MOST_CHOICES)
            return;
        int64_t size = m->other->at[i].size;
        if (size > rest)
            continue;
        m->matched[m->n_matched++] = i;
        match(m, i + 1, rest - size);
        m->n_matched--;
    }
}

/* Is there such a set of at most `most`? */
static bool can_match(const Pieces *other, uint32_t from, int64_t rest,
                      uint32_t most) {
    for (uint32_t i = from; i < other->n && most; i++) {
        int64_t size = other->at[i].size;
        if (size * most < rest)
            return false; /* all behind are smaller */
        if (size == rest ||
            (size < rest && can_match(other, i + 1, rest - size, most - 1)))
            return true;
    }
    return false;
}

/* Adds `more` of `side`, from position `from` on, to those chosen. */
static void choose(Match *m, uint32_t from, uint32_t more, int64_t sum) {
    if (!more)
        match(m, 0, sum);
    for (uint32_t i = from; i < m->side->n && more; i++) {
        if (i == m->chosen[0])
            continue;
        m->chosen[m->n_chosen++] = i;
        choose(m, i + 1, more - 1, sum + m->side->at[i].size);
        m->n_chosen--;
    }
}

static int largest_first(const void *a, const void *b) {
    const Piece *x = a, *y = b;
    return order_by(ORDER_DOWN(x->size, y->size),
                    ORDER_UP(x->item[0], y->item[0]));
}

static Pieces dead_pieces(Sweep *s, const Level *level) {
    PqRuns runs = {0};
    Pieces pieces = {0};
    mark(s, level->dead.at, level->dead.n, true);
    pq_runs(s->arena, level->tree, s->marked, &runs);
    mark(s, level->dead.at, level->dead.n, false);
    for (uint32_t i = 0; i < runs.n; i++) {
        Piece piece = {runs.at[i].leaf, runs.at[i].n, 0};
        for (uint32_t k = 0; k < piece.n; k++)
            piece.size += size_of(s, piece.item[k]);
        vec_push(s->arena, &pieces, piece);
    }
    qsort(pieces.at, pieces.n, sizeof *pieces.at, largest_first);
    return pieces;
}

static uint32_t death_of(const Sweep *s, uint32_t item) {
    return s->backwards ? s->strip->item[item].lo : s->strip->item[item].hi;
}

/* `together`: those that will die together, too, are one piece. */
static Pieces born_pieces(Sweep *s, const Level *level, bool together) {
    Pieces pieces = {0};
    uint32_t n = level->born.n;
    bool *taken = ARENA_ARRAY(s->arena, bool, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *item = ARENA_ARRAY(s->arena, uint32_t, n);
        Piece piece = {item, 0, 0};
        for (uint32_t k = i; k < n && !taken[i]; k++) {
            uint32_t next = level->born.at[k];
            if (k > i && (!together || taken[k] ||
                          death_of(s, next) != death_of(s, level->born.at[i])))
                continue;
            item[piece.n++] = next;
            piece.size += size_of(s, next);
            taken[k] = k > i;
        }
        if (piece.n)
            vec_push(s->arena, &pieces, piece);
    }
    qsort(pieces.at, pieces.n, sizeof *pieces.at, largest_first);
    return pieces;
}

/* The largest piece of the block of fewest pieces, which is the likeliest to
 * be one; the largest of all if there is no small one. */
static void find_anchor(Match *m, const Pieces *dead, const Pieces *born) {
    enum { MOST_PIECES = 40 };
    bool dies = dead->at[0].size > born->at[0].size;
    m->side = dies ? dead : born;
    m->other = dies ? born : dead;
    m->chosen[0] = 0;
    if (dead->n + born->n > MOST_PIECES)
        return;
    for (uint32_t most = 1; most <= 3; most++)
        for (int side = 0; side < 2; side++) {
            const Pieces *one = side ? born : dead, *two = side ? dead : born;
            for (uint32_t i = 0; i < one->n; i++)
                if (can_match(two, 0, one->at[i].size, most)) {
                    m->side = one;
                    m->other = two;
                    m->chosen[0] = i;
                    return;
                }
        }
}

/* Blocks of one piece and its companions. */
static void list_matches(Sweep *s, Level *level, const Pieces *dead,
                         const Pieces *born) {
    uint32_t most = dead->n > born->n ? dead->n : born->n;
    Match m = {.s = s, .level = level, .dead = dead};
    m.chosen = ARENA_ARRAY(s->arena, uint32_t, most);
    m.matched = ARENA_ARRAY(s->arena, uint32_t, most);
    find_anchor(&m, dead, born);
    m.n_chosen = 1;
    for (uint32_t more = 0; more < MOST_ON_ONE_SIDE; more++)
        choose(&m, 0, more, m.side->at[m.chosen[0]].size);
}

static void list_choices(Sweep *s, Level *level) {
    Pieces dead = dead_pieces(s, level);
    Pieces born = born_pieces(s, level, false);
    Pieces groups = born_pieces(s, level, true);
    if (dead.n > 1 && groups.n > 1 && groups.n < born.n)
        list_matches(s, level, &dead, &groups);
    if (dead.n > 1 && born.n > 1)
        list_matches(s, level, &dead, &born);
    add_choice(s, level,
               (Block){level->dead.n,
                       level->born.n,
                       level->dead.at,
                       level->born.at,
                       dead.n + groups.n,
                       {0}});
}

/* ---- the search ---- */

static Items without(Sweep *s, const Items *items, const uint32_t *gone,
                     uint32_t n) {
    Items rest = {0};
    mark(s, gone, n, true);
    for (uint32_t i = 0; i < items->n; i++)
        if (!s->marked[items->at[i]])
            vec_push(s->arena, &rest, items->at[i]);
    mark(s, gone, n, false);
    return rest;
}

static const PqNode *stack_of(Sweep *s, const uint32_t *item, uint32_t n) {
    PqNodes nodes = {0};
    for (uint32_t i = 0; i < n; i++)
        vec_push(s->arena, &nodes, pq_leaf(s->arena, s->level.n, item[i]));
    return pq_any(s->arena, s->level.n, nodes.at, n);
}

/* Enters the state; the next event comes when this one is over. */
static void enter(Sweep *s, Level level) {
    while (!level.dead.n && ++level.section < s->strip->n_sections) {
        uint32_t at = boundary(s, level.section);
        level.dead = s->dies[at];
        level.born = s->begins[at];
    }
    if (level.dead.n)
        list_choices(s, &level);
    vec_push(s->arena, &s->level, level);
}

/* Nodes are stamped with the number of levels, so that level `stamp` - 1 is
 * the one that made them; 0 is nobody's. */
static const PqNode *apply(Sweep *s, const PqNode *tree, Block *block) {
    const PqNode *born = stack_of(s, block->born, block->n_born);
    mark(s, block->dead, block->n_dead, true);
    tree = pq_replace(s->arena, s->level.n, tree, s->marked, block->n_dead,
                      born, &block->cut);
    mark(s, block->dead, block->n_dead, false);
    return tree;
}

static bool has_item(const Items *items, uint32_t item) {
    for (uint32_t i = 0; i < items->n; i++)
        if (items->at[i] == item)
            return true;
    return false;
}

static bool meets(const Items *a, const Items *b) {
    for (uint32_t i = 0; i < a->n; i++)
        if (has_item(b, a->at[i]))
            return true;
    return false;
}

/* Ties bonds all of whose items are there now. NULL, and reasons, if one
 * cannot be. */
static const PqNode *tie_bonds(Sweep *s, const PqNode *tree, uint32_t section,
                               const Items *unborn, PqStamps *reasons) {
    const Items *bonds = &s->bonds[boundary(s, section)];
    for (uint32_t i = 0; i < bonds->n; i++) {
        const Items *bond = &s->dies[bonds->at[i]];
        if (meets(bond, unborn))
            continue;
        mark(s, bond->at, bond->n, true);
        const PqNode *tied =
            pq_together(s->arena, s->level.n, tree, s->marked, bond->n);
        if (!tied)
            pq_reasons(s->arena, tree, s->marked, bond->n, reasons);
        mark(s, bond->at, bond->n, false);
        if (!tied)
            return NULL;
        tree = tied;
    }
    return tree;
}

/* All of the dead lie where they do because of earlier levels. */
static void find_reasons(Sweep *s, Level *level) {
    mark(s, level->dead.at, level->dead.n, true);
    pq_reasons(s->arena, level->tree, s->marked, level->dead.n,
               &level->reasons);
    mark(s, level->dead.at, level->dead.n, false);
}

/* Goes back to the last level that has to do with the failure, which takes
 * over the reasons (conflict-directed backjumping; Prosser, 1993). */
static void jump_back(Sweep *s) {
    Level *failed = &s->level.at[s->level.n - 1];
    find_reasons(s, failed);
    uint32_t last = 0, self = s->level.n;
    if (self > 1 && s->level.at[self - 2].section == failed->section)
        vec_push(s->arena, &failed->reasons, self - 1);
    for (uint32_t i = 0; i < failed->reasons.n; i++)
        if (failed->reasons.at[i] < self && failed->reasons.at[i] > last)
            last = failed->reasons.at[i];
    s->level.n = last;
    if (!last)
        return;
    Level *to = &s->level.at[last - 1];
    for (uint32_t i = 0; i < failed->reasons.n; i++) {
        uint32_t stamp = failed->reasons.at[i];
        if (stamp && stamp < last && !s->noted[stamp]) {
            s->noted[stamp] = true;
            vec_push(s->arena, &to->reasons, stamp);
        }
    }
    for (uint32_t i = 0; i < to->reasons.n; i++)
        s->noted[to->reasons.at[i]] = false;
}

/* Large stacks take longer. */
enum { LEAVES_A_STEP = 256 };

/* True when all events are over; false when nothing or no step is left. */
static bool walk(Sweep *s) {
    while (s->level.n && s->steps < s->max_steps && !strip_late(s->strip)) {
        Level *level = &s->level.at[s->level.n - 1];
        if (level->section == s->strip->n_sections)
            return true;
        if (level->tried == level->choice.n) {
            jump_back(s);
            continue;
        }
        Block *block = &level->choice.at[level->tried++];
        const PqNode *tree = apply(s, level->tree, block);
        guard_poll();
        s->steps += 1 + level->tree->n_leaves / LEAVES_A_STEP;
        if (!tree)
            continue;
        Items dead = without(s, &level->dead, block->dead, block->n_dead);
        Items born = without(s, &level->born, block->born, block->n_born);
        tree = tie_bonds(s, tree, level->section, &born, &level->reasons);
        if (!tree)
            continue;
        enter(s, (Level){.tree = tree,
                         .section = level->section,
                         .dead = dead,
                         .born = born});
    }
    return false;
}

/* ---- the answer ---- */

static void put(const Sweep *s, const uint32_t *item, uint32_t n, bool reversed,
                int64_t at, int64_t *offset) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t next = item[reversed ? n - 1 - i : i];
        offset[next] = at;
        at += size_of(s, next);
    }
}

static void read_stacks(Sweep *s, int64_t *offset) {
    uint32_t n = 0, last = s->level.n - 1;
    const PqNode *tree = s->level.at[last].tree;
    uint32_t *order = ARENA_ARRAY(s->arena, uint32_t, tree->n_leaves);
    pq_leaves(tree, order, &n);
    put(s, order, n, false, 0, offset);
    while (last-- > 0) {
        const Level *level = &s->level.at[last];
        const Block *block = &level->choice.at[level->tried - 1];
        const PqCut *cut = &block->cut;
        int64_t at = INT64_MAX;
        for (uint32_t i = 0; i < block->n_born; i++)
            if (offset[block->born[i]] < at)
                at = offset[block->born[i]];
        bool reversed = cut->witness != PQ_NONE && offset[cut->witness] > at;
        put(s, cut->order, cut->n, reversed, at, offset);
    }
}

/* ---- runs ---- */

/* In pieces of a block: the first runs only break ties, later ones may take a
 * block of one piece more, or of four, for the likelier. */
#define SLIGHT_NOISE 0.25
#define NOISE 1.5

bool sweep_applies(const Strip *strip) {
    int64_t full = 0;
    for (uint32_t t = 0; t < strip->n_sections; t++) {
        int64_t sum = 0;
        for (uint32_t k = strip->start[t]; k < strip->start[t + 1]; k++)
            sum += strip->item[strip->members[k]].size;
        if (t && sum != full)
            return false;
        full = sum;
    }
    for (uint32_t i = 0; i < strip->n; i++)
        if (strip->item[i].pin >= 0 || strip->item[i].align > 1 ||
            strip->item[i].n_gaps)
            return false;
    return strip->n > 0;
}

static void begin(Sweep *s) {
    list_events(s);
    list_bonds(s);
    const Items *first = &s->begins[boundary(s, 0)];
    const PqNode *stack = stack_of(s, first->at, first->n);
    PqStamps nobody = {0};
    stack = tie_bonds(s, stack, 0, &(Items){0}, &nobody);
    if (stack)
        enter(s, (Level){.tree = stack});
}

bool sweep_search(const Strip *strip, uint64_t seed, uint32_t run,
                  uint64_t *steps, int64_t *offset) {
    Arena *arena = arena_new("sweep");
    Sweep s = {.arena = arena, .strip = strip, .max_steps = *steps};
    s.backwards = run % 2;
    s.seed = rng_bits(rng_seed("sweep", seed), run);
    s.noise = run < 2 ? SLIGHT_NOISE : NOISE * (1 + run / 2 % 3);
    s.marked = ARENA_ARRAY(arena, bool, strip->n);
    s.noted = ARENA_ARRAY(arena, bool, 2 * (size_t)strip->n + 2);
    begin(&s);
    bool found = walk(&s);
    if (found)
        read_stacks(&s, offset);
    *steps = s.steps + 1;
    arena_free(arena);
    return found;
}
