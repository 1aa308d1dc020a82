/* flatwrite.c - FlatBuffers, written; see flatwrite.h. */
#include "frontends/tflite/flatwrite.h"

#include <string.h>

enum { MOST_FIELDS = 16 };

/* So that what follows `extra` bytes further on is at a multiple. */
static void pad(Text *to, size_t multiple, size_t extra) {
    while ((to->len + extra) % multiple)
        text_add_n(to, "", 1);
}

static void put(Text *to, const void *bytes, size_t n) {
    text_add_n(to, bytes, n);
}

static size_t size_of(FlatKind kind) {
    return kind == FLAT_ABSENT ? 0 : kind == FLAT_I8 ? 1 : 4;
}

size_t flat_put_table(Text *to, uint32_t n, FlatField *field) {
    uint16_t vtable[MOST_FIELDS + 2] = {0};
    char body[4 + 4 * MOST_FIELDS] = {0};
    size_t size = 4, head = 4 + 2 * (size_t)n;
    for (uint32_t i = 0; i < n; i++) {
        size_t width = size_of(field[i].kind);
        if (!width)
            continue;
        size += width == 4 ? (4 - size % 4) % 4 : 0;
        vtable[2 + i] = (uint16_t)size;
        if (field[i].kind == FLAT_F32)
            memcpy(body + size, &field[i].real, 4);
        else
            memcpy(body + size, &field[i].value, width);
        size += width;
    }
    vtable[0] = (uint16_t)head;
    vtable[1] = (uint16_t)size;
    pad(to, 4, head);
    put(to, vtable, head);
    size_t at = to->len;
    int32_t back = (int32_t)head;
    memcpy(body, &back, 4);
    put(to, body, size);
    for (uint32_t i = 0; i < n; i++)
        field[i].place = at + vtable[2 + i];
    return at;
}

size_t flat_put_vector(Text *to, uint32_t n, uint32_t size, uint32_t align,
                       const void *elements) {
    pad(to, align > 4 ? align : 4, 4);
    size_t at = to->len;
    put(to, &n, 4);
    put(to, elements, (size_t)n * size);
    return at;
}

size_t flat_put_string(Text *to, const char *string) {
    size_t at = flat_put_vector(to, (uint32_t)strlen(string), 1, 1, string);
    put(to, "", 1);
    return at;
}

size_t flat_put_refs(Text *to, uint32_t n) {
    pad(to, 4, 0);
    size_t at = to->len;
    put(to, &n, 4);
    for (uint32_t i = 0; i < n; i++)
        put(to, "\0\0\0", 4);
    return at;
}

void flat_refer(Text *to, size_t place, size_t at) {
    uint32_t by = (uint32_t)(at - place);
    memcpy(to->at + place, &by, 4);
}
