/* ops.c - Darknet's layers as nodes, one row a kind of section.
 *
 * Rules that differ from others': an epsilon of 1e-6 beside the deviation of a
 * normalisation, for which we add it to the variance; maxpool pads size - 1 in
 * all unless told otherwise, the smaller half before.
 */
#include "frontends/darknet/darknet.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROUTES = 64 };

static TensorId activate(Dark *d, TensorId in, const char *fallback) {
    static const struct {
        const char *name;
        Act act;
    } acts[] = {
        {"leaky", {.kind = ACT_LEAKY, .alpha = 0.1}},
        {"relu", {.kind = ACT_RELU}},
        {"relu6", {.kind = ACT_RELU6}},
        {"logistic", {.kind = ACT_SIGMOID}},
        {"tanh", {.kind = ACT_TANH}},
        {"mish", {.kind = ACT_MISH}},
        {"swish", {.kind = ACT_SILU}},
        {"elu", {.kind = ACT_ELU, .alpha = 1}},
    };
    const char *word = dark_text(d, "activation", fallback);
    if (!strcmp(word, "linear"))
        return in;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (!strcmp(acts[i].name, word))
            return net_act(&d->net, word, in, acts[i].act);
    return net_none(&d->net, "activation %s is not supported", word);
}

/* Scale, mean and variance stand next in the file. */
static Norm read_norm(Dark *d, uint32_t n, const Const *bias) {
    Norm norm = {
        .eps = 1e-6, .has_gamma = true, .has_beta = true, .beta = bias};
    norm.gamma = dark_floats(d, n);
    norm.mean = dark_floats(d, n);
    norm.var = dark_floats(d, n);
    return norm;
}

static TensorId normalise(Dark *d, TensorId in, const Norm *norm) {
    Net *net = &d->net;
    net_at(net, arena_printf(net->arena, "%s/bn", net->layer), net->kind,
           net->loc);
    return net_norm(net, in, norm);
}

/* Values stand in the file as bias, scale, mean, variance, weights. */
static TensorId convolutional(Dark *d) {
    Net *net = &d->net;
    ConvAttr a = {.out_c = dark_number(d, "filters", 1),
                  .groups = dark_number(d, "groups", 1)};
    uint32_t size = dark_number(d, "size", 1);
    uint32_t pad =
        dark_number(d, "pad", 0) ? size / 2 : dark_number(d, "padding", 0);
    uint32_t dilation = size > 1 ? dark_number(d, "dilation", 1) : 1;
    bool norm = dark_number(d, "batch_normalize", 0) > 0;
    dark_numbers(d, "stride", 1, a.stride);
    for (int i = 0; i < 2; i++) {
        a.kernel[i] = size;
        a.dilation[i] = dilation;
        a.pad[i] = a.pad_end[i] = pad * dilation;
    }
    const Shape *in = &graph_tensor(net->g, d->before)->shape;
    if (!a.groups || !size || in->rank != 4)
        return net_none(net, "needs an image, a size and groups");
    const Const *bias = dark_floats(d, a.out_c);
    Norm statistics = {0};
    if (norm) /* before the kernel */
        statistics = read_norm(d, a.out_c, bias);
    const Const *weight = dark_floats(
        d, (uint64_t)a.out_c * (in->dim[1] / a.groups) * size * size);
    TensorId out = net_conv(net, OP_CONV, d->before, &a, weight, !norm,
                            norm ? NULL : bias);
    return activate(d, norm ? normalise(d, out, &statistics) : out, "logistic");
}

static TensorId connected(Dark *d) {
    const Shape *in = &graph_tensor(d->net.g, d->before)->shape;
    uint32_t out = dark_number(d, "output", 1);
    bool norm = dark_number(d, "batch_normalize", 0) > 0;
    const Const *bias = dark_floats(d, out);
    const Const *weight = dark_floats(d, out * shape_count(in) / in->dim[0]);
    TensorId made =
        net_fc(&d->net, d->before, out, weight, !norm, norm ? NULL : bias);
    if (!norm)
        return activate(d, made, "logistic");
    Norm statistics = read_norm(d, out, bias); /* behind the matrix */
    return activate(d, normalise(d, made, &statistics), "logistic");
}

static TensorId maxpool(Dark *d) {
    uint32_t size = dark_number(d, "size", dark_number(d, "stride", 1));
    uint32_t pad = dark_number(d, "padding", size ? size - 1 : 0);
    PoolAttr a = {.kind = POOL_MAX};
    dark_numbers(d, "stride", 1, a.stride);
    for (int i = 0; i < 2; i++) {
        a.kernel[i] = size;
        a.pad[i] = pad / 2;
        a.pad_end[i] = pad - pad / 2;
    }
    return net_pool(&d->net, d->before, &a);
}

static TensorId avgpool(Dark *d) {
    PoolAttr a = {.kind = POOL_AVG, .global = true, .stride = {1, 1}};
    return net_pool(&d->net, d->before, &a);
}

/* The output of a layer by its number; negative ones count back from here. */
static TensorId layer(const Dark *d, long number_of) {
    long at = number_of < 0 ? (long)d->layer + number_of : number_of;
    if (at < 0 || at >= (long)d->layer)
        return net_none(&d->net, "there is no layer %ld before this one",
                        number_of);
    return d->section.at[at + 1].out;
}

/* The outputs that an option lists; how many, 0 after an error. */
static uint32_t layers(Dark *d, const char *key, TensorId *out) {
    const char *at = dark_text(d, key, "");
    uint32_t n = 0;
    for (char *end; *at && n < MAX_ROUTES; at = end) {
        long value = strtol(at, &end, 10);
        if (end == at)
            return net_fail(&d->net, "%s must be numbers", key);
        out[n] = layer(d, value);
        if (out[n++].i == NONE)
            return 0;
        end += strspn(end, ", \t");
    }
    if (!n || *at)
        net_fail(&d->net, "%s names none, or too many", key);
    return *at ? 0 : n;
}

static TensorId route(Dark *d) {
    TensorId in[MAX_ROUTES];
    uint32_t n = layers(d, "layers", in), groups = dark_number(d, "groups", 1);
    if (!n)
        return NO_TENSOR;
    TensorId out = n == 1 ? in[0] : net_concat(&d->net, n, in, 1);
    if (groups < 2 || out.i == NONE)
        return out;
    uint32_t part = shape_dim(&graph_tensor(d->net.g, out)->shape, 1) / groups;
    uint32_t id = dark_number(d, "group_id", 0);
    return net_slice(&d->net, "group", out, 1, id * part, (id + 1) * part);
}

/* Every stride-th pixel, where the other image is so many times as large. */
static TensorId thin(Dark *d, TensorId in, const Shape *to) {
    const Shape *from = &graph_tensor(d->net.g, in)->shape;
    PoolAttr a = {.kind = POOL_MAX, .kernel = {1, 1}};
    for (uint32_t i = 0; i < 2; i++) {
        a.stride[i] = from->dim[2 + i] / to->dim[2 + i];
        if (!a.stride[i] || from->dim[2 + i] % to->dim[2 + i])
            return net_none(&d->net, "cannot add %s and %s",
                            shape_text(d->net.arena, from),
                            shape_text(d->net.arena, to));
    }
    net_at(&d->net, arena_printf(d->net.arena, "%s/thin", d->net.layer),
           d->net.kind, d->net.loc);
    return a.stride[0] * a.stride[1] == 1 ? in : net_pool(&d->net, in, &a);
}

/* The first channels, or zeros behind its own. */
static TensorId fit_channels(Dark *d, TensorId in, uint32_t channels) {
    if (in.i == NONE)
        return in;
    uint32_t own = graph_tensor(d->net.g, in)->shape.dim[1];
    int64_t amount[8] = {0};
    if (own > channels)
        return net_slice(&d->net, "first", in, 1, 0, channels);
    amount[3] = channels - own;
    return own == channels ? in : net_pads(&d->net, in, 8, amount, PAD_ZERO, 0);
}

/* Adds the pixels and channels that both have to the layer before. */
static TensorId shortcut(Dark *d) {
    Net *net = &d->net;
    const char *name = net->layer;
    TensorId in[MAX_ROUTES + 1] = {d->before};
    uint32_t n = layers(d, "from", in + 1);
    Shape to = graph_tensor(net->g, d->before)->shape;
    if (!n)
        return NO_TENSOR;
    for (uint32_t i = 1; i <= n; i++)
        if (to.rank == 4 && graph_tensor(net->g, in[i])->shape.rank == 4)
            in[i] = fit_channels(d, thin(d, in[i], &to), to.dim[1]);
    net->layer = name;
    return activate(d, net_elt(net, NULL, ELT_ADD, n + 1, in), "linear");
}

/* Squeeze and excitation, and attention by pixel: a product. */
static TensorId product(Dark *d) {
    TensorId in[MAX_ROUTES + 1] = {d->before};
    if (layers(d, "from", in + 1) != 1)
        return net_none(&d->net, "needs one layer in from");
    return activate(d, net_elt(&d->net, NULL, ELT_MUL, 2, in), "linear");
}

/* The middle of the image; pixels of 0 to 1 become -1 to 1. */
static TensorId crop(Dark *d) {
    int64_t begin[4] = {0}, end[4];
    Shape in = graph_tensor(d->net.g, d->before)->shape;
    int64_t size[4] = {in.dim[0], in.dim[1], dark_number(d, "crop_height", 1),
                       dark_number(d, "crop_width", 1)};
    if (in.rank != 4)
        return net_none(&d->net, "needs an image");
    for (int i = 0; i < 4; i++) {
        begin[i] = (in.dim[i] - size[i]) / 2;
        end[i] = begin[i] + size[i];
    }
    TensorId out = net_window(&d->net, d->before, begin, end);
    return dark_number(d, "noadjust", 0)
               ? out
               : net_affine(&d->net, "range", out, 2, -1);
}

static TensorId upsample(Dark *d) {
    NodeId id = net_node(&d->net, OP_UPSAMPLE, NULL, 1, &d->before);
    uint32_t stride = dark_number(d, "stride", 2);
    for (int i = 0; i < 2; i++)
        graph_node(d->net.g, id)->attr.up.factor[i] = stride;
    return net_out(&d->net, id);
}

/* Darknet's reorg takes channels apart and puts them into pixels, of a tensor
 * that it then reads as s * s times as deep: pixel (y, x) of channel c goes to
 * a place that depends on c / s / s. As a chain of a reshape to
 * [c/s/s, h, s, w, s], an exchange of axes, and a reshape. */
static TensorId reorg(Dark *d) {
    Net *net = &d->net;
    Shape in = graph_tensor(net->g, d->before)->shape;
    uint32_t s = dark_number(d, "stride", 1);
    if (in.rank != 4 || in.dim[0] != 1 || !s || in.dim[1] % (s * s) ||
        in.dim[2] % s || in.dim[3] % s)
        return net_none(net,
                        "stride %u does not fit %s, or more than one "
                        "image",
                        s, shape_text(net->arena, &in));
    Shape apart = {5, {in.dim[1] / s / s, in.dim[2], s, in.dim[3], s}};
    Shape perm = {5, {2, 4, 0, 1, 3}};
    Shape out = shape_nchw(1, in.dim[1] * s * s, in.dim[2] / s, in.dim[3] / s);
    /* [i, j, c', h, w] as one block is what the wide tensor holds. */
    TensorId t = net_reshape(net, "apart", d->before, apart);
    t = net_transpose(net, "turn", t, perm);
    return net_reshape(net, NULL, t, out);
}

static TensorId batchnorm(Dark *d) {
    const Shape *in = &graph_tensor(d->net.g, d->before)->shape;
    uint32_t channels = in->dim[1];
    Norm norm = read_norm(d, channels, dark_floats(d, channels));
    return net_norm(&d->net, d->before, &norm);
}

static TensorId activation(Dark *d) {
    return activate(d, d->before, "linear");
}

static TensorId logistic(Dark *d) {
    return activate(d, d->before, "logistic");
}

static TensorId softmax(Dark *d) {
    return net_softmax(&d->net, d->before, 1);
}

static TensorId same(Dark *d) {
    return d->before;
}

static const DarkOp kinds[] = {
    {"convolutional", convolutional, false},
    {"conv", convolutional, false},
    {"connected", connected, false},
    {"conn", connected, false},
    {"maxpool", maxpool, false},
    {"max", maxpool, false},
    {"avgpool", avgpool, false},
    {"avg", avgpool, false},
    {"route", route, false},
    {"shortcut", shortcut, false},
    {"scale_channels", product, false},
    {"sam", product, false},
    {"batchnorm", batchnorm, false},
    {"activation", activation, false},
    {"logistic", logistic, false},
    {"upsample", upsample, false},
    {"reorg", reorg, false},
    {"softmax", softmax, false},
    {"soft", softmax, false},
    {"crop", crop, false},
    {"dropout", same, false},
    {"cost", same, false},
    {"yolo", same, true},
    {"Gaussian_yolo", same, true},
    {"region", same, true},
    {"detection", same, true},
};

bool dark_is_plain(const Dark *d) {
    /* With the value that changes nothing. */
    static const Option unknown[] = {
        {"xnor", "0"},
        {"binary", "0"},
        {"flipped", "0"},
        {"antialiasing", "0"},
        {"maxpool_depth", "0"},
        {"reverse", "0"},
        {"weights_type", "none"},
        {"scale_wh", "0"},
        {"temperature", "1"},
        {"share_index", ""},
    };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        const char *value = dark_text(d, unknown[i].key, NULL);
        if (value && strcmp(value, unknown[i].value))
            return net_fail(&d->net, "%s=%s is not supported", unknown[i].key,
                            value);
    }
    return true;
}

const DarkOp *dark_find_op(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}
