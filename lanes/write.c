/* write.c - a network as the description that the vendor's tool reads. */
#include "lanes/lanes.h"

static const char *const op_name[LANE_OPS] = {
    "conv2d", "conv1d", "convtranspose2d", "linear", "passthrough"};
static const char *const elt_name_of[] = {NULL, "add", "sub", "or", "xor"};
static const char *const act_name_of[] = {"None", "ReLU", "Abs"};

static void add_sources(Text *text, const LaneLayer *l, uint32_t at) {
    if (l->n_sources == 1 && l->source[0] == (int32_t)at - 1)
        return;
    text_add(text, "    in_sequences: [");
    for (uint32_t i = 0; i < l->n_sources; i++)
        text_addf(text, "%s%d", i ? ", " : "", l->source[i]);
    text_add(text, "]\n");
}

static void add_pool(Text *text, const LaneLayer *l) {
    const char *key = l->average ? "avg_pool" : "max_pool";
    if (l->pooled && l->op == LANE_CONV1D)
        text_addf(text, "    %s: %u\n", key, l->pool[0]);
    else if (l->pooled)
        text_addf(text, "    %s: [%u, %u]\n", key, l->pool[0], l->pool[1]);
    if (l->pooled || l->pool_stride > 1)
        text_addf(text, "    pool_stride: %u\n", l->pool_stride);
    if (!l->pool_first)
        text_add(text, "    pool_first: false\n");
}

static void add_kernel(Text *text, const LaneLayer *l) {
    if (l->op == LANE_CONV1D) {
        text_addf(text, "    kernel_size: %u\n", l->kernel[0]);
        if (l->dilation[0] > 1)
            text_addf(text, "    dilation: %u\n", l->dilation[0]);
    }
    if (l->op == LANE_CONV2D || l->op == LANE_DECONV)
        text_addf(text, "    kernel_size: %s\n",
                  l->kernel[0] == 3 && !l->widened ? "3x3" : "1x1");
    if (l->op != LANE_LINEAR && l->op != LANE_PASS)
        text_addf(text, "    pad: %u\n", l->widened ? 0 : l->pad[0]);
}

static void add_layer(Text *text, const LaneNet *net, uint32_t at) {
    const LaneLayer *l = &net->layer[at];
    text_addf(text, "  - operation: %s\n", op_name[l->op]);
    if (l->name)
        text_addf(text, "    name: %s\n", l->name);
    text_addf(text, "    processors: 0x%016llx\n",
              (unsigned long long)l->lanes);
    text_addf(text, "    output_processors: 0x%016llx\n",
              (unsigned long long)l->out_lanes);
    text_addf(text, "    in_offset: 0x%04x\n    out_offset: 0x%04x\n",
              l->in_offset, l->out_offset);
    add_sources(text, l, at);
    if (l->elt != LANE_ALONE)
        text_addf(text, "    eltwise: %s\n    operands: %u\n",
                  elt_name_of[l->elt], l->operands);
    add_pool(text, l);
    add_kernel(text, l);
    if (l->op != LANE_PASS)
        text_addf(text, "    activate: %s\n", act_name_of[l->act]);
    if (l->gap)
        text_addf(text, "    write_gap: %u\n", l->gap);
    if (at == 0)
        text_addf(text, "    data_format: %s\n", l->chw ? "CHW" : "HWC");
    if (l->width == 4)
        text_add(text, "    output_width: 32\n");
    if (l->bits != 8)
        text_addf(text, "    quantization: %u\n", l->bits);
    if (l->says_shift)
        text_addf(text, "    output_shift: %d\n", l->out_shift);
    if (l->flatten)
        text_add(text, "    flatten: true\n");
    if (l->streaming)
        text_add(text, "    streaming: true\n");
    if (l->marked)
        text_add(text, "    output: true\n");
}

const char *lanes_yaml(Arena *arena, const LaneNet *net) {
    Text text = text_new(arena);
    text_addf(&text, "---\narch: %s\ndataset: %s\n\nlayers:\n", net->arch,
              net->dataset);
    for (uint32_t i = 0; i < net->n; i++)
        add_layer(&text, net, i);
    return text_str(&text);
}
