/* listing_names.c - names of the functions that compute layers of the host, and
 * where a listing calls them; see listing.h. */
#include "codegen/listing.h"

#include "base/plain.h"

#include <string.h>

const char *listing_identifier(Arena *arena, const char *name) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    bool digit = *name >= '0' && *name <= '9';
    char *out = arena_printf(arena, "%s%s", digit || !*name ? "_" : "", name);
    for (char *at = out; *at; at++)
        if (!strchr(allowed, *at))
            *at = '_';
    return out;
}

const char *listing_comment(Arena *arena, const char *name) {
    char *out = arena_strdup(arena, plain_text(arena, name));
    for (char *at = out; *at; at++) {
        bool star = *at == '*' && (at[1] == '/' || (at > out && at[-1] == '/'));
        if (star)
            *at = '_';
    }
    return out;
}

const char *listing_take(Arena *arena, Map *taken, const char *name) {
    const char *plain = listing_identifier(arena, name);
    const char *out = plain;
    for (uint32_t k = 2; !map_put(taken, out, 0); k++)
        out = arena_printf(arena, "%s_%u", plain, k);
    return out;
}

void listing_name_functions(Arena *arena, const char *network, uint32_t n,
                            HostLayer *host) {
    Map *taken = map_new(arena);
    for (uint32_t i = 0; i < n; i++)
        host[i].function = listing_take(
            arena, taken, arena_printf(arena, "%s_%s", network, host[i].name));
}

static const char *layer_name(const HwSpec *spec, const HwInsn *insn) {
    HwOp op = insn_op(spec, insn);
    if (op != HW_OP_HOST && op != HW_OP_LAYER)
        return NULL;
    HwFields fields;
    insn_fields(spec, insn, &fields);
    return fields.set[HW_F_NAME] ? fields.str[HW_F_NAME] : NULL;
}

static const char *comment_with(Arena *arena, const char *function,
                                const char *comment) {
    return comment ? arena_printf(arena, "%s: %s", function, comment)
                   : function;
}

const Listing *listing_call(Arena *arena, const Listing *listing, uint32_t n,
                            const uint32_t *layer) {
    Map *index = map_new(arena);
    for (uint32_t i = 0; i < n; i++)
        map_put(index, listing->image.host[layer[i]].name, layer[i]);
    HwInsn *insn = ARENA_ARRAY(arena, HwInsn, listing->n);
    for (uint32_t i = 0; i < listing->n; i++) {
        insn[i] = listing->insn[i];
        const char *name = layer_name(listing->spec, &insn[i]);
        uint32_t at = name ? map_get(index, name, UINT32_MAX) : UINT32_MAX;
        if (at != UINT32_MAX)
            insn[i].comment = comment_with(
                arena, listing->image.host[at].function, insn[i].comment);
    }
    Listing *out = ARENA_NEW(arena, Listing);
    *out = *listing;
    out->insn = insn;
    return out;
}
