/* plan.c - how a row is read back: which field tells which meaning.
 *
 * Input: a row's items and rules. Output: how and when each field is looked
 * at, the row's names, and what each can be. The items are gone through as a
 * reader will: a field with one unknown name that can be told from its value
 * tells it; with none, it is checked; with several, it waits until the items
 * behind it have told them. Invariant: what an item needs before it can be
 * read (extents, conditions, padding) is known there; at the end all is.
 */
#include "hwspec/format/plan.h"

#include <string.h>

static bool is_label(const Planner *p, uint32_t name) {
    return strchr(planned_name(p, name)->name, '(') || name == p->format->node;
}

/* ---- the row's names ---- */

static void see(void *context, uint32_t name) {
    Planner *p = context;
    const ExprName *n = planned_name(p, name);
    if (p->seen[name] || p->known[name] || n->kind == EXPR_INDEX)
        return;
    p->seen[name] = true;
    Numbers *list = is_label(p, name)        ? &p->labels
                    : n->kind == EXPR_VECTOR ? &p->vectors
                                             : &p->meanings;
    vec_push(p->arena, list, name);
    for (uint32_t i = 0; i < n->n_extents; i++)
        if (n->extent[i])
            expr_visit(p->names, n->extent[i], see, p);
}

static void see_all(Planner *p, const Expr *e) {
    if (e)
        expr_visit(p->names, e, see, p);
}

static void see_items(Planner *p, uint32_t n, const Item *item) {
    for (uint32_t i = 0; i < n; i++) {
        const Item *it = &item[i];
        if (it->kind == ITEM_FILL && it->gap != EXPR_NONE) {
            see(p, it->gap);
            vec_push(p->arena, &p->gaps, it->gap);
        }
        see_all(p, it->count);
        for (uint32_t k = 0; k < it->n_indices; k++)
            see_all(p, it->extent[k]);
        for (uint32_t k = 0; k < it->n_fields; k++) {
            const FormatTable *table = it->field[k].table;
            see_all(p, it->field[k].value);
            for (uint32_t l = 0; table && l < table->n; l++)
                for (uint32_t m = 0; m < table->line[l].n; m++)
                    see(p, table->line[l].name[m]);
        }
        see_items(p, it->n, it->item);
        if (it->kind == ITEM_NAMED && it->at != EXPR_NONE) {
            see(p, it->at);
            see(p, it->size);
        }
    }
}

/* ---- what is known ---- */

typedef struct Unknown {
    const Planner *p;
    uint32_t n, name;
} Unknown;

static void count_unknown(void *context, uint32_t name) {
    Unknown *u = context;
    const ExprName *n = planned_name(u->p, name);
    if (u->p->known[name] || n->kind == EXPR_INDEX || (u->n && u->name == name))
        return;
    u->n++;
    u->name = name;
}

static Unknown unknown_of(const Planner *p, const Expr *e) {
    Unknown u = {p, 0, EXPR_NONE};
    expr_visit(p->names, e, count_unknown, &u);
    return u;
}

static void imply(Planner *p, bool always_only) {
    bool more = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < p->row->n_rules; i++) {
            const FormatRule *rule = &p->row->rule[i];
            if (p->known[rule->name] || (always_only && !rule->always) ||
                unknown_of(p, rule->value).n)
                continue;
            p->known[rule->name] = more = true;
        }
    }
}

static void need(Planner *p, const Expr *e, const char *what) {
    Unknown u = unknown_of(p, e);
    if (u.n)
        diag_error(p->diag, e->loc,
                   "%s: %s is not known yet where a file is read up to here",
                   what, planned_name(p, u.name)->name);
}

static void need_extents(Planner *p, uint32_t vector) {
    const ExprName *name = planned_name(p, vector);
    for (uint32_t i = 0; i < name->n_extents; i++)
        if (name->extent[i])
            need(p, name->extent[i], name->name);
}

/* ---- fields ---- */

static bool all_known(const Planner *p, const FormatTable *table) {
    for (uint32_t i = 0; i < table->n; i++)
        for (uint32_t k = 0; k < table->line[i].n; k++)
            if (!p->known[table->line[i].name[k]])
                return false;
    return true;
}

static void know_table(Planner *p, Field *field) {
    const FormatTable *table = field->table;
    field->how = all_known(p, table) ? FIELD_CHECK : FIELD_TABLE;
    for (uint32_t i = 0; i < table->n; i++)
        for (uint32_t k = 0; k < table->line[i].n; k++)
            p->known[table->line[i].name[k]] = true;
    vec_push(p->arena, &p->tells, field);
}

static const FormatRule *always_rule(const Planner *p, uint32_t name) {
    for (uint32_t i = 0; i < p->row->n_rules; i++)
        if (p->row->rule[i].name == name && p->row->rule[i].always)
            return &p->row->rule[i];
    return NULL;
}

/* False where the field must wait: what the row implies is never told. */
static bool settle(Planner *p, Field *field) {
    if (field->table) {
        know_table(p, field);
        return true;
    }
    Unknown u = unknown_of(p, field->value);
    const ExprBounds declared = {.names = p->names};
    if (u.n > 1 || (u.n && (always_rule(p, u.name) ||
                            !expr_tells(&declared, field->value, u.name))))
        return false;
    field->how = u.n ? FIELD_READ : FIELD_CHECK;
    field->name = u.name;
    if (!u.n)
        return true;
    if (planned_name(p, u.name)->kind == EXPR_VECTOR)
        need_extents(p, u.name);
    p->known[u.name] = true;
    vec_push(p->arena, &p->tells, field);
    return true;
}

static void visit_any(void *context, uint32_t name) {
    (void)name;
    *(bool *)context = true;
}

static void count_known(void *context, uint32_t name) {
    Unknown *u = context;
    u->n += u->p->known[name];
}

/* Would a name be told with the help of others? A field that tells it by itself
 * may come; its value then says whether this one is right. */
static bool leans_on_others(const Planner *p, const Field *field) {
    Unknown u = {p, 0, EXPR_NONE};
    if (!field->value || !unknown_of(p, field->value).n)
        return false;
    expr_visit(p->names, field->value, count_known, &u);
    return u.n > 0;
}

static void plan_field(Planner *p, Field *field) {
    bool any = field->table != NULL;
    if (field->value)
        expr_visit(p->names, field->value, visit_any, &any);
    field->is_constant = !any;
    if (!field->label)
        field->label = field->table ? field->table->name
                       : any ? expr_text(p->arena, p->names, field->value, NULL)
                             : "a constant";
    if ((p->depth || !leans_on_others(p, field)) && settle(p, field))
        imply(p, true);
    else if (p->depth)
        diag_error(p->diag, field->loc,
                   "%s cannot be read back here: not by itself",
                   expr_text(p->arena, p->names, field->value, NULL));
    else
        vec_push(p->arena, &p->pending, field);
}

/* Those that wait, behind item `after`. */
static void settle_pending(Planner *p, uint32_t after) {
    bool more = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < p->pending.n; i++) {
            Field *field = p->pending.at[i];
            if (!field || !settle(p, field))
                continue;
            Late late = {field, after};
            field->late = p->late.n;
            vec_push(p->arena, &p->late, late);
            p->pending.at[i] = NULL;
            imply(p, true);
            more = true;
        }
    }
}

/* ---- items ---- */

static void plan_items(Planner *p, uint32_t n, Item *item);

static void plan_each(Planner *p, Item *item) {
    for (uint32_t i = 0; i < item->n_indices; i++)
        need(p, item->extent[i], "the extent of an index");
    p->depth++;
    plan_items(p, item->n, item->item);
    p->depth--;
}

static void plan_item(Planner *p, Item *item) {
    switch (item->kind) {
    case ITEM_BITS:
        for (uint32_t i = 0; i < item->n_fields; i++)
            plan_field(p, &item->field[i]);
        break;
    case ITEM_FILL:
        need(p, item->count, item->to_multiple ? "align" : "fill");
        if (item->gap != EXPR_NONE)
            p->known[item->gap] = true;
        break;
    case ITEM_EACH:
        plan_each(p, item);
        break;
    case ITEM_WHEN:
        need(p, item->count, "when");
        plan_items(p, item->n, item->item);
        break;
    case ITEM_NAMED:
        if (item->at != EXPR_NONE)
            p->known[item->at] = true;
        plan_items(p, item->n, item->item);
        if (item->size != EXPR_NONE)
            p->known[item->size] = true;
        break;
    case ITEM_NODES:
        p->depth++;
        plan_items(p, item->n, item->item);
        p->depth--;
        break;
    case ITEM_BODY:
        p->known[p->format->body_at] = p->known[p->format->body_size] = true;
        break;
    }
}

static void plan_items(Planner *p, uint32_t n, Item *item) {
    for (uint32_t i = 0; i < n; i++)
        plan_item(p, &item[i]);
}

static bool is_told(const Planner *p, uint32_t name) {
    for (uint32_t i = 0; i < p->tells.n; i++) {
        const Field *field = p->tells.at[i];
        const FormatLine *line = field->table ? field->table->line : NULL;
        if (!field->table && field->how == FIELD_READ && field->name == name)
            return true;
        for (uint32_t k = 0; line && k < line->n; k++)
            if (line->name[k] == name)
                return true;
    }
    for (uint32_t i = 0; i < p->gaps.n; i++)
        if (p->gaps.at[i] == name)
            return true;
    return name == p->format->lacks && p->format->may_lack;
}

/* A default that no field can say otherwise is what always holds. */
static void fix_untold(Planner *p) {
    for (uint32_t i = 0; i < p->row->n_rules; i++) {
        FormatRule *rule = &p->row->rule[i];
        rule->always = rule->always || !is_told(p, rule->name);
    }
}

static void plan_end(Planner *p) {
    p->known[p->format->file_size] = true;
    imply(p, false);
    fix_untold(p);
    settle_pending(p, p->row->n);
    imply(p, false);
    for (uint32_t i = 0; i < p->pending.n; i++) {
        const Field *field = p->pending.at[i];
        if (!field)
            continue;
        Unknown u = unknown_of(p, field->value);
        if (!u.n)
            continue; /* of one that was told already */
        diag_error(p->diag, field->loc,
                   "%s cannot be read back: nothing else tells %s",
                   expr_text(p->arena, p->names, field->value, NULL),
                   planned_name(p, u.name)->name);
        p->known[u.name] = true; /* once is enough */
    }
    for (uint32_t i = 0; i < p->meanings.n + p->vectors.n; i++) {
        uint32_t name = i < p->meanings.n ? p->meanings.at[i]
                                          : p->vectors.at[i - p->meanings.n];
        if (!p->known[name])
            diag_error(p->diag, p->row->loc,
                       "%s needs %s, which no field of it holds and nothing "
                       "implies",
                       p->row->name, planned_name(p, name)->name);
    }
}

/* ---- circles of rules: each could be left out for the other ---- */

typedef struct Circle {
    Planner *p;
    uint8_t *state; /* by rule: 0 new, 1 open, 2 done */
    bool found;
} Circle;

static void follow_rule(Circle *c, uint32_t i);

static void follow_name(void *context, uint32_t name) {
    Circle *c = context;
    for (uint32_t i = 0; i < c->p->row->n_rules && !c->found; i++)
        if (c->p->row->rule[i].name == name)
            follow_rule(c, i);
}

static void follow_rule(Circle *c, uint32_t i) {
    const FormatRule *rule = &c->p->row->rule[i];
    if (c->state[i] == 1) {
        c->found = true;
        diag_error(c->p->diag, rule->loc, "circle: %s depends on itself",
                   planned_name(c->p, rule->name)->name);
    }
    if (c->state[i])
        return;
    c->state[i] = 1;
    expr_visit(c->p->names, rule->value, follow_name, c);
    c->state[i] = 2;
}

static void check_circles(Planner *p) {
    Circle c = {.p = p,
                .state = ARENA_ARRAY(p->arena, uint8_t, p->row->n_rules + 1)};
    for (uint32_t i = 0; i < p->row->n_rules && !c.found; i++)
        follow_rule(&c, i);
}

void format_plan(Arena *arena, Diag *diag, HwFormat *format, ProgRow *row,
                 const ProgRow *outer) {
    uint32_t n = format->names->list.n, errors = diag_errors(diag);
    Planner p = {.arena = arena,
                 .diag = diag,
                 .format = format,
                 .names = format->names,
                 .row = row,
                 .known = ARENA_ARRAY(arena, bool, n),
                 .seen = ARENA_ARRAY(arena, bool, n)};
    for (uint32_t i = 0; outer && i < outer->n_meanings; i++)
        p.known[outer->meaning[i]] = true;
    for (uint32_t i = 0; outer && i < outer->n_vectors; i++)
        p.known[outer->vector[i]] = true;
    if (outer)
        p.known[format->node] = true;
    see_items(&p, row->n, row->item);
    if (!outer && format->may_lack) {
        see(&p, format->lacks);
        p.known[format->lacks] = true;
    }
    for (uint32_t i = 0; i < row->n_rules; i++) {
        see(&p, row->rule[i].name);
        see_all(&p, row->rule[i].value);
    }
    for (uint32_t i = 0; i < row->n_requirements; i++)
        see_all(&p, row->requirement[i]);
    imply(&p, true);
    for (uint32_t i = 0; i < row->n; i++) {
        plan_item(&p, &row->item[i]);
        settle_pending(&p, i);
    }
    plan_end(&p);
    check_circles(&p);
    row->n_meanings = p.meanings.n;
    row->meaning = p.meanings.at;
    row->n_vectors = p.vectors.n;
    row->vector = p.vectors.at;
    row->n_labels = p.labels.n;
    row->label = p.labels.at;
    for (uint32_t i = 0; i < p.tells.n; i++)
        if (p.tells.at[i]->table)
            vec_push(arena, &p.tables, p.tells.at[i]->table);
    row->n_tables = p.tables.n;
    row->table = p.tables.at;
    row->n_gaps = p.gaps.n;
    row->gap = p.gaps.at;
    row->n_late = p.late.n;
    row->late = p.late.at;
    if (diag_errors(diag) == errors)
        format_plan_ranges(&p);
    if (diag_errors(diag) > errors)
        return;
    format_check_ranges(&p);
}
