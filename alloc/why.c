/* why.c - one line a volume: where it is, and why there.
 *
 * Input: a plan. Output: text. Everything said is read off the plan's actions
 * and placements.
 */
#include "alloc/plan.h"

#include "base/text.h"

/* How much of a tensor moves: lines, each a row of one channel. */
typedef struct Moved {
    uint64_t lines;
    bool cut_c, cut_h; /* some move has not all channels; not all rows */
    uint32_t behind;   /* channel up to which the last move came */
} Moved;

/* What the actions do with one tensor. */
typedef struct Story {
    bool active;          /* it is in active memory, whole */
    uint32_t first, last; /* steps of its places there */
    uint32_t made, used;  /* steps that make it first, read it last; NONE */
    TensorId over;        /* whose place it takes */
    uint32_t out, back;   /* it is away from step `out` to before `back`, */
    uint32_t kept;        /* but for so many channels */
    bool listed;
    uint64_t bytes; /* of the largest */
    uint32_t parts; /* most rows of a part of it in active memory */
    uint32_t ring;  /* rows of the ring that it passes through */
    Moved loaded, stored;
    uint64_t again;     /* rows that are computed twice */
    bool tiled;         /* read or written by tiles of the machine */
    const Action *tile; /* that makes it so */
    TensorId inside;    /* lies in the volume of this concat */
    uint32_t channel;
} Story;

typedef struct Why {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    const HwSpec *spec;
    Story *story;   /* by tensor */
    uint64_t *live; /* by step */
    uint64_t total; /* of active memory */
} Why;

static bool is_active(const Why *y, const Placement *p) {
    return y->spec->memory[p->memory].role == HW_ACTIVE;
}

static void read_placement(Why *y, const Placement *p) {
    Story *s = &y->story[p->tensor.i];
    if (!is_active(y, p) || p->n_c < plan_volume(y->g, p->tensor).c)
        return;
    if (p->ring && p->whole.h < plan_volume(y->g, p->tensor).h)
        s->ring = p->whole.h;
    if (p->rows < plan_volume(y->g, p->tensor).h) {
        s->parts = p->rows > s->parts ? p->rows : s->parts;
        return;
    }
    if (s->active && p->first > s->last + 1) {
        s->out = s->last + 1;
        s->back = p->first;
    }
    s->first = !s->active || p->first < s->first ? p->first : s->first;
    s->last = !s->active || p->end > s->last + 1 ? p->end - 1 : s->last;
    s->bytes = p->bytes > s->bytes ? p->bytes : s->bytes;
    s->active = true;
}

static void read_move(Why *y, const Action *a) {
    const Placement *out = &y->plan->placement[a->out];
    Story *s = &y->story[out->tensor.i];
    Moved *moved = a->kind == ACTION_LOAD ? &s->loaded : &s->stored;
    Volume v = plan_volume(y->g, out->tensor);
    moved->lines += (uint64_t)out->n_c * a->rows;
    moved->cut_c |= out->n_c < v.c;
    moved->cut_h |= a->rows < v.h;
    bool goes_on = out->c == moved->behind; /* a move in parts */
    moved->behind = out->c + out->n_c < v.c ? out->c + out->n_c : 0;
    if (!goes_on && out->c && (!s->kept || out->c < s->kept))
        s->kept = out->c;
}

static void read_action(Why *y, const Action *a) {
    const Placement *out = &y->plan->placement[a->out];
    Story *s = &y->story[out->tensor.i];
    if (a->kind == ACTION_LOAD || a->kind == ACTION_STORE)
        read_move(y, a);
    if (a->kind != ACTION_RUN)
        return;
    s->made = s->made == NONE ? a->at : s->made;
    s->again += a->again;
    s->tiled |= a->style >= 0 && !is_active(y, out);
    s->tile = a->style >= 0 ? a : s->tile;
    for (uint32_t i = 0; i < a->n_in; i++) {
        const Placement *in = &y->plan->placement[a->in[i]];
        y->story[in->tensor.i].tiled |= a->style >= 0 && !is_active(y, in);
        y->story[in->tensor.i].used = a->at;
        if (is_active(y, out) && in->memory == out->memory &&
            in->offset == out->offset && in->buffer == out->buffer && !in->ring)
            s->over = in->tensor;
    }
}

static void read_concat(Why *y, const Action *a) {
    for (uint32_t i = 0, c = 0; i < a->n_in; i++) {
        TensorId in = y->plan->placement[a->in[i]].tensor;
        y->story[in.i].inside = y->plan->placement[a->out].tensor;
        y->story[in.i].channel = c;
        c += plan_volume(y->g, in).c;
    }
}

static void read_plan(Why *y) {
    const Plan *plan = y->plan;
    const PlanStepUse *use;
    uint32_t n = plan_step_use(y->arena, plan, &use);
    y->live = ARENA_ARRAY(y->arena, uint64_t, plan->schedule->n_steps + 1);
    for (uint32_t i = 0; i < n; i++)
        y->live[use[i].step] = use[i].bytes;
    for (uint32_t i = 0; i < y->g->tensor.n; i++) {
        y->story[i].inside = y->story[i].over = NO_TENSOR;
        y->story[i].made = y->story[i].used = NONE;
    }
    for (uint32_t i = 0; i < plan->n_placements; i++)
        read_placement(y, &plan->placement[i]);
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        read_action(y, &plan->action[i]);
        if (plan->action[i].kind == ACTION_CONCAT)
            read_concat(y, &plan->action[i]);
    }
    for (uint32_t m = 0; m < y->spec->n_active; m++)
        y->total += y->spec->memory[m].size;
}

/* ---- sentences ---- */

static const char *num(const Why *y, uint64_t v) {
    return with_commas(y->arena, v);
}

static const char *name_of(const Why *y, TensorId t) {
    return graph_tensor(y->g, t)->name;
}

/* Steps [first, last], from 0. */
static void say_steps(Text *text, uint32_t first, uint32_t last) {
    if (first == last)
        text_addf(text, "step %u", first + 1);
    else
        text_addf(text, "steps %u to %u", first + 1, last + 1);
}

/* The fullest step of [first, end). */
static uint32_t fullest(const Why *y, uint32_t first, uint32_t end) {
    uint32_t at = first;
    for (uint32_t s = first; s < end; s++)
        if (y->live[s] > y->live[at])
            at = s;
    return at;
}

static uint64_t whole_bytes(const Why *y, TensorId t) {
    Volume v = plan_volume(y->g, t);
    v.repl = y->plan->repl[t.i];
    return layout_bytes(y->spec->memory[0].layout, &v);
}

/* Its own steps, if what makes and reads it is known; else those of its place,
 * which it may share with others. */
static void say_stay(const Why *y, Text *text, const Story *s) {
    uint32_t first = s->made != NONE && s->made > s->first ? s->made : s->first;
    uint32_t last = s->used != NONE && s->used < s->last ? s->used : s->last;
    text_add(text, "in active memory, ");
    say_steps(text, first, last < first ? first : last);
    if (s->over.i != NONE && s->inside.i == NONE)
        text_addf(text, ", in the place of %s", name_of(y, s->over));
}

static void say_active(const Why *y, Text *text, const Story *s) {
    say_stay(y, text, s);
    if (s->out == s->back)
        return;
    uint32_t at = fullest(y, s->out, s->back);
    if (s->kept == 1)
        text_add(text, ", but only its first channel in ");
    else if (s->kept)
        text_addf(text, ", but only its first %u channels in ", s->kept);
    else
        text_add(text, ", but not in ");
    say_steps(text, s->out, s->back - 1);
    if (s->bytes <= y->total - y->live[at])
        text_add(text, ", in the plan that moves least in all");
    else
        text_addf(
            text,
            ": in step %u, %s of %s bytes are in use, and whole it takes %s",
            at + 1, num(y, y->live[at]), num(y, y->total), num(y, s->bytes));
}

static void say_parts(const Why *y, Text *text, TensorId t, const Story *s) {
    uint32_t h = plan_volume(y->g, t).h;
    if (s->ring)
        text_addf(text, "never whole: in a ring of %u of its %u rows", s->ring,
                  h);
    else
        text_addf(text, "never whole: at most %u of its %u rows at a time",
                  s->parts, h);
    if (s->again)
        text_addf(text, ", %s rows computed again", num(y, s->again));
    text_addf(text, "; whole it takes %s of %s bytes",
              num(y, whole_bytes(y, t)), num(y, y->total));
}

/* n of a tensor's `all` rows or channels. */
static void say_count(const Why *y, Text *text, uint64_t n, uint64_t all,
                      const char *what, const char *done) {
    if (n == all)
        text_addf(text, "; %s", done);
    else if (n == 2 * all)
        text_addf(text, "; %s twice", done);
    else if (n && n % all == 0)
        text_addf(text, "; %s %s times", done, num(y, n / all));
    else if (n)
        text_addf(text, "; %s %s %s, of %s%s", num(y, n), what, done,
                  num(y, all), n > all ? ": some again" : "");
}

static void say_moved(const Why *y, Text *text, const Moved *m, Volume v,
                      const char *done) {
    if (m->cut_c && !m->cut_h)
        say_count(y, text, m->lines / v.h, v.c, "channels", done);
    else if (m->lines % v.c == 0)
        say_count(y, text, m->lines / v.c, v.h, "rows", done);
    else
        say_count(y, text, m->lines, (uint64_t)v.c * v.h, "rows of a channel",
                  done);
}

static void say_moves(Text *text, const Why *y, TensorId t, const Story *s) {
    Volume v = plan_volume(y->g, t);
    say_moved(y, text, &s->stored, v, "stored");
    say_moved(y, text, &s->loaded, v, "loaded");
    if (!s->stored.lines && !s->loaded.lines && !s->tiled)
        text_add(text, "; does not move");
}

static void say_tile(Text *text, const Action *a) {
    if (!a->nest.c) {
        text_addf(text, "; made by tiles of %u x %u pixels", a->tile_h,
                  a->tile_w);
        return;
    }
    text_addf(text,
              "; made by tiles of %u channels x %u x %u pixels, from %u input "
              "channels at a time; a tile of %s",
              a->nest.c, a->tile_h, a->tile_w, a->nest.in_c,
              a->nest.weights_stay ? "weights stays for all pixels"
                                   : "pixels stays for all channels");
}

static void say_where(const Why *y, Text *text, TensorId t, const Story *s) {
    uint32_t end = s->channel + plan_volume(y->g, t).c;
    if (s->inside.i != NONE)
        text_addf(text, "channels %u to %u of %s, ", s->channel, end - 1,
                  name_of(y, s->inside));
    if (s->active)
        say_active(y, text, s);
    else if (s->parts)
        say_parts(y, text, t, s);
    else if (s->tiled)
        text_add(text, "outside: tiles of it pass through active memory");
    else
        text_add(text, "outside: for the host alone");
    if (s->tile)
        say_tile(text, s->tile);
}

const char *plan_explain(Arena *arena, const Plan *plan) {
    Why y = {.arena = arena,
             .plan = plan,
             .g = plan->schedule->graph,
             .spec = plan->schedule->spec};
    Text text = text_new(arena);
    y.story = ARENA_ARRAY(arena, Story, y.g->tensor.n + 1);
    read_plan(&y);
    for (uint32_t i = 0; i < plan->n_placements; i++) {
        TensorId t = plan->placement[i].tensor;
        Story *s = &y.story[t.i];
        Volume v = plan_volume(y.g, t);
        if (s->listed)
            continue;
        text_addf(&text, "%s (%ux%ux%u): ", name_of(&y, t), v.c, v.h, v.w);
        say_where(&y, &text, t, s);
        say_moves(&text, &y, t, s);
        text_addf(&text, "\n");
        s->listed = true;
    }
    return text_str(&text);
}
