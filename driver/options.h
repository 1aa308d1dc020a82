/* options.h - the command line as data: one table of options (options.def),
 * used by every command's parser, --help, manual pages and completions. */
#ifndef DRIVER_OPTIONS_H
#define DRIVER_OPTIONS_H

#include "base/plain.h"
#include "base/vec.h"
#include "frontends/frontend.h"
#include "hwspec/hwspec.h"

#include <stddef.h>
#include <stdio.h>

typedef enum ExitCode {
    EXIT_FINE = 0,
    EXIT_BAD_INPUT = 1,
    EXIT_BAD_USAGE = 2,
    EXIT_NO_FIT = 3,
    EXIT_OUR_BUG = 70
} ExitCode;

/* Told how far a search for a plan is, 0..1, and the cycles of the best plan,
 * 0: none fits yet. Not 0: it shall end. */
typedef int OptionsWatch(void *context, double share, uint64_t cycles);

typedef VEC(const char *) Texts;
typedef VEC(HwSetting) Settings;
typedef VEC(ShapeSetting) Shapes;
typedef VEC(FixSetting) Fixes;
typedef VEC(StateSetting) States;

/* Of all commands: what networks and machines are read, and how they are
 * planned. What just one command, or two, read is in a struct of their own,
 * below; options.def says what each is. */
typedef struct Options {
    OptionsWatch *watch; /* of a program that uses the library; or NULL */
    void *watcher;       /* its context */
    const char **said;   /* what --json prints goes there; NULL: to stdout */
    const char *line;    /* the whole command, as a shell reads it */
    const char *file;    /* the command's argument, the first of: */
    uint32_t n_files;
    const char *const *files;
    const char *target; /* the last of: */
    Texts targets;
    const char *out, *dump, *emit;
    bool json, progress, rules, help, help_all;
    /* the machine */
    Settings settings;
    /* the network */
    const char *weights, *phase;
    uint64_t batch, seed;
    Shapes shapes;
    Fixes fixed;
    States states;
    uint64_t calls; /* one behind the other; 0: one */
    Texts starts, ends, inputs;
    /* the plan */
    const char *order; /* NULL: the default */
    const char *side;  /* NULL: one layer a step */
    const char *objective, *planner, *replication, *mode;
    double recompute; /* 0: not said */
    uint64_t effort, budget;
    uint64_t images; /* one behind the other; 0: one */
    bool front;      /* all plans that no other beats are wanted */
    const void *own; /* the command's own: a struct of these */
} Options;

typedef struct CompileArgs {
    const char *io; /* NULL: as the hwspec says */
    const char *report, *trace;
    uint64_t most_images; /* 0: one */
    bool what_if, explain, materialise, print_passes;
} CompileArgs;

typedef struct SimulateArgs {
    const char *report, *trace, *accesses;
    const char *host; /* NULL: native where there is LLVM */
    bool memory_only, lax;
} SimulateArgs;

typedef struct VerifyArgs {
    const char *host; /* as of simulate */
    Texts expects;
    double tolerance;
} VerifyArgs;

typedef struct EvalArgs {
    Texts expects;
    double tolerance;
    bool native;
} EvalArgs;

typedef struct ShowArgs {
    const char *svg;
    bool orders;
} ShowArgs;

typedef struct QuantiseArgs {
    const char *calibrate, *quantizer, *test, *labels, *report;
    const char *method, *scales, *per, *zeros, *type, *rounding, *repair;
    const char *mean, *scale, *layout, *color, *resize, *raw_type;
    double percentile;
    uint64_t keep, jobs;
    Texts bits;
} QuantiseArgs;

typedef struct ExploreArgs {
    Settings varies;
    Texts risings;
    const char *goal, *minimise, *maximise;
    const char *submit, *hosts, *resume, *shard, *reports;
    uint64_t most_points; /* 0: all */
    uint64_t shards;      /* 0: 16 */
    uint64_t jobs;        /* 0: one a core */
    bool merge;
} ExploreArgs;

typedef struct PackArgs {
    const char *svg;
    Settings pools;
    uint64_t capacity; /* 0: none */
    double seconds;    /* 0: no end */
} PackArgs;

typedef struct CheckArgs {
    bool unread, explain;
} CheckArgs;

typedef struct AsmArgs {
    bool place, raw;
} AsmArgs;

/* Every option there is, by the member that it is read into. */
typedef enum OptionId {
#define OPTION(id, letter, advanced, name, argument, kind, usual, doc) OPT_##id,
#include "driver/options.def"
#undef OPTION
    N_OPTIONS
} OptionId;

/* An option that a command has, and where it is read into: its own struct, or
 * Options. */
typedef struct OptionAt {
    OptionId id;
    bool own;
    size_t at;
} OptionAt;

typedef struct Command {
    const char *name;
    const char *argument; /* "NET"; NULL: none; "NET..." may be several */
    uint32_t n_options;
    const OptionAt *option;
    size_t own_size; /* of the struct that Options.own is */
    ExitCode (*run)(Arena *arena, Diag *diag, const Options *options);
    const char *doc;      /* its first line is a sentence of its own */
    const char *details;  /* more for --help */
    const char *examples; /* arguments, a line each */
} Command;

/* command_table.c */
extern const Command commands[];
extern const uint32_t n_commands;
/* NULL: there is none. */
const Command *command_find(const char *name);

/* What holds where nothing is given: of all commands, and of one its own. */
Options options_default(void);
const void *options_own(Arena *arena, const Command *command);

/* Parses argv[1..] of a command. A usage error is reported and gives false.
 * --help is reported in options->help. What is not said stays as it is in
 * `out`. */
bool options_parse(Arena *arena, Diag *diag, const Command *command, int argc,
                   char **argv, Options *out);

/* command_line.c: a word as a shell reads it, behind a space where it is not
 * the first; and all of argv[1..] behind `amphora NAME`. */
void command_word(Text *to, const char *word);
const char *command_line(Arena *arena, const char *name, int argc, char **argv);

/* Is the network compiled into a bundle, or to see one's buffers? */
bool options_bundle(const Options *options);

/* With options that few need where `all`. */
void options_help(const Command *command, bool all, FILE *to);

/* What --help, manual pages and completions are made of: the i-th option that
 * the command has; false behind the last. */
typedef struct OptionInfo {
    char letter;                 /* short form; 0: none */
    const char *name, *argument; /* argument NULL: a flag */
    const char *doc;
    bool advanced, is_file, is_target;
} OptionInfo;
bool options_info(const Command *command, uint32_t i, OptionInfo *out);

#endif
