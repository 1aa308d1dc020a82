/* small_roles.c - memories of roles weights, bias and sums that are too small.
 *
 * Input: what was asked of the planner. Output: an error at the memory, which
 * says what a layer takes of it at the least where that is more than there is;
 * a size that would do, for which a plan was made.
 */
#include "alloc/explain/explain.h"
#include "alloc/search/blocks.h"
#include "alloc/tile/tile.h"
#include "alloc/weights/weights.h"
#include "hwspec/insn.h"

#include "base/text.h"

/* ---- the roles ---- */

static uint64_t least_weights(const HwSpec *spec, const Graph *g,
                              const Slot *slot) {
    return hwspec_stages(spec, slot->legal.op) ? block_floor(spec, g, slot) : 0;
}

static uint64_t least_biases(const HwSpec *spec, const Graph *g,
                             const Slot *slot) {
    bool has = graph_node(g, slot->node)->constant[CONST_BIAS].i != NONE;
    uint64_t one = spec->memory[spec->bias].layout->element;
    return has && hwspec_loads_bias(spec, slot->legal.op)
               ? run_channels_least(spec, g, slot->node, &slot->legal) * one
               : 0;
}

static uint64_t least_sums(const HwSpec *spec, const Graph *g,
                           const Slot *slot) {
    return hwspec_keeps_sums(spec, slot->legal.op, slot->legal.engine)
               ? sums_least(spec, g, slot->node, &slot->legal)
               : 0;
}

static const struct {
    const char *what, *come;
    uint64_t (*least)(const HwSpec *spec, const Graph *g, const Slot *slot);
} roles[] = {{"weights", "can be loaded", least_weights},
             {"biases", "can be loaded", least_biases},
             {"sums", "one instruction can have", least_sums}};
enum { ROLES = sizeof roles / sizeof *roles };

/* 0: the machine has none. */
static uint32_t memory_of(const HwSpec *spec, uint32_t role) {
    const uint32_t memory[ROLES] = {spec->weights, spec->bias, spec->sums};
    return memory[role];
}

/* The layer that takes the most at the least. */
typedef struct Least {
    uint64_t bytes;
    const Slot *slot;
} Least;

static Least least_of(const Schedule *schedule, uint32_t role) {
    Least most = {0};
    for (uint32_t i = 0; i < schedule->n_steps; i++)
        for (uint32_t k = 0; k < schedule->step[i].n; k++) {
            const Slot *slot = &schedule->step[i].slot[k];
            if (slot->legal.engine < 0)
                continue;
            uint64_t bytes =
                roles[role].least(schedule->spec, schedule->graph, slot);
            if (bytes > most.bytes)
                most = (Least){bytes, slot};
        }
    return most;
}

/* ---- what would do ---- */

typedef struct Larger {
    const Asked *asked;
    uint32_t memory;
    Budget plans;
} Larger;

/* That memory alone is so large: a plan is made. */
static bool would_do(void *context, uint64_t size) {
    Larger *l = context;
    Arena *arena = arena_new("larger");
    Schedule *schedule = ARENA_COPY(arena, Schedule, l->asked->schedule, 1);
    HwSpec *spec = ARENA_COPY(arena, HwSpec, schedule->spec, 1);
    HwMemory *memory =
        ARENA_COPY(arena, HwMemory, spec->memory, spec->n_memories);
    memory[l->memory].size = size;
    spec->memory = memory;
    schedule->spec = spec;
    const Asked larger = {schedule, l->asked->options, l->asked->would_do,
                          NULL};
    bool does = larger.would_do(&larger, &l->plans, memory[0].size);
    arena_free(arena);
    return does;
}

/* At least as much. */
static SizeAdvice advise(const Asked *asked, uint32_t memory, uint64_t least) {
    enum { TRIES = 8 };
    const HwMemory *m = &asked->schedule->spec->memory[memory];
    Larger l = {asked, memory,
                budget_of(BUDGET_ADVICE, asked->schedule->n_steps)};
    uint64_t step = size_granule(m);
    return advise_size(&(SizeSearch){.step = step,
                                     .fine = step,
                                     .fails = least > step ? least - step : 0,
                                     .guess = least,
                                     .does = would_do,
                                     .context = &l,
                                     .budget = &l.plans,
                                     .tries = TRIES});
}

/* ---- in words ---- */

/* How fewer weights of the layer could be loaded. */
static void note_fewer(Arena *arena, Diag *diag, const Schedule *schedule,
                       const Least *l) {
    const HwSpec *spec = schedule->spec;
    const Graph *g = schedule->graph;
    const Legal *legal = &l->slot->legal;
    const HwEngine *engine = &spec->engine[legal->engine];
    uint32_t channels = run_channels_least(spec, g, l->slot->node, legal);
    uint32_t area = kernel_area(g, graph_node(g, l->slot->node));
    uint64_t each = l->bytes / channels;
    bool may = legal->op == HW_OP_CONV || legal->op == HW_OP_FC;
    diag_note(diag, (Loc){0},
              "they are those of %u output channels, %s bytes each", channels,
              with_commas(arena, each));
    if (may && !hwspec_adds_up(spec, legal->op, legal->engine))
        diag_note(diag, engine->loc,
                  "engine %s adds up all input channels at once: with "
                  "`operands.sums`, or, of real numbers, with "
                  "`limits.taps`, weights of some would do",
                  engine->name);
    else if (may && area > 1 && !(spec->insns->tells_taps >> legal->op & 1))
        diag_note(diag, engine->loc,
                  "rows of %s and load_weights that told `weights.tap.first` "
                  "and `weights.tap.last` would load those of some of its %u "
                  "taps",
                  hw_op_name[legal->op], area);
}

static void note_size(Arena *arena, Diag *diag, const Asked *asked,
                      uint32_t memory, uint64_t least) {
    const HwSpec *spec = asked->schedule->spec;
    SizeAdvice b = advise(asked, memory, least);
    b.too_small = 0; /* the error says it */
    if (b.enough)
        note_advice(arena, diag, spec, memory, b);
    else
        diag_note(diag, (Loc){0},
                  "--set memories.%s.size=%llu alone would not do",
                  spec->memory[memory].name,
                  (unsigned long long)bytes_of_cores(spec, memory, least));
}

bool roles_too_small(Arena *arena, Diag *diag, const Schedule *schedule,
                     const PlanOptions *options, bool says) {
    const HwSpec *spec = schedule->spec;
    for (uint32_t r = 0; r < ROLES; r++) {
        const HwMemory *m = &spec->memory[memory_of(spec, r)];
        Least l = {0};
        if (memory_of(spec, r))
            l = least_of(schedule, r);
        if (l.bytes <= hwspec_room(m))
            continue;
        if (!says)
            return true;
        diag_error(diag, m->loc,
                   "does not fit: the fewest %s of %s that %s take %s bytes of "
                   "%s, which has %s%s",
                   roles[r].what,
                   graph_node(schedule->graph, l.slot->node)->name,
                   roles[r].come, with_commas(arena, l.bytes), m->name,
                   with_commas(arena, hwspec_room(m)),
                   m->buffers > 1 ? " in a buffer" : "");
        if (r == 0)
            note_fewer(arena, diag, schedule, &l);
        if (!options->no_remedy)
            note_size(arena, diag, options->asked, memory_of(spec, r),
                      l.bytes * (m->buffers ? m->buffers : 1));
        return true;
    }
    return false;
}

void explain_roles(Arena *arena, Diag *diag, const Schedule *schedule,
                   const PlanOptions *options) {
    const HwSpec *spec = schedule->spec;
    for (uint32_t r = 0; r < ROLES && !options->no_remedy; r++) {
        uint32_t memory = memory_of(spec, r);
        const HwMemory *m = &spec->memory[memory];
        SizeAdvice b = {0};
        if (memory)
            b = advise(options->asked, memory, 2 * m->size);
        if (!b.enough)
            continue;
        diag_error(diag, m->loc,
                   "does not fit: %s, which has %s bytes, leaves %s no room",
                   m->name, with_commas(arena, m->size), roles[r].what);
        note_advice(arena, diag, spec, memory, b);
        return;
    }
    const HwMemory *m = &spec->memory[spec->weights];
    diag_error(diag, m->loc,
               "does not fit: %s, which has %s bytes, leaves weights no room",
               m->name, with_commas(arena, m->size));
}
