/* exact.h - the parts of planner `exact`: one pool, the least height, a proof.
 *
 *   instance.c    PlanProblem -> Strip: buffers as items over sections of time
 *   coalesce.c     Strip -> Strip of fewer items, glued from those of the first
 *   perfect_packing.c    perfect packings: a search along time, over pqtree.h
 *   aligned.c  what alignments waste in one section
 *   skyline.c  floors that rise: what follows from the items placed so far
 *   branch_and_bound.c    the search: branch on a section in a lowest place of
 * the skyline restarts.c  variants of the search side by side, restarted,
 * within a budget solver_portfolio.c     searches of the strip and of welded
 * ones, side by side exact.c  heights: from the best known one down to the
 * bound
 */
#ifndef PACK_EXACT_EXACT_H
#define PACK_EXACT_EXACT_H

#include "base/vec.h"
#include "pack/pack.h"

/* ---- instance.c ---- */

/* A buffer that is alive and needs a place. Lengths are in `unit`s. */
typedef struct Item {
    uint32_t lo, hi; /* sections [lo, hi), but for its gaps */
    uint32_t n_gaps;
    const Steps *gap; /* sections within (lo, hi), apart, rising */
    int64_t size;
    int64_t align; /* of its offset; mostly 1 */
    int64_t pin;   /* offset; -1: free */
    int64_t last;  /* highest offset within the capacity; see strip_limit */
    uint32_t buf;
    uint64_t bytes;
} Item;

/* The sections of an item: from its `lo` on, while below its `hi`. */
static inline uint32_t item_next(const Item *item, uint32_t section) {
    section++;
    for (uint32_t k = 0; k < item->n_gaps; k++)
        if (item->gap[k].first == section)
            return item->gap[k].end;
    return section;
}

/* Sections are the maximal sets of buffers alive together, in the order of
 * time: two items conflict if and only if they share a section. */
typedef struct Strip {
    uint32_t n, n_sections;
    Item *item;
    uint32_t *start;   /* by section: of its members; n_sections + 1 */
    uint32_t *members; /* items */
    uint32_t n_pins;
    uint32_t *pins;   /* items, by offset */
    bool has_gaps;    /* one of the items */
    bool has_grids;   /* alignments of items */
    uint64_t unit;    /* bytes: offsets need be no finer */
    uint64_t padding; /* bytes: most that a size was rounded up by */
    uint64_t total;   /* bytes: any placement pushed down is no higher */
    uint64_t limit;   /* bytes; see strip_limit */
    double deadline;  /* by pack_clock; 0: none */
    int64_t capacity; /* units: the limit, rounded up for who lies on top */
} Strip;

/* NULL where the search does not apply: several pools, or too large for it. */
Strip *strip_new(Arena *arena, const PackProblem *problem);

/* Is the item alive in the section? */
bool item_alive(const Item *item, uint32_t section);

/* Do both need a place in one section? */
bool items_meet(const Item *a, const Item *b);

/* Makes `members` and `pins` of items and their sections; false if there are
 * too many. */
bool strip_index(Arena *arena, Strip *strip);

/* Is the deadline over? */
bool strip_late(const Strip *strip);

/* Bytes: no placement is lower than this. At least the live peak; more where
 * alignment leaves bytes unused, or a pin lies high. */
uint64_t strip_bound(const Strip *strip);

/* Prepares the strip for a pool of so many bytes; false if an item is larger,
 * or pinned higher. */
bool strip_limit(Strip *strip, uint64_t bytes);

/* The end of the independent sections that begin at `lo`: no item crosses. */
uint32_t strip_component(const Strip *strip, uint32_t lo);

/* ---- coalesce.c ---- */

/* A strip of items that are welded from those of another. */
typedef struct Merged {
    Strip strip;
    uint32_t *into; /* by item of the other: the one that it is part of */
    int64_t *shift; /* by item of the other: its offset therein */
} Merged;

/* What decides which items come next to each other, sorted. */
typedef struct MergeKey {
    uint64_t first, second;
    uint32_t part;
} MergeKey;
typedef struct MergeKeys {
    const MergeKey *at;
    uint32_t n, n_parts; /* that are in, or have been */
} MergeKeys;
typedef struct MergeOrder {
    MergeKeys life, edge;
} MergeOrder;

/* Of the strip's items: the same for all attempts. */
MergeOrder weld_order(Arena *arena, const Strip *strip);

/* False if nothing could be welded. Attempt 0 welds all it can, others differ.
 */
bool weld_strip(Arena *arena, const Strip *strip, const MergeOrder *order,
                uint64_t seed, uint32_t attempt, Merged *out);

/* ---- perfect_packing.c ---- */

/* All sections are equally full, and nothing is pinned or aligned. */
bool sweep_applies(const Strip *strip);

/* Looks for offsets (by item) without any waste; runs differ. *steps: those it
 * may take, then those it took. */
bool sweep_search(const Strip *strip, uint64_t seed, uint32_t run,
                  uint64_t *steps, int64_t *offset);

/* ---- aligned.c ---- */

typedef struct AlignedCache AlignedCache;
AlignedCache *aligned_cache(Arena *arena);

/* ---- skyline.c ---- */

typedef struct Change {
    int64_t *at, was;
} Change;

/* State of a search. In each section items pile up from the bottom:
 *   top    end of the highest item placed
 *   floor  >= top: no item that is still open starts lower
 *   open   units of the items that are not placed
 *   low    of an item: its lowest offset now
 * floor + open <= capacity, or the search has failed here. */
typedef struct Skyline {
    Arena *arena;
    const Strip *strip;
    int64_t *floor, *top, *open, *choices; /* by section */
    uint32_t *n_open;
    uint32_t *crossed; /* by section: open items alive in it and before it */
    uint64_t *begins;  /* by section: a hash of the open items that begin */
    int64_t *low;      /* by item; of a placed one its offset */
    bool *placed;
    uint32_t *member; /* strip->members; of each section first those open, by
                       * falling `low`, behind them the latest placed first */
    double *weight;   /* by section: failures, recent ones count more */
    double weight_step;
    VEC(Change) trail;
    VEC(uint32_t) order;     /* placed items */
    uint32_t *queue, *moved; /* sections to look at */
    uint32_t n_queue, n_moved;
    bool *queued, *is_moved;
    bool failed;
    AlignedCache *aligned; /* NULL: no item has an alignment of its own */
    uint64_t work;         /* members looked at, for budgets */
    uint64_t needed; /* bytes: the least capacity at which a cut branch would
                      * have gone on */
} Skyline;

/* The n_open[section] items that are not placed. */
static inline uint32_t *skyline_open(const Skyline *sky, uint32_t section) {
    return sky->member + sky->strip->start[section];
}

/* aligned.c: the open items of the section reach so high at least; exact where
 * that is more than the capacity and they are few. */
int64_t aligned_end(Skyline *sky, uint32_t section);

/* A place to go back to. */
typedef struct Mark {
    uint32_t trail, order;
} Mark;

Skyline *skyline_new(Arena *arena, const Strip *strip);

/* For a new capacity; false if it is too small at first sight. */
bool skyline_start(Skyline *sky);

/* Each applies one decision and all that follows from it; false if the state
 * has no solution that is worth keeping. */
bool skyline_place(Skyline *sky, uint32_t item);
bool skyline_raise(Skyline *sky, uint32_t section, int64_t floor);

Mark skyline_mark(const Skyline *sky);
void skyline_undo(Skyline *sky, Mark mark);

/* Counts a failure against the section. */
void skyline_blame(Skyline *sky, uint32_t section);

/* Remembers that more capacity would have helped. */
void skyline_needs(Skyline *sky, int64_t units);

/* ---- branch_and_bound.c ---- */

typedef enum Verdict { FOUND, NONE, GAVE_UP } Verdict;

/* How a search chooses; completeness does not depend on it. */
typedef struct Variant {
    enum { BY_SIZE, BY_AREA, BY_LIFE } order;
    enum { FEWEST_LOWEST, FEWEST_PER_WEIGHT, FEWEST_HEAVIEST } section;
    double noise; /* an item's worth is drawn from [1, 1 + noise] times it */
    double fit;   /* worth of closing a gap flush, times */
} Variant;

typedef struct Choice {
    uint32_t item;
    double worth;
} Choice;

/* What cutting branches at a capacity has taught so far. */
typedef struct Nogood {
    uint64_t bytes, needed;
} Nogood;

/* Keys of failed states, the newest on top of the oldest; of its pages there
 * are those in which something was written. */
enum { MEMORY_PAGE = 64 };
typedef struct Memory {
    Arena *arena;
    uint64_t **page, mask;
} Memory;

typedef struct Search {
    Skyline *sky;
    Memory memory;
    VEC(Choice) choice; /* a stack */
    Variant variant;
    uint64_t seed, drawn;
    uint64_t nodes, max_steps;
    uint64_t fails, max_fails;
    bool stopped;
    VEC(Nogood) lesson;
} Search;

/* Steps that the search has spent: nodes, and the work done for them. */
uint64_t search_steps(const Search *search);

/* Places all items of sections [lo, hi), which no item crosses; undoes its
 * work unless FOUND. */
Verdict niche_search(Search *search, uint32_t lo, uint32_t hi);

/* ---- restarts.c ---- */

Search *search_new(Arena *arena, Strip *strip, uint64_t seed);

/* Is there a placement within `bytes`? Spends `steps`, and little more than
 * that. FOUND: offsets are in sky->low. NONE: proved, and no capacity below
 * sky->needed (> bytes) is possible. */
Verdict search_within(Search *search, Strip *strip, uint64_t bytes,
                      uint64_t steps);

/* ---- solver_portfolio.c ---- */

typedef struct Portfolio Portfolio;

/* What all of its searches have spent. */
typedef struct PortfolioCost {
    uint64_t nodes, steps;
    uint32_t draws; /* strips that were welded anew */
} PortfolioCost;

Portfolio *crew_new(Arena *arena, Strip *strip, uint64_t seed);
PortfolioCost crew_cost(const Portfolio *crew);

/* Is there a placement within `bytes`? The search of the strip itself spends at
 * most `steps`, the welded ones at most twice that together, and all little
 * more. FOUND: offsets, by item, are in `low`. NONE: proved; no capacity below
 * crew_needed() (> bytes) is possible. */
Verdict crew_within(Portfolio *crew, uint64_t bytes, uint64_t steps,
                    int64_t *low);
uint64_t crew_needed(const Portfolio *crew);

/* ---- tighten.c ---- */

struct Clusters;

/* A plain problem whose placements are placements of another. */
typedef struct Tight {
    PackProblem problem; /* a buffer for each group of bundles */
    const struct Clusters *bundles;
    uint32_t *into; /* by bundle: its buffer */
    int64_t *shift; /* by bundle: its offset therein */
} Tight;

/* False where there is none. */
bool tight_new(Arena *arena, const PackProblem *problem, uint32_t attempt,
               Tight *tight);

/* The placement of the first problem. */
void tight_result(Arena *arena, const Tight *tight, const PackResult *from,
                  PackResult *result);

/* ---- exact.c ---- */

/* Lowers (or finds: status PLAN_FAILS) the placement in `result` and raises its
 * bound, until they meet or the problem's budget is spent. */
void exact_improve(Arena *arena, const PackProblem *problem,
                   PackResult *result);

/* Whether pins leave too little above them for what is alive beside them, as
 * is seen without a search; *bound: bytes, no placement is lower. */
bool exact_refuted(const PackProblem *problem, uint64_t *bound);

#endif
