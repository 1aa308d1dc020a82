/* read_value.c - values of a hwspec: numbers with units, ranges, sets of names.
 *
 * Input: YAML nodes. Output: C values through `out`, whose type each function's
 * declaration in read.h names.
 */
#include "hwspec/read.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ELEMENT = 64 };

static bool wrong(Reader *r, const YamlNode *node, const char *wanted) {
    diag_error(r->diag, node->loc, "`%s` is not %s", node->text, wanted);
    return false;
}

bool read_str(Reader *r, YamlNode *node, void *out) {
    return yaml_str(r->diag, node, out);
}

bool read_bool(Reader *r, YamlNode *node, void *out) {
    return yaml_bool(r->diag, node, out);
}

bool read_u32(Reader *r, YamlNode *node, void *out) {
    return yaml_u32(r->diag, node, out);
}

bool read_u64(Reader *r, YamlNode *node, void *out) {
    return yaml_u64(r->diag, node, out);
}

bool read_hertz(Reader *r, YamlNode *node, void *out) {
    return yaml_hertz(r->diag, node, out);
}

bool read_per_second(Reader *r, YamlNode *node, void *out) {
    double value;
    if (!yaml_f64(r->diag, node, &value))
        return false;
    if (!(value >= 1 && value <= 1e18))
        return wrong(r, node, "a number from 1 to 1e18");
    *(double *)out = value;
    return true;
}

bool read_count(Reader *r, YamlNode *node, void *out) {
    uint32_t value;
    if (!yaml_u32(r->diag, node, &value))
        return false;
    if (value == 0)
        return wrong(r, node, "a whole number from 1");
    *(uint32_t *)out = value;
    return true;
}

bool read_element(Reader *r, YamlNode *node, void *out) {
    uint32_t value;
    if (!yaml_u32(r->diag, node, &value))
        return false;
    if (value == 0 || value > MAX_ELEMENT)
        return wrong(r, node, "a number of bytes from 1 to 64");
    *(uint32_t *)out = value;
    return true;
}

/* `node` with its text cut off before `suffix`; NULL if it has none. */
static YamlNode *without(Reader *r, const YamlNode *node, const char *suffix) {
    size_t len = strlen(node->text), tail = strlen(suffix);
    if (len < tail || strcmp(node->text + len - tail, suffix))
        return NULL;
    YamlNode *cut = ARENA_COPY(r->arena, YamlNode, node, 1);
    cut->text = arena_strndup(r->arena, node->text, len - tail);
    return cut;
}

/* The same without a suffix; an error with `wanted` if it has none. */
static YamlNode *need_suffix(Reader *r, const YamlNode *node,
                             const char *suffix, const char *wanted) {
    if (!yaml_is(r->diag, node, YAML_SCALAR))
        return NULL;
    YamlNode *cut = without(r, node, suffix);
    if (!cut)
        wrong(r, node, wanted);
    return cut;
}

bool read_bytes(Reader *r, YamlNode *node, void *out) {
    if (!yaml_is(r->diag, node, YAML_SCALAR))
        return false;
    YamlNode *elements = without(r, node, " elements");
    if (!elements)
        return yaml_size(r->diag, node, out);
    uint32_t n;
    if (!yaml_u32(r->diag, elements, &n))
        return false;
    *(uint64_t *)out = (uint64_t)n * r->spec->element;
    return true;
}

bool read_bytes32(Reader *r, YamlNode *node, void *out) {
    uint64_t bytes;
    if (!read_bytes(r, node, &bytes))
        return false;
    if (bytes == 0 || bytes > INT32_MAX)
        return wrong(r, node, "a number of bytes from 1 to 2^31-1");
    *(uint32_t *)out = (uint32_t)bytes;
    return true;
}

bool read_rate(Reader *r, YamlNode *node, void *out) {
    YamlNode *bytes = need_suffix(r, node, "/s", "a bandwidth (17.28GB/s)");
    uint64_t rate;
    if (!bytes || !yaml_size(r->diag, bytes, &rate))
        return false;
    *(double *)out = (double)rate;
    return true;
}

bool read_seconds(Reader *r, YamlNode *node, void *out) {
    static const struct {
        const char *name;
        double per_second;
    } unit[] = {{"ns", 1e9}, {"us", 1e6}, {"ms", 1e3}, {"s", 1}};
    if (!yaml_is(r->diag, node, YAML_SCALAR))
        return false;
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
        YamlNode *number = without(r, node, unit[i].name);
        double value;
        if (!number)
            continue;
        if (!yaml_f64(r->diag, number, &value))
            return false;
        if (value < 0)
            break;
        *(double *)out = value / unit[i].per_second;
        return true;
    }
    return wrong(r, node, "a time (200ns, 1.5us)");
}

bool read_share(Reader *r, YamlNode *node, void *out) {
    double value;
    if (!yaml_f64(r->diag, node, &value))
        return false;
    if (!(value > 0 && value <= 1))
        return wrong(r, node, "a share above 0 and up to 1");
    *(double *)out = value;
    return true;
}

/* ---- ranges ---- */

/* Digits of [at, end) as a number; `absent` if there are none. */
static bool bound(Reader *r, const char *at, const char *end, uint64_t absent,
                  uint64_t *out) {
    if (at == end) {
        *out = absent;
        return true;
    }
    const char *digits = arena_strndup(r->arena, at, (size_t)(end - at));
    if (strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 18)
        return false;
    *out = strtoull(digits, NULL, 10);
    return true;
}

static bool bounds(Reader *r, const YamlNode *node, HwRange *range) {
    const char *text = node->text, *end = text + strlen(text);
    const char *dots = strstr(text, "..");
    const char *lo_end = dots ? dots : end;
    const char *hi_at = dots ? dots + 2 : text;
    bool nothing = lo_end == text && hi_at == end;
    if (nothing || !bound(r, text, lo_end, 0, &range->lo) ||
        !bound(r, hi_at, end, UINT64_MAX, &range->hi))
        return wrong(r, node, "a range (1..14, 3.., ..9, 5, or a list)");
    if (range->lo <= range->hi)
        return true;
    diag_error(r->diag, node->loc,
               "the range `%s` is empty: %llu is above %llu", text,
               (unsigned long long)range->lo, (unsigned long long)range->hi);
    return false;
}

static bool listed(Reader *r, const YamlNode *list, HwRange *range) {
    uint64_t *value = ARENA_ARRAY(r->arena, uint64_t, list->n);
    if (list->n == 0) {
        diag_error(r->diag, list->loc, "the list is empty: nothing is allowed");
        return false;
    }
    for (uint32_t i = 0; i < list->n; i++)
        if (!yaml_u64(r->diag, list->item[i], &value[i]))
            return false;
    range->n = list->n;
    range->list = value;
    return true;
}

bool read_range(Reader *r, YamlNode *node, void *out) {
    HwRange range = {.set = true, .hi = UINT64_MAX, .loc = node->loc};
    bool ok = node->kind == YAML_LIST         ? listed(r, node, &range)
              : read_is(r, node, YAML_SCALAR) ? bounds(r, node, &range)
                                              : false;
    if (ok)
        *(HwRange *)out = range;
    return ok;
}

/* ---- places in active memory ---- */

bool read_place(Reader *r, YamlNode *node, void *out) {
    const HwMemory *am = r->memory;
    if (!yaml_is(r->diag, node, YAML_SCALAR) || r->spec->n_active == 0)
        return false;
    const char *slash = strchr(node->text, '/');
    HwPlace *place = out;
    *place = (HwPlace){0};
    if (!slash)
        return read_bytes(r, node, &place->bytes);
    uint64_t part, whole;
    const char *end = node->text + strlen(node->text);
    if (!bound(r, node->text, slash, 0, &part) ||
        !bound(r, slash + 1, end, 0, &whole) || part > whole || whole == 0 ||
        whole > UINT32_MAX)
        return wrong(r, node, "a fraction of the active memory (0, 1/6, 1/1)");
    place->part = (uint32_t)part;
    place->whole = (uint32_t)whole;
    place->bytes = hwspec_place(place, am);
    return true;
}

/* ---- names ---- */

/* Of a list with mistakes, all of which are told, the rest is taken: what hangs
 * on that is then no mistake as well. */
static bool read_set(Reader *r, YamlNode *list, const char *const *names,
                     uint64_t *out) {
    bool ok = true;
    *out = 0;
    if (!names[0] || !read_is(r, list, YAML_LIST))
        return false;
    for (uint32_t i = 0; i < list->n; i++) {
        uint32_t k;
        if (!yaml_enum(r->diag, list->item[i], names, &k)) {
            ok = false;
        } else if (*out >> k & 1) {
            diag_error(r->diag, list->item[i]->loc,
                       "`%s` stands here a second time", names[k]);
            ok = false;
        } else {
            *out |= UINT64_C(1) << k;
        }
    }
    return ok;
}

bool read_names(Reader *r, YamlNode *list, const char *const *names,
                uint32_t *out) {
    uint64_t bits;
    bool ok = read_set(r, list, names, &bits);
    *out = (uint32_t)bits;
    return ok;
}

bool read_ops(Reader *r, YamlNode *node, void *out) {
    return read_set(r, node, hw_op_name, out);
}

static const char **memory_names(Reader *r) {
    uint32_t n = r->spec->n_memories;
    const char **name = ARENA_ARRAY(r->arena, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        name[i] = r->memory[i].name;
    return name;
}

int32_t read_memory_name(Reader *r, const YamlNode *node) {
    uint32_t k;
    if (!r->spec->n_memories || !yaml_enum(r->diag, node, memory_names(r), &k))
        return -1;
    return (int32_t)k;
}

bool read_memory_set(Reader *r, YamlNode *node, void *out) {
    return read_names(r, node, memory_names(r), out);
}

bool read_engine_set(Reader *r, YamlNode *node, void *out) {
    uint32_t n = r->spec->n_engines;
    const char **name = ARENA_ARRAY(r->arena, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        name[i] = r->engine[i].name;
    return read_names(r, node, name, out);
}
