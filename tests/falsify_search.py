"""falsify_search.py - the fewest bytes that any order of rows moves.

An exhaustive search that shares nothing with the planner: networks are tensors
of rows; a state is which rows lie in active memory, which lie outside, and
which were made. Loads and stores of a row cost its bytes; making a row costs
nothing, but wants the rows of its window in memory, and room for these side by
side where they are more than one. Rows may lie anywhere, as copies may move
them. A* over the bytes; what must still be stored, and loaded, is the estimate.
"""
import heapq
import itertools


WAYS = 64  # to make room that are tried of a state


class Net:
    """Tensors in order; the first is the input. Each other one is made by a
    layer (op, kernel, stride, pad, operands)."""

    def __init__(self):
        self.shape, self.layer, self.outputs = [], [], []

    def add(self, shape, layer=None):
        self.shape.append(shape)
        self.layer.append(layer)
        return len(self.shape) - 1

    def row_bytes(self, t):
        return self.shape[t][0] * self.shape[t][2]

    def finish(self):
        """Rows by number; what each is made from; who reads each."""
        read = {o for layer in self.layer if layer for o in layer[4]}
        self.outputs = [t for t in range(1, len(self.shape)) if t not in read]
        self.base = [0] + list(itertools.accumulate(s[1] for s in self.shape))
        self.rows = [(t, y) for t, s in enumerate(self.shape)
                     for y in range(s[1])]
        self.size = [self.row_bytes(t) for t, _ in self.rows]
        self.needs = [self.window(t, y) for t, y in self.rows]
        self.readers = [[] for _ in self.rows]
        for row, windows in enumerate(self.needs):
            for operand in set(itertools.chain(*windows)):
                self.readers[operand].append(row)
        return self

    def window(self, t, y):
        """For each operand the rows that row y is made from."""
        if not self.layer[t]:
            return []
        _, kernel, stride, pad, operands = self.layer[t]
        found = []
        for o in operands:
            first = y * stride - pad
            last = min(first + kernel, self.shape[o][1])
            found.append([self.base[o] + r
                          for r in range(max(first, 0), last)])
        return found

    def masks(self):
        inputs = (1 << self.shape[0][1]) - 1
        must = sum(1 << self.base[t] + y for t in self.outputs
                   for y in range(self.shape[t][1]))
        return inputs, must


KINDS = {"": (), "once_": ("once",), "layers_": ("once", "layers")}


class Search:
    """For a plan of less than `limit` bytes: run() gives its bytes and steps,
    (kind, row, rows dropped before, row whose place it takes, rows held after);
    None if there is none, or, with `exhausted` False, none was found."""

    def __init__(self, net, memory, kind, limit, most):
        self.net, self.memory, self.limit = net, memory, limit
        self.once = "once" in KINDS[kind]
        self.layers = "layers" in KINDS[kind]
        self.most = most
        self.inputs, self.must = net.masks()
        self.seen, self.queue, self.n = {}, [], 0
        self.need = self.needed()
        self.reads = [sum(1 << r for r in set(itertools.chain(*windows)))
                      for windows in net.needs]
        self.exhausted = True

    def needed(self):
        """Rows that some result is made from; layer by layer, all."""
        need = self.must
        if self.layers:
            need |= (1 << len(self.net.rows)) - 1 & ~self.inputs
        todo = list(bits(need))
        while todo:
            for row in itertools.chain(*self.net.needs[todo.pop()]):
                if not need >> row & 1:
                    need |= 1 << row
                    todo.append(row)
        return need

    def wanted(self, held, stored, made):
        """Where nothing is made twice: rows that are away, and that what is
        still to be made reads; None if one is lost."""
        away = 0
        for row in bits(self.need & ~made & ~self.inputs):
            away |= self.reads[row]
        away &= (made | self.inputs) & ~held
        return None if away & ~(stored | self.inputs) else away

    def bytes_of(self, mask):
        total = 0
        while mask:
            low = mask & -mask
            total += self.net.size[low.bit_length() - 1]
            mask ^= low
        return total

    def dead(self, held, stored, made):
        """Rows that nobody will want: only where nothing is made twice."""
        for row in bits(held):
            wanted = any(self.need & ~made & 1 << r
                         for r in self.net.readers[row])
            if not wanted and not (self.must >> row & 1
                                   and not stored >> row & 1):
                held &= ~(1 << row)
        return held

    def push(self, cost, held, stored, made, parent, step):
        total = cost + self.bytes_of(self.must & ~stored)
        if self.once:
            held = self.dead(held, stored, made)
            away = self.wanted(held, stored, made)
            if away is None or self.must & made & ~stored & ~held:
                return
            total += self.bytes_of(away)
        state = (held, stored, made)
        if total >= self.limit or self.seen.get(state, total + 1) <= total:
            return  # too many, or known
        self.seen[state] = total
        self.n += 1
        heapq.heappush(self.queue, (total, -bin(made).count("1"), self.n,
                                    cost, state, parent,
                                    step and (*step, held)))

    def shed(self, held, stored, keep, extra):
        """Ways to drop as few rows as make room for `extra` bytes."""
        for n, way in enumerate(self.ways(held, stored, keep, extra)):
            if n == WAYS:
                self.exhausted = False
                return
            yield way

    def ways(self, held, stored, keep, extra):
        short = self.bytes_of(held) + extra - self.memory
        if short <= 0:
            yield ()
            return
        back = self.inputs | stored if self.once else held
        rows = list(bits(held & back & ~keep))

        def pick(at, short, taken):
            if short <= 0:
                yield tuple(taken)
                return
            for i in range(at, len(rows)):
                yield from pick(i + 1, short - self.net.size[rows[i]],
                                taken + [rows[i]])

        yield from pick(0, short, [])

    def may_make(self, row, made):
        t, _ = self.net.rows[row]
        if self.once and made >> row & 1 or not self.need >> row & 1:
            return False
        first = self.net.base[1]
        before = ((1 << self.net.base[t]) - (1 << first)) & self.need
        return not self.layers or made & before == before

    def make(self, entry, row):
        """Beside its window and what stays, or in the place of an operand that
        a sum reads."""
        *_, cost, (held, stored, made), _, _ = entry
        windows = self.net.needs[row]
        keep = sum(1 << r for r in set(itertools.chain(*windows)))
        if keep & ~held or held >> row & 1:
            return
        room = sum(self.net.size[r] for w in windows for r in w
                   if len(w) > 1)
        size = self.net.size[row]
        for gone in self.shed(held, stored, keep, room + size):
            left = held & ~sum(1 << r for r in gone)
            self.push(cost, left | 1 << row, stored, made | 1 << row, entry,
                      ("make", row, gone, None))
        if self.net.layer[self.net.rows[row][0]][0] == "add":
            for over in {w[0] for w in windows}:
                for gone in self.shed(held, stored, keep, 0):
                    left = held & ~sum(1 << r for r in gone) & ~(1 << over)
                    self.push(cost, left | 1 << row, stored, made | 1 << row,
                              entry, ("over", row, gone, over))

    def grow(self, entry):
        *_, cost, (held, stored, made), _, _ = entry
        for row in bits((self.inputs | stored) & ~held):
            size = self.net.size[row]
            for gone in self.shed(held, stored, 0, size):
                left = held & ~sum(1 << r for r in gone)
                self.push(cost + size, left | 1 << row, stored, made, entry,
                          ("load", row, gone, None))
        for row in bits(held & ~stored & ~self.inputs):
            self.push(cost + self.net.size[row], held, stored | 1 << row, made,
                      entry, ("store", row, (), None))
        for row in range(self.net.base[1], len(self.net.rows)):
            if self.may_make(row, made):
                self.make(entry, row)

    def run(self):
        self.push(0, 0, 0, 0, None, None)
        while self.queue:
            entry = heapq.heappop(self.queue)
            total, state = entry[0], entry[4]
            if self.seen[state] < total:
                continue
            if not self.must & ~state[1]:
                return entry[3], steps(entry)
            if len(self.seen) > self.most:
                self.exhausted = False
                return None
            self.grow(entry)
        return None


def bits(mask):
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def steps(entry):
    found = []
    while entry[5]:
        found.append(entry[6])
        entry = entry[5]
    return found[::-1]
