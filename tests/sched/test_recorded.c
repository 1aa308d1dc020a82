/* test_recorded.c - the orders of random networks, as recorded.
 *
 * Each strategy with each aim, on a machine and without one, with replication
 * and ahead: a line of recorded.txt is a network with a strategy, of each aim
 * the facts and a digest of the steps. Other orders may be as good, but must be
 * meant: `sched_test_recorded --write` makes the file anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "tests/recorded.h"
#include "tests/sched/nets.h"

static const char *const recorded = "tests/sched/recorded.txt";

enum { NETS = 16, BLOCKS = 6, BUDGET = 3000 };

/* Blocks one behind the other: two or three branches of one to three layers,
 * which a concat joins. */
static const Graph *blocks(Arena *arena, uint64_t seed, uint32_t n) {
    Graph *g = graph_new(arena, "blocks");
    uint64_t at = 0;
    TensorId x = add(g, OP_INPUT, 0, NULL, 8, 4);
    for (uint32_t i = 0; i < n; i++) {
        TensorId end[3];
        uint32_t n_ends = 2 + (uint32_t)(rng_bits(seed, at++) % 2);
        for (uint32_t b = 0; b < n_ends; b++) {
            end[b] = x;
            for (uint64_t k = rng_bits(seed, at++) % 3 + 1; k-- > 0;) {
                uint64_t c = 3 + rng_bits(seed, at++) % 30;
                end[b] = c % 4 ? add(g, OP_CONV, 1, &end[b], (uint32_t)c, 1)
                               : add(g, OP_POOL, 1, &end[b], 0, 3);
            }
        }
        x = add(g, OP_CONCAT, n_ends, end, 0, 0);
    }
    graph_mark_output(g, add(g, OP_CONV, 1, &x, 8, 1));
    graph_verify(g, "test");
    return g;
}

static uint64_t digest_of(const Schedule *s) {
    uint64_t all = s->n_steps;
    for (uint32_t i = 0; i < s->n_steps; i++) {
        all = rng_bits(all ^ s->live[i], s->step[i].n);
        for (uint32_t k = 0; k < s->step[i].n; k++)
            all = rng_bits(all, s->step[i].slot[k].node.i);
    }
    for (uint32_t i = 0; i < s->graph->node.n; i++)
        all = rng_bits(all, s->step_of[i]);
    return all & 0xffff;
}

static void add_schedule(Text *line, const Schedule *s) {
    const OrderFacts *f = &s->facts;
    text_addf(line, "; %u %llu/%llu%s", s->n_steps, (unsigned long long)f->peak,
              (unsigned long long)f->bound, f->proved ? "!" : "");
    text_addf(line, " %llu %llu %llu%s", (unsigned long long)f->states,
              (unsigned long long)f->cycles, (unsigned long long)f->least_cost,
              f->cost_proved ? "!" : "");
    if (f->parts)
        text_addf(line, " %u %llu %llu %u", f->parts,
                  (unsigned long long)f->orders,
                  (unsigned long long)f->seed_peak, f->seed_steps);
    text_addf(line, " %04x", (unsigned)digest_of(s));
}

static const char *orders(Arena *arena) {
    Text text = text_new(arena);
    const HwSpec *spec = packed(arena);
    Diag *diag = diag_new(arena);
    for (uint32_t net = 0; net < NETS; net++) {
        const Graph *g = net < NETS - BLOCKS
                             ? random_graph(arena, net, 4 + 7 * net % 37)
                             : blocks(arena, net, 1 + net % BLOCKS);
        for (uint32_t k = 0; k < n_strategies; k++) {
            SchedOptions o = {
                .strategy = strategies[k].name, .seed = net, .budget = BUDGET};
            text_addf(&text, "%u %s", net, o.strategy);
            add_schedule(&text, sched_search(arena, diag, NULL, g, &o));
            for (o.aim = 0; o.aim < SIDE_BY_SIDE_COUNT; o.aim++)
                add_schedule(&text, sched_search(arena, diag, spec, g, &o));
            o.aim = SIDE_BY_SIDE_TIME;
            o.replication = true;
            add_schedule(&text, sched_search(arena, diag, spec, g, &o));
            o.aim = SIDE_BY_SIDE_NOT;
            o.ahead = true;
            const Schedule *one = sched_search(arena, diag, spec, g, &o);
            add_schedule(&text, one);
            text_addf(&text, "\n");
        }
    }
    return text_str(&text);
}

static void orders_are_as_recorded(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    recorded_compare(recorded, orders(arena));
    arena_free(arena);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--write"))
        return recorded_write(recorded, orders(arena_new("test")));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
