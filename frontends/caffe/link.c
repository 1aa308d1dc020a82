/* link.c - which layer makes the blob that a bottom names.
 *
 * In: layers in file order. Out: every bottom bound to a top, versions of
 * blobs that are changed in place, and layers in an order in which blobs are
 * made before they are read. A bottom means the latest version made above it;
 * where there is none, the last version made below it (Caffe itself refuses
 * such files, but people write them).
 */
#include "frontends/caffe/caffe.h"

#include "base/text.h"

#include <string.h>

enum { CYCLE_NAMES = 12 }; /* longer cycles are cut */

/* The latest maker of each blob so far. */
typedef struct Makers {
    Map *index; /* blob -> its entry */
    VEC(CaffeBottom) made;
} Makers;

static CaffeBottom *find_maker(Makers *makers, const char *blob) {
    uint32_t i = map_get(makers->index, blob, NONE);
    return i == NONE ? NULL : &makers->made.at[i];
}

/* In place: the top is also the bottom of the same position. */
static bool is_in_place(const CaffeLayer *layer, uint32_t t) {
    return t < layer->n_bottom &&
           !strcmp(layer->bottom[t].blob, layer->top[t].blob);
}

static void make_top(Caffe *c, Makers *makers, uint32_t l, uint32_t t) {
    CaffeLayer *layer = &c->layer.at[l];
    CaffeTop *top = &layer->top[t];
    CaffeBottom *before = find_maker(makers, top->blob);
    top->last = true;
    top->version = 1;
    if (!before) {
        CaffeBottom maker = {top->blob, top->loc, l, t};
        map_put(makers->index, top->blob, makers->made.n);
        vec_push(c->arena, &makers->made, maker);
        return;
    }
    CaffeLayer *other = &c->layer.at[before->layer];
    if (!is_in_place(layer, t)) {
        caffe_error_at(c, layer, top->loc,
                       "blob \"%s\" is made twice, and not in place",
                       top->blob);
        diag_note(c->diag, before->loc, "layer \"%s\" makes it too",
                  other->name);
    }
    other->top[before->top].last = false;
    top->version = other->top[before->top].version + 1;
    *before = (CaffeBottom){top->blob, top->loc, l, t};
}

static void bind_above(Caffe *c, Makers *makers) {
    for (uint32_t l = 0; l < c->layer.n; l++) {
        CaffeLayer *layer = &c->layer.at[l];
        for (uint32_t b = 0; b < layer->n_bottom; b++) {
            const CaffeBottom *made = find_maker(makers, layer->bottom[b].blob);
            if (made) {
                layer->bottom[b].layer = made->layer;
                layer->bottom[b].top = made->top;
            }
        }
        for (uint32_t t = 0; t < layer->n_top; t++)
            make_top(c, makers, l, t);
    }
}

/* Bottoms that found no maker above; returns whether there were any. */
static bool bind_below(Caffe *c, Makers *makers) {
    bool any = false;
    for (uint32_t l = 0; l < c->layer.n; l++) {
        CaffeLayer *layer = &c->layer.at[l];
        for (uint32_t b = 0; b < layer->n_bottom; b++) {
            CaffeBottom *bottom = &layer->bottom[b];
            if (bottom->layer != NONE)
                continue;
            const CaffeBottom *made = find_maker(makers, bottom->blob);
            any = true;
            if (made && made->layer != l) {
                bottom->layer = made->layer;
                bottom->top = made->top;
            } else {
                caffe_error_at(c, layer, bottom->loc,
                               "reads blob \"%s\", which no layer makes",
                               bottom->blob);
            }
        }
    }
    return any;
}

static void count_readers(Caffe *c) {
    for (uint32_t l = 0; l < c->layer.n; l++) {
        const CaffeLayer *layer = &c->layer.at[l];
        for (uint32_t b = 0; b < layer->n_bottom; b++)
            c->layer.at[layer->bottom[b].layer]
                .top[layer->bottom[b].top]
                .readers++;
    }
}

/* ---- order ---- */

/* A walk in depth along bottoms; `stack` holds the layers that wait. */
typedef struct Walk {
    Caffe *c;
    uint32_t *stack, depth;
    uint32_t *next;  /* by layer: its next bottom to look at */
    uint32_t *place; /* by layer: its new position; NONE before */
    bool *waits;
    uint32_t placed;
} Walk;

/* The layers that wait, from `back` on, wait for one another. */
static bool report_cycle(Walk *w, uint32_t back) {
    const CaffeLayer *layers = w->c->layer.at;
    Text names = text_new(w->c->arena);
    uint32_t from = w->depth - 1;
    while (w->stack[from] != back)
        from--;
    for (uint32_t i = from; i < w->depth && i < from + CYCLE_NAMES; i++)
        text_addf(&names, "\"%s\" reads from ", layers[w->stack[i]].name);
    text_addf(&names, "%s\"%s\"",
              w->depth - from > CYCLE_NAMES ? "... reads from " : "",
              layers[back].name);
    diag_error(w->c->diag, layers[back].loc, "layers form a cycle: %s",
               text_str(&names));
    return false;
}

/* Looks at the next bottom of the layer on top of the stack. */
static bool step(Walk *w) {
    uint32_t l = w->stack[w->depth - 1];
    const CaffeLayer *layer = &w->c->layer.at[l];
    if (w->next[l] == layer->n_bottom) {
        w->waits[l] = false;
        w->place[l] = w->placed++;
        w->depth--;
        return true;
    }
    uint32_t maker = layer->bottom[w->next[l]++].layer;
    if (w->waits[maker])
        return report_cycle(w, maker);
    if (w->place[maker] == NONE) {
        w->waits[maker] = true;
        w->stack[w->depth++] = maker;
    }
    return true;
}

static void move_layers(Caffe *c, const uint32_t *place) {
    CaffeLayer *moved = ARENA_ARRAY(c->arena, CaffeLayer, c->layer.n);
    for (uint32_t l = 0; l < c->layer.n; l++) {
        const CaffeLayer *layer = &c->layer.at[l];
        for (uint32_t b = 0; b < layer->n_bottom; b++)
            layer->bottom[b].layer = place[layer->bottom[b].layer];
        moved[place[l]] = *layer;
    }
    c->layer.at = moved;
    c->layer.cap = c->layer.n;
}

static bool order(Caffe *c) {
    uint32_t n = c->layer.n;
    Walk w = {.c = c,
              .stack = ARENA_ARRAY(c->arena, uint32_t, n),
              .next = ARENA_ARRAY(c->arena, uint32_t, n),
              .place = ARENA_ARRAY(c->arena, uint32_t, n),
              .waits = ARENA_ARRAY(c->arena, bool, n)};
    memset(w.place, 0xff, n * sizeof *w.place);
    for (uint32_t l = 0; l < n; l++) {
        if (w.place[l] != NONE)
            continue;
        w.waits[l] = true;
        w.stack[w.depth++] = l;
        while (w.depth)
            if (!step(&w))
                return false;
    }
    move_layers(c, w.place);
    return true;
}

bool caffe_link(Caffe *c) {
    uint32_t errors = diag_errors(c->diag);
    Makers makers = {.index = map_new(c->arena)};
    c->blobs = makers.index;
    bind_above(c, &makers);
    bool below = bind_below(c, &makers);
    if (diag_errors(c->diag) > errors || (below && !order(c)))
        return false;
    count_readers(c);
    return true;
}
