/* pool.c - pools of codes; see run.h. Means round down. */
#include "sim/program/run.h"

#include <string.h>

uint32_t pool_extent(const PoolKind *pool, int axis, uint32_t extent) {
    if (strcmp(pool->edge, "inside"))
        return (extent - 1) / pool->stride[axis] + 1;
    if (extent < pool->kernel[axis])
        return 0;
    return (extent - pool->kernel[axis]) / pool->stride[axis] + 1;
}

typedef struct Window {
    int64_t sum;
    int32_t most;
} Window;

/* All taps, beyond the edge those at it; or only those inside. */
static Window window(const PoolKind *pool, const uint32_t extent[2],
                     const int32_t *in, uint32_t y, uint32_t x) {
    bool repeat = !strcmp(pool->edge, "repeat");
    Window win = {0, INT32_MIN};
    for (uint32_t i = 0; i < pool->kernel[0]; i++)
        for (uint32_t k = 0; k < pool->kernel[1]; k++) {
            uint32_t row = y + i, col = x + k;
            bool outside = row >= extent[0] || col >= extent[1];
            if (outside && !repeat)
                continue;
            row = row < extent[0] ? row : extent[0] - 1;
            col = col < extent[1] ? col : extent[1] - 1;
            int32_t code = in[(size_t)row * extent[1] + col];
            win.sum += code;
            win.most = code > win.most ? code : win.most;
        }
    return win;
}

static int32_t result(const PoolKind *pool, const uint32_t extent[2],
                      const int32_t *in, uint32_t y, uint32_t x) {
    if (!strcmp(pool->kind, "sample")) {
        uint32_t col = x + pool->phase;
        return in[(size_t)y * extent[1] +
                  (col < extent[1] ? col : extent[1] - 1)];
    }
    Window win = window(pool, extent, in, y, x);
    if (!strcmp(pool->kind, "max"))
        return win.most;
    int64_t taps = (int64_t)pool->kernel[0] * pool->kernel[1];
    int64_t floor = win.sum / taps - (win.sum % taps < 0);
    return (int32_t)floor;
}

void pool_codes(const PoolKind *pool, uint32_t h, uint32_t w, const int32_t *in,
                int32_t *out) {
    const uint32_t extent[] = {h, w};
    for (uint32_t y = 0; y < pool_extent(pool, 0, h); y++)
        for (uint32_t x = 0; x < pool_extent(pool, 1, w); x++)
            *out++ = result(pool, extent, in, y * pool->stride[0],
                            x * pool->stride[1]);
}
