/* listed_words.c - compile and verify for machines whose listings become words:
 * graph -> plan -> listing -> words; see codegen/words.h.
 */
#include "driver/listed_words.h"

#include "codegen/words.h"
#include "driver/commands.h"
#include "driver/makes.h"
#include "driver/word_lists.h"
#include "driver/word_run.h"
#include "hwspec/emit.h"
#include "sim/program.h"

#include <string.h>

typedef struct Made {
    Pipeline p;
    const ListedWords *words;
    WordList *list; /* by list of words */
} Made;

bool options_listed_words(Arena *arena, const Options *options) {
    if (!options->emit || strcmp(options->emit, "words") || !options->target)
        return false;
    const HwSpec *spec = hwspec_load(arena, diag_new(arena), options->target,
                                     options->settings.n, options->settings.at);
    return spec && program_emit_listing(spec);
}

/* ---- making ---- */

static bool encode(Arena *arena, Diag *diag, Made *made) {
    const ListedWords *words = made->words;
    made->list = ARENA_ARRAY(arena, WordList, words->n_lists + 1);
    for (uint32_t i = 0; i < words->n_lists; i++) {
        Program program = *words->program;
        program.node += words->list[i];
        program.n_nodes = words->list[i + 1] - words->list[i];
        made->list[i].first = words->list[i];
        made->list[i].end = words->list[i + 1];
        if (!program_encode(arena, diag, &program, &made->list[i].data,
                            &made->list[i].len))
            return false;
    }
    return true;
}

static ExitCode make(Arena *arena, Diag *diag, const Options *options,
                     Made *out) {
    *out = (Made){0};
    ExitCode code = pipeline_run(arena, diag, options, STAGE_CODEGEN, &out->p);
    if (code != EXIT_FINE)
        return code;
    double start = now_ms();
    if (is_real(out->p.original)) {
        diag_error(diag, (Loc){0},
                   "words are made of a network on codes: amphora quantise %s "
                   "--calibrate DIR -t %s",
                   options->file, options->target);
        return EXIT_BAD_INPUT;
    }
    if (pipeline_images(&out->p) > 1) {
        diag_error(diag, (Loc){0}, "words are made of one image");
        return EXIT_BAD_INPUT;
    }
    out->words = codegen_words(arena, diag, out->p.plan, out->p.listing,
                               out->p.action_of);
    bool ok = out->words && encode(arena, diag, out);
    out->p.ms[STAGE_CODEGEN] += now_ms() - start;
    return ok ? EXIT_FINE : EXIT_BAD_INPUT;
}

/* ---- values in memory ---- */

/* Where the elements of a placement lie, `memory` by memory of the machine. */
typedef struct Cells {
    const Placement *p;
    LayoutTables table;
    uint8_t *byte; /* NULL: it lies nowhere */
} Cells;

static Cells cells_of(Arena *arena, const Made *made, uint32_t placement,
                      uint8_t *const *memory) {
    const HwSpec *spec = made->p.spec;
    const Placement *p = &made->p.plan->placement[placement];
    const int64_t region = made->words->region[p->memory];
    Cells c = {.p = p,
               .table = layout_tables(arena, spec->memory[p->memory].layout,
                                      &p->whole)};
    if (region != WORDS_NOWHERE)
        c.byte = memory[spec->backing] + region + p->offset;
    else if (spec->memory[p->memory].role == HW_ACTIVE)
        c.byte = memory[p->memory] + p->offset;
    return c;
}

static uint8_t *cell(const Cells *c, uint32_t channel, uint32_t row,
                     uint32_t col) {
    const Placement *p = c->p;
    uint32_t y = p->ring ? row % p->whole.h : row - p->row;
    uint32_t x = p->ring && p->whole.w != p->cols ? col : col - p->col;
    return c->byte + c->table.c_at[p->part_c + channel - p->c] +
           c->table.h_at[y] + c->table.w_at[x];
}

static float read_code(const Cells *c, const Quant *q, uint32_t channel,
                       uint32_t row, uint32_t col) {
    uint8_t byte = *cell(c, channel, row, col);
    return q->type == QUANT_U8 ? byte : (float)(int8_t)byte;
}

/* ---- a run ---- */

typedef struct Run {
    Arena *arena;
    const Made *made;
    const Values *reference; /* of made->p.original */
    float **value;           /* by tensor: what the host made, or was given */
    uint8_t **memory;        /* by memory of the machine */
    uint32_t next;           /* instruction of the listing */
    uint32_t offset;         /* of the list's first instruction */
    WordRun found;
} Run;

typedef struct Box {
    uint32_t row, rows, col, cols;
} Box;

static void compare(Run *r, uint32_t insn, const Action *action, Box box) {
    const Graph *g = r->made->p.graph;
    const Placement *p = &r->made->p.plan->placement[action->out];
    const Tensor *t = graph_tensor(g, p->tensor);
    Volume volume = plan_volume(g, p->tensor);
    if (t->origin.i == NONE || t->quant.type == QUANT_NONE) {
        r->found.unknown++;
        return;
    }
    Arena *scratch = arena_new("compare");
    Cells cells = cells_of(scratch, r->made, action->out, r->memory);
    const float *want = r->reference->at[t->origin.i];
    WordCodes w = {.layer = t->name, .insn = insn + 1};
    for (uint32_t c = p->c; cells.byte && c < p->c + p->n_c; c++)
        for (uint32_t y = box.row; y < box.row + box.rows; y++)
            for (uint32_t x = box.col; x < box.col + box.cols; x++) {
                uint64_t i = ((uint64_t)c * volume.h + y) * volume.w + x;
                word_codes_add(&w, read_code(&cells, &t->quant, c, y, x),
                               want[i]);
            }
    word_run_compared(&r->found, &w);
    arena_free(scratch);
}

/* ---- the host ---- */

static void put_codes(Run *r, uint32_t placement, const float *value) {
    const Graph *g = r->made->p.graph;
    const Placement *p = &r->made->p.plan->placement[placement];
    Volume v = plan_volume(g, p->tensor);
    Arena *scratch = arena_new("put");
    Cells cells = cells_of(scratch, r->made, placement, r->memory);
    bool codes = graph_tensor(g, p->tensor)->quant.type != QUANT_NONE;
    for (uint64_t i = 0; cells.byte && codes && i < (uint64_t)v.c * v.h * v.w;
         i++)
        *cell(&cells, (uint32_t)(i / v.w / v.h), (uint32_t)(i / v.w % v.h),
              (uint32_t)(i % v.w)) = (uint8_t)(int32_t)value[i];
    arena_free(scratch);
}

static float *take_codes(Run *r, Arena *scratch, uint32_t placement) {
    const Graph *g = r->made->p.graph;
    const Placement *p = &r->made->p.plan->placement[placement];
    const Quant *q = &graph_tensor(g, p->tensor)->quant;
    if (q->type == QUANT_NONE)
        return r->value[p->tensor.i];
    Volume v = plan_volume(g, p->tensor);
    Cells cells = cells_of(scratch, r->made, placement, r->memory);
    uint64_t n = (uint64_t)v.c * v.h * v.w;
    float *out = ARENA_ARRAY(scratch, float, n + 1);
    for (uint64_t i = 0; cells.byte && i < n; i++)
        out[i] = read_code(&cells, q, (uint32_t)(i / v.w / v.h),
                           (uint32_t)(i / v.w % v.h), (uint32_t)(i % v.w));
    return out;
}

static void run_host(Run *r, const Action *action) {
    const Graph *g = r->made->p.graph;
    const Node *node = graph_node(g, action->node);
    Arena *scratch = arena_new("run_host");
    const float **in = ARENA_ARRAY(scratch, const float *, node->n_in + 1);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = take_codes(r, scratch, action->in[k]);
    uint64_t n = shape_count(&graph_tensor(g, node->out[0])->shape);
    float *out = ARENA_ARRAY(r->arena, float, n + 1);
    graph_eval_node(scratch, g, node, in, out);
    for (uint32_t k = 0; k < node->n_out; k++)
        r->value[node->out[k].i] = out;
    put_codes(r, action->out, out);
    arena_free(scratch);
}

/* Inputs, in the placements from which something is loaded or read. */
static void put_inputs(Run *r, const float *const *inputs) {
    const Graph *g = r->made->p.graph;
    uint32_t k = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        TensorId id = node->out[0];
        uint64_t n = shape_count(&graph_tensor(g, id)->shape);
        r->value[id.i] = ARENA_ARRAY(r->arena, float, n + 1);
        memcpy(r->value[id.i], inputs[k++], n * sizeof **inputs);
        const Plan *plan = r->made->p.plan;
        for (uint32_t j = 0; j < plan->n_placements; j++)
            if (same_tensor(plan->placement[j].tensor, id) &&
                r->made->p.spec->memory[plan->placement[j].memory].role ==
                    HW_INPUT)
                put_codes(r, j, r->value[id.i]);
    }
}

/* ---- instruction by instruction ---- */

static void look_at(Run *r, uint32_t i) {
    const Made *made = r->made;
    const Action *a = &made->p.plan->action[made->p.action_of[i]];
    Box box = {a->row, a->rows, a->col, a->cols};
    if (a->kind == ACTION_HOST)
        run_host(r, a);
    else if (a->kind == ACTION_RUN || a->kind == ACTION_STORE)
        compare(r, i, a, box);
}

/* Instructions of the listing whose words are done. */
static void catch_up(Run *r, uint32_t done) {
    const ListedWords *w = r->made->words;
    for (; r->next < r->made->p.listing->n && w->first[r->next + 1] <= done;
         r->next++)
        look_at(r, r->next);
}

static void after(void *context, uint32_t node, uint8_t *const *memory) {
    Run *r = context;
    for (uint32_t i = 0; i < r->made->p.spec->n_memories; i++)
        r->memory[i] = memory[i];
    catch_up(r, r->offset + node + 1);
}

static bool run_list(Run *r, Diag *diag, uint32_t i) {
    const Made *made = r->made;
    int32_t backing = made->p.spec->backing;
    const Program *read =
        program_decode(r->arena, diag, made->p.spec, "(words)",
                       made->list[i].data, made->list[i].len);
    const ProgramReplay *replay =
        read ? program_replay(r->arena, diag, read) : NULL;
    if (!replay)
        return false;
    r->found.token_faults += replay->n_faults;
    r->offset = made->words->list[i];
    DoesWatch watch = {
        .after = after, .context = r, .before = i ? r->memory : NULL};
    const DoesResult *done = program_does(r->arena, read, r->memory[backing],
                                          made->words->bytes, &watch);
    for (uint32_t m = 0; m < made->p.spec->n_memories; m++)
        r->memory[m] = done->byte[m];
    word_run_did(&r->found, done, backing);
    return true;
}

static bool run_words(Run *r, Diag *diag) {
    catch_up(r, 0);
    for (uint32_t i = 0; i < r->made->words->n_lists && !r->found.fault; i++)
        if (!run_list(r, diag, i))
            return false;
    r->found.whole = r->next == r->made->p.listing->n;
    return true;
}

static Run run_of(Arena *arena, const Made *made) {
    const HwSpec *spec = made->p.spec;
    Run r = {.arena = arena,
             .made = made,
             .found = {.what = "tiles"},
             .memory = ARENA_ARRAY(arena, uint8_t *, spec->n_memories + 1),
             .value = ARENA_ARRAY(arena, float *, made->p.graph->tensor.n + 1)};
    for (uint32_t i = 0; i < spec->n_memories; i++)
        r.memory[i] = (int32_t)i == spec->backing
                          ? (uint8_t *)(uintptr_t)made->words->image
                          : ARENA_ARRAY(arena, uint8_t,
                                        spec->memory[i].role == HW_ACTIVE
                                            ? spec->memory[i].size + 1
                                            : 1);
    return r;
}

/* ---- compile ---- */

static WordLists lists_of(Arena *arena, const Options *options,
                          const Made *made) {
    const ListedWords *words = made->words;
    return (WordLists){.stem = file_stem(arena, options->file),
                       .ending = words->program->container,
                       .n = words->n_lists,
                       .list = made->list,
                       .image = words->image,
                       .bytes = words->bytes,
                       .constants = words->constants};
}

static cJSON *volume_json(const Made *made, uint32_t placement) {
    const Placement *p = &made->p.plan->placement[placement];
    const HwSpec *spec = made->p.spec;
    const Tensor *t = graph_tensor(made->p.graph, p->tensor);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", t->name);
    cJSON_AddStringToObject(json, "memory", spec->memory[p->memory].name);
    cJSON_AddNumberToObject(
        json, "address",
        (double)(made->words->region[p->memory] + (int64_t)p->offset));
    const int size[3] = {(int)p->whole.c, (int)p->whole.h, (int)p->whole.w};
    cJSON_AddItemToObject(json, "chw", cJSON_CreateIntArray(size, 3));
    cJSON_AddNumberToObject(json, "first_channel", p->part_c);
    cJSON_AddStringToObject(json, "type", quant_type[t->quant.type].name);
    cJSON_AddNumberToObject(json, "scale", t->quant.scale);
    return json;
}

static cJSON *map_json(Arena *arena, const Made *made, const WordLists *lists) {
    const HwSpec *spec = made->p.spec;
    const ListedWords *words = made->words;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "network", made->p.graph->name);
    cJSON_AddStringToObject(json, "machine", spec->machine);
    word_lists_json(arena, lists, json);
    cJSON *regions = cJSON_AddObjectToObject(json, "regions");
    for (uint32_t i = 0; i < spec->n_memories; i++)
        if (words->region[i] != WORDS_NOWHERE)
            cJSON_AddNumberToObject(regions, spec->memory[i].name,
                                    (double)words->region[i]);
    cJSON *volumes = cJSON_AddArrayToObject(json, "volumes");
    for (uint32_t i = 0; i < made->p.plan->n_placements; i++)
        if (words->region[made->p.plan->placement[i].memory] != WORDS_NOWHERE)
            cJSON_AddItemToArray(volumes, volume_json(made, i));
    return json;
}

static void print_made(Arena *arena, const Made *made) {
    const ListedWords *words = made->words;
    say("%s on %s: %s of words for %u of the listing, in %s\n",
        made->p.graph->name, made->p.spec->machine,
        with_noun(arena, words->program->n_nodes, "instruction"),
        made->p.listing->n, with_noun(arena, words->n_lists, "list"));
    for (uint32_t i = 0; i < made->p.listing->image.n_hosts; i++) {
        const HostLayer *host = &made->p.listing->image.host[i];
        if (host->reason)
            say("host    %s (%s): %s\n", host->name, host->kind, host->reason);
    }
    say("memory  %s bytes, %s of them constants\n",
        with_commas(arena, words->bytes), with_commas(arena, words->constants));
}

ExitCode compile_listed_words(Arena *arena, Diag *diag,
                              const Options *options) {
    Made made;
    ExitCode code = make(arena, diag, options, &made);
    if (code != EXIT_FINE)
        return code;
    Run r = run_of(arena, &made);
    const float *const *values =
        options->inputs.n ? read_inputs(arena, diag, options, made.p.original)
                          : NULL;
    if (options->inputs.n && !values)
        return EXIT_BAD_INPUT;
    if (values)
        put_inputs(&r, values);
    WordLists lists = lists_of(arena, options, &made);
    if (!word_lists_write(arena, diag, options, &lists,
                          map_json(arena, &made, &lists)))
        return EXIT_BAD_INPUT;
    if (options->json)
        return EXIT_FINE;
    print_made(arena, &made);
    word_lists_say(arena, options, &lists);
    return EXIT_FINE;
}

/* ---- verify ---- */

static void verdict_json(Arena *arena, const Options *options, const Run *r,
                         const Roundings *rounded) {
    const Made *made = r->made;
    cJSON *json = word_run_json(&r->found, &made->p);
    cJSON_AddNumberToObject(json, "lists", made->words->n_lists);
    word_run_json_values(&r->found, json);
    cJSON_AddNumberToObject(json, "token_faults", r->found.token_faults);
    cJSON_AddNumberToObject(json, "read", (double)r->found.read);
    cJSON_AddNumberToObject(json, "written", (double)r->found.written);
    cJSON_AddNumberToObject(json, "host_layers",
                            listing_host_layers(made->p.listing));
    word_run_json_end(&r->found, rounded, json);
    print_json(arena, options, json);
}

static void verdict_print(Arena *arena, const Run *r,
                          const Roundings *rounded) {
    const WordRun *f = &r->found;
    print_made(arena, r->made);
    word_run_print(arena, f, "layers and tiles");
    say("moved   %s bytes read, %s written\n", with_commas(arena, f->read),
        with_commas(arena, f->written));
    say("tokens  %s\n", with_noun(arena, f->token_faults, "fault"));
    roundings_print(arena, rounded);
    word_run_print_fault(arena, f);
    say("%s: %s\n", with_noun(arena, f->instructions, "instruction"),
        word_run_right(f) ? "right" : "WRONG");
}

ExitCode verify_listed_words(Arena *arena, Diag *diag, const Options *options) {
    Made made;
    WordWanted wanted;
    ExitCode code = make(arena, diag, options, &made);
    if (code != EXIT_FINE)
        return code;
    if (!word_wanted(arena, diag, options, &made.p, &wanted))
        return EXIT_BAD_INPUT;
    Run r = run_of(arena, &made);
    r.reference = &wanted.reference;
    put_inputs(&r, wanted.inputs);
    if (!run_words(&r, diag))
        return EXIT_BAD_INPUT;
    if (options->json)
        verdict_json(arena, options, &r, &wanted.rounded);
    else
        verdict_print(arena, &r, &wanted.rounded);
    return word_run_right(&r.found) ? EXIT_FINE : EXIT_BAD_INPUT;
}
