/* manual.h - what amphora says of itself: version, manual pages, completions,
 * all made from the tables of commands and options. */
#ifndef DRIVER_MANUAL_H
#define DRIVER_MANUAL_H

#include "driver/options.h"

/* "amphora 0.1.0 (revision 1a2b3c4, LLVM 19.1.7)" */
extern const char version_text[];

/* argv: "--man" and perhaps a command: a page for man(1) on stdout; or
 * "--completion" and bash, zsh or fish: a script for that shell. */
ExitCode manual_print(int argc, char **argv);

#endif
