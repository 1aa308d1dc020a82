/* tokens.c - a file's instructions in their queues, ordered by tokens alone;
 * see sim/program.h.
 *
 * Input: of each node its queue, the queues from which it takes a token and
 * those to which it gives one, the cells that it touches. Output: how many
 * tokens passed between which queues, and what is wrong: a deadlock, tokens
 * that nobody takes, two touches of one cell, one a write, in no order.
 * Method: each queue runs its nodes in turn, as soon as their tokens are there.
 * The k-th token from one queue to another is that of the k-th giver, so that
 * what a node is behind of does not depend on time: by queue, how many nodes
 * were done for certain when it began. Each node is compared with those that
 * are not among them.
 */
#include "sim/program/run.h"

typedef struct Clock {
    uint32_t done[PROG_QUEUES];
} Clock;

/* Tokens from one queue to another: places of their givers in their queue. */
typedef struct Wire {
    VEC(uint32_t) giver;
    uint32_t taken;
} Wire;

typedef struct Line {
    VEC(uint32_t) node;
    uint32_t next; /* in `node`: it runs next */
} Line;

typedef struct Replay {
    ProgramRun *run; /* for faults */
    const ProgIssue *issue;
    uint32_t n_queues;
    const char *const *name;
    Line line[PROG_QUEUES];
    Wire wire[PROG_QUEUES][PROG_QUEUES]; /* from, to */
    Clock *clock;                        /* by node: before it */
    uint64_t budget;                     /* comparisons that are left */
} Replay;

/* ---- cells ---- */

static bool pieces_meet(const ProgTouch *a, const ProgTouch *b) {
    for (int64_t i = 0; i < a->count; i++)
        for (int64_t k = 0; k < b->count; k++) {
            int64_t x = a->at + i * a->step, y = b->at + k * b->step;
            if (x < y + b->size && y < x + a->size)
                return true;
        }
    return false;
}

static bool touches_meet(const ProgTouch *a, const ProgTouch *b) {
    int64_t a_end = a->at + (a->count - 1) * a->step + a->size;
    int64_t b_end = b->at + (b->count - 1) * b->step + b->size;
    return (a->writes || b->writes) && a->at < b_end && b->at < a_end &&
           pieces_meet(a, b);
}

static bool nodes_meet(Replay *r, const ProgIssue *a, const ProgIssue *b) {
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++) {
            r->budget -= r->budget > 0;
            if (touches_meet(&a->touch[i], &b->touch[k]))
                return true;
        }
    return false;
}

/* ---- one node ---- */

static bool may_begin(const Replay *r, uint32_t queue, uint32_t node) {
    for (uint32_t q = 0; q < r->n_queues; q++) {
        const Wire *wire = &r->wire[q][queue];
        if (q != queue && r->issue[node].waits >> q & 1 &&
            wire->taken == wire->giver.n)
            return false;
    }
    return true;
}

static void clock_join(Clock *clock, const Clock *other) {
    for (uint32_t q = 0; q < PROG_QUEUES; q++)
        if (other->done[q] > clock->done[q])
            clock->done[q] = other->done[q];
}

/* What is done when it begins. */
static Clock clock_of(Replay *r, uint32_t queue, uint32_t node) {
    const Line *line = &r->line[queue];
    Clock clock = {{0}};
    if (line->next)
        clock = r->clock[line->node.at[line->next - 1]];
    clock.done[queue] = line->next;
    for (uint32_t q = 0; q < r->n_queues; q++) {
        if (q == queue || !(r->issue[node].waits >> q & 1))
            continue;
        Wire *wire = &r->wire[q][queue];
        uint32_t giver = wire->giver.at[wire->taken++];
        clock_join(&clock, &r->clock[r->line[q].node.at[giver]]);
        if (giver + 1 > clock.done[q])
            clock.done[q] = giver + 1;
    }
    return clock;
}

/* Against all that have begun and may be at work still. */
static void look_for_races(Replay *r, uint32_t queue, uint32_t node) {
    for (uint32_t q = 0; q < r->n_queues; q++) {
        const Line *line = &r->line[q];
        for (uint32_t i = r->clock[node].done[q];
             q != queue && i < line->next && r->budget; i++) {
            uint32_t other = line->node.at[i];
            if (!nodes_meet(r, &r->issue[node], &r->issue[other]))
                continue;
            r->run->node = node;
            prog_fault(
                r->run,
                "touches cells of node %u (%s), and no token orders them",
                other, prog_row_name(r->run->program->node[other].row));
        }
    }
}

static void give(Replay *r, uint32_t queue, uint32_t node) {
    for (uint32_t q = 0; q < r->n_queues; q++)
        if (q != queue && r->issue[node].tells >> q & 1)
            vec_push(r->run->work, &r->wire[queue][q].giver,
                     r->line[queue].next);
}

static bool queue_advance(Replay *r, uint32_t queue) {
    Line *line = &r->line[queue];
    bool any = false;
    while (line->next < line->node.n) {
        uint32_t node = line->node.at[line->next];
        if (!may_begin(r, queue, node))
            break;
        r->clock[node] = clock_of(r, queue, node);
        look_for_races(r, queue, node);
        give(r, queue, node);
        line->next++;
        any = true;
    }
    return any;
}

/* ---- all ---- */

static void queues_fill(Replay *r) {
    int64_t known = ((int64_t)1 << r->n_queues) - 1;
    for (uint32_t i = 0; i < r->run->program->n_nodes; i++) {
        vec_push(r->run->work, &r->line[r->issue[i].queue].node, i);
        r->run->node = i;
        if ((r->issue[i].waits | r->issue[i].tells) & ~known)
            prog_fault(r->run, "names a queue that there is not");
    }
}

static void tell_stuck(Replay *r) {
    for (uint32_t queue = 0; queue < r->n_queues; queue++) {
        const Line *line = &r->line[queue];
        if (line->next == line->node.n)
            continue;
        uint32_t node = r->run->node = line->node.at[line->next];
        for (uint32_t q = 0; q < r->n_queues; q++) {
            const Wire *wire = &r->wire[q][queue];
            if (q != queue && r->issue[node].waits >> q & 1 &&
                wire->taken == wire->giver.n)
                prog_fault(r->run, "waits for a token of %s for ever",
                           r->name[q]);
        }
    }
}

static void tell_left(Replay *r) {
    r->run->node = r->run->program->n_nodes;
    for (uint32_t from = 0; from < r->n_queues; from++)
        for (uint32_t to = 0; to < r->n_queues; to++) {
            const Wire *wire = &r->wire[from][to];
            if (wire->giver.n > wire->taken)
                prog_fault(r->run, "%u tokens of %s for %s that nobody takes",
                           wire->giver.n - wire->taken, r->name[from],
                           r->name[to]);
        }
}

static void queues_run(Replay *r) {
    uint32_t done = 0;
    for (bool any = true; any;) {
        any = false;
        for (uint32_t q = 0; q < r->n_queues; q++)
            any |= queue_advance(r, q);
    }
    for (uint32_t q = 0; q < r->n_queues; q++)
        done += r->line[q].next;
    if (done < r->run->program->n_nodes)
        tell_stuck(r);
    else
        tell_left(r);
    r->run->node = r->run->program->n_nodes;
    if (!r->budget)
        prog_fault(r->run,
                   "too many instructions at once: races beyond %llu "
                   "comparisons were not looked for",
                   (unsigned long long)PROGRAM_COMPARED);
}

const ProgramReplay *program_replay(Arena *arena, Diag *diag,
                                    const Program *program) {
    ProgramRun run = {.arena = arena,
                      .work = arena_new("tokens"),
                      .program = program,
                      .spec = program->spec};
    Replay r = {.run = &run, .budget = PROGRAM_COMPARED};
    ProgramReplay *out = ARENA_NEW(arena, ProgramReplay);
    r.name = program_queues(program->spec, &r.n_queues);
    r.issue = program_issue(run.work, diag, program);
    if (r.issue) {
        r.clock = ARENA_ARRAY(run.work, Clock, program->n_nodes + 1);
        queues_fill(&r);
        if (!run.n_faults)
            queues_run(&r);
    }
    for (uint32_t q = 0; q < r.n_queues; q++) {
        out->nodes[q] = r.line[q].node.n;
        for (uint32_t to = 0; to < r.n_queues; to++)
            out->tokens[q][to] = r.wire[q][to].taken;
    }
    out->n_faults = run.n_faults;
    out->fault = run.faults.at;
    arena_free(run.work);
    return r.issue ? out : NULL;
}
