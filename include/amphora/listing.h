/* listing.h - reads what `amphora compile` writes as NET.json; docs/listing.md.
 *
 * One header, C99, on cJSON alone (link with -lcjson). A listing is a list of
 * records; a record has operands, of which every element has an address:
 *
 *     AmphoraListing l;
 *     if (amphora_open(text, &l))
 *         for (int i = 0; i < l.n; i++) {
 *             AmphoraRecord r = amphora_record(&l, i);
 *             for (int k = 0; k < r.n; k++) {
 *                 AmphoraOperand o = amphora_operand(&r, k);
 *                 ... amphora_address(&o, c, h, w, 0) ...
 *             }
 *         }
 *     amphora_close(&l);
 *
 * Strings point into the listing and live as long as it.
 */
#ifndef AMPHORA_LISTING_H
#define AMPHORA_LISTING_H

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { AMPHORA_LISTING_VERSION = 1 };

typedef struct AmphoraListing {
    cJSON *root;
    const cJSON *own; /* what is under "amphora" */
    const char *machine, *network;
    int n; /* records */
} AmphoraListing;

typedef struct AmphoraRecord {
    const cJSON *json;
    int instruction, step, n; /* n: operands */
    const char *operation, *engine, *layer;
    int planned; /* what follows is known: */
    uint64_t start, cycles, read, written;
} AmphoraRecord;

typedef struct AmphoraOperand {
    const cJSON *json;
    const char *role, *memory;
    uint64_t address, bytes;
    uint32_t channels, rows, columns; /* of constants: columns are taps */
    uint32_t element;                 /* bytes */
} AmphoraOperand;

static inline const cJSON *amphora_get(const cJSON *json, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

/* Numbers beyond 2^53 are strings. */
static inline uint64_t amphora_number(const cJSON *item) {
    if (cJSON_IsString(item))
        return strtoull(item->valuestring, NULL, 10);
    return cJSON_IsNumber(item) ? (uint64_t)item->valuedouble : 0;
}

static inline uint64_t amphora_item(const cJSON *list, int i) {
    return amphora_number(cJSON_GetArrayItem(list, i));
}

static inline const char *amphora_text(const cJSON *json, const char *key) {
    const cJSON *item = amphora_get(json, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* 0 if the text is no listing of this version. */
static inline int amphora_open(const char *text, AmphoraListing *out) {
    memset(out, 0, sizeof *out);
    out->root = cJSON_Parse(text);
    out->own = amphora_get(out->root, "amphora");
    out->machine = amphora_text(out->own, "machine");
    out->network = amphora_text(out->own, "network");
    out->n = cJSON_GetArraySize(amphora_get(out->own, "records"));
    return !strcmp(amphora_text(out->own, "format"), "amphora listing") &&
           amphora_number(amphora_get(out->own, "version")) ==
               AMPHORA_LISTING_VERSION;
}

static inline void amphora_close(AmphoraListing *listing) {
    cJSON_Delete(listing->root);
}

/* The first is found at once, and each from the one before: walk with
 * json->next where there are many. */
static inline AmphoraRecord amphora_record_of(const cJSON *json) {
    AmphoraRecord r = {0};
    const cJSON *planned = amphora_get(json, "planned");
    r.json = json;
    r.instruction = (int)amphora_number(amphora_get(json, "instruction"));
    r.step = (int)amphora_number(amphora_get(json, "step"));
    r.operation = amphora_text(json, "operation");
    r.engine = amphora_text(json, "engine");
    r.layer = amphora_text(json, "layer");
    r.n = cJSON_GetArraySize(amphora_get(json, "operands"));
    r.planned = planned != NULL;
    r.start = amphora_number(amphora_get(planned, "start"));
    r.cycles = amphora_number(amphora_get(planned, "cycles"));
    r.read = amphora_number(amphora_get(planned, "read"));
    r.written = amphora_number(amphora_get(planned, "written"));
    return r;
}

static inline AmphoraRecord amphora_record(const AmphoraListing *l, int i) {
    return amphora_record_of(
        cJSON_GetArrayItem(amphora_get(l->own, "records"), i));
}

/* Of a layer, in a memory of the machine: `taps` elements a channel. */
static inline int amphora_is_constant(const AmphoraOperand *o) {
    return !strcmp(o->role, "weights") || !strcmp(o->role, "bias");
}

static inline AmphoraOperand amphora_operand(const AmphoraRecord *r, int i) {
    AmphoraOperand o = {0};
    const cJSON *json = cJSON_GetArrayItem(amphora_get(r->json, "operands"), i);
    int constants;
    o.json = json;
    o.role = amphora_text(json, "role");
    o.memory = amphora_text(json, "memory");
    constants = amphora_is_constant(&o);
    o.address = amphora_number(amphora_get(json, "address"));
    o.bytes = amphora_number(amphora_get(json, "bytes"));
    o.channels = (uint32_t)amphora_number(amphora_get(json, "channels"));
    o.rows =
        constants ? 1 : (uint32_t)amphora_number(amphora_get(json, "rows"));
    o.columns = (uint32_t)amphora_number(
        amphora_get(json, constants ? "taps" : "columns"));
    if (o.channels && o.rows && o.columns)
        o.element = (uint32_t)(o.bytes / o.channels / o.rows / o.columns);
    return o;
}

/* Where a pixel of a tensor lies in its line buffers: rings, one behind the
 * other, of which row r has the one of number (r + shift) % band. */
static inline uint64_t amphora_pixel(const cJSON *lines, uint64_t row,
                                     uint64_t column) {
    uint64_t band = amphora_number(amphora_get(lines, "band"));
    uint64_t keep = amphora_number(amphora_get(lines, "keep"));
    uint64_t span = amphora_number(amphora_get(lines, "span"));
    uint64_t width = amphora_number(amphora_get(lines, "width"));
    uint64_t at = row + amphora_number(amphora_get(lines, "shift"));
    uint64_t start = 0, length = 0, i;
    for (i = 0; band && i <= at % band; i++) {
        start += length;
        length = (keep + i) / band * width + span;
    }
    return length ? start + (at / band * width + column) % length : 0;
}

/* Copies of channel c: 1, if it has none beside it. */
static inline uint32_t amphora_copies(const AmphoraOperand *o, uint32_t c) {
    const cJSON *copies = amphora_get(o->json, "copies");
    uint64_t first = amphora_item(amphora_get(o->json, "first"), 0);
    uint64_t single = amphora_number(amphora_get(copies, "full")) *
                      amphora_number(amphora_get(copies, "section"));
    if (!copies || first + c < single)
        return 1;
    return (uint32_t)amphora_number(amphora_get(copies, "units"));
}

/* Byte in its memory of element (c, h, w), counted from the operand's first;
 * of a copy of channel c, 0 .. amphora_copies - 1. */
static inline uint64_t amphora_address(const AmphoraOperand *o, uint32_t c,
                                       uint32_t h, uint32_t w, uint32_t copy) {
    const cJSON *strides = amphora_get(o->json, "strides"), *axis, *extra;
    const cJSON *first = amphora_get(o->json, "first");
    uint64_t at[3], sum = 0;
    if (amphora_is_constant(o))
        return o->address + ((uint64_t)c * o->columns + w) * o->element;
    if (strides)
        return o->address + c * amphora_item(strides, 0) +
               h * amphora_item(strides, 1) + w * amphora_item(strides, 2);
    at[0] = amphora_item(first, 0) + c;
    at[1] = amphora_item(first, 1) + h;
    at[2] = amphora_item(first, 2) + w;
    if ((extra = amphora_get(o->json, "lines"))) {
        at[2] = amphora_pixel(extra, at[1], at[2]);
        at[1] = 0;
    } else if ((extra = amphora_get(o->json, "ring"))) {
        at[1] %= amphora_number(extra);
    }
    extra = amphora_get(o->json, "copies");
    if (extra && amphora_copies(o, c) >= 1) {
        uint64_t section = amphora_number(amphora_get(extra, "section"));
        uint64_t full = amphora_number(amphora_get(extra, "full"));
        uint64_t width = amphora_number(amphora_get(extra, "width"));
        if (at[0] >= full * section) {
            uint64_t rest = at[0] - full * section;
            at[0] =
                (full + rest / width) * section + rest % width + copy * width;
        }
    }
    cJSON_ArrayForEach(axis, amphora_get(o->json, "axes")) {
        const char *of = cJSON_GetArrayItem(axis, 0)->valuestring;
        uint64_t digit = at[*of == 'r' ? 1 : of[1] == 'o' ? 2 : 0];
        uint64_t modulo = amphora_item(axis, 2);
        digit /= amphora_item(axis, 1);
        sum += (modulo ? digit % modulo : digit) * amphora_item(axis, 3);
    }
    return amphora_number(amphora_get(o->json, "origin")) + sum;
}

#endif
