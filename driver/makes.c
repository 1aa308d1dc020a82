/* makes.c - which of the four ways a machine's networks go. */
#include "driver/makes.h"

#include "hwspec/emit.h"
#include "hwspec/insn.h"
#include "hwspec/program.h"
#include "lanes/lanes.h"

Makes machine_makes(const HwSpec *spec) {
    if (lanes_has(spec))
        return MAKES_DESCRIPTION;
    if (program_emit(spec))
        return MAKES_WORDS;
    return program_has(spec) && !spec->insns->n ? MAKES_FILE : MAKES_LISTING;
}

Makes options_make(Arena *arena, const Options *options) {
    if (!options->target)
        return MAKES_LISTING;
    const HwSpec *spec = hwspec_load(arena, diag_new(arena), options->target,
                                     options->settings.n, options->settings.at);
    return spec ? machine_makes(spec) : MAKES_LISTING;
}
