/* format.h - rows, words, sections and containers as they are interpreted; the
 * inside of program.h.
 *
 * A file is a row of items; a node of it is a row of items, too. An item is
 * bits with expressions in them, zero bytes, or other items: repeated, under a
 * condition, with a name. One tree serves both ways: to write, each expression
 * is evaluated; to read, each says how (`FieldHow`), which is found once, when
 * the hwspec is loaded (plan.c):
 *
 *   read     the one meaning in it that is not known yet becomes known
 *   table    so do the meanings of the table's line
 *   check    all meanings are known: the value is computed and compared
 *
 * A field whose meanings come later in its row is `late`: it is looked at when
 * they are there.
 */
#ifndef HWSPEC_FORMAT_FORMAT_H
#define HWSPEC_FORMAT_FORMAT_H

#include "base/yaml.h"
#include "hwspec/expr/expr.h"
#include "hwspec/program.h"

typedef struct FormatLine {
    int64_t is;
    uint32_t n;
    const uint32_t *name; /* of meanings... */
    const int64_t *num;   /* ... and what they are then */
} FormatLine;

/* A value, and the meanings that it stands for. */
typedef struct FormatTable {
    const char *name;
    Loc loc;
    uint32_t n;
    const FormatLine *line;
} FormatTable;

typedef enum FieldHow { FIELD_CHECK, FIELD_READ, FIELD_TABLE } FieldHow;

#define NOT_LATE UINT32_MAX

typedef struct Field {
    const Expr *value;        /* or: */
    const FormatTable *table; /* one of both */
    const char *label;        /* for messages: "para_size", "w5.15..31" */
    Loc loc;
    uint32_t part, lo, width;
    bool is_signed, is_constant;
    FieldHow how;
    uint32_t name; /* FIELD_READ */
    uint32_t late; /* its number among the row's late fields, or NOT_LATE */
} Field;

typedef struct Part {
    const char *name; /* of a word; NULL: a number by itself */
    uint32_t width;   /* bits; it takes whole bytes */
    uint64_t named;   /* bits that a field has; the others are 0 */
} Part;

typedef enum ItemKind {
    ITEM_BITS,  /* parts, with fields in them */
    ITEM_FILL,  /* zero bytes: `count`, or up to a multiple of it */
    ITEM_EACH,  /* items for all values of indices */
    ITEM_WHEN,  /* items where a condition holds */
    ITEM_NAMED, /* items that at(NAME) and size(NAME) tell of */
    ITEM_NODES, /* items for each node */
    ITEM_BODY   /* the node's row */
} ItemKind;

typedef struct Item Item;
struct Item {
    ItemKind kind;
    Loc loc;
    uint32_t n_parts, n_fields;
    Part *part;
    Field *field;
    uint32_t state; /* BITS: a word that stays in force, by number; or NONE */
    const Expr *count; /* FILL; WHEN: the condition */
    bool to_multiple;  /* FILL */
    uint32_t gap;      /* FILL: the meaning that says how many; or EXPR_NONE */
    uint32_t n_indices;
    const uint32_t *index; /* EACH */
    const Expr *const *extent;
    bool is_plain; /* EACH: bytes of a vector in its own order */
    const char *name;
    uint32_t at, size; /* NAMED: labels */
    uint32_t n;
    Item *item;
};

/* What a meaning is where nobody says; `always`: and nothing else. */
typedef struct FormatRule {
    uint32_t name;
    const Expr *value;
    Loc loc;
    bool always;
} FormatRule;

/* What a node costs: the sum of its prices, at least `floor`. */
typedef struct FormatPrice {
    const Expr *quantity;
    double seconds; /* of one */
} FormatPrice;
typedef struct FormatTime {
    uint32_t n;
    const FormatPrice *price;
    double floor;
} FormatTime;

/* A late field, in the order in which they are looked at. */
typedef struct Late {
    const Field *field;
    uint32_t after; /* the row's item behind which; n: at its end */
} Late;

/* Cells that a node touches: `count` pieces of `size`, `step` apart; NULL: 1.
 */
typedef struct FormatTouch {
    const Expr *at, *size, *count, *step;
    bool writes;
} FormatTouch;

struct ProgRow {
    const char *name;
    Loc loc;
    bool has_number;
    int64_t number;    /* `node`: in the table of nodes */
    const Expr *holds; /* what it says stays so until the next one with the
                        * same number; NULL: it does not */
    const char *const *ops;
    FormatTime time; /* n = 0: the engine's */
    uint32_t queue;  /* of `issue`; EXPR_NONE: there are none */
    uint32_t n_touches;
    const FormatTouch *touch;
    uint32_t n;
    Item *item;
    uint32_t n_meanings, n_vectors;
    const uint32_t *meaning, *vector; /* its names, as they come */
    uint32_t n_labels;
    const uint32_t *label; /* what the layout tells: at(X), size(X) */
    uint32_t n_gaps;
    const uint32_t *gap; /* meanings that it tells where nobody else does */
    uint32_t n_rules, n_requirements, n_late;
    FormatRule *rule;
    const Expr *const *requirement; /* conditions that hold */
    const Late *late;
    uint32_t n_tables;
    const FormatTable *const *table; /* that its fields use */
    ExprDomain *domain; /* by name: what its fields leave; lo > hi: all */
    uint32_t n_domains;
};

struct HwFormat {
    ExprNames *names;
    uint32_t n_tables, n_rows;
    const FormatTable *table;
    const FormatTime *engine_time; /* by engine */
    ProgRow *row;
    ProgRow file; /* the container */
    /* meanings that nodes have, of which the file's own items cannot be */
    uint32_t node, body_size, body_at, n_nodes, file_size;
    bool is_big; /* numbers have their highest byte first */
    uint32_t n_states;
    const YamlNode **state; /* words that stay in force */
    bool may_lack; /* zero bytes at the end may be missing: `lacks` counts */
    uint32_t lacks;
    bool places, places_own; /* of `issue`: tokens are set, with the own bit */
    uint32_t n_queues; /* of `issue`; 0: files do not say what waits for what */
    const char *const *queue;
    uint32_t waits, tells;               /* meanings: masks of queues */
    const struct HwTemplates *templates; /* or NULL */
    const struct HwEmit *emit;           /* or NULL */
    uint32_t n_columns; /* of a text of numbers, one word a line; 0: none */
    const char *column; /* by column: d, x */
};

/* ---- plan.c ---- */

/* Finds how each field of the row is read back, and what its names can be.
 * `outer`: the container's row, NULL for it. */
void format_plan(Arena *arena, Diag *diag, HwFormat *format, ProgRow *row,
                 const ProgRow *outer);

/* ---- rules.c: what decoding and encoding share ---- */

/* An environment for all names of the format, in which only constants are. */
ExprEnv format_env(Arena *arena, const HwFormat *format);
/* Forgets the row's names. */
void format_forget(ExprEnv *env, const ProgRow *row);
/* Gives names that have no value what the row's rules say, as far as that can
 * be computed; with `always_only` those of `implies`. */
void format_imply(Arena *arena, ExprEnv *env, const ProgRow *row,
                  bool always_only);
/* Before something is written: what the row's tables and rules say of the rest.
 * Where only one line of a table agrees with what is known, it is that. */
void format_complete(Arena *arena, ExprEnv *env, const ProgRow *row);
/* Elements of a vector with extents; false if that has no value. */
bool format_count(const ExprEnv *env, uint32_t vector, uint64_t *out,
                  ExprFault *fault);
/* The line of the table whose meanings all have their values; NULL: none. */
const FormatLine *format_line(const ExprEnv *env, const FormatTable *table);
/* An error for each implied meaning that is something else, and for each
 * requirement that does not hold. */
void format_judge(Arena *arena, Diag *diag, Loc loc, const ExprEnv *env,
                  const ProgRow *row);
/* Could these bytes be the item's: do its constants agree? */
bool format_item_begins(const HwFormat *format, const Item *item,
                        const uint8_t *data, size_t len);
/* The same for a row, which may begin with words that stay in force and are
 * left out. */
bool format_begins(const HwFormat *format, const ProgRow *row,
                   const uint8_t *data, size_t len);
/* Bytes of a part. */
static inline uint32_t part_bytes(const Part *part) {
    return (part->width + 7) / 8;
}
static inline uint64_t low_bits(uint32_t n) {
    return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}
static inline uint64_t load_bits(const HwFormat *format, const uint8_t *at,
                                 uint32_t bytes) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[format->is_big ? bytes - 1 - i : i] << 8 * i;
    return value;
}

/* ---- read_items.c ---- */

struct TplType;
typedef struct ItemReader {
    Arena *arena;
    Diag *diag;
    HwFormat *format;
    YamlNode *root; /* of which words, sections and records are read */
    ExprPlace place;
    bool in_container, in_nodes;
    uint32_t depth;
    VEC(const YamlNode *) states;
    VEC(const YamlNode *) broken; /* of those: what is wrong was told */
} ItemReader;

/* The list of items under `node`. */
void format_read_items(ItemReader *r, YamlNode *node, uint32_t *n, Item **out);
/* An expression; NULL after an error. */
const Expr *format_read_expr(ItemReader *r, YamlNode *node);
/* The type of numbers in a memory, under `type`. */
void format_read_type(ItemReader *r, YamlNode *map, struct TplType *out);
/* A type: u8, s24, flag, f32, 1..64, [1, 3]. */
bool format_read_domain(Arena *arena, Diag *diag, YamlNode *node,
                        ExprName *name);
/* price.c: of a row, and of all engines. */
void format_read_prices(ItemReader *r, YamlNode *map, FormatTime *out);
void format_read_engine_prices(ItemReader *r, const HwSpec *spec);
/* issue.c: of the machine, before its rows; and of a row. */
void format_read_issue(ItemReader *r, YamlNode *map);
void format_read_touches(ItemReader *r, YamlNode *map, ProgRow *row);
/* columns.c: `columns` of the container; a text's numbers, and the text. */
void format_read_columns(ItemReader *r, YamlNode *list);
bool format_from_columns(Arena *arena, Diag *diag, const HwFormat *format,
                         const char *file, const uint8_t **data, size_t *len);
void format_to_columns(Arena *arena, const HwFormat *format,
                       const uint8_t **data, size_t *len);
/* template.c: `templates`, and what rows do. */
void format_read_templates(ItemReader *r, const HwSpec *spec);
/* emit.c: `emit`; its templates are `first` and on, two a way. */
void format_read_emit(ItemReader *r, const HwSpec *spec, const YamlNode *map,
                      uint32_t first);
/* lay.c: adds names for how operands lie. */
void format_lay_names(ItemReader *r, const HwSpec *spec);
/* An error for each word, section and record that nothing uses. */
void format_check_shared(ItemReader *r);

#endif
