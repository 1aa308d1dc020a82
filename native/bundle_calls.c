/* bundle_calls.c - actions of a plan as calls of kernels.
 *
 * Where a placement of the plan lies in the bundle, and how; then what each
 * action calls. */
#include "native/bundler.h"

#include "native/codes.h"

#include <string.h>

/* ---- where tensors are ---- */

/* Does the operand say where the layout has each element? */
static bool says_layout(const Operand *o, const LayoutTables *t, uint32_t cell,
                        const Volume *whole, uint32_t part_c) {
    uint32_t c, h, w;
    shape_chw(&o->shape, &c, &h, &w);
    for (uint32_t i = 0; i < c; i++)
        if (t->c_at[part_c + i] - t->c_at[part_c] !=
            cell * (i / o->block * o->c_step + i % o->block))
            return false;
    for (uint32_t i = 0; i < h; i++)
        if (t->h_at[i] != cell * i * o->h_step)
            return false;
    for (uint32_t i = 0; i < w; i++)
        if (t->w_at[i] != cell * i * o->w_step)
            return false;
    return part_c + c <= whole->c;
}

/* The placement as an operand; false where the layout is no blocks of
 * channels. The caller's arrays have no gaps between elements. */
bool bundle_operand(Bundler *b, const Placement *p, Operand *out) {
    const HwMemory *memory = &b->spec->memory[p->memory];
    const Tensor *tensor = graph_tensor(b->g, p->tensor);
    const Volume *whole = &p->whole;
    const Layout *layout = layout_case(memory->layout, whole);
    LayoutTables t = layout_tables(b->arena, layout, whole);
    uint32_t granule = layout_granule(layout), cell = layout->element;
    uint32_t block = granule ? granule : whole->c;
    *out = (Operand){
        .shape = tensor->shape, .block = block, .quant = tensor->quant};
    out->cell = memory->role == HW_ACTIVE ? cell : operand_size(out);
    if (block < whole->c)
        out->c_step = (t.c_at[block] - t.c_at[0]) / cell;
    if (whole->h > 1)
        out->h_step = (t.h_at[1] - t.h_at[0]) / cell;
    if (whole->w > 1)
        out->w_step = (t.w_at[1] - t.w_at[0]) / cell;
    return cell >= operand_size(out) &&
           says_layout(out, &t, cell, whole, p->part_c);
}

uint32_t bundle_input(const Bundler *b, TensorId tensor) {
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

uint32_t bundle_output(const Bundler *b, TensorId tensor) {
    for (uint32_t i = 0; i < b->g->output.n; i++)
        if (same_tensor(b->g->output.at[i], tensor))
            return i;
    return NONE;
}

static bool refuse(const Bundler *b, TensorId tensor, const char *why) {
    const Tensor *t = graph_tensor(b->g, tensor);
    diag_error(b->diag, t->loc, "no bundle for %s: %s %s", b->spec->machine,
               t->name, why);
    return false;
}

static OpKind producer_op(const Bundler *b, TensorId tensor) {
    return graph_node(b->g, graph_tensor(b->g, tensor)->producer)->op;
}

NativePointer bundle_constant(Bundler *b, Site *site, const Tensor *t,
                              const Const *value) {
    ConstKind kind = CONST_F32;
    if (t->quant.type != QUANT_NONE) {
        value = codes_of_reals(b->arena, &t->quant, value);
        kind = value->kind;
    }
    return b->where == WEIGHTS_LOADED
               ? bundle_load_operand(b, site, value, kind, t->name)
               : maker_constant(b->maker, value, kind);
}

/* Values that the network brings along are among the weights. */
static NativePointer constant_pointer(Bundler *b, Site *site, TensorId tensor) {
    const Tensor *t = graph_tensor(b->g, tensor);
    const Node *node = graph_node(b->g, t->producer);
    return bundle_constant(b, site, t,
                           graph_const(b->g, node->constant[CONST_VALUE]));
}

/* A room, where the plan's buffer has none yet. */
static NativePointer active_pointer(Bundler *b, const Placement *p) {
    Home *home = &b->home[p->buffer];
    if (!home->set) {
        home->set = true;
        const char *name = graph_tensor(b->g, p->tensor)->name;
        uint32_t room =
            rooms_add(b->rooms, HW_KIND_ACTIVATIONS, name, p->bytes, 0);
        home->pointer =
            (NativePointer){.base = NATIVE_ROOM,
                            .index = room,
                            .image = rooms_at(b->rooms, room)->image};
    }
    NativePointer at = home->pointer;
    at.offset += layout_part_offset(b->spec->memory[p->memory].layout,
                                    &p->whole, p->part_c);
    return at;
}

static bool outside_pointer(Bundler *b, const Placement *p,
                            NativePointer *out) {
    bool is_in = b->spec->memory[p->memory].role == HW_INPUT;
    uint32_t index =
        is_in ? bundle_input(b, p->tensor) : bundle_output(b, p->tensor);
    if (index == NONE)
        return refuse(b, p->tensor, "is the host's");
    *out = is_in ? b->in[index] : b->out[index];
    return true;
}

bool bundle_pointer(Bundler *b, Site *site, const Placement *p,
                    NativePointer *out) {
    const HwMemory *memory = &b->spec->memory[p->memory];
    if (memory->role == HW_BACKING)
        return refuse(b, p->tensor, "does not fit into the workspace");
    if (memory->role == HW_ACTIVE)
        *out = active_pointer(b, p);
    else if (producer_op(b, p->tensor) == OP_CONSTANT)
        *out = constant_pointer(b, site, p->tensor);
    else if (!outside_pointer(b, p, out))
        return false;
    if (out->base == NATIVE_ROOM)
        rooms_use(b->rooms, out->index, b->at);
    return true;
}

uint64_t bundle_tensor_bytes(const Tensor *tensor) {
    return shape_count(&tensor->shape) * quant_type[tensor->quant.type].size;
}

/* ---- calls ---- */

static bool add_placed(Bundler *b, Site *site, uint32_t placement) {
    const Placement *p = &b->plan->placement[placement];
    Operand operand;
    NativePointer pointer;
    uint32_t rows = plan_volume(b->g, p->tensor).h;
    if (p->row != 0 || p->rows != rows || p->ring)
        return refuse(b, p->tensor, "is there in part only");
    if (!bundle_operand(b, p, &operand))
        return refuse(
            b, p->tensor,
            "lies in no blocks of channels, or in too small elements");
    if (!bundle_pointer(b, site, p, &pointer))
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

int32_t bundle_operand_under(const Site *site, uint32_t n_in) {
    const NativePointer *out = &site->pointer.at[n_in];
    for (uint32_t i = 0; i < n_in; i++)
        if (site->pointer.at[i].base == out->base &&
            site->pointer.at[i].index == out->index &&
            site->pointer.at[i].offset == out->offset)
            return (int32_t)i;
    return -1;
}

static void add_call(Bundler *b, const Site *site, const Kernel *kernel) {
    NativeCall call = {.kernel = maker_kernel(b->maker, kernel),
                       .n = site->pointer.n,
                       .n_loads = site->load.n,
                       .pieces = 1,
                       .pointer = site->pointer.at,
                       .load = site->load.at};
    vec_push(b->arena, &b->call, call);
}

const QuantLayer *bundle_move_rule(Arena *arena, const Quant *q) {
    const QuantTypeInfo *type = &quant_type[q->type];
    QuantLayer *layer = ARENA_NEW(arena, QuantLayer);
    *layer = (QuantLayer){.rule = QUANT_MOVES, .lo = type->lo, .hi = type->hi};
    return q->type == QUANT_NONE ? NULL : layer;
}

void bundle_add_copy(Bundler *b, const Site *site) {
    if (bundle_operand_under(site, 1) == 0)
        return;
    Kernel kernel = {.kind = op_info[OP_IDENTITY].name,
                     .n_in = 1,
                     .n_out = 1,
                     .in = &site->operand.at[0],
                     .out = &site->operand.at[1],
                     .quant =
                         bundle_move_rule(b->arena, &site->operand.at[0].quant),
                     .over = -1};
    add_call(b, site, &kernel);
}

static bool add_copy(Bundler *b, const Action *action) {
    Site site = {0};
    if (!add_places(b, &site, action))
        return false;
    bundle_add_copy(b, &site);
    return true;
}

/* ---- outputs that no layer makes ---- */

/* Does an action write the tensor where outputs are? */
static bool is_written(const Bundler *b, TensorId tensor) {
    OpKind op = producer_op(b, tensor);
    if (op != OP_INPUT && op != OP_CONSTANT)
        return true;
    for (uint32_t i = 0; i < b->plan->n_actions; i++) {
        const Action *action = &b->plan->action[i];
        const Placement *p = &b->plan->placement[action->out];
        if (action->kind == ACTION_STORE && same_tensor(p->tensor, tensor) &&
            b->spec->memory[p->memory].role == HW_OUTPUT)
            return true;
    }
    return false;
}

/* Of an input or a constant. */
static NativePointer passed_pointer(Bundler *b, Site *site, TensorId tensor) {
    return producer_op(b, tensor) == OP_CONSTANT
               ? constant_pointer(b, site, tensor)
               : b->in[bundle_input(b, tensor)];
}

void bundle_pass_outputs(Bundler *b) {
    for (uint32_t i = 0; i < b->g->output.n; i++) {
        TensorId tensor = b->g->output.at[i];
        const Tensor *t = graph_tensor(b->g, tensor);
        if (is_written(b, tensor))
            continue;
        Site site = {0};
        NativePointer end[] = {passed_pointer(b, &site, tensor), b->out[i]};
        for (int k = 0; k < 2; k++) {
            if (end[k].base == NATIVE_ROOM)
                rooms_use(b->rooms, end[k].index, b->at);
            vec_push(b->arena, &site.operand,
                     operand_dense(&t->shape, &t->quant));
            vec_push(b->arena, &site.pointer, end[k]);
        }
        bundle_add_copy(b, &site);
    }
}

static bool engine_overlaps(const Bundler *b, const Action *action) {
    uint32_t allowed = b->spec->engine[action->legal.engine].overlap;
    bool pool = graph_node(b->g, action->node)->op == OP_POOL;
    return allowed >> (pool ? HW_OVERLAP_POOL : HW_OVERLAP_DEPTHWISE) & 1;
}

bool bundle_fills_room(const Placement *p, const NativePointer *pointer) {
    return pointer->base == NATIVE_ROOM && p->n_c == p->whole.c;
}

/* May the result lie over its operand's rows, since that is not needed any
 * more? */
static void let_overlap(Bundler *b, const Action *action, const Site *site,
                        Kernel *kernel) {
    const Placement *in = &b->plan->placement[action->in[0]];
    const Placement *out = &b->plan->placement[action->out];
    const NativePointer *from = &site->pointer.at[0];
    const NativePointer *to = &site->pointer.at[1];
    int64_t ahead;
    if (action->n_in != 1 || !engine_overlaps(b, action) ||
        !bundle_fills_room(in, from) || !bundle_fills_room(out, to) ||
        from->index == to->index || b->home[in->buffer].last != b->at ||
        rooms_at(b->rooms, to->index)->first != b->at ||
        !kernel_ahead(kernel, &ahead))
        return;
    int64_t grows = (int64_t)to->image - (int64_t)from->image;
    grows = grows > 0 ? grows : 0;
    kernel->overlaps = true;
    rooms_overlap(b->rooms, to->index, from->index, grows, ahead - grows);
}

void bundle_add_call(Bundler *b, Site *site, const Kernel *kernel,
                     const Const *value) {
    for (uint32_t i = 0; i < kernel->n_constants; i++) {
        NativePointer pointer = maker_packed(b->maker, kernel, i, &value[i], 0);
        vec_push(b->arena, &site->pointer, pointer);
    }
    add_call(b, site, kernel);
}

static bool add_layer(Bundler *b, const Action *action) {
    const Node *node = graph_node(b->g, action->node);
    Site site = {0};
    if (!add_places(b, &site, action))
        return false;
    uint32_t n_in = action->n_in;
    Kernel *kernel = ARENA_NEW(b->arena, Kernel);
    const Const *value;
    *kernel = native_kernel(b->arena, b->g, action->node, site.operand.at,
                            &site.operand.at[n_in], &value);
    kernel->n_out = 1;
    kernel->over = bundle_operand_under(&site, n_in);
    const char *why = b->backend->refuse(kernel);
    if (why) {
        diag_error(b->diag, node->loc, "no native code for layer %s: %s",
                   node->name, why);
        return false;
    }
    let_overlap(b, action, &site, kernel);
    if (b->where == WEIGHTS_LOADED && kernel->n_constants) {
        bundle_load_layer(b, &site, kernel, value, node->name);
        return true;
    }
    bundle_add_call(b, &site, kernel, value);
    return true;
}

static bool add_tiles_or_layer(Bundler *b, const Action *action) {
    uint32_t taken;
    if (!bundle_fuse(b, action, &taken) ||
        (taken == 0 && !bundle_tile(b, action, &taken)))
        return false;
    if (taken == 0)
        return add_layer(b, action);
    b->at += taken - 1;
    return true;
}

bool bundle_add_action(Bundler *b, const Action *action) {
    const Node *node;
    switch (action->kind) {
    case ACTION_LOAD:
    case ACTION_STORE:
    case ACTION_COPY:
        return add_copy(b, action);
    case ACTION_RUN:
        node = graph_node(b->g, action->node);
        if (action->legal.op == HW_OP_LAYER && action->n_tiles < 2)
            return add_tiles_or_layer(b, action);
        diag_error(b->diag, node->loc,
                   "no bundle for %s: layer %s is an instruction",
                   b->spec->machine, node->name);
        return false;
    case ACTION_BIAS:
    case ACTION_WEIGHTS: /* of machines whose engines take no layers */
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
