/* inside.h - what files of lanes/ share. */
#ifndef LANES_INSIDE_H
#define LANES_INSIDE_H

#include "lanes/lanes.h"

/* Of a volume of so many channels. */
uint32_t lanes_passes(Arena *arena, const LaneMachine *m, uint32_t c);
uint32_t lanes_needed(Arena *arena, const LaneMachine *m, uint32_t c);

#endif
