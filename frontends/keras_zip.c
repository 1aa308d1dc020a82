/* keras_zip.c - files within a .keras, which is a zip archive, through libzip.
 * A file that claims to be far larger than its packed bytes is refused before
 * anything is allocated. */
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
        good = read_all(k, archive, &info, name, out);
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
