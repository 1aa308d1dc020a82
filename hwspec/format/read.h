/* read.h - the reader of `meanings`, `let`, `tables`, of rows with a `body` and
 * of `container`; see docs/hwspec.md. */
#ifndef HWSPEC_FORMAT_READ_H
#define HWSPEC_FORMAT_READ_H

#include "base/yaml.h"
#include "hwspec/hwspec.h"

/* Is this item of `instructions` one that has a body? */
bool format_is_row(const YamlNode *row);

/* NULL where the hwspec has no container. `spec`: all but its rows. */
const HwFormat *format_read(Arena *arena, Diag *diag, const HwSpec *spec,
                            YamlNode *root);

#endif
