/* word_lists.c - lists of words as files; see word_lists.h. */
#include "driver/word_lists.h"

#include "driver/commands.h"

#include <string.h>

static const char *list_name(Arena *arena, const WordLists *lists, uint32_t i) {
    return lists->n == 1
               ? arena_printf(arena, "%s.%s", lists->stem, lists->ending)
               : arena_printf(arena, "%s.%u.%s", lists->stem, i, lists->ending);
}

static const char *folder(const Options *options) {
    return options->out ? options->out : ".";
}

void word_lists_json(Arena *arena, const WordLists *lists, cJSON *map) {
    cJSON *words = cJSON_AddArrayToObject(map, "words");
    for (uint32_t i = 0; i < lists->n; i++) {
        const WordList *list = &lists->list[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "file", list_name(arena, lists, i));
        cJSON_AddNumberToObject(one, "first", list->first);
        cJSON_AddNumberToObject(one, "instructions", list->end - list->first);
        cJSON_AddItemToArray(words, one);
    }
    cJSON_AddStringToObject(map, "before",
                            arena_printf(arena, "%s.before.bin", lists->stem));
    cJSON_AddNumberToObject(map, "bytes", (double)lists->bytes);
    cJSON_AddNumberToObject(map, "constants", (double)lists->constants);
}

bool word_lists_write(Arena *arena, Diag *diag, const Options *options,
                      const WordLists *lists, cJSON *map) {
    const char *dir = folder(options);
    bool ok = file_make_dir(arena, diag, dir);
    for (uint32_t i = 0; ok && i < lists->n; i++)
        ok = file_write(
            arena, diag,
            arena_printf(arena, "%s/%s", dir, list_name(arena, lists, i)),
            lists->list[i].data, lists->list[i].len);
    char *text = cJSON_Print(map);
    ok = ok &&
         file_write(arena, diag,
                    arena_printf(arena, "%s/%s.before.bin", dir, lists->stem),
                    lists->image, lists->bytes) &&
         file_write(arena, diag,
                    arena_printf(arena, "%s/%s.map.json", dir, lists->stem),
                    text, strlen(text));
    cJSON_free(text);
    if (ok && options->json) {
        cJSON_AddBoolToObject(map, "ok", true);
        print_json(arena, options, map);
    } else {
        cJSON_Delete(map);
    }
    return ok;
}

void word_lists_say(Arena *arena, const Options *options,
                    const WordLists *lists) {
    const char *dir = folder(options);
    for (uint32_t i = 0; i < lists->n; i++)
        say("wrote   %s/%s: %s\n", dir, list_name(arena, lists, i),
            with_noun(arena, lists->list[i].end - lists->list[i].first,
                     "instruction"));
    say("wrote   %s/%s.before.bin, %s.map.json\n", dir, lists->stem,
        lists->stem);
}
