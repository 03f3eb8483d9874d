"""One process of two: host functions on DTensors, with gradients, beside DDP; prints what it saw."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.ir.distributed_compiled_program import DistributedConfig
from tilewright.runtime import RunConfig

SIZE = 64
NR = pl.dynamic("NR")
X = pl.Tensor[[NR, 1, SIZE], pl.FP32]


@pl.jit
def reduce_chip(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
        pld.tensor.allreduce(data, signal)
        y = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.host
def summed_backward(dy: X, dx: pl.Out[X]):
    n = pld.world_size()
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    cells = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        data = pld.window(rows, [1, SIZE], dtype=pl.FP32)
        reduce_chip(dy[n - 1 - r], dx[r], data, pld.window(cells, [n, 1], dtype=pl.INT32), device=r)
    return dx


@pl.jit.host(backward=summed_backward)
def summed(x: X, y: pl.Out[X]):
    n = pld.world_size()
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    cells = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        data = pld.window(rows, [1, SIZE], dtype=pl.FP32)
        reduce_chip(x[r], y[r], data, pld.window(cells, [n, 1], dtype=pl.INT32), device=r)
    return y


def say(name: str, got: Any, wanted: Any) -> None:
    print(f"{name}: {'right' if torch.allclose(got, wanted, rtol=1e-4, atol=1e-5) else (got, wanted)}", flush=True)


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
mesh: Any = init_device_mesh("cpu", (size,))
torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
rows, scales = torch.randn(size, 1, SIZE), torch.randn(size, 1, SIZE)
mine: Any = DTensor.from_local(rows[rank : rank + 1].clone(), mesh, [Shard(0)])

gathered: list[Any] = []
full_tensor: Any = DTensor.full_tensor
DTensor.full_tensor = lambda self: gathered.append(self) or full_tensor(self)  # pyright: ignore[reportAttributeAccessIssue]
made: Any = summed(mine)
say("returned", made.to_local(), rows.sum(0, keepdim=True))
print(f"placed: {made.placements == (Shard(0),)}", flush=True)
into: Any = DTensor.from_local(torch.zeros(1, 1, SIZE), mesh, [Shard(0)])
summed(mine, into)
say("in place", into.to_local(), rows.sum(0, keepdim=True))
program = summed.compile(torch.empty(size, 1, SIZE))
program(mine, into.zero_())
say("compiled", into.to_local(), rows.sum(0, keepdim=True))

print(f"stayed: {not gathered and made.to_local().shape == (1, 1, SIZE)}", flush=True)
say("gathered", summed_backward(mine).to_local(), rows.sum(0, keepdim=True))
summed_backward(mine, into.zero_())  # which gives each rank the row of another one
say("gathered in place", into.to_local(), rows.sum(0, keepdim=True))
print(f"went: {len(gathered) == 2}", flush=True)

square: Any = init_device_mesh("cpu", (1, size), mesh_dim_names=("data", "ranks"))
try:
    summed(DTensor.from_local(rows, square, [Replicate(), Replicate()]))
except ValueError as error:
    print(f"refused: {'mesh with axes data, ranks' in str(error)}", flush=True)
turned: Any = DTensor.from_local(rows[rank : rank + 1].clone(), square, [Replicate(), Shard(0)])
both: Any = summed(turned, config=RunConfig(distributed_config=DistributedConfig(mesh_axis="ranks")))
say("along an axis", both.to_local(), rows.sum(0, keepdim=True))
print(f"placed along it: {both.device_mesh == square and both.placements == (Replicate(), Shard(0))}", flush=True)

linear = torch.nn.Linear(SIZE, SIZE)
copy = torch.nn.Linear(SIZE, SIZE)
copy.load_state_dict(linear.state_dict())
module = DistributedDataParallel(linear)
sharded: Any = DTensor.from_local(module(rows[rank])[None], mesh, [Shard(0)])
gathered.clear()
loss = (summed(sharded).to_local() * scales[rank]).sum()
print(f"stayed with a gradient: {not gathered}", flush=True)
loss.backward()
wanted = copy(rows).sum(0, keepdim=True).expand(size, 1, SIZE)
((wanted * scales).sum() / size).backward()
say("beside DDP", linear.weight.grad, copy.weight.grad)

whole = rows.clone().requires_grad_()
operator: Any = summed.as_torch_op("tilewright_tests::summed")
(operator(whole) * scales).sum().backward()
say("operator", whole.grad, scales.sum(0, keepdim=True).expand_as(rows))

HIDDEN = 8
up, down = torch.nn.Linear(SIZE, HIDDEN, bias=False), torch.nn.Linear(HIDDEN, SIZE, bias=False)
sizes = {name: layer.weight.detach().clone() for name, layer in (("up", up), ("down", down))}
for layer in sizes.values():
    dist.broadcast(layer, 0)  # pyright: ignore[reportUnknownMemberType]
up.load_state_dict({"weight": sizes["up"]})
columns: Any = parallelize_module(up, mesh, ColwiseParallel())  # each process has some of the hidden columns
own = sizes["down"][:, rank * HIDDEN // size : (rank + 1) * HIDDEN // size].clone().requires_grad_()
batch = rows[0]


def parallel(batch: Any) -> Any:
    """Multiply what the module gives by this process's rows of the second matrix, and sum over ranks."""
    part = torch.relu(columns(batch)) @ own.T
    return summed(DTensor.from_local(part[None], mesh, [Shard(0)])).to_local()[0]


alone = [sizes["up"].clone().requires_grad_(), sizes["down"].clone().requires_grad_()]
expected: Any = torch.relu(batch @ alone[0].T) @ alone[1].T
with torch.no_grad():
    say("tensor parallel", parallel(batch), expected)
(parallel(batch).square().sum() / size).backward()
expected.square().sum().backward()
kept = slice(rank * HIDDEN // size, (rank + 1) * HIDDEN // size)
say("its gradients", own.grad, alone[1].grad[:, kept])  # pyright: ignore[reportOptionalSubscript]
say("its module's", columns.weight.grad.to_local(), alone[0].grad[kept])  # pyright: ignore[reportOptionalSubscript]

twice: Any = torch.compile(lambda shard: operator(shard.full_tensor()) * 2, backend="aot_eager")  # pyright: ignore
say("compiled by torch", twice(mine), 2 * rows.sum(0, keepdim=True).expand_as(rows))
dist.destroy_process_group()
