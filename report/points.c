/* points.c - which points of a sweep are the best; see points.h.
 *
 * Input: points in any order. Output: marks by point, and CSV. Invariant: the
 * same points get the same marks in whatever order they come.
 */
#include "report/points.h"

#include "base/plain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const point_status_name[] = {"fits", "does not fit", "wrong"};
const char *const point_axis_name[AXIS_COUNT] = {"AM bytes", "DDR bytes"};

uint64_t point_axis(const Point *point, PointAxis axis) {
    return axis == AXIS_AM ? point->am_peak : point->ddr;
}

/* ---- cost ---- */

const double *point_cost_of(const Point *point, const char *name) {
    for (uint32_t i = 0; i < point->n_costs; i++)
        if (!strcmp(point->cost_name[i], name))
            return &point->cost[i];
    return NULL;
}

bool points_by_time(uint32_t n, const Point *point) {
    const Point *first = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (point[i].status != POINT_FITS || !point[i].cycles)
            continue;
        first = first ? first : &point[i];
        double other =
            first->ms / (double)first->cycles * (double)point[i].cycles;
        if (fabs(other - point[i].ms) > 1e-6 * other)
            return true;
    }
    return false;
}

uint64_t point_cost(const Point *point, bool by_time) {
    return by_time ? (uint64_t)(point->ms * 1e6 + 0.5) : point->cycles;
}

/* ---- fronts ---- */

typedef struct Ranked {
    const Point *point;
    uint64_t cost, along;
    uint32_t at;
} Ranked;

static int by_cost(const void *a, const void *b) {
    const Ranked *x = a, *y = b;
    int network = strcmp(x->point->network, y->point->network);
    if (network)
        return network;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    if (x->along != y->along)
        return x->along < y->along ? -1 : 1;
    return (x->point->am_capacity > y->point->am_capacity) -
           (x->point->am_capacity < y->point->am_capacity);
}

bool *points_front(Arena *arena, uint32_t n, const Point *point,
                   PointAxis axis) {
    bool *front = ARENA_ARRAY(arena, bool, n);
    Ranked *rank = ARENA_ARRAY(arena, Ranked, n + 1);
    uint32_t m = 0;
    bool by_time = points_by_time(n, point);
    for (uint32_t i = 0; i < n; i++)
        if (point[i].status == POINT_FITS)
            rank[m++] = (Ranked){&point[i], point_cost(&point[i], by_time),
                                 point_axis(&point[i], axis), i};
    qsort(rank, m, sizeof *rank, by_cost);
    const Ranked *least = NULL; /* the last one on the front */
    for (uint32_t i = 0; i < m; i++) {
        const Ranked *r = &rank[i];
        bool other =
            !least || strcmp(least->point->network, r->point->network) != 0;
        bool same = !other && least->along == r->along &&
                    least->cost == r->cost &&
                    least->point->am_capacity == r->point->am_capacity;
        front[r->at] = other || same || r->along < least->along;
        if (front[r->at])
            least = r;
    }
    return front;
}

/* ---- enough memory ---- */

/* A point, and the setting that may differ within its group. */
typedef struct Member {
    const Point *point;
    uint32_t setting, at;
} Member;

/* 0: the same but for the one setting. */
static int group_order(const Member *x, const Member *y) {
    const Point *a = x->point, *b = y->point;
    int order = strcmp(a->network, b->network);
    if (!order)
        order = strcmp(a->target, b->target);
    for (uint32_t i = 0; !order && i < a->n_settings; i++)
        if (i != x->setting)
            order = strcmp(a->value[i], b->value[i]);
    return order;
}

static int by_group(const void *a, const void *b) {
    const Member *x = a, *y = b;
    int order = group_order(x, y);
    if (order)
        return order;
    if (x->point->am_capacity != y->point->am_capacity)
        return x->point->am_capacity < y->point->am_capacity ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Within one in a hundred. */
static bool as_good(const Point *a, const Point *b) {
    return a->cycles <= b->cycles + b->cycles / 100 &&
           a->ddr <= b->ddr + b->ddr / 100;
}

/* Members by rising capacity: the first that all behind it do not beat. */
static void mark_enough(const Member *member, uint32_t n, bool *enough) {
    bool grows =
        n && member[0].point->am_capacity < member[n - 1].point->am_capacity;
    for (uint32_t i = 0; grows && i < n; i++) {
        bool good = true;
        for (uint32_t k = i + 1; k < n && good; k++)
            good = as_good(member[i].point, member[k].point);
        if (!good)
            continue;
        enough[member[i].at] = true;
        return;
    }
}

bool *points_enough(Arena *arena, uint32_t n, const Point *point) {
    bool *enough = ARENA_ARRAY(arena, bool, n);
    Member *member = ARENA_ARRAY(arena, Member, n + 1);
    for (uint32_t s = 0; n && s < point[0].n_settings; s++) {
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i++)
            if (point[i].status == POINT_FITS &&
                point[i].n_settings == point[0].n_settings)
                member[m++] = (Member){&point[i], s, i};
        qsort(member, m, sizeof *member, by_group);
        for (uint32_t i = 0, end; i < m; i = end) {
            for (end = i + 1; end < m && !group_order(&member[i], &member[end]);
                 end++)
                ;
            mark_enough(&member[i], end - i, enough);
        }
    }
    return enough;
}

/* ---- CSV ---- */

static void quoted(Text *text, const char *value) {
    text_add(text, "\"");
    for (size_t n; *value; value += n) {
        n = plain_length(value);
        if (*value == '"')
            text_add(text, "\"\"");
        else if (n)
            text_addf(text, "%.*s", (int)n, value);
        else
            text_addf(text, "\\x%02x", (unsigned char)*value);
        n += n == 0;
    }
    text_add(text, "\"");
}

/* Quoted where it has to be. */
static void cell(Text *text, const char *value) {
    const char *at = value;
    while (*at && !strchr("\", ", *at) && plain_length(at))
        at += plain_length(at);
    if (*at)
        quoted(text, value);
    else
        text_add(text, value);
}

/* Beside `of`, which has the most costs. */
static void csv_row(Text *text, const Point *p, const Point *of) {
    text_addf(text, "%u,", p->index);
    quoted(text, p->network);
    text_add(text, ",");
    cell(text, p->target);
    for (uint32_t k = 0; k < p->n_settings; k++) {
        text_add(text, ",");
        cell(text, p->value[k]);
    }
    text_addf(text, ",%s,", point_status_name[p->status]);
    for (uint32_t k = 0; of && k < of->n_costs; k++) {
        const double *cost = point_cost_of(p, of->cost_name[k]);
        if (cost && p->status == POINT_FITS)
            text_addf(text, "%.10g", *cost);
        text_add(text, ",");
    }
    if (p->status == POINT_FITS)
        text_addf(text,
                  "%" PRIu64 ",%.6f,%" PRIu64 ",%" PRIu64 ",%" PRIu64
                  ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
                  p->cycles, p->ms, p->am_capacity, p->am_peak, p->ddr,
                  p->compulsory, p->weights, p->instructions);
    else
        text_add(text, ",,,,,,,,");
    quoted(text, p->reason);
    text_add(text, "\n");
}

const char *points_csv(Arena *arena, uint32_t n, const Point *point) {
    Text text = text_new(arena);
    text_add(&text, "point,network,target");
    for (uint32_t i = 0; n && i < point[0].n_settings; i++) {
        text_add(&text, ",");
        cell(&text, point[0].path[i]);
    }
    text_add(&text, ",status,");
    const Point *most = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (point[i].n_costs && (!most || point[i].n_costs > most->n_costs))
            most = &point[i];
    for (uint32_t i = 0; most && i < most->n_costs; i++) {
        cell(&text, most->cost_name[i]);
        text_add(&text, ",");
    }
    text_add(&text, "cycles,ms,am_capacity_bytes,am_peak_bytes,"
                    "ddr_bytes,ddr_compulsory_bytes,weight_bytes,instructions,"
                    "reason\n");
    for (uint32_t i = 0; i < n; i++)
        csv_row(&text, &point[i], most);
    return text_str(&text);
}
