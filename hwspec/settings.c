/* settings.c - overrides of scalars, also of keys that a file leaves out.
 *
 * Input: the tree of a hwspec and a setting, memories.am.row_setup=4. Output:
 * the tree with the value. Invariant: keys are added only where the table of a
 * section knows them; names (of memories, engines...) never are.
 */
#include "hwspec/read.h"

#include "base/near.h"
#include "base/text.h"

#include <string.h>

/* The node of `root` that the section's path leads to along `*path`, which then
 * begins behind it; NULL where they differ or there is none. */
static YamlNode *walk(YamlNode *root, const char *pattern, const char **path) {
    YamlNode *node = root;
    while (node && *pattern) {
        size_t want = strcspn(pattern, "."), have = strcspn(*path, ".");
        if (!(*path)[have] || (strncmp(pattern, "*", want) != 0 &&
                               (want != have || strncmp(pattern, *path, want))))
            return NULL;
        node = yaml_child(node, *path, have);
        *path += have + 1;
        pattern += want + (pattern[want] == '.');
    }
    return node;
}

/* Bytes of the path's first key, which can hold dots as those of the section
 * do. *known: it is one of these. */
static size_t first_key(const Section *section, const char *path, bool *known) {
    size_t dotted = 0;
    *known = true;
    for (uint32_t i = 0; i < section->n; i++) {
        const char *name = section->key[i].name;
        size_t len = strlen(name);
        if (!strncmp(path, name, len) && (!path[len] || path[len] == '.'))
            return len;
        dotted |= strcspn(name, ".") < len;
    }
    *known = false;
    return dotted ? strlen(path) : strcspn(path, ".");
}

/* The map's own keys first, then what else the section knows. */
static const char *offer(Arena *arena, const YamlNode *map,
                         const Section *section) {
    Text text = text_new(arena);
    text_add(&text, yaml_offer(arena, map));
    const char *before = map->n ? "; also " : "; there can be: ";
    for (uint32_t i = 0; i < section->n; i++) {
        const char *name = section->key[i].name;
        if (yaml_child(map, name, strlen(name)) || !strcmp(name, "extends"))
            continue;
        text_addf(&text, "%s%s", before, name);
        before = ", ";
    }
    return text_str(&text);
}

/* The key, of those of the map and of the section, that was meant. */
static Near likely_key(Arena *arena, const YamlNode *map,
                       const Section *section, const char *name, size_t len) {
    Near near = near_to(arena_strndup(arena, name, len));
    for (uint32_t i = 0; i < map->n; i++)
        near_look(&near, map->key[i]);
    for (uint32_t i = 0; i < section->n; i++)
        near_look(&near, section->key[i].name);
    return near;
}

bool setting_apply(Arena *arena, Diag *diag, YamlNode *root,
                   const HwSetting *setting) {
    Loc loc = {
        arena_printf(arena, "--set %s=%s", setting->path, setting->value), 0,
        0};
    for (uint32_t i = 0; hwspec_sections[i]; i++) {
        const char *rest = setting->path;
        YamlNode *map = walk(root, hwspec_sections[i]->path, &rest);
        bool known;
        size_t len = first_key(hwspec_sections[i], rest, &known);
        if (!map || map->kind != YAML_MAP || yaml_leads(map, rest))
            continue;
        if (!known) {
            Near near = likely_key(arena, map, hwspec_sections[i], rest, len);
            diag_error(diag, loc, "nothing is called `%.*s`; %s%s",
                       (int)(rest + len - setting->path), setting->path,
                       near_question(arena, &near),
                       offer(arena, map, hwspec_sections[i]));
            return false;
        }
        yaml_add(arena, map, arena_strndup(arena, rest, len), loc,
                 rest[len] ? YAML_MAP : YAML_SCALAR);
    }
    return yaml_set(arena, diag, root, setting->path, setting->value);
}
