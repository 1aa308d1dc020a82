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
bool tiles_run(Run *run, const Job *job);
/* move.c: a load or a store. */
bool move_run(Run *run, const Work *work);

/* False, with a violation, if an operand cannot be there. */
bool operand_ready(Run *run, const Place *place, Box box, const char *what);
/* Reads a box of an operand and counts what comes from a backing memory. */
void operand_read(Run *run, const Place *place, Box box, const char *what,
                  float *out);
/* The mirror. */
void operand_write(Run *run, const Place *place, Box box, uint32_t writer,
                   const float *values);

/* inputs.c */
/* Writes the network inputs that the image names. */
void inputs_write(Run *run);
/* A listing without an image does not say where its inputs are: they are taken
 * to be what its first instruction reads, and what lies in input memories. */
void inputs_assume(Run *run, const Place *place);

/* cycles.c */
/* read, written: bytes that it moved from and to backing memories. */
uint64_t cycles_of_work(const Run *run, const Work *work, uint64_t read,
                        uint64_t written);
uint64_t cycles_of_bytes(const Run *run, uint32_t memory, uint64_t bytes);
/* Adds an instruction's cycles to its engine and to the total; instructions of
 * one step run side by side. */
void cycles_add(Run *run, uint32_t use, uint64_t cycles);
void cycles_end_step(Run *run);

/* Calls the observer. */
void show_result(Run *run, const char *name, const Extent *size,
                 const float *value);

#endif
