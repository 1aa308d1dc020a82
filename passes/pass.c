/* pass.c - the runner of the pipeline; see pass.h.
 *
 * In: a graph with shapes. Out: the same network for the machine. A pass is
 * checked from outside: the facts it needs are known, its graph has shapes and
 * is whole.
 */
#include "passes/passes_int.h"

#include <string.h>
#include <time.h>

static const struct Fact {
    uint32_t bit;
    const char *name;
} facts[] = {
    {FACT_NO_BN, "no-bn"},
    {FACT_NO_IDENTITY, "no-identity"},
    {FACT_FUSED, "fused"},
    {FACT_CONCAT_PLACED, "concats-placed"},
    {FACT_NO_BROADCAST, "no-broadcast"},
};
enum { N_FACTS = sizeof facts / sizeof *facts };

static const char *first_fact(uint32_t set) {
    for (int i = 0; i < N_FACTS; i++)
        if (set & facts[i].bit)
            return facts[i].name;
    return "?";
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void dump_graph(const Graph *g, const PassContext *context,
                       const Pass *pass, const char *dump, FILE *to) {
    if (!dump || (strcmp(dump, "all") && strcmp(dump, pass->name)))
        return;
    fprintf(to, "# after %s\n%s", pass->name, graph_print(context->scratch, g));
}

/* False after errors. */
static bool run_pass(Graph *g, PassContext *context, const Pass *pass,
                     uint32_t *known) {
    uint32_t missing = pass->needs & ~*known;
    if (missing)
        bug("pass %s needs %s", pass->name, first_fact(missing));
    if (!pass->run(g, context) || !graph_infer_all(g, context->diag))
        return false;
    graph_verify(g, pass->name);
    *known = (*known | pass->gives) & ~pass->breaks;
    return true;
}

bool passes_run(Graph *g, PassContext *context, const char *dump, FILE *dump_to,
                PassTime *times) {
    uint32_t known = 0;
    graph_compact(g); /* what nothing needs must not count as a reader */
    for (uint32_t i = 0; i < n_passes; i++) {
        double start = now_ms();
        bool ok = run_pass(g, context, &passes[i], &known);
        if (times)
            times[i] = (PassTime){passes[i].name, now_ms() - start, g->node.n};
        if (ok)
            dump_graph(g, context, &passes[i], dump, dump_to);
        arena_reset(context->scratch);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- --print-passes ---- */

static void print_facts(FILE *to, const char *what, uint32_t set) {
    for (int i = 0; i < N_FACTS; i++)
        if (set & facts[i].bit)
            fprintf(to, "; %s %s", what, facts[i].name);
}

static void print_pass(FILE *to, uint32_t i) {
    const Pass *pass = &passes[i];
    fprintf(to, "%2u %-14s %s", i + 1, pass->name, pass->doc);
    print_facts(to, "needs", pass->needs);
    print_facts(to, "gives", pass->gives);
    print_facts(to, "breaks", pass->breaks);
    fputc('\n', to);
}

static void print_rule(FILE *to, const RuleSet *set, const Rule *rule) {
    fprintf(to, "  %-10s %-18s", set->pass, rule->name);
    for (uint32_t i = 0; i < rule->n; i++) {
        const char *between = i ? " -> " : " ";
        for (int op = 0; op < OP_COUNT; op++)
            if (rule->chain[i] >> op & 1) {
                fprintf(to, "%s%s", between, op_info[op].name);
                between = "|";
            }
    }
    fprintf(to, "\n    %s\n", rule->why);
}

void passes_print(FILE *to) {
    fputs("passes, in their order:\n", to);
    for (uint32_t i = 0; i < n_passes; i++)
        print_pass(to, i);
    fputs("rules (pass, name, chain of operators):\n", to);
    for (const RuleSet *const *set = rule_sets; *set; set++)
        for (uint32_t r = 0; r < (*set)->n; r++)
            print_rule(to, *set, &(*set)->rule[r]);
    legal_print(to);
}
