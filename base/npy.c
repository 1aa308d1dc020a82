/* npy.c - NumPy's .npy files; see npy.h.
 *
 * Format:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html magic,
 * version, length of the header, the header (a Python dict as text, in practice
 * with keys in alphabetical order; here in any), then the values.
 */
#include "base/npy.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, MAX_HEADER = 1 << 16, ALIGN = 64 };

/* An element kind: its name in the header, bytes, how it becomes a float and
 * how a float becomes it. */
typedef struct Kind {
    const char *name;
    uint32_t bytes;
    float (*load)(const uint8_t *at);
    void (*store)(float value, uint8_t *at);
} Kind;

#define KINDS                                                                  \
    KIND(f4, "<f4", float)                                                     \
    KIND(f8, "<f8", double)                                                    \
    KIND(u1, "|u1", uint8_t)                                                   \
    KIND(i1, "|i1", int8_t)                                                    \
    KIND(i2, "<i2", int16_t)                                                   \
    KIND(i4, "<i4", int32_t)                                                   \
    KIND(i8, "<i8", int64_t)

#define KIND(name, text, T)                                                    \
    static float load_##name(const uint8_t *at) {                              \
        T value;                                                               \
        memcpy(&value, at, sizeof value);                                      \
        return (float)value;                                                   \
    }                                                                          \
    static void store_##name(float value, uint8_t *at) {                       \
        T element = (T)value;                                                  \
        memcpy(at, &element, sizeof element);                                  \
    }
KINDS
#undef KIND

static const Kind kinds[] = {
#define KIND(name, text, T) {text, sizeof(T), load_##name, store_##name},
    KINDS
#undef KIND
};

static bool bad(Diag *diag, const char *path, const char *why) {
    diag_error(diag, (Loc){path, 0, 0}, "not a .npy file that can be read: %s",
               why);
    return false;
}

/* The header's text, NUL-terminated; *data is where the values start. */
static const char *header_text(Arena *arena, Diag *diag, const char *path,
                               Bytes file, size_t *data) {
    const uint8_t *at = file.at;
    if (file.len < MAGIC + 4 || memcmp(at, magic, MAGIC)) {
        bad(diag, path, "it does not begin with the magic number");
        return NULL;
    }
    bool wide = at[MAGIC] > 1; /* the length has 2 bytes in version 1, else 4 */
    size_t start = MAGIC + (wide ? 6 : 4);
    if (at[MAGIC] < 1 || at[MAGIC] > 3 || file.len < start) {
        bad(diag, path, "unknown version");
        return NULL;
    }
    size_t len = at[8] | (size_t)at[9] << 8;
    if (wide)
        len |= (size_t)at[10] << 16 | (size_t)at[11] << 24;
    if (len > MAX_HEADER || len > file.len - start) {
        bad(diag, path, "the header is cut off");
        return NULL;
    }
    *data = start + len;
    return arena_strndup(arena, (const char *)at + start, len);
}

/* What follows 'key': in the header, spaces skipped; NULL if not there. */
static const char *header_value(Arena *arena, const char *header,
                                const char *key) {
    const char *at = strstr(header, arena_printf(arena, "'%s':", key));
    if (!at)
        return NULL;
    at += strlen(key) + 3;
    return at + strspn(at, " ");
}

/* `name` may go on behind a quote. */
static const Kind *find_kind(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(name, kinds[i].name, 3) && (name[3] == '\'' || !name[3]))
            return &kinds[i];
    return NULL;
}

/* "(2, 3)", "(2,)", "()": false if malformed or of too high a rank. */
static bool parse_shape(const char *at, Npy *out) {
    if (!at || *at++ != '(')
        return false;
    out->count = 1;
    while (*at != ')') {
        uint64_t dim = 0;
        size_t digits = strspn(at, "0123456789");
        if (!digits || digits > 9 || out->rank == NPY_MAX_RANK)
            return false;
        for (; digits; digits--)
            dim = dim * 10 + (uint64_t)(*at++ - '0');
        if (dim && out->count > UINT64_MAX / dim)
            return false;
        out->dim[out->rank++] = dim;
        out->count *= dim;
        at += strspn(at, "L, ");
    }
    return true;
}

/* Where element `i` in Fortran's order lies in C's. */
static uint64_t c_index(const Npy *npy, uint64_t i) {
    uint64_t at = 0;
    uint64_t index[NPY_MAX_RANK];
    for (uint32_t axis = 0; axis < npy->rank; i /= npy->dim[axis++])
        index[axis] = i % npy->dim[axis];
    for (uint32_t axis = 0; axis < npy->rank; axis++)
        at = at * npy->dim[axis] + index[axis];
    return at;
}

bool npy_read(Arena *arena, Diag *diag, const char *path, Npy *out) {
    Bytes file;
    return file_read(arena, diag, path, &file) &&
           npy_parse(arena, diag, path, file, out);
}

bool npy_parse(Arena *arena, Diag *diag, const char *path, Bytes file,
               Npy *out) {
    size_t data;
    Npy npy = {0};
    const char *header = header_text(arena, diag, path, file, &data);
    if (!header)
        return false;
    const char *descr = header_value(arena, header, "descr");
    const Kind *kind = descr && *descr == '\'' ? find_kind(descr + 1) : NULL;
    if (!kind)
        return bad(diag, path,
                   "its elements are none of <f4, <f8, |u1, |i1, "
                   "<i2, <i4, <i8");
    const char *fortran = header_value(arena, header, "fortran_order");
    bool by_columns = fortran && !strncmp(fortran, "True", 4);
    if (!fortran || (!by_columns && strncmp(fortran, "False", 5)))
        return bad(diag, path, "it does not say in which order it is");
    uint64_t most = (file.len - data) / kind->bytes;
    const char *shape = header_value(arena, header, "shape");
    if (!parse_shape(shape, &npy) || npy.count > most)
        return bad(diag, path, "its shape does not go with its length");
    npy.kind = kind->name;
    npy.data = ARENA_ARRAY(arena, float, npy.count);
    for (uint64_t i = 0; i < npy.count; i++)
        npy.data[by_columns ? c_index(&npy, i) : i] =
            kind->load(file.at + data + i * kind->bytes);
    *out = npy;
    return true;
}

bool npy_is_whole(const Npy *npy) {
    return npy->kind && npy->kind[1] != 'f';
}

bool npy_write(Arena *arena, Diag *diag, const char *path, const Npy *npy) {
    const Kind *kind = find_kind(npy->kind ? npy->kind : "<f4");
    Text dict = text_new(arena);
    text_addf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (",
              kind->name);
    for (uint32_t i = 0; i < npy->rank; i++)
        text_addf(&dict, "%s%" PRIu64, i ? ", " : "", npy->dim[i]);
    text_add(&dict, npy->rank == 1 ? ",), }" : "), }");
    while ((MAGIC + 4 + dict.len + 1) % ALIGN)
        text_add(&dict, " ");
    text_add(&dict, "\n");
    const char size[] = {1, 0, (char)(dict.len & 255), (char)(dict.len >> 8)};
    Text file = text_new(arena);
    text_add_n(&file, magic, MAGIC);
    text_add_n(&file, size, sizeof size);
    text_add_n(&file, text_str(&dict), dict.len);
    for (uint64_t i = 0; i < npy->count; i++) {
        uint8_t element[8];
        kind->store(npy->data[i], element);
        text_add_n(&file, (const char *)element, kind->bytes);
    }
    return file_write(arena, diag, path, file.at, file.len);
}
