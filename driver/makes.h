/* makes.h - what commands make of a network for a machine. */
#ifndef DRIVER_MAKES_H
#define DRIVER_MAKES_H

#include "driver/options.h"
#include "hwspec/hwspec.h"

typedef enum Makes {
    MAKES_LISTING,
    MAKES_FILE,        /* of a runtime of the machine's own; filegen/ */
    MAKES_DESCRIPTION, /* of layers, for memories by channel; lanes/ */
    MAKES_WORDS        /* lists of instructions, layer by layer; wordgen/ */
} Makes;

Makes machine_makes(const HwSpec *spec);
/* Of the machine that is asked for; a listing where it is none, or wrong:
 * whoever reads it next says so. */
Makes options_make(Arena *arena, const Options *options);

#endif
