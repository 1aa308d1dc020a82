/* lower.c - from the graph to a file, layer by layer; filegen.h.
 *
 * Addresses come last. Where active memory is too small, a volume that nobody
 * uses at the fullest node leaves it (its codes are in the backing memory, too)
 * and is loaded again for each reader; then all is made anew.
 */
#include "filegen/lower.h"

#include <string.h>

enum { MOST_SPILLS = 32 };

/* ---- the program ---- */

static void set_said(ProgScope *scope, const Said *said) {
    if (said->bytes)
        prog_set_bytes(scope, said->name, said->n, said->bytes);
    else if (said->nums)
        prog_set_nums(scope, said->name, said->n, said->nums);
    else
        prog_set(scope, said->name, said->num);
}

static void set_if(Lower *l, Program *program, const char *name, int64_t num) {
    if (program_row_has(l->spec, NULL, name))
        prog_set(&program->scope, name, num);
}

/* Vectors of the file's inputs or outputs. */
typedef struct Ends {
    uint32_t n;
    int64_t *memory, *type, *start, *size, *dim[4];
} Ends;

static Ends ends_new(Lower *l, uint32_t n) {
    Ends e = {.n = n};
    int64_t **all[] = {&e.memory, &e.type,   &e.start,  &e.size,
                       &e.dim[0], &e.dim[1], &e.dim[2], &e.dim[3]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = ARENA_ARRAY(l->arena, int64_t, n + 1);
    return e;
}

static void ends_set(Lower *l, Ends *e, uint32_t i, Range range,
                     const Value *v) {
    e->memory[i] = l->spec->memory[range.memory].id;
    e->type[i] = !range.reals;
    e->start[i] = (int64_t)range.start;
    e->size[i] = (int64_t)range.size;
    const uint32_t dims[] = {v->n, v->c, v->h, v->w};
    for (int k = 0; k < 4; k++)
        e->dim[k][i] = dims[k];
}

static void ends_say(Lower *l, Program *program, const char *name,
                     const Ends *e) {
    static const char *const part[] = {"memory", "type", "start", "size",
                                       "n",      "c",    "h",     "w"};
    const int64_t *from[] = {e->memory, e->type,   e->start,  e->size,
                             e->dim[0], e->dim[1], e->dim[2], e->dim[3]};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        const char *full = arena_printf(l->arena, "%s.%s", name, part[i]);
        if (program_row_has(l->spec, NULL, full))
            prog_set_nums(&program->scope, full, e->n, from[i]);
    }
}

/* An input lies where its readers want it; in the backing memory if some are of
 * the processor. */
static Range input_range(Lower *l, uint32_t value) {
    Value *v = &l->value.at[value];
    if (v->wants_main || !v->wants_active)
        return value_main(l, value);
    uint64_t at = value_make(l, value);
    return (Range){l->active, at, value_bytes(l, &l->value.at[value]), false};
}

static uint32_t n_inputs(const Graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        n += g->node.at[i].op == OP_INPUT;
    return n;
}

static void say_ends(Lower *l, Program *program) {
    const Graph *g = l->g;
    Ends in = ends_new(l, n_inputs(g)), out = ends_new(l, g->output.n);
    uint32_t k = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        uint32_t value = l->value_of[node->out[0].i];
        const Value *v = &l->value.at[value];
        Range range = v->main.there ? value_main(l, value)
                                    : (Range){l->active, v->active.start,
                                              value_bytes(l, v), false};
        ends_set(l, &in, k++, range, v);
    }
    for (uint32_t i = 0; i < g->output.n; i++) {
        uint32_t value = l->value_of[g->output.at[i].i];
        Range range = value_main(l, value);
        ends_set(l, &out, i, range, &l->value.at[value]);
    }
    ends_say(l, program, "input", &in);
    ends_say(l, program, "output", &out);
    set_if(l, program, "inputs", in.n);
    set_if(l, program, "outputs", out.n);
}

Program *lower_program(Lower *l, bool whole) {
    Program *program = program_new(l->arena, l->spec);
    const ProgRow **row =
        ARENA_ARRAY(l->arena, const ProgRow *, l->draft.n + 1);
    for (uint32_t i = 0; i < l->draft.n; i++)
        row[i] = l->draft.at[i].row;
    program_nodes(l->arena, program, l->draft.n, row);
    for (uint32_t i = 0; i < l->draft.n; i++) {
        const Draft *draft = &l->draft.at[i];
        program->node[i].loc = draft->loc;
        for (uint32_t k = 0; k < draft->said.n; k++)
            set_said(&program->node[i].scope, &draft->said.at[k]);
    }
    set_if(l, program, "inputs", 0);
    set_if(l, program, "outputs", 0);
    Ends none = ends_new(l, 0);
    ends_say(l, program, "input", &none);
    ends_say(l, program, "output", &none);
    set_if(l, program, "main.bytes", 0);
    while (whole && l->constant.n % 8)
        vec_push(l->arena, &l->constant, 0);
    set_if(l, program, "constants.bytes", whole ? l->constant.n : 0);
    if (program_row_has(l->spec, NULL, "constants"))
        prog_set_bytes(&program->scope, "constants", whole ? l->constant.n : 0,
                       l->constant.at ? l->constant.at : (uint8_t[]){0});
    if (whole)
        say_ends(l, program);
    return program;
}

/* ---- layers ---- */

static void place_inputs(Lower *l) {
    for (uint32_t i = 0; i < l->g->node.n; i++)
        if (l->g->node.at[i].op == OP_INPUT)
            input_range(l, l->value_of[l->g->node.at[i].out[0].i]);
}

/* Renamed bytes: the result's place is the operand's. */
static void rename_value(Lower *l, const Node *node) {
    uint32_t from = l->value_of[node->in[0].i];
    uint32_t to = l->value_of[node->out[0].i];
    if (node->op == OP_INPUT || from == to)
        return;
    Range range = value_main(l, from);
    l->value.at[to].main =
        (Home){true, range.memory == l->constants, range.start};
}

static bool lower_layers(Lower *l) {
    place_inputs(l);
    for (uint32_t i = 0; i < l->g->node.n; i++) {
        const Node *node = &l->g->node.at[i];
        FileLayer *layer = &l->layer[i];
        bool named = node->op != OP_INPUT;
        if (layer->way == FILE_ENGINE)
            lower_engine(l, (NodeId){i});
        else if (layer->way == FILE_HOST ||
                 (layer->way == FILE_BESIDE &&
                  l->value.at[l->value_of[node->out[0].i]].wants_main))
            lower_host(l, (NodeId){i});
        else if (layer->way == FILE_NOTHING && named)
            rename_value(l, node);
        for (uint32_t k = 0; layer->way == FILE_BESIDE && k < node->n_in; k++)
            value_read(l, node, l->value_of[node->in[k].i]);
    }
    return !l->failed;
}

/* ---- memory ---- */

bool filegen_can(const HwSpec *spec) {
    return spec->format && spec->n_active && spec->backing >= 0 &&
           spec->constants >= 0;
}

static bool has_memories(Lower *l) {
    const HwSpec *spec = l->spec;
    bool ok = filegen_can(spec);
    if (!ok)
        diag_error(l->diag, spec->loc,
                   "%s: a file needs a container, and memories of the roles "
                   "active, backing and constants",
                   spec->machine);
    l->active = 0;
    l->main = (uint32_t)spec->backing;
    l->constants = (uint32_t)spec->constants;
    return ok;
}

/* Only bytes and real numbers; even where no layer reads or writes others. */
static bool has_elements(Lower *l) {
    for (uint32_t i = 0; i < l->g->tensor.n; i++) {
        const Tensor *t = &l->g->tensor.at[i];
        if (t->quant.type == QUANT_NONE || file_bytes(t))
            continue;
        const Node *node = graph_node(l->g, t->producer);
        diag_error(l->diag, node->loc,
                   "layer \"%s\" (%s): %s is of %s; a file of %s holds int8, "
                   "uint8 and float32",
                   node->name, op_info[node->op].name, t->name,
                   quant_type[t->quant.type].name, l->spec->machine);
        return false;
    }
    return true;
}

static void open_lower(Lower *l, Arena *arena, Diag *diag, const HwSpec *spec,
                       const Graph *g, const bool *spill, const bool *apart) {
    *l = (Lower){.arena = arena,
                 .diag = diag,
                 .spec = spec,
                 .g = g,
                 .spill = spill,
                 .apart = apart,
                 .layer = ARENA_ARRAY(arena, FileLayer, g->node.n + 1),
                 .beside = ARENA_ARRAY(arena, uint32_t, g->node.n + 1)};
}

/* The largest volume that waits in active memory at that node while nobody
 * uses it; false if there is none. */
static bool choose_spill(const Lower *l, uint32_t at, bool *spill) {
    uint32_t best = NONE;
    uint64_t most = 0;
    for (uint32_t i = 0; i < l->g->tensor.n; i++) {
        const Value *v = &l->value.at[i];
        uint64_t bytes = value_bytes(l, v);
        if (l->value_of[i] == i && !v->spilled && v->active.there &&
            v->born + 1 < at && v->dies + 1 > at && bytes > most) {
            best = i;
            most = bytes;
        }
    }
    if (best != NONE)
        spill[best] = true;
    return best != NONE;
}

/* The largest volume whose parts lie beside each other at that node; false if
 * there is none. They need not, if the processor combines them. */
static bool choose_apart(const Lower *l, uint32_t at, bool *apart) {
    uint32_t best = NONE;
    uint64_t most = 0;
    for (uint32_t i = 0; i < l->g->node.n; i++) {
        if (l->beside[i] == NONE)
            continue;
        const Node *node = &l->g->node.at[i];
        uint64_t bytes = value_bytes(l, &l->value.at[l->beside[i]]);
        uint32_t born = NONE, dies = l->value.at[l->beside[i]].dies;
        for (uint32_t k = 0; k < node->n_in; k++) {
            const Value *v = &l->value.at[l->value_of[node->in[k].i]];
            born = v->born < born ? v->born : born;
            dies = v->dies > dies ? v->dies : dies;
        }
        if (born <= at && at <= dies + 1 && bytes > most) {
            best = i;
            most = bytes;
        }
    }
    if (best != NONE)
        apart[best] = true;
    return best != NONE;
}

static const FilePiece *pieces(const Lower *l) {
    FilePiece *piece = ARENA_ARRAY(l->arena, FilePiece, l->draft.n + 1);
    for (uint32_t i = 0; i < l->draft.n; i++)
        piece[i] = l->draft.at[i].piece;
    return piece;
}

static const FileGen *finish(const Lower *l, const Program *program,
                             const PlacedMemory *used, uint32_t spilled) {
    FileGen *out = ARENA_NEW(l->arena, FileGen);
    *out = (FileGen){.program = program,
                     .graph = l->g,
                     .piece = pieces(l),
                     .layer = l->layer,
                     .used = used,
                     .spilled = spilled};
    for (uint32_t i = 0; i < l->g->node.n; i++) {
        FileWay way = l->layer[i].way;
        out->on_engine += way == FILE_ENGINE;
        out->host_convs += way == FILE_HOST && l->g->node.at[i].op == OP_CONV;
    }
    return out;
}

static uint32_t count_spilled(const bool *spill, const Graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->tensor.n; i++)
        n += spill[i];
    return n;
}

const FileGen *filegen_run(Arena *arena, Diag *diag, const HwSpec *spec,
                           const Graph *g, bool *no_fit) {
    bool *spill = ARENA_ARRAY(arena, bool, g->tensor.n + 1);
    bool *apart = ARENA_ARRAY(arena, bool, g->node.n + 1);
    PlacedMemory *used = ARENA_ARRAY(arena, PlacedMemory, spec->n_memories);
    *no_fit = false;
    for (uint32_t tries = 0;; tries++) {
        Lower l;
        uint32_t small = NONE;
        open_lower(&l, arena, diag, spec, g, spill, apart);
        if (!has_memories(&l) || !has_elements(&l) || !lower_ways(&l) ||
            !lower_layers(&l))
            return NULL;
        Program *program = lower_program(&l, true);
        Diag *said = diag_new(arena);
        if (program_place(arena, said, program, used, &small))
            return finish(&l, program, used, count_spilled(spill, g));
        if (small == l.active && tries < MOST_SPILLS &&
            (choose_spill(&l, used[small].at, spill) ||
             choose_apart(&l, used[small].at, apart)))
            continue;
        *no_fit = small != NONE;
        diag_error(
            diag, diag_count(said) ? diag_at(said, 0)->loc : (Loc){0}, "%s",
            diag_count(said) ? diag_at(said, 0)->text : "it cannot be placed");
        return NULL;
    }
}
