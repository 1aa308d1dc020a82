/* branch_and_bound.c - a search that branches on places, not on buffers.
 *
 * A niche is a run of sections with one floor between two higher walls:
 *
 *        |   |______          walls
 *        |___|     |
 *            |_____| <- niche: only items that are alive nowhere else than in
 *                       its sections can lie on its floor
 *
 * Take one section of a niche. Either one of the items that fit lies on the
 * floor there - try each - or none does, and then the floor rises to the next
 * height at which an item can start: a waste that the section's slack (capacity
 * - floor - open) must pay for. Where slack is small, sections with one choice
 * or none abound, and choosing the section with the fewest choices makes most
 * of the search forced. This is the algorithm for exact covers (Knuth's
 * "Dancing links", 2000) with a budget of waste.
 *
 * Nothing is lost by placing only what lies on something: any solution can be
 * pushed down. Nothing is lost either by taking the first of equal items.
 * States are remembered by a hash of floors, tops and open items once they
 * failed. (64 bits: two among 2^24 states collide with a chance of 2^-17; a
 * proof that no solution exists is subject to that.)
 *
 * A state that falls into parts which no open item joins is solved part by
 * part: one that fails ends the matter, whatever the others could do.
 */
#include "pack/exact/exact.h"

#include "base/guard.h"
#include "base/rng.h"

/* ---- memory of failed states ---- */

static uint64_t mix(uint64_t key, uint64_t value) {
    return rng_bits(key, value);
}

/* Two states with the same key have the same solutions within [lo, hi). A sum:
 * the processor mixes several sections at a time. */
static uint64_t state_key(const Search *s, uint32_t lo, uint32_t hi) {
    const Skyline *sky = s->sky;
    uint64_t key = mix(sky->strip->limit, (uint64_t)lo << 32 | hi);
    for (uint32_t t = lo; t < hi; t++)
        key += mix(mix(t, (uint64_t)sky->floor[t]),
                   (uint64_t)sky->top[t] ^ sky->begins[t]);
    return key ? key : 1;
}

static bool memory_has(const Memory *memory, uint64_t key) {
    uint64_t at = key & memory->mask;
    const uint64_t *page = memory->page[at / MEMORY_PAGE];
    at %= MEMORY_PAGE;
    return page && (page[at] == key || page[at ^ 1] == key);
}

static void memory_add(Memory *memory, uint64_t key) {
    uint64_t at = key & memory->mask;
    uint64_t **page = &memory->page[at / MEMORY_PAGE];
    at %= MEMORY_PAGE;
    if (!*page)
        *page = ARENA_ARRAY(memory->arena, uint64_t, MEMORY_PAGE);
    if ((*page)[at])
        at ^= 1;
    (*page)[at] = key;
}

/* ---- which section ---- */

/* Sections [lo, hi) of one floor between higher walls. */
typedef struct Niche {
    uint32_t lo, hi;
} Niche;

static int64_t slack_of(const Skyline *sky, uint32_t t) {
    return sky->strip->capacity - sky->floor[t] - sky->open[t];
}

/* The less, the sooner. */
static double urgency(const Search *s, uint32_t t) {
    const Skyline *sky = s->sky;
    double weight = sky->weight[t] / sky->weight_step;
    double choices = (double)sky->choices[t] + (slack_of(sky, t) > 0);
    double height = (double)sky->floor[t] / (double)sky->strip->capacity;
    switch (s->variant.section) {
    case FEWEST_LOWEST:
        return choices + height;
    case FEWEST_PER_WEIGHT:
        return choices / (weight + 1e-3);
    case FEWEST_HEAVIEST:
        return choices * 1e6 - weight;
    }
    return 0;
}

static bool niche_at(const Skyline *sky, uint32_t lo, uint32_t from,
                     uint32_t hi, Niche *niche) {
    int64_t floor = sky->floor[from];
    uint32_t end = from + 1;
    while (end < hi && sky->floor[end] == floor)
        end++;
    *niche = (Niche){from, end};
    return (from == lo || sky->floor[from - 1] > floor) &&
           (end == hi || sky->floor[end] > floor) && sky->n_open[from];
}

/* Whatever is put on the floor there closes all below it, and one with a gap
 * may reach over a wall into a lower niche, where another belongs first. */
static bool reaches_lower(const Skyline *sky, uint32_t section) {
    const uint32_t *member = skyline_open(sky, section);
    for (uint32_t k = 0; k < sky->n_open[section] && sky->strip->has_gaps;
         k++) {
        const Item *item = &sky->strip->item[member[k]];
        if (!item->n_gaps || sky->low[member[k]] > sky->floor[section])
            continue;
        for (uint32_t t = item->lo; t < item->hi; t = item_next(item, t))
            if (sky->floor[t] < sky->floor[section])
                return true;
    }
    return false;
}

/* There is one: none reaches lower than the lowest floor. */
static uint32_t choose_section(const Search *s, uint32_t lo, uint32_t hi,
                               Niche *niche) {
    uint32_t best = lo;
    double least = 1e300;
    Niche here;
    for (uint32_t from = lo; from < hi; from = here.hi) {
        if (!niche_at(s->sky, lo, from, hi, &here))
            continue;
        for (uint32_t t = here.lo; t < here.hi; t++) {
            double now = urgency(s, t);
            if (now >= least || reaches_lower(s->sky, t))
                continue;
            least = now;
            best = t;
            *niche = here;
        }
    }
    return best;
}

/* ---- which item ---- */

static double draw(Search *s) {
    uint64_t bits = rng_bits(s->seed, s->drawn++);
    return (double)(bits >> 40) / (double)(1 << 24);
}

static int64_t wall(const Skyline *sky, uint32_t t, bool inside) {
    return inside ? sky->floor[t] : sky->strip->capacity;
}

static double worth(Search *s, const Niche *niche, uint32_t i) {
    const Skyline *sky = s->sky;
    const Item *item = &sky->strip->item[i];
    double size = (double)item->size, life = item->hi - item->lo;
    double value = s->variant.order == BY_SIZE   ? size
                   : s->variant.order == BY_AREA ? size * life
                                                 : life * 1e6 + size;
    int64_t top = sky->low[i] + item->size;
    bool left = item->lo == niche->lo, right = item->hi == niche->hi;
    if ((left && top == wall(sky, niche->lo - 1, niche->lo > 0)) ||
        (right &&
         top == wall(sky, niche->hi, niche->hi < sky->strip->n_sections)))
        value *= s->variant.fit;
    if (left && right)
        value *= s->variant.fit;
    return value * (1 + s->variant.noise * draw(s));
}

static bool lies_on_something(const Skyline *sky, uint32_t i) {
    const Item *item = &sky->strip->item[i];
    for (uint32_t t = item->lo; t < item->hi; t = item_next(item, t))
        if (sky->low[i] - sky->top[t] < item->align)
            return true;
    return item->pin >= 0;
}

static bool same_item(const Item *a, const Item *b) {
    return !a->n_gaps && !b->n_gaps && a->lo == b->lo && a->hi == b->hi &&
           a->size == b->size && a->last == b->last && a->align == b->align &&
           a->pin < 0 && b->pin < 0;
}

static bool first_of_equals(const Skyline *sky, uint32_t section, uint32_t i) {
    const Item *item = sky->strip->item;
    const uint32_t *member = skyline_open(sky, section);
    for (uint32_t k = 0; k < sky->n_open[section]; k++)
        if (member[k] < i && same_item(&item[member[k]], &item[i]))
            return false;
    return true;
}

static void add_choice(Search *s, uint32_t bottom, Choice choice) {
    vec_push(s->sky->arena, &s->choice, choice);
    uint32_t to = s->choice.n - 1;
    for (; to > bottom && s->choice.at[to - 1].worth < choice.worth; to--)
        s->choice.at[to] = s->choice.at[to - 1];
    s->choice.at[to] = choice;
}

/* Puts the items that can lie on the floor of the section on the stack. */
static void list_choices(Search *s, uint32_t section, const Niche *niche) {
    const Skyline *sky = s->sky;
    const uint32_t *member = skyline_open(sky, section);
    uint32_t bottom = s->choice.n;
    for (uint32_t k = 0; k < sky->n_open[section]; k++) {
        uint32_t i = member[k];
        if (sky->low[i] == sky->floor[section] && lies_on_something(sky, i) &&
            first_of_equals(sky, section, i))
            add_choice(s, bottom, (Choice){i, worth(s, niche, i)});
    }
}

/* ---- the floor without an item ---- */

/* The least height at which an item can start in the section if none lies on
 * its floor: on an item of the niche beside it, or where it had to anyway.
 * Beside a gap items may lie below the floor, and others on those: anything
 * above the floor is possible then. */
static int64_t next_floor(const Skyline *sky, uint32_t section) {
    const Strip *strip = sky->strip;
    int64_t next = INT64_MAX / 2;
    uint32_t lo = section, hi = section + 1;
    for (uint32_t k = 0; k < sky->n_open[section]; k++) {
        uint32_t i = skyline_open(sky, section)[k];
        const Item *item = &strip->item[i];
        if (sky->low[i] > sky->floor[section]) {
            next = sky->low[i] < next ? sky->low[i] : next;
            continue;
        }
        lo = item->lo < lo ? item->lo : lo;
        hi = item->hi > hi ? item->hi : hi;
    }
    for (uint32_t t = lo; t < hi; t++)
        for (uint32_t k = 0; k < sky->n_open[t]; k++) {
            uint32_t i = skyline_open(sky, t)[k];
            const Item *item = &strip->item[i];
            int64_t top = sky->low[i] + item->size;
            if (item_alive(item, section))
                continue;
            top = top > sky->floor[section] ? top : sky->floor[section] + 1;
            next = top < next ? top : next;
        }
    return next;
}

/* ---- the search ---- */

uint64_t search_steps(const Search *s) {
    enum { MEMBERS_A_STEP = 1024 };
    return s->nodes + s->sky->work / MEMBERS_A_STEP;
}

static bool solve(Search *s, uint32_t lo, uint32_t hi);

static bool try_choices(Search *s, uint32_t lo, uint32_t hi, uint32_t bottom) {
    Mark mark = skyline_mark(s->sky);
    for (uint32_t k = bottom; k < s->choice.n && !s->stopped; k++) {
        if (skyline_place(s->sky, s->choice.at[k].item) && solve(s, lo, hi))
            return true;
        skyline_undo(s->sky, mark);
    }
    return false;
}

static bool try_waste(Search *s, uint32_t lo, uint32_t hi, uint32_t section) {
    Skyline *sky = s->sky;
    int64_t floor = next_floor(sky, section);
    if (s->stopped)
        return false;
    if (floor + sky->open[section] > sky->strip->capacity) {
        skyline_blame(sky, section);
        skyline_needs(sky, floor + sky->open[section]);
        return false;
    }
    Mark mark = skyline_mark(sky);
    if (skyline_raise(sky, section, floor) && solve(s, lo, hi))
        return true;
    skyline_undo(sky, mark);
    return false;
}

/* Members that could be looked at in the time that a node takes for each
 * section: its key, whether it is the one. */
enum { SECTION_WORK = 4 };

static bool is_late(const Search *s) {
    enum { NODES_A_LOOK = 16 };
    return s->nodes % NODES_A_LOOK == 0 && strip_late(s->sky->strip);
}

static bool branch(Search *s, uint32_t lo, uint32_t hi) {
    Niche niche = {lo, hi};
    guard_poll();
    s->nodes++;
    if (is_late(s))
        s->max_steps = 0;
    s->stopped = search_steps(s) > s->max_steps || s->fails > s->max_fails;
    if (s->stopped)
        return false;
    s->sky->work += (uint64_t)SECTION_WORK * (hi - lo);
    uint64_t key = state_key(s, lo, hi);
    if (memory_has(&s->memory, key))
        return false;
    uint32_t section = choose_section(s, lo, hi, &niche);
    uint32_t bottom = s->choice.n;
    list_choices(s, section, &niche);
    bool found = try_choices(s, lo, hi, bottom);
    s->choice.n = bottom;
    if (found || try_waste(s, lo, hi, section))
        return true;
    s->fails++;
    if (!s->stopped)
        memory_add(&s->memory, key);
    return false;
}

/* The end of the part that begins at `lo`: no open item crosses it. */
static uint32_t part_end(const Skyline *sky, uint32_t lo, uint32_t hi) {
    uint32_t end = lo + 1;
    while (end < hi && sky->crossed[end])
        end++;
    return end;
}

static bool solve(Search *s, uint32_t lo, uint32_t hi) {
    Mark mark = skyline_mark(s->sky);
    while (lo < hi) {
        if (!s->sky->n_open[lo]) {
            lo++;
            continue;
        }
        uint32_t end = part_end(s->sky, lo, hi);
        if (!branch(s, lo, end)) {
            skyline_undo(s->sky, mark);
            return false;
        }
        lo = end;
    }
    return true;
}

Verdict niche_search(Search *search, uint32_t lo, uint32_t hi) {
    search->stopped = false;
    search->choice.n = 0;
    if (solve(search, lo, hi))
        return FOUND;
    return search->stopped ? GAVE_UP : NONE;
}
