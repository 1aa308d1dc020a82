/* rounding.c - two rules of rounding, compared; see rounding.h. */
#include "driver/rounding.h"

#include "driver/commands.h"

#include <cJSON.h>
#include <math.h>
#include <string.h>

enum { MOST_NAMED = 3 };

typedef struct Difference {
    uint64_t n;
    double most;
} Difference;

static Difference difference(const float *a, const float *b, uint64_t n) {
    Difference d = {0};
    for (uint64_t i = 0; i < n; i++) {
        double apart = fabs((double)a[i] - (double)b[i]);
        d.n += apart > 0;
        d.most = fmax(d.most, apart);
    }
    return d;
}

static bool writes_codes(const Node *node, const Graph *g) {
    return node->op != OP_INPUT &&
           graph_tensor(g, node->out[0])->quant.type != QUANT_NONE;
}

static void add_layer(Arena *arena, const Pipeline *p, NodeId id, Values own,
                      Values reference, Roundings *r, RoundedLayer *to) {
    const Graph *g = p->original;
    const Node *node = graph_node(g, id);
    uint64_t n = shape_count(&graph_tensor(g, node->out[0])->shape);
    uint32_t out = node->out[0].i;
    Arena *scratch = arena_new("layer");
    const float **in = ARENA_ARRAY(scratch, const float *, node->n_in);
    float *made = ARENA_ARRAY(scratch, float, n);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = own.at[node->in[k].i];
    graph_eval_node(scratch, g, node, in, made);
    Difference same = difference(own.at[out], made, n);
    Difference end = difference(own.at[out], reference.at[out], n);
    arena_free(scratch);
    *to = (RoundedLayer){arena_strdup(arena, node->name), n, same.n, same.most};
    r->codes += n;
    r->differ += same.n;
    r->most = fmax(r->most, same.most);
    r->end_differ += end.n;
    r->end_most = fmax(r->end_most, end.most);
}

Roundings roundings_of(Arena *arena, const Pipeline *p,
                       const float *const *values, Values reference) {
    Roundings r = {0};
    if (p->network == p->original || p->one)
        return r;
    const Graph *g = p->original;
    Arena *scratch = arena_new("rounding");
    Values own;
    evaluate(scratch, p->network, values, &own);
    RoundedLayer *layer = ARENA_ARRAY(arena, RoundedLayer, g->node.n);
    for (uint32_t i = 0; i < g->node.n; i++)
        if (writes_codes(&g->node.at[i], g))
            add_layer(arena, p, (NodeId){i}, own, reference, &r, &layer[r.n++]);
    arena_free(scratch);
    r.layer = layer;
    return r;
}

/* The layer with the most after those that were named. */
static const RoundedLayer *next_most(const Roundings *r, bool *named) {
    uint32_t best = r->n;
    for (uint32_t i = 0; i < r->n; i++)
        if (!named[i] && r->layer[i].differ &&
            (best == r->n || r->layer[i].differ > r->layer[best].differ))
            best = i;
    if (best == r->n)
        return NULL;
    named[best] = true;
    return &r->layer[best];
}

void roundings_print(Arena *arena, const Roundings *r) {
    if (!r->n)
        return;
    say("rounds  the machine by its own rule: of %s codes %s differ from the "
        "network's, layers being given equal inputs",
        with_commas(arena, r->codes), with_commas(arena, r->differ));
    if (r->differ)
        say(", by up to %g", r->most);
    say("\n");
    if (r->end_differ)
        say("        %s differ where they build on each other, by up to %g\n",
            with_commas(arena, r->end_differ), r->end_most);
    bool *named = ARENA_ARRAY(arena, bool, r->n);
    const RoundedLayer *layer;
    for (uint32_t i = 0; i < MOST_NAMED && (layer = next_most(r, named)); i++)
        say("%s%s %s of %s", i ? ", " : "        most in ", layer->layer,
            with_commas(arena, layer->differ),
            with_commas(arena, layer->codes));
    if (r->differ)
        say("\n");
    if (r->differ)
        say("        right, as results that lie halfway between two codes, or "
            "within a float's rounding of that, go to either "
            "(docs/quantisation.md)\n");
}

cJSON *roundings_json(const Roundings *r) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "codes", (double)r->codes);
    cJSON_AddNumberToObject(json, "differ", (double)r->differ);
    cJSON_AddNumberToObject(json, "most", r->most);
    cJSON_AddNumberToObject(json, "differ_in_all", (double)r->end_differ);
    cJSON_AddNumberToObject(json, "most_in_all", r->end_most);
    cJSON *list = cJSON_AddArrayToObject(json, "layers");
    for (uint32_t i = 0; i < r->n; i++) {
        if (!r->layer[i].differ)
            continue;
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "layer", r->layer[i].layer);
        cJSON_AddNumberToObject(item, "codes", (double)r->layer[i].codes);
        cJSON_AddNumberToObject(item, "differ", (double)r->layer[i].differ);
        cJSON_AddNumberToObject(item, "most", r->layer[i].most);
        cJSON_AddItemToArray(list, item);
    }
    return json;
}

bool is_real(const Graph *graph) {
    for (uint32_t i = 0; i < graph->tensor.n; i++)
        if (graph->tensor.at[i].quant.type != QUANT_NONE)
            return false;
    return true;
}

void roundings_note(const Pipeline *p, const Options *options) {
    if (p->machine->element == 1 && is_real(p->original))
        say("floats  were compared, which elements of 1 byte cannot be: for "
            "codes, amphora quantise %s --calibrate DIR -t %s\n",
            options->file, options->target);
}
