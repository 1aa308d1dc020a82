/* test_damaged.c - what is said of damaged hwspecs, as recorded.
 *
 * Of each machine of tests/figures and of hwspec/targets words are changed, one
 * at a time: left out, or another of the file's in their place; numbers become
 * 0, one more, negative or large; or a line is left out. A line of damaged.txt
 * is a machine: how many of these it refuses, and a digest of all messages and
 * of what machines the others are. `hwspec_test_damaged --print FILE.yaml`
 * tells all of one; `--write` makes damaged.txt anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/text.h"
#include "base/vec.h"
#include "hwspec/insn.h"
#include "tests/recorded.h"

#include <ctype.h>
#include <glob.h>

static const char *const recorded = "tests/hwspec/damaged.txt";

typedef struct Word {
    uint32_t at, n;
} Word;

typedef struct Machine {
    Arena *arena;
    const char *path, *text;
    uint32_t n;
    const Word *word;
} Machine;

static bool in_word(char c) {
    return isalnum((unsigned char)c) || (c && strchr("_.-", c));
}

static Machine machine_of(Arena *arena, const char *path) {
    Machine m = {.arena = arena, .path = path};
    m.text = recorded_text(arena, path);
    VEC(Word) words = {0};
    for (uint32_t i = 0; m.text[i];) {
        if (m.text[i] == '#') {
            i += (uint32_t)strcspn(m.text + i, "\n");
            continue;
        }
        uint32_t n = 0;
        while (in_word(m.text[i + n]))
            n++;
        if (n)
            vec_push(arena, &words, ((Word){i, n}));
        i += n ? n : 1;
    }
    m.n = words.n;
    m.word = words.at;
    return m;
}

static const char *with(const Machine *m, uint32_t from, uint32_t to,
                        const char *text) {
    return arena_printf(m->arena, "%.*s%s%s", (int)from, m->text, text,
                        m->text + to);
}

/* One that has loads, stores, weights, biases and sums is tried without each of
 * its words. */
static bool is_tried_whole(const char *path) {
    return strstr(path, "vta-pynq") != NULL;
}

/* The text of the machine with its damage number k; of 0 there is none. */
static const char *damaged(const Machine *m, uint32_t k) {
    if (!k)
        return m->text;
    if (is_tried_whole(m->path))
        return with(m, m->word[k - 1].at, m->word[k - 1].at + m->word[k - 1].n,
                    "");
    uint64_t dice = rng_bits(rng_seed(m->path, 1), k);
    Word w = m->word[dice % m->n], other = m->word[(dice >> 20) % m->n];
    const char *is = m->text + w.at;
    uint32_t kind = (uint32_t)(dice >> 40) % 8, end = w.at + w.n;
    if (kind == 0)
        return with(m, w.at, end, "");
    if (kind == 1) {
        uint32_t line = w.at;
        while (line && m->text[line - 1] != '\n')
            line--;
        return with(m, line, w.at + (uint32_t)strcspn(is, "\n"), "");
    }
    if (isdigit((unsigned char)*is) && kind > 3) {
        static const char *const number[] = {"0", "-1", "3", "4294967296"};
        uint32_t digits = (uint32_t)strspn(is, "0123456789");
        return with(m, w.at, w.at + digits, number[kind - 4]);
    }
    return with(
        m, w.at, end,
        arena_printf(m->arena, "%.*s", (int)other.n, m->text + other.at));
}

/* ---- all that a machine is ---- */

static void add_u64(Text *out, uint64_t value) {
    text_addf(out, " %llu", (unsigned long long)value);
}

static void add_memory(Text *out, const HwSpec *spec, uint32_t i) {
    const HwMemory *m = &spec->memory[i];
    const uint64_t n[] = {m->role,
                          m->size,
                          m->unit,
                          m->base,
                          m->id,
                          m->align,
                          m->buffers,
                          m->partitions,
                          m->ports_read,
                          m->ports_write,
                          m->burst,
                          m->channel,
                          m->cost,
                          m->load,
                          m->piece,
                          hwspec_buffer_bytes(m),
                          hwspec_partition_bytes(m)};
    text_addf(out, "\n%s %s %.9g %.9g %.9g", m->name, m->layout->name,
              m->bandwidth, m->latency, m->row_setup);
    for (size_t k = 0; k < sizeof n / sizeof *n; k++)
        add_u64(out, n[k]);
    text_addf(out, " %u %u", m->layout->element, m->layout->n);
    for (uint32_t k = 0; k < m->layout->n; k++)
        text_addf(out, " %d/%u%d%d%u", (int)m->layout->axis[k].dim,
                  m->layout->axis[k].split, m->layout->axis[k].inner,
                  m->layout->axis[k].clip, m->layout->axis[k].round);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        text_addf(out, " %d", hwspec_dma(spec, (HwOp)op, i));
}

static void add_engine(Arena *arena, Text *out, const HwEngine *e) {
    const uint64_t n[] = {e->ops,
                          e->unroll.out_c,
                          e->unroll.in_c,
                          e->unroll.kernel,
                          e->unroll.out_h,
                          e->unroll.out_w,
                          e->unroll.row_taps,
                          e->setup,
                          e->slope_cycles,
                          e->in_place,
                          e->overlap,
                          e->ahead,
                          e->divisor,
                          e->part_align,
                          e->lies[HW_IN],
                          e->lies[HW_IN2],
                          e->lies[HW_OUT],
                          e->weights,
                          e->bias,
                          e->sums,
                          e->beside,
                          e->has_time};
    text_addf(out, "\n%s %.9g %.9g %.9g", e->name, e->clock, e->efficiency,
              e->floor);
    for (size_t k = 0; k < sizeof n / sizeof *n; k++)
        add_u64(out, n[k]);
    for (uint32_t k = 0; k < HW_LIMIT_COUNT; k++)
        text_addf(out, " %s", hw_range_text(arena, &e->limit[k]));
    for (uint32_t k = 0; k < HW_OP_COUNT; k++)
        text_addf(out, " %x/%u", e->acts[k], e->passes[k]);
}

static void add_operations(Text *out, const HwSpec *spec) {
    for (uint32_t i = 0; i < HW_OP_COUNT; i++) {
        HwOp op = (HwOp)i;
        int32_t engine = hwspec_engine(spec, op);
        text_addf(out, "\n%d %d", engine, hwspec_engine_ahead(spec, op));
        for (int k = 0; k < HW_OPERANDS; k++)
            text_addf(out, " %x", hwspec_lies(spec, op, (HwOperand)k));
        text_addf(out, " %d %d %d", hwspec_stages(spec, op),
                  hwspec_loads_bias(spec, op), insn_row(spec, op));
        if (engine >= 0)
            text_addf(out, " %d %d", hwspec_adds_up(spec, op, engine),
                      hwspec_keeps_sums(spec, op, engine));
    }
}

static void add_tiling(Text *out, const HwSpec *spec) {
    const HwTiling *t = &spec->tiling;
    const HwReplication *r = &spec->replication;
    const uint64_t n[] = {t->kind,
                          t->weights_stay,
                          t->rows.ops,
                          t->rows.rolls,
                          t->rows.moves,
                          t->rows.queue,
                          t->rows.weights_in,
                          (uint64_t)t->rows.weights_from,
                          t->rows.weights_move,
                          t->tiles.always,
                          r->section,
                          r->memories,
                          spec->weight_cache.pingpong,
                          spec->weight_cache.full_rate,
                          spec->weight_cache.half_rate};
    text_addf(out, "\ntiling %.9g", spec->weight_cache.bandwidth);
    for (size_t k = 0; k < sizeof n / sizeof *n; k++)
        add_u64(out, n[k]);
    for (uint32_t i = 0; i < t->tiles.n; i++) {
        const HwTileStyle *s = &t->tiles.style[i];
        const uint64_t of[] = {s->in_backing, s->out_backing, s->ops,
                               s->buffer[0],  s->buffer[1],   s->buffer_size,
                               s->reserved,   s->has_dest,    s->dest,
                               s->multiple_w, s->sums};
        text_add(out, " style");
        for (size_t k = 0; k < sizeof of / sizeof *of; k++)
            add_u64(out, of[k]);
    }
    for (uint32_t i = 0; i < r->n_stored; i++)
        text_addf(out, " %u*%u", r->stored[i].units, r->stored[i].width);
    for (uint32_t i = 0; i < r->n_fly; i++)
        text_addf(out, " %u*%u", r->fly[i].units, r->fly[i].width);
}

static void add_token(Text *out, const HwToken *t) {
    text_addf(out, " %s %d/%d %d%d%d%d%d%d %lld/%u+%lld",
              t->name ? t->name : "", (int)t->from, (int)t->also, t->hex,
              t->gap, t->is_string, t->unread, t->free, t->later,
              (long long)t->constant, t->unit, (long long)t->bias);
}

static void add_row(Text *out, const HwRow *row) {
    text_addf(out, "\n%s %d %u", row->mnemonic, row->comment, row->words);
    for (uint32_t i = 0; i < row->n_serves; i++)
        text_addf(out, " %d/%u", (int)row->serve[i].op, row->serve[i].n);
    for (uint32_t i = 0; i < row->n_forms; i++) {
        const HwForm *form = &row->form[i];
        text_addf(out, " form %u", form->mnemonic);
        for (uint32_t k = 0; k < form->n; k++)
            add_token(out, &form->token[k]);
        for (uint32_t k = 0; k < form->n_implied; k++)
            text_addf(out, " %d=%lld", (int)form->implied[k].field,
                      (long long)form->implied[k].num);
    }
    for (uint32_t i = 0; i < row->n_bits; i++) {
        const HwBits *b = &row->bits[i];
        text_addf(out, " bits %u %u %u %u %llu %lld %llu %d%d", b->token,
                  b->word, b->at, b->width, (unsigned long long)b->unit,
                  (long long)b->bias, (unsigned long long)b->is, b->is_signed,
                  b->is_auto);
    }
}

static void add_machine(Arena *arena, Text *out, const HwSpec *spec) {
    const HwInsnSet *set = spec->insns;
    const uint64_t n[] = {spec->element,
                          spec->rounding,
                          spec->n_active,
                          spec->cores.count,
                          spec->cores.share,
                          spec->backings,
                          spec->weights,
                          spec->bias,
                          spec->sums,
                          spec->max_instructions,
                          spec->conv_1x1_stride2,
                          spec->pool_around_concat,
                          spec->expand_groups,
                          spec->stride_as_sample,
                          spec->input_by_phases,
                          spec->fc_as_conv,
                          spec->pad_to_limits,
                          spec->slabs,
                          spec->bands,
                          spec->act_of_codes,
                          spec->pool_behind_conv,
                          spec->input_shares_step,
                          spec->input_step,
                          set->word_bits,
                          set->tells_parts,
                          set->tells_columns,
                          set->tells_sums,
                          set->tells_taps};
    text_addf(out, "%s %.9g %d %d %d %d", spec->machine, spec->clock,
              spec->backing, spec->input, spec->output, spec->constants);
    for (size_t k = 0; k < sizeof n / sizeof *n; k++)
        add_u64(out, n[k]);
    for (uint32_t i = 0; i < spec->n_memories; i++)
        add_memory(out, spec, i);
    for (uint32_t i = 0; i < spec->n_engines; i++)
        add_engine(arena, out, &spec->engine[i]);
    add_operations(out, spec);
    add_tiling(out, spec);
    for (uint32_t i = 0; i < set->n; i++)
        add_row(out, &set->row[i]);
}

/* ---- damage ---- */

/* True if the damage is refused. */
static bool try_one(const Machine *m, uint32_t k, Text *out) {
    Arena *arena = arena_new("damaged");
    Diag *diag = diag_new(arena);
    const char *text = damaged(m, k);
    const HwSpec *spec =
        hwspec_read(arena, diag, m->path, text, strlen(text), 0, NULL);
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *said = diag_at(diag, i);
        text_addf(out, "%u:%u: %s\n", said->loc.line, said->loc.col,
                  said->text);
    }
    if (spec)
        add_machine(arena, out, spec);
    text_add(out, "\n");
    arena_free(arena);
    return !spec;
}

/* Machines that differ in sizes alone are one. */
static bool is_one_of_many(const char *path) {
    return strstr(path, "dpuczdx8g-b") != NULL;
}

/* Most of that which others extend, since it has all keys. */
static uint32_t damages_of(const Machine *m) {
    return is_tried_whole(m->path)   ? m->n + 1
           : strstr(m->path, "full") ? 400
                                     : 40;
}

static void add_file(Text *line, const char *path) {
    Arena *arena = arena_new("machine");
    Machine m = machine_of(arena, path);
    Text said = text_new(arena);
    uint32_t refused = 0;
    uint32_t n = damages_of(&m);
    for (uint32_t k = 0; k < n; k++)
        refused += try_one(&m, k, &said);
    uint64_t all = 1;
    for (const char *at = text_str(&said); *at; at++)
        all = rng_bits(all, (uint8_t)*at);
    text_addf(line, "%s: %u of %u refused, %08x\n", path, refused, n,
              (unsigned)all);
    arena_free(arena);
}

static const char *everything(Arena *arena) {
    static const char *const folder[] = {"tests/farm/full.yaml",
                                         "tests/figures/*.yaml",
                                         "hwspec/targets/*.yaml"};
    Text text = text_new(arena);
    for (int i = 0; i < 3; i++) {
        glob_t found;
        assert_int_equal(glob(folder[i], 0, NULL, &found), 0);
        for (size_t k = 0; k < found.gl_pathc; k++)
            if (!is_one_of_many(found.gl_pathv[k]))
                add_file(&text, found.gl_pathv[k]);
        globfree(&found);
    }
    return text_str(&text);
}

static void damage_is_told_as_recorded(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    recorded_compare(recorded, everything(arena));
    arena_free(arena);
}

static int print_file(const char *path) {
    Arena *arena = arena_new("machine");
    Machine m = machine_of(arena, path);
    for (uint32_t k = 0; k < damages_of(&m); k++) {
        Text said = text_new(arena);
        try_one(&m, k, &said);
        printf("---- %u\n%s", k, text_str(&said));
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--write"))
        return recorded_write(recorded, everything(arena_new("test")));
    if (argc > 2 && !strcmp(argv[1], "--print"))
        return print_file(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_told_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
