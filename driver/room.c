/* room.c - memory of this computer against that of a run; see room.h.
 *
 * Input: a network and its plan. Output: bytes, before any is taken. Invariant:
 * what is refused could not have run.
 */
#include "driver/room.h"

#include "base/arith.h"
#include "driver/commands.h"

#include <sys/resource.h>
#include <unistd.h>

/* A value and its writer. */
enum { CELL = sizeof(float) + sizeof(uint32_t) };

static uint64_t reference_bytes(const Graph *g) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        for (uint32_t k = 0; k < node->n_out && !node->dead; k++)
            bytes = add_capped(
                bytes, shape_count(&graph_tensor(g, node->out[k])->shape) *
                           sizeof(float));
    }
    return bytes;
}

/* Of the largest volume of a tensor that is placed there. */
static uint64_t written_bytes(const Pipeline *p, uint32_t memory) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < p->plan->n_placements; i++) {
        const Placement *at = &p->plan->placement[i];
        if (at->memory != memory || at->n_c != at->whole.c || at->ring ||
            at->lines.band)
            continue;
        uint64_t cells = (uint64_t)at->whole.c * at->whole.h * at->whole.w;
        most = larger(most, cells * CELL);
    }
    return most;
}

uint64_t room_to_verify(const Pipeline *p) {
    uint64_t bytes = reference_bytes(p->original);
    for (uint32_t m = 0; m < p->spec->n_memories; m++)
        bytes = add_capped(bytes, written_bytes(p, m));
    return bytes;
}

static uint64_t limit_of(int resource) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

uint64_t room_there(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t bytes = UINT64_MAX;
    if (pages > 0 && size > 0)
        bytes = (uint64_t)pages * (uint64_t)size;
    const uint64_t limit[] = {limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA)};
    for (int i = 0; i < 2; i++)
        bytes = limit[i] < bytes ? limit[i] : bytes;
    return bytes;
}

static bool suffices(Arena *arena, Diag *diag, const char *doing,
                     const char *name, uint64_t needs) {
    uint64_t there = room_there();
    if (needs <= there)
        return true;
    diag_error(diag, (Loc){0},
               "does not fit: %s %s takes at least %s bytes of this "
               "computer's memory, of which %s are to be had",
               doing, name, with_commas(arena, needs),
               with_commas(arena, there));
    diag_note(diag, (Loc){0}, "`amphora compile` takes none for values");
    return false;
}

bool room_verifies(Arena *arena, Diag *diag, const Pipeline *p) {
    return suffices(arena, diag, "verifying", p->original->name,
                    room_to_verify(p));
}

bool room_evaluates(Arena *arena, Diag *diag, const Graph *g) {
    return suffices(arena, diag, "evaluating", g->name, reference_bytes(g));
}

/* Of each value at the border its cell in a memory, and itself. */
static uint64_t border_bytes(uint32_t n, const Region *region) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes = add_capped(bytes, shape_count(&region[i].shape) *
                                      (CELL + sizeof(float)));
    return bytes;
}

bool room_simulates(Arena *arena, Diag *diag, const Listing *listing) {
    const Image *image = &listing->image;
    return suffices(arena, diag, "simulating", listing->network,
                    add_capped(border_bytes(image->n_inputs, image->input),
                               border_bytes(image->n_outputs, image->output)));
}
