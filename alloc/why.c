/* why.c - one line a volume: where it is, and why there.
 *
 * Input: a plan. Output: text. Everything said is read off the plan's actions
 * and placements.
 */
#include "alloc/plan.h"

#include "base/text.h"

/* What the actions do with one tensor. */
typedef struct Story {
    bool active;          /* it is in active memory, whole */
    uint32_t first, last; /* steps of its places there */
    uint32_t out, back;   /* it is away from step `out` to before `back`, */
    uint32_t kept;        /* but for so many channels */
    bool listed;
    uint64_t bytes;     /* of the largest */
    uint32_t parts;     /* most rows of a part of it in active memory */
    uint32_t ring;      /* rows of the ring that it passes through */
    uint64_t moved[2];  /* stored, loaded: rows of one channel */
    uint32_t behind[2]; /* channel up to which the last move came */
    uint32_t tiles;     /* instructions that make it, if several */
    uint64_t again;     /* rows that are computed twice */
    bool tiled;         /* read or written by tiles of the machine */
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
    s->channel = p->part_c;
    s->active = true;
}

static void read_move(Why *y, const Action *a) {
    const Placement *out = &y->plan->placement[a->out];
    Story *s = &y->story[out->tensor.i];
    bool load = a->kind == ACTION_LOAD;
    bool goes_on = out->c == s->behind[load]; /* a move in parts */
    s->moved[load] += (uint64_t)a->rows * out->n_c;
    s->behind[load] = out->c + out->n_c;
    if (s->behind[load] == plan_volume(y->g, out->tensor).c)
        s->behind[load] = 0;
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
    s->tiles += a->n_tiles > 1;
    s->again += a->again;
    s->tiled |= a->style >= 0 && !is_active(y, out);
    for (uint32_t i = 0; i < a->n_in; i++) {
        const Placement *in = &y->plan->placement[a->in[i]];
        y->story[in->tensor.i].tiled |= a->style >= 0 && !is_active(y, in);
    }
}

static void read_concat(Why *y, const Action *a) {
    for (uint32_t i = 0; i < a->n_in; i++)
        y->story[y->plan->placement[a->in[i]].tensor.i].inside =
            y->plan->placement[a->out].tensor;
}

static void read_plan(Why *y) {
    const Plan *plan = y->plan;
    const PlanStepUse *use;
    uint32_t n = plan_step_use(y->arena, plan, &use);
    y->live = ARENA_ARRAY(y->arena, uint64_t, plan->schedule->n_steps + 1);
    for (uint32_t i = 0; i < n; i++)
        y->live[use[i].step] = use[i].bytes;
    for (uint32_t i = 0; i < y->g->tensor.n; i++)
        y->story[i].inside = NO_TENSOR;
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

static unsigned long long ull(uint64_t v) {
    return (unsigned long long)v;
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

static void say_active(const Why *y, Text *text, const Story *s) {
    text_addf(text, "stays in active memory, steps %u to %u", s->first + 1,
              s->last + 1);
    if (s->out == s->back)
        return;
    uint32_t at = fullest(y, s->out, s->back);
    if (s->kept)
        text_addf(text, ", but only its first %u channels", s->kept);
    else
        text_addf(text, ", but not");
    text_addf(text,
              " from %u to %u: step %u has %llu of %llu bytes for others, and "
              "this one takes %llu",
              s->out + 1, s->back, at + 1, ull(y->live[at]), ull(y->total),
              ull(s->bytes));
}

static void say_parts(const Why *y, Text *text, TensorId t, const Story *s) {
    text_addf(text, "never whole: %s %u of %u rows",
              s->ring ? "a ring of" : "at most", s->ring ? s->ring : s->parts,
              plan_volume(y->g, t).h);
    if (!s->ring)
        text_add(text, " at a time");
    if (s->again)
        text_addf(text, ", %llu rows computed again", ull(s->again));
    text_addf(text, "; whole it takes %llu of %llu bytes",
              ull(whole_bytes(y, t)), ull(y->total));
}

/* In channels where some stay, else in rows. */
static void say_moved(Text *text, Volume v, const Story *s, bool load) {
    const char *done = load ? "loaded" : "stored";
    uint64_t moved = s->moved[load];
    bool rows = moved % v.c == 0 && !s->kept;
    uint64_t n = moved / (rows ? v.c : v.h), all = rows ? v.h : v.c;
    if (!moved)
        return;
    text_addf(text, "; %llu %s %s", ull(n), rows ? "rows" : "channels", done);
    if (n > all)
        text_addf(text, " (it has %llu)", ull(all));
}

static void say_moves(Text *text, const Why *y, TensorId t, const Story *s) {
    Volume v = plan_volume(y->g, t);
    say_moved(text, v, s, false);
    say_moved(text, v, s, true);
    if (!s->moved[0] && !s->moved[1] && !s->tiled)
        text_add(text, "; nothing of it moves");
}

static void say_where(const Why *y, Text *text, TensorId t, const Story *s) {
    if (s->inside.i != NONE)
        text_addf(text, "part of %s from channel %u: ",
                  graph_tensor(y->g, s->inside)->name, s->channel);
    if (s->active)
        say_active(y, text, s);
    else if (s->parts)
        say_parts(y, text, t, s);
    else if (s->tiled)
        text_addf(text, "outside: the machine reads or writes it by tiles");
    else
        text_addf(text, "outside: no engine touches it");
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
        text_addf(&text, "%s (%ux%ux%u): ", graph_tensor(y.g, t)->name, v.c,
                  v.h, v.w);
        say_where(&y, &text, t, s);
        say_moves(&text, &y, t, s);
        text_addf(&text, "\n");
        s->listed = true;
    }
    return text_str(&text);
}
