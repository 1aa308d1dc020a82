/* bundle_fuse.c - a convolution and the sum behind it as one kernel.
 *
 * Input: two neighbours of the plan, a convolution and an addition of its
 * result, which nobody else reads, to a tensor that is there already. Output:
 * one call, of a convolution with a second operand: its sums are added to that
 * and go through the addition's activation while they are in registers. The
 * result in between has no place at all.
 */
#include "native/bundler.h"

#include <string.h>

static bool is_sum(const Node *node) {
    return node->op == OP_ELTWISE && node->n_in == 2 &&
           node->attr.elt.kind == ELT_ADD && !node->attr.elt.coeff &&
           node->act.kind != ACT_PRELU;
}

static uint32_t count_readers(const Graph *g, TensorId tensor) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        for (uint32_t k = 0; k < g->node.at[i].n_in; k++)
            n += same_tensor(g->node.at[i].in[k], tensor);
    for (uint32_t i = 0; i < g->output.n; i++)
        n += same_tensor(g->output.at[i], tensor);
    return n;
}

/* Which operand of the addition the convolution makes; 2: none, or others read
 * it, too. */
static uint32_t made_operand(const Graph *g, const Node *conv,
                             const Node *sum) {
    uint32_t made = 0;
    while (made < 2 && !same_tensor(sum->in[made], conv->out[0]))
        made++;
    return made < 2 && count_readers(g, conv->out[0]) == 1 ? made : 2;
}

static bool can_meet(const Bundler *b, const Action *conv, const Action *sum) {
    const Node *first = graph_node(b->g, conv->node);
    if (sum->kind != ACTION_RUN || first->op != OP_CONV || conv->n_in != 1 ||
        first->act.kind != ACT_NONE || b->where == WEIGHTS_LOADED)
        return false;
    const Node *second = graph_node(b->g, sum->node);
    return is_sum(second) && sum->legal.op == HW_OP_LAYER && sum->n_tiles < 2 &&
           made_operand(b->g, first, second) < 2 &&
           graph_tensor(b->g, second->out[0])->quant.type == QUANT_NONE;
}

static bool same_place(const NativePointer *a, const NativePointer *b) {
    return a->base == b->base && a->index == b->index;
}

/* The convolution's attributes with the addition's activation. */
static void take_act(Arena *arena, const Graph *g, NodeId sum, Kernel *kernel) {
    const AttrPair *pair;
    uint32_t n = graph_attr_pairs(arena, g, sum, &pair), all = kernel->n_attrs;
    AttrPair *attr = ARENA_ARRAY(arena, AttrPair, all + n);
    memcpy(attr, kernel->attr, all * sizeof *attr);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(pair[i].name, "kind") != 0)
            attr[all++] = pair[i];
    kernel->attr = attr;
    kernel->n_attrs = all;
}

/* Operands: the convolution's, what is added, the result. */
static bool operands_of(Bundler *b, const Action *conv, const Action *sum,
                        Operand operand[3]) {
    const Node *first = graph_node(b->g, conv->node);
    const Node *second = graph_node(b->g, sum->node);
    uint32_t other = 1 - made_operand(b->g, first, second);
    const uint32_t place[] = {conv->in[0], sum->in[other], sum->out};
    for (int i = 0; i < 3; i++)
        if (!bundle_operand(b, &b->plan->placement[place[i]], &operand[i]))
            return false;
    return operand_alike(&operand[1], &operand[2]);
}

static bool pointers_of(Bundler *b, Site *site, const Action *conv,
                        const Action *sum, uint32_t other) {
    const uint32_t place[] = {conv->in[0], sum->in[other], sum->out};
    for (int i = 0; i < 3; i++) {
        NativePointer pointer;
        const Placement *p = &b->plan->placement[place[i]];
        if (!bundle_pointer(b, site, p, &pointer))
            return false;
        vec_push(b->arena, &site->pointer, pointer);
    }
    return true;
}

/* Would the result be written over what the convolution still reads? */
static bool clashes(const Bundler *b, const Action *conv, const Action *sum) {
    const Placement *in = &b->plan->placement[conv->in[0]];
    const Placement *out = &b->plan->placement[sum->out];
    const Home *from = &b->home[in->buffer], *to = &b->home[out->buffer];
    return in->buffer == out->buffer ||
           (from->set && to->set && same_place(&from->pointer, &to->pointer));
}

bool bundle_fuse(Bundler *b, const Action *conv, uint32_t *taken) {
    const Action *sum = conv + 1;
    Operand *operand = ARENA_ARRAY(b->arena, Operand, 3);
    *taken = 0;
    if (b->at + 1 == b->plan->n_actions || !can_meet(b, conv, sum) ||
        !operands_of(b, conv, sum, operand) || clashes(b, conv, sum))
        return true;
    const Const *value;
    Kernel *kernel = ARENA_NEW(b->arena, Kernel);
    *kernel =
        native_kernel(b->arena, b->g, conv->node, operand, &operand[2], &value);
    kernel->n_in = 2;
    kernel->n_out = 1;
    take_act(b->arena, b->g, sum->node, kernel);
    if (b->backend->refuse(kernel))
        return true;
    Site site = {0};
    uint32_t other = 1 - made_operand(b->g, graph_node(b->g, conv->node),
                                      graph_node(b->g, sum->node));
    if (!pointers_of(b, &site, conv, sum, other))
        return false;
    kernel->over = bundle_operand_under(&site, 2);
    bundle_add_call(b, &site, kernel, value);
    *taken = 2;
    return true;
}
