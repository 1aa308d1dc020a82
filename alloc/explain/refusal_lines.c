/* refusal_lines.c - what a layer takes at the least in line buffers.
 *
 * Input: the work as it got stuck; a step. Output: the bytes with which it
 * rolls, column by column, and notes of what these are.
 */
#include "alloc/cascade/lines.h"
#include "alloc/explain/explain.h"

#include "base/text.h"

/* Steps [first, end) roll together. */
static bool makes(const Decisions *d, Cascade *g, uint32_t first, uint32_t end,
                  Lines *lines) {
    bool may = end <= d->f->schedule->n_steps && cascade_may_begin(d, first);
    for (uint32_t s = first + 1; may && s < end; s++)
        may = cascade_may_hold(d, s);
    *g = (Cascade){
        .first = first, .end = end, .rolls = true, .rows = 1, .cols = 1};
    return may && lines_make(d, g, true, lines);
}

/* The step by itself, or with few others around it, as takes the fewest bytes;
 * false if it cannot roll. */
static bool least_lines(const Decisions *d, uint32_t step, Lines *least) {
    enum { MOST = 3 };
    bool any = false;
    if (!hwspec_by_columns(d->f->spec) || d->f->spec->backing < 0)
        return false;
    for (uint32_t n = 1; n <= MOST; n++)
        for (uint32_t before = 0; before < n && before <= step; before++) {
            Cascade g;
            Lines lines;
            uint32_t first = step - before;
            if (!makes(d, &g, first, first + n, &lines) ||
                (any && lines.bytes >= least->bytes))
                continue;
            *least = lines;
            any = true;
        }
    return any;
}

uint64_t lines_wanted(const Decisions *d, uint32_t step) {
    Lines lines;
    return least_lines(d, step, &lines) ? lines.bytes : UINT64_MAX;
}

void note_lines(Diag *diag, const Decisions *d, uint32_t step) {
    const Facts *f = d->f;
    Lines lines;
    if (!least_lines(d, step, &lines))
        return;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < lines.at.n; i++) {
        const Tensor *t = graph_tensor(f->g, lines.at.at[i].tensor);
        Volume v = plan_volume(f->g, lines.at.at[i].tensor);
        Volume line = line_volume(f, &lines.at.at[i]);
        diag_note(diag, t->loc,
                  "%s (%ux%ux%u, a line buffer of %s of its %s pixels): %s "
                  "bytes",
                  t->name, v.c, v.h, v.w, with_commas(f->arena, line.w),
                  with_commas(f->arena, (uint64_t)v.h * v.w),
                  with_commas(f->arena, line_bytes(f, &lines.at.at[i])));
        sum += line_bytes(f, &lines.at.at[i]);
    }
    if (sum > lines.bytes)
        diag_note(diag, (Loc){0},
                  "of these, some are never there together, and share a place");
}
