/* explore_run.c - points of a sweep on all cores; see explore.h.
 *
 * Input: a sweep and the numbers of its points. Output: a line for each, in
 * the order in which they end. Workers are processes: a point cannot disturb
 * another one, and gives the same line wherever it runs. Worker k takes the
 * points k, k + workers, ... and writes lines into a pipe of its own.
 */
#include "base/guard.h"
#include "base/text.h"
#include "driver/explore.h"
#include "driver/images.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORKERS = 256, BAR = 40 };

/* ---- one point ---- */

static void apply(const Point *p, Options *o, HwSetting *settings) {
    for (uint32_t i = 0; i < p->n_settings; i++) {
        const char *path = p->path[i], *value = p->value[i];
        if (!strcmp(path, "replication"))
            o->replication = value;
        else if (!strcmp(path, "mode"))
            o->mode = value;
        else if (!strcmp(path, "order"))
            o->order = value;
        else if (!strcmp(path, "planner"))
            o->planner = value;
        else if (!strcmp(path, "side-by-side"))
            o->side = value;
        else if (!strcmp(path, "objective"))
            o->objective = value;
        else if (!strcmp(path, "effort"))
            o->effort = strtoull(value, NULL, 10);
        else if (!strcmp(path, "recompute"))
            o->recompute = strtod(value, NULL);
        else
            settings[o->settings.n++] = (HwSetting){path, value};
    }
}

/* What does not fit says so itself. */
static const char *without_status(const char *reason) {
    static const char status[] = "does not fit: ";
    bool said = !strncmp(reason, status, sizeof status - 1);
    return said ? reason + sizeof status - 1 : reason;
}

void point_costs(Arena *arena, const HwSpec *spec, const SimResult *sim,
                 Point *p) {
    uint64_t *products = ARENA_ARRAY(arena, uint64_t, spec->n_engines + 1);
    const char **name = ARENA_ARRAY(arena, const char *, spec->n_costs + 1);
    double *cost = ARENA_ARRAY(arena, double, spec->n_costs + 1);
    HwCounts counts = {products, p->ddr, p->weights, p->cycles};
    for (uint32_t i = 0; sim && i < sim->n_events; i++)
        if (sim->event[i].use < spec->n_engines)
            products[sim->event[i].use] += sim->event[i].macs;
    for (uint32_t i = 0; i < spec->n_costs; i++) {
        name[i] = spec->cost[i].name;
        cost[i] = hwspec_cost(spec, &spec->cost[i], sim ? &counts : NULL);
    }
    p->n_costs = spec->n_costs;
    p->cost_name = name;
    p->cost = cost;
}

void point_take(Arena *arena, Point *p, const HwSpec *spec,
                const SimResult *sim, uint64_t cycles) {
    p->cycles = cycles;
    p->ms = (double)p->cycles / spec->clock * 1e3;
    p->am_capacity = hwspec_active_bytes(spec);
    p->am_peak = sim->am_peak;
    p->ddr = sim->backing_read + sim->backing_written;
    p->compulsory = sim->compulsory;
    p->weights = sim->weights_read;
    p->instructions = sim->instructions;
    p->status = sim->n_violations ? POINT_WRONG : POINT_FITS;
    if (sim->n_violations)
        p->reason = sim->violation[0].text;
    point_costs(arena, spec, sim, p);
}

const SimResult *point_run(Arena *arena, const Options *options,
                           PointGroup *group, Point *point,
                           const Listing **listing) {
    Options o = *options;
    HwSetting *settings =
        ARENA_ARRAY(arena, HwSetting, o.settings.n + point->n_settings);
    for (uint32_t i = 0; i < o.settings.n; i++)
        settings[i] = o.settings.at[i];
    o.settings.at = settings;
    o.file = point->network;
    o.target = point->target;
    apply(point, &o, settings);
    Diag *diag = diag_new(arena);
    Pipeline pipeline;
    ExitCode code = group_run(group, arena, diag, &o, point, &pipeline);
    const SimResult *sim = NULL;
    if (code == EXIT_FINE) {
        SimOptions memory_only = {.seed = o.seed,
                                  .compulsory = plan_compulsory(pipeline.plan),
                                  .memory_only = true};
        sim = sim_run(arena, diag, pipeline.listing, 0, NULL, &memory_only);
    }
    *listing = pipeline.listing;
    if (sim) {
        ImageTimes times = image_times(&pipeline, sim);
        point_take(arena, point, pipeline.spec, sim,
                   times.steady + sim->host_cycles / times.n);
    } else {
        point->status = code == EXIT_NO_FIT ? POINT_NO_FIT : POINT_WRONG;
        point->reason = without_status(diag_first_error(diag));
    }
    return sim;
}

/* ---- workers ---- */

typedef struct Worker {
    pid_t pid;
    int from; /* pipe */
    Text line;
} Worker;

static bool write_all(int to, const char *at, size_t len) {
    while (len) {
        ssize_t n = write(to, at, len);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static uint32_t file_of(const Sweep *s, uint32_t index) {
    return index / (s->n_points / s->n_files);
}

static _Noreturn void work(const Sweep *s, uint32_t n, const uint32_t *todo,
                           uint32_t first, uint32_t step, int to) {
    guard_forget();
    Arena *arena = arena_new("point");
    PointGroup group = {0};
    for (uint32_t i = first; i < n; i += step) {
        Point point = sweep_point(arena, s, todo[i]);
        const Listing *listing;
        group_enter(&group, s, todo[i]);
        point_run(arena, s->options, &group, &point, &listing);
        const char *print = s->print[file_of(s, todo[i])];
        const char *line =
            arena_printf(arena, "%s\n", point_line(arena, &point, print));
        if (!write_all(to, line, strlen(line)))
            _exit(EXIT_BAD_INPUT);
        arena_reset(arena);
    }
    _exit(EXIT_FINE);
}

static bool start(Diag *diag, const Sweep *s, uint32_t n, const uint32_t *todo,
                  Worker *workers, uint32_t k, uint32_t n_workers) {
    int ends[2];
    if (pipe(ends)) {
        diag_error(diag, (Loc){0}, "no pipe: %s", strerror(errno));
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        for (uint32_t i = 0; i < k; i++)
            close(workers[i].from);
        close(ends[0]);
        work(s, n, todo, k, n_workers, ends[1]);
    }
    close(ends[1]);
    workers[k].pid = pid;
    workers[k].from = ends[0];
    if (pid < 0)
        diag_error(diag, (Loc){0}, "no process: %s", strerror(errno));
    return pid > 0;
}

typedef struct Progress {
    uint32_t done, all;
    bool shown;
} Progress;

static void show_progress(const Progress *p) {
    char bar[BAR + 1] = "";
    if (!p->shown)
        return;
    uint32_t full = (uint32_t)((uint64_t)p->done * BAR / p->all);
    memset(bar, '-', BAR);
    memset(bar, '#', full);
    say_to(guard_err(), "\r[%s] %u of %u points%s", bar, p->done, p->all,
           p->done == p->all ? "\n" : "");
}

/* Whole lines go on; the rest waits for more. */
static void take(Worker *w, const char *at, size_t len, SweepDone *done,
                 void *context, Progress *progress) {
    while (len) {
        const char *end = memchr(at, '\n', len);
        size_t part = end ? (size_t)(end - at) : len;
        text_add_n(&w->line, at, part);
        if (!end)
            return;
        done(context, text_str(&w->line), w->line.len);
        w->line.len = 0;
        progress->done++;
        at += part + 1;
        len -= part + 1;
    }
    show_progress(progress);
}

/* False when the worker has closed its pipe. */
static bool drain(Worker *w, SweepDone *done, void *context,
                  Progress *progress) {
    char bytes[1 << 14];
    ssize_t n = read(w->from, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return false;
    take(w, bytes, (size_t)n, done, context, progress);
    return true;
}

static void collect(Worker *workers, uint32_t n_workers, SweepDone *done,
                    void *context, Progress *progress) {
    struct pollfd fds[MAX_WORKERS];
    uint32_t open = n_workers;
    for (uint32_t i = 0; i < n_workers; i++)
        fds[i] = (struct pollfd){.fd = workers[i].from, .events = POLLIN};
    while (open) {
        if (poll(fds, n_workers, -1) < 0 && errno != EINTR)
            return;
        for (uint32_t i = 0; i < n_workers; i++)
            if (fds[i].fd >= 0 && fds[i].revents &&
                !drain(&workers[i], done, context, progress)) {
                close(fds[i].fd);
                fds[i].fd = -1;
                open--;
            }
    }
}

static bool end(Diag *diag, const Worker *worker) {
    int status;
    while (waitpid(worker->pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FINE)
        return true;
    diag_error(diag, (Loc){0}, "a worker ended early, by %s %d",
               WIFSIGNALED(status) ? "signal" : "exit code",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

static uint32_t worker_count(const Sweep *s, uint32_t n_points) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const ExploreArgs *own = s->options->own;
    uint64_t n = own->jobs ? own->jobs : cores > 0 ? (uint64_t)cores : 1;
    n = n < MAX_WORKERS ? n : MAX_WORKERS;
    return (uint32_t)(n < n_points ? n : n_points);
}

bool sweep_run(Arena *arena, Diag *diag, const Sweep *s, uint32_t n,
               uint32_t *todo, SweepDone *done, void *context) {
    sweep_sort(s, n, todo);
    uint32_t n_workers = worker_count(s, n), started = 0;
    Worker *workers = ARENA_ARRAY(arena, Worker, n_workers + 1);
    Progress progress = {0, n, isatty(STDERR_FILENO)};
    fflush(NULL);
    bool ok = true;
    while (ok && started < n_workers) {
        workers[started].line = text_new(arena);
        ok = start(diag, s, n, todo, workers, started, n_workers);
        started += ok;
    }
    collect(workers, started, done, context, &progress);
    for (uint32_t i = 0; i < started; i++)
        ok &= end(diag, &workers[i]);
    return ok;
}
