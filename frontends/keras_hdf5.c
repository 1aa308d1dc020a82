/* keras_hdf5.c - weights and models in HDF5, through libhdf5.
 *
 * In: the bytes of a file. Out: every set of floats by name: of the old layout
 * model_weights/.../LAYER/VARIABLE:0 as "LAYER/VARIABLE", of the new one
 * layers/CLASS_N/vars/I as it is. Sets that claim more than the file could hold
 * when decompressed are refused before anything is allocated, and so are those
 * that lie in other files.
 */
#include "frontends/keras.h"

#include <string.h>

bool keras_is_hdf5(Bytes bytes) {
    return bytes.len >= 8 && !memcmp(bytes.at, "\x89HDF\r\n\x1a\n", 8);
}

#ifdef HAVE_HDF5

/* Later releases then still have the functions of this one. */
#define H5_USE_110_API
#include <hdf5.h>

enum { MAX_CONFIG = 1 << 28, MAX_DEPTH = 64 };

typedef struct Visit {
    Keras *k;
    hid_t file;
    Bytes all;      /* of the file */
    uint64_t bytes; /* of all values so far */
    const char *wrong, *where;
} Visit;

/* The library asks for memory for its image of the file, and for a copy into
 * it: it gets the bytes where they are. It does not write to a file that is
 * opened for reading, so nothing has to grow. */
static void *image_at(size_t size, H5FD_file_image_op_t op, void *bytes) {
    const Bytes *all = bytes;
    (void)op;
    return size == all->len ? (void *)(uintptr_t)all->at : NULL;
}

static void *image_copy(void *to, const void *from, size_t size,
                        H5FD_file_image_op_t op, void *bytes) {
    (void)size, (void)op, (void)bytes;
    return to == from ? to : NULL;
}

static void *image_grow(void *at, size_t size, H5FD_file_image_op_t op,
                        void *bytes) {
    (void)at, (void)size, (void)op, (void)bytes;
    return NULL;
}

static herr_t image_free(void *at, H5FD_file_image_op_t op, void *bytes) {
    (void)at, (void)op, (void)bytes;
    return 0;
}

static void *same_data(void *bytes) {
    return bytes;
}

static herr_t keep_data(void *bytes) {
    (void)bytes;
    return 0;
}

/* `bytes` must stay until the file is closed. */
static hid_t open_file(Bytes *bytes) {
    H5FD_file_image_callbacks_t in_place = {image_at,   image_copy, image_grow,
                                            image_free, same_data,  keep_data,
                                            bytes};
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    H5Pset_fapl_core(access, 1 << 20, false);
    if (H5Pset_file_image_callbacks(access, &in_place) >= 0 &&
        H5Pset_file_image(access, (void *)(uintptr_t)bytes->at, bytes->len) >=
            0)
        file = H5Fopen("memory", H5F_ACC_RDONLY, access);
    H5Pclose(access);
    return file;
}

/* "a/b/conv/kernel:0" -> "conv/kernel". */
static const char *short_name(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash || strstr(path, "/vars/"))
        return path;
    while (slash > path && slash[-1] != '/')
        slash--;
    const char *colon = strchr(slash, ':');
    return arena_strndup(arena, slash,
                         colon ? (size_t)(colon - slash) : strlen(slash));
}

static bool read_shape(hid_t set, Shape *out) {
    hsize_t dim[SHAPE_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int rank = H5Sget_simple_extent_ndims(space);
    bool good = rank >= 0 && rank <= SHAPE_MAX_RANK &&
                H5Sget_simple_extent_dims(space, dim, NULL) >= 0;
    H5Sclose(space);
    *out = (Shape){.rank = good ? (uint32_t)rank : 0};
    for (int i = 0; good && i < rank; i++) {
        good = dim[i] <= INT32_MAX;
        out->dim[i] = (uint32_t)dim[i];
    }
    return good && shape_count(out) < SHAPE_MAX_COUNT;
}

/* Values that stand in other files would let a model read any file. */
static bool is_elsewhere(hid_t set) {
    hid_t made = H5Dget_create_plist(set);
    bool elsewhere =
        H5Pget_external_count(made) != 0 || H5Pget_layout(made) == H5D_VIRTUAL;
    H5Pclose(made);
    return elsewhere;
}

/* Plain floats in one piece can stay where they are; NULL: they do not lie so.
 */
static const void *in_place(const Visit *v, hid_t set, uint64_t n) {
    hid_t type = H5Dget_type(set);
    bool plain = H5Tequal(type, H5T_IEEE_F32LE) > 0;
    H5Tclose(type);
    haddr_t at = H5Dget_offset(set); /* defined for one piece only */
    uint64_t size = n * sizeof(float);
    bool inside = at != HADDR_UNDEF && at <= v->all.len &&
                  size <= v->all.len - at && H5Dget_storage_size(set) == size;
    return plain && inside ? v->all.at + at : NULL;
}

static const char *read_set(Visit *v, hid_t set, Const *out) {
    hid_t type = H5Dget_type(set);
    bool floats = H5Tget_class(type) == H5T_FLOAT;
    H5Tclose(type);
    *out = (Const){.kind = CONST_F32};
    if (!floats)
        return NULL; /* counters, names: no weights */
    if (!read_shape(set, &out->shape))
        return "has a shape that is too large";
    uint64_t n = shape_count(&out->shape);
    v->bytes += n * sizeof(float);
    if (!keras_can_hold(v->all.len, v->bytes) ||
        (n && !H5Dget_storage_size(set)))
        return "claims more values than its bytes can hold";
    if (is_elsewhere(set))
        return "has its values in another file";
    out->data = in_place(v, set, n);
    if (out->data)
        return NULL;
    float *value = ARENA_ARRAY(v->k->net.arena, float, n);
    if (n && H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                     value) < 0)
        return "cannot be read";
    out->data = value;
    return NULL;
}

static uint32_t depth(const char *path) {
    uint32_t n = 0;
    for (; *path; path++)
        n += *path == '/';
    return n;
}

/* One object of the file; not 0 stops the walk. */
static herr_t visit(hid_t group, const char *name, const H5O_info_t *object,
                    void *data) {
    Visit *v = data;
    Keras *k = v->k;
    Const value;
    (void)group;
    if (depth(name) > MAX_DEPTH) { /* opening by name is cubic in it */
        v->wrong = "is nested too deep";
        v->where = arena_strndup(k->net.arena, name, 40);
        return 1;
    }
    if (object->type != H5O_TYPE_DATASET || strstr(name, "optimizer"))
        return 0;
    hid_t set = H5Dopen2(v->file, name, H5P_DEFAULT);
    if (set < 0)
        return 0;
    v->wrong = read_set(v, set, &value);
    H5Dclose(set);
    if (v->wrong) {
        v->where = arena_strdup(k->net.arena, name);
        return 1;
    }
    if (!value.data)
        return 0;
    map_put(k->weights.names, short_name(k->net.arena, name),
            k->weights.value.n);
    vec_push(k->net.arena, &k->weights.value, value);
    return 0;
}

static bool damaged(Keras *k, const char *path) {
    diag_error(k->net.diag, (Loc){path ? path : k->net.path, 0, 0},
               "the HDF5 in it is damaged");
    return false;
}

bool keras_hdf5_weights(Keras *k, const char *path, Bytes bytes) {
    Visit v = {.k = k, .all = bytes, .file = open_file(&bytes)};
    if (v.file < 0)
        return damaged(k, path);
    herr_t done = H5Ovisit2(v.file, H5_INDEX_NAME, H5_ITER_INC, visit, &v,
                            H5O_INFO_BASIC);
    H5Fclose(v.file);
    k->weights.file = path ? path : k->net.path;
    if (v.wrong)
        diag_error(k->net.diag, (Loc){k->weights.file, 0, 0}, "\"%s\" %s",
                   v.where, v.wrong);
    else if (done < 0)
        return damaged(k, path);
    return !v.wrong;
}

/* A string of a fixed or a variable length. */
static const char *read_string(Arena *arena, hid_t attribute) {
    hid_t type = H5Aget_type(attribute);
    const char *text = NULL;
    if (H5Tis_variable_str(type) > 0) {
        char *value = NULL;
        if (H5Aread(attribute, type, &value) >= 0 && value)
            text = arena_strdup(arena, value);
        H5free_memory(value);
    } else if (H5Tget_class(type) == H5T_STRING &&
               H5Tget_size(type) <= MAX_CONFIG) {
        char *value = arena_alloc(arena, H5Tget_size(type) + 1, 1);
        text = H5Aread(attribute, type, value) >= 0 ? value : NULL;
    }
    H5Tclose(type);
    return text;
}

const char *keras_hdf5_config(Keras *k, const char *path, Bytes bytes) {
    hid_t file = open_file(&bytes);
    const char *text = NULL;
    if (file < 0) {
        damaged(k, path);
        return NULL;
    }
    hid_t attribute = H5Aopen(file, "model_config", H5P_DEFAULT);
    if (attribute >= 0) {
        text = read_string(k->net.arena, attribute);
        H5Aclose(attribute);
    }
    H5Fclose(file);
    if (!text)
        diag_error(k->net.diag, (Loc){path, 0, 0},
                   "it holds weights but no model: read the model's JSON with "
                   "--weights");
    return text;
}

#else

static bool missing(Keras *k) {
    diag_error(k->net.diag, (Loc){k->net.path, 0, 0},
               "this amphora was built without libhdf5, which .h5 and .keras "
               "need");
    return false;
}

bool keras_hdf5_weights(Keras *k, const char *path, Bytes bytes) {
    (void)path;
    (void)bytes;
    return missing(k);
}

const char *keras_hdf5_config(Keras *k, const char *path, Bytes bytes) {
    (void)path;
    (void)bytes;
    missing(k);
    return NULL;
}

#endif
