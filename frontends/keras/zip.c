/* zip.c - files within a .keras, which is a zip archive.
 *
 * Keras packs nothing: such files are given as they lie in the archive. Packed
 * ones are unpacked by libzip in a process of its own. One that claims to be
 * far larger than its packed bytes is refused before anything is allocated. */
#include "frontends/keras/keras.h"

#include <string.h>

bool keras_is_zip(Bytes bytes) {
    return bytes.len >= 4 && !memcmp(bytes.at, "PK\x03\x04", 4);
}

static bool fail(Keras *k, const char *name, const char *what) {
    diag_error(k->net.diag, (Loc){k->net.path, 0, 0}, "\"%s\" %s", name, what);
    return false;
}

uint64_t keras_most(uint64_t packed) {
    const uint64_t free_of_charge = 64 << 20, most_ratio = 64;
    uint64_t most = packed * most_ratio;
    return most > free_of_charge ? most : free_of_charge;
}

/* Files of a few KB take milliseconds; unpacking is faster than 4 MB of packed
 * bytes in a second on any machine, with sanitizers as well. */
ChildLimits keras_limits(const char *who, Bytes bytes) {
    return (ChildLimits){.who = who,
                         .seconds = 2 + (uint32_t)(bytes.len >> 22),
                         .bytes = (256 << 20) + keras_most(bytes.len)};
}

/* ---- what is not packed ---- */

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

/* The entry of a file in the directory of the archive; NULL: none is seen. */
static const uint8_t *find_entry(Bytes zip, const char *name) {
    const uint8_t *end = find_end(zip), *entry;
    uint64_t at = end ? four(end + 16) : zip.len;
    size_t len = strlen(name);
    while ((entry = record(zip, at, CENTRAL_SIZE, CENTRAL))) {
        uint32_t name_len = two(entry + 28);
        if (name_len == len && len <= zip.len - at - CENTRAL_SIZE &&
            !memcmp(entry + CENTRAL_SIZE, name, len))
            break;
        at += CENTRAL_SIZE + name_len + two(entry + 30) + two(entry + 32);
    }
    return entry;
}

/* Where a file that is not packed lies. Whatever is not plain (archives in
 * parts, of more than 4 GB) is left to libzip. */
static bool read_stored(Bytes zip, const char *name, Bytes *out) {
    const uint8_t *entry = find_entry(zip, name);
    bool encrypted = entry && (entry[8] & 1), packed = entry && two(entry + 10);
    const uint8_t *local =
        entry ? record(zip, four(entry + 42), LOCAL_SIZE, LOCAL) : NULL;
    if (!local || encrypted || packed || four(entry + 20) != four(entry + 24))
        return false;
    uint64_t at = (uint64_t)(local - zip.at) + LOCAL_SIZE + two(local + 26) +
                  two(local + 28);
    *out = (Bytes){zip.at + at, four(entry + 24)};
    return at <= zip.len && out->len <= zip.len - at;
}

/* ---- what is packed ---- */

#ifdef HAVE_ZIP

#include <zip.h>

typedef struct ZipAsk {
    Bytes zip;
    const char *name;
} ZipAsk;

/* What comes before the bytes. */
typedef struct ZipAnswer {
    enum { FOUND, DAMAGED, ABSENT, BOMB } kind;
    uint64_t bytes;
} ZipAnswer;

static ZipAnswer look(const ZipAsk *ask, zip_t *archive, zip_stat_t *info) {
    if (!archive)
        return (ZipAnswer){.kind = DAMAGED};
    if (zip_stat(archive, ask->name, 0, info))
        return (ZipAnswer){.kind = ABSENT};
    if (info->comp_size > ask->zip.len ||
        info->size > keras_most(info->comp_size))
        return (ZipAnswer){.kind = BOMB};
    return (ZipAnswer){.kind = FOUND, .bytes = info->size};
}

/* In the child: the answer, and as many bytes of the file as can be had. */
static void zip_work(int to, void *context) {
    const ZipAsk *ask = context;
    zip_stat_t info;
    char part[1 << 14];
    zip_int64_t got;
    zip_source_t *source =
        zip_source_buffer_create(ask->zip.at, ask->zip.len, 0, NULL);
    zip_t *archive =
        source ? zip_open_from_source(source, ZIP_RDONLY, NULL) : NULL;
    ZipAnswer answer = look(ask, archive, &info);
    child_write(to, &answer, sizeof answer);
    zip_file_t *file = answer.kind == FOUND
                           ? zip_fopen_index(archive, info.index, 0)
                           : NULL;
    while (file && (got = zip_fread(file, part, sizeof part)) > 0)
        child_write(to, part, (size_t)got);
}

static const char damaged[] = "is a damaged zip archive";

/* NULL: all of it was read. */
static const char *read_answer(Keras *k, Child *child, uint64_t most,
                               Bytes *out) {
    ZipAnswer answer;
    if (!child_read(child, &answer, sizeof answer) || answer.kind == DAMAGED)
        return damaged;
    if (answer.kind == ABSENT)
        return "is not in the archive";
    if (answer.kind == BOMB || answer.bytes > most)
        return "claims more bytes than its packed ones can hold";
    uint8_t *at = arena_alloc_raw(k->net.arena, answer.bytes + 1, 8);
    *out = (Bytes){at, answer.bytes};
    return child_read(child, at, answer.bytes)
               ? NULL
               : "cannot be read from the archive";
}

static bool read_packed(Keras *k, Bytes zip, const char *name, Bytes *out) {
    ZipAsk ask = {zip, name};
    ChildLimits limits = keras_limits("libzip", zip);
    Child *child = child_start(k->net.arena, &limits, zip_work, &ask);
    const char *wrong = read_answer(k, child, keras_most(zip.len), out);
    if (!child_end(child, k->net.diag, (Loc){k->net.path, 0, 0}))
        return false;
    return !wrong || fail(k, wrong == damaged ? k->net.path : name, wrong);
}

#else

static bool read_packed(Keras *k, Bytes zip, const char *name, Bytes *out) {
    (void)zip;
    (void)out;
    return fail(k, name,
                "cannot be unpacked: this amphora was built without "
                "libzip");
}

#endif

bool keras_unzip(Keras *k, Bytes archive, const char *name, Bytes *out) {
    return read_stored(archive, name, out) ||
           read_packed(k, archive, name, out);
}
