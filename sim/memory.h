/* memory.h - memories as cells of one element, and volumes in them.
 *
 * A Place says which cells the elements of an operand are. A cell holds a value
 * and the number of the Writer that wrote it last; a Writer remembers its
 * Place. So a reader can tell of every cell whether it still holds the element
 * that the reader wants: the writer's place must give the same cell the same
 * row and column, and a channel that is off by one amount for all its cells
 * (parts of concatenations). In a ring they are the row and the column of the
 * whole tensor, and each cell is looked at by itself. So it is where rows or
 * channels were put together from several writers, or by copies: origin.h.
 *
 * Input: addresses and volumes as instructions give them, checked here.
 * Invariants: every cell of a Place lies in its memory; pages are made when
 * first written, so memory use is bounded by what is written.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "codegen/listing.h"
#include "hwspec/address.h"
#include "hwspec/hwspec.h"
#include "hwspec/lines.h"

typedef struct Run Run;

/* Rows and columns of a volume, all channels. */
typedef struct Box {
    uint32_t row, rows, col, cols;
} Box;

/* Of a kernel, row by row. */
typedef struct Taps {
    uint32_t first, n;
} Taps;

typedef struct Place {
    uint32_t memory;
    uint32_t c, h, w;  /* of the operand */
    uint32_t turns;    /* rows of the ring that it lies in, or the columns of
                        * the tensor in a line buffer; else 0 */
    bool ring;         /* it lies in a ring: its pixels are not h = 0, */
    uint32_t row, col; /* w = 0, but these of the whole tensor, and the next */
    const char *weights_of; /* NULL, or a layer: its weights, staged.h, from
                             * output channel `row` and input channel `col` on;
                             * or what else of it is no volume: */
    const char *role;       /* "weights", "bias", "sums"; a literal */
    Taps taps;              /* of weights, where instructions tell them */
    bool part;              /* it is said to be part of the channels of */
    Volume whole;           /* ... this, as far as the instruction says */
    Volume inside;          /* the enclosing volume, and the operand's first */
    uint32_t part_c;        /* channel in it */
    uint64_t first, end;    /* cells that it may touch, half open */
    uint64_t start;         /* cell of channel 0 of the enclosing volume */
    const uint64_t *c_at;   /* cells from start, by the operand's channels */
    const uint64_t *h_at, *w_at; /* all NULL where no cell is looked at */
    uint32_t w_step; /* 0, or w: columns of each row have their own w_at */
    const uint32_t *copies; /* by channel */
    uint64_t copy_step;
} Place;

/* Where an operand is said to be. */
typedef struct Spot {
    const char *what; /* "input": for messages */
    uint32_t memory;
    uint64_t offset; /* bytes: start of `whole` */
    Volume whole;
    uint32_t part_c;  /* the operand's first channel in whole */
    uint32_t c;       /* its channels */
    bool part;        /* a part of a volume need not be aligned */
    Volume said;      /* `whole` where the instruction says its channels */
    bool ring;        /* row r of the tensor is row r % whole.h of whole */
    LineBuffer lines; /* band > 0: its pixels are those of whole's row */
    uint32_t row, col, h, w; /* ring: the operand's first row and column, and
                              * how many */
    uint32_t pitch;          /* lines: columns of the tensor */
} Spot;

typedef enum WriterKind {
    WRITER_ENGINE, /* an engine, a load or a store */
    WRITER_BUFFER, /* a tile on its way into an engine */
    WRITER_HOST    /* the host, network inputs included */
} WriterKind;

typedef struct Writer {
    uint32_t insn; /* index; of hosts' inputs: UINT32_MAX */
    const char *name;
    WriterKind kind;
    Place place;
    uint64_t elements;    /* written so far: parts of the place */
    uint32_t last_reader; /* instruction of the device; 0: none */
} Writer;

enum {
    PAGE_BITS = 14,
    DIRECTORY_BITS = 12,
    PAGE_CELLS = 1 << PAGE_BITS,
    DIRECTORY_PAGES = 1 << DIRECTORY_BITS
};

/* What a cell was before it was copied here. */
typedef struct CellOrigin {
    uint32_t writer; /* index + 1; 0: it was not copied */
    uint64_t cell;
} CellOrigin;

typedef struct Page {
    float *value;       /* NULL where no arithmetic is done */
    uint32_t *writer;   /* index + 1; 0: never written */
    CellOrigin *origin; /* NULL where no copies lie */
    uint32_t *crossed;  /* NULL, or the last writer of whom the other side, of
                         * host and device, has read the cell */
} Page;

typedef struct Cells {
    uint64_t n;
    Page ***directory; /* [index >> 26][index >> 14 & 4095] */
    uint64_t live;     /* cells that were ever written */
    uint64_t crossed;  /* values in them that went from host to device or back:
                        * each counts once */
    uint64_t touched;  /* bytes up to the last one touched */
} Cells;

void memory_open(Run *run);

/* Cells, in units of elements, of any volume that is sane; the tables are the
 * instruction's. */
typedef struct VolumeTables {
    LayoutTables at;
    bool rise; /* by channel, row and column, and nothing has copies */
} VolumeTables;
VolumeTables tables_of(Run *run, const Layout *layout, const Volume *volume);
void tables_open(Run *run);
/* Between two instructions: whether all tables go, as there are too many. */
bool tables_go(const Run *run);
void tables_between(Run *run);

/* False where cycles alone count, and none wait for cells. */
bool cells_matter(const Run *run);
/* Where they do, or their first and last ones. */
bool tables_matter(const Run *run);
/* The cells of an operand; tables of this instruction, of rings and lines only
 * where cells matter. False, with a violation, if it has no sane size, leaves
 * its memory or is not aligned. */
bool place_make(Run *run, const Spot *spot, Place *out);
/* Rows of a place that is no ring; tables are shared. */
Place place_rows(const Place *place, uint32_t row, uint32_t rows);
/* A copy with tables of its own. */
Place place_keep(Arena *arena, const Place *place);
/* The cells of a region of the image. */
bool region_place(Run *run, const Region *region, const char *what, Place *out);
Box place_box(const Place *place); /* all of it */
/* Cells by column, of row h. */
static inline const uint64_t *place_columns(const Place *place, uint32_t h) {
    return place->w_at + (size_t)h * place->w_step;
}
uint64_t box_count(const Place *place, Box box); /* elements */

/* Exactly the same cells for the same elements. */
bool place_same(const Place *a, const Place *b);
/* Cells without gaps. */
typedef struct CellRange {
    uint64_t from, to;
} CellRange;
/* All cells of a box of the place, copies included, ascending; the number of
 * ranges. They live as long as the instruction, or the tile, at work. */
uint32_t place_spans(Run *run, const Place *place, Box box,
                     const CellRange **out);
/* True if a and b have a cell in common; false where cells do not matter. */
bool place_overlap(Run *run, const Place *a, const Place *b);
/* "64x56x56 at 0x70000 in am" */
const char *place_text(Run *run, const Place *place);

/* Announces a writer for memory_write. */
uint32_t memory_writer(Run *run, const Place *place, const char *name,
                       WriterKind kind);
/* Writes the box's elements with all copies. values: c x rows x cols, or NULL
 * where no arithmetic is done. */
void memory_write(Run *run, const Place *place, Box box, uint32_t writer,
                  const float *values);
/* False, with a violation, if the memory holds too few cells for the box: so
 * much is missing that reading it would be pointless. */
bool memory_holds(Run *run, const Place *place, Box box, const char *what);
/* Reads the box into `out` (c x rows x cols; NULL: only checks). Elements that
 * are not there are violations and read as what the cell holds. */
void memory_read(Run *run, const Place *place, Box box, const char *what,
                 float *out);
/* The place that the cell's last writer wrote; NULL: nobody has. */
const Place *memory_written(const Run *run, uint32_t memory, uint64_t cell);
/* True if the operand's first cell was never written. */
bool memory_is_blank(const Run *run, const Place *place);

/* NULL: nobody has written there. */
static inline Page *page_of(const Cells *cells, uint64_t cell) {
    Page **pages = cells->directory[cell >> (PAGE_BITS + DIRECTORY_BITS)];
    return pages ? pages[cell >> PAGE_BITS & (DIRECTORY_PAGES - 1)] : NULL;
}

/* agree.c */
/* Whether cells of the writer hold what the reader takes them for, as far as it
 * reads them. */
bool place_agrees(const Run *run, const Place *reader, const Place *writer,
                  Box box);
/* Parts that are read together are parts of the same volume: of `part`, the
 * first of them, which this remembers. */
bool parents_agree(const Place **part, const Place *writer);
/* Columns of the reader, in its row h from column w on, that are the same ones
 * of the writer. */
uint32_t columns_shared(const Place *reader, const Place *writer, uint32_t h,
                        uint32_t w);

/* access.c: tells options.watcher what was read and written. */
void access_open(Run *run);
void access_add(Run *run, const Place *place, Box box, bool writes,
                bool by_host);
/* Hands on what the instruction accessed; `insn` as in SimAccesses, `events`
 * how many there were before it. */
void access_end(Run *run, uint32_t insn, uint32_t events);
void access_close(Run *run);

#endif
