/* refusal.c - why nothing fits: which step, which volumes, how many bytes
 * short, and a remedy.
 *
 * Input: the work as it got stuck. Output: one error with notes.
 * The size that would do is that of a plan which was made and judged, and the
 * one that would not was tried as well (advice.c).
 */
#include "alloc/explain/need.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/lower/lower.h"
#include "alloc/tile/tile.h"
#include "alloc/weights/weights.h"

#include "base/arith.h"
#include "base/text.h"

#include <string.h>

/* ---- texts ---- */

/* In the largest unit of which `like` is a whole number, too. */
static const char *size_text(Arena *arena, uint64_t bytes, uint64_t like) {
    static const struct {
        uint64_t scale;
        const char *name;
    } units[] = {{1 << 20, "MiB"}, {1 << 10, "KiB"}};
    for (uint32_t i = 0; i < sizeof units / sizeof *units; i++)
        if (bytes && bytes % units[i].scale == 0 && like % units[i].scale == 0)
            return arena_printf(arena, "%llu%s",
                                (unsigned long long)(bytes / units[i].scale),
                                units[i].name);
    return arena_printf(arena, "%llu", (unsigned long long)bytes);
}

/* "am", or "fast + bulk". */
static const char *active_names(const Facts *f) {
    const char *text = f->spec->memory[0].name;
    for (uint32_t m = 1; m < f->spec->n_active; m++)
        text = arena_printf(f->arena, "%s + %s", text, f->spec->memory[m].name);
    return text;
}

/* The first node of the step; NO_NODE. */
static NodeId step_first(const Attempt *a) {
    const Schedule *s = a->f->schedule;
    return a->stuck < s->n_steps && s->step[a->stuck].n
               ? s->step[a->stuck].slot[0].node
               : NO_NODE;
}

static const char *step_node(const Attempt *a) {
    NodeId id = step_first(a);
    return id.i == NONE ? "" : graph_node(a->f->g, id)->name;
}

static Loc step_loc(const Attempt *a) {
    NodeId id = step_first(a);
    return id.i == NONE ? a->f->spec->loc : graph_node(a->f->g, id)->loc;
}

/* ---- what is alive ---- */

uint64_t bytes_said(const Attempt *a, uint64_t bytes) {
    uint64_t align = a->f->spec->memory[0].align;
    return bytes > a->would_do && a->would_do + align > bytes ? a->would_do
                                                              : bytes;
}

static const char *owner_text(Arena *arena, const Owner *o, uint32_t h) {
    static const char *const text[] = {
        [OWNER_RESIDENT] = "",
        [OWNER_KEPT] = ", channels of it",
        [OWNER_ROW_TILE] = "",
        [OWNER_HARDWARE_TILE] = ", tiles of it",
        [OWNER_WEIGHTS] = ", weights of its layer",
    };
    if (o->cols)
        return arena_printf(arena, ", %u rows, %u columns, %u channels of it",
                            o->rows, o->cols, o->channels);
    if (o->channels)
        return arena_printf(arena, ", %u of its channels", o->channels);
    bool moves = o->kind == OWNER_BOUNCE;
    return (o->kind == OWNER_ROW_TILE && o->rows < h) || moves
               ? arena_printf(arena, ", %u of its rows%s", o->rows,
                              moves ? " on their way out" : "")
               : text[o->kind];
}

static void note_volumes(Diag *diag, const Attempt *a, const Line *line,
                         uint32_t n) {
    enum { MOST = 12 };
    const Facts *f = a->f;
    for (uint32_t i = 0; i < n && i < MOST; i++) {
        const Owner *o = &a->buffers.owner.at[line[i].buf];
        Volume v = plan_volume(f->g, o->tensor);
        const Tensor *t = graph_tensor(f->g, o->tensor);
        diag_note(diag, t->loc, "%s (%ux%ux%u%s): %s bytes", t->name, v.c, v.h,
                  v.w, owner_text(f->arena, o, v.h),
                  with_commas(f->arena, line[i].bytes));
    }
    if (n > MOST)
        diag_note(diag, (Loc){0}, "and %u smaller ones", n - MOST);
}

/* ---- remedies ---- */

static uint64_t lcm(uint64_t a, uint64_t b) {
    return a / gcd(a, b) * b;
}

uint64_t size_granule(const HwMemory *m) {
    uint64_t step = lcm(m->align ? m->align : 1, m->unit ? m->unit : 1);
    return step * (m->buffers ? m->buffers : 1);
}

/* Who is asked for sizes, and how long. */
typedef struct Adviser {
    const Facts *f;
    PlanOptions options;
    Budget guesses, plans;
} Adviser;

static bool seems_to_fit(void *context, uint64_t size) {
    Adviser *a = context;
    const Facts *f = a->f;
    if (budget_spent(&a->guesses))
        return false;
    Arena *arena = arena_new("remedy");
    bool fits = plan_exists(f->schedule, spec_within(arena, f->spec, size),
                            &a->options, f->memo);
    arena_free(arena);
    return fits;
}

static bool would_do(void *context, uint64_t size) {
    Adviser *a = context;
    const Asked *asked = a->f->options->asked;
    return asked->would_do(asked, &a->plans, size);
}

/* Sizes of the first memory that were tried, of which the larger one would do;
 * about `enough` bytes are looked at first. What lies highest may end within
 * the last granule; of many steps sizes are known to a KiB. */
static SizeAdvice size_that_fits(const Facts *f, uint64_t enough) {
    enum { GUESSES = 48, TRIES = 16, MOST_STEPS = 300 };
    const HwMemory *m = &f->spec->memory[0];
    Adviser a = {.f = f, .options = *f->options};
    a.guesses = budget_of(BUDGET_GUESS, f->schedule->n_steps);
    a.plans = budget_of(BUDGET_ADVICE, f->schedule->n_steps);
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
    if (f->schedule->n_steps > MOST_STEPS)
        search.step = search.fine = lcm(1024, size_granule(m));
    return advise_size(&search);
}

static bool by_row_tiles(const Facts *f, NodeId id) {
    return f->spec->tiling.kind == HW_TILING_SOFTWARE &&
           f->spec->backing >= 0 && on_engine(f, id) &&
           f->spec->tiling.rows.ops >> f->legal[id.i].op & 1;
}

/* Bytes of row tiles of so many rows, if a memory can hold them or not. */
static uint64_t row_tiles_wanted(const Facts *f, NodeId id, uint32_t rows) {
    const Node *node = graph_node(f->g, id);
    uint32_t in = row_tile_in_rows(f, id, rows);
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= node->n_in; i++) {
        sum += least_layout(f, node_operand(node, i), 0,
                            i < node->n_in ? in : rows);
    }
    return sum;
}

/* `least`: rows of its lowest stripe, which does not fit. */
static void note_too_high(Diag *diag, const Attempt *a, const Node *node,
                          uint32_t least, uint64_t bytes) {
    uint32_t h = plan_volume(a->f->g, node->out[0]).h;
    const char *size = with_commas(a->f->arena, bytes_said(a, bytes));
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

static bool step_tiled(const Attempt *a) {
    NodeId id = step_first(a);
    return id.i != NONE && a->d.mode[id.i].kind != MODE_WHOLE;
}

/* Whether the node runs by channel tiles where no stripe fits: how thick these
 * can be.
 */
static bool note_channel_tile(Diag *diag, const Attempt *attempt, NodeId id) {
    const Node *node = graph_node(attempt->f->g, id);
    Volume in = plan_volume(attempt->f->g, node->in[0]);
    uint32_t least = channel_tile_least(attempt->f, id);
    uint32_t most =
        channel_tile_largest(&attempt->d, id, in.c, active_bytes(attempt->f));
    uint32_t channels = most ? most : least;
    if (!least)
        return false;
    uint64_t bytes = least_layout(attempt->f, node->in[0], channels, in.h) +
                     least_layout(attempt->f, node->out[0], 0, 1) *
                         plan_volume(attempt->f->g, node->out[0]).h;
    const char *size =
        with_commas(attempt->f->arena, bytes_said(attempt, bytes));
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
static void note_stripe(Diag *diag, const Attempt *a) {
    NodeId id = step_first(a);
    if (id.i == NONE)
        return;
    if (step_tiled(a) && !by_row_tiles(a->f, id) &&
        channel_tile_least(a->f, id))
        note_channel_tile(diag, a, id);
    if (!by_row_tiles(a->f, id))
        return;
    const Node *node = graph_node(a->f->g, id);
    uint32_t h = plan_volume(a->f->g, node->out[0]).h;
    uint32_t rows = row_tile_highest(a->f, id, active_bytes(a->f));
    uint32_t least = row_tile_least(a->f, id);
    if (rows && rows < h)
        diag_note(diag, node->loc,
                  "%s by itself fits by stripes of at most %u of its %u rows: "
                  "%s bytes",
                  node->name, rows, h,
                  with_commas(a->f->arena, row_tiles_wanted(a->f, id, rows)));
    else if (!rows && note_boxes(diag, a, id))
        return;
    else if (!rows && least && (least < h || !note_channel_tile(diag, a, id)))
        note_too_high(diag, a, node, least, row_tiles_wanted(a->f, id, least));
}

static bool step_runs(const Attempt *a) {
    NodeId id = step_first(a);
    return id.i != NONE && on_engine(a->f, id);
}

/* Whether the machine has tiles for the step's node, if larger ones than fit.
 */
static bool has_tiles(const Attempt *a) {
    const HwTiling *tiling = &a->f->spec->tiling;
    bool any = false;
    for (uint32_t i = 0; step_runs(a) && i < tiling->tiles.n; i++)
        any |= tiling->kind == HW_TILING_HARDWARE &&
               hw_is_among(a->f->legal[step_first(a).i].op,
                           tiling->tiles.style[i].ops);
    return any;
}

static void note_ways(Diag *diag, const Attempt *attempt) {
    if (attempt->f->spec->backing < 0)
        diag_note(diag, (Loc){0},
                  "the machine has no backing memory: with one, volumes that "
                  "wait could leave %s",
                  active_names(attempt->f));
    else if (!step_tiled(attempt) && has_tiles(attempt))
        diag_note(diag, (Loc){0},
                  "the machine runs %s by tiles, but the smallest is too large "
                  "for %s",
                  step_node(attempt), active_names(attempt->f));
    else if (!step_tiled(attempt) && step_runs(attempt))
        diag_note(diag, (Loc){0},
                  "the machine cannot run %s by tiles: with tiling for it, a "
                  "part of each volume would do",
                  step_node(attempt));
}

static const char *of_images(const Facts *f) {
    uint32_t n = f->options->images;
    return n > 1 ? arena_printf(f->arena, " for each of %u images", n) : "";
}

/* What is in the way in a little less: another step, or the listing's length.
 */
static void note_last(Diag *diag, const Attempt *a, const SizeAdvice *b) {
    Arena *arena = arena_new("last");
    const HwSpec *spec = spec_within(arena, a->f->spec, b->too_small);
    Attempt *less = attempt_new(arena, a->f->schedule, spec, a->f->options,
                                a->f->memo, NULL);
    Plan plan = {0};
    less->explains = true;
    if (!work_fit(less)) {
        uint32_t time = worst_time(less);
        LeastTile least;
        less->stuck = time / 2;
        uint64_t sum = stuck_in_tiles(less, &least) ? least.bytes
                                                    : need_at(less, time).bytes;
        if (less->stuck != a->stuck && sum > active_bytes(less->f) &&
            sum <= b->enough)
            diag_note(diag, step_loc(less), "step %u (%s) needs that: %s bytes",
                      less->stuck + 1, step_node(less),
                      with_commas(a->f->arena, sum));
    } else if (actions_make(less, diag_new(arena), &less->buffers,
                            &less->result, &plan) &&
               plan_traffic(&plan).too_long) {
        diag_note(diag, (Loc){0},
                  "with less, listings have more than the %u instructions "
                  "that %s holds%s",
                  spec->max_instructions, spec->machine, of_images(less->f));
    }
    arena_free(arena);
}

/* Whether weights are planned, too: volumes alone say of no size that it would
 * do. */
static bool with_weights(const Facts *f) {
    return f->spec->tiling.rows.moves == HW_MOVES_QUEUED;
}

/* Sizes of which the larger one would do. */
static void find_size(Attempt *a, uint64_t short_of, SizeAdvice *b) {
    const HwMemory *m = &a->f->spec->memory[0];
    *b = with_weights(a->f) ? size_staged(a->f->options->asked)
                            : size_that_fits(a->f, m->size + short_of);
    a->would_do = b->too_small ? b->enough : 0;
}

uint64_t bytes_of_cores(const HwSpec *spec, uint32_t memory, uint64_t part) {
    bool shared = spec->cores.count && spec->cores.share >> memory & 1;
    return shared ? part * spec->cores.count : part;
}

void note_advice(Arena *arena, Diag *diag, const HwSpec *spec, uint32_t m,
                 SizeAdvice b) {
    const char *memory = spec->memory[m].name;
    b.enough = bytes_of_cores(spec, m, b.enough);
    b.too_small = bytes_of_cores(spec, m, b.too_small);
    if (b.enough && b.too_small)
        diag_note(diag, (Loc){0},
                  "--set memories.%s.size=%s would do; %s would not", memory,
                  size_text(arena, b.enough, b.too_small),
                  size_text(arena, b.too_small, b.enough));
    else if (b.enough)
        diag_note(diag, (Loc){0}, "--set memories.%s.size=%s would do", memory,
                  size_text(arena, b.enough, 0));
}

static void note_size(Diag *diag, const Attempt *a, const SizeAdvice *b) {
    note_advice(a->f->arena, diag, a->f->spec, 0, *b);
    if (a->would_do && !with_weights(a->f))
        note_last(diag, a, b);
}

/* ---- the error ---- */

/* What is set aside for weights is the most that any layer needs at once, not
 * what this step does: how much is short is not known by that. */
static const char *how_short(const Facts *f, uint64_t sum) {
    const PlanOptions *o = f->options;
    return o->aside_for
               ? arena_printf(f->arena, " beside %s for weights of %s",
                              with_commas(f->arena, o->aside), o->aside_for)
               : arena_printf(f->arena, ": %s short",
                              with_commas(f->arena, sum - active_bytes(f)));
}

/* Weights come by blocks of output channels where a block's results have an
 * address. */
static void note_blocks(Diag *diag, const Facts *f) {
    const HwMemory *m = &f->spec->memory[0];
    if (!f->options->aside_for || layout_granule(m->layout) ||
        hwspec_parts_between(f->spec, m))
        return;
    diag_note(diag, m->loc,
              "weights of a layer are loaded whole: layout `%s` has channels "
              "inside, so its output channels have addresses of their own only "
              "if all rows tell `part.on`, `part.start` and `part.c` of "
              "operands",
              m->layout->name);
}

static void say_short(Diag *diag, const Attempt *a, uint64_t bytes) {
    uint64_t sum = bytes_said(a, bytes);
    diag_error(
        diag, step_loc(a),
        "does not fit: step %u (%s) needs %s bytes of %s, which has %s%s",
        a->stuck + 1, step_node(a), with_commas(a->f->arena, sum),
        active_names(a->f), with_commas(a->f->arena, active_bytes(a->f)),
        how_short(a->f, sum));
    note_blocks(diag, a->f);
}

/* There would be bytes enough, but not in one piece. */
static void say_pieces(Diag *diag, const Attempt *attempt, const Line *line,
                       uint32_t n, uint64_t sum) {
    for (uint32_t i = 0; i < n; i++) {
        const Owner *o = &attempt->buffers.owner.at[line[i].buf];
        if (o->least != UINT64_MAX)
            continue;
        diag_error(diag, step_loc(attempt),
                   "does not fit: step %u (%s) has %s of %s bytes, which %s "
                   "cannot hold in one piece",
                   attempt->stuck + 1, step_node(attempt),
                   graph_tensor(attempt->f->g, o->tensor)->name,
                   with_commas(attempt->f->arena, line[i].bytes),
                   active_names(attempt->f));
        return;
    }
    if (!attempt->result.pool)
        diag_error(diag, step_loc(attempt),
                   "does not fit: at step %u (%s) a volume must change between "
                   "the memories of two engines",
                   attempt->stuck + 1, step_node(attempt));
    else
        diag_error(diag, step_loc(attempt),
                   "does not fit: at step %u (%s) volumes of %s bytes wait in "
                   "%s, which has %s, but planner %s finds no place for all",
                   attempt->stuck + 1, step_node(attempt),
                   with_commas(attempt->f->arena, sum),
                   active_names(attempt->f),
                   with_commas(attempt->f->arena, active_bytes(attempt->f)),
                   attempt->f->options->planner);
}

static void say_volumes(Diag *diag, const Attempt *a, uint32_t time) {
    Line *line;
    uint32_t n = alive_at(a, time, &line);
    uint64_t sum = sum_at(a, time);
    if (sum > active_bytes(a->f))
        say_short(diag, a, sum);
    else
        say_pieces(diag, a, line, n, sum);
    note_volumes(diag, a, line, n);
    note_stripe(diag, a);
}

/* Where no stripe is as small as a channel tile. */
static void say_channel_tiles(Diag *diag, const Attempt *a, uint64_t bytes) {
    NodeId id = step_only(a->f, a->stuck);
    const Node *node = graph_node(a->f->g, id);
    say_short(diag, a, bytes);
    diag_note(diag, node->loc,
              "no part of %s fits: the smallest, %u of its %u channels, takes "
              "%s bytes%s",
              node->name, channel_tiles_thinnest(&a->d, id),
              plan_volume(a->f->g, node->out[0]).c,
              with_commas(a->f->arena, bytes_said(a, bytes)),
              is_dense(node) ? " with all that it reads" : "");
}

/* Where none is as small as a box. */
static void say_boxes(Diag *diag, const Attempt *a, uint64_t bytes) {
    say_short(diag, a, bytes);
    note_boxes(diag, a, step_only(a->f, a->stuck));
}

/* Where none is as small as line buffers. */
static void say_lines(Diag *diag, const Attempt *a, uint64_t bytes) {
    say_short(diag, a, bytes);
    note_lines(diag, &a->d, a->stuck);
}

/* Where the result takes the place of an operand, as nothing else would do. */
static void say_place(Diag *diag, const Attempt *a, uint64_t bytes) {
    const Node *node = graph_node(a->f->g, step_only(a->f, a->stuck));
    say_short(diag, a, bytes);
    for (uint32_t i = 0; i < node->n_in; i++) {
        const Tensor *t = graph_tensor(a->f->g, node->in[i]);
        Volume v = plan_volume(a->f->g, node->in[i]);
        if (i == 0 || !same_tensor(node->in[i - 1], node->in[i]))
            diag_note(diag, t->loc, "%s (%ux%ux%u): %s bytes", t->name, v.c,
                      v.h, v.w,
                      with_commas(a->f->arena,
                                  least_layout(a->f, node->in[i], 0, v.h)));
    }
    diag_note(diag, node->loc, "%s takes the place of an operand",
              graph_tensor(a->f->g, node->out[0])->name);
}

static void say_tiles(Diag *diag, const Attempt *a, const LeastTile *least) {
    NodeId id = step_only(a->f, a->stuck);
    say_short(diag, a, least->bytes);
    if (least->mode.kind == MODE_HARDWARE)
        note_least_tile(diag, a, id, least);
    else
        note_channel_tile(diag, a, id);
}

/* NULL: as it was tried. */
static void (*const say_manner[])(Diag *, const Attempt *, uint64_t) = {
    [AS_TRIED] = NULL,
    [IN_PLACE] = say_place,
    [BY_CHANNEL_TILES] = say_channel_tiles,
    [BY_BOXES] = say_boxes,
    [BY_LINES] = say_lines,
};

void explain(Diag *diag, Attempt *a) {
    uint32_t time = worst_time(a);
    a->stuck = time / 2;
    LeastTile least;
    bool tiled = stuck_in_tiles(a, &least);
    Need need = need_at(a, time);
    uint64_t sum = tiled ? least.bytes : need.bytes;
    bool other = sum > active_bytes(a->f);
    SizeAdvice b = {0};
    if (!a->f->options->no_remedy)
        find_size(a, other ? sum - active_bytes(a->f) : 0, &b);
    if (tiled)
        say_tiles(diag, a, &least);
    else if (other && say_manner[need.manner])
        say_manner[need.manner](diag, a, sum);
    else
        say_volumes(diag, a, time);
    if (a->f->options->no_remedy)
        return;
    note_size(diag, a, &b);
    if (!tiled)
        note_ways(diag, a);
}

void explain_length(Diag *diag, Attempt *a, uint32_t instructions) {
    diag_error(diag, a->f->spec->loc,
               "does not fit: the listing has %u instructions; %s holds %u%s",
               instructions, a->f->spec->machine, a->f->spec->max_instructions,
               of_images(a->f));
    SizeAdvice b = {0};
    if (a->f->options->no_remedy)
        return;
    find_size(a, 0, &b);
    note_size(diag, a, &b);
}
