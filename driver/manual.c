/* manual.c - manual pages and completions; see manual.h.
 *
 * Input: the tables of commands and options. Output: roff, or a script for
 * bash, zsh or fish. Invariant: nothing about a command or an option
 * is written here.
 */
#include "driver/manual.h"

#include "base/guard.h"
#include "base/plain.h"

#include <string.h>

static void put(const char *text) {
    say_lines(guard_out(), text);
}

/* ---- man pages ---- */

/* Text as roff takes it: no line begins with a request, and a hyphen is one. */
static void put_roff(const char *text) {
    bool starts = true;
    for (; *text; text++) {
        if (starts && (*text == '.' || *text == '\''))
            put("\\&");
        if (*text == '\\' || *text == '-')
            say("%c", '\\');
        say("%c", *text);
        starts = *text == '\n';
    }
}

static void put_option(const OptionInfo *option) {
    put(".TP\n.B ");
    if (option->letter)
        say("\\-%c\\fR, \\fB", option->letter);
    put("\\-\\-");
    put_roff(option->name);
    if (option->argument) {
        put(" \\fI");
        put_roff(option->argument);
        put("\\fR");
    }
    say("%c", '\n');
    put_roff(option->doc);
    say("%c", '\n');
}

static void put_section(const char *name, const char *text) {
    if (!text || !*text)
        return;
    say(".SH %s\n", name);
    put_roff(text);
    say("%c", '\n');
}

static void put_examples(const Command *command) {
    put(".SH EXAMPLES\n.nf\n");
    for (const char *at = command->examples; *at;) {
        int n = (int)strcspn(at, "\n");
        say("amphora %s %.*s\n", command->name, n, at);
        at += n + (at[n] == '\n');
    }
    put(".fi\n");
}

static void command_page(const Command *command) {
    OptionInfo option;
    int line = (int)strcspn(command->doc, "\n");
    say(".TH AMPHORA\\-%s 1\n.SH NAME\namphora\\-%s \\- %.*s\n", command->name,
        command->name, line, command->doc);
    say(".SH SYNOPSIS\n.B amphora %s\n.I %s\n[options]\n", command->name,
        command->argument ? command->argument : "");
    put_section("DESCRIPTION", command->doc);
    put_section("DETAILS", command->details);
    put(".SH OPTIONS\n");
    for (uint32_t i = 0; options_info(command, i, &option); i++)
        put_option(&option);
    put_examples(command);
    put(".SH SEE ALSO\n.BR amphora (1)\n");
}

static void main_page(void) {
    put(".TH AMPHORA 1\n.SH NAME\namphora \\- compiler for neural\\-network "
        "accelerators\n.SH SYNOPSIS\n.B amphora\n.I COMMAND\n[options]\n"
        ".SH COMMANDS\n");
    for (uint32_t i = 0; i < n_commands; i++) {
        int line = (int)strcspn(commands[i].doc, "\n");
        say(".TP\n.BR amphora\\-%s (1)\n%.*s\n", commands[i].name, line,
            commands[i].doc);
    }
    put(".SH EXIT STATUS\n0 ok, 1 bad input or wrong result, 2 usage, 3 does "
        "not fit, 70 a bug of ours.\n");
}

/* ---- completions ---- */

static void bash_words(const Command *command) {
    OptionInfo option;
    say("    %s) words=\"", command->name);
    for (uint32_t i = 0; options_info(command, i, &option); i++)
        say("%s--%s", i ? " " : "", option.name);
    put("\" ;;\n");
}

/* zsh reads the same script through bashcompinit. */
static void bash_script(void) {
    put("_amphora() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
        "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
        "        words=\"");
    for (uint32_t i = 0; i < n_commands; i++)
        say("%s ", commands[i].name);
    put("--help --version --formats\"\n"
        "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
        "        return\n"
        "    fi\n"
        "    case ${COMP_WORDS[COMP_CWORD-1]} in\n"
        "    -t|--target)\n"
        "        COMPREPLY=($(compgen -f -X '!*.yaml' -- \"$word\") "
        "$(compgen -W \"");
    Arena *arena = arena_new("targets");
    const char *const *target = hwspec_targets(arena);
    for (; target && *target; target++)
        say("%s ", *target);
    arena_free(arena);
    put("\" -- \"$word\"))\n"
        "        return ;;\n"
        "    esac\n"
        "    case ${COMP_WORDS[1]} in\n");
    for (uint32_t i = 0; i < n_commands; i++)
        bash_words(&commands[i]);
    put("    esac\n"
        "    case $word in\n"
        "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
        "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
        "    esac\n"
        "}\n"
        "complete -o filenames -F _amphora amphora\n");
}

static void zsh_script(void) {
    put("#compdef amphora\nautoload -U +X bashcompinit && bashcompinit\n");
    bash_script();
}

/* Text in single quotes. */
static void put_quoted(const char *text) {
    say("%c", '\'');
    for (; *text && *text != '\n'; text++) {
        if (*text == '\'' || *text == '\\')
            say("%c", '\\');
        say("%c", *text);
    }
    say("%c", '\'');
}

static void fish_option(const Command *command, const OptionInfo *option) {
    say("complete -c amphora -n '__fish_seen_subcommand_from %s' -l %s",
        command->name, option->name);
    if (option->letter)
        say(" -s %c", option->letter);
    if (option->argument)
        put(option->is_file || option->is_target ? " -r" : " -x");
    put(" -d ");
    put_quoted(option->doc);
    say("%c", '\n');
}

static void fish_script(void) {
    OptionInfo option;
    for (uint32_t i = 0; i < n_commands; i++) {
        say("complete -c amphora -n __fish_use_subcommand -a %s -d ",
            commands[i].name);
        put_quoted(commands[i].doc);
        say("%c", '\n');
        for (uint32_t k = 0; options_info(&commands[i], k, &option); k++)
            fish_option(&commands[i], &option);
    }
}

/* ---- both ---- */

static ExitCode print_page(const char *name) {
    const Command *command = name ? command_find(name) : NULL;
    if (name && !command) {
        say_to(guard_err(), "amphora: no command %s\n", name);
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
    say_to(guard_err(), "amphora: --completion takes bash, zsh or fish\n");
    return EXIT_BAD_USAGE;
}
