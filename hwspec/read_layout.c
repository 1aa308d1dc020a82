/* read_layout.c - `layouts`: lists of axes, checked to hold each dimension
 * exactly once.
 *
 * Input: a map of layouts. Output: Reader's layouts, in the file's order; one
 * with errors has no axes.
 */
#include "hwspec/read.h"

#include <stdlib.h>
#include <string.h>

/* A split that is computed: what fills a word. */
#define FIT UINT32_MAX

enum { MAX_SPLIT_DIGITS = 6 };

typedef struct LayoutKeys {
    uint32_t element, word;
    Layout axes;
} LayoutKeys;

static ReadValue read_axes;

static const Key layout_keys[] = {
    KEY("element", read_element, LayoutKeys, element,
        "bytes of an element; else machine.element"),
    KEY("word", read_bytes32, LayoutKeys, word,
        "bytes that the inner parts fill where a split is called `fit`"),
    NEED("axes", read_axes, LayoutKeys, axes,
         "from the outside in: c, h, w, or both parts of one, such as c/96 "
         "and c%96"),
};
const Section read_layout_section = SECTION("layouts.*", layout_keys);

static const Key axis_keys[] = {
    KEY("round", read_count, LayoutAxis, round,
        "the axis is padded to a multiple of this; else 1"),
    KEY("clip", read_bool, LayoutAxis, clip,
        "true: an inner part is no longer than its dimension, then rounded"),
};
const Section read_axis_section = SECTION("layouts.*.axes.*", axis_keys);

static const char dim_name[] = "chw";

/* "c", "c/96", "c%96", "w/fit". */
static bool parse_axis(const char *text, LayoutAxis *axis) {
    const char *dim = *text ? strchr(dim_name, *text) : NULL;
    if (!dim)
        return false;
    axis->dim = (LayoutDim)(dim - dim_name);
    if (!text[1])
        return true;
    axis->inner = text[1] == '%';
    if (!axis->inner && text[1] != '/')
        return false;
    const char *digits = text + 2;
    if (!strcmp(digits, "fit")) {
        axis->split = FIT;
        return true;
    }
    size_t len = strspn(digits, "0123456789");
    if (len == 0 || len > MAX_SPLIT_DIGITS || digits[len])
        return false;
    axis->split = (uint32_t)strtoul(digits, NULL, 10);
    return axis->split > 0;
}

static bool axis_name(Reader *r, const char *text, Loc loc, LayoutAxis *axis) {
    if (parse_axis(text, axis))
        return true;
    diag_error(r->diag, loc,
               "`%s` is not an axis: c, h, w, or a part such as c/96 (which "
               "section) or c%%96 (where in it)",
               text);
    return false;
}

/* A name, or a map of one name with what is to be done to it. */
static bool read_axis(Reader *r, YamlNode *node, LayoutAxis *axis) {
    *axis = (LayoutAxis){.round = 1};
    if (node->kind == YAML_SCALAR)
        return axis_name(r, node->text, node->loc, axis);
    if (!read_is(r, node, YAML_MAP))
        return false;
    if (node->n != 1) {
        diag_error(r->diag, node->loc,
                   "an axis is one name, or a map of one name");
        read_ignore(node);
        return false;
    }
    YamlNode *what = yaml_get(node, node->key[0]);
    bool ok = axis_name(r, node->key[0], node->key_loc[0], axis);
    ok &= read_keys(r, what, &read_axis_section, axis);
    if (!axis->clip || axis->inner)
        return ok;
    diag_error(r->diag, read_loc(what, "clip"),
               "only an inner part such as w%%28 can be clipped");
    return false;
}

static bool read_axes(Reader *r, YamlNode *node, void *out) {
    Layout *layout = out;
    if (!read_is(r, node, YAML_LIST))
        return false;
    if (node->n > LAYOUT_MAX_AXES) {
        diag_error(r->diag, node->loc, "more than %d axes", LAYOUT_MAX_AXES);
        read_ignore(node);
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < node->n; i++)
        ok &= read_axis(r, node->item[i], &layout->axis[i]);
    layout->loc = node->loc;
    if (ok)
        layout->n = node->n;
    return ok;
}

/* How often a dimension stands there whole, and as parts. */
typedef struct Uses {
    uint32_t whole, outer, inner;
    uint32_t split[2]; /* of the outer and the inner part */
} Uses;

static Uses uses_of(const Layout *layout, LayoutDim dim) {
    Uses u = {0};
    for (uint32_t i = 0; i < layout->n; i++) {
        const LayoutAxis *axis = &layout->axis[i];
        if (axis->dim != dim)
            continue;
        u.whole += axis->split == 0;
        u.inner += axis->inner;
        u.outer += axis->split && !axis->inner;
        if (axis->split)
            u.split[axis->inner] = axis->split;
    }
    return u;
}

/* What is wrong with a dimension's axes; NULL if nothing. */
static const char *dim_fault(const Uses *u) {
    if (u->whole + u->outer + u->inner == 0)
        return "is missing";
    if (u->whole > 1 || u->outer > 1 || u->inner > 1)
        return "stands there twice";
    if (u->whole && (u->outer || u->inner))
        return "stands there whole and in parts";
    if (u->outer != u->inner)
        return "has only one of its two parts";
    if (u->split[0] != u->split[1])
        return "has parts of two different splits";
    return NULL;
}

static bool check_dims(Reader *r, const Layout *layout) {
    bool ok = true;
    for (int dim = LAYOUT_C; dim <= LAYOUT_W; dim++) {
        Uses u = uses_of(layout, (LayoutDim)dim);
        const char *fault = dim_fault(&u);
        if (fault)
            diag_error(r->diag, layout->loc, "the axis `%c` %s", dim_name[dim],
                       fault);
        ok &= !fault;
    }
    return ok;
}

/* Bytes of the inner parts whose splits are given; 0 if that is too much. */
static uint64_t given_bytes(const Layout *layout) {
    uint64_t bytes = layout->element;
    for (uint32_t i = 0; i < layout->n; i++) {
        const LayoutAxis *axis = &layout->axis[i];
        if (axis->inner && axis->split != FIT)
            bytes *= axis->split;
        if (bytes > UINT32_MAX)
            return 0;
    }
    return bytes;
}

/* Gives `fit` its value: all inner parts together fill a word. */
static bool fit(Reader *r, Layout *layout, uint32_t word) {
    uint32_t open = 0;
    for (uint32_t i = 0; i < layout->n; i++)
        open += layout->axis[i].inner && layout->axis[i].split == FIT;
    if (open == 0)
        return true;
    uint64_t given = given_bytes(layout);
    if (open > 1 || word == 0 || given == 0 || word % given) {
        diag_error(r->diag, layout->loc,
                   "`fit` cannot be computed: it stands for one split that "
                   "makes the inner parts fill `word` bytes");
        return false;
    }
    for (uint32_t i = 0; i < layout->n; i++)
        if (layout->axis[i].split == FIT)
            layout->axis[i].split = (uint32_t)(word / given);
    return true;
}

static void read_layout(Reader *r, YamlNode *node, Layout *layout) {
    LayoutKeys keys = {.element = r->spec->element};
    if (!read_keys(r, node, &read_layout_section, &keys))
        return;
    Layout axes = keys.axes;
    axes.name = layout->name;
    axes.element = keys.element;
    if (axes.n && check_dims(r, &axes) && fit(r, &axes, keys.word))
        *layout = axes;
}

bool read_layouts(Reader *r, YamlNode *node, void *out) {
    (void)out;
    if (!read_is(r, node, YAML_MAP))
        return false;
    r->layout = ARENA_ARRAY(r->arena, Layout, node->n);
    r->n_layouts = node->n;
    for (uint32_t i = 0; i < node->n; i++) {
        r->layout[i].name = node->key[i];
        r->layout[i].loc = node->key_loc[i];
        read_layout(r, yaml_get(node, node->key[i]), &r->layout[i]);
    }
    return true;
}
