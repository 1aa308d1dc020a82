/* lanes_program.h - networks for machines with memories by channel. */
#ifndef DRIVER_LANES_PROGRAM_H
#define DRIVER_LANES_PROGRAM_H

#include "driver/options.h"
#include "hwspec/hwspec.h"

/* Has the machine that is asked for a section `lanes`? */
bool makes_lanes(Arena *arena, const Options *options);
/* simulate: a description through the data memories. */
ExitCode simulate_lanes(Arena *arena, Diag *diag, const Options *options,
                        const HwSpec *spec);
/* compile: a description, or a network, to a description or C of our own. */
ExitCode compile_lanes(Arena *arena, Diag *diag, const Options *options);
/* The same of a network on codes. */
ExitCode compile_lanes_network(Arena *arena, Diag *diag, const Options *options,
                               const HwSpec *spec);

#endif
