"""Tasks: how a dispatch is written, what it waits for, and that what it says about itself changes no value."""

# pyright: basic, reportCallIssue=false, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false, reportIndexIssue=false
from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.core.expr import Submit
from tilewright.core.stmt import AssignStmt, InCoreScopeStmt
from tilewright.core.visitor import statements

HEAD = """
N = pl.dynamic("N")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def halves(
        self, x: pl.Tensor[[N, 16], pl.FP32], twice: pl.Out[pl.Tensor[[N, 16], pl.FP32]],
        half: pl.Out[pl.Tensor[[N, 16], pl.FP32]],
    ) -> tuple[pl.Tensor[[N, 16], pl.FP32], pl.Tensor[[N, 16], pl.FP32]]:
        t = pl.load(x, [0, 0], [8, 16])
        twice = pl.store(pl.mul(t, 2.0), [0, 0], twice)
        half = pl.store(pl.mul(t, 0.5), [0, 0], half)
        return twice, half

    @pl.function(type=pl.FunctionType.InCore)
    def added(self, x: pl.Tensor[[8, 16], pl.FP32], out: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]):
        out = pl.store(pl.add(pl.load(out, [0, 0], [8, 16]), pl.load(x, [0, 0], [8, 16])), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def doubled(self, x: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]):
        pl.store(pl.mul(pl.load(x, [0, 0], [8, 16]), 2.0), [0, 0], x)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 16], pl.FP32], out: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]):
"""

SUMS = {
    "results in a tuple": "(a, b), tid = pl.submit(self.halves, x, out, out2)\n"
    "out, tid = pl.submit(self.added, b, a, deps=[tid])\nreturn out",
    "results under one name": "both, tid = pl.submit(self.halves, x)\n"
    "out, tid = pl.submit(self.added, both[1], both[0], deps=[tid])\nreturn out",
    "results one by one": "a, b, tid = pl.submit(self.halves, x, out, out2)\n"
    "out, tid = pl.submit(self.added, b, a, deps=[tid])\nreturn out",
    "one annotated name": "r: pl.Tuple[pl.Tensor[[8, 16], pl.FP32], pl.Tensor[[8, 16], pl.FP32], pl.TASK_ID]"
    " = pl.submit(self.halves, x)\nout, tid = pl.submit(self.added, r[1], r[0], deps=[r[2]])\nreturn out",
    "outputs left out": "(a, b), tid = pl.submit(self.halves, x)\nout, tid = pl.submit(self.added, b, a)\nreturn out",
    "the last output left out": "(a, b), tid = pl.submit(self.halves, x, out)\n"
    "out, tid = pl.submit(self.added, b, a)\nreturn out",
    "waiting for arrays": "ids = pl.array.create(3, pl.TASK_ID)\n(a, b), tid = pl.submit(self.halves, x)\n"
    "ids[0] = tid\nids[2] = pl.system.task_dummy(deps=[ids[0], None])\n"
    "done = pl.system.task_dummy(deps=[ids])\n"
    "out, tid = pl.submit(self.added, b, a, deps=[done])\nreturn out",
    "waiting for chosen ones": "ids = pl.array.create(3, pl.TASK_ID)\n(a, b), tid = pl.submit(self.halves, x)\n"
    "ids[0] = tid\nids[1] = tid\nout, tid = pl.submit(self.added, b, a, deps=[ids[i] for i in (0, 1, 2) if i < 2])\n"
    "return out",
    "shown and hurried": "pl.dump_tag(x)\n(a, b), tid = pl.submit(self.halves, x, allow_early_resolve=True)\n"
    "out, tid = pl.submit(self.added, b, a, dumps=[a, b], attrs={'note': 1})\nreturn out",
    "no result": "(a, b), tid = pl.submit(self.halves, x)\n_, tid = pl.submit(self.doubled, a)\n"
    "_, tid = pl.submit(self.doubled, b, deps=[tid])\nout, tid = pl.submit(self.added, b, a)\n"
    "for r in pl.range(8):\n    with pl.at(level=pl.Level.CORE_GROUP, dumps=[out], no_dep_args=[a], windowize=True):\n"
    "        out = pl.store(pl.mul(pl.load(out, [r, 0], [1, 16]), 0.5), [r, 0], out)\nreturn out",
}
"""Bodies that give two and a half times `x`."""


def program(body: str) -> ir.Program:
    text = "out2 = pl.create_tensor([8, 16], dtype=pl.FP32)\n" + body if "out2" in body else body
    return pl.parse_program(HEAD + "\n".join(f"        {line}" for line in text.splitlines()) + "\n")


@pytest.mark.parametrize("form", SUMS)
def test_every_form_computes_the_same(target: str, form: str) -> None:
    x = np.random.default_rng(0).standard_normal((8, 16), np.float32)
    made = program(SUMS[form])
    result = ir.compile(made, platform=target)(x, np.zeros_like(x))
    np.testing.assert_allclose(np.asarray(result), 2.5 * x, rtol=1e-6)


@pytest.mark.parametrize("form", SUMS)
def test_every_form_reads_back(form: str) -> None:
    made = program(SUMS[form])
    for concise in (False, True):
        assert ir.structural_equal(pl.parse(made.as_python(concise=concise)), made)
    assert ir.structural_equal(ir.deserialize(ir.serialize(made)), made)


def submits(made: ir.Program) -> list[Submit]:
    values = [stmt.value for stmt in statements(made["main"].body) if isinstance(stmt, AssignStmt)]
    return [value for value in values if isinstance(value, Submit)]


def test_a_dispatch_keeps_what_it_says() -> None:
    first, second = submits(program(SUMS["shown and hurried"]))
    assert [value.name_hint for value in first.dumps] == ["x"] and first.attributes == (("allow_early_resolve", True),)
    assert len(second.dumps) == 2 and second.attributes == ()


def test_a_mark_stays_on_its_value() -> None:
    made = program(
        "pl.dump_tag(out)\nshown = out\nout, tid = pl.submit(self.added, x, out)\n"
        "out, tid = pl.submit(self.added, x, out)\nout, tid = pl.submit(self.added, x, shown)\nreturn out"
    )
    assert [len(task.dumps) for task in submits(made)] == [1, 0, 1]


def test_a_scope_keeps_what_it_says() -> None:
    made = program(SUMS["no result"])
    (scope,) = [stmt for stmt in statements(made["main"].body) if isinstance(stmt, InCoreScopeStmt)]
    assert len(scope.dumps) == len(scope.no_dep_args) == 1 and scope.attrs == {"windowize": True}


def test_two_dispatches_differ_in_what_they_say() -> None:
    text = "out, tid = pl.submit(self.added, x, out{})\nreturn out"
    plain = program(text.format(""))
    for said in (", dumps=[x]", ", allow_early_resolve=True"):
        assert not ir.structural_equal(program(text.format(said)), plain)
    assert ir.structural_equal(program(text.format(", allow_early_resolve=False")), plain)
