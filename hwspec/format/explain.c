/* explain.c - for people who describe a machine: how each field of each row is
 * read back, and what its meanings can be. */
#include "hwspec/format/format.h"

typedef struct Tally {
    uint32_t fields, read, derived, constant;
} Tally;

typedef struct Explainer {
    Text *text;
    Arena *arena;
    const HwFormat *format;
    const ProgRow *row;
    Tally tally;
    bool counts; /* do not write, count */
} Explainer;

static const char *bits_text(const Explainer *e, const Item *item,
                             const Field *field) {
    const Part *part = &item->part[field->part];
    if (!part->name)
        return arena_printf(e->arena, "%s%u", field->is_signed ? "s" : "u",
                            field->width);
    if (field->width == 1)
        return arena_printf(e->arena, "%s.%u", part->name, field->lo);
    return arena_printf(e->arena, "%s.%u..%u", part->name, field->lo,
                        field->lo + field->width - 1);
}

static void write_domain(const Explainer *e, const char *before,
                         uint32_t name) {
    text_addf(e->text, "%s%s: %s", before, e->format->names->list.at[name].name,
              expr_domain_text(e->arena, &e->row->domain[name]));
}

static void write_reading(const Explainer *e, const Field *field) {
    const FormatLine *line = field->table ? field->table->line : NULL;
    if (field->table) {
        text_addf(e->text, "table %s:", field->table->name);
        for (uint32_t i = 0; line && i < line->n; i++)
            write_domain(e, i ? ", " : " ", line->name[i]);
        return;
    }
    const char *text =
        expr_text(e->arena, e->format->names, field->value, NULL);
    text_addf(e->text, "%s %s",
              field->is_constant          ? "is"
              : field->how == FIELD_CHECK ? "derived from"
                                          : "read from",
              text);
    if (field->how == FIELD_READ)
        write_domain(e, "; ", field->name);
    if (field->how == FIELD_READ && field->is_signed)
        text_add(e->text, ", signed");
}

static void tell_field(Explainer *e, const Item *item, const Field *field) {
    Tally *t = &e->tally;
    t->fields++;
    t->constant += field->is_constant;
    t->read += !field->is_constant && field->how != FIELD_CHECK;
    t->derived += !field->is_constant && field->how == FIELD_CHECK;
    if (e->counts)
        return;
    bool named = item->part[field->part].name &&
                 (!field->value || field->label[0] != item->part->name[0]);
    text_addf(e->text, "  %-11s %-20s ", bits_text(e, item, field),
              named ? field->label : "");
    write_reading(e, field);
    text_add(e->text, "\n");
}

static void tell_items(Explainer *e, uint32_t n, const Item *item) {
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < item[i].n_fields; k++)
            tell_field(e, &item[i], &item[i].field[k]);
        tell_items(e, item[i].n, item[i].item);
    }
}

static void tell_row(Explainer *e, const ProgRow *row) {
    e->row = row;
    e->tally = (Tally){0};
    e->counts = true;
    tell_items(e, row->n, row->item);
    text_addf(e->text, "%s: %u fields: %u read, %u derived, %u constant\n",
              row->name, e->tally.fields, e->tally.read, e->tally.derived,
              e->tally.constant);
    e->counts = false;
    tell_items(e, row->n, row->item);
    for (uint32_t i = 0; i < row->n_rules; i++)
        text_addf(
            e->text, "  %-11s %s = %s\n",
            row->rule[i].always ? "implied" : "default",
            e->format->names->list.at[row->rule[i].name].name,
            expr_text(e->arena, e->format->names, row->rule[i].value, NULL));
}

void program_explain(Text *text, const HwSpec *spec) {
    const HwFormat *format = spec->format;
    Arena *arena = arena_new("explain");
    Explainer e = {.text = text, .arena = arena, .format = format};
    tell_row(&e, &format->file);
    for (uint32_t i = 0; i < format->n_rows; i++)
        tell_row(&e, &format->row[i]);
    arena_free(arena);
}
