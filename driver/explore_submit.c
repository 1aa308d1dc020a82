/* explore_submit.c - the shards of a sweep are given to Slurm or to GNU
 * parallel; see explore.h.
 *
 * Input: the command. Output: DIR/command, which makes it again, DIR/points,
 * how many there are, and DIR/submit.sh (driver/scripts), which is run and does
 * all the rest.
 */
#include "base/file.h"
#include "driver/explore.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const char embedded_submit_sh[];

enum { MOST_SHARDS = 1000, MOST_PATH = 4096 };

static bool write_text(Arena *arena, Diag *diag, const char *dir,
                       const char *name, const char *text) {
    return file_replace(arena, diag, arena_printf(arena, "%s/%s", dir, name),
                        text, strlen(text));
}

/* The command, to be run in this folder, by this program. */
static const char *command_text(Arena *arena, const Options *o) {
    char program[MOST_PATH] = "", folder[MOST_PATH];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    if (len <= 0 || !getcwd(folder, sizeof folder))
        return NULL;
    Text text = text_new(arena);
    text_add(&text, "cd");
    command_word(&text, folder);
    text_add(&text, "\nset --");
    command_word(&text, program);
    text_add(&text, strchr(o->line, ' '));
    text_add(&text, "\n");
    return text_str(&text);
}

/* NULL: the present folder is not known. */
static const char *absolute(Arena *arena, const char *path) {
    char folder[MOST_PATH];
    if (*path == '/')
        return path;
    return getcwd(folder, sizeof folder)
               ? arena_printf(arena, "%s/%s", folder, path)
               : NULL;
}

ExitCode sweep_submit(Arena *arena, Diag *diag, const Options *o,
                      uint32_t n_points) {
    const ExploreArgs *own = o->own;
    uint64_t n = own->shards ? own->shards : 16;
    n = n < n_points ? n : n_points;
    const char *command = command_text(arena, o);
    if (!o->out || n > MOST_SHARDS || !command || o->said) {
        diag_error(diag, (Loc){0}, "%s",
                   o->said    ? "--submit is for the program alone: its "
                                "shards are runs of that"
                   : !o->out  ? "--submit needs a folder: -o DIR"
                   : !command ? "the program's own path is not known"
                              : "--shards: at most 1000");
        return EXIT_BAD_USAGE;
    }
    if (!file_make_dir(arena, diag, o->out))
        return EXIT_BAD_INPUT;
    const char *dir = absolute(arena, o->out);
    const char *hosts = own->hosts ? absolute(arena, own->hosts) : NULL;
    if (!write_text(arena, diag, dir, "command", command) ||
        !write_text(arena, diag, dir, "points",
                    arena_printf(arena, "%u\n", n_points)) ||
        !write_text(arena, diag, dir, "submit.sh", embedded_submit_sh))
        return EXIT_BAD_INPUT;
    fflush(NULL);
    const char *script = arena_printf(arena, "%s/submit.sh", dir);
    const char *shards = arena_printf(arena, "%llu", (unsigned long long)n);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("sh", "sh", script, own->submit, dir, shards, hosts,
               (char *)NULL);
        _exit(127);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 127)
        return WEXITSTATUS(status) ? EXIT_BAD_INPUT : EXIT_FINE;
    diag_error(diag, (Loc){0}, "%s could not be run", script);
    return EXIT_BAD_INPUT;
}
