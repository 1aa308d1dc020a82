/* option_table.c - options.def as a table, and as help; see options.h. */
#include "driver/option_table.h"

#include <string.h>

const Option option_table[N_OPTIONS] = {
#define OPTION(id, letter, advanced, name, argument, kind, usual, doc)         \
    {letter, advanced, name, argument, OPTION_##kind, usual, doc},
#include "driver/options.def"
#undef OPTION
};

const OptionAt *option_of(const Command *command, OptionId id) {
    static const OptionAt help = SHARED(help);
    for (uint32_t i = 0; i < command->n_options; i++)
        if (command->option[i].id == id)
            return &command->option[i];
    return id == OPT_help ? &help : NULL;
}

/* What a file's or a folder's name is completed for. */
static bool takes_path(const Option *option) {
    const char *a = option->argument;
    return a && (strstr(a, "FILE") || strstr(a, "PATH") || strstr(a, "DIR"));
}

bool options_info(const Command *command, uint32_t index, OptionInfo *out) {
    for (OptionId id = 0; id < N_OPTIONS; id++) {
        const Option *option = &option_table[id];
        if (!option_of(command, id) || index-- > 0)
            continue;
        *out = (OptionInfo){.letter = option->letter,
                            .name = option->name,
                            .argument = option->argument,
                            .doc = option->doc,
                            .advanced = option->advanced,
                            .is_file = option->kind != OPTION_SETTINGS &&
                                       takes_path(option),
                            .is_target = id == OPT_targets};
        return true;
    }
    return false;
}

static void print_option(const OptionInfo *option, FILE *to) {
    char head[64];
    snprintf(head, sizeof head, "%c%c%s--%s%s%s", option->letter ? '-' : ' ',
             option->letter ? option->letter : ' ',
             option->letter ? ", " : "  ", option->name,
             option->argument ? " " : "",
             option->argument ? option->argument : "");
    fprintf(to, "  %-30s %s\n", head, option->doc);
}

/* "  amphora compile a b" for each line. */
static void print_examples(const Command *command, FILE *to) {
    fputs("\nexamples:\n", to);
    for (const char *at = command->examples; *at;) {
        int n = (int)strcspn(at, "\n");
        fprintf(to, "  amphora %s %.*s\n", command->name, n, at);
        at += n + (at[n] == '\n');
    }
}

void options_help(const Command *command, bool all, FILE *to) {
    OptionInfo option;
    uint32_t hidden = 0;
    fprintf(to, "usage: amphora %s%s%s [options]\n\n%s\n", command->name,
            command->argument ? " " : "",
            command->argument ? command->argument : "", command->doc);
    if (command->details)
        fprintf(to, "\n%s\n", command->details);
    if (command->examples)
        print_examples(command, to);
    fputs("\noptions:\n", to);
    for (uint32_t i = 0; options_info(command, i, &option); i++)
        if (all || !option.advanced)
            print_option(&option, to);
        else
            hidden++;
    if (hidden)
        fprintf(to, "\n%u more: amphora %s --help all\n", hidden,
                command->name);
}
