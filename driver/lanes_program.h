/* lanes_program.h - networks for machines with memories by channel. */
#ifndef DRIVER_LANES_PROGRAM_H
#define DRIVER_LANES_PROGRAM_H

#include "driver/options.h"
#include "hwspec/hwspec.h"
#include "lanes/lanes.h"

/* simulate: a description through the data memories. */
ExitCode simulate_lanes(Arena *arena, Diag *diag, const Options *options,
                        const HwSpec *spec);
/* compile: a description, or a network, to a description or C of our own. */
ExitCode compile_lanes(Arena *arena, Diag *diag, const Options *options);
/* The same of a network on codes. */
ExitCode compile_lanes_network(Arena *arena, Diag *diag, const Options *options,
                               const HwSpec *spec);
/* verify: the same, compared code by code; nothing is written. */
ExitCode verify_lanes(Arena *arena, Diag *diag, const Options *options);
/* A line, where the machine says cycles. */
void lanes_say_cycles(Arena *arena, const LaneMachine *m, const LaneNet *net);
/* Is the file a network in another form than the vendor's description? */
bool lanes_foreign(Arena *arena, const char *path);
/* The net as a file of the kind that --emit asks for: its text, and its path,
 * which is NAME and a suffix in the folder of --out. */
typedef struct LaneFile {
    const char *dir, *path, *text;
} LaneFile;
/* Can it be written? An error where the machine has no registers for C. */
bool lane_emits(Diag *diag, const Options *options, const LaneMachine *m);
LaneFile lane_file(Arena *arena, const Options *options, const LaneMachine *m,
                   const LaneNet *net, const int8_t *input, const LaneRun *run,
                   const char *name);

#endif
