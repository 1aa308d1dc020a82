/* explain.c - one line a volume: where it is, and why there.
 *
 * Input: a plan. Output: text, volumes in the order in which they are made.
 */
#include "plan/report/explain.h"
#include "plan/cost.h"
#include "plan/report/crowd.h"

#include "base/order.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static const char *num(const Crowd *y, uint64_t v) {
    return with_commas(y->arena, v);
}

static const char *name_of(const Crowd *y, TensorId t) {
    return graph_tensor(y->g, t)->name;
}

/* Steps [first, last], from 0. */
static void say_steps(Text *text, uint32_t first, uint32_t last) {
    if (first == last)
        text_addf(text, "step %u", first + 1);
    else
        text_addf(text, "steps %u to %u", first + 1, last + 1);
}

static void say_size(const Crowd *y, Text *text, TensorId t) {
    text_addf(text, "; whole it takes %s of %s bytes",
              num(y, whole_bytes(y, t)), num(y, y->total));
}

/* ---- whole in active memory ---- */

/* In `needed` bytes nothing would be in the way: they are there. */
static void say_best(const Crowd *y, Text *text, uint64_t needed) {
    uint64_t planned = y->plan->am_planned;
    if (planned && needed > planned)
        text_addf(text, ": the plan is one for %s of %s bytes", num(y, planned),
                  num(y, y->total));
    else
        text_add(text, ": of the plans that were tried the best");
}

/* `last`: the gap in front of it. */
static void say_gap(Text *text, const Gap *gap, const Gap *last) {
    const char *which = gap->last ? "last" : "first";
    if (last && last->kept == gap->kept && last->last == gap->last)
        text_add(text, gap->kept && gap->kept != NONE ? " and " : " or ");
    else if (gap->kept == 1)
        text_addf(text, ", but only its %s channel in ", which);
    else if (gap->kept && gap->kept != NONE)
        text_addf(text, ", but only its %s %u channels in ", which, gap->kept);
    else
        text_add(text, ", but not in ");
    say_steps(text, gap->first, gap->end - 1);
}

/* Why not all of it stays: the fullest step of the gaps. */
static void say_full(const Crowd *y, Text *text, const Story *s, const Gap *gap,
                     uint32_t n) {
    uint32_t at = 0, kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t step = fullest(y->live, gap[i].first, gap[i].end);
        if (i == 0 || y->live[step] > y->live[at]) {
            at = step;
            kept = gap[i].kept == NONE ? 0 : gap[i].kept;
        }
    }
    uint64_t rest = s->bytes - first_channels(y, s, kept);
    if (rest <= y->total - y->live[at])
        say_best(y, text, rest + y->live[at]);
    else
        text_addf(text,
                  ": in step %u %s of %s bytes are in use, and %s takes %s",
                  at + 1, num(y, y->live[at]), num(y, y->total),
                  kept ? "the rest of it" : "whole it", num(y, rest));
}

static void say_gaps(const Crowd *y, Text *text, const Story *s) {
    enum { MOST = 4 };
    Gap *gap;
    uint32_t n = gaps_of(y, s, &gap);
    for (uint32_t i = 0; i < n && i < MOST; i++)
        say_gap(text, &gap[i], i ? &gap[i - 1] : NULL);
    if (n > MOST)
        text_addf(text, ", and away %u times more", n - MOST);
    if (n)
        say_full(y, text, s, gap, n);
}

/* Its own steps, if what makes and reads it is known; else those of its place,
 * which it may share with others. */
static void say_active(const Crowd *y, Text *text, const Story *s) {
    uint32_t first = s->abode.at[0].first;
    uint32_t n = s->used == NONE ? 1 : s->abode.n; /* then the concat's */
    uint32_t last = s->abode.at[n - 1].end - 1;
    if (s->made != NONE && s->made > first)
        first = s->made;
    if (s->used != NONE && s->used < last)
        last = s->used;
    text_add(text, "in active memory, ");
    say_steps(text, first, last < first ? first : last);
    if (s->over.i != NONE && s->inside.i == NONE)
        text_addf(text, ", in the place of %s", name_of(y, s->over));
    if (s->slice)
        text_addf(text, ", by slices of at most %u of its rows", s->slice);
    say_gaps(y, text, s);
}

/* ---- by parts ---- */

/* `many`: it passes through several, one behind the other. */
static void say_rows(const Crowd *y, Text *text, Volume v, const Story *s,
                     bool many) {
    if (s->line)
        text_addf(text, ", with a line buffer of %s of its %s pixels",
                  num(y, s->line), num(y, (uint64_t)v.h * v.w));
    else if (s->ring)
        text_addf(text, ", with %s %u of its %u rows",
                  many ? "rings of at most" : "a ring of", s->ring, v.h);
    else
        text_addf(text, ", with at most %u of its %u rows at a time", s->rows,
                  v.h);
}

static void say_how_much(const Crowd *y, Text *text, TensorId t,
                         const Story *s) {
    Volume v = plan_volume(y->g, t);
    uint32_t rows = 0; /* not only on its way to another memory */
    for (uint32_t i = 0; i < s->part.n; i++)
        rows += !s->part.at[i].slabs;
    if (rows)
        say_rows(y, text, v, s, rows > 1);
    if (s->channels)
        text_addf(text, "%s at most %u of its %u channels at a time",
                  rows ? ", and" : ", with", s->channels, v.c);
}

static void say_turns(Text *text, const Story *s) {
    enum { MOST = 3 };
    uint32_t from = 0;
    for (uint32_t i = 0; i < s->part.n && i < MOST; i++) {
        const Together *t = &s->part.at[i], *next = t + 1;
        bool last = i + 1 == s->part.n || i + 1 == MOST;
        say_steps(text, t->first, t->end - 1);
        if (last || next->rolls != t->rolls || next->slabs != t->slabs) {
            bool many = i > from || t->end - t->first > 1;
            text_addf(text,
                      t->rolls   ? " roll%s"
                      : t->slabs ? " run%s by channels"
                                 : " run%s by stripes",
                      many ? "" : "s");
            from = i + 1;
        }
        text_add(text, last ? "" : " and ");
    }
    if (s->part.n > MOST)
        text_addf(text, " (and %u more)", s->part.n - MOST);
}

/* Why it is not whole there, at least in some steps: what would have to be in
 * the fullest of them, `at`. */
static void say_crowd(const Crowd *y, Text *text, TensorId t, bool never,
                      uint32_t at) {
    bool crowded = y->whole[at] > y->total;
    if (never)
        say_size(y, text, t);
    if (never && whole_bytes(y, t) > y->total)
        return;
    if (!crowded)
        say_best(y, text, y->whole[at]);
    else if (never)
        text_addf(text, ", all that is alive in step %u takes %s", at + 1,
                  num(y, y->whole[at]));
    else
        text_addf(text,
                  "; whole, all that is alive in step %u takes %s of %s bytes",
                  at + 1, num(y, y->whole[at]), num(y, y->total));
}

/* The fullest of the steps that take turns. */
static uint32_t fullest_turn(const Crowd *y, const Story *s) {
    uint32_t at = s->part.at[0].first;
    for (uint32_t i = 0; i < s->part.n; i++) {
        const Together *part = &s->part.at[i];
        uint32_t most = fullest(y->whole, part->first, part->end);
        at = y->whole[most] > y->whole[at] ? most : at;
    }
    return at;
}

static void say_parts(const Crowd *y, Text *text, TensorId t, const Story *s) {
    text_add(text, s->abode.n ? "" : "never whole: ");
    say_turns(text, s);
    say_how_much(y, text, t, s);
    if (s->again)
        text_addf(text, ", %s rows computed again", num(y, s->again));
    say_crowd(y, text, t, !s->abode.n, fullest_turn(y, s));
}

/* False if it is never away. */
static bool say_away(const Crowd *y, Text *text, Steps away) {
    if (away.first >= away.end)
        return false;
    uint32_t at = fullest(y->whole, away.first, away.end);
    text_add(text, ", away in ");
    say_steps(text, away.first, away.end - 1);
    if (y->whole[at] > y->total)
        text_addf(text, ": all that is alive in step %u takes %s of %s bytes",
                  at + 1, num(y, y->whole[at]), num(y, y->total));
    else
        say_best(y, text, y->whole[at]);
    return true;
}

/* Before, or behind, the steps in which it is whole there; or on its way to the
 * place of its concat. */
static void say_aways(const Crowd *y, Text *text, TensorId t, const Story *s) {
    Steps life = y->life[t.i];
    uint32_t end = s->abode.at[s->abode.n - 1].end;
    if (!s->stored && !s->loaded && !s->tiled)
        return; /* a concat moves for it */
    bool before = say_away(y, text, (Steps){life.first, s->abode.at[0].first});
    bool behind = say_away(y, text, (Steps){end, life.end});
    if (before || behind || !s->stored || !s->loaded || s->inside.i == NONE)
        return;
    text_add(text, ", away between two steps");
    say_best(y, text, 0);
}

static void say_outside(const Crowd *y, Text *text, TensorId t,
                        const Story *s) {
    Steps life = y->life[t.i];
    text_addf(text, "outside: %s of it pass through active memory",
              s->tiled ? "tiles" : "members");
    say_crowd(y, text, t, true, fullest(y->whole, life.first, life.end));
}

/* ---- by tiles of the machine ---- */

static void say_tile(const Crowd *y, Text *text, const Action *a) {
    const HwMemory *m = &y->spec->memory[y->plan->placement[a->out].memory];
    text_add(text, "; made ");
    if (m->role != HW_ACTIVE)
        text_addf(text, "in %s ", m->name);
    if (!a->nest.c) {
        text_addf(text, "by tiles of %u x %u pixels", a->tile_h, a->tile_w);
        return;
    }
    text_addf(text,
              "by tiles of %u channels x %u x %u pixels, from %u input "
              "channels at a time; a tile of %s",
              a->nest.c, a->tile_h, a->tile_w, a->nest.in_c,
              a->nest.weights_stay ? "weights stays for all pixels"
                                   : "pixels stays for all channels");
}

/* ---- moves ---- */

static const char *times(const Crowd *y, uint64_t n) {
    return n == 1   ? ""
           : n == 2 ? " twice"
                    : arena_printf(y->arena, " %s times", num(y, n));
}

/* n of a tensor's `all` rows or channels. */
static void say_count(const Crowd *y, Text *text, uint64_t n, uint64_t all,
                      const char *what, const char *done) {
    if (n % all == 0)
        text_addf(text, "; %s%s", done, times(y, n / all));
    else
        text_addf(text, "; %s %s %s, of %s%s", num(y, n), what, done,
                  num(y, all), n > all ? ": some again" : "");
}

static void say_moved(const Crowd *y, Text *text, const Moved *m, Volume v,
                      const char *done) {
    uint64_t plane = (uint64_t)v.h * v.w, row = (uint64_t)v.c * v.w;
    if (m->elements % plane == 0 && !m->cut_h && !m->cut_w)
        say_count(y, text, m->elements / plane, v.c, "channels", done);
    else if (m->elements % row == 0 && !m->cut_w)
        say_count(y, text, m->elements / row, v.h, "rows", done);
    else
        say_count(y, text, m->elements, plane * v.c, "elements", done);
}

/* False if nothing of the tensor moves from or to the memory. */
static bool say_side(const Crowd *y, Text *text, TensorId t, const Moved *moved,
                     uint32_t m, const char *way) {
    if (!moved || !moved[m].elements)
        return false;
    say_moved(y, text, &moved[m], plan_volume(y->g, t),
              arena_printf(y->arena, "%s %s", way, y->spec->memory[m].name));
    return true;
}

static bool say_stored(const Crowd *y, Text *text, TensorId t, const Story *s,
                       uint32_t m) {
    if (!say_side(y, text, t, s->stored, m, "stored to"))
        return false;
    if (s->host.i != NONE && s->host_memory == m)
        text_addf(text, ", %sfor the host, which runs %s",
                  graph_is_output(y->g, t) ? "also " : "",
                  graph_node(y->g, s->host)->name);
    return true;
}

static bool say_loaded(const Crowd *y, Text *text, TensorId t, const Story *s,
                       uint32_t m) {
    if (!say_side(y, text, t, s->loaded, m, "loaded from"))
        return false;
    if (s->by_host && y->spec->memory[m].role == HW_INPUT)
        text_add(text, ", where the host leaves it");
    return true;
}

static void say_moves(const Crowd *y, Text *text, TensorId t, const Story *s) {
    Volume v = plan_volume(y->g, t);
    uint64_t bytes = (uint64_t)v.c * v.h * v.w * y->spec->element;
    bool any = false;
    for (uint32_t m = 0; m < y->spec->n_memories; m++)
        any |= say_stored(y, text, t, s, m);
    for (uint32_t m = 0; m < y->spec->n_memories; m++)
        any |= say_loaded(y, text, t, s, m);
    if (s->fetched)
        say_count(y, text, s->fetched, bytes, "bytes", "read by tiles");
    if (!any && !s->tiled)
        text_add(text, "; does not move");
}

/* ---- lines ---- */

static void say_where(const Crowd *y, Text *text, TensorId t, const Story *s) {
    uint32_t end = s->channel + plan_volume(y->g, t).c;
    if (s->inside.i != NONE)
        text_addf(text, "channels %u to %u of %s, ", s->channel, end - 1,
                  name_of(y, s->inside));
    bool both = s->abode.n && s->part.n;
    bool parts_first = both && s->part.at[0].first < s->abode.at[0].first;
    if (s->abode.n && !parts_first)
        say_active(y, text, s);
    text_add(text, both && !parts_first ? "; " : "");
    if (s->part.n)
        say_parts(y, text, t, s);
    text_add(text, parts_first ? "; " : "");
    if (parts_first)
        say_active(y, text, s);
    if (s->abode.n && !s->part.n)
        say_aways(y, text, t, s);
    bool passes = s->tiled || s->stored || s->loaded;
    if (!s->abode.n && !s->part.n && passes)
        say_outside(y, text, t, s);
    else if (!s->abode.n && !s->part.n)
        text_add(text, "outside: for the host alone");
    if (s->tile)
        say_tile(y, text, s->tile);
}

/* Of what layers of the file it is made, where its name does not say it. */
static void say_layers(const Crowd *y, Text *text, TensorId t) {
    enum { MOST = 5 };
    const Node *node = graph_node(y->g, graph_tensor(y->g, t)->producer);
    uint32_t n = node->n_merged < MOST ? node->n_merged : MOST;
    if (!n || (n == 1 && !strcmp(node->merged[0], name_of(y, t))))
        return;
    text_add(text, n == 1 ? ", layer " : ", layers ");
    for (uint32_t i = 0; i < n; i++)
        text_addf(text, "%s%s",
                  i == 0                              ? ""
                  : i + 1 == n && n == node->n_merged ? " and "
                                                      : ", ",
                  node->merged[i]);
    if (n < node->n_merged)
        text_addf(text, " and %u more", node->n_merged - n);
}

typedef struct Line {
    TensorId tensor;
    uint32_t step; /* that makes it */
} Line;

static int by_step(const void *a, const void *b) {
    const Line *x = a, *y = b;
    return order_by(ORDER_UP(x->step, y->step),
                    ORDER_UP(x->tensor.i, y->tensor.i));
}

/* Inputs first. */
static Line *lines_of(const Crowd *y) {
    const Schedule *schedule = y->plan->schedule;
    Line *line = ARENA_ARRAY(y->arena, Line, y->g->tensor.n + 1);
    for (TensorId t = {0}; t.i < y->g->tensor.n; t.i++) {
        uint32_t step = schedule->step_of[graph_tensor(y->g, t)->producer.i];
        line[t.i] = (Line){t, step == NONE ? 0 : step + 1};
    }
    if (y->g->tensor.n)
        qsort(line, y->g->tensor.n, sizeof *line, by_step);
    return line;
}

/* Of machines that load weights into active memory. */
static void say_weights(const Crowd *y, Text *text) {
    PlanWeights w = plan_weights(y->plan);
    if (!w.blocks)
        return;
    uint64_t all = plan_staged_weights(y->plan->schedule);
    text_add(text, explain_weights(y->arena, y->plan, y->live));
    text_addf(text, "weights: %s bytes loaded in %u blocks, of %s%s\n",
              num(y, w.loaded), w.blocks, num(y, all),
              w.loaded > all ? ": some again" : "");
}

/* Of machines with a memory for sums. */
static void say_sums(const Crowd *y, Text *text) {
    const HwSpec *spec = y->plan->schedule->spec;
    const HwMemory *m = &spec->memory[spec->sums];
    const Action *most = NULL;
    uint64_t bytes = 0;
    uint32_t stay = 0, runs = 0;
    for (uint32_t i = 0; i < y->plan->n_actions; i++) {
        const Action *a = &y->plan->action[i];
        if (a->kind != ACTION_RUN || !a->sums)
            continue;
        const SumsPlace *s = &y->plan->sums[a->sums - 1];
        runs++;
        stay += keeps_for_next(y->plan, a);
        most = s->bytes > bytes ? a : most;
        bytes = s->bytes > bytes ? s->bytes : bytes;
    }
    if (!most)
        return;
    const Volume *v = &y->plan->sums[most->sums - 1].volume;
    text_addf(text,
              "sums: at most %s of %s bytes of %s%s, %ux%ux%u of %s; of %s "
              "instructions with sums %s leave theirs for the next\n",
              num(y, bytes), num(y, hwspec_sums_room(spec)),
              m->buffers > 1 ? "a buffer of " : "", m->name, v->c, v->h, v->w,
              graph_node(y->g, most->node)->name, num(y, runs), num(y, stay));
}

/* A plan for less memory. */
static void say_planned(const Crowd *y, Text *text) {
    if (y->plan->am_planned)
        text_addf(
            text,
            "plan: one for %s of %s bytes: nothing that was tried with "
            "more is better, and no better than what more yet would get\n",
            num(y, y->plan->am_planned), num(y, y->total));
}

const char *plan_explain(Arena *arena, const Plan *plan) {
    const Crowd y = crowd_of(arena, plan);
    const Line *line = lines_of(&y);
    Text text = text_new(arena);
    for (uint32_t i = 0; i < y.g->glossary.n; i++)
        text_addf(&text, "names: %s\n", y.g->glossary.at[i]);
    for (uint32_t i = 0; i < y.g->tensor.n; i++) {
        TensorId t = line[i].tensor;
        const Story *s = &y.story[t.i];
        Volume v = plan_volume(y.g, t);
        if (!s->placed)
            continue;
        text_addf(&text, "%s (%ux%ux%u", name_of(&y, t), v.c, v.h, v.w);
        say_layers(&y, &text, t);
        text_add(&text, "): ");
        say_where(&y, &text, t, s);
        say_moves(&y, &text, t, s);
        text_add(&text, "\n");
    }
    say_weights(&y, &text);
    say_sums(&y, &text);
    say_planned(&y, &text);
    PlanBoundKind bound = plan_bound(plan);
    text_addf(&text, "bytes: %s moved; compulsory %s, bound %s (%s)\n",
              num(&y, plan->ddr_moved), num(&y, plan_compulsory(plan)),
              num(&y, plan->ddr_bound[bound]), plan_bound_words(plan, bound));
    return text_str(&text);
}
