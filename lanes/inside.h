/* inside.h - what files of lanes/ share. */
#ifndef LANES_INSIDE_H
#define LANES_INSIDE_H

#include "lanes/lanes.h"

/* Of a volume of so many channels. */
uint32_t lanes_passes(Arena *arena, const LaneMachine *m, uint32_t c);
uint32_t lanes_needed(Arena *arena, const LaneMachine *m, uint32_t c);

/* Bytes of each instance that a layer's input and result take. */
uint64_t lanes_in_bytes(const LaneMachine *m, const LaneLayer *l);
uint64_t lanes_out_bytes(const LaneMachine *m, const LaneNet *net, uint32_t at);
/* Bits of the instances that lanes lie in. */
uint32_t lanes_banks(const LaneMachine *m, uint64_t lanes);

#endif
