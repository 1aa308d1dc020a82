/* check.c - what a machine asks of a placement: its rules, counts of lanes,
 * bytes of banks, and that a result does not lie over its layer's input. */
#include "lanes/lanes.h"

#include "lanes/inside.h"

static uint32_t check_lanes(Arena *arena, Diag *diag, const LaneMachine *m,
                            const LaneLayer *l, uint32_t at) {
    uint32_t in = lanes_needed(arena, m, l->in_c), errors = 0;
    uint32_t out = lanes_needed(arena, m, l->out_c);
    if (lane_count(l->lanes) != in) {
        diag_error(diag, l->loc,
                   "layer %u: %u channels in %u passes take %u processors, "
                   "`processors` has %u",
                   at, l->in_c, l->in_passes, in, lane_count(l->lanes));
        errors++;
    }
    if (lane_count(l->out_lanes) != out) {
        diag_error(diag, l->loc,
                   "layer %u: %u channels in %u passes take %u processors, "
                   "`output_processors` has %u",
                   at, l->out_c, l->out_passes, out, lane_count(l->out_lanes));
        errors++;
    }
    return errors;
}

uint64_t lanes_in_bytes(const LaneMachine *m, const LaneLayer *l) {
    uint64_t pixels = (uint64_t)l->in[0] * l->in[1];
    if (l->ring)
        return (uint64_t)l->ring * m->bank;
    return l->chw ? pixels : pixels * l->in_passes * l->operands * m->bank;
}
uint64_t lanes_out_bytes(const LaneMachine *m, const LaneNet *net,
                         uint32_t at) {
    const LaneLayer *l = &net->layer[at];
    uint64_t words = (uint64_t)l->out[0] * l->out[1] * l->out_passes * l->width;
    if (at + 1 < net->n && net->layer[at + 1].ring)
        words = net->layer[at + 1].ring;
    return ((words - 1) * (l->gap + 1) + 1) * m->bank;
}

static uint32_t check_bytes(Diag *diag, const LaneMachine *m,
                            const LaneNet *net, uint32_t at) {
    const LaneLayer *l = &net->layer[at];
    uint64_t in = l->in_offset + lanes_in_bytes(m, l);
    uint64_t out = l->out_offset + lanes_out_bytes(m, net, at);
    uint32_t errors = 0;
    if (in > m->bank_bytes) {
        diag_error(diag, l->loc,
                   "layer %u: its input ends at byte %llu of instance %u, "
                   "which has %u; lower in_offset, pool before, or stream",
                   at, (unsigned long long)in, lane_first(l->lanes) / m->bank,
                   m->bank_bytes);
        errors++;
    }
    if (out > m->bank_bytes) {
        diag_error(diag, l->loc,
                   "layer %u: its result ends at byte %llu of instance %u, "
                   "which has %u; lower out_offset or write_gap",
                   at, (unsigned long long)out,
                   lane_first(l->out_lanes) / m->bank, m->bank_bytes);
        errors++;
    }
    return errors;
}

uint32_t lanes_banks(const LaneMachine *m, uint64_t lanes) {
    uint32_t banks = 0;
    for (uint32_t p = 0; p < m->lanes; p++)
        banks |= (uint32_t)(lanes >> p & 1) << (p / m->bank);
    return banks;
}

/* Words that a volume takes in each of its banks: [at, end) in steps. */
static bool meets(const LaneMachine *m, const LaneNet *net, uint32_t at,
                  uint64_t *byte) {
    const LaneLayer *l = &net->layer[at];
    uint64_t from = l->in_offset, end = from + lanes_in_bytes(m, l);
    uint64_t step = (uint64_t)m->bank * (l->gap + 1);
    uint64_t stop = l->out_offset + lanes_out_bytes(m, net, at);
    for (*byte = l->out_offset; *byte < stop; *byte += step)
        if (*byte + m->bank > from && *byte < end)
            return true;
    return false;
}

static uint32_t check_overlap(Diag *diag, const LaneMachine *m,
                              const LaneNet *net, uint32_t at) {
    const LaneLayer *l = &net->layer[at];
    uint32_t both = lanes_banks(m, l->lanes) & lanes_banks(m, l->out_lanes);
    uint64_t byte;
    if (m->overlap || l->streaming || !both || !meets(m, net, at, &byte))
        return 0;
    diag_error(diag, l->loc,
               "layer %u: its result lies over its input at byte %llu of "
               "instance %u; `--set lanes.overlap=true` allows that where no "
               "value is lost",
               at, (unsigned long long)byte, (uint32_t)__builtin_ctz(both));
    return 1;
}

/* Rings of layers that stream, and what the first behind them reads, are apart
 * by a word where they share instances. */
static uint32_t check_rings(Diag *diag, const LaneMachine *m,
                            const LaneNet *net, uint32_t at) {
    const LaneLayer *l = &net->layer[at];
    uint64_t end = l->in_offset + lanes_in_bytes(m, l);
    uint32_t errors = 0;
    if (at == 0 || !net->layer[at - 1].streaming)
        return 0;
    for (uint32_t k = 0; k < at; k++) {
        const LaneLayer *other = &net->layer[k];
        if (!(lanes_banks(m, l->lanes) & lanes_banks(m, other->lanes)) ||
            l->in_offset > other->in_offset + lanes_in_bytes(m, other) ||
            other->in_offset > end)
            continue;
        diag_error(diag, l->loc,
                   "layer %u: its input, at byte %u, lies at that of layer %u, "
                   "at byte %u, while both stream; between them is a word free",
                   at, l->in_offset, k, other->in_offset);
        errors++;
    }
    return errors;
}

static bool holds(Arena *arena, const LaneMachine *m, const LaneNet *net,
                  uint32_t at, const LaneRule *rule) {
    uint32_t n = rule->by_quadrant ? m->lanes / m->quadrant : 1;
    bool all = true;
    for (uint32_t q = 0; all && q < n; q++)
        all = lanes_value(arena, m, net, at, q, 0, rule->holds) != 0;
    return all;
}

bool lanes_fit(Arena *arena, const LaneMachine *m, const LaneNet *net,
               uint32_t at) {
    bool all = true;
    for (uint32_t k = 0; all && k < m->n_rules; k++)
        all = !m->rule[k].by_quadrant || holds(arena, m, net, at, &m->rule[k]);
    return all;
}

bool lanes_check(Arena *arena, Diag *diag, const LaneMachine *m,
                 const LaneNet *net) {
    uint32_t errors = 0;
    for (uint32_t i = 0; i < net->n; i++) {
        const LaneLayer *l = &net->layer[i];
        for (uint32_t k = 0; k < m->n_rules; k++)
            if (!holds(arena, m, net, i, &m->rule[k])) {
                diag_error(diag, l->loc, "layer %u: %s", i, m->rule[k].says);
                errors++;
            }
        uint32_t wrong = check_lanes(arena, diag, m, l, i);
        errors += wrong + check_bytes(diag, m, net, i);
        if (!wrong)
            errors +=
                check_overlap(diag, m, net, i) + check_rings(diag, m, net, i);
        if (l->streaming && i && !net->layer[i - 1].streaming) {
            diag_error(diag, l->loc,
                       "layer %u streams, and layer %u before it does not", i,
                       i - 1);
            errors++;
        }
    }
    return !errors;
}
