/* planner.c - the allocator as a library: three buffers in 16 bytes. C or C++.
 *
 *     cc planner.c $(pkg-config --cflags --libs amphora-planner) */
#include <amphora/planner.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    /* first, end, size, alignment */
    amphora_planner_buffer buffer[3] = {{0, 2, 8, 0, 0, 0, 0, NULL},
                                        {1, 4, 4, 0, 0, 0, 0, NULL},
                                        {3, 5, 12, 0, 0, 0, 0, NULL}};
    amphora_planner_problem problem;
    memset(&problem, 0, sizeof problem);
    problem.struct_size = sizeof problem;
    problem.buffers = buffer;
    problem.n_buffers = 3;
    problem.capacity = 16;
    problem.alignment = 4;
    amphora_planner_result result;
    uint64_t offset[3];
    if (amphora_planner_place(&problem, NULL, offset, &result)) {
        puts(result.message);
        return 1;
    }
    for (int i = 0; i < 3; i++)
        printf("buffer %d at byte %d\n", i, (int)offset[i]);
    printf("height %d, %s\n", (int)result.height,
           result.proved ? "the least possible" : "maybe not the least");
    return 0;
}
