"""amphora from Python: networks compiled for accelerators, and run.

    import amphora
    plan = amphora.compile("net.onnx", amphora.Machine("xdnn-v2-28",
                           {"memories.am.size": "2MiB"}))
    plan.cost["bytes"]; plan.volumes; plan.listing; plan.simulate()["cycles"]

Tables are lists of dicts, which notebooks show as tables; `.frame()` makes a
pandas DataFrame of one where there is pandas. Needs libamphora.so: beside this package, in the library path, or
where AMPHORA_LIBRARY points to. Nothing else is needed; arrays of numpy are taken
where there is numpy.
"""
from __future__ import annotations

import html
import json
import os
from typing import (Any, Callable, Dict, Iterable, List, Mapping, Optional,
                    Sequence)

from . import _library
from ._library import Error, Message

__all__ = ["Error", "Machine", "Message", "Network", "Plan", "Table",
           "compile", "explore", "frame", "run", "search", "version"]

Row = Dict[str, Any]


def version() -> str:
    """The library's: revision and LLVM included."""
    return _library.load().amphora_version().decode()


class Table(List[Row]):
    """Rows, each a dict of the same kind."""

    MOST = 200  # rows that are shown

    def columns(self) -> List[str]:
        """Names of all that any row has, in the order of first use."""
        return list(dict.fromkeys(key for row in self for key in row))

    def frame(self) -> Any:
        """The same as a pandas DataFrame."""
        return frame(self)

    def _repr_html_(self) -> str:
        def cell(tag: str, value: Any) -> str:
            if isinstance(value, int) and not isinstance(value, bool):
                value = f"{value:,}"
            if isinstance(value, (dict, list)):
                value = json.dumps(value)
            return f"<{tag}>{html.escape(str(value))}</{tag}>"

        columns = self.columns()
        lines = ["".join(cell("th", name) for name in columns)]
        lines += ["".join(cell("td", row.get(name, "")) for name in columns)
                  for row in self[:self.MOST]]
        more = (f"<p>and {len(self) - self.MOST:,} rows more</p>"
                if len(self) > self.MOST else "")
        return ("<table>" + "".join(f"<tr>{line}</tr>" for line in lines) +
                "</table>" + more)


class Machine:
    """A shipped target by name or a hwspec by path, with scalars overridden."""

    def __init__(self, name: str, settings: Optional[Mapping[str, Any]] = None):
        self.name = os.fspath(name)
        self.settings = dict(settings or {})

    def with_settings(self, **more: Any) -> "Machine":
        """The same machine; `memories__am__size` is memories.am.size."""
        named = {key.replace("__", "."): value for key, value in more.items()}
        return Machine(self.name, {**self.settings, **named})

    def __repr__(self) -> str:
        return f"Machine({self.name!r}, {self.settings!r})"


class Network:
    """A network's file, and that of its weights where they are apart."""

    def __init__(self, path: str, weights: Optional[str] = None):
        self.path = os.fspath(path)
        self.weights = weights

    def __repr__(self) -> str:
        return f"Network({self.path!r})"


class Plan:
    """A network that was compiled for a machine."""

    def __init__(self, session: _library.Session, handle: Any,
                 network: Network, machine: Machine):
        self._session, self._handle = session, handle
        self._free = _library.load().amphora_plan_free
        self.network, self.machine = network, machine
        self.report: Row = json.loads(self._text("amphora_plan_json"))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._free(self._handle)

    def _text(self, function: str) -> str:
        return getattr(_library.load(), function)(self._handle).decode()

    @property
    def cost(self) -> Row:
        """cycles, bytes, instructions, memory."""
        return self.report["cost"]

    @property
    def messages(self) -> List[Message]:
        return self._session.messages()

    @property
    def volumes(self) -> Table:
        """What lies where, from which step to which."""
        library = _library.load()
        return Table(library.amphora_volume_at(self._handle, i).row()
                     for i in range(
                         library.amphora_volume_count(self._handle)))

    @property
    def listing(self) -> Table:
        """Records of docs/listing.md, each with its line as `text`."""
        own = json.loads(self._text("amphora_listing_json"))["amphora"]
        return Table({**record, "text": text} for record, text in
                     zip(own["records"], own["instructions"]))

    @property
    def text(self) -> str:
        """The listing as text."""
        return self._text("amphora_listing_text")

    def write(self, folder: str) -> None:
        """NET.cmd, NET.json and what belongs to them."""
        done = _library.load().amphora_listing_write(
            self._session.handle, self._handle, os.fspath(folder).encode())
        if done:
            raise Error(self._session.messages())

    def simulate(self, inputs: Optional[Sequence[Any]] = None) -> Row:
        """Runs the listing: what `simulate --json` says, and `outputs` by
        name. inputs: numbers of each input, nested or flat, or arrays."""
        return _library.simulate(self._session, self._handle, inputs)

    def verify(self) -> bool:
        """Whether the listing computes what the network computes."""
        done = _library.load().amphora_verify(self._session.handle,
                                              self._handle)
        if done < 0:
            raise Error(self._session.messages())
        return done == 1

    def svg(self) -> str:
        """Active memory over the steps, as a picture."""
        return self._text("amphora_plan_svg")

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.svg()}"

    def __repr__(self) -> str:
        cost = self.cost
        return (f"Plan({self.report['network']} on {self.report['machine']}: "
                f"{cost['cycles']} cycles, {cost['bytes']} bytes, "
                f"{cost['memory']} of active memory)")


def _network(network: Any) -> Network:
    return network if isinstance(network, Network) else Network(network)


def _machine(machine: Any) -> Machine:
    return machine if isinstance(machine, Machine) else Machine(machine)


def compile(network: Any, machine: Any,  # pylint: disable=redefined-builtin
            watch: Optional[Callable[[float, int], Any]] = None,
            **options: Any) -> Plan:
    """Compiles; options: objective, order, planner, replication, mode, seed,
    batch, images, effort, recompute. Error has the messages where it does not fit.

    watch(share, cycles): told how far the search is, 0 to 1, and the cycles of
    the best plan so far; a true result, or an exception, ends it."""
    network, machine = _network(network), _machine(machine)
    session = _library.Session()
    if watch:
        session.watch(watch)
    handle = session.compile(network.path, machine.name, machine.settings,
                             network.weights, options)
    if watch and session.raised:
        raise session.raised
    if not handle:
        raise Error(session.messages())
    return Plan(session, handle, network, machine)


def run(*arguments: Any) -> Row:
    """Any command of `amphora`, as on the command line: what it prints with
    --json. run("check", "mine.yaml"); Error has the messages where it fails."""
    session = _library.Session()
    said = session.run([a if isinstance(a, os.PathLike) else str(a)
                        for a in arguments])
    messages = session.messages()
    if not said or any(m.kind == "error" for m in messages):
        raise Error(messages)
    return json.loads(said)


def _sweep(networks: Iterable[Any], machine: Any,
           vary: Mapping[str, Iterable[Any]],
           options: Mapping[str, Any]) -> List[str]:
    base = _machine(machine)
    files = [_network(network) for network in networks]
    words = ["explore", *(file.path for file in files), "-t", base.name]
    for file in files:
        words += ["--weights", file.weights] if file.weights else []
    for path, value in base.settings.items():
        words += ["--set", f"{path}={value}"]
    for path, values in vary.items():
        words += ["--vary", path + "=" + ",".join(map(str, values))]
    for name, value in options.items():
        words += ["--" + name.replace("_", "-"), str(value)]
    return words


def explore(networks: Iterable[Any], machine: Any,
            vary: Mapping[str, Iterable[Any]], **options: Any) -> Table:
    """A row for each network and combination of settings, on all cores: what
    was varied, cycles, bytes, memory; or `error`, where it does not fit.
    Options: those of the command, `objective="time"`, `output="folder"`."""
    rows = Table()
    for point in run(*_sweep(networks, machine, vary, options))["points"]:
        row: Row = {"network": point["network"], **point["settings"]}
        if point["status"] == "fits":
            row.update((key, point[key]) for key in point
                       if key not in row and key not in NOT_FIGURES)
        else:
            row["error"] = f"{point['status']}: {point['reason']}"
        rows.append(row)
    return rows


NOT_FIGURES = ("point", "name", "network_fnv1a", "target", "settings", "status")


def search(networks: Iterable[Any], machine: Any,
           vary: Mapping[str, Iterable[Any]], goal: str = "",
           **options: Any) -> Row:
    """The best machine of those that `vary` spans, by few compilations:
    search(nets, machine, vary, "ms(net) <= 2", minimise="cost.bram"). `best`
    with its aim and limits, `next` better and what it misses, `tried`."""
    return run(*_sweep(networks, machine, vary, {"goal": goal, **options}))


def frame(rows: Sequence[Row]) -> Any:
    """The rows as a pandas DataFrame."""
    import pandas  # pylint: disable=import-outside-toplevel
    return pandas.DataFrame(list(rows))
