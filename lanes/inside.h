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
/* Does a layer read its sources word by word in turn? */
bool lanes_weaves(const LaneLayer *l);

/* Do a layer's lanes keep the rules by quadrant? */
bool lanes_fit(Arena *arena, const LaneMachine *m, const LaneNet *net,
               uint32_t at);

/* Columns that each layer takes. */
void lanes_lengths(Arena *arena, const LaneMachine *m, LaneNet *net);
/* Places columns and biases; what lies beyond the last, summed over layers.
 * `peak`: columns up to the last that is taken. */
uint32_t lanes_pack(Arena *arena, const LaneMachine *m, LaneNet *net,
                    uint32_t *peak);
/* New offsets: volumes of a cluster keep those among each other. Returns the
 * bytes of an instance up to the last; `anew`: given ones do not count. */
uint64_t lanes_offsets(Arena *arena, const LaneMachine *m, LaneNet *net,
                       bool anew);
/* Chooses copies, processors, streams and offsets of a network that has none.
 */
bool lanes_arrange(Arena *arena, Diag *diag, const LaneMachine *m,
                   LaneNet *net);

#endif
