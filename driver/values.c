/* values.c - values of tensors in files; see values.h. */
#include "driver/values.h"

#include "base/npy.h"
#include "base/rng.h"
#include "frontends/frontend.h"
#include "graph/quant.h"

#include <inttypes.h>
#include <string.h>

Valued values_of(const char *what, const Tensor *tensor) {
    return (Valued){what, tensor->name, &tensor->shape, &tensor->quant};
}

static bool is_code(const Quant *q, float value) {
    const QuantTypeInfo *type = &quant_type[q->type];
    return value >= (float)type->lo && value <= (float)type->hi;
}

static bool to_codes(Diag *diag, const char *path, const Valued *of, Npy *npy) {
    for (uint64_t i = 0; i < npy->count; i++) {
        if (!npy_is_whole(npy))
            npy->data[i] = (float)quant_code(of->quant, (double)npy->data[i]);
        if (is_code(of->quant, npy->data[i]))
            continue;
        diag_error(diag, (Loc){path, 0, 0},
                   "%.9g is not a code of %s %s, which is %s",
                   (double)npy->data[i], of->what, of->name,
                   quant_type[of->quant->type].name);
        return false;
    }
    return true;
}

const float *values_read(Arena *arena, Diag *diag, const char *path,
                         const Valued *of) {
    Npy npy;
    if (!tensor_file_read(arena, diag, path, &npy))
        return NULL;
    if (of->shape && npy.count != shape_count(of->shape)) {
        diag_error(diag, (Loc){path, 0, 0}, "%llu values, but %s %s is %s",
                   (unsigned long long)npy.count, of->what, of->name,
                   shape_text(arena, of->shape));
        return NULL;
    }
    bool codes = of->quant && of->quant->type != QUANT_NONE;
    if (codes && !to_codes(diag, path, of, &npy))
        return NULL;
    return npy.data;
}

/* File systems take 255 bytes, and TensorFlow Lite joins the names of all that
 * it fused. */
enum { LONGEST_NAME = 200 };

static const char *file_of(Arena *arena, const char *name, const char *suffix) {
    char *file =
        strlen(name) <= LONGEST_NAME
            ? arena_printf(arena, "%s%s", name, suffix)
            : arena_printf(arena, "%.*s-%016" PRIx64 "%s", LONGEST_NAME, name,
                           rng_seed(name, 0), suffix);
    for (char *at = file; *at; at++)
        *at = *at == '/' ? '_' : *at;
    return file;
}

static bool write_one(Arena *arena, Diag *diag, const char *path,
                      const Shape *shape, const char *kind, float *value) {
    Npy npy = {.rank = shape->rank,
               .kind = kind,
               .data = value,
               .count = shape_count(shape)};
    for (uint32_t k = 0; k < npy.rank; k++)
        npy.dim[k] = shape->dim[k];
    return npy_write(arena, diag, path, &npy);
}

bool values_write(Arena *arena, Diag *diag, const char *dir, const Valued *of,
                  const float *value) {
    static const char *const kind[QUANT_TYPE_COUNT] = {
        [QUANT_I8] = "|i1", [QUANT_U8] = "|u1", [QUANT_I16] = "<i2"};
    const Quant *q = of->quant;
    uint64_t n = shape_count(of->shape);
    float *copy = ARENA_COPY(arena, float, value, n);
    const char *path =
        arena_printf(arena, "%s/%s", dir, file_of(arena, of->name, ".npy"));
    if (!write_one(arena, diag, path, of->shape, kind[q->type], copy))
        return false;
    if (q->type == QUANT_NONE)
        return true;
    for (uint64_t i = 0; i < n; i++)
        copy[i] = (float)quant_real(q, (double)value[i]);
    path = arena_printf(arena, "%s/%s", dir,
                        file_of(arena, of->name, ".real.npy"));
    return write_one(arena, diag, path, of->shape, NULL, copy);
}
