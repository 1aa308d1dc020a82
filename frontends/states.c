/* states.c - which outputs are inputs of the next call; see states.h.
 *
 * In: a graph with its shapes, and what the user says. Out: states, or errors;
 * a note where names look as if there were some: "past" and "present", "h" and
 * "h_next".
 */
#include "frontends/states.h"

#include "graph/quant.h"

#include <ctype.h>
#include <string.h>

const TensorId *states_next(Arena *arena, const Graph *g) {
    TensorId *next = ARENA_ARRAY(arena, TensorId, g->node.n + 1);
    for (uint32_t i = 0; i < g->node.n; i++)
        next[i] = graph_state_next(g, &g->node.at[i]);
    return next;
}

static uint32_t output_number(const Graph *g, TensorId tensor) {
    for (uint32_t i = 0; i < g->output.n; i++)
        if (same_tensor(g->output.at[i], tensor))
            return i + 1;
    return 0;
}

void states_follow(Graph *g, const TensorId *next) {
    for (uint32_t i = 0; i < g->node.n; i++)
        if (next[i].i != NONE && g->node.at[i].op == OP_INPUT)
            g->node.at[i].attr.state = output_number(g, next[i]);
}

/* ---- as the user says ---- */

static const Tensor *input_tensor(const Graph *g, uint32_t node) {
    return graph_tensor(g, g->node.at[node].out[0]);
}

static uint32_t find_input(const Graph *g, const char *name) {
    for (uint32_t i = 0; i < g->node.n; i++)
        if (g->node.at[i].op == OP_INPUT && !g->node.at[i].dead &&
            (!strcmp(g->node.at[i].name, name) ||
             !strcmp(input_tensor(g, i)->name, name)))
            return i;
    return NONE;
}

static uint32_t find_output(const Graph *g, const char *name) {
    for (uint32_t i = 0; i < g->output.n; i++)
        if (!strcmp(graph_tensor(g, g->output.at[i])->name, name))
            return i;
    return NONE;
}

static bool are_alike(const Tensor *in, const Tensor *out) {
    return shape_equal(&in->shape, &out->shape) &&
           quant_equal(&in->quant, &out->quant);
}

static void fill_start(Arena *arena, Diag *diag, Graph *g, uint32_t node,
                       const char *file) {
    const Tensor *t = input_tensor(g, node);
    Npy npy;
    if (!tensor_file_read(arena, diag, file, &npy))
        return;
    if (npy.count != shape_count(&t->shape)) {
        diag_error(diag, (Loc){file, 0, 0}, "%llu values, but state %s is %s",
                   (unsigned long long)npy.count, t->name,
                   shape_text(arena, &t->shape));
        return;
    }
    for (uint64_t i = 0; npy_is_whole(&npy) && i < npy.count &&
                         t->quant.type != QUANT_NONE;
         i++)
        npy.data[i] = (float)quant_real(&t->quant, (double)npy.data[i]);
    g->node.at[node].constant[CONST_VALUE] = graph_add_const(
        g,
        (Const){.shape = t->shape, .kind = CONST_F32, .data = npy.data});
}

/* Why the two are no state, or NULL. */
static const char *unfit(Arena *arena, const Graph *g, uint32_t in,
                         uint32_t out) {
    const Tensor *x = input_tensor(g, in);
    const Tensor *y = graph_tensor(g, g->output.at[out]);
    if (!are_alike(x, y))
        return arena_printf(
            arena, "%s is %s, %s is %s: a state keeps its shape and its codes",
            x->name, shape_text(arena, &x->shape), y->name,
            shape_text(arena, &y->shape));
    if (graph_node(g, y->producer)->op == OP_INPUT)
        return arena_printf(arena, "%s is an input itself", y->name);
    if (graph_state_of(g, g->output.at[out]).i != NONE)
        return arena_printf(arena, "%s is another's", y->name);
    return NULL;
}

static void take(Arena *arena, Diag *diag, Graph *g, const StateSetting *s) {
    uint32_t in = find_input(g, s->in), out = find_output(g, s->out);
    const char *what = arena_printf(arena, "--state %s=%s", s->in, s->out);
    const char *why = NULL;
    if (in == NONE)
        why = arena_printf(arena, "no input is called \"%s\"", s->in);
    else if (out == NONE)
        why = arena_printf(arena, "no output is called \"%s\"", s->out);
    else if (g->node.at[in].attr.state)
        why = arena_printf(arena, "%s is a state already", s->in);
    else
        why = unfit(arena, g, in, out);
    if (why) {
        diag_error(diag, (Loc){0}, "%s: %s", what, why);
        return;
    }
    g->node.at[in].attr.state = out + 1;
    if (s->file)
        fill_start(arena, diag, g, in, s->file);
}

/* ---- names that pair up ---- */

/* What stands in an input's name, and in its output's instead. */
static const struct {
    const char *in, *out;
} pairs[] = {
    {"past_key_values", "present"}, {"past", "present"}, {"prev", "next"},
    {"prev", "new"},                {"prev", "cur"},     {"old", "new"},
    {"last", "next"},               {"last", "new"},     {"in", "out"},
    {"input", "output"},            {"0", "n"},          {"0", "1"},
    {"", "_out"},                   {"", "_next"},       {"", "_new"},
    {"", "_n"},                     {"", "n"},           {"", "out"},
    {"_in", ""},                    {"_prev", ""},       {"_0", ""},
};

/* Whether `name` with `from` at place `at` as `to` is the other name. */
static bool becomes(const char *name, size_t at, const char *from,
                    const char *to, const char *other) {
    size_t from_len = strlen(from), to_len = strlen(to);
    return !strncmp(name + at, from, from_len) && !strncmp(name, other, at) &&
           !strncmp(other + at, to, to_len) &&
           !strcmp(other + at + to_len, name + at + from_len);
}

static bool pair_up(const char *in, const char *out) {
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        size_t at = *pairs[p].in ? 0 : strlen(in);
        for (; at <= strlen(in) && at <= strlen(out); at++)
            if (becomes(in, at, pairs[p].in, pairs[p].out, out))
                return true;
    }
    return false;
}

/* The only output whose name and shape go with the input's; NONE. */
static uint32_t partner(Arena *arena, const Graph *g, uint32_t in) {
    uint32_t found = NONE;
    for (uint32_t o = 0; o < g->output.n; o++) {
        if (!pair_up(input_tensor(g, in)->name,
                     graph_tensor(g, g->output.at[o])->name) ||
            unfit(arena, g, in, o))
            continue;
        if (found != NONE)
            return NONE;
        found = o;
    }
    return found;
}

typedef struct Offer {
    uint32_t n, in, out; /* how many, and the first */
} Offer;

static Offer look_for_pairs(Arena *arena, Graph *g, bool take_them) {
    Offer offer = {0};
    for (uint32_t i = 0; i < g->node.n; i++) {
        Node *node = &g->node.at[i];
        if (node->op != OP_INPUT || node->dead || node->attr.state)
            continue;
        uint32_t out = partner(arena, g, i);
        if (out == NONE)
            continue;
        if (!offer.n++)
            offer = (Offer){1, i, out};
        if (take_them)
            node->attr.state = out + 1;
    }
    return offer;
}

static void take_pairs(Arena *arena, Diag *diag, Graph *g) {
    if (!look_for_pairs(arena, g, true).n && !graph_states(g))
        diag_error(diag, (Loc){0},
                   "--state auto: no input and output pair up by their names "
                   "and shapes");
}

static void offer_pairs(Arena *arena, Diag *diag, Graph *g) {
    Offer o = look_for_pairs(arena, g, false);
    if (!o.n)
        return;
    const char *in = input_tensor(g, o.in)->name;
    const char *out = graph_tensor(g, g->output.at[o.out])->name;
    if (o.n == 1)
        diag_note(diag, (Loc){0},
                  "%s and %s look like a state that is kept from call to call: "
                  "--state %s=%s keeps it",
                  in, out, in, out);
    else
        diag_note(diag, (Loc){0},
                  "%s and %s look like a state that is kept from call to call, "
                  "and %u more: --state auto keeps them",
                  in, out, o.n - 1);
}

void states_take(Arena *arena, Diag *diag, Graph *g, uint32_t n,
                 const StateSetting *setting) {
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        any |= !setting[i].out;
        if (setting[i].out)
            take(arena, diag, g, &setting[i]);
    }
    if (any)
        take_pairs(arena, diag, g);
    if (!n && !graph_states(g))
        offer_pairs(arena, diag, g);
}
