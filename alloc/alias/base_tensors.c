/* base_tensors.c - tensors that hold values of their own, and who reads them.
 *
 * Input: roles, the schedule. Output: leaves in order of their ids. Bounds
 * count these, not alias classes: a plan may take a concat apart, and of a
 * chain in place any part may be outside.
 */
#include "alloc/alias/base_tensors.h"
#include "alloc/geometry/tensor_bytes.h"

#include "base/order.h"

#include <stdlib.h>

/* ---- readers ---- */

typedef struct Read {
    uint32_t step;
    NodeId node;
} Read;

static int by_step(const void *a, const void *b) {
    const Read *x = a, *y = b;
    return order_by(ORDER_UP(x->step, y->step), ORDER_UP(x->node.i, y->node.i));
}

typedef VEC(Read) Reads;

static void reads_add(const Facts *f, TensorId t, Reads *reads) {
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++) {
        NodeId node = f->uses.node[i];
        uint32_t step = f->schedule->step_of[node.i];
        if (step != NONE && !is_placed(f, node))
            vec_push(f->arena, reads, ((Read){step, node}));
    }
}

static void readers_fill(const Facts *f, Reads *reads, BaseTensor *base) {
    NodeId *reader = ARENA_ARRAY(f->arena, NodeId, reads->n + 1);
    if (reads->n)
        qsort(reads->at, reads->n, sizeof *reads->at, by_step);
    for (uint32_t i = 0; i < reads->n; i++)
        if (!i || reads->at[i].node.i != reads->at[i - 1].node.i)
            reader[base->n++] = reads->at[i].node;
    base->reader = reader;
}

/* ---- leaves ---- */

/* *sum: grows by what has been looked at. */
static BaseTensor base_make(const Facts *f, TensorId t, Reads *reads,
                            uint64_t *sum) {
    const Role *role = &f->role[t.i];
    BaseTensor base = {.tensor = t,
                       .bytes = (double)moved_bytes(f, t),
                       .made = from_outside(f, t) ? NONE : role->made};
    bool there = from_outside(f, t);
    reads->n = 0;
    for (TensorId at = t; at.i != NONE; at = f->role[at.i].parent) {
        there |= f->role[at.i].outside;
        reads_add(f, at, reads);
        *sum += 1;
    }
    *sum += reads->n;
    base.store = there ? 0 : base.bytes;
    readers_fill(f, reads, &base);
    return base;
}

bool base_tensors_make(const Facts *f, BaseTensors *out) {
    enum { MOST = 1 << 20 };
    uint64_t sum = 0;
    Reads reads = {0};
    out->at = ARENA_ARRAY(f->arena, BaseTensor, f->g->tensor.n + 1);
    out->of = ARENA_ARRAY(f->arena, uint32_t, f->g->tensor.n + 1);
    out->n = 0;
    for (TensorId t = {0}; t.i < f->g->tensor.n && sum <= MOST; t.i++) {
        out->of[t.i] = NONE;
        if (f->role[t.i].origin == FROM_PARTS)
            continue;
        out->of[t.i] = out->n;
        out->at[out->n] = base_make(f, t, &reads, &sum);
        out->n++;
    }
    return sum <= MOST;
}
