/* diff_keys.c - what two hwspecs say differently; see diff.h.
 *
 * Input: two trees, with all that they extend. Output: a row for each scalar
 * or list that only one has or that differs, by its dotted path.
 */
#include "base/text.h"
#include "base/vec.h"
#include "driver/diff.h"

#include <string.h>

typedef VEC(KeyChange) KeyChanges;

static const YamlNode *item_named(const YamlNode *map, const char *key) {
    return map && map->kind == YAML_MAP ? yaml_child(map, key, strlen(key))
                                        : NULL;
}

static bool is_same(const YamlNode *a, const YamlNode *b) {
    if (a->kind != b->kind)
        return false;
    if (a->kind == YAML_SCALAR)
        return !strcmp(a->text, b->text);
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++) {
        const YamlNode *other =
            a->kind == YAML_MAP ? item_named(b, a->key[i]) : b->item[i];
        same = other && is_same(a->item[i], other);
    }
    return same;
}

enum { SHORT = 16 }; /* scalars in a value that is shown whole */

static uint32_t scalars_in(const YamlNode *node) {
    uint32_t n = node->kind == YAML_SCALAR;
    for (uint32_t i = 0; i < node->n && n <= SHORT; i++)
        n += scalars_in(node->item[i]);
    return n;
}

/* As YAML writes it in one line. */
static void add_value(Text *text, const YamlNode *node) {
    if (node->kind == YAML_SCALAR) {
        text_add(text, node->text);
        return;
    }
    bool map = node->kind == YAML_MAP;
    text_add(text, map ? "{" : "[");
    for (uint32_t i = 0; i < node->n; i++) {
        text_addf(text, "%s%s%s", i ? ", " : "", map ? node->key[i] : "",
                  map ? ": " : "");
        add_value(text, node->item[i]);
    }
    text_add(text, map ? "}" : "]");
}

/* What is short itself; else how long it is. */
static const char *value_of(Arena *arena, const YamlNode *node) {
    if (!node)
        return NULL;
    if (scalars_in(node) <= SHORT) {
        Text text = text_new(arena);
        add_value(&text, node);
        return text_str(&text);
    }
    return arena_printf(arena, "%u %s", node->n,
                        node->kind == YAML_MAP ? "keys" : "items");
}

static void add_change(Arena *arena, const char *path, const YamlNode *a,
                       const YamlNode *b, KeyChanges *out) {
    KeyChange change = {path, value_of(arena, a), value_of(arena, b)};
    vec_push(arena, out, change);
}

static void compare(Arena *arena, const char *path, const YamlNode *a,
                    const YamlNode *b, KeyChanges *out);

/* Keys of `a`, then those that `b` alone has. */
static void compare_maps(Arena *arena, const char *path, const YamlNode *a,
                         const YamlNode *b, KeyChanges *out) {
    const char *dot = *path ? "." : "";
    for (uint32_t i = 0; i < a->n; i++)
        compare(arena, arena_printf(arena, "%s%s%s", path, dot, a->key[i]),
                a->item[i], item_named(b, a->key[i]), out);
    for (uint32_t i = 0; i < b->n; i++)
        if (!item_named(a, b->key[i]))
            compare(arena, arena_printf(arena, "%s%s%s", path, dot, b->key[i]),
                    NULL, b->item[i], out);
}

static void compare(Arena *arena, const char *path, const YamlNode *a,
                    const YamlNode *b, KeyChanges *out) {
    bool maps = a && b && a->kind == YAML_MAP && b->kind == YAML_MAP;
    if (maps)
        compare_maps(arena, path, a, b, out);
    else if (!a || !b || !is_same(a, b))
        add_change(arena, path, a, b, out);
}

uint32_t diff_keys(Arena *arena, const YamlNode *a, const YamlNode *b,
                   const KeyChange **out) {
    KeyChanges changes = {0};
    compare(arena, "", a, b, &changes);
    uint32_t n = 0;
    for (uint32_t i = 0; i < changes.n; i++)
        if (strcmp(changes.at[i].path, "extends"))
            changes.at[n++] = changes.at[i];
    *out = changes.at;
    return n;
}
