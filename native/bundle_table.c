/* bundle_table.c - what a bundle needs, layer by layer: the columns that
 * TinyEngine's scheduler prints (Lin et al., MCUNet, 2020), and its buffers. */
#include "native/native.h"

#include "base/text.h"

#include <string.h>

/* Of one layer, or of all. */
typedef struct Needs {
    uint64_t activation, loaded;  /* bytes of memory while it runs */
    uint64_t weight, bias, scale; /* bytes of constants */
    uint64_t macs;
} Needs;

static void add_rooms(Needs *n, const NativeBundle *b, uint32_t call) {
    for (uint32_t i = 0; i < rooms_count(b->rooms); i++) {
        const Room *room = rooms_at(b->rooms, i);
        uint64_t bytes = b->images * room->image + room->fixed;
        if (call < room->first || call >= room->end)
            continue;
        if (room->kind == HW_KIND_SCRATCH)
            n->loaded += bytes;
        else
            n->activation += bytes;
    }
}

/* As code has it: codes as they are stored, everything else as floats. */
static uint64_t constant_bytes(const Const *value) {
    static const uint8_t size[CONST_KINDS] = {
#define KIND(NAME, word, bytes, code) [CONST_##NAME] = (code) ? (bytes) : 4,
        CONST_KIND_ROWS(KIND)
#undef KIND
    };
    return shape_count(&value->shape) * size[value->kind];
}

static void add_constants(Needs *n, const Graph *g, const Node *node) {
    for (uint32_t role = 0; role < CONST_ROLES; role++) {
        if (node->constant[role].i == NONE)
            continue;
        const Const *value = graph_const(g, node->constant[role]);
        uint64_t bytes = constant_bytes(value);
        if (role == CONST_WEIGHT)
            n->weight += bytes;
        else if (role == CONST_BIAS)
            n->bias += bytes;
        else
            n->scale += bytes;
    }
}

/* Places of the window: of the convolution, where a pool is behind it. */
static uint64_t places_of(const Graph *g, const Node *node) {
    Volume in = plan_volume(g, node->in[0]);
    Volume out = plan_volume(g, node->out[0]);
    const ConvAttr *c = &node->attr.conv;
    if (node->op == OP_FC)
        return 1;
    if (node->op == OP_DECONV)
        return (uint64_t)in.h * in.w;
    if (node->op != OP_CONV_POOL)
        return (uint64_t)out.h * out.w;
    uint64_t h = conv_out_size(in.h, c->kernel[0], c->stride[0], c->dilation[0],
                               c->pad[0], c->pad_end[0]);
    return h * conv_out_size(in.w, c->kernel[1], c->stride[1], c->dilation[1],
                             c->pad[1], c->pad_end[1]);
}

static void add_macs(Needs *n, const Graph *g, const Node *node) {
    bool products = node_convolves(node) || node->op == OP_FC;
    ConstId weight = node->constant[CONST_WEIGHT];
    if (products && weight.i != NONE)
        n->macs +=
            places_of(g, node) * shape_count(&graph_const(g, weight)->shape);
}

static Needs needs_of(const NativeBundle *b, uint32_t call) {
    const Graph *g = b->plan->schedule->graph;
    const Node *node = graph_node(g, b->plan->action[call].node);
    Needs n = {0};
    add_rooms(&n, b, call);
    add_constants(&n, g, node);
    add_macs(&n, g, node);
    return n;
}

/* Its end, where it is long. */
static const char *short_name(const char *name) {
    size_t len = strlen(name);
    return len > 28 ? name + len - 28 : name;
}

static void add_number(Text *text, uint64_t value, uint64_t whole, int width) {
    unsigned share =
        whole ? (unsigned)(100.0 * (double)value / (double)whole + 0.5) : 0;
    text_addf(text, " %*llu %3u%%", width, (unsigned long long)value, share);
}

static void add_row(Text *text, const char *name, const Needs *n,
                    const Needs *whole) {
    text_addf(text, "%-28s", short_name(name));
    add_number(text, n->activation, whole->activation, 10);
    add_number(text, n->loaded, whole->loaded, 9);
    text_addf(text, " %10llu |",
              (unsigned long long)(n->activation + n->loaded));
    add_number(text, n->weight, whole->weight, 10);
    add_number(text, n->bias, whole->bias, 7);
    add_number(text, n->scale, whole->scale, 7);
    text_addf(text, " %10llu |",
              (unsigned long long)(n->weight + n->bias + n->scale));
    add_number(text, n->macs, whole->macs, 12);
    text_add(text, "\n");
}

static bool is_layer(const NativeBundle *b, uint32_t call) {
    return b->plan->action[call].kind == ACTION_RUN;
}

static void add_layers(Text *text, const NativeBundle *b) {
    const Graph *g = b->plan->schedule->graph;
    Needs whole = {0};
    for (uint32_t i = 0; i < b->plan->n_actions; i++) {
        if (!is_layer(b, i))
            continue;
        Needs n = needs_of(b, i);
        whole.activation =
            n.activation > whole.activation ? n.activation : whole.activation;
        whole.loaded = n.loaded > whole.loaded ? n.loaded : whole.loaded;
        whole.weight += n.weight;
        whole.bias += n.bias;
        whole.scale += n.scale;
        whole.macs += n.macs;
    }
    text_addf(text, "%-28s%15s %14s %11s |%15s %12s %12s %11s |%17s\n",
              "layer: bytes", "activation", "runtime", "sum", "weight", "bias",
              "scale", "sum", "MAC");
    add_row(text, "most, or all", &whole, &whole);
    for (uint32_t i = 0; i < b->plan->n_actions; i++)
        if (is_layer(b, i)) {
            Needs n = needs_of(b, i);
            add_row(text, graph_node(g, b->plan->action[i].node)->name, &n,
                    &whole);
        }
}

static void add_buffers(Text *text, const NativeBundle *b) {
    text_addf(text, "%-28s %-12s %10s %10s  %s\n", "buffer", "pool", "from",
              "bytes", "calls");
    for (uint32_t i = 0; i < rooms_count(b->rooms); i++) {
        const Room *room = rooms_at(b->rooms, i);
        uint32_t pool = rooms_native(b->rooms)[i].pool;
        text_addf(text, "%-28s %-12s %10llu %10llu  %u to %u\n",
                  short_name(room->name), b->spec->memory[pool].name,
                  (unsigned long long)rooms_offset(b->rooms, i, b->images),
                  (unsigned long long)(b->images * room->image + room->fixed),
                  room->first, room->end - 1);
    }
}

const char *native_bundle_table(Arena *arena, const NativeBundle *bundle) {
    Text text = text_new(arena);
    add_buffers(&text, bundle);
    add_layers(&text, bundle);
    return text_str(&text);
}
