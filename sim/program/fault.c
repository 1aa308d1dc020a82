/* fault.c - what breaks a rule of a program; see run.h. */
#include "sim/program/run.h"

bool prog_fault(ProgramRun *run, const char *format, ...) {
    run->n_faults++;
    if (run->faults.n >= PROGRAM_FAULTS)
        return false;
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(run->work, format, args);
    va_end(args);
    const char *row = run->node < run->program->n_nodes
                          ? prog_row_name(run->program->node[run->node].row)
                          : "file";
    vec_push(
        run->arena, &run->faults,
        arena_printf(run->arena, "node %u (%s): %s", run->node, row, text));
    return false;
}
