/* hdf5.c - weights and models in HDF5.
 *
 * In: the bytes of a file. Out: every set of floats by name: of the old layout
 * model_weights/.../LAYER/VARIABLE:0 as "LAYER/VARIABLE", of the new one
 * layers/CLASS_N/vars/I as it is. libhdf5 runs in a process of its own, whose
 * records are checked here: a file can have made it do anything.
 */
#include "frontends/keras/hdf5.h"

#include "base/module.h"

#include <string.h>

bool keras_is_hdf5(Bytes bytes) {
    return bytes.len >= 8 && !memcmp(bytes.at, "\x89HDF\r\n\x1a\n", 8);
}

#ifdef HDF5_MODULE_BUILT

typedef struct Reader {
    Keras *k;
    Child *child;
    Bytes bytes;
    const char *path, *config; /* config: NULL until it came */
    bool wrong; /* a set, or that there is no config, which was reported */
} Reader;

/* "a/b/conv/kernel:0" -> "conv/kernel"; "a/lstm/lstm_cell/kernel:0" ->
 * "lstm/kernel". */
static const char *short_name(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash || strstr(path, "/vars/"))
        return path;
    while (slash > path && slash[-1] != '/')
        slash--;
    const char *layer = slash, *name = strchr(slash, '/');
    const char *colon = strchr(slash, ':'), *cell = strstr(slash, "_cell");
    if (cell && name && cell < name && slash > path + 1)
        for (layer = slash - 1; layer > path && layer[-1] != '/';)
            layer--;
    const char *end = layer == slash ? name : slash - 1;
    return arena_printf(arena, "%.*s%.*s", (int)(end - layer), layer,
                        colon ? (int)(colon - name) : (int)strlen(name), name);
}

static bool is_good(const Reader *r, const Hdf5Record *record) {
    uint64_t all = r->bytes.len;
    bool set = record->kind == HDF5_VALUES || record->kind == HDF5_IN_PLACE;
    bool fits = record->kind != HDF5_IN_PLACE ||
                (record->at <= all && record->bytes <= all - record->at);
    return record->name_len <= UINT16_MAX && fits &&
           record->bytes <= keras_most(all) &&
           record->shape.rank <= SHAPE_MAX_RANK &&
           (!set ||
            record->bytes == shape_count(&record->shape) * sizeof(float));
}

/* The next `len` bytes, and a NUL; NULL: it ended before. */
static char *read_text(Reader *r, size_t len) {
    char *text = arena_alloc_raw(r->k->net.arena, len + 1, 8);
    text[len] = '\0';
    return child_read(r->child, text, len) ? text : NULL;
}

static void add_set(Reader *r, const Hdf5Record *record, const char *name,
                    const void *values) {
    Keras *k = r->k;
    Const value = {.kind = CONST_F32, .shape = record->shape, .data = values};
    map_put(k->weights.names, short_name(k->net.arena, name),
            k->weights.value.n);
    vec_push(k->net.arena, &k->weights.value, value);
}

static void accept(Reader *r, const Hdf5Record *record, const char *name,
                   const char *text) {
    Diag *diag = r->k->net.diag;
    Loc loc = {r->path, 0, 0};
    switch (record->kind) {
    case HDF5_WRONG:
        diag_error(diag, loc, "\"%s\" %s", name, text);
        r->wrong = true;
        break;
    case HDF5_NO_CONFIG:
        diag_error(diag, loc,
                   "it holds weights but no model: read the model's JSON with "
                   "--weights");
        r->wrong = true;
        break;
    case HDF5_CONFIG:
        r->config = text;
        break;
    case HDF5_VALUES:
        add_set(r, record, name, text);
        break;
    case HDF5_IN_PLACE:
        add_set(r, record, name, r->bytes.at + record->at);
        break;
    case HDF5_END:
    case HDF5_DAMAGED:
        break;
    }
}

/* What ended the records: HDF5_END where all came. */
static Hdf5Kind read_records(Reader *r) {
    Hdf5Record record;
    while (child_read(r->child, &record, sizeof record) &&
           is_good(r, &record)) {
        bool in_place = record.kind == HDF5_IN_PLACE;
        const char *name = read_text(r, record.name_len);
        const char *text = name && !in_place ? read_text(r, record.bytes) : "";
        if (!name || !text)
            break;
        if (record.kind == HDF5_END || record.kind == HDF5_DAMAGED)
            return record.kind;
        accept(r, &record, name, text);
    }
    return HDF5_DAMAGED;
}

bool keras_hdf5(Keras *k, const char *path, Bytes bytes, const char **config) {
    static const Module module = {HDF5_MODULE_BUILT, HDF5_MODULE_INSTALLED,
                                  "no HDF5", "hdf5_module"};
    const Hdf5Module *hdf5 = module_load(k->net.diag, &module);
    if (!hdf5)
        return false;
    Hdf5Ask ask = {bytes, keras_most(bytes.len), config != NULL};
    ChildLimits limits = keras_limits("libhdf5", bytes);
    Reader r = {.k = k, .bytes = bytes, .path = path ? path : k->net.path};
    r.child = child_start(k->net.arena, &limits, hdf5->work, &ask);
    Hdf5Kind end = read_records(&r);
    k->weights.file = r.path;
    if (!child_end(r.child, k->net.diag, (Loc){r.path, 0, 0}))
        return false;
    if (end != HDF5_END && !r.wrong)
        diag_error(k->net.diag, (Loc){r.path, 0, 0},
                   "the HDF5 in it is damaged");
    if (config)
        *config = r.config;
    return end == HDF5_END && !r.wrong;
}

#else

bool keras_hdf5(Keras *k, const char *path, Bytes bytes, const char **config) {
    (void)path;
    (void)bytes;
    (void)config;
    diag_error(k->net.diag, (Loc){k->net.path, 0, 0},
               "this amphora was built without libhdf5, which .h5 and .keras "
               "need");
    return false;
}

#endif
