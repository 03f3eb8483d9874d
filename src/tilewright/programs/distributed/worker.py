"""Distributed workers: what keeps the ranks of some programs ready, with memory that stays on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import signature
from math import isfinite
from typing import Any

from tilewright.backends.interface import find
from tilewright.call.device_tensor import DeviceTensor
from tilewright.call.frameworks import array_of, is_tensor
from tilewright.call.launch import run_interpreted, runner_on
from tilewright.core.region import Array
from tilewright.imported import imported
from tilewright.programs.chip_worker import ChipWorker
from tilewright.programs.config import RunConfig
from tilewright.programs.distributed.handle import DistributedRunHandle
from tilewright.programs.distributed.ranked import Ranked
from tilewright.programs.distributed.stacked import StackedDeviceTensor
from tilewright.programs.program import CompiledProgram
from tilewright.programs.worker import RegistrationHandle

IN_FLIGHT = 2
"""How many runs there are at most that have not ended."""


class DistributedWorker(ChipWorker):
    """Runs programs of many ranks again and again, in place: results are read from the tensors.

    Arguments are tensors of torch in shared memory, or tensors of this worker. `persistent` windows live as long as the
    worker; they start as zeros in each run all the same, unless `reset_persistent_windows` is False.
    """

    def __init__(
        self,
        compiled: CompiledProgram | Sequence[CompiledProgram],
        config: RunConfig | None = None,
        *,
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks: Mapping[str, Callable[[list[Any]], Any]] | None = None,
        sub_worker_overrides: Mapping[str, Callable[[list[Any]], Any]] | None = None,
        startup_timeout_s: float | None = None,
    ) -> None:
        programs = list(compiled) if isinstance(compiled, Sequence) else [compiled]
        ranked = _alike(programs)
        if reset_persistent_windows and not persistent:
            raise ValueError(
                "reset_persistent_windows=True is for persistent=True: other windows start as zeros anyway"
            )
        if startup_timeout_s is not None and not (startup_timeout_s > 0 and isfinite(startup_timeout_s)):
            raise ValueError(f"startup_timeout_s is a positive number of seconds, got {startup_timeout_s}")
        bound = {**(callbacks or {}), **(sub_worker_overrides or {})}
        keeps = persistent and reset_persistent_windows is False
        self.programs = {id(program): program for program in programs}
        self._ranked = {
            id(program): each.again(keeps_windows=keeps, bound=bound)
            for program, each in zip(programs, ranked, strict=True)
        }
        _check_bound(list(self._ranked.values()), bound)
        self._size = ranked[0].size
        self._owners: dict[int, int] = {}
        """The rank of each allocation, by its address."""
        self._pool: ThreadPoolExecutor | None = None
        self._flying: deque[DistributedRunHandle] = deque()
        super().__init__(config or RunConfig(platform=programs[0].platform), runtime=programs[0].runtime_name)

    def __enter__(self) -> DistributedWorker:
        super().__enter__()
        return self

    def close(self) -> None:
        """Let what was submitted end, and free what is still allocated; a second time does nothing."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        self._flying.clear()
        self._owners.clear()
        super().close()

    def __repr__(self) -> str:
        return f"<DistributedWorker, {self._size} rank(s), {'open' if self.initialized else 'closed'}>"

    # programs

    def __call__(self, *args: Any, config: RunConfig | None = None) -> None:
        """Run the one program of this worker; TypeError where it has several."""
        self._check_open()
        if len(self.programs) > 1:
            raise TypeError(
                f"this call is ambiguous: the worker has {len(self.programs)} programs, use run(program, ...)"
            )
        self.run(next(iter(self.programs.values())), *args)

    def run(self, compiled: CompiledProgram, *args: Any, config: RunConfig | None = None) -> None:
        """Run a program of this worker, all its parameters given, and return once all ranks are done."""
        self.submit(compiled, *args).result()

    def submit(self, compiled: CompiledProgram, *args: Any) -> DistributedRunHandle:
        """Start a run; where two are under way, wait for the older one first."""
        ranked = self._known(compiled)
        if len(args) != len(compiled.param_names):
            raise TypeError(f"a run takes every parameter ({', '.join(compiled.param_names)}), got {len(args)}")
        bound = compiled.entry.bound([self._taken(arg) for arg in args], {})
        while len(self._flying) >= IN_FLIGHT:
            self._flying.popleft()._future.exception()  # pyright: ignore[reportPrivateUsage]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "tilewright-worker")
        run = runner_on(find(ranked.platform), partial(run_interpreted, ranked.run))
        handle = DistributedRunHandle(self._pool.submit(lambda: _none(run(bound))))
        self._flying.append(handle)
        return handle

    def register(self, compiled: CompiledProgram) -> RegistrationHandle:
        """Return a program of this worker to be called here again and again."""
        self._known(compiled)
        return RegistrationHandle(self, compiled, next(self._numbers))

    def _known(self, compiled: object) -> Ranked:
        self._check_open()
        if not isinstance(compiled, CompiledProgram):
            message = f"a program comes first, submit(program, *tensors), got {type(compiled).__name__}"
            raise TypeError(message)
        if id(compiled) not in self.programs:
            raise ValueError(f"{compiled!r} was not given to this worker when it was made")
        return self._ranked[id(compiled)]

    def _taken(self, value: Any) -> Any:
        """Return an argument as programs take it; TypeError for a tensor that other processes could not see."""
        if isinstance(value, StackedDeviceTensor):
            return value.whole
        torch = imported("torch")
        is_shared = torch is not None and isinstance(value, torch.Tensor) and value.is_shared()
        if is_tensor(value) and not isinstance(value, DeviceTensor) and not is_shared:
            message = (
                "a worker takes tensors in shared memory, or its own: call x.share_memory_() before, or alloc_tensor"
            )
            raise TypeError(message)
        return value

    # memory

    def _check_id(self, worker_id: int) -> None:
        if type(worker_id) is not int or not 0 <= worker_id < self._size:
            raise ValueError(f"worker_id is a rank from 0 to {self._size - 1}, got {worker_id!r}")

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Return the address of new memory of a rank, zeroed."""
        address = super().malloc(nbytes, worker_id=worker_id)
        self._owners[address] = worker_id
        return address

    def alloc_tensor(self, shape: Sequence[int], dtype: Any, *, init: Any = None, worker_id: int = 0) -> DeviceTensor:
        """Return a new tensor of a rank, zeroed, or with the elements of `init`."""
        made = super().alloc_tensor(shape, dtype, init=init, worker_id=worker_id)
        self._owners[made.data_ptr] = worker_id
        return made

    def committed_device_memory(self, worker_id: int = 0) -> int:
        """Return how many bytes are allocated for a rank."""
        self._check_id(worker_id)
        held = self._memory.buffers
        return sum(
            held[address].nbytes for address, rank in self._owners.items() if rank == worker_id and address in held
        )

    def alloc_stacked_tensor(self, host: Any, *, worker_ids: Sequence[int] | None = None) -> StackedDeviceTensor:
        """Return a tensor of the host's with each of its parts on a rank; ValueError for ranks that cannot be."""
        array: Array = array_of(host)
        if array.ndim < 2 or not array.flags.c_contiguous:
            raise ValueError(
                f"a stacked tensor is made of a contiguous one of two axes or more, got {list(array.shape)}"
            )
        ids = list(range(array.shape[0]) if worker_ids is None else worker_ids)
        if len(ids) != array.shape[0] or len(set(ids)) != len(ids):
            raise ValueError(f"{array.shape[0]} shards go to as many ranks, each to another one, got {ids}")
        for worker_id in ids:
            self._check_id(worker_id)
        whole = self.alloc_tensor(array.shape, host.dtype, init=host, worker_id=ids[0])
        return StackedDeviceTensor(whole, ids)

    def free_stacked_tensor(self, stacked: StackedDeviceTensor) -> None:
        """Give a stacked tensor's memory back; a second time does nothing."""
        self.free_tensor(stacked.whole)

    def copy_stacked_from(self, stacked: StackedDeviceTensor, host: Any) -> None:
        """Copy all shards to a tensor of the host's, of the same shape; ValueError for another."""
        self._check_open()
        target = array_of(host)
        if target.shape != stacked.full_shape:
            raise ValueError(f"shards of {list(stacked.full_shape)} do not fit {list(target.shape)}")
        target[...] = array_of(stacked.whole)


def _none(_: object) -> None:
    """Return nothing: results are in the tensors."""


def _alike(programs: Sequence[CompiledProgram]) -> list[Ranked]:
    """Return what runs some programs; ValueError where they cannot share ranks."""
    found = [program.loaded for program in programs if isinstance(program.loaded, Ranked)]
    if not programs or len(found) != len(programs):
        raise TypeError("a DistributedWorker is made for one program of host functions or several")
    for what in ("platform", "runtime_name"):
        if len(said := {getattr(program, what) for program in programs}) > 1:
            raise ValueError(f"programs of one worker have one {what}, got {sorted(said)}")
    if len({tuple(ranked.config.device_ids) for ranked in found}) > 1:
        raise ValueError("programs of one worker have the same device_ids")
    return found


def _check_bound(ranked: Sequence[Ranked], bound: Mapping[str, object]) -> None:
    """Raise where a sub-worker has no body, or a body no sub-worker."""
    known = {name for each in ranked for name in each.sub_workers}
    if unknown := [name for name in bound if name not in known]:
        raise ValueError(f"no sub-worker is called {unknown[0]!r}: there are {sorted(known) or 'none'}")
    missing = {name for each in ranked for name, needs in each.sub_workers.items() if needs} - set(bound)
    if missing:
        raise ValueError(f"the sub-worker {sorted(missing)[0]!r} has no body: pass callbacks={{name: function}}")
    for name, function in bound.items():
        if not callable(function) or not _takes_a_list(function):
            raise TypeError(f"the callback of {name!r} takes one list of arguments, got {function!r}")


def _takes_a_list(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called with one positional argument, as far as it says."""
    try:
        signature(function).bind([])
    except TypeError:
        return False
    except ValueError:  # of a builtin that does not say what it takes
        return True
    return True
