/* parts.c - parts of tensors, and tensors with something around them; see
 * net.h. */
#include "frontends/net/net.h"

static const Shape *shape_of(const Net *net, TensorId tensor) {
    return &graph_tensor(net->g, tensor)->shape;
}

/* ---- windows ---- */

TensorId net_window(Net *net, TensorId in, const int64_t *begin,
                    const int64_t *end) {
    uint32_t axis;
    if (in.i == NONE)
        return in;
    Shape shape = net_shape(net, in);
    bool any = false;
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (begin[i] < 0 || begin[i] >= end[i] || end[i] > shape.dim[i])
            return net_none(net, "[%lld, %lld) is outside axis %u of %u",
                            (long long)begin[i], (long long)end[i], i,
                            shape.dim[i]);
        if (begin[i] == 0 && end[i] == shape.dim[i])
            continue;
        if (!net_axis(net, in, i, &axis))
            return NO_TENSOR;
        in = net_slice(net, any ? "part" : NULL, in, axis, (uint32_t)begin[i],
                       (uint32_t)end[i]);
        any = true;
        if (in.i == NONE)
            return in;
    }
    return any ? in : net_identity(net, in);
}

/* Python's rules for a slice of an axis. */
bool net_cut_range(const Net *net, const Cut *cut, uint32_t size,
                   int64_t *first, uint32_t *n) {
    int64_t step = cut->one ? 1 : cut->step, low = step < 0 ? -1 : 0;
    int64_t high = step < 0 ? (int64_t)size - 1 : size;
    int64_t begin = cut->begin + (cut->begin < 0 ? size : 0);
    int64_t end = cut->end + (cut->end < 0 ? size : 0);
    if (!step)
        return net_fail(net, "has a step of 0");
    begin = begin < low ? low : begin > high ? high : begin;
    end = end < low ? low : end > high ? high : end;
    if (cut->from_edge)
        begin = step < 0 ? high : 0;
    if (cut->to_edge)
        end = step < 0 ? low : high;
    if (cut->one)
        end = begin + 1;
    int64_t many = (end - begin + step - (step < 0 ? -1 : 1)) / step;
    if (many < 1 || begin < 0 || begin >= size)
        return net_fail(net, "takes nothing of an axis of %u", size);
    *first = begin;
    *n = (uint32_t)many;
    return true;
}

static TensorId take_steps(Net *net, const char *part, TensorId in,
                           uint32_t axis, int64_t first, int64_t step,
                           uint32_t n) {
    float *index = ARENA_ARRAY(net->arena, float, n);
    for (uint32_t i = 0; i < n; i++)
        index[i] = (float)(first + i * step);
    return net_gather(net, part, in, axis, (Shape){2, {n, 1}}, index, NULL);
}

/* Axes in steps of 1 as windows, then the others element by element. */
TensorId net_cut(Net *net, TensorId in, const Cut *cut) {
    int64_t begin[SHAPE_MAX_RANK] = {0}, end[SHAPE_MAX_RANK] = {0}, first;
    uint32_t n[SHAPE_MAX_RANK], gone = 0, steps = 0, at;
    if (in.i == NONE)
        return in;
    Shape shape = net_shape(net, in);
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (!net_cut_range(net, &cut[i], shape.dim[i], &first, &n[i]))
            return NO_TENSOR;
        bool whole = cut[i].one || cut[i].step == 1;
        begin[i] = whole ? first : 0;
        end[i] = whole ? first + n[i] : shape.dim[i];
        gone |= (uint32_t)cut[i].one << i;
        steps |= (uint32_t)!whole << i;
    }
    TensorId out = net_window(net, in, begin, end);
    for (uint32_t i = 0; i < shape.rank && out.i != NONE; i++) {
        if (!(steps >> i & 1) || !net_axis(net, out, i, &at))
            continue;
        net_cut_range(net, &cut[i], shape.dim[i], &first, &n[i]);
        out = take_steps(net, arena_printf(net->arena, "steps%u", i), out, at,
                         first, cut[i].step, n[i]);
    }
    return gone ? net_squeeze(net, out, gone) : out;
}

/* ---- side by side ---- */

void net_split(Net *net, TensorId in, int64_t axis, uint32_t n, int64_t *size,
               TensorId *out) {
    uint32_t at, begin = 0;
    int64_t told = 0, open = -1;
    for (uint32_t i = 0; i < n; i++)
        out[i] = NO_TENSOR;
    if (in.i == NONE || !net_axis(net, in, axis, &at))
        return;
    int64_t whole = shape_of(net, in)->dim[at];
    for (uint32_t i = 0; size && i < n; i++) {
        open = size[i] < 0 ? i : open;
        told += size[i] > 0 && size[i] <= whole ? size[i] : 0;
    }
    if (open >= 0)
        size[open] = whole - told;
    if ((!size && whole % n) || (size && open < 0 && told != whole)) {
        net_fail(net, "cannot split %lld into its %u parts", (long long)whole,
                 n);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t part = (uint32_t)(size ? size[i] : whole / n);
        out[i] = net_slice(net, arena_printf(net->arena, "%u", i), in, at,
                           begin, begin + part);
        begin += part;
    }
}

/* With a 1 at `axis` of the file, or without. */
static TensorId change_axis(Net *net, const char *part, TensorId in,
                            uint32_t axis, bool more) {
    if (in.i == NONE)
        return in;
    Shape from = net_shape(net, in), to = {0};
    for (uint32_t i = 0; i < from.rank + more; i++) {
        if (more && i == axis)
            to.dim[to.rank++] = 1;
        else if (more || i != axis)
            to.dim[to.rank++] = from.dim[i - (more && i > axis)];
    }
    return net_reshape(net, part, in, to);
}

TensorId net_stack(Net *net, uint32_t n, const TensorId *in, int64_t axis) {
    TensorId *wide = ARENA_ARRAY(net->arena, TensorId, n);
    if (!n || in[0].i == NONE)
        return NO_TENSOR;
    int64_t rank = shape_of(net, in[0])->rank + 1;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || rank > SHAPE_MAX_RANK)
        return net_none(net, "its axis is outside its inputs");
    for (uint32_t i = 0; i < n; i++)
        wide[i] = change_axis(net, arena_printf(net->arena, "axis%u", i), in[i],
                              (uint32_t)axis, true);
    return net_concat(net, n, wide, axis);
}

void net_unstack(Net *net, TensorId in, int64_t axis, uint32_t n,
                 TensorId *out) {
    for (uint32_t i = 0; i < n; i++)
        out[i] = NO_TENSOR;
    if (in.i == NONE)
        return;
    int64_t rank = shape_of(net, in)->rank;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || rank < 2 ||
        net_shape(net, in).dim[axis] != n) {
        net_fail(net, "its axis has another size");
        return;
    }
    net_split(net, in, axis, n, NULL, out);
    for (uint32_t i = 0; i < n; i++)
        out[i] = change_axis(net, arena_printf(net->arena, "%u/flat", i),
                             out[i], (uint32_t)axis, false);
}

/* ---- elements along an axis, and around it ---- */

TensorId net_gather(Net *net, const char *part, TensorId in, uint32_t axis,
                    Shape shape, const float *index, const float *factor) {
    NodeId id = net_node(net, OP_GATHER, part, 1, &in);
    if (id.i == NONE)
        return NO_TENSOR;
    Node *node = graph_node(net->g, id);
    node->attr.gather.axis = axis;
    node->attr.gather.n = shape.dim[0];
    node->attr.gather.taps = shape.dim[1];
    net_const(net, id, CONST_INDEX,
              &(Const){.shape = shape, .kind = CONST_F32, .data = index});
    if (factor)
        net_const(net, id, CONST_VALUE,
                  &(Const){.shape = shape, .kind = CONST_F32, .data = factor});
    else
        net_fill(net, id, CONST_VALUE, 1);
    return net_out(net, id);
}

/* Which element of `size` the padded axis shows at `i`. */
static int64_t padded_index(PadWay way, int64_t i, int64_t size) {
    int64_t period = way == PAD_SYMMETRIC ? 2 * size : 2 * (size - 1);
    if (way == PAD_EDGE || way == PAD_ZERO || !period)
        return i < 0 ? 0 : i >= size ? size - 1 : i;
    i = (i % period + period) % period;
    return i < size ? i : period - i - (way == PAD_SYMMETRIC);
}

static TensorId pad_axis(Net *net, const char *part, TensorId in, uint32_t axis,
                         PadWay way, uint32_t before, uint32_t behind) {
    if (in.i == NONE || !(before || behind))
        return in;
    int64_t size = shape_of(net, in)->dim[axis];
    if (before > 1 << 15 || behind > 1 << 15)
        return net_none(net, "pads of %u and %u are too many", before, behind);
    uint32_t n = (uint32_t)size + before + behind;
    float *index = ARENA_ARRAY(net->arena, float, n);
    float *factor = ARENA_ARRAY(net->arena, float, n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t at = (int64_t)i - before;
        index[i] = (float)padded_index(way, at, size);
        factor[i] = way != PAD_ZERO || (at >= 0 && at < size);
    }
    return net_gather(net, part, in, axis, (Shape){2, {n, 1}}, index, factor);
}

/* Axis by axis. */
static TensorId pad_axes(Net *net, TensorId in, const int64_t *amount,
                         PadWay way) {
    uint32_t rank = shape_of(net, in)->rank, at;
    TensorId out = in;
    for (uint32_t i = 0; i < rank && out.i != NONE; i++) {
        const char *part = arena_printf(net->arena, "axis%u", i);
        if (!net_axis(net, out, i, &at))
            return NO_TENSOR;
        out = pad_axis(net, part, out, at, way, (uint32_t)amount[2 * i],
                       (uint32_t)amount[2 * i + 1]);
    }
    return out.i == in.i ? net_identity(net, in) : out;
}

/* Around height and width alone: an operator that machines know. */
static bool pads_image(const Net *net, const Shape *shape,
                       const int64_t *amount) {
    uint32_t channel = net->nhwc ? 6 : 2;
    return shape->rank == 4 && !amount[0] && !amount[1] && !amount[channel] &&
           !amount[channel + 1];
}

TensorId net_pads(Net *net, TensorId in, uint32_t n, const int64_t *amount,
                  PadWay way, double value) {
    uint32_t first = net->nhwc ? 2 : 4, before[2], behind[2];
    if (in.i == NONE)
        return in;
    Shape shape = net_shape(net, in);
    bool good = n == 2 * shape.rank;
    for (uint32_t i = 0; i < n; i++)
        good &= amount[i] >= 0 && amount[i] <= 1 << 15;
    if (!good)
        return net_none(net, "its paddings do not go with %s",
                        shape_text(net->arena, &shape));
    if (way == PAD_ZERO && pads_image(net, &shape, amount)) {
        for (uint32_t i = 0; i < 2; i++) {
            before[i] = (uint32_t)amount[first + 2 * i];
            behind[i] = (uint32_t)amount[first + 2 * i + 1];
        }
        return net_pad(net, in, before, behind, value);
    }
    if (way == PAD_ZERO && (value < 0 || value > 0))
        return net_none(net, "pads other axes than height and width, and not "
                             "with 0");
    return pad_axes(net, in, amount, way);
}

/* ---- blocks of pixels as images of a batch ---- */

static TensorId through(Net *net, TensorId in, Shape apart, Shape perm,
                        Shape out) {
    bool nhwc = net->nhwc;
    net->nhwc = false; /* shapes below are the graph's */
    TensorId t = net_reshape(net, "apart", in, apart);
    t = net_transpose(net, "turn", t, perm);
    t = net_reshape(net, "together", t, out);
    net->nhwc = nhwc;
    return t;
}

static bool right_blocks(const Net *net, const Shape *s,
                         const int64_t block[2]) {
    return (s->rank == 4 && block[0] > 0 && block[1] > 0 && block[0] < 1024 &&
            block[1] < 1024) ||
           net_fail(net, "blocks do not fit its input");
}

TensorId net_space_to_batch(Net *net, TensorId in, const int64_t block[2],
                            const int64_t pad[4]) {
    int64_t amount[8] = {0};
    if (in.i == NONE || !right_blocks(net, shape_of(net, in), block))
        return NO_TENSOR;
    for (int i = 0; i < 4; i++)
        amount[(net->nhwc ? 2 : 4) + i] = pad[i];
    const char *layer = net->layer;
    net->layer = arena_printf(net->arena, "%s/pad", layer);
    in = net_pads(net, in, 8, amount, PAD_ZERO, 0);
    net->layer = layer;
    if (in.i == NONE)
        return in;
    Shape s = *shape_of(net, in);
    uint32_t a = (uint32_t)block[0], b = (uint32_t)block[1];
    uint32_t h = s.dim[2] / a, w = s.dim[3] / b;
    if (s.dim[2] % a || s.dim[3] % b)
        return net_none(net, "blocks do not fit its input");
    return through(net, in, (Shape){6, {s.dim[0], s.dim[1], h, a, w, b}},
                   (Shape){6, {3, 5, 0, 1, 2, 4}},
                   shape_nchw(a * b * s.dim[0], s.dim[1], h, w));
}

TensorId net_batch_to_space(Net *net, TensorId in, const int64_t block[2],
                            const int64_t crop[4]) {
    Cut cut[4] = {{0}};
    if (in.i == NONE || !right_blocks(net, shape_of(net, in), block))
        return NO_TENSOR;
    Shape s = *shape_of(net, in);
    uint32_t a = (uint32_t)block[0], b = (uint32_t)block[1];
    uint32_t n = s.dim[0] / (a * b), h = s.dim[2], w = s.dim[3];
    if (s.dim[0] % (a * b))
        return net_none(net, "blocks do not fit its input");
    TensorId out = through(net, in, (Shape){6, {a, b, n, s.dim[1], h, w}},
                           (Shape){6, {2, 3, 4, 0, 5, 1}},
                           shape_nchw(n, s.dim[1], h * a, w * b));
    for (int i = 0; i < 4; i++) {
        int axis = i - (net->nhwc ? 1 : 2);
        bool image = axis == 0 || axis == 1;
        int64_t size = axis == 0 ? (int64_t)h * a : (int64_t)w * b;
        cut[i] = (Cut){.step = 1, .to_edge = true};
        if (image)
            cut[i] = (Cut){.begin = crop[2 * axis],
                           .end = size - crop[2 * axis + 1],
                           .step = 1};
    }
    return net_cut(net, out, cut);
}
