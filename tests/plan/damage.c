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
#include "tests/plan/damage.h"
#include "base/text.h"
#include "codegen/codegen.h"
#include "driver/commands.h"
#include "driver/option_table.h"
#include "driver/pipeline.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Campaign {
    Damager damager;
    uint64_t right; /* digest of what the network's listing computes */
    uint64_t said;  /* digest of all sentences */
    uint32_t accepted, wrong;
} Campaign;

static uint64_t mix(uint64_t hash, const void *data, size_t n) {
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
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
    Damager *damager = &c->damager;
    damager->arena = arena_new("damaged");
    Damaged d = copy_plan(damager);
    damage(damager, &d);
    const char *said = plan_judge(damager->arena, &d.plan);
    c->said = mix(c->said, said ? said : "", said ? strlen(said) : 0);
    c->accepted += !said;
    if (!said && !is_right(c, &d.plan)) {
        printf("accepted: %s\n", d.what);
        c->wrong++;
    }
    arena_free(damager->arena);
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
    Campaign c = {.damager = {.plan = p.plan, .seed = options.seed}};
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
