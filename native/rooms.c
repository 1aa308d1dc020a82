/* rooms.c - see rooms.h.
 *
 * A placement for the most images orders the rooms of a pool that are alive
 * together: one lies below the other. For n images each room starts where all
 * that lie below it end; since that is so for the most, and sizes grow with n,
 * no pool grows beyond what the placement needs. */
#include "native/rooms.h"

#include "base/arith.h"
#include "base/text.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

/* Of a result and its operand. */
typedef struct Lap {
    RelationKind kind; /* BELOW, SAME */
    uint32_t result, operand;
    int64_t image, fixed;
} Lap;

struct Rooms {
    Arena *arena;
    const HwSpec *spec;
    uint32_t images;
    uint64_t align;
    VEC(Room) room;
    VEC(Lap) lap;
    PackProblem problem;
    PackResult result;
    const char *planner;
    NativeRoom *native;
    uint32_t *order; /* rooms by offset */
};

uint64_t rooms_align(const HwSpec *spec) {
    uint64_t all = 1;
    for (uint32_t m = 0; m < spec->n_active; m++) {
        uint64_t align = spec->memory[m].align;
        uint64_t more = align / gcd(all, align);
        if (all > UINT32_MAX || more > UINT32_MAX)
            return UINT64_MAX;
        all *= more;
    }
    return all;
}

Rooms *rooms_new(Arena *arena, const HwSpec *spec, uint32_t images) {
    Rooms *r = ARENA_NEW(arena, Rooms);
    *r = (Rooms){.arena = arena,
                 .spec = spec,
                 .images = images,
                 .align = rooms_align(spec)};
    return r;
}

uint32_t rooms_add(Rooms *r, HwKind kind, const char *name, uint64_t image,
                   uint64_t fixed) {
    Room room = {.kind = kind,
                 .name = name,
                 .image = round_up(image, r->align),
                 .fixed = round_up(fixed, r->align)};
    vec_push(r->arena, &r->room, room);
    return r->room.n - 1;
}

void rooms_use(Rooms *r, uint32_t room, uint32_t call) {
    Room *at = &r->room.at[room];
    if (at->first == at->end)
        at->first = call;
    at->first = call < at->first ? call : at->first;
    at->end = call + 1 > at->end ? call + 1 : at->end;
}

void rooms_overlap(Rooms *r, uint32_t result, uint32_t operand, int64_t image,
                   int64_t fixed) {
    int64_t align = (int64_t)r->align;
    Lap lap = {REL_BELOW, result, operand, (image + align - 1) / align * align,
               (fixed + align - 1) / align * align};
    vec_push(r->arena, &r->lap, lap);
}

void rooms_same(Rooms *r, uint32_t result, uint32_t operand) {
    Lap lap = {.kind = REL_SAME, .result = result, .operand = operand};
    vec_push(r->arena, &r->lap, lap);
}

uint64_t rooms_live(const Rooms *r, uint32_t call) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->room.n; i++) {
        const Room *room = &r->room.at[i];
        if (room->first <= call && call < room->end)
            sum += r->images * room->image + room->fixed;
    }
    return sum;
}

uint32_t rooms_images(const Rooms *r) {
    return r->images;
}

uint32_t rooms_count(const Rooms *r) {
    return r->room.n;
}

const Room *rooms_at(const Rooms *r, uint32_t room) {
    return &r->room.at[room];
}

const char *rooms_planner(const Rooms *r) {
    return r->planner;
}

const PackResult *rooms_result(const Rooms *r) {
    return &r->result;
}

/* ---- the problem ---- */

static Buffer buf_of(const Rooms *r, const Room *room) {
    uint32_t lies = r->spec->bundle.lies[room->kind];
    Buffer buf = {.first = room->first,
                  .end = room->end,
                  .pin_pool = -1,
                  .hint = PACK_NO_HINT};
    for (uint32_t m = 0; m < r->spec->n_active; m++)
        if (!lies || lies >> m & 1)
            buf.bytes[m] = r->images * room->image + room->fixed;
    /* what the caller puts there once stays, however many images there are */
    for (uint32_t m = 0; m < r->spec->n_active; m++)
        if (room->kind == HW_KIND_CONSTANTS && buf.pin_pool < 0 && buf.bytes[m])
            buf.pin_pool = (int32_t)m;
    return buf;
}

/* Does the lap ask for less than the whole result below the operand? */
static bool is_worth(const Room *result, const Lap *lap, uint32_t n) {
    return lap->kind == REL_SAME ||
           n * lap->image + lap->fixed <
               (int64_t)(n * result->image + result->fixed);
}

/* Of operands that are needed later nothing may be overwritten. */
static void drop_laps(Rooms *r) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->lap.n; i++) {
        Lap lap = r->lap.at[i];
        const Room *result = &r->room.at[lap.result];
        if (r->room.at[lap.operand].end <= result->first + 1 &&
            is_worth(result, &lap, 1) && is_worth(result, &lap, r->images))
            r->lap.at[n++] = lap;
    }
    r->lap.n = n;
}

static void problem_make(Rooms *r) {
    PackProblem *p = &r->problem;
    Buffer *buf = ARENA_ARRAY(r->arena, Buffer, r->room.n);
    Relation *relation = ARENA_ARRAY(r->arena, Relation, r->lap.n);
    for (uint32_t i = 0; i < r->room.n; i++)
        buf[i] = buf_of(r, &r->room.at[i]);
    for (uint32_t i = 0; i < r->lap.n; i++) {
        const Lap *lap = &r->lap.at[i];
        relation[i] = (Relation){lap->kind, lap->result, lap->operand,
                                 r->images * lap->image + lap->fixed};
    }
    *p = (PackProblem){.n_pools = r->spec->n_active,
                       .n_bufs = r->room.n,
                       .buf = buf,
                       .n_relations = r->lap.n,
                       .relation = relation};
    for (uint32_t m = 0; m < r->spec->n_active; m++)
        p->pool[m] = (Pool){.size = r->spec->memory[m].size,
                            .align = r->spec->memory[m].align,
                            .cost = r->spec->memory[m].cost};
}

static uint64_t height_of(const PackResult *result) {
    uint64_t sum = 0;
    for (uint32_t m = 0; m < PACK_MAX_POOLS; m++)
        sum += result->height[m];
    return sum;
}

uint64_t rooms_height(const Rooms *r) {
    return height_of(&r->result);
}

static bool is_lower(const PackResult *a, const PackResult *b) {
    if (b->status != PACK_FITS || a->cost != b->cost)
        return b->status != PACK_FITS || a->cost < b->cost;
    return height_of(a) < height_of(b) ||
           (height_of(a) == height_of(b) && a->proved);
}

/* Bytes of the pool that would do, if the others are as they are; 0: none. */
static uint64_t enough(const Rooms *r, uint32_t pool) {
    PackProblem asked = r->problem;
    PackResult result;
    const char *used;
    asked.pool[pool].size = INT64_MAX / 4;
    pack_memory(r->arena, &asked, "auto", true, &result, &used);
    return result.status == PACK_FITS ? result.height[pool] : 0;
}

static void explain_rooms(const Rooms *r, Diag *diag) {
    PackConflict conflict;
    PackProblem asked = r->problem;
    pack_irreducible(r->arena, &asked, &conflict);
    for (uint32_t i = 0; i < conflict.n; i++) {
        const Room *room = &r->room.at[conflict.buf[i]];
        diag_note(diag, r->spec->loc, "%s: %llu bytes", room->name,
                  (unsigned long long)(r->images * room->image + room->fixed));
    }
}

void rooms_explain(const Rooms *r, Diag *diag, const char *network) {
    const HwSpec *spec = r->spec;
    uint64_t need = 0;
    uint32_t m = 0;
    while (m < spec->n_active && (need = enough(r, m)) == 0)
        m++;
    if (need == 0) {
        diag_error(diag, spec->loc,
                   "does not fit: the bundle of %s needs more of several "
                   "memories than %s has",
                   network, spec->machine);
        explain_rooms(r, diag);
        return;
    }
    const HwMemory *memory = &spec->memory[m];
    diag_error(diag, spec->loc,
               "does not fit: the bundle of %s needs %llu bytes of %s, which "
               "has %llu",
               network, (unsigned long long)need, memory->name,
               (unsigned long long)memory->size);
    explain_rooms(r, diag);
    diag_note(diag, (Loc){0}, "--set memories.%s.size=%lluKiB would do",
              memory->name, (unsigned long long)((need + 1023) / 1024));
}

/* ---- for fewer images ---- */

/* How far behind the start of a the room b begins, if it lies above. */
static NativeAfter distance(const Rooms *r, uint32_t a, uint32_t b) {
    const Room *below = &r->room.at[a];
    NativeAfter after = {a, (int64_t)below->image, (int64_t)below->fixed};
    for (uint32_t i = 0; i < r->lap.n; i++)
        if (r->lap.at[i].result == a && r->lap.at[i].operand == b) {
            after.image = r->lap.at[i].image;
            after.fixed = r->lap.at[i].fixed;
        }
    return after;
}

static bool is_below(const Rooms *r, uint32_t a, uint32_t b,
                     NativeAfter *after) {
    const PackResult *at = &r->result;
    if (at->pool[a] != at->pool[b] ||
        !bufs_conflict(&r->problem.buf[a], &r->problem.buf[b]))
        return false;
    *after = distance(r, a, b);
    return (int64_t)at->offset[a] + r->images * after->image + after->fixed <=
           (int64_t)at->offset[b];
}

/* By offset: a few rooms at a time are alive together. */
static void sort_by_offset(Rooms *r) {
    r->order = ARENA_ARRAY(r->arena, uint32_t, r->room.n);
    for (uint32_t i = 0; i < r->room.n; i++) {
        uint32_t at = i;
        for (; at && r->result.offset[r->order[at - 1]] > r->result.offset[i];
             at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = i;
    }
}

/* Does a way over another room ask for as much, whatever n is? */
static bool is_implied(const Rooms *r, const NativeAfter *direct,
                       const NativeAfter *all, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        NativeAfter first, second = all[i];
        if (all[i].room == direct->room ||
            !is_below(r, direct->room, all[i].room, &first))
            continue;
        int64_t image = first.image + second.image - direct->image;
        int64_t fixed = first.fixed + second.fixed - direct->fixed;
        if (image + fixed >= 0 && r->images * image + fixed >= 0)
            return true;
    }
    return false;
}

static void list_after(Rooms *r, uint32_t b) {
    VEC(NativeAfter) all = {0}, kept = {0};
    NativeAfter after;
    for (uint32_t i = 0; r->order[i] != b; i++)
        if (is_below(r, r->order[i], b, &after))
            vec_push(r->arena, &all, after);
    for (uint32_t i = 0; i < all.n; i++)
        if (!is_implied(r, &all.at[i], all.at, all.n))
            vec_push(r->arena, &kept, all.at[i]);
    r->native[b].n_after = kept.n;
    r->native[b].after = kept.at;
}

static void native_make(Rooms *r) {
    r->native = ARENA_ARRAY(r->arena, NativeRoom, r->room.n);
    sort_by_offset(r);
    for (uint32_t i = 0; i < r->room.n; i++) {
        r->native[i] = (NativeRoom){.pool = (uint32_t)r->result.pool[i],
                                    .offset = r->result.offset[i]};
        if (r->images > 1)
            list_after(r, i);
    }
}

bool rooms_place(Rooms *r, const char *planner) {
    enum { STEPS = 100000 };
    bool is_auto = strcmp(planner, "auto") == 0;
    drop_laps(r);
    problem_make(r);
    pack_memory(r->arena, &r->problem, planner, true, &r->result, &r->planner);
    if (is_auto && !r->result.proved) {
        PackProblem asked = r->problem;
        asked.budget = STEPS;
        PackResult lower;
        const char *used;
        pack_memory(r->arena, &asked, "portfolio", true, &lower, &used);
        if (lower.status == PACK_FITS && is_lower(&lower, &r->result)) {
            r->result = lower;
            r->planner = used;
        }
    }
    if (r->result.status == PACK_FITS)
        native_make(r);
    return r->result.status == PACK_FITS;
}

const NativeRoom *rooms_native(const Rooms *r) {
    return r->native;
}

/* Where each room starts for n images. */
static uint64_t *offsets_for(const Rooms *r, Arena *arena, uint32_t n) {
    uint64_t *at = ARENA_ARRAY(arena, uint64_t, r->room.n);
    for (uint32_t i = 0; i < r->room.n; i++) {
        uint32_t b = r->order[i];
        at[b] = r->images > 1 ? 0 : r->result.offset[b];
        for (uint32_t k = 0; k < r->native[b].n_after; k++) {
            const NativeAfter *after = &r->native[b].after[k];
            int64_t least =
                (int64_t)at[after->room] + n * after->image + after->fixed;
            at[b] = least > (int64_t)at[b] ? (uint64_t)least : at[b];
        }
    }
    return at;
}

uint64_t rooms_offset(const Rooms *r, uint32_t room, uint32_t n) {
    Arena *scratch = arena_new("offset");
    uint64_t offset = offsets_for(r, scratch, n)[room];
    arena_free(scratch);
    return offset;
}

uint64_t rooms_bytes(const Rooms *r, uint32_t pool, uint32_t n) {
    Arena *scratch = arena_new("bytes");
    const uint64_t *at = offsets_for(r, scratch, n);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r->room.n; i++) {
        const Room *room = &r->room.at[i];
        uint64_t end = at[i] + n * room->image + room->fixed;
        if (r->native[i].pool == pool && end > bytes)
            bytes = end;
    }
    arena_free(scratch);
    return bytes;
}

/* ---- as text ---- */

static const char *const kind_name[HW_KINDS] = {
    [HW_KIND_INPUTS] = "in",           [HW_KIND_OUTPUTS] = "out",
    [HW_KIND_CONSTANTS] = "constants", [HW_KIND_ACTIVATIONS] = "between",
    [HW_KIND_SCRATCH] = "scratch",
};

/* No spaces or commas, and no name twice. */
static const char *id_of(const Rooms *r, uint32_t room) {
    const Room *at = &r->room.at[room];
    char *name = arena_strdup(r->arena, at->name);
    for (char *c = name; *c; c++)
        if (strchr(" ,:@\"\n", *c))
            *c = '_';
    return arena_printf(r->arena, "%u.%s.%s", room, kind_name[at->kind], name);
}

static bool has_pins(const Rooms *r) {
    bool pins = false;
    for (uint32_t i = 0; i < r->room.n; i++)
        pins |= r->problem.buf[i].pin_pool >= 0;
    return pins;
}

/* What only some problems have: sizes by pool, and what is pinned. */
static void add_columns(Text *text, const Rooms *r, const Buffer *buf) {
    for (uint32_t m = 0; m < r->spec->n_active && r->spec->n_active > 1; m++)
        text_addf(text, ",%llu", (unsigned long long)buf->bytes[m]);
    if (!has_pins(r))
        return;
    if (r->spec->n_active > 1)
        text_addf(text, ",%s",
                  buf->pin_pool < 0 ? "" : r->spec->memory[buf->pin_pool].name);
    text_add(text, buf->pin_pool < 0 ? "," : ",0");
}

static void add_headings(Text *text, const Rooms *r) {
    text_add(text, "id,lower,upper,size,relations");
    for (uint32_t m = 0; m < r->spec->n_active && r->spec->n_active > 1; m++)
        text_addf(text, ",size:%s", r->spec->memory[m].name);
    if (has_pins(r))
        text_add(text, r->spec->n_active > 1 ? ",pool,offset" : ",offset");
    text_add(text, "\n");
}

static void add_laps(Text *text, const Rooms *r, uint32_t room) {
    const char *space = "";
    for (uint32_t i = 0; i < r->lap.n; i++) {
        const Lap *lap = &r->lap.at[i];
        if (lap->result != room)
            continue;
        const char *other = id_of(r, lap->operand);
        if (lap->kind == REL_SAME)
            text_addf(text, "%ssame:%s", space, other);
        else
            text_addf(text, "%sbelow:%s@%lld", space, other,
                      (long long)(r->images * lap->image + lap->fixed));
        space = " ";
    }
}

const char *rooms_csv(const Rooms *r) {
    Text text = text_new(r->arena);
    add_headings(&text, r);
    for (uint32_t i = 0; i < r->room.n; i++) {
        const Room *room = &r->room.at[i];
        text_addf(&text, "%s,%u,%u,%llu,", id_of(r, i), room->first, room->end,
                  (unsigned long long)(r->images * room->image + room->fixed));
        add_laps(&text, r, i);
        add_columns(&text, r, &r->problem.buf[i]);
        text_add(&text, "\n");
    }
    return text_str(&text);
}
