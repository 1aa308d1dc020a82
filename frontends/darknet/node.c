/* node.c - options and weights of the section that is being built; see
 * darknet.h. */
#include "frontends/darknet/darknet.h"

#include <stdlib.h>
#include <string.h>

const char *dark_text(const Dark *d, const char *key, const char *fallback) {
    const Section *s = d->at;
    for (uint32_t i = 0; i < s->option.n; i++)
        if (!strcmp(s->option.at[i].key, key))
            return s->option.at[i].value;
    return fallback;
}

uint32_t dark_number(const Dark *d, const char *key, uint32_t fallback) {
    const char *text = dark_text(d, key, NULL);
    char *end;
    if (!text)
        return fallback;
    unsigned long value = strtoul(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && value <= INT32_MAX)
        return (uint32_t)value;
    net_fail(&d->net, "%s must be a whole number, not \"%s\"", key, text);
    return fallback;
}

void dark_numbers(const Dark *d, const char *key, uint32_t fallback,
                  uint32_t out[2]) {
    Arena *arena = d->net.arena;
    uint32_t both = dark_number(d, key, fallback);
    out[0] = dark_number(d, arena_printf(arena, "%s_y", key), both);
    out[1] = dark_number(d, arena_printf(arena, "%s_x", key), both);
}

const Const *dark_floats(Dark *d, uint64_t n) {
    if (!d->weights.at)
        return NULL;
    if (n > d->weights.len / sizeof(float)) {
        net_fail(&d->net, "the weights end before those of this layer");
        return NULL;
    }
    Const *c = ARENA_NEW(d->net.arena, Const);
    *c = (Const){
        .shape = {1, {(uint32_t)n}}, .kind = CONST_F32, .data = d->weights.at};
    d->weights.at += n * sizeof(float);
    d->weights.len -= n * sizeof(float);
    return c;
}
