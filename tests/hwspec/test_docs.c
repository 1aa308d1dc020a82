/* docs/hwspec.md and hwspec.schema.json know every key that the reader knows,
 * and say the same of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "hwspec/insn.h"
#include "hwspec/read.h"

#include <string.h>

static const char *read_whole(Arena *arena, const char *path) {
    Bytes bytes = {0};
    assert_true(file_read(arena, diag_new(arena), path, &bytes));
    return arena_strndup(arena, (const char *)bytes.at, bytes.len);
}

static void must_say(const char *text, const char *row) {
    if (!strstr(text, row))
        fail_msg("docs/hwspec.md lacks: %s", row);
}

static void manual_has_all_keys(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *manual = read_whole(arena, "docs/hwspec.md");
    for (uint32_t i = 0; hwspec_sections[i]; i++) {
        const Section *s = hwspec_sections[i];
        if (*s->path)
            must_say(manual, arena_printf(arena, "`%s`", s->path));
        for (uint32_t k = 0; k < s->n; k++)
            must_say(manual,
                     arena_printf(arena, "\n| `%s` | %s | %s |\n",
                                  s->key[k].name, s->key[k].needed ? "yes" : "",
                                  s->key[k].doc));
    }
    arena_free(arena);
}

static void manual_has_all_names(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *manual = read_whole(arena, "docs/hwspec.md");
#define ROW(text, doc)                                                         \
    must_say(manual, arena_printf(arena, "\n| `%s` | %s |\n", (text), (doc)));
#define HW_OP(NAME, name, traits, doc) ROW(#name, doc)
#include "hwspec/ops.def"
#undef HW_OP
#define HW_FIELD(NAME, text, kind, doc) ROW(text, doc)
#define HW_OPERAND(NAME, text, kind, doc) ROW(text, doc)
#include "hwspec/fields.def"
#undef HW_FIELD
#undef HW_OPERAND
#define EXPR_FUNCTION(NAME, name, least, most, doc) ROW(#name, doc)
#include "hwspec/expr/functions.def"
#undef EXPR_FUNCTION
#define HW_HOST_OP(name, doc) ROW(#name, doc)
#include "hwspec/host_ops.def"
#undef HW_HOST_OP
#undef ROW
    for (uint32_t i = 0; hw_act_name[i]; i++)
        must_say(manual,
                 arena_printf(arena, "\n| `%s` | %u |\n", hw_act_name[i],
                              hw_act_number(hw_act_name[i])));
    arena_free(arena);
}

/* What `*` stands for: the first map of known keys within the items of a map
 * or a list; of several ways to write an item, within the last. */
static const cJSON *items_of(const cJSON *schema) {
    const cJSON *items = cJSON_GetObjectItem(schema, "items");
    if (!items)
        items = cJSON_GetObjectItem(schema, "additionalProperties");
    const cJSON *ways = cJSON_GetObjectItem(items, "oneOf");
    if (ways)
        items = cJSON_GetArrayItem(ways, cJSON_GetArraySize(ways) - 1);
    if (!items || cJSON_GetObjectItem(items, "properties"))
        return items;
    return items_of(items);
}

/* The schema of the map that a section's path names. */
static const cJSON *schema_of(Arena *arena, const cJSON *schema,
                              const char *path) {
    while (*path && schema) {
        size_t len = strcspn(path, ".");
        const char *word = arena_strndup(arena, path, len);
        const cJSON *in = cJSON_GetObjectItem(schema, "properties");
        if (!strcmp(word, "*"))
            schema = in ? cJSON_GetArrayItem(in, cJSON_GetArraySize(in) - 1)
                        : items_of(schema);
        else
            schema = cJSON_GetObjectItem(in, word);
        path += len + (path[len] == '.');
    }
    return schema;
}

static void schema_has_all_keys(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const char *text = read_whole(arena, "hwspec/hwspec.schema.json");
    cJSON *root = json_parse(diag_new(arena), "schema", text, strlen(text));
    assert_non_null(root);
    for (uint32_t i = 0; hwspec_sections[i]; i++) {
        const Section *s = hwspec_sections[i];
        const cJSON *schema = schema_of(arena, root, s->path);
        const cJSON *keys = cJSON_GetObjectItem(schema, "properties");
        for (uint32_t k = 0; k < s->n; k++) {
            const cJSON *key = cJSON_GetObjectItem(keys, s->key[k].name);
            if (!key)
                fail_msg("no %s.%s in the schema", s->path, s->key[k].name);
            assert_string_equal(json_str(key, "description", ""),
                                s->key[k].doc);
        }
    }
    json_free(root);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manual_has_all_keys),
        cmocka_unit_test(manual_has_all_names),
        cmocka_unit_test(schema_has_all_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
