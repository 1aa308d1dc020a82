/* options.c - the command line, parsed by the table of options; see options.h.
 */
#include "driver/option_table.h"

#include "base/amount.h"
#include "base/near.h"

#include <getopt.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What `optind` must be so that getopt forgets what it did before. */
#ifdef __GLIBC__
enum { GETOPT_ANEW = 0 };
#else
enum { GETOPT_ANEW = 1 };
#endif

/* What getopt returns of options without a letter, from here on. */
enum { FIRST_LONG = 256 };

static bool complain(Diag *diag, const Command *command, const char *what,
                     const char *text) {
    diag_error(diag, (Loc){0}, "%s: %s%s", command->name, what, text);
    diag_note(diag, (Loc){0}, "amphora %s --help lists the options",
              command->name);
    return false;
}

static bool is_word_of(const char *words, const char *text) {
    size_t len = strlen(text);
    for (const char *at = words; len && (at = strstr(at, text)); at += len)
        if ((at == words || at[-1] == '|') && (!at[len] || at[len] == '|'))
            return true;
    return false;
}

static bool parse_real(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= 0;
}

/* NAME=VALUE, split at the first '='. */
static bool split(Arena *arena, const char *text, const char **name,
                  const char **value) {
    const char *equals = strchr(text, '=');
    if (!equals)
        return false;
    *name = arena_strndup(arena, text, (size_t)(equals - text));
    *value = equals + 1;
    return true;
}

static void split_names(Arena *arena, const char *text, Texts *out) {
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ",");
        if (len)
            vec_push(arena, out, arena_strndup(arena, at, len));
        at += len + (at[len] == ',');
    }
}

static bool add_setting(Arena *arena, const char *text, Settings *out) {
    HwSetting setting;
    if (!split(arena, text, &setting.path, &setting.value))
        return false;
    vec_push(arena, out, setting);
    return true;
}

/* NAME=1x3x2, or of all inputs: 1x3x2. */
static bool add_shape(Arena *arena, const char *text, Shapes *out) {
    ShapeSetting shape = {0};
    const char *value;
    if (!split(arena, text, &shape.name, &value))
        shape.name = "", value = text;
    if (!shape_parse(value, &shape.shape))
        return false;
    vec_push(arena, out, shape);
    return true;
}

static bool add_fix(Arena *arena, const char *text, Fixes *out) {
    FixSetting fix;
    if (!split(arena, text, &fix.name, &fix.file))
        return false;
    vec_push(arena, out, fix);
    return true;
}

/* IN=OUT, IN=OUT,FILE or auto. */
static bool add_state(Arena *arena, const char *text, States *out) {
    StateSetting state = {0};
    const char *rest;
    bool all = !strcmp(text, "auto");
    if (!all) {
        if (!split(arena, text, &state.in, &rest) || !*state.in)
            return false;
        size_t len = strcspn(rest, ",");
        state.out = arena_strndup(arena, rest, len);
        state.file = rest[len] ? rest + len + 1 : NULL;
    }
    vec_push(arena, out, state);
    return all || *state.out;
}

/* Where an option of the command is read into. */
static void *member(const OptionAt *at, Options *out) {
    const void *in = at->own ? out->own : out;
    return (char *)(uintptr_t)in + at->at;
}

/* False: it is nothing of that kind. */
static bool store(Arena *arena, const Option *option, const char *text,
                  void *to) {
    switch (option->kind) {
    case OPTION_TEXT:
        *(const char **)to = text;
        return true;
    case OPTION_WORD:
        *(const char **)to = text;
        return is_word_of(option->argument, text);
    case OPTION_FLAG:
        *(bool *)to = true;
        return true;
    case OPTION_NUMBER:
        return number_parse(text, to);
    case OPTION_COUNT:
        return number_parse(text, to) && *(uint64_t *)to > 0;
    case OPTION_BYTES:
        return bytes_parse(text, to);
    case OPTION_REAL:
        return parse_real(text, to);
    case OPTION_TEXTS:
        vec_push(arena, (Texts *)to, text);
        return true;
    case OPTION_NAMES:
        split_names(arena, text, to);
        return true;
    case OPTION_SETTINGS:
        return add_setting(arena, text, to);
    case OPTION_SHAPES:
        return add_shape(arena, text, to);
    case OPTION_FIXES:
        return add_fix(arena, text, to);
    case OPTION_STATES:
        return add_state(arena, text, to);
    }
    return false;
}

const void *options_own(Arena *arena, const Command *command) {
    Options out = {.own =
                       ARENA_ARRAY(arena, uint64_t, command->own_size / 8 + 1)};
    for (uint32_t i = 0; i < command->n_options; i++) {
        const OptionAt *at = &command->option[i];
        const Option *option = &option_table[at->id];
        if (at->own && option->usual)
            store(arena, option, option->usual, member(at, &out));
    }
    return out.own;
}

/* Nothing is given yet: lists are empty. */
static void begin(Arena *arena, const Command *command, Options *out) {
    out->own = options_own(arena, command);
    for (uint32_t i = 0; i < command->n_options; i++)
        if (option_table[command->option[i].id].kind >= OPTION_TEXTS)
            memset(member(&command->option[i], out), 0, sizeof(Texts));
}

/* What getopt returns of the i-th option. */
static int getopt_value(int i) {
    return option_table[i].letter ? option_table[i].letter : FIRST_LONG + i;
}

/* getopt's tables for the options that a command accepts. */
static void getopt_tables(const Command *command, char *shorts,
                          struct option *longs) {
    *shorts++ = ':';
    for (int i = 0; i < N_OPTIONS; i++) {
        const Option *option = &option_table[i];
        if (!option_of(command, (OptionId)i))
            continue;
        *longs++ = (struct option){
            option->name, option->argument ? required_argument : no_argument,
            NULL, getopt_value(i)};
        if (!option->letter)
            continue;
        *shorts++ = option->letter;
        if (option->argument)
            *shorts++ = ':';
    }
    *shorts = '\0';
}

static const OptionAt *find_option(const Command *command, int value) {
    for (int i = 0; i < N_OPTIONS; i++)
        if (getopt_value(i) == value && option_of(command, (OptionId)i))
            return option_of(command, (OptionId)i);
    return NULL;
}

/* The option as it was given, and the one that was meant: of this command, else
 * of the others. */
static const char *likely_option(Arena *arena, const Command *command,
                                 const char *given) {
    OptionInfo option;
    if (strncmp(given, "--", 2))
        return given;
    Near near =
        near_to(arena_strndup(arena, given + 2, strcspn(given + 2, "=")));
    for (uint32_t i = 0; options_info(command, i, &option); i++)
        near_look(&near, option.name);
    if (near.best)
        return arena_printf(arena, "%s; did you mean --%s?", given, near.best);
    for (uint32_t c = 0; c < n_commands; c++)
        for (uint32_t i = 0; options_info(&commands[c], i, &option); i++)
            if (!strcmp(option.name, near.wrong))
                return arena_printf(arena, "%s; it is one of %s", given,
                                    commands[c].name);
    return given;
}

static bool has_suffix(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && !strcmp(path + n - m, suffix);
}

static bool is_machine(Arena *arena, const char *name) {
    const char *const *target = hwspec_targets(arena);
    for (; target && *target; target++)
        if (!strcmp(*target, name))
            return true;
    return has_suffix(name, ".yaml");
}

/* `compile MACHINE -t NET`. */
static bool are_swapped(Arena *arena, const Command *command,
                        const Options *out) {
    return !strncmp(command->argument, "NET", 3) && out->target &&
           is_machine(arena, out->file) && !is_machine(arena, out->target);
}

static bool parse_all(Arena *arena, Diag *diag, const Command *command,
                      int argc, char **argv, Options *out) {
    char shorts[2 * N_OPTIONS + 2];
    struct option longs[N_OPTIONS + 1] = {{0}};
    getopt_tables(command, shorts, longs);
    for (int c; (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        const OptionAt *at = find_option(command, c);
        if (c == ':')
            return complain(diag, command, "an argument is missing after ",
                            argv[optind - 1]);
        if (!at)
            return complain(diag, command, "unknown option ",
                            likely_option(arena, command, argv[optind - 1]));
        const Option *option = &option_table[at->id];
        if (!store(arena, option, optarg, member(at, out)))
            return complain(diag, command,
                            arena_printf(arena, "--%s takes %s, not ",
                                         option->name, option->argument),
                            optarg);
    }
    return true;
}

Options options_default(void) {
    static const OptionAt with_usual[] = {
        SHARED(objective),   SHARED(effort), SHARED(planner),
        SHARED(replication), SHARED(mode),   SHARED(seed)};
    Options out = {0};
    for (size_t i = 0; i < sizeof with_usual / sizeof *with_usual; i++) {
        const Option *option = &option_table[with_usual[i].id];
        store(NULL, option, option->usual, member(&with_usual[i], &out));
    }
    return out;
}

static bool prints_passes(const Command *command, Options *out) {
    const OptionAt *at = option_of(command, OPT_print_passes);
    return at && *(const bool *)member(at, out);
}

static bool parse(Arena *arena, Diag *diag, const Command *command, int argc,
                  char **argv, Options *out) {
    /* before getopt, which puts arguments last */
    out->line = command_line(arena, command->name, argc, argv);
    begin(arena, command, out);
    if (!parse_all(arena, diag, command, argc, argv, out))
        return false;
    if (out->targets.n)
        out->target = out->targets.at[out->targets.n - 1];
    out->help_all = out->help && optind < argc && !strcmp(argv[optind], "all");
    if (out->help || prints_passes(command, out))
        return true;
    if (!command->argument)
        return optind == argc ? true
                              : complain(diag, command, "unexpected argument ",
                                         argv[optind]);
    if (optind == argc)
        return complain(diag, command, "missing ", command->argument);
    out->files = (const char *const *)argv + optind;
    out->n_files = (uint32_t)(argc - optind);
    out->file = argv[optind++];
    if (are_swapped(arena, command, out))
        return complain(
            diag, command, "network and machine are swapped: ",
            arena_printf(arena, "%s -t %s", out->target, out->file));
    if (strstr(command->argument, "..."))
        return true;
    return optind == argc
               ? true
               : complain(diag, command, "unexpected argument ", argv[optind]);
}

/* getopt's state is the process's: one thread at a time. */
bool options_parse(Arena *arena, Diag *diag, const Command *command, int argc,
                   char **argv, Options *out) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    optind = GETOPT_ANEW;
    bool right = parse(arena, diag, command, argc, argv, out);
    pthread_mutex_unlock(&lock);
    return right;
}

bool options_bundle(const Options *o) {
    return o->emit &&
           (!strcmp(o->emit, "bundle") || !strcmp(o->emit, "problem"));
}
