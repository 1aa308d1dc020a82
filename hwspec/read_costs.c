/* read_costs.c - `costs`: what a machine, and running a network on it, takes of
 * what its file names: multipliers, blocks of memory, energy.
 *
 * Input: a map from names to factors. Output: HwCost, one a name; each is a sum
 * of products. Invariant: factors are 0 or more, so no cost falls where a size
 * or a count grows.
 */
#include "hwspec/read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 0.5, 2e-4, 1/4608 */
static bool read_factor(Reader *r, YamlNode *node, void *out) {
    const char *text;
    if (!yaml_str(r->diag, node, &text))
        return false;
    char *end, *last;
    double value = strtod(text, &end), by = 1;
    bool ok = end != text;
    if (ok && *end == '/') {
        by = strtod(end + 1, &last);
        ok = last != end + 1 && by > 0;
        end = last;
    }
    if (!ok || *end || !(value >= 0 && value / by <= 1e15)) {
        diag_error(r->diag, node->loc,
                   "`%s` is no factor: 0.5, 2e-4 or 1/4608, 0 or more", text);
        return false;
    }
    *(double *)out = value / by;
    return true;
}

/* A map from names of memories, or of engines, to factors. */
static bool read_memory_factors(Reader *r, YamlNode *node, void *out) {
    HwCost *cost = out;
    if (!read_is(r, node, YAML_MAP))
        return false;
    double *factor = ARENA_ARRAY(r->arena, double, r->spec->n_memories + 1);
    bool ok = true;
    for (uint32_t i = 0; i < node->n; i++) {
        YamlNode name = *node->item[i];
        name.kind = YAML_SCALAR;
        name.text = node->key[i];
        name.loc = node->key_loc[i];
        int32_t at = read_memory_name(r, &name);
        YamlNode *value = yaml_get(node, node->key[i]);
        ok &= at >= 0 && read_factor(r, value, &factor[at]);
    }
    cost->memory = factor;
    return ok;
}

static bool read_engine_factors(Reader *r, YamlNode *node, const double **out) {
    if (!read_is(r, node, YAML_MAP))
        return false;
    double *factor = ARENA_ARRAY(r->arena, double, r->spec->n_engines + 1);
    bool ok = true;
    for (uint32_t i = 0; i < node->n; i++) {
        uint32_t at = 0;
        while (at < r->spec->n_engines &&
               strcmp(r->spec->engine[at].name, node->key[i]))
            at++;
        YamlNode *value = yaml_get(node, node->key[i]);
        if (at == r->spec->n_engines) {
            diag_error(r->diag, node->key_loc[i], "there is no engine `%s`",
                       node->key[i]);
            ok = false;
        } else {
            ok &= read_factor(r, value, &factor[at]);
        }
    }
    *out = factor;
    return ok;
}

static bool read_lanes(Reader *r, YamlNode *node, void *out) {
    return read_engine_factors(r, node, &((HwCost *)out)->lanes);
}

static bool read_products(Reader *r, YamlNode *node, void *out) {
    return read_engine_factors(r, node, &((HwCost *)out)->products);
}

static const Key cost_keys[] = {
    KEY("base", read_factor, HwCost, base, "whatever the sizes; else 0"),
    {"memories", read_memory_factors, 0, false,
     "map from memories to factors: of each byte of its size"},
    {"lanes", read_lanes, 0, false,
     "map from engines to factors: of each product that it can make in a "
     "cycle"},
    {"products", read_products, 0, false,
     "map from engines to factors: of each product that it makes"},
    KEY("ddr", read_factor, HwCost, ddr,
        "of each byte that crosses between active memory and the rest, weights "
        "aside"),
    KEY("weights", read_factor, HwCost, weights,
        "of each byte of weights that engines take in"),
    KEY("cycles", read_factor, HwCost, cycles,
        "of each cycle that an image takes"),
};
const Section read_cost_section = SECTION("costs.*", cost_keys);

bool read_costs(Reader *r, YamlNode *node, void *out) {
    HwSpec *spec = out;
    if (!read_is(r, node, YAML_MAP))
        return false;
    HwCost *cost = ARENA_ARRAY(r->arena, HwCost, node->n + 1);
    bool ok = true;
    for (uint32_t i = 0; i < node->n; i++) {
        cost[i].name = node->key[i];
        ok &= read_keys(r, yaml_get(node, node->key[i]), &read_cost_section,
                        &cost[i]);
    }
    spec->cost = cost;
    spec->n_costs = node->n;
    return ok;
}

double hwspec_lanes(const HwEngine *engine) {
    const HwUnroll *u = &engine->unroll;
    return (double)u->out_c * u->in_c * u->kernel * u->out_h * u->out_w;
}

double hwspec_cost(const HwSpec *spec, const HwCost *cost,
                   const HwCounts *counts) {
    double sum = cost->base, cores = hwspec_cores(spec);
    for (uint32_t i = 0; cost->memory && i < spec->n_memories; i++)
        sum += cost->memory[i] * (double)spec->memory[i].size * cores;
    for (uint32_t i = 0; cost->lanes && i < spec->n_engines; i++)
        sum += cost->lanes[i] * hwspec_lanes(&spec->engine[i]) * cores;
    if (!counts)
        return sum;
    for (uint32_t i = 0; cost->products && i < spec->n_engines; i++)
        sum += cost->products[i] * (double)counts->products[i];
    return sum + cost->ddr * (double)counts->ddr +
           cost->weights * (double)counts->weights +
           cost->cycles * (double)counts->cycles;
}

bool hwspec_cost_of_runs(const HwCost *cost) {
    return cost->products || cost->ddr > 0 || cost->weights > 0 ||
           cost->cycles > 0;
}
