/* proto.h - protobuf messages as schema-free trees.
 *
 * The text reader (textformat.h) and the binary one (protobin.h) both make
 * this tree, so that a front end is written once. Every field knows its place;
 * types are checked when a value is asked for. Getters report errors and go
 * on, and mark what they found as used: proto_warn_unused names the rest.
 */
#ifndef FRONTENDS_PROTO_PROTO_H
#define FRONTENDS_PROTO_PROTO_H

#include "base/diag.h"

/* Messages deeper than this, and inputs with more fields, are refused. */
enum { PROTO_MAX_DEPTH = 100, PROTO_MAX_FIELDS = 1 << 24 };

typedef enum ProtoKind {
    PROTO_MESSAGE,
    PROTO_STRING, /* text, len: the bytes, perhaps with NULs among them */
    PROTO_NUMBER,
    PROTO_WORD /* an identifier: enumerations, true, inf */
} ProtoKind;

typedef struct ProtoMessage ProtoMessage;
typedef struct ProtoField {
    const char *name;
    ProtoKind kind;
    bool used;
    bool whole;       /* a number without fraction or exponent */
    Loc loc, at;      /* of the name; of the value */
    const char *text; /* as written (numbers, words), or decoded (strings);
                       * always with a NUL behind it */
    size_t len;
    double number;
    int64_t integer; /* of whole numbers; above INT64_MAX as two's complement */
    ProtoMessage *message;
} ProtoField;

struct ProtoMessage {
    Loc loc; /* where it opens */
    uint32_t n;
    ProtoField *field;
};

/* The next field called `name` behind `after` (NULL: from the start), or NULL.
 * `message` may be NULL. */
ProtoField *proto_next(const ProtoMessage *message, const char *name,
                       const ProtoField *after);
/* The last field called `name`: what counts for a field that may stand once.
 */
ProtoField *proto_last(const ProtoMessage *message, const char *name);
uint32_t proto_count(const ProtoMessage *message, const char *name);

/* The message called `name`; several are merged, as protobuf says. NULL where
 * there is none. */
const ProtoMessage *proto_message(Arena *arena, Diag *diag,
                                  const ProtoMessage *message,
                                  const char *name);

/* Values of one field. On a wrong form: an error at its place, false, and
 * `*out` unchanged. */
bool proto_get_str(Diag *diag, const ProtoField *field, const char **out);
bool proto_get_bool(Diag *diag, const ProtoField *field, bool *out);
bool proto_get_i64(Diag *diag, const ProtoField *field, int64_t *out);
bool proto_get_u32(Diag *diag, const ProtoField *field, uint32_t *out);
bool proto_get_f64(Diag *diag, const ProtoField *field, double *out);
/* The position in `names` (NULL-terminated) of a word, or a number that is
 * such a position. */
bool proto_get_enum(Diag *diag, const ProtoField *field,
                    const char *const *names, uint32_t *out);

/* The same for the last field called `name`; false and no error where it is
 * absent. */
bool proto_str(Diag *diag, const ProtoMessage *message, const char *name,
               const char **out);
bool proto_bool(Diag *diag, const ProtoMessage *message, const char *name,
                bool *out);
bool proto_i64(Diag *diag, const ProtoMessage *message, const char *name,
               int64_t *out);
bool proto_u32(Diag *diag, const ProtoMessage *message, const char *name,
               uint32_t *out);
bool proto_f64(Diag *diag, const ProtoMessage *message, const char *name,
               double *out);
bool proto_enum(Diag *diag, const ProtoMessage *message, const char *name,
                const char *const *names, uint32_t *out);

/* Marks the message and all beneath it as used. */
void proto_use_all(const ProtoMessage *message);

/* A warning at the first of the unused fields of each name, except names in
 * `ignored` (NULL-terminated), whose insides are not looked at. */
void proto_warn_unused(Arena *arena, Diag *diag, const ProtoMessage *message,
                       const char *const *ignored);

#endif
