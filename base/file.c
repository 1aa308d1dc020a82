/* file.c - whole files in and out; see file.h. */
#define _XOPEN_SOURCE 700 /* realpath */

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t PIPE_MOST = (size_t)1 << 32; /* bytes */

static bool fail(Diag *diag, const char *path, const char *what) {
    diag_error(diag, (Loc){path, 0, 0}, "%s: %s", what, strerror(errno));
    return false;
}

/* A pipe, to its end. */
static bool read_pipe(Arena *arena, Diag *diag, const char *path, int fd,
                      Bytes *out) {
    size_t cap = 1 << 16, len = 0;
    uint8_t *at = arena_alloc(arena, cap, 1);
    for (;;) {
        ssize_t got = read(fd, at + len, cap - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(diag, path, "cannot read");
        if (!got)
            break;
        len += (size_t)got;
        if (len == PIPE_MOST) {
            diag_error(diag, (Loc){path, 0, 0},
                       "cannot read: more than 4 GiB through a pipe");
            return false;
        }
        if (len == cap) {
            uint8_t *bigger = arena_alloc(arena, cap * 2, 1);
            memcpy(bigger, at, len);
            at = bigger;
            cap *= 2;
        }
    }
    *out = (Bytes){at, len};
    return true;
}

static bool map_file(Diag *diag, const char *path, int fd, Bytes *out) {
    struct stat info;
    if (fstat(fd, &info))
        return fail(diag, path, "cannot read");
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return fail(diag, path, "cannot read");
    }
    if (!S_ISREG(info.st_mode)) {
        diag_error(diag, (Loc){path, 0, 0}, "cannot read: not a regular file");
        return false;
    }
    diag_input(diag, info.st_dev, info.st_ino);
    *out = (Bytes){(const uint8_t *)"", (size_t)info.st_size};
    if (!out->len)
        return true;
    void *at = mmap(NULL, out->len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return fail(diag, path, "cannot map");
    out->at = at;
    return true;
}

/* /dev/stdin, and what <(command) of a shell stands for. Pipes that lie about
 * elsewhere, or that a network file names, may wait for ever. */
static bool is_pipe(const char *path) {
    struct stat info;
    return (!strcmp(path, "/dev/stdin") || !strncmp(path, "/dev/fd/", 8)) &&
           !stat(path, &info) && S_ISFIFO(info.st_mode);
}

static bool read_named_pipe(Arena *arena, Diag *diag, const char *path,
                            Bytes *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(diag, path, "cannot open");
    bool ok = read_pipe(arena, diag, path, fd, out);
    close(fd);
    return ok;
}

bool file_read(Arena *arena, Diag *diag, const char *path, Bytes *out) {
    if (!strcmp(path, "-"))
        return read_pipe(arena, diag, "stdin", STDIN_FILENO, out);
    if (is_pipe(path))
        return read_named_pipe(arena, diag, path, out);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail(diag, path, "cannot open");
    bool ok = map_file(diag, path, fd, out);
    close(fd);
    return ok;
}

static bool goes_down(const char *name) {
    if (!*name || *name == '/' || strchr(name, '\\'))
        return false;
    for (const char *at = name; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (!strncmp(at, "..", 2) && (at[2] == '/' || !at[2]))
            return false;
    }
    return true;
}

const char *file_inside(Arena *arena, const char *dir, const char *name) {
    char folder[PATH_MAX], real[PATH_MAX];
    const char *path = arena_printf(arena, "%s/%s", dir, name);
    if (!goes_down(name))
        return NULL;
    if (!realpath(dir, folder) || !realpath(path, real))
        return path;
    size_t n = strlen(folder);
    n -= n > 0 && folder[n - 1] == '/';
    bool inside = !strncmp(folder, real, n) && real[n] == '/';
    return inside ? path : NULL;
}

static bool write_all(int fd, const void *data, size_t len) {
    const char *at = data;
    while (len) {
        ssize_t wrote = write(fd, at, len);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        at += wrote;
        len -= (size_t)wrote;
    }
    return true;
}

typedef struct Output {
    int fd, error; /* the first errno, or 0 */
} Output;

static void put(void *context, const char *bytes, size_t len) {
    Output *out = context;
    if (!out->error && !write_all(out->fd, bytes, len))
        out->error = errno;
}

/* Writes and closes `fd`; 0 or the first errno. */
static int write_and_close(int fd, const FilePart *part) {
    Output out = {.fd = fd};
    if (part->write) {
        Arena *scratch = arena_new("a file");
        Text text = text_into(scratch, put, &out);
        part->write(&text, part->context);
        text_end(&text);
        arena_free(scratch);
    } else {
        put(&out, part->data, part->len);
    }
    if (close(fd) && !out.error)
        out.error = errno;
    return out.error;
}

/* mkstemp gives 0600; a result has the mode of any new file. */
static int open_temporary(char *path) {
    int fd = mkstemp(path);
    mode_t mask = umask(0);
    umask(mask);
    if (fd >= 0 && fchmod(fd, 0666 & ~mask)) {
        close(fd);
        unlink(path);
        return -1;
    }
    return fd;
}

/* Renaming would replace a device or a pipe such as /dev/null by a file. */
static bool is_special(const char *path) {
    struct stat info;
    return !stat(path, &info) && !S_ISREG(info.st_mode) &&
           !S_ISDIR(info.st_mode);
}

static int write_special(const FilePart *part) {
    int fd = open(part->path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? errno : write_and_close(fd, part);
}

/* Everything that can fail but the renaming: no rename takes a folder's place,
 * so that is found here. */
static int prepare(Arena *arena, const FilePart *part, char **temporary) {
    struct stat info;
    if (!stat(part->path, &info) && S_ISDIR(info.st_mode))
        return EISDIR;
    char *path = arena_printf(arena, "%s.XXXXXX", part->path);
    int fd = open_temporary(path);
    if (fd < 0)
        return errno;
    *temporary = path;
    return write_and_close(fd, part);
}

static int finish(const FilePart *part, const char *temporary) {
    if (!temporary)
        return write_special(part);
    return rename(temporary, part->path) ? errno : 0;
}

/* False, with an error, where one of them was read. */
static bool none_was_read(Diag *diag, uint32_t n, const FilePart *part) {
    struct stat info;
    for (uint32_t i = 0; i < n; i++)
        if (!stat(part[i].path, &info) && S_ISREG(info.st_mode) &&
            diag_is_input(diag, info.st_dev, info.st_ino)) {
            diag_error(diag, (Loc){part[i].path, 0, 0},
                       "not written: it would replace a file that was read; "
                       "-o names another place");
            return false;
        }
    return true;
}

static bool write_parts(Arena *arena, Diag *diag, uint32_t n,
                        const FilePart *part) {
    char **temporary = ARENA_ARRAY(arena, char *, n);
    uint32_t failed = 0;
    int error = 0;
    for (uint32_t i = 0; i < n && !error; failed = i++)
        if (!is_special(part[i].path))
            error = prepare(arena, &part[i], &temporary[i]);
    for (uint32_t i = 0; i < n && !error; failed = i++)
        error = finish(&part[i], temporary[i]);
    if (!error)
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (temporary[i])
            unlink(temporary[i]);
    errno = error;
    return fail(diag, part[failed].path, "cannot write");
}

bool file_write_all(Arena *arena, Diag *diag, uint32_t n,
                    const FilePart *part) {
    return none_was_read(diag, n, part) && write_parts(arena, diag, n, part);
}

bool file_replace(Arena *arena, Diag *diag, const char *path, const void *data,
                  size_t len) {
    const FilePart part = {.path = path, .data = data, .len = len};
    return write_parts(arena, diag, 1, &part);
}

bool file_write(Arena *arena, Diag *diag, const char *path, const void *data,
                size_t len) {
    const FilePart part = {.path = path, .data = data, .len = len};
    return file_write_all(arena, diag, 1, &part);
}

bool file_make_dir(Arena *arena, Diag *diag, const char *path) {
    char *part = arena_strdup(arena, path);
    for (char *at = part + 1;; at++) {
        bool last = !*at;
        if (!last && *at != '/')
            continue;
        *at = '\0';
        if (mkdir(part, 0777) && errno != EEXIST)
            return fail(diag, path, "cannot make the folder");
        if (last)
            break;
        *at = '/';
    }
    struct stat info;
    if (!stat(path, &info) && S_ISDIR(info.st_mode))
        return true;
    errno = ENOTDIR;
    return fail(diag, path, "cannot make the folder");
}

bool file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

const char *file_stem(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t len = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    return arena_strndup(arena, name, len);
}

const char *file_dir(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return slash == path ? "/"
                         : arena_strndup(arena, path, (size_t)(slash - path));
}
