/* place.c - offsets of our own, maps as they are.
 *
 * Volumes that one layer reads together (operands, members of a concat) form a
 * cluster that keeps its inner offsets. Clusters live from their first write to
 * their last read and get new places: even ones from below, odd ones from above
 * under the least height that can do, which is the least for every chain; or by
 * size from below; the lower of both, if it is lower than what was given.
 */
#include "lanes/inside.h"

typedef struct Cluster {
    uint32_t from, to;    /* layers: it lives in */
    uint64_t first, last; /* bytes as given, [first, last) */
    uint64_t at;
    uint32_t banks;
    bool used, placed;
} Cluster;

typedef struct Placer {
    uint32_t n;    /* volumes: the input, then each layer's result */
    uint32_t *top; /* by volume: its cluster's first volume */
    Cluster *cluster;
} Placer;

static uint32_t top_of(const Placer *p, uint32_t v) {
    while (p->top[v] != v)
        v = p->top[v];
    return v;
}

static void widen(Cluster *c, uint32_t banks, uint64_t first, uint64_t size) {
    c->banks |= banks;
    c->first = !c->used || first < c->first ? first : c->first;
    c->last = !c->used || first + size > c->last ? first + size : c->last;
    c->used = true;
}

static void gather(const LaneMachine *m, const LaneNet *net, Placer *p) {
    for (uint32_t i = 0; i < net->n; i++)
        for (uint32_t k = 1; k < net->layer[i].n_sources; k++)
            p->top[top_of(p, (uint32_t)(net->layer[i].source[k] + 1))] =
                top_of(p, (uint32_t)(net->layer[i].source[0] + 1));
    for (uint32_t v = 0; v < p->n; v++)
        p->cluster[v] = (Cluster){.from = UINT32_MAX};
    for (uint32_t i = 0; i < net->n; i++) {
        const LaneLayer *l = &net->layer[i];
        Cluster *in = &p->cluster[top_of(p, (uint32_t)(l->source[0] + 1))];
        Cluster *out = &p->cluster[top_of(p, i + 1)];
        widen(in, lanes_banks(m, l->lanes), l->in_offset, lanes_in_bytes(m, l));
        widen(out, lanes_banks(m, l->out_lanes), l->out_offset,
              lanes_out_bytes(m, net, i));
        in->from = l->source[0] < 0 ? 0 : in->from;
        in->to = i > in->to ? i : in->to;
        out->from = i < out->from ? i : out->from;
        out->to = l->marked || i > out->to ? (l->marked ? net->n : i) : out->to;
    }
}

static bool meet(const Cluster *a, const Cluster *b) {
    return a->from <= b->to && b->from <= a->to && (a->banks & b->banks) != 0;
}

static uint64_t size_of(const Cluster *c) {
    return c->last - c->first;
}

/* The lowest free place; from above: the highest that ends at `height`. */
static uint64_t find_place(const Placer *p, const Cluster *c, bool above,
                           uint64_t height) {
    uint64_t size = size_of(c);
    uint64_t at = above && height >= size ? (height - size) / 4 * 4 : 0;
    for (uint32_t v = 0; v < p->n;) {
        const Cluster *o = &p->cluster[v++];
        bool hits = o->used && o->placed && meet(o, c) &&
                    at < o->at + size_of(o) && o->at < at + size;
        if (!hits)
            continue;
        if (above && o->at < size) {
            above = false; /* no room below it: from below, then */
            at = 0;
        } else
            at = above ? (o->at - size) / 4 * 4
                       : (o->at + size_of(o) + 3) / 4 * 4;
        v = 0;
    }
    return at;
}

/* Layers that stream run at once: their volumes live all that time, and a word
 * is free behind each. */
static void join_streams(const LaneMachine *m, const LaneNet *net, Placer *p) {
    uint32_t n = 0;
    while (n < net->n && net->layer[n].streaming)
        n++;
    for (uint32_t v = 0; n && v <= n; v++) {
        Cluster *c = &p->cluster[top_of(p, v)];
        c->from = 0;
        c->last += v == top_of(p, v) ? m->bank : 0;
        c->to = c->to < n - 1 ? n - 1 : c->to;
    }
}

/* Most bytes that live in one bank at one layer. */
static uint64_t least_height(const LaneNet *net, const Placer *p) {
    uint64_t most = 0;
    for (uint32_t k = 0; k < net->n * 32; k++) {
        uint64_t sum = 0;
        uint32_t i = k / 32;
        for (uint32_t v = 0; v < p->n; v++)
            if (p->cluster[v].banks >> (k % 32) & 1 &&
                p->cluster[v].from <= i && p->cluster[v].to >= i)
                sum += (size_of(&p->cluster[v]) + 3) / 4 * 4;
        most = sum > most ? sum : most;
    }
    return most;
}

static uint32_t next_cluster(const Placer *p, bool by_size) {
    uint32_t best = p->n;
    for (uint32_t v = 0; v < p->n; v++) {
        const Cluster *c = &p->cluster[v];
        if (c->used && !c->placed &&
            (best == p->n ||
             (by_size && size_of(c) > size_of(&p->cluster[best]))))
            best = v;
    }
    return best;
}

static uint64_t place_all(Placer *p, bool by_size, uint64_t height) {
    uint64_t most = 0;
    for (uint32_t v = 0; v < p->n; v++)
        p->cluster[v].placed = false;
    for (uint32_t k = 0;; k++) {
        uint32_t v = next_cluster(p, by_size);
        if (v == p->n)
            return most;
        Cluster *c = &p->cluster[v];
        c->at = find_place(p, c, !by_size && k % 2 == 1, height);
        c->placed = true;
        most = c->at + size_of(c) > most ? c->at + size_of(c) : most;
    }
}

static void move(LaneNet *net, const Placer *p) {
    for (uint32_t i = 0; i < net->n; i++) {
        LaneLayer *l = &net->layer[i];
        const Cluster *in =
            &p->cluster[top_of(p, (uint32_t)(l->source[0] + 1))];
        const Cluster *out = &p->cluster[top_of(p, i + 1)];
        l->in_offset = (uint32_t)(l->in_offset - in->first + in->at);
        l->out_offset = (uint32_t)(l->out_offset - out->first + out->at);
    }
}

uint64_t lanes_height(const LaneMachine *m, const LaneNet *net) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < net->n; i++) {
        const LaneLayer *l = &net->layer[i];
        uint64_t in = l->in_offset + lanes_in_bytes(m, l);
        uint64_t out = l->out_offset + lanes_out_bytes(m, net, i);
        most = in > most ? in : most;
        most = out > most ? out : most;
    }
    return most;
}

uint64_t lanes_offsets(Arena *arena, const LaneMachine *m, LaneNet *net,
                       bool anew) {
    Placer p = {net->n + 1, ARENA_ARRAY(arena, uint32_t, net->n + 1),
                ARENA_ARRAY(arena, Cluster, net->n + 1)};
    for (uint32_t v = 0; v < p.n; v++)
        p.top[v] = v;
    gather(m, net, &p);
    join_streams(m, net, &p);
    uint64_t least = least_height(net, &p), ours = 0;
    uint64_t sized = place_all(&p, true, 0);
    if (place_all(&p, false, least) > sized)
        place_all(&p, true, 0);
    for (uint32_t v = 0; v < p.n; v++)
        if (p.cluster[v].used &&
            p.cluster[v].at + size_of(&p.cluster[v]) > ours)
            ours = p.cluster[v].at + size_of(&p.cluster[v]);
    if (anew || ours <= lanes_height(m, net))
        move(net, &p);
    return ours;
}

void lanes_place(Arena *arena, const LaneMachine *m, LaneNet *net) {
    lanes_offsets(arena, m, net, false);
}
