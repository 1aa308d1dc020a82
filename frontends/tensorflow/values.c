/* values.c - constants of a GraphDef, variables of a SavedModel, tfjs' files of
 * weights, and plain arithmetic on constants.
 *
 * In: TensorProtos, whose last value stands for all that are not told; values
 * of a bundle; or a manifest of names, shapes and files. Out: a Const for each.
 * Floats of tensor_content and of bundles stay in the file.
 */
#include "base/halves.h"
#include "frontends/tensorflow/tf.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

/* By the number of the type. */
const char *const tf_type_names[] = {
    "DT_INVALID", "DT_FLOAT",   "DT_DOUBLE", "DT_INT32",      "DT_UINT8",
    "DT_INT16",   "DT_INT8",    "DT_STRING", "DT_COMPLEX64",  "DT_INT64",
    "DT_BOOL",    "DT_QINT8",   "DT_QUINT8", "DT_QINT32",     "DT_BFLOAT16",
    "DT_QINT16",  "DT_QUINT16", "DT_UINT16", "DT_COMPLEX128", "DT_HALF",
    NULL};

/* A few bytes may say "a gigabyte of zeros". */
enum { MAX_REPEATED = 1 << 22 };

typedef struct Type {
    uint32_t number, size;
    const char *field; /* where values stand one by one */
    bool is_signed;
} Type;

static const Type types[] = {
    {1, 4, "float_val", true},  {2, 8, "double_val", true},
    {3, 4, "int_val", true},    {4, 1, "int_val", false},
    {5, 2, "int_val", true},    {6, 1, "int_val", true},
    {9, 8, "int64_val", true},  {10, 1, "bool_val", false},
    {19, 2, "half_val", false},
};

static const Type *find_type(uint32_t number) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

/* Whole numbers of `size` bytes as floats. */
static float *widen(Arena *arena, const uint8_t *at, uint64_t n, uint32_t size,
                    bool is_signed) {
    float *out = ARENA_ARRAY(arena, float, n);
    for (uint64_t i = 0; i < n; i++, at += size) {
        uint64_t bits = 0;
        for (uint32_t k = 0; k < size; k++)
            bits |= (uint64_t)at[k] << (8 * k);
        uint32_t unused = 64 - 8 * size;
        int64_t value = is_signed && unused
                            ? (int64_t)(bits << unused) >> unused
                            : (int64_t)bits;
        out[i] = (float)value;
    }
    return out;
}

static Const from_bytes(Arena *arena, Shape shape, const Type *type,
                        const uint8_t *at) {
    uint64_t n = shape_count(&shape);
    Const c = {.shape = shape, .kind = CONST_F32, .data = at};
    if (type->number == 2)
        c.kind = CONST_F64;
    else if (type->number == 19)
        c.data = floats_from_halves(arena, at, n);
    else if (type->number != 1)
        c.data = widen(arena, at, n, type->size, type->is_signed);
    return c;
}

static bool read_one(const Tf *tf, const Type *type, const ProtoField *f,
                     float *out) {
    double number = 0;
    bool yes = false;
    if (type->number == 10) {
        if (!proto_get_bool(tf->net.diag, f, &yes))
            return false;
        *out = yes;
        return true;
    }
    if (!proto_get_f64(tf->net.diag, f, &number))
        return false;
    *out =
        type->number == 19 ? float_from_half((uint16_t)number) : (float)number;
    return true;
}

/* Values one by one; the last is repeated. */
static bool from_list(const Tf *tf, const ProtoMessage *tensor,
                      const Type *type, Const *out) {
    uint64_t n = shape_count(&out->shape), i = 0;
    const ProtoField *f = NULL;
    uint32_t told = proto_count(tensor, type->field);
    if (n > told && n > MAX_REPEATED)
        return net_fail(&tf->net, "%u values are told of %s", told,
                        shape_text(tf->net.arena, &out->shape));
    float *value = ARENA_ARRAY(tf->net.arena, float, n ? n : 1);
    while (i < n && (f = proto_next(tensor, type->field, f)))
        if (!read_one(tf, type, f, &value[i++]))
            return false;
    for (float last = i ? value[i - 1] : 0; i < n; i++)
        value[i] = last;
    out->data = value;
    return true;
}

/* All values as bytes. */
static TensorId read_bytes(Tf *tf, const Type *type, Shape shape, Bytes bytes) {
    uint64_t n = shape_count(&shape);
    if (bytes.len != n * type->size)
        return net_none(&tf->net, "constant of %s has %zu bytes",
                        shape_text(tf->net.arena, &shape), bytes.len);
    return tf_be_const(tf, from_bytes(tf->net.arena, shape, type, bytes.at),
                       true);
}

static TensorId read_tensor(Tf *tf, const ProtoMessage *tensor) {
    uint32_t number = 0;
    proto_enum(tf->net.diag, tensor, "dtype", tf_type_names, &number);
    const Type *type = find_type(number);
    Const c = {.kind = CONST_F32};
    c.shape = tf_shape(
        tf, proto_message(tf->net.arena, tf->net.diag, tensor, "tensor_shape"));
    uint64_t n = shape_count(&c.shape);
    const ProtoField *content = proto_last(tensor, "tensor_content");
    if (!type) /* strings and such matter only where someone reads them */
        return tf_be_const(tf, (Const){.shape = {1, {1}}, .kind = CONST_SEEDED},
                           false);
    if (n >= SHAPE_MAX_COUNT)
        return net_none(&tf->net, "constant of %s is too large",
                        shape_text(tf->net.arena, &c.shape));
    if (content && content->kind == PROTO_STRING && content->len)
        return read_bytes(
            tf, type, c.shape,
            (Bytes){(const uint8_t *)content->text, content->len});
    return from_list(tf, tensor, type, &c) ? tf_be_const(tf, c, true)
                                           : NO_TENSOR;
}

/* Values that are not there: small, and told by the name alone. */
static TensorId seeded(Tf *tf, Shape shape) {
    const double spread = 0.05;
    return tf_be_const(
        tf,
        (Const){.shape = shape,
                .kind = CONST_SEEDED,
                .seed = rng_seed(tf->at->name, tf->net.options->seed),
                .mean = shape.rank ? 0 : 1,
                .spread = spread},
        false);
}

TensorId tf_constant(Tf *tf, int kind) {
    uint32_t i = map_get(tf->weights, tf->at->name, NONE);
    const ProtoMessage *tensor = proto_message(tf->net.arena, tf->net.diag,
                                               tf_attr(tf, "value"), "tensor");
    (void)kind;
    if (i == NONE)
        return tensor ? read_tensor(tf, tensor)
                      : net_none(&tf->net, "has no value");
    const Const *value = &tf->weight.at[i];
    return value->data ? tf_be_const(tf, *value, true)
                       : seeded(tf, value->shape);
}

TensorId tf_variable(Tf *tf, int kind) {
    const char *key = tf->at->key ? tf->at->key : tf->at->name;
    uint32_t errors = diag_errors(tf->net.diag);
    BundleValue value;
    (void)kind;
    if (!tf->bundle || !bundle_find(tf->bundle, key, &value))
        return diag_errors(tf->net.diag) > errors
                   ? NO_TENSOR
                   : net_none(&tf->net,
                              "a variable without values: %s/variables has no "
                              "\"%s\"",
                              file_dir(tf->net.arena, tf->net.path), key);
    const Type *type = find_type(value.type);
    if (!type || shape_count(&value.shape) >= SHAPE_MAX_COUNT)
        return net_none(&tf->net, "a variable of a type or shape that is not "
                                  "supported");
    return read_bytes(tf, type, value.shape, value.bytes);
}

/* ---- tfjs' manifest ---- */

typedef struct Manifest {
    Tf *tf;
    Bytes bytes; /* of one group's files together; at is NULL: missing */
    uint64_t at;
} Manifest;

static bool read_part(Tf *tf, const char *name, Bytes *out) {
    const char *folder = file_dir(tf->net.arena, tf->net.path);
    const char *path = file_inside(tf->net.arena, folder, name);
    if (!path || strchr(name, '/') || !file_exists(path)) {
        diag_warning(tf->net.diag, tf->net.loc,
                     "weights \"%s\" are not beside it; seeded values are used",
                     name);
        return false;
    }
    return file_read(tf->net.arena, tf->net.diag, path, out);
}

/* One file stays where it is; several are joined. */
static Bytes read_files(Tf *tf, const cJSON *paths) {
    Text all = text_new(tf->net.arena);
    Bytes part = {NULL, 0};
    const cJSON *path;
    bool one = cJSON_GetArraySize(paths) == 1, good = true;
    cJSON_ArrayForEach(path, paths) {
        good = good && cJSON_IsString(path) &&
               read_part(tf, path->valuestring, &part);
        if (good && !one)
            text_add_n(&all, (const char *)part.at, part.len);
    }
    if (!good)
        return (Bytes){NULL, 0};
    return one ? part : (Bytes){(const uint8_t *)all.at, all.len};
}

/* What values are stored as: the type itself, or fewer bits with a scale. */
static const Type *stored_type(const cJSON *weight) {
    static const struct {
        const char *name;
        uint32_t number;
    } names[] = {{"float32", 1}, {"int32", 3},  {"bool", 10},
                 {"uint8", 4},   {"uint16", 5}, {"float16", 19}};
    const cJSON *q = cJSON_GetObjectItemCaseSensitive(weight, "quantization");
    const char *is = json_str(q ? q : weight, "dtype", "float32");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, is))
            return find_type(names[i].number);
    return NULL;
}

static void scale_values(const cJSON *weight, Const *c) {
    const cJSON *q = cJSON_GetObjectItemCaseSensitive(weight, "quantization");
    const char *is = json_str(q, "dtype", "");
    if (strcmp(is, "uint8") && strcmp(is, "uint16"))
        return;
    float *value = (float *)(uintptr_t)c->data;
    bool wide = !strcmp(is, "uint16");
    for (uint64_t i = 0; i < shape_count(&c->shape); i++) {
        double stored = (double)value[i];
        if (wide && stored < 0) /* read as signed */
            stored += 65536;
        value[i] =
            (float)(stored * json_num(q, "scale", 1) + json_num(q, "min", 0));
    }
}

static Shape manifest_shape(const cJSON *weight) {
    const cJSON *item;
    Shape shape = {0};
    cJSON_ArrayForEach(item,
                       cJSON_GetObjectItemCaseSensitive(weight, "shape")) {
        if (shape.rank == SHAPE_MAX_RANK)
            break;
        double dim = cJSON_IsNumber(item) ? item->valuedouble : 0;
        shape.dim[shape.rank++] =
            dim > 0 && dim <= INT32_MAX ? (uint32_t)dim : 0;
    }
    return shape;
}

static bool read_weight(Manifest *m, const cJSON *weight) {
    Tf *tf = m->tf;
    const char *name = json_str(weight, "name", "");
    const Type *type = stored_type(weight);
    Const c = {.shape = manifest_shape(weight), .kind = CONST_F32};
    uint64_t n = shape_count(&c.shape);
    if (!type || n >= SHAPE_MAX_COUNT) {
        diag_error(tf->net.diag, tf->net.loc,
                   "weight \"%s\" has a type or shape that is not supported",
                   name);
        return false;
    }
    if (m->bytes.at) {
        if (n * type->size > m->bytes.len - m->at) {
            diag_error(tf->net.diag, tf->net.loc,
                       "the files of weights end before \"%s\"", name);
            return false;
        }
        c = from_bytes(tf->net.arena, c.shape, type, m->bytes.at + m->at);
        m->at += n * type->size;
        scale_values(weight, &c);
    }
    map_put(tf->weights, name, tf->weight.n);
    vec_push(tf->net.arena, &tf->weight, c);
    return true;
}

void tf_read_manifest(Tf *tf, const cJSON *json) {
    const cJSON *group, *weight;
    cJSON_ArrayForEach(
        group, cJSON_GetObjectItemCaseSensitive(json, "weightsManifest")) {
        Manifest m = {
            tf,
            read_files(tf, cJSON_GetObjectItemCaseSensitive(group, "paths")),
            0};
        bool good = true;
        cJSON_ArrayForEach(weight,
                           cJSON_GetObjectItemCaseSensitive(group, "weights")) {
            good = good && read_weight(&m, weight);
        }
    }
}

/* ---- arithmetic ---- */

bool tf_all_known(Tf *tf) {
    for (uint32_t i = 0; i < tf->at->n_in; i++) {
        const TfNode *from = &tf->node[tf->at->in[i].node];
        if (from->state != TF_CONST || !from->known)
            return false;
    }
    return tf->at->n_in > 0;
}

static double calculate(EltKind kind, double a, double b) {
    switch (kind) {
    case ELT_ADD:
        return a + b;
    case ELT_SUB:
        return a - b;
    case ELT_MUL:
        return a * b;
    case ELT_DIV:
        return a / b;
    case ELT_MAX:
        return fmax(a, b);
    case ELT_MIN:
        return fmin(a, b);
    default:
        return pow(a, b);
    }
}

TensorId tf_fold_two(Tf *tf, int kind, const Const *a, const Const *b) {
    uint64_t na = shape_count(&a->shape), nb = shape_count(&b->shape);
    uint64_t n = na > nb ? na : nb;
    if (!na || !nb || (na != nb && na != 1 && nb != 1))
        return net_none(&tf->net, "constants of %s and %s do not fit",
                        shape_text(tf->net.arena, &a->shape),
                        shape_text(tf->net.arena, &b->shape));
    double *x = ARENA_ARRAY(tf->net.arena, double, n);
    double *y = ARENA_ARRAY(tf->net.arena, double, n);
    const_read_f64(a, x);
    const_read_f64(b, y);
    for (uint64_t i = n; i-- > 0;)
        x[i] = calculate((EltKind)kind, x[na == 1 ? 0 : i], y[nb == 1 ? 0 : i]);
    return tf_be_const(tf,
                       (Const){.shape = na >= nb ? a->shape : b->shape,
                               .kind = CONST_F64,
                               .data = x},
                       true);
}

TensorId tf_fold(Tf *tf, int kind) {
    const Const *a = tf_const(tf, 0), *b = tf_const(tf, 1);
    return a && b ? tf_fold_two(tf, kind, a, b) : NO_TENSOR;
}

/* Whether all inputs are single numbers without axes; so is what elements are
 * made of them. */
static bool no_axes(const Tf *tf) {
    for (uint32_t i = 0; i < tf->at->n_in; i++)
        if (tf->node[tf->at->in[i].node].value.shape.rank)
            return false;
    return true;
}

bool tf_fold_node(Tf *tf, const TfOp *op) {
    TfNode *node = tf->at;
    Const value;
    if (!tf_all_known(tf))
        return false;
    Graph *whole = net_aside(&tf->net);
    TensorId out = op->build(tf, op->kind);
    uint32_t many = node->n_out;
    bool folds = net_back(&tf->net, whole, 1, &out, &value);
    if (node->state != TF_NOT_BUILT)
        return true;
    node->n_out = 0;
    node->out = NULL;
    if (!folds || many > 1)
        return out.i == NONE;
    if (no_axes(tf) && shape_count(&value.shape) == 1)
        value.shape.rank = 0;
    tf_be_const(tf, value, true);
    return true;
}
