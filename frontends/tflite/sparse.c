/* sparse.c - constants of which the file has only some elements.
 *
 * In: the axes in the order in which elements lie, those of blocks behind those
 * of the tensor; of each how long it is, or, as in compressed rows, where the
 * elements of each of its lines begin and which they are. Out: all elements,
 * zeros among them.
 */
#include "frontends/tflite/tflite.h"

#include <string.h>

enum { TENSOR_SPARSITY = 6 };
enum { SPARSITY_ORDER, SPARSITY_BLOCKS, SPARSITY_AXES };
enum { AXIS_FORMAT, AXIS_SIZE, AXIS_SEGMENTS = 3, AXIS_INDICES = 5 };
enum { MOST_AXES = 2 * SHAPE_MAX_RANK };

/* Whole numbers of 4, 2 or 1 bytes. */
typedef struct Numbers {
    FlatVector at;
    uint32_t size;
} Numbers;

typedef struct Axis {
    uint32_t axis, factor; /* of the tensor: how far one step goes along it */
    bool sparse;
    uint32_t size;
    Numbers segment, index;
} Axis;

typedef struct Sparse {
    Tfl *t;
    const TflTensor *tensor;
    uint32_t n, size;
    Axis axis[MOST_AXES];
    uint8_t *out;
    uint64_t stride[SHAPE_MAX_RANK];
    uint64_t taken; /* elements of the file */
    bool bad;
} Sparse;

static Numbers numbers(Flat *flat, uint32_t table, uint32_t field) {
    static const uint32_t size[] = {4, 4, 2, 1};
    uint8_t type = flat_u8(flat, table, field - 1, 0);
    Numbers n = {.size = size[type < 4 ? type : 0]};
    n.at = flat_vector(flat, flat_table(flat, table, field), 0, n.size);
    return n;
}

static uint32_t number(Sparse *s, const Numbers *n, uint64_t i) {
    uint32_t out = 0;
    if (i >= n->at.n) {
        s->bad = true;
        return 0;
    }
    const uint8_t *at = s->t->flat.at + n->at.at + i * n->size;
    for (uint32_t k = 0; k < n->size; k++)
        out |= (uint32_t)at[k] << (8 * k);
    return out;
}

static void step(Sparse *s, uint32_t level, uint64_t line, uint64_t at);

static void element(Sparse *s, uint64_t at) {
    bool fits = at < shape_count(&s->tensor->shape) &&
                (s->taken + 1) * s->size <= s->tensor->data.len;
    if (fits)
        memcpy(s->out + at * s->size, s->tensor->data.at + s->taken * s->size,
               s->size);
    s->taken++;
    s->bad |= !fits;
}

/* Index `i` along the axis; its elements lie as line `line` of the next. */
static void along(Sparse *s, uint32_t level, uint32_t i, uint64_t line,
                  uint64_t at) {
    const Axis *a = &s->axis[level];
    step(s, level + 1, line, at + (uint64_t)i * a->factor * s->stride[a->axis]);
}

static void step(Sparse *s, uint32_t level, uint64_t line, uint64_t at) {
    if (level == s->n) {
        element(s, at);
        return;
    }
    const Axis *a = &s->axis[level];
    uint64_t from = line * a->size, to = from + a->size;
    if (a->sparse) {
        from = number(s, &a->segment, line);
        to = number(s, &a->segment, line + 1);
    }
    for (uint64_t k = from; k < to && !s->bad; k++)
        along(s, level,
              a->sparse ? number(s, &a->index, k) : (uint32_t)(k - from), k,
              at);
}

/* Axes in the order in which elements lie. */
static bool read_axes(Sparse *s, uint32_t table) {
    Flat *flat = &s->t->flat;
    FlatVector order = flat_vector(flat, table, SPARSITY_ORDER, 4);
    FlatVector blocks = flat_vector(flat, table, SPARSITY_BLOCKS, 4);
    FlatVector axes = flat_vector(flat, table, SPARSITY_AXES, 4);
    uint32_t rank = s->tensor->shape.rank, block[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < SHAPE_MAX_RANK; i++)
        block[i] = 1;
    s->n = order.n;
    if (s->n != axes.n || s->n > MOST_AXES || s->n != rank + blocks.n)
        return false;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t of = (uint32_t)flat_at_i32(flat, order, i);
        uint32_t one = flat_element(flat, axes, i);
        bool inner = of >= rank && of < s->n;
        uint32_t axis =
            inner ? (uint32_t)flat_at_i32(flat, blocks, of - rank) : of;
        if (axis >= rank)
            return false;
        Axis *a = &s->axis[i];
        *a = (Axis){.axis = axis,
                    .factor = inner ? 1 : 0,
                    .sparse = flat_u8(flat, one, AXIS_FORMAT, 0) != 0,
                    .size = (uint32_t)flat_i32(flat, one, AXIS_SIZE, 0),
                    .segment = numbers(flat, one, AXIS_SEGMENTS),
                    .index = numbers(flat, one, AXIS_INDICES)};
        if (inner)
            block[axis] = a->size;
    }
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->axis[i].factor)
            s->axis[i].factor = block[s->axis[i].axis];
    return !flat->bad;
}

bool tfl_fill_in(Tfl *t, TflTensor *tensor, uint32_t size) {
    uint32_t table = flat_table(&t->flat, tensor->table, TENSOR_SPARSITY);
    Sparse s = {.t = t, .tensor = tensor, .size = size};
    uint64_t n = shape_count(&tensor->shape), stride = 1;
    if (!table || tensor->unpacked)
        return true;
    for (uint32_t i = tensor->shape.rank; i-- > 0;) {
        s.stride[i] = stride;
        stride *= tensor->shape.dim[i];
    }
    bool good = n < 64 * (uint64_t)t->flat.len && read_axes(&s, table);
    if (good) {
        s.out = ARENA_ARRAY(t->net.arena, uint8_t, n * size + 1);
        step(&s, 0, 0, 0);
    }
    if (!good || s.bad)
        return net_fail(&t->net,
                        "constant \"%s\": its sparse elements do not "
                        "fit %s",
                        tensor->name, shape_text(t->net.arena, &tensor->shape));
    tensor->data = (Bytes){s.out, n * size};
    tensor->unpacked = true;
    return true;
}
