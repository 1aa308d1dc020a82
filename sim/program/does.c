/* does.c - instructions whose rows say what they do, step by step.
 *
 * Input: a Program of a machine with `templates`, and the image of its backing
 * memory. Output: that memory afterwards, bytes read and written of each
 * memory, and what is wrong. The steps are data (hwspec/template.h); here are
 * only memories and numbers: rows of them moved, scaled, added, multiplied.
 */
#include "sim/does.h"

#include "hwspec/template.h"

#include <math.h>
#include <string.h>

typedef struct Cellar {
    uint8_t *byte;
    uint64_t size;
    DoesMemory count;
} Cellar;

typedef struct Does {
    Cellar *memory;
} Does;

/* ---- numbers ---- */

static float float_of(int64_t bits) {
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static int64_t bits_of(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static int64_t whole(float y) {
    return y >= 9.2e18F    ? INT64_MAX
           : y <= -9.2e18F ? INT64_MIN
           : y == y        ? (int64_t)y
                           : 0;
}

/* Half to even. With a carry the next number is found by adding 1 in floats,
 * which rounds up just below powers of two. */
static int64_t round_even(float y, bool carry) {
    if (!carry)
        return whole(rintf(y));
    int64_t i = whole(y), n = whole(y < 0 ? y - 1.0F : y + 1.0F);
    float f = fabsf(y - (float)i);
    if (f == 0.5F)
        return i & 1 ? n : i;
    return f < 0.5F ? i : n;
}

static int64_t shift_down(int64_t x, int64_t shift, TplRound round) {
    if (shift <= 0 || shift > 31)
        return x;
    int64_t down = x >> shift, rest = x - down * (INT64_C(1) << shift);
    int64_t half = INT64_C(1) << (shift - 1);
    if (round == TPL_FLOOR)
        return down;
    return down + (rest > half ||
                   (rest == half && (round == TPL_HALF_UP || (down & 1))));
}

/* Numbers of so many bits, with a sign or without. */
static int64_t held(int64_t x, uint32_t bits, bool is_unsigned) {
    int64_t most = INT64_C(1) << (is_unsigned ? bits : bits - 1);
    int64_t least = is_unsigned ? 0 : -most;
    return x >= most ? most - 1 : x < least ? least : x;
}

/* ---- views ---- */

typedef struct View {
    Cellar *memory;
    bool there;
    TplType type;
    int64_t at, row, column;
} View;

static bool open_view(TemplateRun *run, const TplStep *step, int which,
                      View *out) {
    const TplView *v = &step->view[which];
    Does *does = run->context;
    int64_t when;
    *out = (View){.type = v->type, .there = v->there};
    if (!v->there)
        return true;
    if (!template_eval(run, v->when, 1, &when))
        return false;
    out->there = when != 0;
    int64_t chosen;
    if (!template_eval(run, v->which, 0, &chosen))
        return false;
    if (chosen < 0 || chosen >= v->n)
        return template_fail(run, step->loc, "there is no such memory");
    out->memory = &does->memory[v->memory[chosen]];
    return !when ||
           (template_eval(run, v->at, 0, &out->at) &&
            template_eval(run, v->row, 0, &out->row) &&
            template_eval(run, v->column, v->type.bytes, &out->column));
}

/* Do all its numbers lie in the memory? */
static bool within(TemplateRun *run, const TplStep *step, const View *v,
                   int64_t rows, int64_t columns) {
    enum { MOST = 1 << 24 };
    int64_t lo = v->at, hi = v->at, row, column;
    if (!v->there || rows <= 0 || columns <= 0)
        return true;
    bool fits =
        rows < MOST && columns < MOST &&
        !__builtin_mul_overflow(rows - 1, v->row, &row) &&
        !__builtin_mul_overflow(columns - 1, v->column, &column) &&
        !__builtin_add_overflow(row < 0 ? lo : hi, row, row < 0 ? &lo : &hi) &&
        !__builtin_add_overflow(column < 0 ? lo : hi, column,
                                column < 0 ? &lo : &hi) &&
        lo >= 0 && !__builtin_add_overflow(hi, v->type.bytes, &hi);
    if (fits && (uint64_t)hi <= v->memory->size)
        return true;
    return template_fail(
        run, step->loc,
        arena_printf(run->arena,
                     "bytes %lld to %lld lie outside of %s, which "
                     "has %llu",
                     (long long)lo, (long long)hi, v->memory->count.name,
                     (unsigned long long)v->memory->size));
}

static int64_t load(const View *v, int64_t row, int64_t column) {
    const uint8_t *at =
        v->memory->byte + v->at + row * v->row + column * v->column;
    bool plain = v->type.is_unsigned;
    int32_t word;
    int16_t half;
    if (v->type.bytes == 1)
        return plain ? *at : (int8_t)*at;
    if (v->type.bytes == 2) {
        memcpy(&half, at, sizeof half);
        return plain ? (uint16_t)half : half;
    }
    memcpy(&word, at, sizeof word);
    return word;
}

static void store(const View *v, int64_t row, int64_t column, int64_t value) {
    uint8_t *at = v->memory->byte + v->at + row * v->row + column * v->column;
    for (uint32_t i = 0; i < v->type.bytes; i++)
        at[i] = (uint8_t)((uint64_t)value >> (8 * i));
}

static void count(const View *v, bool writes, int64_t n) {
    if (v->there && n > 0)
        *(writes ? &v->memory->count.written : &v->memory->count.read) +=
            (uint64_t)n * v->type.bytes;
}

/* ---- steps ---- */

/* What happens to a result on its way. */
typedef struct Tail {
    bool scales, shifts, floors, roofs, adds;
    int64_t scale, carry, below, above, shift, least, most, add;
    TplRound round;
    uint32_t bits;
    bool is_unsigned;
} Tail;

static bool open_tail(TemplateRun *run, const TplStep *step, Tail *t) {
    *t = (Tail){.scales = step->scale,
                .shifts = step->shift,
                .floors = step->least,
                .roofs = step->most,
                .round = step->round,
                .bits = step->bits,
                .is_unsigned = step->view[TPL_TO].type.is_unsigned};
    bool ok = template_eval(run, step->scale, 0, &t->scale) &&
              template_eval(run, step->carry, 0, &t->carry) &&
              template_eval(run, step->below, 1, &t->below) &&
              template_eval(run, step->above, 1, &t->above) &&
              template_eval(run, step->shift, 0, &t->shift) &&
              template_eval(run, step->least, 0, &t->least) &&
              template_eval(run, step->most, 0, &t->most) &&
              template_eval(run, step->add, 0, &t->add);
    t->adds = t->add != 0;
    return ok;
}

static int64_t through(const Tail *t, int64_t x) {
    if (t->scales)
        x = round_even((float)x * float_of(t->scale), t->carry);
    if (t->below != 1 || t->above != 1) {
        int64_t by = x < 0 ? t->below : t->above;
        x = (int64_t)((uint64_t)x * (uint64_t)by);
    }
    if (t->shifts)
        x = shift_down(x, t->shift, t->round);
    x = t->bits ? held(x, t->bits, t->is_unsigned) : x;
    if (t->floors && x < t->least)
        x = t->least;
    return t->roofs && x > t->most ? t->most : x;
}

static void put(const View *to, const Tail *t, int64_t r, int64_t c,
                int64_t x) {
    x = through(t, x);
    store(to, r, c, t->adds ? x + load(to, r, c) : x);
}

static bool spend(TemplateRun *run, const TplStep *step, int64_t a, int64_t b) {
    uint64_t cost;
    if (a <= 0 || b <= 0)
        return true;
    if (__builtin_mul_overflow((uint64_t)a, (uint64_t)b, &cost) ||
        cost / 16 > run->budget)
        return template_fail(run, step->loc, "the budget of steps ends");
    run->budget -= cost / 16;
    return true;
}

static bool extents(TemplateRun *run, const TplStep *step, int64_t *rows,
                    int64_t *columns) {
    return template_eval(run, step->rows, 1, rows) &&
           template_eval(run, step->columns, 1, columns) &&
           spend(run, step, *rows, *columns);
}

static bool copy(TemplateRun *run, const TplStep *step) {
    View from, to;
    Tail tail;
    int64_t rows, columns;
    if (!extents(run, step, &rows, &columns) ||
        !open_view(run, step, TPL_FROM, &from) ||
        !open_view(run, step, TPL_TO, &to) || !open_tail(run, step, &tail) ||
        !within(run, step, &from, rows, columns) ||
        !within(run, step, &to, rows, columns))
        return false;
    if (!to.there)
        return true;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            put(&to, &tail, r, c, from.there ? load(&from, r, c) : 0);
    count(&from, false, rows * columns);
    count(&to, true, rows * columns);
    return true;
}

static bool is_s8(const View *v) {
    return v->type.bytes == 1 && !v->type.is_unsigned;
}

/* Of row r of one with column c of the other. */
static int64_t dot(const View *a, const View *b, int64_t r, int64_t c,
                   int64_t n) {
    int64_t sum = 0;
    if (!is_s8(a) || !is_s8(b) || n <= 0) {
        for (int64_t k = 0; k < n; k++)
            sum += load(a, r, k) * load(b, k, c);
        return sum;
    }
    const uint8_t *x = a->memory->byte + a->at + r * a->row;
    const uint8_t *y = b->memory->byte + b->at + c * b->column;
    for (int64_t k = 0; k < n; k++)
        sum += (int8_t)x[k * a->column] * (int8_t)y[k * b->row];
    return sum;
}

static bool product(TemplateRun *run, const TplStep *step) {
    View v[TPL_VIEWS];
    Tail tail;
    int64_t rows, columns, depth;
    if (!extents(run, step, &rows, &columns) ||
        !template_eval(run, step->depth, 1, &depth) ||
        !spend(run, step, rows * columns, depth) ||
        !open_tail(run, step, &tail))
        return false;
    for (int i = 0; i < TPL_VIEWS; i++)
        if (!open_view(run, step, i, &v[i]) ||
            !within(run, step, &v[i], i == TPL_BY ? depth : rows,
                    i == TPL_FROM ? depth : columns))
            return false;
    if (!v[TPL_TO].there)
        return true;
    int64_t n = v[TPL_FROM].there && v[TPL_BY].there ? depth : 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            int64_t sum = v[TPL_PLUS].there ? load(&v[TPL_PLUS], r, c) : 0;
            sum += dot(&v[TPL_FROM], &v[TPL_BY], r, c, n);
            put(&v[TPL_TO], &tail, r, c, (int32_t)(uint32_t)sum);
        }
    return true;
}

static bool cell(TemplateRun *run, const TplStep *step) {
    View v;
    int64_t value = 0;
    if (!open_view(run, step, TPL_FROM, &v) || !within(run, step, &v, 1, 1) ||
        !template_eval(run, step->value, 0, &value))
        return false;
    if (step->kind == TPL_GET)
        value = v.there ? load(&v, 0, 0) : 0;
    else if (v.there)
        store(&v, 0, 0, value);
    count(&v, step->kind == TPL_PUT, 1);
    return step->kind == TPL_PUT || template_assign(run, &step->set[0], value);
}

static bool reals(TemplateRun *run, const TplStep *step) {
    int64_t carry;
    if (!template_eval(run, step->carry, 0, &carry))
        return false;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        int64_t a, b, x;
        if (!template_eval(run, step->set[i].value, 0, &a) ||
            !template_eval(run, step->set[i].by, 0, &b))
            return false;
        x = step->kind == TPL_DIVIDE
                ? bits_of((float)a / (float)b)
                : round_even((float)a * float_of(b), carry != 0);
        if (!template_assign(run, &step->set[i], x))
            return false;
    }
    return true;
}

static bool act(TemplateRun *run, const TplStep *step) {
    switch (step->kind) {
    case TPL_COPY:
        return copy(run, step);
    case TPL_PRODUCT:
        return product(run, step);
    case TPL_GET:
    case TPL_PUT:
        return cell(run, step);
    case TPL_SCALE:
    case TPL_DIVIDE:
        return reals(run, step);
    default:
        return template_fail(run, step->loc, "this step is not known");
    }
}

/* ---- the whole ---- */

/* As they were, or zeros. */
static Cellar *open_memories(Arena *arena, const HwSpec *spec, const void *main,
                             uint64_t bytes, uint8_t *const *before) {
    Cellar *memory = ARENA_ARRAY(arena, Cellar, spec->n_memories + 1);
    for (uint32_t i = 0; i < spec->n_memories; i++) {
        bool is_main = spec->backing == (int32_t)i;
        bool on_chip = spec->memory[i].role == HW_ACTIVE ||
                       spec->memory[i].role == HW_WEIGHTS ||
                       spec->memory[i].role == HW_REGISTERS;
        memory[i].count.name = spec->memory[i].name;
        memory[i].size = is_main ? bytes : on_chip ? spec->memory[i].size : 0;
        memory[i].byte = ARENA_ARRAY(arena, uint8_t, memory[i].size + 1);
        if (is_main && bytes)
            memcpy(memory[i].byte, main, bytes);
        else if (before && memory[i].size)
            memcpy(memory[i].byte, before[i], memory[i].size);
    }
    return memory;
}

const DoesResult *program_does(Arena *arena, const Program *program,
                               const void *main, uint64_t bytes,
                               const DoesWatch *watch) {
    const HwSpec *spec = program->spec;
    Does does = {
        open_memories(arena, spec, main, bytes, watch ? watch->before : NULL)};
    uint8_t **byte = ARENA_ARRAY(arena, uint8_t *, spec->n_memories + 1);
    for (uint32_t i = 0; i < spec->n_memories; i++)
        byte[i] = does.memory[i].byte;
    TemplateRun run = template_run(arena, spec, DOES_STEPS, act, &does);
    DoesResult *out = ARENA_NEW(arena, DoesResult);
    uint32_t start = template_find(spec, "START");
    bool ok = start == EXPR_NONE || template_call(&run, start);
    for (uint32_t i = 0; ok && i < program->n_nodes; i++) {
        ok = template_node(&run, &program->node[i]);
        out->done = i + ok;
        if (ok && watch)
            watch->after(watch->context, i, byte);
    }
    DoesMemory *count = ARENA_ARRAY(arena, DoesMemory, spec->n_memories + 1);
    for (uint32_t i = 0; i < spec->n_memories; i++)
        count[i] = does.memory[i].count;
    out->n = program->n_nodes;
    out->cycles = template_get(&run, "cycles", -1);
    out->failed = run.failed;
    out->at = run.at;
    out->n_memories = spec->n_memories;
    out->memory = count;
    out->bytes = bytes;
    out->byte = byte;
    out->main = spec->backing < 0 ? NULL : does.memory[spec->backing].byte;
    return out;
}
