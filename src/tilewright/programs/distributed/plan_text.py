"""Plans as text: what the ranks of a host function do, and which of its collectives copy nothing."""

from __future__ import annotations

from tilewright.arrays import np
from tilewright.core.program import Function, Program
from tilewright.core.region import Region, whole
from tilewright.core.types import TensorType, is_static, static_shape
from tilewright.interpret.hosts import Collective, Dispatch, HostMachine, Plan, WindowBuffer
from tilewright.passes.aliases import Footprints
from tilewright.programs.distributed.in_place import InPlace, in_place
from tilewright.programs.distributed.spread import spread
from tilewright.source import Span

RING = ": around no ring, as one rank sees the windows of all; in a kernel it goes around"


def shown(program: Program, size: int) -> str:
    """Return the plans of the host functions whose tensors have one shape."""
    found: list[str] = []
    for host in program.hosts:
        args = _stand_ins(host)
        if args is None:
            found.append(f"{host.name}: its plan follows from the tensors and numbers that it is called with")
            continue
        machine = HostMachine(program, size)
        machine.planned(host.name, args)
        made = spread(machine.plan, program)
        chosen = in_place(made.plan, made.program, Footprints(made.program))
        found.append(f"{host.name}, {size} ranks\n{_plan(made.plan, chosen)}")
    return "\n\n".join(found)


def _stand_ins(host: Function) -> list[Region] | None:
    """Return arguments for a host function, whose elements nobody looks at; None where types do not tell them."""
    types = [param.type for param in host.params]
    if not all(isinstance(type_, TensorType) and is_static(type_.shape) for type_ in types):
        return None
    return [whole(np.empty(static_shape(t.shape), t.dtype.numpy)) for t in types if isinstance(t, TensorType)]


def _plan(plan: Plan, chosen: InPlace) -> str:
    names = {buffer: f"buffer {number}" for number, buffer in enumerate(plan.buffers)}
    lines = [f"  {name}: {buffer.size} bytes, {_lies(buffer, chosen, names)}" for buffer, name in names.items()]
    acts: dict[str, list[int]] = {}
    for action in plan.actions:
        ranks = [action.rank] if isinstance(action, Dispatch) else action.domain
        acts.setdefault(f"{_place(action.span)}{_act(action, chosen)}", []).extend(ranks)
    return "\n".join([*lines, *(f"  {act}, on ranks {_ranks(ranks)}" for act, ranks in acts.items())])


def _lies(buffer: WindowBuffer, chosen: InPlace, names: dict[WindowBuffer, str]) -> str:
    if buffer in chosen.gathered:
        return f"the rows of {names[chosen.gathered[buffer]]} where the ranks have them"
    return f"{'one for all' if buffer in chosen.shared else 'on each'} of ranks {_ranks(buffer.domain)}"


def _act(action: Dispatch | Collective, chosen: InPlace) -> str:
    if isinstance(action, Dispatch):
        return action.function
    target = action.windows.get("target")
    if target is not None and target.buffer in chosen.gathered:
        return f"{action.name}: they meet, and copy nothing"
    return f"{action.name}{RING if action.options.get('mode') == 'ring' else ''}"


def _ranks(ranks: list[int] | tuple[int, ...]) -> str:
    return ", ".join(map(str, dict.fromkeys(ranks)))


def _place(span: Span) -> str:
    return f"line {span.line}: " if span.is_known else ""
