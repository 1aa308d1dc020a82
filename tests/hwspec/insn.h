/* insn.h - an instruction from its text, for tests. */
#ifndef TESTS_HWSPEC_INSN_H
#define TESTS_HWSPEC_INSN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hwspec/rows.h"

#include <string.h>

static inline HwInsn parsed(Arena *arena, const HwSpec *spec,
                            const char *line) {
    Diag *diag = diag_new(arena);
    HwInsn insn = {0};
    InsnParse result = insn_parse(arena, diag, spec, line, strlen(line),
                                  (Loc){"line", 1, 1}, &insn);
    diag_print(diag, stderr);
    if (result != INSN_OK)
        fail_msg("not parsed: %s", line);
    return insn;
}

#endif
