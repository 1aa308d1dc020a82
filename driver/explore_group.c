/* explore_group.c - points that differ in the size of the first memory alone;
 * see explore.h.
 *
 * Input: points of a sweep. Output: their networks up to the schedule, which
 * the first of a group makes for all. Invariant: no stage before the planner
 * looks at the size of a memory, but for orders by time; so a point's results
 * are those that it has alone, whatever group it is in.
 */
#include "driver/explore.h"

#include <stdlib.h>
#include <string.h>

/* ---- which group ---- */

/* By point: the varied size's part of its number, and what is left. */
typedef struct Split {
    uint32_t group, size;
} Split;

/* memories.NAME.size; of which memory is known when there is a machine. */
static bool is_size(const char *path) {
    static const char head[] = "memories.", tail[] = ".size";
    size_t n = strlen(path), least = sizeof head + sizeof tail - 2;
    return n > least && !strncmp(path, head, sizeof head - 1) &&
           !strcmp(path + n - (sizeof tail - 1), tail);
}

static Split split(const Sweep *s, uint32_t index) {
    uint32_t below = 1; /* points for each value of the path */
    for (uint32_t i = s->n_varies; i-- > 0; below *= s->vary[i].n)
        if (is_size(s->vary[i].path))
            return (Split){index / (below * s->vary[i].n) * below +
                               index % below,
                           index / below % s->vary[i].n};
    return (Split){index, 0};
}

typedef struct Placed {
    Split at;
    uint32_t index;
} Placed;

static int by_group(const void *a, const void *b) {
    const Placed *x = a, *y = b;
    if (x->at.group != y->at.group)
        return x->at.group < y->at.group ? -1 : 1;
    return (x->at.size > y->at.size) - (x->at.size < y->at.size);
}

void sweep_sort(const Sweep *s, uint32_t n, uint32_t *todo) {
    Arena *scratch = arena_new("order of points");
    Placed *placed = ARENA_ARRAY(scratch, Placed, n + 1);
    for (uint32_t i = 0; i < n; i++)
        placed[i] = (Placed){split(s, todo[i]), todo[i]};
    if (n)
        qsort(placed, n, sizeof *placed, by_group);
    for (uint32_t i = 0; i < n; i++)
        todo[i] = placed[i].index;
    arena_free(scratch);
}

/* ---- what a group shares ---- */

void group_enter(PointGroup *group, const Sweep *s, uint32_t index) {
    uint32_t number = split(s, index).group;
    if (group->arena && group->number == number)
        return;
    group_leave(group);
    group->arena = arena_new("points of many sizes");
    group->number = number;
    group->shared =
        (Shared){.arena = group->arena, .times = memo_table_new(group->arena)};
}

void group_leave(PointGroup *group) {
    if (group->arena)
        arena_free(group->arena);
    *group = (PointGroup){0};
}

static const char *size_path(const Point *p) {
    for (uint32_t i = 0; i < p->n_settings; i++)
        if (is_size(p->path[i]))
            return p->path[i];
    return NULL;
}

/* Whether no stage but the planner asks for the size that varies. */
static bool is_shared(Arena *arena, const Options *o, const Point *p,
                      const HwSpec *spec) {
    const char *path = size_path(p);
    return path && spec->n_active == 1 && !spec->native.fit_element &&
           !strcmp(path, arena_printf(arena, "memories.%s.size",
                                      spec->memory[0].name)) &&
           o->images <= 1 && !strcmp(o->mode, "latency") && !o->side &&
           !options_bundle(o);
}

static bool open_first(PointGroup *group, const Options *o) {
    if (!group->opened)
        group->fine = pipeline_run(group->arena, diag_new(group->arena), o,
                                   STAGE_SCHEDULE, &group->first) == EXIT_FINE;
    group->opened = true;
    return group->fine;
}

ExitCode group_run(PointGroup *group, Arena *arena, Diag *diag,
                   const Options *o, const Point *point, Pipeline *out) {
    const HwSpec *spec =
        group ? pipeline_spec(arena, diag_new(arena), o) : NULL;
    if (!spec || !is_shared(arena, o, point, spec) || !open_first(group, o))
        return pipeline_run(arena, diag, o, STAGE_CODEGEN, out);
    Schedule *schedule = ARENA_COPY(arena, Schedule, group->first.schedule, 1);
    schedule->spec = spec;
    *out = group->first;
    out->spec = out->machine = spec;
    out->schedule = schedule;
    out->shared = &group->shared;
    return pipeline_resume(arena, diag, o, STAGE_ALLOC, STAGE_CODEGEN, out);
}
