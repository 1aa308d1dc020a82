/* file_program.h - networks for machines that run files of their own. */
#ifndef DRIVER_FILE_PROGRAM_H
#define DRIVER_FILE_PROGRAM_H

#include "driver/options.h"

/* compile: writes NET.CONTAINER. */
ExitCode compile_file(Arena *arena, Diag *diag, const Options *options);
/* verify: the file in the simulator, node by node, against the network by the
 * machine's arithmetic; its outputs also against the network's own. */
ExitCode verify_file(Arena *arena, Diag *diag, const Options *options);

#endif
