/* tokens.c - tokens of a list of instructions, from what each touches.
 *
 * Input: a Program in the order in which its instructions were made, which is
 * right if each waits for all before it. Output: masks of its queues, so that
 * two touches of one cell, one of them a write, keep their order whatever time
 * each takes. Method: of each piece of cells the last writer and, by queue, the
 * last reader behind it. Queues keep their order, so of all that an instruction
 * needs of another queue the last is enough, and nothing where one before it in
 * its queue has waited for as much: the k-th token given is the k-th taken.
 */
#include "wordgen/writer.h"

#include <string.h>

/* Numbers of instructions in their queue, from 1; 0: none. */
typedef struct Piece {
    int64_t at, end;
    uint32_t writer_queue, writer;
    uint32_t reader[PROG_QUEUES];
} Piece;

typedef struct Needs {
    uint32_t of[PROG_QUEUES];
} Needs;

typedef struct Placer {
    Arena *arena;
    VEC(Piece) piece; /* by `at`, apart */
    VEC(uint32_t) line[PROG_QUEUES];
} Placer;

/* The first piece that ends behind the cell. */
static uint32_t find(const Placer *p, int64_t cell) {
    uint32_t lo = 0, hi = p->piece.n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (p->piece.at[mid].end > cell)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static void insert(Placer *p, uint32_t i, Piece piece) {
    vec_push(p->arena, &p->piece, piece);
    memmove(&p->piece.at[i + 1], &p->piece.at[i],
            (p->piece.n - 1 - i) * sizeof piece);
    p->piece.at[i] = piece;
}

/* No piece goes on from below the cell to beyond. */
static uint32_t cut(Placer *p, int64_t cell) {
    uint32_t i = find(p, cell);
    if (i == p->piece.n || p->piece.at[i].at >= cell)
        return i;
    Piece behind = p->piece.at[i];
    behind.at = cell;
    p->piece.at[i].end = cell;
    insert(p, i + 1, behind);
    return i + 1;
}

static void need(Needs *needs, uint32_t queue, uint32_t number) {
    if (number > needs->of[queue])
        needs->of[queue] = number;
}

static void need_piece(Needs *needs, const Piece *piece, bool writes) {
    need(needs, piece->writer_queue, piece->writer);
    for (uint32_t q = 0; writes && q < PROG_QUEUES; q++)
        need(needs, q, piece->reader[q]);
}

static void write_cells(Placer *p, int64_t at, int64_t end, uint32_t queue,
                        uint32_t number, Needs *needs) {
    uint32_t first = cut(p, at), last = cut(p, end);
    Piece own = {.at = at, .end = end, .writer_queue = queue, .writer = number};
    for (uint32_t i = first; i < last; i++)
        need_piece(needs, &p->piece.at[i], true);
    if (first == last) {
        insert(p, first, own);
        return;
    }
    p->piece.at[first] = own;
    memmove(&p->piece.at[first + 1], &p->piece.at[last],
            (p->piece.n - last) * sizeof own);
    p->piece.n -= last - first - 1;
}

static void read_cells(Placer *p, int64_t at, int64_t end, uint32_t queue,
                       uint32_t number, Needs *needs) {
    uint32_t i = cut(p, at);
    cut(p, end);
    while (at < end) {
        int64_t next = i < p->piece.n ? p->piece.at[i].at : end;
        if (next > at) {
            insert(p, i, (Piece){.at = at, .end = next < end ? next : end});
        }
        need_piece(needs, &p->piece.at[i], false);
        p->piece.at[i].reader[queue] = number;
        at = p->piece.at[i++].end;
    }
}

static Needs needs_of(Placer *p, const ProgIssue *issue, uint32_t number) {
    Needs needs = {0};
    for (uint32_t i = 0; i < issue->n; i++) {
        const ProgTouch *t = &issue->touch[i];
        for (int64_t k = 0; k < t->count && t->size > 0; k++) {
            int64_t at = t->at + k * t->step;
            (t->writes ? write_cells : read_cells)(
                p, at, at + t->size, issue->queue, number, &needs);
        }
    }
    return needs;
}

static void set_masks(const Program *program, const ProgIssue *issue,
                      const Needs *needs, const Placer *p, bool own) {
    int64_t *waits = ARENA_ARRAY(p->arena, int64_t, program->n_nodes + 1);
    int64_t *tells = ARENA_ARRAY(p->arena, int64_t, program->n_nodes + 1);
    Needs had[PROG_QUEUES] = {0};
    for (uint32_t i = 0; i < program->n_nodes; i++) {
        uint32_t queue = issue[i].queue;
        waits[i] |= own ? INT64_C(1) << queue : 0;
        tells[i] |= own ? INT64_C(1) << queue : 0;
        for (uint32_t q = 0; q < PROG_QUEUES; q++) {
            if (q == queue || needs[i].of[q] <= had[queue].of[q])
                continue;
            had[queue].of[q] = needs[i].of[q];
            waits[i] |= INT64_C(1) << q;
            tells[p->line[q].at[needs[i].of[q] - 1]] |= INT64_C(1) << queue;
        }
    }
    for (uint32_t i = 0; i < program->n_nodes; i++)
        program_set_tokens(program->spec, &program->node[i], waits[i],
                           tells[i]);
}

bool writer_place_tokens(Arena *arena, Diag *diag, Program *program) {
    bool own;
    if (!program_places_tokens(program->spec, &own))
        return true;
    Arena *scratch = arena_new("tokens");
    Placer p = {.arena = scratch};
    const ProgIssue *issue = program_issue(arena, diag, program);
    Needs *needs = ARENA_ARRAY(scratch, Needs, program->n_nodes + 1);
    for (uint32_t i = 0; issue && i < program->n_nodes; i++) {
        vec_push(scratch, &p.line[issue[i].queue], i);
        needs[i] = needs_of(&p, &issue[i], p.line[issue[i].queue].n);
    }
    if (issue)
        set_masks(program, issue, needs, &p, own);
    arena_free(scratch);
    return issue != NULL;
}
