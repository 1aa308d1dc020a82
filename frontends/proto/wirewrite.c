/* wirewrite.c - protobuf's binary format, written; see wirewrite.h. */
#include "frontends/proto/wirewrite.h"

#include "frontends/proto/wire.h"

#include <string.h>

static void put_varint(Text *to, uint64_t value) {
    char byte[10];
    size_t n = 0;
    for (; value > 127; value >>= 7)
        byte[n++] = (char)(uint8_t)(value | 128);
    byte[n++] = (char)value;
    text_add_n(to, byte, n);
}

static void put_tag(Text *to, uint32_t field, WireType type) {
    put_varint(to, (uint64_t)field << 3 | type);
}

void wire_put_number(Text *to, uint32_t field, uint64_t value) {
    put_tag(to, field, WIRE_VARINT);
    put_varint(to, value);
}

void wire_put_int(Text *to, uint32_t field, int64_t value) {
    wire_put_number(to, field, (uint64_t)value);
}

void wire_put_float(Text *to, uint32_t field, float value) {
    put_tag(to, field, WIRE_FIXED32);
    text_add_n(to, (const char *)&value, sizeof value);
}

void wire_put_bytes(Text *to, uint32_t field, const void *bytes, size_t len) {
    put_tag(to, field, WIRE_BYTES);
    put_varint(to, len);
    text_add_n(to, bytes, len);
}

void wire_put_string(Text *to, uint32_t field, const char *string) {
    wire_put_bytes(to, field, string, strlen(string));
}

void wire_put_message(Text *to, uint32_t field, const Text *message) {
    wire_put_bytes(to, field, message->at, message->len);
}
