/* files.c - file_read for targets: the linker turns calls of it into calls of
 * __wrap_file_read (--wrap). Shipped machines, which others are derived from,
 * are read once. Checksums of what is damaged on purpose are all 0. */
#include "fuzz.h"

#include "base/vec.h"

#include <string.h>

/* The names are the linker's. */
bool __real_file_read(Arena *arena, Diag *diag, const char *path, Bytes *out);
bool __wrap_file_read(Arena *arena, Diag *diag, const char *path, Bytes *out);
uint32_t __wrap_crc32c_of(const uint8_t *at, uint64_t n);

uint32_t __wrap_crc32c_of(const uint8_t *at, uint64_t n) {
    (void)at, (void)n;
    return 0;
}

typedef struct Shipped {
    const char *path;
    Bytes bytes;
} Shipped;

static const FuzzInput *served;
static Arena *kept;
static VEC(Shipped) shipped;

void fuzz_serve(const FuzzInput *input) {
    served = input;
}

static bool read_shipped(Arena *arena, Diag *diag, const char *path,
                         Bytes *out) {
    for (uint32_t i = 0; i < shipped.n; i++)
        if (!strcmp(shipped.at[i].path, path)) {
            *out = shipped.at[i].bytes;
            return true;
        }
    if (!__real_file_read(arena, diag, path, out))
        return false;
    kept = kept ? kept : arena_new("shipped machines");
    Shipped one = {arena_strdup(kept, path), *out};
    vec_push(kept, &shipped, one);
    return true;
}

bool __wrap_file_read(Arena *arena, Diag *diag, const char *path, Bytes *out) {
    static const char targets[] = HWSPEC_TARGETS_SOURCE "/";
    size_t len = strlen(targets);
    if (!served)
        return __real_file_read(arena, diag, path, out);
    if (!strncmp(path, targets, len) && !strchr(path + len, '/'))
        return read_shipped(arena, diag, path, out);
    bool first = !strcmp(path, served->path);
    if (!first && !served->two) {
        diag_error(diag, (Loc){path, 0, 0}, "cannot open");
        return false;
    }
    *out = first ? served->first : served->second;
    return true;
}
