"""placement_problems.py - seeded families of placement problems.

Each function of FAMILIES takes (n, seed) and returns buffers (first, end,
bytes) or (first, end, bytes, alignment), lives half-open. A family is named for
where its difficulty comes from; `least` says what is known of the least height
by construction.
"""
import random

STEPS = HEIGHT = 1024  # of the rectangles that are cut, in units
UNIT = 1024            # bytes a unit


# ---- rectangles cut from a rectangle: the least height is HEIGHT * UNIT ----

def cut_once(draw, rect, times):
    """Two or three pieces by parallel cuts; `times` says where time is cut."""
    first, end, low, high = rect
    inside = [t for t in times if first < t < end] if times \
        else range(first + 1, end)
    if draw.random() < 0.5 and inside:
        cuts = sorted(draw.sample(inside, min(draw.choice((1, 1, 2)),
                                              len(inside))))
        edges = [first, *cuts, end]
        return [(a, b, low, high) for a, b in zip(edges, edges[1:])]
    if high - low > 1:
        cut = draw.randrange(low + 1, high)
        return [(first, end, low, cut), (first, end, cut, high)]
    return [rect]


def pinwheel(draw, rect):
    """Five pieces around a middle one: no straight cut parts them."""
    first, end, low, high = rect
    if end - first < 3 or high - low < 3:
        return [rect]
    a, b = sorted(draw.sample(range(first + 1, end), 2))
    c, d = sorted(draw.sample(range(low + 1, high), 2))
    return [(first, b, low, c), (b, end, low, d), (a, end, d, high),
            (first, a, c, high), (a, b, c, d)]


def cut(n, seed, pinwheels=0.0, times=None, steps=STEPS, height=HEIGHT):
    """Cuts the largest of three drawn pieces until there are n."""
    draw = random.Random(seed)
    rects = [(0, steps, 0, height)]
    while len(rects) < n:
        at = max(draw.sample(range(len(rects)), min(3, len(rects))),
                 key=lambda i: (rects[i][1] - rects[i][0])
                 * (rects[i][3] - rects[i][2]))
        rect = rects.pop(at)
        rects += pinwheel(draw, rect) if draw.random() < pinwheels \
            else cut_once(draw, rect, times)
    draw.shuffle(rects)
    return rects


def lives(rects, unit=UNIT):
    return [(first, end, (high - low) * unit)
            for first, end, low, high in rects]


def guillotine(n, seed):
    return lives(cut(n, seed))


def fine(n, seed):
    """No two cuts at one time, no two sizes alike."""
    return lives(cut(n, seed, steps=1 << 20, height=1 << 20), 1)


def coarse_times(n, seed):
    """Several cuts at one time, but no two sizes alike."""
    return lives(cut(n, seed, height=1 << 20), 1)


def pinwheels(n, seed):
    return lives(cut(n, seed, pinwheels=0.3, steps=1 << 16, height=1 << 16),
                 16)


def few_times(n, seed):
    """Time is cut at thirty places."""
    draw = random.Random(seed)
    return lives(cut(n, seed, times=draw.sample(range(1, STEPS), 30)))


# ---- a packing with pieces taken out: the least height is not known ----

def live_profile(buffers):
    """By event time, in order: bytes alive from there on."""
    change = {}
    for first, end, size in buffers:
        change[first] = change.get(first, 0) + size
        change[end] = change.get(end, 0) - size
    live, profile = 0, []
    for time in sorted(change):
        live += change[time]
        profile.append((time, live))
    return profile


def holes(n, seed, share=0.94):
    """Pieces go until at most `share` of the height is ever alive."""
    draw = random.Random(seed)
    buffers = lives(cut(n * 11 // 10, seed))
    while True:
        time, live = max(live_profile(buffers), key=lambda p: (p[1], -p[0]))
        over = live - int(share * HEIGHT * UNIT)
        if over <= 0:
            return buffers
        there = [b for b in buffers if b[0] <= time < b[1]]
        small = [b for b in there if b[2] <= 2 * over] or [min(
            there, key=lambda b: b[2])]
        buffers.remove(draw.choice(small))


def thinned(n, seed):
    """One piece in ten is gone, wherever it was."""
    draw = random.Random(seed)
    buffers = lives(cut(n * 10 // 9, seed))
    return draw.sample(buffers, n)


def pile(n, seed):
    """Sizes of one magnitude, lives too, alive together as far as fits."""
    draw = random.Random(seed)
    steps, buffers, live = n * 5 // 8, [], [0] * (n * 5 // 8)
    while len(buffers) < n:
        first = int(steps * draw.random() ** 0.8)
        end = min(steps, first + draw.randint(2, 12))
        size = UNIT * max(34, min(115, int(draw.gauss(66, 13))))
        if first < end and max(live[first:end]) + size <= HEIGHT * UNIT:
            buffers.append((first, end, size))
            for time in range(first, end):
                live[time] += size
        elif draw.random() < 0.01:
            break
    return buffers


# ---- training: activations wait for the backward pass ----

def training(n, seed):
    """Layers of a transformer forwards and backwards: activations held until
    their gradient is made, temporaries, gradients of weights held until the
    optimizer has used them."""
    draw = random.Random(seed)
    layers = max(1, n // 12)
    sizes = [draw.choice((512, 768, 1024, 3072, 4096)) * 1024
             for _ in range(12)]
    ops = 6 * layers
    buffers = []
    for op in range(ops):
        size = sizes[op % 12] * (1 + (op % 7 == 0))
        back = 2 * ops - op
        held = draw.random() < 0.7
        end = back + 1 if held else op + draw.randint(1, 4)
        buffers.append((op, end, size))
        if draw.random() < 0.3:
            buffers.append((op, op + 1, draw.randrange(512, 1 << 22, 512)))
        buffers.append((back, back + 2, sizes[op % 12]))
        if draw.random() < 0.4:
            keep = draw.choice((3, 30, 2 * ops + 9 - back))
            buffers.append((back, back + keep,
                            draw.choice((2304, 9216, 1 << 16, 1 << 20))))
    return buffers[:n]


# ---- many: a thousand alive at a time ----

def heavy(n, seed):
    """Sizes and lives over orders of magnitude."""
    draw = random.Random(seed)
    buffers = []
    for _ in range(n):
        first = draw.randrange(2 * n)
        life = int(min(2 * n, 8 * draw.paretovariate(0.9)))
        size = 64 * int(min(1 << 18, draw.paretovariate(0.8)))
        buffers.append((first, first + life, size))
    return buffers


def even(n, seed):
    draw = random.Random(seed)
    starts = [draw.randrange(n) for _ in range(n)]
    return [(t, t + 1 + draw.randrange(2000), 64 * draw.randint(1, 1000))
            for t in starts]


def aligned(n, seed):
    """As even, with alignments of powers of two up to 4096."""
    draw = random.Random(seed)
    starts = [draw.randrange(n) for _ in range(n)]
    return [(t, t + 1 + draw.randrange(2000), draw.randint(1, 64000),
             1 << draw.randrange(13)) for t in starts]


def uniform(n, seed):
    """In ten thousand steps, as omnimalloc's random source has them."""
    draw = random.Random(seed)
    lengths = [draw.randint(1, 500) for _ in range(n)]
    starts = [draw.randint(0, 10000 - length) for length in lengths]
    return [(t, t + length, draw.randint(1024, 1 << 20))
            for t, length in zip(starts, lengths)]


def exponential(n, seed):
    draw = random.Random(seed)
    starts = [draw.randrange(n) for _ in range(n)]
    return [(t, t + 1 + int(draw.expovariate(1 / 800)),
             64 * int(1 + draw.expovariate(1 / 500))) for t in starts]


def skewed(n, seed):
    """Logarithms of sizes and lives are normally distributed."""
    draw = random.Random(seed)
    starts = [draw.randrange(n) for _ in range(n)]
    return [(t, t + 1 + int(draw.lognormvariate(5, 1.5)),
             64 * int(1 + draw.lognormvariate(4, 1.5))) for t in starts]


def powers(n, seed):
    """Sizes are powers of two."""
    draw = random.Random(seed)
    starts = [draw.randrange(n) for _ in range(n)]
    return [(t, t + 1 + int(draw.expovariate(1 / 800)),
             64 << draw.randrange(12)) for t in starts]


def equal(n, seed):
    return [(first, end, 65536) for first, end, _ in even(n, seed)]


def nested(n, seed):
    """Last born, first dead."""
    draw = random.Random(seed)
    done, stack, time = [], [], 0
    while len(done) + len(stack) < n:
        time += 1
        if stack and draw.random() < 0.498:
            first, size = stack.pop()
            done.append((first, time, size))
        else:
            stack.append((time, 64 * int(1 + draw.lognormvariate(4, 1.5))))
    return done + [(first, time + 1, size) for first, size in stack]


def weights(n, seed):
    """One in twenty stays to the end, half of these from the beginning on."""
    draw = random.Random(seed)
    buffers = []
    for i in range(n):
        first = draw.randrange(n)
        if i % 20 == 0:
            buffers.append((first if draw.random() < .5 else 0, n,
                            256 * draw.randint(1, 4000)))
        else:
            buffers.append((first, first + 1 + draw.randrange(50),
                            256 * draw.randint(1, 40000)))
    return buffers


FAMILIES = {f.__name__: f for f in
            (guillotine, fine, coarse_times, pinwheels, few_times, holes,
             thinned, pile, training, heavy, even, aligned, uniform, exponential,
             skewed, powers, equal, nested, weights)}
MANY = ("training", "heavy", "even", "aligned", "uniform", "exponential",
        "skewed", "powers", "equal", "nested", "weights")
PERFECT = ("guillotine", "fine", "coarse_times", "pinwheels", "few_times")


def write(path, buffers):
    with open(path, "w", encoding="utf-8") as file:
        file.write("id,lower,upper,size,alignment\n")
        for i, (first, end, size, *align) in enumerate(buffers):
            file.write(f"{i},{first},{end},{size},{align[0] if align else 1}\n")
