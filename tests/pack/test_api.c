/* test_api.c - what the library of planners refuses, and what it just takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <amphora/planner.h>
#include <math.h>
#include <string.h>

enum { N = 3, STREAMS = 2 };
static const uint64_t most = (UINT64_C(1) << 60) - 1;

/* A right problem, of which a case changes one thing. */
typedef struct Case {
    amphora_planner_buffer buffer[N];
    amphora_planner_span gap[2];
    amphora_planner_relation relation[1];
    amphora_planner_pair pair[1];
    int64_t clock[2 * N * STREAMS];
    amphora_planner_problem problem;
    amphora_planner_options options;
    uint64_t offset[N], *offsets;
} Case;

static void set_up_case(Case *c) {
    *c = (Case){.problem = {.struct_size = sizeof c->problem},
                .options = {.struct_size = sizeof c->options}};
    for (uint32_t i = 0; i < N; i++)
        c->buffer[i] =
            (amphora_planner_buffer){.first = i, .end = i + 6, .size = 8};
    c->gap[0] = (amphora_planner_span){1, 2};
    c->gap[1] = (amphora_planner_span){3, 5};
    c->buffer[0].gaps = c->gap;
    c->buffer[0].n_gaps = 2;
    c->relation[0].kind = AMPHORA_PLANNER_BELOW;
    c->relation[0].b = 1;
    c->pair[0].b = 2;
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t s = 0; s < STREAMS; s++) {
            c->clock[(2 * i) * STREAMS + s] = (int64_t)i;
            c->clock[(2 * i + 1) * STREAMS + s] = (int64_t)i + 1;
        }
    c->problem.buffers = c->buffer;
    c->problem.n_buffers = N;
    c->problem.relations = c->relation;
    c->problem.n_relations = 1;
    c->problem.conflicts = c->pair;
    c->problem.n_conflicts = 1;
    c->problem.clocks = c->clock;
    c->problem.n_streams = STREAMS;
    c->offsets = c->offset;
}

typedef void Change(Case *c);
#define CHANGE(name, statement)                                                \
    static void name(Case *c) {                                                \
        statement;                                                             \
    }

CHANGE(nothing, (void)c)
CHANGE(life_ends_at_once, c->buffer[1].end = c->buffer[1].first)
CHANGE(life_backwards, c->buffer[1].end = 0)
CHANGE(gap_from_birth, c->gap[0].first = 0)
CHANGE(gaps_touch, c->gap[1].first = 2)
CHANGE(gap_to_death, c->gap[1].end = 6)
CHANGE(gap_beyond, c->gap[1].end = 7)
CHANGE(gap_empty, c->gap[0].end = 1)
CHANGE(gaps_overlap, c->gap[1].first = 1)
CHANGE(gaps_missing, c->buffer[0].gaps = NULL)
CHANGE(offset_most, c->buffer[2].offset = most)
CHANGE(offset_more, c->buffer[2].offset = most + 1)
CHANGE(size_more, c->buffer[2].size = most + 1)
CHANGE(align_more, c->buffer[2].alignment = most + 1)
CHANGE(sums_more, c->buffer[2].size = most - 15)
CHANGE(aligned_more, c->buffer[2].alignment = most - 23)
CHANGE(flags_both, c->buffer[2].flags = 3)
CHANGE(flags_more, c->buffer[2].flags = 4)
CHANGE(relation_kind, c->relation[0].kind = 4)
CHANGE(relation_a, c->relation[0].a = N)
CHANGE(relation_b, c->relation[0].b = N)
CHANGE(relation_self, c->relation[0].a = 1)
CHANGE(relation_most, c->relation[0].bytes = -(int64_t)most)
CHANGE(relation_less, c->relation[0].bytes = -(int64_t)most - 1)
CHANGE(relation_more, c->relation[0].bytes = (int64_t)most + 1)
CHANGE(inside_before, c->relation[0].kind = AMPHORA_PLANNER_INSIDE;
       c->relation[0].bytes = -1)
CHANGE(pairs_missing, c->problem.conflicts = NULL)
CHANGE(pair_a, c->pair[0].a = N)
CHANGE(pair_b, c->pair[0].b = N)
CHANGE(pair_self, c->pair[0].b = 0)
CHANGE(clocks_missing, c->problem.clocks = NULL)
CHANGE(clock_stands, c->clock[7] = c->clock[5])
CHANGE(clock_backwards, c->clock[7] = c->clock[5] - 1)
CHANGE(options_size, c->options.struct_size--)
CHANGE(buffers_missing, c->problem.buffers = NULL)
CHANGE(offsets_missing, c->offsets = NULL)
CHANGE(relations_missing, c->problem.relations = NULL)
CHANGE(capacity_more, c->problem.capacity = most + 1)
CHANGE(capacity_most, c->problem.capacity = most)
CHANGE(alignment_more, c->problem.alignment = most + 1)
CHANGE(planner_unknown, c->options.planner = "best")
CHANGE(planner_known, c->options.planner = "bottom")
CHANGE(seconds_below, c->options.seconds = -1)
CHANGE(seconds_none, c->options.seconds = (double)NAN)

/* NULL: it is taken. */
static const struct {
    Change *change;
    const char *message;
} cases[] = {
    {nothing, NULL},
    {life_ends_at_once, NULL},
    {life_backwards, "buffer 1: its life [1, 0) ends before it begins"},
    {gap_from_birth, NULL},
    {gaps_touch, NULL},
    {gap_to_death, NULL},
    {gap_beyond, "buffer 0: its gaps are not in its life, rising and apart"},
    {gap_empty, "buffer 0: its gaps are not in its life, rising and apart"},
    {gaps_overlap, "buffer 0: its gaps are not in its life, rising and apart"},
    {gaps_missing, "buffer 0: its gaps are not in its life, rising and apart"},
    {offset_most, NULL},
    {offset_more, "buffer 2: a size, alignment or offset is above 2^60 - 1"},
    {size_more, "buffer 2: a size, alignment or offset is above 2^60 - 1"},
    {align_more, "buffer 2: a size, alignment or offset is above 2^60 - 1"},
    {sums_more, "buffer 2: with it sizes and alignments sum up to more than "
                "2^60 - 1"},
    {aligned_more, "buffer 2: with it sizes and alignments sum up to more than "
                   "2^60 - 1"},
    {flags_both, NULL},
    {flags_more, "buffer 2: unknown flags 0x4"},
    {relation_kind, "relation 0: unknown kind 4"},
    {relation_a, "relation 0: 3 and 1 are not two of 3 buffers"},
    {relation_b, "relation 0: 0 and 3 are not two of 3 buffers"},
    {relation_self, "relation 0: 1 and 1 are not two of 3 buffers"},
    {relation_most, NULL},
    {relation_less, "relation 0: bytes -1152921504606846976 are out of range"},
    {relation_more, "relation 0: bytes 1152921504606846976 are out of range"},
    {inside_before, "relation 0: bytes -1 are out of range"},
    {pairs_missing, "conflicts is NULL, n_conflicts is not 0"},
    {pair_a, "conflict 0: 3 and 2 are not two of 3 buffers"},
    {pair_b, "conflict 0: 0 and 3 are not two of 3 buffers"},
    {pair_self, "conflict 0: 0 and 0 are not two of 3 buffers"},
    {clocks_missing, "clocks is NULL, n_streams is 2"},
    {clock_stands, NULL},
    {clock_backwards, "buffer 1: in stream 1 its life ends before it begins"},
    {options_size, "options->struct_size is 63, not 64"},
    {buffers_missing, "buffers is NULL, n_buffers is 3"},
    {offsets_missing, "offsets is NULL, n_buffers is 3"},
    {relations_missing, "relations is NULL, n_relations is 1"},
    {capacity_more, "capacity or alignment is above 2^60 - 1"},
    {capacity_most, NULL},
    {alignment_more, "capacity or alignment is above 2^60 - 1"},
    {planner_unknown, "no planner is called 'best'; see amphora_planner_name"},
    {planner_known, NULL},
    {seconds_below, "seconds is below 0, or not a number"},
    {seconds_none, "seconds is below 0, or not a number"},
};

static void arguments_are_checked(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Case c;
        amphora_planner_result result;
        set_up_case(&c);
        cases[i].change(&c);
        amphora_planner_status status =
            amphora_planner_place(&c.problem, &c.options, c.offsets, &result);
        if (!cases[i].message) {
            if (status == AMPHORA_PLANNER_INVALID)
                fail_msg("case %zu: %s", i, result.message);
            continue;
        }
        assert_int_equal(status, AMPHORA_PLANNER_INVALID);
        assert_string_equal(result.message, cases[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(arguments_are_checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
