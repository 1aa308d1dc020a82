/* image.c - what a listing needs beside its instructions; see image.h.
 *
 * Input: the plan and which action each instruction came from. Output: the
 * constants of every layer that runs, where network inputs, outputs and the
 * operands of host layers lie, and the layer table of the JSON.
 */
#include "codegen/image.h"

#include "graph/quant.h"

#include <string.h>

typedef struct Builder {
    Arena *arena;
    const Plan *plan;
    const HwSpec *spec;
    const Graph *graph;
    const uint32_t *action_of;
    uint32_t n_insns;
    bool *is_listed; /* by node: has instructions */
    VEC(Blob) blob;
    VEC(LayerAct) act;
    VEC(LayerQuant) quant;
    VEC(Region) input;
    VEC(Region) output;
    VEC(HostLayer) host;
    VEC(ListingLayer) layer;
} Builder;

/* layer: the name under which they are looked for. */
static void add_constants(Builder *b, const Node *node, const char *layer) {
    for (uint32_t role = 0; role < CONST_ROLES; role++) {
        if (node->constant[role].i == NONE)
            continue;
        Blob blob = {layer, const_role_name[role],
                     *graph_const(b->graph, node->constant[role])};
        vec_push(b->arena, &b->blob, blob);
    }
    if (node->op == OP_NORM) {
        Blob eps = {layer, "eps",
                    (Const){.shape = {1, {1}},
                            .kind = CONST_F64,
                            .data = &node->attr.norm.eps}};
        vec_push(b->arena, &b->blob, eps);
    }
    if (quant_is_at(b->graph, node)) {
        LayerQuant quant = {layer, quant_layer(b->arena, b->graph, node)};
        vec_push(b->arena, &b->quant, quant);
    }
    if (node->act.kind == ACT_NONE)
        return;
    LayerAct act = {layer, act_name[node->act.kind], node->act.alpha,
                    node->act.lo, node->act.hi};
    vec_push(b->arena, &b->act, act);
}

static Region region_of(const Builder *b, const Placement *p) {
    const Tensor *tensor = graph_tensor(b->graph, p->tensor);
    return (Region){.name = tensor->name,
                    .shape = tensor->shape,
                    .quant = tensor->quant,
                    .memory = p->memory,
                    .offset = p->offset,
                    .whole = p->whole,
                    .part_c = p->part_c};
}

/* The whole tensor's place outside active memory, of the wanted role if there
 * is one. */
static const Placement *find_outside(const Builder *b, TensorId tensor,
                                     HwRole wanted) {
    const Placement *found = NULL;
    for (uint32_t i = 0; i < b->plan->n_placements; i++) {
        const Placement *p = &b->plan->placement[i];
        HwRole role = b->spec->memory[p->memory].role;
        if (!same_tensor(p->tensor, tensor) || role == HW_ACTIVE ||
            p->n_c < plan_volume(b->graph, tensor).c)
            continue;
        if (role == wanted)
            return p;
        if (!found)
            found = p;
    }
    return found;
}

/* Of a network input or output: outside, or of a state that stays in active
 * memory, there. */
static const Placement *find_end(const Builder *b, TensorId tensor,
                                 HwRole wanted) {
    const Placement *found = find_outside(b, tensor, wanted);
    NodeId producer = graph_tensor(b->graph, tensor)->producer;
    bool state =
        graph_state_next(b->graph, graph_node(b->graph, producer)).i != NONE ||
        graph_state_of(b->graph, tensor).i != NONE;
    for (uint32_t i = 0; state && !found && i < b->plan->n_placements; i++)
        if (same_tensor(b->plan->placement[i].tensor, tensor))
            found = &b->plan->placement[i];
    return found;
}

/* What a state begins with, where that is not zeros, is a constant called as
 * the state is: its elements, or their codes. */
static void add_start(Builder *b, const Node *node, const Region *region) {
    ConstId start = node->constant[CONST_VALUE];
    if (start.i == NONE && !region->quant.zero)
        return;
    Blob blob = {region->name,
                 const_role_name[CONST_VALUE],
                 {.shape = region->shape, .kind = CONST_F32}};
    if (region->quant.type == QUANT_NONE)
        blob.value = *graph_const(b->graph, start);
    else
        blob.value.data = graph_state_start(b->arena, b->graph, node);
    vec_push(b->arena, &b->blob, blob);
}

static void add_input(Builder *b, const Node *node, const Placement *p) {
    Region region = region_of(b, p);
    TensorId next = graph_state_next(b->graph, node);
    if (next.i != NONE) {
        region.next = graph_tensor(b->graph, next)->name;
        add_start(b, node, &region);
    }
    vec_push(b->arena, &b->input, region);
}

static void add_inputs_and_outputs(Builder *b) {
    for (uint32_t i = 0; i < b->graph->node.n; i++) {
        const Node *node = &b->graph->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        const Placement *p = find_end(b, node->out[0], HW_INPUT);
        if (p)
            add_input(b, node, p);
    }
    for (uint32_t i = 0; i < b->graph->output.n; i++) {
        const Placement *p = find_end(b, b->graph->output.at[i], HW_OUTPUT);
        if (!p)
            bug("network output %u lies nowhere", i);
        vec_push(b->arena, &b->output, region_of(b, p));
    }
}

static void add_host(Builder *b, const Action *action) {
    const Node *node = graph_node(b->graph, action->node);
    Region *in = ARENA_ARRAY(b->arena, Region, action->n_in);
    for (uint32_t i = 0; i < action->n_in; i++)
        in[i] = region_of(b, &b->plan->placement[action->in[i]]);
    bool brought = node->op == OP_CONSTANT; /* nobody computes it */
    HostLayer host = {.name = node->name,
                      .kind = op_info[node->op].name,
                      .reason = brought ? NULL : action->legal.reason,
                      .n_in = action->n_in,
                      .in = in,
                      .n_out = 1};
    host.out[0] = region_of(b, &b->plan->placement[action->out]);
    host.n_attrs =
        graph_attr_pairs(b->arena, b->graph, action->node, &host.attr);
    vec_push(b->arena, &b->host, host);
}

static void add_layers_data(Builder *b) {
    for (uint32_t i = 0; i < b->plan->n_actions; i++) {
        const Action *action = &b->plan->action[i];
        bool runs = action->kind == ACTION_RUN || action->kind == ACTION_HOST;
        if (!runs || action->tile > 0)
            continue;
        const Node *node = graph_node(b->graph, action->node);
        bool whole =
            action->kind == ACTION_HOST || action->legal.op == HW_OP_LAYER;
        add_constants(b, node, whole ? node->name : node_constants_layer(node));
        if (whole)
            add_host(b, action);
    }
}

/* ---- the layer table ---- */

/* Names that readers of such listings know, by operator. */
#define TYPE_INPUT "Input"
#define TYPE_CONV "Convolution"
#define TYPE_DECONV "Deconvolution"
#define TYPE_POOL "Pooling"
#define TYPE_CONV_POOL "Pooling"
#define TYPE_FC "InnerProduct"
#define TYPE_BN "BatchNorm"
#define TYPE_SCALE "Scale"
#define TYPE_ACT "ReLU"
#define TYPE_ELTWISE "Eltwise"
#define TYPE_CONCAT "Concat"
#define TYPE_SLICE "Slice"
#define TYPE_LRN "LRN"
#define TYPE_SOFTMAX "Softmax"
#define TYPE_UPSAMPLE "Upsample"
#define TYPE_PAD "Pad"
#define TYPE_RESHAPE "Reshape"
#define TYPE_IDENTITY "Identity"
#define TYPE_CONSTANT "Constant"
#define TYPE_CALL "Call"
#define TYPE_MATMUL "MatMul"
#define TYPE_TRANSPOSE "Permute"
#define TYPE_REDUCE "Reduction"
#define TYPE_GATHER "Gather"
#define TYPE_NORM "Norm"
#define TYPE_ROUTINE "Routine"
#define TYPE_MIX "MatMul"
#define TYPE_OFFSET "Bias"
#define TYPE_PIXELS "Gather"

static const char *const layer_type[OP_COUNT] = {
#define OP(NAME, name, min, max, doc) [OP_##NAME] = TYPE_##NAME,
#include "graph/ops.def"
#undef OP
};

static uint64_t conv_ops(const Builder *b, const Node *node) {
    const ConvAttr *conv = &node->attr.conv;
    Volume in = plan_volume(b->graph, node->in[0]);
    uint64_t size[2] = {in.h, in.w}, pixels = 1;
    for (int i = 0; i < 2; i++)
        pixels *= node->op == OP_DECONV
                      ? size[i]
                      : conv_out_size((uint32_t)size[i], conv->kernel[i],
                                      conv->stride[i], conv->dilation[i],
                                      conv->pad[i], conv->pad_end[i]);
    return 2 * (uint64_t)conv->kernel[0] * conv->kernel[1] *
           (in.c / conv->groups) * conv->out_c * pixels;
}

/* Operations of a layer: 2 a multiply-add, 1 an element of the rest. */
static uint64_t layer_ops(const Builder *b, const Node *node) {
    const Shape *out = &graph_tensor(b->graph, node->out[0])->shape;
    switch (node->op) {
    case OP_CONV:
    case OP_DECONV:
    case OP_CONV_POOL:
        return conv_ops(b, node);
    case OP_FC:
        return 2 * shape_count(&graph_tensor(b->graph, node->in[0])->shape) *
               node->attr.fc.out;
    case OP_POOL: {
        Volume in = plan_volume(b->graph, node->in[0]);
        const PoolAttr *pool = &node->attr.pool;
        uint64_t area = pool->global
                            ? (uint64_t)in.h * in.w
                            : (uint64_t)pool->kernel[0] * pool->kernel[1];
        return area * shape_count(out);
    }
    case OP_MIX:
        return 2 * graph_products(b->graph, node);
    case OP_CONCAT:
        return 0;
    default:
        return shape_count(out);
    }
}

static const char *memory_text(const Builder *b, const Action *action) {
    bool from =
        action->n_in &&
        b->spec->memory[b->plan->placement[action->in[0]].memory].role !=
            HW_ACTIVE;
    bool to = b->spec->memory[b->plan->placement[action->out].memory].role !=
              HW_ACTIVE;
    return from ? (to ? "ddr_to_ddr" : "ddr_to_am")
                : (to ? "am_to_ddr" : "am_to_am");
}

typedef VEC(const char *) Names;

/* The layers that made a node's inputs. A concat that costs nothing has no item
 * of its own on some machines: then those that it joins. */
static void add_bottoms(const Builder *b, const Node *node, Names *bottom) {
    for (uint32_t i = 0; i < node->n_in; i++) {
        NodeId producer = graph_tensor(b->graph, node->in[i])->producer;
        const Node *from = graph_node(b->graph, producer);
        if (from->op == OP_CONCAT && !b->is_listed[producer.i])
            add_bottoms(b, from, bottom);
        else
            vec_push(b->arena, bottom, from->name);
    }
}

static ListingLayer layer_of_node(const Builder *b, const Action *action) {
    const Node *node = graph_node(b->graph, action->node);
    Names bottom = {0};
    add_bottoms(b, node, &bottom);
    return (ListingLayer){.name = node->name,
                          .type = layer_type[node->op],
                          .n_bottoms = bottom.n,
                          .bottom = bottom.at,
                          .shape = graph_tensor(b->graph, node->out[0])->shape,
                          .n_merged = node->n_merged,
                          .merged = node->merged,
                          .ops = layer_ops(b, node)};
}

/* A load or store is an item of its own: Input and Output for what enters and
 * leaves, Gather and Scatter for what is spilled. */
static ListingLayer layer_of_move(const Builder *b, const Action *action) {
    const Placement *in = &b->plan->placement[action->in[0]];
    const Placement *out = &b->plan->placement[action->out];
    const Tensor *tensor = graph_tensor(b->graph, in->tensor);
    bool load = action->kind == ACTION_LOAD;
    bool copy = action->kind == ACTION_COPY;
    HwRole role = b->spec->memory[(load ? in : out)->memory].role;
    const char **bottom = ARENA_ARRAY(b->arena, const char *, 1);
    bottom[0] = graph_node(b->graph, tensor->producer)->name;
    return (ListingLayer){
        .name = load ? tensor->name
                     : arena_printf(b->arena, "%s_output", tensor->name),
        .type = copy                ? "Copy"
                : role == HW_INPUT  ? "Input"
                : role == HW_OUTPUT ? "Output"
                : load              ? "Gather"
                                    : "Scatter",
        .n_bottoms = load ? 0 : 1,
        .bottom = bottom,
        .shape = tensor->shape,
        .ops = (load ? out : in)->bytes};
}

static ListingLayer layer_of_weights(const Builder *b, const Action *action) {
    const ConstantBlock *block = &b->plan->block[action->weights - 1];
    const Node *node = graph_node(b->graph, action->node);
    return (ListingLayer){.name =
                              arena_printf(b->arena, "%s_weights", node->name),
                          .type = "Weights",
                          .shape = {2, {block->n_c, block->taps}},
                          .ops = block->bytes};
}

static ListingLayer layer_of_bias(const Builder *b, const Action *action) {
    const ConstantBlock *block = &b->plan->bias[action->bias - 1];
    const Node *node = graph_node(b->graph, action->node);
    return (ListingLayer){.name = arena_printf(b->arena, "%s_bias", node->name),
                          .type = "Bias",
                          .shape = {1, {block->n_c}},
                          .ops = block->bytes};
}

/* Loads that feed the first tile belong to the tiled layer. */
static uint32_t first_of_tiled(const Builder *b, uint32_t insn) {
    const Action *run = &b->plan->action[b->action_of[insn]];
    while (insn > 0 && b->layer.n > 0) {
        const Action *before = &b->plan->action[b->action_of[insn - 1]];
        bool feeds = false;
        for (uint32_t i = 0; i < run->n_in; i++)
            feeds |= before->kind == ACTION_LOAD && before->out == run->in[i];
        if (!feeds)
            break;
        insn--;
    }
    return insn;
}

static void add_layer(Builder *b, uint32_t insn) {
    const Action *action = &b->plan->action[b->action_of[insn]];
    ListingLayer layer;
    bool move = action->kind == ACTION_LOAD || action->kind == ACTION_STORE ||
                action->kind == ACTION_COPY;
    bool loaded = loads_constants(action);
    if (loaded)
        layer = action->kind == ACTION_BIAS ? layer_of_bias(b, action)
                                            : layer_of_weights(b, action);
    else
        layer = move ? layer_of_move(b, action) : layer_of_node(b, action);
    layer.memory = loaded ? "ddr_to_am" : memory_text(b, action);
    layer.step = action->step;
    layer.first_insn = insn;
    layer.n_insns = 1;
    if (action->kind == ACTION_RUN && action->n_tiles > 1) {
        layer.first_insn = first_of_tiled(b, insn);
        while (b->layer.n > 0 &&
               b->layer.at[b->layer.n - 1].first_insn >= layer.first_insn)
            b->layer.n--;
        layer.n_insns = insn - layer.first_insn + 1;
    }
    vec_push(b->arena, &b->layer, layer);
}

static void find_listed(Builder *b) {
    b->is_listed = ARENA_ARRAY(b->arena, bool, b->graph->node.n + 1);
    for (uint32_t i = 0; i < b->n_insns; i++) {
        const Action *action = &b->plan->action[b->action_of[i]];
        if (action->kind == ACTION_RUN || action->kind == ACTION_CONCAT ||
            action->kind == ACTION_HOST)
            b->is_listed[action->node.i] = true;
    }
}

/* Everything from the first tile of a layer to the store of its last. */
static void add_layers(Builder *b) {
    for (uint32_t i = 0; i < b->n_insns; i++) {
        const Action *action = &b->plan->action[b->action_of[i]];
        add_layer(b, i);
        if (action->kind != ACTION_RUN || action->n_tiles < 2)
            continue;
        ListingLayer *layer = &b->layer.at[b->layer.n - 1];
        uint32_t last = i;
        for (uint32_t k = i + 1; k < b->n_insns; k++) {
            const Action *next = &b->plan->action[b->action_of[k]];
            if (next->kind == ACTION_RUN && next->node.i != action->node.i)
                break;
            if (next->kind == ACTION_RUN)
                last = k;
        }
        uint32_t out = b->plan->action[b->action_of[last]].out;
        if (last + 1 < b->n_insns) {
            const Action *store = &b->plan->action[b->action_of[last + 1]];
            last += store->kind == ACTION_STORE && store->in[0] == out;
        }
        layer->n_insns = last - layer->first_insn + 1;
        i = last;
    }
}

Image image_make(Arena *arena, const Plan *plan, const uint32_t *action_of,
                 uint32_t n) {
    Builder b = {.arena = arena,
                 .plan = plan,
                 .spec = plan->schedule->spec,
                 .graph = plan->schedule->graph,
                 .action_of = action_of,
                 .n_insns = n};
    add_inputs_and_outputs(&b);
    add_layers_data(&b);
    listing_name_functions(arena, b.graph->name, b.host.n, b.host.at);
    listing_count_hosts(arena, b.spec, b.host.n, b.host.at, b.blob.n,
                        b.blob.at);
    find_listed(&b);
    add_layers(&b);
    return (Image){.element = b.spec->element,
                   .n_blobs = b.blob.n,
                   .n_acts = b.act.n,
                   .n_quants = b.quant.n,
                   .n_inputs = b.input.n,
                   .n_outputs = b.output.n,
                   .n_hosts = b.host.n,
                   .n_layers = b.layer.n,
                   .blob = b.blob.at,
                   .act = b.act.at,
                   .quant = b.quant.at,
                   .input = b.input.at,
                   .output = b.output.at,
                   .host = b.host.at,
                   .layer = b.layer.at};
}
