/* read_dma.c - `dma`: units that move data at the same time.
 *
 * Input: a map of units. Output: spec->dma in the file's order, which is the
 * order in which transfers look for one. Invariant: where there are any, each
 * transfer that the machine may need has one.
 */
#include "hwspec/read.h"

static bool read_moves(Reader *r, YamlNode *node, void *out) {
    HwOps ops;
    if (!read_ops(r, node, &ops))
        return false;
    bool ok = ops && !(ops & ~HW_TRANSFERS);
    if (!ops)
        diag_error(r->diag, node->loc, "a unit moves one thing at least");
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if ((ops & ~HW_TRANSFERS) >> op & 1)
            diag_error(r->diag, node->loc, "`%s` is the work of an engine",
                       hw_op_name[op]);
    if (ok)
        *(HwOps *)out = ops;
    return ok;
}

static bool read_outside(Reader *r, YamlNode *node, void *out) {
    uint32_t set, active = (UINT32_C(1) << r->spec->n_active) - 1;
    if (!read_memory_set(r, node, &set))
        return false;
    if (set & active)
        diag_error(r->diag, node->loc,
                   "a unit moves between active memory and these, which lie "
                   "outside");
    *(uint32_t *)out = set;
    return true;
}

static const Key dma_keys[] = {
    NEED("moves", read_moves, HwDma, ops,
         "list of load, store, load_weights, load_bias"),
    KEY("memories", read_outside, HwDma, memories,
        "outside of active memory, from or to which; else any"),
};
const Section read_dma_section = SECTION("dma.*", dma_keys);

bool read_dma(Reader *r, YamlNode *node, void *out) {
    HwSpec *spec = r->spec;
    (void)out;
    if (!read_is(r, node, YAML_MAP))
        return false;
    if (node->n > HW_MAX_DMAS) {
        diag_error(r->diag, node->loc, "more than %d units", HW_MAX_DMAS);
        read_ignore(node);
        return false;
    }
    HwDma *dma = ARENA_ARRAY(r->arena, HwDma, node->n + 1);
    for (uint32_t i = 0; i < node->n; i++) {
        dma[i] = (HwDma){.name = node->key[i],
                         .loc = node->key_loc[i],
                         .memories = UINT32_MAX};
        read_keys(r, yaml_get(node, node->key[i]), &read_dma_section, &dma[i]);
    }
    spec->n_dmas = node->n;
    spec->dma = dma;
    return true;
}

static void need_unit(Reader *r, HwOp op, uint32_t memories) {
    const HwSpec *spec = r->spec;
    for (uint32_t m = 0; m < spec->n_memories; m++)
        if ((memories >> m & 1) && hwspec_dma(spec, op, m) < 0)
            diag_error(r->diag, spec->dma[0].loc,
                       "no unit of `dma` has `%s` for memory `%s`",
                       hw_op_name[op], spec->memory[m].name);
}

void check_dma(Reader *r) {
    const HwSpec *spec = r->spec;
    if (!spec->n_dmas)
        return;
    if (spec->tiling.rows.moves != HW_MOVES_QUEUED)
        diag_error(r->diag, spec->dma[0].loc,
                   "units that move data at the same time need "
                   "`tiling.queue`");
    if (spec->input < 0 || spec->output < 0)
        return;
    need_unit(r, HW_OP_LOAD, spec->backings | UINT32_C(1) << spec->input);
    need_unit(r, HW_OP_STORE, spec->backings | UINT32_C(1) << spec->output);
    need_unit(r, HW_OP_LOAD_WEIGHTS, spec->tiling.rows.weights_in);
    if (spec->bias)
        need_unit(r, HW_OP_LOAD_BIAS, spec->tiling.rows.weights_in);
}
