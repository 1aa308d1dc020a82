/* bundle.c - see bundle.h.
 *
 * The .index is a table of blocks: its last 48 bytes say where the block is
 * that says where the others are. A block is a row of entries, each with the
 * bytes that its key has in common with the key before; an array of places to
 * start at (which a reader from the start does not need), a byte for the
 * compression, and a checksum. Values are protobuf messages.
 */
#include "frontends/tensorflow/bundle.h"

#include "base/crc.h"
#include "base/map.h"
#include "base/vec.h"
#include "frontends/proto/wire.h"

#include <string.h>

enum {
    FOOTER = 48,
    TRAILER = 5, /* behind a block: compression, checksum */
    MAX_KEY = 1 << 12,
    MAX_SHARDS = 1 << 16
};
static const uint64_t MAGIC = 0xdb4775248b80fb57;

typedef struct Entry {
    BundleValue value; /* without its bytes */
    uint64_t shard, offset, size;
    uint32_t crc;
    bool sliced;
} Entry;

struct Bundle {
    Arena *arena;
    Diag *diag;
    const char *path, *index_path;
    Bytes index;
    Map *keys;
    VEC(Entry) entry;
    uint64_t shards;
    Bytes *shard; /* at is NULL: not read yet */
};

/* A row of bytes that is read from its start. */
typedef struct Row {
    const uint8_t *at, *end;
} Row;

typedef struct Handle {
    uint64_t offset, size;
} Handle;

static bool fail(const Bundle *b, const uint8_t *at, const char *what) {
    size_t offset = at ? (size_t)(at - b->index.at) : 0;
    diag_error(b->diag,
               (Loc){b->index_path, 0,
                     offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset},
               "%s", what);
    return false;
}

static uint64_t little(const uint8_t *at, uint32_t n) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < n; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static bool varint(Row *row, uint64_t *out) {
    *out = 0;
    for (uint32_t shift = 0; row->at < row->end && shift < 64; shift += 7) {
        uint8_t byte = *row->at++;
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Checksums are stored turned and shifted by a constant. */
static bool is_checksum(uint32_t stored, const uint8_t *at, uint64_t n) {
    uint32_t crc = crc32c_of(at, n);
    return stored == (crc >> 15 | crc << 17) + 0xa282ead8;
}

/* ---- blocks ---- */

static bool read_handle(Row *row, Handle *out) {
    return varint(row, &out->offset) && varint(row, &out->size);
}

/* The entries of a block, without what stands behind them. */
static bool open_block(const Bundle *b, Handle handle, Row *out) {
    uint64_t room = b->index.len - FOOTER;
    if (handle.offset > room || handle.size > room - handle.offset ||
        room - handle.offset - handle.size < TRAILER || handle.size < 4)
        return fail(b, NULL, "a block lies outside of the file");
    const uint8_t *at = b->index.at + handle.offset, *end = at + handle.size;
    if (!is_checksum((uint32_t)little(end + 1, 4), at, handle.size + 1))
        return fail(b, at, "a block is damaged: its checksum differs");
    if (*end)
        return fail(b, end, "compressed blocks are not supported");
    uint64_t restarts = little(end - 4, 4);
    if (restarts > (handle.size - 4) / 4)
        return fail(b, end - 4, "a block has more restarts than bytes");
    *out = (Row){at, end - 4 - 4 * restarts};
    return true;
}

typedef bool OnEntry(Bundle *b, const char *key, Bytes value);

static bool read_block(Bundle *b, Handle handle, OnEntry *on_entry) {
    char key[MAX_KEY + 1];
    uint64_t had = 0, shared, fresh, size;
    Row row;
    if (!open_block(b, handle, &row))
        return false;
    while (row.at < row.end) {
        const uint8_t *from = row.at;
        if (!varint(&row, &shared) || !varint(&row, &fresh) ||
            !varint(&row, &size) || shared > had ||
            fresh > (uint64_t)(row.end - row.at) ||
            size > (uint64_t)(row.end - row.at) - fresh)
            return fail(b, from, "an entry is longer than its block");
        if (shared + fresh > MAX_KEY)
            return fail(b, from, "a key has more than 4096 bytes");
        memcpy(key + shared, row.at, fresh);
        had = shared + fresh;
        key[had] = '\0';
        row.at += fresh + size;
        if (!on_entry(b, key, (Bytes){row.at - size, size}))
            return false;
    }
    return true;
}

/* ---- entries ---- */

/* The reader of a message in the file, so that its places are the file's. */
static WireReader reader_of(const Bundle *b, Bytes bytes) {
    WireReader reader = wire_open(bytes);
    reader.file = b->index.at;
    return reader;
}

static bool finished(const Bundle *b, const WireReader *reader) {
    if (reader->error)
        wire_report(reader, b->diag, b->index_path);
    return !reader->error;
}

static bool read_header(Bundle *b, Bytes value) {
    WireReader reader = reader_of(b, value);
    bool big = false;
    for (WireField f; wire_next(&reader, &f);) {
        if (f.number == 1)
            b->shards = f.value;
        big |= f.number == 2 && f.value;
    }
    if (big)
        return fail(b, value.at,
                    "values with high bytes first are not "
                    "supported");
    if (!b->shards || b->shards > MAX_SHARDS)
        return fail(b, value.at, "its number of files makes no sense");
    b->shard = ARENA_ARRAY(b->arena, Bytes, b->shards);
    return finished(b, &reader);
}

static Shape read_shape(WireReader reader) {
    Shape shape = {0};
    for (WireField dim, size; wire_next(&reader, &dim);) {
        WireReader inner = wire_enter(&reader, &dim);
        if (dim.number != 2 || dim.type != WIRE_BYTES)
            continue;
        if (shape.rank == SHAPE_MAX_RANK)
            return (Shape){1, {0}};
        while (wire_next(&inner, &size))
            if (size.number == 1 && size.value <= INT32_MAX)
                shape.dim[shape.rank] = (uint32_t)size.value;
        shape.rank++;
    }
    return shape;
}

static bool read_entry(Bundle *b, const char *key, Bytes value) {
    WireReader reader = reader_of(b, value);
    Entry e = {.value = {.bytes = {NULL, 0}}};
    if (!*key)
        return read_header(b, value);
    for (WireField f; wire_next(&reader, &f);)
        switch (f.number) {
        case 1:
            e.value.type = (uint32_t)f.value;
            break;
        case 2:
            if (f.type == WIRE_BYTES)
                e.value.shape = read_shape(wire_enter(&reader, &f));
            break;
        case 3:
            e.shard = f.value;
            break;
        case 4:
            e.offset = f.value;
            break;
        case 5:
            e.size = f.value;
            break;
        case 6:
            e.crc = (uint32_t)f.value;
            break;
        default:
            e.sliced |= f.number == 7;
        }
    if (!map_put(b->keys, key, b->entry.n))
        return fail(b, value.at, "a key stands there twice");
    vec_push(b->arena, &b->entry, e);
    return finished(b, &reader);
}

static bool read_part(Bundle *b, const char *key, Bytes value) {
    Row row = {value.at, value.at + value.len};
    Handle handle;
    (void)key;
    if (!read_handle(&row, &handle))
        return fail(b, value.at, "the place of a block is cut off");
    return read_block(b, handle, read_entry);
}

Bundle *bundle_open(Arena *arena, Diag *diag, const char *path) {
    Bundle *b = ARENA_NEW(arena, Bundle);
    Handle unused, index;
    *b = (Bundle){.arena = arena,
                  .diag = diag,
                  .path = path,
                  .index_path = arena_printf(arena, "%s.index", path),
                  .keys = map_new(arena)};
    if (!file_read(arena, diag, b->index_path, &b->index))
        return NULL;
    const uint8_t *end = b->index.at + b->index.len;
    if (b->index.len < FOOTER || little(end - 8, 8) != MAGIC) {
        fail(b, NULL, "not a table of variables");
        return NULL;
    }
    Row footer = {end - FOOTER, end - 8};
    if (!read_handle(&footer, &unused) || !read_handle(&footer, &index)) {
        fail(b, end - FOOTER, "the place of a block is cut off");
        return NULL;
    }
    if (!read_block(b, index, read_part))
        return NULL;
    return b->shards || fail(b, NULL, "it has no header") ? b : NULL;
}

/* ---- values ---- */

static bool read_shard(Bundle *b, uint64_t shard) {
    const char *path = arena_printf(b->arena, "%s.data-%05u-of-%05u", b->path,
                                    (unsigned)shard, (unsigned)b->shards);
    return b->shard[shard].at ||
           file_read(b->arena, b->diag, path, &b->shard[shard]);
}

bool bundle_find(Bundle *b, const char *key, BundleValue *out) {
    uint32_t i = map_get(b->keys, key, NONE);
    if (i == NONE)
        return false;
    const Entry *e = &b->entry.at[i];
    const char *what = NULL;
    if (e->sliced)
        what = "is stored in slices, which is not supported";
    else if (e->shard >= b->shards)
        what = "is in a file of values that does not exist";
    else if (!read_shard(b, e->shard))
        return false;
    else if (e->offset > b->shard[e->shard].len ||
             e->size > b->shard[e->shard].len - e->offset)
        what = "ends behind the end of its file of values";
    else if (!is_checksum(e->crc, b->shard[e->shard].at + e->offset, e->size))
        what = "is damaged: its checksum differs";
    if (what) {
        diag_error(b->diag, (Loc){b->index_path, 0, 0}, "\"%s\" %s", key, what);
        return false;
    }
    *out = e->value;
    out->bytes = (Bytes){b->shard[e->shard].at + e->offset, e->size};
    return true;
}
