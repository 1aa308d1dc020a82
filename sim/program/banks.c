/* banks.c - memories byte by byte; see run.h.
 *
 * Invariants: cells lie inside their memory; a memory's arrays are made when it
 * is first used, so that work is bounded by what the file touches.
 */
#include "sim/program/run.h"

#include "base/crc.h"
#include "hwspec/address.h"

#include <string.h>

enum { BITS = 8 };

static void bank_open(ProgramRun *run, Bank *bank) {
    if (bank->byte)
        return;
    bank->byte = ARENA_ARRAY(run->arena, uint8_t, bank->size);
    bank->writer = ARENA_ARRAY(run->arena, uint32_t, bank->size);
    bank->element = ARENA_ARRAY(run->arena, uint32_t, bank->size);
}

static bool inside(ProgramRun *run, const char *what, uint32_t b,
                   uint64_t start, uint64_t bytes) {
    Bank *bank = &run->bank[b];
    if (bytes > bank->size || start > bank->size - bytes)
        return prog_fault(run, "%s: bytes %llu to %llu of %s, which has %llu",
                          what, (unsigned long long)start,
                          (unsigned long long)(start + bytes),
                          bank->memory->name, (unsigned long long)bank->size);
    bank_open(run, bank);
    if (bank->touched < start + bytes)
        bank->touched = start + bytes;
    return true;
}

bool cells_flat(ProgramRun *run, const char *what, uint32_t bank,
                uint64_t start, uint64_t n, Cells *out) {
    *out = (Cells){
        .what = what, .bank = bank, .start = start, .end = start + n, .n = n};
    return inside(run, what, bank, start, n);
}

uint64_t cells_bytes(const ProgramRun *run, uint32_t bank,
                     const Volume *volume) {
    return address_bytes(run->bank[bank].memory->layout, volume);
}

bool cells_volume(ProgramRun *run, const char *what, uint32_t bank,
                  uint64_t start, uint32_t images, const Volume *v,
                  Cells *out) {
    const Layout *layout = run->bank[bank].memory->layout;
    uint64_t bytes = cells_bytes(run, bank, v);
    if (bytes > run->bank[bank].size || layout->element != 1)
        return prog_fault(run, "%s: %u x %u x %u codes are too many for %s",
                          what, v->c, v->h, v->w, run->bank[bank].memory->name);
    if (!inside(run, what, bank, start, bytes * images))
        return false;
    LayoutTables t = address_tables(run->work, layout, v);
    uint64_t n = (uint64_t)images * v->c * v->h * v->w, i = 0;
    uint32_t *at = ARENA_ARRAY(run->work, uint32_t, n);
    for (uint32_t image = 0; image < images; image++)
        for (uint32_t c = 0; c < v->c; c++)
            for (uint32_t h = 0; h < v->h; h++)
                for (uint32_t w = 0; w < v->w; w++)
                    at[i++] = (uint32_t)(start + image * bytes + t.c_at[c] +
                                         t.h_at[h] + t.w_at[w]);
    *out = (Cells){.what = what,
                   .bank = bank,
                   .start = start,
                   .end = start + bytes * images,
                   .n = n,
                   .at = at,
                   .images = images,
                   .volume = *v,
                   .shaped = true};
    return true;
}

static uint64_t cell(const Cells *c, uint64_t i) {
    return c->at ? c->at[i] : c->start + i;
}

/* ---- reading ---- */

/* Is the element that the writer put there the row and column that is wanted?
 * A volume is read as other channels of the same rows and columns, or not by
 * rows and columns at all. */
static bool same_place(const BankWriter *w, const Cells *c, uint32_t element,
                       uint64_t i) {
    uint64_t plane = (uint64_t)c->volume.h * c->volume.w;
    if (!w->shaped || !c->shaped)
        return w->shaped == c->shaped;
    return w->volume.h == c->volume.h && w->volume.w == c->volume.w &&
           element % plane == i % plane;
}

/* Cells that a reader wants, and of whom they are. */
typedef struct Wanted {
    uint8_t *bit;     /* by cell */
    VEC(uint32_t) by; /* some writers of them */
} Wanted;

/* So many writers of what a node reads are looked at. */
enum { MOST_WRITERS = 256 };

static Wanted wanted_of(ProgramRun *run, const Cells *c) {
    const Bank *bank = &run->bank[c->bank];
    Wanted w = {.bit = ARENA_ARRAY(run->work, uint8_t, bank->size / BITS + 1)};
    uint8_t *seen = ARENA_ARRAY(run->work, uint8_t, run->writers.n + 1);
    for (uint64_t i = 0; i < c->n; i++) {
        uint64_t at = cell(c, i);
        uint32_t k = bank->writer[at];
        w.bit[at / BITS] |= (uint8_t)(1 << at % BITS);
        if (k && !seen[k] && w.by.n < MOST_WRITERS)
            vec_push(run->work, &w.by, k - 1);
        seen[k] = 1;
    }
    return w;
}

/* All cells that a writer wrote. */
static bool cells_of(ProgramRun *run, uint32_t bank, const BankWriter *w,
                     Cells *out) {
    return w->images ? cells_volume(run, w->name, bank, w->start, w->images,
                                    &w->volume, out)
                     : cells_flat(run, w->name, bank, w->start, w->n, out);
}

/* Wanted cells that writer `k` wrote, and others have now. */
static void check_whole(ProgramRun *run, const Cells *c, const Wanted *wanted,
                        uint32_t k) {
    const Bank *bank = &run->bank[c->bank];
    Arena *work = run->work;
    uint64_t lost = 0;
    uint32_t by = 0;
    Cells own;
    run->work = arena_new("writer");
    if (cells_of(run, c->bank, &run->writers.at[k], &own))
        for (uint64_t i = 0; i < own.n; i++) {
            uint64_t at = cell(&own, i);
            bool gone = (wanted->bit[at / BITS] >> at % BITS & 1) &&
                        bank->writer[at] != k + 1;
            lost += gone;
            by = gone ? bank->writer[at] : by;
        }
    arena_free(run->work);
    run->work = work;
    if (lost)
        prog_fault(run, "%s: %llu bytes of %s were overwritten by %s", c->what,
                   (unsigned long long)lost, run->writers.at[k].name,
                   run->writers.at[by - 1].name);
}

static void check_read(ProgramRun *run, const Cells *c) {
    const Bank *bank = &run->bank[c->bank];
    uint64_t missing = 0, other = 0, first = 0;
    for (uint64_t i = 0; i < c->n; i++) {
        uint64_t at = cell(c, i);
        uint32_t k = bank->writer[at];
        bool is_missing = k == 0;
        bool is_other =
            k && !same_place(&run->writers.at[k - 1], c, bank->element[at], i);
        first = is_missing && !missing ? at : first;
        missing += is_missing;
        other += is_other;
    }
    if (missing)
        prog_fault(run,
                   "%s: nobody wrote %llu of its bytes; the first is %llu "
                   "of %s",
                   c->what, (unsigned long long)missing,
                   (unsigned long long)first, bank->memory->name);
    if (other)
        prog_fault(run, "%s: %llu bytes were written as other rows or columns",
                   c->what, (unsigned long long)other);
    Wanted wanted = wanted_of(run, c);
    for (uint32_t i = 0; i < wanted.by.n; i++)
        check_whole(run, c, &wanted, wanted.by.at[i]);
}

uint8_t *cells_read(ProgramRun *run, const Cells *c) {
    const Bank *bank = &run->bank[c->bank];
    uint8_t *out = ARENA_ARRAY(run->work, uint8_t, c->n);
    check_read(run, c);
    for (uint64_t i = 0; i < c->n; i++)
        out[i] = bank->byte[cell(c, i)];
    return out;
}

/* ---- writing ---- */

void cells_write(ProgramRun *run, const Cells *c, const char *writer,
                 const uint8_t *from) {
    Bank *bank = &run->bank[c->bank];
    BankWriter w = {.name = writer,
                    .shaped = c->shaped,
                    .start = c->start,
                    .n = c->n,
                    .images = c->at ? c->images : 0,
                    .volume = c->volume};
    vec_push(run->arena, &run->writers, w);
    for (uint64_t i = 0; i < c->n; i++) {
        uint64_t at = cell(c, i);
        bank->byte[at] = from[i];
        bank->writer[at] = run->writers.n;
        bank->element[at] = (uint32_t)i;
    }
}

void cells_apart(ProgramRun *run, const Cells *in, const Cells *out) {
    if (in->bank == out->bank && in->start < out->end && out->start < in->end)
        prog_fault(run, "%s lies over %s", out->what, in->what);
}

uint32_t cells_crc(const ProgramRun *run, uint32_t bank, uint64_t start,
                   uint64_t n) {
    return crc32_of(run->bank[bank].byte + start, n);
}
