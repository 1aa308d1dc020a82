/* options.c - the command line, parsed by the table of options; see options.h.
 */
#include "driver/option_table.h"

#include "base/amount.h"
#include "base/near.h"
#include "base/vec.h"

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

typedef VEC(const char *) Names;

typedef struct Lists {
    VEC(HwSetting) setting;
    VEC(ShapeSetting) shape;
    VEC(const char *) input;
    VEC(const char *) expect;
    VEC(FixSetting) fixed;
    Names start, end;
    VEC(const char *) target;
    VEC(HwSetting) vary;
    VEC(const char *) rising;
    VEC(HwSetting) pool;
    VEC(const char *) bits;
} Lists;

static void split_names(Arena *arena, const char *text, Names *out) {
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ",");
        if (len)
            vec_push(arena, out, arena_strndup(arena, at, len));
        at += len + (at[len] == ',');
    }
}

static bool store(Arena *arena, const Option *option, const char *text,
                  Lists *lists, Options *out) {
    char *at = (char *)out + option->at;
    HwSetting setting;
    ShapeSetting shape = {0};
    FixSetting fix;
    const char *value;
    switch (option->kind) {
    case OPTION_TEXT:
        memcpy(at, &text, sizeof text);
        return true;
    case OPTION_TARGET:
        vec_push(arena, &lists->target, text);
        out->target = text;
        return true;
    case OPTION_FLAG:
        *(bool *)at = true;
        return true;
    case OPTION_NUMBER:
        return number_parse(text, (uint64_t *)(void *)at);
    case OPTION_COUNT:
        return number_parse(text, (uint64_t *)(void *)at) &&
               *(uint64_t *)(void *)at > 0;
    case OPTION_BYTES:
        return bytes_parse(text, (uint64_t *)(void *)at);
    case OPTION_WORD:
        memcpy(at, &text, sizeof text);
        return is_word_of(option->argument, text);
    case OPTION_REAL:
        return parse_real(text, (double *)(void *)at);
    case OPTION_SETTING:
        if (!split(arena, text, &setting.path, &setting.value))
            return false;
        vec_push(arena, &lists->setting, setting);
        return true;
    case OPTION_POOL:
        if (!split(arena, text, &setting.path, &setting.value))
            return false;
        vec_push(arena, &lists->pool, setting);
        return true;
    case OPTION_VARY:
        if (!split(arena, text, &setting.path, &setting.value))
            return false;
        vec_push(arena, &lists->vary, setting);
        return true;
    case OPTION_SHAPE:
        if (!split(arena, text, &shape.name, &value))
            shape.name = "", value = text;
        if (!shape_parse(value, &shape.shape))
            return false;
        vec_push(arena, &lists->shape, shape);
        return true;
    case OPTION_FIX:
        if (!split(arena, text, &fix.name, &fix.file))
            return false;
        vec_push(arena, &lists->fixed, fix);
        return true;
    case OPTION_STARTS:
        split_names(arena, text, &lists->start);
        return true;
    case OPTION_ENDS:
        split_names(arena, text, &lists->end);
        return true;
    case OPTION_INPUT:
        vec_push(arena, &lists->input, text);
        return true;
    case OPTION_EXPECT:
        vec_push(arena, &lists->expect, text);
        return true;
    case OPTION_RISING:
        vec_push(arena, &lists->rising, text);
        return true;
    case OPTION_BITS:
        vec_push(arena, &lists->bits, text);
        return true;
    }
    return false;
}

/* What getopt returns of the i-th option. */
static int getopt_value(int i) {
    return option_table[i].letter ? option_table[i].letter : FIRST_LONG + i;
}

/* getopt's tables for the options that a command accepts. */
static void getopt_tables(const Command *command, char *shorts,
                          struct option *longs) {
    *shorts++ = ':';
    for (int i = 0; i < n_options; i++) {
        const Option *option = &option_table[i];
        if (!option_accepted(command, option))
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

static const Option *find_option(int value) {
    for (int i = 0; i < n_options; i++)
        if (getopt_value(i) == value)
            return &option_table[i];
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
                      int argc, char **argv, Lists *lists, Options *out) {
    char shorts[2 * MOST_OPTIONS + 2];
    struct option longs[MOST_OPTIONS + 1] = {{0}};
    getopt_tables(command, shorts, longs);
    for (int c; (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        const Option *option = find_option(c);
        if (c == ':')
            return complain(diag, command, "an argument is missing after ",
                            argv[optind - 1]);
        if (!option)
            return complain(diag, command, "unknown option ",
                            likely_option(arena, command, argv[optind - 1]));
        if (!store(arena, option, optarg, lists, out))
            return complain(diag, command,
                            arena_printf(arena, "--%s takes %s, not ",
                                         option->name, option->argument),
                            optarg);
    }
    return true;
}

Options options_default(void) {
    return (Options){.planner = "auto",
                     .objective = "balanced",
                     .effort = 1,
                     .replication = "safe",
                     .mode = "latency",
                     .reports = "front",
                     .seed = 1,
                     .tolerance = 1e-4,
                     .quantise = {.percentile = 99.99, .keep = 3}};
}

static bool parse(Arena *arena, Diag *diag, const Command *command, int argc,
                  char **argv, Options *out) {
    Lists lists = {0};
    /* before getopt, which puts arguments last */
    out->line = command_line(arena, command->name, argc, argv);
    if (!parse_all(arena, diag, command, argc, argv, &lists, out))
        return false;
    out->settings = lists.setting.at;
    out->pools = lists.pool.at;
    out->n_pools = lists.pool.n;
    out->n_settings = lists.setting.n;
    out->shapes = lists.shape.at;
    out->n_shapes = lists.shape.n;
    out->inputs = lists.input.at;
    out->n_inputs = lists.input.n;
    out->expects = lists.expect.at;
    out->n_expects = lists.expect.n;
    out->fixed = lists.fixed.at;
    out->n_fixed = lists.fixed.n;
    out->starts = lists.start.at;
    out->n_starts = lists.start.n;
    out->ends = lists.end.at;
    out->n_ends = lists.end.n;
    out->quantise.bits = lists.bits.at;
    out->quantise.n_bits = lists.bits.n;
    out->targets = lists.target.at;
    out->n_targets = lists.target.n;
    out->varies = lists.vary.at;
    out->n_varies = lists.vary.n;
    out->risings = lists.rising.at;
    out->n_risings = lists.rising.n;
    out->help_all = out->help && optind < argc && !strcmp(argv[optind], "all");
    if (out->help || out->print_passes)
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
