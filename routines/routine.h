/* routine.h - what only hosts compute: recurrent layers, picking by data,
 * sorting, sampling.
 *
 * A routine takes values and shapes, and gives values of one result. It knows
 * no graph and no machine, so that the reference evaluation and the simulator
 * use the same; foreign runtimes judge it (tests/onnx_testdata.py,
 * tests/exported.py). What there are, and their attributes: routines.def.
 *
 * Indices are numbers; they may count from the end. One that is outside picks
 * 0, and stores nothing.
 */
#ifndef ROUTINES_ROUTINE_H
#define ROUTINES_ROUTINE_H

#include "base/const.h"

typedef enum RoutineKind {
#define ROUTINE(NAME, name, min, max, results, doc) ROUTINE_##NAME,
#include "routines/routines.def"
    ROUTINE_COUNT
} RoutineKind;
extern const char *const routine_name[ROUTINE_COUNT + 1]; /* NULL at the end */

/* Attributes of one routine, one behind the other. */
enum { ROUTINE_NUMBERS = 24, ROUTINE_INPUTS = 8 };

typedef struct RoutineInfo {
    uint32_t min_in, max_in;
    uint32_t results; /* attribute "result" says which, from 0 */
} RoutineInfo;
extern const RoutineInfo routine_info[ROUTINE_COUNT];

/* What an attribute's numbers are. A WORD is its place in a list. */
typedef enum RoutineType {
    ROUTINE_REAL,
    ROUTINE_SIGNED, /* whole, from -2^24 to 2^24 */
    ROUTINE_WHOLE,  /* whole, from 0 to 2^24 */
    ROUTINE_WORD
} RoutineType;

typedef struct RoutineAttr {
    RoutineKind kind;
    const char *name;
    RoutineType type;
    uint32_t n; /* numbers */
    double absent;
    const char *const *words; /* NULL at the end */
    uint32_t at;              /* in the routine's numbers */
} RoutineAttr;
/* The `i`-th attribute of a routine; false behind the last. */
bool routine_attr(RoutineKind kind, uint32_t i, RoutineAttr *out);
bool routine_attr_named(RoutineKind kind, const char *name, RoutineAttr *out);
/* Its numbers from a pair. NULL, or what is wrong, to be put behind its name.
 */
const char *routine_set(RoutineKind kind, const AttrPair *pair, double *number);
/* What attributes are where nobody sets them. */
void routine_defaults(RoutineKind kind, double *number);
/* The routine that a layer's pairs name, and its numbers. NULL, or what is
 * wrong. */
const char *routine_read(uint32_t n, const AttrPair *attr, RoutineKind *kind,
                         double *number);

typedef struct RoutineCall {
    Arena *arena; /* for what the call needs meanwhile */
    RoutineKind kind;
    const double *number; /* ROUTINE_NUMBERS */
    uint32_t n_in;
    const Shape *shape;     /* of the inputs */
    const float *const *in; /* not looked at where shapes are asked for */
    Shape out_shape;
    float *out;
} RoutineCall;

/* The shape of the result. NULL, or what is wrong with attributes or shapes as
 * a sentence about the layer, in the arena. */
const char *routine_shape(const RoutineCall *call, Shape *out);
/* The values, where routine_shape agrees. */
void routine_run(const RoutineCall *call);
/* Multiply-adds, where routine_shape agrees. */
uint64_t routine_products(const RoutineCall *call);

#endif
