/* work.c - fields of an instruction as work to do; see work.h.
 *
 * Input: one instruction. Output: a Work whose sizes agree with each other.
 * Which fields make up which size is a table; a field that the row lacks takes
 * the value of another one, or is derived. Nothing that comes out of here can
 * make a later step divide by zero, overflow, or run for more than
 * MAX_PRODUCTS.
 */
#include "sim/staged.h"
#include "sim/sums.h"
#include "sim/work_sizes.h"

#include <inttypes.h>
#include <string.h>

/* ---- places ---- */

/* As the instruction says. A second input that says nothing is replicated as
 * the first one is. */
static Repl said_repl(Reader *r, HwOperand operand, bool part) {
    const HwField own[] = {HW_F_IN_FULL, HW_F_IN_REPL, HW_F_IN_UNITS,
                           HW_F_IN_WIDTH};
    const HwField parent[] = {HW_F_IN_PART_FULL, HW_F_IN_PART_REPL,
                              HW_F_IN_PART_UNITS, HW_F_IN_PART_WIDTH};
    uint32_t v[4];
    for (int i = 0; i < 4; i++) {
        HwField in = part ? parent[i] : own[i];
        HwField field = (HwField)((int)in + (int)operand);
        bool as_first = operand == HW_IN2 && !r->f->set[field];
        v[i] = read_number(r, as_first ? in : field, 0, 0, MAX_FIELD);
    }
    return (Repl){v[0], v[1], v[2], v[3]};
}

/* All zero without copies. */
static Repl read_repl(Reader *r, HwOperand operand, bool part) {
    Repl repl = said_repl(r, operand, part);
    bool copied = repl.sections && repl.units && repl.width;
    return copied ? repl : (Repl){0};
}

static bool is_replicated(const HwSpec *spec, uint32_t memory) {
    return spec->replication.memories >> memory & 1;
}

/* Bytes from the start of a part's parent to where its address points. */
static bool step_back(Reader *r, Spot *spot) {
    const HwMemory *m = &r->run->spec->memory[spot->memory];
    uint64_t behind = address_part(m->layout, &spot->whole, spot->part_c);
    if (behind <= spot->offset) {
        spot->offset -= behind;
        return true;
    }
    fault(r->run, "%s at %s, from channel %u of %u on, would start before it",
          spot->what, address_text(r->run, spot->memory, spot->offset),
          spot->part_c, spot->whole.c);
    return false;
}

/* Makes the spot's volume that of the line buffer, if it is one. */
static bool read_lines(Reader *r, HwOperand operand, Spot *spot) {
    LineBuffer *l = &spot->lines;
    l->band = read_number(r, HW_FIELD_OF(operand, BAND), 0, 0, MAX_FIELD);
    l->keep = read_number(r, HW_FIELD_OF(operand, KEEP), 0, 0, MAX_FIELD);
    l->span = read_number(r, HW_FIELD_OF(operand, SPAN), 1, 0, MAX_FIELD);
    l->shift = read_number(r, HW_FIELD_OF(operand, SHIFT), 0, 0, MAX_FIELD);
    uint64_t pixels = lines_pixels(l, spot->pitch);
    if (!l->band)
        return false;
    if (l->span && pixels <= MAX_SIZE) {
        spot->whole.h = 1;
        spot->whole.w = (uint32_t)pixels;
        return true;
    }
    fault(r->run, "%s lies in a line buffer of impossible size", spot->what);
    r->ok = false;
    return false;
}

/* Pixels of a ring or a line buffer; those that a load or store moves begin
 * with the row and column of the work, in a tensor as wide as its `in`. */
static void read_ring(Reader *r, HwOperand operand, const Extent *size,
                      const Work *w, Spot *spot) {
    bool moves = w->op == HW_OP_LOAD || w->op == HW_OP_STORE;
    uint32_t rows = read_number(r, HW_FIELD_OF(operand, RING), 0, 0, MAX_SIZE);
    spot->pitch = read_number(r, HW_FIELD_OF(operand, PITCH),
                              moves ? w->in.w : size->w, 1, MAX_SIZE);
    bool lines = read_lines(r, operand, spot);
    if (!rows && !lines)
        return;
    spot->ring = true;
    spot->h = size->h;
    spot->w = size->w;
    spot->row = read_number(r, HW_FIELD_OF(operand, ROW), w->row, 0, MAX_SIZE);
    spot->col = read_number(r, HW_FIELD_OF(operand, COL), w->col, 0, MAX_SIZE);
    if (!lines) {
        spot->whole.h = rows;
        spot->whole.w = spot->pitch;
    }
}

/* The operand's volume: itself, or the larger one that it is part of. */
static bool read_spot(Reader *r, const Work *w, HwOperand operand,
                      const char *what, const Extent *size, Spot *out) {
    const HwFields *f = r->f;
    Spot spot = {
        .what = what, .c = size->c, .whole = {size->c, size->h, size->w, {0}}};
    if (!insn_operand(r->run->spec, w->op, f, operand, &spot.memory,
                      &spot.offset)) {
        fault(r->run, "%s lies in no memory", what);
        return false;
    }
    spot.part = read_flag(r, HW_FIELD_OF(operand, PART));
    read_ring(r, operand, size, w, &spot);
    if (is_replicated(r->run->spec, spot.memory))
        spot.whole.repl = read_repl(r, operand, spot.part);
    if (!spot.part) {
        *out = spot;
        return r->ok;
    }
    spot.part_c =
        read_number(r, HW_FIELD_OF(operand, PART_START), 0, 0, MAX_SIZE);
    uint32_t whole =
        read_number(r, HW_FIELD_OF(operand, PART_C), 0, 0, MAX_SIZE);
    uint32_t least = spot.part_c + spot.c;
    spot.whole.c = whole ? whole : least; /* older texts do not say */
    if (whole) {
        spot.said = spot.whole;
        spot.said.repl = said_repl(r, operand, true);
    }
    *out = spot;
    bool ok = r->ok && step_back(r, &spot);
    out->offset = spot.offset;
    return ok;
}

/* An engine reaches some memories, and others by tiles. */
static bool reaches(Reader *r, const Work *w, HwOperand operand,
                    const Spot *spot) {
    const HwSpec *spec = r->run->spec;
    if (w->engine < 0)
        return true;
    const HwEngine *engine = &spec->engine[w->engine];
    const HwMemory *m = &spec->memory[spot->memory];
    bool tiled = w->tile.on || m->role == HW_ACTIVE || engine->ahead;
    if (tiled && engine->lies[operand] >> spot->memory & 1)
        return true;
    fault(r->run, "%s at %s: engine %s cannot reach it%s", spot->what,
          address_text(r->run, spot->memory, spot->offset), engine->name,
          tiled ? "" : " but by tiles");
    return false;
}

static bool place_operand(Reader *r, const Work *w, HwOperand operand,
                          const char *what, const Extent *size, Place *out) {
    Spot spot;
    return read_spot(r, w, operand, what, size, &spot) &&
           reaches(r, w, operand, &spot) && place_make(r->run, &spot, out);
}

static bool place_operands(Reader *r, Work *w) {
    w->has_in2 = insn_is_binary(w->op);
    if (!(hw_op_traits[w->op] & HW_MATRIX))
        w->in2 = insn_by_channel(w->op) ? (Extent){w->in.c, 1, 1} : w->in;
    bool ok = place_operand(r, w, HW_IN, "input", &w->in, &w->in_at);
    if (w->has_in2)
        ok &= place_operand(r, w, HW_IN2, "second input", &w->in2, &w->in2_at);
    return place_operand(r, w, HW_OUT, "output", &w->out, &w->out_at) && ok;
}

/* A load brings into active memory what a store takes out of it. */
static bool moves_across(Reader *r, const Work *w) {
    const HwMemory *m = r->run->spec->memory;
    bool from = m[w->in_at.memory].role == HW_ACTIVE;
    bool to = m[w->out_at.memory].role == HW_ACTIVE;
    if (from == (w->op == HW_OP_STORE) && to == (w->op == HW_OP_LOAD))
        return true;
    fault(r->run, "a %s from %s to %s", hw_op_name[w->op],
          m[w->in_at.memory].name, m[w->out_at.memory].name);
    return false;
}

/* Of a move the side in active memory holds just the rows, or columns of them,
 * densely. */
static bool read_move(Reader *r, Work *w) {
    const HwFields *f = r->f;
    bool by_in = f->set[HW_F_IN_C];
    w->in = read_extent(r, by_in ? HW_IN : HW_OUT, (Extent){1, 1, 1});
    w->row = read_number(r, HW_F_ROW_FIRST, 0, 0, w->in.h - 1);
    uint32_t last =
        read_number(r, HW_F_ROW_LAST, w->in.h - 1, w->row, w->in.h - 1);
    w->rows = last - w->row + 1;
    w->col = read_number(r, HW_F_COL_FIRST, 0, 0, w->in.w - 1);
    last = read_number(r, HW_F_COL_LAST, w->in.w - 1, w->col, w->in.w - 1);
    w->cols = last - w->col + 1;
    Extent held = {w->in.c, w->rows, w->cols};
    bool load = w->op == HW_OP_LOAD;
    w->engine = -1;
    return r->ok &&
           place_operand(r, w, HW_IN, "source", load ? &w->in : &held,
                         &w->in_at) &&
           place_operand(r, w, HW_OUT, "destination", load ? &held : &w->in,
                         &w->out_at) &&
           moves_across(r, w);
}

/* ---- weights ---- */

/* Byte of the memory that the field is an address of; its size: beyond. */
static uint64_t byte_of(const Reader *r, HwField field, uint32_t memory) {
    const HwMemory *m = &r->run->spec->memory[memory];
    int64_t at = r->f->set[field] ? r->f->num[field] : -1;
    if (at < (int64_t)m->base)
        return m->size;
    uint64_t units = (uint64_t)at - m->base;
    return units > m->size / m->unit ? m->size : units * m->unit;
}

static bool place_weights(Reader *r, Work *w, uint32_t n, uint32_t taps) {
    uint32_t memory = r->run->spec->weights;
    uint64_t at = byte_of(r, HW_F_WEIGHTS_ADDR, memory);
    if (!staged_place(r->run, w->layer, memory, at, w->first_c, n, taps,
                      &w->weights_at))
        return false;
    w->weights_at.col = w->first_in;
    w->weights_at.taps = w->taps;
    return true;
}

static bool place_bias(Reader *r, Work *w, uint32_t n) {
    uint32_t memory = r->run->spec->bias;
    uint64_t at = byte_of(r, HW_F_BIAS_ADDR, memory);
    return staged_place(r->run, w->layer, memory, at, w->first_c, n, 1,
                        &w->bias_at);
}

/* Only some operations tell whether they add up all channels. */
static void read_sums(Reader *r, Work *w) {
    bool adds = hwspec_adds_up(r->run->spec, w->op, w->engine);
    w->sums_first =
        !adds || !r->f->set[HW_F_SUMS_FIRST] || read_flag(r, HW_F_SUMS_FIRST);
    w->sums_last =
        !adds || !r->f->set[HW_F_SUMS_LAST] || read_flag(r, HW_F_SUMS_LAST);
    w->partial = adds && r->f->set[HW_F_WEIGHTS_IN];
    w->first_in = adds ? read_number(r, HW_F_WEIGHTS_IN, 0, 0, MAX_SIZE) : 0;
    w->reads_bias =
        hwspec_loads_bias(r->run->spec, w->op) && w->adds_bias && w->sums_first;
}

static bool read_taps(Reader *r, uint32_t area, Taps *out) {
    if (!r->run->spec->insns->tells_taps)
        return true;
    uint32_t first = read_number(r, HW_F_WEIGHTS_TAP_FIRST, 0, 0, area - 1);
    uint32_t last =
        read_number(r, HW_F_WEIGHTS_TAP_LAST, area - 1, first, area - 1);
    *out = (Taps){first, last - first + 1};
    return r->ok;
}

/* Makes the kernel that of the taps: whole rows of it, or some of one row. */
static bool narrow_kernel(Reader *r, Work *w) {
    Window *rows = &w->conv[ROWS], *cols = &w->conv[COLS];
    Taps taps = w->taps;
    uint32_t wide = cols->kernel, row = taps.first / wide,
             col = taps.first % wide;
    bool whole = col == 0 && taps.n % wide == 0;
    if (!whole && col + taps.n > wide) {
        fault(r->run,
              "adds up taps %u to %u, neither rows of its kernel nor some of "
              "one",
              taps.first, taps.first + taps.n - 1);
        return false;
    }
    rows->kernel = whole ? taps.n / wide : 1;
    cols->kernel = whole ? wide : taps.n;
    rows->pad -= (int64_t)row * rows->dilation;
    cols->pad -= (int64_t)col * cols->dilation;
    return true;
}

/* Of the kernel those that it adds up. */
static bool take_taps(Reader *r, Work *w) {
    w->area = w->conv[ROWS].kernel * w->conv[COLS].kernel;
    if (!w->area || !read_taps(r, w->area, &w->taps))
        return w->area == 0;
    bool adds = hwspec_adds_up(r->run->spec, w->op, w->engine);
    return !adds || !w->taps.n || w->taps.n == w->area || narrow_kernel(r, w);
}

/* Those in front of a pool, where one is in the same instruction. */
static bool place_sums(Reader *r, Work *w) {
    uint32_t memory = r->run->spec->sums;
    const Extent *e = op_is_fused(w->op) ? &w->mid : &w->out;
    uint64_t at =
        r->f->set[HW_F_SUMS_ADDR] ? byte_of(r, HW_F_SUMS_ADDR, memory) : 0;
    Spot spot = {.what = "sums",
                 .memory = memory,
                 .offset = at,
                 .c = w->out.c,
                 .whole = {w->out.c, e->h, e->w, {0}}};
    return place_make(r->run, &spot, &w->sums_at) &&
           sums_in_buffer(r->run, &w->sums_at);
}

static bool read_staged(Reader *r, Work *w) {
    w->stages = hwspec_stages(r->run->spec, w->op);
    read_sums(r, w);
    if (!w->stages)
        return true;
    if (!take_taps(r, w))
        return false;
    uint32_t groups = work_groups(r->run, w);
    uint64_t taps = (uint64_t)w->conv[ROWS].kernel * w->conv[COLS].kernel *
                    (w->in.c / groups);
    w->first_c = read_number(r, HW_F_WEIGHTS_FIRST, 0, 0, MAX_SIZE);
    w->keeps_sums = hwspec_keeps_sums(r->run->spec, w->op, w->engine);
    if (!taps || taps > MAX_SIZE) {
        fault(r->run, "has no weights, or too many: %" PRIu64 " a channel",
              taps);
        return false;
    }
    return r->ok && place_weights(r, w, w->out.c, (uint32_t)taps) &&
           (!w->reads_bias || place_bias(r, w, w->out.c)) &&
           (!w->keeps_sums || place_sums(r, w));
}

/* Where the row does not tell it there is one. */
static bool source_of_weights(const Reader *r, uint32_t *out) {
    const HwSpec *spec = r->run->spec;
    int64_t id = r->f->num[HW_F_WEIGHTS_MEMORY];
    *out = (uint32_t)spec->tiling.rows.weights_from;
    if (!r->f->set[HW_F_WEIGHTS_MEMORY])
        return true;
    for (*out = 0; *out < spec->n_memories; ++*out)
        if (spec->memory[*out].id == id &&
            (spec->tiling.rows.weights_in >> *out & 1))
            return true;
    fault(r->run, "loads weights from memory %" PRId64 ", where none lie", id);
    return false;
}

static bool read_load_constants(Reader *r, Work *w) {
    bool bias = w->op == HW_OP_LOAD_BIAS;
    uint32_t taps = read_number(r, HW_F_WEIGHTS_TAPS, 1, 1, MAX_SIZE);
    w->engine = -1;
    if (!bias && !read_taps(r, MAX_SIZE, &w->taps))
        return false;
    w->partial = r->f->set[HW_F_WEIGHTS_IN];
    w->first_in = read_number(r, HW_F_WEIGHTS_IN, 0, 0, MAX_SIZE);
    w->first_c = read_number(r, HW_F_WEIGHTS_FIRST, 0, 0, MAX_SIZE);
    uint32_t last =
        read_number(r, HW_F_WEIGHTS_LAST, w->first_c, w->first_c, MAX_SIZE);
    if (!r->run->spec->tiling.rows.weights_from) {
        fault(r->run, "the machine loads no weights");
        return false;
    }
    if (bias && !r->run->spec->bias) {
        fault(r->run, "the machine loads no biases");
        return false;
    }
    uint32_t n = last - w->first_c + 1;
    return source_of_weights(r, &w->from) && r->ok &&
           (bias ? place_bias(r, w, n) : place_weights(r, w, n, taps));
}

/* Of a volume in backing memory a load or a store touches just some rows. */
uint32_t work_operands(const Work *w, Operand out[MOST_TOUCHED]) {
    uint32_t n = 0;
    bool loads = w->op == HW_OP_LOAD, stores = w->op == HW_OP_STORE;
    if (hw_is_among(w->op, HW_CONSTANT_LOADS)) {
        bool bias = w->op == HW_OP_LOAD_BIAS;
        out[0] = (Operand){bias ? w->bias_at : w->weights_at, true};
        return 1;
    }
    out[n++] = (Operand){
        loads ? place_rows(&w->in_at, w->row, w->rows) : w->in_at, false};
    if (w->has_in2)
        out[n++] = (Operand){w->in2_at, false};
    if (w->stages)
        out[n++] = (Operand){w->weights_at, false};
    if (w->reads_bias)
        out[n++] = (Operand){w->bias_at, false};
    if (w->keeps_sums)
        out[n++] = (Operand){w->sums_at, true};
    if (w->keeps_sums && !w->sums_last)
        return n;
    out[n++] = (Operand){
        stores ? place_rows(&w->out_at, w->row, w->rows) : w->out_at, true};
    return n;
}

/* ---- the rest ---- */

/* Byte of the first active memory; 0 where the row does not say. */
static uint64_t buffer_byte(Reader *r, HwField field) {
    const HwMemory *m = &r->run->spec->memory[0];
    int64_t at = r->f->set[field] ? r->f->num[field] : (int64_t)m->base;
    uint64_t units = (uint64_t)at - m->base;
    if (at >= (int64_t)m->base && units <= m->size / m->unit)
        return units * m->unit;
    fault(r->run, "%s is %" PRId64 ", outside %s", hw_field_name[field], at,
          m->name);
    r->ok = false;
    return 0;
}

/* Tiles of channels are of convolutions without groups, or depthwise: then of
 * as many input channels. */
static void check_nest(Reader *r, const Work *w) {
    bool depthwise = w->op == HW_OP_CONV_DEPTHWISE;
    if (w->op != HW_OP_CONV && !depthwise) {
        fault(r->run, "%s has no tiles of channels", hw_op_name[w->op]);
        r->ok = false;
    } else if (depthwise ? w->out.c != w->in.c || w->tile.in_c != w->tile.c
                         : w->groups > 1) {
        fault(r->run, "%u channels to %u cannot be tiled by %u and %u", w->in.c,
              w->out.c, w->tile.in_c, w->tile.c);
        r->ok = false;
    }
}

static void read_nest(Reader *r, Work *w) {
    w->tile.weights_stay = read_flag(r, HW_F_TILE_STAYS);
    w->tile.weights[0] = buffer_byte(r, HW_F_TILE_WEIGHTS0);
    w->tile.weights[1] = buffer_byte(r, HW_F_TILE_WEIGHTS1);
    w->tile.sums = buffer_byte(r, HW_F_TILE_SUMS);
    check_nest(r, w);
}

static void read_tiling(Reader *r, Work *w) {
    if (!read_flag(r, HW_F_TILE_ON))
        return;
    w->tile.on = true;
    w->tile.w = read_number(r, HW_F_TILE_W, w->out.w, 1, MAX_SIZE);
    w->tile.h = read_number(r, HW_F_TILE_H, w->out.h, 1, MAX_SIZE);
    w->tile.buffer[0] = buffer_byte(r, HW_F_TILE_BUFFER0);
    w->tile.buffer[1] = buffer_byte(r, HW_F_TILE_BUFFER1);
    w->tile.c = read_number(r, HW_F_TILE_C, 0, 0, MAX_SIZE);
    uint32_t least = w->tile.c > 0; /* without tiles of channels: 0, all */
    w->tile.in_c = read_number(r, HW_F_TILE_IN_C, w->in.c, least, MAX_SIZE);
    if (!w->tile.in_c)
        w->tile.in_c = w->in.c;
    if (w->tile.c)
        read_nest(r, w);
}

static void read_act(Reader *r, Work *w) {
    const HwFields *f = r->f;
    w->act_exact = f->set[HW_F_ACT];
    w->says_act = w->act_exact || f->set[HW_F_RELU] || f->set[HW_F_PRELU];
    w->act = read_number(r, HW_F_ACT, 0, 0, HW_ACT_COUNT);
    if (!w->act_exact && read_flag(r, HW_F_PRELU))
        w->act = HW_ACT_PRELU + 1;
    else if (!w->act_exact && read_flag(r, HW_F_RELU))
        w->act = HW_ACT_RELU + 1;
    w->prelu = w->act == HW_ACT_PRELU + 1 || w->act == HW_ACT_LEAKY + 1;
}

static void read_flags(const Reader *r, Work *w) {
    const HwFields *f = r->f;
    w->adds_bias = !f->set[HW_F_BIAS] || f->num[HW_F_BIAS] != 0;
    const char *method = f->set[HW_F_METHOD] ? f->str[HW_F_METHOD] : NULL;
    w->zero_fill = method && strcmp(method, "Zero") == 0;
    w->has_repl = f->set[HW_F_IN_FULL];
    w->pingpong = !f->set[HW_F_PINGPONG] || f->num[HW_F_PINGPONG] != 0;
    w->halfrate = read_flag(r, HW_F_HALFRATE);
    w->parallel_read = read_flag(r, HW_F_PARALLEL_READ);
}

/* Older listings say block 0 of the only block there is: what works ahead
 * reads, without tiles, from outside active memory. */
static bool works_ahead(const HwSpec *spec, const HwFields *f, HwOp op) {
    uint32_t memory;
    uint64_t offset;
    return f->set[HW_F_BLOCK] && f->num[HW_F_BLOCK] == 0 &&
           !(f->set[HW_F_TILE_ON] && f->num[HW_F_TILE_ON]) &&
           insn_operand(spec, op, f, HW_IN, &memory, &offset) &&
           spec->memory[memory].role != HW_ACTIVE;
}

static int32_t engine_of(const HwSpec *spec, const HwFields *f, HwOp op) {
    bool ahead = works_ahead(spec, f, op);
    int32_t engine = ahead ? hwspec_engine_ahead(spec, op) : -1;
    return engine >= 0 ? engine : hwspec_engine(spec, op);
}

static bool read_run(Reader *r, Work *w) {
    w->engine = engine_of(r->run->spec, r->f, w->op);
    if (w->engine < 0) {
        fault(r->run, "no engine runs %s", hw_op_name[w->op]);
        return false;
    }
    read_act(r, w);
    read_flags(r, w);
    read_sizes(r, w);
    read_tiling(r, w);
    w->in_repl = read_repl(r, HW_IN, false);
    return r->ok && check_sizes(r, w) && place_operands(r, w) &&
           read_staged(r, w);
}

static bool read_work(Reader *r, Work *w) {
    switch (w->op) {
    case HW_OP_HOST:
    case HW_OP_LAYER:
        return true;
    case HW_OP_CONCAT:
        if (r->f->set[HW_F_OUT_C])
            w->out = read_extent(r, HW_OUT, (Extent){1, 1, 1});
        return r->ok;
    case HW_OP_LOAD_WEIGHTS:
    case HW_OP_LOAD_BIAS:
        return read_load_constants(r, w);
    case HW_OP_LOAD:
    case HW_OP_STORE:
        return read_move(r, w);
    default:
        return read_run(r, w);
    }
}

bool work_read(Run *run, const HwInsn *insn, Work *out) {
    HwFields fields;
    insn_fields(run->spec, insn, &fields);
    Reader r = {run, &fields, true};
    *out =
        (Work){.op = insn_op(run->spec, insn),
               .step = fields.set[HW_F_STEP] ? fields.num[HW_F_STEP] : NO_STEP};
    out->has_waits = insn_waits(run->spec, &fields, &out->waits);
    work_names(run, &fields, out);
    run->who = out->name;
    if (!read_work(&r, out))
        return false;
    if (!run->options.time_only && !run->options.lax)
        fields_judge(run, insn, &fields, out);
    return true;
}
