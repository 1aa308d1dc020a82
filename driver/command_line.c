/* command_line.c - a command as it can be given to a shell again. */
#include "driver/options.h"

#include <string.h>

static bool is_plain(const char *text) {
    return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_./:=,+-@")];
}

void command_word(Text *to, const char *word) {
    if (to->len)
        text_add(to, " ");
    if (is_plain(word)) {
        text_add(to, word);
        return;
    }
    text_add(to, "'");
    for (; *word; word++)
        text_add(to, *word == '\'' ? "'\\''" : (const char[2]){*word, '\0'});
    text_add(to, "'");
}

const char *command_line(Arena *arena, const char *name, int argc,
                         char **argv) {
    Text text = text_new(arena);
    text_add(&text, "amphora");
    command_word(&text, name);
    for (int i = 1; i < argc; i++)
        command_word(&text, argv[i]);
    return text_str(&text);
}
