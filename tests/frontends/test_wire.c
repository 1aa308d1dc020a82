/* Protobuf's binary format: every wire type, and never a crash on damage. */
#include "frontends/proto/protobin.h"
#include "frontends/proto/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static Arena *arena;

static int setup(void **state) {
    (void)state;
    arena = arena_new("test");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

#define BYTES(...)                                                             \
    ((Bytes){(const uint8_t[]){__VA_ARGS__},                                   \
             sizeof((const uint8_t[]){__VA_ARGS__})})

/* Reads everything, into messages of field 4 and the like too. */
static const char *drain(WireReader *reader, uint32_t *fields) {
    for (WireField f; wire_next(reader, &f);) {
        ++*fields;
        uint64_t n, value;
        if (f.type == WIRE_BYTES) {
            WireReader inner = wire_enter(reader, &f);
            drain(&inner, fields);
        }
        for (int type = WIRE_VARINT; type <= WIRE_FIXED32; type++) {
            if (type == WIRE_BYTES || type == WIRE_GROUP ||
                type == WIRE_END_GROUP)
                continue;
            uint64_t read = 0;
            WireScalars s = wire_scalars(&f, (WireType)type);
            while (wire_scalar(&s, &value))
                read++;
            if (wire_count(&f, (WireType)type, &n) && !s.reader.error)
                assert_int_equal(read, n);
        }
    }
    return reader->error;
}

static const char *error_of(Bytes bytes) {
    uint32_t fields = 0;
    WireReader reader = wire_open(bytes);
    return drain(&reader, &fields);
}

static void test_types(void **state) {
    (void)state;
    Bytes bytes = BYTES(0x08, 0x96, 0x01,                /* 1: varint 150 */
                        0x15, 0, 0, 0x80, 0x3f,          /* 2: float 1 */
                        0x19, 0, 0, 0, 0, 0, 0, 0, 0x40, /* 3: double 2 */
                        0x22, 2, 'h', 'i',               /* 4: "hi" */
                        0x2b, 0x30, 1, 0x3b, 0x3c, 0x2c, /* 5: a group */
                        0x82, 0x06, 0x00);               /* 96: empty */
    WireReader reader = wire_open(bytes);
    WireField f;
    assert_true(wire_next(&reader, &f) && f.number == 1 && f.value == 150);
    assert_true(wire_next(&reader, &f) && f.number == 2);
    assert_true(wire_float(f.value) == 1.0f && f.offset == 3);
    assert_true(wire_next(&reader, &f) && f.number == 3);
    assert_true(wire_double(f.value) == 2.0);
    assert_true(wire_next(&reader, &f) && f.number == 4 && f.bytes.len == 2);
    assert_memory_equal(f.bytes.at, "hi", 2);
    assert_ptr_equal(f.bytes.at, bytes.at + 19);
    assert_true(wire_next(&reader, &f) && f.number == 96 && !f.bytes.len);
    assert_false(wire_next(&reader, &f));
    assert_null(reader.error);
}

static void test_errors(void **state) {
    (void)state;
    assert_null(error_of((Bytes){NULL, 0}));
    assert_string_equal(error_of(BYTES(0x80)), "the data ends inside a number");
    assert_string_equal(error_of(BYTES(0x08)), "the data ends inside a number");
    assert_string_equal(error_of(BYTES(0x0d, 1, 2, 3)),
                        "the data ends inside a number");
    assert_string_equal(error_of(BYTES(0x00, 1)), "not a field number");
    assert_string_equal(error_of(BYTES(0x0e)), "not a wire type");
    assert_string_equal(error_of(BYTES(0x0a, 5, 1)),
                        "a field is longer than what is left");
    assert_string_equal(error_of(BYTES(0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 0x01, 1)),
                        "a field is longer than what is left");
    assert_string_equal(error_of(BYTES(0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                       0x80, 0x80, 0x80, 0x80, 0x01)),
                        "a number of more than 10 bytes");
    assert_string_equal(error_of(BYTES(0x0c)),
                        "a group is closed that is not open");
    assert_string_equal(error_of(BYTES(0x0b, 0x14)),
                        "a group is closed that is not open");
    assert_string_equal(error_of(BYTES(0x0b, 0x08, 1)),
                        "the data ends inside a group");
}

/* Offsets in messages count from the start of the file. */
static void test_report(void **state) {
    (void)state;
    Diag *diag = diag_new(arena);
    WireReader reader = wire_open(BYTES(0x08, 1, 0x12, 2, 0x08, 0x80));
    WireField f;
    wire_next(&reader, &f);
    wire_next(&reader, &f);
    WireReader inner = wire_enter(&reader, &f);
    assert_false(wire_next(&inner, &f));
    wire_report(&inner, diag, "net");
    assert_int_equal(diag_at(diag, 0)->loc.col, 5);
}

static void test_depth(void **state) {
    (void)state;
    enum { DEEP = 60000 };
    uint8_t *groups = arena_alloc(arena, DEEP, 1);
    memset(groups, 0x0b, DEEP);
    assert_string_equal(error_of((Bytes){groups, DEEP}),
                        "groups are nested more than 100 deep");
    WireReader reader = wire_open(BYTES(0x0a, 0));
    WireField f;
    assert_true(wire_next(&reader, &f));
    for (int i = 0; i < 100; i++) {
        reader = wire_enter(&reader, &f);
        assert_null(reader.error);
    }
    reader = wire_enter(&reader, &f);
    assert_string_equal(reader.error, "messages are nested more than 100 deep");
}

static void test_packed(void **state) {
    (void)state;
    WireReader reader = wire_open(BYTES(0x0a, 3, 1, 0x80, 0x01, 0x08, 5));
    WireField f;
    uint64_t value, n;
    assert_true(wire_next(&reader, &f));
    assert_true(wire_count(&f, WIRE_VARINT, &n) && n == 2);
    WireScalars s = wire_scalars(&f, WIRE_VARINT);
    assert_true(wire_scalar(&s, &value) && value == 1);
    assert_true(wire_scalar(&s, &value) && value == 128);
    assert_false(wire_scalar(&s, &value));
    assert_true(wire_next(&reader, &f));
    s = wire_scalars(&f, WIRE_VARINT);
    assert_true(wire_scalar(&s, &value) && value == 5);
    assert_false(wire_scalar(&s, &value));
    assert_false(wire_count(&f, WIRE_FIXED32, &n));
}

/* ---- trees by schema ---- */

static const ProtoRow inner_rows[] = {{1, "dim", PROTO_INT, NULL}};
static const ProtoSchema inner_schema = {1, inner_rows};
static const ProtoRow outer_rows[] = {
    {1, "name", PROTO_TEXT, NULL},    {2, "inner", PROTO_SUB, &inner_schema},
    {3, "ratio", PROTO_FLOAT, NULL},  {4, "on", PROTO_BOOL, NULL},
    {5, "exact", PROTO_DOUBLE, NULL}, {6, "blob", PROTO_RAW, NULL},
};
static const ProtoSchema outer_schema = {6, outer_rows};

static const uint8_t whole[] = {
    0x0a, 2,    'm',  'e',  0x12, 4,    0x0a, 2, 3,    4,    0x12, 2, 0x08,
    0x09, 0x1d, 0,    0,    0xc0, 0x3f, 0x20, 1, 0x29, 0,    0,    0, 0,
    0,    0,    0xe0, 0xbf, 0x32, 3,    7,    8, 9,    0x78, 0x05,
};

static void test_tree(void **state) {
    (void)state;
    Diag *diag = diag_new(arena);
    ProtoMessage *m = protobin_parse(
        arena, diag, "b", (Bytes){whole, sizeof whole}, &outer_schema);
    assert_non_null(m);
    const char *name;
    double ratio, exact;
    bool on;
    uint32_t dims[3], n = 0;
    assert_true(proto_str(diag, m, "name", &name));
    assert_string_equal(name, "me");
    const ProtoMessage *inner = proto_message(arena, diag, m, "inner");
    for (const ProtoField *f = NULL; (f = proto_next(inner, "dim", f)); n++)
        assert_true(proto_get_u32(diag, f, &dims[n]));
    assert_true(n == 3 && dims[0] == 3 && dims[1] == 4 && dims[2] == 9);
    assert_true(proto_f64(diag, m, "ratio", &ratio) && ratio == 1.5);
    assert_true(proto_f64(diag, m, "exact", &exact) && exact == -0.5);
    assert_true(proto_bool(diag, m, "on", &on) && on);
    assert_ptr_equal(proto_last(m, "blob")->text, whole + 32);
    proto_warn_unused(arena, diag, m, (const char *const[]){NULL});
    assert_int_equal(diag_count(diag), 1);
    assert_string_equal(diag_at(diag, 0)->text,
                        "unknown field '#15' is ignored");
    assert_int_equal(diag_at(diag, 0)->loc.col, 35);
}

/* Every prefix and every flipped bit, both readers, in memory of the exact
 * size, so that a sanitizer sees the first byte too many. */
static void test_damage(void **state) {
    (void)state;
    for (size_t n = 0; n <= sizeof whole; n++)
        for (size_t bit = 0; bit <= 8 * n; bit++) {
            Arena *scratch = arena_new("damage");
            uint8_t *bad = arena_copy(scratch, whole, n, 1, 1);
            if (bit < 8 * n)
                bad[bit / 8] = (uint8_t)(bad[bit / 8] ^ 1u << bit % 8);
            error_of((Bytes){bad, n});
            Diag *diag = diag_new(scratch);
            ProtoMessage *m = protobin_parse(scratch, diag, "b",
                                             (Bytes){bad, n}, &outer_schema);
            assert_true(!m == (diag_errors(diag) > 0));
            arena_free(scratch);
        }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_types),  TEST(test_errors), TEST(test_report),
        TEST(test_depth),  TEST(test_packed), TEST(test_tree),
        TEST(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
