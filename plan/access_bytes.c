/* access_bytes.c - whether two accesses have a byte in common; see overlap.h.
 *
 * Input: accesses to one memory. Output: no, if it is certain. Rows of some
 * channels leave bytes between them, in which those of another volume can lie.
 * Method: where no axis of the layout is split, what is accessed is a comb:
 * teeth of as many bytes each, at equal distances. Rows that turn around the
 * end of a ring are two combs. What is no comb may touch all that it spans.
 */
#include "plan/access.h"

#include "base/arith.h"
#include "hwspec/layout.h"

typedef struct Comb {
    uint64_t first, size; /* bytes: of the first tooth, of each */
    uint64_t n, pitch;    /* how many; from one to the next, if there are */
} Comb;

/* So many of an axis. */
typedef struct Extent {
    uint64_t first, n;
} Extent;

/* False if it is no comb any more. */
static bool comb_spread(Comb *comb, uint64_t stride, Extent of) {
    comb->first += of.first * stride;
    if (comb->n == 1 && comb->size == stride) {
        comb->size *= of.n;
    } else if (comb->n == 1) {
        comb->n = of.n;
        comb->pitch = stride;
    } else if (comb->n * comb->pitch == stride) {
        comb->n *= of.n;
    } else {
        return of.n == 1;
    }
    return true;
}

static bool comb_of(const Layout *layout, const Access *access, Extent rows,
                    Comb *out) {
    const Placement *p = access->at;
    const uint32_t size[] = {p->whole.c, p->whole.h, p->whole.w};
    layout = layout_case(layout, &p->whole);
    const Extent range[] = {{p->part_c, p->n_c}, rows, {0, p->whole.w}};
    uint64_t stride = layout->element;
    *out = (Comb){access->start, layout->element, 1, 0};
    for (uint32_t i = layout->n; i-- > 0;) {
        const LayoutAxis *axis = &layout->axis[i];
        if (axis->split || !comb_spread(out, stride, range[axis->dim]))
            return false;
        stride *= round_up(size[axis->dim], axis->round);
    }
    return true;
}

/* Of the access, at most two; 0: it is none. */
static uint32_t combs_of(const HwSpec *spec, const Access *a, Comb *out) {
    const Layout *layout = spec->memory[a->at->memory].layout;
    uint64_t h = a->at->whole.h, end = (uint64_t)a->row + a->rows;
    if (!a->exact || end > 2 * h)
        return 0;
    if (end <= h)
        return comb_of(layout, a, (Extent){a->row, a->rows}, out);
    return comb_of(layout, a, (Extent){a->row, h - a->row}, &out[0]) &&
                   comb_of(layout, a, (Extent){0, end - h}, &out[1])
               ? 2
               : 0;
}

/* Whether one of n teeth, the first at `first`, lies in part in these bytes. */
static bool teeth_meet(const Comb *comb, int64_t first, uint64_t n,
                       Reach bytes) {
    int64_t pitch = (int64_t)comb->pitch, size = (int64_t)comb->size;
    int64_t low = (int64_t)bytes.first - size - first,
            high = (int64_t)bytes.end - 1 - first, last = (int64_t)n - 1;
    if (high < 0)
        return false;
    if (n == 1)
        return low < 0;
    low = low < 0 ? 0 : low / pitch + 1;
    high = high / pitch < last ? high / pitch : last;
    return low <= high;
}

static bool combs_meet(const Comb *a, const Comb *b) {
    if (a->n > b->n)
        return combs_meet(b, a);
    Reach tooth = {a->first, a->first + a->size};
    if (a->pitch == b->pitch && a->n > 1) /* the others are as far apart */
        return teeth_meet(b,
                          (int64_t)b->first - (int64_t)((a->n - 1) * b->pitch),
                          a->n + b->n - 1, tooth);
    for (uint64_t i = 0; i < a->n; i++) {
        if (teeth_meet(b, (int64_t)b->first, b->n, tooth))
            return true;
        tooth.first += a->pitch;
        tooth.end += a->pitch;
    }
    return false;
}

static bool any_meet(const Comb *a, uint32_t n_a, const Comb *b, uint32_t n_b) {
    bool any = n_a == 0 || n_b == 0;
    for (uint32_t i = 0; i < n_a; i++)
        for (uint32_t k = 0; k < n_b && !any; k++)
            any = combs_meet(&a[i], &b[k]);
    return any;
}

/* Of one volume, rows and channels have told already. */
static bool touch(const HwSpec *spec, const Access *a, const Access *b) {
    Comb mine[2], other[2];
    return access_meet(a, b) && (placements_share(a->at, b->at) ||
                                 any_meet(mine, combs_of(spec, a, mine), other,
                                          combs_of(spec, b, other)));
}

bool access_in(const HwSpec *spec, const Access *a, Reach bytes) {
    Comb comb[2], other = {bytes.first, bytes.end - bytes.first, 1, 0};
    return reaches_meet((Reach){a->first, a->end}, bytes) &&
           any_meet(comb, combs_of(spec, a, comb), &other, 1);
}

bool accesses_touch(const HwSpec *spec, const Accesses *a, const Accesses *b) {
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = i < a->n_read ? b->n_read : 0; k < b->n; k++)
            if (touch(spec, &a->at[i], &b->at[k]))
                return true;
    return false;
}
