"""Mutations: kernels that read something from outside, what is done to it, and what that does to the result.

Each row is the text of a module. Its kernel is called with eight by eight ones, and the first element of what it writes
is its result. `change` and `revert` are statements about the module `m`. A mutation that `keeps` the result must keep
the program as well; any other has to give the other result or a drift error, and its revert the first one again.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from textwrap import dedent, indent
from typing import Any


@dataclass(frozen=True)
class Mutation:
    """One thing a kernel reads, and one way to change it."""

    name: str
    module: str
    change: str
    revert: str
    before: float
    after: float
    drifts: str = ""
    """What a drift error has to name; nothing where there is none, as for attributes of an instance."""
    is_slow: bool = False
    """Whether Python has to look at it anew at every call, which keeps the native path away."""
    is_kept: bool = True
    """Whether another process can tell that nothing has changed without reading the kernel."""
    extra: str = ""
    """More arguments, as written in a call."""

    @property
    def keeps(self) -> bool:
        """Whether the program must be found again."""
        return self.before == self.after and not self.drifts


NO_DICT_VERSIONS = sys.version_info >= (3, 12)
"""Whether dicts no longer count their changes: what is read of a whole one is then looked at in Python."""

HEAD = "from __future__ import annotations\n\nimport tilewright.language as pl\n"


def module(outside: str, body: str, parameters: str = "", first: str = "") -> str:
    """Return the text of a module: what the kernel reads, and the kernel around some lines about its tile `t`."""
    kernel = f"""
@pl.jit
def kernel({first}x: pl.Tensor, {parameters}out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [8, 8])
{indent(dedent(body).strip(), "        ")}
        pl.store(t, [0, 0], out)
    return out
"""
    return f"{HEAD}{dedent(outside)}\n{kernel}"


def row(
    name: str,
    outside: str,
    body: str,
    change: str,
    revert: str,
    results: tuple[float, float] = (2.0, 3.0),
    drifts: str = "",
    **others: Any,
) -> Mutation:
    """Return a row whose kernel is a plain one."""
    text = module(outside, body, others.pop("parameters", ""))
    return Mutation(name, text, change, revert, *results, drifts=drifts, **others)


def kept(name: str, outside: str, body: str, change: str, revert: str, **others: Any) -> Mutation:
    """Return a row that cannot change code."""
    return row(name, outside, body, change, revert, (2.0, 2.0), **others)


DATACLASS = """
from dataclasses import dataclass

@dataclass
class Config:
    k: float = 2.0
    other: int = 0

CFG = Config()
CONFIGS = [Config(), Config()]
BY_NAME = {"a": Config()}
"""

HELPERS = """
K = 2.0

@pl.jit.inline
def helper(t):
    return t * 2.0

@pl.jit.inline
def other(t):
    return t * 3.0

@pl.jit.inline
def reads(t):
    return t * K

@pl.jit.inline
def scaled(t, by: pl.FP32 = 2.0):
    return t * by

@pl.jit.inline
def named(t, *, by: pl.FP32 = 2.0):
    return t * by

@pl.jit.inline
def listed(t, by=[2.0]):
    return t * by[0]

@pl.jit.incore
def into(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(x, [0, 0], [8, 8]) * K, [0, 0], out)

@pl.jit.incore
def thrice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(x, [0, 0], [8, 8]) * 3.0, [0, 0], out)

@pl.inline
def template(t):
    return t * K
"""

ENUM = """
from enum import Enum, IntEnum

class Mode(Enum):
    TWICE = "twice"
    THRICE = "thrice"

class Factor(IntEnum):
    TWO = 2
    THREE = 3

MODE = Mode.TWICE
FACTOR = Factor.TWO
"""

CLASSES = """
class Base:
    K = 2.0

class Sub(Base):
    pass

class Computed:
    value = 2.0

    @property
    def k(self):
        return Computed.value

COMPUTED = Computed()

class Slotted:
    __slots__ = ("k",)

    def __init__(self):
        self.k = 2.0

SLOTTED = Slotted()
"""

MODULES = """
import sys
import types

settings = types.ModuleType("settings_of_a_row")
settings.K = 2.0
settings.inner = types.SimpleNamespace(k=2.0)
settings.unused = 1
"""

CLOSURE = f"""{HEAD}
def make():
    k = 2.0
    values = [2.0]

    def rebind(value):
        nonlocal k
        k = value

    def mutate(value):
        values[0] = value

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 8])
            t = t * k * (values[0] * 0.5)
            pl.store(t, [0, 0], out)
        return out

    return kernel, rebind, mutate

kernel, rebind, mutate = make()
"""

METHOD = f"""{HEAD}
K = 1.0

class Layer:
    factor = 1.0

    def __init__(self, k=2.0):
        self.k = k
        self.inner = type("Inner", (), {{}})()
        self.inner.k = 1.0
        self.unused = 0

    @pl.jit
    def run(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 8])
            t = t * self.k * self.inner.k * self.factor * K
            pl.store(t, [0, 0], out)
        return out

layer = Layer()
kernel = layer.run
"""

ANNOTATED = f"""{HEAD}
import types

NUMBER = pl.INT32
NUMBERS = {{"n": pl.INT32}}
outer = types.SimpleNamespace(number=pl.INT32)
"""


def annotated(annotation: str) -> str:
    """Return a module whose kernel tells of what type its number is annotated to be."""
    return f"""{ANNOTATED}

@pl.jit
def kernel(x: pl.Tensor, n: {annotation}, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [8, 8])
        t = t * (3.0 if isinstance(n, float) else 2.0)
        pl.store(t, [0, 0], out)
    return out
"""


LAMBDA = """
def make(k):
    def rebind(v):
        nonlocal k
        k = v

    return (lambda v: v * k), rebind

f, rebind = make(2.0)
"""

DYNAMIC = f"""{HEAD}
M = pl.dynamic("M")

@pl.jit
def kernel(x: pl.Tensor[[M, 8], pl.FP32], out: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    for row in pl.range(0, M, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [8, 8]) * 2.0, [row, 0], out)
    return out
"""


NUMBERS = [
    row("global int", "K = 2", "t = t * (K * 1.0)", "m.K = 3", "m.K = 2", drifts="global `K`"),
    row("global float", "K = 2.0", "t = t * K", "m.K = 3.0", "m.K = 2.0", drifts="global `K`"),
    row(
        "global bool",
        "K = True",
        "if K:\n    t = t * 2.0\nelse:\n    t = t * 3.0",
        "m.K = False",
        "m.K = True",
        drifts="`K`",
    ),
    row("global str", "K = 'a'", "t = t * (2.0 if K == 'a' else 3.0)", "m.K = 'b'", "m.K = 'a'", drifts="`K`"),
    row("1 to True", "K = 1", "t = t * (3.0 if isinstance(K, bool) else 2.0)", "m.K = True", "m.K = 1", drifts="`K`"),
    row("1 to 1.0", "K = 1", "t = t * (3.0 if isinstance(K, float) else 2.0)", "m.K = 1.0", "m.K = 1", drifts="`K`"),
    row("0.0 to -0.0", "K = 0.0", "t = t * (2.0 if str(K) == '0.0' else 3.0)", "m.K = -0.0", "m.K = 0.0", drifts="`K`"),
    kept("another NaN", "K = float('nan')", "t = t * (3.0 if K == K else 2.0)", "m.K = -(-float('nan'))", "m.K = m.K"),
    kept("an equal float", "K = 2.0", "t = t * K", "m.K = float('2.0')", "m.K = 2.0"),
    row("a name that is gone", "K = 2.0", "t = t * K", "del m.K; m.K = 3.0", "m.K = 2.0", drifts="`K`"),
    row(
        "a NumPy scalar",
        "import numpy as np\nK = np.float64(2.0)",
        "t = t * float(K)",
        "m.K = m.np.float64(3.0)",
        "m.K = m.np.float64(2.0)",
        drifts="`K`",
    ),
    row(
        "an array's element",
        "import numpy as np\nK = np.array([2.0, 5.0])",
        "t = t * float(K[0])",
        "m.K[0] = 3.0",
        "m.K[0] = 2.0",
        drifts="item `K[0]`",
        is_slow=True,
    ),
    kept(
        "another element of an array",
        "import numpy as np\nK = np.array([2.0, 5.0])",
        "t = t * float(K[0])",
        "m.K[1] = 3.0",
        "m.K[1] = 5.0",
        is_slow=True,
    ),
    kept("an unrelated global", "K = 2.0\nL = 1", "t = t * K", "m.L = 7; m.NEW = 3", "m.L = 1; del m.NEW"),
    kept(
        "a global named like an attribute",
        "shape = 1",
        "t = t * (2.0 if x.shape[0] == 8 else 3.0)",
        "m.shape = 5",
        "m.shape = 1",
    ),
    row(
        "a dtype",
        "DT = pl.FP16",
        "t = pl.cast(pl.cast(t * 2049.0, DT), pl.FP32)",
        "m.DT = m.pl.BF16",
        "m.DT = m.pl.FP16",
        (2048.0, 2048.0),
        drifts="`DT`",
    ),
    row(
        "a dtype as wide as before",
        "DT = pl.FP16",
        "t = t * (2.0 if DT == pl.FP16 and DT.bits == 16 else 3.0)",
        "m.DT = m.pl.BF16",
        "m.DT = m.pl.FP16",
        drifts="`DT`",
    ),
]

CONTAINERS = [
    row("a tuple", "K = (2.0, 5.0)", "t = t * K[0]", "m.K = (3.0, 5.0)", "m.K = (2.0, 5.0)", drifts="item `K[0]`"),
    kept("an equal tuple", "K = (2.0, 5.0)", "t = t * K[0]", "m.K = tuple([2.0, 5.0])", "m.K = (2.0, 5.0)"),
    kept("the rest of a tuple", "K = (2.0, 5.0)", "t = t * K[0]", "m.K = (2.0, 9.0)", "m.K = (2.0, 5.0)"),
    row(
        "a tuple, all of it",
        "K = (2.0, 5.0)",
        "t = t * K[0] * (sum(K) / 7.0)",
        "m.K = (2.0, 8.5)",
        "m.K = (2.0, 5.0)",
        drifts="`K`",
    ),
    row("a list in place", "K = [2.0, 5.0]", "t = t * K[0]", "m.K[0] = 3.0", "m.K[0] = 2.0", drifts="item `K[0]`"),
    row(
        "a list in place, all of it",
        "K = [1.0, 1.0]",
        "t = t * (sum(K) * 1.0)",
        "m.K[1] = 2.0",
        "m.K[1] = 1.0",
        drifts="`K`",
    ),
    row("a list that grows", "K = [1, 1]", "t = t * (len(K) * 1.0)", "m.K.append(5)", "m.K.pop()", drifts="`K`"),
    kept("an equal list", "K = [2.0]", "t = t * sum(K)", "m.K = [2.0]", "m.K = [2.0]"),
    kept("the rest of a list", "K = [2.0, 5.0]", "t = t * K[0]", "m.K[1] = 9.0; m.K.append(1)", "m.K[:] = [2.0, 5.0]"),
    row(
        "a nested list",
        "K = [[1.0], [2.0]]",
        "t = t * K[1][0]",
        "m.K[1][0] = 3.0",
        "m.K[1][0] = 2.0",
        drifts="item `K[1][0]`",
    ),
    row(
        "a nested list, all of it",
        "K = [[1], [2]]",
        "t = t * (2.0 if K == [[1], [2]] else 3.0)",
        "m.K[1][0] = 3",
        "m.K[1][0] = 2",
        drifts="`K`",
    ),
    row(
        "a list under another name",
        "K = [2.0, 5.0]",
        "k = K\nt = t * k[0]",
        "m.K[0] = 3.0",
        "m.K[0] = 2.0",
        drifts="`K",
    ),
    row(
        "a list that holds itself",
        "K = [2.0]\nK.append(K)",
        "t = t * K[1][1][0]",
        "m.K[0] = 3.0",
        "m.K[0] = 2.0",
        drifts="K[",
    ),
    row(
        "a dict in place",
        "K = {'a': 2.0, 'b': 5.0}",
        "t = t * K['a']",
        "m.K['a'] = 3.0",
        "m.K['a'] = 2.0",
        drifts="item `K['a']`",
    ),
    kept(
        "the rest of a dict",
        "K = {'a': 2.0, 'b': 5.0}",
        "t = t * K['a']",
        "m.K['b'] = 9.0; m.K['c'] = 1",
        "m.K['b'] = 5.0; del m.K['c']",
    ),
    row(
        "a key that is gone",
        "K = {'a': 2.0}",
        "t = t * K['a']",
        "m.K.clear(); m.K['a'] = 3.0",
        "m.K['a'] = 2.0",
        drifts="K['a']",
    ),
    row(
        "a dict's order",
        "K = {'a': 1, 'b': 1}",
        "t = t * (2.0 if tuple(K)[0] == 'a' else 3.0)",
        "m.K['a'] = m.K.pop('a')",
        "m.K['b'] = m.K.pop('b')",
        drifts="`K`",
        is_slow=NO_DICT_VERSIONS,
    ),
    row(
        "a dict of lists",
        "K = {'a': [2.0]}",
        "t = t * K['a'][0]",
        "m.K['a'][0] = 3.0",
        "m.K['a'][0] = 2.0",
        drifts="K['a'][0]",
    ),
    row(
        "a dict by dtype",
        "K = {pl.FP32: 2.0}",
        "t = t * K[x.dtype]",
        "m.K[m.pl.FP32] = 3.0",
        "m.K[m.pl.FP32] = 2.0",
        drifts="`K[",
        is_slow=NO_DICT_VERSIONS,
        is_kept=False,
    ),
    row("a set", "K = {1, 2}", "t = t * (len(K) * 1.0)", "m.K.add(3)", "m.K.remove(3)", drifts="`K`", is_slow=True),
    kept(
        "a frozenset in another order",
        "K = frozenset(['a', 'b', 'c'])",
        "t = t * (len(K) - 1.0)",
        "m.K = frozenset(['c', 'a', 'b'])",
        "pass",
    ),
    row(
        "a namedtuple",
        "from collections import namedtuple\nP = namedtuple('P', 'k other')\nK = P(2.0, 1)",
        "t = t * K.k",
        "m.K = m.K._replace(k=3.0)",
        "m.K = m.K._replace(k=2.0)",
        drifts="attribute `K.k`",
    ),
    kept(
        "the rest of a namedtuple",
        "from collections import namedtuple\nP = namedtuple('P', 'k other')\nK = P(2.0, 1)",
        "t = t * K.k",
        "m.K = m.K._replace(other=3.0)",
        "m.K = m.K._replace(other=1)",
    ),
    row(
        "a namedtuple, all of it",
        "from collections import namedtuple\nP = namedtuple('P', 'k other')\nK = P(2.0, 2.0)",
        "t = t * K.k * (sum(K) / 4.0)",
        "m.K = m.K._replace(other=4.0)",
        "m.K = m.K._replace(other=2.0)",
        drifts="`K`",
    ),
    row(
        "a list in a namedtuple",
        "from collections import namedtuple\nP = namedtuple('P', 'k')\nK = P([2.0])",
        "t = t * K.k[0]",
        "m.K.k[0] = 3.0",
        "m.K.k[0] = 2.0",
        drifts="K.k[0]",
    ),
]

OBJECTS = [
    row(
        "an enum member",
        ENUM,
        "t = t * (2.0 if MODE == Mode.TWICE else 3.0)",
        "m.MODE = m.Mode.THRICE",
        "m.MODE = m.Mode.TWICE",
        drifts="`MODE`",
    ),
    row(
        "an enum's value",
        ENUM,
        "t = t * (2.0 if MODE.value == 'twice' else 3.0)",
        "m.MODE = m.Mode.THRICE",
        "m.MODE = m.Mode.TWICE",
        drifts="`MODE.value`",
    ),
    row(
        "an int enum",
        ENUM,
        "t = t * (FACTOR * 1.0)",
        "m.FACTOR = m.Factor.THREE",
        "m.FACTOR = m.Factor.TWO",
        drifts="`FACTOR`",
    ),
    row(
        "a dataclass in place", DATACLASS, "t = t * CFG.k", "m.CFG.k = 3.0", "m.CFG.k = 2.0", drifts="attribute `CFG.k`"
    ),
    kept("an equal dataclass", DATACLASS, "t = t * CFG.k", "m.CFG = m.Config()", "m.CFG = m.Config()"),
    row(
        "another dataclass",
        DATACLASS,
        "t = t * CFG.k",
        "m.CFG = m.Config(3.0)",
        "m.CFG = m.Config()",
        drifts="attribute `CFG.k`",
    ),
    kept("the rest of a dataclass", DATACLASS, "t = t * CFG.k", "m.CFG.other = 5", "m.CFG.other = 0"),
    row(
        "a dataclass under another name",
        DATACLASS,
        "c = CFG\nt = t * c.k",
        "m.CFG.k = 3.0",
        "m.CFG.k = 2.0",
        drifts="`CFG.k`",
    ),
    kept(
        "an equal dataclass under another name",
        DATACLASS,
        "c = CFG\nt = t * c.k",
        "m.CFG = m.Config()",
        "m.CFG = m.Config()",
    ),
    row(
        "one object under two names",
        DATACLASS + "\nALSO = CFG",
        "a, b = CFG, ALSO\nt = t * b.k",
        "m.ALSO = m.Config(3.0)",
        "m.ALSO = m.CFG",
        drifts="`ALSO.k`",
    ),
    row(
        "a dataclass in a list",
        DATACLASS,
        "t = t * CONFIGS[1].k",
        "m.CONFIGS[1].k = 3.0",
        "m.CONFIGS[1].k = 2.0",
        drifts="`CONFIGS[1].k`",
    ),
    row(
        "another dataclass in a list",
        DATACLASS,
        "t = t * CONFIGS[1].k",
        "m.CONFIGS[1] = m.Config(3.0)",
        "m.CONFIGS[1] = m.Config()",
        drifts="`CONFIGS[1].k`",
    ),
    row(
        "a dataclass in a tuple of names",
        DATACLASS,
        "first, second = CONFIGS[0], CONFIGS[1]\nt = t * second.k",
        "m.CONFIGS[1].k = 3.0",
        "m.CONFIGS[1].k = 2.0",
        drifts="`CONFIGS[1].k`",
    ),
    row(
        "a dataclass in a dict",
        DATACLASS,
        "t = t * BY_NAME['a'].k",
        "m.BY_NAME['a'].k = 3.0",
        "m.BY_NAME['a'].k = 2.0",
        drifts="`BY_NAME['a'].k`",
    ),
    row(
        "a dataclass handed to a helper",
        DATACLASS + "\n@pl.jit.inline\ndef helper(t, c):\n    return t * c.k\n",
        "t = helper(t, CFG)",
        "m.CFG.k = 3.0",
        "m.CFG.k = 2.0",
        drifts="`CFG.k`",
    ),
    row(
        "a dataclass that a helper defaults to",
        DATACLASS + "\n@pl.jit.inline\ndef helper(t, c=CFG):\n    return t * c.k\n",
        "t = helper(t)",
        "m.CFG.k = 3.0",
        "m.CFG.k = 2.0",
        drifts="`c.k`",
    ),
    row(
        "a module's attribute",
        MODULES,
        "t = t * settings.K",
        "m.settings.K = 3.0",
        "m.settings.K = 2.0",
        drifts="attribute `settings.K`",
    ),
    kept("the rest of a module", MODULES, "t = t * settings.K", "m.settings.unused = 3.0", "m.settings.unused = 1"),
    row(
        "an object in a module",
        MODULES,
        "t = t * settings.inner.k",
        "m.settings.inner.k = 3.0",
        "m.settings.inner.k = 2.0",
        drifts="`settings.inner.k`",
    ),
    row(
        "a module under another name",
        MODULES,
        "s = settings\nt = t * s.K",
        "m.settings.K = 3.0",
        "m.settings.K = 2.0",
        drifts="`settings.K`",
    ),
    row(
        "a class attribute", CLASSES, "t = t * Base.K", "m.Base.K = 3.0", "m.Base.K = 2.0", drifts="attribute `Base.K`"
    ),
    row(
        "an inherited class attribute",
        CLASSES,
        "t = t * Sub.K",
        "m.Base.K = 3.0",
        "m.Base.K = 2.0",
        drifts="attribute `Sub.K`",
    ),
    row(
        "a class attribute overridden",
        CLASSES,
        "t = t * Sub.K",
        "m.Sub.K = 3.0",
        "del m.Sub.K",
        drifts="attribute `Sub.K`",
    ),
    row(
        "a property",
        CLASSES,
        "t = t * COMPUTED.k",
        "m.Computed.value = 3.0",
        "m.Computed.value = 2.0",
        drifts="attribute `COMPUTED.k`",
        is_slow=True,
    ),
    row(
        "a slot", CLASSES, "t = t * SLOTTED.k", "m.SLOTTED.k = 3.0", "m.SLOTTED.k = 2.0", drifts="attribute `SLOTTED.k`"
    ),
    row(
        "a lambda's global",
        "K = 2.0\nf = lambda v: v * K",
        "t = t * f(1.0)",
        "m.K = 3.0",
        "m.K = 2.0",
        drifts="global `K`",
    ),
    row(
        "a lambda's default",
        "f = lambda v, k=2.0: v * k",
        "t = t * f(1.0)",
        "m.f.__defaults__ = (3.0,)",
        "m.f.__defaults__ = (2.0,)",
        drifts="default `k`",
    ),
    row(
        "a lambda's cell",
        LAMBDA,
        "t = t * f(1.0)",
        "m.rebind(3.0)",
        "m.rebind(2.0)",
        drifts="closure variable `k`",
    ),
    row(
        "another lambda",
        "f = lambda v: v * 2.0\ng = lambda v: v * 3.0\nfirst = f",
        "t = t * f(1.0)",
        "m.f = m.g",
        "m.f = m.first",
        drifts="`f`",
    ),
    row(
        "a builtin that is shadowed",
        "",
        "t = t * max(2.0, 1.0)",
        "m.max = min",
        "del m.max",
        (2.0, 1.0),
        drifts="builtin `max`",
    ),
    Mutation("a dynamic name", DYNAMIC, "m.M = m.pl.dynamic('N')", "m.M = m.pl.dynamic('M')", 2.0, 2.0, "`M`"),
    Mutation("an equal dynamic name", DYNAMIC, "m.M = m.pl.dynamic('M')", "pass", 2.0, 2.0),
]

FUNCTIONS = [
    row("a helper's global", HELPERS, "t = reads(t)", "m.K = 3.0", "m.K = 2.0", drifts="`K`, which `reads`"),
    row("a template's global", HELPERS, "t = template(t)", "m.K = 3.0", "m.K = 2.0", drifts="`K`, which `template`"),
    row(
        "a helper's code",
        HELPERS,
        "t = helper(t)",
        "m.code = m.helper.function.__code__\nm.helper.function.__code__ = m.other.function.__code__",
        "m.helper.function.__code__ = m.code",
        drifts="`__code__`",
    ),
    row(
        "a template's code",
        HELPERS,
        "t = template(t)",
        "m.code = m.template.function.__code__\nm.template.function.__code__ = m.other.function.__code__",
        "m.template.function.__code__ = m.code",
        drifts="`__code__`",
    ),
    row(
        "a helper's default",
        HELPERS,
        "t = scaled(t)",
        "m.scaled.function.__defaults__ = (3.0,)",
        "m.scaled.function.__defaults__ = (2.0,)",
        drifts="default `by`",
    ),
    kept(
        "a helper's equal default", HELPERS, "t = scaled(t)", "m.scaled.function.__defaults__ = (float('2.0'),)", "pass"
    ),
    row(
        "a helper's keyword default",
        HELPERS,
        "t = named(t)",
        "m.named.function.__kwdefaults__['by'] = 3.0",
        "m.named.function.__kwdefaults__['by'] = 2.0",
        drifts="default `by`",
    ),
    row(
        "a helper's other keyword defaults",
        HELPERS,
        "t = named(t)",
        "m.named.function.__kwdefaults__ = {'by': 3.0}",
        "m.named.function.__kwdefaults__ = {'by': 2.0}",
        drifts="default `by`",
    ),
    row(
        "a helper's default in place",
        HELPERS,
        "t = listed(t)",
        "m.listed.function.__defaults__[0][0] = 3.0",
        "m.listed.function.__defaults__[0][0] = 2.0",
        drifts="default `by`",
    ),
    row(
        "another helper",
        HELPERS,
        "t = helper(t)",
        "m.kept, m.helper = m.helper, m.other",
        "m.helper = m.kept",
        drifts="`helper`",
    ),
    row(
        "a helper in a module",
        HELPERS + MODULES + "\nsettings.helper = helper\n",
        "t = settings.helper(t)",
        "m.settings.helper = m.other",
        "m.settings.helper = m.helper",
        drifts="`settings.helper`",
    ),
    row(
        "a helper in a list",
        HELPERS + "\nALL = [helper, other]\n",
        "t = ALL[0](t)",
        "m.ALL.reverse()",
        "m.ALL.reverse()",
        drifts="`ALL[0]`",
    ),
    row(
        "a helper chosen by name",
        HELPERS + "\nALL = {'a': helper, 'b': other}\nNAME = 'a'\n",
        "t = ALL[NAME](t)",
        "m.NAME = 'b'",
        "m.NAME = 'a'",
        drifts="`NAME`",
    ),
    Mutation(
        "a device kernel",
        f"{HEAD}{HELPERS}\n\n@pl.jit\ndef kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):\n    return into(x, out)\n",
        "m.kept, m.into = m.into, m.thrice",
        "m.into = m.kept",
        2.0,
        3.0,
        "`into`",
    ),
    Mutation(
        "a device kernel's global",
        f"{HEAD}{HELPERS}\n\n@pl.jit\ndef kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):\n    return into(x, out)\n",
        "m.K = 3.0",
        "m.K = 2.0",
        2.0,
        3.0,
        "`K`, which `into`",
    ),
    Mutation("a closure variable", CLOSURE, "m.rebind(3.0)", "m.rebind(2.0)", 2.0, 3.0, "closure variable `k`"),
    Mutation("a list in a closure", CLOSURE, "m.mutate(3.0)", "m.mutate(2.0)", 2.0, 3.0, "`values[0]`"),
    Mutation("an attribute of self", METHOD, "m.layer.k = 3.0", "m.layer.k = 2.0", 2.0, 3.0),
    Mutation("an object of self", METHOD, "m.layer.inner.k = 1.5", "m.layer.inner.k = 1.0", 2.0, 3.0),
    Mutation("a class attribute of self", METHOD, "m.Layer.factor = 1.5", "m.Layer.factor = 1.0", 2.0, 3.0),
    Mutation("self shadowing its class", METHOD, "m.layer.factor = 1.5", "del m.layer.factor", 2.0, 3.0),
    Mutation(
        "the rest of self",
        METHOD,
        "m.layer.unused = 5; m.layer.new = 1",
        "m.layer.unused = 0; del m.layer.new",
        2.0,
        2.0,
    ),
    Mutation("a global of a method", METHOD, "m.K = 1.5", "m.K = 1.0", 2.0, 3.0, "global `K`"),
    Mutation(
        "an annotation's name",
        annotated("NUMBER"),
        "m.NUMBER = m.pl.FP32",
        "m.NUMBER = m.pl.INT32",
        2.0,
        3.0,
        "`NUMBER`",
        extra="3",
    ),
    Mutation(
        "an annotation's attribute",
        annotated("outer.number"),
        "m.outer.number = m.pl.FP32",
        "m.outer.number = m.pl.INT32",
        2.0,
        3.0,
        "`outer.number`",
        extra="3",
    ),
    Mutation(
        "an annotation's item",
        annotated("NUMBERS['n']"),
        "m.NUMBERS['n'] = m.pl.FP32",
        "m.NUMBERS['n'] = m.pl.INT32",
        2.0,
        3.0,
        "`NUMBERS['n']`",
        extra="3",
    ),
    Mutation(
        "an annotation itself",
        annotated("pl.INT32"),
        "m.kernel.function.__annotations__['n'] = 'pl.FP32'",
        "m.kernel.function.__annotations__['n'] = 'pl.INT32'",
        2.0,
        3.0,
        "annotation `n`",
        extra="3",
    ),
]

MUTATIONS = [*NUMBERS, *CONTAINERS, *OBJECTS, *FUNCTIONS]
