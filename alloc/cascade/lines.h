/* lines.h - cascades that roll by rows and columns; private to alloc.
 *
 * Rows come in bands, and each band by columns. Where memory is short all this
 * is done for a strip of the columns, then for the next one: line buffers are
 * as wide as a strip, and columns that a strip shares with the one before it,
 * its *halo*, are computed again.
 */
#ifndef ALLOC_CASCADE_LINES_H
#define ALLOC_CASCADE_LINES_H

#include "alloc/cascade/cascade.h"

typedef struct Piece {
    uint32_t at, n;
} Piece;

/* Columns [at, end) of a tensor, of which those from `fresh` on are not in the
 * strip before. */
typedef struct Strip {
    uint32_t at, fresh, end;
} Strip;

/* The line buffer of a tensor that only a cascade needs. */
typedef struct LineRing {
    TensorId tensor;
    uint32_t maker; /* index in the cascade; NONE: it is loaded */
    LineBuffer buffer;
    int64_t lead;     /* rows that are there more than those of its bands */
    Strip strip;      /* the one at work */
    uint32_t width;   /* columns of the widest strip */
    uint64_t columns; /* of all strips */
    uint32_t loaded;  /* columns up to here of this band, while it is rolled */
    bool passes;      /* nothing of it is kept when a band ends: it is */
    uint64_t offset;  /* ... here in the room that such lines share, */
    uint64_t beside;  /* ... at times together with these: bits */
    uint32_t buf;     /* counted from the cascade's first */
} LineRing;
/* What a node makes of each band, and at a time. */
typedef struct LineNode {
    uint32_t rows, cols;
    int64_t lead;     /* row 0 is behind so many of band 0 */
    Strip strip;      /* the one at work */
    uint64_t columns; /* of all strips */
} LineNode;
typedef struct Lines {
    VEC(LineRing) at;
    uint32_t n_loaded;  /* the first of them are loaded */
    LineNode *node;     /* by node of the cascade */
    int64_t first, end; /* bands */
    uint64_t room;      /* bytes */
    uint64_t bytes;     /* of the cascade */
} Lines;

static inline const Node *line_node(const Facts *f, const Cascade *g,
                                    uint32_t i) {
    return graph_node(f->g, cascade_node(f, g, i));
}
static inline TensorId line_result(const Facts *f, const Cascade *g,
                                   uint32_t i) {
    return line_node(f, g, i)->out[0];
}
/* Which line the tensor's is; NONE. */
static inline uint32_t line_of(const Lines *lines, TensorId t) {
    for (uint32_t i = 0; i < lines->at.n; i++)
        if (same_tensor(lines->at.at[i].tensor, t))
            return i;
    return NONE;
}

/* ---- line_bands.c ---- */

/* Rows of a band, of nodes and of what is loaded; false if there are none for
 * all. Rows that lines keep. */
bool line_bands_make(const Facts *f, const Cascade *g, Lines *lines);
/* Rows that node i makes in a band; that are loaded. */
Piece lines_made(const Facts *f, const Cascade *g, const Lines *lines,
                 uint32_t i, int64_t band);
Piece lines_loaded(const Facts *f, const LineRing *line, int64_t band);

/* ---- line_strips.c ---- */

uint32_t cascade_strips(const Cascade *g);
/* Sets the strips of all to the k-th. */
void strip_enter(const Facts *f, const Cascade *g, Lines *lines, uint32_t k);
/* How wide they are. */
void strips_measure(const Facts *f, const Cascade *g, Lines *lines);

/* ---- rolling_columns.c ---- */

/* Node i of a cascade adds columns of some rows to its result, or columns of an
 * operand of it are loaded. */
typedef struct LineTurn {
    uint32_t i, line; /* line: what is loaded */
    bool loads;
    Piece rows, cols;
    Rows in_rows, in_cols; /* of its operands */
} LineTurn;
/* done: columns by node, then; makes: whether it makes rows in this band. */
typedef void LineVisitor(void *context, const LineTurn *turn,
                         const uint32_t *done, const bool *makes);
/* All that the cascade's nodes do, in order. */
typedef struct LineWalk {
    const Facts *f;
    const Cascade *g;
    Lines *lines;
    LineVisitor *visit;
    void *context;
} LineWalk;
bool lines_roll(const LineWalk *walk);
/* The same of one band of the strip at work, until the last result has `most`
 * times its columns. */
bool lines_sweep(const LineWalk *walk, int64_t band, uint32_t most);

/* ---- line_buffers.c ---- */

/* The line buffers of a cascade with `cols`; false if it cannot be computed so.
 * Not `exact`: of what a band in the middle begins with. */
bool lines_make(const Decisions *d, const Cascade *g, bool exact, Lines *lines);
/* The volume of its pixels. */
Volume line_volume(const Facts *f, const LineRing *line);
uint64_t line_bytes(const Facts *f, const LineRing *line);
/* Numbers the buffers: one for each line that keeps rows, then the room. */
void lines_number(Lines *lines);
/* Of a cascade that was chosen, found once. */
const Lines *cascade_lines(const Decisions *d, const Cascade *g);

#endif
