/* insn.h - the one interpreter of instruction rows: print, parse, encode,
 * decode. Everything that knows a mnemonic or the order of fields is a row of
 * the hwspec.
 *
 * A row serves one abstract operation, or several that its fields tell apart.
 * It has one or more *forms*: the first is the one that is written; the others
 * are older texts that are read, and printed back as they were. A form is a
 * list of tokens: the id, the mnemonic, field names, literal numbers. Fields of
 * an instruction are kept by the position of their token in its form. What an
 * older form leaves unsaid (padding of half the kernel) it *implies*.
 *
 * In text a name is one word: white space, a `#` in front, a `%` that could be
 * mistaken are written as %20, %23, %25, and an empty name as %.
 */
#ifndef HWSPEC_INSN_H
#define HWSPEC_INSN_H

#include "hwspec/hwspec.h"

typedef enum HwField {
#define HW_FIELD(NAME, text, kind, doc) HW_F_##NAME,
#define HW_OPERAND(NAME, text, kind, doc)                                      \
    HW_F_IN_##NAME, HW_F_IN2_##NAME, HW_F_OUT_##NAME,
#include "hwspec/fields.def"
#undef HW_FIELD
#undef HW_OPERAND
    HW_F_COUNT,
    HW_F_CONST = HW_F_COUNT, /* a constant: meaning unknown or fixed */
    HW_F_MNEMONIC            /* the token that names the operation */
} HwField;

extern const char *const hw_field_name[HW_F_COUNT + 1];
typedef enum HwFieldKind { HW_NUM, HW_FLAG, HW_STR } HwFieldKind;
HwFieldKind hw_field_kind(HwField field);

/* One operand's fields: HW_F_IN_ADDR + operand etc. */
#define HW_FIELD_OF(operand, NAME) ((HwField)(HW_F_IN_##NAME + (operand)))

typedef struct HwToken {
    const char *name; /* key in JSON; NULL for a literal */
    HwField from;     /* what is written... */
    HwField also;     /* ... or, where that is not given, this; what is read
                       * means both. HW_F_CONST: no second meaning */
    bool hex;         /* printed 0x%x */
    bool gap;         /* one more space behind it */
    bool is_string;
    bool unread;      /* of no effect, whatever it says */
    bool free;        /* taken as it stands, though it follows from others */
    bool later;       /* a placeholder: others put numbers there, in all
                       * instructions of a listing */
    int64_t constant; /* HW_F_CONST: value that is written */
    const char *constant_text;
    uint32_t unit; /* listing value = value / unit ... */
    int64_t bias;  /* ... + bias. */
} HwToken;

/* field = num, or num[of] / over where `of` is not HW_F_CONST. */
typedef struct HwImplied {
    HwField field, of;
    int64_t over, num;
} HwImplied;

typedef struct HwForm {
    uint32_t n;
    HwToken *token;
    uint32_t mnemonic; /* which token */
    uint32_t n_implied;
    const HwImplied *implied;
} HwForm;

/* The token that has this value when a row is told to be this operation. */
typedef struct HwWhen {
    const char *token;
    int64_t num;
    const char *str; /* strings only */
    Loc loc;
} HwWhen;

typedef struct HwServe {
    HwOp op;
    uint32_t n;
    const HwWhen *when; /* all of them hold */
} HwServe;

/* Where a token goes in the binary word(s). */
typedef struct HwBits {
    const char *name;  /* token's name; NULL: the constant `is` */
    const char *label; /* what `field` says, for messages; or NULL */
    uint32_t token;    /* index in form 0 */
    uint32_t word, at, width;
    uint64_t unit; /* bits = (listing value) / unit - bias */
    int64_t bias;
    uint64_t is;
    bool is_signed, is_auto; /* as wide as the machine asks for */
    Loc loc;
} HwBits;

typedef struct HwRow {
    const char *mnemonic;
    Loc loc;
    HwOp op; /* the first it serves */
    uint32_t n_serves;
    const HwServe *serve;
    bool comment; /* written behind "# ": moves no data, or the host's */
    uint32_t n_forms;
    const HwForm *form;
    uint32_t n_bits, words;
    const HwBits *bits;
} HwRow;

struct HwInsnSet {
    uint32_t n;
    const HwRow *row;
    uint32_t word_bits; /* of `bits`; 0: no binary encoding is given */
    bool tells_parts;   /* all operands of engines and moves say of what volume
                         * they are a part, and from which channel on */
    bool tells_columns; /* loads and stores say which columns they move */
    bool tells_sums;    /* where sums lie in their memory */
    uint64_t tells_taps; /* bits of operations that go on with sums: of which
                          * taps of a kernel weights are */
};

typedef struct HwValue {
    int64_t num;
    const char *str; /* strings only; in the arena that made the instruction */
} HwValue;

typedef struct HwInsn {
    uint16_t row, form;
    const HwValue *value; /* one per token of the form, as in the listing */
    const char *comment;  /* behind the instruction, without "# "; or NULL */
    Loc loc;              /* place in the listing that was read */
} HwInsn;

/* The token with this name (or: with this meaning), -1: none. */
int32_t insn_token(const HwForm *form, const char *name);
int32_t insn_token_of(const HwForm *form, HwField field);

/* The row that is written for `op`, the first in the file: -1 if none. */
int32_t insn_row(const HwSpec *spec, HwOp op);
/* Whether rows tell all places where memories have other sizes than the file:
 * addresses are not those of others, and have room in their bits. */
bool insn_rows_hold(Arena *arena, const HwSpec *spec);

/* The operation that an instruction is: of those its row serves, the first
 * whose conditions all hold (tokens that its form lacks hold); the row's first
 * if none does, which insn_parse has refused. */
HwOp insn_op(const HwSpec *spec, const HwInsn *insn);
/* Whether the machine is given it: neither a layer of the host nor a note about
 * members of a concat. */
bool insn_is_issued(const HwSpec *spec, const HwInsn *insn);
/* As insn_op; false if no operation's conditions hold. */
bool insn_find_op(const HwSpec *spec, const HwInsn *insn, HwOp *out);

/* Values by meaning, for building: set[f] says that value[f] is given. Where a
 * row serves several operations, `op` says which (insn_fields sets it). */
typedef struct HwFields {
    bool has_op;
    HwOp op;
    bool set[HW_F_COUNT];
    int64_t num[HW_F_COUNT];
    const char *str[HW_F_COUNT];
} HwFields;

/* Builds an instruction of row `row`, form 0. A token whose meaning was not
 * given is 0 (or "0" for strings). A value that is no multiple of its token's
 * unit is cut: insn_fields of the result then differs from what was given. */
HwInsn insn_build(Arena *arena, const HwSpec *spec, uint32_t row,
                  const HwFields *fields, const char *comment);

/* What the token says of a field that has this value; the token is neither a
 * constant nor the mnemonic. */
int64_t insn_token_value(const HwToken *token, int64_t field);

/* What a token says of a field of something that the operation does not have,
 * such as the kernel of a sum. */
typedef enum HwAbsent {
    HW_PRESENT, /* the operation has it */
    HW_NEUTRAL, /* `value`: a kernel of 1 */
    HW_UNSET    /* the token is 0, or "0" */
} HwAbsent;
HwAbsent insn_absent(HwOp op, HwField field, int64_t *value);

/* Whether the operation alone decides what a number says, as `add` is 1 of
 * sums. */
bool insn_decided(HwOp op, HwField field, int64_t *value);
/* The second operand is there for these: add, mul, max, and those whose second
 * operand is one number by channel. */
bool insn_is_binary(HwOp op);
bool insn_by_channel(HwOp op);
/* Rows and columns of the second operand are not those of the first. */
bool insn_own_plane(HwOp op);

/* The limit of engines that holds for the field; false: none does. */
bool insn_limit(HwField field, HwLimitKind *out);

/* Reads an instruction back by meaning (constants are skipped, and numbers that
 * the row declares unread), with what its form implies. */
void insn_fields(const HwSpec *spec, const HwInsn *insn, HwFields *out);

/* One line without its newline. */
const char *insn_print(Arena *arena, const HwSpec *spec, const HwInsn *insn);

/* A number as in a listing or a row: decimal, or 0x and hexadecimal, perhaps
 * with a minus in front; the whole text, 64 bits. */
bool insn_number(const char *text, int64_t *out);

/* One token as it is printed: "0x1880", "56", "conv1/7x7_s2". */
const char *insn_token_text(Arena *arena, const HwRow *row,
                            const HwToken *token, const HwValue *value);

/* The `# template ...` line of a row's first form. */
const char *insn_template(Arena *arena, const HwSpec *spec, uint32_t row);

typedef enum InsnParse { INSN_OK, INSN_NOTHING, INSN_ERROR } InsnParse;

/* Parses one line. INSN_NOTHING: blank, or a comment that is no commented
 * instruction (`# NUMBER MNEMONIC ...` of a `comment: true` row is one). Errors
 * (unknown mnemonic, wrong number of tokens, not a number, no operation of the
 * row) are reported at `loc` with the column of the token. */
InsnParse insn_parse(Arena *arena, Diag *diag, const HwSpec *spec,
                     const char *line, size_t len, Loc loc, HwInsn *out);

/* Encodes into `words` (row->words of them); false, with an error at `loc`, if
 * a value does not fit its bits. Rows without `bits` have none to encode; only
 * form 0 can be encoded. */
bool insn_encode(Diag *diag, const HwSpec *spec, const HwInsn *insn,
                 uint64_t *words, Loc loc);
/* Decodes; tokens that no bits carry are 0 (strings: "", constants: their
 * value). The row is found by
 * its constant bits. Returns the words used, 0 with an error if none fits. */
uint32_t insn_decode(Arena *arena, Diag *diag, const HwSpec *spec,
                     const uint64_t *words, uint32_t n, Loc loc, HwInsn *out);

/* Where an operand lies: memory index (spec->memory) and byte offset in it.
 * `op` tells the roles of a load's or store's operands. Works for every way a
 * row has to say it: memory id, buffer and offset, address and base, backing
 * and io flags. False if the fields name no memory. The offset may lie outside
 * the memory: that is for the caller to judge. Of several active memories the
 * address tells which, so there it lies inside. */
bool insn_operand(const HwSpec *spec, HwOp op, const HwFields *fields,
                  HwOperand operand, uint32_t *memory, uint64_t *offset);

/* The mirror, for building: sets ADDR, MEMORY, BUFFER, OFFSET, BACKING, IO. A
 * memory without fixed buffers is buffer 0 with its address as the offset. */
void insn_set_operand(const HwSpec *spec, HwFields *fields, HwOperand operand,
                      uint32_t memory, uint64_t offset);

/* Units that work by themselves: engines by index, then loads (of weights,
 * too), stores, the host. */
static inline uint32_t insn_unit_of_loads(const HwSpec *spec) {
    return spec->n_engines;
}
static inline uint32_t insn_unit_of_stores(const HwSpec *spec) {
    return spec->n_engines + 1;
}
static inline uint32_t insn_unit_of_host(const HwSpec *spec) {
    return spec->n_engines + 2;
}
/* ... and then the units of `dma`, where there are any. */
static inline uint32_t insn_unit_of_dma(const HwSpec *spec, uint32_t dma) {
    return spec->n_engines + 3 + dma;
}
enum { HW_MAX_UNITS = HW_MAX_ENGINES + 3 + HW_MAX_DMAS };
/* All of them but the host, as bits. */
static inline uint64_t insn_units(const HwSpec *spec) {
    return (UINT64_C(4) << spec->n_engines) - 1;
}

bool hw_field_is_wait(HwField field);
/* Whether a field wait.* is for something that the machine has. */
bool insn_wait_stands(const HwSpec *spec, HwField field);
/* Units, as bits, that must be idle before the instruction starts. What no
 * field names is waited for. False if the fields hold none of wait.*: steps
 * then tell. */
bool insn_waits(const HwSpec *spec, const HwFields *fields, uint64_t *units);
void insn_set_waits(const HwSpec *spec, HwFields *fields, uint64_t units);

/* Bytes of an instruction's name in front of the number of a tile, "#12"; all
 * of them where it has none. */
size_t insn_tile_mark(const char *name);

/* Whether line buffers may be as wide as some columns of a tensor: transfers
 * tell where in the buffer the columns lie that they move, and how wide it is.
 */
bool insn_by_strips(const HwSpec *spec);

#endif
