/* routine.c - the table of routines, and their attributes by name; see
 * routine.h. */
#include "routines/kinds.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const char *const routine_name[ROUTINE_COUNT + 1] = {
#define ROUTINE(NAME, name, min, max, results, doc) #name,
#include "routines/routines.def"
};

const RoutineInfo routine_info[ROUTINE_COUNT] = {
#define ROUTINE(NAME, name, min, max, results, doc) {min, max, results},
#include "routines/routines.def"
};

static RoutineShape *const shape_of[ROUTINE_COUNT] = {
#define ROUTINE(NAME, name, min, max, results, doc) name##_shape,
#include "routines/routines.def"
};

static RoutineRun *const run[ROUTINE_COUNT] = {
#define ROUTINE(NAME, name, min, max, results, doc) name##_run,
#include "routines/routines.def"
};

/* ---- attributes ---- */

#define WORD(name) #name,
static const char *const reductions[] = {REDUCTIONS(WORD) NULL};
static const char *const sample_modes[] = {SAMPLE_MODES(WORD) NULL};
static const char *const sample_outsides[] = {SAMPLE_OUTSIDES(WORD) NULL};
static const char *const cells[] = {CELLS(WORD) NULL};
static const char *const recurrent_acts[] = {RECURRENT_ACTS(WORD) NULL};
#undef WORD

static const RoutineAttr attrs[] = {
#define ROUTINE_ATTR(NAME, name, type, n, absent, words)                       \
    {ROUTINE_##NAME, name, ROUTINE_##type, n, absent, words, 0},
#include "routines/routines.def"
};
enum { N_ATTRS = sizeof attrs / sizeof *attrs };

bool routine_attr(RoutineKind kind, uint32_t i, RoutineAttr *out) {
    uint32_t at = 0, seen = 0;
    for (uint32_t k = 0; k < N_ATTRS; k++) {
        if (attrs[k].kind != kind)
            continue;
        if (seen++ == i) {
            *out = attrs[k];
            out->at = at;
            return true;
        }
        at += attrs[k].n;
    }
    return false;
}

bool routine_attr_named(RoutineKind kind, const char *name, RoutineAttr *out) {
    for (uint32_t i = 0; routine_attr(kind, i, out); i++)
        if (!strcmp(out->name, name))
            return true;
    return false;
}

void routine_defaults(RoutineKind kind, double *number) {
    RoutineAttr attr;
    for (uint32_t i = 0; routine_attr(kind, i, &attr); i++)
        for (uint32_t k = 0; k < attr.n; k++)
            number[attr.at + k] = attr.absent;
}

static const char *set_word(const RoutineAttr *attr, const char *word,
                            double *number) {
    if (!word)
        return "must be a word";
    for (uint32_t i = 0; attr->words[i]; i++)
        if (!strcmp(attr->words[i], word)) {
            *number = i;
            return NULL;
        }
    return "is not a word that is known here";
}

const char *routine_set(RoutineKind kind, const AttrPair *pair,
                        double *number) {
    RoutineAttr attr;
    if (!routine_attr_named(kind, pair->name, &attr))
        return "is not an attribute of this routine";
    if (attr.type == ROUTINE_WORD)
        return set_word(&attr, pair->word, &number[attr.at]);
    if (pair->n != attr.n)
        return "has a wrong number of values";
    for (uint32_t i = 0; i < attr.n; i++) {
        double value = pair->value[i];
        double least = attr.type == ROUTINE_WHOLE ? 0 : -(1 << 24);
        if (attr.type != ROUTINE_REAL &&
            !(value >= least && value <= 1 << 24 && floor(value) == value))
            return "must be whole numbers of at most 2^24";
        number[attr.at + i] = value;
    }
    return NULL;
}

const char *routine_read(uint32_t n, const AttrPair *attr, RoutineKind *kind,
                         double *number) {
    const AttrPair *named = attr_find(attr, n, "routine");
    uint32_t known = 0;
    RoutineAttr own;
    while (known < ROUTINE_COUNT && !attr_is(named, routine_name[known]))
        known++;
    if (known == ROUTINE_COUNT)
        return "names no routine";
    *kind = (RoutineKind)known;
    routine_defaults(*kind, number);
    const char *wrong = NULL;
    for (uint32_t i = 0; !wrong && i < n; i++)
        if (routine_attr_named(*kind, attr[i].name, &own))
            wrong = routine_set(*kind, &attr[i], number);
    return wrong;
}

double routine_real(const RoutineCall *call, const char *name, uint32_t i) {
    RoutineAttr attr = {0};
    return routine_attr_named(call->kind, name, &attr)
               ? call->number[attr.at + i]
               : 0;
}

uint32_t routine_whole(const RoutineCall *call, const char *name, uint32_t i) {
    return (uint32_t)routine_real(call, name, i);
}

/* ---- what routines share ---- */

int64_t routine_place(float index, uint32_t size) {
    if (!(index > -2147483648.0F && index < 2147483648.0F))
        return -1;
    int64_t at = (int64_t)index;
    at += at < 0 ? size : 0;
    return at < size ? at : -1;
}

uint64_t routine_product(const Shape *shape, uint32_t from, uint32_t to) {
    uint64_t n = 1;
    for (uint32_t i = from; i < to; i++)
        n *= shape->dim[i];
    return n;
}

const char *routine_misfit(const RoutineCall *call, uint32_t a, uint32_t b) {
    return arena_printf(call->arena, "%s and %s do not go together",
                        shape_text(call->arena, &call->shape[a]),
                        shape_text(call->arena, &call->shape[b]));
}

/* ---- calls ---- */

const char *routine_shape(const RoutineCall *call, Shape *out) {
    const RoutineInfo *info = &routine_info[call->kind];
    if (call->n_in < info->min_in || call->n_in > info->max_in)
        return arena_printf(call->arena, "has %u inputs, not %u to %u",
                            call->n_in, info->min_in, info->max_in);
    for (uint32_t i = 0; i < call->n_in; i++)
        if (!call->shape[i].rank || shape_count(&call->shape[i]) == UINT64_MAX)
            return "has an input of no shape";
    if (routine_whole(call, "result", 0) >= info->results)
        return arena_printf(call->arena, "has %u results", info->results);
    *out = (Shape){0};
    const char *wrong = shape_of[call->kind](call, out);
    if (!wrong && out->rank > SHAPE_MAX_RANK)
        return "makes too many axes";
    uint64_t count = shape_count(out);
    if (!wrong && (!count || count == UINT64_MAX))
        return "makes no result, or one that is too large";
    return wrong;
}

void routine_run(const RoutineCall *call) {
    run[call->kind](call);
}

uint64_t routine_products(const RoutineCall *call) {
    return call->kind == ROUTINE_CONVOLVE    ? convolve_products(call)
           : call->kind == ROUTINE_RECURRENT ? recurrent_products(call)
                                             : 0;
}
