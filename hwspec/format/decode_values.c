/* decode_values.c - what a field's bits say: meanings, and elements of vectors;
 * see decode.h. */
#include "hwspec/format/decode.h"

#include <string.h>

const char *decode_text(const Decoder *d, const Expr *e, bool values) {
    return expr_text(d->arena, d->format->names, e, values ? &d->env : NULL);
}

bool decode_eval(Decoder *d, const Expr *e, int64_t *out) {
    ExprFault fault;
    if (expr_eval(&d->env, e, out, &fault))
        return true;
    if (!d->failed || fault.kind != EXPR_UNSET) /* else that was told */
        DECODE_FAIL(d, d->at, "%s: %s", d->row->name,
                    expr_fault_text(d->arena, &d->env, &fault));
    return false;
}

static int64_t value_of(const Field *field, uint64_t bits) {
    uint32_t spare = 64 - field->width;
    if (field->is_signed && spare && bits >> (field->width - 1))
        return (int64_t)(bits | ~low_bits(field->width));
    return (int64_t)bits;
}

static void tell_mismatch(Decoder *d, const Field *field, int64_t is,
                          int64_t wanted, size_t at) {
    const char *number = arena_printf(d->arena, "%lld", (long long)wanted);
    const char *values = decode_text(d, field->value, true);
    bool plain = !strcmp(number, values);
    DECODE_FAIL(d, at, "%s is %lld, %s%s%s expected%s%s", field->label,
                (long long)is, plain ? "" : values, plain ? "" : " = ", number,
                field->is_constant ? "" : ": ",
                field->is_constant ? "" : decode_text(d, field->value, false));
}

static void check_field(Decoder *d, const Field *field, uint64_t bits,
                        size_t at) {
    int64_t wanted, is = value_of(field, bits);
    if (!decode_eval(d, field->value, &wanted))
        return;
    if (((uint64_t)wanted & low_bits(field->width)) != bits)
        tell_mismatch(d, field, is, wanted, at);
    else if (wanted < 0 ? field->width < 64 &&
                              wanted < -1 - (int64_t)low_bits(field->width - 1)
                        : field->width < 64 && (uint64_t)wanted >> field->width)
        DECODE_FAIL(d, at, "%s: %s is %lld, %u bits cannot hold it",
                    field->label, decode_text(d, field->value, false),
                    (long long)wanted, field->width);
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
        DECODE_FAIL(d, at, "%s exceeds 63 bits", field->label);
        return;
    }
    if (!expr_invert(&d->env, field->value, field->name, is, &range) ||
        !expr_domain_only(domain, range, &value)) {
        DECODE_FAIL(d, at, "%s is %lld: no %s of %s makes it so", field->label,
                    (long long)is, name->name,
                    expr_domain_text(d->arena, domain));
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
    DECODE_FAIL(d, at, "%s is %lld: %s has %s", field->label, (long long)is,
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
            DECODE_FAIL(d, at, "%s is %lld, so %s is %lld; it is %lld",
                        field->label, (long long)is, decode_name(d, name),
                        (long long)line->num[i], (long long)d->env.num[name]);
        d->env.set[name] = true;
        d->env.num[name] = line->num[i];
    }
    format_imply(d->arena, &d->env, d->row, true);
}

void decode_field(Decoder *d, const Field *field, uint64_t bits, size_t at) {
    if (field->table)
        table_field(d, field, bits, at);
    else if (field->how == FIELD_READ)
        read_field(d, field, bits, at);
    else
        check_field(d, field, bits, at);
}

bool decode_reserve(Decoder *d, uint32_t name, uint64_t n) {
    const ExprName *of = &d->format->names->list.at[name];
    Filling *f = &d->filling[name];
    if (n / 8 > d->len || n > UINT32_MAX) {
        DECODE_FAIL(d, d->at, "%s has %llu values, more than the file has bits",
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
        return at < d->filling[name].cap || decode_reserve(d, name, n);
    if (d->env.vector[name].set)
        return true;
    if (!format_count(&d->env, name, &n, &fault)) {
        DECODE_FAIL(d, d->at, "%s: %s", of->name,
                    expr_fault_text(d->arena, &d->env, &fault));
        return false;
    }
    if (!decode_reserve(d, name, n))
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
        DECODE_FAIL(d, d->at, "%s", expr_fault_text(d->arena, &d->env, &fault));
        return;
    }
    if (!inside) {
        if (value)
            DECODE_FAIL(d, d->at, "%s is %lld outside of %s, 0 expected",
                        field->label, (long long)value,
                        decode_name(d, e->name));
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
