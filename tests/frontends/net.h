/* net.h - reading small networks from memory, and what became of them, for
 * tests of front ends. One arena and one set of options a test. */
#ifndef TESTS_FRONTENDS_NET_H
#define TESTS_FRONTENDS_NET_H

#include "frontends/frontend.h"

#include "base/text.h"
#include "tests/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static Arena *arena;
static Diag *diag;
static ImportOptions options;
static ImportInfo info;

static int setup(void **state) {
    (void)state;
    arena = arena_new("test");
    diag = diag_new(arena);
    options = (ImportOptions){0};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

/* A new file with these bytes; files before it may still be mapped. */
static inline const char *put(const char *suffix, const void *bytes,
                              size_t len) {
    const char *path = arena_printf(arena, "%s/amphora-test-%ld%s", scratch(),
                                    (long)getpid(), suffix);
    remove(path);
    assert_true(file_write(arena, diag, path, bytes, len));
    return path;
}

static inline Graph *read_bytes(const char *suffix, const void *bytes,
                                size_t len) {
    const char *path = put(suffix, bytes, len);
    diag = diag_new(arena);
    Graph *g = frontend_read(arena, diag, path, &options, &info);
    remove(path);
    return g;
}

static inline const char *messages(void) {
    static const char *const kinds[] = {"error", "warning", "note"};
    Text text = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *m = diag_at(diag, i);
        text_addf(&text, "%s: %s\n", kinds[m->kind], m->text);
    }
    return text_str(&text);
}

static inline void add_attribute(Text *out, const AttrPair *pair) {
    text_addf(out, " %s=", pair->name);
    if (pair->word)
        text_add(out, pair->word);
    for (uint32_t i = 0; i < pair->n; i++)
        text_addf(out, "%s%g", i ? "," : "", pair->value[i]);
}

/* One node a line: operator, inputs, output with its shape, and of the
 * attributes those that `which` lists between spaces. */
static inline const char *nodes(const Graph *g, const char *which) {
    Text out = text_new(arena);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        text_addf(&out, "%s(", op_info[node->op].name);
        for (uint32_t k = 0; k < node->n_in; k++)
            text_addf(&out, "%s%s", k ? " " : "",
                      graph_tensor(g, node->in[k])->name);
        const Tensor *tensor = graph_tensor(g, node->out[0]);
        text_addf(&out, ") %s %s", tensor->name,
                  shape_text(arena, &tensor->shape));
        const AttrPair *pairs;
        uint32_t n = graph_attr_pairs(arena, g, (NodeId){i}, &pairs);
        for (uint32_t k = 0; k < n; k++)
            if (strstr(which, arena_printf(arena, " %s ", pairs[k].name)))
                add_attribute(&out, &pairs[k]);
        text_add(&out, "\n");
    }
    return text_str(&out);
}

static inline uint64_t parameters(const Graph *g) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        for (int role = 0; role < CONST_ROLES; role++)
            if (g->node.at[i].constant[role].i != NONE &&
                g->node.at[i].op != OP_BN)
                n += shape_count(
                    &graph_const(g, g->node.at[i].constant[role])->shape);
    return n;
}

/* Values of the first network output. */
static inline const float *run(const Graph *g, const float *const *in,
                               uint32_t n) {
    return graph_eval(arena, g, n, in).at[g->output.at[0].i];
}

/* Reads damaged copies of a file: each must give a graph or an error, and not
 * crash. `step`: bytes between the places that are damaged. */
static inline void mutate(const char *suffix, const void *bytes, size_t len,
                          size_t step) {
    static const uint8_t values[] = {0x00, 0x7f, 0xff, 0x80};
    uint8_t *copy = arena_copy(arena, bytes, len, 1, 1);
    for (size_t at = 0; at < len; at += step) {
        uint8_t old = copy[at];
        copy[at] = values[at / step % sizeof values];
        Graph *g = read_bytes(suffix, copy, len);
        assert_true(g || diag_errors(diag));
        copy[at] = old;
    }
    for (size_t cut = 1; cut < len; cut += len / 40 + 1) {
        Graph *g = read_bytes(suffix, copy, cut);
        assert_true(g || diag_errors(diag));
    }
}

#endif
