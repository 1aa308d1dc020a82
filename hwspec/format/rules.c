/* rules.c - what reading and writing a row have in common: its environment,
 * its rules, its tables. */
#include "hwspec/format/format.h"

ExprEnv format_env(Arena *arena, const HwFormat *format) {
    uint32_t n = format->names->list.n;
    return (ExprEnv){format->names, ARENA_ARRAY(arena, bool, n),
                     ARENA_ARRAY(arena, int64_t, n),
                     ARENA_ARRAY(arena, ExprVector, n)};
}

void format_forget(ExprEnv *env, const ProgRow *row) {
    for (uint32_t i = 0; i < row->n_meanings; i++)
        env->set[row->meaning[i]] = false;
    for (uint32_t i = 0; i < row->n_vectors; i++)
        env->vector[row->vector[i]] = (ExprVector){0};
    for (uint32_t i = 0; i < row->n_labels; i++)
        env->set[row->label[i]] = false;
}

bool format_count(const ExprEnv *env, uint32_t vector, uint64_t *out,
                  ExprFault *fault) {
    const ExprName *name = &env->names->list.at[vector];
    *out = 1;
    for (uint32_t i = 0; i < name->n_extents; i++) {
        int64_t extent;
        if (!expr_eval(env, name->extent[i], &extent, fault))
            return false;
        if (extent < 0)
            extent = 0;
        if (__builtin_mul_overflow(*out, (uint64_t)extent, out)) {
            *fault = (ExprFault){.kind = EXPR_OVERFLOW, .at = name->extent[i]};
            return false;
        }
    }
    return true;
}

/* All elements the same. */
static bool imply_vector(Arena *arena, ExprEnv *env, const FormatRule *rule) {
    enum { MOST = 1 << 20 };
    int64_t value;
    uint64_t n;
    ExprFault fault;
    if (!env->names->list.at[rule->name].n_extents ||
        !format_count(env, rule->name, &n, &fault) || n > MOST ||
        !expr_eval(env, rule->value, &value, &fault))
        return false;
    int64_t *num = ARENA_ARRAY(arena, int64_t, n + 1);
    for (uint64_t i = 0; i < n; i++)
        num[i] = value;
    env->vector[rule->name] =
        (ExprVector){.set = true, .n = (uint32_t)n, .num = num};
    return true;
}

static bool imply_one(Arena *arena, ExprEnv *env, const FormatRule *rule) {
    ExprFault fault;
    if (env->names->list.at[rule->name].kind == EXPR_VECTOR)
        return !env->vector[rule->name].set && imply_vector(arena, env, rule);
    if (env->set[rule->name] ||
        !expr_eval(env, rule->value, &env->num[rule->name], &fault))
        return false;
    return env->set[rule->name] = true;
}

void format_imply(Arena *arena, ExprEnv *env, const ProgRow *row,
                  bool always_only) {
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < row->n_rules; i++)
            if (row->rule[i].always || !always_only)
                more = imply_one(arena, env, &row->rule[i]) || more;
    }
}

/* Does it agree with all that is known? */
static bool line_agrees(const ExprEnv *env, const FormatLine *line) {
    for (uint32_t k = 0; k < line->n; k++)
        if (env->set[line->name[k]] && env->num[line->name[k]] != line->num[k])
            return false;
    return true;
}

static void complete_line(ExprEnv *env, const FormatTable *table) {
    const FormatLine *only = NULL;
    for (uint32_t i = 0; i < table->n; i++) {
        if (!line_agrees(env, &table->line[i]))
            continue;
        if (only)
            return;
        only = &table->line[i];
    }
    for (uint32_t k = 0; only && k < only->n; k++) {
        env->set[only->name[k]] = true;
        env->num[only->name[k]] = only->num[k];
    }
}

void format_complete(Arena *arena, ExprEnv *env, const ProgRow *row) {
    for (uint32_t i = 0; i < row->n_tables; i++)
        complete_line(env, row->table[i]);
    format_imply(arena, env, row, false);
}

const FormatLine *format_line(const ExprEnv *env, const FormatTable *table) {
    for (uint32_t i = 0; i < table->n; i++) {
        const FormatLine *line = &table->line[i];
        uint32_t k = 0;
        while (k < line->n && env->set[line->name[k]] &&
               env->num[line->name[k]] == line->num[k])
            k++;
        if (k == line->n)
            return line;
    }
    return NULL;
}

void format_judge(Arena *arena, Diag *diag, Loc loc, const ExprEnv *env,
                  const ProgRow *row) {
    ExprFault fault;
    int64_t value;
    for (uint32_t i = 0; i < row->n_rules; i++) {
        const FormatRule *rule = &row->rule[i];
        if (!rule->always || !env->set[rule->name])
            continue;
        if (!expr_eval(env, rule->value, &value, &fault))
            diag_error(diag, loc, "%s: %s", row->name,
                       expr_fault_text(arena, env, &fault));
        else if (value != env->num[rule->name])
            diag_error(diag, loc, "%s: %s is %lld, %s = %lld expected",
                       row->name, env->names->list.at[rule->name].name,
                       (long long)env->num[rule->name],
                       expr_text(arena, env->names, rule->value, NULL),
                       (long long)value);
    }
    for (uint32_t i = 0; i < row->n_meanings; i++) {
        uint32_t name = row->meaning[i];
        if (env->set[name] &&
            !expr_domain_has(&row->domain[name], env->num[name]))
            diag_error(diag, loc, "%s: %s is %lld, %s can be", row->name,
                       env->names->list.at[name].name,
                       (long long)env->num[name],
                       expr_domain_text(arena, &row->domain[name]));
    }
    for (uint32_t i = 0; i < row->n_requirements; i++) {
        const Expr *e = row->requirement[i];
        if (!expr_eval(env, e, &value, &fault))
            diag_error(diag, loc, "%s: %s", row->name,
                       expr_fault_text(arena, env, &fault));
        else if (!value)
            diag_error(diag, loc, "%s: %s does not hold: %s", row->name,
                       expr_text(arena, env->names, e, NULL),
                       expr_text(arena, env->names, e, env));
    }
}

/* Do the constants among the part's fields agree? */
static bool constants_agree(const HwFormat *format, const Item *item,
                            uint32_t part, uint64_t raw) {
    const ExprEnv env = {.names = format->names};
    for (uint32_t f = 0; f < item->n_fields; f++) {
        const Field *field = &item->field[f];
        int64_t value;
        ExprFault fault;
        if (field->part == part && field->is_constant && field->value &&
            expr_eval(&env, field->value, &value, &fault) &&
            (raw >> field->lo & low_bits(field->width)) != (uint64_t)value)
            return false;
    }
    return true;
}

bool format_item_begins(const HwFormat *format, const Item *item,
                        const uint8_t *data, size_t len) {
    size_t at = 0;
    for (uint32_t i = 0; i < item->n_parts; i++) {
        uint32_t bytes = part_bytes(&item->part[i]);
        if (bytes > len - at ||
            !constants_agree(format, item, i,
                             load_bits(format, data + at, bytes)))
            return false;
        at += bytes;
    }
    return true;
}

bool format_begins(const HwFormat *format, const ProgRow *row,
                   const uint8_t *data, size_t len) {
    for (uint32_t i = 0; i < row->n; i++) {
        const Item *item = &row->item[i];
        while (item->kind == ITEM_NAMED && item->n)
            item = item->item;
        if (item->kind != ITEM_BITS)
            return false;
        if (format_item_begins(format, item, data, len))
            return true;
        if (item->state == EXPR_NONE)
            return false;
    }
    return false;
}
