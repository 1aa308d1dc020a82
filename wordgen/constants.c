/* constants.c - numbers of a layer in the order that its way says. */
#include "wordgen/inside.h"

enum { MOST_CONSTANTS = 1 << 30 };

static void put(Emitter *e, uint32_t bytes, int64_t value) {
    for (uint32_t i = 0; i < bytes; i++)
        vec_push(e->arena, &e->constant, (uint8_t)((uint64_t)value >> 8 * i));
}

static bool put_value(Emitter *e, const EmitConstant *c) {
    int64_t value;
    if (!template_eval(&e->run, c->value, 0, &value))
        return false;
    if (value < tpl_least(c->type) || value > tpl_most(c->type))
        return template_fail(&e->run, c->loc,
                             arena_printf(e->arena,
                                          "%lld is no number of %u bits",
                                          (long long)value, 8 * c->type.bytes));
    put(e, c->type.bytes, value);
    return true;
}

static bool fill(Emitter *e, const EmitConstant *c, uint32_t depth) {
    int64_t extent;
    if (depth == c->n)
        return e->constant.n < MOST_CONSTANTS
                   ? put_value(e, c)
                   : template_fail(&e->run, c->loc, "too many constants");
    if (!template_eval(&e->run, c->extent[depth], 0, &extent))
        return false;
    e->run.env.set[c->index[depth]] = true;
    for (int64_t i = 0; i < extent; i++) {
        e->run.env.num[c->index[depth]] = i;
        if (!fill(e, c, depth + 1))
            return false;
    }
    return true;
}

const Stored *wordgen_constants(Emitter *e, const EmitWay *way) {
    Stored *out = ARENA_ARRAY(e->arena, Stored, way->n_constants + 1);
    uint32_t align = e->spec->memory[e->spec->backing].align;
    for (uint32_t i = 0; i < way->n_constants; i++) {
        while (align && (e->base + e->constant.n) % align)
            put(e, 1, 0);
        out[i] = (Stored){way->constant[i].at, e->base + e->constant.n};
        if (!fill(e, &way->constant[i], 0))
            return NULL;
    }
    return out;
}
