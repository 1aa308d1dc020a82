/* read_cycles.c - `engines.*.cycles`: how long an engine takes where that is no
 * product of ceilings: arrays that fill and drain, weights that are preloaded.
 *
 * Input: an expression over what an instruction makes. Output: HwCycles.
 * Invariant: it is never below 0, whatever the sizes.
 */
#include "hwspec/cycles.h"
#include "hwspec/read.h"

#include <string.h>

static const char *const name_of[HW_CYCLES_NAMES] = {
    [HW_CYCLES_OUT_C] = "out.c",
    [HW_CYCLES_OUT_H] = "out.h",
    [HW_CYCLES_OUT_W] = "out.w",
    [HW_CYCLES_STEPS] = "steps",
};

enum { LARGEST = 1 << 20 }; /* extent of a volume, as ranges are taken */

static ExprNames *names_new(Arena *arena) {
    ExprNames *names = expr_names(arena);
    for (uint32_t i = 0; i < HW_CYCLES_NAMES; i++)
        expr_add(names, &(ExprName){.name = name_of[i],
                                    .kind = EXPR_MEANING,
                                    .domain = {.range = {1, LARGEST}}});
    return names;
}

bool read_cycles(Reader *r, YamlNode *node, void *out) {
    const char *text;
    if (!yaml_str(r->diag, node, &text))
        return false;
    HwCycles *cycles = ARENA_NEW(r->arena, HwCycles);
    ExprPlace place = {0};
    ExprRange range;
    cycles->names = names_new(r->arena);
    cycles->expr = expr_parse(cycles->names, r->diag, text, node->loc, &place);
    ExprBounds bounds = {.names = cycles->names};
    if (!cycles->expr || !expr_range(&bounds, r->diag, cycles->expr, &range))
        return false;
    if (range.lo < 0)
        diag_error(r->diag, node->loc, "`%s` may be below 0", text);
    else
        *(const HwCycles **)out = cycles;
    return range.lo >= 0;
}

double hwspec_cycles_of(const HwCycles *cycles,
                        const int64_t value[HW_CYCLES_NAMES]) {
    bool set[HW_CYCLES_NAMES];
    int64_t num[HW_CYCLES_NAMES], result;
    ExprFault fault;
    memset(set, true, sizeof set);
    memcpy(num, value, sizeof num);
    ExprEnv env = {.names = cycles->names, .set = set, .num = num};
    bool fine = expr_eval(&env, cycles->expr, &result, &fault);
    return fine ? (double)result : (double)INT64_MAX;
}
