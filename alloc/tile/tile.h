/* tile.h - how a node runs where it does not fit whole: by row tiles of rows,
 * by channel tiles of channels, by tiles of the hardware; private.
 */
#ifndef ALLOC_TILE_TILE_H
#define ALLOC_TILE_TILE_H

#include "alloc/decisions.h"
#include "geometry/geometry.h"

/* ---- rows.c: row tiles and tiles ---- */

/* Whether parts of the node's result are made in cascades with rings alone: a
 * second operand waits there whole, or rows of constants are told as the
 * ring's. */
bool only_rolls(const Node *node);
/* Which rows of it reads others than its own, or needs columns whole. */
bool crosses_rows(const Node *node, uint32_t axis);
/* Whether the limits of the node's engine let it make any of its rows (axis 0)
 * or columns by themselves. */
bool engine_takes_parts(const HwSpec *spec, const Graph *g, const Legal *legal,
                        NodeId node, uint32_t axis);
/* Whether the instruction tells how many channels it makes. */
bool tells_channels(const HwSpec *spec, HwOp op);
/* ... and the engine makes any number of them up to all. */
bool engine_takes_channels(const HwSpec *spec, const Legal *legal,
                           uint32_t all);

/* The action reads these of its operands. */
static inline void action_reads(Action *a, Rows need) {
    a->in_row = need.in_row;
    a->in_rows = need.in_rows;
    a->pad_top = need.pad_top;
    a->pool_pad_top = need.pool_pad_top;
}
static inline void action_reads_columns(Action *a, Rows need) {
    a->in_col = need.in_row;
    a->in_cols = need.in_rows;
    a->pad_left = need.pad_top;
}
/* The highest row tiles of the node that take at most `free` bytes, its
 * operands' with them: rows of its result; 0 if there are none. */
uint32_t row_tile_highest(const Facts *f, NodeId node, uint64_t free);
/* Rows of its lowest row tiles; 0: it cannot run so. */
uint32_t row_tile_least(const Facts *f, NodeId node);
/* Most input rows that any row tile of `rows` rows needs. */
uint32_t row_tile_in_rows(const Facts *f, NodeId node, uint32_t rows);
/* Of Once. */
size_t row_tile_slots(const Graph *g);
/* The next way to run a node with less in active memory, given the bytes that
 * are free at its step; false if there is none. */
bool mode_next(Decisions *d, NodeId node, uint64_t free);
/* Bytes of a hardware tile's input, and the copies of its channels. */
uint64_t tile_bytes(const Facts *f, NodeId node, const Mode *mode);
Repl tile_repl(const Facts *f, NodeId node);
/* Bytes that the mode pins. */
uint64_t mode_pinned(const Decisions *d, NodeId node);
/* Bytes that the mode keeps pinned in the memory of its engine: ranges. */
typedef struct Range {
    uint64_t at, end;
} Range;
uint32_t mode_pins(const Decisions *d, NodeId node, Range pin[3],
                   uint32_t *memory);

/* The node's styles, in the order in which they are tried: operands stay in
 * active memory, the result does, the input does, neither; -1 behind the last.
 * hardware_mode lets the node run by it; false if no tile fits. */
int32_t hardware_style(const Facts *f, NodeId node, uint32_t rank);
bool hardware_mode(Decisions *d, NodeId node, uint32_t rank);
/* Operators that never run whole start with their first way, or last. */
void modes_start(Decisions *d);

/* ---- sums_room.c: sums in a memory of their own ---- */

/* Channels of the thinnest results that runs of the node can make. */
uint32_t run_channels_least(const HwSpec *spec, const Graph *g, NodeId id,
                            const Legal *legal);
/* Bytes of sums that every instruction of the node has at least: of a pixel of
 * its fewest channels where it runs by tiles. */
uint64_t sums_least(const HwSpec *spec, const Graph *g, NodeId id,
                    const Legal *legal);
/* Whether runs of so many rows and columns of the node have room for their
 * sums: all at once of so many channels, or, for 0, by few channels, and by
 * rows where these can be named. */
bool sums_have_room(const Facts *f, NodeId id, uint32_t channels, uint32_t rows,
                    uint32_t cols);

/* ---- channels.c: pools by some channels at a time ---- */

/* Channels of the largest channel tiles of the node, fewer than `below`, that
 * take at most `free` bytes with its result; 0 if there are none. */
uint32_t channel_tile_largest(const Decisions *d, NodeId node, uint32_t below,
                              uint64_t free);
/* Of its smallest channel tiles; 0: it cannot run so. */
uint32_t channel_tile_least(const Facts *f, NodeId node);
/* As pool_bytes, of all rows of so many channels. */
void channel_tile_bytes(const Facts *f, TensorId tensor, uint32_t channels,
                        uint64_t bytes[PACK_MAX_POOLS]);
/* How many row tiles, or channel tiles, the node's mode has. */
uint32_t parts_of_row_tiles(const Decisions *d, NodeId node);

/* Channel tiles of all that the node uses, for all of which there are places
 * outside, have multiples of this; NONE: there are none such. */
uint32_t channel_tile_quantum(const Facts *f, NodeId node);

/* The node's engine may add up any multiple of so many input channels, which
 * have places outside; NONE: it adds up all at once. */
uint32_t input_quantum(const Facts *f, NodeId id);

/* ---- channels_choose.c: the same of other layers, where they move less ----
 */

/* Whether each channel of the result is made from all of the operand. */
bool is_dense(const Node *node);
/* Whether it is made from the same one of each operand. */
bool goes_by_channel(const Facts *f, const Node *node);
/* Gives a node that runs whole the channel tiles that move least of those that
 * take at most `free` bytes; false if there are none, or row tiles move no
 * more. */
bool channel_tiles_start(Decisions *d, NodeId node, uint64_t free);
/* Thinner ones than its mode has; false if there are none. */
bool channel_tiles_shrink(Decisions *d, NodeId node);
/* Channels of the thinnest there are, whatever is free; 0: it cannot run so. */
uint32_t channel_tiles_thinnest(const Decisions *d, NodeId node);

/* ---- boxes.c: some columns of some rows, where no stripe fits ---- */

/* Gives the mode the boxes that move least of those that take at most `free`
 * bytes; false if there are none. */
bool boxes_choose(const Facts *f, NodeId node, uint64_t free, Mode *mode);
/* The same, if they move much less than stripes of so many rows, each of which
 * would load all weights again; `any`: not only those that make all of some
 * channels before the next ones. */
bool boxes_pay(const Facts *f, NodeId node, uint32_t rows, uint64_t free,
               bool any, Mode *mode);
/* Two of which have places, so that transfers hide, if that is worth what they
 * move more than stripes of so many rows, of which one has, or a pair. */
bool boxes_hide(const Facts *f, NodeId node, uint32_t rows, bool pair,
                uint64_t free, Mode *mode);
/* The smallest there are, whatever is free, and however many. */
bool boxes_smallest(const Facts *f, NodeId node, Mode *mode);
/* Bytes of one with its operands; UINT64_MAX: they have no places. */
uint64_t boxes_bytes(const Facts *f, NodeId node, const Mode *mode);
/* How many there are; the volume of operand k in one, or of the result, which
 * is behind the operands: the largest. */
uint32_t boxes_count(const Facts *f, NodeId node, const Mode *mode);
Volume boxes_volume(const Facts *f, NodeId node, const Mode *mode, uint32_t k);
/* Of Memo. */
size_t box_slots(const Graph *g);

/* ---- loop_nest.c: tiles of channels, too ---- */

/* Gives the mode, by a style with sums, the tiles that cost least: cycles, and
 * those that their bytes take to come NEST_BYTE_PRICE times, or where plans are
 * not timed TILE_BYTE_PRICE times. Where bytes alone count, the fastest of
 * those that move the fewest. */
enum { NEST_BYTE_PRICE = 10 };
void nest_choose(const Decisions *d, NodeId node, Mode *mode);
/* Of Memo. */
size_t nest_slots(const Schedule *schedule);
/* Bytes of the input and of weights that the mode reads from outside, and its
 * cycles. */
NestCost nest_cost(const Facts *f, NodeId node, const Mode *mode);
/* ---- styles.c ---- */

/* Gives all nodes the styles, or runs them whole, with which the least moves
 * and waits. */
void styles_choose(Decisions *d);

/* ---- hardware.c: layers by hardware tiles ---- */

/* Cycles with the mode's tiles, as the machine overlaps them; ports aside. */
uint64_t tiles_cycles(const Facts *f, NodeId node, const Mode *mode);
/* Gives the mode the tile, of those that fit, with the fewest cycles plus
 * `price` times those that its input takes to come; of equals the largest. */
void tiles_hasten(const Facts *f, NodeId node, uint32_t price, Mode *mode);
/* Gives it lower tiles, of layers without weights, that take fewer cycles and
 * read no more. */
void tiles_quicken(const Facts *f, NodeId node, Mode *mode);

#endif
