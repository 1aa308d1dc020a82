/* decode.h - a file while it is read, for the files that do it. */
#ifndef HWSPEC_FORMAT_DECODE_H
#define HWSPEC_FORMAT_DECODE_H

#include "hwspec/format/format.h"

/* Elements of a vector that is being read. */
typedef struct Filling {
    uint64_t cap;
    uint8_t *byte;
    int64_t *num;
} Filling;

typedef struct Raw {
    bool seen;
    uint64_t bits;
    size_t at;
} Raw;

typedef struct NodeMark {
    bool has_number, has_size;
    int64_t number, size;
} NodeMark;

typedef struct Decoder {
    Arena *arena;
    Diag *diag;
    const HwFormat *format;
    const char *file;
    const uint8_t *data;
    size_t len, at, end; /* end: of what is being read */
    size_t lacks;        /* zero bytes that may be missing behind `len` */
    ExprEnv env;
    Filling *filling; /* by name */
    const ProgRow *row;
    Raw *raw;      /* late fields of the row */
    size_t *state; /* by word that stays in force: 1 + where, 0: not yet */
    bool *natural; /* by name: a gap that alignment alone explains */
    Program *program;
    NodeMark *mark;
    uint32_t node; /* that is being read */
    bool failed;   /* what is being read cannot go on */
} Decoder;

static inline Loc decode_place(const Decoder *d, size_t at) {
    return (Loc){.file = d->file, .col = (uint32_t)at};
}
static inline const char *decode_name(const Decoder *d, uint32_t name) {
    return d->format->names->list.at[name].name;
}

#define DECODE_FAIL(d, at, ...)                                                \
    do {                                                                       \
        diag_error((d)->diag, decode_place((d), (at)), __VA_ARGS__);           \
        (d)->failed = true;                                                    \
    } while (0)

/* ---- decode_values.c; all report what is wrong ---- */

/* An expression; `values`: with what its names are. */
const char *decode_text(const Decoder *d, const Expr *e, bool values);
bool decode_eval(Decoder *d, const Expr *e, int64_t *out);
/* These bits, which lie at byte `at`, are the field's. */
void decode_field(Decoder *d, const Field *field, uint64_t bits, size_t at);
/* A vector of `n` elements that the bytes which are left could hold. */
bool decode_reserve(Decoder *d, uint32_t name, uint64_t n);

#endif
