/* targets.c - the shipped targets, and which file a name stands for.
 *
 * Folders in order: $AMPHORA_TARGETS, the source tree's, the installed one.
 * Invariant: names come out sorted, whatever order the folders list them in.
 */
#include "base/file.h"
#include "base/near.h"
#include "base/text.h"
#include "base/vec.h"
#include "hwspec/read.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { N_FOLDERS = 3 };
static const char suffix[] = ".yaml";

typedef VEC(const char *) Names;

/* NULL where the environment names none. */
static const char *folder(uint32_t i) {
    const char *const at[N_FOLDERS] = {getenv("AMPHORA_TARGETS"),
                                       HWSPEC_TARGETS_SOURCE,
                                       HWSPEC_TARGETS_INSTALLED};
    return at[i];
}

static bool ends_in_suffix(const char *name) {
    size_t len = strlen(name), tail = strlen(suffix);
    return len > tail && !strcmp(name + len - tail, suffix);
}

static void list_folder(Arena *arena, const char *path, Names *names) {
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (ends_in_suffix(entry->d_name))
            vec_push(arena, names,
                     arena_strndup(arena, entry->d_name,
                                   strlen(entry->d_name) - strlen(suffix)));
    closedir(dir);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *const *hwspec_targets(Arena *arena) {
    Names found = {0};
    for (uint32_t i = 0; i < N_FOLDERS; i++)
        if (folder(i))
            list_folder(arena, folder(i), &found);
    if (found.n)
        qsort(found.at, found.n, sizeof *found.at, by_text);
    const char **names = ARENA_ARRAY(arena, const char *, found.n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < found.n; i++)
        if (i == 0 || strcmp(found.at[i], found.at[i - 1]))
            names[n++] = found.at[i];
    return names;
}

static const char *shipped_path(Arena *arena, const char *name) {
    for (uint32_t i = 0; i < N_FOLDERS; i++) {
        if (!folder(i))
            continue;
        const char *path =
            arena_printf(arena, "%s/%s%s", folder(i), name, suffix);
        if (file_exists(path))
            return path;
    }
    return NULL;
}

/* A file of that name is here, but its name is not given as a path. */
static bool is_file_here(Arena *arena, const char *name) {
    return file_exists(arena_printf(arena, "%s%s", name, suffix));
}

static void refuse(Arena *arena, Diag *diag, Loc loc, const char *name) {
    Text list = text_new(arena);
    if (is_file_here(arena, name)) {
        diag_error(diag, loc,
                   "no target is called `%s`; the file here is `%s%s`", name,
                   name, suffix);
        return;
    }
    const char *const *names = hwspec_targets(arena);
    Near near = near_to(name);
    for (uint32_t i = 0; names[i]; i++) {
        text_addf(&list, "%s%s", i ? ", " : "", names[i]);
        near_look(&near, names[i]);
    }
    diag_error(
        diag, loc,
        "no target is called `%s`; %sthere are: %s; or give a path, with "
        "a `/` or ending in .yaml",
        name, near_question(arena, &near), list.len ? text_str(&list) : "none");
}

const char *target_path(Arena *arena, Diag *diag, Loc loc, const char *from,
                        const char *name) {
    if (strchr(name, '/') || ends_in_suffix(name)) {
        if (!from || name[0] == '/')
            return name;
        return arena_printf(arena, "%s/%s", from, name);
    }
    const char *path = shipped_path(arena, name);
    if (!path)
        refuse(arena, diag, loc, name);
    return path;
}
