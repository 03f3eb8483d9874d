"""Steps: a kernel's calls run line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.call.placement import MISSING
from tilewright.frontend.entries import Specialization
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.signature import dynamic_extents
from tilewright.frontend.steps import stepwise
from tilewright.jit.calls import Binder
from tilewright.jit.hosts import rank_count
from tilewright.jit.specializing import read
from tilewright.jit.variants import Store
from tilewright.keep.reads import ReadSet
from tilewright.programs.debugging import SteppedProgram
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.programs.config import RunConfig

Filled: TypeAlias = Callable[[Sequence[Any], Mapping[str, Any]], Mapping[str, Any]]


@record
class Stepped:
    """A program for a call, which of the kernel's arguments it takes, and what it was read from."""

    program: SteppedProgram
    made: Specialization
    reads: ReadSet


class Steps:
    """The programs of one kernel that are run line by line; `filled` gives what else a call by name is given."""

    def __init__(self, kernel: Kernel, filled: Filled | None = None) -> None:
        self.kernel, self.filled = kernel, filled
        self.store: Store[Stepped] = Store()

    def run(
        self,
        binder: Binder,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        seed: int | None = None,
        at: Mapping[str, int] | None = None,
        config: RunConfig | None = None,
    ) -> Any:
        """Run the kernel on a call's arguments, a host function on the ranks of a configuration."""
        call = binder.call(args, kwargs if self.filled is None else self.filled(args, kwargs))
        found = next((each for each in self.store.find(call.kinds, call.extents) if each.reads.drift() is None), None)
        if found is None:
            with stepwise():
                call, made = read(self.kernel, binder, call)
            found = Stepped(SteppedProgram(made.program), made, ReadSet(made.reads))
            self.store.add(call.kinds, dynamic_extents(made.metas), call.extents, found)
        given = [call.values.get(name, MISSING) for name in found.made.parameters]
        return found.program.ordered(seed, at, rank_count(config)).entry.run_described(given, call.arguments)
