/* engine.h - instructions of engines and of the DMA, run on the memories.
 *
 * Input: a Work. Output: cells, counters, and a call of the observer for each
 * result. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "sim/compute.h"

/* A convolution, pool, sum...: the whole volume at once, or by tiles. These
 * return false if nothing ran, as operands were missing. */
bool engine_run(Run *run, const Work *work);
/* tiles.c: the machine runs the instruction by tiles. */
bool tiles_run(Run *run, const Job *job, SimEvent *event);
/* Whether the instruction's tiles can be of the style, by operation and
 * memories. */
bool tiles_may_be(const HwSpec *spec, const Work *work,
                  const HwTileStyle *style);
/* nest.c: the same by tiles of channels, too. */
bool nest_run(Run *run, const Job *job, SimEvent *event);
/* move.c: a load or a store. */
bool move_run(Run *run, const Work *work);
/* The unit of insn.h at which a transfer is at work. */
uint32_t unit_that_moves(const Run *run, const Work *work);

/* operand.c */
/* False, with a violation, if an operand cannot be there. */
bool operand_ready(Run *run, const Place *place, Box box, const char *what);
/* Reads a box of an operand and counts what comes from a backing memory. */
void operand_read(Run *run, const Place *place, Box box, const char *what,
                  float *out);
/* The mirror. */
void operand_write(Run *run, const Place *place, Box box, uint32_t writer,
                   const float *values);
/* Bytes of the whole operand, if it lies outside active memory. */
uint64_t operand_outside(const Run *run, const Place *place);
SimSpan span_of(const Run *run, const Place *place);
/* Calls the observer. */
void show_result(Run *run, const char *name, const Extent *size,
                 const float *value);

/* inputs.c */
/* Writes the network inputs that the image names. */
void inputs_write(Run *run, bool first);
/* A listing without an image does not say where its inputs are: they are taken
 * to be what its first instruction reads, and what lies in input memories. */
void inputs_assume(Run *run, const Place *place);

/* cycles.c */
/* What it takes to make a box of the output, transfers aside. */
SimEvent cost_of_box(const Run *run, const Work *work, Box out);
/* Cycles that the engine is busy with it. */
uint64_t cost_busy(const Work *work, const SimEvent *cost);
/* A box of an operand between its memory and an engine or active memory. */
/* The box at one end moves to the other, between memories. */
uint64_t cycles_of_move(const Run *run, const Work *w, Box box);
/* c x rows x cols of an operand that the engine itself takes or leaves. */
uint64_t cycles_of_tile(const Run *run, const Place *place, const Extent *whole,
                        uint32_t c, uint32_t rows, uint32_t cols);

/* timeline.c */
/* Waits until these units are idle: what they touch is touched no more. */
void timeline_wait(Run *run, uint64_t units);
/* Adds an instruction that takes event->cycles on a unit. */
void timeline_add(Run *run, uint32_t unit, const SimEvent *event);

/* queue.c, where the machine has such */
/* Finds when the work may begin at the earliest. */
void queue_begin(Run *run, const Work *work, uint32_t unit);
/* The same of a layer of the host, which is then done. */
void queue_host(Run *run, const Work *work);
/* Remembers what it touches until it is done. */
void queue_end(Run *run, const Work *work, uint32_t unit);
/* Tables of volumes go (tables.c): keeps its own. */
void queue_between(Run *run);

/* order.c */
/* Finds the table's item of each instruction. */
void order_open(Run *run);
/* Has the listing as many instructions as its image knows of? */
void order_close(Run *run);
/* Is it named and numbered as it must be? */
void order_check(Run *run, const Work *work);
/* Does it touch what another one of its step touches? */
void order_beside(Run *run, const Work *work);

/* steady.c */
/* Cycles between the ends of two images, the events being known. */
uint64_t steady_cycles(Run *run);

#endif
