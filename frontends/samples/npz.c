/* npz.c - NumPy's .npz: a zip archive of .npy files; see samples_int.h. */
#include "frontends/samples/samples_int.h"

#include <string.h>

#ifdef HAVE_ZIP

#include <zip.h>

/* Of one array. */
static const uint64_t most_bytes = UINT64_C(1) << 30;

static bool fail(Diag *diag, const char *path, const char *what) {
    diag_error(diag, (Loc){path, 0, 0}, "%s", what);
    return false;
}

static zip_t *open_zip(Diag *diag, const char *path, Bytes file) {
    zip_source_t *source = zip_source_buffer_create(file.at, file.len, 0, NULL);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_RDONLY, NULL) : NULL;
    if (!zip) {
        zip_source_free(source);
        fail(diag, path, "not a zip archive that can be read");
    }
    return zip;
}

/* All bytes of entry i. */
static bool read_entry(Arena *arena, Diag *diag, const char *path, zip_t *zip,
                       zip_uint64_t i, Bytes *out) {
    zip_stat_t info;
    if (zip_stat_index(zip, i, 0, &info) || info.size > most_bytes)
        return fail(diag, path, "an array of more than 1 GiB");
    uint8_t *bytes = arena_alloc_raw(arena, info.size + 1, 16);
    zip_file_t *file = zip_fopen_index(zip, i, 0);
    zip_int64_t got = file ? zip_fread(file, bytes, info.size) : -1;
    if (file)
        zip_fclose(file);
    if (got < 0 || (uint64_t)got != info.size)
        return fail(diag, path, "a damaged zip archive");
    *out = (Bytes){bytes, info.size};
    return true;
}

bool npz_array(Arena *arena, Diag *diag, const char *path, Bytes file,
               const char *name, Npy *out) {
    zip_t *zip = open_zip(diag, path, file);
    if (!zip)
        return false;
    zip_int64_t i = zip_name_locate(zip, name, 0);
    if (i < 0)
        i = zip_name_locate(zip, arena_printf(arena, "%s.npy", name), 0);
    Bytes bytes = {0};
    bool ok =
        i < 0 ? fail(diag, path, arena_printf(arena, "no array \"%s\"", name))
              : read_entry(arena, diag, path, zip, (zip_uint64_t)i, &bytes);
    zip_discard(zip);
    return ok &&
           npy_parse(arena, diag, arena_printf(arena, "%s:%s", path, name),
                     bytes, out);
}

const char *const *npz_names(Arena *arena, Diag *diag, const char *path,
                             Bytes file) {
    zip_t *zip = open_zip(diag, path, file);
    if (!zip)
        return NULL;
    zip_int64_t n = zip_get_num_entries(zip, 0);
    const char **names = ARENA_ARRAY(arena, const char *, (size_t)n + 1);
    for (zip_int64_t i = 0; i < n; i++) {
        const char *name = zip_get_name(zip, (zip_uint64_t)i, 0);
        size_t len = name ? strlen(name) : 0;
        bool npy = len > 4 && !strcmp(name + len - 4, ".npy");
        names[i] = arena_strndup(arena, name ? name : "", npy ? len - 4 : len);
    }
    zip_discard(zip);
    return names;
}

#else

bool npz_array(Arena *arena, Diag *diag, const char *path, Bytes file,
               const char *name, Npy *out) {
    (void)arena, (void)file, (void)name, (void)out;
    diag_error(diag, (Loc){path, 0, 0},
               "this amphora was built without libzip, which .npz needs");
    return false;
}

const char *const *npz_names(Arena *arena, Diag *diag, const char *path,
                             Bytes file) {
    npz_array(arena, diag, path, file, NULL, NULL);
    return NULL;
}

#endif
