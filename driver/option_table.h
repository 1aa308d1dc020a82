/* option_table.h - the options of all commands, as the parser needs them. */
#ifndef DRIVER_OPTION_TABLE_H
#define DRIVER_OPTION_TABLE_H

#include "driver/options.h"

typedef enum OptionKind {
    OPTION_TEXT,
    OPTION_FLAG,
    OPTION_NUMBER,
    OPTION_COUNT, /* a number of at least 1 */
    OPTION_BYTES,
    OPTION_WORD, /* one of those that `argument` lists with | between */
    OPTION_REAL,
    OPTION_TARGET,
    OPTION_SETTING,
    OPTION_POOL,
    OPTION_VARY,
    OPTION_RISING,
    OPTION_SHAPE,
    OPTION_FIX,
    OPTION_STARTS,
    OPTION_ENDS,
    OPTION_INPUT,
    OPTION_EXPECT,
    OPTION_BITS
} OptionKind;

typedef struct Option {
    char letter;   /* short form; 0: none */
    bool advanced; /* few need it; `--help all` has it */
    const char *name, *argument;
    OptionKind kind;
    size_t at;
    const char *doc;
} Option;

/* More than there are. */
enum { MOST_OPTIONS = 256 };
extern const Option option_table[];
extern const int n_options;

/* Has the command the option? */
bool option_accepted(const Command *command, const Option *option);

#endif
