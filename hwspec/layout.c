/* layout.c - sizes and addresses of volumes, for every layout; see layout.h.
 *
 * One picture serves all: axis i has an extent and a stride, stride[i] being
 * the product of the extents inside it. An element's offset is the sum over
 * the axes of index times stride; its indices come from one dimension each, so
 * the sum splits into one term a dimension.
 *
 * Invariants: indices stay below extents for every element of the volume, also
 * when the replication contradicts the channels (a listing may hold anything);
 * products saturate at UINT64_MAX.
 */
#include "hwspec/layout.h"

#include "base/arith.h"

#include <assert.h>

typedef struct Shape3 {
    uint64_t extent[LAYOUT_MAX_AXES];
    uint64_t stride[LAYOUT_MAX_AXES];
    uint64_t bytes;
} Shape3;

static uint64_t min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint32_t size_of(const Volume *volume, LayoutDim dim) {
    const uint32_t size[] = {volume->c, volume->h, volume->w};
    return size[dim];
}

static bool holds(const LayoutCase *at, const Volume *volume) {
    for (int dim = LAYOUT_C; dim <= LAYOUT_W; dim++) {
        uint32_t size = size_of(volume, (LayoutDim)dim);
        if (size < at->when[dim].lo || size > at->when[dim].hi)
            return false;
    }
    return true;
}

const Layout *layout_case(const Layout *layout, const Volume *volume) {
    for (uint32_t i = 0; i < layout->n_cases; i++)
        if (i + 1 == layout->n_cases || holds(&layout->cases[i], volume))
            return &layout->cases[i].axes;
    return layout;
}

/* The split of the channels; 0 if the layout has none. */
static uint32_t channel_split(const Layout *layout) {
    for (uint32_t i = 0; i < layout->n; i++)
        if (layout->axis[i].dim == LAYOUT_C)
            return layout->axis[i].split;
    return 0;
}

/* Copies that do not fit into a section of this layout belong to another
 * memory's layout, or to the way from DDR into the array: not stored here. */
static bool replicated(const Layout *layout, const Repl *repl) {
    return repl->sections && repl->units && repl->width &&
           (uint64_t)repl->units * repl->width <= channel_split(layout);
}

/* Where channel c lies: its section, and its place there in the first copy. */
typedef struct Section {
    uint64_t index, place;
    uint32_t copies;
} Section;

static Section section_of(const Layout *layout, const Volume *volume,
                          uint32_t split, uint32_t c) {
    const Repl *repl = &volume->repl;
    uint64_t first = (uint64_t)repl->full * split;
    if (!replicated(layout, repl) || c < first)
        return (Section){c / split, c % split, 1};
    uint64_t rest = c - first;
    return (Section){repl->full + rest / repl->width, rest % repl->width,
                     repl->units};
}

static uint64_t sections(const Layout *layout, const Volume *volume,
                         uint32_t split) {
    if (volume->c == 0)
        return 0;
    const Repl *repl = &volume->repl;
    uint64_t used = section_of(layout, volume, split, volume->c - 1).index + 1;
    if (!replicated(layout, repl))
        return used;
    return max_u64(used, (uint64_t)repl->full + repl->sections);
}

/* Extent of the part within a section; copies need the whole section. */
static uint64_t inner_extent(const Layout *layout, const Volume *volume,
                             const LayoutAxis *axis) {
    bool copies = axis->dim == LAYOUT_C && replicated(layout, &volume->repl);
    if (axis->clip && !copies)
        return min_u64(size_of(volume, axis->dim), axis->split);
    return axis->split;
}

static uint64_t extent_of(const Layout *layout, const Volume *volume,
                          const LayoutAxis *axis) {
    uint64_t size = size_of(volume, axis->dim);
    uint64_t extent = size;
    if (!axis->split && axis->round == 1)
        return size;
    if (axis->inner)
        extent = inner_extent(layout, volume, axis);
    else if (axis->split && axis->dim == LAYOUT_C)
        extent = sections(layout, volume, axis->split);
    else if (axis->split)
        extent = ceil_div(size, axis->split);
    assert(axis->round >= 1);
    if (axis->round == 1)
        return extent;
    return times(ceil_div(extent, axis->round), axis->round);
}

static void measure(const Layout *layout, const Volume *volume, Shape3 *s) {
    s->bytes = layout->element;
    for (uint32_t i = layout->n; i-- > 0;) {
        s->extent[i] = extent_of(layout, volume, &layout->axis[i]);
        s->stride[i] = s->bytes;
        s->bytes = times(s->bytes, s->extent[i]);
    }
}

static uint64_t index_at(const Layout *layout, const Volume *volume,
                         const LayoutAxis *axis, uint32_t at) {
    if (!axis->split)
        return at;
    if (axis->dim == LAYOUT_C) {
        Section s = section_of(layout, volume, axis->split, at);
        return axis->inner ? s.place : s.index;
    }
    return axis->inner ? at % axis->split : at / axis->split;
}

/* The part of an offset that coordinate `at` of dimension `dim` gives. */
static uint64_t term(const Layout *layout, const Volume *volume,
                     const Shape3 *s, LayoutDim dim, uint32_t at) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < layout->n; i++) {
        const LayoutAxis *axis = &layout->axis[i];
        if (axis->dim == dim)
            sum += index_at(layout, volume, axis, at) * s->stride[i];
    }
    return sum;
}

static uint64_t copy_step(const Layout *layout, const Volume *volume,
                          const Shape3 *s) {
    if (!replicated(layout, &volume->repl))
        return 0;
    for (uint32_t i = 0; i < layout->n; i++)
        if (layout->axis[i].dim == LAYOUT_C && layout->axis[i].inner)
            return volume->repl.width * s->stride[i];
    return 0;
}

bool volumes_same(const Volume *a, const Volume *b) {
    return a->c == b->c && a->h == b->h && a->w == b->w &&
           a->repl.full == b->repl.full &&
           a->repl.sections == b->repl.sections &&
           a->repl.units == b->repl.units && a->repl.width == b->repl.width;
}

uint64_t layout_bytes(const Layout *layout, const Volume *volume) {
    Shape3 s;
    measure(layout_case(layout, volume), volume, &s);
    return s.bytes;
}

uint64_t layout_offset(const Layout *layout, const Volume *volume, uint32_t c,
                       uint32_t h, uint32_t w, uint32_t copy) {
    Shape3 s;
    layout = layout_case(layout, volume);
    measure(layout, volume, &s);
    return term(layout, volume, &s, LAYOUT_C, c) +
           term(layout, volume, &s, LAYOUT_H, h) +
           term(layout, volume, &s, LAYOUT_W, w) +
           copy * copy_step(layout, volume, &s);
}

uint32_t layout_digits(const Layout *layout, const Volume *volume,
                       LayoutDigit out[LAYOUT_MAX_AXES]) {
    Shape3 s;
    layout = layout_case(layout, volume);
    measure(layout, volume, &s);
    for (uint32_t i = 0; i < layout->n; i++) {
        const LayoutAxis *axis = &layout->axis[i];
        out[i] = (LayoutDigit){axis->dim, 1, 0, s.stride[i]};
        if (axis->split && axis->inner)
            out[i].modulo = axis->split;
        else if (axis->split)
            out[i].divide = axis->split;
    }
    return layout->n;
}

uint32_t layout_copies(const Layout *layout, const Volume *volume, uint32_t c) {
    layout = layout_case(layout, volume);
    uint32_t split = channel_split(layout);
    return split ? section_of(layout, volume, split, c).copies : 1;
}

static uint64_t *term_table(Arena *arena, const Layout *layout,
                            const Volume *volume, const Shape3 *s,
                            LayoutDim dim) {
    uint32_t n = size_of(volume, dim);
    uint64_t *table = ARENA_ARRAY(arena, uint64_t, n);
    for (uint32_t k = 0; k < layout->n; k++) {
        const LayoutAxis *axis = &layout->axis[k];
        for (uint32_t i = 0; i < n && axis->dim == dim; i++)
            table[i] += index_at(layout, volume, axis, i) * s->stride[k];
    }
    return table;
}

static uint32_t *copies_table(Arena *arena, const Layout *layout,
                              const Volume *volume) {
    uint32_t *table = ARENA_ARRAY(arena, uint32_t, volume->c);
    uint32_t split = channel_split(layout);
    for (uint32_t c = 0; c < volume->c; c++)
        table[c] = split ? section_of(layout, volume, split, c).copies : 1;
    return table;
}

LayoutTables layout_tables(Arena *arena, const Layout *layout,
                           const Volume *volume) {
    Shape3 s;
    layout = layout_case(layout, volume);
    measure(layout, volume, &s);
    LayoutTables t = {
        .c_at = term_table(arena, layout, volume, &s, LAYOUT_C),
        .h_at = term_table(arena, layout, volume, &s, LAYOUT_H),
        .w_at = term_table(arena, layout, volume, &s, LAYOUT_W),
        .copies = copies_table(arena, layout, volume),
        .copy_step = copy_step(layout, volume, &s),
    };
    return t;
}

uint32_t layout_split(const Layout *layout, const Volume *volume,
                      LayoutDim dim) {
    layout = layout_case(layout, volume);
    for (uint32_t i = 0; i < layout->n; i++)
        if (layout->axis[i].dim == dim && layout->axis[i].split)
            return layout->axis[i].split;
    return 1;
}

uint64_t layout_step(const Layout *layout, const Volume *volume,
                     LayoutDim dim) {
    Shape3 s;
    layout = layout_case(layout, volume);
    measure(layout, volume, &s);
    for (uint32_t i = 0; i < layout->n; i++)
        if (layout->axis[i].dim == dim && !layout->axis[i].inner)
            return s.stride[i];
    return 0;
}

/* Of one list of axes. */
static uint32_t own_granule(const Layout *layout) {
    const LayoutAxis *outer = &layout->axis[0];
    if (outer->dim != LAYOUT_C || outer->inner)
        return 0;
    return outer->split ? outer->split : 1;
}

static uint32_t own_part_step(const Layout *layout) {
    return own_granule(layout) * layout->axis[0].round;
}

/* The least common multiple over the cases; 0 if one has none, or if it is too
 * large. */
static uint32_t of_all(const Layout *layout, uint32_t (*of)(const Layout *)) {
    uint64_t all = 1;
    if (!layout->n_cases)
        return of(layout);
    for (uint32_t i = 0; i < layout->n_cases && all; i++) {
        uint32_t own = of(&layout->cases[i].axes);
        all = own ? all / gcd(all, own) * own : 0;
        all = all > UINT32_MAX ? 0 : all;
    }
    return (uint32_t)all;
}

uint32_t layout_granule(const Layout *layout) {
    return of_all(layout, own_granule);
}

uint32_t layout_part_step(const Layout *layout) {
    return of_all(layout, own_part_step);
}

uint64_t layout_part_offset(const Layout *layout, const Volume *whole,
                            uint32_t c) {
    layout = layout_case(layout, whole);
    if (c == 0 || layout_granule(layout) == 0)
        return 0;
    Shape3 s;
    measure(layout, whole, &s);
    return index_at(layout, whole, &layout->axis[0], c) * s.stride[0];
}

bool layout_part_alone(const Layout *layout, const Volume *whole, uint32_t c,
                       uint32_t n) {
    Volume part = {n, whole->h, whole->w, {0}};
    if (n == 0 || (c == 0 && n == whole->c))
        return true;
    const Layout *other = layout_case(layout, &part);
    layout = layout_case(layout, whole);
    uint32_t granule = layout_granule(layout);
    if (layout != other || !granule || c % granule)
        return false;
    if (replicated(layout, &whole->repl) &&
        (uint64_t)c + n > (uint64_t)whole->repl.full * granule)
        return false;
    Shape3 all, own;
    measure(layout, whole, &all);
    measure(layout, &part, &own);
    for (uint32_t i = n > granule ? 0 : 1; i < layout->n; i++)
        if (all.stride[i] != own.stride[i])
            return false;
    return true;
}

/* The innermost axis of rows; as many as there are axes: none. */
static uint32_t row_axis(const Layout *layout) {
    for (uint32_t i = layout->n; i-- > 0;)
        if (layout->axis[i].dim == LAYOUT_H)
            return i;
    return layout->n;
}

Contiguous layout_contiguous(const Layout *layout, const Volume *whole,
                             const Volume *moved) {
    if (moved->w != whole->w)
        return ROWS_APART;
    if (volumes_same(whole, moved))
        return ALL_TOGETHER;
    const Layout *other = layout_case(layout, moved);
    layout = layout_case(layout, whole);
    uint32_t rows = row_axis(layout);
    Shape3 all, own;
    if (layout != other)
        return ROWS_APART;
    measure(layout, whole, &all);
    measure(layout, moved, &own);
    if (rows < layout->n && all.stride[rows] != own.stride[rows])
        return ROWS_APART;
    for (uint32_t i = 0; i < rows; i++)
        if (own.extent[i] > 1 && all.stride[i] != own.stride[i])
            return ROWS_TOGETHER;
    return ALL_TOGETHER;
}

uint64_t layout_run_bytes(const Layout *layout, const Volume *volume,
                          Contiguous rows_lie, uint64_t *all) {
    Shape3 s;
    layout = layout_case(layout, volume);
    measure(layout, volume, &s);
    *all = s.bytes;
    uint32_t rows = row_axis(layout);
    if (rows == layout->n || rows_lie == ALL_TOGETHER)
        return s.bytes;
    if (rows_lie == ROWS_APART)
        return s.stride[rows];
    return rows ? s.stride[rows - 1] : s.bytes;
}
