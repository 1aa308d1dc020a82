/* word_run.c - verdicts on runs of words; see word_run.h. */
#include "driver/word_run.h"

#include "driver/commands.h"

void word_run_compared(WordRun *run, const WordCodes *codes) {
    run->compared++;
    run->all.codes += codes->codes;
    run->all.wrong += codes->wrong;
    if (codes->wrong && !run->first.layer)
        run->first = *codes;
}

void word_run_did(WordRun *run, const DoesResult *done, int32_t backing) {
    run->instructions += done->done;
    run->read += done->memory[backing].read;
    run->written += done->memory[backing].written;
    run->cycles = done->cycles < 0 ? -1 : run->cycles + done->cycles;
    run->fault = done->failed;
    run->at = done->at;
}

bool word_run_right(const WordRun *run) {
    return !run->fault && !run->all.wrong && run->compared &&
           !run->token_faults && run->whole;
}

cJSON *word_run_json(const WordRun *run, const Pipeline *p) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", word_run_right(run));
    cJSON_AddStringToObject(json, "network", p->graph->name);
    cJSON_AddStringToObject(json, "machine", p->spec->machine);
    cJSON_AddNumberToObject(json, "instructions", (double)run->instructions);
    return json;
}

void word_run_json_values(const WordRun *run, cJSON *json) {
    char key[64];
    snprintf(key, sizeof key, "%s_compared", run->what);
    cJSON_AddNumberToObject(json, key, run->compared);
    snprintf(key, sizeof key, "%s_without_values", run->what);
    cJSON_AddNumberToObject(json, key, run->unknown);
    cJSON_AddNumberToObject(json, "codes", (double)run->all.codes);
    cJSON_AddNumberToObject(json, "codes_wrong", (double)run->all.wrong);
}

void word_run_json_end(const WordRun *run, const Roundings *rounded,
                       cJSON *json) {
    if (run->fault)
        cJSON_AddStringToObject(json, "fault", run->fault);
    if (run->first.layer)
        cJSON_AddStringToObject(json, "first_wrong", run->first.layer);
    if (rounded->n)
        cJSON_AddItemToObject(json, "rounding", roundings_json(rounded));
}

void word_run_print(Arena *arena, const WordRun *run, const char *compared) {
    const WordCodes *first = &run->first;
    say("values  %s codes of %u %s compared, %s\n",
        with_commas(arena, run->all.codes), run->compared, compared,
        run->all.wrong ? arena_printf(arena, "%s WRONG",
                                      with_commas(arena, run->all.wrong))
                       : "all equal");
    if (!first->layer)
        return;
    say("first   %s", first->layer);
    if (first->insn)
        say(", instruction %u of the listing", first->insn);
    say(": %s of %s codes, by up to %g\n", with_commas(arena, first->wrong),
        with_commas(arena, first->codes), first->most);
}

void word_run_print_fault(Arena *arena, const WordRun *run) {
    if (run->fault)
        say("fault   at instruction %s: %s (%s:%u)\n",
            with_commas(arena, run->instructions), run->fault, run->at.file,
            run->at.line);
}

bool word_wanted(Arena *arena, Diag *diag, const Options *options,
                 const Pipeline *p, WordWanted *out) {
    out->inputs = read_inputs(arena, diag, options, p->original);
    if (!out->inputs)
        return false;
    evaluate(arena, p->original, out->inputs, &out->reference);
    out->rounded = roundings_of(arena, p, out->inputs, out->reference);
    return true;
}
