/* file.h - whole files in and out.
 *
 * Reading maps the file; writing goes to a temporary name in the same folder
 * and is renamed, so that a run that is killed, or a full disk, leaves nothing
 * half written.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/diag.h"
#include "base/text.h"

typedef struct Bytes {
    const uint8_t *at;
    size_t len;
} Bytes;

/* Maps `path` read-only; it stays mapped until the program ends. "-" reads
 * stdin. Reports an error (missing, a directory, unreadable) and returns false
 * otherwise. An empty file gives len 0. */
bool file_read(Arena *arena, Diag *diag, const char *path, Bytes *out);

/* The path of the file that a model names as lying in its folder `dir`, or in
 * one below; NULL if it lies elsewhere: `name` is absolute, has a part "..", or
 * leads out by a symbolic link. What does not exist is left for file_read. */
const char *file_inside(Arena *arena, const char *dir, const char *name);

/* Writes `len` bytes to `path`, all or nothing, but not over a file that was
 * read with `diag`. Devices and pipes are written as they are. A size limit
 * (ulimit -f) is reported like a full disk where SIGXFSZ is ignored, which main
 * must see to. */
bool file_write(Arena *arena, Diag *diag, const char *path, const void *data,
                size_t len);

/* The same, also over a file that was read: results that a later run goes on
 * with. */
bool file_replace(Arena *arena, Diag *diag, const char *path, const void *data,
                  size_t len);

/* Several files, none of which is of use without the others: if one cannot be
 * written, none is. */
typedef struct FilePart {
    const char *path;
    const void *data;
    size_t len;
    /* or NULL; else, instead of data: writes it as it comes */
    void (*write)(Text *out, const void *context);
    const void *context;
} FilePart;
bool file_write_all(Arena *arena, Diag *diag, uint32_t n, const FilePart *part);

/* Creates a folder and its parents where missing. */
bool file_make_dir(Arena *arena, Diag *diag, const char *path);

/* True if `path` names something that exists. */
bool file_exists(const char *path);

/* The last component without its suffix: "a/b/net.prototxt" -> "net". */
const char *file_stem(Arena *arena, const char *path);

/* The folder of `path` with no slash at its end; "." if it names none. */
const char *file_dir(Arena *arena, const char *path);

#endif
