/* keras_zip.c - files within a .keras, which is a zip archive, through libzip.
 * Keras packs nothing: such files are given as they lie in the archive. One
 * that claims to be far larger than its packed bytes is refused before anything
 * is allocated. */
#include "frontends/keras.h"

#include <string.h>

bool keras_is_zip(Bytes bytes) {
    return bytes.len >= 4 && !memcmp(bytes.at, "PK\x03\x04", 4);
}

static bool fail(Keras *k, const char *name, const char *what) {
    diag_error(k->net.diag, (Loc){k->net.path, 0, 0}, "\"%s\" %s", name, what);
    return false;
}

bool keras_can_hold(uint64_t packed, uint64_t bytes) {
    const uint64_t free_of_charge = 64 << 20, most_ratio = 64;
    return bytes <= free_of_charge || bytes / most_ratio <= packed;
}

#ifdef HAVE_ZIP

#include <zip.h>

enum { CENTRAL = 0x02014b50, LOCAL = 0x04034b50, END = 0x06054b50 };
enum { CENTRAL_SIZE = 46, LOCAL_SIZE = 30, END_SIZE = 22 };

static uint32_t two(const uint8_t *at) {
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t four(const uint8_t *at) {
    return two(at) | two(at + 2) << 16;
}

/* The record of that kind and size at an offset, or NULL. */
static const uint8_t *record(Bytes zip, uint64_t at, uint64_t size,
                             uint32_t kind) {
    return at <= zip.len && size <= zip.len - at && four(zip.at + at) == kind
               ? zip.at + at
               : NULL;
}

/* The record at the end, behind which a comment may stand. */
static const uint8_t *find_end(Bytes zip) {
    const uint8_t *end = NULL;
    for (uint64_t n = END_SIZE; !end && n <= zip.len && n <= UINT16_MAX; n++)
        end = record(zip, zip.len - n, END_SIZE, END);
    return end;
}

/* Where a file that is not packed lies: libzip does not tell. Whatever is not
 * plain (archives in parts, of more than 4 GB) is left to libzip. */
static const uint8_t *find_stored(Bytes zip, const zip_stat_t *info) {
    const uint8_t *end = find_end(zip);
    const uint8_t *entry = NULL, *local;
    uint64_t at = end ? four(end + 16) : zip.len;
    if (info->comp_method != ZIP_CM_STORE || info->encryption_method)
        return NULL;
    for (uint64_t i = 0; i <= info->index; i++) {
        entry = record(zip, at, CENTRAL_SIZE, CENTRAL);
        if (!entry)
            return NULL;
        at +=
            CENTRAL_SIZE + two(entry + 28) + two(entry + 30) + two(entry + 32);
    }
    local = record(zip, four(entry + 42), LOCAL_SIZE, LOCAL);
    if (!local)
        return NULL;
    at = (uint64_t)(local - zip.at) + LOCAL_SIZE + two(local + 26) +
         two(local + 28);
    bool inside = at <= zip.len && info->size <= zip.len - at;
    return inside && four(entry + 24) == info->size ? zip.at + at : NULL;
}

static bool read_all(Keras *k, zip_t *archive, const zip_stat_t *info,
                     const char *name, Bytes *out) {
    zip_file_t *file = zip_fopen_index(archive, info->index, 0);
    if (!file)
        return fail(k, name, "cannot be read from the archive");
    uint8_t *at = arena_alloc(k->net.arena, info->size + 1, 8);
    zip_int64_t got = zip_fread(file, at, info->size);
    zip_fclose(file);
    *out = (Bytes){at, info->size};
    return (got >= 0 && (uint64_t)got == info->size) ||
           fail(k, name, "cannot be read from the archive");
}

static bool read_stored(Bytes zip, const zip_stat_t *info, Bytes *out) {
    *out = (Bytes){find_stored(zip, info), info->size};
    return out->at != NULL;
}

bool keras_unzip(Keras *k, Bytes bytes, const char *name, Bytes *out) {
    zip_error_t error;
    zip_stat_t info;
    zip_error_init(&error);
    zip_source_t *source =
        zip_source_buffer_create(bytes.at, bytes.len, 0, &error);
    zip_t *archive =
        source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
    if (!archive) {
        zip_source_free(source);
        return fail(k, k->net.path, "is a damaged zip archive");
    }
    bool good = zip_stat(archive, name, 0, &info) == 0;
    if (!good)
        fail(k, name, "is not in the archive");
    else if (info.comp_size > bytes.len ||
             !keras_can_hold(info.comp_size, info.size))
        good = fail(k, name, "claims more bytes than its packed ones can hold");
    else
        good = read_stored(bytes, &info, out) ||
               read_all(k, archive, &info, name, out);
    zip_discard(archive);
    return good;
}

#else

bool keras_unzip(Keras *k, Bytes bytes, const char *name, Bytes *out) {
    (void)bytes;
    (void)out;
    return fail(k, name,
                "cannot be unpacked: this amphora was built without "
                "libzip");
}

#endif
