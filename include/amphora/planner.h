/* planner.h - static memory planning as a library: -lamphora-planner.
 *
 * Buffers with lives and sizes in, offsets out. Sizes, alignments and offsets
 * are below 2^60, and sizes and alignments together. Nothing is global: calls
 * in several threads do not know of each other. The library never ends the
 * program, prints, or touches signals; all it allocates is given back before a
 * call returns. What is 0 in a structure is a default.
 *
 *     amphora_planner_buffer buffer[3] = ...;
 *     uint64_t offset[3];
 *     amphora_planner_problem problem = {0};
 *     problem.struct_size = sizeof problem;
 *     problem.buffers = buffer;
 *     problem.n_buffers = 3;
 *     problem.capacity = 1 << 20;
 *     amphora_planner_result result;
 *     if (amphora_planner_place(&problem, NULL, offset, &result))
 *         puts(result.message);
 */
#ifndef AMPHORA_PLANNER_H
#define AMPHORA_PLANNER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define AMPHORA_PLANNER_API __attribute__((visibility("default")))
#else
#define AMPHORA_PLANNER_API
#endif

/* Grows when what is here changes its meaning; new functions do not count. */
#define AMPHORA_PLANNER_VERSION 1

typedef enum amphora_planner_status {
    AMPHORA_PLANNER_FITS,
    AMPHORA_PLANNER_INFEASIBLE, /* no placement exists: proved */
    AMPHORA_PLANNER_UNDECIDED,  /* none was found: more steps or seconds may */
    AMPHORA_PLANNER_INVALID,    /* an argument is wrong; see the message */
    AMPHORA_PLANNER_NO_MEMORY,  /* and none was found until then */
    AMPHORA_PLANNER_BUG         /* in the library: please report */
} amphora_planner_status;

/* Steps [first, end). */
typedef struct amphora_planner_span {
    uint32_t first, end;
} amphora_planner_span;

enum { AMPHORA_PLANNER_PINNED = 1, AMPHORA_PLANNER_HINTED = 2 };

typedef struct amphora_planner_buffer {
    uint32_t first, end; /* alive in steps [first, end); first <= end */
    uint64_t size;       /* bytes */
    uint64_t alignment;  /* its offset is a multiple; 0 is 1 */
    uint32_t flags;      /* AMPHORA_PLANNER_PINNED: exactly at `offset`;
                          * AMPHORA_PLANNER_HINTED: there if that costs nothing */
    uint32_t n_gaps;
    uint64_t offset;
    const amphora_planner_span *gaps; /* within the life, apart, rising: its
                                       * bytes are free for others */
} amphora_planner_buffer;

typedef enum amphora_planner_relation_kind {
    AMPHORA_PLANNER_INSIDE, /* offset of a = offset of b + bytes; a is part of b
                             */
    AMPHORA_PLANNER_SHARE,  /* a and b may share any bytes */
    AMPHORA_PLANNER_SAME,   /* they may lie at one offset, or apart */
    AMPHORA_PLANNER_BELOW   /* they may overlap where offset of a + bytes <=
                             * offset of b */
} amphora_planner_relation_kind;

typedef struct amphora_planner_relation {
    uint32_t kind, a, b; /* a, b: indices of buffers */
    int64_t bytes;
} amphora_planner_relation;

/* Two buffers, by index, that conflict whatever their lives. */
typedef struct amphora_planner_pair {
    uint32_t a, b;
} amphora_planner_pair;

typedef struct amphora_planner_problem {
    size_t struct_size; /* sizeof(amphora_planner_problem) */
    const amphora_planner_buffer *buffers;
    const amphora_planner_relation *relations;
    uint32_t n_buffers, n_relations;
    uint64_t capacity;  /* bytes; 0: no end, as low as possible */
    uint64_t alignment; /* of every offset, but of what lies INSIDE another;
                         * 0 is 1 */

    /* Where one line of time cannot say what conflicts (forks and joins,
     * several cores or streams). Beside `first` and `end`, which may all be 0:
     */
    const amphora_planner_pair *conflicts;
    size_t n_conflicts;
    /* Vector clocks, 2 n_streams numbers a buffer: when it is born, in each
     * stream, then when it dies. Two conflict unless one is dead, in each
     * stream, when the other is born. */
    const int64_t *clocks;
    uint32_t n_streams;
} amphora_planner_problem; /* struct_size may be that without these */

/* What is known so far. */
typedef struct amphora_planner_progress {
    double seconds;
    const uint64_t *offsets; /* of the best placement so far; NULL: none */
    uint64_t height;         /* its */
    int better;              /* it is new since the last call */
} amphora_planner_progress;

typedef struct amphora_planner_options {
    size_t struct_size;  /* sizeof(amphora_planner_options) */
    const char *planner; /* amphora_planner_name; NULL: "portfolio" */
    uint64_t seed;
    uint64_t steps; /* of search; the same give the same offsets. 0: default */
    double seconds; /* deadline; 0: none */
    int lowest;     /* with a capacity, too, as low as possible */
    /* Called now and then in the calling thread, and with each better
     * placement; what it returns, if not 0, cancels. It must return. */
    int (*progress)(void *context, const amphora_planner_progress *progress);
    void *context;
} amphora_planner_options;

typedef struct amphora_planner_result {
    amphora_planner_status status;
    int proved;      /* no placement is lower */
    int stopped;     /* by deadline, progress or lack of memory */
    uint64_t height; /* highest byte used + 1 */
    uint64_t bound;  /* no placement is lower */
    uint64_t nodes;  /* of the search */
    char message[160];
} amphora_planner_result;

/* The library's AMPHORA_PLANNER_VERSION. */
AMPHORA_PLANNER_API int amphora_planner_version(void);

/* By number from 0; NULL behind the last. */
AMPHORA_PLANNER_API const char *amphora_planner_name(uint32_t planner);

/* `offsets` (n_buffers) are written where the status is FITS, which may be a
 * best one so far: see `stopped`. `options` may be NULL. Returns the status. */
AMPHORA_PLANNER_API amphora_planner_status
amphora_planner_place(const amphora_planner_problem *problem,
                      const amphora_planner_options *options, uint64_t *offsets,
                      amphora_planner_result *result);

#ifdef __cplusplus
}
#endif

#endif
