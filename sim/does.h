/* does.h - runs a file of instructions whose rows say what they do.
 *
 * Input: a Program of a machine with `templates`, and the bytes of its backing
 * memory from address 0 on. Output: these bytes afterwards. Other memories
 * begin as zeros, or as a run before left them.
 */
#ifndef SIM_DOES_H
#define SIM_DOES_H

#include "hwspec/program.h"

/* Steps of a run, at most; a step over n numbers counts as n / 16. */
#define DOES_STEPS (UINT64_C(1) << 31)

typedef struct DoesMemory {
    const char *name;
    uint64_t read, written; /* bytes */
} DoesMemory;

typedef struct DoesResult {
    uint32_t n, done;   /* instructions; those before the fault */
    const char *failed; /* NULL: nothing is wrong */
    Loc at;             /* the step */
    int64_t cycles;     /* the name `cycles` at the end; -1: there is none */
    uint32_t n_memories;
    const DoesMemory *memory;
    const uint8_t *main; /* NULL: there is no backing memory */
    uint64_t bytes;
    uint8_t *const *byte; /* by memory of the machine: what is in it */
} DoesResult;

/* Hears of the memories behind each instruction. `before`: what was in those
 * on chip, or NULL. */
typedef struct DoesWatch {
    void (*after)(void *context, uint32_t node, uint8_t *const *memory);
    void *context;
    uint8_t *const *before;
} DoesWatch;

/* `watch`: or NULL. */
const DoesResult *program_does(Arena *arena, const Program *program,
                               const void *main, uint64_t bytes,
                               const DoesWatch *watch);

#endif
