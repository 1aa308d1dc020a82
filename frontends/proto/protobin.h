/* protobin.h - binary protobuf messages as the trees that text gives.
 *
 * In: bytes and a schema, which names the fields that a front end may ask for.
 * Out: the tree of proto.h; places are byte offsets. Fields that the schema
 * lacks get the name "#number".
 */
#ifndef FRONTENDS_PROTO_PROTOBIN_H
#define FRONTENDS_PROTO_PROTOBIN_H

#include "base/file.h"
#include "frontends/proto/proto.h"

typedef enum ProtoType {
    PROTO_INT, /* int32, int64, uint32, uint64, enumerations */
    PROTO_BOOL,
    PROTO_FLOAT,
    PROTO_DOUBLE,
    PROTO_TEXT,
    PROTO_RAW, /* a message or bytes to keep as a slice: text and len point
                * into the input, no NUL behind them */
    PROTO_SUB
} ProtoType;

typedef struct ProtoSchema ProtoSchema;
typedef struct ProtoRow {
    uint32_t number;
    const char *name;
    ProtoType type;
    const ProtoSchema *sub; /* PROTO_SUB */
} ProtoRow;

struct ProtoSchema {
    uint32_t n;
    const ProtoRow *row;
};

/* NULL after errors. */
ProtoMessage *protobin_parse(Arena *arena, Diag *diag, const char *file,
                             Bytes bytes, const ProtoSchema *schema);

#endif
