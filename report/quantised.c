/* quantised.c - the page of a network on codes; see quantised.h. */
#include "report/quantised.h"

#include "report/html.h"

#include <stdlib.h>

static void judgement(Text *to, const char *what, const QuantiseJudgement *j) {
    text_addf(to, "<tr><td class=l>%s<td>%u<td>%.2f dB<td>%u (%.2f %%)", what,
              j->samples, quantise_db(&j->error), j->same_top,
              100.0 * j->same_top / j->samples);
    if (j->labels)
        text_addf(to, "<td>%u of %u<td>%u", j->right_codes, j->labels,
                  j->right_real);
    text_add(to, "</tr>\n");
}

static void judgements(Text *to, const Quantised *q,
                       const QuantiseJudgement *test,
                       const QuantiseJudgement *by_machine) {
    text_add(to, "<h2>Outputs</h2>\n<table><tr><th class=l>samples<th>number"
                 "<th>SQNR<th>same first answer<th>right<th>on real "
                 "numbers</tr>\n");
    judgement(to, "held back", &q->held_back);
    if (test->samples)
        judgement(to, "test", test);
    if (by_machine->samples)
        judgement(to, "as the machine rounds", by_machine);
    text_add(to, "</table>\n");
}

static void repairs(Text *to, const Quantised *q) {
    text_add(to, "<h2>Repairs</h2>\n<table><tr><th class=l>repair<th class=l>"
                 "how<th>before<th>after<th class=l></tr>\n");
    for (uint32_t i = 0; i < q->n_trials; i++) {
        const QuantiseTrial *t = &q->trial[i];
        text_addf(to, "<tr%s><td class=l>%s<td class=l>",
                  t->kept ? "" : " class=off", t->what);
        html_text(to, t->detail);
        text_addf(to, "<td>%.2f dB<td>%.2f dB<td class=l>%s</tr>\n", t->before,
                  t->after, t->kept ? "kept" : "dropped");
    }
    text_add(to, "</table>\n");
}

static void histogram(Text *to, const QuantiseTensor *t) {
    enum { HEIGHT = 24, WIDTH = 2 };
    uint64_t most = 1;
    for (int i = 0; i < QUANTISE_BARS; i++)
        most = t->bar[i] > most ? t->bar[i] : most;
    text_addf(to, "<svg width=%d height=%d>", QUANTISE_BARS * WIDTH, HEIGHT);
    for (int i = 0; i < QUANTISE_BARS; i++) {
        double height = HEIGHT * (double)t->bar[i] / (double)most;
        if (t->bar[i])
            text_addf(to,
                      "<rect x=%d y=%.1f width=%d height=%.1f "
                      "fill=#4e79a7 />",
                      i * WIDTH, HEIGHT - height, WIDTH, height);
    }
    text_add(to, "</svg>");
}

static void row(Text *to, const QuantiseTensor *t) {
    text_add(to, t->advice ? "<tr class=hot><td class=l>" : "<tr><td class=l>");
    html_text(to, t->layer);
    text_addf(to, "<td class=l>%s<td>%.2f<td>%.2f<td>%.6f", t->op,
              quantise_db(&t->alone), quantise_db(&t->all),
              quantise_cosine(&t->all));
    text_addf(to, "<td class=l>%s<td>%.6g<td>%d",
              quant_type[t->quant.type].name, t->quant.scale,
              (int)t->quant.zero);
    text_addf(to, "<td>%.4g .. %.4g<td>%.4g .. %.4g<td>%.3f %%<td>%u", t->lo,
              t->hi, t->reach_lo, t->reach_hi, 100 * t->clipped, t->codes_used);
    text_add(to, "<td class=l>");
    histogram(to, t);
    text_add(to, "<td class=w>");
    html_text(to, t->advice ? t->advice : "");
    text_add(to, "</tr>\n");
}

static int worst_first(const void *a, const void *b) {
    const QuantiseTensor *const *x = a, *const *y = b;
    double p = quantise_db(&(*x)->alone), q = quantise_db(&(*y)->alone);
    return p < q ? -1 : p > q ? 1 : *x < *y ? -1 : *x > *y;
}

static void layers(Arena *arena, Text *to, const Quantised *q) {
    const QuantiseTensor **by =
        ARENA_ARRAY(arena, const QuantiseTensor *, q->n_tensors);
    for (uint32_t i = 0; i < q->n_tensors; i++)
        by[i] = &q->tensor[i];
    if (q->n_tensors)
        qsort(by, q->n_tensors, sizeof *by, worst_first);
    text_addf(to,
              "<h2>Layers, the worst first</h2>\n<p class=sub>SQNR in dB over "
              "%u samples: of the layer alone, and with all before it on "
              "codes.</p>\n<div class=scroll><table><tr><th class=l>layer"
              "<th class=l>kind<th>alone<th>all<th>cosine<th class=l>codes"
              "<th>scale<th>zero<th>seen<th>reach<th>cut off<th>used"
              "<th class=l>values<th class=l>advice</tr>\n",
              q->measured);
    for (uint32_t i = 0; i < q->n_tensors; i++)
        row(to, by[i]);
    text_add(to, "</table></div>\n");
}

static void examples(Text *to, const Quantised *q) {
    enum { MOST = 12 };
    text_add(to, "<h2>Outputs side by side</h2>\n<div class=scroll><table>\n");
    for (uint32_t i = 0; i < q->n_examples; i++)
        for (int side = 0; side < 2; side++) {
            const QuantiseExample *e = &q->example[i];
            text_addf(to, "<tr><td class=l>sample %u<td class=l>%s", e->sample,
                      side ? "on codes" : "on real numbers");
            for (uint32_t k = 0; k < e->n && k < MOST; k++)
                text_addf(to, "<td>%.4g",
                          (double)(side ? e->codes : e->real)[k]);
            text_add(to, "</tr>\n");
        }
    text_add(to, "</table></div>\n");
}

const char *report_quantised(Arena *arena, const Quantised *q,
                             const QuantiseJudgement *test,
                             const QuantiseJudgement *by_machine) {
    Text to = text_new(arena);
    html_open(&to, arena_printf(arena, "%s on codes", q->graph->name),
              arena_printf(arena, "weights %s bytes, before %s",
                           with_commas(arena, q->weight_bytes_after),
                           with_commas(arena, q->weight_bytes_before)));
    judgements(&to, q, test, by_machine);
    repairs(&to, q);
    layers(arena, &to, q);
    examples(&to, q);
    html_close(&to);
    return text_str(&to);
}
