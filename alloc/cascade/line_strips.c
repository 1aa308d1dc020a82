/* line_strips.c - strips of columns of a cascade with line buffers.
 *
 * Input: a cascade, how many strips. Output: which columns of each tensor a
 * strip takes. The strips of what nobody in the cascade reads are equal shares;
 * others are as their readers ask. A tensor's strip begins no later than where
 * the one before it ended, so all of it is made; columns that were in that one
 * are the halo.
 */
#include "alloc/cascade/lines.h"

uint32_t cascade_strips(const Cascade *g) {
    return g->strips ? g->strips : 1;
}

typedef struct Cut {
    const Facts *f;
    const Cascade *g;
    Lines *lines;
    uint32_t k;
} Cut;

static uint32_t round_to(uint64_t at, uint32_t q, uint32_t width) {
    uint64_t up = (at + q - 1) / q * q;
    return up < width ? (uint32_t)up : width;
}

/* Where the k-th of equal shares ends. */
static uint32_t share_end(const Cut *c, uint32_t width, uint32_t q) {
    uint64_t n = cascade_strips(c->g);
    return round_to(((uint64_t)width * (c->k + 1) + n - 1) / n, q, width);
}

/* The strip of a tensor as its readers ask, those being known. `q`: of what its
 * columns are multiples. */
static Strip strip_of(const Cut *c, TensorId t, Strip before, uint32_t q) {
    uint32_t width = plan_volume(c->f->g, t).w;
    CascadeReaders r = cascade_readers(c->f, c->g, t);
    Strip s = {before.end, before.end, before.end};
    bool read = false;
    while (cascade_readers_next(&r)) {
        const Strip *by = &c->lines->node[r.i].strip;
        FlowStep *step = &c->f->memo->flow[c->g->first + r.i];
        read = true;
        if (by->at == by->end)
            continue;
        uint32_t first = flow_first(c->f, step, 1, by->at);
        Rows last = axis_needed(c->f->g, step->node, 1, by->end - 1, 1);
        uint32_t end = last.in_row + last.in_rows;
        s.at = first < s.at ? first : s.at;
        s.end = end > s.end ? end : s.end;
    }
    if (!read)
        s.end = share_end(c, width, q);
    else if (c->k + 1 == cascade_strips(c->g))
        s.end = width;
    s.at = s.at / q * q;
    s.end = round_to(s.end, q, width);
    return s;
}

/* In the order of strips, or the first. */
static void strip_next(Cut *c) {
    static const Strip none;
    for (uint32_t i = cascade_length(c->g); i-- > 0;) {
        LineNode *node = &c->lines->node[i];
        uint32_t q = c->f->memo->flow[c->g->first + i].quantum[1];
        node->strip = strip_of(c, line_result(c->f, c->g, i),
                               c->k ? node->strip : none, q);
    }
    for (uint32_t i = 0; i < c->lines->at.n; i++) {
        LineRing *line = &c->lines->at.at[i];
        line->strip =
            line->maker == NONE
                ? strip_of(c, line->tensor, c->k ? line->strip : none, 1)
                : c->lines->node[line->maker].strip;
    }
}

void strip_enter(const Facts *f, const Cascade *g, Lines *lines, uint32_t k) {
    Cut c = {f, g, lines, 0};
    for (; c.k <= k; c.k++)
        strip_next(&c);
}

void strips_measure(const Facts *f, const Cascade *g, Lines *lines) {
    Cut c = {f, g, lines, 0};
    for (uint32_t i = 0; i < cascade_length(g); i++)
        lines->node[i].columns = 0;
    for (uint32_t i = 0; i < lines->at.n; i++)
        lines->at.at[i].width = 0;
    for (; c.k < cascade_strips(g); c.k++) {
        strip_next(&c);
        for (uint32_t i = 0; i < cascade_length(g); i++)
            lines->node[i].columns +=
                lines->node[i].strip.end - lines->node[i].strip.at;
        for (uint32_t i = 0; i < lines->at.n; i++) {
            LineRing *line = &lines->at.at[i];
            uint32_t n = line->strip.end - line->strip.at;
            line->width = n > line->width ? n : line->width;
            line->columns = (c.k ? line->columns : 0) + n;
        }
    }
}
