/* manual.c - manual pages and completions; see manual.h.
 *
 * Input: the tables of commands and options. Output: roff, or a script for
 * bash, zsh or fish, on stdout. Invariant: nothing about a command or an option
 * is written here.
 */
#include "driver/manual.h"

#include "base/plain.h"

#include <string.h>

/* ---- man pages ---- */

/* Text as roff takes it: no line begins with a request, and a hyphen is one. */
static void put_roff(const char *text) {
    bool starts = true;
    for (; *text; text++) {
        if (starts && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\' || *text == '-')
            putchar('\\');
        putchar(*text);
        starts = *text == '\n';
    }
}

static void put_option(const OptionInfo *option) {
    fputs(".TP\n.B ", stdout);
    if (option->letter)
        printf("\\-%c\\fR, \\fB", option->letter);
    fputs("\\-\\-", stdout);
    put_roff(option->name);
    if (option->argument) {
        fputs(" \\fI", stdout);
        put_roff(option->argument);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    put_roff(option->doc);
    putchar('\n');
}

static void put_section(const char *name, const char *text) {
    if (!text || !*text)
        return;
    printf(".SH %s\n", name);
    put_roff(text);
    putchar('\n');
}

static void put_examples(const Command *command) {
    fputs(".SH EXAMPLES\n.nf\n", stdout);
    for (const char *at = command->examples; *at;) {
        int n = (int)strcspn(at, "\n");
        printf("amphora %s %.*s\n", command->name, n, at);
        at += n + (at[n] == '\n');
    }
    fputs(".fi\n", stdout);
}

static void command_page(const Command *command) {
    OptionInfo option;
    int line = (int)strcspn(command->doc, "\n");
    printf(".TH AMPHORA\\-%s 1\n.SH NAME\namphora\\-%s \\- %.*s\n",
           command->name, command->name, line, command->doc);
    printf(".SH SYNOPSIS\n.B amphora %s\n.I %s\n[options]\n", command->name,
           command->argument ? command->argument : "");
    put_section("DESCRIPTION", command->doc);
    put_section("DETAILS", command->details);
    fputs(".SH OPTIONS\n", stdout);
    for (uint32_t i = 0; options_info(command, i, &option); i++)
        put_option(&option);
    put_examples(command);
    fputs(".SH SEE ALSO\n.BR amphora (1)\n", stdout);
}

static void main_page(void) {
    fputs(".TH AMPHORA 1\n.SH NAME\namphora \\- compiler for neural\\-network "
          "accelerators\n.SH SYNOPSIS\n.B amphora\n.I COMMAND\n[options]\n"
          ".SH COMMANDS\n",
          stdout);
    for (uint32_t i = 0; i < n_commands; i++) {
        int line = (int)strcspn(commands[i].doc, "\n");
        printf(".TP\n.BR amphora\\-%s (1)\n%.*s\n", commands[i].name, line,
               commands[i].doc);
    }
    fputs(".SH EXIT STATUS\n0 ok, 1 bad input or wrong result, 2 usage, 3 does "
          "not fit, 70 a bug of ours.\n",
          stdout);
}

/* ---- completions ---- */

static void bash_words(const Command *command) {
    OptionInfo option;
    printf("    %s) words=\"", command->name);
    for (uint32_t i = 0; options_info(command, i, &option); i++)
        printf("%s--%s", i ? " " : "", option.name);
    fputs("\" ;;\n", stdout);
}

/* zsh reads the same script through bashcompinit. */
static void bash_script(void) {
    fputs("_amphora() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
          "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
          "        words=\"",
          stdout);
    for (uint32_t i = 0; i < n_commands; i++)
        printf("%s ", commands[i].name);
    fputs("--help --version --formats\"\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    case ${COMP_WORDS[COMP_CWORD-1]} in\n"
          "    -t|--target)\n"
          "        COMPREPLY=($(compgen -f -X '!*.yaml' -- \"$word\") "
          "$(compgen -W \"",
          stdout);
    Arena *arena = arena_new("targets");
    const char *const *target = hwspec_targets(arena);
    for (; target && *target; target++)
        printf("%s ", *target);
    arena_free(arena);
    fputs("\" -- \"$word\"))\n"
          "        return ;;\n"
          "    esac\n"
          "    case ${COMP_WORDS[1]} in\n",
          stdout);
    for (uint32_t i = 0; i < n_commands; i++)
        bash_words(&commands[i]);
    fputs("    esac\n"
          "    case $word in\n"
          "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
          "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
          "    esac\n"
          "}\n"
          "complete -o filenames -F _amphora amphora\n",
          stdout);
}

static void zsh_script(void) {
    fputs("#compdef amphora\nautoload -U +X bashcompinit && bashcompinit\n",
          stdout);
    bash_script();
}

/* Text in single quotes. */
static void put_quoted(const char *text) {
    putchar('\'');
    for (; *text && *text != '\n'; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void fish_option(const Command *command, const OptionInfo *option) {
    printf("complete -c amphora -n '__fish_seen_subcommand_from %s' -l %s",
           command->name, option->name);
    if (option->letter)
        printf(" -s %c", option->letter);
    if (option->argument)
        fputs(option->is_file || option->is_target ? " -r" : " -x", stdout);
    fputs(" -d ", stdout);
    put_quoted(option->doc);
    putchar('\n');
}

static void fish_script(void) {
    OptionInfo option;
    for (uint32_t i = 0; i < n_commands; i++) {
        printf("complete -c amphora -n __fish_use_subcommand -a %s -d ",
               commands[i].name);
        put_quoted(commands[i].doc);
        putchar('\n');
        for (uint32_t k = 0; options_info(&commands[i], k, &option); k++)
            fish_option(&commands[i], &option);
    }
}

/* ---- both ---- */

static ExitCode print_page(const char *name) {
    const Command *command = name ? command_find(name) : NULL;
    if (name && !command) {
        say_to(stderr, "amphora: no command %s\n", name);
        return EXIT_BAD_USAGE;
    }
    if (command)
        command_page(command);
    else
        main_page();
    return EXIT_FINE;
}

ExitCode manual_print(int argc, char **argv) {
    static const struct {
        const char *shell;
        void (*print)(void);
    } script[] = {
        {"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    const char *what = argc > 1 ? argv[1] : NULL;
    if (!strcmp(argv[0], "--man"))
        return print_page(what);
    for (size_t i = 0; what && i < sizeof script / sizeof *script; i++)
        if (!strcmp(what, script[i].shell)) {
            script[i].print();
            return EXIT_FINE;
        }
    say_to(stderr, "amphora: --completion takes bash, zsh or fish\n");
    return EXIT_BAD_USAGE;
}
