/* run.c - the walk through a machine's file; see sim/program.h. */
#include "sim/program/run.h"

#include <stdarg.h>
#include <string.h>

/* ---- the file's inputs and outputs ---- */

static uint32_t count_of(const Program *program, const char *name) {
    enum { MOST = 1 << 10 };
    int64_t n = prog_num(&program->scope, name, 0);
    return n < 0 || n > MOST ? 0 : (uint32_t)n;
}

uint32_t program_inputs(const Program *program) {
    return count_of(program, "inputs");
}

static uint32_t extent_of(const Program *program, const char *axis,
                          uint32_t i) {
    const ProgVector *v = prog_vector(&program->scope, axis);
    int64_t n = v && i < v->n ? prog_at(v, i) : 1;
    return n < 1 || n > UINT16_MAX ? 0 : (uint32_t)n;
}

ProgramInput program_input(const Program *program, uint32_t i) {
    const ProgVector *type = prog_vector(&program->scope, "input.type");
    return (ProgramInput){
        extent_of(program, "input.n", i), extent_of(program, "input.c", i),
        extent_of(program, "input.h", i), extent_of(program, "input.w", i),
        type && i < type->n && prog_at(type, i) == 0};
}

/* Codes are placed as volumes of the range's memory, reals byte by byte. */
static bool put_input(ProgramRun *run, uint32_t i, const ProgramBytes *from) {
    ProgramInput in = program_input(run->program, i);
    uint64_t n = (uint64_t)in.n * in.c * in.h * in.w * (in.reals ? 4 : 1);
    Operand o;
    Cells cells;
    if (!operand_at(run, &run->program->scope, "input", i, &o))
        return false;
    if (from->n != n)
        return prog_fault(run, "input %u has %llu bytes: %llu are needed", i,
                          (unsigned long long)from->n, (unsigned long long)n);
    Volume v = {in.c, in.h, in.w, {0}};
    bool ok =
        o.reals ? cells_flat(run, o.what, o.bank, o.start, n, &cells)
                : cells_volume(run, o.what, o.bank, o.start, in.n, &v, &cells);
    if (ok && cells.end - cells.start != o.size)
        return prog_fault(run, "input %u takes %llu bytes, its range has %llu",
                          i, (unsigned long long)(cells.end - cells.start),
                          (unsigned long long)o.size);
    if (!ok)
        return false;
    cells.shaped &= run->spec->memory[o.bank].role == HW_ACTIVE;
    cells_write(run, &cells, arena_printf(run->arena, "input %u", i), from->at);
    return true;
}

static ProgramOutput take_output(ProgramRun *run, uint32_t i) {
    Operand o;
    ProgramOutput out = {{NULL, 0}, false};
    if (!operand_at(run, &run->program->scope, "output", i, &o))
        return out;
    const uint8_t *at = operand_bytes(run, &o);
    if (at)
        out = (ProgramOutput){
            {ARENA_COPY(run->arena, uint8_t, at, o.size), o.size}, o.reals};
    return out;
}

/* ---- memories ---- */

/* A memory of constants is the file's; of any other the file may say how many
 * bytes it uses: `NAME.bytes`. */
static void open_banks(ProgramRun *run) {
    const HwSpec *spec = run->spec;
    const ProgScope *scope = &run->program->scope;
    run->bank = ARENA_ARRAY(run->arena, Bank, spec->n_memories);
    for (uint32_t i = 0; i < spec->n_memories; i++) {
        const HwMemory *m = &spec->memory[i];
        Bank *bank = &run->bank[i];
        const ProgVector *v =
            m->role == HW_CONSTANTS ? prog_vector(scope, "constants") : NULL;
        int64_t said =
            prog_num(scope, arena_printf(run->work, "%s.bytes", m->name), -1);
        *bank = (Bank){.memory = m, .size = m->size};
        if (m->role == HW_CONSTANTS)
            bank->size = v ? v->n : 0;
        else if (said >= 0 && (uint64_t)said <= m->size)
            bank->size = (uint64_t)said;
        else if (said >= 0)
            prog_fault(run, "it uses %lld bytes of %s, which has %llu",
                       (long long)said, m->name, (unsigned long long)m->size);
        Cells cells;
        if (!v || !v->n || !cells_flat(run, "constants", i, 0, v->n, &cells))
            continue;
        uint8_t *bytes = ARENA_ARRAY(run->work, uint8_t, v->n);
        for (uint32_t k = 0; k < v->n; k++)
            bytes[k] = (uint8_t)prog_at(v, k);
        cells_write(run, &cells, "constants", bytes);
    }
}

/* ---- nodes ---- */

static ProgramHost *host_of(const char *op) {
    static const ProgramHostRow *const lists[] = {prog_moves, prog_codes,
                                                  prog_reals};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (const ProgramHostRow *row = lists[k]; row->op; row++)
            if (!strcmp(row->op, op))
                return row->run;
    return NULL;
}

/* What a node of a processor left in its range. */
static void describe(ProgramRun *run, Made *made) {
    Operand o;
    Cells cells;
    if (!operand_of(run, node_scope(run), "out", &o) ||
        !cells_flat(run, "out", o.bank, o.start, o.size, &cells))
        return;
    made->crc = cells_crc(run, o.bank, o.start, o.size);
    made->text = arena_printf(
        run->arena, "%llu bytes at %llu of %s", (unsigned long long)o.size,
        (unsigned long long)o.start, run->spec->memory[o.bank].name);
}

static bool is_conv(const char *op) {
    return !strcmp(op, hw_op_name[HW_OP_CONV]) ||
           !strcmp(op, hw_op_name[HW_OP_CONV_DEPTHWISE]);
}

/* The range that the node says, if it says one. */
static bool cells_said(ProgramRun *run, const char *name, Cells *out) {
    Operand o;
    int64_t ignored;
    return prog_get(node_scope(run), arena_printf(run->work, "%s.memory", name),
                    &ignored) &&
           operand_of(run, node_scope(run), name, &o) &&
           cells_flat(run, name, o.bank, o.start, o.size, out);
}

static void check_apart(ProgramRun *run) {
    Cells in, out;
    if (!cells_said(run, "out", &out))
        return;
    if (cells_said(run, "in", &in))
        cells_apart(run, &in, &out);
    if (cells_said(run, "in2", &in))
        cells_apart(run, &in, &out);
}

static bool run_node(ProgramRun *run, Made *made) {
    const char *const *op = prog_row_ops(run->program->node[run->node].row);
    if (*op && is_conv(*op))
        return engine_conv(run, made);
    ProgramHost *host = *op ? host_of(*op) : NULL;
    if (!host)
        return prog_fault(run, "nobody runs `%s`", *op ? *op : "");
    check_apart(run);
    if (!host(run))
        return false;
    describe(run, made);
    return true;
}

static const ProgramStep *run_nodes(ProgramRun *run, Diag *diag) {
    uint32_t n = run->program->n_nodes;
    ProgramStep *step = ARENA_ARRAY(run->arena, ProgramStep, n + 1);
    for (run->node = 0; run->node < n; run->node++) {
        Made made = {"", 0};
        arena_reset(run->work);
        bool ran = run_node(run, &made);
        const ProgNode *node = &run->program->node[run->node];
        ProgramStep *at = &step[run->node];
        *at = (ProgramStep){.row = prog_row_name(node->row),
                            .result = made.text,
                            .crc = made.crc,
                            .ran = ran};
        at->priced =
            program_seconds(run->work, diag, run->program, node, &at->seconds);
    }
    return step;
}

static ProgramResult *finish(ProgramRun *run, const ProgramStep *step) {
    ProgramResult *result = ARENA_NEW(run->arena, ProgramResult);
    uint32_t n = count_of(run->program, "outputs");
    ProgramOutput *output = ARENA_ARRAY(run->arena, ProgramOutput, n);
    uint64_t *touched =
        ARENA_ARRAY(run->arena, uint64_t, run->spec->n_memories);
    arena_reset(run->work);
    for (uint32_t i = 0; i < n; i++)
        output[i] = take_output(run, i);
    for (uint32_t i = 0; i < run->spec->n_memories; i++)
        touched[i] = run->bank[i].touched;
    *result = (ProgramResult){.n_steps = run->program->n_nodes,
                              .step = step,
                              .n_outputs = n,
                              .output = output,
                              .n_faults = run->n_faults,
                              .fault = run->faults.at,
                              .n_memories = run->spec->n_memories,
                              .touched = touched};
    for (uint32_t i = 0; i < result->n_steps; i++) {
        result->n_priced += step[i].priced;
        result->seconds += step[i].seconds;
    }
    return result;
}

const ProgramResult *program_run(Arena *arena, Diag *diag,
                                 const Program *program, uint32_t n_inputs,
                                 const ProgramBytes *input) {
    ProgramRun run = {.arena = arena,
                      .work = arena_new("node"),
                      .program = program,
                      .spec = program->spec,
                      .node = program->n_nodes};
    open_banks(&run);
    for (uint32_t i = 0; i < n_inputs; i++)
        put_input(&run, i, &input[i]);
    uint32_t n = program_inputs(program);
    if (n_inputs != n)
        prog_fault(&run, "%u inputs are given, it has %u", n_inputs, n);
    for (uint32_t i = 0; i < run.faults.n; i++)
        diag_error(diag, (Loc){0}, "%s", run.faults.at[i]);
    const ProgramResult *result =
        run.n_faults ? NULL : finish(&run, run_nodes(&run, diag));
    arena_free(run.work);
    return result;
}
