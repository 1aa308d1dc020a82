/* tensor_history.c - Plan -> what happens to each tensor.
 *
 * Input: a plan. Output: a Story for each tensor: when it lies whole in active
 * memory, which steps work on parts of it, what moves. Everything is read off
 * the plan's actions and placements.
 */
#include "plan/report/tensor_history.h"

#include "plan/cost.h"

typedef struct Reader {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    const HwSpec *spec;
    Story *story;       /* by tensor */
    Together *together; /* by step */
} Reader;

static bool is_active(const Reader *r, const Placement *p) {
    return r->spec->memory[p->memory].role == HW_ACTIVE;
}

/* ---- steps that take turns ---- */

/* Indices of the first and the last action of a step. */
typedef struct Turn {
    uint32_t first, last;
} Turn;

/* Slices of a layer may run among those of a group that is over, or not begun:
 * what was chosen is told before they do, of one image. */
static const Plan *as_chosen(const Reader *r) {
    return r->plan->serial ? r->plan->serial : r->plan;
}

static Turn *turns_of(const Reader *r, const Plan *plan) {
    uint32_t n = plan->schedule->n_steps;
    Turn *turn = ARENA_ARRAY(r->arena, Turn, n + 1);
    for (uint32_t s = 0; s < n; s++)
        turn[s] = (Turn){NONE, NONE};
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        Turn *t = &turn[a->at];
        if (is_move(a) || loads_constants(a))
            continue;
        t->first = t->first == NONE ? i : t->first;
        t->last = i;
    }
    return turn;
}

/* A step that begins before one in front of it is through takes turns with it.
 */
static void read_turns(Reader *r) {
    const Plan *plan = as_chosen(r);
    uint32_t n = plan->schedule->n_steps, from = 0, last = 0;
    uint32_t all = r->plan->schedule->n_steps;
    Turn *turn = turns_of(r, plan);
    r->together = ARENA_ARRAY(r->arena, Together, all + 1);
    for (uint32_t s = 0; s < n; s++) {
        bool idle = turn[s].first == NONE;
        if (!idle && (s == 0 || turn[s].first > last))
            from = s;
        if (!idle && (from == s || turn[s].last > last))
            last = turn[s].last;
        r->together[s].first = idle ? s : from;
        r->together[idle ? s : from].end = s + 1;
    }
    for (uint32_t s = 0; s < n; s++)
        r->together[s].end = r->together[r->together[s].first].end;
    for (uint32_t s = n; s < all; s++) /* the same of each image */
        r->together[s] = (Together){.first = r->together[s - n].first + n,
                                    .end = r->together[s - n].end + n};
}

/* ---- where it lies ---- */

static void read_abode(Reader *r, Story *s, const Placement *p) {
    Abode *last = s->abode.n ? &s->abode.at[s->abode.n - 1] : NULL;
    s->bytes = p->bytes > s->bytes ? p->bytes : s->bytes;
    if (!last || p->first > last->end)
        vec_push(r->arena, &s->abode,
                 ((Abode){.first = p->first,
                          .end = p->end,
                          .kept = NONE,
                          .loaded = {NONE, 0},
                          .placement = (uint32_t)(p - r->plan->placement)}));
    else if (p->end > last->end)
        last->end = p->end;
}

/* Its place is that of all rows, though it may be of some that are named. */
static bool in_whole(const Reader *r, const Placement *p) {
    return !p->lines.band && p->whole.h == plan_volume(r->g, p->tensor).h;
}

static void read_placement(Reader *r, const Placement *p) {
    Story *s = &r->story[p->tensor.i];
    Volume v = plan_volume(r->g, p->tensor);
    s->placed = true;
    if (!is_active(r, p) || p->n_c < v.c)
        return;
    uint32_t *most = in_whole(r, p) ? &s->slice : &s->rows;
    if (p->lines.band)
        s->line = (uint64_t)p->whole.h * p->whole.w;
    else if (in_whole(r, p))
        read_abode(r, s, p);
    else if (p->ring && p->whole.h > s->ring)
        s->ring = p->whole.h;
    if (p->rows < v.h && p->rows > *most)
        *most = p->rows;
}

static void read_part(Reader *r, const Placement *p, uint32_t step) {
    Story *s = &r->story[p->tensor.i];
    Together t = r->together[step];
    t.rolls = p->ring || p->lines.band;
    t.slabs = p->n_c == p->whole.c && p->n_c < plan_volume(r->g, p->tensor).c;
    if (!is_active(r, p) || (in_whole(r, p) && !t.slabs))
        return;
    if (t.slabs && p->n_c > s->channels)
        s->channels = p->n_c;
    for (uint32_t i = 0; i < s->part.n; i++)
        if (s->part.at[i].first == t.first)
            return;
    vec_push(r->arena, &s->part, t);
}

/* ---- what moves ---- */

static void add_move(Reader *r, Moved **by_memory, uint32_t memory,
                     const Placement *out, const Action *a) {
    Volume v = plan_volume(r->g, out->tensor);
    if (!*by_memory)
        *by_memory = ARENA_ARRAY(r->arena, Moved, r->spec->n_memories);
    Moved *m = &(*by_memory)[memory];
    m->elements += (uint64_t)out->n_c * a->rows * a->cols;
    m->cut_c |= out->n_c < v.c;
    m->cut_h |= a->rows < v.h;
    m->cut_w |= a->cols < v.w;
}

/* What does not come back was kept, of `channels`. */
static void read_kept(Story *s, const Placement *out, uint32_t channels) {
    uint32_t end = out->c + out->n_c;
    for (uint32_t i = 0; i < s->abode.n; i++) {
        Abode *a = &s->abode.at[i];
        if (a->first > out->first || out->first >= a->end)
            continue;
        a->loaded[0] = out->c < a->loaded[0] ? out->c : a->loaded[0];
        a->loaded[1] = end > a->loaded[1] ? end : a->loaded[1];
        a->kept_last = a->loaded[0] == 0;
        a->kept = a->kept_last ? channels - a->loaded[1] : a->loaded[0];
    }
}

static void read_move(Reader *r, const Action *a) {
    const Placement *in = &r->plan->placement[a->in[0]];
    const Placement *out = &r->plan->placement[a->out];
    Story *s = &r->story[out->tensor.i];
    if (a->kind == ACTION_STORE) {
        add_move(r, &s->stored, out->memory, out, a);
        return;
    }
    add_move(r, &s->loaded, in->memory, out, a);
    read_kept(s, out, plan_volume(r->g, out->tensor).c);
}

static void read_tiles(Reader *r, const Action *a, const Placement *in) {
    Story *s = &r->story[in->tensor.i];
    const Node *node = graph_node(r->g, a->node);
    uint64_t input;
    if (a->style < 0 || is_active(r, in))
        return;
    s->tiled = true;
    if (a->nest.c)
        input = action_nest_reads(r->plan, a).input;
    else
        input = tiles_read(r->g, node, a->tile_w, a->tile_h) *
                plan_volume(r->g, in->tensor).c * r->spec->element;
    s->fetched += input;
}

static void read_run(Reader *r, const Action *a) {
    const Placement *out = &r->plan->placement[a->out];
    Story *s = &r->story[out->tensor.i];
    s->made = s->made == NONE ? a->at : s->made;
    s->again += a->again;
    s->tiled |= a->style >= 0 && !is_active(r, out);
    s->tile = a->style >= 0 ? a : s->tile;
    read_part(r, out, a->at);
    for (uint32_t i = 0; i < a->n_in; i++) {
        const Placement *in = &r->plan->placement[a->in[i]];
        Story *read = &r->story[in->tensor.i];
        read->read = read->read == NONE ? a->at : read->read;
        read->used = a->at;
        read_part(r, in, a->at);
        read_tiles(r, a, in);
        if (is_active(r, out) && in->memory == out->memory &&
            in->offset == out->offset && in->buffer == out->buffer && !in->ring)
            s->over = in->tensor;
    }
}

static void read_concat(Reader *r, const Action *a) {
    for (uint32_t i = 0, c = 0; i < a->n_in; i++) {
        TensorId in = r->plan->placement[a->in[i]].tensor;
        r->story[in.i].inside = r->plan->placement[a->out].tensor;
        r->story[in.i].channel = c;
        c += plan_volume(r->g, in).c;
    }
}

static void read_host(Reader *r, const Action *a) {
    r->story[r->plan->placement[a->out].tensor.i].by_host = true;
    for (uint32_t i = 0; i < a->n_in; i++) {
        const Placement *in = &r->plan->placement[a->in[i]];
        Story *s = &r->story[in->tensor.i];
        if (s->host.i == NONE) {
            s->host = a->node;
            s->host_memory = in->memory;
        }
    }
}

static void read_action(Reader *r, const Action *a) {
    if (is_move(a))
        read_move(r, a);
    else if (a->kind == ACTION_RUN)
        read_run(r, a);
    else if (a->kind == ACTION_CONCAT)
        read_concat(r, a);
    else if (a->kind == ACTION_HOST)
        read_host(r, a);
}

Story *plan_stories(Arena *arena, const Plan *plan) {
    const Graph *g = plan->schedule->graph;
    Reader r = {
        .arena = arena, .plan = plan, .g = g, .spec = plan->schedule->spec};
    r.story = ARENA_ARRAY(arena, Story, g->tensor.n + 1);
    for (uint32_t i = 0; i < g->tensor.n; i++) {
        r.story[i].inside = r.story[i].over = NO_TENSOR;
        r.story[i].host = NO_NODE;
        r.story[i].made = r.story[i].read = r.story[i].used = NONE;
    }
    read_turns(&r);
    for (uint32_t i = 0; i < plan->n_placements; i++)
        read_placement(&r, &plan->placement[i]);
    for (uint32_t i = 0; i < plan->n_actions; i++)
        read_action(&r, &plan->action[i]);
    return r.story;
}
