/* place.c - addresses of a file's ranges and volumes, by live ranges.
 *
 * In: a program in which every operand has some address, in memories of any
 * size. Out: the same program with addresses that fit. A walk over the nodes
 * finds what each reads (`Piece`: bytes that one node wrote); pieces that one
 * node reads together keep their distance (`group`). The packer does the rest.
 */
#include "filegen/filegen.h"

#include "base/vec.h"
#include "pack/pack.h"

#include <string.h>

/* Bytes that a node writes. Groups are a forest: a piece that is nobody's part
 * is its own root, and `low..high` of the root cover all of it. */
typedef struct Piece {
    uint32_t memory, root;
    uint64_t start, end; /* as they were */
    uint64_t low, high;  /* of the group: of roots */
    uint32_t first, last;
} Piece;

/* Bytes [start, end) that hold a piece now. */
typedef struct Held {
    uint64_t start, end;
    uint32_t piece;
} Held;

typedef struct HeldList {
    Held *at;
    uint32_t n, cap;
} HeldList;

/* An operand: its numbers in the program, and the piece that they follow. */
typedef struct Access {
    uint32_t piece;
    uint64_t start; /* bytes */
    int64_t *num;   /* the address, in units of `unit` bytes from `base` */
    uint64_t unit, base;
} Access;

typedef struct Placer {
    Arena *arena, *work;
    Diag *diag;
    Program *program;
    const HwSpec *spec;
    uint32_t node;
    VEC(Piece) piece;
    VEC(Access) access;
    HeldList *held; /* by memory */
} Placer;

/* ---- pieces and groups ---- */

static uint32_t root_of(const Placer *p, uint32_t piece) {
    while (p->piece.at[piece].root != piece)
        piece = p->piece.at[piece].root;
    return piece;
}

static void unite(Placer *p, uint32_t a, uint32_t b) {
    a = root_of(p, a);
    b = root_of(p, b);
    if (a == b)
        return;
    Piece *to = &p->piece.at[a < b ? a : b],
          *from = &p->piece.at[a < b ? b : a];
    from->root = a < b ? a : b;
    to->low = to->low < from->low ? to->low : from->low;
    to->high = to->high > from->high ? to->high : from->high;
    to->first = to->first < from->first ? to->first : from->first;
    to->last = to->last > from->last ? to->last : from->last;
}

/* What lay there is no more. */
static void forget(Placer *p, uint32_t memory, uint64_t start, uint64_t end) {
    uint32_t n = p->held[memory].n;
    for (uint32_t i = 0; i < n; i++) {
        Held was = p->held[memory].at[i];
        if (was.start >= end || was.end <= start)
            continue;
        Held behind = {end, was.end, was.piece};
        p->held[memory].at[i].end = was.start < start ? start : was.start;
        if (was.end > end)
            vec_push(p->work, &p->held[memory], behind);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->held[memory].n; i++)
        if (p->held[memory].at[i].start < p->held[memory].at[i].end)
            p->held[memory].at[kept++] = p->held[memory].at[i];
    p->held[memory].n = kept;
}

/* The piece whose group the bytes belong to. */
static uint32_t written(Placer *p, uint32_t memory, uint64_t start,
                        uint64_t end) {
    uint32_t id = p->piece.n;
    Piece piece = {memory, id, start, end, start, end, p->node, p->node};
    Held held = {start, end, id};
    forget(p, memory, start, end);
    vec_push(p->work, &p->piece, piece);
    vec_push(p->work, &p->held[memory], held);
    return id;
}

static Loc here(const Placer *p) {
    bool inside = p->node && p->node <= p->program->n_nodes;
    return inside ? p->program->node[p->node - 1].loc : (Loc){0};
}

/* False, with an error, if nobody wrote some of them. */
static bool was_read(Placer *p, uint32_t memory, uint64_t start, uint64_t end,
                     uint32_t *out) {
    uint64_t bytes = 0;
    *out = UINT32_MAX;
    for (uint32_t i = 0; i < p->held[memory].n; i++) {
        const Held *held = &p->held[memory].at[i];
        if (held->start >= end || held->end <= start)
            continue;
        uint64_t from = held->start > start ? held->start : start;
        bytes += (held->end < end ? held->end : end) - from;
        Piece *piece = &p->piece.at[root_of(p, held->piece)];
        piece->last = p->node;
        if (*out == UINT32_MAX)
            *out = held->piece;
        unite(p, *out, held->piece);
    }
    if (bytes == end - start)
        return true;
    diag_error(p->diag, here(p),
               "it reads %llu bytes at %llu of %s, of which nobody wrote %llu",
               (unsigned long long)(end - start), (unsigned long long)start,
               p->spec->memory[memory].name,
               (unsigned long long)(end - start - bytes));
    return false;
}

/* ---- operands ---- */

static int64_t *number(ProgScope *scope, const char *name, const char *part) {
    size_t n = strlen(name);
    for (uint32_t i = 0; i < scope->n_meanings; i++) {
        ProgMeaning *m = &scope->meaning[i];
        if (m->set && !strncmp(m->name, name, n) && m->name[n] == '.' &&
            !strcmp(m->name + n + 1, part))
            return &m->num;
    }
    return NULL;
}

static int64_t *numbers(ProgScope *scope, const char *name, const char *part,
                        uint32_t *n) {
    size_t len = strlen(name);
    for (uint32_t i = 0; i < scope->n_vectors; i++) {
        ProgVector *v = &scope->vector[i];
        if (v->set && !strncmp(v->name, name, len) && v->name[len] == '.' &&
            !strcmp(v->name + len + 1, part)) {
            *n = v->n;
            return (int64_t *)(uintptr_t)v->num;
        }
    }
    *n = 0;
    return NULL;
}

static uint32_t memory_of(const Placer *p, int64_t id) {
    uint32_t i = 0;
    while (i < p->spec->n_memories && p->spec->memory[i].id != (uint64_t)id)
        i++;
    return i;
}

/* Bytes of one operand: notes who wrote them. */
static bool touch(Placer *p, uint32_t memory, Access access, uint64_t bytes,
                  bool writes) {
    if (memory >= p->spec->n_memories || !bytes ||
        p->spec->memory[memory].role == HW_CONSTANTS)
        return true;
    uint64_t end = access.start + bytes;
    if (writes)
        access.piece = written(p, memory, access.start, end);
    else if (!was_read(p, memory, access.start, end, &access.piece))
        return false;
    vec_push(p->work, &p->access, access);
    return true;
}

static bool touch_range(Placer *p, int64_t memory, int64_t *start, int64_t size,
                        bool writes) {
    Access access = {0, (uint64_t)*start, start, 1, 0};
    return touch(p, memory_of(p, memory), access, (uint64_t)size, writes);
}

/* The memory in which the engine lets the operand lie. */
static uint32_t home_of(const Placer *p, const char *name) {
    HwOperand operand = strcmp(name, "in") ? HW_OUT : HW_IN;
    uint32_t may = hwspec_lies(p->spec, HW_OP_CONV, operand), i = 0;
    while (i < p->spec->n_memories && !(may >> i & 1))
        i++;
    return i;
}

static bool touch_volume(Placer *p, ProgScope *scope, const char *name,
                         int64_t *addr, bool writes) {
    uint32_t memory = home_of(p, name);
    const HwMemory *m = &p->spec->memory[memory];
    int64_t *c = number(scope, name, "c"), *h = number(scope, name, "h"),
            *w = number(scope, name, "w");
    if (!c || !h || !w) {
        diag_error(p->diag, here(p), "it does not say the extents of `%s`",
                   name);
        return false;
    }
    Volume v = {(uint32_t)*c, (uint32_t)*h, (uint32_t)*w, {0}};
    uint64_t images = (uint64_t)prog_num(scope, "batch", 1);
    Access access = {0, ((uint64_t)*addr - m->base) * m->unit, addr, m->unit,
                     m->base};
    return touch(p, memory, access, images * layout_bytes(m->layout, &v),
                 writes);
}

static bool touch_operand(Placer *p, ProgScope *scope, const char *name,
                          bool writes) {
    int64_t *addr = number(scope, name, "addr");
    if (addr)
        return touch_volume(p, scope, name, addr, writes);
    int64_t *memory = number(scope, name, "memory");
    int64_t *start = number(scope, name, "start");
    int64_t *size = number(scope, name, "size");
    return !memory || !start || !size ||
           touch_range(p, *memory, start, *size, writes);
}

/* Vectors of ranges: of a file's inputs, of a concat's parts. */
static bool touch_vector(Placer *p, ProgScope *scope, const char *name,
                         bool writes) {
    uint32_t n, n_start, n_size;
    int64_t *memory = numbers(scope, name, "memory", &n);
    int64_t *start = numbers(scope, name, "start", &n_start);
    int64_t *size = numbers(scope, name, "size", &n_size);
    bool ok = true;
    for (uint32_t i = 0; i < n && i < n_start && i < n_size; i++)
        ok &= touch_range(p, memory[i], &start[i], size[i], writes);
    return ok;
}

static bool touch_node(Placer *p, ProgScope *scope) {
    static const char *const reads[] = {"in", "in2"};
    static const char *const makes[] = {"out", "out2"};
    bool ok = true;
    for (int i = 0; i < 2; i++)
        ok &= touch_operand(p, scope, reads[i], false);
    ok &= touch_vector(p, scope, "part", false);
    for (int i = 0; i < 2; i++)
        ok &= touch_operand(p, scope, makes[i], true);
    return ok;
}

/* Vectors of addresses that can be written to. */
static void own_vectors(Placer *p, ProgScope *scope) {
    for (uint32_t i = 0; i < scope->n_vectors; i++) {
        ProgVector *v = &scope->vector[i];
        const char *dot = strrchr(v->name, '.');
        bool range = dot && (!strcmp(dot, ".start") || !strcmp(dot, ".size") ||
                             !strcmp(dot, ".memory"));
        if (!v->set || !range)
            continue;
        int64_t *num = ARENA_ARRAY(p->arena, int64_t, v->n + 1);
        for (uint32_t k = 0; k < v->n; k++)
            num[k] = prog_at(v, k);
        v->byte = NULL;
        v->num = num;
    }
}

/* Steps: 0 are the inputs, 1... the nodes, behind them the outputs. */
static bool walk(Placer *p) {
    Program *program = p->program;
    own_vectors(p, &program->scope);
    bool ok = touch_vector(p, &program->scope, "input", true);
    for (uint32_t i = 0; i < program->n_nodes && ok; i++) {
        p->node = i + 1;
        own_vectors(p, &program->node[i].scope);
        ok = touch_node(p, &program->node[i].scope);
    }
    p->node = program->n_nodes + 1;
    return ok && touch_vector(p, &program->scope, "output", false);
}

/* ---- places ---- */

static uint64_t align_of(const HwMemory *m) {
    return m->align > m->unit ? m->align : m->unit;
}

/* The groups of a memory as buffers; `root[i]`: of buffer i. */
static uint32_t buffers_of(Placer *p, uint32_t memory, Buffer *buf,
                           uint32_t *root) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->piece.n; i++) {
        const Piece *piece = &p->piece.at[i];
        if (piece->root != i || piece->memory != memory)
            continue;
        buf[n] = (Buffer){.first = piece->first,
                          .end = piece->last + 1,
                          .bytes = {piece->high - piece->low},
                          .pin_pool = -1,
                          .hint = PACK_NO_HINT};
        root[n++] = i;
    }
    return n;
}

/* Where the group's first byte comes to lie, in `to` by piece. */
static bool place_memory(Placer *p, uint32_t memory, uint64_t *to,
                         PlacedMemory *out) {
    const HwMemory *m = &p->spec->memory[memory];
    Buffer *buf = ARENA_ARRAY(p->work, Buffer, p->piece.n + 1);
    uint32_t *root = ARENA_ARRAY(p->work, uint32_t, p->piece.n + 1);
    uint32_t n = buffers_of(p, memory, buf, root);
    PackProblem problem = {.n_pools = 1,
                           .n_bufs = n,
                           .pool = {{.size = m->size, .align = align_of(m)}},
                           .buf = buf,
                           .seed = 1};
    PackResult result;
    const char *used;
    *out = (PlacedMemory){0};
    if (!n)
        return true;
    out->live_peak = pack_live_peak(p->work, &problem, &out->at);
    if (out->live_peak > m->size)
        return false;
    pack_memory(p->work, &problem, "auto", true, &result, &used);
    out->height = result.height[0];
    for (uint32_t i = 0; i < n && result.status == PACK_FITS; i++)
        to[root[i]] = result.offset[i];
    return result.status == PACK_FITS;
}

static void tell_lack(const Placer *p, uint32_t memory,
                      const PlacedMemory *found) {
    const HwMemory *m = &p->spec->memory[memory];
    uint32_t node = found->at ? found->at - 1 : 0;
    bool inside = found->at && node < p->program->n_nodes;
    diag_error(p->diag, inside ? p->program->node[node].loc : (Loc){0},
               "%s has %llu bytes: at node %u (%s) %llu are needed at once",
               m->name, (unsigned long long)m->size, node,
               inside ? prog_row_name(p->program->node[node].row) : "outputs",
               (unsigned long long)found->live_peak);
}

static void move_all(Placer *p, const uint64_t *to) {
    for (uint32_t i = 0; i < p->access.n; i++) {
        const Access *access = &p->access.at[i];
        uint32_t root = root_of(p, access->piece);
        uint64_t at = to[root] + access->start - p->piece.at[root].low;
        *access->num = (int64_t)(at / access->unit + access->base);
    }
}

static void say_bytes(Placer *p, const PlacedMemory *out) {
    for (uint32_t i = 0; i < p->spec->n_memories; i++) {
        int64_t *said =
            number(&p->program->scope, p->spec->memory[i].name, "bytes");
        if (said && p->spec->memory[i].role != HW_CONSTANTS)
            *said = (int64_t)out[i].height;
    }
}

bool program_place(Arena *arena, Diag *diag, Program *program,
                   PlacedMemory *out, uint32_t *too_small) {
    const HwSpec *spec = program->spec;
    Placer p = {.arena = arena,
                .work = arena_new("place"),
                .diag = diag,
                .program = program,
                .spec = spec};
    p.held = ARENA_ARRAY(p.work, HeldList, spec->n_memories);
    bool ok = walk(&p);
    uint64_t *to = ARENA_ARRAY(p.work, uint64_t, p.piece.n + 1);
    for (uint32_t i = 0; i < spec->n_memories && ok; i++) {
        ok = place_memory(&p, i, to, &out[i]);
        if (ok)
            continue;
        if (too_small)
            *too_small = i;
        tell_lack(&p, i, &out[i]);
    }
    if (ok) {
        move_all(&p, to);
        say_bytes(&p, out);
    }
    arena_free(p.work);
    return ok;
}
