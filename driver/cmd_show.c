/* cmd_show.c - what a network is, and with -t what its plan holds when. */
#include "base/guard.h"
#include "driver/commands.h"

#include "passes/pass.h"

#include <string.h>

typedef struct Totals {
    uint64_t macs, parameters, activations;
    uint32_t by_type[QUANT_TYPE_COUNT]; /* tensors */
    uint32_t by_op[OP_COUNT];
} Totals;

static uint64_t node_parameters(const Graph *g, const Node *node) {
    uint64_t n = 0;
    for (int role = 0; role < CONST_ROLES; role++)
        if (node->constant[role].i != NONE)
            n += shape_count(&graph_const(g, node->constant[role])->shape);
    return n;
}

static Totals count(const Graph *g) {
    Totals totals = {0};
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        totals.by_op[node->op]++;
        totals.macs += graph_products(g, node);
        totals.parameters += node_parameters(g, node);
    }
    for (uint32_t i = 0; i < g->tensor.n; i++) {
        totals.activations += shape_count(&g->tensor.at[i].shape);
        totals.by_type[g->tensor.at[i].quant.type]++;
    }
    return totals;
}

/* " int8, real = 0.5 * (code + 128)", or nothing. */
static const char *quant_text(Arena *arena, const Tensor *tensor) {
    const Quant *q = &tensor->quant;
    if (q->type == QUANT_NONE)
        return "";
    const char *zero = q->zero < 0 ? "+ " : "- ";
    return q->zero ? arena_printf(arena, " %s, real = %.9g * (code %s%d)",
                                  quant_type[q->type].name, q->scale, zero,
                                  q->zero < 0 ? -q->zero : q->zero)
                   : arena_printf(arena, " %s, real = %.9g * code",
                                  quant_type[q->type].name, q->scale);
}

static void print_ends(Arena *arena, const Graph *g) {
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        const Tensor *tensor = graph_tensor(g, node->out[0]);
        say("input   %s %s%s\n", tensor->name,
            shape_text(arena, &tensor->shape), quant_text(arena, tensor));
    }
    for (uint32_t i = 0; i < g->output.n; i++) {
        const Tensor *tensor = graph_tensor(g, g->output.at[i]);
        say("output  %s %s%s\n", tensor->name,
            shape_text(arena, &tensor->shape), quant_text(arena, tensor));
    }
}

static void print_types(const Graph *g, const Totals *totals) {
    if (totals->by_type[QUANT_NONE] == g->tensor.n)
        return;
    say("tensors");
    for (int type = 0; type < QUANT_TYPE_COUNT; type++)
        if (totals->by_type[type])
            say(" %s %u", quant_type[type].name, totals->by_type[type]);
    say("\n");
}

static void print_network(Arena *arena, const Pipeline *p) {
    const Graph *g = p->original;
    Totals totals = count(g);
    say("%s: %s, %u after the passes\n", g->name,
        with_noun(arena, g->node.n, "layer"), p->graph->node.n);
    print_ends(arena, g);
    say("work    %s multiply-adds, %s parameters, %s activations\n",
        with_commas(arena, totals.macs), with_commas(arena, totals.parameters),
        with_commas(arena, totals.activations));
    say("layers ");
    for (int op = 0; op < OP_COUNT; op++)
        if (totals.by_op[op])
            say(" %s %u", op_info[op].name, totals.by_op[op]);
    say("\n");
    print_types(g, &totals);
    print_seeded(arena, p->import.seeded);
}

static void add_quant(cJSON *json, const Quant *q) {
    if (q->type == QUANT_NONE)
        return;
    cJSON *quant = cJSON_AddObjectToObject(json, "quant");
    cJSON_AddStringToObject(quant, "type", quant_type[q->type].name);
    cJSON_AddNumberToObject(quant, "scale", q->scale);
    cJSON_AddNumberToObject(quant, "zero", q->zero);
}

static cJSON *ends_json(Arena *arena, const Graph *g, bool inputs) {
    cJSON *list = cJSON_CreateArray();
    uint32_t n = inputs ? g->node.n : g->output.n;
    for (uint32_t i = 0; i < n; i++) {
        if (inputs && g->node.at[i].op != OP_INPUT)
            continue;
        const Tensor *tensor =
            graph_tensor(g, inputs ? g->node.at[i].out[0] : g->output.at[i]);
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", tensor->name);
        cJSON_AddStringToObject(item, "shape",
                                shape_text(arena, &tensor->shape));
        add_quant(item, &tensor->quant);
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

static cJSON *network_json(Arena *arena, const Pipeline *p) {
    const Graph *g = p->original;
    Totals totals = count(g);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "network", g->name);
    cJSON_AddNumberToObject(json, "layers", g->node.n);
    cJSON_AddNumberToObject(json, "layers_after_passes", p->graph->node.n);
    cJSON_AddNumberToObject(json, "multiply_adds", (double)totals.macs);
    cJSON_AddNumberToObject(json, "parameters", (double)totals.parameters);
    cJSON_AddNumberToObject(json, "seeded_layers", p->import.seeded);
    cJSON_AddItemToObject(json, "inputs", ends_json(arena, g, true));
    cJSON_AddItemToObject(json, "outputs", ends_json(arena, g, false));
    return json;
}

/* ---- with a machine: what lies in active memory at each step ---- */

static const char *step_layer(const Pipeline *p, uint32_t step) {
    const Step *s = &p->schedule->step[step];
    return s->n ? graph_node(p->graph, s->slot[0].node)->name : "";
}

static const char *volume_name(const Pipeline *p, uint32_t placement) {
    TensorId tensor = p->plan->placement[placement].tensor;
    return graph_tensor(p->graph, tensor)->name;
}

static void print_use(Arena *arena, const Pipeline *p, const PlanStepUse *use) {
    say("%4u  %-32s %12s  ", use->step + 1, step_layer(p, use->step),
        with_commas(arena, use->bytes));
    for (uint32_t k = 0; k < use->n; k++) {
        uint32_t i = use->placement[k];
        say("%s%s %s", k ? ", " : "", volume_name(p, i),
            with_commas(arena, p->plan->placement[i].bytes));
    }
    say("\n");
}

static cJSON *use_json(const Pipeline *p, const PlanStepUse *use) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddNumberToObject(item, "step", use->step + 1);
    cJSON_AddStringToObject(item, "layer", step_layer(p, use->step));
    cJSON_AddNumberToObject(item, "am_bytes", (double)use->bytes);
    cJSON *live = cJSON_AddArrayToObject(item, "live");
    for (uint32_t k = 0; k < use->n; k++) {
        const Placement *place = &p->plan->placement[use->placement[k]];
        cJSON *volume = cJSON_CreateObject();
        cJSON_AddStringToObject(volume, "tensor",
                                volume_name(p, use->placement[k]));
        cJSON_AddNumberToObject(volume, "offset", (double)place->offset);
        cJSON_AddNumberToObject(volume, "bytes", (double)place->bytes);
        cJSON_AddItemToArray(live, volume);
    }
    return item;
}

static void show_plan(Arena *arena, const Pipeline *p, cJSON *json) {
    const PlanStepUse *use;
    uint32_t n = plan_step_use(arena, p->plan, &use), worst = 0;
    cJSON *steps = json ? cJSON_AddArrayToObject(json, "steps") : NULL;
    if (json) {
        add_placement_json(json, p->plan);
    } else {
        print_plan(arena, p);
        say("step  %-32s %12s  live volumes, largest first\n", "layer",
            "AM bytes");
    }
    for (uint32_t i = 0; i < n; i++) {
        if (json)
            cJSON_AddItemToArray(steps, use_json(p, &use[i]));
        else
            print_use(arena, p, &use[i]);
        if (use[i].bytes > use[worst].bytes)
            worst = i;
    }
    if (!json && n)
        say("worst   step %u (%s): %s bytes\n", use[worst].step + 1,
            step_layer(p, use[worst].step),
            with_commas(arena, use[worst].bytes));
}

/* ---- the network itself ---- */

static bool write_emitted(Arena *arena, Diag *diag, const Graph *g,
                          const char *path) {
    Text bytes = text_new(arena);
    const char *stem = file_stem(arena, path ? path : "net");
    const char *weights = arena_printf(arena, "%s.bin", stem);
    const char *json = graph_to_json(arena, g, weights, &bytes);
    if (!path && bytes.len) {
        diag_error(diag, (Loc){0},
                   "the network has trained weights, which need a file: give "
                   "-o NET.json");
        return false;
    }
    if (!path)
        return fputs(json, guard_out()) >= 0;
    const char *beside =
        arena_printf(arena, "%s/%s", file_dir(arena, path), weights);
    return (!bytes.len ||
            file_write(arena, diag, beside, bytes.at, bytes.len)) &&
           file_write(arena, diag, path, json, strlen(json));
}

static ExitCode emit(Arena *arena, Diag *diag, const Options *options) {
    Pipeline p;
    if (strcmp(options->emit, "json")) {
        diag_error(diag, (Loc){0}, "--emit %s is not known, only json",
                   options->emit);
        return EXIT_BAD_USAGE;
    }
    ExitCode code = pipeline_run(arena, diag, options, STAGE_READ, &p);
    if (code != EXIT_FINE)
        return code;
    return write_emitted(arena, diag, p.original, options->out)
               ? EXIT_FINE
               : EXIT_BAD_INPUT;
}

ExitCode cmd_show(Arena *arena, Diag *diag, const Options *options) {
    const ShowArgs *own = options->own;
    Pipeline p;
    if (options->emit)
        return emit(arena, diag, options);
    if (own->orders || (own->svg && !options->target))
        return show_orders(arena, diag, options, own->svg);
    Stage last = options->target ? STAGE_ALLOC : STAGE_PASSES;
    ExitCode code = pipeline_run(arena, diag, options, last, &p);
    if (code != EXIT_FINE)
        return code;
    if (own->svg && !show_svg(arena, diag, p.plan, own->svg))
        return EXIT_BAD_INPUT;
    cJSON *json = options->json ? network_json(arena, &p) : NULL;
    if (!json)
        print_network(arena, &p);
    if (options->target)
        show_plan(arena, &p, json);
    if (json) {
        cJSON_AddItemToObject(json, "ms", stage_times_json(&p));
        print_json(arena, options, json);
    }
    return EXIT_FINE;
}
