/* options.h - the command line as data: one table of options, used by every
 * command's parser and --help. */
#ifndef DRIVER_OPTIONS_H
#define DRIVER_OPTIONS_H

#include "base/plain.h"
#include "frontends/frontend.h"
#include "hwspec/hwspec.h"

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

typedef struct Options {
    OptionsWatch *watch;   /* of a program that uses the library; or NULL */
    void *watcher;         /* its context */
    const char **said;     /* what --json prints goes there; NULL: to stdout */
    const char *line;      /* the whole command, as a shell reads it */
    const char *file;      /* the command's argument */
    const char *target;    /* -t */
    const char *out;       /* -o */
    const char *weights;   /* --weights */
    const char *phase;     /* --phase */
    const char *order;     /* --order; NULL: the default */
    const char *side;      /* --side-by-side; NULL: one layer a step */
    const char *objective; /* --objective */
    uint64_t effort;       /* --effort */
    const char *svg;       /* --svg */
    const char *planner;   /* --planner */
    const char *replication; /* --replication */
    const char *mode;        /* --mode */
    const char *dump;        /* --dump */
    const char *emit;        /* --emit */
    const char *host;        /* --host; NULL: native where there is LLVM */
    const char *io;          /* --io; NULL: as the hwspec says */
    uint64_t most_images;    /* --most-images; 0: one */
    uint64_t images;         /* --images, one behind the other; 0: one */
    const char *resume;      /* --resume */
    const char *shard;       /* --shard */
    const char *report;      /* --report */
    const char *trace;       /* --trace */
    const char *accesses;    /* --accesses */
    bool materialise;        /* --materialise */
    bool raw;                /* --raw */
    bool what_if;            /* --what-if */
    const char *reports;     /* --reports */
    uint64_t jobs;           /* --jobs; 0: one a core */
    bool merge;              /* --merge */
    /* explore: all arguments, all -t, --vary */
    uint32_t n_files, n_targets, n_varies;
    const char *const *files;
    const char **targets;
    HwSetting *varies;
    const char *goal, *minimise, *maximise; /* of explore */
    uint32_t n_risings;
    const char *const *risings; /* --rising */
    uint64_t most_points;       /* --most-points; 0: all */
    const char *submit, *hosts; /* --submit, --hosts */
    uint64_t shards;            /* --shards; 0: 16 */
    uint32_t n_pools;
    const HwSetting *pools; /* --pool */
    uint64_t seed;          /* --seed */
    uint64_t batch;         /* --batch */
    uint64_t budget;        /* --budget */
    double seconds;         /* --seconds; 0: no end */
    uint64_t capacity;      /* --capacity; 0: none */
    double tolerance;       /* --tolerance */
    bool rules;             /* --log-rules */
    bool orders;            /* --orders */
    bool front;             /* --front */
    bool progress;          /* --progress */
    bool explain;           /* --explain */
    bool json, print_passes, memory_only, help;
    bool help_all;             /* --help all */
    bool lax;                  /* --lax */
    bool unread;               /* --unread */
    bool native;               /* --native */
    bool place;                /* --place */
    struct {                   /* of quantise */
        const char *calibrate; /* --calibrate */
        const char *quantizer; /* --quantizer */
        const char *test;      /* --test */
        const char *labels;    /* --labels, of --test, else of --calibrate */
        const char *method, *scales, *per, *zeros, *type, *rounding;
        const char *repair;                        /* --repair */
        double percentile;                         /* --percentile */
        uint64_t keep;                             /* --keep */
        const char *mean, *scale, *layout, *color; /* of samples */
        const char *resize, *raw;
        uint32_t n_bits;
        const char *const *bits; /* --bits */
    } quantise;
    uint32_t n_settings, n_shapes, n_inputs, n_expects, n_fixed;
    HwSetting *settings;  /* --set */
    ShapeSetting *shapes; /* --shape */
    const char **inputs;  /* --input */
    const char **expects; /* --expect */
    FixSetting *fixed;    /* --fix */
    uint32_t n_starts, n_ends;
    const char **starts, **ends; /* --inputs, --outputs */
} Options;

typedef struct Command {
    const char *name;
    const char *argument; /* "NET"; NULL: none; "NET..." may be several */
    const char *accepts;  /* names of the option table */
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

/* What holds where nothing is given. */
Options options_default(void);

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
