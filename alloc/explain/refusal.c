/* refusal.c - why nothing fits: which step, which volumes, how many bytes
 * short, and a remedy.
 *
 * Input: the work as it got stuck. Output: one error with notes.
 * The size that would do is that of a plan which was made and judged, and the
 * one that would not was tried as well (advice.c).
 */
#include "alloc/explain/explain.h"
#include "alloc/weights/weights.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

/* In the largest unit of which `like` is a whole number, too. */
static const char *size_text(Arena *arena, uint64_t bytes, uint64_t like) {
    static const struct {
        uint64_t unit;
        const char *name;
    } units[] = {{1 << 20, "MiB"}, {1 << 10, "KiB"}};
    for (uint32_t i = 0; i < sizeof units / sizeof *units; i++)
        if (bytes && bytes % units[i].unit == 0 && like % units[i].unit == 0)
            return arena_printf(arena, "%llu%s",
                                (unsigned long long)(bytes / units[i].unit),
                                units[i].name);
    return arena_printf(arena, "%llu", (unsigned long long)bytes);
}

/* "am", or "fast + bulk". */
static const char *active_names(const Work *w) {
    const char *text = w->spec->memory[0].name;
    for (uint32_t m = 1; m < w->spec->n_active; m++)
        text = arena_printf(w->arena, "%s + %s", text, w->spec->memory[m].name);
    return text;
}

static const char *step_node(const Work *w) {
    if (w->stuck >= w->schedule->n_steps || !w->schedule->step[w->stuck].n)
        return "";
    return graph_node(w->g, w->schedule->step[w->stuck].slot[0].node)->name;
}

static Loc step_loc(const Work *w) {
    if (w->stuck >= w->schedule->n_steps || !w->schedule->step[w->stuck].n)
        return w->spec->loc;
    return graph_node(w->g, w->schedule->step[w->stuck].slot[0].node)->loc;
}

/* ---- what is alive ---- */

/* Bytes of rows of the tensor, or of rows of some channels, in the memory where
 * they take the fewest. */
static uint64_t least_layout(const Work *w, TensorId t, uint32_t channels,
                             uint32_t rows) {
    uint64_t least = UINT64_MAX;
    for (uint32_t m = 0; m < w->spec->n_active; m++) {
        Volume v = plank_in(w, t, rows, m);
        if (channels)
            v = (Volume){channels, rows, v.w,
                         hwspec_repl_none(w->spec, channels)};
        const HwMemory *memory = &w->spec->memory[m];
        uint64_t b = round_up(layout_bytes(memory->layout, &v),
                              memory->align ? memory->align : 1);
        if (memory->buffers)
            b = round_up(b, hwspec_buffer_bytes(memory));
        least = b < least ? b : least;
    }
    return least;
}

/* Bytes of a buffer where it is smallest, even if no memory can hold it. */
static uint64_t bytes_wanted(const Work *w, const Problem *p, uint32_t buf) {
    const Owner *o = &p->owner.at[buf];
    return o->least != UINT64_MAX
               ? o->least
               : least_layout(w, o->tensor, o->channels, o->rows);
}

uint64_t bytes_said(const Work *w, uint64_t bytes) {
    uint64_t align = w->spec->memory[0].align;
    return bytes > w->would_do && w->would_do + align > bytes ? w->would_do
                                                              : bytes;
}

typedef struct Line {
    uint32_t buf;
    uint64_t bytes;
} Line;

static int by_bytes(const void *a, const void *b) {
    const Line *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x->buf > y->buf) - (x->buf < y->buf);
}

static bool alive(const Problem *p, uint32_t buf, uint32_t time) {
    return p->buf.at[buf].first <= time && time < p->buf.at[buf].end;
}

static uint64_t sum_at(const Work *w, const Problem *p, uint32_t time) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->buf.n; i++) {
        uint64_t bytes = alive(p, i, time) ? bytes_wanted(w, p, i) : 0;
        sum = bytes > UINT64_MAX - sum ? UINT64_MAX : sum + bytes;
    }
    return sum;
}

static NodeId step_only(const Work *w, uint32_t step) {
    const Step *s = &w->schedule->step[step];
    return step < w->schedule->n_steps && s->n == 1 &&
                   on_engine(w, s->slot[0].node)
               ? s->slot[0].node
               : NO_NODE;
}

/* Bytes of the node's thinnest slabs, with what a dense convolution reads;
 * UINT64_MAX if it cannot run so. */
static uint64_t slabs_wanted(const Work *w, NodeId id) {
    uint32_t c = id.i == NONE ? 0 : slabs_thinnest(w, id);
    if (!c)
        return UINT64_MAX;
    const Node *node = graph_node(w->g, id);
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= node->n_in; i++) {
        TensorId t = i < node->n_in ? node->in[i] : node->out[0];
        bool whole = i < node->n_in && is_dense(node);
        sum += least_layout(w, t, whole ? 0 : c, plan_volume(w->g, t).h);
    }
    return sum;
}

/* Of the operands whose place the result takes; UINT64_MAX if it cannot. */
static uint64_t place_wanted(const Work *w, NodeId id) {
    const Node *node = id.i == NONE ? NULL : graph_node(w->g, id);
    uint64_t sum = 0;
    bool takes = false;
    for (uint32_t i = 0; node && i < node->n_in; i++) {
        TensorId t = node->in[i];
        bool again = i && same_tensor(node->in[i - 1], t);
        takes |= takes_in_place(w, id, t);
        sum += again ? 0 : least_layout(w, t, 0, plan_volume(w->g, t).h);
    }
    return takes ? sum : UINT64_MAX;
}

/* How a step takes the fewest bytes: as it was tried last, whole or by rows,
 * or otherwise, if it cannot run so. */
typedef enum Manner { AS_TRIED, IN_PLACE, BY_SLABS, BY_LINES } Manner;
typedef struct Need {
    uint64_t bytes;
    Manner manner;
} Need;

static void need_less(Need *need, uint64_t bytes, Manner manner) {
    if (bytes < need->bytes)
        *need = (Need){bytes, manner};
}

static Need need_at(const Work *w, const Problem *p, uint32_t time) {
    Need need = {sum_at(w, p, time), AS_TRIED};
    NodeId id = step_only(w, time / 2);
    if (!w->given_up[time / 2])
        return need;
    need_less(&need, place_wanted(w, id), IN_PLACE);
    need_less(&need, slabs_wanted(w, id), BY_SLABS);
    need_less(&need, lines_wanted(w, time / 2), BY_LINES);
    return need;
}

static uint64_t needed_at(const Work *w, const Problem *p, uint32_t time) {
    return need_at(w, p, time).bytes;
}

/* Of the steps that cannot run, the one that would need the largest memory by
 * itself, as the machine tiles it; NONE if the others' volumes are in the way,
 * or if the machine does not tile. */
static uint32_t worst_tiled(const Work *w) {
    uint32_t worst = NONE;
    uint64_t most = active_bytes(w);
    if (w->spec->tiling.kind != HW_TILING_HARDWARE || w->spec->n_active > 1)
        return NONE;
    for (uint32_t s = 0; s < w->schedule->n_steps; s++) {
        NodeId id = step_only(w, s);
        uint64_t bytes =
            w->given_up[s] && id.i != NONE ? least_tile(w, id).bytes : 0;
        if (bytes > most) {
            worst = s;
            most = bytes;
        }
    }
    return worst;
}

/* Whether the step that is stuck is one of those. */
static bool stuck_in_tiles(const Work *w, LeastTile *least) {
    if (worst_tiled(w) == NONE || worst_tiled(w) != w->stuck)
        return false;
    *least = least_tile(w, step_only(w, w->stuck));
    return least->mode.kind != MODE_WHOLE;
}

/* The time of the step that needs most, among those that cannot run; among
 * all, if it is not known which these are. */
static uint32_t worst_time(const Work *w, const Problem *p) {
    bool known = memchr(w->given_up, 1, w->schedule->n_steps) != NULL;
    uint32_t worst = 2 * w->stuck, tiled = worst_tiled(w);
    if (tiled != NONE)
        return 2 * tiled;
    uint64_t most = needed_at(w, p, worst);
    for (uint32_t t = 0; t < p->n_times; t++) {
        uint64_t sum = known && !w->given_up[t / 2] ? 0 : needed_at(w, p, t);
        if (sum > most) {
            most = sum;
            worst = t;
        }
    }
    return most > active_bytes(w) ? worst : 2 * w->stuck;
}

/* Buffers alive at the time, largest first. */
static uint32_t alive_at(const Work *w, const Problem *p, uint32_t time,
                         Line **out) {
    Line *line = ARENA_ARRAY(w->arena, Line, p->buf.n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (alive(p, i, time))
            line[n++] = (Line){i, bytes_wanted(w, p, i)};
    if (n)
        qsort(line, n, sizeof *line, by_bytes);
    *out = line;
    return n;
}

static const char *owner_text(Arena *arena, const Owner *o, uint32_t h) {
    static const char *const text[] = {
        [OWNER_SEGMENT] = "",
        [OWNER_KEPT] = ", channels of it",
        [OWNER_PLANK] = "",
        [OWNER_TILE] = ", tiles of it",
    };
    if (o->channels)
        return arena_printf(arena, ", %u of its channels", o->channels);
    bool moves = o->kind == OWNER_RELAY;
    return (o->kind == OWNER_PLANK && o->rows < h) || moves
               ? arena_printf(arena, ", %u of its rows%s", o->rows,
                              moves ? " on their way out" : "")
               : text[o->kind];
}

static void note_volumes(Diag *diag, const Work *w, const Problem *p,
                         const Line *line, uint32_t n) {
    enum { MOST = 12 };
    for (uint32_t i = 0; i < n && i < MOST; i++) {
        const Owner *o = &p->owner.at[line[i].buf];
        Volume v = plan_volume(w->g, o->tensor);
        const Tensor *t = graph_tensor(w->g, o->tensor);
        diag_note(diag, t->loc, "%s (%ux%ux%u%s): %s bytes", t->name, v.c, v.h,
                  v.w, owner_text(w->arena, o, v.h),
                  with_commas(w->arena, line[i].bytes));
    }
    if (n > MOST)
        diag_note(diag, (Loc){0}, "and %u smaller ones", n - MOST);
}

/* ---- remedies ---- */

static uint64_t lcm(uint64_t a, uint64_t b) {
    uint64_t x = a, y = b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

uint64_t size_granule(const HwMemory *m) {
    uint64_t step = lcm(m->align ? m->align : 1, m->unit ? m->unit : 1);
    return step * (m->buffers ? m->buffers : 1);
}

/* Who is asked for sizes, and how long. */
typedef struct Adviser {
    const Work *w;
    PlanOptions options;
    Budget guesses, plans;
} Adviser;

static bool seems_to_fit(void *context, uint64_t size) {
    Adviser *a = context;
    const Work *w = a->w;
    if (budget_spent(&a->guesses))
        return false;
    Arena *arena = arena_new("remedy");
    bool fits = plan_exists(w->schedule, spec_within(arena, w->spec, size),
                            &a->options, w->once);
    arena_free(arena);
    return fits;
}

static bool would_do(void *context, uint64_t size) {
    Adviser *a = context;
    const Asked *asked = a->w->options->asked;
    return asked->would_do(asked, &a->plans, size);
}

/* Sizes of the first memory that were tried, of which the larger one would do;
 * about `enough` bytes are looked at first. What lies highest may end within
 * the last granule; of many steps sizes are known to a KiB. */
static SizeAdvice size_that_fits(const Work *w, uint64_t enough) {
    enum { GUESSES = 48, TRIES = 16, MOST_STEPS = 300 };
    const HwMemory *m = &w->spec->memory[0];
    Adviser a = {.w = w, .options = *w->options};
    a.guesses = budget_of(BUDGET_GUESS, w->schedule->n_steps);
    a.plans = budget_of(BUDGET_ADVICE, w->schedule->n_steps);
    a.options.budget = &a.guesses;
    uint64_t step = size_granule(m);
    SizeSearch search = {.step = step,
                         .fine = m->buffers ? step : larger(m->unit, 1),
                         .fails = m->size,
                         .guess = enough,
                         .seems = seems_to_fit,
                         .does = would_do,
                         .context = &a,
                         .budget = &a.plans,
                         .guesses = GUESSES,
                         .tries = TRIES};
    if (w->schedule->n_steps > MOST_STEPS)
        search.step = search.fine = lcm(1024, size_granule(m));
    return advise_size(&search);
}

static bool by_planks(const Work *w, NodeId id) {
    return w->spec->tiling.kind == HW_TILING_SOFTWARE &&
           w->spec->backing >= 0 && on_engine(w, id) &&
           w->spec->tiling.ops >> w->legal[id.i].op & 1;
}

/* Bytes of planks of so many rows, if a memory can hold them or not. */
static uint64_t planks_wanted(const Work *w, NodeId id, uint32_t rows) {
    const Node *node = graph_node(w->g, id);
    uint32_t in = plank_in_rows(w, id, rows);
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= node->n_in; i++) {
        bool is_in = i < node->n_in;
        sum += least_layout(w, is_in ? node->in[i] : node->out[0], 0,
                            is_in ? in : rows);
    }
    return sum;
}

/* `least`: rows of its lowest stripe, which does not fit. */
static void note_too_high(Diag *diag, const Work *w, const Node *node,
                          uint32_t least, uint64_t bytes) {
    uint32_t h = plan_volume(w->g, node->out[0]).h;
    const char *size = with_commas(w->arena, bytes_said(w, bytes));
    if (least == h && h == 1)
        diag_note(diag, node->loc,
                  "no stripe of %s fits: its one row takes %s bytes",
                  node->name, size);
    else if (least == h)
        diag_note(diag, node->loc,
                  "%s cannot run by stripes: its %u rows are made at once, and "
                  "take %s bytes",
                  node->name, h, size);
    else
        diag_note(diag, node->loc,
                  "no stripe of %s fits: the lowest, %u of its %u rows, takes "
                  "%s bytes",
                  node->name, least, h, size);
}

static bool step_tiled(const Work *w) {
    const Step *step = &w->schedule->step[w->stuck];
    return step->n && w->mode[step->slot[0].node.i].kind != MODE_WHOLE;
}

/* Whether the node runs by slabs where no stripe fits: how thick these can be.
 */
static bool note_slab(Diag *diag, const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    Volume in = plan_volume(w->g, node->in[0]);
    uint32_t least = slab_least(w, id);
    uint32_t most = slab_largest(w, id, in.c, active_bytes(w));
    uint32_t channels = most ? most : least;
    if (!least)
        return false;
    uint64_t bytes =
        least_layout(w, node->in[0], channels, in.h) +
        least_layout(w, node->out[0], 0, 1) * plan_volume(w->g, node->out[0]).h;
    const char *size = with_commas(w->arena, bytes_said(w, bytes));
    if (most)
        diag_note(diag, node->loc,
                  "%s by itself fits by %u of its %u channels at a time, and "
                  "its whole result: %s bytes",
                  node->name, channels, in.c, size);
    else
        diag_note(diag, node->loc,
                  "no part of %s fits: the smallest, %u of its %u channels, "
                  "takes %s bytes with its whole result",
                  node->name, channels, in.c, size);
    return true;
}

/* How high stripes of the step's node can be, by themselves. */
static void note_stripe(Diag *diag, const Work *w) {
    const Step *step = &w->schedule->step[w->stuck];
    NodeId id = step->n ? step->slot[0].node : NO_NODE;
    if (step->n && step_tiled(w) && !by_planks(w, id) && slab_least(w, id))
        note_slab(diag, w, id);
    if (!step->n || !by_planks(w, id))
        return;
    const Node *node = graph_node(w->g, id);
    uint32_t h = plan_volume(w->g, node->out[0]).h;
    uint32_t rows = plank_highest(w, id, active_bytes(w));
    uint32_t least = plank_least(w, id);
    if (rows && rows < h)
        diag_note(diag, node->loc,
                  "%s by itself fits by stripes of at most %u of its %u rows: "
                  "%s bytes",
                  node->name, rows, h,
                  with_commas(w->arena, planks_wanted(w, id, rows)));
    else if (!rows && least && (least < h || !note_slab(diag, w, id)))
        note_too_high(diag, w, node, least, planks_wanted(w, id, least));
}

/* Whether the machine has tiles for the step's node, if larger ones than fit.
 */
static bool has_tiles(const Work *w) {
    const Step *step = &w->schedule->step[w->stuck];
    bool any = false;
    for (uint32_t i = 0; step->n && i < w->spec->tiling.n; i++)
        any |=
            w->spec->tiling.kind == HW_TILING_HARDWARE &&
            on_engine(w, step->slot[0].node) &&
            w->spec->tiling.style[i].ops >> w->legal[step->slot[0].node.i].op &
                1;
    return any;
}

static bool step_runs(const Work *w) {
    const Step *step = &w->schedule->step[w->stuck];
    return step->n && on_engine(w, step->slot[0].node);
}

static void note_ways(Diag *diag, const Work *w) {
    if (w->spec->backing < 0)
        diag_note(diag, (Loc){0},
                  "the machine has no backing memory: with one, volumes that "
                  "wait could leave %s",
                  active_names(w));
    else if (!step_tiled(w) && has_tiles(w))
        diag_note(diag, (Loc){0},
                  "the machine runs %s by tiles, but the smallest is too large "
                  "for %s",
                  step_node(w), active_names(w));
    else if (!step_tiled(w) && step_runs(w))
        diag_note(diag, (Loc){0},
                  "the machine cannot run %s by tiles: with tiling for it, a "
                  "part of each volume would do",
                  step_node(w));
}

static const char *of_images(const Work *w) {
    uint32_t n = w->options->images;
    return n > 1 ? arena_printf(w->arena, " for each of %u images", n) : "";
}

/* What is in the way in a little less: another step, or the listing's length.
 */
static void note_last(Diag *diag, const Work *w, const SizeAdvice *b) {
    Arena *arena = arena_new("last");
    const HwSpec *spec = spec_within(arena, w->spec, b->too_small);
    Work *less = work_new(arena, w->schedule, spec, w->options, w->once);
    Plan plan = {0};
    Problem p = {0};
    PlanResult result = {0};
    less->explains = true;
    if (!work_fit(less, &p, &result, &plan.planner, &plan.two_levels)) {
        uint32_t time = worst_time(less, &p);
        LeastTile least;
        less->stuck = time / 2;
        uint64_t sum = stuck_in_tiles(less, &least) ? least.bytes
                                                    : needed_at(less, &p, time);
        if (less->stuck != w->stuck && sum > active_bytes(less) &&
            sum <= b->enough)
            diag_note(diag, step_loc(less), "step %u (%s) needs that: %s bytes",
                      less->stuck + 1, step_node(less),
                      with_commas(w->arena, sum));
    } else if (actions_make(less, diag_new(arena), &p, &result, &plan) &&
               plan_traffic(&plan).too_long) {
        diag_note(diag, (Loc){0},
                  "with less, listings have more than the %u instructions "
                  "that %s holds%s",
                  spec->max_instructions, spec->machine, of_images(less));
    }
    arena_free(arena);
}

/* Sizes of which the larger one would do. */
static void find_size(Work *w, uint64_t short_of, SizeAdvice *b) {
    const HwMemory *m = &w->spec->memory[0];
    *b = w->options->aside ? size_staged(w->options->asked)
                           : size_that_fits(w, m->size + short_of);
    w->would_do = b->too_small ? b->enough : 0;
}

void note_advice(Arena *arena, Diag *diag, const char *memory, SizeAdvice b) {
    if (b.enough && b.too_small)
        diag_note(diag, (Loc){0},
                  "--set memories.%s.size=%s would do; %s would not", memory,
                  size_text(arena, b.enough, b.too_small),
                  size_text(arena, b.too_small, b.enough));
    else if (b.enough)
        diag_note(diag, (Loc){0}, "--set memories.%s.size=%s would do", memory,
                  size_text(arena, b.enough, 0));
}

static void note_size(Diag *diag, const Work *w, const SizeAdvice *b) {
    note_advice(w->arena, diag, w->spec->memory[0].name, *b);
    if (w->would_do && !w->options->aside)
        note_last(diag, w, b);
}

/* ---- the error ---- */

/* What is set aside for weights is the most that any layer needs at once, not
 * what this step does: how much is short is not known by that. */
static const char *how_short(const Work *w, uint64_t sum) {
    const PlanOptions *o = w->options;
    return o->aside_for
               ? arena_printf(w->arena, " beside %s for weights of %s",
                              with_commas(w->arena, o->aside), o->aside_for)
               : arena_printf(w->arena, ": %s short",
                              with_commas(w->arena, sum - active_bytes(w)));
}

static void say_short(Diag *diag, const Work *w, uint64_t bytes) {
    uint64_t sum = bytes_said(w, bytes);
    diag_error(
        diag, step_loc(w),
        "does not fit: step %u (%s) needs %s bytes of %s, which has %s%s",
        w->stuck + 1, step_node(w), with_commas(w->arena, sum), active_names(w),
        with_commas(w->arena, active_bytes(w)), how_short(w, sum));
}

/* There would be bytes enough, but not in one piece. */
static void say_pieces(Diag *diag, const Work *w, const Problem *p,
                       const PlanResult *result, const Line *line, uint32_t n,
                       uint64_t sum) {
    for (uint32_t i = 0; i < n; i++) {
        const Owner *o = &p->owner.at[line[i].buf];
        if (o->least != UINT64_MAX)
            continue;
        diag_error(diag, step_loc(w),
                   "does not fit: step %u (%s) has %s of %s bytes, which %s "
                   "cannot hold in one piece",
                   w->stuck + 1, step_node(w),
                   graph_tensor(w->g, o->tensor)->name,
                   with_commas(w->arena, line[i].bytes), active_names(w));
        return;
    }
    if (!result->pool)
        diag_error(diag, step_loc(w),
                   "does not fit: at step %u (%s) a volume must change between "
                   "the memories of two engines",
                   w->stuck + 1, step_node(w));
    else
        diag_error(diag, step_loc(w),
                   "does not fit: at step %u (%s) volumes of %s bytes wait in "
                   "%s, which has %s, but planner %s finds no place for all",
                   w->stuck + 1, step_node(w), with_commas(w->arena, sum),
                   active_names(w), with_commas(w->arena, active_bytes(w)),
                   w->options->planner);
}

static void say_volumes(Diag *diag, const Work *w, const Problem *p,
                        const PlanResult *result, uint32_t time) {
    Line *line;
    uint32_t n = alive_at(w, p, time, &line);
    uint64_t sum = sum_at(w, p, time);
    if (sum > active_bytes(w))
        say_short(diag, w, sum);
    else
        say_pieces(diag, w, p, result, line, n, sum);
    note_volumes(diag, w, p, line, n);
    note_stripe(diag, w);
}

/* Where no stripe is as small as a slab. */
static void say_slabs(Diag *diag, const Work *w) {
    NodeId id = step_only(w, w->stuck);
    const Node *node = graph_node(w->g, id);
    uint64_t bytes = slabs_wanted(w, id);
    say_short(diag, w, bytes);
    diag_note(diag, node->loc,
              "no part of %s fits: the smallest, %u of its %u channels, takes "
              "%s bytes%s",
              node->name, slabs_thinnest(w, id),
              plan_volume(w->g, node->out[0]).c,
              with_commas(w->arena, bytes_said(w, bytes)),
              is_dense(node) ? " with all that it reads" : "");
}

/* Where none is as small as line buffers. */
static void say_lines(Diag *diag, const Work *w, uint64_t bytes) {
    say_short(diag, w, bytes);
    note_lines(diag, w, w->stuck);
}

/* Where the result takes the place of an operand, as nothing else would do. */
static void say_place(Diag *diag, const Work *w, uint64_t bytes) {
    const Node *node = graph_node(w->g, step_only(w, w->stuck));
    say_short(diag, w, bytes);
    for (uint32_t i = 0; i < node->n_in; i++) {
        const Tensor *t = graph_tensor(w->g, node->in[i]);
        Volume v = plan_volume(w->g, node->in[i]);
        if (i == 0 || !same_tensor(node->in[i - 1], node->in[i]))
            diag_note(
                diag, t->loc, "%s (%ux%ux%u): %s bytes", t->name, v.c, v.h, v.w,
                with_commas(w->arena, least_layout(w, node->in[i], 0, v.h)));
    }
    diag_note(diag, node->loc, "%s takes the place of an operand",
              graph_tensor(w->g, node->out[0])->name);
}

static void say_tiles(Diag *diag, const Work *w, const LeastTile *least) {
    NodeId id = step_only(w, w->stuck);
    say_short(diag, w, least->bytes);
    if (least->mode.kind == MODE_HARDWARE)
        note_least_tile(diag, w, id, least);
    else
        note_slab(diag, w, id);
}

void explain(Diag *diag, Work *w, const Problem *p, const PlanResult *result) {
    uint32_t time = worst_time(w, p);
    w->stuck = time / 2;
    LeastTile least;
    bool tiled = stuck_in_tiles(w, &least);
    Need need = need_at(w, p, time);
    uint64_t sum = tiled ? least.bytes : need.bytes;
    bool other = sum > active_bytes(w);
    SizeAdvice b = {0};
    if (!w->options->no_remedy)
        find_size(w, other ? sum - active_bytes(w) : 0, &b);
    if (tiled)
        say_tiles(diag, w, &least);
    else if (other && need.manner == IN_PLACE)
        say_place(diag, w, sum);
    else if (other && need.manner == BY_SLABS)
        say_slabs(diag, w);
    else if (other && need.manner == BY_LINES)
        say_lines(diag, w, sum);
    else
        say_volumes(diag, w, p, result, time);
    if (w->options->no_remedy)
        return;
    note_size(diag, w, &b);
    if (!tiled)
        note_ways(diag, w);
}

void explain_length(Diag *diag, Work *w, uint32_t instructions) {
    diag_error(diag, w->spec->loc,
               "does not fit: the listing has %u instructions; %s holds %u%s",
               instructions, w->spec->machine, w->spec->max_instructions,
               of_images(w));
    SizeAdvice b = {0};
    if (w->options->no_remedy)
        return;
    find_size(w, 0, &b);
    note_size(diag, w, &b);
}
