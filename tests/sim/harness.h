/* harness.h - what the simulator's tests share: listings from lines of
 * text, and a run with everything at hand. */
#ifndef TESTS_SIM_HARNESS_H
#define TESTS_SIM_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/vec.h"
#include "sim/sim.h"

#include <string.h>

/* What the observer saw last, by name. */
typedef struct Seen {
    const char *name;
    uint32_t c, h, w;
    float *value;
} Seen;

typedef struct Bench {
    Arena *arena;
    Diag *diag;
    const HwSpec *spec;
    Listing listing;
    VEC(HwInsn) insn;
    VEC(Seen) seen;
    SimOptions options;
    const SimResult *result;
} Bench;

static inline void bench_fail(Bench *b) {
    diag_print(b->diag, stderr);
    fail();
}

static inline Bench *bench_open_with(const char *target, uint32_t n,
                                     const HwSetting *settings) {
    Arena *arena = arena_new("test");
    Bench *b = ARENA_NEW(arena, Bench);
    b->arena = arena;
    b->diag = diag_new(arena);
    b->options.seed = 1;
    b->spec = hwspec_load(arena, b->diag, target, n, settings);
    if (!b->spec)
        bench_fail(b);
    b->listing.spec = b->spec;
    b->listing.network = "test";
    return b;
}

static inline Bench *bench_open(const char *target) {
    return bench_open_with(target, 0, NULL);
}

static inline void bench_close(Bench *b) {
    arena_free(b->arena);
}

/* Adds every instruction of `text`. */
static inline void bench_lines(Bench *b, const char *file, const char *text,
                               size_t len) {
    diag_source(b->diag, file, text, len);
    uint32_t number = 0;
    for (size_t at = 0; at < len; at++) {
        size_t end = at;
        while (end < len && text[end] != '\n')
            end++;
        HwInsn insn;
        Loc loc = {file, ++number, 0};
        InsnParse parsed = insn_parse(b->arena, b->diag, b->spec, text + at,
                                      end - at, loc, &insn);
        if (parsed == INSN_ERROR)
            bench_fail(b);
        if (parsed == INSN_OK)
            vec_push(b->arena, &b->insn, insn);
        at = end;
    }
}

static inline void bench_text(Bench *b, const char *text) {
    bench_lines(b, "test.cmd", text, strlen(text));
}

static inline void bench_observe(void *context, uint32_t insn,
                                 const SimOutput *output) {
    Bench *b = context;
    assert_true(insn < b->listing.n);
    size_t n = (size_t)output->c * output->h * output->w;
    Seen seen = {arena_strdup(b->arena, output->name), output->c, output->h,
                 output->w, ARENA_COPY(b->arena, float, output->value, n)};
    vec_push(b->arena, &b->seen, seen);
}

static inline const SimResult *bench_run(Bench *b, uint32_t n_inputs,
                                         const float *const *inputs) {
    b->listing.n = b->insn.n;
    b->listing.insn = b->insn.at;
    b->options.observer = bench_observe;
    b->options.context = b;
    b->seen.n = 0;
    b->result =
        sim_run(b->arena, b->diag, &b->listing, n_inputs, inputs, &b->options);
    if (!b->result)
        bench_fail(b);
    return b->result;
}

/* ---- images ---- */

static inline uint32_t bench_memory(const Bench *b, const char *name) {
    for (uint32_t i = 0; i < b->spec->n_memories; i++)
        if (strcmp(b->spec->memory[i].name, name) == 0)
            return i;
    fail_msg("no memory %s", name);
    return 0;
}

static inline Region bench_region(const Bench *b, const char *name, Shape shape,
                                  const char *memory, uint64_t offset) {
    Region r = {.name = name, .shape = shape, .offset = offset};
    r.memory = bench_memory(b, memory);
    shape_chw(&shape, &r.whole.c, &r.whole.h, &r.whole.w);
    return r;
}

/* The next region of a list of the image. */
static inline void bench_add_region(Bench *b, uint32_t *n, const Region **list,
                                    Region region) {
    Region *more = ARENA_ARRAY(b->arena, Region, *n + 1);
    if (*n)
        memcpy(more, *list, *n * sizeof *more);
    more[(*n)++] = region;
    *list = more;
    b->listing.has_image = true;
}

static inline void bench_input(Bench *b, Region region) {
    Image *image = &b->listing.image;
    bench_add_region(b, &image->n_inputs, &image->input, region);
}

static inline void bench_output(Bench *b, Region region) {
    Image *image = &b->listing.image;
    bench_add_region(b, &image->n_outputs, &image->output, region);
}

/* A constant with values in [-1, 1), which are returned. */
static inline float *bench_blob(Bench *b, const char *layer, const char *role,
                                Shape shape) {
    Image *image = &b->listing.image;
    Blob *more = ARENA_ARRAY(b->arena, Blob, image->n_blobs + 1);
    if (image->n_blobs)
        memcpy(more, image->blob, image->n_blobs * sizeof *more);
    uint64_t n = shape_count(&shape);
    float *data = ARENA_ARRAY(b->arena, float, n);
    for (uint64_t i = 0; i < n; i++)
        data[i] = (float)rng_unit(rng_seed(role, rng_seed(layer, 3)), i);
    more[image->n_blobs++] =
        (Blob){layer, role, {.shape = shape, .kind = CONST_F32, .data = data}};
    image->blob = more;
    b->listing.has_image = true;
    return data;
}

static inline void bench_act(Bench *b, LayerAct act) {
    LayerAct *one = ARENA_NEW(b->arena, LayerAct);
    *one = act;
    b->listing.image.act = one;
    b->listing.image.n_acts = 1;
    b->listing.has_image = true;
}

static inline void bench_host(Bench *b, HostLayer host) {
    HostLayer *one = ARENA_NEW(b->arena, HostLayer);
    *one = host;
    b->listing.image.host = one;
    b->listing.image.n_hosts = 1;
    b->listing.has_image = true;
}

static inline float *bench_values(Bench *b, uint64_t seed, uint64_t n) {
    float *value = ARENA_ARRAY(b->arena, float, n);
    for (uint64_t i = 0; i < n; i++)
        value[i] = (float)rng_unit(seed, i);
    return value;
}

static inline void bench_near(const float *got, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(got[i] - want[i] < 1e-4f && want[i] - got[i] < 1e-4f))
            fail_msg("value %zu of %zu is %g, not %g", i, n, (double)got[i],
                     (double)want[i]);
}

static inline const Seen *bench_seen(const Bench *b, const char *name) {
    for (uint32_t i = b->seen.n; i-- > 0;)
        if (strcmp(b->seen.at[i].name, name) == 0)
            return &b->seen.at[i];
    fail_msg("nobody made %s", name);
    return NULL;
}

static inline void bench_clean(const Bench *b) {
    for (uint32_t i = 0; i < b->result->n_kept; i++)
        print_error("%u: %s\n", b->result->violation[i].insn,
                    b->result->violation[i].text);
    assert_int_equal(b->result->n_violations, 0);
}

#endif
