/* listing_record.c - the neutral half of a listing as JSON: docs/listing.md.
 *
 * Input: records (record.h). Output: members of "amphora", a record a line.
 */
#include "codegen/listing_parts.h"
#include "codegen/record.h"

/* ---- the machine ---- */

static void put_memory(JsonOut *out, const HwMemory *m) {
    json_out_object(out, NULL);
    json_out_text(out, "name", m->name);
    json_out_text(out, "role", hw_role_name[m->role]);
    json_out_number(out, "bytes", m->size);
    json_out_number(out, "unit", m->unit);
    json_out_number(out, "base", m->base);
    json_out_number(out, "align", m->align);
    json_out_number(out, "element", m->layout->element);
    json_out_text(out, "layout", m->layout->name);
    json_out_close(out);
}

/* How a reader knows what an instruction waits for, beside its record. */
static const char *issue_order(const HwSpec *spec) {
    return spec->tiling.rows.moves == HW_MOVES_QUEUED ? "queue" : "in order";
}

/* Core k finds its part of a shared memory behind k parts of so many bytes:
 * addresses are those of core 0. */
static void put_cores(JsonOut *out, const HwSpec *spec) {
    if (hwspec_cores(spec) < 2)
        return;
    json_out_object(out, "cores");
    json_out_number(out, "count", hwspec_cores(spec));
    json_out_object(out, "parts");
    for (uint32_t m = 0; m < spec->n_memories; m++)
        if (spec->cores.share >> m & 1)
            json_out_number(out, spec->memory[m].name, spec->memory[m].size);
    json_out_close(out);
    json_out_close(out);
}

void machine_write(JsonOut *out, const HwSpec *spec) {
    bool was = out->compact;
    json_out_value(out, "clock_hz", number_from_double(spec->clock));
    json_out_number(out, "element", spec->element);
    json_out_text(out, "issue", issue_order(spec));
    json_out_list(out, "memories");
    out->compact = true;
    for (uint32_t i = 0; i < spec->n_memories; i++)
        put_memory(out, &spec->memory[i]);
    json_out_close(out);
    put_cores(out, spec);
    json_out_list(out, "engines");
    for (uint32_t i = 0; i < spec->n_engines; i++)
        json_out_text(out, NULL, spec->engine[i].name);
    json_out_close(out);
    out->compact = was;
}

/* ---- operands ---- */

static bool has_copies(const RecordOperand *o) {
    return o->whole.repl.units != 0;
}

static void put_strides(JsonOut *out, const RecordOperand *o) {
    json_out_list(out, "strides");
    for (int i = 0; i < 3; i++)
        json_out_number(out, NULL, o->stride[i]);
    json_out_close(out);
}

static void put_digits(JsonOut *out, const Layout *layout,
                       const RecordOperand *o) {
    LayoutDigit digit[LAYOUT_MAX_AXES];
    uint32_t n = layout_digits(layout, &o->whole, digit);
    json_out_list(out, "axes");
    for (uint32_t i = 0; i < n; i++) {
        json_out_list(out, NULL);
        json_out_text(out, NULL,
                      digit[i].dim == LAYOUT_C   ? "channel"
                      : digit[i].dim == LAYOUT_H ? "row"
                                                 : "column");
        json_out_number(out, NULL, digit[i].divide);
        json_out_number(out, NULL, digit[i].modulo);
        json_out_number(out, NULL, digit[i].stride);
        json_out_close(out);
    }
    json_out_close(out);
}

static void put_lines(JsonOut *out, const RecordOperand *o) {
    json_out_object(out, "lines");
    json_out_number(out, "band", o->lines.band);
    json_out_number(out, "keep", o->lines.keep);
    json_out_number(out, "span", o->lines.span);
    json_out_number(out, "shift", o->lines.shift);
    json_out_number(out, "width", o->pitch);
    json_out_close(out);
}

static void put_copies(JsonOut *out, const Layout *layout,
                       const RecordOperand *o) {
    const Repl *repl = &o->whole.repl;
    json_out_object(out, "copies");
    json_out_number(out, "section", layout_split(layout, &o->whole, LAYOUT_C));
    json_out_number(out, "full", repl->full);
    json_out_number(out, "units", repl->units);
    json_out_number(out, "width", repl->width);
    json_out_close(out);
}

/* What `strides` cannot say. */
static void put_place(JsonOut *out, const Layout *layout,
                      const RecordOperand *o) {
    json_out_number(out, "origin", o->origin);
    json_out_list(out, "first");
    json_out_number(out, NULL, o->channel);
    json_out_number(out, NULL, o->row);
    json_out_number(out, NULL, o->col);
    json_out_close(out);
    put_digits(out, layout, o);
    if (o->ring)
        json_out_number(out, "ring", o->whole.h);
    if (o->lines.band)
        put_lines(out, o);
    if (has_copies(o))
        put_copies(out, layout, o);
}

static void put_type(JsonOut *out, const Quant *q) {
    json_out_text(out, "type",
                  q->type == QUANT_NONE ? "real" : quant_type[q->type].name);
    if (q->type == QUANT_NONE)
        return;
    json_out_value(out, "scale", number_from_double(q->scale));
    json_out_value(out, "zero", number_from_double(q->zero));
}

static void put_operand(JsonOut *out, const HwSpec *spec,
                        const RecordOperand *o) {
    const HwMemory *memory = &spec->memory[o->memory];
    const Layout *layout = memory->layout;
    bool weights = o->role[0] == 'w';
    bool constants = weights || o->role[0] == 'b';
    uint64_t count = (uint64_t)o->channels * o->rows * o->cols;
    json_out_object(out, NULL);
    json_out_text(out, "role", o->role);
    json_out_text(out, constants ? "constants" : "tensor", o->tensor);
    json_out_text(out, "memory", memory->name);
    json_out_number(out, "address", o->address);
    json_out_number(out, "bytes", count * layout->element);
    json_out_number(out, "channels", o->channels);
    json_out_number(out, constants ? "taps" : "rows",
                    constants ? o->cols : o->rows);
    if (constants)
        json_out_number(out, "first_channel", o->first_channel);
    if (weights && o->some_inputs)
        json_out_number(out, "first_input", o->first_input);
    if (weights && o->some_taps) {
        json_out_number(out, "first_tap", o->first_tap);
        json_out_number(out, "last_tap", o->last_tap);
    }
    if (!constants)
        json_out_number(out, "columns", o->cols);
    if (!constants) {
        if (o->strided)
            put_strides(out, o);
        else
            put_place(out, layout, o);
        put_type(out, &o->quant);
    }
    json_out_close(out);
}

/* ---- records ---- */

static const char *unit_name(const HwSpec *spec, uint32_t unit) {
    return unit < spec->n_engines            ? spec->engine[unit].name
           : unit == insn_unit_of_host(spec) ? "host"
           : spec->n_dmas ? spec->dma[unit - insn_unit_of_dma(spec, 0)].name
                          : "dma";
}

/* Tiles in the first active memory, by which operands come and go. */
static void put_tile(JsonOut *out, const Record *r) {
    json_out_object(out, "tile");
    json_out_number(out, "columns", r->tile_w);
    json_out_number(out, "rows", r->tile_h);
    json_out_list(out, "input");
    json_out_number(out, NULL, r->tile_input[0]);
    json_out_number(out, NULL, r->tile_input[1]);
    json_out_close(out);
    if (r->tile_c) {
        json_out_number(out, "channels", r->tile_c);
        json_out_number(out, "input_channels", r->tile_in_c);
        json_out_list(out, "weights");
        json_out_number(out, NULL, r->tile_weights[0]);
        json_out_number(out, NULL, r->tile_weights[1]);
        json_out_close(out);
        json_out_number(out, "sums", r->tile_sums);
    }
    json_out_close(out);
}

static void put_time(JsonOut *out, const RecordTime *time) {
    json_out_object(out, "planned");
    json_out_number(out, "start", time->start);
    json_out_number(out, "cycles", time->cycles);
    json_out_number(out, "read", time->read);
    json_out_number(out, "written", time->written);
    json_out_close(out);
}

/* What the operation is, as far as the machine's own words say it: kernel,
 * stride, groups... by the names of docs/hwspec.md. */
static void put_fields(JsonOut *out, const HwSpec *spec, const HwInsn *insn) {
    HwFields fields;
    bool any = false;
    insn_fields(spec, insn, &fields);
    for (uint32_t f = HW_F_KERNEL_W; f <= HW_F_FACTOR_H; f++) {
        if (!fields.set[f] || hw_field_kind((HwField)f) == HW_STR)
            continue;
        if (!any)
            json_out_object(out, "fields");
        any = true;
        json_out_value(out, hw_field_name[f],
                       number_from_double((double)fields.num[f]));
    }
    if (any)
        json_out_close(out);
}

static void put_sums(JsonOut *out, const Record *r) {
    json_out_object(out, "sums");
    json_out_value(out, "first", cJSON_CreateBool(r->sums_first));
    json_out_value(out, "last", cJSON_CreateBool(r->sums_last));
    json_out_close(out);
}

/* What averages divide by where their windows go beyond the volume. */
static void put_divisor(JsonOut *out, const HwSpec *spec, const Record *r) {
    bool averages = r->op == HW_OP_POOL_AVG || r->op == HW_OP_CONV_POOL_AVG;
    if (averages && r->unit < spec->n_engines)
        json_out_text(out, "divisor",
                      spec->engine[r->unit].divisor == HW_DIVISOR_VALID
                          ? "valid"
                          : "kernel");
}

static void put_record(JsonOut *out, const Listing *listing, uint32_t i) {
    const Record *r = &listing->record[i];
    json_out_object(out, NULL);
    json_out_number(out, "instruction", i);
    json_out_text(out, "operation", hw_op_name[r->op]);
    json_out_text(out, "engine",
                  r->op == HW_OP_CONCAT ? "none"
                                        : unit_name(listing->spec, r->unit));
    json_out_number(out, "step", r->step);
    json_out_text(out, "layer", r->layer);
    if (r->constants)
        json_out_text(out, "constants", r->constants);
    if (r->unit < listing->spec->n_engines)
        put_fields(out, listing->spec, &listing->insn[i]);
    put_divisor(out, listing->spec, r);
    if (r->adds_up)
        put_sums(out, r);
    json_out_list(out, "operands");
    for (uint32_t k = 0; k < r->n; k++)
        put_operand(out, listing->spec, &r->operand[k]);
    json_out_close(out);
    if (r->tiled)
        put_tile(out, r);
    json_out_list(out, "waits_for");
    for (uint32_t k = 0; k < r->n_waits; k++)
        json_out_number(out, NULL, r->wait[k]);
    json_out_close(out);
    if (listing->time && listing->time[i].known)
        put_time(out, &listing->time[i]);
    json_out_close(out);
}

void records_write(JsonOut *out, const Listing *listing) {
    bool was = out->compact;
    json_out_list(out, "records");
    out->compact = true;
    for (uint32_t i = 0; i < listing->n; i++) {
        put_record(out, listing, i);
        if (i + 1 < listing->n)
            text_add(out->text, "\n");
    }
    json_out_close(out);
    out->compact = was;
}
