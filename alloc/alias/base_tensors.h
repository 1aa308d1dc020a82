/* base_tensors.h - tensors that hold values of their own; private to alloc. */
#ifndef ALLOC_ALIAS_BASE_TENSORS_H
#define ALLOC_ALIAS_BASE_TENSORS_H

#include "alloc/facts.h"

/* Any tensor but a concat by placement: that is what its members are. */
typedef struct BaseTensor {
    TensorId tensor;
    double bytes;  /* without padding */
    double store;  /* what it costs to have it outside, too: those, or 0
                    * where it is there anyway */
    uint32_t made; /* step; NONE: it comes from outside */
    uint32_t n;    /* readers, of it or of a concat that it is part of: */
    const NodeId *reader; /* by step, each once */
} BaseTensor;

typedef struct BaseTensors {
    uint32_t n;
    BaseTensor *at;
    uint32_t *of; /* by tensor; NONE */
} BaseTensors;

/* False if there are too many readers to list. */
bool base_tensors_make(const Facts *f, BaseTensors *out);

#endif
