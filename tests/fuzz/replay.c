/* replay.c - targets without libFuzzer: `fuzz TARGET CHANGES FOLDER...`.
 *
 * Runs each file of the folders, and so many damaged forms of it, the same ones
 * each time; files called found-* alone, as they went wrong once. The input
 * that ends the program, or takes too long, is left behind as out/fuzz/TARGET.
 */
#include "fuzz.h"

#include "base/rng.h"
#include "base/vec.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define DEATH 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DEATH 1
#endif
#endif
#ifdef DEATH
#include <sanitizer/common_interface_defs.h>
#endif

enum { SECONDS = 20, MAX_GROWTH = 1024 };

/* What runs now; data is NULL between inputs. */
static struct {
    const FuzzTarget *target;
    const uint8_t *data;
    size_t len;
} now;

static void keep(void) {
    if (!now.data)
        return;
    Arena *arena = arena_new("kept");
    Diag *diag = diag_new(arena);
    const char *path = arena_printf(arena, "out/fuzz/%s", now.target->name);
    fuzz_serve(NULL);
    file_make_dir(arena, diag, "out/fuzz");
    file_write(arena, diag, path, now.data, now.len);
    fprintf(stderr, "%s: the input is kept in %s\n", now.target->name, path);
    now.data = NULL;
}

static void too_long(int sign) {
    (void)sign;
    fprintf(stderr, "%s: %d s of a processor are over\n", now.target->name,
            SECONDS);
    keep();
    _exit(1);
}

static void run(const uint8_t *data, size_t len) {
    const struct itimerval limit = {.it_value.tv_sec = SECONDS};
    setitimer(ITIMER_PROF, &limit, NULL);
    now.data = data;
    now.len = len;
    fuzz_one(now.target, data, len);
    now.data = NULL;
}

/* ---- damage ---- */

typedef struct Draws {
    uint64_t seed, i;
} Draws;

static size_t draw(Draws *draws, size_t below) {
    return (size_t)(rng_bits(draws->seed, draws->i++) % below);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

typedef struct Damaged {
    uint8_t *at;
    size_t len;
} Damaged;

/* Room is made, or bytes are removed, at a place. */
static void splice(Damaged *t, size_t at, size_t remove, const uint8_t *add,
                   size_t n) {
    memmove(t->at + at + n, t->at + at + remove, t->len - at - remove);
    if (n)
        memcpy(t->at + at, add, n);
    t->len += n - remove;
}

static void flip(Draws *draws, Damaged *t) {
    for (size_t n = 1 + draw(draws, 7); n--;)
        t->at[draw(draws, t->len)] ^= (uint8_t)(1u << draw(draws, 8));
}

static void repeat(Draws *draws, Damaged *t, size_t at) {
    uint8_t copy[64];
    size_t n = least(t->len - at, 1 + draw(draws, sizeof copy));
    memcpy(copy, t->at + at, n);
    for (size_t times = 1 + draw(draws, 8); times--;)
        splice(t, at, 0, copy, n);
}

static void number(Draws *draws, Damaged *t, size_t at) {
    static const char *const numbers[] = {
        "0",     "-1",         "4294967296", "99999999999999999",
        "1e999", "2147483647", "0x",         "nan"};
    const char *text = numbers[draw(draws, sizeof numbers / sizeof *numbers)];
    splice(t, at, 0, (const uint8_t *)text, strlen(text));
}

static void copy_over(Draws *draws, Damaged *t, size_t at) {
    size_t from = draw(draws, t->len);
    size_t room = t->len - (at > from ? at : from);
    memmove(t->at + at, t->at + from, least(8, room));
}

/* One kind of damage; `t` has room for MAX_GROWTH more. */
static void damage(Draws *draws, Damaged *t) {
    size_t at = draw(draws, t->len);
    switch (draw(draws, 6)) {
    case 0:
        t->len = at;
        break;
    case 1:
        flip(draws, t);
        break;
    case 2:
        repeat(draws, t, at);
        break;
    case 3:
        splice(t, at, least(t->len - at, 1 + draw(draws, 63)), NULL, 0);
        break;
    case 4:
        copy_over(draws, t, at);
        break;
    default:
        number(draws, t, at);
    }
}

/* ---- the corpus ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Paths of the files of a folder, sorted. */
static uint32_t list(Arena *arena, const char *folder, const char ***out) {
    VEC(const char *) path = {0};
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (*e->d_name != '.')
            vec_push(arena, &path,
                     arena_printf(arena, "%s/%s", folder, e->d_name));
    if (dir)
        closedir(dir);
    if (path.n)
        qsort(path.at, path.n, sizeof *path.at, by_name);
    *out = path.at;
    return path.n;
}

static bool run_file(const char *path, uint32_t changes) {
    Arena *arena = arena_new("corpus"), *scratch = arena_new("damage");
    Diag *diag = diag_new(arena);
    Bytes bytes;
    Draws draws = {.seed = rng_seed(path, 20)};
    if (strstr(path, "/found-"))
        changes = 0;
    bool good = file_read(arena, diag, path, &bytes);
    if (good)
        run(bytes.at, bytes.len);
    for (uint32_t i = 0; good && bytes.len && i < changes; i++) {
        Damaged t = {arena_alloc_raw(scratch, bytes.len + MAX_GROWTH, 16),
                   bytes.len};
        memcpy(t.at, bytes.at, bytes.len);
        damage(&draws, &t);
        run(t.at, t.len);
        arena_reset(scratch);
    }
    diag_print(diag, stderr);
    arena_free(scratch);
    arena_free(arena);
    return good;
}

int main(int argc, char **argv) {
    Arena *arena = arena_new("paths");
    uint32_t done = 0, changes = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    struct sigaction over = {.sa_handler = too_long};
    now.target = fuzz_find(argc > 1 ? argv[1] : "");
    if (!now.target || argc < 4)
        return 2;
    sigaction(SIGPROF, &over, NULL);
    atexit(keep);
#ifdef DEATH
    __sanitizer_set_death_callback(keep);
#endif
    for (int i = 3; i < argc; i++) {
        const char **path;
        uint32_t n = list(arena, argv[i], &path);
        for (uint32_t k = 0; k < n; k++)
            done += run_file(path[k], changes);
    }
    printf("%s: %u files, %u changes of each\n", now.target->name, done,
           changes);
    arena_free(arena);
    return done ? 0 : 1;
}
