/* cmd_check.c - is a hwspec right, and what machine does it describe. */
#include "driver/commands.h"

#include "hwspec/insn.h"

static const char *const role_name[] = {"active", "backing", "input", "output",
                                        "constants"};

static void print_machine(Arena *arena, const HwSpec *spec) {
    say("%s: %.0f MHz, %u-byte elements\n", spec->machine, spec->clock / 1e6,
        spec->element);
    for (uint32_t i = 0; i < spec->n_memories; i++) {
        const HwMemory *m = &spec->memory[i];
        say("memory  %-10s %-8s %16s bytes, align %u, unit %u, layout %s\n",
            m->name, role_name[m->role], with_commas(arena, m->size), m->align,
            m->unit, m->layout->name);
    }
    for (uint32_t i = 0; i < spec->n_engines; i++) {
        const HwEngine *engine = &spec->engine[i];
        say("engine  %-10s", engine->name);
        for (uint32_t op = 0; op < HW_OP_COUNT; op++)
            if (engine->ops >> op & 1)
                say(" %s", hw_op_name[op]);
        puts("");
    }
    say("insns  ");
    for (uint32_t i = 0; i < spec->insns->n; i++)
        say(" %s", spec->insns->row[i].mnemonic);
    puts("");
}

static cJSON *machine_json(const HwSpec *spec) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", true);
    cJSON_AddStringToObject(json, "machine", spec->machine);
    cJSON_AddNumberToObject(json, "clock", spec->clock);
    cJSON_AddNumberToObject(json, "element", spec->element);
    cJSON *memories = cJSON_AddObjectToObject(json, "memories");
    for (uint32_t i = 0; i < spec->n_memories; i++) {
        const HwMemory *m = &spec->memory[i];
        cJSON *item = cJSON_AddObjectToObject(memories, m->name);
        cJSON_AddStringToObject(item, "role", role_name[m->role]);
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
    return json;
}

ExitCode cmd_check(Arena *arena, Diag *diag, const Options *options) {
    const HwSpec *spec = hwspec_load(arena, diag, options->file,
                                     options->n_settings, options->settings);
    if (!spec)
        return EXIT_BAD_INPUT;
    if (options->json)
        print_json(arena, machine_json(spec));
    else
        print_machine(arena, spec);
    return EXIT_FINE;
}
