/* constants.c - numbers of a layer in the order that its way says. */
#include "wordgen/writer.h"

enum { MOST_CONSTANTS = 1 << 30 };

static void put(Writer *w, uint32_t bytes, int64_t value) {
    for (uint32_t i = 0; i < bytes; i++)
        vec_push(w->arena, &w->constant, (uint8_t)((uint64_t)value >> 8 * i));
}

static bool put_value(Writer *w, const EmitConstant *c) {
    int64_t value;
    if (!template_eval(&w->run, c->value, 0, &value))
        return false;
    if (value < tpl_least(c->type) || value > tpl_most(c->type))
        return template_fail(&w->run, c->loc,
                             arena_printf(w->arena,
                                          "%lld is no number of %u bits",
                                          (long long)value, 8 * c->type.bytes));
    put(w, c->type.bytes, value);
    return true;
}

static bool fill(Writer *w, const EmitConstant *c, uint32_t depth) {
    int64_t extent;
    if (depth == c->n)
        return w->constant.n < MOST_CONSTANTS
                   ? put_value(w, c)
                   : template_fail(&w->run, c->loc, "too many constants");
    if (!template_eval(&w->run, c->extent[depth], 0, &extent))
        return false;
    w->run.env.set[c->index[depth]] = true;
    for (int64_t i = 0; i < extent; i++) {
        w->run.env.num[c->index[depth]] = i;
        if (!fill(w, c, depth + 1))
            return false;
    }
    return true;
}

const Stored *writer_constants(Writer *w, const EmitWay *way) {
    Stored *out = ARENA_ARRAY(w->arena, Stored, way->n_constants + 1);
    uint32_t align = w->spec->memory[w->spec->backing].align;
    for (uint32_t i = 0; i < way->n_constants; i++) {
        while (align && (w->base + w->constant.n) % align)
            put(w, 1, 0);
        out[i] = (Stored){way->constant[i].at, w->base + w->constant.n};
        if (!fill(w, &way->constant[i], 0))
            return NULL;
    }
    return out;
}

void writer_set_constants(Writer *w, const EmitWay *way, const Stored *stored) {
    for (uint32_t i = 0; i < way->n_constants; i++) {
        w->run.env.set[stored[i].name] = true;
        w->run.env.num[stored[i].name] = (int64_t)stored[i].at;
    }
}
