/* plan_ranges.c - what names can be: ranges and lists, by the fields that tell
 * them, and the ranges of what is computed from them; see plan.c.
 */
#include "hwspec/format/plan.h"

#include <string.h>

/* Signed where a number says so, or a meaning in a word can be below 0. */
static void find_sign(const Planner *p, Field *field, const ExprBounds *b) {
    ExprRange range;
    if (field->is_signed || !field->value ||
        !expr_range(b, p->diag, field->value, &range))
        return;
    field->is_signed = range.lo < 0;
}

static ExprRange raw_range(const Field *field) {
    if (field->is_signed) {
        int64_t most = (int64_t)low_bits(field->width - 1);
        return (ExprRange){-most - 1, most};
    }
    return (ExprRange){0, field->width > 62 ? INT64_MAX
                                            : (int64_t)low_bits(field->width)};
}

static void meet(ExprDomain *domain, ExprRange range) {
    if (range.lo > domain->range.lo)
        domain->range.lo = range.lo;
    if (range.hi < domain->range.hi)
        domain->range.hi = range.hi;
}

/* A field's width is a limit of the meaning that it tells. */
static void narrow_read(const Planner *p, const Field *field) {
    uint32_t n = p->names->list.n;
    Arena *arena = arena_new("narrow");
    ExprEnv env = {p->names, ARENA_ARRAY(arena, bool, n),
                   ARENA_ARRAY(arena, int64_t, n),
                   ARENA_ARRAY(arena, ExprVector, n)};
    ExprRange raw = raw_range(field), lo, hi;
    if (planned_name(p, field->name)->kind == EXPR_MEANING &&
        !p->row->domain[field->name].n &&
        expr_invert(&env, field->value, field->name, raw.lo, &lo) &&
        expr_invert(&env, field->value, field->name, raw.hi, &hi)) {
        ExprRange both = {lo.lo < hi.lo ? lo.lo : hi.lo,
                          lo.hi > hi.hi ? lo.hi : hi.hi};
        meet(&p->row->domain[field->name], both);
    }
    arena_free(arena);
}

/* The values of the k-th meaning of a table's lines, rising, each once. */
static uint32_t values_in(const FormatTable *table, uint32_t k, int64_t *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < table->n; i++) {
        int64_t value = table->line[i].num[k];
        uint32_t at = n;
        while (at > 0 && out[at - 1] > value)
            at--;
        if (at > 0 && out[at - 1] == value)
            continue;
        memmove(out + at + 1, out + at, (n - at) * sizeof *out);
        out[at] = value;
        n++;
    }
    return n;
}

static void narrow_table(Planner *p, const Field *field) {
    const FormatTable *table = field->table;
    for (uint32_t k = 0; table->n && k < table->line[0].n; k++) {
        int64_t *list = ARENA_ARRAY(p->arena, int64_t, table->n + 1);
        uint32_t n = values_in(table, k, list);
        ExprDomain *domain = &p->row->domain[table->line[0].name[k]];
        if (!domain->n)
            *domain = (ExprDomain){
                .range = {list[0], list[n - 1]}, .n = n, .list = list};
    }
}

static void narrow_rules(Planner *p, const ExprBounds *bounds) {
    for (uint32_t i = 0; i < p->row->n_rules; i++) {
        const FormatRule *rule = &p->row->rule[i];
        ExprRange range;
        if (rule->always && expr_range(bounds, p->diag, rule->value, &range))
            meet(&p->row->domain[rule->name], range);
    }
}

void format_plan_ranges(Planner *p) {
    ExprNames *names = p->names;
    const ExprBounds declared = {.names = names};
    p->row->n_domains = names->list.n;
    p->row->domain = ARENA_ARRAY(p->arena, ExprDomain, names->list.n);
    for (uint32_t i = 0; i < names->list.n; i++)
        p->row->domain[i] = expr_domain_of(&declared, i);
    for (uint32_t i = 0; i < p->tells.n; i++) {
        Field *field = (Field *)(uintptr_t)p->tells.at[i];
        if (field->table)
            narrow_table(p, field);
        else
            find_sign(p, field, &declared);
        if (field->how == FIELD_READ)
            narrow_read(p, field);
    }
    const ExprBounds bounds = {names, p->row->domain, names->list.n};
    for (int i = 0; i < 2 && p->row->n_rules; i++)
        narrow_rules(p, &bounds);
}

/* ---- ranges of what is computed ---- */

static void check_constant(const Planner *p, const Field *field) {
    const ExprEnv env = {.names = p->names};
    int64_t value;
    ExprFault fault;
    if (!field->is_constant || !field->value)
        return;
    if (!expr_eval(&env, field->value, &value, &fault))
        diag_error(p->diag, field->loc, "%s",
                   expr_fault_text(p->arena, &env, &fault));
    else if (value < 0 ||
             (field->width < 64 && (uint64_t)value > low_bits(field->width)))
        diag_error(p->diag, field->loc, "%lld does not fit %u bits",
                   (long long)value, field->width);
}

static void check_ranges(const Planner *p, const ExprBounds *bounds, uint32_t n,
                         const Item *item) {
    ExprRange range;
    for (uint32_t i = 0; i < n; i++) {
        const Item *it = &item[i];
        if (it->count && expr_range(bounds, p->diag, it->count, &range) &&
            it->to_multiple && range.lo < 1)
            diag_error(p->diag, it->count->loc, "align: %s may be below 1",
                       expr_text(p->arena, p->names, it->count, NULL));
        for (uint32_t k = 0; k < it->n_indices; k++)
            expr_range(bounds, p->diag, it->extent[k], &range);
        for (uint32_t k = 0; k < it->n_fields; k++) {
            if (it->field[k].value)
                expr_range(bounds, p->diag, it->field[k].value, &range);
            check_constant(p, &it->field[k]);
        }
        check_ranges(p, bounds, it->n, it->item);
    }
}

/* Bytes that an item takes at least, as far as that is plain; 0 or not. */
static bool takes_bytes(const Item *item) {
    if (item->kind == ITEM_BITS)
        return item->n_parts > 0;
    for (uint32_t i = 0; i < item->n; i++)
        if (item->kind != ITEM_WHEN && item->kind != ITEM_EACH &&
            takes_bytes(&item->item[i]))
            return true;
    return item->kind == ITEM_BODY;
}

static void check_loops(const Planner *p, uint32_t n, const Item *item) {
    for (uint32_t i = 0; i < n; i++) {
        bool any = item[i].kind != ITEM_EACH && item[i].kind != ITEM_NODES;
        for (uint32_t k = 0; k < item[i].n; k++)
            any = any || takes_bytes(&item[i].item[k]);
        if (!any)
            diag_error(p->diag, item[i].loc,
                       "what is repeated here may take no bytes");
        check_loops(p, item[i].n, item[i].item);
    }
}

void format_check_ranges(const Planner *p) {
    const ExprBounds bounds = {p->names, p->row->domain, p->row->n_domains};
    check_ranges(p, &bounds, p->row->n, p->row->item);
    check_loops(p, p->row->n, p->row->item);
}
