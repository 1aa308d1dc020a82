/* parts.c - which part of a volume can stay while the rest is away.
 *
 * Input: an alias class, an interval between two uses. Output: by how many
 * channels it can be cut. What stays must neither move nor have holes: it is a
 * prefix of the volume's outermost axis, which is channels in every layout that
 * a part of a volume can be addressed in; all rows of these channels stay, all
 * rows of the others are stored and come back to the same place.
 */
#include "alloc/spill/parts.h"

#include "alloc/geometry/onchip_copy.h"
#include "alloc/geometry/tensor_bytes.h"

/* The one tensor of the alias class that is needed behind the step; NO_TENSOR
 * if there are several, or none. */
static TensorId needed_behind(const Facts *f, const AliasClass *alias,
                              uint32_t step) {
    TensorId found = NO_TENSOR;
    for (uint32_t i = 0; i < alias->n_tensors; i++) {
        const Role *role = &f->role[alias->tensor[i].i];
        bool there = role->made != NONE && role->made <= step;
        if (!there || role->last == NONE || role->last <= step)
            continue;
        if (found.i != NONE)
            return NO_TENSOR;
        found = alias->tensor[i];
    }
    return found;
}

/* Members that are written, and not part of one that is. */
static uint32_t written(const Facts *f, const AliasClass *alias, uint32_t step,
                        TensorId *out) {
    uint32_t n = 0;
    for (uint32_t i = 1; i < alias->n_tensors; i++) {
        const Role *role = &f->role[alias->tensor[i].i];
        bool there = role->made != NONE && role->made <= step;
        if (there && f->role[role->parent.i].made > step)
            out[n++] = alias->tensor[i];
    }
    return n;
}

uint32_t kept_tensors(const Facts *f, const AliasClass *alias, uint32_t use,
                      TensorId *out) {
    uint32_t step = alias->use[use].step;
    if (is_filling(alias, use))
        return written(f, alias, step, out);
    out[0] = needed_behind(f, alias, step);
    return out[0].i != NONE &&
           plan_volume(f->g, out[0]).c == plan_volume(f->g, alias->root).c;
}

uint32_t kept_of(const Facts *f, const AliasClass *alias, TensorId t,
                 uint32_t keeps) {
    uint32_t c = channel_in_alias(f, alias, t), n = plan_volume(f->g, t).c;
    return keeps <= c ? 0 : keeps - c < n ? keeps - c : n;
}

/* Made in active memory and not replicated: each of its channels then has an
 * address in both memories, or none has. */
static bool can_be_cut(const Facts *f, TensorId t) {
    Repl none = hwspec_repl_none(f->spec, plan_volume(f->g, t).c);
    const Repl *own = &f->role[t.i].repl;
    Origin origin = f->role[t.i].origin;
    return own->sections == none.sections && own->full == none.full &&
           (origin == FROM_ENGINE || origin == FROM_PARTS);
}

/* Channels up to the end of what is there; 0 if no part of it can stay. */
uint32_t channels_filled(const Facts *f, const AliasClass *alias,
                         uint32_t use) {
    TensorId *kept = ARENA_ARRAY(f->arena, TensorId, alias->n_tensors);
    Volume whole = volume_in(f, alias->root, 0);
    uint32_t n = kept_tensors(f, alias, use, kept), end = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = channel_in_alias(f, alias, kept[i]);
        uint32_t n_c = plan_volume(f->g, kept[i]).c, stop = c + n_c;
        if (!can_be_cut(f, kept[i]) || /* or no member can leave by itself */
            !part_told(f, &f->spec->memory[0], &whole, c, n_c))
            return 0;
        end = stop > end ? stop : end;
    }
    return end;
}

/* Channels on both sides of `c` are moved, and stay, by themselves: those of
 * the tensor in which it lies, too. */
bool cut_has_addresses(const Facts *f, const AliasClass *alias, uint32_t memory,
                       const Volume *whole, uint32_t c) {
    const HwMemory *m = &f->spec->memory[memory];
    if (!part_has_address(m, whole, c, whole->c - c))
        return false;
    for (uint32_t i = 0; i < alias->n_tensors; i++) {
        uint32_t first = channel_in_alias(f, alias, alias->tensor[i]);
        uint32_t end = first + plan_volume(f->g, alias->tensor[i]).c;
        if (first < c && c < end &&
            (!layout_part_alone(m->layout, whole, first, c - first) ||
             !layout_part_alone(m->layout, whole, c, end - c)))
            return false;
    }
    return true;
}

/* What is moved from channel `c` on must start as any volume does. */
bool cut_is_aligned(const Facts *f, const AliasClass *alias,
                    const Volume *whole, uint32_t c) {
    const HwMemory *active = &f->spec->memory[0];
    return cut_has_addresses(f, alias, 0, whole, c) &&
           (c == whole->c ||
            layout_part_offset(active->layout, whole, c) % active->align == 0);
}

/* The most channels of at most `bytes`, fewer than `end`; more take no less. */
uint32_t channels_below(const Facts *f, const AliasClass *alias, uint32_t end,
                        double bytes) {
    uint32_t lo = 0;
    while (lo + 1 < end) {
        uint32_t mid = lo + (end - lo) / 2;
        if ((double)kept_bytes(f, alias, mid) <= bytes)
            lo = mid;
        else
            end = mid;
    }
    return lo;
}

/* Whether the engine that copies rows of what stays takes so many channels. */
static bool copies_take(const Facts *f, const AliasClass *alias, uint32_t c) {
    bool copied = false;
    for (uint32_t i = 0; i < alias->n_uses; i++)
        copied |= alias->use[i].by_rows;
    for (uint32_t i = 0; copied && i < alias->n_tensors; i++) {
        uint32_t kept = kept_of(f, alias, alias->tensor[i], c);
        int32_t e = copy_legal(f, alias->tensor[i]).engine;
        const HwRange *limit = e < 0 ? NULL : f->spec->engine[e].limit;
        if (kept && limit &&
            (!hw_range_has(&limit[HW_LIMIT_IN_C], kept) ||
             !hw_range_has(&limit[HW_LIMIT_OUT_C], kept)))
            return false;
    }
    return true;
}

/* By channels: whether the first so many can stay, and the others leave. */
bool *cuts_of(const Facts *f, const AliasClass *alias) {
    Volume active = volume_in(f, alias->root, 0);
    uint32_t backing = (uint32_t)f->spec->backing;
    Volume outside = volume_in(f, alias->root, backing);
    bool *cuts = ARENA_ARRAY(f->arena, bool, (size_t)active.c + 1);
    for (uint32_t c = 1; c <= active.c; c++)
        cuts[c] = cut_is_aligned(f, alias, &active, c) &&
                  cut_has_addresses(f, alias, backing, &outside, c) &&
                  copies_take(f, alias, c);
    return cuts;
}
