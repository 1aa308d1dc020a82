"""libamphora.so by ctypes: include/amphora/amphora.h, declared once more."""
from __future__ import annotations

import array
import ctypes
import functools
import json
import os
from ctypes import (POINTER, Structure, c_char_p, c_double, c_float, c_int,
                    c_uint32, c_uint64, c_void_p)
from typing import (Any, Callable, Dict, List, Mapping, NamedTuple, Optional,
                    Sequence)

KINDS = ("error", "warning", "note")
API_VERSION = 2


class Message(NamedTuple):
    """What the compiler tells; file None and line 0: about no place."""
    kind: str
    file: Optional[str]
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else (
            f"{self.file}: " if self.file else "")
        return f"{place}{self.kind}: {self.text}"


class Error(Exception):
    """Messages of what failed, errors first to last, with their notes."""

    def __init__(self, messages: Sequence[Message]):
        self.messages = list(messages)
        super().__init__("\n".join(map(str, self.messages)) or "failed")


class _Message(Structure):
    _fields_ = [("kind", c_int), ("file", c_char_p), ("line", c_uint32),
                ("column", c_uint32), ("text", c_char_p)]


class _Options(Structure):
    _fields_ = [("settings", POINTER(c_char_p)), ("weights", c_char_p),
                ("objective", c_char_p), ("order", c_char_p),
                ("planner", c_char_p), ("replication", c_char_p),
                ("mode", c_char_p), ("seed", c_uint64), ("batch", c_uint64),
                ("images", c_uint64), ("effort", c_int),
                ("recompute", c_double)]


class _Volume(Structure):
    _fields_ = [("tensor", c_char_p), ("memory", c_char_p),
                ("offset", c_uint64), ("bytes", c_uint64),
                ("channels", c_uint32), ("rows", c_uint32),
                ("columns", c_uint32), ("first_step", c_uint32),
                ("end_step", c_uint32)]

    def row(self) -> Dict[str, Any]:
        values = {name: getattr(self, name) for name, _ in self._fields_}
        return {k: v.decode() if isinstance(v, bytes) else v
                for k, v in values.items()}


class _Tensor(Structure):
    _fields_ = [("name", c_char_p), ("rank", c_int), ("dim", c_uint32 * 8),
                ("value", POINTER(c_float))]

    def shape(self) -> List[int]:
        return list(self.dim[:self.rank])

    def count(self) -> int:
        count = 1
        for n in self.shape():
            count *= n
        return count


_WATCH = ctypes.CFUNCTYPE(c_int, c_void_p, c_double, c_uint64)

FUNCTIONS = {
    "version": (c_char_p, []),
    "api_version": (c_int, []),
    "session_new": (c_void_p, []),
    "session_free": (None, [c_void_p]),
    "message_count": (c_int, [c_void_p]),
    "message_at": (_Message, [c_void_p, c_int]),
    "messages_clear": (None, [c_void_p]),
    "session_watch": (None, [c_void_p, _WATCH, c_void_p]),
    "compile": (c_void_p, [c_void_p, c_char_p, c_char_p, POINTER(_Options)]),
    "plan_free": (None, [c_void_p]),
    "volume_count": (c_int, [c_void_p]),
    "volume_at": (_Volume, [c_void_p, c_int]),
    "plan_json": (c_char_p, [c_void_p]),
    "listing_text": (c_char_p, [c_void_p]),
    "listing_json": (c_char_p, [c_void_p]),
    "listing_write": (c_int, [c_void_p, c_void_p, c_char_p]),
    "plan_svg": (c_char_p, [c_void_p]),
    "simulate": (c_char_p, [c_void_p, c_void_p, POINTER(POINTER(c_float)),
                            c_int]),
    "input_count": (c_int, [c_void_p]),
    "input_at": (_Tensor, [c_void_p, c_int]),
    "output_count": (c_int, [c_void_p]),
    "output_at": (_Tensor, [c_void_p, c_int]),
    "verify": (c_int, [c_void_p, c_void_p]),
    "run": (c_char_p, [c_void_p, POINTER(c_char_p), POINTER(c_int)]),
}


def _open() -> Any:
    here = os.path.join(os.path.dirname(__file__), "libamphora.so.1")
    for path in (os.environ.get("AMPHORA_LIBRARY"), here, "libamphora.so.1"):
        if path and (path == "libamphora.so.1" or os.path.exists(path)):
            return ctypes.CDLL(path)
    raise OSError("no libamphora.so.1: set AMPHORA_LIBRARY")


@functools.lru_cache(maxsize=None)
def load() -> Any:
    """The library, with its functions declared."""
    library = _open()
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, "amphora_" + name)
        function.restype, function.argtypes = result, arguments
    if library.amphora_api_version() != API_VERSION:
        raise OSError("this libamphora has another interface")
    return library


class Session:
    """Messages of what is done with it."""

    def __init__(self) -> None:
        self._free = load().amphora_session_free
        self.handle = load().amphora_session_new()

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._free(self.handle)

    def messages(self) -> List[Message]:
        library = load()
        found = []
        for i in range(library.amphora_message_count(self.handle)):
            m = library.amphora_message_at(self.handle, i)
            found.append(Message(KINDS[m.kind], m.file and m.file.decode(),
                                 m.line, m.column, m.text.decode()))
        return found

    def watch(self, watch: Callable[[float, int], Any]) -> None:
        """Tells `watch` of the search; a true result, or an exception, ends
        it."""
        def told(_: Any, share: float, cycles: int) -> int:
            try:
                return bool(watch(share, cycles))
            except BaseException as error:  # pylint: disable=broad-except
                self.raised = error
                return 1

        self.raised: Optional[BaseException] = None
        self._watch = _WATCH(told)
        load().amphora_session_watch(self.handle, self._watch, None)

    def run(self, arguments: Sequence[str]) -> Optional[str]:
        """A command's object, as text."""
        words = [os.fspath(a).encode() for a in arguments]
        said = load().amphora_run(self.handle, (c_char_p * (len(words) + 1))(
            *words, None), None)
        return said and said.decode()

    def compile(self, network: str, machine: str,
                settings: Mapping[str, Any], weights: Optional[str],
                options: Mapping[str, Any]) -> Any:
        told = _Options()
        pairs = [f"{k}={v}".encode() for k, v in settings.items()]
        told.settings = (c_char_p * (len(pairs) + 1))(*pairs, None)
        told.weights = weights and os.fspath(weights).encode()
        for name, value in options.items():
            if name not in dict(_Options._fields_) or name == "settings":
                raise TypeError(f"no option {name}")
            if name == "effort":
                value = int(value) + 1
            setattr(told, name,
                    value.encode() if isinstance(value, str) else value)
        return load().amphora_compile(self.handle, network.encode(),
                                      machine.encode(), ctypes.byref(told))


def _flat(value: Any) -> List[float]:
    if hasattr(value, "ravel"):
        return value.ravel().tolist()
    if isinstance(value, (list, tuple)) and value and \
            isinstance(value[0], (list, tuple)):
        return [x for part in value for x in _flat(part)]
    return list(value)


def _pointers(plan: Any, inputs: Sequence[Any]) -> Any:
    library = load()
    made = (POINTER(c_float) * len(inputs))()
    if len(inputs) > library.amphora_input_count(plan):
        raise ValueError("the network has fewer inputs")
    for i, value in enumerate(inputs):
        numbers = array.array("f", _flat(value))
        of = library.amphora_input_at(plan, i)
        if len(numbers) != of.count():
            raise ValueError(f"{of.name.decode()} has {of.count()} numbers, "
                             f"not {len(numbers)}")
        made[i] = (c_float * len(numbers)).from_buffer(numbers)
    return made


def simulate(session: Session, plan: Any,
             inputs: Optional[Sequence[Any]]) -> Dict[str, Any]:
    library = load()
    given = _pointers(plan, inputs) if inputs else None
    text = library.amphora_simulate(session.handle, plan, given,
                                    len(inputs or ()))
    if not text:
        raise Error(session.messages())
    said = json.loads(text)
    said["outputs"] = {}
    for i in range(library.amphora_output_count(plan)):
        tensor = library.amphora_output_at(plan, i)
        said["outputs"][tensor.name.decode()] = \
            tensor.value[:tensor.count()]
    return said
