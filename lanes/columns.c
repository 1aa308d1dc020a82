/* columns.c - first columns of weights, the same in all lanes that a layer
 * reads, and bytes of biases. Layers that use all lanes come first, as in the
 * vendor's tool; each takes the lowest place that is free in all its lanes. */
#include "lanes/lanes.h"

typedef struct Columns {
    const LaneMachine *m;
    bool *used; /* by lane and column */
} Columns;

static bool is_free(const Columns *c, uint64_t lanes, uint32_t at, uint32_t n) {
    for (uint32_t p = 0; p < c->m->lanes; p++)
        for (uint32_t k = at; lanes >> p & 1 && k < at + n; k++)
            if (c->used[p * c->m->columns + k])
                return false;
    return true;
}

static void take(const Columns *c, uint64_t lanes, uint32_t at, uint32_t n) {
    for (uint32_t p = 0; p < c->m->lanes; p++)
        for (uint32_t k = at; lanes >> p & 1 && k < at + n; k++)
            c->used[p * c->m->columns + k] = true;
}

static bool place_columns(Diag *diag, const Columns *c, LaneLayer *l,
                          uint32_t number) {
    for (uint32_t at = 0; at + l->columns <= c->m->columns;
         at += c->m->column_align)
        if (is_free(c, l->lanes, at, l->columns)) {
            take(c, l->lanes, at, l->columns);
            l->column = at;
            return true;
        }
    diag_error(diag, l->loc,
               "layer %u: no %u columns of weights are free in processors %u "
               "to %u, of %u each; fewer input or output channels, or weights "
               "of 4 bits take less",
               number, l->columns, lane_first(l->lanes), lane_last(l->lanes),
               c->m->columns);
    return false;
}

/* The bias memory of the quadrant that has most room. */
static bool place_bias(Diag *diag, const LaneMachine *m, LaneLayer *l,
                       uint32_t used[4], uint32_t number) {
    uint32_t best = 0;
    bool found = false;
    for (uint32_t q = 0; q < 4; q++) {
        bool here = l->lanes >> (q * m->quadrant) & 0xffff;
        if (here && (!found || used[q] < used[best])) {
            best = q;
            found = true;
        }
    }
    l->bias_quadrant = best;
    l->bias_offset = used[best];
    used[best] += l->n_bias;
    if (used[best] <= m->biases)
        return true;
    diag_error(diag, l->loc,
               "layer %u: %u biases do not fit into the %u bytes of quadrant "
               "%u, %u are taken",
               number, l->n_bias, m->biases, best, l->bias_offset);
    return false;
}

/* Those that flatten first, then by size. */
static bool goes_before(const LaneLayer *a, const LaneLayer *b) {
    return a->flatten != b->flatten ? a->flatten : a->n_bias > b->n_bias;
}

static bool place_biases(Arena *arena, Diag *diag, const LaneMachine *m,
                         LaneNet *net) {
    uint32_t used[4] = {0};
    bool *done = ARENA_ARRAY(arena, bool, net->n);
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
        if (!place_bias(diag, m, &net->layer[best], used, best))
            return false;
    }
    return true;
}

bool lanes_columns(Arena *arena, Diag *diag, const LaneMachine *m,
                   LaneNet *net) {
    Columns c = {m, ARENA_ARRAY(arena, bool, m->lanes * m->columns)};
    for (uint32_t i = 0; i < net->n; i++)
        net->layer[i].columns =
            (uint32_t)lanes_value(arena, m, net, i, 0, 0, m->length);
    for (int all = 1; all >= 0; all--)
        for (uint32_t i = 0; i < net->n; i++) {
            LaneLayer *l = &net->layer[i];
            if (l->columns && (l->lanes == UINT64_MAX) == all &&
                !place_columns(diag, &c, l, i))
                return false;
        }
    return place_biases(arena, diag, m, net);
}
