/* tensor.c - TensorProtos to constants; see tensor.h. */
#include "frontends/onnx/tensor.h"

#include "base/half.h"
#include "frontends/frontend.h"
#include "frontends/proto/wire.h"

#include <math.h>
#include <string.h>

/* Field numbers of TensorProto, and of its entries of external data. */
enum {
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_SEGMENT = 3,
    TENSOR_FLOATS = 4,
    TENSOR_INT32S = 5,
    TENSOR_STRINGS = 6,
    TENSOR_INT64S = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_DOUBLES = 10,
    TENSOR_UINT64S = 11,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14,
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2
};

/* ---- element types ---- */

#define LOAD(name, T, value_of)                                                \
    static double load_##name(const uint8_t *at) {                             \
        T v;                                                                   \
        memcpy(&v, at, sizeof v);                                              \
        return (double)(value_of);                                             \
    }
LOAD(f32, float, v)
LOAD(f64, double, v)
LOAD(u8, uint8_t, v)
LOAD(i8, int8_t, v)
LOAD(u16, uint16_t, v)
LOAD(i16, int16_t, v)
LOAD(i32, int32_t, v)
LOAD(u32, uint32_t, v)
LOAD(i64, int64_t, v)
LOAD(u64, uint64_t, v)
LOAD(bool, uint8_t, v != 0)
LOAD(f16, uint16_t, float_from_half(v))
LOAD(bf16, uint16_t, float_from_brain(v))
#undef LOAD

#define CONVERTED CONST_KINDS
/* Where elements are that do not stand in raw_data. */
typedef struct Element {
    const char *name;
    uint32_t bytes;
    double (*load)(const uint8_t *at); /* NULL: no number */
    uint32_t field;
    ConstKind kind; /* as which it stays in the file; CONVERTED: none */
} Element;

static const Element elements[ONNX_TYPES] = {
    [0] = {"undefined", 0, NULL, 0, CONVERTED},
    [ONNX_FLOAT] = {"float", 4, load_f32, TENSOR_FLOATS, CONST_F32},
    [ONNX_UINT8] = {"uint8", 1, load_u8, TENSOR_INT32S, CONST_U8},
    [ONNX_INT8] = {"int8", 1, load_i8, TENSOR_INT32S, CONST_I8},
    [ONNX_UINT16] = {"uint16", 2, load_u16, TENSOR_INT32S, CONVERTED},
    [ONNX_INT16] = {"int16", 2, load_i16, TENSOR_INT32S, CONVERTED},
    [ONNX_INT32] = {"int32", 4, load_i32, TENSOR_INT32S, CONVERTED},
    [ONNX_INT64] = {"int64", 8, load_i64, TENSOR_INT64S, CONVERTED},
    [ONNX_STRING] = {"string", 0, NULL, 0, CONVERTED},
    [ONNX_BOOL] = {"bool", 1, load_bool, TENSOR_INT32S, CONVERTED},
    [ONNX_FLOAT16] = {"float16", 2, load_f16, TENSOR_INT32S, CONST_F16},
    [ONNX_DOUBLE] = {"double", 8, load_f64, TENSOR_DOUBLES, CONST_F64},
    [ONNX_UINT32] = {"uint32", 4, load_u32, TENSOR_UINT64S, CONVERTED},
    [ONNX_UINT64] = {"uint64", 8, load_u64, TENSOR_UINT64S, CONVERTED},
    [ONNX_COMPLEX64] = {"complex64", 0, NULL, 0, CONVERTED},
    [ONNX_COMPLEX128] = {"complex128", 0, NULL, 0, CONVERTED},
    [ONNX_BFLOAT16] = {"bfloat16", 2, load_bf16, TENSOR_INT32S, CONST_BF16},
};

const char *onnx_type_name(Arena *arena, int64_t type) {
    if (type > 0 && type < ONNX_TYPES)
        return elements[type].name;
    return arena_printf(arena, "type %lld", (long long)type);
}

bool onnx_is_number(int64_t type) {
    return type > 0 && type < ONNX_TYPES && elements[type].load;
}

bool onnx_is_whole(OnnxType type) {
    return type != ONNX_FLOAT && type != ONNX_DOUBLE && type != ONNX_FLOAT16 &&
           type != ONNX_BFLOAT16;
}

/* ---- what both forms of a TensorProto give ---- */

typedef struct Parts {
    Arena *arena;
    Diag *diag;
    Loc loc;
    const char *name, *dir;
    int64_t type;
    Shape shape;
    bool too_large, damaged, segment;
    bool has_raw, external;
    Bytes raw;
    uint64_t n_scalars;   /* of all typed fields */
    const Bytes *packed;  /* the only packed occurrence of float_data... */
    Bytes packed_bytes;   /* ...which it is */
    const double *scalar; /* text: all values */
    Bytes message;        /* binary */
    const char *location; /* external data */
    uint64_t offset, length;
} Parts;

static bool fail(const Parts *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(const Parts *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *what = arena_vprintf(p->arena, format, args);
    va_end(args);
    diag_error(p->diag, p->loc, "tensor \"%s\": %s", p->name, what);
    return false;
}

static void add_dim(Parts *p, int64_t dim) {
    if (dim < 0 || dim > INT32_MAX || p->shape.rank == SHAPE_MAX_RANK)
        p->too_large = true;
    else
        p->shape.dim[p->shape.rank++] = (uint32_t)dim;
}

static bool parse_u64(const char *text, uint64_t *out) {
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (value > UINT64_MAX / 16)
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *out = value;
    return !*text;
}

static void add_entry(Parts *p, const char *key, const char *value) {
    if (!strcmp(key, "location"))
        p->location = value;
    else if (!strcmp(key, "offset"))
        p->damaged |= !parse_u64(value, &p->offset);
    else if (!strcmp(key, "length"))
        p->damaged |= !parse_u64(value, &p->length);
}

/* ---- binary ---- */

static const char *string_of(Arena *arena, const WireField *f) {
    return arena_strndup(arena, (const char *)f->bytes.at, f->bytes.len);
}

static void read_entry(Parts *p, WireReader reader) {
    const char *key = "", *value = "";
    for (WireField f; wire_next(&reader, &f);) {
        if (f.type == WIRE_BYTES && f.number == ENTRY_KEY)
            key = string_of(p->arena, &f);
        if (f.type == WIRE_BYTES && f.number == ENTRY_VALUE)
            value = string_of(p->arena, &f);
    }
    p->damaged |= reader.error != NULL;
    add_entry(p, key, value);
}

static WireType wire_type_of(uint32_t field) {
    return field == TENSOR_FLOATS    ? WIRE_FIXED32
           : field == TENSOR_DOUBLES ? WIRE_FIXED64
                                     : WIRE_VARINT;
}

static void read_dims(Parts *p, const WireField *f) {
    WireScalars dims = wire_scalars(f, WIRE_VARINT);
    for (uint64_t dim; wire_scalar(&dims, &dim);)
        add_dim(p, (int64_t)dim);
    p->damaged |= dims.reader.error != NULL;
}

static void read_typed(Parts *p, const WireField *f) {
    uint64_t n;
    if (!wire_count(f, wire_type_of(f->number), &n)) {
        p->damaged = true;
        return;
    }
    p->packed = p->n_scalars || f->type != WIRE_BYTES ? NULL : &p->packed_bytes;
    p->packed_bytes = f->bytes;
    p->n_scalars += n;
}

static void read_field(Parts *p, const WireReader *reader, const WireField *f) {
    switch (f->number) {
    case TENSOR_DIMS:
        read_dims(p, f);
        break;
    case TENSOR_TYPE:
        p->type = (int64_t)f->value;
        break;
    case TENSOR_SEGMENT:
        p->segment = true;
        break;
    case TENSOR_NAME:
        if (f->type == WIRE_BYTES)
            p->name = string_of(p->arena, f);
        break;
    case TENSOR_RAW:
        p->has_raw = f->type == WIRE_BYTES;
        p->raw = f->bytes;
        break;
    case TENSOR_EXTERNAL:
        if (f->type == WIRE_BYTES)
            read_entry(p, wire_enter(reader, f));
        break;
    case TENSOR_LOCATION:
        p->external = f->value == 1;
        break;
    case TENSOR_FLOATS:
    case TENSOR_INT32S:
    case TENSOR_INT64S:
    case TENSOR_DOUBLES:
    case TENSOR_UINT64S:
        read_typed(p, f);
        break;
    default:
        break;
    }
}

static void read_binary(Parts *p) {
    WireReader reader = wire_open(p->message);
    for (WireField f; wire_next(&reader, &f);)
        read_field(p, &reader, &f);
    p->damaged |= reader.error != NULL;
}

/* A scalar of a typed field as a number of the tensor's type. */
static double typed_value(OnnxType type, uint64_t bits) {
    uint8_t bytes[8];
    if (type == ONNX_FLOAT)
        return (double)wire_float(bits);
    if (type == ONNX_DOUBLE)
        return wire_double(bits);
    memcpy(bytes, &bits, sizeof bits);
    return elements[type].load(bytes);
}

static const double *binary_scalars(const Parts *p) {
    double *out = ARENA_ARRAY(p->arena, double, p->n_scalars);
    uint32_t field = elements[p->type].field;
    uint64_t n = 0, bits;
    WireReader reader = wire_open(p->message);
    for (WireField f; wire_next(&reader, &f);) {
        if (f.number != field)
            continue;
        WireScalars values = wire_scalars(&f, wire_type_of(field));
        while (n < p->n_scalars && wire_scalar(&values, &bits))
            out[n++] = typed_value((OnnxType)p->type, bits);
    }
    return out;
}

/* ---- text ---- */

static void read_text_entries(Parts *p, const ProtoMessage *message) {
    const ProtoField *f = NULL;
    while ((f = proto_next(message, "external_data", f))) {
        const char *key = "", *value = "";
        proto_str(p->diag, f->message, "key", &key);
        proto_str(p->diag, f->message, "value", &value);
        add_entry(p, key, value);
    }
}

static void read_text_scalars(Parts *p, const ProtoMessage *message) {
    static const char *const names[] = {
        "float_data", "int32_data", "int64_data", "double_data", "uint64_data"};
    double *out = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t n = proto_count(message, names[i]);
        if (!n)
            continue;
        p->n_scalars = n;
        out = ARENA_ARRAY(p->arena, double, n);
        uint32_t k = 0;
        for (const ProtoField *f = NULL;
             (f = proto_next(message, names[i], f));)
            p->damaged |= !proto_get_f64(p->diag, f, &out[k++]);
    }
    bool halves = p->type == ONNX_FLOAT16 || p->type == ONNX_BFLOAT16;
    for (uint64_t i = 0; halves && i < p->n_scalars; i++)
        out[i] =
            typed_value((OnnxType)p->type, (uint64_t)fmod(fabs(out[i]), 65536));
    p->scalar = out;
}

static void read_text(Parts *p, const ProtoMessage *message) {
    uint32_t location = 0;
    static const char *const locations[] = {"DEFAULT", "EXTERNAL", NULL};
    const ProtoField *f = NULL;
    while ((f = proto_next(message, "dims", f))) {
        int64_t dim = -1;
        proto_get_i64(p->diag, f, &dim);
        add_dim(p, dim);
    }
    proto_str(p->diag, message, "name", &p->name);
    proto_i64(p->diag, message, "data_type", &p->type);
    proto_enum(p->diag, message, "data_location", locations, &location);
    p->external = location == 1;
    const ProtoField *raw = proto_last(message, "raw_data");
    if (raw && raw->kind == PROTO_STRING) {
        p->has_raw = true;
        p->raw = (Bytes){(const uint8_t *)raw->text, raw->len};
    }
    read_text_entries(p, message);
    read_text_scalars(p, message);
}

/* ---- external data ---- */

static bool read_external(Parts *p) {
    Bytes file;
    if (!p->location || !p->dir)
        return fail(p, "its data lies in another file, which it does not name");
    const char *path = file_inside(p->arena, p->dir, p->location);
    if (!path)
        return fail(p, "its data lies outside the model's folder: %.200s",
                    p->location);
    if (!file_read(p->arena, p->diag, path, &file))
        return fail(p, "its data is in %s", path);
    uint64_t length = p->length ? p->length : UINT64_MAX;
    if (p->offset > file.len)
        length = 0;
    else if (!p->length || length > file.len - p->offset)
        length = p->length ? 0 : file.len - p->offset;
    if (p->length && !length)
        return fail(p, "its data ends behind the end of %s", path);
    p->has_raw = true;
    p->raw = (Bytes){file.at + p->offset, (size_t)length};
    return true;
}

/* ---- to a constant ---- */

static bool from_raw(const Parts *p, uint64_t count, Const *out) {
    const Element *e = &elements[p->type];
    if (p->raw.len / e->bytes < count || p->raw.len % e->bytes ||
        (!p->external && p->raw.len / e->bytes != count))
        return fail(p, "%zu bytes for %llu elements of %s", p->raw.len,
                    (unsigned long long)count, e->name);
    if (e->kind != CONVERTED) {
        out->kind = e->kind;
        out->data = p->raw.at;
        return true;
    }
    double *value = ARENA_ARRAY(p->arena, double, count);
    for (uint64_t i = 0; i < count; i++)
        value[i] = e->load(p->raw.at + i * e->bytes);
    out->kind = CONST_F64;
    out->data = value;
    return true;
}

static bool from_scalars(const Parts *p, uint64_t count, Const *out) {
    if (p->n_scalars != count)
        return fail(p, "%llu values for a shape of %s",
                    (unsigned long long)p->n_scalars,
                    shape_text(p->arena, &p->shape));
    if (p->packed && p->type == ONNX_FLOAT) {
        out->kind = CONST_F32;
        out->data = p->packed_bytes.at;
        return true;
    }
    out->kind = CONST_F64;
    out->data = p->message.at ? binary_scalars(p) : p->scalar;
    return true;
}

static bool to_constant(Parts *p, OnnxTensor *out) {
    if (p->damaged)
        return fail(p, "is damaged");
    if (!onnx_is_number(p->type))
        return fail(p, "its elements are of %s, which is not read",
                    onnx_type_name(p->arena, p->type));
    if (p->segment)
        return fail(p, "is in segments, which are not read");
    uint64_t count = shape_count(&p->shape);
    if (p->too_large || count >= SHAPE_MAX_COUNT)
        return fail(p, "is too large, or has more than %d dimensions",
                    SHAPE_MAX_RANK);
    if (p->external && !read_external(p))
        return false;
    *out = (OnnxTensor){.name = p->name, .type = (OnnxType)p->type};
    out->value.shape = p->shape;
    return p->has_raw ? from_raw(p, count, &out->value)
                      : from_scalars(p, count, &out->value);
}

bool onnx_tensor_read(Arena *arena, Diag *diag, const ProtoField *field,
                      const char *dir, OnnxTensor *out) {
    Parts p = {.arena = arena,
               .diag = diag,
               .loc = field->loc,
               .name = "",
               .dir = dir};
    if (field->kind == PROTO_MESSAGE) {
        proto_use_all(field->message);
        read_text(&p, field->message);
    } else {
        p.message = (Bytes){(const uint8_t *)field->text, field->len};
        read_binary(&p);
    }
    return to_constant(&p, out);
}

/* ---- files ---- */

bool tensor_file_read(Arena *arena, Diag *diag, const char *path, Npy *out) {
    Bytes file;
    OnnxTensor tensor;
    if (!file_read(arena, diag, path, &file))
        return false;
    if (file.len >= 6 && !memcmp(file.at, "\x93NUMPY", 6))
        return npy_read(arena, diag, path, out);
    size_t len = strlen(path);
    if (len < 3 || strcmp(path + len - 3, ".pb") != 0)
        return npy_read(arena, diag, path, out); /* which says what is wrong */
    ProtoField field = {.kind = PROTO_STRING,
                        .loc = {path, 0, 0},
                        .text = (const char *)file.at,
                        .len = file.len};
    if (!onnx_tensor_read(arena, diag, &field, file_dir(arena, path), &tensor))
        return false;
    *out = (Npy){.rank = tensor.value.shape.rank,
                 .kind = onnx_is_whole(tensor.type) ? "<i4" : NULL,
                 .count = shape_count(&tensor.value.shape)};
    for (uint32_t i = 0; i < out->rank; i++)
        out->dim[i] = tensor.value.shape.dim[i];
    out->data = ARENA_ARRAY(arena, float, out->count);
    const_read(&tensor.value, out->data);
    return true;
}
