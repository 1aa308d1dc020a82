/* bundle.c - a plan as one function and its header; see native.h.
 *
 * Input: a plan whose layers all run on a processor. Output: a call for each of
 * its actions, in its order, on the places that it gives. Loads and stores
 * become copies between the caller's arrays and the workspace. */
#include "native/native.h"

#include "base/text.h"
#include "base/vec.h"
#include "graph/quant.h"
#include "native/maker.h"

typedef struct Bundler {
    Arena *arena;
    Diag *diag;
    const NativeBackend *backend;
    const Plan *plan;
    const Graph *g;
    const HwSpec *spec;
    Maker *maker;
    VEC(NativeCall) call;
} Bundler;

NativeTarget native_target(const HwSpec *spec) {
    const HwNative *native = &spec->native;
    return (NativeTarget){native->triple ? native->triple : "", native->cpu,
                          native->features, native->lanes};
}

/* ---- where tensors are ---- */

/* Does the operand say where the layout has each element? */
static bool says_layout(const Operand *o, const LayoutTables *t,
                        const Volume *whole, uint32_t part_c) {
    uint32_t c, h, w;
    shape_chw(&o->shape, &c, &h, &w);
    for (uint32_t i = 0; i < c; i++)
        if (t->c_at[part_c + i] - t->c_at[part_c] !=
            sizeof(float) * (i / o->block * o->c_step + i % o->block))
            return false;
    for (uint32_t i = 0; i < h; i++)
        if (t->h_at[i] != sizeof(float) * i * o->h_step)
            return false;
    for (uint32_t i = 0; i < w; i++)
        if (t->w_at[i] != sizeof(float) * i * o->w_step)
            return false;
    return part_c + c <= whole->c;
}

static uint64_t floats_between(uint64_t from, uint64_t to) {
    return (to - from) / sizeof(float);
}

/* The placement as an operand; false where the layout is no blocks of
 * channels. */
static bool operand_of(Bundler *b, const Placement *p, Operand *out) {
    const Layout *layout = b->spec->memory[p->memory].layout;
    const Volume *whole = &p->whole;
    LayoutTables t = layout_tables(b->arena, layout, whole);
    uint32_t granule = layout_granule(layout);
    uint32_t block = granule ? granule : whole->c;
    *out = (Operand){.shape = graph_tensor(b->g, p->tensor)->shape,
                     .block = block};
    if (block < whole->c)
        out->c_step = floats_between(t.c_at[0], t.c_at[block]);
    if (whole->h > 1)
        out->h_step = floats_between(t.h_at[0], t.h_at[1]);
    if (whole->w > 1)
        out->w_step = floats_between(t.w_at[0], t.w_at[1]);
    return layout->element == sizeof(float) &&
           says_layout(out, &t, whole, p->part_c);
}

static uint32_t input_index(const Bundler *b, TensorId tensor) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->g->node.n; i++) {
        const Node *node = &b->g->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        if (same_tensor(node->out[0], tensor))
            return n;
        n++;
    }
    return NONE;
}

static uint32_t output_index(const Bundler *b, TensorId tensor) {
    for (uint32_t i = 0; i < b->g->output.n; i++)
        if (same_tensor(b->g->output.at[i], tensor))
            return i;
    return NONE;
}

/* Values that the network brings along are among the weights. */
static NativePointer constant_pointer(Bundler *b, TensorId tensor) {
    NodeId producer = graph_tensor(b->g, tensor)->producer;
    const Node *node = graph_node(b->g, producer);
    return maker_constant(b->maker,
                          graph_const(b->g, node->constant[CONST_VALUE]));
}

static bool refuse(const Bundler *b, TensorId tensor, const char *why) {
    const Tensor *t = graph_tensor(b->g, tensor);
    diag_error(b->diag, t->loc, "no bundle for %s: %s %s", b->spec->machine,
               t->name, why);
    return false;
}

static bool pointer_to(Bundler *b, const Placement *p, NativePointer *out) {
    const HwMemory *memory = &b->spec->memory[p->memory];
    NodeId producer = graph_tensor(b->g, p->tensor)->producer;
    if (memory->role == HW_ACTIVE) {
        Volume whole = p->whole;
        uint64_t part = layout_part_offset(memory->layout, &whole, p->part_c);
        *out = (NativePointer){NATIVE_WORKSPACE, 0, p->offset + part};
        return p->memory == 0 || refuse(b, p->tensor, "is in another memory");
    }
    if (memory->role == HW_BACKING)
        return refuse(b, p->tensor, "does not fit into the workspace");
    if (graph_node(b->g, producer)->op == OP_CONSTANT) {
        *out = constant_pointer(b, p->tensor);
        return true;
    }
    *out = memory->role == HW_INPUT
               ? (NativePointer){NATIVE_IN, input_index(b, p->tensor), 0}
               : (NativePointer){NATIVE_OUT, output_index(b, p->tensor), 0};
    return out->index != NONE || refuse(b, p->tensor, "is the host's");
}

/* ---- calls ---- */

/* Operands and pointers of a call, while it is made. */
typedef struct Site {
    VEC(Operand) operand;
    VEC(NativePointer) pointer;
} Site;

static bool add_placed(Bundler *b, Site *site, uint32_t placement) {
    const Placement *p = &b->plan->placement[placement];
    Operand operand;
    NativePointer pointer;
    uint32_t rows = plan_volume(b->g, p->tensor).h;
    if (graph_tensor(b->g, p->tensor)->quant.type != QUANT_NONE)
        return refuse(b, p->tensor, "is quantised");
    if (p->row != 0 || p->rows != rows || p->ring)
        return refuse(b, p->tensor, "is there in part only");
    if (!operand_of(b, p, &operand))
        return refuse(b, p->tensor, "lies in no blocks of channels");
    if (!pointer_to(b, p, &pointer))
        return false;
    vec_push(b->arena, &site->operand, operand);
    vec_push(b->arena, &site->pointer, pointer);
    return true;
}

static bool add_places(Bundler *b, Site *site, const Action *action) {
    for (uint32_t i = 0; i < action->n_in; i++)
        if (!add_placed(b, site, action->in[i]))
            return false;
    return add_placed(b, site, action->out);
}

/* The operand that lies where the result will; -1: none. */
static int32_t operand_under(const Site *site, uint32_t n_in) {
    const NativePointer *out = &site->pointer.at[n_in];
    for (uint32_t i = 0; i < n_in; i++)
        if (site->pointer.at[i].base == out->base &&
            site->pointer.at[i].index == out->index &&
            site->pointer.at[i].offset == out->offset)
            return (int32_t)i;
    return -1;
}

static void add_call(Bundler *b, const Site *site, const Kernel *kernel) {
    NativeCall call = {maker_kernel(b->maker, kernel), site->pointer.n,
                       site->pointer.at};
    vec_push(b->arena, &b->call, call);
}

static bool add_copy(Bundler *b, const Action *action) {
    Site site = {0};
    if (!add_places(b, &site, action))
        return false;
    Kernel kernel = {.kind = op_info[OP_IDENTITY].name,
                     .n_in = 1,
                     .n_out = 1,
                     .in = &site.operand.at[0],
                     .out = &site.operand.at[1],
                     .over = -1};
    add_call(b, &site, &kernel);
    return true;
}

static bool add_layer(Bundler *b, const Action *action) {
    const Node *node = graph_node(b->g, action->node);
    Site site = {0};
    if (!add_places(b, &site, action))
        return false;
    uint32_t n_in = action->n_in;
    Kernel *kernel = ARENA_NEW(b->arena, Kernel);
    *kernel = native_kernel(b->arena, b->g, action->node, site.operand.at,
                            &site.operand.at[n_in]);
    kernel->n_out = 1;
    kernel->over = operand_under(&site, n_in);
    const char *why = quant_is_at(b->g, node) ? "it computes codes"
                                              : b->backend->refuse(kernel);
    if (why) {
        diag_error(b->diag, node->loc, "no native code for layer %s: %s",
                   node->name, why);
        return false;
    }
    uint32_t n = 0;
    for (uint32_t role = 0; role < CONST_ROLES; role++)
        if (node->constant[role].i != NONE) {
            const Const *value = graph_const(b->g, node->constant[role]);
            NativePointer pointer = maker_packed(b->maker, kernel, n++, value);
            vec_push(b->arena, &site.pointer, pointer);
        }
    add_call(b, &site, kernel);
    return true;
}

static bool add_action(Bundler *b, const Action *action) {
    const Node *node;
    switch (action->kind) {
    case ACTION_LOAD:
    case ACTION_STORE:
    case ACTION_COPY:
        return add_copy(b, action);
    case ACTION_RUN:
        node = graph_node(b->g, action->node);
        if (action->legal.op == HW_OP_LAYER && action->n_tiles < 2)
            return add_layer(b, action);
        diag_error(b->diag, node->loc,
                   "no bundle for %s: layer %s is an instruction",
                   b->spec->machine, node->name);
        return false;
    case ACTION_CONCAT:
        return true;
    case ACTION_HOST:
        node = graph_node(b->g, action->node);
        if (node->op == OP_CONSTANT)
            return true;
        diag_error(b->diag, node->loc,
                   "no bundle for %s: layer %s is the host's", b->spec->machine,
                   node->name);
        return false;
    }
    return false;
}

static uint32_t count_inputs(const Graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        n += g->node.at[i].op == OP_INPUT;
    return n;
}

const NativeBundle *native_bundle(Arena *arena, Diag *diag,
                                  const NativeBackend *backend,
                                  const Plan *plan) {
    const Schedule *schedule = plan->schedule;
    NativeTarget target = native_target(schedule->spec);
    const char *name = listing_identifier(arena, schedule->graph->name);
    Bundler b = {.arena = arena,
                 .diag = diag,
                 .backend = backend,
                 .plan = plan,
                 .g = schedule->graph,
                 .spec = schedule->spec,
                 .maker = maker_new(arena, name, &target)};
    for (uint32_t i = 0; i < plan->n_actions; i++)
        if (!add_action(&b, &plan->action[i]))
            return NULL;
    NativeFunction run = {.name = arena_printf(arena, "%s_run", name),
                          .n_in = count_inputs(b.g),
                          .n_out = b.g->output.n,
                          .n_calls = b.call.n,
                          .call = b.call.at};
    maker_function(b.maker, &run);
    const HwNative *native = &schedule->spec->native;
    uint64_t bytes = maker_values(b.maker) * sizeof(float);
    if (native->weights_file && bytes)
        maker_weights_apart(b.maker);
    if (native->weights && bytes > native->weights) {
        diag_error(diag, schedule->spec->loc,
                   "does not fit: the constants take %llu bytes, %s has %llu",
                   (unsigned long long)bytes, schedule->spec->machine,
                   (unsigned long long)native->weights);
        return NULL;
    }
    NativeBundle *bundle = ARENA_NEW(arena, NativeBundle);
    *bundle = (NativeBundle){.program = maker_program(b.maker),
                             .workspace_bytes = plan->memory_used[0],
                             .workspace_align = b.spec->memory[0].align};
    return bundle;
}

/* ---- the header ---- */

static const char bundle_top[] =
    "/* %s as machine code for %s.\n"
    " *\n"
    " * Tensors are floats in the order of their shapes and do not overlap.\n"
    " * %s_run keeps nothing, allocates nothing and calls nothing: what it\n"
    " * needs is in the workspace, which may be used for other things between\n"
    " * calls; it returns 0. */\n"
    "#ifndef %s_H\n#define %s_H\n\n"
    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
    "/* Bytes; the workspace starts at a multiple of %s_WORKSPACE_ALIGN. */\n"
    "#define %s_WORKSPACE_BYTES %llu\n"
    "#define %s_WORKSPACE_ALIGN %llu\n"
    "/* Of the constants in %s. */\n"
    "#define %s_WEIGHTS_BYTES %llu\n\n"
    "typedef struct %s_io {\n";
static const char bundle_bottom[] =
    "} %s_io;\n\n"
    "int %s_run(const %s_io *io, void *workspace);\n\n"
    "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";

static void add_field(Text *text, const Graph *g, TensorId tensor,
                      const char *type) {
    const Tensor *t = graph_tensor(g, tensor);
    text_addf(text, "    %s%s; /* %s */\n", type,
              listing_identifier(text->arena, t->name),
              shape_text(text->arena, &t->shape));
}

const char *native_bundle_header(Arena *arena, const Plan *plan,
                                 const NativeBundle *bundle) {
    const Graph *g = plan->schedule->graph;
    const char *n = bundle->program->name;
    Text text = text_new(arena);
    text_addf(&text, bundle_top, g->name, plan->schedule->spec->machine, n, n,
              n, n, n, (unsigned long long)bundle->workspace_bytes, n,
              (unsigned long long)bundle->workspace_align,
              bundle->program->weights_apart ? "the .bin file"
                                             : "the object file",
              n, (unsigned long long)bundle->program->weights_bytes, n);
    for (uint32_t i = 0; i < g->node.n; i++)
        if (g->node.at[i].op == OP_INPUT)
            add_field(&text, g, g->node.at[i].out[0], "const float *");
    for (uint32_t i = 0; i < g->output.n; i++)
        add_field(&text, g, g->output.at[i], "float *");
    if (bundle->program->weights_apart)
        text_addf(&text,
                  "    const void *%s_weights; /* at a multiple of 64 "
                  "*/\n",
                  n);
    text_addf(&text, bundle_bottom, n, n, n);
    return text_str(&text);
}
