/* onchip_copy.c - rows of a row tile as a volume of their own, without DDR.
 *
 * Input: a tensor. Output: the engine that copies rows of its row tiles, if
 * there is one. Where channels lie outside of rows, some rows of a row tile are
 * no volume that every operation could read. Max pooling of single pixels
 * writes them as one: its source begins at the first of these rows and says the
 * row tile's height, its result says how many rows there are.
 */
#include "alloc/geometry/onchip_copy.h"
#include "alloc/geometry/tensor_bytes.h"

uint64_t copy_offset(const HwSpec *spec, const Volume *row_tile, uint32_t row) {
    return layout_offset(spec->memory[0].layout, row_tile, 0, row, 0, 0);
}

/* Rows follow each other at one distance, and each starts at an address. */
static bool rows_addressable(const Facts *f, TensorId t) {
    const HwMemory *m = &f->spec->memory[0];
    Volume row_tile = row_tile_in(f, t, 2, 0);
    for (uint32_t i = 0; i < m->layout->n; i++)
        if (m->layout->axis[i].dim == LAYOUT_H && m->layout->axis[i].split)
            return false;
    uint64_t row = copy_offset(f->spec, &row_tile, 1);
    return row % (m->align ? m->align : 1) == 0 && row % m->unit == 0;
}

static Legal pool_legal(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    Graph *g = graph_new(f->arena, "copy");
    NodeId source = graph_add(g, OP_INPUT, "source", (Loc){0}, 0, NULL);
    TensorId in = graph_add_output(g, source, "source");
    graph_tensor(g, in)->shape = shape_nchw(1, v.c, v.h, v.w);
    NodeId pool = graph_add(g, OP_POOL, "copy", (Loc){0}, 1, &in);
    PoolAttr *attr = &graph_node(g, pool)->attr.pool;
    attr->kind = POOL_MAX;
    for (uint32_t axis = 0; axis < 2; axis++)
        attr->kernel[axis] = attr->stride[axis] = 1;
    graph_add_output(g, pool, "copy");
    if (!graph_infer(g, pool, diag_new(f->arena)))
        return (Legal){.engine = -1, .op = HW_OP_HOST};
    return legal_check(f->arena, f->spec, g, pool);
}

Legal copy_legal(const Facts *f, TensorId t) {
    Legal *known = &f->copy[t.i];
    const Layout *layout = f->spec->memory[0].layout;
    bool can = f->spec->n_active == 1 && !f->spec->memory[0].buffers &&
               f->spec->replication.memories == 0;
    if (known->op != HW_OP_CONV)
        return *known;
    *known = can && layout->n && rows_addressable(f, t)
                 ? pool_legal(f, t)
                 : (Legal){.engine = -1, .op = HW_OP_HOST};
    return *known;
}
