/* quantised.c - what `quantise` writes and prints; see quantised.h. */
#include "driver/quantised.h"

#include "driver/commands.h"
#include "frontends/frontend.h"
#include "report/quantised.h"

#include <math.h>
#include <string.h>

static bool write_part(Arena *arena, Diag *diag, QuantisedReport *r,
                       const char *name, const void *data, size_t len) {
    const char *path = arena_printf(arena, "%s/%s", r->options->out, name);
    vec_push(arena, &r->written, path);
    return file_write(arena, diag, path, data, len);
}

static bool write_json(Arena *arena, Diag *diag, QuantisedReport *r,
                       const char *stem) {
    Text bytes = text_new(arena);
    const char *weights = arena_printf(arena, "%s.bin", stem);
    const char *json = graph_to_json(arena, r->result->graph, weights, &bytes);
    return write_part(arena, diag, r, weights, bytes.at, bytes.len) &&
           write_part(arena, diag, r, arena_printf(arena, "%s.json", stem),
                      json, strlen(json));
}

typedef bool WriteForm(Arena *arena, Diag *diag, const Graph *g, Text *out);

/* Another form; layers that it has not are told, and it is left out. */
static bool write_form(Arena *arena, Diag *diag, QuantisedReport *r,
                       const char *name, WriteForm *form) {
    Diag *said = diag_new(arena);
    Text bytes;
    if (form(arena, said, r->result->graph, &bytes))
        return write_part(arena, diag, r, name, bytes.at, bytes.len);
    diag_warning(diag, diag_at(said, 0)->loc, "%s is not written: %s", name,
                 diag_at(said, 0)->text);
    return true;
}

static bool write_forms(Arena *arena, Diag *diag, QuantisedReport *r,
                        const char *stem) {
    return write_form(arena, diag, r, arena_printf(arena, "%s.onnx", stem),
                      graph_to_onnx) &&
           write_form(arena, diag, r, arena_printf(arena, "%s.tflite", stem),
                      graph_to_tflite);
}

static bool write_numbers(Arena *arena, Diag *diag, QuantisedReport *r,
                          const char *stem) {
    cJSON *json = quantised_json(arena, r);
    const char *text = json_print(arena, json, true);
    json_free(json);
    return write_part(arena, diag, r,
                      arena_printf(arena, "%s.report.json", stem), text,
                      strlen(text));
}

static bool write_page(Arena *arena, Diag *diag, QuantisedReport *r,
                       const char *stem) {
    const char *page =
        report_quantised(arena, r->result, &r->test, &r->by_machine);
    return write_part(arena, diag, r, arena_printf(arena, "%s.html", stem),
                      page, strlen(page));
}

static bool write_quantizer(Arena *arena, Diag *diag, QuantisedReport *r) {
    const char *text = quantizer_json(arena, r->result->graph);
    return !text ||
           write_part(arena, diag, r, "quantizer.json", text, strlen(text));
}

bool quantised_write(Arena *arena, Diag *diag, QuantisedReport *r) {
    if (!r->options->out)
        return true;
    const char *stem = file_stem(arena, r->options->file);
    return file_make_dir(arena, diag, r->options->out) &&
           write_json(arena, diag, r, stem) &&
           write_forms(arena, diag, r, stem) &&
           write_quantizer(arena, diag, r) &&
           write_page(arena, diag, r, stem) &&
           write_numbers(arena, diag, r, stem);
}

/* ---- JSON ---- */

static cJSON *judgement_json(const QuantiseJudgement *j) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "samples", j->samples);
    cJSON_AddNumberToObject(json, "sqnr_db", quantise_db(&j->error));
    cJSON_AddNumberToObject(json, "cosine", quantise_cosine(&j->error));
    cJSON_AddNumberToObject(json, "same_top1", j->same_top);
    if (!j->labels)
        return json;
    cJSON_AddNumberToObject(json, "labels", j->labels);
    cJSON_AddNumberToObject(json, "right_real", j->right_real);
    cJSON_AddNumberToObject(json, "right_codes", j->right_codes);
    return json;
}

static cJSON *tensor_json(const QuantiseTensor *t) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "layer", t->layer);
    cJSON_AddStringToObject(json, "tensor", t->tensor);
    cJSON_AddStringToObject(json, "op", t->op);
    cJSON_AddStringToObject(json, "type", quant_type[t->quant.type].name);
    cJSON_AddNumberToObject(json, "scale", t->quant.scale);
    cJSON_AddNumberToObject(json, "zero", t->quant.zero);
    if (t->weight_bits)
        cJSON_AddNumberToObject(json, "weight_bits", t->weight_bits);
    const double seen[] = {t->lo, t->hi}, reach[] = {t->reach_lo, t->reach_hi};
    cJSON_AddItemToObject(json, "seen", cJSON_CreateDoubleArray(seen, 2));
    cJSON_AddItemToObject(json, "reach", cJSON_CreateDoubleArray(reach, 2));
    cJSON_AddNumberToObject(json, "clipped", t->clipped);
    cJSON_AddNumberToObject(json, "codes_used", t->codes_used);
    cJSON_AddNumberToObject(json, "sqnr_db", quantise_db(&t->all));
    cJSON_AddNumberToObject(json, "sqnr_alone_db", quantise_db(&t->alone));
    cJSON_AddNumberToObject(json, "cosine", quantise_cosine(&t->all));
    cJSON *bars = cJSON_AddArrayToObject(json, "histogram");
    for (int i = 0; i < QUANTISE_BARS; i++)
        cJSON_AddItemToArray(bars, cJSON_CreateNumber((double)t->bar[i]));
    cJSON_AddNumberToObject(json, "zeros", (double)t->zeros);
    if (t->advice)
        cJSON_AddStringToObject(json, "advice", t->advice);
    return json;
}

static cJSON *examples_json(const Quantised *q) {
    enum { MOST = 20 };
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < q->n_examples; i++) {
        const QuantiseExample *e = &q->example[i];
        int n = (int)(e->n < MOST ? e->n : MOST);
        cJSON *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "sample", e->sample);
        cJSON_AddItemToObject(json, "real", cJSON_CreateFloatArray(e->real, n));
        cJSON_AddItemToObject(json, "codes",
                              cJSON_CreateFloatArray(e->codes, n));
        cJSON_AddItemToArray(list, json);
    }
    return list;
}

static cJSON *repairs_json(const Quantised *q) {
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < q->n_trials; i++) {
        const QuantiseTrial *t = &q->trial[i];
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "repair", t->what);
        cJSON_AddStringToObject(json, "detail", t->detail);
        cJSON_AddNumberToObject(json, "before_db", t->before);
        cJSON_AddNumberToObject(json, "after_db", t->after);
        cJSON_AddBoolToObject(json, "kept", t->kept);
        cJSON_AddItemToArray(list, json);
    }
    return list;
}

/* The judgement by the machine's rule of rounding. */
static cJSON *machine_json(const QuantisedReport *r) {
    cJSON *json = judgement_json(&r->by_machine);
    cJSON_AddStringToObject(json, "name", r->machine);
    cJSON_AddStringToObject(json, "rounding",
                            quant_round_name[r->machine_round]);
    return json;
}

static const char *ranges_by(const QuantisedReport *r) {
    return r->wanted->n_given ? "quantizer.json"
                              : quantise_method_name[r->wanted->method];
}

cJSON *quantised_json(Arena *arena, const QuantisedReport *r) {
    (void)arena;
    const Quantised *q = r->result;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", true);
    cJSON_AddStringToObject(json, "network", q->graph->name);
    cJSON_AddStringToObject(json, "method", ranges_by(r));
    cJSON_AddStringToObject(json, "rounding",
                            quant_round_name[r->wanted->numbers.round]);
    cJSON_AddNumberToObject(json, "samples", r->samples);
    cJSON_AddItemToObject(json, "repairs", repairs_json(q));
    cJSON_AddItemToObject(json, "held_back", judgement_json(&q->held_back));
    if (r->test.samples)
        cJSON_AddItemToObject(json, "test", judgement_json(&r->test));
    if (r->machine)
        cJSON_AddItemToObject(json, "machine", machine_json(r));
    cJSON_AddNumberToObject(json, "weight_bytes_before",
                            (double)q->weight_bytes_before);
    cJSON_AddNumberToObject(json, "weight_bytes_after",
                            (double)q->weight_bytes_after);
    cJSON_AddNumberToObject(json, "measured_samples", q->measured);
    cJSON *tensors = cJSON_AddArrayToObject(json, "tensors");
    for (uint32_t i = 0; i < q->n_tensors; i++)
        cJSON_AddItemToArray(tensors, tensor_json(&q->tensor[i]));
    cJSON_AddItemToObject(json, "examples", examples_json(q));
    cJSON_AddNumberToObject(json, "seeded_layers", r->seeded);
    return json;
}

/* ---- for people ---- */

static void print_judgement(const char *what, const QuantiseJudgement *j) {
    say("%-8s%u samples: %.2f dB, same first answer for %u (%.2f %%)\n", what,
        j->samples, quantise_db(&j->error), j->same_top,
        100.0 * j->same_top / j->samples);
    if (j->labels)
        say("        right: %u of %u (%.2f %%); on real numbers %u "
            "(%.2f %%)\n",
            j->right_codes, j->labels, 100.0 * j->right_codes / j->labels,
            j->right_real, 100.0 * j->right_real / j->labels);
}

/* Layers by their own error, the worst first. */
static void print_worst(Arena *arena, const Quantised *q) {
    enum { MOST = 5 };
    bool *told = ARENA_ARRAY(arena, bool, q->n_tensors);
    for (int i = 0; i < MOST; i++) {
        const QuantiseTensor *worst = NULL;
        for (uint32_t k = 0; k < q->n_tensors; k++)
            if (!told[k] && (!worst || quantise_db(&q->tensor[k].alone) <
                                           quantise_db(&worst->alone)))
                worst = &q->tensor[k];
        if (!worst)
            return;
        told[worst - q->tensor] = true;
        say("%-8s%s (%s): %.2f dB alone, %.2f with all before it%s%s\n",
            i ? "" : "worst", worst->layer, worst->op,
            quantise_db(&worst->alone), quantise_db(&worst->all),
            worst->advice ? "; " : "", worst->advice ? worst->advice : "");
    }
}

static uint32_t tensors_on_codes(const Graph *g) {
    uint32_t n = 0;
    for (uint32_t t = 0; t < g->tensor.n; t++)
        n += g->tensor.at[t].quant.type != QUANT_NONE;
    return n;
}

void quantised_print(Arena *arena, const QuantisedReport *r) {
    const Quantised *q = r->result;
    say("%s: %u of %u tensors on codes, ranges by %s", q->graph->name,
        tensors_on_codes(q->graph), q->graph->tensor.n, ranges_by(r));
    if (r->samples)
        say(" over %u samples", r->samples);
    say("\n");
    for (uint32_t i = 0; i < q->n_trials; i++) {
        const QuantiseTrial *t = &q->trial[i];
        say("repair  %s, %s: %.2f -> %.2f dB, %s\n", t->what, t->detail,
            t->before, t->after, t->kept ? "kept" : "dropped");
    }
    print_worst(arena, q);
    if (r->samples)
        print_judgement(r->wanted->n_given ? "all" : "held", &q->held_back);
    if (r->test.samples)
        print_judgement("test", &r->test);
    if (r->machine)
        say("machine %s rounds %s: %u samples: %.2f dB, same first answer for "
            "%u (%.2f %%)\n",
            r->machine, quant_round_name[r->machine_round],
            r->by_machine.samples, quantise_db(&r->by_machine.error),
            r->by_machine.same_top,
            100.0 * r->by_machine.same_top / r->by_machine.samples);
    say("weights %s bytes, before %s\n",
        with_commas(arena, q->weight_bytes_after),
        with_commas(arena, q->weight_bytes_before));
    print_seeded(arena, r->seeded);
    for (uint32_t i = 0; i < r->written.n; i++)
        say("wrote   %s\n", r->written.at[i]);
}
