/* tflite_values.c - constants of a TFLite model as floats.
 *
 * In: a tensor with data, and its quantisation: a scale for all or one for each
 * index of an axis. Out: a Const; floats stay in the file. real = scale *
 * (value - zero point), computed in double and rounded once.
 */
#include "frontends/halves.h"
#include "frontends/tflite.h"

enum { TENSOR_QUANTIZATION = 4 };
enum { QUANT_SCALE = 2, QUANT_ZERO = 3, QUANT_AXIS = 6 };

typedef struct Type {
    uint32_t number, size;
    const char *name;
    bool is_signed;
} Type;

static const Type types[] = {
    {0, 4, "float32", true}, {1, 2, "float16", true}, {2, 4, "int32", true},
    {3, 1, "uint8", false},  {4, 8, "int64", true},   {6, 1, "bool", false},
    {7, 2, "int16", true},   {9, 1, "int8", true},
};

static const Type *find_type(uint32_t number) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

typedef struct Quant {
    FlatVector scale, zero;
    uint64_t inner; /* elements for which an index of the axis is the same */
} Quant;

static Quant read_quant(Tfl *t, const TflTensor *tensor) {
    Flat *flat = &t->flat;
    uint32_t table = flat_table(flat, tensor->table, TENSOR_QUANTIZATION);
    uint32_t axis = (uint32_t)flat_i32(flat, table, QUANT_AXIS, 0);
    Quant q = {flat_vector(flat, table, QUANT_SCALE, 4),
               flat_vector(flat, table, QUANT_ZERO, 8), 1};
    for (uint32_t i = axis < SHAPE_MAX_RANK ? axis + 1 : SHAPE_MAX_RANK;
         i < tensor->shape.rank; i++)
        q.inner *= tensor->shape.dim[i];
    return q;
}

static int64_t integer(const uint8_t *at, const Type *type) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < type->size; i++)
        bits |= (uint64_t)at[i] << (8 * i);
    uint32_t unused = 64 - 8 * type->size;
    return type->is_signed && unused ? (int64_t)(bits << unused) >> unused
                                     : (int64_t)bits;
}

static const float *dequantise(Tfl *t, const TflTensor *tensor,
                               const Type *type) {
    Quant q = read_quant(t, tensor);
    uint64_t n = shape_count(&tensor->shape);
    float *out = ARENA_ARRAY(t->net.arena, float, n);
    for (uint64_t i = 0; i < n; i++) {
        int64_t value = integer(tensor->data.at + i * type->size, type);
        uint32_t k = q.scale.n > 1 ? (uint32_t)(i / q.inner % q.scale.n) : 0;
        double scale =
            q.scale.n ? (double)flat_at_f32(&t->flat, q.scale, k) : 1;
        int64_t zero = flat_at_i64(&t->flat, q.zero, k < q.zero.n ? k : 0);
        out[i] = (float)(scale * ((double)value - (double)zero));
    }
    return out;
}

bool tfl_values(Tfl *t, TflTensor *tensor) {
    const Type *type = find_type(tensor->type);
    uint64_t n = shape_count(&tensor->shape);
    if (tensor->has_value)
        return true;
    if (!type)
        return net_fail(&t->net,
                        "constant \"%s\" has a type of elements that "
                        "is not supported",
                        tensor->name);
    if (n >= SHAPE_MAX_COUNT || n * type->size > tensor->data.len)
        return net_fail(&t->net, "constant \"%s\" of %s has %zu bytes",
                        tensor->name, shape_text(t->net.arena, &tensor->shape),
                        tensor->data.len);
    tensor->value = (Const){.shape = tensor->shape, .kind = CONST_F32};
    if (type->number == 0)
        tensor->value.data = tensor->data.at;
    else if (type->number == 1)
        tensor->value.data =
            floats_from_halves(t->net.arena, tensor->data.at, n);
    else
        tensor->value.data = dequantise(t, tensor, type);
    tensor->has_value = true;
    return true;
}
