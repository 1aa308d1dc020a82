/* configs.c - the configurations that a search tries for one size.
 *
 * Input: a machine, what was found. Output: configurations, one list for each
 * kind of machine: families and prices of which each was the best of some
 * network in some size. Some are tried only where plans of others ask for them.
 */
#include "alloc/search/search.h"
#include "alloc/tile/tile.h"
#include "geometry/tile_loops.h"
#include "hwspec/insn.h"

/* Products computed again that are worth a byte over DDR. */
enum { DEAR_WORK = 50, CHEAP_WORK = 150 };
/* Bytes over DDR that an instruction is worth where there are too many. */
enum { LEAST_INSN = 4096, MOST_INSN = 8 * 8 * LEAST_INSN };

static void add(const Search *s, Configs *out, Config config) {
    const HwTiling *tiling = &s->schedule->spec->tiling;
    if (config.lambda_weight &&
        (tiling->weights_stay || tiling->rows.weights_move))
        return; /* it counts nothing, or is counted anyway */
    vec_push(s->arena, out, config);
}

/* The same where cascades may compute some products again. */
static void list_strips(const Search *s, Config at, Configs *out) {
    Config c = at;
    c.strips = true;
    if (s->options->recompute <= 1 || !insn_by_strips(s->schedule->spec))
        return;
    c.family = FAMILY_ROLL;
    add(s, out, c);
    c.family = FAMILY_CASCADES;
    add(s, out, c);
}

enum { HIDE = 8, HIDE_MORE = 32 }; /* Config.runs */

/* Rows of operands in rings: cascades, or all layers as one. */
static void list_rings(const Search *s, Config at, Configs *out) {
    Config c = at;
    c.family = FAMILY_ROLL;
    add(s, out, c);
    c.family = FAMILY_CASCADES;
    add(s, out, c);
    c.pairs = true;
    add(s, out, c);
    c.pairs = false;
    list_strips(s, at, out);
    if (!s->any) {
        c.runs = HIDING_RUNS;
        if (!s->volumes)
            add(s, out, c);
        c.runs = at.runs;
        c.aims = at.aims;
        c.lambda_weight = true;
        add(s, out, c);
    }
}

/* Layers that never run whole: by tiles that are fast, or move little. */
static void list_nests(const Search *s, Config at, Configs *out) {
    Config c = at;
    if (s->any) { /* all from outside mostly takes the least */
        c.tiny = c.streams = true;
        add(s, out, c);
        c.streams = false;
        add(s, out, c);
        return;
    }
    add(s, out, c);
    c.styles = true;
    add(s, out, c);
    c.tile_bytes = true;
    add(s, out, c);
}

/* Longer cascades move less, compute more again, and take long to find. */
static bool tries_longer(const Search *s) {
    enum { THOROUGH = 2 };
    const PlanOptions *o = s->options;
    return s->schedule->n_steps > CASCADE_STEPS &&
           (o->objective == PLAN_BYTES || o->effort >= THOROUGH);
}

/* Rows of operands by instructions of their own. */
static void list_rows(const Search *s, Config at, Configs *out) {
    static const Config own[] = {
        {.family = FAMILY_CASCADES},
        {.family = FAMILY_CASCADES, .longer = true},
        {.family = FAMILY_CASCADES, .lambda_recompute = DEAR_WORK},
        {.family = FAMILY_BESIDE, .lambda_recompute = CHEAP_WORK},
        {.family = FAMILY_BESIDE, .lambda_recompute = DEAR_WORK},
        {.family = FAMILY_CASCADES,
         .lambda_recompute = CHEAP_WORK,
         .lambda_weight = true,
         .loose = true},
        {.family = FAMILY_CASCADES,
         .lambda_recompute = CHEAP_WORK,
         .loose = true},
        {.family = FAMILY_CASCADES,
         .lambda_recompute = CHEAP_WORK,
         .loose = true,
         .longer = true},
        {.family = FAMILY_CASCADES, .loose = true},
        {.family = FAMILY_BESIDE,
         .lambda_recompute = CHEAP_WORK,
         .lambda_weight = true},
        {.family = FAMILY_LOCAL},
    };
    enum { N = sizeof own / sizeof *own };
    add(s, out, at);
    for (uint32_t i = 0; i < N; i++) {
        Config c = own[i];
        if (c.longer && !tries_longer(s))
            continue;
        c.cap = at.cap;
        c.others = at.others;
        c.runs = at.runs;
        c.aims = at.aims;
        add(s, out, c);
    }
}

void configs_list(const Search *s, uint64_t cap, uint64_t others,
                  Configs *out) {
    const HwTiling *tiling = &s->schedule->spec->tiling;
    Config at = {.cap = cap,
                 .others = others,
                 .aside = s->aside,
                 .runs = s->aims.hides ? HIDING_RUNS : 0,
                 .aims = s->aims};
    if (s->options->layer_by_layer)
        add(s, out, at);
    else if (tiling->rows.rolls)
        list_rings(s, at, out);
    else if (tiling->tiles.always)
        list_nests(s, at, out);
    else if (tiling->kind == HW_TILING_SOFTWARE)
        list_rows(s, at, out);
    else
        add(s, out, at);
}

void configs_rest(const Search *s, uint64_t cap, uint64_t others,
                  Configs *out) {
    if (s->schedule->spec->tiling.rows.rolls)
        add(s, out,
            (Config){.cap = cap,
                     .others = others,
                     .aside = s->aside,
                     .runs = s->aims.hides ? HIDING_RUNS : 0,
                     .aims = s->aims});
}

void configs_hide(const Search *s, uint64_t cap, uint64_t others,
                  Configs *out) {
    if (!s->schedule->spec->tiling.rows.rolls || s->options->layer_by_layer ||
        s->options->objective != PLAN_TIME)
        return;
    for (uint32_t runs = HIDE; runs <= HIDE_MORE; runs *= 4)
        add(s, out,
            (Config){.family = FAMILY_ROLL,
                     .cap = cap,
                     .others = others,
                     .runs = runs,
                     .aside = s->aside});
}

void configs_last(const Search *s, Configs *out) {
    const HwTiling *tiling = &s->schedule->spec->tiling;
    Config at = {.cap = s->schedule->spec->memory[0].size,
                 .others = UINT64_MAX};
    Config c = at;
    c.evict_whole = true;
    add(s, out, c);
    c = at;
    c.streams = true;
    add(s, out, c);
    c.tiny = true;
    add(s, out, c);
    c.streams = false;
    add(s, out, c);
    if (tiling->kind == HW_TILING_SOFTWARE && !s->options->layer_by_layer) {
        c = at;
        c.family = FAMILY_CASCADES;
        c.lambda_insn = LEAST_INSN;
        add(s, out, c);
    }
    c = at;
    c.long_too = true;
    add(s, out, c);
}

static bool may_cascade(const Config *c) {
    return c->family != FAMILY_SPILL && c->family != FAMILY_LOCAL;
}

void configs_follow(const Search *s, const Config *config, Outcome outcome,
                    Configs *out) {
    Config c = *config;
    if (s->schedule->spec->tiling.tiles.always && !outcome.fits && !c.streams &&
        !outcome.too_long) {
        c.streams = true;
        add(s, out, c);
    }
    c = *config;
    if (s->volumes && outcome.by_parts && !c.evict_whole &&
        c.family == FAMILY_SPILL) {
        c.evict_whole = true;
        add(s, out, c);
    }
    c = *config;
    if (may_cascade(&c) && !c.without && !c.lambda_insn &&
        !c.runs == !s->aims.hides && s->kinds && !c.loose && !c.longer &&
        !c.lambda_weight) {
        c.without = s->kinds;
        add(s, out, c);
    }
    c = *config;
    if (c.family == FAMILY_CASCADES && !c.without && outcome.too_long &&
        c.lambda_insn < MOST_INSN && !c.long_too) {
        c.lambda_insn = c.lambda_insn ? 8 * c.lambda_insn : LEAST_INSN;
        add(s, out, c);
    }
}
