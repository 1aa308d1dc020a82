/* reader.c - networks from Darknet's .cfg, and values from .weights.
 *
 * In: sections of key=value lines, the first of which is [net]; the file of
 * weights has a header of three or four numbers and then the floats of all
 * layers in order. Out: the graph. What detects boxes (yolo, region,
 * detection) and what only trains (dropout, cost) is left out; the tensor that
 * goes into a detector is an output.
 */
#include "frontends/darknet/darknet.h"
#include "frontends/formats.h"

#include <string.h>

/* ---- text ---- */

static const char *trim(Arena *arena, const char *start, const char *end) {
    while (start < end && strchr(" \t\r", *start))
        start++;
    while (end > start && strchr(" \t\r", end[-1]))
        end--;
    return arena_strndup(arena, start, (size_t)(end - start));
}

static bool read_line(Dark *d, const char *start, const char *end,
                      uint32_t line) {
    Arena *arena = d->net.arena;
    const char *text = trim(arena, start, end), *equals = strchr(text, '=');
    size_t len = strlen(text);
    if (!len || *text == '#' || *text == ';')
        return true;
    if (*text == '[' && text[len - 1] == ']') {
        Section section = {.kind = arena_strndup(arena, text + 1, len - 2),
                           .line = line,
                           .out = NO_TENSOR};
        vec_push(arena, &d->section, section);
        return true;
    }
    if (!equals || !d->section.n) {
        diag_error(d->net.diag, (Loc){d->net.path, line, 1},
                   "expected [section] or key=value");
        return false;
    }
    Option option = {trim(arena, text, equals),
                     trim(arena, equals + 1, text + len)};
    vec_push(arena, &d->section.at[d->section.n - 1].option, option);
    return true;
}

static bool read_text(Dark *d, Bytes bytes) {
    const char *at = (const char *)bytes.at, *end = at + bytes.len;
    bool good = true;
    diag_source(d->net.diag, d->net.path, at, bytes.len);
    for (uint32_t line = 1; at < end && good; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        good = read_line(d, at, stop, line);
        at = stop < end ? stop + 1 : end;
    }
    return good;
}

/* ---- weights ---- */

/* Versions from 0.2 on count the images seen in 64 bits. */
static bool open_weights(Dark *d) {
    const char *path = d->net.options->weights;
    int32_t version[2];
    if (!path)
        return true;
    if (!file_read(d->net.arena, d->net.diag, path, &d->weights))
        return false;
    if (d->weights.len < 20) {
        diag_error(d->net.diag, (Loc){path, 0, 0},
                   "this is not a .weights file of Darknet");
        return false;
    }
    memcpy(version, d->weights.at, sizeof version);
    bool wide = version[0] > 0 || version[1] >= 2;
    d->weights.at += wide ? 20 : 16;
    d->weights.len -= wide ? 20 : 16;
    return true;
}

/* ---- the whole ---- */

static void build_section(Dark *d, Section *s) {
    Net *net = &d->net;
    const DarkOp *op = dark_find_op(s->kind);
    d->at = s;
    net_at(net, arena_printf(net->arena, "%s_%u", s->kind, d->layer), s->kind,
           (Loc){net->path, s->line, 1});
    if (!op)
        net_fail(net, "this kind of layer is not supported");
    if (!op || d->before.i == NONE || !dark_is_plain(d))
        return;
    s->out = d->before = op->build(d);
    s->detects = op->detects;
    if (!s->detects || s->out.i == NONE)
        return;
    graph_mark_output(net->g, s->out);
    diag_note(net->diag, net->loc,
              "what [%s] makes of boxes is left out; what goes into it is an "
              "output",
              s->kind);
}

static void build(Dark *d) {
    Section *net = &d->section.at[0];
    d->at = net;
    net_at(&d->net, "input", "net", (Loc){d->net.path, net->line, 1});
    Shape in =
        shape_nchw(1, dark_number(d, "channels", 3),
                   dark_number(d, "height", 0), dark_number(d, "width", 0));
    if (!in.dim[2] && !in.dim[3]) /* of a recurrent network */
        in = (Shape){2, {1, dark_number(d, "inputs", 0)}};
    d->before = net_input(&d->net, &in);
    for (uint32_t i = 1; i < d->section.n; i++) {
        d->layer = i - 1;
        build_section(d, &d->section.at[i]);
    }
    const Section *last = &d->section.at[d->section.n - 1];
    if (!last->detects && d->before.i != NONE)
        graph_mark_output(d->net.g, d->before);
    if (d->net.options->weights && d->weights.len && !diag_errors(d->net.diag))
        diag_warning(d->net.diag, (Loc){d->net.options->weights, 0, 0},
                     "%zu bytes of weights are left over", d->weights.len);
}

bool darknet_looks(const char *path, Bytes bytes) {
    static const char *const heads[] = {"[net]", "[network]"};
    (void)path;
    for (size_t at = 0; at < bytes.len;) {
        const char *line = (const char *)bytes.at + at;
        const char *end = memchr(line, '\n', bytes.len - at);
        size_t len = end ? (size_t)(end - line) : bytes.len - at;
        for (int i = 0; i < 2; i++)
            if (len >= strlen(heads[i]) &&
                !memcmp(line, heads[i], strlen(heads[i])))
                return true;
        if (len && !strchr("#; \t\r", *line))
            return false;
        at += len + 1;
    }
    return false;
}

Graph *darknet_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                    const ImportOptions *options) {
    Dark d = {.net = net_open(arena, diag, path, options, false)};
    if (!read_text(&d, bytes) || !open_weights(&d))
        return NULL;
    if (d.section.n < 2) {
        diag_error(diag, (Loc){path, 0, 0}, "it has no layers");
        return NULL;
    }
    build(&d);
    return diag_errors(diag) ? NULL : d.net.g;
}
