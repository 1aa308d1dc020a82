/* work.h - what the files of alloc share while one plan is made; private.
 *
 * A *unit* is a set of tensors that share one buffer: one tensor, a chain of
 * results in place, or a concat with its members. Its *touches* are the steps
 * at which some node needs it; between two touches it stays in active memory,
 * or is evicted. A *segment* is a run of touches over which it stays.
 *
 * Time has two phases a step: 2 s while nodes run, 2 s + 1 behind them.
 */
#ifndef ALLOC_WORK_H
#define ALLOC_WORK_H

#include "alloc/plan.h"

typedef enum Origin {
    FROM_INPUT,  /* the network's input: in the input memory */
    FROM_HOST,   /* made by the host: in the input or output memory */
    FROM_ENGINE, /* made in active memory */
    FROM_PARTS   /* a concat by placement: complete when its members are */
} Origin;

/* Where a tensor comes from, and who needs it. */
typedef struct Role {
    Origin origin;
    bool engine_reads;
    bool outside;    /* from engines, and the host or the user needs it */
    bool dissolved;  /* FROM_PARTS: its members are units of their own */
    TensorId parent; /* the concat by placement that it is a member of */
    uint32_t part_c; /* its first channel in `parent` */
    TensorId over;   /* the operand whose place it takes */
    uint32_t made;   /* step, NONE for network inputs */
    uint32_t last;   /* last step at which an engine reads it; NONE */
    Repl repl;       /* in memories that hold replicated volumes */
} Role;

typedef struct Touch {
    uint32_t step;
    uint32_t memories; /* bit (1 << memory): what its engines can reach */
    bool whole;        /* some node needs it resident */
    bool stream;       /* some node reads or writes it by tiles */
    bool by_rows;      /* these read rows, which an engine can copy from what
                        * is resident: the unit may stay */
    bool lands;        /* some node writes a member of a concat by parts, which
                        * are loaded into it behind the step */
    bool leaves;       /* evicted between this touch and the next whole one, */
    uint32_t keeps;    /* but for channels [0, keeps) of its volume */
} Touch;

typedef struct Segment {
    uint32_t first, last; /* touches */
    uint32_t memories;
    uint32_t buf; /* in the problem */
} Segment;

typedef struct Unit {
    TensorId root; /* the tensor whose volume encloses the others */
    bool dead;     /* dissolved into other units */
    bool concat;
    bool as_filled;    /* concat: takes only what its members so far do, in
                        * buffers that move together, one behind the other */
    uint32_t complete; /* concat: step at which all members are written */
    uint32_t n_tensors, n_touches, n_segments;
    TensorId *tensor; /* root first */
    Touch *touch;
    Segment *segment;
    uint64_t bytes[PLAN_MAX_POOLS]; /* 0: does not fit there */
} Unit;

typedef enum ModeKind {
    MODE_WHOLE,
    MODE_PLANKS,
    MODE_HARDWARE,
    MODE_GROUP, /* by stripes, with the nodes of its group */
    MODE_AHEAD, /* whole, its input through buffers of the engine */
    MODE_GIVES, /* by slabs, which the node of the next step */
    MODE_TAKES, /* ... uses up: couples.c */
    MODE_KINDS
} ModeKind;

enum { MAX_OPERANDS = 17 };

/* How a node runs. */
typedef struct Mode {
    ModeKind kind;
    bool streams_in, streams_out;
    uint32_t rows;     /* planks: rows of the output */
    uint32_t channels; /* planks: slabs of so many, of all rows; 0: none.
                        * couples: of these */
    uint32_t rank;     /* hardware: which of mode_style's rows */
    int32_t style;
    uint32_t tile_w, tile_h;
    Nest nest;
    Repl repl;          /* of input tiles */
    uint32_t first_buf; /* in the problem: planks of operands, output last */
    uint32_t group;     /* in Work */
    bool doubled;       /* planks, stripes: two sets of buffers take turns; */
    uint32_t twin;      /* the second is so many behind the first */
} Mode;

/* Steps [first, end) that run depth first: all of them for each stripe of
 * `rows` rows of the last result. */
typedef struct Group {
    uint32_t first, end, rows;
    bool rolls;         /* by rings.c: nothing twice; `rows` are then those of
                         * the highest result at a time */
    bool stays;         /* rolls: what others need stays in active memory */
    bool ahead;         /* rolls: what it loads comes one run of its last node
                         * before it is needed */
    uint32_t cols;      /* rolls: by lines.c, with so many columns of the widest
                         * result at a time, 1: as few as can be; 0: by rings */
    uint32_t first_buf; /* then, in the problem: its rings */
    uint32_t n_shared;  /* by stripes: what is loaded for several nodes */
    const TensorId *shared;
} Group;

/* A tensor that passes through active memory on its way from one external
 * place to another. */
typedef struct Relay {
    uint32_t step;
    TensorId tensor;
    uint32_t rows;
    uint32_t buf;
} Relay;

typedef enum OwnerKind {
    OWNER_SEGMENT,
    OWNER_KEPT, /* what stays of a unit between two segments */
    OWNER_PLANK,
    OWNER_TILE,
    OWNER_RELAY
} OwnerKind;

/* What a buffer of the problem holds. */
typedef struct Owner {
    OwnerKind kind;
    uint32_t unit; /* SEGMENT, KEPT */
    NodeId node;   /* PLANK, TILE */
    TensorId tensor;
    uint32_t rows;
    uint32_t channels; /* 0: all */
    uint64_t least; /* bytes in its cheapest pool; UINT64_MAX: none holds it */
} Owner;

typedef struct Problem {
    PlanProblem p;
    VEC(Buf) buf;
    VEC(Owner) owner;
    VEC(uint32_t) tied; /* by buffer: the first of those that move with it */
    VEC(Relation) relation; /* of slots.c: members inside their concats */
    uint64_t *live;         /* by time: bytes */
    uint32_t n_times;
} Problem;

/* What does not depend on the bytes that are planned with, found once for all
 * Works of one plan. */
typedef struct RollCosts RollCosts;
typedef struct StripeCosts StripeCosts;
typedef struct PlankRows {
    uint32_t rows, in;
} PlankRows;
/* nest.c: the tiles of a style for `reserved` bytes, which end at `end`: where
 * there are fewer bytes they are the same, as long as they fit. */
typedef struct NestKnown {
    uint64_t reserved, end;
    Mode mode;
    struct NestKnown *older;
} NestKnown;
typedef struct Once {
    Arena *arena;
    RollCosts *rolls;     /* rollcost.c; NULL for machines without rings */
    StripeCosts *stripes; /* stripecost.c */
    NestKnown **nest;     /* by node, then style; NULL: not yet */
    PlankRows *planks;    /* tiles.c: what was asked last */
    uint32_t *slab;       /* slabs.c: by node: its quantum; 0: not yet */
} Once;

/* depth.c: what it chose for one size of memory, for all Works of one plan. */
typedef struct KnownGroups KnownGroups;

typedef struct Work {
    Arena *arena;
    const Schedule *schedule;
    const HwSpec *spec;
    const Graph *g;
    const PlanOptions *options;
    const Once *once;
    KnownGroups *known; /* or NULL */
    Uses uses;
    Legal *legal;      /* by node */
    Legal *copy;       /* by tensor: copy_legal; HW_OP_CONV: not asked yet */
    Role *role;        /* by tensor */
    Mode *mode;        /* by node */
    uint32_t *unit_of; /* by tensor; NONE */
    VEC(Unit) unit;
    bool lends; /* slots.c has done it */
    VEC(Relay) relay;
    VEC(Group) group;
    uint32_t *relay_rows; /* by tensor: rows that a relay takes at a time */
    uint64_t total;       /* active bytes, with the last volume's alignment */
    uint32_t stuck;       /* step at which nothing more can be done */
    uint8_t *given_up;    /* by step: it cannot run in what there is */
    uint32_t split;       /* step at which a unit must change memory; NONE */
    bool keeps_all;       /* of a plan: see there */
    uint32_t apart;       /* kinds of layers that are in no group: bits */
    uint64_t thrift;      /* bytes over DDR that an instruction of a group
                           * counts as much as */
    uint32_t haste;       /* products that a group computes again and that
                           * count as much as a byte over DDR; 0: none does */
    bool wholes_first;    /* whole volumes leave, even where parts would do */
    uint32_t low;         /* volumes stay where rows of them are read, of which
                           * little is there at a time: of active memory one
                           * part in so many; 0: none stays */
    uint32_t runs;        /* groups roll so that transfers hide behind so many
                           * runs of their layers; 0: not for that */
    bool settled;         /* modes_settle, when the Work was made */
    bool streams_first;   /* what never runs whole starts with its last way */
    double most;          /* bytes moved by a plan that is known already */
    bool hopeless;        /* more than that must move, however it goes on */
    bool by_parts;        /* what fit_around chose without wholes_first */
    bool explains;        /* all steps that cannot run are to be known */
} Work;

/* ---- volumes.c: geometry ---- */

/* The tensor's volume as it lies in a memory. */
Volume volume_in(const Work *w, TensorId tensor, uint32_t memory);
/* Rows of it. */
Volume plank_in(const Work *w, TensorId tensor, uint32_t rows, uint32_t memory);
/* Bytes for a volume in each pool, rounded up to whole buffers where the
 * memory has such; 0 where it cannot lie. `spans`: may take several. */
void pool_bytes(const Work *w, TensorId tensor, uint32_t rows, bool spans,
                uint64_t bytes[PLAN_MAX_POOLS]);
/* The same of any volume, where buffers of one are not spanned. */
void volume_pool_bytes(const Work *w, Volume v, uint64_t bytes[PLAN_MAX_POOLS]);
/* The least of them that is allowed, aligned; UINT64_MAX if none is. */
uint64_t least_bytes(const Work *w, const uint64_t bytes[PLAN_MAX_POOLS],
                     uint32_t memories);
Pool pool_of(const HwMemory *memory);
uint64_t active_bytes(const Work *w); /* what whole buffers leave of them */
uint64_t round_up(uint64_t v, uint64_t to);
/* Active memories that the node's engine reaches: bits. */
uint32_t reach(const Work *w, NodeId node);
bool on_engine(const Work *w, NodeId node); /* runs there: no concat */
bool is_placed(const Work *w, NodeId node); /* a concat by placement */
/* Fills repl of every role. */
void replication_choose(Work *w);

/* Whether no engine makes it. */
static inline bool from_outside(const Work *w, TensorId t) {
    Origin origin = w->role[t.i].origin;
    return origin == FROM_INPUT || origin == FROM_HOST;
}

/* ---- groups.c: who shares a buffer ---- */

void roles_make(Work *w);
void units_make(Work *w);
/* Whether the node's result, of the operand's shape, may take its place, were
 * nobody else to read it. */
bool takes_in_place(const Work *w, NodeId id, TensorId operand);
/* The result takes the place of another operand than this; false if it cannot.
 */
bool place_instead(Work *w, NodeId id, TensorId operand);
/* The tensor's first channel in its unit's volume. */
uint32_t channel_in_unit(const Work *w, const Unit *unit, TensorId t);
/* Members become units of their own. False if the memories cannot hold parts
 * of the volume. */
bool unit_dissolve(Work *w, uint32_t unit);
/* The outermost dissolved concat that the tensor is part of, or itself; *c is
 * its first channel there. */
TensorId home_of(const Work *w, TensorId tensor, uint32_t *c);

/* A part from channel `c` on starts at a granule of its own, and at an address
 * that the listing can write. */
bool part_has_address(const HwMemory *memory, const Volume *whole, uint32_t c);
/* Parts of the whole volume, of `q` channels each, have that in every active
 * memory, and start aligned there. */
bool volume_cuts(const Work *w, TensorId t, uint32_t q);

/* ---- live.c: touches and lifetimes -> problem ---- */

typedef struct Times {
    uint32_t first, end;
} Times;

void touches_make(Work *w, Unit *unit);
/* Whether the node takes the operand by rows that may be copied from a volume
 * that stays. */
bool takes_rows(const Work *w, NodeId node, TensorId in);
/* Whether what the node writes by parts is to be loaded into the concat that it
 * is part of. */
bool result_lands(const Work *w, NodeId node);
/* From a whole touch to the next one, or to the last that reads rows. */
typedef struct Away {
    uint32_t next;      /* touch: the next whole one, or n_touches */
    uint32_t n_by_rows; /* touches on the way */
    uint32_t end;       /* time at which it ends */
} Away;
/* False if the unit has to leave before any of them. */
bool away_find(const Work *w, const Unit *unit, uint32_t touch, Away *away);
/* After modes of nodes at the step have changed. */
void touches_refresh(Work *w, uint32_t step);
/* The same of all units. */
void touches_refill(Work *w, uint32_t step);
/* A touch of the unit at a step at which it has none; touches_refill fills it.
 */
void touch_insert(Work *w, Unit *unit, uint32_t step);
void problem_make(Work *w, Problem *out);
/* Corrects the problem's `live`, and no more, after a gap of the unit leaves;
 * false if it could not. problem_make must follow. */
bool live_follow(Work *w, Problem *p, uint32_t unit);
/* Adds to the problem's `live` what the unit has as it is now, or takes it
 * away; false if no memory holds a part of that. problem_make must follow. */
bool live_unit(Work *w, Problem *p, uint32_t unit, bool add);
/* Whether it is a concat of which all is alive at the time, though not all of
 * it is written. */
bool waits_empty(const Unit *unit, uint32_t time);
/* Sums `live` again, after buffers have changed. */
void live_make(Problem *problem);
/* Where a tensor's values must go as soon as they are there; `streamed`: they
 * are written by tiles, not kept in active memory. */
typedef struct Dests {
    bool home;   /* its place in backing memory */
    bool output; /* its region in the output memory */
} Dests;
Dests dests_of(const Work *w, TensorId tensor, bool streamed);

/* ---- tiles.c: planks and tiles ---- */

typedef struct Rows {
    uint32_t in_row, in_rows, pad_top, pool_pad_top;
} Rows;
Rows rows_needed(const Graph *g, NodeId node, uint32_t row, uint32_t rows);
/* The same along an axis: 0 rows, 1 columns. */
Rows axis_needed(const Graph *g, NodeId node, uint32_t axis, uint32_t at,
                 uint32_t n);
/* Along an axis, parts of the node's result are multiples of this, as is where
 * they begin. */
uint32_t node_quantum(const Graph *g, NodeId node, uint32_t axis);
/* Whether each pixel that a transposed convolution reads makes pixels of its
 * own, as in upsampling. */
bool deconv_spreads(const Node *node);
/* The highest planks of the node that take at most `free` bytes, its operands'
 * with them: rows of its result; 0 if there are none. */
uint32_t plank_highest(const Work *w, NodeId node, uint64_t free);
/* Rows of its lowest planks; 0: it cannot run so. */
uint32_t plank_least(const Work *w, NodeId node);
/* Most input rows that any plank of `rows` rows needs. */
uint32_t plank_in_rows(const Work *w, NodeId node, uint32_t rows);
/* Of Once. */
size_t plank_slots(const Graph *g);
/* The next way to run a node with less in active memory, given the bytes that
 * are free at its step; false if there is none. */
bool mode_next(Work *w, NodeId node, uint64_t free);
/* Pixels of the input that hardware tiles of the output read. */
uint64_t tiles_read(const Graph *g, const Node *node, uint32_t tile_w,
                    uint32_t tile_h);
/* Pixels along an axis that a span of the output needs of the input, and of
 * what lies in front of a fused pool. */
void tile_needs(const Graph *g, NodeId node, uint32_t axis, uint32_t at,
                uint32_t n, uint32_t *in, uint32_t *made);
/* Bytes of a hardware tile's input, and the copies of its channels. */
uint64_t tile_bytes(const Work *w, NodeId node, const Mode *mode);
Repl tile_repl(const Work *w, NodeId node);
/* Bytes that the mode pins. */
uint64_t mode_pinned(const Work *w, NodeId node);
/* Bytes that the mode keeps pinned in the memory of its engine: ranges. */
typedef struct Range {
    uint64_t at, end;
} Range;
uint32_t mode_pins(const Work *w, NodeId node, Range pin[3], uint32_t *memory);

/* Operators that never run whole start with their first way, or last. */
void modes_start(Work *w);

/* ---- slabs.c: pools by some channels at a time ---- */

/* Channels of the largest slabs of the node, fewer than `below`, that take at
 * most `free` bytes with its result; 0 if there are none. */
uint32_t slab_largest(const Work *w, NodeId node, uint32_t below,
                      uint64_t free);
/* Of its smallest slabs; 0: it cannot run so. */
uint32_t slab_least(const Work *w, NodeId node);
/* As pool_bytes, of all rows of so many channels. */
void slab_bytes(const Work *w, TensorId tensor, uint32_t channels,
                uint64_t bytes[PLAN_MAX_POOLS]);
/* How many planks, or slabs, the node's mode has. */
uint32_t parts_of_planks(const Work *w, NodeId node);

/* ---- couples.c: a layer and its only reader, by slabs ---- */

/* Makes couples where active memory would hold too much. */
void couples_choose(Work *w);
/* The layer that could take what the node gives, were it the next; NO_NODE. */
NodeId couple_taker(const Work *w, NodeId giver);
/* Whether the tensor passes from one of a couple to the other. */
bool couple_passes(const Work *w, TensorId t);
/* The other node of the couple; NO_NODE if it is in none. */
NodeId couple_partner(const Work *w, NodeId node);
/* Both run whole again, if it is one of a couple. */
void couple_part(Work *w, NodeId node);

/* ---- nest.c: tiles of channels, too ---- */

/* Gives the mode, by a style with sums, the tiles that cost least: cycles, and
 * those that their bytes take to come TILE_BYTE_PRICE times. Where bytes alone
 * count, the fastest of those that move the fewest. */
void nest_choose(const Work *w, NodeId node, Mode *mode);
/* Of Once. */
size_t nest_slots(const Schedule *schedule);
/* Bytes of the input and of weights that the mode reads from outside, and its
 * cycles. */
typedef struct NestCost {
    uint64_t input, weights, cycles;
} NestCost;
NestCost nest_cost(const Work *w, NodeId node, const Mode *mode);
/* Bytes of the input and of weights that the action reads from outside. */
void nest_reads(const HwSpec *spec, const Graph *g, const Action *action,
                uint64_t *input, uint64_t *weights);

/* ---- tile_time.c: layers by hardware tiles ---- */

/* Cycles with the mode's tiles, as the machine overlaps them; ports aside. */
uint64_t tiles_cycles(const Work *w, NodeId node, const Mode *mode);
/* Gives the mode the tile, of those that fit, with the fewest cycles plus
 * `price` times those that its input takes to come; of equals the largest. */
void tiles_hasten(const Work *w, NodeId node, uint32_t price, Mode *mode);
/* Gives it lower tiles, of layers without weights, that take fewer cycles and
 * read no more. */
void tiles_quicken(const Work *w, NodeId node, Mode *mode);

/* ---- stripes.c: groups that run depth first ---- */

/* What one node does for one stripe. */
typedef struct Stripe {
    uint32_t row, rows; /* of its result */
    Rows need;          /* of its operands */
    uint32_t copies;    /* bits: operands that are made in the group, or
                         * shared, with more rows than these: they are copied */
    uint32_t shift;     /* rows above the lowest copy of the result */
} Stripe;
typedef struct GroupCost {
    uint64_t peak;    /* bytes of active memory */
    uint64_t moved;   /* bytes over DDR */
    uint64_t work;    /* products, those computed again included */
    uint64_t largest; /* bytes of a buffer; 0: not known */
    uint64_t instructions;
} GroupCost;
/* Kinds of layers without which groups may move less: bits. */
enum { KIND_SPREADS = 1, KIND_CONCAT = 2, KIND_END = 4 };
uint32_t group_kind(const Work *w, NodeId id);
/* Whether a group may contain the step. */
bool group_may_hold(const Work *w, uint32_t step);
/* Whether one may begin with it: with a concat it would but load the parts of
 * what lies outside together. */
bool group_may_begin(const Work *w, uint32_t step);
NodeId group_node(const Work *w, const Group *g, uint32_t i);
/* Index of the node of the group that makes the tensor; NONE. */
uint32_t group_maker(const Work *w, const Group *g, TensorId t);
/* The nodes of the group that read a tensor, in turn: after each
 * group_readers_next that is true, `i` is the index of one. */
typedef struct GroupReaders {
    const Work *w;
    const Group *g;
    TensorId t;
    uint32_t at, i;
} GroupReaders;
GroupReaders group_readers(const Work *w, const Group *g, TensorId t);
bool group_readers_next(GroupReaders *r);
/* Whether it must be in backing memory for what is outside the group: nodes
 * that read it or a concat that it is part of, or one that is not complete. */
bool group_leaves(const Work *w, const Group *g, TensorId t);
/* Whether somebody outside the group needs what it makes. */
bool group_stores(const Work *w, const Group *g, TensorId t);
/* Active memories that all of the group's nodes that touch it reach: bits. */
uint32_t group_reach(const Work *w, const Group *g, TensorId t);
/* The last step of the group that reads it, or makes it. */
uint32_t group_last_use(const Work *w, const Group *g, TensorId t);
uint32_t group_stripes(const Work *w, const Group *g);
/* Rows of one stripe, by what is held (group_held); false if it cannot be
 * computed. */
bool stripe_make(const Work *w, const Group *g, uint32_t index, Stripe *stripe);
/* Most rows of any stripe, by what is held; in `arena`. */
const Stripe *stripes_highest(const Work *w, const Group *g, Arena *arena);
/* Of which stripes the cost is found. */
typedef enum StripesLook {
    STRIPES_MIDDLE, /* one in the middle: the peak alone */
    STRIPES_THREE,  /* the first, one in the middle, the last: exact where those
                     * between are alike */
    STRIPES_ALL
} StripesLook;
/* False if one of these cannot be computed. Not `sized`: in one linear memory
 * of any size. */
bool group_measure(const Work *w, const Group *g, StripesLook look, bool sized,
                   GroupCost *cost);
/* Bytes by pool of the result of a node of the group: its most rows, and what
 * a copy of its last rows reaches over. */
void stripe_bytes(const Work *w, TensorId result, const Stripe *most,
                  uint64_t bytes[PLAN_MAX_POOLS]);

/* ---- shared.c: what several nodes of a group read from outside ---- */

/* Those are loaded once a stripe. */
void group_share(const Work *w, Group *g);
/* How many tensors a stripe holds: results of its nodes, then what is shared.
 */
uint32_t group_held(const Group *g);
/* Which of them the tensor is; NONE: each reader loads its own rows. */
uint32_t group_holder(const Work *w, const Group *g, TensorId t);
/* The first node that reads what is shared; of how much node i is that. */
uint32_t shared_first(const Work *w, const Group *g, uint32_t s);
uint32_t shared_by(const Work *w, const Group *g, uint32_t i);

/* ---- joined.c: concats in groups ---- */

/* Whether a group may contain the concat: parts of it, and of those around it,
 * have places of their own in backing memory. */
bool concat_may_join(const Work *w, NodeId concat);
/* Whether no node of the group reads the tensor but its node i. */
bool group_only_reader(const Work *w, const Group *g, TensorId t, uint32_t i);
/* The node in whose plank that of node i lies, from channel *c on: a concat, or
 * i itself. */
uint32_t group_plank(const Work *w, const Group *g, uint32_t i, uint32_t *c);
/* Whether the group makes the tensor in the plank of a concat. */
bool group_joins(const Work *w, const Group *g, TensorId t);
/* The first node that writes into the plank of node i. */
uint32_t plank_first(const Work *w, const Group *g, uint32_t i);
/* Rows of node i's result are multiples of this, as is where they begin. */
uint32_t group_quantum(const Work *w, const Group *g, uint32_t i);
/* Whether all operands of a concat can lie in its plank of so many rows. */
bool plank_parts_start(const Work *w, const Group *g, uint32_t i,
                       uint32_t rows);

/* ---- stripecost.c: the same, found once ---- */

StripeCosts *stripe_costs_new(Arena *arena, uint32_t n_steps);
bool group_cost(const Work *w, const Group *g, StripesLook look,
                GroupCost *cost);
const Stripe *group_highest(const Work *w, const Group *g);

/* ---- copy.c: rows of a plank as a volume of their own ---- */

/* How an engine copies rows of planks of the tensor; engine -1 if none can. */
Legal copy_legal(const Work *w, TensorId t);
/* Bytes from the start of a plank to its row `row`. */
uint64_t copy_offset(const HwSpec *spec, const Volume *plank, uint32_t row);

/* ---- rings.c: groups that compute nothing twice ---- */

/* Rows of a tensor that only a group needs. */
typedef struct Ring {
    TensorId tensor;
    uint32_t maker; /* index in the group; NONE: it is loaded row by row */
    uint32_t rows;
    uint32_t loaded; /* rows that are behind or in it */
    uint32_t over;   /* the ring whose rows its own replace; NONE */
    uint32_t under;  /* the mirror */
    uint32_t inside; /* the ring of the concat that it is part of; NONE */
    uint32_t buf;    /* counted from the group's first */
} Ring;
typedef struct Rings {
    VEC(Ring) at;
    uint32_t n_loaded; /* the first of them are loaded */
    uint32_t *made;    /* by node of the group: ring of its result, or NONE */
} Rings;
/* Node i of a group adds rows to its result. */
typedef struct Roll {
    uint32_t i, row, rows;
    Rows need; /* of its operands */
} Roll;
/* done: rows by node before that. */
typedef void RollVisitor(void *context, const Roll *roll, const uint32_t *done);
/* Whether the tensor, made or read by the group, is whole in active memory. */
bool group_keeps(const Work *w, const Group *g, TensorId t);
/* Of its highest result: what `rows` can be. */
uint32_t group_height(const Work *w, const Group *g);
/* Rows that node i then adds at a time. */
uint32_t roll_chunk(const Work *w, const Group *g, uint32_t i);
/* The same of all nodes. */
uint32_t *roll_chunks(const Work *w, const Group *g);
/* All that the group's nodes do, in order; false if rows cannot be computed. */
bool group_roll(const Work *w, const Group *g, RollVisitor *visit,
                void *context);
/* The ring that it is part of, from channel *c on; itself. */
uint32_t ring_whole(const Work *w, const Rings *rings, uint32_t i, uint32_t *c);
/* Whether a node that reads the ring's tensor, from outside, lacks rows: from
 * *row on to ring->loaded, which is raised. */
bool ring_load(const Work *w, const Group *g, Ring *ring, const Roll *roll,
               const uint32_t *done, uint32_t *row);
/* The group's rings, in a fixed order; false if rows cannot be computed. */
bool rings_make(const Work *w, const Group *g, Rings *rings);
/* Those it has, not how many rows: `rows` of the group are not asked. */
void rings_list(const Work *w, const Group *g, Rings *rings);
/* Rows of listed ones until the last result has `rows`. */
bool rings_until(const Work *w, const Group *g, uint32_t rows, Rings *rings);
/* Elements of the node's weights. */
uint64_t node_weights(const Work *w, NodeId id);

/* What a group with rings costs, if a few runs of its last node are like all
 * the others. */
typedef struct RollCost {
    uint64_t bytes;   /* of its rings; UINT64_MAX: it cannot be computed */
    uint64_t moved;   /* bytes over DDR */
    uint64_t weights; /* elements read, again with each run of a node */
} RollCost;
/* The most rows at a time of those that are tried, with which the rings take at
 * most `bytes`; 0 if there are none. */
uint32_t roll_rows(const Work *w, Group g, uint64_t bytes, RollCost *cost);
/* Looks at all runs; false if that changes what roll_rows knows of the group.
 */
bool roll_confirm(const Work *w, const Group *g);
RollCosts *roll_costs_new(Arena *arena, uint32_t n_steps);

/* The most columns at a time of those that are tried, with which line buffers
 * take at most `bytes`; 0 if there are none. */
uint32_t roll_columns(const Work *w, Group g, uint64_t bytes, RollCost *cost);

/* ---- lines.c: groups that roll by rows and columns ---- */

typedef struct Piece {
    uint32_t at, n;
} Piece;

/* The line buffer of a tensor that only a group needs. */
typedef struct LineRing {
    TensorId tensor;
    uint32_t maker; /* index in the group; NONE: it is loaded */
    LineBuffer buffer;
    int64_t lead;    /* rows that are there more than those of its bands */
    uint32_t loaded; /* columns of this band, while it is rolled */
    bool passes;     /* nothing of it is kept when a band ends: it is */
    uint64_t offset; /* ... here in the room that such lines share, */
    uint64_t beside; /* ... at times together with these: bits */
    uint32_t buf;    /* counted from the group's first */
} LineRing;
/* What a node makes of each band, and at a time. */
typedef struct LineNode {
    uint32_t rows, cols;
    int64_t lead; /* row 0 is behind so many of band 0 */
} LineNode;
typedef struct Lines {
    VEC(LineRing) at;
    uint32_t n_loaded;  /* the first of them are loaded */
    LineNode *node;     /* by node of the group */
    int64_t first, end; /* bands */
    uint64_t room;      /* bytes */
    uint64_t bytes;     /* of the group */
} Lines;
/* Node i of a group adds columns of some rows to its result, or columns of an
 * operand of it are loaded. */
typedef struct LineTurn {
    uint32_t i, line; /* line: what is loaded */
    bool loads;
    Piece rows, cols;
    Rows in_rows, in_cols; /* of its operands */
} LineTurn;
/* done: columns by node, then; makes: whether it makes rows in this band. */
typedef void LineVisitor(void *context, const LineTurn *turn,
                         const uint32_t *done, const bool *makes);
/* The line buffers of a group with `cols`; false if it cannot be computed so.
 * Not `exact`: of what a band in the middle begins with. */
bool lines_make(const Work *w, const Group *g, bool exact, Lines *lines);
/* All that the group's nodes do, in order. */
bool lines_roll(const Work *w, const Group *g, Lines *lines, LineVisitor *visit,
                void *context);
/* Rows that node i makes in a band; that are loaded. */
Piece lines_made(const Work *w, const Group *g, const Lines *lines, uint32_t i,
                 int64_t band);
Piece lines_loaded(const Work *w, const LineRing *line, int64_t band);
/* The volume of its pixels. */
Volume line_volume(const Work *w, const LineRing *line);
/* Of a group that was chosen, rings_make, and lines_make, found once. */
const Rings *group_rings(const Work *w, const Group *g);
const Lines *group_lines(const Work *w, const Group *g);
/* Numbers the buffers: one for each line that keeps rows, then the room. */
void lines_number(Lines *lines);

/* ---- rolling.c: what fits if only rows are kept ---- */

/* Whether all groups with rings cost what the search thought. */
bool groups_confirmed(const Work *w);
/* Without moves but those of inputs and outputs; only for machines with rings.
 */
bool fit_rolling(Work *w, Problem *problem, PlanResult *result,
                 const char **planner);

/* ---- depth.c: which groups ---- */

/* Groups and their heights for few bytes over DDR, were `budget` bytes of
 * active memory theirs. Returns how many it has put into w->group. */
uint32_t groups_choose(Work *w, uint64_t budget);
/* The same for units as they were made, from what is known already. */
uint32_t groups_known(Work *w, uint64_t budget);
KnownGroups *known_groups_new(Arena *arena);
/* Whether steps [first, end) make something that nobody reads there, but for
 * the last. */
bool group_has_loose_end(const Work *w, uint32_t first, uint32_t end);
/* Sets the modes of their nodes; false if a concat stands in the way. */
bool groups_apply(Work *w);

/* ---- mend.c: groups beside volumes that stay; w->low is set ---- */

/* Groups that were applied get lower stripes where that lets volumes stay. */
void groups_lower(Work *w);
/* Groups where layers do not fit, applied; false if a concat stands in the way.
 */
bool groups_mend(Work *w);

/* ---- traffic.c: what a plan costs ---- */

typedef struct Traffic {
    uint64_t moved;   /* bytes */
    uint64_t weights; /* bytes that are read, where these count: by tiles of
                       * channels, and on machines that say so */
    uint64_t work;    /* products, and elements of what has none */
    uint64_t again;   /* bytes of results that are computed once more */
    uint32_t instructions; /* of the listing, layers of the host aside */
    bool too_long;         /* more than the machine holds */
} Traffic;
Traffic plan_traffic(const Plan *plan);
/* Traffic.weights if each node reads its own once. */
uint64_t weights_once(const Work *w);
/* A byte over DDR counts as often as this the cycles that it takes: fewer bytes
 * are worth some time, but not any. Between tiles of channels more than between
 * others. */
enum { BYTE_PRICE = 10, TILE_BYTE_PRICE = 150 };
/* From or to backing memory, bursts and latency aside; 0 if nobody knows. */
double bytes_seconds(const HwSpec *spec, double bytes);
uint64_t row_work(const Graph *g, const Node *node);
uint64_t node_work(const Work *w, NodeId id);

/* ---- residency.c: what is evicted, dissolved, tiled ---- */

/* A volume that passes in tiles must not be part of a concat that is still
 * being filled: dissolves such. */
bool operand_freed(Work *w, NodeId node, TensorId t);
/* The same for all modes that are set; false if one cannot be. */
bool modes_settle(Work *w);
/* The modes that are set stay; false if they leave no way. */
bool fit_around(Work *w, Problem *problem, PlanResult *result,
                const char **planner);
/* Places everything. False if it does not fit; w->stuck then tells where. */
bool fit_one_level(Work *w, Problem *problem, PlanResult *result,
                   const char **planner);
/* Places what units and modes ask for now. False if it does not fit: then the
 * result is as it was. Counts placements in *tries. */
bool place_again(Work *w, Problem *problem, PlanResult *result,
                 const char **planner, uint32_t *tries);
/* All volumes kept, all nodes whole. */
void start_again(Work *w);
/* fly.c: nodes that read network inputs by tiles for more copies; false if
 * there are none. */
bool fly_choose(Work *w);
/* Sets the modes of nodes on engines that work ahead. */
void ahead_choose(Work *w);
/* Whether it may be written while other images are at work. */
bool made_ahead(const Work *w, TensorId t);
bool fit_two_levels(Work *w, Problem *problem, PlanResult *result,
                    const char **planner);

/* through.c: of a plan that fits, what is loaded for a layer alone, or stored
 * as soon as it is made, passes in the layer's tiles, where that moves no more.
 */
void pass_through(Work *w, Problem *problem, PlanResult *result,
                  const char **planner);

/* ---- gaps.c: how much of a volume stays between two uses ---- */

/* Bytes of active memory that the first channels of the unit's volume take:
 * whole granules. */
uint64_t kept_bytes(const Work *w, const Unit *unit, uint32_t channels);
/* The tensors of which a part may stay over the gap behind the touch, of none
 * that is part of another; at most as many as the unit has. */
uint32_t kept_tensors(const Work *w, const Unit *unit, uint32_t touch,
                      TensorId *out);
/* How many of the tensor's channels are among the unit's first `keeps`. */
uint32_t kept_of(const Work *w, const Unit *unit, TensorId t, uint32_t keeps);
/* Bytes that volumes which pass in parts move at least. */
double streams_cost(const Work *w);
/* Bytes that leave and come back, by gaps' leaves and keeps. */
double gaps_cost(const Work *w);
/* Concats take no more than is written of them, where they would not fit. */
void units_fill(Work *w, Problem *problem);
/* Chooses the gaps anew and places everything, if that moves fewer bytes than
 * `most`; else false, and all is as it was. */
bool fit_gaps(Work *w, double most, Problem *problem, PlanResult *result,
              const char **planner);

/* Places a problem with buffers that move together. False if no place is found;
 * *blocked: while what was most in the way is alive. */
bool place_tied(const Work *w, const Problem *p, PlanResult *result,
                Times *blocked);

/* ---- slots.c: concats whose bytes serve others until they are written ---- */

/* One level in one linear memory, where whole concats did not fit. */
bool fit_slots(Work *w, Problem *problem, PlanResult *result,
               const char **planner);

/* ---- spread.c: free memory for less waiting ---- */

/* Moves buffers of a placement apart. */
void spread(Work *w, Problem *problem, PlanResult *result);
/* What lies in a partition of the memory that it was placed in goes to the same
 * one of a larger memory, if all of it can. */
void partitions_keep(const Problem *problem, PlanResult *result,
                     const HwMemory *within, const HwMemory *real);

/* ---- actions.c ---- */

/* False, with an error, when an external memory is too small. */
bool actions_make(Work *w, Diag *diag, const Problem *problem,
                  const PlanResult *result, Plan *plan);

/* ---- explain.c ---- */

/* Says why nothing fits. */
void explain(Diag *diag, Work *w, const Problem *problem,
             const PlanResult *result);
/* Says that the shortest listing is longer than the machine holds. */
void explain_length(Diag *diag, const Work *w, uint32_t instructions);

/* ---- explain_tiles.c ---- */

/* How a node takes the smallest memory, on a machine that tiles by itself. */
typedef struct LeastTile {
    Mode mode;      /* whole, by tiles or by slabs; what it needs of it */
    uint64_t bytes; /* of the first active memory */
    uint64_t tile;  /* of these for a tile of the input, with `sums` for all */
    uint64_t kept;  /* and for operands that stay whole */
} LeastTile;
LeastTile least_tile(const Work *w, NodeId node);
/* That no tile fits, and how large the smallest is. */
void note_least_tile(Diag *diag, const Work *w, NodeId node,
                     const LeastTile *least);

/* ---- never.c ---- */

/* Bytes of the first active memory without which some step cannot run; 0 where
 * nobody knows. */
uint64_t never_less(const Work *w);

/* ---- bound.c ---- */

/* Fills ddr_compulsory, ddr_bound, ddr_once and ddr_layers. */
void bound_make(const Work *w, Plan *plan);

/* ---- plan.c ---- */

/* Whether there is any plan for the machine, of no more instructions than it
 * holds. `once`: as in work_new; `less`: bytes of its first memory in which
 * there is none, where tiles do not grow with that; or 0. */
bool plan_exists(const Schedule *schedule, const HwSpec *spec,
                 const PlanOptions *options, const Once *once, uint64_t less);
/* A plan of volumes alone, not judged; as plan_make. */
Plan *plan_volumes(Arena *arena, Diag *diag, const Schedule *schedule,
                   const PlanOptions *options, bool *does_not_fit);
/* The work of planning, ready for fit_*. `once`: of another Work of the same
 * schedule and machine, but for its first memory's size; or NULL. */
Work *work_new(Arena *arena, const Schedule *schedule, const HwSpec *spec,
               const PlanOptions *options, const Once *once);
/* way.c: the machine with another size of its first memory; tile buffers are
 * fractions of it. */
const HwSpec *spec_within(Arena *arena, const HwSpec *spec, uint64_t size);
/* One level, else two. */
bool work_fit(Work *w, Problem *problem, PlanResult *result,
              const char **planner, bool *two_levels);

/* With layers in groups that may take `share` sixteenths of active memory. */
bool work_fit_groups(Work *w, uint32_t share, Problem *problem,
                     PlanResult *result, const char **planner);

#endif
