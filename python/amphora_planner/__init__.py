"""Static memory planning: buffers with lives and sizes in, offsets out.

    import amphora_planner
    offsets = amphora_planner.place([0, 1, 3], [2, 4, 5], [8, 4, 12],
                                    capacity=16).offsets

Lists or numpy arrays. Needs libamphora-planner.so.1 only: where
AMPHORA_PLANNER_LIBRARY points to, beside this file, or where the system looks.
"""
import ctypes
import operator
import os
import threading

__all__ = ["place", "planners", "Result", "Infeasible", "Undecided"]

_U64, _U32 = ctypes.c_uint64, ctypes.c_uint32


class _Span(ctypes.Structure):
    _fields_ = [("first", _U32), ("end", _U32)]


class _Buffer(ctypes.Structure):
    _fields_ = [("first", _U32), ("end", _U32), ("size", _U64),
                ("alignment", _U64), ("flags", _U32), ("n_gaps", _U32),
                ("offset", _U64), ("gaps", ctypes.POINTER(_Span))]


class _Relation(ctypes.Structure):
    _fields_ = [("kind", _U32), ("a", _U32), ("b", _U32),
                ("bytes", ctypes.c_int64)]


class _Pair(ctypes.Structure):
    _fields_ = [("a", _U32), ("b", _U32)]


class _Problem(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t),
                ("buffers", ctypes.POINTER(_Buffer)),
                ("relations", ctypes.POINTER(_Relation)),
                ("n_buffers", _U32), ("n_relations", _U32),
                ("capacity", _U64), ("alignment", _U64),
                ("conflicts", ctypes.POINTER(_Pair)),
                ("n_conflicts", ctypes.c_size_t),
                ("clocks", ctypes.POINTER(ctypes.c_int64)),
                ("n_streams", _U32)]


class _Progress(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_double),
                ("offsets", ctypes.POINTER(_U64)),
                ("height", _U64), ("better", ctypes.c_int)]


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p,
                             ctypes.POINTER(_Progress))


class _Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t),
                ("planner", ctypes.c_char_p), ("seed", _U64),
                ("steps", _U64), ("seconds", ctypes.c_double),
                ("lowest", ctypes.c_int), ("progress", _CALLBACK),
                ("context", ctypes.c_void_p)]


class _Result(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("proved", ctypes.c_int),
                ("stopped", ctypes.c_int), ("height", _U64),
                ("bound", _U64), ("nodes", _U64),
                ("message", ctypes.c_char * 160)]


class Infeasible(Exception):
    """No placement exists: proved."""


class Undecided(Exception):
    """None was found within the steps or seconds."""


class Result:
    """offsets, height, bound, proved, stopped."""

    def __init__(self, offsets, raw):
        self.offsets = offsets
        self.height, self.bound = raw.height, raw.bound
        self.proved, self.stopped = bool(raw.proved), bool(raw.stopped)


def _load():
    name = "libamphora-planner.so.1"
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    path = os.environ.get("AMPHORA_PLANNER_LIBRARY")
    path = path or (beside if os.path.exists(beside) else name)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{error}; AMPHORA_PLANNER_LIBRARY may say where "
                          f"{name} is") from error
    library.amphora_planner_name.restype = ctypes.c_char_p
    if library.amphora_planner_version() != 1:
        raise ImportError(f"{path}: another version of the interface")
    return library


_lock, _loaded = threading.Lock(), []


def _library():
    with _lock:
        if not _loaded:
            _loaded.append(_load())
    return _loaded[0]


def planners():
    """The names that `planner` takes."""
    names = []
    while True:
        name = _library().amphora_planner_name(_U32(len(names)))
        if name is None:
            return names
        names.append(name.decode())


def _numbers(values, n, default):
    values = [default] * n if values is None else list(values)
    if len(values) != n:
        raise ValueError(f"{len(values)} values for {n} buffers")
    return [default if v is None else operator.index(v) for v in values]


def _unsigned(values, bits):
    for value in values:
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{value} is not a number of {bits} bits")
    return values


_PINNED, _HINTED = 1, 2


def _buffers(lower, upper, sizes, alignments, pins, hints, gaps):
    n = len(sizes)
    rows = zip(_unsigned(_numbers(lower, n, 0), 32),
               _unsigned(_numbers(upper, n, 0), 32),
               _unsigned(_numbers(sizes, n, 0), 64),
               _unsigned(_numbers(alignments, n, 1), 64),
               _numbers(pins, n, -1), _numbers(hints, n, -1),
               [()] * n if gaps is None else gaps)
    array = (_Buffer * max(n, 1))()
    for i, (first, end, size, alignment, pin, hint, own) in enumerate(rows):
        spans = (_Span * max(len(own), 1))(*[_Span(*s) for s in own])
        flags = _PINNED if pin >= 0 else _HINTED if hint >= 0 else 0
        array[i] = _Buffer(first, end, size, alignment, flags, len(own),
                           max(pin if pin >= 0 else hint, 0), spans)
    return array


_KINDS = ("inside", "share", "same", "below")


def _relations(relations, n):
    array = (_Relation * max(len(relations), 1))()
    for i, (kind, a, b, *by) in enumerate(relations):
        if kind not in _KINDS:
            raise ValueError(f"'{kind}' is none of {', '.join(_KINDS)}")
        array[i] = _Relation(_KINDS.index(kind), *_indices((a, b), n),
                             int(by[0]) if by else 0)
    return array


def _indices(pair, n):
    a, b = int(pair[0]), int(pair[1])
    if not (0 <= a < n and 0 <= b < n):
        raise ValueError(f"({a}, {b}) are not two of {n} buffers")
    return a, b


def _clocks(lower, upper, n):
    """(n_streams, array): 0 where the lives are on one line of time."""
    if not n or lower is None or not hasattr(lower[0], "__len__"):
        return 0, None
    streams = len(lower[0])
    if len(lower) != n or len(upper) != n or not streams:
        raise ValueError(f"not {n} clocks of one stream or more")
    array = (ctypes.c_int64 * (2 * n * streams))()
    for i, (born, dies) in enumerate(zip(lower, upper)):
        if len(born) != streams or len(dies) != streams:
            raise ValueError(f"buffer {i}: not {streams} streams")
        for s in range(streams):
            array[2 * i * streams + s] = int(born[s])
            array[(2 * i + 1) * streams + s] = int(dies[s])
    return streams, array


def place(lower, upper, sizes, capacity=0, alignments=None, pins=None,
          gaps=None, planner=None, steps=0, seconds=0.0, seed=0, lowest=False,
          progress=None, conflicts=(), relations=(), hints=None):
    """Offsets of buffers that are alive in steps [lower, upper).

    gaps: for each buffer a list of (first, end); pins, hints: an
    offset or None each; a hint is kept where that costs nothing.
    relations: ("below", a, b, bytes), ("share", a, b), ...: docs/pack.md.
    conflicts: pairs (a, b) that conflict whatever their lives; lower and upper
    may be None. Lives on several streams: lower[i] and upper[i] are sequences,
    of one number a stream.
    progress(seconds, height): called with each better placement; True cancels,
    and so does an exception, which is raised again.
    Raises Infeasible, Undecided, ValueError, MemoryError.
    """
    n = len(sizes)
    streams, clocks = _clocks(lower, upper, n)
    if streams:
        lower = upper = None
    buffers = _buffers(lower, upper, sizes, alignments, pins, hints, gaps)
    pairs = (_Pair * max(len(conflicts), 1))(
        *[_Pair(*_indices(pair, n)) for pair in conflicts])
    problem = _Problem(ctypes.sizeof(_Problem), buffers,
                       _relations(relations, n), n, len(relations),
                       *_unsigned([operator.index(capacity)], 64),
                       0, pairs, len(conflicts), clocks, streams)

    raised = []

    def call(_, at):
        told = at.contents
        if not told.better or progress is None or raised:
            return int(bool(raised))
        try:
            return int(bool(progress(told.seconds, told.height)))
        except BaseException as error:  # ctypes would swallow it
            raised.append(error)
            return 1

    options = _Options(ctypes.sizeof(_Options),
                       planner.encode() if planner else None, seed, steps,
                       seconds, int(lowest), _CALLBACK(call), None)
    offsets, raw = (_U64 * max(n, 1))(), _Result()
    status = _library().amphora_planner_place(
        ctypes.byref(problem), ctypes.byref(options), offsets,
        ctypes.byref(raw))
    if raised:
        raise raised[0]
    if status:
        errors = (None, Infeasible, Undecided, ValueError, MemoryError,
                  RuntimeError)
        raise errors[status](raw.message.decode())
    return Result(list(offsets[:n]), raw)
