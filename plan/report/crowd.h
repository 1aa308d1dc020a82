/* crowd.h - what is alive in each step of a plan, and how many bytes of active
 * memory it takes. */
#ifndef PLAN_REPORT_CROWD_H
#define PLAN_REPORT_CROWD_H

#include "plan/report/tensor_history.h"

typedef struct Crowd {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    const HwSpec *spec;
    const Story *story; /* by tensor */
    Steps *life;        /* by tensor: from its making to its last reader */
    uint64_t *live;     /* by step: bytes in use, */
    uint64_t *whole;    /* and of all volumes that are alive, were they whole */
    uint64_t total;     /* of active memory */
} Crowd;

Crowd crowd_of(Arena *arena, const Plan *plan);

/* Bytes of the tensor, were it whole in the first memory. */
uint64_t whole_bytes(const Crowd *y, TensorId t);
/* The fullest step of [first, end). */
uint32_t fullest(const uint64_t *bytes, uint32_t first, uint32_t end);
/* Bytes of its first channels, where it lies; 0: of none, or of all. */
uint64_t first_channels(const Crowd *y, const Story *s, uint32_t channels);

/* Away in steps [first, end), but for its first `kept` channels, or its last.
 */
typedef struct Gap {
    uint32_t first, end, kept;
    bool last;
} Gap;
/* Gaps between its making and its last reader; its place may live longer. */
uint32_t gaps_of(const Crowd *y, const Story *s, Gap **out);

#endif
