/* run.h - a network on many samples.
 *
 * What graph_eval computes, with what does not change from sample to sample
 * made once: layers of real numbers in floats that have the same bits on every
 * processor, layers on codes exactly.
 */
#ifndef QUANTISE_RUN_H
#define QUANTISE_RUN_H

#include "graph/graph.h"

typedef struct Runner Runner;

/* Layers with weights have no activation but a bound or a slope below 0. */
Runner *runner_new(Arena *arena, const Graph *g);

/* Values of every tensor by id, from node `first` on; what nodes before it
 * write must be in `at` already. inputs[i]: of the i-th OP_INPUT, real numbers
 * where the graph has codes too. What is made lives in `arena`. */
void runner_eval(const Runner *runner, Arena *arena, const float *const *inputs,
                 uint32_t first, float **at);
/* One node of them, into `at` where it has room for its result already. */
void runner_node(const Runner *runner, Arena *arena, const float *const *inputs,
                 uint32_t node, float **at);

/* The node's constants or quantisations have changed. */
void runner_renew(Runner *runner, Arena *arena, uint32_t node);

/* Real numbers behind values of a tensor; themselves where they are real. */
const float *run_reals(Arena *arena, const Tensor *tensor, const float *value);

/* Calls work(context, i, scratch) for i in [0, n), in several threads; results
 * must not depend on the order. */
typedef void RunWork(void *context, uint32_t i, Arena *scratch);
void run_all(uint32_t n, uint32_t threads, RunWork *work, void *context);

#endif
