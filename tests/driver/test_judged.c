/* test_judged.c - what the judge says of damaged plans, as recorded.
 *
 * A line of judged.txt is what `compile` takes, a colon, and of EACH plans with
 * one thing changed (tests/plan/damage.h) how many the judge accepts, and a
 * digest of what it says of the others. Whether those that it accepts are right
 * is what tests/figures.py asks. `driver_test_judged --write` makes the right
 * sides anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/commands.h"
#include "driver/option_table.h"
#include "driver/pipeline.h"
#include "tests/plan/damage.h"
#include "tests/recorded.h"

static const char *const recorded = "tests/driver/judged.txt";

enum { EACH = 150, MOST_WORDS = 24 };

static const Plan *plan_of(Arena *arena, const char *command) {
    static const OptionAt taken[] = {
        SHARED(targets), SHARED(settings),    SHARED(order),     SHARED(side),
        SHARED(planner), SHARED(replication), SHARED(objective), SHARED(mode),
        SHARED(images),  SHARED(recompute)};
    static const Command judged = {.name = "judged",
                                   .argument = "NET",
                                   .option = taken,
                                   .n_options = sizeof taken / sizeof *taken};
    char *words = arena_printf(arena, "%s", command);
    char *word[MOST_WORDS] = {"judged"};
    int n = 1;
    for (char *at = strtok(words, " "); at; at = strtok(NULL, " "))
        word[n++] = at;
    Diag *diag = diag_new(arena);
    Options options = options_default();
    Pipeline p;
    if (!options_parse(arena, diag, &judged, n, word, &options) ||
        pipeline_run(arena, diag, &options, STAGE_ALLOC, &p) != EXIT_FINE)
        fail_msg("%s: %s", command, diag_at(diag, 0)->text);
    return p.plan;
}

static void add_judged(Text *out, const Plan *plan, const char *command) {
    Damager damager = {.plan = plan, .seed = rng_seed(command, 1)};
    uint32_t accepted = 0;
    uint64_t all = 1;
    for (uint32_t i = 0; i < EACH; i++) {
        damager.arena = arena_new("damaged");
        Damaged d = copy_plan(&damager);
        damage(&damager, &d);
        const char *said = plan_judge(damager.arena, &d.plan);
        accepted += !said;
        for (; said && *said; said++)
            all = rng_bits(all, (uint8_t)*said);
        all = rng_bits(all, i);
        arena_free(damager.arena);
    }
    text_addf(out, "%s: %u of %u accepted, %08x\n", command, accepted, EACH,
              (unsigned)all);
}

static const char *everything(Arena *arena) {
    Text text = text_new(arena);
    char *at = recorded_text(arena, recorded);
    for (; *at; at += *at == '\n') {
        int length = (int)strcspn(at, ":\n");
        Arena *own = arena_new("plan");
        const char *command = arena_printf(own, "%.*s", length, at);
        add_judged(&text, plan_of(own, command), command);
        arena_free(own);
        at += strcspn(at, "\n");
    }
    return text_str(&text);
}

static void damage_is_judged_as_recorded(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    recorded_compare(recorded, everything(arena));
    arena_free(arena);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--write"))
        return recorded_write(recorded, everything(arena_new("test")));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_judged_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
