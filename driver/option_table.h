/* option_table.h - the options of all commands, as the parser needs them; and
 * lists of those that a command has. */
#ifndef DRIVER_OPTION_TABLE_H
#define DRIVER_OPTION_TABLE_H

#include "driver/options.h"

typedef enum OptionKind {
    OPTION_TEXT,
    OPTION_FLAG,
    OPTION_NUMBER,
    OPTION_COUNT,
    OPTION_BYTES,
    OPTION_WORD,
    OPTION_REAL,
    OPTION_TEXTS,
    OPTION_NAMES,
    OPTION_SETTINGS,
    OPTION_SHAPES,
    OPTION_FIXES,
    OPTION_STATES
} OptionKind;

/* A row of options.def. */
typedef struct Option {
    char letter;
    bool advanced;
    const char *name, *argument;
    OptionKind kind;
    const char *usual, *doc;
} Option;
extern const Option option_table[N_OPTIONS];

/* Types of the members that options are read into, by kind, and by option. */
typedef const char *OptionTEXT, *OptionWORD;
typedef bool OptionFLAG;
typedef uint64_t OptionNUMBER, OptionCOUNT, OptionBYTES;
typedef double OptionREAL;
typedef Texts OptionTEXTS, OptionNAMES;
typedef Settings OptionSETTINGS;
typedef Shapes OptionSHAPES;
typedef Fixes OptionFIXES;
typedef States OptionSTATES;
#define OPTION(id, letter, advanced, name, argument, kind, usual, doc)         \
    typedef Option##kind OptionOf_##id;
#include "driver/options.def"
#undef OPTION

/* The option `member` of a command, in the struct; does not compile where that
 * has no such member, or one of another type than the option's. */
#define OPTION_IN(is_own, type, member)                                        \
    {                                                                          \
        OPT_##member, is_own,                                                  \
            offsetof(type, member) +                                           \
                0 * sizeof(struct {                                            \
                    _Static_assert(_Generic(((type *)0)->member,               \
                                            OptionOf_##member : 1,             \
                                            default : 0),                      \
                                   "the option is of another type");           \
                    int unused;                                                \
                })                                                             \
    }
#define SHARED(member) OPTION_IN(false, Options, member)
#define OWN(type, member) OPTION_IN(true, type, member)

/* The option of the command; NULL: it has none such. */
const OptionAt *option_of(const Command *command, OptionId id);

#endif
