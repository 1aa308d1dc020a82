/* tighten.c - a problem with gaps, or with relations that allow overlaps, asked
 * again without these: whatever fits then, fits.
 *
 * Input: a problem of one pool. Output: a plain one whose buffers are the
 * bundles of the first, each in one piece over all steps at which a member of
 * it is alive; its placements are placements of the first.
 */
#include "pack/cluster.h"
#include "pack/exact/exact.h"
#include "pack/free_list.h"

/* Of members, only the root may ask for an alignment. */
static bool is_simple(const Clusters *all, const Cluster *bundle) {
    for (uint32_t k = 0; k < bundle->n_members; k++) {
        uint32_t b = all->member[bundle->first_member + k];
        if (b != bundle->root && all->problem->buf[b].align > 1)
            return false;
    }
    return all->low[bundle->root] == 0;
}

static Buffer whole_bundle(const Clusters *all, const Cluster *bundle) {
    Buffer whole = all->problem->buf[bundle->root];
    whole.n_gaps = 0;
    whole.first = UINT32_MAX;
    whole.end = 0;
    for (uint32_t k = 0; k < bundle->n_members; k++) {
        const Buffer *b =
            &all->problem->buf[all->member[bundle->first_member + k]];
        if (!buf_is_alive(b))
            continue;
        whole.first = b->first < whole.first ? b->first : whole.first;
        whole.end = b->end > whole.end ? b->end : whole.end;
    }
    if (whole.first > whole.end)
        whole.first = whole.end;
    whole.bytes[0] = (uint64_t)bundle_bytes(all, bundle, 0);
    whole.pin_pool = bundle->pin_pool;
    whole.pin_offset = bundle->pin_pool < 0 ? 0 : (uint64_t)bundle->pin;
    return whole;
}

bool tight_new(Arena *arena, const PackProblem *problem, Tight *tight) {
    const Clusters *all = bundles_new(arena, problem);
    if (problem->n_pools != 1 || all->contradicted != PACK_NO_BUFFER)
        return false;
    for (uint32_t i = 0; i < problem->n_relations; i++)
        if (problem->relation[i].kind == REL_APART)
            return false;
    Buffer *buf = ARENA_ARRAY(arena, Buffer, all->n);
    for (uint32_t i = 0; i < all->n; i++) {
        if (!is_simple(all, &all->bundle[i]))
            return false;
        buf[i] = whole_bundle(all, &all->bundle[i]);
    }
    *tight = (Tight){.problem = *problem, .bundles = all};
    tight->problem.n_bufs = all->n;
    tight->problem.buf = buf;
    tight->problem.n_relations = 0;
    tight->problem.relation = NULL;
    return true;
}

void tight_result(Arena *arena, const Tight *tight, const PackResult *from,
                  PackResult *result) {
    const Clusters *all = tight->bundles;
    uint32_t n = all->problem->n_bufs;
    *result = *from;
    result->pool = ARENA_ARRAY(arena, int32_t, n);
    result->offset = ARENA_ARRAY(arena, uint64_t, n);
    for (uint32_t b = 0; b < n; b++)
        if (all->of[b] != PACK_NO_BUFFER)
            result->offset[b] =
                from->offset[all->of[b]] + (uint64_t)all->low[b];
}
