/* cmd_check.c - is a hwspec right, and what machine does it describe. */
#include "driver/commands.h"
#include "driver/makes.h"

#include "base/guard.h"
#include "base/text.h"
#include "filegen/filegen.h"
#include "hwspec/insn.h"
#include "hwspec/program.h"
#include "lanes/lanes.h"

static void print_lanes(Arena *arena, const LaneMachine *m) {
    say("lanes   %u, instances of %s bytes for %u each; %u columns, %u "
        "layers\n",
        m->lanes, with_commas(arena, m->bank_bytes), m->bank, m->columns,
        m->layers);
    say("        %u rules, %u registers a layer and quadrant\n", m->n_rules,
        m->n_registers);
}

static cJSON *lanes_json(const LaneMachine *m) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "count", m->lanes);
    cJSON_AddNumberToObject(json, "bank_bytes", m->bank_bytes);
    cJSON_AddNumberToObject(json, "columns", m->columns);
    cJSON_AddNumberToObject(json, "layers", m->layers);
    cJSON_AddNumberToObject(json, "rules", m->n_rules);
    cJSON_AddNumberToObject(json, "registers", m->n_registers);
    return json;
}

static void print_machine(Arena *arena, const HwSpec *spec) {
    say("%s: %.0f MHz, %u-byte elements\n", spec->machine, spec->clock / 1e6,
        spec->element);
    for (uint32_t i = 0; i < spec->n_memories; i++) {
        const HwMemory *m = &spec->memory[i];
        say("memory  %-10s %-8s %16s bytes, align %u, unit %u, layout %s\n",
            m->name, hw_role_name[m->role], with_commas(arena, m->size),
            m->align, m->unit, m->layout->name);
    }
    if (hwspec_cores(spec) > 1)
        say("cores   %u; of shared memories the parts of one are above\n",
            hwspec_cores(spec));
    for (uint32_t i = 0; i < spec->n_engines; i++) {
        const HwEngine *engine = &spec->engine[i];
        say("engine  %-10s", engine->name);
        for (uint32_t op = 0; op < HW_OP_COUNT; op++)
            if (engine->ops >> op & 1)
                say(" %s", hw_op_name[op]);
        say("\n");
    }
    for (uint32_t i = 0; i < spec->n_dmas; i++) {
        say("dma     %-10s", spec->dma[i].name);
        for (uint32_t op = 0; op < HW_OP_COUNT; op++)
            if (spec->dma[i].ops >> op & 1)
                say(" %s", hw_op_name[op]);
        say("\n");
    }
    say("insns  ");
    for (uint32_t i = 0; i < spec->insns->n; i++)
        say(" %s", spec->insns->row[i].mnemonic);
    for (uint32_t i = 0; program_row_at(spec, i); i++)
        say(" %s", prog_row_name(program_row_at(spec, i)));
    say("\n");
}

/* ---- tokens that nothing is known of ---- */

/* Why a token is not judged, or is not always. */
typedef enum Excuse { EXCUSE_UNREAD, EXCUSE_LATER, EXCUSE_FREE } Excuse;
static const char *const excuse_name[] = {"unread", "later", "free", NULL};

static bool has_excuse(const HwToken *token, Excuse excuse) {
    return excuse == EXCUSE_UNREAD  ? token->unread
           : excuse == EXCUSE_LATER ? token->later
                                    : token->free;
}

/* Of the row's texts, each once. */
static bool is_listed_before(const HwRow *row, uint32_t form, uint32_t token) {
    const char *name = row->form[form].token[token].name;
    for (uint32_t i = 0; i < form; i++)
        if (insn_token(&row->form[i], name) >= 0)
            return true;
    return false;
}

/* To the list, or where there is none to the text. */
static void add_excused(const HwRow *row, Excuse excuse, cJSON *names,
                        Text *text) {
    for (uint32_t i = 0; i < row->n_forms; i++)
        for (uint32_t t = 0; t < row->form[i].n; t++) {
            const HwToken *token = &row->form[i].token[t];
            if (!has_excuse(token, excuse) || is_listed_before(row, i, t))
                continue;
            if (names)
                cJSON_AddItemToArray(names, cJSON_CreateString(token->name));
            else
                text_addf(text, " %s", token->name);
        }
}

static cJSON *excused_json(const HwSpec *spec, Excuse excuse) {
    cJSON *json = cJSON_CreateObject();
    for (uint32_t i = 0; i < spec->insns->n; i++) {
        const HwRow *row = &spec->insns->row[i];
        add_excused(row, excuse, cJSON_AddArrayToObject(json, row->mnemonic),
                    NULL);
    }
    return json;
}

static void print_excused(Arena *arena, const HwSpec *spec) {
    uint32_t rows = 0;
    for (int excuse = 0; excuse_name[excuse]; excuse++)
        for (uint32_t i = 0; i < spec->insns->n; i++) {
            const HwRow *row = &spec->insns->row[i];
            Text text = text_new(arena);
            add_excused(row, (Excuse)excuse, NULL, &text);
            if (!*text_str(&text))
                continue;
            say("%-7s %s:%s\n", excuse_name[excuse], row->mnemonic,
                text_str(&text));
            rows++;
        }
    if (!rows)
        say("unread  none: every token of %s is executed, or follows from "
            "others\n",
            spec->machine);
}

/* What compile makes of networks for the machine; NULL: nothing. */
static const char *made_by_compile(const HwSpec *spec) {
    switch (machine_makes(spec)) {
    case MAKES_LISTING:
        return spec->insns->n ? "listing" : NULL;
    case MAKES_FILE:
        return filegen_can(spec) ? "file" : NULL;
    case MAKES_DESCRIPTION:
        return "description";
    case MAKES_WORDS:
        return "words";
    }
    return NULL;
}

static cJSON *machine_json(const HwSpec *spec) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", true);
    cJSON_AddStringToObject(json, "machine", spec->machine);
    cJSON_AddNumberToObject(json, "clock", spec->clock);
    cJSON_AddNumberToObject(json, "element", spec->element);
    if (made_by_compile(spec))
        cJSON_AddStringToObject(json, "compiles", made_by_compile(spec));
    else
        cJSON_AddNullToObject(json, "compiles");
    cJSON *memories = cJSON_AddObjectToObject(json, "memories");
    for (uint32_t i = 0; i < spec->n_memories; i++) {
        const HwMemory *m = &spec->memory[i];
        cJSON *item = cJSON_AddObjectToObject(memories, m->name);
        cJSON_AddStringToObject(item, "role", hw_role_name[m->role]);
        cJSON_AddNumberToObject(item, "size", (double)m->size);
        cJSON_AddNumberToObject(item, "align", m->align);
    }
    cJSON *engines = cJSON_AddObjectToObject(json, "engines");
    for (uint32_t i = 0; i < spec->n_engines; i++) {
        cJSON *ops = cJSON_AddArrayToObject(engines, spec->engine[i].name);
        for (uint32_t op = 0; op < HW_OP_COUNT; op++)
            if (spec->engine[i].ops >> op & 1)
                cJSON_AddItemToArray(ops, cJSON_CreateString(hw_op_name[op]));
    }
    cJSON *rows = cJSON_AddArrayToObject(json, "instructions");
    for (uint32_t i = 0; i < spec->insns->n; i++)
        cJSON_AddItemToArray(rows,
                             cJSON_CreateString(spec->insns->row[i].mnemonic));
    for (uint32_t i = 0; program_row_at(spec, i); i++)
        cJSON_AddItemToArray(
            rows, cJSON_CreateString(prog_row_name(program_row_at(spec, i))));
    return json;
}

static ExitCode explain(Arena *arena, Diag *diag, const HwSpec *spec) {
    if (!program_has(spec)) {
        diag_error(diag, spec->loc, "%s has no container: nothing to explain",
                   spec->machine);
        return EXIT_BAD_INPUT;
    }
    Text text = text_new(arena);
    program_explain(&text, spec);
    say_lines(guard_out(), text_str(&text));
    return EXIT_FINE;
}

ExitCode cmd_check(Arena *arena, Diag *diag, const Options *options) {
    const CheckArgs *own = options->own;
    const HwSpec *spec = hwspec_load(arena, diag, options->file,
                                     options->settings.n, options->settings.at);
    const LaneMachine *lanes =
        spec && lanes_has(spec) ? lanes_machine(arena, diag, spec) : NULL;
    if (!spec || (lanes_has(spec) && !lanes))
        return EXIT_BAD_INPUT;
    if (options->json) {
        cJSON *json = machine_json(spec);
        if (lanes)
            cJSON_AddItemToObject(json, "lanes", lanes_json(lanes));
        for (int i = 0; own->unread && excuse_name[i]; i++)
            cJSON_AddItemToObject(json, excuse_name[i],
                                  excused_json(spec, (Excuse)i));
        print_json(arena, options, json);
    } else if (own->explain) {
        return explain(arena, diag, spec);
    } else if (own->unread) {
        print_excused(arena, spec);
    } else {
        print_machine(arena, spec);
        if (lanes)
            print_lanes(arena, lanes);
    }
    return EXIT_FINE;
}
