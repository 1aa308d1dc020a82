/* shared_inputs.c - what several nodes of a group read that it does not make.
 *
 * Input: a group. Output: the tensors that are loaded once a stripe, with the
 * rows that all their readers need, and wait until the last of these has run.
 * Who needs fewer rows copies them. That moves fewer bytes than when each
 * loads its own, and takes more active memory: both ways are tried.
 */
#include "alloc/cascade/cascade.h"

static bool is_shared(const Facts *f, const Group *g, TensorId t) {
    GroupReaders r = group_readers(f, g, t);
    return group_readers_next(&r) && !group_only_reader(f, g, t, r.i);
}

static uint32_t shared_index(const Group *g, TensorId t) {
    for (uint32_t s = 0; s < g->n_shared; s++)
        if (same_tensor(g->shared[s], t))
            return s;
    return NONE;
}

void group_share(const Facts *f, Group *g) {
    VEC(TensorId) found = {0};
    for (uint32_t i = 0; i < g->end - g->first; i++) {
        const Node *node = graph_node(f->g, group_node(f, g, i));
        for (uint32_t k = 0; k < node->n_in; k++) {
            TensorId t = node->in[k];
            if (group_maker(f, g, t) != NONE || !is_shared(f, g, t) ||
                shared_index(g, t) != NONE)
                continue;
            vec_push(f->arena, &found, t);
            g->shared = found.at;
            g->n_shared = found.n;
        }
    }
}

uint32_t group_held(const Group *g) {
    return g->end - g->first + g->n_shared;
}

uint32_t group_holder(const Facts *f, const Group *g, TensorId t) {
    uint32_t maker = group_maker(f, g, t);
    uint32_t shared = maker == NONE ? shared_index(g, t) : NONE;
    return shared == NONE ? maker : g->end - g->first + shared;
}

uint32_t shared_first(const Facts *f, const Group *g, uint32_t s) {
    GroupReaders r = group_readers(f, g, g->shared[s]);
    uint32_t first = NONE;
    while (group_readers_next(&r))
        first = r.i < first ? r.i : first;
    return first;
}

uint32_t shared_by(const Facts *f, const Group *g, uint32_t i) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < g->n_shared; s++)
        n += shared_first(f, g, s) == i;
    return n;
}
