/* cmd_verify.c - compile, simulate the listing's text, compare every kept layer
 * with the reference evaluation of the original graph. */
#include "driver/calls.h"
#include "driver/commands.h"
#include "driver/compare.h"
#include "driver/file_program.h"
#include "driver/hostcode.h"
#include "driver/images.h"
#include "driver/lanes_program.h"
#include "driver/listed_words.h"
#include "driver/makes.h"
#include "driver/room.h"
#include "driver/rounding.h"
#include "driver/words_program.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What the simulator gets went through the text form, as for any user. */
static const Listing *through_text(Arena *arena, Diag *diag,
                                   const Listing *listing) {
    const char *text = listing_print(arena, listing);
    Listing *read = ARENA_NEW(arena, Listing);
    const Listing *parsed = listing_parse(arena, diag, listing->spec,
                                          "(listing)", text, strlen(text));
    if (!parsed)
        return NULL;
    *read = *parsed;
    if (read->n != listing->n)
        bug("%u instructions were printed, %u read back", listing->n, read->n);
    read->network = listing->network;
    read->image = listing->image;
    read->has_image = true;
    return read;
}

/* The listing's inputs, in its order, from those of the graph. */
static const float *const *in_listing_order(Arena *arena, const Graph *graph,
                                            const Listing *listing,
                                            const float *const *values) {
    uint32_t n = listing->image.n_inputs;
    const float **out = ARENA_ARRAY(arena, const float *, n);
    uint32_t k = 0;
    for (uint32_t i = 0; i < graph->node.n; i++) {
        const Node *node = &graph->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        const char *name = graph_tensor(graph, node->out[0])->name;
        for (uint32_t j = 0; j < n; j++)
            if (!strcmp(listing->image.input[j].name, name))
                out[j] = values[k];
        k++;
    }
    return out;
}

typedef struct Verdict {
    const Listing *listing;
    const SimResult *sim;
    Comparison comparison;
    Expectation reference, simulated; /* against --expect */
    uint32_t native_layers;           /* of the host */
    Roundings roundings;
    bool ok;
} Verdict;

/* Outputs of the simulator in the order of the network's. */
static const float *const *simulated_outputs(Arena *arena, const Graph *g,
                                             const Listing *listing,
                                             const float *const *value) {
    const float **out = ARENA_ARRAY(arena, const float *, g->output.n);
    for (uint32_t i = 0; i < g->output.n; i++)
        for (uint32_t k = 0; k < listing->image.n_outputs; k++)
            if (!strcmp(listing->image.output[k].name,
                        graph_tensor(g, g->output.at[i])->name))
                out[i] = value[k];
    return out;
}

/* The calls of a listing, each beside the reference's. */
typedef struct Runs {
    Arena *arena, *scratch; /* scratch: for one call */
    const Options *options;
    const VerifyArgs *own;
    Pipeline *p;
    const Calls *calls;
    Verdict *verdict;
    const float *const *expected; /* outputs of the reference in this call */
} Runs;

/* What the reference computes in this call; what the listing reads in it. */
static const float *const *run_reference(Runs *r, uint32_t call) {
    Verdict *v = r->verdict;
    double start = now_ms();
    const float *const *in = calls_inputs(r->scratch, r->calls, call);
    Values reference;
    const float *const *out =
        evaluate(r->scratch, r->p->original, in, &reference);
    r->expected = out;
    v->reference = expect_join(
        v->reference, calls_compare(r->scratch, r->calls, call, out,
                                    r->own->tolerance));
    if (call == 0) {
        v->roundings = roundings_of(r->arena, r->p, in, reference);
        v->comparison =
            compare_start(r->arena, r->p, reference, r->own->tolerance);
    } else {
        compare_next(&v->comparison, reference);
    }
    r->p->ms[STAGE_REFERENCE] += now_ms() - start;
    return in_listing_order(r->scratch, r->p->original, v->listing, in);
}

static void judge_outputs(Runs *r, uint32_t call, const float *const *outputs) {
    Verdict *v = r->verdict;
    const float *const *own =
        simulated_outputs(r->scratch, r->p->original, v->listing, outputs);
    compare_outputs(&v->comparison, own);
    calls_keep(r->calls, call, r->expected);
    v->simulated = expect_join(
        v->simulated, calls_compare(r->scratch, r->calls, call, own,
                                    r->own->tolerance));
}

/* A SimCalls. */
static const float *const *next_call(void *context, uint32_t call,
                                     const float *const *outputs) {
    Runs *r = context;
    judge_outputs(r, call - 1, outputs);
    arena_reset(r->scratch);
    return run_reference(r, call);
}

static bool simulate(Runs *r, Diag *diag) {
    Verdict *v = r->verdict;
    const float *const *in = run_reference(r, 0);
    SimOptions sim_options = {.seed = r->options->seed,
                              .compulsory = plan_compulsory(r->p->plan),
                              .observer = compare_observe,
                              .context = &v->comparison,
                              .calls = r->calls->n,
                              .called = next_call,
                              .calls_context = r};
    double start = now_ms();
    HostCode *code;
    if (!hostcode_open(r->arena, diag, r->own->host, v->listing, &sim_options,
                       &code))
        return false;
    v->native_layers = hostcode_layers(code);
    r->p->ms[STAGE_NATIVE] = code ? now_ms() - start : 0;
    double before = r->p->ms[STAGE_REFERENCE];
    start = now_ms();
    v->sim = sim_run(r->arena, diag, v->listing, v->listing->image.n_inputs,
                     in, &sim_options);
    hostcode_close(code);
    r->p->ms[STAGE_SIMULATE] =
        now_ms() - start - (r->p->ms[STAGE_REFERENCE] - before);
    if (v->sim)
        judge_outputs(r, r->calls->n - 1, v->sim->value);
    return v->sim != NULL;
}

static bool run(Arena *arena, Diag *diag, const Options *options, Pipeline *p,
                Verdict *out) {
    const VerifyArgs *own = options->own;
    Calls calls;
    out->listing = through_text(arena, diag, p->listing);
    if (!out->listing ||
        !calls_read(arena, diag, options, &own->expects, p->original, &calls))
        return false;
    Runs runs = {arena, arena_new("call"), options, own, p, &calls, out, NULL};
    bool ran = simulate(&runs, diag);
    if (ran) {
        const Comparison *c = &out->comparison;
        bool met = !out->reference.output && !out->simulated.output &&
                   out->simulated.outputs == out->reference.outputs;
        bool any = c->layers + c->outputs > 0 || !out->listing->n;
        out->ok = !c->first.layer && !out->sim->n_violations && any && met;
    }
    arena_free(runs.scratch);
    return ran;
}

static cJSON *mismatch_json(const Mismatch *first) {
    if (!first->layer)
        return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "layer", first->layer);
    const int at[3] = {(int)first->c, (int)first->h, (int)first->w};
    cJSON_AddItemToObject(json, "chw", cJSON_CreateIntArray(at, 3));
    cJSON_AddNumberToObject(json, "expected", (double)first->expected);
    cJSON_AddNumberToObject(json, "got", (double)first->got);
    return json;
}

static void report_json(Arena *arena, const Options *options, const Pipeline *p,
                        const Verdict *v) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", v->ok);
    cJSON_AddStringToObject(json, "network", v->listing->network);
    cJSON_AddStringToObject(json, "machine", p->spec->machine);
    double error = v->comparison.max_error;
    cJSON_AddNumberToObject(json, "max_rel_error",
                            isfinite(error) ? error : 1e300);
    cJSON_AddNumberToObject(json, "max_code_error", v->comparison.max_codes);
    cJSON_AddNumberToObject(json, "codes_halfway",
                            (double)v->comparison.halfway.codes);
    cJSON_AddItemToObject(json, "first_mismatch",
                          mismatch_json(&v->comparison.first));
    cJSON_AddNumberToObject(json, "layers_compared", v->comparison.layers);
    const char *names[COMPARE_NAMES];
    cJSON_AddNumberToObject(json, "layers_without_values",
                            compare_missing(&v->comparison, names));
    cJSON_AddNumberToObject(json, "quantised_layers_compared",
                            v->comparison.quantised);
    if (v->roundings.n)
        cJSON_AddItemToObject(json, "rounding", roundings_json(&v->roundings));
    if (v->reference.outputs) {
        double reference = v->reference.max_error;
        double listing = v->simulated.max_error;
        cJSON_AddNumberToObject(json, "expect_error_reference",
                                isfinite(reference) ? reference : 1e300);
        cJSON_AddNumberToObject(json, "expect_error_listing",
                                isfinite(listing) ? listing : 1e300);
    }
    add_sim_json(arena, json, v->listing, v->sim);
    Accounts accounts = plan_accounts(arena, p, v->sim->cycles);
    accounts_add_json(json, &accounts);
    add_images_json(json, p, v->sim);
    add_traffic_json(json, p->plan);
    cJSON_AddBoolToObject(json, "two_levels", p->plan->two_levels);
    add_placement_json(json, p->plan);
    cJSON_AddNumberToObject(json, "native_layers", v->native_layers);
    cJSON_AddNumberToObject(json, "seeded_layers", p->import.seeded);
    cJSON_AddItemToObject(json, "ms", stage_times_json(p));
    print_json(arena, options, json);
}

static void print_compared(const Comparison *c) {
    uint32_t real = c->layers - c->quantised;
    if (real || !c->layers)
        say("values  %u layers and tiles compared, largest relative error "
            "%.3g\n",
            real, c->max_error);
    if (c->quantised && c->max_codes > 0)
        say("codes   %u layers and tiles compared, off by up to %g\n",
            c->quantised, c->max_codes);
    else if (c->quantised)
        say("codes   %u layers and tiles compared, all equal bit for bit\n",
            c->quantised);
    if (c->halfway.codes)
        say("        %" PRIu64 " of the host's, within a float's rounding of "
            "halfway, went to the other code\n",
            c->halfway.codes);
}

static void report_values(const Comparison *c) {
    const char *name[COMPARE_NAMES];
    uint32_t missing = compare_missing(c, name);
    print_compared(c);
    if (c->first.layer)
        say("        first to differ: %s at c %u, h %u, w %u: expected "
            "%.9g, got %.9g\n",
            c->first.layer, c->first.c, c->first.h, c->first.w,
            (double)c->first.expected, (double)c->first.got);
    if (!missing)
        return;
    say("        %u made no values to compare:", missing);
    for (uint32_t i = 0; i < missing && i < COMPARE_NAMES; i++)
        say("%s %s", i ? "," : "", name[i]);
    say("%s\n", missing > COMPARE_NAMES ? ", ..." : "");
}

static void report(Arena *arena, const Pipeline *p, const Options *options,
                   const Verdict *v) {
    say("%s on %s: %s\n", v->listing->network, p->spec->machine,
        v->ok ? "the listing computes what the network computes" : "WRONG");
    report_values(&v->comparison);
    roundings_print(arena, &v->roundings);
    if (v->reference.outputs) {
        expect_print("reference", &v->reference);
        expect_print("listing", &v->simulated);
    }
    print_placement(arena, p->plan);
    print_products(arena, p->plan);
    print_sim(arena, v->listing, v->sim, pipeline_images(p));
    print_images(arena, p, v->sim);
    PlanBoundKind bound = plan_bound(p->plan);
    say("bound   %s bytes over DDR: %s\n",
        with_commas(arena, p->plan->ddr_bound[bound]),
        plan_bound_words(p->plan, bound));
    Accounts accounts = plan_accounts(arena, p, v->sim->cycles);
    accounts_print(arena, &accounts);
    if (v->native_layers)
        say("native  code for %s\n",
            with_noun(arena, v->native_layers, "layer"));
    print_seeded(arena, p->import.seeded);
    roundings_note(p, options);
    say("ms     ");
    for (int i = 0; i < STAGE_COUNT; i++)
        if (p->ms[i] > 0)
            say(" %s %.1f", stage_name[i], p->ms[i]);
    say("\n");
}

bool verify_pipeline(Arena *arena, Diag *diag, const Options *options,
                     Pipeline *p, bool *right) {
    Verdict verdict = {0};
    if (!room_verifies(arena, diag, p) ||
        !run(arena, diag, options, p, &verdict))
        return false;
    *right = verdict.ok;
    return true;
}

ExitCode cmd_verify(Arena *arena, Diag *diag, const Options *options) {
    Makes makes = options_make(arena, options);
    if (makes == MAKES_WORDS)
        return verify_words(arena, diag, options);
    if (makes == MAKES_DESCRIPTION)
        return verify_lanes(arena, diag, options);
    if (makes == MAKES_FILE)
        return verify_file(arena, diag, options);
    if (options_listed_words(arena, options))
        return verify_listed_words(arena, diag, options);
    Pipeline p;
    ExitCode code = pipeline_run(arena, diag, options, STAGE_CODEGEN, &p);
    if (code != EXIT_FINE)
        return code;
    Verdict verdict = {0};
    if (!room_verifies(arena, diag, &p))
        return EXIT_NO_FIT;
    if (!run(arena, diag, options, &p, &verdict))
        return EXIT_BAD_INPUT;
    if (options->json)
        report_json(arena, options, &p, &verdict);
    else
        report(arena, &p, options, &verdict);
    return verdict.ok ? EXIT_FINE : EXIT_BAD_INPUT;
}
