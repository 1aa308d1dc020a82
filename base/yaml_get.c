/* yaml_get.c - typed getters over YAML trees, and keys that nobody asked for.
 *
 * Input: nodes of yaml.c. Output: C values, or an error at the node's place.
 * Invariant: an output is written only when the getter returns true.
 */
#include "base/amount.h"
#include "base/near.h"
#include "base/yaml.h"

#include "base/text.h"
#include "base/yaml_asked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OFFERED = 40 };

const char *yaml_offer(Arena *arena, const YamlNode *node) {
    if (node->kind == YAML_SCALAR)
        return "it is a single value";
    if (!node->n)
        return "it is empty";
    if (node->kind == YAML_LIST)
        return arena_printf(arena, "it is a list: 0 to %u", node->n - 1);
    Text text = text_new(arena);
    for (uint32_t i = 0; i < node->n && i < MAX_OFFERED; i++)
        text_addf(&text, "%s%.80s", i ? ", " : "there are: ", node->key[i]);
    if (node->n > MAX_OFFERED)
        text_addf(&text, " and %u more", node->n - MAX_OFFERED);
    return text_str(&text);
}

static void remember_missed(const YamlNode *map, const char *key) {
    YamlAsked *asked = map->asked;
    for (uint32_t i = 0; i < asked->key.n; i++)
        if (!strcmp(asked->key.at[i], key))
            return;
    vec_push(map->arena, &asked->key, arena_strdup(map->arena, key));
}

YamlNode *yaml_get(const YamlNode *map, const char *key) {
    if (!map || map->kind != YAML_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->n; i++)
        if (!strcmp(map->key[i], key)) {
            map->item[i]->used = true;
            return map->item[i];
        }
    remember_missed(map, key);
    return NULL;
}

YamlNode *yaml_need(Diag *diag, const YamlNode *map, const char *key) {
    YamlNode *node = yaml_get(map, key);
    if (!node && map && map->kind == YAML_MAP)
        diag_error(diag, map->loc, "the key `%s` is missing", key);
    return node;
}

bool yaml_is(Diag *diag, const YamlNode *node, YamlKind kind) {
    static const char *const name[] = {"a single value", "a list", "a map"};
    if (!node || node->kind == kind)
        return node;
    bool nothing = node->kind == YAML_SCALAR && !*node->text && !node->quoted;
    diag_error(diag, node->loc, "%s is expected here, not %s", name[kind],
               nothing ? "nothing" : name[node->kind]);
    return false;
}

/* The text of a scalar that is there; NULL after an error, or for NULL. */
static const char *scalar(Diag *diag, const YamlNode *node) {
    if (!node || !yaml_is(diag, node, YAML_SCALAR))
        return NULL;
    if (*node->text || node->quoted)
        return node->text;
    diag_error(diag, node->loc, "a value is missing here");
    return NULL;
}

static bool wrong(Diag *diag, const YamlNode *node, const char *wanted) {
    diag_error(diag, node->loc, "`%.80s` is not %s", node->text, wanted);
    return false;
}

bool yaml_str(Diag *diag, const YamlNode *node, const char **out) {
    const char *text = scalar(diag, node);
    if (text)
        *out = text;
    return text;
}

bool yaml_bool(Diag *diag, const YamlNode *node, bool *out) {
    const char *text = scalar(diag, node);
    if (!text)
        return false;
    bool yes = !strcmp(text, "true");
    if (!yes && strcmp(text, "false"))
        return wrong(diag, node, "true or false");
    *out = yes;
    return true;
}

bool yaml_u64(Diag *diag, const YamlNode *node, uint64_t *out) {
    const char *text = scalar(diag, node);
    if (!text)
        return false;
    return number_parse(text, out)
               ? true
               : wrong(diag, node, "a whole number from 0 to 2^64-1");
}

bool yaml_u32(Diag *diag, const YamlNode *node, uint32_t *out) {
    const char *text = scalar(diag, node);
    uint64_t value;
    if (!text)
        return false;
    if (!number_parse(text, &value) || value > UINT32_MAX)
        return wrong(diag, node, "a whole number from 0 to 2^32-1");
    *out = (uint32_t)value;
    return true;
}

bool yaml_i64(Diag *diag, const YamlNode *node, int64_t *out) {
    const char *text = scalar(diag, node);
    uint64_t value;
    if (!text)
        return false;
    bool negative = *text == '-';
    uint64_t most = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    if (!number_parse(text + negative, &value) || value > most)
        return wrong(diag, node, "a whole number from -2^63 to 2^63-1");
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* A finite decimal number at the start of `text`; `*end` is behind it. */
static bool parse_number(const char *text, const char **end, double *out) {
    const char *at = text + (*text == '-' || *text == '+');
    if (*at != '.' && (*at < '0' || *at > '9'))
        return false; /* strtod would take inf, nan and spaces */
    if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
        return false;
    char *stop;
    double value = strtod(text, &stop);
    *end = stop;
    *out = value;
    return stop != text && isfinite(value);
}

bool yaml_f64(Diag *diag, const YamlNode *node, double *out) {
    const char *text = scalar(diag, node), *end;
    double value;
    if (!text)
        return false;
    if (!parse_number(text, &end, &value) || *end)
        return wrong(diag, node, "a number");
    *out = value;
    return true;
}

bool yaml_size(Diag *diag, const YamlNode *node, uint64_t *out) {
    const char *text = scalar(diag, node);
    if (!text)
        return false;
    return bytes_parse(text, out)
               ? true
               : wrong(diag, node,
                       "a whole number of bytes (4096, 512KiB, 4.5MiB, 1GB)");
}

bool yaml_hertz(Diag *diag, const YamlNode *node, double *out) {
    static const struct {
        const char *name;
        double hertz;
    } unit[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};
    const char *text = scalar(diag, node), *end;
    double value;
    if (!text)
        return false;
    if (parse_number(text, &end, &value) && value > 0)
        for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
            if (!strcmp(end + strspn(end, " "), unit[i].name)) {
                *out = value * unit[i].hertz;
                return true;
            }
    return wrong(diag, node, "a frequency (800MHz, 1.2GHz)");
}

bool yaml_enum(Diag *diag, const YamlNode *node, const char *const *names,
               uint32_t *out) {
    const char *text = scalar(diag, node);
    if (!text)
        return false;
    enum { AT_A_GLANCE = 8 }; /* of a longer list, which one was meant */
    Text list = text_new(node->arena);
    Near near = near_to(text);
    uint32_t n = 0;
    for (; names[n]; n++) {
        if (!strcmp(text, names[n])) {
            *out = n;
            return true;
        }
        near_look(&near, names[n]);
        text_addf(&list, "%s%s", n ? ", " : "one of: ", names[n]);
    }
    if (near.best && n > AT_A_GLANCE)
        text_addf(&list, "; did you mean `%s`?", near.best);
    return wrong(diag, node, text_str(&list));
}

/* The key that was asked for and looks most like `key`, or NULL: one that is
 * absent rather than one that is there. */
static const char *suggest(const YamlNode *map, const char *key) {
    Near near = near_to(key);
    for (uint32_t i = 0; i < map->asked->key.n; i++)
        near_look(&near, map->asked->key.at[i]);
    for (uint32_t i = 0; i < map->n; i++)
        if (map->item[i]->used)
            near_look(&near, map->key[i]);
    return near.best;
}

enum { MAX_SUGGESTED = 100 }; /* errors; a search through the map for each */

void yaml_check_used(Diag *diag, const YamlNode *root) {
    for (uint32_t i = 0; i < root->n; i++) {
        if (root->kind == YAML_LIST || root->item[i]->used) {
            yaml_check_used(diag, root->item[i]);
            continue;
        }
        const char *likely = diag_errors(diag) < MAX_SUGGESTED
                                 ? suggest(root, root->key[i])
                                 : NULL;
        diag_error(diag, root->key_loc[i],
                   likely ? "unknown key `%.80s`; did you mean `%s`?"
                          : "unknown key `%.80s`",
                   root->key[i], likely);
    }
}
