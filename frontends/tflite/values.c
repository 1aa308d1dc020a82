/* values.c - constants of a TFLite model, and quantisations.
 *
 * In: a tensor, and its quantisation: a scale for all or one for each index of
 * an axis. Out: a Const, as floats or, for weights and biases, as codes that
 * stay in the file. real = scale * (value - zero point), in double.
 */
#include "base/halves.h"
#include "frontends/tflite/tflite.h"

enum { TENSOR_QUANTIZATION = 4 };
enum { QUANT_SCALE = 2, QUANT_ZERO = 3, QUANT_AXIS = 6 };

typedef struct Type {
    uint32_t number, size;
    const char *name;
    bool is_signed;
    ConstKind code;  /* of weights; CONST_KINDS: never codes */
    QuantType quant; /* of activations */
} Type;

static const Type types[] = {
    {0, 4, "float32", true, CONST_KINDS, QUANT_NONE},
    {1, 2, "float16", true, CONST_KINDS, QUANT_NONE},
    {2, 4, "int32", true, CONST_I32, QUANT_NONE},
    {3, 1, "uint8", false, CONST_U8, QUANT_U8},
    {4, 8, "int64", true, CONST_I32, QUANT_NONE},
    {6, 1, "bool", false, CONST_KINDS, QUANT_NONE},
    {7, 2, "int16", true, CONST_I16, QUANT_I16},
    {9, 1, "int8", true, CONST_I8, QUANT_I8},
};

static const Type *find_type(uint32_t number) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

/* ---- quantisations ---- */

typedef struct Scales {
    FlatVector scale, zero;
    uint64_t inner; /* elements for which an index of the axis is the same */
} Scales;

static Scales read_scales(Tfl *t, const TflTensor *tensor) {
    Flat *flat = &t->flat;
    uint32_t table = flat_table(flat, tensor->table, TENSOR_QUANTIZATION);
    uint32_t axis = (uint32_t)flat_i32(flat, table, QUANT_AXIS, 0);
    Scales s = {flat_vector(flat, table, QUANT_SCALE, 4),
                flat_vector(flat, table, QUANT_ZERO, 8), 1};
    for (uint32_t i = axis < SHAPE_MAX_RANK ? axis + 1 : SHAPE_MAX_RANK;
         i < tensor->shape.rank; i++)
        s.inner *= tensor->shape.dim[i];
    return s;
}

static double scale_at(Tfl *t, const Scales *s, uint32_t i) {
    return s->scale.n ? (double)flat_at_f32(&t->flat, s->scale, i) : 1;
}

static int64_t zero_at(Tfl *t, const Scales *s, uint32_t i) {
    return flat_at_i64(&t->flat, s->zero, i < s->zero.n ? i : 0);
}

Quant tfl_quant(Tfl *t, const TflTensor *tensor) {
    const Type *type = find_type(tensor->type);
    Scales s = read_scales(t, tensor);
    int64_t zero = zero_at(t, &s, 0);
    if (!type || type->quant == QUANT_NONE || s.scale.n != 1 ||
        zero != (int32_t)zero)
        return (Quant){0};
    Quant q = {type->quant, (int32_t)zero, scale_at(t, &s, 0), QUANT_UP};
    return quant_sound(&q) ? q : (Quant){0};
}

/* ---- values ---- */

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
    Scales s = read_scales(t, tensor);
    uint64_t n = shape_count(&tensor->shape);
    float *out = ARENA_ARRAY(t->net.arena, float, n);
    for (uint64_t i = 0; i < n; i++) {
        int64_t value = integer(tensor->data.at + i * type->size, type);
        uint32_t k = s.scale.n > 1 ? (uint32_t)(i / s.inner % s.scale.n) : 0;
        out[i] = (float)(scale_at(t, &s, k) *
                         ((double)value - (double)zero_at(t, &s, k)));
    }
    return out;
}

static bool is_whole(const TflTensor *tensor, const Type *type) {
    uint64_t n = shape_count(&tensor->shape);
    return n < SHAPE_MAX_COUNT && n * type->size <= tensor->data.len;
}

static bool check(Tfl *t, const TflTensor *tensor, const Type *type) {
    if (!type)
        return net_fail(&t->net,
                        "constant \"%s\" has a type of elements that "
                        "is not supported",
                        tensor->name);
    if (!is_whole(tensor, type))
        return net_fail(&t->net, "constant \"%s\" of %s has %zu bytes",
                        tensor->name, shape_text(t->net.arena, &tensor->shape),
                        tensor->data.len);
    return true;
}

bool tfl_values(Tfl *t, TflTensor *tensor) {
    const Type *type = find_type(tensor->type);
    if (tensor->has_value)
        return true;
    if (type && !tfl_fill_in(t, tensor, type->size))
        return false;
    if (!check(t, tensor, type))
        return false;
    tensor->value = (Const){.shape = tensor->shape, .kind = CONST_F32};
    if (type->number == 0)
        tensor->value.data = tensor->data.at;
    else if (type->number == 1)
        tensor->value.data = floats_from_halves(t->net.arena, tensor->data.at,
                                                shape_count(&tensor->shape));
    else
        tensor->value.data = dequantise(t, tensor, type);
    tensor->has_value = true;
    return true;
}

/* ---- codes ---- */

/* All channels have one zero, which is what a Const can say. */
static bool is_coded(Tfl *t, const TflTensor *tensor, const Scales *s) {
    const Type *type = find_type(tensor->type);
    for (uint32_t i = 0; i < s->zero.n; i++)
        if (zero_at(t, s, i) != (int32_t)zero_at(t, s, 0))
            return false;
    return type && type->code != CONST_KINDS && s->scale.n > 0;
}

/* Biases of 64 bits, which layers on 16 bits have, as 32; false if one is too
 * large for that. */
static bool narrow(Tfl *t, const TflTensor *tensor, const void **out) {
    uint64_t n = shape_count(&tensor->shape);
    int32_t *narrowed = ARENA_ARRAY(t->net.arena, int32_t, n);
    for (uint64_t i = 0; i < n; i++) {
        int64_t value =
            integer(tensor->data.at + i * 8, find_type(tensor->type));
        narrowed[i] = (int32_t)value;
        if (narrowed[i] != value)
            return false;
    }
    *out = narrowed;
    return true;
}

bool tfl_coded(Tfl *t, TflTensor *tensor, Const *out) {
    const Type *type = find_type(tensor->type);
    Scales s = read_scales(t, tensor);
    if (!is_coded(t, tensor, &s) || !tfl_fill_in(t, tensor, type->size) ||
        !is_whole(tensor, type))
        return false;
    *out = (Const){.shape = tensor->shape,
                   .kind = type->code,
                   .data = tensor->data.at,
                   .zero = (int32_t)zero_at(t, &s, 0)};
    return type->size != 8 || narrow(t, tensor, &out->data);
}

void tfl_put_scales(Tfl *t, const TflTensor *tensor, uint32_t axis,
                    Const *value) {
    uint32_t n = shape_dim(&value->shape, axis);
    if (!const_has_codes(value, 4))
        return;
    Scales s = read_scales(t, tensor);
    double *factor = ARENA_ARRAY(t->net.arena, double, n);
    for (uint32_t k = 0; k < n; k++)
        factor[k] = scale_at(t, &s, k < s.scale.n ? k : 0);
    *(axis ? &value->mul1 : &value->mul0) = factor;
}
