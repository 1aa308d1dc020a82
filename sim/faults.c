/* faults.c - violations and notes of a run; see run.h.
 *
 * Input: sentences. Output: the first max_violations of them in the caller's
 * arena, and how many there were. Every sentence starts with who broke the
 * rule, so that it stands alone in a report.
 */
#include "sim/run.h"

#include <inttypes.h>

void fault(Run *run, const char *format, ...) {
    run->n_violations++;
    if (run->violation.n >= run->options.max_violations)
        return;
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(run->work, format, args);
    va_end(args);
    Violation v = {run->insn,
                   arena_printf(run->arena, "%s: %s", run->who, text)};
    vec_push(run->arena, &run->violation, v);
}

bool fault_once(Run *run, FaultOnce kind) {
    bool first = !(run->once & kind);
    run->once |= kind;
    return first;
}

void note(Run *run, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(run->arena, format, args);
    va_end(args);
    vec_push(run->arena, &run->note, text);
}

const char *address_text(Run *run, uint32_t memory, uint64_t byte) {
    const HwMemory *m = &run->spec->memory[memory];
    return arena_printf(run->work, "0x%" PRIx64 " in %s",
                        m->base + byte / m->unit, m->name);
}
