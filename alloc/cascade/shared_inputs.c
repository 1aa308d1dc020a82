/* shared_inputs.c - what several nodes of a cascade read that it does not make.
 *
 * Input: a cascade. Output: the tensors that are loaded once a stripe, with the
 * rows that all their readers need, and wait until the last of these has run.
 * Who needs fewer rows copies them. That moves fewer bytes than when each
 * loads its own, and takes more active memory: both ways are tried.
 */
#include "alloc/cascade/cascade.h"

static bool is_shared(const Facts *f, const Cascade *g, TensorId t) {
    CascadeReaders r = cascade_readers(f, g, t);
    return cascade_readers_next(&r) && !cascade_only_reader(f, g, t, r.i);
}

static uint32_t shared_index(const Cascade *g, TensorId t) {
    for (uint32_t s = 0; s < g->n_shared; s++)
        if (same_tensor(g->shared[s], t))
            return s;
    return NONE;
}

void cascade_share(const Facts *f, Cascade *g) {
    VEC(TensorId) found = {0};
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        const Node *node = graph_node(f->g, cascade_node(f, g, i));
        for (uint32_t k = 0; k < node->n_in; k++) {
            TensorId t = node->in[k];
            if (cascade_maker(f, g, t) != NONE || !is_shared(f, g, t) ||
                shared_index(g, t) != NONE)
                continue;
            vec_push(f->arena, &found, t);
            g->shared = found.at;
            g->n_shared = found.n;
        }
    }
}

uint32_t cascade_held(const Cascade *g) {
    return cascade_length(g) + g->n_shared;
}

uint32_t cascade_holder(const Facts *f, const Cascade *g, TensorId t) {
    uint32_t maker = cascade_maker(f, g, t);
    uint32_t shared = maker == NONE ? shared_index(g, t) : NONE;
    return shared == NONE ? maker : cascade_length(g) + shared;
}

uint32_t shared_first(const Facts *f, const Cascade *g, uint32_t s) {
    CascadeReaders r = cascade_readers(f, g, g->shared[s]);
    uint32_t first = NONE;
    while (cascade_readers_next(&r))
        first = r.i < first ? r.i : first;
    return first;
}

uint32_t shared_by(const Facts *f, const Cascade *g, uint32_t i) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < g->n_shared; s++)
        n += shared_first(f, g, s) == i;
    return n;
}
