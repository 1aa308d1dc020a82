/* planner.c - the allocator as a library: three buffers in 16 bytes.
 *
 *     cc planner.c $(pkg-config --cflags --libs amphora-planner) */
#include <pack/pack.h>
#include <stdio.h>

int main(void) {
    Arena *arena = arena_new("example");
    const Buffer buf[] = {
        {.first = 0, .end = 2, .bytes = {8}, .pin_pool = -1, .hint = 0},
        {.first = 1, .end = 4, .bytes = {4}, .pin_pool = -1, .hint = 0},
        {.first = 3, .end = 5, .bytes = {12}, .pin_pool = -1, .hint = 0}};
    PackProblem problem = {
        .n_pools = 1, .pool = {{.size = 16, .align = 4}}, .n_bufs = 3};
    problem.buf = buf;
    PackResult result;
    const char *used;
    pack_memory(arena, &problem, "portfolio", true, &result, &used);
    for (int i = 0; i < 3; i++)
        printf("buffer %d at byte %d\n", i, (int)result.offset[i]);
    printf("height %d, %s\n", (int)result.height[0],
           result.proved ? "the least possible" : "maybe not the least");
    arena_free(arena);
    return 0;
}
