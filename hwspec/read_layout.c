/* read_layout.c - `layouts`: lists of axes, checked to hold each dimension
 * exactly once; of cases, checked to take every volume, and each of them some.
 *
 * Input: a map of layouts. Output: Reader's layouts, in the file's order; one
 * with errors has no axes and no cases.
 */
#include "hwspec/read.h"

#include <stdlib.h>
#include <string.h>

/* A split that is computed: what fills a word. */
#define FIT UINT32_MAX

enum { MAX_SPLIT_DIGITS = 6, MAX_CASES = 16 };

typedef struct LayoutKeys {
    uint32_t element, word;
    Layout axes;
    uint32_t n_cases;
    LayoutCase *cases;
} LayoutKeys;

static ReadValue read_axes, read_cases, read_when, read_extents;

static const Key layout_keys[] = {
    KEY("element", read_element, LayoutKeys, element,
        "bytes of an element; else machine.element"),
    KEY("word", read_bytes32, LayoutKeys, word,
        "bytes that the inner parts fill where a split is called `fit`"),
    KEY("axes", read_axes, LayoutKeys, axes,
        "from the outside in: c, h, w, or both parts of one, such as c/96 "
        "and c%96; needed where there are no cases"),
    {"cases", read_cases, 0, false,
     "instead: list of axes for volumes of certain extents; the first that "
     "holds is taken"},
};
const Section read_layout_section = SECTION("layouts.*", layout_keys);

static const Key case_keys[] = {
    KEY("when", read_when, LayoutCase, when,
        "extents that a volume has for it: {w: ..16}; else any"),
    NEED("axes", read_axes, LayoutCase, axes, "as in a layout"),
};
const Section read_case_section = SECTION("layouts.*.cases.*", case_keys);

static const Key when_keys[] = {
    {"c", read_extents, LAYOUT_C * sizeof(LayoutRange), false, "channels"},
    {"h", read_extents, LAYOUT_H * sizeof(LayoutRange), false, "rows"},
    {"w", read_extents, LAYOUT_W * sizeof(LayoutRange), false, "columns"},
};
const Section read_when_section = SECTION("layouts.*.cases.*.when", when_keys);

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

static bool axes_good(Reader *r, Layout *axes, const LayoutKeys *keys,
                      const char *name) {
    axes->name = name;
    axes->element = keys->element;
    return axes->n && check_dims(r, axes) && fit(r, axes, keys->word);
}

/* ---- cases ---- */

/* From 1 on: a volume has no extent of 0. */
static bool read_extents(Reader *r, YamlNode *node, void *out) {
    LayoutRange *extents = out;
    HwRange range = {0};
    if (!read_range(r, node, &range))
        return false;
    if (range.n || range.lo > UINT32_MAX || range.hi == 0) {
        diag_error(r->diag, node->loc,
                   "extents of a case are from .. to, from 1 on");
        return false;
    }
    extents->lo = range.lo ? (uint32_t)range.lo : 1;
    extents->hi = range.hi > UINT32_MAX ? UINT32_MAX : (uint32_t)range.hi;
    return true;
}

static bool read_when(Reader *r, YamlNode *node, void *out) {
    return read_keys(r, node, &read_when_section, out);
}

static bool read_cases(Reader *r, YamlNode *node, void *out) {
    LayoutKeys *keys = out;
    bool ok = read_is(r, node, YAML_LIST);
    if (ok && (node->n == 0 || node->n > MAX_CASES)) {
        diag_error(r->diag, node->loc, "1 to %d cases", MAX_CASES);
        read_ignore(node);
        ok = false;
    }
    if (!ok)
        return false;
    keys->cases = ARENA_ARRAY(r->arena, LayoutCase, node->n);
    for (uint32_t i = 0; i < node->n; i++) {
        LayoutCase *at = &keys->cases[i];
        for (int dim = LAYOUT_C; dim <= LAYOUT_W; dim++)
            at->when[dim] = (LayoutRange){1, UINT32_MAX};
        ok &= read_keys(r, node->item[i], &read_case_section, at);
        at->axes.loc = node->item[i]->loc;
    }
    if (ok)
        keys->n_cases = node->n;
    return ok;
}

/* The extents of one dimension, cut wherever a case begins or ends: each piece
 * is wholly inside every case's range or wholly outside. */
typedef struct Pieces {
    uint32_t n;
    LayoutRange at[2 * MAX_CASES + 1];
} Pieces;

static Pieces pieces_of(const LayoutKeys *keys, int dim) {
    Pieces p = {0};
    for (uint64_t lo = 1; lo <= UINT32_MAX;) {
        uint64_t hi = UINT32_MAX;
        for (uint32_t i = 0; i < keys->n_cases; i++) {
            LayoutRange range = keys->cases[i].when[dim];
            if (range.lo > lo && range.lo - 1 < hi)
                hi = range.lo - 1;
            if (range.hi >= lo && range.hi < hi)
                hi = range.hi;
        }
        p.at[p.n++] = (LayoutRange){(uint32_t)lo, (uint32_t)hi};
        lo = hi + 1;
    }
    return p;
}

/* The first case of a volume of these extents; n_cases: none. */
static uint32_t case_at(const LayoutKeys *keys, const LayoutRange at[3]) {
    uint32_t i = 0;
    for (; i < keys->n_cases; i++) {
        const LayoutRange *when = keys->cases[i].when;
        bool holds = true;
        for (int dim = LAYOUT_C; dim <= LAYOUT_W; dim++)
            holds &= at[dim].lo >= when[dim].lo && at[dim].hi <= when[dim].hi;
        if (holds)
            break;
    }
    return i;
}

static void report_open(Reader *r, Loc loc, const LayoutRange at[3]) {
    const char *text = "";
    for (int dim = LAYOUT_C; dim <= LAYOUT_W; dim++) {
        const char *hi = at[dim].hi == UINT32_MAX
                             ? ""
                             : arena_printf(r->arena, "%u", at[dim].hi);
        if (at[dim].lo > 1 || *hi)
            text =
                arena_printf(r->arena, "%s%s%c = %u..%s", text,
                             *text ? ", " : "", dim_name[dim], at[dim].lo, hi);
    }
    diag_error(r->diag, loc, "cases leave %s open", text);
}

/* Every volume has a case, and every case a volume. */
static bool check_cases(Reader *r, Loc loc, const LayoutKeys *keys) {
    Pieces p[3];
    bool taken[MAX_CASES + 1] = {false}, open = false;
    for (int dim = LAYOUT_C; dim <= LAYOUT_W; dim++)
        p[dim] = pieces_of(keys, dim);
    for (uint32_t c = 0; c < p[0].n; c++)
        for (uint32_t h = 0; h < p[1].n; h++)
            for (uint32_t w = 0; w < p[2].n; w++) {
                LayoutRange at[] = {p[0].at[c], p[1].at[h], p[2].at[w]};
                uint32_t i = case_at(keys, at);
                taken[i] = true;
                if (i == keys->n_cases && !open)
                    report_open(r, loc, at);
                open |= i == keys->n_cases;
            }
    bool ok = !open;
    for (uint32_t i = 0; i < keys->n_cases; i++) {
        if (!taken[i])
            diag_error(r->diag, keys->cases[i].axes.loc,
                       "case %u is never taken", i + 1);
        ok &= taken[i];
    }
    return ok;
}

static bool cases_good(Reader *r, Loc loc, const LayoutKeys *keys,
                       const char *name) {
    bool ok = true;
    for (uint32_t i = 0; i < keys->n_cases; i++)
        ok &= axes_good(r, &keys->cases[i].axes, keys, name);
    return ok && check_cases(r, loc, keys);
}

static void read_layout(Reader *r, YamlNode *node, Layout *layout) {
    LayoutKeys keys = {.element = r->spec->element};
    bool ok = read_keys(r, node, &read_layout_section, &keys);
    bool axes = yaml_get(node, "axes"), cases = yaml_get(node, "cases");
    if (node->kind == YAML_MAP && axes == cases)
        diag_error(r->diag, node->loc,
                   "a layout has `axes`, or `cases` with axes each");
    if (!ok || axes == cases)
        return;
    if (axes && axes_good(r, &keys.axes, &keys, layout->name))
        *layout = keys.axes;
    if (!cases ||
        !cases_good(r, yaml_get(node, "cases")->loc, &keys, layout->name))
        return;
    layout->element = keys.element;
    layout->n_cases = keys.n_cases;
    layout->cases = keys.cases;
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
