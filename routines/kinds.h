/* kinds.h - what each routine has, and what they share; inside routines/ only.
 */
#ifndef ROUTINES_KINDS_H
#define ROUTINES_KINDS_H

#include "routines/routine.h"

typedef const char *RoutineShape(const RoutineCall *call, Shape *out);
typedef void RoutineRun(const RoutineCall *call);
#define ROUTINE(NAME, name, min, max, results, doc)                            \
    RoutineShape name##_shape;                                                 \
    RoutineRun name##_run;
#include "routines/routines.def"

/* Places in lists of words: NAME(word). */
#define REDUCTIONS(WORD) WORD(none) WORD(add) WORD(mul) WORD(max) WORD(min)
#define SAMPLE_MODES(WORD) WORD(bilinear) WORD(nearest) WORD(bicubic)
#define SAMPLE_OUTSIDES(WORD) WORD(zeros) WORD(border) WORD(reflection)
#define CELLS(WORD) WORD(rnn) WORD(gru) WORD(lstm)
#define RECURRENT_ACTS(WORD)                                                   \
    WORD(sigmoid)                                                              \
    WORD(tanh) WORD(relu) WORD(hard_sigmoid) WORD(affine) WORD(leaky_relu)     \
        WORD(thresholded_relu) WORD(scaled_tanh) WORD(elu) WORD(softsign)      \
            WORD(softplus)
#define WORD(name) REDUCTION_##name,
enum { REDUCTIONS(WORD) N_REDUCTIONS };
#undef WORD
#define WORD(name) SAMPLE_##name,
enum { SAMPLE_MODES(WORD) N_SAMPLE_MODES };
enum { SAMPLE_OUTSIDES(WORD) N_SAMPLE_OUTSIDES };
#undef WORD
#define WORD(name) CELL_##name,
enum { CELLS(WORD) N_CELLS };
#undef WORD
#define WORD(name) RECURRENT_##name,
enum { RECURRENT_ACTS(WORD) N_RECURRENT_ACTS };
#undef WORD

/* Number `i` of an attribute that the routine has. */
double routine_real(const RoutineCall *call, const char *name, uint32_t i);
uint32_t routine_whole(const RoutineCall *call, const char *name, uint32_t i);

/* The place that an index names among `size`; -1: outside. */
int64_t routine_place(float index, uint32_t size);
/* Elements of axes [from, to). */
uint64_t routine_product(const Shape *shape, uint32_t from, uint32_t to);
/* An error about two shapes that do not go together. */
const char *routine_misfit(const RoutineCall *call, uint32_t a, uint32_t b);

/* convolve.c, recurrent.c */
uint64_t convolve_products(const RoutineCall *call);
uint64_t recurrent_products(const RoutineCall *call);

#endif
