/* encode.c - Program -> bytes.
 *
 * Input: meanings and vectors, as told. Output: the file; what was not told and
 * has a rule comes from it, derived fields are computed. Offsets and sizes that
 * fields name stand in front of what they tell of: the file is laid out again
 * and again, each time with the offsets of the time before, until none moves.
 */
#include "hwspec/format/format.h"

#include <string.h>

enum { MAX_PASSES = 8, MAX_FILE = 1 << 28, MAX_FILL = 1 << 20 };

/* A word that stays in force, as it was written last. */
typedef struct State {
    bool set;
    size_t n;
    const uint8_t *byte;
} State;

typedef struct Encoder {
    Arena *arena;
    Diag *diag;
    const HwFormat *format;
    const Program *program;
    uint8_t *out;
    size_t n, cap;
    ExprEnv env;
    const ProgRow *row;
    const ProgScope *scope;
    Loc loc;
    /* what the layout told of each node, and last of the file: by its row's
     * labels, then its gaps */
    int64_t **told;
    int64_t *body_size, *body_at;
    State *state; /* by its number */
    uint32_t at;  /* the node that is being written */
    bool moved, failed;
} Encoder;

#define FAIL(e, ...)                                                           \
    do {                                                                       \
        diag_error((e)->diag, (e)->loc, __VA_ARGS__);                          \
        (e)->failed = true;                                                    \
    } while (0)

static const char *name_of(const Encoder *e, uint32_t name) {
    return e->format->names->list.at[name].name;
}

static const char *text_of(const Encoder *e, const Expr *expr, bool values) {
    return expr_text(e->arena, e->format->names, expr, values ? &e->env : NULL);
}

static uint8_t *room(Encoder *e, uint64_t n) {
    if (n > MAX_FILE - e->n) {
        FAIL(e, "%s: the file would exceed %d bytes", e->row->name, MAX_FILE);
        return NULL;
    }
    if (e->n + n > e->cap) {
        size_t cap = e->cap * 2 + n + 4096;
        uint8_t *more = arena_alloc_raw(e->arena, cap, 16);
        if (e->n)
            memcpy(more, e->out, e->n);
        e->out = more;
        e->cap = cap;
    }
    uint8_t *at = e->out + e->n;
    e->n += n;
    return at;
}

static bool eval(Encoder *e, const Expr *expr, int64_t *out) {
    ExprFault fault;
    if (expr_eval(&e->env, expr, out, &fault))
        return true;
    FAIL(e, "%s: %s", e->row->name, expr_fault_text(e->arena, &e->env, &fault));
    return false;
}

/* ---- fields ---- */

static bool fits(const Field *field, int64_t value) {
    uint32_t width = field->width;
    bool may_be_negative = field->is_signed || field->how == FIELD_CHECK;
    if (width == 64)
        return value >= 0 || may_be_negative;
    int64_t most = (int64_t)low_bits(field->is_signed ? width - 1 : width);
    int64_t least = may_be_negative ? -1 - (int64_t)low_bits(width - 1) : 0;
    return value >= least && value <= most;
}

static void tell_line(Encoder *e, const Field *field) {
    const FormatTable *table = field->table;
    Text text = text_new(e->arena);
    for (uint32_t i = 0; i < (table->n ? table->line[0].n : 0); i++) {
        uint32_t name = table->line[0].name[i];
        text_addf(&text, e->env.set[name] ? "%s%s=%lld" : "%s%s=?",
                  i ? " " : "", name_of(e, name), (long long)e->env.num[name]);
    }
    FAIL(e, "%s: no line of %s has %s", e->row->name, table->name,
         text_str(&text));
}

static bool value_of(Encoder *e, const Field *field, int64_t *value) {
    if (!field->table)
        return eval(e, field->value, value);
    const FormatLine *line = format_line(&e->env, field->table);
    if (!line)
        tell_line(e, field);
    *value = line ? line->is : 0;
    return line;
}

static void tell_width(Encoder *e, const Field *field, int64_t value) {
    const char *text =
        field->table ? field->table->name : text_of(e, field->value, false);
    bool same = !strcmp(text, field->label);
    FAIL(e, "%s: field %s%s%s%s is %lld, %u bits%s", e->row->name, field->label,
         same ? "" : " (", same ? "" : text, same ? "" : ")", (long long)value,
         field->width, field->is_signed ? " with sign" : "");
}

/* A word that stays in force is left out where it would say the same again. */
static void keep_state(Encoder *e, const Item *item, size_t start) {
    State *last = &e->state[item->state];
    size_t n = e->n - start;
    if (last->set && n == last->n && !memcmp(last->byte, e->out + start, n)) {
        e->n = start;
        return;
    }
    *last = (State){true, n, ARENA_COPY(e->arena, uint8_t, e->out + start, n)};
}

static void encode_bits(Encoder *e, const Item *item) {
    size_t start = e->n;
    uint64_t part[256] = {0};
    for (uint32_t i = 0; i < item->n_fields; i++) {
        const Field *field = &item->field[i];
        int64_t value;
        if (!value_of(e, field, &value))
            continue;
        if (!fits(field, value))
            tell_width(e, field, value);
        part[field->part] |= ((uint64_t)value & low_bits(field->width))
                             << field->lo;
    }
    for (uint32_t i = 0; i < item->n_parts; i++) {
        uint32_t bytes = part_bytes(&item->part[i]);
        uint8_t *at = room(e, bytes);
        for (uint32_t k = 0; at && k < bytes; k++)
            at[e->format->is_big ? bytes - 1 - k : k] =
                (uint8_t)(part[i] >> 8 * k);
    }
    if (item->state != EXPR_NONE && !e->failed)
        keep_state(e, item, start);
}

/* ---- items ---- */

/* Was it given, rather than laid out? */
static bool is_told(const ProgScope *scope, const ProgRow *row, uint32_t name) {
    for (uint32_t i = 0; i < row->n_meanings; i++)
        if (row->meaning[i] == name)
            return scope->meaning[i].set;
    return false;
}

static void encode_items(Encoder *e, uint32_t n, const Item *item);

static void encode_fill(Encoder *e, const Item *item) {
    int64_t n;
    if (!eval(e, item->count, &n))
        return;
    if (n < (item->to_multiple ? 1 : 0)) {
        FAIL(e, "%s: %s is %lld", e->row->name, text_of(e, item->count, false),
             (long long)n);
        return;
    }
    uint64_t to = (uint64_t)n;
    uint64_t bytes = item->to_multiple ? (to - e->n % to) % to : to;
    if (item->gap != EXPR_NONE) {
        if (is_told(e->scope, e->row, item->gap))
            bytes = (uint64_t)e->env.num[item->gap];
        e->env.set[item->gap] = true;
        e->env.num[item->gap] = (int64_t)bytes;
    }
    if (bytes > MAX_FILL) {
        FAIL(e, "%s: %llu bytes of padding", e->row->name,
             (unsigned long long)bytes);
        return;
    }
    uint8_t *at = room(e, bytes);
    if (at)
        memset(at, 0, bytes);
}

/* A vector's bytes in its own order. */
static bool encode_plain(Encoder *e, const Item *each, uint64_t n) {
    if (!each->is_plain)
        return false;
    const Expr *element = each->item->field->value;
    const ExprName *of = &e->format->names->list.at[element->name];
    const ExprVector *v = &e->env.vector[element->name];
    for (uint32_t i = 0; i < of->n_extents; i++) {
        int64_t a, b;
        ExprFault fault;
        if (!expr_eval(&e->env, of->extent[i], &a, &fault) ||
            !expr_eval(&e->env, each->extent[i], &b, &fault) || a != b)
            return false;
    }
    if (!v->set || !v->byte || v->n != n)
        return false;
    uint8_t *at = room(e, n);
    if (at && n)
        memcpy(at, v->byte, n);
    return true;
}

static void encode_loop(Encoder *e, const Item *each, uint32_t depth,
                        const int64_t *extent) {
    uint32_t index = each->index[depth];
    e->env.set[index] = true;
    for (int64_t i = 0; i < extent[depth] && !e->failed; i++) {
        e->env.num[index] = i;
        if (depth + 1 < each->n_indices)
            encode_loop(e, each, depth + 1, extent);
        else
            encode_items(e, each->n, each->item);
    }
    e->env.set[index] = false;
}

static void encode_each(Encoder *e, const Item *each) {
    int64_t extent[8];
    uint64_t n = 1;
    for (uint32_t i = 0; i < each->n_indices; i++) {
        if (!eval(e, each->extent[i], &extent[i]))
            return;
        extent[i] = extent[i] < 0 ? 0 : extent[i];
        if (__builtin_mul_overflow(n, (uint64_t)extent[i], &n))
            n = UINT64_MAX;
    }
    if (n > MAX_FILE)
        FAIL(e, "%s: %llu items", e->row->name, (unsigned long long)n);
    else if (n && !encode_plain(e, each, n))
        encode_loop(e, each, 0, extent);
}

static void set_label(Encoder *e, uint32_t name, size_t is) {
    if (name == EXPR_NONE)
        return;
    e->moved = e->moved || e->env.num[name] != (int64_t)is;
    e->env.num[name] = (int64_t)is;
}

static void encode_body(Encoder *e);

static void encode_nodes(Encoder *e, const Item *item) {
    const HwFormat *format = e->format;
    for (uint32_t i = 0; i < e->program->n_nodes && !e->failed; i++) {
        const ProgNode *node = &e->program->node[i];
        Loc outer = e->loc;
        e->at = i;
        e->loc = node->loc;
        e->env.set[format->node] = node->row->has_number;
        e->env.num[format->node] = node->row->number;
        e->env.set[format->body_at] = e->env.set[format->body_size] = true;
        e->env.num[format->body_at] = e->body_at[i];
        e->env.num[format->body_size] = e->body_size[i];
        encode_items(e, item->n, item->item);
        e->loc = outer;
    }
}

static void encode_item(Encoder *e, const Item *item) {
    int64_t holds;
    size_t start = e->n;
    switch (item->kind) {
    case ITEM_BITS:
        encode_bits(e, item);
        break;
    case ITEM_FILL:
        encode_fill(e, item);
        break;
    case ITEM_EACH:
        encode_each(e, item);
        break;
    case ITEM_WHEN:
        if (eval(e, item->count, &holds) && holds)
            encode_items(e, item->n, item->item);
        break;
    case ITEM_NAMED:
        set_label(e, item->at, start);
        encode_items(e, item->n, item->item);
        set_label(e, item->size, e->n - start);
        break;
    case ITEM_NODES:
        encode_nodes(e, item);
        break;
    case ITEM_BODY:
        encode_body(e);
        break;
    }
}

static void encode_items(Encoder *e, uint32_t n, const Item *item) {
    for (uint32_t i = 0; i < n && !e->failed; i++)
        encode_item(e, &item[i]);
}

/* ---- rows ---- */

static void load_scope(Encoder *e, const ProgRow *row, const ProgScope *scope,
                       const int64_t *told) {
    for (uint32_t i = 0; i < row->n_meanings; i++) {
        e->env.set[row->meaning[i]] = scope->meaning[i].set;
        e->env.num[row->meaning[i]] = scope->meaning[i].num;
    }
    for (uint32_t i = 0; i < row->n_vectors; i++) {
        const ProgVector *v = &scope->vector[i];
        e->env.vector[row->vector[i]] =
            (ExprVector){v->set, v->n, v->byte, v->num};
    }
    for (uint32_t i = 0; i < row->n_labels; i++) {
        e->env.set[row->label[i]] = true;
        e->env.num[row->label[i]] = told[i];
    }
    for (uint32_t i = 0; i < row->n_gaps; i++) {
        if (is_told(scope, row, row->gap[i]))
            continue;
        e->env.set[row->gap[i]] = true;
        e->env.num[row->gap[i]] = told[row->n_labels + i];
    }
}

static void check_lengths(Encoder *e, const ProgRow *row) {
    for (uint32_t i = 0; i < row->n_vectors; i++) {
        uint32_t name = row->vector[i];
        const ExprVector *v = &e->env.vector[name];
        ExprFault fault;
        uint64_t n = 0;
        if (!e->format->names->list.at[name].n_extents || !v->set)
            continue;
        if (!format_count(&e->env, name, &n, &fault))
            FAIL(e, "%s: %s", row->name,
                 expr_fault_text(e->arena, &e->env, &fault));
        else if (n != v->n)
            FAIL(e, "%s: %s has %u values, %llu expected", row->name,
                 name_of(e, name), v->n, (unsigned long long)n);
    }
}

static void check_elements(Encoder *e, const ProgRow *row) {
    for (uint32_t i = 0; i < row->n_vectors; i++) {
        const ExprVector *v = &e->env.vector[row->vector[i]];
        const ExprDomain *domain = &row->domain[row->vector[i]];
        if (v->byte && domain->range.lo <= 0 && domain->range.hi >= UINT8_MAX)
            continue;
        for (uint32_t k = 0; v->set && k < v->n; k++) {
            int64_t value = v->byte ? v->byte[k] : v->num[k];
            if (expr_domain_has(domain, value))
                continue;
            FAIL(e, "%s: %s[%u] is %lld, %s can be", row->name,
                 name_of(e, row->vector[i]), k, (long long)value,
                 expr_domain_text(e->arena, domain));
            break;
        }
    }
}

static void save_layout(Encoder *e, const ProgRow *row, int64_t *told,
                        const ProgScope *scope) {
    for (uint32_t i = 0; i < row->n_labels; i++)
        told[i] = e->env.num[row->label[i]];
    for (uint32_t i = 0; i < row->n_gaps; i++) {
        int64_t *was = &told[row->n_labels + i];
        int64_t is = e->env.num[row->gap[i]];
        if (is_told(scope, row, row->gap[i]))
            continue;
        e->moved = e->moved || *was != is;
        *was = is;
    }
}

static void encode_row(Encoder *e, const ProgRow *row, const ProgScope *scope,
                       int64_t *told) {
    const ProgRow *outer = e->row;
    const ProgScope *outer_scope = e->scope;
    e->row = row;
    e->scope = scope;
    load_scope(e, row, scope, told);
    format_complete(e->arena, &e->env, row);
    uint32_t errors = diag_errors(e->diag);
    format_judge(e->arena, e->diag, e->loc, &e->env, row);
    check_lengths(e, row);
    check_elements(e, row);
    e->failed = e->failed || diag_errors(e->diag) > errors;
    encode_items(e, row->n, row->item);
    save_layout(e, row, told, scope);
    e->row = outer;
    e->scope = outer_scope;
}

static void encode_body(Encoder *e) {
    const ProgNode *node = &e->program->node[e->at];
    size_t start = e->n;
    encode_row(e, node->row, &node->scope, e->told[e->at]);
    e->moved = e->moved || e->body_at[e->at] != (int64_t)start ||
               e->body_size[e->at] != (int64_t)(e->n - start);
    e->body_at[e->at] = (int64_t)start;
    e->body_size[e->at] = (int64_t)(e->n - start);
    e->failed = false; /* the next one is looked at, too */
}

/* ---- files ---- */

static int64_t *new_layout(Arena *arena, const ProgRow *row) {
    return ARENA_ARRAY(arena, int64_t, row->n_labels + row->n_gaps + 1);
}

/* Once; whether all offsets were those of the time before. */
static bool encode_once(Encoder *e, Diag *diag) {
    const HwFormat *format = e->format;
    uint32_t n = e->program->n_nodes;
    int64_t *file = e->told[n];
    e->diag = diag;
    e->n = 0;
    e->moved = e->failed = false;
    for (uint32_t i = 0; i < format->n_states; i++)
        e->state[i].set = false;
    e->env.set[format->n_nodes] = e->env.set[format->file_size] = true;
    for (uint32_t i = 0; i < format->file.n_labels; i++)
        if (format->file.label[i] == format->n_nodes)
            file[i] = n;
    encode_row(e, &format->file, &e->program->scope, file);
    for (uint32_t i = 0; i < format->file.n_labels; i++)
        if (format->file.label[i] == format->file_size) {
            e->moved = e->moved || file[i] != (int64_t)e->n;
            file[i] = (int64_t)e->n;
        }
    return !e->moved;
}

static size_t without_lacking(const Encoder *e) {
    const ProgScope *scope = &e->program->scope;
    int64_t lacks = e->format->may_lack
                        ? prog_num(scope, name_of(e, e->format->lacks), 0)
                        : 0;
    return lacks > 0 && (uint64_t)lacks <= e->n ? e->n - (size_t)lacks : e->n;
}

static void copy_messages(Diag *to, const Diag *from) {
    for (uint32_t i = 0; i < diag_count(from); i++) {
        const DiagMessage *message = diag_at(from, i);
        diag_error(to, message->loc, "%s", message->text);
    }
}

bool program_encode(Arena *arena, Diag *diag, const Program *program,
                    const uint8_t **out, size_t *len) {
    const HwFormat *format = program->spec->format;
    uint32_t n = program->n_nodes;
    Encoder e = {.arena = arena,
                 .format = format,
                 .program = program,
                 .row = &format->file,
                 .env = format_env(arena, format),
                 .told = ARENA_ARRAY(arena, int64_t *, n + 1),
                 .state = ARENA_ARRAY(arena, State, format->n_states + 1),
                 .body_at = ARENA_ARRAY(arena, int64_t, n + 1),
                 .body_size = ARENA_ARRAY(arena, int64_t, n + 1)};
    for (uint32_t i = 0; i < n; i++)
        e.told[i] = new_layout(arena, program->node[i].row);
    e.told[n] = new_layout(arena, &format->file);
    bool done = false;
    Diag *messages = NULL;
    for (int pass = 0; pass < MAX_PASSES && !done; pass++) {
        messages = diag_new(arena);
        done = encode_once(&e, messages);
    }
    copy_messages(diag, messages);
    if (!done && !diag_errors(messages))
        diag_error(diag, (Loc){0},
                   "offsets of %s do not settle: one depends on itself",
                   format->file.name);
    *out = e.out;
    *len = without_lacking(&e);
    if (format->n_columns && done)
        format_to_columns(arena, format, out, len);
    return done && !diag_errors(messages);
}
