/* decode.c - bytes -> Program.
 *
 * Input: a file, the container's items. Output: the meanings and vectors of the
 * file and of each node. Invariants: nothing is allocated that the bytes which
 * are left could not fill; every byte and bit is a field, a checked constant,
 * or a checked zero; a node that is wrong does not hide what is wrong in others
 * where the file says how long it is.
 */
#include "hwspec/format/format.h"

#include <string.h>

enum { MAX_ERRORS = 40, MAX_NODES = 1 << 18 };

/* Elements of a vector that is being read. */
typedef struct Filling {
    uint64_t cap;
    uint8_t *byte;
    int64_t *num;
} Filling;

typedef struct Raw {
    bool seen;
    uint64_t bits;
    size_t at;
} Raw;

typedef struct NodeMark {
    bool has_number, has_size;
    int64_t number, size;
} NodeMark;

typedef struct Decoder {
    Arena *arena;
    Diag *diag;
    const HwFormat *format;
    const char *file;
    const uint8_t *data;
    size_t len, at, end; /* end: of what is being read */
    size_t lacks;        /* zero bytes that may be missing behind `len` */
    ExprEnv env;
    Filling *filling; /* by name */
    const ProgRow *row;
    Raw *raw;      /* late fields of the row */
    size_t *state; /* by word that stays in force: 1 + where, 0: not yet */
    bool *natural; /* by name: a gap that alignment alone explains */
    Program *program;
    NodeMark *mark;
    uint32_t node; /* that is being read */
    bool failed;   /* what is being read cannot go on */
} Decoder;

static Loc place(const Decoder *d, size_t at) {
    return (Loc){.file = d->file, .col = (uint32_t)at};
}

#define FAIL(d, at, ...)                                                       \
    do {                                                                       \
        diag_error((d)->diag, place((d), (at)), __VA_ARGS__);                  \
        (d)->failed = true;                                                    \
    } while (0)

static const char *name_of(const Decoder *d, uint32_t name) {
    return d->format->names->list.at[name].name;
}

static const char *text_of(const Decoder *d, const Expr *e, bool values) {
    return expr_text(d->arena, d->format->names, e, values ? &d->env : NULL);
}

/* Are so many bytes left? */
static bool has_bytes(Decoder *d, uint64_t n, const char *what) {
    size_t left = d->end - d->at;
    if (n <= left && d->at + n <= d->len)
        return true;
    if (d->at + n > d->len)
        FAIL(d, d->at, "%s takes %llu bytes, the file ends after %zu", what,
             (unsigned long long)n, d->len - (d->at < d->len ? d->at : d->len));
    else
        FAIL(d, d->at, "%s takes %llu bytes, of %s %zu are left", what,
             (unsigned long long)n, d->row->name, left);
    return false;
}

static bool eval(Decoder *d, const Expr *e, int64_t *out) {
    ExprFault fault;
    if (expr_eval(&d->env, e, out, &fault))
        return true;
    if (!d->failed || fault.kind != EXPR_UNSET) /* else that was told */
        FAIL(d, d->at, "%s: %s", d->row->name,
             expr_fault_text(d->arena, &d->env, &fault));
    return false;
}

/* ---- values of fields ---- */

static int64_t value_of(const Field *field, uint64_t bits) {
    uint32_t spare = 64 - field->width;
    if (field->is_signed && spare && bits >> (field->width - 1))
        return (int64_t)(bits | ~low_bits(field->width));
    return (int64_t)bits;
}

static void tell_mismatch(Decoder *d, const Field *field, int64_t is,
                          int64_t wanted, size_t at) {
    const char *number = arena_printf(d->arena, "%lld", (long long)wanted);
    const char *values = text_of(d, field->value, true);
    bool plain = !strcmp(number, values);
    FAIL(d, at, "%s is %lld, %s%s%s expected%s%s", field->label, (long long)is,
         plain ? "" : values, plain ? "" : " = ", number,
         field->is_constant ? "" : ": ",
         field->is_constant ? "" : text_of(d, field->value, false));
}

static void check_field(Decoder *d, const Field *field, uint64_t bits,
                        size_t at) {
    int64_t wanted, is = value_of(field, bits);
    if (!eval(d, field->value, &wanted))
        return;
    if (((uint64_t)wanted & low_bits(field->width)) != bits)
        tell_mismatch(d, field, is, wanted, at);
    else if (wanted < 0 ? field->width < 64 &&
                              wanted < -1 - (int64_t)low_bits(field->width - 1)
                        : field->width < 64 && (uint64_t)wanted >> field->width)
        FAIL(d, at, "%s: %s is %lld, %u bits cannot hold it", field->label,
             text_of(d, field->value, false), (long long)wanted, field->width);
}

static void put_element(Decoder *d, const Field *field, const Expr *e,
                        int64_t value);

/* The element of a vector that a field tells. */
static const Expr *element_in(const Decoder *d, const Expr *e, uint32_t name) {
    if (e->kind == EXPR_ELEMENT && e->name == name)
        return e;
    if (e->kind == EXPR_NAME &&
        d->format->names->list.at[e->name].kind == EXPR_LET)
        return element_in(d, d->format->names->list.at[e->name].let, name);
    for (uint32_t i = 0; i < e->n; i++) {
        const Expr *found = element_in(d, e->arg[i], name);
        if (found)
            return found;
    }
    return NULL;
}

static void read_field(Decoder *d, const Field *field, uint64_t bits,
                       size_t at) {
    const ExprName *name = &d->format->names->list.at[field->name];
    const ExprDomain *domain = &d->row->domain[field->name];
    int64_t is = value_of(field, bits), value;
    ExprRange range;
    if (field->width == 64 && !field->is_signed && is < 0) {
        FAIL(d, at, "%s exceeds 63 bits", field->label);
        return;
    }
    if (!expr_invert(&d->env, field->value, field->name, is, &range) ||
        !expr_domain_only(domain, range, &value)) {
        FAIL(d, at, "%s is %lld: no %s of %s makes it so", field->label,
             (long long)is, name->name, expr_domain_text(d->arena, domain));
        return;
    }
    if (name->kind == EXPR_VECTOR) {
        put_element(d, field, element_in(d, field->value, field->name), value);
        return;
    }
    d->env.set[field->name] = true;
    d->env.num[field->name] = value;
    format_imply(d->arena, &d->env, d->row, true);
}

static void tell_line(Decoder *d, const Field *field, int64_t is, size_t at) {
    Text text = text_new(d->arena);
    for (uint32_t i = 0; i < field->table->n; i++)
        text_addf(&text, "%s%lld", i ? ", " : "",
                  (long long)field->table->line[i].is);
    FAIL(d, at, "%s is %lld: %s has %s", field->label, (long long)is,
         field->table->name, text_str(&text));
}

static void table_field(Decoder *d, const Field *field, uint64_t bits,
                        size_t at) {
    int64_t is = value_of(field, bits);
    const FormatLine *line = NULL;
    for (uint32_t i = 0; i < field->table->n; i++)
        if (field->table->line[i].is == is)
            line = &field->table->line[i];
    if (!line) {
        tell_line(d, field, is, at);
        return;
    }
    for (uint32_t i = 0; i < line->n; i++) {
        uint32_t name = line->name[i];
        if (d->env.set[name] && d->env.num[name] != line->num[i])
            FAIL(d, at, "%s is %lld, so %s is %lld; it is %lld", field->label,
                 (long long)is, name_of(d, name), (long long)line->num[i],
                 (long long)d->env.num[name]);
        d->env.set[name] = true;
        d->env.num[name] = line->num[i];
    }
    format_imply(d->arena, &d->env, d->row, true);
}

static void decode_field(Decoder *d, const Field *field, uint64_t bits,
                         size_t at) {
    if (field->table)
        table_field(d, field, bits, at);
    else if (field->how == FIELD_READ)
        read_field(d, field, bits, at);
    else
        check_field(d, field, bits, at);
}

static void decode_late(Decoder *d, uint32_t after) {
    for (uint32_t i = 0; i < d->row->n_late; i++)
        if (d->row->late[i].after == after && d->raw[i].seen)
            decode_field(d, d->row->late[i].field, d->raw[i].bits,
                         d->raw[i].at);
}

/* ---- vectors ---- */

/* A vector of `n` elements that the bytes which are left could hold. */
static bool reserve(Decoder *d, uint32_t name, uint64_t n) {
    const ExprName *of = &d->format->names->list.at[name];
    Filling *f = &d->filling[name];
    if (n / 8 > d->len || n > UINT32_MAX) {
        FAIL(d, d->at, "%s has %llu values, more than the file has bits",
             of->name, (unsigned long long)n);
        return false;
    }
    bool bytes = of->domain.range.lo >= 0 && of->domain.range.hi <= UINT8_MAX;
    Filling old = *f;
    uint32_t had = d->env.vector[name].n;
    *f = (Filling){.cap = n};
    if (bytes)
        f->byte = ARENA_ARRAY(d->arena, uint8_t, n + 1);
    else
        f->num = ARENA_ARRAY(d->arena, int64_t, n + 1);
    if (old.byte && had)
        memcpy(f->byte, old.byte, had);
    if (old.num && had)
        memcpy(f->num, old.num, had * sizeof *f->num);
    d->env.vector[name] =
        (ExprVector){.set = true, .n = had, .byte = f->byte, .num = f->num};
    return true;
}

/* Makes room for element `at`, of all of a vector with extents at once. */
static bool grow(Decoder *d, uint32_t name, uint64_t at) {
    const ExprName *of = &d->format->names->list.at[name];
    ExprFault fault;
    uint64_t n = at < 4 ? 8 : at * 2;
    if (!of->n_extents)
        return at < d->filling[name].cap || reserve(d, name, n);
    if (d->env.vector[name].set)
        return true;
    if (!format_count(&d->env, name, &n, &fault)) {
        FAIL(d, d->at, "%s: %s", of->name,
             expr_fault_text(d->arena, &d->env, &fault));
        return false;
    }
    if (!reserve(d, name, n))
        return false;
    d->env.vector[name].n = (uint32_t)n;
    return true;
}

static void put_element(Decoder *d, const Field *field, const Expr *e,
                        int64_t value) {
    uint64_t at;
    bool inside;
    ExprFault fault = {0};
    if (!expr_index(&d->env, e, &at, &inside, &fault)) {
        FAIL(d, d->at, "%s", expr_fault_text(d->arena, &d->env, &fault));
        return;
    }
    if (!inside) {
        if (value)
            FAIL(d, d->at, "%s is %lld outside of %s, 0 expected", field->label,
                 (long long)value, name_of(d, e->name));
        return;
    }
    if (!grow(d, e->name, at))
        return;
    ExprVector *v = &d->env.vector[e->name];
    Filling *f = &d->filling[e->name];
    if (at >= v->n)
        v->n = (uint32_t)at + 1;
    if (f->byte)
        f->byte[at] = (uint8_t)value;
    else
        f->num[at] = value;
}

/* ---- items ---- */

static void decode_items(Decoder *d, uint32_t n, const Item *item);

/* Which byte holds the bit of a part that starts there. */
static size_t byte_of(const Decoder *d, const Part *part, size_t start,
                      uint32_t bit) {
    return start +
           (d->format->is_big ? part_bytes(part) - 1 - bit / 8 : bit / 8);
}

static void check_unnamed(Decoder *d, const Part *part, uint64_t bits,
                          size_t at) {
    uint64_t wrong = bits & ~part->named;
    uint32_t first = 0;
    while (wrong && !(wrong >> first & 1))
        first++;
    if (wrong)
        FAIL(d, byte_of(d, part, at, first),
             "bits 0x%llx of %s, which no field has, are set",
             (unsigned long long)wrong, part->name ? part->name : "a number");
}

static void read_bits(Decoder *d, const Item *item) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < item->n_parts; i++)
        bytes += part_bytes(&item->part[i]);
    if (!has_bytes(d, bytes, item->n_fields ? item->field->label : "a word"))
        return;
    const uint8_t *at = d->data + d->at;
    uint64_t part[256];
    size_t start[256];
    for (uint32_t i = 0; i < item->n_parts; i++) {
        uint32_t n = part_bytes(&item->part[i]);
        part[i] = load_bits(d->format, at, n);
        start[i] = d->at;
        check_unnamed(d, &item->part[i], part[i], d->at);
        at += n;
        d->at += n;
    }
    for (uint32_t i = 0; i < item->n_fields; i++) {
        const Field *field = &item->field[i];
        uint64_t bits = part[field->part] >> field->lo & low_bits(field->width);
        size_t from =
            byte_of(d, &item->part[field->part], start[field->part], field->lo);
        if (field->late != NOT_LATE)
            d->raw[field->late] = (Raw){true, bits, from};
        else
            decode_field(d, field, bits, from);
    }
}

/* A word that stays in force is read again where it is left out. */
static void decode_bits(Decoder *d, const Item *item) {
    if (item->state == EXPR_NONE) {
        read_bits(d, item);
        return;
    }
    size_t *last = &d->state[item->state], at = d->at, end = d->end;
    if (at < d->len &&
        format_item_begins(d->format, item, d->data + at, d->len - at)) {
        *last = at + 1;
        read_bits(d, item);
        return;
    }
    if (!*last) {
        FAIL(d, at, "%s: no word before tells what `%s` would", d->row->name,
             item->name);
        return;
    }
    d->at = *last - 1;
    d->end = d->len;
    read_bits(d, item);
    d->at = at;
    d->end = end;
}

/* Zeros; at the end of the file some may be missing. */
static void decode_zeros(Decoder *d, uint64_t n) {
    size_t end = d->end;
    if (n > end - d->at) {
        FAIL(d, d->at, "%llu zero bytes, of %s %zu are left",
             (unsigned long long)n, d->row->name, end - d->at);
        return;
    }
    for (uint64_t i = 0; i < n && !d->failed; i++, d->at++)
        if (d->at < d->len && d->data[d->at])
            FAIL(d, d->at, "padding is 0x%02x, 0 expected", d->data[d->at]);
}

static void decode_fill(Decoder *d, const Item *item) {
    int64_t n;
    if (!eval(d, item->count, &n))
        return;
    if (n < (item->to_multiple ? 1 : 0)) {
        FAIL(d, d->at, "%s is %lld", text_of(d, item->count, false),
             (long long)n);
        return;
    }
    uint64_t to = (uint64_t)n;
    uint64_t bytes = item->to_multiple ? (to - d->at % to) % to : to;
    if (item->gap != EXPR_NONE) {
        bool told = d->env.set[item->gap];
        d->natural[item->gap] =
            !told || (uint64_t)d->env.num[item->gap] == bytes;
        if (told)
            bytes = (uint64_t)d->env.num[item->gap];
        d->env.set[item->gap] = true;
        d->env.num[item->gap] = (int64_t)bytes;
    }
    decode_zeros(d, bytes);
}

/* A vector's bytes in its own order: no need to look at each. */
static bool decode_plain(Decoder *d, const Item *each, uint64_t n) {
    if (!each->is_plain || each->item->field->how != FIELD_READ)
        return false;
    uint32_t name = each->item->field->name;
    const ExprName *of = &d->format->names->list.at[name];
    if (of->domain.n || of->domain.range.lo || of->domain.range.hi < 255)
        return false;
    for (uint32_t i = 0; i < of->n_extents; i++) {
        int64_t a, b;
        ExprFault fault;
        if (!expr_eval(&d->env, of->extent[i], &a, &fault) ||
            !expr_eval(&d->env, each->extent[i], &b, &fault) || a != b)
            return false;
    }
    if (d->filling[name].cap || !reserve(d, name, n))
        return false;
    memcpy(d->filling[name].byte, d->data + d->at, n);
    d->env.vector[name].n = (uint32_t)n;
    d->at += n;
    return true;
}

static void decode_loop(Decoder *d, const Item *each, uint32_t depth,
                        const int64_t *extent) {
    uint32_t index = each->index[depth];
    d->env.set[index] = true;
    for (int64_t i = 0; i < extent[depth] && !d->failed; i++) {
        d->env.num[index] = i;
        if (depth + 1 < each->n_indices)
            decode_loop(d, each, depth + 1, extent);
        else
            decode_items(d, each->n, each->item);
    }
    d->env.set[index] = false;
}

static void decode_each(Decoder *d, const Item *each) {
    int64_t extent[8];
    uint64_t n = 1;
    for (uint32_t i = 0; i < each->n_indices; i++) {
        if (!eval(d, each->extent[i], &extent[i]))
            return;
        extent[i] = extent[i] < 0 ? 0 : extent[i];
        if (__builtin_mul_overflow(n, (uint64_t)extent[i], &n))
            n = UINT64_MAX;
    }
    if (!has_bytes(d, n, text_of(d, each->extent[0], false)))
        return;
    if (n && !decode_plain(d, each, n))
        decode_loop(d, each, 0, extent);
}

static void check_label(Decoder *d, uint32_t name, uint64_t is) {
    if (name == EXPR_NONE)
        return;
    if (d->env.set[name] && (uint64_t)d->env.num[name] != is)
        FAIL(d, d->at, "%s was said to be %lld, it is %llu", name_of(d, name),
             (long long)d->env.num[name], (unsigned long long)is);
    d->env.set[name] = true;
    d->env.num[name] = (int64_t)is;
}

static void decode_named(Decoder *d, const Item *item) {
    size_t start = d->at;
    check_label(d, item->at, start);
    decode_items(d, item->n, item->item);
    if (!d->failed)
        check_label(d, item->size, d->at - start);
}

static void decode_nodes(Decoder *d, const Item *item);
static void decode_body(Decoder *d);

static void decode_item(Decoder *d, const Item *item) {
    int64_t holds;
    switch (item->kind) {
    case ITEM_BITS:
        decode_bits(d, item);
        break;
    case ITEM_FILL:
        decode_fill(d, item);
        break;
    case ITEM_EACH:
        decode_each(d, item);
        break;
    case ITEM_WHEN:
        if (eval(d, item->count, &holds) && holds)
            decode_items(d, item->n, item->item);
        break;
    case ITEM_NAMED:
        decode_named(d, item);
        break;
    case ITEM_NODES:
        decode_nodes(d, item);
        break;
    case ITEM_BODY:
        decode_body(d);
        break;
    }
}

static void decode_items(Decoder *d, uint32_t n, const Item *item) {
    for (uint32_t i = 0; i < n && !d->failed; i++)
        decode_item(d, &item[i]);
}

/* ---- rows ---- */

static void export_scope(Decoder *d, const ProgRow *row, ProgScope *out) {
    out->n_meanings = row->n_meanings;
    out->n_vectors = row->n_vectors;
    out->meaning = ARENA_ARRAY(d->arena, ProgMeaning, row->n_meanings + 1);
    out->vector = ARENA_ARRAY(d->arena, ProgVector, row->n_vectors + 1);
    for (uint32_t i = 0; i < row->n_meanings; i++) {
        uint32_t name = row->meaning[i];
        out->meaning[i] = (ProgMeaning){name_of(d, name),
                                        d->env.set[name] && !d->natural[name],
                                        d->env.num[name]};
    }
    for (uint32_t i = 0; i < row->n_vectors; i++) {
        const ExprVector *v = &d->env.vector[row->vector[i]];
        out->vector[i] = (ProgVector){name_of(d, row->vector[i]), v->set, v->n,
                                      v->byte, v->num};
    }
}

/* A vector of which no element was read is there nevertheless: empty. */
static void end_vectors(Decoder *d, const ProgRow *row) {
    for (uint32_t i = 0; i < row->n_vectors; i++)
        d->env.vector[row->vector[i]].set = true;
}

static void decode_row(Decoder *d, const ProgRow *row, ProgScope *out) {
    format_forget(&d->env, row);
    for (uint32_t i = 0; i < row->n_vectors; i++)
        d->filling[row->vector[i]] = (Filling){0};
    for (uint32_t i = 0; i < row->n_gaps; i++)
        d->natural[row->gap[i]] = false;
    const ProgRow *outer = d->row;
    Raw *outer_raw = d->raw;
    size_t start = d->at;
    d->row = row;
    d->raw = ARENA_ARRAY(d->arena, Raw, row->n_late + 1);
    format_imply(d->arena, &d->env, row, true);
    for (uint32_t i = 0; i < row->n && !d->failed; i++) {
        decode_item(d, &row->item[i]);
        if (!d->failed)
            decode_late(d, i);
    }
    if (!d->failed) {
        end_vectors(d, row);
        format_imply(d->arena, &d->env, row, false);
        decode_late(d, row->n);
        format_imply(d->arena, &d->env, row, false);
        uint32_t errors = diag_errors(d->diag);
        format_judge(d->arena, d->diag, place(d, start), &d->env, row);
        d->failed = d->failed || diag_errors(d->diag) > errors;
    }
    export_scope(d, row, out);
    d->row = outer;
    d->raw = outer_raw;
}

static const ProgRow *row_of_number(const Decoder *d, int64_t number) {
    for (uint32_t i = 0; i < d->format->n_rows; i++)
        if (d->format->row[i].has_number && d->format->row[i].number == number)
            return &d->format->row[i];
    return NULL;
}

static const ProgRow *row_of_words(const Decoder *d) {
    for (uint32_t i = 0; i < d->format->n_rows; i++)
        if (d->at < d->len && format_begins(d->format, &d->format->row[i],
                                            d->data + d->at, d->len - d->at))
            return &d->format->row[i];
    return NULL;
}

static void decode_body(Decoder *d) {
    const HwFormat *format = d->format;
    NodeMark *mark = &d->mark[d->node];
    ProgNode *node = &d->program->node[d->node];
    size_t start = d->at, outer_end = d->end;
    node->loc = place(d, start);
    node->row =
        mark->has_number ? row_of_number(d, mark->number) : row_of_words(d);
    if (!node->row) {
        if (mark->has_number)
            FAIL(d, start, "node %u: no row has the number 0x%llx", d->node,
                 (unsigned long long)mark->number);
        else
            FAIL(d, start, "node %u: no row begins with these bytes", d->node);
    } else if (mark->has_size) {
        if ((uint64_t)mark->size > outer_end - start) {
            FAIL(d, start, "node %u has %lld bytes, the file has %zu more",
                 d->node, (long long)mark->size, outer_end - start);
            return;
        }
        d->end = start + (size_t)mark->size;
    }
    if (node->row)
        decode_row(d, node->row, &node->scope);
    if (!d->failed && mark->has_size && d->at != d->end)
        FAIL(d, d->at, "%s ends here, %s says %lld bytes: %zu are left",
             node->row->name, name_of(d, format->body_size),
             (long long)mark->size, d->end - d->at);
    if (mark->has_size && diag_errors(d->diag) < MAX_ERRORS &&
        start + (size_t)mark->size <= outer_end) {
        d->failed = false; /* the next one is where it should be */
        d->at = start + (size_t)mark->size;
    }
    d->end = outer_end;
}

/* ---- the table of nodes, and their bodies ---- */

static void take_mark(Decoder *d, NodeMark *mark) {
    const HwFormat *format = d->format;
    mark->has_number = d->env.set[format->node];
    mark->number = d->env.num[format->node];
    mark->has_size = d->env.set[format->body_size];
    mark->size = d->env.num[format->body_size];
}

static void put_mark(Decoder *d, const NodeMark *mark) {
    const HwFormat *format = d->format;
    d->env.set[format->node] = mark->has_number;
    d->env.num[format->node] = mark->number;
    d->env.set[format->body_size] = mark->has_size;
    d->env.num[format->body_size] = mark->size;
    d->env.set[format->body_at] = false;
}

/* How many there are: as was said, or up to the end of the file. */
static bool find_count(Decoder *d, uint64_t *n) {
    const HwFormat *format = d->format;
    *n = MAX_NODES;
    if (!d->env.set[format->n_nodes])
        return true;
    *n = (uint64_t)d->env.num[format->n_nodes];
    if (*n <= d->len && *n <= MAX_NODES)
        return true;
    FAIL(d, d->at, "%llu nodes in a file of %zu bytes", (unsigned long long)*n,
         d->len);
    return false;
}

static void decode_nodes(Decoder *d, const Item *item) {
    Program *program = d->program;
    bool known = d->env.set[d->format->n_nodes];
    uint64_t n;
    if (!find_count(d, &n))
        return;
    if (!known && n > d->len - d->at)
        n = d->len - d->at;
    if (!program->node) {
        program->node = ARENA_ARRAY(d->arena, ProgNode, n + 1);
        d->mark = ARENA_ARRAY(d->arena, NodeMark, n + 1);
    }
    uint64_t i = 0;
    for (; i < n && !d->failed && (known || d->at < d->len); i++) {
        d->node = (uint32_t)i;
        put_mark(d, &d->mark[i]);
        decode_items(d, item->n, item->item);
        take_mark(d, &d->mark[i]);
    }
    put_mark(d, &(NodeMark){0});
    program->n_nodes = (uint32_t)i;
    if (!known && !d->failed && d->at < d->len)
        FAIL(d, d->at, "more than %d nodes", MAX_NODES);
    d->env.set[d->format->n_nodes] = true;
    d->env.num[d->format->n_nodes] = (int64_t)i;
}

/* ---- files ---- */

static void end_file(Decoder *d) {
    const HwFormat *format = d->format;
    if (d->failed)
        return;
    if (d->at < d->len)
        FAIL(d, d->at, "%zu bytes lie behind the last item", d->len - d->at);
    check_label(d, format->file_size, d->at);
    if (d->at > d->len)
        for (uint32_t i = 0; i < d->program->scope.n_meanings; i++)
            if (format->file.meaning[i] == format->lacks)
                d->program->scope.meaning[i] = (ProgMeaning){
                    name_of(d, format->lacks), true, (int64_t)(d->at - d->len)};
}

const Program *program_decode(Arena *arena, Diag *diag, const HwSpec *spec,
                              const char *file, const uint8_t *data,
                              size_t len) {
    const HwFormat *format = spec->format;
    if (!format) {
        diag_error(diag, (Loc){.file = file}, "%s has no container",
                   spec->machine);
        return NULL;
    }
    if (format->n_columns &&
        !format_from_columns(arena, diag, format, file, &data, &len))
        return NULL;
    uint32_t n = format->names->list.n, errors = diag_errors(diag);
    Program *program = ARENA_NEW(arena, Program);
    *program = (Program){.spec = spec, .container = format->file.name};
    Decoder d = {.arena = arena,
                 .diag = diag,
                 .format = format,
                 .file = file,
                 .data = data,
                 .len = len,
                 .row = &format->file,
                 .env = format_env(arena, format),
                 .filling = ARENA_ARRAY(arena, Filling, n),
                 .natural = ARENA_ARRAY(arena, bool, n),
                 .state = ARENA_ARRAY(arena, size_t, format->n_states + 1),
                 .program = program};
    if (format->may_lack)
        d.lacks = (size_t)format->names->list.at[format->lacks].domain.range.hi;
    d.end = len + d.lacks;
    if (len >= UINT32_MAX)
        FAIL(&d, 0, "more than 4 GiB");
    else
        decode_row(&d, &format->file, &program->scope);
    end_file(&d);
    return diag_errors(diag) > errors ? NULL : program;
}

bool program_is(const HwSpec *spec, const uint8_t *data, size_t len) {
    return spec->format &&
           format_begins(spec->format, &spec->format->file, data, len);
}

bool program_is_file(const HwSpec *spec, const char *file, const uint8_t *data,
                     size_t len) {
    const char *dot = strrchr(file, '.');
    return spec->format && (program_is(spec, data, len) ||
                            program_is_text(spec, (const char *)data, len) ||
                            (dot && !strcmp(dot + 1, spec->format->file.name)));
}
