/* weights.c - constants of layers from a .caffemodel.
 *
 * In: a binary NetParameter whose layers hold blobs. Out: a Const for each
 * blob that is asked for. Blobs are found by the layer's name; layers of the
 * file that the network lacks are passed over, as Caffe does. Packed float32
 * data (what Caffe writes) stays in the mapped file; unpacked floats and
 * doubles are converted into the arena.
 */
#include "frontends/caffe/caffe.h"

#include "frontends/proto/wire.h"

#include <string.h>

/* Field numbers of NetParameter, its layers, and BlobProto. */
enum {
    NET_V1_LAYERS = 2,
    NET_LAYER = 100,
    V1_NAME = 4,
    V1_BLOBS = 6,
    LAYER_NAME = 1,
    LAYER_BLOBS = 7,
    BLOB_WIDTH = 4, /* 1 to 4: num, channels, height, width */
    BLOB_DATA = 5,
    BLOB_SHAPE = 7,
    BLOB_DOUBLE_DATA = 8,
    SHAPE_DIM = 1,
};

/* ---- which layer has which blobs ---- */

typedef struct Stored {
    uint32_t n;
    Bytes *blob;
} Stored;

typedef struct Finder {
    Caffe *c;
    Map *index; /* layer's name -> its entry in `stored` */
    VEC(Stored) stored;
} Finder;

/* The name and blobs of one layer; numbers differ between the two kinds. */
static bool read_layer(Finder *finder, WireReader *reader, uint32_t name_field,
                       uint32_t blobs_field) {
    Arena *arena = finder->c->arena;
    const char *name = "";
    VEC(Bytes) blob = {0};
    for (WireField f; wire_next(reader, &f);) {
        if (f.number == name_field && f.type == WIRE_BYTES)
            name = arena_strndup(arena, (const char *)f.bytes.at, f.bytes.len);
        else if (f.number == blobs_field && f.type == WIRE_BYTES)
            vec_push(arena, &blob, f.bytes);
    }
    if (reader->error)
        return false;
    if (blob.n) {
        map_put(finder->index, name, finder->stored.n);
        vec_push(arena, &finder->stored, ((Stored){blob.n, blob.at}));
    }
    return true;
}

static bool read_net(Finder *finder, Bytes file, const char *path) {
    WireReader reader = wire_open(file);
    uint32_t layers = 0;
    for (WireField f; wire_next(&reader, &f);) {
        bool v1 = f.number == NET_V1_LAYERS;
        if ((!v1 && f.number != NET_LAYER) || f.type != WIRE_BYTES)
            continue;
        layers++;
        WireReader inner = wire_enter(&reader, &f);
        if (!read_layer(finder, &inner, v1 ? V1_NAME : LAYER_NAME,
                        v1 ? V1_BLOBS : LAYER_BLOBS)) {
            wire_report(&inner, finder->c->diag, path);
            return false;
        }
    }
    if (reader.error)
        wire_report(&reader, finder->c->diag, path);
    else if (!layers)
        diag_error(finder->c->diag, (Loc){path, 0, 0},
                   "not a .caffemodel: it holds no layers");
    return !reader.error && layers;
}

/* HDF5's signature: the other form in which Caffe stores weights. */
static bool is_hdf5(Bytes file) {
    return file.len >= 8 && !memcmp(file.at, "\x89HDF\r\n\x1a\n", 8);
}

static void hand_out(Caffe *c, Finder *finder) {
    for (uint32_t i = 0; i < c->layer.n; i++) {
        CaffeLayer *layer = &c->layer.at[i];
        uint32_t k = map_get(finder->index, layer->name, NONE);
        if (k == NONE || !layer->message)
            continue;
        layer->n_blobs = finder->stored.at[k].n;
        layer->blob = finder->stored.at[k].blob;
    }
}

bool caffe_find_weights(Caffe *c, Bytes file) {
    const char *path = c->options->weights;
    Finder finder = {.c = c, .index = map_new(c->arena)};
    if (!path && !c->net->loc.line)
        path = c->path;
    else if (!path)
        return true;
    else if (!file_read(c->arena, c->diag, path, &file))
        return false;
    if (is_hdf5(file)) {
        diag_error(c->diag, (Loc){path, 0, 0},
                   "weights in HDF5 are not read: save a .caffemodel");
        return false;
    }
    if (!read_net(&finder, file, path))
        return false;
    /* A network without any blobs is a description in binary form. */
    if (finder.stored.n || c->options->weights) {
        c->weights_file = path;
        c->weights_start = file.at;
        hand_out(c, &finder);
    }
    return true;
}

/* ---- one blob ---- */

typedef struct Blob {
    Shape shape;
    uint64_t floats, doubles; /* values in all occurrences of the fields */
    uint32_t pieces;          /* occurrences of packed floats */
    Bytes last;               /* of these */
} Blob;

static bool read_dims(Blob *blob, const WireReader *outer,
                      const WireField *field) {
    WireReader reader = wire_enter(outer, field);
    blob->shape.rank = 0;
    for (WireField f; wire_next(&reader, &f);) {
        if (f.number != SHAPE_DIM)
            continue;
        WireScalars dims = wire_scalars(&f, WIRE_VARINT);
        for (uint64_t dim; wire_scalar(&dims, &dim);) {
            if (blob->shape.rank == SHAPE_MAX_RANK || dim > INT32_MAX)
                return false;
            blob->shape.dim[blob->shape.rank++] = (uint32_t)dim;
        }
        if (dims.reader.error)
            return false;
    }
    return !reader.error;
}

/* Shapes, and how many values there are. */
static bool measure_field(Blob *blob, const WireReader *reader,
                          const WireField *f) {
    uint64_t n;
    if (f->number >= 1 && f->number <= BLOB_WIDTH && f->type == WIRE_VARINT) {
        blob->shape.rank = BLOB_WIDTH;
        blob->shape.dim[f->number - 1] = (uint32_t)f->value;
        return f->value <= INT32_MAX;
    }
    if (f->number == BLOB_SHAPE && f->type == WIRE_BYTES)
        return read_dims(blob, reader, f);
    if (f->number == BLOB_DATA) {
        if (!wire_count(f, WIRE_FIXED32, &n))
            return false;
        blob->floats += n;
        blob->pieces += f->type == WIRE_BYTES;
        if (f->type == WIRE_BYTES)
            blob->last = f->bytes;
    }
    if (f->number == BLOB_DOUBLE_DATA) {
        if (!wire_count(f, WIRE_FIXED64, &n))
            return false;
        blob->doubles += n;
    }
    return true;
}

static bool measure(Blob *blob, Bytes bytes) {
    WireReader reader = wire_open(bytes);
    for (WireField f; wire_next(&reader, &f);)
        if (!measure_field(blob, &reader, &f))
            return false;
    return !reader.error;
}

/* All values of one field, in order, as doubles. */
static const double *convert(Arena *arena, Bytes bytes, uint32_t field,
                             WireType type, uint64_t count) {
    double *out = ARENA_ARRAY(arena, double, count);
    uint64_t n = 0, bits;
    WireReader reader = wire_open(bytes);
    for (WireField f; wire_next(&reader, &f);) {
        if (f.number != field)
            continue;
        WireScalars values = wire_scalars(&f, type);
        while (wire_scalar(&values, &bits))
            out[n++] = type == WIRE_FIXED32 ? (double)wire_float(bits)
                                            : wire_double(bits);
    }
    return out;
}

static Loc blob_place(const Caffe *c, Bytes blob) {
    size_t offset = (size_t)(blob.at - c->weights_start);
    return (Loc){c->weights_file, 0,
                 offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset};
}

bool caffe_blob(Caffe *c, CaffeLayer *layer, uint32_t i, Const *out) {
    Blob blob = {0};
    if (!layer->n_blobs)
        return false;
    if (i >= layer->n_blobs)
        return caffe_error(c, layer,
                           "the weights hold %u blobs, but it needs "
                           "number %u",
                           layer->n_blobs, i + 1);
    if (layer->used_blobs < i + 1)
        layer->used_blobs = i + 1;
    Bytes bytes = layer->blob[i];
    Loc loc = blob_place(c, bytes);
    if (!measure(&blob, bytes))
        return caffe_error_at(c, layer, loc, "blob %u is damaged", i);
    uint64_t count = blob.floats ? blob.floats : blob.doubles;
    if (shape_count(&blob.shape) != count)
        return caffe_error_at(
            c, layer, loc, "blob %u has %llu values for a shape of %s", i,
            (unsigned long long)count, shape_text(c->arena, &blob.shape));
    *out = (Const){.shape = blob.shape, .kind = CONST_F64};
    if (blob.pieces == 1 && blob.last.len == 4 * blob.floats) {
        out->kind = CONST_F32;
        out->data = blob.last.at;
    } else if (blob.floats) {
        out->data = convert(c->arena, bytes, BLOB_DATA, WIRE_FIXED32, count);
    } else {
        out->data =
            convert(c->arena, bytes, BLOB_DOUBLE_DATA, WIRE_FIXED64, count);
    }
    return true;
}

/* Equal but for dims of 1: old files store a vector as 1x1x1xN. */
static bool same_but_ones(const Shape *a, const Shape *b) {
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < a->rank && a->dim[i] == 1)
            i++;
        while (k < b->rank && b->dim[k] == 1)
            k++;
        if (i == a->rank || k == b->rank)
            return i == a->rank && k == b->rank;
        if (a->dim[i++] != b->dim[k++])
            return false;
    }
}

bool caffe_use_blob(Caffe *c, CaffeLayer *layer, NodeId node, ConstRole role,
                    uint32_t i) {
    Const value;
    Shape want;
    if (!layer->n_blobs && c->weights_file && i == 0)
        diag_warning(c->diag, layer->loc,
                     "layer \"%s\": no weights in %s; seeded ones are used",
                     layer->name, c->weights_file);
    if (!layer->n_blobs)
        return true;
    if (!caffe_blob(c, layer, i, &value))
        return false;
    if (!graph_const_shape(c->graph, node, role, &want))
        bug("a constant that its operator does not have");
    if (!same_but_ones(&value.shape, &want))
        return caffe_error_at(
            c, layer, blob_place(c, layer->blob[i]),
            "its %s has shape %s in the weights, not %s", const_role_name[role],
            shape_text(c->arena, &value.shape), shape_text(c->arena, &want));
    value.shape = want;
    graph_node(c->graph, node)->constant[role] =
        graph_add_const(c->graph, value);
    return true;
}
