/* words_program.c - compile and verify for machines that run lists of words:
 * graph -> passes -> words; see wordgen/wordgen.h.
 *
 * Where the host runs a layer between others, there are several lists; each
 * begins with a machine that knows nothing.
 */
#include "driver/words_program.h"

#include "driver/commands.h"
#include "driver/word_lists.h"
#include "driver/word_run.h"
#include "wordgen/wordgen.h"

#include <string.h>

typedef struct Made {
    Pipeline p;
    const Emitted *emitted;
    uint32_t n_parts;
    WordList *part;
    uint32_t layers, on_engine, nothing; /* the network's layers */
} Made;

/* ---- making ---- */

static uint32_t host_layers(const Made *made) {
    return made->layers - made->on_engine - made->nothing;
}

static void split(Arena *arena, Made *made) {
    const Graph *g = made->p.graph;
    bool open = false;
    made->part = ARENA_ARRAY(arena, WordList, g->node.n + 1);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const EmitLayer *l = &made->emitted->layer[i];
        made->layers += g->node.at[i].op != OP_INPUT;
        made->on_engine += l->way != NULL;
        made->nothing += !l->way && !l->why && g->node.at[i].op != OP_INPUT;
        if (l->why)
            open = false;
        if (!l->n)
            continue;
        if (!open)
            made->part[made->n_parts++] = (WordList){.first = l->first};
        open = true;
        made->part[made->n_parts - 1].end = l->first + l->n;
    }
}

static bool encode(Arena *arena, Diag *diag, const Emitted *emitted,
                   WordList *part) {
    Program program = *emitted->program;
    program.node += part->first;
    program.n_nodes = part->end - part->first;
    return program_encode(arena, diag, &program, &part->data, &part->len);
}

/* A pool that was put behind a convolution where no way takes both. */
static bool lost_pool(const Made *made) {
    const Graph *g = made->p.graph;
    for (uint32_t i = 0; i < g->node.n; i++)
        if (g->node.at[i].op == OP_CONV_POOL && made->emitted->layer[i].why)
            return true;
    return false;
}

/* Again, with each by itself. */
static ExitCode part_pools(Arena *arena, Diag *diag, const Options *options,
                           Made *out) {
    HwSpec *spec = ARENA_COPY(arena, HwSpec, out->p.machine, 1);
    HwEngine *engine =
        ARENA_COPY(arena, HwEngine, spec->engine, spec->n_engines);
    for (uint32_t i = 0; i < spec->n_engines; i++)
        engine[i].ops &= ~((HwOps)1 << HW_OP_CONV_POOL_MAX);
    spec->engine = engine;
    out->p.machine = out->p.spec = spec;
    return pipeline_resume(arena, diag, options, STAGE_PASSES, STAGE_PASSES,
                           &out->p);
}

/* By the first layer that could have been one of the machine's. */
static void say_why_none(Diag *diag, const Made *made) {
    const Graph *g = made->p.graph;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const char *why = made->emitted->layer[i].why;
        const Node *node = &g->node.at[i];
        if (!why || !node->n_in)
            continue;
        diag_error(
            diag, node->loc, "no layer becomes words of %s: \"%s\" (%s): %s",
            made->p.spec->machine, node->name, op_info[node->op].name, why);
        return;
    }
    diag_error(diag, (Loc){0}, "no layer becomes words of %s",
               made->p.spec->machine);
}

static ExitCode make(Arena *arena, Diag *diag, const Options *options,
                     Made *out) {
    *out = (Made){0};
    if (options->emit && strcmp(options->emit, "words") != 0) {
        diag_error(diag, (Loc){0}, "--emit %s: for this machine only words",
                   options->emit);
        return EXIT_BAD_USAGE;
    }
    ExitCode code = pipeline_run(arena, diag, options, STAGE_PASSES, &out->p);
    if (code != EXIT_FINE)
        return code;
    bool no_fit;
    double start = now_ms();
    if (is_real(out->p.original))
        diag_note(diag, (Loc){0},
                  "amphora quantise %s --calibrate DIR -t %s makes a network "
                  "of codes",
                  options->file, options->target);
    out->emitted =
        wordgen_network(arena, diag, out->p.spec, out->p.graph, &no_fit);
    if (out->emitted && lost_pool(out)) {
        code = part_pools(arena, diag, options, out);
        if (code != EXIT_FINE)
            return code;
        out->emitted =
            wordgen_network(arena, diag, out->p.spec, out->p.graph, &no_fit);
    }
    out->p.ms[STAGE_CODEGEN] = now_ms() - start;
    if (!out->emitted)
        return no_fit ? EXIT_NO_FIT : EXIT_BAD_INPUT;
    split(arena, out);
    for (uint32_t i = 0; i < out->n_parts; i++)
        if (!encode(arena, diag, out->emitted, &out->part[i]))
            return EXIT_BAD_INPUT;
    if (!out->n_parts)
        say_why_none(diag, out);
    return out->n_parts ? EXIT_FINE : EXIT_BAD_INPUT;
}

/* ---- what must move ---- */

/* Bytes of the operands and results of the layers that have words, once each;
 * all constants. */
static uint64_t compulsory(const Made *made) {
    const Graph *g = made->p.graph;
    uint64_t bytes = made->emitted->constants;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        for (uint32_t k = 0; made->emitted->layer[i].way && k < node->n_in; k++)
            bytes += shape_count(&graph_tensor(g, node->in[k])->shape);
        if (made->emitted->layer[i].way)
            bytes += shape_count(&graph_tensor(g, node->out[0])->shape);
    }
    return bytes;
}

/* ---- files ---- */

static cJSON *tensor_json(const Emitted *emitted, TensorId id) {
    const Tensor *t = graph_tensor(emitted->graph, id);
    const EmitPlace *p = &emitted->place[id.i];
    Volume v = {p->c, p->h, p->w, {0}};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", t->name);
    cJSON *shape = cJSON_AddArrayToObject(json, "shape");
    for (uint32_t i = 0; i < t->shape.rank; i++)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber(t->shape.dim[i]));
    if (!p->there)
        return json;
    uint64_t at = layout_offset(emitted->layout, &v, p->first, 0, 0, 0);
    uint32_t next = p->own_c > 1;
    cJSON_AddNumberToObject(json, "address", (double)(p->at + at));
    int32_t less = wordgen_less(emitted->spec, &t->quant);
    cJSON_AddStringToObject(json, "type",
                            quant_type[less ? QUANT_I8 : t->quant.type].name);
    cJSON_AddNumberToObject(json, "scale", t->quant.scale);
    cJSON_AddNumberToObject(json, "zero", t->quant.zero - less);
    const uint32_t size[3] = {p->own_c, p->h, p->w};
    const uint32_t one[3][3] = {
        {next, 0, 0}, {0, p->h > 1, 0}, {0, 0, p->w > 1}};
    static const char *const axis[3] = {"c", "h", "w"};
    for (int k = 0; k < 3; k++) {
        cJSON *a = cJSON_AddObjectToObject(json, axis[k]);
        uint64_t to = layout_offset(emitted->layout, &v, p->first + one[k][0],
                                    one[k][1], one[k][2], 0);
        cJSON_AddNumberToObject(a, "size", size[k]);
        cJSON_AddNumberToObject(a, "step", (double)(to - at));
    }
    return json;
}

static void add_layers(cJSON *json, const Made *made) {
    const Graph *g = made->p.graph;
    cJSON *layers = cJSON_AddArrayToObject(json, "layers");
    for (uint32_t i = 0; i < g->node.n; i++) {
        const EmitLayer *l = &made->emitted->layer[i];
        const Node *node = &g->node.at[i];
        if (!l->way && !l->why)
            continue;
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", node->name);
        cJSON_AddStringToObject(one, "operator", op_info[node->op].name);
        if (l->why)
            cJSON_AddStringToObject(one, "host", l->why);
        else
            cJSON_AddStringToObject(one, "way", l->way);
        cJSON_AddNumberToObject(one, "first", l->first);
        cJSON_AddNumberToObject(one, "words", l->n);
        for (uint32_t k = 0; k < l->n_chosen; k++)
            cJSON_AddNumberToObject(one, l->chosen[k].name,
                                    (double)l->chosen[k].value);
        cJSON *ins = cJSON_AddArrayToObject(one, "in");
        for (uint32_t k = 0; k < node->n_in; k++)
            cJSON_AddItemToArray(ins, tensor_json(made->emitted, node->in[k]));
        cJSON_AddItemToObject(one, "out",
                              tensor_json(made->emitted, node->out[0]));
        cJSON_AddItemToArray(layers, one);
    }
}

static WordLists lists_of(Arena *arena, const Options *options,
                          const Made *made) {
    const Emitted *emitted = made->emitted;
    return (WordLists){.stem = file_stem(arena, options->file),
                       .ending = emitted->program->container,
                       .n = made->n_parts,
                       .list = made->part,
                       .image = emitted->image,
                       .bytes = emitted->bytes,
                       .constants = emitted->constants};
}

static cJSON *map_json(Arena *arena, const Made *made, const WordLists *lists) {
    const Emitted *emitted = made->emitted;
    const HwSpec *spec = made->p.spec;
    const Graph *g = emitted->graph;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "network", g->name);
    cJSON_AddStringToObject(json, "machine", spec->machine);
    word_lists_json(arena, lists, json);
    cJSON_AddStringToObject(json, "memory", spec->memory[spec->backing].name);
    cJSON *inputs = cJSON_AddArrayToObject(json, "inputs");
    for (uint32_t i = 0; i < g->node.n; i++)
        if (g->node.at[i].op == OP_INPUT)
            cJSON_AddItemToArray(inputs,
                                 tensor_json(emitted, g->node.at[i].out[0]));
    cJSON *outputs = cJSON_AddArrayToObject(json, "outputs");
    for (uint32_t i = 0; i < g->output.n; i++)
        cJSON_AddItemToArray(outputs, tensor_json(emitted, g->output.at[i]));
    add_layers(json, made);
    return json;
}

/* ---- a run ---- */

typedef struct Run {
    Arena *arena;
    const Made *made;
    const Values *reference; /* of made->p.original */
    float **value;           /* by tensor of made->p.graph: as computed */
    uint8_t *memory;
    uint32_t offset; /* of the part's first instruction */
    uint32_t next;   /* node of the graph that is looked at next */
    WordRun found;
} Run;

static void compare(Run *r, const Node *node, TensorId id) {
    const Tensor *t = graph_tensor(r->made->p.graph, id);
    if (t->origin.i == NONE) {
        r->found.unknown++;
        return;
    }
    const float *want = r->reference->at[t->origin.i], *got = r->value[id.i];
    uint64_t n = shape_count(&t->shape);
    WordCodes w = {.layer = node->name};
    for (uint64_t i = 0; i < n; i++)
        word_codes_add(&w, got[i], want[i]);
    word_run_compared(&r->found, &w);
}

static void take_value(Run *r, const Node *node, TensorId id) {
    const Tensor *t = graph_tensor(r->made->p.graph, id);
    r->value[id.i] = ARENA_ARRAY(r->arena, float, shape_count(&t->shape));
    wordgen_load(r->made->emitted, id, r->memory, r->value[id.i]);
    compare(r, node, id);
}

/* What the host computes, and layers that do nothing. */
static void run_host(Run *r, const Node *node) {
    const Graph *g = r->made->p.graph;
    const float **in = ARENA_ARRAY(r->arena, const float *, node->n_in + 1);
    Arena *scratch = arena_new("run_host");
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = r->value[node->in[k].i];
    for (uint32_t k = 0; k < node->n_out; k++) {
        TensorId id = node->out[k];
        uint64_t n = shape_count(&graph_tensor(g, id)->shape);
        r->value[id.i] = ARENA_ARRAY(r->arena, float, n);
        if (k)
            memcpy(r->value[id.i], r->value[node->out[0].i], n * sizeof **in);
        else
            graph_eval_node(scratch, g, node, in, r->value[id.i]);
        if (r->made->emitted->place[id.i].there)
            wordgen_store(r->made->emitted, id, r->value[id.i], r->memory);
    }
    arena_free(scratch);
}

/* Layers whose instructions are done, and those of the host behind them. */
static void catch_up(Run *r, uint32_t done) {
    const Graph *g = r->made->p.graph;
    for (; r->next < g->node.n; r->next++) {
        const EmitLayer *l = &r->made->emitted->layer[r->next];
        const Node *node = &g->node.at[r->next];
        if (l->first + l->n > done)
            return;
        if (l->way)
            take_value(r, node, node->out[0]);
        else if (l->why)
            run_host(r, node);
        else if (node->op != OP_INPUT)
            take_value(r, node, node->out[0]);
    }
}

static void after(void *context, uint32_t node, uint8_t *const *memory) {
    Run *r = context;
    r->memory = memory[r->made->p.spec->backing];
    catch_up(r, r->offset + node + 1);
}

static void put_inputs(Run *r, const float *const *inputs) {
    const Graph *g = r->made->p.graph;
    uint32_t k = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        if (g->node.at[i].op != OP_INPUT)
            continue;
        TensorId id = g->node.at[i].out[0];
        uint64_t n = shape_count(&graph_tensor(g, id)->shape);
        r->value[id.i] = ARENA_ARRAY(r->arena, float, n);
        memcpy(r->value[id.i], inputs[k++], n * sizeof **inputs);
        if (r->made->emitted->place[id.i].there)
            wordgen_store(r->made->emitted, id, r->value[id.i], r->memory);
    }
}

static bool run_part(Run *r, Diag *diag, const WordList *part) {
    const Made *made = r->made;
    DoesWatch watch = {.after = after, .context = r};
    const Program *read = program_decode(r->arena, diag, made->p.spec,
                                         "(words)", part->data, part->len);
    if (!read)
        return false;
    r->offset = part->first;
    const DoesResult *done =
        program_does(r->arena, read, r->memory, made->emitted->bytes, &watch);
    r->memory = (uint8_t *)(uintptr_t)done->main;
    word_run_did(&r->found, done, made->p.spec->backing);
    return true;
}

static bool run_words(Run *r, Diag *diag) {
    catch_up(r, 0);
    for (uint32_t i = 0; i < r->made->n_parts && !r->found.fault; i++)
        if (!run_part(r, diag, &r->made->part[i]))
            return false;
    r->found.whole = r->next == r->made->p.graph->node.n;
    return true;
}

/* ---- compile ---- */

/* With --input the backing memory has what is given. */
static bool give_inputs(Arena *arena, Diag *diag, const Options *options,
                        const Made *made) {
    Run r = {.arena = arena, .made = made, .memory = made->emitted->image};
    if (!options->inputs.n)
        return true;
    const float *const *values =
        read_inputs(arena, diag, options, made->p.original);
    r.value = ARENA_ARRAY(arena, float *, made->p.graph->tensor.n + 1);
    if (values)
        put_inputs(&r, values);
    if (values && made->n_parts)
        while (r.next < made->p.graph->node.n &&
               !made->emitted->layer[r.next].n) {
            const EmitLayer *l = &made->emitted->layer[r.next];
            if (l->why)
                run_host(&r, &made->p.graph->node.at[r.next]);
            r.next++;
        }
    return values != NULL;
}

static void print_layers(const Made *made, bool explain) {
    const Graph *g = made->p.graph;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const EmitLayer *l = &made->emitted->layer[i];
        const Node *node = &g->node.at[i];
        if (l->why)
            say("host    %s (%s): %s\n", node->name, op_info[node->op].name,
                l->why);
        if (!l->way || !explain)
            continue;
        say("layer   %s (%s): %s, %u words", node->name, op_info[node->op].name,
            l->way, l->n);
        for (uint32_t k = 0; k < l->n_chosen; k++)
            say(" %s=%lld", l->chosen[k].name, (long long)l->chosen[k].value);
        say("\n");
    }
}

static void print_made(Arena *arena, const Made *made, bool explain) {
    const Emitted *emitted = made->emitted;
    say("%s on %s: %u layers, %u as words, %u nothing to do, %u of the host\n",
        emitted->graph->name, made->p.spec->machine, made->layers,
        made->on_engine, made->nothing, host_layers(made));
    print_layers(made, explain);
    say("memory  %s bytes, %s of them constants\n",
        with_commas(arena, emitted->bytes),
        with_commas(arena, emitted->constants));
}

ExitCode compile_words(Arena *arena, Diag *diag, const Options *options) {
    Made made;
    ExitCode code = make(arena, diag, options, &made);
    if (code != EXIT_FINE)
        return code;
    WordLists lists = lists_of(arena, options, &made);
    if (!give_inputs(arena, diag, options, &made) ||
        !word_lists_write(arena, diag, options, &lists,
                          map_json(arena, &made, &lists)))
        return EXIT_BAD_INPUT;
    if (options->json)
        return EXIT_FINE;
    const CompileArgs *own = options->own;
    print_made(arena, &made, own->explain);
    word_lists_say(arena, options, &lists);
    return EXIT_FINE;
}

/* ---- verify ---- */

static void verdict_json(Arena *arena, const Options *options, const Run *r,
                         const Roundings *rounded) {
    const Made *made = r->made;
    const WordRun *f = &r->found;
    cJSON *json = word_run_json(f, &made->p);
    cJSON_AddNumberToObject(json, "layers", made->layers);
    cJSON_AddNumberToObject(json, "engine_layers", made->on_engine);
    cJSON_AddNumberToObject(json, "lists", made->n_parts);
    word_run_json_values(f, json);
    cJSON_AddNumberToObject(json, "read", (double)f->read);
    cJSON_AddNumberToObject(json, "written", (double)f->written);
    cJSON_AddNumberToObject(json, "compulsory", (double)compulsory(made));
    if (f->cycles >= 0)
        cJSON_AddNumberToObject(json, "cycles", (double)f->cycles);
    cJSON_AddNumberToObject(json, "host_layers", host_layers(made));
    word_run_json_end(f, rounded, json);
    print_json(arena, options, json);
}

static void verdict_print(Arena *arena, const Run *r,
                          const Roundings *rounded) {
    const Made *made = r->made;
    const WordRun *f = &r->found;
    print_made(arena, made, false);
    word_run_print(arena, f, "layers");
    if (f->unknown)
        say("unknown %s without a counterpart in the network\n",
            with_noun(arena, f->unknown, "layer"));
    say("moved   %s bytes read, %s written; operands, results and constants "
        "once: %s\n",
        with_commas(arena, f->read), with_commas(arena, f->written),
        with_commas(arena, compulsory(made)));
    if (f->cycles >= 0)
        say("time    %s cycles, without those of the host\n",
            with_commas(arena, (uint64_t)f->cycles));
    roundings_print(arena, rounded);
    word_run_print_fault(arena, f);
    say("%s in %s: %s\n", with_noun(arena, f->instructions, "instruction"),
        with_noun(arena, made->n_parts, "list"),
        word_run_right(f) ? "right" : "WRONG");
}

ExitCode verify_words(Arena *arena, Diag *diag, const Options *options) {
    Made made;
    WordWanted wanted;
    ExitCode code = make(arena, diag, options, &made);
    if (code != EXIT_FINE)
        return code;
    if (!word_wanted(arena, diag, options, &made.p, &wanted))
        return EXIT_BAD_INPUT;
    Run r = {.arena = arena,
             .made = &made,
             .reference = &wanted.reference,
             .memory = made.emitted->image,
             .value = ARENA_ARRAY(arena, float *, made.p.graph->tensor.n + 1),
             .found = {.what = "layers"}};
    put_inputs(&r, wanted.inputs);
    if (!run_words(&r, diag))
        return EXIT_BAD_INPUT;
    if (options->json)
        verdict_json(arena, options, &r, &wanted.rounded);
    else
        verdict_print(arena, &r, &wanted.rounded);
    return word_run_right(&r.found) ? EXIT_FINE : EXIT_BAD_INPUT;
}
