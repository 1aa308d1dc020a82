/* config.h - what the search for plans varies; private. */
#ifndef ALLOC_CONFIG_H
#define ALLOC_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

/* How what does not fit whole is made to fit. */
typedef enum Family {
    FAMILY_SPILL,    /* whole layers; parts of tensors leave, or tiles run */
    FAMILY_CASCADES, /* depth-first cascades, chosen by dynamic programming */
    FAMILY_BESIDE,   /* the same beside tensors that stay whole */
    FAMILY_LOCAL,    /* cascades only around steps that do not fit */
    FAMILY_ROLL      /* all layers roll, nothing is spilled */
} Family;

/* What a search of volumes alone is for beside bytes. */
typedef struct Aims {
    bool hides; /* row tiles in two sets, and what rolls leaves late: for
                 * machines with a queue */
    bool fills; /* engines make as many rows at once as they can */
    const uint64_t *blocks; /* by node: bytes for weights that its step leaves
                             * beside what else lies there; or NULL */
} Aims;
static inline bool same_aims(Aims a, Aims b) {
    return a.hides == b.hides && a.fills == b.fills && a.blocks == b.blocks;
}

typedef struct Config {
    Aims aims;
#define CONFIG(type, name, stage) type name;
#include "alloc/config.def"
#undef CONFIG
} Config;
static inline bool config_same(const Config *a, const Config *b) {
    bool same = same_aims(a->aims, b->aims);
#define CONFIG(type, name, stage) same = same && a->name == b->name;
#include "alloc/config.def"
#undef CONFIG
    return same;
}
/* The same cascades, if they have the same budget. */
static inline bool config_same_cascades(const Config *a, const Config *b) {
    bool same = same_aims(a->aims, b->aims);
#define BUDGET(is) true
#define CASCADES(is) (is)
#define PLACES(is) true
#define CONFIG(type, name, stage) same = same && stage(a->name == b->name);
#include "alloc/config.def"
#undef CONFIG
#undef BUDGET
#undef CASCADES
#undef PLACES
    return same;
}

/* Volumes stay where rows of them are read, of which little is there at a time:
 * of active memory one part in so many; 0: none stays. */
static inline uint32_t config_low(const Config *c) {
    enum { LOW = 8 };
    return c->family == FAMILY_BESIDE || c->family == FAMILY_LOCAL ? LOW : 0;
}

/* Config.runs, where transfers are to hide. */
enum { HIDING_RUNS = 8 };

/* Steps of the longest cascade that is looked at. */
enum { CASCADE_STEPS = 24, CASCADE_STEPS_LONGER = 2 * CASCADE_STEPS };

static inline uint32_t config_longest(const Config *c) {
    return c->longer ? CASCADE_STEPS_LONGER : CASCADE_STEPS;
}

#endif
