/* cmd_quantise.c - a network of real numbers and samples -> one on codes, in
 * the forms that others read, and what was measured. */
#include "base/guard.h"
#include "driver/commands.h"
#include "driver/quantised.h"
#include "frontends/samples.h"
#include "passes/pass.h"
#include "quantise/quantise.h"

#include <string.h>
#include <unistd.h>

/* ---- what is asked ---- */

static bool refuse(Diag *diag, const char *what) {
    diag_error(diag, (Loc){0}, "%s", what);
    return false;
}

static bool is(const char *word, const char *what) {
    return word && !strcmp(word, what);
}

/* Names between commas, as bits. */
static bool parse_repairs(Diag *diag, const char *text, uint32_t *out) {
    const uint32_t all = (1u << REPAIR_COUNT) - 1;
    *out = text ? 0 : all & ~(1u << REPAIR_KEEP);
    if (!text || is(text, "none"))
        return true;
    if (is(text, "all")) {
        *out = all;
        return true;
    }
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ",");
        uint32_t k = 0;
        while (k < REPAIR_COUNT &&
               (strlen(quantise_repair_name[k]) != len ||
                strncmp(quantise_repair_name[k], at, len) != 0))
            k++;
        if (k == REPAIR_COUNT)
            return refuse(diag, "--repair: there are equalise, adaround, bias, "
                                "ranges, keep; all, none");
        *out |= 1u << k;
        at += len + (at[len] == ',');
    }
    return true;
}

static bool parse_bits_of(const char *text, QuantiseBits *out) {
    unsigned weight, volume = 8;
    char rest;
    if (is(text, "real")) {
        out->weight = out->volume = 0;
        return true;
    }
    int n = sscanf(text, "%u/%u%c", &weight, &volume, &rest);
    if (n < 1 || n > 2 ||
        (n == 1 && strspn(text, "0123456789") != strlen(text)))
        return false;
    out->weight = weight;
    out->volume = volume;
    return (weight == 2 || weight == 4 || weight == 8 || weight == 16) &&
           (volume == 8 || volume == 16);
}

static bool parse_bits(Arena *arena, Diag *diag, const QuantiseArgs *own,
                       const Graph *g, QuantiseOptions *out) {
    QuantiseBits *bits = ARENA_ARRAY(arena, QuantiseBits, own->bits.n);
    for (uint32_t i = 0; i < own->bits.n; i++) {
        const char *text = own->bits.at[i], *equals = strrchr(text, '=');
        bool there = !equals;
        if (equals)
            bits[i].layer = arena_strndup(arena, text, (size_t)(equals - text));
        for (uint32_t k = 0; !there && k < g->node.n; k++)
            there = !strcmp(g->node.at[k].name, bits[i].layer);
        if (!there)
            return refuse(diag, arena_printf(arena, "--bits: no layer \"%s\"",
                                             bits[i].layer));
        if (!parse_bits_of(equals ? equals + 1 : text, &bits[i]))
            return refuse(diag, "--bits takes [LAYER=]W[/V] with W 2, 4, 8 or "
                                "16 and V 8 or 16, or [LAYER=]real");
    }
    out->bits = bits;
    out->n_bits = own->bits.n;
    return true;
}

static void progress_line(const char *what, uint32_t done, uint32_t of) {
    fprintf(guard_err(), "\r%-40s %5u of %-6u", what, done, of);
    if (done >= of)
        fputs("\r                                                        \r",
              guard_err());
    fflush(guard_err());
}

/* An option against what the machine has. */
typedef struct Against {
    bool holds;
    const char *option, *word; /* of the user */
    const char *key, *has;     /* of the machine */
} Against;

/* True where the machine can what the user asks. */
static bool suits(Diag *diag, const QuantiseArgs *own, const HwSpec *spec,
                  const QuantiseNumbers *n) {
    const char *wanted = own->type;
    const char *type = quant_type[n->type].name;
    const Against all[] = {
        {wanted && !n->any_type && !is(wanted, type), "type", wanted, "type",
         type},
        {n->pow2 && is(own->scales, "any"), "scales", "any", "scales", "pow2"},
        {n->symmetric && is(own->zeros, "any"), "zeros", "any", "zero_points",
         "none"},
        {n->per_tensor && is(own->per, "channel"), "per", "channel",
         "weights_per", "tensor"},
    };
    bool fine = true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const Against *a = &all[i];
        if (!a->holds)
            continue;
        diag_error(diag, spec->numbers.stated ? spec->numbers.loc : spec->loc,
                   "--%s %s: %s has `%s: %s` (`%s`)", a->option, a->word,
                   spec->machine, a->key, a->has, quantise_key(spec));
        fine = false;
    }
    return fine;
}

/* Bits of weights that the machine has. */
static bool bits_suit(Diag *diag, const HwSpec *spec,
                      const QuantiseOptions *wanted) {
    const HwRange *can = spec ? &spec->numbers.weight_bits : NULL;
    for (uint32_t i = 0; can && i < wanted->n_bits; i++)
        if (wanted->bits[i].weight &&
            !hw_range_has(can, wanted->bits[i].weight)) {
            diag_error(diag, can->loc,
                       "--bits %u: `numbers.weight_bits` of %s has not so many",
                       wanted->bits[i].weight, spec->machine);
            return false;
        }
    return true;
}

/* What the user asks, as far as the machine, if there is one, can. */
static bool choose_numbers(Diag *diag, const QuantiseArgs *own,
                           const HwSpec *spec, QuantiseNumbers *out) {
    QuantiseNumbers n = spec ? quantise_machine(spec)
                             : (QuantiseNumbers){.type = QUANT_I8,
                                                 .any_type = true,
                                                 .round = QUANT_EVEN,
                                                 .wide = true};
    if (spec && !quantise_key(spec))
        diag_warning(diag, spec->loc,
                     "%s does not say what numbers it takes (`numbers`): any",
                     spec->machine);
    if (spec && !suits(diag, own, spec, &n))
        return false;
    if (own->type)
        n.type = is(own->type, "uint8") ? QUANT_U8 : QUANT_I8;
    n.pow2 |= is(own->scales, "pow2");
    n.symmetric |= is(own->zeros, "none");
    n.per_tensor |= is(own->per, "tensor");
    if (own->rounding)
        n.round = is(own->rounding, "up") ? QUANT_UP : QUANT_EVEN;
    *out = n;
    return true;
}

/* A quantizer.json has int8 around 0 by free scales, one a channel. */
static bool takes_given(Diag *diag, const QuantiseArgs *own, const HwSpec *spec,
                        QuantiseNumbers *n) {
    if (spec && (n->pow2 || n->per_tensor || n->unsigned_weights ||
                 (n->type != QUANT_I8 && !n->any_type))) {
        diag_error(diag, spec->numbers.stated ? spec->numbers.loc : spec->loc,
                   "--quantizer: int8 by free scales, one a channel, is not "
                   "what %s has (`%s`)",
                   spec->machine, quantise_key(spec));
        return false;
    }
    n->type = QUANT_I8;
    n->symmetric = true;
    if (!spec && !own->rounding) /* a factor and a shift */
        n->round = QUANT_UP;
    return true;
}

static bool make_options(Arena *arena, Diag *diag, const Options *o,
                         const HwSpec *spec, const Graph *g,
                         QuantiseOptions *out) {
    const QuantiseArgs *own = o->own;
    const char *method = own->method;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *out = (QuantiseOptions){
        .method = METHOD_MSE,
        .percentile = own->percentile,
        .keep_most = (uint32_t)own->keep,
        .threads = own->jobs   ? (uint32_t)own->jobs
                   : cores > 0 ? (uint32_t)cores
                               : 1,
        .progress = o->progress || isatty(2) ? progress_line : NULL,
    };
    if (!choose_numbers(diag, own, spec, &out->numbers) ||
        (own->quantizer && (!takes_given(diag, own, spec, &out->numbers) ||
                            !quantizer_read(arena, diag, own->quantizer, out))))
        return false;
    for (uint32_t k = 0; method && k < METHOD_COUNT; k++)
        if (is(method, quantise_method_name[k]))
            out->method = (QuantiseMethod)k;
    if (!(out->percentile > 50 && out->percentile <= 100))
        return refuse(diag, "--percentile: above 50, at most 100");
    return parse_repairs(diag, own->repair, &out->repairs) &&
           parse_bits(arena, diag, own, g, out) && bits_suit(diag, spec, out);
}

/* ---- samples ---- */

static bool factors(Diag *diag, const char *name, const char *text, uint32_t *n,
                    double out[SAMPLE_CHANNELS]) {
    if (!text || samples_factors(text, n, out))
        return true;
    diag_error(diag, (Loc){0}, "%s takes 1 to %d numbers with commas between",
               name, SAMPLE_CHANNELS);
    return false;
}

static bool read_samples(Arena *arena, Diag *diag, const QuantiseArgs *own,
                         const Graph *g, const char *path, const char *labels,
                         QuantiseSamples *out) {
    SampleOptions options = {.path = path,
                             .labels = labels,
                             .layout = own->layout,
                             .resize = own->resize,
                             .raw = own->raw_type,
                             .bgr = is(own->color, "bgr")};
    SampleSet set;
    VEC(SampleInput) inputs = {0};
    if (!factors(diag, "--mean", own->mean, &options.n_means, options.mean) ||
        !factors(diag, "--scale", own->scale, &options.n_scales, options.scale))
        return false;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        const Tensor *t = graph_tensor(g, node->out[0]);
        vec_push(arena, &inputs, ((SampleInput){t->name, t->shape}));
    }
    if (!samples_read(arena, diag, &options, inputs.n, inputs.at, &set))
        return false;
    *out = (QuantiseSamples){set.n, set.n_inputs, set.value, set.label};
    return true;
}

/* ---- the whole ---- */

static bool on_real_numbers(Diag *diag, const Options *o, const Graph *g) {
    for (uint32_t i = 0; i < g->tensor.n; i++)
        if (g->tensor.at[i].quant.type != QUANT_NONE) {
            diag_error(diag, (Loc){o->file, 0, 0},
                       "the network is on codes already: tensor %s is %s",
                       g->tensor.at[i].name,
                       quant_type[g->tensor.at[i].quant.type].name);
            return false;
        }
    return true;
}

/* Behind the passes that suit every machine. */
static Graph *simplified(Arena *arena, Diag *diag, const Graph *g) {
    Graph *copy = graph_clone(arena, g);
    PassContext context = {.diag = diag, .scratch = arena_new("passes")};
    bool ok = passes_run(copy, &context, NULL, NULL, NULL);
    arena_free(context.scratch);
    return ok ? copy : NULL;
}

/* Outputs as the machine rounds: of the samples of --test, else of those that
 * were held back. */
static void judge_machine(Arena *arena, const HwSpec *spec,
                          const QuantiseSamples *samples,
                          QuantisedReport *report) {
    const Quantised *q = report->result;
    const QuantRound rule = pipeline_rounds(spec);
    const Graph *codes = pipeline_rounded(arena, q->graph, rule);
    report->machine = spec->machine;
    report->machine_round = rule;
    report->by_machine =
        quantise_judge(q->real, codes, samples, report->wanted->threads);
}

/* What was made, on samples that nothing was chosen by. */
static void judge(Arena *arena, const HwSpec *spec,
                  const QuantiseSamples *samples, const QuantiseSamples *test,
                  QuantisedReport *report) {
    const Quantised *q = report->result;
    if (test)
        report->test =
            quantise_judge(q->real, q->graph, test, report->wanted->threads);
    if (!spec || spec->rounding == HW_ROUNDING_NETWORK ||
        is(quantise_key(spec), "arithmetic")) /* neither of the two rules */
        return;
    if (!test && !samples->n)
        return;
    const QuantiseSamples held_back = quantise_held_back(arena, samples);
    judge_machine(arena, spec, test ? test : &held_back, report);
}

/* By samples, or by a file, and then by nothing else. */
static bool ranges_are_told(Diag *diag, const QuantiseArgs *own) {
    if (!own->calibrate && !own->quantizer)
        return refuse(diag, "ranges come from samples: give some with "
                            "--calibrate PATH");
    bool more = own->method || own->scales || own->per || own->zeros ||
                own->type || own->bits.n || own->repair;
    return !own->quantizer || !more ||
           refuse(diag, "--quantizer says all that --method, --scales, --per, "
                        "--zeros, --type, --bits and --repair do");
}

ExitCode cmd_quantise(Arena *arena, Diag *diag, const Options *options) {
    const QuantiseArgs *own = options->own;
    Pipeline p;
    QuantiseOptions wanted;
    QuantisedReport report = {.options = options};
    if (!ranges_are_told(diag, own))
        return EXIT_BAD_USAGE;
    ExitCode code = pipeline_run(arena, diag, options, STAGE_READ, &p);
    if (code != EXIT_FINE)
        return code;
    if (!on_real_numbers(diag, options, p.original))
        return EXIT_BAD_INPUT;
    const Graph *g = simplified(arena, diag, p.original);
    const char *labels = own->labels;
    bool tests = own->test != NULL;
    if (!g || !make_options(arena, diag, options, p.spec, g, &wanted))
        return EXIT_BAD_INPUT;
    QuantiseSamples samples = {0}, test;
    if ((own->calibrate &&
         !read_samples(arena, diag, own, p.original, own->calibrate,
                       tests ? NULL : labels, &samples)) ||
        (tests &&
         !read_samples(arena, diag, own, p.original, own->test, labels, &test)))
        return EXIT_BAD_INPUT;
    const Quantised *q = quantise_run(arena, diag, g, &samples, &wanted);
    if (!q)
        return EXIT_BAD_INPUT;
    report.wanted = &wanted;
    report.samples = samples.n;
    report.result = q;
    report.seeded = p.import.seeded;
    judge(arena, p.spec, &samples, tests ? &test : NULL, &report);
    if (!quantised_write(arena, diag, &report))
        return EXIT_BAD_INPUT;
    if (options->json)
        print_json(arena, options, quantised_json(arena, &report));
    else
        quantised_print(arena, &report);
    return EXIT_FINE;
}
