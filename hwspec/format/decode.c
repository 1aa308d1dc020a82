/* decode.c - bytes -> Program.
 *
 * Input: a file, the container's items. Output: the meanings and vectors of the
 * file and of each node. Invariants: nothing is allocated that the bytes which
 * are left could not fill; every byte and bit is a field, a checked constant,
 * or a checked zero; a node that is wrong does not hide what is wrong in others
 * where the file says how long it is.
 */
#include "hwspec/format/decode.h"

#include <string.h>

enum { MAX_ERRORS = 40, MAX_NODES = 1 << 18 };

/* Are so many bytes left? */
static bool has_bytes(Decoder *d, uint64_t n, const char *what) {
    size_t left = d->end - d->at;
    if (n <= left && d->at + n <= d->len)
        return true;
    if (d->at + n > d->len)
        DECODE_FAIL(d, d->at, "%s takes %llu bytes, the file ends after %zu",
                    what, (unsigned long long)n,
                    d->len - (d->at < d->len ? d->at : d->len));
    else
        DECODE_FAIL(d, d->at, "%s takes %llu bytes, of %s %zu are left", what,
                    (unsigned long long)n, d->row->name, left);
    return false;
}

static void decode_late(Decoder *d, uint32_t after) {
    for (uint32_t i = 0; i < d->row->n_late; i++)
        if (d->row->late[i].after == after && d->raw[i].seen)
            decode_field(d, d->row->late[i].field, d->raw[i].bits,
                         d->raw[i].at);
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
        DECODE_FAIL(d, byte_of(d, part, at, first),
                    "bits 0x%llx of %s, which no field has, are set",
                    (unsigned long long)wrong,
                    part->name ? part->name : "a number");
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
        DECODE_FAIL(d, at, "%s: no word before tells what `%s` would",
                    d->row->name, item->name);
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
        DECODE_FAIL(d, d->at, "%llu zero bytes, of %s %zu are left",
                    (unsigned long long)n, d->row->name, end - d->at);
        return;
    }
    for (uint64_t i = 0; i < n && !d->failed; i++, d->at++)
        if (d->at < d->len && d->data[d->at])
            DECODE_FAIL(d, d->at, "padding is 0x%02x, 0 expected",
                        d->data[d->at]);
}

static void decode_fill(Decoder *d, const Item *item) {
    int64_t n;
    if (!decode_eval(d, item->count, &n))
        return;
    if (n < (item->to_multiple ? 1 : 0)) {
        DECODE_FAIL(d, d->at, "%s is %lld", decode_text(d, item->count, false),
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
    if (d->filling[name].cap || !decode_reserve(d, name, n))
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
        if (!decode_eval(d, each->extent[i], &extent[i]))
            return;
        extent[i] = extent[i] < 0 ? 0 : extent[i];
        if (__builtin_mul_overflow(n, (uint64_t)extent[i], &n))
            n = UINT64_MAX;
    }
    if (!has_bytes(d, n, decode_text(d, each->extent[0], false)))
        return;
    if (n && !decode_plain(d, each, n))
        decode_loop(d, each, 0, extent);
}

static void check_label(Decoder *d, uint32_t name, uint64_t is) {
    if (name == EXPR_NONE)
        return;
    if (d->env.set[name] && (uint64_t)d->env.num[name] != is)
        DECODE_FAIL(d, d->at, "%s was said to be %lld, it is %llu",
                    decode_name(d, name), (long long)d->env.num[name],
                    (unsigned long long)is);
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
        if (decode_eval(d, item->count, &holds) && holds)
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
        out->meaning[i] = (ProgMeaning){decode_name(d, name),
                                        d->env.set[name] && !d->natural[name],
                                        d->env.num[name]};
    }
    for (uint32_t i = 0; i < row->n_vectors; i++) {
        const ExprVector *v = &d->env.vector[row->vector[i]];
        out->vector[i] = (ProgVector){decode_name(d, row->vector[i]), v->set,
                                      v->n, v->byte, v->num};
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
        format_judge(d->arena, d->diag, decode_place(d, start), &d->env, row);
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
    node->loc = decode_place(d, start);
    node->row =
        mark->has_number ? row_of_number(d, mark->number) : row_of_words(d);
    if (!node->row) {
        if (mark->has_number)
            DECODE_FAIL(d, start, "node %u: no row has the number 0x%llx",
                        d->node, (unsigned long long)mark->number);
        else
            DECODE_FAIL(d, start, "node %u: no row begins with these bytes",
                        d->node);
    } else if (mark->has_size) {
        if ((uint64_t)mark->size > outer_end - start) {
            DECODE_FAIL(d, start,
                        "node %u has %lld bytes, the file has %zu more",
                        d->node, (long long)mark->size, outer_end - start);
            return;
        }
        d->end = start + (size_t)mark->size;
    }
    if (node->row)
        decode_row(d, node->row, &node->scope);
    if (!d->failed && mark->has_size && d->at != d->end)
        DECODE_FAIL(d, d->at, "%s ends here, %s says %lld bytes: %zu are left",
                    node->row->name, decode_name(d, format->body_size),
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
    DECODE_FAIL(d, d->at, "%llu nodes in a file of %zu bytes",
                (unsigned long long)*n, d->len);
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
        DECODE_FAIL(d, d->at, "more than %d nodes", MAX_NODES);
    d->env.set[d->format->n_nodes] = true;
    d->env.num[d->format->n_nodes] = (int64_t)i;
}

/* ---- files ---- */

static void end_file(Decoder *d) {
    const HwFormat *format = d->format;
    if (d->failed)
        return;
    if (d->at < d->len)
        DECODE_FAIL(d, d->at, "%zu bytes lie behind the last item",
                    d->len - d->at);
    check_label(d, format->file_size, d->at);
    if (d->at > d->len)
        for (uint32_t i = 0; i < d->program->scope.n_meanings; i++)
            if (format->file.meaning[i] == format->lacks)
                d->program->scope.meaning[i] =
                    (ProgMeaning){decode_name(d, format->lacks), true,
                                  (int64_t)(d->at - d->len)};
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
        DECODE_FAIL(&d, 0, "more than 4 GiB");
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
