/* columns.c - first columns of weights, the same in all lanes that a layer
 * reads, and bytes of biases. Layers that use all lanes come first, as in the
 * vendor's tool; each takes the lowest place that is free in all its lanes. */
#include "lanes/inside.h"

enum { FAR = 1 << 20 }; /* beyond all columns */

/* The lowest columns that no layer placed so far has in these lanes. */
static uint32_t first_free(const LaneMachine *m, const LaneNet *net,
                           const bool *done, const LaneLayer *l) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < net->n;) {
        const LaneLayer *o = &net->layer[i];
        if (!done[i++] || !(o->lanes & l->lanes) ||
            at >= o->column + o->columns || o->column >= at + l->columns)
            continue;
        uint32_t end = o->column + o->columns + m->column_align - 1;
        at = end / m->column_align * m->column_align;
        i = 0;
    }
    return at;
}

/* The bias memory with most room, of the quadrants that any layer uses. */
static void place_bias(const LaneMachine *m, LaneLayer *l, uint64_t lanes,
                       uint32_t used[4]) {
    uint32_t best = 4;
    for (uint32_t q = 0; q < 4; q++)
        if (lanes >> (q * m->quadrant) & 0xffff &&
            (best == 4 || used[q] < used[best]))
            best = q;
    best %= 4;
    l->bias_quadrant = best;
    l->bias_offset = used[best];
    used[best] += l->n_bias;
}

/* Those that flatten first, then by size. */
static bool goes_before(const LaneLayer *a, const LaneLayer *b) {
    return a->flatten != b->flatten ? a->flatten : a->n_bias > b->n_bias;
}

static void place_biases(Arena *arena, const LaneMachine *m, LaneNet *net) {
    uint32_t used[4] = {0};
    uint64_t lanes = 0;
    bool *done = ARENA_ARRAY(arena, bool, net->n);
    for (uint32_t i = 0; i < net->n; i++)
        lanes |= net->layer[i].lanes | net->layer[i].out_lanes;
    for (uint32_t n = 0; n < net->n; n++) {
        uint32_t best = net->n;
        for (uint32_t i = 0; i < net->n; i++)
            if (net->layer[i].bias && !done[i] &&
                (best == net->n ||
                 goes_before(&net->layer[i], &net->layer[best])))
                best = i;
        if (best == net->n)
            break;
        done[best] = true;
        place_bias(m, &net->layer[best], lanes, used);
    }
}

void lanes_lengths(Arena *arena, const LaneMachine *m, LaneNet *net) {
    for (uint32_t i = 0; i < net->n; i++) {
        int64_t n = lanes_value(arena, m, net, i, 0, 0, m->length);
        net->layer[i].columns = (uint32_t)(n < FAR ? n : FAR);
    }
}

static uint32_t above(uint32_t end, uint32_t most) {
    return end > most ? end - most : 0;
}

uint32_t lanes_pack(Arena *arena, const LaneMachine *m, LaneNet *net,
                    uint32_t *peak) {
    bool *done = ARENA_ARRAY(arena, bool, net->n);
    uint32_t over = 0;
    *peak = 0;
    for (int all = 1; all >= 0; all--)
        for (uint32_t i = 0; i < net->n; i++) {
            LaneLayer *l = &net->layer[i];
            if (!l->columns || (l->lanes == UINT64_MAX) != all)
                continue;
            l->column = first_free(m, net, done, l);
            done[i] = true;
            uint32_t end = l->column + l->columns;
            over += above(end, m->columns);
            *peak = end > *peak ? end : *peak;
        }
    place_biases(arena, m, net);
    for (uint32_t i = 0; i < net->n; i++)
        over += net->layer[i].bias
                    ? above(net->layer[i].bias_offset + net->layer[i].n_bias,
                            m->biases)
                    : 0;
    return over;
}

bool lanes_columns(Arena *arena, Diag *diag, const LaneMachine *m,
                   LaneNet *net) {
    uint32_t peak;
    lanes_lengths(arena, m, net);
    if (!lanes_pack(arena, m, net, &peak))
        return true;
    for (uint32_t i = 0; i < net->n; i++) {
        const LaneLayer *l = &net->layer[i];
        if (l->column + l->columns > m->columns)
            diag_error(
                diag, l->loc,
                "layer %u: no %u columns of weights are free in processors "
                "%u to %u, of %u each; fewer input or output channels, or "
                "weights of 4 bits take less",
                i, l->columns, lane_first(l->lanes), lane_last(l->lanes),
                m->columns);
        else if (l->bias && l->bias_offset + l->n_bias > m->biases)
            diag_error(diag, l->loc,
                       "layer %u: %u biases do not fit into the %u bytes of "
                       "quadrant %u, %u are taken",
                       i, l->n_bias, m->biases, l->bias_quadrant,
                       l->bias_offset);
    }
    return false;
}
