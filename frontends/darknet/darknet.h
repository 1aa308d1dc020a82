/* darknet.h - Darknet's networks; inside frontends/darknet only. */
#ifndef FRONTENDS_DARKNET_DARKNET_H
#define FRONTENDS_DARKNET_DARKNET_H

#include "frontends/net/net.h"

typedef struct Option {
    const char *key, *value;
} Option;

typedef struct Section {
    const char *kind;
    uint32_t line;
    VEC(Option) option;
    TensorId out;
    bool detects;
} Section;

typedef struct Dark {
    Net net;
    VEC(Section) section; /* 0: [net] */
    const Section *at;
    uint32_t layer; /* of the section `at`, from 0 */
    TensorId before;
    Bytes weights; /* what is left of them */
} Dark;

/* ---- node.c: options and weights of the section `at` ---- */

const char *dark_text(const Dark *d, const char *key, const char *fallback);
uint32_t dark_number(const Dark *d, const char *key, uint32_t fallback);
/* Of height and width: key_y and key_x, or key for both. */
void dark_numbers(const Dark *d, const char *key, uint32_t fallback,
                  uint32_t out[2]);
/* The next `n` floats of the weights; NULL without a file. */
const Const *dark_floats(Dark *d, uint64_t n);

/* ---- ops.c ---- */

typedef struct DarkOp {
    const char *name;
    TensorId (*build)(Dark *);
    bool detects; /* what goes in is a result of the network */
} DarkOp;
/* NULL if it is not known. */
const DarkOp *dark_find_op(const char *name);
/* False, with an error, where an option of the section changes what it computes
 * in a way that no builder knows. */
bool dark_is_plain(const Dark *d);

#endif
