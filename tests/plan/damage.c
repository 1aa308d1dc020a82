/* damage.c - plans with one thing changed: what says the judge, and is it so?
 *
 *     plan_damage compile's-options COUNT
 *
 * Input: a network and a machine, as `compile` takes them. Makes the plan and
 * COUNT damaged ones: a field of a placement, an action or a block of weights
 * is one more, one less or another's; an action is left out, done twice or at
 * another time. What plan_judge accepts is written as a listing and simulated:
 * there must be no violation, and the same outputs. Output: how many were
 * accepted, a digest of all that the judge said; what it accepted and is wrong,
 * each in a line. Exits 1 if there are such.
 */
#include "base/rng.h"
#include "base/text.h"
#include "codegen/codegen.h"
#include "driver/commands.h"
#include "driver/option_table.h"
#include "driver/pipeline.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Field {
    const char *name;
    size_t at;
} Field;

#define OF_PLACEMENT(field)                                                    \
    { "placement." #field, offsetof(Placement, field) }
static const Field placement_field[] = {
    OF_PLACEMENT(row),     OF_PLACEMENT(rows),    OF_PLACEMENT(col),
    OF_PLACEMENT(cols),    OF_PLACEMENT(c),       OF_PLACEMENT(n_c),
    OF_PLACEMENT(whole.c), OF_PLACEMENT(whole.h), OF_PLACEMENT(whole.w),
    OF_PLACEMENT(part_c),
};

#define OF_ACTION(field)                                                       \
    { "action." #field, offsetof(Action, field) }
static const Field action_field[] = {
    OF_ACTION(step),    OF_ACTION(row),     OF_ACTION(rows),
    OF_ACTION(in_row),  OF_ACTION(in_rows), OF_ACTION(pad_top),
    OF_ACTION(col),     OF_ACTION(cols),    OF_ACTION(in_col),
    OF_ACTION(in_cols), OF_ACTION(out),     OF_ACTION(pad_left),
    OF_ACTION(again),   OF_ACTION(weights), OF_ACTION(pool_pad_top),
};

#define OF_BLOCK(field)                                                        \
    { "block." #field, offsetof(WeightBlock, field) }
static const Field block_field[] = {OF_BLOCK(c), OF_BLOCK(n_c), OF_BLOCK(taps)};

enum {
    N_PLACEMENT_FIELDS = sizeof placement_field / sizeof *placement_field,
    N_ACTION_FIELDS = sizeof action_field / sizeof *action_field,
    N_BLOCK_FIELDS = sizeof block_field / sizeof *block_field
};

typedef struct Campaign {
    Arena *arena; /* of one damaged plan */
    const Pipeline *pipeline;
    uint64_t seed, drawn;
    uint64_t right; /* digest of what the network's listing computes */
    uint64_t said;  /* digest of all sentences */
    uint32_t accepted, wrong;
} Campaign;

/* A copy that may be changed. */
typedef struct Damaged {
    Plan plan;
    Placement *placement;
    Action *action;
    WeightBlock *block;
    const char *what;
} Damaged;

static uint32_t draw(Campaign *c, uint32_t below) {
    return (uint32_t)(rng_bits(c->seed, c->drawn++) % below);
}

static uint64_t mix(uint64_t hash, const void *data, size_t n) {
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

/* ---- damage ---- */

static Damaged copy_plan(Campaign *c) {
    const Plan *p = c->pipeline->plan;
    Damaged d = {.plan = *p};
    d.placement =
        ARENA_COPY(c->arena, Placement, p->placement, p->n_placements);
    d.action = ARENA_ARRAY(c->arena, Action, p->n_actions + 1);
    memcpy(d.action, p->action, p->n_actions * sizeof *p->action);
    for (uint32_t i = 0; i < p->n_actions; i++)
        d.action[i].in =
            ARENA_COPY(c->arena, uint32_t, p->action[i].in, p->action[i].n_in);
    d.block = ARENA_COPY(c->arena, WeightBlock, p->block, p->n_blocks);
    d.plan.placement = d.placement;
    d.plan.action = d.action;
    d.plan.block = d.block;
    return d;
}

/* One more, one less, or as in the other. Not below 0. */
static void change(Campaign *c, const Field *f, void *item, const void *other,
                   uint32_t i, Damaged *d) {
    uint32_t *at = (uint32_t *)((char *)item + f->at), was = *at;
    const uint32_t *from = (const uint32_t *)((const char *)other + f->at);
    uint32_t how = draw(c, 3);
    *at = how == 0 ? was + 1 : how == 1 && was ? was - 1 : *from;
    d->what = arena_printf(c->arena, "%u: %s %u, not %u", i, f->name, *at, was);
}

static void change_placement(Campaign *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_placements);
    Placement *p = &d->placement[i],
              *other = &d->placement[draw(c, d->plan.n_placements)];
    change(c, &placement_field[draw(c, N_PLACEMENT_FIELDS)], p, other, i, d);
    const HwMemory *m = &d->plan.schedule->spec->memory[p->memory];
    if (draw(c, 2) && p->whole.c && p->whole.h && p->whole.w)
        p->bytes = layout_bytes(m->layout, &p->whole);
}

/* Some places further, or where another lies. */
static void move_placement(Campaign *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_placements);
    Placement *p = &d->placement[i],
              *other = &d->placement[draw(c, d->plan.n_placements)];
    const HwMemory *m = &d->plan.schedule->spec->memory[p->memory];
    uint64_t align = m->align ? m->align : 1, was = p->offset;
    uint64_t by = align * (1 + draw(c, 4));
    switch (draw(c, 4)) {
    case 0:
        p->offset += by;
        break;
    case 1:
        p->offset = was >= by ? was - by : was + by;
        break;
    case 2:
        p->offset = other->offset;
        break;
    default:
        p->offset++;
    }
    d->what =
        arena_printf(c->arena, "%u: placement.offset %" PRIu64 ", not %" PRIu64,
                     i, p->offset, was);
}

static void change_action(Campaign *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_actions);
    Action *a = &d->action[i], *b = &d->action[draw(c, d->plan.n_actions)];
    change(c, &action_field[draw(c, N_ACTION_FIELDS)], a, b, i, d);
    a->out %= d->plan.n_placements;
}

static void change_block(Campaign *c, Damaged *d) {
    uint32_t n = d->plan.n_blocks;
    if (!n) {
        change_action(c, d);
        return;
    }
    uint32_t i = draw(c, n), k = draw(c, n);
    uint64_t was = d->block[i].offset;
    if (draw(c, 2)) {
        change(c, &block_field[draw(c, N_BLOCK_FIELDS)], &d->block[i],
               &d->block[k], i, d);
        return;
    }
    const HwSpec *spec = d->plan.schedule->spec;
    uint32_t align = spec->memory[spec->weights].align;
    d->block[i].offset =
        i == k ? was + (align ? align : 1) : d->block[k].offset;
    d->what = arena_printf(c->arena, "%u: block.offset", i);
}

static void change_operand(Campaign *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_actions);
    const Action *a = &d->action[i];
    if (!a->n_in) {
        change_action(c, d);
        return;
    }
    uint32_t k = draw(c, a->n_in), other = draw(c, d->plan.n_placements);
    ((uint32_t *)a->in)[k] = other;
    d->what =
        arena_printf(c->arena, "%u: operand %u is placement %u", i, k, other);
}

static void change_engine(Campaign *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_actions);
    Action *a = &d->action[i];
    if (a->kind != ACTION_RUN) {
        change_operand(c, d);
        return;
    }
    a->legal.engine = (int32_t)draw(c, d->plan.schedule->spec->n_engines);
    d->what = arena_printf(c->arena, "%u: engine %d", i, a->legal.engine);
}

static void drop(Campaign *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_actions);
    memmove(&d->action[i], &d->action[i + 1],
            (d->plan.n_actions - i - 1) * sizeof(Action));
    d->plan.n_actions--;
    d->what = arena_printf(c->arena, "%u: dropped", i);
}

static void twice(Campaign *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_actions);
    memmove(&d->action[i + 1], &d->action[i],
            (d->plan.n_actions - i) * sizeof(Action));
    d->plan.n_actions++;
    d->what = arena_printf(c->arena, "%u: twice", i);
}

/* An action is done earlier or later; steps stay in order. */
static void reorder(Campaign *c, Damaged *d) {
    uint32_t n = d->plan.n_actions, i = draw(c, n);
    uint32_t k = draw(c, 2) ? draw(c, n) : i + 1 < n ? i + 1 : 0;
    Action moved = d->action[i];
    int32_t by = k > i ? 1 : -1;
    for (uint32_t at = i; at != k; at = (uint32_t)((int32_t)at + by)) {
        uint32_t step = d->action[at].step, index = d->action[at].at;
        d->action[at] = d->action[(int32_t)at + by];
        d->action[at].step = step;
        d->action[at].at = index;
    }
    moved.step = d->action[k].step;
    moved.at = d->action[k].at;
    d->action[k] = moved;
    d->what = arena_printf(c->arena, "%u: moved to %u", i, k);
}

static void damage(Campaign *c, Damaged *d) {
    static void (*const kind[])(Campaign *, Damaged *) = {
        change_placement, move_placement, change_action,
        change_action,    change_block,   change_operand,
        change_engine,    drop,           twice,
        reorder};
    kind[draw(c, sizeof kind / sizeof *kind)](c, d);
}

/* ---- what it computes ---- */

/* 0: a violation, or not even a listing. */
static uint64_t computed(Arena *arena, const Plan *plan) {
    Diag *diag = diag_new(arena);
    const Listing *listing = codegen_run(arena, diag, plan, NULL);
    SimOptions options = {.seed = 1, .lax = true};
    const SimResult *r =
        listing ? sim_run(arena, diag, listing, 0, NULL, &options) : NULL;
    if (r && r->n_violations)
        printf("  %s\n", r->violation[0].text);
    if (!r || r->n_violations)
        return 0;
    uint64_t hash = 1;
    for (uint32_t i = 0; i < r->n_outputs; i++)
        if (r->value[i])
            hash = mix(hash, r->value[i],
                       shape_count(&r->output[i].shape) * sizeof(float));
    return hash ? hash : 1;
}

/* In a process of its own: what is damaged may break what trusts plans. A plan
 * that is no listing does no harm. */
static bool is_right(const Campaign *c, const Plan *plan) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        Arena *arena = arena_new("listing");
        bool listed = codegen_run(arena, diag_new(arena), plan, NULL);
        bool wrong = listed && computed(arena, plan) != c->right;
        fflush(stdout);
        _exit(wrong);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        bug("no child");
    return WIFEXITED(status) && WEXITSTATUS(status) != 1;
}

static void try_one(Campaign *c) {
    c->arena = arena_new("damaged");
    Damaged d = copy_plan(c);
    damage(c, &d);
    const char *said = plan_judge(c->arena, &d.plan);
    c->said = mix(c->said, said ? said : "", said ? strlen(said) : 0);
    c->accepted += !said;
    if (!said && !is_right(c, &d.plan)) {
        printf("accepted: %s\n", d.what);
        c->wrong++;
    }
    arena_free(c->arena);
}

int main(int argc, char **argv) {
    static const OptionAt taken[] = {
        SHARED(targets), SHARED(settings),    SHARED(seed),
        SHARED(batch),   SHARED(order),       SHARED(side),
        SHARED(effort),  SHARED(objective),   SHARED(planner),
        SHARED(budget),  SHARED(replication), SHARED(mode),
        SHARED(images)};
    static const Command command = {.name = "damage",
                                    .argument = "NET",
                                    .option = taken,
                                    .n_options = sizeof taken / sizeof *taken};
    Arena *arena = arena_new("plan_damage");
    Diag *diag = diag_new(arena);
    Options options = options_default();
    Pipeline p;
    long count = argc > 1 ? strtol(argv[argc - 1], NULL, 10) : 0;
    if (count < 1 ||
        !options_parse(arena, diag, &command, argc - 1, argv, &options) ||
        pipeline_run(arena, diag, &options, STAGE_ALLOC, &p) != EXIT_FINE) {
        diag_print(diag, stderr);
        return 2;
    }
    Campaign c = {.pipeline = &p, .seed = options.seed};
    c.right = computed(arena, p.plan);
    if (!c.right) {
        puts("the plan itself is wrong");
        return 1;
    }
    for (long i = 0; i < count; i++)
        try_one(&c);
    printf("%ld damaged plans, %u accepted, %u of them wrong, %016" PRIx64 "\n",
           count, c.accepted, c.wrong, c.said);
    arena_free(arena);
    return c.wrong > 0;
}
