/* listing.h - Plan -> Listing: instructions and the data image.
 *
 * The listing is all that the simulator gets, so this header knows nothing of
 * graphs and plans. Files: NET.cmd (text), NET.json (the same instructions as
 * key/value with the network's tables, facts/xdnn.md 1.7, and the image), and
 * NET.weights (raw floats, only where constants are not recipes).
 */
#ifndef CODEGEN_LISTING_H
#define CODEGEN_LISTING_H

#include "base/const.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/memo.h"
#include "base/quant.h"
#include "hwspec/insn.h"

/* A constant of a layer: role is "weight", "bias", "scale", "mean", "var" or
 * "slope", shapes as in graph.h. */
typedef struct Blob {
    const char *layer;
    const char *role;
    Const value;
} Blob;

/* Where a tensor of the network, or an operand of the host, lies. */
typedef struct Region {
    const char *name; /* tensor */
    Shape shape;
    Quant quant;     /* cells hold codes, unless QUANT_NONE */
    uint32_t memory; /* index in spec->memory */
    uint64_t offset; /* bytes, of `whole` */
    Volume whole;    /* the enclosing volume (concat parents), or itself */
    uint32_t part_c; /* first channel in it */
    Shape given; /* the network's own, of the same elements in the same order;
                  * of rank 0: `shape` */
    const char *next; /* of an input that is a state: the output that it is in
                       * the next call; where that lies in another place it is
                       * to be copied between calls. Else NULL */
} Region;

static inline const Shape *region_shape(const Region *region) {
    return region->given.rank ? &region->given : &region->shape;
}

/* A layer of the host, or of a processor. It runs when its instruction
 * (HW_OP_HOST or HW_OP_LAYER, found by layer name) is reached. */
typedef struct HostLayer {
    const char *name;
    const char *kind;     /* op_info name: "softmax" */
    const char *reason;   /* why the host; NULL: it is a processor's */
    const char *function; /* the name of its native code: a C identifier */
    uint32_t n_in;
    const Region *in;
    Region out[8];
    uint32_t n_out;
    uint32_t n_attrs;
    const AttrPair *attr;
    uint64_t products, bytes; /* that it takes: listing_count_hosts */
} HostLayer;

/* Does the layer read or write codes? */
static inline bool host_has_codes(const HostLayer *host) {
    bool any = false;
    for (uint32_t i = 0; i < host->n_in; i++)
        any = any || host->in[i].quant.type != QUANT_NONE;
    for (uint32_t i = 0; i < host->n_out; i++)
        any = any || host->out[i].quant.type != QUANT_NONE;
    return any;
}

/* A layer's activation: alpha, lo, hi are what no field of an instruction
 * carries. kind as in graph.h ("relu6", "leaky"...): the instruction's own
 * must agree with it. */
typedef struct LayerAct {
    const char *layer;
    const char *kind;
    double alpha, lo, hi;
} LayerAct;

/* How a layer computes codes; for layers that the image does not name, cells
 * are real numbers. */
typedef struct LayerQuant {
    const char *layer;
    QuantLayer numbers;
} LayerQuant;

/* For reports: one item of the JSON's `network`. */
typedef struct ListingLayer {
    const char *name, *type; /* Caffe-like type: "Convolution" */
    uint32_t n_bottoms;
    const char *const *bottom;
    Shape shape;
    uint32_t step;
    uint32_t n_merged;
    const char *const *merged;
    const char *memory; /* am_to_am, ddr_to_am... */
    uint64_t ops;       /* facts/xdnn.md 1.7 */
    uint32_t first_insn, n_insns;
} ListingLayer;

typedef struct Image {
    uint32_t n_blobs, n_acts, n_quants, n_inputs, n_outputs, n_hosts, n_layers;
    uint32_t element; /* bytes in active memory, as planned; 0: not told */
    bool of_another;  /* its file has another number of instructions: there are
                       * no layers */
    const Blob *blob;
    const LayerAct *act;
    const LayerQuant *quant;
    const Region *input, *output;
    const HostLayer *host;
    const ListingLayer *layer;
} Image;

typedef struct Record Record; /* record.h */

/* What was counted by running an instruction. */
typedef struct RecordTime {
    bool known;
    uint64_t start, cycles;
    uint64_t read, written; /* bytes from and to all but active memory */
} RecordTime;

typedef struct Listing {
    const HwSpec *spec;
    const char *network; /* name */
    uint32_t n;
    const HwInsn *insn;
    Image image; /* all zero when only a text was read */
    bool has_image;
    uint32_t n_parts; /* more than 1: the machine holds no more of it at once */
    const uint32_t *part;   /* the first instruction of each */
    const Record *record;   /* by instruction, or NULL: it was only read */
    const RecordTime *time; /* the same */
} Listing;

/* The version of the text, of what is under "amphora" in the JSON, and of the
 * binary form: docs/listing.md. */
enum { LISTING_VERSION = 1 };

/* Goes on with all that the instructions and the layers of the host say. */
void listing_fingerprint(const Listing *listing, Print *print);

/* The name with all that C does not allow in one made '_'. */
const char *listing_identifier(Arena *arena, const char *name);
/* The name as it may stand in a comment of C, in one line. */
const char *listing_comment(Arena *arena, const char *name);
/* An identifier with a number behind it where `taken` has it; then that has it.
 */
const char *listing_take(Arena *arena, Map *taken, const char *name);
/* Gives each host layer the name of its function: network and layer, made
 * unique by a number. */
void listing_name_functions(Arena *arena, const char *network, uint32_t n,
                            HostLayer *host);
/* Fills in what each takes of the host: multiply-adds; bytes of its operands,
 * constants and results, in elements of the machine. */
void listing_count_hosts(Arena *arena, const HwSpec *spec, uint32_t n,
                         HostLayer *host, uint32_t n_blobs, const Blob *blob);
/* The listing with the function's name in the comment of each instruction that
 * is one of these layers (indices in image.host): "NAME: what it said". */
const Listing *listing_call(Arena *arena, const Listing *listing, uint32_t n,
                            const uint32_t *layer);

/* Instructions that the machine is given: `n` counts layers of the host and
 * notes, too. */
uint32_t listing_issued(const Listing *listing);
/* Layers of the host; those of processors aside. */
uint32_t listing_host_layers(const Listing *listing);

/* ---- text and files: no Plan needed ---- */

/* Header (`# template` lines), then one instruction a line. */
const char *listing_print(Arena *arena, const Listing *listing);
/* Reads a text listing: all errors with line and column. */
const Listing *listing_parse(Arena *arena, Diag *diag, const HwSpec *spec,
                             const char *file, const char *text, size_t len);
/* The JSON of facts/xdnn.md 1.7 plus "amphora": the image. `weights_file` is
 * the name written into it for constants with data. */
const char *listing_json(Arena *arena, const Listing *listing,
                         const char *weights_file);
/* Reads JSON: ours, with its image, or a recorded one (xdnn_instr lines). */
const Listing *listing_json_parse(Arena *arena, Diag *diag, const HwSpec *spec,
                                  const char *file, const char *text,
                                  size_t len);
/* Writes DIR/NET.cmd, .json and where needed .weights; paths go to out[3]
 * (NULL if not written). */
bool listing_write(Arena *arena, Diag *diag, const Listing *listing,
                   const char *dir, const char **out);
/* Reads a listing by path: .json; anything else is text, and NAME.json beside
 * it, if there, gives the image. */
const Listing *listing_read(Arena *arena, Diag *diag, const HwSpec *spec,
                            const char *path);
/* Binary: header, words by `bits` where rows have them and plain 64-bit words
 * of the values where not, then a table of strings. Reads back to the same
 * instructions. */
bool listing_encode(Arena *arena, Diag *diag, const Listing *listing,
                    const uint8_t **out, size_t *len);
/* The words alone, by `bits`: those of each instruction in turn, little-endian,
 * each rounded up to whole bytes. Notes and layers of the host, which the
 * machine never sees, are left out; any other instruction without words is an
 * error. `*n`: instructions that it has. */
bool listing_words(Arena *arena, Diag *diag, const Listing *listing,
                   const uint8_t **out, size_t *len, uint32_t *n);
/* Writes DIR/NET.data, every constant as bytes, and DIR/NET.data.json, which
 * says what lies where: docs/listing.md. Paths go to out[2]. */
bool listing_materialise(Arena *arena, Diag *diag, const Listing *listing,
                         const char *dir, const char **out);
/* Does it begin as one? */
bool listing_is_binary(const uint8_t *data, size_t len);
const Listing *listing_decode(Arena *arena, Diag *diag, const HwSpec *spec,
                              const char *file, const uint8_t *data,
                              size_t len);

#endif
