/* onnx_write.h - small ONNX models for tests: binary protobuf, field by field.
 */
#ifndef TESTS_FRONTENDS_ONNX_WRITE_H
#define TESTS_FRONTENDS_ONNX_WRITE_H

#include "base/text.h"

#include <string.h>

static inline void put_varint(Text *to, uint64_t value) {
    for (; value > 127; value >>= 7)
        text_add_n(to, (const char[]){(char)(value | 128)}, 1);
    text_add_n(to, (const char[]){(char)value}, 1);
}

static inline void put_int(Text *to, uint32_t field, uint64_t value) {
    put_varint(to, field << 3);
    put_varint(to, value);
}

static inline void put_bytes(Text *to, uint32_t field, const char *at,
                             size_t len) {
    put_varint(to, field << 3 | 2);
    put_varint(to, len);
    text_add_n(to, at, len);
}

static inline void put_text(Text *to, uint32_t field, const char *text) {
    put_bytes(to, field, text, strlen(text));
}

static inline void put_message(Text *to, uint32_t field, Text *message) {
    put_bytes(to, field, text_str(message), message->len);
}

/* A ValueInfoProto of floats; a dimension of 0 is left open. */
static inline Text value_info(Arena *arena, const char *name, uint32_t rank,
                              const int64_t *dim) {
    Text shape = text_new(arena), tensor = shape, type = shape, info = shape;
    for (uint32_t i = 0; i < rank; i++) {
        Text one = text_new(arena);
        if (dim[i])
            put_int(&one, 1, (uint64_t)dim[i]);
        put_message(&shape, 1, &one);
    }
    put_int(&tensor, 1, 1);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, &type);
    return info;
}

/* A NodeProto of up to three inputs and one output. */
static inline Text node(Arena *arena, const char *type, const char *a,
                        const char *b, const char *c, const char *out) {
    Text n = text_new(arena);
    const char *in[] = {a, b, c};
    for (int i = 0; i < 3 && in[i]; i++)
        put_text(&n, 1, in[i]);
    put_text(&n, 2, out);
    put_text(&n, 4, type);
    return n;
}

/* A ModelProto around the fields of a graph. */
static inline Text model(Arena *arena, Text *graph) {
    Text opset = text_new(arena), m = opset;
    put_text(&opset, 1, "");
    put_int(&opset, 2, 13);
    put_int(&m, 1, 7);
    put_message(&m, 8, &opset);
    put_message(&m, 7, graph);
    return m;
}

#endif
