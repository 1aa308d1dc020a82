/* window.c - indices under windows that slide over volumes; see ops_window.h.
 */
#include "native/llvm/ops_window.h"

void window_read(const Kernel *k, const WindowNames *names, Window out[2]) {
    for (uint32_t axis = 0; axis < 2; axis++) {
        Window *w = &out[axis];
        w->kernel = kernel_count(k, names->kernel, axis, 1);
        w->stride = kernel_count(k, names->stride, axis, 1);
        w->pad = kernel_count(k, names->pad, axis, 0);
        w->pad_end = kernel_count(k, names->pad_end, axis, w->pad);
        w->dilation = kernel_count(k, names->dilation, axis, 1);
        w->kernel += w->kernel == 0;
        w->stride += w->stride == 0;
        w->dilation += w->dilation == 0;
    }
}

Range window_range(Code *c, const Window *w, Val tap, uint32_t in,
                   uint32_t out) {
    Val zero = code_index(c, 0);
    Val moved =
        index_sub(c, code_index(c, w->pad), index_mul(c, tap, w->dilation));
    Val from = index_add(c, moved, code_index(c, (int64_t)w->stride - 1));
    Val to = index_add(c, moved, code_index(c, (int64_t)in - 1 + w->stride));
    from = index_div(c, index_max(c, from, zero), w->stride);
    to = index_div(c, index_max(c, to, zero), w->stride);
    return (Range){from, index_min(c, to, code_index(c, out))};
}

Range window_taps(Code *c, const Window *w, Val at, uint32_t in) {
    Val zero = code_index(c, 0), first = index_mul(c, at, w->stride);
    Val before = index_sub(c, code_index(c, w->pad), first);
    Val from = index_add(c, before, code_index(c, (int64_t)w->dilation - 1));
    Val to = index_add(c, before, code_index(c, (int64_t)in - 1 + w->dilation));
    from = index_div(c, index_max(c, from, zero), w->dilation);
    to = index_div(c, index_max(c, to, zero), w->dilation);
    return (Range){from, index_min(c, to, code_index(c, w->kernel))};
}

Val window_place(Code *c, const Window *w, Val at, Val tap) {
    Val before =
        index_sub(c, index_mul(c, tap, w->dilation), code_index(c, w->pad));
    return index_step(c, at, w->stride, before);
}

Source window_source(Code *c, const Window *w, Val at, Val tap, uint32_t in) {
    Val moved = index_sub(c, index_add(c, at, code_index(c, w->pad)),
                          index_mul(c, tap, w->dilation));
    Val from = index_max(c, moved, code_index(c, 0));
    Val place = index_div(c, from, w->stride);
    Val exact = LLVMBuildICmp(c->builder, LLVMIntEQ,
                              index_mul(c, place, w->stride), moved, "");
    Val inside = is_inside(c, place, in);
    return (Source){LLVMBuildAnd(c->builder, exact, inside, ""), place};
}

Val is_inside(Code *c, Val at, uint32_t size) {
    return LLVMBuildICmp(c->builder, LLVMIntULT, at, code_index(c, size), "");
}

Cover window_cover(Code *c, const Window *w, Val at, uint32_t in) {
    Val start =
        index_sub(c, index_mul(c, at, w->stride), code_index(c, w->pad));
    Val end = index_add(c, start, code_index(c, w->kernel));
    Val padded_end = index_min(c, end, code_index(c, (int64_t)in + w->pad_end));
    return (Cover){index_max(c, start, code_index(c, 0)),
                   index_min(c, end, code_index(c, in)),
                   index_sub(c, padded_end, start)};
}
