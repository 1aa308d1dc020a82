/* receptive_field.h - which pixels of an operand a layer needs, along an axis;
 * private to alloc. Taken from below: where strides or dilation leave holes,
 * fewer.
 */
#ifndef ALLOC_GEOMETRY_RECEPTIVE_FIELD_H
#define ALLOC_GEOMETRY_RECEPTIVE_FIELD_H

#include "alloc/facts.h"

typedef struct Span {
    int64_t at, end; /* empty unless at < end */
} Span;

typedef enum FootKind {
    FOOT_WINDOW, /* of stride `s`, `k` pixels, `d` apart, the first `pad`
                  * before the axis */
    FOOT_SPREAD, /* the other way round: an input makes the window */
    FOOT_ALL,    /* the layer needs all, or runs at once */
    FOOT_NONE    /* nothing is known */
} FootKind;

typedef struct Foot {
    FootKind kind;
    int64_t k, s, d, pad;
    int64_t in, out; /* sizes */
} Foot;

/* Of a layer: two are a convolution, then a pool. */
typedef struct Feet {
    bool pointwise; /* operands may be of one pixel */
    uint32_t n;
    Foot foot[2];
} Feet;

/* Along rows (0) or columns. Of layers that never run by parts: all. */
Feet feet_of(const Facts *f, NodeId id, uint32_t axis);
/* The same whether it runs by parts or not. */
Feet feet_anywhere(const Facts *f, NodeId id, uint32_t axis);
/* Whether they tell which pixels of an operand of `size` are read. */
bool feet_known(const Feet *feet, int64_t size);
/* Pixels of an operand of `size`, each of which some of `made` of the result is
 * made from. */
Span feet_reads(const Feet *feet, int64_t size, Span made);
/* Pixels of the result, of `made`, each of which is made from some of `read` of
 * an operand of `size`. */
Span feet_readers(const Feet *feet, int64_t size, int64_t made, Span read);
/* How many pixels of an operand of `size` it needs. */
int64_t feet_touched(const Feet *feet, int64_t size, int64_t made);

static inline Span span_both(Span a, Span b) {
    return (Span){a.at > b.at ? a.at : b.at, a.end < b.end ? a.end : b.end};
}

static inline int64_t span_length(Span s) {
    return s.end > s.at ? s.end - s.at : 0;
}

#endif
