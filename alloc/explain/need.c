/* need.c - what a step needs of active memory, as it was tried and in the ways
 * that take less; see need.h.
 */
#include "alloc/explain/need.h"

#include "base/order.h"

#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include <stdlib.h>
#include <string.h>

uint64_t least_layout(const Facts *f, TensorId t, uint32_t channels,
                      uint32_t rows) {
    return least_volume(f, t, &(Owner){.rows = rows, .channels = channels});
}

/* Bytes of a buffer where it is smallest, even if no memory can hold it. */
static uint64_t bytes_wanted(const Facts *f, const Buffers *p, uint32_t buf) {
    const Owner *o = &p->owner.at[buf];
    return o->least != UINT64_MAX ? o->least : least_volume(f, o->tensor, o);
}

static int by_bytes(const void *a, const void *b) {
    const Line *x = a, *y = b;
    return order_by(ORDER_DOWN(x->bytes, y->bytes), ORDER_UP(x->buf, y->buf));
}

static bool alive(const Buffers *p, uint32_t buf, uint32_t time) {
    return p->buf.at[buf].first <= time && time < p->buf.at[buf].end;
}

uint64_t sum_at(const Attempt *a, uint32_t time) {
    const Buffers *p = &a->buffers;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->buf.n; i++) {
        uint64_t bytes = alive(p, i, time) ? bytes_wanted(a->f, p, i) : 0;
        sum = bytes > UINT64_MAX - sum ? UINT64_MAX : sum + bytes;
    }
    return sum;
}

NodeId step_only(const Facts *f, uint32_t step) {
    NodeId id = step < f->schedule->n_steps ? only_node(f, step) : NO_NODE;
    return id.i != NONE && on_engine(f, id) ? id : NO_NODE;
}

/* Bytes of the node's thinnest channel tiles, with what a dense convolution
 * reads; UINT64_MAX if it cannot run so. */
static uint64_t channel_tiles_wanted(const Decisions *d, NodeId id) {
    const Facts *f = d->f;
    uint32_t c = id.i == NONE ? 0 : channel_tiles_thinnest(d, id);
    if (!c)
        return UINT64_MAX;
    const Node *node = graph_node(f->g, id);
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= node->n_in; i++) {
        TensorId t = node_operand(node, i);
        bool whole = i < node->n_in && is_dense(node);
        sum += least_layout(f, t, whole ? 0 : c, plan_volume(f->g, t).h);
    }
    return sum;
}

/* Of the operands whose place the result takes; UINT64_MAX if it cannot. */
static uint64_t place_wanted(const Facts *f, NodeId id) {
    const Node *node = id.i == NONE ? NULL : graph_node(f->g, id);
    uint64_t sum = 0;
    bool takes = false;
    for (uint32_t i = 0; node && i < node->n_in; i++) {
        TensorId t = node->in[i];
        bool again = i && same_tensor(node->in[i - 1], t);
        takes |= takes_in_place(f, id, t);
        sum += again ? 0 : least_layout(f, t, 0, plan_volume(f->g, t).h);
    }
    return takes ? sum : UINT64_MAX;
}

static void need_less(Need *need, uint64_t bytes, Manner manner) {
    if (bytes < need->bytes)
        *need = (Need){bytes, manner};
}

Need need_at(const Attempt *a, uint32_t time) {
    Need need = {sum_at(a, time), AS_TRIED};
    NodeId id = step_only(a->f, time / 2);
    if (!a->given_up[time / 2])
        return need;
    need_less(&need, place_wanted(a->f, id), IN_PLACE);
    need_less(&need, channel_tiles_wanted(&a->d, id), BY_CHANNEL_TILES);
    need_less(&need, boxes_wanted(a->f, id), BY_BOXES);
    need_less(&need, lines_wanted(&a->d, time / 2), BY_LINES);
    return need;
}

/* Of the steps that cannot run, the one that would need the largest memory by
 * itself, as the machine tiles it; NONE if the others' volumes are in the way,
 * or if the machine does not tile. */
static uint32_t worst_tiled(const Attempt *a) {
    uint32_t worst = NONE;
    uint64_t most = active_bytes(a->f);
    if (a->f->spec->tiling.kind != HW_TILING_HARDWARE ||
        a->f->spec->n_active > 1)
        return NONE;
    for (uint32_t s = 0; s < a->f->schedule->n_steps; s++) {
        NodeId id = step_only(a->f, s);
        uint64_t bytes =
            a->given_up[s] && id.i != NONE ? least_tile(&a->d, id).bytes : 0;
        if (bytes > most) {
            worst = s;
            most = bytes;
        }
    }
    return worst;
}

bool stuck_in_tiles(const Attempt *a, LeastTile *least) {
    if (worst_tiled(a) == NONE || worst_tiled(a) != a->stuck)
        return false;
    *least = least_tile(&a->d, step_only(a->f, a->stuck));
    return least->mode.kind != MODE_WHOLE;
}

uint32_t worst_time(const Attempt *a) {
    bool known = memchr(a->given_up, 1, a->f->schedule->n_steps) != NULL;
    uint32_t worst = 2 * a->stuck, tiled = worst_tiled(a);
    if (tiled != NONE)
        return 2 * tiled;
    uint64_t most = need_at(a, worst).bytes;
    for (uint32_t t = 0; t < a->buffers.n_times; t++) {
        uint64_t sum = known && !a->given_up[t / 2] ? 0 : need_at(a, t).bytes;
        if (sum > most) {
            most = sum;
            worst = t;
        }
    }
    return most > active_bytes(a->f) ? worst : 2 * a->stuck;
}

uint32_t alive_at(const Attempt *a, uint32_t time, Line **out) {
    const Buffers *p = &a->buffers;
    Line *line = ARENA_ARRAY(a->f->arena, Line, p->buf.n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (alive(p, i, time))
            line[n++] = (Line){i, bytes_wanted(a->f, p, i)};
    if (n)
        qsort(line, n, sizeof *line, by_bytes);
    *out = line;
    return n;
}
