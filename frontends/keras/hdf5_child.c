/* hdf5_child.c - what libhdf5 finds in a file, in a process of its own. A
 * module: libhdf5 needs thirty other libraries, and to load them takes longer
 * than to compile a small network.
 *
 * In: the bytes of a file. Out: records, written to the parent: the JSON of the
 * model, every set of floats by its path. Sets that claim more than the file
 * could hold when decompressed are refused before anything is allocated, and so
 * are those that lie in other files.
 */
#include "frontends/keras/hdf5.h"

/* Later releases then still have the functions of this one. */
#define H5_USE_110_API
#include <hdf5.h>
#include <string.h>

enum { MAX_CONFIG = 1 << 28, MAX_DEPTH = 64 };

typedef struct Visit {
    int to; /* the parent */
    hid_t file;
    Bytes all;      /* of the file */
    uint64_t bytes; /* of all values so far, of */
    uint64_t most;
    const char *wrong;
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

static void send(int to, Hdf5Record record, const char *name,
                 const void *values) {
    record.name_len = (uint32_t)strlen(name);
    child_write(to, &record, sizeof record);
    child_write(to, name, record.name_len);
    if (values)
        child_write(to, values, record.bytes);
}

static void send_text(int to, Hdf5Kind kind, const char *name,
                      const char *text) {
    send(to, (Hdf5Record){.kind = kind, .bytes = strlen(text)}, name, text);
}

/* Where plain floats lie in the file in one piece; HADDR_UNDEF: not so. */
static haddr_t in_place(const Visit *v, hid_t set, uint64_t size) {
    hid_t type = H5Dget_type(set);
    bool plain = H5Tequal(type, H5T_IEEE_F32LE) > 0;
    H5Tclose(type);
    haddr_t at = H5Dget_offset(set); /* defined for one piece only */
    bool inside = at != HADDR_UNDEF && at <= v->all.len &&
                  size <= v->all.len - at && H5Dget_storage_size(set) == size;
    return plain && inside ? at : HADDR_UNDEF;
}

static herr_t find_no_memory(unsigned n, const H5E_error2_t *error,
                             void *found) {
    (void)n;
    if (error->min_num == H5E_CANTALLOC || error->min_num == H5E_NOSPACE)
        *(bool *)found = true;
    return 0;
}

/* Why libhdf5's last function failed. */
static const char *why(void) {
    bool no_memory = false;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_no_memory, &no_memory);
    return no_memory ? "ran out of memory while libhdf5 read it"
                     : "cannot be read";
}

/* Values that have to be converted or unpacked. */
static const char *send_values(const Visit *v, hid_t set, Hdf5Record record,
                               const char *name) {
    const char *wrong = NULL;
    float *value = H5allocate_memory(record.bytes + 1, false);
    if (!value)
        return "ran out of memory while libhdf5 read it";
    if (record.bytes && H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL,
                                H5P_DEFAULT, value) < 0)
        wrong = why();
    else
        send(v->to, record, name, value);
    H5free_memory(value);
    return wrong;
}

static const char *send_set(Visit *v, hid_t set, const char *name) {
    hid_t type = H5Dget_type(set);
    bool floats = H5Tget_class(type) == H5T_FLOAT;
    Hdf5Record record = {.kind = HDF5_VALUES};
    H5Tclose(type);
    if (!floats)
        return NULL; /* counters, names: no weights */
    if (!read_shape(set, &record.shape))
        return "has a shape that is too large";
    record.bytes = shape_count(&record.shape) * sizeof(float);
    v->bytes += record.bytes;
    if (v->bytes > v->most || (record.bytes && !H5Dget_storage_size(set)))
        return "claims more values than its bytes can hold";
    if (is_elsewhere(set))
        return "has its values in another file";
    haddr_t at = in_place(v, set, record.bytes);
    if (at == HADDR_UNDEF)
        return send_values(v, set, record, name);
    record.kind = HDF5_IN_PLACE;
    record.at = at;
    send(v->to, record, name, NULL);
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
    char where[41] = "";
    (void)group;
    if (depth(name) > MAX_DEPTH) { /* opening by name is cubic in it */
        v->wrong = "is nested too deep";
        memcpy(where, name, strnlen(name, sizeof where - 1));
        name = where;
    } else if (object->type == H5O_TYPE_DATASET && !strstr(name, "optimizer")) {
        hid_t set = H5Dopen2(v->file, name, H5P_DEFAULT);
        if (set < 0)
            return 0;
        v->wrong = send_set(v, set, name);
        H5Dclose(set);
    }
    if (v->wrong)
        send_text(v->to, HDF5_WRONG, name, v->wrong);
    return v->wrong != NULL;
}

static bool send_weights(int to, hid_t file, const Hdf5Ask *ask) {
    Visit v = {.to = to, .file = file, .all = ask->bytes, .most = ask->most};
    herr_t done =
        H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, visit, &v, H5O_INFO_BASIC);
    return done >= 0 || v.wrong;
}

/* A string of a fixed or a variable length, with NUL; NULL: it is none. */
static char *read_string(hid_t attribute) {
    hid_t type = H5Aget_type(attribute);
    char *text = NULL;
    size_t size = H5Tget_size(type);
    if (H5Tis_variable_str(type) > 0) {
        if (H5Aread(attribute, type, &text) < 0)
            text = NULL;
    } else if (H5Tget_class(type) == H5T_STRING && size <= MAX_CONFIG) {
        text = H5allocate_memory(size + 1, true);
        if (text && H5Aread(attribute, type, text) < 0)
            *text = '\0';
    }
    H5Tclose(type);
    return text;
}

static bool send_config(int to, hid_t file) {
    hid_t attribute = H5Aopen(file, "model_config", H5P_DEFAULT);
    char *text = attribute >= 0 ? read_string(attribute) : NULL;
    bool good = text && *text;
    if (good)
        send_text(to, HDF5_CONFIG, "", text);
    else
        send_text(to, HDF5_NO_CONFIG, "", "");
    H5free_memory(text);
    return good;
}

static void work(int to, void *context) {
    Hdf5Ask *ask = context;
    H5PLset_loading_state(0); /* no code for filters from anywhere */
    hid_t file = open_file(&ask->bytes);
    bool good = file >= 0;
    bool wanted = good && (!ask->config || send_config(to, file));
    if (wanted)
        good = send_weights(to, file, ask);
    send_text(to, good ? HDF5_END : HDF5_DAMAGED, "", "");
}

const Hdf5Module hdf5_module = {work};
