/* order.h - what functions for qsort answer: below 0, 0, above 0.
 *
 *     return order_by(ORDER_DOWN(x->bytes, y->bytes), ORDER_UP(x->id, y->id));
 */
#ifndef BASE_ORDER_H
#define BASE_ORDER_H

#define ORDER_UP(a, b) (((a) > (b)) - ((a) < (b)))
#define ORDER_DOWN(a, b) ORDER_UP(b, a)

/* By the one, and where that tells nothing by the other. */
static inline int order_by(int one, int other) {
    return one ? one : other;
}
static inline int order_by3(int one, int other, int last) {
    return order_by(one, order_by(other, last));
}

#endif
