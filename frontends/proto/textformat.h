/* textformat.h - protobuf's text format, read without a schema.
 *
 * In: text. Out: a tree in which every field has line and column (proto.h).
 * The grammar is the public "Text Format Language Specification": `a: 1`,
 * `a {}`, `a: <>`, lists, separators, comments, strings that continue each
 * other, all escapes, hexadecimal and octal numbers, extensions and Any.
 * An extension's or Any's field is called "[its.name]", brackets included.
 * A list `a: [1, 2]` becomes two fields called a.
 */
#ifndef FRONTENDS_PROTO_TEXTFORMAT_H
#define FRONTENDS_PROTO_TEXTFORMAT_H

#include "base/file.h"
#include "frontends/proto/proto.h"

/* The whole text as one message; NULL after errors. Registers the text with
 * `diag`. `bytes` must outlive `diag`. Time and space are linear in `bytes`. */
ProtoMessage *textformat_parse(Arena *arena, Diag *diag, const char *file,
                               Bytes bytes);

#endif
