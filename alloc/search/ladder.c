/* ladder.c - of all plans one that is no worse than what a smaller memory gets.
 *
 * Input: a contest. Output: its best way.
 * Method: a chain of plans (chain.c) for the least size in which anything fits,
 * for two sizes in each power of two above it, and for the size in which
 * everything stays; they depend on the network and on the machine's other
 * numbers alone. Each is no worse than the one before, in bytes and in cycles.
 * Then the interval between two of them in which this memory lies is halved as
 * in a search for it, down to rungs: for the size in the middle a plan is taken
 * that is no worse than that of the lower end and no better than that of the
 * upper end; if there is none, that of the lower end. A memory gets the plan of
 * the lower end of the last interval. Invariant: what an interval's middle gets
 * depends on the interval alone. So two memories agree on all intervals down to
 * one that has the smaller memory in its lower half and the larger in its upper
 * one, and the larger gets nothing that is worse. In wide intervals there is
 * much to choose from; what is in others' way by chance is so in narrow ones.
 * What is too fast beside the upper end's plan is slowed down to it (slower.c).
 * Where the machine makes more copies of narrow volumes on their way from DDR
 * than in active memory, what keeps everything may be slower than what keeps
 * nothing: then the chain goes on to a memory ROOMY times as large, as tiles
 * grow with it, and ends with what is best there. So it does where layers never
 * run whole; there the chain leaves out small sizes, in which there are so many
 * tiles that it takes long to time them.
 */
#include "alloc/search/ladder.h"

/* Rungs, and sizes of the chain, for each power of two; powers of two. */
enum {
    OCTAVE = 32,
    CHAIN_OCTAVE = 2,
    OCTAVES = 32,
    MOST_SIZES = CHAIN_OCTAVE * OCTAVES + 2,
    ROOMY = 8,
    SPARSE = 8
};

/* The chain, and the plan for the largest size at its end. */
typedef struct Chained {
    uint32_t n;
    uint64_t size[MOST_SIZES];
    Offer held[MOST_SIZES];
} Chained;

/* ---- between them ---- */

/* Of the plans for the size that which costs least of those that lie between
 * both ends. */
static Offer size_choose(const Contest *c, uint64_t size, const Offer *below,
                         Timed above) {
    enum { MOST = 3, PART = 8 };
    Offers offers = {0};
    Offer best = *below;
    const Timed *most = &below->timed;
    offers_make(c, size, *most, above, &offers);
    Timed least = offers_least(&offers, *most);
    uint32_t looked = 0;
    for (uint32_t i = 0; i < offers.n; i++) {
        Offer o = offers.at[i];
        uint64_t cycles = o.timed.cycles - o.timed.cycles / PART;
        if (o.timed.cycles < above.cycles || cycles > most->cycles)
            continue;
        if (no_worse(o.timed, *most) && no_worse(above, o.timed) &&
            offer_cost(c, &o, least) < offer_cost(c, &best, least))
            best = o;
        if (o.waits && looked++ < MOST && offer_finish(c, &o) &&
            no_worse(above, o.timed) && no_worse(o.timed, *most) &&
            offer_cost(c, &o, least) < offer_cost(c, &best, least))
            best = o;
    }
    return best;
}

Box climb_box(Climb *climb, uint64_t size, Offer held) {
    Price price = {traffic_bytes(held.timed.traffic), held.timed.cycles};
    vec_push(climb->c->arena, &climb->held, held);
    return (Box){true, size, price, climb->held.n - 1};
}

static Box middle(void *context, uint64_t size, const Box *below,
                  const Box *above) {
    Climb *climb = context;
    Offer low = climb->held.at[below->plan];
    Timed high = climb->held.at[above->plan].timed;
    return climb_box(climb, size, size_choose(climb->c, size, &low, high));
}

/* Of a memory between two of the chain. */
static Offer climb(const Contest *c, const Chained *chain, uint32_t at) {
    enum { PART = 128 };
    Climb climb = {.c = c};
    Halving h = {middle, &climb, OCTAVE, PART};
    Box low = climb_box(&climb, chain->size[at], chain->held[at]);
    Box high = climb_box(&climb, chain->size[at + 1], chain->held[at + 1]);
    Box box = boxes_halve(&h, low, high, c->schedule->spec->memory[0].size);
    return climb.held.at[box.plan];
}

/* ---- where everything stays ---- */

static Box kept_middle(void *context, uint64_t size, const Box *below,
                       const Box *above) {
    Climb *climb = context;
    Offer low = climb->held.at[below->plan];
    Timed high = climb->held.at[above->plan].timed;
    Offer o = {.way = {.size = size, .within = true}};
    bool better = offer_finish(climb->c, &o) && no_worse(o.timed, low.timed) &&
                  no_worse(high, o.timed);
    return climb_box(climb, size, better ? o : low);
}

/* More room lets operands lie apart, and transfers begin earlier, up to ROOMY
 * times what everything takes. */
static void kept_climb(Contest *c, uint64_t all) {
    enum { PART = 1024 };
    Climb climb = {.c = c};
    Halving h = {kept_middle, &climb, OCTAVE, PART};
    uint64_t real = c->schedule->spec->memory[0].size, top = ROOMY * all;
    Offer tight = {.way = {.size = all, .tight = true, .within = true}};
    Offer roomy = {.way = {.size = top, .within = true}};
    if (!offer_finish(c, &tight))
        return;
    if (!offer_finish(c, &roomy) || !no_worse(roomy.timed, tight.timed))
        roomy = tight;
    Box low = climb_box(&climb, all, tight),
        high = climb_box(&climb, top, roomy);
    Box box = real < top ? boxes_halve(&h, low, high, real) : high;
    ladder_take(c, &climb.held.at[box.plan]);
}

/* Where weights count, what rolls reads them again with each run, and many
 * bytes are worth little time; and where there are very many steps plans cost
 * too much. */
bool time_counts(const Schedule *schedule, const PlanOptions *options) {
    enum { MAX_STEPS = 1000 };
    const HwTiling *tiling = &schedule->spec->tiling;
    return options->cycles && !tiling->bytes_alone &&
           !(tiling->rings && tiling->weights_move) &&
           schedule->n_steps <= MAX_STEPS;
}

bool weighs_time(const Contest *c) {
    return time_counts(c->schedule, c->options);
}

bool has_many_steps(const Contest *c) {
    return c->schedule->n_steps > MANY_STEPS;
}

bool kept_is_fastest(const Contest *c) {
    if (c->schedule->spec->tiling.always)
        return false;
    Arena *arena = arena_new("flies");
    Work *w =
        work_new(arena, c->schedule, c->schedule->spec, c->options, c->once);
    bool faster = fly_hastens(w);
    arena_free(arena);
    return !faster;
}

/* ---- all of them ---- */

void ladder_take(Contest *c, const Offer *held) {
    c->any = true;
    c->best = held->way;
    c->best.within = false;
    c->least = held->timed;
}

/* The least size, and those of the chain above `from`, below `top`; how many.
 */
static uint32_t find_sizes(uint64_t least, uint64_t from, uint64_t top,
                           uint64_t size[MOST_SIZES]) {
    uint32_t n = 0;
    size[n++] = least;
    for (uint32_t i = 0; i < CHAIN_OCTAVE * OCTAVES; i++) {
        uint64_t next = (uint64_t)(CHAIN_OCTAVE + i % CHAIN_OCTAVE)
                        << i / CHAIN_OCTAVE;
        if (next > from && next < top)
            size[n++] = next;
    }
    return n;
}

/* For sizes up to one that has the plan which keeps everything. Where all plans
 * for less are faster than that one, what is best there ends the chain. */
static bool chain_to_top(const Contest *c, uint64_t all, uint64_t least,
                         Chained *to) {
    bool roomy = !kept_is_fastest(c);
    uint64_t top = roomy ? ROOMY * all : all;
    Offer kept = {.way = {.size = top, .tight = !roomy, .within = true}};
    bool tiles = c->schedule->spec->tiling.always;
    uint64_t most = SPARSE * least < all / 16 ? SPARSE * least : all / 16;
    uint64_t from = tiles && most > least ? most : least;
    uint32_t n = find_sizes(least, from, top, to->size);
    to->n = n + 1;
    to->size[n] = top;
    to->held[n] = kept;
    if (!offer_finish(c, &to->held[n]))
        return false;
    return (!tiles &&
            chain_make(c, to->size, n, to->held[n].timed, to->held)) ||
           chain_make(c, to->size, n + 1, costs_nothing, to->held);
}

void ladder_climb(Contest *c) {
    if (c->schedule->spec->tiling.rings) {
        rolled_climb(c);
        return;
    }
    uint64_t real = c->schedule->spec->memory[0].size;
    uint64_t all = size_for_all(c);
    if (real >= all && kept_is_fastest(c)) {
        kept_climb(c, all);
        return;
    }
    uint64_t least = size_for_any(c, all);
    Chained to;
    if (least > real || !chain_to_top(c, all, least, &to))
        return;
    uint32_t at = 0;
    while (at + 1 < to.n && to.size[at + 1] <= real)
        at++;
    Offer best = to.held[at];
    if (at + 1 < to.n)
        best = climb(c, &to, at);
    ladder_take(c, &best);
}
