"""MiniMalloc's Python names over this package: switching is one line.

    import amphora_planner.minimalloc as mm
    problem = mm.Problem([mm.Buffer("a", mm.Lifespan(0, 3), 4),
                          mm.Buffer("b", mm.Lifespan(2, 5), 8)], capacity=12)
    solution = mm.Solver().solve(problem)
    print(solution.offsets, solution.height)

A solution is None where nothing fits, or where nothing was found in time.
Parameters of MiniMalloc's search other than `timeout` and `minimize_capacity`
are taken and have no effect.
"""
import dataclasses
import typing

from . import Infeasible, Undecided, place

__all__ = ["Buffer", "Gap", "Interval", "Lifespan", "Problem", "Solution",
           "Solver", "SolverParams"]


@dataclasses.dataclass
class Lifespan:
    """Steps [lower, upper)."""
    lower: int
    upper: int


Interval = Lifespan


@dataclasses.dataclass
class Gap:
    """Steps in which a buffer holds nothing."""
    lifespan: Lifespan


@dataclasses.dataclass
class Buffer:
    """offset: where it has to lie; hint: where it would best."""
    id: str
    lifespan: Lifespan
    size: int
    alignment: int = 1
    gaps: list = dataclasses.field(default_factory=list)
    offset: typing.Optional[int] = None
    hint: typing.Optional[int] = None


@dataclasses.dataclass
class Problem:
    buffers: list
    capacity: int = 0


@dataclasses.dataclass
class Solution:
    """Offsets in the order of the buffers; height: where the last one ends."""
    offsets: list
    height: int


class SolverParams:
    """timeout: seconds, or None for no end."""

    def __init__(self, timeout=None, minimize_capacity=False, **others):
        self.timeout, self.minimize_capacity = timeout, minimize_capacity
        self.__dict__.update(others)


class Solver:
    def __init__(self, params=None):
        self.params = params or SolverParams()

    def solve(self, problem):
        b = problem.buffers
        seconds = self.params.timeout
        try:
            result = place(
                [i.lifespan.lower for i in b], [i.lifespan.upper for i in b],
                [i.size for i in b], capacity=problem.capacity,
                alignments=[i.alignment for i in b],
                pins=[i.offset for i in b], hints=[i.hint for i in b],
                gaps=[[(g.lifespan.lower, g.lifespan.upper) for g in i.gaps]
                      for i in b],
                seconds=float(seconds) if seconds is not None else 0.0,
                lowest=self.params.minimize_capacity)
        except (Infeasible, Undecided):
            return None
        return Solution(result.offsets, result.height)
