/* operand.c - what nodes say, checked; see run.h.
 *
 * Input: meanings of a node. Output: numbers in their ranges, ranges of
 * memories. A file may say anything: every number is looked at before it is
 * used.
 */
#include "sim/program/run.h"

#include <string.h>

const ProgScope *node_scope(const ProgramRun *run) {
    return &run->program->node[run->node].scope;
}

bool node_num(ProgramRun *run, const char *name, int64_t lo, int64_t hi,
              int64_t *out) {
    if (!prog_get(node_scope(run), name, out))
        return prog_fault(run, "it does not say %s", name);
    if (*out >= lo && *out <= hi)
        return true;
    return prog_fault(run, "%s is %lld: not in %lld..%lld", name,
                      (long long)*out, (long long)lo, (long long)hi);
}

bool node_opt(ProgramRun *run, const char *name, int64_t lo, int64_t hi,
              int64_t absent, int64_t *out) {
    int64_t ignored;
    *out = absent;
    return !prog_get(node_scope(run), name, &ignored) ||
           node_num(run, name, lo, hi, out);
}

static float as_real(int64_t bits) {
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

float node_real(ProgramRun *run, const char *name) {
    int64_t bits = 0;
    node_num(run, name, INT64_MIN, INT64_MAX, &bits);
    return as_real(bits);
}

const int64_t *node_nums(ProgramRun *run, const char *name, uint64_t n) {
    const ProgVector *v = prog_vector(node_scope(run), name);
    if (!v || v->n != n) {
        prog_fault(run, "it has %u of %s: %llu are needed", v ? v->n : 0, name,
                   (unsigned long long)n);
        return NULL;
    }
    int64_t *out = ARENA_ARRAY(run->work, int64_t, n);
    for (uint32_t i = 0; i < n; i++)
        out[i] = prog_at(v, i);
    return out;
}

const float *node_reals(ProgramRun *run, const char *name, uint64_t n) {
    const int64_t *bits = node_nums(run, name, n);
    float *out = bits ? ARENA_ARRAY(run->work, float, n) : NULL;
    for (uint64_t i = 0; bits && i < n; i++)
        out[i] = as_real(bits[i]);
    return out;
}

const char *node_word(ProgramRun *run, const char *name) {
    const char *word = prog_word(run->program, node_scope(run), name);
    return word ? word : "";
}

/* ---- ranges ---- */

enum { TYPE_REALS, TYPE_CODES, TYPES };

/* One of the range's numbers: a meaning, or an element of a vector. */
static bool part_of(ProgramRun *run, const ProgScope *scope, const char *name,
                    const char *part, const uint32_t *i, uint64_t *out) {
    const char *full = arena_printf(run->work, "%s.%s", name, part);
    const ProgVector *v = i ? prog_vector(scope, full) : NULL;
    int64_t value = 0;
    bool there = i ? v && *i < v->n : prog_get(scope, full, &value);
    if (!there)
        return prog_fault(run, "it does not say %s", full);
    if (i)
        value = prog_at(v, *i);
    if (value < 0)
        return prog_fault(run, "%s is %lld", full, (long long)value);
    *out = (uint64_t)value;
    return true;
}

static bool find_bank(ProgramRun *run, const char *name, uint64_t id,
                      uint32_t *out) {
    for (uint32_t i = 0; i < run->spec->n_memories; i++)
        if (run->spec->memory[i].id == id) {
            *out = i;
            return true;
        }
    return prog_fault(run, "%s: no memory has the number %llu", name,
                      (unsigned long long)id);
}

static bool range_of(ProgramRun *run, const ProgScope *scope, const char *name,
                     const uint32_t *i, Operand *out) {
    uint64_t id, type;
    *out = (Operand){.what = name};
    if (!part_of(run, scope, name, "memory", i, &id) ||
        !part_of(run, scope, name, "type", i, &type) ||
        !part_of(run, scope, name, "start", i, &out->start) ||
        !part_of(run, scope, name, "size", i, &out->size) ||
        !find_bank(run, name, id, &out->bank))
        return false;
    if (type >= TYPES)
        return prog_fault(run, "%s: %llu is no type of elements", name,
                          (unsigned long long)type);
    out->reals = type == TYPE_REALS;
    Cells inside;
    if (!cells_flat(run, name, out->bank, out->start, out->size, &inside))
        return false;
    if (out->size % operand_unit(out))
        return prog_fault(run, "%s: %llu bytes are no reals", name,
                          (unsigned long long)out->size);
    return true;
}

bool operand_of(ProgramRun *run, const ProgScope *scope, const char *name,
                Operand *out) {
    return range_of(run, scope, name, NULL, out);
}

bool operand_at(ProgramRun *run, const ProgScope *scope, const char *name,
                uint32_t i, Operand *out) {
    bool ok = range_of(run, scope, name, &i, out);
    out->what = arena_printf(run->work, "%s[%u]", name, i);
    return ok;
}

/* ---- shapes ---- */

bool dims_of(ProgramRun *run, const char *name, Dims *out) {
    static const char *const axis[] = {"n", "c", "h", "w"};
    enum { MOST = 1 << 16 };
    for (int i = 0; i < 4; i++) {
        int64_t extent;
        if (!node_num(run, arena_printf(run->work, "%s.%s", name, axis[i]), 1,
                      MOST, &extent))
            return false;
        out->at[i] = (uint32_t)extent;
    }
    return true;
}

bool dims_fill(ProgramRun *run, const Dims *d, const Operand *o) {
    uint64_t n = dims_count(d);
    if (d->at[0] && n == operand_count(o))
        return true;
    return prog_fault(
        run, "%s: %ux%ux%ux%u are %llu elements, its range has %llu", o->what,
        d->at[0], d->at[1], d->at[2], d->at[3], (unsigned long long)n,
        (unsigned long long)operand_count(o));
}

/* ---- values ---- */

uint8_t *operand_bytes(ProgramRun *run, const Operand *o) {
    Cells cells;
    if (!cells_flat(run, o->what, o->bank, o->start, o->size, &cells))
        return NULL;
    return cells_read(run, &cells);
}

float *operand_reals(ProgramRun *run, const Operand *o) {
    if (!o->reals) {
        prog_fault(run, "%s: reals are needed, these are codes", o->what);
        return NULL;
    }
    const uint8_t *bytes = operand_bytes(run, o);
    if (!bytes)
        return NULL;
    float *out = ARENA_ARRAY(run->work, float, operand_count(o));
    memcpy(out, bytes, o->size);
    return out;
}

bool result_write(ProgramRun *run, const Operand *o, const void *from) {
    Cells cells;
    if (!cells_flat(run, o->what, o->bank, o->start, o->size, &cells))
        return false;
    const ProgRow *row = run->program->node[run->node].row;
    cells_write(
        run, &cells,
        arena_printf(run->arena, "node %u (%s)", run->node, prog_row_name(row)),
        from);
    return true;
}
