/* expect.c - outputs against values of others; see expect.h. */
#include "driver/expect.h"
#include "driver/values.h"

#include <math.h>

/* Infinities and NaNs must be the same; all else by the greatest value. */
static double error_of(float expected, float got, double scale) {
    if (expected == got || (isnan(expected) && isnan(got)))
        return 0;
    double error = fabs((double)got - (double)expected) / scale;
    return isnan(error) ? (double)INFINITY : error;
}

static double scale_of(const float *value, uint64_t n) {
    double most = 0;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(value[i]))
            most = fmax(most, fabs((double)value[i]));
    return most > 0 ? most : 1;
}

static void compare_one(Expectation *e, const Tensor *tensor,
                        const float *expected, const float *got,
                        double tolerance) {
    uint64_t n = shape_count(&tensor->shape);
    bool codes = tensor->quant.type != QUANT_NONE;
    double scale = codes ? 1 : scale_of(expected, n);
    e->outputs++;
    for (uint64_t i = 0; i < n; i++) {
        double error = error_of(expected[i], got[i], scale);
        e->max_error = fmax(e->max_error, error);
        if (error <= tolerance || e->output)
            continue;
        e->output = tensor->name;
        e->at = i;
        e->expected = expected[i];
        e->got = got[i];
    }
}

Expectation expect_compare(const Graph *graph, const float *const *expected,
                           const float *const *got, double tolerance) {
    Expectation e = {0};
    for (uint32_t i = 0; i < graph->output.n; i++)
        if (expected[i] && got[i])
            compare_one(&e, graph_tensor(graph, graph->output.at[i]),
                        expected[i], got[i], tolerance);
    return e;
}

void expect_print(const char *who, const Expectation *e) {
    say("expect  %s: %u outputs, largest relative error %.3g\n", who,
        e->outputs, e->max_error);
    if (e->output)
        say("        first to differ: %s at %llu: expected %.9g, got %.9g\n",
            e->output, (unsigned long long)e->at, (double)e->expected,
            (double)e->got);
}
