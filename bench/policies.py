"""policies.py - LRU and Belady on the volumes of a plan, in the plan's order.

Input: a network and a machine; amphora plans it with endless active memory.
Output: bytes over DDR of whole volumes, kept or evicted, beyond the compulsory
ones (an input's first load, a result's store).

The rules are those of the table in ../shared/facts/two-level.md 2.3: operands
that are not there are loaded, and pass by as a stream if there is no room
beside the layer's other operands; so does a result, which then lies outside. A
volume that is evicted, needed again and not outside yet is written. Nothing is
charged for alignment, buffers, fragments, or the place that a concat has to be
in: each of its members is a volume of its own. On ResNet-50, Inception-v3 and
MobileNetV2 that gives the figures of the table where its peaks are ours.
"""
import json
import re
import sys

import tool

PLACED = re.compile(r"p(\d+) \S+ (\S+) rows \S+ of (\d+)x(\d+)x(\d+)"
                    r"(?: channel (\d+))?.*? at \S+ bytes (\d+) buffer (\d+)")
NEVER = 1 << 60


class Trace:
    """Volumes and the layers that use them. A volume is (buffer, its first
    channel there); with `whole`, a concat is one volume from its first member's
    birth on, whichever member is meant."""

    def __init__(self, network, machine, folder, element=2, whole=False):
        done = tool.run("compile", network, "-t", machine, "-o", folder,
                        "--json", *tool.flags([tool.am(tool.ENDLESS)]),
                        "--dump", "plan")
        if done.returncode:
            sys.exit(done.stderr)
        self.peak = json.loads(done.stdout)["am_bound_bytes"]
        self.place, self.size, self.moved = {}, {}, {}
        self.inputs, self.layers, self.of = set(), [], {}
        lines = done.stderr.splitlines()
        self._volumes(lines, element, whole)
        for line in lines:
            words = line.split()
            if len(words) > 2 and words[1] in ("load", "run", "concat"):
                self._action(words[1], [w[1:] for w in words
                                        if re.fullmatch(r"p\d+", w)])

    def _volumes(self, lines, element, whole):
        """Buffers, cut at the channels at which something begins."""
        buffers = {}
        for found in filter(None, map(PLACED.match, lines)):
            c, h, w, channel, size, buffer = (int(g or 0)
                                              for g in found.groups()[2:])
            if found[2] == "am":
                channel = 0 if whole else channel
                self.place[found[1]] = (buffer, channel)
                buffers.setdefault(buffer, (c, h * w * element, size, set()))
                buffers[buffer][3].add(channel)
        for buffer, (c, plane, size, starts) in buffers.items():
            ends = sorted(starts) + [c]
            for start, end in zip(ends, ends[1:]):
                self.size[buffer, start] = size * (end - start) // c
                self.moved[buffer, start] = plane * (end - start)

    def _volumes_of(self, p):
        if p not in self.of:
            self.of[p] = {self.place[p]} if p in self.place else set()
        return self.of[p]

    def _action(self, kind, used):
        made = used[-1]
        reads = set().union(*(self._volumes_of(p) for p in used[:-1]))
        if kind == "concat":
            self.of[made] = reads
            return
        for p in used[:-1]:  # in place: over the whole of its operand
            if made in self.place and self.place.get(p) == self.place[made]:
                self.of[made] = self._volumes_of(p)
        if kind == "load":
            self.inputs |= self._volumes_of(made)
        else:
            self.layers.append((reads, self._volumes_of(made)))


class Policy:
    """Whole volumes, kept or evicted. `furthest`: evicts what is used again
    last (Belady, 1966), else what was used longest ago."""

    def __init__(self, trace, capacity, furthest):
        self.trace, self.capacity, self.furthest = trace, capacity, furthest
        self.extra, self.inside, self.last = 0, set(), {}
        self.outside, self.read = set(trace.inputs), set()
        self.uses = {}
        for i, (reads, made) in enumerate(trace.layers):
            for v in reads | made:
                self.uses.setdefault(v, []).append(i)

    def following(self, v, i):
        return next((u for u in self.uses[v] if u > i), NEVER)

    def evict(self, v, i):
        """Before layer i."""
        self.inside.discard(v)
        if v not in self.outside and self.following(v, i - 1) != NEVER:
            self.extra += self.trace.moved[v]
            self.outside.add(v)

    def room_for(self, v, keep, i):
        size = self.trace.size
        while sum(size[x] for x in self.inside) + size[v] > self.capacity:
            spare = sorted(self.inside - keep)
            if not spare:
                return False
            self.evict(max(spare, key=lambda x: self.following(x, i))
                       if self.furthest
                       else min(spare, key=lambda x: self.last.get(x, i)), i)
        self.inside.add(v)
        return True

    def load(self, v, reads, i):
        if v not in self.trace.inputs or v in self.read:
            self.extra += self.trace.moved[v]
        self.read.add(v)
        self.room_for(v, reads, i)

    def over_another(self, v, i, reads):
        """A result in place may as well take the place of an operand that is
        there and not needed again."""
        for x in sorted(self.inside & reads):
            if (self.following(x, i) == NEVER
                    and self.trace.size[x] == self.trace.size[v]):
                self.inside.discard(x)
                self.inside.add(v)
                return

    def make(self, v, i, reads, made):
        if v in reads and v not in self.inside:
            self.over_another(v, i, reads)
        if v in self.inside or self.room_for(v, reads | made, i):
            self.outside.discard(v)
        elif self.following(v, i) != NEVER:
            self.extra += self.trace.moved[v]
            self.outside.add(v)

    def layer(self, i, reads, made):
        for v in sorted(reads - self.inside):
            self.load(v, reads, i)
        for v in sorted(made):
            self.make(v, i, reads, made)
        for v in reads | made:
            self.last[v] = i
        self.inside = {v for v in self.inside
                       if self.following(v, i) != NEVER}


def policy(trace, capacity, furthest):
    """Bytes beyond the compulsory ones."""
    p = Policy(trace, capacity, furthest)
    for i, (reads, made) in enumerate(trace.layers):
        p.layer(i, reads, made)
    return p.extra
