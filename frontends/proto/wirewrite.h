/* wirewrite.h - protobuf's binary format, written.
 *
 * A message is a text of bytes that grows; one inside another is made first and
 * then put in as a field.
 */
#ifndef FRONTENDS_PROTO_WIREWRITE_H
#define FRONTENDS_PROTO_WIREWRITE_H

#include "base/text.h"

void wire_put_number(Text *to, uint32_t field, uint64_t value);
/* Negative ones take ten bytes, as int64 fields have them. */
void wire_put_int(Text *to, uint32_t field, int64_t value);
void wire_put_float(Text *to, uint32_t field, float value);
void wire_put_bytes(Text *to, uint32_t field, const void *bytes, size_t len);
void wire_put_string(Text *to, uint32_t field, const char *string);
void wire_put_message(Text *to, uint32_t field, const Text *message);

#endif
