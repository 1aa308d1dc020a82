/* Rooms for any number of images: nothing that is alive together overlaps but
 * where it may; and rows that a kernel may overwrite, against a replay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "native/rooms.h"

#include <string.h>

enum { IMAGES = 6, ROOMS = 14, CALLS = 9 };

/* A lap of room i over operand[i]; NONE: there is none. */
typedef struct Scene {
    Arena *arena;
    Rooms *rooms;
    uint64_t seed, drawn;
    uint32_t operand[ROOMS];
    int64_t image[ROOMS], fixed[ROOMS];
} Scene;

static uint32_t draw(Scene *s, uint32_t below) {
    return (uint32_t)(rng_bits(s->seed, s->drawn++) >> 33) % below;
}

static const HwSpec *one_memory(Arena *arena) {
    HwMemory *memory = ARENA_NEW(arena, HwMemory);
    *memory = (HwMemory){.name = "workspace", .size = 1 << 30, .align = 16};
    HwSpec *spec = ARENA_NEW(arena, HwSpec);
    *spec = (HwSpec){.n_memories = 1, .n_active = 1, .memory = memory};
    return spec;
}

static void add_room(Scene *s, uint32_t i) {
    bool scratch = draw(s, 4) == 0;
    uint32_t first = draw(s, CALLS), last = first + draw(s, 4);
    uint64_t bytes = 1 + draw(s, 900);
    uint32_t room = rooms_add(s->rooms, HW_KIND_ACTIVATIONS, "room",
                              scratch ? 0 : bytes, scratch ? bytes : 0);
    assert_int_equal(room, i);
    rooms_use(s->rooms, room, first);
    rooms_use(s->rooms, room, last);
    s->operand[i] = UINT32_MAX;
}

/* A room that begins where another ends may lie over that. */
static void add_lap(Scene *s, uint32_t i) {
    for (uint32_t k = 0; k < i && s->operand[i] == UINT32_MAX; k++) {
        if (rooms_at(s->rooms, k)->end != rooms_at(s->rooms, i)->first + 1)
            continue;
        s->operand[i] = k;
        s->image[i] = 16 * (int64_t)draw(s, 3);
        s->fixed[i] = 16 * (int64_t)draw(s, 20);
        rooms_overlap(s->rooms, i, k, s->image[i], s->fixed[i]);
    }
}

static uint64_t end_of(const Scene *s, uint32_t i, uint32_t n) {
    const Room *room = rooms_at(s->rooms, i);
    return rooms_offset(s->rooms, i, n) + n * room->image + room->fixed;
}

static bool may_lie(const Scene *s, uint32_t result, uint32_t operand,
                    uint32_t n) {
    int64_t ahead = n * s->image[result] + s->fixed[result];
    return s->operand[result] == operand &&
           (int64_t)rooms_offset(s->rooms, result, n) + ahead <=
               (int64_t)rooms_offset(s->rooms, operand, n);
}

static void check_pair(const Scene *s, uint32_t i, uint32_t k, uint32_t n) {
    const Room *a = rooms_at(s->rooms, i), *b = rooms_at(s->rooms, k);
    if (a->end <= b->first || b->end <= a->first)
        return;
    assert_true(end_of(s, i, n) <= rooms_offset(s->rooms, k, n) ||
                end_of(s, k, n) <= rooms_offset(s->rooms, i, n) ||
                may_lie(s, i, k, n) || may_lie(s, k, i, n));
}

static void check_images(const Scene *s, uint32_t n) {
    uint64_t highest = 0;
    for (uint32_t i = 0; i < ROOMS; i++) {
        assert_int_equal(rooms_offset(s->rooms, i, n) % 16, 0);
        highest = end_of(s, i, n) > highest ? end_of(s, i, n) : highest;
        for (uint32_t k = 0; k < i; k++)
            check_pair(s, i, k, n);
    }
    assert_int_equal(rooms_bytes(s->rooms, 0, n), highest);
    assert_true(highest <= rooms_height(s->rooms));
}

static void any_number_of_images_is_apart(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Scene s = {.arena = arena_new("test"), .seed = seed};
        s.rooms = rooms_new(s.arena, one_memory(s.arena), IMAGES);
        for (uint32_t i = 0; i < ROOMS; i++)
            add_room(&s, i);
        for (uint32_t i = 0; i < ROOMS; i++)
            add_lap(&s, i);
        assert_true(rooms_place(s.rooms, "auto"));
        for (uint32_t n = 1; n <= IMAGES; n++)
            check_images(&s, n);
        arena_free(s.arena);
    }
}

/* ---- rows ---- */

enum { CHANNELS = 3, ROW = 5 };

/* Writes the result over the operand in the order that kernel_ahead states, the
 * result `ahead` elements in front; false if a row is overwritten before the
 * last window that needs it. */
static bool replay(uint32_t height, uint32_t out_h, uint32_t kernel,
                   uint32_t stride, uint32_t pad, int64_t ahead) {
    enum { MOST = 4096 };
    bool lost[MOST] = {false};
    uint32_t out_w = ROW;
    for (uint32_t c = 0; c < CHANNELS; c++)
        for (uint32_t r = 0; r < out_h; r++) {
            for (uint32_t k = 0; k < kernel; k++) {
                int64_t y = (int64_t)r * stride + k - pad;
                for (uint32_t x = 0; x < ROW && y >= 0 && y < height; x++)
                    if (lost[(c * height + (uint32_t)y) * ROW + x])
                        return false;
            }
            /* all of the row is written before all of it is read */
            for (uint32_t x = 0; x < out_w; x++) {
                int64_t at = (c * out_h + r) * out_w + x - ahead;
                if (at >= 0 && at < MOST)
                    lost[at] = true;
            }
            for (uint32_t k = 0; k < kernel; k++) {
                int64_t y = (int64_t)r * stride + k - pad;
                for (uint32_t x = 0; x < ROW && y >= 0 && y < height; x++)
                    if (lost[(c * height + (uint32_t)y) * ROW + x])
                        return false;
            }
        }
    return true;
}

static bool ahead_of(uint32_t height, uint32_t kernel, uint32_t stride,
                     uint32_t pad, uint32_t *out_h, int64_t *bytes) {
    *out_h = (height + 2 * pad - kernel) / stride + 1;
    Shape in = shape_nchw(1, CHANNELS, height, ROW);
    Shape out = shape_nchw(1, CHANNELS, *out_h, ROW);
    Quant none = {0};
    Operand operand[] = {operand_dense(&in, &none), operand_dense(&out, &none)};
    double k = kernel, s = stride, p = pad, groups = CHANNELS;
    AttrPair attr[] = {{"kernel", 1, &k, NULL},
                       {"stride", 1, &s, NULL},
                       {"pad", 1, &p, NULL},
                       {"groups", 1, &groups, NULL}};
    Kernel conv = {.kind = "conv",
                   .n_in = 1,
                   .n_out = 1,
                   .in = &operand[0],
                   .out = &operand[1],
                   .n_attrs = 4,
                   .attr = attr,
                   .over = -1};
    return kernel_ahead(&conv, bytes);
}

static void rows_are_read_before_they_are_lost(void **state) {
    (void)state;
    uint32_t out_h, tight = 0;
    for (uint32_t height = 3; height < 12; height++)
        for (uint32_t kernel = 1; kernel <= 3; kernel++)
            for (uint32_t stride = 1; stride <= 3; stride++)
                for (uint32_t pad = 0; pad < kernel; pad++) {
                    int64_t bytes;
                    assert_true(
                        ahead_of(height, kernel, stride, pad, &out_h, &bytes));
                    int64_t ahead = bytes / (int64_t)sizeof(float);
                    assert_true(
                        replay(height, out_h, kernel, stride, pad, ahead));
                    tight +=
                        !replay(height, out_h, kernel, stride, pad, ahead - 1);
                }
    assert_true(tight > 100); /* of 162: mostly not an element less would do */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_images_is_apart),
        cmocka_unit_test(rows_are_read_before_they_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
