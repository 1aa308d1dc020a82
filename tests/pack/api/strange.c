/* strange.c - the library under random arguments, most of them strange: hidden
 * overflows, lives that end before they begin, alignments that are no powers
 * of two, absent arrays, relations in circles, planners that do not exist,
 * deadlines, callbacks that cancel, two threads. What fits is judged here.
 *
 *     strange FIRST CASES    prints nothing where all is well
 */
#include <amphora/planner.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 24, GAPS = 3, STREAMS = 3 };

typedef struct Case {
    uint64_t state, number;
    amphora_planner_buffer buffer[MOST];
    amphora_planner_span gap[MOST][GAPS];
    amphora_planner_relation relation[MOST];
    amphora_planner_pair pair[MOST];
    int64_t clock[MOST * 2 * STREAMS];
    amphora_planner_problem problem;
    amphora_planner_options options;
    char name[8];
    uint32_t calls, cancel_at;
    uint64_t offset[MOST], last;
    int wrong;
} Case;

static uint64_t draw(Case *c, uint64_t below) {
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    uint64_t bits = c->state ^ c->state >> 29;
    return (bits * 0x9e3779b97f4a7c15u >> 16) % below;
}

static int once_in(Case *c, uint64_t n) {
    return draw(c, n) == 0;
}

/* Mostly small; else at an edge of what the type, or the library, takes. */
static uint64_t number(Case *c, uint64_t below, uint64_t strange) {
    static const uint64_t edge[] = {0,
                                    1,
                                    UINT32_MAX,
                                    (uint64_t)UINT32_MAX + 1,
                                    INT64_MAX,
                                    UINT64_MAX,
                                    UINT64_MAX - 7,
                                    INT64_MAX / 8,
                                    INT64_MAX / 8 + 1,
                                    INT64_MAX / 16,
                                    (uint64_t)1 << 59,
                                    (uint64_t)1 << 63};
    if (once_in(c, strange))
        return edge[draw(c, sizeof edge / sizeof *edge)] - draw(c, 2);
    return draw(c, below);
}

/* ---- arguments ---- */

static void draw_buffer(Case *c, uint32_t i, uint64_t strange) {
    amphora_planner_buffer *b = &c->buffer[i];
    b->first = (uint32_t)number(c, 20, strange);
    b->end = b->first + 1 + (uint32_t)number(c, 9, strange);
    b->size = number(c, 40, strange);
    b->alignment = once_in(c, 3) ? number(c, 13, strange) : 0;
    b->offset = number(c, 100, strange);
    b->flags = once_in(c, 8) ? (uint32_t)number(c, 4, strange) : 0;
    b->n_gaps = once_in(c, 4) ? (uint32_t)draw(c, GAPS + 1) : 0;
    b->gaps = once_in(c, strange) ? NULL : c->gap[i];
    uint32_t at = b->first;
    for (int k = 0; k < GAPS; k++) {
        c->gap[i][k].first = at + (uint32_t)number(c, 3, strange);
        c->gap[i][k].end = at = c->gap[i][k].first + 1;
        if (b->n_gaps && b->end < at && !once_in(c, strange))
            b->end = at + 1;
    }
}

static void draw_others(Case *c, uint64_t strange) {
    amphora_planner_problem *p = &c->problem;
    uint64_t n = p->n_buffers > 1 ? p->n_buffers : 2;
    for (uint32_t i = 0; i < MOST; i++) {
        uint32_t a = (uint32_t)number(c, n, strange), b = a;
        if (!once_in(c, strange))
            b = (uint32_t)((a + 1 + draw(c, n - 1)) % n);
        c->relation[i] =
            (amphora_planner_relation){(uint32_t)number(c, 4, strange), a, b,
                                       (int64_t)number(c, 9, strange)};
        c->pair[i] = (amphora_planner_pair){a, b};
    }
    for (uint32_t i = 0; i < MOST * 2 * STREAMS; i++)
        c->clock[i] = (int64_t)(number(c, 6, strange) + i / STREAMS % 2 * 5);
    p->relations = once_in(c, strange) ? NULL : c->relation;
    p->n_relations = once_in(c, 3) ? (uint32_t)draw(c, 5) : 0;
    p->conflicts = once_in(c, strange) ? NULL : c->pair;
    p->n_conflicts = once_in(c, 5) ? draw(c, MOST) : 0;
    p->clocks = once_in(c, strange) ? NULL : c->clock;
    p->n_streams = once_in(c, 6) ? (uint32_t)draw(c, STREAMS + 1) : 0;
}

static int heard(void *context, const amphora_planner_progress *told) {
    Case *c = context;
    if (told->better && (!told->offsets || told->height > c->last))
        c->wrong = 1;
    c->last = told->better ? told->height : c->last;
    return ++c->calls > c->cancel_at;
}

static void draw_options(Case *c, uint64_t strange) {
    amphora_planner_options *o = &c->options;
    uint32_t planners = 0;
    while (amphora_planner_name(planners))
        planners++;
    o->struct_size = once_in(c, strange) ? draw(c, 200) : sizeof *o;
    o->planner = once_in(c, 2)
                     ? amphora_planner_name((uint32_t)draw(c, planners))
                     : NULL;
    for (size_t k = 0; k + 1 < sizeof c->name; k++)
        c->name[k] = (char)draw(c, 256);
    if (once_in(c, strange))
        o->planner = c->name;
    o->seed = number(c, 5, 3);
    o->steps = 1 + number(c, 3000, 1000);
    o->steps = o->steps > 100000 ? 100000 : o->steps;
    o->seconds = once_in(c, 6) ? (double)draw(c, 30) / 1e3 : 0;
    if (once_in(c, strange))
        o->seconds = once_in(c, 2) ? -1 : HUGE_VAL * (once_in(c, 2) ? 0 : 1);
    o->lowest = once_in(c, 2);
    o->progress = once_in(c, 2) ? heard : NULL;
    o->context = c;
    c->cancel_at = once_in(c, 3) ? (uint32_t)draw(c, 4) : UINT32_MAX;
}

/* ---- what holds of an answer ---- */

static int alive(const amphora_planner_buffer *b, uint32_t step) {
    for (uint32_t k = 0; k < b->n_gaps; k++)
        if (b->gaps[k].first <= step && step < b->gaps[k].end)
            return 0;
    return b->size && b->first <= step && step < b->end;
}

static int related(const Case *c, uint32_t a, uint32_t b) {
    for (uint32_t k = 0; k < c->problem.n_relations; k++) {
        const amphora_planner_relation *r = &c->relation[k];
        if ((r->a == a && r->b == b) || (r->a == b && r->b == a) ||
            r->kind == AMPHORA_PLANNER_INSIDE)
            return 1;
    }
    return 0;
}

/* Of these the problem's alignment is not asked. */
static int lies_inside(const Case *c, uint32_t i) {
    for (uint32_t k = 0; k < c->problem.n_relations; k++)
        if (c->relation[k].kind == AMPHORA_PLANNER_INSIDE &&
            c->relation[k].a == i)
            return 1;
    return 0;
}

/* They are both alive where one of them, or one of its gaps, begins or ends. */
static int meet(const Case *c, uint32_t i, uint32_t j) {
    const amphora_planner_buffer *a = &c->buffer[i], *b = &c->buffer[j];
    int both = alive(b, a->first) && alive(a, a->first);
    both |= alive(a, b->first) && alive(b, b->first);
    for (uint32_t k = 0; k < a->n_gaps; k++)
        both |= alive(b, a->gaps[k].end) && alive(a, a->gaps[k].end);
    for (uint32_t k = 0; k < b->n_gaps; k++)
        both |= alive(a, b->gaps[k].end) && alive(b, b->gaps[k].end);
    return both;
}

static uint64_t common_multiple(uint64_t a, uint64_t b) {
    uint64_t high = a, low = b;
    while (low) {
        uint64_t rest = high % low;
        high = low;
        low = rest;
    }
    return b / high > UINT64_MAX / a ? UINT64_MAX : b / high * a;
}

/* What is pushed down ends no higher; UINT64_MAX: too large to say. */
static uint64_t room(const Case *c) {
    const amphora_planner_problem *p = &c->problem;
    uint64_t align = p->alignment ? p->alignment : 1, sum = 0, high = 0;
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        const amphora_planner_buffer *b = &c->buffer[i];
        align = common_multiple(align, b->alignment ? b->alignment : 1);
        sum += b->size;
        if (b->flags && b->offset > high)
            high = b->offset;
    }
    if (align > INT64_MAX / 4 / (MOST + 1))
        return UINT64_MAX;
    return sum + high + align * (p->n_buffers + 1);
}

static const char *judge(const Case *c, const amphora_planner_result *r) {
    const amphora_planner_problem *p = &c->problem;
    if (!p->capacity && !r->stopped &&
        (r->height > room(c) || r->height >> 40 == (1 << 21) - 1))
        return "placed at the end of nothing";
    if (p->capacity && r->height > p->capacity)
        return "higher than the capacity";
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        const amphora_planner_buffer *b = &c->buffer[i];
        uint64_t at = c->offset[i];
        if (!b->size)
            continue;
        if (at + b->size > r->height)
            return "above the height";
        if ((b->alignment && at % b->alignment) ||
            (p->alignment && at % p->alignment && !lies_inside(c, i)))
            return "not aligned";
        if (b->flags & AMPHORA_PLANNER_PINNED && at != b->offset)
            return "not at its pin";
        for (uint32_t j = 0; j < i; j++)
            if (meet(c, i, j) && !related(c, i, j) && !p->n_streams &&
                at < c->offset[j] + c->buffer[j].size &&
                c->offset[j] < at + b->size)
                return "two collide";
    }
    return NULL;
}

static const char *run(Case *c, amphora_planner_result *r) {
    c->last = UINT64_MAX;
    memset(c->offset, 0xff, sizeof c->offset);
    memset(r, 0xee, sizeof *r);
    int status =
        (int)amphora_planner_place(&c->problem, &c->options, c->offset, r);
    if (status != (int)r->status || !memchr(r->message, 0, sizeof r->message) ||
        !r->message[0])
        return "no message";
    if (status == AMPHORA_PLANNER_BUG || status == AMPHORA_PLANNER_NO_MEMORY)
        return r->message;
    if (status == AMPHORA_PLANNER_INFEASIBLE && !c->problem.capacity &&
        !c->problem.n_relations && room(c) < INT64_MAX / 4)
        for (uint32_t i = 0;; i++) {
            if (i == c->problem.n_buffers)
                return "infeasible without an end";
            if (c->buffer[i].flags & AMPHORA_PLANNER_PINNED)
                break;
        }
    if (c->wrong)
        return "progress";
    return status == AMPHORA_PLANNER_FITS ? judge(c, r) : NULL;
}

static void *run_case(void *at) {
    Case *c = at;
    uint64_t strange = c->number % 3 ? 100000 : 40;
    amphora_planner_problem *p = &c->problem;
    p->struct_size = once_in(c, strange) ? draw(c, 200) : sizeof *p;
    p->buffers = once_in(c, strange) ? NULL : c->buffer;
    p->n_buffers = (uint32_t)draw(c, MOST);
    p->capacity = once_in(c, 2) ? number(c, 200, strange) : 0;
    p->alignment = once_in(c, 5) ? number(c, 9, strange) : 0;
    for (uint32_t i = 0; i < p->n_buffers; i++)
        draw_buffer(c, i, strange);
    draw_others(c, strange);
    draw_options(c, strange);
    amphora_planner_result result;
    const char *what = run(c, &result);
    if (what)
        printf("case %llu: %s (planner %s)\n", (unsigned long long)c->number,
               what, c->options.planner ? c->options.planner : "portfolio");
    return NULL;
}

int main(int argc, char **argv) {
    /* 11857: only multiples of nearly 2^59 will do */
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 11600;
    uint64_t cases = argc > 2 ? strtoull(argv[2], NULL, 10) : 400;
    static Case one, two;
    for (uint64_t k = first; k < first + cases; k += 2) {
        pthread_t other;
        memset(&one, 0, sizeof one);
        memset(&two, 0, sizeof two);
        one.number = one.state = k;
        two.number = two.state = k + 1;
        if (pthread_create(&other, NULL, run_case, &two))
            return 1;
        run_case(&one);
        pthread_join(other, NULL);
    }
    return 0;
}
