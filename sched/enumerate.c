#include "sched/orders.h"
void enumerate_run(Arena *arena, const OrderTask *task, Ordering *out) {
    *out = ordering_serial(arena, task->model->p,
                           order_as_given(arena, task->model->p));
}
