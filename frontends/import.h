/* import.h - machines that others describe. */
#ifndef FRONTENDS_IMPORT_H
#define FRONTENDS_IMPORT_H

#include "base/diag.h"
#include "base/file.h"

/* The hwspec, as YAML, of a target description of Vitis AI for a DPU of the
 * family DPUCZDX8G (protobuf text); it extends `dpuczdx8g`. NULL after errors.
 * `bytes` must outlive `diag`. */
const char *import_dpu(Arena *arena, Diag *diag, const char *file, Bytes bytes);

#endif
