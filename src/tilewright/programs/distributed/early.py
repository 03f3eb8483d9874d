"""Early messages: what others send of a run that this process has not begun, where nobody waits for all before it.

Who is done with a run tells the others so, and may be in the next one while they still wait for somebody else, or copy
what has come. No one is further ahead than that: each run ends with a meeting.
"""

from __future__ import annotations

from tilewright.arrays import np
from tilewright.core.program import Program
from tilewright.core.region import Array
from tilewright.interpret.hosts import Dispatch, Plan, chip_program
from tilewright.passes.distant import reaches_peers
from tilewright.programs.distributed.segments import Control, Segment


class Early:
    """What has come for the next run; whoever calls holds the lock of messages."""

    def __init__(self) -> None:
        self.runs = 0
        """How many runs this process has begun."""
        self._is_running = False
        self._changes: list[tuple[int, int, Array]] = []
        self._how = 0
        """How the next run came to be over."""

    def begun(self) -> list[tuple[int, int, Array]]:
        """Take note that this process begins a run; return what others have changed in it."""
        self.runs += 1
        self._is_running = True
        found, self._changes = self._changes, []
        return found

    def over(self) -> int:
        """Take note that a run went well; return how the next one came to be over, or 0."""
        self._is_running = False
        how, self._how = self._how, 0
        return how

    @property
    def run(self) -> int:
        """The run that this process is in, or comes to next."""
        return self.runs + (not self._is_running)

    def held(self, source: Segment, position: int, count: int, data: Array) -> bool:
        """Return whether a change is one of the next run, and kept for it: its source has left this one."""
        if source.words[Control.EPOCH] < 2 * self.runs:
            return False
        self._changes.append((position, count, np.array(data)))
        return True

    def ended(self, how: int, run: int) -> int:
        """Return how the run of this process came to be over, or 0 where that is the next one and this one goes on."""
        if not self._is_running or run <= self.runs:
            return how
        self._how = how
        return 0


def are_apart(plan: Plan, program: Program) -> bool:
    """Return whether ranks reach each other through collectives alone: none that has begun a run one which has not."""
    turns = [(turn.action, turn.needs) for each in plan.turns for turn in each]
    dispatches = [(action.function, needs) for action, needs in turns if isinstance(action, Dispatch)]
    waits, functions = any(needs for _, needs in dispatches), {function for function, _ in dispatches}
    return not waits and not any(reaches_peers(chip_program(program, name)) for name in functions)
